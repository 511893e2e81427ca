"""Hashing: the vector path says what a slow reference says, alike goes with alike, and one of each bucket is paid for."""

from __future__ import annotations

import sys
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scrimp.attacks.types import Ask, Bools, Floats, Scored
from scrimp.ranking.lsh import (
    AS_PRINTED,
    AS_RELEASED,
    MOST_BITS,
    Choose,
    Hashing,
    Ints,
    MinHashes,
    Projections,
    buckets,
    by_buckets,
    fewest,
    gains,
    most,
    representatives,
)
from scrimp.ranking.saliency import single_swaps
from scrimp.search.greedy import greedy
from scrimp.spaces.grid import Slot, WordGrid
from scrimp.spaces.tokens import words

from .toys import ToyEncoder, World

law = settings(deadline=None, max_examples=100, derandomize=True)
FAMILY = ("film", "films", "filmed", "movie", "movies", "picture", "pictures", "pictured", "flick")
hashings = pytest.mark.parametrize("hashing", [AS_PRINTED, AS_RELEASED, MinHashes()], ids=lambda one: one.name)


def slow_sketch(vectors: Sequence[Sequence[float]], hashing: Projections, rng: np.random.Generator) -> list[list[int]]:
    """One dot product at a time, one bit at a time."""
    planes = rng.standard_normal((len(vectors[0]), hashing.rounds * hashing.bits)).tolist()
    rounds = []
    for start in range(0, hashing.rounds * hashing.bits, hashing.bits):
        numbers = []
        for vector in vectors:
            number = 0
            for bit in range(hashing.bits):
                if sum(x * row[start + bit] for x, row in zip(vector, planes, strict=True)) >= 0:
                    number += 2**bit
            numbers.append(number)
        rounds.append(numbers)
    return rounds


def slow_buckets(hashes: Sequence[Sequence[int]], slots: Sequence[int], choose: Choose) -> dict[int, list[list[int]]]:
    """For each slot the rows of each bucket of the first round that has the fewest, or the most."""
    found = {}
    for slot in sorted(set(slots)):
        rounds = []
        for numbers in hashes:
            groups: defaultdict[int, list[int]] = defaultdict(list)
            for row, number in enumerate(numbers):
                if slots[row] == slot:
                    groups[number].append(row)
            rounds.append([groups[number] for number in sorted(groups)])
        sizes = [len(groups) for groups in rounds]
        found[slot] = rounds[sizes.index(min(sizes) if choose is fewest else max(sizes))]
    return found


@law
@given(st.integers(1, 40), st.integers(1, 9), st.integers(1, 6), st.integers(1, 9), st.integers(0, 2**32))
@example(3, 4, 2, MOST_BITS, 0)
def test_one_product_is_as_good_as_one_bit_at_a_time(n: int, width: int, rounds: int, bits: int, seed: int) -> None:
    vectors = np.random.default_rng(seed).normal(size=(n, width)).astype(np.float32)
    hashing = Projections(rounds, bits)
    found = hashing.sketch(vectors, np.random.default_rng(seed))
    assert found.shape == (rounds, n)
    assert found.tolist() == slow_sketch(vectors.tolist(), hashing, np.random.default_rng(seed))


@law
@given(st.lists(st.integers(0, 5), max_size=40), st.integers(1, 5), st.sampled_from([fewest, most]), st.integers(0, 2**32))
@example([], 2, fewest, 0)
@example([4], 1, most, 0)
@example([0, 0, 0, 3, 3], 4, fewest, 1)
def test_buckets_agree_with_a_slow_reference(slots: list[int], rounds: int, choose: Choose, seed: int) -> None:
    rng = np.random.default_rng(seed)
    hashes = rng.integers(0, 4, (rounds, len(slots)))
    found = buckets(hashes, np.array(slots, np.int64), choose)
    expected = [rows for groups in slow_buckets(hashes.tolist(), slots, choose).values() for rows in groups]
    assert [np.flatnonzero(found == number).tolist() for number in range(len(expected))] == expected
    assert found.max(initial=-1) + 1 == len(expected)
    chosen = representatives(found, rng)
    assert [row in rows for row, rows in zip(chosen.tolist(), expected, strict=True)] == [True] * len(expected)


def test_the_first_round_wins_a_tie() -> None:
    counts: Ints = np.array([[3, 2, 1], [2, 3, 1], [2, 3, 1]])
    assert fewest(counts).tolist() == [1, 0, 0]
    assert most(counts).tolist() == [0, 1, 0]


def test_every_member_of_a_bucket_has_the_same_chance() -> None:
    found, rng = np.array([0, 1, 1, 1, 1]), np.random.default_rng(0)
    drawn = Counter(int(representatives(found, rng)[1]) for _ in range(2000))
    assert set(drawn) == {1, 2, 3, 4}
    assert min(drawn.values()) > 430  # 500 each; more than three standard deviations below


def test_equal_vectors_share_every_bucket_and_opposite_ones_none() -> None:
    vector = np.random.default_rng(1).normal(size=(1, 16))
    hashes = AS_PRINTED.sketch(np.concatenate([vector, vector * 3, -vector]), np.random.default_rng(2))
    assert (hashes[:, 0] == hashes[:, 1]).all()
    assert (hashes[:, 0] + hashes[:, 2] == 2**5 - 1).all()


def test_a_bit_is_shared_as_often_as_the_angle_says() -> None:
    """Charikar: the chance that a random plane separates two vectors is their angle over pi."""
    angle = 1.0
    vectors = np.array([[1.0, 0.0, 0.0], [np.cos(angle), np.sin(angle), 0.0]])
    hashes = Projections(4000, 1).sketch(vectors, np.random.default_rng(3))
    assert abs((hashes[:, 0] != hashes[:, 1]).mean() - angle / np.pi) < 0.03


def test_the_printed_rule_asks_less_than_the_released_one() -> None:
    """Twenty candidates at a cosine of 0.8 each, worked out on isotropic vectors: about 2.3 against 5.2 queries a word."""
    rng = np.random.default_rng(4)
    slots = np.repeat(np.arange(50), 20)
    vectors = np.sqrt(0.8) * rng.normal(size=(50, 512))[slots] + np.sqrt(0.2) * rng.normal(size=(1000, 512))
    per_word = {
        hashing.name: (buckets(hashing.sketch(vectors, rng), slots, hashing.choose).max() + 1) / 50
        for hashing in (AS_PRINTED, AS_RELEASED)
    }
    assert 1.8 < per_word["lsh(15,5,fewest)"] < 2.9
    assert 4.6 < per_word["lsh(5,3,most)"] < 5.8


def test_the_same_rng_gives_the_same_hashes() -> None:
    vectors = np.random.default_rng(5).normal(size=(9, 8))
    first, again, other = (
        np.concatenate([AS_RELEASED.sketch(vectors, rng), MinHashes().sketch(FAMILY, rng)])
        for rng in map(np.random.default_rng, (1, 1, 2))
    )
    assert (first == again).all()
    assert (first[:5] != other[:5]).any()
    assert (first[5:] != other[5:]).any()


# MinHash


def test_grams() -> None:
    hashing = MinHashes()
    assert hashing.grams("Film") == ["\x02fi", "fil", "ilm", "lm\x03"]
    assert hashing.grams("a") == ["\x02a\x03"]
    assert hashing.grams("") == ["\x02\x03"]
    assert replace(hashing, letters=1).grams("it") == ["\x02", "i", "t", "\x03"]


def test_minima_agree_as_often_as_grams_are_shared() -> None:
    """Broder: the chance that two sets have one minimum is their Jaccard similarity."""
    hashing = MinHashes(2000)
    found = hashing.sketch(("pictures", "pictured", "movie", "PICTURES"), np.random.default_rng(0))
    shared, both = (set(hashing.grams("pictures")) & set(hashing.grams("pictured")), 10)
    assert len(shared) == 6  # of 8 + 8 - 6 grams
    assert abs((found[:, 0] == found[:, 1]).mean() - len(shared) / both) < 0.04
    assert (found[:, 0] == found[:, 2]).mean() == 0
    assert (found[:, 0] == found[:, 3]).all()


def test_more_rows_make_more_buckets() -> None:
    slots = np.zeros(len(FAMILY), np.int64)
    few, many = (
        buckets(MinHashes(40, rows).sketch(FAMILY, np.random.default_rng(0)), slots, fewest).max() + 1 for rows in (1, 4)
    )
    assert 3 <= few < many <= len(FAMILY)


def test_awkward_words_have_buckets() -> None:
    found = MinHashes().sketch(("", "😀", "a\ud800b", "two words", "e\u0301"), np.random.default_rng(0))
    assert found.shape == (15, 5)
    assert MinHashes().sketch((), np.random.default_rng(0)).shape == (15, 0)


def test_without_datasketch_the_error_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "datasketch", None)
    with pytest.raises(ModuleNotFoundError, match=r"minhash\(15,1,fewest,3\) needs datasketch: pip install 'scrimp\[datas"):
        MinHashes().sketch(FAMILY, np.random.default_rng(0))


@pytest.mark.parametrize("wrong", [{"rounds": 0}, {"bits": 0}, {"bits": MOST_BITS + 1}])
def test_bad_projections_are_refused_at_once(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="at least 1 round of 1 to 62 bits, got rounds="):
        Projections(**wrong)


@pytest.mark.parametrize("wrong", [{"rounds": 0}, {"rows": 0}, {"letters": -1}])
def test_bad_minhashes_are_refused_at_once(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="at least 1 round, row and letter, got rounds="):
        MinHashes(**wrong)


def test_hashings_that_differ_have_different_names() -> None:
    all_of_them: list[Hashing] = [AS_PRINTED, AS_RELEASED, Projections(15, 5, most), Projections(5, 15)]
    all_of_them += [MinHashes(), MinHashes(5), MinHashes(rows=2), MinHashes(letters=2), MinHashes(choose=most)]
    assert len({one.name for one in all_of_them}) == len(all_of_them)


# the ranking


def family_grid(n: int = 3) -> WordGrid:
    text = " ".join("x" * n)
    found = words(text)
    return WordGrid((text,), {0: found}, [Slot(0, i, w.start, w.end, FAMILY[: 9 - i]) for i, w in enumerate(found)])


def replies(n: int, vectors: NDArray[np.float32], allowed: Bools, score: Floats) -> Scored:
    yes = np.ones(n, bool)
    return Scored(allowed, yes, ~yes, np.full(n, np.nan), vectors, score, score)


@hashings
def test_one_of_each_bucket_is_paid_for(hashing: Hashing) -> None:
    grid, rng = family_grid(), np.random.default_rng(0)
    asking = gains(grid, hashing, rng)
    ask = next(asking)
    codes = single_swaps(grid, np.arange(3))
    assert (ask.codes == codes).all()
    assert (ask.pay, ask.encode) == (False, hashing.encodes)
    allowed = np.ones(len(codes), bool)
    allowed[codes[:, 1] > 0] = False  # nothing of the second slot
    allowed[0] = False
    vectors = rng.normal(size=(len(codes), 8)).astype(np.float32) * (1.0 if hashing.encodes else np.nan)
    paid = asking.send(replies(len(codes), vectors, allowed, np.full(len(codes), -np.inf)))
    assert paid.pay
    rows = [int(np.flatnonzero((codes == code).all(1))[0]) for code in paid.codes]
    assert len(set(rows)) == len(rows)
    assert allowed[rows].all()
    assert set(codes[rows].argmax(1)) == {0, 2}
    score = np.arange(len(rows), dtype=np.float64)
    with pytest.raises(StopIteration) as end:
        asking.send(replies(len(rows), vectors[rows], np.ones(len(rows), bool), score))
    best = [
        max((s for s, r in zip(score, rows, strict=True) if codes[r].argmax() == slot), default=-np.inf)
        for slot in (0, 1, 2)
    ]
    assert end.value.value.tolist() == best


def test_nothing_is_paid_when_nothing_is_allowed() -> None:
    grid = family_grid()
    asking = by_buckets(AS_PRINTED).run(grid, np.random.default_rng(0))
    n = len(next(asking).codes)
    with pytest.raises(StopIteration) as end:
        asking.send(replies(n, np.zeros((n, 4), np.float32), np.zeros(n, bool), np.zeros(n)))
    assert end.value.value.tolist() == [0, 1, 2]


def test_projections_need_a_guide() -> None:
    asking = by_buckets(AS_PRINTED).run(family_grid(), np.random.default_rng(0))
    n = len(next(asking).codes)
    with pytest.raises(ValueError, match="reads sentence vectors; give the engine a guide encoder, or hash by MinHashes"):
        asking.send(replies(n, np.zeros((n, 0), np.float32), np.ones(n, bool), np.zeros(n)))


@hashings
def test_it_ranks_under_the_engine_whatever_the_width(hashing: Hashing) -> None:
    search = greedy(by_buckets(hashing))
    assert search.name == f"greedy-{hashing.name}"
    world = World(seed=3, n=12, budget=60)
    narrow, wide = world.run(search, width=1), world.run(search, width=64)
    assert {name: record.outcome() for name, record in narrow.items()} == {n: r.outcome() for n, r in wide.items()}
    assert "fooled" in {record.status for record in wide.values()}


def test_fewer_queries_than_candidates() -> None:
    """Of texts whose every candidate encodes alike, one a slot is paid for."""

    class Same(ToyEncoder):
        def __call__(self, texts: Sequence[str]) -> NDArray[np.float32]:
            return np.tile(np.array([0.6, 0.8], np.float32), (len(texts), 1))

    world = World(seed=3, n=4, budget=100)
    grids = world.space(world.examples)
    asked = []
    for grid in grids:
        if not len(grid.sizes):
            continue
        asking = gains(grid, AS_RELEASED, np.random.default_rng(0))
        n = len(next(asking).codes)
        ask: Ask = asking.send(replies(n, Same()([""] * n), np.ones(n, bool), np.zeros(n)))
        asked.append(len(ask.codes) == len(grid.sizes))
    assert asked
    assert all(asked)
