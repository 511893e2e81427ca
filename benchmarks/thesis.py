"""Attention and hashing against each baseline on the baseline's own space: `python -m scrimp.benchmarks.thesis`.

The thesis's Table 4.3 measured anew, in one ledger: each baseline as we recommend it, as in its paper and as in the code that
the field runs, and the attention attack in its three forms under the same space, floor and window. WordNet stands in for
PSO's HowNet. What the thesis prints stands beside the attention attack: queries saved and success lost against the baseline,
on IMDB. It does not say with which constants; every form has the same figures beside it.
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
from .compare import MEASURED, added
from .data import read_examples
from .run import attack

OURS = ("attention-lsh@paper", "attention-lsh@released", "attention-lsh")
BASELINES = ("pwws", "textfooler", "genetic", "pso")
# Table 4.3, on IMDB: queries and fooled % of the baseline, then of the attention attack on its space.
PRINTED: dict[str, dict[str, list[float]]] = {
    "pwws": {"BERT": [1583.9, 97.5, 562.9, 96.4], "LSTM": [1429.2, 100.0, 473.8, 100.0]},
    "textfooler": {"BERT": [1130.4, 98.8, 750.0, 98.4], "LSTM": [544.0, 100.0, 330.0, 100.0]},
    "genetic": {"BERT": [7944.8, 66.3, 378.6, 71.1], "LSTM": [3606.9, 97.2, 224.0, 98.5]},
    "pso": {"BERT": [81350.6, 99.0, 737.0, 97.4], "LSTM": [52008.7, 99.5, 438.1, 99.5]},
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
    "saved_charged_pct": "saved % (charged)",
    "lost": "points of success lost",
    "printed_saved": "printed for IMDB, BERT / LSTM: saved %",
    "printed_lost": "printed: points lost",
}


def contenders(baseline: str) -> list[Recipe]:
    """The baseline's forms and the attention attack's, all on the space of the code that the field runs."""
    field = RECIPES[f"{baseline}@released"]
    others = [RECIPES[name] for name in (baseline, f"{baseline}@paper", *OURS)]
    return [field, *(replace(one, space=field.space, floor=field.floor, window=field.window) for one in others)]


def printed(baseline: str) -> dict[str, list[float]]:
    """Queries saved in % and points of success lost by the attention attack, as printed: against BERT, then LSTM."""
    pairs = [PRINTED[baseline][victim] for victim in ("BERT", "LSTM")]
    return {
        "printed_saved": [round(100 * (1 - ours / theirs), 1) for theirs, _, ours, _ in pairs],
        "printed_lost": [round(theirs - ours, 1) for _, theirs, _, ours in pairs],
    }


def measure(
    victim: str, data: str | Path, baselines: Sequence[str], n: int | None, budget: int, seed: int = 0
) -> dict[str, Any]:
    """Rows of figures, no texts."""
    model = load_victim(victim)
    examples = read_examples(data, labels=model.labels, n=n)
    rows: list[dict[str, Any]] = []
    for baseline in baselines:
        field: dict[str, Any] = {}
        for recipe in contenders(baseline):
            found = attack(model, examples, recipe, budget=budget, seed=seed).summary
            field = field or found
            against = {
                "saved_pct": _saved(found, field, "asked_mean"),
                "saved_charged_pct": _saved(found, field, "charged_mean"),
                "lost": round(field["success_rate"] - found["success_rate"], 2),
            }
            row = {"space_of": baseline, "recipe": recipe.name} | found | against
            rows.append(row | (printed(baseline) if recipe.name in OURS else {}))
            print(
                f"{baseline} / {recipe.name}: {rows[-1]['success_rate']} % fooled, {rows[-1]['charged_mean']} charged, "
                f"{rows[-1]['asked_mean']} asked",
                file=sys.stderr,
                flush=True,
            )
    facts = {"victim": model.name, "texts": len(examples), "budget": budget, "seed": seed}
    return facts | {"printed_imdb": PRINTED, "rows": rows}


def _saved(found: dict[str, Any], field: dict[str, Any], what: str) -> float | None:
    return round(100 * (1 - found[what] / field[what]), 1) if field[what] else None


def markdown(record: dict[str, Any]) -> str:
    """The record as a table."""
    lines = ["| " + " | ".join(COLUMNS.values()) + " |", "|" + "---|" * len(COLUMNS)]
    for row in record["rows"]:
        figures = [_cell(row.get(name)) for name in list(COLUMNS)[2:]]
        lines.append("| " + " | ".join([f"`{row['space_of']}`", f"`{row['recipe']}`", *figures]) + " |")
    return "\n".join(lines)


def _cell(value: float | list[float] | None) -> str:
    if isinstance(value, list):
        return " / ".join(f"{one:.1f}" for one in value)
    return "-" if value is None else f"{value:.1f}"


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--victim", default="wordcnn-mr", help="as for `scrimp attack` (%(default)s)")
    parser.add_argument("--data", default=HELD_OUT, help="as for `scrimp attack` (the held-out rows of the embedded victim)")
    parser.add_argument("--n", type=int, help="the first N rows only")
    parser.add_argument(
        "--baselines", default=",".join(BASELINES), help="names, separated by commas; rows of others are kept (%(default)s)"
    )
    parser.add_argument("--budget", type=int, default=5000, help="(%(default)s)")
    parser.add_argument(
        "--out", type=Path, default=MEASURED / "table-4-3-mr.json", help="where the record goes (%(default)s)"
    )
    parser.add_argument("--markdown", action="store_true", help="print the record in --out as a table; run nothing")
    args = parser.parse_args(arguments)
    if not args.markdown:
        args.out.parent.mkdir(parents=True, exist_ok=True)
        for baseline in args.baselines.split(","):
            record = measure(args.victim, args.data, [baseline], args.n, args.budget)
            if args.out.exists():
                record = added(json.loads(args.out.read_text()), record, "space_of", BASELINES)
            args.out.write_text(json.dumps(record, indent=1) + "\n")
    print(markdown(json.loads(args.out.read_text())))


if __name__ == "__main__":
    main()
