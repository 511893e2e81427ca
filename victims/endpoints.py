"""Endpoints described by a JSON file: with a "prompt" or a "model" it is a chat model, with a "body" any other."""

from __future__ import annotations

import difflib
import json
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

from ..attacks.types import Victim
from .chat import ChatVictim
from .http import HttpVictim
from .limits import Money
from .transport import Endpoint
from .wrap import VictimError

REACHING = {part.name: part for part in fields(Endpoint) if part.name != "pause"}
HTTP = ("body", "reply", "labels", "gives", "texts_per_request", "name")
CHAT = ("model", "labels", "prompt", "system", "max_tokens", "answers", "options", "transcript", "name")
KINDS: dict[str, tuple[type | tuple[type, ...], str]] = {
    "url": (str, "a text"),
    "name": (str, "a text"),
    "method": (str, "a text"),
    "headers": (dict, "an object of texts"),
    "money": (dict, "an object of prices"),
    "ledger": (str, "the name of a file"),
    "transcript": (str, "the name of a file"),
    "reply": (str, "a path such as results.*.scores"),
    "labels": (list, "a list of class names"),
    "gives": (str, '"scores", "label" or "value"'),
    "model": (str, "a text"),
    "prompt": (str, "a text"),
    "system": (str, "a text"),
    "max_tokens": (int, "a whole number"),
    "answers": (dict, "an object of lists"),
    "options": (dict, "an object"),
}


def load_endpoint(path: str | Path) -> Victim:
    """The victim that a JSON file describes. Files it names are looked for beside it."""
    path = Path(path)
    try:
        plain = json.loads(path.read_text("utf-8"))
    except OSError as fault:
        raise VictimError(f"cannot read {path}: {fault.strerror}; give a JSON file that describes an endpoint") from None
    except ValueError as fault:
        raise VictimError(f"{path} is not JSON ({fault}); it must hold one object that describes an endpoint") from None
    if not isinstance(plain, dict):
        raise VictimError(f"{path} holds a {type(plain).__name__}; an endpoint is described by one object")
    try:
        return endpoint_victim(plain, path.resolve().parent)
    except VictimError as fault:
        raise VictimError(f"{path}: {fault}") from None


def endpoint_victim(plain: Mapping[str, Any], folder: Path | None = None) -> Victim:
    """The victim described by the same settings in Python."""
    chat = "prompt" in plain or "model" in plain
    own = CHAT if chat else HTTP
    _check(plain, [*REACHING, *own], ("url", "model", "labels") if chat else ("url", "body", "reply"))
    for name in ("ledger", "transcript"):
        if name in plain:
            plain = dict(plain) | {name: (folder or Path()) / plain[name]}
    settings = {name: value for name, value in plain.items() if name in REACHING}
    endpoint = Endpoint(**settings | {"money": _money(plain.get("money", {}))})
    mine = {name: plain[name] for name in own if name in plain}
    mine["labels"] = tuple(mine.get("labels", ()))
    return ChatVictim(endpoint, **mine) if chat else HttpVictim(endpoint, **mine)


def _check(plain: Mapping[str, Any], known: list[str], needed: tuple[str, ...]) -> None:
    for name, value in plain.items():
        if name not in known:
            near = difflib.get_close_matches(name, known, 1)
            hint = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(sorted(known))}"
            raise VictimError(f"no setting is called {name!r}; {hint}")
        kind, form = KINDS.get(name, (object, ""))
        if not isinstance(value, kind):
            raise VictimError(f"{name} is {value!r:.60}; it must be {form}")
    missing = [name for name in needed if name not in plain]
    if missing:
        raise VictimError(f"{', '.join(missing)} missing; an endpoint needs {', '.join(needed)}")
    if any(not isinstance(label, str) for label in plain.get("labels", ())):
        raise VictimError(f"labels {plain['labels']}: class names are texts, in the order of the scores")


def _money(plain: Mapping[str, Any]) -> Money:
    known = [part.name for part in fields(Money)]
    for name in plain:
        if name not in known:
            raise VictimError(f"money: no setting is called {name!r}; there are {', '.join(known)}")
    return Money(**plain)
