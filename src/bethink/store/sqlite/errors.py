"""Errors of SQLite as our own."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import apsw

from bethink.core.named_tuple import NamedTuple
from bethink.errors import BadText, BethinkError, Refused, StoreBusy, StoreDamaged, StoreError

# Constraint failures caused by the caller's values; others would be defects of ours.
_CALLER_CONSTRAINTS = frozenset(
    {apsw.SQLITE_CONSTRAINT_CHECK, apsw.SQLITE_CONSTRAINT_DATATYPE, apsw.SQLITE_CONSTRAINT_NOTNULL}
)

# What SQLite says of a file whose tables are not defined as a migration of ours defines them.
_WRONG_SCHEMA = ("database schema", "no such ", "has no column", "parse error in ")


@contextmanager
def translate_errors(name: str) -> Iterator[None]:
    """Translate apsw errors to our own; ``name`` is the file's name for messages."""
    try:
        yield
    except apsw.Error as error:
        raise _to_own_error(name, error) from error
    except UnicodeEncodeError as error:
        bad = error.object[error.start : error.end]
        raise BadText(f"{bad!a} is a lone surrogate and cannot be stored") from error
    except OverflowError as error:
        raise Refused(f"a number does not fit into the store: {error}") from error


class _ErrorRule(NamedTuple):
    """Which of our errors some driver errors become."""

    errors: tuple[type[apsw.Error], ...]
    error_type: type[BethinkError]
    message: str
    remedy: str


_RULES = (
    _ErrorRule(
        (apsw.BusyError, apsw.LockedError, apsw.ProtocolError),
        StoreBusy,
        "{name} is locked by another program",
        "close the other program, then try again",
    ),
    _ErrorRule(
        (apsw.CorruptError, apsw.NotADBError, apsw.FormatError),
        StoreDamaged,
        "{name} is damaged: {error}",
        "bethink doctor shows what can be repaired",
    ),
    _ErrorRule(
        (apsw.FullError,),
        StoreError,
        "{name} could not be written, the disk is full; nothing was saved",
        "free some space and try again",
    ),
    _ErrorRule(
        (apsw.ReadOnlyError, apsw.PermissionsError, apsw.AuthError),
        StoreError,
        "{name} cannot be written: {error}",
        "check the permissions of the file and its folder",
    ),
    _ErrorRule(
        (apsw.CantOpenError,),
        StoreError,
        "{name} cannot be opened: {error}",
        "check that it is a file and that you own its folder",
    ),
    _ErrorRule(
        (apsw.IOError,),
        StoreError,
        "{name} could not be read or written: {error}; nothing was saved",
        "check the disk, then run bethink doctor",
    ),
    _ErrorRule(
        (apsw.TooBigError,),
        Refused,
        "a value is too large for the store",
        "split it into smaller parts",
    ),
    _ErrorRule(
        (apsw.ConnectionClosedError, apsw.CursorClosedError),
        StoreError,
        "{name} was closed",
        "open it again",
    ),
    _ErrorRule(
        (apsw.ThreadingViolationError,),
        StoreError,
        "{name} is still in use by another thread",
        "close it when that is done",
    ),
)


def _to_own_error(name: str, error: apsw.Error) -> BethinkError:
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
    for rule in _RULES:
        if isinstance(error, rule.errors):
            said = rule.message.format(name=name, error=_reason(error))
            return rule.error_type(said, remedy=rule.remedy)
    return StoreError(f"{name} failed: {error}")


def _reason(error: apsw.Error) -> str:
    """Return what SQLite says; of a copy that fails it has only the code."""
    code = getattr(error, "extendedresult", 0)
    is_told = str(error) != "not an error"
    return str(error) if is_told else str(apsw.mapping_extended_result_codes.get(code, "unknown"))
