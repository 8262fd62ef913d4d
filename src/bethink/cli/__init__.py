"""The command line interface.

Modules are imported lazily: a command loads only what it needs.
"""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Sequence

from bethink.cli import process


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code.

    Without ``argv`` it takes the process's own arguments and ends the process. Exit
    codes: 0 success, 1 nothing there, 2 usage error, 3 store error, 130 interrupted.
    """
    if argv is not None:
        return _run(argv)
    process.runs_one_command = True
    # The arithmetic of one command ends before a thread pool would have started.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    # Loading modules creates no garbage, but collecting costs 5 % of a recall.
    gc.set_threshold(100_000, 50, 50)
    code = _run(sys.argv[1:])
    # Everything is written and closed. Unloading the modules would cost another 10 %.
    try:  # noqa: SIM105 - contextlib takes longer to load than the help to print
        sys.stderr.flush()
    except OSError:
        pass  # what could not be written changes no exit code
    os._exit(code)


def _run(args: Sequence[str]) -> int:
    try:
        from bethink.cli.run import run  # so that Ctrl-C is caught from here on

        return run(args)
    except KeyboardInterrupt:
        return 130


def reference() -> str:
    """Return the help of every command as one Markdown page."""
    from bethink.cli.commands import reference_page  # only the documentation needs it

    return reference_page()
