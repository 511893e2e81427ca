"""Leave-one-out: how much the true class loses when a word is left out, or made unknown. One query per slot."""

from __future__ import annotations

import numpy as np

from ..attacks.types import DROP, UNKNOWN, Ask, Codes, Grid, Ordering, Ranking


def probes(grid: Grid, probe: int) -> Codes:
    """One row per slot, that slot probed and everything else as it was."""
    return np.diag(np.full(len(grid.sizes), probe, np.int16))


def _ranking(name: str, probe: int, about: str) -> Ranking:
    def run(grid: Grid, rng: np.random.Generator) -> Ordering:
        answers = yield Ask(probes(grid, probe))
        return np.argsort(-answers.score, kind="stable")

    return Ranking(name, "scores", about, run)


# TextFooler's ranking (Jin et al. 2020) and its ports probe every word. Words without a candidate are never replaced, so
# asking about them changes no decision: only slots are probed.
by_deletion = _ranking("deletion", DROP, "the words whose removal hurts most; one query per slot")
by_unknown = _ranking("unknown", UNKNOWN, "the words that hurt most when unknown; one query per slot")
