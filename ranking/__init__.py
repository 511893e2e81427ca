"""Rankings: which slot first. One file each; a new one is its file, its import and its line in RANKINGS."""

from __future__ import annotations

from ..attacks.types import Ranking
from .attended import as_printed, as_released, by_attention
from .lsh import AS_PRINTED, AS_RELEASED, MinHashes, by_buckets
from .probes import by_deletion, by_unknown
from .random import at_random
from .saliency import by_saliency

RANKINGS: dict[str, Ranking] = {
    ranking.name: ranking
    for ranking in (
        at_random,
        by_deletion,
        by_unknown,
        by_saliency,
        by_buckets(AS_PRINTED),
        by_buckets(AS_RELEASED),
        by_buckets(MinHashes()),
        by_attention,
        as_printed,
        as_released,
    )
}
