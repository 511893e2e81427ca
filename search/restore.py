"""Labels only: replace ever more words at random until the label flips, then put back what is not needed."""

from __future__ import annotations

import numpy as np

from ..attacks.types import Ask, Asking, Grid, Search
from .moves import prefixes

DRAWS = 20  # fresh draws when the whole text replaced does not flip the label


def restore() -> Search:
    """Doubling joint moves, bisection to the shortest flipping prefix, then words put back one at a time."""

    def run(grid: Grid, rng: np.random.Generator) -> Asking:
        n = len(grid.sizes)
        for _ in range(DRAWS):
            order, choice = rng.permutation(n), rng.integers(1, grid.sizes + 1).astype(np.int16)
            lengths = np.unique(np.minimum(2 ** np.arange(n.bit_length() + 1), n))
            answers = yield Ask(prefixes(order, choice, lengths), until_fooled=True)
            if answers.fooled.any():
                break
        else:
            return
        hit = int(answers.fooled.argmax())
        low, high = (int(lengths[hit - 1]) if hit else 0), int(lengths[hit])
        while high - low > 1:  # prefix `high` flips the label, prefix `low` does not
            middle = (low + high) // 2
            answers = yield Ask(prefixes(order, choice, np.array([middle])))
            low, high = (low, middle) if answers.fooled[0] else (middle, high)
        best = prefixes(order, choice, np.array([high]))[0]
        kept = True
        while kept and (best > 0).sum() > 1:
            kept = False
            for slot in rng.permutation(best.nonzero()[0]):
                trial = best.copy()
                trial[slot] = 0
                answers = yield Ask(trial[None])
                if answers.fooled[0]:
                    best, kept = trial, True

    return Search("restore", "label", "random joint moves, bisection, then words put back; labels only", run)
