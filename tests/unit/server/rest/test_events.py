"""Changes as they happen: streams that tell no text, and webhooks that lose nothing."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from bethink import Memory
from bethink.access.webhooks import JournalReader, WebhookStore
from bethink.ports import Embedder
from bethink.server import events
from bethink.testing import FixedClock
from corpus import NOW
from server_app import SPACE, Callers, EventStream, alive, make_guard, make_test_app, open_stream

PATH = "/v1/events/stream"


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(events, "POLL_S", 0.01)


@pytest.fixture
def callers(tmp_path: Path) -> Callers:
    return Callers(tmp_path)


def follow(app: Any, conversation: Callable[[], Awaitable[Any]]) -> Any:
    async def run() -> Any:
        async with alive(app):
            return await conversation()

    return asyncio.run(run())


async def kinds(stream: EventStream, count: int) -> list[tuple[str, str | None]]:
    found = [await stream.next() for _ in range(count)]
    return [(one["event"], json.loads(one["data"]).get("item")) for one in found if one]


def test_a_stream_tells_kinds_and_ids_and_no_text(memory: Memory, callers: Callers) -> None:
    """Of what this process changes and of what another one does, from now on."""
    app = make_test_app(memory, make_guard(callers))
    memory.remember("Before anybody listened")

    async def conversation() -> None:
        async with open_stream(app, PATH, callers.headers["read"]) as stream:
            assert await kinds(stream, 1) == [("ready", None)]
            item = memory.remember("Releases are cut on Tuesdays", topic="plans").id
            memory.update(item, text="Releases are cut on Thursdays")
            memory.forget(item)
            heard = [await stream.next() for _ in range(3)]
        assert [one["event"] for one in heard if one] == ["stored", "revised", "ended"]
        for one in heard:
            assert one is not None
            assert json.loads(one["data"]).keys() == {"seq", "at", "kind", "item"}
            assert json.loads(one["data"])["item"] == item
            assert "Releases" not in str(one)
        assert stream.heads["content-type"].startswith("text/event-stream")
        assert stream.heads["cache-control"] == "no-store"

    follow(app, conversation)


def test_who_comes_back_misses_nothing(memory: Memory, callers: Callers) -> None:
    """And hears nothing twice, wherever the stream was cut; more than a page is no limit."""
    app = make_test_app(memory, make_guard(callers))

    async def conversation() -> None:
        async with open_stream(app, PATH, callers.headers["read"]) as stream:
            first = await stream.next()
        assert first is not None
        stored = [f"Note number {number} about the harbour" for number in range(250)]
        items = [one.id for one in memory.remember_many(stored)]
        heard: list[str] = []
        last = first["id"]
        for count in (3, 0, 240, 7):
            headers = callers.headers["read"] | {"Last-Event-ID": last}
            async with open_stream(app, PATH, headers) as stream:
                for _ in range(count):
                    event = await stream.next()
                    assert event is not None
                    last = event["id"]
                    heard.append(json.loads(event["data"])["item"])
        assert heard == items

    follow(app, conversation)


@pytest.mark.parametrize("cursor", ["nonsense", "7", "9-0123456789abcdef", "1-0123456789abcdef"])
def test_a_place_that_is_lost_is_told(memory: Memory, callers: Callers, cursor: str) -> None:
    """Instead of being guessed."""
    app = make_test_app(memory, make_guard(callers))
    memory.remember("Releases are cut on Tuesdays")

    async def conversation() -> None:
        headers = callers.headers["read"] | {"Last-Event-ID": cursor}
        async with open_stream(app, PATH, headers) as stream:
            assert await kinds(stream, 1) == [("reset", None)]

    follow(app, conversation)


@pytest.mark.parametrize(("hours", "told"), [(23, "stored"), (25, "reset")])
def test_a_day_is_replayed_and_no_more(
    embedder: Embedder, callers: Callers, hours: int, told: str
) -> None:
    """Counted from the first event that was missed: a quiet store needs no reset."""
    clock = FixedClock(NOW - timedelta(days=30))
    with Memory.open(":memory:", embedder=embedder, clock=clock) as memory:
        memory.remember("Very long ago")
        reader = JournalReader()
        reader.go_to_end(memory.store)
        clock.now = NOW - timedelta(hours=hours)
        memory.remember("Releases are cut on Tuesdays")
        clock.now = NOW
        app = make_test_app(memory, make_guard(callers))

        async def conversation() -> None:
            headers = callers.headers["read"] | {"Last-Event-ID": reader.cursor}
            async with open_stream(app, PATH, headers) as stream:
                assert [kind for kind, _ in await kinds(stream, 1)] == [told]

        follow(app, conversation)


def test_what_is_above_the_ceiling_wakes_nobody(memory: Memory, callers: Callers) -> None:
    """Numbers and cursors are those of a store without it."""
    app = make_test_app(memory, make_guard(callers))

    async def conversation() -> None:
        async with open_stream(app, PATH, callers.headers["read"]) as stream:
            await stream.next()
            memory.remember("The code of the safe is in the vault", classification=3)
            hidden = memory.remember("A second secret, of the harbour", classification=3).id
            memory.forget(hidden)
            await asyncio.sleep(0.2)
            seen = memory.remember("Releases are cut on Tuesdays").id
            event = await stream.next()
        assert event is not None
        assert json.loads(event["data"])["item"] == seen
        assert json.loads(event["data"])["seq"] == 1
        assert event["id"].startswith("1-")

    follow(app, conversation)


def test_a_memory_that_leaves_the_view_takes_no_event_along(
    memory: Memory, callers: Callers
) -> None:
    """Its lines go, all numbers shift, and the reader is told so."""
    app = make_test_app(memory, make_guard(callers))

    async def conversation() -> None:
        async with open_stream(app, PATH, callers.headers["read"]) as stream:
            await stream.next()
            first = memory.remember("The code of the safe is 1234 in the vault").id
            memory.remember("Releases are cut on Tuesdays")
            await kinds(stream, 2)
            memory.update(first, classification=3)
            assert await kinds(stream, 1) == [("reset", None)]
            third = memory.remember("The canteen opens at noon").id
            assert await kinds(stream, 1) == [("stored", third)]

    follow(app, conversation)


def test_a_revoked_token_ends_its_stream(memory: Memory, callers: Callers) -> None:
    """Before the next event, and without one."""
    app = make_test_app(memory, make_guard(callers, require_token=True))

    async def conversation() -> None:
        async with (
            open_stream(app, PATH, callers.headers["read"]) as stream,
            open_stream(app, PATH, callers.headers["write"]) as other,
        ):
            await stream.next()
            await other.next()
            callers.tokens.revoke("read")
            memory.remember("Releases are cut on Tuesdays")
            assert await stream.next() is None
            assert await kinds(other, 1) != []
        async with open_stream(app, PATH, callers.headers["read"]) as stream:
            assert await stream.next() is None
        assert stream.status == 401

    follow(app, conversation)


def test_streams_are_limited_and_given_back(memory: Memory, callers: Callers) -> None:
    """Each caller has a few, also of those that come at once; those that ended do not count."""
    app = make_test_app(memory, make_guard(callers))

    async def conversation() -> None:
        for _ in range(2):
            opened = [
                open_stream(app, PATH, callers.headers["read"])
                for _ in range(events.MAX_STREAMS_PER_CALLER)
            ]
            streams = [await one.__aenter__() for one in opened]
            assert all([await stream.next() for stream in streams])
            async with open_stream(app, PATH, callers.headers["read"]) as refused:
                assert await refused.next() is None
            assert refused.status == 503
            async with open_stream(app, PATH, callers.headers["write"]) as other:
                assert await other.next()
            for one in opened:
                await one.__aexit__(None, None, None)
        opened = [open_stream(app, PATH, callers.headers["read"]) for _ in range(20)]
        streams = await asyncio.gather(*(one.__aenter__() for one in opened))
        await asyncio.gather(*(stream.next() for stream in streams))
        limit = events.MAX_STREAMS_PER_CALLER
        assert sorted(stream.status for stream in streams) == [200] * limit + [503] * (20 - limit)
        for one in opened:
            await one.__aexit__(None, None, None)

    follow(app, conversation)


class Receiver:
    """A server that receives webhooks, and answers as it is told."""

    def __init__(self) -> None:
        self.got: list[tuple[dict[str, str], dict[str, Any]]] = []
        self.statuses: list[int] = []
        self.arrived = threading.Condition()

    def take(self, headers: dict[str, str], body: bytes) -> int:
        with self.arrived:
            self.got.append((headers, json.loads(body)))
            self.arrived.notify_all()
            return self.statuses.pop(0) if self.statuses else 204

    def wait(self, count: int) -> None:
        with self.arrived:
            assert self.arrived.wait_for(lambda: len(self.got) >= count, 60)


@contextmanager
def receiving() -> Iterator[tuple[Receiver, str]]:
    receiver = Receiver()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            sent = {name.lower(): value for name, value in self.headers.items()}
            self.send_response(receiver.take(sent, body))
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield receiver, f"http://127.0.0.1:{server.server_port}/hook"
        finally:
            server.shutdown()
            thread.join()


def test_a_webhook_gets_everything_in_order(
    memory: Memory, callers: Callers, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A refused message comes again with the same id, before any later one; nothing hidden."""
    monkeypatch.setattr("bethink.access.webhooks.BACKOFF_S", (0.01,) * 9)
    hooks, reader = WebhookStore(tmp_path), JournalReader()
    memory.remember("Before it was added")
    reader.go_to_end(memory.below(2).store)
    with receiving() as (receiver, url):
        hooks.add("all", url, SPACE, reader.cursor, kinds=(), private=True)
        hooks.add("gone", url, "another", reader.cursor, kinds=(), private=True)
        receiver.statuses = [500, 302, 204]
        door = make_guard(callers)
        app = make_test_app(memory, replace(door, space=SPACE), hooks=hooks)

        async def conversation() -> list[str]:
            memory.remember("The code of the safe is in the vault", classification=3)
            items = [memory.remember("Releases are cut on Tuesdays").id]
            items.append(memory.remember("The canteen opens at noon").id)
            await asyncio.to_thread(receiver.wait, 4)
            memory.forget(items[0])
            await asyncio.to_thread(receiver.wait, 5)
            return items

        items = follow(app, conversation)
    told = [(body["type"], body["data"]["item"]) for _, body in receiver.got]
    stored = [("memory.stored", item) for item in items]
    assert told == [stored[0]] * 3 + [stored[1], ("memory.ended", items[0])]
    ids = [headers["webhook-id"] for headers, _ in receiver.got]
    assert len({*ids[:3]}) == 1
    assert len({*ids}) == 3
    assert "Releases" not in str(receiver.got)
    assert {one.name: one.failures for one in hooks.all()} == {"all": 0, "gone": 0}


def test_a_webhook_goes_on_where_the_last_server_ended(
    memory: Memory, callers: Callers, tmp_path: Path
) -> None:
    """With the kinds that it asked for; one that was removed gets nothing more."""
    hooks, reader = WebhookStore(tmp_path), JournalReader()
    reader.go_to_end(memory.below(2).store)
    with receiving() as (receiver, url):
        hooks.add("ends", url, SPACE, reader.cursor, kinds=("ended",), private=True)
        item = memory.remember("Releases are cut on Tuesdays").id
        for count in (1, 2):
            memory.forget(item)
            reader.go_to_end(memory.below(2).store)
            app = make_test_app(memory, make_guard(callers), hooks=hooks)

            def wait(most: int = count, end: str = reader.cursor) -> None:
                receiver.wait(most)
                # A server that ends before it has kept the place tells a change twice.
                while hooks.all()[0].cursor != end:
                    time.sleep(0.01)

            async def conversation(wait: Callable[[], None] = wait) -> None:
                await asyncio.to_thread(wait)

            follow(app, conversation)
            memory.restore(item)
        hooks.remove("ends")
        memory.forget(item)

        async def pause() -> None:
            await asyncio.sleep(0.2)

        follow(make_test_app(memory, make_guard(callers), hooks=hooks), pause)
    assert [body["type"] for _, body in receiver.got] == ["memory.ended"] * 2


def test_a_damaged_file_of_webhooks_stops_no_server(
    memory: Memory, callers: Callers, tmp_path: Path
) -> None:
    """It is read again, and sending goes on once it is mended."""
    hooks, reader = WebhookStore(tmp_path), JournalReader()
    reader.go_to_end(memory.store)
    with receiving() as (receiver, url):
        hooks.add("one", url, SPACE, reader.cursor, kinds=(), private=True)
        whole = (tmp_path / "webhooks.json").read_bytes()
        (tmp_path / "webhooks.json").write_bytes(b"{")
        app = make_test_app(memory, make_guard(callers), hooks=hooks)

        async def conversation() -> None:
            memory.remember("Releases are cut on Tuesdays")
            await asyncio.sleep(0.1)
            assert not receiver.got
            (tmp_path / "webhooks.json").write_bytes(whole)
            await asyncio.to_thread(receiver.wait, 1)

        follow(app, conversation)
