"""The words every part shares: examples, asks, answers, and what a victim, a goal and a grid promise."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

Text = tuple[str, ...]  # one string per field: ("review",) or ("premise", "hypothesis")
Codes = NDArray[np.int16]  # int16[n, slots]: one row per candidate text
Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
Gives = Literal["scores", "label", "value"]
Needs = Literal["scores", "label"]

KEEP = 0  # the original word
DROP = -1  # the word left out: a probe, never a result
UNKNOWN = -2  # a word no model knows in its place: a probe, never a result


@dataclass(frozen=True)
class Example:
    """One text to attack. `target` is its true class, or the value a regression victim should be moved away from."""

    id: str
    text: Text
    target: int | float
    editable: tuple[int, ...] = (0,)  # fields that may change; NLI: (1,) edits the hypothesis only
    protected: tuple[tuple[int, int, int], ...] = ()  # (field, start, end): character spans that stay as they are


class Victim(Protocol):
    """The model under test: one row per text. `name` carries the revision, because it is part of every cache key."""

    @property
    def name(self) -> str: ...
    @property
    def gives(self) -> Gives: ...
    @property
    def labels(self) -> tuple[str, ...]: ...  # class names, empty when unknown
    def __call__(self, texts: Sequence[Text]) -> Sequence[NDArray[Any]]: ...


@dataclass(frozen=True)
class Verdict:
    """What a goal says of n replies."""

    fooled: Bools
    margin: Floats  # how far past the boundary: 0 on it, above 0 only where fooled
    score: Floats  # what published attacks push up: 1 - p(true class), p(target class), or the distance moved


class Goal(Protocol):
    """The only reader of raw replies. Row i is the reply to a text of example i: one call judges many attacks."""

    @property
    def name(self) -> str: ...
    def accepts(self, gives: Gives) -> bool: ...
    def __call__(self, rows: Sequence[NDArray[Any]], examples: Sequence[Example], gives: Gives) -> Verdict: ...


class Grid(Protocol):
    """The texts reachable from one example. A code gives each slot a choice: 0 keeps the word, 1..size replace it."""

    gain: Floats | None  # [slots, most candidates], -inf where there is none: what a prior expects of each swap
    attention: Floats | None  # [slots]: the share of each slot's word in a model's attention on its field

    @property
    def sizes(self) -> NDArray[np.int64]: ...  # candidates per slot, all at least 1
    @property
    def slot_words(self) -> Sequence[str]: ...  # the word of each slot
    @property
    def candidates(self) -> Sequence[Sequence[str]]: ...
    @property
    def n_words(self) -> int: ...  # words of the editable fields: the denominator of the share changed
    @property
    def why_empty(self) -> str: ...  # the reason when there is no slot
    def decode(self, codes: Codes) -> list[Text]: ...
    def legal(self, codes: Codes) -> Bools: ...  # whole-code rules that need no model
    def changes(self, code: Codes) -> list[Change]: ...
    # The grid with candidates proposed in that text (for these slots, or all), and the text's code in it.
    def around(self, code: Codes, slots: Sequence[int] | None = None) -> tuple[Grid, Codes]: ...
    def windows(self, codes: Codes, words: int) -> tuple[list[Text], list[Text]]: ...  # original and changed, cut alike


@dataclass(frozen=True)
class Change:
    """One replaced word. `start` counts characters of the original field."""

    field: int
    position: int  # which word of the field
    start: int
    before: str
    after: str


@dataclass(frozen=True)
class Ask:
    """What a search yields: codes, in the order in which they should be paid for."""

    codes: Codes
    pay: bool = True  # False: rules, vectors and similarity only; the victim is not called
    until_fooled: bool = False  # pay row by row and stop at the first success
    encode: bool = False  # fill vectors and similarity even when no floor asks for them
    grid: Grid | None = None  # what the codes mean, where that is not the example's own grid: one of grid.around
    window: int | None = None  # with encode: vectors of so many words around the changes, and no similarity without a floor
    vectors: bool = False  # with encode: vectors of whole texts even where the floor compares windows


@dataclass(frozen=True)
class Answers:
    """What a label search is sent back: row i is about code i."""

    allowed: Bools  # False: refused by a rule or the floor, and never sent
    answered: Bools  # a reply is known; False after a stop at the first success
    fooled: Bools
    similarity: Floats  # to the original; NaN when nothing was encoded
    vectors: NDArray[np.float32]  # float32[n, d]; d = 0 when nothing was encoded


@dataclass(frozen=True)
class Scored(Answers):
    """What a score search is sent back."""

    margin: Floats  # -inf where not answered
    score: Floats  # -inf where not answered


Reply = Any  # Answers for a label search, Scored for a score search: fixed by Search.needs, checked by the engine
Asking = Generator[Ask, Reply, None]
Ordering = Generator[Ask, Reply, NDArray[np.int64]]


@dataclass(frozen=True)
class Ranking:
    """Which slot first. `run` is a generator that returns slot numbers, most promising first."""

    name: str
    needs: Needs
    about: str
    run: Callable[[Grid, np.random.Generator], Ordering]


@dataclass(frozen=True)
class Search:
    """A search method. `run` is a generator of asks; it sees no victim, no budget and no cache, and returns nothing."""

    name: str
    needs: Needs
    about: str
    run: Callable[[Grid, np.random.Generator], Asking]


class Encoder(Protocol):
    """Sentences to unit vectors. A text's vector must not depend on what else is in the batch."""

    @property
    def name(self) -> str: ...
    def __call__(self, texts: Sequence[str]) -> NDArray[np.float32]: ...


class Space(Protocol):
    """Where candidates come from, with its rules: a value, named, usable under every search."""

    @property
    def name(self) -> str: ...
    def __call__(self, examples: Sequence[Example]) -> list[Grid]: ...
