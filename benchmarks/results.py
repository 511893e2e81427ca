"""What a run gives back: records that print well, iterate, and turn into a table."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..attacks.record import Record

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class Cost:
    """What the run itself cost, beside the queries."""

    wall_s: float = 0.0
    victim_s: float = 0.0
    victim_calls: int = 0
    sent: int = 0
    peak_rss_mb: float = 0.0
    cpu_s: float = 0.0
    victim_cpu_s: float = 0.0
    encoder_cpu_s: float = 0.0


@dataclass(frozen=True)
class Results:
    """Records in the order of the examples, with their summary."""

    records: tuple[Record, ...]
    cost: Cost = field(default_factory=Cost)

    def __iter__(self) -> Iterator[Record]:
        return iter(self.records)

    def __len__(self) -> int:
        return len(self.records)

    def __getitem__(self, place: int) -> Record:
        return self.records[place]

    @property
    def fooled(self) -> list[Record]:
        return [record for record in self.records if record.status == "fooled"]

    @property
    def summary(self) -> dict[str, Any]:
        """Errors and skipped examples never count as attacked; query figures are over attacked examples, failures included."""
        return summarise(self.records) | {
            "wall_s": round(self.cost.wall_s, 3),
            "victim_s": round(self.cost.victim_s, 3),
            "victim_calls": self.cost.victim_calls,
            "mean_batch": round(self.cost.sent / self.cost.victim_calls, 2) if self.cost.victim_calls else None,
            "peak_rss_mb": round(self.cost.peak_rss_mb, 1),
        }

    def success_at(self, budgets: Sequence[int]) -> dict[int, float | None]:
        """Success rate had the budget been smaller: a run at B is a prefix of the run at 2B, so one run gives the curve."""
        attacked = [record for record in self.records if record.status in ("fooled", "held")]
        first = [next((step.charge for step in record.improvements if step.fooled), None) for record in attacked]
        return {
            budget: round(100 * sum(f is not None and f <= budget for f in first) / len(first), 2) if first else None
            for budget in budgets
        }

    def rows(self) -> list[dict[str, Any]]:
        """One flat mapping per record."""
        return [
            {
                "id": record.id,
                "status": record.status,
                "original": "\n".join(record.text),
                "adversarial": None if record.adversarial is None else "\n".join(record.adversarial),
                "changes": "; ".join(f"{change.before} -> {change.after}" for change in record.changes),
                "target": record.target,
                "label_before": record.label_before,
                "label_after": record.label_after,
                "charged": record.charged,
                "asked": record.asked,
                "cached": record.cached,
                "spared": record.spared,
                "perturbed_pct": record.perturbed_pct,
                "similarity": record.similarity,
                "judged": record.judged,
                "wall_s": record.wall_s,
                "reason": record.reason,
            }
            for record in self.records
        ]

    def to_pandas(self) -> pd.DataFrame:
        """A DataFrame, one row per example (needs the extra `pandas`)."""
        try:
            import pandas
        except ImportError:
            raise ImportError("to_pandas needs pandas: pip install 'scrimp[pandas]'; or use rows() or to_csv()") from None
        return pandas.DataFrame(self.rows())

    def to_csv(self, path: str | Path) -> None:
        """The same table as CSV."""
        rows = self.rows()
        # A lone surrogate is written as \\udXXX: one such text must not make the whole file unreadable.
        with open(path, "w", newline="", encoding="utf-8", errors="backslashreplace") as out:
            table = csv.DictWriter(out, list(rows[0]) if rows else ["id"])
            table.writeheader()
            table.writerows(rows)

    def __str__(self) -> str:
        facts = self.summary
        return "\n".join(f"{name:>22}  {value}" for name, value in facts.items())


def summarise(records: Sequence[Record]) -> dict[str, Any]:
    """The figures of a table row. A share of nothing is None, never 0."""
    attacked = [record for record in records if record.status in ("fooled", "held")]
    fooled = [record for record in attacked if record.status == "fooled"]
    skipped = sum(record.status == "skipped" for record in records)
    judged = len(attacked) + skipped
    charged = np.array([record.charged for record in attacked])

    def mean(values: Sequence[float]) -> float | None:
        return round(float(np.mean(values)), 4) if len(values) else None

    def share(part: int, whole: int) -> float | None:
        return round(100 * part / whole, 2) if whole else None

    return {
        "n": len(records),
        "skipped": skipped,
        "errors": sum(record.status == "error" for record in records),
        "attacked": len(attacked),
        "fooled": len(fooled),
        "success_rate": share(len(fooled), len(attacked)),
        "original_accuracy": share(len(attacked), judged),
        "after_attack_accuracy": share(len(attacked) - len(fooled), judged),
        "perturbed_pct": mean([r.perturbed_pct for r in fooled if r.perturbed_pct is not None]),
        "charged_mean": mean(charged.tolist()),
        "charged_median": float(np.median(charged)) if len(charged) else None,
        "charged_p95": round(float(np.percentile(charged, 95)), 2) if len(charged) else None,
        "asked_mean": mean([record.asked for record in attacked]),
        "spared_mean": mean([record.spared for record in attacked]),
        "cached_total": sum(record.cached for record in records),
        "similarity_mean": mean([r.similarity for r in fooled if r.similarity is not None]),
        "judged_mean": mean([r.judged for r in fooled if r.judged is not None]),
    }
