"""Texts that are too long for one memory, in pieces: between paragraphs, else lines, else words."""

from __future__ import annotations

from recollect.ingest.admit import TEXT_BYTES

_ENDS = ("\n\n", "\n", ". ", " ")


def pieces_of(text: str, limit: int = TEXT_BYTES) -> list[str]:
    """The text in pieces of at most ``limit`` bytes, in its order; nearly always just one."""
    pieces = []
    rest = text.strip()
    while not _fits(rest, limit):
        cut = _cut(rest, limit)
        pieces.append(rest[:cut].rstrip())
        rest = rest[cut:].lstrip()
    return [*pieces, rest] if rest else pieces


def _fits(text: str, limit: int) -> bool:
    # Counting bytes costs a copy, so only texts that could be too long are counted.
    return len(text) * 4 <= limit or len(text.encode("utf-8", "surrogatepass")) <= limit


def _cut(text: str, limit: int) -> int:
    """Where to cut: as late as fits, at the best end in the later half; else anywhere."""
    # As many characters as there is room for; a part of one at the end is left off.
    head = text[:limit].encode("utf-8", "surrogatepass")[:limit]
    most = len(head.decode("utf-8", "ignore"))
    for end in _ENDS:
        found = text.rfind(end, most // 2, most)
        if found > 0:
            return found + len(end)
    return most
