"""The only place that can spend. An Account is one example's ledger; the Cashier calls the victim for everybody."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .replies import ReplyStore, digest
from .types import Text, Victim

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


@dataclass
class Spent:
    """What a whole run cost."""

    sent: int = 0  # texts the victim was given, those of calls that failed included
    calls: int = 0
    seconds: float = 0.0
    cpu: float = 0.0  # processor seconds of all threads


@dataclass
class Cashier:
    """Pays the bills of all attacks in flight with as few victim calls as possible."""

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
        keys = {text: digest(self.victim.name, text) for text in owed}
        known = {key: self._memory[key] for key in keys.values() if key in self._memory}
        if self.store:
            known |= self.store.get([key for key in keys.values() if key not in known])
        texts = [text for text in owed if keys[text] not in known]
        for start in range(0, len(texts), self.batch):
            self._send(texts[start : start + self.batch], keys, known, owed)
        fresh = set(texts)
        for text, debtors in owed.items():
            row = known.get(keys[text])
            if row is None:
                continue
            for place, account in enumerate(debtors):
                account.replies[text] = row
                account.cached += place > 0 or text not in fresh

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
        replies = {keys[text]: row for text, row in zip(texts, rows, strict=True)}
        if self.store:
            self.store.put(replies)
        known |= replies
        self._memory |= replies
        while len(self._memory) > REMEMBERED:
            del self._memory[next(iter(self._memory))]

    def _call(self, texts: Sequence[Text]) -> list[NDArray[Any]]:
        wall, cpu = time.perf_counter(), time.process_time()
        self.spent.calls += 1
        self.spent.sent += len(texts)
        try:
            rows = [np.asarray(row) for row in self.victim(texts)]
        finally:
            self.spent.seconds += time.perf_counter() - wall
            self.spent.cpu += time.process_time() - cpu
        if len(rows) != len(texts):
            raise ValueError(
                f"{self.victim.name} gave {len(rows)} rows for {len(texts)} texts; it must give one row per text"
            )
        if not np.isfinite(np.concatenate([row.ravel() for row in rows])).all():
            at = next(place for place, row in enumerate(rows) if not np.isfinite(row).all())
            raise ValueError(f"{self.victim.name} gave {rows[at].tolist()} for {texts[at]!r:.80}; replies must be finite")
        return rows
