"""What is the same on both sides of the comparison: the job, the victim that counts, and what a process has used.

This file is read by the peer's interpreter too, so it needs nothing but the standard library and numpy.
"""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from ...attacks.types import Gives, Text, Victim
from ..memory import peak_mb

Slots = list[tuple[int, int, int, list[str]]]  # word number, start, end, candidates

WARM = "a warm and funny film with a fine cast"  # attacked before the clock starts: what is loaded once is not counted
WARM_TABLE: Slots = [(1, 2, 6, ["strong"]), (3, 11, 16, ["odd"]), (7, 29, 33, ["good"])]


@dataclass
class Meter:
    """A victim that counts what truly reaches it. The counting is charged to the victim's own time."""

    victim: Victim
    calls: int = 0
    sent: int = 0
    wall: float = 0.0
    cpu: float = 0.0  # processor seconds of all threads
    seen: set[int] = field(default_factory=set)  # hashes of the texts

    @property
    def name(self) -> str:
        return self.victim.name

    @property
    def gives(self) -> Gives:
        return self.victim.gives

    @property
    def labels(self) -> tuple[str, ...]:
        return self.victim.labels

    @property
    def trained_on(self) -> tuple[str, ...]:
        return tuple(getattr(self.victim, "trained_on", ()))

    def __call__(self, texts: Sequence[Text]) -> Sequence[NDArray[Any]]:
        wall, cpu = time.perf_counter(), time.process_time()
        rows = self.victim(texts)
        self.calls += 1
        self.sent += len(texts)
        self.seen.update(map(hash, texts))
        self.wall += time.perf_counter() - wall
        self.cpu += time.process_time() - cpu
        return rows

    def reset(self) -> None:
        self.calls = self.sent = 0
        self.wall = self.cpu = 0.0
        self.seen.clear()


@dataclass(frozen=True)
class Job:
    """One run: a victim by name, texts with labels, the table of candidates and an attack by its name on that side."""

    victim: str
    texts: list[tuple[str, str, int]]  # id, text, label
    table: dict[str, Slots]  # by id
    stop: list[str]
    attack: str
    budget: int | None
    seed: int
    own_space: bool = False  # ours only: the recipe's own space in place of the table

    @classmethod
    def read(cls, path: str | Path) -> Job:
        return cls(**json.loads(Path(path).read_text(encoding="utf-8")))


def cost(meter: Meter, wall: float, cpu: float) -> dict[str, Any]:
    """What a run used since these two readings of the clocks."""
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    return {
        "victim_calls": meter.calls,
        "sent": meter.sent,
        "distinct": len(meter.seen),
        "wall_s": wall,
        "cpu_s": cpu,
        "victim_cpu_s": meter.cpu,
        "outside_ms_per_text": 1000 * (cpu - meter.cpu) / max(1, meter.sent),
        "peak_rss_mb": peak_mb(),
    }
