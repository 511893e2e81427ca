"""What `scrimp train` does: a file of labelled texts in, a victim's directory out."""

from __future__ import annotations

import argparse
import shlex
import sys
from collections.abc import Sequence
from dataclasses import fields, replace
from typing import Any

from .data import read_examples

EXAMPLES = """\
examples:
  scrimp train --model wordcnn --data reviews.csv --test held_out.csv --out models/cnn
  scrimp train --model esim --data pairs.tsv --labels entailment,neutral,contradiction --out models/esim
  scrimp train --model transformer --data reviews.csv --rows 5000 --epochs 2 --out models/minilm
      all-MiniLM-L6-v2, fine-tuned; --base takes another model by path or name
  scrimp attack --victim models/cnn --data held_out.csv

scrimp is for testing the robustness of models you are allowed to test.
"""
HELP = {
    "epochs": "at most so many passes over the training rows",
    "patience": "stop after so many epochs without a lower loss on the validation rows",
    "batch": "rows per step",
    "rate": "learning rate",
    "vector_rate": "learning rate of the word vectors; 0 freezes them",
    "decay": "weight decay",
    "dropout": "share of features left out in training",
    "hide": "share of words shown as the unknown word in training",
    "smooth": "label smoothing",
    "average": "decay of the running average of the weights; 0 for none",
    "warm": "share of the steps in which the rate rises, to fall to 0 afterwards; 0 for one rate",
    "clip": "longest gradient; 0 for any",
    "balance": "let rows of rare classes weigh more, as if all classes were equally frequent",
    "seed": "for the split, the first weights, the order and dropout (1)",
}


def options() -> argparse.ArgumentParser:
    from ..victims.learning import Course
    from ..victims.training import COURSES

    parser = argparse.ArgumentParser(
        prog="scrimp train",
        description="Train a victim. Numbers that are not given depend on the model and end up in the card.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--model", required=True, choices=list(COURSES), help="esim, infersent, decomposable read pairs")
    parser.add_argument("--data", required=True, metavar="FILE", help="labelled texts, as for `scrimp attack`; .xz too")
    parser.add_argument("--out", required=True, metavar="DIR", help="directory for the weights, victim.json and card.json")
    parser.add_argument("--test", metavar="FILE", help="texts to score at the end, and to look for among the training texts")
    parser.add_argument("--labels", metavar="A,B,...", help="class names in order; needed where the file holds names")
    parser.add_argument("--text-column", metavar="NAME", help="column of the text; several, separated by commas, for pairs")
    parser.add_argument("--label-column", metavar="NAME")
    parser.add_argument("--rows", type=int, metavar="N", help="use N rows, drawn by the seed")
    parser.add_argument(
        "--length", type=int, metavar="N", help="words read of a field (256), or word pieces of a text (128)"
    )
    parser.add_argument("--words", type=int, default=22_000, metavar="N", help="size of the vocabulary (%(default)s)")
    parser.add_argument("--units", type=int, metavar="N", help="width of LSTMs and layers (150, decomposable 200)")
    parser.add_argument("--base", default="", metavar="M", help="transformer to start from (all-MiniLM-L6-v2)")
    parser.add_argument("--threads", type=int, default=2, metavar="N", help="the weights depend on it (%(default)s)")
    for field in fields(Course):
        flag, kind = f"--{field.name.replace('_', '-')}", type(field.default)
        if kind is bool:
            parser.add_argument(flag, action="store_true", default=None, help=HELP[field.name])
        else:
            parser.add_argument(flag, type=kind, metavar="X", help=HELP[field.name])
    return parser


def main(arguments: Sequence[str]) -> int:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

    from ..progress import printable
    from ..victims.leakage import told
    from ..victims.learning import Course
    from ..victims.training import COURSES, Plan, file_facts, train

    args = options().parse_args(arguments)
    for name in ("rows", "length", "words", "units", "threads", "epochs", "batch"):
        value = getattr(args, name)
        if value is not None and value < 1:
            raise ValueError(f"--{name} {value}: at least 1 is needed")
    labels = tuple(name.strip() for name in args.labels.split(",")) if args.labels else ()
    given = {field.name: getattr(args, field.name) for field in fields(Course)}
    course = replace(COURSES[args.model], **{name: value for name, value in given.items() if value is not None})
    plan = Plan(args.model, labels, args.rows, args.length, args.words, args.units, args.base, args.threads)
    examples = read_examples(args.data, args.text_column, args.label_column, labels)
    test = read_examples(args.test, args.text_column, args.label_column, labels) if args.test else []
    files = {"data": args.data} | ({"test": args.test} if args.test else {})
    facts: dict[str, Any] = {part: file_facts(path) for part, path in files.items()}
    facts["command"] = shlex.join(["scrimp", "train", *arguments])
    console = Console(file=sys.stderr)
    columns = BarColumn(), MofNCompleteColumn(), TextColumn("{task.description}"), TimeElapsedColumn(), TimeRemainingColumn()
    with Progress(TextColumn("training"), *columns, console=console) as progress:
        task = progress.add_task("")

        def report(done: int, total: int, said: str) -> None:
            progress.update(task, completed=done, total=total, description=said)
            if "validation" in said:
                console.print(said)

        card = train(examples, args.out, plan, course, test, facts, report)
    right = card["accuracy"]
    parts = [f"{right[part]:.1%} of {card['rows'][part]} {part} rows" for part in ("validation", "test") if part in right]
    print(printable(f"{card['name']}: right on {' and '.join(parts)}; trained on {card['rows']['train']}"))
    if "leakage" in card:
        print(told(card["leakage"]))
    print(printable(f"written to {args.out}; use it with: scrimp attack --victim {shlex.quote(args.out)} --data FILE"))
    return 0
