"""The commands `serve` and `token`."""

from __future__ import annotations

import os
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import click

from bethink.cli.app import App
from bethink.cli.options import Command, Group, command, pass_app
from bethink.cli.output import Column, bold, dim, format_time, green, print_table, yellow
from bethink.errors import MissingExtra

if TYPE_CHECKING:
    from bethink.access.guard import GuardConfig
    from bethink.access.hosts import Address
    from bethink.access.tokens import Token, TokenStore
    from bethink.server.mcp.memory_loader import MemoryLoader


PORT = 8765
ACTOR = "http"
_EXTRA_MODULES = ("mcp", "mcp_types", "anyio", "starlette", "uvicorn", "h11", "prometheus_client")


@command(
    "serve",
    examples=[
        "bethink serve",
        "bethink serve --port 9000 --tools all",
        "bethink serve --require-token",
        "bethink serve --host 0.0.0.0 --allow-host memory.example.org --rate 300/min",
    ],
)
@click.option("--host", default="127.0.0.1", show_default=True, metavar="ADDRESS",
              help="Address to listen on; other than loopback needs a token.")  # fmt: skip
@click.option("--port", type=click.IntRange(0, 65_535), default=PORT, show_default=True,
              metavar="N", help="Port to listen on; 0 for any free one.")  # fmt: skip
@click.option("--allow-host", "hosts", multiple=True, metavar="NAME",
              help="Also accept this Host name.")  # fmt: skip
@click.option("--allow-origin", "origins", multiple=True, metavar="URL",
              help="Also accept pages of this origin.")  # fmt: skip
@click.option("--require-token", is_flag=True, help="Require a token on this machine as well.")
@click.option("--tools", default="", metavar="A,B,...",
              help="Additional MCP tools, or all.")  # fmt: skip
@click.option("--rate", default="1200/min", show_default=True, metavar="N/min",
              help="Rate limit per token or address; 0 for none.")  # fmt: skip
@pass_app
def serve(app: App, /, host: str, port: int, tools: str, rate: str, **allowed: Any) -> int:
    """Serve this project's memory over HTTP.

    A REST API below /v1, described by /openapi.json, and MCP at /mcp, with the same operations
    and tokens. Programs on this machine may read and write without a token; all other callers,
    and operations that cannot be undone, need one: bethink token create. It serves the
    project in the working directory, unless --space names another. Stops on SIGTERM and SIGINT.
    Needs the extra serve.
    """
    from bethink.access.hosts import Address  # help does without
    from bethink.access.rate_limit import parse_rate

    address = Address(host.removeprefix("[").removesuffix("]"), port)
    loader = _make_loader(app)
    config = _make_config(loader, address, rate=parse_rate(rate), **allowed)
    tool_names = [name.strip() for name in tools.split(",") if name.strip()]
    _run_server(app, loader, config, address, tool_names)
    return 0


def _make_loader(app: App) -> MemoryLoader:
    from bethink.server.mcp.memory_loader import MemoryLoader, settings_for  # help does without

    settings = settings_for(app.space)
    return MemoryLoader(settings if settings.explicit("actor") else replace(settings, actor=ACTOR))


def _make_config(loader: MemoryLoader, address: Address, **more: Any) -> GuardConfig:
    from bethink.access.guard import make_guard_config  # help does without
    from bethink.access.tokens import TokenStore
    from bethink.config.paths import config_folder
    from bethink.config.spaces import resolve_space

    space = resolve_space(None, loader.settings).name
    return make_guard_config(address, space, TokenStore(config_folder(os.environ)), **more)


def _run_server(
    app: App, loader: MemoryLoader, config: GuardConfig, address: Address, tools: list[str]
) -> None:
    from bethink.server.mcp.manifest import ServerManifest  # help does without
    from bethink.server.telemetry import start_tracing
    from bethink.server.tools import select_tools

    manifest = ServerManifest(select_tools(tools))
    try:
        from bethink.server.listener import bind_socket, serve_until_signal
        from bethink.server.rest.app import make_app
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in _EXTRA_MODULES:
            raise
        raise MissingExtra("the HTTP server", extra="serve") from error
    listener = bind_socket(address)
    start_tracing(app.note)
    real = address._replace(port=listener.getsockname()[1])
    loader.start()
    if app.json:
        app.out.json({"url": f"http://{real.netloc}", "space": config.space, "pid": os.getpid()})
        app.out.stream.flush()
    app.note(f"serving the space {config.space} at http://{real.netloc}")
    serve_until_signal(make_app(manifest, loader, config), listener)
    loader.close()


_SCOPES = ("read", "write", "admin")


class SpacesCommand(Command):
    """A command whose own --space option may be repeated."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.params = [param for param in self.params if param.name != "space"]


@click.group(
    "token",
    cls=Group,
    examples=[
        "bethink token create laptop --scope write --expires 90d",
        "bethink token list",
        "bethink token revoke laptop",
    ],
)
@click.pass_context
def token(ctx: click.Context) -> int:
    """Create, list and revoke tokens.

    A token gives a program access to bethink serve and bethink mcp --http: with a scope
    (read, write or admin), to the spaces it was created for, until it expires. Only its hash is
    stored.
    """
    return _print_tokens(ctx.ensure_object(App)) if ctx.invoked_subcommand is None else 0


def _open_tokens() -> TokenStore:
    from bethink.access.tokens import TokenStore  # help does without
    from bethink.config.paths import config_folder

    return TokenStore(config_folder(os.environ))


@click.command(
    "create",
    cls=SpacesCommand,
    examples=[
        "bethink token create laptop --scope write",
        "bethink token create dashboard --scope read --expires 30d --space work --space home",
    ],
)
@click.argument("name")
@click.option("--scope", type=click.Choice(_SCOPES), required=True, help="What the token allows.")
@click.option("--space", "spaces", multiple=True, metavar="NAME",
              help="Space it is valid for; default: the one in use here.")  # fmt: skip
@click.option("--any-space", is_flag=True, help="Make it valid for every space.")
@click.option(
    "--expires", metavar="SPAN", help="Lifetime, for example 12h, 30d, 1y; default: no expiry."
)
@pass_app
def create(
    app: App, /, name: str, scope: str, spaces: tuple[str, ...], *, any_space: bool,
    expires: str | None,
) -> None:  # fmt: skip
    """Create a token and print it once.

    read recalls; write also stores, corrects and forgets what can be restored; admin also
    erases, exports and imports. Settings and tokens can only be changed on this machine.
    """
    from bethink.access.policy import Right  # help does without
    from bethink.access.tokens import ANY_SPACE, expiry_after
    from bethink.errors import Refused

    if any_space and spaces:
        raise Refused("--any-space and --space cannot be combined")
    until = None if expires is None else expiry_after(expires, datetime.now(UTC))
    valid_spaces = (ANY_SPACE,) if any_space else _resolve_spaces(app, spaces)
    secret = _open_tokens().create(name, Right[scope.upper()], valid_spaces, expires=until)
    if app.json:
        record = next(entry for entry in _open_tokens().all() if entry.name == name).to_json()
        app.out.json({"token": secret, **record})
        return
    app.out.line(secret)
    where = "every space" if any_space else ", ".join(valid_spaces)
    app.note(green(f"{name}: {scope}, for {where}"), dim("; it is not shown again"))


def _resolve_spaces(app: App, spaces: tuple[str, ...]) -> tuple[str, ...]:
    from bethink.config.spaces import data_dir, space_path  # help does without

    for space in spaces:
        if not space_path(space, data_dir(app.settings)).exists():
            # It may be created later, but is more likely a typo.
            app.note(yellow(f"there is no space {space} yet; list them with: bethink spaces"))
    return spaces or (app.where().name,)


@command("list", examples=["bethink token list", "bethink token list --json"])
@pass_app
def list_tokens(app: App) -> int:
    """List the tokens without their secrets."""
    return _print_tokens(app)


def _print_tokens(app: App) -> int:
    found, now = _open_tokens().all(), datetime.now(UTC)
    if app.json:
        app.out.json([record.to_json() | {"expired": record.has_expired(now)} for record in found])
    elif found:
        heads = [Column("name"), Column("scope"), Column("made"), Column("until"),
                 Column("spaces", wide=True)]  # fmt: skip
        print_table(app.out, heads, [_token_row(record, now) for record in found])
    else:
        app.note("there are no tokens; create one with: bethink token create")
    return 0 if found else 1


def _token_row(record: Token, now: datetime) -> tuple[Any, ...]:
    until = dim("never expires") if record.expires is None else dim(format_time(record.expires))
    if record.has_expired(now):
        until = yellow("expired")
    spaces = "every space" if "*" in record.spaces else ", ".join(record.spaces)
    return (
        bold(record.name),
        record.right.scope_name,
        dim(format_time(record.created)),
        until,
        dim(spaces),
    )


@command("revoke", examples=["bethink token revoke laptop"])
@click.argument("name")
@pass_app
def revoke(app: App, name: str) -> None:
    """Revoke a token at once.

    Running servers notice.
    """
    gone = _open_tokens().revoke(name)
    if app.json:
        app.out.json({"revoked": gone.name})
    else:
        app.out.line(green("revoked"), " ", bold(gone.name))


token.add_command(create)
token.add_command(list_tokens)
token.add_command(revoke)
