"""Rules that choose among candidates, and the lists they choose by: applied in order, before anything is paid."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from scrimp.attacks.types import Example
from scrimp.spaces import MinLength, Space, StopWords, WordNet, tags
from scrimp.spaces.filters import CLASS, Near, NoRepeats, SameClass
from scrimp.spaces.fluency import Chances, LanguageModel
from scrimp.spaces.grid import WordGrid
from scrimp.spaces.rules import CandidateRule, Field, stop_words
from scrimp.spaces.tokens import words
from scrimp.spaces.vectors import VectorsError


@dataclass(frozen=True)
class Given:
    """A source that is told its candidates."""

    table: Mapping[str, tuple[str, ...]] = field(hash=False)
    name = "given"
    missing = "not given"
    needs_tags = False

    def __call__(self, field: Field, positions: Sequence[int]) -> list[tuple[str, ...]]:
        return [self.table.get(field.words[position].text, ()) for position in positions]


def grid_of(text: str, rules: Sequence[Any], table: Mapping[str, tuple[str, ...]], **more: Any) -> WordGrid:
    grid = Space(Given(table), tuple(rules))([Example("one", (text,), 0, **more)])[0]
    assert isinstance(grid, WordGrid)
    return grid


def left(rule: CandidateRule, text: str, **table: str) -> dict[str, str]:
    """What a rule leaves of each word's candidates."""
    grid = grid_of(text, [rule], {word: tuple(some.split(",")) for word, some in table.items()})
    return {word: ",".join(some) for word, some in zip(grid.slot_words, grid.candidates, strict=True)}


@dataclass(frozen=True)
class Without(CandidateRule):
    """Refuses candidates with a letter, and notes what it was shown."""

    letter: str
    needs: bool = False
    seen: list[Any] = field(default_factory=list, compare=False)

    @property
    def name(self) -> str:
        return f"without({self.letter})"

    @property
    def reason(self) -> str:
        return f"with candidates in {self.letter} only"

    @property
    def needs_tags(self) -> bool:
        return self.needs

    def sift(self, field: Field, positions: Sequence[int], offers: Sequence[tuple[str, ...]]) -> list[tuple[str, ...]]:
        self.seen.append((field.index, list(positions), list(offers), tuple(field.tags)))
        return [tuple(one for one in candidates if self.letter not in one) for candidates in offers]


# how spaces apply them

TABLE = {"one": ("aa", "ab", "bc"), "two": ("aa",), "three": ("b", "c"), "four": ()}


def test_each_rule_sees_what_the_one_before_it_left() -> None:
    first, second = Without("a"), Without("b")
    grid = grid_of("one two three four five", [first, MinLength(4), second], TABLE | {"fourth": ("d",)})
    assert grid.why_empty == ""
    assert (grid.slot_words, grid.candidates) == (("three",), (("c",),))
    first, second = Without("a"), Without("b")
    grid = grid_of("one two three four", [second, first], TABLE)
    assert (grid.slot_words, grid.candidates) == (("three",), (("c",),))
    assert second.seen == [(0, [0, 1, 2], [TABLE["one"], TABLE["two"], TABLE["three"]], ())]
    assert first.seen == [(0, [0, 1, 2], [("aa",), ("aa",), ("c",)], ())]


def test_a_word_counts_for_the_rule_that_takes_its_last_candidate() -> None:
    grid = grid_of("one two three four five", [Without("a"), Without("b"), Without("c")], TABLE)
    assert grid.why_empty == (
        "no word of 5 has a candidate: 2 not given, 1 with candidates in a only, 1 with candidates in b only, "
        "1 with candidates in c only"
    )


def test_a_rule_that_needs_tags_gets_them() -> None:
    rule = Without("a", needs=True)
    grid_of("The movies were one", [rule], TABLE)
    assert rule.seen[0][3] == ("DT", "NNS", "VBD", "CD")


def test_protected_words_never_reach_a_rule() -> None:
    rule = Without("z")
    grid_of("one three", [rule, StopWords("textfooler")], TABLE, protected=((0, 4, 9),))
    assert rule.seen == []  # one is a stop word
    grid_of("one three", [rule], TABLE, protected=((0, 4, 9),))
    assert [positions for _, positions, _, _ in rule.seen] == [[0]]


def test_a_rule_that_loses_a_word_is_caught() -> None:
    class Short(Without):
        def sift(self, field: Field, positions: Sequence[int], offers: Sequence[tuple[str, ...]]) -> list[tuple[str, ...]]:
            return list(offers)[1:]

    with pytest.raises(ValueError, match="zip"):
        grid_of("one three", [Short("a")], TABLE)


def test_spaces_are_named_after_all_their_rules() -> None:
    space = Space(WordNet(), (StopWords("textfooler"), SameClass(), NoRepeats()))
    assert space.name == "wordnet(pos,inflect)+stop(textfooler)+class(4,noun=verb)+repeat(1)"


# stop words


def test_the_list_of_textfooler() -> None:
    found = stop_words("textfooler")
    assert len(found) == 266
    assert {"a", "yourselves", "hundred", "whole", "empty", "don't", "ve", "please"} <= found
    # Verbs of doing and having, and small adverbs, are on NLTK's list alone; it has never heard of hereupon.
    assert not {"do", "did", "have", "has", "be", "very", "few", "some", "will"} & found
    assert {"do", "did", "have", "has", "be", "very", "few", "some", "will"} <= stop_words("nltk")
    assert {"hereupon", "almost", "without"} <= found - stop_words("nltk")


def test_stop_words_stay_by_either_list() -> None:
    text = "Without hesitation I do DON'T don’t film"
    table = {word.text: ("x",) for word in words(text)}
    assert grid_of(text, [StopWords("textfooler")], table).slot_words == ("hesitation", "do", "film")
    assert grid_of(text, [StopWords("nltk")], table).slot_words == ("Without", "hesitation", "film")


# the same part of speech


def test_a_candidate_keeps_the_part_of_speech() -> None:
    text = "They were beautiful, she sang well, and I like films."
    shown = {"beautiful": "pretty,slept,greatly", "well": "nicely,green", "films": "movies,nicely,sleeping,went"}
    assert left(SameClass(), text, **shown) == {"beautiful": "pretty", "well": "nicely", "films": "movies,sleeping,went"}


def test_nouns_are_not_verbs_without_the_tolerance() -> None:
    text = "I like films."
    assert left(SameClass(), text, films="movies,sleeping,nicely") == {"films": "movies,sleeping"}
    assert left(SameClass(noun_is_verb=False), text, films="movies,sleeping,nicely") == {"films": "movies"}
    assert left(SameClass(noun_is_verb=False), text, films="sleeping") == {}
    assert left(SameClass(), "They enjoy swimming.", swimming="music") == {"swimming": "music"}
    assert left(SameClass(noun_is_verb=False), "They enjoy swimming.", swimming="music") == {}


def test_the_context_decides() -> None:
    """Alone, watch is a verb and clock a noun; both are nouns after an article and verbs after to."""
    strict = SameClass(noun_is_verb=False)
    assert left(strict, "It was a watch.", watch="clock") == {"watch": "clock"}
    assert left(strict, "He wants to watch it.", watch="clock") == {"watch": "clock"}
    assert left(SameClass(0, noun_is_verb=False), "He wants to watch it.", watch="clock") == {}


def reference(rule: SameClass, text: str, position: int, candidate: str) -> bool:
    """One window at a time, word by word."""
    found = words(text)
    first, last = max(0, position - rule.reach), min(len(found) - 1, position + rule.reach)
    start = 0 if first == 0 else found[first].start
    end = len(text) if last == len(found) - 1 else found[last].end
    word, classes = found[position], []
    for choice in (word.text, candidate):
        window = text[start : word.start] + choice + text[word.end : end]
        penn = tags.tag([window], [words(window)])[0][position - first]
        name = CLASS.get(penn, penn)
        classes.append("verb" if name == "noun" and rule.noun_is_verb else name)
    return classes[0] == classes[1]


@pytest.mark.parametrize("rule", [SameClass(), SameClass(1), SameClass(0, False), SameClass(2, False)], ids=lambda r: r.name)
def test_one_pass_says_what_one_window_at_a_time_says(rule: SameClass) -> None:
    text = "“Well,” said the old man, who quickly ran home: it's a film that nobody really likes or loves <br /> to watch!"
    some = ("run", "quick", "slowly", "houses", "them", "over", "good", "ten", "an")
    table = {word.text: tuple(one for one in some if one != word.text) for word in words(text)}
    grid = grid_of(text, [rule], table)
    found = {(slot.position, one) for slot in grid.slots for one in slot.candidates}
    expected = {
        (position, one)
        for position, word in enumerate(words(text))
        for one in table[word.text]
        if reference(rule, text, position, one)
    }
    assert found == expected
    assert 10 < len(found) < len(words(text)) * len(some) / 2


def test_candidates_that_are_no_words() -> None:
    found = left(SameClass(), "A film, a very good film", good="😀,,fine,two fine,(fine", film="fi lm")
    assert found == {"good": "fine", "film": "fi lm"}  # the first word of a phrase counts
    assert left(SameClass(), "😀", film="x") == {}


def test_tags_are_bought_once(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[int] = []
    real = tags._tagger()

    class Counting:
        def pipe(self, texts: Any, **options: Any) -> Any:
            shown = list(texts)
            calls.append(len(shown))
            return real.pipe(shown, **options)

    tags._memo.clear()
    monkeypatch.setattr(tags, "_tagger", lambda: Counting())
    table = {"good": ("fine", "bad"), "film": ("movie",), "old": ("new", "aged")}
    for _ in range(2):
        grid_of("a good old film about an old man and his good dog of a film", [SameClass(2)], table)
    assert len(calls) == 1
    assert calls[0] == 6 * 1 + 2 * 5  # the six windows as they are, and one for each candidate


# nothing twice


def test_no_word_stands_beside_itself() -> None:
    text = "A very good film, and The Old movie"
    shown = {"good": "very,fine,film,Film", "film": "movie,and,AND,good", "The": "old,an", "movie": "film,Old,old man,new"}
    assert left(NoRepeats(), text, **shown) == {"good": "fine", "film": "movie", "The": "an", "movie": "film,new"}
    assert left(NoRepeats(3), text, **shown) == {"good": "fine", "film": "movie", "The": "an", "movie": "film,new"}
    assert left(NoRepeats(4), text, **shown) == {"good": "fine", "The": "an", "movie": "new"}


# vectors

VECTORS = {
    "good": [1.0, 0.0],
    "great": [3.0, 1.0],  # cosine 0.949 with good
    "fine": [1.0, 1.0],  # 0.707
    "bad": [-1.0, 0.1],
}


def test_candidates_are_near_enough() -> None:
    shown = "great,Fine,bad,unheard"
    assert left(Near(VECTORS, 0.9), "good", good=shown) == {"good": "great,unheard"}
    assert left(Near(VECTORS, 0.7), "Good", Good=shown) == {"Good": "great,Fine,unheard"}
    assert left(Near(VECTORS, 0.7, known=True), "good", good=shown) == {"good": "great,Fine"}
    assert left(Near(VECTORS, -1), "good", good=shown) == {"good": shown}
    assert left(Near(VECTORS, 0.7), "unheard", unheard="good,bad") == {"unheard": "good,bad"}
    assert left(Near(VECTORS, 0.7, known=True), "unheard", unheard="good,bad") == {}
    assert left(Near(VECTORS, 1), "GOOD", GOOD="good,great") == {"GOOD": "good"}


def test_near_agrees_with_one_pair_at_a_time() -> None:
    rng = np.random.default_rng(0)
    vocabulary = [f"w{i}" for i in range(30)]
    vectors = {word: rng.normal(size=5) for word in vocabulary[:25]}
    table = {word: tuple(one for one in vocabulary if one != word) for word in vocabulary}
    grid = grid_of(" ".join(vocabulary), [Near(vectors, 0.2)], table)
    expected = []
    for word in vocabulary:
        kept = []
        for one in table[word]:
            if (
                word not in vectors
                or one not in vectors
                or vectors[word] @ vectors[one] / np.sqrt((vectors[word] ** 2).sum() * (vectors[one] ** 2).sum()) >= 0.2
            ):
                kept.append(one)
        expected.append(tuple(kept))
    assert grid.candidates == tuple(expected)


def test_near_reads_a_file(tmp_path: Path) -> None:
    file = tmp_path / "vectors.txt"
    file.write_text("".join(f"{word} {' '.join(map(str, row))}\n" for word, row in VECTORS.items()), encoding="utf-8")
    rule = Near.read(file, 0.9)
    assert left(rule, "good", good="great,fine,bad") == {"good": "great"}
    with pytest.raises(VectorsError, match="No such file"):
        Near.read(tmp_path / "none.txt", 0.9)


def test_nears_name_stands_for_its_vectors() -> None:
    other = VECTORS | {"bad": [-1.0, 0.2]}
    rules = [Near(VECTORS, 0.5), Near(VECTORS, 0.6), Near(other, 0.5), Near(VECTORS, 0.5, known=True)]
    assert len({rule.name for rule in rules}) == 4
    assert Near(dict(VECTORS), 0.5) == rules[0]
    assert hash(Near(dict(VECTORS), 0.5)) == hash(rules[0])
    assert rules[0] != rules[2]


@pytest.mark.parametrize(
    ("vectors", "cosine", "message"),
    [
        (VECTORS, 1.5, r"a cosine lies between -1 and 1, got 1.5; floor_from\(\) converts other scales"),
        (VECTORS, float("nan"), "a cosine lies between -1 and 1, got nan"),
        ({}, 0.5, r"no vector was given; map words to vectors, or read a file of them with Near.read\("),
        ({"a": [1.0], "b": [1.0, 2.0]}, 0.5, "the vector of 'b' has 2 numbers, the others have 1; use one space"),
        ({"a": [0.0]}, 0.5, "the vector of 'a' has no direction"),
        ({"a": [float("nan")]}, 0.5, "the vector of 'a' has no direction"),
        ({"a": [[1.0]]}, 0.5, "the vector of 'a' has no direction"),
    ],
)
def test_near_says_what_is_wrong(vectors: dict[str, Any], cosine: float, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Near(vectors, cosine)


# a language model


@pytest.fixture(scope="module")
def gpt(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A random GPT-2 of one small layer, over bytes."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers
    from transformers import GPT2Config, GPT2LMHeadModel, PreTrainedTokenizerFast

    folder = str(tmp_path_factory.mktemp("gpt"))
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    merges = [("Ġ", "f"), ("Ġf", "i"), ("l", "m")]
    pieces = ["<end>", *alphabet, *(a + b for a, b in merges)]
    tokenizer = Tokenizer(models.BPE({piece: i for i, piece in enumerate(pieces)}, merges))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token="<end>").save_pretrained(folder)
    torch.manual_seed(0)
    config = GPT2Config(
        vocab_size=len(pieces),
        n_positions=40,
        n_embd=16,
        n_layer=1,
        n_head=2,
        bos_token_id=0,
        eos_token_id=0,
        initializer_range=0.5,
    )
    GPT2LMHeadModel(config).save_pretrained(folder)
    return folder


@cache
def loaded(folder: str) -> tuple[Any, Any]:
    from transformers import AutoModelForCausalLM, AutoTokenizer

    return AutoTokenizer.from_pretrained(folder), AutoModelForCausalLM.from_pretrained(folder).eval()


def chance(folder: str, text: str) -> float:
    """The log probability of a text, one letter after the other, each in a pass of its own."""
    tokenizer, model = loaded(folder)
    ids, total = [0, *tokenizer.encode(text)][-40:], 0.0
    for at in range(1, len(ids)):
        with torch.no_grad():
            odds = model(input_ids=torch.tensor([ids[:at]])).logits[0, -1].exp().numpy().astype(np.float64)
        total += float(np.log(odds[ids[at]] / odds.sum()))
    return total


CANDIDATES = ("movie", "filmy", "flick", "shows", "table", "xx yy", "éaé", "talks", "picture")
TEXT = "It was a good film, I think."


@pytest.mark.parametrize("before", [0, 1, 3])
def test_the_most_probable_candidates_stay(gpt: str, before: int) -> None:
    prefix = {0: "", 1: "good ", 3: "was a good "}[before]
    best = sorted(CANDIDATES, key=lambda one: -chance(gpt, prefix + one))[:4]
    kept = left(LanguageModel(gpt, 4, before), TEXT, film=",".join(CANDIDATES))["film"].split(",")
    assert kept == [one for one in CANDIDATES if one in best]


def test_a_first_word_has_nothing_before_it(gpt: str) -> None:
    best = max(CANDIDATES, key=lambda one: chance(gpt, one))
    assert left(LanguageModel(gpt, 1, 5), "Film!", Film=",".join(CANDIDATES)) == {"Film": best}


def test_the_context_changes_the_choice(gpt: str) -> None:
    rule = LanguageModel(gpt, 2)
    found = {left(rule, f"{word} film", film=",".join(CANDIDATES))["film"] for word in ("good", "bad", "12", "o", "Z")}
    assert len(found) > 1


def test_chances_do_not_depend_on_what_else_is_in_the_batch(gpt: str) -> None:
    chances = Chances(gpt)
    texts = ["", "a", "good film", "x" * 100, "\ud800", "a" * 5]
    together = chances(texts)
    assert together[0] == 0
    for text, value in zip(texts, together, strict=True):
        assert chances([text])[0] == pytest.approx(value, abs=1e-4)
        if len(text) < 40 and text != "\ud800":
            assert chance(gpt, text) == pytest.approx(value, abs=1e-4)


def test_many_tokens_are_read_in_several_passes(gpt: str, monkeypatch: pytest.MonkeyPatch) -> None:
    texts = [one * n for n in (1, 3) for one in CANDIDATES]
    whole = Chances(gpt)(texts)
    monkeypatch.setattr("scrimp.spaces.fluency.TOKENS", 60)
    assert Chances(gpt)(texts) == pytest.approx(whole, abs=1e-4)


def test_a_few_candidates_need_no_model(gpt: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("scrimp.spaces.fluency._model", None)
    assert left(LanguageModel(gpt, 3), "good film", film="a,b,c") == {"film": "a,b,c"}


def test_equal_candidates_stay_in_their_order(gpt: str, monkeypatch: pytest.MonkeyPatch) -> None:
    class Same:
        def __call__(self, texts: Sequence[str]) -> Any:
            return np.zeros(len(texts))

    monkeypatch.setattr("scrimp.spaces.fluency._model", lambda folder: Same())
    assert left(LanguageModel(gpt, 2), "good film", film="d,c,b,a") == {"film": "d,c"}


def test_the_name_stands_for_the_model(gpt: str, tmp_path: Path) -> None:
    from shutil import copytree

    copy = tmp_path / "other" / "place"
    copytree(gpt, copy)
    assert LanguageModel(copy).name == LanguageModel(gpt).name
    assert LanguageModel(gpt).name.startswith("lm(4,1,")
    assert len({LanguageModel(gpt, 2).name, LanguageModel(gpt).name, LanguageModel(gpt, before=2).name}) == 3
    other = tmp_path / "changed"
    copytree(gpt, other)
    weights = other / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-1] + b"\1")
    assert LanguageModel(other).name != LanguageModel(gpt).name


def test_a_language_model_says_what_is_wrong(gpt: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="at least 1 candidate stays, got keep=0"):
        LanguageModel(gpt, 0)
    with pytest.raises(ValueError, match="0 or more words before a word are read, got before=-1"):
        LanguageModel(gpt, before=-1)
    with pytest.raises(ValueError, match=r"has no config\.json; give the directory of a causal language model"):
        left(LanguageModel(tmp_path, 1), "film", film="a,b")


def test_one_thread_reads_and_the_number_of_threads_stays(gpt: str, monkeypatch: pytest.MonkeyPatch) -> None:
    before, inside = torch.get_num_threads(), []
    torch.set_num_threads(2)
    real = Chances.__call__

    def call(self: Chances, texts: Sequence[str]) -> Any:
        inside.append(torch.get_num_threads())
        return real(self, texts)

    monkeypatch.setattr(Chances, "__call__", call)
    left(LanguageModel(gpt, 1), "good film", film="a,b", good="c,d")
    assert torch.get_num_threads() == 2
    torch.set_num_threads(before)
    assert inside == [1, 1]


@pytest.mark.parametrize(
    ("rule", "wrong", "message"),
    [(SameClass, -1, "0 or more words on either side, got reach=-1"), (NoRepeats, 0, "at least 1 word .* got reach=0")],
)
def test_bad_reaches_are_refused_at_once(rule: Any, wrong: int, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        rule(wrong)
