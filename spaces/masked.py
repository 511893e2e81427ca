"""Candidates from a masked language model: words that fit the context, near in meaning to the word they replace."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any

import numpy as np

from ..attacks.types import Floats
from .casing import in_case
from .filling import Gap, Scores, digest, load_filler
from .rules import Field, stop_words
from .tokens import Word

REMEMBERED = 4096  # fields
WINDOW = 30  # words, as printed in the thesis
# Chosen where another word of the sense at hand came among the first 10 candidates most often (benchmarks/masked.py): in
# 42.5 % of sentences about words kept apart, against 36.2 % without a blend and 35.2 % for the cosine alone. 24 did as
# well there, and moved further from what fits the context.
BLEND = 16.0
APART = 2  # of the words that may be masked together, every so many-th is
DIGITS = 4  # of a score; what differs later counts as equal, and the vocabulary's order decides


@dataclass(frozen=True)
class Masked:
    """At most `k` words, the likeliest first, other than the word itself.

    The model sees `window` words around the gap; with `pair` it sees the same words intact before them, which keeps the
    word's meaning in view (chapter 5 of the thesis: original [SEP] masked). `blend` adds so many times the cosine of
    the two words' input embeddings to the log probability. With `together`, every second content word of half a window is
    masked in one pass, which sees the window around their middle: in the pair form nothing is hidden by that, and a text
    takes a fourth of the passes. Words of the same stem (movie, movies) are left out unless
    `same_stem` is set, and function words stand in for function words only. `model` is the embedded one, a hub id, a folder, or weights of `python -m
    scrimp.spaces.train_masked`; a hub id is part of the name, so give a folder where its revision matters.
    """

    model: str | None = None
    k: int = 50
    pair: bool = True
    window: int = WINDOW
    same_stem: bool = False
    blend: float = BLEND
    together: bool = False
    missing = "without a word that would fit"
    needs_tags = False

    def __post_init__(self) -> None:
        if self.k < 1:
            raise ValueError(f"a word needs room for at least 1 candidate, got k={self.k}")
        if self.window < 1:
            raise ValueError(f"a window holds at least 1 word, got window={self.window}")
        if self.blend < 0:
            raise ValueError(f"the blend weighs nearness against probability and is 0 or more, got {self.blend}")

    @property
    def name(self) -> str:
        model = "minilm" if self.model is None else self.model
        version = digest(self.model)
        parts = [f"{model}@{version}" if version else model, "pair" if self.pair else "plain"]
        parts += [f"k={self.k}", f"window={self.window}", f"blend={float(self.blend)!r}", *["same-stem"] * self.same_stem]
        parts += ["together"] * self.together
        return f"masked({','.join(parts)})"

    def __call__(self, field: Field, positions: Sequence[int]) -> list[tuple[str, ...]]:
        """Candidates for the words at these positions, none equal to its word."""
        if not positions:
            return []
        return list(_proposed(self, digest(self.model), field.text, tuple(field.words), tuple(positions)))

    def ranked(self, words: Sequence[str], word: str, scores: Floats) -> tuple[str, ...]:
        """The words by score, in the word's case, as far as they may stand in for it."""
        rounded = scores.round(DIGITS)
        most = min(len(words), 2 * self.k + 50)  # enough for what is left out below
        floor = np.partition(rounded, len(words) - most)[len(words) - most]
        chosen = np.flatnonzero(rounded >= floor)
        order = chosen[np.argsort(-rounded[chosen], kind="stable")]
        lower = word.lower()
        found = tuple(self._others(lower, [words[place] for place in order.tolist()]))
        return in_case(word, lower, found)[: self.k]

    def _others(self, lower: str, words: Sequence[str]) -> Iterator[str]:
        own, stop = stem(lower), stop_words()
        for word in words:
            other = word.lower()
            if other != lower and (self.same_stem or stem(other) != own) and (other not in stop or lower in stop):
                yield word


@lru_cache(REMEMBERED)
def _proposed(
    source: Masked, version: str, text: str, words: tuple[Word, ...], positions: tuple[int, ...]
) -> list[tuple[str, ...]]:
    filler = load_filler(source.model)
    known = filler.vocabulary.words
    mates = masked_together(words, source.window) if source.together else None
    gaps = filler.gaps(text, words, positions, source.window, source.pair, mates)
    replaced = {id(gap): words[position].text for position, gap in zip(positions, gaps, strict=True)}

    def rank(some: list[Gap], rows: Scores) -> list[tuple[str, ...]]:
        scores = rows.astype(np.float64)
        if source.blend:
            scores += source.blend * filler.cosines(some)
        return [source.ranked(known, replaced[id(gap)], row) for gap, row in zip(some, scores, strict=True)]

    return filler.each(gaps, source.pair, rank)


def masked_together(words: Sequence[Word], window: int) -> Callable[[int], tuple[int, ...]]:
    """The words that share a pass with a word: of its half window, and function words only with their like.

    It depends on the text alone, so that a word has the same candidates whatever else may change.
    """
    stop = stop_words()
    alike: dict[tuple[int, bool], list[int]] = {}
    for position, word in enumerate(words):
        alike.setdefault((position // max(1, window // 2), word.text.lower() in stop), []).append(position)
    shared = [tuple(some[at::APART]) for some in alike.values() for at in range(APART)]
    return {position: some for some in shared for position in some}.__getitem__


@cache
def stem(word: str) -> str:
    """Porter's stem of a lower-case word, up to its apostrophe."""
    found: str = _stemmer().stem(word.replace("’", "'").split("'")[0])
    return found


@cache
def _stemmer() -> Any:
    from nltk.stem import PorterStemmer

    return PorterStemmer()
