"""The doctor: sees what is wrong, mends what is derived, admits what it cannot."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import apsw
import pytest

from bethink.model import Link, Node
from bethink.ports import CheckResult, TextSearch
from bethink.store.sqlite import SqliteStore
from bethink.store.sqlite.files import wal_path
from records import NOW, embedding, mention, record, scope
from rows import each_row


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A space with history, vectors, entities and a few journal lines."""
    path = tmp_path / "space.db"
    store = SqliteStore.open(path, space="test")
    records = [
        record(
            f"i{n}",
            f"memory number {n} about tea",
            embedding=embedding(n),
            mentions=(mention("Ana"),),
        )
        for n in range(20)
    ]
    store.items.put(records, actor="x", now=NOW)
    store.items.put([record("i3", "memory three, revised", rev=2)], actor="x", now=NOW)
    store.items.end(["i4"], how="forgotten", actor="x", now=NOW)
    store.close()
    return path


@pytest.fixture
def raw(path: Path) -> Iterator[apsw.Connection]:
    """A way to the file that knows nothing of our rules."""
    db = apsw.Connection(str(path))
    yield db
    db.close()


def check(path: Path, *, repair: bool = False) -> dict[str, CheckResult]:
    store = SqliteStore.open(path, space="test")
    try:
        return {finding.name: finding for finding in store.admin.check(repair=repair)}
    finally:
        store.close()


def bad(findings: dict[str, CheckResult]) -> set[str]:
    return {name for name, finding in findings.items() if not finding.ok}


def test_a_healthy_space_has_only_good_findings(path: Path) -> None:
    """And says what was looked at."""
    findings = check(path)

    assert bad(findings) == set()
    assert {"file", "content", "words", "vectors", "journal", "permissions"} <= set(findings)


DERIVED: dict[str, tuple[str, str]] = {
    "word index": ("words", "DELETE FROM posting_new WHERE rid = 3"),
    "trigram index": ("words", "INSERT INTO grams (grams) VALUES ('delete-all')"),
    "vocabulary": ("words", "INSERT INTO vocabulary (vocabulary) VALUES ('delete-all')"),
    "a word's count": ("words", "UPDATE term SET df = df + 1 WHERE t = 'tea'"),
    "a word": ("words", "DELETE FROM term WHERE t = 'tea'"),
    "number of memories": ("words", "UPDATE meta SET value = '3' WHERE name = 'documents'"),
    "a length": ("words", "UPDATE item SET length = 99 WHERE id = 'i5'"),
    "sign bits": ("vectors", "UPDATE chunk SET bits = zeroblob(length(bits))"),
    "slots": ("vectors", "UPDATE chunk SET rids = zeroblob(length(rids))"),
    "a chunk": ("vectors", "DELETE FROM chunk"),
    "a standing": ("state", "UPDATE item SET status = 'superseded' WHERE id = 'i5'"),
    "a hash": ("content", "UPDATE item SET content_hash = '' WHERE id = 'i7'"),
    "mentions": ("mentions", "UPDATE entity SET mentions = 3"),
    "a stranger's": ("status", "INSERT INTO status_change VALUES ('nobody', 1, 'active')"),
}


@each_row("what", DERIVED)
def test_what_is_derived_is_made_anew(path: Path, raw: apsw.Connection, what: str) -> None:
    """Damage is seen, repaired when asked, and then gone."""
    name, damage = DERIVED[what]
    raw.execute(damage)

    assert name in bad(check(path))
    mended = check(path, repair=True)
    assert bad(mended) == set()
    assert mended[name].repaired
    assert bad(check(path)) == set()


def test_a_count_that_rot_has_taken_is_made_anew(path: Path, raw: apsw.Connection) -> None:
    """Where the file has no number at all, which its definition forbids."""
    redefine = "UPDATE sqlite_schema SET sql = ? WHERE name = 'entity'"
    defined = raw.execute("SELECT sql FROM sqlite_schema WHERE name = 'entity'").get
    raw.execute("PRAGMA writable_schema = ON")
    raw.execute(redefine, (defined.replace("mentions INTEGER NOT NULL", "mentions INTEGER"),))
    raw.execute("PRAGMA writable_schema = RESET; UPDATE entity SET mentions = NULL")
    raw.execute("PRAGMA writable_schema = ON")
    raw.execute(redefine, (defined,))

    assert "mentions" in bad(check(path))
    assert check(path, repair=True)["mentions"].repaired
    assert bad(check(path)) == set()


def test_a_repaired_index_finds_again(path: Path, raw: apsw.Connection) -> None:
    """Every memory, by its words and by its vector."""
    raw.execute("DELETE FROM posting_new; DELETE FROM chunk")
    check(path, repair=True)
    store = SqliteStore.open(path, space="test")

    assert len(store.search.text(TextSearch("tea"), scope()).matches) == 18
    assert len(store.search.vector(embedding(7).vector, "test-model/8", 1, scope()).matches) == 1
    store.close()


CONTENT = {
    "text": "UPDATE item SET text = 'coffee' WHERE id = 'i7'",
    "trust": "UPDATE item SET trust = 1, integrity = 1 WHERE id = 'i7'",
    "time": "UPDATE item SET stored_at = 12345 WHERE id = 'i7'",
    "source": "UPDATE item SET source = 'owner' WHERE id = 'i7'",
    "hashes": "UPDATE item SET content_hash = '', state_hash = 1 WHERE id = 'i7'",
}


@each_row("what", CONTENT)
def test_changed_content_is_reported_and_cannot_be_mended(
    path: Path, raw: apsw.Connection, what: str
) -> None:
    """The hash says that it is wrong; nobody knows what was right."""
    raw.execute(CONTENT[what])

    findings = check(path, repair=True)
    assert "content" in bad(findings)
    assert "i7" in findings["content"].detail


def test_status_and_end_are_not_content(path: Path, raw: apsw.Connection) -> None:
    """They change in the life of a memory and have a hash of their own, which confirms them."""
    raw.execute(
        "UPDATE item SET status = 'superseded', live_to = 1, ended_by = 'x' WHERE id = 'i7'"
    )

    assert bad(check(path)) == {"state", "status", "mentions"}
    assert bad(check(path, repair=True)) == set()


def test_what_is_superseded_by_nothing_comes_back(path: Path) -> None:
    """Its link may have gone with an erased memory; a repair makes it active again."""
    store = SqliteStore.open(path, space="test")
    above = Link(Node("item", "i8"), Node("item", "i9"), "supersedes")
    store.graph.add_links([above], actor="x", now=NOW)
    store.items.set_status(["i7", "i9"], "superseded", actor="x", now=NOW)
    store.close()

    assert bad(check(path)) == {"superseded"}
    assert check(path, repair=True)["superseded"].repaired
    assert bad(check(path)) == set()
    store = SqliteStore.open(path, space="test")
    standing = [store.items.get([one])[one].status for one in ("i7", "i9")]
    store.close()
    assert standing == ["active", "superseded"]


def test_two_live_revisions_are_reported(path: Path, raw: apsw.Connection) -> None:
    """Even if somebody removed the rule that forbids them."""
    raw.execute("DROP INDEX item_live; UPDATE item SET live_to = NULL WHERE id = 'i3'")

    assert "i3" in check(path)["revisions"].detail


def test_a_reference_to_nothing_is_reported(path: Path, raw: apsw.Connection) -> None:
    """Such as an alias of nobody."""
    raw.execute("PRAGMA foreign_keys = OFF; INSERT INTO alias VALUES ('x', 'person:nobody', 0)")

    assert "references" in bad(check(path))


def test_open_permissions_are_closed(path: Path) -> None:
    """Others must not read what is remembered."""
    path.chmod(0o644)

    assert bad(check(path)) == {"permissions"}
    assert check(path, repair=True)["permissions"].repaired
    assert path.stat().st_mode & 0o777 == 0o600


# The journal


TAMPERINGS: dict[str, Callable[[random.Random, int], str]] = {
    "edit actor": lambda _, seq: f"UPDATE event SET actor = actor || 'y' WHERE seq = {seq}",
    "edit kind": lambda _, seq: f"UPDATE event SET kind = 'read' WHERE seq = {seq}",
    "edit detail": lambda _, seq: f"UPDATE event SET detail = 'nothing' WHERE seq = {seq}",
    "edit item": lambda _, seq: f"UPDATE event SET item = 'other' WHERE seq = {seq}",
    "edit time": lambda _, seq: f"UPDATE event SET at = at - 1 WHERE seq = {seq}",
    "drop": lambda _, seq: f"DELETE FROM event WHERE seq = {seq}",
    "cut short": lambda _, seq: f"DELETE FROM event WHERE seq >= {seq}",
    "drop all": lambda _, __: "DELETE FROM event",
    "add": lambda _, __: (
        "INSERT INTO event SELECT 99, at, kind, item, actor, detail, chain FROM event LIMIT 1"
    ),
    "swap": lambda rng, seq: (
        f"UPDATE event SET seq = 1000 WHERE seq = {seq};"
        f"UPDATE event SET seq = {seq} WHERE seq = {(other := 1 + (seq + rng.randrange(20)) % 22)};"
        f"UPDATE event SET seq = {other} WHERE seq = 1000"
    ),
}


@each_row("how", TAMPERINGS)
def test_a_tampered_journal_is_detected(path: Path, raw: apsw.Connection, how: str) -> None:
    """Edited, dropped, swapped, cut short: at any line."""
    rng = random.Random(how)
    store = SqliteStore.open(path, space="test")
    assert len(store.admin.events()) == 22
    for seq in rng.sample(range(1, 23), 8):
        raw.execute("BEGIN")
        raw.execute(TAMPERINGS[how](rng, seq))
        raw.execute("COMMIT")
        findings = {finding.name: finding for finding in store.admin.check()}
        assert not findings["journal"].ok, seq
        restore_journal(raw, path)
    assert all(finding.ok for finding in store.admin.check())
    store.close()


def restore_journal(raw: apsw.Connection, path: Path) -> None:
    """Puts the lines back as the fixture wrote them."""
    kept = path.with_name("journal.db")
    if not kept.exists():
        pytest.fail("the journal was not kept")
    raw.execute("ATTACH ? AS kept", (str(kept),))
    raw.execute("DELETE FROM event; INSERT INTO event SELECT * FROM kept.event")
    raw.execute("DETACH kept")


@pytest.fixture(autouse=True)
def _keep_journal(path: Path) -> None:
    db = apsw.Connection(str(path))
    db.execute("VACUUM INTO ?", (str(path.with_name("journal.db")),))
    db.close()


def test_a_damaged_file_is_reported_not_thrown(path: Path) -> None:
    """Pages full of noise that are not those of the schema: findings, no error."""
    with closing(apsw.Connection(str(path))) as db:
        names = ("item_source", "link_dst", "sketch", "usage")
        sql = f"SELECT rootpage FROM sqlite_schema WHERE name IN {names}"
        pages = [page for (page,) in db.execute(sql)]
    noise = random.Random(5)
    with path.open("r+b") as file:
        for page in pages:
            file.seek((page - 1) * 4096)
            file.write(noise.randbytes(4096))

    assert bad(check(path))


def test_a_broken_index_of_the_file_is_rebuilt(path: Path, raw: apsw.Connection) -> None:
    """One that SQLite itself keeps, and that no longer has every row."""
    raw.close()
    for sql in ("sql || ' WHERE id IS NULL'", "replace(sql, ' WHERE id IS NULL', '')"):
        with closing(apsw.Connection(str(path))) as db:
            db.execute("REINDEX item_source")
            db.execute("PRAGMA writable_schema = ON")
            db.execute(f"UPDATE sqlite_schema SET sql = {sql} WHERE name = 'item_source'")

    findings = check(path)
    assert bad(findings) == {"file"}
    assert "item_source" in findings["file"].detail
    assert check(path, repair=True)["file"].repaired
    assert bad(check(path)) == set()


def test_looking_changes_nothing(path: Path) -> None:
    """A check without repair is no write."""
    store = SqliteStore.open(path, space="test")
    before = store.admin.generation()
    store.admin.check()

    assert store.admin.generation() == before
    store.close()


def test_long_lists_are_shortened(path: Path, raw: apsw.Connection) -> None:
    """Ten names and how many more."""
    raw.execute("UPDATE item SET trust = 0")

    assert "and 11 more" in check(path)["content"].detail


def test_a_space_that_cannot_be_written_is_checked(path: Path) -> None:
    """Also with a log that is not empty; of a repair it says why there was none."""
    store = SqliteStore.open(path, space="test")
    store.items.put([record("late", "written into the log")], actor="x", now=NOW)
    assert wal_path(path).stat().st_size
    lock = path.with_name(f"{path.name}.lock")
    lock.unlink()
    lock.mkdir(0o700)  # nobody can lock it, as on a read-only file system
    findings = {finding.name: finding for finding in store.admin.check()}
    raw = apsw.Connection(str(path))
    raw.execute("UPDATE item SET trust = 0 WHERE id = 'i7'")
    raw.close()
    repaired = {finding.name: finding for finding in store.admin.check(repair=True)}
    lock.rmdir()
    store.close()
    assert bad(repaired) == {"content"}
    assert "i7 (revision 1); not repaired: " in repaired["content"].detail
    assert "cannot be opened" in repaired["content"].detail

    assert bad(findings) == set()
    assert findings["words"].detail == "the word index matches the memories"
