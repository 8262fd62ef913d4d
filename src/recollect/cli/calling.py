"""Calls a command by its words and turns whatever it raises into an exit code."""

from __future__ import annotations

import os

import click

from recollect.cli.app import App
from recollect.cli.commands import recollect
from recollect.cli.failing import failure_of, interrupted, report
from recollect.cli.overview import PROGRAM

COMPLETION = "_RECOLLECT_COMPLETE"


def call(words: list[str]) -> int:
    """Runs the command; its failure is told, with ``--json`` as JSON."""
    if COMPLETION in os.environ:
        return _complete(os.environ[COMPLETION])
    # Where the words cannot even be parsed, the failure must still be told as asked.
    app = App(json="--json" in (words[: words.index("--")] if "--" in words else words))
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
        # The outermost loop, and the only one of its kind: a bug must neither end in
        # a traceback nor, by Python's own exit code 1, look like "nothing found".
        failure = failure_of(error)
        if failure.is_bug and app.verbose:
            raise
        return report(failure, app)


def _complete(instruction: str) -> int:
    from click.shell_completion import shell_complete  # only a shell asks for it

    return shell_complete(recollect, {}, PROGRAM, COMPLETION, instruction)
