"""The commands `mcp`, `serve`, `ui` and `token`."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager, nullcontext
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Unpack

import click

from bethink.access.policy import ANONYMOUS, Principal, Right
from bethink.cli.app import App
from bethink.cli.options import command, group, option
from bethink.cli.output import Piece, bold, columns, dim, format_time, green, print_table, yellow
from bethink.config.paths import config_folder
from bethink.config.spaces import data_dir, resolve_space, space_path
from bethink.errors import MissingExtra, Refused
from bethink.server.mcp.manifest import ServerManifest, system_manifest
from bethink.server.mcp.memory_loader import MemoryLoader, settings_for
from bethink.server.mcp.requests import READ_TIMEOUT_S
from bethink.server.mcp.stdio import StdioServer, take_over_stdio
from bethink.server.mcp.worker_calls import WorkerCalls
from bethink.server.parent import watch_parent
from bethink.server.systems import SYSTEMS
from bethink.server.telemetry import start_tracing
from bethink.server.tools import select_tools
from bethink.store import space_exists

if TYPE_CHECKING:
    from starlette.routing import Route

    from bethink.access.guard import AllowedCallers, Guard, GuardConfig
    from bethink.access.hosts import Address
    from bethink.access.people import Directory
    from bethink.access.tokens import Token
    from bethink.server.rest.spaces import SpacesApp
    from bethink.server.tools.calls import ToolExecutor

    ServedApp = Guard | SpacesApp


PORT = 8765
UI_PORT = 8766
ACTOR = "http"
_EXTRA_MODULES = ("mcp", "mcp_types", "anyio", "starlette", "sse_starlette", "uvicorn", "h11",
                  "prometheus_client")  # fmt: skip


@command(
    "serve",
    examples=[
        "bethink serve",
        "bethink serve --port 9000 --tools all",
        "bethink serve --require-token",
        "bethink serve --host 0.0.0.0 --allow-host memory.example.org --rate 300/min",
        "bethink serve --host 0.0.0.0 --port 443 --tls-cert chain.pem --tls-key key.pem",
    ],
)
@option(
    "--host ADDRESS", "Address to listen on; other than loopback needs a token.", shown="127.0.0.1"
)
@option("--port N", "Port to listen on; 0 for any free one.", click.IntRange(0, 65_535), shown=PORT)
@option("--allow-host hosts NAME", "Also accept this Host name.", multiple=True)
@option("--allow-origin origins URL", "Also accept pages of this origin.", multiple=True)
@option("--require-token", "Require a token on this machine as well.")
@option("--also-space also NAME", "Also serve this space, below /spaces/NAME.", multiple=True)
@option("--public-url URL", "The https URL at which others reach this server; needs a token.")
@option("--oauth", "Let remote hosts ask you for access on a consent page of this server.")
@option("--oauth-register", "With --oauth: hosts without a metadata document register themselves.")
@option("--tls-cert FILE", "Serve https with this certificate and its chain (PEM).")
@option("--tls-key FILE", "The certificate's private key (PEM).")
@option("--tools A,B,...", "Additional MCP tools, or all.", default="")
@option("--rate N/min", "Rate limit per token or address; 0 for none.", shown="1200/min")
@option(
    "--workers N",
    "Processes that answer recalls; more than one use several cores.",
    click.IntRange(1, 64),
    shown=1,
)
def serve(
    app: App,
    /,
    host: str,
    port: int,
    *,
    also: tuple[str, ...],
    tools: str,
    rate: str,
    workers: int,
    tls_cert: str | None,
    tls_key: str | None,
    oauth: bool,
    oauth_register: bool,
    **allowed: Unpack[AllowedCallers],
) -> int:
    """Serve this project's memory over HTTP.

    A REST API below /v1, described by /openapi.json, and MCP at /mcp, with the same operations
    and tokens. Programs on this machine may read and write without a token; all other callers,
    and operations that cannot be undone, need one: bethink token create. It serves the
    project in the working directory, unless --space names another. Stops on SIGTERM and SIGINT.
    Needs the extra serve.
    """
    from bethink.access.guard import parse_rate
    from bethink.access.hosts import Address  # help does without

    address = Address(host.removeprefix("[").removesuffix("]"), port)
    loader = _make_loader(app)
    routes = _sign_in(loader, allowed, own=oauth or oauth_register, registers=oauth_register)
    config = replace(_make_config(loader, address, **allowed), rate=parse_rate(rate))
    if bool(tls_cert) != bool(tls_key):
        raise Refused("--tls-cert and --tls-key belong together")
    more: Any = {"workers": workers, "tls": (tls_cert or "", tls_key or ""), "signs_in": routes}
    more["also"] = also
    _run_server(app, loader, config, address, _tool_names(tools), **more)
    return 0


def _sign_in(
    loader: MemoryLoader, allowed: AllowedCallers, *, own: bool, registers: bool
) -> Callable[[], list[Route]]:
    """Let callers sign in with OAuth, if there is a public URL; return what makes its routes."""
    from bethink.access.connections import ACCESS, Connections  # help does without
    from bethink.access.hosts import parse_public_url
    from bethink.access.identities import load_identities

    if not allowed.get("public_url"):
        if own:
            raise Refused("--oauth needs --public-url", remedy="name the URL others reach it at")
        return list
    folder, url = config_folder(), parse_public_url(allowed.get("public_url") or "")
    space = resolve_space(None, loader.settings).name
    outside, kept = load_identities(folder, f"{url}/mcp", space), Connections(folder)
    servers = [*([url] if own else []), *outside.issuers]

    def verify(token: str) -> Principal | None:
        if token.startswith(ACCESS):
            return kept.authenticate(token, space) if own else None
        return outside.authenticate(token)

    def routes() -> list[Route]:
        from bethink.server.rest.oauth import AuthorizationServer, resource_routes  # the extra

        own_routes = AuthorizationServer(url, space, kept, registers=registers).routes()
        return [*(own_routes if own else []), *(resource_routes(url, servers) if servers else [])]

    if servers:
        allowed["verify"] = verify
    return routes


def _tool_names(listed: str) -> list[str]:
    return [name.strip() for name in listed.split(",") if name.strip()]


def _make_loader(app: App, space: str | None = None) -> MemoryLoader:
    settings = settings_for(space or app.space, store=app.store)
    return MemoryLoader(settings if settings.explicit("actor") else replace(settings, actor=ACTOR))


def _make_config(
    loader: MemoryLoader, address: Address, **allowed: Unpack[AllowedCallers]
) -> GuardConfig:
    from bethink.access.guard import make_guard_config  # help does without
    from bethink.access.tokens import TokenStore

    space = resolve_space(None, loader.settings).name
    return make_guard_config(address, space, TokenStore(), **allowed)


@command(
    "ui", examples=["bethink ui", "bethink ui --space work --read-only", "bethink ui --no-open"]
)
@option("--read-only", "Show everything, change nothing.")
@option(
    "--port N", f"Port to listen on; default: {UI_PORT}, or a free one.", click.IntRange(0, 65_535)
)
@option("--no-open", "Only print the link.")
def ui(app: App, /, *, read_only: bool, port: int | None, no_open: bool) -> int:
    """Open the inspector in the browser.

    A page in which everything that is stored can be seen, asked for and corrected, and every
    answer explained; a menu switches to other spaces. Only this machine can reach it, and
    only the browser that opens the link: it works once, within ten minutes. Nothing is loaded
    from elsewhere. Stops on Ctrl-C. Needs the extra serve.
    """
    from bethink.access.hosts import Address, is_port_free  # help does without

    app.check_space()  # a mistyped name is not a new space
    wanted = Address("127.0.0.1", UI_PORT if port is None else port)
    address = wanted if port is not None or is_port_free(wanted) else wanted._replace(port=0)
    loader = _make_loader(app)
    # Not even other programs on this machine may use it without the link or a token.
    config = replace(_make_config(loader, address), trust_loopback=False)
    reader = Principal("inspector", Right.READ if read_only else Right.ADMIN)
    also = tuple(app.space_names())
    _run_server(app, loader, config, address, [], reader=reader, opens=not no_open, also=also)
    return 0


def _run_server(
    app: App,
    loader: MemoryLoader,
    config: GuardConfig,
    address: Address,
    tools: list[str],
    *,
    reader: Principal | None = None,
    opens: bool = False,
    workers: int = 1,
    tls: tuple[str, str] = ("", ""),
    signs_in: Callable[[], list[Route]] = list,
    also: tuple[str, ...] = (),
) -> None:
    """Serve until a signal; for a ``reader`` print a link to the inspector and open it.

    ``also`` are further spaces.
    """
    from bethink.access.webhooks import WebhookStore  # help does without

    manifest = ServerManifest(select_tools(tools))
    try:
        from bethink.server import listener as http
        from bethink.server.rest.app import make_app
        from bethink.server.rest.browser import BrowserSessions, open_browser
        from bethink.server.tools.calls import ReadPool
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in _EXTRA_MODULES:
            raise
        raise MissingExtra("the HTTP server", extra="serve") from error
    limit_s = read_limit_s()
    context = http.load_certificate(*tls) if tls[0] else None
    listener = http.bind_socket(address)
    with http.ended_by_signal(), closing(loader), listener:
        start_tracing(app.note)
        at = address._replace(port=listener.getsockname()[1]).netloc
        url = config.public_url or f"{'https' if context else 'http'}://{at}"
        loader.start()
        sessions = BrowserSessions(config.tokens, config.space, others=also)
        link = url if reader is None else f"{url}/login#{sessions.issue_ticket(reader)}"
        _print_link(app, link, config.space, is_once=reader is not None)
        pool = None
        if workers > 1:
            pool = ReadPool(workers, app.space, app.store, timeout_s=limit_s)
        with (
            open_browser(link) if opens else nullcontext(),
            closing(pool) if pool else nullcontext(),
        ):
            hooks = WebhookStore(config.tokens.path.parent) if reader is None else None
            parts: Any = {"sessions": sessions, "pool": pool, "hooks": hooks}
            parts["oauth_routes"] = signs_in()
            made = make_app(manifest, loader, config, timeout_s=limit_s, **parts)
            shared: Any = {"manifest": manifest, "timeout_s": limit_s, "sessions": sessions}
            with _with_spaces(app, made, config, also, **shared) as every:
                http.serve_until_signal(every, listener, context)


@contextmanager
def _with_spaces(
    app: App, root: Guard, config: GuardConfig, also: tuple[str, ...], **parts: Any
) -> Iterator[ServedApp]:
    """Add further spaces to an application; their memories are closed at the end."""
    from bethink.server.rest.app import make_app
    from bethink.server.rest.spaces import SpacesApp, for_space

    if not also:
        yield root
        return
    spaces = {config.space: root}
    with ExitStack() as stack:
        for name in dict.fromkeys(name for name in also if name != config.space):
            space_path(name, data_dir(app.settings))  # refuses what is no name
            loader = stack.enter_context(closing(_make_loader(app, name)))
            of_space = for_space(config, name)
            spaces[name] = make_app(loader=loader, config=of_space, with_page=False, **parts)
        yield SpacesApp(root, spaces, config)


def _print_link(app: App, link: str, space: str, *, is_once: bool) -> None:
    if app.json:
        app.out.json({"url": link, "space": space, "pid": os.getpid()})
        app.out.stream.flush()
    if is_once:
        app.note(f"the inspector of the space {space}: {link}")
        app.note(dim("the link works once, within ten minutes; Ctrl-C stops"))
    else:
        app.note(f"serving the space {space} at {link}, the inspector at {link}/ui")


_READ_LIMIT_VARIABLE = "BETHINK_READ_TIMEOUT_S"


def read_limit_s() -> float:
    """Return how many seconds a read may take."""
    if _READ_LIMIT_VARIABLE not in os.environ:
        return READ_TIMEOUT_S
    from bethink.models.http import read_timeout  # start-up time

    return read_timeout(os.environ, _READ_LIMIT_VARIABLE, READ_TIMEOUT_S)


def serve_stdio(manifest: ServerManifest, loader: MemoryLoader) -> None:
    """Serve the parent process over stdio until it closes the input or exits."""
    # Exit at once: a thread blocked on input cannot be stopped, and nothing needs cleanup.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    # Before any answer: a parent that exits earlier would go unnoticed.
    watch_parent()
    worker = WorkerCalls(loader.settings)

    def make_executor() -> ToolExecutor:
        from bethink.server.tools.calls import ToolExecutor  # after the handshake

        return ToolExecutor(loader)

    def begin() -> None:
        start_tracing(_print_notice)
        worker.start(otherwise=loader.start)

    limit_s = read_limit_s()
    server = StdioServer(
        take_over_stdio(), manifest, make_executor, timeout_s=limit_s, ask_worker=worker.answer
    )
    server.run(begin)
    loader.close()


def serve_http(
    manifest: ServerManifest, loader: MemoryLoader, address: Address, note: Callable[[str], None]
) -> None:
    """Serve http://HOST:PORT/mcp to local clients and to callers with a token."""
    from bethink.server.tools.calls import ToolExecutor

    config = _make_config(loader, address)
    executor = ToolExecutor(loader, default_principal=ANONYMOUS, people=config.tokens.people)
    try:
        from bethink.server.listener import bind_socket, ended_by_signal, serve_until_signal
        from bethink.server.mcp.http import make_guarded_app
        from bethink.server.mcp.server import make_server
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in _EXTRA_MODULES:
            raise
        raise MissingExtra("MCP over HTTP", extra="mcp") from error
    server = make_server(manifest, loader, timeout_s=read_limit_s(), executor=executor)
    at = bind_socket(address)
    with ended_by_signal(), closing(loader), at:
        start_tracing(_print_notice)
        loader.start()
        note(f"serving http://{address._replace(port=at.getsockname()[1]).netloc}/mcp")
        serve_until_signal(make_guarded_app(server, config), at)


def _print_notice(line: str) -> None:
    sys.stderr.write(f"bethink mcp: {line}\n")


@command(
    "mcp",
    examples=[
        "claude mcp add bethink -- bethink mcp",
        "bethink mcp --tools all",
        "bethink mcp --tools timeline,undo --space work",
        "bethink mcp --http 127.0.0.1:8765",
        "bethink mcp --as linksee",
    ],
)
@option(
    "--tools A,B,...", "Additional tools, or all; default: the seven standard ones.", default=""
)
@option(
    "--as system NAME",
    "Offer the tools of another memory system instead, with its names, arguments and profile: "
    f"{', '.join(SYSTEMS)}.",
    click.Choice(SYSTEMS),
)
@option(
    "--http HOST:PORT",
    "Serve at http://HOST:PORT/mcp instead of stdio; needs a token beyond this machine.",
)
def mcp_command(app: App, *, tools: str, system: str | None, http: str | None) -> int:
    """Serve this project's memory to agents (MCP).

    Speaks the Model Context Protocol over standard input and output with the process that
    started it, or over HTTP with --http. It serves the project in CLAUDE_PROJECT_DIR, else in
    the working directory, unless --space names another; a client cannot change this. --http
    needs the extra mcp.
    """
    if system is not None:
        from bethink.server.systems.declarations import load_system  # few hosts ask for it

        if tools:
            raise Refused("--as and --tools cannot be combined")
        theirs = load_system(system)
        manifest = system_manifest(theirs)
        app.profile = theirs.profile
    else:
        manifest = ServerManifest(select_tools(_tool_names(tools)))
    loader = MemoryLoader(settings_for(app.space, store=app.store, profile=app.profile))
    if http is None:
        serve_stdio(manifest, loader)
        return 0
    from bethink.access.hosts import parse_address  # not needed for stdio

    serve_http(manifest, loader, parse_address(http), app.note)
    return 0


_SCOPES = ("read", "write", "admin")


@group(
    "token",
    examples=[
        "bethink token create laptop --scope write --expires 90d",
        "bethink token list",
        "bethink token revoke laptop",
    ],
)
def token(app: App) -> int:
    """Create, list and revoke tokens.

    A token gives a program access to bethink serve and bethink mcp --http: with a scope
    (read, write or admin), to the spaces it was created for, until it expires. Only its hash is
    stored.
    """
    return list_tokens(app)


@token.subcommand(
    "create",
    examples=[
        "bethink token create laptop --scope write",
        "bethink token create dashboard --scope read --expires 30d --space work",
    ],
)
@click.argument("name")
@option("--scope", "What the token allows.", click.Choice(_SCOPES), required=True)
@option(
    "--space spaces NAME", "Space it is valid for; default: the one in use here.", multiple=True
)
@option("--any-space", "Make it valid for every space.")
@option("--expires SPAN", "Lifetime, for example 12h, 30d, 1y; default: no expiry.")
@option("--person NAME", "Whose token it is, of those that bethink people lists.")
def create(
    app: App, /, name: str, scope: str, spaces: tuple[str, ...], *, any_space: bool,
    expires: str | None, person: str | None,
) -> None:  # fmt: skip
    """Create a token and print it once.

    read recalls; write also stores, corrects and forgets what can be restored; admin also
    erases, exports and imports. Settings and tokens can only be changed on this machine. With
    --person it is for what that person may see, and allows what their role does at most.
    """
    from bethink.access.tokens import ANY_SPACE, TokenStore, expiry_after

    if any_space and spaces:
        raise Refused("--any-space and --space cannot be combined")
    until = None if expires is None else expiry_after(expires, datetime.now(UTC))
    valid_spaces = (ANY_SPACE,) if any_space else _resolve_spaces(app, spaces)
    tokens = TokenStore()
    whose = "" if person is None else tokens.people.find(person).id
    right = Right[scope.upper()]
    secret = tokens.create(name, right, valid_spaces, expires=until, person=whose)
    record = next(entry for entry in tokens.all() if entry.name == name)
    app.report({"token": secret, **record.to_json()}, secret)
    where = "every space" if any_space else ", ".join(valid_spaces)
    app.note(green(f"{name}: {scope}, for {where}"), dim("; it is not shown again"))


def _resolve_spaces(app: App, spaces: tuple[str, ...]) -> tuple[str, ...]:
    for space in spaces:
        path = space_path(space, data_dir(app.settings))
        if not space_exists(app.settings.store, space, path):
            # It may be created later, but is more likely a typo.
            app.note(yellow(f"there is no space {space} yet; list them with: bethink spaces"))
    return spaces or (app.where().name,)


@token.subcommand(
    "sign-in", examples=["bethink token sign-in", "bethink token sign-in --scope read"]
)
@option("--scope", "The most that the host may get.", click.Choice(_SCOPES), shown="write")
def sign_in(app: App, scope: str) -> None:
    """Print a code to enter on the consent page of bethink serve --oauth.

    It works once, within ten minutes, for the space in use here.
    """
    from bethink.access.connections import Connections  # help does without

    space = app.where().name
    code = Connections().make_code(Right[scope.upper()], space)
    app.report({"code": code, "scope": scope, "space": space}, code)
    app.note(green(f"for one host, up to {scope}, in {space}"), dim("; within ten minutes"))


@token.subcommand("list", examples=["bethink token list", "bethink token list --json"])
def list_tokens(app: App) -> int:
    """List the tokens without their secrets, and the hosts connected by OAuth."""
    from bethink.access.connections import Connections  # help does without
    from bethink.access.tokens import TokenStore

    tokens, now = TokenStore(), datetime.now(UTC)
    found = [*tokens.all(), *Connections().all()]
    documents = [record.to_json() | {"expired": record.has_expired(now)} for record in found]
    heads = columns("name", "scope", "made", "until", "*spaces")
    rows = [_token_row(record, tokens.people, now) for record in found]
    none = "there are no tokens; create one with: bethink token create"
    return app.listing(documents, lambda: print_table(app.out, heads, rows), none)


def _token_row(record: Token, people: Directory, now: datetime) -> tuple[Piece, ...]:
    until = dim("never expires") if record.expires is None else dim(format_time(record.expires))
    if record.has_expired(now):
        until = yellow("expired")
    spaces = "every space" if "*" in record.spaces else ", ".join(record.spaces)
    if record.person:
        spaces += f", for {people.name_of(record.person)}"
    return (
        bold(record.name),
        record.right.scope_name,
        dim(format_time(record.created)),
        until,
        dim(spaces),
    )


@token.subcommand("revoke", examples=["bethink token revoke laptop"])
@click.argument("name")
def revoke(app: App, name: str) -> None:
    """Revoke a token, or the connection of a host, at once.

    Running servers notice.
    """
    from bethink.access.connections import Connections  # help does without
    from bethink.access.tokens import TokenStore

    if not Connections().revoke_named(name):
        TokenStore().revoke(name)
    app.report({"revoked": name}, green("revoked"), " ", bold(name))
