"""A victim behind an HTTP endpoint: a JSON template for the request, a path to the scores or labels in the reply."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

import numpy as np
from numpy.typing import NDArray

from ..attacks.account import Keep, Part
from ..attacks.types import Gives, Text
from .templates import fields_of, fill, groups, misfits
from .transport import Endpoint
from .wrap import VictimError, Wrapped

TEXTS = "{texts}"


@dataclass
class HttpVictim:
    """Texts go where `body` has a place for them, rows come from where `reply` points.

    `body` is any JSON. A string with {text} takes one text, a pair fills {first} and {second}: one text a request. The
    string "{texts}", or {"each": ...} around a template for one text, becomes a list: up to `texts_per_request` of them.
    `reply` is a path of names and numbers joined by dots; * goes through a list: "results.*.scores". It leads to one row
    per text: a list of scores, {"label": score, ...}, Hugging Face dicts, a label or a value.

    `name` is part of every cache key and should carry the model's revision; body, path, labels and kind are added as eight
    digits, and without a name the url too. Keys and prices, rates and tries are no part of it.
    """

    endpoint: Endpoint
    body: Any
    reply: str
    labels: tuple[str, ...] = ()
    gives: Gives = "scores"
    texts_per_request: int = 32
    name: str = ""
    fields: int = field(init=False)  # of a text; 0: any

    def __post_init__(self) -> None:
        self.labels = tuple(self.labels)
        if self.gives not in ("scores", "label", "value"):
            raise VictimError(f'gives {self.gives!r}; it must be "scores", "label" or "value"')
        if isinstance(self.texts_per_request, bool) or not isinstance(self.texts_per_request, int):
            raise VictimError(f"texts_per_request={self.texts_per_request!r}: it must be a whole number")
        if self.texts_per_request < 1:
            raise VictimError(f"texts_per_request={self.texts_per_request}: a request holds at least 1 text")
        if self.endpoint.method == "GET" and not isinstance(self.body, dict):
            raise VictimError("with GET the body is an object of query parameters")
        self._many, self.fields = _places(self.body)
        what = [self.body, self.reply, self.labels, self.gives]
        self.name = named(self.name, self.endpoint, what)

    @property
    def notes(self) -> dict[str, Any]:
        """What this run cost so far."""
        return costs(self.endpoint)

    def __call__(self, texts: Sequence[Text]) -> list[NDArray[Any]]:
        return gathered(self, texts)

    def stream(self, texts: Sequence[Text], keep: Keep) -> None:
        """Hands each reply to `keep` as it comes, or the reason why there is none."""
        odd = misfits(self.name, self.fields, texts)
        if odd:
            keep(odd)
        places = [place for place in range(len(texts)) if place not in odd]
        size = self.texts_per_request if self._many else 1

        def work(group: Sequence[int]) -> Part:
            part = [texts[place] for place in group]
            price = self.endpoint.money.of(sum(len(field) for text in part for field in text))
            rows = self.endpoint.ask(self._request(part), price, lambda _: price, lambda plain: self._rows(plain, part))
            return dict(zip(group, rows, strict=True))

        self.endpoint.stream(groups(places, size), work, keep)

    def _request(self, texts: Sequence[Text]) -> Any:
        return _filled(self.body, texts)

    def _rows(self, plain: Any, texts: Sequence[Text]) -> list[NDArray[Any] | Exception]:
        """One row per text, each checked. One bad row among good ones is that text's failure alone."""
        found = follow(plain, self.reply, self.endpoint)
        rows = found if self._many else [found]
        if not isinstance(rows, list):
            raise VictimError(f"reply path {self.reply!r} leads to {rows!r:.60}; for {TEXTS} it must lead to a list of rows")
        if len(rows) != len(texts):
            raise VictimError(
                f"reply path {self.reply!r} leads to {len(rows)} rows for {len(texts)} texts; it must give one row per text, "
                "in order"
            )
        checked: list[NDArray[Any] | Exception] = []
        for text, row in zip(texts, rows, strict=True):
            try:
                checked += self._check([self._by_name(row)], text)
            except Exception as fault:  # whatever a server can think of
                said = str(fault) if isinstance(fault, VictimError) else f"{self.name} returned {row!r:.60}, which is no row"
                checked.append(VictimError(self.endpoint.secrets.scrub(said)))
        sizes = {row.shape for row in checked if isinstance(row, np.ndarray)}
        if len(sizes) > 1:
            raise VictimError(f"rows of different sizes {sorted(sizes)}; every text needs the same number of scores")
        faults = [row for row in checked if isinstance(row, Exception)]
        if len(faults) == len(rows):
            raise faults[0]
        return checked

    def _check(self, rows: list[Any], text: Text) -> list[NDArray[Any]]:
        return Wrapped(lambda texts: rows, self.name, self.gives, self.labels, len(text))([text])

    def _by_name(self, row: Any) -> Any:
        """{"negative": 0.1, "positive": 0.9} in the form that Hugging Face gives, which is checked elsewhere."""
        if isinstance(row, dict) and "label" not in row and self.gives != "value":
            return [{"label": name, "score": score} for name, score in row.items()]
        return row


def gathered(victim: Any, texts: Sequence[Text]) -> list[NDArray[Any]]:
    """All rows of a victim that streams; the first failure is raised when everything that could be had is there."""
    rows: dict[int, NDArray[Any] | Exception] = {}
    victim.stream(texts, rows.update)
    made = []
    for place in range(len(texts)):
        row = rows[place]
        if isinstance(row, Exception):
            raise row
        made.append(row)
    return made


def named(name: str, endpoint: Endpoint, what: Sequence[Any]) -> str:
    """The name with eight digits for what else decides a reply."""
    if not name:
        parts = urlsplit(endpoint.url)
        name, what = f"{parts.hostname}{parts.path}".rstrip("/"), [*what, endpoint.url]
    plain = json.dumps([endpoint.method, *what], sort_keys=True)
    return f"{name}@{hashlib.sha256(plain.encode()).hexdigest()[:8]}"


def costs(endpoint: Endpoint) -> dict[str, Any]:
    """Requests and money, for a person."""
    spent: dict[str, Any] = {"requests": endpoint.requests}
    if any(value for value in vars(endpoint.money).values()):
        spent["money"] = round(endpoint.purse.spent, 6)
    return spent


def follow(plain: Any, path: str, endpoint: Endpoint) -> Any:
    """Where a path leads in a JSON value."""
    return _walk(plain, [step for step in path.split(".") if step], [], path, endpoint)


def _walk(plain: Any, steps: list[str], walked: list[str], path: str, endpoint: Endpoint) -> Any:
    if not steps:
        return plain
    step, rest = steps[0], steps[1:]
    if step == "*" and isinstance(plain, list):
        return [_walk(item, rest, [*walked, str(at)], path, endpoint) for at, item in enumerate(plain)]
    if isinstance(plain, dict) and step in plain:
        return _walk(plain[step], rest, [*walked, step], path, endpoint)
    if isinstance(plain, list) and re.fullmatch(r"-?\d+", step) and -len(plain) <= int(step) < len(plain):
        return _walk(plain[int(step)], rest, [*walked, step], path, endpoint)
    if isinstance(plain, dict):
        here = f"an object with {', '.join(map(repr, list(plain)[:8])) or 'nothing'}"
    else:
        here = f"a list of {len(plain)}" if isinstance(plain, list) else f"{plain!r:.40}"
    at = f"after {'.'.join(walked)!r}" if walked else "at the top"
    raise VictimError(
        f"reply path {path!r} leads nowhere: {at} there is {here}, no {step!r}; the reply begins"
        f"{endpoint.excerpt(json.dumps(plain))}"
    )


def _places(body: Any) -> tuple[bool, int]:
    """Whether a body takes a list of texts, and how many fields a text has (0: any, for a bare {texts})."""
    single: list[str] = []
    many: list[str] = []
    bare = False

    def look(part: Any, inside: bool) -> None:
        nonlocal bare
        if part == TEXTS and not inside:
            bare = True
        elif isinstance(part, str):
            (many if inside else single).append(part)
        elif isinstance(part, dict) and set(part) == {"each"} and not inside:
            look(part["each"], True)
        elif isinstance(part, dict | list):
            for item in part.values() if isinstance(part, dict) else part:
                look(item, inside)

    look(body, False)
    one, each = fields_of(" ".join(single)), fields_of(" ".join(many))
    if one and (each or bare):
        raise VictimError(f'the body has both a place for one text and one for a list ("{TEXTS}" or "each"); keep one')
    if not (one or each or bare):
        raise VictimError(
            f'the body has no place for a text; write "{{text}}" (one text a request) or "{TEXTS}" (a list) where it goes'
        )
    return bool(each or bare), one or each


def _filled(part: Any, texts: Sequence[Text]) -> Any:
    if part == TEXTS:
        return [text[0] if len(text) == 1 else list(text) for text in texts]
    if isinstance(part, str):
        return fill(part, texts[0])
    if isinstance(part, dict) and set(part) == {"each"}:
        return [_filled(part["each"], [text]) for text in texts]
    if isinstance(part, dict):
        return {name: _filled(item, texts) for name, item in part.items()}
    if isinstance(part, list):
        return [_filled(item, texts) for item in part]
    return part
