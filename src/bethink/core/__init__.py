"""Helpers without domain knowledge: files, ids, JSON, registries, text."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

T = TypeVar("T")


def plural(count: int, noun: str) -> str:
    """Format a count with its noun: ``1 memory``, ``2 memories``."""
    if count == 1:
        return f"1 {noun}"
    many = f"{noun[:-1]}ies" if noun.endswith("y") else f"{noun}s"
    return f"{count:,} {many}"


def closest_name(name: str, known: Iterable[str], cutoff: float = 0.6) -> str | None:
    """Return the known name that a mistaken one is most like, if there is one."""
    from difflib import get_close_matches  # start-up time: only for mistakes

    return next(iter(get_close_matches(name, list(known), n=1, cutoff=cutoff)), None)


def with_progress(values: Iterable[T], progress: Callable[[int, int], None] | None) -> Iterator[T]:
    """Yield the values, and tell how many are done, of how many, before each and at the end."""
    every = list(values)
    for done, value in enumerate(every):
        if progress is not None:
            progress(done, len(every))
        yield value
    if progress is not None:
        progress(len(every), len(every))
