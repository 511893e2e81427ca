"""Spaces: texts are rebuilt character for character, rules hold, candidates fit, and nothing depends on the batch."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
import regex
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scrimp.attacks.types import DROP, KEEP, UNKNOWN, Change, Codes, Example, Text
from scrimp.spaces import (
    SPACE_NOTES,
    SPACES,
    MinLength,
    PartOfSpeech,
    Protect,
    ShareChanged,
    Space,
    StopWords,
    WordNet,
    encoders,
    minilm,
    space_named,
    tags,
    use,
    wordnet,
)
from scrimp.spaces.encoders import ENCODERS, OneByOne, SentenceEncoder, similarity
from scrimp.spaces.grid import MOST, UNKNOWN_WORD, Slot, WordGrid
from scrimp.spaces.inflect import guess, inflect
from scrimp.spaces.rules import Field, Rule, outside
from scrimp.spaces.tokens import is_word, words

law = settings(deadline=None, max_examples=150, derandomize=True)
slow_law = settings(law, max_examples=60)

ANY = Space(WordNet(pos=False))  # no tagger and no rule
TAGGED, UNTAGGED = SPACES["wordnet"], SPACES["wordnet-any"]
both = pytest.mark.parametrize("space", [TAGGED, UNTAGGED], ids=["wordnet", "wordnet-any"])
SENTENCES = (
    "The movies were wonderful.",
    "She bought two cars and enjoyed driving.",
    "HE BUYS A BIG CAR; She watched Old films!",
    "I don't like the children's well-known stories, but it's a success.",
    "<br /><br />A café’s naïve façade — 10 out of 10 😀👍🏽 &quot;great&quot;",
    "The bigger dog ran faster than the smallest mice.",
    "good",
    "",
    "the and of",
    "שלום world, \u202ereversed words\u202c\0 here \ud800.",
)
PIECES = (
    *("good", "Movie", "FILMS", "x", "10", "é", "e\u0301", "don't", "it’s", "well-known", "שלום", "سلام", "नमस्ते", "日本"),
    *(" ", " ", "  ", *"\n\t\u00a0\u3000.,-'’_\0\u202e\u200d\ufeff\ud800"),
    *("😀", "👩‍👩‍👧", "1️⃣", "\u0301", "<br />", "<b>", "</i>", "&amp;", "&#39;", "<", ">", "&", ";", "/"),
)
every_character = st.characters(exclude_categories=())  # lone surrogates too
any_text = st.one_of(st.text(every_character, max_size=40), st.lists(st.sampled_from(PIECES), max_size=24).map("".join))


def grid_of(space: Space, *text: str, **more: Any) -> WordGrid:
    grid = space([Example("one", text, 0, **more)])[0]
    assert isinstance(grid, WordGrid)
    return grid


def open_words(space: Space, *text: str, **more: Any) -> list[str]:
    """The words that may change."""
    return list(grid_of(space, *text, **more).slot_words)


def candidates(space: Space, text: str, word: str) -> tuple[str, ...]:
    grid = grid_of(space, text)
    return dict(zip(grid.slot_words, grid.candidates, strict=True)).get(word, ())


def codes_of(*rows: Sequence[int]) -> Codes:
    return np.array(rows, np.int16)


def contents(grid: object) -> tuple[Any, ...]:
    assert isinstance(grid, WordGrid)
    return grid.text, grid.slots, grid.n_words, grid.most_changed, grid.why_empty


def forget() -> None:
    tags._memo.clear()
    wordnet._memo.cache_clear()


# words


@law
@given(any_text)
@example("")
@example("a\ud800b")
@example("x" * 3000)
def test_words_and_gaps_rebuild_the_text(text: str) -> None:
    found = words(text)
    rebuilt, at, gaps = "", 0, []
    for start, end, word in found:
        assert at <= start < end
        gaps.append(text[at:start])
        rebuilt += text[at:start] + word
        at = end
    assert rebuilt + text[at:] == text
    assert all(text[start:end] == word and is_word(word) for start, end, word in found)
    if "<" not in text and "&" not in text:
        assert not any(regex.search(r"[\p{L}\p{N}]", gap) for gap in [*gaps, text[at:]])
    # Only an apostrophe or hyphen that has a letter on both sides joins words: neighbours cannot be one word.
    assert not any(is_word(text[a.start : b.end]) for a, b in pairwise(found))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", []),
        (" \t\n", []),
        ("...!?", []),
        ("😀👍🏽 ok", ["ok"]),
        ("cafe\u0301 naïve", ["cafe\u0301", "naïve"]),
        ("\u0301alone", ["alone"]),
        ("שלום, עולם", ["שלום", "עולם"]),
        ("नमस्ते दुनिया", ["नमस्ते", "दुनिया"]),
        ("a\0b", ["a", "b"]),
        ("a\ud800b", ["a", "b"]),
        ("don't it’s rock'n'roll", ["don't", "it’s", "rock'n'roll"]),
        ("'quoted' dogs' -dash- a--b", ["quoted", "dogs", "dash", "a", "b"]),
        ("well-known state-of-the-art x-", ["well-known", "state-of-the-art", "x"]),
        ("snake_case 3.14 U.S.", ["snake", "case", "3", "14", "U", "S"]),
        ("bad<br /><br/>good</i>end<BR>", ["bad", "good", "end"]),
        ('see <a href="http://x.org">this link</a> now', ["see", "this", "link", "now"]),
        ("R&amp;B &quot;x&quot; &#39; &#x2F; &frac12; &nbsp;", ["R", "B", "x"]),
        ("a < b and c > d; x & y;", ["a", "b", "and", "c", "d", "x", "y"]),
        ("i <3 you & me", ["i", "3", "you", "me"]),
    ],
)
def test_words_of_awkward_texts(text: str, expected: list[str]) -> None:
    assert [word.text for word in words(text)] == expected


@pytest.mark.parametrize(("text", "answer"), [("well-known", True), ("e\u0301", True), ("two words", False), ("", False)])
def test_is_word_means_exactly_one(text: str, answer: bool) -> None:
    assert is_word(text) is answer
    assert not is_word(text + ".")
    assert not is_word(text + "\n")


# the grid


@st.composite
def grids(draw: st.DrawFn) -> WordGrid:
    """Any text of one to three fields, any words of some fields as slots, any candidates."""
    text = tuple(draw(st.lists(any_text, min_size=1, max_size=3)))
    found = {field: words(one) for field, one in enumerate(text) if draw(st.booleans())}
    other = st.one_of(st.sampled_from(("", "new", "two words", "😀", UNKNOWN_WORD)), st.text(max_size=4))
    slots = []
    for field, in_field in found.items():
        closed = draw(st.sets(st.integers(0, 20)))
        for position, (start, end, word) in enumerate(in_field):
            if position in closed:
                continue
            choices = draw(st.lists(other.filter(word.__ne__), min_size=1, max_size=3, unique=True))
            slots.append(Slot(field, position, start, end, tuple(choices)))
    return WordGrid(text, found, slots, draw(st.integers(0, 100)) / 100)


def random_codes(grid: WordGrid, n: int, seed: int, low: int = UNKNOWN) -> Codes:
    rng = np.random.default_rng(seed)
    codes = rng.integers(low, grid.sizes + 1, (n, len(grid.slots)))
    return np.where(rng.random(codes.shape) < rng.random((n, 1)), codes, KEEP).astype(np.int16)


def slowly(grid: WordGrid, code: Iterable[int]) -> Text:
    """One text, character by character: which ones go, and what comes in their place."""
    gone: list[set[int]] = [set() for _ in grid.text]
    new: list[dict[int, str]] = [{} for _ in grid.text]
    for slot, choice in zip(grid.slots, code, strict=True):
        if choice == KEEP:
            continue
        text, leaving = grid.text[slot.field], set(range(slot.start, slot.end))
        if choice > 0:
            new[slot.field][slot.start] = slot.candidates[choice - 1]
        elif choice == UNKNOWN:
            new[slot.field][slot.start] = UNKNOWN_WORD
        elif slot.end < len(text) and text[slot.end].isspace():
            leaving.add(slot.end)
        elif slot.start > 0 and text[slot.start - 1].isspace():
            leaving.add(slot.start - 1)
        gone[slot.field] |= leaving
    return tuple(
        "".join(new[i].get(at, "") + ("" if at in gone[i] else letter) for at, letter in enumerate(field))
        for i, field in enumerate(grid.text)
    )


@law
@given(grids(), st.integers(0, 3))
def test_a_row_of_zeros_is_the_very_same_text(grid: WordGrid, n: int) -> None:
    texts = grid.decode(np.zeros((n, len(grid.slots)), np.int16))
    assert len(texts) == n
    assert all(text is grid.text for text in texts)


@law
@given(grids(), st.integers(0, 2**32))
def test_decode_agrees_with_a_slow_reference(grid: WordGrid, seed: int) -> None:
    codes = random_codes(grid, 6, seed)
    assert grid.decode(codes) == [slowly(grid, code) for code in codes.tolist()]


@law
@given(grids(), st.integers(0, 2**32))
def test_fields_without_a_change_are_the_same_strings(grid: WordGrid, seed: int) -> None:
    codes = random_codes(grid, 4, seed)
    for code, text in zip(codes, grid.decode(codes), strict=True):
        touched = {grid.slots[place].field for place in np.flatnonzero(code)}
        assert all(text[i] is grid.text[i] for i in range(len(text)) if i not in touched)


@pytest.mark.parametrize(
    ("text", "code", "expected"),
    [
        ("one two three", (DROP, 0, 0), "two three"),
        ("one two three", (0, DROP, 0), "one three"),
        ("one two three", (0, 0, DROP), "one two"),
        ("one two three", (DROP, DROP, DROP), ""),
        ("one, two. three", (0, DROP, 0), "one,. three"),
        ("one\ttwo  three", (DROP, 0, DROP), "two "),
        ("(one)(two)(three)", (DROP, DROP, DROP), "()()()"),
        ("one two three", (UNKNOWN, 2, DROP), "[UNK] B"),
        ("one two, three", (1, 0, UNKNOWN), "A two, [UNK]"),
    ],
)
def test_probes(text: str, code: tuple[int, ...], expected: str) -> None:
    grid = toy(text)
    assert grid.decode(codes_of(code)) == [(expected,)]


def toy(*text: str, share: float = 1.0, choices: tuple[str, ...] = ("A", "B")) -> WordGrid:
    """Every word is a slot with the same candidates."""
    found = {field: words(one) for field, one in enumerate(text)}
    slots = [Slot(f, p, w.start, w.end, choices) for f, ws in found.items() for p, w in enumerate(ws)]
    return WordGrid(text, found, slots, share)


@law
@given(st.integers(1, 60), st.integers(0, 100), st.integers(0, 2**32))
@example(100, 29, 0)  # 0.29 * 100 < 29
def test_the_share_counts_replaced_words_only(n: int, percent: int, seed: int) -> None:
    grid = toy("w " * n, share=percent / 100)
    codes = random_codes(grid, 8, seed)
    most = max(1, n * percent // 100)  # whole numbers: no float is involved
    assert grid.legal(codes).tolist() == [sum(choice > 0 for choice in code) <= most for code in codes.tolist()]
    exactly = np.zeros((2, n), np.int16)
    exactly[0, :most], exactly[1, : most + 1] = 1, 1
    assert grid.legal(exactly).tolist() == [True, most >= n]


def test_the_share_is_of_all_words_of_the_editable_fields() -> None:
    text = ("a premise of many many words", "zzz the cat sat zzz zzz zzz zzz zzz zzz")
    grid = grid_of(ANY.with_rules(ShareChanged(0.2)), *text, editable=(1,))
    assert grid.n_words == 10
    assert len(grid.slots) < 10
    assert grid.most_changed == 2
    assert grid_of(ANY.with_rules(ShareChanged(0.2), ShareChanged(0.1)), *text, editable=(1,)).most_changed == 1


@law
@given(grids(), st.integers(0, 2**32))
def test_changes_tell_what_decode_did(grid: WordGrid, seed: int) -> None:
    code = random_codes(grid, 1, seed)[0]
    told = grid.changes(code)
    assert told == sorted(told, key=lambda change: (change.field, change.start))
    assert len(told) == np.count_nonzero(code)
    fields = list(grid.text)
    for change, place in reversed(list(zip(told, np.flatnonzero(code), strict=True))):
        end = change.start + len(change.before)
        assert grid.words[change.field][change.position][:3] == (change.start, end, change.before)
        assert (change.after == "") >= (code[place] == DROP)
        fields[change.field] = fields[change.field][: change.start] + change.after + fields[change.field][end:]
    if DROP not in code:
        assert [tuple(fields)] == grid.decode(code[None])


def test_changes_of_one_code() -> None:
    grid = toy("one two", "three four")
    assert grid.changes(codes_of((0, 2, DROP, UNKNOWN))[0]) == [
        Change(0, 1, 4, "two", "B"),
        Change(1, 0, 0, "three", ""),
        Change(1, 1, 6, "four", UNKNOWN_WORD),
    ]
    assert grid.changes(codes_of((0, 0, 0, 0))[0]) == []


@law
@given(grids(), st.integers(1, 9), st.integers(0, 2**32))
def test_windows_cut_both_texts_alike(grid: WordGrid, size: int, seed: int) -> None:
    codes = random_codes(grid, 4, seed)
    before, after = grid.windows(codes, size)
    for code, changed, old, new in zip(codes, grid.decode(codes), before, after, strict=True):
        for field, whole in enumerate(grid.text):
            positions = [grid.slots[p].position for p in np.flatnonzero(code) if grid.slots[p].field == field]
            if not positions:
                assert (old[field], new[field]) == (whole, whole)
                continue
            inside = grid.words[field][max(0, min(positions) - (size - 1) // 2) : max(positions) + (size - 1) // 2 + 1]
            start, end = inside[0].start, inside[-1].end
            assert old[field] == whole[start:end]
            if DROP in code:  # a space may have left on either side
                rebuilt = {whole[: start - a] + new[field] + whole[end + b :] for a in (0, 1) for b in (0, 1) if a <= start}
                assert changed[field] in rebuilt
            else:
                assert changed[field] == whole[:start] + new[field] + whole[end:]


@pytest.mark.parametrize(
    ("text", "code", "size", "before", "after"),
    [
        ("a b c d e f g", (0, 0, 0, 1, 0, 0, 0), 1, "d", "A"),
        ("a b c d e f g", (0, 0, 0, 1, 0, 0, 0), 2, "d", "A"),
        ("a b c d e f g", (0, 0, 0, 1, 0, 0, 0), 3, "c d e", "c A e"),
        ("a b c d e f g", (0, 1, 0, 1, 0, 0, 0), 3, "a b c d e", "a A c A e"),
        ("a b c d e f g", (1, 0, 0, 0, 0, 0, 0), 5, "a b c", "A b c"),
        ("a b c d e f g", (0, 0, 0, 0, 0, 0, 1), 99, "a b c d e f g", "a b c d e f A"),
        ("a b c d e f g", (0, 0, 0, DROP, 0, 0, 0), 3, "c d e", "c e"),
        ("a b c d e f g", (0, 0, 0, DROP, 0, 0, 0), 1, "d", ""),
        ("a b, c d", (0, DROP, 1, 0), 1, "b, c", ", A"),
        ("a b", (0, DROP), 1, "b", ""),
        ("a(b c", (1, DROP, 0), 1, "a(b", "A("),
    ],
)
def test_windows(text: str, code: tuple[int, ...], size: int, before: str, after: str) -> None:
    assert toy(text, "other").windows(codes_of((*code, 0)), size) == ([(before, "other")], [(after, "other")])


def test_every_field_is_written() -> None:
    grid = toy("one two.", "left, (three)!", "four\n")
    codes = codes_of((1, 0, 0, 2, 0), (0, DROP, 0, 0, UNKNOWN), (0, 0, 1, DROP, 0))
    assert grid.decode(codes) == [
        ("A two.", "left, (B)!", "four\n"),
        ("one.", "left, (three)!", "[UNK]\n"),
        ("one two.", "A, ()!", "four\n"),
    ]


def test_a_row_of_zeros_has_no_window() -> None:
    assert toy("a b", "c").windows(codes_of((0, 0, 0)), 1) == ([("a b", "c")], [("a b", "c")])


@pytest.mark.parametrize(
    ("codes", "message"),
    [
        (np.zeros((1, 2), np.int64), r"codes must be int16\[n, 2\], got int64\[1, 2\]"),
        (np.zeros((1, 2)), r"codes must be int16\[n, 2\], got float64\[1, 2\]"),
        (np.zeros(2, np.int16), r"codes must be int16\[n, 2\], got int16\[2\]"),
        (np.zeros((1, 3), np.int16), r"codes must be int16\[n, 2\], got int16\[1, 3\]"),
        (np.zeros((1, 0), np.int16), r"codes must be int16\[n, 2\], got int16\[1, 0\]"),
        (codes_of((0, 0), (0, 3)), r"code 3 for slot 1 \('two'\) is out of range: it has 2 candidates.* from -2 to 2"),
        (codes_of((-3, 0)), r"code -3 for slot 0 \('one'\) is out of range"),
    ],
)
def test_decode_says_what_is_wrong_with_codes(codes: NDArray[Any], message: str) -> None:
    grid = toy("one two")
    with pytest.raises(ValueError, match=message):
        grid.decode(codes)
    with pytest.raises(ValueError, match=message):
        grid.windows(codes, 3)


@pytest.mark.parametrize(
    ("code", "message"),
    [
        (codes_of((0, 0)), r"changes takes one code, int16\[2\], got int16\[1, 2\]"),
        (np.zeros(3, np.int16), r"changes takes one code, int16\[2\], got int16\[3\]"),
        (np.ones(1, np.int16), r"changes takes one code, int16\[2\], got int16\[1\]"),
        (codes_of((0, 3))[0], r"code 3 for slot 1 \('two'\) is out of range"),
    ],
)
def test_changes_says_what_is_wrong_with_a_code(code: Codes, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        toy("one two").changes(code)


def test_a_window_holds_a_word() -> None:
    with pytest.raises(ValueError, match="a window holds at least 1 word, got 0"):
        toy("one").windows(codes_of((1,)), 0)


@pytest.mark.parametrize("choices", [(), ("one",), ("A", "one"), ("A", "B", "A"), tuple(map(str, range(MOST + 1)))])
def test_candidates_are_different_and_not_the_word(choices: tuple[str, ...]) -> None:
    with pytest.raises(ValueError, match=rf"slot 0 \('one'\) of field 0 needs 1 to 32767 .* got {len(choices)}"):
        toy("one", choices=choices)


def test_a_slot_has_up_to_32767_candidates() -> None:
    grid = toy("one", choices=tuple(map(str, range(MOST))))
    assert grid.sizes.tolist() == [MOST]
    assert grid.decode(codes_of((MOST,))) == [(str(MOST - 1),)]


def test_a_grid_without_slots() -> None:
    grid = WordGrid(("...",), {0: []}, [])
    assert grid.why_empty == "no slot was given"
    assert grid.sizes.shape == (0,)
    assert grid.decode(np.zeros((2, 0), np.int16)) == [("...",)] * 2
    assert grid.legal(np.zeros((2, 0), np.int16)).all()
    assert grid.changes(np.zeros(0, np.int16)) == []
    assert toy("one").why_empty == ""


# rules


@pytest.mark.parametrize(
    ("rules", "expected"),
    [
        ((), ["He", "was", "good", "film", "I", "love", "films"]),
        ((StopWords(),), ["good", "film", "love", "films"]),
        ((MinLength(4),), ["good", "film", "love", "films"]),
        ((MinLength(5),), ["films"]),
        ((Protect(frozenset({"FILM", "i"})),), ["He", "was", "good", "love", "films"]),
        ((Protect(pattern="(?i)films?|ov"),), ["He", "was", "good", "I"]),
        ((Protect(pattern="d. T|m: I"),), ["He", "was", "love", "films"]),
        ((Protect(pattern="^|$|x*"),), ["He", "was", "good", "film", "I", "love", "films"]),
        ((Protect(fields=frozenset({1})),), ["He", "was", "good", "film", "I", "love", "films"]),
        ((Protect(fields=frozenset({0})),), []),
        ((Protect(frozenset({"film"}), "love", frozenset({3})), StopWords()), ["good", "films"]),
        ((PartOfSpeech(), StopWords()), ["good", "film", "love", "films"]),
        ((ShareChanged(0.0),), ["He", "was", "good", "film", "I", "love", "films"]),
    ],
)
def test_rules_close_words(rules: tuple[Rule, ...], expected: list[str]) -> None:
    assert open_words(ANY.with_rules(*rules), "He was good. The film: I love films.") == expected


def test_stop_words_ignore_case_and_the_kind_of_apostrophe() -> None:
    text = "The THE don't DON’T isn’t it’s you're movie"
    field = Field(0, text, words(text), ())
    assert StopWords()(field) == [False] * 7 + [True]


def test_the_part_of_speech_is_that_of_the_sentence() -> None:
    rules = ANY.with_rules(PartOfSpeech())
    assert open_words(rules, "Boston has one well in two.") == ["has", "well"]
    assert open_words(rules, "Well, well, Boston!") != ["Well", "well", "Boston"]


@law
@given(st.lists(st.tuples(st.integers(-3, 45), st.integers(-3, 45)), max_size=5))
def test_spans_close_every_word_they_touch(spans: list[tuple[int, int]]) -> None:
    found = words("It is a truth universally acknowledged, that")
    touched = [any(start <= at < end for start, end in spans for at in range(w.start, w.end)) for w in found]
    assert outside(found, spans) == [not t for t in touched]


@pytest.mark.parametrize(
    ("protected", "expected"),
    [
        ((), ["good", "films", "bad", "films"]),
        (((0, 0, 1),), ["films", "bad", "films"]),
        (((0, 4, 5),), ["good", "films", "bad", "films"]),
        (((0, 3, 6),), ["bad", "films"]),
        (((0, 0, 99), (1, 4, 5)), ["bad"]),
        (((1, 0, 99),), ["good", "films"]),
        (((7, 0, 99),), ["good", "films", "bad", "films"]),
    ],
)
def test_protected_spans_of_an_example_always_hold(protected: tuple[tuple[int, int, int], ...], expected: list[str]) -> None:
    for space in (ANY, UNTAGGED):
        assert open_words(space, "good films", "bad films", editable=(0, 1), protected=protected) == expected


@pytest.mark.parametrize(
    ("editable", "expected"),
    [((1,), ["bad"]), ((1, 0), ["good", "bad"]), ((0, 0), ["good"]), ((-1, 5, 0), ["good"]), ((), [])],
)
def test_only_editable_fields_change(editable: tuple[int, ...], expected: list[str]) -> None:
    grid = grid_of(ANY, "good", "bad", editable=editable)
    assert list(grid.slot_words) == expected
    assert grid.n_words == len(expected)


@pytest.mark.parametrize(
    ("text", "more", "why"),
    [
        ("", {}, "the text has no words"),
        (" \n", {}, "the text has no words"),
        ("😀 ... <br />", {}, "the text has no words"),
        ("the and of", {}, "no word of 3 has a candidate: 3 stop words"),
        ("the", {}, "no word of 1 has a candidate: 1 stop words"),
        ("xyzzy", {}, "no word of 1 has a candidate: 1 unknown to wordnet"),
        (
            "the good xyzzy it",
            {"protected": ((0, 0, 8),)},
            "no word of 4 has a candidate: 2 protected, 1 stop words, 1 unknown",
        ),
        ("good film", {"protected": ((0, 0, 9),)}, "no word of 2 has a candidate: 2 protected"),
        ("good film", {"editable": ()}, "no field may change: editable=(), the text has 1"),
        ("good film", {"editable": (1,)}, "no field may change: editable=(1,), the text has 1"),
    ],
)
def test_an_empty_grid_says_why(text: str, more: dict[str, Any], why: str) -> None:
    for space in (TAGGED, UNTAGGED):
        grid = grid_of(space, text, **more)
        assert grid.sizes.shape == (0,)
        assert grid.why_empty.startswith(why)
        assert grid.decode(np.zeros((1, 0), np.int16)) == [(text,)]


def test_each_rule_gives_its_reason() -> None:
    rules = (MinLength(3), Protect(frozenset({"good"})), PartOfSpeech(), StopWords())
    grid = grid_of(ANY.with_rules(*rules), "ox good with having Boston")
    assert grid.why_empty == (
        "no word of 5 has a candidate: 1 shorter than 3 characters, 1 protected, "
        "2 no noun, verb, adjective or adverb, 1 stop words"
    )
    assert grid_of(ANY, "good").why_empty == ""


@pytest.mark.parametrize("share", [-0.1, 1.01, float("nan")])
def test_a_share_lies_between_0_and_1(share: float) -> None:
    with pytest.raises(ValueError, match="the share of words changed lies between 0 and 1, got"):
        ShareChanged(share)


def test_bad_rules_are_refused_at_once() -> None:
    with pytest.raises(ValueError, match=r"the protected pattern '\(' is not a regular expression: "):
        Protect(pattern="(")
    with pytest.raises(ValueError, match="there is no stop word list 'spacy'; there are 'nltk', 'textfooler'"):
        StopWords("spacy")


def test_rules_that_differ_have_different_names() -> None:
    rules: list[Rule] = [
        StopWords(),
        *(MinLength(n) for n in (1, 2)),
        PartOfSpeech(),
        *(ShareChanged(share) for share in (0.1, 0.12345678, 0.12345679)),
        *(Protect(frozenset(kept)) for kept in ((), ("a",), ("a", "b"), ("a, b",))),
        *(Protect(pattern=pattern) for pattern in ("", "a", "None")),
        *(Protect(fields=frozenset(fields)) for fields in ((0,), (0, 1))),
    ]
    assert len({rule.name for rule in rules}) == len(rules)
    assert Protect(frozenset({"b", "A"})).name == Protect(frozenset({"a", "B"})).name
    assert ShareChanged(1).name == ShareChanged(1.0).name


# tags


@slow_law
@given(any_text)
def test_every_word_has_one_tag(text: str) -> None:
    found = words(text)
    assert len(tags.tag([text], [found])[0]) == len(found)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The movies were wonderful.", "DT NNS VBD JJ"),
        ("\ud800" * 12 + " The movies were wonderful.", "DT NNS VBD JJ"),
        ("😀 The \ud800movies\0 were  \n wonderful.", "DT NNS VBD JJ"),
        ("I don't like the children's toys.", "PRP VBP VB DT NNS NNS"),
        ("A well-known man-eating dog barked.", "DT JJ JJ NN VBD"),
    ],
)
def test_tags_belong_to_their_words(text: str, expected: str) -> None:
    assert " ".join(tags.tag([text], [words(text)])[0]) == expected


def test_the_memory_for_tags_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    texts = [*SENTENCES, *SENTENCES[:3]]
    found = [words(text) for text in texts]
    expected = tags.tag(texts, found)
    forget()
    monkeypatch.setattr(tags, "REMEMBERED", 2)
    for _ in range(2):
        assert tags.tag(texts, found) == expected
        assert len(tags._memo) == 2


class Counting:
    """The real tagger, and what it was given."""

    def __init__(self) -> None:
        self.tagger = tags._tagger()
        self.calls: list[list[str]] = []

    def pipe(self, texts: Iterable[str], **options: Any) -> Iterator[Any]:
        self.calls.append(list(texts))
        return iter(self.tagger.pipe(self.calls[-1], **options))


@pytest.fixture
def tagger(monkeypatch: pytest.MonkeyPatch) -> Counting:
    counting = Counting()
    forget()
    monkeypatch.setattr(tags, "_tagger", lambda: counting)
    return counting


def test_a_batch_is_tagged_once(tagger: Counting) -> None:
    texts = ("a good film", "a bad film", "a good film")
    batch = [Example(str(i), (text, "left alone", "an old film"), 0, (0, 2)) for i, text in enumerate(texts)]
    space = TAGGED.with_rules(PartOfSpeech())
    space(batch)
    assert tagger.calls == [["a good film", "an old film", "a bad film"]]
    space(batch)
    assert len(tagger.calls) == 1


def test_nobody_tags_unless_a_part_needs_tags(tagger: Counting) -> None:
    UNTAGGED([Example("a", ("a good film",), 0)])
    assert tagger.calls == []
    UNTAGGED.with_rules(PartOfSpeech())([Example("a", ("a good film",), 0)])
    assert tagger.calls == [["a good film"]]


# WordNet


@pytest.mark.parametrize(
    ("text", "word", "expected"),
    [
        ("The movie ended.", "movie", "film picture pic flick"),
        ("Movies are fun.", "Movies", "Films Pictures Pics Flicks"),
        ("THE MOVIE ENDED", "MOVIE", "FILM PICTURE PIC FLICK"),
        ("The movies ended.", "movies", "films pictures pics flicks"),
        ("I buy a car.", "buy", "purchase bribe corrupt"),
        ("He buys a car.", "buys", "purchases bribes corrupts"),
        ("She bought two cars.", "bought", "purchased bribed corrupted"),
        ("She is buying a car.", "buying", "purchasing bribing corrupting"),
        ("He found the glasses.", "glasses", "spectacles specs eyeglasses"),
        ("They laughed quickly.", "quickly", "rapidly speedily chop-chop apace promptly quick cursorily"),
        ("A well-known man.", "well-known", "long-familiar"),
    ],
)
def test_candidates_take_the_words_form_and_case(text: str, word: str, expected: str) -> None:
    assert " ".join(candidates(TAGGED, text, word)) == expected


def test_an_inflected_word_comes_from_its_lemma() -> None:
    found = candidates(TAGGED, "He found the keys.", "found")
    assert "detected" in found
    assert not {"established", "establish", "finded"} & set(found)
    bigger = candidates(TAGGED, "The bigger dog barks.", "bigger")
    assert "larger" in bigger
    assert not {"large", "bigger", "braggart", "prominent"} & set(bigger)


def test_lemmas_are_those_that_nltk_reads() -> None:
    net = wordnet._net()
    for pos in "nvar":
        for synset in list(net.all_synsets(pos))[::500]:
            assert wordnet._names(pos, synset.offset()) == tuple(synset.lemma_names())
    assert any("(" in line for line in wordnet._data("a").decode().split("\n")[29:2000])  # there are marks to leave out
    assert not any("(" in name for synset in net.all_synsets("a") for name in wordnet._names("a", synset.offset()))


def test_the_part_of_speech_chooses_the_senses() -> None:
    verb, noun = "They love it.", "Their love ended."
    assert "enjoy" in candidates(TAGGED, verb, "love")
    assert "passion" not in candidates(TAGGED, verb, "love")
    assert "passion" in candidates(TAGGED, noun, "love")
    assert "enjoy" not in candidates(TAGGED, noun, "love")
    assert candidates(UNTAGGED, verb, "love") == candidates(UNTAGGED, noun, "love")
    assert {"enjoy", "passion"} <= set(candidates(UNTAGGED, verb, "love"))


def test_names_have_no_candidates_when_tagged() -> None:
    assert candidates(TAGGED, "I met Bill Gates in Boston.", "Boston") == ()
    assert candidates(UNTAGGED, "I met Bill Gates in Boston.", "Bill") != ()


def test_names_stand_in_for_capitals_only() -> None:
    assert "MDs" in candidates(TAGGED, "Doctors agree.", "Doctors")
    assert "MDS" in candidates(TAGGED, "ALL DOCTORS AGREE.", "DOCTORS")
    assert candidates(TAGGED, "The doctors agree.", "doctors") == ("docs", "physicians", "medicos")


def test_lemmas_and_phrases_are_options() -> None:
    text = "The movies ended."
    lemmas = candidates(Space(WordNet(inflect=False)), text, "movies")
    assert lemmas == ("film", "picture", "pic", "flick")
    phrases = candidates(Space(WordNet(phrases=True)), text, "movies")
    assert phrases[:3] == ("films", "pictures", "moving pictures")
    assert tuple(one for one in phrases if " " not in one and "-" not in one) == ("films", "pictures", "pics", "flicks")
    assert candidates(Space(WordNet(phrases=True)), "He surrendered.", "surrendered") == ("gave up", "ceded", "delivered")
    assert candidates(TAGGED, "He surrendered.", "surrendered") == ("ceded", "delivered")


@pytest.mark.parametrize(
    ("space", "name"),
    [
        (Space(WordNet()), "wordnet(pos,inflect)"),
        (Space(WordNet(pos=False, inflect=False)), "wordnet(any)"),
        (Space(WordNet(inflect=False, phrases=True)), "wordnet(pos,phrases)"),
        (TAGGED, "wordnet(pos,inflect)+stop(nltk)"),
        (UNTAGGED, "wordnet(any)+stop(nltk)"),
        (ANY.with_rules(MinLength(3), ShareChanged(0.25)), "wordnet(any,inflect)+min(3)+share(0.25)"),
        (ANY.with_rules(PartOfSpeech()), "wordnet(any,inflect)+pos"),
        (ANY.with_rules(Protect(frozenset({"B", "a"}))), "wordnet(any,inflect)+protect(['a', 'b'],None,[])"),
    ],
)
def test_a_space_is_named_after_its_source_and_rules(space: Space, name: str) -> None:
    assert space.name == name


def test_with_rules_leaves_the_space_alone() -> None:
    name = TAGGED.name
    assert TAGGED.with_rules(MinLength(3)).rules == (StopWords(), MinLength(3))
    assert TAGGED.name == name


@pytest.mark.parametrize("space", [TAGGED, UNTAGGED, ANY], ids=lambda space: space.name)
def test_candidates_fit_into_their_places(space: Space) -> None:
    grids = space([Example(str(i), (text,), 0) for i, text in enumerate(SENTENCES)])
    assert sum(len(grid.sizes) for grid in grids) > 20
    for grid in grids:
        assert isinstance(grid, WordGrid)
        for word, found in zip(grid.slot_words, grid.candidates, strict=True):
            assert all(map(is_word, found))
            assert word.lower() not in map(str.lower, found)
            if word == word.lower():
                assert all(other == other.lower() for other in found)
            elif len(word) > 1 and word == word.upper():
                assert all(other == other.upper() for other in found)
            else:
                assert all(other[0] == other[0].upper() for other in found)
        for text in grid.decode(random_codes(grid, 20, 0, low=KEEP)):
            assert len(words(text[0])) == grid.n_words


@pytest.mark.parametrize("space", SPACES.values(), ids=SPACES)
def test_a_grid_does_not_depend_on_the_batch(space: Space) -> None:
    examples = [Example(str(i), (text, text[::-1]), 0, (0, 1)) for i, text in enumerate(SENTENCES)]
    forget()
    together = [contents(grid) for grid in space(examples)]
    forget()
    assert [contents(grid) for grid in space(examples[::-1])][::-1] == together
    for one, expected in zip(examples, together, strict=True):
        forget()
        assert contents(space([one])[0]) == expected
    assert space([]) == []


@slow_law
@given(any_text)
def test_any_text_has_a_grid(text: str) -> None:
    for space in (TAGGED, UNTAGGED):
        grid = grid_of(space, text)
        assert grid.n_words == len(words(text))
        assert bool(grid.why_empty) == (len(grid.slots) == 0)
        assert grid.decode(np.zeros((1, len(grid.slots)), np.int16))[0][0] is text
        codes = random_codes(grid, 3, 0)
        assert grid.decode(codes) == [slowly(grid, code) for code in codes.tolist()]


@both
def test_a_text_of_ten_thousand_words(space: Space) -> None:
    text = "\n".join(f"The {i}th big movies ran over lazy dogs happily, <br />twice." for i in range(1000))
    grid = grid_of(space.with_rules(ShareChanged(0.1)), text)
    assert grid.n_words == 10_000
    assert len(grid.slots) >= 6000
    assert grid.most_changed == 1000
    codes = np.zeros((4, len(grid.slots)), np.int16)
    codes[1], codes[2, -1], codes[3] = 1, 1, DROP
    texts = grid.decode(codes)
    assert texts[0][0] is text
    assert len(words(texts[1][0])) == 10_000
    assert len(words(texts[3][0])) == 10_000 - len(grid.slots)
    assert grid.legal(codes).tolist() == [True, False, True, True]
    assert len(grid.changes(codes[1])) == len(grid.slots)
    before, after = grid.windows(codes[2:3], 5)
    assert len(words(before[0][0])) == len(words(after[0][0])) <= 5


# inflection


FORMS = {
    "NNS": """
        cat cats, box boxes, church churches, wish wishes, city cities, day days, soliloquy soliloquies, bus buses, key keys,
        hero heroes, photo photos, radio radios, quiz quizzes, buzz buzzes, stomach stomachs, monarch monarchs, gas gases,
        leaf leaves, knife knives, roof roofs, cliff cliffs, belief beliefs, mouse mice, house houses, foot feet, wolf wolves,
        child children, woman women, human humans, German Germans, ox oxen, tooth teeth, goose geese, sheep sheep, ash ashes,
        analysis analyses, crisis crises, iris irises, phenomenon phenomena, criterion criteria, formula formulas, y ys,
        mother-in-law mothers-in-law, passer-by passers-by, man-of-war men-of-war, close-up close-ups, lay-by lay-bys""",
    "VBZ": """
        walk walks, try tries, play plays, go goes, watch watches, fix fixes, kiss kisses, quiz quizzes, be is, have has""",
    "VBG": """
        walk walking, make making, die dying, be being, see seeing, run running, visit visiting, admit admitting, age aging,
        panic panicking, ski skiing, dye dyeing, singe singeing, sing singing, quit quitting, fix fixing, hyphen hyphening,
        slim slimming, bed-hop bed-hopping, offer offering, binge bingeing, agree agreeing, quiz quizzing""",
    "VBD": """
        walk walked, love loved, try tried, play played, stop stopped, visit visited, admit admitted, panic panicked,
        take took, go went, see saw, sing sang, win won, come came, run ran, begin began, read read, cut cut, have had,
        show showed, learn learned, feed fed, seed seeded, swell swelled, melt melted, work worked, reset reset, spit spat,
        lie lay, lay laid, find found, found founded, forbid forbade, beat beat, bite bit, be was, do did, light lit""",
    "VBN": """
        take taken, go gone, see seen, sing sung, win won, come come, run run, begin begun, show shown, beat beaten,
        walk walked, write written, break broken, swell swollen, underlie underlain, lie lain, put put, be been, do done""",
    "JJR": """
        big bigger, happy happier, nice nicer, good better, bad worse, far farther, old older, simple simpler, dry drier,
        narrow narrower, red redder, slow slower, free freer, many more, quiet quieter, gray grayer, great greater""",
    "JJS": """
        big biggest, happy happiest, nice nicest, good best, bad worst, far farthest, simple simplest, cute cutest""",
    "NN": "cat cat, leaf leaf",
    "VBP": "be be, take take",
    "JJ": "good good",
    "": "children children",
}


@pytest.mark.parametrize(("tag", "forms"), FORMS.items(), ids=FORMS)
def test_forms(tag: str, forms: str) -> None:
    pairs = [pair.split() for pair in forms.split(",")]
    assert [(lemma, inflect(lemma, tag)) for lemma, _ in pairs] == [(lemma, form) for lemma, form in pairs]


@pytest.mark.parametrize("adjective", ["beautiful", "tired", "boring", "hostile", "fun", "real", "grown", "well known", "9"])
def test_degrees_that_one_word_cannot_say(adjective: str) -> None:
    assert inflect(adjective, "JJR") is None
    assert inflect(adjective, "JJS") is None
    assert inflect(adjective, "JJ") == adjective


@pytest.mark.parametrize(
    ("lemma", "tag", "form"),
    [
        ("motion picture", "NNS", "motion pictures"),
        ("piece of music", "NNS", "pieces of music"),
        ("cost-of-living index", "NNS", "cost-of-living indexes"),
        ("give up", "VBD", "gave up"),
        ("look like", "VBZ", "looks like"),
        ("run out of", "VBG", "running out of"),
    ],
)
def test_the_head_of_a_phrase_takes_the_form(lemma: str, tag: str, form: str) -> None:
    assert inflect(lemma, tag) == form


@pytest.mark.parametrize(("pos", "form_tags"), [("n", ["NNS"]), ("v", ["VBZ", "VBG", "VBD", "VBN"])])
def test_wordnet_finds_the_way_back_from_a_form(pos: str, form_tags: list[str]) -> None:
    net = wordnet._net()
    lemmas = sorted(lemma for lemma in net.all_lemma_names(pos) if lemma.isalpha() and lemma.isascii())[::20]
    pairs = [(lemma, form) for lemma in lemmas for tag in form_tags if (form := inflect(lemma, tag))]
    assert len(pairs) > 100
    lost = [(lemma, form) for lemma, form in pairs if lemma not in net._morphy(form, pos)]
    assert len(lost) < 0.01 * len(pairs), lost


@pytest.mark.parametrize(
    ("word", "lemma", "pos", "tag"),
    [
        ("film", "film", "n", ""),
        ("films", "film", "n", "NNS"),
        ("mice", "mouse", "n", "NNS"),
        ("buys", "buy", "v", "VBZ"),
        ("bought", "buy", "v", "VBD"),
        ("buying", "buy", "v", "VBG"),
        ("is", "be", "v", "VBZ"),
        ("are", "be", "v", "VBP"),
        ("was", "be", "v", "VBD"),
        ("been", "be", "v", "VBN"),
        ("being", "be", "v", "VBG"),
        ("bigger", "big", "a", "JJR"),
        ("best", "good", "a", "JJS"),
        ("better", "well", "r", ""),
    ],
)
def test_a_words_own_form_suggests_a_tag(word: str, lemma: str, pos: str, tag: str) -> None:
    assert guess(word, lemma, pos) == tag


# encoders


@pytest.fixture(params=ENCODERS, scope="module")
def encoder(request: pytest.FixtureRequest) -> SentenceEncoder:
    made = ENCODERS[request.param]()
    assert isinstance(made, SentenceEncoder)
    return made


ODD = ("", " ", "\0", "a\0b", "😀👩‍👩‍👧", "\ud800", "\ud83d\ude00", "שלום", "x" * 300, "<br />", "word " * 40)


def alone(encoder: SentenceEncoder, text: str) -> NDArray[np.float32]:
    """As in a process that has seen no other text."""
    encoder._memo.clear()
    (vector,) = encoder([text])
    return np.asarray(vector, np.float32)


def test_rows_are_unit_vectors(encoder: SentenceEncoder) -> None:
    vectors = encoder([*SENTENCES, *ODD])
    assert vectors.shape == (len(SENTENCES) + len(ODD), encoder.width)
    assert vectors.dtype == np.float32
    assert np.abs(np.linalg.norm(vectors.astype(np.float64), axis=1) - 1).max() < 1e-6


def test_no_text_gives_no_row(encoder: SentenceEncoder) -> None:
    assert encoder([]).shape == (0, {"use(quantised)": 512, "minilm(l6-v2)": 384}[encoder.name])
    assert encoder([]).dtype == np.float32


def test_a_vector_does_not_depend_on_the_batch(encoder: SentenceEncoder) -> None:
    texts = [*SENTENCES, *ODD]
    encoder._memo.clear()
    together = encoder([*texts, *texts[:3]])
    assert together[: len(texts)].tobytes() == np.stack([alone(encoder, text) for text in texts]).tobytes()
    assert together[len(texts) :].tobytes() == together[:3].tobytes()
    assert encoder(texts[::-1])[::-1].tobytes() == together[: len(texts)].tobytes()


@pytest.mark.parametrize(
    ("text", "near", "far"),
    [
        ("A man is eating food.", "A man eats something.", "The stock market fell sharply."),
        ("The film was wonderful.", "It was a great movie.", "Mix the flour with two eggs."),
        ("How old are you?", "What is your age?", "The train leaves at noon."),
    ],
)
def test_a_paraphrase_is_closer_than_another_sentence(encoder: SentenceEncoder, text: str, near: str, far: str) -> None:
    base, close, away = encoder([text, near, far])
    assert similarity(base, close) > similarity(base, away) + 0.3
    assert similarity(base, base) == pytest.approx(1)


def test_nul_and_surrogates_do_not_cut_a_text(encoder: SentenceEncoder) -> None:
    whole, nul, cut = encoder(["good film", "good\0film", "good"])
    assert whole.tobytes() == nul.tobytes() != cut.tobytes()
    assert encoder(["bad \ud800 film"]).tobytes() == encoder(["bad ? film"]).tobytes()


def test_a_long_text_is_read_to_its_end(encoder: SentenceEncoder) -> None:
    film = "The film was wonderful and old. " * 100
    a, b = encoder([film, film + "Mix the flour with two eggs."])
    assert 0.9 < similarity(a, b) < 0.999999


def test_a_text_of_ten_thousand_words_has_a_vector(encoder: SentenceEncoder) -> None:
    (vector,) = encoder(["word " * 10_000])
    assert np.linalg.norm(vector) == pytest.approx(1)


def test_the_judge_weighs_every_window_alike() -> None:
    film, eggs = "The film was wonderful. " * 60, "Mix the flour with eggs. " * 60
    together, swapped, only_film, only_eggs = minilm()([film + eggs, eggs + film, film, eggs])
    assert similarity(together, only_film) > 0.5
    assert similarity(together, only_eggs) > 0.5
    assert similarity(together, swapped) > 0.95


def tell(text: str) -> NDArray[np.float32]:
    return np.array([len(text), text.count("a"), 0], np.float32)


def test_an_encoder_keeps_the_order_and_encodes_a_text_once() -> None:
    seen: list[str] = []

    def encode(text: str) -> NDArray[np.float32]:
        seen.append(text)
        return tell(text)

    toy_encoder = OneByOne("toy", 3, encode)
    texts = ["aa", "b", "", "ab", "aa", "abc", "b", *("a" * n for n in range(50))]
    expected = np.stack([tell(text) / max(1.0, float(np.linalg.norm(tell(text)))) for text in texts])
    expected[[2, 7]] = (1, 0, 0)  # the empty text has no direction: still a unit vector
    assert np.allclose(toy_encoder(texts), expected)
    assert np.allclose(toy_encoder(texts[::-1]), expected[::-1])
    assert sorted(seen) == sorted(set(texts))


def test_the_judge_neither_heeds_nor_changes_the_number_of_threads() -> None:
    threads, vectors = torch.get_num_threads(), []
    for n in (1, 2):
        torch.set_num_threads(n)
        vectors.append([alone(minilm(), text).tobytes() for text in SENTENCES])
        assert torch.get_num_threads() == n
    torch.set_num_threads(threads)
    assert vectors[0] == vectors[1]


def test_the_memory_of_an_encoder_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(encoders, "REMEMBERED", 2)
    toy_encoder = OneByOne("toy", 3, tell)
    texts = ["a", "ab", "abc", "abcd", "a"]
    first = toy_encoder(texts)
    assert len(toy_encoder._memo) == 2
    assert toy_encoder(texts).tobytes() == first.tobytes()


def test_what_is_handed_out_is_a_copy() -> None:
    toy_encoder = OneByOne("toy", 3, tell)
    toy_encoder(["abc"])[:] = 7
    assert toy_encoder(["abc"]).max() <= 1


def test_similarity_goes_row_by_row() -> None:
    a, b = use()(["good film", "bad film"]), use()(["fine film", "bad film"])
    rows = similarity(a, b)
    assert rows.dtype == np.float64
    assert rows.shape == (2,)
    assert rows[1] == pytest.approx(1)
    assert similarity(a, b[0])[0] == rows[0]
    longer = np.array([[1.0000001, 0]], np.float32)
    assert similarity(longer, longer)[0] == 1


# the registry


def test_every_space_is_found_by_name_and_described() -> None:
    assert SPACES.keys() | {"hownet"} == SPACE_NOTES.keys()
    assert all(space_named(name) is space for name, space in SPACES.items())
    assert len({space.name for space in SPACES.values()}) == len(SPACES)
    assert all(hash(space) == hash(space.with_rules()) for space in SPACES.values())


def test_an_unknown_space_suggests_the_nearest() -> None:
    with pytest.raises(ValueError, match=r"no space is called 'wordent'; did you mean 'wordnet'\?"):
        space_named("wordent")
    with pytest.raises(ValueError, match=r"no space is called 'wordnet-anny'; did you mean 'wordnet-any'\?"):
        space_named("wordnet-anny")
    with pytest.raises(ValueError, match=r"no space is called 'q'; there are wordnet, wordnet-any"):
        space_named("q")
