"""HowNet: the same sememes, the same part of speech, the same form; every file it reads, and every fault of one."""

from __future__ import annotations

import json
import pickle
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from scrimp.attacks.types import Example
from scrimp.spaces import Space, StopWords, hownet
from scrimp.spaces.grid import WordGrid
from scrimp.spaces.hownet import HowNet, HowNetError, load
from scrimp.spaces.wordnet import lemma_of

# word, part of speech, definition: a small lexicon written for these tests
SENSES = (
    ("film", "noun", "{shows|表演物:content={fact|事情}}"),
    ("movie", "noun", "{shows|表演物:{fact|事情:content={~}}}"),  # the same set in another tree
    ("moving picture", "noun", "{shows|表演物:content={fact|事情}}"),
    ("play", "noun", "{shows|表演物}"),  # a part of the set
    ("story", "noun", "{fact|事情:content={shows|表演物},manner={text|语文}}"),  # more than the set
    ("film", "verb", "{record|记录:instrument={tool|用具}}"),
    ("tape", "verb", "{record|记录:instrument={tool|用具}}"),
    ("shoot", "verb", "{record|记录:instrument={tool|用具}};{tool|用具}"),
    ("tape", "noun", "{tool|用具:{record|记录:instrument={~}}}"),  # the verbs' sememes in a noun
    ("good", "adj", "{desired|良}"),
    ("great", "adj", "{desired|良}"),
    ("fine", "adj", "{desired|良}"),
    ("Grade-A", "adj", "{desired|良}"),
    ("excellent", "adj", "{desired|良}"),
    ("well", "adv", "{desired|良}"),
    ("nicely", "adv", "{desired|良}"),
    ("city", "noun", '{place|地方:PlaceSect={city|市},modifier={"ProperName|专"}}'),
    ("town", "noun", '{place|地方:modifier={"ProperName|专"},PlaceSect={city|市}}'),
    ("film", "noun", "{layer|膜}"),
    ("coating", "noun", "{layer|膜}RMK={not|非}"),
    ("glasses", "noun", "{tool|用具:{look|看:instrument={~}}}"),
    ("spectacles", "noun", "{look|看}{tool|用具}"),
    ("the", "det", "{desired|良}"),
    ("", "noun", "{desired|良}"),
    ("empty", "adj", ""),
    ("odd", "adj", "{?}"),
    ("untagged", "", "{desired|良}"),
)


def as_text(senses: Sequence[tuple[str, str, str]]) -> str:
    blocks = (
        f"NO.={number:012}\nW_C=词\nG_C=noun [2 5000  ] [ci2]\nS_C=\nE_C=~一，~二\nW_E={word}\n"
        f"G_E={pos} [51do verb -0 vt,sobj       ]\nS_E=\nE_E=a = b\nDEF={definition}\nRMK=\n"
        if pos
        else f"NO.={number:012}\nW_E={word}\nG_E=\nDEF={definition}\n"
        for number, (word, pos, definition) in enumerate(senses)
    )
    return "\n".join(blocks)


def as_entries(senses: Sequence[tuple[str, str, str]]) -> dict[str, Any]:
    return {
        f"{number:012}": {
            "No": f"{number:012}",
            "en_word": f"{word} ",
            "en_grammar": pos,
            "ch_word": "词",
            "Def": definition,
        }
        for number, (word, pos, definition) in enumerate(senses)
    }


def write(folder: Path, content: str | dict[str, Any] | list[Any]) -> Path:
    file = folder / ("hownet.txt" if isinstance(content, str) else "hownet.json")
    file.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
    return file


FORMS: dict[str, str | dict[str, Any] | list[Any]] = {
    "text": as_text(SENSES),
    "crlf": "\ufeff" + as_text(SENSES).replace("\n", "\r\n"),
    "json": as_entries(SENSES),
    "list": list(as_entries(SENSES).values()),
}


@pytest.fixture(params=FORMS)
def source(request: pytest.FixtureRequest, tmp_path: Path) -> HowNet:
    return HowNet(write(tmp_path, FORMS[request.param]))


def candidates(source: HowNet, text: str, word: str) -> str:
    grid = Space(source)([Example("one", (text,), 0)])[0]
    assert isinstance(grid, WordGrid)
    return " ".join(dict(zip(grid.slot_words, grid.candidates, strict=True)).get(word, ()))


@pytest.mark.parametrize(
    ("text", "word", "expected"),
    [
        ("I saw the film.", "film", "movie coating"),  # two senses, in their order
        ("I saw the films.", "films", "movies coatings"),
        ("THE MOVIE ENDED", "MOVIE", "FILM"),
        ("Films are fun.", "Films", "Movies Coatings"),
        ("They film it.", "film", "tape shoot"),
        ("She filmed it.", "filmed", "taped shot"),
        ("She is filming it.", "filming", "taping shooting"),
        ("He films it.", "films", "tapes shoots"),
        ("A good day.", "good", "great fine excellent"),  # a name stands in for capitals only
        ("Good days.", "Good", "Great Fine Grade-A Excellent"),
        ("She sang well.", "well", "nicely"),
        ("It is a finer day.", "finer", "better greater"),
        ("The cities grew.", "cities", "towns"),
        ("He found the glasses.", "glasses", "spectacles"),
        ("The play ended.", "play", ""),
        ("The story ended.", "story", ""),
        ("He was in Film.", "was", ""),
        ("An odd day.", "odd", ""),
        ("I met Town.", "Town", ""),  # tagged as a name
    ],
)
def test_candidates(source: HowNet, text: str, word: str, expected: str) -> None:
    assert candidates(source, text, word) == expected


def test_every_form_holds_the_same(tmp_path: Path) -> None:
    found = []
    for name, content in FORMS.items():
        (tmp_path / name).mkdir()
        lexicon = load(write(tmp_path / name, content))
        found.append((lexicon.senses, lexicon.groups))
    assert all(one == found[0] for one in found)
    assert ("film", "movie") in found[0][1]
    assert not any("moving picture" in group for group in found[0][1])


def test_candidates_worked_out_before(tmp_path: Path) -> None:
    table = {
        "film": {"noun": ["movie", "film", "movie", "moving picture"], "v": ["tape"]},
        "Good": {"adj": ["great"], "a": ["fine"]},
        "absorbed": {"adj": ["engrossed"]},
        "sad": {},
    }
    source = HowNet(write(tmp_path, table))
    assert candidates(source, "I saw the films.", "films") == "movies"
    assert candidates(source, "She filmed it.", "filmed") == "taped"
    assert candidates(source, "A good day.", "good") == "great fine"
    assert candidates(source, "An absorbed reader.", "absorbed") == "engrossed"
    assert candidates(source, "A sad day.", "sad") == ""


def test_a_word_that_wordnet_does_not_know_is_looked_up_as_it_stands(tmp_path: Path) -> None:
    source = HowNet(write(tmp_path, {"smartphone": {"noun": ["handset"]}, "smartphones": {"noun": ["handsets"]}}))
    assert lemma_of("smartphone", "NN") is None
    assert candidates(source, "I bought a smartphone.", "smartphone") == "handset"
    assert candidates(source, "I bought two smartphones.", "smartphones") == "handsets"


def test_a_form_that_is_listed_itself_is_taken_when_its_lemma_is_not(tmp_path: Path) -> None:
    source = HowNet(write(tmp_path, {"spun": {"verb": ["whirled"]}, "found": {"verb": ["x"]}, "find": {"verb": ["spot"]}}))
    assert lemma_of("spun", "VBD") == ("spin", "VBD")
    assert candidates(source, "She spun it.", "spun") == "whirled"
    assert candidates(source, "She found it.", "found") == "spotted"


def test_grids_do_not_depend_on_the_batch(source: HowNet) -> None:
    space = Space(source, (StopWords("textfooler"),))
    batch = [
        Example(str(i), (text,), 0) for i, text in enumerate(("I saw good films.", "", "😀 the", "She filmed it well."))
    ]
    together = [getattr(grid, "slots", None) for grid in space(batch)]
    hownet._memo.cache_clear()
    assert [getattr(space([one])[0], "slots", None) for one in reversed(batch)][::-1] == together
    assert space(batch)[2].why_empty == "no word of 1 has a candidate: 1 stop words"


def test_parsed_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = write(tmp_path, as_text(SENSES))
    reads: list[Path] = []
    real = Path.read_bytes

    def read(self: Path) -> bytes:
        reads.append(self)
        return real(self)

    monkeypatch.setattr(Path, "read_bytes", read)
    assert load(file) is load(str(file))
    assert HowNet(file).name == f"hownet({load(file).digest[:8]})"
    assert reads == [file]
    file.write_text(as_text(SENSES[:5]), encoding="utf-8")
    assert len(load(file).groups) == 3
    assert len(reads) == 2


def test_the_name_stands_for_the_content(tmp_path: Path) -> None:
    name = HowNet(write(tmp_path, FORMS["text"])).name
    (tmp_path / "b").mkdir()
    assert HowNet(write(tmp_path / "b", FORMS["text"])).name == name
    assert HowNet(write(tmp_path / "b", as_text(SENSES[1:]))).name != name
    assert name.startswith("hownet(")
    assert len(name) == len("hownet(12345678)")


# where the data is


def test_the_variable_and_the_data_directory_say_where(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "data").mkdir()
    first, second = write(tmp_path, {"film": {"noun": ["a"]}}), write(tmp_path / "data", {"film": {"noun": ["b"]}})
    monkeypatch.delenv("SCRIMP_HOWNET", raising=False)
    monkeypatch.setenv("SCRIMP_DATA", str(tmp_path / "data"))
    assert candidates(HowNet(), "The film ended.", "film") == "b"
    monkeypatch.setenv("SCRIMP_HOWNET", str(first))
    assert candidates(HowNet(), "The film ended.", "film") == "a"
    assert candidates(HowNet(second), "The film ended.", "film") == "b"


def test_absent_data_says_how_to_get_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SCRIMP_HOWNET", raising=False)
    monkeypatch.setenv("SCRIMP_DATA", str(tmp_path))
    steps = r"[\s\S]*pip install OpenHowNet.*OpenHowNet\.download[\s\S]*python -c \"import json, pickle[\s\S]*HowNet\(path\).*SCRIMP_HOWNET"
    with pytest.raises(HowNetError, match="no path was given and SCRIMP_HOWNET is not set" + steps):
        HowNet()(None, [])  # type: ignore[arg-type]  # it does not come to that
    with pytest.raises(HowNetError, match=r"none\.json \(the path given\): No such file or directory" + steps):
        load(tmp_path / "none.json")
    monkeypatch.setenv("SCRIMP_HOWNET", str(tmp_path))
    with pytest.raises(HowNetError, match=r"\(SCRIMP_HOWNET\) is a directory; give the file itself" + steps):
        load()


def test_a_pickle_is_never_loaded(tmp_path: Path) -> None:
    """The command in the message exports it."""
    import subprocess
    import sys

    class Trap:
        def __reduce__(self) -> tuple[Any, ...]:
            return (Path.touch, (tmp_path / "sprung",))

    file = tmp_path / "HowNet_dict_complete"
    file.write_bytes(pickle.dumps(Trap()))
    with pytest.raises(HowNetError, match="is a pickle, and unpickling runs whatever a file says, so it is never done here"):
        load(file)
    assert not (tmp_path / "sprung").exists()
    file.write_bytes(pickle.dumps(as_entries(SENSES)))
    with pytest.raises(HowNetError) as fault:
        load(file)
    command = str(fault.value).split('python -c "')[1].rstrip('"')
    subprocess.run([sys.executable, "-c", command], cwd=tmp_path, check=True)
    assert candidates(HowNet(tmp_path / "hownet.json"), "I saw the film.", "film") == "movie coating"


# faults


GOOD = "NO.=1\nW_E=film\nG_E=noun\nDEF={shows|表演物}\n"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (
            GOOD + "W_E film\n",
            r"hownet\.txt, line 5: 'W_E film' is no line of HowNet's dictionary; every line must be KEY=value",
        ),
        ("W_E=film\n" + GOOD, r"line 1: 'W_E=film' is no line .* every entry must begin with NO\.=: repair or remove"),
        ("film: movie\n", "line 1: 'film: movie' is no line"),
        (GOOD + "\n\nNO.=2\nW_E=x\nDEF={a|b}\nNO.=3\n", r"line 7: the entry '2' has no G_E=; repair or remove the entry"),
        (GOOD + "NO.=2\nW_E=x\nG_E=noun\n", r"line 5: the entry '2' has no DEF="),
        (
            GOOD.replace("noun", "nuon"),
            r"line 1: 'film' has the part of speech 'nuon'; HowNet has noun, verb, adj, adv, aux",
        ),
        (GOOD.replace("}", ""), r"line 1: '\{shows\|表演物' is cut off, with \{ and no \}: repair or remove the entry"),
        (GOOD.replace("noun", "pron"), r"has no English noun, verb, adjective or adverb; give HowNet's whole dictionary"),
        ("", "has no English noun"),
        ('{"1": {"en_word"', r"hownet\.txt: Expecting .*line 1 column.*one JSON value: export or download it again"),
        ({}, "has no English noun"),
        ([], "has no English noun"),
        ([1], r"hownet\.json, entry 0: 1 is no entry; it must hold en_word, en_grammar and Def: export it again"),
        ({"7": {"en_word": "film", "Def": "{a|b}"}}, r"entry '7': en_grammar is None; it must be a text: repair or remove"),
        ({"7": {"en_word": 3, "en_grammar": "noun", "Def": ""}}, r"entry '7': en_word is 3; it must be a text"),
        (
            {"7": {"en_word": "x", "en_grammar": "NN", "Def": "{a|b}"}},
            r"entry '7': 'x' has the part of speech 'NN'; HowNet has",
        ),
        ({"film": {"NN": ["x"]}}, r"word 'film': there is no part of speech 'NN'; use noun, verb, adj or adv"),
        ({"film": {"noun": "x"}}, r"word 'film': the candidates for noun must be a list of texts, got 'x'"),
        ({"film": {"noun": [1]}}, r"word 'film': the candidates for noun must be a list of texts, got \[1\]"),
        ({"film": {"noun": ["x"]}, "day": ["y"]}, r"word 'day': \['y'\] must be parts of speech with candidates"),
        ({"film": ["x"]}, r"entry 'film': \['x'\] is no entry"),
    ],
)
def test_faults_are_named(tmp_path: Path, content: str | dict[str, Any] | list[Any], message: str) -> None:
    with pytest.raises(HowNetError, match=message):
        load(write(tmp_path, content))


def test_other_encodings_are_refused(tmp_path: Path) -> None:
    file = tmp_path / "hownet.txt"
    file.write_bytes(GOOD.encode("gb18030"))
    with pytest.raises(HowNetError, match=r"hownet\.txt, line 4: byte 0x\w\w is not UTF-8; .* iconv -f gb18030 -t utf-8"):
        load(file)
