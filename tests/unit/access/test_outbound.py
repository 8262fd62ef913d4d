"""Requests to addresses that others name: to the address that was checked, and no other."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import pytest

from bethink.access import outbound
from bethink.access.outbound import Limits, Unreachable, fetch, is_public
from rows import each_row

LIMITS = Limits(5.0, 1000, public_only=False)


@contextmanager
def answering(*parts: bytes, pause_s: float = 0.0) -> Iterator[tuple[int, list[bytes]]]:
    """A server that says these bytes to each who comes."""
    heard: list[bytes] = []
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(0.05)
        ended = threading.Event()

        def serve() -> None:
            while not ended.is_set():
                try:
                    client, _ = server.accept()
                except TimeoutError:
                    continue
                with client, suppress(OSError):
                    heard.append(client.recv(65_536))
                    for part in parts:
                        client.sendall(part)
                        ended.wait(pause_s)

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield server.getsockname()[1], heard
        finally:
            ended.set()
            thread.join()


def reply(body: bytes, status: str = "200 OK", more: str = "") -> bytes:
    head = f"HTTP/1.1 {status}\r\nContent-Length: {len(body)}\r\n{more}Connection: close\r\n\r\n"
    return head.encode() + body


@each_row(
    "address",
    ["127.0.0.1", "10.0.0.1", "172.16.0.1", "192.168.1.1", "169.254.169.254", "100.64.0.1",
     "0.0.0.0", "224.0.0.1", "240.0.0.1", "192.0.2.1", "::1", "::", "fe80::1%eth0", "fd00::1",
     "::ffff:127.0.0.1", "::ffff:8.8.8.8", "64:ff9b::7f00:1", "2002:7f00:1::", "2001:db8::1",
     "2001:0:7f00:1::", "ff02::1"],
)  # fmt: skip
def test_no_address_of_a_private_network_is_public(address: str) -> None:
    """However it is wrapped."""
    assert not is_public(address)


@each_row("address", ["8.8.8.8", "1.1.1.1", "2606:4700:4700::1111"])
def test_addresses_of_the_internet_are(address: str) -> None:
    """Of both families."""
    assert is_public(address)


def resolving(monkeypatch: pytest.MonkeyPatch, *answers: list[str]) -> list[str]:
    """Names resolve to these, one list after the other; what is connected to is told."""
    given, connected = iter(answers), []

    def resolve(host: str, port: int, **_: Any) -> list[Any]:
        return [(0, 0, 0, "", (address, port)) for address in next(given)]

    def connect(address: tuple[str, int], **_: Any) -> socket.socket:
        connected.append(address[0])
        raise ConnectionRefusedError(111, "connection refused")

    monkeypatch.setattr(outbound.socket, "getaddrinfo", resolve)
    monkeypatch.setattr(outbound.socket, "create_connection", connect)
    return connected


@each_row("private", ["127.0.0.1", "10.1.2.3", "::1", "169.254.169.254"])
def test_a_name_of_a_private_address_is_not_asked(
    monkeypatch: pytest.MonkeyPatch, private: str
) -> None:
    """Nor one that has a public address beside it."""
    for found in ([private], ["8.8.8.8", private]):
        connected = resolving(monkeypatch, found)
        with pytest.raises(Unreachable, match="not on the public Internet"):
            fetch("https://evil.example/", Limits(5, 1000))
        assert connected == []


def test_the_address_that_was_checked_is_the_one_that_is_asked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A name that resolves to this machine the second time is resolved once."""
    connected = resolving(monkeypatch, ["8.8.8.8"], ["127.0.0.1"])

    with pytest.raises(Unreachable):
        fetch("https://rebinding.example/", Limits(5, 1000))
    assert connected == ["8.8.8.8"]


def test_it_is_asked_by_its_name_and_redirects_are_not_followed() -> None:
    """What it answers is returned as it is."""
    hop = reply(b"no", "302 Found", "Location: http://127.0.0.1:1/\r\n")
    with answering(hop) as (port, heard):
        assert fetch(f"http://localhost:{port}/a?b=c", LIMITS) == (302, b"no")
    assert heard[0].startswith(b"GET /a?b=c HTTP/1.1\r\n")
    assert f"Host: localhost:{port}\r\n".encode() in heard[0]


def test_large_and_slow_answers_are_given_up() -> None:
    """Also those that come byte by byte."""
    with (
        answering(reply(b"x" * 1001)) as (port, _),
        pytest.raises(Unreachable, match="more than 1,000 bytes"),
    ):
        fetch(f"http://127.0.0.1:{port}/", LIMITS)
    dripping = [reply(b"x" * 100)[:-100], *[b"x"] * 100]
    with answering(*dripping, pause_s=0.1) as (port, _):
        before = time.monotonic()
        with pytest.raises(Unreachable):
            fetch(f"http://127.0.0.1:{port}/", Limits(0.5, 1000, public_only=False))
        assert time.monotonic() - before < 9
    head = [b"HTTP/1.1 200 OK\r\n", *[b"X"] * 20, b": y\r\nContent-Length: 0\r\n\r\n"]
    with answering(*head, pause_s=0.1) as (port, _), pytest.raises(Unreachable):
        fetch(f"http://127.0.0.1:{port}/", Limits(0.5, 1000, public_only=False))
    with answering(b"SSH-2.0-OpenSSH\r\n") as (port, _), pytest.raises(Unreachable):
        fetch(f"http://127.0.0.1:{port}/", LIMITS)


def test_plain_http_is_for_own_addresses() -> None:
    """What comes from others must be https."""
    with pytest.raises(Unreachable, match="not a plain https URL"):
        fetch("http://example.org/", Limits(5, 1000))
