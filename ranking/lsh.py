"""Locality-sensitive hashing: candidates alike share a bucket, and one of each bucket speaks for the others.

Maheshwary et al. hash the sentence vectors of all substitutions of a word by random projections (Charikar 2002), in
several rounds, and pay for one random member of each bucket of one round.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ..attacks.types import Ask, Codes, Floats, Grid, Ordering, Ranking, Reply
from .saliency import single_swaps

Ints = NDArray[np.int64]
Choose = Callable[[Ints], Ints]  # int64[rounds, slots], the buckets of every round, to the round that each slot goes by
MOST_BITS = 62  # a bucket's number is an int64


def fewest(counts: Ints) -> Ints:
    """The round with the fewest buckets, as printed: it costs least, about one query a word at high similarity."""
    return np.asarray(counts.argmin(0))


def most(counts: Ints) -> Ints:
    """The round with the most buckets, as released: it costs two to four times as much and sees more."""
    return np.asarray(counts.argmax(0))


class Hashing(Protocol):
    """How rows are hashed. The answer is int64[rounds, n]: equal numbers in a round mean the same bucket."""

    @property
    def name(self) -> str: ...
    @property
    def choose(self) -> Choose: ...
    @property
    def encodes(self) -> bool: ...  # whether it reads sentence vectors
    def hashes(self, grid: Grid, codes: Codes, vectors: NDArray[np.float32], rng: np.random.Generator) -> Ints: ...


@dataclass(frozen=True)
class Projections:
    """Signs of random projections: `rounds` times `bits` of them, drawn once and shared by all slots.

    The released code draws anew for every word; a slot alone cannot tell the difference.
    """

    rounds: int = 15
    bits: int = 5
    choose: Choose = fewest
    encodes = True

    def __post_init__(self) -> None:
        if self.rounds < 1 or not 1 <= self.bits <= MOST_BITS:
            raise ValueError(
                f"hashing takes at least 1 round of 1 to {MOST_BITS} bits, got rounds={self.rounds} and bits={self.bits}"
            )

    @property
    def name(self) -> str:
        return f"lsh({self.rounds},{self.bits},{self.choose.__name__})"

    def hashes(self, grid: Grid, codes: Codes, vectors: NDArray[np.float32], rng: np.random.Generator) -> Ints:
        if len(codes) and not vectors.shape[1]:
            raise ValueError(f"{self.name} reads sentence vectors; give the engine a guide encoder, or hash by MinHashes")
        return self.sketch(vectors, rng)

    def sketch(self, vectors: NDArray[np.floating[Any]], rng: np.random.Generator) -> Ints:
        """The buckets of all vectors in all rounds, from one matrix product."""
        planes = rng.standard_normal((vectors.shape[1], self.rounds * self.bits))
        above = (vectors.astype(np.float64) @ planes >= 0).reshape(len(vectors), self.rounds, self.bits)
        numbers: Ints = above.astype(np.int64) @ (np.int64(1) << np.arange(self.bits))
        return numbers.T


@dataclass(frozen=True)
class MinHashes:
    """No encoder: words that share most of their `letters`-grams share a bucket, as far as `rows` minima agree.

    With the edges of a word marked, film and films share three of six trigrams, film and movie none.
    """

    rounds: int = 15
    rows: int = 1
    choose: Choose = fewest
    letters: int = 3
    encodes = False

    def __post_init__(self) -> None:
        if min(self.rounds, self.rows, self.letters) < 1:
            raise ValueError(
                f"hashing takes at least 1 round, row and letter, got rounds={self.rounds}, rows={self.rows} and "
                f"letters={self.letters}"
            )

    @property
    def name(self) -> str:
        return f"minhash({self.rounds},{self.rows},{self.choose.__name__},{self.letters})"

    def hashes(self, grid: Grid, codes: Codes, vectors: NDArray[np.float32], rng: np.random.Generator) -> Ints:
        return self.sketch([" ".join(change.after for change in grid.changes(code)) for code in codes], rng)

    def sketch(self, words: Sequence[str], rng: np.random.Generator) -> Ints:
        """The buckets of all words in all rounds. Case does not matter."""
        try:
            from datasketch import MinHash  # type: ignore[import-not-found,import-untyped,unused-ignore]
        except ModuleNotFoundError as fault:
            raise ModuleNotFoundError(f"{self.name} needs datasketch: pip install 'scrimp[datasketch]'") from fault
        seed = int(rng.integers(2**32))
        grams = [[gram.encode("utf-8", "surrogatepass") for gram in self.grams(word)] for word in words]
        minima = MinHash.bulk(grams, num_perm=self.rounds * self.rows, seed=seed, scheme="affine32")
        table = np.array([one.hashvalues for one in minima], np.int64).reshape(len(words), self.rounds, self.rows)
        numbers = [np.unique(table[:, i], axis=0, return_inverse=True)[1].reshape(-1) for i in range(self.rounds)]
        return np.array(numbers, np.int64).reshape(self.rounds, len(words))

    def grams(self, word: str) -> list[str]:
        """The word's runs of letters, its edges marked; the whole word when it is shorter than one run."""
        marked = f"\x02{word.lower()}\x03"
        return [marked[i : i + self.letters] for i in range(max(1, len(marked) - self.letters + 1))]


AS_PRINTED = Projections(15, 5, fewest)
AS_RELEASED = Projections(5, 3, most)


def buckets(hashes: Ints, slots: Ints, choose: Choose) -> Ints:
    """The bucket of each row, in the round chosen for its slot. Slots share none; numbers run from 0 in order of slots."""
    chosen = choose(np.stack([_sizes(one, slots) for one in hashes]))
    return _numbered(hashes[chosen[slots], np.arange(len(slots))], slots)


def representatives(buckets: Ints, rng: np.random.Generator) -> Ints:
    """One row of each bucket, any with the same chance, in order of buckets."""
    order = np.lexsort((rng.random(len(buckets)), buckets))
    return order[_first(buckets[order])]


def speakers(
    grid: Grid, slots: Ints, hashing: Hashing, rng: np.random.Generator, window: int | None = None
) -> Generator[Ask, Reply, Codes]:
    """One swap of each bucket of these slots' candidates, in reading order; `window` words around it are encoded, or all.

    Costs no query."""
    codes = single_swaps(grid, slots)
    reads = hashing.encodes
    looked = yield Ask(codes, pay=False, encode=reads, window=window if reads else None, vectors=reads)
    allowed = np.flatnonzero(looked.allowed)
    if not len(allowed):
        return codes[:0]
    hashes = hashing.hashes(grid, codes[allowed], looked.vectors[allowed], rng)
    return codes[allowed[representatives(buckets(hashes, codes[allowed].argmax(1), hashing.choose), rng)]]


def gains(
    grid: Grid, hashing: Hashing, rng: np.random.Generator, window: int | None = None
) -> Generator[Ask, Reply, Floats]:
    """The best score that a slot's representatives reach; -inf where nothing was answered. One query per bucket."""
    chosen = yield from speakers(grid, np.arange(len(grid.sizes)), hashing, rng, window)
    best = np.full(len(grid.sizes), -np.inf)
    if len(chosen):
        answers = yield Ask(chosen)
        np.maximum.at(best, chosen.argmax(1), answers.score)
    return best


def by_buckets(hashing: Hashing) -> Ranking:
    """The slots by what their representatives reach."""

    def run(grid: Grid, rng: np.random.Generator) -> Ordering:
        best = yield from gains(grid, hashing, rng)
        return np.argsort(-best, kind="stable")

    return Ranking(hashing.name, "scores", "the words whose candidates hurt most; one query per bucket of candidates", run)


def _first(*keys: Ints) -> NDArray[np.bool_]:
    """Where sorted keys take a new value."""
    first = np.ones(len(keys[0]), bool)
    first[1:] = np.logical_or.reduce([key[1:] != key[:-1] for key in keys])
    return first


def _sizes(hashes: Ints, slots: Ints) -> Ints:
    """Buckets per slot."""
    order = np.lexsort((hashes, slots))
    first = _first(slots[order], hashes[order])
    return np.bincount(slots[order][first], minlength=int(slots.max(initial=-1)) + 1)


def _numbered(hashes: Ints, slots: Ints) -> Ints:
    order = np.lexsort((hashes, slots))
    numbers = np.empty(len(order), np.int64)
    numbers[order] = np.cumsum(_first(slots[order], hashes[order])) - 1
    return numbers
