"""A masked language model: for a word in its context, a score for every word that could stand in its place."""

from __future__ import annotations

import hashlib
import os
import re
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache, cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import regex
from numpy.typing import NDArray

from ..resources import fetch
from .tokens import MARKUP, Word, is_word

EMBEDDED = Path(__file__).parent / "data" / "masked_minilm.safetensors"
SURROGATE = re.compile("[\ud800-\udfff]")  # halves of characters, which no tokeniser takes
TAG = regex.compile(MARKUP)
MARKERS = ("Ġ", "▁")  # a space before the piece, as byte-level BPE and SentencePiece write it
MASK_ID = 103  # [MASK] in MiniLM's vocabulary
INSIDE = "##"  # a piece that goes on, as WordPiece writes it

Ids = NDArray[np.int64]
Scores = NDArray[np.float32]


class Vocabulary(NamedTuple):
    """The pieces of a model that are whole words of two letters or more: no marks, numbers or parts of words."""

    words: tuple[str, ...]
    spaced: Ids  # of these words after a space
    glued: Ids  # and without one: the same for WordPiece, which does not tell them apart


class Gap(NamedTuple):
    """A word in its window, as pieces."""

    left: Ids
    own: Ids
    right: Ids
    glued: bool  # there is no space before the word, and the model would see one


class Filler:
    """A masked language model that fills one gap at a time.

    One window and one thread a gap: so its scores depend on the window and on nothing else. Batches differ from that in
    the seventh digit, which is enough to swap two candidates, and save little: MiniLM with pairs of 75 pieces took
    26.5 ms a gap alone, 18.5 in batches of 8, and no less in larger ones. The gaps of a call are shared among the cores.
    """

    def __init__(self, model: Any, tokenizer: Any) -> None:
        from tokenizers import Tokenizer

        self.model = model.eval()
        self.vocabulary = read_vocabulary(tokenizer)
        self.positions = _positions(model)
        self._mask = int(tokenizer.mask_token_id)
        self._frames = {pair: _frame(tokenizer, pair) for pair in (False, True)}
        self._typed = getattr(model.config, "type_vocab_size", 0) > 1
        self._after_space = np.array([piece.startswith(MARKERS) for piece in _pieces(tokenizer)])
        # A copy: files may ask for truncation and padding, and a [MASK] that somebody wrote is no mask.
        self._cut = Tokenizer.from_str(tokenizer.backend_tokenizer.to_str())
        self._cut.no_truncation()
        self._cut.no_padding()
        self._cut.encode_special_tokens = True
        # The output's matrix is as large as the vocabulary: it is multiplied at the gap only.
        self._at = threading.local()
        model.get_output_embeddings().register_forward_pre_hook(lambda _, given: (given[0][:, self._at.gap],))

    def gaps(self, text: str, words: Sequence[Word], positions: Sequence[int], window: int, pair: bool) -> list[Gap]:
        """The words at these positions, each with the `window` words around it, markup left out.

        Where that is more than the model has positions for, what is farthest from the word is left out.
        """
        cut = self._cut.encode(SURROGATE.sub("?", text), add_special_tokens=False)
        ids, spans = np.array(cut.ids, np.int64), np.array(cut.offsets, np.int64).reshape(-1, 2)
        for match in TAG.finditer(text):
            seen = (spans[:, 1] <= match.start()) | (spans[:, 0] >= match.end())
            ids, spans = ids[seen], spans[seen]
        starts, ends = spans.T
        found = []
        for position in positions:
            first = max(0, min(position - window // 2, len(words) - window))
            low = np.searchsorted(ends, words[first].start, "right") if first else 0
            # The window runs up to the next word, so that a full stop belongs to it.
            next_word = words[first + window].start if first + window < len(words) else len(text)
            high = np.searchsorted(starts, next_word)
            start = np.searchsorted(ends, words[position].start, "right")
            end = max(start, np.searchsorted(starts, words[position].end))
            glued = bool(self._after_space.any() and end > start and not self._after_space[ids[start]])
            found.append(self._fit(Gap(ids[low:start], ids[start:end], ids[end:high], glued), pair))
        return found

    def _fit(self, gap: Gap, pair: bool) -> Gap:
        own = gap.own[: self.positions // 4]
        room = self.positions - sum(map(len, self._frames[pair])) - 1
        if pair:
            room = (room - len(own)) // 2
        before = min(len(gap.left), max(room // 2, room - len(gap.right)))
        return gap._replace(left=gap.left[len(gap.left) - before :], own=own, right=gap.right[: room - before])

    def scores(self, gaps: Sequence[Gap], pair: bool) -> list[Scores]:
        """For each gap the log probability of every word of the vocabulary, among these words."""
        import torch

        # A pool per call costs a tenth of a millisecond and survives a fork.
        with ThreadPoolExecutor(min(8, os.cpu_count() or 1), initializer=lambda: torch.set_num_threads(1)) as pool:
            return list(pool.map(lambda gap: self._scores(gap, pair), gaps))

    def _scores(self, gap: Gap, pair: bool) -> Scores:
        import torch

        first, middle, last = self._frames[pair]
        shown = [*first, *gap.left, *gap.own, *gap.right, *middle] if pair else first
        ids = [*shown, *gap.left, self._mask, *gap.right, *last]
        given = {"input_ids": torch.tensor([ids])}
        if self._typed:
            given["token_type_ids"] = (torch.arange(len(ids)) >= len(shown)).long()[None] * pair
        self._at.gap = len(shown) + len(gap.left)
        with torch.inference_mode():
            odds = self.model(**given).logits[0]
            chosen = odds[torch.from_numpy(self.vocabulary.glued if gap.glued else self.vocabulary.spaced)]
            scores: Scores = chosen.float().log_softmax(0).numpy()
        return scores

    def cosines(self, gap: Gap) -> Scores:
        """How near every word of the vocabulary is to the gap's own word as the model's first layer sees them."""
        table, units = self._vectors
        own = table[gap.own].mean(0) if len(gap.own) else np.zeros(table.shape[1], np.float32)
        near: Scores = units @ (own / max(float(np.linalg.norm(own)), 1e-6))
        return near

    @cached_property
    def _vectors(self) -> tuple[Scores, Scores]:
        table: Scores = self.model.get_input_embeddings().weight.detach().float().numpy()
        words = table[self.vocabulary.spaced]
        return table, words / np.maximum(np.linalg.norm(words, axis=1, keepdims=True), 1e-6)


def load_filler(model: str | None) -> Filler:
    """The embedded model; or weights that train_masked wrote (.safetensors); or a folder or hub id of another model."""
    return _loaded(model, digest(model))


@cache
def _loaded(model: str | None, version: str) -> Filler:
    from transformers import AutoModelForMaskedLM, AutoTokenizer

    if model is None or model.endswith(".safetensors"):
        tokenizer = AutoTokenizer.from_pretrained(str(fetch("minilm")), local_files_only=True)
        return Filler(trained(EMBEDDED if model is None else Path(model)), tokenizer)
    local = Path(model).is_dir()
    try:
        tokenizer = AutoTokenizer.from_pretrained(model, local_files_only=local)
        if tokenizer.mask_token_id is None:
            raise ValueError("its tokeniser has no mask token, so it cannot fill a gap")
        if not tokenizer.is_fast:
            raise ValueError("its tokeniser does not say where pieces lie in a text; a fast one is needed")
        # Pickled weights are refused.
        return Filler(AutoModelForMaskedLM.from_pretrained(model, local_files_only=local, use_safetensors=True), tokenizer)
    except (OSError, ValueError) as error:
        reason = str(error).strip().splitlines()[0]
        raise ValueError(
            f"{model!r} is no masked language model that can be loaded: {reason}; give a hub id such as bert-base-uncased "
            "or a folder with safetensors, or leave it out for the embedded model"
        ) from error


def bare(attention: str = "sdpa") -> Any:
    """MiniLM as a masked language model whose head has learned nothing yet."""
    from safetensors.torch import load_file
    from transformers import BertConfig, BertForMaskedLM

    folder = fetch("minilm")
    config = BertConfig.from_pretrained(str(folder), local_files_only=True)
    config._attn_implementation = attention
    model = BertForMaskedLM(config)
    model.bert.load_state_dict(load_file(folder / "model.safetensors"), strict=False)  # it has a pooler too
    return model


def trained(file: Path) -> Any:
    """MiniLM with what train_masked learned: adapters are added to the weights, everything else takes its place."""
    import torch
    from safetensors.torch import load_file

    if not file.is_file():
        raise ValueError(f"{file} does not exist; make it with python -m scrimp.spaces.train_masked --out {file}")
    learned = {name: tensor.float() for name, tensor in load_file(file).items()}
    model = bare()
    with torch.no_grad():
        model.bert.embeddings.word_embeddings.weight[MASK_ID] = learned.pop("mask")
        weights = dict(model.named_parameters())
        for name, tensor in learned.items():
            if name.endswith(".up"):
                base = name.removesuffix(".up")
                weights[f"{base}.weight"] += tensor @ learned[f"{base}.down"]
            elif not name.endswith(".down"):
                weights[name].copy_(tensor)
    return model


def digest(model: str | None) -> str:
    """Eight digits that stand for the content of a model on this machine; empty for a hub id."""
    place = EMBEDDED if model is None else Path(model)
    if not place.exists():
        return ""
    files = sorted(file for file in (place.rglob("*") if place.is_dir() else [place]) if file.is_file())
    return _digest(tuple((str(file), file.stat().st_size, file.stat().st_mtime_ns) for file in files))


@cache
def _digest(files: tuple[tuple[str, int, int], ...]) -> str:
    whole = hashlib.sha256()
    for name, _, _ in files:
        with open(name, "rb") as file:
            whole.update(hashlib.file_digest(file, "sha256").digest())
    return whole.hexdigest()[:8]


def read_vocabulary(tokenizer: Any) -> Vocabulary:
    """Which pieces of a tokeniser's vocabulary are words: WordPiece, byte-level BPE and SentencePiece alike."""
    pieces = _pieces(tokenizer)
    numbers = {piece: number for number, piece in enumerate(pieces)}
    special = set(tokenizer.all_special_tokens)
    marked = any(piece.startswith(MARKERS) for piece in pieces)
    found = {}
    for piece in pieces:
        if piece in special or (not piece.startswith(MARKERS) if marked else piece.startswith(INSIDE)):
            continue
        # Bytes outside ASCII are written as other letters.
        text = piece[marked:] if piece[marked:].isascii() else tokenizer.convert_tokens_to_string([piece]).strip()
        if len(text) > 1 and text.isalpha() and is_word(text):
            found[piece] = text
    spaced = np.array([numbers[piece] for piece in found], np.int64)
    glued = np.array([numbers.get(piece[marked:], numbers[piece]) for piece in found], np.int64)
    return Vocabulary(tuple(found.values()), spaced, glued)


def _pieces(tokenizer: Any) -> list[str]:
    pieces: list[str] = tokenizer.convert_ids_to_tokens(list(range(len(tokenizer))))
    return pieces


def _frame(tokenizer: Any, pair: bool) -> tuple[list[int], list[int], list[int]]:
    """The ids before the first text, between the two (none for a single text), and after the last."""
    made = tokenizer("x", "x" if pair else None, return_special_tokens_mask=True)
    ids, added = made["input_ids"], made["special_tokens_mask"]
    texts = [place for place, special in enumerate(added) if not special]
    between = [ids[place] for place in range(texts[0], texts[-1]) if added[place]]
    return ids[: texts[0]], between, ids[texts[-1] + 1 :]


def _positions(model: Any) -> int:
    """How many pieces the model takes. RoBERTa numbers positions from the one after padding."""
    positions: int = getattr(model.config, "max_position_embeddings", 512)
    for name, module in model.named_modules():
        if name.endswith("position_embeddings") and getattr(module, "padding_idx", None) is not None:
            return positions - int(module.padding_idx) - 1
    return positions
