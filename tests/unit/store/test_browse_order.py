"""Pages of one level are read in the order of storing, not sorted out of all memories."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from bethink.model import Filters
from bethink.ports import Scope
from bethink.store.sqlite import SqliteStore, items
from bethink.store.sqlite.search.scope import compile_scope
from records import NOW, at, record

FILTERS = {
    "one": Filters(levels=("item",)),
    "two": Filters(levels=("item", "raw")),
    "more": Filters(levels=("item",), kinds=("note",)),
}


@pytest.fixture
def store() -> Iterator[SqliteStore]:
    opened = SqliteStore.open(None, space="pages")
    records = [
        record(f"m{n}", level=level, stored_at=at(hours=n % 3))
        for n, level in enumerate(["item", "item", "raw"] * 4)
    ]
    opened.items.put(records, actor="x", now=NOW)
    yield opened
    opened.close()


@pytest.mark.parametrize("name", FILTERS)
def test_a_page_of_a_common_level_sorts_nothing(
    name: str, store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With many of a level the pages are the same, and the plan has no sorting step."""
    scope = Scope(FILTERS[name], at(days=1))
    few = store.items.browse(scope, limit=3)
    rest = store.items.browse(scope, limit=100, after=few[-1].id)
    monkeypatch.setattr(items, "_FEW_OF_LEVEL", -1)

    assert store.items.browse(scope, limit=3) == few
    assert store.items.browse(scope, limit=100, after=few[-1].id) == rest
    with store.admin._connections.read_transaction() as db:
        predicate = items._in_stored_order(db, compile_scope(scope), scope)
        sql = (
            f"SELECT i.* FROM item AS i WHERE {predicate.sql} ORDER BY i.stored_at DESC, i.id DESC"
        )
        plan = str(list(db.execute(f"EXPLAIN QUERY PLAN {sql}", predicate.values)))
    assert "item_stored" in plan
    assert "TEMP B-TREE" not in plan
