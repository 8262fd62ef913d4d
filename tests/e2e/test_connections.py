"""More connections than a server can hold: it goes on answering, and its log stays short."""

from __future__ import annotations

import http.client
import resource
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

import pytest

import warm
from server_process import SCRIPT, clean_environment

DESCRIPTORS = 160
HALF_A_BODY = (
    b"POST /v1/recall HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    b"Content-Length: 100\r\n\r\n{"
)


@contextmanager
def serving(folder: Path, *words: str, descriptors: int = DESCRIPTORS) -> Iterator[int]:
    """The port of a server that may open only so many files; its log is in `errors`."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    command = [SCRIPT, *(word.replace("PORT", str(port)) for word in words)]
    limit = (descriptors, descriptors)
    with (
        (folder / "errors").open("wb") as errors,
        warm.popen(
            command, cwd=folder, env=clean_environment(folder), stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL, stderr=errors,
        ) as process,
    ):  # fmt: skip
        try:
            resource.prlimit(process.pid, resource.RLIMIT_NOFILE, limit)
            give_up = time.monotonic() + 120
            while asked(port, "/", timeout=60) is None:
                assert process.poll() is None, (folder / "errors").read_text()
                assert time.monotonic() < give_up, "the server does not answer"
                time.sleep(0.1)
            (folder / "process").write_text(str(process.pid))
            yield port
        finally:
            process.kill()


def asked(port: int, path: str, timeout: float = 20) -> int | None:
    """The status of an answer; None where there is none."""
    try:
        with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=timeout)) as connection:
            connection.request("GET", path)
            return connection.getresponse().status
    except OSError:
        return None


@pytest.fixture
def held() -> Iterator[list[socket.socket]]:
    """Connections that are closed at the end."""
    open_ones: list[socket.socket] = []
    yield open_ones
    for one in open_ones:
        one.close()


def kept_open(held: list[socket.socket], port: int, count: int, beginning: bytes) -> None:
    """Open connections until there are that many; those that were closed are replaced."""
    for one in list(held):
        with suppress(BlockingIOError):
            with suppress(ConnectionError):
                one.recv(1)
            held.remove(one)
            one.close()
    while len(held) < count:
        one = socket.create_connection(("127.0.0.1", port), timeout=60)
        with suppress(ConnectionError):
            one.sendall(beginning)
        one.setblocking(False)
        held.append(one)


def lines_of_log(folder: Path) -> list[str]:
    return (folder / "errors").read_text().splitlines()


@pytest.mark.parametrize("beginning", [b"", b"GET / HT", HALF_A_BODY])
def test_health_is_answered_whoever_holds_connections(
    tmp_path: Path, held: list[socket.socket], beginning: bytes
) -> None:
    with serving(tmp_path, "serve", "--port", "PORT", "--rate", "0") as port:
        greeting = len(lines_of_log(tmp_path))
        for _ in range(6):
            kept_open(held, port, 2 * DESCRIPTORS, beginning)
            assert asked(port, "/health") == 200
            time.sleep(0.3)
        for one in held:
            one.close()

        assert asked(port, "/v1/recall?q=anything") == 200
        assert len(lines_of_log(tmp_path)) - greeting <= 1, lines_of_log(tmp_path)


def test_mcp_over_http_answers_whoever_holds_connections(
    tmp_path: Path, held: list[socket.socket]
) -> None:
    with serving(tmp_path, "mcp", "--http", "127.0.0.1:PORT") as port:
        greeting = len(lines_of_log(tmp_path))
        for _ in range(4):
            kept_open(held, port, 2 * DESCRIPTORS, b"")
            assert asked(port, "/mcp") is not None
            time.sleep(0.3)

        assert len(lines_of_log(tmp_path)) - greeting <= 1, lines_of_log(tmp_path)


def test_the_system_out_of_descriptors_is_waited_for(
    tmp_path: Path, held: list[socket.socket]
) -> None:
    """Where others took what was left, accepting rests, and goes on once there is room."""
    with serving(tmp_path, "serve", "--port", "PORT", "--rate", "0") as port:
        greeting = len(lines_of_log(tmp_path))
        found = int((tmp_path / "process").read_text())
        in_use = len(list(Path(f"/proc/{found}/fd").iterdir()))
        before = resource.prlimit(found, resource.RLIMIT_NOFILE, (in_use + 30, DESCRIPTORS))
        for _ in range(4):
            kept_open(held, port, DESCRIPTORS, b"")
            time.sleep(0.5)
        assert asked(port, "/health") == 200
        resource.prlimit(found, resource.RLIMIT_NOFILE, before)

        assert asked(port, "/health") == 200
        assert len(lines_of_log(tmp_path)) - greeting <= 1, lines_of_log(tmp_path)


def test_half_requests_of_one_local_caller_do_not_keep_the_others_out(
    tmp_path: Path, held: list[socket.socket]
) -> None:
    with serving(tmp_path, "serve", "--port", "PORT", "--rate", "0", descriptors=1024) as port:
        for _ in range(3):
            kept_open(held, port, 80, HALF_A_BODY)
            assert asked(port, "/v1/recall?q=anything") == 200
