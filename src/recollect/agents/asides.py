"""Prompts that ask nothing of a memory: commands, "yes", "go on", nothing at all."""

from __future__ import annotations

import re

_LONGEST = 40  # characters; whoever says more may mean something
# Commands, shell lines and notes to the host's own memory.
_COMMAND = re.compile(r"\s*(?:/[\w:-]+(?:\s|$)|[!#])")
_WORDS = re.compile(r"[^\W\d_]+(?:'[^\W\d_]+)?")
_SAID = """
yes yep yeah y no nope n ok okay k sure fine good great perfect nice cool thanks thank you
thx please go on ahead continue proceed next do it that this is right correct exactly
looks lgtm agreed done stop wait retry again try keep going now and then so
ja nein doch weiter danke bitte gut genau passt oui non merci allez bien
sí si gracias sigue adelante vale
"""
_ASSENT = frozenset(_SAID.split())
_CJK_ASSENT = re.compile(
    r"[是好对嗯行的吧继续请谢了はいうんええどうぞ続けて네예응계속\s。、！!.,]{1,12}"
)


def is_aside(prompt: str) -> bool:
    """Whether no memory could help with a prompt."""
    text = prompt.strip()
    if not text or _COMMAND.match(text):
        return True
    if len(text) > _LONGEST:
        return False
    if _CJK_ASSENT.fullmatch(text):
        return True
    words = _WORDS.findall(text.casefold())
    # A question mark or a number makes something of the shortest prompt.
    return not re.search(r"[?？\d]", text) and all(word in _ASSENT for word in words)
