"""Spaces: which texts are reachable from a text, by which candidates and under which rules."""

from __future__ import annotations

import difflib

from .counterfitted import CounterFitted
from .encoders import minilm, use
from .rules import MinLength, PartOfSpeech, Protect, ShareChanged, StopWords
from .space import Space
from .wordnet import WordNet

__all__ = [
    "SPACES",
    "SPACE_NOTES",
    "CounterFitted",
    "MinLength",
    "PartOfSpeech",
    "Protect",
    "ShareChanged",
    "Space",
    "StopWords",
    "WordNet",
    "minilm",
    "space_named",
    "use",
]

SPACES: dict[str, Space] = {
    "wordnet": Space(WordNet(), (StopWords(),)),
    "wordnet-any": Space(WordNet(pos=False, inflect=False), (StopWords(),)),
    "counterfitted": Space(CounterFitted(), (StopWords(),)),
}
SPACE_NOTES: dict[str, str] = {
    "wordnet": "WordNet synonyms of the tagged part of speech, inflected like the word; stop words stay",
    "wordnet-any": "WordNet synonyms of any part of speech, as lemmas, without a tagger; stop words stay",
    "counterfitted": "nearest words in an embedded counter-fitted vector space, any form or part of speech; stop words stay",
}


def space_named(name: str) -> Space:
    """The registered space of this name."""
    if name in SPACES:
        return SPACES[name]
    near = difflib.get_close_matches(name, SPACES, n=1)
    hint = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(SPACES)}"
    raise ValueError(f"no space is called {name!r}; {hint}")
