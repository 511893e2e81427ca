"""Train a victim from labelled texts into a directory, with a card that says on what, how, and how well."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..attacks.types import Example, Text, Victim
from ..resources import fetch
from .leakage import leakage
from .learning import Course, Report, WordRows, fit
from .saved import CARD, CONFIG, NETWORKS, WEIGHTS, load, write
from .train import WINDOWS, choose_words, first_vectors, make_network, read_glove, to_tensors
from .wordcnn import EXACT, Ids, tokenise
from .wrap import VictimError

VALID, MOST_VALID = 0.1, 1000  # share of the rows kept for validation, and the most
UNITS = {"wordlstm": 150, "esim": 150, "infersent": 150, "decomposable": 200}
# Of the word LSTM and the models of pairs: usual values, not tuned. MiniLM takes a high rate: it is small.
COURSES = {
    "wordcnn": Course(),
    "wordlstm": Course(rate=1e-3, vector_rate=1e-3, hide=0.1, smooth=0.1, epochs=15),
    "esim": Course(rate=1e-3, vector_rate=1e-3, hide=0.05, smooth=0.0, epochs=10, patience=2),
    "infersent": Course(rate=1e-3, vector_rate=1e-3, hide=0.05, smooth=0.0, epochs=10, patience=2),
    "decomposable": Course(rate=1e-3, vector_rate=1e-3, hide=0.05, smooth=0.0, epochs=20, dropout=0.2, patience=2),
    "transformer": Course(*(3, 2, 32, 1e-4, 0.0, 0.01, 0.1), hide=0.0, smooth=0.0, average=0.0, warm=0.1, clip=1.0, seed=1),
}
LENGTHS = {"transformer": 128}  # word pieces; others read so many words:
LENGTH = 256
Weights = dict[str, NDArray[Any]]


@dataclass(frozen=True)
class Plan:
    """What to train, apart from the course."""

    model: str
    labels: tuple[str, ...] = ()
    rows: int | None = None  # at most, drawn by the seed
    length: int | None = None  # words read of a field, or word pieces of a text; the word CNN, once trained, reads all
    words: int = 22_000  # size of the vocabulary
    units: int | None = None
    base: str = ""  # the transformer to start from; MiniLM when empty
    threads: int = 2  # the order of sums, and so the result, depends on it


@dataclass(frozen=True)
class Parts:
    train: list[Example]
    valid: list[Example]
    classes: int
    fields: int
    repeated: int  # rows left out, because their text came before or stands under two labels


def divide(examples: Sequence[Example], plan: Plan, seed: int) -> Parts:
    """Every text once, none under two labels; as many rows as asked for; one in ten for validation."""
    targets = [example.target for example in examples]
    if odd := next((target for target in targets if not isinstance(target, int) or target < 0), None):
        raise VictimError(f"label {odd!r} is not a class; classes are whole numbers from 0, or the names in --labels")
    classes = len(plan.labels) or int(max(targets, default=0)) + 1
    if classes > max(2, len(examples)):
        raise VictimError(
            f"label {classes - 1} in {len(examples)} rows; classes are numbered from 0: look at the label column"
        )
    fields = {len(example.text) for example in examples}
    if len(fields) > 1:
        raise VictimError(f"texts of {sorted(fields)} fields; every row must have as many as the others")
    found: dict[Text, dict[int, Example]] = {}
    for example in examples:
        found.setdefault(tuple(" ".join(tokenise(part)) for part in example.text), {}).setdefault(
            int(example.target), example
        )
    kept = [next(iter(same.values())) for same in found.values() if len(same) == 1]
    order = np.random.default_rng(seed).permutation(len(kept))[: plan.rows].tolist()
    count = min(MOST_VALID, max(1, round(VALID * len(order))))
    valid, train = [kept[at] for at in order[:count]], [kept[at] for at in order[count:]]
    seen = sorted({int(example.target) for example in train})
    if len(seen) < 2:
        name = plan.labels[seen[0]] if seen and plan.labels else str(*seen)
        raise VictimError(
            f"{len(train)} training rows of {len(seen)} class(es) ({name or 'none'}); a classifier needs rows of at least "
            "two classes: look at the label column"
        )
    return Parts(train, valid, classes, fields.pop(), len(examples) - len(kept))


def train(
    examples: Sequence[Example],
    out: str | Path,
    plan: Plan,
    course: Course,
    test: Sequence[Example] = (),
    facts: dict[str, Any] | None = None,
    report: Report = lambda done, total, said: None,
) -> dict[str, Any]:
    """Write the model to the directory `out` and return its card. `facts` are added to the card: file, command."""
    import torch

    if plan.model not in COURSES:
        raise VictimError(f"no model is called {plan.model!r}; known: {', '.join(COURSES)}")
    out = Path(out)
    if out.is_dir() and any(out.iterdir()) and not (out / CONFIG).is_file():
        raise VictimError(f"{out} holds other files; give a new directory, or one that holds a trained model")
    parts = divide(examples, plan, course.seed)
    wanted = NETWORKS[plan.model][1] if plan.model in NETWORKS else 1 if plan.model == "wordcnn" else parts.fields
    if parts.fields != wanted:
        others = [name for name, (_, fields) in NETWORKS.items() if fields == parts.fields]
        raise VictimError(
            f"{plan.model} reads {wanted} field(s), but the rows have {parts.fields}; models for them: "
            f"{', '.join([*others, 'transformer'])}"
        )
    if odd := next((example for example in test if len(example.text) != parts.fields), None):
        raise VictimError(
            f"the test rows have {len(odd.text)} field(s), but the training rows {parts.fields}; give rows alike"
        )
    seen = [example.text for example in (*parts.train, *parts.valid)]
    found = leakage(seen, [example.text for example in test]) if test else None
    begun = time.perf_counter()
    torch.manual_seed(course.seed)
    before = torch.get_num_threads()
    torch.set_num_threads(plan.threads)
    try:
        teach = _transformer if plan.model == "transformer" else _words
        epochs = teach(out, plan, course, parts, report)
    finally:
        torch.set_num_threads(before)
    seconds = time.perf_counter() - begun
    victim = load(out)  # scored as it will be used
    card: dict[str, Any] = {
        "name": victim.name,
        "model": plan.model,
        **(facts or {}),
        "labels": list(plan.labels),
        "rows": {"train": len(parts.train), "validation": len(parts.valid), "left_out_as_repeated": parts.repeated},
        "accuracy": {"validation": share_right(victim, parts.valid)},
    }
    if test:
        card["accuracy"]["test"] = share_right(victim, test)
        card["rows"]["test"] = len(test)
        card["leakage"] = found
    card |= {
        "seed": course.seed,
        "options": {key: value for key, value in (asdict(plan) | asdict(course)).items() if key not in ("labels", "seed")},
        "epochs": epochs,
        "minutes": round(seconds / 60, 2),
        "date": datetime.now(UTC).strftime("%Y-%m-%d"),
        "torch": torch.__version__,
    }
    (out / CARD).write_text(json.dumps(card, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    return card


def share_right(victim: Victim, examples: Sequence[Example], together: int = 256) -> float:
    rows = [
        row
        for at in range(0, len(examples), together)
        for row in victim([example.text for example in examples[at : at + together]])
    ]
    return round(float((np.stack(rows).argmax(1) == [example.target for example in examples]).mean()), 4)


def file_facts(path: str | Path) -> dict[str, str]:
    """A file's name and what it held."""
    return {"file": Path(path).name, "sha256": hashlib.sha256(Path(path).read_bytes()).hexdigest()}


def _words(out: Path, plan: Plan, course: Course, parts: Parts, report: Report) -> list[dict[str, float]]:
    """A network over GloVe's vectors."""
    import torch

    glove, known = read_glove(fetch("glove"))
    texts = [(0, " ".join(example.text)) for example in parts.train]
    words = choose_words(texts, glove, plan.words)
    vectors = torch.from_numpy(first_vectors(words, glove, known, course.seed))
    numbers, length = Ids(words), plan.length or LENGTH
    cnn = plan.model == "wordcnn"
    rows, checks = (
        WordRows(
            [tuple(numbers.of(part)[:length] for part in example.text) for example in some],
            shortest=max(WINDOWS) if cnn else 1,
            hide=course.hide,
        )
        for some in (parts.train, parts.valid)
    )
    units = plan.units or UNITS.get(plan.model, 0)
    if cnn:
        network = make_network(vectors, course.dropout, parts.classes)
    else:
        network = NETWORKS[plan.model][0](vectors, parts.classes, course.dropout, units)
    if not course.vector_rate:
        network.vectors.requires_grad_(False)
    gold = np.array([example.target for example in parts.train], np.int64)
    kept, epochs = fit(network, rows, gold, checks, [int(example.target) for example in parts.valid], course, report)
    weights = {name: weight.numpy() for name, weight in kept.items()}
    config = {
        "model": plan.model,
        "name": out.resolve().name,
        "labels": plan.labels,
        "classes": parts.classes,
        "words": words,
    }
    if cnn:
        write(out, config | {"windows": WINDOWS}, exact(to_tensors(weights)))
    else:
        # Half precision on disk: half the size, and nothing to be seen in the scores.
        halves = {name: weight.astype(np.float16) for name, weight in weights.items()}
        write(out, config | {"units": units, "length": length, "width": vectors.shape[1]}, halves)
    return epochs


def exact(tensors: Weights) -> Weights:
    """Filters halved, and the last layer doubled, until the sums of WordCNN are exact: the scores stay the same."""
    longest = np.sqrt((tensors["vectors"].astype(np.float64) ** 2).sum(1).max())
    names = [name for name in tensors if name.startswith("filters")]
    strongest = max(np.sqrt((tensors[name].astype(np.float64) ** 2).sum(1).max()) for name in names)
    factor = 2.0 ** max(0, int(np.ceil(np.log2(max(longest * strongest, 1e-9) / (0.99 * EXACT)))))
    if factor == 1.0:
        return tensors
    scaled = {name: (tensors[name] / factor).astype(tensors[name].dtype) for name in [*names, "bias"]}
    return {**tensors, **scaled, "linear": (tensors["linear"] * factor).astype(np.float32)}


def _transformer(out: Path, plan: Plan, course: Course, parts: Parts, report: Report) -> list[dict[str, float]]:
    """A transformer fine-tuned but for its embeddings, in mixed precision where the processor has it."""
    import torch
    from transformers import AutoModelForSequenceClassification, AutoTokenizer

    from .transformer import PieceRows, Transformer, quiet

    base = plan.base or str(fetch("minilm"))
    local, length = Path(base).is_dir(), plan.length or LENGTHS["transformer"]
    names = dict(enumerate(plan.labels)) or {number: f"LABEL_{number}" for number in range(parts.classes)}
    tokenizer: Any = AutoTokenizer.from_pretrained(base, local_files_only=local)
    with quiet():  # it would report the head as missing, which is what is trained here
        model: Any = AutoModelForSequenceClassification.from_pretrained(
            base,
            local_files_only=local,
            use_safetensors=True,
            num_labels=parts.classes,
            id2label=names,
            label2id={name: number for number, name in names.items()},
            hidden_dropout_prob=course.dropout,
            attention_probs_dropout_prob=0.0,
            attn_implementation="eager",  # its backward pass is several times as fast on a processor
            ignore_mismatched_sizes=True,
        )
    model.get_input_embeddings().requires_grad_(False)
    reader = Transformer(model, tokenizer, "", "scores", (), parts.fields, length, False, 0, 1, "cpu")
    rows, checks = (
        PieceRows([reader.pieces(example.text)[0] for example in some], tokenizer) for some in (parts.train, parts.valid)
    )
    half = bool(torch.ops.mkldnn._is_mkldnn_bf16_supported())
    kinds = "token_type_ids" in rows.pieces[0]

    class Network(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.model = model

        def forward(self, ids: torch.Tensor, seen: torch.Tensor, types: torch.Tensor) -> torch.Tensor:
            given = {"input_ids": ids, "attention_mask": seen} | ({"token_type_ids": types} if kinds else {})
            with torch.autocast("cpu", torch.bfloat16, enabled=half):
                return self.model(**given).logits.float()  # type: ignore[no-any-return]

    gold = np.array([example.target for example in parts.train], np.int64)
    answers = [int(example.target) for example in parts.valid]
    kept, epochs = fit(Network(), rows, gold, checks, answers, course, report)
    model.load_state_dict({name.removeprefix("model."): weight for name, weight in kept.items()})
    out.mkdir(parents=True, exist_ok=True)
    with quiet():
        model.save_pretrained(out)
    tokenizer.save_pretrained(out)
    config = {"model": "transformer", "name": out.resolve().name, "labels": plan.labels, "fields": parts.fields}
    (out / CONFIG).write_text(json.dumps(config | {"length": length}) + "\n", encoding="utf-8")
    if not (out / WEIGHTS).is_file():
        raise VictimError(
            f"{out} has no {WEIGHTS} after training; {base} is written in several files, which is not supported"
        )
    return epochs
