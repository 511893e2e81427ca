"""Goals: the only readers of raw replies. Each says which rows are a success, and by how much."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .types import Example, Floats, Gives, Verdict

Labels = NDArray[np.int64]


def _classes(rows: Sequence[NDArray[Any]], wanted: Labels, what: str) -> Floats:
    scores = np.array(rows, np.float64)
    known = scores.shape[1] if scores.ndim == 2 else 0
    if known < 2 or wanted.min() < 0 or wanted.max() >= known:
        wrong = next(label for label in wanted.tolist() if known < 2 or not 0 <= label < known)
        raise ValueError(
            f"{what} {wrong} does not fit replies of shape {scores.shape[1:]}: classes are numbered from 0; "
            "check the label column, or pass the class names"
        )
    return scores


def _true_classes(examples: Sequence[Example]) -> Labels:
    found = [int(example.target) for example in examples]
    for label, example in zip(found, examples, strict=True):
        if label != example.target:
            raise ValueError(
                f"label {example.target} is not a class: classes are whole numbers; for values use Shift(delta)"
            )
    return np.array(found)


def _ahead(scores: Floats, labels: Labels) -> tuple[Floats, Floats]:
    """By how much the best of the other classes is ahead of each row's label, and the score of that label."""
    places = np.arange(len(scores))
    own = scores[places, labels]
    others = scores.copy()
    others[places, labels] = -np.inf
    return others.max(1) - own, own


def _by_label(fooled: NDArray[np.bool_]) -> Verdict:
    return Verdict(fooled, np.where(fooled, 1.0, -1.0), fooled.astype(np.float64))


@dataclass(frozen=True)
class Misclassify:
    """Any label but the true one. The label of a tie is its first class, as for a victim that gives labels only."""

    @property
    def name(self) -> str:
        return "misclassify"

    def accepts(self, gives: Gives) -> bool:
        return gives in ("scores", "label")

    def __call__(self, rows: Sequence[NDArray[Any]], examples: Sequence[Example], gives: Gives) -> Verdict:
        true = _true_classes(examples)
        if gives == "label":
            return _by_label(np.array(rows).astype(np.int64).reshape(-1) != true)
        scores = _classes(rows, true, "true class")
        margin, own = _ahead(scores, true)
        return Verdict(scores.argmax(1) != true, margin, 1 - own)


@dataclass(frozen=True)
class Target:
    """One wanted label. An example whose clean text already has it is skipped."""

    label: int

    @property
    def name(self) -> str:
        return f"target({self.label})"

    def accepts(self, gives: Gives) -> bool:
        return gives in ("scores", "label")

    def __call__(self, rows: Sequence[NDArray[Any]], examples: Sequence[Example], gives: Gives) -> Verdict:
        if gives == "label":
            return _by_label(np.array(rows).astype(np.int64).reshape(-1) == self.label)
        wanted = np.full(len(rows), self.label)
        scores = _classes(rows, wanted, "target class")
        behind, own = _ahead(scores, wanted)
        return Verdict(scores.argmax(1) == self.label, -behind, own)


@dataclass(frozen=True)
class Shift:
    """Move a regression victim's value by more than `delta` from the example's own: up when positive, down when negative."""

    delta: float

    def __post_init__(self) -> None:
        if not self.delta or not np.isfinite(self.delta):
            raise ValueError(f"Shift({self.delta}) moves nothing: give a finite distance, negative to move down")

    @property
    def name(self) -> str:
        return f"shift({self.delta:g})"

    def accepts(self, gives: Gives) -> bool:
        return gives == "value"

    def __call__(self, rows: Sequence[NDArray[Any]], examples: Sequence[Example], gives: Gives) -> Verdict:
        here = np.array([float(example.target) for example in examples])
        moved = (np.array(rows, np.float64).reshape(-1) - here) * np.sign(self.delta)
        margin = moved - abs(self.delta)
        return Verdict(margin > 0, margin, moved)
