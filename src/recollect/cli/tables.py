"""Tables: drawn by rich at a terminal, aligned columns without borders when piped."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from recollect.cli.printing import Ink, Piece, Printer, columns, one_line, shown

if TYPE_CHECKING:
    from rich.console import Console


_BETWEEN = 3  # columns of padding that rich puts between two
_EDGES = 2
_SOME_WORDS = 20


class Column(NamedTuple):
    """A heading. ``right`` sets numbers; ``wide`` takes the room that is left."""

    title: str
    right: bool = False
    wide: bool = False


def print_table(out: Printer, heads: Sequence[Column], rows: Iterable[Sequence[Piece]]) -> None:
    """Rows under their headings. At a terminal wide columns wrap; where that is too narrow
    for them, a row takes several lines. Nothing is ever cut."""
    drawn = list(rows)
    if out.terminal and _is_wide_enough(out, heads, drawn):
        _draw(out, heads, drawn)
    elif out.terminal and any(head.wide for head in heads):
        _stack(out, heads, drawn)
    else:
        _align(out, heads, drawn)


def _is_wide_enough(out: Printer, heads: Sequence[Column], rows: Sequence[Sequence[Piece]]) -> bool:
    """Whether every narrow column fits, and each wide one has room for some words."""
    needed = _EDGES
    for place, head in enumerate(heads):
        cells = (head.title, *(_text(row[place]) for row in rows))
        longest = max(columns(one_line(cell)) for cell in cells)
        needed += _BETWEEN + (min(longest, _SOME_WORDS) if head.wide else longest)
    return needed <= out.width


def _stack(out: Printer, heads: Sequence[Column], rows: Sequence[Sequence[Piece]]) -> None:
    for row in rows:
        pairs = list(zip(heads, row, strict=True))
        short = [_text(cell) for head, cell in pairs if not head.wide and _text(cell)]
        out.block("  ".join(map(one_line, short)))
        for cell in (cell for head, cell in pairs if head.wide and _text(cell)):
            ink = cell if isinstance(cell, Ink) else Ink(cell, "")
            out.block(Ink(one_line(ink.text), ink.style), first=("  ",), indent=2)


def _text(piece: Piece) -> str:
    return piece.text if isinstance(piece, Ink) else piece


def _align(out: Printer, heads: Sequence[Column], rows: Sequence[Sequence[Piece]]) -> None:
    table = [[head.title for head in heads]]
    table += [[one_line(_text(cell)) for cell in row] for row in rows]
    widths = [max(columns(row[place]) for row in table) for place in range(len(heads))]
    for row in table:
        cells = []
        for head, cell, width in zip(heads, row, widths, strict=True):
            gap = " " * (width - columns(cell))
            cells.append(gap + cell if head.right else cell + gap)
        out.line("  ".join(cells).rstrip())


def _draw(out: Printer, heads: Sequence[Column], rows: Sequence[Sequence[Piece]]) -> None:
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
            Text(shown(cell.text), style=cell.style) if isinstance(cell, Ink) else Text(shown(cell))
            for cell in row
        ]
        table.add_row(*cells)
    rich_console(out).print(table)


def rich_console(out: Printer) -> Console:
    """The stream as rich sees it, held to ours: the same width, no codes without colour."""
    from rich.console import Console  # only a terminal needs it

    return Console(
        file=out.stream,
        force_terminal=True,
        color_system="standard" if out.color else None,
        no_color=not out.color,
        width=out.width,
        highlight=False,
        emoji=False,
        markup=False,
    )
