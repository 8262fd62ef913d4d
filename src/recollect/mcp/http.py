"""The protocol over streamable HTTP, as an application to be put behind a guard."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import replace
from typing import Any

from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from mcp.server.auth.provider import AccessToken
from mcp.server.lowlevel import Server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from starlette.applications import Starlette
from starlette.routing import Route
from starlette.types import Message, Receive, Scope, Send

from recollect.access.guard import MOST_BODY, Door, Guard
from recollect.access.policy import permits
from recollect.access.refusals import NO_TOKEN
from recollect.access.rights import Principal, principal_of
from recollect.mcp.sessions import MOST_OF_ONE, Sessions

PATH = "/mcp"
MOST_SESSIONS = 256
IDLE_S = 1800.0
_SESSION = b"mcp-session-id"


class Streamable:
    """The endpoint. A session can only be used by who began it, and nobody has them all."""

    def __init__(self, server: Server[Any], *, most_of_one: int = MOST_OF_ONE) -> None:
        self._open = Sessions(most_of_one)
        self._sessions = StreamableHTTPSessionManager(
            server,
            max_request_body_size=MOST_BODY,
            max_sessions=MOST_SESSIONS,
            session_idle_timeout=IDLE_S,
        )

    def run(self) -> AbstractAsyncContextManager[None]:
        """To be entered for as long as requests come."""
        return self._sessions.run()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        principal = principal_of(scope)
        if not permits(principal, "mcp"):
            await NO_TOKEN.answer(send)
            return
        scope["user"] = AuthenticatedUser(_credential(principal))
        caller, session = principal.key or principal.name, _session_in(scope["headers"])

        async def noting(message: Message) -> None:
            if message["type"] == "http.response.start" and message["status"] < 400:
                told = _session_in(message.get("headers", []))
                if session is not None and scope["method"] == "DELETE":
                    self._open.ended(caller, session)
                elif session is None and told is not None:
                    self._open.began(caller, told)
            await send(message)

        with self._open.in_use(caller, session):
            await self._sessions.handle_request(scope, receive, noting)
        while (spare := self._open.surplus(caller)) is not None:
            self._open.ended(caller, spare)
            await self._end(spare, scope)

    async def _end(self, session: str, scope: Scope) -> None:
        """Ends a session as its client would have, had it said goodbye."""
        goodbye = {**scope, "method": "DELETE", "headers": [(_SESSION, session.encode())]}

        async def nothing() -> Message:
            return {"type": "http.request", "body": b"", "more_body": False}

        async def unheard(_: Message) -> None:
            """Nobody waits for the answer; a session that is gone by now is gone."""

        await self._sessions.handle_request(goodbye, nothing, unheard)


def _session_in(headers: Iterable[tuple[bytes, bytes]]) -> str | None:
    found = (value for name, value in headers if name.lower() == _SESSION)
    return next((value.decode("latin-1") for value in found), None)


def _credential(principal: Principal) -> AccessToken:
    """Who it is, in the library's words; it compares them for every request of a session."""
    return AccessToken(
        token="", client_id=principal.name, scopes=[principal.right.word], subject=principal.key
    )


def is_brief(scope: Any) -> bool:
    """Whether a request is over soon: all but the stream that a client keeps open."""
    return not (scope["path"] == PATH and scope["method"] == "GET")


def guarded(server: Server[Any], door: Door) -> Guard:
    """The protocol and nothing else, behind that door."""
    endpoint = Streamable(server)

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        async with endpoint.run():
            yield

    app = Starlette(routes=[Route(PATH, endpoint)], lifespan=lifespan)
    return Guard(app, replace(door, brief=is_brief))
