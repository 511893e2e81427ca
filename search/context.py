"""Greedy substitution with candidates proposed anew after every edit (the context-aware attack)."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ..attacks.types import Ask, Asking, Grid, Ranking, Search

Bar = Callable[[float, float], float]  # the clean text's score and the present one's, to what a substitute must beat


def present(clean: float, now: float) -> float:
    return now


def original(clean: float, now: float) -> float:
    return clean


def nothing(clean: float, now: float) -> float:
    return -np.inf


def renewing(rank: Ranking, whole_slots: bool = False, bar: Bar = present) -> Search:
    """Candidates come in the space's order, and the first that fools is the choice.

    With `whole_slots` every candidate of a slot is paid for, otherwise those up to the first success.
    """

    def run(grid: Grid, rng: np.random.Generator) -> Asking:
        order = yield from rank.run(grid, rng)
        best = np.zeros(len(grid.sizes), np.int16)
        clean = yield Ask(best[None])  # known already: costs nothing
        level = clean.score[0]
        for slot in order:
            if best.any():
                grid, best = grid.around(best, [int(slot)])
            codes = np.tile(best, (grid.sizes[slot], 1))
            codes[:, slot] = np.arange(1, grid.sizes[slot] + 1)
            answers = yield Ask(codes, until_fooled=not whole_slots, grid=grid)
            if answers.fooled.any():
                return
            top = answers.score.argmax()
            if answers.answered[top] and answers.score[top] > bar(clean.score[0], level):
                best, level = codes[top], answers.score[top]

    name = f"renewing-{rank.name}" + "-whole" * whole_slots + (f"-{bar.__name__}" if bar is not present else "")
    paying = "pays for every candidate of a slot" if whole_slots else "pays up to the first success"
    about = f"word by word, candidates proposed anew after each edit, order: {rank.name}; {paying}"
    return Search(name, "scores", about, run)
