"""The commands `recall-file`, `read-smart`, `note-edit` and `forget-file`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from bethink.cli.answers import shown_id
from bethink.cli.app import App, confirm
from bethink.cli.options import command, complete_ids, option
from bethink.cli.output import bold, columns, dim, format_date, green, one_line, print_table, yellow
from bethink.core import plural
from bethink.ingest.redaction import redact
from bethink.model import LEVELS, OPERATIONS
from bethink.model.anchor import CODE_CHANGES
from bethink.render.wire import file_history_json, smart_read_json, stale_json

if TYPE_CHECKING:
    from bethink.api.file_reader import SmartRead
    from bethink.api.files import CodeMemory
    from bethink.core.json_values import Json
    from bethink.model import FileHistory
    from bethink.ports import ForgottenFiles


PREVIEW_CHARS = 300  # characters shown of a linked memory


@command(
    "recall-file", examples=["bethink recall-file search.ts", "bethink recall-file src/app --json"]
)
@click.argument("part", metavar="PATH")
@option("--intents N", "Maximum number of reasons.", click.IntRange(1, 50), shown=10)
def recall_file(app: App, part: str, intents: int) -> int:
    """Show the memories of a file, its edits and their reasons.

    PATH is the file's path or any part of it; with ::SYMBOL what is tied to that comes first.
    """
    with app.open() as memory:
        history = memory.recall_file(part.partition("::")[0], intents=intents)
        memories = memory.file_memories(part, history.items)
    app.document(file_history_json(history, memories, PREVIEW_CHARS))
    if history.edits or memories:
        _print_memories(app, memories)
        if history.edits:
            _print_history(app, history)
    else:
        app.note(f"nothing is known of a file whose path contains {part!r}")
    return 0 if history.edits or memories else 1


@command("stale", examples=["bethink stale", "bethink stale --at src/app.py --json"])
@option("--at PATH", "Only what is tied to code whose PATH::SYMBOL contains this.", default="")
@option("--all every", "Also turns, and code that has moved, is the same or unknown.")
def stale(app: App, /, at: str, *, every: bool) -> int:
    """List memories whose code changed or is gone.

    In the repository of the working directory. To keep one as it is, tie it to the code of
    now: bethink update ID --at PATH::SYMBOL.
    """
    with app.open() as memory:
        found = (
            memory.stale(at=at, changes=CODE_CHANGES, levels=LEVELS)
            if every
            else memory.stale(at=at)
        )
    app.document(stale_json(found))
    if found:
        rows = [
            (shown_id(app.out, item.id), state.describe(item.stored_at), one_line(item.text))
            for item, states in found
            for state in states
        ]
        print_table(app.out, columns("id", "*code", "*text"), rows)
    else:
        app.note("no memory is tied to code that changed or is gone")
    note_unchecked_code(app)
    return 0 if found else 1


def note_unchecked_code(app: App) -> None:
    """Say that code is not checked, where there is no repository."""
    from bethink.code.git import find_repository  # not needed for help

    if find_repository(app.settings.project, 0) is None:
        app.note(yellow("code is not checked here: this folder is in no git repository"))


def _print_memories(app: App, memories: Sequence[CodeMemory]) -> None:
    out = app.out
    for one in memories:
        out.line(shown_id(out, one.item.id), "  ", one_line(one.item.text, PREVIEW_CHARS))
        if one.code:
            out.line("  ", yellow(one.code))
    if memories:
        out.line()


def _print_history(app: App, history: FileHistory) -> None:
    out = app.out
    for path in history.paths:
        out.line(bold(path))
    counted = f"{plural(history.edits, 'edit')} in {plural(len(history.sessions), 'session')}"
    out.line(dim(f"{counted}, {format_date(history.first_at)} to {format_date(history.last_at)}"))
    out.line()
    print_table(
        out,
        columns("day", "operation", ">times"),
        [(day.day, day.operation, str(day.times)) for day in history.days],
    )
    if history.intents:
        out.line()
        out.line(bold("why"))
        for intent in history.intents:
            often = f" ({intent.times} times)" if intent.times > 1 else ""
            out.block(intent.text, indent=14, first=("  ", dim(format_date(intent.last_at)), "  "))
            if often:
                out.line(" " * 14, dim(often.strip()))


@command(
    "read-smart",
    examples=["bethink read-smart src/app.py", "bethink read-smart README.md --force --json"],
)
@click.argument("path", type=click.Path(path_type=Path))
@option("--force", "Print the whole file, changed or not.")
@option(
    "--root roots FOLDER",
    "Folder that may be read; default: setting allowed_roots, else the project.",
    click.Path(path_type=Path, file_okay=False),
    multiple=True,
)
def read_smart(app: App, path: Path, *, force: bool, roots: tuple[Path, ...]) -> None:
    """Read a file, or only what changed in it.

    The first time the whole file, later only the pieces (functions, classes, sections)
    that changed since it was last read this way.
    """
    with app.open(create=path.exists()) as memory:
        answer = memory.read_smart(path, force=force, roots=roots)
    if app.json:
        app.out.json(smart_read_json(answer))
        return
    saved = answer.whole_tokens - answer.tokens
    counted = f"{plural(answer.tokens, 'token')}, {saved:,} saved"
    app.note(dim(f"{answer.status.replace('_', ' ')}: {counted}"))
    for note in answer.notes:
        app.note(note)
    _print_read(app, answer)


def _print_read(app: App, answer: SmartRead) -> None:
    if answer.text is not None:
        app.out.raw(answer.text)
        return
    for chunk in answer.chunks:
        if chunk.text is not None:
            head = f"{chunk.state} {chunk.id}, lines {chunk.first_line} to {chunk.last_line}"
            app.out.line(dim(f"--- {head}"))
            app.out.raw(chunk.text if chunk.text.endswith("\n") else f"{chunk.text}\n")
    for name in answer.removed:
        app.out.line(dim(f"--- removed {name}"))


@command(
    "note-edit",
    examples=['bethink note-edit src/app.py --operation edit --intent "make start-up faster"'],
)
@click.argument("path")
@option("--operation", "Operation performed.", click.Choice(OPERATIONS), shown="edit")
@option("--intent TEXT", "Why the edit was made.", default="")
@option("--session TEXT", "Session (conversation) of the edit.")
@option("--turn TEXT", "Turn of the session.")
@option("--item ID", "Memory that describes the edit.", shell_complete=complete_ids)
@option("--at TIME", "When it was made; default: now.")
def note_edit(app: App, /, **fields: Any) -> None:
    """Record an edit of a file.

    Recording the same edit twice has no effect.
    """
    edit = {name: value for name, value in fields.items() if value is not None}
    with app.open(create=True) as memory:
        if edit.get("item"):
            edit["item"] = memory.get(edit["item"]).id
        new = memory.note_edits([edit])
    known = 1 - new
    app.remark(
        {"new": new, "known": known}, f"{plural(new, 'edit')} recorded, {known} already known"
    )
    _note_recorded(app, edit)


def _note_recorded(app: App, edit: Json) -> None:
    """Print an edit as it was recorded, without secrets."""
    intent = redact(edit["intent"])
    reason = f": {one_line(intent.text)}" if intent.text else ""
    app.note(dim(f"  {edit['operation']} {one_line(edit['path'])}{reason}"))
    if intent.text != edit["intent"]:
        app.note(yellow("  secrets were removed from the reason"))


@command(
    "forget-file",
    examples=["bethink forget-file old/secrets.py", "bethink forget-file src/app --yes"],
)
@click.argument("part", metavar="PATH")
@option("-y --yes", "Do not ask for confirmation.")
def forget_file(app: App, part: str, *, yes: bool) -> int:
    """Erase the recorded history of a file.

    PATH is the file's path or any part of it: every edit and reading of all files whose
    path contains it. Shows the affected files and, at a terminal, asks for confirmation.
    Cannot be undone. Memories that mention the file stay.
    """
    with app.open() as memory:
        result = memory.forget_file(part, preview=True)
        known = bool(result.edits or result.snapshots)
        if known:
            _print_forgotten(app, result, "would erase")
        if known and (yes or (not app.json and confirm(app, "Erase all of this?"))):
            result = memory.forget_file(part)
    if not known:
        app.remark(result._asdict(), f"no recorded edits of a file whose path contains {part!r}")
        return 1
    done = not result.preview
    app.report(result._asdict(), green("erased"), f" {_count_summary(result)}", done=done)
    for place in result.out_of_reach if done else ():
        app.note(yellow(f"cannot erase: {place}"))
    return 0


def _print_forgotten(app: App, result: ForgottenFiles, label: str) -> None:
    for path in result.paths:
        app.out.line(yellow(label), " ", bold(path))
    app.out.line(dim(_count_summary(result)))


def _count_summary(result: ForgottenFiles) -> str:
    return f"{plural(result.edits, 'edit')}, {plural(result.snapshots, 'reading')}"
