"""The hard-label attacks: labels alone, an end in every corner, the best choice where it can be worked out, few queries."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scrimp import SEARCHES, Example
from scrimp.attacks.engine import Engine
from scrimp.attacks.goals import Misclassify
from scrimp.attacks.record import Record
from scrimp.attacks.types import Answers, Gives, Grid, Scored, Search, Text
from scrimp.benchmarks import hard_label as benchmark
from scrimp.search.belief import Belief
from scrimp.spaces.grid import Slot, WordGrid
from scrimp.spaces.tokens import words

from .toys import ToyEncoder, World

NAMES = ("hard-label", "hard-label-paper", "hard-label-released")
every_form = pytest.mark.parametrize("search", [SEARCHES[name] for name in NAMES], ids=NAMES)


class Sums:
    """Flips when the digits of a text add up to a bound; each word starts at 0. Labels only."""

    gives: Gives = "label"
    labels: tuple[str, ...] = ()

    def __init__(self, bound: float) -> None:
        self.name, self.bound, self.sent = f"sums({bound})@1", bound, list[Text]()

    def __call__(self, texts: Sequence[Text]) -> list[NDArray[Any]]:
        self.sent += texts
        total = [sum(int(word.text) for field in text for word in words(field) if word.text.isdigit()) for text in texts]
        return [np.asarray(int(value >= self.bound)) for value in total]


class Digits:
    """Every 0 may become any of these digits."""

    name = "digits"

    def __init__(self, *digits: str) -> None:
        self.digits = digits

    def __call__(self, examples: Sequence[Example]) -> list[Grid]:
        grids: list[Grid] = []
        for example in examples:
            found = {field: words(example.text[field]) for field in example.editable}
            slots = [
                Slot(field, place, word.start, word.end, self.digits)
                for field, some in found.items()
                for place, word in enumerate(some)
                if word.text == "0"
            ]
            grids.append(WordGrid(example.text, found, slots, 1.0, "no 0"))
        return grids


class Nearby:
    """A text moves by how often 5 to 9 stand in it: digits from 1 to 4 are near, the others far."""

    name = "nearby"

    def __call__(self, texts: Sequence[str]) -> NDArray[np.float32]:
        angle = np.array([sum(0.01 * int(d) + 0.1 * (int(d) > 4) for d in text if d.isdigit()) for text in texts])
        return np.stack([np.cos(angle / 4), np.sin(angle / 4)], 1).astype(np.float32)


def attacked(search: Search, bound: float, text: Text, digits: str = "123", guide: Any = None, **more: Any) -> Record:
    victim = Sums(bound)
    example = Example("x", text, 0, tuple(range(len(text))))
    engine = Engine(victim, Misclassify(), Digits(*digits), search, budget=more.pop("budget", 5000), guide=guide, **more)
    (record,) = engine.run([example])
    assert record.status != "error", record.error
    assert len(victim.sent) == len(set(victim.sent)) == record.charged
    return record


@every_form
def test_only_labels_are_seen(search: Search, monkeypatch: pytest.MonkeyPatch) -> None:
    assert search.needs == "label"
    kinds = set()
    read = Engine._answers

    def watched(self: Engine, flight: Any) -> Answers:
        answers = read(self, flight)
        kinds.add(type(answers))
        return answers

    monkeypatch.setattr(Engine, "_answers", watched)
    assert attacked(search, 4, ("0 0 0 0 0 0 0 0 0 0",)).status == "fooled"
    assert kinds == {Answers}
    assert not issubclass(Answers, Scored)


@every_form
@pytest.mark.parametrize("guide", [None, Nearby()], ids=["no guide", "guide"])
def test_one_word(search: Search, guide: Any) -> None:
    won = attacked(search, 3, ("0",), guide=guide)
    assert (won.status, [change.after for change in won.changes]) == ("fooled", ["3"])
    assert attacked(search, 4, ("0",), guide=guide).status == "held"


@every_form
@pytest.mark.parametrize("guide", [None, Nearby()], ids=["no guide", "guide"])
def test_a_victim_that_never_moves(search: Search, guide: Any) -> None:
    record = attacked(search, 1e9, ("0 0 0 0 0 0 0 0 0 0 0 0",), guide=guide, budget=400)
    assert (record.status, record.adversarial) == ("held", None)
    small = attacked(search, 1e9, ("0 0",), guide=guide)
    assert small.charged <= 16  # every text there is, and no more


@every_form
@pytest.mark.parametrize("guide", [None, Nearby()], ids=["no guide", "guide"])
def test_everything_flips(search: Search, guide: Any) -> None:
    """Ties everywhere: any change at all fools."""
    record = attacked(search, 1, ("0 0 0 0 0 0 0 0 0 0",), guide=guide)
    assert len(record.changes) == 1


@every_form
def test_pairs_and_every_field(search: Search) -> None:
    records = [attacked(search, 9, ("0 0 0 0", "0 0 0 0 0 0"), guide=Nearby(), seed=seed) for seed in range(4)]
    assert {record.status for record in records} == {"fooled"}
    assert {change.field for record in records for change in record.changes} == {0, 1}
    assert min(len(record.changes) for record in records) == 3


def test_a_population_that_dies_out() -> None:
    """One candidate a word: no mutation can succeed, so the released form ends with what reduction left."""
    record = attacked(SEARCHES["hard-label-released"], 3, ("0 0 0 0 0 0",), digits="1", guide=Nearby())
    assert (record.status, len(record.changes), record.reason) == ("fooled", 3, "the search ended")


@pytest.mark.parametrize("bound", [3, 5, 6, 7])
def test_as_good_as_trying_everything(bound: int) -> None:
    """Fewest words; where one word is enough, the nearest text too. Of two words it exchanges one at a time, so the nearest
    pair is not promised."""
    text, digits = ("0 0 0 0",), "12345"
    codes = np.array([code for code in itertools.product(range(6), repeat=4) if sum(code) >= bound])
    fewest = int((codes > 0).sum(1).min())
    angle = (0.01 * codes + 0.1 * (codes > 4)).sum(1)[(codes > 0).sum(1) == fewest].min()
    record = attacked(SEARCHES["hard-label"], bound, text, digits, Nearby())
    assert len(record.changes) == fewest
    assert fewest > 1 or record.similarity == pytest.approx(np.cos(angle / 4), abs=1e-5)


def test_ours_asks_no_text_twice() -> None:
    for seed in range(8):
        for record in World(seed, n=6, length=9, budget=400).run(SEARCHES["hard-label"]).values():
            assert record.asked - record.spared == record.charged


def test_ours_needs_fewer_queries() -> None:
    """To change as few words as the printed form does in the end, a part of the queries is enough."""
    text = (" ".join("0" * 24),)
    charged = asked = spent = 0
    for seed in range(8):
        printed, ours = (
            attacked(SEARCHES[name], 14, text, "123456789", Nearby(), seed=seed)
            for name in ("hard-label-paper", "hard-label")
        )
        assert len(ours.changes) <= len(printed.changes)
        spent += next(step.charge for step in ours.improvements if step.fooled and step.changed <= len(printed.changes))
        charged, asked = charged + printed.charged, asked + printed.asked
    assert 2 * spent < charged
    assert 50 * spent < asked


def test_the_belief_finds_the_strong_word() -> None:
    """Labels of random texts, which flip exactly with one swap: the belief singles it out, and calls its flip likely."""
    (grid,) = Digits("1", "2", "3")([Example("x", ("0 0 0 0 0 0",), 0)])
    belief, rng = Belief(grid), np.random.default_rng(0)
    for _ in range(60):
        code = rng.integers(0, 4, 6).astype(np.int16)
        belief.learn(code, bool(code[2] == 3))
    strongest = belief.strongest(belief.mean[:-1], 1)
    assert strongest.tolist() == [0, 0, 3, 0, 0, 0]
    chance = belief.chance(np.zeros(6, np.int16))
    assert chance.argmax() == 2 * 3 + 2
    assert chance.max() > 0.5 > np.sort(chance)[-2]


def test_the_benchmark_reads_a_curve_from_one_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """The figures at a budget, read from the long run, are those of a run with that budget."""
    monkeypatch.setattr(benchmark, "use", ToyEncoder)
    monkeypatch.setattr(benchmark, "minilm", ToyEncoder)
    search, rates = SEARCHES["hard-label-paper"], set()
    for budget in (2, 4, 8, 16, 200):
        long, short = (
            [record for record in World(2, n=16, length=9, budget=most).run(search).values() if record.status != "skipped"]
            for most in (200, budget)
        )
        figures = benchmark._figures(long, budget, (0,))
        same = [key for key in figures if key != "asked"]  # which is over the whole run
        assert {key: figures[key] for key in same} == {key: benchmark._figures(short, None, (0,))[key] for key in same}
        won = [record for record in short if record.status == "fooled"]
        assert figures["success_rate"] == round(100 * len(won) / len(short), 2)
        assert figures["perturbed_pct"] == pytest.approx(np.mean([r.perturbed_pct or 0 for r in won]), abs=1e-3)
        assert figures["similarity"] == pytest.approx(np.mean([r.similarity or 0 for r in won]), abs=1e-3)
        rates.add(figures["success_rate"])
    assert len(rates) > 2
