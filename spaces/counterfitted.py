"""Neighbours in a counter-fitted vector space: synonyms are near, antonyms far (Mrkšić et al. 2016)."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from .casing import in_case
from .neighbours import Searched, Table, load_table
from .rules import Field
from .tokens import is_word
from .vectors import load_vectors

EMBEDDED = Path(__file__).parent / "data" / "counterfitted.npz"
LISTED = 50  # neighbours a word in the embedded table, at most
LOWEST = 0.35  # nothing less similar is in the embedded table
# Thresholds of papers belong to the published vectors. Their lists of up to 8 neighbours at a cosine of at least 0.755
# hold 3.70 a word (36,892 words that the table has too); the table's first 8 hold as many at 0.61, measured by
# benchmarks/counterfitted.py. A wider space than that is had with a lower number.
COSINE = 0.61


@dataclass(frozen=True)
class CounterFitted:
    """Candidates nearest first: at most `k`, none less similar than `cosine`.

    Without `path` they come from the embedded table, which scrimp fitted itself (fitting.py); its similarity is the
    cosine less a little for rare words. `path` names vectors as text, a word and its numbers a line, such as the
    published counter-fitted-vectors.txt; papers that use that file ask for a cosine of 0.5 to 0.8.
    """

    k: int = LISTED
    cosine: float = COSINE
    path: str | os.PathLike[str] | None = None
    missing = "without a counter-fitted neighbour"
    needs_tags = False

    def __post_init__(self) -> None:
        if self.k < 1:
            raise ValueError(f"a word needs room for at least 1 candidate, got k={self.k}")
        if not -1 <= self.cosine <= 1:
            raise ValueError(f"a cosine lies between -1 and 1, got {self.cosine}")
        if self.path is None and (self.k > LISTED or self.cosine < LOWEST):
            raise ValueError(
                f"the embedded table lists {LISTED} neighbours of at least {LOWEST}, got k={self.k} and "
                f"cosine={self.cosine}; ask for less, or give path= to a file of vectors"
            )

    @property
    def name(self) -> str:
        return f"counterfitted({self.k},{self.cosine:g},{self._digest})"

    def __call__(self, field: Field, positions: Sequence[int]) -> list[tuple[str, ...]]:
        """Candidates for the words at these positions, none equal to its word. All new words are searched at once."""
        known = _memo(self, self._digest)
        words = [field.words[position].text for position in positions]
        lowers = [word.lower() for word in words]
        fresh = [word for word in dict.fromkeys(lowers) if word not in known]
        if fresh:
            found = self._space.near(fresh, self.k, self.cosine)
            known |= {word: tuple(filter(is_word, others)) for word, others in zip(fresh, found, strict=True)}
        return [in_case(word, lower, known[lower]) for word, lower in zip(words, lowers, strict=True)]

    @property
    def _space(self) -> Table | Searched:
        return _table() if self.path is None else _searched(os.fspath(self.path), self._digest)

    @property
    def _digest(self) -> str:
        """Eight digits that stand for the content searched: another table gives other results."""
        return _table_digest() if self.path is None else load_vectors(self.path).digest[:8]


@cache
def _memo(source: CounterFitted, digest: str) -> dict[str, tuple[str, ...]]:
    """What is known per lower-case word. A language's vocabulary bounds it."""
    return {}


@cache
def _table() -> Table:
    return load_table(EMBEDDED)


@cache
def _table_digest() -> str:
    return hashlib.sha256(EMBEDDED.read_bytes()).hexdigest()[:8]


@cache
def _searched(path: str, digest: str) -> Searched:
    return Searched(load_vectors(path))
