"""Bad input: odd texts, broken victims, impossible settings, full disks. Nothing is lost and every message says what to do."""

from __future__ import annotations

import csv
import fcntl
import json
import os
import re
import resource
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scrimp
from scrimp.attacks.replies import ReplyStore
from scrimp.victims import VictimError

NAMES = ("negative", "positive")
LABEL_RECIPES = [name for name, recipe in scrimp.RECIPES.items() if recipe.search.needs == "label"]


@dataclass
class Mood:
    """Says 0.9 for the second class when the word good is there, 0.2 when it is not. Remembers every call."""

    calls: list[list[str]] = field(default_factory=list)

    def __call__(self, texts: list[str]) -> list[list[float]]:
        self.calls.append(texts)
        return [[0.1, 0.9] if re.search(r"(?<![^\W_])good(?![^\W_])", text) else [0.8, 0.2] for text in texts]

    @property
    def sent(self) -> list[str]:
        return [text for call in self.calls for text in call]


def run(victim: Any, examples: Any, recipe: str = "greedy-wordnet", **settings: Any) -> scrimp.Results:
    return scrimp.attack(victim, examples, recipe, **{"guide": None, "judge": None, "space": "wordnet-any"} | settings)


def outcomes(results: Any) -> list[dict[str, Any]]:
    return [record.outcome() for record in results]


def rebuilt(record: scrimp.Record) -> tuple[str, ...]:
    """The original with the recorded changes put in by hand."""
    fields = list(record.text)
    for change in reversed(record.changes):
        text, end = fields[change.field], change.start + len(change.before)
        assert text[change.start : end] == change.before
        fields[change.field] = text[: change.start] + change.after + text[end:]
    return tuple(fields)


def films(n: int) -> list[tuple[str, int]]:
    return [(f"a good film number {i}", 1) for i in range(n)]


# texts


ODD = {
    "one word": "good",
    "capitals": "GOOD",
    "emoji": "😀 a good 👍🏽 film 👩‍👩‍👧 ❤️",
    "combining": "une e\u0301tude a\u0300 good cafe\u0301 n\u0303",
    "right to left": "فيلم good جدا \u200fשלום\u200e",
    "direction marks": "\u202e a good film \u202c",
    "NUL": "a good\x00film\x00",
    "control": "\x1b[31m a good film \x07\r\n\t",
    "markup": '<div class="x">\n<br /><b>good</b> &amp; film<br/></div>',
    "whitespace": "  a \u00a0good\u3000 film\n\n ",
    "lone surrogate": "a good \ud800 film \udfff",
    "no spaces": "good" + "!" * 300,
    "marks": "__good__ **film** `tale` {dog}",
}


@pytest.mark.parametrize("name", ODD)
@pytest.mark.parametrize("recipe", ["pwws", "restore-wordnet"])
def test_odd_texts_are_changed_only_where_recorded(name: str, recipe: str) -> None:
    text = ODD[name]
    victim = scrimp.wrap(lambda texts: [["GOOD" not in t, "GOOD" in t] for t in texts], "big") if text == "GOOD" else Mood()
    record = run(victim, [(text, 1)], recipe)[0]
    assert record.status == "fooled"
    assert record.adversarial is not None
    assert record.adversarial != record.text == (text,)
    assert record.adversarial == rebuilt(record)
    assert scrimp.Record.from_dict(json.loads(json.dumps(record.as_dict()))) == record


def test_markup_and_entities_are_left_alone() -> None:
    text = '<b class="good film">a good</b> &copy; <br /> film &amp; story'
    record = run(lambda texts: [[0.1, 0.9]] * len(texts), [(text, 1)], "pwws@released", trace=True)[0]
    tried = [query["text"][0] for query in record.trace]
    assert len(tried) == record.charged > 5
    for seen in tried:
        assert seen.startswith('<b class="good film">a ')
        assert seen.count("</b> &copy; <br /> ") == seen.count(" &amp; ") == 1


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "the text has no words"),
        (" \n\t ", "the text has no words"),
        ("?! ... 😀", "the text has no words"),
        ("<br />", "the text has no words"),
        ("it is the of and", "no word of 5 has a candidate: 5 stop words"),
        ("the xqzzk is it", "no word of 4 has a candidate: 3 stop words, 1 unknown to wordnet"),
    ],
)
def test_texts_without_a_candidate_hold_after_one_query(text: str, reason: str) -> None:
    victim = Mood()
    record = run(victim, [(text, 0)], "pwws")[0]
    assert (record.status, record.reason, record.charged, record.asked) == ("held", reason, 1, 1)
    assert victim.sent == [text]


def test_ten_thousand_words() -> None:
    text = "film " * 9_999 + "good"
    for recipe, fooled in (("pwws", False), ("restore-wordnet", True)):
        record = run(Mood(), [(text, 1)], recipe, budget=15)[0]
        assert record.n_words == 10_000
        assert record.charged <= 15
        assert record.status == ("fooled" if fooled else "held")
        assert not fooled or record.adversarial == rebuilt(record)


def test_odd_texts_survive_the_disk(tmp_path: Path) -> None:
    examples = [scrimp.Example(name, (text,), 1) for name, text in ODD.items() if name != "capitals"]
    fresh = run(Mood(), examples, out=tmp_path, trace=True)
    assert outcomes(scrimp.read_records(tmp_path / "records.jsonl")) == outcomes(sorted(fresh, key=_as_written(tmp_path)))
    victim = Mood()
    again = run(victim, examples, out=tmp_path, trace=True, resume=True)
    assert outcomes(again) == outcomes(fresh)
    assert victim.calls == []
    fresh.to_csv(tmp_path / "results.csv")
    with open(tmp_path / "results.csv", newline="", encoding="utf-8") as file:
        rows = {row["id"]: row for row in csv.DictReader(file)}
    assert rows["control"]["original"] == ODD["control"]
    assert rows["lone surrogate"]["original"] == "a good \\ud800 film \\udfff"
    with ReplyStore(tmp_path / "replies.sqlite")._db as db:
        assert db.execute("SELECT count(*) FROM replies").fetchone()[0] == fresh.cost.sent


def _as_written(folder: Path) -> Callable[[scrimp.Record], int]:
    ids = [json.loads(line)["id"] for line in (folder / "records.jsonl").read_text().splitlines()]
    return lambda record: ids.index(record.id)


def test_encoders_take_odd_texts() -> None:
    examples = [scrimp.Example(name, (ODD[name],), 1) for name in ("NUL", "lone surrogate")]
    for record in run(Mood(), examples, guide="use", judge="minilm"):
        assert record.similarity is not None
        assert record.judged is not None
        assert -1 <= record.similarity < 1
        assert -1 <= record.judged < 1


def test_data_faults_come_before_the_first_query() -> None:
    victim = Mood()
    wrapped = scrimp.wrap(victim, "mood", NAMES)
    twice = [scrimp.Example("a", ("a good film",), 1), scrimp.Example("a", ("a good tale",), 1)]
    with pytest.raises(ValueError, match=r"row 2: id 'a' stands in row 1 already; ids must be unique"):
        run(wrapped, twice)
    with pytest.raises(ValueError, match=r"row 1: unknown label 'positve'.*negative, positive.*did you mean 'positive'"):
        run(wrapped, [("a good film", "positve")])
    with pytest.raises(ValueError, match=r"row 1: label 2 is out of range; the victim has 2 classes"):
        run(wrapped, [("a good film", 2)])
    with pytest.raises(ValueError, match=r"unknown label 'good'.*pass --labels"):
        run(victim, [("a good film", "good")])
    with pytest.raises(TypeError, match="int is not a victim; give a name, a function"):
        run(5, [("a good film", 1)])
    assert victim.calls == []


def test_a_label_beyond_the_scores_is_an_error_of_its_example() -> None:
    results = run(Mood(), [("a good film", 7), ("a good tale", 1)])
    assert [record.status for record in results] == ["error", "fooled"]
    assert re.search(r"true class 7 does not fit replies of shape \(2,\).*check the label column", results[0].reason)


# victims


def test_a_victim_that_is_wrong_is_skipped() -> None:
    results = run(Mood(), [("a good film", 0), ("a good tale", 1)])
    assert [record.status for record in results] == ["skipped", "fooled"]
    assert results[0].reason == "the clean text already meets the goal: the victim says 1, target 0"
    assert (results[0].charged, results.summary["original_accuracy"]) == (1, 50.0)


BROKEN: dict[str, tuple[Callable[[list[str]], Any], str]] = {
    "NaN": (
        lambda texts: [[float("nan"), 0.5]] * len(texts),
        r"returned \[nan, 0.5\] for 'a good.*every number must be finite",
    ),
    "infinite": (lambda texts: np.full((len(texts), 2), np.inf), r"returned \[inf, inf\].*every number must be finite"),
    "too many rows": (lambda texts: [[0.1, 0.9]] * (len(texts) + 1), r"returned 2 rows for 1 texts; .* one row per text"),
    "no rows": (lambda texts: [], r"returned 0 rows for 1 texts; .* one row per text"),
    "nothing": (lambda texts: None, r"replied with None to 1 text.*one row per text"),
    "logits": (
        lambda texts: [[-1.0, 2.0]] * len(texts),
        r"returned \[-1.0, 2.0\].*sum to one: pass logits through .*softmax",
    ),
    "sum": (lambda texts: [[0.5, 0.6]] * len(texts), r"returned \[0.5, 0.6\] for 'a good.*must sum to one"),
    "one score": (lambda texts: [[1.0]] * len(texts), r"returned one score per text.*return \[1 - p, p\]"),
    "numbers": (lambda texts: [1] * len(texts), r"returned one number per text.*gives=\"label\""),
    "names": (lambda texts: ["positive"] * len(texts), r"returned .*positive.* where scores are expected.*gives=\"label\""),
}


@pytest.mark.parametrize("case", BROKEN)
def test_broken_replies_are_errors(case: str) -> None:
    function, message = BROKEN[case]
    results = run(scrimp.wrap(function, "toy"), films(3))
    for record in results:
        assert record.status == "error"
        assert re.search(message, record.reason)
        assert record.error is not None
        assert "Traceback (most recent call last)" in record.error
        assert "VictimError" in record.error
        assert record.adversarial is None
    facts = results.summary
    assert (facts["n"], facts["errors"], facts["attacked"], facts["skipped"], facts["fooled"]) == (3, 3, 0, 0, 0)
    assert (
        facts["success_rate"]
        is facts["original_accuracy"]
        is facts["after_attack_accuracy"]
        is facts["charged_mean"]
        is None
    )
    assert re.search(r"errors +3\n", str(results))


def test_rows_that_come_out_wrong_in_batches_only_are_asked_one_by_one() -> None:
    results = run(scrimp.wrap(lambda texts: Mood()(texts[:1]), "first only"), films(4))
    assert outcomes(results) == outcomes(run(scrimp.wrap(Mood(), "first only"), films(4)))


def test_labels_as_strings() -> None:
    def says(texts: list[str]) -> list[str]:
        return [NAMES[row[1] > 0.5] for row in Mood()(texts)]

    named = run(scrimp.wrap(says, "says", NAMES, "label"), [("a good film", "positive")], "restore-wordnet")[0]
    assert (named.status, named.label_before, named.label_after) == ("fooled", 1, 0)
    unnamed = run(scrimp.wrap(says, "says", gives="label"), [("a good film", 1)], "restore-wordnet")[0]
    assert unnamed.status == "error"
    assert re.search(r"replied with the label 'positive', but its labels are not known; pass labels=", unnamed.reason)
    other = run(scrimp.wrap(says, "says", ("negative", "Positive"), "label"), [("a good film", 1)], "restore-wordnet")[0]
    assert re.search(r"label 'positive', which is not one of.*did you mean 'Positive'", other.reason)


def test_a_victim_that_fails_every_tenth_call() -> None:
    calls = []

    def shaky(texts: list[str]) -> list[list[float]]:
        calls.append(texts)
        if len(calls) % 10 == 0:
            raise ConnectionError(f"call {len(calls)}: the line is down")
        return Mood()(texts)

    results = run(shaky, films(30), batch=1)
    failed = [record for record in results if record.status == "error"]
    assert len(failed) == len(calls) // 10 > 2
    for record in failed:
        assert re.fullmatch(r"ConnectionError: call \d+0: the line is down", record.reason)
        assert record.error is not None
        assert record.error.startswith("Traceback (most recent call last)")
        assert 'raise ConnectionError(f"call' in record.error
    facts = results.summary
    assert facts["errors"] == len(failed)
    assert facts["attacked"] == facts["fooled"] == 30 - len(failed)
    assert facts["success_rate"] == facts["original_accuracy"] == 100.0
    assert results.success_at([1000]) == {1000: 100.0}


@pytest.mark.parametrize("width", [1, 7, 64])
def test_a_text_the_victim_cannot_take_fails_alone(width: int) -> None:
    calls: list[list[str]] = []

    def picky(texts: list[str]) -> list[list[float]]:
        calls.append(texts)
        if any("number 13" in text for text in texts):
            raise OverflowError("thirteen")
        return Mood()(texts)

    results = run(picky, films(32), width=width)
    assert [record.id for record in results if record.status == "error"] == ["14"]
    assert results[13].reason == "OverflowError: thirteen"
    assert results[13].charged == 1
    whole = run(scrimp.wrap(Mood(), "picky"), films(32), width=width)
    assert outcomes(results)[:13] + outcomes(results)[14:] == outcomes(whole)[:13] + outcomes(whole)[14:]
    if width == 64:  # 32, then the half with the bad text and the half without it: 16, 8, 4, 2, 1
        sizes = [len(texts) for texts in calls if any("good film number" in text for text in texts)][:11]
        assert sorted(sizes, reverse=True) == [32, 16, 16, 8, 8, 4, 4, 2, 2, 1, 1]


def test_a_victim_that_always_fails() -> None:
    def dead(texts: list[str]) -> Any:
        raise RuntimeError("no model")

    results = run(dead, films(5))
    assert {record.reason for record in results} == {"RuntimeError: no model"}
    assert results.summary["errors"] == 5
    assert results.summary["attacked"] == 0
    assert results.summary["success_rate"] is None
    assert results.success_at([10]) == {10: None}


def test_a_keyboard_interrupt_is_no_error_record() -> None:
    def stopped(texts: list[str]) -> Any:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(stopped, films(2))


# settings


IMPOSSIBLE: dict[str, tuple[dict[str, Any], str]] = {
    "budget 0": ({"budget": 0}, "budget=0: the clean text costs one query, so the budget must be at least 1"),
    "budget -1": ({"budget": -1}, "budget=-1: .* at least 1"),
    "width 0": ({"width": 0}, "width=0, .*: each must be at least 1"),
    "batch 0": ({"batch": 0}, "batch=0, .*: each must be at least 1"),
    "stride 0": ({"stride": 0}, "stride=0: each must be at least 1"),
    "floor without a guide": ({"floor": 0.5}, "floor=0.5 needs a guide encoder; pass guide="),
    "unknown recipe": ({"recipe": "pwvs"}, "no recipe 'pwvs'; did you mean pwws"),
    "unknown recipe, nothing near": ({"recipe": "xyz"}, "no recipe 'xyz'; there are pwws, .*restore-wordnet"),
    "unknown space": ({"space": "wordnett"}, "no space is called 'wordnett'; did you mean 'wordnet'?"),
    "unknown space, nothing near": ({"space": "zzz"}, "no space is called 'zzz'; there are wordnet"),
    "unknown encoder": ({"judge": "bert"}, "no encoder 'bert'; there are use, minilm"),
    "a shift of classes": ({"goal": scrimp.Shift(1.0)}, "goal shift.1. cannot read .*scores.*shift reads values"),
}


@pytest.mark.parametrize("case", IMPOSSIBLE)
def test_impossible_settings_are_refused_before_the_first_query(case: str) -> None:
    settings, message = IMPOSSIBLE[case]
    victim = Mood()
    with pytest.raises(ValueError, match=message):
        run(victim, films(2), **settings)
    assert victim.calls == []


@pytest.mark.parametrize("floor", [float("nan"), 1.5, -1.5])
def test_a_floor_that_is_no_cosine_is_refused(floor: float) -> None:
    with pytest.raises(ValueError, match=f"floor={floor}"):
        run(Mood(), films(1), floor=floor, guide="use")


def test_a_shift_that_moves_nothing() -> None:
    for delta in (0.0, float("nan"), float("inf")):
        with pytest.raises(ValueError, match="moves nothing: give a finite distance"):
            scrimp.Shift(delta)


def test_budget_one_is_the_clean_text() -> None:
    victim = Mood()
    for recipe in scrimp.RECIPES:
        record = run(victim, [("a good film", 1)], recipe, budget=1, guide="use")[0]
        assert (record.status, record.reason, record.charged) == ("held", "budget spent", 1)
    assert set(victim.sent) == {"a good film"}


SCORE_RECIPES = [name for name in scrimp.RECIPES if name not in LABEL_RECIPES]


@pytest.mark.parametrize("recipe", SCORE_RECIPES)
@pytest.mark.parametrize("how", ["gives", "labels_only"])
def test_score_recipes_refuse_a_label_victim(recipe: str, how: str) -> None:
    victim = Mood()
    target = scrimp.wrap(victim, "mood", gives="label") if how == "gives" else victim
    message = rf"^{recipe} needs scores but .* gives labels only; recipes for labels: {', '.join(LABEL_RECIPES)}$"
    with pytest.raises(ValueError, match=message):
        run(target, films(1), recipe, labels_only=how == "labels_only")
    assert victim.calls == []


def test_values_have_no_labels() -> None:
    with pytest.raises(VictimError, match="gives values, which have no label"):
        run(scrimp.wrap(len, "length", gives="value"), films(1), labels_only=True)


# the disk


@contextmanager
def no_more_than(size: int) -> Iterator[None]:
    """No file can grow beyond this: what a full disk does, at a place that is known."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    action = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, action)


LONG = [(f"{'it is of the and ' * 200} a good film number {i}", 1) for i in range(16)]  # records of some 7 kB
LIMIT = 60_000  # more than SQLite's shared index of 32 kB, less than all records


def test_no_space_for_the_records(tmp_path: Path) -> None:
    cache, out = tmp_path / "replies.sqlite", tmp_path / "out"
    whole = run(Mood(), LONG, cache=cache)
    with no_more_than(LIMIT), pytest.raises(OSError, match=r"cannot write .*records.jsonl: File too large") as caught:
        run(Mood(), LONG, cache=cache, out=out, width=2)
    assert re.search("what is finished is kept: free some space .* with --resume", str(caught.value))
    assert (out / "records.jsonl").stat().st_size == LIMIT  # the last line is torn
    kept = scrimp.read_records(out / "records.jsonl")
    assert 2 < len(kept) < 16
    assert outcomes(kept) == outcomes(whole)[: len(kept)]
    victim = Mood()
    assert outcomes(run(victim, LONG, cache=cache, out=out, resume=True)) == outcomes(whole)
    assert victim.calls == []
    assert outcomes(scrimp.read_records(out / "records.jsonl")) == outcomes(whole)


def test_no_space_for_the_replies(tmp_path: Path) -> None:
    whole, first, second = Mood(), Mood(), Mood()
    unbroken = run(whole, LONG)
    with no_more_than(LIMIT), pytest.raises(OSError, match=r"the reply cache .*replies.sqlite cannot be used") as caught:
        run(first, LONG, out=tmp_path, width=2)
    assert re.search("free some space and run again with --resume", str(caught.value))
    kept = scrimp.read_records(tmp_path / "records.jsonl")
    assert 0 < len(kept) < 16
    assert outcomes(run(second, LONG, out=tmp_path, resume=True)) == outcomes(unbroken)
    lost = set(first.sent) & set(second.sent)
    assert len(lost) <= len(first.calls[-1])  # only what was sent when the disk was full is sent again
    assert set(first.sent) | set(second.sent) == set(whole.sent)


@pytest.mark.skipif(os.geteuid() == 0, reason="permission bits do not bind root; the next test needs none")
def test_a_folder_without_rights(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    with pytest.raises(OSError, match=r"cannot write .*Permission denied; .*fix the folder's rights"):
        run(Mood(), films(1), out=tmp_path / "out")


@pytest.mark.parametrize("case", ["below a file", "a file", "records are a folder", "trace is a folder"])
def test_a_folder_that_cannot_be_written(tmp_path: Path, case: str) -> None:
    (tmp_path / "file").write_text("x")
    (tmp_path / "a" / "records.jsonl").mkdir(parents=True)
    (tmp_path / "b" / "trace.jsonl").mkdir(parents=True)
    places = {"below a file": "file/out", "a file": "file", "records are a folder": "a", "trace is a folder": "b"}
    victim = Mood()
    with pytest.raises(OSError, match=r"cannot write .*records.jsonl: .*; .*fix the folder's rights, then .* --resume"):
        run(victim, films(1), out=tmp_path / places[case])
    assert victim.calls == []


def test_a_cache_that_is_no_cache(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("these are notes, and they stay\n" * 300)
    victim = Mood()
    for name in ("notes.txt", "", "notes.txt/below"):
        with pytest.raises(OSError, match=r"the reply cache .* cannot be used .*must be an SQLite file.*another --cache"):
            run(victim, films(1), cache=tmp_path / name)
    assert victim.calls == []
    assert (tmp_path / "notes.txt").read_text() == "these are notes, and they stay\n" * 300
    with pytest.raises(OSError, match="the reply cache"):
        run(victim, films(1), out=tmp_path / "out", cache=tmp_path / "notes.txt")
    assert len(run(victim, films(1), out=tmp_path / "out")) == 1  # the folder is free again


def test_a_cache_of_another_program(tmp_path: Path) -> None:
    with ReplyStore(tmp_path / "other.sqlite")._db as db:
        db.execute("DROP TABLE replies")
        db.execute("CREATE TABLE replies (name TEXT)")
    with pytest.raises(OSError, match=r"the reply cache .* cannot be used \(no such column: key\)"):
        run(Mood(), films(1), cache=tmp_path / "other.sqlite")


def test_one_writer_at_a_time(tmp_path: Path) -> None:
    run(Mood(), films(2), out=tmp_path)
    victim = Mood()
    with open(tmp_path / "records.jsonl", "ab") as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        (tmp_path / "trace.jsonl").touch()  # as the other run opened it
        with pytest.raises(
            OSError, match=r"records.jsonl is being written by another run; wait for it, or give another --out"
        ):
            run(victim, films(3), out=tmp_path, resume=True)
        assert (tmp_path / "trace.jsonl").exists()
    assert victim.calls == []
    assert len(run(victim, films(3), out=tmp_path, resume=True)) == 3


def test_a_refused_run_lets_the_folder_go(tmp_path: Path) -> None:
    run(Mood(), films(2), out=tmp_path)
    with pytest.raises(FileExistsError) as caught:
        run(Mood(), films(2), out=tmp_path)
    assert caught.tb is not None  # a kept traceback, as in a notebook, keeps the frames of the refused run
    assert len(run(Mood(), films(2), out=tmp_path, resume=True)) == 2
    assert sorted(path.name for path in tmp_path.iterdir()) == ["records.jsonl", "replies.sqlite", "spec.json"]


def test_records_are_never_mixed(tmp_path: Path) -> None:
    run(Mood(), films(2), out=tmp_path)
    before = (tmp_path / "records.jsonl").read_bytes()
    victim = Mood()
    with pytest.raises(FileExistsError, match=r"records.jsonl holds 2 records; go on with --resume, or give another --out"):
        run(victim, films(2), out=tmp_path)
    changed: list[dict[str, Any]] = [
        {"budget": 5},
        {"seed": 1},
        {"space": "wordnet"},
        {"recipe": "random-wordnet"},
        {"goal": scrimp.Target(0)},
        {"stride": 2},
        {"judge": "minilm"},
        {"labels_only": True, "recipe": "restore-wordnet"},
    ]
    for settings in changed:
        with pytest.raises(
            ValueError, match=r"was made with other settings .* must be the same to resume; give another --out"
        ):
            run(victim, films(2), out=tmp_path, resume=True, **settings)
    with pytest.raises(ValueError, match="example '2' had another text; resume with the same data, or another --out"):
        run(victim, [films(1)[0], ("a good tale", 1)], out=tmp_path, resume=True)
    assert victim.calls == []
    assert (tmp_path / "records.jsonl").read_bytes() == before
    run(victim, films(2), out=tmp_path, resume=True, width=1, batch=3)
    assert victim.calls == []


@pytest.mark.parametrize("tail", ['{"id": "5", "status": "fo', "\x00\x00\x00", '{"id": "5"}'])
def test_a_torn_last_line_is_dropped(tmp_path: Path, tail: str) -> None:
    whole = run(Mood(), films(6))
    run(Mood(), films(4), out=tmp_path)
    with open(tmp_path / "records.jsonl", "a") as file:
        file.write(tail)
    assert outcomes(scrimp.read_records(tmp_path / "records.jsonl")) == outcomes(whole)[:4]
    assert outcomes(run(Mood(), films(6), out=tmp_path, resume=True)) == outcomes(whole)
    assert outcomes(scrimp.read_records(tmp_path / "records.jsonl")) == outcomes(whole)


@pytest.mark.parametrize("line", ["{", "5", "[]", "{}", "", '{"id": "2"}', "\xff"])
def test_a_broken_line_is_named(tmp_path: Path, line: str) -> None:
    run(Mood(), films(3), out=tmp_path)
    path = tmp_path / "records.jsonl"
    lines = path.read_text().splitlines()
    path.write_bytes("\n".join([lines[0], line, lines[2], ""]).encode("latin-1"))
    for read in (lambda: scrimp.read_records(path), lambda: run(Mood(), films(3), out=tmp_path, resume=True)):
        with pytest.raises(ValueError, match=r"records.jsonl, line 2 is not a record .*; mend or remove that line"):
            read()
    assert lines[2] in path.read_text("latin-1")


class Stop(Exception):
    pass


def stop_after(n: int) -> Callable[[scrimp.Record], None]:
    seen: list[scrimp.Record] = []

    def report(record: scrimp.Record) -> None:
        seen.append(record)
        if len(seen) == n:
            raise Stop

    return report


@pytest.mark.parametrize("n", [1, 5, 11])
def test_a_stopped_run_goes_on(tmp_path: Path, n: int) -> None:
    whole, first, second = Mood(), Mood(), Mood()
    unbroken = run(whole, films(12), width=4, out=tmp_path / "whole", trace=True)
    with pytest.raises(Stop):
        run(first, films(12), width=4, out=tmp_path / "out", trace=True, report=stop_after(n))
    assert len(scrimp.read_records(tmp_path / "out" / "records.jsonl")) == n
    # A crash after a trace and before its record, and one in the middle of a trace.
    with open(tmp_path / "out" / "trace.jsonl", "a") as file:
        file.write('{"id": "12", "queries": []}\n{"id": "1", "que')
    resumed = run(second, films(12), width=4, out=tmp_path / "out", trace=True, resume=True)
    assert outcomes(resumed) == outcomes(unbroken)
    assert sorted(first.sent + second.sent) == sorted(whole.sent)  # nothing is sent twice
    assert _traces(tmp_path / "out") == _traces(tmp_path / "whole")


def _traces(folder: Path) -> list[Any]:
    lines = [json.loads(line) for line in (folder / "trace.jsonl").read_text().splitlines()]
    return sorted(lines, key=lambda line: int(line["id"]))


def test_errors_are_tried_again(tmp_path: Path) -> None:
    broken = True

    def mended(texts: list[str]) -> list[list[float]]:
        if broken and any("number 1" in text for text in texts):
            raise ConnectionError("the line is down")
        return Mood()(texts)

    first = run(mended, films(4), out=tmp_path, trace=True)
    assert [record.status for record in first] == ["fooled", "error", "fooled", "fooled"]
    broken = False
    again = run(mended, films(4), out=tmp_path, trace=True, resume=True)
    assert [record.status for record in again] == ["fooled"] * 4
    assert {record.id: record.status for record in scrimp.read_records(tmp_path / "records.jsonl")} == dict.fromkeys(
        "1234", "fooled"
    )
    assert len(scrimp.read_records(tmp_path / "records.jsonl")) == 4
    assert [line["id"] for line in _traces(tmp_path)] == ["1", "2", "3", "4"]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"window": 0}, "window=0: a window holds at least 1 word"),
        ({"seed": -1}, "seed=-1: a seed is a whole number from 0"),
    ],
)
def test_settings_that_mean_nothing(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        run(Mood(), films(1), **settings)


def test_a_victim_made_by_hand_is_checked_too() -> None:
    class Broken:
        name, gives, labels = "broken@1", "scores", ()

        def __call__(self, texts: Any) -> Any:
            return [np.array([np.nan, 1.0]) for _ in texts]

    (record,) = run(Broken(), films(1))
    assert record.status == "error"
    assert "broken@1 gave [nan, 1.0] for" in record.reason
    assert "replies must be finite" in record.reason


def test_a_label_that_is_no_class() -> None:
    (record,) = run(lambda texts: [[0.5, 0.5] for _ in texts], [("a fine film", 0.5)])
    assert record.status == "error"
    assert "label 0.5 is not a class" in record.reason
