"""What the driver says reaches nobody: every error is ours, and nothing is half done."""

from __future__ import annotations

from pathlib import Path

import apsw
import pytest

from bethink.errors import BadText, BethinkError, Refused, StoreBusy, StoreDamaged, StoreError
from bethink.ports import TextSearch
from bethink.store.sqlite import SqliteStore
from bethink.store.sqlite.errors import translate_errors
from records import NOW, record, scope
from rows import each_row

EXPECTED = {
    apsw.BusyError: StoreBusy,
    apsw.LockedError: StoreBusy,
    apsw.CorruptError: StoreDamaged,
    apsw.NotADBError: StoreDamaged,
    apsw.FullError: StoreError,
    apsw.IOError: StoreError,
    apsw.ReadOnlyError: StoreError,
    apsw.CantOpenError: StoreError,
    apsw.TooBigError: Refused,
    apsw.ConnectionClosedError: StoreError,
    apsw.ThreadingViolationError: StoreError,
    apsw.SQLError: StoreError,
}


@each_row("error", EXPECTED, ids=lambda error: error.__name__)
def test_every_error_of_the_driver_becomes_one_of_ours(error: type[apsw.Error]) -> None:
    """With the file's name where there is one, and the cause kept."""
    with pytest.raises(BethinkError) as caught, translate_errors("space.db"):
        raise error("the engine's own words")

    assert type(caught.value) is EXPECTED[error]
    assert isinstance(caught.value.__cause__, error)
    assert caught.value.message


def test_an_error_without_words_is_told_by_its_code() -> None:
    """A copy that fails says that there is no error."""
    error = apsw.IOError("not an error")
    vars(error)["extendedresult"] = apsw.SQLITE_IOERR_WRITE

    with pytest.raises(StoreError, match="SQLITE_IOERR_WRITE"), translate_errors("space.db"):
        raise error


def test_other_errors_pass(tmp_path: Path) -> None:
    """Only what the driver raises is translated."""
    with pytest.raises(KeyError), translate_errors("space.db"):
        raise KeyError


def test_a_full_disk_saves_nothing_and_breaks_nothing(tmp_path: Path) -> None:
    """The write is refused in words; reads go on; with room again writes do too."""
    store = SqliteStore.open(tmp_path / "space.db", space="test")
    store.items.put([record("a", "tea")], actor="x", now=NOW)
    db = store._connections.for_thread()
    pages = db.execute("PRAGMA page_count").get
    db.execute(f"PRAGMA max_page_count = {pages + 2}")

    with pytest.raises(StoreError, match="nothing was saved"):
        store.items.put([record(f"b{n}", f"{n} " * 2000) for n in range(20)], actor="x", now=NOW)

    assert store.admin.count() == 1
    assert len(store.search.text(TextSearch("tea"), scope()).matches) == 1
    # The limit was of the connection that failed, which is not used again.
    store.items.put([record("c")], actor="x", now=NOW)
    assert all(finding.ok for finding in store.admin.check())
    store.close()


def test_values_out_of_range_are_the_callers_mistake(tmp_path: Path) -> None:
    """They are refused, not called a failure of the store."""
    store = SqliteStore.open(None, space="test")
    for fields in (
        {"trust": 4},
        {"level": "rumour"},
        {"seq": 2**63},
        {"importance": float("nan")},
        {"metadata": {"x": float("inf")}},
        {"metadata": {"x": object()}},
        {"kind": None},
    ):
        with pytest.raises(Refused):
            store.items.put([record("a", **fields)], actor="x", now=NOW)
    assert store.admin.count() == 0
    store.close()


@each_row("field", ["topic", "source", "speaker", "caption"])
def test_half_characters_are_refused_in_any_field(field: str) -> None:
    """By one rule, whichever column they came in."""
    store = SqliteStore.open(None, space="test")
    with pytest.raises(BadText):
        store.items.put([record("a", **{field: "x\udfff"})], actor="x", now=NOW)
    with pytest.raises(BadText):
        store.items.get(["x\udfff"])
    store.close()
