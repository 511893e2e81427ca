"""Victims from scikit-learn, spaCy, ONNX Runtime and Keras, and the packaged IMDB classifier."""

from __future__ import annotations

import difflib
import hashlib
import warnings
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..attacks.types import Floats
from ..resources import fetch
from .wrap import VictimError, Wrapped, softmax, wrap

BATCH = 256  # texts that spaCy reads at a time
DIGITS = 5  # of scores in batches


def from_sklearn(pipeline: Any, labels: Sequence[str] = (), name: str = "") -> Wrapped:
    """A fitted pipeline that reads raw strings: scores if it has predict_proba, else labels.

    `labels` names the classes in the order of `pipeline.classes_`. The name should carry a revision, because it is
    part of every cache key; without one it is the class of the last step.
    """
    classes = getattr(pipeline, "classes_", None)
    if classes is None:
        raise VictimError(
            f"{type(pipeline).__name__} has no classes_; call fit first, and give a classifier that reads raw strings "
            "(a pipeline that starts with a vectoriser)"
        )
    # A class numbered 3 and 7 is called "3" and "7"; classes 0, 1, 2 have no better name than their number.
    counted = [str(known) for known in classes] == [str(number) for number in range(len(classes))]
    names = tuple(labels) or (() if counted else tuple(str(known) for known in classes))
    if names and len(names) != len(classes):
        raise VictimError(
            f"{len(names)} labels {list(names)} for {len(classes)} classes {list(classes)}; name every class, in the "
            "order of classes_"
        )
    last = pipeline.steps[-1][1] if hasattr(pipeline, "steps") else pipeline
    name = name or f"sklearn-{type(last).__name__}"
    if hasattr(pipeline, "predict_proba"):
        return wrap(pipeline.predict_proba, name, names, "scores")
    numbers = {known: number for number, known in enumerate(classes)}

    def predict(texts: list[str]) -> NDArray[np.int64]:
        return np.array([numbers[known] for known in pipeline.predict(texts)], np.int64)

    return wrap(predict, name, names, "label")


def from_spacy(nlp: Any, labels: Sequence[str] | None = None, name: str = "") -> Wrapped:
    """A spaCy pipeline, or the path of one, with an exclusive text classifier: its scores in sorted label order.

    `labels` gives another order.
    """
    if isinstance(nlp, (str, Path)):
        nlp = load_pipeline(Path(nlp))
    if "textcat" not in nlp.pipe_names:
        hint = (
            "textcat_multilabel scores each label on its own, so they are no classes; wrap one label with wrap(...) as "
            "[1 - p, p]"
            if "textcat_multilabel" in nlp.pipe_names
            else 'give a pipeline with a trained "textcat"'
        )
        raise VictimError(f'the spaCy pipeline has {list(nlp.pipe_names)}, but no "textcat"; {hint}')
    known = sorted(nlp.get_pipe("textcat").labels)
    order = known if labels is None else list(labels)
    if sorted(order) != known:
        odd = next((label for label in order if label not in known), None)
        near = difflib.get_close_matches(str(odd), known, n=1, cutoff=0.0)
        hint = f"{odd!r} is not one of them, did you mean {near[0]!r}?" if odd and near else "name each of them once"
        raise VictimError(f"labels {order} for a spaCy classifier of {known}; {hint}")

    def scores(texts: list[str]) -> Floats:
        # Not rounded: bag of words, CNN and ensemble gave the same bits alone and in batches of 2 to 200 (spaCy 3.8, CPU).
        # The full stop at the end of each batch is there because spaCy scores an empty text 0 and 0 in a batch that has
        # no token at all, and as the classifier's bias says in any other.
        rows = []
        for at in range(0, len(texts), BATCH):
            part = texts[at : at + BATCH]
            docs = list(nlp.pipe([*part, "."], batch_size=BATCH + 1))[:-1]
            rows += [[doc.cats[label] for label in order] for doc in docs]
        return np.array(rows, np.float64)

    meta = nlp.meta
    return wrap(scores, name or f"spacy-{meta.get('name', 'pipeline')}@{meta.get('version', '0')}", order, "scores")


def load_pipeline(path: Path) -> Any:
    import spacy

    if not (path / "config.cfg").is_file():
        raise VictimError(f"{path} is no spaCy pipeline: it has no config.cfg; give the directory that nlp.to_disk wrote")
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=r"\[W095\]")  # trained with another version of spaCy
        return spacy.load(path)


def from_onnx(
    session: Any,
    prepare: Callable[[list[Any]], Mapping[str, NDArray[Any]]],
    labels: Sequence[str] = (),
    name: str = "",
    *,
    logits: bool = False,
    output: str | None = None,
    fields: int = 1,
    batch: int = 1,
) -> Wrapped:
    """An ONNX model: an onnxruntime InferenceSession or the path of a .onnx file.

    `prepare` turns a list of texts into the model's inputs by name, as a tokenizer does. `output` names the scores (the
    first output), `logits` puts them through a softmax. From a path the name carries eight digits of the file; for a
    session give one with a revision. Texts go through one by one, because the same text among others is added up in another
    order; with a larger `batch` scores move in the seventh digit with the company a text is in, and are rounded to five.
    """
    if isinstance(session, (str, Path)):
        import onnxruntime

        path = Path(session)
        if not path.is_file():
            raise VictimError(f"{path} does not exist; give a .onnx file or an InferenceSession")
        name = name or f"onnx-{path.stem}@{hashlib.sha256(path.read_bytes()).hexdigest()[:8]}"
        session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    outputs = [known.name for known in session.get_outputs()]
    if output is not None and output not in outputs:
        raise VictimError(f"the ONNX model has no output {output!r}; it has {', '.join(outputs)}")
    wanted, inputs = output or outputs[0], {known.name for known in session.get_inputs()}

    def scores(texts: list[Any]) -> NDArray[Any]:
        made = dict(prepare(texts))
        if made.keys() != inputs:
            raise VictimError(f"prepare made the inputs {sorted(made)}, but the ONNX model takes {sorted(inputs)}")
        return np.asarray(session.run([wanted], made)[0], np.float64)

    made = in_parts(softmax(scores) if logits else scores, batch)
    return wrap(made, name or "onnx-session", labels, "scores", fields)


def from_keras(model: Any, labels: Sequence[str] = (), name: str = "", *, logits: bool = False, batch: int = 1) -> Wrapped:
    """A Keras model that reads raw strings (it starts with a TextVectorization layer), on the TensorFlow backend.

    One sigmoid unit is read as the probability of the second class. `logits` puts several units through a softmax. For
    `batch` see from_onnx.
    """
    import tensorflow as tf  # type: ignore[import-not-found,import-untyped,unused-ignore]

    shape = getattr(model, "input_shape", None)
    column = isinstance(shape, tuple) and len(shape) == 2
    takes = tf.TensorSpec((None, 1) if column else (None,), tf.string)
    graph = tf.function(lambda part: model(part, training=False), input_signature=[takes])  # called eagerly: 40 times slower

    def units(texts: list[str]) -> NDArray[Any]:
        part = tf.constant(texts)
        found = np.asarray(graph(tf.reshape(part, (-1, 1)) if column else part), np.float64)
        one = found.ndim == 1 or found.shape[1] == 1
        return np.column_stack([1 - found.reshape(-1), found.reshape(-1)]) if one and not logits else found

    return wrap(in_parts(softmax(units) if logits else units, batch), name or f"keras-{model.name}", labels, "scores")


def in_parts(scores: Callable[[list[Any]], NDArray[Any]], batch: int) -> Callable[[list[Any]], NDArray[Any]]:
    """The function given `batch` texts at a time; rounded when that is more than one."""
    if batch < 1:
        raise VictimError(f"batch={batch}: at least 1 text goes through at a time")

    def parts(texts: list[Any]) -> NDArray[Any]:
        rows = np.concatenate([scores(texts[at : at + batch]) for at in range(0, len(texts), batch)])
        return rows if batch == 1 else np.round(rows, DIGITS)

    return parts


def imdb_classifier() -> Wrapped:
    """A bag of words for IMDB reviews, trained by others and published in a wheel; 87 % on its test rows."""
    from dataclasses import replace

    victim = from_spacy(fetch("imdb-classifier"), labels=("NEG", "POS"), name="imdb-spacy@2.5.0")
    return replace(victim, labels=("negative", "positive"), trained_on=("imdb",))
