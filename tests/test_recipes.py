"""Every recipe in every shape of task: one text or a pair, any wrong label or one wanted, and texts that lead nowhere."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
import scrimp
from scrimp import RECIPES, Example
from scrimp.attacks.goals import Target
from scrimp.attacks.record import Record
from scrimp.benchmarks import compare, thesis
from scrimp.benchmarks.run import attack

LABELS = ("contradiction", "entailment", "neutral")
PAIR = ("A happy little boy plays in the big garden.", "The happy child quickly runs near a small house.")
every_recipe = pytest.mark.parametrize("recipe", RECIPES)


def scores(text: Any) -> list[float]:
    """Class 1, unless enough words are gone: then class 0, and class 2 where `happy` is among the lost ones."""
    joined = " ".join([text] if isinstance(text, str) else text).lower()
    there = sum(word in joined for word in ("boy", "little", "garden", "child", "small", "quickly"))
    gone = 6 - there
    odds = [0.1 + 0.12 * gone, 0.8 - 0.1 * gone, 0.1 + 0.3 * ("happy" not in joined)]
    return [odd / sum(odds) for odd in odds]


class Counting:
    """Remembers what it was sent."""

    def __init__(self) -> None:
        self.sent: list[Any] = []

    def __call__(self, texts: Sequence[Any]) -> list[list[float]]:
        self.sent += texts
        return [scores(text) for text in texts]


def run(recipe: str, example: Example, budget: int = 150, **settings: Any) -> Record:
    """One attack, held to the account: within the budget, no text twice, and a success that a fresh victim confirms."""
    counting = Counting()
    victim = settings.pop("victim", None) or scrimp.wrap(counting, "counting@1", LABELS, fields=len(example.text))
    labels_only = RECIPES[recipe].search.needs == "label"
    (record,) = attack(victim, [example], recipe, budget=budget, labels_only=labels_only, judge=None, **settings)
    assert record.status in ("fooled", "held"), record.error or record.reason
    assert record.charged <= budget
    assert len(counting.sent) in (0, record.charged)  # 0: another victim was given
    assert len(set(map(str, counting.sent))) == len(counting.sent)
    if record.adversarial is not None and counting.sent:
        fresh = scores(record.adversarial)
        assert fresh.index(max(fresh)) == record.label_after
    return record


@every_recipe
@pytest.mark.parametrize("editable", [(0,), (1,), (0, 1)])
def test_pairs_change_where_they_may(recipe: str, editable: tuple[int, ...]) -> None:
    record = run(recipe, Example("pair", PAIR, 1, editable=editable), trace=True)
    for step in record.trace:
        assert all(step["text"][field] == PAIR[field] for field in (0, 1) if field not in editable)
    assert {change.field for change in record.changes} <= set(editable)
    assert record.charged > 1


@every_recipe
def test_a_wanted_label_is_the_one_that_is_reached(recipe: str) -> None:
    text = (" ".join(PAIR),)
    record = run(recipe, Example("wanted", text, 1), budget=400, goal=Target(0))
    assert record.status == "held" or record.label_after == 0
    already = run(recipe, Example("never", text, 1), budget=40, goal=Target(2))
    assert already.status == "held" or already.label_after == 2


def test_most_recipes_reach_the_wanted_label() -> None:
    """So that the test above does not hold for want of successes."""
    text = (" ".join(PAIR),)
    reached = [
        run(recipe, Example("wanted", text, 1), budget=400, goal=Target(0)).status for recipe in ("pwws", "pso", "scrimp")
    ]
    assert "fooled" in reached


@every_recipe
def test_one_word_no_word_and_a_victim_that_never_moves(recipe: str) -> None:
    constant = scrimp.wrap(lambda texts: [[0.2, 0.6, 0.2]] * len(texts), "constant@1", LABELS)
    for text in ("boring", "a happy little boy plays in the garden", "", "zzqx vvkw"):
        record = run(recipe, Example("e", (text,), 1), budget=120, victim=constant)
        assert record.status == "held"
        if not text:
            assert (record.charged, record.reason) == (1, "the text has no words")


@pytest.mark.parametrize("recipe", [name for name, recipe in RECIPES.items() if recipe.attention])
def test_an_attention_model_that_knows_no_word(recipe: str) -> None:
    """Its vocabulary is English reviews; of these words it knows none, so all weigh the same and the attack goes on."""
    strange = ("schlecht langweilig hund",)
    space = _Strange()
    victim = scrimp.wrap(lambda texts: [[0.9, 0.1] if "x" in t.split()[-1] else [0.1, 0.9] for t in texts], "strange@1")
    (record,) = attack(victim, [Example("e", strange, 1)], recipe, space=space, attention="imdb", judge=None)
    assert record.status == "fooled"
    assert [change.before for change in record.changes] == ["hund"]


class _Strange:
    name = "strange"

    def __call__(self, examples: Sequence[Example]) -> list[Any]:
        from scrimp.spaces.grid import Slot, WordGrid
        from scrimp.spaces.tokens import words

        grids = []
        for example in examples:
            found = words(example.text[0])
            slots = [Slot(0, i, w.start, w.end, (w.text + "y", w.text + "x")) for i, w in enumerate(found)]
            grids.append(WordGrid(example.text, {0: found}, slots))
        return grids


def test_names_come_in_three_forms() -> None:
    for name in ("hard-label", "attention-lsh", "context-aware", "textfooler", "pwws", "pso", "genetic", "textbugger"):
        assert {name, f"{name}@paper", f"{name}@released"} <= set(RECIPES)
        assert RECIPES[name].paper


def test_rows_of_a_comparison_are_kept(tmp_path: Any) -> None:
    out = tmp_path / "record.json"
    common = ["--n", "3", "--budget", "8", "--out", str(out)]
    for names, more in (("greedy-wordnet", []), ("pwws", ["--add"]), ("greedy-wordnet", ["--add"])):
        compare.main([*common, "--recipes", names, *more])
    import json

    assert [row["recipe"] for row in json.loads(out.read_text())["rows"]] == ["pwws", "greedy-wordnet"]
    with pytest.raises(ValueError, match="differs in budget"):
        compare.main(["--n", "3", "--budget", "9", "--out", str(out), "--recipes", "pwws", "--add"])


def test_the_thesis_is_compared_on_one_space() -> None:
    for baseline in thesis.BASELINES:
        forms = thesis.contenders(baseline)
        assert forms[0].name == f"{baseline}@released"
        assert len({(form.space.name, form.floor, form.window) for form in forms}) == 1
        assert len(forms) == 6
    assert thesis.printed("pwws") == {"printed_saved": [64.5, 66.8], "printed_lost": [1.1, 0.0]}
