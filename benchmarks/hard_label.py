"""The hard-label attack as printed, as released and ours, side by side: `python -m scrimp.benchmarks.hard_label`.

One long run of each gives the whole curve, since a run at a budget is the beginning of a longer one. All three search the
same space. The record holds figures only, one entry per victim; an entry that is there already is replaced.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ..attacks.recipes import recipe_named
from ..attacks.record import Record
from ..spaces.encoders import minilm, similarity, use
from ..victims import HELD_OUT, load_victim
from .data import read_examples
from .run import attack

MEASURED = Path(__file__).parent / "measured" / "hard-label.json"
RECIPES = ("hard-label@paper", "hard-label@released", "hard-label")
BUDGET = 5000
BUDGETS = (100, 500, 1000, BUDGET, None)  # None: as far as the run went
COLUMNS = {
    "recipe": "recipe",
    "budget": "budget",
    "success_rate": "fooled %",
    "perturbed_pct": "words changed %",
    "similarity": "similarity (guide)",
    "judged": "similarity (judge)",
    "charged": "charged",
    "both_perturbed_pct": "words changed % (fooled by all)",
    "both_similarity": "similarity (fooled by all)",
    "both_charged": "charged (fooled by all)",
}


def measure(victim: str, data: str | Path, n: int | None, seed: int = 0) -> dict[str, Any]:
    """One row per recipe and budget. The last three columns are over the texts that all three fool in the end."""
    model = load_victim(victim)
    examples = read_examples(data, labels=model.labels, n=n)
    space = recipe_named(RECIPES[0]).space
    runs = {}
    for name in RECIPES:
        found = attack(
            model, examples, name, budget=BUDGET, seed=seed, space=space, labels_only=True, judge=None, trace=True
        )
        runs[name] = [record for record in found if record.status in ("fooled", "held")]
        print(f"{name}: {found.summary['success_rate']} % at {found.summary['charged_mean']} queries", flush=True)
    common = set.intersection(*({r.id for r in records if r.status == "fooled"} for records in runs.values()))
    rows: list[dict[str, Any]] = []
    for name, records in runs.items():
        asked = round(float(np.mean([record.asked for record in records])), 1)
        for budget in BUDGETS:
            shared = _figures([record for record in records if record.id in common], budget)
            row: dict[str, Any] = {"recipe": name, "budget": budget, "asked": asked, **_figures(records, budget)}
            rows.append(row | {f"both_{key}": shared[key] for key in ("perturbed_pct", "similarity", "charged")})
    facts = {"victim": model.name, "texts": len(examples), "attacked": len(records), "fooled_by_all": len(common)}
    return facts | {"space": space.name, "most": BUDGET, "seed": seed, "rows": rows}


def _figures(records: Sequence[Record], budget: int | None) -> dict[str, float | None]:
    limit = BUDGET if budget is None else budget
    reached = [(record, steps[-1]) for record in records if (steps := _won(record, limit))]
    texts = [(record.text[0], record.trace[step.charge - 1]["text"][0]) for record, step in reached]
    return {
        "success_rate": round(100 * len(reached) / len(records), 2) if records else None,
        "perturbed_pct": _mean([100 * step.changed / record.n_words for record, step in reached]),
        "similarity": _mean(_nearness(use(), texts)),  # whole texts, whatever window guided the search
        "judged": _mean(_nearness(minilm(), texts)),
        "charged": _mean([min(record.charged, limit) for record in records]),
    }


def _won(record: Record, limit: int) -> list[Any]:
    return [step for step in record.improvements if step.fooled and step.charge <= limit]


def _nearness(encode: Callable[[Sequence[str]], Any], texts: Sequence[tuple[str, str]]) -> list[float]:
    before, after = encode([a for a, _ in texts]), encode([b for _, b in texts])
    return [float(value) for value in similarity(before, after)]


def _mean(values: Sequence[float]) -> float | None:
    return round(float(np.mean(values)), 4) if len(values) else None


def table(entry: dict[str, Any]) -> str:
    """An entry of the record as a table."""
    lines = [f"{entry['victim']}, {entry['attacked']} texts attacked, {entry['fooled_by_all']} fooled by all", ""]
    lines += ["| " + " | ".join(COLUMNS.values()) + " |", "|" + "---|" * len(COLUMNS)]
    for row in entry["rows"]:
        cells = [row["recipe"], str(row["budget"] or "-")]
        for name in list(COLUMNS)[2:]:
            digits = 3 if name.endswith(("similarity", "judged")) else 1
            cells.append("-" if row[name] is None else f"{row[name]:.{digits}f}")
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--victim", default="wordcnn-mr", help="as for `scrimp attack` (%(default)s)")
    parser.add_argument("--data", default=HELD_OUT, help="as for `scrimp attack` (the held-out rows of the embedded victim)")
    parser.add_argument("--n", type=int, help="the first N rows only")
    parser.add_argument("--out", type=Path, default=MEASURED, help="where the record goes (%(default)s)")
    args = parser.parse_args(arguments)
    entry = measure(args.victim, args.data, args.n)
    kept = json.loads(args.out.read_text()) if args.out.exists() else []
    args.out.parent.mkdir(parents=True, exist_ok=True)
    entries = [*(old for old in kept if old["victim"] != entry["victim"]), entry]
    args.out.write_text(json.dumps(entries, indent=1) + "\n")
    print(table(entry))


if __name__ == "__main__":
    main()
