"""The server as a process: it starts at once, keeps its output clean and leaves nothing."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest
from test_load import usage

import warm
from bethink.server.mcp.stdio import STATELESS_VERSION
from bethink.server.tools.catalog import DEFAULT_TOOLS
from server_process import SCRIPT, StdioServer, clean_environment, processes_of, stdio_server

# Most start several processes, each of which imports the protocol library.
pytestmark = [pytest.mark.timeout(600), pytest.mark.slow]
# Enough to meet every way of ending at several moments; BETHINK_CYCLES=100 looks longer.
CYCLES = int(os.environ.get("BETHINK_CYCLES", "20"))
# Two where nothing else runs; a loaded machine may be in the middle of an import.
ENDS_WITHIN_S = float(os.environ.get("BETHINK_ENDS_WITHIN_S", "60"))
SERVERS = 8
COLD = subprocess.Popen  # where it matters what a process loads, and when
NOTES_EACH = 3


def plain_start() -> float:
    """The processor time that Python and click need to start on this machine."""
    import resource  # not on Windows

    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, "-c", "import click"], check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@pytest.mark.parametrize("era", ["handshake", "alone"])
def test_the_first_list_comes_at_once(tmp_path: Path, era: str) -> None:
    """It takes a few times the processor time of an empty program."""
    own = {"protocolVersion": STATELESS_VERSION, "clientInfo": {"name": "raw", "version": "1"}}
    told = {f"io.modelcontextprotocol/{name}": value for name, value in own.items()}
    told["io.modelcontextprotocol/clientCapabilities"] = {}
    took, plain = [], []
    for _ in range(5):
        plain.append(plain_start())
        with stdio_server(tmp_path, start=COLD) as server:
            if era == "handshake":
                server.greet()
            server.send("tools/list", 2, **({} if era == "handshake" else {"_meta": told}))
            assert len(server.hear()["result"]["tools"]) == len(DEFAULT_TOOLS)
            took.append(usage(server.process.pid).cpu_s)

    assert min(took) < 20 * min(plain)


def test_it_ends_with_its_input(tmp_path: Path) -> None:
    """Soon after, in the middle of its start or of its work."""
    for busy in (False, True):
        with stdio_server(tmp_path) as server:
            server.greet()
            if busy:
                server.call(2, "remember", text="The staging database is called heron")
            assert server.process.stdin is not None
            server.process.stdin.close()
            ended = time.monotonic()
            assert server.process.wait(120) == 0
            assert time.monotonic() - ended < ENDS_WITHIN_S


def test_lines_that_are_no_messages_end_nothing(tmp_path: Path) -> None:
    """The next message is answered as if they had not been."""
    with stdio_server(tmp_path) as server:
        for line in (b"", b"nonsense", b"\xff\xfe\x00", b"[" * 3000, b"{}", b'"\\ud800"'):
            server.line(line)
        server.greet()
        for line in (b"nonsense", b"\xff\xfe\x00", b"[" * 3000, b"{}", b'"\\ud800"'):
            server.line(line)
        server.send("ping", 7)
        while (heard := server.hear()).get("id") != 7:
            assert "error" in heard

        assert heard["result"] == {}


NOISE = """
import builtins, os, sys, threading, time

class Loud:
    def find_spec(self, name, path=None, target=None):
        if name in ("numpy", "apsw", "mcp", "anyio", "pydantic"):
            print("loading", name)
            os.write(1, b"raw noise from " + name.encode() + b"\\n")
            threading.Thread(target=chatter, daemon=True).start()

def chatter():
    while True:
        print("still here", flush=True)
        time.sleep(0.02)

sys.meta_path.insert(0, Loud())
"""


def test_nothing_but_messages_goes_out(tmp_path: Path) -> None:
    """Whatever a dependency prints, while it is imported or from a thread."""
    (tmp_path / "noise").mkdir()
    (tmp_path / "noise" / "sitecustomize.py").write_text(NOISE)
    with stdio_server(tmp_path, PYTHONPATH=str(tmp_path / "noise")) as server:
        server.greet()
        assert "result" in server.call(2, "remember", text="Releases are cut on Tuesdays")
        assert "result" in server.call(3, "recall", query="when are releases cut?")
        assert server.process.stdin is not None
        server.process.stdin.close()
        assert server.process.stdout is not None
        rest = server.process.stdout.read().splitlines()
        assert server.process.stderr is not None
        noise = server.process.stderr.read()

    assert all(json.loads(line)["jsonrpc"] == "2.0" for line in rest)
    assert b"still here" in noise
    assert b"raw noise from apsw" in noise


def test_many_servers_share_a_space(tmp_path: Path) -> None:
    """Eight of them, each writing at once: all of it is there, for each of them."""
    wanted = {
        f"Project {server}{note} is called heron-{server}-{note}"
        for server in range(SERVERS)
        for note in range(NOTES_EACH)
    }
    with ExitStack() as stack:
        servers = [stack.enter_context(stdio_server(tmp_path)) for _ in range(SERVERS)]
        for number, server in enumerate(servers):
            server.greet()
            for note in range(NOTES_EACH):
                text = f"Project {number}{note} is called heron-{number}-{note}"
                server.make_request(note + 2, "remember", text=text)
        for server in servers:
            assert all("result" in server.hear() for _ in range(NOTES_EACH))
        for server in servers[:: SERVERS - 1]:
            answer = server.call(9, "recall", query="project heron", k=50, max_tokens=20_000)
            told = answer["result"]["structuredContent"]["memories"]
            assert {hit["text"] for hit in told} == wanted


class Orphaned(StdioServer):
    """A server whose parent is another process, while we hold its pipes open."""

    def __init__(self, folder: Path) -> None:
        come, self.writer = os.pipe()
        self.back, out = os.pipe()
        starter = (
            "import subprocess, sys, time\n"
            f"child = subprocess.Popen([{SCRIPT!r}, 'mcp'], stdin={come}, stdout={out})\n"
            "print(child.pid, flush=True)\n"
            "time.sleep(600)\n"
        )
        self.started = time.monotonic()
        self.process = subprocess.Popen(
            [sys.executable, "-c", starter], cwd=folder, env=clean_environment(folder), pass_fds=[come, out],
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        os.close(come)
        os.close(out)
        assert self.process.stdout is not None
        self.child = int(self.process.stdout.readline())
        self.feed = os.fdopen(self.back, "rb")

    def line(self, line: bytes) -> None:
        os.write(self.writer, line + b"\n")

    def hear(self) -> dict[str, object]:
        told: dict[str, object] = json.loads(self.feed.readline())
        return told


@contextmanager
def orphaned(folder: Path) -> Iterator[Orphaned]:
    server = Orphaned(folder)
    with server.process:
        try:
            yield server
        finally:
            server.process.kill()
            server.feed.close()
            os.close(server.writer)


def gone(folder: Path, within_s: float) -> float:
    """How long it takes until no process of this folder is left."""
    start = time.monotonic()
    while processes_of(folder):
        assert time.monotonic() - start < within_s, processes_of(folder)
        time.sleep(0.05)
    return time.monotonic() - start


def killed_in_the_middle_of_a_write(folder: Path, luck: random.Random) -> list[str]:
    """Ten writes asked for; killed after some of them."""
    with stdio_server(folder) as server:
        server.greet()
        for note in range(10):
            text = f"Note {luck.getrandbits(40):x} on the herons of the estuary"
            server.make_request(note + 2, "remember", text=text)
        heard = [server.hear() for _ in range(luck.randint(1, 8))]
        time.sleep(luck.uniform(0, 0.02))
        server.process.kill()
        assert server.process.wait(60) == -signal.SIGKILL
    return [told["result"]["structuredContent"]["id"] for told in heard]


def killed_while_starting(folder: Path, luck: random.Random) -> list[str]:
    """By any of the usual signals, greeted or not."""
    with stdio_server(folder, start=COLD) as server:
        ways = [signal.SIGTERM, signal.SIGKILL]
        if luck.random() < 0.5:
            server.greet()
            # Not before: a shell in the background has its children ignore it.
            ways.append(signal.SIGINT)
        time.sleep(luck.uniform(0, 0.3))
        server.process.send_signal(luck.choice(ways))
        assert server.process.wait(120) is not None
    return []


def closed(folder: Path, luck: random.Random) -> list[str]:
    """Its input ends while it writes, or before it does anything."""
    with stdio_server(folder) as server:
        server.greet()
        acked = []
        if luck.random() < 0.5:
            told = server.call(2, "remember", text=f"Kept {luck.getrandbits(40):x} of the herons")
            acked.append(told["result"]["structuredContent"]["id"])
            server.make_request(
                3, "remember", text=f"Perhaps {luck.getrandbits(40):x} of the herons"
            )
        assert server.process.stdin is not None
        server.process.stdin.close()
        ended = time.monotonic()
        assert server.process.wait(120) == 0
        assert time.monotonic() - ended < ENDS_WITHIN_S
    return acked


def left_by_its_parent(folder: Path, luck: random.Random) -> list[str]:
    """The parent is killed; somebody else holds the pipes open."""
    with orphaned(folder) as server:
        server.greet()
        if luck.random() < 0.3:
            server.call(2, "remember", text=f"Perhaps {luck.getrandbits(40):x} of the herons")
        server.process.kill()
        server.process.wait()
        assert gone(folder, 120) < 10 + ENDS_WITHIN_S
    return []


WAYS: list[Callable[[Path, random.Random], list[str]]] = [
    killed_in_the_middle_of_a_write, killed_while_starting, closed, left_by_its_parent,
]  # fmt: skip


def test_servers_that_end_leave_nothing(tmp_path: Path) -> None:
    """However they end: no process, no lock to be cleared, nothing lost that was acknowledged."""
    luck, acked = random.Random(7), []
    for number in range(CYCLES):
        acked += WAYS[number % len(WAYS)](tmp_path, luck)
        gone(tmp_path, 120)

    start = time.monotonic()
    with stdio_server(tmp_path) as server:
        server.greet()
        stored = server.call(2, "remember", text="The first note after all of them")
        assert "result" in stored
        assert time.monotonic() - start < 120  # it waited for nobody
    ran = warm.run(
        [SCRIPT, "export", "-"],
        cwd=tmp_path,
        env=clean_environment(tmp_path),
        capture_output=True,
        check=True,
    )
    kept = {json.loads(line).get("id") for line in ran.stdout.splitlines()}
    assert acked
    assert {*acked} <= kept
    warm.run([SCRIPT, "doctor"], cwd=tmp_path, env=clean_environment(tmp_path), check=True,
                   capture_output=True)  # fmt: skip
    assert not processes_of(tmp_path)


CALLS: list[tuple[str, dict[str, Any]]] = [
    ("recall", {"query": "when are releases cut?"}),
    ("recall", {"query": "how do I bake bread?"}),
    ("list_entities", {}),
    ("history", {"id": "ffffffffffffffff"}),
    ("recall", {"query": "x", "profile": "nonsense"}),
]


def test_reads_are_answered_by_a_worker_and_are_the_same(tmp_path: Path) -> None:
    """To the last byte, failures too; the server itself opens no memory for them."""
    (tmp_path / "run").mkdir(mode=0o700)
    with stdio_server(tmp_path, "--tools", "all") as server:
        server.greet()
        assert "result" in server.call(2, "remember", text="Releases are cut on Tuesdays")
        own = [server.call(3 + at, name, **given) for at, (name, given) in enumerate(CALLS)]

    worker = {"XDG_RUNTIME_DIR": str(tmp_path / "run"), "BETHINK_WORKER": "auto"}
    try:
        with stdio_server(tmp_path, "--tools", "all", start=COLD, **worker) as server:
            server.greet()
            theirs = [server.call(3 + at, name, **given) for at, (name, given) in enumerate(CALLS)]
            loaded = Path(f"/proc/{server.process.pid}/maps").read_text()
        status = run_worker(tmp_path, worker, "status", "--json")
    finally:
        run_worker(tmp_path, worker, "stop")
    assert theirs == own
    assert json.loads(status)["jobs"]["done"] >= len(CALLS)
    assert "numpy" not in loaded
    assert "apsw" not in loaded


@pytest.mark.skipif(not Path("/proc/self/smaps_rollup").exists(), reason="Linux says how much")
@pytest.mark.parametrize("profile", ["default", "remind"])
def test_a_server_that_a_worker_answers_for_takes_little_memory(
    tmp_path: Path, profile: str
) -> None:
    """People run ten of them; a profile that tracks use is no exception."""
    (tmp_path / "run").mkdir(mode=0o700)
    worker = {"XDG_RUNTIME_DIR": str(tmp_path / "run"), "BETHINK_WORKER": "auto"}
    try:
        with stdio_server(tmp_path, start=COLD, BETHINK_PROFILE=profile, **worker) as server:
            server.greet()
            for number in range(2, 5):
                assert "result" in server.call(number, "recall", query="who runs billing?")
            smaps = Path(f"/proc/{server.process.pid}/smaps_rollup").read_text()
        status = json.loads(run_worker(tmp_path, worker, "status", "--json"))
    finally:
        run_worker(tmp_path, worker, "stop")

    proportional_kb = int(next(line for line in smaps.splitlines() if "Pss:" in line).split()[1])
    assert proportional_kb < 45 * 1024
    assert status["jobs"]["failed"] == 0
    assert status["jobs"]["done"] >= 3


def run_worker(folder: Path, env: dict[str, str], *words: str) -> str:
    done = subprocess.run(
        [SCRIPT, "worker", *words], cwd=folder, env=clean_environment(folder, **env), capture_output=True,
        text=True, check=False,
    )  # fmt: skip
    return done.stdout
