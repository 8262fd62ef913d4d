"""Pages of many memories are read in the order of storing, not sorted out of all."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from bethink.model import Entity, Filters, Item
from bethink.ports import Mention, Scope
from bethink.store.sql.search import scope as scopes
from bethink.store.sql.search.scope import compile_scope
from bethink.store.sqlite import SqliteStore
from records import NOW, at, record
from rows import each_row

FILTERS = {
    "one": Filters(levels=("item",)),
    "two": Filters(levels=("item", "raw")),
    "more": Filters(levels=("item",), kinds=("note",)),
    "source": Filters(sources=("user",)),
    "sources": Filters(sources=("user", "web")),
    "entity": Filters(entities=("person:ann",)),
    "times": Filters(since=at(hours=-1), until=at(hours=2)),
    "nobody": Filters(entities=("person:nobody",)),
}


@pytest.fixture
def store() -> Iterator[SqliteStore]:
    opened = SqliteStore.open(None, space="pages")
    ann = Entity("person:ann", "person", "Ann")
    records = [
        record(
            f"m{n}",
            level=level,
            stored_at=at(hours=n % 3),
            mentions=() if n % 4 else (Mention(ann),),
        )
        for n, level in enumerate(["item", "item", "raw"] * 4)
    ]
    opened.items.put(records, actor="x", now=NOW)
    yield opened
    opened.close()


@each_row("name", FILTERS)
def test_a_page_of_many_sorts_nothing(
    name: str, store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With many that pass the pages are the same, and the plan has no sorting step."""
    scope = Scope(FILTERS[name], at(days=1))
    few = _pages(store, scope)
    monkeypatch.setattr(scopes, "FEW_ROWS", -1)

    assert _pages(store, scope) == few
    with store.admin._connections.read_transaction() as db:
        predicate = compile_scope(scope)
        order = "ORDER BY i.stored_at DESC, i.id DESC"
        sql = f"SELECT i.* FROM item AS i WHERE {predicate.sql_row_by_row} {order}"
        plan = list(db.execute(f"EXPLAIN QUERY PLAN {sql}", predicate.values))
    steps = [step for _, parent, _, step in plan if not parent]
    assert "item_stored" in steps[0]
    assert not any("B-TREE" in step for step in steps)


@each_row("name", FILTERS)
@each_row("walked", [0, 1, 5])
def test_a_page_that_is_not_among_the_newest_is_found_all_the_same(
    name: str, walked: int, store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However few rows are walked in order, the pages are the same."""
    scope = Scope(FILTERS[name], at(days=1))
    few = _pages(store, scope)
    monkeypatch.setattr(scopes, "FEW_ROWS", -1)
    monkeypatch.setattr(scopes, "_ROWS_WALKED", walked)
    monkeypatch.setattr(scopes, "_ROWS_WALKED_EACH", 0)

    assert _pages(store, scope) == few


def _pages(store: SqliteStore, scope: Scope) -> list[list[Item]]:
    """The first page, the rest after it, and a page at an offset."""
    first = store.items.browse(scope, limit=3)
    rest = store.items.browse(scope, limit=100, after=first[-1].id) if first else []
    return [first, rest, store.items.browse(scope, limit=2, offset=1)]
