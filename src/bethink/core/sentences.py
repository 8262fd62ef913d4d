"""Sentences of a text, its caption, and a text shortened to a line."""

from __future__ import annotations

import re
from collections.abc import Iterator

from bethink.core.characters import strip_hidden
from bethink.core.lazy import lazy_pattern
from bethink.core.words import UNSEGMENTED, fold

# Each alternative begins with few characters: the search skips all others.
_BREAK = lazy_pattern(r"[.!?…][\"')\]’”]*\s+|(?<!\s)\s*\n\s*|[。！？]\s*")
# Between clauses; a comma or colon within a number is none, a full stop after a letter or an
# abbreviation may be one ("vitamin D. Is it"). A clause that begins so asks.
_CLAUSE = lazy_pattern(r"(?:[,;:](?!\d)|[，；：]|\.(?=\s))\s*")
_ASKS = lazy_pattern(
    r"(?i)¿|(?:what|when|where|which|who|whose|why|how|is|are|was|were|am|do|does|did|can|could"
    r"|should|shall|would|will|has|have|had|may|might|wie|wann|wo|welche\w*|wer|warum|ist|sind|hat"
    r"|haben|kann\w*|könn\w*|soll\w*|gibt|que|quel\w*|quand|où|qui|pourquoi|comment|combien"
    r"|est-ce)\b"
)
_ABBREVIATION_LIST = (
    "dr mr mrs ms prof st vs e.g i.e etc no fig approx inc ltd jr sr cf al dept est"
)
_ABBREVIATIONS = frozenset(_ABBREVIATION_LIST.split())
_COURTESY_WORDS = """
hi hey hello thanks thank you ok okay sure yes no yeah yep great cool wow good nice oh ah well
morning evening bye so much very there everyone all dear lol haha right exactly please
"""
_NOT_INFORMATIVE = frozenset(_COURTESY_WORDS.split())


def sentences(text: str) -> list[str]:
    """Split a text into trimmed sentences; every line break ends one."""
    parts = (text[start:end].strip() for start, end in sentence_spans(text))
    return [part for part in parts if part]


def ends_in_question(text: str) -> bool:
    """Whether the last thing that a text says is a question."""
    return text.rstrip("\"')]’” \n").endswith(("?", "？"))


def without_questions(text: str) -> str:
    """Return what a text states, also in a question before the clause that asks; or nothing."""
    if "?" not in text and "？" not in text:
        return text
    return " ".join(filter(None, map(_stated, sentences(text))))


def _stated(sentence: str) -> str:
    if not ends_in_question(sentence):
        return sentence
    clauses = [0, *(mark.end() for mark in _CLAUSE.finditer(sentence))]
    asking = next((at for at in clauses if _ASKS.match(sentence, at)), clauses[-1])
    said = sentence[:asking].rstrip(" ,;:，；：")
    return said if _is_informative(said) else ""


def sentence_spans(text: str) -> Iterator[tuple[int, int]]:
    """Yield where each sentence starts and ends, with the spaces after it."""
    start = 0
    for mark in _BREAK.finditer(text):
        if "\n" not in mark.group() and _is_abbreviation(text, start, mark):
            continue
        yield start, mark.end()
        start = mark.end()
    yield start, len(text)


def _is_abbreviation(text: str, start: int, mark: re.Match[str]) -> bool:
    """Whether this full stop belongs to an abbreviation: "e.g.", "Dr. Wu", "at 3 p.m. today"."""
    end = mark.start() + 1
    if text[mark.start()] != ".":
        return False
    if text[mark.end() : mark.end() + 1].islower():
        return True
    word = text[max(start, end - 12) : end - 1].rpartition(" ")[2].lstrip("(\"'").lower()
    return word in _ABBREVIATIONS or (len(word) == 1 and word.isalpha())


def caption(text: str, speaker: str | None = None, *, limit: int = 160) -> str:
    """The speaker and the first informative sentence, shortened to the limit."""
    parts = sentences(strip_hidden(text[: limit * 50]))
    chosen = next((part for part in parts if _is_informative(part)), parts[0] if parts else "")
    line = " ".join(chosen.split())
    if speaker and not line.casefold().startswith(f"{speaker}:".casefold()):
        line = f"{' '.join(strip_hidden(speaker).split())}: {line}"
    return shorten(line, limit)


def _is_informative(sentence: str) -> bool:
    content_words = [word for word in fold(sentence).split() if word not in _NOT_INFORMATIVE]
    return len(content_words) >= 3 or UNSEGMENTED.search(sentence) is not None


def shorten(line: str, limit: int) -> str:
    """Truncate to ``limit`` characters, between words where that keeps most of the text."""
    if len(line) <= limit:
        return line
    cut = line[: limit - 1]
    space = cut.rfind(" ")
    return (cut[:space] if space > limit // 2 else cut).rstrip(" ,;:-") + "…"
