"""What swaps do to a victim: the log-odds of a text are taken to be those of the clean text plus one influence per swap.

An influence is a share of the prior's gain (how large a share is learnt), an influence of the slot whatever stands there, and
one of the swap itself, all Gaussian. So every answer updates all of them in closed form: a score by Gaussian regression, a
label by probit regression with moments matched.
"""

from __future__ import annotations

from math import erfc, exp, pi, sqrt

import numpy as np

from ..attacks.types import Codes, Floats, Grid
from .moves import Slots

SHARE = 1.0, 0.7  # of the prior's gain, in its standard deviations: mean and spread, in log-odds
SLOT, SWAP, NOISE = 0.3, 0.7, 0.2  # spreads of the other influences, and of what adding up misses per changed word
TRUST = 2.0  # answers' worth of belief in these spreads
TINY = 1e-9


class Influences:
    """Means and deviations of the influence of every swap, numbered slot by slot. 0 is the boundary."""

    def __init__(self, grid: Grid, gain: Floats | None, start: float, doubt: float = 0.0) -> None:
        """`start` is the log-odds of the clean text, `doubt` how far it may be from that; `gain` the prior's, or None."""
        self.slots: Slots = np.repeat(np.arange(len(grid.sizes)), grid.sizes)
        self.first: Slots = np.cumsum(grid.sizes) - grid.sizes
        self.choices: Slots = np.arange(len(self.slots)) - self.first[self.slots] + 1
        n = len(self.slots)
        flat = np.zeros(n) if gain is None else gain[self.slots, self.choices - 1]
        self._gain = flat / (float(flat.std()) or 1.0)
        self.start, self._doubt = start, doubt
        self.mean = SHARE[0] * self._gain
        self._variance = SHARE[1] ** 2 * self._gain**2 + SLOT**2 + SWAP**2
        self._rows = np.zeros((16, n + 2))  # what each answer told of every swap, the share and the start
        self.share = SHARE[0]  # of the prior's gain, as far as answers tell
        self.answers = 0
        self._missed = 0.0  # squares of surprises
        self._texts, self._odds = [np.zeros(len(grid.sizes), np.int16)], [start]

    @property
    def scale(self) -> float:
        """Of all variances: how far answers surprised."""
        return (TRUST + self._missed) / (TRUST + self.answers)

    @property
    def deviation(self) -> Floats:
        """Of every swap, wider where answers surprised."""
        return np.asarray(np.sqrt(self.scale * np.maximum(self._variance, 0)), np.float64)

    def swaps(self, code: Codes) -> Slots:
        """The numbers of a code's swaps."""
        slots = code.nonzero()[0]
        return np.asarray(self.first[slots] + code[slots] - 1, np.int64)

    def best(self, value: Floats) -> Slots:
        """The swap of greatest value in each slot, the first of equals."""
        most = np.maximum.reduceat(value, self.first)
        hits = np.flatnonzero(value == most[self.slots])
        return np.asarray(hits[np.unique(self.slots[hits], return_index=True)[1]], np.int64)

    def code(self, swaps: Slots) -> Codes:
        """These swaps together."""
        made = np.zeros(len(self.first), np.int16)
        made[self.slots[swaps]] = self.choices[swaps]
        return made

    def learn_odds(self, code: Codes, odds: float) -> None:
        """The log-odds of a text, from its scores. It is compared with the most alike of the texts known so far: what adding
        up misses, the two have in common."""
        base = max(range(len(self._texts)), key=lambda at: (-int((self._texts[at] != code).sum()), at))
        swaps, signs = self._between(self._texts[base], code)
        shared, spread = self._foreseen(swaps, signs)
        spread += NOISE**2 * int((self._texts[base] != code).sum())
        spread = max(spread, TINY)
        surprise = (odds - self._odds[base] - float(signs @ self.mean[swaps])) / sqrt(spread)
        self._take_in(shared / sqrt(spread), surprise)
        self._missed += surprise**2
        self._texts.append(code)
        self._odds.append(odds)

    def learn_label(self, code: Codes, flipped: bool) -> None:
        """Which side of the boundary a text is on."""
        swaps = self.swaps(code)
        shared, spread = self._foreseen(swaps, np.ones(len(swaps)), whole=True)
        spread = max(spread + NOISE**2 * len(swaps), TINY)
        sign = 1.0 if flipped else -1.0
        z = sign * (self.start + float(self.mean[swaps].sum())) / sqrt(spread)
        pull = hazard(z)
        told = sqrt(pull * (pull + z)) if pull + z > 0 else TINY
        self._take_in(shared * told / sqrt(spread), sign * pull / told)
        self._missed += 1  # a label tells nothing about the spreads

    def chances(self, codes: Codes) -> Floats:
        """That each of these texts is past the boundary, seen from the most alike of the texts known so far."""
        known = np.array(self._texts)
        some = np.flatnonzero(codes.any(0) | known.any(0))  # no other slot differs anywhere
        codes, known = codes[:, some], known[:, some]
        both = np.concatenate([codes, known])
        swaps: Slots = np.unique((self.first[some] + both - 1)[both > 0])
        place, choice = np.searchsorted(some, self.slots[swaps]), self.choices[swaps]
        held, held_known = ((rows[:, place] == choice).astype(np.float64) for rows in (codes, known))
        full, full_known = ((rows > 0).astype(np.float64) for rows in (codes, known))
        apart = full.sum(1)[:, None] + full_known.sum(1) - full @ full_known.T - held @ held_known.T  # slots that differ
        base = apart.shape[1] - 1 - apart[:, ::-1].argmin(1)
        moved = held - held_known[base]
        mean = np.array(self._odds)[base] + moved @ self.mean[swaps]
        variance = (SHARE[1] * (moved @ self._gain[swaps])) ** 2 + SWAP**2 * np.abs(moved).sum(1)
        variance += SLOT**2 * np.abs(full - full_known[base]).sum(1)
        variance -= ((moved @ self._rows[: self.answers, swaps].T) ** 2).sum(1)
        variance = np.maximum(variance, 0) + NOISE**2 * apart[np.arange(len(codes)), base]
        return np.array([erfc(-value / sqrt(2)) / 2 for value in (mean / np.sqrt(self.scale * variance + TINY)).tolist()])

    def _between(self, base: Codes, code: Codes) -> tuple[Slots, Floats]:
        """The swaps by which two codes differ: 1 for those that come, -1 for those that go."""
        differ = base != code
        come, gone = self.swaps(np.where(differ, code, 0)), self.swaps(np.where(differ, base, 0))
        return np.append(come, gone), np.repeat([1.0, -1.0], [len(come), len(gone)])

    def _foreseen(self, swaps: Slots, signs: Floats, whole: bool = False) -> tuple[Floats, float]:
        """Covariance of everything with a signed sum of influences, and its variance; with `whole` the start is part of it."""
        total = float(signs @ self._gain[swaps])
        shared = np.empty(len(self.slots) + 2)
        of_slot = np.bincount(self.slots[swaps], signs, len(self.first))
        shared[:-2] = SHARE[1] ** 2 * total * self._gain + SLOT**2 * of_slot[self.slots]
        shared[swaps] += SWAP**2 * signs
        shared[-2] = SHARE[1] ** 2 * total
        shared[-1] = self._doubt**2 * whole
        before = float(signs @ shared[swaps]) + self._doubt**2 * whole
        seen = self._rows[: self.answers]
        known = seen[:, swaps] @ signs + seen[:, -1] * whole
        shared -= known @ seen
        return shared, before - float(known @ known)

    def _take_in(self, row: Floats, surprise: float) -> None:
        if self.answers == len(self._rows):
            self._rows = np.concatenate([self._rows, np.zeros_like(self._rows)])
        self._rows[self.answers] = row
        self.answers += 1
        self.mean += row[:-2] * surprise
        self.share += float(row[-2]) * surprise
        self.start += float(row[-1]) * surprise
        self._variance -= row[:-2] ** 2


def hazard(z: float) -> float:
    """The normal density over its distribution function."""
    if z < -6:
        return -z - 1 / z
    return 2 * exp(-z * z / 2) / sqrt(2 * pi) / erfc(-z / sqrt(2))
