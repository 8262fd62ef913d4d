"""The command line. Whatever a command does not need is not imported."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one command and gives its exit code.

    0 found or done, 1 nothing found, 2 bad use, 3 store trouble, 130 interrupted.
    """
    # One command's worth of arithmetic is over before a pool of threads has started.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    try:
        from recollect.cli.running import run  # so that Ctrl-C is caught from here on

        return run(sys.argv[1:] if argv is None else argv)
    except KeyboardInterrupt:
        return 130


def reference() -> str:
    """The help of every command as one Markdown page."""
    from recollect.cli.manual import page  # only the documentation needs it

    return page()
