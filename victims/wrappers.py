"""Victims seen through a defence or a helper: each is a value around another victim.

A wrapper that changes replies changes the name, because the name is part of every cache key; a rate and a cache change
nothing that is answered, so the name stays.
"""

from __future__ import annotations

import hashlib
import struct
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..attacks.account import NO_LABEL, Keep, Part
from ..attacks.replies import ReplyStore, digest
from ..attacks.types import Text, Victim
from .limits import Pace
from .templates import groups
from .wrap import Around, Changed, VictimError


@dataclass(frozen=True)
class TopK(Changed):
    """The k best scores. The classes left out share what is missing to one, in equal parts.

    That is the best guess an outsider can make, it never puts a hidden class above a shown one, and with two classes it is
    the truth: showing only the best of two scores hides nothing.
    """

    k: int

    @property
    def name(self) -> str:
        return f"{self.victim.name} (top {self.k})"

    def change(self, text: Text, row: NDArray[Any]) -> NDArray[Any]:
        hidden = np.argsort(-row, kind="stable")[self.k :]
        if not len(hidden):
            return row
        shown = np.delete(row, hidden)
        seen = row.copy()
        seen[hidden] = min(max(0.0, 1.0 - shown.sum()) / len(hidden), shown.min())
        return seen


@dataclass(frozen=True)
class Rounded(Changed):
    """Scores with so many digits after the point.

    The best class stays the best: where rounding makes another one its equal, that one is put a hair below, as a service
    that names the class beside its rounded scores would have it.
    """

    digits: int

    @property
    def name(self) -> str:
        return f"{self.victim.name} (rounded {self.digits})"

    def change(self, text: Text, row: NDArray[Any]) -> NDArray[Any]:
        seen, best = np.round(row, self.digits), int(row.argmax())
        rivals = seen >= seen[best]
        rivals[best] = False
        seen[rivals] = seen[best] - 1e-9
        return seen


@dataclass(frozen=True)
class Noisy(Changed):
    """A defence that lies: with probability p a text's answer is moved to another class.

    Scores are turned round the classes, labels replaced. The draw depends on the seed and the text alone, so asking again
    brings the same answer, as with a service that remembers; runs stay repeatable and every cache stays valid.
    """

    p: float
    seed: int

    @property
    def name(self) -> str:
        return f"{self.victim.name} (noisy {self.p:g}, seed {self.seed})"

    def change(self, text: Text, row: NDArray[Any]) -> NDArray[Any]:
        drawn = hashlib.blake2b(digest(f"noisy {self.seed}", text), digest_size=16).digest()
        chance, turn = struct.unpack("<QQ", drawn)
        if chance / 2**64 >= self.p or (not row.ndim and row == NO_LABEL):
            return row
        n = len(row) if row.ndim else len(self.victim.labels)
        by = 1 + turn % (n - 1)
        return np.roll(row, by) if row.ndim else np.asarray((row + by) % n)


def top_k_scores(victim: Victim, k: int) -> Victim:
    """The victim, showing its k best scores only."""
    _needs_scores(victim, "top_k_scores")
    if _not_whole(k) or k < 1:
        raise VictimError(f"top_k_scores(k={k!r}): k is a whole number from 1; for the bare label use labels_only(victim)")
    if victim.labels and k > len(victim.labels):
        raise VictimError(f"top_k_scores(k={k}): {victim.name} has {len(victim.labels)} classes only")
    return TopK(victim, k)


def rounded_scores(victim: Victim, digits: int) -> Victim:
    """The victim, rounding its scores to so many digits after the point."""
    _needs_scores(victim, "rounded_scores")
    if _not_whole(digits) or not 0 <= digits <= 15:
        raise VictimError(f"rounded_scores(digits={digits!r}): digits is a whole number from 0 to 15")
    return Rounded(victim, digits)


def noisy(victim: Victim, p: float, seed: int = 0) -> Victim:
    """The victim, answering with another class with probability p."""
    if victim.gives == "value":
        raise VictimError(f"noisy: {victim.name} gives values, which have no class to move to; it needs a classifier")
    if victim.gives == "label" and len(victim.labels) < 2:
        raise VictimError(f"noisy: {victim.name} gives labels without saying how many there are; wrap it with labels=")
    if not 0 <= p < 1:
        raise VictimError(f"noisy(p={p!r}): p is a probability from 0 up to, but not, 1")
    if _not_whole(seed) or seed < 0:
        raise VictimError(f"noisy(seed={seed!r}): a seed is a whole number from 0")
    return Noisy(victim, p, seed)


@dataclass(frozen=True)
class RateLimited(Around):
    """At most so many texts a second; the victim is called with as many at once as a second allows."""

    per_second: float
    pace: Pace = field(repr=False)

    def __call__(self, texts: Sequence[Text]) -> list[NDArray[Any]]:
        rows: list[NDArray[Any]] = []
        for group in self._groups(texts):
            rows += self.victim([texts[place] for place in group])
        return rows

    def _groups(self, texts: Sequence[Text]) -> Any:
        for group in groups(range(len(texts)), max(1, int(self.per_second))):
            self.pace.wait(len(group))
            yield group

    @property
    def stream(self) -> Callable[[Sequence[Text], Keep], None] | None:
        inner = getattr(self.victim, "stream", None)
        return partial(self._stream, inner) if inner else None

    def _stream(self, inner: Callable[[Sequence[Text], Keep], None], texts: Sequence[Text], keep: Keep) -> None:
        for group in self._groups(texts):
            inner([texts[place] for place in group], _moved(group, keep))


def rate_limited(
    victim: Victim,
    per_second: float,
    sleep: Callable[[float], Any] = time.sleep,
    clock: Callable[[], float] = time.monotonic,
) -> Victim:
    """The victim, given at most `per_second` texts a second."""
    return RateLimited(victim, per_second, Pace(per_second, sleep, clock))


@dataclass(frozen=True)
class Cached(Around):
    """A victim that is asked about a text once, ever: replies are kept in an SQLite file."""

    store: ReplyStore

    def __call__(self, texts: Sequence[Text]) -> list[NDArray[Any]]:
        keys = [digest(self.name, text) for text in texts]
        known = self.store.get(list(dict.fromkeys(keys)))
        missing = {key: text for key, text in zip(keys, texts, strict=True) if key not in known}
        if missing:
            rows = [np.asarray(row) for row in self.victim(list(missing.values()))]
            fresh = dict(zip(missing, rows, strict=True))
            self.store.put(fresh)
            known |= fresh
        return [known[key] for key in keys]

    @property
    def stream(self) -> Callable[[Sequence[Text], Keep], None] | None:
        inner = getattr(self.victim, "stream", None)
        return partial(self._stream, inner) if inner else None

    def _stream(self, inner: Callable[[Sequence[Text], Keep], None], texts: Sequence[Text], keep: Keep) -> None:
        keys = [digest(self.name, text) for text in texts]
        known = self.store.get(list(dict.fromkeys(keys)))
        keep({place: known[key] for place, key in enumerate(keys) if key in known})
        first = {key: place for place, key in reversed(list(enumerate(keys))) if key not in known}
        missing = sorted(first.values())
        repeats = [place for place, key in enumerate(keys) if key in first and first[key] != place]
        came: dict[int, NDArray[Any] | Exception] = {}

        def take(part: Part) -> None:
            came.update(part)
            self.store.put({keys[place]: row for place, row in part.items() if not isinstance(row, Exception)})
            keep(part)

        if missing:
            inner([texts[place] for place in missing], _moved(missing, take))
        keep({place: came[first[keys[place]]] for place in repeats})


def cached(victim: Victim, path: str | Path) -> Victim:
    """The victim, with its replies kept in the SQLite file `path`, which several processes and runs may share."""
    return Cached(victim, ReplyStore(path))


def _moved(places: Sequence[int], keep: Keep) -> Keep:
    """`keep` for a victim that was given only the texts at these places."""
    return lambda part: keep({places[place]: row for place, row in part.items()})


def _needs_scores(victim: Victim, what: str) -> None:
    if victim.gives != "scores":
        raise VictimError(f"{what} needs scores, but {victim.name} gives {victim.gives}")


def _not_whole(value: Any) -> bool:
    return isinstance(value, bool) or not isinstance(value, int)
