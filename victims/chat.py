"""Any OpenAI-compatible chat endpoint as a zero-shot classifier. It gives labels only, at temperature 0.

A reply that names no label, or more than one, is NO_LABEL: charged and kept like any other, counted, and never a success.
For a changed text it counts as no change; a clean text so answered makes its example an error.
"""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..attacks.account import NO_LABEL, Keep, Part
from ..attacks.types import Gives, Text
from .http import costs, follow, gathered, named
from .limits import writable
from .templates import fields_of, fill, groups, misfits
from .transport import Endpoint
from .wrap import VictimError

PROMPT = "Is this text {labels}? Answer with one of these words and nothing else.\n\nText: {text}\n\nAnswer:"
OVERHEAD = 64  # tokens that a chat template adds around the messages, at most; for the bound on a request's price


@dataclass
class ChatVictim:
    """`prompt` has a place for the text ({text}, or {first} and {second}) and may name the {labels}.

    A label is found as a whole word, in any case; `answers` gives more words for a label: {"positive": ["good"]}. Of labels
    that hold each other, such as "spam" and "not spam", the longest counts. `options` is merged into the request; null
    takes a setting out. `transcript` is a file that gets every reply, one JSON line each.
    """

    endpoint: Endpoint
    model: str
    labels: tuple[str, ...]
    prompt: str = PROMPT
    system: str = ""
    max_tokens: int = 8
    answers: Mapping[str, Sequence[str]] = field(default_factory=dict)
    options: Mapping[str, Any] = field(default_factory=dict)
    transcript: Path | None = None
    name: str = ""
    unparsed: int = field(init=False, default=0)  # replies of this run that named no label

    def __post_init__(self) -> None:
        self.labels = tuple(self.labels)
        if len(self.labels) < 2 or len({label.casefold() for label in self.labels}) < len(self.labels):
            raise VictimError(f"labels {list(self.labels)}: a classifier needs at least two, each another word")
        if self.max_tokens < 1:
            raise VictimError(f"max_tokens={self.max_tokens}: an answer takes at least 1 token")
        for label in self.answers:
            if label not in self.labels:
                raise VictimError(f"answers has words for {label!r}, which is not one of {list(self.labels)}")
        self.fields = fields_of(self.prompt)
        if not self.fields:
            raise VictimError("the prompt has no place for the text; write {text} where it goes")
        self._words: dict[str, int] = {}
        for number, label in enumerate(self.labels):
            for word in (label, *self.answers.get(label, ())):
                if self._words.setdefault(_plain(word), number) != number:
                    raise VictimError(f"answers: {word!r} stands for two labels; a word stands for one")
        longest = sorted(self._words, key=len, reverse=True)
        self._find = re.compile(r"(?<!\w)(?:" + "|".join(map(re.escape, longest)) + r")(?!\w)")
        answers = {label: list(words) for label, words in self.answers.items()}
        what = [self.model, self.labels, self.prompt, self.system, self.max_tokens, answers, dict(self.options)]
        self.name = named(self.name or self.model, self.endpoint, what)
        if self.transcript is not None:
            writable(self.transcript, "transcript")
        self.prompt_tokens = self.completion_tokens = 0
        self._lock = threading.Lock()

    @property
    def gives(self) -> Gives:
        return "label"

    @property
    def notes(self) -> dict[str, Any]:
        """What this run cost so far, and how many replies named no label."""
        tokens = {"prompt_tokens": self.prompt_tokens, "completion_tokens": self.completion_tokens}
        return costs(self.endpoint) | tokens | {"unparsed": self.unparsed}

    def __call__(self, texts: Sequence[Text]) -> list[NDArray[Any]]:
        return gathered(self, texts)

    def stream(self, texts: Sequence[Text], keep: Keep) -> None:
        """Hands each label to `keep` as it comes, or the reason why there is none."""
        odd = misfits(self.name, self.fields, texts)
        if odd:
            keep(odd)

        def work(group: Sequence[int]) -> Part:
            (place,) = group
            return {place: np.asarray(self._label(texts[place]))}

        self.endpoint.stream(groups([place for place in range(len(texts)) if place not in odd], 1), work, keep)

    def parse(self, reply: str) -> int:
        """The number of the one label that a reply names, or NO_LABEL."""
        found = {self._words[word] for word in self._find.findall(_plain(reply))}
        return found.pop() if len(found) == 1 else NO_LABEL

    def _label(self, text: Text) -> int:
        listed = ", ".join(self.labels[:-1]) + f" or {self.labels[-1]}"
        # The labels first: a text may hold any braces of its own.
        asked = fill(self.prompt.replace("{labels}", listed), text)
        messages = [{"role": "system", "content": self.system}] if self.system else []
        messages.append({"role": "user", "content": asked})
        body = {"model": self.model, "messages": messages, "temperature": 0, "max_tokens": self.max_tokens}
        body = {key: value for key, value in (body | dict(self.options)).items() if value is not None}
        money, characters = self.endpoint.money, sum(map(len, text))
        # A byte is the smallest token there is.
        most = len((self.system + asked).encode("utf-8", "replace")) + OVERHEAD
        bound = money.of(characters, most, self.max_tokens)

        def cost(plain: Any) -> float:
            used = plain.get("usage") if isinstance(plain, dict) else None
            if not isinstance(used, dict):
                return bound  # the server does not say
            prompt, completion = used.get("prompt_tokens"), used.get("completion_tokens")
            if not (isinstance(prompt, int) and isinstance(completion, int)):
                return bound
            with self._lock:
                self.prompt_tokens += prompt
                self.completion_tokens += completion
            return money.of(characters, prompt, completion)

        said = self.endpoint.ask(body, bound, cost, self._said)
        label = self.parse(said)
        with self._lock:
            self.unparsed += label == NO_LABEL
            if self.transcript is not None:
                line = {"text": list(text), "reply": said, "label": None if label == NO_LABEL else self.labels[label]}
                with open(self.transcript, "a", encoding="utf-8") as file:
                    file.write(json.dumps(line) + "\n")
        return label

    def _said(self, plain: Any) -> str:
        said = follow(plain, "choices.0.message.content", self.endpoint)
        return said if isinstance(said, str) else ""  # null: a refusal or a tool call, so no label


def _plain(words: str) -> str:
    return " ".join(words.casefold().split())
