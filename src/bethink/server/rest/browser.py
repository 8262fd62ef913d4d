"""The inspector's side of the server: sessions of browsers, and the files of its page.

A browser's session begins with a ticket that works once, or with a token. The page reads the
ticket from the fragment of its own address, which no log and no other server ever sees, and
sends it in the body of a request; the answer sets a cookie that scripts cannot read.
"""

from __future__ import annotations

import hashlib
import re
import secrets
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import cache
from html import escape
from pathlib import Path
from typing import NamedTuple

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from bethink.access.policy import Principal
from bethink.access.tokens import TokenStore
from bethink.errors import Forbidden, Refused
from bethink.server.rest.http_messages import read_json_body

LOGIN_PATH = "/login"
PAGE_PATH = "/ui"
SESSION_PATH = "/v1/session"
TICKET_S = 600.0
SESSION_S = 12 * 3600.0  # after the last request
_MAX_KEPT = 200  # tickets, and sessions
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
    """A session: who it is, until when, and the key of the token that it stands for, if any."""

    principal: Principal
    expires: float
    token_key: str = ""


class Started(NamedTuple):
    """A session that was just started: the value of its cookie, and who it is."""

    cookie: str
    principal: Principal


class BrowserSessions:
    """Tickets and sessions of one server; they end with it. Only hashes are kept."""

    def __init__(
        self, tokens: TokenStore, space: str, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._tokens, self._space, self._clock = tokens, space, clock
        self._tickets: OrderedDict[str, _Session] = OrderedDict()
        self._sessions: OrderedDict[str, _Session] = OrderedDict()

    def issue_ticket(self, principal: Principal) -> str:
        """Return a ticket with which one browser can become this principal, once."""
        ticket = secrets.token_urlsafe(32)
        _keep(self._tickets, ticket, _Session(principal, self._clock() + TICKET_S))
        return ticket

    def start_with_ticket(self, ticket: str) -> Started | None:
        """Start a session; None where the ticket was used or is too old."""
        found = self._tickets.pop(_hash(ticket), None)
        if found is None or found.expires <= self._clock():
            return None
        return self._start(found.principal)

    def start_with_token(self, secret: str) -> Started | None:
        """Start a session with a token's rights; None where the token is not valid here."""
        found = self._tokens.authenticate(secret, self._space, datetime.now(UTC))
        return None if found is None else self._start(found, found.key)

    def _start(self, principal: Principal, token_key: str = "") -> Started:
        cookie = secrets.token_urlsafe(32)
        # A key of its own: a session has its own share of requests.
        named = principal._replace(key=_hash(cookie)[:16])
        _keep(self._sessions, cookie, _Session(named, self._clock() + SESSION_S, token_key))
        return Started(cookie, named)

    def principal(self, headers: list[tuple[bytes, bytes]]) -> Principal | None:
        """Return the principal of a request's cookie; None without a valid one."""
        key = _hash(_cookie_in(headers))
        found = self._sessions.get(key)
        if found is None or found.expires <= self._clock() or not self._still_valid(found):
            self._sessions.pop(key, None)
            return None
        self._sessions[key] = found._replace(expires=self._clock() + SESSION_S)
        self._sessions.move_to_end(key)
        return found.principal

    def _still_valid(self, session: _Session) -> bool:
        """Check whether the token behind a session has not been revoked and has not expired."""
        key = session.token_key
        return not key or self._tokens.is_valid(key, self._space, datetime.now(UTC))

    def end(self, headers: list[tuple[bytes, bytes]]) -> bool:
        """End the session of a request's cookie; return whether there was one."""
        return self._sessions.pop(_hash(_cookie_in(headers)), None) is not None


def _keep(entries: OrderedDict[str, _Session], secret: str, entry: _Session) -> None:
    entries[_hash(secret)] = entry
    while len(entries) > _MAX_KEPT:
        entries.popitem(last=False)


def _hash(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()


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
    import tempfile  # `serve` opens no browser
    import webbrowser
    from threading import Thread

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
