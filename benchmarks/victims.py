"""How fast and how good victims are: python -m scrimp.benchmarks.victims --help.

  python -m scrimp.benchmarks.victims --train models --corpora ../shared/data
      train every victim of the papers that is not in models/ yet, then record and time them all
  python -m scrimp.benchmarks.victims models/mr-minilm
      record and time this one; what the record says of others stays

Texts per second in calls of 1, 32 and 256, on short, long and mixed texts; a transformer also in batches, sorted by length and
not, and in bfloat16 and int8. Accuracies come from the cards. --table prints the record beside the thesis's figures.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shlex
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from ..attacks.types import Text, Victim
from ..victims import HELD_OUT, VICTIMS, load, load_victim
from ..victims.saved import CARD
from ..victims.transformer import PRECISIONS, TOGETHER, Transformer
from .data import read_examples
from .overhead import long_reviews
from .train import main as train

RECORD = Path(__file__).parent / "measured" / "victims.json"
CALLS = (1, 32, 256)
SECONDS = 2.0  # a measurement stops after the first call that ends later
LABELS = {
    **dict.fromkeys(("mr", "imdb", "yelp"), "negative,positive"),
    "ag": "World,Sports,Business,Sci/Tech",
    **dict.fromkeys(("snli", "mnli"), "entailment,neutral,contradiction"),
}
# What `scrimp train` is told beside the files, the labels and one thread. Fewer rows than there are, and fewer epochs, where
# all of them would take one core more than some ten minutes.
TRAININGS = {
    "mr-wordcnn": "--model wordcnn",
    "imdb-wordcnn": "--model wordcnn --epochs 6 --length 256",
    "ag-wordcnn": "--model wordcnn --epochs 6 --length 80",
    "yelp-wordcnn": "--model wordcnn --epochs 8 --length 200 --balance",
    "mr-wordlstm": "--model wordlstm --epochs 6",
    "imdb-wordlstm": "--model wordlstm --rows 12000 --epochs 3 --length 150",
    "ag-wordlstm": "--model wordlstm --epochs 4 --length 60",
    "yelp-wordlstm": "--model wordlstm --epochs 6 --length 150 --balance",
    "mr-minilm": "--model transformer --epochs 1 --rate 2e-4 --length 64",
    "imdb-minilm": "--model transformer --rows 4000 --epochs 1 --rate 2e-4 --length 128",
    "ag-minilm": "--model transformer --rows 6000 --epochs 1 --rate 2e-4 --length 64",
    "yelp-minilm": "--model transformer --rows 3500 --epochs 1 --rate 2e-4 --length 128 --balance",
    "snli-esim": "--model esim --epochs 4 --batch 64",
    "snli-infersent": "--model infersent --epochs 4 --batch 64",
    "snli-decomposable": "--model decomposable --epochs 10 --batch 64",
    "snli-minilm": "--model transformer --rows 13000 --epochs 1 --rate 2e-4 --length 64",
    "mnli-minilm": "--model transformer --epochs 2 --rate 2e-4 --length 64",
}
THESIS = {  # original accuracy of the victims of tables 3.2 and 3.3; MiniLM stands where they have BERT
    **{"mr-minilm": 86.0, "imdb-minilm": 90.0, "yelp-minilm": 96.5, "ag-minilm": 94.2, "snli-minilm": 89.1},
    **{"mr-wordlstm": 80.7, "imdb-wordlstm": 89.8, "yelp-wordlstm": 95.0, "ag-wordlstm": 91.3, "mnli-minilm": 85.1},
    **{"mr-wordcnn": 78.0, "imdb-wordcnn": 89.2, "yelp-wordcnn": 93.8, "ag-wordcnn": 91.5},
    **{"snli-infersent": 84.0, "snli-esim": 86.0},
}
TOLD = ("name", "model", "data", "test", "rows", "accuracy", "leakage", "seed", "command", "minutes", "date")


def rate(victim: Victim, texts: Sequence[Text], size: int) -> float:
    """Texts per second of wall time, in calls of `size` texts."""
    start, done = time.perf_counter(), 0
    for at in range(0, len(texts), size):
        done += len(victim(texts[at : at + size]))
        if time.perf_counter() - start > SECONDS:
            break
    return round(done / (time.perf_counter() - start), 1)


def forms(victim: Victim, path: Path | None) -> Iterator[tuple[str, Victim]]:
    """The victim as it is; a transformer also in batches of 32, and with smaller numbers."""
    yield "as it is", victim
    if isinstance(victim, Transformer):
        together = replace(victim, batch=TOGETHER)
        yield f"batches of {TOGETHER}, sorted", together
        yield f"batches of {TOGETHER}, unsorted", replace(together, sort=False)
        for precision in PRECISIONS[1:]:
            yield precision, load(path, precision=precision) if path else victim


def speeds(victim: Victim, kinds: dict[str, list[Text]], path: Path | None = None) -> dict[str, Any]:
    fields = getattr(victim, "fields", 1) or 1
    found: dict[str, Any] = {"load": round(os.getloadavg()[0], 1)}
    for kind, texts in kinds.items():
        given = [text * fields for text in texts]
        rate(victim, given, max(CALLS))  # words met for the first time cost more
        found[kind] = {
            form: {str(size): rate(made, given, size) for size in CALLS if size <= len(given)}
            for form, made in forms(victim, path)
        }
    return found


def bare(command: str) -> str:
    """The command without this machine's directories."""
    words = shlex.split(command)
    return shlex.join(
        Path(word).name if before in ("--data", "--test", "--out", "--base") else word
        for before, word in zip(["", *words], words, strict=False)
    )


def teach(name: str, corpora: Path, models: Path) -> None:
    """One of TRAININGS, into a directory of its name; nothing to do where it is already."""
    if (models / name / CARD).is_file():
        return
    corpus = name.partition("-")[0]
    data, test = corpora / "train" / f"{corpus}.tsv.xz", corpora / "attack_testsets" / f"{corpus}.gz"
    for file in (data, test):
        if not file.is_file():
            raise SystemExit(
                f"{file} is not there; --corpora names the directory with train/*.tsv.xz and attack_testsets/*.gz, which "
                "are not part of this repository. Directories that are trained already can be given by name"
            )
    train(
        [
            *("--data", str(data), "--test", str(test), "--out", str(models / name), "--threads", "1"),
            *("--labels", LABELS[corpus], *TRAININGS[name].split()),
        ]
    )


def table(record: dict[str, Any]) -> str:
    """The accuracies as Markdown."""
    lines = [
        "| victim | training rows | minutes | validation % | test % | thesis % |",
        "|---|---|---|---|---|---|",
    ]
    for name in [*TRAININGS, *(name for name in record["trained"] if name not in TRAININGS)]:
        if card := record["trained"].get(name):
            right = (f"{100 * card['accuracy'][part]:.1f}" for part in ("validation", "test"))
            cells = [name, f"{card['rows']['train']:,}", f"{card['minutes']:.1f}", *right, str(THESIS.get(name, "-"))]
            lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="*", type=Path, metavar="DIR", help="directories that `scrimp train` wrote")
    parser.add_argument("--train", type=Path, metavar="DIR", help="train what is missing into DIR, and record all of it")
    parser.add_argument("--only", metavar="A,B,...", help=f"of {', '.join(TRAININGS)}")
    parser.add_argument("--corpora", type=Path, default=Path("../shared/data"), metavar="DIR", help="(%(default)s)")
    parser.add_argument("--cards-only", action="store_true", help="time nothing")
    parser.add_argument("--table", action="store_true", help="print the accuracies of the record, and do nothing else")
    parser.add_argument("--n", type=int, default=256, help="texts of a kind (%(default)s)")
    parser.add_argument("--out", type=Path, default=RECORD, help="the record (%(default)s)")
    args = parser.parse_args(arguments)
    record: dict[str, Any] = {"machine": platform.machine(), "cores": os.cpu_count(), "texts_per_second": {}, "trained": {}}
    if args.out.is_file():
        record |= json.loads(args.out.read_text(encoding="utf-8"))
    if args.table:
        print(table(record))
        return
    folders = list(args.folders)
    if args.train:
        names = args.only.split(",") if args.only else list(TRAININGS)
        if odd := [name for name in names if name not in TRAININGS]:
            raise SystemExit(f"--only {','.join(odd)}: there are {', '.join(TRAININGS)}")
        for name in names:
            teach(name, args.corpora, args.train)
        folders += [args.train / name for name in names]
    for path in folders:
        card = json.loads((path / CARD).read_text(encoding="utf-8"))
        record["trained"][path.name] = {key: card[key] for key in TOLD if key in card} | {"command": bare(card["command"])}
    save(record, args.out)
    if not args.cards_only:
        kinds = texts(args.n)
        record["words_mean"] = {
            kind: round(float(np.mean([len(text[0].split()) for text in some])), 1) for kind, some in kinds.items()
        }
        for name, path in {**dict.fromkeys(VICTIMS), **{path.name: path for path in folders}}.items():
            record["texts_per_second"][name] = speeds(load(path) if path else load_victim(name), kinds, path)
            print(name, json.dumps(record["texts_per_second"][name]), flush=True)
            save(record, args.out)
    print(table(record))


def texts(n: int) -> dict[str, list[Text]]:
    some = [example.text for example in read_examples(HELD_OUT)]
    short, long = (some * (n // len(some) + 1))[:n], [example.text for example in long_reviews(n)]
    mixed = [text for pair in zip(short, long, strict=True) for text in pair][:n]
    return {"short": short, "long": long, "mixed": mixed}


def save(record: dict[str, Any], path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
