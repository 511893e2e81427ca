"""The grid: a text as slots with candidates, and codes turned back into texts."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from math import floor
from typing import NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from ..attacks.types import DROP, KEEP, UNKNOWN, Bools, Change, Codes, Example, Floats, Grid, Text
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
    that may change (at least one word always may), `why_empty` says why there is no slot, `space` proposes anew.
    """

    def __init__(
        self,
        text: Text,
        words: Mapping[int, Sequence[Word]],
        slots: Sequence[Slot],
        share: float = 1.0,
        why_empty: str = "",
        space: Callable[[Sequence[Example]], list[Grid]] | None = None,
    ) -> None:
        self.text = text
        self.words = words
        self.gain: Floats | None = None
        self.attention: Floats | None = None
        self.slots = tuple(slots)
        self.n_words = sum(map(len, words.values()))
        self.why_empty = "" if slots else why_empty or "no slot was given"
        # 0.29 * 100 is 28.999...: the share asked for is meant, not its nearest float.
        self.most_changed = max(1, floor(share * self.n_words + 1e-9))
        self.candidates = tuple(slot.candidates for slot in slots)
        self.slot_words = tuple(text[slot.field][slot.start : slot.end] for slot in slots)
        self.sizes: NDArray[np.int64] = np.array([len(c) for c in self.candidates], dtype=np.int64)
        self._check()
        self._space = space
        self._limits = self.sizes.astype(np.int16)

    @cached_property
    def _drops(self) -> list[tuple[int, int]]:
        return [_with_space(self.text[slot.field], slot.start, slot.end) for slot in self.slots]

    def decode(self, codes: Codes) -> list[Text]:
        """One text per row. A row of zeros gives the original strings themselves."""
        if codes.ndim != 2 or codes.shape[1] != len(self.slots) or codes.dtype != np.int16:
            raise ValueError(f"codes must be int16[n, {len(self.slots)}], got {codes.dtype}{list(codes.shape)}")
        rows, columns = codes.nonzero()
        places, values = columns.tolist(), codes[rows, columns].tolist()
        changed = [len(places)] if len(codes) == 1 else np.bincount(rows, minlength=len(codes)).tolist()
        texts, end = [], 0
        try:
            for n in changed:
                at, end = end, end + n
                texts.append(self._write(places[at:end], values[at:end]) if n else self.text)
        except IndexError:  # told in full only when it happens
            self._check_range(codes)
            raise
        return texts

    def legal(self, codes: Codes) -> Bools:
        """Whether each row changes few enough words. Probes change none."""
        if codes.shape[1] <= self.most_changed:
            return np.ones(len(codes), bool)
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

    def around(self, code: Codes, slots: Sequence[int] | None = None) -> tuple[WordGrid, Codes]:
        """The grid whose candidates are proposed in the text that `code` gives, and the code of that text in it.

        Original, slots and the share that may change stay as they are: zeros still give the original, and every change
        is still counted from it. A changed slot keeps its present word as its first candidate; a slot for which the
        space has nothing in the new text keeps its candidates, and so does one not among `slots` (all, if left out). A
        grid made by hand proposes nothing new.
        """
        if (code < KEEP).any():
            raise ValueError(f"{code.tolist()} leaves words out, and a probe has no candidates; give a code of 0 and above")
        if self._space is None:
            return self, code
        now = [slot.candidates[choice - 1] if choice else "" for slot, choice in zip(self.slots, code.tolist(), strict=True)]
        starts = self._moved(now)
        wanted = set(range(len(self.slots)) if slots is None else slots)
        text = self.decode(code[None])[0]
        spans: dict[int, list[int]] = {field: [0] for field in self.words}  # what stays, as starts and ends in turn
        for place in sorted(wanted):
            word = now[place] or self.slot_words[place]
            spans[self.slots[place].field] += [starts[place], starts[place] + len(word)]
        stays = tuple(
            (field, start, end)
            for field, ends in spans.items()
            for start, end in zip(ends[::2], [*ends[1::2], len(text[field])], strict=True)
            if start < end
        )
        edited = Example("", text, 0, editable=tuple(self.words), protected=stays)
        found = cast(WordGrid, self._space([edited])[0]).slots
        proposed = {(slot.field, slot.start): slot.candidates for slot in found}
        fresh = []
        for slot, word, start, present in zip(self.slots, self.slot_words, starts, now, strict=True):
            others = (other for other in proposed.get((slot.field, start), slot.candidates) if other != word)
            offered = tuple(dict.fromkeys([*filter(None, [present]), *others]))
            fresh.append(slot._replace(candidates=offered or slot.candidates))
        share = self.most_changed / max(1, self.n_words)
        return WordGrid(self.text, self.words, fresh, share, space=self._space), np.minimum(code, 1)

    def _moved(self, now: Sequence[str]) -> list[int]:
        """Where each slot's word starts once these words stand in the slots; an empty one keeps the original."""
        shift = dict.fromkeys(self.words, 0)  # how far the text of a field has moved so far
        starts = []
        for slot, word, present in zip(self.slots, self.slot_words, now, strict=True):
            starts.append(slot.start + shift[slot.field])
            shift[slot.field] += len(present) - len(word) if present else 0
        return starts

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
        slots = self.slots
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
            elif value != DROP:
                raise IndexError(value)
            else:
                start, end = self._drops[place]
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
            if not 0 < len(found) <= MOST or len({word, *found}) <= len(found):
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
