"""A genetic search (Alzantot et al. 2018): parents drawn by score, their words mixed, then one more word replaced."""

from __future__ import annotations

from collections.abc import Generator

import numpy as np

from ..attacks.types import Ask, Asking, Floats, Grid, Reply, Search
from .moves import Slots
from .population import Members, draw_slots, perturbed, scores_of

MEMBERS, GENERATIONS, TEMPERATURE = 60, 20, 0.3  # as printed; the released notebook runs 30 generations


def parents(scores: Floats, n: int, rng: np.random.Generator, temperature: float = TEMPERATURE) -> Slots:
    """Members drawn n times, the better the likelier; a temperature below 0 favours the worse."""
    share = scores / temperature
    odds = np.exp(share - share.max())
    return rng.choice(len(scores), n, p=odds / odds.sum())


def genetic(whole: bool = False, temperature: float = TEMPERATURE, tries: int | None = 1, name: str = "genetic") -> Search:
    """`tries`: so many words of a member may fail to help before it stays as it is; None: all of them.

    With `whole` a generation is paid for in full, otherwise up to its first success.
    """

    def run(grid: Grid, rng: np.random.Generator) -> Asking:
        n = len(grid.sizes)
        codes = np.zeros((MEMBERS, n), np.int16)
        clean = yield Ask(codes[:1])  # known already: costs nothing
        found = yield from mutated(grid, (codes, np.full(MEMBERS, clean.score[0])), rng)
        for _ in range(GENERATIONS):
            if found is None:
                return
            codes, scores = found
            elite = scores.argmax()
            mothers, fathers = (parents(scores, MEMBERS - 1, rng, temperature) for _ in range(2))
            mixed = np.where(rng.random((MEMBERS - 1, n)) < 0.5, codes[mothers], codes[fathers])
            free = yield Ask(mixed, pay=False)
            mixed = np.where(free.allowed[:, None], mixed, codes[mothers])  # a child that no rule allows is its mother
            values = yield from scores_of(mixed, whole)
            if values is None:
                return
            found = yield from mutated(grid, (mixed, values), rng)
            if found is not None:
                found = np.vstack([codes[elite], found[0]]), np.append(scores[elite], found[1])

    def mutated(grid: Grid, members: Members, rng: np.random.Generator) -> Generator[Ask, Reply, Members | None]:
        """Each member with one more word changed, as far as that helps; None once one fools."""
        free = members[0] == 0
        for _ in range(len(grid.sizes) if tries is None else tries):
            slots = draw_slots(free, grid.sizes, rng)
            if (slots < 0).all():
                break
            found = yield from perturbed(grid, members, slots, whole)
            if found is None:
                return None
            members, moved = found
            drawn = np.flatnonzero(slots >= 0)
            free[drawn, slots[drawn]] = False
            free[moved] = False
        return members

    about = f"{MEMBERS} texts, {GENERATIONS} generations, parents by score ({temperature:+g}); "
    paying = "pays for whole generations" if whole else "pays up to the first success"
    return Search(name, "scores", about + paying, run)
