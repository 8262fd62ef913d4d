"""Runs one command: streams made safe, output written to the end, an exit code given."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

from recollect.cli.overview import overview

_BROKEN_PIPE = 141  # what a shell shows for a program ended by SIGPIPE


def run(args: Sequence[str]) -> int:
    """One command from its arguments to its exit code; everything raised ends here."""
    _make_streams_safe()
    words = [_readable(arg) for arg in args]
    try:
        code = _overview() if _is_overview(words) else _call(words)
        # While a failure to write can still be told.
        sys.stdout.flush()
    except BrokenPipeError:
        _let_go_of_stdout()
        return _BROKEN_PIPE
    except OSError as error:
        _let_go_of_stdout()
        return _cannot_write(error)
    return code


def _is_overview(words: list[str]) -> bool:
    # A shell that asks for completions calls without words, too.
    return words in ([], ["-h"], ["--help"]) and "_RECOLLECT_COMPLETE" not in os.environ


def _overview() -> int:
    """The one page so often asked for that it must not wait for click to load."""
    print(overview())
    return 0


def _call(words: list[str]) -> int:
    if _is_hook(words):
        from importlib import import_module  # a hook is above the command line

        code: int = import_module("recollect.plugin.hook").main(words[1:])
        return code
    from recollect.cli.calling import call  # brings click

    return call(words)


def _is_hook(words: list[str]) -> bool:
    """A host waits for each of them: they too do without click."""
    return len(words) == 2 and words[0] == "hook" and not words[1].startswith("-")


def _cannot_write(error: OSError) -> int:
    from recollect.cli.app import App  # only a full disk needs it
    from recollect.cli.failing import failure_of, report

    return report(failure_of(error), App())


def _readable(arg: str) -> str:
    """The argument as UTF-8, whatever the locale took it for; unchanged if it is not."""
    if arg.isascii() or not any("\udc80" <= char <= "\udcff" for char in arg):
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
                os.close(descriptor)
            setattr(sys, name, os.fdopen(number, "w" if number else "r", closefd=False))
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(encoding="utf-8", errors="backslashreplace")


def _let_go_of_stdout() -> None:
    """Nobody reads on: what is still buffered must not fail again at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
