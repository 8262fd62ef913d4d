"""Reading drafts from files: every line a draft or a refusal with its number."""

from __future__ import annotations

import gzip
import io
import json
import time
import zlib
from contextlib import suppress
from datetime import UTC, datetime

import pytest

from bethink.core.json_values import parse_strict_json
from bethink.errors import BadText, Refused, TooLarge
from bethink.ingest.files import MAX_LINE_BYTES, BoundedReader, read_drafts
from bethink.model import Draft
from naughty import NAUGHTY
from rows import each_row


def read(content: str | bytes, form="jsonl", **defaults):
    raw = content.encode() if isinstance(content, str) else content
    return list(read_drafts(io.BytesIO(raw), form, defaults))


def test_a_json_line_is_a_draft():
    """Its fields are those of a draft; what a draft has not goes into the metadata."""
    line = json.dumps(
        {
            "text": "We chose Redis",
            "kind": "decision",
            "tags": ["db"],
            "occurred_at": "2026-01-01T00:00:00Z",
            "metadata": {"a": 1},
            "score": 0.5,
            "layer": None,
        }
    )

    ((number, draft),) = read(line)

    assert number == 1
    assert (draft.text, draft.kind, draft.tags, draft.layer) == (
        "We chose Redis",
        "decision",
        ("db",),
        None,
    )
    assert draft.metadata == {"a": 1, "score": 0.5}


@each_row("name", ["text", "content", "memory", "body"])
def test_the_text_goes_by_several_names(name):
    """As other memory systems call it."""
    ((_, draft),) = read(json.dumps({name: "hello"}))

    assert draft == Draft("hello", metadata={})


def test_where_there_is_a_text_the_other_names_are_metadata():
    """Nothing is lost."""
    ((_, draft),) = read('{"text": "a", "content": "b"}')

    assert (draft.text, draft.metadata) == ("a", {"content": "b"})


@each_row(
    ("stamp", "moment"),
    [
        (1683554160, datetime(2023, 5, 8, 13, 56, tzinfo=UTC)),
        (1683554160.5, datetime(2023, 5, 8, 13, 56, 0, 500_000, tzinfo=UTC)),
        (1683554160000, datetime(2023, 5, 8, 13, 56, tzinfo=UTC)),
        (1683554160000000, datetime(2023, 5, 8, 13, 56, tzinfo=UTC)),
        (0, datetime(1970, 1, 1, tzinfo=UTC)),
        (-1, datetime(1969, 12, 31, 23, 59, 59, tzinfo=UTC)),
        ("2023-05-08", "2023-05-08"),
    ],
)
def test_times_come_as_iso_or_counted(stamp, moment):
    """Seconds, thousandths or millionths since 1970."""
    for name in ("occurred_at", "timestamp", "created_at"):
        ((_, draft),) = read(json.dumps({"text": "a", name: stamp}))
        assert draft.occurred_at == moment


def test_defaults_fill_what_a_line_leaves_out():
    """And no more."""
    lines = read('{"text": "a"}\n{"text": "b", "topic": "own"}', topic="ops", source="file.jsonl")

    assert [(draft.topic, draft.source) for _, draft in lines] == [
        ("ops", "file.jsonl"),
        ("own", "file.jsonl"),
    ]


def test_a_json_string_is_a_text():
    """The shortest form."""
    assert read('"hello"') == [(1, Draft("hello"))]


@each_row(
    ("line", "word"),
    [
        ("{", "not JSON"),
        ("[1]", "JSON object"),
        ("7", "JSON object"),
        ("{}", "no text"),
        ('{"text": null}', "no text"),
        ('{"text": "a", "metadata": 7}', "metadata"),
        ('{"text": "a", "metadata": {"x": NaN}}', "NaN"),
        ('{"text": "a", "metadata": {"x": -Infinity}}', "Infinity"),
        ('{"text": "a", "metadata": {"x": 1e999}}', "1e999"),
        ('{"text": "a", "text": "b"}', "twice"),
        ('{"text": "a", "x": ' + "9" * 5_000 + "}", "5,000 digits"),
        ('{"text": "a", "x": ' + "[" * 100_000 + "]" * 100_000 + "}", "levels deep"),
        ('{"text": "a", "occurred_at": 1e30}', "occurred_at"),
        ('{"text": "a", "occurred_at": true}', "occurred_at"),
        (b'{"text": "\xff"}', "not UTF-8 at byte 11"),
        (b'{"text": "' + b"x" * MAX_LINE_BYTES + b'"}', "the line"),
    ],
)
def test_a_bad_line_is_refused_with_its_number(line, word):
    """The lines around it are read."""
    raw = line.encode() if isinstance(line, str) else line

    lines = read(b'"before"\n\n' + raw + b'\n"after"\n')

    assert [number for number, _ in lines] == [1, 3, 4]
    assert isinstance(lines[1].found, Refused)
    assert word in lines[1].found.message
    assert lines[2].found == Draft("after")


def test_paragraphs_are_memories():
    """Parted by blank lines; each has the number of its first line."""
    lines = read("first one\nsecond line\n\n\n  \nanother\n", "text")

    assert lines == [(1, Draft("first one\nsecond line")), (6, Draft("another"))]


def test_lines_are_memories_where_asked_for():
    """Blank ones are skipped."""
    assert read("a\r\n\n b \n", "lines") == [(1, Draft("a")), (3, Draft("b"))]


def test_a_byte_order_mark_is_no_text():
    """Editors on Windows write it."""
    assert read(b"\xef\xbb\xbfhello", "lines") == [(1, Draft("hello"))]


def test_a_paragraph_that_is_too_long_is_refused_by_its_first_line():
    """Without being held in memory."""
    lines = read(b"short\n\n" + b"x" * 80 * 1024 + b"\n" + b"y" * 80 * 1024 + b"\n\nafter", "text")

    assert [number for number, _ in lines] == [1, 3, 6]
    assert isinstance(lines[1].found, TooLarge)


def test_a_file_is_read_by_its_path(tmp_path):
    """Packed or not."""
    plain, packed = tmp_path / "a.txt", tmp_path / "a.txt.gz"
    plain.write_bytes(b"one\ntwo\n")
    packed.write_bytes(gzip.compress(b"one\n") + gzip.compress(b"two\n"))

    assert list(read_drafts(plain, "lines")) == list(read_drafts(packed, "lines"))


def test_a_small_archive_cannot_fill_the_memory():
    """A hundred times its size is the limit."""
    bomb = gzip.compress((b"x" * 60_000 + b"\n") * 800)

    with pytest.raises(TooLarge) as caught:
        read(bomb, "lines")

    assert caught.value.limit == 100


def test_a_file_has_a_limit_too():
    """Whatever its form."""
    for content in (b"x" * 101, gzip.compress(b"x" * 101)):
        with pytest.raises(TooLarge):
            BoundedReader(io.BytesIO(content), max_bytes=100).read(200)


def test_a_damaged_archive_is_said_to_be_damaged():
    """Wherever the damage is, it is named or the lines that could be read are given."""
    whole = gzip.compress(b"some text\n" * 100)
    for cut in range(2, len(whole), 3):
        damaged = bytearray(whole)
        damaged[cut] ^= 0xFF
        with suppress(BadText):
            read(bytes(damaged), "lines")

    with pytest.raises(BadText, match="damaged"):
        read(whole[:10] + b"\xff" * 20, "lines")


def test_reading_in_pieces_gives_the_whole():
    """Of any size."""
    content = bytes(range(256)) * 2_000
    for packed in (content, zlib.compress(content, wbits=31)):
        stream = BoundedReader(io.BytesIO(packed))
        assert b"".join(iter(lambda s=stream: s.read(777), b"")) == content


@each_row("text", NAUGHTY, ids=range(len(NAUGHTY)))
def test_any_text_survives_a_json_line(text):
    """It comes back as it was, or is refused."""
    ((_, found),) = read(json.dumps({"text": text}))

    assert found == Draft(text, metadata={})


@each_row("text", NAUGHTY, ids=range(len(NAUGHTY)))
def test_any_line_can_be_read(text):
    """Each becomes a draft, a refusal or nothing."""
    for form in ("jsonl", "text", "lines"):
        for _, found in read(text.encode(errors="surrogatepass"), form):
            assert isinstance(found, Draft | Refused)


@each_row("seed", ["[", '{"a":', '"', '\\"', "[[]]", '"\\', "9", "{}"])
def test_hostile_json_is_answered_in_time(seed):
    """Depth, quotes and digits cost no more than their length."""
    text = (seed * (1_000_000 // len(seed)))[:1_000_000]
    began = time.process_time()
    with pytest.raises(Refused):
        parse_strict_json(text)

    assert time.process_time() - began < 20


def test_json_by_the_letter():
    """What is good JSON is read as such."""
    assert parse_strict_json('{"a": [1, -2.5, "x", null, true, {"b": "]["}]}') == {
        "a": [1, -2.5, "x", None, True, {"b": "]["}]
    }
    assert parse_strict_json('"' + "[" * 1_000 + '"') == "[" * 1_000
    assert parse_strict_json("[" * 64 + "]" * 64)
