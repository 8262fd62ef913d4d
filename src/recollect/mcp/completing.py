"""Completes what a person begins to type: the names of those the memories speak of."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from recollect.errors import NotFound
from recollect.mcp.schema import checked
from recollect.mcp.tools.usual import LIST_ENTITIES

if TYPE_CHECKING:
    from recollect.memory import Memory

MOST = 100  # that the protocol allows
# The arguments that are names, by the address or the prompt that takes them.
NAMES = {("memory://entity/{name}", "name"), ("begin", "task"), ("review", "subject")}
_UNKNOWN = {("memory://item/{id}", "id")}  # nobody knows the beginning of an id


class Completed(NamedTuple):
    """What it may become, and whether that is not all."""

    values: list[str]
    is_cut: bool


def completed(taker: str, argument: str, begun: str, memory: Memory) -> Completed:
    """The names that begin so, liveliest first; none where nothing can be offered."""
    if (taker, argument) in _UNKNOWN:
        return Completed([], is_cut=False)
    if (taker, argument) not in NAMES:
        raise NotFound("there is no such argument to complete")
    told = checked({"prefix": begun, "limit": MOST + 1}, LIST_ENTITIES.takes)
    names = [entity.name for entity in memory.entities(**told)]
    return Completed(names[:MOST], is_cut=len(names) > MOST)
