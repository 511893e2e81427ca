"""What WordNet says of a vocabulary: which words mean the same, by how much, and which mean the opposite."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from itertools import combinations, product
from pathlib import Path
from typing import Any, NamedTuple

import regex

from ..resources import fetch
from .inflect import guess, inflect
from .tokens import words as words_of
from .wordnet import _net

Pair = tuple[str, str]  # in alphabetical order
Key = tuple[str, str]  # lemma and part of speech: n, v, a, r

PLAIN = regex.compile(r"[a-z]+(?:-[a-z]+)*")
INFLECTION = 0.4  # run and running: near, but not as near as synonyms of the same form
SIMILAR = 0.5  # WordNet's similar-to: damp for wet
SOFT = 0.5  # the power of weights: as they are, all but a word's one best synonym would hardly count
GLOSSED = 3  # times; less is often Latin
KIND = 0.15  # direct hypernyms: dog for terrier


class Relations(NamedTuple):
    synonyms: dict[Pair, float]  # weight in (0, 1]
    antonyms: frozenset[Pair]  # none of them among the synonyms


def known(word: str) -> bool:
    """Whether WordNet lists the word or a form of it, or uses it in a gloss, without a capital: names are left out."""
    return word in _glossed() or any(True for _ in _lemmas(word))


def relations(words: Sequence[str]) -> Relations:
    """The constraints between these words."""
    forms: defaultdict[Key, dict[str, list[str]]] = defaultdict(dict)  # by the Penn tag of the form
    for word in words:
        for (lemma, pos), tag in _lemmas(word):
            forms[lemma, pos].setdefault(tag, []).append(word)
    synonyms: defaultdict[Pair, float] = defaultdict(float)

    def join(a: Key, b: Key, weight: float) -> None:
        for tag, mine in forms.get(a, {}).items():
            for pair in product(mine, forms.get(b, {}).get(tag, ())):
                _raise(synonyms, pair, weight)

    for by_tag in forms.values():
        for pair in combinations([word for same in by_tag.values() for word in same], 2):
            _raise(synonyms, pair, INFLECTION)
    antonyms: set[Pair] = set()
    shares = _shares()
    for synset in _synsets(forms):
        members = [(key, shares[key][synset.offset()]) for key in _keys(synset)]
        for (a, share_a), (b, share_b) in combinations(members, 2):
            join(a, b, (share_a * share_b) ** 0.5)
        for others, scale in ((synset.similar_tos(), SIMILAR), (synset.hypernyms(), KIND)):
            for other in others:
                for (a, share_a), b in product(members, _keys(other)):
                    join(a, b, scale * share_a * shares[b][other.offset()])
        for a, b in _opposites(synset):
            antonyms |= {_pair(x, y) for x in _flat(forms.get(a)) for y in _flat(forms.get(b)) if x != y}
    return Relations(
        {pair: weight**SOFT for pair, weight in synonyms.items() if pair not in antonyms},
        frozenset(antonyms),
    )


def _lemmas(word: str) -> Iterator[tuple[Key, str]]:
    """Each lemma the word may be a form of, with the tag of that form."""
    for pos in "nvar":
        for lemma in _net()._morphy(word, pos):
            if (lemma, pos) in _shares():
                tag = guess(word, lemma, pos)
                # WordNet's reader takes any -er for a comparative: gooder, weller.
                if tag not in ("JJR", "JJS") or inflect(lemma, tag) == word:
                    yield (lemma, pos), tag


def _keys(synset: Any) -> list[Key]:
    pos = _pos(synset)
    return [(name, pos) for name in synset.lemma_names() if (name, pos) in _shares()]


def _pos(synset: Any) -> str:
    pos: str = synset.pos()
    return "a" if pos == "s" else pos


def _opposites(synset: Any) -> Iterator[tuple[Key, Key]]:
    """Antonyms of the synset's lemmas, and of the words that mean the same as these or are similar to them."""
    for lemma in synset.lemmas():
        for opposite in lemma.antonyms():
            here, there = _circle(synset), _circle(opposite.synset())
            # A word on both sides is the opposite of neither: one may force by pushing and by pulling.
            yield from ((a, b) for a, b in product(here, there) if a not in there and b not in here)


def _circle(synset: Any) -> list[Key]:
    return [key for near in (synset, *synset.similar_tos()) for key in _keys(near)]


def _synsets(keys: Iterable[Key]) -> list[Any]:
    """The synsets of these lemmas, and those that they are similar to: antonyms are listed there."""
    places = sorted({(pos, offset) for lemma, pos in keys for offset in _shares()[lemma, pos]})
    own = [_net().synset_from_pos_and_offset(pos, offset) for pos, offset in places]
    return list(dict.fromkeys([*own, *(other for synset in own for other in synset.similar_tos())]))


def _flat(by_tag: dict[str, list[str]] | None) -> Iterable[str]:
    return [word for same in (by_tag or {}).values() for word in same]


def _pair(a: str, b: str) -> Pair:
    return (a, b) if a < b else (b, a)


def _raise(weights: defaultdict[Pair, float], pair: Pair, weight: float) -> None:
    if pair[0] != pair[1]:
        key = _pair(*pair)
        weights[key] = max(weights[key], weight)


@cache
def _glossed() -> frozenset[str]:
    """Plain words of glosses and examples that are no part of a name: everyone, without, although are in no synset."""
    names = {part.lower() for lemma in _entries()[0] for part in lemma.split("_") if part != part.lower()}
    seen = Counter(word.text for gloss in _entries()[1] for word in words_of(gloss))
    return frozenset(
        word
        for word, times in seen.items()
        if times >= GLOSSED and len(word) > 1 and PLAIN.fullmatch(word) and word not in names
    )


@cache
def _shares() -> dict[Key, dict[int, float]]:
    """For each plain lemma without a capital, how often it has each sense: smoothed counts of the tagged corpus."""
    plain = {lemma for lemma in _entries()[0] if PLAIN.fullmatch(lemma)}
    counts: defaultdict[str, dict[tuple[str, int], int]] = defaultdict(dict)
    for line in _lines("index.sense"):
        sense, offset, _, count = line.split()
        lemma, _, kind = sense.partition("%")
        if lemma in plain:
            counts[lemma]["nvara"[int(kind[0]) - 1], int(offset)] = int(count)
    shares: defaultdict[Key, dict[int, float]] = defaultdict(dict)
    for lemma, senses in counts.items():
        total = sum(senses.values()) + len(senses)
        for (pos, place), times in senses.items():
            shares[lemma, pos][place] = (times + 1) / total
    return dict(shares)


@cache
def _entries() -> tuple[frozenset[str], tuple[str, ...]]:
    """All lemmas as WordNet spells them, and all glosses; read from its files, which is ten times as fast as objects."""
    lemmas: set[str] = set()
    glosses = []
    for kind in ("noun", "verb", "adj", "adv"):
        for line in _lines(f"data.{kind}"):
            if not line.startswith("  "):  # the licence
                entry, _, gloss = line.partition("|")
                parts = entry.split()
                lemmas.update(name.partition("(")[0] for name in parts[4 : 4 + 2 * int(parts[3], 16) : 2])
                glosses.append(gloss)
    return frozenset(lemmas), tuple(glosses)


def _lines(name: str) -> list[str]:
    return (Path(fetch("wordnet")) / name).read_text(encoding="utf-8").splitlines()
