"""Hugging Face models that classify, rate or choose, by path or by name; weights are read from safetensors only."""

from __future__ import annotations

import hashlib
import os
import warnings
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from ..attacks.types import Floats, Gives, Text
from .learning import Ints
from .wrap import VictimError

if TYPE_CHECKING:
    import torch

Precision = Literal["float32", "bfloat16", "int8"]
PRECISIONS = ("float32", "bfloat16", "int8")
DIGITS = 5  # of scores in batches: what else is in a batch moves the seventh
TOGETHER = 32  # texts in a batch on anything but a processor
MOST_FIELDS = 99
STEP = 8  # texts are padded to the next multiple of it, in word pieces, where company must not matter
ROWS = (8, 4, 2, 1)  # texts of one padded length that go through together, where company must not matter
LONGEST = 100_000  # a tokenizer that knows no length says a very large number


@dataclass(frozen=True)
class Transformer:
    """A victim from a model and its tokenizer; made by from_transformer(...).

    With batch=1 no score depends on what else is asked, to the last bit. A text is padded to a length that follows from its
    own; texts of one padded length go through together, on one thread, where their scores were found to be the very bits
    that each has alone: whether that holds depends on the processor and on the shape, so that every shape is tried when it
    first comes up, and a shape that fails is never used. Larger batches are sorted by length and padded to their longest
    text; scores then differ in the seventh digit with the company a text is in, are rounded to five, and very rarely differ
    in the last of them.
    """

    model: Any
    tokenizer: Any
    name: str
    gives: Gives
    labels: tuple[str, ...]
    fields: int  # of a text; 0: one or two, or for a model that chooses, three or more
    length: int
    chooses: bool
    choices: int  # fields that are choices, at the end of a text; 0: all but the first
    batch: int
    device: str
    sort: bool = True
    trained_on: tuple[str, ...] = ()
    together: int = 0  # with batch=1: the longest padded text that may go through with others; 0: none
    shapes: dict[tuple[int, int], bool] = field(default_factory=dict, compare=False)  # (texts, pieces) that may, or not

    def __call__(self, texts: Sequence[Text]) -> list[NDArray[Any]]:
        least, most = self._bounds()
        if wrong := next((text for text in texts if not least <= len(text) <= most), None):
            raise VictimError(
                f"{self.name} reads texts of {least} to {most} fields, got {len(wrong)}: {wrong!r:.60}; a model that chooses "
                "reads a text and then its choices, others a text or a pair"
            )
        pieces = [self.pieces(text) for text in texts]
        longest = np.array([max(len(part["input_ids"]) for part in parts) for parts in pieces], np.int64)
        groups = self._alike(longest) if self.together and self.batch == 1 else self._batches(longest)
        found: list[NDArray[Any]] = [np.empty(0)] * len(texts)
        for group, rows in zip(groups, self._replies([[pieces[at] for at in group] for group in groups]), strict=True):
            for at, row in zip(group, rows, strict=True):
                found[at] = row
        return found

    def _batches(self, longest: Ints) -> list[list[int]]:
        order = np.argsort(longest, kind="stable") if self.sort and self.batch > 1 else np.arange(len(longest))
        return [order[at : at + self.batch].tolist() for at in range(0, len(order), self.batch)]

    def _alike(self, longest: Ints) -> list[list[int]]:
        """Places of texts that are padded to one length, a few at a time."""
        groups = []
        padded = widened(longest)
        for width in np.unique(padded).tolist():
            places = np.flatnonzero(padded == width).tolist()
            while places:
                size = next(size for size in ROWS if size <= len(places)) if width <= self.together else 1
                groups.append(places[:size])
                places = places[size:]
        return groups

    def _bounds(self) -> tuple[int, int]:
        if self.fields:
            return self.fields, self.fields
        return ((self.choices or 2) + 1, MOST_FIELDS) if self.chooses else (1, 2)

    def pieces(self, text: Text) -> list[dict[str, list[int]]]:
        """What the model reads of a text: one sequence, or one for each choice. A lone surrogate cannot be encoded."""
        parts = [part.encode("utf-8", "replace").decode("utf-8") for part in text]
        pairs = [parts]
        if self.chooses:
            first = len(parts) - self.choices if self.choices else 1
            pairs = [[" ".join(parts[:first]), choice] for choice in parts[first:]]
        return [dict(self.tokenizer(*pair, truncation=True, max_length=self.length)) for pair in pairs]

    def _replies(self, groups: Sequence[list[list[dict[str, list[int]]]]]) -> list[Floats]:
        import torch

        if self.device != "cpu" or self.batch > 1:
            return [self._reply(group) for group in groups]
        with ThreadPoolExecutor(min(8, os.cpu_count() or 1), initializer=torch.set_num_threads, initargs=(1,)) as pool:
            return list(pool.map(self._exact if self.together else self._reply, groups))

    def _exact(self, group: list[list[dict[str, list[int]]]]) -> Floats:
        """What each text scores alone, had at once where that is known to be the same."""
        width = int(widened(np.array([len(group[0][0]["input_ids"])]))[0])
        if width > self.together:
            return self._reply(group)
        shape = (len(group), width)
        if len(group) > 1 and self.shapes.get(shape):
            return self._reply(group, width)
        alone: Floats = np.concatenate([self._reply([parts], width) for parts in group])
        if len(group) > 1 and shape not in self.shapes:
            self.shapes[shape] = self._reply(group, width).tobytes() == alone.tobytes()
        return alone

    def _reply(self, group: list[list[dict[str, list[int]]]], width: int = 0) -> Floats:
        import torch

        flat = [sequence for parts in group for sequence in parts]
        given = {key: tensor.to(self.device) for key, tensor in stack(flat, self.tokenizer, width).items()}
        if self.chooses:
            if len({len(parts) for parts in group}) > 1:
                raise VictimError(f"{self.name}: texts with different numbers of choices cannot share a batch; use batch=1")
            given = {key: tensor.view(len(group), len(group[0]), -1) for key, tensor in given.items()}
        with torch.inference_mode():
            logits = self.model(**given).logits.double().cpu().numpy()
        if self.gives == "value":
            values: Floats = logits[:, 0]
            return values if self.batch == 1 else np.round(values, DIGITS)
        odds = np.exp(logits - logits.max(1, keepdims=True))
        scores: Floats = odds / odds.sum(1, keepdims=True)
        return scores if self.batch == 1 else np.round(scores, DIGITS)


def widened(lengths: Ints) -> Ints:
    """The lengths to which texts are padded: always by one at least, because a batch without any padding is computed in
    another way, and to 16 at least, because few rows in a product are added up in another order."""
    return np.maximum(16, (lengths // STEP + 1) * STEP)


def steady(network: Any) -> Any:
    """The network with its layers for whole texts, such as the last one, given four rows at least: a product of one row
    is added up in another order than the same row among others."""
    import torch

    class Steady(torch.nn.Linear):
        def forward(self, rows: torch.Tensor) -> torch.Tensor:
            if rows.dim() != 2 or len(rows) >= 4:
                return super().forward(rows)
            return super().forward(torch.cat([rows, rows.new_zeros(4 - len(rows), rows.shape[1])]))[: len(rows)]

    for part in network.modules():
        if type(part) is torch.nn.Linear:
            part.__class__ = Steady
    return network


def stack(sequences: Sequence[dict[str, list[int]]], tokenizer: Any, width: int = 0) -> dict[str, torch.Tensor]:
    """Sequences padded to the longest of them, and to `width` at least."""
    import torch

    longest = max(width, *(len(sequence["input_ids"]) for sequence in sequences))
    filler = {"input_ids": tokenizer.pad_token_id or 0}
    left = tokenizer.padding_side == "left"
    given = {}
    for key in sequences[0]:
        given[key] = torch.full((len(sequences), longest), filler.get(key, 0))
        for row, sequence in zip(given[key], sequences, strict=True):
            own = torch.tensor(sequence[key])
            start = longest - len(own) if left else 0
            row[start : start + len(own)] = own
    return given


@dataclass(frozen=True)
class PieceRows:
    """Texts as word pieces, for training."""

    pieces: Sequence[dict[str, list[int]]]
    tokenizer: Any

    def __len__(self) -> int:
        return len(self.pieces)

    @property
    def sizes(self) -> Ints:
        return np.array([len(row["input_ids"]) for row in self.pieces])

    def __call__(self, places: Sequence[int], rng: np.random.Generator | None = None) -> tuple[torch.Tensor, ...]:
        given = stack([self.pieces[place] for place in places], self.tokenizer)
        return tuple(given.get(key, given["attention_mask"]) for key in ("input_ids", "attention_mask", "token_type_ids"))


def from_transformer(
    model: str | Path,
    name: str = "",
    labels: Sequence[str] = (),
    fields: int = 0,
    choices: int = 0,
    length: int | None = None,
    batch: int | None = None,
    device: str = "cpu",
    precision: Precision = "float32",
) -> Transformer:
    """A victim from a directory or the name of a Hugging Face model, with a head that is trained already.

    One number out makes it a victim of values. A multiple-choice model reads texts whose last `choices` fields are the
    choices (all but the first when not given) and whose other fields are joined by a blank. `fields` is how many a text
    has, where that should be checked. `length` is the most word
    pieces read; `batch` is 1 on a processor and 32 elsewhere unless given (see Transformer). int8 quantises the linear
    layers, and needs a processor and batch=1, because the step is chosen anew for each batch.
    """
    from transformers import AutoConfig, AutoTokenizer

    local = Path(model).is_dir()
    batch = batch or (1 if device == "cpu" else TOGETHER)
    check(str(model), precision, batch, device)
    try:
        config: Any = AutoConfig.from_pretrained(str(model), local_files_only=local)
        tokenizer: Any = AutoTokenizer.from_pretrained(str(model), local_files_only=local)
    except (OSError, ValueError) as error:
        raise VictimError(f"{model} cannot be read as a Hugging Face model: {str(error).splitlines()[0]}") from error
    chooses = any(kind.endswith("ForMultipleChoice") for kind in config.architectures or ())
    if getattr(config, "problem_type", None) == "multi_label_classification":
        raise VictimError(
            f"{model} scores every label on its own, so they are no classes; wrap one label with wrap(...) as [1 - p, p]"
        )
    network = read(str(model), chooses, local).to(device).eval()
    value = not chooses and config.num_labels == 1
    known = tuple(config.id2label[number] for number in range(config.num_labels)) if not (value or chooses) else ()
    generic = all(label == f"LABEL_{number}" for number, label in enumerate(known))
    if labels and known and len(labels) != len(known):
        raise VictimError(f"{len(labels)} labels {list(labels)} for {len(known)} classes {list(known)} of {model}")
    most = min(tokenizer.model_max_length, getattr(config, "max_position_embeddings", LONGEST), LONGEST)
    if length is not None and not 3 <= length <= most:
        raise VictimError(f"length={length} for {model}, which reads 3 to {most} word pieces")
    # Not in bfloat16: its few digits hide most, but not all, of a difference, so that trying shows nothing.
    pads = tokenizer.padding_side == "right" and tokenizer.pad_token_id is not None
    together = pads and config.pad_token_id == tokenizer.pad_token_id and device == "cpu" and precision == "float32"
    return Transformer(
        model=steady(network) if together else at_precision(network, precision),
        tokenizer=tokenizer,
        name=(name or Path(model).name) + f"@{revision(network)}" + ("" if precision == "float32" else f"-{precision}"),
        gives="value" if value else "scores",
        labels=tuple(labels) or (() if generic else known),
        fields=fields,
        length=length or most,
        chooses=chooses,
        choices=choices,
        batch=batch,
        device=device,
        together=most if together and not chooses else 0,
    )


def check(model: str, precision: str, batch: int, device: str) -> None:
    if precision not in PRECISIONS:
        raise VictimError(f"precision={precision!r} for {model}; it must be one of {', '.join(PRECISIONS)}")
    if batch < 1:
        raise VictimError(f"batch={batch} for {model}; it must be at least 1")
    if precision == "int8" and (batch > 1 or device != "cpu"):
        raise VictimError(f"int8 with batch={batch} on {device} for {model}; it needs batch=1 on the processor")


def read(model: str, chooses: bool, local: bool) -> Any:
    """The network, refused where its head is not in the file: it would answer at random."""
    from transformers import AutoModelForMultipleChoice, AutoModelForSequenceClassification

    kind = AutoModelForMultipleChoice if chooses else AutoModelForSequenceClassification
    if local:
        from .saved import check_weights

        check_weights(Path(model))
    with quiet():
        try:
            network, said = kind.from_pretrained(
                model, local_files_only=local, use_safetensors=True, output_loading_info=True, ignore_mismatched_sizes=True
            )
        except Exception as error:  # safetensors, OSError, ValueError: whatever the library raises for a damaged file
            raise VictimError(
                f"the weights of {model} cannot be read as safetensors ({str(error).splitlines()[0]:.100}); pickles are not "
                "read: write them anew with model.save_pretrained(DIR)"
            ) from error
    if odd := sorted(map(str, said["mismatched_keys"])):
        raise VictimError(f"the weights of {model} have another shape than config.json says: {odd[0]:.120}")
    if missing := sorted(said["missing_keys"]):
        raise VictimError(
            f"{model} has no trained {', '.join(missing)[:80]}, so it would answer at random; fine-tune it with: "
            f"scrimp train --model transformer --base {model}"
        )
    return network


@contextmanager
def quiet() -> Iterator[None]:
    """Without the library's bars and reports: what matters in them is said here."""
    from transformers.utils import logging

    loud, bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        logging.set_verbosity(loud)
        if bars:
            logging.enable_progress_bar()


def at_precision(network: Any, precision: str) -> Any:
    import torch

    if precision == "bfloat16":
        return network.to(torch.bfloat16)
    if precision == "int8":
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # deprecated, but its successor is a package of its own
            return torch.ao.quantization.quantize_dynamic(network, {torch.nn.Linear}, torch.qint8)  # type: ignore[no-untyped-call]
    return network


def revision(network: Any) -> str:
    """Eight digits that change with the weights."""
    digest = hashlib.sha256()
    for name, tensor in sorted(network.state_dict().items()):
        digest.update(name.encode() + tensor.detach().cpu().float().numpy().tobytes())
    return digest.hexdigest()[:8]
