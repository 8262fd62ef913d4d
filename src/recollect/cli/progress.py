"""A bar on stderr while something takes long; nothing where nobody watches."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from recollect.cli.app import App

Advance = Callable[[int, int], None]


@contextmanager
def progress(app: App, label: str, *, unit: str = "") -> Iterator[Advance]:
    """Gives a function to call with how much is done and, where known, of how much."""
    if app.quiet or not app.err.terminal:
        yield _nobody
        return
    # Nobody who pipes waits for rich to load.
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
    from rich.progress import TimeRemainingColumn as Remaining

    from recollect.cli.tables import rich_console

    parts = (TextColumn(label), BarColumn(), MofNCompleteColumn(), TextColumn(unit), Remaining())
    with Progress(*parts, console=rich_console(app.err), transient=True) as bar:
        task = bar.add_task(label, total=None)

        def advance(done: int, total: int) -> None:
            bar.update(task, completed=done, total=total or None)

        yield advance


def _nobody(done: int, total: int) -> None:
    """Where nobody watches."""
