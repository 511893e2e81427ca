"""Labels only: joint moves until the label flips, bisection to the words it needs, then texts that change fewer words and stay
nearer to the original, chosen by what the labels so far tell about every swap. No text is asked twice."""

from __future__ import annotations

from collections.abc import Generator

import numpy as np

from ..attacks.types import Answers, Ask, Asking, Codes, Floats, Grid, Reply, Search
from .belief import Belief
from .moves import fitted, prefixes, without

LOST = 200  # draws of the whole text that leave the label as it is: the text is taken to hold
STALE = 30  # draws in a row that repeat a text: the space is taken to be exhausted
FEWER = 40  # texts of fewer words that do not flip the label, before that is given up
NEARER = 15  # and nearer texts
LOOKED = 4  # how many of the most promising nearer texts are encoded before one is paid
BLOCK = 16  # rows encoded ahead of payment
HOPE = 0.02  # the least chance of flipping that is worth a query
WARMTH = 1.0  # spread of draws from the belief, in its own deviations


class _Known:
    """What is known: which codes flip (a refused one never will), how near they are, and the belief that grew from it."""

    def __init__(self, grid: Grid, damage: Floats) -> None:
        self.damage = damage
        self.belief = Belief(grid)
        self.flips: dict[bytes, bool] = {bytes(2 * len(grid.sizes)): False}

    def near(self, answers: Answers, codes: Codes) -> Floats:
        """Similarity; without an encoder, less the further down the lists the swaps stand."""
        worn = np.array([self.damage[self.belief.swaps(code)[:-1]].sum() for code in codes])
        return np.where(np.isnan(answers.similarity), -worn, answers.similarity)

    def first(self, codes: Codes) -> Generator[Ask, Reply, int | None]:
        """Pay for what is new, row by row, up to the first that flips the label; its row."""
        fresh: dict[bytes, int] = {}
        sure = None
        for row, code in enumerate(codes):
            known = self.flips.get(code.tobytes())
            if known:
                sure = row
                break
            if known is None:
                fresh.setdefault(code.tobytes(), row)
        rows = list(fresh.values())
        for start in range(0, len(rows), BLOCK):
            block = rows[start : start + BLOCK]
            answers = yield Ask(codes[block], until_fooled=True, encode=True)
            for row, allowed, answered, fooled in zip(block, answers.allowed, answers.answered, answers.fooled, strict=True):
                if answered:
                    self.belief.learn(codes[row], bool(fooled))
                if answered or not allowed:
                    self.flips[codes[row].tobytes()] = bool(fooled)
            if answers.fooled.any():
                return block[int(answers.fooled.argmax())]
        return sure


def _run(grid: Grid, rng: np.random.Generator) -> Asking:
    known = _Known(grid, (yield from _damage(grid)))
    code = yield from _flip(grid, known, rng)
    if code is None:
        return
    code = yield from _needed(known, code)
    code = yield from _fewer(known, code, rng)
    yield from _nearer(known, code)


def _damage(grid: Grid) -> Generator[Ask, Reply, Floats]:
    """How far each swap alone moves the text; without an encoder a little more for every place down the list."""
    slots = np.repeat(np.arange(len(grid.sizes)), grid.sizes)
    codes = np.zeros((len(slots), len(grid.sizes)), np.int16)
    codes[np.arange(len(slots)), slots] = np.concatenate([np.arange(1, size + 1) for size in grid.sizes])
    answers = yield Ask(codes, pay=False, encode=True)
    return np.asarray(np.where(np.isnan(answers.similarity), 1 + codes.max(1) / 1000, 1 - answers.similarity), np.float64)


def _flip(grid: Grid, known: _Known, rng: np.random.Generator) -> Generator[Ask, Reply, Codes | None]:
    """A text that flips the label: twice as many words each time, then all swaps that may help, as the belief is drawn."""
    n = len(grid.sizes)
    lengths = np.unique(np.minimum(2 ** np.arange(n.bit_length() + 1), n))
    if grid.gain is None:
        codes = prefixes(rng.permutation(n), rng.integers(1, grid.sizes + 1).astype(np.int16), lengths)
    else:
        codes = np.array([known.belief.strongest(known.belief.mean[:-1], length) for length in lengths])
    hit = yield from _fit(known, codes)
    if hit is not None:
        return hit
    stale = 0
    for _ in range(LOST):
        before = len(known.flips)
        value = _draw(known.belief, rng)
        hit = yield from _fit(known, known.belief.strongest(value, len(np.unique(known.belief.slots[value > 0])))[None])
        if hit is not None:
            return hit
        stale = stale + 1 if len(known.flips) == before else 0
        if stale == STALE:
            return None
    return None


def _draw(belief: Belief, rng: np.random.Generator) -> Floats:
    """Influences as they may be."""
    return belief.mean[:-1] + WARMTH * belief.deviation * rng.normal(size=len(belief.slots))


def _fit(known: _Known, codes: Codes) -> Generator[Ask, Reply, Codes | None]:
    answers = yield Ask(codes, pay=False)
    for row in (~answers.allowed).nonzero()[0]:
        codes[row] = yield from fitted(codes[row], np.ones(codes.shape[1]))
    hit = yield from known.first(codes)
    return None if hit is None else codes[hit]


def _needed(known: _Known, code: Codes) -> Generator[Ask, Reply, Codes]:
    """Only words without which the label flips back: the last word of the shortest flipping prefix is one of them."""
    swaps = known.belief.swaps(code)[:-1]
    rest = known.belief.slots[swaps[np.argsort(-known.belief.mean[swaps], kind="stable")]]
    kept = np.zeros_like(code)
    while True:
        low, high = -1, len(rest)
        while high - low > 1:
            middle = (low + high) // 2
            trial = kept.copy()
            trial[rest[:middle]] = code[rest[:middle]]
            hit = yield from known.first(trial[None])
            low, high = (low, middle) if hit is not None else (middle, high)
        if not high:
            return kept
        kept[rest[high - 1]] = code[rest[high - 1]]
        rest = rest[: high - 1]


def _fewer(known: _Known, code: Codes, rng: np.random.Generator) -> Generator[Ask, Reply, Codes]:
    """One word less, of the strongest swaps that a draw from the belief gives, until that has failed often enough."""
    belief = known.belief
    tries = stale = 0
    value = belief.mean[:-1]
    while tries < FEWER and stale < STALE and (code > 0).sum() > 1:
        child = belief.strongest(value, int((code > 0).sum()) - 1)
        value = _draw(belief, rng)
        if child.tobytes() in known.flips:
            stale += 1
            continue
        hit = yield from known.first(child[None])
        tries, stale = tries + 1, 0
        if hit is not None:
            code = yield from _needed(known, child)
            tries, value = 0, belief.mean[:-1]
    return code


def _nearer(known: _Known, code: Codes) -> Asking:
    """As many words, a nearer text: one of them exchanged, by the chance of a flip times what is gained."""
    tries, far = 0, set[bytes]()
    while tries < NEARER:
        codes = np.concatenate([code[None], _exchanges(known, code, far)[:LOOKED]])
        if len(codes) == 1:
            return
        answers = yield Ask(codes, pay=False, encode=True)
        near = known.near(answers, codes)
        far.update(row.tobytes() for row in codes[near <= near[0]])
        codes = codes[near > near[0]][:1]
        if len(codes):
            hit = yield from known.first(codes)
            code, tries = (code, tries + 1) if hit is None else (codes[0], 0)


def _exchanges(known: _Known, code: Codes, far: set[bytes]) -> Codes:
    """The code with one swap given up for another that alone does less damage; the most promising first."""
    belief = known.belief
    trials, worth = [], []
    for slot in code.nonzero()[0]:
        base = without(code, np.array([slot]))
        gain = known.damage[belief.first[slot] + code[slot] - 1] - known.damage
        chance = belief.chance(base)
        fit = (base[belief.slots] == 0) & (gain > 0) & (chance > HOPE)
        trials.append(belief.with_each(base, fit))
        worth.append((chance * gain)[fit])
    codes = np.concatenate(trials)[np.argsort(-np.concatenate(worth), kind="stable")]
    new = [row.tobytes() not in known.flips and row.tobytes() not in far for row in codes]
    return np.asarray(codes[np.array(new, bool)], np.int16)


hard_label = Search("hard-label", "label", "joint moves, bisection, then fewer and nearer words by what labels tell", _run)
