"""MCP over streamable HTTP, as an ASGI application to be put behind the guard.

Many clients never close their sessions. A caller that opens more than its share loses its
least recently used session; a client that returns to it gets an error and starts a new one.
"""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager, suppress
from dataclasses import replace

from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from mcp.server.auth.provider import AccessToken
from mcp.server.lowlevel import Server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from starlette.applications import Starlette
from starlette.routing import Route
from starlette.types import Message, Receive, Scope, Send

from bethink.access import guard
from bethink.access.policy import Principal, Right, permits, principal_of, right_for

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
            max_request_body_size=guard.MAX_BODY_BYTES,
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
                await guard.insufficient_scope(self._public_url, needed).respond(send)
                return
        if not permits(principal, "mcp"):
            await guard.TOKEN_REQUIRED.respond(send)
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


def make_guarded_app(server: Server[object], config: guard.GuardConfig) -> guard.Guard:
    """Build an application with MCP only, behind a guard with these settings."""
    endpoint = StreamableEndpoint(server)

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        async with endpoint.run():
            yield

    app = Starlette(routes=[Route(PATH, endpoint)], lifespan=lifespan)
    return guard.Guard(app, replace(config, count_concurrency=is_short_lived))
