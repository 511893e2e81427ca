"""The comparison without its peer: what is counted, what is shared, and what the table says."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
from scrimp.attacks.types import Example
from scrimp.benchmarks import growth
from scrimp.benchmarks.data import read_examples
from scrimp.benchmarks.peers.__main__ import best, figures, main, table_of
from scrimp.benchmarks.peers.meter import WARM, WARM_TABLE, Job, Meter
from scrimp.benchmarks.peers.ours import Table, run
from scrimp.benchmarks.peers.report import markdown, ratios
from scrimp.benchmarks.peers.setting import environment
from scrimp.spaces import SPACES
from scrimp.spaces.tokens import words
from scrimp.victims import HELD_OUT, load_victim


def job(n: int, **other: Any) -> Job:
    examples = read_examples(HELD_OUT, n=n)
    texts = [(example.id, example.text[0], int(example.target)) for example in examples]
    plain = {"attack": "greedy-wordnet@released", "budget": None, "seed": 0} | other
    return Job("wordcnn-mr", texts, table_of(examples, "wordnet-any"), [], **plain)


def test_the_meter_counts_what_it_is_sent() -> None:
    meter = Meter(load_victim("wordcnn-mr"))
    meter([("a",), ("b",)])
    meter([("a",), ("a",)])
    assert (meter.calls, meter.sent, len(meter.seen)) == (2, 4, 2)
    assert meter.trained_on == ("rotten_tomatoes",)
    meter.reset()
    assert (meter.calls, meter.sent, len(meter.seen), meter.cpu) == (0, 0, 0, 0.0)


def test_the_table_gives_the_grids_it_was_written_from() -> None:
    examples = read_examples(HELD_OUT, n=5)
    for live, read in zip(SPACES["wordnet-any"](examples), Table(table_of(examples, "wordnet-any"))(examples), strict=True):
        assert read.candidates == live.candidates
        assert read.slot_words == live.slot_words
        assert read.n_words == live.n_words
    assert Table({})(examples)[0].why_empty == "nothing in the table"


def test_the_warm_up_table_fits_its_text() -> None:
    found = words(WARM)
    for number, start, end, _ in WARM_TABLE:
        assert (found[number].start, found[number].end) == (start, end)


def test_a_job_survives_its_file(tmp_path: Path) -> None:
    wanted = job(2)
    (tmp_path / "job.json").write_text(json.dumps(asdict(wanted)))
    assert asdict(Job.read(tmp_path / "job.json")) == json.loads(json.dumps(asdict(wanted)))


def test_our_side_agrees_with_itself_and_the_meter() -> None:
    wanted = job(8)
    free, tight = run(wanted), run(job(8, budget=5))
    assert free["distinct"] == free["sent"] == sum(text["counted"] for text in free["texts"])
    assert max(text["counted"] for text in tight["texts"]) == 5
    row = figures(wanted, free)
    skipped = [text for text in free["texts"] if text["status"] == "skipped"]
    assert row["attacked"] == 8 - len(skipped)
    assert row["distinct_mean"] == row["counted_mean"]
    assert 0 < row["perturbed_pct"] < 50


def test_changed_words_are_counted_alike_on_both_sides() -> None:
    wanted = Job("wordcnn-mr", [("1", "a good film", 1), ("2", "so dull", 0)], {}, [], "pwws", None, 0)
    cost = {"victim_calls": 2, "sent": 9, "distinct": 8, "wall_s": 1.0, "cpu_s": 1.0, "victim_cpu_s": 0.5}
    texts = [
        {"id": "1", "status": "fooled", "counted": 8, "adversarial": "a dear film"},
        {"id": "2", "status": "skipped", "counted": 1, "adversarial": None},
    ]
    other = {"engine": "textattack", "outside_ms_per_text": 1.0, "peak_rss_mb": 1.0, "texts": texts}
    row = figures(wanted, cost | other)
    assert (row["perturbed_pct"], row["success_rate"], row["attacked"]) == (33.33, 100.0, 1)
    assert (row["distinct_mean"], row["sent_mean"], row["mean_batch"]) == (7, 8, 4.5)


def record() -> dict[str, Any]:
    row = {
        "attack": "pwws",
        "space": "table",
        "against": "pwws",
        "budget": None,
        "success_rate": 90.0,
        "perturbed_pct": None,
    }
    row |= {
        "counted_mean": 9.0,
        "distinct_mean": 8.0,
        "victim_calls": 40,
        "mean_batch": 2.0,
        "cpu_s": 2.0,
        "peak_rss_mb": 800.0,
        "victim_cpu_s": 1.0,
        "attacked": 10,
    }
    theirs = row | {"engine": "textattack", "wall_s": 4.0, "outside_ms_per_text": 0.5}
    ours = row | {
        "engine": "scrimp",
        "attack": "pwws@released",
        "wall_s": 0.5,
        "outside_ms_per_text": 0.02,
        "distinct_mean": 4.0,
    }
    return {"rows": [theirs, ours]}


def test_ratios_and_table() -> None:
    rows = record()["rows"]
    (found,) = ratios(rows)
    assert (found["wall_s"], found["outside_ms_per_text"], found["distinct_mean"]) == (8.0, 25.0, 2.0)
    assert found["outside_ms_per_attack"] == 1.0
    lines = markdown({"rows": rows}).splitlines()
    assert len(lines) == 4
    assert "| scrimp | `pwws@released` | none | 90.0 | - | 9.0 | 4.0 |" in lines[3]
    assert len({line.count("|") for line in lines}) == 1


def test_the_quickest_of_equal_runs_counts() -> None:
    assert best([{"wall_s": 2.0, "x": 1}, {"wall_s": 1.0, "x": 2}]) == {"wall_s": 1.0, "x": 2, "walls": [2.0, 1.0]}


def test_the_peer_finds_only_scrimp_and_its_own(tmp_path: Path) -> None:
    told = environment(tmp_path)
    assert [path.name for path in Path(told["PYTHONPATH"]).iterdir()] == ["scrimp"]
    assert (Path(told["TA_CACHE_DIR"]) / "post_install_check_3").exists()
    assert "the" in (Path(told["NLTK_DATA"]) / "corpora/stopwords/english").read_text().split()
    assert environment(tmp_path) == told


def test_the_command_prints_a_record(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "r.json").write_text(json.dumps(record()))
    main(["--markdown", "--out", str(tmp_path / "r.json")])
    assert "| TextAttack | `pwws` |" in capsys.readouterr().out
    with pytest.raises(SystemExit):
        main(["--attacks", "hotflip"])
    assert "hotflip: there are pwws" in capsys.readouterr().err


def test_growth_is_the_power_of_the_axis() -> None:
    points = [{"value": x, "linear": 3.0 * x, "square": x * x, "flat": 5} for x in (10, 100, 1000)]
    assert [growth.exponents(points, name) for name in ("linear", "square", "flat")] == [1.0, 2.0, 0.0]
    assert growth.exponents(points[:1], "linear") is None


def test_growth_measures_what_it_says() -> None:
    point = growth.measure("candidates", 3, "greedy-wordnet")
    assert point["texts"] == 200
    padded = growth.Padded(SPACES["wordnet-any"], 3)([Example("1", ("a fine film",), 1)])[0]
    assert set(padded.sizes.tolist()) == {3}
    made = growth._examples(words=30)
    assert {len(example.text[0].split()) for example in made} == {30}
    many = growth._examples(n=450)
    assert len({example.id for example in many}) == 450
    assert len({example.text for example in growth._examples(n=2000)}) == 2000  # a repeated text would cost nothing
