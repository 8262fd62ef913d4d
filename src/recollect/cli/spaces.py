"""`spaces`: which memories there are, where one lives, and how to be rid of it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from recollect.cli.app import App
from recollect.cli.confirming import confirmed
from recollect.cli.options import Group, command, pass_app
from recollect.cli.printing import bold, dim, green, moment, plural, yellow
from recollect.cli.tables import Column, print_table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from recollect.spaces import SpaceInfo


# SQLite's logs, a space half made, and copies from before a migration. Not simply every
# file whose name begins so: a space may be called "a.db".
_BESIDE = re.compile(r"|(\.new)?(-wal|-shm|-journal)|\.new|\.v\d+\.bak(\.part)?")


@click.group(
    "spaces",
    cls=Group,
    examples=[
        "recollect spaces",
        "recollect spaces path",
        "recollect --space old-project-1a2b3c4d export | recollect import -",
        "recollect spaces remove old-project-1a2b3c4d",
    ],
)
@click.pass_context
def spaces(ctx: click.Context) -> int:
    """List, find and remove spaces.

    A space is one memory in one file: a project's, a person's. Nothing crosses from
    one to another. A project that was moved or renamed begins a new one, and takes the
    old one along by export and import.
    """
    return _list(ctx.ensure_object(App)) if ctx.invoked_subcommand is None else 0


def _list(app: App) -> int:
    from recollect.spaces import data_dir, list_spaces  # the subcommands need other parts

    current = app.where()
    found = list_spaces(data_dir(app.settings))
    if app.json:
        app.out.json([_space_json(space, current.name) for space in found])
    elif found:
        heads = [Column(""), Column("space"), Column("size", right=True), Column("changed"),
                 Column("file", wide=True)]  # fmt: skip
        rows = [
            ("*" if space.name == current.name else "", bold(space.name), _size(space.size),
             dim(moment(space.modified)), dim(str(space.path)))
            for space in found
        ]  # fmt: skip
        print_table(app.out, heads, rows)
    else:
        app.note("there is no space yet; recollect remember makes one")
    if not app.json:
        app.note(dim(f"in use here: {current.name} ({current.why})"))
    return 0 if found else 1


def _space_json(space: SpaceInfo, current: str) -> dict[str, Any]:
    from recollect.jsonable import iso  # plain output does without

    return {
        "name": space.name,
        "path": str(space.path),
        "bytes": space.size,
        "modified": iso(space.modified),
        "current": space.name == current,
    }


def _size(size: int) -> str:
    amount = float(size)
    for unit in ("B", "kB", "MB"):
        if amount < 1000:
            return f"{amount:.0f} {unit}" if unit == "B" else f"{amount:.1f} {unit}"
        amount /= 1000
    return f"{amount:.1f} GB"


@command("path", examples=["recollect spaces path", "recollect spaces path personal"])
@click.argument("name", required=False)
@pass_app
def path(app: App, name: str | None) -> None:
    """Print the file of a space.

    Without NAME it is the space in use here; the file need not exist yet.
    """
    from recollect.spaces import resolve_space  # other subcommands do without

    ref = resolve_space(name, app.settings)
    if app.json:
        app.out.json({"name": ref.name, "path": str(ref.path), "why": ref.why})
    else:
        app.out.line(str(ref.path))
        if app.verbose:
            app.note(dim(ref.why))


@command("remove", examples=["recollect spaces remove old-project-1a2b3c4d --yes"])
@click.argument("name")
@click.option("-y", "--yes", is_flag=True, help="Do it without asking.")
@pass_app
def remove(app: App, name: str, *, yes: bool) -> int:
    """Remove a space with everything in it.

    And the notes that maintenance wrote beside it, but no file of yours, and nothing in a
    notes_dir that you have set. Shows what would go; at a terminal it then asks. Cannot
    be undone: export first.
    """
    from recollect.errors import NotFound  # other subcommands do without
    from recollect.spaces import data_dir, list_spaces

    found = {space.name: space for space in list_spaces(data_dir(app.settings))}
    if name not in found:
        raise NotFound(f"there is no space {name!r}", remedy="recollect spaces lists them")
    space = found[name]
    notes = _notes_of(data_dir(app.settings) / name)
    if not yes and not app.json:
        said = f"  {_size(space.size)}, last changed {moment(space.modified)}, {space.path}"
        app.out.line(yellow("would be removed"), " ", bold(name), dim(said))
        for note in notes:
            app.out.line(yellow("would be removed"), " ", dim(str(note)))
    meant = yes or (not app.json and confirmed(app, f"Remove {name} with everything in it?"))
    if meant:
        _remove_files(space.path)
        _remove_notes(data_dir(app.settings) / name, notes)
    if app.json:
        told = {"removed": meant, "preview": not meant, **_space_json(space, "")}
        app.out.json(told | {"notes": [str(note) for note in notes]})
    elif meant:
        beside = dim(f"  and {plural(len(notes), 'note')} beside it") if notes else ""
        app.out.line(green("removed"), " ", bold(name), beside)
    else:
        app.note(dim("nothing was changed; --yes does it"))
    return 0


def _remove_files(file: Path) -> None:
    """The space and what lies beside it, while no other process can be writing.

    The lock file goes last: whoever waits for it finds no space any more.
    """
    from recollect.store.sqlite.lock import FileLock, holding  # other subcommands do without

    lock = file.with_name(f"{file.name}.lock")
    with holding(FileLock(lock), str(file)):
        for part in sorted(file.parent.glob(f"{file.name}*")):
            if _BESIDE.fullmatch(part.name.removeprefix(file.name)):
                part.unlink(missing_ok=True)
    lock.unlink(missing_ok=True)


def _notes_of(folder: Path) -> list[Path]:
    """The notes in a space's own folder that maintenance wrote, whoever edited them since,
    and what an interrupted writing left. No link is followed, wherever it stands."""
    from recollect.ingest.notes import FOLDERS  # other subcommands do without

    place = folder / "notes"
    if folder.is_symlink() or place.is_symlink():
        return []
    return [
        file
        for kind in FOLDERS
        if (place / kind).is_dir() and not (place / kind).is_symlink()
        for file in sorted((place / kind).iterdir())
        if not file.is_symlink() and file.is_file() and _is_written(file)
    ]


def _is_written(file: Path) -> bool:
    from recollect.ingest.notes import period_of
    from recollect.maintain.note_file import read_note

    if file.name.startswith(".") and file.name.endswith(".md.new"):
        return period_of(file.name[1:-7]) is not None
    if period_of(file.stem) is None or file.suffix != ".md":
        return False
    note = read_note(file)
    return note is not None and bool(note.space)


def _remove_notes(folder: Path, notes: Sequence[Path]) -> None:
    """The notes, and the folders that are empty then."""
    for note in notes:
        note.unlink(missing_ok=True)
    kinds = {note.parent for note in notes}
    for place in (*sorted(kinds), folder / "notes", folder) if notes else ():
        if not any(place.iterdir()):
            place.rmdir()


spaces.add_command(path)
spaces.add_command(remove)
