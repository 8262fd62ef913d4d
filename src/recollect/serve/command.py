"""`serve`: this project's memory over HTTP, as a REST API and by MCP."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from recollect.cli.app import App
from recollect.cli.options import command, pass_app
from recollect.errors import MissingExtra

if TYPE_CHECKING:
    from recollect.access.guard import Door
    from recollect.access.hosts import Address
    from recollect.mcp.opening import Opening

PORT = 8765
ACTOR = "http"
_PARTS = ("mcp", "mcp_types", "anyio", "starlette", "uvicorn", "h11", "prometheus_client")


@command(
    "serve",
    examples=[
        "recollect serve",
        "recollect serve --port 9000 --tools all",
        "recollect serve --require-token",
        "recollect serve --host 0.0.0.0 --allow-host memory.example.org --rate 300/min",
    ],
)
@click.option("--host", default="127.0.0.1", show_default=True, metavar="ADDRESS",
              help="Where to listen; beyond this machine only with a token.")  # fmt: skip
@click.option("--port", type=click.IntRange(0, 65_535), default=PORT, show_default=True,
              metavar="N", help="0 takes any that is free.")  # fmt: skip
@click.option("--allow-host", "hosts", multiple=True, metavar="NAME",
              help="Another name it may be called by.")  # fmt: skip
@click.option("--allow-origin", "origins", multiple=True, metavar="URL",
              help="A page's origin that may ask.")  # fmt: skip
@click.option("--require-token", is_flag=True, help="Also from programs of this machine.")
@click.option("--tools", default="", metavar="A,B,...",
              help="MCP: also these tools, or all; without it, seven.")  # fmt: skip
@click.option("--rate", default="1200/min", show_default=True, metavar="N/min",
              help="Requests from one token or address; 0 for no limit.")  # fmt: skip
@pass_app
def serve(app: App, /, host: str, port: int, tools: str, rate: str, **allowed: Any) -> int:
    """Serve this project's memory over HTTP.

    A REST API below /v1, described by /openapi.json, and MCP at /mcp, over the same
    operations with the same tokens. Programs of this machine may read and write without
    a token; everybody else, and whatever cannot be taken back, needs one: recollect token
    create. The memory is the working directory's project's, unless --space names another.
    Stops on SIGTERM and SIGINT. Needs the extra serve.
    """
    from recollect.access.hosts import Address  # help does without
    from recollect.access.rate import read_rate

    address = Address(host.removeprefix("[").removesuffix("]"), port)
    opening = _opening(app)
    door = _door(opening, address, rate=read_rate(rate), **allowed)
    named = [name.strip() for name in tools.split(",") if name.strip()]
    _run(app, opening, door, address, named)
    return 0


def _opening(app: App) -> Opening:
    from recollect.mcp.opening import Opening, settings_for  # help does without

    settings = settings_for(app.space)
    return Opening(settings if settings.given("actor") else replace(settings, actor=ACTOR))


def _door(opening: Opening, address: Address, **more: Any) -> Door:
    from recollect.access.guard import door_for  # help does without
    from recollect.access.tokens import Tokens
    from recollect.places import config_folder
    from recollect.spaces import resolve_space

    space = resolve_space(None, opening.settings).name
    return door_for(address, space, Tokens(config_folder(os.environ)), **more)


def _run(app: App, opening: Opening, door: Door, address: Address, tools: list[str]) -> None:
    from recollect.mcp.offer import Offer  # help does without
    from recollect.mcp.tools import chosen
    from recollect.mcp.tracing import begin_tracing

    offer = Offer(chosen(tools))
    try:
        from recollect.mcp.listening import bound, listen
        from recollect.serve.app import make_app
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in _PARTS:
            raise
        raise MissingExtra("what serving needs", extra="serve") from error
    at = bound(address)
    begin_tracing(app.note)
    real = address._replace(port=at.getsockname()[1])
    opening.begin()
    if app.json:
        app.out.json({"url": f"http://{real.shown}", "space": door.space, "pid": os.getpid()})
        app.out.stream.flush()
    app.note(f"serving the space {door.space} at http://{real.shown}")
    listen(make_app(offer, opening, door), at)
    opening.close()
