"""What users of the emulated systems bring along: memories, links, kinds, times and use."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

import foreign
import foreign_systems
from bethink import Memory
from bethink.errors import Refused
from bethink.model import Item
from bethink.systems.remind.export import to_remind
from importing import import_from


@pytest.fixture
def memory() -> Iterator[Memory]:
    with Memory.open(":memory:", embedder="none") as opened:
        yield opened


def at(*parts: int) -> datetime:
    return datetime(*parts, tzinfo=UTC)  # type: ignore[arg-type]


def stored(memory: Memory) -> dict[str, Item]:
    """Every memory by the first line of its text, superseded ones too."""
    items = memory.browse(limit=500, include_superseded=True, include_expired=True)
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


def test_an_import_does_not_wear_out_what_was_stored_here(memory: Memory, tmp_path: Path) -> None:
    """A memory of one's own with the same text keeps its strength, however often it is imported."""
    own = memory.remember("Tokens live for a month")
    worn = {"access_count": 7, "last_accessed": "2026-05-01T09:00:00", "decay_factor": 0.1}
    concept = {"id": "c1", "summary": "Tokens live for a month", **worn}
    path = foreign.remind(tmp_path, concepts=[concept])
    tallies = [import_from(memory, path) for _ in range(2)]

    assert tallies[0].duplicates == 1
    assert (memory.get(own.id).recalls, memory.get(own.id).decay) == (0, 1.0)


def test_linksee_layers_edges_and_use(memory: Memory, tmp_path: Path) -> None:
    """Layers, importance, entities with keys, edges, JSON as it is, access counts."""
    tally = import_from(memory, foreign_systems.linksee(tmp_path))

    found = stored(memory)
    dry, enough = found["The pump must not run dry"], found["One pump is enough"]
    decision = next(item for item in found.values() if item.kind == "decision")
    assert (tally.stored, tally.edits, tally.n_refused) == (7, 2, 0)
    assert (dry.layer, dry.importance, dry.protected, dry.pinned) == ("caveat", 0.95, True, False)
    assert (dry.recalls, dry.last_recalled_at, dry.trust) == (4, at(2026, 3, 3, 9), 1)
    assert dry.metadata["pinned"] is True
    assert json.loads(decision.text)["altitude"] == "architecture"
    assert enough.status == "superseded"
    assert "Ines Rocha maintains Pump Station" in found
    assert "Tidewater (company)" in found
    assert memory.store.graph.find_entities(("pumps.example.org",), 5)[0][0].name == "Pump Station"
    assert ("No pump starts without water", "derives_from", dry.text) in links(memory)


def test_linksee_file_history(memory: Memory, tmp_path: Path) -> None:
    """Every edit of a file with its reason, and the memory that it belongs to."""
    import_from(memory, foreign_systems.linksee(tmp_path))

    history = memory.recall_file("pump.ts")

    assert (history.edits, history.sessions) == (2, ("s-1",))
    assert history.intents[0].text == "keep the pump from running dry"
    assert history.items == (stored(memory)["The pump must not run dry"].id,)


def test_rows_with_equal_numbers_are_not_the_same(memory: Memory, tmp_path: Path) -> None:
    """Two databases of one program both begin at 1."""
    other = [
        {"entity_id": 1, "layer": "goal", "content": "Sell the boat", "created_at": 1_780_000_000}
    ]
    (tmp_path / "b").mkdir()

    import_from(memory, foreign_systems.linksee(tmp_path))
    import_from(memory, foreign_systems.linksee(tmp_path / "b", other))

    assert {"The pump must not run dry", "Sell the boat"} <= stored(memory).keys()


def test_abmind_keeps_both_languages_and_its_scales(memory: Memory, tmp_path: Path) -> None:
    """Original, emotion, flags, classification, validity, owner, recalls with their times."""
    import_from(memory, foreign_systems.abmind(tmp_path))

    found = stored(memory)
    flood, paid = found["The cellar flooded in spring"], found["The insurance pays for floods"]
    assert flood.original == "Tavasszal elárasztotta a víz a pincét"
    assert (flood.kind, flood.topic, flood.tier) == ("event", "house", "core")
    assert (flood.emotion, flood.classification, flood.trust, flood.confidence) == (-4, 2, 1, 0.8)
    assert flood.importance == pytest.approx(0.6)
    assert (flood.metadata["emotion_tags"], flood.metadata["importance_flags"]) == (
        ["fear"],
        ["pivot"],
    )
    assert flood.user == "mara"
    usage = memory.store.activity.usage([flood.id], at(2026, 3, 20))[flood.id]
    assert (usage.recalls, usage.stamps) == (5, (at(2026, 3, 3, 9), at(2026, 3, 11, 9)))
    assert (paid.valid_from, paid.valid_to) == (at(2025, 1, 1), at(2026, 1, 1))
    assert (flood.text, "derives_from", flood.original) in links(memory)
    assert "mara owns pince" in found


def test_abmind_folder_with_notes(memory: Memory, tmp_path: Path) -> None:
    """The notes of a day come with its period; a second import adds nothing."""
    home = foreign_systems.abmind_folder(tmp_path)

    first, second = import_from(memory, tmp_path), import_from(memory, home)

    note = stored(memory)["# Monday"]
    assert (first.kind, second.stored, second.updated) == ("abmind", 0, 0)
    assert (note.kind, note.tags, note.occurred_at) == ("summary", ("daily",), at(2026, 3, 2))


def test_abmind_refuses_what_is_encrypted(memory: Memory, tmp_path: Path) -> None:
    """A memory by its row, a back-up by its name, and everything else is stored."""
    secret = {**foreign_systems.ABMIND_MEMORIES[1], "encrypted": 1, "content_en": "9f3a"}
    path = foreign_systems.abmind(tmp_path, [foreign_systems.ABMIND_MEMORIES[0], secret])
    backup = tmp_path / "backup.abm"
    backup.write_bytes(b"ABMIND\x00\x01\x02\x00rest")

    tally = import_from(memory, path)

    assert (tally.stored, [str(one.error.message) for one in tally.refused]) == (
        4,
        ["it is encrypted"],
    )
    with pytest.raises(Refused, match="encrypted back-up of abmind"):
        import_from(memory, backup)


def test_siftcoder_summaries_with_their_events(memory: Memory, tmp_path: Path) -> None:
    """An event is the source of its summary; the tool, supersessions and pins are known."""
    tally = import_from(memory, foreign_systems.siftcoder(tmp_path))

    found = stored(memory)
    old, new = (
        found["Fixed a null token in auth.ts"],
        found["Fixed the null token in auth.ts for good"],
    )
    event = memory.get(new.parent or "")
    assert (tally.stored, tally.edits, tally.n_refused) == (5, 2, 0)
    assert (old.status, new.status, new.importance) == ("superseded", "active", 0.9)
    assert (new.topic, new.metadata["tool"], new.confidence) == ("harbour", "Edit", 0.7)
    assert (event.text, event.level, event.kind) == ("Edit: /w/auth.ts", "raw", "event")
    assert ("Bash: npm test auth", "derives_from", "Edit: /w/auth.ts") in links(memory)
    assert memory.recall_file("auth.ts").edits == 2


def test_siftcoder_folder_of_workspaces(memory: Memory, tmp_path: Path) -> None:
    """All workspaces are read."""
    for name in ("a1", "b2"):
        (tmp_path / "default" / "workspaces" / name).mkdir(parents=True)
    foreign_systems.siftcoder(tmp_path / "default" / "workspaces" / "a1")
    other = [
        {**one, "ts": 1_780_000_000_000 + n}
        for n, one in enumerate(foreign_systems.SIFTCODER_EVENTS)
    ]
    foreign_systems.siftcoder(tmp_path / "default" / "workspaces" / "b2", other)

    tally = import_from(memory, tmp_path)

    assert (tally.kind, tally.stored + tally.known) == ("siftcoder", 10)


def test_memind_items_insights_and_threads(memory: Memory, tmp_path: Path) -> None:
    """Raw data is the source, links keep their family, insights their tree, threads their roles."""
    tally = import_from(memory, foreign_systems.memind(tmp_path))

    found = stored(memory)
    fell, repaired = found["The crane fell on 3 May"], found["The crane is repaired by Ana"]
    raw = memory.get(fell.parent or "")
    assert (tally.stored, tally.threads, tally.n_refused) == (6, 1, 0)
    assert (raw.text, raw.caption, raw.level) == (
        "user: the crane fell, Ana repairs it", "About the crane", "raw",
    )  # fmt: skip
    assert (fell.kind, fell.occurred_at, fell.user) == ("event", at(2026, 5, 3, 10), "mara")
    assert "person:ana" in repaired.entities
    assert links(memory) >= {
        (fell.text, "causes", repaired.text),
        ("Cranes:", "derives_from", fell.text),
        ("Work:", "derives_from", "Cranes:"),
    }
    assert (found["Cranes:"].level, found["Work:"].kind) == ("insight", "branch")
    (thread,) = memory.threads()
    assert (thread.headline, thread.kind, thread.lifecycle, thread.state) == (
        "The fallen crane", "case", "dormant", "resolved",
    )  # fmt: skip
    assert {member.item: member.role for member in thread.members} == {
        fell.id: "trigger", repaired.id: "outcome",
    }  # fmt: skip
    assert (thread.events[0].kind, thread.events[0].item) == ("setback", fell.id)


def test_a_thread_grows_with_its_source(memory: Memory, tmp_path: Path) -> None:
    """Members that came later are added, those that were added here stay."""
    (tmp_path / "later").mkdir()
    import_from(memory, foreign_systems.memind(tmp_path, foreign_systems.MEMIND_ITEMS[:1]))

    later = import_from(memory, foreign_systems.memind(tmp_path / "later"))
    again = import_from(memory, tmp_path / "later")

    assert (later.threads, again.threads, again.stored) == (1, 0, 0)
    assert len(memory.threads()[0].members) == 2


def test_the_way_back_to_remind(memory: Memory, tmp_path: Path) -> None:
    """What Remind has is left out, what was changed supersedes it; links keep its ids."""
    import_from(memory, foreign.remind(tmp_path))
    found = stored(memory)
    login = found["Chose JWT for the login after comparing it with sessions"]
    short = found["Short-lived tokens: Tokens live for an hour at most"]
    new = memory.remember("Tokens of machines live for a day", derives_from=(login.id,))
    memory.link(new.id, "contradicts", short.id)
    memory.update(found["Long-lived tokens: Tokens live for a week"].id, text="Weeks are too long")

    written = to_remind(memory.export())

    concepts = {one["summary"]: one for one in written["concepts"]}
    added, changed = concepts["Tokens of machines live for a day"], concepts["Weeks are too long"]
    assert (len(concepts), written["episodes"]) == (2, [])
    assert added["source_episodes"] == ["e1a2b3c4"]
    assert [(one["type"], one["target_id"]) for one in added["relations"]] == [
        ("contradicts", "c1")
    ]
    assert [(one["type"], one["target_id"]) for one in changed["relations"]] == [
        ("supersedes", "c2")
    ]


def test_what_goes_to_remind_comes_back(memory: Memory, tmp_path: Path) -> None:
    """The file is an export of Remind, as far as this import can tell."""
    import_from(memory, foreign_systems.memind(tmp_path))
    path = tmp_path / "back.json"
    path.write_text(json.dumps(to_remind(memory.export())))

    with Memory.open(":memory:", embedder="none") as other:
        tally = import_from(other, path)
        texts = {item.text for item in other.browse(limit=50)}

    assert (tally.kind, tally.stored, tally.n_refused) == ("remind", 6, 0)
    assert "user: the crane fell, Ana repairs it" in texts
