"""How fast and how good victims are: python -m scrimp.benchmarks.victims [DIR ...] --help.

Texts per second of the packaged victims, and of trained directories given as arguments, in calls of 1, 32 and 256 texts,
on short and on long texts; a transformer also in batches, sorted by length and not. Accuracies come from the cards.
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
from ..victims.transformer import TOGETHER, Transformer
from .data import read_examples
from .overhead import long_reviews

RECORD = Path(__file__).parent / "measured" / "victims.json"
CALLS = (1, 32, 256)
SECONDS = 2.0  # a measurement stops after the first call that ends later
TOLD = ("name", "model", "data", "test", "rows", "accuracy", "leakage", "seed", "command", "minutes", "date")


def rate(victim: Victim, texts: Sequence[Text], size: int) -> float:
    """Texts per second of wall time, in calls of `size` texts."""
    start, done = time.perf_counter(), 0
    for at in range(0, len(texts), size):
        done += len(victim(texts[at : at + size]))
        if time.perf_counter() - start > SECONDS:
            break
    return round(done / (time.perf_counter() - start), 1)


def forms(victim: Victim) -> Iterator[tuple[str, Victim]]:
    """The victim as it is; a transformer also in batches of 32."""
    yield "as it is", victim
    if isinstance(victim, Transformer):
        together = replace(victim, batch=TOGETHER)
        yield f"batches of {TOGETHER}, sorted", together
        yield f"batches of {TOGETHER}, unsorted", replace(together, sort=False)


def speeds(victim: Victim, kinds: dict[str, list[Text]]) -> dict[str, Any]:
    fields = getattr(victim, "fields", 1) or 1
    found: dict[str, Any] = {}
    for kind, texts in kinds.items():
        given = [text * fields for text in texts]
        rate(victim, given, max(CALLS))  # words met for the first time cost more
        found[kind] = {
            form: {str(size): rate(made, given, size) for size in CALLS if size <= len(given)}
            for form, made in forms(victim)
        }
    return found


def bare(command: str) -> str:
    """The command without this machine's directories."""
    words = shlex.split(command)
    return shlex.join(
        Path(word).name if before in ("--data", "--test", "--out", "--base") else word
        for before, word in zip(["", *words], words, strict=False)
    )


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="*", metavar="DIR", help="directories that `scrimp train` wrote")
    parser.add_argument("--cards-only", nargs="*", default=[], metavar="DIR", help="directories not to be timed")
    parser.add_argument("--n", type=int, default=256, help="texts of a kind (%(default)s)")
    parser.add_argument("--out", type=Path, default=RECORD, help="where the record goes")
    args = parser.parse_args(arguments)
    short = [example.text for example in read_examples(HELD_OUT)]
    kinds = {
        "short": (short * (args.n // len(short) + 1))[: args.n],
        "long": [example.text for example in long_reviews(args.n)],
    }
    record: dict[str, Any] = {"machine": platform.machine(), "cores": os.cpu_count(), "load": round(os.getloadavg()[0], 1)}
    record["words_mean"] = {
        kind: round(float(np.mean([len(t[0].split()) for t in some])), 1) for kind, some in kinds.items()
    }
    record["texts_per_second"] = {}
    victims = [*((name, load_victim(name)) for name in VICTIMS), *((Path(path).name, load(path)) for path in args.folders)]
    for name, victim in victims:
        record["texts_per_second"][name] = speeds(victim, kinds)
        print(name, json.dumps(record["texts_per_second"][name]), flush=True)
    record["trained"] = {}
    for path in map(Path, [*args.folders, *args.cards_only]):
        card = json.loads((path / CARD).read_text(encoding="utf-8"))
        record["trained"][path.name] = {key: card[key] for key in TOLD if key in card} | {"command": bare(card["command"])}
    args.out.parent.mkdir(parents=True, exist_ok=True)
    args.out.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
