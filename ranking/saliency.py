"""Probability weighted word saliency (Ren et al. 2019): saliency of the word times the gain of its best substitute."""

from __future__ import annotations

from collections.abc import Generator

import numpy as np
from numpy.typing import NDArray

from ..attacks.types import UNKNOWN, Ask, Codes, Floats, Grid, Ordering, Ranking, Reply
from .probes import probes


def single_swaps(grid: Grid, slots: NDArray[np.int64]) -> Codes:
    """Every text with one word replaced, slot by slot in the given order."""
    sizes = grid.sizes[slots]
    rows = np.arange(sizes.sum())
    codes = np.zeros((len(rows), len(grid.sizes)), np.int16)
    codes[rows, np.repeat(slots, sizes)] = rows - np.repeat(np.cumsum(sizes) - sizes, sizes) + 1
    return codes


def saliencies(grid: Grid) -> Generator[Ask, Reply, tuple[float, Floats]]:
    """The score of the clean text, and how much each slot adds to it when its word is unknown."""
    clean = yield Ask(np.zeros((1, len(grid.sizes)), np.int16))  # known already: costs nothing
    unknown = yield Ask(probes(grid, UNKNOWN))
    return clean.score[0], unknown.score - clean.score[0]


def weights(saliency: Floats, gain: Floats) -> Floats:
    """Softmax of the saliencies times the gain; -inf where no gain is known."""
    share = np.exp(saliency - saliency.max())
    known = np.isfinite(gain)
    return np.where(known, share / share.sum() * np.where(known, gain, 0), -np.inf)


def weigh(grid: Grid) -> Generator[Ask, Reply, tuple[NDArray[np.int64], Codes]]:
    """The order of the slots by weight, and the best substitute of each, after asking about every candidate."""
    base, saliency = yield from saliencies(grid)
    codes = single_swaps(grid, np.arange(len(grid.sizes)))
    answers = yield Ask(codes)
    slots = codes.argmax(1)
    gain, choice = np.full(len(grid.sizes), -np.inf), np.zeros(len(grid.sizes), np.int16)
    for row in np.argsort(answers.score, kind="stable"):  # the best of a slot comes last and stays
        if answers.answered[row]:
            gain[slots[row]], choice[slots[row]] = answers.score[row] - base, codes[row, slots[row]]
    return np.argsort(-weights(saliency, gain), kind="stable"), choice


def _run(grid: Grid, rng: np.random.Generator) -> Ordering:
    order, _ = yield from weigh(grid)
    return order


by_saliency = Ranking("saliency", "scores", "PWWS's weighted saliency; one query per slot and one per candidate", _run)
