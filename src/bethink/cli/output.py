"""Output for people: wrapped text and tables, coloured at a terminal.

Everything printed passes through `core.characters.strip_hidden`, so that no escape
sequence inside a memory can drive the terminal.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from functools import partial
from itertools import groupby, zip_longest
from typing import TextIO

from bethink.core.named_tuple import NamedTuple

_ANSI_CODES = {"bold": "1", "dim": "2", "red": "31", "green": "32", "yellow": "33", "cyan": "36"}
_MIN_WIDTH = 40
_PIPED_WIDTH = 80
_MAX_WIDTH = 100  # longer lines are hard to read, however wide the terminal


class Styled(NamedTuple):
    """A piece of text and its style where colour is on."""

    text: str
    style: str


Piece = str | Styled


bold = partial(Styled, style="bold")
dim = partial(Styled, style="dim")
red = partial(Styled, style="red")
green = partial(Styled, style="green")
yellow = partial(Styled, style="yellow")
cyan = partial(Styled, style="cyan")


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
    muted: bool = False  # text is not for those who asked for JSON

    @property
    def width(self) -> int:
        """Number of columns to fill: those of the terminal, 80 when piped."""
        if not self.terminal:
            return _PIPED_WIDTH
        import shutil  # only a terminal needs it

        columns = self.columns or shutil.get_terminal_size().columns
        return max(_MIN_WIDTH, min(_MAX_WIDTH, columns))

    def line(self, *pieces: Piece, indent: int | None = None) -> None:
        """Print a line, wrapped between words where it is too wide; line feeds are kept.

        Lines that follow a wrapped one are indented by ``indent``, else two columns more than
        the first.
        """
        self._print(pieces, self.width, indent)

    def block(
        self, text: Piece, *, first: Sequence[Piece] = (), indent: int = 0, stored: bool = False
    ) -> None:
        """Print text of any length, indented, its first line after the label.

        The ``stored`` text of a memory is wrapped at a terminal only: piped, it is whole lines
        that can be searched and copied.
        """
        plain, style = text if isinstance(text, Styled) else (text, "")
        width = 0 if stored and not self.terminal else self.width
        for number, line in enumerate(printable(plain).split("\n")):
            before = first if number == 0 and first else (" " * indent if line else "",)
            self._print((*before, Styled(line, style)), width, indent)

    def json(self, value: object) -> None:
        """Print one JSON document: indented at a terminal, on one line otherwise."""
        from bethink.render.wire import dumps  # only for --json

        self.stream.write(dumps(value, indent=2 if self.terminal else None) + "\n")

    def raw(self, text: str) -> None:
        """Print text unchanged, for output that a program reads."""
        self.stream.write(text)

    def _print(self, pieces: Iterable[Piece], width: int, indent: int | None) -> None:
        if self.muted:
            return
        shown = [Styled(printable(_plain_text(piece)), _style(piece)) for piece in pieces]
        text = "".join(piece.text for piece in shown)
        if not width or display_width(text) <= width:
            self.stream.write("".join(map(self._render, shown)) + "\n")
            return
        styles = [piece.style for piece in shown for _ in piece.text]
        place = 0
        for line in text.split("\n"):
            own = len(line) - len(line.lstrip(" ")) + 2 if indent is None else indent
            for start, end in _wrapped_spans(line, width, own):
                self.stream.write(" " * own if start else "")
                for style, run in groupby(range(place + start, place + end), styles.__getitem__):
                    self.stream.write(self._render(Styled("".join(text[at] for at in run), style)))
                self.stream.write("\n")
            place += len(line) + 1

    def _render(self, piece: Styled) -> str:
        plain = not (self.color and piece.text and piece.style)
        return piece.text if plain else f"\x1b[{_ANSI_CODES[piece.style]}m{piece.text}\x1b[0m"


def _plain_text(piece: Piece) -> str:
    return piece.text if isinstance(piece, Styled) else piece


def _style(piece: Piece) -> str:
    return piece.style if isinstance(piece, Styled) else ""


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
    """Yield the lines of a text wrapped between words."""
    for line in text.split("\n"):
        for start, end in _wrapped_spans(line, width, 0):
            yield line[start:end]


def _wrapped_spans(line: str, width: int, indent: int) -> Iterator[tuple[int, int]]:
    """Yield where each line of a wrapped line begins and ends; those after the first are indented.

    A path or a URL that fits no line stays whole, and in its line; words of wide characters
    can be broken.
    """
    start = end = 0
    room = width
    for word in re.finditer(r"\S+", line):
        fits = display_width(word[0]) <= width - indent or not _is_unbreakable(word[0])
        if end and fits and display_width(line[start : word.end()]) > room:
            yield start, end
            start, room = word.start(), width - indent
        end = word.end()
        while display_width(line[start:end]) > room and not _is_unbreakable(word[0]):
            cut = start + len(truncate_to_width(line[start:end], room))
            yield start, cut
            start, room = cut, width - indent
    yield start, end


def _is_unbreakable(word: str) -> bool:
    return display_width(word) <= len(word)


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


_GAP = "  "  # between two columns
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
    """Print rows under their headings; wide columns and headings wrap, no cell is ever cut.

    Where the columns do not fit side by side, a row takes several lines; a table of figures
    is printed in parts, which all begin with the names of the rows.
    """
    drawn = list(rows)
    widths = _column_widths(out.width, heads, drawn)
    names = max(1, [*(head.right for head in heads), True].index(True))
    if widths:
        _print_aligned(out, heads, drawn, widths)
    elif any(head.wide for head in heads) or len(heads) < names + 2:
        _print_stacked(out, heads, drawn)
    else:
        half = (names + len(heads) + 1) // 2
        for part in (range(half), (*range(names), *range(half, len(heads)))):
            print_table(
                out, [heads[at] for at in part], [[row[at] for at in part] for row in drawn]
            )


def _column_widths(
    room: int, heads: Sequence[Column], rows: Sequence[Sequence[Piece]]
) -> list[int]:
    """Return the width of each column, or nothing if they do not fit side by side."""
    widths, wanted = [], []
    for place, head in enumerate(heads):
        lines = [line for row in rows for line in _cell_text(head, row[place]).split("\n")]
        longest = max(map(display_width, lines), default=0)
        if head.wide:
            words = (word for line in lines for word in line.split() if _is_unbreakable(word))
            least = min(longest, max((_MIN_WIDE_COLUMN, *map(display_width, words))))
        else:
            least = longest
        widths.append(max(least, *map(display_width, head.title.split()), 0))
        wanted.append(max(longest, display_width(head.title)))
    spare = room - sum(widths) - len(_GAP) * (len(heads) - 1)
    if spare < 0:
        return []
    order = sorted(range(len(heads)), key=lambda at: wanted[at] - widths[at])
    for left, place in zip(range(len(heads), 0, -1), order, strict=True):
        more = min(spare // left, wanted[place] - widths[place])
        widths[place] += more
        spare -= more
    return widths


def _cell_text(head: Column, cell: Piece) -> str:
    text = _plain_text(cell)
    return printable(text).strip() if head.wide else one_line(text)


def _print_stacked(out: Printer, heads: Sequence[Column], rows: Sequence[Sequence[Piece]]) -> None:
    for row in rows:
        pairs = list(zip(heads, row, strict=True))
        short = [_cell_text(head, cell) for head, cell in pairs if not head.wide]
        out.line(_GAP.join(filter(None, short)))
        for cell in (cell for head, cell in pairs if head.wide and _plain_text(cell)):
            out.block(Styled(one_line(_plain_text(cell)), _style(cell)), indent=2)


def _print_aligned(
    out: Printer, heads: Sequence[Column], rows: Sequence[Sequence[Piece]], widths: Sequence[int]
) -> None:
    titles = [
        list(wrap_lines(head.title, width)) for head, width in zip(heads, widths, strict=True)
    ]
    height = max(map(len, titles))
    _print_row(
        out, heads, widths, [dim("\n" * (height - len(one)) + "\n".join(one)) for one in titles]
    )
    if out.terminal:
        out.line(dim("─" * (sum(widths) + len(_GAP) * (len(heads) - 1))))
    for row in rows:
        cells = [
            Styled(_cell_text(head, cell), _style(cell))
            for head, cell in zip(heads, row, strict=True)
        ]
        _print_row(out, heads, widths, cells)


def _print_row(
    out: Printer, heads: Sequence[Column], widths: Sequence[int], row: Sequence[Styled]
) -> None:
    wrapped = [wrap_lines(cell.text, width) for cell, width in zip(row, widths, strict=True)]
    for lines in zip_longest(*wrapped, fillvalue=""):
        pieces: list[Piece] = []
        for head, width, cell, line in zip(heads, widths, row, lines, strict=True):
            blank = " " * (width - display_width(line))
            shown = Styled(line, cell.style)
            pieces += (blank, shown, _GAP) if head.right else (shown, blank + _GAP)
        while pieces and not _plain_text(pieces[-1]).strip():
            pieces.pop()
        out.line(*pieces)
