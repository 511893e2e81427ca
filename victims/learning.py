"""The loop that teaches a network: shuffled batches, a running average of the weights, early stopping."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from .wordcnn import PAD, UNKNOWN_WORD
from .wrap import VictimError

if TYPE_CHECKING:
    import torch

Ints = NDArray[np.int64]
Report = Callable[[int, int, str], None]  # steps done, steps at most, what to say
ALIKE = 32  # batches whose rows are put in order of length together, so that little is padded
CHECKED = 64  # validation rows at a time


@dataclass(frozen=True)
class Course:
    """How a network is taught. The numbers were chosen on validation rows of Rotten Tomatoes for the word CNN."""

    epochs: int = 12  # at most
    patience: int = 3  # epochs without a lower loss on the validation rows
    batch: int = 50
    rate: float = 5e-4
    vector_rate: float = 5e-3  # of the word vectors; 0 leaves them as they are
    decay: float = 0.01
    dropout: float = 0.3
    hide: float = 0.3  # share of words shown as the unknown word
    smooth: float = 0.2  # label smoothing
    average: float = 0.99  # decay of the running average of the weights; 0: no average
    warm: float = 0.0  # share of all steps in which the rate rises, to fall to 0 afterwards; 0: one rate
    clip: float = 0.0  # longest gradient; 0: any
    balance: bool = False  # rows of rare classes weigh more, as if all classes were equally frequent
    seed: int = 1


class Rows(Protocol):
    """Texts as numbers. Called with places it gives what the network takes; with a generator, as seen in training."""

    @property
    def sizes(self) -> Ints | None: ...  # by what rows are alike; None: batches are drawn whatever their lengths
    def __len__(self) -> int: ...
    def __call__(self, places: Sequence[int], rng: np.random.Generator | None = None) -> tuple[torch.Tensor, ...]: ...


@dataclass(frozen=True)
class WordRows:
    ids: Sequence[tuple[Sequence[int], ...]]  # per row and field
    shortest: int = 1  # rows are padded to so many words at least
    hide: float = 0.0
    alike: bool = True

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def sizes(self) -> Ints | None:
        return np.array([sum(map(len, row)) for row in self.ids]) if self.alike else None

    def __call__(self, places: Sequence[int], rng: np.random.Generator | None = None) -> tuple[torch.Tensor, ...]:
        import torch

        given: list[torch.Tensor] = []
        for field in zip(*(self.ids[place] for place in places), strict=True):
            padded, lengths = pad(field, self.shortest)
            if rng is not None:
                hidden = torch.from_numpy(rng.random(padded.shape) < self.hide) & (padded != PAD)
                padded = padded.masked_fill(hidden, UNKNOWN_WORD)
            given += [padded, lengths]
        return tuple(given)


def pad(ids: Sequence[Sequence[int]], shortest: int = 1) -> tuple[torch.Tensor, torch.Tensor]:
    import torch

    lengths = torch.tensor([max(len(row), shortest) for row in ids])
    padded = torch.full((len(ids), int(lengths.max())), PAD)
    for place, row in zip(padded, ids, strict=True):
        place[: len(row)] = torch.tensor(row, dtype=torch.long)
    return padded, lengths


def batches(rows: Rows, size: int, rng: np.random.Generator) -> Iterator[Ints]:
    """Every row once, in batches of about `size`."""
    order = rng.permutation(len(rows))
    if (sizes := rows.sizes) is not None:
        pools = np.array_split(order, max(1, len(order) // (size * ALIKE)))
        parts = [part for pool in pools for part in split(pool[np.argsort(sizes[pool], kind="stable")], size)]
        yield from (parts[place] for place in rng.permutation(len(parts)).tolist())
    else:
        yield from split(order, size)


def split(order: Ints, size: int) -> list[Ints]:
    return np.array_split(order, max(1, len(order) // size))


def judge(network: torch.nn.Module, rows: Rows, gold: Sequence[int]) -> tuple[float, float]:
    """The share right, and the mean log loss."""
    import torch

    network.eval()
    sizes = rows.sizes
    order = np.arange(len(rows)) if sizes is None else np.argsort(sizes, kind="stable")
    with torch.no_grad():
        logits = torch.cat([network(*rows(order[at : at + CHECKED].tolist())) for at in range(0, len(order), CHECKED)])
    target = torch.tensor(gold)[torch.from_numpy(order)]
    loss = torch.nn.functional.cross_entropy(logits, target)
    return float((logits.argmax(1) == target).double().mean()), float(loss)


def weights_of(gold: Ints, classes: int) -> torch.Tensor:
    """A weight for every class, so that all weigh the same together; 0 for one without rows."""
    import torch

    counts = np.bincount(gold, minlength=classes)
    weights = np.where(counts, len(gold) / (np.count_nonzero(counts) * np.maximum(counts, 1)), 0)
    return torch.from_numpy(weights.astype(np.float32))


def groups(network: torch.nn.Module, how: Course) -> list[dict[str, Any]]:
    """Word vectors at their own rate and without decay, then everything else; what is frozen is left out."""
    named = [(name.startswith("vectors"), weight) for name, weight in network.named_parameters() if weight.requires_grad]
    tuned = {"params": [weight for vector, weight in named if vector], "lr": how.vector_rate, "weight_decay": 0.0}
    return [group for group in (tuned, {"params": [weight for vector, weight in named if not vector]}) if group["params"]]


def fit(
    network: torch.nn.Module,
    rows: Rows,
    gold: Ints,
    valid: Rows,
    answers: Sequence[int],
    how: Course,
    report: Report = lambda done, total, said: None,
) -> tuple[dict[str, torch.Tensor], list[dict[str, float]]]:
    """The weights of the epoch with the lowest loss on the validation rows, and what each epoch came to.

    The network is made by the caller after torch.manual_seed: its first weights are part of the seed.
    """
    import torch

    rng = np.random.default_rng(how.seed)
    mean = network
    if how.average:
        running = torch.optim.swa_utils.get_ema_multi_avg_fn(how.average)  # type: ignore[no-untyped-call]
        mean = torch.optim.swa_utils.AveragedModel(network, multi_avg_fn=running)
    adam = torch.optim.AdamW(groups(network, how), lr=how.rate, weight_decay=how.decay)
    steps = how.epochs * max(1, len(rows) // how.batch)
    rise = max(1, round(how.warm * steps))
    pace = torch.optim.lr_scheduler.LambdaLR(
        adam, lambda n: min((n + 1) / rise, max(0.0, steps - n) / max(1, steps - rise)) if how.warm else 1.0
    )
    best, kept, since, done, epochs = np.inf, {}, 0, 0, []
    for epoch in range(1, how.epochs + 1):
        network.train()
        for batch in batches(rows, how.batch, rng):
            logits = network(*rows(batch.tolist(), rng))
            weights = weights_of(gold, logits.shape[1]) if how.balance else None
            target = torch.from_numpy(gold[batch])
            loss = torch.nn.functional.cross_entropy(logits, target, weights, label_smoothing=how.smooth)
            adam.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            if how.clip:
                torch.nn.utils.clip_grad_norm_(network.parameters(), how.clip)
            adam.step()
            pace.step()
            if isinstance(mean, torch.optim.swa_utils.AveragedModel):
                mean.update_parameters(network)
            done += 1
            last = loss.item()
            if not np.isfinite(last):
                raise VictimError(
                    f"the loss is {last} at step {done} of epoch {epoch}; lower --rate (now {how.rate:g}) or --vector-rate "
                    f"(now {how.vector_rate:g})"
                )
            report(done, steps, f"epoch {epoch}, loss {last:.3f}")
        right, lost = judge(mean, valid, answers)
        epochs.append({"train_loss": round(last, 4), "accuracy": round(right, 4), "loss": round(lost, 4)})
        report(done, steps, f"epoch {epoch}, validation accuracy {right:.4f}, loss {lost:.4f}")
        if lost < best:
            best, since = lost, 0
            kept = {name: weight.detach().clone() for name, weight in getattr(mean, "module", mean).state_dict().items()}
        else:
            since += 1
            if since >= how.patience:
                break
    if not kept:
        raise VictimError(f"the loss on the validation rows was never a number; lower --rate (now {how.rate:g})")
    return kept, epochs
