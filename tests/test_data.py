"""Data: every format gives the same examples, and data that cannot be used says where, why and what to do."""

from __future__ import annotations

import gzip
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scrimp
from scrimp.benchmarks.data import DataError, from_rows
from scrimp.benchmarks.run import as_examples
from scrimp.victims import HELD_OUT

NAMES = ("negative", "positive")
PLAIN = [scrimp.Example("1", ("a good film",), 1), scrimp.Example("2", ("a bad film",), 0)]
PAIRS = [
    scrimp.Example("1", ("it rains", "it is wet"), 2, (0, 1)),
    scrimp.Example("2", ("it snows", "it is hot"), 0, (0, 1)),
]


def written(folder: Path, name: str, content: str | bytes) -> Path:
    path = folder / name
    raw = content.encode() if isinstance(content, str) else content
    path.write_bytes(gzip.compress(raw) if name.lower().endswith(".gz") else raw)
    return path


# what is read


ONE_FIELD = {
    "header.csv": "text,label\na good film,1\na bad film,0\n",
    "case.csv": " Text , LABEL\na good film,1\na bad film,0\n",
    "upper.CSV": "text,label\na good film,1\na bad film,0\n",
    "windows.csv": "text,label\r\na good film,1\r\na bad film,0\r\n",
    "blank.csv": "\n\ntext,label\n\na good film,1\n\na bad film,0\n\n",
    "no_header.csv": "1,a good film\n0,a bad film\n",
    "no_end.csv": "1,a good film\n0,a bad film",
    "header.tsv": "label\tsentence\n1\ta good film\n0\ta bad film\n",
    "no_header.tsv": "1\ta good film\n0\ta bad film\n",
    "rows.jsonl": '{"text": "a good film", "label": 1}\n\n{"text": "a bad film", "label": 0}\n',
    "rows.json": '[{"review": "a good film", "target": 1},\n {"review": "a bad film", "target": 0}]',
    "lines.json": '{"content": "a good film", "class": 1}\n{"content": "a bad film", "class": 0}\n',
    "a.b.json": '\n [["a good film", 1], ["a bad film", 0]]',
    "lines.txt": "1 a good film\n\n0 a bad film\n",
    "windows.txt": "1 a good film\r\n0 a bad film\r\n",
    "tabs.txt": "1\ta good film\n0\ta bad film\n",
    "lines": "1 a good film\n0 a bad film",
    "names.csv": "text,label\na good film,positive\na bad film,negative\n",
    "names.txt": "positive a good film\nnegative a bad film\n",
    "floats.csv": "text,label\na good film,1.0\na bad film,0.0\n",
}


@pytest.mark.parametrize("name", ONE_FIELD)
@pytest.mark.parametrize("packed", ["", ".gz"])
def test_every_format_gives_the_same_examples(tmp_path: Path, name: str, packed: str) -> None:
    assert scrimp.read_examples(written(tmp_path, name + packed, ONE_FIELD[name]), labels=NAMES) == PLAIN


@pytest.mark.parametrize("name", ["header.csv", "no_header.tsv", "rows.jsonl", "lines.txt"])
def test_a_byte_order_mark_is_no_part_of_the_first_cell(tmp_path: Path, name: str) -> None:
    assert scrimp.read_examples(written(tmp_path, name, b"\xef\xbb\xbf" + ONE_FIELD[name].encode())) == PLAIN


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("pairs.txt", "2\tit rains\tit is wet\n0\tit snows\tit is hot\n"),
        ("pairs.tsv", "2\tit rains\tit is wet\n0\tit snows\tit is hot\n"),
        ("pairs.csv", "2,it rains,it is wet\n0,it snows,it is hot\n"),
        ("header.csv", "premise,hypothesis,label\nit rains,it is wet,2\nit snows,it is hot,0\n"),
        ("case.csv", "Label,Hypothesis,Premise\n2,it is wet,it rains\n0,it is hot,it snows\n"),
        (
            "pairs.jsonl",
            '{"premise": "it rains", "hypothesis": "it is wet", "label": 2}\n'
            '{"premise": "it snows", "hypothesis": "it is hot", "label": 0}',
        ),
    ],
)
def test_pairs_have_two_fields(tmp_path: Path, name: str, content: str) -> None:
    assert scrimp.read_examples(written(tmp_path, name, content)) == PAIRS


def test_named_columns(tmp_path: Path) -> None:
    path = written(tmp_path, "q.csv", "stars,title,body\n1,fine,a good film\n0,poor,a bad film\n")
    assert scrimp.read_examples(path, "body", "stars") == PLAIN
    several = scrimp.read_examples(path, "title, body", "stars")
    assert several == [
        scrimp.Example("1", ("fine", "a good film"), 1, (0, 1)),
        scrimp.Example("2", ("poor", "a bad film"), 0, (0, 1)),
    ]
    three = written(tmp_path, "three.jsonl", '{"a": "x", "b": "y", "c": "z", "label": 3}')
    assert scrimp.read_examples(three, "c,a,b") == [scrimp.Example("1", ("z", "x", "y"), 3, (0, 1, 2))]


def test_a_label_column_alone_means_that_there_is_a_header(tmp_path: Path) -> None:
    path = written(tmp_path, "q.csv", "text,mood\na good film,1\na bad film,0\n")
    assert scrimp.read_examples(path, label_column="mood") == PLAIN


def test_cells_are_kept_character_for_character(tmp_path: Path) -> None:
    text = 'He said "no",\r\nthen\nleft\tslowly  \x00 <br /> naïve 😀 \u202eabc'
    table = written(tmp_path, "q.csv", 'text,label\n"' + text.replace('"', '""') + '",1\n')
    lines = written(tmp_path, "q.jsonl", json.dumps({"text": text + "\ud800", "label": 1}))
    assert scrimp.read_examples(table)[0].text == (text,)
    assert scrimp.read_examples(lines)[0].text == (text + "\ud800",)


def test_quotes_in_tsv_and_lines_are_letters(tmp_path: Path) -> None:
    assert scrimp.read_examples(written(tmp_path, "q.tsv", '1\t"good\n0\t"bad" film\n'))[0].text == ('"good',)
    assert scrimp.read_examples(written(tmp_path, "q.txt", '1 "good\u2028 film\n'))[0].text == ('"good\u2028 film',)


def test_a_long_cell_is_read_whole(tmp_path: Path) -> None:
    text = "word " * 60_000
    assert scrimp.read_examples(written(tmp_path, "q.csv", f"text,label\n{text},1\n"))[0].text == (text,)


def test_ids_are_kept_and_missing_ones_are_row_numbers(tmp_path: Path) -> None:
    rows = [{"text": "a", "label": 0, "id": "x"}, {"text": "b", "label": 0, "id": 7}, {"text": "c", "label": 0, "id": None}]
    assert [example.id for example in from_rows(rows)] == ["x", "7", "3"]
    path = written(tmp_path, "q.csv", "id,text,label\nu1,a,0\nu2,b,1\n")
    assert [example.id for example in scrimp.read_examples(path)] == ["u1", "u2"]


def test_editable_and_protected(tmp_path: Path) -> None:
    row = {
        "premise": "it rains",
        "hypothesis": "it is wet",
        "label": 2,
        "editable": [1],
        "protected": [[1, 0, 2], [0, 3, 8]],
    }
    wanted = [scrimp.Example("1", ("it rains", "it is wet"), 2, (1,), ((1, 0, 2), (0, 3, 8)))]
    assert scrimp.read_examples(written(tmp_path, "q.jsonl", json.dumps(row))) == wanted
    cells = 'premise,hypothesis,label,editable,protected\nit rains,it is wet,2,[1],"[[1, 0, 2], [0, 3, 8]]"\n'
    assert scrimp.read_examples(written(tmp_path, "q.csv", cells)) == wanted
    assert from_rows([row | {"editable": 1}]) == wanted
    assert from_rows([row | {"editable": np.array([1])}]) == wanted
    empty = "text,label,editable,protected\na good film,1,,\n"
    assert scrimp.read_examples(written(tmp_path, "empty.csv", empty)) == PLAIN[:1]
    assert from_rows([{"text": "a", "label": 0, "editable": []}])[0].editable == ()


def test_only_the_first_rows_are_read(tmp_path: Path) -> None:
    path = written(
        tmp_path, "q.jsonl", '{"text": "a good film", "label": 1}\n{"text": "a bad film", "label": 0}\nnot json\n'
    )
    assert scrimp.read_examples(path, n=2) == PLAIN
    with pytest.raises(DataError, match="line 3"):
        scrimp.read_examples(path)


def test_the_shipped_file() -> None:
    examples = scrimp.read_examples(HELD_OUT, labels=NAMES)
    assert len(examples) == 200
    assert {example.target for example in examples} == {0, 1}
    assert all(len(example.text) == 1 and example.text[0] for example in examples)


# what is given in Python


class Rows(Sequence[dict[str, Any]]):
    """As a Hugging Face data set: rows are made when asked for."""

    def __getitem__(self, place: Any) -> Any:
        return {"idx": place, "sentence": PLAIN[place].text[0], "label": PLAIN[place].target}

    def __len__(self) -> int:
        return len(PLAIN)


FRAME = pd.DataFrame({"text": ["a good film", "a bad film"], "label": [1, 0], "editable": [float("nan"), [0]]})
GIVEN: dict[str, Any] = {
    "pairs": [("a good film", 1), ("a bad film", 0)],
    "lists": [["a good film", 1], ["a bad film", 0]],
    "a generator": (pair for pair in [("a good film", 1), ("a bad film", 0)]),
    "tuples of fields": [(("a good film",), 1), (("a bad film",), 0)],
    "class names": [("a good film", "positive"), ("a bad film", " negative ")],
    "numpy labels": list(zip(["a good film", "a bad film"], np.array([1, 0]), strict=True)),
    "numpy floats": list(zip(["a good film", "a bad film"], np.array([1, 0], np.float32), strict=True)),
    "mappings": [{"text": "a good film", "label": 1}, {"text": "a bad film", "label": "negative"}],
    "rows": Rows(),
    "a frame": FRAME,
    "a frame of names": pd.DataFrame({"sentence": ["a good film", "a bad film"], "class": ["positive", "negative"]}),
    "examples": PLAIN,
}


@pytest.mark.parametrize("given", GIVEN.values(), ids=GIVEN)
def test_python_values_give_the_same_examples(given: Any) -> None:
    victim = scrimp.wrap(lambda texts: [[0.5, 0.5]] * len(texts), "toy", NAMES)
    assert as_examples(given, victim) == PLAIN


def test_pairs_of_fields_are_all_editable() -> None:
    assert from_rows([(("it rains", "it is wet"), 2), (("it snows", "it is hot"), 0)]) == PAIRS


def test_targets_of_a_value_victim_may_be_fractions() -> None:
    assert [example.target for example in from_rows([("a", 0.25), ("b", "-1.5"), ("c", 3)])] == [0.25, -1.5, 3]


# what cannot be used: the value, the rule and the next step


def refused(*wanted: str) -> Any:
    """Expect a DataError whose message holds all of these."""
    return pytest.raises(DataError, match="".join(f"(?=.*{_quoted(part)})" for part in wanted))


def _quoted(part: str) -> str:
    return "".join(letter if letter.isalnum() else "\\" + letter for letter in part)


BROKEN: dict[str, tuple[str, str | bytes, tuple[str, ...]]] = {
    "not UTF-8": ("q.csv", "text,label\nnaïve,1\n".encode("latin-1"), ("not UTF-8", "at byte 13", "convert it")),
    "UTF-16": ("q.csv", "text,label\n".encode("utf-16"), ("not UTF-8", "at byte 0", "iconv")),
    "empty": ("q.csv", "", ("q.csv is empty", "at least one row with a label and a text")),
    "blank": ("q.jsonl", " \n\n", ("q.jsonl is empty", "at least one row")),
    "empty list": ("q.json", "[]", ("q.json holds no rows", "at least one")),
    "header only": ("q.csv", "text,label\n", ("q.csv holds no rows", "at least one with a label and a text")),
    "no text column": ("q.csv", "label,title\n1,x\n", ("no text column", "label, title", "pass --text-column")),
    "no label column": ("q.csv", "text,mood\nx,1\n", ("no label column", "label, target, class", "pass --label-column")),
    "no label column in JSON": ("q.jsonl", '{"text": "x"}', ("row 1 has no label column", "its columns are text")),
    "one column": ("q.csv", "a film\nb film\n", ("no text column", "its columns are a film", "--text-column")),
    "unknown label": ("q.csv", "text,label\nx,positiv\n", ("row 1", "'positiv'", "negative, positive", "mean 'positive'?")),
    "label out of range": ("q.csv", "text,label\nx,1\ny,2\n", ("row 2", "label 2", "2 classes, numbered from 0")),
    "negative label": ("q.jsonl", '{"text": "x", "label": -1}', ("row 1", "label -1", "numbered from 0")),
    "half a label": ("q.jsonl", '{"text": "x", "label": 0.5}', ("row 1", "label 0.5", "numbered from 0")),
    "NaN label": ("q.jsonl", '{"text": "x", "label": NaN}', ("row 1", "label nan", "finite", "remove the row")),
    "nan in a cell": ("q.csv", "text,label\nx,nan\n", ("row 1", "label 'nan'", "finite")),
    "infinite label": ("q.jsonl", '{"text": "x", "label": Infinity}', ("row 1", "label inf", "finite")),
    "empty label": ("q.csv", "text,label\nx,\n", ("row 1", "unknown label ''", "negative, positive")),
    "null label": ("q.jsonl", '{"text": "x", "label": null}', ("row 1", "label None", "neither a number nor a class name")),
    "true label": ("q.jsonl", '{"text": "x", "label": true}', ("row 1", "label True", "numbered from 0")),
    "list label": ("q.jsonl", '{"text": "x", "label": [1]}', ("row 1", "unknown label [1]", "negative, positive")),
    "duplicated ids": ("q.csv", "id,text,label\na,x,1\nb,y,1\na,z,1\n", ("row 3", "'a'", "row 1 already", "unique")),
    "broken line": ("q.jsonl", '{"text": "x", "label": 1}\n{"text": \n', ("line 2", "not JSON", "one object")),
    "broken list": ("q.json", '[{"text": "x", "label": 1},\n {"te', ("line 2", "not JSON", "end with ]")),
    "too few cells": ("q.csv", "text,label\nx,1\ny\n", ("row 2", "1 cells where 2", "text, label", "quotes")),
    "too many cells": ("q.tsv", "text\tlabel\nx\t1\t2\n", ("row 1", "3 cells where 2", "text, label", "JSONL")),
    "too many cells without header": ("q.csv", "1,a,b,c\n", ("row 1", "4 cells where 3", "label, premise, hypothesis")),
    "too many tabs": ("q.txt", "1\ta\tb\tc\n", ("line 1", "3 texts after the label", "--text-column")),
    "open quote": ("q.csv", 'text,label\n"x,1\ny,0\n', ("line 3", "not CSV", "close every quote")),
    "no text on a line": ("q.txt", "1 good\n0\n", ("line 2", "'0' has no text", "`label text`")),
    "text a number": ("q.jsonl", '{"text": 5, "label": 1}', ("row 1", "int (5)", "must be a string")),
    "text null": ("q.jsonl", '{"text": null, "label": 1}', ("row 1", "NoneType (None)", "must be a string")),
    "no objects": ("q.json", '["x", "y"]', ("row 1", "str is not an example", "(text, label), a mapping or an Example")),
    "a number on a line": ("q.jsonl", "5\n", ("row 1", "int is not an example", "a mapping")),
    "editable in words": ("q.csv", "text,label,editable\nx,1,all\n", ("row 1", "editable 'all'", "as JSON", "[0]")),
    "editable outside": ("q.jsonl", '{"text": "x", "label": 1, "editable": [1]}', ("editable [1]", "from 0 to 0")),
    "editable a name": ("q.jsonl", '{"text": "x", "label": 1, "editable": ["text"]}', ("['text']", "numbered from 0")),
    "protected no spans": (
        "q.jsonl",
        '{"text": "x", "label": 1, "protected": [3]}',
        ("row 1", "[3]", "[field, start, end]"),
    ),
    "protected outside": ("q.jsonl", '{"text": "x", "label": 1, "protected": [[1, 0, 1]]}', ("[[1, 0, 1]]", "from 0 to 0")),
}


@pytest.mark.parametrize("case", BROKEN)
def test_what_is_wrong_is_said(tmp_path: Path, case: str) -> None:
    name, content, wanted = BROKEN[case]
    with refused(*wanted):
        scrimp.read_examples(written(tmp_path, name, content), labels=NAMES)


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    with refused(str(tmp_path / "none.csv"), "No such file", "give an existing"):
        scrimp.read_examples(tmp_path / "none.csv")
    with refused(str(tmp_path), "directory", "give an existing"):
        scrimp.read_examples(tmp_path)


@pytest.mark.parametrize("damage", ["cut", "flipped", "plain"])
def test_a_damaged_gz(tmp_path: Path, damage: str) -> None:
    whole = gzip.compress(b"1 a good film\n" * 100)
    flipped = whole[:20] + bytes([whole[20] ^ 255]) + whole[21:]
    path = tmp_path / "q.txt.gz"
    path.write_bytes({"cut": whole[:-12], "flipped": flipped, "plain": b"1 a good film\n"}[damage])
    with refused(str(path), "not a whole gzip file", "copy or compress it again"):
        scrimp.read_examples(path)


def test_a_missing_column_names_the_nearest(tmp_path: Path) -> None:
    path = written(tmp_path, "q.csv", "review_text,stars\nx,1\n")
    with refused("row 1", "no column 'review_txt'", "review_text, stars", "did you mean 'review_text'?"):
        scrimp.read_examples(path, "review_txt", "stars")
    with refused("no column 'starz'", "did you mean 'stars'?"):
        scrimp.read_examples(path, "review_text", "starz")
    with refused("no column 'zzz'", "its columns are review_text, stars"):
        scrimp.read_examples(path, "review_text,zzz", "stars")


def test_class_names_need_labels(tmp_path: Path) -> None:
    with refused("row 1", "unknown label 'good'", "not known", "pass --labels"):
        scrimp.read_examples(written(tmp_path, "q.csv", "text,label\nx,good\n"))


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        ([], ("the data holds no rows", "at least one")),
        (["x"], ("row 1", "str is not an example", "(text, label)")),
        ([("x", 1, 2)], ("row 1", "tuple is not an example")),
        ([("x", 1), (5, 1)], ("row 2", "int (5)", "must be a string")),
        ([(["p", "h"], 1)], ("row 1", "list", "must be a string")),
        ([(("p", None), 1)], ("row 1", "NoneType", "must be a string")),
        ([("x", float("nan"))], ("row 1", "label nan", "finite")),
        ([("x", 2)], ("row 1", "label 2", "2 classes")),
        ([("x", None)], ("row 1", "label None")),
        (pd.DataFrame({"text": ["x", None], "label": [1, 0]}), ("row 2", "must be a string")),
        (pd.DataFrame({"text": ["x", "y"], "label": [1, None]}), ("row 2", "label nan", "finite")),
        ([PLAIN[0], PLAIN[0]], ("row 2", "id '1' stands in row 1 already", "unique")),
        ([("x", 1), scrimp.Example("1", ("y",), 1)], ("row 2", "id '1'", "leave the ids out")),
        ([scrimp.Example("1", ("x",), 5)], ("row 1", "label 5", "2 classes")),
        ([scrimp.Example("1", "a film", 1)], ("row 1", "Example.text is str", "(text,)")),  # type: ignore[arg-type]
        ([scrimp.Example(1, ("x",), 1)], ("row 1", "the id is int (1)", "string")),  # type: ignore[arg-type]
        ([scrimp.Example("1", (b"x",), 1)], ("row 1", "bytes", "string")),  # type: ignore[arg-type]
        ([scrimp.Example("1", ("x",), 1, (0, 1))], ("row 1", "editable (0, 1)", "from 0 to 0")),
    ],
)
def test_python_values_that_cannot_be_used(given: Any, wanted: tuple[str, ...]) -> None:
    victim = scrimp.wrap(lambda texts: [[0.5, 0.5]] * len(texts), "toy", NAMES)
    with refused(*wanted):
        as_examples(given, victim)
