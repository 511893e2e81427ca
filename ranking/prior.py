"""Priors: what a swap is expected to do, known before the first query and from other data than the victim's.

A prior fills `grid.gain`: for every slot and candidate, how much the swap is expected to move the victim away from the true
class (or towards the wanted one). Searches that know priors read it; without one they fall back on a random order.
"""

from __future__ import annotations

import difflib
import json
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ..attacks.types import Example, Floats, Grid, Space, Text, Victim
from ..spaces.tokens import is_word, words
from .attention import Attention, choose_attention, slot_places
from .saliency import single_swaps

DATA = Path(__file__).parent / "data"
SHIPPED = {"imdb": DATA / "prior_imdb.npz", "mr": DATA / "prior_mr.npz"}
NGRAM, HASHES = 4, 3  # fingerprints: the smallest hashes of the text's 4-word runs under 3 hash functions
_FACTORS = np.array([2654435761, 2246822519, 3266489917], np.uint64)  # odd constants of well-known integer hashes


class Prior(Protocol):
    """Expected influence of every single swap. Its answers cost nothing."""

    @property
    def name(self) -> str: ...
    @property
    def labels(self) -> tuple[str, ...]: ...
    @property
    def data(self) -> tuple[str, ...]: ...  # what it was trained on
    def __call__(self, examples: Sequence[Example], grids: Sequence[Grid], wanted: int | None) -> list[Floats]: ...
    def seen(self, texts: Sequence[Text]) -> int: ...  # how many of these texts it was trained on, nearly or exactly


@dataclass(frozen=True)
class Guided:
    """A space whose grids carry a prior's gains. `wanted` is the label to reach, None for any but the true one."""

    space: Space
    prior: Prior
    wanted: int | None = None

    @property
    def name(self) -> str:
        return f"{self.space.name}|{self.prior.name}"

    def __call__(self, examples: Sequence[Example]) -> list[Grid]:
        grids = self.space(examples)
        for grid, gain in zip(grids, self.prior(examples, grids, self.wanted), strict=True):
            grid.gain = gain
        return grids


def table(grid: Grid, values: Floats) -> Floats:
    """Values of all single swaps, slot by slot, as float64[slots, most candidates], -inf where there is no candidate."""
    places = np.arange(grid.sizes.max(initial=0)) < grid.sizes[:, None]
    found = np.full(places.shape, -np.inf)
    found[places] = values
    return found


@dataclass(frozen=True)
class Linear:
    """A bag of words: one weight per word and class. Unknown words weigh nothing."""

    name: str
    labels: tuple[str, ...]
    data: tuple[str, ...]
    numbers: dict[str, int]
    weights: NDArray[np.float32]  # [words + 1, classes]; the last row is the unknown word's
    bias: NDArray[np.float32]
    fingerprints: NDArray[np.uint32]  # [texts, HASHES]

    def _numbers(self, text: str) -> list[int]:
        unknown, known = len(self.weights) - 1, self.numbers
        number = known.get(text.lower())  # the vocabulary holds single words
        if number is not None or is_word(text):
            return [unknown if number is None else number]
        return [known.get(word.text.lower(), unknown) for word in words(text)]

    def _rows(self, found: Sequence[str]) -> NDArray[np.float32]:
        numbers = [self._numbers(text) for text in found]
        if all(len(row) == 1 for row in numbers):
            return self.weights[[row[0] for row in numbers]]
        return np.array([self.weights[row].sum(0) for row in numbers], np.float32).reshape(-1, self.weights.shape[1])

    def __call__(self, examples: Sequence[Example], grids: Sequence[Grid], wanted: int | None) -> list[Floats]:
        gains = []
        for example, grid in zip(examples, grids, strict=True):
            true = int(example.target)
            totals = self.bias + self._rows([" ".join(example.text)])[0]
            totals[true] = -np.inf
            other = int(totals.argmax()) if wanted is None else wanted
            old = np.repeat(self._rows(grid.slot_words), grid.sizes, axis=0)
            new = self._rows([candidate for slot in grid.candidates for candidate in slot])
            moved = (new - old).astype(np.float64)
            # For a wanted label the classes that stand in its way are all the others; the true one stands for them.
            gains.append(table(grid, moved[:, other] - moved[:, true]))
        return gains

    def seen(self, texts: Sequence[Text]) -> int:
        if not len(self.fingerprints):
            return 0
        asked = np.array([fingerprint(" ".join(text)) for text in texts], np.uint32).reshape(-1, HASHES)
        hits = sum(np.isin(asked[:, place], self.fingerprints[:, place]).astype(int) for place in range(HASHES))
        maybe = asked[np.asarray(hits) >= HASHES - 1]  # of these, the ones that share two hashes with one and the same text
        return sum(bool(((self.fingerprints == row).sum(1) >= HASHES - 1).any()) for row in maybe)

    def save(self, path: Path) -> None:
        facts = {"name": self.name, "labels": self.labels, "data": self.data}
        arrays = {"facts": json.dumps(facts), "words": "\n".join(self.numbers)}
        packed: dict[str, NDArray[Any]] = {key: np.frombuffer(text.encode(), np.uint8) for key, text in arrays.items()}
        packed |= {"weights": self.weights[:-1].astype(np.float16), "bias": self.bias, "fingerprints": self.fingerprints}
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("wb") as out:
            np.savez_compressed(out, allow_pickle=False, **packed)


@dataclass(frozen=True)
class Surrogate:
    """A model the user owns: asked about every single swap, at no cost. Its classes must be those of the victim."""

    model: Victim

    @property
    def name(self) -> str:
        return f"surrogate({self.model.name})"

    @property
    def labels(self) -> tuple[str, ...]:
        return self.model.labels

    @property
    def data(self) -> tuple[str, ...]:
        return tuple(getattr(self.model, "trained_on", ()))

    def __call__(self, examples: Sequence[Example], grids: Sequence[Grid], wanted: int | None) -> list[Floats]:
        gains = []
        for example, grid in zip(examples, grids, strict=True):
            true = int(example.target)
            texts = [example.text, *grid.decode(single_swaps(grid, np.arange(len(grid.sizes))))]
            odds = np.log(np.maximum(np.array(self.model(texts), np.float64), 1e-9))
            others = odds.copy()
            others[:, true] = -np.inf
            ahead = (others.max(1) if wanted is None else odds[:, wanted]) - odds[:, true]
            gains.append(table(grid, ahead[1:] - ahead[0]))
        return gains

    def seen(self, texts: Sequence[Text]) -> int:
        return 0  # its training texts are not known here


@dataclass(frozen=True)
class Looks:
    """An attention model as prior: words that it looks at count, whatever comes in their place; no class is favoured."""

    model: Attention

    @property
    def name(self) -> str:
        return f"attention({self.model.name})"

    @property
    def labels(self) -> tuple[str, ...]:
        return ()  # attention knows no classes

    @property
    def data(self) -> tuple[str, ...]:
        return self.model.data

    def __call__(self, examples: Sequence[Example], grids: Sequence[Grid], wanted: int | None) -> list[Floats]:
        gains = []
        for example, grid in zip(examples, grids, strict=True):
            places = slot_places(grid)
            shares = self.model(example.text) if places else []
            known = [shares[place.field] for place in places]
            looked = [0.0 if row is None else float(row[place.position]) for row, place in zip(known, places, strict=True)]
            gains.append(table(grid, np.repeat(looked, grid.sizes)))
        return gains

    def seen(self, texts: Sequence[Text]) -> int:
        return 0  # its training texts are not known here


def fingerprint(text: str) -> list[int]:
    """Three numbers that near-duplicates mostly share: a MinHash of its runs of four words."""
    found = [word.text.lower() for word in words(text)]
    runs = [" ".join(found[at : at + NGRAM]) for at in range(max(1, len(found) - NGRAM + 1))]
    hashed = np.array([zlib.crc32(run.encode("utf-8", "surrogatepass")) for run in runs], np.uint64)
    mixed = (hashed[:, None] * _FACTORS) % np.uint64(2**32)
    mixed = (mixed ^ (mixed >> np.uint64(15))) * _FACTORS[::-1] % np.uint64(2**32)
    return [int(value) for value in mixed.min(0)]


@cache
def load_prior(path: Path) -> Linear:
    """A prior that `scrimp prior train` wrote."""
    try:
        with np.load(path, allow_pickle=False) as file:
            facts: dict[str, Any] = json.loads(file["facts"].tobytes())
            vocabulary = file["words"].tobytes().decode().split("\n")
            weights, bias, fingerprints = (file[key] for key in ("weights", "bias", "fingerprints"))
    except FileNotFoundError:
        raise ValueError(f"{path} does not exist; make it with: scrimp prior train --data FILE --out {path}") from None
    except (OSError, ValueError, KeyError) as fault:
        raise ValueError(f"{path} is not a prior ({fault}); make it again with: scrimp prior train") from fault
    known = np.concatenate([weights.astype(np.float32), np.zeros((1, weights.shape[1]), np.float32)])
    numbers = {word: number for number, word in enumerate(vocabulary)}
    return Linear(facts["name"], tuple(facts["labels"]), tuple(facts["data"]), numbers, known, bias, fingerprints)


def choose_prior(wanted: str | Prior | None, victim: Victim) -> Prior | None:
    """A prior by name, by path, "attention", or "auto": a shipped one with the victim's labels that shares no data with it."""
    if wanted is None or wanted == "none":
        return None
    if not isinstance(wanted, str):
        return fitting(wanted, victim)
    if wanted == "auto":
        trained_on = set(getattr(victim, "trained_on", ()))
        for path in SHIPPED.values():
            prior = load_prior(path)
            if tuple(label.lower() for label in victim.labels) == prior.labels and not trained_on & set(prior.data):
                return prior
        return None
    if wanted == "attention":
        looking = choose_attention("auto", victim)
        return Looks(looking) if looking else None
    if wanted in SHIPPED:
        return fitting(load_prior(SHIPPED[wanted]), victim)
    if wanted.endswith(".npz"):
        return fitting(load_prior(Path(wanted)), victim)
    near = difflib.get_close_matches(wanted, SHIPPED, 1)
    hint = f"did you mean {near[0]!r}? " if near else ""
    raise ValueError(f"no prior {wanted!r}; {hint}There are auto, none, attention, {', '.join(SHIPPED)}, and any file.npz")


def fitting(prior: Prior, victim: Victim) -> Prior:
    """The prior, if its classes are the victim's. Classes without names are taken to be in the same order."""
    mine, theirs = tuple(prior.labels), tuple(label.lower() for label in victim.labels)
    if mine and theirs and tuple(label.lower() for label in mine) != theirs:
        raise ValueError(
            f"prior {prior.name} knows the classes {', '.join(mine)}, but {victim.name} has {', '.join(theirs)}; train one "
            "for these classes with `scrimp prior train --labels ...`, or pass prior=None"
        )
    return prior
