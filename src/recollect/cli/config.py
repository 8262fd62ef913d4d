"""`config`: every setting with its value and where that comes from."""

from __future__ import annotations

from typing import Any

import click

from recollect.cli.app import App
from recollect.cli.options import Group, command, pass_app
from recollect.cli.printing import bold, dim, green
from recollect.cli.tables import Column, print_table


class ConfigGroup(Group):
    """A group in which the name of a setting stands for reading it."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and args[0] not in self.commands:
            args = ["get", *args]
        return super().resolve_command(ctx, args)


@click.group(
    "config",
    cls=ConfigGroup,
    examples=[
        "recollect config",
        "recollect config get embedder",
        "recollect config set k 20",
        "recollect config set space shared-notes --project",
    ],
)
@click.pass_context
def config(ctx: click.Context) -> int:
    """List, read and change settings.

    An option counts before the environment (RECOLLECT_...), that before the project's
    file, that before the user's file, that before the default.
    """
    return _list(ctx.ensure_object(App)) if ctx.invoked_subcommand is None else 0


def _list(app: App) -> int:
    from recollect.settings import SETTINGS  # help does without

    if app.json:
        app.out.json({setting.name: _told(app, setting.name) for setting in SETTINGS})
        return 0
    heads = [Column("setting"), Column("value"), Column("from"), Column("what it is", wide=True)]
    rows = [
        (
            bold(setting.name),
            _plain(getattr(app.settings, setting.name)),
            dim(str(app.settings.origin(setting.name))),
            dim(setting.help),
        )
        for setting in SETTINGS
    ]
    print_table(app.out, heads, rows)
    return 0


def _told(app: App, name: str) -> dict[str, Any]:
    value = getattr(app.settings, name)
    origin = app.settings.origin(name)
    written = value if value is None or isinstance(value, str | int) else str(value)
    return {"value": written, "origin": origin.kind, "where": origin.where}


def _plain(value: Any) -> str:
    if value is None:
        return ""
    return str(value).lower() if isinstance(value, bool) else str(value)


@command("get", examples=["recollect config get profile"])
@click.argument("name")
@pass_app
def get(app: App, name: str) -> None:
    """Print one setting."""
    origin = app.settings.origin(name)
    if app.json:
        app.out.json({"name": name, **_told(app, name)})
        return
    app.out.line(_plain(getattr(app.settings, name)))
    if app.verbose:
        app.note(dim(str(origin)))


@command(
    "set",
    examples=[
        "recollect config set profile siftcoder",
        "recollect config set track false --project",
    ],
)
@click.argument("name")
@click.argument("value")
@click.option(
    "--project", is_flag=True, help="In the project's file, for everyone who works on it."
)
@pass_app
def set_value(app: App, name: str, value: str, *, project: bool) -> None:
    """Change one setting in the user's file."""
    _write(app, name, value, project=project)


@command("unset", examples=["recollect config unset profile"])
@click.argument("name")
@click.option("--project", is_flag=True, help="In the project's file.")
@pass_app
def unset(app: App, name: str, *, project: bool) -> None:
    """Take one setting out of the user's file."""
    _write(app, name, None, project=project)


def _write(app: App, name: str, value: str | None, *, project: bool) -> None:
    from recollect.settings import set_project_setting, set_user_setting  # reading does without

    path = (set_project_setting if project else set_user_setting)(name, value)
    if app.json:
        app.out.json({"name": name, "value": value, "file": str(path)})
    else:
        app.note(green(f"written to {path}"))


config.add_command(get)
config.add_command(set_value)
config.add_command(unset)
