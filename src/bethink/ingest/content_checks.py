"""Detect prompt injections and pasted machine output.

An injection is flagged, not blocked: plausible lies pass any pattern, so the origin of a
memory is what counts, and a flagged text that does not come from its user is trusted less.
Pasted output is recognised by its shape, never by a single word: sentences about logs,
builds and errors are ordinary project memories.
"""

from __future__ import annotations

import re
import unicodedata
from functools import cache
from typing import cast

from bethink.core.characters import hidden_text_flags, strip_hidden
from bethink.core.lazy import lazy_pattern
from bethink.errors import LooksPasted
from bethink.lang.words import load_words
from bethink.model import Draft

# Letters of other alphabets that pass for Latin ones.
_HOMOGLYPHS = str.maketrans("аеорсухіјѕԁһɡӏοανερικτυχ", "aeopcyxijsdhgloavepiktux")


def is_injection(text: str) -> bool:
    """Check whether the text openly gives instructions to a model."""
    lower = text.lower()
    if not lower.isascii():
        lower = unicodedata.normalize("NFKC", strip_hidden(lower)).lower().translate(_HOMOGLYPHS)
    if not any(word in lower for word in load_words("injections")["hints"]):
        return False
    return _injection_pattern().search(lower.encode(errors="replace")) is not None


def content_flags(text: str) -> tuple[str, ...]:
    """Return what is suspicious about a text: hidden characters, instructions to a model."""
    flags = hidden_text_flags(text)
    return (*flags, "injection") if is_injection(text) else flags


@cache
def _injection_pattern() -> re.Pattern[bytes]:
    import re2  # start-up time: loaded only for texts with a hint

    paragraphs = load_words("injections")["patterns"].strip().split("\n\n")
    joined = "|".join(f"(?:{pattern})" for pattern in paragraphs).replace("\n", "")
    blank = r"[\s_*\-]"
    spaced = joined.replace(" ?", f"{blank}*").replace(" ", f"{blank}+")
    return cast("re.Pattern[bytes]", re2.compile(spaced.encode()))


_SEARCHED_CHARACTERS = 20_000  # characters; a paste is recognisable at its start
_COLUMN_GAP = lazy_pattern(r" {2,}|\t+")
_COLUMN_TITLE = lazy_pattern(r"[A-Z%][A-Z0-9%()/_. -]*")
_TRANSCRIPT = lazy_pattern(r"⏺|⎿|● \w+\(")
_BOX_DRAWING = lazy_pattern(r"[\u2500-\u259f]")
_ANSI = lazy_pattern("\x1b\\[[0-9;]*[A-Za-z]")


@cache
def _pattern(kind: str) -> re.Pattern[str]:
    """Return the pattern of a kind of line in ``lang/data/pastes.toml``."""
    known = load_words("pastes")
    forms = "|".join(known[kind])
    return re.compile(
        forms.replace("<TIMESTAMP>", known["timestamp"]).replace("<LEVEL>", known["level"])
    )


def refuse_pasted(draft: Draft) -> None:
    """Raise LooksPasted for a distilled memory that is machine output.

    Raw episodes and turns of a conversation are kept verbatim.
    """
    if draft.force or draft.level != "item" or draft.session is not None:
        return
    sign = detect_paste(draft.text)
    if sign:
        raise LooksPasted(
            f"this looks like {sign}, not like a memory",
            remedy="state in a sentence what to keep, store it as raw, or use --force",
        )


def detect_paste(text: str) -> str | None:
    """Describe the machine output that a text looks like; None if it does not."""
    text = text[:_SEARCHED_CHARACTERS]
    if _pattern("boilerplate").match(text.lstrip("\"'*#> \n")) or (
        len(text) > 200 and _pattern("closing").search(text)
    ):
        return "an assistant's answer or prompt"
    if _ANSI.search(text):
        return "terminal output with colour codes"
    if not text.isascii() and (sign := _detect_drawing(text)):
        return sign
    lines = [line for line in text.splitlines() if line.strip()]
    if lines and _pattern("log_line").match(lines[0].lstrip()):
        return "a log line"
    return _detect_output_lines(lines) if len(lines) > 1 else None


def _detect_drawing(text: str) -> str | None:
    if _TRANSCRIPT.match(text) or "\n⏺" in text or "\n  ⎿" in text:
        return "an agent's transcript"
    boxed = sum(_BOX_DRAWING.search(line) is not None for line in text.splitlines())
    if boxed >= 3 or (boxed and len(_BOX_DRAWING.findall(text)) >= 20):
        return "a drawn box or table"
    return None


def _detect_output_lines(lines: list[str]) -> str | None:
    frames = len(_lines_like("stack_frame", lines))
    if frames >= 2 or (frames and any(map(_pattern("trace_head").search, lines))):
        return "a stack trace"
    stripped = [line.lstrip() for line in lines]
    levelled = len(_lines_like("level_line", stripped))
    is_logged = len(_lines_like("log_line", stripped)) >= 2
    is_stamped = len(_lines_like("stamped_line", stripped)) >= 3
    if is_logged or is_stamped or (levelled >= 3 and 2 * levelled >= len(lines)):
        return "a log"
    if len(_lines_like("ci_line", stripped)) >= 2:
        return "the output of a build or test run"
    if len(_lines_like("diff_line", stripped)) >= 2:
        return "a diff"
    printed = _lines_like("tool_line", stripped)
    if len(printed) >= 2 and len(_lines_like("gutter", printed)) < len(printed):
        return "the output of a compiler or another tool"
    return "the table that a command printed" if _is_column_table(lines) else None


def _lines_like(kind: str, lines: list[str]) -> list[str]:
    return [line for line in lines if _pattern(kind).match(line)]


def _is_column_table(lines: list[str]) -> bool:
    """Whether upper-case column titles stand above rows of as many columns."""
    titles = _COLUMN_GAP.split(lines[0].strip())
    if len(titles) < 3 or not all(_COLUMN_TITLE.fullmatch(title) for title in titles):
        return False
    rows = [_COLUMN_GAP.split(line.strip()) for line in lines[1:]]
    return all(len(row) >= len(titles) - 1 for row in rows)
