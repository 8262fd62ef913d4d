"""Errors of SQLite as our own."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import apsw

from bethink.errors import BethinkError, Refused, StoreDamaged, StoreError
from bethink.store.sql.errors import UNSTORABLE, ErrorRules

# Constraint failures caused by the caller's values; others would be defects of ours.
_CALLER_CONSTRAINTS = frozenset(
    {apsw.SQLITE_CONSTRAINT_CHECK, apsw.SQLITE_CONSTRAINT_DATATYPE, apsw.SQLITE_CONSTRAINT_NOTNULL}
)

# What SQLite says of a file whose tables are not defined as a migration of ours defines them.
_WRONG_SCHEMA = ("database schema", "no such ", "has no column", "parse error in ")

_RULES = ErrorRules(Path(__file__).parent)


@contextmanager
def translate_errors(name: str) -> Iterator[None]:
    """Translate apsw errors to our own; ``name`` is the file's name for messages."""
    try:
        yield
    except (apsw.Error, *UNSTORABLE) as error:
        raise _to_own_error(name, error) from error


def _to_own_error(name: str, error: Exception) -> BethinkError:
    if getattr(error, "extendedresult", 0) in _CALLER_CONSTRAINTS:
        return Refused(f"a value is out of range: {error}")
    if getattr(error, "extendedresult", 0) == apsw.SQLITE_CONSTRAINT_TRIGGER:
        # Of all triggers only that of a space which was moved away refuses a change.
        return StoreError(
            f"{name} can only be read: {str(error).removeprefix('ConstraintError: ')}",
            remedy="name the store it was moved to, with --store or bethink config set store",
        )
    if any(words in str(error) for words in _WRONG_SCHEMA):
        return StoreDamaged(
            f"{name} is damaged: {error}; it was not changed", remedy="restore it from a backup"
        )
    known = _RULES.apply(error, name=name, error=_reason(error))
    return known or StoreError(f"{name} failed: {error}")


def _reason(error: Exception) -> str:
    """Return what SQLite says; of a copy that fails it has only the code."""
    code = getattr(error, "extendedresult", 0)
    is_told = str(error) != "not an error"
    return str(error) if is_told else str(apsw.mapping_extended_result_codes.get(code, "unknown"))
