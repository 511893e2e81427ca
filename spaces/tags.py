"""Penn Treebank tags for words, from spaCy, one tag per word of ours."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from functools import cache
from typing import Any

from .tokens import Word

# Four open classes as WordNet names them. NNP and NNPS are missing on purpose: a name has no synonym.
CLASSES = {"NN": "n", "NNS": "n", "JJ": "a", "JJR": "a", "JJS": "a", "RB": "r", "RBR": "r", "RBS": "r"}
CLASSES |= dict.fromkeys(("VB", "VBD", "VBG", "VBN", "VBP", "VBZ"), "v")
REMEMBERED = 4096  # texts; about 2 MB at 250 words, since tags are shared strings

_memo: OrderedDict[str, tuple[str, ...]] = OrderedDict()


def part_of_speech(tag: str) -> str:
    """WordNet's letter for a Penn tag, empty outside nouns, verbs, adjectives and adverbs."""
    return CLASSES.get(tag, "")


def tag(texts: Sequence[str], words: Sequence[Sequence[Word]]) -> list[tuple[str, ...]]:
    """One Penn tag per word for each text, empty where the tagger sees no word."""
    fresh = {text: found for text, found in zip(texts, words, strict=True) if text not in _memo}
    # Texts are scored one by one (batch_size=1), so that no tag can depend on its neighbours' lengths. Nothing is lost:
    # 300 reviews took 111/s alone, 129/s in batches of 8, 79/s in batches of 256, always with the same tags.
    docs = _tagger().pipe((_readable(text) for text in fresh), batch_size=1) if fresh else ()
    found = {text: _align(doc, fresh[text]) for text, doc in zip(fresh, docs, strict=True)}
    answers = []
    for text in texts:
        tags = found.get(text) or _memo.get(text) or ()
        answers.append(tags)
        _memo[text] = tags
        _memo.move_to_end(text)
    while len(_memo) > REMEMBERED:
        _memo.popitem(last=False)
    return answers


def _align(doc: Any, words: Sequence[Word]) -> tuple[str, ...]:
    tags: list[str] = []
    tokens = [(token.idx, token.idx + len(token), token.tag_) for token in doc]
    at = 0
    for word in words:
        while at < len(tokens) and tokens[at][1] <= word.start:
            at += 1
        last = at
        while last + 1 < len(tokens) and tokens[last + 1][0] < word.end:
            last += 1
        if at == len(tokens):
            tags.append("")
        elif last > at and "-" in word.text:
            # well-known is cut in three: the last part is the head, and a participle there makes an adjective.
            tags.append("JJ" if tokens[last][2] in ("VBN", "VBD", "VBG") else tokens[last][2])
        else:
            tags.append(tokens[at][2])  # children's, don't: the part before the apostrophe
    return tuple(tags)


def _readable(text: str) -> str:
    """The text with the same length, without the lone surrogates that spaCy cannot store."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return "".join("?" if "\ud800" <= character <= "\udfff" else character for character in text)
    return text


@cache
def _tagger() -> Any:
    import spacy

    from ..resources import fetch

    # The Penn tags are enough; attribute_ruler would only translate them, and takes half of the time.
    unused = ["parser", "ner", "senter", "lemmatizer", "attribute_ruler"]
    pipeline = spacy.load(fetch("tagger"), exclude=unused)
    pipeline.max_length = 1 << 30  # the limit guards the parser's memory, and no parser runs
    return pipeline
