"""Inflection: give a lemma the form that a Penn tag asks for.

Regular English rules, and the irregular forms that WordNet lists in *.exc for the opposite purpose. Mass nouns are not
known to be such ("informations"); no free list of them is at hand.
"""

from __future__ import annotations

from collections import defaultdict
from functools import cache
from pathlib import Path

import regex

INFLECTED = frozenset({"NNS", "VBZ", "VBG", "VBD", "VBN", "JJR", "JJS"})
# Irregular verbs whose forms the lists cannot tell apart or do not give: third person, past, participle.
VERBS = {
    "be": ("is", "was", "been"),
    "have": ("has", "had", "had"),
    "bear": ("bears", "bore", "borne"),
    "beat": ("beats", "beat", "beaten"),
    "behold": ("beholds", "beheld", "beheld"),
    "come": ("comes", "came", "come"),
    "become": ("becomes", "became", "become"),
    "overcome": ("overcomes", "overcame", "overcome"),
    "run": ("runs", "ran", "run"),
    "outrun": ("outruns", "outran", "outrun"),
    "overrun": ("overruns", "overran", "overrun"),
    "rerun": ("reruns", "reran", "rerun"),
    "bid": ("bids", "bid", "bid"),
    "slide": ("slides", "slid", "slid"),
    "sink": ("sinks", "sank", "sunk"),
    "shrink": ("shrinks", "shrank", "shrunk"),
    "thrive": ("thrives", "thrived", "thrived"),
    "dive": ("dives", "dived", "dived"),
    "melt": ("melts", "melted", "melted"),
    "spit": ("spits", "spat", "spat"),
    "swell": ("swells", "swelled", "swollen"),
    "underlie": ("underlies", "underlay", "underlain"),
    "underwrite": ("underwrites", "underwrote", "underwritten"),
}
# fmt: off
# The past is the lemma itself: nothing for WordNet to list.
SAME_PAST = frozenset({
    "beset", "bet", "broadcast", "burst", "cast", "cost", "cut", "forecast", "hit", "hurt", "input", "inset", "let",
    "miscast", "misread", "offset", "outbid", "output", "overbid", "overspread", "proofread", "put", "quit", "read",
    "recast", "reread", "reset", "rid", "set", "shed", "shut", "slit", "split", "spread", "sublet", "telecast", "thrust",
    "typecast", "typeset", "underbid", "undercut", "upset", "wet",
})
# WordNet lists learnt, wrought and the like, but the form in -ed is commoner.
RATHER_ED = frozenset({
    "abide", "address", "bless", "burn", "bypass", "chide", "clothe", "curse", "dream", "gild", "gird", "grip", "heave",
    "ken", "lean", "leap", "learn", "misspell", "overpass", "overspill", "pen", "ski", "smell", "spell", "spill", "spoil",
    "squeegee", "stave", "transfix", "unclothe", "unlearn", "upheave", "work",
})
NO_PLURAL = frozenset({
    "aircraft", "deer", "fish", "means", "moose", "salmon", "series", "sheep", "shrimp", "species", "swine", "trout",
})
# A ch that sounds like k takes -s.
HARD_CH = frozenset({
    "biotech", "czech", "diptych", "epoch", "eunuch", "hierarch", "loch", "matriarch", "monarch", "oligarch", "patriarch",
    "stomach", "tech", "triptych",
})
NO_DEGREES = frozenset({
    "best", "fun", "grown", "halfway", "hind", "ill", "just", "least", "most", "off", "real", "right", "worst", "wrong",
})
# fmt: on
DEGREES = {"far": ("farther", "farthest"), "many": ("more", "most"), "well": ("better", "best")}
KEEPS_E = frozenset({"binge", "dinge", "singe", "swinge", "tinge"})  # singeing is not singing
# mothers-in-law, men of letters, passers-by: the first word takes the plural
HEAD_FIRST = regex.compile(
    r"(.+?)( (?:of|de|in) .+|-(?:of|de|in)-[^ ]+|-at-(?:arms|law))|(hanger|looker|passer|runner)(-(?:by|on|up))"
)
MAN_PLURALS = ("human", "german", "roman", "norman", "ottoman", "shaman", "talisman", "caiman")  # these take -s
OES = frozenset(("echo", "embargo", "hero", "mosquito", "potato", "tomato", "torpedo", "veto", "volcano"))
# Where the listed plural is the everyday one. Others are learned variants (formulae) or archaic (brethren).
STRONG_PLURAL = regex.compile(r".*(?:[^f]fe?|ouse|foot|tooth|goose|child|[sx]is|testis|enon|erion)|ox")
SIBILANT = ("s", "x", "z", "ch", "sh")
VOWEL_GROUP = regex.compile("i(?=[ao])|[aeiouy]+")
CVC = regex.compile(r"(?:.+-)?y?(?:qu|[^aeiouy])*[aeiou][^aeiouwxy]")  # one short syllable: the last consonant doubles


def inflect(lemma: str, tag: str) -> str | None:
    """The lemma in the form of the tag; None when one word cannot say it ("more beautiful")."""
    if tag not in INFLECTED:
        return lemma
    if tag == "NNS":
        if match := HEAD_FIRST.fullmatch(lemma):
            head, rest = filter(None, match.groups())
            return f"{inflect(head, tag)}{rest}"
        first, _, head = lemma.rpartition(" ")
        return f"{first} {_plural(head)}".strip()
    if tag.startswith("JJ"):
        return None if " " in lemma else _graded(lemma, "er" if tag == "JJR" else "est")
    head, _, rest = lemma.partition(" ")
    return f"{_verb(head, tag)} {rest}".strip()


def guess(word: str, lemma: str, pos: str) -> str:
    """The Penn tag that a word's own form suggests, for spaces that do not pay for a tagger. Empty for a lemma."""
    if word == lemma:
        return ""
    if pos == "n":
        return "NNS"
    if pos == "v":
        if lemma == "be":
            return {"am": "VBP", "are": "VBP", "is": "VBZ", "being": "VBG", "been": "VBN"}.get(word, "VBD")
        return "VBG" if word.endswith("ing") else "VBZ" if word.endswith("s") else "VBD"
    if pos == "a":
        return "JJS" if word.endswith("st") else "JJR"
    return ""


def _plural(noun: str) -> str:
    if noun in NO_PLURAL:
        return noun
    if noun.endswith("man") and not noun.lower().endswith(MAN_PLURALS):
        return noun[:-2] + "en"
    listed = _listed("noun").get(noun, ())
    if listed and STRONG_PLURAL.fullmatch(noun):
        return listed[0]
    if noun.endswith("o") and noun not in OES:
        return noun + "s"
    if noun.endswith("z") and CVC.fullmatch(noun):
        return noun + "zes"
    return _with_s(noun)


def _with_s(word: str) -> str:
    if word in HARD_CH or word.endswith("-by"):
        return word + "s"
    if word.endswith("quy") or (word.endswith("y") and word[-2:-1] not in "aeiou"):
        return word[:-1] + "ies"
    if word.endswith(SIBILANT) or (word.endswith("o") and word[-2:-1] not in "aeiou"):
        return word + "es"
    return word + "s"


def _verb(verb: str, tag: str) -> str:
    if verb in VERBS and tag != "VBG":
        return VERBS[verb][("VBZ", "VBD", "VBN").index(tag)]
    listed = _listed("verb").get(verb, ())
    if tag == "VBZ":
        return next((form for form in listed if form.endswith("zzes")), _with_s(verb))
    if tag == "VBG":
        if verb in KEEPS_E:
            return verb + "ing"
        # Both travelling and traveling are English; WordNet lists the first.
        return next((form for form in listed if form.endswith("ing") and len(form) > len(verb) + 1), _with_ing(verb))
    if verb in SAME_PAST:
        return verb
    past = [form for form in listed if not form.endswith(("ing", "s"))]
    if not past or verb in RATHER_ED:
        return _with_ed(verb)
    if len(past) == 1:
        # shown, proven, hewn are participles beside a regular past; won and spun are both.
        only_participle = past[0].endswith("n") and past[0].startswith(verb)
        return _with_ed(verb) if only_participle and tag == "VBD" else past[0]
    participles = [form for form in past if _participle(verb, form)]
    pasts = [form for form in past if form not in participles]
    wanted = participles if tag == "VBN" else pasts
    return (wanted or past)[-1]  # the last of begat, begot and forbad, forbade is today's


def _participle(verb: str, form: str) -> bool:
    """Of two irregular forms, the participle ends in -n, -ne (taken, torn, gone), or has u where the past has a."""
    return (form.endswith(("n", "ne")) and form != "began") or ("i" in verb and "u" in form)  # sung, drunk, swum


def _with_ing(verb: str) -> str:
    if verb.endswith("ie"):
        return verb[:-2] + "ying"
    if verb.endswith("e") and not verb.endswith(("ee", "oe", "ye")) and len(verb) > 2:
        return verb[:-1] + "ing"
    return _doubled(verb) + "ing"


def _with_ed(verb: str) -> str:
    if verb.endswith("e"):
        return verb + "d"
    if verb.endswith("y") and verb[-2:-1] not in "aeiou":
        return verb[:-1] + "ied"
    doubled = next((form for form in _listed("verb").get(verb, ()) if form.endswith("ed")), None)
    return doubled or _doubled(verb) + "ed"


def _doubled(word: str) -> str:
    """Longer words double when stressed at the end (admit, occur); WordNet lists those."""
    return word + word[-1] if CVC.fullmatch(word) else word


def _graded(adjective: str, ending: str) -> str | None:
    if adjective in NO_DEGREES:
        return None
    if adjective in DEGREES:
        return DEGREES[adjective][ending == "est"]
    wanted = [form for form in _listed("adj").get(adjective, ()) if form.endswith("st") == (ending == "est")]
    if wanted:
        return wanted[0]
    short = len(VOWEL_GROUP.findall(adjective.removesuffix("e"))) == 1
    if adjective.endswith("y") and adjective[-2:-1] not in "aeiou":
        # happy, but neither manly in -ly (more likely is as good) nor wobbly words of three syllables
        return adjective[:-1] + "i" + ending if len(VOWEL_GROUP.findall(adjective)) <= 2 else None
    if adjective.endswith(("le", "ow")) and len(VOWEL_GROUP.findall(adjective)) <= 2 and not adjective.endswith("ile"):
        return adjective + ending[1:] if adjective.endswith("e") else adjective + ending
    if not short or adjective.endswith(("ed", "ing")) or not adjective.isalpha():
        return None
    if adjective.endswith("e"):
        return adjective + ending[1:]
    return _doubled(adjective) + ending


@cache
def _listed(kind: str) -> dict[str, list[str]]:
    """Lemma to irregular forms: WordNet's exception list read backwards, in the order of the file."""
    from ..resources import fetch

    forms: defaultdict[str, list[str]] = defaultdict(list)
    for line in (Path(fetch("wordnet")) / f"{kind}.exc").read_text(encoding="utf-8").splitlines():
        form, *lemmas = line.split()
        for lemma in lemmas:
            if form != lemma:
                forms[lemma].append(form)
    return dict(forms)
