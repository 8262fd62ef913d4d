"""OAuth 2.1 for remote hosts: metadata of the server, and its own authorization.

The authorization is for one person's server: who has a sign-in code of `bethink token sign-in`
may allow a host on the consent page. Hosts are known by their client ID metadata document, or
register themselves where that is switched on.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import re
import secrets
import time
from collections import OrderedDict
from collections.abc import Callable
from html import escape
from importlib.resources import files
from string import Template
from threading import Lock
from urllib.parse import SplitResult, parse_qsl, urlencode, urlsplit

from anyio import CapacityLimiter, fail_after, to_thread
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import Route

from bethink.access.connections import Connections
from bethink.access.guard import RESOURCE_METADATA, SCOPES_ASKED
from bethink.access.hosts import is_loopback
from bethink.access.identities import scope_right
from bethink.access.outbound import Limits, Unreachable, check_url, fetch
from bethink.access.policy import Right
from bethink.access.tokens import hash_secret
from bethink.core.characters import strip_hidden
from bethink.core.json_values import Json
from bethink.core.named_tuple import NamedTuple
from bethink.errors import BethinkError
from bethink.server.mcp.http import PATH as MCP_PATH
from bethink.server.rest.http_messages import json_response, read_json_body

AUTHORIZE, TOKEN, REVOKE, REGISTER = "/authorize", "/token", "/revoke", "/register"
METADATA = "/.well-known/oauth-authorization-server"
CODE_S = 60.0
_CLIENT_S, _MAX_KEPT = 3600.0, 200
_LIMITS = Limits(5.0, 5 * 1024)
_SCHEME = re.compile(r"[a-z][a-z0-9+.-]*")
_NO_APP = {"javascript", "data", "vbscript", "file", "blob", "about", "http", "ws", "wss", "ftp"}
_VERIFIER = re.compile(r"[A-Za-z0-9._~-]{43,128}")
_SAID = {
    Right.READ: "read all memories of this space",
    Right.WRITE: "store, correct and forget memories; that can be undone",
    Right.ADMIN: "erase, export and import memories; that cannot be undone",
}


class Client(NamedTuple):
    """A host that wants to connect."""

    id: str
    name: str
    redirects: tuple[str, ...]


class Code(NamedTuple):
    """An authorization code, and the connection that it was used for."""

    client: Client
    redirect: str
    challenge: str
    right: Right
    since: float
    family: str = ""


class OAuthError(Exception):
    """An error for the host: its code, as OAuth spells it."""


def resource_routes(url: str, servers: list[str]) -> list[Route]:
    """Return the routes that tell who may be asked for a token."""

    async def tell(_: Request) -> Response:
        return json_response({
            "resource": f"{url}{MCP_PATH}", "authorization_servers": servers,
            "scopes_supported": SCOPES_ASKED.split(), "bearer_methods_supported": ["header"],
            "resource_name": "Bethink",
        })  # fmt: skip

    return [Route(f"{RESOURCE_METADATA}{path}", tell) for path in ("", MCP_PATH)]


class AuthorizationServer:
    """The endpoints of the server's own authorization."""

    def __init__(
        self, url: str, space: str, kept: Connections, *, registers: bool = False,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:  # fmt: skip
        self._url, self._space, self._kept = url, space, kept
        self._registers, self._clock, self._lock = registers, clock, Lock()
        self._fetching = CapacityLimiter(4)
        self._codes: OrderedDict[str, Code] = OrderedDict()
        self._clients: dict[str, tuple[Client, float]] = {}

    def routes(self) -> list[Route]:
        """Return the routes, with registration where it is switched on."""
        found = [
            Route(METADATA, self._metadata),
            Route(AUTHORIZE, self._authorize, methods=["GET", "POST"]),
            *(Route(path, self._post, methods=["POST"]) for path in (TOKEN, REVOKE)),
        ]
        register = Route(REGISTER, self._register, methods=["POST"])
        return [*found, register] if self._registers else found

    async def _metadata(self, _: Request) -> Response:
        url = self._url
        register = {"registration_endpoint": url + REGISTER} if self._registers else {}
        return json_response({
            "issuer": url, "authorization_endpoint": url + AUTHORIZE, "token_endpoint": url + TOKEN,
            "revocation_endpoint": url + REVOKE, **register,
            "scopes_supported": SCOPES_ASKED.split(), "response_types_supported": ["code"],
            "grant_types_supported": ["authorization_code", "refresh_token"],
            "token_endpoint_auth_methods_supported": ["none"],
            "revocation_endpoint_auth_methods_supported": ["none"],
            "code_challenge_methods_supported": ["S256"],
            "authorization_response_iss_parameter_supported": True,
            "client_id_metadata_document_supported": True,
        })  # fmt: skip

    async def _authorize(self, request: Request) -> Response:
        """Show the consent page, or take its answer."""
        try:
            is_answer = request.method == "POST"
            query = await request.body() if is_answer else request.scope["query_string"]
            given = _parse_form(query)
            # Strangers say what is fetched: names that resolve slowly keep few threads busy.
            with fail_after(_LIMITS.timeout_s):
                client = await to_thread.run_sync(
                    self._client_of, given, abandon_on_cancel=True, limiter=self._fetching
                )
        except (OAuthError, Unreachable, TimeoutError) as error:
            # Not to the address: nobody has said whose it is. Why a document cannot be fetched is
            # not told: strangers would learn which names the server's own network has.
            is_told = isinstance(error, OAuthError)
            problem = str(error) if is_told else "its document cannot be fetched from the Internet"
            return _page(400, title="This host cannot be connected", problem=escape(problem))
        try:
            right = self._check_request(given)
            if not is_answer:
                return self._ask(client, given, right)
            if given.get("decision") != "allow":
                return self._answer(given, {"error": "access_denied"})
            code = given.get("code", "").strip()
            allowed = await to_thread.run_sync(self._kept.take_code, code, self._space)
            if allowed is None:
                return self._ask(client, given, right, "That code was used, or is too old.")
        except OAuthError as error:
            return self._answer(given, {"error": str(error)})
        made = Code(
            client, given["redirect_uri"], given["code_challenge"], min(right, allowed),
            self._clock(),
        )  # fmt: skip
        return self._answer(given, {"code": self._remember(made)})

    def _check_request(self, given: dict[str, str]) -> Right:
        """Return the right that a valid request asks for."""
        if given.get("response_type") != "code":
            raise OAuthError("unsupported_response_type")
        challenge = re.fullmatch(r"[A-Za-z0-9_-]{43}", given.get("code_challenge", ""))
        if challenge is None or given.get("code_challenge_method") != "S256":
            raise OAuthError("invalid_request")
        self._check_resource(given)
        right = scope_right(given.get("scope", SCOPES_ASKED).split())
        if right is Right.ANYONE:
            raise OAuthError("invalid_scope")
        return right

    def _check_resource(self, given: dict[str, str]) -> None:
        if given.get("resource", self._url + MCP_PATH) not in (self._url + MCP_PATH, self._url):
            raise OAuthError("invalid_target")

    def _answer(self, given: dict[str, str], told: dict[str, str]) -> Response:
        """Send the browser back to the host."""
        state = {"state": given["state"]} if "state" in given else {}
        target = given["redirect_uri"]
        query = urlencode({**told, **state, "iss": self._url})
        return RedirectResponse(f"{target}{'&' if '?' in target else '?'}{query}", 303)

    def _remember(self, made: Code) -> str:
        code = secrets.token_urlsafe(32)
        with self._lock:
            self._codes[hash_secret(code)] = made
            while len(self._codes) > _MAX_KEPT:  # used ones too: a second use is noticed
                self._codes.popitem(last=False)
        return code

    def _ask(
        self, client: Client, given: dict[str, str], right: Right, problem: str = ""
    ) -> Response:
        """Show what is asked for, by whom, and where the answer goes."""
        target = urlsplit(given["redirect_uri"])
        is_url = client.id.startswith("https:")
        known = client.id if is_url else "it gave itself this name, which is not verified"
        told = {"problem": problem, "name": client.name, "known": known, "space": self._space,
                "host": target.netloc or f"{target.scheme}:"}  # fmt: skip
        made = {name: escape(value) for name, value in told.items()}
        made["asked"] = "".join(f"<li>{said}</li>" for need, said in _SAID.items() if need <= right)
        made["fields"] = "".join(
            f'<input type="hidden" name="{escape(name)}" value="{escape(value)}">'
            for name, value in given.items()
            if name not in ("code", "decision")
        )
        return _page(403 if problem else 200, target, title="Connect to Bethink", **made)

    async def _post(self, request: Request) -> Response:
        """Answer a host: with tokens, or once it gave them back."""
        work = self._exchange if request.url.path == TOKEN else self._revoke
        try:
            given = _parse_form(await request.body())
            return json_response(await to_thread.run_sync(work, given))
        except OAuthError as error:
            return json_response({"error": str(error)}, 400)

    def _revoke(self, given: dict[str, str]) -> Json:
        self._kept.revoke(given.get("token", ""))
        return {}

    def _exchange(self, given: dict[str, str]) -> Json:
        self._check_resource(given)
        if given.get("grant_type") == "refresh_token":
            tokens = self._kept.refresh(given.get("refresh_token", ""), given.get("client_id", ""))
        elif given.get("grant_type") == "authorization_code":
            tokens = self._redeem(given)
        else:
            raise OAuthError("unsupported_grant_type")
        if tokens is None:
            raise OAuthError("invalid_grant")
        return tokens

    def _redeem(self, given: dict[str, str]) -> Json | None:
        """Return the tokens for a code, once; a second use ends what the first one opened."""
        key, verifier = hash_secret(given.get("code", "")), given.get("code_verifier", "")
        with self._lock:
            code = self._codes.get(key)
            if code is None:
                return None
            if code.family:
                self._kept.revoke(code.family)
                return None
            digest = hashlib.sha256(verifier.encode()).digest()
            challenge = base64.urlsafe_b64encode(digest).decode().rstrip("=")
            is_right = (
                _VERIFIER.fullmatch(verifier)
                and hmac.compare_digest(challenge, code.challenge)
                and given.get("client_id") == code.client.id
                # OAuth 2.1 does without it.
                and given.get("redirect_uri", code.redirect) == code.redirect
                and self._clock() - code.since <= CODE_S
            )
            if not is_right:
                del self._codes[key]
                return None
            family, tokens = self._kept.open(
                code.client.id, code.client.name, code.right, self._space
            )
            self._codes[key] = code._replace(family=family)
        return tokens

    async def _register(self, request: Request) -> Response:
        try:
            client = _parse_client("", await read_json_body(request))
        except (BethinkError, OAuthError):
            return json_response({"error": "invalid_redirect_uri"}, 400)
        kept = {"client_name": client.name, "redirect_uris": list(client.redirects)}
        client_id = await to_thread.run_sync(self._kept.register, kept)
        return json_response(
            kept | {"client_id": client_id, "token_endpoint_auth_method": "none",
                    "grant_types": ["authorization_code", "refresh_token"],
                    "response_types": ["code"]}, 201
        )  # fmt: skip

    def _client_of(self, given: dict[str, str]) -> Client:
        client = self._find_client(given.get("client_id", ""))
        if not any(_matches(given.get("redirect_uri", ""), known) for known in client.redirects):
            raise OAuthError("the host does not say that it may be answered there")
        return client

    def _find_client(self, client_id: str) -> Client:
        """Return a client by its id: one that registered, or the document at that URL."""
        if not client_id.startswith("https://"):
            registered = self._kept.registered(client_id) if self._registers else None
            if registered is None:
                raise OAuthError("the host is not known here")
            return _parse_client(client_id, registered)
        found, since = self._clients.get(client_id, (None, 0.0))
        if found is None or self._clock() - since > _CLIENT_S:
            path = check_url(client_id).path
            if path in ("", "/") or {".", ".."} & {*path.split("/")}:
                raise OAuthError("the host's id is not the URL of a document")
            status, body = fetch(client_id, _LIMITS)
            try:
                told = json.loads(body)
                if status != 200 or told.get("client_id") != client_id:
                    raise OAuthError("the host's document is not about it")
                found = _parse_client(client_id, told)
            except (ValueError, AttributeError, RecursionError) as error:
                raise OAuthError("the host's document cannot be read") from error
            if len(self._clients) >= _MAX_KEPT:
                self._clients.clear()
            self._clients[client_id] = found, self._clock()
        return found


def _parse_client(client_id: str, told: Json) -> Client:
    redirects = told.get("redirect_uris")
    is_list = isinstance(redirects, list) and 0 < len(redirects) <= 20
    if not is_list or not all(map(_is_redirect, redirects or ())):
        raise OAuthError("the host gives no addresses that may be answered")
    method = told.get("token_endpoint_auth_method", "none")
    if client_id.startswith("https://") and method != "none":
        raise OAuthError("the host wants to sign in with a secret or a key")
    name = str(told.get("client_name") or urlsplit(client_id).hostname or "a host")
    return Client(client_id, strip_hidden(name)[:80], tuple(redirects or ()))


def _is_redirect(uri: object) -> bool:
    """Check whether browsers may be sent there: https, this computer, or an app."""
    if not isinstance(uri, str) or len(uri) > 2000 or not (uri.isascii() and uri.isprintable()):
        return False
    try:
        parts = urlsplit(uri)
    except ValueError:
        return False
    if {*' "#<>;,\\'} & {*uri} or parts.username is not None:
        return False
    if parts.scheme == "https":
        return bool(parts.hostname)
    is_app = parts.scheme not in _NO_APP and _SCHEME.fullmatch(parts.scheme)
    return bool(is_app) or (parts.scheme == "http" and is_loopback(parts.hostname or ""))


def _matches(uri: str, known: str) -> bool:
    """Check whether an address is a known one; on loopback the port is free."""
    one, other = (urlsplit(text if _is_redirect(text) else "") for text in (uri, known))
    is_local = one.scheme == "http" and one.hostname == other.hostname
    return uri == known or (is_local and one._replace(netloc="") == other._replace(netloc=""))


def _parse_form(query: bytes) -> dict[str, str]:
    try:
        pairs = parse_qsl(query.decode(), keep_blank_values=False, max_num_fields=50)
    except ValueError as error:
        raise OAuthError("invalid_request") from error
    if len({name for name, _ in pairs}) < len(pairs):
        raise OAuthError("invalid_request")
    return dict(pairs)


def _page(status: int, target: SplitResult | None = None, **told: str) -> Response:
    """Build a page that no other page can frame, from which forms go here and to the host."""
    text = (files("bethink.server.rest") / "consent.html").read_text("utf-8")
    is_local = target is not None and is_loopback(target.hostname or "")
    for part, is_shown in (("local", is_local), ("ask", target is not None)):
        if not is_shown:
            text = re.sub(f"(?s)<!--{part}-->.*<!--/{part}-->", "", text)
    scheme, place = (target.scheme, target.netloc) if target else ("", "")
    goes_to = f"{scheme}://{place}" if scheme in ("https", "http") else f"{scheme}:" * bool(scheme)
    # Browsers apply form-action to the redirect as well. Without a referrer policy of its own
    # the page's form would have the origin null.
    headers = {
        "content-security-policy": "default-src 'none'; style-src 'unsafe-inline'; "
        f"base-uri 'none'; form-action 'self' {goes_to}; frame-ancestors 'none'",
        "x-frame-options": "DENY",
        "referrer-policy": "same-origin",
    }
    return HTMLResponse(Template(text).substitute(told), status, headers)
