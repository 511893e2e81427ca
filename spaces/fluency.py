"""A rule that asks a language model: of a word's candidates, the most probable ones after the words before it."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from ..attacks.types import Floats
from .passes import one_thread, spread
from .rules import CandidateRule, Field

TOKENS = 1024  # of one pass through the model; with a vocabulary of 50,000 their scores take 200 MB


@dataclass(frozen=True)
class LanguageModel(CandidateRule):
    """The `keep` most probable candidates stay, in their order; of equals the earlier one.

    `path` is the directory of any causal language model of the transformers library, with its tokenizer and weights as
    safetensors. Alzantot et al. look at one word before and keep four; each further word of `before` costs time.
    """

    path: str | os.PathLike[str]
    keep: int = 4
    before: int = 1
    reason = "without a probable candidate"

    def __post_init__(self) -> None:
        if self.keep < 1:
            raise ValueError(f"at least 1 candidate stays, got keep={self.keep}")
        if self.before < 0:
            raise ValueError(f"0 or more words before a word are read, got before={self.before}")

    @property
    def name(self) -> str:
        return f"lm({self.keep},{self.before},{_digest(_folder(self.path))})"

    def sift(self, field: Field, positions: Sequence[int], offers: Sequence[tuple[str, ...]]) -> list[tuple[str, ...]]:
        """Words with no more than `keep` candidates are not looked at. A word's candidates are one batch, always."""
        crowded = [at for at, candidates in enumerate(offers) if len(candidates) > self.keep]
        kept = list(offers)
        if not crowded:
            return kept
        model = _model(_folder(self.path))

        def best(at: int) -> tuple[str, ...]:
            left, candidates = self._left(field, positions[at]), offers[at]
            # The words before are the same for all: the whole text's probability puts candidates in the same order as
            # their own would, wherever the tokenizer cuts.
            chances = model([left + candidate for candidate in candidates])
            return tuple(candidates[i] for i in sorted(np.argsort(-chances, kind="stable")[: self.keep]))

        for at, candidates in zip(crowded, spread(best, crowded, one_thread), strict=True):
            kept[at] = candidates
        return kept

    def _left(self, field: Field, position: int) -> str:
        word = field.words[position]
        first = field.words[max(0, position - self.before)]
        return field.text[first.start : word.start]


class Chances:
    """Logarithms of the probability of whole texts under a causal language model."""

    def __init__(self, folder: str) -> None:
        import torch
        from transformers import AutoModelForCausalLM, AutoTokenizer

        self._torch = torch
        self._tokenizer: Any = AutoTokenizer.from_pretrained(folder, local_files_only=True)
        self._model: Any = AutoModelForCausalLM.from_pretrained(folder, local_files_only=True, use_safetensors=True).eval()
        start = self._tokenizer.bos_token_id
        self._start = self._tokenizer.eos_token_id if start is None else start
        if self._start is None:
            raise ValueError(
                f"the tokenizer in {folder} has neither a bos_token nor an eos_token, and a first word needs something "
                "before it; name one in its tokenizer_config.json"
            )
        self._window: int = getattr(self._model.config, "max_position_embeddings", None) or TOKENS

    def __call__(self, texts: Sequence[str]) -> Floats:
        readable = [text.encode("utf-8", "replace").decode("utf-8") for text in texts]
        pieces = [self._tokenizer.encode(text, add_special_tokens=False, verbose=False) for text in readable]
        rows = [[self._start, *ids[-(self._window - 1) :]] for ids in pieces]
        some = max(1, TOKENS // max(map(len, rows)))
        return np.concatenate([self._sums(rows[at : at + some]) for at in range(0, len(rows), some)])

    def _sums(self, rows: Sequence[Sequence[int]]) -> Floats:
        torch, longest = self._torch, max(map(len, rows))
        ids = torch.tensor([[*row, *[self._start] * (longest - len(row))] for row in rows])
        mask = torch.tensor([[1] * len(row) + [0] * (longest - len(row)) for row in rows])
        if longest == 1:
            return np.zeros(len(rows))
        with torch.inference_mode():
            scores = self._model(input_ids=ids, attention_mask=mask).logits[:, :-1].float().log_softmax(-1)
            chances = scores.gather(2, ids[:, 1:, None])[..., 0].double() * mask[:, 1:]
        sums: Floats = chances.sum(1).numpy()
        return sums


def _folder(path: str | os.PathLike[str]) -> str:
    folder = Path(path).expanduser().absolute()
    if not (folder / "config.json").is_file():
        raise ValueError(
            f"{folder} has no config.json; give the directory of a causal language model, such as one written by "
            "save_pretrained"
        )
    return str(folder)


@cache
def _model(folder: str) -> Chances:
    return Chances(folder)


@cache
def _digest(folder: str) -> str:
    """Eight digits that stand for the model's content."""
    content = hashlib.sha256()
    for file in sorted(Path(folder).iterdir()):
        if file.suffix in {".json", ".txt", ".model", ".safetensors"}:
            with file.open("rb") as opened:
                content.update(file.name.encode() + hashlib.file_digest(opened, "sha256").digest())
    return content.hexdigest()[:8]
