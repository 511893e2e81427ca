"""The scrimp attack beside the others, in every setting that the README speaks of: `python -m scrimp.benchmarks.frugal`.

Needs the field's test lines (--data DIR: mr.gz, imdb.gz, snli.gz) and, for some settings, models that `scrimp train` made
(--models DIR). Settings whose files are absent are left out, and named. Every setting becomes a record under measured/.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from .compare import MEASURED, added, compare

OURS = ("scrimp", "scrimp-pruned", "scrimp-labels", "scrimp-labels-pruned")
OTHERS = ("greedy-wordnet", "pwws", "attention-lsh", "random-wordnet", "restore-wordnet", "hard-label")  # the last is slow


@dataclass(frozen=True)
class Setting:
    """One table: a victim, texts, and what is put side by side. A name with a slash is a trained model."""

    name: str
    victim: str
    data: str
    n: int
    recipes: tuple[str, ...] = OURS + OTHERS
    floor: float | None = None
    prior: str | None = None
    learn: int = 0
    edit: tuple[int, ...] | None = None


PAIRS = ("greedy-wordnet", "pwws", "attention-lsh", "random-wordnet", *OURS)
SETTINGS = (
    Setting("mr", "wordcnn-mr", "mr.gz", 200),
    Setting("mr-floor", "wordcnn-mr", "mr.gz", 200, floor=0.8),
    Setting("imdb", "imdb-spacy", "imdb.gz", 100),
    Setting("imdb-floor", "imdb-spacy", "imdb.gz", 50, ("scrimp", "greedy-wordnet"), floor=0.95),
    Setting("imdb-wordcnn", "models/imdb-wordcnn", "imdb.gz", 100, OURS + OTHERS[:-1], prior="mr"),
    Setting("mr-minilm", "models/mr-minilm", "mr.gz", 200, OURS + OTHERS[:-1]),
    Setting("mr-minilm-surrogate", "models/mr-minilm", "mr.gz", 200, OURS, prior="models/imdb-minilm"),
    Setting("snli", "models/snli-infersent", "snli.gz", 200, PAIRS, prior="models/snli-decomposable", edit=(1,)),
    Setting("mr-prior-none", "wordcnn-mr", "mr.gz", 200, OURS, prior="none"),
    Setting("mr-prior-shuffled", "wordcnn-mr", "mr.gz", 200, OURS, prior="shuffled"),
    Setting("mr-prior-attention", "wordcnn-mr", "mr.gz", 200, OURS, prior="attention"),
    Setting("imdb-prior-none", "imdb-spacy", "imdb.gz", 100, ("scrimp", "scrimp-labels"), prior="none"),
    Setting("imdb-prior-shuffled", "imdb-spacy", "imdb.gz", 100, ("scrimp", "scrimp-labels"), prior="shuffled"),
    Setting("mr-plain-auto", "wordcnn-mr", "mr.gz", 500, ("scrimp", "scrimp-labels")),
    Setting("mr-learn-auto", "wordcnn-mr", "mr.gz", 500, ("scrimp", "scrimp-labels"), learn=16),
    Setting("mr-plain-none", "wordcnn-mr", "mr.gz", 500, ("scrimp", "scrimp-labels"), prior="none"),
    Setting("mr-learn-none", "wordcnn-mr", "mr.gz", 500, ("scrimp", "scrimp-labels"), prior="none", learn=16),
)


def run(setting: Setting, data: Path, models: Path, out: Path, only: Sequence[str] = ()) -> None:
    """Measure a setting, all recipes (or only some) on WordNet's candidates, and keep the record."""

    def found(name: str | None) -> str | None:
        return str(models / name.removeprefix("models/")) if name and name.startswith("models/") else name

    record = compare(
        found(setting.victim) or setting.victim,
        data / setting.data,
        [name for name in setting.recipes if not only or name in only],
        setting.n,
        floor=setting.floor,
        space="wordnet",
        prior=found(setting.prior),
        learn=setting.learn,
        edit=setting.edit,
    )
    path = out / f"{setting.name}.json"
    if only and path.exists():
        record = added(json.loads(path.read_text()), record, order=setting.recipes)
    path.write_text(json.dumps(record, indent=1) + "\n")


def missing(setting: Setting, data: Path, models: Path) -> list[str]:
    """The files a setting needs that are not there."""
    named = [name for name in (setting.victim, setting.prior) if name and name.startswith("models/")]
    needed = [data / setting.data, *(models / name.removeprefix("models/") for name in named)]
    return [str(path) for path in needed if not path.exists()]


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("settings", nargs="*", help=f"which (all): {', '.join(setting.name for setting in SETTINGS)}")
    parser.add_argument("--data", type=Path, required=True, help="directory of the test lines")
    parser.add_argument("--models", type=Path, default=Path("models"), help="directory of trained models (%(default)s)")
    parser.add_argument("--recipes", default="", help="measure these again and keep the other rows (all)")
    parser.add_argument("--out", type=Path, default=MEASURED, help="where the records go (%(default)s)")
    args = parser.parse_args(arguments)
    unknown = set(args.settings) - {setting.name for setting in SETTINGS}
    if unknown:
        parser.error(f"no setting {', '.join(sorted(unknown))}; there are {', '.join(setting.name for setting in SETTINGS)}")
    args.out.mkdir(parents=True, exist_ok=True)
    for setting in SETTINGS:
        if args.settings and setting.name not in args.settings:
            continue
        absent = missing(setting, args.data, args.models)
        if absent:
            print(f"{setting.name}: left out, {', '.join(absent)} is not there", file=sys.stderr)
            continue
        print(f"{setting.name}:", file=sys.stderr, flush=True)
        run(setting, args.data, args.models, args.out, [name for name in args.recipes.split(",") if name])


if __name__ == "__main__":
    main()
