"""The comparison as a table, and how many times one engine is below the other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

COLUMNS = {
    "success_rate": "fooled %",
    "perturbed_pct": "words changed %",
    "counted_mean": "queries as it counts",
    "distinct_mean": "distinct texts received",
    "victim_calls": "victim calls",
    "mean_batch": "mean batch",
    "wall_s": "wall s",
    "cpu_s": "CPU s",
    "outside_ms_per_text": "CPU ms outside victim per text",
    "outside_ms_per_attack": "the same per attack",
    "peak_rss_mb": "peak MB",
}
DIGITS = {"victim_calls": 0, "outside_ms_per_attack": 2, "peak_rss_mb": 0, "outside_ms_per_text": 3, "wall_s": 2, "cpu_s": 2}
COMPARED = (
    "distinct_mean",
    "victim_calls",
    "wall_s",
    "cpu_s",
    "outside_ms_per_text",
    "outside_ms_per_attack",
    "peak_rss_mb",
)
ENGINES = {"textattack": "TextAttack", "openattack": "OpenAttack", "scrimp": "scrimp"}


def _value(row: dict[str, Any], name: str) -> Any:
    """A figure of a row. A search that asks less thinks more per text, so what one attack costs stands beside it."""
    if name == "outside_ms_per_attack":
        return 1000 * (row["cpu_s"] - row["victim_cpu_s"]) / max(1, row["attacked"])
    return row[name]


def ratios(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """For each of our rows on the table, what TextAttack's row for the same attack and budget is, divided by ours."""
    theirs = {(row["against"], row["budget"]): row for row in rows if row["engine"] == "textattack"}
    found = []
    for row in rows:
        peer = theirs.get((row["against"], row["budget"]))
        if row["engine"] != "scrimp" or peer is None:
            continue
        found.append(
            {"attack": row["attack"], "space": row["space"], "against": row["against"], "budget": row["budget"]}
            | {name: round(_value(peer, name) / _value(row, name), 2) if _value(row, name) else None for name in COMPARED}
        )
    return found


def markdown(record: dict[str, Any]) -> str:
    """A row per engine, attack and budget."""
    lines = [
        "| engine | attack | budget | " + " | ".join(COLUMNS.values()) + " |",
        "|" + "---|" * (len(COLUMNS) + 3),
    ]
    for row in record["rows"]:
        engine = ENGINES[row["engine"]]
        own = ", own space" if row["space"] == "own" else ""
        cells = [engine, f"`{row['attack']}`{own}", str(row["budget"] or "none")]
        for name in COLUMNS:
            value = _value(row, name)
            cells.append("-" if value is None else f"{value:.{DIGITS.get(name, 1)}f}")
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)
