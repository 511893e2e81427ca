"""A prior that learns along the way: what finished examples showed about words guides the next ones, at no query."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ..attacks.record import Record
from ..attacks.types import Example, Floats, Grid, Text
from ..spaces.grid import Slot, WordGrid
from ..spaces.tokens import words
from .prior import Prior, table

SPREAD = 0.7  # what a word's influence may differ from the prior's by, in log-odds
NOISE = 0.5  # what a sum over words misses, per changed word
SURE = 1.0  # log-odds by which a changed label is taken to have moved when there are no scores
LEAST = 1e-6


class Learning:
    """A prior plus corrections, one per word and class, fitted to the successes of earlier generations.

    Each success says how far all its swaps together moved the victim (without scores: that they moved it far enough). A
    ridge regression spreads what the prior did not foresee over the words that came and went. Examples are taken in
    generations of a fixed size, in the order given, and a generation is guided by the ones before it alone: so width, batch
    and resuming change no result, but the order of the examples does.
    """

    def __init__(self, prior: Prior | None, generation: int) -> None:
        if generation < 1:
            raise ValueError(
                f"a generation holds at least 1 example, got {generation}; 0 on the command line learns nothing"
            )
        self.prior, self.generation = prior, generation
        self.labels = prior.labels if prior else ()
        self.data = prior.data if prior else ()
        self.name = f"{prior.name if prior else 'nothing'}+learning({generation})"
        self._words: dict[tuple[str, int], int] = {}  # (word, class) to its column
        self._rows: list[dict[int, float]] = []  # one per success: columns and counts
        self._moved: list[float] = []  # log-odds, NaN where there were no scores
        self._foreseen: list[float] = []
        self._learnt: Floats = np.zeros(0)

    def seen(self, texts: Sequence[Text]) -> int:
        return self.prior.seen(texts) if self.prior else 0

    def __call__(self, examples: Sequence[Example], grids: Sequence[Grid], wanted: int | None) -> list[Floats]:
        if self.prior:
            before = self.prior(examples, grids, wanted)
        else:
            before = [table(grid, np.zeros(int(grid.sizes.sum()))) for grid in grids]
        found = []
        for example, grid, gain in zip(examples, grids, before, strict=True):
            # A goal without a wanted label moves to whichever class is nearest; with two classes that is the other one.
            other = wanted if wanted is not None else 1 - int(example.target) if int(example.target) < 2 else 0
            old = np.repeat([self._influence(word, example, other) for word in grid.slot_words], grid.sizes)
            new = [self._influence(candidate, example, other) for slot in grid.candidates for candidate in slot]
            found.append(gain + table(grid, np.asarray(new) - old) if len(new) else gain)
        return found

    def take_in(self, records: Sequence[Record]) -> None:
        """The end of a generation: its records, in the order of the examples."""
        for record in records:
            if record.status != "fooled" or not isinstance(record.label_after, int):
                continue
            true, other = int(record.target), record.label_after
            row: dict[int, float] = {}
            for change in record.changes:
                for word, sign in ((change.after, 1.0), (change.before, -1.0)):
                    for label, side in ((other, 1.0), (true, -1.0)):
                        column = self._words.setdefault((word.lower(), label), len(self._words))
                        row[column] = row.get(column, 0.0) + sign * side
            self._rows.append(row)
            self._moved.append(_moved(record, true, other))
            self._foreseen.append(self._expected(record, other))
        self._fit()

    def _expected(self, record: Record, other: int) -> float:
        """What the prior alone says of a record's swaps, each by itself."""
        if not self.prior:
            return 0.0
        slots = [Slot(c.field, c.position, c.start, c.start + len(c.before), (c.after,)) for c in record.changes]
        fields = sorted({slot.field for slot in slots})
        grid = WordGrid(record.text, {field: words(record.text[field]) for field in fields}, slots)
        example = Example(record.id, record.text, record.target, editable=tuple(fields))
        return float(self.prior([example], [grid], other)[0].sum())

    def _fit(self) -> None:
        if not self._rows:
            return
        changes: NDArray[np.float64] = np.zeros((len(self._rows), len(self._words)))
        for at, row in enumerate(self._rows):
            changes[at, list(row)] = list(row.values())
        foreseen, moved = np.array(self._foreseen), np.array(self._moved)
        scored = ~np.isnan(moved)
        # Log-odds of the victim per unit of the prior, as far as scores tell.
        scale = float((moved[scored] * foreseen[scored]).sum() / max(float((foreseen[scored] ** 2).sum()), LEAST))
        scale = scale if scale > LEAST else 1.0
        missed = np.where(scored, moved - scale * foreseen, np.maximum(SURE - foreseen, 0))
        size = np.abs(changes).sum(1)
        alike = SPREAD**2 * changes @ changes.T + np.diag(NOISE**2 * np.maximum(size, 1))
        self._learnt = SPREAD**2 * changes.T @ np.linalg.solve(alike, missed) / scale

    def _influence(self, word: str, example: Example, other: int) -> float:
        total = 0.0
        for label, side in ((other, 1.0), (int(example.target), -1.0)):
            column = self._words.get((word.lower(), label))
            if column is not None and column < len(self._learnt):
                total += side * float(self._learnt[column])
        return total


def _moved(record: Record, true: int, other: int) -> float:
    if record.scores_before is None or record.scores_after is None:
        return float("nan")
    before, after = (np.log(np.maximum(np.array(row), LEAST)) for row in (record.scores_before, record.scores_after))
    return float((after[other] - after[true]) - (before[other] - before[true]))
