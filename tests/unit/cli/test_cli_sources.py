"""Files to import are recognised, and every line is a draft or a named refusal."""

from __future__ import annotations

import io
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.cli.sources import (
    BATCH,
    Line,
    Source,
    batches,
    drafts,
    guess_format,
    open_source,
    records,
)
from recollect.errors import BadText, RecollectError


def read(content: bytes, form: str, **defaults) -> tuple[list[Line], list[tuple[int, str]]]:
    refused: list[tuple[int, str]] = []

    def refuse(number: int, error: RecollectError) -> None:
        refused.append((number, error.message))

    return list(drafts(Source(io.BytesIO(content)), form, defaults, refuse)), refused


@pytest.mark.parametrize(
    ("content", "form"),
    [
        (b'{"text": "a"}\n', "jsonl"),
        (b'\n\n  "a string"\n', "jsonl"),
        (b'\xef\xbb\xbf{"text": "a"}\n', "jsonl"),
        (b'{"type": "recollect", "version": 1}\n{}', "recollect"),
        (b"{broken\n", "jsonl"),
        (b'"Quoted" is how it begins\n', "text"),
        (b"- a note\n", "text"),
        (b"", "text"),
        (b"\xff\xfe", "text"),
    ],
)
def test_the_first_line_tells_the_format(content: bytes, form: str) -> None:
    """An export, JSON Lines, or plain text."""
    assert guess_format(Source(io.BytesIO(content))) == form


def test_looking_at_the_first_line_does_not_take_it_away() -> None:
    """And lines keep their numbers."""
    source = Source(io.BytesIO(b"\n\na\nb"))

    source.first_line()

    assert list(source.lines()) == [(1, b"\n"), (2, b"\n"), (3, b"a\n"), (4, b"b")]
    assert source.read == 5


def test_lines_where_no_line_is_blank() -> None:
    """A list of notes is a memory a line."""
    taken, _ = read(b"one\ntwo\r\nthree\n\n", "text")

    assert taken == [Line(1, {"text": "one"}), Line(2, {"text": "two"}), Line(3, {"text": "three"})]


def test_paragraphs_where_lines_are_blank() -> None:
    """Prose is a memory a paragraph."""
    taken, _ = read(b"\none\nmore\n\n \ntwo\n", "text")

    assert taken == [Line(2, {"text": "one\nmore"}), Line(6, {"text": "two"})]


def test_json_lines_over_defaults() -> None:
    """What a line says counts before what the options say."""
    taken, refused = read(
        b'{"text": "a", "kind": "fact"}\n\n"b"\n', "jsonl", kind="note", source="x"
    )

    assert taken == [
        Line(1, {"text": "a", "kind": "fact", "source": "x"}),
        Line(3, {"text": "b", "kind": "note", "source": "x"}),
    ]
    assert refused == []


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b"{", "not JSON"),
        (b"[1]", "JSON object"),
        (b"7", "JSON object"),
        (b'{"a": NaN}', "NaN"),
        (b'{"a": -Infinity}', "Infinity"),
        (b"[" * 100_000, "nested too deeply"),
        (b'{"a": ' + b"9" * 5000 + b"}", "not JSON"),
        (b'"\xff"', "not UTF-8: byte 0xff"),
    ],
)
def test_a_bad_line_is_refused_and_the_rest_is_taken(line: bytes, reason: str) -> None:
    """By its number and what is wrong with it."""
    taken, [(number, message)] = read(b'"a"\n' + line + b'\n"b"\n', "jsonl")

    assert [entry.draft["text"] for entry in taken] == ["a", "b"]
    assert number == 2
    assert reason in message


def test_text_that_is_not_utf8_is_refused() -> None:
    """Only the line that is not."""
    taken, refused = read(b"one\n\xff\ntwo\n", "text")

    assert [entry.number for entry in taken] == [1, 3]
    assert [number for number, _ in refused] == [2]


@given(st.binary(max_size=200), st.sampled_from(["jsonl", "text"]))
def test_any_bytes_are_taken_or_refused(content: bytes, form: str) -> None:
    """Nothing that can be in a file raises."""
    taken, refused = read(content, form)

    assert len({entry.number for entry in taken} & {number for number, _ in refused}) == 0


def test_batches_hold_everything_in_order() -> None:
    """And are never empty."""
    lines = [Line(n, {}) for n in range(BATCH * 2 + 1)]

    cut = list(batches(lines))

    assert [len(batch) for batch in cut] == [BATCH, BATCH, 1]
    assert [line for batch in cut for line in batch] == lines
    assert list(batches([])) == []


def test_records_of_an_export() -> None:
    """A line that is none ends the import."""
    content = [{"type": "recollect"}, {"type": "item"}]
    good = "\n".join(map(json.dumps, content)).encode()

    assert list(records(Source(io.BytesIO(good)))) == content
    with pytest.raises(BadText, match="line 2 is not a record"):
        list(records(Source(io.BytesIO(b"{}\n[]\n"))))


def test_a_file_knows_its_size(tmp_path) -> None:
    """So that progress can be told."""
    path = tmp_path / "notes.txt"
    path.write_bytes(b"one\ntwo\n")

    with open_source(str(path)) as source:
        assert (source.name, source.size) == ("notes.txt", 8)
        assert len(list(source.lines())) == 2
        assert source.read == 8
