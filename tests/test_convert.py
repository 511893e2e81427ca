"""Logs and models of other toolkits: what comes out must say what went in."""

from __future__ import annotations

import csv
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scrimp
from scrimp.attacks.types import Change
from scrimp.benchmarks.convert import COLUMNS, from_textattack, write_records
from scrimp.benchmarks.results import Results
from scrimp.cli import main
from scrimp.victims import softmax

HEAD = (*COLUMNS[:3], "original_score", *COLUMNS[3:])


def log(folder: Path, *rows: dict[str, Any]) -> Path:
    path = folder / "log.csv"
    usual = {
        "original_text": "a [[good]] film",
        "perturbed_text": "a [[dear]] film",
        "original_output": 1.0,
        "perturbed_output": 0.0,
        "original_score": 0.1,
        "perturbed_score": 0.75,
        "ground_truth_output": 1.0,
        "num_queries": 7.0,
        "result_type": "Successful",
    }
    with open(path, "w", newline="", encoding="utf-8") as out:
        table = csv.DictWriter(out, HEAD, quoting=csv.QUOTE_NONNUMERIC)
        table.writeheader()
        table.writerows(usual | row for row in rows)
    return path


def test_a_success(tmp_path: Path) -> None:
    (record,) = from_textattack(log(tmp_path, {}))
    assert (record.status, record.text, record.adversarial) == ("fooled", ("a good film",), ("a dear film",))
    assert record.changes == (Change(0, 1, 2, "good", "dear"),)
    assert (record.target, record.label_before, record.label_after) == (1, 1, 0)
    assert (record.charged, record.asked, record.n_words, record.perturbed_pct) == (7, 7, 3, 33.3333)
    assert record.improvements[0].charge == 7
    assert record.improvements[0].margin == 0.5


def test_marks_line_ends_and_words_that_come_and_go(tmp_path: Path) -> None:
    path = log(
        tmp_path,
        {"original_text": "[[[[fine]]]] cast<SPLIT>good end", "perturbed_text": "[[[[okay]]]] cast<SPLIT>good end"},
        {"original_text": "a good film", "perturbed_text": "a [[very]] good film"},
        {"original_text": "a good [[film]]", "perturbed_text": "a good"},
    )
    first, second, third = from_textattack(path)
    assert first.text == ("fine cast\ngood end",)
    assert first.adversarial == ("okay cast\ngood end",)
    assert second.changes == (Change(0, 1, 2, "", "very"),)
    assert third.changes == (Change(0, 2, 7, "film", ""),)


def test_failures_and_skipped_texts_have_no_result(tmp_path: Path) -> None:
    held, skipped = from_textattack(log(tmp_path, {"result_type": "Failed"}, {"result_type": "Skipped", "num_queries": 1}))
    assert (held.status, held.adversarial, held.changes, held.improvements) == ("held", None, (), ())
    assert (skipped.status, skipped.label_after, skipped.charged) == ("skipped", None, 1)


def test_the_command_writes_records_that_are_read_again(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, out = log(tmp_path, {}, {"result_type": "Failed", "num_queries": 30}), tmp_path / "theirs" / "records.jsonl"
    with pytest.raises(SystemExit) as ended:
        main(["convert", str(path), "--out", str(out)])
    assert ended.value.code == 0
    assert "50.0 %" in capsys.readouterr().out
    records = scrimp.read_records(out)
    assert records == from_textattack(path)
    assert Results(tuple(records)).success_at([6, 7]) == {6: 0.0, 7: 50.0}
    write_records(records[:1], out)
    assert len(out.read_text().splitlines()) == 1
    assert json.loads(out.read_text())["status"] == "fooled"


@pytest.mark.parametrize(
    ("row", "says"),
    [
        ({"result_type": "Odd"}, "row 1: result_type 'Odd' is not one of Successful"),
        ({"num_queries": "many"}, "row 1: num_queries 'many' is not a number"),
        ({"ground_truth_output": "un film"}, "only logs of classifiers"),
        ({"perturbed_score": "nan"}, "is not finite"),
    ],
)
def test_a_bad_row_is_named(tmp_path: Path, row: dict[str, Any], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        from_textattack(log(tmp_path, row))


def test_another_table_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    path.write_text("text,label\na,1\n")
    with pytest.raises(ValueError, match=r"no column original_text, .*--log-to-csv"):
        from_textattack(path)


def test_the_guide_for_movers_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    guide = (Path(scrimp.__file__).parent / "MIGRATING.md").read_text(encoding="utf-8")
    blocks = re.findall(r"<!-- runs -->\n```python\n(.*?)```", guide, re.DOTALL)
    assert len(blocks) == 3
    log(tmp_path, {})
    monkeypatch.chdir(tmp_path)
    known: dict[str, Any] = {"my_wrapper": Wrapper()}
    for block in blocks:
        exec(block, known)
    assert known["results"][0].status == "fooled"
    assert known["theirs"][0].charged == 7


class Wrapper:
    """As a model wrapper of TextAttack: logits for a list of strings."""

    def __call__(self, text_input_list: list[str]) -> Any:
        return np.array([[0.0, 2.0 if "good" in text else -2.0] for text in text_input_list])


def test_a_model_wrapper_is_a_victim() -> None:
    victim = scrimp.wrap(softmax(Wrapper()), "theirs@1", labels=("bad", "good"))
    results = scrimp.attack(victim, [("a good film", 1)], "greedy-wordnet", budget=30, guide=None, judge=None)
    assert results[0].status == "fooled"
    assert results[0].adversarial is not None
    assert "good" not in results[0].adversarial[0]


WORDS = ("[PAD]", "[UNK]", "a", "good", "film", "dull", "fine", "and", "long")


@pytest.fixture(scope="module")
def pipeline(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A real pipeline on a tiny model with random weights."""
    import torch
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import BertConfig, BertForSequenceClassification, PreTrainedTokenizerFast
    from transformers import pipeline as make

    torch.manual_seed(0)
    made = Tokenizer(models.WordLevel({word: number for number, word in enumerate(WORDS)}, unk_token="[UNK]"))
    made.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=made, unk_token="[UNK]", pad_token="[PAD]")
    sizes = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 16}
    config = BertConfig(vocab_size=len(WORDS), id2label={0: "bad", 1: "good", 2: "odd"}, initializer_range=2.0, **sizes)
    return make("text-classification", model=BertForSequenceClassification(config).eval(), tokenizer=tokenizer)


def test_a_pipeline_is_a_victim_in_one_line(pipeline: Any) -> None:
    victim = scrimp.wrap(pipeline, "tiny@1")
    assert victim.labels == ("bad", "good", "odd")
    rows = victim([("a good film",), ("dull and long",)])
    for row, text in zip(rows, ("a good film", "dull and long"), strict=True):
        best = pipeline(text)[0]
        assert victim.labels[int(row.argmax())] == best["label"]
        assert row.max() == pytest.approx(best["score"], abs=1e-6)
        assert row.sum() == pytest.approx(1, abs=1e-5)


def test_a_pipeline_may_give_labels_only_or_other_names(pipeline: Any) -> None:
    by_scores = scrimp.wrap(pipeline, "tiny@1")([("a good film",)])[0]
    by_label = scrimp.wrap(pipeline, "tiny@1", gives="label")([("a good film",)])[0]
    assert int(by_label) == int(by_scores.argmax())
    turned = scrimp.wrap(pipeline, "tiny@1", labels=("odd", "good", "bad"))([("a good film",)])[0]
    assert turned == pytest.approx(by_scores[::-1], abs=1e-6)


def test_a_pipeline_is_attacked_as_it_is(pipeline: Any) -> None:
    label = int(scrimp.wrap(pipeline, "tiny@1")([("a good film",)])[0].argmax())
    results = scrimp.attack(pipeline, [("a good film", label)], "greedy-wordnet", budget=20, guide=None, judge=None)
    assert results[0].status in ("fooled", "held")
    assert results[0].charged > 1
