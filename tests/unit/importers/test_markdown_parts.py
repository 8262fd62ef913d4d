"""Notes in parts: their heads, their sections, what they link to."""

from __future__ import annotations

from datetime import UTC, datetime

from hypothesis import given
from hypothesis import strategies as st

from bethink.importers.entry import split_text
from bethink.importers.markdown import date_in, hashtags, linked_notes, parse_note, split_sections
from rows import each_row


def test_a_head_is_read() -> None:
    """Texts, lists of both kinds, quotes and comments; what is deeper is passed over."""
    note = parse_note(
        "---\ntitle: 'A: B'\nTags: [one, \"two\"]\naliases:\n  - x\n  - y # why\nempty:\n"
        "deep:\n  inner: 1\ncount: 3 # three\n---\nBody\n"
    )

    assert note.head == {
        "title": "A: B", "tags": ["one", "two"], "aliases": ["x", "y"], "count": "3",
    }  # fmt: skip
    assert (note.body, note.lines_before) == ("Body\n", 11)


@each_row("text", ["no head", "---\nnever: closed\n", "--- \n", "", "----\na: 1\n---\n"])
def test_what_is_no_head_is_body(text: str) -> None:
    """Nothing is lost of it."""
    assert parse_note(text) == ({}, text, 0)


@given(text=st.text(alphabet="-:#[]'\" \nab", max_size=80))
def test_any_text_is_a_note(text: str) -> None:
    """Head and body together are the text."""
    note = parse_note(text)

    assert text.endswith(note.body)
    list(split_sections(note.body))


def test_a_comment_in_code_is_code() -> None:
    """What looks like a comment inside code stays; code inside a comment does not."""
    body = (
        "Write `<!-- more -->` there.\n\n```html\n<!-- head -->\n<p>\n```\n<!-- gone `x -->\n"
        "kept ` <!-- gone -->\n\n<!--\n```\ngone\n```\n-->end\n~~~\n<!-- open\n"
    )

    (found,) = split_sections(body)

    assert "`<!-- more -->`" in found.text
    assert "<!-- head -->\n<p>" in found.text
    assert "kept `" in found.text
    assert "end\n~~~\n<!-- open" in found.text
    assert "gone" not in found.text


def test_code_has_no_tags_and_no_links() -> None:
    """A colour, an include and a link in code are none."""
    text = "A #tag and [[Note]].\n```c\n#include <x>\n[[code]]\n```\nThe `#fff` of `[a](b.md)`."

    assert hashtags(text) == ("tag",)
    assert linked_notes(text) == ("Note",)


@given(text=st.text(alphabet="`~<!->a #[]\n", max_size=60))
def test_lines_stay_where_they_are(text: str) -> None:
    """However code and comments are nested, what is left stands on its own line."""
    for section in split_sections(f"x{text}"):
        first = section.text.split("\n")[0]
        assert first.strip() in f"x{text}".split("\n")[section.line - 1] or "-->" in text


def test_sections_know_their_headings_and_lines() -> None:
    """Code has no headings, comments say nothing, and equal headings are numbered."""
    body = (
        "before\n\n# One #\ntext one\n## Two\n\n<!-- a\nnote -->text two\n```\n# no heading\n```\n"
        "# One\nagain\n### Deep\n"
    )

    found = list(split_sections(body, lines_before=10))

    assert [(one.headings, one.text.split("\n")[0], one.line, one.number) for one in found] == [
        ((), "before", 11, 1),
        (("One",), "text one", 14, 1),
        (("One", "Two"), "text two", 18, 1),
        (("One",), "again", 23, 2),
    ]
    assert "# no heading" in found[2].text


def test_headings_are_those_of_commonmark() -> None:
    """Signs after a space close a heading; code within a list, and a lone sign, are none."""
    body = "# C#\none\n\n- list:\n\n    ```sh\n    # remark #no\n    ```\n\n#\n## Two ##\ntwo\n"

    found = list(split_sections(body))

    assert [one.headings for one in found] == [("C#",), ("C#", "Two")]
    assert hashtags(found[0].text) == ()


def test_links_and_tags() -> None:
    """Of both kinds, to notes and not to the world; tags are no headings and no colours."""
    text = (
        "See [[A Note#part|words]], ![[pic.png]], [x](sub/b%20c.md#there), [y](https://e.org/a.md) "
        "#tag #a/b c#3 &#39; #123"
    )

    assert linked_notes(text) == ("A Note", "pic.png", "sub/b c.md")
    assert hashtags(text) == ("tag", "a/b")


@each_row(
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
    pieces = split_text(text, limit)

    assert all(0 < len(piece.encode()) <= limit for piece in pieces)
    assert "".join("".join(pieces).split()) == "".join(text.split())


def test_code_at_the_beginning_of_a_line_is_no_block() -> None:
    """Where it ends on that line, everything after it is read as ever."""
    text = "```make``` builds it, see [[Building]] #make\n\n# Head\n\nand [[Other]]"

    assert linked_notes(text) == ("Building", "Other")
    assert hashtags(text) == ("make",)
    assert [part.headings for part in split_sections(text)] == [(), ("Head",)]
