"""What every integration is given: a memory that is open, or the name of its space."""

from __future__ import annotations

from recollect.errors import MissingExtra, Refused
from recollect.memory import Memory


def open_memory(given: Memory | str | None) -> Memory:
    """The memory itself, or that of the space so named; without a name the project's own."""
    if isinstance(given, Memory):
        return given
    if given is None or isinstance(given, str):
        return Memory.open(given)
    raise Refused(
        f"a {type(given).__name__} is no memory",
        remedy="give a Memory, or the name of a space",
    )


def missing(error: ModuleNotFoundError, library: str, *, extra: str, modules: str) -> Exception:
    """What to raise where a library cannot be imported: its extra is missing, or, where
    something else is, the error itself. ``modules`` are the top names it is known by."""
    if (error.name or "").partition(".")[0] in modules.split():
        return MissingExtra(library, extra=extra)
    return error
