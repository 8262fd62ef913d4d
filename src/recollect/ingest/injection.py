"""Flags texts that try to give orders to whoever reads them back.

A flag, not a wall: plausible lies pass any pattern, so what counts is where a
memory came from. A flagged text from anyone but its user is trusted less.
"""

from __future__ import annotations

import re
import unicodedata
from functools import cache
from typing import Any

from recollect.text import visible

# Without one of these none of the patterns can match.
_WORDS = (
    *("ignor", "disregard", "forget", "overrid", "bypass", "prompt", "jailbr", "reveal", "leak"),
    *(
        "you are now",
        "you are no longer",
        "from now on",
        "henceforth",
        "unrestricted",
        "unfiltered",
    ),
    *(
        "developer mode",
        "dan mode",
        "god mode",
        "do anything now",
        "<|",
        "inst]",
        "sys>>",
        "system",
    ),
    *("instruction", "exfiltrat", "secretly", "silently", "quietly", "the user", "the human"),
    *("assistant", "send", "forward", "upload", "this", "as if you"),
)
# One pattern a paragraph. A space stands for any run of blanks, dashes, stars or underscores.
_PATTERNS = r"""
\b(?:ignore|disregard|forget|override|bypass) (?:[a-z']+ ){0,4}?
(?:previous|prior|above|earlier|preceding|existing|all|any|your|the system|safety|these|those)
(?: [a-z']+){0,3}? (?:instructions?|prompts?|rules|guidelines|directions|context|messages?
|restrictions|guardrails|policies|commands)\b

\b(?:reveal|print|repeat|show|output|leak|disclose) (?:me )?(?:(?:your|its) (?:[a-z]+ ){0,2}?
(?:prompt|instructions|secret key|credentials)
|the (?:[a-z]+ ){0,2}?(?:system|hidden|initial) prompt)

\byou are (?:now|no longer) (?:an? |the |in )?(?:[a-z]+ ){0,3}?
(?:unrestricted|jailbroken|dan\b|developer mode|admin|root|evil|free from|bound by
|without (?:any )?(?:rules|restrictions))

\b(?:from now on|henceforth),? (?:you|the (?:assistant|agent|model|ai))
 (?:must|will|should|shall|are to|only|always|never)

\b(?:act|behave|respond) as (?:if you (?:were|had)|an? (?:unrestricted|unfiltered|evil|jailbroken))

\b(?:developer|dan|god|jailbreak) mode (?:enabled|on|activated|now)|\bdo anything now\b

<\|(?:im_start|im_end|system|user|assistant|endoftext)\|?>|\[/?inst\]|<</?sys>>
|</?system(?:>| prompt)

(?:^|\n)\W{0,4}(?:system|assistant|developer) ?(?:message|prompt|override|note)? ?: ?
(?:you (?:must|are|will|should)|ignore|new instructions?|important|override|do not|always|never)

### ?(?:new |system |updated )?instructions?\b

\b(?:new|updated|hidden|secret|important) instructions?
(?: for (?:the )?(?:ai|assistant|agent|model)s?)? ?:

\b(?:do not|don'?t|never|without) (?:tell|inform|mention|alert|notify|reveal)(?:ing)?
(?: this)?(?: to)? the (?:user|human|owner|operator)(?: (?:about|that|this|anything)\b|[.!,;]|$)

\b(?:secretly|silently|quietly) (?:send|forward|upload|post|email|copy|exfiltrate|transfer)

\b(?:send|forward|upload|post|email|exfiltrate) (?:all |every |the user'?s? |their |your )
(?:[a-z]+ ){0,3}?(?:data|files?|memor(?:y|ies)|passwords?|keys?|credentials|conversations?
|contents?|emails?)(?: [a-z]+){0,2}? to (?:https?:|[a-z0-9.]+@|an? |the attacker)

\b(?:assistant|ai|agent|model)s? (?:reading|processing|seeing|that reads?) this
(?: [a-z]+){0,4}? (?:must|should|shall|will|are to|has to|have to)\b
"""
_PARAGRAPH = re.compile(r"\n\n")
# Letters of other alphabets that pass for Latin ones.
_LOOKALIKES = str.maketrans("аеорсухіјѕԁһɡӏοανερικτυχ", "aeopcyxijsdhgloavepiktux")


def is_injection(text: str) -> bool:
    """Whether the text openly gives orders to a model."""
    lower = text.lower()
    if not lower.isascii():
        lower = unicodedata.normalize("NFKC", visible(lower)).lower().translate(_LOOKALIKES)
    if not any(word in lower for word in _WORDS):
        return False
    return _pattern().search(lower.encode(errors="replace")) is not None


@cache
def _pattern() -> Any:
    import re2  # only texts with a telling word pay for loading it

    paragraphs = (part.replace("\n", "") for part in _PARAGRAPH.split(_PATTERNS.strip()))
    joined = "|".join(f"(?:{pattern})" for pattern in paragraphs)
    blank = r"[\s_*\-]"
    return re2.compile(joined.replace(" ?", f"{blank}*").replace(" ", f"{blank}+").encode())
