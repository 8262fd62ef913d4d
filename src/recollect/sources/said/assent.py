"""Words that tell nothing by themselves: "yes", "go on", "thanks", a greeting.

Every prompt is looked at so, before anything else is loaded.
"""

from __future__ import annotations

import re

_LONGEST = 40  # characters; whoever says more may mean something
_WORDS = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)?")
_SAID = """
yes yep yeah y no nope n ok okay k sure fine good great perfect nice cool thanks thank you
thx please go on ahead continue proceed next do it that this is right correct exactly
looks lgtm agreed done stop wait retry again try keep going now and then so
hi hello hey there morning evening night bye goodbye cheers
ja nein doch weiter danke bitte gut genau passt hallo oui non merci allez bien bonjour
sí si gracias sigue adelante vale hola
"""
_ASSENT = frozenset(_SAID.split())
_CJK_ASSENT = re.compile(
    r"[是好对嗯行的吧继续请谢了はいうんええどうぞ続けて네예응계속\s。、！!.,]{1,12}"
)


def is_assent(text: str) -> bool:
    """Whether it is a yes, a no, a thank-you, a greeting, or no word at all."""
    if len(text) > _LONGEST:
        return False
    if _CJK_ASSENT.fullmatch(text):
        return True
    words = _WORDS.findall(text.casefold())
    # A question mark or a number makes something of the shortest text.
    return not re.search(r"[?？\d]", text) and all(word in _ASSENT for word in words)
