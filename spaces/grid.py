"""The grid: a text as slots with candidates, and codes turned back into texts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import floor
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..attacks.types import DROP, KEEP, UNKNOWN, Bools, Change, Codes, Floats, Text
from .tokens import Word

UNKNOWN_WORD = "[UNK]"
MOST = int(np.iinfo(np.int16).max)  # a code is an int16


class Slot(NamedTuple):
    field: int
    position: int  # which word of the field
    start: int
    end: int
    candidates: tuple[str, ...]


class WordGrid:
    """Word replacement in one text: implements `attacks.types.Grid`.

    `words` maps each editable field to its words, `slots` come in reading order, `share` is the largest share of words
    that may change (at least one word always may), `why_empty` says why there is no slot.
    """

    def __init__(
        self,
        text: Text,
        words: Mapping[int, Sequence[Word]],
        slots: Sequence[Slot],
        share: float = 1.0,
        why_empty: str = "",
    ) -> None:
        self.text = text
        self.words = words
        self.gain: Floats | None = None
        self.slots = tuple(slots)
        self.n_words = sum(map(len, words.values()))
        self.why_empty = "" if slots else why_empty or "no slot was given"
        # 0.29 * 100 is 28.999...: the share asked for is meant, not its nearest float.
        self.most_changed = max(1, floor(share * self.n_words + 1e-9))
        self.candidates = tuple(slot.candidates for slot in slots)
        self.slot_words = tuple(text[slot.field][slot.start : slot.end] for slot in slots)
        self.sizes: NDArray[np.int64] = np.array([len(c) for c in self.candidates], dtype=np.int64)
        self._check()
        self._limits = self.sizes.astype(np.int16)
        self._drops = [_with_space(text[slot.field], slot.start, slot.end) for slot in slots]

    def decode(self, codes: Codes) -> list[Text]:
        """One text per row. A row of zeros gives the original strings themselves."""
        if codes.ndim != 2 or codes.shape[1] != len(self.slots) or codes.dtype != np.int16:
            raise ValueError(f"codes must be int16[n, {len(self.slots)}], got {codes.dtype}{list(codes.shape)}")
        self._check_range(codes)
        rows, columns = np.nonzero(codes)
        values = codes[rows, columns].tolist()
        places = columns.tolist()
        ends = np.searchsorted(rows, np.arange(1, len(codes) + 1)).tolist()
        texts, at = [], 0
        for end in ends:
            texts.append(self._write(places[at:end], values[at:end]) if end > at else self.text)
            at = end
        return texts

    def legal(self, codes: Codes) -> Bools:
        """Whether each row changes few enough words. Probes change none."""
        few: Bools = np.count_nonzero(codes > KEEP, axis=1) <= self.most_changed
        return few

    def changes(self, code: Codes) -> list[Change]:
        """What one code does, in reading order; a dropped word becomes the empty string."""
        if code.shape != (len(self.slots),):
            raise ValueError(f"changes takes one code, int16[{len(self.slots)}], got {code.dtype}{list(code.shape)}")
        self._check_range(code[None])
        found = []
        for place in np.flatnonzero(code).tolist():
            slot, choice = self.slots[place], int(code[place])
            after = "" if choice == DROP else UNKNOWN_WORD if choice == UNKNOWN else slot.candidates[choice - 1]
            found.append(Change(slot.field, slot.position, slot.start, self.slot_words[place], after))
        return found

    def windows(self, codes: Codes, words: int) -> tuple[list[Text], list[Text]]:
        """Original and changed texts, both cut to the changed words and (words - 1) // 2 words on either side.

        Fields without a change stay whole, so a row of zeros gives whole texts.
        """
        if words < 1:
            raise ValueError(f"a window holds at least 1 word, got {words}")
        before, after = [], []
        for code, changed in zip(codes, self.decode(codes), strict=True):
            old, new = list(self.text), list(changed)
            for field, (start, end) in self._spans(np.flatnonzero(code).tolist(), (words - 1) // 2).items():
                # A dropped word takes a space with it, which may lie outside the window.
                edges = [self._drops[p] for p in np.flatnonzero(code == DROP) if self.slots[p].field == field]
                first, last = min([start, *(a for a, _ in edges)]), max([end, *(b for _, b in edges)])
                new[field] = new[field][first : len(new[field]) - (len(old[field]) - last)]
                old[field] = old[field][start:end]
            before.append(tuple(old))
            after.append(tuple(new))
        return before, after

    def _write(self, places: list[int], values: list[int]) -> Text:
        fields = list(self.text)
        slots, drops = self.slots, self._drops
        pieces: list[str] = []
        field, at = slots[places[0]].field, 0
        for place, value in zip(places, values, strict=True):
            slot_field, _, start, end, candidates = slots[place]
            if slot_field != field:
                pieces.append(self.text[field][at:])
                fields[field] = "".join(pieces)
                pieces, field, at = [], slot_field, 0
            if value > 0:
                pieces.append(self.text[field][at:start])
                pieces.append(candidates[value - 1])
            elif value == UNKNOWN:
                pieces.append(self.text[field][at:start])
                pieces.append(UNKNOWN_WORD)
            else:
                start, end = drops[place]
                pieces.append(self.text[field][at:start])  # empty when the word before took the space between them
            at = end
        pieces.append(self.text[field][at:])
        fields[field] = "".join(pieces)
        return tuple(fields)

    def _spans(self, places: list[int], reach: int) -> dict[int, tuple[int, int]]:
        spans: dict[int, tuple[int, int]] = {}
        ends: dict[int, list[int]] = {}
        for place in places:
            ends.setdefault(self.slots[place].field, []).append(self.slots[place].position)
        for field, positions in ends.items():
            words = self.words[field]
            first, last = max(0, positions[0] - reach), min(len(words) - 1, positions[-1] + reach)
            spans[field] = (words[first].start, words[last].end)
        return spans

    def _check(self) -> None:
        for slot, word in zip(self.slots, self.slot_words, strict=True):
            found = slot.candidates
            if not 0 < len(found) <= MOST or word in found or len(set(found)) != len(found):
                raise ValueError(
                    f"slot {slot.position} ({word!r}) of field {slot.field} needs 1 to {MOST} different candidates "
                    f"other than the word itself, got {len(found)}: {', '.join(found[:5])}"
                )

    def _check_range(self, codes: Codes) -> None:
        wrong = (codes > self._limits) | (codes < UNKNOWN)
        if wrong.any():
            row, place = np.argwhere(wrong)[0].tolist()
            raise ValueError(
                f"code {codes[row, place]} for slot {place} ({self.slot_words[place]!r}) is out of range: "
                f"it has {self.sizes[place]} candidates, so codes run from {UNKNOWN} to {self.sizes[place]}"
            )


def _with_space(text: str, start: int, end: int) -> tuple[int, int]:
    """A word's span with one adjoining space: the one after it, otherwise the one before it."""
    if text[end : end + 1].isspace():
        return start, end + 1
    if start and text[start - 1].isspace():
        return start - 1, end
    return start, end
