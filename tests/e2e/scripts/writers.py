"""Starts processes that work on a space, each on one line of its input; tells their ids.

    write PATH LOG PREFIX COUNT    puts COUNT memories, 0 for ever; logs each when it is safe
    open PATH LOG GO               waits for the file GO, opens the space, logs what it found

Everything is imported once and the workers are forked, so that starting one costs
little. This process itself never opens a space.
"""

from __future__ import annotations

import os
import random
import signal
import sys
import time
import traceback
from datetime import UTC, datetime
from pathlib import Path

import numpy as np

from bethink.model import Entity, Item
from bethink.ports import Embedding, Mention, Record
from bethink.store.sqlite import SqliteStore

DIM = 16


def make_record(item_id: str, rng: random.Random) -> Record:
    words = " ".join(rng.choice(("tea", "coffee", "vault", "key", item_id)) for _ in range(20))
    vector = np.array([rng.gauss(0, 1) for _ in range(DIM)], dtype=np.float32)
    name = rng.choice(("Ana", "Ben", "Cleo"))
    return Record(
        Item(item_id, f"{item_id} says {words}", datetime.now(UTC), "writer"),
        fingerprint=item_id,
        sketch=(rng.getrandbits(40), rng.getrandbits(40)),
        embedding=Embedding(vector / np.linalg.norm(vector), b"tokens"),
        model="writers/16",
        mentions=(Mention(Entity(f"person:{name.lower()}", "person", name)),),
    )


def write(path: str, log: int, prefix: str, count: str) -> None:
    rng = random.Random(prefix)
    store = SqliteStore.open(Path(path), space="writers")
    done = 0
    while not int(count) or done < int(count):
        batch = [make_record(f"{prefix}-{done + n}", rng) for n in range(rng.choice((1, 1, 3)))]
        batch = batch[: int(count) - done] if int(count) else batch
        kept = store.items.put(batch, actor=prefix, now=datetime.now(UTC))
        os.write(log, "".join(f"{one.id}\n" for one in kept).encode())
        done += len(batch)
    store.close()
    os.write(log, b"done\n")


def open_at(path: str, log: int, go: str) -> None:
    while not Path(go).exists():
        time.sleep(0.001)
    store = SqliteStore.open(Path(path), space="race")
    store.items.put(
        [make_record(f"p{os.getpid()}", random.Random(0))], actor="race", now=datetime.now(UTC)
    )
    store.close()
    os.write(log, b"done\n")


def work(command: str, path: str, log_path: str, *rest: str) -> None:
    log = os.open(log_path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    try:
        {"write": write, "open": open_at}[command](path, log, *rest)
    except BaseException:  # noqa: BLE001 - the test must hear of whatever it was
        os.write(log, f"error {traceback.format_exc()!r}\n".encode())
        os._exit(1)
    os._exit(0)


def main() -> None:
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    for line in sys.stdin:
        child = os.fork()
        if child == 0:
            work(*line.rstrip("\n").split("\t"))
        sys.stdout.write(f"{child}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
