"""What labels tell about swaps: every swap has an influence, a text flips when they add up to more than the distance to the
boundary, and each answer moves a Gaussian belief about all of them (probit regression by moment matching)."""

from __future__ import annotations

from math import erfc, sqrt

import numpy as np

from ..attacks.types import Bools, Codes, Floats, Grid
from .influence import hazard
from .moves import Slots

DISTANCE = -1.5, 0.7  # of the clean text: mean and spread. All scales are relative to it.
INFLUENCE = 0.2  # mean influence of a swap: more often than not it helps
TRUST = 0.3  # how much more it is worth for each deviation by which a prior's gain exceeds its mean over the text
SLOT, SWAP, NOISE = 0.4, 0.5, 0.15  # spreads: of a slot whatever stands there, of each swap, of what adding up misses


class Belief:
    """A Gaussian over the influences of all swaps, numbered slot by slot, and over the distance, which comes last."""

    def __init__(self, grid: Grid) -> None:
        self.slots: Slots = np.repeat(np.arange(len(grid.sizes)), grid.sizes)
        self.first: Slots = np.cumsum(grid.sizes) - grid.sizes
        self.choices: Slots = np.arange(len(self.slots)) - self.first[self.slots] + 1
        n = len(self.slots)
        self.mean = np.append(np.full(n, INFLUENCE), DISTANCE[0])
        if grid.gain is not None:
            gain = grid.gain[self.slots, self.choices - 1]
            self.mean[:n] += TRUST * (gain - gain.mean()) / (gain.std() or 1.0)
        self._spread = np.zeros((n + 1, n + 1))
        self._spread[:n, :n] = SLOT**2 * (self.slots[:, None] == self.slots)
        self._spread[np.arange(n + 1), np.arange(n + 1)] += np.append(np.full(n, SWAP**2), DISTANCE[1] ** 2)

    @property
    def deviation(self) -> Floats:
        """Of every swap."""
        return np.asarray(np.sqrt(np.maximum(np.diag(self._spread)[:-1], 0)), np.float64)

    def swaps(self, code: Codes) -> Slots:
        slots = code.nonzero()[0]
        return np.append(self.first[slots] + code[slots] - 1, len(self.slots))

    def learn(self, code: Codes, flipped: bool) -> None:
        taken = self.swaps(code)
        shared = self._spread[:, taken].sum(1)
        scale = sqrt(max(float(shared[taken].sum()), 0.0) + NOISE**2 * len(taken))
        sign = 1 if flipped else -1
        z = sign * float(self.mean[taken].sum()) / scale
        pull = hazard(z)
        self.mean += shared * (sign * pull / scale)
        self._spread -= np.outer(shared, shared * (pull * (pull + z) / scale**2))

    def chance(self, base: Codes) -> Floats:
        """That the base with one more swap flips, for every swap."""
        taken = self.swaps(base)
        shared = self._spread[:-1, taken].sum(1)
        variance = self._spread[np.ix_(taken, taken)].sum() + 2 * shared + np.diag(self._spread)[:-1]
        scale = np.sqrt(np.maximum(variance, 0) + NOISE**2 * (len(taken) + 1))
        z = (self.mean[taken].sum() + self.mean[:-1]) / scale
        return np.array([erfc(-value / sqrt(2)) / 2 for value in z.tolist()])

    def strongest(self, value: Floats, most: int) -> Codes:
        """The best swap of each slot, in the `most` slots whose best is worth most."""
        order = np.argsort(-value, kind="stable")
        _, at = np.unique(self.slots[order], return_index=True)
        best = order[np.sort(at)][:most]
        code = np.zeros(len(self.first), np.int16)
        code[self.slots[best]] = self.choices[best]
        return code

    def with_each(self, base: Codes, which: Bools) -> Codes:
        """The base with each of these swaps put in, one a row."""
        codes = np.tile(base, (int(which.sum()), 1))
        codes[np.arange(len(codes)), self.slots[which]] = self.choices[which]
        return codes
