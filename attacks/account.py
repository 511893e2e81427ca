"""The only place that can spend. An Account is one example's ledger; the Cashier calls the victim for everybody."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .replies import ReplyStore, digest
from .types import Gives, Text, Victim

Part = Mapping[int, NDArray[Any] | Exception]  # what is known by now: the reply to the text at a place, or why there is none
Keep = Callable[[Part], None]
NO_LABEL = -1  # a reply in words that names no class, or several
REMEMBERED = 100_000  # replies kept in memory across examples: keys of 16 bytes and short rows, some 20 MB


@dataclass
class Account:
    """One example's ledger. `charged` counts distinct texts, `asked` every proposal, `cached` the charged texts that an
    earlier reply answered, `spared` the proposals that a success made needless."""

    budget: int
    asked: int = 0
    charged: int = 0
    cached: int = 0
    spared: int = 0
    charges: dict[Text, int] = field(default_factory=dict)  # text -> its place in the order of payment, from 1
    replies: dict[Text, NDArray[Any]] = field(default_factory=dict)
    due: list[Text] = field(default_factory=list)
    unread: int = 0  # replies that were NO_LABEL
    failure: BaseException | None = None

    def bill(self, text: Text) -> bool:
        """Put one proposal on the bill. False when it is new and the budget is spent: then nothing changes."""
        if text not in self.charges:
            if self.charged >= self.budget:
                return False
            self.charged += 1
            self.charges[text] = self.charged
            self.due.append(text)
        self.asked += 1
        return True

    def take(self, text: Text, row: NDArray[Any], gives: Gives) -> None:
        """Write down a reply. NO_LABEL is paid for like any other and moves nothing: it counts as the clean text's label,
        so that no goal can take it for a success. Without a label for the clean text the example cannot be judged."""
        if gives == "label" and row == NO_LABEL:
            self.unread += 1
            clean = self.replies.get(next(iter(self.charges)))
            if clean is None:
                self.failure = ValueError("the reply to the clean text names no label, so there is nothing to attack")
                return
            row = clean
        self.replies[text] = row


@dataclass
class Spent:
    """What a whole run cost."""

    sent: int = 0  # texts the victim was given, those of calls that failed included
    calls: int = 0
    seconds: float = 0.0
    cpu: float = 0.0  # processor seconds of all threads
    _started: tuple[float, float] = (0.0, 0.0)

    def call(self, texts: int) -> Spent:
        """A victim call about to be made, timed by `with`."""
        self.calls += 1
        self.sent += texts
        return self

    def __enter__(self) -> None:
        self._started = time.perf_counter(), time.process_time()

    def __exit__(self, *fault: object) -> None:
        self.seconds += time.perf_counter() - self._started[0]
        self.cpu += time.process_time() - self._started[1]


@dataclass
class Cashier:
    """Pays the bills of all attacks in flight with as few victim calls as possible.

    A victim whose replies come one after the other may have a method `stream(texts, keep)`, which hands each part of them
    to `keep` as it comes. Then a paid reply is on disk before the next one is awaited, and a failure is one text's alone.
    """

    victim: Victim
    batch: int = 256
    store: ReplyStore | None = None
    spent: Spent = field(default_factory=Spent)
    _memory: dict[bytes, NDArray[Any]] = field(default_factory=dict)

    def pay(self, accounts: Iterable[Account]) -> None:
        """Fill the replies of everything due. A text the victim fails on is left to its account as `failure`."""
        owed: dict[Text, list[Account]] = {}
        for account in accounts:
            for text in account.due:
                owed.setdefault(text, []).append(account)
            account.due.clear()
        if not owed:
            return
        name, gives, memory = self.victim.name, self.victim.gives, self._memory
        keys = {text: digest(name, text) for text in owed}
        known = {key: memory[key] for key in keys.values() if key in memory}
        if self.store:
            known |= self.store.get([key for key in keys.values() if key not in known])
        texts = [text for text in owed if keys[text] not in known]
        send = self._stream if getattr(self.victim, "stream", None) else self._send
        for start in range(0, len(texts), self.batch):
            send(texts[start : start + self.batch], keys, known, owed)
        fresh = set(texts)
        for text, debtors in owed.items():
            row = known.get(keys[text])
            if row is None:
                continue
            for account in debtors:
                account.take(text, row, gives)
            for account in debtors[text in fresh :]:  # the first one paid
                account.cached += 1

    def _send(
        self,
        texts: Sequence[Text],
        keys: dict[Text, bytes],
        known: dict[bytes, NDArray[Any]],
        owed: dict[Text, list[Account]],
    ) -> None:
        try:
            rows = self._call(texts)
        except Exception as fault:
            if len(texts) > 1:  # find the text that the victim cannot take, so that the other attacks go on
                half = len(texts) // 2
                self._send(texts[:half], keys, known, owed)
                self._send(texts[half:], keys, known, owed)
                return
            for account in owed[texts[0]]:
                account.failure = fault
            return
        self._keep({keys[text]: row for text, row in zip(texts, rows, strict=True)}, known)

    def _keep(self, replies: dict[bytes, NDArray[Any]], known: dict[bytes, NDArray[Any]]) -> None:
        if self.store and replies:
            self.store.put(replies)
        known |= replies
        self._memory |= replies
        while len(self._memory) > REMEMBERED:
            del self._memory[next(iter(self._memory))]

    def _stream(
        self,
        texts: Sequence[Text],
        keys: dict[Text, bytes],
        known: dict[bytes, NDArray[Any]],
        owed: dict[Text, list[Account]],
    ) -> None:
        waiting = dict(enumerate(texts))

        def fail(text: Text, fault: Exception) -> None:
            for account in owed[text]:
                account.failure = fault

        def keep(part: Part) -> None:
            replies = {}
            for place, row in part.items():
                text = waiting.pop(place)
                if isinstance(row, Exception):
                    fail(text, row)
                elif not np.isfinite(row).all():
                    fail(text, self._not_finite(row, text))
                else:
                    replies[keys[text]] = row
            self._keep(replies, known)

        with self.spent.call(len(texts)):
            self.victim.stream(texts, keep)  # type: ignore[attr-defined]  # optional, see above
        for text in waiting.values():
            fail(text, ValueError(f"{self.victim.name} left out {text!r:.80}; stream must hand every text to keep"))

    def _not_finite(self, row: NDArray[Any], text: Text) -> ValueError:
        return ValueError(f"{self.victim.name} gave {row.tolist()} for {text!r:.80}; replies must be finite")

    def _call(self, texts: Sequence[Text]) -> list[NDArray[Any]]:
        with self.spent.call(len(texts)):
            rows = [np.asarray(row) for row in self.victim(texts)]
        if len(rows) != len(texts):
            raise ValueError(
                f"{self.victim.name} gave {len(rows)} rows for {len(texts)} texts; it must give one row per text"
            )
        if not np.isfinite(np.concatenate(rows, axis=None)).all():
            at = next(place for place, row in enumerate(rows) if not np.isfinite(row).all())
            raise self._not_finite(rows[at], texts[at])
        return rows
