"""The headings between the scenes of the demo."""

from __future__ import annotations

from bethink.cli.app import App
from bethink.cli.output import bold, cyan


def print_heading(app: App, title: str, command_line: str) -> None:
    """Print what a scene shows, and the command for it."""
    app.out.line()
    app.out.line(bold(title))
    app.out.line(cyan("$ "), f"bethink {command_line}")
    app.out.line()
