"""Recipes side by side on one victim and the same texts, in one ledger: `python -m scrimp.benchmarks.compare`.

Writes one JSON record with a row per recipe and prints it as a table (--markdown for the README).
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from ..attacks.recipes import RECIPES, recipe_named
from ..ranking.prior import Linear, Prior
from ..spaces import space_named
from ..victims import HELD_OUT, load_victim
from .data import read_examples
from .run import as_prior, attack

MEASURED = Path(__file__).parent / "measured"
BUDGETS = (5, 10, 20, 50, 100)
COLUMNS = {
    "recipe": "recipe",
    "success_rate": "fooled %",
    "after_attack_accuracy": "accuracy left %",
    "perturbed_pct": "words changed %",
    "similarity_mean": "similarity (guide)",
    "judged_mean": "similarity (judge)",
    "charged_mean": "charged mean",
    "charged_median": "median",
    "charged_p95": "95 %",
    "asked_mean": "asked mean",
    **{f"at_{budget}": f"fooled % at {budget}" for budget in BUDGETS},
    "wall_s": "seconds",
}


def compare(
    victim: str,
    data: str | Path,
    recipes: Sequence[str],
    n: int | None = None,
    budget: int = 10_000,
    floor: float | None = None,
    space: str | None = None,
    seed: int = 0,
    prior: str | None = None,
    learn: int = 0,
    edit: tuple[int, ...] | None = None,
    report: Callable[[dict[str, Any]], None] | None = None,
) -> dict[str, Any]:
    """One row of figures per recipe. A recipe for labels is given labels only.

    `prior` replaces the recipes' own; "shuffled" is that one with its weights dealt to other words: a useless prior.
    `report` is called with the record so far after each recipe.
    """
    model = load_victim(victim)
    examples = read_examples(data, labels=model.labels, n=n)
    if edit is not None:
        examples = [replace(example, editable=edit) for example in examples]
    attack(model, examples[:1], recipes[0], budget=2)  # loads tagger, lexicon and encoders outside the times
    chosen = _shuffled(as_prior("auto", model)) if prior == "shuffled" else as_prior(prior, model)
    rows: list[dict[str, Any]] = []
    facts = {"victim": model.name, "texts": len(examples), "budget": budget, "floor": floor, "space": space, "seed": seed}
    facts |= {"prior": chosen.name if chosen else prior or "as in the recipe", "learn": learn}
    for name in recipes:
        recipe = recipe_named(name)
        found = attack(
            model,
            examples,
            recipe,
            budget=budget,
            seed=seed,
            floor=floor,
            space=space_named(space) if space else None,
            learn=learn,
            prior=chosen or prior,
            labels_only=recipe.search.needs == "label",
        )
        reached = {f"at_{at}": share for at, share in found.success_at(BUDGETS).items()}
        rows.append({"recipe": name, "needs": recipe.search.needs} | found.summary | reached)
        print(
            f"{name}: {rows[-1]['success_rate']} % fooled at {rows[-1]['charged_mean']} queries", file=sys.stderr, flush=True
        )
        if report:
            report(facts | {"rows": rows})
    return facts | {"rows": rows}


def _shuffled(prior: Prior | None) -> Prior | None:
    if not isinstance(prior, Linear):
        return prior
    order = np.random.default_rng(0).permutation(len(prior.weights))
    return replace(prior, name=f"shuffled {prior.name}", weights=prior.weights[order])


def added(
    old: dict[str, Any], new: dict[str, Any], column: str = "recipe", order: Sequence[str] = tuple(RECIPES)
) -> dict[str, Any]:
    """The rows of both, in this order of a column, where nothing else differs; new rows take the place of old ones."""
    differ = [key for key in new if key != "rows" and old.get(key) != new[key]]
    if differ:
        raise ValueError(f"the record differs in {', '.join(differ)}; give another --out")
    fresh = {row[column] for row in new["rows"]}
    rows = [*(row for row in old["rows"] if row[column] not in fresh), *new["rows"]]
    return new | {"rows": sorted(rows, key=lambda row: order.index(row[column]))}


def markdown(record: dict[str, Any]) -> str:
    """The record as a table for the README."""
    lines = ["| " + " | ".join(COLUMNS.values()) + " |", "|" + "---|" * len(COLUMNS)]
    for row in record["rows"]:
        cells = [f"`{row['recipe']}`" + (" (labels)" if row["needs"] == "label" else "")]
        for name in list(COLUMNS)[1:]:
            value = row[name]
            digits = 3 if name in ("similarity_mean", "judged_mean") else 1
            cells.append("-" if value is None else f"{value:.{digits}f}")
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--victim", default="wordcnn-mr", help="as for `scrimp attack` (%(default)s)")
    parser.add_argument("--data", default=HELD_OUT, help="as for `scrimp attack` (the held-out rows of the embedded victim)")
    parser.add_argument("--n", type=int, help="the first N rows only")
    parser.add_argument("--recipes", default=",".join(RECIPES), help="names, separated by commas (all)")
    parser.add_argument("--space", help="the same space under every recipe")
    parser.add_argument("--budget", type=int, default=10_000, help="(%(default)s)")
    parser.add_argument("--floor", type=float, help="least cosine to the original, by the guide encoder")
    parser.add_argument("--prior", help="as for `scrimp attack`, or shuffled: a useless one")
    parser.add_argument("--learn", type=int, default=0, help="as for `scrimp attack` (%(default)s)")
    parser.add_argument("--edit", type=int, nargs="*", help="fields that may change, numbered from 0 (all)")
    parser.add_argument("--seed", type=int, default=0, help="(%(default)s)")
    parser.add_argument("--out", type=Path, default=MEASURED / "recipes.json", help="where the record goes (%(default)s)")
    parser.add_argument("--add", action="store_true", help="keep the rows of other recipes that --out has")
    parser.add_argument("--markdown", action="store_true", help="print the record in --out as a table; run nothing")
    args = parser.parse_args(arguments)
    if not args.markdown:
        names = [name.strip() for name in args.recipes.split(",")]
        edit = None if args.edit is None else tuple(args.edit)
        plan = (args.budget, args.floor, args.space, args.seed, args.prior, args.learn, edit)
        args.out.parent.mkdir(parents=True, exist_ok=True)
        if not args.add:
            args.out.unlink(missing_ok=True)

        def report(record: dict[str, Any]) -> None:
            if args.out.exists():
                record = added(json.loads(args.out.read_text()), record)
            args.out.write_text(json.dumps(record, indent=1) + "\n")

        compare(args.victim, args.data, names, args.n, *plan, report=report)
    print(markdown(json.loads(args.out.read_text())))


if __name__ == "__main__":
    main()
