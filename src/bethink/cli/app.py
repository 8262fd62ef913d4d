"""Per-call state of the command line: general options, output streams, progress, prompts."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from time import monotonic
from typing import TYPE_CHECKING, TextIO

from bethink.cli.output import Piece, Printer, dim, printable
from bethink.core import closest_name
from bethink.errors import BadSetting, BethinkError, UntrustedSpace
from bethink.store import space_exists, spaces_on_server
from bethink.store.url import is_server

if TYPE_CHECKING:
    from bethink.config.settings import Settings
    from bethink.config.spaces import SpaceRef
    from bethink.memory import Memory


class BadUse(BethinkError):
    """A command was called with something that it cannot use."""


class App:
    """The general options of one call, as far as they have been parsed."""

    def __init__(self, *, json: bool = False) -> None:
        self.space: str | None = None
        self.profile: str | None = None
        self.store: str | None = None
        self.json = json
        self.no_color = False
        self.quiet = False
        self.verbose = False
        self._settings: Settings | None = None
        self._has_offered = False

    @property
    def out(self) -> Printer:
        """Printer for the command's result (stdout); with --json it prints documents only."""
        return self._printer(sys.stdout)._replace(muted=self.json)

    @property
    def err(self) -> Printer:
        """Printer for progress, notes and errors (stderr)."""
        return self._printer(sys.stderr)

    @property
    def settings(self) -> Settings:
        """The effective settings, with the options of this call applied."""
        if self._settings is None:
            from bethink.config.settings import load_settings  # not needed for help and completion

            given = {"space": self.space, "profile": self.profile, "store": self.store}
            self._settings = load_settings(overrides=given)
        return self._settings

    def use_space(self, name: str) -> None:
        """Go on with another space."""
        self.space, self._settings = name, None

    def where(self) -> SpaceRef:
        """Resolve the space this call uses, and its file."""
        from bethink.config.paths import CARRIED_OVER, earlier_folder
        from bethink.config.spaces import (  # not needed for help and completion
            TrustedSpace,
            data_dir,
            resolve_space,
            set_trust,
            trusted_spaces,
        )

        spaces, done = earlier_folder("data") / "spaces", data_dir(self.settings) / CARRIED_OVER
        if not (self._has_offered or done.exists()) and os.path.isdir(spaces):  # noqa: PTH112
            self.note("memories of an earlier version are waiting: bethink upgrade")
        self._has_offered = True
        try:
            return resolve_space(None, self.settings)
        except UntrustedSpace as error:
            config = self.settings.config
            if config is None or not confirm(self, f"{error.message}. Allow it?"):
                raise
            allowed = TrustedSpace(error.project, error.space)
            set_trust(config, [*trusted_spaces(config), allowed])
            return resolve_space(None, self.settings)

    def open(self, *, create: bool = False) -> Memory:
        """Open the memory of that space; only commands that store something create it."""
        if create:
            self.where()  # asks whether a project may use a space
        else:
            self.check_space()
        from bethink.memory import Memory  # slow to import

        return Memory.open(settings=self.settings, create=create)

    def check_space(self) -> bool:
        """Whether the space exists; raise BadSetting where the caller named one that does not."""
        ref = self.where()
        if space_exists(self.settings.store, ref.name, ref.path):
            return True
        if self.settings.origin("space").kind in ("argument", "environment"):
            near = closest_name(ref.name, self.space_names())
            hint = f"did you mean {near}? " if near else ""
            raise BadSetting(
                f"there is no space {ref.name!r}",
                remedy=f"{hint}bethink spaces lists them; bethink remember creates one",
            )
        return False

    def space_names(self) -> list[str]:
        """List the spaces of the store in use."""
        from bethink.config.spaces import data_dir, list_spaces  # not needed for help

        if is_server(self.settings.store):
            return spaces_on_server(self.settings.store)
        return [space.name for space in list_spaces(data_dir(self.settings))]

    def note(self, *pieces: Piece) -> None:
        """Print a remark for people; nothing that a program would need."""
        if not (self.quiet or self.json):
            self.err.line(*pieces)

    def document(self, document: object) -> None:
        """Print a document with --json; without it the text that follows is printed."""
        if self.json:
            self.out.json(document)

    def report(self, document: object, *pieces: Piece, done: bool = True) -> None:
        """Print a document with --json; else what was done, or that nothing was."""
        self.document(document)
        if done:
            self.out.line(*pieces)
        else:
            self.note(dim("nothing was changed; use --yes to apply"))

    def remark(self, document: object, *pieces: Piece) -> None:
        """Print a document with --json; else a remark for people."""
        self.document(document)
        self.note(*pieces)

    def listing(self, documents: Sequence[object], show: Callable[[], None], none: str) -> int:
        """Print a list, as documents with --json, or that there is none, and return the code."""
        if self.json:
            self.out.json(documents)
        elif documents:
            show()
        else:
            self.note(none)
        return 0 if documents else 1

    def _printer(self, stream: TextIO) -> Printer:
        terminal = stream.isatty()
        return Printer(stream, terminal=terminal, color=self._has_color(terminal=terminal))

    def _has_color(self, *, terminal: bool) -> bool:
        # Only settings already read: an error about a setting must still be printed.
        setting = self._settings.color if self._settings else "auto"
        if self.no_color or setting == "never":
            return False
        plain = os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb"
        return setting == "always" or (terminal and not plain)


Advance = Callable[[int, int], None]
_REDRAWN_S = 0.1


@contextmanager
def progress(app: App, label: str, *, unit: str = "") -> Iterator[Advance]:
    """Yield a callback that takes the amount done and, where known, the total."""
    if app.quiet or app.json or not app.err.terminal:
        yield _no_progress
        return
    line = _ProgressLine(app.err, label, unit)
    try:
        yield line
    finally:
        line.write("")


class _ProgressLine:
    """A line at the terminal that says how far something is; it is gone at the end."""

    def __init__(self, out: Printer, label: str, unit: str) -> None:
        self._out, self._label, self._unit = out, label, unit
        self._began: tuple[float, int] | None = None  # when, and how much was done by then
        self._written_at, self._length = 0.0, 0

    def __call__(self, done: int, total: int) -> None:
        now = monotonic()
        began, first = self._began = self._began or (now, done)
        if now - self._written_at < _REDRAWN_S:
            return
        self._written_at = now
        rate = (done - first) / (now - began) if now > began else 0.0
        parts = [f"{self._label} {done:,}" + (f" of {total:,}" if total else ""), self._unit]
        parts += [f"{rate:,.0f}/s"] if rate >= 1 else []
        if rate and total > done:
            minutes, seconds = divmod(round((total - done) / rate), 60)
            parts.append(f"{minutes}:{seconds:02} left")
        self.write("  ".join(filter(None, parts)))

    def write(self, text: str) -> None:
        """Write over what was written before."""
        text = printable(text)[: self._out.width - 1]
        self._out.stream.write(f"\r{text.ljust(self._length)}" + ("" if text else "\r"))
        self._out.stream.flush()
        self._length = len(text)


def _no_progress(done: int, total: int) -> None:
    """Ignore progress when there is no terminal."""


def confirm(app: App, question: str) -> bool:
    """Ask for confirmation on a terminal; no terminal or end of input means no."""
    if app.json or not (sys.stdin.isatty() and app.err.terminal):
        return False
    app.out.stream.flush()
    app.err.stream.write(f"{question} [y/N] ")
    app.err.stream.flush()
    answer = sys.stdin.buffer.readline()
    return answer.strip().lower() in (b"y", b"yes")
