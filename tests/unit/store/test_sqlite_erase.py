"""Erasing: not a byte of the memory is left in the file, the log or its index."""

from __future__ import annotations

import hashlib
import random
import subprocess
import sys
from pathlib import Path

import apsw
import numpy as np
import pytest

from bethink.ports import Embedding, Record, TextSearch
from bethink.store.sql import erase
from bethink.store.sqlite import SqliteStore, checkpoint, connection
from records import NOW, at, mention, record, scope

# In a process of its own: closing a handle of the file in this one would drop the
# locks of the connections under test.
COUNT = """
import pathlib, sys
needles = [bytes.fromhex(line) for line in sys.stdin.read().split()]
for path in sorted(pathlib.Path(sys.argv[1]).iterdir()):
    content = path.read_bytes().lower()
    for needle in needles:
        if needle.lower() in content:
            print(path.name, needle)
"""


def traces(folder: Path, needles: list[bytes]) -> list[str]:
    """Where any of the byte strings still stands, letter case aside."""
    ran = subprocess.run(
        [sys.executable, "-c", COUNT, str(folder)],
        input="\n".join(needle.hex() for needle in needles),
        capture_output=True,
        text=True,
        check=True,
    )
    return ran.stdout.splitlines()


def filler(rng: random.Random, item_id: str) -> Record:
    words = [hashlib.md5(bytes([rng.randrange(256)])).hexdigest()[:8] for _ in range(20)]
    return record(
        item_id,
        " ".join(words),
        topic=rng.choice(words),
        embedding=Embedding(vector_of(words[0]), rng.randbytes(30)),
        mentions=(mention(rng.choice(words)),),
    )


def canary(item_id: str, mark: str, **fields: object) -> Record:
    """A memory whose every derived part can be recognised."""
    return record(
        item_id,
        f"Zanzibar{mark} lighthouse keeps quokka{mark} accounts",
        about=f"about{mark}",
        original=f"original{mark}",
        caption=f"caption{mark}",
        topic=f"topic{mark}",
        speaker=f"speaker{mark}",
        session=f"session{mark}",
        subject=f"subject{mark}",
        metadata={f"meta{mark}": 1},
        tags=(f"tag{mark}",),
        embedding=Embedding(
            vector_of(mark),
            f"tokens{mark}".encode(),
            passages=tuple(
                Embedding(vector_of(f"{mark}{n}"), f"passage{mark}".encode()) for n in range(3)
            ),
        ),
        mentions=(mention(f"Person{mark}", "person", f"Nick{mark}"),),
        **fields,
    )


def vector_of(mark: str) -> np.ndarray:
    rng = np.random.default_rng(list(mark.encode()))
    vector = rng.standard_normal(64).astype(np.float32)
    return vector / np.linalg.norm(vector)


def needles(mark: str) -> list[bytes]:
    """The mark itself is in every text and word; the vectors as they are stored."""
    vectors = [vector_of(name) for name in (mark, *(f"{mark}{n}" for n in range(3)))]
    return [mark.encode(), *(vector.astype(np.float16).tobytes() for vector in vectors)]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "space" / "space.db"


def fill(store: SqliteStore, rng: random.Random, count: int, name: str) -> None:
    for start in range(0, count, 100):
        batch = [filler(rng, f"{name}{start + n}") for n in range(min(100, count - start))]
        store.items.put(batch, actor="x", now=NOW)


def test_no_byte_stays(path: Path) -> None:
    """With history, use, links, a key, and another connection open all the while."""
    rng = random.Random(1)
    store, other = (SqliteStore.open(path, space="test") for _ in range(2))
    fill(store, rng, 150, "before")
    store.items.put([canary("c", "xq7", key="keyxq7", sketch=(77,))], actor="x", now=NOW)
    fill(store, rng, 150, "after")
    revised = canary("c", "wv9", rev=2)
    store.items.put([revised], actor="x", now=at(hours=1))
    store.items.end(["c"], how="forgotten", actor="x", now=at(hours=2))
    store.items.restore(["c"], actor="x", now=at(hours=3))
    store.activity.note_use(["c"], at(hours=4))
    assert len(other.search.text(TextSearch("quokkawv9"), scope()).matches) == 1
    assert traces(path.parent, needles("xq7"))
    assert traces(path.parent, needles("wv9"))

    receipt = store.items.erase(["c"], actor="owner", now=at(hours=5))

    assert receipt.out_of_reach == ()
    assert receipt.removed["revisions"] == 3
    assert receipt.removed["vectors"] == 12
    assert receipt.removed["entities"] == 2
    assert traces(path.parent, [*needles("xq7"), *needles("wv9")]) == []
    assert other.search.text(TextSearch("quokkawv9"), scope()).matches == ()
    assert all(finding.ok for finding in other.admin.check())
    assert store.admin.count() == 300
    store.close()
    other.close()
    assert traces(path.parent, [*needles("xq7"), *needles("wv9")]) == []


def test_rows_that_moved_leave_no_old_copies(path: Path) -> None:
    """Trees are rebalanced as they grow and shrink; what stays in gaps is cleaned too."""
    rng = random.Random(2)
    store = SqliteStore.open(path, space="test")
    marks = {f"c{n}": hashlib.md5(str(n).encode()).hexdigest()[:14] for n in range(60)}
    for number, (item, mark) in enumerate(marks.items()):
        store.items.put([canary(item, mark)], actor="x", now=NOW)
        fill(store, rng, 12, f"f{number}-")
    store.items.erase([f"f{n}-{m}" for n in range(0, 60, 2) for m in range(12)], actor="x", now=NOW)

    store.items.erase(list(marks), actor="x", now=NOW)

    assert (
        traces(path.parent, [needle for mark in marks.values() for needle in needles(mark)]) == []
    )
    assert all(finding.ok for finding in store.admin.check())
    store.close()


def test_a_reader_in_the_way_is_told_and_the_next_opening_finishes(path: Path) -> None:
    """Somebody reads an old state: the log cannot be emptied, and the receipt says so."""
    store = SqliteStore.open(path, space="test")
    store.items.put([canary("c", "xq7"), record("b")], actor="x", now=NOW)
    reader = apsw.Connection(str(path))
    reader.execute("BEGIN")
    assert reader.execute("SELECT count(*) FROM item").get == 2

    receipt = store.items.erase(["c"], actor="x", now=NOW)

    assert any("log" in line for line in receipt.out_of_reach)
    assert [finding.name for finding in store.admin.check() if not finding.ok] == ["erasures"]
    reader.execute("COMMIT")
    reader.close()
    store.close()
    again = SqliteStore.open(path, space="test")
    assert traces(path.parent, needles("xq7")) == []
    assert all(finding.ok for finding in again.admin.check())
    again.close()


def test_an_erase_that_was_cut_off_is_finished(path: Path) -> None:
    """A crash between the transaction and the cleaning is made good at the next opening."""
    store = SqliteStore.open(path, space="test")
    store.items.put([canary("c", "xq7"), record("b")], actor="x", now=NOW)
    with store._connections.write_transaction() as db:
        erase.erase_items(db, ["c"], actor="x", now=0)
    store.close()

    SqliteStore.open(path, space="test").close()

    assert traces(path.parent, needles("xq7")) == []


@pytest.mark.parametrize("error", [apsw.FullError("full"), apsw.IOError("broken")])
def test_an_error_while_clearing_does_not_hide_that_it_is_erased(
    path: Path, monkeypatch: pytest.MonkeyPatch, error: apsw.Error
) -> None:
    """The memory is gone: there is a receipt, which names what may be left of its bytes."""
    store = SqliteStore.open(path, space="test")
    store.items.put([canary("c", "xq7"), record("b")], actor="x", now=NOW)

    def fail(*_: object, **__: object) -> bool:
        raise error

    with monkeypatch.context() as patched:
        patched.setattr(checkpoint, "empty_log", fail)
        receipt = store.items.erase(["c"], actor="x", now=NOW)
        store.close()
        # The store can be read all the same.
        with_error = SqliteStore.open(path, space="test")
        assert with_error.items.get(["b", "c"]).keys() == {"b"}
        with_error.close()

    assert receipt.ids == ("c",)
    assert any("cleared at the next opening" in line for line in receipt.out_of_reach)
    assert not any("nothing was saved" in line for line in receipt.out_of_reach)
    SqliteStore.open(path, space="test").close()
    assert traces(path.parent, needles("xq7")) == []


def test_copies_from_before_a_migration_are_named(path: Path) -> None:
    """They are out of reach, and the receipt says where they are."""
    store = SqliteStore.open(path, space="test")
    store.items.put([record("a")], actor="x", now=NOW)
    path.with_name("space.db.v1.bak").touch()

    receipt = store.items.erase(["a"], actor="x", now=NOW)

    assert receipt.out_of_reach == ("the copy space.db.v1.bak",)
    store.close()


def test_what_was_made_from_it_is_named(path: Path) -> None:
    """A child keeps living without its parent; its own hash is still right."""
    store = SqliteStore.open(path, space="test")
    store.items.put([record("a"), record("child", parent="a")], actor="x", now=NOW)
    store.items.put([record("child", "second", rev=2, parent="a")], actor="x", now=NOW)

    receipt = store.items.erase(["a"], actor="x", now=NOW)

    assert receipt.removed["parent pointers"] == 2
    assert receipt.out_of_reach == ("memory child was derived from it and is kept",)
    assert all(finding.ok for finding in store.admin.check())
    store.close()


def test_a_thread_goes_with_its_last_member(path: Path) -> None:
    """One that has others stays, and the receipt says that its headline does."""
    store = SqliteStore.open(path, space="test")
    store.items.put([record("a"), record("b")], actor="x", now=NOW)
    with store._connections.write_transaction() as db:
        for name in ("alone", "shared"):
            db.execute(
                "INSERT INTO thread VALUES (?, 'topic', NULL, 'headline', 'open', '', 0, 0, 0)",
                (name,),
            )
            db.execute("INSERT INTO thread_member VALUES (?, 'a', 'core', 1, 0, 0)", (name,))
            db.execute("INSERT INTO thread_event VALUES (?, 1, 'joined', 'a', 0, 1, 0)", (name,))
        db.execute("INSERT INTO thread_member VALUES ('shared', 'b', 'core', 1, 0, 0)")

    receipt = store.items.erase(["a"], actor="x", now=NOW)

    assert receipt.out_of_reach == ("thread shared keeps its headline",)
    assert store.admin.stats()["threads"] == 1
    assert receipt.removed["threads"] == 1
    store.close()


def test_a_momentum_that_an_earlier_version_kept_goes_with_what_it_was_made_from(
    path: Path,
) -> None:
    """Nothing reads it any more, but it stands in the file and in an export."""
    store = SqliteStore.open(path, space="test")
    both = [record(key, f"{key} met Ana", mentions=(mention("Ana"),)) for key in "ab"]
    store.items.put(both, actor="x", now=NOW)
    db = apsw.Connection(str(path))
    db.execute("UPDATE entity SET momentum = 4.5, momentum_at = 1772442000000")
    db.close()
    store.items.erase(["a"], actor="x", now=at(hours=1))
    kept = [one for one in store.admin.dump() if one["type"] == "entity"]
    store.close()

    assert [(one["momentum"], one.get("momentum_at")) for one in kept] == [(0.0, None)]


def test_erasing_nothing_is_harmless(path: Path) -> None:
    """An unknown id has no receipt and leaves no trace."""
    store = SqliteStore.open(path, space="test")
    before = store.admin.generation()

    assert store.items.erase(["nobody"], actor="x", now=NOW).ids == ()
    assert store.admin.generation() == before
    store.close()


# SQLite leaves copies of what has moved in the free part of pages; an erase clears all of them.


def marks_of(count: int) -> dict[str, str]:
    return {f"c{n}": hashlib.md5(str(n).encode()).hexdigest()[:14] for n in range(count)}


@pytest.mark.parametrize("reopened", [False, True], ids=["one process", "opened and closed"])
def test_an_erase_reaches_copies_of_what_has_moved(
    path: Path, monkeypatch: pytest.MonkeyPatch, reopened: bool
) -> None:
    """Whether the log was transferred many times before, or went with each closing."""
    monkeypatch.setitem(connection.PRAGMAS, "wal_autocheckpoint", 50)
    rng = random.Random(4)
    marks = marks_of(30)
    store = SqliteStore.open(path, space="test")
    for number, (item, mark) in enumerate(marks.items()):
        store.items.put([canary(item, mark)], actor="x", now=NOW)
        fill(store, rng, 12, f"f{number}-")
        if reopened:
            store.close()
            store = SqliteStore.open(path, space="test")

    store.items.erase(list(marks), actor="x", now=NOW)

    lines = [needle for mark in marks.values() for needle in needles(mark)]
    assert traces(path.parent, lines) == []
    assert all(finding.ok for finding in store.admin.check())
    store.close()
    assert traces(path.parent, lines) == []


def test_an_erase_of_one_writes_little(path: Path) -> None:
    """It writes pages of what it erases, not the file."""
    rng = random.Random(5)
    store = SqliteStore.open(path, space="test")
    fill(store, rng, 2_000, "f")
    store.items.erase(["f7"], actor="x", now=NOW)
    store.close()
    before = path.read_bytes()
    store = SqliteStore.open(path, space="test")

    store.items.erase(["f700"], actor="x", now=NOW)
    store.close()

    pages = [(before[at : at + 4096], at) for at in range(0, len(before), 4096)]
    after = path.read_bytes()
    changed = sum(page != after[at : at + 4096] for page, at in pages)
    assert 0 < changed < len(pages) / 2


def test_the_log_goes_to_the_file_when_it_is_long(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So it does not grow with every write."""
    monkeypatch.setitem(connection.PRAGMAS, "wal_autocheckpoint", 20)
    store = SqliteStore.open(path, space="test")
    sizes = []
    for number in range(40):
        fill(store, random.Random(number), 3, f"f{number}-")
        sizes.append(path.with_name(f"{path.name}-wal").stat().st_size)
    store.close()

    assert max(sizes) < 2 * sizes[0]


def copied(path: Path) -> Path:
    copy = path.with_name("copy.db")
    db = apsw.Connection(str(path))
    db.execute("VACUUM INTO ?", (str(copy),))
    db.close()
    return copy


def checkpointed_elsewhere(path: Path) -> Path:
    """Another program wrote, and its closing has transferred the log."""
    store = SqliteStore.open(path, space="test")
    store.items.put([canary("late", "late99")], actor="x", now=NOW)
    other = apsw.Connection(str(path))
    assert other.execute("SELECT count(*) FROM item").get > 0  # opens the log
    other.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
    other.close()
    store.close()
    return path


@pytest.mark.parametrize("change", [copied, checkpointed_elsewhere])
def test_an_erase_reaches_all_whoever_transferred_the_log(path: Path, change: object) -> None:
    """A copy, or a checkpoint of another program."""
    assert callable(change)
    rng = random.Random(6)
    marks = marks_of(20)
    store = SqliteStore.open(path, space="test")
    for number, (item, mark) in enumerate(marks.items()):
        store.items.put([canary(item, mark)], actor="x", now=NOW)
        fill(store, rng, 12, f"f{number}-")
    store.close()
    found = change(path)
    store = SqliteStore.open(found, space="test")

    store.items.erase(list(marks), actor="x", now=NOW)

    lines = [needle for mark in marks.values() for needle in needles(mark)]
    store.close()
    if found != path:
        path.unlink()
    assert traces(path.parent, lines) == []


def test_other_connections_write_no_old_page_back(path: Path) -> None:
    """What a second process has read of the pages before is read anew after an erase."""
    rng = random.Random(8)
    store, other = (SqliteStore.open(path, space="test") for _ in range(2))
    marks = marks_of(20)
    for number, (item, mark) in enumerate(marks.items()):
        store.items.put([canary(item, mark)], actor="x", now=NOW)
        fill(store, rng, 12, f"f{number}-")
    assert len(other.items.browse(scope(), limit=500)) > 200

    store.items.erase(list(marks), actor="x", now=NOW)
    fill(other, rng, 100, "g")

    lines = [needle for mark in marks.values() for needle in needles(mark)]
    other.close()
    store.close()
    assert traces(path.parent, lines) == []


def test_a_reader_of_an_old_state_hinders_no_later_erase(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The log of a reader cannot be transferred whole; what it held back is cleared later."""
    monkeypatch.setitem(connection.PRAGMAS, "wal_autocheckpoint", 20)
    rng = random.Random(7)
    store = SqliteStore.open(path, space="test")
    fill(store, rng, 50, "a")
    reader = apsw.Connection(str(path))
    reader.execute("BEGIN")
    assert reader.execute("SELECT count(*) FROM item").get == 50
    store.items.put([canary("c", "xq7")], actor="x", now=NOW)
    fill(store, rng, 300, "b")
    reader.execute("COMMIT")
    reader.close()

    store.items.erase(["c"], actor="x", now=NOW)

    assert traces(path.parent, needles("xq7")) == []
    store.close()


def test_a_file_with_a_page_map_is_rebuilt(path: Path) -> None:
    """Its map pages cannot be told from pages of a tree, so that nothing is cleared in them."""
    rng = random.Random(8)
    store = SqliteStore.open(path, space="test")
    store.items.put([canary("c", "xq7")], actor="x", now=NOW)
    fill(store, rng, 200, "a")
    store.close()
    db = apsw.Connection(str(path))
    db.execute("PRAGMA auto_vacuum = FULL")
    db.execute("VACUUM")
    db.close()
    store = SqliteStore.open(path, space="test")

    receipt = store.items.erase(["c"], actor="x", now=NOW)

    assert receipt.out_of_reach == ()
    assert traces(path.parent, needles("xq7")) == []
    assert all(finding.ok for finding in store.admin.check())
    store.close()
