"""Pages of an answer: no more than its reader can take in, and how much was left out."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

from recollect.mcp.fencing import LONGEST
from recollect.mcp.tool import Call

MODEL_ROOM = 40_000  # characters of stored text that one answer gives a model
PROGRAM_ROOM = 2 << 20  # bytes of it that one answer gives a program
T = TypeVar("T")


def weight(call: Call, *texts: str) -> int:
    """How much of an answer's room the texts take; what a model is given is cut."""
    if call.whole:
        return sum(len(text.encode()) for text in texts)
    return sum(min(len(text), LONGEST) for text in texts)


def fitting(call: Call, weights: Iterable[int]) -> int:
    """How many, from the first on, one answer can hold; one in any case."""
    room = PROGRAM_ROOM if call.whole else MODEL_ROOM
    count = 0
    for one in weights:
        room -= one
        if room < 0:
            return max(1, count)
        count += 1
    return count


def newest(
    call: Call,
    entries: Sequence[T],
    texts: Callable[[Sequence[T]], Sequence[str]],
    *,
    usual: int,
) -> tuple[Sequence[T], int]:
    """The last of the entries, as many as are asked for and fit, in their order, and how
    many stand before them. ``offset`` counts from the end."""
    end = max(0, len(entries) - call.told.get("offset", 0))
    wanted = entries[max(0, end - call.told.get("limit", usual)) : end]
    count = fitting(call, (weight(call, text) for text in reversed(texts(wanted))))
    return wanted[len(wanted) - count :], end - count


def older(call: Call, shown: int, left_out: int) -> str:
    """A line below a text that says how to get what stands before what it shows."""
    if not left_out:
        return ""
    offset = call.told.get("offset", 0) + shown
    return f"\n{left_out} older left out, which offset {offset} gets."
