"""Characters of a text: what no store can keep, and what a reader cannot see."""

from __future__ import annotations

import json
import math
import unicodedata

from bethink.core.lazy import lazy_pattern

_UNSTORABLE = lazy_pattern("[\x00\ud800-\udfff]")
_CONTROLS = "\x01-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f"
_NONCHARACTERS = "\ufdd0-\ufdef" + "".join(
    f"{chr(plane + 0xFFFE)}{chr(plane + 0xFFFF)}" for plane in range(0, 0x110000, 0x10000)
)
_BIDI = "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"
_ZERO_WIDTH = "\u180e\u200b\u2060-\u2065\ufeff\ufff9-\ufffb"
_TAGS = "\U000e0000-\U000e007f"
_PRIVATE = "\ue000-\uf8ff\U000f0000-\U0010ffff"  # each font shows them differently
_SELECTORS = "\ufe00-\ufe0f\U000e0100-\U000e01ef"

_ASCII_CONTROL = lazy_pattern("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")
_CONTROL = lazy_pattern(f"[{_CONTROLS}{_NONCHARACTERS}]")
_BIDI_CONTROL = lazy_pattern(f"[{_BIDI}]")
_HIDDEN = lazy_pattern(f"[{_ZERO_WIDTH}{_TAGS}]|[{_SELECTORS}]{{2,}}")
# A joiner belongs between two letters or emoji of its own scripts, one at a time.
_STRAY_JOINER = lazy_pattern(
    "[\u200c\u200d]{2,}|(?<![^\x00-\x7f])[\u200c\u200d]|[\u200c\u200d](?![^\x00-\x7f])"
)
_ANSI = lazy_pattern(
    "\x1b\\[[0-?]*[ -/]*[@-~]"
    "|\x1b[\\]PX^_][^\x07\x1b]*(?:\x07|\x1b\\\\)"
    "|\x9b[0-?]*[ -/]*[@-~]"
    "|\x1b[@-Z\\\\-_]"
)
_LINE_END = lazy_pattern("\r\n?|[\x85\u2028\u2029]")
_UNSEEN = f"{_CONTROLS}{_NONCHARACTERS}{_BIDI}{_ZERO_WIDTH}{_TAGS}{_PRIVATE}"
_INVISIBLE = lazy_pattern(f"[{_UNSEEN}]")
_ESCAPED = lazy_pattern(f"[{_UNSEEN}\u2028\u2029]")
_SELECTOR_RUN = lazy_pattern(f"[{_SELECTORS}]{{2,}}")


def find_unstorable(text: str) -> tuple[int, str] | None:
    """The first character that no store can keep: its position and its name."""
    if text.isascii() and "\x00" not in text:
        return None
    found = _UNSTORABLE.search(text)
    if found is None:
        return None
    code = ord(found.group())
    return found.start(), "NUL" if code == 0 else f"lone surrogate U+{code:04X}"


def hidden_text_flags(text: str) -> tuple[str, ...]:
    """Flags for hidden characters in a text; empty for ordinary text."""
    if text.isascii():
        return ("control_text",) if _ASCII_CONTROL.search(text) else ()
    flags = []
    if _BIDI_CONTROL.search(text):
        flags.append("bidi_control")
    if _CONTROL.search(text):
        flags.append("control_text")
    if _HIDDEN.search(text) or _STRAY_JOINER.search(text):
        flags.append("invisible_text")
    return tuple(flags)


def strip_hidden(text: str) -> str:
    """Remove hidden characters, so that the text is safe for a model or a terminal.

    Removes tag characters, direction controls, zero-width and private-use characters, escape
    sequences and controls other than line feed and tab; other line ends become line feeds.
    Joiners stay where a script or an emoji needs them.
    """
    if text.isascii() and "\r" not in text and not _ASCII_CONTROL.search(text):
        return text
    shown = _ANSI.sub("", text)
    shown = _INVISIBLE.sub("", _LINE_END.sub("\n", shown)).replace("\x00", "")
    if shown.isascii():
        return shown
    return _STRAY_JOINER.sub("", _SELECTOR_RUN.sub("", shown))


def escape_hidden(text: str) -> str:
    """Escape the hidden characters of a JSON text, which means the same and is safe to print."""
    return text if text.isascii() else _ESCAPED.sub(lambda found: json.dumps(found[0])[1:-1], text)


def has_substance(text: str) -> bool:
    """Whether the text contains a letter, a digit or a symbol."""
    if any(char.isalnum() for char in text[:64]):
        return True
    return any(char.isalnum() or unicodedata.category(char)[0] == "S" for char in text)


# Characters of a language model's token, by their first bytes: of ASCII, of two-byte scripts
# (Cyrillic, Arabic, Greek), of alphabets (Hindi, Thai) and of Chinese, Japanese and Korean.
_FIRST_BYTES = ((0x00, 0x80, 4.0), (0xC2, 0xE0, 2.8), (0xE0, 0xE3, 2.5), (0xE3, 0xF5, 1.4))


def estimate_tokens(text: str, pieces: int = 0) -> int:
    """Estimate a language model's tokens of a text; ``pieces`` are those of our vocabulary.

    That is English: in other scripts it has a piece for nearly every letter.
    """
    encoded = text.encode("utf-8", "replace")
    size = len(encoded)
    if 4 * size < 5 * len(text) or size == len(text):
        return pieces or -(-size // 4)
    total = math.fsum(
        (size - len(encoded.translate(None, bytes(range(first, end))))) / length
        for first, end, length in _FIRST_BYTES
    )
    return min(pieces or size, math.ceil(total))
