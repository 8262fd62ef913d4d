"""Processes that answer recalls for the server."""

import json
import os
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from bethink import Memory
from bethink.access.policy import LOOPBACK
from bethink.errors import Refused, StoreBusy
from bethink.server.mcp.memory_loader import MemoryLoader, settings_for
from bethink.server.tools.calls import ReadPool, ToolExecutor, ToolRequest
from bethink.server.tools.catalog import RECALL, REMEMBER
from server_process import PATIENT

TEXTS = ("The deploy key lives in vault B", "Ann drinks tea", "The port of the database is 5433")


@pytest.fixture
def executors(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[tuple[ToolExecutor, ToolExecutor, ReadPool]]:
    """The same space, asked directly and through a process."""
    for name in ("HOME", "BETHINK_DATA_DIR", "BETHINK_CONFIG_DIR"):
        monkeypatch.setenv(name, str(tmp_path))
    monkeypatch.chdir(tmp_path)
    settings = settings_for("work")
    with Memory.open(settings=settings) as memory:
        memory.remember_many(TEXTS)
    pool = ReadPool(1, "work", None, timeout_s=60.0)
    loader = MemoryLoader(settings)
    loader.start()
    yield ToolExecutor(loader), ToolExecutor(loader, pool=pool), pool
    pool.close()
    loader.close()


def ask(executor: ToolExecutor, question: str, **arguments: object) -> dict[str, object]:
    given = {"query": question, **arguments}
    return executor(ToolRequest(RECALL, given, LOOPBACK, via="http"), for_program=True).content


def test_a_process_answers_as_the_server_would(
    executors: tuple[ToolExecutor, ToolExecutor, ReadPool],
) -> None:
    """Recalls, refusals and what was written a moment ago are the same through a process.

    A process that was killed is replaced, and no call is lost.
    """
    direct, pooled, pool = executors
    for question in ("where is the deploy key?", "which port?", "what is the weather?"):
        assert ask(pooled, question) == ask(direct, question)
    with pytest.raises(Refused, match="no argument"):
        ask(pooled, "which port?", nonsense=1)
    stored = ToolRequest(REMEMBER, {"text": "The spare key hangs in the hall"}, LOOPBACK)
    pooled(stored, for_program=True)
    assert "hall" in str(ask(pooled, "where does the spare key hang?")["memories"])
    for pid in list(pool._processes._processes):
        os.kill(pid, signal.SIGKILL)
    for _ in range(3):
        assert ask(pooled, "which port?") == ask(direct, "which port?")


def test_a_recall_that_nobody_waits_for_is_not_begun(
    executors: tuple[ToolExecutor, ToolExecutor, ReadPool],
) -> None:
    """Where no process is free in time, it leaves the queue; a later one is answered."""
    direct, pooled, pool = executors
    assert ask(pooled, "which port?") == ask(direct, "which port?")
    # The one process holds still; what is handed out ahead of time counts as begun.
    (pid,) = pool._processes._processes
    os.kill(pid, signal.SIGSTOP)
    begun = [pool._processes.submit(os.getpid) for _ in range(3)]
    pool._timeout_s = 0.2
    with pytest.raises(TimeoutError, match="no process was free"):
        ask(pooled, "which port?")
    assert pooled._running == 0
    os.kill(pid, signal.SIGCONT)
    assert [one.result(60) for one in begun] == [pid] * 3
    pool._timeout_s = 60.0
    assert ask(pooled, "which port?") == ask(direct, "which port?")


def test_calls_that_were_given_up_still_count(
    executors: tuple[ToolExecutor, ToolExecutor, ReadPool], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Beyond the limit a call is refused at once, and when one has ended there is room."""
    direct = executors[0]
    monkeypatch.setattr("bethink.server.tools.calls.MAX_RUNNING", 2)
    with direct._counted(), ExitStack() as other:
        other.enter_context(direct._counted())
        with pytest.raises(StoreBusy, match="still running"):
            ask(direct, "which port?")
        other.close()
        assert ask(direct, "which port?")["status"] == "found"
    assert direct._running == 0


def test_a_server_with_processes_stops_clean(tmp_path: Path) -> None:
    """Nothing is left behind and nothing is complained about."""
    script = str(Path(sys.executable).with_name("bethink"))
    env = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "BETHINK_DATA_DIR": str(tmp_path)}
    env |= PATIENT
    words = ["serve", "--json", "--port", "0", "--space", "work", "--workers", "2"]
    with subprocess.Popen(
        [script, *words], cwd=tmp_path, env=env, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    ) as server:  # fmt: skip
        try:
            assert server.stdout is not None
            url = json.loads(server.stdout.readline())["url"]
            with urllib.request.urlopen(f"{url}/v1/recall?q=key", timeout=60) as answer:
                assert json.load(answer)["status"] == "nothing_stored"
            server.terminate()
            _, said = server.communicate(timeout=60)
            assert (server.returncode, "leaked" in said) == (0, False)
        finally:
            server.kill()
