"""What attention and hashing each add (the thesis's Table 4.5, measured anew): `python -m scrimp.benchmarks.ablation`.

Every row is a recipe: random order, attention alone, hashing alone, both, in the printed, the released and our form.
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
from ..ranking import RANKINGS
from ..search import SEARCHES
from ..search.greedy import greedy
from ..victims import HELD_OUT, load_victim
from .compare import BUDGETS, MEASURED
from .data import read_examples
from .run import attack

COLUMNS = {
    "form": "form",
    "parts": "order of words",
    "success_rate": "fooled %",
    "perturbed_pct": "words changed %",
    "charged_mean": "charged mean",
    "charged_median": "median",
    "asked_mean": "asked mean",
    **{f"at_{budget}": f"fooled % at {budget}" for budget in BUDGETS},
    "wall_s": "seconds",
}
THESIS = {  # Table 4.5, BERT on IMDB with WordNet: fooled %, words changed %, queries
    "random": (90.5, 13.3, 507.9),
    "attention": (94.0, 9.3, 851.3),
    "hashing": (95.3, 8.0, 694.9),
    "both": (96.4, 7.5, 562.9),
}


def ablations() -> dict[str, dict[str, Recipe]]:
    """The recipes by form and parts. A form pays for candidates in one way, whatever orders the words."""
    found: dict[str, dict[str, Recipe]] = {}
    for form in ("attention-lsh@paper", "attention-lsh@released", "attention-lsh"):
        both = RECIPES[form]
        whole = "@" in form
        searches = {
            "random": greedy(RANKINGS["random"], whole_slots=True) if whole else SEARCHES["greedy-random"],
            "attention": greedy(RANKINGS["attention"], whole_slots=True) if whole else SEARCHES["greedy-attention"],
            "hashing": both.search,  # without a model all words weigh the same
            "both": both.search,
        }
        found[form] = {
            parts: replace(both, search=search, attention="auto" if parts in ("attention", "both") else None)
            for parts, search in searches.items()
        }
    return found


def measure(
    victim: str, data: str | Path, n: int | None, budget: int, seed: int, forms: Sequence[str] | None = None
) -> dict[str, Any]:
    """One row of figures per form and parts, no texts."""
    model = load_victim(victim)
    examples = read_examples(data, labels=model.labels, n=n)
    attack(model, examples[:1], "attention-lsh", budget=2)  # loads tagger, lexicon and encoders outside the times
    rows = []
    for form, recipes in ablations().items():
        if forms and form not in forms:
            continue
        for parts, recipe in recipes.items():
            found = attack(model, examples, recipe, budget=budget, seed=seed)
            reached = {f"at_{at}": share for at, share in found.success_at(BUDGETS).items()}
            named = sorted({record.prior for record in found})
            rows.append({"form": form, "parts": parts, "attention": named} | found.summary | reached)
            print(
                f"{form} {parts}: {rows[-1]['success_rate']} % fooled, {rows[-1]['perturbed_pct']} % of the words, "
                f"{rows[-1]['charged_mean']} queries",
                file=sys.stderr,
                flush=True,
            )
    facts = {"victim": model.name, "texts": len(examples), "budget": budget, "seed": seed}
    return facts | {"thesis_table_4_5_bert_imdb": THESIS, "rows": rows}


def markdown(record: dict[str, Any]) -> str:
    """The record as a table."""
    lines = ["| " + " | ".join(COLUMNS.values()) + " |", "|" + "---|" * len(COLUMNS)]
    for row in record["rows"]:
        figures = ["-" if row[name] is None else f"{row[name]:.1f}" for name in list(COLUMNS)[2:]]
        lines.append("| " + " | ".join([f"`{row['form']}`", row["parts"], *figures]) + " |")
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--victim", default="wordcnn-mr", help="as for `scrimp attack` (%(default)s)")
    parser.add_argument("--data", default=HELD_OUT, help="as for `scrimp attack` (the held-out rows of the embedded victim)")
    parser.add_argument("--n", type=int, help="the first N rows only")
    parser.add_argument("--forms", help="names of the form's full recipe, separated by commas (all)")
    parser.add_argument("--budget", type=int, default=10_000, help="(%(default)s)")
    parser.add_argument("--seed", type=int, default=0, help="(%(default)s)")
    parser.add_argument(
        "--out", type=Path, default=MEASURED / "ablation-mr.json", help="where the record goes (%(default)s)"
    )
    parser.add_argument("--markdown", action="store_true", help="print the record in --out as a table; run nothing")
    args = parser.parse_args(arguments)
    if not args.markdown:
        forms = args.forms.split(",") if args.forms else None
        record = measure(args.victim, args.data, args.n, args.budget, args.seed, forms)
        args.out.parent.mkdir(parents=True, exist_ok=True)
        args.out.write_text(json.dumps(record, indent=1) + "\n")
    print(markdown(json.loads(args.out.read_text())))


if __name__ == "__main__":
    main()
