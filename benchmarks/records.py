"""The journal: one JSON line per finished example, on disk before the next one; a torn last line is dropped."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO, cast

from ..attacks.record import Record


def read_records(path: str | Path) -> list[Record]:
    """The whole records of a file, one per id: a resumed run tries errors again, and the later line counts. A last line
    cut off by a crash is left out; any other broken line is an error."""
    return list({record.id: record for record in _parse(Path(path))[0]}.values())


def _parse(path: Path) -> tuple[list[Record], int]:
    raw = path.read_bytes()
    whole = raw.rfind(b"\n") + 1  # what stands behind the last line end was never finished
    records = []
    for number, line in enumerate(raw[:whole].split(b"\n")[:-1], 1):
        try:
            plain = json.loads(line)
            if not isinstance(plain, dict):
                raise ValueError(f"a record is an object, not {type(plain).__name__}")
            records.append(Record.from_dict(plain))
        except (ValueError, TypeError) as fault:
            raise ValueError(f"{path}, line {number} is not a record ({fault}); mend or remove that line") from fault
    return records, whole


def _write(file: BinaryIO, line: bytes) -> None:
    while line:  # an unbuffered file may take a part only
        line = line[file.write(line) :]


def _keep_traces(path: Path, ids: set[str]) -> None:
    """Only the traces of records that stand: a trace is written first, so a crash leaves one too many, or half of one."""
    if not path.exists():
        return
    raw = path.read_bytes()
    kept = []
    for number, line in enumerate(raw.split(b"\n")[:-1], 1):
        try:
            if json.loads(line)["id"] in ids:
                kept.append(line + b"\n")
        except (ValueError, TypeError, KeyError) as fault:
            raise ValueError(f"{path}, line {number} is not a trace ({fault!r}); mend or remove that line") from fault
    whole = b"".join(kept)
    if whole != raw:
        fresh = path.with_name("trace.jsonl.new")
        fresh.write_bytes(whole)
        fresh.replace(path)


class Journal:
    """Appends records to a file, one writer at a time. Opening it to resume cuts off a torn last line."""

    def __init__(self, folder: str | Path, spec: str, resume: bool) -> None:
        self.path = Path(folder) / "records.jsonl"
        self._opened: list[BinaryIO] = []
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self._file = self._open(self.path)
            self._lock()
            self.done, whole = _parse(self.path)
            self._check(spec, resume)
            self._file.truncate(whole)
            trace = self.path.with_name("trace.jsonl")
            _keep_traces(trace, {record.id for record in self.done if record.status != "error"})
            self._trace = self._open(trace)
        except BaseException as fault:
            self.close()  # a traceback that somebody keeps must not keep the lock
            if isinstance(fault, OSError) and fault.errno is not None:
                raise self._trouble(fault) from fault
            raise

    def _open(self, path: Path) -> BinaryIO:
        # Unbuffered: bytes that found no space would be written again, and fail again, when the file is closed.
        self._opened.append(cast("BinaryIO", open(path, "ab", buffering=0)))  # noqa: SIM115  closed by close()
        return self._opened[-1]

    def _lock(self) -> None:
        try:
            import fcntl

            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except ImportError:  # no such locks on this system: one writer is up to the user
            pass
        except OSError:
            raise OSError(f"{self.path} is being written by another run; wait for it, or give another --out") from None

    def _check(self, spec: str, resume: bool) -> None:
        if self.done and not resume:
            raise FileExistsError(f"{self.path} holds {len(self.done)} records; go on with --resume, or give another --out")
        other = next((record.spec for record in self.done if record.spec != spec), None)
        if other is not None:
            raise ValueError(
                f"{self.path} was made with other settings (spec {other}, this run {spec}): victim, recipe, space, budget, "
                "seed, goal and floor must be the same to resume; give another --out"
            )

    def _trouble(self, fault: OSError) -> OSError:
        return OSError(
            f"cannot write {self.path}: {fault.strerror or fault}; what is finished is kept: free some space or fix the "
            "folder's rights, then run the same command with --resume"
        )

    def describe(self, settings: Mapping[str, Any]) -> None:
        """What this run is, for a person who finds the folder."""
        try:
            self.path.with_name("spec.json").write_text(json.dumps(settings, indent=1) + "\n")
        except OSError as fault:
            raise self._trouble(fault) from fault

    def append(self, record: Record) -> None:
        """On disk when this returns."""
        try:
            if record.trace:
                line = {"id": record.id, "queries": record.trace}
                _write(self._trace, json.dumps(line, ensure_ascii=True).encode() + b"\n")
            _write(self._file, json.dumps(record.as_dict(), ensure_ascii=True, allow_nan=False).encode() + b"\n")
            os.fsync(self._file.fileno())
        except OSError as fault:
            raise self._trouble(fault) from fault

    def close(self) -> None:
        for file in self._opened:
            file.close()
        trace = self.path.with_name("trace.jsonl")
        if len(self._opened) == 2 and trace.exists() and not trace.stat().st_size:
            trace.unlink()

    def __enter__(self) -> Journal:
        return self

    def __exit__(self, kind: type[BaseException] | None, fault: BaseException | None, where: TracebackType | None) -> None:
        self.close()
