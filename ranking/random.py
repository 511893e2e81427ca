"""Any order: the ranking that costs nothing and knows nothing."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ..attacks.types import Ask, Grid, Ordering, Ranking


def _run(grid: Grid, rng: np.random.Generator) -> Ordering:
    nothing: Iterator[Ask] = iter(())
    yield from nothing  # a generator that asks nothing
    return rng.permutation(len(grid.sizes))


at_random = Ranking("random", "label", "a random order; asks nothing", _run)
