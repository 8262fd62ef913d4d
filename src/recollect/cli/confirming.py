"""Asking before something cannot be taken back."""

from __future__ import annotations

import sys

from recollect.cli.app import App


def confirmed(app: App, question: str) -> bool:
    """Asks where somebody can answer; nobody there and the end of input mean no."""
    if app.json or not (sys.stdin.isatty() and app.err.terminal):
        return False
    app.out.stream.flush()
    app.err.stream.write(f"{question} [y/N] ")
    app.err.stream.flush()
    answer = sys.stdin.buffer.readline()
    return answer.strip().lower() in (b"y", b"yes")
