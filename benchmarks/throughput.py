"""How fast the parts are: grids per second of each space, texts per second of the encoders, candidates per second of LSH.

`python -m scrimp.benchmarks.throughput`. Texts come from the wheel of movie reviews; --data takes another file. HowNet is
measured where its data is (SCRIMP_HOWNET).
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ..ranking.lsh import AS_PRINTED, AS_RELEASED, Projections, buckets
from ..spaces import SPACES, space_named, tags
from ..spaces.encoders import ENCODERS
from ..spaces.hownet import HowNetError
from ..victims import HELD_OUT
from .data import read_examples
from .overhead import long_reviews

RECORD = Path(__file__).parent / "measured" / "throughput.json"


def rate(work: Callable[[], Any], items: int) -> float:
    """Items per second of wall time, after the models are loaded."""
    start = time.perf_counter()
    work()
    return round(items / (time.perf_counter() - start), 1)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", metavar="FILE", help="long texts (IMDB rows of the wheel of movie reviews)")
    parser.add_argument("--n", type=int, default=100, help="how many (%(default)s)")
    parser.add_argument("--out", type=Path, default=RECORD, help="where the record goes")
    args = parser.parse_args(arguments)
    long = read_examples(args.data, n=args.n) if args.data else long_reviews(args.n)
    short = [example.text[0] for example in read_examples(HELD_OUT)]
    record: dict[str, Any] = {
        "texts": len(long),
        "words_mean": round(float(np.mean([len(e.text[0].split()) for e in long])), 1),
    }
    record["grids_per_second"] = {}
    spaces = dict(SPACES)
    try:
        spaces["hownet"] = space_named("hownet")
        record["hownet"] = spaces["hownet"].name
    except HowNetError as absent:
        print("hownet is left out:", str(absent).splitlines()[0])
    for name, space in spaces.items():
        space(read_examples(HELD_OUT, n=1))  # loads lexicon, tagger or model
        tags._memo.clear()  # every space that needs tags pays for them
        record["grids_per_second"][name] = rate(lambda space=space: space(long), len(long))  # type: ignore[misc]
        print(name, record["grids_per_second"][name], flush=True)
    record["texts_per_second"] = {}
    for name, make in ENCODERS.items():
        encoder = make()
        encoder(["warm"])
        reviews = [example.text[0] for example in long]
        record["texts_per_second"][name] = {
            "short": rate(lambda encoder=encoder: encoder(short), len(short)),  # type: ignore[misc]
            "long": rate(lambda encoder=encoder, reviews=reviews: encoder(reviews), len(reviews)),  # type: ignore[misc]
        }
        print(name, record["texts_per_second"][name], flush=True)
    vectors = np.random.default_rng(0).normal(size=(20_000, 512)).astype(np.float32)
    slots = np.repeat(np.arange(2000), 10)

    def hashed(hashing: Projections) -> Any:
        return buckets(hashing.sketch(vectors, np.random.default_rng(1)), slots, hashing.choose)

    record["candidates_per_second"] = {
        hashing.name: rate(lambda hashing=hashing: hashed(hashing), len(vectors))  # type: ignore[misc]
        for hashing in (AS_PRINTED, AS_RELEASED)
    }
    args.out.parent.mkdir(parents=True, exist_ok=True)
    args.out.write_text(json.dumps(record, indent=1) + "\n")
    print(json.dumps(record, indent=1))


if __name__ == "__main__":
    main()
