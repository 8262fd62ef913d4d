"""The table of item fields agrees with everything that reads it."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator

import pytest

from bethink.cli.write import remember as remember_command
from bethink.cli.write import update as update_command
from bethink.ingest.record_builder import _COPIED_FIELDS, _NUMBER_FIELDS, _RULED_FIELDS
from bethink.ingest.revision import changeable_fields
from bethink.model import Draft, Item
from bethink.model.fields import (
    GIVEN_FIELDS,
    ITEM_FIELDS,
    RESERVED_CONTENT,
    ItemField,
    field_names,
)
from bethink.render.wire import item_json
from bethink.server.tools.catalog import REMEMBER, UPDATE_MEMORY
from bethink.store.sql.export import ITEM, ITEM_STATE
from bethink.store.sql.rows import CONTENT
from bethink.store.sqlite import SqliteStore
from records import item

SQL_TYPES = {"whole": "INTEGER", "scale": "INTEGER", "flag": "INTEGER", "time": "INTEGER"} | {
    "number": "REAL"
}
STORE_COLUMNS = {"rid", "about", "state_hash", "length", "fingerprint"}


@pytest.fixture
def columns() -> Iterator[dict[str, tuple[str, bool]]]:
    """Type and whether it may be null, of every column of the item table."""
    store = SqliteStore.open(None, space="test")
    with store._connections.read_transaction() as db:
        rows = db.execute(
            "SELECT name, type, \"notnull\" FROM pragma_table_info('item')"
        ).fetchall()
    yield {name: (kind, not needed) for name, kind, needed in rows}
    store.close()


def stored() -> list[ItemField]:
    return [field for field in ITEM_FIELDS if field.content is not None or field.state]


def test_every_field_of_an_item_is_in_the_table() -> None:
    """Once, and nothing else is."""
    assert sorted(field_names()) == sorted(Item._fields)


def test_given_fields_are_those_of_a_draft() -> None:
    """A draft has three more, which say how to store it."""
    assert set(Draft._fields) - set(field_names(GIVEN_FIELDS)) == {"key", "force", "derives_from"}
    assert set(field_names(GIVEN_FIELDS)) <= set(Draft._fields)


def test_every_given_field_gets_into_the_item() -> None:
    """As it is, as a number, or completed by a rule."""
    assert sorted((*_COPIED_FIELDS, *_NUMBER_FIELDS, *_RULED_FIELDS)) == sorted(
        field_names(GIVEN_FIELDS)
    )


def test_the_schema_has_the_columns_of_the_table(columns: dict[str, tuple[str, bool]]) -> None:
    """With the type of the field's kind, and null only where the table allows it."""
    assert columns.keys() - STORE_COLUMNS == set(field_names(stored()))
    for field in stored():
        assert columns[field.name] == (SQL_TYPES.get(field.kind, "TEXT"), field.nullable), field


def test_the_content_of_a_revision_is_numbered_without_gaps() -> None:
    """Its hash depends on the order: a number belongs to one field for ever, or to the store."""
    places = [(field.content, field.name) for field in ITEM_FIELDS if field.content is not None]

    assert sorted([*(place for place, _ in places), *RESERVED_CONTENT]) == list(range(len(CONTENT)))
    assert all(CONTENT[place] == name for place, name in places)


def test_reserved_content_numbers_are_those_of_the_store() -> None:
    """What the table reserves is stored at that place."""
    assert {number: CONTENT[number] for number in RESERVED_CONTENT} == RESERVED_CONTENT


def test_an_export_has_every_stored_field() -> None:
    """Nothing that is stored is lost on the way out."""
    exported = {*ITEM, *ITEM_STATE}

    assert exported == {*field_names(stored()), "about", "fingerprint"}


def test_json_has_every_field_that_the_table_says() -> None:
    """All of them but the hash, which says nothing to a reader."""
    assert list(item_json(item("a"))) == [field.name for field in ITEM_FIELDS if field.in_json]


def test_the_commands_have_an_option_for_every_given_field() -> None:
    """`update` has those whose change makes sense; `text` is an argument of both."""
    given = set(field_names(GIVEN_FIELDS))
    described = {field.name for field in ITEM_FIELDS if field.option}

    assert given - {option.name for option in remember_command.params} == {"text"}
    assert described <= {option.name for option in update_command.params}
    assert described <= changeable_fields()


def test_the_tools_accept_the_fields_with_a_description() -> None:
    """Each with that description and the table's limits."""
    for tool in (REMEMBER, UPDATE_MEMORY):
        properties = tool.input_schema["properties"]
        for field in ITEM_FIELDS:
            if field.argument:
                assert properties[field.name]["description"] == field.argument
                if field.kind in ("number", "scale"):
                    limits = properties[field.name]["minimum"], properties[field.name]["maximum"]
                    assert limits == (field.low, field.high)


EXTRA = """
from typing import NamedTuple
import bethink.model as model
from bethink.model import fields

def extended(old):
    new = NamedTuple(old.__name__, [*old.__annotations__.items(), ("weather", "str | None")])
    new.__new__.__defaults__ = (*old._field_defaults.values(), None)
    new._field_defaults = {**old._field_defaults, "weather": None}
    if hasattr(old, "when"):
        new.when = old.when
    return new

model.Item, model.Draft = extended(model.Item), extended(model.Draft)
weather = fields.ItemField(
    "weather", "word", 44, nullable=True, given=True, trimmed=True,
    option="How it was outside.", argument="How it was outside.",
)
fields.ITEM_FIELDS = (*fields.ITEM_FIELDS, weather)
fields.GIVEN_FIELDS = (*fields.GIVEN_FIELDS, weather)

from bethink.store.sqlite import opening, repair, schema
before = schema.migrations
schema.SCHEMA_VERSION = opening.SCHEMA_VERSION = schema.SCHEMA_VERSION + 1
added = schema.Migration(schema.SCHEMA_VERSION, "ALTER TABLE item ADD COLUMN weather TEXT;")
schema.migrations = opening.migrations = repair.migrations = lambda *_: (*before(), added)
schema.require_supported_schema.__defaults__ = (schema.SCHEMA_VERSION,)

from bethink import Memory
from bethink.errors import TooLarge
from bethink.store.sql.rows import CONTENT, content_hash
from bethink.cli.write import remember
from bethink.render.wire import item_json
from bethink.server.tools.catalog import REMEMBER

with Memory.open(":memory:", embedder="none") as memory, Memory.open(":memory:") as other:
    try:
        memory.remember("It rained on the parade", weather="x" * 5000)
    except TooLarge as error:
        assert "weather" in str(error), error
    else:
        raise AssertionError("not checked")
    key = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
    stored = memory.remember("It rained on the parade", weather=f" wet, {key} ")
    assert memory.get(stored.id).weather == "wet, [redacted:github-token]"
    memory.update(stored.id, weather="dry")
    assert [item.weather for item in memory.history(stored.id)][1] == "dry"
    assert item_json(memory.get(stored.id))["weather"] == "dry"
    other.import_(list(memory.export()))
    assert other.get(stored.id) == memory.get(stored.id)
    assert all(result.ok for result in memory.doctor()), memory.doctor()
assert "weather" in {option.name for option in remember.params}
assert REMEMBER.input_schema["properties"]["weather"]["description"] == "How it was outside."
older = tuple(map(str, range(43)))
assert CONTENT[43:] == ("anchors", "weather")
assert content_hash((*older, None, None)) == content_hash(older)
assert content_hash((*older, None, "wet")) != content_hash(older)
print("came through")
"""


def test_a_new_field_needs_its_line_and_a_migration() -> None:
    """It is checked, redacted, stored, revised, exported, imported, and offered everywhere."""
    done = subprocess.run(
        [sys.executable, "-c", EXTRA], capture_output=True, text=True, check=False
    )

    assert (done.stdout, done.stderr) == ("came through\n", "")
