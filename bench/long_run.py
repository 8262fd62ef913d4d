"""The memory of `bethink serve` in a long run: `python bench/long_run.py --operations 60000`.

Sixteen clients keep their connections. Of ten operations eight recall, one stores a memory and
one forgets an earlier one of the same client, so that as many can be recalled as before; the
file keeps what was forgotten, with its vector. Half of the questions are new ones.

What files take is counted by share: it changes with the other processes that use the same
libraries. What the server has of its own does not.
"""

from __future__ import annotations

import argparse
import http.client
import json
import tempfile
import threading
import time
from collections import deque
from itertools import count
from pathlib import Path
from typing import Any

from corpus import Corpus
from processes import space_folder
from serving import family, server

MEMORIES = 3_000
KEPT = 20
MARKS = (1_000, 2_000, 5_000)


def proportional_mb(pid: int, kind: str = "Pss") -> float:
    """What the process and its children hold, shared pages by share."""
    told = (Path(f"/proc/{one}/smaps_rollup").read_text("ascii") for one in family(pid))
    return sum(int(text.partition(f"\n{kind}:")[2].split()[0]) for text in told) / 1024


class Client(threading.Thread):
    """One client on one connection, until so many operations of all are done."""

    def __init__(self, port: int, place: int, done: Any, until: int) -> None:
        super().__init__(daemon=True)
        self.link = http.client.HTTPConnection("127.0.0.1", port)
        self.place, self.done, self.until = place, done, until
        self.corpus, self.stored = Corpus(200_000), deque[str]()
        self.questions = [one.text for one in Corpus(MEMORIES).questions(240)]

    def send(self, path: str, body: dict[str, Any]) -> Any:
        self.link.request("POST", path, json.dumps(body), {"Content-Type": "application/json"})
        answer = self.link.getresponse()
        told = answer.read()
        assert answer.status < 300, (answer.status, told)
        return json.loads(told)

    def run(self) -> None:
        turn = MEMORIES + self.place * 10_000
        for number in count(self.place):
            if next(self.done) >= self.until:
                return
            (said,) = self.corpus.turns(turn, turn + 1)
            turn += 1
            if number % 10 == 3:
                self.stored.append(self.send("/v1/memories", {"text": said.text})["id"])
            elif number % 10 == 8 and len(self.stored) > KEPT:
                ids = [self.stored.popleft()]
                token = self.send("/v1/forget", {"ids": ids})["token"]  # it only shows them
                assert self.send("/v1/forget", {"ids": ids, "token": token})["done"]
            else:
                asked = self.questions[number * 7 % 240], " ".join(said.text.split()[:10])
                self.send("/v1/recall", {"query": asked[number % 2]})


def main() -> None:
    """Print what the server holds as the operations go by."""
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("--operations", type=int, default=60_000)
    asked.add_argument("--clients", type=int, default=16)
    given = asked.parse_args()
    marks = iter([*MARKS, *range(10_000, given.operations + 1, 10_000)])
    with tempfile.TemporaryDirectory() as folder:
        env = space_folder(Path(folder), MEMORIES)
        with server(env) as (pid, port):
            done = count()
            clients = [
                Client(port, place, done, given.operations) for place in range(given.clients)
            ]
            for client in clients:
                client.start()
            mark, reached = next(marks), 0
            while any(client.is_alive() for client in clients):
                time.sleep(0.5)
                reached = int(repr(done)[6:-1])
                if reached >= mark:
                    own, mapped = (proportional_mb(pid, f"Pss_{one}") for one in ("Anon", "File"))
                    print(f"{mark:,}: {proportional_mb(pid):.0f} MB, of its own {own:.0f}, "
                          f"of mapped files {mapped:.0f}", flush=True)  # fmt: skip
                    mark = next(marks, given.operations * 2)


if __name__ == "__main__":
    main()
