"""Runs one command: streams made safe, failures turned into a sentence and an exit code."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

import click

from recollect.cli.app import App
from recollect.cli.commands import recollect
from recollect.cli.failing import Failure, failure_of, interrupted, report

PROGRAM = "recollect"
_COMPLETION = "_RECOLLECT_COMPLETE"
_BROKEN_PIPE = 141  # what a shell shows for a program ended by SIGPIPE


def run(args: Sequence[str]) -> int:
    """One command from its arguments to its exit code; everything raised ends here."""
    _make_streams_safe()
    words = [_readable(arg) for arg in args] or ["--help"]
    if _COMPLETION in os.environ:
        return _complete(os.environ[_COMPLETION])
    app = App(json="--json" in _before_double_dash(words))
    try:
        code = _finish(_attempt(app, words))
    except BrokenPipeError:
        _let_go_of_stdout()
        return _BROKEN_PIPE
    except OSError as error:  # the output itself could not be written
        _let_go_of_stdout()
        return report(failure_of(error), App())
    return code


def _attempt(app: App, words: list[str]) -> int:
    try:
        with recollect.make_context(PROGRAM, words, obj=app) as ctx:
            code = recollect.invoke(ctx)
            return code if isinstance(code, int) else 0
    except click.exceptions.Exit as done:
        return done.exit_code
    except BrokenPipeError:
        raise
    except (KeyboardInterrupt, click.Abort):
        return report(interrupted(), app)
    except Exception as error:
        # The outermost loop, the one place for this: a bug must neither end in a
        # traceback nor, by Python's exit code 1, look like "nothing found".
        failure = failure_of(error)
        if app.verbose and failure.is_bug:
            raise
        return report(failure, app)


def _finish(code: int) -> int:
    """Writes out what is still buffered, while a failure to do so can be told."""
    sys.stdout.flush()
    return code


def _before_double_dash(words: list[str]) -> list[str]:
    return words[: words.index("--")] if "--" in words else words


def _readable(arg: str) -> str:
    """The argument as UTF-8, whatever the locale took it for; its bytes if it is not."""
    if not any("\udc80" <= char <= "\udcff" for char in arg):
        return arg
    try:
        return os.fsencode(arg).decode()
    except UnicodeError:
        return arg


def _make_streams_safe() -> None:
    """UTF-8 whatever the locale, no character that cannot be written, no closed stream."""
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is None:
            # Whatever is opened next must not become standard output by accident.
            descriptor = os.open(os.devnull, os.O_RDWR)
            if descriptor != number:
                os.dup2(descriptor, number)
            setattr(sys, name, os.fdopen(number, "w" if number else "r", closefd=False))
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(encoding="utf-8", errors="backslashreplace")


def _let_go_of_stdout() -> None:
    """Nobody reads on: what is still buffered must not fail again at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)


def _complete(instruction: str) -> int:
    from click.shell_completion import shell_complete  # only a shell asks for it

    return shell_complete(recollect, {}, PROGRAM, _COMPLETION, instruction)


__all__ = ["PROGRAM", "Failure", "run"]
