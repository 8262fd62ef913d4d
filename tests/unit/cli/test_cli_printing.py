"""Text for people is safe for terminals, fits them, and is plain when piped."""

from __future__ import annotations

import io
from datetime import UTC, datetime, timedelta, timezone

from hypothesis import given
from hypothesis import strategies as st

from bethink.cli.output import (
    Printer,
    bold,
    display_width,
    format_date,
    format_time,
    one_line,
    red,
    truncate_to_width,
    wrap_lines,
)
from bethink.core import plural


def printed(*pieces, **how) -> str:
    out = io.StringIO()
    Printer(out, **how).line(*pieces)
    return out.getvalue()


def test_colour_only_where_it_is_wanted() -> None:
    """Styles become escape codes on a coloured stream and vanish on any other."""
    assert printed(bold("a"), " b", color=True) == "\x1b[1ma\x1b[0m b\n"
    assert printed(bold("a"), " b") == "a b\n"


@given(st.text())
def test_no_text_drives_the_terminal(text: str) -> None:
    """Whatever a memory holds, no control character but line feed and tab is printed."""
    for shown in (printed(text), printed(red(text)), one_line(text)):
        assert not {char for char in shown if (char < " " and char not in "\n\t") or char == "\x7f"}


def test_escape_sequences_are_taken_out() -> None:
    """A memory cannot change the title, clear the screen or colour what follows."""
    assert printed("a\x1b]0;title\x07b\x1b[2Jc\x9b31md") == "abcd\n"


@given(st.text(alphabet="ab 漢字é\n", max_size=80), st.integers(4, 30))
def test_wrapped_lines_fit_and_lose_nothing(text: str, room: int) -> None:
    """No line is wider than the room but for one long word, and only white space is lost."""
    lines = list(wrap_lines(text, room))

    assert all(
        display_width(line) <= room or line.strip().split() == [line.strip()] for line in lines
    )
    assert "".join("".join(lines).split()) == "".join(text.split())


def test_a_wrapped_line_keeps_its_styles_and_its_indentation() -> None:
    """Lines that follow stand two columns further right; a path is never broken."""
    path = "/" + "x" * 90
    lines = printed("  ", bold("head "), "word " * 20, red(path), color=True).splitlines()

    assert lines[0].startswith("  \x1b[1mhead")
    assert all(line.startswith("    ") for line in lines[1:])
    assert lines[-1].endswith(f"\x1b[31m{path}\x1b[0m")
    assert max(map(len, lines[:-1])) <= 80 + len("\x1b[1m\x1b[0m")


def test_the_text_of_a_memory_is_not_wrapped_when_piped() -> None:
    """So that it can be searched and copied; at a terminal it is."""
    for terminal, count in ((False, 1), (True, 3)):
        out = io.StringIO()
        Printer(out, terminal, columns=80).block("word " * 40, stored=True)
        assert len(out.getvalue().splitlines()) == count


@given(st.text(max_size=60), st.integers(1, 40))
def test_one_line_is_one_line_that_fits(text: str, room: int) -> None:
    """Cut with an ellipsis where it has to be."""
    line = one_line(text, room)

    assert "\n" not in line
    assert display_width(line) <= max(room, 3)


def test_wide_characters_take_two_columns() -> None:
    """And marks that sit on others take none."""
    assert display_width("漢字") == 4
    assert display_width("e\u0301") == 1
    assert truncate_to_width("漢字", 3) == "漢"
    assert truncate_to_width("漢字", 1) == "漢"


def test_a_block_is_indented_under_its_label() -> None:
    """The first line stands after the label, blank lines stay blank."""
    out = io.StringIO()

    Printer(out).block("one\n\ntwo", first=("1. ",), indent=3)

    assert out.getvalue() == "1. one\n\n   two\n"


def test_times_are_in_utc() -> None:
    """The clock that is printed is the clock that is read."""
    at = datetime(2026, 3, 1, 1, 30, tzinfo=timezone(timedelta(hours=2)))

    assert format_time(at) == "2026-02-28 23:30"
    assert format_date(at) == "2026-02-28"
    assert format_time(None) == format_date(None) == ""
    assert format_time(datetime(2026, 3, 1, tzinfo=UTC)) == "2026-03-01 00:00"


def test_counts_read_well() -> None:
    """One memory, two memories."""
    assert [plural(n, "memory") for n in (0, 1, 2000)] == [
        "0 memories",
        "1 memory",
        "2,000 memories",
    ]
    assert plural(2, "token") == "2 tokens"


def test_json_is_one_line_when_piped() -> None:
    """And laid out where a person looks at it."""
    piped, seen = io.StringIO(), io.StringIO()

    Printer(piped).json({"a": "\x1b[1mé"})
    Printer(seen, terminal=True).json({"a": 1})

    assert piped.getvalue() == '{"a": "\\u001b[1mé"}\n'
    assert seen.getvalue() == '{\n  "a": 1\n}\n'
