"""Options that say what to measure on and by which profiles, and what they stand for."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from recollect.cli.app import App

if TYPE_CHECKING:
    from recollect.eval.case import Case, Dataset
    from recollect.eval.spaces import Shelf
    from recollect.profile import Profile

F = TypeVar("F", bound=Callable[..., Any])

NAMES = ("builtin", "locomo", "longmemeval", "beir", "jsonl")
_FILE = click.Path(path_type=Path)


def reading_options(function: F) -> F:
    """What to read and how; they arrive as keyword arguments."""
    decorators = [
        click.argument("dataset", type=click.Choice(NAMES)),
        click.argument("path", type=_FILE, required=False),
        click.option("--level", type=click.Choice(["turn", "session"]), default="turn",
                     show_default=True, help="What counts as found: the turn or its session."),
        click.option("--protocol", type=click.Choice(["official", "all"]), default="official",
                     show_default=True,
                     help="LongMemEval: user turns and no abstention questions, or everything."),
        click.option("--pooled", is_flag=True, help="All conversations in one space."),
        click.option("--captions/--no-captions", default=True,
                     help="LoCoMo: with the captions of shared pictures, as its authors do."),
        click.option("--split", metavar="NAME", help="BEIR: which qrels; test unless told."),
        click.option("--corpus", type=_FILE, metavar="FILE",
                     help="jsonl: the memories; without it the questions go to --space."),
        click.option("--limit", type=click.IntRange(0), default=0, metavar="N",
                     help="Only the first N conversations or haystacks."),
        click.option("--seed", type=int, default=7, show_default=True, metavar="N",
                     help="For everything drawn by chance."),
        click.option("--embedder", metavar="NAME", help="Instead of the configured one."),
        click.option("--in-memory", is_flag=True, help="Spaces without files."),
        click.option("--cache", type=_FILE, metavar="DIR",
                     help="Keep the filled spaces there for the next run."),
    ]  # fmt: skip
    for decorate in reversed(decorators):
        function = decorate(function)
    return function


def the_dataset(app: App, given: dict[str, Any]) -> Dataset:
    from recollect.errors import Refused  # help does without
    from recollect.eval.datasets import Reading, open_dataset

    name = given["dataset"]
    found = app.where() if name == "jsonl" and given["corpus"] is None else None
    reading = Reading(
        space=found.name if found else None,
        **{
            key: given[key]
            for key in (
                "path", "level", "protocol", "captions", "pooled", "split", "corpus", "limit",
            )
        },
    )  # fmt: skip
    dataset = open_dataset(name, reading)
    if found and not found.path.exists():
        raise Refused(
            f"there is no space {found.name} to ask",
            remedy="name one with --space, or give the memories with --corpus FILE",
        )
    return dataset


def the_guests(dataset: Dataset) -> list[Case]:
    """The questions that come with Recollect, as strangers for everybody else."""
    from recollect.eval.datasets import Reading, open_dataset  # help does without

    if dataset.name == "builtin":
        return []
    return list(open_dataset("builtin", Reading()).cases())


def the_profiles(app: App, named: str) -> dict[str, Profile]:
    from recollect.errors import Refused  # help does without

    found: dict[str, Profile] = {}
    for name in listed(named):
        profile = _of_file(Path(name)) if name.endswith(".toml") else _by_name(app, name)
        if profile.name in found:
            raise Refused(f"two of the profiles are called {profile.name!r}")
        found[profile.name] = profile
    if not found:
        raise Refused("no profile is named")
    return found


def _of_file(file: Path) -> Profile:
    from recollect.errors import Refused  # help does without
    from recollect.profile import profile_of_file

    if not file.is_file():
        raise Refused(f"there is no file {file}")
    return profile_of_file(file)


def _by_name(app: App, name: str) -> Profile:
    from recollect.errors import NotFound, Refused  # help does without
    from recollect.profile import load_profile

    try:
        return load_profile(name, app.settings.profile_folders(), app.settings.changes(name))
    except NotFound as error:
        # Of what was asked for, not of what was measured: exit code 1 says that it got worse.
        raise Refused(error.message, remedy=error.remedy) from error


def places_for(*files: Path | None) -> None:
    """Refuses files that could not be written in the end, before hours are spent on them."""
    from recollect.errors import Refused  # help does without

    for file in filter(None, files):
        if not file.absolute().parent.is_dir():
            raise Refused(f"{file} cannot be written: there is no folder {file.parent}")
        if file.is_dir():
            raise Refused(f"{file} cannot be written: it is a folder")


def the_shelf(app: App, given: dict[str, Any]) -> Shelf:
    from recollect.eval.spaces import Shelf  # help does without

    return Shelf(
        app.settings,
        embedder=given["embedder"],
        in_memory=given["in_memory"],
        cache_folder=given["cache"],
    )


def listed(text: str) -> tuple[str, ...]:
    """The names in a list with commas."""
    return tuple(part.strip() for part in text.split(",") if part.strip())
