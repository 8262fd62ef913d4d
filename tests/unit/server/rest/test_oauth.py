"""OAuth at the server: who may ask, where the answer goes, and what a code is worth."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import json
import threading
from collections.abc import Awaitable, Callable
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import httpx
import pytest

from bethink import Memory
from bethink.access import outbound
from bethink.access.connections import Connections
from bethink.access.policy import Right
from deferred import Deferred
from oauth_hosts import REDIRECT, Host, fields_of
from rows import each_row
from server_app import SPACE, URL, Callers, bearer, make_guard, make_test_app, mcp, talk

OAUTH = "bethink.server.rest.oauth"
oauth = Deferred(OAUTH)

CALLBACK = "https://host.example/callback"
LOCAL = "http://127.0.0.1:8787/callback"
VERIFIER = "v" * 43
CHALLENGE = (
    base64.urlsafe_b64encode(hashlib.sha256(VERIFIER.encode()).digest()).decode().rstrip("=")
)
HOST_ID = "https://host.example/client.json"


class Site:
    """A server with its own authorization, and what its parts are."""

    def __init__(self, memory: Memory, folder: Path, **more: Any) -> None:
        self.now = 1000.0
        self.kept = Connections(folder / "oauth")
        self.server = oauth.AuthorizationServer(
            URL, SPACE, self.kept, clock=lambda: self.now, **more
        )
        self.callers = Callers(folder)
        door = make_guard(self.callers, require_token=True)
        door = replace(door, public_url=URL, verify=lambda t: self.kept.authenticate(t, SPACE))
        routes = [*self.server.routes(), *oauth.resource_routes(URL, [URL])]
        self.app = make_test_app(memory, door, oauth_routes=routes)

    def talk(self, conversation: Callable[[httpx.AsyncClient], Awaitable[Any]]) -> Any:
        return talk(self.app, conversation)

    def code(self, right: Right = Right.WRITE) -> str:
        return self.kept.make_code(right, SPACE)


@pytest.fixture
def site(memory: Memory, tmp_path: Path) -> Site:
    return Site(memory, tmp_path)


@pytest.fixture(autouse=True)
def documents(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """What is found at the addresses of hosts."""
    found: dict[str, Any] = {
        HOST_ID: {"client_id": HOST_ID, "client_name": "A <b>Host</b>",
                  "redirect_uris": [CALLBACK, LOCAL, "cursor://host/oauth"]},
    }  # fmt: skip

    def fetch(url: str, limits: Any) -> tuple[int, bytes]:
        assert limits == outbound.Limits(5.0, 5 * 1024)
        told = found.get(url)
        return (404, b"") if told is None else (200, json.dumps(told).encode())

    monkeypatch.setattr(f"{OAUTH}.fetch", fetch)
    return found


def asking(**changed: Any) -> dict[str, str]:
    told = {"client_id": HOST_ID, "redirect_uri": CALLBACK, "response_type": "code",
            "code_challenge": CHALLENGE, "code_challenge_method": "S256", "state": "s-1",
            "resource": f"{URL}/mcp", "scope": "memory:read memory:write"}  # fmt: skip
    return {name: value for name, value in (told | changed).items() if value is not None}


async def agree(client: httpx.AsyncClient, code: str, **changed: Any) -> dict[str, str]:
    """What comes back to the host when its user enters a sign-in code."""
    page = await client.get("/authorize", params=asking(**changed))
    assert page.status_code == 200, page.text
    told = {**fields_of(page.text), "code": code, "decision": "allow"}
    answer = await client.post("/authorize", data=told, headers={"Origin": URL})
    assert answer.status_code == 303, answer.text
    return back(answer)


def back(answer: httpx.Response) -> dict[str, str]:
    return dict(parse_qsl(urlsplit(answer.headers["location"]).query))


async def redeem(client: httpx.AsyncClient, code: str, **changed: Any) -> httpx.Response:
    told = {"grant_type": "authorization_code", "code": code, "client_id": HOST_ID,
            "redirect_uri": CALLBACK, "code_verifier": VERIFIER, "resource": f"{URL}/mcp"}  # fmt: skip
    return await client.post("/token", data=told | changed)


def test_a_host_learns_where_to_begin(site: Site) -> None:
    """From the refusal to the endpoints, by documents that any page may read."""

    async def conversation(client: httpx.AsyncClient) -> None:
        page = {"Origin": "https://inspector.example"}
        for refused in (
            await mcp(client, "tools/list", {}, {}),
            await mcp(client, "tools/list", {}, bearer("bta_" + "x" * 43)),
            await client.get("/v1/stats"),
        ):
            assert refused.status_code == 401
            told = refused.headers["www-authenticate"]
            where = f"{URL}/.well-known/oauth-protected-resource/mcp"
            assert f'resource_metadata="{where}"' in told
            assert 'scope="memory:read memory:write"' in told
        for path in ("", "/mcp"):
            answer = await client.get(f"/.well-known/oauth-protected-resource{path}", headers=page)
            assert answer.headers["access-control-allow-origin"] == "*"
            assert answer.json()["resource"] == f"{URL}/mcp"
            assert answer.json()["authorization_servers"] == [URL]
        told = (await client.get("/.well-known/oauth-authorization-server", headers=page)).json()
        assert told["issuer"] == URL
        assert told["code_challenge_methods_supported"] == ["S256"]
        assert told["token_endpoint_auth_methods_supported"] == ["none"]
        assert told["client_id_metadata_document_supported"]
        assert told["authorization_response_iss_parameter_supported"]
        asks = {**page, "Access-Control-Request-Method": "POST"}
        preflight = await client.options("/token", headers=asks)
        assert preflight.headers["access-control-allow-origin"] == "*"
        closed = await mcp(client, "tools/list", {}, page)
        assert closed.status_code == 403
        assert "access-control-allow-origin" not in closed.headers

    site.talk(conversation)


def test_a_person_allows_and_the_host_comes_in(site: Site) -> None:
    """With what the sign-in code allows, and the state and the issuer in the answer."""

    async def conversation(client: httpx.AsyncClient) -> None:
        came = await agree(client, site.code(Right.READ))
        assert (came["state"], came["iss"]) == ("s-1", URL)
        tokens = (await redeem(client, came["code"])).json()
        assert tokens["scope"] == "memory:read"
        session = await client.get("/v1/session", headers=bearer(tokens["access_token"]))
        assert session.json()["scope"] == "read"
        refreshed = await client.post(
            "/token",
            data={"grant_type": "refresh_token", "client_id": HOST_ID,
                  "refresh_token": tokens["refresh_token"]},
        )  # fmt: skip
        assert refreshed.status_code == 200
        access = refreshed.json()["access_token"]
        assert (await client.get("/v1/stats", headers=bearer(access))).status_code == 200
        gone = await client.post("/revoke", data={"token": access})
        assert gone.status_code == 200
        assert (await client.get("/v1/stats", headers=bearer(access))).status_code == 401

    site.talk(conversation)


@each_row(
    "changed",
    [
        {"client_id": None},
        {"client_id": "unknown"},
        {"client_id": "https://host.example/none.json"},
        {"client_id": "https://host.example/"},
        {"client_id": "https://host.example/a/../client.json"},
        {"client_id": "http://host.example/client.json"},
        {"redirect_uri": None},
        {"redirect_uri": "https://evil.example/callback"},
        {"redirect_uri": CALLBACK + "/"},
        {"redirect_uri": CALLBACK + "?x=1"},
        {"redirect_uri": "https://host.example:444/callback"},
        {"redirect_uri": "http://127.0.0.1:8787/other"},
        {"redirect_uri": "http://localhost:8787/callback"},
        {"redirect_uri": "http://127.0.0.1:8787@evil.example/callback"},
        {"redirect_uri": "javascript:alert(1)"},
        {"redirect_uri": "http://[127.0.0.1/callback"},
        {"redirect_uri": "http://127.0.0.1:8787/callback#x"},
    ],
)
def test_nobody_is_sent_to_an_address_that_is_not_the_hosts(
    site: Site, changed: dict[str, Any]
) -> None:
    """The person reads a page instead."""

    async def conversation(client: httpx.AsyncClient) -> None:
        for answer in (
            await client.get("/authorize", params=asking(**changed)),
            await client.post("/authorize", data=asking(**changed) | {"decision": "deny"}),
        ):
            assert answer.status_code == 400
            assert "location" not in answer.headers

    site.talk(conversation)


@each_row(
    "wrong",
    [
        ({"response_type": "token"}, "unsupported_response_type"),
        ({"code_challenge": None}, "invalid_request"),
        ({"code_challenge": "short"}, "invalid_request"),
        ({"code_challenge_method": "plain"}, "invalid_request"),
        ({"code_challenge_method": None}, "invalid_request"),
        ({"resource": "https://other.example/mcp"}, "invalid_target"),
        ({"scope": "openid"}, "invalid_scope"),
    ],
)
def test_a_mistake_is_told_to_the_host(site: Site, wrong: tuple[dict[str, Any], str]) -> None:
    """With its state and our name, also where something is wrong."""

    async def conversation(client: httpx.AsyncClient) -> None:
        answer = await client.get("/authorize", params=asking(**wrong[0]))
        assert answer.status_code == 303
        assert back(answer) == {"error": wrong[1], "state": "s-1", "iss": URL}

    site.talk(conversation)


def test_arguments_that_are_given_twice_are_refused(site: Site) -> None:
    """Nobody reads one of them while another reads the other."""

    async def conversation(client: httpx.AsyncClient) -> None:
        twice = [*asking().items(), ("redirect_uri", LOCAL)]
        assert (await client.get("/authorize", params=twice)).status_code == 400
        body = "grant_type=refresh_token&grant_type=authorization_code"
        kind = {"Content-Type": "application/x-www-form-urlencoded"}
        answer = await client.post("/token", content=body, headers=kind)
        assert (answer.status_code, answer.json()) == (400, {"error": "invalid_request"})
        odd = await client.post("/revoke", content=b"token=a&token=b\xff", headers=kind)
        assert odd.status_code == 400
        unknown = await redeem(client, "unknown")
        assert unknown.json() == {"error": "invalid_grant"}

    site.talk(conversation)


def test_on_loopback_the_port_is_free(site: Site) -> None:
    """A program there cannot know it before it starts; the page warns."""

    async def conversation(client: httpx.AsyncClient) -> None:
        other = "http://127.0.0.1:55555/callback"
        page = await client.get("/authorize", params=asking(redirect_uri=other))
        assert page.status_code == 200
        assert "a program on the computer" in page.text
        assert "http://127.0.0.1:55555;" in page.headers["content-security-policy"]
        came = await agree(client, site.code(), redirect_uri=other)
        assert (await redeem(client, came["code"], redirect_uri=LOCAL)).status_code == 400
        app = await client.get("/authorize", params=asking(redirect_uri="cursor://host/oauth"))
        assert "form-action 'self' cursor:;" in app.headers["content-security-policy"]

    site.talk(conversation)


def test_the_page_shows_who_asks_for_what_and_nobody_frames_it(site: Site) -> None:
    """What the host calls itself is text; the sign-in code is never put into the page."""

    async def conversation(client: httpx.AsyncClient) -> None:
        page = await client.get("/authorize", params=asking(state='"><script>x</script>'))
        assert "A &lt;b&gt;Host&lt;/b&gt;" in page.text
        assert "<script" not in page.text
        for shown in (HOST_ID, "host.example", SPACE, "store, correct and forget"):
            assert shown in page.text
        assert "a program on the computer" not in page.text
        policy = page.headers["content-security-policy"]
        assert "frame-ancestors 'none'" in policy
        assert "form-action 'self' https://host.example;" in policy
        assert page.headers["x-frame-options"] == "DENY"
        assert page.headers["referrer-policy"] == "same-origin"
        assert "cross-origin-opener-policy" not in page.headers
        told = asking() | {"code": "wrong-code", "decision": "allow"}
        again = await client.post("/authorize", data=told)
        assert again.status_code == 403
        assert "wrong-code" not in again.text

    site.talk(conversation)


def test_pages_of_others_open_it_in_a_window_and_no_other_way(site: Site) -> None:
    """A visit comes from anywhere; a frame, a script and a form do not."""

    async def conversation(client: httpx.AsyncClient) -> None:
        visit = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate",
                 "Sec-Fetch-Dest": "document"}  # fmt: skip
        opened = await client.get("/authorize", params=asking(), headers=visit)
        assert opened.status_code == 200
        frame = visit | {"Sec-Fetch-Dest": "iframe"}
        assert (await client.get("/authorize", params=asking(), headers=frame)).status_code == 403
        told = asking() | {"code": site.code(), "decision": "allow"}
        for origin in ("https://evil.example", "null"):
            sent = await client.post("/authorize", data=told, headers={"Origin": origin})
            assert sent.status_code == 403
        form = {"Origin": "https://inspector.example", "Sec-Fetch-Site": "cross-site"}
        token = await client.post("/token", data={"grant_type": "x"}, headers=form)
        assert token.json() == {"error": "unsupported_grant_type"}

    site.talk(conversation)


def test_who_denies_or_has_no_code_gives_nothing(site: Site) -> None:
    """A used code opens nothing; a new one does."""

    async def conversation(client: httpx.AsyncClient) -> None:
        denied = await client.post("/authorize", data=asking() | {"decision": "deny"})
        assert back(denied) == {"error": "access_denied", "state": "s-1", "iss": URL}
        code = site.code()
        for wrong in ("", "guess", code[:-1]):
            told = asking() | {"code": wrong, "decision": "allow"}
            assert (await client.post("/authorize", data=told)).status_code == 403
        assert "code" in await agree(client, f" {code} ")
        told = asking() | {"code": code, "decision": "allow"}
        assert (await client.post("/authorize", data=told)).status_code == 403

    site.talk(conversation)


@each_row(
    "changed",
    [
        {"code_verifier": "w" * 43},
        {"code_verifier": ""},
        {"code_verifier": VERIFIER + "="},
        {"client_id": "https://other.example/client.json"},
        {"redirect_uri": LOCAL},
        {"resource": "https://other.example/mcp"},
    ],
)
def test_a_code_is_for_who_asked_for_it(site: Site, changed: dict[str, str]) -> None:
    """The verifier, the host, the address and the resource are compared."""

    async def conversation(client: httpx.AsyncClient) -> None:
        came = await agree(client, site.code())
        answer = await redeem(client, came["code"], **changed)
        assert answer.status_code == 400
        assert answer.json()["error"] in ("invalid_grant", "invalid_target")

    site.talk(conversation)


def test_the_address_need_not_be_told_again(site: Site) -> None:
    """OAuth 2.1 has no redirect_uri in a request for tokens: the verifier proves who asks."""

    async def conversation(client: httpx.AsyncClient) -> None:
        came = await agree(client, site.code())
        assert (await redeem(client, came["code"], redirect_uri="")).status_code == 200

    site.talk(conversation)


def test_a_code_lives_a_minute(site: Site) -> None:
    """Nobody needs longer."""

    async def conversation(client: httpx.AsyncClient) -> None:
        came = await agree(client, site.code())
        site.now += oauth.CODE_S + 1
        assert (await redeem(client, came["code"])).status_code == 400

    site.talk(conversation)


def test_a_code_that_comes_twice_ends_the_connection(site: Site) -> None:
    """In parallel, and later: somebody has seen it."""

    async def conversation(client: httpx.AsyncClient) -> None:
        came = await agree(client, site.code())
        both = await asyncio.gather(*(redeem(client, came["code"]) for _ in range(4)))
        assert sorted(one.status_code for one in both) == [200, 400, 400, 400]
        tokens = next(one.json() for one in both if one.status_code == 200)
        header = bearer(tokens["access_token"])
        assert (await client.get("/v1/stats", headers=header)).status_code == 401
        came = await agree(client, site.code())
        header = bearer((await redeem(client, came["code"])).json()["access_token"])
        assert (await client.get("/v1/stats", headers=header)).status_code == 200
        site.now += 300
        assert (await redeem(client, came["code"])).status_code == 400
        assert (await client.get("/v1/stats", headers=header)).status_code == 401

    site.talk(conversation)


@each_row(
    "told",
    [
        {"client_id": "https://other.example/client.json"},
        {"client_id": None},
        {"redirect_uris": []},
        {"redirect_uris": "https://host.example/callback"},
        {"redirect_uris": [CALLBACK, "javascript:alert(1)"]},
        {"redirect_uris": [CALLBACK, "http://host.example/callback"]},
        {"redirect_uris": [CALLBACK, "https://host.example/#x"]},
        {"redirect_uris": [CALLBACK, "https://host.example/; script-src *"]},
        {"redirect_uris": [CALLBACK, 7]},
        {"token_endpoint_auth_method": "client_secret_basic"},
    ],
)
def test_a_document_of_a_host_is_checked(
    site: Site, documents: dict[str, Any], told: dict[str, Any]
) -> None:
    """It must be about itself, and name addresses that may be answered."""
    documents[HOST_ID] = documents[HOST_ID] | told

    async def conversation(client: httpx.AsyncClient) -> None:
        assert (await client.get("/authorize", params=asking())).status_code == 400
        deep: Any = []
        for _ in range(900):
            deep = [deep]
        for odd in (["no", "object"], deep, "text", None):
            documents[HOST_ID] = odd
            assert (await client.get("/authorize", params=asking())).status_code == 400

    site.talk(conversation)


def test_a_document_is_fetched_once_an_hour(site: Site, documents: dict[str, Any]) -> None:
    """Not for every look at the page."""

    async def conversation(client: httpx.AsyncClient) -> None:
        assert (await client.get("/authorize", params=asking())).status_code == 200
        documents.clear()
        assert (await client.get("/authorize", params=asking())).status_code == 200
        site.now += 3601
        assert (await client.get("/authorize", params=asking())).status_code == 400

    site.talk(conversation)


@each_row("address", ["127.0.0.1", "10.0.0.1", "169.254.169.254", "::1"])
def test_no_document_is_fetched_from_a_private_address(
    site: Site, monkeypatch: pytest.MonkeyPatch, address: str
) -> None:
    """Whatever name it has; the page does not tell it from a name that nobody has."""
    monkeypatch.setattr(f"{OAUTH}.fetch", outbound.fetch)
    monkeypatch.setattr(
        outbound.socket, "getaddrinfo", lambda *_, **__: [(0, 0, 0, "", (address, 443))]
    )

    async def conversation(client: httpx.AsyncClient) -> None:
        answer = await client.get("/authorize", params=asking())
        assert answer.status_code == 400
        monkeypatch.setattr(outbound.socket, "getaddrinfo", lambda *_, **__: [])
        assert (await client.get("/authorize", params=asking())).text == answer.text

    site.talk(conversation)


def test_a_name_that_resolves_slowly_keeps_nobody_waiting(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The page says so, and everything else is answered meanwhile."""
    ended = threading.Event()
    limits = import_module(OAUTH)._LIMITS
    monkeypatch.setattr(f"{OAUTH}._LIMITS", limits._replace(timeout_s=0.2))
    monkeypatch.setattr(f"{OAUTH}.fetch", lambda *_: (ended.wait(60), (404, b""))[1])

    async def conversation(client: httpx.AsyncClient) -> None:
        asked = [client.get("/authorize", params=asking()) for _ in range(60)]
        pages = await asyncio.gather(*asked, return_exceptions=True)
        others = await client.get("/v1/stats", headers=site.callers.headers["read"])
        ended.set()
        assert others.status_code == 200
        assert {one.status_code for one in pages if isinstance(one, httpx.Response)} <= {400, 503}

    site.talk(conversation)


def test_hosts_register_only_where_that_is_switched_on(memory: Memory, tmp_path: Path) -> None:
    """And get no secret; an id is worth nothing on another server."""
    told = {"client_name": "Host", "redirect_uris": [LOCAL], "scope": "memory:read",
            "token_endpoint_auth_method": "client_secret_basic"}  # fmt: skip
    asked: dict[str, str] = {}

    async def register(client: httpx.AsyncClient) -> None:
        made = await client.post("/register", json=told)
        assert made.status_code == 201
        assert made.json()["token_endpoint_auth_method"] == "none"
        assert "client_secret" not in made.json()
        asked["client_id"] = made.json()["client_id"]
        for wrong in ({}, {"redirect_uris": ["http://evil.example/"]}, []):
            assert (await client.post("/register", json=wrong)).status_code == 400
        deep = {"content": b"[" * 100_000, "headers": {"Content-Type": "application/json"}}
        assert (await client.post("/register", **deep)).status_code == 400
        page = await client.get("/authorize", params=asking(**asked, redirect_uri=LOCAL))
        assert page.status_code == 200

    async def refused(client: httpx.AsyncClient) -> None:
        assert (await client.post("/register", json=told)).status_code in (401, 404)
        page = await client.get("/authorize", params=asking(**asked, redirect_uri=LOCAL))
        assert page.status_code == 400
        told_of = (await client.get("/.well-known/oauth-authorization-server")).json()
        assert "registration_endpoint" not in told_of

    (tmp_path / "on").mkdir()
    (tmp_path / "off").mkdir()
    Site(memory, tmp_path / "on", registers=True).talk(register)
    Site(memory, tmp_path / "off").talk(refused)


def test_a_host_that_needs_more_is_told_what(site: Site) -> None:
    """With every scope that the call needs; a plain token is told by the tool, as before."""

    async def conversation(client: httpx.AsyncClient) -> None:
        came = await agree(client, site.code(Right.READ))
        header = bearer((await redeem(client, came["code"])).json()["access_token"])
        for name, arguments, scopes in (
            ("remember", {"text": "x"}, "memory:read memory:write"),
            ("recall", {"query": "x", "mark_accessed": True}, "memory:read memory:write"),
            ("forget", {"ids": ["x"], "erase": True}, "memory:read memory:write memory:admin"),
        ):
            call = {"name": name, "arguments": arguments}
            answer = await mcp(client, "tools/call", call, header)
            assert answer.status_code == 403
            told = answer.headers["www-authenticate"]
            assert 'error="insufficient_scope"' in told
            assert f'scope="{scopes}"' in told
            assert f'resource_metadata="{URL}/.well-known/oauth-protected-resource/mcp"' in told
            plain = await mcp(client, "tools/call", call, site.callers.headers["read"])
            assert plain.status_code == 200
        call = {"name": "recall", "arguments": {"query": "x"}}
        assert (await mcp(client, "tools/call", call, header)).status_code == 200
        for odd in (
            b"[" * 100_000,
            b'{"method": "tools/call"}',
            b'{"method":"tools/call","params":7}',
        ):
            kind = {"Content-Type": "application/json", "Accept": "application/json"}
            answer = await client.post("/mcp", content=odd, headers=header | kind)
            assert 400 <= answer.status_code < 500
        assert (await mcp(client, "tools/list", {}, header)).status_code == 200

    site.talk(conversation)


def test_no_header_makes_a_url(site: Site) -> None:
    """What a request calls the server is not what the server calls itself."""

    async def conversation(client: httpx.AsyncClient) -> None:
        lies = {"Host": "localhost", "X-Forwarded-Host": "evil.example",
                "X-Forwarded-Proto": "https", "Forwarded": "host=evil.example"}  # fmt: skip
        for path in ("/.well-known/oauth-protected-resource/mcp",
                     "/.well-known/oauth-authorization-server"):  # fmt: skip
            told = (await client.get(path, headers=lies)).text
            assert "evil.example" not in told
            assert "localhost" not in told

    site.talk(conversation)


def test_a_damaged_file_is_no_way_in(site: Site, tmp_path: Path) -> None:
    """It is an error of the server, which tells nothing of it."""
    header = bearer("bta_" + "x" * 43)
    code, old = site.code(), "btr_x.0.y"
    (tmp_path / "oauth" / "connections.json").write_text("{")

    async def conversation(client: httpx.AsyncClient) -> None:
        told = asking() | {"code": code, "decision": "allow"}
        for answer in (
            await client.get("/v1/stats", headers=header),
            await client.post("/authorize", data=told),
            await client.post("/token", data={"grant_type": "refresh_token", "refresh_token": old}),
        ):
            assert answer.status_code in (500, 503)
            assert str(tmp_path) not in answer.text

    site.talk(conversation)


def test_the_official_client_is_known_by_its_document(
    site: Site, documents: dict[str, Any]
) -> None:
    """It registers nowhere: the URL of its metadata is its id; the next time nobody is asked."""
    import httpx2  # what the official client is built on

    documents[HOST_ID]["redirect_uris"].append(REDIRECT)

    async def conversation(client: httpx.AsyncClient) -> None:
        async def accept(link: str) -> str:
            page = await client.get(link)
            told = {**fields_of(page.text), "code": site.code(), "decision": "allow"}
            answer = await client.post("/authorize", data=told)
            return answer.headers["location"]

        async def work(connected: Any) -> list[str]:
            return [tool.name for tool in (await connected.list_tools()).tools]

        transport = httpx2.ASGITransport(site.app, client=("127.0.0.1", 50_000))
        host = Host(f"{URL}/mcp", accept, transport=transport, client_metadata_url=HOST_ID)
        assert "remember" in await host.run(work)
        assert host.storage.client_info.client_id == HOST_ID
        before = host.storage.tokens
        assert "remember" in await host.run(work)
        assert len(host.asked) == 1
        assert host.storage.tokens == before

    site.talk(conversation)
