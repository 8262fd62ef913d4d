"""The command `mcp`: run the MCP server over stdio, or over HTTP behind the guard."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

from bethink.cli.app import App
from bethink.cli.options import command, pass_app
from bethink.config.paths import config_folder
from bethink.errors import MissingExtra
from bethink.server.mcp.manifest import ServerManifest
from bethink.server.mcp.memory_loader import MemoryLoader, settings_for
from bethink.server.mcp.stdio import (
    BridgeInput,
    BridgeOutput,
    EarlyHandshake,
    StdioBridge,
    take_over_stdio,
    watch_parent,
)
from bethink.server.telemetry import start_tracing
from bethink.server.tools import select_tools

if TYPE_CHECKING:
    from mcp.server.lowlevel import Server

    from bethink.access.hosts import Address
    from bethink.server.tools.calls import ToolExecutor


def serve_stdio(manifest: ServerManifest, loader: MemoryLoader) -> None:
    """Serve the parent process over stdio until it closes the input or exits.

    The handshake and the lists are answered at once, while the library loads.
    """
    # Exit at once: a thread blocked on input cannot be stopped, and nothing needs cleanup.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    # Before any answer: a parent that exits earlier would go unnoticed.
    watch_parent()
    lines = StdioBridge(take_over_stdio(), EarlyHandshake(manifest))
    lines.start()
    server = _load_server(manifest, loader)
    import anyio
    from mcp.server.stdio import stdio_server

    start_tracing(_print_notice)

    async def serve() -> None:
        come, go = anyio.wrap_file(BridgeInput(lines)), anyio.wrap_file(BridgeOutput(lines))
        async with stdio_server(come, go) as (reading, writing):
            loader.start()
            await server.run(reading, writing, server.create_initialization_options())

    anyio.run(serve)
    loader.close()
    lines.finish()


def serve_http(
    manifest: ServerManifest, loader: MemoryLoader, address: Address, note: Callable[[str], None]
) -> None:
    """Serve http://HOST:PORT/mcp to local clients and to callers with a token."""
    from bethink.access.guard import make_guard_config  # not needed for stdio
    from bethink.access.policy import ANONYMOUS
    from bethink.access.tokens import TokenStore
    from bethink.config.spaces import resolve_space
    from bethink.server.tools.calls import ToolExecutor

    space = resolve_space(None, loader.settings).name
    config = make_guard_config(address, space, TokenStore(config_folder(os.environ)))
    server = _load_server(manifest, loader, ToolExecutor(loader, default_principal=ANONYMOUS))
    from bethink.server.listener import bind_socket, serve_until_signal
    from bethink.server.mcp.http import make_guarded_app

    at = bind_socket(address)
    start_tracing(_print_notice)
    loader.start()
    note(f"serving http://{address._replace(port=at.getsockname()[1]).netloc}/mcp")
    serve_until_signal(make_guarded_app(server, config), at)
    loader.close()


def _print_notice(line: str) -> None:
    sys.stderr.write(f"bethink mcp: {line}\n")


def _load_server(
    manifest: ServerManifest, loader: MemoryLoader, executor: ToolExecutor | None = None
) -> Server[Any]:
    """Build the server; importing the official library takes most of the start-up time."""
    try:
        from bethink.server.mcp.server import make_server
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in ("mcp", "mcp_types", "anyio"):
            raise
        raise MissingExtra("the MCP library", extra="mcp") from error
    return make_server(manifest, loader, executor=executor)


@command(
    "mcp",
    examples=[
        "claude mcp add bethink -- bethink mcp",
        "bethink mcp --tools all",
        "bethink mcp --tools timeline,undo --space work",
        "bethink mcp --http 127.0.0.1:8765",
    ],
)
@click.option(
    "--tools",
    default="",
    metavar="A,B,...",
    help="Additional tools, or all; default: the seven standard ones.",
)
@click.option(
    "--http",
    metavar="HOST:PORT",
    help="Serve at http://HOST:PORT/mcp instead of stdio; needs a token beyond this machine.",
)
@pass_app
def mcp_command(app: App, *, tools: str, http: str | None) -> int:
    """Serve this project's memory to agents (MCP).

    Speaks the Model Context Protocol over standard input and output with the process that
    started it, or over HTTP with --http. It serves the project in CLAUDE_PROJECT_DIR, else in
    the working directory, unless --space names another; a client cannot change this. Needs the
    extra mcp.
    """
    tool_names = [name.strip() for name in tools.split(",") if name.strip()]
    manifest, loader = (
        ServerManifest(select_tools(tool_names)),
        MemoryLoader(settings_for(app.space)),
    )
    if http is None:
        serve_stdio(manifest, loader)
        return 0
    from bethink.access.hosts import parse_address  # not needed for stdio

    serve_http(manifest, loader, parse_address(http), app.note)
    return 0
