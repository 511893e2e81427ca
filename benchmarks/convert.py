"""Logs of TextAttack as records: `scrimp convert log.csv --out records.jsonl`."""

from __future__ import annotations

import csv
import json
import math
import re
from collections.abc import Mapping, Sequence
from difflib import SequenceMatcher
from pathlib import Path

from ..attacks.record import Improvement, Record, Status
from ..attacks.types import Change
from ..spaces.tokens import words

COLUMNS = (
    "original_text",
    "perturbed_text",
    "original_output",
    "perturbed_output",
    "perturbed_score",
    "ground_truth_output",
    "num_queries",
    "result_type",
)
STATUS: dict[str, Status] = {"Successful": "fooled", "Failed": "held", "Skipped": "skipped", "Maximized": "held"}
# Changed words stand in double brackets, sometimes twice over. A text that holds [[brackets]] of its own loses them.
MARKED = re.compile(r"(?:\[\[)+(.*?)(?:\]\])+", re.DOTALL)
COUNTED = "queries as TextAttack counts them, repeats included"


def from_textattack(path: str | Path) -> list[Record]:
    """The rows of a CSV log as records, numbered from 1.

    The log does not say which queries were repeats, so `charged` and `asked` are both its own count. A pair of texts is
    one field, as it was printed. Times, scores of the classes and similarities are not in it.
    """
    path = Path(path)
    csv.field_size_limit(2**31 - 1)
    try:
        with open(path, newline="", encoding="utf-8-sig") as file:
            table = csv.DictReader(file, strict=True)
            missing = [name for name in COLUMNS if name not in (table.fieldnames or ())]
            if missing:
                raise ValueError(
                    f"{path} is no CSV log of TextAttack: it has no column {', '.join(missing)}; write one with "
                    "textattack attack --log-to-csv FILE"
                )
            return [_record(row, number, f"{path}, row {number}") for number, row in enumerate(table, 1)]
    except (csv.Error, UnicodeDecodeError) as fault:
        raise ValueError(f"{path} is not a whole CSV file ({fault}); write the log again") from fault


def _record(row: Mapping[str, str], number: int, where: str) -> Record:
    status = STATUS.get(row["result_type"])
    if status is None:
        raise ValueError(f"{where}: result_type {row['result_type']!r} is not one of {', '.join(STATUS)}")
    queries = int(_number(row["num_queries"], where, "num_queries"))
    before, after = _plain(row["original_text"]), _plain(row["perturbed_text"])
    changes = _changes(before, after) if status == "fooled" else ()
    n_words = len(words(before))
    fooled = status == "fooled"
    # Its score is 1 - p(true class): with two classes this is the margin, with more a bound that has the same order.
    margin = 2 * _number(row["perturbed_score"], where, "perturbed_score") - 1 if fooled else 0.0
    return Record(
        id=str(number),
        status=status,
        reason=COUNTED,
        text=(before,),
        adversarial=(after,) if fooled else None,
        changes=changes,
        target=_whole(_number(row["ground_truth_output"], where, "ground_truth_output")),
        label_before=_whole(_number(row["original_output"], where, "original_output")),
        label_after=_whole(_number(row["perturbed_output"], where, "perturbed_output")) if fooled else None,
        scores_before=None,
        scores_after=None,
        charged=queries,
        asked=queries,
        cached=0,
        spared=0,
        improvements=(Improvement(queries, True, len(changes), margin, None),) if fooled else (),
        n_words=n_words,
        perturbed_pct=round(100 * len(changes) / n_words, 4) if fooled and n_words else None,
        similarity=None,
        judged=None,
        wall_s=0.0,
        seed=0,
        spec="textattack",
        prior="",
    )


def _plain(text: str) -> str:
    return MARKED.sub(r"\1", text).replace("<SPLIT>", "\n")  # its logger writes a line end so


def _number(cell: str, where: str, column: str) -> float:
    try:
        value = float(cell)
    except ValueError:
        raise ValueError(f"{where}: {column} {cell!r} is not a number; only logs of classifiers can be read") from None
    if not math.isfinite(value):
        raise ValueError(f"{where}: {column} {cell!r} is not finite; only logs of classifiers can be read")
    return value


def _whole(value: float) -> int | float:
    return int(value) if value.is_integer() else value


def _changes(before: str, after: str) -> tuple[Change, ...]:
    """Word by word; words put in or taken out belong to the word before them."""
    old, new = words(before), words(after)
    found: list[Change] = []
    matcher = SequenceMatcher(None, [word.text for word in old], [word.text for word in new], autojunk=False)
    for kind, a, b, c, d in matcher.get_opcodes():
        if kind == "equal":
            continue
        if b - a == d - c:
            pairs = [(a + i, old[a + i].text, new[c + i].text) for i in range(b - a)]
        else:
            pairs = [(a, " ".join(w.text for w in old[a:b]), " ".join(w.text for w in new[c:d]))]
        for position, gone, put in pairs:
            start = old[position].start if position < len(old) else len(before)
            found.append(Change(0, position, start, gone, put))
    return tuple(found)


def write_records(records: Sequence[Record], path: str | Path) -> None:
    """One JSON line per record, as `scrimp attack --out` writes them."""
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = "".join(json.dumps(record.as_dict()) + "\n" for record in records)
    path.write_text(lines, encoding="utf-8")
