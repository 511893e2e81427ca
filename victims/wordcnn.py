"""A word-level convolutional classifier whose scores do not depend, to the last bit, on what else is in the batch."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Sequence
from itertools import chain
from pathlib import Path
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from ..attacks.types import Floats, Gives, Text
from .wrap import VictimError

DATA = Path(__file__).parent / "data"
EMBEDDED = DATA / "wordcnn_mr.safetensors"
HELD_OUT = DATA / "mr_heldout.tsv"  # rows it was not trained on: label, tab, text
PAD, UNKNOWN_WORD = 0, 1  # the first two rows of the embeddings; words follow

# The tokens of GloVe: does n't, it 's, one mark at a time.
TOKEN = re.compile(
    r"[^\W_]+?(?=n't(?![^\W_]))|n't(?![^\W_])|'(?:s|re|ve|ll|d|m)(?![^\W_])|[^\W_]+|[^\s\w]|_",
)
CHUNK_TOKENS = 2048  # one step's sums (1.2 MB for 150 filters) stay in the processor's cache
MEMO = 1 << 18  # remembered pieces of text between blanks
EXACT = 32.0  # see WordCNN: float16 products are multiples of 2**-48, so float64 sums below 2**5 are exact


def tokenise(text: str) -> list[str]:
    """Lower-case words and marks. What a piece between blanks becomes does not depend on its neighbours."""
    return list(chain.from_iterable(map(pieces, text.lower().split())))


def pieces(chunk: str) -> list[str]:
    return TOKEN.findall(chunk.replace("\N{RIGHT SINGLE QUOTATION MARK}", "'"))


class Ids(dict[str, tuple[int, ...]]):
    """From a piece between blanks to the numbers of its words, worked out at the first sight of it."""

    def __init__(self, words: Sequence[str]) -> None:
        super().__init__()
        self.numbers = {word: number for number, word in enumerate(words, start=UNKNOWN_WORD + 1)}

    def __missing__(self, chunk: str) -> tuple[int, ...]:
        ids = tuple([self.numbers.get(word, UNKNOWN_WORD) for word in pieces(chunk)])
        if len(chunk) <= 64:
            if len(self) >= MEMO:
                self.clear()
            self[chunk] = ids
        return ids

    def of(self, text: str) -> list[int]:
        return list(chain.from_iterable(map(self.__getitem__, text.lower().split())))


class WordCNN:
    """Kim (2014): windows of words, the strongest match of each filter anywhere in the text, one linear layer.

    A convolution over word vectors is a sum of one projection per word and offset, so each word is projected once,
    at its first use, and a text costs additions only. Nothing depends on the batch: the projections are float64 sums of
    products of float16 numbers, which are exact in any order while they stay below 32; they are rounded to float32
    once and added offset by offset; a maximum has no order; the last layer is summed text by text.
    """

    gives: Gives = "scores"
    trained_on: tuple[str, ...] = ()  # data sets, for a look at what a prior shares with it

    def __init__(
        self,
        name: str,
        words: Sequence[str],
        vectors: NDArray[np.float16],  # [2 + words, dims]: the padding, the unknown word, the words
        filters: Sequence[NDArray[np.float16]],  # per window [size, dims, filters]
        bias: NDArray[np.float32],  # [windows * filters]
        linear: NDArray[np.float32],  # [classes, windows * filters]
        offset: NDArray[np.float32],  # [classes]
        labels: tuple[str, ...],
    ) -> None:
        self.name, self.labels = name, labels
        self.words = tuple(words)
        self._ids = Ids(self.words)
        self._vectors = vectors
        self._sizes = [len(window) for window in filters]
        self._kernel = np.concatenate(list(filters)).astype(np.float64)  # [offsets of all windows, dims, filters]
        self._flat = np.ascontiguousarray(self._kernel.swapaxes(0, 1)).reshape(vectors.shape[1], -1)  # for one product
        self._bias, self._linear, self._offset = bias, linear.astype(np.float64), offset.astype(np.float64)
        longest = np.sqrt((vectors.astype(np.float64) ** 2).sum(1).max())
        strongest = np.sqrt((self._kernel**2).sum(1).max())
        if not longest * strongest < EXACT:
            raise VictimError(
                f"{name}: the longest word vector times the strongest filter is {longest * strongest:.3g}, but must be "
                f"below {EXACT:g} for sums that do not depend on the batch; train with more weight decay"
            )
        # Never touched rows take no memory: the system hands out pages at the first write.
        self._table = np.empty((len(self._kernel), len(vectors), self._kernel.shape[2]), np.float32)
        self._known = np.zeros(len(vectors), np.bool_)

    def __call__(self, texts: Sequence[Text]) -> list[NDArray[np.float64]]:
        if not texts:
            return []
        if wrong := next((text for text in texts if len(text) != 1), None):
            raise VictimError(f"{self.name} reads texts of one field, got {len(wrong)} fields: {wrong!r:.60}")
        ids = [self._ids.of(text) for (text,) in texts]
        shortest = max(self._sizes)
        for row in ids:
            if len(row) < shortest:
                row.extend([PAD] * (shortest - len(row)))
        self._learn(np.fromiter(chain.from_iterable(ids), np.int64))
        features = np.empty((len(texts), len(self._bias)), np.float32)
        first = total = 0
        for at, row in enumerate(ids):
            if total and total + len(row) > CHUNK_TOKENS:
                features[first:at] = self._features(ids[first:at])
                first, total = at, 0
            total += len(row)
        features[first:] = self._features(ids[first:])
        return list(self._scores(features))

    def _learn(self, ids: NDArray[np.int64]) -> None:
        """Project the words never seen before."""
        fresh = np.zeros(len(self._known), np.bool_)
        fresh[ids] = True
        fresh &= ~self._known
        for block in np.array_split(np.flatnonzero(fresh), fresh.sum() // 1024 + 1):
            found = self._vectors[block].astype(np.float64) @ self._flat
            self._table[:, block] = found.reshape(len(block), *self._table.shape[::2]).swapaxes(0, 1)
        self._known |= fresh

    def _features(self, ids: Sequence[list[int]]) -> NDArray[np.float32]:
        """The strongest match of each filter, per text."""
        flat = np.fromiter(chain.from_iterable(ids), np.int64)
        lengths = np.fromiter(map(len, ids), np.int64)
        ends = np.cumsum(lengths)
        starts = ends - lengths
        found, step = [], 0
        width = self._table.shape[2]
        part = np.empty((len(flat), width), np.float32)
        for size in self._sizes:
            places = len(flat) - size + 1  # windows across two texts are summed too, and left out of the maximum
            total = np.empty((places, width), np.float32)
            np.take(self._table[step], flat[:places], axis=0, out=total, mode="clip")
            for shift in range(1, size):
                np.take(self._table[step + shift], flat[shift : shift + places], 0, out=part[:places], mode="clip")
                total += part[:places]
            found.append(
                np.stack([total[a:b].max(0) for a, b in zip(starts.tolist(), (ends - size + 1).tolist(), strict=True)])
            )
            step += size
        return cast("NDArray[np.float32]", np.maximum(np.concatenate(found, axis=1) + self._bias, 0))

    def _scores(self, features: NDArray[np.float32]) -> Floats:
        # A product and a sum along the contiguous axis, not a matrix product: its order would depend on the batch.
        logits = (features[:, None, :] * self._linear).sum(-1) + self._offset
        odds = np.exp(logits - logits.max(1, keepdims=True))
        return cast("Floats", np.round(odds / odds.sum(1, keepdims=True), 9))


def save_wordcnn(path: Path, tensors: dict[str, NDArray[Any]], config: dict[str, Any]) -> None:
    """Write `path` (.safetensors) and the words and labels beside it (.json)."""
    from safetensors.numpy import save

    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(save({name: np.ascontiguousarray(tensor) for name, tensor in tensors.items()}))
    path.with_suffix(".json").write_text(json.dumps(config, ensure_ascii=False) + "\n", encoding="utf-8")


def load_wordcnn(path: str | Path | None = None, config_path: Path | None = None) -> WordCNN:
    """The model embedded in the package, or the one that scrimp.victims.train wrote to `path` (.safetensors)."""
    from safetensors import SafetensorError
    from safetensors.numpy import load

    path = EMBEDDED if path is None else Path(path)
    beside = config_path or path.with_suffix(".json")
    for file in (path, beside):
        if not file.is_file():
            raise VictimError(f"{file} is missing; write it with: python -m scrimp.victims.train --out {path}")
    weights, text = path.read_bytes(), beside.read_bytes()
    try:
        tensors, config = load(weights), json.loads(text)
        words, labels, sizes = config["words"], tuple(config["labels"]), config["windows"]
        classes = config.get("classes", len(labels))
        filters = [tensors[f"filters.{size}"] for size in sizes]
        vectors, bias, linear, offset = (tensors[key] for key in ("vectors", "bias", "linear", "offset"))
    except (SafetensorError, ValueError, TypeError, KeyError) as error:
        raise VictimError(f"{path} or {beside.name} is damaged ({error!r}); train it again or fetch it anew") from error
    dims, width = vectors.shape[-1], filters[0].shape[-1]
    rules = {
        "vectors": (vectors, (2 + len(words), dims), np.float16),
        **{f"filters.{size}": (f, (size, dims, width), np.float16) for size, f in zip(sizes, filters, strict=True)},
        "bias": (bias, (len(sizes) * width,), np.float32),
        "linear": (linear, (classes, len(sizes) * width), np.float32),
        "offset": (offset, (classes,), np.float32),
    }
    for key, (tensor, shape, kind) in rules.items():
        if tensor.shape != shape or tensor.dtype != kind:
            raise VictimError(
                f"{path}: {key} is {tensor.dtype}{list(tensor.shape)}, but {beside.name} asks for "
                f"{np.dtype(kind)}{list(shape)}; the two files must come from one training run"
            )
        if not np.isfinite(tensor).all():
            raise VictimError(f"{path}: {key} holds NaN or infinity; train it again")
    revision = hashlib.sha256(weights + text).hexdigest()[:8]
    victim = WordCNN(f"{config['name']}@{revision}", words, vectors, filters, bias, linear, offset, labels)
    victim.trained_on = ("rotten_tomatoes",) if path == EMBEDDED else ()
    return victim
