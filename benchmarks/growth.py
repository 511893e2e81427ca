"""How cost grows with the length of a text, the number of examples, candidates per word and width.

`python -m scrimp.benchmarks.growth` measures and draws (needs the extra `plots`); with --plots it only draws the record. Texts are
the embedded held-out sentences, joined or crossed. Every point is a process of its own, so that peak memory is its own.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import math
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import cycle, islice
from pathlib import Path
from typing import Any

from ..attacks.recipes import recipe_named
from ..attacks.types import Example, Grid, Space
from ..spaces.grid import Slot, WordGrid
from ..victims import HELD_OUT, load_victim
from .data import read_examples
from .overhead import TimedSpace
from .run import attack

HERE = Path(__file__).parent
RECORD = HERE / "measured" / "growth.json"
PLOTS = HERE / "plots"
POINTS = {
    "words": (10, 30, 100, 300, 1000, 2000),
    "examples": (100, 1000, 5000, 20_000),
    "candidates": (1, 2, 5, 10, 20, 50),
    "width": (1, 4, 16, 64, 256),
}
RECIPES = ("greedy-wordnet", "scrimp")
LONG = 20  # texts of each length
MADE_UP = "zyx"  # not in the victim's vocabulary


class Padded:
    """A space cut or filled up to so many candidates per word, with made-up words where there are too few."""

    def __init__(self, space: Space, size: int) -> None:
        self._space, self._size, self.name = space, size, f"{space.name}*{size}"

    def __call__(self, examples: Sequence[Example]) -> list[Grid]:
        grids: list[Grid] = []
        for grid in self._space(examples):
            assert isinstance(grid, WordGrid)
            slots = [Slot(*slot[:4], self._fill(slot.candidates)) for slot in grid.slots]
            grids.append(WordGrid(grid.text, grid.words, slots, why_empty=grid.why_empty))
        return grids

    def _fill(self, candidates: tuple[str, ...]) -> tuple[str, ...]:
        return (*candidates, *(f"{MADE_UP}{i}" for i in range(self._size)))[: self._size]


def _examples(words: int | None = None, n: int | None = None) -> list[Example]:
    """Sentences, and then the halves of two of one class, no text twice; or texts of exactly so many words of one class."""
    rows = read_examples(HELD_OUT)
    if words is None:
        return [replace(_crossed(rows, i), id=str(i)) for i in range(len(rows) if n is None else n)]
    made = []
    for i in range(LONG):
        same = [row for row in rows if row.target == i % 2]
        stream = (word for row in islice(cycle(same), i * 7, None) for word in row.text[0].split())
        made.append(Example(str(i), (" ".join(islice(stream, words)),), i % 2))
    return made


def _crossed(rows: Sequence[Example], i: int) -> Example:
    """Sentence i; past the last one, the first half of one sentence and the second half of another of its class."""
    turn, first = divmod(i, len(rows))
    if not turn:
        return rows[first]
    same = [row for row in rows if row.target == rows[first].target]
    again, apart = divmod(turn - 1, len(same) - 1)  # `again`: all pairs were used, so they are cut elsewhere
    other = same[(same.index(rows[first]) + apart + 1) % len(same)]
    head, tail = rows[first].text[0].split(), other.text[0].split()
    return replace(rows[first], text=(" ".join(head[: len(head) // (2 + again)] + tail[len(tail) // (2 + again) :]),))


def measure(axis: str, value: int, recipe: str) -> dict[str, Any]:
    """One point. Times are processor seconds; engine time is without victim and grids."""
    chosen = recipe_named(recipe)
    space = TimedSpace(Padded(chosen.space, value) if axis == "candidates" else chosen.space)
    victim = load_victim("wordcnn-mr")
    examples = _examples(words=value) if axis == "words" else _examples(n=value if axis == "examples" else 200)
    width = value if axis == "width" else 64
    attack(victim, _examples(n=2), recipe, space=space, budget=5, guide=None, judge=None)  # loads what is loaded once
    space.cpu = 0.0
    found = attack(victim, examples, recipe, space=space, budget=10_000, guide=None, judge=None, width=width)
    charged = sum(record.charged for record in found)
    engine = found.cost.cpu_s - found.cost.victim_cpu_s - space.cpu
    return {
        "axis": axis,
        "value": value,
        "recipe": recipe,
        "texts": len(found),
        "success_rate": found.summary["success_rate"],
        "charged_per_text": round(charged / len(found), 2),
        "engine_ms_per_charged": round(1000 * engine / charged, 4),
        "grid_ms_per_text": round(1000 * space.cpu / len(found), 4),
        "victim_ms_per_charged": round(1000 * found.cost.victim_cpu_s / charged, 4),
        "cpu_ms_per_text": round(1000 * found.cost.cpu_s / len(found), 3),
        "victim_calls": found.cost.victim_calls,
        "peak_rss_mb": round(found.cost.peak_rss_mb, 1),
    }


def exponents(points: Sequence[dict[str, Any]], name: str) -> float | None:
    """The power of the axis that fits best: 1 is linear, 0 does not grow."""
    pairs = [(math.log(p["value"]), math.log(p[name])) for p in points if p[name] > 0]
    if len(pairs) < 2:
        return None
    x, y = [sum(column) / len(pairs) for column in zip(*pairs, strict=True)]
    spread = sum((a - x) ** 2 for a, _ in pairs)
    return round(sum((a - x) * (b - y) for a, b in pairs) / spread, 2) if spread else None


def draw(record: dict[str, Any], folder: Path) -> list[Path]:
    """One picture per axis."""
    import matplotlib

    matplotlib.use("svg")
    from matplotlib import pyplot

    folder.mkdir(parents=True, exist_ok=True)
    shown = {"words": "cpu_ms_per_text", "examples": "peak_rss_mb", "candidates": "cpu_ms_per_text", "width": "victim_calls"}
    titles = {
        "words": ("words per text", "CPU ms per text"),
        "examples": ("examples in the run", "peak memory, MB"),
        "candidates": ("candidates per word", "CPU ms per text"),
        "width": ("attacks in flight", "victim calls"),
    }
    made = []
    for axis in record["exponents"]:
        name = shown[axis]
        figure, axes = pyplot.subplots(figsize=(4.2, 3.0), layout="constrained")
        for recipe in RECIPES:
            points = [p for p in record["points"] if p["axis"] == axis and p["recipe"] == recipe]
            axes.plot([p["value"] for p in points], [p[name] for p in points], marker="o", label=recipe)
        axes.set_xscale("log")
        values = sorted({p["value"] for p in record["points"] if p["axis"] == axis})
        axes.set_xticks(values, [f"{value:,}" for value in values], minor=False)
        axes.minorticks_off()
        axes.tick_params(labelsize=8)
        if axis in ("examples", "candidates"):
            axes.set_ylim(0, 1.15 * axes.get_ylim()[1])
        else:
            axes.set_yscale("log")
            axes.yaxis.set_major_formatter("{x:,.0f}")
        axes.set_xlabel(titles[axis][0])
        axes.set_ylabel(titles[axis][1])
        axes.grid(alpha=0.3)
        axes.legend(loc="lower left" if axis in ("examples", "width") else "upper left")
        made.append(folder / f"growth-{axis}.svg")
        figure.savefig(made[-1], metadata={"Date": None})
        pyplot.close(figure)
    return made


def run(points: dict[str, Sequence[int]], one: Callable[[str, int, str], dict[str, Any]]) -> list[dict[str, Any]]:
    """All points of these axes."""
    return [one(axis, value, recipe) for axis, values in points.items() for value in values for recipe in RECIPES]


def growth(rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Per axis and recipe, how each figure grows."""
    names = ("charged_per_text", "engine_ms_per_charged", "grid_ms_per_text", "cpu_ms_per_text", "peak_rss_mb")
    return {
        axis: {
            recipe: {
                name: exponents([row for row in rows if row["axis"] == axis and row["recipe"] == recipe], name)
                for name in names
            }
            for recipe in RECIPES
        }
        for axis in POINTS
        if any(row["axis"] == axis for row in rows)
    }


def _apart(axis: str, value: int, recipe: str) -> dict[str, Any]:
    """The point, measured by a process of its own with one thread."""
    command = [sys.executable, "-m", "scrimp.benchmarks.growth", "--point", axis, str(value), recipe]
    done = subprocess.run(command, env=os.environ | {"OMP_NUM_THREADS": "1"}, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)} ended with {done.returncode}: {done.stderr[-1000:]}")
    print(done.stdout.strip(), file=sys.stderr, flush=True)
    return dict(json.loads(done.stdout))


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--axes", default=",".join(POINTS), help="(%(default)s)")
    parser.add_argument("--out", type=Path, default=RECORD, help="where the record goes (%(default)s)")
    parser.add_argument("--plots", action="store_true", help="only draw the record in --out")
    parser.add_argument("--plots-folder", type=Path, default=PLOTS, help="(%(default)s)")
    parser.add_argument("--point", nargs=3, metavar=("AXIS", "VALUE", "RECIPE"), help="measure one point and print it")
    args = parser.parse_args(arguments)
    if args.point:
        axis, value, recipe = args.point
        print(json.dumps(measure(axis, int(value), recipe)))
        return
    if importlib.util.find_spec("matplotlib") is None:
        parser.error("the pictures need matplotlib; install it with: pip install 'scrimp[plots]'")
    if not args.plots:
        axes = args.axes.split(",")
        kept = json.loads(args.out.read_text())["points"] if args.out.exists() else []  # other axes stay as they were
        rows = [row for row in kept if row["axis"] not in axes] + run({axis: POINTS[axis] for axis in axes}, _apart)
        record = {"points": rows, "exponents": growth(rows)}
        args.out.parent.mkdir(parents=True, exist_ok=True)
        args.out.write_text(json.dumps(record, indent=1) + "\n")
        print(json.dumps(record["exponents"], indent=1))
    for path in draw(json.loads(args.out.read_text()), args.plots_folder):
        print(path)


if __name__ == "__main__":
    main()
