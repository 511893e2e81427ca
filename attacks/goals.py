"""Goals: the only readers of raw replies. Each says which rows are a success, and by how much."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .types import Example, Floats, Gives, Verdict


def _classes(rows: Sequence[NDArray[Any]], wanted: int, what: str) -> Floats:
    scores = np.array(rows, np.float64)
    if scores.ndim != 2 or scores.shape[1] < 2 or not 0 <= wanted < scores.shape[1]:
        raise ValueError(
            f"{what} {wanted} does not fit replies of shape {scores.shape[1:]}: classes are numbered from 0; "
            "check the label column, or pass the class names"
        )
    return scores


def _true_class(example: Example) -> int:
    if int(example.target) != example.target:
        raise ValueError(f"label {example.target} is not a class: classes are whole numbers; for values use Shift(delta)")
    return int(example.target)


def _against(scores: Floats, label: int) -> Floats:
    others = scores.copy()
    others[:, label] = -np.inf
    return np.asarray(others.max(1) - scores[:, label], np.float64)


@dataclass(frozen=True)
class Misclassify:
    """Any label but the true one. The label of a tie is its first class, as for a victim that gives labels only."""

    @property
    def name(self) -> str:
        return "misclassify"

    def accepts(self, gives: Gives) -> bool:
        return gives in ("scores", "label")

    def __call__(self, rows: Sequence[NDArray[Any]], example: Example, gives: Gives) -> Verdict:
        true = _true_class(example)
        if gives == "label":
            fooled = np.array(rows).astype(np.int64).reshape(-1) != true
            return Verdict(fooled, np.where(fooled, 1.0, -1.0), fooled.astype(np.float64))
        scores = _classes(rows, true, "true class")
        return Verdict(scores.argmax(1) != true, _against(scores, true), 1 - scores[:, true])


@dataclass(frozen=True)
class Target:
    """One wanted label. An example whose clean text already has it is skipped."""

    label: int

    @property
    def name(self) -> str:
        return f"target({self.label})"

    def accepts(self, gives: Gives) -> bool:
        return gives in ("scores", "label")

    def __call__(self, rows: Sequence[NDArray[Any]], example: Example, gives: Gives) -> Verdict:
        if gives == "label":
            fooled = np.array(rows).astype(np.int64).reshape(-1) == self.label
            return Verdict(fooled, np.where(fooled, 1.0, -1.0), fooled.astype(np.float64))
        scores = _classes(rows, self.label, "target class")
        return Verdict(scores.argmax(1) == self.label, -_against(scores, self.label), scores[:, self.label])


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

    def __call__(self, rows: Sequence[NDArray[Any]], example: Example, gives: Gives) -> Verdict:
        moved = (np.array(rows, np.float64).reshape(-1) - float(example.target)) * np.sign(self.delta)
        margin = moved - abs(self.delta)
        return Verdict(margin > 0, margin, moved)
