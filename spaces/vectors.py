"""Word vectors in text files: one word and its numbers a line. Parsed once, then kept in the cache by content."""

from __future__ import annotations

import contextlib
import hashlib
import math
import os
import tempfile
import zipfile
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from .. import resources

Rows = NDArray[np.float32]  # float32[words, dimensions]


class Vectors(NamedTuple):
    words: tuple[str, ...]
    rows: Rows  # every row of length 1
    digest: str  # of the file's content


class VectorsError(ValueError):
    """A vectors file cannot be used. The message names the file, the line, the value, the rule and the next step."""


def load_vectors(path: str | os.PathLike[str]) -> Vectors:
    """The vectors of a text file, from the cache when a file with this content was read before."""
    file = Path(path).expanduser().absolute()
    try:
        status = file.stat()
    except OSError as fault:
        raise VectorsError(
            f"{file}: {fault.strerror}; give the path of a text file with a word and its numbers on each line"
        ) from fault
    if not file.is_file():
        raise VectorsError(f"{file} is no file; give the path of the text file itself, e.g. {file}/vectors.txt")
    return _load(file, status.st_size, status.st_mtime_ns)


@cache
def _load(file: Path, size: int, changed: int) -> Vectors:
    with file.open("rb") as content:
        digest = hashlib.file_digest(content, "sha256").hexdigest()[:16]
    kept = resources.cache() / "vectors" / f"{digest}.npz"
    with contextlib.suppress(OSError, ValueError, KeyError, zipfile.BadZipFile):  # none yet, or a damaged one
        with np.load(kept, allow_pickle=False) as arrays:
            words, rows = unpack_words(arrays["words"]), arrays["rows"]
        if len(words) == len(rows):
            return Vectors(words, rows, digest)
    words, rows = parse_vectors(file)
    with contextlib.suppress(OSError):  # a cache saves time; without one the file is parsed again
        save_arrays(kept, words=pack_words(words), rows=rows)
    return Vectors(words, rows, digest)


def parse_vectors(file: Path) -> tuple[tuple[str, ...], Rows]:
    """Words and unit vectors. A first line of two whole numbers (rows, dimensions) is a header."""
    lines: dict[str, int] = {}
    rows: list[Rows] = []
    width, promised = 0, ""
    with file.open("rb") as content:
        for number, raw in enumerate(content, 1):
            where = f"{file}, line {number}"
            try:
                word, *values = raw.decode("utf-8-sig" if number == 1 else "utf-8").split()
            except UnicodeDecodeError as fault:
                raise VectorsError(
                    f"{where}: byte {raw[fault.start]:#04x} is not UTF-8; convert the file, e.g. with iconv"
                ) from fault
            except ValueError:
                continue  # an empty line
            if not rows and not width and len(values) == 1 and word.isdigit() and values[0].isdigit():
                width, promised = int(values[0]), " as its header says"
                continue
            if not values:
                raise VectorsError(f"{where}: {word!r} has no numbers; every line must be a word and its vector, in spaces")
            width = width or len(values)
            if len(values) != width:
                raise VectorsError(
                    f"{where}: {word!r} has {len(values)} numbers, but the file has {width} a word"
                    f"{promised or ' from its first line on'}; repair or remove the line (a truncated download ends like this)"
                )
            if word in lines:
                raise VectorsError(f"{where}: {word!r} is on line {lines[word]} already; a word must come once: remove one")
            lines[word] = number
            rows.append(_row(where, word, values))
    if not rows:
        raise VectorsError(f"{file} is empty; it must have a word and its numbers on each line: get the file again")
    return tuple(lines), np.stack(rows)


def _row(where: str, word: str, values: Sequence[str]) -> Rows:
    try:
        row = np.array([float(value) for value in values])
    except ValueError:
        wrong = next(value for value in values if not _is_number(value))
        raise VectorsError(
            f"{where}: {word!r} has {wrong!r} among its numbers; only numbers may follow the word: repair or remove the line"
        ) from None
    length = math.sqrt(float(row @ row))
    if not 0 < length < math.inf:
        wrong = next((value for value in values if not math.isfinite(float(value))), "nothing but zeros")
        raise VectorsError(
            f"{where}: {word!r} has {wrong}; a vector needs a direction, so finite numbers that are not all zero: "
            "repair or remove the line"
        )
    return (row / length).astype(np.float32)


def _is_number(value: str) -> bool:
    try:
        float(value)
    except ValueError:
        return False
    return True


def pack_words(words: Sequence[str]) -> NDArray[np.uint8]:
    """Words as bytes, one a line: an array that needs no pickle."""
    return np.frombuffer("\n".join(words).encode(), dtype=np.uint8)


def unpack_words(packed: NDArray[np.uint8]) -> tuple[str, ...]:
    return tuple(packed.tobytes().decode().split("\n"))


def save_arrays(file: Path, *, compress: bool = False, **arrays: NDArray[np.generic]) -> None:
    """Write an npz whole or not at all, byte for byte the same for the same arrays."""
    file.parent.mkdir(parents=True, exist_ok=True)
    handle, draft = tempfile.mkstemp(dir=file.parent, prefix=f".{file.name}-")
    try:
        with os.fdopen(handle, "wb") as out, zipfile.ZipFile(out, "w") as archive:
            for name, array in arrays.items():
                # Numpy's own writer would stamp members with the time of day.
                member = zipfile.ZipInfo(f"{name}.npy")
                member.compress_type = zipfile.ZIP_DEFLATED if compress else zipfile.ZIP_STORED
                with archive.open(member, "w", force_zip64=True) as sink:
                    np.lib.format.write_array(sink, np.ascontiguousarray(array), allow_pickle=False)
        os.chmod(draft, 0o644)
        os.replace(draft, file)
    except BaseException:
        os.unlink(draft)
        raise
