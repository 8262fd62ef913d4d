"""The command `recollect`: every subcommand by name, loaded when it is called."""

from __future__ import annotations

from importlib import import_module

import click

from recollect.cli.options import general_options
from recollect.cli.overview import GENERAL, PROGRAM, overview

HOMES = {
    "remember": "writing:remember",
    "recall": "recalling:recall",
    "why-not": "recalling:why_not",
    "compare": "recalling:compare",
    "demo": "demo:demo",
    "show": "reading:show",
    "list": "reading:list_memories",
    "timeline": "reading:timeline",
    "why": "provenance:why",
    "history": "reading:history",
    "entities": "entities:entities",
    "events": "reading:events",
    "threads": "topics:threads",
    "thread": "topics:thread",
    "insights": "topics:insights",
    "recall-file": "files:recall_file",
    "read-smart": "files:read_smart",
    "note-edit": "files:note_edit",
    "forget-file": "files:forget_file",
    "stats": "keeping:stats",
    "link": "relating:link",
    "unlink": "relating:unlink",
    "links": "relating:links",
    "update": "writing:update",
    "boost": "judging:boost",
    "demote": "judging:demote",
    "forget": "forgetting:forget",
    "restore": "forgetting:restore",
    "undo": "undoing:undo",
    "revoke": "maintaining:revoke",
    "import": "importing:import_memories",
    "export": "exporting:export",
    "install": "recollect.plugin.install.command:install",
    "uninstall": "recollect.plugin.install.command:uninstall",
    "hook": "recollect.plugin.command:hook",
    "mcp": "recollect.mcp.command:mcp_command",
    "serve": "recollect.serve.command:serve",
    "token": "recollect.serve.tokens:token",
    "worker": "worker:worker",
    "eval": "recollect.eval.commands:eval_command",
    "tune": "recollect.eval.commands:tune_command",
    "spaces": "spaces:spaces",
    "profiles": "profiles:profiles",
    "config": "config:config",
    "maintain": "maintaining:maintain",
    "doctor": "keeping:doctor",
    "reindex": "keeping:reindex",
    "completion": "keeping:completion",
    "version": "keeping:version",
}


class LazyGroup(click.Group):
    """A group that knows its commands by name and imports the one that is called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(HOMES)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in HOMES:
            return None
        module, _, function = HOMES[cmd_name].partition(":")
        home = module if "." in module else f"recollect.cli.{module}"
        command: click.Command = getattr(import_module(home), function)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and args[0] not in HOMES and not ctx.resilient_parsing:
            raise click.UsageError(_unknown(args[0]), ctx)
        return super().resolve_command(ctx, args)

    def get_help(self, ctx: click.Context) -> str:
        return overview()


def _unknown(name: str) -> str:
    from difflib import get_close_matches  # only a mistake needs it

    near = get_close_matches(name, HOMES, n=1)
    return f"there is no command {name!r}" + (f"; did you mean {near[0]}?" if near else "")


def _print_version(ctx: click.Context, _: click.Parameter, value: bool) -> None:
    if value and not ctx.resilient_parsing:
        from recollect.version import __version__  # asked for here only

        click.echo(f"{PROGRAM} {__version__}")
        ctx.exit()


recollect = LazyGroup(
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
            help=GENERAL["version"],
        ),
    ],
    context_settings={"help_option_names": ["-h", "--help"]},
)
