"""scrimp beside TextAttack and OpenAttack: `python -m scrimp.benchmarks.peers`.

All are given the same victim, texts, candidates (a table, written once from our WordNet space) and stop words. Every run is a
process of its own with one thread; the engines take turns, because machines are noisy. The victim itself counts what reaches
it. Makes a virtual environment with the peers the first time (1.7 GB). With --all it remakes every record of the comparison and
of growth, and the pictures, from texts that come with the package.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from ...attacks.types import Example
from ...spaces import space_named
from ...spaces.grid import WordGrid
from ...spaces.rules import stop_words
from ...spaces.tokens import words
from ...victims import HELD_OUT, VICTIMS
from .. import growth
from ..data import read_examples
from ..overhead import long_reviews
from .meter import Job, Slots
from .report import markdown, ratios
from .setting import OPENATTACK_VERSION, TEXTATTACK, environment, interpreter, single

MEASURED = Path(__file__).resolve().parents[1] / "measured"
# Their attack, our recipe that follows the released code, and what we recommend instead.
ATTACKS: dict[str, tuple[str, tuple[str, ...]]] = {
    "pwws": ("pwws@released", ("pwws",)),
    "greedy-deletion": ("greedy-wordnet@released", ("greedy-wordnet", "scrimp")),
    "genetic": ("genetic@released", ("genetic",)),
    "pso": ("pso@released", ("pso",)),
}
# The records in measured/. TextAttack's population searches try the candidates of a review again for each of 60 members in each of
# 20 rounds, at more than a millisecond each: long texts have a budget, and they are few.
RECORDS: dict[str, tuple[str, ...]] = {
    "peers-mr": ("--n=100", "--attacks=pwws,greedy-deletion"),
    "peers-imdb": ("--victim=imdb-spacy", "--n=20", "--attacks=pwws,greedy-deletion"),
    "peers-population": ("--n=20", "--attacks=genetic,pso"),
    "peers-population-imdb": ("--victim=imdb-spacy", "--n=5", "--attacks=genetic,pso", "--budgets=100"),
}
OWN = ("pwws", "greedy-wordnet", "scrimp")  # also measured in their own space, tagger and look-ups included
OPENATTACK = ("pwws", "genetic", "pso")  # for lower-case texts only: it knows no others


def table_of(examples: Sequence[Example], space: str) -> dict[str, Slots]:
    """The slots of every example's grid, with their candidates."""
    table = {}
    for example, grid in zip(examples, space_named(space)(examples), strict=True):
        assert isinstance(grid, WordGrid)
        table[example.id] = [(s.position, s.start, s.end, list(s.candidates)) for s in grid.slots]
    return table


class Bench:
    """Runs jobs on either side, each in a process of its own."""

    def __init__(self, folder: Path, work: Path) -> None:
        self._peer, self._setting, self._work = interpreter(folder), environment(folder), work

    def align(self, job: Job) -> Job:
        """The job with the part of its table that both engines can use alike."""
        return replace(job, table=self._run([str(self._peer), "-m", _side("textattack_side"), "align"], job, self._setting))

    def textattack(self, job: Job) -> dict[str, Any]:
        return dict(self._run([str(self._peer), "-m", _side("textattack_side")], job, self._setting))

    def openattack(self, job: Job) -> dict[str, Any]:
        return dict(self._run([str(self._peer), "-m", _side("openattack_side")], job, self._setting))

    def ours(self, job: Job) -> dict[str, Any]:
        return dict(self._run([sys.executable, "-m", _side("ours")], job, os.environ | single()))

    def _run(self, command: list[str], job: Job, setting: dict[str, str]) -> Any:
        source, target = self._work / "job.json", self._work / "out.json"
        source.write_text(json.dumps(asdict(job)), encoding="utf-8")
        target.unlink(missing_ok=True)
        done = subprocess.run([*command, str(source), str(target)], env=setting, capture_output=True, text=True)
        if done.returncode or not target.exists():
            raise RuntimeError(f"{' '.join(command)} on {job.attack} ended with {done.returncode}: {done.stderr[-2000:]}")
        return json.loads(target.read_text(encoding="utf-8"))


def _side(name: str) -> str:
    return f"scrimp.benchmarks.peers.{name}"


def figures(job: Job, run: dict[str, Any]) -> dict[str, Any]:
    """One run as a row. Changed words are counted with one ruler, ours, on both sides."""
    originals = {name: text for name, text, _ in job.texts}
    status = [text["status"] for text in run["texts"]]
    attacked = [text for text in run["texts"] if text["status"] in ("fooled", "held")]
    fooled = [text for text in attacked if text["status"] == "fooled"]
    changed = [_changed(originals[text["id"]], text["adversarial"]) for text in fooled]
    n = max(1, len(attacked))
    return {
        "engine": run["engine"],
        "attack": job.attack,
        "space": "own" if job.own_space else "table",
        "victim": job.victim,
        "budget": job.budget,
        "attacked": len(attacked),
        "errors": status.count("error"),
        "success_rate": round(100 * len(fooled) / n, 2),
        "perturbed_pct": round(statistics.fmean(changed), 2) if changed else None,
        "counted_mean": round(sum(text["counted"] for text in attacked) / n, 2),
        # What reached the victim for the attacked texts: a skipped text, and one that failed, brought it at least its clean one.
        "distinct_mean": round((run["distinct"] - status.count("skipped")) / n, 2),
        "sent_mean": round((run["sent"] - status.count("skipped")) / n, 2),
        "victim_calls": run["victim_calls"],
        "mean_batch": round(run["sent"] / max(1, run["victim_calls"]), 2),
        "wall_s": round(run["wall_s"], 3),
        "cpu_s": round(run["cpu_s"], 3),
        "victim_cpu_s": round(run["victim_cpu_s"], 3),
        "outside_ms_per_text": round(run["outside_ms_per_text"], 4),
        "peak_rss_mb": round(run["peak_rss_mb"], 1),
    }


def _changed(before: str, after: str) -> float:
    """Share of the words that differ, in per cent; one word stands for one word on both sides."""
    old, new = [word.text for word in words(before)], [word.text for word in words(after)]
    differing = sum(a != b for a, b in zip(old, new, strict=False)) + abs(len(old) - len(new))
    return 100 * differing / max(1, len(old))


def best(rows: Iterable[dict[str, Any]]) -> dict[str, Any]:
    """Of equal runs the one that was disturbed least; `walls` keeps them all."""
    rows = list(rows)
    return min(rows, key=lambda row: row["wall_s"]) | {"walls": [row["wall_s"] for row in rows]}


def compare(
    bench: Bench, job: Job, attacks: Sequence[str], budgets: Sequence[int | None], repeats: int
) -> list[dict[str, Any]]:
    """One row per attack, budget and engine."""
    rows = []
    for name in attacks:
        released, recommended = ATTACKS[name]
        for budget in budgets:
            todo = [(bench.textattack, replace(job, attack=name, budget=budget))]
            if name in OPENATTACK and all(text == text.lower() for _, text, _ in job.texts):
                todo += [(bench.openattack, replace(job, attack=name, budget=budget))]
            todo += [(bench.ours, replace(job, attack=r, budget=budget)) for r in (released, *recommended)]
            todo += [(bench.ours, replace(job, attack=r, budget=budget, own_space=True)) for r in recommended if r in OWN]
            found: list[list[dict[str, Any]]] = [[] for _ in todo]
            for _ in range(repeats):
                for at, (side, single_job) in enumerate(todo):
                    found[at].append(figures(single_job, side(single_job)) | {"against": name})
            rows += [best(same) for same in found]
            for row in rows[-len(found) :]:
                print(json.dumps(row), file=sys.stderr, flush=True)
    return rows


def _examples(file: str | None, victim: str, n: int) -> list[Example]:
    if file:
        return read_examples(file, n=n)
    return long_reviews(n) if victim == "imdb-spacy" else read_examples(HELD_OUT, n=n)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--victim", default="wordcnn-mr", choices=list(VICTIMS), help="(%(default)s)")
    parser.add_argument("--data", metavar="FILE", help="as for `scrimp attack` (the embedded held-out sentences)")
    parser.add_argument("--n", type=int, default=100, help="how many texts (%(default)s)")
    parser.add_argument("--attacks", default=",".join(ATTACKS), help="(%(default)s)")
    parser.add_argument("--budgets", default="none,100", help="queries per text, none for no limit (%(default)s)")
    parser.add_argument("--space", default="wordnet-any", help="whose candidates go into the table (%(default)s)")
    parser.add_argument("--repeats", type=int, default=1, help="of every run, in turns; the quickest counts (%(default)s)")
    parser.add_argument("--seed", type=int, default=0, help="(%(default)s)")
    parser.add_argument("--venv", type=Path, default=Path(tempfile.gettempdir()) / "peers" / "venv", help="(%(default)s)")
    parser.add_argument("--out", type=Path, default=MEASURED / "peers.json", help="where the record goes (%(default)s)")
    parser.add_argument("--all", action="store_true", help="every record of the comparison, then growth and its pictures")
    parser.add_argument("--markdown", action="store_true", help="print the record in --out as a table; run nothing")
    args = parser.parse_args(arguments)
    if args.all:
        for name, options in RECORDS.items():
            main([*options, f"--venv={args.venv}", f"--repeats={args.repeats}", f"--out={MEASURED / name}.json"])
        growth.main([])
        return
    if not args.markdown:
        names = [name.strip() for name in args.attacks.split(",")]
        if unknown := set(names) - set(ATTACKS):
            parser.error(f"--attacks {', '.join(unknown)}: there are {', '.join(ATTACKS)}")
        budgets = [None if budget.strip() == "none" else int(budget) for budget in args.budgets.split(",")]
        examples = _examples(args.data, args.victim, args.n)
        texts = [(example.id, example.text[0], int(example.target)) for example in examples]
        table = table_of(examples, args.space)
        job = Job(args.victim, texts, table, sorted(stop_words()), "", None, args.seed)
        with tempfile.TemporaryDirectory() as work:
            bench = Bench(args.venv, Path(work))
            common = bench.align(job)
            rows = compare(bench, common, names, budgets, args.repeats)
        record = {
            "python": platform.python_version(),
            "textattack": TEXTATTACK,
            "openattack": OPENATTACK_VERSION,
            "victim": args.victim,
            "texts": len(texts),
            "words_mean": round(statistics.fmean(len(words(text)) for _, text, _ in texts), 1),
            "slots": sum(map(len, common.table.values())),
            "slots_cut_differently": sum(map(len, table.values())) - sum(map(len, common.table.values())),
            "seed": args.seed,
            "repeats": args.repeats,
            "rows": rows,
            "ratios": ratios(rows),
        }
        args.out.parent.mkdir(parents=True, exist_ok=True)
        args.out.write_text(json.dumps(record, indent=1) + "\n")
    print(markdown(json.loads(args.out.read_text())))


if __name__ == "__main__":
    main()
