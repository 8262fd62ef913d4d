"""The memories a worker has open."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bethink.config.settings import Settings
from bethink.errors import BadSetting, StoreError
from bethink.worker.client import settings_to_json
from bethink.worker.server import MemoryPool


@pytest.fixture
def shelf():
    made = MemoryPool(max_open=2)
    yield made
    made.close()


def told(folder, space, **more):
    return settings_to_json(Settings(data_dir=folder, space=space, embedder="hash", **more))


def test_a_memory_is_opened_once_for_the_same_settings(shelf, tmp_path):
    """And another one for other settings of the same space."""
    with shelf.borrow(told(tmp_path, "a")) as first, shelf.borrow(told(tmp_path, "a")) as second:
        assert first is second
    with shelf.borrow(told(tmp_path, "a", k=3)) as other:
        assert other is not first

    assert len(shelf.settings()) == 2
    assert [path.rsplit("/", 1)[1] for path in shelf.spaces()] == ["a.db"]


def test_all_spaces_share_one_model(shelf, tmp_path):
    """It is what takes long to load."""
    with shelf.borrow(told(tmp_path, "a")) as one, shelf.borrow(told(tmp_path, "b")) as other:
        assert one.embedder is other.embedder


def test_the_least_recently_asked_for_is_closed_first(shelf, tmp_path):
    """But none that somebody is using."""
    with shelf.borrow(told(tmp_path, "a")) as used:
        for name in ("b", "c", "b"):
            with shelf.borrow(told(tmp_path, name)) as memory:
                memory.remember(f"something of {name}")
        assert [path[-4:] for path in shelf.spaces()] == ["b.db", "c.db"]
        used.remember("still open")
    with pytest.raises(StoreError):
        used.remember("closed when it came back")


def test_a_file_that_was_replaced_is_opened_anew(shelf, tmp_path):
    """What was open is nobody's memory any more."""
    with shelf.borrow(told(tmp_path, "a")) as first:
        first.remember("The first life of this space")
    for file in (tmp_path / "spaces").iterdir():
        file.unlink()

    with shelf.borrow(told(tmp_path, "a")) as second:
        assert second.recall("life").status == "nothing_stored"
    with pytest.raises(StoreError):
        first.recall("life")


def test_settings_that_are_none_open_nothing(shelf, tmp_path):
    """And keep nobody else from being served."""
    broken = told(tmp_path, "a")
    broken["values"]["k"] = "many"

    with pytest.raises(BadSetting), shelf.borrow(broken):
        pytest.fail("lent")
    with shelf.borrow(told(tmp_path, "a")) as memory:
        assert memory.settings == replace(memory.settings)
    assert len(shelf.spaces()) == 1
