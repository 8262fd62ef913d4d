"""Turn exceptions of a command into one sentence, a remedy and an exit code."""

from __future__ import annotations

import errno
import os
from contextlib import suppress

import click

from bethink.cli.app import App
from bethink.cli.commands import bethink
from bethink.cli.help import COMPLETION_VARIABLE, PROGRAM
from bethink.cli.output import dim, printable, red, yellow
from bethink.core.named_tuple import NamedTuple
from bethink.core.registry import name_failure
from bethink.errors import BethinkError, ModelError, NotFound, StoreError
from bethink.store.url import is_server, shown_store

EXIT_NOT_FOUND = 1
EXIT_USAGE = 2
EXIT_STORE = 3
EXIT_BUG = 70  # what sysexits.h calls an internal software error
EXIT_INTERRUPTED = 130

_DISK_FULL_ERRNOS = (errno.ENOSPC, errno.EDQUOT)


class Failure(NamedTuple):
    """An error as a user sees it."""

    message: str
    remedy: str
    kind: str
    code: int

    @property
    def is_bug(self) -> bool:
        return self.code == EXIT_BUG


def interrupted_failure() -> Failure:
    return Failure("interrupted", "", "interrupted", EXIT_INTERRUPTED)


def classify_error(error: Exception) -> Failure:
    """Map an exception to the failure shown to the user."""
    if isinstance(error, BethinkError):
        from bethink.render.wire import error_kind  # most calls do not fail

        return Failure(error.message, error.remedy, error_kind(error), _exit_code(error))
    if isinstance(error, click.UsageError):
        return _usage_failure(error)
    if isinstance(error, click.ClickException):
        return Failure(error.format_message(), "", "bad_use", EXIT_USAGE)
    if isinstance(error, OSError):
        return _os_failure(error)
    if isinstance(error, MemoryError):
        return Failure(
            "not enough memory", "split the input into smaller parts", "memory", EXIT_STORE
        )
    return Failure(
        f"{name_failure(error)}: {type(error).__name__}: {error}",
        "run it again with -v for the traceback, and report the bug",
        "bug",
        EXIT_BUG,
    )


def report_failure(failure: Failure, app: App) -> int:
    """Print the failure, as JSON with ``--json``, and return the exit code."""
    message, remedy = _sanitize(failure.message), _sanitize(failure.remedy)
    if app.json:
        from bethink.render.wire import error_json  # most calls do not fail

        app.out.json(error_json(message, remedy, failure.kind))
        return failure.code
    with suppress(OSError):  # no message is possible, but the exit code remains
        app.err.block(message, first=(red("error:"), " "), indent=7)
        if remedy:
            app.err.block(remedy, first=(dim("try:"), "   "), indent=7)
    return failure.code


def _sanitize(text: str) -> str:
    """Put the text on one line, in characters that any stream and any JSON reader accept."""
    encodable = text.encode("utf-8", "backslashreplace").decode()
    return " ".join(printable(encodable).split())


def _exit_code(error: BethinkError) -> int:
    if isinstance(error, NotFound):
        return EXIT_NOT_FOUND
    return EXIT_STORE if isinstance(error, (StoreError, ModelError)) else EXIT_USAGE


def _usage_failure(error: click.UsageError) -> Failure:
    no_command = isinstance(error, click.exceptions.NoArgsIsHelpError)
    message = "missing command" if no_command else error.format_message().rstrip(".")
    remedy = f"{error.ctx.command_path} --help" if error.ctx else ""
    if error.ctx is not None and error.ctx.parent is None:
        remedy += " --all"
    if isinstance(error, click.NoSuchOption):
        remedy += "; put -- before a text that starts with a dash"
    return Failure(message[:1].lower() + message[1:], remedy, "bad_use", EXIT_USAGE)


def _os_failure(error: OSError) -> Failure:
    name = f"{error.filename}: " if isinstance(error.filename, str) else ""
    reason = (error.strerror or str(error)).lower()
    if error.errno in _DISK_FULL_ERRNOS:
        return Failure(f"{name}{reason}", "free some disk space", "disk_full", EXIT_STORE)
    code = EXIT_USAGE if error.filename is not None else EXIT_STORE
    return Failure(f"{name}{reason}", "", "system", code)


def call_command(args: list[str]) -> int:
    """Run the command and report its failure, as JSON with ``--json``."""
    if COMPLETION_VARIABLE in os.environ:
        return _print_completions(os.environ[COMPLETION_VARIABLE])
    # Arguments that cannot be parsed must still be reported as JSON where --json is set.
    app = App(json="--json" in (args[: args.index("--")] if "--" in args else args))
    try:
        _warn_of_passwords(args, app)
        with bethink.make_context(PROGRAM, args, obj=app) as ctx:
            code = bethink.invoke(ctx)
            return code if isinstance(code, int) else 0
    except click.exceptions.Exit as done:
        return done.exit_code
    except BrokenPipeError:
        raise
    except (KeyboardInterrupt, Exception) as error:  # noqa: BLE001 - all are reported
        return report_error(error, app)


def _warn_of_passwords(args: list[str], app: App) -> None:
    """Say that the arguments of a process can be read by others, where one has a password."""
    urls = [word.removeprefix("--store=").removeprefix("--to=") for word in args]
    if any(is_server(url) and shown_store(url) != url for url in urls):
        told = " everyone on this machine can read a password among the arguments; "
        app.err.line(yellow("warning:"), told, "use ~/.pgpass or PGPASSWORD, and change it")


def report_error(error: KeyboardInterrupt | Exception, app: App) -> int:
    """Print the error that ended a command, and return the exit code.

    The only place for all errors: a bug must neither end in a traceback nor, by Python's own
    exit code 1, look like "nothing found".
    """
    if isinstance(error, KeyboardInterrupt | click.Abort):
        return report_failure(interrupted_failure(), app)
    failure = classify_error(error)
    if failure.is_bug and app.verbose:
        raise error
    return report_failure(failure, app)


def _print_completions(instruction: str) -> int:
    from click.shell_completion import shell_complete  # only needed by shells

    return shell_complete(bethink, {"obj": App()}, PROGRAM, COMPLETION_VARIABLE, instruction)
