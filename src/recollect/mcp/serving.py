"""Runs a server: over standard input and output, or over HTTP behind a guard."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from recollect.errors import MissingExtra
from recollect.mcp.front import Front
from recollect.mcp.lines import Inlet, Lines, Outlet, take_over
from recollect.mcp.offer import Offer
from recollect.mcp.opening import Opening
from recollect.mcp.parent import watch_parent
from recollect.mcp.tracing import begin_tracing
from recollect.places import config_folder

if TYPE_CHECKING:
    from mcp.server.lowlevel import Server

    from recollect.access.hosts import Address
    from recollect.mcp.calling import Calling


def serve_stdio(offer: Offer, opening: Opening) -> None:
    """Serves the process that started us, until it closes our input or is gone.

    The greeting and the lists are answered at once; the library loads meanwhile.
    """
    # At once: a thread that waits for input cannot be told to stop, and nothing needs to.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    # Before anything is answered: a parent that is gone by then would never be missed.
    watch_parent()
    lines = Lines(take_over(), Front(offer))
    lines.begin()
    server = _load(offer, opening)
    import anyio
    from mcp.server.stdio import stdio_server

    begin_tracing(_say)

    async def serve() -> None:
        come, go = anyio.wrap_file(Inlet(lines)), anyio.wrap_file(Outlet(lines))
        async with stdio_server(come, go) as (reading, writing):
            opening.begin()
            await server.run(reading, writing, server.create_initialization_options())

    anyio.run(serve)
    opening.close()
    lines.end()


def serve_http(
    offer: Offer, opening: Opening, address: Address, note: Callable[[str], None]
) -> None:
    """Serves clients at http://HOST:PORT/mcp: those of this machine, and who has a token."""
    from recollect.access.guard import door_for  # standard input does without
    from recollect.access.rights import NOBODY
    from recollect.access.tokens import Tokens
    from recollect.mcp.calling import Calling
    from recollect.spaces import resolve_space

    space = resolve_space(None, opening.settings).name
    door = door_for(address, space, Tokens(config_folder(os.environ)))
    server = _load(offer, opening, Calling(opening, unseen=NOBODY))
    from recollect.mcp.http import guarded
    from recollect.mcp.listening import bound, listen

    at = bound(address)
    begin_tracing(_say)
    opening.begin()
    note(f"serving http://{address._replace(port=at.getsockname()[1]).shown}/mcp")
    listen(guarded(server, door), at)
    opening.close()


def _say(line: str) -> None:
    sys.stderr.write(f"recollect mcp: {line}\n")


def _load(offer: Offer, opening: Opening, calling: Calling | None = None) -> Server[Any]:
    """The server on the official library, whose import takes most of the start."""
    try:
        from recollect.mcp.server import make_server
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in ("mcp", "mcp_types", "anyio"):
            raise
        raise MissingExtra("the MCP library", extra="mcp") from error
    return make_server(offer, opening, calling=calling)
