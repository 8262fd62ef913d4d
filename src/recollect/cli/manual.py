"""The help of every command as one Markdown page, always laid out the same."""

from __future__ import annotations

from collections.abc import Iterator

import click

from recollect.cli.commands import recollect
from recollect.cli.overview import PROGRAM, overview

_WIDTH = 88


def page() -> str:
    """What `recollect COMMAND --help` prints, for every command and subcommand."""
    parts = [
        "# The command line",
        f"```text\n{overview().strip()}\n```",
    ]
    for path, told in _pages(recollect, root_context()):
        parts.append(f"## {path}\n\n```text\n{told.strip()}\n```")
    return "\n\n".join(parts) + "\n"


def root_context(width: int = _WIDTH) -> click.Context:
    """The program's context as a call of it would make it.

    With the settings of the group: click keeps the help option it makes first, and one
    made without them would know no `-h` for the rest of the process.
    """
    settings = recollect.context_settings
    return click.Context(recollect, info_name=PROGRAM, terminal_width=width, **settings)


def _pages(group: click.Group, ctx: click.Context) -> Iterator[tuple[str, str]]:
    for name in group.list_commands(ctx):
        command = group.get_command(ctx, name)
        assert command is not None, "every command that is listed is there"
        inner = click.Context(command, parent=ctx, info_name=name, terminal_width=_WIDTH)
        yield inner.command_path, command.get_help(inner)
        if isinstance(command, click.Group):
            yield from _pages(command, inner)
