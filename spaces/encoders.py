"""Sentence encoders: texts to unit vectors. A vector never depends on its batch."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import OrderedDict
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..attacks.types import Encoder, Floats
from .passes import one_thread, packed, passes, spread, stacked

Vector = NDArray[np.float32]
REMEMBERED = 16_384  # texts: 32 MB at 512 numbers; 64 attacks in flight ask about some 100 each, and then again to pay
WINDOW = 254  # word pieces; with the two markers this is the length MiniLM was trained on


class SentenceEncoder(ABC):
    """An encoder that remembers the last texts. `encode` need not give vectors of length 1."""

    def __init__(self, name: str, width: int) -> None:
        self.name = name
        self.width = width
        self._memo: OrderedDict[str, Vector] = OrderedDict()

    @abstractmethod
    def encode(self, texts: list[str]) -> list[Vector]:
        """A vector for each text, which neither the other texts nor their number change in any bit."""

    def __call__(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """float32[n, width], every row of length 1."""
        if not texts:
            return np.zeros((0, self.width), np.float32)
        fresh = [text for text in dict.fromkeys(texts) if text not in self._memo]
        found = dict(zip(fresh, map(_unit, self.encode([_readable(text) for text in fresh])), strict=True))
        rows = []
        for text in texts:
            vector = found[text] if text in found else self._memo[text]
            rows.append(vector)
            self._memo[text] = vector
            self._memo.move_to_end(text)
        while len(self._memo) > REMEMBERED:
            self._memo.popitem(last=False)
        return np.stack(rows)


class OneByOne(SentenceEncoder):
    """An encoder made of a function for a single text. Several texts are encoded at the same time, each by one thread."""

    def __init__(self, name: str, width: int, one: Callable[[str], Vector]) -> None:
        super().__init__(name, width)
        self._one = one

    def encode(self, texts: list[str]) -> list[Vector]:
        return spread(self._one, texts)


class Transformer(SentenceEncoder):
    """A transformer that reads texts of any length, `window` word pieces at a time.

    `pool` makes one vector of the states of a window, as heavy as the window is long. Windows of like length go through
    the model together: MiniLM takes short texts in less than half of the time.
    """

    def __init__(self, name: str, path: str, pool: Callable[[Any], Any], window: int) -> None:
        from transformers import AutoModel, AutoTokenizer

        self._tokenizer: Any = AutoTokenizer.from_pretrained(path, local_files_only=True)
        model: Any = AutoModel.from_pretrained(path, local_files_only=True, use_safetensors=True).eval()
        super().__init__(name, model.config.hidden_size)
        self._ends = self._tokenizer.cls_token_id, self._tokenizer.sep_token_id
        if None in self._ends:
            raise ValueError(
                f"the tokenizer in {path} has no cls_token or no sep_token, which mark the ends of every window"
            )
        self._model = packed(model)
        self._pool = pool
        self._window = window

    def encode(self, texts: list[str]) -> list[Vector]:
        rows, owners = [], []
        for owner, text in enumerate(texts):
            pieces = self._tokenizer.encode(text, add_special_tokens=False, verbose=False)
            for start in range(0, max(1, len(pieces)), self._window):
                rows.append([self._ends[0], *pieces[start : start + self._window], self._ends[1]])
                owners.append(owner)
        groups = passes(rows, self._window + 2)
        found = spread(lambda group: self._pooled([rows[place] for place in group]), groups, one_thread)
        pooled = {
            place: vector
            for group, some in zip(groups, found, strict=True)
            for place, vector in zip(group, some, strict=True)
        }
        totals, seen = np.zeros((len(texts), self.width), np.float32), np.zeros((len(texts), 1), np.float32)
        for place, owner in enumerate(owners):
            totals[owner] += pooled[place]
            seen[owner] += len(rows[place])
        return list(totals / seen)

    def _pooled(self, rows: list[list[int]]) -> list[Vector]:
        import torch

        with torch.inference_mode():
            states = self._model(**stacked(rows, self._tokenizer.pad_token_id or 0, self._window + 2)).last_hidden_state
            return [self._pool(some[: len(row)]).numpy() for some, row in zip(states, rows, strict=True)]


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
def minilm() -> Transformer:
    """all-MiniLM-L6-v2, 384 numbers: the judge."""
    from ..resources import fetch

    return Transformer("minilm(l6-v2)", str(fetch("minilm")), lambda states: states.sum(0), WINDOW)


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
