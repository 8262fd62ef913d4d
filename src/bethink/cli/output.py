"""Terminal output: coloured and wrapped text, tables, plain aligned columns when piped.

Everything printed passes through `core.characters.strip_hidden`, so that no escape
sequence inside a memory can drive the terminal.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, TextIO

from bethink.core.named_tuple import NamedTuple

if TYPE_CHECKING:
    from rich.console import Console


_ANSI_CODES = {"bold": "1", "dim": "2", "red": "31", "green": "32", "yellow": "33", "cyan": "36"}
_MIN_WIDTH = 40
_MAX_WIDTH = 100  # longer lines are hard to read, however wide the terminal


class Styled(NamedTuple):
    """A piece of text and its style where colour is on."""

    text: str
    style: str


Piece = str | Styled


def bold(text: str) -> Styled:
    return Styled(text, "bold")


def dim(text: str) -> Styled:
    return Styled(text, "dim")


def red(text: str) -> Styled:
    return Styled(text, "red")


def green(text: str) -> Styled:
    return Styled(text, "green")


def yellow(text: str) -> Styled:
    return Styled(text, "yellow")


def cyan(text: str) -> Styled:
    return Styled(text, "cyan")


def printable(text: str) -> str:
    """Return the text with control characters made visible."""
    if text.isascii() and text.isprintable():
        return text
    from bethink.core.characters import (
        strip_hidden,  # its patterns take longer to load than most texts to print
    )

    return strip_hidden(text)


class Printer(NamedTuple):
    """Writer for one of the two output streams."""

    stream: TextIO
    terminal: bool = False
    color: bool = False
    columns: int = 0  # of a terminal that is not this process's

    @property
    def width(self) -> int:
        """Number of columns to fill; piped text is never wrapped."""
        import shutil  # piped output is not wrapped

        columns = self.columns or shutil.get_terminal_size().columns
        return max(_MIN_WIDTH, min(_MAX_WIDTH, columns))

    def line(self, *pieces: Piece) -> None:
        """Print one line; line feeds inside a piece are kept."""
        self.stream.write("".join(self._render(piece) for piece in pieces) + "\n")

    def block(self, text: Piece, *, first: Sequence[Piece] = (), indent: int = 0) -> None:
        """Print text of any length, indented, its first line after the label."""
        plain, style = text if isinstance(text, Styled) else (text, "")
        width = self.width - indent if self.terminal else 0
        for number, line in enumerate(wrap_lines(printable(plain), width)):
            before = first if number == 0 and first else (" " * indent if line else "",)
            self.line(*before, Styled(line, style))

    def json(self, value: object) -> None:
        """Print one JSON document: indented at a terminal, on one line otherwise."""
        from bethink.render.wire import dumps  # only for --json

        self.stream.write(dumps(value, indent=2 if self.terminal else None) + "\n")

    def raw(self, text: str) -> None:
        """Print text unchanged, for output that a program reads."""
        self.stream.write(text)

    def _render(self, piece: Piece) -> str:
        if isinstance(piece, str):
            return printable(piece)
        text = printable(piece.text)
        plain = not (self.color and text and piece.style)
        return text if plain else f"\x1b[{_ANSI_CODES[piece.style]}m{text}\x1b[0m"


def display_width(text: str) -> int:
    """Number of terminal columns a text takes."""
    if text.isascii():
        return len(text)
    return sum(_char_width(char) for char in text)


def _char_width(char: str) -> int:
    import unicodedata  # most texts are ASCII

    if unicodedata.combining(char) or unicodedata.category(char) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(char) in "WF" else 1


def wrap_lines(text: str, width: int) -> Iterator[str]:
    """Yield the lines of a text wrapped between words; a width of 0 disables wrapping."""
    for line in text.split("\n"):
        if not width or display_width(line) <= width:
            yield line
        else:
            yield from _wrap_line(line, width)


def _wrap_line(line: str, width: int) -> Iterator[str]:
    current = ""
    for word in line.split():
        together = f"{current} {word}" if current else word
        if display_width(together) <= width:
            current = together
            continue
        if current:
            yield current
        while display_width(word) > width:
            head = truncate_to_width(word, width)
            yield head
            word = word[len(head) :]  # noqa: PLW2901 - the rest of it
        current = word
    if current:
        yield current


def truncate_to_width(text: str, width: int) -> str:
    """Return the longest prefix that fits, at least one character."""
    taken = 0
    for position, char in enumerate(text):
        taken += _char_width(char)
        if taken > width and position:
            return text[:position]
    return text


def one_line(text: str, width: int = 0) -> str:
    """Join a text into one line, cut with an ellipsis where it does not fit."""
    line = " ".join(printable(text).split())
    if not width or display_width(line) <= width:
        return line
    return truncate_to_width(line, max(1, width - 1)).rstrip() + "…"


def format_time(at: datetime | None) -> str:
    """Format a time to the minute, in UTC."""
    return at.astimezone(UTC).strftime("%Y-%m-%d %H:%M") if at else ""


def format_date(at: datetime | None) -> str:
    """Format a date, in UTC."""
    return at.astimezone(UTC).strftime("%Y-%m-%d") if at else ""


_COLUMN_PADDING = 3  # columns that rich puts between two cells
_EDGE_PADDING = 2
_MIN_WIDE_COLUMN = 20


class Column(NamedTuple):
    """A column heading. ``right`` aligns numbers; ``wide`` takes the remaining width."""

    title: str
    right: bool = False
    wide: bool = False


def columns(*titles: str) -> list[Column]:
    """Make columns from titles; one after > is right-aligned, one after * is wide."""
    return [Column(title.lstrip(">*"), title[:1] == ">", title[:1] == "*") for title in titles]


def print_table(out: Printer, heads: Sequence[Column], rows: Iterable[Sequence[Piece]]) -> None:
    """Print rows under their headings; no cell is ever cut.

    At a terminal wide columns wrap; where the terminal is too narrow, a row takes several
    lines.
    """
    drawn = list(rows)
    if out.terminal and _is_wide_enough(out, heads, drawn):
        _print_rich(out, heads, drawn)
    elif out.terminal and any(head.wide for head in heads):
        _print_stacked(out, heads, drawn)
    else:
        _print_aligned(out, heads, drawn)


def _is_wide_enough(out: Printer, heads: Sequence[Column], rows: Sequence[Sequence[Piece]]) -> bool:
    """Whether every narrow column fits and each wide one has room for some words."""
    needed = _EDGE_PADDING
    for place, head in enumerate(heads):
        cells = (head.title, *(_plain_text(row[place]) for row in rows))
        longest = max(display_width(one_line(cell)) for cell in cells)
        needed += _COLUMN_PADDING + (min(longest, _MIN_WIDE_COLUMN) if head.wide else longest)
    return needed <= out.width


def _print_stacked(out: Printer, heads: Sequence[Column], rows: Sequence[Sequence[Piece]]) -> None:
    for row in rows:
        pairs = list(zip(heads, row, strict=True))
        short = [_plain_text(cell) for head, cell in pairs if not head.wide and _plain_text(cell)]
        out.block("  ".join(map(one_line, short)))
        for cell in (cell for head, cell in pairs if head.wide and _plain_text(cell)):
            styled = cell if isinstance(cell, Styled) else Styled(cell, "")
            out.block(Styled(one_line(styled.text), styled.style), first=("  ",), indent=2)


def _plain_text(piece: Piece) -> str:
    return piece.text if isinstance(piece, Styled) else piece


def _print_aligned(out: Printer, heads: Sequence[Column], rows: Sequence[Sequence[Piece]]) -> None:
    table = [[head.title for head in heads]]
    table += [[one_line(_plain_text(cell)) for cell in row] for row in rows]
    widths = [max(display_width(row[place]) for row in table) for place in range(len(heads))]
    for row in table:
        cells = []
        for head, cell, width in zip(heads, row, widths, strict=True):
            gap = " " * (width - display_width(cell))
            cells.append(gap + cell if head.right else cell + gap)
        out.line("  ".join(cells).rstrip())


def _print_rich(out: Printer, heads: Sequence[Column], rows: Sequence[Sequence[Piece]]) -> None:
    from rich import box  # only a terminal needs it
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, header_style="dim", expand=False)
    for head in heads:
        table.add_column(
            head.title,
            justify="right" if head.right else "left",
            no_wrap=not head.wide,
            overflow="fold",
            ratio=1 if head.wide else None,
        )
    for row in rows:
        cells = [
            Text(printable(cell.text), style=cell.style)
            if isinstance(cell, Styled)
            else Text(printable(cell))
            for cell in row
        ]
        table.add_row(*cells)
    rich_console(out).print(table)


# Not used, but without it TERM would decide about the width, and a worker's is another.
_RICH_HEIGHT = 25


def rich_console(out: Printer) -> Console:
    """Build a rich console with our width, and without colour codes when colour is off."""
    from rich.console import Console  # only a terminal needs it

    return Console(
        file=out.stream,
        force_terminal=True,
        color_system="standard" if out.color else None,
        no_color=not out.color,
        width=out.width,
        height=_RICH_HEIGHT,
        highlight=False,
        emoji=False,
        markup=False,
    )
