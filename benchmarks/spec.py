"""What a run is: everything that can change a result, and nothing that cannot."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass


@dataclass(frozen=True)
class Spec:
    """Frozen settings of a run. Width, batch size and device are left out: they change speed only."""

    victim: str
    gives: str
    goal: str
    recipe: str
    space: str
    search: str
    budget: int
    seed: int
    stride: int
    floor: float | None
    window: int | None
    guide: str | None
    judge: str | None
    prior: str | None

    @property
    def key(self) -> str:
        """Sixteen hexadecimal digits that name this spec in every record."""
        plain = json.dumps(asdict(self), sort_keys=True)
        return hashlib.blake2b(plain.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()
