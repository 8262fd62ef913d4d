"""`import`: many memories from a file, a folder or another tool, each taken in or refused."""

from __future__ import annotations

from shlex import quote
from typing import TYPE_CHECKING, Any

import click

from recollect.cli.app import App
from recollect.cli.options import command, pass_app
from recollect.cli.printing import dim, green, plural, red, yellow
from recollect.cli.progress import progress
from recollect.errors import Refused
from recollect.sources import KINDS

if TYPE_CHECKING:
    from recollect.memory import Memory
    from recollect.sources.importing import Import
    from recollect.sources.tally import Tally

_SHOWN = 20  # refusals listed for people; --json has more
_KINDS_SHOWN = 8


@command(
    "import",
    examples=[
        "recollect import notes.txt --source notes",
        "recollect import chatgpt-export.zip --dry-run",
        "recollect import ~/.claude-mem/claude-mem.db --from claude-mem",
        "recollect import ~/notes --tag notes",
        "recollect export - | recollect --space other import -",
    ],
)
@click.argument("path", metavar="PATH")
@click.option("--from", "--format", "kind", type=click.Choice(KINDS), default="auto",
              show_default=True, help="What is there. docs/import.md tells of each.",
              metavar="KIND")  # fmt: skip
@click.option("-n", "--dry-run", is_flag=True, help="Store nothing; say what would happen.")
@click.option("--kind", "sort", metavar="TEXT", help="For memories that name none.")
@click.option("--topic", metavar="TEXT", help="For memories that name none.")
@click.option("--tag", "tags", multiple=True, metavar="TEXT", help="For memories that name none.")
@click.option("--session", metavar="NAME", help="For memories that name none.")
@click.option("--source", metavar="TEXT", help="For memories that name none; else the file.")
@click.option("--source-class", metavar="TEXT", help="For memories that name none; else import.")
@click.option("--trust", type=click.IntRange(0, 3), metavar="0-3",
              help="For memories that name none.")  # fmt: skip
@click.option("--level", type=click.Choice(["raw", "item", "insight"]),
              help="For memories that name none.")  # fmt: skip
@click.option("--classification", type=click.IntRange(0, 3), metavar="0-3",
              help="For memories that name none.")  # fmt: skip
@click.option("--force", is_flag=True, default=None, help="Even what looks like a pasted log.")
@pass_app
def import_memories(app: App, /, path: str, kind: str, *, dry_run: bool, **defaults: Any) -> int:
    """Store many memories from a file, or from another tool.

    PATH is a file, packed by gzip or not, or a folder; - reads standard input. KIND is
    what is there: mcp-memory, mem0, remind, claude-mem, basic-memory, claude-code, chatgpt,
    claude, markdown; jsonl (an object with the fields of a memory a line, or a string),
    text (a memory a paragraph), lines (one a line); recollect (an earlier export, taken in
    whole or not at all). auto looks at what it is. What is refused is reported, all else
    is stored; the same again stores nothing twice, and what has changed becomes a new
    revision.
    """
    from recollect.sources.importing import Import  # help does without

    given = {name: value for name, value in defaults.items() if value not in (None, ())}
    if "sort" in given:
        given["kind"] = given.pop("sort")
    with _target(app, dry_run=dry_run) as memory:
        under_way = Import(memory, path, kind, preview=dry_run, given=given)
        try:
            with progress(app, "importing") as advance:
                tally = under_way.run(advance)
        except KeyboardInterrupt:
            _say_how_far(app, under_way)
            raise
    return _report(app, tally, named=kind == "auto")


def _target(app: App, *, dry_run: bool) -> Memory:
    """The memory to fill; a preview of what a new one would get makes none."""
    if not dry_run or app.where().path.exists():
        return app.open()
    from recollect.memory import Memory  # the heavy part

    return Memory.open(":memory:", settings=app.settings)


def _say_how_far(app: App, under_way: Import) -> None:
    tally = under_way.tally
    if not tally.preview and (tally.stored or tally.updated):
        done = plural(tally.stored + tally.updated, "memory")
        app.note(f"{done} stored so far; the same command goes on from there")


def _report(app: App, tally: Tally, *, named: bool) -> int:
    if app.json:
        app.out.json(tally_json(tally))
    elif tally.kind == "recollect":
        _print_export(app, tally)
    else:
        if named:
            app.note(dim(f"this is {tally.kind}"))
        _print_tally(app, tally)
    if tally.n_refused:
        return 2
    return 0 if tally.read or tally.kind == "recollect" else 1


def _print_export(app: App, tally: Tally) -> None:
    doing = "would take in" if tally.preview else "took in"
    known = f", {tally.repeated:,} known already" if tally.repeated else ""
    app.out.line(green(f"{doing} {plural(tally.stored, 'memory')} of an export{known}"))


def _print_tally(app: App, tally: Tally) -> None:
    if not tally.read:
        app.note("there is nothing in it")
        return
    look = yellow if tally.n_refused else green
    app.out.line(look(", ".join(_counts(tally))))
    if tally.preview:
        _print_preview(app, tally)
    for refusal in tally.refused[:_SHOWN]:
        app.out.line(red(f"  {refusal.where}: "), refusal.error.message, dim(_try(refusal.error)))
    if tally.n_refused > _SHOWN:
        app.out.line(dim(f"  and {tally.n_refused - _SHOWN:,} more; --json lists them"))
    if tally.stored and not tally.preview and ":" in tally.source:
        app.note(dim(f"take it back: recollect revoke --source {quote(tally.source)}"))


def _counts(tally: Tally) -> list[str]:
    doing = "would store" if tally.preview else "stored"
    parts = [f"{doing} {plural(tally.stored, 'memory')}"]
    parts += [f"{tally.updated:,} changed"] if tally.updated else []
    parts += [f"{tally.known:,} known already"] if tally.known else []
    parts += [f"{plural(tally.links, 'link')}"] if tally.links else []
    parts += [f"{tally.redacted:,} with secrets taken out"] if tally.redacted else []
    parts += [f"{tally.n_refused:,} refused"] if tally.n_refused else []
    return parts


def _print_preview(app: App, tally: Tally) -> None:
    kinds = tally.kinds.most_common(_KINDS_SHOWN)
    if kinds:
        more = len(tally.kinds) - len(kinds)
        told = ", ".join(f"{count:,} {name}" for name, count in kinds)
        app.out.line(dim(f"  {told}{f' and {more} other kinds' if more else ''}"))
    for glimpse in tally.first:
        app.out.line(dim(f"  {glimpse.where}  "), glimpse.text)


def _try(error: Refused) -> str:
    return f" (try: {error.remedy})" if error.remedy else ""


def tally_json(tally: Tally) -> dict[str, Any]:
    """What became of an import, for programs."""
    return {
        "format": tally.kind,
        "source": tally.source,
        "dry_run": tally.preview,
        "stored": tally.stored,
        "updated": tally.updated,
        "duplicates": tally.duplicates,
        "repeated": tally.repeated,
        "links": tally.links,
        "redacted": tally.redacted,
        "kinds": dict(tally.kinds),
        "first": [glimpse._asdict() for glimpse in tally.first],
        "ids": tally.ids,
        "n_refused": tally.n_refused,
        "refused": [
            {
                "where": where,
                "line": int(where[5:]) if where[5:].isdecimal() else None,
                "kind": error.rule,
                "message": error.message,
                "remedy": error.remedy,
            }
            for where, error in tally.refused
        ],
    }
