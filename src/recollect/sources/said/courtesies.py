"""Sentences that go around an answer and are none: "you're welcome", "let me know"."""

from __future__ import annotations

import re

from recollect.sources.said.assent import is_assent
from recollect.text import sentences

_TRAILING = " *_`)\"'”»"
_REST = r"\b[^\d;:]{0,90}"  # what has a number or a second part to it tells something
# Each a whole sentence.
_AROUND = re.compile(
    r"(?:you(?:'|’)?(?:re| are) (?:very |most )?welcome|no problem|my pleasure|any ?time"
    rf"|(?:i(?:'|’)?m |i am )?(?:glad|happy) (?:to (?:help|assist){_REST}|i could help{_REST}"
    r"|to hear (?:it|that)|(?:that|it) (?:helps|helped|works|worked)|you like it)"
    rf"|(?:just )?let me know{_REST}|feel free to{_REST}|i(?:'|’)?m here (?:if|to|whenever){_REST}"
    rf"|(?:is there |do you need )?anything else(?:{_REST}\?)?"
    rf"|(?:how|what) (?:can|may) i (?:help|do){_REST}"
    rf"|what would you like (?:me )?to (?:do|work on){_REST}"
    r"|got it|understood|noted|will do|on it|sounds good|all done|have a (?:great|good|nice) \w+"
    r"|hi there|hello there|good (?:morning|night|luck)|take care|great question)[\s.!?:)]*",
    re.IGNORECASE,
)


# Who says yes to these has decided nothing that lasts.
_OFFER = re.compile(
    r"(?:shall|should|can|may) i\b|(?:do you |would you )?(?:want|like) me to\b", re.IGNORECASE
)


def is_courtesy(text: str) -> bool:
    """Whether every sentence of it is one that goes around an answer and is none."""
    return all(is_assent(one) or _AROUND.fullmatch(one) is not None for one in sentences(text))


def tells_nothing(text: str, who: str, before: str) -> bool:
    """Whether a message may be left out: a yes, a thank-you, a courtesy. To a question,
    other than an offer, a yes is the answer; ``before`` is what was said before it."""
    if not is_assent(text):
        return who == "assistant" and is_courtesy(text)
    asked = (sentences(before) or [""])[-1]
    is_question = asked.rstrip(_TRAILING).endswith(("?", "？"))
    is_offer = is_courtesy(asked) or _OFFER.search(asked) is not None
    return not text.strip() or is_offer or not is_question
