"""`bethink upgrade` carries over what was stored under the earlier name."""

from __future__ import annotations

import gzip
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import apsw
import pytest
from caller import Caller

RELEASED = Path(__file__).parents[2] / "released"
OFFER = "memories of an earlier version are waiting: bethink upgrade"


@pytest.fixture
def call(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Caller:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    return Caller(tmp_path, monkeypatch, capsys)


@pytest.fixture
def old(tmp_path: Path) -> Path:
    """The data folder of 0.2.0, with a space of it and one of 0.1.0, and its settings."""
    spaces = tmp_path / "data" / "recollect" / "spaces"
    spaces.mkdir(parents=True)
    for name, schema in (("kept", 2), ("first", 1)):
        packed = (RELEASED / f"schema-{schema}.db.gz").read_bytes()
        (spaces / f"{name}.db").write_bytes(gzip.decompress(packed))
    config = tmp_path / "home" / "config" / "recollect"
    config.mkdir(parents=True)
    (config / "config.toml").write_text("k = 7\n")
    return spaces.parent


def content(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_everything_is_carried_over_and_nothing_there_is_changed(call: Caller, old: Path) -> None:
    """Corrections, what was forgotten, trust, history and journal, of every space."""
    before = content(old)
    said = call("upgrade", "--json")

    assert said.code == 0
    assert [(one["space"], one["memories"], one["known"]) for one in said.told] == [
        ("first", 5, 0),
        ("kept", 5, 0),
    ]
    assert content(old) == before
    for space in ("first", "kept"):
        found = {one["text"]: one for one in call("--space", space, "list", "--json").told}
        assert len(found) == 4
        assert found["Ines chose PostgreSQL because of row-level security"]["trust"] == 3
        corrected = found["The stand-up is at 10:15"]["id"]
        assert "The stand-up is at 9:30" in call("--space", space, "history", corrected).out
        assert call("--space", space, "doctor").code == 0
        kinds = {one["kind"] for one in call("--space", space, "events", "--json").told}
        assert {"stored", "forgotten", "erased"} & kinds


def test_it_is_offered_until_it_is_done(call: Caller, old: Path) -> None:
    """At the first command, on standard error, not to programs."""
    assert OFFER in call("list").err
    assert OFFER in call("remember", "A new note").err
    assert OFFER not in call("list", "--json").err
    call("upgrade", "--dry-run")
    assert call("list").err.count(OFFER) == 1
    call("upgrade")
    assert OFFER not in call("list").err


def test_a_preview_stores_nothing(call: Caller, old: Path) -> None:
    """It names the spaces."""
    said = call("upgrade", "--dry-run")

    assert (said.code, "would carry over kept" in said.err) == (0, True)
    assert "kept" not in call("spaces").out


def test_again_brings_nothing_twice_and_changes_nothing(call: Caller, old: Path) -> None:
    """A correction made here since stays, and what was erased stays away."""
    call("upgrade")
    (item,) = [
        one["id"]
        for one in call("--space", "kept", "list", "--json").told
        if one["text"].startswith("Billing")
    ]
    call("--space", "kept", "update", item, "Billing listens on port 9000")
    (gone,) = [
        one["id"]
        for one in call("--space", "kept", "list", "--json").told
        if one["text"].startswith("Ines")
    ]
    call("--space", "kept", "forget", gone, "--erase", "--yes")
    said = call("upgrade", "--json")

    assert [(one["memories"], one["known"]) for one in said.told] == [(0, 5), (0, 5)]
    assert "port 9000" in call("--space", "kept", "show", item).out
    assert "Ines" not in call("--space", "kept", "list").out


def test_it_joins_memories_that_are_here_already(call: Caller, old: Path) -> None:
    """Which stay as they are."""
    call("--space", "kept", "remember", "A note from before the upgrade")
    assert call("upgrade").code == 0

    texts = {one["text"] for one in call("--space", "kept", "list", "--json").told}
    assert len(texts) == 5
    assert "A note from before the upgrade" in texts


def test_settings_that_are_missing_here_are_copied(call: Caller, old: Path, tmp_path: Path) -> None:
    """What no longer holds is left out, and said."""
    config = tmp_path / "home" / "config"
    (config / "recollect" / "profiles").mkdir()
    (config / "recollect" / "profiles" / "mine.toml").write_text("[budget]\nk = 3\n")
    said = call("upgrade")
    new = {path.name for path in config.rglob("*.toml") if "recollect" not in path.parts}

    assert {"config.toml", "mine.toml"} <= new
    assert "copied config.toml" in said.err


def test_settings_that_do_not_hold_any_more_are_left_out(
    call: Caller, old: Path, tmp_path: Path
) -> None:
    """So that every command still works."""
    (tmp_path / "home" / "config" / "recollect" / "config.toml").write_text("no_such_setting = 7\n")
    said = call("upgrade")

    assert "config.toml was not copied" in said.err
    assert call("list").code in (0, 1)


def test_a_space_that_cannot_be_read_stops_no_other(call: Caller, old: Path) -> None:
    """It is named; what cannot be read is not offered for ever."""
    (old / "spaces" / "bad.db").write_bytes(b"no database at all" * 100)
    db = apsw.Connection(str(old / "spaces" / "newer.db"))
    db.execute("PRAGMA application_id = 0x52434C54; PRAGMA user_version = 99; CREATE TABLE a (b)")
    db.close()
    said = call("upgrade", "--json")

    assert said.code == 3
    outcomes = {one["space"]: one for one in said.told}
    assert outcomes["kept"]["memories"] == 5
    assert "not a database" in outcomes["bad"]["error"]
    assert "newer Bethink" in outcomes["newer"]["error"]
    assert OFFER not in call("list").err


def test_without_an_earlier_version_there_is_nothing_to_do(call: Caller) -> None:
    """It says where it looked."""
    said = call("upgrade")

    assert said.code == 1
    assert "has no spaces of an earlier version" in said.err


def test_a_folder_can_be_named(call: Caller, old: Path, tmp_path: Path) -> None:
    """One from a back-up, say; importing it says so."""
    moved = old.rename(tmp_path / "back-up")

    assert f"bethink upgrade --from {moved}" in call("import", str(moved)).err
    assert call("upgrade", "--from", str(moved)).code == 0
    assert len(call("--space", "kept", "list", "--json").told) == 4


def test_an_export_is_restored_with_what_it_will_be_trusted_with_said_first(
    call: Caller, tmp_path: Path
) -> None:
    """Without --restore it says how."""
    (tmp_path / "old.jsonl").write_bytes(
        gzip.decompress((RELEASED / "schema-2.jsonl.gz").read_bytes())
    )
    foreign = call("--space", "a", "import", "old.jsonl")
    assert "import with --restore" in foreign.err
    restored = call("--space", "b", "import", "old.jsonl", "--restore")
    assert "NOT signed by this installation: 4 memories of the space 'kept', 4 of them" in (
        restored.err
    )

    trust = [
        {one["trust"] for one in call("--space", space, "list", "--json").told} for space in "ab"
    ]
    assert trust == [{1}, {2, 3}]


def test_what_does_not_arrive_is_noticed(
    call: Caller, old: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The two are compared, and the upgrade is offered again."""
    from bethink import Memory

    whole = Memory.import_

    def lossy(self: Memory, records: Iterable[Mapping[str, object]], **options: Any) -> int:
        kept = (one for one in records if "10:15" not in str(one.get("text")))
        return whole(self, kept, **options)

    def without_end(records: Iterable[Mapping[str, object]]) -> Iterator[Mapping[str, object]]:
        for one in records:
            if one["type"] != "end":
                yield {key: value for key, value in one.items() if key != "end"}

    monkeypatch.setattr(
        Memory, "import_", lambda self, records, **o: lossy(self, without_end(records), **o)
    )
    said = call("upgrade", "--json")

    assert said.code == 3
    assert all("did not arrive here" in one["error"] for one in said.told)
    assert OFFER in call("list").err
