"""Names and origins: a page that talks a browser into asking gets nothing, on any route."""

from __future__ import annotations

from pathlib import Path

import httpx
import pytest

from bethink import Memory
from bethink.access.hosts import Address
from bethink.server.rest.routes import PLAIN_ROUTES, TOOL_ROUTES
from server_app import Callers, make_guard, make_test_app, talk
from thorough import share

PORT = 8765
ALLOWED_HOST, ALLOWED_ORIGIN = "memory.example.org", "https://notes.example.org"
# The host as a client sends it, and whether a server for all addresses may answer to it.
HOSTS = {
    f"127.0.0.1:{PORT}": True,
    f"localhost:{PORT}": True,
    f"[::1]:{PORT}": True,
    "localhost": True,
    ALLOWED_HOST: True,
    f"MEMORY.example.org:{PORT}": True,
    "evil.example": False,
    f"localhost.evil.example:{PORT}": False,
    "127.0.0.1.evil.example": False,
    f"0.0.0.0:{PORT}": False,
    "localhost:80:80": False,
    "": False,
}
SAME = "http://HOST"
ORIGINS: dict[str | None, bool] = {
    None: True,
    SAME: True,
    "https://HOST": True,
    ALLOWED_ORIGIN: True,
    "null": False,
    "": False,
    "https://evil.example": False,
    "http://localhost:3000": False,
    "http://127.0.0.1": False,
    "https://notes.example.org.evil.example": False,
    "https://notes.example.org:8443": False,
    "file://": False,
}
ROUTES = sorted(
    {(way.method, way.path.replace("{id}", "x")) for way in TOOL_ROUTES}
    | {(plain.method, plain.path) for plain in PLAIN_ROUTES}
    | {("POST", "/mcp"), ("GET", "/mcp"), ("DELETE", "/mcp"), ("GET", "/nothing"), ("PUT", "/")}
)
BINDS = ("127.0.0.1", "::1", "0.0.0.0")


def expected(host: str, origin: str | None) -> int | None:
    """The guard's own answer, or None where it lets a request through."""
    if not HOSTS[host]:
        return 421
    return None if ORIGINS[origin] else 403


@pytest.mark.parametrize("bind", BINDS)
def test_every_route_minds_its_name_and_who_asks(memory: Memory, tmp_path: Path, bind: str) -> None:
    """Twelve hosts by twelve origins: 421 and 403 for the wrong ones, before anything else.

    Of three servers one is asked by each host and origin for each route; which one, turns.
    """
    callers = Callers(tmp_path)
    door = make_guard(
        callers, Address(bind, PORT), hosts=(ALLOWED_HOST,), origins=(ALLOWED_ORIGIN,)
    )
    app, deviations = make_test_app(memory, door), []
    assert (len(HOSTS), len(ORIGINS)) == (12, 12)

    async def conversation(client: httpx.AsyncClient) -> None:
        for turn, host in enumerate(HOSTS, BINDS.index(bind)):
            for number, origin in enumerate(ORIGINS, turn):
                headers = {"Host": host, **callers.headers["unknown"]}
                if origin is not None:
                    headers["Origin"] = origin.replace("HOST", host)
                for method, path in share(ROUTES, number, of=len(BINDS)):
                    answer = await client.request(method, path, headers=headers)
                    # Let through, it meets a token that nobody knows.
                    if answer.status_code != (expected(host, origin) or 401):
                        deviations.append((method, path, host, origin, answer.status_code))
                    assert answer.headers.get("access-control-allow-origin") in (
                        None, ALLOWED_ORIGIN
                    )  # fmt: skip
                    assert "set-cookie" not in answer.headers

    talk(app, conversation)

    assert deviations == []


def test_a_stranger_behind_a_proxy_is_no_neighbour(memory: Memory, tmp_path: Path) -> None:
    """What was passed on, or sent to another name than this machine's own, needs a token."""
    callers = Callers(tmp_path)
    app = make_test_app(memory, make_guard(callers, hosts=(ALLOWED_HOST,)))

    async def conversation(client: httpx.AsyncClient) -> None:
        assert (await client.get("/v1/stats")).status_code == 200
        for headers in (
            {"Host": ALLOWED_HOST},
            {"X-Forwarded-For": "203.0.113.9"},
            {"X-Forwarded-Proto": "https"},
            {"X-Forwarded-Server": "proxy"},
            {"CF-Connecting-IP": "203.0.113.9"},
            {"True-Client-IP": "203.0.113.9"},
            {"X-Original-Host": "memory.example.org"},
            {"Forwarded": "for=203.0.113.9"},
            {"X-Real-IP": "127.0.0.1"},
            {"Via": "1.1 proxy"},
        ):
            assert (await client.get("/v1/stats", headers=headers)).status_code == 401
            both = headers | callers.headers["read"]
            assert (await client.get("/v1/stats", headers=both)).status_code == 200

    talk(app, conversation)


def test_a_fetch_from_another_site_is_turned_away(memory: Memory, tmp_path: Path) -> None:
    """Even where the browser names no origin, as it does for an image."""
    app = make_test_app(memory, make_guard(Callers(tmp_path)))

    async def conversation(client: httpx.AsyncClient) -> None:
        for site, status in (("cross-site", 403), ("same-site", 403), ("same-origin", 200),
                             ("none", 200)):  # fmt: skip
            headers = {"Sec-Fetch-Site": site}
            assert (await client.get("/v1/stats", headers=headers)).status_code == status

    talk(app, conversation)


def test_a_form_cannot_write(memory: Memory, tmp_path: Path) -> None:
    """What a page can send without asking first is no JSON."""
    app = make_test_app(memory, make_guard(Callers(tmp_path)))

    async def conversation(client: httpx.AsyncClient) -> None:
        for media in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data", ""):
            headers = {"Content-Type": media}
            answer = await client.post("/v1/memories", content=b'{"text": "x"}', headers=headers)
            assert answer.status_code == 415

    talk(app, conversation)

    assert memory.stats()["memories"] == 0


def test_an_allowed_page_is_told_so(memory: Memory, tmp_path: Path) -> None:
    """By its own name and never by a star; before it asks, too."""
    app = make_test_app(memory, make_guard(Callers(tmp_path), origins=(ALLOWED_ORIGIN,)))
    asks = {"Access-Control-Request-Method": "POST"}

    async def conversation(client: httpx.AsyncClient) -> None:
        allowed = {"Origin": ALLOWED_ORIGIN}
        answer = await client.get("/v1/stats", headers=allowed)
        assert answer.headers["access-control-allow-origin"] == ALLOWED_ORIGIN
        assert "access-control-allow-credentials" not in answer.headers
        before = await client.options("/v1/recall", headers=allowed | asks)
        assert before.status_code == 204
        assert "authorization" in before.headers["access-control-allow-headers"]
        evil = await client.options("/v1/recall", headers={"Origin": "https://evil.example"} | asks)
        assert evil.status_code == 403

    talk(app, conversation)
