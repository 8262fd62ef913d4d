"""`import`: many memories from a file, each taken in or refused by name."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import islice
from typing import TYPE_CHECKING, Any

import click

from recollect.cli.app import App
from recollect.cli.options import command, pass_app
from recollect.cli.printing import dim, green, plural, red, yellow
from recollect.cli.progress import Advance, progress
from recollect.errors import Refused

if TYPE_CHECKING:
    from recollect.cli.sources import Source
    from recollect.ingest.files import Line
    from recollect.memory import Memory
    from recollect.model import Remembered

_FORMATS = ("auto", "jsonl", "text", "lines", "recollect")
_BATCH = 500
_SHOWN = 20  # refusals listed for people; --json has all


@command(
    "import",
    examples=[
        "recollect import notes.txt --source notes",
        "recollect import memories.jsonl --dry-run",
        "recollect export - | recollect --space other import -",
    ],
)
@click.argument("file", metavar="FILE")
@click.option("--format", "form", type=click.Choice(_FORMATS), default="auto", show_default=True,
              help="What the file holds.")  # fmt: skip
@click.option("--dry-run", is_flag=True, help="Store nothing; say what would be refused.")
@click.option("--kind", metavar="TEXT", help="For lines that name none.")
@click.option("--topic", metavar="TEXT", help="For lines that name none.")
@click.option("--tag", "tags", multiple=True, metavar="TEXT", help="For lines that name none.")
@click.option("--session", metavar="NAME", help="For lines that name none.")
@click.option("--source", metavar="TEXT", help="For lines that name none; else the file.")
@click.option("--source-class", metavar="TEXT", help="For lines that name none; else import.")
@click.option("--trust", type=click.IntRange(0, 3), metavar="0-3", help="For lines that name none.")
@click.option("--level", type=click.Choice(["raw", "item", "insight"]),
              help="For lines that name none.")  # fmt: skip
@click.option("--classification", type=click.IntRange(0, 3), metavar="0-3",
              help="For lines that name none.")  # fmt: skip
@click.option("--force", is_flag=True, default=None, help="Even what looks like a pasted log.")
@pass_app
def import_memories(app: App, /, file: str, form: str, *, dry_run: bool, **defaults: Any) -> int:
    """Store many memories from a file.

    FILE is a path, packed by gzip or not; - reads standard input. jsonl has one JSON
    object a line with the fields of a memory, or a JSON string. text has a memory a
    paragraph, lines has one a line. recollect is an earlier export, taken in whole or
    not at all. auto looks at how the file begins. A line that is refused is reported;
    the others are stored.
    """
    from recollect.cli.sources import guess_format, open_source  # help does without

    said = {name: value for name, value in defaults.items() if value not in (None, ())}
    with open_source(file) as source, _target(app, dry_run=dry_run) as memory:
        given = {"source": source.name, "source_class": "import", **said}
        chosen = guess_format(source) if form == "auto" else form
        with progress(app, "importing", unit="bytes") as advance:
            if chosen == "recollect":
                return _take_export(app, memory, source, advance, dry_run=dry_run)
            tally = Tally()
            for batch in _batches(source, chosen, given):
                tally.take(memory, batch)
                advance(source.done, source.size)
    return _report(app, tally, chosen, dry_run=dry_run)


def _batches(source: Source, form: str, given: dict[str, Any]) -> Iterator[list[Line]]:
    from recollect.ingest.files import read_drafts  # help does without

    lines = read_drafts(source.reader, form, given)  # type: ignore[arg-type]
    while batch := list(islice(lines, _BATCH)):
        yield batch


class Tally:
    """What became of every line."""

    def __init__(self) -> None:
        self.ids: list[str] = []
        self.statuses: Counter[str] = Counter()
        self.redacted = 0
        self.refused: list[tuple[int, Refused]] = []

    def take(self, memory: Memory, batch: list[Line]) -> None:
        """Stores what can be stored of these lines."""
        good = [line.found for line in batch if not isinstance(line.found, Refused)]
        answers = iter(memory.remember_each(good))
        for line in batch:
            found = line.found if isinstance(line.found, Refused) else next(answers)
            if isinstance(found, Refused):
                self.refused.append((line.number, found))
            else:
                self._count(found)

    def _count(self, result: Remembered) -> None:
        self.ids.append(result.id)
        self.statuses[result.status] += 1
        self.redacted += bool(result.redacted)


def _target(app: App, *, dry_run: bool) -> Memory:
    """The memory to fill: for a dry run one that is thrown away."""
    if not dry_run:
        return app.open()
    from recollect.memory import Memory  # the heavy part

    return Memory.open(":memory:", embedder="none", settings=app.settings)


def _report(app: App, tally: Tally, form: str, *, dry_run: bool) -> int:
    if app.json:
        app.out.json(_tally_json(tally, form, dry_run=dry_run))
    else:
        _print_tally(app, tally, dry_run=dry_run)
    if tally.refused:
        return 2
    return 0 if tally.ids else 1


def _print_tally(app: App, tally: Tally, *, dry_run: bool) -> None:
    if not (tally.ids or tally.refused):
        app.note("there is nothing in it")
        return
    doing = "would store" if dry_run else "stored"
    parts = [f"{doing} {plural(tally.statuses['stored'], 'memory')}"]
    known = tally.statuses["duplicate"] + tally.statuses["repeated"]
    parts += [f"{known:,} known already"] if known else []
    parts += [f"{tally.redacted:,} with secrets taken out"] if tally.redacted else []
    parts += [f"{len(tally.refused):,} refused"] if tally.refused else []
    look = yellow if tally.refused else green
    app.out.line(look(", ".join(parts)))
    for number, error in tally.refused[:_SHOWN]:
        app.out.line(red(f"  line {number}: "), error.message, dim(_try(error)))
    if len(tally.refused) > _SHOWN:
        app.out.line(dim(f"  and {len(tally.refused) - _SHOWN:,} more; --json lists all"))


def _try(error: Refused) -> str:
    return f" (try: {error.remedy})" if error.remedy else ""


def _tally_json(tally: Tally, form: str, *, dry_run: bool) -> dict[str, Any]:
    return {
        "format": form,
        "dry_run": dry_run,
        "stored": tally.statuses["stored"],
        "duplicates": tally.statuses["duplicate"],
        "repeated": tally.statuses["repeated"],
        "redacted": tally.redacted,
        "ids": tally.ids,
        "refused": [
            {
                "line": number,
                "kind": error.rule,
                "message": error.message,
                "remedy": error.remedy,
            }
            for number, error in tally.refused
        ],
    }


def _take_export(
    app: App, memory: Memory, source: Source, advance: Advance, *, dry_run: bool
) -> int:
    from recollect.cli.sources import records  # other formats do without

    def watched() -> Iterator[dict[str, Any]]:
        for record in records(source):
            advance(source.done, source.size)
            yield record

    count = memory.import_(watched())
    if app.json:
        app.out.json({"format": "recollect", "dry_run": dry_run, "stored": count})
    else:
        doing = "would take in" if dry_run else "took in"
        app.out.line(green(f"{doing} {plural(count, 'memory')} of an export"))
    return 0
