"""Where a door's limits begin and end: to the request, to the bit, to the second."""

from __future__ import annotations

import asyncio
import os
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import httpx
import pytest

from bethink.access.guard import Guard, TokenBucketLimiter
from bethink.access.policy import Right
from bethink.access.tokens import TokenStore
from bethink.errors import BadSetting
from rows import each_row
from server_app import URL, Callers, make_guard


async def well(scope: object, receive: object, send: object) -> None:
    """An application that is always well."""
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": b"well"})


@pytest.mark.skipif(os.name != "posix", reason="modes mean nothing there")
@each_row("mode", [0o620, 0o602, 0o622, 0o660, 0o666, 0o770, 0o777])
def test_a_file_of_tokens_that_others_can_write_to_is_refused(tmp_path: Path, mode: int) -> None:
    """Group and world alike: who can write there can let themselves in."""
    TokenStore(tmp_path).create("laptop", Right.READ, ("work",))
    path = TokenStore(tmp_path).path
    path.chmod(mode)

    with pytest.raises(BadSetting, match="other users can write") as refused:
        TokenStore(tmp_path).all()
    assert refused.value.remedy == f"chmod 600 {path}"


@pytest.mark.skipif(os.name != "posix", reason="modes mean nothing there")
@each_row("mode", [0o600, 0o400, 0o640, 0o644, 0o755])
def test_a_file_of_tokens_that_others_can_only_read_is_used(tmp_path: Path, mode: int) -> None:
    """It holds hashes alone."""
    secret = TokenStore(tmp_path).create("laptop", Right.READ, ("work",))
    TokenStore(tmp_path).path.chmod(mode)

    assert (
        TokenStore(tmp_path).authenticate(secret, "work", datetime(2026, 3, 2, tzinfo=UTC))
        is not None
    )


@each_row("minutes", [1, 3])
@each_row("a_minute", [60, 120, 30])
def test_a_bucket_fills_by_its_rate_and_no_faster(a_minute: int, minutes: int) -> None:
    """Who asks all the time gets what was in it, and then exactly so many a minute."""
    now = [0.0]
    buckets = TokenBucketLimiter(a_minute, lambda: now[0])
    assert sum(buckets.acquire("a") == 0 for _ in range(2 * a_minute)) == a_minute

    served = 0
    for _ in range(minutes * 60 * 8):
        now[0] += 0.125  # a power of two, so that the sums are exact
        served += buckets.acquire("a") == 0

    assert served == minutes * a_minute


def test_a_bucket_holds_a_minute_and_no_more() -> None:
    """However long nobody asked."""
    now = [0.0]
    buckets = TokenBucketLimiter(5, lambda: now[0])
    buckets.acquire("a")
    now[0] = 86_400.0

    assert [buckets.acquire("a") for _ in range(6)] == [0, 0, 0, 0, 0, 12]


def test_a_token_counts_where_nobody_else_does(tmp_path: Path) -> None:
    """Who asks without one whether the server is well is never turned away; who shows one
    there is counted as anywhere, so that nobody finds out a token by trying."""
    callers = Callers(tmp_path)
    door = replace(make_guard(callers, rate=2), public_paths=frozenset({"/health"}))

    async def asked(headers: dict[str, str]) -> list[int]:
        transport = httpx.ASGITransport(Guard(well, door), client=("127.0.0.1", 1))
        async with httpx.AsyncClient(transport=transport, base_url=URL) as client:
            return [(await client.get("/health", headers=headers)).status_code for _ in range(4)]

    assert asyncio.run(asked({})) == [200, 200, 200, 200]
    assert asyncio.run(asked(callers.headers["read"])) == [200, 200, 429, 429]


@each_row("caller", ["read", "unknown", "none"])
@each_row("host", ["127.0.0.1:8765", "evil.example"])
def test_every_answer_tells_a_browser_to_be_careful(tmp_path: Path, caller: str, host: str) -> None:
    """To guess no type, keep nothing, tell nobody where it came from and load nothing:
    whether somebody was let in or not."""
    callers = Callers(tmp_path)

    async def asked() -> httpx.Response:
        transport = httpx.ASGITransport(Guard(well, make_guard(callers)), client=("127.0.0.1", 1))
        async with httpx.AsyncClient(transport=transport, base_url=URL) as client:
            return await client.get("/", headers={**callers.headers[caller], "Host": host})

    told = asyncio.run(asked()).headers

    assert told["x-content-type-options"] == "nosniff"
    assert told["cache-control"] == "no-store"
    assert told["referrer-policy"] == "no-referrer"
    assert told["content-security-policy"].startswith("default-src 'none'")


@pytest.mark.parametrize("secret", ["bt_\ud800", "bt_é", "x" * 100_000])
def test_a_secret_that_no_token_can_have_is_refused_without_an_error(
    tmp_path: Path, secret: str
) -> None:
    """Characters outside ASCII, lone surrogates and endless secrets authenticate nobody."""
    store = TokenStore(tmp_path)

    assert store.authenticate(secret, "main", datetime(2026, 1, 1, tzinfo=UTC)) is None
