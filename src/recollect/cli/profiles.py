"""`profiles`: how recall can be done, and the walk each profile takes, drawn."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

from recollect.cli.app import App
from recollect.cli.options import Group, command, pass_app
from recollect.cli.printing import Ink, Printer, bold, columns, cyan, dim, red, wrapped
from recollect.cli.tables import Column, print_table

if TYPE_CHECKING:
    from recollect.profile import Profile


@click.group(
    "profiles",
    cls=Group,
    examples=["recollect profiles", "recollect profiles show default"],
)
@click.pass_context
def profiles(ctx: click.Context) -> int:
    """List the profiles and show what they do.

    A profile says which channels search and what fills each slot of the walk. A TOML
    file in .recollect/profiles of a project, or in profiles of the settings folder,
    adds one.
    """
    return _list(ctx.ensure_object(App)) if ctx.invoked_subcommand is None else 0


def _list(app: App) -> int:
    from recollect.profile import profile_names  # help does without

    named = profile_names(app.settings.profile_folders())
    titles = {name: _title(app, name) for name in named}
    current = app.settings.profile
    if app.json:
        app.out.json(
            [
                {
                    "name": name,
                    "title": titles[name].text,
                    "usable": titles[name].style == "",
                    "file": str(file) if file else None,
                    "current": name == current,
                }
                for name, file in named.items()
            ]
        )
        return 0
    heads = [Column(""), Column("profile"), Column("what it does", wide=True), Column("from")]
    rows = [
        ("*" if name == current else "", bold(name), titles[name], dim(str(file or "built in")))
        for name, file in named.items()
    ]
    print_table(app.out, heads, rows)
    return 0


def _title(app: App, name: str) -> Ink:
    """What a profile does; one that is broken must not hide the others."""
    from recollect.errors import BadProfile, BadSetting  # help does without

    try:
        return Ink(_loaded(app, name).title, "")
    except (BadProfile, BadSetting) as error:
        return red(f"cannot be used: {error.message}")


def _loaded(app: App, name: str) -> Profile:
    from recollect.profile import load_profile  # help does without

    return load_profile(name, app.settings.profile_folders(), app.settings.changes(name))


@command("show", examples=["recollect profiles show siftcoder"])
@click.argument("name")
@pass_app
def show(app: App, name: str) -> None:
    """Draw the walk a profile takes.

    From the question down to the answer: every slot in order, what fills it, and the
    settings of each part.
    """
    profile = _loaded(app, name)
    for change in app.settings.changes(name):
        app.note(dim(f"{change.where} sets {change.target}"))
    if app.json:
        app.out.json(_profile_json(profile))
    else:
        draw(app.out, profile)


profiles.add_command(show)

_SLOTS = (
    ("expand", "wake what is linked"),
    ("adjust", "weigh what words cannot say"),
    ("rerank", "read the best closely"),
    ("diversify", "prefer new over repeated"),
    ("gate", "drop what is not relevant enough"),
)
_AFTER = (
    ("budget", "keep what fits"),
    ("assemble", "add what belongs beside"),
    ("track", "note what was returned, if asked"),
    ("text", "tell it, if asked for text"),
)


def draw(out: Printer, profile: Profile) -> None:
    """The walk as a picture: a trunk, a branch a slot, a leaf a part."""
    out.block(dim(profile.title), first=(bold(profile.name), "  "), indent=len(profile.name) + 2)
    out.line()
    out.line("  question")
    for slot, told, parts in _walk(profile):
        if parts:
            out.line("     │")
            out.line("     ├─ ", cyan(f"{slot:<10}"), dim(told))
            for part in parts:
                _draw_part(out, part)
        else:
            out.line("     │")
            out.line("     ├─ ", dim(f"{slot:<10}-"))
    out.line("     │")
    out.line("  answer")


def _draw_part(out: Printer, part: Any) -> None:
    name = getattr(part, "name", "") or part.heading or f"({part.show})"
    label = max(_LABEL, columns(name) + 2)
    room = out.width - _TRUNK - label if out.terminal else 0
    for number, line in enumerate(_packed(_settings(part), room)):
        shown = "" if number else name
        out.line("     │    ", bold(shown + " " * (label - columns(shown))), line)


def _packed(settings: Sequence[str], room: int) -> Iterator[str]:
    """Settings on as few lines as fit, one that is too long broken between its words."""
    line = ""
    for setting in settings:
        together = f"{line}  {setting}" if line else setting
        if not room or columns(together) <= room:
            line = together
            continue
        if line:
            yield line
        *full, line = wrapped(setting, room)
        yield from full
    yield line


_TRUNK, _LABEL = 10, 13  # columns before a part's name, and its own


def _walk(profile: Profile) -> Iterator[tuple[str, str, tuple[Any, ...]]]:
    yield "channels", "search, each in its own way", profile.channels
    yield "fuse", "make one ranking of theirs", (profile.fuse,)
    for slot, told in _SLOTS:
        yield slot, told, profile.slot(slot)
    for slot, told in _AFTER:
        parts = getattr(profile, slot)
        yield slot, told, parts if isinstance(parts, tuple) else (parts,)


def _settings(part: Any) -> list[str]:
    """A part's settings as they would be written in the profile; what is empty is left out,
    and what kind of part it is stands first where its name does not say."""
    use = _use(part)
    told = [f"use={use}"] if use not in ("", getattr(part, "name", "")) else []
    for field in dataclasses.fields(part):
        value = getattr(part, field.name)
        if field.name not in ("name", "heading") and value not in ((), None):
            told.append(f"{field.name}={_short(value)}")
    return told


def _use(part: Any) -> str:
    """What a profile writes after ``use`` for such a part."""
    from recollect.channels import CHANNELS  # help does without
    from recollect.stages import ASSEMBLERS, FUSIONS, STAGES

    tables: tuple[Mapping[str, Any], ...] = (CHANNELS, FUSIONS, STAGES, ASSEMBLERS)
    return next((use for table in tables for use, kind in table.items() if kind is type(part)), "")


def _short(value: Any) -> str:
    if isinstance(value, tuple):
        return "{" + ", ".join(_pair(entry) for entry in value) + "}"
    return f"{value:g}" if isinstance(value, float) else str(value)


def _pair(entry: Any) -> str:
    return f"{entry[0]}: {_short(entry[1])}" if isinstance(entry, tuple) else str(entry)


def _profile_json(profile: Profile) -> dict[str, Any]:
    return {
        "name": profile.name,
        "title": profile.title,
        "walk": [
            {"slot": slot, "parts": [_part_json(part) for part in parts]}
            for slot, _, parts in _walk(profile)
        ],
    }


def _part_json(part: Any) -> dict[str, Any]:
    use = _use(part)
    return ({"use": use} if use else {}) | dataclasses.asdict(part)
