"""Scores: joint moves chosen by a linear model of the boundary that starts at the prior and learns from every answer."""

from __future__ import annotations

from collections.abc import Generator, Iterator

import numpy as np

from ..attacks.types import Ask, Asking, Codes, Floats, Grid, Reply, Search
from .influence import Influences
from .moves import expected, fitted, without

EXPLORE = 1.5  # a single move is chosen by its mean plus this many standard deviations
HOPE = 2.0  # give up when even the best swaps plus this many deviations of their sum stay short of the boundary
TIRES = 120  # answers after which that allowance has shrunk by a third
EARLY = 6  # answers before which nothing is given up: they may yet show that the prior is wrong
DOUBTFUL = 0.1  # where less of the prior's gain was found true, nothing is given up on its word
AIM = 0.8  # a joint move is as small as it may be for this chance that it fools
GROUP, STEPS = 15, 100  # a step changes one slot in so many, a single one in short texts; after so many answers single ones
FAR = 3.0  # the distance to the boundary of a value, in log-odds
NEW = 12  # new swaps that are considered in the place of others
LEAST = 0.3, 0.04  # words that a query must be expected to save; the same for a thorough search
STEPWISE = 64  # numbers of words that are considered: every one up to this, further apart in longer moves


class _Scale:
    """Margins as log-odds. A value, which may lie anywhere, is measured by the clean text's distance from the boundary."""

    def __init__(self, clean: float) -> None:
        self._far = abs(clean) if abs(clean) >= 1 else 0.0  # shares of classes have margins within 1

    def __call__(self, margin: float) -> float:
        if self._far:
            return FAR * margin / self._far
        within = min(max(margin, -1 + 1e-9), 1 - 1e-9)
        return float(np.log((1 + within) / (1 - within)))


def posterior(prune: int, thorough: bool = False) -> Search:
    """`prune` is how many queries may be spent on putting words back after the first success; `thorough` never gives up
    while there is a single step that was not tried."""

    def run(grid: Grid, rng: np.random.Generator) -> Asking:
        gain, informed = expected(grid, rng)
        clean = yield Ask(np.zeros((1, len(grid.sizes)), np.int16))  # known already: costs nothing
        scale = _Scale(clean.margin[0])
        model = Influences(grid, gain if informed else None, scale(clean.margin[0]))
        found = yield from _climb(model, scale, thorough or not informed)
        if found is not None:
            yield from _prune(found, model, scale, prune, LEAST[thorough])

    about = f"joint moves by a model that starts at the prior and learns; {prune} queries to put words back"
    name = f"posterior-{prune}" + ("-thorough" if thorough else "")
    return Search(name, "scores", about + ("; never gives up" if thorough else ""), run)


def _climb(model: Influences, scale: _Scale, thorough: bool) -> Generator[Ask, Reply, Codes | None]:
    """Moves until one fools, or until there is no hope left; the code that fooled."""
    here, level = np.zeros(len(model.first), np.int16), model.start
    tried = {here.tobytes()}  # asked for, or found to break a rule
    while True:
        code = _next(model, here, tried, thorough)
        if code is None:
            return None
        tried.add(code.tobytes())
        answers = yield Ask(code[None])
        if not answers.answered[0]:  # a rule or the floor refuses it: words that cost much similarity make way
            code = yield from fitted(code, _hopes(model, code))
            if code.tobytes() in tried:
                continue
            tried.add(code.tobytes())
            answers = yield Ask(code[None])
        odds = scale(answers.margin[0])
        model.learn_odds(code, odds)
        if answers.fooled[0]:
            return code
        if odds > level:
            here, level = code, odds


def _next(model: Influences, here: Codes, tried: set[bytes], thorough: bool) -> Codes | None:
    """The smallest joint move that should fool; if it is known already, the best step from the best text so far."""
    whole = _smallest(model, here)
    if whole.tobytes() not in tried:
        return whole
    if not thorough and _hopeless(model):
        return None
    value = _step_values(model, here, EXPLORE)
    if model.answers < STEPS:
        best = model.best(value)
        lead = best[np.argsort(-value[best], kind="stable")][: 1 + len(here) // GROUP]
        code = here.copy()
        code[model.slots[lead]] = model.choices[lead]
        if code.tobytes() not in tried:
            return code
    taken = model.swaps(here)
    back = EXPLORE * model.deviation[taken] - model.mean[taken]  # of putting a word back
    slots, choices = np.append(model.slots, model.slots[taken]), np.append(model.choices, np.zeros(len(taken), np.int64))
    for step in np.argsort(-np.append(value, back), kind="stable"):
        code = here.copy()
        code[slots[step]] = choices[step]
        if code.tobytes() not in tried:
            return code
    return None


def _hopes(model: Influences, code: Codes) -> Floats:
    """What each slot's swap in a code may do, hopefully."""
    value, swaps = np.zeros(len(code)), model.swaps(code)
    value[model.slots[swaps]] = model.mean[swaps] + model.deviation[swaps]
    return value


def _step_values(model: Influences, here: Codes, explore: float) -> Floats:
    """What each swap may add to a text, hopefully; the ones that are in it add nothing and come last."""
    value = model.mean + explore * model.deviation - _present(model, here)[model.slots]
    value[model.swaps(here)] = -np.inf
    return np.asarray(value, np.float64)


def _present(model: Influences, here: Codes) -> Floats:
    """What the word that now stands in each slot is expected to do; 0 for the original one."""
    swaps, now = model.swaps(here), np.zeros(len(here))
    now[model.slots[swaps]] = model.mean[swaps]
    return now


def _hopeless(model: Influences) -> bool:
    """Whether the boundary is out of reach, both for the likely swaps together and for the best case of every slot."""
    if model.share < DOUBTFUL or model.answers < EARLY:
        return False
    allowance = float(np.sqrt(TIRES / (TIRES + model.answers)))
    mean, deviation = model.mean, model.deviation
    likely = model.best(mean + deviation)
    spread = np.sqrt((deviation[likely] ** 2).sum())
    together = np.maximum(mean[likely], 0).sum() + HOPE * allowance * spread
    apart = np.maximum(np.maximum.reduceat(mean + allowance * deviation, model.first), 0).sum()
    return bool(model.start + max(together, apart) < 0)


def _smallest(model: Influences, here: Codes) -> Codes:
    """The fewest swaps beyond the best text so far that are likely to cross the boundary; if none are, all that should help."""
    picks = model.best(model.mean)
    value = model.mean[picks] - _present(model, here)[model.slots[picks]]
    picks = picks[np.argsort(-value, kind="stable")][: int((value > 0).sum())]
    if not len(picks):
        return here
    lengths = _lengths(len(picks))
    codes = np.tile(here, (len(lengths), 1))
    for row, length in zip(codes, lengths, strict=True):
        row[model.slots[picks[:length]]] = model.choices[picks[:length]]
    likely = np.flatnonzero(model.chances(codes) >= AIM)
    return np.asarray(codes[likely[0] if len(likely) else -1], np.int16)


def _lengths(n: int) -> list[int]:
    """From 1 to n, further and further apart where that is far."""
    return np.unique(np.geomspace(1, n, STEPWISE).round().astype(int)).tolist() if n > STEPWISE else list(range(1, n + 1))


def _prune(best: Codes, model: Influences, scale: _Scale, allowance: int, least: float) -> Asking:
    """Fewer words: the text that is expected to save most of them, until none promises enough."""
    tried: set[bytes] = set()
    for _ in range(allowance):
        trial = next((code for code in _fewer(best, model, least) if code.tobytes() not in tried), None)
        if trial is None:
            return
        tried.add(trial.tobytes())
        answers = yield Ask(trial[None])
        if answers.answered[0]:
            model.learn_odds(trial, scale(answers.margin[0]))
            if answers.fooled[0]:
                best = trial


def _fewer(best: Codes, model: Influences, least: float) -> Iterator[Codes]:
    """Texts with fewer changed words, those that should save most words first: as they are, or with one new swap."""
    swaps = model.swaps(best)
    order = model.slots[swaps[np.argsort(model.mean[swaps], kind="stable")]]
    value = _step_values(model, best, 0.0)
    fresh = np.argsort(-value, kind="stable")[:NEW]
    codes = []
    for swap in (None, *fresh[np.isfinite(value[fresh])].tolist()):
        stays = order if swap is None else order[order != model.slots[swap]]
        for length in (0, *_lengths(len(stays))):
            code = without(best, stays[:length])
            if swap is not None:
                code[model.slots[swap]] = model.choices[swap]
            codes.append(code)
    trials = np.array(codes)
    saved = np.count_nonzero(best) - np.count_nonzero(trials, axis=1)
    few = (saved > 0) & trials.any(1)
    if not few.any():
        return
    trials, saved = trials[few], saved[few]
    worth = saved * model.chances(trials)
    for row in np.argsort(-worth, kind="stable"):
        if worth[row] < least:
            return
        yield trials[row]
