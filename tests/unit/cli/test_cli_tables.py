"""Tables fit the width: wide columns wrap, and no cell is cut."""

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
    """Wide characters count double; a cell keeps its lines."""
    assert drawn().splitlines() == [
        " n  name  text",
        " 1  漢字  one",
        "          two",
        "10  b     [red]three[/red]",
    ]


def test_a_terminal_gets_lines_and_no_codes_without_colour() -> None:
    """What looks like markup in a memory is text."""
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


def test_a_table_of_figures_is_printed_in_parts_that_fit() -> None:
    """Each part begins with the names of the rows; no figure is cut."""
    heads = [Column("who"), *(Column(name * 22, right=True) for name in "abcd")]
    out = io.StringIO()

    print_table(Printer(out), heads, [("anna", *(name * 12 for name in "1234"))])

    lines = out.getvalue().splitlines()
    assert [line.split()[0] for line in lines] == ["who", "anna"] * 2
    assert all(len(line) <= 80 for line in lines)
    assert all(name * 12 in out.getvalue() for name in "1234")


def test_columns_share_the_width_and_a_path_is_whole() -> None:
    """Wide columns wrap beside narrow ones; a word that fits no column is under its row."""
    heads = [Column("id"), Column("text", wide=True), Column("seen")]
    for word, height in (("word", 7), ("/" + "p" * 70, 6)):
        out = io.StringIO()
        print_table(Printer(out), heads, [("a" * 16, f"{word} " + "word " * 50, "2026-01-01")])
        lines = out.getvalue().splitlines()
        assert all(len(line) <= 80 for line in lines)
        assert word in out.getvalue()
        assert len(lines) <= height
