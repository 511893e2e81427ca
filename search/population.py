"""What population searches share: slots drawn for every member at once, their candidates tried, the best of them kept."""

from __future__ import annotations

from collections.abc import Generator

import numpy as np
from numpy.typing import NDArray

from ..attacks.types import Ask, Bools, Codes, Floats, Grid, Reply
from .moves import Slots

Members = tuple[Codes, Floats]  # int16[members, slots] and their scores


def draw_slots(free: Bools, weights: NDArray[np.int64], rng: np.random.Generator) -> Slots:
    """A free slot for each row, drawn by weight; -1 where none is free."""
    keys = np.where(free, np.log(weights) + rng.gumbel(size=free.shape), -np.inf)
    return np.where(free.any(1), keys.argmax(1), -1)


def trials(codes: Codes, members: Slots, slots: Slots, sizes: NDArray[np.int64]) -> tuple[Codes, Slots]:
    """Every candidate of slots[i] in member members[i], and the i each belongs to."""
    counts = sizes[slots]
    pair = np.repeat(np.arange(len(slots)), counts)
    rows = codes[members[pair]]
    rows[np.arange(len(rows)), slots[pair]] = np.arange(len(rows)) - np.repeat(np.cumsum(counts) - counts, counts) + 1
    return rows, pair


def scores_of(codes: Codes, whole: bool) -> Generator[Ask, Reply, Floats | None]:
    """The score of every row, -inf where it is refused; None once one fools. Equal rows are asked about once.

    With `whole` every row is paid for, otherwise the first success ends it.
    """
    if not len(codes):
        return np.zeros(0)
    _, first, back = np.unique(codes, axis=0, return_index=True, return_inverse=True)
    order = np.argsort(first)  # distinct rows, in the order in which they were given
    place = np.empty(len(order), np.int64)
    place[order] = np.arange(len(order))
    answers = yield Ask(codes[first[order]], until_fooled=not whole)
    found: Floats = answers.score[place[back.reshape(-1)]]
    return None if answers.fooled.any() else found


def best_trials(
    grid: Grid, codes: Codes, members: Slots, slots: Slots, whole: bool
) -> Generator[Ask, Reply, Members | None]:
    """For each member and slot the best text with another word there, the first of equals; None once one fools."""
    rows, pair = trials(codes, members, slots, grid.sizes)
    values = yield from scores_of(rows, whole)
    if values is None:
        return None
    best = np.zeros(len(slots), np.int64)
    order = np.lexsort((-np.arange(len(rows)), values))
    best[pair[order]] = order  # the last one written stays
    return rows[best], values[best]


def perturbed(
    grid: Grid, members: Members, slots: Slots, whole: bool
) -> Generator[Ask, Reply, tuple[Members, Bools] | None]:
    """Each member with the best candidate of its slot (-1: none) where that is better, and where it was."""
    codes, scores = members[0].copy(), members[1].copy()
    moved = np.zeros(len(codes), bool)
    some = np.flatnonzero(slots >= 0)
    found = yield from best_trials(grid, codes, some, slots[some], whole)
    if found is None:
        return None
    better = found[1] > scores[some]
    moved[some[better]] = True
    codes[moved], scores[moved] = found[0][better], found[1][better]
    return (codes, scores), moved
