"""What went wrong, as one sentence, a remedy and an exit code."""

from __future__ import annotations

import errno
from typing import NamedTuple

import click

from recollect.cli.app import App
from recollect.cli.printing import dim, red, shown
from recollect.errors import ModelError, NotFound, RecollectError, Refused, StoreError

NOTHING_FOUND = 1
BAD_USE = 2
STORE_TROUBLE = 3
BUG = 70  # what sysexits.h calls an internal software error
INTERRUPTED = 130

_FULL = (errno.ENOSPC, errno.EDQUOT)


class Failure(NamedTuple):
    """An error as a user sees it."""

    message: str
    remedy: str
    kind: str
    code: int

    @property
    def is_bug(self) -> bool:
        return self.code == BUG


def interrupted() -> Failure:
    return Failure("interrupted", "", "interrupted", INTERRUPTED)


def failure_of(error: Exception) -> Failure:
    """The failure an exception stands for."""
    if isinstance(error, RecollectError):
        return Failure(error.message, error.remedy, _kind(error), _code(error))
    if isinstance(error, click.UsageError):
        return _bad_use(error)
    if isinstance(error, click.ClickException):
        return Failure(error.format_message(), "", "bad_use", BAD_USE)
    if isinstance(error, OSError):
        return _of_the_system(error)
    if isinstance(error, MemoryError):
        return Failure("not enough memory", "smaller parts", "memory", STORE_TROUBLE)
    told = f"{type(error).__name__}: {error}"
    return Failure(
        f"a bug in Recollect: {told}",
        "the same with -v shows where; please report it",
        "bug",
        BUG,
    )


def report(failure: Failure, app: App) -> int:
    """Says it where it is looked for, and gives the exit code."""
    message, remedy = _clean(failure.message), _clean(failure.remedy)
    if app.json:
        from recollect.wire import error_json  # most calls do not fail

        app.out.json(error_json(message, remedy, failure.kind))
    else:
        app.err.line(red("error:"), f" {message}")
        if remedy:
            app.err.line(dim("try:"), f"   {remedy}")
    return failure.code


def _clean(text: str) -> str:
    """On one line, and in characters that any stream and any JSON reader takes."""
    told = text.encode("utf-8", "backslashreplace").decode()
    return " ".join(shown(told).split())


def _kind(error: RecollectError) -> str:
    if isinstance(error, Refused):
        return error.rule
    name = type(error).__name__
    return "".join(f"_{c.lower()}" if c.isupper() else c for c in name).lstrip("_")


def _code(error: RecollectError) -> int:
    if isinstance(error, NotFound):
        return NOTHING_FOUND
    return STORE_TROUBLE if isinstance(error, (StoreError, ModelError)) else BAD_USE


def _bad_use(error: click.UsageError) -> Failure:
    message = error.format_message().rstrip(".")
    remedy = f"{error.ctx.command_path} --help" if error.ctx else ""
    if isinstance(error, click.NoSuchOption):
        remedy += ", or -- before a text that begins with a dash"
    return Failure(message[:1].lower() + message[1:], remedy, "bad_use", BAD_USE)


def _of_the_system(error: OSError) -> Failure:
    name = f"{error.filename}: " if isinstance(error.filename, str) else ""
    said = (error.strerror or str(error)).lower()
    if error.errno in _FULL:
        return Failure(f"{name}{said}", "free some space", "disk_full", STORE_TROUBLE)
    code = BAD_USE if error.filename is not None else STORE_TROUBLE
    return Failure(f"{name}{said}", "", "system", code)
