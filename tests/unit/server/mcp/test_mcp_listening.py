"""Listening: connections that never finish their first sentence are let go of."""

from __future__ import annotations

import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import pytest
import uvicorn
from sse_starlette.sse import AppStatus

from bethink.access.hosts import Address
from bethink.errors import BadSetting
from bethink.server.listener import TimeoutProtocol, _Server, bind_socket


class Quick(TimeoutProtocol):
    """The same, with little patience."""

    head_timeout_s = 0.3
    send_timeout_s = 0.5


LARGE = 32 << 20
UNDER_WAY: list[int] = [0]


async def hello(scope: Any, receive: Any, send: Any) -> None:
    body = b"x" * LARGE if scope["path"] == "/large" else b"hi"
    size = str(len(body)).encode()
    UNDER_WAY[0] += 1
    try:
        await send(
            {"type": "http.response.start", "status": 200, "headers": [(b"content-length", size)]}
        )
        await send({"type": "http.response.body", "body": body})
    finally:
        UNDER_WAY[0] -= 1


@pytest.fixture(params=[Quick])
def port(request: pytest.FixtureRequest) -> Iterator[int]:
    at = bind_socket(Address("127.0.0.1", 0))
    config = uvicorn.Config(hello, http=request.param, lifespan="off", log_level="critical")
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [at]}, daemon=True)
    thread.start()
    yield at.getsockname()[1]
    server.should_exit = True
    thread.join(60)
    at.close()


def opened(port: int) -> socket.socket:
    return socket.create_connection(("127.0.0.1", port), timeout=60)


def heard_of(one: socket.socket) -> bytes:
    """What comes until it hangs up; where we were late to speak, it has done so already."""
    try:
        return one.recv(100)
    except ConnectionResetError:
        return b""


def tried(attempt: Callable[[], bool]) -> None:
    """Until an attempt is one: on a busy machine it is we who are too slow for what is asked."""
    give_up = time.monotonic() + 120
    while not attempt():
        assert time.monotonic() < give_up, "we were never fast enough"


@pytest.mark.parametrize("beginning", [b"", b"GET / HT", b"GET / HTTP/1.1\r\nHost: localhost\r\n"])
def test_who_does_not_finish_is_let_go(port: int, beginning: bytes) -> None:
    """Even where a byte comes now and then."""
    with opened(port) as one:
        with suppress(BrokenPipeError, ConnectionResetError):
            one.sendall(beginning)

        assert heard_of(one) == b""  # a time-out of the socket is an error


def test_a_trickle_is_not_enough(port: int) -> None:
    """The time counts from the first byte, not from the last."""
    with opened(port) as one:
        start = time.monotonic()
        for byte in b"GET / HTTP/1.1\r\nX-Filler: " + b"x" * 1000:
            try:
                one.sendall(bytes([byte]))
            except OSError:
                break
            time.sleep(0.05)
            if time.monotonic() - start > 60:
                pytest.fail("it was listened to for ever")


def test_who_asks_properly_may_ask_again(port: int) -> None:
    """A connection that is kept open has its patience anew with each request."""
    tried(lambda: _asked_often(port))


def _asked_often(port: int) -> bool:
    """Whether every request was answered; False where we were late with one ourselves."""
    with opened(port) as one, one.makefile("rb") as heard:
        last = time.monotonic()
        for _ in range(8):  # together far more than the patience for one request
            try:
                one.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
                head = b""
                while not head.endswith(b"\r\n\r\n"):
                    byte = heard.read(1)
                    if not byte:
                        raise ConnectionResetError  # noqa: TRY301 - as if it had come here
                    head += byte
            except (BrokenPipeError, ConnectionResetError):
                assert time.monotonic() - last >= Quick.head_timeout_s, "it hung up"
                return False
            assert head.startswith(b"HTTP/1.1 200")
            assert heard.read(2) == b"hi"
            last = time.monotonic()
            time.sleep(Quick.head_timeout_s / 4)
    return True


def test_who_does_not_take_the_answer_is_let_go(port: int) -> None:
    """Else a few who stopped reading would keep everybody else out."""
    with opened(port) as one:
        one.sendall(b"GET /large HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert one.recv(1) == b"H"
        assert UNDER_WAY[0] == 1

        give_up = time.monotonic() + 60
        while UNDER_WAY[0]:
            assert time.monotonic() < give_up, "it waits for ever"
            time.sleep(0.05)


def test_who_takes_the_answer_slowly_gets_it(port: int) -> None:
    """As long as there is some way made."""
    tried(lambda: _taken_slowly(port))


def _taken_slowly(port: int) -> bool:
    """Whether all of it came; False where we stopped taking it for too long ourselves."""
    with opened(port) as one:
        one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 20)
        one.sendall(b"GET /large HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        heard, longest, start = 0, 0.0, time.monotonic()
        last = start
        with suppress(ConnectionResetError):
            while part := one.recv(1 << 20):
                heard += len(part)
                time.sleep(0.05)
                longest, last = max(longest, time.monotonic() - last), time.monotonic()
    longest = max(longest, time.monotonic() - last)
    if heard <= LARGE and longest >= Quick.send_timeout_s / 2:
        return False
    assert heard > LARGE
    assert time.monotonic() - start > 2 * Quick.send_timeout_s
    return True


def test_an_address_of_somebody_else_is_told() -> None:
    """In the system's own words."""
    with pytest.raises(BadSetting, match="cannot be bound"):
        bind_socket(Address("192.0.2.1", 0))
    with pytest.raises(BadSetting, match="cannot be bound"):
        bind_socket(Address("no such host", 0))


def test_small_answers_do_not_wait() -> None:
    """The socket says that it speaks TCP, by which asyncio knows to send at once."""
    with bind_socket(Address("127.0.0.1", 0)) as at:
        assert at.proto == socket.IPPROTO_TCP


def test_a_second_ctrl_c_still_ends_the_application_in_order(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Requests are no longer waited for, but the application closes what it opened."""
    # It remembers the end of any server of the process, and then ends every stream.
    monkeypatch.setattr(AppStatus, "should_exit", False)
    heard: list[str] = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        assert scope["type"] == "lifespan"
        for _ in range(2):
            kind = (await receive())["type"]
            heard.append(kind)
            await send({"type": f"{kind}.complete"})

    async def press_twice() -> None:
        server.handle_exit(signal.SIGINT, None)
        server.handle_exit(signal.SIGINT, None)

    config = uvicorn.Config(
        app, log_level="error", callback_notify=press_twice, timeout_notify=0, lifespan="on"
    )
    server = _Server(config)
    with bind_socket(Address("127.0.0.1", 0)) as at:
        server.run(sockets=[at])

    assert server.force_exit
    assert heard == ["lifespan.startup", "lifespan.shutdown"]
