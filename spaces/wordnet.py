"""Synonyms from WordNet: the lemmas that share a synset with the word."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from .casing import in_case
from .inflect import INFLECTED, guess, inflect
from .rules import Field
from .tags import part_of_speech
from .tokens import is_word


@dataclass(frozen=True)
class WordNet:
    """Candidates in order of sense, then of lemma.

    `pos`: only senses of the part of speech that the word is tagged with (PWWS as printed); otherwise of any (as its
    ports do, without a tagger). `inflect`: the candidate takes the word's form. `phrases`: lemmas of several words too.
    """

    pos: bool = True
    inflect: bool = True
    phrases: bool = False
    missing = "unknown to wordnet"

    @property
    def name(self) -> str:
        options = ["pos" if self.pos else "any", *["inflect"] * self.inflect, *["phrases"] * self.phrases]
        return f"wordnet({','.join(options)})"

    @property
    def needs_tags(self) -> bool:
        return self.pos

    def __call__(self, field: Field, positions: Sequence[int]) -> list[tuple[str, ...]]:
        """Candidates for the words at these positions, none equal to its word."""
        known = _memo(self)
        answers = []
        for position in positions:
            word = field.words[position].text
            lower = word.lower()
            key = (lower, field.tags[position] if self.pos else "")
            found = known.get(key)
            if found is None:
                found = known[key] = tuple(dict.fromkeys(self._find(*key)))
            answers.append(in_case(word, lower, found))
        return answers

    def _find(self, word: str, tag: str) -> Iterator[str]:
        for lemma, synsets, form in self._senses(word, tag):
            if form is None:
                continue
            for names in synsets:
                for name in names:
                    other = name.replace("_", " ")
                    if other.lower() in lemma or not self._fits(other):
                        continue
                    shaped = inflect(other, form) if self.inflect else other
                    if shaped is not None and shaped.lower() != word:
                        yield shaped

    def _senses(self, word: str, tag: str) -> Iterator[tuple[set[str], list[tuple[str, ...]], str | None]]:
        """The word's own lemmas, which are no candidates; its synsets' lemmas; the form that candidates take."""
        if self.pos:
            if found := lemma_of(word, tag):
                lemma, form = found
                yield {lemma, word}, _synsets(lemma, part_of_speech(tag)), form
            return
        own = {form for pos in "nvar" for form in _forms(word, pos)} | {word}
        for pos in "nvar":
            for lemma in _forms(word, pos):
                yield own, _synsets(lemma, pos), guess(word, lemma, pos)

    def _fits(self, name: str) -> bool:
        if " " in name:
            return self.phrases and all(map(is_word, name.split()))
        return is_word(name)


def lemma_of(word: str, tag: str) -> tuple[str, str | None] | None:
    """The lemma of a tagged word and the form for its substitutes to take, None when they cannot; None when unknown."""
    pos = part_of_speech(tag)
    forms = _forms(word, pos)
    if not forms:
        return None
    # "found" is tagged VBD: it comes from find, although there is also a verb to found. "glasses" is a lemma.
    bent = tag in INFLECTED and pos != "n"
    lemma = next((form for form in forms if form != word), forms[0]) if bent else forms[0]
    if tag in ("NNS", "JJR", "JJS") and lemma == word:
        return lemma, ""  # spectacles for glasses, and upper for lower, are in form already
    if tag in ("RBR", "RBS") and lemma != word:
        return lemma, None  # well, for better: an adverb has no form to keep
    return lemma, tag


@cache
def _memo(source: WordNet) -> dict[tuple[str, str], tuple[str, ...]]:
    """What is known per lower-case word and tag. A language's vocabulary bounds it."""
    return {}


def _forms(word: str, pos: str) -> list[str]:
    found: list[str] = _net()._morphy(word, pos) if pos else []
    return found


def _synsets(lemma: str, pos: str) -> list[tuple[str, ...]]:
    """The lemmas of each sense of a lemma, the most frequent sense first."""
    # With check_exceptions NLTK's reader would add the synsets of other lemmas that look like forms of this one.
    return [_names(pos, offset) for offset in _net()._lemma_pos_offset_map[lemma].get(pos, ())]


@cache
def _names(pos: str, offset: int) -> tuple[str, ...]:
    """The lemmas on a line of WordNet's data; NLTK would parse the whole line, and take most of a grid's time."""
    data = _data(pos)
    _, _, _, count, *fields = data[offset : data.index(b" | ", offset)].decode("utf-8").split(" ")
    return tuple(name.partition("(")[0] for name in fields[: 2 * int(count, 16) : 2])  # galore(ip): where it may stand


@cache
def _data(pos: str) -> bytes:
    from ..resources import fetch

    name = {"n": "noun", "v": "verb", "a": "adj", "r": "adv"}[pos]
    return (fetch("wordnet") / f"data.{name}").read_bytes()


@cache
def _net() -> Any:
    import nltk
    from nltk.corpus.reader import WordNetCorpusReader

    from ..resources import fetch

    class Net(WordNetCorpusReader):  # type: ignore[misc]  # NLTK has no types
        def map_wn(self, version: str = "wordnet") -> None:
            """No map to other languages: making it needs a second WordNet among NLTK's own downloads."""

    root = str(fetch("wordnet"))
    if root not in nltk.data.path:
        nltk.data.path.append(root)  # since 3.10 NLTK opens nothing outside the directories listed here
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it warns that other languages are missing
        return Net(root, None)
