"""OpenAttack's side of the comparison, through its public classes only; run by the interpreter that has it.

Its own tokenizers, taggers and substitutes are fetched from its server when an attacker is made. Given others, as here, it needs
no network. It works on lower-case text, so only lower-case texts are the same for all engines.
"""

from __future__ import annotations

import json
import random
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import OpenAttack
from OpenAttack.attack_assist.substitute.word import WordSubstitute
from OpenAttack.exceptions import InvokeLimitExceeded, WordNotInDictionaryException
from OpenAttack.tags import TAG_English
from OpenAttack.text_process.tokenizer import Tokenizer

from ...spaces.tokens import words
from ...victims import load_victim
from .meter import WARM, WARM_TABLE, Job, Meter, Slots, cost

ATTACKERS: dict[str, Callable[..., Any]] = {
    "pwws": OpenAttack.attackers.PWWSAttacker,
    "genetic": OpenAttack.attackers.GeneticAttacker,
    "pso": OpenAttack.attackers.PSOAttacker,
}


class Model(OpenAttack.Classifier):  # type: ignore[misc]  # OpenAttack has no types
    """The counting victim as OpenAttack wants it."""

    def __init__(self, meter: Meter) -> None:
        self.meter = meter

    def get_prob(self, input_: list[str]) -> Any:
        return np.array(self.meter([(text,) for text in input_]))

    def get_pred(self, input_: list[str]) -> Any:
        return self.get_prob(input_).argmax(1)


class Words(Tokenizer):  # type: ignore[misc]
    """Words and what stands between them. A tag is asked for; the table needs none."""

    TAGS = {TAG_English}  # noqa: RUF012

    def do_tokenize(self, x: str, pos_tagging: bool) -> list[Any]:
        pieces, at = [], 0
        for word in words(x):
            pieces += [*x[at : word.start].split(), word.text]
            at = word.end
        pieces += x[at:].split()
        return [(piece, "other") for piece in pieces] if pos_tagging else pieces

    def do_detokenize(self, x: list[str]) -> str:
        return " ".join(x)


class FromTable(WordSubstitute):  # type: ignore[misc]
    """Candidates by word, written down beforehand; `rows` is set before each text."""

    TAGS = {TAG_English}  # noqa: RUF012

    def __init__(self) -> None:
        self.rows: dict[str, list[str]] = {}

    def fill(self, text: str, slots: Slots) -> None:
        self.rows = {text[start:end].lower(): candidates for _, start, end, candidates in slots}

    def substitute(self, word: str, pos: str) -> list[tuple[str, float]]:
        if word not in self.rows:
            raise WordNotInDictionaryException
        return [(candidate, 1.0) for candidate in self.rows[word]]


def run(job: Job) -> dict[str, Any]:
    """The figures of one run and what became of every text."""
    random.seed(job.seed)
    np.random.seed(job.seed)  # noqa: NPY002  # the generator that OpenAttack draws from
    meter, swaps = Meter(load_victim(job.victim)), FromTable()
    model = Model(meter)
    attack = ATTACKERS[job.attack](tokenizer=Words(), substitute=swaps, filter_words=job.stop)
    # It attacks texts that are classified wrongly too, so these are found beforehand and left out, as the others do.
    right = {name: int(np.argmax(meter.victim([(text,)])[0])) == label for name, text, label in job.texts}
    swaps.fill(WARM, WARM_TABLE)
    model.set_context({}, None)
    attack(model, {"x": WARM})
    meter.reset()
    texts = []
    wall, cpu = time.perf_counter(), time.process_time()
    for name, text, _ in job.texts:
        found, status = None, "held"
        model.set_context({}, job.budget)
        if not right[name]:
            model.get_pred([text])
            status = "skipped"
        else:
            swaps.fill(text, job.table[name])
            try:
                found = attack(model, {"x": text})
                status = "fooled" if found is not None else "held"
            except InvokeLimitExceeded:
                pass
            except Exception as fault:  # its own runner scores this as a failure; here it is an error
                texts.append({"id": name, "status": "error", "counted": 0, "adversarial": None, "reason": repr(fault)[:200]})
                continue
        texts.append({"id": name, "status": status, "counted": model.context.invoke, "adversarial": found})
    return {"engine": "openattack", **cost(meter, wall, cpu), "texts": texts}


if __name__ == "__main__":
    Path(sys.argv[2]).write_text(json.dumps(run(Job.read(sys.argv[1]))), encoding="utf-8")
