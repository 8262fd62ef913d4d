"""`mcp`: serves this project's memory to agents."""

from __future__ import annotations

import click

from recollect.cli.app import App
from recollect.cli.options import command, pass_app
from recollect.mcp.offer import Offer
from recollect.mcp.opening import Opening, settings_for
from recollect.mcp.serving import serve_http, serve_stdio
from recollect.mcp.tools import chosen


@command(
    "mcp",
    examples=[
        "claude mcp add recollect -- recollect mcp",
        "recollect mcp --tools all",
        "recollect mcp --tools timeline,undo --space work",
        "recollect mcp --http 127.0.0.1:8765",
    ],
)
@click.option(
    "--tools",
    default="",
    metavar="A,B,...",
    help="Also these tools, or all; without it, seven.",
)
@click.option(
    "--http",
    metavar="HOST:PORT",
    help="Serve at http://HOST:PORT/mcp instead of the caller; beyond this machine by token.",
)
@pass_app
def mcp_command(app: App, *, tools: str, http: str | None) -> int:
    """Serve this project's memory to agents (MCP).

    By the Model Context Protocol, over standard input and output, to the process that
    started it. The memory is the
    project's of CLAUDE_PROJECT_DIR, else of the working directory, unless --space names
    another; nothing a client says can change it. Needs the extra mcp.
    """
    named = [name.strip() for name in tools.split(",") if name.strip()]
    offer, opening = Offer(chosen(named)), Opening(settings_for(app.space))
    if http is None:
        serve_stdio(offer, opening)
        return 0
    from recollect.access.hosts import read_address  # standard input does without

    serve_http(offer, opening, read_address(http), app.note)
    return 0
