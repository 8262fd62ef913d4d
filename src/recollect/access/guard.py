"""The guard before every request: whom it was sent to, who asks, how often, how much.

It speaks plain ASGI, so that it stands before any application alike. Nothing behind it
runs before the Host, the Origin and the token are in order.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import Counter
from collections.abc import Awaitable, Callable, MutableMapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from ipaddress import IPv6Address, ip_address
from typing import Any

from recollect.access.hosts import Address, Names, names_for
from recollect.access.rate import USUAL, Buckets
from recollect.access.refusals import (
    BUSY,
    LONG_HEAD,
    NO_TOKEN,
    NO_TOKENS,
    SLOW,
    TWO_LENGTHS,
    WRONG_HOST,
    WRONG_ORIGIN,
    Refusal,
    bad_token,
    too_large,
    too_often,
)
from recollect.access.rights import LOOPBACK, NOBODY, Principal, keep_principal
from recollect.access.tokens import Tokens
from recollect.errors import BadSetting

_log = logging.getLogger("recollect")
Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]
Headers = list[tuple[bytes, bytes]]
# How a request went: its scope, the status, the seconds it took.
Watch = Callable[[Scope, int, float], None]

MOST_BODY = 1 << 20
BODY_WITHIN_S = 30.0
MOST_HEAD = 16 * 1024
MOST_AT_ONCE = 64  # requests that are being answered
MOST_OF_ONE = 32  # requests of one caller, those that are still arriving included
_LONGEST_TOKEN = 4096
_HEARD_OUT = 8 << 20  # bytes of a body that is refused anyway
_HEARD_OUT_WITHIN_S = 3.0
_ALLOWED_HEADERS = (
    b"authorization, content-type, mcp-session-id, mcp-protocol-version, mcp-method, mcp-name, "
    b"last-event-id"
)
_SAFE: Headers = [
    (b"x-content-type-options", b"nosniff"),
    (b"cache-control", b"no-store"),
    (b"referrer-policy", b"no-referrer"),
    (b"content-security-policy", b"default-src 'none'; style-src 'unsafe-inline'"),
]


def _nobody_watches(scope: Scope, status: int, seconds: float) -> None:
    """Figures that nobody keeps."""


def _usual_room(_: Scope, __: Principal) -> int:
    return MOST_BODY


def _all_are_brief(_: Scope) -> bool:
    return True


@dataclass(frozen=True)
class Door:
    """What a guard goes by. ``room`` says how large a body may be; ``brief`` whether a
    request is over soon, and so counts among those that are served at once."""

    space: str
    tokens: Tokens
    names: Names
    neighbours: bool
    rate: int = USUAL
    at_once: int = MOST_AT_ONCE
    each: int = MOST_OF_ONE
    body_within_s: float = BODY_WITHIN_S
    room: Callable[[Scope, Principal], int] = _usual_room
    brief: Callable[[Scope], bool] = _all_are_brief
    watch: Watch = _nobody_watches
    open_to_all: frozenset[str] = field(default=frozenset())


def door_for(
    address: Address,
    space: str,
    tokens: Tokens,
    *,
    hosts: tuple[str, ...] = (),
    origins: tuple[str, ...] = (),
    require_token: bool = False,
    **more: Any,
) -> Door:
    """The door of a server at that address, or BadSetting where it could not be locked."""
    needs_token = require_token or not address.is_loopback
    if needs_token and not tokens.usable(space, datetime.now(UTC)):
        why = (
            "a token is required" if require_token else f"{address.host} is not this machine alone"
        )
        raise BadSetting(
            f"{why}, and there is no token for the space {space}",
            remedy=f"recollect token create NAME --scope read --space {space}",
        )
    names = names_for(address, hosts, origins)
    return Door(space, tokens, names, neighbours=not needs_token, **more)


class Guard:
    """Lets requests through to an application, or answers them itself."""

    def __init__(self, app: App, door: Door) -> None:
        self._app, self._door = app, door
        self._buckets = Buckets(door.rate)
        self._active = 0
        self._under_way: Counter[str] = Counter()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
        elif scope["type"] == "http":
            await self._watched(scope, receive, send)
        else:
            # There is nothing here for a web socket, and a page may open one to anywhere.
            await send({"type": "websocket.close", "code": 1008})

    async def _watched(self, scope: Scope, receive: Receive, send: Send) -> None:
        start, status, open_ended = time.monotonic(), [0], [False]
        extra = _SAFE + self._shared_with(scope["headers"])

        async def safely(message: Message) -> None:
            if message["type"] == "http.response.start":
                status[0] = message["status"]
                given = list(message.get("headers", []))
                named = {name.lower() for name, _ in given}
                message["headers"] = given + [one for one in extra if one[0] not in named]
            started = message["type"] == "http.response.start"
            open_ended[0] = started or message.get("more_body", False)
            await send(message)

        try:
            await self._guarded(scope, receive, safely)
            if open_ended[0]:
                # A stream that was broken off when the server stops: it ends all the same.
                await send({"type": "http.response.body"})
        finally:
            self._door.watch(scope, status[0], time.monotonic() - start)

    async def _guarded(self, scope: Scope, receive: Receive, send: Send) -> None:
        refusal = self._stranger(scope)
        if refusal is None and _is_preflight(scope):
            await _allow(send)
            return
        principal, caller = NOBODY, ""
        if refusal is None:
            principal, caller, refusal = self._admitted(scope)
        brief = self._door.brief(scope) and not self._is_free(scope, principal)
        if refusal is None and brief and self._under_way[caller] >= self._door.each:
            refusal = BUSY
        if refusal is not None:
            await _refuse(refusal, scope, receive, send)
            return
        keep_principal(scope, principal)
        self._under_way[caller] += brief
        try:
            await self._with_body(scope, receive, send, principal)
        finally:
            self._under_way[caller] -= brief
            self._under_way += Counter()  # which forgets who has nothing under way

    def _stranger(self, scope: Scope) -> Refusal | None:
        names, headers = self._door.names, scope["headers"]
        if _head(scope) > MOST_HEAD:
            return LONG_HEAD
        if {b"content-length", b"transfer-encoding"} <= {name for name, _ in headers}:
            # Whoever stands before us may see another end of it than we do, and let through
            # as a body what we would take for the next request.
            return TWO_LENGTHS
        if not names.knows_host(headers):
            return WRONG_HOST
        return None if names.knows_origin(headers) else WRONG_ORIGIN

    def _admitted(self, scope: Scope) -> tuple[Principal, str, Refusal | None]:
        """Who asks, whom that counts for, and why not if they may not come in."""
        try:
            found = self._principal(scope)
        except BadSetting as error:
            # The file of tokens was spoilt while we run: nobody can be told from anybody.
            _log.error("%s", error.message)
            return NOBODY, "", NO_TOKENS
        caller = found.key if found and found.key else f"from {_network(scope)}"
        is_free = found is not None and self._is_free(scope, found)
        wait = 0 if is_free else self._buckets.take(caller)
        if wait:
            return NOBODY, caller, too_often(wait)
        if found is None:
            return NOBODY, caller, bad_token()
        if found is NOBODY and scope["path"] not in self._door.open_to_all:
            return NOBODY, caller, NO_TOKEN
        return found, caller, None

    def _is_free(self, scope: Scope, principal: Principal) -> bool:
        """Whether a request is counted nowhere: who looks whether the server is well must
        not be told that others ask too much. With a token it counts, lest it be guessed."""
        return scope["path"] in self._door.open_to_all and not principal.key

    def _principal(self, scope: Scope) -> Principal | None:
        """None where what was shown is no token that opens this door."""
        headers: Headers = scope["headers"]
        shown = [value for name, value in headers if name == b"authorization"]
        if not shown:
            neighbour = self._door.neighbours and self._door.names.is_local(headers)
            return LOOPBACK if neighbour else NOBODY
        kind, _, secret = shown[0].decode("latin-1")[:_LONGEST_TOKEN].partition(" ")
        if len(shown) > 1 or kind.lower() != "bearer":
            return None
        return self._door.tokens.find(secret.strip(), self._door.space, datetime.now(UTC))

    async def _with_body(
        self, scope: Scope, receive: Receive, send: Send, principal: Principal
    ) -> None:
        """Reads the whole body first: within its limit, and within a time."""
        room = 0 if self._is_free(scope, principal) else self._door.room(scope, principal)
        if _announced(scope["headers"]) > room:
            await _refuse(too_large(room), scope, receive, send)
            return
        try:
            async with asyncio.timeout(self._door.body_within_s):
                body = await _body(receive, room)
        except TimeoutError:
            await SLOW.answer(send)
            return
        except ConnectionResetError:
            return  # gone in the middle: half a request is none
        if body is None:
            await too_large(room).answer(send)
            return
        given = [{"type": "http.request", "body": body, "more_body": False}]

        async def replay() -> Message:
            return given.pop() if given else await receive()

        # Counted from here on: who is slow to say what they want keeps nobody waiting.
        brief = self._door.brief(scope) and not self._is_free(scope, principal)
        if brief and self._active >= self._door.at_once:
            await BUSY.answer(send)
            return
        self._active += brief
        try:
            await self._app(scope, replay, send)
        finally:
            self._active -= brief

    def _shared_with(self, headers: Headers) -> Headers:
        """What a browser must be told before a page of another origin sees an answer: that
        one origin, if it was named, and never all."""
        origin = next((value for name, value in headers if name == b"origin"), b"")
        if origin.decode("latin-1").lower() not in self._door.names.origins:
            return []
        return [(b"access-control-allow-origin", origin), (b"vary", b"Origin")]


async def _refuse(refusal: Refusal, scope: Scope, receive: Receive, send: Send) -> None:
    """Answers once the client is done sending, within bounds: who is hung up on while
    sending sees a broken connection and not the answer."""
    headers: Headers = scope["headers"]
    is_waiting = any(name == b"expect" for name, _ in headers)
    if not is_waiting and _announced(headers) <= _HEARD_OUT:
        await _hear_out(receive)
    await refusal.answer(send)


async def _hear_out(receive: Receive) -> None:
    """Takes a body, or what is left of it, and drops it."""
    room = _HEARD_OUT
    with suppress(TimeoutError):
        async with asyncio.timeout(_HEARD_OUT_WITHIN_S):
            while room > 0:
                message = await receive()
                if message["type"] != "http.request" or not message.get("more_body", False):
                    return
                room -= len(message.get("body", b""))


def _is_preflight(scope: Scope) -> bool:
    asks = any(name == b"access-control-request-method" for name, _ in scope["headers"])
    return bool(scope["method"] == "OPTIONS" and asks)


async def _allow(send: Send) -> None:
    headers = [
        (b"access-control-allow-methods", b"GET, POST, PATCH, DELETE"),
        (b"access-control-allow-headers", _ALLOWED_HEADERS),
        (b"access-control-max-age", b"600"),
    ]
    await send({"type": "http.response.start", "status": 204, "headers": headers})
    await send({"type": "http.response.body"})


def _head(scope: Scope) -> int:
    """How large the head of a request is: the address and the headers."""
    target = len(scope.get("raw_path") or b"") + len(scope.get("query_string", b""))
    return target + sum(len(name) + len(value) + 4 for name, value in scope["headers"])


def _announced(headers: Headers) -> int:
    told = next((value for name, value in headers if name == b"content-length"), b"0")
    # More digits than any size has: whatever it is, it is too much.
    return int(told) if told.isdigit() and len(told) < 20 else 1 << 62


async def _body(receive: Receive, room: int) -> bytes | None:
    """The body, or None where it is larger than that; then its rest is heard out."""
    parts = bytearray()
    while True:
        message = await receive()
        if message["type"] != "http.request":
            raise ConnectionResetError
        parts += message.get("body", b"")
        more = message.get("more_body", False)
        if len(parts) > room:
            if more:
                await _hear_out(receive)
            return None
        if not more:
            return bytes(parts)


def _network(scope: Scope) -> str:
    """Where a request comes from: an address or, of version 6, the network it is one of."""
    client = scope.get("client")
    if not client:
        return "?"
    try:
        address = ip_address(client[0])
    except ValueError:
        return str(client[0])
    is_own = isinstance(address, IPv6Address) and not address.is_loopback
    return str(int(address) >> 64) if is_own else str(address)
