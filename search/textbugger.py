"""TextBugger's order: sentences by what leaving them out does, then the words of one sentence, then the next sentence."""

from __future__ import annotations

from collections.abc import Generator

import numpy as np
import regex
from numpy.typing import NDArray

from ..attacks.types import DROP, Ask, Asking, Grid, Reply, Search
from ..ranking.probes import probes
from .moves import Slots

# A mark that ends a sentence, quotes or brackets that close after it, and a blank; or a line break.
END = regex.compile(r"""[.!?…]+["'”’)\]]*\s+|\s*(?:\n|<br\s*/?>)\s*""")


def sentences(grid: Grid) -> NDArray[np.int64]:
    """The number of the sentence that each slot stands in. No sentence reaches over two fields."""
    places = grid.changes(np.ones(len(grid.sizes), np.int16))
    (text,) = grid.decode(np.zeros((1, len(grid.sizes)), np.int16))
    ends = {field: [match.end() for match in END.finditer(text[field])] for field in {place.field for place in places}}
    found = [(place.field, int(np.searchsorted(ends[place.field], place.start, side="right"))) for place in places]
    return np.unique(np.array(found).reshape(-1, 2), axis=0, return_inverse=True)[1].reshape(-1)


def _by_loss(grid: Grid) -> Generator[Ask, Reply, list[Slots]]:
    """The slots of each sentence, those first whose sentence is missed most. A single sentence costs no query."""
    number = sentences(grid)
    groups = [np.flatnonzero(number == one) for one in range(number.max() + 1)]
    if len(groups) < 2:
        return groups
    lost = np.where(number == np.arange(len(groups))[:, None], DROP, 0).astype(np.int16)
    answers = yield Ask(lost)
    return [groups[one] for one in np.argsort(-answers.score, kind="stable")]


def by_sentence(whole_slots: bool = False) -> Search:
    """With `whole_slots` every candidate is paid for and the best is put in even where it does not help, as printed."""

    def run(grid: Grid, rng: np.random.Generator) -> Asking:
        best = np.zeros(len(grid.sizes), np.int16)
        clean = yield Ask(best[None])  # known already: costs nothing
        level = clean.score[0]
        for slots in (yield from _by_loss(grid)):
            if len(slots) > 1:
                lost = yield Ask(probes(grid, DROP)[slots])
                slots = slots[np.argsort(-lost.score, kind="stable")]
            for slot in slots:
                codes = np.tile(best, (grid.sizes[slot], 1))
                codes[:, slot] = np.arange(1, grid.sizes[slot] + 1)
                answers = yield Ask(codes, until_fooled=not whole_slots)
                if answers.fooled.any():
                    return
                top = answers.score.argmax()
                if answers.answered[top] and (whole_slots or answers.score[top] > level):
                    best, level = codes[top], answers.score[top]

    paying = "pays for every candidate of a slot" if whole_slots else "pays up to the first success"
    return Search("sentences" + "-whole" * whole_slots, "scores", f"sentence by sentence, then word by word; {paying}", run)
