"""The commands `export` and `import`.

An export is an atomic write of JSON Lines. An import stores or refuses each entry by
itself.
"""

from __future__ import annotations

import errno
import os
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

import click

from bethink.cli.app import App, progress
from bethink.cli.options import command, option
from bethink.cli.output import dim, green, red, yellow
from bethink.config.paths import CARRIED_OVER, config_folder, earlier_folder
from bethink.config.spaces import SpaceInfo, data_dir, list_spaces
from bethink.core import plural
from bethink.errors import BethinkError, Refused, SchemaTooNew, StoreDamaged
from bethink.importers import IMPORTERS, KINDS
from bethink.render.wire import dumps, fields_json
from bethink.store import space_exists

if TYPE_CHECKING:
    from bethink.api.export_origin import ExportClaims
    from bethink.core.json_values import Json
    from bethink.importers.importer import Import
    from bethink.importers.intake import Tally
    from bethink.memory import Memory


@command(
    "export",
    examples=[
        "bethink export backup.jsonl",
        "bethink export - | gzip > backup.jsonl.gz",
        "bethink export back.json --as remind",
        "bethink export notes --markdown",
    ],
)
@click.argument("file", metavar="[FILE]", default="-")
@option("--as form", "Write it for remind import instead.", click.Choice(["remind"]))
@option("--markdown", "Write Markdown files into FILE, a new folder.")
def export(app: App, file: str, form: str | None, *, markdown: bool) -> None:
    """Write everything to a file.

    One JSON object per line, history and links included; bethink import restores it
    without loss. FILE is replaced only when all is written, and only you can read it; -
    or nothing writes to standard output. --as remind writes what Remind does not have yet
    in the form that its import reads. --markdown writes what bethink files would write:
    present texts of the classes 0 and 1, without history.
    """
    _require_path(file, "FILE")
    if markdown:
        from bethink.cli.folders import export_markdown  # seldom needed

        export_markdown(app, file)
        return
    if form is not None:
        _export_to_remind(app, file)
        return
    count = damaged = 0
    with app.open() as memory, open_output(file) as out, progress(app, "exporting") as advance:
        for record in memory.export():
            out.write(dumps(record) + "\n")
            count += 1
            damaged += record["type"] == "damaged"
            advance(count, 0)
    if damaged:
        app.note(yellow(f"{plural(damaged, 'record')} of damaged data; see bethink doctor"))
    if file == "-":
        return
    shown = green(f"wrote {plural(count, 'record')} to {file}")
    app.remark({"file": file, "records": count}, shown)


def _export_to_remind(app: App, file: str) -> None:
    from bethink.systems.remind.export import to_remind  # seldom needed

    with app.open() as memory, open_output(file) as out:
        written = to_remind(memory.export())
        out.write(dumps(written) + "\n")
    counts = {name: len(written[name]) for name in ("concepts", "episodes")}
    if file != "-":
        told = " and ".join(plural(count, name[:-1]) for name, count in counts.items())
        app.remark({"file": file, **counts}, green(f"wrote {told} to {file}"))


def _require_path(path: str, name: str) -> None:
    if not path:  # an unset variable of a script
        raise click.UsageError(f"{name} is empty")


@contextmanager
def open_output(name: str) -> Iterator[TextIO]:
    """Open the output; a pipe or device is written to directly."""
    path = Path(name)
    if name == "-":
        yield sys.stdout
    elif path.is_fifo():
        with os.fdopen(_open_pipe(path), "w", encoding="utf-8") as out:
            yield out
    elif path.exists() and not path.is_file():
        with path.open("w", encoding="utf-8") as out:
            yield out
    else:
        # A symbolic link is the user's choice: replace its target, keep the link.
        try:
            with _atomic_writer(Path(os.path.realpath(path))) as out:
                yield out
        except OSError as error:
            if error.filename is None:
                raise
            # It names the temporary file, not the one that was given.
            raise OSError(error.errno, error.strerror, str(path)) from error


_READER_TIMEOUT_S = 10.0  # for a program to begin reading from a named pipe


def _open_pipe(path: Path) -> int:
    """Open a named pipe for writing; raise Refused where no program begins to read from it."""
    deadline = time.monotonic() + _READER_TIMEOUT_S
    while True:
        try:
            descriptor = os.open(path, os.O_WRONLY | os.O_NONBLOCK)
            break
        except OSError as error:
            if error.errno != errno.ENXIO:
                raise
            if time.monotonic() > deadline:
                raise Refused(
                    f"{path.name} is a pipe that no program reads from",
                    remedy="start the program that reads from it first",
                ) from error
            time.sleep(0.02)
    os.set_blocking(descriptor, True)
    return descriptor


@contextmanager
def _atomic_writer(path: Path) -> Iterator[TextIO]:
    """Write a private temporary file that atomically replaces ``path`` on success."""
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


_MAX_REFUSALS_SHOWN = 20  # --json lists more
_MAX_KINDS_SHOWN = 8

if TYPE_CHECKING:
    _Choice = click.Choice[str]
else:
    _Choice = click.Choice  # not generic at run time before click 8.2


class _ImporterName(_Choice):
    """A built-in kind of source, or the name of an installed importer."""

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> str:
        if value not in self.choices and value in IMPORTERS:
            return str(value)
        return super().convert(value, param, ctx)


@command(
    "import",
    examples=[
        "bethink import notes.txt --source notes",
        "bethink import chatgpt-export.zip --dry-run",
        "bethink import ~/.claude-mem/claude-mem.db --from claude-mem",
        "bethink import ~/notes --tag notes",
        "bethink export - | bethink --space other import -",
        "bethink import backup.jsonl --restore",
    ],
)
@click.argument("path", metavar="PATH")
@option(
    "--from --format kind KIND",
    "Format; docs/import.md describes each.",
    _ImporterName(KINDS),
    shown="auto",
)
@option("-n --dry-run", "Store nothing; show what would happen.")
@option("--kind sort TEXT", "Default kind.")
@option("--topic TEXT", "Default topic.")
@option("--tag tags TEXT", "Default tag; may be repeated.", multiple=True)
@option("--session NAME", "Default session.")
@option("--source TEXT", "Default source; the file if omitted.")
@option("--source-class TEXT", "Default source class; import if omitted.")
@option("--trust 0-3", "Default trust.", click.IntRange(0, 3))
@option("--level", "Default level.", click.Choice(["raw", "item", "insight"]))
@option("--classification 0-3", "Default classification.", click.IntRange(0, 3))
@option("--force", "Store even what looks like a pasted log.", default=None)
@option("--restore", "Take an export as it is, with its trust: for a back-up of your own.")
def import_memories(
    app: App, /, path: str, kind: str, *, dry_run: bool, restore: bool, **defaults: Any
) -> int:
    """Store many memories from a file, or from another tool.

    PATH is a file, gzipped or not, or a folder; - reads standard input. KIND is the
    format: mcp-memory, mem0, remind, linksee, abmind, siftcoder, memind, claude-mem,
    basic-memory, logseq, claude-code, chatgpt, claude, markdown; jsonl (one object with the
    fields of a memory per line, or a string), text (one memory per paragraph), lines (one per
    line); bethink (an earlier export, imported as a whole or not at all).
    auto detects it. Refused entries are reported, all others are stored; importing again
    stores nothing twice, and a changed entry becomes a new revision. Defaults apply to
    entries without that field.

    Nothing that is imported has more than trust 1, or is pinned, except an export that
    this installation has written and signed. --restore takes any export as it is; it says
    first what will be trusted.
    """
    from bethink.importers.importer import Import  # not needed for help

    _require_path(path, "PATH")
    fields = {name: value for name, value in defaults.items() if value not in (None, ())}
    if "sort" in fields:
        fields["kind"] = fields.pop("sort")
    absent = kind == "auto" and path != "-" and not Path(path).exists()
    with _open_target_memory(app, stores=not (dry_run or absent)) as memory:
        say = partial(_say_trusted, app)
        running_import = Import(
            memory, path, kind, preview=dry_run, given=fields, restore=restore, announce=say
        )
        try:
            with progress(app, "importing", unit="memories") as advance:
                tally = running_import.run(advance)
        except KeyboardInterrupt:
            _report_interrupted(app, running_import)
            raise
    return _report_import(app, tally, announce_format=kind == "auto")


def _say_trusted(app: App, claims: ExportClaims) -> None:
    """Say what an export will be trusted with, before anything of it is stored."""
    app.note(
        f"taken as it is, {'' if claims.is_own else 'NOT '}signed by this installation:"
        f" {plural(claims.memories, 'memory')} of the space {claims.space!r}, {claims.trusted:,}"
        f" of them your own word (trust 2 or 3), {claims.pinned:,} pinned; history and journal"
    )


def _open_target_memory(app: App, *, stores: bool) -> Memory:
    """Open the memory to fill; what stores nothing in a new space uses an in-memory one."""
    where = app.where()
    if stores or space_exists(app.settings.store, where.name, where.path):
        return app.open(create=True)
    from bethink.memory import Memory  # slow to import

    return Memory.open(":memory:", settings=app.settings)


def _report_interrupted(app: App, running_import: Import) -> None:
    tally = running_import.tally
    if not tally.preview and (tally.stored or tally.updated):
        done = plural(tally.stored + tally.updated, "memory")
        app.note(f"{done} stored so far; run the same command again to continue")


def _report_import(app: App, tally: Tally, *, announce_format: bool) -> int:
    app.document(tally_json(tally))
    if tally.kind == "bethink":
        _print_export_summary(app, tally)
        if tally.run:
            app.note(dim(f"undo: bethink undo {tally.run}"))
    else:
        if announce_format:
            app.note(dim(f"detected format: {tally.kind}; --from overrides it"))
        _print_tally(app, tally)
    for warning in tally.warnings:
        app.note(yellow(f"note: {warning}"))
    if tally.n_refused:
        return 2
    return 0 if tally.read or tally.kind == "bethink" else 1


def _print_export_summary(app: App, tally: Tally) -> None:
    action = "would import" if tally.preview else "imported"
    known = f", {tally.repeated:,} already known" if tally.repeated else ""
    app.out.line(green(f"{action} {plural(tally.stored, 'memory')} from an export{known}"))


def _print_tally(app: App, tally: Tally) -> None:
    if not tally.read:
        app.note("nothing to import")
        return
    style = yellow if tally.n_refused else green
    app.out.line(style(", ".join(_count_phrases(tally))))
    if tally.preview:
        _print_preview(app, tally)
    for refusal in tally.refused[:_MAX_REFUSALS_SHOWN]:
        error = refusal.error
        remedy = f" (try: {error.remedy})" if error.remedy else ""
        app.out.line(red(f"  {refusal.where}: "), error.message, dim(remedy))
    if tally.n_refused > _MAX_REFUSALS_SHOWN:
        more = tally.n_refused - _MAX_REFUSALS_SHOWN
        app.out.line(dim(f"  and {more:,} more; --json lists them"))
    if tally.run:
        app.note(dim(f"undo: bethink undo {tally.run}"))


def _count_phrases(tally: Tally) -> list[str]:
    action = "would store" if tally.preview else "stored"
    parts = [f"{action} {plural(tally.stored, 'memory')}"]
    parts += [f"{tally.updated:,} changed"] if tally.updated else []
    parts += [f"{tally.known:,} already known"] if tally.known else []
    parts += [f"{tally.waiting:,} in the inbox"] if tally.waiting else []
    counts = {"link": tally.links, "file edit": tally.edits, "thread": tally.threads}
    parts += [plural(count, name) for name, count in counts.items() if count]
    parts += [f"{tally.redacted:,} with secrets removed"] if tally.redacted else []
    parts += [f"{tally.n_refused:,} refused"] if tally.n_refused else []
    return parts


def _print_preview(app: App, tally: Tally) -> None:
    kinds = tally.kinds.most_common(_MAX_KINDS_SHOWN)
    if kinds:
        more = len(tally.kinds) - len(kinds)
        counts = ", ".join(f"{count:,} {name}" for name, count in kinds)
        others = f" and {plural(more, 'other kind')}" if more else ""
        app.out.line(dim(f"  {counts}{others}"))
    for glimpse in tally.first:
        app.out.line(dim(f"  {glimpse.where}  "), glimpse.text)


def tally_json(tally: Tally) -> Json:
    """Result of an import as JSON."""
    return {
        "format": tally.kind,
        "source": tally.source,
        "dry_run": tally.preview,
        "run": tally.run or None,
        **fields_json(tally, "stored updated duplicates repeated waiting links edits"),
        **fields_json(tally, "threads redacted"),
        "kinds": dict(tally.kinds),
        "first": [glimpse._asdict() for glimpse in tally.first],
        **fields_json(tally, "ids n_refused warnings"),
        "claims": None if tally.claims is None else tally.claims._asdict(),
        "refused": [
            {
                "where": where,
                "line": int(where[5:]) if where[5:].isdecimal() else None,
                "kind": error.rule,
                **fields_json(error, "message remedy"),
            }
            for where, error in tally.refused
        ],
    }


@command(
    "upgrade",
    examples=["bethink upgrade --dry-run", "bethink upgrade", "bethink upgrade --from /old/data"],
)
@option("--from folder FOLDER", "Data folder of the earlier version; the usual one if omitted.")
@option("-n --dry-run", "Store nothing; show what would be carried over.")
def upgrade(app: App, *, folder: str | None, dry_run: bool) -> int:
    """Carry over the memories of an earlier version.

    Up to 0.2.0 the project was called Recollect and had its own folders. Every space in
    them is imported as it is into the space of the same name, with history, corrections
    and what was forgotten, and both are compared. Settings, tokens and profiles that are
    missing here are copied. The old folders stay as they are, and this can be repeated.
    Spaces of earlier versions of Bethink need none of it: opening one updates it.
    """
    from bethink.importers.earlier import carry_settings  # not needed for help

    source = Path(folder) if folder else earlier_folder("data")
    found = list_spaces(source)
    if not found or source.resolve() == data_dir(app.settings).resolve():
        app.remark([], f"nothing to carry over: {source} has no spaces of an earlier version")
        return 1
    outcomes = [_carry_over(app, space, dry_run=dry_run) for space in found]
    app.document(outcomes)
    failed = any("error" in outcome for outcome in outcomes)
    if not (dry_run or folder):
        config = app.settings.config or config_folder(os.environ)
        for name, problem in carry_settings(earlier_folder("config"), config):
            app.note(yellow(f"{name} was not copied: {problem}") if problem else f"copied {name}")
        # A space that cannot be read is not offered again.
        if all(outcome.get("unreadable", "error" not in outcome) for outcome in outcomes):
            (data_dir(app.settings) / CARRIED_OVER).write_text(f"{source}\n", "utf-8")
    app.note(f"{source} is unchanged; remove it when you no longer need it")
    return 3 if failed else 0


def _carry_over(app: App, space: SpaceInfo, *, dry_run: bool) -> Json:
    """Carry over one space and report it; an error stops no other."""
    from bethink.importers.earlier import carry_over  # not needed for help

    if dry_run:
        app.note(f"would carry over {space.name}: {space.size:,} bytes")
        return {"space": space.name, "bytes": space.size}
    try:
        with progress(app, space.name) as advance:
            done = carry_over(space, app.settings, advance)
    except BethinkError as error:
        app.note(red(f"{space.name}: {error.message}"), dim(f" (try: {error.remedy})"))
        unreadable = isinstance(error, StoreDamaged | SchemaTooNew)
        told = {"error": error.message, "remedy": error.remedy, "unreadable": unreadable}
        return {"space": space.name, **told}
    counts = f"{plural(done['memories'], 'memory')} carried over and compared"
    app.note(green(f"{space.name}: {counts}, {done['known']:,} known here and left as they are"))
    if done["damaged"]:
        app.note(yellow(f"{space.name}: {plural(done['damaged'], 'damaged record')} left out"))
    return done
