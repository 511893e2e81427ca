"""The published baselines: swarm, genetic search, TextFooler's choice, TextBugger's sentences, the context-aware attack."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scrimp import RECIPES, SEARCHES, Example, Search, attack, load_victim, wrap
from scrimp.attacks.engine import Engine
from scrimp.attacks.goals import Misclassify
from scrimp.attacks.record import Record
from scrimp.attacks.types import Ask, Codes, Grid, Scored, Text, Victim
from scrimp.search.genetic import parents
from scrimp.search.population import best_trials, draw_slots, scores_of
from scrimp.search.swarm import copied, every_slot, schedule, swapped
from scrimp.search.textbugger import sentences
from scrimp.spaces import CounterFitted, Listed, Space
from scrimp.spaces.grid import Slot, WordGrid
from scrimp.spaces.rules import Field
from scrimp.spaces.tokens import words
from scrimp.victims import HELD_OUT

POPULATIONS = [name for name in SEARCHES if name.startswith(("swarm", "genetic"))]
MINE = [*POPULATIONS, *(name for name in SEARCHES if name.startswith(("similar", "sentences", "renewing")))]
BASELINES = [
    name for name in RECIPES if name.split("@")[0] in ("textfooler", "pso", "genetic", "textbugger", "context-aware")
]


@dataclass(frozen=True)
class Letters:
    """Every letter but x may become any of the others; candidates come in the given order."""

    others: str = "bcdef"
    name: str = "letters"

    def __call__(self, examples: Sequence[Example]) -> list[Grid]:
        return [self.grid(example) for example in examples]

    def grid(self, example: Example) -> WordGrid:
        fields = {field: words(example.text[field]) for field in example.editable}
        slots = [
            Slot(field, at, word.start, word.end, tuple(other for other in self.others if other != word.text))
            for field, found in fields.items()
            for at, word in enumerate(found)
            if word.text != "x"
        ]
        return WordGrid(example.text, fields, slots, why_empty="nothing but x")


class Counted:
    """Cosines that fall as letters come later in the alphabet."""

    name = "counted"

    def __call__(self, texts: Sequence[str]) -> NDArray[np.float32]:
        angles = np.array([sum("abcdef".find(letter) for letter in text if letter != " ") * 0.05 for text in texts])
        return np.stack([np.cos(angles), np.sin(angles)], 1).astype(np.float32)


def scoring(score: Callable[[Text], float], fields: int = 1) -> Victim:
    """The true class 0 has 1 - score; a score above a half fools."""
    return wrap(lambda texts: [[1 - score(_pair(text)), score(_pair(text))] for text in texts], "scored@1", fields=fields)


def _pair(text: Any) -> Text:
    return (text,) if isinstance(text, str) else tuple(text)


def run(search: str | Search, victim: Victim, text: Text | str, space: Any = None, **settings: Any) -> Record:
    fields = _pair(text)
    example = Example("e", fields, 0, editable=settings.pop("editable", (0,)))
    found = SEARCHES[search] if isinstance(search, str) else search
    settings = {"budget": 5000, "trace": True} | settings
    (record,) = Engine(victim, Misclassify(), space or Letters(), found, **settings).run([example])
    assert record.status != "error", record.error
    return record


def sent(record: Record) -> list[str]:
    return [step["text"][0] for step in record.trace]


# --- what holds for every one of them ------------------------------------------------------------------------------


@pytest.mark.parametrize("search", MINE)
def test_nobody_is_left_when_everything_is_refused(search: str) -> None:
    class Strict:
        name = "strict"

        def __call__(self, texts: Sequence[str]) -> NDArray[np.float32]:
            return np.array([[1, 0] if text == "a a a" else [0, 1] for text in texts], np.float32)

    record = run(search, scoring(lambda text: 0.1), "a a a", floor=0.5, guide=Strict())
    assert (record.status, record.reason) == ("held", "the search ended")
    assert all(len(text.split()) < 3 or "[UNK]" in text for text in sent(record)[1:])  # nothing but probes


@pytest.mark.parametrize("search", MINE)
def test_one_word_has_only_its_candidates_to_pay_for(search: str) -> None:
    record = run(search, scoring(lambda text: 0.1), "x a x")
    assert record.status == "held"
    swaps = {f"x {other} x" for other in "bcdef"}
    assert swaps <= set(sent(record)) <= swaps | {"x a x", "x x", "x [UNK] x"}
    won = run(search, scoring(lambda text: 0.9 if "e" in text[0] else 0.1), "x a x")
    assert won.adversarial == ("x e x",)


@pytest.mark.parametrize("search", MINE)
def test_a_victim_that_never_moves(search: str) -> None:
    record = run(search, scoring(lambda text: 0.25), "a x a x a x a")
    assert (record.status, record.reason) == ("held", "the search ended")
    assert len(set(sent(record))) == len(sent(record)) == record.charged
    stays = not search.endswith(("swarm-ported", "sentences-whole", "nothing"))  # these take what does not help
    changed = [sum(letter in "bcdef" for letter in text) for text in sent(record)]
    assert max(changed) == 1 if stays else max(changed) > 1


@pytest.mark.parametrize("search", MINE)
def test_pairs_change_in_both_fields_and_only_where_they_may(search: str) -> None:
    victim = scoring(lambda text: 0.2 + 0.4 * ("f" in text[-1]) + 0.15 * ("b" in text[0]), fields=2)
    both = run(search, victim, ("a x", "x a a"), editable=(0, 1))
    assert both.adversarial is not None
    assert "f" in both.adversarial[1]
    second = run(search, victim, ("a x", "x a a"), editable=(1,))
    assert second.adversarial is not None
    assert second.adversarial[0] == "a x"
    for step in second.trace:
        assert step["text"][0] == "a x"


def answered(ask: Ask, score: Callable[[Codes], float], most: int = 99, fooled: bool = False) -> Scored:
    """What an engine would say of codes that may change so many words; with `fooled` the first of them succeeds."""
    allowed = np.count_nonzero(ask.codes, axis=1) <= most
    reply = allowed & ask.pay
    values = np.where(reply, [score(code) for code in ask.codes], -np.inf)
    won = reply & (np.arange(len(reply)) == reply.argmax()) & fooled
    nothing = np.full(len(reply), np.nan), np.zeros((len(reply), 0), np.float32)
    return Scored(allowed, reply, won, *nothing, values, values)


@pytest.mark.parametrize("search", POPULATIONS)
def test_no_child_is_asked_about_twice_in_a_generation(search: str) -> None:
    grid = Letters().grid(Example("e", ("a a x a a a",), 0))
    asking = SEARCHES[search].run(grid, np.random.default_rng(3))
    ask, paid, generations = next(asking), 0, 0
    while True:
        if ask.pay:
            assert len(np.unique(ask.codes, axis=0)) == len(ask.codes)
            generations += len(ask.codes) > 1
            paid += len(ask.codes)
        try:
            ask = asking.send(answered(ask, lambda code: float(code.sum()) / 100))
        except StopIteration:
            break
    assert generations > 5
    assert paid > 100


@pytest.mark.parametrize("search", POPULATIONS)
def test_who_may_not_move_stays(search: str) -> None:
    """A generation is looked at for nothing first, and what no rule allows is not in it when it is paid for."""
    grid = Letters().grid(Example("e", ("a a x a a a",), 0))
    asking = SEARCHES[search].run(grid, np.random.default_rng(3))
    ask, looked, refused = next(asking), False, 0
    while True:
        if looked:
            assert ask.pay
            assert (np.count_nonzero(ask.codes, axis=1) <= 2).all()
        looked = not ask.pay
        reply = answered(ask, lambda code: float(code.sum()) / 100, most=2)
        refused += int((~reply.allowed).sum()) if looked else 0
        try:
            ask = asking.send(reply)
        except StopIteration:
            break
    assert refused


@pytest.mark.parametrize("search", POPULATIONS)
@pytest.mark.parametrize("turn", range(2, 9))
def test_a_success_ends_it(search: str, turn: int) -> None:
    grid = Letters().grid(Example("e", ("a a x a a a",), 0))
    asking = SEARCHES[search].run(grid, np.random.default_rng(3))
    ask, paid = next(asking), 0
    while True:
        paid += ask.pay
        if ask.pay and paid == turn:
            with pytest.raises(StopIteration):
                asking.send(answered(ask, lambda code: 0.0, fooled=True))
            return
        ask = asking.send(answered(ask, lambda code: float(code.sum()) / 100))


@pytest.mark.parametrize("search", POPULATIONS)
def test_populations_find_what_takes_several_words(search: str) -> None:
    """Each of three words counts a little, and only all of them together fool; one step at a time leads there."""
    wanted = {0: "b", 2: "c", 4: "f"}
    victim = scoring(lambda text: 0.1 + 0.15 * sum(text[0].split()[at] == letter for at, letter in wanted.items()))
    record = run(search, victim, "a x a x a x a a")
    assert record.adversarial is not None
    assert record.adversarial[0].startswith("b x c x f")


# --- the swarm -----------------------------------------------------------------------------------------------------


def test_the_schedule_is_the_original_one() -> None:
    assert schedule(0) == pytest.approx((0.8, 0.8, 0.2))
    assert schedule(10) == pytest.approx((0.5, 0.5, 0.5))
    assert schedule(19) == pytest.approx((0.23, 0.23, 0.77))
    inertia, own, others = zip(*map(schedule, range(20)), strict=True)
    assert sorted(inertia, reverse=True) == list(inertia)
    assert sorted(own, reverse=True) == list(own)
    assert sorted(others) == list(others)


def test_the_port_swaps_the_roles() -> None:
    rng = np.random.default_rng(0)
    particle, best = np.full((400, 5), 1, np.int16), np.full((400, 5), 2, np.int16)
    chance = np.full((400, 5), 0.9)
    assert (copied(particle, best, chance, rng) == 2).mean() == pytest.approx(0.9, abs=0.03)
    assert (swapped(particle, best, chance, rng) == 2).mean() == pytest.approx(0.1, abs=0.03)
    assert copied(particle, best, chance, rng).dtype == np.int16


def drive(asking: Any, score: Callable[[Codes], float]) -> tuple[Any, list[Ask]]:
    asks: list[Ask] = []
    try:
        ask = next(asking)
        while True:
            asks.append(ask)
            ask = asking.send(answered(ask, score))
    except StopIteration as end:
        return end.value, asks


def test_the_port_draws_a_slot_by_what_it_gains() -> None:
    grid = Letters().grid(Example("e", ("a a a",), 0))
    start = np.zeros((3000, 3), np.int16), np.zeros(3000)
    gains = np.array([0.1, 0.3, -1.0])
    (codes, scores), (ask,) = drive(
        every_slot(grid, start, np.random.default_rng(1), True), lambda code: float(gains[code.argmax()])
    )
    assert len(ask.codes) == 15  # equal particles have equal neighbours
    share = (codes > 0).mean(0)
    assert share == pytest.approx([0.25, 0.75, 0], abs=0.03)
    assert (scores == gains[codes.argmax(1)]).all()
    worse, _ = drive(every_slot(grid, start, np.random.default_rng(1), True), lambda code: -1.0)
    assert (worse[0] > 0).mean(0) == pytest.approx([1 / 3] * 3, abs=0.03)
    full = np.ones((2, 3), np.int16), np.array([0.5, 0.6])
    (stays, kept), asks = drive(every_slot(grid, full, np.random.default_rng(1), True), lambda code: 1.0)
    assert (stays == full[0]).all()
    assert (kept == full[1]).all()
    assert not asks


# --- the genetic search --------------------------------------------------------------------------------------------


def test_better_members_have_more_children() -> None:
    scores = np.linspace(0, 1, 5)
    drawn = np.bincount(parents(scores, 20_000, np.random.default_rng(0)), minlength=5) / 20_000
    odds = np.exp(scores / 0.3)
    assert drawn == pytest.approx(odds / odds.sum(), abs=0.02)
    assert (np.diff(drawn) > 0).all()
    inverted = np.bincount(parents(scores, 20_000, np.random.default_rng(0), -0.3), minlength=5) / 20_000
    assert inverted == pytest.approx(drawn[::-1], abs=0.02)
    far = parents(np.array([0.0, 5000.0]), 50, np.random.default_rng(0))  # distances may be large
    assert (far == 1).all()


def test_slots_are_drawn_by_weight_among_the_free() -> None:
    free = np.tile([True, True, False, True], (8000, 1))
    free[0] = False
    drawn = draw_slots(free, np.array([1, 2, 50, 5]), np.random.default_rng(0))
    assert drawn[0] == -1
    assert np.bincount(drawn[1:], minlength=4) / 7999 == pytest.approx([1 / 8, 2 / 8, 0, 5 / 8], abs=0.02)


def test_the_best_candidate_is_the_first_of_equals() -> None:
    grid = Letters().grid(Example("e", ("a a",), 0))
    value = {1: 0.1, 2: 0.7, 3: 0.2, 4: 0.7, 5: -np.inf}
    codes = np.zeros((2, 2), np.int16)
    found, _ = drive(best_trials(grid, codes, np.array([0, 1]), np.array([1, 0]), True), lambda code: value[int(code.max())])
    assert found[0].tolist() == [[0, 2], [2, 0]]
    assert found[1].tolist() == [0.7, 0.7]


def test_scores_come_back_to_every_copy() -> None:
    codes = np.array([[2], [1], [2], [0], [1]], np.int16)
    values, (ask,) = drive(scores_of(codes, False), lambda code: float(code[0]))
    assert values.tolist() == [2, 1, 2, 0, 1]
    assert ask.codes.tolist() == [[2], [1], [0]]


# --- TextFooler ----------------------------------------------------------------------------------------------------


def by_hand(victim: Callable[[str], float], text: str, others: str, floor: float) -> str | None:
    """TextFooler's choice, every candidate looked at."""
    near, best, level = Counted(), text.split(), victim(text)
    origin = near([text])[0]
    losses = {at: victim(" ".join(best[:at] + best[at + 1 :])) for at in range(len(best))}
    for at in sorted(losses, key=lambda at: -losses[at]):
        tries = [" ".join([*best[:at], other, *best[at + 1 :]]) for other in others if other != text.split()[at]]
        cosine = {one: round(float((near([one])[0].astype(np.float64) * origin).sum()), 6) for one in tries}
        allowed = [one for one in tries if cosine[one] >= floor]
        if fools := [one for one in allowed if victim(one) > 0.5]:
            return max(fools, key=lambda one: cosine[one])
        if allowed and max(map(victim, allowed)) > level:
            level = max(map(victim, allowed))
            best = max(allowed, key=victim).split()
    return None


@pytest.mark.parametrize("others", ["bcdef", "fdbec"])
def test_the_choice_is_the_exhaustive_one(others: str) -> None:
    found = charged = whole = 0
    for seed in range(40):
        weight = dict(zip("abcdef", np.random.default_rng(seed).random(6) * 0.3, strict=True))

        def score(text: str, weight: dict[str, float] = weight) -> float:
            return min(0.99, float(sum(weight[letter] * (1 + 0.1 * at) for at, letter in enumerate(text.split()))) / 2)

        text, floor = "a b a c", (0.95, 0.9, -1.0)[seed % 3]
        if score(text) > 0.5:
            continue
        victim = scoring(lambda pair, score=score: score(pair[0]))  # type: ignore[misc]
        records = [
            run(f"similar-deletion{kind}", victim, text, Letters(others), floor=floor, guide=Counted())
            for kind in ("", "-whole")
        ]
        wanted = by_hand(score, text, others, floor)
        assert [record.adversarial and record.adversarial[0] for record in records] == [wanted, wanted]
        found += wanted is not None
        charged, whole = charged + records[0].charged, whole + records[1].charged
    assert found > 5
    assert charged < whole


@pytest.mark.parametrize("search", MINE)
def test_what_the_floor_refuses_is_never_charged(search: str) -> None:
    near, floor = Counted(), 0.97
    record = run(
        search, scoring(lambda text: 0.1 + 0.02 * sum(map(ord, text[0])) / 1000), "a b x a", floor=floor, guide=near
    )
    cosines = {text: float((near([text])[0] * near(["a b x a"])[0]).sum()) for text in sent(record)}
    results = [text for text in sent(record) if len(text.split()) == 4 and "[UNK]" not in text]
    assert len(results) > 2
    assert min(cosines[text] for text in results) >= floor - 1e-6


# --- TextBugger ----------------------------------------------------------------------------------------------------


def test_sentences_are_told_apart() -> None:
    grid = Letters().grid(Example("e", ('a b. "a x!" c? d\nf <br />a x.b', "a b . c"), 0, editable=(0, 1)))
    assert sentences(grid).tolist() == [0, 0, 1, 2, 3, 4, 5, 5, 6, 6, 7]


def test_words_of_a_sentence_wait_for_their_turn() -> None:
    def score(text: Text) -> float:  # the second sentence holds the text up, and f in its place fools
        return 0.9 if "f" in text[0] else 0.4 if "d" not in text[0] else 0.2

    record = run("sentences", scoring(score), "a b a. a d. b a")
    assert record.adversarial is not None
    assert record.adversarial[0].split(". ")[1].count("f") == 1
    probed = [text for text in sent(record) if len(text.split()) < 7]
    assert len(probed) == 3 + 2  # three sentences, then the two words of one
    single = run("sentences", scoring(lambda text: 0.1), "x a x")
    assert sent(single) == ["x a x", *(f"x {other} x" for other in "bcdef")]


# --- the context-aware attack --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Echo:
    """A candidate that repeats the word before: it depends on the text as it stands."""

    name = "echo"
    missing = "first"
    needs_tags = False

    def __call__(self, field: Field, positions: Sequence[int]) -> list[tuple[str, ...]]:
        before = ["new" if not at else field.words[at - 1].text + "s" for at in positions]
        return [() if other == field.words[at].text else (other,) for other, at in zip(before, positions, strict=True)]


@pytest.mark.parametrize("search", [name for name in MINE if name.startswith("renewing")])
def test_candidates_are_proposed_anew(search: str) -> None:
    victim = scoring(
        lambda text: 0.9 if "newss" in text[0] else 0.1 + 0.1 * text[0].count("new") + 0.05 * ("one" not in text[0])
    )
    record = run(search, victim, "one two three", Space(Echo()))
    assert record.adversarial == ("new news newss",)  # from the original no candidate is "newss"
    assert [(change.before, change.after) for change in record.changes] == [
        ("one", "new"),
        ("two", "news"),
        ("three", "newss"),
    ]
    assert run("greedy-deletion", victim, "one two three", Space(Echo())).status == "held"


def test_listed_asks_the_table_where_it_knows_both() -> None:
    field = Field(0, "A good zzqq", words("A good zzqq"), ())
    near = CounterFitted(3)(field, [1])[0]
    kept, free = Listed().sift(field, [1, 2], [(*near, "piano", "zzqq"), ("piano",)])
    assert kept == (*near, "zzqq")
    assert free == ("piano",)
    assert Listed(1.0).sift(field, [1], [near]) == [()]
    with pytest.raises(ValueError, match=r"from 0\.35 to 1, got 0\.2"):
        Listed(0.2)
    assert Listed().name != Listed(0.5).name


# --- the recipes, on the real parts ----------------------------------------------------------------------------------


def held_out(n: int) -> list[Example]:
    rows = [line.split("\t") for line in HELD_OUT.read_text().splitlines()[:n]]
    return [Example(str(i), (text,), int(label)) for i, (label, text) in enumerate(rows)]


@pytest.mark.parametrize("recipe", BASELINES)
def test_recipes_run_and_a_fresh_victim_agrees(recipe: str) -> None:
    examples = held_out(4)
    found = attack("wordcnn-mr", examples, recipe, budget=60, judge=None, trace=True)
    slim = attack("wordcnn-mr", examples[::-1], recipe, budget=60, judge=None, width=1)
    assert [record.outcome() for record in found] == [record.outcome() for record in slim][::-1]
    fresh = load_victim("wordcnn-mr")
    for record in found:
        assert record.status in ("fooled", "held", "skipped"), record.error
        assert record.charged == len({tuple(step["text"]) for step in record.trace}) == len(record.trace) <= 60
        if record.adversarial is not None:
            (row,) = fresh([record.adversarial])
            assert int(row.argmax()) == record.label_after != record.target
    assert any(record.charged > 1 for record in found)


def test_every_baseline_comes_in_three_forms() -> None:
    names = ("textfooler", "pso", "genetic", "textbugger", "context-aware")
    assert [name + form for name, form in product(names, ("", "@paper", "@released"))] == BASELINES
    for name in BASELINES:
        assert RECIPES[name].paper
