"""The ASGI application: REST and MCP over one memory behind one guard, with metrics."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import replace
from functools import cache, partial

from anyio import create_task_group, fail_after, to_thread
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4, generate_latest
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route
from starlette.types import Scope

from bethink.access import policy
from bethink.access.guard import MAX_BODY_BYTES, Guard, GuardConfig
from bethink.access.webhooks import WebhookStore
from bethink.config.spaces import resolve_space
from bethink.core.json_values import Json
from bethink.errors import BethinkError
from bethink.memory import Memory
from bethink.server.events import EventStreams, WebhookSender
from bethink.server.mcp.http import PATH as MCP_PATH
from bethink.server.mcp.http import ROUTE_KEY, StreamableEndpoint, is_short_lived
from bethink.server.mcp.manifest import ServerManifest
from bethink.server.mcp.memory_loader import MemoryLoader
from bethink.server.mcp.requests import READ_TIMEOUT_S
from bethink.server.mcp.server import make_server
from bethink.server.rest.browser import (
    BrowserSessions,
    is_page_path,
    page_routes,
    session_cookie,
    start_session,
)
from bethink.server.rest.handlers import MAX_IMPORT_BYTES, run_checks, run_import, start_export
from bethink.server.rest.http_messages import (
    INDEX_PAGE,
    bug_response,
    error_response,
    json_response,
    read_arguments,
    read_json_body,
    routing_error_response,
    timeout_response,
)
from bethink.server.rest.oauth import AUTHORIZE
from bethink.server.rest.routes import (
    PLAIN_ROUTES,
    TOOL_ROUTES,
    PlainRoute,
    ToolRoute,
    openapi_document,
)
from bethink.server.rest.spaces import VISIBLE
from bethink.server.tools.calls import ReadPool, ToolExecutor, ToolRequest, hide_internal_errors
from bethink.version import __version__

METRICS_MEDIA = CONTENT_TYPE_PLAIN_0_0_4
_METHODS = ("GET", "HEAD", "POST", "PATCH", "DELETE", "OPTIONS")
_LATENCY_BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)


class Metrics:
    """Prometheus metrics of one server, in a registry of its own; they never hold content."""

    def __init__(self) -> None:
        self._registry = own = CollectorRegistry()
        self._requests = Counter(
            "bethink_http_requests", "Requests answered.", ["route", "method", "status"],
            registry=own,
        )  # fmt: skip
        self._seconds = Histogram(
            "bethink_http_request_seconds", "Duration of requests.", ["route"],
            buckets=_LATENCY_BUCKETS, registry=own,
        )  # fmt: skip
        self._limited = Counter(
            "bethink_rate_limited", "Requests refused by the rate limit.", registry=own
        )
        self._recalls = Counter("bethink_recalls", "Recalls, by status.", ["status"], registry=own)
        self._writes = Counter(
            "bethink_writes", "Changes made, by operation.", ["operation"], registry=own
        )
        self._degraded = Counter(
            "bethink_degraded", "Answers for which a component failed or was skipped.", ["part"],
            registry=own,
        )  # fmt: skip
        version = Gauge("bethink_build_info", "The version.", ["version"], registry=own)
        version.labels(__version__).set(1)

    def render(self) -> bytes:
        """Return all metrics in the Prometheus text format."""
        return generate_latest(self._registry)

    def observe_request(self, scope: Scope, status: int, seconds: float) -> None:
        """Count a request; unknown routes share one label, so that labels stay bounded."""
        route = scope.get(ROUTE_KEY, "other")
        method = scope["method"] if scope["method"] in _METHODS else "other"
        # A client that disconnected before the answer has no status.
        self._requests.labels(route, method, str(status or "none")).inc()
        if is_short_lived(scope):
            self._seconds.labels(route).observe(seconds)
        if status == 429:
            self._limited.inc()

    def count_write(self, operation: str) -> None:
        """Count a change."""
        self._writes.labels(operation).inc()

    @contextmanager
    def observe_call(self, request: ToolRequest, _: str) -> Iterator[Callable[[Json], None]]:
        """Observe a tool call and count its result."""
        yield lambda content: self._count_call(request, content)

    def _count_call(self, request: ToolRequest, content: Json) -> None:
        if request.tool.name == "recall":
            self._recalls.labels(content["status"]).inc()
            for part in content["degraded"]:
                self._degraded.labels(part["part"]).inc()
        elif not request.tool.read_only:
            self.count_write(request.tool.name)


Endpoint = Callable[[Request], Awaitable[Response]]


def make_app(
    manifest: ServerManifest,
    loader: MemoryLoader,
    config: GuardConfig,
    *,
    timeout_s: float = READ_TIMEOUT_S,
    tool_routes: Sequence[ToolRoute] = TOOL_ROUTES,
    sessions: BrowserSessions | None = None,
    pool: ReadPool | None = None,
    hooks: WebhookStore | None = None,
    oauth_routes: Sequence[Route] = (),
    with_page: bool = True,
) -> Guard:
    """Build the application that `serve` runs: REST, MCP and the inspector behind the guard.

    Without the page everything needs a token, or a program on this machine.
    """
    metrics = Metrics()
    people, observers = config.tokens.people, [metrics.observe_call]
    executor = ToolExecutor(
        loader, observers, default_principal=policy.ANONYMOUS, pool=pool, people=people
    )
    sessions = sessions or BrowserSessions(config.tokens, config.space)
    rest = RestApi(executor, metrics, timeout_s, tool_routes, sessions)
    mcp = StreamableEndpoint(
        make_server(manifest, loader, timeout_s=timeout_s, executor=executor),
        public_url=config.public_url,
    )

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        async with mcp.run(), create_task_group() as group:
            if hooks is not None:
                send = WebhookSender(hooks, executor).run
                group.start_soon(send, config.space, rest.streams.generation)
            yield
            group.cancel_scope.cancel()

    app = Starlette(
        routes=[*rest.routes(), Route(MCP_PATH, mcp), *page_routes(), *oauth_routes],
        lifespan=lifespan,
        exception_handlers={HTTPException: routing_error_response, BethinkError: _failed},
    )
    app.router.redirect_slashes = False
    guarded = _guard_config(config, metrics, sessions, oauth_routes, with_page=with_page)
    return Guard(app, guarded)


def _guard_config(
    config: GuardConfig,
    metrics: Metrics,
    sessions: BrowserSessions,
    oauth_routes: Sequence[Route],
    *,
    with_page: bool,
) -> GuardConfig:
    """Return the settings of the guard of an application."""
    guarded = replace(
        config,
        max_body=_max_body,
        count_concurrency=is_short_lived,
        observer=metrics.observe_request,
        for_any_page=frozenset(route.path for route in oauth_routes if route.path != AUTHORIZE),
    )
    guarded = replace(guarded, session=partial(sessions.principal, space=config.space))
    if not with_page:
        return guarded
    return replace(
        guarded,
        public_paths=frozenset(
            route.path
            for route in PLAIN_ROUTES
            if policy.POLICY[route.operation] is policy.Right.ANYONE
            and not is_page_path(route.path)
        ),
        is_open=lambda path: is_page_path(path) or (path == AUTHORIZE and bool(oauth_routes)),
    )


async def _failed(request: Request, error: Exception) -> Response:
    """Answer where sign-ins and connections cannot be read or written."""
    return bug_response(request.url.path, error)


def _max_body(scope: Scope, principal: policy.Principal) -> int:
    """Return the body limit: a larger one for imports and syncs by callers who may do them."""
    is_bulk = scope["path"] in {"/v1/import", "/v1/sync"} and policy.permits(principal, "import")
    return MAX_IMPORT_BYTES if is_bulk else MAX_BODY_BYTES


class RestApi:
    """Endpoints of the REST API."""

    def __init__(
        self,
        executor: ToolExecutor,
        metrics: Metrics,
        timeout_s: float,
        tool_routes: Sequence[ToolRoute],
        sessions: BrowserSessions,
    ) -> None:
        self._executor, self._request_metrics, self._timeout_s = executor, metrics, timeout_s
        self._tool_routes, self._sessions = tool_routes, sessions
        self.streams = EventStreams(executor)
        self._openapi_json = _openapi_json()

    def routes(self) -> list[Route]:
        """Return one route per path, with all its methods."""
        found: dict[str, dict[str, Endpoint]] = {}
        for route in self._tool_routes:
            found.setdefault(route.path, {})[route.method] = partial(self._handle_tool, route)
        for plain in PLAIN_ROUTES:
            handler = getattr(self, f"_{plain.operation}")
            found.setdefault(plain.path, {})[plain.method] = partial(
                self._handle_plain, plain, handler
            )
        return [
            Route(path, _dispatch(path, endpoints), methods=[*endpoints])
            for path, endpoints in found.items()
        ]

    async def _handle_tool(self, route: ToolRoute, request: Request) -> Response:
        """Call the tool of a route exactly as the MCP server would."""
        tool, principal = route.tool, policy.principal_of(request.scope)
        try:
            # First, so that an unauthorised caller learns nothing about the arguments.
            policy.require(principal, tool.name)
            arguments = await read_arguments(request, route)
            tool_request = ToolRequest(
                tool, arguments, principal, client=principal.name, via="http"
            )
            work = partial(self._executor, tool_request, for_program=True)
            # A write has no timeout here: the store's own limits end it.
            with fail_after(self._timeout_s if tool.read_only else None):
                reply = await to_thread.run_sync(work, abandon_on_cancel=tool.read_only)
        except BethinkError as error:
            return error_response(error)
        except TimeoutError:
            return timeout_response(tool.name, self._timeout_s)
        except Exception as error:  # noqa: BLE001 - the outermost loop of this surface
            return bug_response(tool.name, error)
        return json_response(reply.content)

    async def _handle_plain(
        self, route: PlainRoute, handler: Endpoint, request: Request
    ) -> Response:
        principal = policy.principal_of(request.scope)
        try:
            policy.require(principal, route.operation)
            with hide_internal_errors(principal):
                return await handler(request)
        except BethinkError as error:
            return error_response(error)
        except Exception as error:  # noqa: BLE001 - the outermost loop of this surface
            return bug_response(route.operation, error)

    async def _health(self, _: Request) -> Response:
        loader = self._executor.loader
        healthy = loader.is_open or not loader.is_loaded
        return json_response({"status": "ok" if healthy else "not ok"}, 200 if healthy else 503)

    async def _ready(self, _: Request) -> Response:
        loader = self._executor.loader
        ready = loader.is_open and loader.is_loaded
        return json_response({"status": "ok" if ready else "not ok"}, 200 if ready else 503)

    async def _watch(self, request: Request) -> Response:
        return self.streams.open(request)

    async def _metrics(self, _: Request) -> Response:
        return Response(self._request_metrics.render(), headers={"content-type": METRICS_MEDIA})

    async def _openapi(self, _: Request) -> Response:
        return Response(self._openapi_json, media_type="application/json")

    async def _page(self, _: Request) -> Response:
        return HTMLResponse(INDEX_PAGE)

    async def _session(self, request: Request) -> Response:
        is_browser = self._sessions.has(request.scope["headers"])
        content = self._session_json(policy.principal_of(request.scope), browser=is_browser)
        find = request.scope.get(VISIBLE)
        own = [content["space"]] if content["space"] else []
        content["spaces"] = await find() if find else own
        return json_response(content)

    async def _login(self, request: Request) -> Response:
        started = await start_session(request, self._sessions)
        cookie = session_cookie(request.scope["headers"], started.cookie)
        content = self._session_json(started.principal, browser=True)
        content["page_key"] = started.page_key
        return json_response(content, headers={"set-cookie": cookie})

    async def _logout(self, request: Request) -> Response:
        headers = request.scope["headers"]
        ended = {"ended": self._sessions.end(headers)}
        return json_response(ended, headers={"set-cookie": session_cookie(headers, "")})

    def _session_json(self, principal: policy.Principal, *, browser: bool) -> Json:
        """Return who is calling; the space only to those who may read it."""
        settings, known = self._executor.loader.settings, principal.right >= policy.Right.READ
        return {
            "name": principal.name,
            "scope": principal.right.scope_name,
            "may": [one for one in policy.POLICY if policy.permits(principal, one)],
            "space": resolve_space(None, settings).name if known else None,
            "version": __version__,
            "max_classification": settings.max_classification if known else None,
            "browser": browser,
            **({"person": self._person_name(principal)} if principal.person else {}),
        }

    def _person_name(self, principal: policy.Principal) -> str:
        people = self._executor.people
        return people.name_of(principal.person) if people else principal.name

    async def _members(self, request: Request) -> Response:
        people, me = self._executor.people, policy.principal_of(request.scope).person
        space = resolve_space(None, self._executor.loader.settings).name
        found = [
            {"id": one.id, "name": one.name, "role": one.roles[space], "you": one.id == me}
            for one in (people.people() if people else ())
            if space in one.roles
        ]
        return json_response({"members": found})

    async def _checks(self, _: Request) -> Response:
        loader = self._executor.loader
        return json_response(await to_thread.run_sync(lambda: run_checks(loader.memory())))

    async def _export(self, request: Request) -> Response:
        return await start_export(await self._memory(request))

    async def _import(self, request: Request) -> Response:
        result = await run_import(request, await self._memory(request))
        self._request_metrics.count_write("import")
        return json_response(result)

    async def _sync(self, request: Request) -> Response:
        asked = await read_json_body(request)
        memory = await self._memory(request)
        result = await to_thread.run_sync(lambda: memory.answer_sync(asked))
        self._request_metrics.count_write("sync")
        return json_response(result)

    async def _memory(self, request: Request) -> Memory:
        principal = policy.principal_of(request.scope)
        return await to_thread.run_sync(partial(self._executor.memory_for, principal, writing=True))


@cache
def _openapi_json() -> bytes | memoryview:
    """Return the description of the API."""
    return json_response(openapi_document()).body


def _dispatch(path: str, endpoints: dict[str, Endpoint]) -> Endpoint:
    async def endpoint(request: Request) -> Response:
        request.scope[ROUTE_KEY] = path
        return await endpoints["GET" if request.method == "HEAD" else request.method](request)

    return endpoint
