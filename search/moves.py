"""What joint searches share: candidates by expected gain, nested moves, and moves made to fit the rules before they are paid."""

from __future__ import annotations

from collections.abc import Generator

import numpy as np
from numpy.typing import NDArray

from ..attacks.types import Ask, Codes, Floats, Grid, Reply

Slots = NDArray[np.int64]


def expected(grid: Grid, rng: np.random.Generator) -> tuple[Floats, bool]:
    """The prior's gain of every swap, and whether there is a prior; without one the gains are drawn at random."""
    if grid.gain is not None:
        return grid.gain, True
    places = np.arange(grid.sizes.max()) < grid.sizes[:, None]
    return np.where(places, rng.random(places.shape), -np.inf), False


def prefixes(order: Slots, choice: Codes, lengths: Slots) -> Codes:
    """Row i puts in the choices of the first lengths[i] slots of the order."""
    place = np.argsort(order)
    return np.where(place[None] < lengths[:, None], choice[None], 0).astype(np.int16)


def without(code: Codes, slots: Slots) -> Codes:
    """The code with the original words back in these slots."""
    other = code.copy()
    other[slots] = 0
    return other


def fitted(code: Codes, value: Floats) -> Generator[Ask, Reply, Codes]:
    """The code itself if rules and floor allow it; else without the words that cost most similarity per unit of value.

    Costs no query. The answer may be empty: then no part of the move is allowed.
    """
    answers = yield Ask(code[None], pay=False)
    slots = code.nonzero()[0]
    if answers.allowed[0] or not len(slots):
        return code
    alone = np.zeros((len(slots), len(code)), np.int16)
    alone[np.arange(len(slots)), slots] = code[slots]
    answers = yield Ask(alone, pay=False, encode=True)
    cost = np.where(np.isnan(answers.similarity), 1.0, np.maximum(1 - answers.similarity, 1e-6))
    worth = np.where(answers.allowed, np.maximum(value[slots], 1e-9) / cost, -np.inf)
    kept = slots[np.argsort(-worth, kind="stable")][: int(answers.allowed.sum())]
    tries = prefixes(np.append(kept, np.setdiff1d(np.arange(len(code)), kept)), code, np.arange(len(kept), 0, -1))
    answers = yield Ask(tries, pay=False)
    return np.asarray(tries[answers.allowed.argmax()] if answers.allowed.any() else np.zeros_like(code), np.int16)
