"""Wrappers: what they show, that names tell them apart, and victims from ONNX Runtime and Keras."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scrimp import Example, Misclassify, attack
from scrimp.attacks.account import NO_LABEL, Account, Cashier, Keep
from scrimp.attacks.types import Gives, Needs, Text, Victim
from scrimp.victims import (
    VictimError,
    cached,
    from_keras,
    from_onnx,
    labels_only,
    noisy,
    rate_limited,
    rounded_scores,
    top_k_scores,
    wrap,
)

from .toys import ToySpace, ToyVictim, World, scatter

EXAMPLE = Example("x", ("x",), 1)


def showing(*rows: Sequence[float] | int, gives: Gives = "scores", labels: tuple[str, ...] = ()) -> Victim:
    return wrap(lambda texts: list(rows), "toy@1", labels, gives)


def seen(victim: Victim, n: int = 1) -> list[Any]:
    return [row.tolist() for row in victim([(str(at),) for at in range(n)])]


def test_top_k() -> None:
    row = [0.1, 0.5, 0.25, 0.15]
    assert np.allclose(seen(top_k_scores(showing(row), 1)), [[0.5 / 3, 0.5, 0.5 / 3, 0.5 / 3]])
    assert np.allclose(seen(top_k_scores(showing(row), 2)), [[0.125, 0.5, 0.25, 0.125]])
    assert seen(top_k_scores(showing(row), 4)) == [row]
    assert np.allclose(seen(top_k_scores(showing([0.3, 0.7]), 1)), [[0.3, 0.7]])  # of two classes one hides nothing
    assert seen(top_k_scores(showing([0.25] * 4), 1)) == [[0.25] * 4]  # a hidden class never passes a shown one


@pytest.mark.parametrize("row", [[0.496, 0.504], [0.504, 0.496], [0.34, 0.31, 0.35], [0.333, 0.334, 0.333], [0.04, 0.96]])
def test_rounding_never_moves_the_label(row: list[float]) -> None:
    goal = Misclassify()
    for digits in (0, 1, 2, 3):
        (found,) = seen(rounded_scores(showing(row), digits))
        assert np.abs(np.array(found) - np.round(row, digits)).max() < 2e-9
        assert int(np.argmax(found)) == int(np.argmax(row))
        true = Example("x", ("x",), int(np.argmax(row)))
        verdict = goal([np.array(found)], [true], "scores")
        assert not verdict.fooled[0]
        assert verdict.margin[0] < 0


def test_noise() -> None:
    texts = [(f"{'abcdef'[at % 6]} {at}",) for at in range(4000)]
    bare = ToyVictim(5)
    honest = np.stack(bare(texts))
    lying = np.stack(noisy(bare, 0.1, seed=1)(texts))
    moved = (honest != lying).any(1)
    assert 0.08 < moved.mean() < 0.12
    assert np.allclose(np.sort(honest, 1), np.sort(lying, 1))
    assert (np.stack(noisy(bare, 0.1, seed=1)(texts[::-1]))[::-1] == lying).all()  # by the text alone
    assert ((np.stack(noisy(bare, 0.1, seed=2)(texts)) != lying).any(1)).mean() > 0.1
    assert (np.stack(noisy(bare, 0.0)(texts)) == honest).all()
    labelled = wrap(lambda given: [1] * len(given), "toy", ("a", "b", "c"), "label")
    found = np.array(seen(noisy(labelled, 0.5), 1000))
    assert set(found.tolist()) == {0, 1, 2}
    assert 0.45 < (found != 1).mean() < 0.55


def test_noise_leaves_a_missing_label_alone() -> None:
    class Mute(ToyVictim):
        def __call__(self, texts: Sequence[Text]) -> list[NDArray[Any]]:
            return [np.asarray(NO_LABEL) for _ in texts]

    mute = Mute(1, "label", labels=("a", "b"))
    assert set(seen(noisy(mute, 0.9), 50)) == {NO_LABEL}


def test_names_and_bad_parameters() -> None:
    base = showing([0.3, 0.7], labels=("a", "b"))
    made = [top_k_scores(base, 1), rounded_scores(base, 1), rounded_scores(base, 2), noisy(base, 0.1), noisy(base, 0.1, 1)]
    made += [labels_only(base), rounded_scores(top_k_scores(base, 1), 1), base]
    assert len({victim.name for victim in made}) == len(made)
    assert made[6].name == "toy@1 (top 1) (rounded 1)"
    assert noisy(base, 0.05, 3).name == "toy@1 (noisy 0.05, seed 3)"
    assert all(victim.labels == ("a", "b") for victim in made)
    bad: list[tuple[Any, str]] = [
        (lambda: top_k_scores(base, 0), "k is a whole number from 1; for the bare label use labels_only"),
        (lambda: top_k_scores(base, 3), "toy@1 has 2 classes only"),
        (lambda: top_k_scores(base, True), "k is a whole number"),
        (lambda: rounded_scores(base, -1), "digits is a whole number from 0 to 15"),
        (lambda: rounded_scores(base, 1.5), "digits is a whole number"),  # type: ignore[arg-type]
        (lambda: rounded_scores(labels_only(base), 1), "rounded_scores needs scores, but toy@1 (labels only) gives label"),
        (lambda: noisy(base, 1.0), "p is a probability from 0 up to, but not, 1"),
        (lambda: noisy(base, float("nan")), "p is a probability"),
        (lambda: noisy(base, 0.1, -1), "a seed is a whole number from 0"),
        (lambda: noisy(showing(1, gives="label"), 0.1), "wrap it with labels="),
        (lambda: noisy(showing(1, gives="value"), 0.1), "it needs a classifier"),
        (lambda: rate_limited(base, 0), "a rate is a number above 0"),
    ]
    for call, message in bad:
        with pytest.raises(VictimError) as caught:
            call()
        assert message in str(caught.value)


def test_wrapped_victims_are_lawful() -> None:
    """Width and order change nothing under any defence, and what is charged is what was sent."""
    examples = [Example(str(at), (text,), 0) for at, text in enumerate(("a b c d", "b c d e", "c d e f", "f e a b"))]
    examples = [Example(e.id, e.text, ToyVictim(4).label(e.text)) for e in examples]
    for defend in (lambda v: noisy(v, 0.3, 2), lambda v: rounded_scores(v, 1), lambda v: top_k_scores(v, 1), labels_only):
        outcomes = []
        for width in (1, 64):
            bare = ToyVictim(4)
            victim = defend(bare)
            recipe = "pwws" if victim.gives == "scores" else "restore-wordnet"
            records = attack(victim, examples, recipe, space=ToySpace(2), guide=None, judge=None, budget=50, width=width)
            outcomes.append([record.outcome() for record in records])
            assert len(bare.sent) == sum(record.charged - record.cached for record in records)
        assert outcomes[0] == outcomes[1]


def test_rate() -> None:
    now, slept = [0.0], []

    def sleep(seconds: float) -> None:
        slept.append(seconds)
        now[0] += seconds

    bare = ToyVictim(1)
    slow = rate_limited(bare, 2, sleep, lambda: now[0])
    texts = [(letter,) for letter in "abcde"]
    assert [row.tolist() for row in slow(texts)] == [row.tolist() for row in ToyVictim(1)(texts)]
    assert [len(batch) for batch in bare.log] == [2, 2, 1]
    assert slept == [1.0, 1.0]
    assert slow.name == bare.name
    slow(texts[:1])
    assert slept == [1.0, 1.0, 0.5]


def test_cache(tmp_path: Path) -> None:
    texts = [("a",), ("b",), ("a",), ("c",)]
    bare = ToyVictim(1)
    rows = [row.tolist() for row in cached(bare, tmp_path / "kept.sqlite")(texts)]
    assert rows == [row.tolist() for row in ToyVictim(1)(texts)]
    assert bare.sent == [("a",), ("b",), ("c",)]
    again = cached(bare, tmp_path / "kept.sqlite")
    assert [row.tolist() for row in again([*texts, ("d",)])[:4]] == rows
    assert bare.sent[3:] == [("d",)]
    assert again.name == bare.name
    other = ToyVictim(2, name="toy@2")
    cached(other, tmp_path / "kept.sqlite")([("a",)])
    assert other.sent == [("a",)]


class Streaming(ToyVictim):
    """Hands over one text at a time, and fails on f."""

    def stream(self, texts: Sequence[Text], keep: Keep) -> None:
        for place, text in enumerate(texts):
            self.log.append([text])
            keep({place: ValueError("cannot read f") if "f" in text[0] else self.scores(text)})


@pytest.mark.parametrize("around", ["labels", "rounded", "rate", "cache", "all"])
def test_parts_stay_parts(around: str, tmp_path: Path) -> None:
    bare = Streaming(3)
    wrappers: dict[str, Any] = {
        "labels": labels_only,
        "rounded": lambda victim: rounded_scores(victim, 3),
        "rate": lambda victim: rate_limited(victim, 2, sleep=lambda seconds: None),
        "cache": lambda victim: cached(victim, tmp_path / "kept.sqlite"),
    }
    victim: Any = bare
    for name in list(wrappers)[::-1] if around == "all" else [around]:
        victim = wrappers[name](victim)
    accounts = [Account(5) for _ in range(6)]
    for account, text in zip(accounts, ("a", "b", "f", "c", "a", "d"), strict=True):
        account.bill((text,))
    Cashier(victim).pay(accounts)
    assert [account.failure is None for account in accounts] == [True, True, False, True, True, True]
    assert str(accounts[2].failure) == "cannot read f"
    expected = bare.label(("d",)) if victim.gives == "label" else np.round(bare.scores(("d",)), 3)
    assert np.allclose(accounts[5].replies["d",], expected, atol=1e-3)
    assert sorted(bare.sent) == [(letter,) for letter in "abcdf"]
    assert wrappers["labels"](ToyVictim(3)).stream is None  # a victim without parts has none here


@pytest.mark.parametrize("needs", ["scores", "label"])
def test_streaming_changes_no_result(needs: Needs) -> None:
    class Backwards(ToyVictim):
        def stream(self, texts: Sequence[Text], keep: Keep) -> None:
            for place in reversed(range(len(texts))):
                keep({place: self([texts[place]])[0]})

    for seed in range(20):
        world, search = World(seed), scatter(needs)
        victim = Backwards(seed, world.victim(search).gives)
        streamed = world.run(search, victim, width=3, batch=4)
        assert {i: r.outcome() for i, r in streamed.items()} == {i: r.outcome() for i, r in world.run(search).items()}
        assert len(victim.sent) == len(set(victim.sent))


def test_cached_streams_repeats(tmp_path: Path) -> None:
    bare = Streaming(3)
    got: dict[int, Any] = {}
    victim: Any = cached(bare, tmp_path / "kept.sqlite")
    victim.stream([("a",), ("f",), ("a",), ("f",)], got.update)
    assert [type(got[place]).__name__ for place in range(4)] == ["ndarray", "ValueError", "ndarray", "ValueError"]
    assert len(bare.sent) == 2


# --- ONNX Runtime and Keras ------------------------------------------------------------------------------------------------


def message(*fields: tuple[int, int | bytes | str]) -> bytes:
    """A protocol buffer of small fields: enough to write an ONNX model by hand."""

    def number(value: int) -> bytes:
        return bytes([value]) if value < 128 else bytes([value & 127 | 128]) + number(value >> 7)

    made = b""
    for key, value in fields:
        if isinstance(value, int):
            made += number(key << 3) + number(value)
        else:
            raw = value.encode() if isinstance(value, str) else value
            made += number(key << 3 | 2) + number(len(raw)) + raw
    return made


def tiny_onnx(weights: NDArray[np.float32]) -> bytes:
    """counts [n, letters] -> logits [n, classes] and odds, their softmax."""

    def value(name: str, width: int) -> bytes:
        shape = message((1, message((2, "n"))), (1, message((1, width))))
        return message((1, name), (2, message((1, message((1, 1), (2, shape))))))

    tensor = message((1, weights.shape[0]), (1, weights.shape[1]), (2, 1), (8, "w"), (9, weights.tobytes()))
    nodes = [
        message((1, "counts"), (1, "w"), (2, "logits"), (4, "MatMul")),
        message((1, "logits"), (2, "odds"), (4, "Softmax")),
    ]
    outputs = [(12, value("odds", weights.shape[1])), (12, value("logits", weights.shape[1]))]
    graph = message(*[(1, node) for node in nodes], (2, "g"), (5, tensor), (11, value("counts", weights.shape[0])), *outputs)
    return message((1, 8), (7, graph), (8, message((1, ""), (2, 13))))


def counts(texts: list[str]) -> dict[str, NDArray[np.float32]]:
    return {"counts": np.array([[text.count(letter) for letter in "abc"] for text in texts], np.float32)}


def test_onnx(tmp_path: Path) -> None:
    import onnxruntime

    weights = np.array([[1, 0], [0, 2], [0.5, 0.5]], np.float32)
    file = tmp_path / "letters.onnx"
    file.write_bytes(tiny_onnx(weights))
    texts = [("aab",), ("bbc",), ("",)] * 200
    logits = np.array([[text.count(letter) for letter in "abc"] for (text,) in texts]) @ weights
    expected = np.exp(logits) / np.exp(logits).sum(1, keepdims=True)
    for victim in (
        from_onnx(file, counts, ("few", "many")),
        from_onnx(str(file), counts, logits=True, output="logits"),
        from_onnx(onnxruntime.InferenceSession(str(file)), counts, name="letters@1"),
    ):
        assert np.allclose(np.stack(victim(texts)), expected, atol=1e-6)
    assert np.allclose(np.stack(from_onnx(file, counts, batch=32)(texts)), expected, atol=1e-5)
    assert from_onnx(file, counts).name.startswith("onnx-letters@")
    assert from_onnx(file, counts, ("few", "many")).labels == ("few", "many")
    with pytest.raises(VictimError, match="has no output 'scores'; it has odds, logits"):
        from_onnx(file, counts, output="scores")
    with pytest.raises(VictimError, match=r"prepare made the inputs \['ids'\], but the ONNX model takes \['counts'\]"):
        from_onnx(file, lambda texts: {"ids": np.zeros((1, 3), np.float32)})([("a",)])
    with pytest.raises(VictimError, match=r"does not exist; give a \.onnx file"):
        from_onnx(tmp_path / "none.onnx", counts)


def test_onnx_scores_do_not_depend_on_company(tmp_path: Path) -> None:
    def many(texts: list[str]) -> dict[str, Any]:
        return {"counts": np.stack([np.random.default_rng(len(text)).random(300, np.float32) for text in texts])}

    file = tmp_path / "wide.onnx"
    file.write_bytes(tiny_onnx(np.random.default_rng(1).normal(size=(300, 2)).astype(np.float32)))
    texts = [("a" * n,) for n in range(50)]
    together = from_onnx(file, many, batch=50)(texts)
    victim = from_onnx(file, many)
    for text, row, other in zip(texts, victim(texts), together, strict=True):
        assert victim([text])[0].tobytes() == row.tobytes()
        assert other == pytest.approx(row, abs=1e-5)
        assert other.tolist() == np.round(other, 5).tolist()
    with pytest.raises(VictimError, match="batch=0: at least 1 text"):
        from_onnx(file, many, batch=0)


@pytest.mark.parametrize("units", [1, 2])
def test_keras(units: int) -> None:
    keras = pytest.importorskip("keras", reason="Keras and TensorFlow are not installed")
    pytest.importorskip("tensorflow", reason="TensorFlow is not installed")
    reading = keras.layers.TextVectorization(vocabulary=["good", "bad"], output_mode="count")
    softened = "sigmoid" if units == 1 else "softmax"
    start = np.array([[0], [2], [-2]] if units == 1 else [[0, 0], [-1, 1], [1, -1]], np.float32)
    dense = keras.layers.Dense(units, activation=softened, use_bias=False)
    model = keras.Sequential([keras.Input((1,), dtype="string"), reading, dense], name="tiny")
    dense.set_weights([start])
    victim = from_keras(model, ("no", "yes"))
    rows = np.stack(victim([("good good",), ("bad",), ("neither",)]))
    assert victim.name == "keras-tiny"
    assert rows.argmax(1).tolist() == [1, 0, 0]
    assert rows[1].tobytes() == victim([("bad",)])[0].tobytes()
    assert np.allclose(rows[1], [1 / (1 + np.exp(-2)), 1 / (1 + np.exp(2))], atol=1e-5)
