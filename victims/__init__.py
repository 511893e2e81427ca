"""Models under test: any callable, a file, an endpoint, a trained directory, other frameworks, and two that come ready."""

from __future__ import annotations

import difflib
import hashlib
import importlib
import importlib.util
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any, cast

from ..attacks.types import Gives, Victim
from .chat import ChatVictim
from .endpoints import endpoint_victim, load_endpoint
from .frameworks import from_keras, from_onnx, from_sklearn, from_spacy, imdb_classifier
from .http import HttpVictim
from .limits import Money
from .saved import load
from .transformer import from_transformer
from .transport import Endpoint
from .wordcnn import HELD_OUT, WordCNN, load_wordcnn
from .wrap import LabelsOnly, VictimError, Wrapped, labels_only, softmax, wrap
from .wrappers import cached, noisy, rate_limited, rounded_scores, top_k_scores

__all__ = [
    "HELD_OUT",
    "VICTIMS",
    "ChatVictim",
    "Endpoint",
    "HttpVictim",
    "LabelsOnly",
    "Money",
    "VictimError",
    "WordCNN",
    "Wrapped",
    "cached",
    "endpoint_victim",
    "from_keras",
    "from_onnx",
    "from_sklearn",
    "from_spacy",
    "from_transformer",
    "imdb_classifier",
    "labels_only",
    "load",
    "load_endpoint",
    "load_victim",
    "load_wordcnn",
    "noisy",
    "rate_limited",
    "rounded_scores",
    "softmax",
    "top_k_scores",
    "wrap",
]

VICTIMS: dict[str, tuple[Callable[[], Victim], str]] = {
    "wordcnn-mr": (load_wordcnn, "word CNN for one-sentence film reviews (Rotten Tomatoes), in the package"),
    "imdb-spacy": (imdb_classifier, "bag of words for long film reviews (IMDB), by others; fetched, 20 MB"),
}
HUB = "hf:"  # before the name of a Hugging Face model
FORMS = (
    "path/to/file.py:function or module:function, a directory from `scrimp train` or of a Hugging Face model, hf:NAME, or "
    "endpoint.json for one behind HTTP"
)


def load_victim(spec: str, labels: Sequence[str] = (), gives: Gives | None = None, **how: Any) -> Victim:
    """A victim by its registered name, from `path/to/file.py:function` or `module:function`, from a directory that
    `scrimp train` wrote or that holds a Hugging Face model, from `hf:NAME`, or from `endpoint.json`.

    The function takes a list of texts and returns scores or labels, one row per text. An object that is a victim
    already (it has a name, gives and labels) is taken as it is. `how` (device, precision) is for a Hugging Face model.
    """
    if how and not (spec.startswith(HUB) or Path(spec).is_dir()):
        raise VictimError(f"{spec} is no Hugging Face model, so it takes no {' and no '.join(how)}; leave it out")
    if spec in VICTIMS:
        return as_it_is(VICTIMS[spec][0](), labels, gives)
    if spec.endswith(".json"):
        return as_it_is(load_endpoint(spec), labels, gives)
    if spec.startswith(HUB):
        return as_it_is(from_transformer(spec.removeprefix(HUB), labels=labels, **how), (), gives)
    if Path(spec).is_dir():
        return as_it_is(load(spec, **how), labels, gives)
    where, colon, attribute = spec.rpartition(":")
    if not (colon and where and attribute):
        near = difflib.get_close_matches(spec, VICTIMS, n=3, cutoff=0.4)
        hint = f"did you mean {' or '.join(near)}?" if near else f"known: {', '.join(VICTIMS)}."
        raise VictimError(f"no victim is called {spec!r}; {hint} A victim of your own is {FORMS}")
    module, stem = (load_file(Path(where)), Path(where).stem) if where.endswith(".py") else (load_module(where), where)
    if not hasattr(module, attribute):
        names = [name for name in vars(module) if not name.startswith("_")]
        near = difflib.get_close_matches(attribute, names, n=3)
        hint = f"did you mean {' or '.join(near)}?" if near else f"it has: {', '.join(names) or 'nothing'}"
        raise VictimError(f"{where} has no {attribute!r}; {hint}")
    found = getattr(module, attribute)
    if isinstance(found, type):
        raise VictimError(f"{spec} is a class; name an instance of it, or a function from a list of texts to scores")
    if all(hasattr(found, part) for part in ("name", "gives", "labels")) and callable(found):
        return as_it_is(cast("Victim", found), labels, gives)
    if not callable(found):
        raise VictimError(f"{spec} is {found!r:.60}, not a function; a victim takes a list of texts and returns scores")
    return wrap(found, f"{stem}:{attribute}@{revision(module)}", labels, gives)


def as_it_is(victim: Victim, labels: Sequence[str], gives: Gives | None) -> Victim:
    """The victim, after a look at what the caller believes about it."""
    if labels and tuple(labels) != tuple(victim.labels):
        raise VictimError(
            f"{victim.name} has the labels {list(victim.labels)}, but {list(labels)} were given; leave labels out"
        )
    if gives == "label" and victim.gives == "scores":
        return labels_only(victim)
    if gives is not None and gives != victim.gives:
        raise VictimError(f'{victim.name} gives "{victim.gives}", but "{gives}" was asked for; leave gives out')
    return victim


def load_file(path: Path) -> ModuleType:
    if not path.is_file():
        raise VictimError(f"{path} does not exist; a victim of your own is {FORMS}")
    name = f"scrimp_victim_{path.stem}_{hashlib.sha256(str(path.resolve()).encode()).hexdigest()[:8]}"
    made = importlib.util.spec_from_file_location(name, path)
    if made is None or made.loader is None:
        raise VictimError(f"{path} cannot be loaded as Python; a victim of your own is {FORMS}")
    module = importlib.util.module_from_spec(made)
    sys.modules[name] = module  # dataclasses and pickle look a class up by its module
    sys.path.insert(0, str(path.resolve().parent))  # as python path/to/file.py would
    try:
        made.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    finally:
        sys.path.remove(str(path.resolve().parent))
    return module


def load_module(name: str) -> ModuleType:
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is None or not (name == error.name or name.startswith(error.name + ".")):
            raise  # the module is there, and misses something itself
        raise VictimError(
            f"no module {name!r} (looked in sys.path); a victim of your own is {FORMS}, and a file needs its .py"
        ) from error


def revision(module: ModuleType) -> str:
    """Eight digits that change with the file, or "built-in"."""
    file = getattr(module, "__file__", None)
    return hashlib.sha256(Path(file).read_bytes()).hexdigest()[:8] if file else "built-in"
