"""A space and an export of every schema there was: they open, come whole, and stay that way.

The files of ``tests/released`` were written by the versions of the time (``schema-N``), those of
3 and 4 by migrating the one before: no version with these schemas ran. They are never renewed. All
tell one story: six memories, one corrected, one forgotten, one erased, and a link.
"""

from __future__ import annotations

import gzip
import json
import shutil
from collections.abc import Callable
from pathlib import Path

import apsw
import pytest

from bethink import Memory
from bethink.config.settings import Settings
from bethink.errors import SchemaTooNew
from bethink.store.sqlite.schema import SCHEMA_VERSION
from importing import import_from

RELEASED = Path(__file__).parents[2] / "released"
SCHEMAS = range(1, SCHEMA_VERSION + 1)
EXPORTS = [n for n in SCHEMAS if n not in (3, 4)]  # nothing wrote one
TEXTS = {
    "Billing listens on port 8001",
    "Ines chose PostgreSQL because of row-level security",
    "The stand-up is at 10:15",
    "Who called about the invoice?",
}
FORGOTTEN = "The staging password rotates on Mondays"


def unpack(schema: int, folder: Path, *, name: str = "kept") -> Path:
    """A copy of the space of a schema."""
    path = folder / f"{name}.db"
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    path.write_bytes(gzip.decompress((RELEASED / f"schema-{schema}.db.gz").read_bytes()))
    path.chmod(0o600)
    key = RELEASED / f"schema-{schema}.db.key"
    if key.exists():
        shutil.copyfile(key, folder / f"{name}.db.key")
        (folder / f"{name}.db.key").chmod(0o600)
    return path


def check_story(memory: Memory, *, trust: int = 3) -> None:
    """Everything of the story, and nothing else."""
    found = {item.text: item for item in memory.browse(limit=20)}
    assert found.keys() == TEXTS
    corrected = found["The stand-up is at 10:15"]
    assert [one.text for one in memory.history(corrected.id)] == [
        "The stand-up is at 9:30",
        "The stand-up is at 10:15",
    ]
    assert found["Ines chose PostgreSQL because of row-level security"].trust == trust
    assert memory.recall("which port?").hits[0].item.text.endswith("8001")
    lines = list(memory.export())
    ended = {line["text"] for line in lines if line["type"] == "item" and line.get("live_to")}
    assert ended == {"The stand-up is at 9:30", FORGOTTEN}
    assert "Tibbles" not in json.dumps(lines)
    assert [check for check in memory.doctor() if not check.ok] == []


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(data_dir=tmp_path / "data", embedder="none")


def test_there_is_a_space_of_every_schema() -> None:
    """Whoever adds a schema adds the file of the one before."""
    assert all((RELEASED / f"schema-{schema}.db.gz").exists() for schema in SCHEMAS)
    assert all((RELEASED / f"schema-{schema}.jsonl.gz").exists() for schema in EXPORTS)


@pytest.mark.parametrize("schema", SCHEMAS)
def test_a_space_of_every_schema_opens_whole(
    schema: int, settings: Settings, tmp_path: Path
) -> None:
    """And a copy of the old one is kept."""
    path = unpack(schema, tmp_path / "data" / "spaces")
    with Memory.open("kept", settings=settings) as memory:
        check_story(memory)

    assert path.with_name(f"kept.db.v{schema}.bak").exists() == (schema < SCHEMA_VERSION)


@pytest.mark.parametrize(
    "lost", ["TRIGGER tally_ended", "TABLE tally", "TABLE signature", "TABLE posting"]
)
def test_what_a_migration_removes_may_be_gone(settings: Settings, lost: str) -> None:
    """A damaged space opens all the same: nothing of it is needed any more."""
    db = apsw.Connection(str(unpack(10, settings.data_dir / "spaces")))
    db.execute(f"DROP {lost}")
    db.close()

    with Memory.open("kept", settings=settings) as memory:
        check_story(memory)


@pytest.mark.parametrize("schema", EXPORTS)
@pytest.mark.parametrize("restore", [True, False])
def test_an_export_of_every_schema_is_recognised(
    schema: int, settings: Settings, *, restore: bool
) -> None:
    """Restored it is whole; else corrections and what was forgotten stay, with less trust."""
    with Memory.open("kept", settings=settings) as memory:
        tally = import_from(memory, RELEASED / f"schema-{schema}.jsonl.gz", restore=restore)
        assert (tally.kind, tally.stored) == ("bethink", 5)
        check_story(memory, trust=3 if restore else 1)


def test_a_newer_space_is_refused_and_unchanged(settings: Settings, tmp_path: Path) -> None:
    """It says what to do."""
    path = unpack(SCHEMA_VERSION, tmp_path / "data" / "spaces")
    db = apsw.Connection(str(path))
    db.execute(f"PRAGMA user_version = {SCHEMA_VERSION + 1}")
    db.close()
    before = path.read_bytes()

    with pytest.raises(SchemaTooNew, match="newer Bethink") as refused:
        Memory.open("kept", settings=settings)
    assert "Update" in refused.value.remedy
    assert path.read_bytes() == before


def _damage_page(path: Path) -> None:
    """Overwrite the page that holds the settings of the old index."""
    with apsw.Connection(str(path)) as db:
        page = db.execute("SELECT rootpage FROM sqlite_schema WHERE name = 'words_config'").get
        size = db.execute("PRAGMA page_size").get
    with path.open("r+b") as file:
        file.seek((page - 1) * size)
        file.write(b"\xa5" * 64)


@pytest.mark.parametrize("schema", [1, 10])
@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE words_config SET v = 99",
        "DELETE FROM words_config",
        "DROP TABLE words_config",
        _damage_page,
    ],
)
def test_an_old_index_that_is_damaged_hinders_no_migration(
    schema: int, damage: str | Callable[[Path], None], tmp_path: Path
) -> None:
    """It goes anyway: nothing of the memories is lost, and a copy of the old file is kept."""
    path = unpack(schema, tmp_path)
    if callable(damage):
        damage(path)
    else:
        with apsw.Connection(str(path)) as db:
            db.execute(damage)
    with Memory.open(path=path, embedder="none") as memory:
        check_story(memory)
        assert [check.name for check in memory.doctor() if not check.ok] == []
    assert path.with_name(f"{path.name}.v{schema}.bak").stat().st_size
