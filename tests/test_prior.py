"""Priors, the searches that use them, and the recipes named after the project."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import repeat
from pathlib import Path
from statistics import NormalDist

import numpy as np
import pytest
import scrimp
from scrimp import Example, Target, attack, load_victim, read_examples
from scrimp.attacks.types import Answers, Ask, Grid
from scrimp.cli import main
from scrimp.ranking.fit_prior import fit
from scrimp.ranking.prior import SHIPPED, Guided, Linear, Surrogate, choose_prior, fingerprint, load_prior
from scrimp.ranking.saliency import single_swaps
from scrimp.search.influence import Influences
from scrimp.search.joint import _doubling
from scrimp.search.moves import fitted, prefixes
from scrimp.spaces import SPACES, ShareChanged
from scrimp.spaces.grid import Slot, WordGrid
from scrimp.spaces.tokens import words
from scrimp.victims import HELD_OUT

GOOD, BAD = ("lovely", "bright", "warm", "fine"), ("awful", "dull", "cold", "poor")


def labelled(n: int, classes: int = 2, shuffled: bool = False) -> list[Example]:
    rng = np.random.default_rng(5)
    made = []
    for number in range(n):
        label = int(rng.integers(classes))
        kind = (BAD, GOOD, ("goal", "match", "team", "coach"))[label]
        text = f"the {rng.choice(kind)} evening was {rng.choice(kind)} as number {number}"
        made.append(Example(str(number), (text,), int(rng.integers(classes)) if shuffled else label))
    return made


def test_a_linear_prior_learns_which_words_speak_for_a_class(tmp_path: Path) -> None:
    prior, right = fit(labelled(400), ("bad", "good"), "linear(mood)", ("mood",))
    assert right > 0.95
    weight = {word: prior.weights[prior.numbers[word]] for word in (*GOOD, *BAD, "evening")}
    assert all(weight[word][1] > weight[word][0] for word in GOOD)
    assert all(weight[word][1] < weight[word][0] for word in BAD)
    assert abs(weight["evening"][1] - weight["evening"][0]) < 0.1 * (weight["warm"][1] - weight["warm"][0])
    prior.save(tmp_path / "mood.npz")
    again = load_prior(tmp_path / "mood.npz")
    assert (again.name, again.labels, again.data) == ("linear(mood)", ("bad", "good"), ("mood",))
    assert np.allclose(again.weights, prior.weights, atol=0.01)
    assert (fit(labelled(400), ("bad", "good"), "linear(mood)", ("mood",))[0].weights == prior.weights).all()
    assert fit(labelled(400, shuffled=True), ("bad", "good"), "x", ())[1] < 0.7


def test_words_of_like_vectors_weigh_alike() -> None:
    rng = np.random.default_rng(7)
    mood = np.array([1.0, 0.0, 0.0, 0.0])
    told = {**dict.fromkeys(GOOD, mood), **dict.fromkeys(BAD, -mood), "superb": mood, "dire": -mood, "table": 0 * mood}
    known = [*told, "the", "evening", "was", "as", "number"]
    near = np.array([told.get(word, 0 * mood) for word in known]) + rng.normal(0, 0.05, (len(known), 4))
    vectors = (known, near.astype(np.float32))
    prior, right = fit(labelled(400), ("bad", "good"), "linear(mood)", ("mood",), vectors=vectors)
    assert right > 0.95

    def weight(word: str) -> float:
        row = prior.weights[prior.numbers.get(word, -1)]
        return float(row[1] - row[0])

    assert weight("superb") > 0.2 * weight("warm") > 0  # neither is in any text
    assert weight("dire") < 0.2 * weight("cold") < 0
    assert abs(weight("table")) < 0.1 * weight("superb")
    plain, _ = fit(labelled(400), ("bad", "good"), "linear(mood)", ("mood",))
    assert "superb" not in plain.numbers
    assert (
        fit(labelled(400), ("bad", "good"), "linear(mood)", ("mood",), vectors=vectors)[0].weights == prior.weights
    ).all()
    strange = (["xylophone"], np.ones((1, 4), np.float32))
    same, _ = fit(labelled(400), ("bad", "good"), "linear(mood)", ("mood",), vectors=strange)  # no word of the texts
    assert np.allclose(same.weights[: len(plain.weights) - 1], plain.weights[:-1], atol=1e-3)


def test_gains_are_differences_of_weights() -> None:
    prior = load_prior(SHIPPED["imdb"])
    for label in (0, 1):
        example = Example("x", ("a wonderful and boring film",), label)
        (grid,) = Guided(SPACES["wordnet-any"], prior)([example])
        assert grid.gain is not None
        weight = {w: prior.weights[prior.numbers.get(w, -1)] for w in ("wonderful", "wondrous", "boring", "tedious")}
        for old, new in (("wonderful", "wondrous"), ("boring", "tedious")):
            slot = list(grid.slot_words).index(old)
            gain = grid.gain[slot, list(grid.candidates[slot]).index(new)]
            other = 1 - label
            moved = weight[new] - weight[old]
            assert gain == pytest.approx(moved[other] - moved[label], abs=1e-5)
        beyond = np.arange(grid.gain.shape[1]) >= grid.sizes[:, None]
        assert (grid.gain[beyond] == -np.inf).all()
        assert np.isfinite(grid.gain[~beyond]).all()


def test_three_classes_move_to_the_nearest_or_the_wanted_one() -> None:
    prior, _ = fit(labelled(600, classes=3), ("bad", "good", "sport"), "linear(three)", ())

    class Swap:
        name = "swap"

        def __call__(self, examples: object) -> list[Grid]:
            return SPACES["wordnet-any"]([Example("x", ("a fine evening",), 1)])

    example = Example("x", ("a fine evening",), 1)
    grids = SPACES["wordnet-any"]([example])
    grids[0].candidates = (("awful", "team"),)  # type: ignore[misc]
    grids[0].slot_words = ("fine",)  # type: ignore[misc]
    grids[0].sizes = np.array([2])  # type: ignore[misc]
    towards = {wanted: prior([example], grids, wanted)[0][0] for wanted in (0, 2)}
    assert towards[0][0] > towards[0][1]
    assert towards[2][1] > towards[2][0]


def test_a_surrogate_is_asked_for_every_swap() -> None:
    model = load_victim("wordcnn-mr")
    example = read_examples(HELD_OUT, n=1)[0]
    (grid,) = Guided(SPACES["wordnet"], Surrogate(model))([example])
    assert grid.gain is not None
    rows = np.array(model([example.text, *grid.decode(single_swaps(grid, np.arange(len(grid.sizes))))]))
    ahead = np.log(rows[:, 1 - int(example.target)] / rows[:, int(example.target)])
    assert np.allclose(grid.gain[np.isfinite(grid.gain)], ahead[1:] - ahead[0], atol=1e-6)


def test_near_copies_are_recognised() -> None:
    rows = labelled(50)
    prior, _ = fit(rows, ("bad", "good"), "linear(mood)", ("mood",))
    assert prior.seen([row.text for row in rows]) == 50
    long = "one two three four five six seven eight nine ten " * 3 + "and a long tail of quite different words at the end"
    near = long + " indeed"
    texts = [Example(str(i), (long,), i % 2) for i in range(30)]
    assert fit(texts, ("a", "b"), "x", ())[0].seen([(near,)]) == 1
    assert prior.seen([("an entirely different review of a film",)]) == 0
    assert fingerprint("A Fine film, indeed!") == fingerprint("a fine film indeed")


def test_priors_are_chosen_so_that_they_share_no_data() -> None:
    cnn, imdb = load_victim("wordcnn-mr"), load_victim("imdb-spacy")
    assert [choose_prior("auto", v).name for v in (cnn, imdb)] == ["linear(imdb)", "linear(mr)"]  # type: ignore[union-attr]
    assert choose_prior("auto", scrimp.wrap(lambda texts: texts, "mine", ("cat", "dog"))) is None
    assert choose_prior("none", cnn) is None
    with pytest.raises(ValueError, match=r"no prior 'imbd'; did you mean 'imdb'\?"):
        choose_prior("imbd", cnn)
    with pytest.raises(ValueError, match=r"knows the classes negative, positive, but mine has cat, dog"):
        choose_prior("imdb", scrimp.wrap(lambda texts: texts, "mine", ("cat", "dog")))
    with pytest.raises(ValueError, match=r"nowhere.npz does not exist; make it with: scrimp prior train"):
        choose_prior("nowhere.npz", cnn)
    with pytest.raises(ValueError, match=r"is not a prior"):
        load_prior(HELD_OUT)


def test_shared_data_is_warned_of() -> None:
    texts = read_examples(HELD_OUT, n=3)
    with pytest.warns(UserWarning, match=r"were both trained on rotten_tomatoes"):
        attack("wordcnn-mr", texts, "scrimp", prior="mr", guide=None, judge=None, budget=5)
    mine, _ = fit(labelled(50), ("negative", "positive"), "linear(mine)", ())
    with pytest.warns(UserWarning, match=r"linear\(mine\) was trained on 2 of these 2 texts, or near copies"):
        attack("wordcnn-mr", labelled(50)[:2], "scrimp", prior=mine, guide=None, judge=None, budget=5)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        (record, *_) = attack("wordcnn-mr", texts, "scrimp", guide=None, judge=None, budget=5)
    assert record.prior == "linear(imdb)"


def test_a_good_prior_saves_queries_and_a_useless_one_costs_little() -> None:
    texts = read_examples(HELD_OUT, n=120)
    good = load_prior(SHIPPED["imdb"])
    order = np.random.default_rng(0).permutation(len(good.weights))
    useless = replace(good, name="shuffled", weights=good.weights[order])

    def figures(recipe: str, prior: Linear | str | None = None) -> tuple[float, float]:
        facts = attack("wordcnn-mr", texts, recipe, prior=prior, guide=None, judge=None, budget=300).summary
        return facts["success_rate"], facts["charged_mean"]

    greedy, random = figures("greedy-wordnet"), figures("random-wordnet")
    informed, misled, alone = figures("scrimp"), figures("scrimp", useless), figures("scrimp", "none")
    assert informed[0] >= greedy[0] - 3
    assert informed[1] < 0.5 * greedy[1]
    assert misled[1] < random[1]
    assert misled[0] >= random[0] - 2
    assert alone[0] >= random[0] - 2
    pruned = attack("wordcnn-mr", texts, "scrimp-pruned", guide=None, judge=None).summary
    quick = attack("wordcnn-mr", texts, "scrimp", guide=None, judge=None).summary
    assert pruned["fooled"] >= quick["fooled"]
    assert pruned["success_rate"] >= greedy[0] - 2  # a single climb may end on another hill
    assert pruned["perturbed_pct"] < 0.9 * quick["perturbed_pct"]


def test_labels_are_enough() -> None:
    texts = read_examples(HELD_OUT, n=60)
    shown = attack("wordcnn-mr", texts, labels_only=True, guide=None, judge=None).summary
    blind = attack("wordcnn-mr", texts, "scrimp-labels", labels_only=True, prior="none", guide=None, judge=None).summary
    assert shown["success_rate"] > 70
    assert shown["charged_median"] < blind["charged_median"]


def test_a_target_and_two_fields() -> None:
    model = load_victim("wordcnn-mr")
    pairs = scrimp.wrap(lambda texts: model([(b,) for _, b in texts]), "second", model.labels, fields=2)
    rows = [Example(e.id, ("a fixed premise", e.text[0]), e.target, (1,)) for e in read_examples(HELD_OUT, n=20)]
    results = attack(pairs, rows, "scrimp", prior="imdb", goal=Target(0), guide=None, judge=None)
    assert {r.status for r in results if r.label_before == 0} == {"skipped"}
    won = results.fooled
    assert won
    for record in won:
        assert record.label_after == 0
        assert record.adversarial is not None
        assert record.adversarial[0] == "a fixed premise"
        assert all(change.field == 1 for change in record.changes)


def test_values_are_moved_too() -> None:
    lengths = scrimp.wrap(lambda texts: [len(text) for text in texts], "length", gives="value")
    text = "a good film with a good story"
    results = attack(lengths, [(text, len(text))], "scrimp", goal=scrimp.Shift(8.0), guide=None, judge=None)
    assert results[0].status == "fooled"
    assert results[0].adversarial is not None
    assert len(results[0].adversarial[0]) > len(text) + 8


def test_moves_are_made_to_fit_before_they_are_paid() -> None:
    space = SPACES["wordnet-any"].with_rules(ShareChanged(0.4))
    (grid,) = space([Example("x", ("good film fine story",), 1)])
    code = np.ones(len(grid.sizes), np.int16)
    value = np.array([3.0, 1.0, 2.0, 0.5])
    generator = fitted(code, value)
    ask = next(generator)
    kept = None
    while kept is None:
        assert isinstance(ask, Ask)
        assert not ask.pay
        allowed = grid.legal(ask.codes)
        similarity = np.full(len(ask.codes), np.nan)
        try:
            ask = generator.send(type("Reply", (), {"allowed": allowed, "similarity": similarity}))
        except StopIteration as stop:
            kept = stop.value
    assert kept.tolist() == [1, 0, 0, 0]  # one word of four: the most valuable one
    order = np.array([2, 0, 1])
    assert prefixes(order, np.array([1, 2, 3], np.int16), np.array([0, 1, 3])).tolist() == [[0, 0, 0], [0, 0, 3], [1, 2, 3]]


def test_a_floor_inside_the_moves() -> None:
    texts = read_examples(HELD_OUT, n=25)
    results = attack("wordcnn-mr", texts, "scrimp", floor=0.85, judge=None)
    assert len(results.fooled) > 3
    assert all((record.similarity or 0) >= 0.85 - 1e-6 for record in results.fooled)
    greedy = attack("wordcnn-mr", texts, "greedy-wordnet", floor=0.85, judge=None)
    assert (results.success_at([10])[10] or 0) > 2 * (greedy.success_at([10])[10] or 0)


def _four_slots() -> Grid:
    text = "a b c d"
    slots = [Slot(0, i, 2 * i, 2 * i + 1, ("x", "y", "z")) for i in range(4)]
    return WordGrid((text,), {0: words(text)}, slots)


def test_the_model_is_bayesian_regression() -> None:
    """The running update against the closed form with whole matrices: each text tells how it differs from the most alike."""
    from scrimp.search.influence import NOISE, SHARE, SLOT, SWAP

    def spelt(code: np.ndarray) -> np.ndarray:
        row = np.zeros(12)
        row[[3 * slot + choice - 1 for slot, choice in enumerate(code) if choice]] = 1
        return row

    def nearest(code: np.ndarray, known: list[np.ndarray]) -> int:
        return min(reversed(range(len(known))), key=lambda at: int((known[at] != code).sum()))

    rng = np.random.default_rng(2)
    gain = rng.normal(size=(4, 3))
    model = Influences(_four_slots(), gain, -2.0)
    codes = rng.integers(0, 4, (7, 4)).astype(np.int16)
    codes[0] = [1, 0, 0, 0]
    odds = rng.uniform(-3, -0.1, 7)
    known, values = [np.zeros(4, np.int16)], [-2.0]
    rows, noise, moved = [], [], []
    for code, value in zip(codes, odds, strict=True):
        base = nearest(code, known)
        rows.append(spelt(code) - spelt(known[base]))
        noise.append(NOISE**2 * (code != known[base]).sum())
        moved.append(value - values[base])
        known.append(code)
        values.append(value)
        model.learn_odds(code, float(value))
    scaled, design = (gain / gain.std()).ravel(), np.array(rows)
    same_slot = np.kron(np.eye(4), np.ones((3, 3)))
    prior = SHARE[1] ** 2 * np.outer(scaled, scaled) + SLOT**2 * same_slot + SWAP**2 * np.eye(12)
    inner = np.linalg.inv(design @ prior @ design.T + np.diag(noise))
    missed = moved - design @ (SHARE[0] * scaled)
    mean, spread = SHARE[0] * scaled + prior @ design.T @ inner @ missed, prior - prior @ design.T @ inner @ design @ prior
    assert np.allclose(model.mean, mean)
    assert np.allclose(model.deviation**2, model.scale * np.diag(spread))
    assert np.isclose(model.share, SHARE[0] + SHARE[1] ** 2 * (design @ scaled) @ inner @ missed)
    assert model.start == -2.0
    asked = rng.integers(0, 4, (20, 4)).astype(np.int16)
    for code, chance in zip(asked, model.chances(asked), strict=True):
        base = nearest(code, known)
        step = spelt(code) - spelt(known[base])
        scale = np.sqrt(model.scale * (step @ spread @ step + NOISE**2 * (code != known[base]).sum()) + 1e-12)
        assert chance == pytest.approx(NormalDist().cdf((values[base] + step @ mean) / scale), abs=1e-4)


@pytest.mark.parametrize("flipped", [True, False])
def test_a_label_moves_the_model_as_it_should(flipped: bool) -> None:
    """The update by one label against a million draws from the belief before it, those on the right side kept."""
    from scrimp.search.influence import NOISE, SHARE, SLOT, SWAP

    rng = np.random.default_rng(3)
    gain = rng.normal(size=(4, 3))
    model = Influences(_four_slots(), gain, -1.0, 0.8)
    code = np.array([1, 2, 0, 0], np.int16)
    model.learn_label(code, flipped)
    n = 1_000_000
    scaled = (gain / gain.std()).ravel()
    share = SHARE[0] + SHARE[1] * rng.normal(size=(n, 1))
    of_slot = np.repeat(SLOT * rng.normal(size=(n, 4)), 3, axis=1)
    influences = share * scaled + of_slot + SWAP * rng.normal(size=(n, 12))
    start = -1.0 + 0.8 * rng.normal(size=n)
    total = start + influences[:, 0] + influences[:, 4] + NOISE * np.sqrt(2) * rng.normal(size=n)
    kept = (total > 0) == flipped
    assert np.allclose(model.mean, influences[kept].mean(0), atol=0.01)
    assert np.allclose(model.deviation, influences[kept].std(0), atol=0.01)
    assert np.isclose(model.share, share[kept].mean(), atol=0.01)
    assert np.isclose(model.start, start[kept].mean(), atol=0.01)


def test_the_command_trains_and_uses_a_prior(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    vectors = (["marvellous", *GOOD, *BAD], np.array([[1.0], *[[1.0]] * 4, *[[-1.0]] * 4], np.float32))
    monkeypatch.setattr("scrimp.ranking.fit_prior.glove", lambda: vectors)
    data = tmp_path / "moods.tsv"
    data.write_text("".join(f"{e.target}\t{e.text[0]}\n" for e in labelled(200)))
    out = tmp_path / "moods.npz"
    with pytest.raises(SystemExit) as end:
        main(["prior", "train", "--data", str(data), "--labels", "negative,positive", "--out", str(out)])
    assert end.value.code == 0
    assert "200 texts" in capsys.readouterr().out
    assert "marvellous" in load_prior(out).numbers
    with pytest.raises(SystemExit) as end:
        main(["prior", "train", "--data", str(data), "--labels", "a,b", "--plain", "--out", str(tmp_path / "plain.npz")])
    assert end.value.code == 0
    assert "marvellous" not in load_prior(tmp_path / "plain.npz").numbers
    with pytest.raises(SystemExit) as end:
        main(["attack", "--n", "4", "--prior", str(out), "--no-judge", "--json", "--out", str(tmp_path / "run")])
    assert end.value.code == 0
    assert {record.prior for record in scrimp.read_records(tmp_path / "run" / "records.jsonl")} == {"linear(moods)"}
    with pytest.raises(SystemExit) as end:
        main(["prior", "train", "--data", str(data), "--labels", "a,b", "--out", str(tmp_path / "moods.txt")])
    assert end.value.code == 2
    assert "a prior is a .npz file" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (labelled(5), "5 texts are too few for a prior: give at least 20"),
        ([replace(e, target=1) for e in labelled(30)], "all 30 texts have the label 1"),
        ([Example(str(i), ("",), i % 2) for i in range(30)], "no word occurs in 3 texts"),
    ],
)
def test_data_that_teaches_nothing(rows: list[Example], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        fit(rows, ("a", "b"), "x", ())


def test_attention_as_prior_counts_words_whatever_replaces_them() -> None:
    cnn = scrimp.load_victim("wordcnn-mr")
    prior = choose_prior("attention", cnn)
    assert prior is not None
    assert prior.data == ("imdb",)
    example = scrimp.Example("x", ("a truly awful film with one good scene",), 0)
    (grid,) = scrimp.SPACES["wordnet"]([example])
    (gain,) = prior([example], [grid], None)
    for row, size in zip(gain, grid.sizes, strict=True):
        assert len(set(row[:size].tolist())) == 1
    assert list(grid.slot_words)[int(gain[:, 0].argmax())] in ("awful", "good")
    assert choose_prior("attention", scrimp.wrap(lambda texts: texts, "mine", ("cat", "dog"))) is None
    found = scrimp.attack(cnn, [example], "scrimp", prior="attention", budget=20, guide=None, judge=None)
    assert found[0].prior == prior.name


class _Many:
    """Sixty words that may each become another."""

    name = "many"

    def __call__(self, examples: Sequence[Example]) -> list[Grid]:
        made: list[Grid] = []
        for example in examples:
            found = words(example.text[0])
            slots = [Slot(0, i, word.start, word.end, ("b",)) for i, word in enumerate(found)]
            made.append(WordGrid(example.text, {0: found}, slots))
        return made


def test_many_small_influences_add_up_in_few_queries() -> None:
    """A text that flips when half of its sixty words are changed, each worth little: joint moves and steps in groups."""

    def predict(texts: list[str]) -> list[list[float]]:
        share = [1 / (1 + np.exp(-0.1 * (text.split().count("a") - 29.5))) for text in texts]
        return [[1 - value, value] for value in share]

    rows = [("a " * 60, 1)]
    found = attack(predict, rows, "scrimp", space=_Many(), budget=200, judge=None, guide=None)
    assert found[0].status == "fooled"
    assert found[0].charged < 20
    assert 31 <= len(found[0].changes) < 50


def _worth(*words: str) -> Callable[[list[str]], list[list[float]]]:
    """A victim of texts of letters: each of these lost, whatever stands in its place, is worth 2 in log-odds of 3."""

    def predict(texts: list[str]) -> list[list[float]]:
        odds = [2 * sum(word not in text.split() for word in words) - 3 for text in texts]
        return [[1 - 1 / (1 + np.exp(-value)), 1 / (1 + np.exp(-value))] for value in odds]

    return predict


def test_pruning_finds_the_few_words_that_matter() -> None:
    """Two of sixty words decide, and the prior knows nothing of it."""
    rows = [(" ".join(f"w{i}" for i in range(60)), 0)]
    found = attack(
        _worth("w7", "w41"), rows, "scrimp-pruned", space=_Many(), prior="none", budget=200, judge=None, guide=None
    )
    assert found[0].status == "fooled"
    assert {change.before for change in found[0].changes} == {"w7", "w41"}
    assert found[0].charged < 45


def test_a_step_may_put_a_word_back() -> None:
    """A prior that is wrong about a word: its swap is taken with the others, and given up again."""

    sent: list[str] = []

    def predict(texts: list[str]) -> list[list[float]]:
        sent.extend(texts)
        odds = [sum(w for w, word in zip((4, 1.5, -3), text.split(), strict=True) if word == "b") - 4.2 for text in texts]
        return [[1 - 1 / (1 + np.exp(-value)), 1 / (1 + np.exp(-value))] for value in odds]

    class Wrong(_Many):
        name = "wrong"

        def __call__(self, examples: Sequence[Example]) -> list[Grid]:
            grids = super().__call__(examples)
            for grid in grids:
                grid.gain = np.array([[3.0], [2.0], [1.0]])
            return grids

    found = attack(predict, [("a a a", 0)], "scrimp", space=Wrong(), budget=4, judge=None, guide=None)
    assert sent[1] == "b b b"
    assert [change.position for change in found[0].changes] == [0, 1]
    assert found[0].status == "fooled"


def test_a_label_that_stays_teaches_nothing_before_the_first_flip() -> None:
    (grid,) = _Many()([Example("x", ("a a a a a a a a",), 0)])
    gain = np.arange(8.0, 0, -1)[:, None]

    def told(replies: Iterator[bool]) -> list[int]:
        """How many answers the model has taken in, after each reply."""
        model, counts = Influences(grid, gain, -4.0, 3.0), []
        asking = _doubling(grid, gain, model)
        try:
            ask = next(asking)
            while True:
                yes = np.ones(len(ask.codes), bool)
                fooled = yes & (ask.pay and next(replies))
                ask = asking.send(Answers(yes, yes, fooled, np.full(len(yes), np.nan), np.zeros((len(yes), 0), np.float32)))
                counts.append(model.answers)
        except StopIteration:
            return counts

    assert set(told(repeat(False))) == {0}
    assert told(iter([False, False, False, True, False, True]))[-1] >= 2  # the flip, and what bisection shows
