"""The installed server as its clients meet it: a process of its own, and where it answers."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import warm

SCRIPT = str(Path(sys.executable).with_name("bethink"))
Start = Callable[..., "subprocess.Popen[Any]"]
PATIENT = {"BETHINK_READ_TIMEOUT_S": "600"}  # on a busy machine any read may take long


def clean_environment(folder: Path, **extra: str) -> dict[str, str]:
    """An environment that knows nothing of this machine's own memories.

    What it says about the processor stays: other kernels give other last bits.
    """
    kernels = {name: value for name, value in os.environ.items() if name.startswith("OPENBLAS_")}
    own = {"HOME": str(folder / "home"), "BETHINK_DATA_DIR": str(folder / "data")}
    own["BETHINK_WORKER"] = "off"  # else a server starts one, which outlives it
    return {"PATH": os.environ["PATH"]} | kernels | PATIENT | own | extra


@contextmanager
def http_server(folder: Path, *words: str, host: str = "127.0.0.1") -> Iterator[str]:
    """The address of a server over HTTP that is gone afterwards."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family) as probe:
        probe.bind((host, 0))
        port = probe.getsockname()[1]
    written = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    process = warm.popen(
        [SCRIPT, "mcp", *words, "--http", written], cwd=folder, env=clean_environment(folder),
        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    with process:
        try:
            give_up = time.monotonic() + 120
            while not _listening(family, host, port):
                assert process.poll() is None, "the server has ended"
                assert time.monotonic() < give_up, "the server does not listen"
                time.sleep(0.1)
            yield f"http://{written}/mcp"
        finally:
            process.kill()


def _listening(family: socket.AddressFamily, host: str, port: int) -> bool:
    with socket.socket(family) as probe:
        return probe.connect_ex((host, port)) == 0


class StdioServer:
    """A server spoken to line by line."""

    def __init__(self, folder: Path, *words: str, start: Start = warm.popen, **env: str) -> None:
        self.started = time.monotonic()
        self.process = start(
            [SCRIPT, "mcp", *words], cwd=folder, env=clean_environment(folder, **env), stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip

    def send(self, method: str, number: int | None = None, **params: Any) -> None:
        told = {"jsonrpc": "2.0", "method": method, "params": params}
        self.line(json.dumps(told if number is None else told | {"id": number}).encode())

    def line(self, line: bytes) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(line + b"\n")
        self.process.stdin.flush()

    def hear(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        told: dict[str, Any] = json.loads(self.process.stdout.readline())
        return told

    def greet(self) -> None:
        client = {"name": "raw", "version": "1"}
        self.send("initialize", 1, protocolVersion="2025-11-25", capabilities={}, clientInfo=client)
        while (heard := self.hear()).get("id") != 1:
            assert "error" in heard  # the answer to a line that was no message
        assert "result" in heard
        self.send("notifications/initialized")

    def make_request(self, number: int, tool: str, **arguments: Any) -> None:
        """Calls a tool without waiting for what it answers."""
        self.send("tools/call", number, name=tool, arguments=arguments)

    def call(self, number: int, tool: str, **arguments: Any) -> dict[str, Any]:
        self.make_request(number, tool, **arguments)
        return self.hear()


@contextmanager
def stdio_server(
    folder: Path, *words: str, start: Start = warm.popen, **env: str
) -> Iterator[StdioServer]:
    server = StdioServer(folder, *words, start=start, **env)
    with server.process:
        try:
            yield server
        finally:
            server.process.kill()


def processes_of(folder: Path) -> list[str]:
    """Processes whose environment names the folder, or that were started in it."""
    found = []
    for place in Path("/proc").glob("[0-9]*"):
        try:
            named = bytes(folder) in (place / "environ").read_bytes()
            if place.name != str(os.getpid()) and (named or (place / "cwd").readlink() == folder):
                found.append(place.name)
        except OSError:
            continue  # it has ended since, or is somebody else's
    return found
