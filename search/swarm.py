"""Particle swarm (Zang et al. 2020): texts that take over words of their own best and of the swarm's best, and mutate."""

from __future__ import annotations

from collections.abc import Callable, Generator

import numpy as np

from ..attacks.types import Ask, Asking, Codes, Floats, Grid, Reply, Search
from .population import Members, best_trials, draw_slots, perturbed, scores_of

PARTICLES, ITERATIONS, FASTEST = 60, 20, 3.0
MOST_WEIGHT = 10  # a slot is drawn by the number of its candidates, up to this

Mutated = Generator[Ask, Reply, Members | None]
Mutate = Callable[[Grid, Members, np.random.Generator, bool], Mutated]
Turn = Callable[[Codes, Codes, Floats, np.random.Generator], Codes]


def schedule(step: int, steps: int = ITERATIONS) -> tuple[float, float, float]:
    """Inertia, and the chances to move towards a particle's own best and towards the swarm's."""
    gone = step / steps
    return 0.6 * (1 - gone) + 0.2, 0.8 - 0.6 * gone, 0.2 + 0.6 * gone


def copied(particles: Codes, best: Codes, chance: Floats, rng: np.random.Generator) -> Codes:
    """Particles that copy each word of the best with its chance, as released with the paper."""
    return np.where(rng.random(chance.shape) < chance, best, particles)


def swapped(particles: Codes, best: Codes, chance: Floats, rng: np.random.Generator) -> Codes:
    """The best itself with each word of the particle at its chance: the roles swapped, as in the TextAttack port."""
    return np.where(rng.random(chance.shape) < chance, particles, best)


def one_slot(grid: Grid, members: Members, rng: np.random.Generator, whole: bool) -> Mutated:
    """A slot is drawn first, and only its candidates are paid for; the best stays if it is better."""
    slots = draw_slots(members[0] == 0, np.minimum(grid.sizes, MOST_WEIGHT), rng)
    found = yield from perturbed(grid, members, slots, whole)
    return None if found is None else found[0]


def every_slot(grid: Grid, members: Members, rng: np.random.Generator, whole: bool) -> Mutated:
    """All candidates of all unchanged slots are paid for, then a slot is drawn by what its best one gains.

    Where none gains any slot is drawn, so a member may get worse.
    """
    codes, scores = members
    owners, slots = np.nonzero(codes == 0)
    found = yield from best_trials(grid, codes, owners, slots, whole)
    if found is None:
        return None
    gain = np.full(codes.shape, -np.inf)
    gain[owners, slots] = found[1] - scores[owners]
    known = np.isfinite(gain)
    lost = known & ~(gain > 0).any(1, keepdims=True)
    weight = np.where(known, np.maximum(gain, 0), 0.0) + lost
    totals = weight.cumsum(1)
    drawn = (totals > rng.random((len(codes), 1)) * totals[:, -1:]).argmax(1)
    pairs = np.full(codes.shape, -1)
    pairs[owners, slots] = np.arange(len(owners))
    chosen = pairs[np.arange(len(codes)), drawn]
    some = np.flatnonzero(known.any(1))
    codes, scores = codes.copy(), scores.copy()
    codes[some], scores[some] = found[0][chosen[some]], found[1][chosen[some]]
    return codes, scores


def swarm(whole: bool = False, turn: Turn = copied, mutate: Mutate = one_slot, name: str = "swarm") -> Search:
    """With `whole` a generation is paid for in full, otherwise up to its first success."""

    def run(grid: Grid, rng: np.random.Generator) -> Asking:
        n = len(grid.sizes)
        start = np.zeros((PARTICLES, n), np.int16)
        clean = yield Ask(start[:1])  # known already: costs nothing
        found = yield from mutate(grid, (start, np.full(PARTICLES, clean.score[0])), rng, whole)
        if found is None:
            return
        codes, scores = found
        velocity = np.repeat(rng.uniform(-FASTEST, FASTEST, (PARTICLES, 1)), n, axis=1)
        own, best_scores = codes.copy(), scores.copy()
        for step in range(ITERATIONS):
            inertia, *chances = schedule(step)
            lead = own[best_scores.argmax()]
            pull = np.where(codes == own, -FASTEST, FASTEST) + np.where(codes == lead, -FASTEST, FASTEST)
            velocity = inertia * velocity + (1 - inertia) * pull
            moved = codes
            for best, chance in zip((own, np.broadcast_to(lead, codes.shape)), chances, strict=True):
                goes = rng.random((PARTICLES, 1)) < chance
                moved = np.where(goes, turn(moved, best, 1 / (1 + np.exp(-velocity)), rng), moved)
            free = yield Ask(moved, pay=False)
            codes = np.where(free.allowed[:, None], moved, codes)  # where no rule allows the move, the particle stays
            values = yield from scores_of(codes, whole)
            if values is None:
                return
            scores = values
            changed = np.count_nonzero(codes, axis=1) / grid.n_words
            some = np.flatnonzero(rng.random(PARTICLES) < 1 - 2 * changed)
            found = yield from mutate(grid, (codes[some], scores[some]), rng, whole)
            if found is None:
                return
            codes[some], scores[some] = found
            better = scores > best_scores
            own[better], best_scores[better] = codes[better], scores[better]

    paying = "pays for whole generations" if whole else "pays up to the first success"
    about = f"{PARTICLES} particles, {ITERATIONS} iterations, {turn.__name__} words, {mutate.__name__}; {paying}"
    return Search(name, "scores", about, run)
