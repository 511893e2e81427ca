"""The hard-label attack as printed, as released and ours, side by side: `python -m scrimp.benchmarks.hard_label`.

One long run of each gives the whole curve, since a run at a budget is the beginning of a longer one. All search the same
space; ours is run without its prior too. The record holds figures only, one entry per victim; an entry that is there
already is replaced. `asked` is over the whole run, repeats included: what the same decisions cost without a memory.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from ..attacks.recipes import Recipe, recipe_named
from ..attacks.record import Record
from ..attacks.types import Victim
from ..spaces.encoders import minilm, similarity, use
from ..victims import HELD_OUT, load_victim
from .data import read_examples
from .run import as_prior, attack

MEASURED = Path(__file__).parent / "measured" / "hard-label.json"
NO_PRIOR = "hard-label, no prior"
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
    "asked": "asked in all",
    "both_perturbed_pct": "words changed % (fooled by all)",
    "both_similarity": "similarity (fooled by all)",
    "both_charged": "charged (fooled by all)",
    "both_asked": "asked in all (fooled by all)",
}


def forms(model: Victim) -> dict[str, Recipe]:
    """What is run, by name. Without a prior for the victim both of ours are one."""
    found = {name: recipe_named(name) for name in ("hard-label@paper", "hard-label@released", "hard-label")}
    if as_prior("auto", model) is not None:
        found[NO_PRIOR] = replace(found["hard-label"], prior=None)
    return {name: replace(recipe, space=found["hard-label@paper"].space) for name, recipe in found.items()}


def measure(
    victim: str, data: str | Path, n: int | None, seed: int = 0, edit: tuple[int, ...] | None = None
) -> dict[str, Any]:
    """One row per recipe and budget. The last columns are over the texts that all fool in the end."""
    model = load_victim(victim)
    examples = read_examples(data, labels=model.labels, n=n)
    if edit is not None:
        examples = [replace(example, editable=edit) for example in examples]
    fields = examples[0].editable
    runs = {}
    for name, recipe in forms(model).items():
        found = attack(model, examples, recipe, budget=BUDGET, seed=seed, labels_only=True, judge=None, trace=True)
        runs[name] = [record for record in found if record.status in ("fooled", "held")]
        print(f"{name}: {found.summary['success_rate']} % at {found.summary['charged_mean']} queries", flush=True)
    common = set.intersection(*({r.id for r in records if r.status == "fooled"} for records in runs.values()))
    rows: list[dict[str, Any]] = []
    for name, records in runs.items():
        for budget in BUDGETS:
            shared = _figures([record for record in records if record.id in common], budget, fields)
            row: dict[str, Any] = {"recipe": name, "budget": budget, **_figures(records, budget, fields)}
            rows.append(row | {f"both_{key}": shared[key] for key in ("perturbed_pct", "similarity", "charged", "asked")})
    facts = {"victim": model.name, "texts": len(examples), "attacked": len(records), "fooled_by_all": len(common)}
    space = recipe_named("hard-label@paper").space.name
    return facts | {"space": space, "fields": fields, "most": BUDGET, "seed": seed, "rows": rows}


def _figures(records: Sequence[Record], budget: int | None, fields: Sequence[int]) -> dict[str, float | None]:
    limit = BUDGET if budget is None else budget
    reached = [(record, steps[-1]) for record in records if (steps := _won(record, limit))]
    texts = [
        (_joined(record.text, fields), _joined(record.trace[step.charge - 1]["text"], fields)) for record, step in reached
    ]
    return {
        "success_rate": round(100 * len(reached) / len(records), 2) if records else None,
        "perturbed_pct": _mean([100 * step.changed / record.n_words for record, step in reached]),
        "similarity": _mean(_nearness(use(), texts)),  # whole texts, whatever window guided the search
        "judged": _mean(_nearness(minilm(), texts)),
        "charged": _mean([min(record.charged, limit) for record in records]),
        "asked": _mean([record.asked - record.spared for record in records]),  # all three go on text by text
    }


def _joined(text: Sequence[str], fields: Sequence[int]) -> str:
    return "\n".join(text[field] for field in fields)


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
    parser.add_argument("--edit", type=int, nargs="*", help="fields that may change, numbered from 0 (all)")
    args = parser.parse_args(arguments)
    entry = measure(args.victim, args.data, args.n, edit=None if args.edit is None else tuple(args.edit))
    kept = json.loads(args.out.read_text()) if args.out.exists() else []
    args.out.parent.mkdir(parents=True, exist_ok=True)
    entries = [*(old for old in kept if old["victim"] != entry["victim"]), entry]
    args.out.write_text(json.dumps(entries, indent=1) + "\n")
    print(table(entry))


if __name__ == "__main__":
    main()
