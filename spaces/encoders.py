"""Sentence encoders: texts to unit vectors, one text at a time, so that a vector never depends on its batch."""

from __future__ import annotations

import os
from collections import OrderedDict
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..attacks.types import Encoder, Floats

Vector = NDArray[np.float32]
REMEMBERED = 16_384  # texts: 32 MB at 512 numbers; 64 attacks in flight ask about some 100 each, and then again to pay
WINDOW = 254  # word pieces; with the two markers this is the length MiniLM was trained on


class OneByOne:
    """An encoder made of a function for a single text. Several texts are encoded at the same time, each by one thread.

    `prepare` is called once in each of those threads."""

    def __init__(
        self, name: str, width: int, encode: Callable[[str], Vector], prepare: Callable[[], None] | None = None
    ) -> None:
        self.name = name
        self.width = width
        self._encode = encode
        self._prepare = prepare
        self._memo: OrderedDict[str, Vector] = OrderedDict()

    def __call__(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """float32[n, width], every row of length 1."""
        if not texts:
            return np.zeros((0, self.width), np.float32)
        fresh = [text for text in dict.fromkeys(texts) if text not in self._memo]
        found = dict(zip(fresh, self._map([_readable(text) for text in fresh]), strict=True))
        rows = []
        for text in texts:
            vector = found[text] if text in found else self._memo[text]
            rows.append(vector)
            self._memo[text] = vector
            self._memo.move_to_end(text)
        while len(self._memo) > REMEMBERED:
            self._memo.popitem(last=False)
        return np.stack(rows)

    def _map(self, texts: list[str]) -> list[Vector]:
        # A pool per call costs a tenth of a millisecond and survives a fork.
        with ThreadPoolExecutor(min(8, os.cpu_count() or 1), initializer=self._prepare) as pool:
            return [_unit(vector) for vector in pool.map(self._encode, texts)]


@cache
def use() -> OneByOne:
    """Universal Sentence Encoder, quantised, 512 numbers: the guide."""
    import onnxruntime
    from onnxruntime_extensions import get_library_path

    from ..resources import fetch

    options = onnxruntime.SessionOptions()
    options.register_custom_ops_library(get_library_path())
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(str(fetch("use")), options, providers=["CPUExecutionProvider"])

    # The model picks its quantisation step from the whole batch: 64 texts of 1 to 250 words encoded together differ from
    # the same texts encoded alone by up to 0.017 per number, and by 0.005 in cosine. One by one is also faster, since
    # nothing is padded: 1900 against 620 texts/s at 20 words, 316 against 56 at 250 words, on one thread.
    def encode(text: str) -> Vector:
        vector: Vector = session.run(None, {"inputs": [text]})[0][0]
        return vector

    return OneByOne("use(quantised)", 512, encode)


@cache
def minilm() -> OneByOne:
    """all-MiniLM-L6-v2, 384 numbers: the judge."""
    from ..resources import fetch

    return transformer("minilm(l6-v2)", str(fetch("minilm")), lambda states: states.sum(0), WINDOW)


def transformer(name: str, path: str, pool: Callable[[Any], Any], window: int) -> OneByOne:
    """A transformer that reads texts of any length, `window` word pieces at a time.

    `pool` makes one vector of the states of a window, as heavy as the window is long."""
    import torch
    from transformers import AutoModel, AutoTokenizer

    tokenizer: Any = AutoTokenizer.from_pretrained(path, local_files_only=True)
    model: Any = AutoModel.from_pretrained(path, local_files_only=True, use_safetensors=True).eval()
    first, last, width = tokenizer.cls_token_id, tokenizer.sep_token_id, model.config.hidden_size
    if first is None or last is None:
        raise ValueError(f"the tokenizer in {path} has no cls_token or no sep_token, which mark the ends of every window")

    # Batches, even of equal lengths, differ from single texts by 1.6e-7 where texts are short, and so do two threads
    # from one. That is little, but a floor is a comparison: with one text and one thread there is no difference at all.
    def encode(text: str) -> Vector:
        pieces = tokenizer.encode(text, add_special_tokens=False, verbose=False)
        total, seen = torch.zeros(width), 0
        with torch.inference_mode():
            for start in range(0, max(1, len(pieces)), window):
                ids = [first, *pieces[start : start + window], last]
                total += pool(model(input_ids=torch.tensor([ids])).last_hidden_state[0])
                seen += len(ids)
        vector: Vector = (total / seen).numpy()
        return vector

    return OneByOne(name, width, encode, prepare=lambda: torch.set_num_threads(1))


ENCODERS: dict[str, Callable[[], Encoder]] = {"use": use, "minilm": minilm}


def similarity(a: NDArray[np.float32], b: NDArray[np.float32]) -> Floats:
    """Cosine of unit vectors, row by row; either side may be a single vector."""
    cosine: Floats = np.clip((a.astype(np.float64) * b.astype(np.float64)).sum(-1), -1.0, 1.0)
    return cosine


def _readable(text: str) -> str:
    """Lone surrogates cannot be stored as UTF-8, and the runtime would cut a text at the first NUL."""
    return text.encode("utf-8", "replace").decode("utf-8").replace("\0", " ")


def _unit(vector: Vector) -> Vector:
    length = float(np.linalg.norm(vector))
    if length:
        return np.asarray(vector / length, dtype=np.float32)
    axis = np.zeros_like(vector)  # no direction of its own, but a unit vector all the same
    axis[0] = 1.0
    return axis
