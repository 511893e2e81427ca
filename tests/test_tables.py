"""Every table of the READMEs is what its record says."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from scrimp.benchmarks.compare import MEASURED
from scrimp.benchmarks.tables import BLOCK, PAGES, fill, pick

TABLE = "| recipe | fooled % | median |\n|---|---|---|\n| `a` | 1.0 | 2.0 |\n| `b` (labels) | 3.0 | - |"


@pytest.mark.parametrize("page", PAGES, ids=[f"{page.parent.name}-{page.name}" for page in PAGES])
def test_tables_are_their_records(page: Path) -> None:
    text = page.read_text()
    assert len(BLOCK.findall(text)) == text.count("<!-- table ") > 2
    assert fill(text) == text, "write them anew with: python -m scrimp.benchmarks.tables"


def test_every_record_that_a_page_names_is_there() -> None:
    for page in PAGES:
        for name in re.findall(r"`(?:benchmarks/)?measured/([\w.-]+\.json)`", page.read_text()):
            assert (MEASURED / name).exists(), f"{page} names {name}"


def test_a_changed_record_changes_its_table(tmp_path: Path) -> None:
    record = json.loads((MEASURED / "recipes.json").read_text())
    record["rows"] = record["rows"][:1]
    record["rows"][0]["success_rate"] = 12.34
    (tmp_path / "recipes.json").write_text(json.dumps(record))
    page = "before\n<!-- table compare recipes.json columns=fooled %>% -->\nold\n<!-- end -->\nafter\n"
    assert fill(page, tmp_path) == page.replace("old", "| % |\n| --- |\n| 12.3 |")


def test_rows_and_columns_are_picked() -> None:
    assert pick(TABLE, ["a"], ["median>half", "recipe"]) == "| half | recipe |\n| --- | --- |\n| 2.0 | `a` |"
    with pytest.raises(ValueError, match="no column charged; there are recipe"):
        pick(TABLE, [], ["charged"])
    with pytest.raises(ValueError, match="no kind of table 'other'"):
        fill("<!-- table other x.json -->\n<!-- end -->\n")
