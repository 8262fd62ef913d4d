"""The root click group: every subcommand by name, imported when it is called."""

from __future__ import annotations

from collections.abc import Iterator

import click

from bethink.cli.help import COMMAND_PLACES, OPTION_HELP, OTHER_NAMES, PROGRAM, overview
from bethink.cli.options import general_options
from bethink.core import closest_name
from bethink.core.registry import Registry
from bethink.version import __version__

COMMANDS: Registry[click.Command] = Registry("command", COMMAND_PLACES)


class LazyGroup(click.Group):
    """A click group that imports a subcommand only when it is called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        return COMMANDS.get(cmd_name)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        args = _in_own_words(args)
        if args[:1] == ["--help"]:
            click.echo(overview(every_command="--all" in args))
            ctx.exit()
        if args and args[0] not in COMMANDS and not ctx.resilient_parsing:
            raise click.UsageError(_unknown_command_message(args[0]), ctx)
        return super().resolve_command(ctx, args)

    def get_help(self, ctx: click.Context) -> str:
        return overview()


def _in_own_words(args: list[str]) -> list[str]:
    """Translate what other tools call the same, and `help COMMAND`."""
    if args[:1] == ["help"]:
        names = [one for one in args[1:] if not one.startswith("-")]
        return [*names, "--help"] if names else ["--help", *args[1:]]
    return [*(OTHER_NAMES.get(name, name) for name in args[:1]), *args[1:]]


def _unknown_command_message(name: str) -> str:
    near = closest_name(name, COMMANDS)
    return f"unknown command {name!r}" + (f"; did you mean {near}?" if near else "")


def _print_version(ctx: click.Context, _: click.Parameter, value: bool) -> None:
    if value and not ctx.resilient_parsing:
        click.echo(f"{PROGRAM} {__version__}")
        ctx.exit()


bethink = LazyGroup(
    name=PROGRAM,
    help="A memory that AI agents and people can trust: offline, explained, crash-proof.",
    params=[
        *general_options(hide_rare=False),
        click.Option(
            ["--version"],
            is_flag=True,
            is_eager=True,
            expose_value=False,
            callback=_print_version,
            help=OPTION_HELP["version"],
        ),
    ],
    context_settings={"help_option_names": ["-h", "--help"]},
)

_WIDTH = 88


def reference_page() -> str:
    """Return the `--help` output of every command and subcommand as one page."""
    parts = ["# The command line", f"```text\n{overview(every_command=True).strip()}\n```"]
    for path, text in _help_pages(bethink, root_context()):
        parts.append(f"## {path}\n\n```text\n{text.strip()}\n```")
    return "\n\n".join(parts) + "\n"


def root_context(width: int = _WIDTH) -> click.Context:
    """Build the root context as a real call would.

    It carries the group's context settings: click caches the first help option it makes,
    and one made without them would have no `-h` for the rest of the process.
    """
    settings = bethink.context_settings
    return click.Context(bethink, info_name=PROGRAM, terminal_width=width, **settings)


def _help_pages(group: click.Group, ctx: click.Context) -> Iterator[tuple[str, str]]:
    for name in group.list_commands(ctx):
        command = group.get_command(ctx, name)
        assert command is not None, "every listed command exists"
        inner = click.Context(command, parent=ctx, info_name=name, terminal_width=_WIDTH)
        yield inner.command_path, command.get_help(inner)
        if isinstance(command, click.Group) and getattr(command, "in_reference", True):
            yield from _help_pages(command, inner)
