"""Labels only: the most promising words together, twice as many each time, until the label flips; then back by bisection."""

from __future__ import annotations

from collections.abc import Generator

import numpy as np

from ..attacks.types import Ask, Asking, Codes, Floats, Grid, Reply, Search
from .moves import Slots, expected, fitted, prefixes, without

RANKS = 3  # how many of each word's candidates are tried in the prior's own order
DRAWS = 40  # then as many draws around the prior
WARMTH = 1.0  # spread of those draws, in standard deviations of the gains


def joint(prune: int) -> Search:
    """`prune` is how many queries may be spent on putting words back once the label has flipped."""

    def run(grid: Grid, rng: np.random.Generator) -> Asking:
        gain, _ = expected(grid, rng)
        found = yield from _flip(grid, gain, rng)
        if found is not None:
            yield from _prune(*found, prune)

    about = f"labels only: the prior's best words together, doubling, then bisection; {prune} queries to put words back"
    return Search(f"joint-{prune}", "label", about, run)


def _flip(grid: Grid, gain: Floats, rng: np.random.Generator) -> Generator[Ask, Reply, tuple[Codes, Floats] | None]:
    """The smallest flipping prefix that bisection finds, with the values by which its words were ordered."""
    n = len(grid.sizes)
    ranked = np.argsort(-gain, axis=1, kind="stable")
    spread = float(gain[np.isfinite(gain)].std()) or 1.0
    for attempt in range(RANKS + DRAWS):
        if attempt < RANKS:
            picks = ranked[np.arange(n), np.minimum(attempt, grid.sizes - 1)]
        else:
            picks = (gain + WARMTH * spread * rng.gumbel(size=gain.shape)).argmax(1)
        value, choice = gain[np.arange(n), picks], (picks + 1).astype(np.int16)
        order = np.argsort(-value, kind="stable")
        hopeful = max(1, int((value > 0).sum()))
        doubling = 2 ** np.arange(n.bit_length()) if not attempt else np.array([hopeful])
        lengths = np.unique(np.append(np.minimum(doubling, n), [hopeful, n]))
        codes = prefixes(order, choice, lengths)
        for row in range(len(codes)):
            codes[row] = yield from fitted(codes[row], value)
        answers = yield Ask(codes, until_fooled=True)
        if answers.fooled.any():
            hit = int(answers.fooled.argmax())
            kept = order[codes[hit][order] > 0]
            nested = hit and bool((codes[hit - 1] == prefixes(order, choice, lengths[hit - 1 : hit])[0]).all())
            low = int(lengths[hit - 1]) if nested else 0
            return (yield from _bisect(codes[hit], kept, low)), value
    return None


def _bisect(code: Codes, order: Slots, low: int) -> Generator[Ask, Reply, Codes]:
    """The first `high` slots of the order flip the label, the first `low` do not: the smallest such prefix."""
    high, best = len(order), code
    while high - low > 1:
        middle = (low + high) // 2
        trial = without(code, order[middle:])
        answers = yield Ask(trial[None])
        if answers.fooled[0]:
            high, best = middle, trial
        else:
            low = middle
    return best


def _prune(best: Codes, value: Floats, allowance: int) -> Asking:
    """Words put back, least promising first: halves, then halves of what did not go, then single words."""
    slots = best.nonzero()[0]
    groups = [slots[np.argsort(value[slots], kind="stable")]]
    while groups and allowance > 0:
        group = groups.pop(0)
        trial = without(best, group)
        if trial.any():
            allowance -= 1
            answers = yield Ask(trial[None])
            if answers.fooled[0]:
                best = trial
                continue
        if len(group) > 1:
            groups = [*np.array_split(group, 2), *groups]
