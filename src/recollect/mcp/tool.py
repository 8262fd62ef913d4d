"""A tool as data: what it is called, takes and gives, and the function behind it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from recollect.jsonable import Json

if TYPE_CHECKING:
    from recollect.memory import Memory


class Reply(NamedTuple):
    """What a tool answers: a text for the model, the same as data for its host, and what
    only a view of it needs."""

    text: str
    content: Json
    meta: Json | None = None


def _nobody_watches(done: int, total: int) -> None:
    """Progress that nobody asked for."""


@dataclass(frozen=True, slots=True)
class Call:
    """One call of a tool: the memory it may use, what it was told, and by whom.

    There is no space in it: the server decides that, and no argument can change it.
    ``draws`` says that the host draws views, which want to know more than a model does;
    ``whole`` that a program reads the answer, which is given more of it than a model.
    """

    memory: Memory
    told: Mapping[str, Any]
    client: str = ""
    via: str = "mcp"
    progress: Callable[[int, int], None] = field(default=_nobody_watches)
    draws: bool = False
    whole: bool = False

    @property
    def source(self) -> str:
        """Where what is written comes from, unless it says so itself."""
        return f"{self.via}:{self.client}" if self.client else self.via

    def given(self, *names: str) -> dict[str, Any]:
        """Those of the arguments that were given."""
        return {name: self.told[name] for name in names if name in self.told}


@dataclass(frozen=True, slots=True)
class Tool:
    """One tool. ``home`` is "module:function", below ``tools`` unless the module has a dot,
    imported when it is called.

    Texts in its answer are cut at ``longest`` characters; a tool with a budget of its own
    has None. ``view`` is the address of the page that draws it, for hosts that do.
    """

    name: str
    title: str
    description: str
    takes: Json
    gives: Json
    home: str
    reads: bool = False
    destroys: bool = False
    repeatable: bool = False
    longest: int | None = 2000
    view: str = ""

    def listed(self, *, draws: bool = False) -> Json:
        """As `tools/list` tells of it; its view only to a host that draws views."""
        told: Json = {
            "name": self.name,
            "title": self.title,
            "description": self.description,
            "inputSchema": self.takes,
            "outputSchema": self.gives,
            "annotations": {
                "title": self.title,
                "readOnlyHint": self.reads,
                "destructiveHint": self.destroys,
                "idempotentHint": self.repeatable,
                "openWorldHint": False,
            },
        }
        if not (self.view and draws):
            return told
        # The second name is the one that hosts knew before the extension was settled.
        return told | {"_meta": {"ui": {"resourceUri": self.view}, "ui/resourceUri": self.view}}

    def whole(self, call: Call) -> Reply:
        """The reply with every text as it is stored: for programs, not for models."""
        from importlib import import_module  # start-up time: lists are asked for first

        module, _, function = self.home.partition(":")
        home = module if "." in module else f"recollect.mcp.tools.{module}"
        made: Reply = getattr(import_module(home), function)(call)
        return made

    def __call__(self, call: Call) -> Reply:
        from recollect.mcp.fencing import cleaned  # start-up time: lists are asked for first

        made = self.whole(call)
        return made._replace(
            content=cleaned(made.content, self.longest), meta=cleaned(made.meta, self.longest)
        )
