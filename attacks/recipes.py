"""Published attacks as values. NAME is the form we recommend, NAME@paper what the paper prints, NAME@released what the
released code does where that changes results. Deviations are written at each."""

from __future__ import annotations

import difflib
from dataclasses import dataclass

from ..search import SEARCHES
from ..spaces import SPACES
from .types import Search, Space


@dataclass(frozen=True)
class Recipe:
    """A space, a search and a floor, with where they come from."""

    name: str
    space: Space
    search: Search
    about: str
    paper: str = ""
    floor: float | None = None  # least cosine to the original by the guide encoder
    window: int | None = None  # words around the changes that the floor compares
    prior: str | None = None  # "auto": a shipped prior that fits the victim's classes and shares no data with it


_PWWS = "Ren et al. 2019, Generating Natural Language Adversarial Examples through Probability Weighted Word Saliency"
_GREEDY = "the ranking of Jin et al. 2020, Is BERT Really Robust?"

RECIPES: dict[str, Recipe] = {
    recipe.name: recipe
    for recipe in (
        # Words are weighed in order of saliency, and only until the best substitutes found so far fool together; then these
        # are put in by weight, as in the paper. Same success at half the queries or less, a few more words changed.
        # Named entities are not swapped: the original's table was built from the test texts too.
        Recipe("pwws", SPACES["wordnet"], SEARCHES["weighted"], "weighted saliency, weighs no more than it needs", _PWWS),
        # Every candidate is weighed before the first step. Substitutes are inflected like the word they replace, where the
        # original needs an equal tag and so loses them. The last of equal candidates wins, as in the original.
        Recipe("pwws@paper", SPACES["wordnet"], SEARCHES["weighted-whole"], "weighted saliency as printed", _PWWS),
        # The TextAttack port, which the field runs: any part of speech, no inflection, and every candidate of a word asked
        # again on the current text. It also asks an unknown-word probe of words without candidates; that only scales all
        # weights alike, so those are left out here and the order is the same.
        Recipe(
            "pwws@released", SPACES["wordnet-any"], SEARCHES["greedy-saliency-whole"], "weighted saliency as ported", _PWWS
        ),
        Recipe("greedy-wordnet", SPACES["wordnet"], SEARCHES["greedy-deletion"], "deletion ranking, word by word", _GREEDY),
        # As the TextAttack greedy search with deletion ranking on WordNet: all candidates of a word are paid for.
        Recipe(
            "greedy-wordnet@released",
            SPACES["wordnet-any"],
            SEARCHES["greedy-deletion-whole"],
            "deletion ranking, whole words paid",
            _GREEDY,
        ),
        Recipe(
            "scrimp", SPACES["wordnet"], SEARCHES["posterior-4"], "a prior, joint moves, a model that learns", prior="auto"
        ),
        Recipe(
            "scrimp-pruned",
            SPACES["wordnet"],
            SEARCHES["posterior-120-thorough"],
            "the same, never gives up, then up to 120 queries to change fewer words",
            prior="auto",
        ),
        Recipe(
            "scrimp-labels",
            SPACES["wordnet"],
            SEARCHES["joint-4"],
            "labels only: a prior, joint moves, bisection",
            prior="auto",
        ),
        Recipe(
            "scrimp-labels-pruned",
            SPACES["wordnet"],
            SEARCHES["joint-60"],
            "the same, then up to 60 queries to put words back",
            prior="auto",
        ),
        Recipe("random-wordnet", SPACES["wordnet"], SEARCHES["greedy-random"], "random order, word by word: the yardstick"),
        Recipe(
            "restore-wordnet", SPACES["wordnet"], SEARCHES["restore"], "labels only: joint moves, bisection, words put back"
        ),
    )
}


def recipe_named(name: str) -> Recipe:
    """The recipe of this name, or an error with the nearest ones."""
    if name in RECIPES:
        return RECIPES[name]
    near = difflib.get_close_matches(name, RECIPES, 3, 0.4)
    raise ValueError(
        f"no recipe {name!r}; {'did you mean ' + ', '.join(near) if near else 'there are ' + ', '.join(RECIPES)}?"
    )
