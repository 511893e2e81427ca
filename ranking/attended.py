"""Slots by attention, and by attention times what the representatives of their candidates do (Maheshwary et al. 2021)."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from ..attacks.types import Ask, Bools, Floats, Grid, Ordering, Ranking
from ..spaces.rules import stop_words
from .attention import slot_places
from .lsh import AS_PRINTED, AS_RELEASED, Hashing, gains

SHORT = 2  # letters
FAR = 1000  # words; the released code looks at no later one
MASK = -101.0
WINDOW = 10  # words around a swap that the released code encodes; here 4 on either side, there 5 before and 4 after

Weigh = Callable[[Grid], Floats]
Gain = Callable[[Floats, float], Floats]  # the best scores and that of the clean text to what a slot is worth


def shares(grid: Grid) -> Floats:
    """The attention on each slot; all alike where none is known."""
    if grid.attention is not None:
        return grid.attention
    return np.full(len(grid.sizes), 1 / max(1, grid.n_words))


def small(grid: Grid) -> Bools:
    """Slots whose word is on TextFooler's list of stop words, or has no more than two letters."""
    stop = stop_words("textfooler")
    return np.array([len(word) <= SHORT or word.lower() in stop for word in grid.slot_words], bool)


def masked(grid: Grid) -> Floats:
    """The attention, and none on small words unless all are small."""
    kept = ~small(grid)
    return np.where(kept, shares(grid), 0.0) if kept.any() else shares(grid)


def softened(grid: Grid) -> Floats:
    """As released: a softmax over the attention, in which masked words have -101.

    Masked are, in one text, small words and those after the thousandth, in a pair the premise. Words that are no slot only
    scale the softmax. So attention acts as little more than a mask: shares of 0.2 and 0 become 1.22 to 1.
    """
    places = slot_places(grid)
    if len(grid.decode(np.zeros((1, len(grid.sizes)), np.int16))[0]) > 1:
        hidden = np.array([place.field == 0 for place in places], bool)
    else:
        hidden = small(grid) | np.array([place.position >= FAR for place in places], bool)
    level = np.where(hidden, MASK, shares(grid))
    odds = np.exp(level - level.max(initial=MASK))
    return np.asarray(odds / odds.sum(), np.float64)


def difference(best: Floats, clean: float) -> Floats:
    """As printed: how much the true class loses at most."""
    return best - clean


def reached(best: Floats, clean: float) -> Floats:
    """As released: the best score itself, and 0 where nothing was answered."""
    return np.where(np.isfinite(best), best, 0.0)


def weighted(weights: Floats, gain: Floats) -> Floats:
    """The product; -inf where no gain is known."""
    known = np.isfinite(gain)
    return np.where(known, weights * np.where(known, gain, 0.0), -np.inf)


def _by_attention(grid: Grid, rng: np.random.Generator) -> Ordering:
    nothing: Iterator[Ask] = iter(())
    yield from nothing  # a generator that asks nothing
    return np.argsort(-shares(grid), kind="stable")


by_attention = Ranking("attention", "label", "the words that an attention model looks at most; asks nothing", _by_attention)


def by_attention_and_buckets(
    hashing: Hashing, weigh: Weigh = shares, gain: Gain = difference, window: int | None = None
) -> Ranking:
    """The slots by attention times what their representatives reach. A success seen here is left to the engine."""

    def run(grid: Grid, rng: np.random.Generator) -> Ordering:
        clean = yield Ask(np.zeros((1, len(grid.sizes)), np.int16))  # known already: costs nothing
        best = yield from gains(grid, hashing, rng, window)
        return np.argsort(-weighted(weigh(grid), gain(best, clean.score[0])), kind="stable")

    about = "attention times what one candidate of each bucket does; one query per bucket"
    return Ranking(f"attention-{hashing.name}", "scores", about, run)


as_printed = by_attention_and_buckets(AS_PRINTED)
as_released = by_attention_and_buckets(AS_RELEASED, softened, reached, WINDOW)
