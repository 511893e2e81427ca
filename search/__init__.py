"""Search methods. One file each; a new one is its file, its import and its line in SEARCHES."""

from __future__ import annotations

from ..attacks.types import Search
from ..ranking import RANKINGS
from .greedy import greedy
from .joint import joint
from .posterior import posterior
from .restore import restore
from .weighted import weighted, weighted_whole

SEARCHES: dict[str, Search] = {
    search.name: search
    for search in (
        *(greedy(ranking) for ranking in RANKINGS.values()),
        greedy(RANKINGS["deletion"], whole_slots=True),
        greedy(RANKINGS["saliency"], whole_slots=True),
        weighted,
        weighted_whole,
        restore(),
        joint(prune=4),
        joint(prune=60),
        posterior(prune=4),
        posterior(prune=120, thorough=True),
    )
}
