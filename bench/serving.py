"""`bethink serve` under clients that keep their connections: CPU a request, and throughput."""

from __future__ import annotations

import http.client
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from corpus import Corpus
from measure import cpu_ms, head, keep, middle, p95, row
from processes import command, space_folder, spent_by
from stores import CACHE

from bethink import Memory

REQUESTS = 160


@contextmanager
def server(env: dict[str, str], *more: str) -> Iterator[tuple[int, int]]:
    """A running server: its process and its port."""
    process = subprocess.Popen(
        [command(), "serve", "--port", "0", "--rate", "0", "--json", *more], env=env,
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
    )  # fmt: skip
    assert process.stdout is not None
    told = json.loads(process.stdout.readline())
    try:
        yield told["pid"], int(told["url"].rpartition(":")[2])
    finally:
        process.terminate()
        process.wait(30)
        process.stdout.close()


def family(pid: int) -> list[int]:
    """A process and its children."""
    found = [pid]
    for task in Path(f"/proc/{pid}/task").iterdir():
        for child in (task / "children").read_text("ascii").split():
            found += family(int(child))
    return found


def ask(port: int, questions: list[str], waits: list[float]) -> None:
    """One client on one connection."""
    link = http.client.HTTPConnection("127.0.0.1", port)
    for question in questions:
        begun = time.perf_counter()
        body = json.dumps({"query": question})
        link.request("POST", "/v1/recall", body, {"Content-Type": "application/json"})
        answer = link.getresponse()
        answer.read()
        assert answer.status == 200, answer.status
        waits.append((time.perf_counter() - begun) * 1000)
    link.close()


# The clients are a process of their own, so that they do not share the server's interpreter.
CLIENT = """
import sys; sys.path.insert(0, sys.argv[1])
import json, serving
print(json.dumps(serving.together(int(sys.argv[2]), int(sys.argv[3]), json.loads(sys.argv[4]))))
"""


def together(port: int, clients: int, questions: list[str]) -> dict[str, Any]:
    """So many clients at once share the questions."""
    waits: list[float] = []
    parts = [questions[place::clients] for place in range(clients)]
    threads = [threading.Thread(target=ask, args=(port, part, waits)) for part in parts]
    begun = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return {"seconds": time.perf_counter() - begun, "waits": waits}


def load(pid: int, port: int, clients: int, questions: list[str]) -> dict[str, float]:
    """The CPU of the server a request, requests a second, and how long a client waits."""
    before = sum(map(spent_by, family(pid)))
    here = str(Path(__file__).parent)
    words = [sys.executable, "-c", CLIENT, here, str(port), str(clients), json.dumps(questions)]
    found = json.loads(subprocess.run(words, capture_output=True, text=True, check=True).stdout)
    spent = sum(map(spent_by, family(pid))) - before
    return {
        "cpu": spent / len(questions),
        "rate": len(questions) / found["seconds"],
        "wait": middle(found["waits"]),
        "wait_p95": p95(found["waits"]),
    }


def walk_cpu(path: Path, questions: list[str]) -> float:
    """The mean CPU of the same questions asked in a process of ours."""
    with Memory.open(path=path) as memory:
        for question in questions[:20]:
            memory.recall(question)
        return cpu_ms(lambda: [memory.recall(one) for one in questions]) / len(questions)


def serve(sizes: list[int]) -> None:
    """One client and eight, with one process and with as many as there are cores."""
    asked = [question.text for question in Corpus(sizes[0]).questions(240)]
    warm, asked = asked[:40], asked[40 : 40 + REQUESTS]
    head(f"`bethink serve`, {sizes[0]:,} memories", "server", "clients", "CPU ms a request",
         "times the walk", "requests a second", "wait p50 ms", "p95")  # fmt: skip
    with tempfile.TemporaryDirectory(dir=CACHE) as folder:
        env = space_folder(Path(folder), sizes[0])
        path = Path(folder) / "data" / "spaces" / "bench.db"
        walk = walk_cpu(path, asked)
        row("none: the walk itself", "", walk, 1.0, "", "", "")
        cores = os.cpu_count() or 1
        for name, more in (("one process", ()), (f"--workers {cores}", ("--workers", str(cores)))):
            with server(env, *more) as (pid, port):
                together(port, 4, warm * 2)
                for clients in (1, 8):
                    one = load(pid, port, clients, asked)
                    keep("serve", {f"{name}, {clients}": one | {"walk": walk}})
                    row(name, clients, one["cpu"], one["cpu"] / walk, one["rate"], one["wait"],
                        one["wait_p95"])  # fmt: skip
