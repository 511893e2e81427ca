"""Small worlds for the laws: a space over letters, a victim and an encoder whose every answer can be worked out by hand."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scrimp.attacks.engine import Engine
from scrimp.attacks.goals import Misclassify
from scrimp.attacks.record import Record
from scrimp.attacks.types import UNKNOWN, Ask, Asking, Example, Gives, Grid, Needs, Search, Text
from scrimp.ranking.prior import table as prior_table
from scrimp.spaces.grid import Slot, WordGrid
from scrimp.spaces.tokens import words

LETTERS = "abcdef"
CLASSES = 3


@dataclass
class ToyVictim:
    """Scores are a softmax of letter weights, plus one for the first and last letter together. It logs what it is sent."""

    seed: int
    gives: Gives = "scores"
    name: str = "toy@1"
    labels: tuple[str, ...] = ()
    log: list[list[Text]] = field(default_factory=list)

    def __post_init__(self) -> None:
        rng = np.random.default_rng(self.seed)
        self._weights = {letter: rng.normal(size=CLASSES) for letter in LETTERS}
        self._pairs = {(a, b): rng.normal(size=CLASSES) for a in LETTERS for b in LETTERS}

    def scores(self, text: Text) -> NDArray[np.float64]:
        found = [word.text for word in words(text[0]) if word.text in LETTERS]
        total = np.zeros(CLASSES)
        for word in found:
            total = total + self._weights[word]
        if found:
            total = total + self._pairs[found[0], found[-1]]
        odds = np.exp(total - total.max())
        return np.asarray(np.round(odds / odds.sum(), 9), np.float64)

    def label(self, text: Text) -> int:
        return int(self.scores(text).argmax())

    def __call__(self, texts: Sequence[Text]) -> list[NDArray[Any]]:
        self.log.append(list(texts))
        if self.gives == "label":
            return [np.asarray(self.label(text)) for text in texts]
        return [self.scores(text) for text in texts]

    @property
    def sent(self) -> list[Text]:
        return [text for batch in self.log for text in batch]


@dataclass(frozen=True)
class ToySpace:
    """Each letter may become some others; which ones depends on the seed. Few letters, so that texts often coincide."""

    seed: int
    share: float = 1.0
    name: str = "toy"

    def __call__(self, examples: Sequence[Example]) -> list[Grid]:
        rng = np.random.default_rng(self.seed)
        table = {a: tuple(b for b in LETTERS if b != a and rng.random() < 0.5) for a in LETTERS}
        grids: list[Grid] = []
        for example in examples:
            found = words(example.text[0])
            slots = [Slot(0, i, w.start, w.end, table[w.text]) for i, w in enumerate(found) if table.get(w.text)]
            grid = WordGrid(example.text, {0: found}, slots, self.share, "no letter has a candidate")
            if self.seed % 2:  # half of the worlds have a prior, and it is worth nothing
                grid.gain = prior_table(grid, np.sin(np.arange(grid.sizes.sum()) * (1.0 + self.seed)))
            grids.append(grid)
        return grids


@dataclass
class ToyEncoder:
    """Letter counts, made a unit vector."""

    name: str = "letters"
    calls: int = 0

    def __call__(self, texts: Sequence[str]) -> NDArray[np.float32]:
        self.calls += 1
        counts = np.array([[1.0, *(text.count(letter) for letter in LETTERS)] for text in texts])
        return np.asarray(counts / np.linalg.norm(counts, axis=1, keepdims=True), np.float32)


@dataclass(frozen=True)
class World:
    """Everything a run depends on, from a few numbers."""

    seed: int
    n: int = 6
    length: int = 6
    budget: int = 30
    share: float = 1.0
    floor: float | None = None

    @property
    def space(self) -> ToySpace:
        return ToySpace(self.seed, self.share)

    def victim(self, search: Search) -> ToyVictim:
        return ToyVictim(self.seed, "label" if search.needs == "label" else "scores")

    @property
    def examples(self) -> list[Example]:
        """Mostly labelled as the victim would: a few are wrong already, a few texts occur twice."""
        rng, judge = np.random.default_rng([self.seed, 7]), ToyVictim(self.seed)
        made = []
        for number in range(self.n):
            letters = rng.choice(list(LETTERS), size=rng.integers(0, self.length + 1))
            text = ("  ".join(letters),) if number % 3 else (" ".join(letters[:3]),)
            wrong = rng.random() < 0.1
            made.append(Example(f"e{number}", text, (judge.label(text) + wrong) % CLASSES))
        return made

    def engine(self, search: Search, victim: ToyVictim | None = None, **settings: Any) -> Engine:
        settings = {"budget": self.budget, "floor": self.floor, "guide": ToyEncoder(), "trace": True} | settings
        return Engine(victim or self.victim(search), Misclassify(), self.space, search, seed=self.seed, **settings)

    def run(
        self, search: Search, victim: ToyVictim | None = None, examples: Sequence[Example] | None = None, **settings: Any
    ) -> dict[str, Record]:
        engine = self.engine(search, victim, **settings)
        return {record.id: record for record in engine.run(self.examples if examples is None else examples)}


def scatter(needs: Needs) -> Search:
    """No method at all: random codes, probes and repeats among them, in asks of every kind. It goes on after a success."""

    def run(grid: Grid, rng: np.random.Generator) -> Asking:
        seen = np.zeros((1, len(grid.sizes)), np.int16)
        for _ in range(12):
            lowest = UNKNOWN if rng.random() < 0.3 else 0
            codes = rng.integers(lowest, grid.sizes + 1, (rng.integers(0, 6), len(grid.sizes))).astype(np.int16)
            codes[rng.random(codes.shape) < rng.random()] = 0
            seen = np.concatenate([seen, codes, rng.permutation(seen)[:2]])
            slow, encode = rng.random(2) < 0.4
            pay = rng.random() < 0.9
            answers = yield Ask(seen[-len(codes) - 2 :], bool(pay), until_fooled=bool(slow), encode=bool(encode))
            assert hasattr(answers, "margin") == (needs == "scores")

    return Search(f"scatter-{needs}", needs, "tests only", run)
