"""What an attack loses when a victim shows less of its scores, or lies: `python -m scrimp.benchmarks.defences`.

One row per defence and recipe. `stands` is the share of successes that also fool the victim without its defence: a text
that only wins because the defence drew another class for it is no weakness of the model.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from ..attacks.types import Example, Victim
from ..victims import HELD_OUT, load_victim
from ..victims.wrappers import noisy, rounded_scores, top_k_scores
from .data import read_examples
from .run import attack

MEASURED = Path(__file__).parent / "measured"
DEFENCES: dict[str, Callable[[Victim], Victim]] = {
    "none": lambda victim: victim,
    "2 digits": lambda victim: rounded_scores(victim, 2),
    "1 digit": lambda victim: rounded_scores(victim, 1),
    "top 1": lambda victim: top_k_scores(victim, 1),
    "noisy 0.05": lambda victim: noisy(victim, 0.05, seed=0),
}
COLUMNS = {
    "defence": "defence",
    "recipe": "recipe",
    "original_accuracy": "accuracy %",
    "success_rate": "fooled %",
    "stands": "of these without the defence %",
    "charged_mean": "queries mean",
    "charged_median": "median",
    "perturbed_pct": "words changed %",
}


def measure(
    victim: Victim, examples: Sequence[Example], recipes: Sequence[str], budget: int, seed: int
) -> list[dict[str, Any]]:
    """One row of figures per defence and recipe."""
    rows = []
    for defence, wrapped in DEFENCES.items():
        for recipe in recipes:
            found = attack(wrapped(victim), examples, recipe, budget=budget, seed=seed, guide=None, judge=None)
            won = [(record.adversarial, record.target) for record in found.fooled if record.adversarial is not None]
            bare = victim([text for text, _ in won])
            true = sum(int(row.argmax()) != target for row, (_, target) in zip(bare, won, strict=True))
            stands = round(100 * true / len(won), 2) if won else None
            facts = {name: found.summary[name] for name in (*list(COLUMNS)[2:4], *list(COLUMNS)[5:], "fooled", "attacked")}
            rows.append({"defence": defence, "recipe": recipe, "stands": stands} | facts)
            print(f"{defence}, {recipe}: {facts['success_rate']} % at {facts['charged_mean']}", file=sys.stderr, flush=True)
    return rows


def markdown(record: dict[str, Any]) -> str:
    """The record as a table."""
    lines = ["| " + " | ".join(COLUMNS.values()) + " |", "|" + "---|" * len(COLUMNS)]
    for row in record["rows"]:
        cells = [f"{row[name]:.1f}" if isinstance(row[name], float) else str(row[name]) for name in COLUMNS]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--victim", default="wordcnn-mr", help="as for `scrimp attack` (%(default)s)")
    parser.add_argument("--data", default=HELD_OUT, help="as for `scrimp attack` (the held-out rows of the embedded victim)")
    parser.add_argument("--n", type=int, default=100, help="the first N rows (%(default)s)")
    parser.add_argument("--recipes", default="scrimp,pwws", help="names, separated by commas (%(default)s)")
    parser.add_argument("--budget", type=int, default=1000, help="(%(default)s)")
    parser.add_argument("--seed", type=int, default=0, help="(%(default)s)")
    parser.add_argument("--out", type=Path, default=MEASURED / "defences.json", help="where the record goes (%(default)s)")
    args = parser.parse_args(arguments)
    victim = load_victim(args.victim)
    examples = read_examples(args.data, labels=victim.labels, n=args.n)
    rows = measure(victim, examples, args.recipes.split(","), args.budget, args.seed)
    facts = {"victim": victim.name, "texts": len(examples), "budget": args.budget, "seed": args.seed}
    args.out.write_text(json.dumps(facts | {"rows": rows}, indent=1) + "\n")
    print(markdown(facts | {"rows": rows}))


if __name__ == "__main__":
    main()
