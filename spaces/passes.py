"""Forward passes on a processor: quick, and with the same bits for a row whatever else goes through with it.

What changes the last bits of a row is its length with padding, a product of fewer than four rows, and the number of
threads; neither the other rows nor their number do. So a row's padded length follows from its own, and a pass has one
thread. Measured for MKL and oneDNN; tests/test_passes.py looks again wherever it runs.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import Any, TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")
STEP = 16  # lengths are padded to a multiple of it
ROWS = 8  # of a pass; more are no faster on a processor


def spread(work: Callable[[Item], Result], items: Iterable[Item], prepare: Callable[[], None] | None = None) -> list[Result]:
    """The results in order, worked out on all cores; `prepare` runs once in each thread."""
    # A pool per call costs a tenth of a millisecond and survives a fork.
    with ThreadPoolExecutor(min(8, os.cpu_count() or 1), initializer=prepare) as pool:
        return list(pool.map(work, items))


def one_thread() -> None:
    """To prepare a thread that runs a torch model: sums must not depend on the number of threads."""
    import torch

    torch.set_num_threads(1)


def padded(length: int, most: int) -> int:
    """The length of a row in its pass, for a model of `most` positions."""
    return min(most, -(-length // STEP) * STEP)


def passes(rows: Sequence[Sequence[int]], most: int) -> list[list[int]]:
    """Which rows go through the model together: equally long when padded, the longest first."""
    by_length: dict[int, list[int]] = {}
    for place, row in enumerate(rows):
        by_length.setdefault(padded(len(row), most), []).append(place)
    return [
        places[at : at + ROWS] for _, places in sorted(by_length.items(), reverse=True) for at in range(0, len(places), ROWS)
    ]


def stacked(rows: Sequence[Sequence[int]], pad: int, most: int) -> dict[str, Any]:
    """Rows of one pass as the model takes them."""
    import torch

    length = padded(len(rows[0]), most)
    ids = torch.full((len(rows), length), pad)
    seen = torch.zeros((len(rows), length), dtype=torch.long)
    for place, row in enumerate(rows):
        ids[place, : len(row)] = torch.tensor(row)
        seen[place, : len(row)] = 1
    return {"input_ids": ids, "attention_mask": seen}


def packed(model: Any) -> Any:
    """The model with its linear layers handed to oneDNN, in 32 bits as before.

    torch multiplies such matrices by MKL, which knows AMD's processors less well: there a product of MiniLM takes 2.3
    times as long. Where torch has no oneDNN, and in halves of 32 bits, the model stays as it is.
    """
    import torch

    for name, module in list(model.named_modules()):
        if type(module) is torch.nn.Linear and module.weight.dtype == torch.float32 and _reorder() is not None:
            parent, _, own = name.rpartition(".")
            setattr(model.get_submodule(parent), own, linear(module.weight, module.bias))
    return model


def linear(weight: Any, bias: Any = None) -> Any:
    """A layer that multiplies by this float32 matrix, by oneDNN where torch has it."""
    import torch

    reorder = _reorder()

    class Linear(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.bias = bias
            # No parameter: nothing but oneDNN can read its layout.
            self.matrix = weight.detach() if reorder is None else reorder(weight.detach(), None)

        def forward(self, given: torch.Tensor) -> torch.Tensor:
            if reorder is None:
                return torch.nn.functional.linear(given, self.matrix, self.bias)
            product: torch.Tensor = torch.ops.mkldnn._linear_pointwise(given, self.matrix, self.bias, "none", [], "")
            return product

    return Linear()


@cache
def _reorder() -> Any:
    """What lays a matrix out for oneDNN; None where torch has none. torch's own compiler calls these operators."""
    import torch

    if not torch.backends.mkldnn.is_available():  # type: ignore[no-untyped-call]
        return None
    try:
        return torch.ops.mkldnn._linear_pointwise and torch.ops.mkldnn._reorder_linear_weight
    except AttributeError:
        return None
