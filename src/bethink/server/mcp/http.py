"""MCP over streamable HTTP on the official library, as an ASGI application.

It stands behind the guard, and calls run on worker threads. Many clients never close their
sessions. A caller that opens more than its share loses its least recently used session; a
client that returns to it gets an error and starts a new one.
"""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from contextlib import AbstractAsyncContextManager, contextmanager, suppress
from functools import partial
from typing import TypeVar

import anyio
import anyio.from_thread
import anyio.to_thread
import mcp_types as types
from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from mcp.server.auth.provider import AccessToken
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.shared.exceptions import MCPError
from pydantic import BaseModel
from starlette.types import Message, Receive, Scope, Send

from bethink.access.guard import MAX_BODY_BYTES, TOKEN_REQUIRED, insufficient_scope
from bethink.access.policy import Principal, Right, permits, principal_of, right_for
from bethink.core.json_values import Json
from bethink.render.quoting import one_line
from bethink.server.mcp.manifest import NAME, TITLE, ServerManifest, filter_permitted
from bethink.server.mcp.memory_loader import MemoryLoader
from bethink.server.mcp.requests import (
    READ_TIMEOUT_S,
    READS,
    failed_content,
    read_fault,
    reply_content,
    unknown_tool,
)
from bethink.server.mcp.view import EXTENSION, client_supports_views
from bethink.server.tools.calls import ToolExecutor, ToolRequest
from bethink.server.tools.tool import Reply, Tool
from bethink.version import __version__

T = TypeVar("T")
M = TypeVar("M", bound=BaseModel)
_Ctx = ServerRequestContext[object]


class McpHandlers:
    """Handlers of the protocol's requests."""

    def __init__(self, manifest: ServerManifest, executor: ToolExecutor, timeout_s: float) -> None:
        self._tools, self._manifest, self._executor = manifest.tools, manifest, executor
        self._timeout_s = timeout_s

    def _principal(self, ctx: _Ctx) -> Principal:
        """Return the principal set by the guard, or the default one without an HTTP request."""
        return (
            self._executor.default_principal
            if ctx.request is None
            else principal_of(ctx.request.scope)
        )

    def lister(self, method: str, kind: type[M]) -> Callable[[_Ctx, object], Awaitable[M]]:
        """Return the handler of a list."""

        async def answer(ctx: _Ctx, _: object) -> M:
            return kind.model_validate(self._list(method, ctx))

        return answer

    def reader(self, method: str, kind: type[M]) -> Callable[[_Ctx, BaseModel], Awaitable[M]]:
        """Return the handler of a resource, a prompt or completions."""

        async def answer(ctx: _Ctx, params: BaseModel) -> M:
            return kind.model_validate(await self._run_read(method, params, ctx))

        return answer

    def _list(self, method: str, ctx: _Ctx) -> Json:
        """Return a list with the entries that the client supports and the caller may use."""
        whole = self._manifest.lists_for(_capabilities(ctx))[method]
        return filter_permitted(method, whole, self._principal(ctx), self._manifest)

    async def call_tool(
        self, ctx: _Ctx, params: types.CallToolRequestParams
    ) -> types.CallToolResult:
        if params.name not in self._tools:
            known = (tool["name"] for tool in self._list("tools/list", ctx)["tools"])
            fault = unknown_tool(params.name, known)
            raise MCPError(fault.code, fault.message)
        content = await self._run_tool(self._tools[params.name], params.arguments or {}, ctx)
        return types.CallToolResult.model_validate(content)

    async def _run_tool(self, tool: Tool, arguments: Json, ctx: _Ctx) -> Json:
        """Run a tool and return its result; a failure becomes a message for the model."""

        def progress(done: int, total: int) -> None:
            anyio.from_thread.run(ctx.session.report_progress, float(done), float(total) or None)

        request = ToolRequest(
            tool,
            arguments,
            self._principal(ctx),
            client=_client(ctx),
            progress=progress,
            supports_views=client_supports_views(_capabilities(ctx)),
        )

        def work() -> Reply:
            return self._executor(request)

        try:
            if tool.read_only:
                reply = await _run_in_thread(work, self._timeout_s)
            else:
                # A write has no timeout here: the store's own limits end it.
                reply = await anyio.to_thread.run_sync(work)
        except Exception as error:  # noqa: BLE001 - a bug is logged, and reported by its type
            return failed_content(error, tool.name, self._timeout_s)
        return reply_content(*reply)

    async def _run_read(self, method: str, params: BaseModel, ctx: _Ctx) -> Json:
        """Return a resource, a prompt or completions; a refusal becomes an MCP error."""
        principal = self._principal(ctx)
        given = params.model_dump(mode="json", by_alias=True, exclude_none=True)
        memory = partial(self._executor.memory_for, principal)
        try:
            work = partial(READS[method], given, principal, memory, self._manifest)
            return await _run_in_thread(work, self._timeout_s)
        except Exception as error:  # noqa: BLE001 - a bug is logged, and reported by its type
            fault = read_fault(error, self._timeout_s)
            # Not from the error: the library would put its message into a span.
            raise MCPError(fault.code, fault.message, fault.data) from None


def make_server(
    manifest: ServerManifest,
    loader: MemoryLoader,
    *,
    timeout_s: float = READ_TIMEOUT_S,
    executor: ToolExecutor | None = None,
) -> Server[object]:
    """Build the MCP server for a manifest and a memory; reads have a timeout."""
    handlers = McpHandlers(manifest, executor or ToolExecutor(loader), timeout_s)
    server: Server[object] = Server(
        NAME,
        title=TITLE,
        version=__version__,
        instructions=manifest.instructions,
        on_call_tool=handlers.call_tool,
        on_list_tools=handlers.lister("tools/list", types.ListToolsResult),
        on_list_resources=handlers.lister("resources/list", types.ListResourcesResult),
        on_list_resource_templates=handlers.lister(
            "resources/templates/list", types.ListResourceTemplatesResult
        ),
        on_list_prompts=handlers.lister("prompts/list", types.ListPromptsResult),
        on_read_resource=handlers.reader("resources/read", types.ReadResourceResult),
        on_get_prompt=handlers.reader("prompts/get", types.GetPromptResult),
        on_completion=handlers.reader("completion/complete", types.CompleteResult),
    )
    server.extensions = {EXTENSION: {}}
    return server


def _client(ctx: _Ctx) -> str:
    """Return the host's name for the provenance of what it writes."""
    params = ctx.session.client_params
    return one_line(params.client_info.name, 60) if params is not None else ""


def _capabilities(ctx: _Ctx) -> Mapping[str, object]:
    """Return the client capabilities that matter here."""
    capabilities = ctx.session.client_capabilities
    return {"extensions": capabilities.extensions} if capabilities is not None else {}


async def _run_in_thread(work: Callable[[], T], timeout_s: float) -> T:
    """Run a read on a worker thread; on timeout it is abandoned and ends by itself."""
    with anyio.fail_after(timeout_s):
        return await anyio.to_thread.run_sync(work, abandon_on_cancel=True)


MAX_SESSIONS_PER_CALLER = 64


class SessionTracker:
    """The open sessions, each with its caller, in LRU order. Not thread-safe."""

    def __init__(self) -> None:
        self._active: OrderedDict[tuple[str, str], int] = OrderedDict()  # requests of each

    def add(self, caller: str, session: str) -> None:
        """Record a session that was opened."""
        self._active[caller, session] = 0

    def remove(self, caller: str, session: str) -> None:
        """Remove a session."""
        self._active.pop((caller, session), None)

    @contextmanager
    def in_use(self, caller: str, session: str | None) -> Iterator[None]:
        """Mark a session as in use while a request of it is answered.

        Unknown sessions, and those of other callers, are not recorded.
        """
        key = caller, session or ""
        if key not in self._active:
            yield
            return
        self._active[key] += 1
        try:
            yield
        finally:
            if key in self._active:
                self._active[key] -= 1
                self._active.move_to_end(key)

    def eviction_candidate(self, caller: str) -> str | None:
        """Return the caller's session to close; None if within the limit or all in use."""
        own = [(session, busy) for (who, session), busy in self._active.items() if who == caller]
        idle = (session for session, busy in own if not busy)
        return next(idle, None) if len(own) > MAX_SESSIONS_PER_CALLER else None


PATH = "/mcp"
ROUTE_KEY = "bethink.route"  # key of the route in a request's scope, for the metrics
EVENTS_PATH = "/v1/events/stream"
MAX_SESSIONS = 256
IDLE_S = 1800.0
_SESSION_HEADER = b"mcp-session-id"


class StreamableEndpoint:
    """The MCP endpoint. A session belongs to its caller, and each caller has a limit."""

    def __init__(self, server: Server[object], *, public_url: str = "") -> None:
        self._public_url = public_url
        self._tracker = SessionTracker()
        self._manager = StreamableHTTPSessionManager(
            server,
            max_request_body_size=MAX_BODY_BYTES,
            max_sessions=MAX_SESSIONS,
            session_idle_timeout=IDLE_S,
        )

    def run(self) -> AbstractAsyncContextManager[None]:
        """Return the context manager that keeps the session manager running."""
        return self._manager.run()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        scope[ROUTE_KEY], principal = PATH, principal_of(scope)
        if principal.client:
            # An OAuth client can ask its user for more; a plain token is told by the tool.
            receive, needed = await _right_needed(receive)
            if needed > principal.right:
                await insufficient_scope(self._public_url, needed).respond(send)
                return
        if not permits(principal, "mcp"):
            await TOKEN_REQUIRED.respond(send)
            return
        scope["user"] = AuthenticatedUser(_access_token(principal))
        caller, session = principal.key or principal.name, _session_header(scope["headers"])

        async def track_session(message: Message) -> None:
            if message["type"] == "http.response.start" and message["status"] < 400:
                new_session = _session_header(message.get("headers", []))
                if session is not None and scope["method"] == "DELETE":
                    self._tracker.remove(caller, session)
                elif session is None and new_session is not None:
                    self._tracker.add(caller, new_session)
            await send(message)

        with self._tracker.in_use(caller, session):
            await self._manager.handle_request(scope, receive, track_session)
        while (evicted := self._tracker.eviction_candidate(caller)) is not None:
            self._tracker.remove(caller, evicted)
            await self._end_session(evicted, scope)

    async def _end_session(self, session: str, scope: Scope) -> None:
        """Close a session with the DELETE request that its client should have sent."""
        delete_scope = {
            **scope,
            "method": "DELETE",
            "headers": [(_SESSION_HEADER, session.encode())],
        }

        async def receive_empty() -> Message:
            return {"type": "http.request", "body": b"", "more_body": False}

        async def discard(_: Message) -> None:
            """Ignore the answer; the session may have ended already."""

        await self._manager.handle_request(delete_scope, receive_empty, discard)


async def _right_needed(receive: Receive) -> tuple[Receive, Right]:
    """Return the right that a message needs, and what gives the message once more."""
    message = await receive()
    needed = Right.READ
    with suppress(ValueError, AttributeError, LookupError, TypeError, RecursionError):
        told = json.loads(message.get("body", b""))
        if told.get("method") == "tools/call":
            needed = right_for(told["params"].get("name"), told["params"].get("arguments"))
    first = [message]

    async def again() -> Message:
        return first.pop() if first else await receive()

    return again, needed


def _session_header(headers: Iterable[tuple[bytes, bytes]]) -> str | None:
    found = (value for name, value in headers if name.lower() == _SESSION_HEADER)
    return next((value.decode("latin-1") for value in found), None)


def _access_token(principal: Principal) -> AccessToken:
    """Convert a principal to the library's token, which it compares on every request."""
    return AccessToken(
        token="",
        client_id=principal.name,
        scopes=[principal.right.scope_name],
        subject=principal.key,
    )


def is_short_lived(scope: Mapping[str, object]) -> bool:
    """Check whether a request is short-lived: all but the open streams of events."""
    return not (scope["path"] in (PATH, EVENTS_PATH) and scope["method"] == "GET")
