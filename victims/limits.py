"""What holds for every request: secrets stay secret, a pace is kept, and no more than the cap is spent."""

from __future__ import annotations

import json
import logging
import math
import os
import re
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .wrap import VictimError

SECRET = re.compile(r"\$\{(\w+)\}")


class RemoteError(RuntimeError):
    """A text without a usable reply. `billed` says whether the server may have charged for it."""

    def __init__(self, message: str, billed: bool = False) -> None:
        super().__init__(message)
        self.billed = billed


class Stopped(RemoteError):
    """No further request makes sense: nothing more is sent, and every text still due fails with this message."""


@dataclass
class Secrets:
    """Values that came from environment variables. They leave this object in requests only."""

    _values: dict[str, str] = field(default_factory=dict, repr=False)

    def expand(self, template: str) -> str:
        """Each ${NAME} replaced by the variable of that name."""
        return SECRET.sub(lambda found: self._value(found[1]), template)

    def _value(self, name: str) -> str:
        value = os.environ.get(name, "").strip()
        if not value:
            raise VictimError(f"the environment variable {name} is not set; set it to the key that the endpoint expects")
        if not (value.isascii() and value.isprintable()):
            raise VictimError(f"the environment variable {name} holds a character that no header may hold; set it again")
        self._values[name] = value
        return value

    def scrub(self, text: str) -> str:
        """The text with every secret put back to its ${NAME}: servers like to repeat what they were sent."""
        for name, value in self._values.items():
            text = text.replace(value, f"${{{name}}}").replace(json.dumps(value)[1:-1], f"${{{name}}}")
        return text

    def hush(self) -> None:
        """Scrub what the HTTP library logs: at its debug level that is every header a server sends back."""

        def scrubbed(entry: logging.LogRecord) -> bool:
            entry.msg, entry.args = self.scrub(entry.getMessage()), ()
            return True

        for name in ("httpx", *(f"httpcore.{part}" for part in ("connection", "http11", "http2", "proxy", "socks"))):
            if self._values:
                logging.getLogger(name).addFilter(scrubbed)


class Pace:
    """At most so many a second, and none before a time the server has asked for; None sets no limit."""

    def __init__(
        self,
        per_second: float | None = None,
        sleep: Callable[[float], Any] = time.sleep,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        if per_second is not None and not (per_second > 0 and math.isfinite(per_second)):
            raise VictimError(f"per_second={per_second}: a rate is a number above 0; leave it out for no limit")
        self._gap = 0.0 if per_second is None else 1 / per_second
        self._sleep, self._clock, self._free, self._lock = sleep, clock, -math.inf, threading.Lock()

    def wait(self, n: int = 1) -> None:
        """Returns when the next n may go."""
        with self._lock:
            now = self._clock()
            start = max(now, self._free)
            self._free = start + n * self._gap
        if start > now:
            self._sleep(start - now)

    def hold(self, seconds: float) -> None:
        """Nobody goes before so many seconds have passed."""
        with self._lock:
            self._free = max(self._free, self._clock() + seconds)


@dataclass(frozen=True)
class Money:
    """Prices, in any currency, and the most that may be spent. Tokens are those a chat endpoint reports."""

    cap: float | None = None
    per_call: float = 0.0  # each request, however many texts it holds
    per_1000_characters: float = 0.0  # of the texts sent
    per_million_prompt_tokens: float = 0.0
    per_million_completion_tokens: float = 0.0

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            if value is not None and not (is_number(value) and value >= 0 and math.isfinite(value)):
                raise VictimError(f"money: {name} is {value!r}; it must be a number from 0")
        if self.cap is not None and not any(value for name, value in vars(self).items() if name != "cap"):
            raise VictimError(f"money: a cap of {self.cap:g} needs a price, e.g. per_call; otherwise nothing is ever spent")

    def of(self, characters: int, prompt: int = 0, completion: int = 0) -> float:
        """The price of one request."""
        tokens = prompt * self.per_million_prompt_tokens + completion * self.per_million_completion_tokens
        return self.per_call + characters / 1000 * self.per_1000_characters + tokens / 1e6


class Purse:
    """What is spent and what is promised to requests under way: together never more than the cap.

    With a `ledger` every payment is a line of that file, and what runs before this one paid counts too; without it the
    cap holds for one run.
    """

    def __init__(self, money: Money, ledger: Path | None = None) -> None:
        self.money, self.ledger, self.promised, self._changed = money, ledger, 0.0, threading.Condition()
        self.spent = 0.0
        if ledger is not None:
            writable(ledger, "ledger")
            try:
                self.spent = math.fsum(float(line) for line in ledger.read_text("utf-8").split())
            except ValueError as fault:
                raise VictimError(
                    f"{ledger} is no ledger ({fault}): it holds one number a line; name another file"
                ) from None

    def promise(self, amount: float) -> None:
        """Set aside the most that a request may cost; waits for others when only their change could make room."""
        cap = self.money.cap
        with self._changed:
            while cap is not None and self.spent + self.promised + amount > cap * (1 + 1e-9):
                if not self.promised:
                    raise Stopped(
                        f"the money cap is reached: {self.spent:.6g} of {cap:.6g} spent, the next request may cost "
                        f"{amount:.6g}; every reply is kept: raise the cap and run the same command with --resume"
                    )
                self._changed.wait()
            self.promised += amount

    def pay(self, amount: float, promised: float) -> None:
        """What became of a promise."""
        with self._changed:
            self.promised = max(0.0, self.promised - promised)
            if self.promised < 1e-12:
                self.promised = 0.0  # sums of parts rarely come back to nothing
            self.spent += amount
            if self.ledger is not None and amount:
                with open(self.ledger, "a", encoding="utf-8") as ledger:
                    ledger.write(f"{amount!r}\n")
            self._changed.notify_all()


def writable(path: Path, what: str) -> None:
    """Refuses a file that could not be written later, when a reply is paid for."""
    try:
        path.open("a").close()
    except OSError as fault:
        raise VictimError(f"{what} {str(path)!r} cannot be written ({fault.strerror}); name another file") from None


def is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)
