"""Where a text goes: places in a template, texts in groups."""

from __future__ import annotations

import re
from collections.abc import Sequence

from ..attacks.types import Text
from .wrap import VictimError

FIELD = re.compile(r"\{text\}|\{first\}|\{second\}")


def groups(places: Sequence[int], size: int) -> list[Sequence[int]]:
    """The places in groups of at most `size`."""
    return [places[at : at + size] for at in range(0, len(places), size)]


def misfits(name: str, fields: int, texts: Sequence[Text]) -> dict[int, Exception]:
    """The texts with another number of fields than the request has room for; 0 takes any."""
    return {
        place: VictimError(
            f"{name} has room for {fields} field(s), got a text of {len(text)}; use {{text}} for one field, {{first}} and "
            "{second} for two"
        )
        for place, text in enumerate(texts)
        if fields and len(text) != fields
    }


def fill(template: str, text: Text) -> str:
    """The template with {text}, {first} and {second} replaced, in one pass: braces inside the text stay."""
    place = {"{text}": 0, "{first}": 0, "{second}": 1}
    return FIELD.sub(lambda found: text[place[found[0]]], template)


def fields_of(template: str) -> int:
    """How many fields a template reads: 1, 2, or 0 when it reads none."""
    found = set(FIELD.findall(template))
    if found == {"{text}"}:
        return 1
    if found == {"{first}", "{second}"}:
        return 2
    if not found:
        return 0
    raise VictimError(
        f"a template reads {{text}}, or both {{first}} and {{second}}; this one reads {', '.join(sorted(found))}"
    )
