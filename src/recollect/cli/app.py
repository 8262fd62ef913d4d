"""One call of the command line: what holds for every command, and where output goes."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, TextIO

from recollect.cli.printing import Printer

if TYPE_CHECKING:
    from recollect.memory import Memory


@dataclass(slots=True)
class App:
    """The general options, as far as they have been read."""

    space: str | None = None
    json: bool = False
    no_color: bool = False
    quiet: bool = False
    verbose: bool = False

    @property
    def out(self) -> Printer:
        """For what was asked."""
        return self._printer(sys.stdout)

    @property
    def err(self) -> Printer:
        """For what is said about it: progress, notes, errors."""
        return self._printer(sys.stderr)

    def note(self, text: str) -> None:
        """A remark for people; nothing that a program would need."""
        if not (self.quiet or self.json):
            self.err.line(text)

    def open(self) -> Memory:
        """The memory that the options, the environment and the working directory name."""
        from recollect.memory import Memory  # the heavy part of most commands

        return Memory.open(self.space)

    def _printer(self, stream: TextIO) -> Printer:
        terminal = stream.isatty()
        plain = self.no_color or bool(os.environ.get("NO_COLOR"))
        dumb = os.environ.get("TERM") == "dumb"
        return Printer(stream, terminal=terminal, color=terminal and not plain and not dumb)
