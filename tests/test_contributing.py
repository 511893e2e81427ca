"""The worked examples of CONTRIBUTING.md and README.md run as they are printed."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
import scrimp
from scrimp.benchmarks.compare import MEASURED, markdown
from scrimp.spaces import StopWords

from .test_laws import LAWS
from .toys import World

ROOT = Path(__file__).parent.parent


def _example(which: str) -> dict[str, Any]:
    text = (ROOT / "CONTRIBUTING.md").read_text()
    (code,) = re.findall(rf"<!-- worked example: {which} -->\n```python\n(.*?)```", text, re.S)
    names: dict[str, Any] = {"__name__": "worked_example"}
    exec(compile(code, which, "exec"), names)
    return names


@pytest.mark.parametrize("law", LAWS.values(), ids=LAWS)
def test_the_new_search_is_lawful(law: Any) -> None:
    pairs = _example("search")["pairs"]
    for seed in range(10):
        law(pairs, World(seed, budget=20))


def test_the_new_parts_work_together() -> None:
    search, space, victim = (_example(which) for which in ("search", "space", "victim"))
    recipe = scrimp.Recipe("pairs-twins", space["twins"], search["pairs"], "two spellings at once")
    rows = [("the color of humor , in a theater", 0), ("no such word", 0)]
    results = scrimp.attack(victim["shout"], rows, recipe, guide=None, judge=None, labels_only=True)
    changed, held = results
    assert changed.status == "fooled"
    assert changed.adversarial is not None
    assert "colour" in changed.adversarial[0]
    assert len(changed.changes) == 2
    assert held.reason == "no word of 3 has a candidate: 2 stop words, 1 spelt alike everywhere"
    assert StopWords().name in recipe.space.name


def test_the_readme_example_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    text = (ROOT / "README.md").read_text()
    codes = re.findall(r"```python\n(.*?)```", text, re.S)
    assert codes
    assert len(codes[0].strip().splitlines()) <= 14
    monkeypatch.chdir(tmp_path)
    exec(compile(codes[0], "README.md", "exec"), {"__name__": "readme"})
    assert "success_rate" in capsys.readouterr().out


def test_the_readme_shows_the_committed_record() -> None:
    record = json.loads((MEASURED / "recipes.json").read_text())
    assert markdown(record) in (ROOT / "README.md").read_text()
