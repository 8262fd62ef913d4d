"""Exports of a SQLite space: every table of it, and nothing damaged gets in."""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from bethink.errors import Refused
from bethink.model import Link, Node
from bethink.ports import UsageDecay
from bethink.store.sql.export import ITEM
from bethink.store.sql.load import _LAYOUTS
from bethink.store.sql.rows import CONTENT
from bethink.store.sqlite import SqliteStore
from records import NOW, at, mention, record, scope
from rows import each_row


@pytest.fixture
def store() -> Iterator[SqliteStore]:
    """A space in which every table has something in it."""
    store = SqliteStore.open(None, space="test")
    store.items.put(
        [
            record(
                "a",
                "Ana likes tea",
                key="k",
                sketch=(1, 2),
                mentions=(mention("Ana", "person", "Annie"),),
                metadata={"deep": {"list": [1, 2.5, None, "x"]}},
            ),
            record("b", "Ben", parent="a", occurred_at=NOW, valid_to=at(days=9)),
            record("c", "gone soon", key="key of c"),
        ],
        actor="x",
        now=NOW,
    )
    store.items.put([record("a", "Ana likes coffee", rev=2)], actor="x", now=at(hours=1))
    store.items.set_status(["b"], "quarantined", actor="x", now=at(hours=1))
    store.items.set_status(["b"], "active", actor="x", now=at(hours=2))
    store.graph.add_links(
        [Link(Node("item", "a"), Node("item", "b"), "implies", context="because")]
    )
    store.graph.add_links([Link(Node("entity", "person:ana"), Node("file", "src/x.py"), "wrote")])
    store.activity.note_use(["a"], NOW, fading=UsageDecay(1, 0.1, 60.0, {"a": 0.2}))
    store.items.erase(["c"], actor="x", now=NOW)
    with store._connections.write_transaction() as db:
        db.execute(
            "INSERT INTO thread VALUES ('t', 'topic', NULL, 'tea', 'active', 'stable', 5, 6, 1)"
        )
        db.execute("INSERT INTO thread_member VALUES ('t', 'a', 'core', 0.5, 7, 1)")
        db.execute(
            "INSERT INTO file_edit (path, operation, at, intent, session, turn, item)"
            " VALUES ('x.py', 'edit', 10, 'tidy', 's', 't1', 'a')"
        )
        db.execute("INSERT INTO thread_event VALUES ('t', 1, 'update', 'a', 8, 1, 1)")
        db.execute("INSERT INTO thread_event VALUES ('t', 2, 'question_opened', NULL, 9, 0, 1)")
    yield store
    store.close()


def export(store: SqliteStore) -> list[dict[str, Any]]:
    return [json.loads(json.dumps(line, allow_nan=False)) for line in store.admin.dump()]


def load(lines: list[Any]) -> SqliteStore:
    other = SqliteStore.open(None, space="test")
    try:
        other.admin.load(lines, actor="importer", now=at(days=1))
    except BaseException:
        other.close()
        raise
    return other


def test_the_layout_of_an_item_is_that_of_its_row() -> None:
    """A column that is added to one must be added to the other."""
    assert tuple(ITEM) == CONTENT


def test_every_kind_of_record_comes_back(store: SqliteStore) -> None:
    """None is left out of the export, and each is the same after an import."""
    lines = export(store)
    other = load(lines)

    assert {line["type"] for line in lines} == {"bethink", "end", *_LAYOUTS}
    assert export(other)[: len(lines) - 1] == lines[:-1]
    assert all(finding.ok for finding in other.admin.check())
    other.close()


@each_row(
    ("kind", "field"),
    [(kind, field) for kind, layout in _LAYOUTS.items() for field in layout],
    ids=str,
)
def test_a_wrong_value_is_refused_by_its_name(store: SqliteStore, kind: str, field: str) -> None:
    """Of every field of every record: no value of any other shape passes."""
    lines = export(store)
    number = next(n for n, line in enumerate(lines, 1) if line["type"] == kind)
    for wrong in ({"a": object}, [[1]], 2.5j):
        broken = copy.copy(lines)
        broken[number - 1] = {**lines[number - 1], field: wrong}
        if _LAYOUTS[kind][field].description == "an object" and isinstance(wrong, dict):
            continue
        with pytest.raises(Refused, match=f"line {number}: {kind}.{field} must be"):
            load(broken)


@each_row(
    ("field", "value"),
    [
        ("text", "nul \x00"),
        ("rev", 0),
        ("rev", True),
        ("seq", 2**63),
        ("pinned", 1),
        ("emotion", True),
        ("emotion", float("nan")),
        ("stored_at", "yesterday"),
        ("stored_at", 5),
        ("tags", "x"),
        ("tags", [1]),
        ("metadata", {"x": float("nan")}),
        ("metadata", ["x"]),
        ("id", ""),
        ("sketch", ["x"]),
        ("sketch", "x"),
        ("status", "unknown"),
    ],
)
def test_values_of_the_right_shape_may_still_be_wrong(
    store: SqliteStore, field: str, value: object
) -> None:
    """What no store could keep, or no memory may hold."""
    lines = export(store)
    line = next(line for line in lines if line["type"] == "item")
    line[field] = value

    with pytest.raises(Refused, match=f"item.{field} must be"):
        load(lines)


def test_a_damaged_export_is_refused_or_came_through_whole(store: SqliteStore) -> None:
    """Three hundred random mutations: never a traceback, never half an import."""
    lines = export(store)
    rng = random.Random(300)
    for _ in range(300):
        broken = copy.deepcopy(lines)
        for _ in range(rng.randint(1, 3)):
            _damage(broken, rng)
        other = SqliteStore.open(None, space="test")
        with suppress(Refused):
            other.admin.load(broken, actor="importer", now=at(days=1))
        assert all(finding.ok for finding in other.admin.check()), broken
        other.close()


def test_an_export_that_is_cut_off_is_refused(store: SqliteStore) -> None:
    """Wherever it ends before its end, nothing is imported; a line too few is noticed, too."""
    lines = export(store)
    for kept in (*(lines[:count] for count in range(1, len(lines))), [*lines[:3], *lines[4:]]):
        other = SqliteStore.open(None, space="test")
        with pytest.raises(Refused, match="nothing was imported"):
            other.admin.load(kept, actor="importer", now=at(days=1))
        assert other.admin.count() == 0
        other.close()


def test_an_export_of_an_earlier_version_has_no_end(store: SqliteStore) -> None:
    """It is imported as it is."""
    lines = export(store)[:-1]
    del lines[0]["end"]
    other = load(lines)

    assert other.admin.count() == store.admin.count()
    other.close()


def _damage(lines: list[Any], rng: random.Random) -> None:
    if not lines:
        return
    at_line = rng.randrange(len(lines))
    how = rng.randrange(6)
    if how == 0:
        del lines[at_line]
    elif how == 1:
        lines.insert(rng.randrange(len(lines)), lines[at_line])
    elif how == 2:
        lines[at_line] = rng.choice([None, "x", 5, [], {}])
    elif isinstance(lines[at_line], dict) and lines[at_line]:
        field = rng.choice(sorted(lines[at_line]))
        if how == 3:
            del lines[at_line][field]
        else:
            lines[at_line][field] = rng.choice([None, "", "x", -1, 10**30, 1.5, [], {}, True])


def test_an_import_into_a_filled_space_adds_what_is_new(store: SqliteStore) -> None:
    """Known memories and their links stay; new ones come with theirs."""
    other = SqliteStore.open(None, space="test")
    other.items.put([record("b", "another Ben"), record("z", "Zoe")], actor="y", now=NOW)
    before = other.admin.events()

    assert other.admin.load(export(store), actor="importer", now=at(days=1)) == 1
    assert other.items.get(["b"])["b"].text == "another Ben"
    assert [item.text for item in other.items.history("a")] == ["Ana likes tea", "Ana likes coffee"]
    assert [(link.type, link.context) for link in other.graph.links_of(["b"])] == [
        ("implies", "because")
    ]
    assert [event.kind for event in other.admin.events()[len(before) :]] == [
        "imported",
        "threads imported",
    ]
    assert all(finding.ok for finding in other.admin.check())
    assert other.items.find_keys(("k",)).get("k") == (
        "a",
        other.items.find_keys(("k",)).get("k")[1],
    )  # type: ignore[index]
    other.close()


def test_a_dump_that_is_not_read_to_its_end_lets_go(tmp_path: Path) -> None:
    """Its connection is closed with the generator."""
    store = SqliteStore.open(tmp_path / "space.db", space="test")
    store.items.put([record(f"i{n}") for n in range(50)], actor="x", now=NOW)
    lines = store.admin.dump()
    next(lines)
    assert len(store._connections._open) == 2

    lines.close()  # type: ignore[attr-defined]

    assert len(store._connections._open) == 1
    store.close()


def test_hits_of_an_import_are_found_by_their_words(store: SqliteStore) -> None:
    """The word index is made in the same transaction; vectors wait for an embedder."""
    other = load(export(store))

    assert [item.id for item in other.items.browse(scope(entities=("annie",)), limit=5)] == []
    assert [item.id for item in other.vectors.unembedded("any", 9)] == ["b", "a"] or [
        item.id for item in other.vectors.unembedded("any", 9)
    ] == ["a", "b"]
    other.close()


def test_an_export_that_tells_nothing_of_standings_is_completed(store: SqliteStore) -> None:
    """One from before they were told: what stands has stood so since its revision began."""
    store.items.set_status(["a"], "superseded", actor="x", now=at(hours=5))
    store.graph.add_links([Link(Node("item", "b"), Node("item", "a"), "supersedes")], now=NOW)
    lines = [line for line in export(store) if line["type"] not in ("status_change", "end")]
    del lines[0]["end"]
    other = load(lines)

    assert other.items.get(["a"], as_of=NOW)["a"].status == "active"
    assert other.items.get(["a"], as_of=at(hours=1))["a"].status == "superseded"
    assert all(finding.ok for finding in other.admin.check())
    other.close()


def test_an_import_brings_every_statement_of_a_link_but_none_of_an_erased_memory() -> None:
    """What another memory states stays; what was erased here does not come back."""

    def links(store: SqliteStore) -> list[str | None]:
        return [link.context for link in store.graph.links_of(["person:ana"], ["knows"])]

    ends = Node("entity", "person:ana"), Node("entity", "person:ben")
    both = (mention("Ana"), mention("Ben"))
    told = [
        record(
            name,
            f"Ana knows Ben {name}",
            mentions=both,
            links=(Link(*ends, "knows", context=name),),
        )
        for name in ("a", "b")
    ]
    first, other = (SqliteStore.open(None, space="test") for _ in range(2))
    first.items.put([*told, record("c", "Ana and Ben", mentions=both)], actor="x", now=NOW)
    exported = list(first.admin.dump())
    other.admin.load(exported, actor="x", now=at(days=1))
    assert links(other) == ["b"]
    other.items.erase(["b"], actor="x", now=at(days=2))
    assert links(other) == ["a"]
    other.items.erase(["a"], actor="x", now=at(days=2))
    other.admin.load(exported, actor="x", now=at(days=3))

    assert links(other) == []
    assert [one for one in other.admin.check() if not one.ok] == []
    for store in (first, other):
        store.close()


def test_an_import_below_a_ceiling_makes_names_known_there() -> None:
    """Whether a secret spoke of an entity before does not show in what the import brings."""
    other = SqliteStore.open(None, space="other")
    other.items.put([record("a", "Ana", mentions=(mention("Ana"),))], actor="x", now=NOW)
    spelt, told = mention("ANA", "person", "Annie"), []
    for secrets in ([], [record("s", "ANA", classification=3, mentions=(spelt,))]):
        store = SqliteStore.open(None, space="test")
        store.items.put(secrets, actor="x", now=NOW)
        low = store.below(1)
        low.admin.load(list(other.admin.dump()), actor="x", now=at(days=1))
        seen = low.graph.entities(prefix="ana"), low.graph.entities(prefix="annie")
        told.append((seen, low.graph.find_entities(("who is ana?", "annie"))))
        assert [one for one in store.admin.check() if not one.ok] == []
        store.close()

    assert told[0][0][0][0].name == "Ana"
    assert told[0] == told[1]
    other.close()
