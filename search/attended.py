"""Attention times hashing, then word by word: the attack of ranking/attended.py that asks nothing it need not know."""

from __future__ import annotations

import numpy as np

from ..attacks.types import Ask, Asking, Grid, Search
from ..ranking.attended import WINDOW, masked, weighted
from ..ranking.lsh import AS_PRINTED, Hashing, speakers


def attended(hashing: Hashing = AS_PRINTED, window: int | None = WINDOW) -> Search:
    """Slots without attention are not asked about, a success ends it at any time, and no reply is asked for again."""

    def run(grid: Grid, rng: np.random.Generator) -> Asking:
        best = np.zeros(len(grid.sizes), np.int16)
        clean = yield Ask(best[None])  # known already: costs nothing
        level = clean.score[0]
        weights = masked(grid)
        codes = yield from speakers(grid, np.flatnonzero(weights > 0), hashing, rng, window)
        codes = codes[np.argsort(-weights[codes.argmax(1)], kind="stable")]
        answers = yield Ask(codes, until_fooled=True)
        if answers.fooled.any():
            return
        gain = np.full(len(best), -np.inf)
        np.maximum.at(gain, codes.argmax(1), answers.score - level)
        known = {code.tobytes(): score for code, score in zip(codes, answers.score, strict=True)}
        worth = weighted(weights, gain)
        for slot in np.argsort(-worth, kind="stable")[: np.isfinite(worth).sum()]:
            codes = np.tile(best, (grid.sizes[slot], 1))
            codes[:, slot] = np.arange(1, grid.sizes[slot] + 1)
            scores = np.array([known.get(code.tobytes(), np.nan) for code in codes])
            fresh = np.isnan(scores)
            if fresh.any():
                answers = yield Ask(codes[fresh], until_fooled=True)
                if answers.fooled.any():
                    return
                scores[fresh] = answers.score
            top = scores.argmax()
            if scores[top] > level:
                best, level = codes[top], scores[top]

    about = "attention times one candidate per bucket, then word by word; slots without attention are left alone"
    return Search(f"attended-{hashing.name}", "scores", about, run)
