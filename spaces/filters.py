"""Rules that choose among a word's candidates: the same part of speech, close in meaning, nothing said twice."""

from __future__ import annotations

import dataclasses
import hashlib
import os
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .rules import CandidateRule, Field
from .tags import tag
from .tokens import words
from .vectors import load_vectors

Offers = Sequence[tuple[str, ...]]

# The twelve universal classes of Petrov et al. 2012; what is missing here (foreign words, symbols) is a class of its own.
UNIVERSAL = {
    "noun": "NN NNS NNP NNPS",
    "verb": "VB VBD VBG VBN VBP VBZ MD",
    "adjective": "JJ JJR JJS",
    "adverb": "RB RBR RBS WRB",
    "pronoun": "PRP PRP$ WP WP$",
    "determiner": "DT PDT WDT EX",
    "adposition": "IN",
    "number": "CD",
    "conjunction": "CC",
    "particle": "RP TO POS",
}
CLASS = {penn: name for name, tags in UNIVERSAL.items() for penn in tags.split()}


@dataclass(frozen=True)
class SameClass(CandidateRule):
    """A candidate is tagged as the same part of speech as the word was, in its place, `reach` words on either side.

    TextFooler takes nouns and verbs for each other (`noun_is_verb`) and looks at the same nine words; it tags the
    original in the whole text. Here both are tagged in the same window, so that nothing but the word differs.
    """

    reach: int = 4
    noun_is_verb: bool = True
    reason = "without a candidate of their part of speech"

    def __post_init__(self) -> None:
        if self.reach < 0:
            raise ValueError(f"a window reaches over 0 or more words on either side, got reach={self.reach}")

    @property
    def name(self) -> str:
        return f"class({self.reach}{',noun=verb' * self.noun_is_verb})"

    def sift(self, field: Field, positions: Sequence[int], offers: Offers) -> list[tuple[str, ...]]:
        """All windows of the field are tagged in one pass."""
        texts, starts = [], []
        for position, candidates in zip(positions, offers, strict=True):
            left, word, right = self._window(field, position)
            texts += [left + choice + right for choice in (word, *candidates)]
            starts += [len(left)] * (1 + len(candidates))
        classes = iter(self._classes(texts, starts))
        kept = []
        for candidates in offers:
            wanted = next(classes)
            kept.append(tuple(candidate for candidate in candidates if next(classes) == wanted))
        return kept

    def _window(self, field: Field, position: int) -> tuple[str, str, str]:
        first, last = position - self.reach, position + self.reach
        start = field.words[first].start if first > 0 else 0
        end = field.words[last].end if last < len(field.words) - 1 else len(field.text)
        word = field.words[position]
        return field.text[start : word.start], word.text, field.text[word.end : end]

    def _classes(self, texts: Sequence[str], starts: Sequence[int]) -> list[str]:
        """The class of the word that begins, or goes on, at a place of each text; empty when there is none."""
        found = [words(text) for text in texts]
        classes = []
        for tags, in_text, start in zip(tag(texts, found), found, starts, strict=True):
            at = bisect_right(in_text, start, key=lambda word: word.start) - 1
            penn = tags[at] if at >= 0 and in_text[at].end > start else ""
            name = CLASS.get(penn, penn)
            classes.append("verb" if self.noun_is_verb and name == "noun" else name)
        return classes


@dataclass(frozen=True)
class NoRepeats(CandidateRule):
    """No candidate has a word that stands within `reach` words of its place already ("very very", "the film film").

    That no slot is changed twice needs no rule: a code gives each slot one choice, made from the original word. Two
    neighbours that change at once are not compared with each other.
    """

    reach: int = 1
    reason = "with repeating candidates only"

    def __post_init__(self) -> None:
        if self.reach < 1:
            raise ValueError(f"a repeat is looked for among at least 1 word on either side, got reach={self.reach}")

    @property
    def name(self) -> str:
        return f"repeat({self.reach})"

    def sift(self, field: Field, positions: Sequence[int], offers: Offers) -> list[tuple[str, ...]]:
        kept = []
        for position, candidates in zip(positions, offers, strict=True):
            before = field.words[max(0, position - self.reach) : position]
            after = field.words[position + 1 : position + 1 + self.reach]
            near = {word.text.lower() for word in (*before, *after)}
            kept.append(tuple(one for one in candidates if near.isdisjoint(word.text for word in words(one.lower()))))
        return kept


@dataclass(frozen=True)
class Near(CandidateRule):
    """A candidate's vector has at least this cosine to its word's. Words are looked up as written, then in lower case.

    `known` refuses what has no vector; otherwise it passes, as in the published attacks. The name stands for the
    vectors' content. A bound on the squared distance of unit vectors is floor_from("squared_distance", bound).
    """

    vectors: Mapping[str, ArrayLike] = dataclasses.field(repr=False, compare=False)
    cosine: float
    known: bool = False
    digest: str = dataclasses.field(init=False)
    _rows: NDArray[np.float64] = dataclasses.field(init=False, repr=False, compare=False)
    _place: dict[str, int] = dataclasses.field(init=False, repr=False, compare=False)
    reason = "without a candidate near enough"

    def __post_init__(self) -> None:
        if not -1 <= self.cosine <= 1:
            raise ValueError(f"a cosine lies between -1 and 1, got {self.cosine}; floor_from() converts other scales")
        rows = _units(self.vectors)
        content = hashlib.sha256("\n".join(self.vectors).encode("utf-8", "surrogatepass"))
        content.update(rows.astype(np.float32).tobytes())
        object.__setattr__(self, "digest", content.hexdigest()[:8])
        object.__setattr__(self, "_rows", rows)
        object.__setattr__(self, "_place", {word: place for place, word in enumerate(self.vectors)})

    @classmethod
    def read(cls, path: str | os.PathLike[str], cosine: float, known: bool = False) -> Near:
        """With the vectors of a text file, a word and its numbers a line."""
        found = load_vectors(path)
        return cls(dict(zip(found.words, found.rows, strict=True)), cosine, known)

    @property
    def name(self) -> str:
        return f"near({float(self.cosine)!r}{',known' * self.known},{self.digest})"

    def sift(self, field: Field, positions: Sequence[int], offers: Offers) -> list[tuple[str, ...]]:
        own = [self._at(field.words[position].text) for position in positions]
        pairs = np.array([(a, self._at(b)) for a, some in zip(own, offers, strict=True) for b in some]).reshape(-1, 2)
        passes = np.full(len(pairs), not self.known)
        both = (pairs >= 0).all(1)
        left, right = self._rows[pairs[both, 0]], self._rows[pairs[both, 1]]
        passes[both] = (left * right).sum(1) >= self.cosine - 1e-6  # unit vectors of file precision: equal words pass at 1
        verdict = iter(passes.tolist())
        return [tuple(candidate for candidate in candidates if next(verdict)) for candidates in offers]

    def _at(self, word: str) -> int:
        return self._place.get(word, self._place.get(word.lower(), -1))


def _units(vectors: Mapping[str, ArrayLike]) -> NDArray[np.float64]:
    if not vectors:
        raise ValueError("no vector was given; map words to vectors, or read a file of them with Near.read(path, cosine)")
    rows: list[NDArray[np.float64]] = []
    for word, vector in vectors.items():
        row = np.asarray(vector, np.float64)
        length = np.linalg.norm(row)
        if row.ndim != 1 or not 0 < length < np.inf:
            raise ValueError(f"the vector of {word!r} has no direction: one row of finite numbers, not all 0, is needed")
        if rows and len(row) != len(rows[0]):
            raise ValueError(f"the vector of {word!r} has {len(row)} numbers, the others have {len(rows[0])}; use one space")
        rows.append(row / length)
    return np.stack(rows)
