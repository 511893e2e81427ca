"""Spaces: which texts are reachable from a text, by which candidates and under which rules."""

from __future__ import annotations

import difflib

from .bigrams import Bigrams
from .chars import Chars
from .counterfitted import CounterFitted
from .encoders import minilm, use
from .filters import Near, NoRepeats, SameClass
from .fluency import LanguageModel
from .given import sentence_encoder, tfhub
from .hownet import HowNet
from .listed import Listed
from .masked import Masked
from .rules import MinLength, PartOfSpeech, Protect, ShareChanged, StopWords
from .scales import convert, floor_from
from .space import Space
from .wordnet import WordNet

__all__ = [
    "SPACES",
    "SPACE_NOTES",
    "Bigrams",
    "Chars",
    "CounterFitted",
    "HowNet",
    "LanguageModel",
    "Listed",
    "Masked",
    "MinLength",
    "Near",
    "NoRepeats",
    "PartOfSpeech",
    "Protect",
    "SameClass",
    "ShareChanged",
    "Space",
    "StopWords",
    "WordNet",
    "convert",
    "floor_from",
    "minilm",
    "sentence_encoder",
    "space_named",
    "tfhub",
    "use",
]

SPACES: dict[str, Space] = {
    "wordnet": Space(WordNet(), (StopWords(),)),
    "wordnet-any": Space(WordNet(pos=False, inflect=False), (StopWords(),)),
    "counterfitted": Space(CounterFitted(), (StopWords(),)),
    "masked": Space(Masked(together=True), (StopWords(),)),
    "masked-plain": Space(Masked(pair=False, blend=0.0), (StopWords(),)),
    "chars": Space(Chars(), (StopWords(),)),
    "bugs": Space(Chars(("insert", "delete", "swap", "sign"), most=1, words=CounterFitted(5)), (StopWords(),)),
}
SPACE_NOTES: dict[str, str] = {
    "wordnet": "WordNet synonyms of the tagged part of speech, inflected like the word; stop words stay",
    "wordnet-any": "WordNet synonyms of any part of speech, as lemmas, without a tagger; stop words stay",
    "counterfitted": "nearest words in an embedded counter-fitted vector space, any form or part of speech; stop words stay",
    "masked": "words that an embedded masked language model sees fit, near in meaning to the word; stop words stay",
    "masked-plain": "words that it sees fit, whatever they mean; stop words stay",
    "chars": "misspellings: a space, a lost, swapped, neighbouring or look-alike letter; stop words stay",
    "bugs": "TextBugger's five: one misspelling of each kind, or one of the 5 nearest counter-fitted words; stop words stay",
    "hownet": "HowNet words with the same sememes and part of speech; needs its data (SCRIMP_HOWNET); stop words stay",
}


def space_named(name: str) -> Space:
    """The registered space of this name."""
    if name in SPACES:
        return SPACES[name]
    if name == "hownet":
        return Space(HowNet(), (StopWords(),))  # made when asked for: its data is not in the package
    near = difflib.get_close_matches(name, SPACE_NOTES, n=1)
    hint = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(SPACE_NOTES)}"
    raise ValueError(f"no space is called {name!r}; {hint}")
