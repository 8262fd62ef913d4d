"""What a turn says that is worth knowing later: a goal, a decision, a caveat, a rule.

By rules that would rather miss one than take a passing remark for one: a turn is much more
often a wish of the moment ("don't change the tests") than one that lasts.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

from recollect.sources.said.prose import without_code
from recollect.text import sentences

_SEARCHED = 8_000  # characters; what was pasted comes last
_LONGEST = 400  # characters of a sentence; what is longer is hardly one
_LEAD = re.compile(
    r"(?:[-*•>\s]|(?:ok(?:ay)?|so|and|also|please|note|remember|important|btw|by the way|fyi"
    r"|going forward|for the record)(?:[,:!]| that)?\s)+",
    re.IGNORECASE,
)
_WE = r"(?:we|i|the team|they)(?:['’]ve| have|['’]re| are)?(?: all| both| now| finally| just)?"
_CHOSEN = r"(?:decided|agreed|chose|chosen|settled|opted)\b"
_WE_WILL = r"\A(?:let['’]s|we(?:['’]ll| will|['’]re| are)?|i(?:['’]ll| will)?)"
_OF_THE_PAST = r"(?:\w+ed|been|had|got|did|was|were|came|saw|seen|heard|knew)\b"
# The first kind that fits decides. A sentence begins at \A, without what leads in to it.
_BY_USER = {
    "goal": (
        (
            r"\A(?:our |the |my |this \w+['’]s )?(?:\w+ )?(?:goal|objective|milestone|deadline)s?"
            r"(?::| (?:for|of|this|is|are)\b)"
        ),
        (
            r"\b(?:has to|have to|needs to|need to|must) be"
            r" (?:live|done|ready|shipped|finished|released|out) by\b"
        ),
        (
            rf"\A{_WE} (?:want|plan|aim|hope) to"
            r" (?:ship|launch|release|migrate|move|support|reach|replace)\b"
        ),
    ),
    "decision": (
        rf"\b{_WE} {_CHOSEN}",
        rf"\A{_CHOSEN}",
        r"\Adecision\b",
        rf"{_WE_WILL} (?:go|going|stick|sticking) with\b",
        (
            rf"{_WE_WILL} (?:use|using|keep|(?:switch|mov)(?:e|ing)? to|drop|replace)\b"
            r".{0,120}(?:, not|\b(?:instead|rather than|because|since|so that))\b"
        ),
        r"\Ause .{0,120}\b(?:instead of|rather than)\b",
    ),
    "caveat": (
        r"\A(?:watch out|beware|be careful|careful|caution|caveat|gotcha|pitfall|warning:)",
        (
            r"(?:\A|[,;:(] |\b(?:and|but|please|must|should|we|you) )never"
            rf" (?!mind\b|again\b|happens?\b|works?\b|{_OF_THE_PAST})\w"
        ),
        r"\b(?:do not|don['’]t) ever\b",
    ),
    "directive": (
        r"\A(?:always|whenever) \w",
        r"\b(?:please|must|should|and) always \w",
        r"\bfrom now on\b",
    ),
    "preference": (
        r"\b(?:i|we)(?: \w+ly| always)? prefer\b",
        r"\bmy preference\b",
        r"\bi (?:really )?(?:like|love|hate|dislike) (?!it|th|to\b|how|what|your?\b)\w",
    ),
}
# Of an agent nothing but what it warns of: what it decides is for the task at hand.
_BY_AGENT = {"caveat": (r"\A(?:watch out|beware|be careful|caveat|gotcha|pitfall)\b",)}


def _compiled(rules: Mapping[str, tuple[str, ...]]) -> dict[str, re.Pattern[str]]:
    return {kind: re.compile("|".join(them), re.IGNORECASE) for kind, them in rules.items()}


_RULES = {"user": _compiled(_BY_USER), "assistant": _compiled(_BY_AGENT)}


class Weighty(NamedTuple):
    """What kind of thing a turn says, and its words from the sentence on that says so."""

    kind: str
    text: str


def weighty(text: str, who: str) -> Weighty | None:
    """What of a turn is worth knowing later; None where no rule sees anything.

    Questions say nothing, nor does what stands in code.
    """
    said = sentences(without_code(text[:_SEARCHED]))
    for kind, rule in _RULES.get(who, {}).items():
        for place, sentence in enumerate(said):
            bare = sentence[lead.end() :] if (lead := _LEAD.match(sentence)) else sentence
            if len(bare) <= _LONGEST and not bare.endswith("?") and rule.search(bare):
                return Weighty(kind, " ".join(said[place:]))
    return None
