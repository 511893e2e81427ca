"""Candidates in the case of the word they stand in for."""

from __future__ import annotations


def in_case(word: str, lower: str, found: tuple[str, ...]) -> tuple[str, ...]:
    """Candidates in the word's case. Names (Earth, TV) stand in for words written with a capital only."""
    if word == lower:
        kept = [other for other in found if other == other.lower()]
        return found if len(kept) == len(found) else tuple(kept)
    if len(word) > 1 and word == word.upper():
        cased = (other.upper() for other in found)
    elif word[0] != lower[0]:
        cased = (other[0].upper() + other[1:] for other in found)
    else:
        cased = (other for other in found)  # iPhone: nothing to imitate
    return tuple(other for other in dict.fromkeys(cased) if other != word)
