"""kill -9 for real, in the middle of a run with a slow victim; then resume."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest
import scrimp
from scrimp import read_records

# The victim writes down every text it has answered, and kills its own process at the call whose number is in FATAL.
VICTIM = """
import os, signal, time
from pathlib import Path

here, fatal, pause = Path(__file__).parent, int(os.environ.get("FATAL", 0)), float(os.environ.get("PAUSE", 0))
calls = 0

def predict(texts):
    global calls
    calls += 1
    if calls == fatal:
        os.kill(os.getpid(), signal.SIGKILL)
    time.sleep(pause)
    rows = []
    for text in texts:
        good = sum(len(word) % 3 == 0 for word in text.split())
        bad = sum(len(word) % 3 == 1 for word in text.split())
        rows.append([(1 + bad) / (2 + good + bad), (1 + good) / (2 + good + bad)])
    with open(here / "answered", "a") as log:
        log.writelines(text + "\\n" for text in texts)
    return rows
"""
SCRIPT = """
import sys
import scrimp
from scrimp.tests.toys import ToySpace

scrimp.attack(
    scrimp.load_victim(sys.argv[1]), sys.argv[2], "pwws", space=ToySpace(3), guide=None, judge=None,
    width=3, batch=4, trace=True, out=sys.argv[3], resume=True,
)
"""
REVIEWS = [
    "a fine warm film with a great cast and many quiet moments",
    "the story drags and the jokes fall flat from start to finish",
    "one of the best comedies in years , sharp and kind",
    "a dull thriller that wastes a good idea and better actors",
    "funny , sad and true : the small movie of the summer",
]
LETTERS = [" ".join("abc bed face dab cab fed ade bcf"[i : i + 17]) for i in range(8)]


def _folder(folder: Path, texts: list[str]) -> Path:
    (folder / "slow.py").write_text(VICTIM)
    lengths = {text: [len(word) % 3 for word in text.split()] for text in texts}
    lines = [f"{int(found.count(0) > found.count(1))}\t{text}\n" for text, found in lengths.items()]
    (folder / "texts.tsv").write_text("".join(lines))
    return folder


def _answered(folder: Path) -> Counter[str]:
    log = folder / "answered"
    found = Counter(log.read_text().splitlines())
    log.unlink()
    return found


def _outcomes(folder: Path) -> dict[str, object]:
    return {record.id: record.outcome() for record in read_records(folder / "records.jsonl")}


@pytest.fixture
def letters(tmp_path: Path) -> Path:
    return _folder(tmp_path, LETTERS)


def test_killed_runs_end_as_an_unbroken_one(letters: Path) -> None:
    def run(out: str, fatal: int) -> int:
        victim, data = f"{letters / 'slow.py'}:predict", str(letters / "texts.tsv")
        command = [sys.executable, "-c", SCRIPT, victim, data, str(letters / out)]
        return subprocess.run(command, env=os.environ | {"FATAL": str(fatal)}, check=False).returncode

    assert run("whole", 0) == 0
    once = _answered(letters)
    ends = [run("broken", fatal) for fatal in (2, 9, 14, 25)] + [run("broken", 0)]
    assert ends == [-signal.SIGKILL] * 4 + [0]
    assert set(once.values()) == {1}
    assert _answered(letters) == once  # every text was sent, and none twice
    assert _outcomes(letters / "broken") == _outcomes(letters / "whole")
    records = read_records(letters / "broken" / "records.jsonl")
    assert len(records) == len(LETTERS)
    traced = [json.loads(line) for line in (letters / "broken" / "trace.jsonl").read_text().splitlines()]
    assert sorted((line["id"], len(line["queries"])) for line in traced) == sorted((r.id, r.charged) for r in records)


def test_killed_from_outside(tmp_path: Path) -> None:
    folder = _folder(tmp_path, REVIEWS)
    victim, data = f"{folder / 'slow.py'}:predict", str(folder / "texts.tsv")
    command = [sys.executable, "-m", "scrimp", "attack", "--victim", victim, "--data", data, "--recipe", "pwws"]
    command += ["--out", str(folder / "broken"), "--no-judge", "--width", "3", "--batch", "4"]
    process = subprocess.Popen(command, env=os.environ | {"PAUSE": "0.05"}, stdout=subprocess.DEVNULL)
    while not (folder / "answered").exists():  # the first replies are in
        assert process.poll() is None
        time.sleep(0.02)
    time.sleep(1)
    process.send_signal(signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL
    for out in ("broken", "whole"):
        model = scrimp.load_victim(victim)
        scrimp.attack(model, data, "pwws", judge=None, out=folder / out, resume=True)
        sent = _answered(folder)
        # Only the batch that was answered at the very moment of the kill could be asked again.
        assert sum(sent.values()) - len(sent) <= (4 if out == "broken" else 0)
    assert _outcomes(folder / "broken") == _outcomes(folder / "whole")
