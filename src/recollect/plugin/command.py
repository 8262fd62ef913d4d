"""`hook`: what a host calls when something happens in a session."""

from __future__ import annotations

import sys

import click

from recollect.cli.options import command
from recollect.plugin.events import EVENTS
from recollect.plugin.hook import main


@command(
    "hook",
    examples=[
        'echo \'{"session_id": "1", "prompt": "which port?"}\' | recollect hook user-prompt-submit',
        "recollect install claude-code",
    ],
)
@click.argument("event", type=click.Choice(list(EVENTS)), metavar="EVENT")
def hook(event: str) -> int:
    """Answer a host's hook: its JSON comes in, its JSON goes out.

    EVENT is session-start, user-prompt-submit, post-tool-use, stop, pre-compact or
    session-end. `recollect install claude-code` sets them up; nobody need call this.
    Ends within the event's limit with exit code 0, with a whole answer or none; what went
    wrong stands in hooks.log in the state folder.
    """
    sys.stdout.flush()
    return main([event])
