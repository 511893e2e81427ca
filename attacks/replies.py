"""The victim's replies on disk: what was paid for once is never sent again, also after a crash."""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .types import Text


def digest(victim: str, text: Text) -> bytes:
    """The key of a reply: the victim's name with its revision, and every field of the text."""
    hashed = _begun(victim).copy()
    for field in text:
        encoded = field.encode("utf-8", "surrogatepass")
        hashed.update(len(encoded).to_bytes(8, "little") + encoded)
    return hashed.digest()


@lru_cache(maxsize=16)
def _begun(victim: str) -> hashlib.blake2b:
    return hashlib.blake2b(victim.encode("utf-8", "surrogatepass"), digest_size=16)


class ReplyStore:
    """An SQLite file (WAL) of replies. Several processes may share it; a commit survives kill -9."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self._db = sqlite3.connect(self.path, timeout=60, isolation_level=None)
            self._db.execute("PRAGMA journal_mode=WAL")
            self._db.execute("PRAGMA synchronous=NORMAL")
            self._db.execute("CREATE TABLE IF NOT EXISTS replies (key BLOB PRIMARY KEY, kind TEXT, row BLOB) WITHOUT ROWID")
        except (OSError, sqlite3.Error) as fault:
            raise self._trouble(fault) from fault

    def _trouble(self, fault: Exception) -> OSError:
        return OSError(
            f"the reply cache {self.path} cannot be used ({fault}): it must be an SQLite file in a writable folder with "
            "free space; give another --cache, or free some space and run again with --resume"
        )

    def get(self, keys: Sequence[bytes]) -> dict[bytes, NDArray[Any]]:
        """The known replies among `keys`."""
        found: dict[bytes, NDArray[Any]] = {}
        try:
            for start in range(0, len(keys), 500):
                part = keys[start : start + 500]
                marks = ",".join("?" * len(part))
                for key, kind, row in self._db.execute(f"SELECT key, kind, row FROM replies WHERE key IN ({marks})", part):
                    values = np.frombuffer(row, np.int64 if kind[0] == "i" else np.float64)
                    found[key] = values.reshape(()) if kind[1] == "0" else values
        except sqlite3.Error as fault:
            raise self._trouble(fault) from fault
        return found

    def put(self, replies: Mapping[bytes, NDArray[Any]]) -> None:
        """Keep these replies; they are on disk when this returns."""
        rows = []
        for key, row in replies.items():
            kind = "i" if row.dtype.kind in "iub" else "f"
            kept = np.ascontiguousarray(row, np.int64 if kind == "i" else np.float64)
            rows.append((key, f"{kind}{row.ndim}", kept.tobytes()))
        try:
            self._db.execute("BEGIN")
            self._db.executemany("INSERT OR IGNORE INTO replies VALUES (?, ?, ?)", rows)
            self._db.execute("COMMIT")
        except sqlite3.Error as fault:
            raise self._trouble(fault) from fault

    def close(self) -> None:
        self._db.close()
