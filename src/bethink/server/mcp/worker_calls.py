"""Reads of an MCP server, answered by the worker: the server then opens no memory itself."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING

from bethink.core.json_values import Json
from bethink.core.lazy import BackgroundCall
from bethink.core.once import count_once
from bethink.errors import NotFound, Refused
from bethink.server.mcp.memory_loader import OpenMemory
from bethink.server.tools import find_tool

if TYPE_CHECKING:
    from bethink.config.settings import Settings
    from bethink.memory import Memory
    from bethink.server.tools.tool import Tool


class WorkerCalls:
    """Calls of read-only tools that a worker answers for one server."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._can_start = True

    def start(self, otherwise: Callable[[], None]) -> None:
        """Start a worker and have it open the memory; ``otherwise`` where there will be none."""
        if self._is_used():
            BackgroundCall(lambda: self._warm_up(otherwise))
        else:
            otherwise()

    def _warm_up(self, otherwise: Callable[[], None]) -> None:
        from bethink.worker.client import request_worker  # after the handshake

        if request_worker("warm", {}, settings=self._settings) is None:
            self._can_start = False  # not again for every call; one that others start is asked
            otherwise()

    def answer(self, call: Json, timeout_s: float) -> Json | None:
        """Return what a call gives, or its error; None where the server must answer itself."""
        if not self._is_used():
            return None
        from bethink.worker.client import request_worker  # after the handshake

        reply = request_worker(
            "tool", call, settings=self._settings, deadline_s=timeout_s, start=self._can_start
        )
        return reply if isinstance(reply, dict) else None

    def _is_used(self) -> bool:
        # Spans are recorded by the process that answers.
        return self._settings.worker != "off" and "opentelemetry.sdk.trace" not in sys.modules


def call_json(tool: Tool, arguments: Json, client: str, *, supports_views: bool) -> Json:
    """A call as the worker gets it; its id is for counting a use once."""
    return {
        "name": tool.name,
        "system": tool.system,
        "arguments": arguments,
        "client": client,
        "views": supports_views,
        "id": os.urandom(8).hex(),
    }


def call_for_server(memory: Memory, payload: Json) -> Json:
    """Run a call in the worker, as the server would: its reply, or the error it reports.

    An error that may be the worker's own, of a store, a model or a part, is raised: the server
    then answers itself.
    """
    from bethink.server.tools.calls import ToolExecutor, ToolRequest

    tool = find_tool(payload["system"], payload["name"])
    if tool is None or not tool.read_only:
        raise Refused("only reads are answered")
    request = ToolRequest(
        tool, payload["arguments"], client=payload["client"], supports_views=payload["views"]
    )
    try:
        with count_once(payload["id"]):
            reply = ToolExecutor(OpenMemory(memory))(request)
    except (Refused, NotFound) as error:
        return {"error": [error.message, error.remedy, type(error).__name__]}
    return {"reply": reply._asdict()}
