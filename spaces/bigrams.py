"""A rule by an embedded word-bigram model: of a word's candidates, the most probable ones after the word before it."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path

import numpy as np
import regex
from numpy.typing import NDArray

from ..attacks.types import Floats
from .rules import CandidateRule, Field
from .tokens import Word, words
from .vectors import pack_words, save_arrays, unpack_words

EMBEDDED = Path(__file__).parent / "data" / "bigrams.npz"
START = ""  # what stands before the first word of a sentence
END = regex.compile(r"[.!?…;:\n]|<br")  # between two words: the second one begins anew
DISCOUNT = 0.75  # taken off every count for pairs that were not seen (Ney et al. 1994)
STEPS = 8  # stored counts are powers of two in so many steps


@dataclass(frozen=True, eq=False)
class Pairs:
    """Counts of word pairs, and by them the probability of a word after another (interpolated Kneser-Ney).

    Words are numbered from 0, START is number 0. What is not in `words` has the next number: one of `others` words, which
    share what is known of them.
    """

    words: tuple[str, ...]
    totals: NDArray[np.int64]  # pairs that each word begins; the last entry is for unknown words
    before: NDArray[np.int64]  # different words that each word follows, likewise
    keys: NDArray[np.int64]  # first * (len(words) + 1) + second, ascending; rare pairs are left out
    counts: Floats  # of each key
    others: int

    @cached_property
    def places(self) -> dict[str, int]:
        return {word: place for place, word in enumerate(self.words)}

    @cached_property
    def alone(self) -> Floats:
        """How likely a word is whatever stands before it."""
        share = self.before / self.before.sum()
        share[-1] /= self.others
        return np.asarray(share, np.float64)

    @cached_property
    def spared(self) -> Floats:
        """Per first word, what its pairs leave to all others."""
        first = self.keys // (len(self.words) + 1)
        taken = np.bincount(first, self.counts - DISCOUNT, len(self.totals))
        return np.asarray(1 - np.divide(taken, self.totals, out=np.zeros(len(taken)), where=self.totals > 0), np.float64)

    def ids(self, some: Sequence[str]) -> NDArray[np.int64]:
        unknown = len(self.words)
        return np.array([self.places.get(word, unknown) for word in some], np.int64)

    def chances(self, first: NDArray[np.int64], second: NDArray[np.int64]) -> Floats:
        """Logarithms of the probability of each second word after the first. A row depends on nothing but itself."""
        wanted = first * (len(self.words) + 1) + second
        at = np.minimum(np.searchsorted(self.keys, wanted), len(self.keys) - 1)
        seen = np.where(self.keys[at] == wanted, self.counts[at] - DISCOUNT, 0.0) / np.maximum(self.totals[first], 1)
        return np.asarray(np.log(seen + self.spared[first] * self.alone[second]), np.float64)


def befores(text: str, found: Sequence[Word]) -> list[str]:
    """For each word of a text the one before it, in lower case; START at the beginning of a sentence."""
    earlier = [(START, 0), *((word.text.lower(), word.end) for word in found)]
    return [
        START if END.search(text, end, word.start) else before
        for (before, end), word in zip(earlier, found, strict=False)  # nothing stands after the last word
    ]


@dataclass(frozen=True)
class Bigrams(CandidateRule):
    """The `keep` most probable candidates stay, in their order; of equals the earlier one.

    The word before is the original's: candidates of two neighbours that change at once are not compared. Counted by
    count_bigrams.py; fluency.py has the rule for a language model by path, which may read more words.
    """

    keep: int = 4
    reason = "without a probable candidate"

    def __post_init__(self) -> None:
        if self.keep < 1:
            raise ValueError(f"at least 1 candidate stays, got keep={self.keep}")

    @property
    def name(self) -> str:
        return f"bigrams({self.keep},{_digest()})"

    def sift(self, field: Field, positions: Sequence[int], offers: Sequence[tuple[str, ...]]) -> list[tuple[str, ...]]:
        """All candidates of the field are looked up at once."""
        before = befores(field.text, field.words)
        chains = [
            (at, [before[position], *(word.text.lower() for word in words(candidate))])
            for at, (position, candidates) in enumerate(zip(positions, offers, strict=True))
            for candidate in candidates
        ]
        chances = iter(_chain_chances(load_pairs(), [chain for _, chain in chains]))
        kept = []
        for candidates in offers:
            likely = np.array([next(chances) for _ in candidates])
            best = sorted(np.argsort(-likely, kind="stable")[: self.keep].tolist())
            kept.append(tuple(candidates[i] for i in best))
        return kept


def _chain_chances(pairs: Pairs, chains: Sequence[Sequence[str]]) -> list[float]:
    """Per chain the sum over its steps: a candidate may have more than one word."""
    lengths = [len(chain) - 1 for chain in chains]
    first = pairs.ids([word for chain in chains for word in chain[:-1]])
    second = pairs.ids([word for chain in chains for word in chain[1:]])
    steps = iter(pairs.chances(first, second).tolist() if sum(lengths) else ())
    return [sum(next(steps) for _ in range(length)) for length in lengths]


def save_pairs(file: Path, pairs: Pairs) -> None:
    """Write the counts. Keys are kept as gaps, in bytes of their own, and counts as steps of their logarithm."""
    size = len(pairs.words) + 1
    first, second = np.divmod(pairs.keys, size)
    per = np.bincount(first, minlength=size)
    starts = np.cumsum(per) - per
    gaps = np.diff(second, prepend=0)
    gaps[starts[per > 0]] = second[starts[per > 0]]
    save_arrays(
        file,
        compress=True,
        words=pack_words(pairs.words),
        totals=pairs.totals.astype(np.uint32),
        before=pairs.before.astype(np.uint32),
        per=per.astype(np.uint16),
        low=(gaps & 255).astype(np.uint8),
        high=(gaps >> 8).astype(np.uint8),
        steps=np.floor(STEPS * np.log2(pairs.counts)).astype(np.uint8),
        others=np.array([pairs.others], np.uint32),
    )


def read_pairs(file: Path) -> Pairs:
    """The counts of a file that `save_pairs` wrote."""
    with np.load(file, allow_pickle=False) as arrays:
        listed, per = unpack_words(arrays["words"]), arrays["per"].astype(np.int64)
        gaps = arrays["low"].astype(np.int64) | (arrays["high"].astype(np.int64) << 8)
        totals, before = arrays["totals"].astype(np.int64), arrays["before"].astype(np.int64)
        counts, others = 2 ** (arrays["steps"] / STEPS), int(arrays["others"][0])
    sums = np.cumsum(gaps)
    first = np.repeat(np.arange(len(per)), per)
    starts = (np.cumsum(per) - per)[first]
    second = sums - np.where(starts > 0, sums[starts - 1], 0)
    return Pairs(listed, totals, before, first * (len(listed) + 1) + second, counts, others)


@cache
def load_pairs() -> Pairs:
    return read_pairs(EMBEDDED)


@cache
def _digest() -> str:
    """Eight digits that stand for the counts: others give other results."""
    return hashlib.sha256(EMBEDDED.read_bytes()).hexdigest()[:8]
