"""The journal's chain needs a secret: who rewrites the database alone is found out."""

from __future__ import annotations

import hashlib
import json
import shutil
import stat
from pathlib import Path

import apsw
import pytest
from old_schema import bring_back

from bethink.errors import Refused
from bethink.ports.values import is_erased
from bethink.store.sqlite import SqliteStore
from bethink.store.sqlite.files import key_path
from records import NOW, at, record
from rows import each_row


def write(path: Path, *ids: str) -> None:
    store = SqliteStore.open(path, space="test")
    store.items.put([record(one) for one in ids], actor="x", now=NOW)
    store.close()


def journal(path: Path) -> tuple[bool, bool, str]:
    store = SqliteStore.open(path, space="test")
    found = next(one for one in store.admin.check() if one.name == "journal")
    store.close()
    return found.ok, found.warning, found.detail


def rewrite(path: Path, change: str, since: int = 1) -> None:
    """Change the journal and chain it anew, as anybody can who has the database."""
    db = apsw.Connection(str(path))
    db.execute(change)
    code = (
        "" if since == 1 else db.execute("SELECT chain FROM event WHERE seq = ?", (since - 1,)).get
    )
    columns = "seq, at, kind, item, actor, detail"
    for line in db.execute(
        f"SELECT {columns} FROM event WHERE seq >= ? ORDER BY seq", (since,)
    ).fetchall():
        text = json.dumps(line, ensure_ascii=False, separators=(",", ":"))
        code = hashlib.sha256(f"{code}\n{text}".encode()).hexdigest()
        db.execute("UPDATE event SET chain = ? WHERE seq = ?", (code, line[0]))
    last = db.execute("SELECT max(seq) FROM event").get
    db.execute("UPDATE meta SET value = ? WHERE name = 'journal'", (f"{last}:{code}",))
    db.close()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "space.db"
    write(path, "a", "b")
    write(path, "c")
    return path


def make_old(path: Path) -> None:
    """Make a space whose journal was written before there was a secret."""
    key_path(path).unlink()
    rewrite(path, "DELETE FROM meta WHERE name = 'journal_keys'")


def test_a_journal_that_nobody_touched_is_whole(path: Path) -> None:
    """Its secret is a private file beside the space."""
    assert journal(path) == (True, False, "the chain is unbroken")
    assert stat.S_IMODE(key_path(path).stat().st_mode) == 0o600


@each_row(
    "change",
    [
        "UPDATE event SET actor = 'somebody else' WHERE seq = 2",
        "UPDATE event SET actor = 'somebody else' WHERE seq = 3",
        "DELETE FROM event WHERE seq = 3",
        "UPDATE event SET actor = 'y'; DELETE FROM meta WHERE name = 'journal_keys'",
        "UPDATE event SET actor = 'y'; UPDATE meta SET value = 'x:1' WHERE name = 'journal_keys'",
    ],
)
def test_a_rewritten_journal_shows(path: Path, change: str) -> None:
    """Also where the chain was made anew, which needs no more than the database."""
    rewrite(path, change)

    ok, _, detail = journal(path)
    assert not ok
    assert "was changed" in detail


def test_an_old_journal_is_verified_as_before(path: Path) -> None:
    """And what is written from now on is chained with the secret, the old lines below it."""
    make_old(path)
    assert journal(path) == (True, False, "the chain is unbroken")
    write(path, "d")
    assert key_path(path).read_text().split()[1] == "4"
    assert journal(path) == (True, False, "the chain is unbroken")
    rewrite(path, "UPDATE event SET actor = 'y' WHERE seq = 1")
    assert not journal(path)[0]


def test_a_space_without_its_secret_says_what_it_cannot_check(path: Path, tmp_path: Path) -> None:
    """A copy of the database alone goes on with a new secret; a change after that shows."""
    copy = tmp_path / "copy.db"
    shutil.copy(path, copy)
    for _ in range(2):
        ok, warning, detail = journal(copy)
        assert (ok, warning) == (True, True)
        assert "lines up to 3 cannot be checked" in detail
        if not key_path(copy).exists():
            write(copy, "d", "e")
    rewrite(copy, "UPDATE event SET actor = 'y' WHERE seq = 4", since=4)
    assert not journal(copy)[0]


def test_an_older_copy_of_the_space_fits_its_secret(path: Path, tmp_path: Path) -> None:
    """The secret of a space is the same for all its life."""
    backup = tmp_path / "backup.db"
    shutil.copy(path, backup)
    write(path, "d")
    shutil.copy(backup, path)
    write(path, "e")

    assert journal(path) == (True, False, "the chain is unbroken")


def test_an_export_has_no_secret_and_every_line(path: Path, tmp_path: Path) -> None:
    """Another space takes the lines over, under its own secret, up to a break of the chain."""
    store = SqliteStore.open(path, space="test")
    lines = list(store.admin.dump())
    store.close()
    other = SqliteStore.open(tmp_path / "other.db", space="test")
    other.admin.load(lines, actor="x", now=at(days=1))
    again = [one for one in other.admin.dump() if one["type"] == "event"]
    other.close()

    assert key_path(path).read_text().split()[2] not in json.dumps(lines)
    assert again[:3] == [one for one in lines if one["type"] == "event"]
    assert journal(tmp_path / "other.db") == (True, False, "the chain is unbroken")
    rewrite(path, "UPDATE event SET actor = 'y' WHERE seq = 2")
    store = SqliteStore.open(path, space="test")
    broken = list(store.admin.dump())
    store.close()
    other = SqliteStore.open(tmp_path / "third.db", space="test")
    other.admin.load(broken, actor="x", now=at(days=1))
    told = other.admin.events()
    other.close()
    # The whole journal was chained anew without the secret.
    assert [one.kind for one in told] == ["journal", "imported", "imported", "imported"]
    assert "broken after line 0" in told[0].detail
    assert journal(tmp_path / "third.db") == (True, False, "the chain is unbroken")


def test_an_export_that_was_changed_is_refused(path: Path, tmp_path: Path) -> None:
    """Its journal tells on whoever did it."""
    store = SqliteStore.open(path, space="test")
    lines = list(store.admin.dump())
    store.close()
    next(one for one in lines if one["type"] == "event")["actor"] = "y"
    other = SqliteStore.open(tmp_path / "other.db", space="test")
    with pytest.raises(Refused, match="the journal was changed"):
        other.admin.load(lines, actor="x", now=at(days=1))
    other.close()


def test_a_damaged_secret_is_like_none(path: Path) -> None:
    """It is made anew with the next line; the lines before are told apart."""
    key_path(path).write_text("nonsense")
    write(path, "d")

    ok, warning, detail = journal(path)
    assert (ok, warning) == (True, True)
    assert "lines up to 3" in detail


@pytest.mark.parametrize("cut", [1, 2, 64])
def test_a_damaged_secret_is_kept_aside(path: Path, cut: int) -> None:
    """The next write makes another secret, and does not destroy what is left of the first."""
    key = key_path(path)
    left = key.read_bytes().rstrip()[:-cut]
    key.write_bytes(left)
    write(path, "d")

    assert key.with_name(f"{key.name}.damaged").read_bytes() == left
    assert key.read_bytes() != left
    assert journal(path)[:2] == (True, True)


def test_a_space_of_the_schema_before_is_brought_up(path: Path) -> None:
    """A copy is kept; its journal stays whole, and erased keys are remembered from now on."""
    make_old(path)
    bring_back(path, 4)
    store = SqliteStore.open(path, space="test")
    store.items.put([record("d", "under a key", key="k")], actor="x", now=NOW)
    store.items.erase(["d"], actor="x", now=NOW)
    found = store.items.find_keys(("k",)).get("k")
    count = store.admin.count()
    store.close()

    assert path.with_name("space.db.v4.bak").exists()
    assert found is not None
    assert is_erased(found[1])
    assert count == 3
    assert journal(path) == (True, False, "the chain is unbroken")
    assert key_path(path).read_text().split()[1] == "4"


def cut(path: Path, last: int, seal: str = "") -> None:
    """Cut the journal off after a line, as anybody can who has the database."""
    db = apsw.Connection(str(path))
    db.execute("DELETE FROM event WHERE seq > ?", (last,))
    code = db.execute("SELECT chain FROM event WHERE seq = ?", (last,)).get
    head = f"{last}:{code}" + (f":{seal}" if seal else "")
    db.execute("UPDATE meta SET value = ? WHERE name = 'journal'", (head,))
    db.close()


def head_seal(path: Path) -> str:
    db = apsw.Connection(str(path))
    head: str = db.execute("SELECT value FROM meta WHERE name = 'journal'").get
    db.close()
    return head.split(":")[2]


@each_row("last", [1, 2])
@each_row("sealed", ["without", "with the seal of the end", "made up"])
def test_a_journal_that_was_cut_off_at_its_end_shows(path: Path, last: int, sealed: str) -> None:
    """Every line left is right; that there were more is told by the seal of the end."""
    seals = {"without": "", "with the seal of the end": head_seal(path), "made up": "0" * 64}
    cut(path, last, seals[sealed])

    ok, _, detail = journal(path)

    assert not ok
    assert f"cut off after line {last}" in detail


def test_a_journal_that_was_emptied_shows(path: Path) -> None:
    """There are memories, and no line tells of them."""
    db = apsw.Connection(str(path))
    db.execute("DELETE FROM event; UPDATE meta SET value = '0:' WHERE name = 'journal'")
    db.close()

    assert journal(path)[::2] == (False, "lines were cut off after line 0")


def test_a_cut_is_not_made_good_by_the_next_write(path: Path) -> None:
    """Writing goes on, and the check goes on to say it."""
    cut(path, 2)
    write(path, "d")
    write(path, "e")

    ok, _, detail = journal(path)

    assert not ok
    assert "cut off after line 2" in detail


def test_a_journal_of_an_older_secret_has_no_seal_to_miss(path: Path) -> None:
    """A space written before there were seals is as whole as it was."""
    key_path(path).write_text(key_path(path).read_text().replace("journal-2", "journal-1"))
    cut(path, 3)

    assert journal(path) == (True, False, "the chain is unbroken")
    write(path, "d")
    assert journal(path) == (True, False, "the chain is unbroken")


def test_every_write_seals_the_end(path: Path) -> None:
    """One write after another, and in memory."""
    for one in "defg":
        write(path, one)
        assert journal(path) == (True, False, "the chain is unbroken")
    store = SqliteStore.open(None, space="test")
    store.items.put([record("a")], actor="x", now=NOW)
    assert next(one for one in store.admin.check() if one.name == "journal").ok
    store.close()
