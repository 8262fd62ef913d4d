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
    space = None
    if name == "jsonl" and given["corpus"] is None:
        found = app.where()
        if not found.path.exists():
            raise Refused(
                f"there is no space {found.name} to ask",
                remedy="name one with --space, or give the memories with --corpus FILE",
            )
        space = found.name
    reading = Reading(
        space=space,
        **{
            key: given[key]
            for key in (
                "path", "level", "protocol", "captions", "pooled", "split", "corpus", "limit",
            )
        },
    )  # fmt: skip
    return open_dataset(name, reading)


def the_guests(dataset: Dataset) -> list[Case]:
    """The questions that come with Recollect, as strangers for everybody else."""
    from recollect.eval.datasets import Reading, open_dataset  # help does without

    if dataset.name == "builtin":
        return []
    return list(open_dataset("builtin", Reading()).cases())


def the_profiles(app: App, named: str) -> dict[str, Profile]:
    from recollect.errors import Refused  # help does without
    from recollect.profile import load_profile, parse_profile

    found: dict[str, Profile] = {}
    for name in listed(named):
        if name.endswith(".toml"):
            file = Path(name)
            if not file.is_file():
                raise Refused(f"there is no file {file}")
            text = file.read_text(encoding="utf-8")
            found[file.stem] = parse_profile(text, file.stem, name)
        else:
            found[name] = load_profile(
                name, app.settings.profile_folders(), app.settings.changes(name)
            )
    if not found:
        raise Refused("no profile is named")
    return found


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
