"""Tables have borders at a terminal and none when piped."""

from __future__ import annotations

import io

from recollect.cli.printing import Printer, bold
from recollect.cli.tables import Column, print_table

HEADS = [Column("n", right=True), Column("name"), Column("text", wide=True)]
ROWS = [("1", bold("漢字"), "one\ntwo"), ("10", "b", "[red]three[/red]")]


def drawn(**how) -> str:
    out = io.StringIO()
    print_table(Printer(out, **how), HEADS, ROWS)
    return out.getvalue()


def test_piped_columns_are_aligned_and_bare() -> None:
    """A row is a line; wide characters count double."""
    assert drawn().splitlines() == [
        " n  name  text",
        " 1  漢字  one two",
        "10  b     [red]three[/red]",
    ]


def test_a_terminal_gets_lines_and_no_codes_without_colour() -> None:
    """Rich draws; what looks like markup in a memory is text."""
    table = drawn(terminal=True)

    assert "─" in table
    assert "[red]three[/red]" in table
    assert "\x1b" not in table


def test_colour_comes_as_codes() -> None:
    """Where it is wanted."""
    assert "\x1b[1m" in drawn(terminal=True, color=True)
