"""`bethink serve` as a process of its own: plain clients, the official one, bad ones."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import anyio
import httpx
import pytest

import warm
from deferred import Deferred
from server_process import PATIENT

mcp_sdk = Deferred("mcp.client.client", "mcp.client.streamable_http", "mcp.shared._httpx_utils")

SCRIPT = str(Path(sys.executable).with_name("bethink"))
# Each starts a process that imports the protocol library and a web server.
pytestmark = [pytest.mark.timeout(600), pytest.mark.slow]
READY_WITHIN_S = 60


def room(folder: Path) -> dict[str, str]:
    """An environment that knows nothing of this machine's own memories and tokens."""
    own = {"HOME": folder / "home", "BETHINK_DATA_DIR": folder / "data",
           "BETHINK_CONFIG_DIR": folder / "config"}  # fmt: skip
    told = {name: str(value) for name, value in own.items()}
    return {"PATH": os.environ["PATH"], "BETHINK_EMBEDDER": "none", **PATIENT, **told}


def run(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return warm.run(
        [SCRIPT, *words], cwd=folder, env=room(folder), capture_output=True, text=True, check=False,
        timeout=60,
    )  # fmt: skip


def token(folder: Path, name: str, scope: str, *words: str) -> dict[str, str]:
    made = run(folder, "token", "create", name, "--scope", scope, *words)
    assert made.returncode == 0, made.stderr
    return {"Authorization": f"Bearer {made.stdout.strip()}"}


class Server:
    """A server that has said where it is, and answers."""

    def __init__(self, folder: Path, words: Sequence[str]) -> None:
        self.process = warm.popen(
            [SCRIPT, "serve", "--port", "0", "--json", *words], cwd=folder, env=room(folder),
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        assert self.process.stdout is not None
        self.url = str(json.loads(self.process.stdout.readline())["url"])
        self.port = int(self.url.rpartition(":")[2])

    def wait(self, host: str = "127.0.0.1") -> None:
        give_up = time.monotonic() + READY_WITHIN_S
        while time.monotonic() < give_up:
            try:
                if httpx.get(f"http://{host}:{self.port}/ready", timeout=5).status_code == 200:
                    return
            except httpx.TransportError:
                pass  # it does not listen yet
            time.sleep(0.05)
        pytest.fail("the server was not ready in time")


@contextmanager
def serving(folder: Path, *words: str, host: str = "127.0.0.1") -> Iterator[Server]:
    server = Server(folder, words)
    with server.process:
        try:
            server.wait(host)
            yield server
        finally:
            server.process.kill()


def test_a_token_opens_rest_and_mcp_alike(tmp_path: Path) -> None:
    """What is written by one is read by the other; a token that is taken back is shut out."""
    admin = token(tmp_path, "boss", "admin")
    reader = token(tmp_path, "reader", "read")

    async def conversation() -> None:
        client = mcp_sdk.create_mcp_http_client(headers=reader)
        async with (
            client,
            mcp_sdk.Client(mcp_sdk.streamable_http_client(url + "/mcp", http_client=client)) as mcp,
        ):
            names = [tool.name for tool in (await mcp.list_tools()).tools]
            assert "recall" in names
            assert "remember" not in names
            found = await mcp.call_tool("recall", {"query": "when are releases cut?"})
            assert found.structured_content is not None
            assert found.structured_content["status"] == "found"
            denied = await mcp.call_tool("remember", {"text": "Written by who may not"})
            assert denied.is_error

    with serving(tmp_path, "--require-token") as server:
        url = server.url
        with httpx.Client(base_url=url, timeout=60) as client:
            assert client.get("/v1/stats").status_code == 401
            told = {"text": "Releases are cut on Tuesdays"}
            assert client.post("/v1/memories", json=told, headers=admin).status_code == 200
            assert client.post("/v1/memories", json=told, headers=reader).status_code == 403
            anyio.run(conversation)
            lines = client.get("/v1/export", headers=admin).text.splitlines()
            assert json.loads(lines[0])["type"] == "bethink"
            assert run(tmp_path, "token", "revoke", "boss").returncode == 0
            assert client.get("/v1/stats", headers=admin).status_code == 401
            assert client.get("/v1/stats", headers=reader).status_code == 200


def test_both_eras_of_the_protocol_without_a_token(tmp_path: Path) -> None:
    """From this machine: tools that write are there, erasing is not."""

    async def conversation(url: str, mode: str) -> None:
        async with mcp_sdk.Client(f"{url}/mcp", mode=mode) as client:  # type: ignore[arg-type]
            stored = await client.call_tool("remember", {"text": f"Herons nest in {mode}"})
            ids = [(stored.structured_content or {})["id"]]
            assert not (await client.call_tool("forget", {"ids": ids})).is_error
            assert (await client.call_tool("forget", {"ids": ids, "erase": True})).is_error

    with serving(tmp_path) as server:
        for mode in ("legacy", "auto"):
            anyio.run(conversation, server.url, mode)
        server.process.send_signal(signal.SIGTERM)
        assert server.process.wait(60) == 0
        assert server.process.stderr is not None
        assert server.process.stderr.read() == ""


def test_what_many_write_at_once_is_all_there(tmp_path: Path) -> None:
    """Eight clients, twenty-five memories each."""

    def write(number: int) -> list[int]:
        with httpx.Client(base_url=server.url, timeout=60) as client:
            return [
                client.post(
                    "/v1/memories", json={"text": f"Heron {number}-{turn} nests"}
                ).status_code
                for turn in range(25)
            ]

    with serving(tmp_path, "--rate", "0") as server:
        with ThreadPoolExecutor(8) as pool:
            statuses = [one for made in pool.map(write, range(8)) for one in made]
        told = httpx.get(f"{server.url}/v1/stats", timeout=60).json()

    assert set(statuses) == {200}
    assert told["memories"] + told["forgotten"] == 200


def test_slow_clients_keep_nobody_waiting(tmp_path: Path) -> None:
    """Hundreds that say half a sentence, and one who asks properly, with a token."""
    half = b"POST /v1/memories HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    reader = token(tmp_path, "reader", "read")
    with serving(tmp_path) as server:
        beginnings = [b"", b"GET /v1/st", half, half + b"Content-Length: 100\r\n\r\n{"]
        opened = [socket.create_connection(("127.0.0.1", server.port)) for _ in range(300)]
        for place, one in enumerate(opened):
            one.sendall(beginnings[place % len(beginnings)])
        asked = httpx.get(f"{server.url}/v1/stats", timeout=60, headers=reader)
        for one in opened:
            one.close()
        assert httpx.get(f"{server.url}/health", timeout=60).status_code == 200

    assert asked.status_code == 200


def ask_raw(port: int, *parts: bytes) -> bytes:
    with closing(socket.create_connection(("127.0.0.1", port), timeout=60)) as one:
        for part in parts:
            try:
                one.sendall(part)
            except (BrokenPipeError, ConnectionResetError):
                break  # it has heard enough
        try:
            return one.recv(65_536)
        except ConnectionResetError:
            return b""


def test_what_is_too_much_is_refused(tmp_path: Path) -> None:
    """Large bodies, large heads, two hosts, no host, nonsense; and then it still answers."""
    head = b"POST /v1/memories HTTP/1.1\r\nHost: localhost\r\n"
    asked: list[tuple[list[bytes], Any]] = [
        ([head + b"Content-Length: 2000000000\r\n\r\n"], b"413"),
        ([head + b"Content-Length: " + b"9" * 40 + b"\r\n\r\n"], (b"400", b"413")),
        ([head + b"Transfer-Encoding: chunked\r\n\r\n", *[b"10000\r\n" + b"x" * 65_536 + b"\r\n"] * 40],
         b"413"),
        # Who is still sending is heard out: else it would see a broken connection.
        *[([head + b"Content-Length: 2000000\r\n\r\n", b"x" * 2_000_000], b"413")] * 10,
        ([b"GET /v1/recall?q=" + b"x" * 30_000 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n"], b"431"),
        ([head + b"X-Filler: " + b"x" * 100_000 + b"\r\n\r\n"], (b"400", b"431", b"")),
        ([head + b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET /health HT"],
         b"400"),
        ([b"GET /health HTTP/1.1\r\n\r\n"], (b"400", b"421")),
        ([b"GET /health HTTP/1.0\r\n\r\n"], b"421"),
        ([b"GET /health HTTP/1.1\r\nHost: localhost\r\nHost: evil.example\r\n\r\n"], (b"400", b"421")),
        ([b"GET http://evil.example/health HTTP/1.1\r\nHost: localhost\r\n\r\n"], (b"404", b"401")),
        ([b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" * 10], b"400"),
        ([b"GET /v1/\xff HTTP/1.1\r\nHost: localhost\r\n\r\n"], b"400"),
        ([b"GET /ws HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n"],
         b"404"),
    ]  # fmt: skip
    with serving(tmp_path) as server:
        for parts, status in asked:
            answer = ask_raw(server.port, *parts)
            allowed = status if isinstance(status, tuple) else (status,)
            assert answer[9:12] in allowed, (parts[0][:80], answer[:200])
        assert httpx.get(f"{server.url}/health", timeout=60).json() == {"status": "ok"}
        assert server.process.poll() is None


def test_other_binds_need_a_token(tmp_path: Path) -> None:
    """Without one there is no server; with one there is, and it asks for it."""
    for words in (("serve", "--host", "0.0.0.0", "--port", "0"), ("mcp", "--http", "0.0.0.0:0")):
        refused = run(tmp_path, *words)
        assert refused.returncode == 2
        assert "reachable from other machines" in refused.stderr
    reader = token(tmp_path, "reader", "read")

    with (
        serving(tmp_path, "--host", "0.0.0.0") as server,
        httpx.Client(base_url=f"http://127.0.0.1:{server.port}", timeout=60) as client,
    ):
        assert client.get("/health").json() == {"status": "ok"}
        assert client.get("/v1/stats").status_code == 401
        assert client.get("/metrics").status_code == 401
        assert client.get("/v1/stats", headers=reader).status_code == 200
        elsewhere = reader | {"Host": "evil.example"}
        assert client.get("/v1/stats", headers=elsewhere).status_code == 421


def has_ipv6() -> bool:
    try:
        with socket.socket(socket.AF_INET6) as probe:
            probe.bind(("::1", 0))
    except OSError:
        return False
    return True


@pytest.mark.skipif(not has_ipv6(), reason="this machine has no version 6 of its own address")
def test_the_other_loopback(tmp_path: Path) -> None:
    """::1 is this machine as well; SIGINT ends the server in good order."""
    with serving(tmp_path, "--host", "::1", host="[::1]") as server:
        assert httpx.get(f"http://[::1]:{server.port}/v1/stats", timeout=60).status_code == 200
        server.process.send_signal(signal.SIGINT)
        assert server.process.wait(60) == 0


def test_a_taken_port_is_told(tmp_path: Path) -> None:
    """In a sentence, with what to do."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        refused = run(tmp_path, "serve", "--port", str(taken.getsockname()[1]))

    assert refused.returncode == 2
    assert "cannot be bound" in refused.stderr
    assert "Traceback" not in refused.stderr


def test_the_end_waits_for_what_is_being_done(tmp_path: Path) -> None:
    """A write that was begun is answered and kept; open streams keep nobody, and nothing
    is complained about."""
    with serving(tmp_path) as server:
        greeting = {"jsonrpc": "2.0", "id": 1, "method": "initialize",
                    "params": {"protocolVersion": "2025-11-25", "capabilities": {},
                               "clientInfo": {"name": "test", "version": "1"}}}  # fmt: skip
        accept = {"Accept": "application/json, text/event-stream"}
        with httpx.Client(base_url=server.url, timeout=60, headers=accept) as client:
            begun = client.post("/mcp", json=greeting)
            session = {"Mcp-Session-Id": begun.headers["mcp-session-id"]}
            with client.stream("GET", "/mcp", headers=session) as stream:
                assert stream.status_code == 200
                many = [{"text": f"Heron number {number} nests"} for number in range(300)]
                with ThreadPoolExecutor(1) as pool:
                    writing = pool.submit(
                        httpx.post, f"{server.url}/v1/memories/batch", json={"memories": many},
                        timeout=60,
                    )  # fmt: skip
                    time.sleep(0.05)
                    server.process.send_signal(signal.SIGTERM)
                    assert server.process.wait(60) == 0
                    failed = writing.exception(60)
                    stored = 0 if failed else writing.result().json()["stored"]
        assert server.process.stderr is not None
        assert server.process.stderr.read() == ""
    with serving(tmp_path) as server:
        kept = httpx.get(f"{server.url}/v1/stats", timeout=60).json()["memories"]

    assert kept in (0, 300) if stored == 0 else kept == stored


def test_without_the_libraries_it_says_what_to_install(tmp_path: Path) -> None:
    """In a sentence, not a traceback; tokens need none of them."""
    (tmp_path / "hidden").mkdir()
    (tmp_path / "hidden" / "sitecustomize.py").write_text(
        "import sys\nfor name in ('starlette', 'uvicorn', 'mcp', 'prometheus_client'):\n"
        "    sys.modules[name] = None\n"
    )
    env = room(tmp_path) | {"PYTHONPATH": str(tmp_path / "hidden")}
    told = {
        words: subprocess.run(
            [SCRIPT, *words], cwd=tmp_path, env=env, capture_output=True, text=True, check=False
        )
        for words in (("serve", "--port", "0"), ("token", "create", "a", "--scope", "read"))
    }

    served, made = told.values()
    assert served.returncode == 2
    assert "pip install '.[serve]'" in served.stderr
    assert "Traceback" not in served.stderr
    assert made.returncode == 0
