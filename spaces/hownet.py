"""Words of the same sememes in HowNet: what two words mean is made of the same smallest parts of meaning.

HowNet's data is not part of this package. Three files are read:
- the dictionary in its own text form: blocks of NO.=, W_E= (word), G_E= (part of speech), DEF= (sememes), ...
- the dictionary that OpenHowNet downloads, exported to JSON: {"000000244401": {"en_word": "apple",
  "en_grammar": "noun", "Def": "{fruit|水果}", ...}, ...}, or a list of such entries
- candidates worked out before, as JSON: {"apple": {"noun": ["pear", "fig"]}, ...}
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import regex

from .casing import in_case
from .inflect import inflect
from .rules import Field
from .tags import part_of_speech
from .tokens import is_word
from .wordnet import lemma_of

VARIABLE = "SCRIMP_HOWNET"
POS = {"noun": "n", "verb": "v", "adj": "a", "adv": "r", "n": "n", "v": "v", "a": "a", "r": "r"}
# The other tags of HowNet: words that nothing replaces.
# fmt: off
OTHER_TAGS = frozenset({
    "aux", "char", "classifier", "conj", "coor", "det", "echo", "expr", "infs", "letter", "num", "pp", "prefix", "prep",
    "pron", "pun", "root", "stru", "suffix", "wh",
})
# fmt: on
SEMEME = regex.compile(r'[{"]([^{}":;,=|]+\|[^{}":;,=]+)')
LINE = regex.compile(r"([A-Z][A-Z_.]*)=(.*)")
EXPORT = "import json, pickle; json.dump(pickle.load(open({pickle!r}, 'rb')), open('hownet.json', 'w'))"
STEPS = f"""
HowNet's data comes from its authors. To use it:
  1. python -m pip install OpenHowNet && python -c "import OpenHowNet; OpenHowNet.download()"
  2. in the resources directory of that package, if you trust the download (unpickling runs what a file says):
     python -c "{EXPORT.format(pickle="HowNet_dict_complete")}"
  3. give the path of hownet.json as HowNet(path), or in the variable {VARIABLE}"""


class HowNetError(ValueError):
    """HowNet's data cannot be used. The message names the file, the place, the value, the rule and the next step."""


class Sense(NamedTuple):
    word: str
    pos: str  # n, v, a or r
    sememes: frozenset[str]


class Lexicon(NamedTuple):
    """`groups` hold words that stand in for each other; `senses` say to which groups a lower-case word belongs."""

    senses: dict[tuple[str, str], list[int]]
    groups: list[tuple[str, ...]]
    digest: str

    def near(self, word: str, pos: str) -> Iterator[str]:
        for group in self.senses.get((word, pos), ()):
            yield from self.groups[group]


@dataclass(frozen=True)
class HowNet:
    """Words that share a whole set of sememes in a sense of the tagged part of speech, inflected like the word.

    Candidates come in order of sense, then of the file. Without `path`, the variable SCRIMP_HOWNET says where the data
    is, or hownet.json in SCRIMP_DATA.
    """

    path: str | os.PathLike[str] | None = None
    missing = "unknown to hownet"
    needs_tags = True

    @property
    def name(self) -> str:
        return f"hownet({load(self.path).digest[:8]})"

    def __call__(self, field: Field, positions: Sequence[int]) -> list[tuple[str, ...]]:
        """Candidates for the words at these positions, none equal to its word."""
        lexicon = load(self.path)
        known = _memo(lexicon.digest)
        answers = []
        for position in positions:
            word = field.words[position].text
            key = (word.lower(), field.tags[position])
            found = known.get(key)
            if found is None:
                found = known[key] = tuple(dict.fromkeys(_find(lexicon, *key)))
            answers.append(in_case(word, key[0], found))
        return answers


def _find(lexicon: Lexicon, word: str, tag: str) -> Iterator[str]:
    pos = part_of_speech(tag)
    if not pos:
        return
    lemma, form = lemma_of(word, tag) or (word, "")
    if form is None:
        return
    if (lemma, pos) not in lexicon.senses:
        lemma, form = word, ""  # listed as it stands, if at all
    for other in lexicon.near(lemma, pos):
        if other.lower() in (lemma, word):
            continue
        shaped = inflect(other, form)
        if shaped is not None and shaped.lower() != word:
            yield shaped


@cache
def _memo(digest: str) -> dict[tuple[str, str], tuple[str, ...]]:
    """What is known per lower-case word and tag. A language's vocabulary bounds it."""
    return {}


def load(path: str | os.PathLike[str] | None = None) -> Lexicon:
    """The lexicon of a file, parsed once in a process."""
    file, by = _place(path)
    try:
        status = file.stat()
    except OSError as fault:
        raise HowNetError(f"{file} ({by}): {fault.strerror}{STEPS}") from fault
    if file.is_dir():
        raise HowNetError(f"{file} ({by}) is a directory; give the file itself{STEPS}")
    return _load(file, status.st_size, status.st_mtime_ns)


def _place(path: str | os.PathLike[str] | None) -> tuple[Path, str]:
    if path is not None:
        return Path(path).expanduser().absolute(), "the path given"
    if told := os.environ.get(VARIABLE):
        return Path(told).expanduser().absolute(), VARIABLE
    if root := os.environ.get("SCRIMP_DATA"):
        file = Path(root).expanduser().absolute() / "hownet.json"
        if file.is_file():
            return file, "SCRIMP_DATA"
    raise HowNetError(f"no path was given and {VARIABLE} is not set{STEPS}")


@cache
def _load(file: Path, size: int, changed: int) -> Lexicon:
    content = file.read_bytes()
    if content.startswith(b"\x80"):
        raise HowNetError(
            f"{file} is a pickle, and unpickling runs whatever a file says, so it is never done here; if you trust the "
            f'file, export it yourself and give hownet.json:\n  python -c "{EXPORT.format(pickle=str(file))}"'
        )
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as fault:
        line = content.count(b"\n", 0, fault.start) + 1
        raise HowNetError(
            f"{file}, line {line}: byte {content[fault.start]:#04x} is not UTF-8; convert the file, e.g. with "
            "iconv -f gb18030 -t utf-8"
        ) from fault
    digest = hashlib.sha256(content).hexdigest()
    if not text.lstrip().startswith(("{", "[")):
        return _grouped(_from_text(file, text), digest, file)
    try:
        data = json.loads(text)
    except ValueError as fault:
        raise HowNetError(f"{file}: {fault}; the file must be one JSON value: export or download it again") from fault
    first = next(iter(data.values()), None) if isinstance(data, dict) else None
    if isinstance(first, dict) and not {"en_word", "Def"} & set(first):
        return _listed(file, data, digest)
    entries = data.items() if isinstance(data, dict) else enumerate(data)
    return _grouped((sense for name, entry in entries if (sense := _from_entry(file, name, entry))), digest, file)


def _from_text(file: Path, text: str) -> Iterator[Sense]:
    """Blocks that begin with NO.=; other keys than the three needed are passed over."""
    block: dict[str, str] = {}
    began = 0
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        match = LINE.fullmatch(line.strip())
        if not match or (not block and match[1] != "NO."):
            raise HowNetError(
                f"{file}, line {number}: {_short(line)} is no line of HowNet's dictionary; every line must be KEY=value, and "
                "every entry must begin with NO.=: repair or remove the line"
            )
        if match[1] == "NO." and block:
            yield from _of_block(file, began, block)
            block = {}
        if match[1] == "NO.":
            began = number
        block[match[1]] = match[2].strip()
    if block:
        yield from _of_block(file, began, block)


def _of_block(file: Path, line: int, block: dict[str, str]) -> Iterator[Sense]:
    where = f"{file}, line {line}"
    for key in ("W_E", "G_E", "DEF"):
        if key not in block:
            raise HowNetError(f"{where}: the entry {block['NO.']!r} has no {key}=; repair or remove the entry")
    if sense := _sense(where, block["W_E"], block["G_E"], block["DEF"]):
        yield sense


def _from_entry(file: Path, name: object, entry: object) -> Sense | None:
    where = f"{file}, entry {name!r}"
    if not isinstance(entry, dict):
        raise HowNetError(f"{where}: {_short(entry)} is no entry; it must hold en_word, en_grammar and Def: export it again")
    values = []
    for key in ("en_word", "en_grammar", "Def"):
        value = entry.get(key)
        if not isinstance(value, str):
            raise HowNetError(f"{where}: {key} is {_short(value)}; it must be a text: repair or remove the entry")
        values.append(value)
    return _sense(where, *values)


def _sense(where: str, word: str, tag: str, definition: str) -> Sense | None:
    """A sense of one English word of an open class, None of anything else."""
    word, (tag, *_) = word.strip(), [*tag.split(), ""]
    if tag and tag not in POS and tag not in OTHER_TAGS:
        raise HowNetError(
            f"{where}: {word!r} has the part of speech {tag!r}; HowNet has noun, verb, adj, adv, "
            f"{', '.join(sorted(OTHER_TAGS))}: repair or remove the entry"
        )
    if "{" in definition and "}" not in definition:
        raise HowNetError(f"{where}: {_short(definition)} is cut off, with {{ and no }}: repair or remove the entry")
    sememes = frozenset(found.strip().replace(" ", "_") for found in SEMEME.findall(definition.partition("RMK=")[0]))
    return Sense(word, POS[tag], sememes) if tag in POS and sememes and is_word(word) else None


def _grouped(senses: Iterator[Sense], digest: str, file: Path) -> Lexicon:
    number: dict[tuple[str, frozenset[str]], int] = {}
    members: list[dict[str, None]] = []
    places: dict[tuple[str, str], dict[int, None]] = {}
    for word, pos, sememes in senses:
        group = number.setdefault((pos, sememes), len(number))
        if group == len(members):
            members.append({})
        members[group][word] = None
        places.setdefault((word.lower(), pos), {})[group] = None
    if not places:
        raise HowNetError(f"{file} has no English noun, verb, adjective or adverb; give HowNet's whole dictionary{STEPS}")
    return Lexicon({key: list(groups) for key, groups in places.items()}, [tuple(words) for words in members], digest)


def _listed(file: Path, data: dict[str, Any], digest: str) -> Lexicon:
    senses: dict[tuple[str, str], list[int]] = {}
    groups: list[tuple[str, ...]] = []
    for word, by_tag in data.items():
        where = f"{file}, word {word!r}"
        if not isinstance(by_tag, dict):
            raise HowNetError(f'{where}: {_short(by_tag)} must be parts of speech with candidates, {{"noun": ["fig"]}}')
        for tag, candidates in by_tag.items():
            if tag not in POS:
                raise HowNetError(f"{where}: there is no part of speech {tag!r}; use noun, verb, adj or adv")
            if not isinstance(candidates, list) or not all(isinstance(one, str) for one in candidates):
                raise HowNetError(f"{where}: the candidates for {tag} must be a list of texts, got {_short(candidates)}")
            senses.setdefault((word.lower(), POS[tag]), []).append(len(groups))
            groups.append(tuple(filter(is_word, candidates)))
    return Lexicon(senses, groups, digest)


def _short(value: object) -> str:
    written = repr(value)
    return written if len(written) <= 60 else written[:57] + "..."
