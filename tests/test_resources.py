"""Resources come from a small real wheel that a real pip finds in a local directory: no index, no network."""

import dataclasses
import hashlib
import json
import os
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
from scrimp import resources
from scrimp.resources import MANIFEST, Resource, ResourceError, fetch, listing

BODY = {
    "toy/data/words.txt": b"alpha beta\n" * 400,
    "toy/data/deep/more.bin": bytes(range(256)),
    "toy/data/.skipped": b"x",
}
EXTRA = {"toy/list": b"the\na\n", "toy/__init__.py": b"raise SystemExit('a wheel must never be imported')\n"}


def build(folder: Path, files: dict[str, bytes]) -> str:
    """Write toy-1.0 into the folder and give its SHA-256."""
    folder.mkdir(parents=True)
    wheel = folder / "toy-1.0-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
        archive.writestr(
            "toy-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: toy\nVersion: 1.0\nRequires-Python: <3\n"
        )
        archive.writestr("toy-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        archive.writestr("toy-1.0.dist-info/RECORD", "")
    return hashlib.sha256(wheel.read_bytes()).hexdigest()


def manifest(sha256: str) -> dict[str, Resource]:
    toy = Resource("toy-words", "toy", "1.0", "toy/data/", sha256, "MIT", "words", skip=(".skip*",), size=2_000_000)
    return {"toy-words": toy, "toy-list": dataclasses.replace(toy, name="toy-list", member="toy/list", skip=())}


@dataclasses.dataclass(frozen=True)
class Shelf:
    wheels: Path
    sha256: str
    filled: Path  # a cache that holds both resources
    said: str  # on stderr while it was filled


@pytest.fixture(scope="module")
def shelf(tmp_path_factory: pytest.TempPathFactory) -> Shelf:
    root = tmp_path_factory.mktemp("shelf")
    sha256 = build(root / "wheels", BODY | EXTRA)
    left = root / "filled" / ".toy-1.0-killed"
    left.mkdir(parents=True)
    said = start(manifest(sha256), root / "filled", root / "wheels").communicate()[1]
    return Shelf(root / "wheels", sha256, root / "filled", said)


def start(entries: dict[str, Resource], cache: Path, wheels: Path) -> "subprocess.Popen[str]":
    """Another process that fetches toy-words and prints where it is."""
    script = (
        "import json, sys; from scrimp import resources as r; "
        "r.MANIFEST = {k: r.Resource(**{**v, 'skip': tuple(v['skip'])}) for k, v in json.loads(sys.argv[1]).items()}; "
        "print(r.fetch('toy-words'))"
    )
    given = json.dumps({name: dataclasses.asdict(entry) for name, entry in entries.items()})
    keep = {name: value for name, value in os.environ.items() if not name.startswith(("SCRIMP_", "PIP_"))}
    env = keep | local_pip(wheels) | {"SCRIMP_CACHE": str(cache)}
    return subprocess.Popen(
        [sys.executable, "-c", script, given], env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def local_pip(wheels: Path) -> dict[str, str]:
    return {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(wheels), "PIP_CONFIG_FILE": os.devnull}


@pytest.fixture
def cache(shelf: Shelf, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A filled cache of the test's own, and a pip that finds nothing until `stocked` is called."""
    for name in [name for name in os.environ if name.startswith(("SCRIMP_", "PIP_"))]:
        monkeypatch.delenv(name)
    for name, value in local_pip(tmp_path / "nothing").items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(resources, "MANIFEST", manifest(shelf.sha256))
    shutil.copytree(shelf.filled, tmp_path / "cache")
    monkeypatch.setenv("SCRIMP_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def stocked(cache: Path, shelf: Shelf, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PIP_FIND_LINKS", str(shelf.wheels))


def whole(place: Path) -> bool:
    found = {str(file.relative_to(place)): file.read_bytes() for file in place.rglob("*") if file.is_file()}
    return found == {"words.txt": BODY["toy/data/words.txt"], "deep/more.bin": BODY["toy/data/deep/more.bin"]}


def test_the_wheel_is_fetched_with_a_receipt_and_one_line(shelf: Shelf) -> None:
    assert whole(shelf.filled / "toy-words")
    receipt = json.loads((shelf.filled / "toy-words.json").read_text())
    assert receipt["origin"]["sha256"] == shelf.sha256
    assert {file: was["sha256"] for file, was in receipt["files"].items()} == {
        "words.txt": hashlib.sha256(BODY["toy/data/words.txt"]).hexdigest(),
        "deep/more.bin": hashlib.sha256(BODY["toy/data/deep/more.bin"]).hexdigest(),
    }
    written = (shelf.filled / "toy-words.json").stat().st_mtime_ns
    for was in receipt["files"].values():  # a later write must show, and an archive of the cache must not lose the time
        assert was["mtime_ns"] <= written - 10**9
        assert was["mtime_ns"] % 10**9 == 0
    assert shelf.said.startswith("scrimp: fetching toy-words (toy 1.0, 2 MB) ... done in ")
    assert shelf.said.count("\n") == 1


def test_nothing_else_is_left_in_the_cache(shelf: Shelf) -> None:
    held = {path.name for path in shelf.filled.iterdir()}
    assert held == {"toy-words", "toy-words.json", "toy-list", "toy-list.json", ".toy-1.0.lock"}


def test_a_cached_resource_and_its_sibling_need_no_pip(cache: Path) -> None:
    assert fetch("toy-words") == cache / "toy-words"
    assert fetch("toy-list") == cache / "toy-list" / "list"
    assert fetch("toy-list").read_bytes() == EXTRA["toy/list"]


def flip(cache: Path) -> None:
    with (cache / "toy-words" / "words.txt").open("r+b") as file:
        file.seek(1000)
        file.write(b"#")


def truncate(cache: Path) -> None:
    file = cache / "toy-words" / "words.txt"
    was = file.stat()
    file.write_bytes(BODY["toy/data/words.txt"][:-1])
    os.utime(file, ns=(was.st_atime_ns, was.st_mtime_ns))


def lose(cache: Path) -> None:
    (cache / "toy-words" / "deep" / "more.bin").unlink()


def tear(cache: Path) -> None:
    (cache / "toy-words.json").write_text('{"origin": {"wheel": "to')


@pytest.mark.parametrize(
    ("harm", "why"),
    [(flip, "words.txt has changed"), (truncate, "4399 bytes instead of 4400"), (lose, "missing"), (tear, "receipt")],
)
@pytest.mark.usefixtures("stocked")
def test_damage_is_noticed_and_fetched_again(
    harm: Callable[[Path], None], why: str, cache: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    list_before = (cache / "toy-list" / "list").stat().st_ino
    harm(cache)
    assert whole(fetch("toy-words"))
    assert why in capfd.readouterr().err
    assert (cache / "toy-list" / "list").stat().st_ino == list_before, "a good sibling is left alone"
    fetch("toy-words")
    assert capfd.readouterr().err == ""


def test_a_copy_without_its_times_is_hashed_once(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hashed: list[Path] = []
    real = resources._sha256

    def count(path: Path) -> str:
        hashed.append(path)
        return real(path)

    monkeypatch.setattr(resources, "_sha256", count)
    fetch("toy-words")
    assert hashed == []
    words = cache / "toy-words" / "words.txt"
    os.utime(words)
    fetch("toy-words")
    fetch("toy-words")
    assert hashed == [words]


def test_another_version_in_the_cache_is_not_used(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    newer = dataclasses.replace(resources.MANIFEST["toy-words"], version="1.1")
    monkeypatch.setitem(resources.MANIFEST, "toy-words", newer)
    monkeypatch.setenv("SCRIMP_OFFLINE", "1")
    with pytest.raises(ResourceError, match="another version"):
        fetch("toy-words")


@pytest.mark.usefixtures("stocked")
def test_a_wheel_with_another_hash_is_refused(shelf: Shelf, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resources, "MANIFEST", manifest("0" * 64))
    with pytest.raises(ResourceError, match=rf"(?s)toy-words: toy-1.0.*{shelf.sha256}.*0{{64}}.*refused.*SCRIMP_TOY_WORDS"):
        fetch("toy-words")
    assert whole(cache / "toy-words"), "what was there stays"


def test_pip_failing_says_what_pip_said_and_what_to_do(cache: Path) -> None:
    lose(cache)
    with pytest.raises(ResourceError) as caught:
        fetch("toy-words")
    message = str(caught.value)
    for part in (
        "toy-words",
        "toy==1.0",
        "No matching distribution",
        "pip download",
        "SCRIMP_TOY_WORDS",
        "SCRIMP_OFFLINE",
    ):
        assert part in message


def test_offline_forbids_fetching_but_not_the_cache(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SCRIMP_OFFLINE", "1")
    monkeypatch.setattr(subprocess, "run", lambda *_, **__: pytest.fail("pip was called"))
    assert whole(fetch("toy-words"))
    flip(cache)
    with pytest.raises(ResourceError, match=r"(?s)toy-words: .*has changed.*SCRIMP_OFFLINE forbids.*pip download.*toy==1.0"):
        fetch("toy-words")


def test_path_then_variable_then_data_then_cache(cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, variable, data = tmp_path / "path", tmp_path / "variable", tmp_path / "data"
    for place in (path, variable, data / "toy-words"):
        place.mkdir(parents=True)
    monkeypatch.setenv("SCRIMP_TOY_WORDS", str(variable))
    monkeypatch.setenv("SCRIMP_DATA", str(data))
    assert fetch("toy-words", path) == path
    assert fetch("toy-words", str(path)) == path
    assert fetch("toy-words") == variable
    monkeypatch.delenv("SCRIMP_TOY_WORDS")
    assert fetch("toy-words") == data / "toy-words"
    (data / "toy-words").rmdir()
    assert fetch("toy-words") == cache / "toy-words"


@pytest.mark.usefixtures("cache")
def test_a_directory_that_holds_the_one_file_will_do(tmp_path: Path) -> None:
    (tmp_path / "list").write_text("of\n")
    assert fetch("toy-list", tmp_path) == fetch("toy-list", tmp_path / "list") == tmp_path / "list"


@pytest.mark.usefixtures("cache")
def test_a_path_that_does_not_exist_is_not_passed_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ResourceError, match=r"toy-words: the path given says .*gone, which does not exist"):
        fetch("toy-words", tmp_path / "gone")
    monkeypatch.setenv("SCRIMP_TOY_WORDS", str(tmp_path / "gone"))
    with pytest.raises(ResourceError, match=r"SCRIMP_TOY_WORDS says .*gone"):
        fetch("toy-words")


def test_an_unknown_name_meets_its_neighbours() -> None:
    with pytest.raises(ValueError, match=r"'wordnets'; did you mean wordnet\?"):
        fetch("wordnets")
    with pytest.raises(ValueError, match=r"known: wordnet, stopwords, "):
        fetch("qqq")


@pytest.mark.parametrize("below", ["", "deeper"])
@pytest.mark.usefixtures("stocked")
def test_a_cache_that_cannot_be_written_is_named(below: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv("SCRIMP_CACHE", str(tmp_path / "file" / below))
    with pytest.raises(ResourceError, match=rf"toy-words: cannot write .*{tmp_path / 'file'}.*set SCRIMP_CACHE"):
        fetch("toy-words")


def test_processes_that_ask_at_once_fetch_once(shelf: Shelf, tmp_path: Path) -> None:
    running = [start(manifest(shelf.sha256), tmp_path / "cache", shelf.wheels) for _ in range(3)]
    ended = [process.communicate() for process in running]
    assert [process.returncode for process in running] == [0, 0, 0], ended
    assert {out.strip() for out, _ in ended} == {str(tmp_path / "cache" / "toy-words")}
    assert sum(err.count("fetching toy-words (") for _, err in ended) == 1
    assert whole(tmp_path / "cache" / "toy-words")


@pytest.mark.parametrize("name", ["toy/data/../../../evil", "/evil", "toy\\..\\..\\evil", "C:/evil", "C:evil"])
def test_members_that_point_outside_are_refused(name: str, cache: Path, tmp_path: Path) -> None:
    build(tmp_path / "bad", BODY | {name: b"evil"})
    with pytest.raises(ResourceError, match=r"outside its directory, so the wheel is refused"):
        resources._unpack(resources.MANIFEST["toy-words"], tmp_path / "bad" / "toy-1.0-py3-none-any.whl", tmp_path)
    assert not list(tmp_path.rglob("evil"))
    assert whole(fetch("toy-words")), "what was there stays"


def test_a_missing_member_is_named(shelf: Shelf, tmp_path: Path) -> None:
    lost = dataclasses.replace(manifest(shelf.sha256)["toy-words"], member="toy/lost/")
    with pytest.raises(ResourceError, match=r"toy==1\.0 holds no toy/lost/"):
        resources._unpack(lost, shelf.wheels / "toy-1.0-py3-none-any.whl", tmp_path)


def test_the_listing_tells_what_is_here(cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    words, one = listing()
    assert (words.name, words.present, words.where, words.size) == ("toy-words", True, cache / "toy-words", 4400 + 256)
    assert (one.present, one.where, one.size, one.wheel, one.version) == (
        True,
        cache / "toy-list" / "list",
        6,
        "toy",
        "1.0",
    )
    flip(cache)
    monkeypatch.setenv("SCRIMP_TOY_LIST", str(tmp_path / "gone"))
    words, one = listing()
    assert (words.present, words.where, words.size) == (False, None, 0)
    assert "has changed" in words.note
    assert (one.present, one.where, one.size) == (False, tmp_path / "gone", 0)
    assert "SCRIMP_TOY_LIST" in one.note


@pytest.mark.parametrize("name", MANIFEST)
def test_the_manifest_is_complete(name: str) -> None:
    entry = MANIFEST[name]
    assert entry.name == name
    assert len(bytes.fromhex(entry.sha256)) == 32
    assert entry.variable.replace("_", "").isalnum()
    assert entry.variable not in {"SCRIMP_CACHE", "SCRIMP_DATA", "SCRIMP_OFFLINE"}
    assert not entry.member.startswith("/")
    assert entry.licence
    assert entry.about
    assert entry.size > 1_000_000
