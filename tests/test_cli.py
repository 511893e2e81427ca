"""The command: it teaches, it runs end to end, its figures are those of the records, and its errors are one line."""

from __future__ import annotations

import csv
import json
import os
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scrimp
from rich.console import Console
from scrimp.attacks.types import Change
from scrimp.benchmarks.results import summarise
from scrimp.cli import main
from scrimp.progress import diff, printable
from scrimp.resources import MANIFEST
from scrimp.spaces.encoders import ENCODERS

ALLOWED = "scrimp is for testing the robustness of models you are allowed to test."
KEYS = {
    *("n", "skipped", "errors", "attacked", "fooled", "success_rate", "original_accuracy", "after_attack_accuracy"),
    *("perturbed_pct", "charged_mean", "charged_median", "charged_p95", "asked_mean", "cached_total", "similarity_mean"),
    *("wall_s", "victim_s", "victim_calls", "mean_batch", "peak_rss_mb"),
}
COST = ("wall_s", "victim_s", "victim_calls", "mean_batch", "peak_rss_mb")

# Every call is a line of calls.jsonl, so that a test sees what was sent.
VICTIM = """
import json, pathlib, re
LOG = pathlib.Path(__file__).with_name("calls.jsonl")

def seen(texts):
    with LOG.open("a") as log:
        log.write(json.dumps(texts) + "\\n")
    return [len(re.findall(r"\\bgood\\b", str(text))) for text in texts]

def scores(texts):
    return [[0.1, 0.9] if n else [0.8, 0.2] for n in seen(texts)]

def letters(texts):
    return [[0.1, 0.9] if "good" in text else [0.8, 0.2] for text in texts]

def graded(texts):
    return [[0.8 - 0.175 * n, 0.2 + 0.175 * n] for n in seen(texts)]

def three(texts):
    return [[0.1, 0.1, 0.8] if n > 1 else [0.2, 0.7, 0.1] if n else [0.6, 0.3, 0.1] for n in seen(texts)]

def name(texts):
    return [["bad", "good"][n > 0] for n in seen(texts)]

def value(texts):
    return [float(n) for n in seen(texts)]

def shaky(texts):
    if any("stone" in text for text in texts):
        raise ValueError("no \\x1b[31mstones\\x1b[0m\\nplease [/bold]")
    return scores(texts)
"""


@dataclass(frozen=True)
class Ran:
    code: int
    out: str
    err: str

    @property
    def summary(self) -> dict[str, Any]:
        facts: dict[str, Any] = json.loads(self.out.splitlines()[-1])
        return facts


@dataclass(frozen=True)
class Command:
    """`scrimp attack` in this process, with the victims above and data of its own."""

    folder: Path
    capsys: pytest.CaptureFixture[str]

    def __call__(self, *args: Any) -> Ran:
        self.capsys.readouterr()
        with pytest.raises(SystemExit) as caught:
            main([str(arg) for arg in args])
        out, err = self.capsys.readouterr()
        code = caught.value.code
        assert isinstance(code, int)
        return Ran(code, out, err)

    def attack(self, victim: str, rows: list[tuple[str, Any]], *args: Any) -> Ran:
        data = self.folder / "data.jsonl"
        data.write_text("".join(json.dumps({"text": text, "label": label}) + "\n" for text, label in rows))
        more = ["--data", data, "--no-judge", "--space", "wordnet-any", "--json", *args]
        return self("attack", "--victim", f"{self.folder / 'model.py'}:{victim}", *more)

    @property
    def sent(self) -> list[str]:
        log = self.folder / "calls.jsonl"
        return [text for line in log.read_text().splitlines() for text in json.loads(line)] if log.exists() else []

    def records(self, name: str = "out") -> list[scrimp.Record]:
        return scrimp.read_records(self.folder / name / "records.jsonl")


@pytest.fixture
def command(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Command:
    (tmp_path / "model.py").write_text(VICTIM)
    monkeypatch.setenv("COLUMNS", "300")
    monkeypatch.setenv("TERM", "dumb")
    return Command(tmp_path, capsys)


FILMS = [("a good film", 1), ("a bad film", 0), ("a good tale about a dog", 1), ("a poor film", 1), ("it is", 0)]


# teaching


@pytest.mark.parametrize("verb", [[], ["attack"], ["list"], ["resources"]], ids=str)
def test_help_teaches(command: Command, verb: list[str]) -> None:
    shown = command(*verb, "--help")
    assert (shown.code, shown.err) == (0, "")
    assert "examples:\n  scrimp " in shown.out
    assert shown.out.rstrip().endswith(ALLOWED)
    assert f"scrimp {verb[0] if verb else 'attack'}" in shown.out


def test_help_describes_every_option(command: Command) -> None:
    shown = command("attack", "--help").out
    options = re.findall(r"^  (--[a-z-]+)(?: (?:[A-Z]|\{)\S*)?\s+\S", shown, re.MULTILINE)
    named = set(re.findall(r"\[(--[a-z-]+)", shown.split("\n\n")[0]))
    assert named == set(options)
    assert {"--victim", "--labels-only", "--floor", "--protect-pattern", "--resume", "--trace", "--json"} <= named


def test_list_names_every_part(command: Command) -> None:
    shown = command("list")
    assert shown.code == 0
    first = {line.split("  ")[0].strip() for line in shown.out.splitlines()}
    parts: dict[str, Iterable[str]] = {
        "victims": scrimp.VICTIMS,
        "spaces": scrimp.SPACES,
        "rankings": scrimp.RANKINGS,
        "searches": scrimp.SEARCHES,
        "recipes": scrimp.RECIPES,
        "encoders": ENCODERS,
    }
    for title, names in parts.items():
        assert first >= {title, *names}
    for recipe in scrimp.RECIPES.values():
        assert re.search(rf"^{re.escape(recipe.name)} +needs {recipe.search.needs}: ", shown.out, re.MULTILINE)


def test_resources_are_listed(command: Command) -> None:
    shown = command("resources")
    assert shown.code == 0
    for name, resource in MANIFEST.items():
        line = next(line for line in shown.out.splitlines() if line.startswith(f"{name} "))
        assert resource.licence in line
        assert re.search(r" (yes +\d+\.\d|no +-) ", line)
    unknown = command("resources", "minilmm")
    assert (unknown.code, unknown.out) == (2, "")
    assert unknown.err == "scrimp: no resource is called 'minilmm'; did you mean minilm?\n"


# the embedded victim


def test_the_embedded_victim_end_to_end(command: Command, tmp_path: Path) -> None:
    out = tmp_path / "out"
    shown = command("attack", "--n", 8, "--budget", 60, "--out", out, "--show", 2)
    assert shown.code == 0
    records = command.records()
    assert len(records) == 8
    assert all(record.charged <= 60 for record in records)
    fooled = sorted((record for record in records if record.status == "fooled"), key=lambda record: int(record.id))
    assert len(fooled) > 2
    for record in fooled:
        assert record.adversarial is not None
        assert 0 < (record.similarity or 0) < 1
        assert 0 < (record.judged or 0) < 1
    names = ("negative", "positive")
    heads = re.findall(r"^(\d+)  (\w+) -> (\w+)  (\d+) queries, (\d+) of (\d+) words", shown.out, re.MULTILINE)
    assert heads == [
        (r.id, names[r.target == 1], names[r.target == 0], str(r.charged), str(len(r.changes)), str(r.n_words))
        for r in fooled[:2]
    ]
    for change in (change for record in fooled[:2] for change in record.changes):
        assert f"{change.before} {change.after}" in shown.out
    facts = summarise(records)
    rate = f"{facts['fooled']} of {facts['attacked']} attacked = {facts['success_rate']:.1f} %"
    accuracy = f"{facts['original_accuracy']:.1f} % -> {facts['after_attack_accuracy']:.1f} %"
    for figure in (f"8 ({facts['skipped']} wrong already, 0 errors)", rate, accuracy, f"mean {facts['charged_mean']:.1f}, "):
        assert figure in shown.out
    assert f"guide {facts['similarity_mean']:.3f}, judge {facts['judged_mean']:.3f}" in shown.out
    assert f"records: {out / 'records.jsonl'}" in shown.out
    assert {"records.jsonl", "results.csv", "spec.json", "replies.sqlite"} == {path.name for path in out.iterdir()}
    with open(out / "results.csv", newline="", encoding="utf-8") as file:
        rows = {row["id"]: row for row in csv.DictReader(file)}
    assert {r.id: (r.status, r.text[0], str(r.charged)) for r in records} == {
        id: (row["status"], row["original"], row["charged"]) for id, row in rows.items()
    }
    spec = json.loads((out / "spec.json").read_text())
    assert (spec["recipe"], spec["budget"], spec["seed"], spec["judge"]) == ("scrimp", 60, 0, "minilm(l6-v2)")
    assert {record.spec for record in records} == {spec["key"]}


def test_labels_only_and_the_module_as_a_program(tmp_path: Path) -> None:
    hard = ["--labels-only", "--recipe", "restore-wordnet", "--space", "wordnet-any", "--n", "6", "--budget", "40"]
    args = [sys.executable, "-m", "scrimp", "attack", *hard, "--no-judge", "--json", "--out", "out"]
    done = subprocess.run(args, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    facts = json.loads(done.stdout)
    records = scrimp.read_records(tmp_path / "out" / "records.jsonl")
    assert summarise(records).items() <= facts.items()
    assert facts["fooled"] > 0
    assert all(record.scores_before is None and record.scores_after is None for record in records)
    assert all(record.charged <= 40 for record in records)
    assert json.loads((tmp_path / "out" / "spec.json").read_text())["victim"].endswith("(labels only)")
    assert "restore-wordnet against" in done.stderr


def test_a_victim_as_a_service_shows_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    seen = ["--top-k", "1", "--rounded", "1", "--noisy", "0.1", "--seed", "3", "--per-second", "100000"]
    plain = ["attack", "--n", "6", "--budget", "20", "--recipe", "random-wordnet", "--space", "wordnet-any", "--no-judge"]
    with pytest.raises(SystemExit, match="0"):
        main([*plain, *seen, "--out", str(tmp_path / "out")])
    spec = json.loads((tmp_path / "out" / "spec.json").read_text())
    assert spec["victim"].endswith("(top 1) (rounded 1) (noisy 0.1, seed 3)")
    records = scrimp.read_records(tmp_path / "out" / "records.jsonl")
    scores = {score for record in records for score in record.scores_before or ()}
    assert scores
    assert all(abs(score - round(score, 1)) < 1e-8 for score in scores)
    capsys.readouterr()
    with pytest.raises(SystemExit):
        main([*plain, "--precision", "int8"])
    assert "wordcnn-mr is no Hugging Face model, so it takes no precision" in capsys.readouterr().err


def test_an_error_of_the_program_is_one_line(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "scrimp", "attack", "--victim", "wordcnn"], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert re.fullmatch(r"scrimp: no victim is called 'wordcnn'; did you mean wordcnn-mr.*\n", done.stderr)


# figures


def test_json_is_all_of_standard_output(command: Command) -> None:
    ran = command.attack("scores", FILMS)
    assert ran.code == 0
    assert ran.out.endswith("\n")
    assert len(ran.out.splitlines()) == 1
    assert ran.summary.keys() >= KEYS
    assert "greedy-wordnet" not in ran.out
    assert "scrimp against model:scores@" in ran.err


def test_the_summary_says_what_the_records_say(command: Command) -> None:
    facts = command.attack("scores", FILMS, "--out", command.folder / "out").summary
    records = command.records()
    by_status = Counter(record.status for record in records)
    assert by_status == {
        "fooled": 2,
        "held": 2,
        "skipped": 1,
    }  # without the word good nothing flips, and "it is" is stop words
    attacked = [record for record in records if record.status in ("fooled", "held")]
    fooled = [record for record in records if record.status == "fooled"]
    charged = [record.charged for record in attacked]
    wanted = {
        "n": 5,
        "skipped": 1,
        "errors": 0,
        "attacked": 4,
        "fooled": 2,
        "success_rate": 50.0,
        "original_accuracy": 80.0,
        "after_attack_accuracy": 40.0,
        "perturbed_pct": round((100 / 3 + 100 / 6) / 2, 4),
        "charged_mean": round(sum(charged) / 4, 4),
        "charged_median": float(np.median(charged)),
        "charged_p95": round(float(np.percentile(charged, 95)), 2),
        "asked_mean": round(sum(record.asked for record in attacked) / 4, 4),
        "cached_total": sum(record.cached for record in records),
        "similarity_mean": round(sum(record.similarity or 0 for record in fooled) / 2, 4),
    }
    assert wanted.items() <= facts.items()
    assert all(0 < (record.similarity or 0) < 1 for record in fooled)
    calls = (command.folder / "calls.jsonl").read_text().splitlines()
    assert facts["victim_calls"] == len(calls)
    assert facts["mean_batch"] == round(len(command.sent) / len(calls), 2)
    assert sum(record.charged for record in records) == len(command.sent) + facts["cached_total"]


def test_a_finished_run_is_not_run_again(command: Command) -> None:
    out = ("--out", command.folder / "out", "--trace")
    first = command.attack("scores", FILMS, *out)
    sent, kept = command.sent, (command.folder / "out" / "trace.jsonl").read_bytes()
    again = command.attack("scores", FILMS, *out, "--resume")
    assert again.code == 0
    assert command.sent == sent
    assert again.summary["victim_calls"] == 0
    assert {k: v for k, v in again.summary.items() if k not in COST} == {
        k: v for k, v in first.summary.items() if k not in COST
    }
    assert (command.folder / "out" / "trace.jsonl").read_bytes() == kept
    refused = command.attack("scores", FILMS, *out)
    assert refused.code == 2
    assert refused.err.endswith("records.jsonl holds 5 records; go on with --resume, or give another --out\n")


def test_a_shared_cache_saves_every_call(command: Command) -> None:
    cache = ("--cache", command.folder / "cache.sqlite")
    first = command.attack("scores", FILMS, *cache, "--out", command.folder / "one")
    sent = command.sent
    second = command.attack("scores", FILMS, *cache, "--out", command.folder / "two")
    assert command.sent == sent
    assert second.summary["victim_calls"] == 0
    assert second.summary["cached_total"] == len(sent) + first.summary["cached_total"]
    assert second.summary["charged_mean"] == first.summary["charged_mean"]
    assert [r.outcome() for r in command.records("one")] == [r.outcome() for r in command.records("two")]


@pytest.mark.parametrize("recipe", ["pwws", "greedy-wordnet", "restore-wordnet"])
def test_the_trace_holds_every_charged_text_once(command: Command, recipe: str) -> None:
    command.attack("scores", FILMS, "--recipe", recipe, "--out", command.folder / "out", "--trace")
    traces = [json.loads(line) for line in (command.folder / "out" / "trace.jsonl").read_text().splitlines()]
    records = {record.id: record for record in command.records()}
    assert [trace["id"] for trace in traces] == list(records)
    for trace in traces:
        record, queries = records[trace["id"]], trace["queries"]
        texts = [query["text"][0] for query in queries]
        assert len(queries) == len(set(texts)) == record.charged
        assert [query["charge"] for query in queries] == list(range(1, record.charged + 1))
        assert texts[0] == record.text[0]
        for query in queries:
            assert query["reply"] == ([0.1, 0.9] if re.search(r"\bgood\b", query["text"][0]) else [0.8, 0.2])
        if record.status == "fooled":
            assert record.adversarial is not None
            assert next(query for query in queries if query["text"][0] == record.adversarial[0])["fooled"]
    assert {query["text"][0] for trace in traces for query in trace["queries"]} == set(command.sent)


# options


def test_a_label_victim_of_names(command: Command) -> None:
    rows = [("a good film", "good"), ("a bad film", "bad")]
    label = ("--gives", "label", "--labels", "bad, good", "--recipe", "restore-wordnet", "--out", command.folder / "out")
    ran = command.attack("name", rows, *label)
    assert ran.code == 0
    records = sorted(command.records(), key=lambda record: record.id)
    assert [(record.status, record.target, record.label_before) for record in records] == [("fooled", 1, 1), ("held", 0, 0)]
    assert "good -> bad" in ran.err
    refused = command.attack("name", rows, "--gives", "label", "--labels", "bad,good", "--recipe", "pwws")
    assert refused.code == 2
    assert re.search(r"\nscrimp: pwws needs scores but model:name@.* gives labels only; .*restore-wordnet.*\n$", refused.err)


def test_a_target(command: Command) -> None:
    rows = [("a good dog and a good cat", 2), ("a bad cat", 0), ("a good cat", 1)]
    command.attack("three", rows, "--labels", "none,some,many", "--target", "some", "--out", command.folder / "out")
    records = sorted(command.records(), key=lambda record: record.id)
    assert [record.status for record in records] == ["fooled", "held", "skipped"]
    assert (records[0].label_before, records[0].label_after, len(records[0].changes)) == (2, 1, 1)
    number = command.attack("three", rows, "--target", "1")
    assert number.summary["fooled"] == 1
    for target in ("soem", "3", "-1", "²"):
        refused = command.attack("three", rows, "--labels", "none,some,many", f"--target={target}")
        assert refused.code == 2
        assert f"scrimp: --target {target}: not a class number nor one of none, some, many\n" == refused.err


def test_a_shift(command: Command) -> None:
    rows = [("a good dog and a good cat", 2.0), ("a good film", 1.0)]
    down = command.attack("value", rows, "--gives", "value", "--shift=-1.5", "--out", command.folder / "out")
    assert (down.code, down.summary["fooled"]) == (0, 1)
    two = next(record for record in command.records() if record.status == "fooled")
    assert (two.id, two.label_before, two.label_after, len(two.changes)) == ("1", 2.0, 0.0, 2)
    needed = command.attack("value", rows, "--gives", "value")
    assert needed.code == 2
    assert re.search(r"\nscrimp: goal misclassify cannot read .* shift reads values\n$", needed.err)
    both = command.attack("value", rows, "--gives", "value", "--shift", 1, "--target", 0)
    assert (both.code, both.err) == (2, "scrimp: --shift 1 and --target 0: an attack has one goal; give one of them\n")


def test_protected_words_stay(command: Command) -> None:
    rows = [("a Good film about a big dog", 0), ("the dog saw a film", 0)]
    command.attack("scores", rows, "--recipe", "pwws@paper", "--protect", "good, film", "--protect-pattern", "b.g|do")
    for text in command.sent:
        assert text.startswith(("a Good film about a big dog", "the dog ")) or "[UNK]" in text
    assert len(command.sent) > 2  # "saw" may change
    assert all(" film" in text and "dog" in text for text in command.sent)


def test_max_changed_is_obeyed(command: Command) -> None:
    text = "a good dog and a good cat saw a good film with a good man"  # 15 words; 3 of the 4 good ones have to go
    for share, most in ((0, 1), (0.19, 2), (0.2, 3), (1, 15)):
        command.attack(
            "graded",
            [(text, 1)],
            "--max-changed",
            share,
            "--recipe",
            "pwws",
            "--trace",
            "--out",
            command.folder / str(share),
        )
        record = command.records(str(share))[0]
        assert record.status == ("fooled" if most >= 3 else "held")
        line = json.loads((command.folder / str(share) / "trace.jsonl").read_text())
        changed = [sum(a != b for a, b in zip(text.split(), q["text"][0].split(), strict=True)) for q in line["queries"]]
        assert max(changed) == min(most, 3)


def test_the_floor_is_obeyed(command: Command) -> None:
    rows = [(f"{start} good {thing}", 1) for start in ("a", "such a very") for thing in ("film", "story", "dog", "evening")]
    fooled: dict[float, int] = {}
    for floor in (0.0, 0.8, 0.95, 0.99):
        ran = command.attack("letters", rows, "--floor", floor, "--out", command.folder / str(floor))
        fooled[floor] = ran.summary["fooled"]
        for record in command.records(str(floor)):
            assert record.status in ("fooled", "held")
            assert record.adversarial is None or (record.similarity or 0) >= floor
    assert fooled[0.0] == fooled[0.8] == 8
    assert min(record.similarity or 0 for record in command.records("0.0")) < 0.8  # so the floor of 0.8 binds
    assert 8 > fooled[0.95] > fooled[0.99] == 0


def test_pairs(command: Command) -> None:
    path = command.folder / "pairs.csv"
    path.write_text("one,two,mood\nit is,a good film,1\na good dog,it is,1\n")
    columns = ("--text-column", "one,two", "--label-column", "mood", "--no-judge", "--json", "--out", command.folder / "out")
    ran = command("attack", "--victim", f"{command.folder / 'model.py'}:scores", "--data", path, *columns)
    assert (ran.code, ran.summary["errors"], ran.summary["fooled"]) == (0, 0, 2)
    records = sorted(command.records(), key=lambda record: record.id)
    assert [[change.field for change in record.changes] for record in records] == [[1], [0]]
    assert all(len(text) == 2 for text in command.sent)


def test_the_first_rows_only(command: Command) -> None:
    assert command.attack("scores", FILMS, "--n", 2).summary["n"] == 2
    assert command.attack("scores", FILMS, "--n", 50).summary["n"] == 5


def test_width_and_batch_change_no_figure(command: Command) -> None:
    def figures(*speed: Any) -> dict[str, Any]:
        return {k: v for k, v in command.attack("scores", FILMS, *speed).summary.items() if k not in (*COST, "cached_total")}

    assert figures() == figures("--width", 1, "--batch", 1) == figures("--width", 2, "--batch", 3)


# what a person sees


def test_diffs(command: Command) -> None:
    rows = [(f"a good film number {i}", 1) for i in range(8)]
    assert len(re.findall(r"queries, 1 of 5 words", command.attack("scores", rows, "--show", 3).err)) == 3
    assert "queries, 1 of" not in command.attack("scores", rows, "--show", 0).err
    assert "queries, 1 of" not in command.attack("scores", rows, "--show", -1).err
    assert len(re.findall(r"queries, 1 of 5 words", command.attack("scores", rows).err)) == 5


def test_control_characters_are_made_visible(command: Command) -> None:
    rows = [("a good \x1b[31mfilm\x07 \u202e [/bold] [red]x \ud800", 1)]
    ran = command.attack("scores", rows)
    assert ran.code == 0
    assert ran.summary["fooled"] == 1
    assert not set(ran.err) & set("\x1b\x07\u202e\ud800")
    assert re.search(r"a good \w+ \\x1b\[31mfilm\\x07 \\u202e \[/bold\] \[red\]x \\ud800", ran.err)


def test_printable() -> None:
    assert printable("a\tb\n\x00é😀\x9b\u200d\ue000\U000e0001") == "a\\x09b\n\\x00é😀\\x9b\\u200d\\ue000\\U000e0001"


def test_a_diff_keeps_all_the_text() -> None:
    change = (Change(0, 1, 2, "good", "full"), Change(1, 0, 0, "Such", "Very"))
    record = scrimp.Record(
        "\x1b[2J7", "fooled", "", ("a good film", "Such [b]joy[/b]"), ("a full film", "Very [b]joy[/b]"), change, 1, 1, 0, None,
        None, 4, 5, 0, 0, (), 5, 40.0, None, None, 0.1, 0, "", "",
    )  # fmt: skip
    shown = diff(record, ("bad", "good"))
    head = "\\x1b[2J7  good -> bad  4 queries, 2 of 5 words\n"
    assert shown.plain == head + "a good full film\nSuch Very [b]joy[/b]\n"
    styles = {shown.plain[span.start : span.end]: str(span.style) for span in shown.spans}
    assert [styles[word] for word in ("good", "full", "Such", "Very")] == ["red strike", "bold green"] * 2
    console = Console(width=200, record=True, file=open(os.devnull, "w"))  # noqa: SIM115
    console.print(shown)
    assert "Such Very [b]joy[/b]" in console.export_text()


def test_some_errors_are_shown_and_all_errors_fail(command: Command) -> None:
    some = command.attack("shaky", [("a good stone", 1), ("a good film", 1)])
    assert (some.code, some.summary["errors"], some.summary["attacked"]) == (0, 1, 1)
    assert "error in 1: ValueError: no \\x1b[31mstones\\x1b[0m\nplease [/bold]" in some.err
    assert "2 (0 wrong already, 1 errors)" in some.err
    every = command.attack("shaky", [("a good stone", 1), ("a bad stone", 0)])
    assert (every.code, every.summary["errors"], every.summary["success_rate"]) == (1, 2, None)
    assert "0 of 0 attacked = -" in every.err


def test_names_with_markup_are_shown_as_they_are(command: Command) -> None:
    odd = command.folder / "m[bold].py"
    odd.write_text(VICTIM)
    (command.folder / "q.txt").write_text("1 a good film\n")
    ran = command("attack", "--victim", f"{odd}:scores", "--data", command.folder / "q.txt", "--no-judge")
    assert ran.code == 0
    assert len(re.findall(r"scrimp against m\[bold\]:scores@", ran.out)) == 2


# errors


ERRORS: dict[str, tuple[list[str], str]] = {
    "n 0": (["--n", "0"], r"--n 0: at least one text is needed"),
    "n -3": (["--n=-3"], r"--n -3: at least one text is needed"),
    "trace without out": (["--trace"], r"--trace writes DIR/trace.jsonl, so it needs --out DIR"),
    "resume without out": (["--resume"], r"--resume goes on with the run in a folder, so it needs --out DIR"),
    "unknown victim": (["--victim", "wordcnn-rm"], r"no victim is called 'wordcnn-rm'; did you mean wordcnn-mr\?.*"),
    "no such file": (["--victim", "none.py:f", "--data", "q"], r"none.py does not exist; .*"),
    "no data": (["--victim", "math:sqrt"], r"--data is needed with --victim math:sqrt: a CSV, .*"),
    "missing data": (["--data", "none.csv"], r"cannot read none.csv: No such file or directory; give an existing .*"),
    "unknown recipe": (["--recipe", "pwsw"], r"no recipe 'pwsw'; did you mean pwws.*"),
    "markup recipe": (["--recipe", "[/x]"], r"no recipe '\[/x\]'; .*"),
    "control recipe": (["--recipe", "a\x1b[31mb\nc"], r"no recipe 'a\\x1b\[31mb\\nc'; .*"),
    "unknown space": (["--space", "wordnet_any"], r"no space is called 'wordnet_any'; did you mean 'wordnet-any'\?"),
    "budget 0": (["--budget", "0"], r"budget=0: the clean text costs one query, so the budget must be at least 1"),
    "width 0": (["--width", "0"], r"width=0, .*each must be at least 1"),
    "bad pattern": (["--protect-pattern", "("], r"the protected pattern '\(' is not a regular expression: .*"),
    "bad share": (["--max-changed", "2"], r"the share of words changed lies between 0 and 1, got 2.0"),
    "bad target": (["--target", "neutral"], r"--target neutral: not a class number nor one of negative, positive"),
    "shift of classes": (["--shift", "1"], r"goal shift\(1\) cannot read wordcnn-mr.* shift reads values"),
    "shift 0": (["--shift", "0"], r"Shift\(0.0\) moves nothing: give a finite distance, .*"),
    "labels of another": (["--labels", "a,b"], r"wordcnn-mr.* has the labels .* but \['a', 'b'\] were given; .*"),
    "labels only": (
        ["--labels-only", "--recipe", "pwws"],
        r"pwws needs scores but .* gives labels only; recipes for labels: .*restore-wordnet.*",
    ),
    "two lines": (["--victim", "two_lines.py:f", "--data", "q"], r"first second"),
}


@pytest.mark.parametrize("case", ERRORS)
def test_errors_are_one_line(command: Command, case: str, monkeypatch: pytest.MonkeyPatch) -> None:
    args, message = ERRORS[case]
    monkeypatch.chdir(command.folder)
    Path("two_lines.py").write_text('raise ValueError("first\\nsecond")')
    ran = command("attack", "--no-judge", *args)
    assert ran.code == 2
    assert re.fullmatch(f"scrimp: {message}\n", ran.err), ran.err
    assert "Traceback" not in ran.out


@pytest.mark.parametrize("args", [[], ["atack"], ["attack", "--budget", "many"], ["attack", "--gives", "logits"]], ids=str)
def test_usage_errors(command: Command, args: list[str]) -> None:
    ran = command(*args)
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.startswith("usage: scrimp")
    assert re.search(r"^scrimp(?: attack)?: error: .+\n$", ran.err.splitlines(keepends=True)[-1])


def test_a_broken_data_file_is_named(command: Command) -> None:
    path = command.folder / "q.csv"
    path.write_text("text,label\na good film,goood\n")
    ran = command("attack", "--data", path)
    assert (ran.code, ran.out) == (2, "")
    assert ran.err == (
        f"scrimp: {path}, row 1: unknown label 'goood'; the victim's classes are negative, positive\n"
    )  # fmt: skip


def test_an_interrupt_says_how_to_go_on(command: Command) -> None:
    (command.folder / "stop.py").write_text("def f(texts):\n    raise KeyboardInterrupt\n")
    (command.folder / "q.txt").write_text("1 a good film\n")
    args = ("attack", "--victim", f"{command.folder / 'stop.py'}:f", "--data", command.folder / "q.txt", "--no-judge")
    kept = command(*args, "--out", command.folder / "out", "--json")
    assert (kept.code, kept.out) == (130, "")
    assert kept.err.endswith("scrimp: stopped; what is finished is kept: run the same command with --resume\n")
    assert command(*args, "--json").err.endswith("scrimp: stopped; with --out it could be resumed\n")


def test_edit_names_the_fields_that_may_change(command: Command) -> None:
    model = command.folder / "pairs.py"
    model.write_text("def predict(pairs):\n    return [[0.4, 0.6] if 'film' in b else [0.6, 0.4] for a, b in pairs]\n")
    data = command.folder / "pairs.csv"
    data.write_text("premise,hypothesis,label\na good film,a fine film about war,1\n")
    common = ("attack", "--victim", f"{model}:predict", "--data", data, "--text-column", "premise,hypothesis", "--no-judge")
    done = command(*common, "--prior", "none", "--edit", "1", "--json")
    assert json.loads(done.out.splitlines()[-1])["success_rate"] == 100
    held = command(*common, "--prior", "none", "--edit", "0", "--json")
    assert json.loads(held.out.splitlines()[-1])["success_rate"] == 0
    wrong = command(*common, "--edit", "2")
    assert wrong.code == 2
    assert "--edit 2: it lists fields that may change, numbered from 0 to 1" in wrong.err
