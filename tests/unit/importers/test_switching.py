"""What users of the emulated systems bring along: memories, links, kinds, times and use."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

import foreign
from bethink import Memory
from bethink.importers.importer import import_from
from bethink.model import Item


@pytest.fixture
def memory() -> Iterator[Memory]:
    with Memory.open(":memory:", embedder="none") as opened:
        yield opened


def at(*parts: int) -> datetime:
    return datetime(*parts, tzinfo=UTC)  # type: ignore[arg-type]


def stored(memory: Memory) -> dict[str, Item]:
    """Every memory by the first line of its text, superseded ones too."""
    items = memory.browse(limit=500, include_superseded=True)
    return {item.text.partition("\n")[0]: item for item in items}


def links(memory: Memory) -> set[tuple[str, str, str]]:
    """The links between memories, by the first lines of their texts."""
    items = {item.id: text for text, item in stored(memory).items()}
    found = memory.store.graph.links_of(sorted(items), incoming=False)
    ends = ((link.src.id, link.type, link.dst.id) for link in found)
    return {(items[src], kind, items[dst]) for src, kind, dst in ends if dst in items}


def remind_of_0_9(folder: Path) -> Path:
    """A database as versions 0.9 to 0.13 write it: JSON in a JSON column, twice encoded."""
    used = {"access_count": 7, "last_accessed": "2026-05-01T09:00:00", "decay_factor": 0.6}
    path = foreign.remind(folder, concepts=[{**foreign.CONCEPTS[0], **used}, foreign.CONCEPTS[1]])
    with foreign.database(path) as db:
        db.execute("CREATE TABLE entities (id TEXT PRIMARY KEY, type TEXT, display_name TEXT, "
                   "data JSON, created_at TIMESTAMP)")  # fmt: skip
        db.execute("CREATE TABLE mentions (episode_id TEXT, entity_id TEXT, created_at TIMESTAMP, "
                   "PRIMARY KEY (episode_id, entity_id))")  # fmt: skip
        for table in ("episodes", "concepts"):
            for own, data in db.execute(f"SELECT id, data FROM {table}").fetchall():
                twice = json.dumps(data)
                db.execute(f"UPDATE {table} SET data = ? WHERE id = ?", (twice, own))
        for own, name in (
            ("person:alice", "Alice Lind"),
            ("tool:vault", "Vault"),
            ("project:pier", "Pier"),
        ):
            db.execute("INSERT INTO entities (id, type, display_name, data) VALUES (?, ?, ?, '\"{}\"')",
                       (own, own.partition(":")[0], name))  # fmt: skip
        db.execute("INSERT INTO mentions VALUES ('e5d6e7f8', 'tool:vault', NULL)")
    return path


def test_remind_with_doubly_encoded_json(memory: Memory, tmp_path: Path) -> None:
    """Nothing is refused; entities of the mentions alone, their names, use and decay come."""
    tally = import_from(memory, remind_of_0_9(tmp_path))

    found = stored(memory)
    theft = found["Tokens of a week were stolen in the red-team exercise"]
    short = found["Short-lived tokens: Tokens live for an hour at most"]
    assert (tally.stored, tally.n_refused) == (6, 0)
    assert "tool:vault" in theft.entities
    assert "Alice Lind maintains login" in found
    assert "Pier (project)" in found
    assert (short.recalls, short.last_recalled_at, short.decay) == (7, at(2026, 5, 1, 9), 0.6)
    assert memory.store.graph.find_entities(("alice",), 5)[0][0].name == "Alice Lind"


def test_remind_evidence_conflicts_and_clusters(memory: Memory, tmp_path: Path) -> None:
    """Facts belong to their cluster and episode; evidence and open conflicts are links."""
    path = foreign.remind(tmp_path)
    with foreign.database(path) as db:
        db.execute("CREATE TABLE facts (id TEXT, cluster_id TEXT, statement TEXT, "
                   "source_episode_id TEXT, entity_ids TEXT)")  # fmt: skip
        db.executemany("INSERT INTO facts VALUES (?, 'c1', ?, 'e1a2b3c4', '[]')",
                       [("f1", "The key lasts a day"), ("f2", "The key lasts an hour")])  # fmt: skip
        db.execute("CREATE TABLE conflicts (id TEXT, fact_a_id TEXT, fact_b_id TEXT, status TEXT)")
        db.execute("INSERT INTO conflicts VALUES ('k', 'f1', 'f2', 'open')")
        db.execute("CREATE TABLE evidence (id TEXT, episode_id TEXT, concept_id TEXT, "
                   "link_type TEXT, strength REAL)")  # fmt: skip
        db.execute("INSERT INTO evidence VALUES ('v', 'e5d6e7f8', 'c1', 'supports', 0.7)")

    import_from(memory, path)

    concept = "Short-lived tokens: Tokens live for an hour at most"
    theft = "Tokens of a week were stolen in the red-team exercise"
    login = "Chose JWT for the login after comparing it with sessions"
    assert links(memory) >= {
        ("The key lasts a day", "contradicts", "The key lasts an hour"),
        ("The key lasts a day", "part_of", concept),
        ("The key lasts a day", "derives_from", login),
        (theft, "implies", concept),
    }


def test_use_is_taken_over_once(memory: Memory, tmp_path: Path) -> None:
    """A second import leaves what was used here since."""
    path = remind_of_0_9(tmp_path)
    import_from(memory, path)
    short = stored(memory)["Short-lived tokens: Tokens live for an hour at most"]
    memory.store.activity.note_use([short.id], at(2026, 6, 1))

    again = import_from(memory, path)

    assert (again.stored, again.updated, again.links) == (0, 0, 0)
    assert memory.get(short.id).recalls == 8
