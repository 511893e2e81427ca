"""A decomposable attention model (Parikh et al. 2016): aligns the words of two sentences, compares, and sums up."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ..spaces.tokens import words
from .han import PAD, UNKNOWN_WORD

if TYPE_CHECKING:
    import torch

HIDDEN = 100  # Parikh et al. have 200: the weights come with the package


def numbered(text: str, numbers: Mapping[str, int]) -> list[int]:
    """The text's words as numbers."""
    return [numbers.get(word.text.lower(), UNKNOWN_WORD) for word in words(text)]


def make_decomposable(rows: int, width: int, classes: int, dropout: float = 0.0) -> torch.nn.Module:
    """The network. It takes pairs of sentences and gives logits and the attention [pairs, left, right]: first of right's words on left's,
    then of left's words on right's."""
    import torch
    from torch import nn
    from torch.nn.utils.rnn import pad_sequence

    def layers(inputs: int) -> nn.Module:
        return nn.Sequential(
            *(nn.Dropout(dropout), nn.Linear(inputs, HIDDEN), nn.ReLU()),
            *(nn.Dropout(dropout), nn.Linear(HIDDEN, HIDDEN), nn.ReLU()),
        )

    class Network(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.vectors = nn.Embedding(rows, width, padding_idx=PAD)
            self.project = nn.Linear(width, HIDDEN, bias=False)
            self.attend, self.compare, self.aggregate = layers(HIDDEN), layers(2 * HIDDEN), layers(2 * HIDDEN)
            self.linear = nn.Linear(HIDDEN, classes)

        def forward(
            self, pairs: Sequence[tuple[Sequence[int], Sequence[int]]]
        ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
            sides = [pad_sequence([torch.tensor(pair[side]) for pair in pairs], batch_first=True) for side in (0, 1)]
            left, right = (self.project(self.vectors(side)) for side in sides)
            in_left, in_right = (side != PAD for side in sides)
            match = self.attend(left) @ self.attend(right).transpose(1, 2)
            to_right = match.masked_fill(~in_right[:, None], -torch.inf).softmax(2)  # what each word left looks at
            to_left = match.masked_fill(~in_left[:, :, None], -torch.inf).softmax(1)
            compared = (
                self._summed(left, to_right @ right, in_left),
                self._summed(right, to_left.transpose(1, 2) @ left, in_right),
            )
            return self.linear(self.aggregate(torch.cat(compared, 1))), to_left, to_right

        def _summed(self, own: torch.Tensor, other: torch.Tensor, inside: torch.Tensor) -> torch.Tensor:
            return (self.compare(torch.cat([own, other], 2)) * inside[:, :, None]).sum(1)  # type: ignore[no-any-return]

    return Network()


def pair_shares(network: torch.nn.Module, pair: tuple[Sequence[int], Sequence[int]]) -> list[NDArray[np.float64]]:
    """Of either sentence, each word's share: what the words of the other sentence give it on average."""
    _, to_left, to_right = network([pair])
    return [to_left[0].double().mean(1).numpy(), to_right[0].double().mean(0).numpy()]
