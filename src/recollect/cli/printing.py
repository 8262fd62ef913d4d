"""Text for people: coloured and wrapped at a terminal, plain when piped.

Everything printed passes through ``recollect.text.visible``, so that no escape sequence inside
a memory can drive the terminal.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple, TextIO

_CODES = {"bold": "1", "dim": "2", "red": "31", "green": "32", "yellow": "33", "cyan": "36"}
_NARROWEST = 40
_WIDEST = 100  # longer lines are hard to read, however wide the terminal


class Ink(NamedTuple):
    """A piece of text and how it looks where there is colour."""

    text: str
    style: str


Piece = str | Ink


def bold(text: str) -> Ink:
    return Ink(text, "bold")


def dim(text: str) -> Ink:
    return Ink(text, "dim")


def red(text: str) -> Ink:
    return Ink(text, "red")


def green(text: str) -> Ink:
    return Ink(text, "green")


def yellow(text: str) -> Ink:
    return Ink(text, "yellow")


def cyan(text: str) -> Ink:
    return Ink(text, "cyan")


def shown(text: str) -> str:
    """The text as a terminal may be given it."""
    if text.isascii() and text.isprintable():
        return text
    from recollect.text import visible  # its patterns take longer to load than most texts to print

    return visible(text)


class Printer(NamedTuple):
    """One of the two output streams."""

    stream: TextIO
    terminal: bool = False
    color: bool = False

    @property
    def width(self) -> int:
        """How many columns to fill. Piped text is never wrapped."""
        import shutil  # piped output is not wrapped

        return max(_NARROWEST, min(_WIDEST, shutil.get_terminal_size().columns))

    def line(self, *pieces: Piece) -> None:
        """One line; a line feed inside a piece stays one."""
        self.stream.write("".join(self._inked(piece) for piece in pieces) + "\n")

    def block(self, text: Piece, *, first: Sequence[Piece] = (), indent: int = 0) -> None:
        """A text of any length, each line indented, the first one after its label."""
        plain, style = text if isinstance(text, Ink) else (text, "")
        room = self.width - indent if self.terminal else 0
        for number, line in enumerate(wrapped(shown(plain), room)):
            before = first if number == 0 and first else (" " * indent if line else "",)
            self.line(*before, Ink(line, style))

    def json(self, value: Any) -> None:
        """One JSON document: laid out for people at a terminal, on one line otherwise."""
        from recollect.wire import dumps  # plain output does without

        self.stream.write(dumps(value, indent=2 if self.terminal else None) + "\n")

    def raw(self, text: str) -> None:
        """Text as it is: for output that a program reads."""
        self.stream.write(text)

    def _inked(self, piece: Piece) -> str:
        if isinstance(piece, str):
            return shown(piece)
        text = shown(piece.text)
        plain = not (self.color and text and piece.style)
        return text if plain else f"\x1b[{_CODES[piece.style]}m{text}\x1b[0m"


def columns(text: str) -> int:
    """How many columns of a terminal a text takes."""
    if text.isascii():
        return len(text)
    return sum(_columns_of(char) for char in text)


def _columns_of(char: str) -> int:
    import unicodedata  # most texts are ASCII

    if unicodedata.combining(char) or unicodedata.category(char) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(char) in "WF" else 1


def wrapped(text: str, room: int) -> Iterator[str]:
    """The lines of a text, broken between words to fit; a room of 0 breaks nothing."""
    for line in text.split("\n"):
        if not room or columns(line) <= room:
            yield line
        else:
            yield from _broken(line, room)


def _broken(line: str, room: int) -> Iterator[str]:
    current = ""
    for word in line.split():
        together = f"{current} {word}" if current else word
        if columns(together) <= room:
            current = together
            continue
        if current:
            yield current
        while columns(word) > room:
            head = fitting(word, room)
            yield head
            word = word[len(head) :]  # noqa: PLW2901 - what is left of it
        current = word
    if current:
        yield current


def fitting(text: str, room: int) -> str:
    """The longest beginning that fits, but at least one character."""
    taken = 0
    for position, char in enumerate(text):
        taken += _columns_of(char)
        if taken > room and position:
            return text[:position]
    return text


def one_line(text: str, room: int = 0) -> str:
    """A text on one line, cut with an ellipsis where it does not fit."""
    line = " ".join(shown(text).split())
    if not room or columns(line) <= room:
        return line
    return fitting(line, max(1, room - 1)).rstrip() + "…"


def moment(at: datetime | None) -> str:
    """A time to the minute, in UTC as everywhere else."""
    return at.astimezone(UTC).strftime("%Y-%m-%d %H:%M") if at else ""


def day(at: datetime | None) -> str:
    """A date, in UTC as everywhere else."""
    return at.astimezone(UTC).strftime("%Y-%m-%d") if at else ""


def plural(count: int, noun: str) -> str:
    """``1 memory``, ``2 memories``."""
    if count == 1:
        return f"1 {noun}"
    many = f"{noun[:-1]}ies" if noun.endswith("y") else f"{noun}s"
    return f"{count:,} {many}"
