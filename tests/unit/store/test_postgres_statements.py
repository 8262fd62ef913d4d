"""Statements of the shared modules become PostgreSQL's, each for one space."""

from __future__ import annotations

import pytest

from bethink.errors import StoreError
from bethink.store.postgres import words
from bethink.store.postgres.bindings import array_literal, batch_delete, batch_insert, parsed
from bethink.store.postgres.translate import Shape, parse, translate
from bethink.store.sql.dialect import PARTS, STATEMENTS

ROWS = "(SELECT * FROM bethink.item WHERE space_id = $1::bigint) AS"


def translated(sql: str, **shapes: Shape) -> str:
    marks = {int(name[1:]): shape for name, shape in shapes.items()}
    return " ".join(translate(parsed(sql).tree, marks).sql.split())


def test_a_table_is_its_rows_of_one_space() -> None:
    """Wherever it stands: in a join, in a subquery, under another name."""
    found = translated("SELECT i.id FROM item AS i WHERE EXISTS (SELECT 1 FROM item WHERE rev = 2)")
    assert found == (
        f"SELECT i . id FROM {ROWS} i WHERE EXISTS (SELECT 1 FROM {ROWS} item WHERE rev = 2)"
    )


def test_writes_name_the_space() -> None:
    """An insert in a column, an update and a delete in their condition."""
    assert translated("INSERT INTO meta (name, value) VALUES (?, ?)") == (
        "INSERT INTO bethink.meta (space_id, name, value) VALUES ($1::bigint, $2 , $3)"
    )
    assert translated("UPDATE meta SET value = ?").endswith(
        "WHERE bethink.meta.space_id = $2::bigint"
    )
    assert translated("DELETE FROM meta WHERE name = ?").endswith(
        "WHERE bethink.meta.space_id = $1::bigint AND (name = $2)"
    )


def test_what_exists_is_replaced_or_left() -> None:
    """By the key of the table, whatever the statement says."""
    assert translated("INSERT OR IGNORE INTO tombstone (id, at, actor) VALUES (?, ?, ?)").endswith(
        "ON CONFLICT DO NOTHING"
    )
    assert translated("INSERT OR REPLACE INTO meta (name, value) VALUES (?, ?)").endswith(
        "ON CONFLICT (space_id, name) DO UPDATE SET value = excluded.value"
    )
    counted = "ON CONFLICT (name) DO UPDATE SET value = max(value, excluded.value)"
    assert translated(f"INSERT INTO meta (name, value) VALUES (?, ?) {counted}").endswith(
        "DO UPDATE SET value = greatest(meta . value , excluded . value)"
    )


def test_rows_keep_the_order_of_their_list() -> None:
    """SQLite gives them in it; a server has to be told."""
    sql = "SELECT i.id FROM carray(?) AS w CROSS JOIN item AS i ON i.id = w.value"
    assert translated(sql, m1=Shape("text[]")).endswith("ON i . id = w . value ORDER BY w.key")
    assert "ORDER BY" not in translated(f"{sql} GROUP BY i.id", m1=Shape("text[]"))


def test_lists_are_sent_as_they_are() -> None:
    """Quotes, backslashes, braces, nothing and bytes come back the same."""
    assert array_literal([1, None, -2]) == "{1,NULL,-2}"
    assert array_literal(['a"b', "c\\d", "{}", "", "NULL"]) == '{"a\\"b","c\\\\d","{}","","NULL"}'
    assert array_literal([b"\x00\xff"]) == '{"\\\\x00ff"}'


def test_many_rows_are_one_statement_where_that_is_the_same() -> None:
    """An insert of plain values, a delete by one column; nothing else."""
    assert batch_insert("INSERT INTO meta (name, value) VALUES (?, ?)") is not None
    assert batch_insert("INSERT INTO meta (name, value) VALUES (?, ? || 'x')") is None
    assert batch_insert("INSERT INTO meta (name, value) VALUES (?2, ?1)") is None
    of_given = "INSERT INTO meta (name, value) VALUES (?1, ?2) ON CONFLICT (name) DO UPDATE SET"
    assert batch_insert(f"{of_given} value = ?2") is None
    upsert = batch_insert(f"{of_given} value = excluded.value")
    assert upsert is not None
    assert upsert.conflict.startswith("ON CONFLICT (space_id, name) DO UPDATE SET value")
    fixed = batch_insert("INSERT INTO meta (name, value) VALUES ('x', ?)")
    assert fixed is not None
    assert (fixed.given, fixed.constants) == (("value",), {"name": "'x'"})
    assert batch_insert("INSERT INTO meta (name, value) VALUES (?, ?) RETURNING name") is None
    assert "ANY" in batch_delete("DELETE FROM vector WHERE rid = ?")
    assert batch_delete("DELETE FROM vector WHERE rid = ? AND mid = ?") == ""


def test_no_wording_is_a_part_of_another() -> None:
    """So that it does not matter which of them is put in first."""
    for old in PARTS:
        others = [(one, new) for one, new in PARTS.items() if one != old]
        assert not any(old in one or old in new for one, new in others), old


def test_statements_of_their_own_name_the_space() -> None:
    """In every table they read or write."""
    for texts in STATEMENTS.values():
        for text in texts:
            assert text.count("bethink.") <= text.count(":space"), text


def test_each_select_has_its_own_word_query() -> None:
    """Of selects that are united, each is searched for what is bound to its own mark."""
    one = "SELECT rowid FROM vocabulary WHERE vocabulary MATCH ?"

    found = translated(f"SELECT count(*) FROM ({one} UNION ALL {one})", m1=Shape(), m2=Shape())

    first, second = found.split("UNION ALL")
    assert ("$1::text[]" in first, "$3::text[]" in first) == (True, False)
    assert ("$1::text[]" in second, "$3::text[]" in second) == (False, True)
    with pytest.raises(StoreError):
        translated(f"SELECT rowid FROM vocabulary UNION {one}", m1=Shape())


def test_word_queries_are_read_as_they_were_written() -> None:
    """Strings, AND and OR: what our modules ask; anything else is refused."""
    assert words.parse_query('("abc" AND "bc""d") OR ("xyz")', "grams").groups == (
        ("abc", 'bc"d'),
        ("xyz",),
    )
    with pytest.raises(StoreError):
        words.parse_query("key*", "grams")


def test_folded_texts_have_the_trigrams_of_sqlite() -> None:
    """Accents and case are folded; a text of its own is not joined with the original."""
    assert words.folded_text("Käse Über", None) == "kase uber"
    assert words.trigram_patterns(["50%_"]) == ["%50\\%%", "%0\\%\\_%"]


def test_a_broken_statement_is_told() -> None:
    """Ours alone reach it."""
    for sql in ("SELECT (1", "SELECT 1)"):
        with pytest.raises(StoreError, match="parenthesis"):
            parse(sql)
