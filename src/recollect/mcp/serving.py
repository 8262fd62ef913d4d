"""Runs a server: over standard input and output, or over HTTP on this machine alone."""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING, Any, NamedTuple

from recollect.errors import BadSetting, MissingExtra
from recollect.mcp.front import Front
from recollect.mcp.lines import Inlet, Lines, Outlet, take_over
from recollect.mcp.offer import Offer
from recollect.mcp.opening import Opening
from recollect.mcp.parent import watch_parent

if TYPE_CHECKING:
    from mcp.server.lowlevel import Server

LOOPBACK = ("127.0.0.1", "localhost", "::1")


def serve_stdio(offer: Offer, opening: Opening) -> None:
    """Serves the process that started us, until it closes our input or is gone.

    The greeting and the lists are answered at once; the library loads meanwhile.
    """
    # At once: a thread that waits for input cannot be told to stop, and nothing needs to.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    lines = Lines(take_over(), Front(offer))
    lines.begin()
    watch_parent()
    server = _load(offer, opening)
    import anyio
    from mcp.server.stdio import stdio_server

    async def serve() -> None:
        come, go = anyio.wrap_file(Inlet(lines)), anyio.wrap_file(Outlet(lines))
        async with stdio_server(come, go) as (reading, writing):
            opening.begin()
            await server.run(reading, writing, server.create_initialization_options())

    anyio.run(serve)
    opening.close()
    lines.end()


def serve_http(offer: Offer, opening: Opening, address: Address) -> None:
    """Serves clients of this machine at http://HOST:PORT/mcp."""
    server = _load(offer, opening)
    import uvicorn

    opening.begin()
    app = server.streamable_http_app(host=address.host)
    config = uvicorn.Config(app, host=address.host, port=address.port, log_level="warning")
    uvicorn.Server(config).run()
    opening.close()


class Address(NamedTuple):
    """Where to listen."""

    host: str
    port: int


def read_address(written: str) -> Address:
    """HOST:PORT of this machine; any other place would need a lock on the door first."""
    host, _, port = written.rpartition(":")
    host = host.removeprefix("[").removesuffix("]") or LOOPBACK[0]
    if host not in LOOPBACK:
        raise BadSetting(
            f"{host} is not this machine alone, and there is no password",
            remedy=f"one of {', '.join(LOOPBACK)}, for example 127.0.0.1:8765",
        )
    if not (port.isascii() and port.isdigit() and len(port) < 6 and int(port) < 65_536):
        raise BadSetting(f"{written!r} names no port", remedy="for example 127.0.0.1:8765")
    return Address(host, int(port))


def _load(offer: Offer, opening: Opening) -> Server[Any]:
    """The server on the official library, whose import takes most of the start."""
    try:
        from recollect.mcp.server import make_server
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in ("mcp", "mcp_types", "anyio"):
            raise
        raise MissingExtra("the MCP library", extra="mcp") from error
    return make_server(offer, opening)
