"""`export`: everything as JSON Lines, written whole or not at all."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

import click

from recollect.cli.app import App
from recollect.cli.options import command, pass_app
from recollect.cli.printing import green, plural
from recollect.cli.progress import progress


@command(
    "export",
    examples=[
        "recollect export backup.jsonl",
        "recollect export - | gzip > backup.jsonl.gz",
    ],
)
@click.argument("file", metavar="[FILE]", default="-")
@pass_app
def export(app: App, file: str) -> None:
    """Write everything to a file.

    One JSON object a line, history and links included; recollect import takes it
    back without loss. FILE is replaced only when all is written, and only you can
    read it; - or nothing writes to standard output.
    """
    from recollect.wire import dumps  # needed here only

    count = 0
    with app.open() as memory, _target(file) as out, progress(app, "exporting") as advance:
        for record in memory.export():
            out.write(dumps(record) + "\n")
            count += 1
            advance(count, 0)
    if file == "-":
        return
    if app.json:
        app.out.json({"file": file, "records": count})
    else:
        app.note(green(f"wrote {plural(count, 'record')} to {file}"))


@contextmanager
def _target(name: str) -> Iterator[TextIO]:
    """Where the export goes. What is no plain file, like a pipe, is written to directly."""
    path = Path(name)
    if name == "-":
        yield sys.stdout
    elif path.exists() and not path.is_file():
        with path.open("w", encoding="utf-8") as out:
            yield out
    else:
        # A linked file is a choice of the user's: the target changes, the link stays.
        with _replacing(Path(os.path.realpath(path))) as out:
            yield out


@contextmanager
def _replacing(path: Path) -> Iterator[TextIO]:
    """A new private file beside ``path`` that takes its place when all went well."""
    descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name[:100]}-")
    draft = Path(name)
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as out:
            yield out
            out.flush()
            os.fsync(out.fileno())
        draft.replace(path)
    except BaseException:
        draft.unlink(missing_ok=True)
        raise
