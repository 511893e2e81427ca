"""Learning along the way: what finished examples showed guides later ones, whatever the width, and after a resume too."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scrimp import Example, attack, load_victim
from scrimp.benchmarks.run import as_examples
from scrimp.ranking.learning import Learning
from scrimp.ranking.prior import choose_prior
from scrimp.spaces import SPACES
from scrimp.victims import HELD_OUT, wrap

PLAIN: dict[str, Any] = {"guide": None, "judge": None, "budget": 60}


def rows(n: int) -> list[Example]:
    return as_examples(str(HELD_OUT), load_victim("wordcnn-mr"))[:n]


@pytest.mark.parametrize("recipe", ["scrimp", "scrimp-labels"])
def test_width_and_batch_change_nothing(recipe: str) -> None:
    settings = PLAIN | {"labels_only": recipe == "scrimp-labels", "learn": 8}
    wide = attack("wordcnn-mr", rows(24), recipe, width=64, **settings)
    slim = attack("wordcnn-mr", rows(24), recipe, width=1, batch=3, **settings)
    assert [record.outcome() for record in wide] == [record.outcome() for record in slim]


def test_a_generation_is_guided_by_the_ones_before_it_alone() -> None:
    plain = attack("wordcnn-mr", rows(16), "scrimp", prior="none", **PLAIN)
    learnt = attack("wordcnn-mr", rows(16), "scrimp", prior="none", learn=8, **PLAIN)
    longer = attack("wordcnn-mr", rows(24), "scrimp", prior="none", learn=8, **PLAIN)

    def texts(results: Any) -> list[Any]:
        return [(record.adversarial, record.charged) for record in results]

    assert texts(longer)[:16] == texts(learnt)
    assert texts(learnt)[8:] != texts(plain)[8:]


def test_a_resumed_run_learns_the_same(tmp_path: Path) -> None:
    whole = attack("wordcnn-mr", rows(24), "scrimp", learn=8, out=tmp_path / "whole", **PLAIN)

    class Stop(Exception):
        pass

    seen: list[str] = []

    def stop(record: Any) -> None:
        seen.append(record.id)
        if len(seen) == 13:
            raise Stop

    with pytest.raises(Stop):
        attack("wordcnn-mr", rows(24), "scrimp", learn=8, out=tmp_path / "half", report=stop, **PLAIN)
    again = attack("wordcnn-mr", rows(24), "scrimp", learn=8, out=tmp_path / "half", resume=True, **PLAIN)
    assert [record.outcome() for record in whole] == [record.outcome() for record in again]


@pytest.mark.parametrize("gives", ["scores", "label"])
def test_it_learns_which_words_count(gives: Any) -> None:
    """A victim that minds one word only: it is known after the first generation."""

    def victim(texts: list[str]) -> Any:
        if gives == "label":
            return [0 if "movie" in text else 1 for text in texts]
        return [[0.9, 0.1] if "movie" in text else [0.1, 0.9] for text in texts]

    texts = [
        "a good movie with a fine cast",
        "this warm movie has good songs",
        "one more fine movie",
        "an old movie about war",
    ]
    examples = [Example(str(i), (text,), 0) for i, text in enumerate(texts)]
    learning = Learning(None, 4)
    space = SPACES["wordnet"]
    grids = space(examples)
    before = learning(examples, grids, None)
    assert all(not gain[np.isfinite(gain)].any() for gain in before)
    recipe = "scrimp" if gives == "scores" else "scrimp-labels"
    settings = PLAIN | {"prior": "none", "space": space, "budget": 200}
    done = attack(wrap(victim, "movie@1", gives=gives), examples, recipe, **settings)
    assert len(list(done.fooled)) == 4
    learning.take_in(list(done))
    for grid, gain in zip(grids, learning(examples, grids, None), strict=True):
        slot = list(grid.slot_words).index("movie")
        assert gain[slot].max() > 0
        assert gain[slot].max() == gain[np.isfinite(gain)].max()


def test_a_prior_is_corrected_not_replaced() -> None:
    real = load_victim("wordcnn-mr")
    prior = choose_prior("auto", real)
    assert prior is not None
    learning = Learning(prior, 8)
    assert learning.name == "linear(imdb)+learning(8)"
    assert learning.data == prior.data
    examples = rows(40)
    grids = SPACES["wordnet"](examples)
    plain = prior(examples, grids, None)
    same = learning(examples, grids, None)
    assert all((a == b).all() for a, b in zip(plain, same, strict=True))
    learning.take_in(list(attack(real, examples, "scrimp", **PLAIN)))
    pairs = [
        np.corrcoef(a[np.isfinite(a)], b[np.isfinite(a)])[0, 1]
        for a, b in zip(plain, learning(examples, grids, None), strict=True)
        if np.isfinite(a).sum() > 10
    ]
    assert 0.5 < float(np.mean(pairs)) < 0.999


def test_a_generation_holds_an_example() -> None:
    with pytest.raises(ValueError, match="at least 1 example"):
        Learning(None, 0)
