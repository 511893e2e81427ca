"""A hierarchical attention network (Yang et al. 2016): a GRU over words, attention, a GRU over sentences, attention."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ..spaces.tokens import words

if TYPE_CHECKING:
    import torch

PAD, UNKNOWN_WORD = 0, 1  # the first two rows of the vectors; words follow
CELLS, LOOK = 25, 50  # half of the thesis's 50 and 100: the weights come with the package
LONGEST = 50  # words of a sentence, as released; longer ones are cut into several, so that no word is left out
STOP = re.compile(r"[.!?\n]|<br")


def sentences(text: str, numbers: Mapping[str, int]) -> list[list[int]]:
    """The text's words as numbers, in pieces that end with a sentence or after LONGEST words. No word is left out."""
    found: list[list[int]] = []
    end = None
    for word in words(text):
        if end is None or len(found[-1]) == LONGEST or STOP.search(text, end, word.start):
            found.append([])
        found[-1].append(numbers.get(word.text.lower(), UNKNOWN_WORD))
        end = word.end
    return found


def make_han(rows: int, width: int, classes: int, dropout: float = 0.0) -> torch.nn.Module:
    """The network. It takes documents as lists of sentences and gives logits, the shares of the words in their
    sentences (one row per sentence), and the shares of the sentences in their documents (one row per document)."""
    import torch
    from torch import nn
    from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence, pad_sequence

    class Level(nn.Module):
        """A GRU in both directions and one attention over its states."""

        def __init__(self, inputs: int) -> None:
            super().__init__()
            self.cells = nn.GRU(inputs, CELLS, batch_first=True, bidirectional=True)
            self.look = nn.Linear(2 * CELLS, LOOK)
            self.context = nn.Linear(LOOK, 1, bias=False)

        def forward(self, given: torch.Tensor, lengths: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
            packed = pack_padded_sequence(given, lengths, batch_first=True, enforce_sorted=False)
            states, _ = pad_packed_sequence(self.cells(packed)[0], batch_first=True)
            level = self.context(self.look(states).tanh()).squeeze(2)
            beyond = torch.arange(states.shape[1]) >= lengths[:, None]
            shares = level.masked_fill(beyond, -torch.inf).softmax(1)
            return (shares[:, :, None] * states).sum(1), shares

    class Network(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.vectors = nn.Embedding(rows, width, padding_idx=PAD)
            self.words = Level(width)
            self.sentences = Level(2 * CELLS)
            self.drop = nn.Dropout(dropout)
            self.linear = nn.Linear(2 * CELLS, classes)

        def forward(self, documents: Sequence[Sequence[Sequence[int]]]) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
            flat = [torch.tensor(sentence) for document in documents for sentence in document]
            counts = [len(document) for document in documents]
            padded = pad_sequence(flat, batch_first=True, padding_value=PAD)
            said, near = self.words(self.drop(self.vectors(padded)), torch.tensor([len(sentence) for sentence in flat]))
            meant, far = self.sentences(pad_sequence(said.split(counts), batch_first=True), torch.tensor(counts))
            return self.linear(self.drop(meant)), near, far

    return Network()


def word_shares(network: torch.nn.Module, document: Sequence[Sequence[int]]) -> NDArray[np.float64]:
    """Each word's share of the document: its share of its sentence times that of the sentence."""
    _, near, far = network([document])
    inside = np.arange(near.shape[1]) < np.array([len(sentence) for sentence in document])[:, None]
    return np.asarray((near.double() * far.double().T).numpy()[inside], np.float64)
