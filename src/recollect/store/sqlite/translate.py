"""The adapter's edge: what SQLite says becomes an error of ours, once."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

import apsw

from recollect.errors import (
    BadText,
    RecollectError,
    Refused,
    StoreBusy,
    StoreDamaged,
    StoreError,
)

# Constraint failures that the caller's values cause; the others would be ours.
_CALLERS = frozenset(
    {apsw.SQLITE_CONSTRAINT_CHECK, apsw.SQLITE_CONSTRAINT_DATATYPE, apsw.SQLITE_CONSTRAINT_NOTNULL}
)


@contextmanager
def translated(name: str) -> Iterator[None]:
    """Lets no apsw error out; ``name`` is the file as people know it."""
    try:
        yield
    except apsw.Error as error:
        raise _ours(name, error) from error
    except UnicodeEncodeError as error:
        bad = error.object[error.start : error.end]
        raise BadText(f"{bad!a} is half a character and cannot be kept") from error
    except OverflowError as error:
        raise Refused(f"a number does not fit into the store: {error}") from error


class _Rule(NamedTuple):
    """What some errors of the driver mean for people."""

    errors: tuple[type[apsw.Error], ...]
    ours: type[RecollectError]
    message: str
    remedy: str


_RULES = (
    _Rule(
        (apsw.BusyError, apsw.LockedError, apsw.ProtocolError),
        StoreBusy,
        "{name} stayed locked by another program",
        "close what else has it open, then try again",
    ),
    _Rule(
        (apsw.CorruptError, apsw.NotADBError, apsw.FormatError),
        StoreDamaged,
        "{name} is damaged: {error}",
        "recollect doctor shows what can be mended",
    ),
    _Rule(
        (apsw.FullError,),
        StoreError,
        "{name} could not be written, the disk is full; nothing was saved",
        "free some space and try again",
    ),
    _Rule(
        (apsw.ReadOnlyError, apsw.PermissionsError, apsw.AuthError),
        StoreError,
        "{name} may not be written: {error}",
        "check the permissions of the file and its folder",
    ),
    _Rule(
        (apsw.CantOpenError,),
        StoreError,
        "{name} cannot be opened: {error}",
        "check that it is a file and that its folder is yours",
    ),
    _Rule(
        (apsw.IOError,),
        StoreError,
        "{name} could not be read or written: {error}; nothing was saved",
        "check the disk, then run recollect doctor",
    ),
    _Rule(
        (apsw.TooBigError,),
        Refused,
        "a value is too large for the store",
        "split it into smaller parts",
    ),
    _Rule(
        (apsw.ConnectionClosedError, apsw.CursorClosedError),
        StoreError,
        "{name} was closed",
        "open it again",
    ),
    _Rule(
        (apsw.ThreadingViolationError,),
        StoreError,
        "{name} is still in use by another thread",
        "close it when that is done",
    ),
)


def _ours(name: str, error: apsw.Error) -> RecollectError:
    if getattr(error, "extendedresult", 0) in _CALLERS:
        return Refused(f"a value is outside what a memory may hold: {error}")
    for rule in _RULES:
        if isinstance(error, rule.errors):
            return rule.ours(rule.message.format(name=name, error=error), remedy=rule.remedy)
    return StoreError(f"{name} failed: {error}")
