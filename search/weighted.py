"""PWWS's substitution: the best candidate of each word is fixed first, then put in by falling weight until fooled."""

from __future__ import annotations

import numpy as np

from ..attacks.types import Ask, Asking, Grid, Search
from ..ranking.saliency import weigh


def weighted(stop: bool = True) -> Search:
    """With `stop`, a single swap that fools ends the attack: one changed word, which no later text can beat."""

    def run(grid: Grid, rng: np.random.Generator) -> Asking:
        order, choice, fooled = yield from weigh(grid, stop)
        if fooled:
            return
        steps = np.tril(np.ones((len(order), len(order)), bool))
        codes = np.zeros((len(order), len(order)), np.int16)
        codes[:, order] = np.where(steps, choice[order], 0)
        yield Ask(codes[(np.diff(codes, axis=0, prepend=0) != 0).any(1)], until_fooled=True)

    name = "weighted" if stop else "weighted-whole"
    paying = "a single swap that fools ends it" if stop else "weighs every candidate before the first step"
    return Search(name, "scores", f"fixed best substitutes by weighted saliency; {paying}", run)
