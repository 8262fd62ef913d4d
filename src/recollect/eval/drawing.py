"""Prints a report's tables: drawn where they fit the terminal, aligned text elsewhere.

A figure is never cut: its last digit may be the one that matters.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from typing import TYPE_CHECKING

from recollect.cli.printing import Printer, bold, columns, dim
from recollect.cli.tables import Column, print_table
from recollect.eval.sheets import Sheet

if TYPE_CHECKING:
    from rich.table import Table

_GAP = 2


def print_sheets(out: Printer, sheets: Iterable[Sheet]) -> None:
    """Each table under its title, with its remark."""
    for sheet in sheets:
        out.line()
        out.line(bold(sheet.title))
        room = shutil.get_terminal_size().columns
        widths = _widths(sheet)
        if out.terminal and sum(widths) + _GAP * len(widths) <= room:
            _draw(out, sheet, widths, room)
        else:
            _align(out, sheet)
        if sheet.note:
            out.line(dim(sheet.note))


def _widths(sheet: Sheet) -> list[int]:
    """What each column needs at least: its longest cell, or the longest word of its heading."""
    needed = []
    for place, head in enumerate(sheet.heads):
        words = head.removeprefix(">").split()
        cells = [row[place] for row in sheet.rows]
        needed.append(max((columns(text) for text in (*words, *cells)), default=0))
    return needed


def _align(out: Printer, sheet: Sheet) -> None:
    heads = [Column(head.removeprefix(">"), right=head.startswith(">")) for head in sheet.heads]
    print_table(Printer(out.stream, terminal=False, color=out.color), heads, sheet.rows)


def _draw(out: Printer, sheet: Sheet, widths: list[int], room: int) -> None:
    from rich.console import Console  # only a terminal needs it

    console = Console(
        file=out.stream,
        force_terminal=True,
        color_system="standard" if out.color else None,
        no_color=not out.color,
        width=room,
        highlight=False,
        emoji=False,
        markup=False,
    )
    console.print(_table(sheet, widths))


def _table(sheet: Sheet, widths: list[int]) -> Table:
    from rich import box  # only a terminal needs it
    from rich.table import Table
    from rich.text import Text

    table = Table(
        box=box.SIMPLE_HEAD,
        show_edge=False,
        pad_edge=False,
        padding=(0, _GAP - 1, 0, 0),  # the box itself takes one column between two
        header_style="dim",
    )
    for head, width in zip(sheet.heads, widths, strict=True):
        table.add_column(
            Text(head.removeprefix(">")),
            justify="right" if head.startswith(">") else "left",
            vertical="bottom",
            width=width,
        )
    for row in sheet.rows:
        table.add_row(*(Text(cell, no_wrap=True) for cell in row))
    return table
