"""TextFooler's substitution: slot by slot in a ranking's order; of the substitutes that fool, the most similar text."""

from __future__ import annotations

import numpy as np

from ..attacks.types import Ask, Asking, Grid, Ranking, Search


def most_similar(rank: Ranking, whole_slots: bool = False) -> Search:
    """Similarity costs nothing, so candidates are paid for from the most similar on: the first that fools is the choice.

    With `whole_slots` every allowed candidate of a slot is paid for; the choice is the same. Without a guide encoder all
    are equally similar, and the space's order decides.
    """

    def run(grid: Grid, rng: np.random.Generator) -> Asking:
        order = yield from rank.run(grid, rng)
        best = np.zeros(len(grid.sizes), np.int16)
        clean = yield Ask(best[None])  # known already: costs nothing
        level = clean.score[0]
        for slot in order:
            codes = np.tile(best, (grid.sizes[slot], 1))
            codes[:, slot] = np.arange(1, grid.sizes[slot] + 1)
            free = yield Ask(codes, pay=False, encode=True)
            nearest = np.argsort(-free.similarity, kind="stable")
            codes = codes[nearest[free.allowed[nearest]]]
            if not len(codes):
                continue
            answers = yield Ask(codes, until_fooled=not whole_slots)
            if answers.fooled.any():
                return
            top = answers.score.argmax()
            if answers.score[top] > level:
                best, level = codes[top], answers.score[top]

    name = f"similar-{rank.name}" + ("-whole" if whole_slots else "")
    paying = "pays for every candidate of a slot" if whole_slots else "pays from the most similar up to the first success"
    return Search(name, "scores", f"word by word, order: {rank.name}; {paying}", run)
