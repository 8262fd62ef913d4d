"""The commands `files` and `edit`: memories as text in files and in an editor."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from bethink.cli.app import App, confirm, progress
from bethink.cli.options import command, complete_ids, option
from bethink.cli.output import bold, dim, green, one_line, red, yellow
from bethink.core import plural
from bethink.errors import BethinkError, MissingExtra, NotFound, Refused, StoreBusy
from bethink.folders.base import detach_folder, known_folders, load_base
from bethink.folders.codec import (
    Editable,
    editable_of,
    format_note,
    new_document,
    parse_document,
    whole_note,
)
from bethink.folders.reading import Report
from bethink.folders.sync import Options, export_folder, link_folder, sync_folder
from bethink.render.wire import dumps, item_json

if TYPE_CHECKING:
    from bethink.core.json_values import Json
    from bethink.memory import Memory
    from bethink.model import Item

_SHOWN = 20  # lines of each kind; --json lists all
_POLL_MS = 2000  # how often --watch looks whether the space has changed
# What is reported, and in which words.
_VERBS = {
    "remembered": ("remembered", "would remember"),
    "updated": ("updated", "would update"),
    "forgotten": ("forgot", "would forget"),
    "restored": ("restored", "would restore"),
}
_REMARKS = {
    "duplicates": "already known",
    "conflicts": "changed here and in the space; the other version",
    "undone": "an insight cannot be edited",
    "refused": "not read",
    "held": "left alone",
}


@command(
    "files",
    examples=[
        "bethink files ~/notes              # both ways, once",
        "bethink files ~/notes --dry-run",
        "bethink files ~/notes --watch",
        "bethink files ~/vault --link       # a vault of Obsidian, only read",
        "bethink files                      # all folders of the space again",
    ],
)
@click.argument("folder", required=False, type=click.Path(file_okay=False))
@option("-n --dry-run", "Change nothing; show what would happen.")
@option("--watch", "Go on until interrupted, after every change on either side.")
@option("--poll", "With --watch: look regularly, for network drives.")
@option("--link", "Only read it: a vault of Obsidian, Logseq or basic-memory.")
@option(
    "--ceiling 0-3", "Highest classification that the files show; default 1.", click.IntRange(0, 3)
)
@option("--detach", "No longer use the folder; files and memories stay as they are.")
@option("-y --yes", "Do not ask before much is forgotten.")
def files(
    app: App, /, folder: str | None, *, watch: bool, poll: bool, link: bool, detach: bool,
    dry_run: bool, yes: bool, ceiling: int | None,
) -> int:  # fmt: skip
    """Keep memories as Markdown files that you can edit.

    Writes a space into FOLDER and reads what you change there: new text is remembered,
    changed text is an update, removed text is forgotten (bethink undo restores it), moved
    text keeps its id. What changed on both sides is kept twice and shown as a conflict.
    Without FOLDER, all folders that the space has.

    Exit code 2: a file or a text was left alone, and the output says why.
    """
    if folder == "":  # an unset variable of a script
        raise click.UsageError("the name of the folder is empty")
    with app.open(create=not dry_run) as memory:
        folders = [Path(folder).expanduser().resolve()] if folder else known_folders(memory)
        if not folders:
            raise NotFound("the space has no folder yet", remedy="bethink files FOLDER")
        if detach:
            for one in folders:
                detach_folder(memory, one)
                app.note(f"{one} is no longer used")
            return 0
        options = Options(
            dry_run=dry_run, ceiling=ceiling, confirm=lambda asked: yes or confirm(app, asked)
        )
        if watch:
            _require_watchfiles()
        if folder:
            report = _run(app, memory, folders[0], options, link=link)
            _print_report(app, report)
            needs_care = bool(report.refused or report.held)
        else:  # one that fails stops no other
            told = [_run_again(app, memory, one, options, "") for one in folders]
            needs_care = any(told)
        if watch:
            _watch(app, memory, folders, options._replace(is_watching=True), poll=poll)
    return 2 if needs_care else 0


def _run(app: App, memory: Memory, folder: Path, options: Options, *, link: bool) -> Report:
    run = link_folder if link or load_base(memory, folder).kind else sync_folder
    with progress(app, folder.name) as advance:
        return run(memory, folder, options, advance)


def _require_watchfiles() -> None:
    from importlib.util import find_spec  # only for --watch

    if find_spec("watchfiles") is None:
        raise MissingExtra("watchfiles, which --watch needs,", extra="files")


def _watch(app: App, memory: Memory, folders: list[Path], options: Options, *, poll: bool) -> None:
    """Repeat after every change of a file, and when the space has changed."""
    from watchfiles import watch  # an extra

    app.note(dim(f"watching {', '.join(map(str, folders))}; Ctrl-C ends it"))
    generation, told = -1, ""  # the first time in any case: a file may have changed before
    try:
        for changes in watch(
            *folders, rust_timeout=_POLL_MS, yield_on_timeout=True, force_polling=poll or None
        ):
            if not changes and generation == memory.store.admin.generation():
                continue
            for folder in folders:
                told = _run_again(app, memory, folder, options, told)
            generation = memory.store.admin.generation()
    except KeyboardInterrupt:
        app.note("stopped")


def _run_again(app: App, memory: Memory, folder: Path, options: Options, told: str) -> str:
    """Run once more; return what needs care: an error, printed once and not at every change."""
    try:
        report = _run(app, memory, folder, options, link=False)
    except (Refused, NotFound, StoreBusy) as error:
        if error.message != told:
            app.err.line(
                red("error: "),
                error.message,
                dim(f" (try: {error.remedy})" if error.remedy else ""),
            )
        return error.message
    news = (*_VERBS, *_REMARKS, "written", "removed", "imported", "changed")
    if not options.is_watching or any(getattr(report, name) for name in news):
        _print_report(app, report)
    return "left alone" if report.refused or report.held else ""


def _report_json(report: Report) -> Json:
    lists = (*_VERBS, *_REMARKS)
    rest = ("folder", "dry_run", "linked", "imported", "changed", "written", "removed", "memories")
    lines = {name: [line._asdict() for line in getattr(report, name)] for name in lists}
    return {name: getattr(report, name) for name in rest} | lines


def _print_report(app: App, report: Report) -> None:
    if app.json:
        app.out.raw(dumps(_report_json(report)) + "\n")
        app.out.stream.flush()  # a program may wait for it
        return
    for name, words in _VERBS.items():
        for line in getattr(report, name)[:_SHOWN]:
            told = green(words[report.dry_run])
            app.out.line(told, " ", bold(line.id), dim(f"  {line.where} "), one_line(line.text, 60))
    for name, remark in _REMARKS.items():
        for line in getattr(report, name)[:_SHOWN]:
            app.out.line(yellow(f"{line.where}: {remark}: "), one_line(line.text, 100))
    lists = (getattr(report, name) for name in (*_VERBS, *_REMARKS))
    more = sum(max(0, len(lines) - _SHOWN) for lines in lists)
    if more:
        app.out.line(dim(f"and {more:,} more; --json lists them"))
    app.out.line(f"{report.folder}: ", ", ".join(_counts(report)))


def _counts(report: Report) -> Iterator[str]:
    if report.linked:
        yield f"read as {report.linked}: {report.imported:,} new, {report.changed:,} changed"
        return
    done = "would be " if report.dry_run else ""
    yield plural(report.memories, "memory")
    yield f"{plural(len(report.written), 'file')} {done}written" if report.written else "up to date"
    if report.removed:
        yield f"{plural(len(report.removed), 'file')} {done}removed"


def export_markdown(app: App, file: str) -> None:
    """Write the files of a space into a new folder."""
    if file == "-":
        raise click.UsageError("--markdown needs a folder")
    with app.open() as memory, progress(app, "exporting", unit="files") as advance:
        report = export_folder(memory, Path(file), advance)
    shown = f"{plural(report.memories, 'memory')} in {plural(len(report.written), 'file')}"
    document = {"folder": file, "files": len(report.written), "memories": report.memories}
    app.remark(document, green(f"wrote {shown} to {file}"))


@command("edit", examples=["bethink edit 1abc", "EDITOR='code --wait' bethink edit 1abc"])
@click.argument("item_id", metavar="ID", shell_complete=complete_ids)
def edit(app: App, item_id: str) -> None:
    """Edit a memory in your editor.

    Opens $VISUAL or $EDITOR with the text and its kind, topic, tags and times above it.
    An empty or unchanged text changes nothing. What cannot be stored stays in a file that
    the error names. Without a terminal, one of the two must be set.
    """
    with app.open() as memory:
        item = memory.stored(item_id)
    before = format_note(new_document("note"), editable_of(item), item.id).to_bytes()
    path = Path(tempfile.mkdtemp(prefix="bethink-")) / f"{item.id.replace(':', '-')}.md"
    path.write_bytes(before)
    try:
        _call_editor(path)
        content = path.read_bytes()
        changes = _edited_fields(content, item) if content != before and content.strip() else {}
        if changes:
            with app.open() as memory:
                item = memory.update(item.id, revision=item.rev, **changes)
    except BethinkError as error:
        if path.exists() and path.read_bytes() != before:
            error.remedy = f"{error.remedy and error.remedy + '; '}your text is in {path}"
            raise
        _remove(path)
        raise
    _remove(path)
    app.document({**item_json(item), "changed": sorted(changes)})
    if changes:
        app.out.line(green("updated"), " ", bold(item.id), dim(f" revision {item.rev}"))
    else:
        app.note("nothing was changed")


def _remove(path: Path) -> None:
    path.unlink(missing_ok=True)
    for other in path.parent.iterdir():
        other.unlink()  # back-ups of the editor
    path.parent.rmdir()


def _call_editor(path: Path) -> None:
    named = os.environ.get("VISUAL") or os.environ.get("EDITOR")
    if not (named or sys.stdin.isatty()):
        raise Refused("an editor needs a terminal", remedy='bethink update ID "the new text"')
    words = shlex.split(named or ("notepad" if os.name == "nt" else "vi"))
    try:
        code = subprocess.run([*words, str(path)], check=False).returncode  # noqa: S603
    except OSError as error:
        message = f"the editor {words[0]!r} cannot be started: {error.strerror}"
        raise Refused(message, remedy="set EDITOR") from error
    if code:
        raise Refused(f"the editor ended with code {code}; nothing was changed")


def _edited_fields(content: bytes, item: Item) -> Json:
    """Return the fields of a memory that were edited; without front matter only the text."""
    document = parse_document(content, "notes/edit.md")
    if document is None or not document.blocks:
        return {}
    now, before = whole_note(document), editable_of(item)
    names = [name for name in Editable._fields if name != "links"] if document.keys else ["text"]
    changes = {name: new for name in names if (new := getattr(now, name)) != getattr(before, name)}
    if not now.text.strip():
        return {}
    return {name: new for name, new in changes.items() if (name, new) != ("kind", "")}
