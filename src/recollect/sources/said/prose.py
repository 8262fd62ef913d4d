"""A text without its code: what somebody said, and how much code stood between."""

from __future__ import annotations

import re

_FENCE = re.compile(r"[ \t]{0,12}(`{3,}(?!`)(?!.*`)|~{3,})[ \t]*([\w+#.-]{0,20})")
KEPT = 3  # lines of code that say more than their number does


def without_code(text: str) -> str:
    """The text, each longer block of code in it told by its number of lines.

    A block that is not closed reaches to the end of the text, as it does in Markdown.
    """
    if "```" not in text and "~~~" not in text:
        return text
    told: list[str] = []
    block: list[str] = []
    fence = ""
    for line in text.split("\n"):
        mark = None if fence else _FENCE.match(line)
        if not fence and mark is None:
            told.append(line)
            continue
        block.append(line)
        if mark is not None:
            fence = mark[1]
        elif _closes(line, fence):
            told += _told(block)
            fence, block = "", []
    return "\n".join((*told, *_told(block)))


def _closes(line: str, fence: str) -> bool:
    bare = line.strip()
    return bare.startswith(fence) and not bare.strip(fence[0])


def _told(block: list[str]) -> list[str]:
    """The block itself, or one line for it."""
    lines = len(block) - (2 if len(block) > 1 and _closes(block[-1], block[0].strip()[:3]) else 1)
    if lines <= KEPT:
        return block
    mark = _FENCE.match(block[0])
    language = mark[2] if mark is not None else ""
    return [f"[{lines} lines of {language or 'code'}]"]
