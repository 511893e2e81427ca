"""What is written down about one finished example."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, fields
from typing import Any, Literal

from .types import Change, Text

Status = Literal["fooled", "held", "skipped", "error"]
UNSTABLE = ("wall_s", "cached", "victim_s")  # what may differ between two equal runs: time, and who asked first


@dataclass(frozen=True)
class Improvement:
    """The best text changed at this charge. The list of them is the whole success-against-queries curve."""

    charge: int
    fooled: bool
    changed: int  # words
    margin: float
    similarity: float | None  # by the guide, where it was computed


@dataclass(frozen=True)
class Record:
    """One finished example. `charged` counts the distinct texts it made the victim answer, the clean one included."""

    id: str
    status: Status
    reason: str
    text: Text
    adversarial: Text | None
    changes: tuple[Change, ...]
    target: int | float
    label_before: int | float | None
    label_after: int | float | None
    scores_before: tuple[float, ...] | None
    scores_after: tuple[float, ...] | None
    charged: int
    asked: int
    cached: int
    spared: int
    improvements: tuple[Improvement, ...]
    n_words: int
    perturbed_pct: float | None
    similarity: float | None  # by the guide encoder, whole text
    judged: float | None  # by the judge encoder, which never guides
    wall_s: float
    seed: int
    spec: str
    prior: str  # the prior that guided it, with its data; empty without one
    error: str | None = None
    trace: tuple[dict[str, Any], ...] = field(default=(), repr=False)

    def as_dict(self) -> dict[str, Any]:
        """Plain values for JSON, without the trace, which has a file of its own."""
        plain = asdict(self)
        del plain["trace"]
        return plain

    def outcome(self) -> dict[str, Any]:
        """What must be equal between two runs of the same spec."""
        return {key: value for key, value in self.as_dict().items() if key not in UNSTABLE}

    @classmethod
    def from_dict(cls, plain: dict[str, Any]) -> Record:
        """The inverse of as_dict, after a trip through JSON."""
        names = {f.name for f in fields(cls)} - {"trace"}
        missing = sorted(names - plain.keys())
        if missing:
            raise ValueError(f"not a scrimp record: {', '.join(missing)} missing")
        kept = {name: plain[name] for name in names}
        kept["changes"] = tuple(Change(**change) for change in kept["changes"])
        kept["improvements"] = tuple(Improvement(**step) for step in kept["improvements"])
        for name in ("text", "adversarial", "scores_before", "scores_after"):
            if kept[name] is not None:
                kept[name] = tuple(kept[name])
        return cls(**kept)
