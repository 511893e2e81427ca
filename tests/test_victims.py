"""Victims: replies are checked, scores do not depend on the batch, and every error says what to do."""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scrimp.attacks.types import Gives, Victim
from scrimp.victims import (
    HELD_OUT,
    VICTIMS,
    VictimError,
    WordCNN,
    from_sklearn,
    from_spacy,
    imdb_classifier,
    labels_only,
    load_victim,
    load_wordcnn,
    softmax,
    wrap,
)
from scrimp.victims.wordcnn import DATA, EMBEDDED, tokenise

ROWS = [line.split("\t", 1) for line in HELD_OUT.read_text("utf-8").splitlines()]
ODD = ["", "a", "good film", "😀👍🏽", " \t\n", "word " * 10_000, "naïve façade — it’s", "x" * 5_000, "İstanbul ΣΑΣ", "_ __"]
NAMES = ("negative", "positive")


@pytest.fixture(scope="module")
def cnn() -> WordCNN:
    return load_wordcnn()


@pytest.fixture(scope="module")
def imdb() -> Victim:
    return imdb_classifier()


def replying(reply: Any, labels: tuple[str, ...] = (), gives: Gives | None = None) -> Victim:
    return wrap(lambda texts: reply, "toy", labels, gives)


# the embedded word CNN


def test_wordcnn_is_right_on_the_shipped_rows(cnn: WordCNN) -> None:
    scores = np.stack(cnn([(text,) for _, text in ROWS]))
    assert len(ROWS) == 200
    assert (scores.argmax(1) == [int(label) for label, _ in ROWS]).mean() >= 0.72
    assert scores.dtype == np.float64
    assert np.abs(scores.sum(1) - 1).max() < 1e-8


def test_wordcnn_scores_do_not_depend_on_the_batch(cnn: WordCNN) -> None:
    texts = [(text,) for text in ODD + [text for _, text in ROWS[:60]]]
    together = cnn(texts)
    backwards = load_wordcnn()(texts[::-1])[::-1]  # a fresh table, filled in another order
    fresh = load_wordcnn()
    for text, row, other in zip(texts, together, backwards, strict=True):
        (alone,) = fresh([text])
        assert alone.tobytes() == row.tobytes() == other.tobytes()
    assert cnn([]) == []


def test_wordcnn_agrees_with_the_network_that_was_trained(cnn: WordCNN) -> None:
    import torch
    from safetensors.numpy import load_file
    from scrimp.victims.learning import pad
    from scrimp.victims.train import WINDOWS, make_network, to_tensors
    from scrimp.victims.wordcnn import Ids

    saved = load_file(EMBEDDED)
    network = make_network(torch.from_numpy(saved["vectors"].astype(np.float32)))
    bias = np.split(saved["bias"], len(WINDOWS))
    weights = {"vectors.weight": saved["vectors"], "linear.weight": saved["linear"], "linear.bias": saved["offset"]}
    for at, size in enumerate(WINDOWS):
        weights[f"windows.{at}.weight"] = saved[f"filters.{size}"].transpose(2, 1, 0)
        weights[f"windows.{at}.bias"] = bias[at]
    assert all((tensor == saved[key]).all() for key, tensor in to_tensors(weights).items())
    network.load_state_dict({key: torch.from_numpy(np.array(value, np.float32)) for key, value in weights.items()})
    texts = ["", "a dull film", *[text for _, text in ROWS]]
    ids = Ids(cnn.words)
    with torch.no_grad():
        expected = network.eval()(*pad([ids.of(text) for text in texts], max(WINDOWS))).softmax(1).numpy()
    assert np.abs(np.stack(cnn([(text,) for text in texts])) - expected).max() < 1e-4


def test_words_are_cut_as_glove_cuts_them() -> None:
    said = tokenise("It’s WELL-made, isn't it?  'Tis can't <br />")
    assert said == [
        "it",
        "'s",
        "well",
        "-",
        "made",
        ",",
        "is",
        "n't",
        "it",
        "?",
        "'",
        "tis",
        "ca",
        "n't",
        "<",
        "br",
        "/",
        ">",
    ]


def test_wordcnn_refuses_two_fields(cnn: WordCNN) -> None:
    with pytest.raises(VictimError, match=r"wordcnn-mr@\w{8} reads texts of one field, got 2 fields"):
        cnn([("one", "two")])


def test_the_card_describes_the_shipped_weights(cnn: WordCNN) -> None:
    card = json.loads(EMBEDDED.with_suffix(".card.json").read_text("utf-8"))
    assert card["name"] == cnn.name
    assert card["accuracy"]["held_out"] >= 0.76
    assert sum(file.stat().st_size for file in DATA.iterdir()) < 3_000_000


@pytest.fixture
def copied(tmp_path: Path) -> Path:
    for suffix in (".safetensors", ".json"):
        shutil.copy(EMBEDDED.with_suffix(suffix), tmp_path / f"copy{suffix}")
    return tmp_path / "copy.safetensors"


def test_wordcnn_files_that_cannot_be_used(copied: Path) -> None:
    whole, config = copied.read_bytes(), json.loads(copied.with_suffix(".json").read_text("utf-8"))
    for damaged in (whole[:1000], b"", b"\x80\x04." + whole[3:]):
        copied.write_bytes(damaged)
        with pytest.raises(VictimError, match=r"copy\.safetensors or copy\.json is damaged .*; train it again"):
            load_wordcnn(copied)
    copied.write_bytes(whole)
    copied.with_suffix(".json").write_text(json.dumps(config | {"words": config["words"][:-1]}), "utf-8")
    with pytest.raises(VictimError, match=r"vectors is float16\[22002, 50\], but copy.json asks for float16\[22001, 50\]"):
        load_wordcnn(copied)
    copied.with_suffix(".json").write_text("{}", "utf-8")
    with pytest.raises(VictimError, match="is damaged"):
        load_wordcnn(copied)
    copied.with_suffix(".json").unlink()
    with pytest.raises(VictimError, match=r"copy\.json is missing; write it with: python -m scrimp\.victims\.train --out"):
        load_wordcnn(copied)


def test_wordcnn_revision_follows_the_weights(copied: Path, cnn: WordCNN) -> None:
    assert load_wordcnn(copied).name == cnn.name
    changed = bytearray(copied.read_bytes())
    changed[-400] ^= 1
    copied.write_bytes(bytes(changed))
    assert load_wordcnn(copied).name != cnn.name


def test_wordcnn_refuses_weights_too_large_for_exact_sums(cnn: WordCNN) -> None:
    vectors, filters = np.full((2, 4), 10, np.float16), [np.full((3, 4, 2), 2, np.float16)]
    with pytest.raises(VictimError, match=r"big: .* is 80, but must be below 32 .*; train with more weight decay"):
        WordCNN("big", [], vectors, filters, np.zeros(2, "f4"), np.zeros((2, 2), "f4"), np.zeros(2, "f4"), NAMES)


# any callable


def test_replies_of_many_kinds_become_rows() -> None:
    import torch

    pair = [("one",), ("two",)]
    rows = [[0.25, 0.75], [1.0, 0.0]]
    tensor = torch.tensor(rows, requires_grad=True)
    for reply in (rows, np.array(rows), np.array(rows, np.float16), tensor, list(tensor), tensor.bfloat16()):
        got = replying(reply)(pair)
        assert [row.tolist() for row in got] == rows
        assert got[0].dtype == np.float64
    for reply in ([1, 0], np.array([1, 0]), torch.tensor([1, 0]), ["positive", "negative"], [True, False]):
        labels = replying(reply, NAMES, "label")(pair)
        assert [int(label) for label in labels] == [1, 0]
        assert all(label.shape == () and label.dtype == np.int64 for label in labels)
    for reply in ([0.5, -3], np.array([[0.5], [-3]]), torch.tensor([0.5, -3])):
        values = replying(reply, (), "value")(pair)
        assert [float(value) for value in values] == [0.5, -3]
        assert all(value.shape == () and value.dtype == np.float64 for value in values)
    assert replying(None)([]) == []


def test_hugging_face_replies() -> None:
    best = [{"label": "positive", "score": 0.9}]
    both = [[{"label": "positive", "score": 0.9}, {"label": "negative", "score": 0.1}]]
    assert replying(both, NAMES)([("x",)])[0].tolist() == [0.1, 0.9]
    for reply in (best, [best], both):
        assert int(replying(reply, NAMES, "label")([("x",)])[0]) == 1
    with pytest.raises(VictimError, match=r"gave no score for \['negative'\]; ask the pipeline for all .* top_k=None"):
        replying([best], NAMES)([("x",)])
    with pytest.raises(VictimError, match=r"names its scores \['negative', 'positive'\], but the order .*; pass labels="):
        replying(both)([("x",)])


def test_fields() -> None:
    seen: list[Any] = []

    def watch(texts: list[Any]) -> list[list[float]]:
        seen.append(texts)
        return [[0.5, 0.5]] * len(texts)

    wrap(watch, "one")([("a",), ("b",)])
    wrap(watch, "two", fields=2)([("a", "b")])
    assert seen == [["a", "b"], [("a", "b")]]


LONG = "x" * 70
ERRORS: list[tuple[Any, tuple[str, ...], Gives | None, str]] = [
    ([[0.5, 0.5]] * 3, (), None, "toy returned 3 rows for 2 texts; it must return one row per text, in order"),
    (0.5, (), None, "toy replied with 0.5 to 2 text(s); a victim gets a list of texts and returns a list or an array"),
    ([[0.5, 0.5], [float("nan"), 1]], (), None, f"toy returned [nan, 1.0] for '{'x' * 57}...'; every number must be fin"),
    ([0.5, float("inf")], (), "value", f"toy returned inf for '{'x' * 57}...'; every number must be finite: look for"),
    ([[0.5, 0.5], [1.0]], (), None, "toy returned rows of different sizes [1, 2]; every text needs the same number of"),
    ([1, 0], (), None, 'if they are classes pass gives="label" (command line: --gives label), if they are values pass'),
    ([[[1.0]], [[1.0]]], (), None, "toy returned an array of shape (2, 1, 1); scores have two dimensions, texts x classes"),
    ([[0.5, 0.5]] * 2, ("a", "b", "c"), None, "toy returned 2 scores per text for 3 labels ['a', 'b', 'c']; name every"),
    ([[1.0]] * 2, (), None, "toy returned one score per text; a classifier has at least two classes"),
    ([[0.5, 0.5], [2, 3]], (), None, "must sum to one: pass logits through scrimp.victims.softmax(...)"),
    ([[0.5, 0.5], [-0.5, 1.5]], (), None, f"toy returned [-0.5, 1.5] for '{'x' * 57}...'; scores must not be negative"),
    (["a", "b"], (), None, 'where scores are expected; if it returns class names, pass gives="label" and labels='),
    (["a", "b"], (), "label", "toy replied with the label 'a', but its labels are not known; pass labels=, in the order"),
    (["positiv", "x"], NAMES, "label", "'positiv', which is not one of ['negative', 'positive']; did you mean 'positive'?"),
    ([1, 2], NAMES, "label", f"the label 2 for '{'x' * 57}...'; labels are whole numbers from 0 to 1 (negative, positive)"),
    ([0, -1], (), "label", "labels are whole numbers from 0 to the last class"),
    ([0, 0.5], (), "label", "toy returned the label 0.5 for"),
    ([[0.5, 0.5]] * 2, (), "label", 'gives one label per text; if these are scores, pass gives="scores"'),
    ([[0.5, 0.5]] * 2, (), "value", 'gives="value" is one number per text; if these are scores, pass gives="scores"'),
    ([None, None], (), "value", "every number must be finite"),
]


@pytest.mark.parametrize(("reply", "labels", "gives", "message"), ERRORS, ids=[error[3][:30] for error in ERRORS])
def test_bad_replies(reply: Any, labels: tuple[str, ...], gives: Gives | None, message: str) -> None:
    with pytest.raises(VictimError) as caught:
        replying(reply, labels, gives)([("short",), (LONG,)])
    assert message in str(caught.value)
    assert str(caught.value).startswith("toy ")


def test_bad_arguments() -> None:
    with pytest.raises(VictimError, match=r'gives=\'both\' for toy; it must be "scores", "label" or "value"'):
        wrap(len, "toy", gives="both")  # type: ignore[arg-type]
    with pytest.raises(VictimError, match=r"toy reads texts of 1 field\(s\), got 2: 'a \| b'; pass fields=2"):
        replying([])([("a", "b")])


def test_rounded_scores_are_accepted() -> None:
    assert replying([[0.3333, 0.3333, 0.3333]])([("x",)])[0].tolist() == [0.3333] * 3


def test_softmax() -> None:
    logits = np.array([[1000.0, 1000.0], [0.0, np.log(3)]])
    assert np.allclose(np.stack(wrap(softmax(lambda texts: logits), "toy")([("a",), ("b",)])), [[0.5, 0.5], [0.25, 0.75]])
    with pytest.raises(VictimError, match=r"texts x classes, got shape \(2,\)"):
        softmax(lambda texts: [1, 2])(["a", "b"])


def test_labels_only(cnn: WordCNN) -> None:
    hidden = labels_only(cnn)
    assert (hidden.name, hidden.gives, hidden.labels) == (f"{cnn.name} (labels only)", "label", NAMES)
    texts = [(text,) for _, text in ROWS[:20]]
    labels = hidden(texts)
    assert all(label.shape == () and label.dtype == np.int64 for label in labels)
    assert [int(label) for label in labels] == [int(row.argmax()) for row in cnn(texts)]
    assert hidden([]) == []
    assert labels_only(hidden) is hidden
    with pytest.raises(VictimError, match="toy gives values, which have no label"):
        labels_only(replying([], gives="value"))


# frameworks


def test_sklearn() -> None:
    from sklearn.feature_extraction.text import CountVectorizer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.svm import LinearSVC

    texts, gold = ["good fine", "bad poor", "fine good", "poor bad"], ["yes", "no", "yes", "no"]
    scored = from_sklearn(make_pipeline(CountVectorizer(), LogisticRegression()).fit(texts, gold))
    assert (scored.name, scored.gives, scored.labels) == ("sklearn-LogisticRegression", "scores", ("no", "yes"))
    assert scored([("good",)])[0].argmax() == 1
    pipeline = make_pipeline(CountVectorizer(), LinearSVC()).fit(texts, [7, 3, 7, 3])
    labelled = from_sklearn(pipeline, labels=NAMES, name="svc@1")
    assert (labelled.name, labelled.gives, labelled.labels) == ("svc@1", "label", NAMES)
    assert [int(label) for label in labelled([("good",), ("bad",)])] == [1, 0]
    with pytest.raises(VictimError, match=r"1 labels \['a'\] for 2 classes \[.*3.*7.*\]; name every class"):
        from_sklearn(pipeline, labels=["a"])
    with pytest.raises(VictimError, match="Pipeline has no classes_; call fit first"):
        from_sklearn(make_pipeline(CountVectorizer(), LogisticRegression()))


def test_spacy(tmp_path: Path) -> None:
    import spacy
    from spacy.training import Example

    nlp = spacy.blank("en")
    bag = {"@architectures": "spacy.TextCatBOW.v3", "exclusive_classes": True, "ngram_size": 1, "no_output_layer": False}
    nlp.add_pipe("textcat", config={"model": bag | {"length": 4096}})
    rows = [("a good fine film", "pos"), ("a bad poor film", "neg")]
    examples = [
        Example.from_dict(nlp.make_doc(text), {"cats": {"pos": float(gold == "pos"), "neg": float(gold == "neg")}})
        for text, gold in rows
    ]
    optimiser = nlp.initialize(lambda: examples)
    for _ in range(30):
        nlp.update(examples, sgd=optimiser)
    nlp.to_disk(tmp_path / "saved")
    for source in (nlp, tmp_path / "saved", str(tmp_path / "saved")):
        victim = from_spacy(source)
        assert (victim.name, victim.gives, victim.labels) == ("spacy-pipeline@0.0.0", "scores", ("neg", "pos"))
        assert [int(row.argmax()) for row in victim([("good",), ("bad",)])] == [1, 0]
    turned = from_spacy(nlp, labels=("pos", "neg"))
    assert turned([("good",)])[0].tolist() == from_spacy(nlp)([("good",)])[0].tolist()[::-1]
    with pytest.raises(VictimError, match=r"of \['neg', 'pos'\]; 'positive' is not one of them, did you mean 'pos'\?"):
        from_spacy(nlp, labels=("neg", "positive"))
    with pytest.raises(VictimError, match=r"has \[\], but no \"textcat\"; give a pipeline with a trained"):
        from_spacy(spacy.blank("en"))
    several = spacy.blank("en")
    several.add_pipe("textcat_multilabel")
    with pytest.raises(VictimError, match="textcat_multilabel scores each label on its own"):
        from_spacy(several)
    with pytest.raises(VictimError, match=r"is no spaCy pipeline: it has no config\.cfg"):
        from_spacy(tmp_path)


def test_imdb_classifier(imdb: Victim) -> None:
    assert (imdb.name, imdb.gives, imdb.labels) == ("imdb-spacy@2.5.0", "scores", NAMES)
    scores = imdb([("A wonderful, moving and perfect film.",), ("The worst, most boring waste of time.",), ("",)])
    assert [int(row.argmax()) for row in scores[:2]] == [1, 0]
    texts = [(text,) for text in [*ODD, *[text for _, text in ROWS[:60]]]]
    for text, row in zip(texts, imdb(texts), strict=True):
        assert imdb([text])[0].tobytes() == row.tobytes()


def test_imdb_classifier_loads_without_a_warning() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        imdb_classifier()


# by name


@pytest.mark.parametrize("name", VICTIMS)
def test_registered_victims(name: str) -> None:
    victim = load_victim(name)
    assert victim.name.startswith(f"{name}@")
    assert VICTIMS[name][1]
    assert load_victim(name, gives="label").name == f"{victim.name} (labels only)"
    assert load_victim(name, labels=victim.labels, gives="scores").labels == victim.labels
    with pytest.raises(VictimError, match=r"but \['a', 'b'\] were given; leave labels out"):
        load_victim(name, labels=("a", "b"))
    with pytest.raises(VictimError, match='gives "scores", but "value" was asked for'):
        load_victim(name, gives="value")


SOURCE = """
from scrimp.victims import wrap
def scores(texts):
    return [[0.25, 0.75]] * len(texts)
def names(texts):
    return ["positive"] * len(texts)
ready = wrap(scores, "mine@7", ("no", "yes"))
number = 3
class Model: ...
"""


def test_victims_from_files_and_modules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "my_model.py"
    file.write_text(SOURCE)
    monkeypatch.syspath_prepend(str(tmp_path))
    revision = hashlib.sha256(SOURCE.encode()).hexdigest()[:8]
    for where in (str(file), "my_model"):
        victim = load_victim(f"{where}:scores", labels=("no", "yes"))
        assert (victim.name, victim.gives, victim.labels) == (f"my_model:scores@{revision}", "scores", ("no", "yes"))
        assert victim([("x",)])[0].tolist() == [0.25, 0.75]
        assert int(load_victim(f"{where}:names", labels=NAMES, gives="label")([("x",)])[0]) == 1
        assert load_victim(f"{where}:ready").name == "mine@7"
        with pytest.raises(VictimError, match=r"has no 'score'; did you mean scores\?"):
            load_victim(f"{where}:score")
        with pytest.raises(VictimError, match="is 3, not a function"):
            load_victim(f"{where}:number")
        with pytest.raises(VictimError, match="is a class; name an instance of it"):
            load_victim(f"{where}:Model")
    file.write_text(SOURCE + "# changed\n")
    assert load_victim(f"{file}:scores").name != f"my_model:scores@{revision}"


def test_a_file_that_fails_says_so_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "broken_model.py").write_text("import no_such_package_anywhere\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    for where in (str(tmp_path / "broken_model.py"), "broken_model"):
        with pytest.raises(ModuleNotFoundError, match="no_such_package_anywhere"):
            load_victim(f"{where}:f")


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("wordcnn", "no victim is called 'wordcnn'; did you mean wordcnn-mr? A victim of your own is path/to/file.py:fun"),
        ("zzz", "no victim is called 'zzz'; known: wordcnn-mr, imdb-spacy. A victim of your own is path/to/file.py:functi"),
        ("model.py", "no victim is called 'model.py'"),
        ("model.py:", "no victim is called 'model.py:'"),
        ("nowhere/model.py:f", "model.py does not exist; a victim of your own is path/to/file.py:function or module:func"),
        ("no_such_module_x:f", "no module 'no_such_module_x' (looked in sys.path)"),
    ],
)
def test_victims_that_do_not_exist(spec: str, message: str) -> None:
    with pytest.raises(ValueError, match="victim") as caught:
        load_victim(spec)
    assert message in str(caught.value)


def test_importing_victims_is_cheap() -> None:
    heavy = "torch", "spacy", "sklearn", "safetensors", "transformers"
    code = f"import sys, scrimp.victims; print([name for name in {heavy} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


# training


def test_training_parts(tmp_path: Path) -> None:
    from scrimp.victims.train import choose_words, read_rows, split, unsnap

    table = tmp_path / "rows.csv"
    sentences = [f"film {number} is fine" for number in range(2000)]
    lines = [f"{sentence},{at % 2},rotten_tomatoes" for at, sentence in enumerate(sentences)]
    extra = ["Film 3 is  fine,1,rotten_tomatoes", "film 4 is fine,1,rotten_tomatoes", "long review,1,imdb"]
    table.write_text("\n".join(["text,label,source", *lines, *extra]))
    rows = read_rows(tmp_path)
    assert rows == read_rows(table)
    assert [text for _, text in rows] == [text for text in sentences if text != "film 4 is fine"]  # under both labels
    parts = split(rows)
    assert [len(part) for part in parts] == [299, 700, 1000]
    assert len({text for part in parts for _, text in part}) == 1999
    assert choose_words([(1, "aa bb bb cc")], ["the", "cc", "a-b", "of", "in"], 4) == ["bb", "cc", "the", "of"]
    assert unsnap(bytes([11, 2 << 2]) + b"abc" + bytes([(4 << 2) | 1, 3])) == b"abcabcabcab"
    with pytest.raises(ValueError, match="Snappy block of 4 bytes came out as 3"):
        unsnap(bytes([4, 2 << 2]) + b"abc")
