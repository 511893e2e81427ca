"""A rule by the embedded counter-fitted table: a candidate and its word are among each other's neighbours."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from .counterfitted import LISTED, LOWEST, _table, _table_digest
from .rules import CandidateRule, Field


@dataclass(frozen=True)
class Listed(CandidateRule):
    """Where the table knows both words, one is listed as a neighbour of the other, at least this similar.

    What it does not know passes, as in the published attacks. They ask for a cosine of 0.2 by the published vectors; the
    table lists 50 neighbours down to 0.35 and says nothing of others, so this is stricter: of 50 words that a masked
    model proposes about 20 stay. With vectors at hand the rule as published is Near.read(path, 0.2).
    """

    similarity: float = LOWEST
    reason = "without a candidate that the counter-fitted table lists"

    def __post_init__(self) -> None:
        if not LOWEST <= self.similarity <= 1:
            raise ValueError(f"the table lists similarities from {LOWEST} to 1, got {self.similarity}")

    @property
    def name(self) -> str:
        return f"listed({float(self.similarity)!r},{_table_digest()})"

    def sift(self, field: Field, positions: Sequence[int], offers: Sequence[tuple[str, ...]]) -> list[tuple[str, ...]]:
        return [
            tuple(other for other in candidates if self._passes(field.words[position].text.lower(), other.lower()))
            for position, candidates in zip(positions, offers, strict=True)
        ]

    def _passes(self, word: str, other: str) -> bool:
        table = _table()
        if word not in table.places or other not in table.places:
            return True
        near, back = table.near([word, other], LISTED, self.similarity)
        return other in near or word in back
