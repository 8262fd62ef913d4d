"""Carries a tool out for somebody: by their right, under their name, watched."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack
from copy import copy
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from recollect.access.policy import operation_of, require
from recollect.access.rights import OWNER, Principal
from recollect.jsonable import Json
from recollect.mcp.masking import masked
from recollect.mcp.opening import Opening
from recollect.mcp.schema import checked
from recollect.mcp.spans import spanned
from recollect.mcp.tool import Call, Reply, Tool

if TYPE_CHECKING:
    from recollect.memory import Memory


def _nobody_watches(done: int, total: int) -> None:
    """Progress that nobody asked for."""


@dataclass(frozen=True)
class Asked:
    """A call as it came in: who wants what, with which arguments, by which way."""

    tool: Tool
    arguments: Mapping[str, Any]
    principal: Principal = OWNER
    client: str = ""
    via: str = "mcp"
    progress: Callable[[int, int], None] = field(default=_nobody_watches)
    draws: bool = False


# Is told what is asked and of which space and, when there is one, what the answer holds.
Watch = Callable[[Asked, str], AbstractContextManager[Callable[[Json], None]]]


class Calling:
    """The one way from a request to a tool, whichever surface it came by.

    ``unseen`` is whoever speaks to us other than by HTTP: the process that started us or,
    for a server that only listens to a network, nobody.
    """

    def __init__(
        self, opening: Opening, watches: Sequence[Watch] = (), *, unseen: Principal = OWNER
    ) -> None:
        self.opening, self.unseen = opening, unseen
        self._watches = (spanned, *watches)

    def memory_for(self, principal: Principal, *, writing: bool = False) -> Memory:
        """The memory itself, under somebody's name."""
        with masked(principal):
            return signed(self.opening.memory(writing=writing), principal)

    def __call__(self, asked: Asked, *, whole: bool = False) -> Reply:
        """What the tool replies; ``whole`` for a program, else as models are given it."""
        tool = asked.tool
        require(asked.principal, operation_of(tool.name, asked.arguments))
        told = checked(asked.arguments, tool.takes)
        with ExitStack() as stack:
            stack.enter_context(masked(asked.principal))
            opened = self.opening.memory(writing=not tool.reads)
            memory = signed(opened, asked.principal)
            seen_by = (asked.client, asked.via, asked.progress, asked.draws, whole)
            call = Call(memory, told, *seen_by)
            space = memory.store.space
            notes = [stack.enter_context(watch(asked, space)) for watch in self._watches]
            reply = tool.whole(call) if whole else tool(call)
            for note in notes:
                note(reply.content)
        return reply


def signed(memory: Memory, principal: Principal) -> Memory:
    """The same memory, whose journal names who came over the network.

    What is undone without naming it is the last change of the same name.
    """
    if principal is OWNER:
        return memory
    other = copy(memory)
    actor = f"{memory.settings.actor}:{principal.name}"
    other.settings = replace(memory.settings, actor=actor)
    return other
