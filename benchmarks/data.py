"""Texts in: CSV, TSV, JSONL and the `label text` lines of the field become examples."""

from __future__ import annotations

import csv
import difflib
import gzip
import io
import json
import lzma
import math
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from operator import index
from pathlib import Path
from typing import Any, Literal

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
    suffixes = [suffix.lower() for suffix in path.suffixes]
    if suffixes[-1:] == [".gz"]:
        try:
            raw = gzip.decompress(raw)
        except (OSError, EOFError, zlib.error) as fault:
            raise DataError(f"{path} is not a whole gzip file ({fault}); copy or compress it again") from fault
    elif suffixes[-1:] == [".xz"]:
        try:
            raw = lzma.decompress(raw)
        except (lzma.LZMAError, EOFError) as fault:
            raise DataError(f"{path} is not a whole xz file ({fault}); copy or compress it again") from fault
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as fault:
        raise DataError(
            f"{path} is not UTF-8 ({fault.reason} at byte {fault.start}); convert it, e.g. with iconv"
        ) from fault
    if not text.strip():
        raise DataError(f"{path} is empty; it needs at least one row with a label and a text")
    kind = next((suffix for suffix in reversed(suffixes) if suffix not in (".gz", ".xz")), "")
    if kind in (".jsonl", ".json"):
        rows = _json_rows(path, text, kind)
    elif kind in (".csv", ".tsv"):
        named = text_column is not None or label_column is not None
        rows = _table_rows(path, text, "," if kind == ".csv" else "\t", named)
    else:
        rows = _line_rows(path, text)
    return from_rows(islice(rows, n), text_column, label_column, labels, str(path))


def _json_rows(path: Path, text: str, kind: str) -> Iterable[Any]:
    if kind == ".json" and text.lstrip().startswith("["):
        try:
            yield from json.loads(text)
        except json.JSONDecodeError as fault:
            raise DataError(
                f"{path}, line {fault.lineno}: not JSON ({fault.msg}); a list must hold one object per text and end with ]"
            ) from fault
        return
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip():
            try:
                yield json.loads(line)
            except json.JSONDecodeError as fault:
                raise DataError(f"{path}, line {number}: not JSON ({fault.msg}); each line must be one object") from fault


def _table_rows(path: Path, text: str, mark: str, named: bool) -> Iterable[Mapping[str, Any]]:
    csv.field_size_limit(2**31 - 1)
    quoting: Literal[0, 3] = csv.QUOTE_NONE if mark == "\t" else csv.QUOTE_MINIMAL
    # strict: a quote that is never closed would swallow the rest of the file without a word
    table = csv.reader(io.StringIO(text, newline=""), delimiter=mark, quoting=quoting, strict=True)
    head: list[str] = []
    number = 0
    try:
        for row in filter(None, table):
            if not head:
                head = _head(row, named)
                if head is row:
                    continue
            number += 1
            if len(row) != len(head):
                raise DataError(
                    f"{path}, row {number}: {len(row)} cells where {len(head)} were expected ({', '.join(head)}); "
                    "put a cell that holds the separator in quotes, or use JSONL"
                )
            yield dict(zip(head, row, strict=True))
    except csv.Error as fault:
        raise DataError(
            f"{path}, line {table.line_num}: not CSV ({fault}); close every quote and write a quote inside a cell twice"
        ) from fault


def _head(row: list[str], named: bool) -> list[str]:
    """The first row when it names columns; otherwise names for a file without a header: label first, as in the field."""
    if named or len(row) < 2 or {name.strip().lower() for name in row} & {*TEXT, *PAIR, *LABEL}:
        return row
    return ["label", *(("text",) if len(row) == 2 else PAIR)]


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
        if len(fields) > 2:
            raise DataError(
                f"{path}, line {number}: {len(fields)} texts after the label; one or two, separated by tabs, were expected: "
                "use JSONL and --text-column for more"
            )
        yield {"label": label} | ({"text": fields[0]} if len(fields) == 1 else dict(zip(PAIR, fields, strict=True)))


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
        raise DataError(f"{where}: label {value!r} is neither a number nor a class name; classes are numbered from 0")
    if isinstance(value, int | float):
        number: int | float = value
    elif str(value).strip() in labels:
        return list(labels).index(str(value).strip())
    else:
        try:
            number = float(value)
        except (TypeError, ValueError):
            near = difflib.get_close_matches(str(value), list(labels), 1)
            known = ", ".join(labels) if labels else "not known: pass --labels NAME,NAME,... in the victim's order"
            hint = f"; did you mean {near[0]!r}?" if near else ""
            raise DataError(f"{where}: unknown label {value!r}; the victim's classes are {known}{hint}") from None
    if not math.isfinite(number):
        raise DataError(f"{where}: label {value!r} is not a finite number; give every row a label, or remove the row")
    whole = float(number).is_integer()
    if labels and not (whole and 0 <= number < len(labels)):
        raise DataError(
            f"{where}: label {number} is out of range; the victim has {len(labels)} classes, numbered from 0 "
            f"({', '.join(labels)})"
        )
    return int(number) if whole else float(number)


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
            example = _checked(row, labels, place)
        elif isinstance(row, Mapping):
            example = _from_mapping(row, number, text_column, label_column, labels, place)
        elif isinstance(row, Sequence) and not isinstance(row, str) and len(row) == 2:
            text = _text(row[0] if isinstance(row[0], tuple) else (row[0],), place)
            example = Example(str(number), text, _class(row[1], labels, place), tuple(range(len(text))))
        else:
            raise DataError(f"{place}: {type(row).__name__} is not an example; give (text, label), a mapping or an Example")
        if example.id in seen:
            raise DataError(
                f"{place}: id {example.id!r} stands in row {seen[example.id]} already; ids must be unique: change one, or "
                "leave the ids out to have the rows numbered"
            )
        seen[example.id] = number
        found.append(example)
    if not found:
        raise DataError(f"{where} holds no rows; it needs at least one with a label and a text")
    return found


def _text(values: Sequence[Any], place: str) -> Text:
    for value in values:
        if not isinstance(value, str):
            raise DataError(
                f"{place}: the text is {type(value).__name__} ({value!r:.40}); it must be a string: fill or remove the row"
            )
    return tuple(values)


def _checked(example: Example, labels: Sequence[str], place: str) -> Example:
    if not isinstance(example.id, str):
        raise DataError(f"{place}: the id is {type(example.id).__name__} ({example.id!r:.40}); it must be a string")
    if not isinstance(example.text, tuple):
        raise DataError(
            f"{place}: Example.text is {type(example.text).__name__}; it must be a tuple with one string per field: (text,)"
        )
    _text(example.text, place)
    _fields(example.editable, example.text, place)
    return replace(example, target=_class(example.target, labels, place))


def _from_mapping(
    row: Mapping[str, Any], number: int, text_column: str | None, label_column: str | None, labels: Sequence[str], place: str
) -> Example:
    by_lower = {str(name).strip().lower(): name for name in row}
    if text_column is not None:
        columns = [_pick(row, name.strip(), (), "text", place) for name in text_column.split(",")]
    elif all(name in by_lower for name in PAIR):
        columns = [by_lower[name] for name in PAIR]
    else:
        columns = [_pick(row, None, TEXT, "text", place)]
    label = row[_pick(row, label_column, LABEL, "label", place)]
    text = _text([row[column] for column in columns], place)
    name = row.get("id")
    return Example(
        str(number) if name is None else str(name),
        text,
        _class(label, labels, place),
        _fields(_cell(row, "editable", place, range(len(text))), text, place),
        _spans(_cell(row, "protected", place, ()), text, place),
    )


def _cell(row: Mapping[str, Any], name: str, place: str, default: Any) -> Any:
    """A list from its cell; a table holds it as JSON."""
    value = row.get(name)
    if isinstance(value, str) and value.strip():
        try:
            return json.loads(value)
        except json.JSONDecodeError:
            raise DataError(f"{place}: {name} {value!r} is not a list; write it as JSON, e.g. [0] or [[0, 4, 9]]") from None
    missing = value is None or isinstance(value, str) or (isinstance(value, float) and math.isnan(value))
    return default if missing else value


def _fields(value: Any, text: Text, place: str) -> tuple[int, ...]:
    try:
        fields = tuple(map(index, value if isinstance(value, Iterable) else (value,)))
    except TypeError:
        fields = (-1,)
    if not all(0 <= field < len(text) for field in fields):
        raise DataError(f"{place}: editable {value!r:.40} must list fields of the text, numbered from 0 to {len(text) - 1}")
    return fields


def _spans(value: Any, text: Text, place: str) -> tuple[tuple[int, int, int], ...]:
    try:
        spans = tuple((int(field), int(start), int(end)) for field, start, end in value)
    except (TypeError, ValueError):
        raise DataError(
            f"{place}: protected {value!r:.40} must list [field, start, end] character spans, e.g. [[0, 4, 9]]"
        ) from None
    if not all(0 <= field < len(text) and 0 <= start <= end for field, start, end in spans):
        raise DataError(
            f"{place}: protected {value!r:.40} must lie inside the text: fields run from 0 to {len(text) - 1}, start <= end"
        )
    return spans
