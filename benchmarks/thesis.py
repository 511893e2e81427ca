"""Attention and hashing against each baseline on the baseline's own space: `python -m scrimp.benchmarks.thesis`.

The thesis's Table 4.3 measured anew, in one ledger: each baseline as it recommends itself, as the paper and as the code that
the field runs, and the attention attack in its three forms under the same space, floor and window.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from ..attacks.recipes import RECIPES, Recipe
from ..victims import HELD_OUT, load_victim
from .compare import MEASURED
from .data import read_examples
from .run import attack

OURS = ("attention-lsh@paper", "attention-lsh@released", "attention-lsh")
BASELINES = ("pwws", "textfooler", "genetic", "pso")
# Table 4.3, on IMDB: queries and fooled % of the baseline, then of the attention attack on its space.
PRINTED = {
    "pwws": {"BERT": (1583.9, 97.5, 562.9, 96.4), "LSTM": (1429.2, 100.0, 473.8, 100.0)},
    "textfooler": {"BERT": (1130.4, 98.8, 750.0, 98.4), "LSTM": (544.0, 100.0, 330.0, 100.0)},
    "genetic": {"BERT": (7944.8, 66.3, 378.6, 71.1), "LSTM": (3606.9, 97.2, 224.0, 98.5)},
    "pso": {"BERT": (81350.6, 99.0, 737.0, 97.4), "LSTM": (52008.7, 99.5, 438.1, 99.5)},
}
COLUMNS = {
    "space_of": "space of",
    "recipe": "recipe",
    "success_rate": "fooled %",
    "perturbed_pct": "words changed %",
    "charged_mean": "charged mean",
    "charged_median": "median",
    "asked_mean": "asked mean",
    "saved_pct": "queries saved % (asked, against the field's code)",
}


def contenders(baseline: str) -> list[Recipe]:
    """The baseline's forms and the attention attack's, all on the space of the code that the field runs."""
    field = RECIPES[f"{baseline}@released"]
    others = [RECIPES[name] for name in (baseline, f"{baseline}@paper", *OURS)]
    return [field, *(replace(one, space=field.space, floor=field.floor, window=field.window) for one in others)]


def measure(
    victim: str, data: str | Path, baselines: Sequence[str], n: int | None, budget: int, seed: int = 0
) -> dict[str, Any]:
    """Rows of figures, no texts."""
    model = load_victim(victim)
    examples = read_examples(data, labels=model.labels, n=n)
    rows: list[dict[str, Any]] = []
    for baseline in baselines:
        field = 0.0
        for recipe in contenders(baseline):
            found = attack(model, examples, recipe, budget=budget, seed=seed)
            field = field or found.summary["asked_mean"]
            saved = round(100 * (1 - found.summary["asked_mean"] / field), 1) if field else None
            rows.append({"space_of": baseline, "recipe": recipe.name} | found.summary | {"saved_pct": saved})
            print(
                f"{baseline} / {recipe.name}: {rows[-1]['success_rate']} % fooled, {rows[-1]['charged_mean']} charged, "
                f"{rows[-1]['asked_mean']} asked",
                file=sys.stderr,
                flush=True,
            )
    facts = {"victim": model.name, "texts": len(examples), "budget": budget, "seed": seed}
    return facts | {"printed_imdb": PRINTED, "rows": rows}


def markdown(record: dict[str, Any]) -> str:
    """The record as a table."""
    lines = ["| " + " | ".join(COLUMNS.values()) + " |", "|" + "---|" * len(COLUMNS)]
    for row in record["rows"]:
        figures = ["-" if row[name] is None else f"{row[name]:.1f}" for name in list(COLUMNS)[2:]]
        lines.append("| " + " | ".join([f"`{row['space_of']}`", f"`{row['recipe']}`", *figures]) + " |")
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--victim", default="wordcnn-mr", help="as for `scrimp attack` (%(default)s)")
    parser.add_argument("--data", default=HELD_OUT, help="as for `scrimp attack` (the held-out rows of the embedded victim)")
    parser.add_argument("--n", type=int, help="the first N rows only")
    parser.add_argument("--baselines", default=",".join(BASELINES), help="names, separated by commas (%(default)s)")
    parser.add_argument("--budget", type=int, default=5000, help="(%(default)s)")
    parser.add_argument(
        "--out", type=Path, default=MEASURED / "table-4-3-mr.json", help="where the record goes (%(default)s)"
    )
    parser.add_argument("--markdown", action="store_true", help="print the record in --out as a table; run nothing")
    args = parser.parse_args(arguments)
    if not args.markdown:
        args.out.parent.mkdir(parents=True, exist_ok=True)
        rows: list[dict[str, Any]] = []
        for baseline in args.baselines.split(","):
            record = measure(args.victim, args.data, [baseline], args.n, args.budget)
            rows += record["rows"]
            args.out.write_text(json.dumps(record | {"rows": rows}, indent=1) + "\n")
    print(markdown(json.loads(args.out.read_text())))


if __name__ == "__main__":
    main()
