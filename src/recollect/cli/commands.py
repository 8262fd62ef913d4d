"""The command `recollect`: every subcommand by name, loaded when it is called."""

from __future__ import annotations

from importlib import import_module
from typing import Any, NamedTuple

import click

from recollect.cli.options import general_options


class Entry(NamedTuple):
    """Where a command lives, and its line in the overview."""

    home: str
    help: str


SECTIONS: dict[str, dict[str, Entry]] = {
    "Remember and recall": {
        "remember": Entry("writing:remember", "Store a memory."),
        "recall": Entry("recalling:recall", "Find what a question calls to mind."),
        "why-not": Entry("recalling:why_not", "Say why a memory was not recalled."),
        "compare": Entry("recalling:compare", "Ask several profiles, side by side."),
        "demo": Entry("demo:demo", "Show it all on a small project's memory."),
    },
    "Look around": {
        "show": Entry("reading:show", "Show one memory with all that is known of it."),
        "list": Entry("reading:list_memories", "List memories, newest first."),
        "timeline": Entry("reading:timeline", "Show what came before and after a memory."),
        "history": Entry("reading:history", "Show the revisions of a memory."),
        "entities": Entry("reading:entities", "List whom and what the memories speak of."),
        "events": Entry("reading:events", "Show the journal: who did what, and when."),
        "stats": Entry("keeping:stats", "Count what is stored."),
    },
    "Correct and forget": {
        "update": Entry("writing:update", "Correct a memory; the old text stays in its history."),
        "forget": Entry("forgetting:forget", "Take memories out of recall, or erase them."),
        "restore": Entry("forgetting:restore", "Bring forgotten memories back."),
    },
    "Bring and take": {
        "import": Entry("importing:import_memories", "Store many memories from a file."),
        "export": Entry("exporting:export", "Write everything to a file."),
    },
    "Look after it": {
        "spaces": Entry("spaces:spaces", "List, find and remove spaces."),
        "profiles": Entry("profiles:profiles", "List the profiles and show what they do."),
        "config": Entry("config:config", "List, read and change settings."),
        "doctor": Entry("keeping:doctor", "Check everything that could be wrong."),
        "reindex": Entry("keeping:reindex", "Make the vectors that are missing."),
        "completion": Entry("keeping:completion", "Print the completion script for a shell."),
        "version": Entry("keeping:version", "Print the version."),
    },
}

COMMANDS: dict[str, Entry] = {
    name: entry for section in SECTIONS.values() for name, entry in section.items()
}


class LazyGroup(click.Group):
    """A group that knows its commands by name and imports the one that is called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        entry = COMMANDS.get(cmd_name)
        if entry is None:
            return None
        module, _, function = entry.home.partition(":")
        command: click.Command = getattr(import_module(f"recollect.cli.{module}"), function)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and args[0] not in COMMANDS and not ctx.resilient_parsing:
            self._no_such_command(args[0], ctx)
        return super().resolve_command(ctx, args)

    def _no_such_command(self, name: str, ctx: click.Context) -> None:
        from difflib import get_close_matches  # only a mistake needs it

        near = get_close_matches(name, COMMANDS, n=1)
        hint = f"; did you mean {near[0]}?" if near else ""
        raise click.UsageError(f"there is no command {name!r}{hint}", ctx)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        for title, section in SECTIONS.items():
            with formatter.section(title):
                formatter.write_dl([(name, entry.help) for name, entry in section.items()])


def _print_version(ctx: click.Context, param: click.Parameter, value: bool) -> None:
    if value and not ctx.resilient_parsing:
        from recollect.version import __version__

        click.echo(f"recollect {__version__}")
        ctx.exit()


def _make() -> LazyGroup:
    version: Any = click.Option(
        ["--version"],
        is_flag=True,
        is_eager=True,
        expose_value=False,
        callback=_print_version,
        help="Print the version.",
    )
    return LazyGroup(
        name="recollect",
        help="A memory that AI agents and people can trust: offline, explained, crash-proof.\n\n"
        'Begin with: recollect remember "Tests run with make test", '
        'then recollect recall "how do I run the tests?"',
        params=[*general_options(hide_rare=False), version],
        context_settings={"help_option_names": ["-h", "--help"]},
        epilog="Exit codes: 0 found or done, 1 nothing found, 2 bad use, 3 store trouble.",
    )


recollect = _make()
