"""Greedy substitution: slot by slot in a ranking's order, keep the best substitute when it helps, stop when fooled."""

from __future__ import annotations

import numpy as np

from ..attacks.types import Ask, Asking, Grid, Ranking, Search


def greedy(rank: Ranking, whole_slots: bool = False) -> Search:
    """With `whole_slots` every candidate of a slot is paid for, as the released codes do; else the first success ends it."""

    def run(grid: Grid, rng: np.random.Generator) -> Asking:
        order = yield from rank.run(grid, rng)
        best = np.zeros(len(grid.sizes), np.int16)
        clean = yield Ask(best[None])  # known already: costs nothing
        level = clean.score[0]
        for slot in order:
            codes = best[None].repeat(grid.sizes[slot], axis=0)
            codes[:, slot] = np.arange(1, grid.sizes[slot] + 1)
            answers = yield Ask(codes, until_fooled=not whole_slots)
            if answers.fooled.any():
                return
            top = answers.score.argmax()
            if answers.score[top] > level:
                best, level = codes[top], answers.score[top]

    name = f"greedy-{rank.name}" + ("-whole" if whole_slots else "")
    paying = "pays for every candidate of a slot" if whole_slots else "pays up to the first success"
    return Search(name, "scores", f"word by word, order: {rank.name}; {paying}", run)
