"""Campaigns against a space: rotten bytes, power cuts, and a disk that fails at every step.

Each is short here and long with `make torture` (``TORTURE=20`` is twenty times as long, and
``TORTURE_SEED`` chooses other places). ``docs/reliability-tests.md`` has the figures.
"""

from __future__ import annotations

import os
import random
import re
import shutil
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import apsw
import pytest

from bethink import Memory
from bethink.config.settings import Settings
from bethink.errors import BethinkError
from bethink.model import Draft
from bethink.ports import TextSearch
from bethink.store.sqlite import SqliteStore
from bethink.store.sqlite.files import key_path
from faulty_disk import Fault, after_power_cut, faulty_disk
from records import NOW, record, scope

LENGTH = int(os.environ.get("TORTURE", "1"))
SEED = int(os.environ.get("TORTURE_SEED", "1"))
pytestmark = pytest.mark.timeout(600 if LENGTH == 1 else 0)
WORDS = [
    "tea",
    "cup",
    "harbour",
    "crane",
    "invoice",
    "ledger",
    "parser",
    "yellow",
    "March",
    "deploy",
    "queue",
    "glass",
]


def texts(count: int) -> list[str]:
    dice = random.Random(7)
    return [
        f"memory {n} of {' '.join(dice.choice(WORDS) for _ in range(12))} é{n}ö"
        for n in range(count)
    ]


def open_memory(path: Path) -> Memory:
    return Memory.open("space", path=path, embedder="hash", settings=Settings())


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A closed space with revisions, entities, links, vectors and forgotten memories."""
    path = tmp_path_factory.mktemp("torture") / "space.db"
    with open_memory(path) as memory:
        ids = [one.id for one in memory.remember_many([Draft(text) for text in texts(40)])]
        memory.update(ids[3], text="memory 3 is about a revised kettle")
        memory.forget(ids[4])
        memory.remember("Alice works with Bob on the ledger", tags=["work"])
        memory.recall("harbour crane", track=True)
    return path


# Rot


def everything(memory: Memory) -> dict[str, Callable[[], Any]]:
    """What a user may ask of a space; each gives the texts it shows."""
    return {
        "recall": lambda: [hit.item.text for hit in memory.recall("harbour crane invoice").hits],
        "abmind": lambda: [
            hit.item.text for hit in memory.recall("harbuor ledger", profile="abmind").hits
        ],
        "meaning": lambda: [hit.item.text for hit in memory.recall("ledger of Alice").hits],
        "list": lambda: [item.text for item in memory.browse(limit=100)],
        "export": lambda: [r["text"] for r in memory.export() if r["type"] == "item"],
        "stats": lambda: no_texts(memory.stats()),
        "entities": lambda: no_texts(memory.entities()),
        "doctor": lambda: no_texts(memory.doctor()),
    }


def no_texts(_: object) -> list[str]:
    """The texts in an answer that has none."""
    return []


def repair(memory: Memory) -> list[str]:
    return no_texts(memory.doctor(repair=True))


def tell(line: str) -> None:
    """Print a figure for `make torture`, which shows the output."""
    sys.stdout.write(f"{line}\n")


def attempt(call: Callable[[], Any], failed: Counter[str], name: str) -> list[str] | None:
    try:
        found: list[str] = call()
    except BethinkError as error:
        failed[f"{name}: {type(error).__name__}"] += 1
        return None
    return found


def flips(content: bytes, count: int, seed: int) -> Iterator[bytes]:
    """Copies of a file, each with sixteen bytes in a row that are others."""
    dice = random.Random(seed)
    for _ in range(count):
        at = dice.randrange(100, len(content) - 16)
        rotten = bytes(dice.randrange(256) for _ in range(16))
        yield content[:at] + rotten + content[at + 16 :]


def bits(content: bytes, count: int, seed: int) -> Iterator[bytes]:
    """Copies of a file with one bit flipped inside the text of a memory."""
    dice = random.Random(seed)
    places = [
        start + offset
        for text in texts(40)
        if (start := content.find(text.encode())) >= 0
        for offset in range(len(text.encode()))
    ]
    for _ in range(count):
        changed = bytearray(content)
        changed[dice.choice(places)] ^= 1 << dice.randrange(8)
        yield bytes(changed)


PAGE = 4096
# What rot may leave in a column: values of every type, and such that only look right.
ODD_VALUES = [None, 0, 1, -1, 2**62, 1.5, "", "actiwe", "[1, 2]", '{"a":', b"", b"\xff\xfe"]


def zeroed(content: bytes, count: int, seed: int) -> Iterator[bytes]:
    """Copies of a file with one page full of zeros."""
    dice = random.Random(seed)
    for _ in range(count):
        at = dice.randrange(1, len(content) // PAGE) * PAGE
        yield content[:at] + bytes(PAGE) + content[at + PAGE :]


def swapped(content: bytes, count: int, seed: int) -> Iterator[bytes]:
    """Copies of a file with two pages exchanged."""
    dice = random.Random(seed)
    for _ in range(count):
        first, second = (n * PAGE for n in sorted(dice.sample(range(1, len(content) // PAGE), 2)))
        changed = bytearray(content)
        changed[first : first + PAGE] = content[second : second + PAGE]
        changed[second : second + PAGE] = content[first : first + PAGE]
        yield bytes(changed)


def torn(content: bytes, count: int, seed: int) -> Iterator[bytes]:
    """Copies of a file with one sector of noise."""
    dice = random.Random(seed)
    for _ in range(count):
        at = dice.randrange(PAGE, len(content) - 512) // 512 * 512
        yield content[:at] + dice.randbytes(512) + content[at + 512 :]


def columns(content: bytes, count: int, seed: int) -> Iterator[bytes]:
    """Copies of a file with an odd value in a column of a table, past every constraint."""
    dice = random.Random(seed)
    db = apsw.Connection(":memory:")
    for _ in range(count):
        db.deserialize("main", content[:18] + b"\x01\x01" + content[20:])  # not a log, memory
        strict = "SELECT name, sql FROM sqlite_schema WHERE sql LIKE '%STRICT%' ORDER BY name"
        table, sql = dice.choice(db.execute(strict).fetchall())
        column = dice.choice([row[1] for row in db.execute(f"PRAGMA table_info({table})")])
        loose = re.sub(r"CHECK \((?:[^()]|\([^()]*\))*\)|NOT NULL|STRICT,?", "", sql)
        _set_schema(db, table, loose)
        db.execute("PRAGMA ignore_check_constraints = 1").fetchall()
        rows = db.execute(f"SELECT count(*) FROM {table}").get
        where = f"({column}) IN (SELECT {column} FROM {table} LIMIT 1 OFFSET ?)"
        with suppress(apsw.ConstraintError, apsw.MismatchError):
            db.execute(
                f"UPDATE OR REPLACE {table} SET {column} = ? WHERE {where}",
                (dice.choice(ODD_VALUES), dice.randrange(max(rows, 1))),
            )
        _set_schema(db, table, sql)
        stored = db.serialize("main")
        yield stored[:18] + content[18:20] + stored[20:]


def _set_schema(db: apsw.Connection, table: str, sql: str) -> None:
    db.execute("PRAGMA writable_schema = 1").fetchall()
    db.execute("UPDATE sqlite_schema SET sql = ? WHERE name = ?", (sql, table))
    db.execute("PRAGMA writable_schema = RESET").fetchall()


KINDS = [flips, bits, zeroed, swapped, torn, columns]


def assert_importable(lines: list[Any], path: Path) -> None:
    """What a damaged space exports makes another one that is whole."""
    for side in ("", "-wal", "-shm", ".key", ".lock"):
        path.with_name(path.name + side).unlink(missing_ok=True)
    with open_memory(path) as other:
        other.import_(lines)
        assert [one for one in other.doctor() if not one.ok] == []
        live = {x["text"] for x in lines if x["type"] == "item" and x.get("live_to") is None}
        assert {item.text for item in other.browse(limit=100)} == live


@pytest.mark.parametrize("kind", KINDS, ids=[kind.__name__ for kind in KINDS])
def test_rot_is_told_and_the_rest_stays_readable(
    stored: Path, tmp_path: Path, kind: Callable[[bytes, int, int], Iterator[bytes]]
) -> None:
    """Nothing but a named error; no text but those stored; what is missing is named."""
    with open_memory(stored) as memory:
        known = {r["text"] for r in memory.export() if r["type"] == "item"}
        listed = {item.text for item in memory.browse(limit=100)}
    failed: Counter[str] = Counter()
    unreadable = 0
    path = tmp_path / "rotten.db"
    for content in kind(stored.read_bytes(), 8 * LENGTH, SEED):
        for side in ("-wal", "-shm"):
            path.with_name(path.name + side).unlink(missing_ok=True)
        path.write_bytes(content)
        try:
            memory = open_memory(path)
        except BethinkError:
            unreadable += 1
            continue
        with memory:
            for name, call in everything(memory).items():
                shown = attempt(call, failed, name)
                assert not set(shown or []) - known, name
                if name == "list" and shown is not None and set(shown) != listed:
                    assert any(not one.ok for one in memory.doctor())
            saved = attempt(lambda: list(memory.export()), failed, "saving")  # noqa: B023 - at once
            if saved is not None:
                assert_importable(saved, tmp_path / "other.db")
            attempt(partial(repair, memory), failed, "repair")
            for name, call in everything(memory).items():
                shown = attempt(call, failed, f"repaired {name}")
                assert not set(shown or []) - known, f"{name} after a repair"
    tell(f"{kind.__name__}: {unreadable} refused at opening, {dict(failed)}")
    # A page of the file's own structure may hit every call; that is rare, and said.
    assert unreadable + failed["list: StoreDamaged"] <= 2 + 3 * LENGTH


# Power cuts and failing disks


@dataclass
class Ledger:
    """What was acknowledged: which text each memory must have, and which are gone."""

    texts: dict[str, str] = field(default_factory=dict)
    gone: set[str] = field(default_factory=set)
    maybe: set[str] = field(default_factory=set)

    def copy(self) -> Ledger:
        return Ledger(dict(self.texts), set(self.gone), set(self.maybe))


def script(store: SqliteStore, ledger: Ledger) -> Iterator[Callable[[], None]]:
    """Every kind of write, each with what holds once it is acknowledged."""

    def put(*ids: str, rev: int = 1) -> Callable[[], None]:
        def run() -> None:
            ledger.maybe.update(ids)
            said = {one: f"text of {one}, revision {rev}, about tea and {one}" for one in ids}
            store.items.put(
                [record(k, t, rev=rev, key=k if rev == 1 else None) for k, t in said.items()],
                actor="x",
                now=NOW,
            )
            ledger.texts.update(said)
            ledger.maybe.difference_update(ids)

        return run

    def end(item: str) -> None:
        ledger.maybe.add(item)
        store.items.end([item], how="forgotten", actor="x", now=NOW)

    def erase(item: str) -> None:
        ledger.maybe.add(item)
        store.items.erase([item], actor="x", now=NOW)
        ledger.texts.pop(item, None)
        ledger.gone.add(item)
        ledger.maybe.discard(item)

    yield put("a")
    yield put("b", "c", "d")
    yield put("a", rev=2)
    yield lambda: store.activity.note_use(["a", "b"], NOW)
    yield lambda: end("c")
    yield lambda: erase("b")
    yield put(*(f"e{n}" for n in range(12)))
    yield lambda: erase("e3")
    yield put("f")


def verify(path: Path, ledger: Ledger) -> None:
    """A space opens, is whole, and has all that was acknowledged and nothing else."""
    store = SqliteStore.open(path, space="test")
    try:
        wrong = {one.name: one.detail for one in store.admin.check() if not one.ok}
        # A later opening completes an erase; the test itself wrote some files.
        assert not wrong.keys() - {"erasures", "permissions"}
        held = store.items.get([*ledger.texts, *ledger.gone, *ledger.maybe])
        for item, text in ledger.texts.items():
            assert item in ledger.maybe or held[item].text == text
        assert not ledger.gone & held.keys()
        store.items.put([record("after", "written afterwards")], actor="x", now=NOW)
        found = store.search.text(TextSearch("afterwards"), scope()).matches
        assert [match.item.id for match in found] == ["after"]
    finally:
        store.close()


@pytest.fixture
def base(tmp_path: Path) -> Path:
    """A closed space with a few memories."""
    path = tmp_path / "base" / "space.db"
    path.parent.mkdir()
    store = SqliteStore.open(path, space="test")
    store.items.put(
        [record(f"old{n}", f"old text {n} about tea") for n in range(20)], actor="x", now=NOW
    )
    store.close()
    return path


def test_a_power_cut_at_any_moment_loses_nothing_that_was_acknowledged(
    base: Path, tmp_path: Path
) -> None:
    """Whatever of the unsynced writes reached the disk, whole or by sector."""
    ledger = Ledger({f"old{n}": f"old text {n} about tea" for n in range(20)})
    known: list[tuple[int, Ledger]] = []
    with faulty_disk() as disk:
        disk.record(base)
        store = SqliteStore.open(base, space="test")
        for step in script(store, ledger):
            before = ledger.copy()
            step()
            assert disk.changes is not None
            # While it runs both states may be found.
            before.maybe |= {*ledger.texts, *ledger.gone} - {*before.texts, *before.gone}
            before.maybe |= {k for k, t in before.texts.items() if ledger.texts.get(k) != t}
            known += [(len(disk.changes), before), (len(disk.changes), ledger.copy())]
        assert disk.changes is not None
        changes, first = list(disk.changes), dict(disk.opened)
        store.close()
    dice = random.Random(SEED)
    states = 0
    for number in range(12 * LENGTH):
        cut = dice.randrange(len(changes) + 1)
        holds = next((one for end, one in known if end > cut), known[-1][1])
        path = tmp_path / f"cut{number}" / "space.db"
        path.parent.mkdir()
        shutil.copy(key_path(base), key_path(path))
        for name, content in after_power_cut(first, changes[:cut], dice).items():
            path.with_name(Path(name).name).write_bytes(content)
        verify(path, holds)
        shutil.rmtree(path.parent)
        states += 1
    tell(f"power cuts: {states} states after {len(changes)} changes, nothing lost")


FAULTS = {
    "a read fails": ("read", apsw.IOError, apsw.SQLITE_IOERR_READ),
    "a write fails": ("write", apsw.IOError, apsw.SQLITE_IOERR_WRITE),
    "the disk is full": ("write", apsw.FullError, apsw.SQLITE_FULL),
    "a sync fails": ("sync", apsw.IOError, apsw.SQLITE_IOERR_FSYNC),
    "a truncation fails": ("truncate", apsw.IOError, apsw.SQLITE_IOERR_TRUNCATE),
}


@pytest.mark.parametrize("lasting", [False, True], ids=["once", "from then on"])
@pytest.mark.parametrize("name", FAULTS)
def test_a_disk_that_fails_at_any_call_is_reported_and_does_no_harm(
    base: Path, tmp_path: Path, name: str, *, lasting: bool
) -> None:
    """Every call ends with its result or a named error; afterwards the space is whole."""
    operation, error, code = FAULTS[name]
    dice = random.Random(SEED)
    steps = list(range(1, 400)) if LENGTH > 1 else sorted(dice.sample(range(1, 60), 3))
    refused, points = 0, 0
    with faulty_disk() as disk:
        for step in steps:
            path = tmp_path / "run" / "space.db"
            shutil.rmtree(path.parent, ignore_errors=True)
            shutil.copytree(base.parent, path.parent)
            disk.fault = None
            store = SqliteStore.open(path, space="test")
            ledger = Ledger({f"old{n}": f"old text {n} about tea" for n in range(20)})
            fault = disk.fault = Fault(operation, step, error, code, lasting=lasting)
            for run in script(store, ledger):
                try:
                    run()
                except BethinkError:
                    refused += 1
            with suppress(BethinkError):
                store.search.text(TextSearch("tea"), scope())
            disk.fault = None
            with suppress(BethinkError):
                store.close()
            points += fault.fired
            verify(path, ledger)
            if not fault.fired:
                break
    tell(f"{name}, {'from then on' if lasting else 'once'}: {points} points, {refused} refusals")
