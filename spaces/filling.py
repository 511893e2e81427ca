"""A masked language model: for a word in its context, a score for every word that could stand in its place."""

from __future__ import annotations

import hashlib
import re
import threading
from collections.abc import Callable, Sequence
from functools import cache, cached_property
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np
import regex
from numpy.typing import NDArray

from ..resources import fetch
from .passes import linear, one_thread, packed, passes, spread, stacked
from .tokens import MARKUP, Word, is_word

EMBEDDED = Path(__file__).parent / "data" / "masked_minilm.safetensors"
SURROGATE = re.compile("[\ud800-\udfff]")  # halves of characters, which no tokeniser takes
TAG = regex.compile(MARKUP)
MARKERS = ("Ġ", "▁")  # a space before the piece, as byte-level BPE and SentencePiece write it
MASK_ID = 103  # [MASK] in MiniLM's vocabulary
INSIDE = "##"  # a piece that goes on, as WordPiece writes it

Ids = NDArray[np.int64]
Scores = NDArray[np.float32]
Result = TypeVar("Result")
FEWEST = 4  # rows of a product: with fewer, its bits would depend on their number


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
    others: tuple[tuple[int, int], ...] = ()  # where words lie, in pieces of the window, that are masked with this one


class Row(NamedTuple):
    """What the model reads at once."""

    ids: tuple[int, ...]
    second: int  # where the second half of a pair begins; the end in the plain form


class Filler:
    """A masked language model that fills gaps.

    A gap's scores depend on the gap and on nothing else, to the last bit: passes.py says how. Gaps of the same window
    with the same masks share a row of a pass, and the passes of a call are shared among the cores.
    """

    def __init__(self, model: Any, tokenizer: Any) -> None:
        from tokenizers import Tokenizer

        self.model = packed(model.eval())
        self.vocabulary = read_vocabulary(tokenizer)
        self.positions = _positions(model)
        self._mask = int(tokenizer.mask_token_id)
        self._pad = self._mask if tokenizer.pad_token_id is None else int(tokenizer.pad_token_id)
        self._frames = {pair: _frame(tokenizer, pair) for pair in (False, True)}
        self._typed = getattr(model.config, "type_vocab_size", 0) > 1
        self._after_space = np.array([piece.startswith(MARKERS) for piece in _pieces(tokenizer)])
        # A copy: files may ask for truncation and padding, and a [MASK] that somebody wrote is no mask.
        self._cut = Tokenizer.from_str(tokenizer.backend_tokenizer.to_str())
        self._cut.no_truncation()
        self._cut.no_padding()
        self._cut.encode_special_tokens = True
        # The output's matrix is as large as the vocabulary: it is multiplied at the gaps only.
        self._at = threading.local()
        model.get_output_embeddings().register_forward_pre_hook(lambda _, given: (given[0][self._at.gaps],))

    def gaps(
        self,
        text: str,
        words: Sequence[Word],
        positions: Sequence[int],
        window: int,
        pair: bool,
        mates: Callable[[int], Sequence[int]] | None = None,
    ) -> list[Gap]:
        """The words at these positions, each with the `window` words around it, markup left out.

        Where that is more than the model has positions for, what is farthest from the word is left out. `mates` names
        the words that are masked together, in order, that of the position among them; the window is around their middle.
        """
        cut = self._cut.encode(SURROGATE.sub("?", text), add_special_tokens=False)
        ids, spans = np.array(cut.ids, np.int64), np.array(cut.offsets, np.int64).reshape(-1, 2)
        for match in TAG.finditer(text):
            seen = (spans[:, 1] <= match.start()) | (spans[:, 0] >= match.end())
            ids, spans = ids[seen], spans[seen]
        starts, ends = spans.T

        def pieces(word: Word) -> tuple[int, int]:
            start = int(np.searchsorted(ends, word.start, "right"))
            return start, max(start, int(np.searchsorted(starts, word.end)))

        found = []
        for position in positions:
            masked = mates(position) if mates else (position,)
            centre = (masked[0] + masked[-1]) // 2
            first = max(0, min(centre - window // 2, len(words) - window))
            low = int(np.searchsorted(ends, words[first].start, "right")) if first else 0
            # The window runs up to the next word, so that a full stop belongs to it.
            next_word = words[first + window].start if first + window < len(words) else len(text)
            high = int(np.searchsorted(starts, next_word))
            start, end = pieces(words[position])
            glued = bool(self._after_space.any() and end > start and not self._after_space[ids[start]])
            others = [pieces(words[mate]) for mate in masked if mate != position]
            placed = tuple((a - low, b - low) for a, b in others if low <= a < b <= high)
            found.append(self._fit(Gap(ids[low:start], ids[start:end], ids[end:high], glued, placed), pair))
        return found

    def _fit(self, gap: Gap, pair: bool) -> Gap:
        own = gap.own[: self.positions // 4]
        room = self.positions - sum(map(len, self._frames[pair])) - 1
        if pair:
            room = (room - len(own)) // 2
        before = min(len(gap.left), max(room // 2, room - len(gap.right)))
        if len(own) == len(gap.own) and len(gap.left) + len(gap.right) <= room:
            return gap
        # A window that has to be cut is this gap's alone.
        return Gap(gap.left[len(gap.left) - before :], own, gap.right[: room - before], gap.glued)

    def scores(self, gaps: Sequence[Gap], pair: bool) -> list[Scores]:
        """For each gap the log probability of every word of the vocabulary, among these words."""
        return self.each(gaps, pair, lambda _, rows: list(rows))

    def each(self, gaps: Sequence[Gap], pair: bool, then: Callable[[list[Gap], Scores], Sequence[Result]]) -> list[Result]:
        """What `then` makes of some gaps and their scores, float32[gaps, words], for all gaps in order."""
        holes: dict[Row, list[tuple[int, int]]] = {}  # the gaps of a row, by number, and where in it they are
        for number, gap in enumerate(gaps):
            row, place = self._row(gap, pair)
            holes.setdefault(row, []).append((number, place))
        rows = list(holes)
        groups = [[rows[place] for place in some] for some in passes([row.ids for row in rows], self.positions)]
        numbers = [[number for row in group for number, _ in holes[row]] for group in groups]

        def work(at: int) -> Sequence[Result]:
            where = [(row, place) for row, key in enumerate(groups[at]) for _, place in holes[key]]
            some = [gaps[number] for number in numbers[at]]
            return then(some, self._scored(groups[at], where, [gap.glued for gap in some]))

        made = spread(work, range(len(groups)), one_thread)
        answers = {n: one for group, some in zip(numbers, made, strict=True) for n, one in zip(group, some, strict=True)}
        return [answers[number] for number in range(len(gaps))]

    def _row(self, gap: Gap, pair: bool) -> tuple[Row, int]:
        """What the model reads, and where the gap is in it."""
        first, middle, last = self._frames[pair]
        window = [*gap.left.tolist(), *gap.own.tolist(), *gap.right.tolist()]
        own = (len(gap.left), len(gap.left) + len(gap.own))
        masked: list[int] = []
        place = at = 0
        for start, end in sorted((own, *gap.others)):
            masked += window[at:start]
            if (start, end) == own:
                place = len(masked)
            masked.append(self._mask)
            at = end
        shown = [*first, *window, *middle] if pair else first
        ids = (*shown, *masked, *window[at:], *last)
        return Row(ids, len(shown) if pair else len(ids)), len(shown) + place

    def _scored(self, rows: Sequence[Row], where: list[tuple[int, int]], glued: Sequence[bool]) -> Scores:
        import torch

        given = stacked([row.ids for row in rows], self._pad, self.positions)
        if self._typed:
            halves = torch.tensor([[row.second] for row in rows])
            given["token_type_ids"] = (torch.arange(given["input_ids"].shape[1])[None] >= halves) * given["attention_mask"]
        self._at.gaps = tuple(torch.tensor(where + where[:1] * (FEWEST - len(where))).T)
        with torch.inference_mode():
            odds = self.model(**given).logits.float()
            words = [torch.from_numpy(ids) for ids in (self.vocabulary.spaced, self.vocabulary.glued)]
            chosen = torch.stack([row[words[after]] for row, after in zip(odds, glued, strict=False)])
            scores: Scores = chosen.log_softmax(1).numpy()
        return scores

    def cosines(self, gaps: Sequence[Gap]) -> Scores:
        """How near every word of the vocabulary is to each gap's own word as the model's first layer sees them."""
        import torch

        table, near = self._vectors
        own = np.zeros((max(FEWEST, len(gaps)), table.shape[1]), np.float32)
        for row, gap in zip(own, gaps, strict=False):
            if len(gap.own):
                row[:] = table[gap.own].mean(0)
                row /= max(float(np.linalg.norm(row)), 1e-6)
        with torch.inference_mode():
            cosines: Scores = near(torch.from_numpy(own))[: len(gaps)].numpy()
        return cosines

    @cached_property
    def _vectors(self) -> tuple[Scores, Any]:
        """The input embeddings, and a layer that multiplies by those of the words, at length 1."""
        import torch

        table: Scores = self.model.get_input_embeddings().weight.detach().float().numpy()
        words = table[self.vocabulary.spaced]
        units = words / np.maximum(np.linalg.norm(words, axis=1, keepdims=True), 1e-6)
        return table, linear(torch.from_numpy(units))


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
