"""The masked-word space: real candidates from the embedded model, any tokeniser, and nothing depends on the batch."""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scrimp.attacks.types import DROP, Example
from scrimp.benchmarks import masked as benchmark
from scrimp.resources import fetch
from scrimp.spaces import Protect, ShareChanged, Space, StopWords, WordNet, card, corpus, masked, train_masked
from scrimp.spaces.filling import EMBEDDED, Filler, load_filler
from scrimp.spaces.grid import WordGrid
from scrimp.spaces.masked import WINDOW, Masked, masked_together, stem
from scrimp.spaces.rules import stop_words
from scrimp.spaces.tokens import is_word, words
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors
from transformers import (
    BertConfig,
    BertForMaskedLM,
    DistilBertConfig,
    DistilBertForMaskedLM,
    PreTrainedTokenizerFast,
    RobertaConfig,
    RobertaForMaskedLM,
)

FILM = "a superb film , full of brilliant performances and a smart script ."
FEW = Space(Masked(k=10), (StopWords(),))
PLAIN = Space(Masked(k=10, pair=False), (StopWords(),))
SHARED = Space(Masked(k=10, together=True), (StopWords(),))
forms = pytest.mark.parametrize("space", [FEW, PLAIN, SHARED], ids=["pair", "plain", "together"])
VOCABULARY = ("good", "great", "film", "films", "movie", "bad", "the", "very", "story", "London", "café")
PIECES = ("un", "ing", "x", "10", "!", "(", ".", ",")


def grid_of(space: Space, *text: str, **more: Any) -> WordGrid:
    grid = space([Example("one", text, 0, **more)])[0]
    assert isinstance(grid, WordGrid)
    return grid


def candidates(space: Space, text: str) -> dict[str, tuple[str, ...]]:
    grid = grid_of(space, text)
    return dict(zip(grid.slot_words, grid.candidates, strict=True))


def forget() -> None:
    masked._proposed.cache_clear()


# candidates of the embedded model


@forms
def test_candidates_are_other_words_in_the_same_case(space: Space) -> None:
    for text in (
        FILM,
        "The Plot is BORING, and 10 jokes aren't funny<br /><br />[MASK] </s>.",
        "I don't like the well-known plot's end.",
    ):
        grid = grid_of(space, text)
        assert grid.slots
        for word, found in zip(grid.slot_words, grid.candidates, strict=True):
            assert 5 <= len(found) <= 10
            assert len({other.lower() for other in found}) == len(found)
            for other in found:
                assert is_word(other)
                assert other.isalpha()
                assert stem(other.lower()) != stem(word.lower())
                assert other.lower() not in stop_words()
                assert (other.isupper(), other[0].isupper()) == (len(word) > 1 and word.isupper(), word[0].isupper())


def test_the_visible_word_keeps_its_meaning_in_view() -> None:
    found = candidates(FEW, FILM)
    assert len({"great", "excellent", "fantastic", "spectacular", "wonderful", "terrific"} & set(found["superb"])) >= 3
    assert "movie" in found["film"]
    assert found != candidates(PLAIN, FILM)


def test_the_context_counts() -> None:
    money = candidates(FEW, "The bank raised its interest rates and gave loans to companies.")["bank"]
    water = candidates(FEW, "He sat on the muddy bank of the river and watched the fish.")["bank"]
    assert money != water


def test_case_follows_the_word() -> None:
    lower, title, upper = (candidates(FEW, FILM.replace("superb", word))[word] for word in ("superb", "Superb", "SUPERB"))
    assert title == tuple(word.capitalize() for word in lower)  # the model itself sees no case
    assert upper == tuple(word.upper() for word in lower)


def test_words_of_the_same_stem_only_when_asked_for() -> None:
    everything = Space(Masked(k=50, same_stem=True), (StopWords(),))
    stems = {stem(word) for word in candidates(everything, "the movie was one of the best movies")["movie"]}
    assert stem("movies") in stems
    assert "movies" not in candidates(Space(Masked(k=50)), "the movie was one of the best movies")["movie"]
    assert stem("plot's") == stem("plots")


def test_function_words_stand_in_for_function_words_only() -> None:
    found = candidates(Space(Masked(k=20, pair=False)), "the film was in the town")
    assert set(found["in"]) & stop_words()
    assert not set(found["film"]) & stop_words()


def test_blend_moves_towards_the_word_itself() -> None:
    filler = load_filler(None)
    found = words(FILM)
    gap = filler.gaps(FILM, found, [1], WINDOW, pair=False)[0]
    near = dict(zip(filler.vocabulary.words, filler.cosines([gap])[0].tolist(), strict=True))
    assert near["superb"] == pytest.approx(1.0, abs=1e-5)
    lists = [candidates(Space(Masked(k=10, pair=False, blend=w)), FILM)["superb"] for w in (0.0, 8.0, 1e6)]
    means = [np.mean([near[word] for word in some]) for some in lists]
    assert means[0] < means[1] < means[2]
    assert lists[2] == tuple(sorted(lists[2], key=lambda word: -round(near[word], 6)))


def test_multiword_and_empty_fields() -> None:
    assert grid_of(FEW, "").why_empty == "the text has no words"
    assert grid_of(FEW, "the of and").why_empty.startswith("no word of 3 has a candidate: 3 stop words")
    pair = grid_of(FEW, "A man sleeps.", "A person rests.", editable=(1,))
    assert {slot.field for slot in pair.slots} == {1}


@settings(deadline=None, max_examples=25, derandomize=True)
@given(
    st.lists(
        st.sampled_from((*"😀é\ud800\0\u202e<>&", " ", "<br />", "film", "שלום", "日本", "Straße", "x" * 300)), max_size=6
    )
)
def test_any_text_is_rebuilt(pieces: list[str]) -> None:
    text = "".join(pieces)
    grid = grid_of(PLAIN, text)
    assert grid.decode(np.zeros((1, len(grid.slots)), np.int16)) == [(text,)]


# nothing depends on the batch


@forms
def test_company_and_order_do_not_matter(space: Space) -> None:
    texts = [
        FILM,
        "Dull.",
        "The " + "very " * 40 + "long story ended badly in 1999, they said.",
        "she bought a car",
        FILM + " superb",
    ]
    examples = [Example(str(i), (text,), 0) for i, text in enumerate(texts)]
    forget()
    together = [grid.slots for grid in space(examples)]  # type: ignore[attr-defined]
    forget()
    backwards = [grid.slots for grid in space(examples[::-1])][::-1]  # type: ignore[attr-defined]
    forget()
    alone = [space([example])[0].slots for example in examples]  # type: ignore[attr-defined]
    assert together == backwards == alone


def test_scores_of_a_gap_are_the_same_to_the_last_bit() -> None:
    filler = load_filler(None)
    found = words(FILM)
    for pair in (False, True):
        gaps = filler.gaps(FILM, found, range(len(found)), WINDOW, pair)
        together = filler.scores(gaps, pair)
        for gap, scores in zip(gaps, together, strict=True):
            assert (filler.scores([gap], pair)[0] == scores).all()


def test_nearness_of_a_word_is_the_same_to_the_last_bit() -> None:
    filler = load_filler(None)
    found = words(FILM)
    gaps = filler.gaps(FILM, found, range(len(found)), WINDOW, pair=True)
    for gap, near in zip(gaps, filler.cosines(gaps), strict=True):
        assert (filler.cosines([gap])[0] == near).all()


@forms
def test_other_positions_and_threads_do_not_matter(space: Space) -> None:
    whole = grid_of(space, FILM)
    forget()
    threads = torch.get_num_threads()
    try:
        torch.set_num_threads(2 if threads == 1 else 1)
        part = grid_of(space.with_rules(Protect(frozenset({"film", "full", "smart"}))), FILM)
    finally:
        torch.set_num_threads(threads)
    assert set(part.slots) < set(whole.slots)


def test_equal_scores_are_ordered_by_the_vocabulary() -> None:
    known = load_filler(None).vocabulary.words
    level = np.full(len(known), -5.0)
    noise = level + np.random.default_rng(0).normal(0, 1e-6, len(level))
    level[7000] = noise[7000] = -4.0
    found = Masked(k=5).ranked(known, "superb", level)
    assert found == Masked(k=5).ranked(known, "superb", noise)
    assert found[0] == known[7000]


def test_a_remembered_answer_belongs_to_its_options() -> None:
    assert len(candidates(Space(Masked(k=3)), FILM)["superb"]) == 3
    assert len(candidates(Space(Masked(k=4)), FILM)["superb"]) == 4


# several gaps of a pass


def test_words_that_share_a_pass_are_apart_and_of_half_a_window() -> None:
    text = FILM + " The plot was in the town , and nobody there had ever seen anything like the quiet old house by the sea ."
    found = words(text)
    mates = masked_together(found, 10)
    for position, word in enumerate(found):
        group = mates(position)
        assert position in group
        assert all(mates(other) == group for other in group)
        assert max(group) - min(group) < 5
        assert len({found[other].text.lower() in stop_words() for other in group}) == 1
        alike = [p for p, w in enumerate(found) if (w.text.lower() in stop_words()) == (word.text.lower() in stop_words())]
        places = [alike.index(other) for other in group]
        assert all(b - a == 2 for a, b in pairwise(places))


def test_one_row_serves_all_gaps_that_share_it() -> None:
    filler = load_filler(None)
    text = (
        FILM + " The unwatchably dull plot was set in a town where nobody had ever seen anything like the quiet old house ."
    )
    found = words(text)
    mates = masked_together(found, WINDOW)
    gaps = filler.gaps(text, found, range(len(found)), WINDOW, True, mates)
    groups = {mates(position) for position in range(len(found))}
    rows = [filler._row(gap, True) for gap in gaps]
    assert len({row for row, _ in rows}) == len(groups) < len(found) / 3
    for position, (row, place) in enumerate(rows):
        assert row.ids[place] == filler._mask
        assert row.ids.count(filler._mask) == len(mates(position))
        assert filler._mask not in row.ids[: row.second]
    together = filler.scores(gaps, True)
    for gap, scores in zip(gaps, together, strict=True):
        assert (filler.scores([gap], True)[0] == scores).all()


def test_a_single_mate_is_a_gap_of_its_own() -> None:
    filler = load_filler(None)
    found = words(FILM)
    plain = filler.gaps(FILM, found, [1, 4], WINDOW, True)
    alone = filler.gaps(FILM, found, [1, 4], WINDOW, True, lambda position: (position,))
    assert [filler._row(gap, True) for gap in alone] == [filler._row(gap, True) for gap in plain]


def test_a_window_too_long_for_the_model_is_not_shared(tiny: tuple[str, str]) -> None:
    filler = load_filler(tiny[1])
    text = "the good film (very bad story) " * 20
    found = words(text)
    gaps = filler.gaps(text, found, range(len(found)), 100, True, masked_together(found, 100))
    for gap in gaps:
        row, place = filler._row(gap, True)
        assert len(row.ids) <= filler.positions
        assert row.ids[place] == filler._mask
    assert len(filler.scores(gaps, True)) == len(found)


def test_words_masked_together_keep_good_candidates() -> None:
    found = candidates(SHARED, FILM)
    assert len({"great", "excellent", "fantastic", "spectacular", "wonderful", "terrific"} & set(found["superb"])) >= 3
    assert "movie" in found["film"]
    assert found != candidates(FEW, FILM)  # other words were hidden


# windows


def test_a_long_text_is_seen_through_a_window_around_each_word() -> None:
    middle = "In the end the hero saved a small town and everybody was happy about it."
    space = Space(Masked(k=10, window=9), (StopWords(), Protect(frozenset({"alpha", "omega"}))))
    one, two = (candidates(space, far + middle + " " + far)["saved"] for far in ("alpha " * 1000, "omega " * 1000))
    assert one == two  # what lies outside the window cannot matter
    assert candidates(space, middle.replace("hero", "bank"))["saved"] != one


def test_a_window_has_its_width_at_the_edges_too() -> None:
    filler = load_filler(None)
    text = " ".join(["red", "green", "blue"] * 30)
    found = words(text)
    for position in (0, 1, 45, 88, 89):
        gap = filler.gaps(text, found, [position], 30, pair=False)[0]
        assert len(gap.left) + 1 + len(gap.right) == 30
    assert len(filler.gaps(text, found, [45], 30, pair=False)[0].left) == 15
    stop = filler.gaps("he slept. she woke", words("he slept. she woke"), [0], 2, pair=False)[0]
    assert len(stop.right) == 2  # slept and its full stop


@pytest.mark.parametrize("pair", [False, True])
def test_what_does_not_fit_the_model_is_left_out_far_from_the_word(pair: bool) -> None:
    filler = load_filler(None)
    text = " ".join(["red", "green", "blue"] * 700)
    found = words(text)
    for position in (0, 5, 1000, 2098, 2099):
        gap = filler.gaps(text, found, [position], 10_000, pair)[0]
        shown = len(gap.left) + len(gap.right)
        assert filler.positions - 2 <= (2 * shown + 1 + len(gap.own) + 3 if pair else shown + 1 + 2) <= filler.positions
        assert filler.scores([gap], pair)[0].shape == (len(filler.vocabulary.words),)
        assert len(gap.own) == 1
    assert abs(len(filler.gaps(text, found, [1000], 10_000, pair)[0].left) - shown / 2) <= 1
    endless = "é" * 5000
    gap = filler.gaps(f"{endless} {endless}", words(f"{endless} {endless}"), [1], 30, pair)[0]
    assert filler.scores([gap], pair)[0].size


def test_markup_is_no_context() -> None:
    filler = load_filler(None)
    text = "good<br /><br />film &quot;ends&quot;"
    gap = filler.gaps(text, words(text), [1], 30, pair=False)[0]
    assert len(gap.left) == 1
    assert len(gap.right) == 1


# other models


def bert_tokenizer(uncased: bool = True) -> Tokenizer:
    names = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *VOCABULARY, *PIECES, "##ing", "##watch", "##able", "[unused1]"]
    made = Tokenizer(models.WordPiece({name: i for i, name in enumerate(names)}, unk_token="[UNK]"))
    made.normalizer = normalizers.BertNormalizer(lowercase=False, strip_accents=False)
    made.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    ends = [("[CLS]", 2), ("[SEP]", 3)]
    made.post_processor = processors.TemplateProcessing("[CLS] $A [SEP]", "[CLS] $A [SEP] $B:1 [SEP]:1", ends)
    made.enable_truncation(4)  # as some published files have it
    made.enable_padding(length=4)
    return made


def roberta_tokenizer() -> Tokenizer:
    names = ["<s>", "<pad>", "</s>", "<unk>", "<mask>", *sorted(pre_tokenizers.ByteLevel.alphabet())]
    merges: list[tuple[str, str]] = []
    for word in (*VOCABULARY, "ing"):
        spaced = "" if word == "ing" else " "
        symbols = list(pre_tokenizers.ByteLevel(add_prefix_space=False).pre_tokenize_str(spaced + word)[0][0])
        rest = symbols[1:] if spaced else symbols
        while len(rest) > 1:
            merges.append((rest[0], rest[1]))
            rest = [rest[0] + rest[1], *rest[2:]]
        if spaced:
            merges.append((symbols[0], rest[0]))
    names += list(dict.fromkeys(a + b for a, b in merges))
    made = Tokenizer(models.BPE({name: i for i, name in enumerate(names)}, list(dict.fromkeys(merges))))
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel()
    made.post_processor = processors.RobertaProcessing(("</s>", 2), ("<s>", 0), add_prefix_space=False)
    return made


def saved(folder: Path, kind: str) -> str:
    torch.manual_seed(0)
    small: dict[str, Any] = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 16}
    model: Any
    if kind == "roberta":
        tokens = roberta_tokenizer()
        config = RobertaConfig(vocab_size=tokens.get_vocab_size(), max_position_embeddings=42, type_vocab_size=1, **small)
        model = RobertaForMaskedLM(config)
        special = {
            "bos": "<s>",
            "eos": "</s>",
            "cls": "<s>",
            "sep": "</s>",
            "pad": "<pad>",
            "unk": "<unk>",
            "mask": "<mask>",
        }
    else:
        tokens = bert_tokenizer()
        size = tokens.get_vocab_size()
        if kind == "bert":
            model = BertForMaskedLM(BertConfig(vocab_size=size, max_position_embeddings=40, **small))
        else:
            wide = {"dim": 16, "n_layers": 1, "n_heads": 2, "hidden_dim": 16}
            model = DistilBertForMaskedLM(DistilBertConfig(vocab_size=size, max_position_embeddings=40, **wide))
        special = {"cls": "[CLS]", "sep": "[SEP]", "pad": "[PAD]", "unk": "[UNK]", "mask": "[MASK]"}
    model.save_pretrained(folder)
    names = {f"{name}_token": token for name, token in special.items()}
    PreTrainedTokenizerFast(tokenizer_object=tokens, **names).save_pretrained(folder)
    return str(folder)


@pytest.fixture(scope="module", params=["bert", "roberta", "distilbert"])
def tiny(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str]:
    return request.param, saved(tmp_path_factory.mktemp(request.param), request.param)


def asked(filler: Filler, text: str, position: int, pair: bool, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """What the model is given, as pieces."""
    given: dict[str, Any] = {}
    forward = filler.model.forward

    def spy(**arguments: Any) -> Any:
        given.update(arguments)
        return forward(**arguments)

    monkeypatch.setattr(filler.model, "forward", spy)
    filler.scores(filler.gaps(text, words(text), [position], WINDOW, pair), pair)
    seen = int(given["attention_mask"][0].sum())
    pieces = [filler._cut.id_to_token(i) for i in given["input_ids"][0, :seen].tolist()]
    return {"pieces": pieces, "types": given["token_type_ids"][0, :seen].tolist() if "token_type_ids" in given else None}


def test_the_model_is_given_its_own_frame(tiny: tuple[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    kind, folder = tiny
    filler = load_filler(folder)
    text = "the unwatchable film!" if kind != "roberta" else "the very bad film!"
    plain = asked(filler, text, 1, False, monkeypatch)["pieces"]
    both = asked(filler, text, 1, True, monkeypatch)
    if kind == "roberta":
        assert plain == ["<s>", "the", "<mask>", "Ġbad", "Ġfilm", "!", "</s>"]
        assert both["pieces"] == ["<s>", "the", "Ġvery", "Ġbad", "Ġfilm", "!", "</s>", *["</s>", *plain[1:]]]
    else:
        assert plain == ["[CLS]", "the", "[MASK]", "film", "!", "[SEP]"]
        assert both["pieces"] == ["[CLS]", "the", "un", "##watch", "##able", "film", "!", "[SEP]", *plain[1:]]
    assert both["types"] == ([0] * 8 + [1] * 5 if kind == "bert" else None)


def test_only_whole_words_are_proposed(tiny: tuple[str, str]) -> None:
    kind, folder = tiny
    known = load_filler(folder).vocabulary
    assert set(known.words) == set(VOCABULARY) | ({"un", "ing"} if kind != "roberta" else set())
    found = candidates(Space(Masked(folder, k=20, same_stem=True), (StopWords(),)), "good films (movie) from London")
    assert set(found) == {"good", "films", "movie", "London"}
    assert {"great", "bad", "story"} <= set(found["good"])
    assert not {"good", "London"} & set(found["good"])  # the word itself, and names for words that are none
    assert {"Good", "Café"} <= set(found["London"])


def test_only_models_that_see_spaces_tell_glued_words_apart(tiny: tuple[str, str]) -> None:
    kind, folder = tiny
    filler = load_filler(folder)
    text = "good film (movie)"
    glued = [gap.glued for gap in filler.gaps(text, words(text), [0, 1, 2], WINDOW, pair=False)]
    assert glued == ([True, False, True] if kind == "roberta" else [False] * 3)
    different = filler.vocabulary.spaced != filler.vocabulary.glued
    assert different.all() if kind == "roberta" else not different.any()


def test_long_texts_fit_every_model(tiny: tuple[str, str]) -> None:
    _, folder = tiny
    filler = load_filler(folder)
    assert filler.positions == 40
    text = "the good film (very bad story) " * 60
    for pair in (False, True):
        assert grid_of(Space(Masked(folder, pair=pair, window=200), (StopWords(),)), text[:2000]).slots


def test_typed_special_tokens_are_plain_text(tiny: tuple[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    _, folder = tiny
    filler = load_filler(folder)
    given = asked(filler, "[MASK] <mask> [SEP] </s> film", 2, True, monkeypatch)
    assert given["pieces"].count(filler._cut.id_to_token(filler._mask)) == 1


def test_company_does_not_matter_to_other_models(tiny: tuple[str, str]) -> None:
    _, folder = tiny
    space = Space(Masked(folder, k=5), (StopWords(),))
    texts = ["good film", "the very bad story of London (good movie)"]
    forget()
    together = [grid.candidates for grid in space([Example("", (text,), 0) for text in texts])]
    forget()
    assert together == [grid_of(space, text).candidates for text in texts]


# names and errors


def test_names_tell_everything_that_changes_results(tiny: tuple[str, str]) -> None:
    base = Masked()
    variants = [
        *(base, replace(base, k=49), replace(base, pair=False), replace(base, window=31), replace(base, same_stem=True)),
        *(replace(base, together=True), replace(base, blend=base.blend + 0.5), Masked(tiny[1]), Masked("bert-base-uncased")),
    ]
    assert len({source.name for source in variants}) == len(variants)
    assert hashlib.sha256(hashlib.sha256(EMBEDDED.read_bytes()).digest()).hexdigest()[:8] in base.name
    assert "masked(bert-base-uncased,pair," in variants[-1].name


def test_another_model_in_the_same_folder_is_another_source(tmp_path: Path) -> None:
    source = Masked(saved(tmp_path, "bert"), k=3)
    before, first = source.name, candidates(Space(source), "the good film")
    torch.manual_seed(1)
    config = BertConfig.from_pretrained(tmp_path)
    BertForMaskedLM(config).save_pretrained(tmp_path)
    assert source.name != before
    assert candidates(Space(source), "the good film") != first


@pytest.mark.parametrize(("options", "message"), [({"k": 0}, "k=0"), ({"window": 0}, "window=0"), ({"blend": -1}, "got -1")])
def test_bad_options_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Masked(**options)


def test_models_that_cannot_fill_a_gap_are_refused(tmp_path: Path) -> None:
    saved(tmp_path, "bert")
    PreTrainedTokenizerFast(tokenizer_object=bert_tokenizer(), pad_token="[PAD]").save_pretrained(tmp_path)
    with pytest.raises(ValueError, match=r"no mask token.*bert-base-uncased.*leave it out"):
        grid_of(Space(Masked(str(tmp_path))), "good film")
    (tmp_path / "empty").mkdir()
    with pytest.raises(ValueError, match="is no masked language model that can be loaded"):
        grid_of(Space(Masked(str(tmp_path / "empty"))), "good film")
    with pytest.raises(ValueError, match=r"does not exist; make it with python -m scrimp.spaces.train_masked"):
        grid_of(Space(Masked(str(tmp_path / "lost.safetensors"))), "good film")


# candidates around an edit


def test_around_proposes_in_the_edited_text() -> None:
    space = FEW.with_rules(ShareChanged(0.4))
    text = "The old bank raised its rates ."
    grid = grid_of(space, text)
    code = np.zeros(len(grid.slots), np.int16)
    code[1] = 3
    edited = grid.decode(code[None])[0][0]
    fresh, moved = grid.around(code)
    assert fresh.decode(moved[None])[0] == (edited,)
    assert fresh.decode(np.zeros_like(moved)[None])[0] == (text,)
    assert [slot[:4] for slot in fresh.slots] == [slot[:4] for slot in grid.slots]
    assert fresh.most_changed == grid.most_changed
    anew = candidates(space, edited)
    assert fresh.candidates[2] == anew["raised"] != grid.candidates[2]
    assert fresh.candidates[1][0] == grid.candidates[1][2]
    assert set(fresh.candidates[1][1:]) == set(anew[fresh.candidates[1][0]]) - {"bank"}
    some, moved = grid.around(code, [2])
    assert some.candidates[2] == fresh.candidates[2]
    assert some.candidates[0] == grid.candidates[0]
    assert some.decode(moved[None])[0] == (edited,)
    with pytest.raises(ValueError, match="leaves words out"):
        grid.around(np.full_like(code, DROP))


def test_around_without_an_edit_changes_nothing_and_phrases_shift() -> None:
    grid = grid_of(FEW, FILM)
    same, moved = grid.around(np.zeros(len(grid.slots), np.int16))
    assert same.slots == grid.slots
    assert not moved.any()
    phrases = Space(WordNet(pos=False, phrases=True), (StopWords(),))
    wide = grid_of(phrases, "a good movie , a long night")
    code = np.zeros(len(wide.slots), np.int16)
    code[1] = 1 + next(i for i, other in enumerate(wide.candidates[1]) if " " in other)
    fresh, moved = wide.around(code)
    assert fresh.decode(moved[None]) == wide.decode(code[None])
    assert fresh.candidates[2:] == wide.candidates[2:]


# the embedded weights and their training


def test_weights_card_and_record_agree() -> None:
    said = json.loads(EMBEDDED.with_suffix(".card.json").read_text(encoding="utf-8"))
    assert said["sha256"] == hashlib.sha256(EMBEDDED.read_bytes()).hexdigest()
    assert EMBEDDED.stat().st_size < 3_000_000
    assert said["vocabulary"] == len(load_filler(None).vocabulary.words)
    defaults = vars(train_masked.options().parse_args([]))
    assert said["options"] == {key: value for key, value in defaults.items() if key != "out"}
    record = json.loads(benchmark.RECORD.read_text(encoding="utf-8"))
    assert record["weights"]["bytes"] == EMBEDDED.stat().st_size
    assert record["mates"]["default"] == masked.BLEND
    for kind, rows in said["accuracy"].items():
        assert record["accuracy"]["embedded"][kind] == rows


def test_words_are_found_again_in_sentences_the_model_has_not_seen() -> None:
    from scrimp.victims import HELD_OUT

    texts = [line.split("\t")[1] for line in HELD_OUT.read_text(encoding="utf-8").splitlines()[:100]]
    found = card.accuracy(load_filler(None), texts, pair=False)
    assert found["words"] >= 98
    assert found["top_1"] < found["top_10"] < found["top_50"]
    assert found["top_50"] > 0.35  # an untrained head finds none
    assert card.accuracy(load_filler(None), texts[:40], pair=True)["top_1"] > 0.8


def test_training_learns_and_repeats(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    text = "the film is a warm and funny story about a quiet man who finds a strange old house near the river"
    kinds = {kind: [text] * 8 for kind in train_masked.KINDS}
    small = corpus.Texts(kinds, [text] * 4, {"reviews": [text] * 3, "wordnet": [text]})
    monkeypatch.setattr(train_masked, "read_texts", lambda: small)
    find = train_masked.find_synonyms
    monkeypatch.setattr(train_masked, "find_synonyms", lambda words, ids: find(words[-9000:-8000], ids[-9000:-8000]))
    threads = torch.get_num_threads()
    options = ["--steps", "12", "--batch", "8", "--rank", "4", "--check", "6", "--synonyms", "1"]
    files = [tmp_path / "one.safetensors", tmp_path / "two.safetensors"]
    try:
        for file in files:
            train_masked.main([*options, "--out", str(file)])
    finally:
        torch.set_num_threads(threads)
    assert files[0].read_bytes() == files[1].read_bytes()
    said = json.loads(files[0].with_suffix(".card.json").read_text(encoding="utf-8"))
    assert said["options"]["rank"] == 4
    assert said["command"].endswith(" ".join([*options, "--out", str(files[0])]))
    assert "step 12 of 12: loss" in capsys.readouterr().out
    untouched = card.accuracy(benchmark.untrained(), [text], pair=False)
    learned = card.accuracy(load_filler(str(files[0])), [text] * 6, pair=False)
    assert untouched["top_50"] == 0.0
    assert learned["top_50"] > 0.5
    assert candidates(Space(Masked(str(files[0]), k=5)), text)["film"]


def test_training_text_is_cut_between_words_and_held_out_rows_stay_out() -> None:
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(str(fetch("minilm")), local_files_only=True)
    text = "unbelievably good storytelling " * 30
    cut = corpus.windows([text], tokenizer, np.random.default_rng(0))
    assert np.concatenate(cut).tolist() == tokenizer(text, add_special_tokens=False)["input_ids"]
    assert all(corpus.whole_starts(tokenizer)[window[0]] for window in cut)
    assert all(len(window) <= corpus.LONGEST for window in cut)
    seen, held = corpus.read_glosses(fetch("wordnet"))
    assert {row[0] for row in held}
    assert 30 < len(seen) / len(held) < 50


def test_what_is_masked_and_what_is_shown_instead() -> None:
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(str(fetch("minilm")), local_files_only=True)
    targets = train_masked.Targets(tokenizer, 0.0)
    window = np.array(tokenizer("it doesn't unwatchable 1999 great film", add_special_tokens=False)["input_ids"], np.int32)
    pieces = tokenizer.convert_ids_to_tokens(window)
    masked_words = {pieces[i] for i in np.flatnonzero(targets.open(window))}
    assert masked_words == {"it", "great", "film"}
    ids = {word: tokenizer.convert_tokens_to_ids(word) for word in ("film", "movie", "picture", "great", "seven")}
    table = train_masked.find_synonyms(list(ids), list(ids.values()))
    open_words = [word for word in ids if not train_masked.held_word(word)]
    for number, others in table.items():
        assert number in {ids[word] for word in open_words}
        assert number not in others
    targets.synonyms, targets.share = {ids["film"]: np.array([ids["movie"]])}, 1.0
    place = np.array([pieces.index("film")])
    shown = targets.disguise(window, place, np.random.default_rng(0))
    assert tokenizer.convert_ids_to_tokens(shown)[-1] == "movie"
    assert (shown[:-1] == window[:-1]).all()
