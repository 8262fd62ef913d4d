"""Tables at a terminal."""

from __future__ import annotations

import io

from bethink.cli.output import Printer
from bethink.eval.tables import ReportTable, print_tables
from rows import each_row

SHEET = ReportTable(
    "Quality",
    ("profile", ">recall at ten of all", ">p", ""),
    (("default", "0.829 ±0.022", "0.002", ""), ("siftcoder", "0.193 ±0.024", "0.041", "noise")),
    "a remark",
)


@each_row("terminal", [True, False])
@each_row("width", [20, 36, 38, 40, 44, 60, 200])
def test_no_figure_is_ever_cut(monkeypatch, width, terminal):
    """However narrow the terminal, every cell is there whole and every row on its own line."""
    monkeypatch.setenv("COLUMNS", str(width))
    stream = io.StringIO()

    print_tables(Printer(stream, terminal=terminal, color=False), [SHEET])

    lines = stream.getvalue().splitlines()
    for row in SHEET.rows:
        assert any(all(cell in line for cell in row) for line in lines), stream.getvalue()
    assert "\x1b" not in stream.getvalue()
    assert lines[-1] == "a remark"


def test_a_wide_heading_is_wrapped_where_that_makes_the_table_fit(monkeypatch):
    """Headings are words and may be broken between them; figures may not."""
    monkeypatch.setenv("COLUMNS", "45")
    stream = io.StringIO()

    print_tables(Printer(stream, terminal=True, color=False), [SHEET])

    assert max(map(len, stream.getvalue().splitlines())) <= 45
