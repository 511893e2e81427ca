"""Nearest words: an exact search in vectors, and the table of neighbours that the package ships instead of vectors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .vectors import Rows, Vectors, pack_words, save_arrays, unpack_words

Ids = NDArray[np.int64]
SPARE = 8  # more rows than asked for are scored again, so that rounding in the search decides nothing
CHUNK = 512
MOST = 1 << 16  # words of a table, which numbers them in two bytes


class Index:
    """Exact search by inner product."""

    def __init__(self, rows: Rows) -> None:
        try:
            import faiss  # type: ignore[import-untyped, unused-ignore]
        except ImportError as fault:
            raise ImportError("searching word vectors needs faiss: pip install 'scrimp[faiss]'") from fault
        self.rows = np.ascontiguousarray(rows, dtype=np.float32)
        self._index: Any = faiss.IndexFlatIP(rows.shape[1])
        self._index.add(self.rows)

    def __call__(self, queries: Rows, k: int) -> tuple[Ids, NDArray[np.float64]]:
        """The k best rows for each query, best first, and their products. Equal ones come in the order of rows.

        An answer does not depend on the other queries: products are taken again one by one and rounded, because the
        search itself computes single queries and batches in different orders.
        """
        k = min(k, len(self.rows))
        most = min(k + SPARE, len(self.rows))
        ids = np.empty((len(queries), k), dtype=np.int64)
        products = np.empty((len(queries), k))
        for start in range(0, len(queries), CHUNK):
            part = np.ascontiguousarray(queries[start : start + CHUNK], dtype=np.float32)
            found: Ids = self._index.search(part, most)[1]
            exact = np.round((self.rows[found].astype(np.float64) * part[:, None].astype(np.float64)).sum(-1), 6)
            order = np.lexsort((found, -exact), axis=-1)[:, :k]
            ids[start : start + CHUNK] = np.take_along_axis(found, order, 1)
            products[start : start + CHUNK] = np.take_along_axis(exact, order, 1)
        return ids, products


@dataclass(frozen=True, eq=False)
class Searched:
    """Neighbours found in vectors when they are asked for."""

    vectors: Vectors

    @cached_property
    def places(self) -> Mapping[str, int]:
        return {word: place for place, word in enumerate(self.vectors.words)}

    @cached_property
    def index(self) -> Index:
        return Index(self.vectors.rows)

    def near(self, words: Sequence[str], k: int, floor: float) -> list[tuple[str, ...]]:
        """At most k neighbours of each word, nearest first, as similar as the floor; none for an unknown word."""
        known = [self.places[word] for word in words if word in self.places]
        if not known:
            return [()] * len(words)
        found = zip(known, *self.index(self.vectors.rows[known], k + 1), strict=True)  # the word itself is found too
        names = self.vectors.words
        lists = iter(
            tuple(names[i] for i, product in zip(ids, products, strict=True) if i != place and product >= floor)[:k]
            for place, ids, products in found
        )
        return [next(lists) if word in self.places else () for word in words]


@dataclass(frozen=True, eq=False)
class Table:
    """Neighbours listed beforehand: a word's are ids[starts[w]:starts[w + 1]], nearest first, and none below `lowest`."""

    words: tuple[str, ...]
    starts: Ids
    ids: NDArray[np.uint16]
    hundredths: NDArray[np.uint8]  # of similarity
    lowest: float

    @cached_property
    def places(self) -> Mapping[str, int]:
        return {word: place for place, word in enumerate(self.words)}

    @cached_property
    def similarities(self) -> NDArray[np.float64]:
        return self.hundredths / 100

    def near(self, words: Sequence[str], k: int, floor: float) -> list[tuple[str, ...]]:
        """At most k neighbours of each word, nearest first, as similar as the floor; none for an unknown word."""
        answers: list[tuple[str, ...]] = []
        for word in words:
            place = self.places.get(word)
            if place is None:
                answers.append(())
                continue
            first, last = self.starts[place : place + 2].tolist()
            reach = int(np.searchsorted(-self.similarities[first:last], -floor, side="right"))
            answers.append(tuple(self.words[i] for i in self.ids[first : first + min(k, reach)].tolist()))
        return answers


def make_table(words: Sequence[str], ids: Ids, similarities: NDArray[np.float64], lowest: float) -> Table:
    """A table of what `Index` found, one row a word; the word itself and what is below `lowest` are left out."""
    if not 0 <= lowest <= 1:
        raise ValueError(f"a table holds similarities between 0 and 1, got lowest={lowest}")
    keep = (similarities >= lowest) & (ids != np.arange(len(words))[:, None])
    starts = np.concatenate([[0], np.cumsum(keep.sum(1))])
    # Rounded down: no stored similarity passes a floor that the true one does not.
    hundredths = np.floor(similarities[keep].clip(max=1) * 100 + 1e-6)
    return Table(tuple(words), starts, ids[keep].astype(np.uint16), hundredths.astype(np.uint8), lowest)


def save_table(file: Path, table: Table) -> None:
    """Write the table. The two bytes of ids are kept apart, because only the upper ones can be compressed."""
    if len(table.words) > MOST:
        raise ValueError(f"a table numbers its words in two bytes, so it holds {MOST} at most, got {len(table.words)}")
    save_arrays(
        file,
        compress=True,
        words=pack_words(table.words),
        counts=np.diff(table.starts).astype(np.uint8),
        low=(table.ids & 255).astype(np.uint8),
        high=(table.ids >> 8).astype(np.uint8),
        hundredths=table.hundredths,
        lowest=np.array([table.lowest]),
    )


def load_table(file: Path) -> Table:
    """The table of a file that `save_table` wrote."""
    with np.load(file, allow_pickle=False) as arrays:
        starts = np.concatenate([[0], np.cumsum(arrays["counts"].astype(np.int64))])
        ids = arrays["low"].astype(np.uint16) | (arrays["high"].astype(np.uint16) << 8)
        return Table(unpack_words(arrays["words"]), starts, ids, arrays["hundredths"], float(arrays["lowest"][0]))
