"""Probability weighted word saliency (Ren et al. 2019): saliency of the word times the gain of its best substitute."""

from __future__ import annotations

from collections.abc import Generator

import numpy as np
from numpy.typing import NDArray

from ..attacks.types import UNKNOWN, Ask, Codes, Floats, Grid, Ordering, Ranking, Reply
from .probes import probes

Weighed = tuple[NDArray[np.int64], NDArray[np.int16], bool]  # order of slots, best choice per slot, fooled already


def single_swaps(grid: Grid, order: NDArray[np.int64]) -> Codes:
    """Every text with one word replaced, slot by slot in the given order."""
    slots = np.repeat(order, grid.sizes[order])
    codes = np.zeros((len(slots), len(grid.sizes)), np.int16)
    first = np.concatenate([[0], np.cumsum(grid.sizes[order])[:-1]])
    codes[np.arange(len(slots)), slots] = np.arange(len(slots)) - np.repeat(first, grid.sizes[order]) + 1
    return codes


def weigh(grid: Grid, stop: bool) -> Generator[Ask, Reply, Weighed]:
    """Saliencies, then all single swaps, the most salient slots first. With `stop`, a swap that fools ends it."""
    n = len(grid.sizes)
    clean = yield Ask(np.zeros((1, n), np.int16))  # known already: costs nothing
    base = clean.score[0]
    unknown = yield Ask(probes(grid, UNKNOWN))
    saliency: Floats = unknown.score - base
    codes = single_swaps(grid, np.argsort(-saliency, kind="stable"))
    answers = yield Ask(codes, until_fooled=stop)
    gain, choice = np.full(n, -np.inf), np.zeros(n, np.int16)
    slots = codes.argmax(1)
    for row in np.argsort(answers.score, kind="stable"):  # the best of a slot comes last and stays
        if answers.answered[row]:
            gain[slots[row]], choice[slots[row]] = answers.score[row] - base, codes[row, slots[row]]
    weight = np.exp(saliency - saliency.max())
    product = np.where(np.isfinite(gain), weight / weight.sum() * np.where(np.isfinite(gain), gain, 0), -np.inf)
    return np.argsort(-product, kind="stable"), choice, bool(stop and answers.fooled.any())


def _run(grid: Grid, rng: np.random.Generator) -> Ordering:
    order, _, _ = yield from weigh(grid, stop=False)
    return order


by_saliency = Ranking("saliency", "scores", "PWWS's weighted saliency; one query per slot and one per candidate", _run)
