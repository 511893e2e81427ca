"""Labels only: the most promising words together, twice as many each time, until the label flips; then back by bisection."""

from __future__ import annotations

from collections.abc import Generator

import numpy as np

from ..attacks.types import Ask, Asking, Codes, Floats, Grid, Reply, Search
from .influence import Influences
from .moves import Slots, expected, fitted, prefixes, without

DISTANCE = -4.0, 3.0  # of the clean text from the boundary, in log-odds: mean and spread
DRAWS = 60  # texts drawn from the model, before giving up
LAST = 1000  # the same where it never gives up
STALE = 30  # draws in a row that repeat a text: nothing else is likely to come
PATIENT = 200  # the same where it never gives up
COOL = 20  # such draws that make the next one twice as warm
HARM = 2.0  # a draw may also take swaps that should do harm, up to so much: a linear model misses how words work together
WARMTH = 0.4, 1.6  # spread of those draws, in standard deviations: each draw's lies between these


def joint(prune: int, thorough: bool = False) -> Search:
    """`prune` is how many queries may be spent on putting words back once the label has flipped; `thorough` goes on drawing
    where the other form gives up."""

    def run(grid: Grid, rng: np.random.Generator) -> Asking:
        gain, informed = expected(grid, rng)
        model = Influences(grid, gain if informed else None, *DISTANCE)
        found = yield from _doubling(grid, gain, model)
        if found is None:
            found = yield from _drawing(model, rng, *(LAST, PATIENT) if thorough else (DRAWS, STALE))
        if found is not None:
            yield from _prune(found, model, prune)

    about = f"labels only: the prior's best words together, doubling, then bisection; {prune} queries to put words back"
    name = f"joint-{prune}" + ("-thorough" if thorough else "")
    return Search(name, "label", about + ("; hardly gives up" if thorough else ""), run)


def _ask(model: Influences, code: Codes, near: bool = True) -> Generator[Ask, Reply, bool]:
    """Whether a text flips. Far from the boundary only that it does is told to the model: a label that stays would be put
    down to the swaps, where mostly the distance is to blame."""
    answers = yield Ask(code[None])
    flipped = bool(answers.fooled[0])
    if answers.answered[0] and (near or flipped):
        model.learn_label(code, flipped)
    return flipped


def _doubling(grid: Grid, gain: Floats, model: Influences) -> Generator[Ask, Reply, Codes | None]:
    """The best swap of 1, 2, 4, ... slots, of all that should help, and of all; back to the smallest prefix that flips."""
    n = len(grid.sizes)
    picks = gain.argmax(1)
    value, choice = gain[np.arange(n), picks], (picks + 1).astype(np.int16)
    order = np.argsort(-value, kind="stable")
    hopeful = max(1, int((value > 0).sum()))
    lengths = np.unique(np.append(np.minimum(2 ** np.arange(n.bit_length()), n), [hopeful, n]))
    low = 0
    for length, whole in zip(lengths, prefixes(order, choice, lengths), strict=True):
        code = yield from fitted(whole, value)
        if (yield from _ask(model, code, near=False)):
            return (yield from _bisect(model, code, order[code[order] > 0], low))
        low = int(length) if code is whole else 0
    return None


def _drawing(model: Influences, rng: np.random.Generator, draws: int, patience: int) -> Generator[Ask, Reply, Codes | None]:
    """Influences as they may be: all swaps that would do little harm, together."""
    tried = set[bytes]()
    stale = 0
    while draws and stale < patience:
        warmth = rng.uniform(*WARMTH) * (1 + stale / COOL)
        value = model.mean + warmth * model.deviation * rng.normal(size=len(model.slots))
        picks = model.best(value)
        picks = picks[value[picks] > -HARM * rng.random()]
        whole = model.code(picks)
        if not whole.any() or whole.tobytes() in tried:
            stale += 1
            continue
        tried.add(whole.tobytes())
        code = yield from fitted(whole, np.maximum.reduceat(value, model.first))
        draws, stale = draws - 1, 0
        if code is not whole and code.tobytes() in tried:
            continue
        tried.add(code.tobytes())
        if (yield from _ask(model, code, near=False)):
            order = picks[np.argsort(-model.mean[picks], kind="stable")]
            kept = model.slots[order]
            return (yield from _bisect(model, code, kept[code[kept] > 0], 0))
    return None


def _bisect(model: Influences, code: Codes, order: Slots, low: int) -> Generator[Ask, Reply, Codes]:
    """The first `high` slots of the order flip the label, the first `low` do not: the smallest such prefix."""
    high, best = len(order), code
    while high - low > 1:
        middle = (low + high) // 2
        trial = without(code, order[middle:])
        if (yield from _ask(model, trial)):
            high, best = middle, trial
        else:
            low = middle
    return best


def _prune(best: Codes, model: Influences, allowance: int) -> Asking:
    """Words put back, least promising first: halves, then halves of what did not go, then single words."""
    slots = best.nonzero()[0]
    groups = [slots[np.argsort(model.mean[model.swaps(best)], kind="stable")]]
    while groups and allowance > 0:
        group = groups.pop(0)
        trial = without(best, group)
        if trial.any():
            allowance -= 1
            if (yield from _ask(model, trial)):
                best = trial
                continue
        if len(group) > 1:
            groups = [*np.array_split(group, 2), *groups]
