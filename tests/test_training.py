"""Training: directories that load, cards that tell, scores that do not depend on the batch, errors that say what to do."""

from __future__ import annotations

import json
import lzma
import pickle
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scrimp.attacks.types import Example, Text
from scrimp.benchmarks.data import DataError, read_examples
from scrimp.cli import main
from scrimp.victims import VictimError, WordCNN, load, load_victim
from scrimp.victims.leakage import leakage, told
from scrimp.victims.learning import Course, WordRows, batches, weights_of
from scrimp.victims.saved import NETWORKS, WordModel
from scrimp.victims.training import COURSES, Plan, divide, exact, train

GOOD, BAD = ("fine", "great", "lovely", "superb"), ("dull", "awful", "boring", "poor")
WORDS = (*GOOD, *BAD, "the", "a", "film", "plot", "is", "and", "was", "it", "very", "cast", ".", "not")
SINGLE, PAIRS = ("wordcnn", "wordlstm"), ("esim", "infersent", "decomposable")
QUICK = Course(epochs=8, rate=5e-3, vector_rate=5e-3, batch=8, hide=0.0, smooth=0.0, average=0.0, dropout=0.0, patience=12)
NAMES = ("negative", "positive")
N = 240


@pytest.fixture(autouse=True)
def small_glove(monkeypatch: pytest.MonkeyPatch) -> None:
    vectors = np.random.default_rng(0).normal(0, 1, (len(WORDS), 8)).astype(np.float32)
    monkeypatch.setattr("scrimp.victims.training.fetch", lambda name: Path(name))
    monkeypatch.setattr("scrimp.victims.training.read_glove", lambda folder: (list(WORDS), vectors))


def rows(n: int = 64, fields: int = 1, seed: int = 0) -> list[Example]:
    """A good or a bad word among others; of pairs, the label is whether both halves are of a kind."""
    rng = np.random.default_rng(seed)
    found = []
    for number in range(n):
        kinds = [int(rng.integers(2)) for _ in range(fields)]
        text = []
        for kind in kinds:
            words = list(rng.choice(WORDS[8:], int(rng.integers(1, 9))))
            words.insert(int(rng.integers(len(words) + 1)), str(rng.choice((BAD, GOOD)[kind])))
            text.append(" ".join(words))
        found.append(Example(str(number), tuple(text), kinds[0] if fields == 1 else int(kinds[0] == kinds[1])))
    return found


def trained(model: str, out: Path) -> dict[str, Any]:
    fields = 1 if model in SINGLE else 2
    units = None if model == "wordcnn" else 8
    made = Plan(model, NAMES, words=40, units=units, threads=1)
    return train(rows(N, fields), out, made, QUICK, rows(30, fields, 1))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A word LSTM to load, break and attack."""
    with pytest.MonkeyPatch.context() as patch:
        vectors = np.random.default_rng(0).normal(0, 1, (len(WORDS), 8)).astype(np.float32)
        patch.setattr("scrimp.victims.training.fetch", lambda name: Path(name))
        patch.setattr("scrimp.victims.training.read_glove", lambda folder: (list(WORDS), vectors))
        out = tmp_path_factory.mktemp("models") / "small"
        trained("wordlstm", out)
    return out


@pytest.mark.parametrize("model", [*SINGLE, *PAIRS])
def test_a_trained_directory_is_a_victim(model: str, tmp_path: Path) -> None:
    card = trained(model, tmp_path / "model")
    if model in SINGLE:  # eight words decide; pairs ask for more than a few seconds teach
        assert card["accuracy"]["test"] >= 0.8
    victim = load(tmp_path / "model")
    assert victim.name == card["name"]
    assert victim.labels == NAMES
    assert card == json.loads((tmp_path / "model" / "card.json").read_text())
    assert card["rows"]["train"] + card["rows"]["validation"] + card["rows"]["left_out_as_repeated"] == N
    fields = 1 if model in SINGLE else 2
    texts: list[Text] = [example.text for example in rows(40, fields, 2)]
    texts += [("",) * fields, ("zzz 😀",) * fields, ("word " * 400,) * fields, texts[0]]
    together = victim(texts)
    for text, row in zip(texts, together, strict=True):
        assert victim([text])[0].tobytes() == row.tobytes()
        assert abs(row.sum() - 1) < 1e-5
    backwards = load(tmp_path / "model")(texts[::-1])[::-1]
    assert [row.tobytes() for row in backwards] == [row.tobytes() for row in together]
    assert list(victim([])) == []
    with pytest.raises(VictimError, match="reads texts of"):
        victim([("a", "b", "c")])


@pytest.mark.parametrize("model", NETWORKS)
def test_padding_changes_nothing(model: str) -> None:
    import torch

    torch.manual_seed(0)
    make, fields = NETWORKS[model]
    network = make(torch.randn(20, 6), 3, units=5).eval()
    rng = np.random.default_rng(0)
    ids = [tuple(rng.integers(1, 20, int(rng.integers(1, 9))).tolist() for _ in range(fields)) for _ in range(12)]
    table = WordRows(ids)
    with torch.no_grad():
        together = network(*table(range(12)))
        alone = torch.cat([network(*table([at])) for at in range(12)])
    assert torch.allclose(together, alone, atol=1e-5)
    assert float(together.std(0).min()) > 1e-3  # it does look at the words


def test_the_seed_decides(tmp_path: Path) -> None:
    plan = Plan("wordcnn", NAMES, words=40, threads=1)
    names = [
        train(rows(), tmp_path / str(at) / "m", plan, replace(QUICK, epochs=1, seed=seed))["name"]
        for at, seed in enumerate((1, 1, 2))
    ]
    assert names[0] == names[1] != names[2]


def test_early_stopping(tmp_path: Path) -> None:
    mixed = [
        replace(example, target=int(np.random.default_rng(number).integers(2))) for number, example in enumerate(rows())
    ]
    card = train(mixed, tmp_path / "m", Plan("wordcnn", words=40, threads=1), replace(QUICK, epochs=50, patience=2))
    losses = [epoch["loss"] for epoch in card["epochs"]]
    assert len(losses) < 50
    assert len(losses) - 1 - int(np.argmin(losses)) == 2


def test_frozen_vectors_stay(tmp_path: Path) -> None:
    from safetensors.numpy import load_file

    plan = Plan("wordlstm", words=40, units=4, threads=1)
    kept = []
    for rate in (0.0, 0.01):
        train(rows(), tmp_path / f"{rate}", plan, replace(QUICK, epochs=2, vector_rate=rate))
        config = json.loads((tmp_path / f"{rate}" / "victim.json").read_text())
        vectors = load_file(tmp_path / f"{rate}" / "model.safetensors")["vectors.weight"]
        kept.append(vectors[2 + config["words"].index("film")])
    first = np.random.default_rng(0).normal(0, 1, (len(WORDS), 8)).astype(np.float16)[WORDS.index("film")]
    assert (kept[0] == first).all()
    assert (kept[1] != first).any()


def test_filters_too_strong_for_exact_sums_are_scaled(tmp_path: Path) -> None:
    trained("wordcnn", tmp_path / "m")
    from safetensors.numpy import load_file

    tensors = load_file(tmp_path / "m" / "model.safetensors")
    config = json.loads((tmp_path / "m" / "victim.json").read_text())
    names = ["vectors", *(f"filters.{size}" for size in config["windows"]), "bias"]
    strong = {name: tensor * np.asarray(32 if name in names[1:] else 1, tensor.dtype) for name, tensor in tensors.items()}
    strong["linear"] = tensors["linear"] / 32

    def victim(some: dict[str, Any]) -> WordCNN:
        parts = some["vectors"], [some[name] for name in names[1:-1]], some["bias"], some["linear"], some["offset"]
        return WordCNN("toy", config["words"], *parts, NAMES)

    with pytest.raises(VictimError, match="below 32"):
        victim(strong)
    texts = [example.text for example in rows(20)]
    assert np.abs(np.stack(victim(exact(strong))(texts)) - np.stack(victim(tensors)(texts))).max() < 1e-6


def test_balance_makes_up_for_a_rare_class(tmp_path: Path) -> None:
    some = rows(N)
    rare = [example for example in some if example.target] + [example for example in some if not example.target][:12]
    blurred = [replace(example, text=(example.text[0].split()[0] + f" x{at}",)) for at, example in enumerate(rare)]
    shares = []
    for balance in (False, True):
        how = replace(QUICK, epochs=3, balance=balance)
        train(blurred, tmp_path / f"{balance}", Plan("wordcnn", words=40, threads=1), how)
        shares.append(float(np.stack(load(tmp_path / f"{balance}")([("",)] * 2))[0, 0]))
    assert shares[0] + 0.1 < shares[1]
    assert weights_of(np.array([0, 0, 0, 2]), 3).tolist() == pytest.approx([2 / 3, 0, 2])


def test_batches_hold_every_row_once() -> None:
    table = WordRows([([1] * size,) for size in np.random.default_rng(0).integers(1, 30, 103).tolist()])
    for some in (table, replace(table, alike=False)):
        found = list(batches(some, 10, np.random.default_rng(1)))
        assert sorted(np.concatenate(found).tolist()) == list(range(103))
        assert {len(batch) for batch in found} <= {10, 11}


def test_repeats_are_left_out_before_the_split() -> None:
    some = [Example(str(at), (f"film {at}",), at % 2) for at in range(40)]
    twice = [*some, Example("x", ("FILM  3",), 1), Example("y", ("film 4",), 1)]
    parts = divide(twice, Plan("wordcnn"), 1)
    texts = [example.text[0] for example in (*parts.train, *parts.valid)]
    assert sorted(texts) == sorted(f"film {at}" for at in range(40) if at != 4)  # 4 stands under both labels
    assert (len(parts.valid), parts.repeated) == (4, 3)
    assert len(divide(twice, Plan("wordcnn", rows=20), 1).train) == 18


def test_leakage() -> None:
    texts = [(" ".join(f"w{at}x{word}" for word in range(20)),) for at in range(50)]
    near = (texts[1][0] + " more",)
    found = leakage(texts, [(texts[0][0].upper(),), near, ("something else entirely",)])
    assert (found["same"], found["near"], found["test"], found["train"]) == (1, 1, 3, 50)
    assert told(found).startswith("1 of 3 test texts are among the 50 training texts word for word, 1 more nearly")
    assert leakage([("a b", "c d")], [("c d", "a b")])["same"] == 0


# the command


def table(path: Path, n: int = 64, seed: int = 0) -> Path:
    text = "".join(f"{NAMES[int(example.target)]}\t{example.text[0]}\n" for example in rows(n, seed=seed))
    path.write_bytes(lzma.compress(text.encode()) if path.suffix == ".xz" else text.encode())
    return path


def test_train_then_attack(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data, test, out = table(tmp_path / "train.tsv.xz"), table(tmp_path / "test.tsv"), tmp_path / "model"
    words = ["--model", "wordlstm", "--data", str(data), "--test", str(test), "--out", str(out), "--labels", ",".join(NAMES)]
    words += ["--epochs", "1", "--units", "4", "--words", "40", "--rows", "50", "--threads", "1"]
    with pytest.raises(SystemExit) as done:
        main(["train", *words])
    said = capsys.readouterr()
    assert done.value.code == 0, said.err
    assert "50 training texts word for word" in said.out
    card = json.loads((out / "card.json").read_text())
    assert card["data"]["file"] == "train.tsv.xz"
    assert len(card["data"]["sha256"]) == 64
    assert card["command"].startswith("scrimp train --model wordlstm")
    assert card["leakage"]["same"] > 0
    with pytest.raises(SystemExit) as done:
        main(
            [
                "attack",
                "--victim",
                str(out),
                "--data",
                str(test),
                "--recipe",
                "pwws",
                "--space",
                "chars",
                "--no-judge",
                "--n",
                "3",
            ]
        )
    said = capsys.readouterr()
    assert done.value.code == 0, said.err
    assert card["name"] in said.out


@pytest.mark.parametrize(
    ("text", "more", "message"),
    [
        ("", (), "is empty; it needs at least one row"),
        (
            "0\tfilm one\n0\tfilm two\n0\tfilm three\n",
            (),
            "2 training rows of 1 class(es) (0); a classifier needs rows of at",
        ),
        ("good\tfilm\nbad\tplot\n", (), "unknown label 'good'; the victim's classes are not known: pass --labels"),
        ("good\tfilm\nbad\tplot\n", ("--labels", "goood,bad"), "unknown label 'good'; the victim's classes are goood, bad"),
        (
            "0\ta\tb\n1\tc\td\n0\te\tf\n1\tg\th\n",
            (),
            "wordcnn reads 1 field(s), but the rows have 2; models for them: esim,",
        ),
        ("0.5\tfilm\n1.5\tplot\n", (), "label 0.5 is not a class"),
        ("0\tfilm\n7000000\tplot\n", (), "label 7000000 in 2 rows; classes are numbered from 0: look at the label column"),
        ("0\tfilm\n1\tplot\n", ("--rows", "0"), "--rows 0: at least 1 is needed"),
    ],
)
def test_data_that_cannot_be_learnt(
    text: str, more: tuple[str, ...], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "data.tsv").write_text(text)
    with pytest.raises(SystemExit) as done:
        main(["train", "--model", "wordcnn", "--data", str(tmp_path / "data.tsv"), "--out", str(tmp_path / "m"), *more])
    assert done.value.code == 2
    assert message in " ".join(capsys.readouterr().err.split())
    assert not (tmp_path / "m").exists()


def test_test_rows_must_be_alike(tmp_path: Path) -> None:
    with pytest.raises(VictimError, match=r"the test rows have 2 field\(s\), but the training rows 1"):
        train(rows(), tmp_path / "m", Plan("wordcnn"), QUICK, rows(4, fields=2))


def test_a_loss_that_is_no_number(tmp_path: Path) -> None:
    with pytest.raises(VictimError, match=r"the loss is (nan|inf) at step \d+ of epoch \d+; lower --rate \(now 1e\+30\)"):
        train(
            rows(),
            tmp_path / "m",
            Plan("wordlstm", words=40, units=4, threads=1),
            replace(QUICK, rate=1e30, vector_rate=1e30),
        )


def test_foreign_directories_are_left_alone(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(VictimError, match="holds other files; give a new directory"):
        train(rows(), tmp_path, Plan("wordcnn"), QUICK)
    with pytest.raises(VictimError, match="no model is called 'gru'; known: wordcnn, wordlstm"):
        train(rows(), tmp_path, Plan("gru"), QUICK)
    assert set(COURSES) == {*SINGLE, *PAIRS, "transformer"}


def test_xz_that_is_cut_short(tmp_path: Path) -> None:
    whole = table(tmp_path / "a.tsv.xz")
    assert len(read_examples(whole, labels=NAMES)) == 64
    whole.write_bytes(whole.read_bytes()[:-20])
    with pytest.raises(DataError, match=r"a\.tsv\.xz is not a whole xz file"):
        read_examples(whole, labels=NAMES)


# directories that cannot be used


def copied(folder: Path, to: Path) -> Path:
    shutil.copytree(folder, to / "copy")
    return to / "copy"


def test_loading_by_path(folder: Path) -> None:
    victim = load_victim(str(folder))
    assert isinstance(victim, WordModel)
    assert victim.name == load(str(folder)).name
    with pytest.raises(VictimError, match=r"but \['a', 'b'\] were given; leave labels out"):
        load_victim(str(folder), labels=("a", "b"))


def test_bad_directories(folder: Path, tmp_path: Path) -> None:
    from safetensors.numpy import load_file, save_file

    with pytest.raises(VictimError, match="nowhere is not a directory; train a model into one"):
        load(tmp_path / "nowhere")
    broken = copied(folder, tmp_path)
    (broken / "victim.json").unlink()
    with pytest.raises(VictimError, match=r"has no victim\.json .*scrimp train --out"):
        load(broken)
    (broken / "victim.json").write_text("{")
    with pytest.raises(VictimError, match=r"victim\.json is damaged"):
        load(broken)
    config = json.loads((folder / "victim.json").read_text())
    (broken / "victim.json").write_text(json.dumps(config | {"model": "gru"}))
    with pytest.raises(VictimError, match="no model is called 'gru'; known: wordcnn, wordlstm"):
        load(broken)
    (broken / "victim.json").write_text(json.dumps({"model": "wordlstm"}))
    with pytest.raises(VictimError, match="says nothing of name, labels"):
        load(broken)
    (broken / "victim.json").write_text(json.dumps(config | {"units": 9}))
    with pytest.raises(
        VictimError, match=r"is \(32, 8\), but victim\.json asks for \(36, 8\); the two files must come from"
    ):
        load(broken)
    (broken / "victim.json").write_text(json.dumps(config))
    tensors = load_file(broken / "model.safetensors")
    tensors["linear.bias"] = tensors["linear.bias"] * np.float16("nan")
    save_file(tensors, broken / "model.safetensors")
    with pytest.raises(VictimError, match=r"linear\.bias holds NaN or infinity"):
        load(broken)


class Trap:
    """Unpickled, it would raise."""

    def __reduce__(self) -> Any:
        return exec, ("raise SystemError('unpickled')",)


def test_pickles_are_refused(folder: Path, tmp_path: Path) -> None:
    broken = copied(folder, tmp_path)
    (broken / "model.safetensors").write_bytes(pickle.dumps(Trap()))
    with pytest.raises(VictimError, match="weights are safetensors, and a pickle under that name is not read"):
        load(broken)
    (broken / "model.safetensors").rename(broken / "model.pt")
    with pytest.raises(VictimError, match=r"holds model\.pt but no model\.safetensors; pickles .* not read: .*save_file"):
        load(broken)
    (broken / "model.pt").unlink()
    with pytest.raises(VictimError, match=r"has no model\.safetensors; train the model again"):
        load(broken)


def test_the_benchmark_of_victims(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from scrimp.benchmarks import victims

    monkeypatch.setattr(victims, "VICTIMS", {})
    monkeypatch.setattr(victims, "long_reviews", lambda n: rows(n))
    card = json.loads((folder / "card.json").read_text())
    card["command"] = "scrimp train --model wordlstm --data /some/where/a.tsv --labels a/b,c --out /some/small"
    mine = copied(folder, tmp_path)
    (mine / "card.json").write_text(json.dumps(card))
    victims.main([str(mine), "--n", "8", "--out", str(tmp_path / "record.json")])
    record = json.loads((tmp_path / "record.json").read_text())
    assert record["trained"]["copy"]["accuracy"] == card["accuracy"]
    assert record["trained"]["copy"]["command"] == "scrimp train --model wordlstm --data a.tsv --labels a/b,c --out small"
    speeds = [record["texts_per_second"]["copy"][kind]["as it is"] for kind in ("short", "long")]
    assert [list(speed) for speed in speeds] == [["1"], ["1"]]  # eight texts fill no call of 32
    assert all(speed["1"] > 0 for speed in speeds)
