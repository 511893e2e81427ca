"""Words with their places. Whatever is not a word is left alone, so a text is rebuilt character for character."""

from __future__ import annotations

from typing import NamedTuple

import regex

# A letter or digit, its combining marks, and apostrophes or hyphens that have a letter on both sides.
PLAIN = r"[\p{L}\p{N}][\p{L}\p{N}\p{M}]*(?:['’\-][\p{L}\p{N}][\p{L}\p{N}\p{M}]*)*+"
# Film reviews are full of <br />, and WordNet knows Br as bromine: names of tags and entities are not words.
MARKUP = r"</?[a-zA-Z][a-zA-Z0-9]*(?:\s[^<>]*)?/?>|&(?:\#(?:[0-9]{1,7}|[xX][0-9a-fA-F]{1,6})|[a-zA-Z][a-zA-Z0-9]{1,7});"
WORD = regex.compile(PLAIN)
SCAN = regex.compile(f"(?:{MARKUP})(*SKIP)(*FAIL)|{PLAIN}")


class Word(NamedTuple):
    start: int
    end: int
    text: str


def words(text: str) -> list[Word]:
    """The words of a text from left to right; they never overlap."""
    return [Word(match.start(), match.end(), match.group()) for match in SCAN.finditer(text)]


def is_word(text: str) -> bool:
    """Whether a text is exactly one word, so that putting it in a word's place keeps the number of words."""
    return WORD.fullmatch(text) is not None
