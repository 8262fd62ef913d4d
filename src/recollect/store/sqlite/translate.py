"""The adapter's edge: what SQLite says becomes an error of ours, once."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

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
        raise BadText(f"{ascii(bad)} is half a character and cannot be kept") from error
    except OverflowError as error:
        raise Refused(f"a number does not fit into the store: {error}") from error


def _ours(name: str, error: apsw.Error) -> RecollectError:  # noqa: PLR0911 - a table in disguise
    match error:
        case apsw.BusyError() | apsw.LockedError() | apsw.ProtocolError():
            return StoreBusy(
                f"{name} stayed locked by another program",
                remedy="close what else has it open, then try again",
            )
        case apsw.CorruptError() | apsw.NotADBError() | apsw.FormatError():
            return StoreDamaged(
                f"{name} is damaged: {error}", remedy="recollect doctor shows what can be mended"
            )
        case apsw.FullError():
            return StoreError(
                f"{name} could not be written, the disk is full; nothing was saved",
                remedy="free some space and try again",
            )
        case apsw.ReadOnlyError() | apsw.PermissionsError() | apsw.AuthError():
            return StoreError(
                f"{name} may not be written: {error}",
                remedy="check the permissions of the file and its folder",
            )
        case apsw.CantOpenError():
            return StoreError(
                f"{name} cannot be opened: {error}",
                remedy="check that the folder exists and is yours",
            )
        case apsw.IOError():
            return StoreError(
                f"{name} could not be read or written: {error}; nothing was saved",
                remedy="check the disk, then run recollect doctor",
            )
        case apsw.ConstraintError() if error.extendedresult in _CALLERS:
            return Refused(f"a value is outside what a memory may hold: {error}")
        case apsw.TooBigError():
            return Refused("a value is too large for the store", remedy="split it into smaller parts")
        case apsw.ConnectionClosedError() | apsw.CursorClosedError():
            return StoreError(f"{name} was closed", remedy="open it again")
        case apsw.ThreadingViolationError():
            return StoreError(
                f"{name} is still in use by another thread", remedy="close it when that is done"
            )
        case _:
            return StoreError(f"{name} failed: {error}")
