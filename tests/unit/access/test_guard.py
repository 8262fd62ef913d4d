"""The guard's limits: how much, how often, how many at once, how slowly."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest

from bethink.access.guard import MAX_BODY_BYTES, Guard, GuardConfig, make_guard_config
from bethink.access.hosts import Address
from bethink.access.policy import Principal, Right, principal_of
from bethink.errors import BadSetting
from rows import each_row
from server_app import HERE, URL, Callers, make_guard


async def echo(scope: Any, receive: Any, send: Any) -> None:
    """Says who asks and how much they sent."""
    body = (await receive()).get("body", b"")
    said = f"{principal_of(scope).name} {len(body)}".encode()
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": said})


@pytest.fixture
def callers(tmp_path: Path) -> Callers:
    return Callers(tmp_path)


def client_of(door: GuardConfig, app: Any = echo) -> httpx.AsyncClient:
    transport = httpx.ASGITransport(Guard(app, door), client=("127.0.0.1", 50_000))
    return httpx.AsyncClient(transport=transport, base_url=URL)


def waiting(free: asyncio.Event) -> Any:
    """An application that answers under /slow only when it is let."""

    async def app(scope: Any, receive: Any, send: Any) -> None:
        if scope["path"] == "/slow":
            await free.wait()
        await echo(scope, receive, send)

    return app


async def refused_of(asked: list[asyncio.Task[httpx.Response]], count: int) -> None:
    """Waits until so many have been answered: while the others wait, by a refusal."""
    left = set(asked)
    while len(asked) - len(left) < count:
        _, left = await asyncio.wait(left, return_when=asyncio.FIRST_COMPLETED)


def run(work: Any) -> Any:
    return asyncio.run(work)


def test_bodies_have_a_limit(callers: Callers) -> None:
    """To the byte; announced, or found out while reading."""

    async def pieces(size: int) -> AsyncIterator[bytes]:
        for _ in range(size // 65_536):
            yield b"x" * 65_536
        yield b"x" * (size % 65_536)

    async def work() -> None:
        async with client_of(make_guard(callers)) as client:
            fits = await client.post("/", content=b"x" * MAX_BODY_BYTES)
            assert fits.text == f"loopback {MAX_BODY_BYTES}"
            for content in (
                b"x" * (MAX_BODY_BYTES + 1),
                pieces(MAX_BODY_BYTES + 1),
                pieces(MAX_BODY_BYTES * 3),
            ):
                answer = await client.post("/", content=content)
                assert answer.status_code == 413
                assert answer.json()["error"]["kind"] == "too_large"
            for length in ("9" * 30, "-1", "x", str(2**63)):
                headers = {"Content-Length": length}
                assert (await client.post("/", headers=headers)).status_code == 413

    run(work())


def told(headers: list[tuple[bytes, bytes]]) -> dict[str, Any]:
    """A request that is refused for its Host alone."""
    return {
        "type": "http", "method": "POST", "path": "/", "query_string": b"",
        "client": ("127.0.0.1", 1), "headers": [(b"host", b"evil.example"), *headers],
    }  # fmt: skip


@each_row(
    ("headers", "parts"),
    [
        ([], 3),
        ([(b"content-length", b"3")], 3),
        ([(b"content-length", b"99999999999")], 0),
        ([(b"content-length", b"3"), (b"expect", b"100-continue")], 0),
    ],
)
def test_who_is_refused_is_heard_out(
    callers: Callers, headers: list[tuple[bytes, bytes]], parts: int
) -> None:
    """Where that is not too much, and where they do not wait to be told to go on."""
    waiting = [b"1", b"2", b"3"]
    log: list[str] = []

    async def receive() -> Any:
        log.append("heard")
        body = waiting.pop(0)
        return {"type": "http.request", "body": body, "more_body": bool(waiting)}

    async def send(message: Any) -> None:
        log.append(message["type"])

    run(Guard(echo, make_guard(callers))(told(headers), receive, send))

    assert log == ["heard"] * parts + ["http.response.start", "http.response.body"]


def test_who_has_said_everything_is_answered_at_once(callers: Callers) -> None:
    """A body whose last part is too much has no more to be heard out."""
    sent: list[Any] = []
    parts = [b"x" * MAX_BODY_BYTES, b"x"]

    async def receive() -> Any:
        body = parts.pop(0)
        return {"type": "http.request", "body": body, "more_body": bool(parts)}

    async def send(message: Any) -> None:
        sent.append(message)

    scope = told([]) | {"headers": [(b"host", HERE.netloc.encode())]}
    run(Guard(echo, make_guard(callers))(scope, receive, send))

    assert sent[0]["status"] == 413


def test_slow_bodies_are_given_up(callers: Callers) -> None:
    """With 408; and a client that goes away in the middle leaves nothing behind."""
    sent: list[Any] = []

    async def never() -> Any:
        await asyncio.sleep(60)

    async def half() -> Any:
        return gone.pop(0)

    async def send(message: Any) -> None:
        sent.append(message)

    scope = {"type": "http", "method": "POST", "path": "/", "client": ("127.0.0.1", 1),
             "headers": [(b"host", b"localhost")]}  # fmt: skip
    guard = Guard(echo, replace(make_guard(callers), body_timeout_s=0.05))
    gone = [
        {"type": "http.request", "body": b"half", "more_body": True},
        {"type": "http.disconnect"},
    ]
    run(guard(dict(scope), never, send))
    assert sent[0]["status"] == 408

    sent.clear()
    run(guard(dict(scope), half, send))
    assert sent == []


def test_tries_are_counted_by_token_and_by_address(callers: Callers) -> None:
    """429 says when to come back; a wrong token is a try of its address's."""
    door = make_guard(callers, rate=3)

    async def work() -> None:
        async with client_of(door) as client:
            asked = [(await client.get("/")).status_code for _ in range(4)]
            assert asked == [200, 200, 200, 429]
            late = await client.get("/")
            assert 1 <= int(late.headers["retry-after"]) <= 20
            assert late.json()["error"]["kind"] == "too_often"
            assert (await client.get("/", headers=callers.headers["read"])).status_code == 200
            assert (await client.get("/", headers=callers.headers["unknown"])).status_code == 429
        async with client_of(door) as client:
            wrong = callers.headers["unknown"]
            tries = [(await client.get("/", headers=wrong)).status_code for _ in range(4)]
            assert tries == [401, 401, 401, 429]

    run(work())


def test_addresses_of_one_network_share_their_tries(callers: Callers) -> None:
    """Version 6 gives everybody more addresses than anybody could count."""
    guard = Guard(echo, make_guard(callers, rate=1))

    async def ask(address: str) -> int:
        transport = httpx.ASGITransport(guard, client=(address, 1))
        async with httpx.AsyncClient(transport=transport, base_url=URL) as client:
            return (await client.get("/")).status_code

    async def work() -> list[int]:
        return [await ask(one) for one in ("2001:db8::1", "2001:db8::2", "2001:db8:1::1", "?")]

    assert run(work()) == [200, 429, 200, 200]


def test_only_so_many_are_served_at_once(callers: Callers) -> None:
    """The others are told to try again; who only listens does not count."""
    door = replace(
        make_guard(callers),
        max_concurrent=2,
        count_concurrency=lambda scope: scope["path"] != "/stream",
    )

    async def work() -> None:
        free = asyncio.Event()
        async with client_of(door, waiting(free)) as client:
            asked = [asyncio.create_task(client.get("/slow")) for _ in range(4)]
            await refused_of(asked, 2)
            assert (await client.get("/stream")).status_code == 200
            free.set()
            answers = await asyncio.gather(*asked)
            assert sorted(one.status_code for one in answers) == [200, 200, 503, 503]
            assert (await client.get("/")).status_code == 200

    run(work())


def test_who_looks_after_the_server_is_always_answered(callers: Callers) -> None:
    """However much others ask; but nobody guesses tokens there uncounted."""
    open_to_all = frozenset({"/health"})
    door = replace(
        make_guard(callers, rate=2),
        max_concurrent=1,
        max_concurrent_per_caller=1,
        public_paths=open_to_all,
    )

    async def work() -> None:
        free = asyncio.Event()
        async with client_of(door, waiting(free)) as client:
            asked = asyncio.create_task(client.get("/slow"))
            await asyncio.sleep(0.05)
            assert (await client.get("/")).status_code == 503
            assert (await client.get("/")).status_code == 429
            for _ in range(5):
                assert (await client.get("/health")).status_code == 200
            # Nor does anybody fill our memory there, where nobody counts.
            assert (await client.post("/health", content=b"x")).status_code == 413
            free.set()
            assert (await asked).status_code == 200
        guard = Guard(echo, door)
        transport = httpx.ASGITransport(guard, client=("127.0.0.1", 1))
        async with httpx.AsyncClient(transport=transport, base_url=URL) as client:
            wrong = callers.headers["unknown"]
            tries = [(await client.get("/health", headers=wrong)).status_code for _ in range(4)]
            assert tries == [401, 401, 429, 429]

    run(work())


def test_nobody_takes_all_the_room(callers: Callers) -> None:
    """One caller has only so much under way, however slowly it comes; others have theirs."""
    door = replace(make_guard(callers), max_concurrent_per_caller=2)

    async def work() -> None:
        free = asyncio.Event()
        async with client_of(door, waiting(free)) as client:
            asked = [asyncio.create_task(client.get("/slow")) for _ in range(3)]
            await refused_of(asked, 1)
            other = await client.get("/", headers=callers.headers["read"])
            free.set()
            answers = await asyncio.gather(*asked)
            assert sorted(one.status_code for one in answers) == [200, 200, 503]
            assert other.status_code == 200

    run(work())


def test_heads_have_a_limit(callers: Callers) -> None:
    """Addresses and headers together."""

    async def work() -> None:
        async with client_of(make_guard(callers)) as client:
            assert (await client.get("/", headers={"X-Filler": "x" * 15_000})).status_code == 200
            for path, filler in (("/", "x" * 17_000), ("/?q=" + "x" * 17_000, "")):
                answer = await client.get(path, headers={"X-Filler": filler})
                assert answer.status_code == 431

    run(work())


def test_a_spoilt_file_of_tokens_lets_nobody_in(callers: Callers) -> None:
    """It is told as trouble of the server's, and the log says which."""

    async def work() -> None:
        async with client_of(make_guard(callers)) as client:
            callers.tokens.path.write_text("spoilt")
            answer = await client.get("/", headers=callers.headers["admin"])
            assert (answer.status_code, answer.json()["error"]["kind"]) == (503, "no_tokens")
            assert str(callers.tokens.path) not in answer.text

    run(work())


def test_a_spoilt_file_of_people_lets_nobody_in(callers: Callers) -> None:
    """Also a caller whose token another server has verified: their limits cannot be read."""
    ben = Principal("ben", Right.READ, key="ben", person="p1")

    async def work() -> None:
        async with client_of(make_guard(callers, verify=lambda _: ben)) as client:
            headers = {"Authorization": "Bearer of-elsewhere"}
            assert (await client.get("/", headers=headers)).status_code == 200
            callers.tokens.people.path.write_text("spoilt")
            answer = await client.get("/", headers=headers)
            assert (answer.status_code, answer.json()["error"]["kind"]) == (503, "no_tokens")

    run(work())


def test_what_is_no_request_is_turned_away(callers: Callers) -> None:
    """A web socket has no business here, whoever opens it."""
    sent: list[Any] = []

    async def send(message: Any) -> None:
        sent.append(message)

    run(Guard(echo, make_guard(callers))({"type": "websocket", "headers": []}, None, send))  # type: ignore[arg-type]

    assert sent == [{"type": "websocket.close", "code": 1008}]


def test_two_tokens_are_none(callers: Callers) -> None:
    """And a token is looked for in its header alone."""

    async def work() -> None:
        async with client_of(make_guard(callers, require_token=True)) as client:
            secret = callers.secrets["admin"]
            twice = [("Authorization", f"Bearer {secret}")] * 2
            assert (await client.get("/", headers=twice)).status_code == 401
            for place in (f"/?token={secret}", f"/?access_token={secret}"):
                assert (await client.get(place)).status_code == 401
            cookie = {"Cookie": f"token={secret}"}
            assert (await client.get("/", headers=cookie)).status_code == 401
            shown = {"authorization": f"bearer {secret}"}
            assert (await client.get("/", headers=shown)).text == "admin 0"

    run(work())


def test_a_refusal_says_how_to_come_in(callers: Callers) -> None:
    """By the standard's own header."""

    async def work() -> None:
        async with client_of(make_guard(callers, require_token=True)) as client:
            none = await client.get("/")
            assert none.headers["www-authenticate"] == 'Bearer realm="bethink"'
            wrong = await client.get("/", headers=callers.headers["expired"])
            assert 'error="invalid_token"' in wrong.headers["www-authenticate"]
            same = [
                (await client.get("/", headers=callers.headers[name])).text
                for name in ("unknown", "expired", "elsewhere", "revoked", "cut")
            ]
            assert len(set(same)) == 1

    run(work())


@each_row("host", ["0.0.0.0", "::", "192.0.2.1", "example.org"])
def test_a_door_to_the_world_needs_a_lock(tmp_path: Path, host: str) -> None:
    """No token, or none that opens this space now: no server."""
    empty = Callers(tmp_path).tokens
    for name in ("read", "write", "admin"):
        empty.revoke(name)

    with pytest.raises(BadSetting, match="reachable from other machines"):
        make_guard_config(Address(host, 80), "memory", empty)
    with pytest.raises(BadSetting, match="no token"):
        make_guard_config(HERE, "memory", empty, require_token=True)
    assert make_guard_config(HERE, "memory", empty).trust_loopback
    assert not make_guard_config(Address(host, 80), "another", empty).trust_loopback
