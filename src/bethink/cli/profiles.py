"""The command `profiles`: list profiles and draw the pipeline of one."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any

import click

from bethink.cli.app import App
from bethink.cli.options import complete_profiles, group, option
from bethink.cli.output import (
    Printer,
    Styled,
    bold,
    columns,
    cyan,
    dim,
    display_width,
    print_table,
    red,
    wrap_lines,
)
from bethink.core.json_values import Json
from bethink.errors import BadProfile, BadSetting, NotFound, Refused
from bethink.retrieval.profile import Profile, configured_profile, profile_names, profile_source
from bethink.retrieval.retrievers import RETRIEVERS
from bethink.retrieval.stages import ASSEMBLERS, FUSIONS, STAGES


@group("profiles", examples=["bethink profiles", "bethink profiles show default"])
def profiles(app: App) -> int:
    """List the profiles and show what they do.

    A profile defines which retrievers search and what fills each slot of the pipeline. A
    TOML file in .bethink/profiles of a project, or in profiles of the settings folder,
    adds one.
    """
    named = profile_names(app.settings.profile_folders())
    titles = {name: _profile_title(app, name) for name in named}
    current = app.settings.profile
    documents = [
        {"name": name, "title": titles[name].text, "usable": titles[name].style == "",
         "file": str(file) if file else None, "current": name == current}
        for name, file in named.items()
    ]  # fmt: skip
    rows = [
        ("*" if name == current else "", bold(name), titles[name], dim(str(file or "built in")))
        for name, file in named.items()
    ]
    heads = columns("", "profile", "*description", "from")
    return app.listing(documents, lambda: print_table(app.out, heads, rows), "no profiles")


def _profile_title(app: App, name: str) -> Styled:
    """Title of a profile; a broken one must not hide the others."""
    try:
        return Styled(_load_profile(app, name).title, "")
    except (BadProfile, BadSetting) as error:
        return red(f"cannot be used: {error.message}")


def _load_profile(app: App, name: str) -> Profile:
    return configured_profile(name, app.settings, app.settings.profile_folders())


@profiles.subcommand(
    "show",
    examples=[
        "bethink profiles show siftcoder",
        "bethink profiles show default --toml > .bethink/profiles/mine.toml",
    ],
)
@click.argument("name", shell_complete=complete_profiles)
@option("--toml", "Print the profile's file, to change a copy of it.")
def show(app: App, name: str, *, toml: bool) -> None:
    """Draw the pipeline of a profile.

    From the query to the answer: every slot in order, the parts in it, and the settings of
    each part.
    """
    try:
        profile = _load_profile(app, name)
    except NotFound as error:
        # A usage error, as in recall: exit code 1 means that no memory was found.
        raise Refused(error.message, remedy=error.remedy) from error
    if toml and not app.json:
        app.out.raw(profile_source(name, app.settings.profile_folders()))
        return
    for change in app.settings.changes(name):
        app.note(dim(f"{change.where} sets {change.target}"))
    app.document(_profile_json(profile))
    print_pipeline(app.out, profile)


_STAGE_SLOTS = (
    ("expand", "add linked memories"),
    ("adjust", "adjust scores by time, use and context"),
    ("rerank", "score the best hits again"),
    ("diversify", "prefer hits that add something new"),
    ("gate", "drop irrelevant hits"),
)
_FINAL_SLOTS = (
    ("budget", "keep what fits the limits"),
    ("assemble", "add supporting memories"),
    ("track", "record usage, if enabled"),
    ("text", "format the answer as text, if requested"),
)


def print_pipeline(out: Printer, profile: Profile) -> None:
    """Print the pipeline as a tree: one branch per slot, one leaf per part."""
    out.block(dim(profile.title), first=(bold(profile.name), "  "), indent=len(profile.name) + 2)
    out.line()
    out.line("  question")
    for slot, purpose, parts in _pipeline_slots(profile):
        if parts:
            out.line("     │")
            out.line("     ├─ ", cyan(f"{slot:<10}"), dim(purpose))
            for part in parts:
                _draw_part(out, part)
        else:
            out.line("     │")
            out.line("     ├─ ", dim(f"{slot:<10}-"))
    out.line("     │")
    out.line("  answer")


def _draw_part(out: Printer, part: Any) -> None:
    name = getattr(part, "name", "") or part.heading or f"({part.show})"
    label = max(_LABEL, display_width(name) + 2)
    settings = "  ".join(_part_settings(part))
    for number, line in enumerate(wrap_lines(settings, out.width - _TRUNK - label)):
        shown = "" if number else name
        out.line("     │    ", bold(shown + " " * (label - display_width(shown))), line)


_TRUNK, _LABEL = 10, 13  # columns before a part's name, and its own


def _pipeline_slots(profile: Profile) -> Iterator[tuple[str, str, tuple[object, ...]]]:
    yield "channels", "retrievers: each searches in its own way", profile.channels
    yield "fuse", "combine their rankings into one", (profile.fuse,)
    for slot, purpose in _STAGE_SLOTS:
        yield slot, purpose, profile.slot(slot)
    for slot, purpose in _FINAL_SLOTS:
        parts = getattr(profile, slot)
        yield slot, purpose, parts if isinstance(parts, tuple) else (parts,)


def _part_settings(part: Any) -> list[str]:
    """A part's settings as a profile writes them, without empty ones.

    Starts with ``use=`` where the part's name differs from its registered name.
    """
    use = _registered_name(part)
    settings = [f"use={use}"] if use not in ("", getattr(part, "name", "")) else []
    for field in dataclasses.fields(part):
        value = getattr(part, field.name)
        if field.name not in ("name", "heading") and value not in ((), None):
            settings.append(f"{field.name}={_format_setting_value(value)}")
    return settings


def _registered_name(part: object) -> str:
    """The name a profile writes after ``use`` for this part."""
    names = (table.name_of(type(part)) for table in (RETRIEVERS, FUSIONS, STAGES, ASSEMBLERS))
    return next(filter(None, names), "")


def _format_setting_value(value: object) -> str:
    if isinstance(value, tuple):
        return "{" + ", ".join(_format_entry(entry) for entry in value) + "}"
    return f"{value:g}" if isinstance(value, float) else str(value)


def _format_entry(entry: object) -> str:
    return (
        f"{entry[0]}: {_format_setting_value(entry[1])}" if isinstance(entry, tuple) else str(entry)
    )


def _profile_json(profile: Profile) -> Json:
    return {
        "name": profile.name,
        "title": profile.title,
        "walk": [
            {"slot": slot, "parts": [_part_json(part) for part in parts]}
            for slot, _, parts in _pipeline_slots(profile)
        ],
    }


def _part_json(part: Any) -> Json:
    use = _registered_name(part)
    return ({"use": use} if use else {}) | dataclasses.asdict(part)
