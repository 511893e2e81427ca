"""How many test texts are also, or nearly, among the training texts: MinHash finds them, a count of shingles decides."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..attacks.types import Text
from .wordcnn import tokenise

NEAR = 0.8  # share of common shingles (Jaccard) from which two texts are nearly the same
WORDS = 3  # words of a shingle
HASHES = 64
SEED = 1


def shingles(text: Text) -> set[str]:
    """Runs of three words, each marked by its field; a shorter field is one shingle."""
    found = set()
    for number, field in enumerate(text):
        words = tokenise(field)
        for at in range(max(1, len(words) - WORDS + 1)):
            found.add(f"{number} {' '.join(words[at : at + WORDS])}")
    return found


def leakage(train: Sequence[Text], test: Sequence[Text]) -> dict[str, Any]:
    """How many of `test` are in `train` word for word, and how many nearly. The texts must have as many fields."""
    try:
        from datasketch import MinHash, MinHashLSH  # type: ignore[import-not-found,import-untyped,unused-ignore]
    except ImportError as error:
        raise ModuleNotFoundError(
            "looking for test texts among the training texts needs datasketch: pip install 'scrimp[datasketch]', or leave "
            "out --test"
        ) from error

    def hashed(parts: Sequence[set[str]]) -> Any:
        codes = [[shingle.encode() for shingle in part] for part in parts]
        return MinHash.generator(codes, num_perm=HASHES, seed=SEED, hashfunc=zlib.crc32)

    known, asked = [shingles(text) for text in train], [shingles(text) for text in test]
    table = MinHashLSH(threshold=NEAR, num_perm=HASHES)
    for number, hashes in enumerate(hashed(known)):
        table.insert(number, hashes)
    exact = near = 0
    for own, hashes in zip(asked, hashed(asked), strict=True):
        alike = [len(own & known[at]) / len(own | known[at]) for at in table.query(hashes)]
        most = float(np.max(alike, initial=0.0))
        exact += most == 1.0
        near += NEAR <= most < 1.0
    return {"test": len(test), "train": len(train), "same": exact, "near": near, "jaccard": NEAR, "shingle_words": WORDS}


def told(found: dict[str, Any]) -> str:
    """The finding in one sentence."""
    return (
        f"{found['same']} of {found['test']} test texts are among the {found['train']} training texts word for word, "
        f"{found['near']} more nearly (Jaccard of at least {found['jaccard']:g})"
    )
