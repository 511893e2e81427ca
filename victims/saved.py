"""Trained models in a directory: victim.json, model.safetensors and card.json. Nothing in it is ever unpickled."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..attacks.types import Gives, Text, Victim
from .nli import make_decomposable, make_esim, make_infersent
from .wordcnn import PAD, Ids, load_wordcnn
from .wordlstm import make_wordlstm
from .wrap import VictimError

if TYPE_CHECKING:
    import torch

CONFIG, WEIGHTS, CARD = "victim.json", "model.safetensors", "card.json"
PICKLES = (".bin", ".pt", ".pth", ".pkl", ".pickle", ".ckpt", ".joblib")
NETWORKS: dict[str, tuple[Callable[..., torch.nn.Module], int]] = {  # how it is made, how many fields it reads
    "wordlstm": (make_wordlstm, 1),
    "esim": (make_esim, 2),
    "infersent": (make_infersent, 2),
    "decomposable": (make_decomposable, 2),
}
ROWS = 8  # texts in every call of the network
DIGITS = 6


class WordModel:
    """A network over words. What a text scores does not depend, to the last bit, on what else is in the batch.

    Texts of equal length go through the network together, so nothing is padded, always ROWS at a time and on one
    thread, so that every call for a length has one shape and sums in one order. A row that is missing is filled by a copy.
    """

    gives: Gives = "scores"
    trained_on: tuple[str, ...] = ()

    def __init__(
        self, name: str, network: torch.nn.Module, words: Sequence[str], labels: tuple[str, ...], fields: int, length: int
    ) -> None:
        self.name, self.labels, self.fields, self.length = name, labels, fields, length
        self.words = tuple(words)
        self._network = network.eval()
        self._ids = Ids(self.words)

    def __call__(self, texts: Sequence[Text]) -> list[NDArray[np.float64]]:
        import torch

        if wrong := next((text for text in texts if len(text) != self.fields), None):
            raise VictimError(f"{self.name} reads texts of {self.fields} field(s), got {len(wrong)}: {wrong!r:.60}")
        alike: dict[tuple[int, ...], dict[tuple[tuple[int, ...], ...], list[int]]] = {}
        for place, text in enumerate(texts):
            ids = tuple(tuple(self._ids.of(field)[: self.length]) or (PAD,) for field in text)
            alike.setdefault(tuple(map(len, ids)), {}).setdefault(ids, []).append(place)
        lists = [list(same.items()) for same in alike.values()]
        parts = [some[at : at + ROWS] for some in lists for at in range(0, len(some), ROWS)]
        found: list[NDArray[np.float64]] = [np.empty(0)] * len(texts)
        # One thread each: the order of sums depends on the number of threads. A pool per call survives a fork.
        with ThreadPoolExecutor(min(8, os.cpu_count() or 1), initializer=torch.set_num_threads, initargs=(1,)) as pool:
            for part, scores in zip(parts, pool.map(self._scores, parts), strict=True):
                for (_, places), row in zip(part, scores, strict=False):
                    for place in places:
                        found[place] = row
        return found

    def _scores(self, part: Sequence[tuple[tuple[tuple[int, ...], ...], list[int]]]) -> NDArray[np.float64]:
        import torch

        rows = [ids for ids, _ in part]
        rows += rows[-1:] * (ROWS - len(rows))
        given: list[torch.Tensor] = []
        for field in zip(*rows, strict=True):
            given += [torch.tensor(field), torch.full((ROWS,), len(field[0]))]
        with torch.inference_mode():
            logits = self._network(*given).double().numpy()
        odds = np.exp(logits - logits.max(1, keepdims=True))
        scores: NDArray[np.float64] = np.round(odds / odds.sum(1, keepdims=True), DIGITS)
        return scores


def write(folder: Path, config: dict[str, Any], tensors: dict[str, NDArray[Any]]) -> None:
    from safetensors.numpy import save

    folder.mkdir(parents=True, exist_ok=True)
    (folder / WEIGHTS).write_bytes(save({name: np.ascontiguousarray(tensor) for name, tensor in tensors.items()}))
    (folder / CONFIG).write_text(json.dumps(config, ensure_ascii=False) + "\n", encoding="utf-8")


def load(folder: str | Path, **how: Any) -> Victim:
    """The victim that `scrimp train` wrote to a directory, or the classifier in a directory of Hugging Face.

    `how` is passed on to from_transformer: device, precision, batch.
    """
    folder = Path(folder)
    if not folder.is_dir():
        raise VictimError(f"{folder} is not a directory; train a model into one with: scrimp train --out {folder} ...")
    if not (folder / CONFIG).is_file():
        if (folder / "config.json").is_file():
            from .transformer import from_transformer

            return from_transformer(folder, **how)
        raise VictimError(
            f"{folder} has no {CONFIG} (nor config.json, as a model of Hugging Face would); train a model into it with: "
            f"scrimp train --out {folder} ..."
        )
    check_weights(folder)
    config = read_config(folder / CONFIG)
    kind = config["model"]
    if kind == "transformer":
        from .transformer import from_transformer

        chosen = {key: config[key] for key in ("fields", "length", "choices") if key in config}
        return from_transformer(folder, name=config["name"], labels=tuple(config["labels"]), **chosen, **how)
    if how:
        raise VictimError(f"{folder} holds a {kind}, which takes no {' and no '.join(how)}; only a Hugging Face model does")
    if kind == "wordcnn":
        return load_wordcnn(folder / WEIGHTS, folder / CONFIG)
    if kind not in NETWORKS:
        known = ", ".join(["wordcnn", *NETWORKS, "transformer"])
        raise VictimError(f"{folder / CONFIG}: no model is called {kind!r}; known: {known}")
    return load_network(folder, config)


def read_config(path: Path) -> dict[str, Any]:
    try:
        config = json.loads(path.read_bytes())
        missing = [key for key in ("model", "name", "labels") if key not in config]
    except (ValueError, TypeError) as error:
        raise VictimError(f"{path} is damaged ({error!r:.80}); train the model again") from error
    if missing:
        raise VictimError(f"{path} says nothing of {', '.join(missing)}; train the model again")
    return dict(config)


def check_weights(folder: Path) -> None:
    if (folder / WEIGHTS).is_file() or any(folder.glob("model-*.safetensors")):
        return
    pickles = sorted(file.name for file in folder.iterdir() if file.suffix in PICKLES)
    if pickles:
        raise VictimError(
            f"{folder} holds {', '.join(pickles)} but no {WEIGHTS}; pickles can run any code and are not read: where you "
            "trust it, load it there and write it anew with model.save_pretrained(DIR), or "
            "safetensors.torch.save_file(weights, FILE)"
        )
    raise VictimError(f"{folder} has no {WEIGHTS}; train the model again, or copy the whole directory")


def load_network(folder: Path, config: dict[str, Any]) -> WordModel:
    import torch
    from safetensors import SafetensorError
    from safetensors.torch import load as read

    weights = (folder / WEIGHTS).read_bytes()
    make, fields = NETWORKS[config["model"]]
    try:
        tensors = {name: tensor.float() for name, tensor in read(weights).items()}
        words, classes, units, length, width = (config[key] for key in ("words", "classes", "units", "length", "width"))
    except (SafetensorError, ValueError, TypeError, KeyError) as error:
        raise VictimError(
            f"{folder}: {WEIGHTS} or {CONFIG} is damaged ({error!r:.80}); weights are safetensors, and a pickle under that "
            "name is not read; train the model again"
        ) from error
    network = make(torch.zeros(2 + len(words), width), classes, units=units)
    wanted = {name: tuple(tensor.shape) for name, tensor in network.state_dict().items()}
    got = {name: tuple(tensor.shape) for name, tensor in tensors.items()}
    if wanted != got:
        odd = next(name for name in [*wanted, *got] if wanted.get(name) != got.get(name))
        raise VictimError(
            f"{folder / WEIGHTS}: {odd} is {got.get(odd, 'missing')}, but {CONFIG} asks for {wanted.get(odd, 'no such')}; "
            "the two files must come from one training run"
        )
    if bad := next((name for name, tensor in tensors.items() if not tensor.isfinite().all()), None):
        raise VictimError(f"{folder / WEIGHTS}: {bad} holds NaN or infinity; train the model again")
    network.load_state_dict(tensors)
    text = json.dumps(config, sort_keys=True).encode()
    name = f"{config['name']}@{hashlib.sha256(weights + text).hexdigest()[:8]}"
    return WordModel(name, network, words, tuple(config["labels"]), fields, length)
