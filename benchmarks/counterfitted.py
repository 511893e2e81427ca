"""How near the embedded neighbours are to the published counter-fitted space: python -m scrimp.benchmarks.counterfitted --help.

For development: the yardstick (neighbours in the published space, SimLex-999, lists of antonyms) is not part of scrimp.
The constants of the fitting were chosen on words whose CRC-32 is even; the others are reported apart as held out.
The table's size and lowest similarity were chosen afterwards, for 4.5 MB, with recall@50 of all words in view.
SimLex-999 was looked at while they were chosen, and most listed antonyms are among the constraints: these two say that
the fitting works, not how it would do elsewhere.
"""

from __future__ import annotations

import argparse
import gzip
import json
import sys
import zlib
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..spaces.counterfitted import COSINE, EMBEDDED, LISTED, LOWEST
from ..spaces.fitting import neighbour_table
from ..spaces.neighbours import Table, load_table
from ..spaces.vectors import Rows, unpack_words

RECORD = Path(__file__).parent / "measured" / "counterfitted.json"
LISTS = "counterfit_neighbors/counterfitted_neighbors.json"  # up to 8 neighbours, within a vocabulary of reviews
WHOLE = "counterfit_neighbors/euc-top8-d0.7.json"  # up to 8 within a distance of 0.7, the whole space: a cosine of 0.755
SIMLEX = "counterfit_constraints/SimLex-999.txt"
ANTONYMS = ("counterfit_constraints/wordnet_antonyms.txt", "counterfit_constraints/ppdb_antonyms.txt")
MOST = 8  # neighbours a word in the published lists

Lists = Mapping[str, Sequence[str]]


class Yardstick(NamedTuple):
    lists: Lists  # only words that have a neighbour
    whole: Lists
    simlex: list[tuple[str, str, float]]
    antonyms: Mapping[str, set[str]]


def read_yardstick(folder: Path) -> Yardstick:
    """The published lists, each as it is or gzipped."""
    wanted = (LISTS, WHOLE, SIMLEX, *ANTONYMS)
    missing = [name for name in wanted if not _plain_or_gz(folder, name).exists()]
    if missing:
        raise FileNotFoundError(
            f"{folder} lacks {', '.join(missing)} (or the same with .gz), which this measurement compares with; they come "
            "from the repositories of certified word substitutions, of Dirichlet neighbourhood ensembles and of "
            "counter-fitting. Give the folder that holds them with --data"
        )
    lists: Lists = json.loads(_read(folder, LISTS))
    antonyms: defaultdict[str, set[str]] = defaultdict(set)
    for name in ANTONYMS:
        for line in _read(folder, name).splitlines():
            a, b = line.split()[:2]
            antonyms[a].add(b)
            antonyms[b].add(a)
    rows = [line.split("\t") for line in _read(folder, SIMLEX).splitlines()[1:]]
    return Yardstick(
        {word: near for word, near in lists.items() if near},
        json.loads(_read(folder, WHOLE)),
        [(row[0], row[1], float(row[3])) for row in rows],
        antonyms,
    )


def measure(near: Lists, yardstick: Yardstick) -> dict[str, Any]:
    """Recall of the published neighbours, and antonyms, among the nearest words of a space."""
    shared = [word for word in yardstick.lists if word in near]
    held = [word for word in shared if zlib.crc32(word.encode()) % 2]
    opposed = [word for word in shared if word in yardstick.antonyms]
    return {
        "shared": len(shared),
        "of": len(yardstick.lists),
        "recall_8": recall(near, yardstick.lists, shared, MOST),
        "recall_50": recall(near, yardstick.lists, shared, LISTED),
        "held_out": {
            "words": len(held),
            "recall_8": recall(near, yardstick.lists, held, MOST),
            "recall_50": recall(near, yardstick.lists, held, LISTED),
        },
        # Of the words that have a listed antonym, how many have one among the nearest 50.
        "antonyms_50": _share(bool(yardstick.antonyms[word] & set(near[word][:LISTED])) for word in opposed),
        "antonyms_of": len(opposed),
    }


def recall(near: Lists, truth: Lists, words: Sequence[str], k: int) -> float:
    """Share of the published neighbours of these words, unknown ones included, found among the first k."""
    found = sum(len(set(truth[word]) & set(near[word][:k])) for word in words)
    return round(found / sum(len(truth[word]) for word in words), 4)


def calibrate(table: Table, whole: Lists) -> dict[str, float]:
    """The similarity at which the table gives as many candidates a word as the published space.

    The published list stops at 8 a word and at a cosine of 0.755, so ours are counted up to 8 as well. Words in both
    are compared, those without a neighbour included.
    """
    shared = [place for place, word in enumerate(table.words) if word in whole]
    wanted = float(np.mean([len(whole[table.words[place]][:MOST]) for place in shared]))
    tops = np.zeros((len(shared), MOST))
    for row, place in enumerate(shared):
        ours = table.similarities[table.starts[place] : table.starts[place + 1]][:MOST]
        tops[row, : len(ours)] = ours
    values = np.sort(tops.ravel())[::-1]
    cosine = float(values[round(wanted * len(shared)) - 1])
    return {"words": len(shared), "published_mean": round(wanted, 3), "cosine": round(cosine, 3)}


def simlex(words: Sequence[str], rows: Rows, pairs: Sequence[tuple[str, str, float]]) -> dict[str, float]:
    """Spearman correlation with human similarity."""
    places = {word: place for place, word in enumerate(words)}
    known = [(places[a], places[b], score) for a, b, score in pairs if a in places and b in places]
    cosines = [float(rows[a] @ rows[b]) for a, b, _ in known]
    return {"pairs": len(known), "spearman": round(spearman(cosines, [score for *_, score in known]), 4)}


def simlex_listed(table: Table, pairs: Sequence[tuple[str, str, float]]) -> dict[str, float]:
    """The same from the table alone, where a pair that is not listed counts as least similar: most are not."""
    known = [(a, b, score) for a, b, score in pairs if a in table.places and b in table.places]
    found = [max(_listed(table, a, b), _listed(table, b, a)) for a, b, _ in known]
    listed = sum(similarity > 0 for similarity in found)
    return {"pairs": len(known), "listed": listed, "spearman": round(spearman(found, [s for *_, s in known]), 4)}


def spearman(a: ArrayLike, b: ArrayLike) -> float:
    """Correlation of ranks; equal values share the mean of their ranks."""
    return float(np.corrcoef(_ranks(a), _ranks(b))[0, 1])


def everything(table: Table) -> dict[str, tuple[str, ...]]:
    return dict(zip(table.words, table.near(table.words, LISTED, -1.0), strict=True))


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m scrimp.benchmarks.counterfitted",
        description="Measure the embedded counter-fitted table against the published space.",
        epilog="SimLex-999 needs vectors: build them with python -m scrimp.spaces.fitting --keep-vectors FILE.",
    )
    parser.add_argument("--data", type=Path, required=True, metavar="DIR", help="folder with the published lists")
    text = "vectors that the builder kept: adds SimLex-999 and the plain vectors for comparison"
    parser.add_argument("--vectors", type=Path, metavar="FILE", help=text)
    parser.add_argument("--table", type=Path, default=EMBEDDED, metavar="FILE", help="default: the embedded table")
    parser.add_argument("--out", type=Path, default=RECORD, metavar="FILE", help="the record (default: %(default)s)")
    args = parser.parse_args(argv)
    try:
        record = _record(args.table, read_yardstick(args.data), args.vectors)
    except (OSError, ValueError) as fault:
        print(f"scrimp: {fault}", file=sys.stderr)
        return 2
    args.out.parent.mkdir(parents=True, exist_ok=True)
    args.out.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    _show(record)
    if args.vectors is None:
        print("SimLex-999 of the vectors is not measured: give --vectors, kept by the builder with --keep-vectors")
    print(f"wrote {args.out}")
    return 0


def _record(file: Path, yardstick: Yardstick, vectors: Path | None) -> dict[str, Any]:
    table = load_table(file)
    counts = {f"{floor:.2f}": _mean_candidates(table, floor) for floor in np.arange(LOWEST, 0.96, 0.05)}
    record: dict[str, Any] = {
        "table": {
            "bytes": file.stat().st_size,
            "words": len(table.words),
            "neighbours": len(table.ids),
            **measure(everything(table), yardstick),
            "simlex_listed": simlex_listed(table, yardstick.simlex),
        },
        "calibration": calibrate(table, yardstick.whole) | {"default": COSINE},
        "mean_candidates": counts | {"default": _mean_candidates(table, COSINE)},
        "spaces": {},
    }
    if vectors is not None:
        with np.load(vectors, allow_pickle=False) as kept:
            words, ranks = unpack_words(kept["words"]), kept["ranks"]
            spaces = {"plain": kept["plain"], "start": kept["start"], "fitted": kept["rows"]}
        for name, rows in spaces.items():
            # Only the fitted space holds rare words back; nothing is cut at the table's lowest similarity.
            listed = neighbour_table(words, rows, ranks if name == "fitted" else None, lowest=0.0)
            figures = measure(everything(listed), yardstick)
            record["spaces"][name] = {"simlex": simlex(words, rows, yardstick.simlex), **figures}
    return record


def _show(record: Mapping[str, Any]) -> None:
    table = record["table"]
    size = f"{table['words']:,} words, {table['neighbours'] / table['words']:.1f} neighbours each"
    print(f"embedded table: {size}, {table['bytes'] / 1e6:.2f} MB; {table['shared']:,} of {table['of']:,} published words")
    for name, row in {"table": table, **record["spaces"]}.items():
        human = f"SimLex-999 {row['simlex']['spearman']:.3f}" if "simlex" in row else "SimLex-999 -"
        held = f"(held out {row['held_out']['recall_8']:.3f}, {row['held_out']['recall_50']:.3f})"
        recalls = f"recall@8 {row['recall_8']:.3f} @50 {row['recall_50']:.3f} {held}"
        print(f"{name:8} {human:18} {recalls} antonyms@50 {row['antonyms_50']:.2%}")
    calibration = record["calibration"]
    print(
        f"{calibration['published_mean']} candidates a word in the published lists: ours are as many at "
        f"{calibration['cosine']} (the default is {calibration['default']})"
    )


def _mean_candidates(table: Table, floor: float) -> float:
    return round(float((table.similarities >= floor - 1e-9).sum()) / len(table.words), 3)


def _listed(table: Table, word: str, other: str) -> float:
    place, target = table.places[word], table.places[other]
    span = slice(*table.starts[place : place + 2].tolist())
    at = np.nonzero(table.ids[span] == target)[0]
    return float(table.similarities[span][at[0]]) if len(at) else 0.0


def _ranks(values: ArrayLike) -> NDArray[np.float64]:
    _, inverse, counts = np.unique(np.asarray(values), return_inverse=True, return_counts=True)
    ends = np.cumsum(counts)
    ranks: NDArray[np.float64] = (ends - (counts - 1) / 2)[inverse]
    return ranks


def _share(truths: Any) -> float:
    return round(float(np.mean(list(truths) or [0])), 4)


def _plain_or_gz(folder: Path, name: str) -> Path:
    return folder / name if (folder / name).exists() else folder / f"{name}.gz"


def _read(folder: Path, name: str) -> str:
    raw = _plain_or_gz(folder, name).read_bytes()
    return (gzip.decompress(raw) if raw[:2] == b"\x1f\x8b" else raw).decode("utf-8")


if __name__ == "__main__":
    sys.exit(main())
