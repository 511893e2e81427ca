"""The peers' own interpreter: a virtual environment with TextAttack and OpenAttack, which then run without a network."""

from __future__ import annotations

import os
import subprocess
import sys
import venv
from pathlib import Path

from ...spaces.rules import stop_words

TEXTATTACK = "0.3.11"
OPENATTACK_VERSION = "2.1.1"
# torch first, and exact: an open range pulls gigabytes of CUDA libraries. The others are what 0.3.11 works with: its own
# ranges let pip choose a transformers 5 that it cannot import.
PINS = (
    ("torch==2.13.0",),
    (f"textattack=={TEXTATTACK}", "flair==0.15.1", "transformers<5", "datasets>=4"),
    ("--no-deps", f"OpenAttack=={OPENATTACK_VERSION}"),  # what it imports is there already
    ("spacy==3.8.18", "safetensors>=0.5", "regex"),  # the victims
)


def interpreter(folder: Path) -> Path:
    """The Python of the environment in `folder`, made when it is not there; it takes 1.7 GB."""
    python = folder / "bin" / "python"
    done = folder / ".ready"
    if done.exists() and done.read_text() == repr(PINS):
        return python
    if not python.exists():
        print(f"making {folder}", file=sys.stderr, flush=True)
        venv.create(folder, with_pip=True)
    for pins in PINS:
        print(f"installing {' '.join(pins)}", file=sys.stderr, flush=True)
        subprocess.run([python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *pins], check=True)
    done.write_text(repr(PINS))
    return python


def environment(folder: Path) -> dict[str, str]:
    """What the peers must be told to run without a network: where scrimp is, where NLTK's stop words are (TextAttack reads
    them when it is imported), and that its first-run downloads are done: lexicons and taggers, which the table replaces."""
    here = folder / "scrimp-only"  # a folder in which the package is called scrimp and nothing else is found
    here.mkdir(parents=True, exist_ok=True)
    link, package = here / "scrimp", Path(__file__).resolve().parents[2]
    if not link.is_symlink() or link.resolve() != package:
        link.unlink(missing_ok=True)
        link.symlink_to(package)
    cache = folder / "textattack-cache"
    cache.mkdir(exist_ok=True)
    (cache / "post_install_check_3").touch()
    corpus = folder / "nltk" / "corpora" / "stopwords" / "english"
    corpus.parent.mkdir(parents=True, exist_ok=True)
    corpus.write_text("\n".join(sorted(stop_words())) + "\n", encoding="utf-8")
    told = {"PYTHONPATH": str(here), "TA_CACHE_DIR": str(cache), "NLTK_DATA": str(folder / "nltk"), "HF_HUB_OFFLINE": "1"}
    return os.environ | single() | told


def single() -> dict[str, str]:
    """One thread per process, for both sides."""
    return {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
