"""Search methods. One file each; a new one is its file, its import and its line in SEARCHES."""

from __future__ import annotations

from ..attacks.types import Search
from ..ranking import RANKINGS
from .attended import attended
from .breeding import hard_label_paper, hard_label_released
from .context import nothing, original, renewing
from .genetic import TEMPERATURE, genetic
from .greedy import greedy
from .hard_label import hard_label
from .joint import joint
from .posterior import posterior
from .restore import restore
from .similar import most_similar
from .swarm import every_slot, swapped, swarm
from .textbugger import by_sentence
from .weighted import weighted, weighted_whole

SEARCHES: dict[str, Search] = {
    search.name: search
    for search in (
        *(greedy(ranking) for ranking in RANKINGS.values()),
        greedy(RANKINGS["deletion"], whole_slots=True),
        greedy(RANKINGS["saliency"], whole_slots=True),
        greedy(RANKINGS["attention-lsh(15,5,fewest)"], whole_slots=True),
        greedy(RANKINGS["attention-lsh(5,3,most)"], whole_slots=True),
        attended(),
        weighted,
        weighted_whole,
        restore(),
        hard_label,
        hard_label_paper,
        hard_label_released,
        joint(prune=4),
        joint(prune=60, thorough=True),
        posterior(prune=4),
        posterior(prune=33, thorough=True),
        most_similar(RANKINGS["deletion"]),
        most_similar(RANKINGS["deletion"], whole_slots=True),
        renewing(RANKINGS["deletion"]),
        renewing(RANKINGS["deletion"], whole_slots=True, bar=nothing),
        renewing(RANKINGS["unknown"], whole_slots=True, bar=original),
        by_sentence(),
        by_sentence(whole_slots=True),
        swarm(),
        swarm(whole=True, name="swarm-whole"),
        swarm(whole=True, turn=swapped, mutate=every_slot, name="swarm-ported"),
        genetic(),
        genetic(whole=True, name="genetic-whole"),
        genetic(whole=True, temperature=-TEMPERATURE, tries=None, name="genetic-ported"),
    )
}
