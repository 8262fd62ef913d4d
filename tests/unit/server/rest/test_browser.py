"""Sessions of browsers: who gets one, how long it lasts, and from which pages it counts."""

from __future__ import annotations

from pathlib import Path
from queue import Queue
from typing import Any
from urllib.parse import urlsplit
from urllib.request import url2pathname

import httpx
import pytest

from bethink import Memory
from bethink.access.policy import Principal, Right
from bethink.access.tokens import TokenStore
from bethink.server.mcp.manifest import ServerManifest
from bethink.server.rest import browser
from bethink.server.rest.browser import PAGE_POLICY, BrowserSessions, Started
from bethink.server.tools import TOOLS
from deferred import Deferred
from rows import each_row
from server_app import SPACE, Callers, OpenMemoryLoader, make_guard, talk

served = Deferred("bethink.server.rest.app")

READER = Principal("inspector", Right.READ)
OWN_PAGE = {"sec-fetch-site": "same-origin"}


class Clock:
    """Seconds that pass when a test says so."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


def _app(memory: Memory, callers: Callers, sessions: BrowserSessions) -> Any:
    door = make_guard(callers, require_token=True)
    return served.make_app(ServerManifest(TOOLS), OpenMemoryLoader(memory), door, sessions=sessions)


async def _sign_in(client: httpx.AsyncClient, **how: str) -> httpx.Response:
    answer = await client.post("/v1/session", json=how, headers=OWN_PAGE)
    client.cookies.clear()
    return answer


def _cookie(answer: httpx.Response) -> dict[str, str]:
    """What the page sends with each request: the cookie, and the key that it keeps."""
    cookie = answer.headers["set-cookie"].partition(";")[0]
    return {"cookie": cookie, "x-bethink-page": answer.json()["page_key"]}


def _headers(started: Started, port: int = 8765) -> list[tuple[bytes, bytes]]:
    return [
        (b"host", f"127.0.0.1:{port}".encode()),
        (b"cookie", f"other=1; bethink_8765={started.cookie}".encode()),
        (b"x-bethink-page", started.page_key.encode()),
    ]


def _start(sessions: BrowserSessions) -> Started:
    started = sessions.start_with_ticket(sessions.issue_ticket(READER))
    assert started is not None
    return started


def test_a_ticket_works_once_and_not_for_long(tmp_path: Path) -> None:
    """A second use, a late use and a guess start nothing."""
    clock = Clock()
    sessions = BrowserSessions(TokenStore(tmp_path), SPACE, clock)
    ticket, late = sessions.issue_ticket(READER), sessions.issue_ticket(READER)

    assert sessions.start_with_ticket(ticket) is not None
    assert sessions.start_with_ticket(ticket) is None
    assert sessions.start_with_ticket("A" * 43) is None
    clock.now += browser.TICKET_S
    assert sessions.start_with_ticket(late) is None


def test_a_session_lasts_while_it_is_used(tmp_path: Path) -> None:
    """Every request prolongs it; an idle one ends, and each one after a day."""
    clock = Clock()
    sessions = BrowserSessions(TokenStore(tmp_path), SPACE, clock)
    idle, started = _start(sessions), _start(sessions)

    while clock.now + browser.IDLE_S - 1 < browser.SESSION_S:
        clock.now += browser.IDLE_S - 1
        assert sessions.principal(_headers(started)) == started.principal
    assert sessions.principal(_headers(idle)) is None
    clock.now = browser.SESSION_S
    assert sessions.principal(_headers(started)) is None


def test_few_sessions_are_kept(tmp_path: Path) -> None:
    """The least used ones of the same caller give way; those of others stay."""
    callers = Callers(tmp_path)
    sessions = BrowserSessions(callers.tokens, SPACE)
    other = sessions.start_with_token(callers.secrets["read"])
    first, *more = (_start(sessions) for _ in range(4))
    assert sessions.principal(_headers(first)) is not None
    more += [_start(sessions) for _ in range(browser._MAX_SESSIONS_EACH - 2)]

    assert other is not None
    assert sessions.principal(_headers(other)) is not None
    kept = [one for one in more if sessions.principal(_headers(one)) is not None]
    assert (sessions.principal(_headers(first)), kept) == (first.principal, more[2:])
    for _ in range(browser._MAX_TICKETS + 1):
        last = sessions.issue_ticket(READER)
    assert len(sessions._tickets) == browser._MAX_TICKETS
    assert sessions.start_with_ticket(last) is not None


def test_a_cookie_belongs_to_a_port(tmp_path: Path) -> None:
    """Browsers send cookies to every port of a host; another server's cookie is not ours."""
    sessions = BrowserSessions(TokenStore(tmp_path), SPACE)
    started = _start(sessions)

    assert sessions.principal(_headers(started)) == started.principal
    assert sessions.principal(_headers(started, port=8766)) is None
    assert sessions.principal([(b"host", b"127.0.0.1:8765")]) is None


def test_a_cookie_without_its_page_key_is_worth_nothing(memory: Memory, tmp_path: Path) -> None:
    """Another server of this machine may see the cookie; it reads, writes and ends nothing."""
    callers = Callers(tmp_path)
    sessions = BrowserSessions(callers.tokens, SPACE)

    async def conversation(client: httpx.AsyncClient) -> None:
        own = OWN_PAGE | _cookie(await _sign_in(client, ticket=sessions.issue_ticket(READER)))
        other = _cookie(await _sign_in(client, ticket=sessions.issue_ticket(READER)))
        for key in (None, "", "A" * 43, other["x-bethink-page"]):
            stolen = {name: own[name] for name in ("sec-fetch-site", "cookie")}
            stolen |= {} if key is None else {"x-bethink-page": key}
            assert (await client.get("/v1/stats", headers=stolen)).status_code == 401
            ended = await client.request("DELETE", "/v1/session", headers=stolen)
            assert ended.json() == {"ended": False}
            seen = (await client.get("/v1/session", headers=stolen)).json()
            assert (seen["scope"], seen["browser"], "page_key" in seen) == ("anyone", False, False)
        assert (await client.get("/v1/stats", headers=own)).status_code == 200
        assert own["x-bethink-page"] not in repr(vars(sessions))

    talk(_app(memory, callers, sessions), conversation)


def test_signing_in_gives_a_cookie_with_the_rights_of_the_ticket(
    memory: Memory, tmp_path: Path
) -> None:
    """It cannot be read by scripts nor sent by other sites, and may do what the ticket may."""
    callers = Callers(tmp_path)
    sessions = BrowserSessions(callers.tokens, SPACE)

    async def conversation(client: httpx.AsyncClient) -> None:
        before = (await client.get("/v1/session")).json()
        assert (before["scope"], before["space"]) == ("anyone", None)
        assert (await client.get("/v1/memories")).status_code == 401
        answer = await _sign_in(client, ticket=sessions.issue_ticket(READER))
        assert answer.json()["scope"] == "read"
        told = answer.headers["set-cookie"]
        assert "; HttpOnly" in told
        assert "; SameSite=Strict" in told
        own = OWN_PAGE | _cookie(answer)
        assert (await client.get("/v1/memories", headers=own)).status_code == 200
        refused = await client.post("/v1/memories", json={"text": "no"}, headers=own)
        assert refused.status_code == 403
        assert (await client.request("DELETE", "/v1/session", headers=own)).json()["ended"]
        assert (await client.get("/v1/memories", headers=own)).status_code == 401

    talk(_app(memory, callers, sessions), conversation)


@each_row(
    ("headers", "reads", "writes"),
    [
        ({"sec-fetch-site": "same-origin"}, 200, 200),
        ({"sec-fetch-site": "none"}, 200, 401),  # typed or clicked outside a page
        ({"sec-fetch-site": "same-site"}, 403, 403),  # another port of this host
        ({"sec-fetch-site": "cross-site"}, 403, 403),
        ({"origin": "http://127.0.0.1:8765"}, 200, 200),  # a browser without Sec-Fetch-Site
        ({"origin": "http://127.0.0.1:3000"}, 403, 403),
        ({"origin": "null"}, 403, 403),
        ({}, 200, 401),
    ],
)
def test_a_session_counts_only_for_our_own_page(
    memory: Memory, tmp_path: Path, headers: dict[str, str], reads: int, writes: int
) -> None:
    """Whatever page sends the cookie along: no other one can use it to write."""
    callers = Callers(tmp_path)
    sessions = BrowserSessions(callers.tokens, SPACE)

    async def conversation(client: httpx.AsyncClient) -> None:
        ticket = sessions.issue_ticket(READER._replace(right=Right.ADMIN))
        own = headers | _cookie(await _sign_in(client, ticket=ticket))
        assert (await client.get("/v1/stats", headers=own)).status_code == reads
        stored = await client.post("/v1/memories", json={"text": "A heron"}, headers=own)
        assert stored.status_code == writes

    talk(_app(memory, callers, sessions), conversation)


def test_a_session_by_token_ends_with_the_token(memory: Memory, tmp_path: Path) -> None:
    """It has the token's scope, and a revoked token has no sessions."""
    callers = Callers(tmp_path)
    sessions = BrowserSessions(callers.tokens, SPACE)

    async def conversation(client: httpx.AsyncClient) -> None:
        for name in ("expired", "elsewhere", "revoked", "unknown"):
            refused = await _sign_in(client, token=callers.secrets[name])
            assert (refused.status_code, "set-cookie" in refused.headers) == (403, False)
        answer = await _sign_in(client, token=callers.secrets["write"])
        assert answer.json()["scope"] == "write"
        own = OWN_PAGE | _cookie(answer)
        assert (await client.get("/v1/stats", headers=own)).status_code == 200
        assert callers.secrets["write"] not in repr(vars(sessions))
        callers.tokens.revoke("write")
        assert (await client.get("/v1/stats", headers=own)).status_code == 401

    talk(_app(memory, callers, sessions), conversation)


def test_the_page_is_for_anybody_and_strict(memory: Memory, tmp_path: Path) -> None:
    """Its policy allows nothing inline and nothing from elsewhere; hashed files never change."""
    callers = Callers(tmp_path)

    async def conversation(client: httpx.AsyncClient) -> None:
        for path in ("/ui", "/ui/ask", "/ui/memories/any.thing/x", "/login"):
            answer = await client.get(path)
            assert answer.headers["content-security-policy"] == PAGE_POLICY
            assert answer.headers["cache-control"] == "no-cache"
            assert answer.headers["x-content-type-options"] == "nosniff"
        page = (await client.get("/ui")).text
        assert "<style" not in page
        assert "<script>" not in page
        assert "http" not in page.replace("http-equiv", "")
        for name in (part.partition('"')[0] for part in page.split("/ui/assets/")[1:]):
            file = await client.get(f"/ui/assets/{name}")
            assert file.status_code == 200
            assert "immutable" in file.headers["cache-control"]
        for path in ("/ui/assets/nothing.js", "/ui/assets/..%2f..%2f__init__.py", "/ui/x.py"):
            assert (await client.get(path)).status_code == 404

    talk(_app(memory, callers, BrowserSessions(callers.tokens, SPACE)), conversation)


VISIT = {"sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate", "sec-fetch-dest": "document"}


def test_a_link_in_another_page_opens_the_page_and_nothing_else(
    memory: Memory, tmp_path: Path
) -> None:
    """A file or a mail may lead to a view; it cannot frame it, load it or reach what is stored."""
    callers = Callers(tmp_path)
    sessions = BrowserSessions(callers.tokens, SPACE)

    async def conversation(client: httpx.AsyncClient) -> None:
        own = _cookie(await _sign_in(client, ticket=sessions.issue_ticket(READER)))
        for path in ("/login", "/ui", "/ui/memories/any"):
            assert (await client.get(path, headers=VISIT)).status_code == 200
        for path in ("/v1/stats", "/v1/memories", "/openapi.json"):
            assert (await client.get(path, headers=VISIT | own)).status_code == 403
        for other in ({"sec-fetch-dest": "iframe"}, {"sec-fetch-mode": "no-cors"}):
            assert (await client.get("/ui", headers=VISIT | other)).status_code == 403
        foreign = VISIT | {"origin": "https://evil.example"}
        assert (await client.get("/ui", headers=foreign)).status_code == 403
        login = await client.post("/v1/session", json={"ticket": "A"}, headers=VISIT)
        assert login.status_code == 403

    talk(_app(memory, callers, sessions), conversation)


@each_row("body", [{}, {"ticket": "a", "token": "b"}, {"ticket": 1}, {"name": "x"}, {"token": "ä"}])
def test_a_login_that_makes_no_sense_is_refused(
    memory: Memory, tmp_path: Path, body: dict[str, Any]
) -> None:
    """With a sentence, and without a cookie."""
    callers = Callers(tmp_path)

    async def conversation(client: httpx.AsyncClient) -> None:
        answer = await client.post("/v1/session", json=body, headers=OWN_PAGE)
        assert (answer.status_code, "set-cookie" in answer.headers) == (422, False)

    talk(_app(memory, callers, BrowserSessions(callers.tokens, SPACE)), conversation)


def test_a_browser_is_opened_with_a_private_file(monkeypatch: pytest.MonkeyPatch) -> None:
    """The link is in the file, not in the arguments of a program; afterwards the file is gone."""
    opened: Queue[str] = Queue()
    monkeypatch.setattr("webbrowser.open", opened.put)
    link = "http://127.0.0.1:8766/login#secret"

    with browser.open_browser(link):
        address = opened.get(timeout=60)
        file = Path(url2pathname(urlsplit(address).path))
        assert "secret" not in address
        assert link in file.read_text(encoding="utf-8")
        assert file.parent.stat().st_mode & 0o077 == 0
    assert not file.exists()
