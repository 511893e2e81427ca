"""Any callable as a victim, with every reply checked before the engine sees it."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from ..attacks.account import Keep
from ..attacks.types import Floats, Gives, Text, Victim

TOLERANCE = 1e-3  # how far from one the scores of a text may add up: half precision stays inside


class VictimError(ValueError):
    """A victim that cannot be used as it is, or a reply that breaks a rule. The message says what to do."""


@dataclass(frozen=True)
class Wrapped:
    """A callable with a name. Texts of one field reach it as a list of strings, others as a list of tuples."""

    function: Callable[[list[Any]], Any]
    name: str
    gives: Gives
    labels: tuple[str, ...] = ()
    fields: int = 1
    trained_on: tuple[str, ...] = ()  # data sets, for a look at what a prior shares with it

    def __call__(self, texts: Sequence[Text]) -> list[NDArray[Any]]:
        if not texts:
            return []
        for text in texts:
            if len(text) != self.fields:
                raise VictimError(
                    f"{self.name} reads texts of {self.fields} field(s), got {len(text)}: {shorten(text)}; "
                    f"pass fields={len(text)} to wrap(...)"
                )
        reply = self.function([text[0] for text in texts] if self.fields == 1 else list(texts))
        rows = plain(reply)
        try:
            count = len(rows)
        except TypeError:
            raise VictimError(
                f"{self.name} replied with {reply!r:.60} to {len(texts)} text(s); a victim gets a list of texts and "
                "returns a list or an array with one row per text"
            ) from None
        if count != len(texts):
            raise VictimError(
                f"{self.name} returned {count} rows for {len(texts)} texts; it must return one row per text, in order"
            )
        rows = self._from_dicts(rows)
        if self.gives == "scores":
            return list(self._scores(rows, texts))
        if self.gives == "label":
            return [np.asarray(label) for label in self._classes(rows, texts)]
        return [np.asarray(value) for value in self._values(rows, texts)]

    def _from_dicts(self, rows: Any) -> Any:
        """Hugging Face pipelines: a dict per text is its best label; a list of dicts is the scores of all labels."""
        first = rows[0]
        if isinstance(first, dict):
            return [row["label"] for row in rows]
        if not (isinstance(first, (list, tuple)) and first and isinstance(first[0], dict)):
            return rows
        if self.gives != "scores":  # top_k=1 wraps the best label in a list of its own
            return [max(row, key=lambda entry: float(entry["score"]))["label"] for row in rows]
        if not self.labels:
            names = [entry["label"] for entry in sorted(first, key=lambda entry: str(entry["label"]))]
            raise VictimError(
                f"{self.name} names its scores {names}, but the order of the classes is not known; pass labels=, in the "
                "order of the targets (command line: --labels)"
            )
        scores = np.full((len(rows), len(self.labels)), np.nan)
        for at, row in enumerate(rows):
            for entry in row:
                scores[at, self._number(entry["label"])] = entry["score"]
            if np.isnan(scores[at]).any():
                missing = [name for name, score in zip(self.labels, scores[at].tolist(), strict=True) if score != score]
                raise VictimError(
                    f"{self.name} gave no score for {missing}; ask the pipeline for all classes with top_k=None, or pass "
                    'gives="label" (command line: --gives label)'
                )
        return scores

    def _number(self, name: Any) -> int:
        if not self.labels:
            raise VictimError(
                f"{self.name} replied with the label {name!r}, but its labels are not known; pass labels=, in the order of "
                "the targets (command line: --labels)"
            )
        if name not in self.labels:
            near = difflib.get_close_matches(str(name), self.labels, n=1, cutoff=0.0)[0]
            raise VictimError(
                f"{self.name} replied with the label {name!r}, which is not one of {list(self.labels)}; did you mean "
                f"{near!r}? The labels given must be spelt as the victim spells them"
            )
        return self.labels.index(name)

    def _array(self, rows: Any) -> NDArray[Any]:
        try:
            return np.asarray([plain(row) for row in rows] if isinstance(rows, (list, tuple)) else rows)
        except ValueError:
            sizes = sorted({np.size(row) for row in rows})
            raise VictimError(
                f"{self.name} returned rows of different sizes {sizes}; every text needs the same number of scores"
            ) from None

    def _numbers(self, rows: Any, texts: Sequence[Text], shape: str) -> Floats:
        array = self._array(rows)
        try:
            numbers = array.astype(np.float64)
        except (TypeError, ValueError):
            raise VictimError(
                f"{self.name} returned {array.ravel()[0]!r:.60} where {shape} are expected; if it returns class names, "
                'pass gives="label" and labels= (command line: --gives label --labels ...)'
            ) from None
        bad = ~np.isfinite(numbers).reshape(len(texts), -1).all(1)
        if bad.any():
            at = int(bad.argmax())
            raise VictimError(
                f"{self.name} returned {numbers[at].tolist()} for {shorten(texts[at])}; every number must be finite: "
                "look for a division by zero or an overflow inside the victim"
            )
        return numbers

    def _scores(self, rows: Any, texts: Sequence[Text]) -> Floats:
        scores = self._numbers(rows, texts, "scores")
        if scores.ndim == 1:
            raise VictimError(
                f"{self.name} returned one number per text, but scores are one number per class; if they are classes "
                'pass gives="label" (command line: --gives label), if they are values pass gives="value", and if they are '
                "the probability p of the second of two classes return [1 - p, p]"
            )
        if scores.ndim != 2:
            raise VictimError(
                f"{self.name} returned an array of shape {scores.shape}; scores have two dimensions, texts x classes"
            )
        if self.labels and scores.shape[1] != len(self.labels):
            raise VictimError(
                f"{self.name} returned {scores.shape[1]} scores per text for {len(self.labels)} labels "
                f"{list(self.labels)}; name every class, in the order of the scores"
            )
        if scores.shape[1] < 2:
            raise VictimError(
                f"{self.name} returned one score per text; a classifier has at least two classes: if it is the "
                "probability p of the second of two classes return [1 - p, p]"
            )
        bad = (scores.min(1) < 0) | (np.abs(scores.sum(1) - 1) > TOLERANCE)
        if bad.any():
            at = int(bad.argmax())
            raise VictimError(
                f"{self.name} returned {np.round(scores[at], 4).tolist()} for {shorten(texts[at])}; scores must not be "
                "negative and must sum to one: pass logits through scrimp.victims.softmax(...)"
            )
        return scores

    def _classes(self, rows: Any, texts: Sequence[Text]) -> NDArray[np.int64]:
        array = self._array(rows)
        if array.ndim == 1 and array.dtype.kind in "UO" and all(isinstance(row, str) for row in array.tolist()):
            return np.array([self._number(name) for name in array.tolist()], np.int64)
        numbers = self._numbers(rows, texts, "labels")
        if numbers.ndim != 1:
            raise VictimError(
                f"{self.name} returned an array of shape {numbers.shape}, but gives one label per text; if these are "
                'scores, pass gives="scores" (command line: --gives scores)'
            )
        bad = (numbers != np.floor(numbers)) | (numbers < 0)
        if self.labels:
            bad |= numbers >= len(self.labels)
        if bad.any():
            at = int(bad.argmax())
            top = f"{len(self.labels) - 1} ({', '.join(self.labels)})" if self.labels else "the last class"
            raise VictimError(
                f"{self.name} returned the label {numbers[at]:g} for {shorten(texts[at])}; labels are whole numbers from "
                f"0 to {top}"
            )
        return numbers.astype(np.int64)

    def _values(self, rows: Any, texts: Sequence[Text]) -> Floats:
        values = self._numbers(rows, texts, "values")
        if values.ndim == 2 and values.shape[1] == 1:
            values = values[:, 0]
        if values.ndim != 1:
            raise VictimError(
                f'{self.name} returned an array of shape {values.shape}, but gives="value" is one number per text; if '
                'these are scores, pass gives="scores" (command line: --gives scores)'
            )
        return values


def wrap(
    function: Callable[[list[Any]], Any],
    name: str,
    labels: Sequence[str] = (),
    gives: Gives | None = None,
    fields: int = 1,
) -> Wrapped:
    """A victim from any callable that takes a list of texts and returns one row per text.

    Nothing is asked to find out what it gives: scores, unless `gives` says otherwise. `name` is part of every cache
    key, so it should change whenever the model does.
    """
    if gives not in (None, "scores", "label", "value"):
        raise VictimError(f'gives={gives!r} for {name}; it must be "scores", "label" or "value"')
    function, labels = _all_classes(function, labels, gives)
    return Wrapped(function, name, gives or "scores", tuple(labels), fields)


def _all_classes(
    function: Any, labels: Sequence[str], gives: Gives | None
) -> tuple[Callable[[list[Any]], Any], Sequence[str]]:
    """A Hugging Face pipeline gives its best label only; here it is asked for all, and its model names them in order."""
    names = getattr(getattr(getattr(function, "model", None), "config", None), "id2label", None)
    if getattr(function, "task", None) != "text-classification" or not names:
        return function, labels
    known = labels or [names[number] for number in sorted(names)]
    return (partial(function, top_k=None) if gives in (None, "scores") else function), known


@dataclass(frozen=True)
class Around:
    """A victim inside another: what is not said anew is the inner one's."""

    victim: Victim

    @property
    def name(self) -> str:
        return self.victim.name

    @property
    def gives(self) -> Gives:
        return self.victim.gives

    @property
    def labels(self) -> tuple[str, ...]:
        return self.victim.labels

    @property
    def trained_on(self) -> tuple[str, ...]:
        return tuple(getattr(self.victim, "trained_on", ()))

    @property
    def notes(self) -> dict[str, Any]:
        return dict(getattr(self.victim, "notes", {}))


class Changed(Around):
    """A victim with each reply changed on its way; its name says how. Replies that come in parts stay in parts."""

    def change(self, text: Text, row: NDArray[Any]) -> NDArray[Any]:
        raise NotImplementedError

    def __call__(self, texts: Sequence[Text]) -> list[NDArray[Any]]:
        rows = self.victim(texts) if texts else []
        return [self.change(text, np.asarray(row)) for text, row in zip(texts, rows, strict=True)]

    @property
    def stream(self) -> Callable[[Sequence[Text], Keep], None] | None:
        inner = getattr(self.victim, "stream", None)
        return partial(self._stream, inner) if inner else None

    def _stream(self, inner: Callable[[Sequence[Text], Keep], None], texts: Sequence[Text], keep: Keep) -> None:
        def changed(place: int, row: NDArray[Any] | Exception) -> NDArray[Any] | Exception:
            return row if isinstance(row, Exception) else self.change(texts[place], row)

        inner(texts, lambda part: keep({place: changed(place, row) for place, row in part.items()}))


@dataclass(frozen=True)
class LabelsOnly(Changed):
    """A victim of scores seen through its first best class."""

    @property
    def name(self) -> str:
        return f"{self.victim.name} (labels only)"

    @property
    def gives(self) -> Gives:
        return "label"

    def change(self, text: Text, row: NDArray[Any]) -> NDArray[Any]:
        return np.asarray(row.argmax())


def labels_only(victim: Victim) -> Victim:
    """The same model, hiding its scores; a victim that gives labels is returned as it is."""
    if victim.gives == "value":
        raise VictimError(f"{victim.name} gives values, which have no label; labels_only needs a classifier")
    return victim if victim.gives == "label" else LabelsOnly(victim)


def softmax(function: Callable[[list[Any]], Any]) -> Callable[[list[Any]], Floats]:
    """A callable that returns logits, as one that returns scores."""

    def scores(texts: list[Any]) -> Floats:
        rows = plain(function(texts))
        logits = np.asarray([plain(row) for row in rows] if isinstance(rows, (list, tuple)) else rows, np.float64)
        if logits.ndim != 2:
            raise VictimError(f"softmax needs logits of two dimensions, texts x classes, got shape {logits.shape}")
        odds = np.exp(logits - logits.max(1, keepdims=True))
        return cast("Floats", odds / odds.sum(1, keepdims=True))

    return scores


def plain(reply: Any) -> Any:
    """A tensor as an array, without importing its library; anything else as it is."""
    if hasattr(reply, "detach"):
        reply = reply.detach().cpu()
        # numpy has no bfloat16
        return (reply.float() if str(reply.dtype) == "torch.bfloat16" else reply).numpy()
    return reply


def shorten(text: Text, width: int = 60) -> str:
    joined = " | ".join(text)
    return repr(joined if len(joined) <= width else joined[: width - 3] + "...")
