"""Migrations: each step whole, a copy before the first, nothing twice."""

from __future__ import annotations

import stat
from pathlib import Path

import apsw
import pytest
from old_schema import bring_back

from bethink import Memory
from bethink.models.embed.encoder import EncoderEmbedder
from bethink.store.sqlite import SqliteStore
from bethink.store.sqlite.files import backups
from bethink.store.sqlite.schema import (
    SCHEMA_VERSION,
    Migration,
    migrate,
    migrations,
    schema_version,
)
from bethink.testing import FixedClock
from records import NOW, record

NEXT = Migration(SCHEMA_VERSION + 1, "CREATE TABLE extra (x); INSERT INTO extra VALUES (1)")
BROKEN = Migration(SCHEMA_VERSION + 2, "CREATE TABLE more (x); SELECT nonsense")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A space of today with one memory."""
    store = SqliteStore.open(tmp_path / "a[b]*.db", space="test")
    store.items.put([record("a")], actor="x", now=NOW)
    store.close()
    return tmp_path / "a[b]*.db"


def test_the_numbered_files_lead_to_the_version_we_know() -> None:
    """One after the other, without a gap."""
    assert [step.version for step in migrations()] == list(range(1, SCHEMA_VERSION + 1))


def content(db: apsw.Connection) -> list[object]:
    """Every table of a space with its rows, and the settings in its head."""
    tables = db.execute("SELECT type, name, sql FROM sqlite_schema ORDER BY type, name").fetchall()
    rows = {
        name: db.execute(f'SELECT * FROM "{name}"').fetchall()
        for kind, name, sql in tables
        if kind == "table" and not str(sql).startswith("CREATE VIRTUAL")
    }
    heads = ("user_version", "page_size", "auto_vacuum", "encoding")
    return [tables, rows, *(db.execute(f"PRAGMA {name}").get for name in heads)]


def test_every_space_in_memory_is_what_the_migrations_make() -> None:
    """The first is migrated, the others are copied before anything is stored; none is shared."""
    migrated = apsw.Connection(":memory:")
    migrate(migrated, None, migrations())
    stores = [SqliteStore.open(None, space="test") for _ in range(3)]
    for store in stores:
        assert content(store._connections.for_thread()) == content(migrated)
        store.items.put([record("a")], actor="x", now=NOW)
        assert store.admin.count() == 1
        assert all(finding.ok for finding in store.admin.check())

    for store in stores:
        store.close()
    migrated.close()


def test_an_old_file_is_copied_before_it_is_changed(path: Path) -> None:
    """The copy is whole, private, and still of the old schema."""
    db = apsw.Connection(str(path))
    copy = migrate(db, path, [*migrations(), NEXT])

    assert schema_version(db) == SCHEMA_VERSION + 1
    assert copy == path.with_name(f"{path.name}.v{SCHEMA_VERSION}.bak")
    assert backups(path) == [copy]
    assert stat.S_IMODE(copy.stat().st_mode) == 0o600
    old = apsw.Connection(str(copy))
    assert schema_version(old) == SCHEMA_VERSION
    assert old.execute("SELECT id FROM item").get == "a"
    assert old.execute("PRAGMA integrity_check").get == "ok"
    old.close()
    db.close()


def test_an_up_to_date_file_is_left_alone(path: Path) -> None:
    """No copy, no change."""
    db = apsw.Connection(str(path))

    assert migrate(db, path, migrations()) is None
    assert backups(path) == []
    db.close()


def test_a_step_that_fails_leaves_the_one_before(path: Path) -> None:
    """And can be tried again."""
    db = apsw.Connection(str(path))
    with pytest.raises(apsw.SQLError):
        migrate(db, path, [NEXT, BROKEN])

    assert schema_version(db) == NEXT.version
    tables = {row[0] for row in db.execute("SELECT name FROM sqlite_master")}
    assert "extra" in tables
    assert "more" not in tables
    assert "words_config" not in tables  # of an index that this file no longer has
    migrate(db, path, [NEXT, BROKEN._replace(sql="CREATE TABLE more (x)")])
    assert schema_version(db) == BROKEN.version
    db.close()


def test_a_half_made_copy_is_made_again(path: Path) -> None:
    """A crash while copying leaves a part that the next attempt replaces."""
    part = path.with_name(f"{path.name}.v{SCHEMA_VERSION}.bak.part")
    part.write_bytes(b"half")
    db = apsw.Connection(str(path))
    migrate(db, path, [NEXT])

    assert not part.exists()
    assert len(backups(path)) == 1
    db.close()


def test_how_memories_stood_is_read_from_the_journal(tmp_path: Path) -> None:
    """Where it tells of changes; what it does not tell of has stood so since its last
    revision began."""
    db = apsw.Connection(str(tmp_path / "old.db"))
    migrate(db, None, migrations()[:1])
    put = """
        INSERT INTO item (id, rev, level, kind, text, source, source_class, writer, trust,
            integrity, credibility, classification, stored_at, live_from, live_to, status,
            fingerprint, content_hash)
        VALUES (?, ?, 'item', 'note', 'x', 's', 'user', 'w', 2, 2, 6, 1, 10, ?, ?, ?, 'f', 'h')
    """
    db.executemany(
        put,
        [
            *(("told", 1, 10, 20, "active"), ("told", 2, 20, None, "superseded")),
            *(("untold", 1, 10, 30, "active"), ("untold", 2, 30, None, "quarantined")),
            *(("plain", 1, 10, None, "active"), ("back", 1, 10, None, "active")),
        ],
    )
    lines = [(15, "told", "superseded"), (16, "told", "active"), (25, "told", "superseded")]
    lines += [(12, "back", "quarantined"), (12, "back", "active"), (13, "gone", "superseded")]
    db.executemany(
        "INSERT INTO event (at, kind, item, actor, detail, chain) VALUES (?, 'status', ?, 'x', ?, '')",
        lines,
    )
    migrate(db, None, migrations())

    assert list(db.execute("SELECT * FROM status_change")) == [
        ("back", 12, "active"),
        ("told", 15, "superseded"),
        ("told", 16, "active"),
        ("told", 25, "superseded"),
        ("untold", 30, "quarantined"),
    ]
    db.close()


def test_vectors_stay_and_long_memories_wait_for_passages(tmp_path: Path) -> None:
    """What is short lacks nothing; a long one has its vector until a reindex."""
    db = apsw.Connection(str(tmp_path / "old.db"))
    migrate(db, None, migrations()[:2])
    db.execute("INSERT INTO model (mid, name, dim, slots) VALUES (1, 'old', 8, 2)")
    for rid, text in enumerate(("short", "long words " * 80), start=1):
        db.execute(
            """
            INSERT INTO item (rid, id, level, kind, text, source, source_class, writer, trust,
                integrity, credibility, classification, stored_at, live_from, length,
                fingerprint, content_hash)
            VALUES (?, ?, 'item', 'note', ?, 's', 'user', 'w', 2, 2, 6, 1, 1, 1, ?, 'f', 'h')
            """,
            (rid, f"m{rid}", text, len(text.split())),
        )
        db.execute(
            "INSERT INTO vector (rid, mid, slot, data, tokens) VALUES (?, 1, ?, ?, ?)",
            (rid, rid - 1, bytes([rid] * 16), b"t"),
        )

    migrate(db, None, migrations())

    kept = list(db.execute("SELECT key, rid, mid, slot, data, tokens, passages FROM vector"))
    assert kept == [
        (1, 1, 1, 0, bytes([1] * 16), b"t", 0),
        (2, 2, 1, 1, bytes([2] * 16), b"t", None),
    ]
    assert db.execute("SELECT slots, passages FROM model").get == (2, 0)
    assert list(db.execute("PRAGMA foreign_key_check")) == []
    db.close()


def test_names_get_the_classification_of_their_memories(tmp_path: Path) -> None:
    """A name known from secret memories only is secret; keys stay with their memories."""
    db = apsw.Connection(str(tmp_path / "old.db"))
    migrate(db, None, migrations()[:3])
    for name, levels in (("open", (1, 3)), ("secret", (3,))):
        entity = f"person:{name}"
        db.execute(
            "INSERT INTO entity (id, kind, name, created_at) VALUES (?, 'person', ?, 1)",
            (entity, name),
        )
        db.execute("INSERT INTO alias (alias, entity) VALUES (?, ?)", (name, entity))
        for level in levels:
            item = f"{name}{level}"
            db.execute(
                """
                INSERT INTO item (id, level, kind, text, source, source_class, writer, trust,
                    integrity, credibility, classification, stored_at, live_from,
                    fingerprint, content_hash)
                VALUES (?, 'item', 'note', 'x', 's', 'user', 'w', 2, 2, 6, ?, 1, 1, 'f', 'h')
                """,
                (item, level),
            )
            db.execute(
                "INSERT INTO link (src_kind, src, type, dst_kind, dst, source, created_at)"
                " VALUES ('item', ?, 'mentions', 'entity', ?, 'rule', 1)",
                (item, entity),
            )
            db.execute("INSERT INTO idempotency VALUES (?, ?, 'f', 1)", (f"key {item}", item))

    migrate(db, None, migrations())

    assert dict(db.execute("SELECT alias, classification FROM alias")) == {"open": 1, "secret": 3}
    assert list(db.execute("SELECT key, id FROM idempotency ORDER BY key")) == [
        ("key open1", "open1"),
        ("key open3", "open3"),
        ("key secret3", "secret3"),
    ]
    db.close()


def test_links_between_entities_belong_to_the_memory_that_states_them(tmp_path: Path) -> None:
    """Of what schema 6 kept only the last statement is known, and times of erased memories go."""
    path = tmp_path / "space.db"
    with Memory(SqliteStore.open(path, space="test"), embedder=None) as memory:
        first, last = (
            memory.remember(f"Ylva owns the Kestrel plan {where}").id for where in ("here", "there")
        )
        memory.link("person:ylva", "knows", "project:kestrel", context="since May")
        seen = {entity.id: entity for entity in memory.store.graph.entities()}
    bring_back(path, 6)
    db = apsw.Connection(str(path))
    db.execute("UPDATE entity SET created_at = 5, last_seen_at = last_seen_at + 99, momentum = 7")
    db.close()

    with Memory(SqliteStore.open(path, space="test"), embedder=None) as memory:
        links = memory.store.graph.links_of(["person:ylva"], incoming=False)
        assert {(link.type, link.context) for link in links} == {
            ("owns", last),
            ("knows", "since May"),
        }
        assert {entity.id: entity for entity in memory.store.graph.entities()} == seen
        assert [found for found in memory.doctor() if not found.ok] == []
        memory.forget(first, erase=True)
        assert memory.store.graph.links_of(["person:ylva"], ["owns"], incoming=False)
        memory.forget(last, erase=True)
        assert not memory.store.graph.links_of(["person:ylva"], ["owns"])


def test_a_thread_is_classified_by_its_memories(tmp_path: Path) -> None:
    """Schema 6 kept threads without a classification: the highest of their members is theirs."""
    path = tmp_path / "space.db"
    with Memory(SqliteStore.open(path, space="test"), embedder=None) as memory:
        shown, secret = (
            memory.remember(f"Kestrel is {level}", classification=level).id for level in (1, 3)
        )
        memory.put_thread("Open", [shown], id="open")
        memory.put_thread("Mixed", [shown, secret], id="mixed")
        threads = memory.store.activity.threads()
    bring_back(path, 6)

    with Memory(SqliteStore.open(path, space="test"), embedder=None) as memory:
        assert memory.store.activity.threads() == threads
        assert [thread.id for thread in memory.below(2).threads()] == ["open"]
        assert [found for found in memory.doctor() if not found.ok] == []


@pytest.mark.parametrize("version", [5, 6, 7])
def test_answers_stay_the_same_through_an_upgrade(tmp_path: Path, version: int) -> None:
    """Of a space with revisions, forgotten and secret memories, entities, links, tags, threads."""
    path = tmp_path / "space.db"
    clock = FixedClock(NOW)
    questions = ("who owns Kestrel?", "boats in the harbour", "what does Ylva like?", "lunch")

    def open_memory() -> Memory:
        store = SqliteStore.open(path, space="test")
        return Memory(store, embedder=EncoderEmbedder(), clock=clock)

    def answers(memory: Memory) -> list[object]:
        return [
            [(hit.item.id, hit.score) for hit in memory.recall(question, track=False, **how).hits]
            for question in questions
            for how in ({}, {"tag": "boat"}, {"entity": "Ylva"}, {"profile": "remind"})
        ]

    with open_memory() as memory:
        first = memory.remember("Ylva owns Kestrel, a boat in the harbour", tags=["boat"]).id
        memory.remember("It is certain that Ylva owns Kestrel", classification=3)
        memory.remember("Ylva likes tea and old boats", topic="likes", occurred_at=NOW)
        memory.forget(memory.remember("Lunch is at noon").id)
        memory.update(first, text="Ylva owns Kestrel, a blue boat in the harbour")
        memory.remember_many(f"Lamp {number} of the harbour is lit" for number in range(30))
        memory.put_thread("Open", [first], id="open")
        before, stats = answers(memory), memory.stats()
    bring_back(path, version)
    with open_memory() as memory:
        after = memory.stats()
        assert {name for name in stats if stats[name] != after[name]} <= {"bytes"}
        assert answers(memory) == before
        assert [found for found in memory.doctor() if not found.ok] == []
