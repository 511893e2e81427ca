"""Attention: which words a model of one's own looks at, known before the first query and from other data than the victim's.

An attention model fills `grid.attention`: the share of each slot's word in the attention on its field. Rankings that know
it read it; without it every slot has the same share.
"""

from __future__ import annotations

import difflib
import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from ..attacks.types import Change, Example, Floats, Grid, Space, Text, Victim
from .decomposable import make_decomposable, numbered, pair_shares
from .han import UNKNOWN_WORD, make_han, sentences, word_shares

DATA = Path(__file__).parent / "data"
SHIPPED_ATTENTION = {name: DATA / f"attention_{name}.safetensors" for name in ("imdb", "mr", "snli")}


class Attention(Protocol):
    """Shares of attention. They cost no query and depend on one text alone."""

    @property
    def name(self) -> str: ...
    @property
    def data(self) -> tuple[str, ...]: ...  # what it was trained on
    @property
    def labels(self) -> tuple[str, ...]: ...
    def __call__(self, text: Text) -> list[Floats | None]: ...  # one share per word of a field; None: nothing known


@dataclass(frozen=True)
class Attended:
    """A space whose grids carry a model's attention."""

    space: Space
    model: Attention

    @property
    def name(self) -> str:
        return f"{self.space.name}|{self.model.name}"

    def __call__(self, examples: Sequence[Example]) -> list[Grid]:
        grids = self.space(examples)
        for example, grid in zip(examples, grids, strict=True):
            places = slot_places(grid)
            shares = self.model(example.text) if places else []
            if all(shares[place.field] is not None for place in places):
                grid.attention = np.array([shares[place.field][place.position] for place in places])  # type: ignore[index]
        return grids


def slot_places(grid: Grid) -> list[Change]:
    """Where the word of each slot stands."""
    code = np.zeros(len(grid.sizes), np.int16)
    found = []
    for slot in range(len(code)):
        code[slot] = 1
        found += grid.changes(code)
        code[slot] = 0
    return found


@dataclass(frozen=True)
class Network:
    """A trained network and its words. `kind` says what it reads: "han" one field at a time, "decomposable" two together."""

    name: str
    kind: str
    data: tuple[str, ...]
    labels: tuple[str, ...]
    numbers: dict[str, int]
    network: Any

    def __call__(self, text: Text) -> list[Floats | None]:
        """One share per word, so that a field's sum to one; None for a field none of whose words is in the vocabulary."""
        import torch

        threads = torch.get_num_threads()
        torch.set_num_threads(1)  # the order of sums depends on it
        try:
            with torch.inference_mode():
                return self._pair(text) if self.kind == "decomposable" else [self._field(field) for field in text]
        finally:
            torch.set_num_threads(threads)

    def _field(self, field: str) -> Floats | None:
        found = sentences(field, self.numbers)
        return word_shares(self.network, found) if any(map(_known, found)) else None

    def _pair(self, text: Text) -> list[Floats | None]:
        found = [numbered(field, self.numbers) for field in text]
        if len(found) != 2 or not all(map(_known, found)):
            return [None] * len(found)
        return [*pair_shares(self.network, (found[0], found[1]))]


def _known(numbers: Sequence[int]) -> bool:
    return any(number != UNKNOWN_WORD for number in numbers)


def save_attention(path: Path, kind: str, facts: dict[str, Any], words: Sequence[str], network: Any) -> None:
    """Write the weights in half precision, with the words and facts among them."""
    from safetensors.numpy import save

    packed = {f"weights.{name}": weight.numpy().astype(np.float16) for name, weight in network.state_dict().items()}
    texts = {"facts": json.dumps({"kind": kind, **facts}), "words": "\n".join(words)}
    packed |= {name: np.frombuffer(text.encode(), np.uint8) for name, text in texts.items()}
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(save(packed))


@cache
def load_attention(path: Path) -> Network:
    """A model that `python -m scrimp.ranking.train_attention` wrote."""
    from safetensors import SafetensorError
    from safetensors.numpy import load

    again = "make it again with: python -m scrimp.ranking.train_attention"
    if not path.is_file():
        raise ValueError(f"{path} does not exist; make it with: python -m scrimp.ranking.train_attention")
    raw = path.read_bytes()
    try:
        tensors = load(raw)
        facts = json.loads(tensors.pop("facts").tobytes())
        words = tensors.pop("words").tobytes().decode().split("\n")
        name, kind, data, labels = facts["name"], facts["kind"], tuple(facts["data"]), tuple(facts["labels"])
        network = _rebuilt(kind, len(labels), {key.removeprefix("weights."): weight for key, weight in tensors.items()})
    except (SafetensorError, ValueError, TypeError, KeyError, RuntimeError) as fault:
        raise ValueError(f"{path} is not an attention model ({fault}); {again}") from fault
    numbers = {word: number for number, word in enumerate(words, start=UNKNOWN_WORD + 1)}
    if network.vectors.num_embeddings != len(words) + UNKNOWN_WORD + 1:
        raise ValueError(f"{path}: {len(words)} words for {network.vectors.num_embeddings} vectors; {again}")
    return Network(f"{kind}({name})@{hashlib.sha256(raw).hexdigest()[:8]}", kind, data, labels, numbers, network)


def _rebuilt(kind: str, classes: int, weights: dict[str, Any]) -> Any:
    import torch

    makers = {"han": make_han, "decomposable": make_decomposable}
    rows, width = weights["vectors.weight"].shape
    network = makers[kind](rows, width, classes)
    network.load_state_dict({name: torch.from_numpy(weight.astype(np.float32)) for name, weight in weights.items()})
    return network.eval()


def choose_attention(wanted: str | Attention | None, victim: Victim) -> Attention | None:
    """A model by name, by path, or "auto": a shipped one for the victim's labels, in any order, that shares no data with it.

    A model for other labels may be asked for by name: attention knows no classes.
    """
    if wanted is None or wanted == "none":
        return None
    if not isinstance(wanted, str):
        return wanted
    if wanted == "auto":
        labels, trained_on = {label.lower() for label in victim.labels}, set(getattr(victim, "trained_on", ()))
        for path in SHIPPED_ATTENTION.values():
            model = load_attention(path)
            if labels == set(model.labels) and not trained_on & set(model.data):
                return model
        return None
    if wanted in SHIPPED_ATTENTION:
        return load_attention(SHIPPED_ATTENTION[wanted])
    if wanted.endswith(".safetensors"):
        return load_attention(Path(wanted))
    near = difflib.get_close_matches(wanted, SHIPPED_ATTENTION, 1)
    hint = f"did you mean {near[0]!r}? " if near else ""
    raise ValueError(
        f"no attention model {wanted!r}; {hint}There are auto, none, {', '.join(SHIPPED_ATTENTION)}, and any file.safetensors"
    )
