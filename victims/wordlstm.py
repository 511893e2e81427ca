"""One bidirectional LSTM over word vectors and the strongest output of each unit: the word LSTM of the papers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .wordcnn import PAD

if TYPE_CHECKING:
    import torch

UNITS = 150  # each way


def inside(ids: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
    """bool[n, places]: where a row still has words."""
    import torch

    return torch.arange(ids.shape[1]) < lengths[:, None]


def make_embedding(vectors: torch.Tensor) -> torch.nn.Embedding:
    from torch import nn

    return nn.Embedding(vectors.shape[0], vectors.shape[1], padding_idx=PAD, _weight=vectors.clone())


def make_bilstm(width: int, units: int) -> torch.nn.Module:
    """Two LSTMs of one direction each: what pads a row on its right never reaches its words.

    The second one reads every row reversed within its own length. A packed sequence would do the same, several times
    slower on a processor.
    """
    import torch
    from torch import nn

    class BiLSTM(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.onward = nn.LSTM(width, units, batch_first=True)
            self.back = nn.LSTM(width, units, batch_first=True)

        def forward(self, hidden: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
            places = torch.arange(hidden.shape[1])
            turned = torch.where(places < lengths[:, None], lengths[:, None] - 1 - places, places)[:, :, None]
            back = self.back(hidden.gather(1, turned.expand_as(hidden)))[0]
            return torch.cat([self.onward(hidden)[0], back.gather(1, turned.expand_as(back))], 2)

    return BiLSTM()


def make_wordlstm(vectors: torch.Tensor, classes: int, dropout: float = 0.0, units: int = UNITS) -> torch.nn.Module:
    import torch
    from torch import nn

    class Network(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.vectors = make_embedding(vectors)
            self.encoder = make_bilstm(vectors.shape[1], units)
            self.drop = nn.Dropout(dropout)
            self.linear = nn.Linear(2 * units, classes)

        def forward(self, ids: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
            hidden = self.encoder(self.drop(self.vectors(ids)), lengths)
            strongest = hidden.masked_fill(~inside(ids, lengths)[:, :, None], -torch.inf).amax(1)
            return self.linear(self.drop(strongest))  # type: ignore[no-any-return]

    return Network()
