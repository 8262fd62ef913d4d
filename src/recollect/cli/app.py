"""One call of the command line: what holds for every command, and where output goes."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, TextIO

from recollect.cli.printing import Piece, Printer

if TYPE_CHECKING:
    from recollect.memory import Memory
    from recollect.settings import Settings
    from recollect.spaces import SpaceRef


class App:
    """The general options, as far as they have been read."""

    def __init__(self, *, json: bool = False) -> None:
        self.space: str | None = None
        self.profile: str | None = None
        self.json = json
        self.no_color = False
        self.quiet = False
        self.verbose = False
        self._settings: Settings | None = None

    @property
    def out(self) -> Printer:
        """For what was asked."""
        return self._printer(sys.stdout)

    @property
    def err(self) -> Printer:
        """For what is said about it: progress, notes, errors."""
        return self._printer(sys.stderr)

    @property
    def settings(self) -> Settings:
        """What holds here, the options of this call included."""
        if self._settings is None:
            from recollect.settings import load_settings  # help and completion do without

            self._settings = load_settings(overrides={"space": self.space, "profile": self.profile})
        return self._settings

    def where(self) -> SpaceRef:
        """The space that is meant, and its file."""
        from recollect.spaces import resolve_space  # help and completion do without

        return resolve_space(None, self.settings)

    def open(self) -> Memory:
        """The memory of that space."""
        from recollect.memory import Memory  # the heavy part of most commands

        return Memory.open(settings=self.settings)

    def note(self, *pieces: Piece) -> None:
        """A remark for people; nothing that a program would need."""
        if not (self.quiet or self.json):
            self.err.line(*pieces)

    def _printer(self, stream: TextIO) -> Printer:
        terminal = stream.isatty()
        return Printer(stream, terminal=terminal, color=self._has_color(terminal=terminal))

    def _has_color(self, *, terminal: bool) -> bool:
        # Only settings already read: an error about a setting must still be printed.
        wanted = self._settings.color if self._settings else "auto"
        if self.no_color or wanted == "never":
            return False
        plain = os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb"
        return wanted == "always" or (terminal and not plain)
