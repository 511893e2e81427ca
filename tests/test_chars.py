"""Misspellings: each kind by hand, by a slow reference, and on any characters; case stays, and so do both ends."""

from __future__ import annotations

import unicodedata

import numpy as np
import pytest
import regex
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scrimp.attacks.types import Example
from scrimp.spaces import ShareChanged, Space, StopWords, WordNet
from scrimp.spaces.chars import BUGS, CLUSTER, HOMOGLYPHS, NEIGHBOURS, SIGNS, Chars
from scrimp.spaces.grid import WordGrid
from scrimp.spaces.rules import Field
from scrimp.spaces.tokens import words

law = settings(deadline=None, max_examples=150, derandomize=True)
every_character = st.characters(exclude_categories=())
any_word = st.one_of(
    st.text(every_character, max_size=12),
    st.text("abcdefghijklmnopqrstuvwxyzABCXYZß'-019éİ\u0301😀", max_size=12),
)
EVERY = Chars(tuple(BUGS))


def listed(bug: str, word: str, most: int | None = None) -> list[str]:
    return list(Chars((bug,), most).misspellings(word))


def candidates(source: Chars, text: str) -> list[tuple[str, ...]]:
    found = words(text)
    return source(Field(0, text, found, ()), range(len(found)))


@pytest.mark.parametrize(
    ("bug", "word", "expected"),
    [
        ("insert", "film", "f ilm|fi lm|fil m"),
        ("insert", "movie", "m ovie|mo vie|mov ie|movi e"),
        ("insert", "movies", ""),  # six letters
        ("insert", "it", "i t"),
        ("insert", "a", ""),
        ("insert", "e\u0301te\u0301", "e\u0301 te\u0301|e\u0301t e\u0301"),
        ("delete", "film", "flm|fim"),
        ("delete", "FiLm", "FLm|Fim"),
        ("delete", "good", "god"),  # either o
        ("delete", "it", ""),
        ("delete", "don't", "dn't|do't|dont"),
        ("delete", "b2b", ""),
        ("delete", "xe\u0301y", "xy"),
        ("swap", "movie", "mvoie|moive"),
        ("swap", "film", ""),  # four letters
        ("swap", "wonder", "wnoder|wodner|wonedr"),
        ("swap", "McDon", "MdCon|McOdn"),  # capitals stay where they are
        ("swap", "baaab", ""),
        ("swap", "co-op", ""),
        ("swap", "straße", "srtaße|starße|strßae"),
        ("swap", "STRAßE", "SRTAßE|STARßE|STRßaE"),  # ß is a small letter and has no capital
        ("keyboard", "cat", "cst|cqt|czt|cwt"),
        ("keyboard", "CAT", "CST|CQT|CZT|CWT"),
        ("keyboard", "opp", "oop|olp"),
        ("keyboard", "it", ""),
        ("keyboard", "c4t", ""),
        ("keyboard", "cét", ""),
        ("sign", "foolish", "f0olish|fo0lish|foo1ish|fool1sh|fooli$h"),
        ("sign", "FOX", "F0X"),
        ("sign", "a", ""),
        ("homoglyph", "a", "\u0430"),
        ("homoglyph", "at", "\u0430t"),
        ("homoglyph", "tt", ""),
        ("homoglyph", "Ace", "\u0410ce|A\u0441e|Ac\u0435"),
    ],
)
def test_misspellings(bug: str, word: str, expected: str) -> None:
    assert listed(bug, word) == [one for one in expected.split("|") if one]


@pytest.mark.parametrize("word", ["", "10", "2019", "1️⃣", "😀", "👩‍👩‍👧", "...", "\u0301", "\ud800", "½"])
def test_nothing_without_a_letter_is_misspelt(word: str) -> None:
    assert list(EVERY.misspellings(word)) == []


def test_letters_of_any_script_move() -> None:
    assert listed("swap", "привет") == ["пирвет", "првиет", "приевт"]
    assert listed("delete", "नमस्ते") != []
    assert listed("insert", "日本語") == ["日 本語", "日本 語"]


# a slow reference over plain letters


def slow(bug: str, word: str) -> list[str]:
    found = []
    for at in range(len(word)):
        ends = at == 0 or at == len(word) - 1
        if bug == "insert" and at > 0 and len(word) <= 5:
            found.append(word[:at] + " " + word[at:])
        if bug == "delete" and not ends:
            found.append(word[:at] + word[at + 1 :])
        if bug == "swap" and not ends and at + 1 < len(word) - 1 and len(word) > 4:
            found.append(word[:at] + word[at + 1] + word[at] + word[at + 2 :])
        if bug == "keyboard" and not ends:
            found += [word[:at] + key + word[at + 1 :] for key in NEIGHBOURS[word[at]]]
        if bug == "sign" and not ends and word[at] in SIGNS:
            found.append(word[:at] + SIGNS[word[at]] + word[at + 1 :])
        if bug == "homoglyph" and word[at] in HOMOGLYPHS:
            found.append(word[:at] + HOMOGLYPHS[word[at]] + word[at + 1 :])
    return [one for one in dict.fromkeys(found) if one != word]


@pytest.mark.parametrize("bug", BUGS)
def test_each_bug_agrees_with_a_slow_reference(bug: str) -> None:
    @law
    @given(st.text("abcdefghijklmnopqrstuvwxyz", min_size=1, max_size=9))
    def agrees(word: str) -> None:
        assert listed(bug, word) == slow(bug, word)

    agrees()


@law
@given(any_word)
@example("İstanbul")
@example("ﬁlms")
@example("aǅbcd")
def test_any_word_has_different_misspellings_with_its_ends(word: str) -> None:
    before = CLUSTER.findall(word)
    for bug in BUGS:
        found = listed(bug, word)
        assert len(set(found)) == len(found)
        assert word not in found
        for other in found:
            if bug != "homoglyph":
                assert other.startswith(before[0])
                assert other.endswith(before[-1])
            if bug == "insert":
                assert other.replace(" ", "") == word.replace(" ", "")
            if bug == "swap":
                assert sorted(other.casefold()) == sorted(word.casefold())


@law
@given(st.text("abcdefgxyzABCDEFGXYZ", min_size=1, max_size=9))
def test_case_stays_where_it_is(word: str) -> None:
    for bug in ("swap", "keyboard", "homoglyph"):
        for other in listed(bug, word):
            assert [letter.isupper() for letter in other] == [letter.isupper() for letter in word]


# the tables


def test_neighbours_are_mutual_and_close() -> None:
    assert set(NEIGHBOURS) == set("abcdefghijklmnopqrstuvwxyz")
    assert all(key in NEIGHBOURS[other] for key, near in NEIGHBOURS.items() for other in near)
    assert all(2 <= len(set(near) - {key}) == len(near) <= 6 for key, near in NEIGHBOURS.items())
    assert set(NEIGHBOURS["g"]) == set("fhtyvb")
    assert set(NEIGHBOURS["q"]) == set("wa")
    assert "n" in NEIGHBOURS["m"]  # TextBugger's own example


def test_homoglyphs_are_other_letters_of_the_same_case() -> None:
    assert len(set(HOMOGLYPHS.values())) == len(HOMOGLYPHS) == 36
    for letter, other in HOMOGLYPHS.items():
        assert ord(letter) < 128 < ord(other)
        assert letter.isupper() == other.isupper()
        assert unicodedata.category(other) in ("Lu", "Ll")
        assert unicodedata.normalize("NFKC", other) == other  # no reader of normal forms gets the letter back
        assert regex.fullmatch(r"\p{L}", other)


# the source


def test_bugs_come_in_the_order_asked_for() -> None:
    assert candidates(Chars(("delete", "insert")), "the film") == [
        ("te", "t he", "th e"),
        ("flm", "fim", "f ilm", "fi lm", "fil m"),
    ]
    assert candidates(Chars(("insert", "delete")), "the")[0] == ("t he", "th e", "te")


def test_one_of_each_kind() -> None:
    assert candidates(Chars(most=1), "wonderful film 10") == [
        ("wondrful", "wondreful", "wonddrful", "won\u0501erful"),
        ("fi lm", "fim", "fjlm", "fi\u04cfm"),
        (),
    ]
    assert listed("delete", "abcdefghij", most=3) == ["abdefghij", "abcdeghij", "abcdefgij"]
    for most in range(1, 9):
        found = listed("delete", "abcdefghij", most)
        assert len(set(found)) == len(found) == most
    assert found == listed("delete", "abcdefghij", most=99) == listed("delete", "abcdefghij")


def test_a_word_source_adds_similar_words() -> None:
    source = Chars(("delete",), words=WordNet(pos=False))
    assert candidates(source, "the movie ended 10")[1] == ("mvie", "moie", "move", "film", "picture", "pic", "flick")
    assert not source.needs_tags
    assert Chars(("delete",), words=WordNet()).needs_tags
    assert source.name == "chars(delete,wordnet(any,inflect))"
    assert source.missing == "too short to misspell or without a letter, unknown to wordnet"


def test_a_candidate_of_both_is_listed_once() -> None:
    class Same:
        name, missing, needs_tags = "same", "", False

        def __call__(self, field: Field, positions: object) -> list[tuple[str, ...]]:
            return [("flm", "film", "movie")]

    assert candidates(Chars(("delete",), words=Same()), "film") == [("flm", "fim", "movie")]


@pytest.mark.parametrize(
    "text", ["A wonderful film, 10/10 <br /> café’s 😀 don't!", "שלום world e\u0301te\u0301 İİİİİ", "a\ud800b"]
)
def test_grids_of_misspellings(text: str) -> None:
    space = Space(EVERY, (ShareChanged(0.5),))
    grid = space([Example("one", (text,), 0)])[0]
    assert isinstance(grid, WordGrid)
    assert len(grid.slots)
    codes = np.diag(grid.sizes.astype(np.int16))
    for text_of, code in zip(grid.decode(codes), codes, strict=True):
        assert text_of != grid.text
        assert len(grid.changes(code)) == 1
    again = space([Example("one", (text,), 0)])[0]
    assert isinstance(again, WordGrid)
    assert again.candidates == grid.candidates


def test_an_empty_grid_says_why() -> None:
    grid = Space(Chars(("swap",)), (StopWords("textfooler"),))([Example("one", ("the film 10 😀",), 0)])[0]
    assert grid.why_empty == "no word of 3 has a candidate: 1 stop words, 2 too short to misspell or without a letter"


def test_names() -> None:
    assert Chars().name == "chars(insert,delete,swap,keyboard,homoglyph)"
    assert Chars(("swap",), 2).name == "chars(swap,most=2)"
    assert all(bug.name == name and bug.about for name, bug in BUGS.items())


@pytest.mark.parametrize(
    ("bugs", "most", "message"),
    [
        (("homoglph",), None, r"no bug is called 'homoglph'; did you mean 'homoglyph'\?"),
        (("zzz",), None, "no bug is called 'zzz'; there are insert, delete, swap, keyboard, sign, homoglyph"),
        ((), None, r"name at least one bug, and each once, got \(\)"),
        (("swap", "swap"), None, r"name at least one bug, and each once, got \('swap', 'swap'\)"),
        (("swap",), 0, "most=0: at least 1 misspelling of a kind; leave it out for all of them"),
    ],
)
def test_bad_arguments_are_refused_at_once(bugs: tuple[str, ...], most: int | None, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Chars(bugs, most)
