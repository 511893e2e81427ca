"""Candidates proposed anew after an edit, for sources that look at the words around a slot."""

from __future__ import annotations

from typing import cast

import numpy as np

from ..attacks.types import KEEP, Codes, Example
from .grid import Slot, WordGrid
from .space import Space


def around(space: Space, grid: WordGrid, code: Codes) -> tuple[WordGrid, Codes]:
    """The grid whose candidates are proposed in the text that `code` gives, and the code of that text in it.

    Original, slots and the share that may change stay as they are: zeros still give the original, and every change is
    still counted from it. A changed slot keeps its present word as its first candidate; a slot for which the space has
    nothing in the new text keeps its candidates.
    """
    if (code < KEEP).any():
        raise ValueError(f"{code.tolist()} leaves words out, and a probe has no candidates; give a code of 0 and above")
    edited = Example("", grid.decode(code[None])[0], 0, editable=tuple(grid.words))
    proposed = {(slot.field, slot.start): slot.candidates for slot in cast(WordGrid, space([edited])[0]).slots}
    slots: list[Slot] = []
    shift = dict.fromkeys(grid.words, 0)  # how far the text of a field has moved so far
    for slot, word, choice in zip(grid.slots, grid.slot_words, code.tolist(), strict=True):
        now = slot.candidates[choice - 1 : choice] if choice else ()
        fresh = proposed.get((slot.field, slot.start + shift[slot.field]), slot.candidates)
        slots.append(slot._replace(candidates=tuple(dict.fromkeys((*now, *(other for other in fresh if other != word))))))
        shift[slot.field] += len(now[0]) - len(word) if now else 0
    share = grid.most_changed / max(1, grid.n_words)
    return WordGrid(grid.text, grid.words, slots, share), np.minimum(code, 1)
