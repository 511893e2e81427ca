"""What the embedded masked-word model knows: python -m scrimp.benchmarks.masked --help.

Four measurements. Accuracy: how often a masked content word of unseen text is found again, by kind of text and form.
Mates: WordNet's own example sentences, where the word that its synset is about is to be replaced; how often another
word of just that synset is among the first 10 candidates. It asks for the sense at hand, and only words count that
training never showed together with a synonym. The blend is chosen on half of these words and reported on the others,
beside neighbours in the model's input embeddings, which see no context. Shared: whether words that are masked in one
pass get candidates as good as words masked alone, in long texts. Time: candidates a second.
"""

from __future__ import annotations

import argparse
import gzip
import json
import platform
import sys
import time
import zlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ..attacks.types import Example
from ..resources import fetch
from ..spaces.card import HELD, TOPS, table
from ..spaces.corpus import QUOTED, read_texts
from ..spaces.filling import EMBEDDED, Filler, bare, load_filler
from ..spaces.masked import BLEND, WINDOW, Masked, masked_together
from ..spaces.rules import Field, StopWords
from ..spaces.space import Space
from ..spaces.tokens import Word, words
from ..spaces.train_masked import HELD_WORD, held_word
from ..spaces.wordnet import WordNet
from ..victims import HELD_OUT
from .overhead import long_reviews

RECORD = Path(__file__).parent / "measured" / "masked.json"
BLENDS = (0.0, 4.0, 8.0, 12.0, 16.0, 24.0, 32.0, 48.0)
TOP = 10
FORMS = ("plain", "pair", "together")  # together: the pair form, with every second content word masked
SHARED = 10  # long reviews
SHOWN = (
    "a superb film , full of brilliant performances and a smart script .",
    "The plot is boring and the jokes are painfully stupid.",
    "I really enjoyed the first half of this movie.",
    "an utterly charming and hilarious comedy about two old friends",
    "The bank raised its interest rates yesterday.",
    "He sat on the bank of the river and watched the boats.",
    "Doctors warned that the drug could cause serious damage.",
    "The children ran quickly through the dark forest.",
    "Scientists discovered a new kind of bright star.",
    "She bought an expensive car and drove home.",
)


class Task(NamedTuple):
    text: str
    position: int  # of the word to replace
    word: str
    mates: frozenset[str]  # the other words of its synset


def read_tasks(folder: Path, known: frozenset[str]) -> Iterator[Task]:
    """Example sentences in which a lemma of their synset occurs once, with other lemmas that the model can propose."""
    for name in ("data.adj", "data.adv", "data.noun", "data.verb"):
        for line in (folder / name).read_text(encoding="utf-8").splitlines():
            if line.startswith(" ") or " | " not in line:
                continue
            facts, gloss = line.split(" | ", 1)
            fields = facts.split()
            lemmas = [fields[4 + 2 * i].split("(")[0].lower() for i in range(int(fields[3], 16))]
            for text in QUOTED.findall(gloss):
                found = words(text)
                lowers = [word.text.lower() for word in found]
                for lemma in lemmas:
                    mates = frozenset(lemmas) & known - {lemma}
                    if held_word(lemma) and lemma in known and lowers.count(lemma) == 1 and mates and len(lowers) >= 4:
                        yield Task(text, lowers.index(lemma), lemma, mates)


def judge(filler: Filler, tasks: Sequence[Task]) -> dict[str, dict[float, dict[str, float]]]:
    """For the forms and every blend: the share of tasks with a mate among the first candidates, and how they fit.

    The fit is their mean log probability in the plain form, which does not see the word that is replaced.
    """
    found = [words(task.text) for task in tasks]
    rows: dict[str, list[Any]] = {}
    for form in FORMS:
        pair = form != "plain"
        gaps = []
        for task, some in zip(tasks, found, strict=True):
            shared = masked_together(some, WINDOW) if form == "together" else None
            gaps += filler.gaps(task.text, some, [task.position], WINDOW, pair, shared)
        rows[form] = filler.scores(gaps, pair)
    near = filler.cosines(gaps)
    known = filler.vocabulary.words
    places = {word: place for place, word in enumerate(known)}
    judged: dict[str, dict[float, dict[str, float]]] = {}
    for form, blend in [(form, blend) for form in rows for blend in BLENDS] + [("neighbours", 1.0)]:
        mates, fits = [], []
        for task, plain, row, cosine in zip(tasks, rows["plain"], rows.get(form, rows["plain"]), near, strict=True):
            scores = (0.0 if form == "neighbours" else 1.0) * row.astype(np.float64) + blend * cosine
            first = Masked(k=TOP).ranked(known, task.word, scores)
            mates.append(bool(task.mates & set(first)))
            fits.append(np.mean([plain[places[word]] for word in first]))
        share, fit = round(float(np.mean(mates)), 4), round(float(np.mean(fits)), 3)
        judged.setdefault(form, {})[blend] = {"mates": share, "fit": fit}
    return judged


def measure_mates(filler: Filler, most: int) -> dict[str, Any]:
    known = frozenset(word for word in filler.vocabulary.words if word == word.lower())
    tasks = list(read_tasks(fetch("wordnet"), known))
    mixed = [tasks[place] for place in np.random.default_rng(0).permutation(len(tasks)).tolist()]
    # Words, not sentences, are divided, so that nothing is chosen on a word that is reported.
    halves = [[t for t in mixed if zlib.crc32(t.word.encode()) // HELD_WORD % 2 == half][:most] for half in (0, 1)]
    chosen_on, reported = (judge(filler, half) for half in halves)
    best = {form: max(chosen_on[form], key=lambda w: chosen_on[form][w]["mates"]) for form in FORMS}
    sizes = {"chosen_on": len(halves[0]), "reported": len(halves[1])}
    return {"tasks": sizes, "top": TOP, "best": best, "chosen_on": chosen_on, "reported": reported}


def measure_shared(texts: Sequence[Example]) -> dict[str, Any]:
    """Words masked alone and together in the pair form: how many have a WordNet synonym among the first candidates (of
    those with any), and how many of these candidates both forms share."""
    known = frozenset(load_filler(None).vocabulary.words)
    grids: dict[str, list[Any]] = {
        form: Space(Masked(k=TOP, together=form == "together"), (StopWords(),))(texts) for form in FORMS[1:]
    }
    hits: dict[str, list[bool]] = {form: [] for form in grids}
    common = []
    for pair, together in zip(*grids.values(), strict=True):
        slots = [(one.candidates, two.candidates) for one, two in zip(pair.slots, together.slots, strict=True)]
        lowers = [word.lower() for word in pair.slot_words]
        field = Field(0, "", [Word(0, len(word), word) for word in lowers], ())
        for own, synonyms in zip(slots, WordNet(pos=False)(field, range(len(lowers))), strict=True):
            common.append(len(set(own[0]) & set(own[1])) / TOP)
            if known & set(synonyms):
                for form, found in zip(grids, own, strict=True):
                    hits[form].append(any(word.lower() in synonyms for word in found))
    shares = {form: round(float(np.mean(some)), 4) for form, some in hits.items()}
    return {"texts": len(texts), "words": len(common), "synonym": shares, "common": round(float(np.mean(common)), 4)}


def measure_time(source: Masked, n: int) -> dict[str, Any]:
    """Texts and words a second, all cores, the model loaded and nothing remembered."""
    rows = HELD_OUT.read_text(encoding="utf-8").splitlines()[:n]
    examples = [Example(str(i), (line.split("\t")[1],), 0) for i, line in enumerate(rows)]
    space = Space(source, (StopWords(),))
    space(examples[:1])
    start = time.perf_counter()
    slots = sum(len(grid.sizes) for grid in space(examples[1:]))
    seconds = time.perf_counter() - start
    return {"texts": n - 1, "words": slots, "seconds": round(seconds, 2), "ms_a_word": round(1000 * seconds / slots, 2)}


def untrained() -> Filler:
    """MiniLM's body and its own embeddings as decoder, without a head: the starting point."""
    import torch
    from transformers import AutoTokenizer

    model = bare()
    model.cls.predictions.transform = torch.nn.Identity()
    return Filler(model, AutoTokenizer.from_pretrained(str(fetch("minilm")), local_files_only=True))


def show_examples(k: int = 8) -> None:
    for text in SHOWN:
        print(text)
        for pair in (False, True):
            grid: Any = Space(Masked(pair=pair, k=k, together=pair), (StopWords(),))([Example("shown", (text,), 0)])[0]
            for word, found in zip(grid.slot_words, grid.candidates, strict=True):
                print(f"  {'pair ' if pair else 'plain'} {word:12} {', '.join(found)}")


def show(record: Mapping[str, Any]) -> None:
    for model, kinds in record["accuracy"].items():
        for kind, forms in kinds.items():
            for form, row in forms.items():
                shares = " / ".join(f"{row[f'top_{top}']:6.1%}" for top in TOPS)
                print(f"{model:10} {kind:10} {form:5} top 1/10/50 {shares} of {row['words']} words")
    mates = record["mates"]
    for form, blends in mates["reported"].items():
        for blend, row in blends.items():
            chosen = " (best on the other half)" if mates["best"].get(form) == blend else ""
            print(f"{form:10} blend {blend:4g}: a mate in {row['mates']:.1%}, fit {row['fit']:.2f}{chosen}")
    for form, share in record["shared"]["synonym"].items():
        print(f"{form:10} a WordNet synonym in {share:.1%} of the words of long reviews")


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m scrimp.benchmarks.masked",
        description="Measure the embedded masked-word model: accuracy on unseen text, synonyms in context, time.",
        epilog="A model trained with --rank 0 (the head alone) can be measured beside it with --head.",
    )
    parser.add_argument("--show", action="store_true", help="print candidates for ten sentences in both forms, and stop")
    parser.add_argument("--head", type=Path, metavar="FILE", help="weights of a run of train_masked with --rank 0")
    parser.add_argument("--other", type=Path, metavar="FILE", help="a text file (or .gz) of other prose, a passage a line")
    parser.add_argument("--tasks", type=int, default=600, help="example sentences in each half (default: %(default)s)")
    parser.add_argument("--out", type=Path, default=RECORD, metavar="FILE", help="the record (default: %(default)s)")
    args = parser.parse_args(argv)
    if args.show:
        show_examples()
        return 0
    held = {kind: texts[:HELD] for kind, texts in read_texts().held.items()}
    if args.other:
        held[args.other.name.split(".")[0]] = read_other(args.other)
    filler = load_filler(None)
    models = {"untrained": untrained(), "embedded": filler}
    if args.head:
        models["head"] = load_filler(str(args.head))
    weights = {"bytes": EMBEDDED.stat().st_size, "vocabulary": len(filler.vocabulary.words)}
    record = {
        "weights": weights,
        "accuracy": kept(args.out, weights) | {name: table(model, held) for name, model in models.items()},
        "mates": measure_mates(filler, args.tasks) | {"default": BLEND},
        "shared": measure_shared(long_reviews(SHARED)),
        "time": {
            "pair": measure_time(Masked(), 40),
            "together": measure_time(Masked(together=True), 40),
            "plain": measure_time(Masked(pair=False), 40),
        },
        "python": platform.python_version(),
    }
    args.out.parent.mkdir(parents=True, exist_ok=True)
    args.out.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    show(record)
    print(f"wrote {args.out}")
    return 0


def kept(file: Path, weights: Mapping[str, int]) -> dict[str, Any]:
    """The accuracies of an earlier record of the same weights: the head alone takes a training of its own to measure."""
    earlier = json.loads(file.read_text(encoding="utf-8")) if file.is_file() else {}
    found: dict[str, Any] = earlier["accuracy"] if earlier.get("weights") == weights else {}
    return found


def read_other(file: Path) -> list[str]:
    """Passages of at least 20 words, cut to 60, evenly spread over the file."""
    raw = file.read_bytes()
    text = (
        (gzip.decompress(raw) if raw[:2] == b"\x1f\x8b" else raw).decode("utf-8").replace("<unk>", "").replace(" @-@ ", "-")
    )
    lines = [line.split() for line in text.splitlines() if "=" not in line]
    passages = [" ".join(line[:60]) for line in lines if len(line) >= 20]
    return passages[:: max(1, len(passages) // HELD)][:HELD]


if __name__ == "__main__":
    sys.exit(main())
