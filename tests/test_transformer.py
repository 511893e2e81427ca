"""Hugging Face models as victims: classifiers, pairs, values, choices; tiny ones made on the spot."""

from __future__ import annotations

import json
import pickle
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scrimp.attacks.types import Example, Text
from scrimp.victims import VictimError, from_transformer, load, load_victim
from scrimp.victims.training import COURSES, Plan, train
from scrimp.victims.transformer import Transformer, stack

WORDS = [
    *("[PAD]", "[UNK]", "[CLS]", "[SEP]", "the", "a", "film", "plot", "is", "was", "very"),
    *("fine", "great", "dull", "awful", "cast", ".", "not", "good", "bad"),
]
TEXTS: list[Text] = [
    ("the film is fine",),
    ("a",),
    ("",),
    ("dull plot . awful cast . " * 6,),
    ("the film was great",),
    ("😀 unknown words here",),
    ("not very good \ud800",),
    ("the plot is bad",),
]


def save_tokenizer(folder: Path, side: str = "right") -> None:
    from tokenizers import Tokenizer, models, pre_tokenizers, processors
    from transformers import PreTrainedTokenizerFast

    made = Tokenizer(models.WordLevel({word: number for number, word in enumerate(WORDS)}, unk_token="[UNK]"))
    made.pre_tokenizer = pre_tokenizers.Whitespace()
    ends = [("[CLS]", 2), ("[SEP]", 3)]
    pair = "[CLS] $A [SEP] $B:1 [SEP]:1"
    made.post_processor = processors.TemplateProcessing(single="[CLS] $A [SEP]", pair=pair, special_tokens=ends)
    names = {"pad_token": "[PAD]", "unk_token": "[UNK]", "cls_token": "[CLS]", "sep_token": "[SEP]"}
    inputs = ["input_ids", "token_type_ids", "attention_mask"]
    PreTrainedTokenizerFast(
        tokenizer_object=made, model_max_length=64, padding_side=side, model_input_names=inputs, **names
    ).save_pretrained(folder)


def make(folder: Path, kind: str = "BertForSequenceClassification", **settings: Any) -> Path:
    import torch
    import transformers

    torch.manual_seed(0)
    sizes = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 32}
    config = transformers.BertConfig(
        vocab_size=len(WORDS), max_position_embeddings=64, initializer_range=0.5, **sizes, **settings
    )
    getattr(transformers, kind)(config).save_pretrained(folder)
    save_tokenizer(folder)
    return folder


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make(tmp_path_factory.mktemp("hub") / "tiny", num_labels=3, id2label={0: "no", 1: "so-so", 2: "yes"})


def test_a_classifier(folder: Path) -> None:
    victim = from_transformer(folder)
    assert (victim.gives, victim.labels, victim.fields, victim.length) == ("scores", ("no", "so-so", "yes"), 0, 64)
    assert victim.name.startswith("tiny@")
    scores = np.stack(victim(TEXTS))
    assert scores.shape == (len(TEXTS), 3)
    assert np.abs(scores.sum(1) - 1).max() < 1e-9
    assert np.ptp(scores, axis=0).max() > 0.01
    assert load_victim(str(folder)).name == victim.name == load_victim(f"hf:{folder}").name
    assert list(victim([])) == []


def test_alone_and_together_are_the_same_bits(folder: Path) -> None:
    victim = from_transformer(folder)
    together, backwards = victim(TEXTS), victim(TEXTS[::-1])[::-1]
    for text, row, other in zip(TEXTS, together, backwards, strict=True):
        assert victim([text])[0].tobytes() == row.tobytes() == other.tobytes()


def test_texts_of_one_padded_length_go_together_once_that_is_found_harmless(folder: Path) -> None:
    sizes: list[int] = []

    def watched(victim: Transformer, shift: float) -> Transformer:
        def answer(**given: Any) -> Any:
            sizes.append(len(given["input_ids"]))
            replied = victim.model(**given)
            replied.logits = replied.logits.clone()
            replied.logits[:, 0] += shift * (len(given["input_ids"]) - 1)
            return replied

        return replace(victim, model=answer, shapes={})

    texts = [(f"the film is {'very ' * n}good",) for n in range(8)]
    steady, swayed = (watched(from_transformer(folder), shift) for shift in (0.0, 0.01))
    alone = [row.tolist() for text in texts for row in from_transformer(folder)([text])]
    for victim, later in ((steady, [8]), (swayed, [1] * 8)):
        assert [row.tolist() for row in victim(texts)] == alone  # tried: alone, and together
        sizes.clear()
        assert [row.tolist() for row in victim(texts)] == alone
        assert sizes == later
    assert (steady.shapes, swayed.shapes) == ({(8, 16): True}, {(8, 16): False})


def test_the_longest_text_is_not_padded_beyond_what_the_model_reads(folder: Path) -> None:
    victim = from_transformer(folder)
    texts = [("the film " * n + "is dull",) for n in (30, 31, 40, 50)]
    for text, row in zip(texts, victim(texts), strict=True):
        assert victim([text])[0].tobytes() == row.tobytes()
        assert np.isfinite(row).all()


def test_batches_are_padded_without_effect(folder: Path) -> None:
    one, many = from_transformer(folder), from_transformer(folder, batch=4)
    rows = np.stack(one(TEXTS))
    assert np.abs(np.stack(many(TEXTS)) - rows).max() < 2e-5
    assert np.abs(np.stack(replace(many, sort=False)(TEXTS)) - rows).max() < 2e-5
    assert [row.tolist() for row in many(TEXTS)] == [np.round(row, 5).tolist() for row in many(TEXTS)]


def test_batches_are_sorted_by_length(folder: Path) -> None:
    victim = from_transformer(folder, batch=4)
    widths: list[int] = []

    class Watch:
        def __call__(self, **given: Any) -> Any:
            widths.append(int(given["input_ids"].shape[1]))
            return victim.model(**given)

    replace(victim, model=Watch())(TEXTS)
    assert widths == sorted(widths)
    assert widths[0] < 8 < widths[1]


def test_padding_on_the_left() -> None:
    class Left:
        pad_token_id = 9
        padding_side = "left"

    rows = [{"input_ids": [1, 2, 3], "attention_mask": [1, 1, 1]}, {"input_ids": [4], "attention_mask": [1]}]
    given = stack(rows, Left())
    assert given["input_ids"].tolist() == [[1, 2, 3], [9, 9, 4]]
    assert given["attention_mask"].tolist() == [[1, 1, 1], [0, 0, 1]]


def test_pairs(folder: Path) -> None:
    victim = from_transformer(folder, fields=2)
    (sequence,) = victim.pieces(("the film", "is dull"))
    assert sequence["token_type_ids"] == [0, 0, 0, 0, 1, 1, 1]
    one, other = victim([("the film", "is dull"), ("is dull", "the film")])
    assert one.tolist() != other.tolist()
    assert from_transformer(folder)([("the film", "is dull"), ("a",)])[0].tolist() == one.tolist()
    with pytest.raises(VictimError, match="reads texts of 2 to 2 fields, got 1"):
        victim([("a",)])
    with pytest.raises(VictimError, match="reads texts of 1 to 2 fields, got 3"):
        from_transformer(folder)([("a", "b", "c")])


def test_values(tmp_path: Path) -> None:
    victim = from_transformer(make(tmp_path / "value", num_labels=1))
    assert (victim.gives, victim.labels) == ("value", ())
    values = victim(TEXTS)
    assert all(value.shape == () for value in values)
    assert len({float(value) for value in values}) > 4
    assert [float(v) for v in replace(victim, batch=8)(TEXTS)] == pytest.approx([float(v) for v in values], abs=2e-5)


def test_choices(tmp_path: Path) -> None:
    made = make(tmp_path / "choice", "BertForMultipleChoice")
    victim = from_transformer(made, choices=3, fields=5)
    text = ("the film was dull .", "the cast is", "good", "bad", "awful")
    (scores,) = victim([text])
    assert scores.shape == (3,)
    assert scores.sum() == pytest.approx(1)
    (turned,) = victim([(*text[:2], "awful", "good", "bad")])
    assert turned.tolist() == pytest.approx(scores[[2, 0, 1]].tolist())
    joined = (" ".join(text[:2]), *text[2:])
    assert load(made)([joined, joined[:3]])[0].tolist() == scores.tolist()  # all but the first are choices
    with pytest.raises(VictimError, match="different numbers of choices cannot share a batch"):
        from_transformer(made, batch=2)([joined, joined[:3]])
    with pytest.raises(VictimError, match="reads texts of 3 to 99 fields, got 2"):
        load(made)([("a", "b")])


def test_precisions(folder: Path) -> None:
    rows = np.stack(from_transformer(folder)(TEXTS))
    for precision in ("bfloat16", "int8"):
        victim = from_transformer(folder, precision=precision)
        assert victim.name.endswith(f"-{precision}")
        near = np.abs(np.stack(victim(TEXTS)) - rows).max()
        assert 0 < near < 0.1
        assert victim(TEXTS[:1])[0].tobytes() == victim(TEXTS)[0].tobytes()


def test_a_long_text_is_cut(folder: Path) -> None:
    victim = from_transformer(folder, length=10)
    long, longer = victim([("dull plot " * 30,), ("dull plot " * 31 + "great",)])
    assert long.tolist() == longer.tolist()


def test_bad_arguments(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(VictimError, match=r"precision='half' for .*; it must be one of float32, bfloat16, int8"):
        from_transformer(folder, precision="half")  # type: ignore[arg-type]
    with pytest.raises(VictimError, match="int8 with batch=8 on cpu"):
        from_transformer(folder, precision="int8", batch=8)
    with pytest.raises(VictimError, match="batch=-1 for"):
        from_transformer(folder, batch=-1)
    with pytest.raises(VictimError, match="which reads 3 to 64 word pieces"):
        from_transformer(folder, length=100)
    with pytest.raises(VictimError, match=r"2 labels \['a', 'b'\] for 3 classes"):
        from_transformer(folder, labels=("a", "b"))
    (tmp_path / "empty").mkdir()
    with pytest.raises(VictimError, match="cannot be read as a Hugging Face model"):
        from_transformer(tmp_path / "empty")
    many = make(tmp_path / "many", problem_type="multi_label_classification")
    with pytest.raises(VictimError, match="scores every label on its own"):
        from_transformer(many)


def test_weights_that_cannot_be_used(tmp_path: Path) -> None:
    bare = make(tmp_path / "bare", "BertModel")
    with pytest.raises(
        VictimError, match=r"no trained classifier.bias, classifier.weight.* scrimp train --model transformer"
    ):
        from_transformer(bare)
    made = make(tmp_path / "made", num_labels=2)
    config = json.loads((made / "config.json").read_text())
    (made / "config.json").write_text(json.dumps(config | {"hidden_size": 20}))
    with pytest.raises(VictimError, match=r"have another shape than config\.json says"):
        from_transformer(made)
    (made / "config.json").write_text(json.dumps(config))
    (made / "model.safetensors").write_bytes(pickle.dumps({"weights": 1}))
    with pytest.raises(VictimError, match=r"cannot be read as safetensors .*; pickles are not read: write them anew with"):
        from_transformer(made)
    (made / "model.safetensors").rename(made / "pytorch_model.bin")
    with pytest.raises(
        VictimError, match=r"holds pytorch_model\.bin but no model\.safetensors; pickles .* not read: .*save_pretrained"
    ):
        from_transformer(made)


def test_fine_tuning(folder: Path, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    rows = []
    for number in range(300):
        kind = int(rng.integers(2))
        words = [*rng.choice(WORDS[4:11], 3), str(rng.choice((["dull", "awful"], ["fine", "great"])[kind]))]
        rows.append(Example(str(number), (" ".join(map(str, words)), f"cast {number}"), kind))
    course = replace(COURSES["transformer"], epochs=4, rate=5e-3, batch=8, dropout=0.0)
    plan = Plan("transformer", ("bad", "good"), base=str(folder), length=32, threads=1)
    card = train(rows, tmp_path / "tuned", plan, course)
    victim = load(tmp_path / "tuned")
    assert isinstance(victim, Transformer)
    assert (victim.labels, victim.fields, victim.length, victim.name) == (("bad", "good"), 2, 32, card["name"])
    told = [int(victim([(f"the film is {word}", "cast x")])[0].argmax()) for word in ("dull", "fine", "awful", "great")]
    assert told == [0, 1, 0, 1]
    assert json.loads((tmp_path / "tuned" / "card.json").read_text()) == card
