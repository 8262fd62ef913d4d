"""Run one command: prepare the streams, dispatch, and return an exit code."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

from bethink.cli.help import COMPLETION_VARIABLE, overview

_EXIT_BROKEN_PIPE = 141  # what a shell shows for a program ended by SIGPIPE


def run(args: Sequence[str]) -> int:
    """Run one command from its arguments to its exit code; no exception escapes."""
    _prepare_streams()
    arguments = [_decode_argument(arg) for arg in args]
    try:
        code = _print_overview(arguments) if _is_overview(arguments) else _dispatch(arguments)
        # Flush here, where a failure to write can still be reported.
        sys.stdout.flush()
    except BrokenPipeError:
        _redirect_stdout_to_devnull()
        return _EXIT_BROKEN_PIPE
    except OSError as error:
        _redirect_stdout_to_devnull()
        return _report_write_error(error)
    return code


def _is_overview(args: list[str]) -> bool:
    if COMPLETION_VARIABLE in os.environ:  # a shell requests completions without arguments
        return False
    return set(args) - {"--all"} <= {"-h", "--help"} and args != ["--all"]


def _print_overview(args: list[str]) -> int:
    """Print the help page without loading click, since it is requested often."""
    print(overview(every_command="--all" in args))
    return 0


def _dispatch(args: list[str]) -> int:
    if _is_hook_call(args):
        from importlib import import_module  # the hooks package is a layer above

        code: int = import_module("bethink.hooks.dispatch").main(args[1:])
        return code
    recall = _parse_recall(args)
    if recall is not None:
        return _recall(*recall)
    from bethink.cli.errors import call_command  # brings click

    return call_command(args)


def _is_hook_call(args: list[str]) -> bool:
    """Whether this is a hook call; hosts wait for hooks, so they run without click."""
    return len(args) == 2 and args[0] == "hook" and not args[1].startswith("-")


_RECALL_OPTIONS = {"--space": "space", "-k": "k", "--limit": "k"}
_MAX_DIGITS = 9


def _parse_recall(args: list[str]) -> tuple[str, dict[str, str], bool] | None:
    """Return question, options and whether JSON is asked for; None for any other call.

    Agents and scripts wait for a recall, and click takes an eighth of its time. It parses
    whatever is not plain: other options, other ways to write them, mistakes.
    """
    if args[:1] != ["recall"] or COMPLETION_VARIABLE in os.environ:
        return None
    texts: list[str] = []
    options: dict[str, str] = {}
    words = iter(args[1:])
    for word in words:
        if word in _RECALL_OPTIONS:
            options[_RECALL_OPTIONS[word]] = value = next(words, "-")
            if value.startswith("-"):
                return None
        elif word != "--json":
            texts.append(word)
    k = options.get("k", "1")
    if len(texts) != 1 or texts[0].startswith("-"):
        return None
    if not (k.isascii() and k.isdigit() and len(k) <= _MAX_DIGITS):
        return None
    return texts[0], options, "--json" in args


def _recall(text: str, options: dict[str, str], as_json: bool) -> int:
    """Do what `bethink recall` does with these options."""
    from bethink.cli.app import App  # the help needs none of these
    from bethink.cli.queries import run_query
    from bethink.worker.query import QueryRequest

    app = App(json=as_json)
    app.space = options.get("space") or None
    limits = {"k": int(options["k"])} if "k" in options else {}
    try:
        return run_query(app, "recall", QueryRequest(text, options=limits))
    except BrokenPipeError:
        raise
    except (KeyboardInterrupt, Exception) as error:  # noqa: BLE001 - all are reported
        from bethink.cli.errors import report_error  # brings click

        return report_error(error, app)


def _report_write_error(error: OSError) -> int:
    from bethink.cli.app import App  # only a full disk needs it
    from bethink.cli.errors import classify_error, report_failure

    return report_failure(classify_error(error), App())


def _decode_argument(arg: str) -> str:
    """Decode the argument as UTF-8 whatever the locale; return it unchanged if invalid."""
    if arg.isascii() or not any("\udc80" <= char <= "\udcff" for char in arg):
        return arg
    try:
        return os.fsencode(arg).decode()
    except UnicodeError:
        return arg


def _prepare_streams() -> None:
    """Force UTF-8 output, escape unencodable characters, reopen closed streams."""
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is None:
            # The next opened file must not become standard output by accident.
            descriptor = os.open(os.devnull, os.O_RDWR)
            if descriptor != number:
                os.dup2(descriptor, number)
                os.close(descriptor)
            setattr(sys, name, os.fdopen(number, "w" if number else "r", closefd=False))
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(encoding="utf-8", errors="backslashreplace")


def _redirect_stdout_to_devnull() -> None:
    """Point stdout at /dev/null so that flushing at exit cannot fail again."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
