"""Our side of the comparison: one job, run in its own process (`python -m scrimp.benchmarks.peers.ours JOB OUT`)."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ...attacks.types import Example, Grid
from ...spaces.grid import Slot, WordGrid
from ...spaces.tokens import words
from ...victims import load_victim
from ..run import attack
from .meter import WARM, WARM_TABLE, Job, Meter, Slots, cost

NO_BUDGET = 10**9


@dataclass(frozen=True)
class Table:
    """A space whose candidates were written down beforehand, by example."""

    slots: dict[str, Slots]
    name: str = "table"

    def __call__(self, examples: Sequence[Example]) -> list[Grid]:
        grids: list[Grid] = []
        for example in examples:
            rows = self.slots.get(example.id, [])
            slots = [Slot(0, number, start, end, tuple(found)) for number, start, end, found in rows]
            grids.append(WordGrid(example.text, {0: words(example.text[0])}, slots, why_empty="nothing in the table"))
        return grids


def run(job: Job) -> dict[str, Any]:
    """The figures of one run and what became of every text."""
    meter = Meter(load_victim(job.victim))
    space = None if job.own_space else Table(job.table | {"warm": WARM_TABLE})
    budget = job.budget or NO_BUDGET
    for label in (0, 1):
        attack(meter, [Example("warm", (WARM,), label)], job.attack, space=space, budget=9, guide=None, judge=None)
    examples = [Example(name, (text,), label) for name, text, label in job.texts]
    meter.reset()
    wall, cpu = time.perf_counter(), time.process_time()
    found = attack(meter, examples, job.attack, space=space, budget=budget, seed=job.seed, guide=None, judge=None)
    figures = cost(meter, wall, cpu)
    texts = [
        {
            "id": record.id,
            "status": record.status,
            "counted": record.charged,
            "adversarial": record.adversarial[0] if record.adversarial else None,
        }
        for record in found
    ]
    return {"engine": "scrimp", **figures, "texts": texts}


if __name__ == "__main__":
    Path(sys.argv[2]).write_text(json.dumps(run(Job.read(sys.argv[1]))), encoding="utf-8")
