"""The inspector's side of the server: sessions of browsers, and the files of its page.

A browser's session begins with a ticket that works once, or with a token. The page reads the
ticket from the fragment of its own address, which no log and no other server ever sees, and
sends it in the body of a request; the answer sets a cookie that scripts cannot read, and holds
a key that the page keeps and sends with each request. Browsers send cookies to every port of a
host, but what a page keeps belongs to its port: a cookie alone is worth nothing.
"""

from __future__ import annotations

import hashlib
import re
import secrets
import tempfile
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import cache
from html import escape
from pathlib import Path
from threading import Thread

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from bethink.access.policy import ANONYMOUS, Principal
from bethink.access.tokens import TokenStore, hash_secret
from bethink.core.named_tuple import NamedTuple
from bethink.errors import Forbidden, Refused
from bethink.server.rest.http_messages import read_json_body

LOGIN_PATH = "/login"
PAGE_PATH = "/ui"
SESSION_PATH = "/v1/session"
TICKET_S = 600.0
IDLE_S = 4 * 3600.0  # a session without a request
SESSION_S = 24 * 3600.0  # a session in all
PAGE_KEY_HEADER = b"x-bethink-page"
_MAX_TICKETS = 16
_MAX_SESSIONS = 64
_MAX_SESSIONS_EACH = 8  # of one token, or of those who came with a link
_COOKIE = re.compile(r"(?:^|;)\s*(bethink_[0-9]{1,5})=([A-Za-z0-9_-]{43})(?=;|$)")
_HOST_PORT = re.compile(rb":([0-9]{1,5})$")

PAGE_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "font-src 'self'; connect-src 'self'; worker-src 'self'; manifest-src 'self'; "
    "base-uri 'none'; form-action 'self'; frame-ancestors 'none'; object-src 'none'; "
    "require-trusted-types-for 'script'; trusted-types 'none'"
)
_PAGE_HEADERS = {
    "content-security-policy": PAGE_POLICY,
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
}
_MEDIA = {
    "html": "text/html; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "css": "text/css; charset=utf-8",
    "svg": "image/svg+xml",
    "md": "text/plain; charset=utf-8",
}
_INDEX = "index.html"


class _Session(NamedTuple):
    """A session: who it is, when it began and was last used, and the key of its token, if any."""

    principal: Principal
    began: float
    used: float
    page_hash: str
    token_key: str = ""


class Started(NamedTuple):
    """A session that was just started: its cookie, the key that its page keeps, who it is."""

    cookie: str
    page_key: str
    principal: Principal


class BrowserSessions:
    """Tickets and sessions of one server; they end with it. Only hashes are kept."""

    def __init__(
        self,
        tokens: TokenStore,
        space: str,
        clock: Callable[[], float] = time.monotonic,
        *,
        others: Sequence[str] = (),
    ) -> None:
        """Keep the sessions of a server; ``others`` are its further spaces."""
        self._tokens, self._space, self._clock, self._others = tokens, space, clock, others
        self._tickets: OrderedDict[str, tuple[Principal, float]] = OrderedDict()
        self._sessions: OrderedDict[str, _Session] = OrderedDict()

    def issue_ticket(self, principal: Principal) -> str:
        """Return a ticket with which one browser can become this principal, once."""
        ticket = secrets.token_urlsafe(32)
        self._tickets[hash_secret(ticket)] = principal, self._clock() + TICKET_S
        while len(self._tickets) > _MAX_TICKETS:
            self._tickets.popitem(last=False)
        return ticket

    def start_with_ticket(self, ticket: str) -> Started | None:
        """Start a session; None where the ticket was used or is too old."""
        principal, expires = self._tickets.pop(hash_secret(ticket), (None, 0.0))
        if principal is None or expires <= self._clock():
            return None
        return self._start(principal)

    def start_with_token(self, secret: str) -> Started | None:
        """Start a session with a token's rights; None where the token is not valid here."""
        now, spaces = datetime.now(UTC), (self._space, *self._others)
        found = [self._tokens.authenticate(secret, one, now) for one in spaces]
        valid = next(filter(None, found), None)
        if valid is None:
            return None
        started = self._start(valid, valid.key)
        return started if found[0] else started._replace(principal=ANONYMOUS)

    def _start(self, principal: Principal, token_key: str = "") -> Started:
        cookie, page_key = secrets.token_urlsafe(32), secrets.token_urlsafe(32)
        # A key of its own: a session has its own share of requests.
        named = principal._replace(key=hash_secret(cookie)[:16])
        now = self._clock()
        self._sessions[hash_secret(cookie)] = _Session(
            named, now, now, hash_secret(page_key), token_key
        )
        self._drop_least_used(token_key)
        return Started(cookie, page_key, named)

    def _drop_least_used(self, token_key: str) -> None:
        """Keep as many sessions as are allowed: of this caller, and in all."""
        for key in [key for key, one in self._sessions.items() if self._has_ended(one)]:
            del self._sessions[key]
        own = [key for key, one in self._sessions.items() if one.token_key == token_key]
        for key in own[:-_MAX_SESSIONS_EACH]:
            del self._sessions[key]
        while len(self._sessions) > _MAX_SESSIONS:
            self._sessions.popitem(last=False)

    def principal(
        self, headers: list[tuple[bytes, bytes]], space: str | None = None
    ) -> Principal | None:
        """Return the principal of a request's cookie and page key in a space; None without both."""
        key = self._find(headers)
        if key is None:
            return None
        found = self._sessions[key]
        self._sessions[key] = found._replace(used=self._clock())
        self._sessions.move_to_end(key)
        if not found.token_key:
            return found.principal
        # Looked up each time: tokens are revoked, and what a person may do changes.
        place = self._space if space is None else space
        now = self._tokens.find_principal(found.token_key, place, datetime.now(UTC))
        return None if now is None else found.principal._replace(right=now.right)

    def has(self, headers: list[tuple[bytes, bytes]]) -> bool:
        """Check whether a request belongs to a session, whatever its space."""
        return self._find(headers) is not None

    def _find(self, headers: list[tuple[bytes, bytes]]) -> str | None:
        """Return the key of the session that a request belongs to."""
        key = hash_secret(_cookie_in(headers))
        found = self._sessions.get(key)
        if found is None or not secrets.compare_digest(found.page_hash, _page_hash_in(headers)):
            return None
        if self._has_ended(found):
            del self._sessions[key]
            return None
        return key

    def _has_ended(self, session: _Session) -> bool:
        now = self._clock()
        return now - session.used >= IDLE_S or now - session.began >= SESSION_S

    def end(self, headers: list[tuple[bytes, bytes]]) -> bool:
        """End the session of a request; return whether there was one."""
        key = self._find(headers)
        return key is not None and self._sessions.pop(key, None) is not None


def _page_hash_in(headers: list[tuple[bytes, bytes]]) -> str:
    given = [value for name, value in headers if name == PAGE_KEY_HEADER]
    return hash_secret(given[0].decode("latin-1")) if len(given) == 1 else ""


def _cookie_name(headers: list[tuple[bytes, bytes]]) -> str:
    """Return the cookie's name, with the port: browsers share cookies among ports."""
    host = next((value for name, value in headers if name == b"host"), b"")
    port = _HOST_PORT.search(host)
    return f"bethink_{port[1].decode() if port else 80}"


def _cookie_in(headers: list[tuple[bytes, bytes]]) -> str:
    own = _cookie_name(headers)
    for name, value in headers:
        if name == b"cookie":
            for found, secret in _COOKIE.findall(value.decode("latin-1")):
                if found == own:
                    return str(secret)
    return ""


async def start_session(request: Request, sessions: BrowserSessions) -> Started:
    """Start the session that a request asks for with a ticket or a token."""
    given = await read_json_body(request)
    if len(given) != 1 or not given.keys() <= {"ticket", "token"}:
        raise Refused("a login needs a ticket or a token", remedy='for example {"token": "bt_..."}')
    kind, secret = next(iter(given.items()))
    if not isinstance(secret, str) or not secret.isascii() or len(secret) > _MAX_SECRET:
        raise Refused(f"that is no {kind}")
    if kind == "ticket":
        started, message = sessions.start_with_ticket(secret), "this link was used or is too old"
    else:
        started, message = sessions.start_with_token(secret), "this token is not valid here"
    if started is None:
        raise Forbidden(message, scope="", remedy=_LOGIN_REMEDIES[kind])
    return started


_MAX_SECRET = 200
_LOGIN_REMEDIES = {
    "ticket": "run bethink ui for a new link",
    "token": "list tokens with: bethink token list",
}


def session_cookie(headers: list[tuple[bytes, bytes]], secret: str) -> str:
    """Return the Set-Cookie header of a session; an empty secret removes the cookie.

    It has no Secure: it must work at http://127.0.0.1, and browsers do not agree on that.
    """
    age = "" if secret else "; Max-Age=0"
    return f"{_cookie_name(headers)}={secret}; Path=/; HttpOnly; SameSite=Strict{age}"


def is_page_path(path: str) -> bool:
    """Check whether a path is for anybody: the page itself, which holds no data, and the login."""
    return path in (PAGE_PATH, LOGIN_PATH, SESSION_PATH) or path.startswith(f"{PAGE_PATH}/")


@cache
def _files() -> dict[str, bytes]:
    """Return the built files of the page by their path below ``ui``."""
    from importlib.resources import files  # only a browser asks for them

    root = files("bethink.server") / "ui"
    found = {entry.name: entry.read_bytes() for entry in root.iterdir() if entry.is_file()}
    assets = root / "assets"
    return found | {f"assets/{entry.name}": entry.read_bytes() for entry in assets.iterdir()}


async def page(request: Request) -> Response:
    """Serve a file of the page; every other path below /ui is a view, drawn by the page."""
    path = request.path_params.get("path", "")
    is_asset = path.startswith("assets/") or "." in path.rpartition("/")[2]
    name = path if is_asset else _INDEX
    content = _files().get(name)
    if content is None:
        return Response("there is no such file", 404, {"content-type": "text/plain"})
    # An asset's name holds a hash of its content; a page is asked for anew.
    fixed = name.startswith("assets/")
    cached = "public, max-age=31536000, immutable" if fixed else "no-cache"
    tag = f'"{hashlib.sha256(content).hexdigest()[:20]}"'
    headers = {**_PAGE_HEADERS, "cache-control": cached, "etag": tag}
    if request.headers.get("if-none-match") == tag:
        return Response(status_code=304, headers=headers)
    media = _MEDIA.get(name.rpartition(".")[2], "application/octet-stream")
    return Response(content, headers={**headers, "content-type": media})


def page_routes() -> list[Route]:
    """Return the routes of the page."""
    paths = (PAGE_PATH, PAGE_PATH + "/{path:path}", LOGIN_PATH)
    return [Route(path, page, methods=["GET"]) for path in paths]


@contextmanager
def open_browser(link: str) -> Iterator[None]:
    """Open a link in the user's browser, and clean up afterwards.

    The browser gets a private file that leads to the link: other users of the machine can read
    the arguments of a program, and the link holds a ticket.
    """
    import webbrowser

    with tempfile.TemporaryDirectory(prefix="bethink-") as folder:
        page_file = Path(folder) / "inspector.html"
        target = escape(link, quote=True)
        page_file.write_text(
            '<!doctype html><meta charset="utf-8"><meta name="referrer" content="no-referrer">'
            f'<meta http-equiv="refresh" content="0;url={target}"><title>Bethink</title>'
            f'<p><a href="{target}">Open the inspector</a></p>',
            encoding="utf-8",
        )
        # A browser may take its time; the server is needed at once.
        Thread(target=webbrowser.open, args=(page_file.as_uri(),), daemon=True).start()
        yield
