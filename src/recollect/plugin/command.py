"""`hook`: what a host calls when something happens in a session."""

from __future__ import annotations

import os

import click

from recollect.cli.app import App
from recollect.cli.options import command, pass_app
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
@pass_app
def hook(app: App, event: str) -> int:
    """Answer a host's hook; install sets them up.

    The host's JSON comes in, the host's JSON goes out. EVENT is session-start,
    user-prompt-submit, post-tool-use, stop, pre-compact or session-end. Ends within the
    event's limit with exit code 0, with a whole answer or none; what went wrong stands in
    hooks.log in the state folder.
    """
    if app.space is not None:
        # The one way by which a hook learns what holds, called without click as it usually is.
        os.environ["RECOLLECT_SPACE"] = app.space
    return main([event])
