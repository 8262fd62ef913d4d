"""Processes: what a command, a hook and an MCP server cost, in times of `python -c pass`."""

from __future__ import annotations

import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import venv
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from corpus import Corpus
from measure import head, keep, middle, row
from stores import CACHE, store_of

RUNS = 11


def space_folder(folder: Path, size: int) -> dict[str, str]:
    """An environment in which the space ``bench`` is a copy of a store of that size."""
    # As a user has it: bytecode is kept.
    dropped = (
        "PYTHONDONTWRITEBYTECODE", "OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS",
        "BETHINK_BENCH_CACHE",  # no setting: every command would look for the one it resembles
    )  # fmt: skip
    kept = {key: value for key, value in os.environ.items() if key not in dropped}
    spaces = folder / "data" / "spaces"
    spaces.mkdir(parents=True)
    shutil.copyfile(store_of(size), spaces / "bench.db")
    return kept | {
        "BETHINK_DATA_DIR": str(folder / "data"),
        "BETHINK_SPACE": "bench",
        "HOME": str(folder),
        "XDG_RUNTIME_DIR": str(folder),
        "BETHINK_WORKER": "off",
    }


def command() -> str:
    return shutil.which("bethink", path=str(Path(sys.executable).parent)) or "bethink"


def cpu_of(words: Sequence[str], env: dict[str, str], given: str = "") -> float:
    """The CPU milliseconds of a process and its children."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(words, env=env, input=given, text=True, capture_output=True, check=False)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime) * 1000


def mcp_requests(question: str) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    def call(number: int) -> dict[str, Any]:
        arguments = {"query": question}
        return {"jsonrpc": "2.0", "id": number, "method": "tools/call",
                "params": {"name": "recall", "arguments": arguments}}  # fmt: skip

    hello = {"jsonrpc": "2.0", "id": 1, "method": "initialize",
             "params": {"protocolVersion": "2025-06-18", "capabilities": {},
                        "clientInfo": {"name": "bench", "version": "1"}}}  # fmt: skip
    ready = {"jsonrpc": "2.0", "method": "notifications/initialized"}
    return [hello, ready], [call(2), call(3)]


def mcp(env: dict[str, str], question: str) -> dict[str, float]:
    """CPU of an MCP server until it is ready, has answered once, and twice."""
    process = subprocess.Popen(
        [command(), "mcp"], env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL, text=True,
    )  # fmt: skip
    assert process.stdin is not None
    assert process.stdout is not None

    def ask(message: dict[str, Any]) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(json.dumps(message) + "\n")
        process.stdin.flush()
        while "id" in message:
            answer = json.loads(process.stdout.readline())
            if answer.get("id") == message["id"]:
                assert "error" not in answer, answer
                break

    begin, calls = mcp_requests(question)
    spent = {}
    for message in begin:
        ask(message)
    spent["MCP: ready"] = spent_by(process.pid)
    for name, message in zip(("MCP: first recall", "MCP: second recall"), calls, strict=True):
        ask(message)
        spent[name] = spent_by(process.pid)
    process.stdin.close()
    process.wait(10)
    process.stdout.close()
    return spent


def spent_by(pid: int) -> float:
    """CPU milliseconds of a running process so far."""
    fields = Path(f"/proc/{pid}/stat").read_text("ascii").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) * 1000 / os.sysconf("SC_CLK_TCK")


WANTED = {"bethink --help": 5, "bethink recall": 15, "prompt hook": 12,
          "prompt hook with a worker": 5}  # fmt: skip


def processes(sizes: list[int]) -> None:
    """Whole processes in turn with an empty one, at the first size."""
    head(f"Processes, {sizes[0]:,} memories", "process", "CPU ms", "times `python -c pass`",
         "wanted")  # fmt: skip
    question = Corpus(sizes[0]).questions(2)[1].text
    with tempfile.TemporaryDirectory(dir=CACHE) as folder:
        env = space_folder(Path(folder), sizes[0])
        name = command()
        prompt = json.dumps({"session_id": "1", "prompt": question, "cwd": folder})
        working = env | {"BETHINK_WORKER": "on"}
        cases: dict[str, tuple[list[str], dict[str, str], str]] = {
            "python -c pass": ([sys.executable, "-c", "pass"], env, ""),
            "python -c 'import numpy'": ([sys.executable, "-c", "import numpy"], env, ""),
            "bethink --help": ([name, "--help"], env, ""),
            "bethink version": ([name, "version"], env, ""),
            "bethink list": ([name, "list"], env, ""),
            "bethink remember": ([name, "remember", "The key lies under the mat"], env, ""),
            "bethink recall": ([name, "recall", question], env, ""),
            "bethink recall with a worker": ([name, "recall", question], working, ""),
            "prompt hook": ([name, "hook", "user-prompt-submit"], env, prompt),
            "prompt hook with a worker": ([name, "hook", "user-prompt-submit"], working, prompt),
        }
        subprocess.run([name, "worker", "start"], env=working, capture_output=True, check=True)
        spent: dict[str, list[float]] = {case: [] for case in cases}
        for round_ in range(RUNS + 1):
            for case, (words, around, given) in cases.items():
                took = cpu_of(words, around, given)
                if round_:
                    spent[case].append(took)
        subprocess.run([name, "worker", "stop"], env=working, capture_output=True, check=False)
        nothing = middle(spent["python -c pass"])
        for case, times in spent.items():
            row(case, middle(times), middle(times) / nothing, WANTED.get(case, ""))
        first = [mcp(env, question) for _ in range(3)]
        for case in first[0]:
            cost = middle([one[case] for one in first])
            spent[case] = [cost]
            row(case + ", so far", cost, cost / nothing, 500 if "first" in case else "")
        keep("processes", {case: middle(times) for case, times in spent.items()})


TOOLS = {"pip", "setuptools", "pkg_resources", "_distutils_hack"}


def install(_: list[int]) -> None:
    """Size and packages of the default install in a new environment."""
    head("The default install", "what", "value", "wanted")
    with tempfile.TemporaryDirectory() as folder:
        venv.create(folder, with_pip=True)
        python = Path(folder) / "bin" / "python"
        root = Path(__file__).parent.parent
        quiet = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        subprocess.run([*quiet, str(root)], check=True)
        listing = "import importlib.metadata as m; print(len({d.name for d in m.distributions()}))"
        count = subprocess.run(
            [str(python), "-c", listing], capture_output=True, text=True, check=True
        )
        site = next(Path(folder).glob("lib/python*/site-packages"))
        size = sum(
            file.stat().st_size
            for file in site.rglob("*")
            if file.is_file() and file.relative_to(site).parts[0].split("-")[0] not in TOOLS
        )
        row("size, without pip and setuptools", f"{size / 1e6:.0f} MB", "<= 125 MB")
        row("packages, without pip and setuptools", int(count.stdout) - 2, "<= 12")
