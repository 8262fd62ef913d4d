"""Tables have borders at a terminal and none when piped."""

from __future__ import annotations

import io

import pytest

from bethink.cli.output import Column, Printer, bold, print_table

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


def test_the_kind_of_terminal_does_not_change_a_table(monkeypatch: pytest.MonkeyPatch) -> None:
    """A worker draws for terminals that it does not know."""
    tables = []
    for kind in ("dumb", "xterm-256color"):
        monkeypatch.setenv("TERM", kind)
        out = io.StringIO()
        print_table(Printer(out, terminal=True, columns=90), HEADS, [("1", "a", "words " * 40)])
        tables.append(out.getvalue())

    assert tables[0] == tables[1]


def test_a_narrow_terminal_loses_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where columns do not fit beside each other, a row takes several lines."""
    monkeypatch.setenv("COLUMNS", "44")
    heads = [Column("id"), Column("when"), Column("kind"), Column("text", wide=True)]
    said = "the ferry lands at pier seven every day but Sunday"
    out = io.StringIO()

    print_table(
        Printer(out, terminal=True), heads, [("0123456789abcdef", "2026-11-12 09:05", "", said)]
    )

    lines = out.getvalue().splitlines()
    assert lines[0] == "0123456789abcdef  2026-11-12 09:05"
    assert " ".join(" ".join(lines[1:]).split()) == said
    assert all(len(line) <= 44 for line in lines)


def test_a_narrow_terminal_cuts_no_figures(monkeypatch: pytest.MonkeyPatch) -> None:
    """A table without a wide column is aligned, and left to the terminal to wrap."""
    monkeypatch.setenv("COLUMNS", "40")
    heads = [Column(name * 12) for name in "abcd"]
    out = io.StringIO()

    print_table(Printer(out, terminal=True), heads, [("1" * 12, "2", "3", "4" * 12)])

    assert "4" * 12 in out.getvalue()
    assert "─" not in out.getvalue()
