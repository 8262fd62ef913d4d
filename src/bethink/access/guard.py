"""ASGI guard in front of every request: Host, Origin, token, rate, concurrency and size.

It is plain ASGI middleware, so it works in front of any application. Nothing behind it
runs before the Host, the Origin and the token are in order.
"""

from __future__ import annotations

import asyncio
import json
import logging
import math
import time
from collections import Counter, OrderedDict
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, MutableMapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from ipaddress import IPv6Address, ip_address
from typing import Any, TypedDict, Unpack
from urllib.parse import urlsplit

from bethink.access.hosts import Address, HostPolicy, host_policy_for, parse_public_url
from bethink.access.policy import ANONYMOUS, GRANTABLE, LOOPBACK, Principal, Right, attach_principal
from bethink.access.tokens import PREFIX, TokenStore
from bethink.core.lazy import lazy_pattern
from bethink.core.named_tuple import NamedTuple
from bethink.errors import BadSetting
from bethink.render.wire import error_json

DEFAULT_RATE = 1200  # requests a minute
MAX_CALLERS = 10_000  # callers tracked; the least recent one is dropped first
_RATE = lazy_pattern(r"([0-9]{1,7})(?:/min)?")


def parse_rate(text: str) -> int:
    """Parse a rate such as ``600/min`` or ``600``; 0 means no limit."""
    found = _RATE.fullmatch(text)
    if found is None:
        raise BadSetting(f"{text!r:.40} is not a rate", remedy="for example 600/min")
    return int(found[1])


class TokenBucketLimiter:
    """Token bucket per caller, with a capacity of one minute's requests. Not thread-safe."""

    def __init__(self, per_minute: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._per_minute = per_minute
        self._clock = clock
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def acquire(self, caller: str, own: int = 0) -> int:
        """Take one token; return 0, or the seconds to wait if the bucket is empty.

        ``own`` is the caller's own number of requests a minute, if it is lower.
        """
        rate = min(filter(None, (self._per_minute, own)), default=0)
        if not rate:
            return 0
        now = self._clock()
        left, since = self._buckets.get(caller, (float(rate), now))
        left = min(rate, left + (now - since) * rate / 60)
        wait = 0 if left >= 1 else max(1, math.ceil((1 - left) * 60 / rate))
        self._buckets[caller] = (left if wait else left - 1, now)
        self._buckets.move_to_end(caller)
        if len(self._buckets) > MAX_CALLERS:
            self._buckets.popitem(last=False)
        return wait


class Refusal(NamedTuple):
    """An error response that the guard sends itself."""

    status: int
    kind: str
    message: str
    remedy: str = ""
    headers: tuple[tuple[bytes, bytes], ...] = ()

    async def respond(self, send: Send) -> None:
        """Send the response with ``Connection: close``: the client may still be sending."""
        body = json.dumps(error_json(self.message, self.remedy, self.kind)).encode()
        headers = [
            (b"content-type", b"application/json"),
            (b"content-length", str(len(body)).encode()),
            (b"connection", b"close"),
            *self.headers,
        ]
        await send({"type": "http.response.start", "status": self.status, "headers": headers})
        await send({"type": "http.response.body", "body": body})


_CHALLENGE = b'Bearer realm="bethink"'
RESOURCE_METADATA = "/.well-known/oauth-protected-resource"
SCOPES_ASKED = "memory:read memory:write"  # more is asked for when it is needed

WRONG_HOST = Refusal(
    421, "wrong_host", "the Host header is not allowed",
    "start with: bethink serve --allow-host NAME",
)  # fmt: skip
WRONG_ORIGIN = Refusal(
    403, "wrong_origin", "the page's origin is not allowed",
    "start with: bethink serve --allow-origin URL",
)  # fmt: skip
TOKEN_REQUIRED = Refusal(
    401, "no_token", "a token is required",
    "send Authorization: Bearer TOKEN; create one with: bethink token create",
    ((b"www-authenticate", _CHALLENGE),),
)  # fmt: skip
# For any invalid token: one message, so that guessing learns nothing.
INVALID_TOKEN = Refusal(
    401, "bad_token", "the token is unknown, expired or for another space",
    "list tokens with: bethink token list",
    ((b"www-authenticate", _CHALLENGE + b', error="invalid_token"'),),
)  # fmt: skip
BUSY = Refusal(503, "busy", "too many concurrent requests", "try again", ((b"retry-after", b"1"),))
TOKENS_UNREADABLE = Refusal(503, "no_tokens", "the tokens cannot be read", "check the server's log")
HEAD_TOO_LARGE = Refusal(
    431, "too_large", "the URL and the headers are too long", "send the arguments in a body"
)
AMBIGUOUS_LENGTH = Refusal(
    400, "malformed", "the request has both Content-Length and Transfer-Encoding",
    "send Content-Length only",
)  # fmt: skip
SLOW_BODY = Refusal(408, "too_slow", "the request took too long to arrive")


def insufficient_scope(public_url: str, needed: Right) -> Refusal:
    """Build the 403 that makes an OAuth client ask its user for more."""
    scopes = " ".join(f"memory:{right.scope_name}" for right in GRANTABLE if right <= needed)
    header = (b"www-authenticate", _CHALLENGE + b', error="insufficient_scope"')
    told = f"the scope {needed.scope_name} is needed"
    return with_metadata(Refusal(403, "forbidden", told, headers=(header,)), public_url, scopes)


def with_metadata(refusal: Refusal, public_url: str, scopes: str = SCOPES_ASKED) -> Refusal:
    """Return a refusal whose challenge tells OAuth clients where to begin."""
    where = f', resource_metadata="{public_url}{RESOURCE_METADATA}/mcp", scope="{scopes}"'
    name, challenge = refusal.headers[0]
    return refusal._replace(headers=((name, challenge + where.encode()),))


def rate_limited(wait_s: int) -> Refusal:
    """Build the 429 for a caller that exceeds its rate."""
    return Refusal(
        429,
        "too_often",
        f"too many requests; retry in {wait_s} seconds",
        "send fewer requests",
        ((b"retry-after", str(wait_s).encode()),),
    )


def body_too_large(max_bytes: int) -> Refusal:
    """Build the 413 for a body that exceeds its limit."""
    return Refusal(
        413,
        "too_large",
        f"the request is larger than {max_bytes:,} bytes",
        "send it in smaller parts",
    )


_log = logging.getLogger("bethink")
Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]
Headers = list[tuple[bytes, bytes]]
# Called with a finished request: its scope, status and duration in seconds.
RequestObserver = Callable[[Scope, int, float], None]

MAX_BODY_BYTES = 1 << 20
BODY_TIMEOUT_S = 30.0
MAX_HEAD_BYTES = 16 * 1024
MAX_CONCURRENT = 64  # active requests
MAX_CONCURRENT_PER_CALLER = 32  # active requests of one caller, and as many still being received
_MAX_TOKEN_LENGTH = 8192 + len("Bearer ") + 1
_MAX_DRAIN_BYTES = 8 << 20  # bytes of a refused body to read
_DRAIN_TIMEOUT_S = 3.0
_ALLOWED_HEADERS = (
    b"authorization, content-type, mcp-session-id, mcp-protocol-version, mcp-method, mcp-name, "
    b"last-event-id"
)
_SECURITY_HEADERS: Headers = [
    (b"x-content-type-options", b"nosniff"),
    (b"cache-control", b"no-store"),
    (b"referrer-policy", b"no-referrer"),
    (b"content-security-policy", b"default-src 'none'; style-src 'unsafe-inline'"),
]


@dataclass(frozen=True)
class GuardConfig:
    """Settings of a guard.

    ``max_body`` gives the largest body a request may have; ``count_concurrency`` says whether a
    request is short-lived and so counts towards the limits of concurrent requests. ``session``
    returns the principal of a browser's cookie, ``is_open`` whether a path is for anybody, and
    ``verify`` the principal of a token that is not our own; pages of any origin may call the
    paths ``for_any_page``, which take no credentials.
    """

    space: str
    tokens: TokenStore
    host_policy: HostPolicy
    trust_loopback: bool
    rate: int = DEFAULT_RATE
    max_concurrent: int = MAX_CONCURRENT
    max_concurrent_per_caller: int = MAX_CONCURRENT_PER_CALLER
    body_timeout_s: float = BODY_TIMEOUT_S
    max_body: Callable[[Scope, Principal], int] = field(default=lambda *_: MAX_BODY_BYTES)
    count_concurrency: Callable[[Scope], bool] = field(default=lambda _: True)
    observer: RequestObserver = field(default=lambda *_: None)
    public_paths: frozenset[str] = frozenset()
    session: Callable[[Headers], Principal | None] = field(default=lambda _: None)
    is_open: Callable[[str], bool] = field(default=lambda _: False)
    public_url: str = ""
    verify: Callable[[str], Principal | None] | None = None
    for_any_page: frozenset[str] = frozenset()


class AllowedCallers(TypedDict, total=False):
    """Host names and origins that are allowed besides the server's own, and who needs a token."""

    hosts: tuple[str, ...]
    origins: tuple[str, ...]
    require_token: bool
    public_url: str | None
    verify: Callable[[str], Principal | None] | None


def make_guard_config(
    address: Address, space: str, tokens: TokenStore, **allowed: Unpack[AllowedCallers]
) -> GuardConfig:
    """Build the guard's settings for an address; raise BadSetting if it cannot be secured."""
    public_url, hosts = allowed.get("public_url") or "", allowed.get("hosts", ())
    if public_url:
        public_url = parse_public_url(public_url)
        hosts = (*hosts, urlsplit(public_url).hostname or "")
    # Behind a proxy on this machine every caller may look like a local one.
    require_token = allowed.get("require_token", False) or bool(public_url)
    needs_token = require_token or not address.is_loopback
    verify = allowed.get("verify")
    if needs_token and verify is None and not tokens.has_valid(space, datetime.now(UTC)):
        why = (
            "a token is required"
            if require_token
            else f"{address.host} is reachable from other machines"
        )
        raise BadSetting(
            f"{why}, and there is no token for the space {space}",
            remedy=f"create one with: bethink token create NAME --scope read --space {space}",
        )
    names = host_policy_for(address, hosts, allowed.get("origins", ()))
    return GuardConfig(space, tokens, names, not needs_token, public_url=public_url, verify=verify)


class Guard:
    """ASGI middleware that forwards requests to an application or refuses them itself."""

    def __init__(self, app: App, config: GuardConfig) -> None:
        self.app, self._config = app, config
        self._limiter = TokenBucketLimiter(config.rate)
        self._active = 0
        self._active_by_caller: Counter[str] = Counter()
        # The bodies that are being received, oldest first, each with its time limit.
        self._receiving: dict[str, list[asyncio.Timeout]] = {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
        elif scope["type"] == "http":
            await self._handle_http(scope, receive, send)
        else:
            # Web sockets are not served, and a page may open one to any origin.
            await send({"type": "websocket.close", "code": 1008})

    async def _handle_http(self, scope: Scope, receive: Receive, send: Send) -> None:
        start, status, open_ended = time.monotonic(), [0], [False]
        extra = _SECURITY_HEADERS + self._cors_headers(scope["path"], scope["headers"])

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                status[0] = message["status"]
                headers = list(message.get("headers", []))
                present = {name.lower() for name, _ in headers}
                message["headers"] = headers + [
                    header for header in extra if header[0] not in present
                ]
            started = message["type"] == "http.response.start"
            open_ended[0] = started or message.get("more_body", False)
            await send(message)

        try:
            await self._authorize_and_forward(scope, receive, send_with_headers)
            if open_ended[0]:
                # End a stream that was interrupted by the shutdown of the server.
                await send({"type": "http.response.body"})
        finally:
            self._config.observer(scope, status[0], time.monotonic() - start)

    async def _authorize_and_forward(self, scope: Scope, receive: Receive, send: Send) -> None:
        refusal = self._check_head(scope)
        if refusal is None and _is_preflight(scope):
            await _answer_preflight(send)
            return
        principal, caller = ANONYMOUS, ""
        if refusal is None:
            principal, caller, refusal = await self._authenticate(scope)
        if refusal is not None:
            await _refuse(refusal, scope, receive, send)
            return
        attach_principal(scope, principal, self._find_principal)
        await self._read_body_and_forward(scope, receive, send, principal, caller)

    def _check_head(self, scope: Scope) -> Refusal | None:
        names, headers = self._config.host_policy, scope["headers"]
        if _head_size(scope) > MAX_HEAD_BYTES:
            return HEAD_TOO_LARGE
        if {b"content-length", b"transfer-encoding"} <= {name for name, _ in headers}:
            # Request smuggling: a proxy may see another end of the body than we do, and
            # forward as a body what we would read as the next request.
            return AMBIGUOUS_LENGTH
        if not names.allows_host(headers):
            return WRONG_HOST
        if names.allows_origin(headers) or scope["path"] in self._config.for_any_page:
            return None
        # The page holds no data, and its own requests are judged again.
        opens = self._config.is_open(scope["path"]) and names.is_visit(scope["method"], headers)
        return None if opens else WRONG_ORIGIN

    async def _authenticate(self, scope: Scope) -> tuple[Principal, str, Refusal | None]:
        """Return the principal, the caller to count the request for, and a refusal if any."""
        try:
            found = await self._find_principal(scope)
            own_rate = self._own_rate(found)
        except BadSetting as error:
            # A file was damaged while running: no caller can be authenticated.
            _log.error("%s", error.message)
            return ANONYMOUS, "", TOKENS_UNREADABLE
        caller = (found.person or found.key) if found and found.key else ""
        caller = caller or f"from {_client_network(scope)}"
        is_exempt = found is not None and self._is_exempt(scope, found)
        wait = 0 if is_exempt else self._limiter.acquire(caller, own_rate)
        if wait:
            return ANONYMOUS, caller, rate_limited(wait)
        if found is None:
            return ANONYMOUS, caller, self._challenged(INVALID_TOKEN)
        if found is ANONYMOUS and not self._is_for_anybody(scope["path"]):
            return ANONYMOUS, caller, self._challenged(TOKEN_REQUIRED)
        return found, caller, None

    def _own_rate(self, found: Principal | None) -> int:
        people, person = self._config.tokens.people, found.person if found else ""
        return people.limit(self._config.space, person, "requests") if person else 0

    def _challenged(self, refusal: Refusal) -> Refusal:
        config = self._config
        return refusal if config.verify is None else with_metadata(refusal, config.public_url)

    def _is_for_anybody(self, path: str) -> bool:
        config = self._config
        return path in config.public_paths or path in config.for_any_page or config.is_open(path)

    def _is_exempt(self, scope: Scope, principal: Principal) -> bool:
        """Check whether a request is exempt from rate and concurrency limits.

        A health check must not fail because others send too many requests. With a token it counts,
        so that tokens cannot be guessed this way.
        """
        return scope["path"] in self._config.public_paths and not principal.key

    async def _find_principal(self, scope: Mapping[str, Any]) -> Principal | None:
        """Return the principal of a request; None if its credentials are not valid here."""
        headers: Headers = scope["headers"]
        credentials = [value for name, value in headers if name == b"authorization"]
        if not credentials:
            if self._config.host_policy.is_own_page(scope["method"], headers):
                browser = self._config.session(headers)
                if browser is not None:
                    return browser
            is_trusted = self._config.trust_loopback and self._config.host_policy.is_local(headers)
            # With several people, being on this machine does not identify a person.
            has_people = is_trusted and self._config.tokens.people.roles(self._config.space)
            return LOOPBACK if is_trusted and not has_people else ANONYMOUS
        kind, _, secret = credentials[0].decode("latin-1")[:_MAX_TOKEN_LENGTH].partition(" ")
        if len(credentials) > 1 or kind.lower() != "bearer":
            return None
        secret, verify = secret.strip(), self._config.verify
        if verify is not None and not secret.startswith(PREFIX):
            return await asyncio.to_thread(verify, secret)
        return self._config.tokens.authenticate(secret, self._config.space, datetime.now(UTC))

    async def admits(self, scope: Scope) -> bool:
        """Check whether the caller of a request may read here."""
        found = await self._find_principal(scope)
        return found is not None and found.right >= Right.READ

    async def _read_body_and_forward(
        self, scope: Scope, receive: Receive, send: Send, principal: Principal, caller: str
    ) -> None:
        """Read the whole body within its size and time limits, then call the application."""
        limit = 0 if self._is_exempt(scope, principal) else self._config.max_body(scope, principal)
        if _content_length(scope["headers"]) > limit:
            await _refuse(body_too_large(limit), scope, receive, send)
            return
        try:
            async with self._body_time_limit(caller):
                body = await _read_body(receive, limit)
        except TimeoutError:
            await SLOW_BODY.respond(send)
            return
        except ConnectionResetError:
            return  # the client disconnected
        if body is None:
            await body_too_large(limit).respond(send)
            return
        messages = [{"type": "http.request", "body": body, "more_body": False}]

        async def replay() -> Message:
            return messages.pop() if messages else await receive()

        # Counted only now, so that slow senders do not use up the limits.
        counted = self._config.count_concurrency(scope) and not self._is_exempt(scope, principal)
        if counted and (
            self._active >= self._config.max_concurrent
            or self._active_by_caller[caller] >= self._config.max_concurrent_per_caller
        ):
            await BUSY.respond(send)
            return
        self._active += counted
        self._active_by_caller[caller] += counted
        try:
            await self.app(scope, replay, send)
        finally:
            self._active -= counted
            self._active_by_caller[caller] -= counted
            self._active_by_caller += Counter()  # drops callers without active requests

    @asynccontextmanager
    async def _body_time_limit(self, caller: str) -> AsyncIterator[None]:
        """Limit the time of a body, and how many of a caller are received at a time.

        Of too many the oldest is given up, not the new one: programs of one machine are one
        caller, and one of them that stops in the middle must not keep the others out.
        """
        own = self._receiving.setdefault(caller, [])
        if len(own) >= self._config.max_concurrent_per_caller:
            oldest = own.pop(0)
            if not oldest.expired():
                oldest.reschedule(0)
        async with asyncio.timeout(self._config.body_timeout_s) as limit:
            own.append(limit)
            try:
                yield
            finally:
                if limit in own:
                    own.remove(limit)
                if not own:
                    self._receiving.pop(caller, None)

    def _cors_headers(self, path: str, headers: Headers) -> Headers:
        """Return the CORS headers of an answer.

        They name the one allowed origin of the request; all origins only where nothing is secret.
        """
        if path in self._config.for_any_page:
            return [(b"access-control-allow-origin", b"*")]
        origin = next((value for name, value in headers if name == b"origin"), b"")
        if origin.decode("latin-1").lower() not in self._config.host_policy.origins:
            return []
        return [(b"access-control-allow-origin", origin), (b"vary", b"Origin")]


async def _refuse(refusal: Refusal, scope: Scope, receive: Receive, send: Send) -> None:
    """Send a refusal after draining the body, within limits.

    A client that is cut off while sending sees a broken connection instead of the answer.
    """
    headers: Headers = scope["headers"]
    is_waiting = any(name == b"expect" for name, _ in headers)
    if not is_waiting and _content_length(headers) <= _MAX_DRAIN_BYTES:
        await _drain_body(receive)
    await refusal.respond(send)


async def _drain_body(receive: Receive) -> None:
    """Read and discard a body, or the rest of it."""
    room = _MAX_DRAIN_BYTES
    with suppress(TimeoutError):
        async with asyncio.timeout(_DRAIN_TIMEOUT_S):
            while room > 0:
                message = await receive()
                if message["type"] != "http.request" or not message.get("more_body", False):
                    return
                room -= len(message.get("body", b""))


def _is_preflight(scope: Scope) -> bool:
    asks = any(name == b"access-control-request-method" for name, _ in scope["headers"])
    return bool(scope["method"] == "OPTIONS" and asks)


async def _answer_preflight(send: Send) -> None:
    headers = [
        (b"access-control-allow-methods", b"GET, POST, PATCH, DELETE"),
        (b"access-control-allow-headers", _ALLOWED_HEADERS),
        (b"access-control-max-age", b"600"),
    ]
    await send({"type": "http.response.start", "status": 204, "headers": headers})
    await send({"type": "http.response.body"})


def _head_size(scope: Scope) -> int:
    """Return the size of a request's head: its URL and its headers."""
    target = len(scope.get("raw_path") or b"") + len(scope.get("query_string", b""))
    return target + sum(len(name) + len(value) + 4 for name, value in scope["headers"])


def _content_length(headers: Headers) -> int:
    length = next((value for name, value in headers if name == b"content-length"), b"0")
    # More digits than any valid size.
    return int(length) if length.isdigit() and len(length) < 20 else 1 << 62


async def _read_body(receive: Receive, max_bytes: int) -> bytes | None:
    """Return the body; None if it exceeds the limit, after the rest has been drained."""
    parts = bytearray()
    while True:
        message = await receive()
        if message["type"] != "http.request":
            raise ConnectionResetError
        parts += message.get("body", b"")
        more = message.get("more_body", False)
        if len(parts) > max_bytes:
            if more:
                await _drain_body(receive)
            return None
        if not more:
            return bytes(parts)


def _client_network(scope: Scope) -> str:
    """Return the client's IP address or, for IPv6, its /64 network."""
    client = scope.get("client")
    if not client:
        return "?"
    try:
        address = ip_address(client[0])
    except ValueError:
        return str(client[0])
    is_own = isinstance(address, IPv6Address) and not address.is_loopback
    return str(int(address) >> 64) if is_own else str(address)
