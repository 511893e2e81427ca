"""TextAttack's side of the comparison, through its public classes only; run by the interpreter that has it.

`python -m scrimp.benchmarks.peers.textattack_side JOB OUT` runs a job; with `align` in front it only writes which slots of the
job's table TextAttack sees as one word of its own, so that both engines can be given exactly the same table.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import textattack
from textattack.attack_results import FailedAttackResult, SkippedAttackResult, SuccessfulAttackResult
from textattack.constraints.pre_transformation import RepeatModification, StopwordModification
from textattack.goal_functions import UntargetedClassification
from textattack.models.wrappers import ModelWrapper
from textattack.search_methods import AlzantotGeneticAlgorithm, GreedyWordSwapWIR, ParticleSwarmOptimization
from textattack.shared import AttackedText
from textattack.shared.utils import set_seed
from textattack.transformations import WordSwap

from ...victims import load_victim
from .meter import WARM, WARM_TABLE, Job, Meter, cost

# As in its recipes of these attacks; theirs differ in candidates and constraints, which are the same for all here.
SEARCHES: dict[str, Callable[[], Any]] = {
    "pwws": lambda: GreedyWordSwapWIR(wir_method="weighted-saliency"),
    "greedy-deletion": lambda: GreedyWordSwapWIR(wir_method="delete"),
    "genetic": lambda: AlzantotGeneticAlgorithm(pop_size=60, max_iters=20, post_crossover_check=False),
    "pso": lambda: ParticleSwarmOptimization(pop_size=60, max_iters=20),
}
STATUS = {SuccessfulAttackResult: "fooled", FailedAttackResult: "held", SkippedAttackResult: "skipped"}


class Model(ModelWrapper):  # type: ignore[misc]  # TextAttack has no types
    """The counting victim as TextAttack wants it."""

    def __init__(self, meter: Meter) -> None:
        self.model = meter

    def __call__(self, text_input_list: list[str], **_: Any) -> Any:
        return np.array(self.model([(text,) for text in text_input_list]))


class FromTable(WordSwap):  # type: ignore[misc]
    """Candidates by word number, written down beforehand; `rows` is set before each text."""

    def __init__(self) -> None:
        super().__init__()
        self.rows: dict[int, list[str]] = {}

    def _get_transformations(self, current_text: Any, indices_to_modify: Any) -> list[Any]:
        found = []
        for number in indices_to_modify:
            word = current_text.words[number]
            for candidate in self.rows.get(number, ()):
                if candidate != word:
                    found.append(current_text.replace_word_at_index(number, candidate))
        return found


def _spans(text: str) -> list[tuple[int, int]]:
    """Where TextAttack's words stand: it looks for each from the end of the one before, and so does this."""
    spans, at = [], 0
    for word in AttackedText(text).words:
        start = text.index(word, at)
        at = start + len(word)
        spans.append((start, at))
    return spans


def align(job: Job) -> dict[str, Any]:
    """The job's table with TextAttack's word numbers, without slots and candidates that it would cut differently."""
    table: dict[str, Any] = {}
    for name, text, _ in job.texts:
        numbers = {span: number for number, span in enumerate(_spans(text))}
        kept = []
        for _, start, end, candidates in job.table[name]:
            single = [candidate for candidate in candidates if AttackedText(candidate).words == [candidate]]
            if (start, end) in numbers and single:
                kept.append((numbers[start, end], start, end, single))
        table[name] = kept
    return table


def run(job: Job) -> dict[str, Any]:
    """The figures of one run and what became of every text."""
    set_seed(job.seed)
    meter = Meter(load_victim(job.victim))
    swaps = FromTable()
    stop = {word for _, text, _ in job.texts for word in AttackedText(text).words if word.lower() in set(job.stop)}
    goal = UntargetedClassification(
        Model(meter), query_budget=float("inf") if job.budget is None else job.budget, model_batch_size=256
    )
    constraints = [RepeatModification(), StopwordModification(stopwords=stop)]
    attack = textattack.Attack(goal, constraints, swaps, SEARCHES[job.attack]())
    swaps.rows = {number: candidates for number, _, _, candidates in WARM_TABLE}
    for label in (0, 1):
        attack.attack(WARM, label)
    meter.reset()
    texts = []
    wall, cpu = time.perf_counter(), time.process_time()
    for name, text, label in job.texts:
        swaps.rows = {number: candidates for number, _, _, candidates in job.table[name]}
        try:
            result = attack.attack(text, label)
        except Exception as fault:  # its own runner would end here; the comparison goes on and counts the error
            texts.append({"id": name, "status": "error", "counted": 0, "adversarial": None, "reason": repr(fault)[:200]})
            attack.clear_cache()
            continue
        status = STATUS[type(result)]
        changed = result.perturbed_text() if status == "fooled" else None
        texts.append({"id": name, "status": status, "counted": result.num_queries, "adversarial": changed})
    return {"engine": "textattack", **cost(meter, wall, cpu), "texts": texts}


if __name__ == "__main__":
    *how, source, target = sys.argv[1:]
    Path(target).write_text(json.dumps((align if how == ["align"] else run)(Job.read(source))), encoding="utf-8")
