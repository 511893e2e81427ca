"""A space: a source of candidates and the rules they obey, as one value."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from ..attacks.types import Example, Grid
from .grid import Slot, WordGrid
from .rules import CandidateRule, Field, Rule, ShareChanged, SlotRule, outside
from .tags import tag
from .tokens import Word, words


class Source(Protocol):
    """Where candidates come from. `missing` says what is wrong with words that have none."""

    @property
    def name(self) -> str: ...
    @property
    def missing(self) -> str: ...
    @property
    def needs_tags(self) -> bool: ...
    def __call__(self, field: Field, positions: Sequence[int]) -> list[tuple[str, ...]]: ...


@dataclass(frozen=True)
class Space:
    """Word replacement: implements `attacks.types.Space`. Protected spans of an example always hold."""

    source: Source
    rules: tuple[Rule, ...] = ()

    @property
    def name(self) -> str:
        return "+".join([self.source.name, *(rule.name for rule in self.rules)])

    def with_rules(self, *rules: Rule) -> Space:
        """The same space with these rules too."""
        return replace(self, rules=self.rules + rules)

    def __call__(self, examples: Sequence[Example]) -> list[Grid]:
        """One grid per example. An example that cannot be attacked gets an empty grid that says why."""
        found = [{field: words(example.text[field]) for field in _editable(example)} for example in examples]
        tags = iter(self._tags(examples, found))
        return [
            self._grid(example, fields, [next(tags) for _ in fields])
            for example, fields in zip(examples, found, strict=True)
        ]

    def _tags(self, examples: Sequence[Example], found: Sequence[dict[int, list[Word]]]) -> list[tuple[str, ...]]:
        """Tags of all editable fields of all examples, in one pass; empty when nobody asks for them."""
        pairs = [(e.text[index], fields[index]) for e, fields in zip(examples, found, strict=True) for index in fields]
        if not (self.source.needs_tags or any(rule.needs_tags for rule in self.rules if not isinstance(rule, ShareChanged))):
            return [()] * len(pairs)
        return tag([text for text, _ in pairs], [words for _, words in pairs])

    def _grid(self, example: Example, fields: dict[int, list[Word]], tags: list[tuple[str, ...]]) -> WordGrid:
        slots: list[Slot] = []
        refused: Counter[str] = Counter()
        for (index, found), field_tags in zip(fields.items(), tags, strict=True):
            field = Field(index, example.text[index], found, field_tags)
            positions = self._allowed(field, example, refused)
            offers = dict(zip(positions, self.source(field, positions), strict=True))
            for position, candidates in self._sifted(field, offers, refused).items():
                word = found[position]
                slots.append(Slot(index, position, word.start, word.end, candidates))
        why = "" if slots else _why(example, fields, refused)
        share = min((rule.share for rule in self.rules if isinstance(rule, ShareChanged)), default=1.0)
        return WordGrid(example.text, fields, slots, share, why, self)

    def _allowed(self, field: Field, example: Example, refused: Counter[str]) -> list[int]:
        """Positions that every rule lets change; a refused word counts for the first rule that refuses it."""
        positions = list(range(len(field.words)))
        masks = [(rule.reason, rule(field)) for rule in self._slot_rules]
        if example.protected:
            spans = [(start, end) for index, start, end in example.protected if index == field.index]
            masks.insert(0, ("protected", outside(field.words, spans)))
        for reason, mask in masks:
            kept = [position for position in positions if mask[position]]
            refused[reason] += len(positions) - len(kept)
            positions = kept
        return positions

    def _sifted(self, field: Field, offers: dict[int, tuple[str, ...]], refused: Counter[str]) -> dict[int, tuple[str, ...]]:
        """Candidates by position, as far as every rule lets them through; each rule sees what the one before it left."""
        kept = {position: candidates for position, candidates in offers.items() if candidates}
        refused[self.source.missing] += len(offers) - len(kept)
        for rule in self._candidate_rules:
            if not kept:
                break
            left = zip(kept, rule.sift(field, list(kept), list(kept.values())), strict=True)
            offers, kept = kept, {position: candidates for position, candidates in left if candidates}
            refused[rule.reason] += len(offers) - len(kept)
        return kept

    @property
    def _slot_rules(self) -> list[SlotRule]:
        return [rule for rule in self.rules if not isinstance(rule, (ShareChanged, CandidateRule))]

    @property
    def _candidate_rules(self) -> list[CandidateRule]:
        return [rule for rule in self.rules if isinstance(rule, CandidateRule)]


def _editable(example: Example) -> list[int]:
    """Fields that may change and exist, once each, in reading order."""
    return sorted(field for field in set(example.editable) if 0 <= field < len(example.text))


def _why(example: Example, fields: dict[int, list[Word]], refused: Counter[str]) -> str:
    if not fields:
        return f"no field may change: editable={example.editable}, the text has {len(example.text)}"
    total = sum(map(len, fields.values()))
    if not total:
        return "the text has no words"
    reasons = ", ".join(f"{count} {reason}" for reason, count in refused.items() if count)
    return f"no word of {total} has a candidate: {reasons}"
