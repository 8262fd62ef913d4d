"""Notes in parts: their heads, their sections, what they link to."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.sources.front_matter import note_of
from recollect.sources.markdown_blocks import date_in, hashtags, linked, sections
from recollect.sources.pieces import pieces_of


def test_a_head_is_read() -> None:
    """Texts, lists of both kinds, quotes and comments; what is deeper is passed over."""
    note = note_of(
        "---\ntitle: 'A: B'\nTags: [one, \"two\"]\naliases:\n  - x\n  - y # why\nempty:\n"
        "deep:\n  inner: 1\ncount: 3 # three\n---\nBody\n"
    )

    assert note.head == {
        "title": "A: B", "tags": ["one", "two"], "aliases": ["x", "y"], "count": "3",
    }  # fmt: skip
    assert (note.body, note.above) == ("Body\n", 11)


@pytest.mark.parametrize(
    "text", ["no head", "---\nnever: closed\n", "--- \n", "", "----\na: 1\n---\n"]
)
def test_what_is_no_head_is_body(text: str) -> None:
    """Nothing is lost of it."""
    assert note_of(text) == ({}, text, 0)


@given(text=st.text(alphabet="-:#[]'\" \nab", max_size=80))
def test_any_text_is_a_note(text: str) -> None:
    """Head and body together are the text."""
    note = note_of(text)

    assert text.endswith(note.body)
    list(sections(note.body))


def test_sections_know_their_headings_and_lines() -> None:
    """Code has no headings, comments say nothing, and equal headings are numbered."""
    body = (
        "before\n\n# One #\ntext one\n## Two\n\n<!-- a\nnote -->text two\n```\n# no heading\n```\n"
        "# One\nagain\n### Deep\n"
    )

    found = list(sections(body, above=10))

    assert [(one.headings, one.text.split("\n")[0], one.line, one.number) for one in found] == [
        ((), "before", 11, 1),
        (("One",), "text one", 14, 1),
        (("One", "Two"), "text two", 18, 1),
        (("One",), "again", 23, 2),
    ]
    assert "# no heading" in found[2].text


def test_links_and_tags() -> None:
    """Of both kinds, to notes and not to the world; tags are no headings and no colours."""
    text = (
        "See [[A Note#part|words]], ![[pic.png]], [x](sub/b%20c.md#there), [y](https://e.org/a.md) "
        "#tag #a/b c#3 &#39; #123"
    )

    assert linked(text) == ("A Note", "pic.png", "sub/b c.md")
    assert hashtags(text) == ("tag", "a/b")


@pytest.mark.parametrize(
    ("name", "day"),
    [("2026-03-14", 14), ("20260314 standup", 14), ("notes_2026_03_15", 15), ("2026-13-01", None),
     ("v2026", None), ("1234567890", None)],
)  # fmt: skip
def test_dates_in_names(name: str, day: int | None) -> None:
    """Where a name tells a day that there is."""
    assert date_in(name) == (datetime(2026, 3, day, tzinfo=UTC) if day else None)


@given(text=st.text(alphabet="ab \n.é𝄞", max_size=300), limit=st.integers(8, 40))
def test_pieces_hold_all_words_within_the_limit(text: str, limit: int) -> None:
    """Cut between paragraphs, lines or words where there are any, and anywhere else."""
    pieces = pieces_of(text, limit)

    assert all(0 < len(piece.encode()) <= limit for piece in pieces)
    assert "".join("".join(pieces).split()) == "".join(text.split())
