"""Every route of the REST API and the tool behind it. A new one is one line here."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from recollect.mcp.tool import Tool
from recollect.mcp.tools.others import (
    CONSOLIDATE,
    HISTORY,
    INSIGHTS,
    NOTE_EDIT,
    THREADS,
    TIMELINE,
    UNDO,
)
from recollect.mcp.tools.usual import (
    EXPLAIN,
    FORGET,
    LIST_ENTITIES,
    RECALL,
    RECALL_FILE,
    REMEMBER,
    UPDATE_MEMORY,
)
from recollect.serve.operations import (
    EVENTS,
    GET_MEMORY,
    LINKS,
    LIST_MEMORIES,
    REMEMBER_MANY,
    RESTORE,
    STATS,
)

_ASKED: Mapping[str, str] = {"q": "query"}


class Way(NamedTuple):
    """A route. ``short`` are other names for arguments in an address, ``needs`` those
    that only this route asks for."""

    method: str
    path: str
    tool: Tool
    short: Mapping[str, str] = {}
    needs: tuple[str, ...] = ()

    @property
    def placed(self) -> tuple[str, ...]:
        """The arguments that stand in the path."""
        return tuple(part[1:-1] for part in self.path.split("/") if part.startswith("{"))


WAYS = (
    Way("POST", "/v1/recall", RECALL),
    Way("GET", "/v1/recall", RECALL, _ASKED),
    Way("POST", "/v1/explain", EXPLAIN),
    Way("POST", "/v1/memories", REMEMBER),
    Way("GET", "/v1/memories", LIST_MEMORIES),
    Way("POST", "/v1/memories/batch", REMEMBER_MANY),
    Way("GET", "/v1/memories/{id}", GET_MEMORY),
    Way("PATCH", "/v1/memories/{id}", UPDATE_MEMORY),
    Way("GET", "/v1/memories/{id}/history", HISTORY),
    Way("GET", "/v1/memories/{id}/timeline", TIMELINE),
    Way("GET", "/v1/memories/{id}/links", LINKS),
    Way("GET", "/v1/memories/{id}/why", EXPLAIN, _ASKED),
    Way("GET", "/v1/memories/{id}/why-not", EXPLAIN, _ASKED, ("query",)),
    Way("POST", "/v1/forget", FORGET),
    Way("POST", "/v1/restore", RESTORE),
    Way("POST", "/v1/undo", UNDO),
    Way("POST", "/v1/consolidate", CONSOLIDATE),
    Way("GET", "/v1/entities", LIST_ENTITIES),
    Way("GET", "/v1/threads", THREADS),
    Way("GET", "/v1/threads/{id}", THREADS),
    Way("GET", "/v1/insights", INSIGHTS),
    Way("GET", "/v1/files", RECALL_FILE),
    Way("POST", "/v1/files/edits", NOTE_EDIT),
    Way("GET", "/v1/stats", STATS),
    Way("GET", "/v1/events", EVENTS),
)


class Plain(NamedTuple):
    """A route that is no tool's: what it is for, the row of the policy, what it answers."""

    method: str
    path: str
    operation: str
    told: str
    media: str


PLAIN = (
    Plain("GET", "/v1/export", "export", "Everything, losslessly, a record a line.",
          "application/x-ndjson"),
    Plain("POST", "/v1/import", "import", "Takes an export in, all of it or nothing.",
          "application/json"),
    Plain("GET", "/health", "health", "Whether the server is well.", "application/json"),
    Plain("GET", "/ready", "ready", "Whether store and model are loaded.", "application/json"),
    Plain("GET", "/metrics", "metrics", "Figures for Prometheus.", "text/plain"),
    Plain("GET", "/openapi.json", "openapi", "This API, as OpenAPI 3.1.", "application/json"),
    Plain("GET", "/", "page", "A page for people.", "text/html"),
)  # fmt: skip
