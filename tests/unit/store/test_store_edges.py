"""Where the store's rules begin and end: the very moment, the very line, the very row."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path

import apsw
import pytest

from bethink import Memory
from bethink.model import FileEdit
from bethink.testing import FixedClock
from corpus import NOW, days_ago
from rows import each_row

MOMENT = days_ago(5)
MS = timedelta(milliseconds=1)
TEXT = "The release train leaves on Tuesdays"


def filled(path: Path, texts: Sequence[str] = (TEXT,), **about: object) -> list[str]:
    """A space at that place with a few memories; their ids."""
    with Memory.open(path=path, embedder="none", clock=FixedClock(NOW)) as memory:
        return [one.id for one in memory.remember_many([{"text": t} | about for t in texts])]


def places_of(path: Path, value: str) -> set[str]:
    """The tables that hold a text anywhere."""
    db = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)
    tables = (
        "SELECT name FROM sqlite_schema WHERE type = 'table' AND sql NOT LIKE 'CREATE VIRTUAL%'"
    )
    found = {
        name
        for (name,) in db.execute(tables).fetchall()
        for row in db.execute(f'SELECT * FROM "{name}"')
        if any(isinstance(cell, str) and value in cell for cell in row)
    }
    db.close()
    return found


def test_no_row_of_what_was_erased_stays(tmp_path: Path) -> None:
    """Its id stands in the journal, which says that it was erased, and nowhere else: not
    even the days it was recalled on are known any more."""
    path = tmp_path / "space.db"
    clock = FixedClock(NOW)
    with Memory.open(path=path, embedder="none", clock=clock) as memory:
        first, second = (memory.remember(text).id for text in (TEXT, "Tomasz is on call"))
        memory.put_thread("Trains", [first, second])
        memory.link(first, "related_to", second)
        memory.note_edits([FileEdit("/src/train.py", "write", NOW, item=first)])
        for _ in range(4):
            clock.forward(days=1)
            assert memory.recall("release train", track=True).hits
    assert {"usage", "usage_day", "link", "thread_member"} <= places_of(path, first)

    with Memory.open(path=path, embedder="none", clock=clock) as memory:
        memory.forget(first, erase=True)

    assert places_of(path, first) == {"event", "tombstone"}
    assert {"item", "thread_member"} <= places_of(path, second)


@each_row(
    ("where", "inside"),
    [
        ({"until": MOMENT}, False),
        ({"until": MOMENT + MS}, True),
        ({"since": MOMENT}, True),
        ({"since": MOMENT + MS}, False),
        ({"since": MOMENT, "until": MOMENT + MS}, True),
    ],
)
def test_a_period_has_its_first_moment_and_not_its_last(
    memory: Memory, where: dict[str, object], inside: bool
) -> None:
    """`since` is the first moment that counts, `until` the first that no longer does: for
    who asks, who looks through and who asks why something is missing."""
    kept = memory.remember(TEXT, occurred_at=MOMENT).id

    assert bool(memory.recall("when does the release train leave?", **where).hits) is inside
    assert bool(memory.recall(**where).hits) is inside
    assert bool(memory.browse(**where)) is inside
    missing = memory.why_not(kept, "when does the release train leave?", **where)
    assert ("happened on" in missing.reason) is not inside


@pytest.mark.parametrize("after", [timedelta(0), MS])
def test_what_ends_at_a_moment_is_over_then(memory: Memory, after: timedelta) -> None:
    """A memory is valid from its first moment on, up to and without its last."""
    memory.remember(TEXT, valid_from=NOW + MS, valid_to=NOW + 2 * MS)

    asked = [memory.recall("release train", now=NOW + n * MS + after).hits for n in (0, 1)]

    assert [bool(hits) for hits in asked] == ([False, True] if not after else [True, False])


def test_a_journal_written_anew_to_the_same_length_is_noticed(tmp_path: Path) -> None:
    """One whose every line fits the line before is still not the journal of this space."""
    path, other = tmp_path / "space.db", tmp_path / "other.db"
    filled(path, ["one thing", "another thing"])
    filled(other, ["first lie", "second lie"])
    raw = apsw.Connection(str(path))
    raw.execute("ATTACH ? AS other", (str(other),))
    raw.execute("DELETE FROM event; INSERT INTO event SELECT * FROM other.event")
    raw.close()

    with Memory.open(path=path, embedder="none") as memory:
        wrong = {finding.name for finding in memory.doctor() if not finding.ok}

    assert wrong == {"journal"}


def test_what_others_are_tied_to_stays_when_one_is_erased(memory: Memory) -> None:
    """Only the links of what is erased go."""
    texts = ("Ana keeps a list", "The ferry is late", "Soup was served at noon")
    first, second, third = (memory.remember(text).id for text in texts)
    memory.link(first, "related_to", second)
    memory.link(second, "causes", third)

    memory.forget(first, erase=True)

    assert [(link.type, link.dst.id) for link in memory.links(second)] == [("causes", third)]


def test_what_others_speak_of_stays_when_one_is_revised(memory: Memory) -> None:
    """A memory that no longer speaks of somebody changes nothing about those that do."""
    first, second = (
        memory.remember(text, entities=["Ana Berg"]).id
        for text in ("Ana Berg keeps the keys", "Ana Berg books the room")
    )

    memory.update(first, text="The keys are in the drawer", entities=[])
    memory.update(second, text="Ana Berg books the large room")

    assert [one.id for one in memory.browse(entities=["Ana Berg"])] == [second]
    assert memory.recall("Ana Berg", entities=["Ana Berg"]).hits[0].item.id == second


@pytest.mark.parametrize("each", [0, -1])
def test_none_is_none(memory: Memory, each: int) -> None:
    """Who wants no edge of an entity is given none, and fewer than none are not all."""
    memory.remember("Ana Berg works for Nordwind", entities=["Ana Berg", "Nordwind"])
    (found,) = memory.store.graph.find_entities(("Ana Berg, Nordwind",), 8)
    names = [entity.id for entity in found]
    memory.link(names[0], "works_for", names[1])

    assert all(memory.store.graph.edges(names, 5, NOW).values())
    assert not any(memory.store.graph.edges(names, each, NOW).values())
