"""Texts in: CSV, TSV, JSONL and the `label text` lines of the field become examples."""

from __future__ import annotations

import csv
import difflib
import gzip
import io
import json
from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from ..attacks.types import Example, Text

TEXT = ("text", "sentence", "review", "content")  # column names tried when none is given
PAIR = ("premise", "hypothesis")
LABEL = ("label", "target", "class")


class DataError(ValueError):
    """The data cannot be used. The message names the place, the rule and the next step."""


def read_examples(
    path: str | Path,
    text_column: str | None = None,
    label_column: str | None = None,
    labels: Sequence[str] = (),
    n: int | None = None,
) -> list[Example]:
    """Examples of a file. `text_column` may name several columns, separated by commas, one per field."""
    path = Path(path)
    try:
        raw = path.read_bytes()
    except OSError as fault:
        raise DataError(
            f"cannot read {path}: {fault.strerror}; give an existing CSV, TSV, JSONL or `label text` file"
        ) from fault
    if path.suffix == ".gz":
        raw = gzip.decompress(raw)
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as fault:
        raise DataError(
            f"{path} is not UTF-8 ({fault.reason} at byte {fault.start}); convert it, e.g. with iconv"
        ) from fault
    if not text.strip():
        raise DataError(f"{path} is empty; it needs at least one row with a label and a text")
    kind = next((suffix for suffix in reversed(path.suffixes) if suffix != ".gz"), "")
    if kind in (".jsonl", ".json"):
        rows = _json_rows(path, text)
    elif kind in (".csv", ".tsv"):
        rows = _table_rows(path, text, "," if kind == ".csv" else "\t", text_column)
    else:
        rows = _line_rows(path, text)
    return from_rows(islice(rows, n), text_column, label_column, labels, str(path))


def _json_rows(path: Path, text: str) -> Iterable[Mapping[str, Any]]:
    if text.lstrip().startswith("["):
        yield from json.loads(text)
        return
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip():
            try:
                yield json.loads(line)
            except json.JSONDecodeError as fault:
                raise DataError(f"{path}, line {number}: not JSON ({fault.msg}); each line must be one object") from fault


def _table_rows(path: Path, text: str, mark: str, text_column: str | None) -> Iterable[Mapping[str, Any]]:
    csv.field_size_limit(2**31 - 1)
    quoting = csv.QUOTE_NONE if mark == "\t" else csv.QUOTE_MINIMAL
    table = csv.reader(io.StringIO(text, newline=""), delimiter=mark, quoting=quoting)
    head = next(table)
    names = [name.strip().lower() for name in head]
    if text_column is None and not set(names) & {*TEXT, *PAIR} and len(head) > 1:
        fields = ["text"] if len(head) == 2 else [f"text{i}" for i in range(1, len(head))]
        head = ["label", *fields]  # no header: label first, as in the field's files
        table = csv.reader(io.StringIO(text, newline=""), delimiter=mark, quoting=quoting)
    for number, row in enumerate(table, 1):
        if not row:
            continue
        if len(row) != len(head):
            raise DataError(f"{path}, row {number}: {len(row)} cells where {len(head)} were expected ({', '.join(head)})")
        yield dict(zip(head, row, strict=True))


def _line_rows(path: Path, text: str) -> Iterable[Mapping[str, Any]]:
    for number, line in enumerate(text.split("\n"), 1):
        line = line.rstrip("\r")
        if not line.strip():
            continue
        if "\t" in line:
            label, *fields = line.split("\t")
        else:
            label, *fields = line.split(" ", 1)
        if not fields:
            raise DataError(f"{path}, line {number}: {line[:60]!r} has no text; each line must be `label text`")
        yield {"label": label} | ({"text": fields[0]} if len(fields) == 1 else dict(zip(PAIR, fields, strict=False)))


def _pick(row: Mapping[str, Any], wanted: str | None, usual: Sequence[str], what: str, where: str) -> str:
    if wanted is not None:
        if wanted in row:
            return wanted
        near = difflib.get_close_matches(wanted, list(row), 1)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        raise DataError(f"{where} has no column {wanted!r}; its columns are {', '.join(map(str, row))}{hint}")
    by_lower = {str(name).strip().lower(): str(name) for name in row}
    for name in usual:
        if name in by_lower:
            return by_lower[name]
    columns = ", ".join(map(str, row))
    raise DataError(
        f"{where} has no {what} column among {', '.join(usual)}; its columns are {columns}: pass --{what}-column"
    )


def _class(value: Any, labels: Sequence[str], where: str) -> int | float:
    if isinstance(value, bool) or value is None:
        raise DataError(f"{where}: label {value!r} is neither a number nor a class name")
    if isinstance(value, int | float):
        number: int | float = value
    elif str(value).strip() in labels:
        return list(labels).index(str(value).strip())
    else:
        try:
            number = float(value)
        except ValueError:
            near = difflib.get_close_matches(str(value), list(labels), 1)
            known = ", ".join(labels) if labels else "not known: pass --labels NAME,NAME,... in the victim's order"
            hint = f"; did you mean {near[0]!r}?" if near else ""
            raise DataError(f"{where}: unknown label {value!r}; the victim's classes are {known}{hint}") from None
    if float(number).is_integer():
        if labels and not 0 <= int(number) < len(labels):
            raise DataError(
                f"{where}: label {number} is out of range; the victim has {len(labels)} classes, numbered from 0"
            )
        return int(number)
    return float(number)


def from_rows(
    rows: Iterable[Any],
    text_column: str | None = None,
    label_column: str | None = None,
    labels: Sequence[str] = (),
    where: str = "the data",
) -> list[Example]:
    """Examples of mappings (rows of a Hugging Face data set, of JSON), of (text, label) pairs, or examples as they are."""
    found: list[Example] = []
    seen: dict[str, int] = {}
    for number, row in enumerate(rows, 1):
        place = f"{where}, row {number}"
        if isinstance(row, Example):
            example = row
        elif isinstance(row, Mapping):
            example = _from_mapping(row, number, text_column, label_column, labels, place)
        elif isinstance(row, Sequence) and not isinstance(row, str) and len(row) == 2:
            text = row[0] if isinstance(row[0], tuple) else (row[0],)
            example = Example(str(number), _text(text, place), _class(row[1], labels, place), tuple(range(len(text))))
        else:
            raise DataError(f"{place}: {type(row).__name__} is not an example; give (text, label), a mapping or an Example")
        if example.id in seen:
            raise DataError(f"{place}: id {example.id!r} stands in row {seen[example.id]} already; ids must be unique")
        seen[example.id] = number
        found.append(example)
    if not found:
        raise DataError(f"{where} holds no rows; it needs at least one with a label and a text")
    return found


def _text(values: Sequence[Any], place: str) -> Text:
    for value in values:
        if not isinstance(value, str):
            raise DataError(f"{place}: the text is {type(value).__name__} ({value!r:.40}); it must be a string")
    return tuple(values)


def _from_mapping(
    row: Mapping[str, Any], number: int, text_column: str | None, label_column: str | None, labels: Sequence[str], place: str
) -> Example:
    if text_column is not None:
        columns = [_pick(row, name.strip(), (), "text", place) for name in text_column.split(",")]
    elif all(name in row for name in PAIR):
        columns = list(PAIR)
    else:
        columns = [_pick(row, None, TEXT, "text", place)]
    label = row[_pick(row, label_column, LABEL, "label", place)]
    fields = _text([row[column] for column in columns], place)
    editable = tuple(row.get("editable") or range(len(fields)))
    protected = tuple((int(f), int(a), int(b)) for f, a, b in row.get("protected") or ())
    return Example(str(row.get("id", number)), fields, _class(label, labels, place), editable, protected)
