"""Rules: which words may change, and how many at once. Each is a value whose name may go into a key.

Rules that choose among a word's candidates are in filters.py."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Protocol

import regex

from .tags import part_of_speech
from .tokens import Word


@dataclass(frozen=True)
class Field:
    """What a rule and a candidate source see of one editable field. `tags` is empty unless somebody needs tags."""

    index: int
    text: str
    words: Sequence[Word]
    tags: Sequence[str]


class SlotRule(Protocol):
    """Says for each word of a field whether it may change. `reason` names the words it refuses, in the plural."""

    @property
    def name(self) -> str: ...
    @property
    def reason(self) -> str: ...
    @property
    def needs_tags(self) -> bool: ...
    def __call__(self, field: Field) -> list[bool]: ...


class CandidateRule(ABC):
    """Keeps some of the candidates. `reason` names the words that are left without one, in the plural."""

    @property
    @abstractmethod
    def name(self) -> str: ...
    @property
    @abstractmethod
    def reason(self) -> str: ...
    @property
    def needs_tags(self) -> bool:
        return False

    @abstractmethod
    def sift(self, field: Field, positions: Sequence[int], offers: Sequence[tuple[str, ...]]) -> list[tuple[str, ...]]:
        """What is left of each word's candidates, in their order. Nothing outside the field may matter."""


@dataclass(frozen=True)
class StopWords:
    """Function words stay, compared without case. "nltk" is NLTK's English list, "textfooler" the 266 words that
    TextFooler and the attacks after it leave alone."""

    which: str = "nltk"
    reason = "stop words"
    needs_tags = False

    def __post_init__(self) -> None:
        if self.which not in STOP_LISTS:
            raise ValueError(f"there is no stop word list {self.which!r}; there are {', '.join(map(repr, STOP_LISTS))}")

    @property
    def name(self) -> str:
        return f"stop({self.which})"

    def __call__(self, field: Field) -> list[bool]:
        stop = stop_words(self.which)
        return [word.text.lower().replace("’", "'") not in stop for word in field.words]


@dataclass(frozen=True)
class MinLength:
    """Words shorter than `n` characters stay."""

    n: int
    needs_tags = False

    @property
    def name(self) -> str:
        return f"min({self.n})"

    @property
    def reason(self) -> str:
        return f"shorter than {self.n} characters"

    def __call__(self, field: Field) -> list[bool]:
        return [len(word.text) >= self.n for word in field.words]


@dataclass(frozen=True)
class Protect:
    """These words (without case), every word touched by a match of the pattern, and these fields stay."""

    words: frozenset[str] = frozenset()
    pattern: str | None = None
    fields: frozenset[int] = frozenset()
    reason = "protected"
    needs_tags = False

    def __post_init__(self) -> None:
        try:
            regex.compile(self.pattern or "")
        except regex.error as error:
            raise ValueError(f"the protected pattern {self.pattern!r} is not a regular expression: {error}") from error

    @property
    def name(self) -> str:
        parts = sorted(word.lower() for word in self.words), self.pattern, sorted(self.fields)
        return f"protect({parts[0]!r},{parts[1]!r},{parts[2]!r})"

    def __call__(self, field: Field) -> list[bool]:
        if field.index in self.fields:
            return [False] * len(field.words)
        kept = {word.lower() for word in self.words}
        allowed = [word.text.lower() not in kept for word in field.words]
        if self.pattern is not None:
            spans = [match.span() for match in regex.finditer(self.pattern, field.text)]
            allowed = [a and b for a, b in zip(allowed, outside(field.words, spans), strict=True)]
        return allowed


@dataclass(frozen=True)
class PartOfSpeech:
    """Only nouns, verbs, adjectives and adverbs may change, as tagged in the sentence; proper names stay."""

    reason = "no noun, verb, adjective or adverb"
    needs_tags = True

    @property
    def name(self) -> str:
        return "pos"

    def __call__(self, field: Field) -> list[bool]:
        return [part_of_speech(tag) != "" for tag in field.tags]


@dataclass(frozen=True)
class ShareChanged:
    """At most this share of a text's words changes at once; one word always may. The grid's `legal` applies it."""

    share: float

    def __post_init__(self) -> None:
        if not 0 <= self.share <= 1:
            raise ValueError(f"the share of words changed lies between 0 and 1, got {self.share}")

    @property
    def name(self) -> str:
        return f"share({float(self.share)!r})"  # every digit: two shares must not have one name


Rule = SlotRule | CandidateRule | ShareChanged


def outside(words: Sequence[Word], spans: Sequence[tuple[int, int]]) -> list[bool]:
    """For each word, whether it overlaps none of the character spans."""
    waiting = sorted((start, end) for start, end in spans if end > start)
    # Words come from left to right: spans that begin before a word ends matter only by how far they reach.
    free, reach, at = [], 0, 0
    for word in words:
        while at < len(waiting) and waiting[at][0] < word.end:
            reach = max(reach, waiting[at][1])
            at += 1
        free.append(reach <= word.start)
    return free


@cache
def stop_words(which: str = "nltk") -> frozenset[str]:
    """The stop words of a list, lower case."""
    return frozenset(STOP_LISTS[which]().read_text(encoding="utf-8").lower().split())


def _nltk() -> Path:
    from ..resources import fetch

    path = Path(fetch("stopwords"))
    return path / "english" if path.is_dir() else path


STOP_LISTS: dict[str, Callable[[], Path]] = {
    "nltk": _nltk,
    "textfooler": lambda: Path(__file__).parent / "data" / "stopwords-textfooler.txt",
}
