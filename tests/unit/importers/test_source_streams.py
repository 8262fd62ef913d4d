"""Files to import are opened, recognised by how they begin, and read to the end."""

from __future__ import annotations

import gzip
import json
import os
import threading
import time
from pathlib import Path
from unittest.mock import Mock

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bethink import Memory
from bethink.errors import BadText, Refused
from bethink.importers import streams
from bethink.importers.streams import guess_format, open_stream, read_records
from importing import import_from
from rows import each_row


def guessed(tmp_path: Path, content: bytes) -> str:
    path = tmp_path / "file"
    path.write_bytes(content)
    with open_stream(str(path)) as source:
        form = guess_format(source.reader.peek(1 << 16))
        assert source.reader.read() == (
            gzip.decompress(content) if content[:2] == b"\x1f\x8b" else content
        )
        return form


@each_row(
    ("content", "form"),
    [
        (b'{"text": "a"}\n', "jsonl"),
        (b'\n\n  "a string"\n', "jsonl"),
        (b'\xef\xbb\xbf{"text": "a"}\n', "jsonl"),
        (b'{"type": "bethink", "version": 1}\n{}', "bethink"),
        (gzip.compress(b'{"type": "bethink", "version": 1}\n{}', mtime=0), "bethink"),
        (b"{broken\n", "jsonl"),
        (b'"Quoted" is how it begins\n', "lines"),
        (b"- a note\n- another\n\n", "lines"),
        (b"a paragraph\nof two lines\n \t\r\nand another\n", "text"),
        (b"", "lines"),
        (b"\xff\xfe", "lines"),
    ],
)
def test_the_beginning_tells_the_format(tmp_path: Path, content: bytes, form: str) -> None:
    """An export, JSON Lines, paragraphs or lines; looking takes nothing away."""
    assert guessed(tmp_path, content) == form


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(content=st.binary(max_size=200).filter(lambda content: content[:2] != b"\x1f\x8b"))
def test_any_bytes_have_a_format(tmp_path: Path, content: bytes) -> None:
    """Nothing that can be in a file raises."""
    assert guessed(tmp_path, content) in ("jsonl", "text", "lines", "bethink")


def test_a_file_knows_its_name_and_how_far_it_is_read(tmp_path: Path) -> None:
    """So that memories can name their source and progress can be told."""
    path = tmp_path / "notes.txt"
    path.write_bytes(b"one\ntwo\n")

    with open_stream(str(path)) as source:
        source.reader.read()

        assert (source.name, source.size, source.done) == ("notes.txt", 8, 8)


@pytest.mark.parametrize("name", ["a\x00b", "\ud800"])
def test_names_no_file_can_have_are_refused(name: str) -> None:
    """Before the system is asked."""
    with pytest.raises(Refused, match="must not contain"), open_stream(name):
        pass


def test_records_of_an_export(tmp_path: Path) -> None:
    """A line that is none ends the import, by its number."""
    content = [{"type": "bethink"}, {"type": "item"}]
    good, bad, worse = (tmp_path / name for name in ("good", "bad", "worse"))
    good.write_text("\n".join(map(json.dumps, content)))
    bad.write_bytes(b"{}\n[]\n")
    worse.write_bytes(b'{}\n{"a": "\xff"}\n')

    with open_stream(str(good)) as source:
        assert list(read_records(source)) == content
    with open_stream(str(bad)) as source, pytest.raises(BadText, match="line 2 is not a record"):
        list(read_records(source))
    with open_stream(str(worse)) as source, pytest.raises(BadText, match="line 2 is not UTF-8"):
        list(read_records(source))


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs pipes")
def test_a_pipe_without_a_writer_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody waits for ever for a program that was never started."""
    monkeypatch.setattr(streams, "_WRITER_TIMEOUT_S", 0.05)
    os.mkfifo(tmp_path / "pipe")

    with pytest.raises(Refused, match="no program writes to"), open_stream(str(tmp_path / "pipe")):
        pass


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs pipes")
def test_a_pipe_that_cannot_be_opened_is_not_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nor does one end otherwise that may be read only."""
    monkeypatch.setattr(streams, "_WRITER_TIMEOUT_S", 0.2)
    monkeypatch.setattr(os, "open", Mock(side_effect=PermissionError))
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(Refused, match="no program writes to"):
        streams._open_pipe(tmp_path / "pipe")
    with pytest.raises(FileNotFoundError):
        streams._open_pipe(tmp_path / "gone")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs pipes")
@pytest.mark.parametrize("size", [0, 3, 300_000])
def test_a_pipe_with_a_writer_is_read_to_its_end(tmp_path: Path, size: int) -> None:
    """However late the writer comes, and however long it says nothing."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    content = b"x" * size

    def write() -> None:
        time.sleep(0.1)
        with pipe.open("wb", buffering=0) as file:
            time.sleep(0.1)
            file.write(content)

    writer = threading.Thread(target=write)
    writer.start()
    with open_stream(str(pipe)) as source:
        assert source.reader.read() == content
    writer.join()


@each_row("first", ["# exported", "null", "42", "", "   ", "// no record", "[]"])
def test_json_lines_that_begin_with_something_else(first: str, tmp_path: Path) -> None:
    """No record is torn into plain text: the line is named, and all others keep their fields."""
    path = tmp_path / "notes.jsonl"
    path.write_text(f'{first}\n{{"text": "Payroll of Ines", "classification": 3}}\n')
    with Memory.open(":memory:", embedder="none") as memory:
        tally = import_from(memory, path)
        item = memory.get(tally.ids[0])

    assert (tally.kind, tally.stored, tally.n_refused) == ("jsonl", 1, int(bool(first.strip())))
    assert (item.text, item.classification) == ("Payroll of Ines", 3)
    assert all(refusal.where == "line 1" for refusal in tally.refused)


def test_an_export_below_a_comment_is_no_text(tmp_path: Path) -> None:
    """It is read as an export, which the comment spoils as a whole."""
    path = tmp_path / "backup.jsonl"
    with Memory.open(":memory:", embedder="none") as memory:
        memory.remember("The heron is grey")
        lines = [json.dumps(record) for record in memory.export()]
    path.write_text("\n".join(["# a copy", *lines]))
    with Memory.open(":memory:", embedder="none") as memory:
        with pytest.raises(Refused):
            import_from(memory, path)
        assert memory.browse() == []


@pytest.mark.parametrize("form", ["export", "lines"])
def test_a_gzip_file_that_is_cut_off_is_refused(form: str, tmp_path: Path) -> None:
    """Wherever it was cut; nothing of it is stored."""
    with Memory.open(":memory:", embedder="none") as memory:
        for number in range(40):
            memory.remember(f"Heron number {number} stands in pond {number * 7}")
        records = (
            memory.export() if form == "export" else ({"text": f"pond {n}"} for n in range(99))
        )
        whole = gzip.compress("\n".join(map(json.dumps, records)).encode())
    path = tmp_path / "notes.jsonl.gz"
    for cut in (len(whole) // 2, len(whole) - 9, len(whole) - 8, len(whole) - 1):
        path.write_bytes(whole[:cut])
        with Memory.open(":memory:", embedder="none") as memory:
            with pytest.raises(Refused, match="cut off"):
                import_from(memory, path)
            assert memory.browse() == []
