"""Encoders that a user brings: a sentence-transformers directory, or a model of TensorFlow Hub."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from .encoders import OneByOne, Transformer, Vector

# What a window's states become: one vector, as heavy as the window is long.
POOLING: dict[str, Callable[[Any], Any]] = {
    "mean": lambda states: states.sum(0),
    "cls": lambda states: states[0] * len(states),
    "max": lambda states: states.max(0).values * len(states),
}
OLD_NAMES = {"pooling_mode_mean_tokens": "mean", "pooling_mode_cls_token": "cls", "pooling_mode_max_tokens": "max"}
PIECES = 512  # of a window, when the directory does not say


def sentence_encoder(path: str | os.PathLike[str]) -> Transformer:
    """The encoder of a sentence-transformers directory, pooled as its configuration says; longer texts by windows.

    Without modules.json, as in a plain transformers directory, the mean of the last states is taken."""
    folder = Path(path).expanduser().absolute()
    if not (folder / "config.json").is_file():
        raise ValueError(f"{folder} has no config.json; give the directory of a sentence-transformers model")
    return _sentence_encoder(folder)


@cache
def _sentence_encoder(folder: Path) -> Transformer:
    pooling, limit = "mean", PIECES
    for module in _json(folder / "modules.json", []):
        kind = str(module.get("type")).rpartition(".")[2]
        if kind == "Pooling":
            pooling = _pooling(folder / str(module.get("path")) / "config.json")
        elif kind not in ("Transformer", "Normalize"):
            raise ValueError(f"{folder}/modules.json has a module {kind}; only Transformer, Pooling and Normalize are read")
    config = _json(folder / "config.json", {})
    limit = _json(folder / "sentence_bert_config.json", {}).get("max_seq_length") or limit
    limit = min(limit, config.get("max_position_embeddings") or limit)
    name = f"sentences({folder.name},{pooling},{_digest(folder)})"
    return Transformer(name, str(folder), POOLING[pooling], limit - 2)


def _pooling(file: Path) -> str:
    config = _json(file, {})
    asked = [name for key, name in OLD_NAMES.items() if config.get(key)] or [config.get("pooling_mode")]
    others = [key for key, value in config.items() if key.startswith("pooling_mode_") and value and key not in OLD_NAMES]
    if others or len(asked) != 1 or asked[0] not in POOLING:
        raise ValueError(
            f"{file} asks for {', '.join(map(str, asked + others))}; one pooling of {', '.join(POOLING)} is read"
        )
    return str(asked[0])


def _json(file: Path, default: Any) -> Any:
    if not file.is_file():
        return default
    try:
        return json.loads(file.read_text("utf-8"))
    except ValueError as fault:
        raise ValueError(f"{file}: {fault}; the file must be JSON: copy the model again") from fault


@cache
def tfhub(handle: str | os.PathLike[str]) -> OneByOne:
    """A text encoder of TensorFlow Hub by its handle, such as https://tfhub.dev/google/universal-sentence-encoder/4, or
    by the path of its SavedModel directory. A handle is fetched by tensorflow_hub; a path needs no network."""
    try:
        import tensorflow as tf  # type: ignore[import-not-found,import-untyped,unused-ignore]
        import tensorflow_hub as hub  # type: ignore[import-not-found,import-untyped,unused-ignore]
    except ModuleNotFoundError as fault:
        raise ModuleNotFoundError(
            f"encoders of TensorFlow Hub need tensorflow and tensorflow-hub ({fault}): pip install 'scrimp[tfhub]'. "
            "tensorflow-hub imports pkg_resources, which setuptools has dropped: it needs setuptools<81"
        ) from fault
    with contextlib.suppress(RuntimeError):  # too late when something has run already
        tf.config.threading.set_intra_op_parallelism_threads(1)
    place = Path(handle).expanduser()
    local = "://" not in str(handle)
    if local and not (place / "saved_model.pb").is_file():
        raise ValueError(f"{place} has no saved_model.pb; give a handle (https://...) or the directory of a SavedModel")
    model = hub.load(str(place) if local else str(handle))

    def encode(text: str) -> Vector:
        vector: Vector = np.asarray(_tensor(model, tf.constant([text])), np.float32)[0]
        return vector

    probe = encode("")
    if probe.ndim != 1:
        raise ValueError(f"{handle} gives {probe.ndim} dimensions for a text; a sentence encoder gives one row of numbers")
    name = f"{place.name},{_digest(place)}" if local else str(handle)
    return OneByOne(f"tfhub({name})", len(probe), encode)


def _tensor(model: Any, texts: Any) -> Any:
    """Its call, or the signature of models of the first format; "default" or the only output of those with several."""
    found = model(texts) if callable(model) else next(iter(model.signatures.values()))(texts)
    if not isinstance(found, dict):
        return found
    return found["default"] if "default" in found else next(iter(found.values()))


@cache
def _digest(folder: Path) -> str:
    """Eight digits that stand for the content of a directory."""
    content = hashlib.sha256()
    for file in sorted(folder.rglob("*")):
        if file.is_file():
            with file.open("rb") as opened:
                content.update(str(file.relative_to(folder)).encode() + hashlib.file_digest(opened, "sha256").digest())
    return content.hexdigest()[:8]
