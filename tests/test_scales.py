"""Scales of similarity and encoders given by path: thresholds of papers, poolings, and a SavedModel where there is TensorFlow."""

from __future__ import annotations

import json
import math
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scrimp.spaces.scales import SCALES, convert, floor_from

law = settings(deadline=None, max_examples=200, derandomize=True)


@pytest.mark.parametrize(
    ("scale", "value", "cosine"),
    [
        # The published thresholds, worked out apart: 1 - arccos as the released codes use it
        ("one_minus_arccos", 0.1, 0.622),
        ("one_minus_arccos", 0.47, 0.863),
        ("one_minus_arccos", 0.5, 0.878),
        ("one_minus_arccos", 0.7, 0.955),
        ("one_minus_arccos", 0.8, 0.980),
        ("angular", 0.8408, 0.878),
        ("angular", 0.9045, 0.955),
        ("angular", 0.5, 0.0),
        ("angular", 0.0, -1.0),
        ("squared_distance", 0.5, 0.75),
        ("squared_distance", 4.0, -1.0),
        ("cosine", 0.3, 0.3),
    ],
)
def test_published_thresholds(scale: str, value: float, cosine: float) -> None:
    assert floor_from(scale, value) == pytest.approx(cosine, abs=6e-4)


def test_the_thresholds_of_textfooler_and_its_port_are_one() -> None:
    assert convert(0.5, "one_minus_arccos", "angular") == pytest.approx(0.840845057, abs=1e-9)


@law
@given(st.floats(-1, 1), st.sampled_from(sorted(SCALES)), st.sampled_from(sorted(SCALES)))
@example(1.0, "one_minus_arccos", "angular")
@example(-1.0, "one_minus_arccos", "squared_distance")
@example(0.84, "cosine", "cosine")
def test_there_and_back(cosine: float, scale: str, other: str) -> None:
    value = SCALES[scale].of_cosine(cosine)
    assert floor_from(scale, value) == pytest.approx(cosine, abs=1e-7)
    # Where the angle is small, a cosine holds half of its digits.
    assert convert(convert(value, scale, other), other, scale) == pytest.approx(value, abs=1e-7)


@law
@given(st.floats(-1, 1), st.floats(-1, 1), st.sampled_from(sorted(SCALES)))
def test_the_order_stays(a: float, b: float, scale: str) -> None:
    low, high = sorted((a, b))
    first, second = SCALES[scale].of_cosine(low), SCALES[scale].of_cosine(high)
    assert first >= second if scale == "squared_distance" else first <= second


def test_a_vector_and_itself() -> None:
    assert {name: scale.of_cosine(1.0) for name, scale in SCALES.items()} == {
        "cosine": 1,
        "angular": 1,
        "one_minus_arccos": 1,
        "squared_distance": 0,
    }


def test_a_cosine_floor_is_not_touched() -> None:
    assert all(floor_from("cosine", value) == value for value in (0.84, 0.1, 1 / 3, 1.0, -1.0))


@pytest.mark.parametrize(
    ("scale", "value", "message"),
    [
        (
            "angular",
            1.2,
            r"1.2 is not on the scale angular \(1 - arccos/pi\), which runs from 0 to 1; the scales are cosine, a",
        ),
        ("angular", -0.1, "-0.1 is not on the scale angular"),
        ("one_minus_arccos", -2.2, r"runs from -2\.14159 to 1"),
        ("cosine", math.nan, "nan is not on the scale cosine"),
        ("squared_distance", 5, "5 is not on the scale squared_distance"),
        ("arccos", 0.5, "there is no scale 'arccos'; there are cosine, angular, one_minus_arccos, squared_distance"),
    ],
)
def test_values_off_the_scale_are_refused(scale: str, value: float, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        floor_from(scale, value)


# sentence-transformers directories

WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *["the", "film", "was", "good", "bad", "a"], "##s"]
MODULES = [{"path": "", "type": "sentence_transformers.models.Transformer"}]
POOL = {"path": "1_Pooling", "type": "sentence_transformers.models.Pooling"}
NORMALIZE = {"path": "2_Normalize", "type": "sentence_transformers.models.Normalize"}


def bert(folder: Path, pooling: dict[str, Any] | None, limit: int | None = None, extra: tuple[Any, ...] = ()) -> Path:
    """A random BERT of one small layer, laid out as sentence-transformers does."""
    torch = pytest.importorskip("torch")
    transformers = pytest.importorskip("transformers")
    folder.mkdir()
    vocabulary = {word: i for i, word in enumerate(WORDS)}
    transformers.BertTokenizer(vocab=vocabulary).save_pretrained(folder)
    torch.manual_seed(0)
    shape = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 8}
    config = transformers.BertConfig(vocab_size=len(WORDS), max_position_embeddings=32, initializer_range=0.5, **shape)
    transformers.BertModel(config).save_pretrained(folder)
    if pooling is not None:
        (folder / "1_Pooling").mkdir()
        (folder / "1_Pooling" / "config.json").write_text(json.dumps(pooling))
        (folder / "modules.json").write_text(json.dumps([*MODULES, POOL, *extra]))
    if limit:
        (folder / "sentence_bert_config.json").write_text(json.dumps({"max_seq_length": limit, "do_lower_case": False}))
    return folder


def states(folder: Path, pieces: str) -> NDArray[np.float32]:
    """The last states of these word pieces and the two markers."""
    import torch
    from transformers import AutoModel

    ids = [WORDS.index(piece) for piece in f"[CLS] {pieces} [SEP]".split()]
    with torch.no_grad():
        found: NDArray[np.float32] = (
            AutoModel.from_pretrained(folder)(input_ids=torch.tensor([ids])).last_hidden_state[0].numpy()
        )
    return found


def unit(vector: NDArray[np.float32]) -> NDArray[np.float32]:
    return np.asarray(vector / np.linalg.norm(vector), np.float32)


MEAN = {"word_embedding_dimension": 16, "pooling_mode_cls_token": False, "pooling_mode_mean_tokens": True}


@pytest.mark.parametrize(
    ("config", "name", "pool"),
    [
        (MEAN, "mean", lambda rows: rows.mean(0)),
        ({"pooling_mode_cls_token": True, "pooling_mode_mean_tokens": False}, "cls", lambda rows: rows[0]),
        ({"pooling_mode_max_tokens": True}, "max", lambda rows: rows.max(0)),
        ({"pooling_mode": "cls", "word_embedding_dimension": 16}, "cls", lambda rows: rows[0]),
        (None, "mean", lambda rows: rows.mean(0)),
    ],
)
def test_pooling_is_what_the_directory_says(tmp_path: Path, config: dict[str, Any] | None, name: str, pool: Any) -> None:
    from scrimp.spaces.given import sentence_encoder

    folder = bert(tmp_path / "tiny", config, extra=(NORMALIZE,))
    encoder = sentence_encoder(folder)
    assert encoder.name.startswith(f"sentences(tiny,{name},")
    (vector,) = encoder(["The films was good"])
    assert vector == pytest.approx(unit(pool(states(folder, "the film ##s was good"))), abs=1e-5)
    assert encoder.width == 16
    assert np.linalg.norm(encoder(["", "a " * 100]), axis=1) == pytest.approx(1)


@pytest.mark.parametrize(
    ("config", "pool"), [(MEAN, lambda rows: rows.sum(0)), ({"pooling_mode": "cls"}, lambda rows: rows[0] * len(rows))]
)
def test_long_texts_are_read_by_windows(tmp_path: Path, config: dict[str, Any], pool: Any) -> None:
    from scrimp.spaces.given import sentence_encoder

    folder = bert(tmp_path / "tiny", config, limit=6)
    (vector,) = sentence_encoder(folder)(["the film was good a bad film"])
    parts = pool(states(folder, "the film was good")) + pool(states(folder, "a bad film"))
    assert vector == pytest.approx(unit(parts), abs=1e-5)


def test_minilm_is_one_of_them() -> None:
    from scrimp.resources import fetch
    from scrimp.spaces import minilm
    from scrimp.spaces.given import sentence_encoder

    texts = ["A fine film.", "", "word " * 300]
    assert sentence_encoder(fetch("minilm"))(texts).tobytes() == minilm()(texts).tobytes()


def test_encoders_are_named_after_their_content(tmp_path: Path) -> None:
    from scrimp.spaces.given import sentence_encoder

    first = sentence_encoder(bert(tmp_path / "a", MEAN))
    assert sentence_encoder(str(tmp_path / "a")) is first
    other = sentence_encoder(bert(tmp_path / "b", MEAN, limit=8))
    assert first.name.split(",")[2] != other.name.split(",")[2]


@pytest.mark.parametrize(
    ("file", "content", "message"),
    [
        ("config.json", None, r"tiny has no config\.json; give the directory of a sentence-transformers model"),
        ("modules.json", "[", r"modules\.json: .*; the file must be JSON: copy the model again"),
        ("modules.json", json.dumps([{"type": "x.Dense"}]), r"has a module Dense; only Transformer, Pooling and Normalize"),
        ("1_Pooling/config.json", "{}", r"asks for None; one pooling of mean, cls, max is read"),
        ("1_Pooling/config.json", '{"pooling_mode": "lasttoken"}', r"asks for lasttoken; one pooling"),
        (
            "1_Pooling/config.json",
            '{"pooling_mode_mean_tokens": true, "pooling_mode_cls_token": true}',
            r"asks for mean, cls; one pooling",
        ),
        (
            "1_Pooling/config.json",
            '{"pooling_mode_mean_tokens": true, "pooling_mode_weightedmean_tokens": true}',
            r"asks for mean, pooling_mode_weightedmean_tokens; one pooling",
        ),
    ],
)
def test_directories_that_cannot_be_read(tmp_path: Path, file: str, content: str | None, message: str) -> None:
    from scrimp.spaces.given import sentence_encoder

    folder = bert(tmp_path / "tiny", MEAN)
    if content is None:
        (folder / file).unlink()
    else:
        (folder / file).write_text(content)
    with pytest.raises(ValueError, match=message):
        sentence_encoder(folder)


# TensorFlow Hub


def test_without_tensorflow_hub_the_error_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    from scrimp.spaces.given import tfhub

    monkeypatch.setitem(sys.modules, "tensorflow_hub", None)
    with pytest.raises(ModuleNotFoundError, match=r"pip install 'scrimp\[tfhub\]'.*it needs setuptools<81"):
        tfhub("https://tfhub.dev/google/universal-sentence-encoder/4")


@pytest.fixture
def tensorflow() -> Any:
    pytest.importorskip("tensorflow_hub", reason="the extra tfhub is not installed")
    return pytest.importorskip("tensorflow", reason="the extra tfhub is not installed")


def saved(tf: Any, folder: Path, form: str) -> Path:
    """Counts letters a, b and all characters: as a callable model, as one with a named output, or by signature alone."""

    class Letters(tf.Module):  # type: ignore[misc]
        @tf.function(input_signature=[tf.TensorSpec([None], tf.string)])  # type: ignore[untyped-decorator]
        def __call__(self, texts: Any) -> Any:
            counts = [tf.strings.length(texts) - tf.strings.length(tf.strings.regex_replace(texts, x, "")) for x in "ab"]
            found = tf.cast(tf.stack([*counts, tf.strings.length(texts)], axis=1), tf.float32)
            return {"default": found, "other": found * 0} if form == "dict" else found

    class Plain(tf.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.inner = Letters()

        @tf.function(input_signature=[tf.TensorSpec([None], tf.string)])  # type: ignore[untyped-decorator]
        def serve(self, texts: Any) -> Any:
            return {"default": self.inner(texts)}

    model = Plain() if form == "signature" else Letters()
    signatures = {"default": model.serve} if form == "signature" else None
    tf.saved_model.save(model, str(folder), signatures=signatures)
    return folder


@pytest.mark.parametrize("form", ["call", "dict", "signature"])
def test_a_saved_model_encodes(tensorflow: Any, tmp_path: Path, form: str) -> None:
    from scrimp.spaces.given import tfhub

    encoder = tfhub(saved(tensorflow, tmp_path / "letters", form))
    texts = ["aab", "b", "", "a\0b\ud800", "a" * 5000]
    found = encoder(texts)
    assert found.shape == (5, 3)
    assert found[0] == pytest.approx(unit(np.array([2, 1, 3], np.float32)))
    assert found[1] == pytest.approx(unit(np.array([0, 1, 1], np.float32)))
    assert np.linalg.norm(found, axis=1) == pytest.approx(1)
    assert encoder.name.startswith("tfhub(letters,")
    again = encoder(texts[::-1])[::-1]
    assert again.tobytes() == found.tobytes()


def test_a_directory_without_a_saved_model(tensorflow: Any, tmp_path: Path) -> None:
    from scrimp.spaces.given import tfhub

    with pytest.raises(
        ValueError, match=r"has no saved_model\.pb; give a handle \(https://\.\.\.\) or the directory of a SavedModel"
    ):
        tfhub(tmp_path)
