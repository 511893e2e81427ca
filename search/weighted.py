"""PWWS's substitution: the best candidate of each word is fixed first, then put in by falling weight until fooled."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..attacks.types import Ask, Asking, Codes, Grid, Search
from ..ranking.saliency import saliencies, single_swaps, weigh, weights


def _steps(order: NDArray[np.int64], choice: Codes) -> Codes:
    """The first substitute, the first two, the first three, ... in the given order."""
    codes = np.zeros((len(order), len(choice)), np.int16)
    codes[:, order] = np.where(np.tri(len(order), dtype=bool), choice[order], 0)
    moved = (np.diff(codes, axis=0, prepend=np.int16(0)) != 0).any(1)  # a slot may have no choice
    return np.asarray(codes[moved], np.int16)


def _whole(grid: Grid, rng: np.random.Generator) -> Asking:
    order, choice = yield from weigh(grid)
    yield Ask(_steps(order, choice), until_fooled=True)


def _early(grid: Grid, rng: np.random.Generator) -> Asking:
    base, saliency = yield from saliencies(grid)
    gain, choice = np.full(len(grid.sizes), -np.inf), np.zeros(len(grid.sizes), np.int16)
    for slot in np.argsort(-saliency, kind="stable"):
        codes = single_swaps(grid, slot[None])
        answers = yield Ask(codes, until_fooled=True)
        if answers.fooled.any():
            return  # one changed word, which no later text can beat
        top = answers.score.argmax()
        gain[slot], choice[slot] = answers.score[top] - base, codes[top, slot]
        if gain[slot] > 0:
            together = yield Ask(np.where(gain > 0, choice, 0).astype(np.int16)[None])
            if together.fooled[0]:
                break
    else:
        gain = np.where(np.isfinite(gain), np.maximum(gain, 1e-9), gain)  # then every word, as in the paper
    order = np.argsort(-weights(saliency, gain), kind="stable")
    yield Ask(_steps(order[gain[order] > 0], choice), until_fooled=True)


weighted_whole = Search(
    "weighted-whole", "scores", "fixed best substitutes by weighted saliency; every candidate is weighed first", _whole
)
weighted = Search(
    "weighted", "scores", "the same, but weighs in order of saliency and only until the best so far fool together", _early
)
