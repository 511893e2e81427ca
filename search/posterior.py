"""Scores: joint moves chosen by a linear model of the boundary that starts at the prior and learns from every answer.

The log-odds of a text are taken to be those of the clean text plus one influence per swap. An influence is a share of the
prior's gain (how large a share is learnt), an influence of the slot whatever stands there, and one of the swap itself, all
Gaussian. So every answer updates all of them in closed form.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator

import numpy as np

from ..attacks.types import Ask, Asking, Codes, Floats, Grid, Reply, Search
from .moves import expected, fitted, without

SHARE = 0.7, 0.7  # of the prior's gain, in its standard deviations: mean and spread, in log-odds
SLOT, SWAP, NOISE = 0.3, 0.7, 0.3  # spreads of the other influences, and of what the model misses per changed word
TRUST = 2.0  # answers' worth of belief in these spreads
EXPLORE = 2.0  # a single move is chosen by its mean plus this many standard deviations
HOPE = 2.5  # give up when even the best swaps plus this many deviations of their sum stay short of the boundary
TIRES = 30  # answers after which that allowance has shrunk by a third
FAR = 3.0  # the distance to the boundary of a value, in log-odds
SLACK = 0.5  # a removal is tried although the model expects to fall short by this much


class _Model:
    """Means and deviations of the influence of every swap, in log-odds. 0 is the boundary, `start` the clean text."""

    def __init__(self, gain: Floats, informed: bool, clean: float, thorough: bool) -> None:
        self._far = abs(clean) if abs(clean) >= 1 else 0.0  # a value, which may lie anywhere: shares have margins within 1
        self.start = self._odds(clean)
        self._thorough = thorough
        self._real = np.isfinite(gain)
        flat = np.where(self._real, gain, 0.0)
        self._gain = flat / (float(flat[self._real].std()) or 1.0) if informed else np.zeros_like(flat)
        self._first = SHARE[0] * self._gain
        self._mean = self._first.copy()
        self._variance = SHARE[1] ** 2 * self._gain**2 + SLOT**2 + SWAP**2
        self._room = np.zeros((16, gain.size))  # covariance of the influences with each answer, made independent
        self._surprise = np.zeros(0)

    @property
    def answers(self) -> int:
        return len(self._surprise)

    @property
    def _seen(self) -> Floats:
        return self._room[: self.answers]

    @property
    def mean(self) -> Floats:
        return np.where(self._real, self._mean, -np.inf)

    @property
    def deviation(self) -> Floats:
        scale = (TRUST + (self._surprise**2).sum()) / (TRUST + self.answers)
        return np.where(self._real, np.sqrt(scale * np.maximum(self._variance, 0)), 0)

    @property
    def hopeless(self) -> bool:
        """Whether the boundary is out of reach, both for the likely swaps together and for the best case of every slot."""
        if self._thorough:
            return False
        rows, allowance = np.arange(len(self._gain)), np.sqrt(TIRES / (TIRES + self.answers))
        mean, deviation = self.mean, self.deviation
        likely = (mean + deviation).argmax(1)
        spread = np.sqrt((deviation[rows, likely] ** 2).sum())
        together = np.maximum(mean[rows, likely], 0).sum() + HOPE * allowance * spread
        apart = np.maximum((mean + allowance * deviation).max(1), 0).sum()
        return bool(self.start + max(together, apart) < 0)

    def _odds(self, margin: float) -> float:
        if self._far:
            return FAR * margin / self._far
        within = min(max(margin, -1 + 1e-9), 1 - 1e-9)
        return float(np.log((1 + within) / (1 - within)))

    def learn(self, code: Codes, margin: float) -> float:
        """Take in an answer (one row of a Cholesky factor) and give its log-odds."""
        odds = self._odds(margin)
        slots = code.nonzero()[0]
        swaps = slots * self._gain.shape[1] + code[slots] - 1
        total = self._gain.ravel()[swaps].sum()
        shared = SHARE[1] ** 2 * self._gain * total
        shared[slots] += SLOT**2
        shared.ravel()[swaps] += SWAP**2
        known = self._seen[:, swaps].sum(1)
        spread = shared.ravel()[swaps].sum() + NOISE**2 * len(slots) - (known**2).sum()
        row = (shared.ravel() - known @ self._seen) / np.sqrt(max(spread, 1e-9))
        surprise = (odds - self.start - self._first.ravel()[swaps].sum() - known @ self._surprise) / np.sqrt(
            max(spread, 1e-9)
        )
        if self.answers == len(self._room):
            self._room = np.concatenate([self._room, np.zeros_like(self._room)])
        self._room[self.answers] = row
        self._surprise = np.append(self._surprise, surprise)
        self._mean += (row * surprise).reshape(self._mean.shape)
        self._variance -= (row**2).reshape(self._mean.shape)
        return odds


def posterior(prune: int, thorough: bool = False) -> Search:
    """`prune` is how many queries may be spent on putting words back after the first success; `thorough` never gives up
    while there is a single step that was not tried."""

    def run(grid: Grid, rng: np.random.Generator) -> Asking:
        gain, informed = expected(grid, rng)
        clean = yield Ask(np.zeros((1, len(grid.sizes)), np.int16))  # known already: costs nothing
        model = _Model(gain, informed, clean.margin[0], thorough or not informed)
        found = yield from _climb(grid, model)
        if found is not None:
            yield from _prune(*found, model, prune)

    about = f"joint moves by a model that starts at the prior and learns; {prune} queries to put words back"
    name = f"posterior-{prune}" + ("-thorough" if thorough else "")
    return Search(name, "scores", about + ("; never gives up" if thorough else ""), run)


def _climb(grid: Grid, model: _Model) -> Generator[Ask, Reply, tuple[Codes, float] | None]:
    """Moves until one fools, or until there is no hope left; the code that fooled and its log-odds."""
    here, level = np.zeros(len(grid.sizes), np.int16), model.start
    tried = {here.tobytes()}  # asked for, or found to break a rule
    while True:
        code = yield from _next(model, here, tried)
        if code is None:
            return None
        answers = yield Ask(code[None])
        if not answers.answered[0]:
            continue
        odds = model.learn(code, answers.margin[0])
        if answers.fooled[0]:
            return code, odds
        if odds > level:
            here, level = code, odds


def _next(model: _Model, here: Codes, tried: set[bytes]) -> Generator[Ask, Reply, Codes | None]:
    """The smallest joint move that should fool; if it is known already, the best single step from the best text so far."""
    whole = _smallest(model)
    if whole.tobytes() not in tried:
        tried.add(whole.tobytes())
        code = yield from fitted(whole, model.mean.max(1))
        if code is whole or code.tobytes() not in tried:
            tried.add(code.tobytes())
            return code
    rows = np.arange(len(here))
    if model.hopeless:
        return None
    now = np.where(here > 0, model.mean[rows, here - 1], 0)
    value = model.mean + EXPLORE * model.deviation - now[:, None]
    value[here > 0, here[here > 0] - 1] = -np.inf
    for flat in np.argsort(-value, axis=None, kind="stable"):
        slot, choice = divmod(int(flat), value.shape[1])
        if value[slot, choice] == -np.inf:
            break
        code = here.copy()
        code[slot] = choice + 1
        if code.tobytes() not in tried:
            tried.add(code.tobytes())
            return code
    return None


def _smallest(model: _Model) -> Codes:
    """The fewest swaps that are expected to cross the boundary; if none do, all that are expected to help."""
    mean = model.mean
    picks = mean.argmax(1)
    value = mean[np.arange(len(mean)), picks]
    order = np.argsort(-value, kind="stable")
    crossing = np.flatnonzero(model.start + np.cumsum(value[order]) > 0)
    taken = order[: crossing[0] + 1] if len(crossing) else order[value[order] > 0]
    code = np.zeros(len(mean), np.int16)
    code[taken] = picks[taken] + 1
    return code


def _prune(best: Codes, odds: float, model: _Model, allowance: int) -> Asking:
    """Fewer words: some put back, or one new swap for several of the old ones."""
    tried: set[bytes] = set()
    for _ in range(allowance):
        trial = next((code for code in _fewer(best, odds, model) if code.tobytes() not in tried), None)
        if trial is None:
            return
        tried.add(trial.tobytes())
        answers = yield Ask(trial[None])
        if answers.answered[0]:
            moved = model.learn(trial, answers.margin[0])
            if answers.fooled[0]:
                best, odds = trial, moved


def _fewer(best: Codes, odds: float, model: _Model) -> Iterator[Codes]:
    """Texts with fewer changed words that may still fool, the most promising first."""
    slots = best.nonzero()[0]
    influence = model.mean[slots, best[slots] - 1]
    order = np.argsort(influence, kind="stable")
    safe = int((odds - np.cumsum(influence[order]) > 0)[:-1].sum())
    for group in (order[:safe], *order[:, None]):  # as many as should still fool, then one by one
        if 0 < len(group) < len(slots) and odds - influence[group].sum() > -SLACK:
            yield without(best, slots[group])
    now = np.zeros(len(best))
    now[slots] = influence
    value = model.mean + EXPLORE * model.deviation - now[:, None]
    value[slots, best[slots] - 1] = -np.inf
    for flat in np.argsort(-value, axis=None, kind="stable"):
        slot, choice = divmod(int(flat), value.shape[1])
        rest = slots[order][slots[order] != slot]
        spare = int((odds + value[slot, choice] - np.cumsum(now[rest]) > 0).sum())
        if spare <= (best[slot] == 0):
            return  # no lower value can free more words
        code = without(best, rest[:spare])
        code[slot] = choice + 1
        yield code
