"""Three models that read a premise and a hypothesis: ESIM, InferSent and decomposable attention."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .wordlstm import inside, make_bilstm, make_embedding

if TYPE_CHECKING:
    import torch

UNITS = 150  # ESIM's paper has 300 and InferSent's 2048, over vectors six times as long as ours
DECOMPOSABLE_UNITS = 200  # Parikh et al. (2016)


def align(
    left: torch.Tensor, right: torch.Tensor, match: torch.Tensor, in_left: torch.Tensor, in_right: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """For every word of one side, what the other side says to it."""
    import torch

    to_right = match.masked_fill(~in_right[:, None], -torch.inf).softmax(2)
    to_left = match.masked_fill(~in_left[:, :, None], -torch.inf).softmax(1)
    return to_right @ right, to_left.transpose(1, 2) @ left


def make_infersent(vectors: torch.Tensor, classes: int, dropout: float = 0.0, units: int = UNITS) -> torch.nn.Module:
    """Conneau et al. (2017): a sentence is the strongest output of each unit; two are combined in four ways."""
    import torch
    from torch import nn

    class Network(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.vectors = make_embedding(vectors)
            self.encoder = make_bilstm(vectors.shape[1], units)
            self.drop = nn.Dropout(dropout)
            self.hidden = nn.Linear(8 * units, 2 * units)
            self.linear = nn.Linear(2 * units, classes)

        def sentence(self, ids: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
            states = self.encoder(self.drop(self.vectors(ids)), lengths)
            return states.masked_fill(~inside(ids, lengths)[:, :, None], -torch.inf).amax(1)  # type: ignore[no-any-return]

        def forward(
            self, left: torch.Tensor, left_lengths: torch.Tensor, right: torch.Tensor, right_lengths: torch.Tensor
        ) -> torch.Tensor:
            u, v = self.sentence(left, left_lengths), self.sentence(right, right_lengths)
            # The released classifier stacks linear layers with nothing between them; a tanh costs nothing and helps.
            both = self.hidden(self.drop(torch.cat([u, v, (u - v).abs(), u * v], 1))).tanh()
            return self.linear(self.drop(both))  # type: ignore[no-any-return]

    return Network()


def make_esim(vectors: torch.Tensor, classes: int, dropout: float = 0.0, units: int = UNITS) -> torch.nn.Module:
    """Chen et al. (2017), the sequential model: encode, align, compare, compose, pool by mean and maximum."""
    import torch
    from torch import nn

    class Network(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.vectors = make_embedding(vectors)
            self.encoder = make_bilstm(vectors.shape[1], units)
            self.project = nn.Linear(8 * units, units)
            self.composer = make_bilstm(units, units)
            self.drop = nn.Dropout(dropout)
            self.hidden = nn.Linear(8 * units, units)
            self.linear = nn.Linear(units, classes)

        def pooled(
            self, own: torch.Tensor, other: torch.Tensor, lengths: torch.Tensor, within: torch.Tensor
        ) -> torch.Tensor:
            compared = self.project(torch.cat([own, other, own - other, own * other], 2)).relu()
            states = self.composer(self.drop(compared), lengths)
            mean = (states * within[:, :, None]).sum(1) / lengths[:, None]
            return torch.cat([mean, states.masked_fill(~within[:, :, None], -torch.inf).amax(1)], 1)

        def forward(
            self, left: torch.Tensor, left_lengths: torch.Tensor, right: torch.Tensor, right_lengths: torch.Tensor
        ) -> torch.Tensor:
            in_left, in_right = inside(left, left_lengths), inside(right, right_lengths)
            a = self.encoder(self.drop(self.vectors(left)), left_lengths)
            b = self.encoder(self.drop(self.vectors(right)), right_lengths)
            to_a, to_b = align(a, b, a @ b.transpose(1, 2), in_left, in_right)
            pair = [self.pooled(a, to_a, left_lengths, in_left), self.pooled(b, to_b, right_lengths, in_right)]
            return self.linear(self.drop(self.hidden(self.drop(torch.cat(pair, 1))).tanh()))  # type: ignore[no-any-return]

    return Network()


def make_decomposable(
    vectors: torch.Tensor, classes: int, dropout: float = 0.0, units: int = DECOMPOSABLE_UNITS
) -> torch.nn.Module:
    """Parikh et al. (2016): attend, compare, sum up; no word order. The vectors are projected, and not scaled to one."""
    import torch
    from torch import nn

    def layers(inputs: int) -> nn.Module:
        return nn.Sequential(
            *(nn.Dropout(dropout), nn.Linear(inputs, units), nn.ReLU()),
            *(nn.Dropout(dropout), nn.Linear(units, units), nn.ReLU()),
        )

    class Network(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.vectors = make_embedding(vectors)
            self.project = nn.Linear(vectors.shape[1], units, bias=False)
            self.attend, self.compare, self.aggregate = layers(units), layers(2 * units), layers(2 * units)
            self.linear = nn.Linear(units, classes)

        def forward(
            self, left: torch.Tensor, left_lengths: torch.Tensor, right: torch.Tensor, right_lengths: torch.Tensor
        ) -> torch.Tensor:
            in_left, in_right = inside(left, left_lengths), inside(right, right_lengths)
            a, b = self.project(self.vectors(left)), self.project(self.vectors(right))
            match = self.attend(a) @ self.attend(b).transpose(1, 2)
            to_a, to_b = align(a, b, match, in_left, in_right)
            sides = ((a, to_a, in_left), (b, to_b, in_right))
            sums = [(self.compare(torch.cat([x, y], 2)) * within[:, :, None]).sum(1) for x, y, within in sides]
            return self.linear(self.aggregate(torch.cat(sums, 1)))  # type: ignore[no-any-return]

    return Network()
