"""The journal: one JSON line per finished example, on disk before the next one; a torn last line is dropped."""

from __future__ import annotations

import json
import os
from pathlib import Path
from types import TracebackType

from ..attacks.record import Record


def read_records(path: str | Path) -> list[Record]:
    """The whole records of a file. A last line cut off by a crash is left out; any other broken line is an error."""
    return _parse(Path(path))[0]


def _parse(path: Path) -> tuple[list[Record], int]:
    raw = path.read_bytes()
    whole = raw.rfind(b"\n") + 1  # what stands behind the last line end was never finished
    records = []
    for number, line in enumerate(raw[:whole].split(b"\n")[:-1], 1):
        try:
            records.append(Record.from_dict(json.loads(line)))
        except (ValueError, TypeError) as fault:
            raise ValueError(f"{path}, line {number} is not a record ({fault}); mend or remove that line") from fault
    return records, whole


class Journal:
    """Appends records to a file, one writer at a time. Opening it to resume cuts off a torn last line."""

    def __init__(self, folder: str | Path, spec: str, resume: bool) -> None:
        self.path = Path(folder) / "records.jsonl"
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self._file = open(self.path, "ab")  # noqa: SIM115  closed by close()
            self._trace = open(self.path.with_name("trace.jsonl"), "ab")  # noqa: SIM115
        except OSError as fault:
            raise self._trouble(fault) from fault
        try:
            import fcntl

            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except ImportError:  # no such locks on this system: one writer is up to the user
            pass
        except OSError:
            raise OSError(f"{self.path} is being written by another run; wait for it, or give another --out") from None
        self.done, whole = _parse(self.path)
        if self.done and not resume:
            raise FileExistsError(f"{self.path} holds {len(self.done)} records; go on with --resume, or give another --out")
        other = next((record.spec for record in self.done if record.spec != spec), None)
        if other is not None:
            raise ValueError(
                f"{self.path} was made with other settings (spec {other}, this run {spec}): victim, recipe, space, budget, "
                "seed, goal and floor must be the same to resume; give another --out"
            )
        self._file.truncate(whole)

    def _trouble(self, fault: OSError) -> OSError:
        return OSError(
            f"cannot write {self.path}: {fault.strerror or fault}; what is finished is kept: free some space or fix the "
            "folder's rights, then run the same command with --resume"
        )

    def append(self, record: Record) -> None:
        """On disk when this returns."""
        try:
            if record.trace:
                line = {"id": record.id, "queries": record.trace}
                self._trace.write(json.dumps(line, ensure_ascii=True).encode() + b"\n")
                self._trace.flush()
            self._file.write(json.dumps(record.as_dict(), ensure_ascii=True, allow_nan=False).encode() + b"\n")
            self._file.flush()
            os.fsync(self._file.fileno())
        except OSError as fault:
            raise self._trouble(fault) from fault

    def close(self) -> None:
        self._file.close()
        self._trace.close()
        trace = self.path.with_name("trace.jsonl")
        if trace.exists() and not trace.stat().st_size:
            trace.unlink()

    def __enter__(self) -> Journal:
        return self

    def __exit__(self, kind: type[BaseException] | None, fault: BaseException | None, where: TracebackType | None) -> None:
        self.close()
