"""The commands `config`, `spaces` and `trust`: settings, and the files of spaces."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path

import click

from bethink.cli.app import App, confirm
from bethink.cli.options import Group, command, group, option
from bethink.cli.output import Piece, bold, columns, dim, format_time, green, print_table, yellow
from bethink.config.settings import SETTINGS, set_project_setting, set_user_setting
from bethink.config.spaces import (
    SpaceInfo,
    TrustedSpace,
    data_dir,
    list_spaces,
    resolve_space,
    set_trust,
    space_path,
    trusted_spaces,
)
from bethink.core import plural
from bethink.core.json_values import Json, iso
from bethink.errors import BadSetting, NotFound
from bethink.store import list_shelves, remove_from_server, shelf_folder
from bethink.store.url import is_server, shown_store


class ConfigGroup(Group):
    """A group that treats the name of a setting as `get NAME`."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and args[0] not in self.commands:
            args = ["get", *args]
        return super().resolve_command(ctx, args)


@group(
    "config",
    cls=ConfigGroup,
    examples=[
        "bethink config",
        "bethink config get embedder",
        "bethink config set k 20",
        "bethink config set space shared-notes --project",
    ],
)
def config(app: App) -> int:
    """List, read and change settings.

    Precedence: option, environment (BETHINK_...), project file, user file, default.
    """
    app.document({setting.name: _setting_json(app, setting.name) for setting in SETTINGS})
    heads = columns("setting", "value", "from", "*meaning")
    rows = [
        (
            bold(setting.name),
            _format_setting(getattr(app.settings, setting.name)) or "-",
            dim(str(app.settings.origin(setting.name))),
            dim(setting.help),
        )
        for setting in SETTINGS
    ]
    print_table(app.out, heads, rows)
    return 0


def _setting_json(app: App, name: str) -> Json:
    value = _without_password(getattr(app.settings, name))
    origin = app.settings.origin(name)
    written = value if value is None or isinstance(value, str | int) else str(value)
    return {"value": written, "origin": origin.kind, "where": origin.where}


def _format_setting(value: object) -> str:
    if value is None:
        return ""
    return str(value).lower() if isinstance(value, bool) else str(_without_password(value))


def _without_password(value: object) -> object:
    """Return a setting as it may be shown: the URL of a store has no password."""
    return shown_store(value) if isinstance(value, str) else value


@config.subcommand("get", examples=["bethink config get profile"])
@click.argument("name")
def get(app: App, name: str) -> None:
    """Print one setting."""
    origin = app.settings.origin(name)
    app.report(
        {"name": name, **_setting_json(app, name)}, _format_setting(getattr(app.settings, name))
    )
    if app.verbose:
        app.note(dim(str(origin)))


@config.subcommand(
    "set",
    examples=["bethink config set profile siftcoder", "bethink config set track false --project"],
)
@click.argument("name")
@click.argument("value")
@option("--project", "Write to the project's file, for everyone who works on it.")
def set_value(app: App, name: str, value: str, *, project: bool) -> None:
    """Change one setting in the user's file."""
    _write_setting(app, name, value, project=project)


@config.subcommand("unset", examples=["bethink config unset profile"])
@click.argument("name")
@option("--project", "Remove it from the project's file.")
def unset(app: App, name: str, *, project: bool) -> None:
    """Remove one setting from the user's file."""
    _write_setting(app, name, None, project=project)


def _write_setting(app: App, name: str, value: str | None, *, project: bool) -> None:
    path = (set_project_setting if project else set_user_setting)(name, value)
    if project and name == "space" and value is not None:
        _trust(app, value)  # who writes it into the project's file allows it
    said = "default" if value is None else _format_setting(value)
    shown = green(f"wrote {name} = {said}"), dim(f" to {path}")
    app.remark({"name": name, "value": value, "file": str(path)}, *shown)


# SQLite's logs, the journal's secret, a half-created space, and copies from before a
# migration or a repair. Not every file with this prefix: a space may be called "a.db".
_COMPANION_FILE_SUFFIX = re.compile(
    r"|(\.new|\.moving)?(-wal|-shm|-journal)|\.new|\.moving(\.lock)?|\.key|\.v\d+\.bak(\.part)?"
    r"|\.\d{8}T\d+\.damaged\.bak|\.damaged\.part"
)


@group(
    "spaces",
    examples=[
        "bethink spaces",
        "bethink spaces path",
        "bethink --space old-project-1a2b3c4d export | bethink import -",
        "bethink spaces remove old-project-1a2b3c4d",
    ],
)
def spaces(app: App) -> int:
    """List, find and remove spaces.

    A space is one memory in one file, for example of a project or a person. Spaces are
    isolated from each other. A project that was moved or renamed starts a new space;
    export and import transfer the old one.
    """
    current = app.where()
    rows: list[tuple[Piece, ...]]
    if is_server(app.settings.store):
        names = app.space_names()
        documents = [{"name": name, "current": name == current.name} for name in names]
        rows = [("*" if name == current.name else "", bold(name)) for name in names]
        heads = columns("", "space")
    else:
        found = list_spaces(data_dir(app.settings))
        documents = [_space_json(space, current.name) for space in found]
        heads = columns("", "space", ">size", "changed", "*file")
        rows = [
            ("*" if space.name == current.name else "", bold(space.name), _format_size(space.size),
             dim(format_time(space.modified)), dim(str(space.path)))
            for space in found
        ]  # fmt: skip
    none = "no spaces yet; bethink remember creates one"
    code = app.listing(documents, lambda: print_table(app.out, heads, rows), none)
    app.note(dim(f"current space: {current.name} ({current.why})"))
    return code


def _space_json(space: SpaceInfo, current: str) -> Json:
    return {
        "name": space.name,
        "path": str(space.path),
        "bytes": space.size,
        "modified": iso(space.modified),
        "current": space.name == current,
    }


def _format_size(size: int) -> str:
    amount = float(size)
    for unit in ("B", "kB", "MB"):
        if amount < 1000:
            return f"{amount:.0f} {unit}" if unit == "B" else f"{amount:.1f} {unit}"
        amount /= 1000
    return f"{amount:.1f} GB"


@spaces.subcommand("path", examples=["bethink spaces path", "bethink spaces path personal"])
@click.argument("name", required=False)
def path(app: App, name: str | None) -> None:
    """Print the file of a space.

    Without NAME it is the current space; the file need not exist yet.
    """
    ref = resolve_space(name, app.settings)
    app.report({"name": ref.name, "path": str(ref.path), "why": ref.why}, str(ref.path))
    if app.verbose:
        app.note(dim(ref.why))


@spaces.subcommand("remove", examples=["bethink spaces remove old-project-1a2b3c4d --yes"])
@click.argument("name")
@option("-y --yes", "Do not ask for confirmation.")
def remove(app: App, name: str, *, yes: bool) -> int:
    """Remove a space with everything in it.

    Includes the notes that maintenance generated next to it, but no file of yours, and
    nothing in a notes_dir that you have set. Shows the affected files and, at a terminal,
    asks for confirmation. Cannot be undone: export first.
    """
    if name not in app.space_names():
        raise NotFound(f"no space is named {name!r}", remedy="bethink spaces lists them")
    store, folder = app.settings.store, data_dir(app.settings)
    facts: Json = {"name": name}
    notes: list[Path] = []
    if not is_server(store):
        space = next(one for one in list_spaces(folder) if one.name == name)
        notes = _generated_notes(folder / name)
        facts = _space_json(space, "") | {"notes": [str(note) for note in notes]}
        if not yes:
            _print_removable(app, space, notes)
    confirmed = yes or (not app.json and confirm(app, f"Remove {name} with everything in it?"))
    if confirmed:
        remove_space(store, name, space_path(name, folder))
        _forget_members(name)
        _remove_notes(folder / name, notes)
    with_notes = dim(f"  with {plural(len(notes), 'note')}") if notes else ""
    document = {"removed": confirmed, "preview": not confirmed, **facts}
    app.report(document, green("removed"), " ", bold(name), with_notes, done=confirmed)
    return 0


def _print_removable(app: App, space: SpaceInfo, notes: Sequence[Path]) -> None:
    details = f"{_format_size(space.size)}, last changed {format_time(space.modified)}"
    app.out.line(yellow("would remove"), " ", bold(space.name), dim(f"  {details}, {space.path}"))
    for note in notes:
        app.out.line(yellow("would remove"), " ", dim(str(note)))


def remove_space(store: str, name: str, file: Path) -> None:
    """Remove a space, and what only some people see of it."""
    for shelf, shelf_file in list_shelves(store, name, file):
        remove_stored(store, shelf, shelf_file)
    folder = shelf_folder(file)
    if folder.is_dir() and not any(folder.iterdir()):
        folder.rmdir()
    remove_stored(store, name, file)


def remove_stored(store: str, name: str, file: Path) -> None:
    """Remove one store, a space or a part of it, from a server or as a file."""
    if is_server(store):
        remove_from_server(store, name)
    else:
        _remove_files(file)


def _forget_members(space: str) -> None:
    """Forget who was a member of a space that is removed."""
    from bethink.access.people import Directory  # only for this subcommand

    Directory().drop_space(space)


def _remove_files(file: Path) -> None:
    """Remove the space and its companion files under the write lock.

    The lock file goes last: a process that waits for it then finds no space.
    """
    from bethink.store.sqlite.lock import FileLock, hold_lock  # only for this subcommand

    lock = file.with_name(f"{file.name}.lock")
    with hold_lock(FileLock(lock), str(file)):
        for part in sorted(file.parent.glob(f"{file.name}*")):
            if _COMPANION_FILE_SUFFIX.fullmatch(part.name.removeprefix(file.name)):
                part.unlink(missing_ok=True)
    lock.unlink(missing_ok=True)


def _generated_notes(folder: Path) -> list[Path]:
    """List the generated notes in a space's own folder, edited ones included.

    Includes leftovers of an interrupted write. No symbolic link is followed.
    """
    from bethink.ingest.notes import NOTE_FOLDERS  # only for this subcommand

    place = folder / "notes"
    if folder.is_symlink() or place.is_symlink():
        return []
    return [
        file
        for kind in NOTE_FOLDERS
        if (place / kind).is_dir() and not (place / kind).is_symlink()
        for file in sorted((place / kind).iterdir())
        if not file.is_symlink() and file.is_file() and _is_generated_note(file)
    ]


def _is_generated_note(file: Path) -> bool:
    from bethink.ingest.notes import period_of
    from bethink.maintain.notes import read_note

    if file.name.startswith(".") and file.name.endswith(".md.new"):
        return period_of(file.name[1:-7]) is not None
    if period_of(file.stem) is None or file.suffix != ".md":
        return False
    note = read_note(file)
    return note is not None and bool(note.space)


def _remove_notes(folder: Path, notes: Sequence[Path]) -> None:
    """Remove the notes and the folders that are then empty."""
    for note in notes:
        note.unlink(missing_ok=True)
    kinds = {note.parent for note in notes}
    for place in (*sorted(kinds), folder / "notes", folder) if notes else ():
        if not any(place.iterdir()):
            place.rmdir()


@command(
    "trust",
    examples=["bethink trust", "bethink trust shared-notes", "bethink trust --revoke shared-notes"],
)
@click.argument("name", metavar="[SPACE]", required=False)
@option("--revoke", "Take it back, for SPACE or for every space.")
def trust(app: App, name: str | None, *, revoke: bool) -> int:
    """Allow a project to use a space that its file names.

    A project's file may come from strangers. It may use the project's own space; any other
    space only after you have allowed it, here or when a command asks. Without SPACE it lists
    what is allowed. SPACE is allowed to, or taken from, the project of the current folder;
    outside a project --revoke takes it from all.
    """
    if revoke:
        return _revoke_trust(app, name)
    if name is not None:
        project = _trust(app, name)
        allowed = [{"space": name, "project": project}]
        app.remark(allowed, green(f"{project} may use the space {name}"))
        return 0
    found = trusted_spaces(app.settings.config)
    heads, rows = columns("space", "*project"), [(bold(one.space), one.project) for one in found]
    documents, show = [one._asdict() for one in found], lambda: print_table(app.out, heads, rows)
    return app.listing(documents, show, "no project may use any space but its own")


def _trust(app: App, space: str) -> str:
    settings = app.settings
    space_path(space, data_dir(settings))  # refuses what cannot be a name
    if settings.project is None or settings.config is None:
        raise BadSetting("this folder is not in a project", remedy="run it in the project's folder")
    project = os.path.realpath(settings.project)
    set_trust(settings.config, [*trusted_spaces(settings.config), TrustedSpace(project, space)])
    return project


def _revoke_trust(app: App, space: str | None) -> int:
    settings = app.settings
    found = trusted_spaces(settings.config)
    project = os.path.realpath(settings.project) if settings.project else None
    gone = [one for one in found if project in (None, one.project) and space in (None, one.space)]
    if settings.config is not None and gone:
        set_trust(settings.config, [one for one in found if one not in gone])
    app.document([one._asdict() for one in gone])
    for one in gone:
        app.note(green(f"{one.project} may no longer use the space {one.space}"))
    if not gone:
        app.note("there is nothing to take back")
    return 0 if gone else 1
