"""The bigram model: probabilities that add up, counts worked out by hand, and the rule that keeps likely candidates."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest
from scrimp.spaces import Bigrams, CounterFitted
from scrimp.spaces.bigrams import DISCOUNT, EMBEDDED, START, Pairs, befores, load_pairs, read_pairs, save_pairs
from scrimp.spaces.count_bigrams import count, measure
from scrimp.spaces.rules import Field
from scrimp.spaces.tokens import words

TEXTS = ["the cat sat on the mat", "The cat ran. The dog sat!", "a dog"]


@pytest.fixture
def small() -> Pairs:
    return count(TEXTS, 100, 1)


def left(rule: Bigrams, text: str, **offers: str) -> dict[str, str]:
    """What the rule leaves of the candidates (words with commas between) of some words of a text."""
    found = words(text)
    positions = [at for at, word in enumerate(found) if word.text in offers]
    some = [tuple(offers[found[at].text].split(",")) for at in positions]
    kept = rule.sift(Field(0, text, found, ()), positions, some)
    return {found[at].text: ",".join(candidates) for at, candidates in zip(positions, kept, strict=True)}


def chance(pairs: Pairs, first: str, second: str) -> float:
    return math.exp(pairs.chances(pairs.ids([first]), pairs.ids([second]))[0])


def test_a_sentence_begins_anew() -> None:
    text = "Well done, Sir! He said: no<br />Yes"
    assert befores(text, words(text)) == ["", "well", "done", "", "he", "", ""]
    assert befores("", []) == []


def test_counts_by_hand(small: Pairs) -> None:
    # "the" is followed by cat (twice), mat and dog; cat follows one word only.
    seen, spared = (2 - DISCOUNT) / 4, 3 * DISCOUNT / 4
    follows = {"the": 2, "cat": 1, "sat": 2, "on": 1, "mat": 1, "ran": 1, "dog": 2, "a": 1, "any unknown word": 1}
    assert chance(small, "the", "cat") == pytest.approx(seen + spared * 1 / sum(follows.values()))
    assert chance(small, "the", "sat") == pytest.approx(spared * 2 / sum(follows.values()))
    assert chance(small, START, "the") == pytest.approx((3 - DISCOUNT) / 4 + 2 * DISCOUNT / 4 * 2 / sum(follows.values()))


@pytest.mark.parametrize("least", [1, 2])
@pytest.mark.parametrize("size", [5, 100])
def test_probabilities_add_up_to_one(size: int, least: int) -> None:
    pairs = count(TEXTS, size, least)
    everything = np.arange(1, len(pairs.words) + 1)
    for first in range(len(pairs.words)):
        odds = np.exp(pairs.chances(np.full(len(everything), first), everything))
        odds[-1] *= pairs.others  # that many words share the last number
        assert odds.sum() == pytest.approx(1)


def test_a_file_keeps_the_counts(tmp_path: Path, small: Pairs) -> None:
    save_pairs(tmp_path / "pairs.npz", small)
    again = read_pairs(tmp_path / "pairs.npz")
    assert (again.words, again.others) == (small.words, small.others)
    for name in ("keys", "totals", "before"):
        assert (getattr(again, name) == getattr(small, name)).all(), name
    assert again.counts == pytest.approx(small.counts, rel=0.1)
    save_pairs(tmp_path / "again.npz", again)
    assert (tmp_path / "again.npz").read_bytes() == (tmp_path / "pairs.npz").read_bytes()


def test_likely_candidates_stay_in_their_order() -> None:
    text = "He drank a strong coffee"
    assert left(Bigrams(2), text, strong="qwxz,powerful,big,strongish") == {"strong": "powerful,big"}
    assert left(Bigrams(2), text, strong="big,qwxz,powerful,strongish") == {"strong": "big,powerful"}
    assert left(Bigrams(4), text, strong="b,a") == {"strong": "b,a"}
    assert left(Bigrams(2), text, strong="qwxz,xqwz,zxqw") == {"strong": "qwxz,xqwz"}, "of equals the earlier"


def test_the_word_before_decides() -> None:
    assert left(Bigrams(1), "the united states", states="states,kingdom,time") == {"states": "states"}
    assert left(Bigrams(1), "for a long states", states="states,kingdom,time") == {"states": "time"}
    assert left(Bigrams(1), "the United. States", States="states,kingdom,time") != {"States": "states"}, "a new sentence"
    assert left(Bigrams(1), "at least new", new="united,last") == {"new": "last"}
    assert left(Bigrams(1), "At LEAST new", new="UNITED,Last") == {"new": "Last"}


def test_words_do_not_look_at_each_other() -> None:
    text = "a dull film with a fine cast"
    offers = {"dull": "boring,slow,grey,drab,blunt", "fine": "good,great,nice,small,penalty", "film": "movie,picture,flick"}
    together = left(Bigrams(2), text, **offers)
    assert together == {word: left(Bigrams(2), text, **{word: some})[word] for word, some in offers.items()}


def test_candidates_of_several_words_and_of_none() -> None:
    assert left(Bigrams(1), "he lives in york", york="new york,qwxz xqwz") == {"york": "new york"}
    assert left(Bigrams(1), "he lives", lives="!!!,is") == {"lives": "!!!"}  # nothing to doubt


def test_bad_values_and_names() -> None:
    with pytest.raises(ValueError, match="keep=0"):
        Bigrams(0)
    assert Bigrams(3).name != Bigrams(4).name
    assert Bigrams().name.startswith("bigrams(4,")


def test_the_card_tells_of_these_counts() -> None:
    import hashlib

    card = json.loads(EMBEDDED.with_suffix(".card.json").read_text())
    assert card["sha256"] == hashlib.sha256(EMBEDDED.read_bytes()).hexdigest()
    assert (card["words"], card["pairs"]) == (len(load_pairs().words), len(load_pairs().keys))
    assert EMBEDDED.stat().st_size < 1_200_000


def test_it_guesses_better_than_frequency() -> None:
    texts = [
        "the film is a complete waste of time",
        "it was one of the best films of the year",
        "he went back to the old house",
    ]
    found = measure(load_pairs(), texts)
    assert (found["words"], found["unknown"]) == (25, 0)
    assert found["likeliest"]["after the word before"] > found["likeliest"]["alone"] > found["likeliest"]["chance"]
    source = CounterFitted(8)
    text = texts[0]
    assert found["compared"] >= sum(len(some) > 1 for some in source(Field(0, text, words(text), ()), [1, 4])) > 0
