"""Misspellings: a word with one character added, lost, moved or replaced. No chance is involved; every candidate is listed.

The bugs of TextBugger (Li et al. 2019) with its rules of length. Where it draws one misspelling of each kind, here they
are all candidates, or as many as `most` says. Its fifth bug, a similar word, is a word source given as `words`.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import regex

from .rules import Field
from .space import Source

Letters = tuple[str, ...]  # what a reader takes for one character each: a letter with its accents, an emoji

INSERT_BELOW = 6  # TextBugger inserts a space into words of fewer letters only,
SWAP_FROM = 5  # and swaps letters in words of more than 4
CLUSTER = regex.compile(r"\X")
LETTER = regex.compile(r"\p{L}\p{M}*")
DIGIT = regex.compile(r"\p{N}\p{M}*")
HAS_LETTER = regex.compile(r"\p{L}")

# Keys of a QWERTY keyboard; each row begins a part of a key further to the right.
ROWS = (("qwertyuiop", 0.0), ("asdfghjkl", 0.25), ("zxcvbnm", 0.75))
KEYS = {key: (column + shift, row) for row, (keys, shift) in enumerate(ROWS) for column, key in enumerate(keys)}
# Digits and signs that look like a letter.
SIGNS = {"a": "@", "b": "8", "e": "3", "g": "9", "i": "1", "l": "1", "o": "0", "s": "$", "t": "7", "z": "2"}
# Letters of other scripts that look the same in most typefaces: Cyrillic, Greek, Armenian and phonetic ones.
HOMOGLYPHS = dict(
    zip(
        "acdeghijlnopqsuvwxyABCEHIJKMNOPSTXYZ",
        "\u0430\u0441\u0501\u0435\u0261\u04bb\u0456\u0458\u04cf\u0578"
        "\u043e\u0440\u051b\u0455\u057d\u03bd\u051d\u0445\u0443"
        "\u0410\u0412\u0421\u0415\u041d\u0406\u0408\u041a\u041c"
        "\u039d\u041e\u0420\u0405\u0422\u0425\u03a5\u0396",
        strict=True,
    )
)


@dataclass(frozen=True)
class Bug:
    """A kind of misspelling. `write` lists the misspellings of a word, from its first letter to its last."""

    name: str
    about: str
    write: Callable[[Letters], Iterator[str]]


@dataclass(frozen=True)
class Chars:
    """Misspellings of each kind in turn. `most`: at most so many of a kind, spread evenly over the word.

    Words without a letter have none, so numbers stay. `words`, a source of whole words, adds its candidates at the end.
    """

    bugs: tuple[str, ...] = ("insert", "delete", "swap", "keyboard", "homoglyph")
    most: int | None = None
    words: Source | None = None

    def __post_init__(self) -> None:
        for name in self.bugs:
            if name not in BUGS:
                near = difflib.get_close_matches(name, BUGS, n=1)
                hint = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(BUGS)}"
                raise ValueError(f"no bug is called {name!r}; {hint}")
        if not self.bugs or len(set(self.bugs)) != len(self.bugs):
            raise ValueError(f"name at least one bug, and each once, got {self.bugs}; there are {', '.join(BUGS)}")
        if self.most is not None and self.most < 1:
            raise ValueError(f"most={self.most}: at least 1 misspelling of a kind; leave it out for all of them")

    @property
    def name(self) -> str:
        options = [*self.bugs, *([f"most={self.most}"] if self.most else []), *([self.words.name] if self.words else [])]
        return f"chars({','.join(options)})"

    @property
    def missing(self) -> str:
        return "too short to misspell or without a letter" + (f", {self.words.missing}" if self.words else "")

    @property
    def needs_tags(self) -> bool:
        return self.words is not None and self.words.needs_tags

    def __call__(self, field: Field, positions: Sequence[int]) -> list[tuple[str, ...]]:
        """Candidates for the words at these positions, all different and none equal to its word."""
        own = [field.words[position].text for position in positions]
        others = self.words(field, positions) if self.words else [()] * len(own)
        found = []
        for word, more in zip(own, others, strict=True):
            listed = dict.fromkeys((*self.misspellings(word), *more))
            listed.pop(word, None)
            found.append(tuple(listed))
        return found

    def misspellings(self, word: str) -> Iterator[str]:
        """What the bugs make of a word; two of them may make the same."""
        if not HAS_LETTER.search(word):
            return
        letters = tuple(CLUSTER.findall(word))
        for name in self.bugs:
            listed = [other for other in dict.fromkeys(BUGS[name].write(letters)) if other != word]
            yield from listed if self.most is None else _spread(listed, self.most)


def _spread(listed: list[str], most: int) -> list[str]:
    """The middle of each of `most` equal parts."""
    if len(listed) <= most:
        return listed
    return [listed[(2 * part + 1) * len(listed) // (2 * most)] for part in range(most)]


def _insert(letters: Letters) -> Iterator[str]:
    if len(letters) < INSERT_BELOW:
        for at in range(1, len(letters)):
            yield "".join((*letters[:at], " ", *letters[at:]))


def _delete(letters: Letters) -> Iterator[str]:
    for at in _inside(letters):
        if not DIGIT.fullmatch(letters[at]):
            yield "".join((*letters[:at], *letters[at + 1 :]))


def _swap(letters: Letters) -> Iterator[str]:
    if len(letters) >= SWAP_FROM:
        for a, b in pairwise(_inside(letters)):
            if LETTER.fullmatch(letters[a]) and LETTER.fullmatch(letters[b]):
                yield _with(letters, (a, _like(letters[a], letters[b])), (b, _like(letters[b], letters[a])))


def _keyboard(letters: Letters) -> Iterator[str]:
    for at in _inside(letters):
        for key in NEIGHBOURS.get(letters[at].lower(), ""):
            yield _with(letters, (at, _like(letters[at], key)))


def _sign(letters: Letters) -> Iterator[str]:
    for at in _inside(letters):
        if sign := SIGNS.get(letters[at].lower()):
            yield _with(letters, (at, sign))


def _homoglyph(letters: Letters) -> Iterator[str]:
    for at, letter in enumerate(letters):  # at the ends too: no reader sees the difference
        if other := HOMOGLYPHS.get(letter):
            yield _with(letters, (at, other))


def _inside(letters: Letters) -> range:
    """All places but the first and the last, by which readers know a word."""
    return range(1, len(letters) - 1)


def _with(letters: Letters, *changes: tuple[int, str]) -> str:
    changed = list(letters)
    for at, letter in changes:
        changed[at] = letter
    return "".join(changed)


def _like(old: str, new: str) -> str:
    """A letter in the case of the one it stands in for, where it has that case as one letter."""
    cased = new.upper() if old != old.lower() else new.lower() if old != old.upper() else new
    return cased if len(cased) == len(new) else new


def _neighbours(key: str) -> str:
    x, y = KEYS[key]
    near = {other: (abs(a - x) + abs(b - y), b, a) for other, (a, b) in KEYS.items() if abs(b - y) <= 1 and abs(a - x) <= 1}
    return "".join(sorted(set(near) - {key}, key=lambda other: near[other]))


NEIGHBOURS = {key: _neighbours(key) for key in KEYS}  # nearest first
BUGS = {
    bug.name: bug
    for bug in (
        Bug("insert", f"a space inside words of fewer than {INSERT_BELOW} letters", _insert),
        Bug("delete", "a letter inside the word left out", _delete),
        Bug("swap", f"two neighbours inside words of at least {SWAP_FROM} letters swapped", _swap),
        Bug("keyboard", "a letter inside the word replaced by one beside its key", _keyboard),
        Bug("sign", "a letter inside the word replaced by a digit or sign that looks like it", _sign),
        Bug("homoglyph", "a letter replaced by one of another script that looks the same", _homoglyph),
    )
}
