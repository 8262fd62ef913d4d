"""What a file or a folder holds is told by what is in it, not by what it is called."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import foreign
from bethink.errors import Refused
from bethink.importers.detection import detect_source
from rows import each_row


@each_row("kind", foreign.MAKERS)
def test_every_source_is_recognised(kind: str, tmp_path: Path) -> None:
    """As it is made."""
    path = foreign.MAKERS[kind](tmp_path)

    assert detect_source(path) == (kind, path)


@each_row("kind", ["mcp-memory", "mem0", "remind", "claude-mem", "chatgpt", "claude"])
def test_names_do_not_matter(kind: str, tmp_path: Path) -> None:
    """A file that is called otherwise is the same."""
    path = foreign.MAKERS[kind](tmp_path).rename(tmp_path / "download.bin")

    assert detect_source(path)[0] == kind


@each_row("kind", ["mcp-memory", "remind", "claude-mem", "claude", "mem0"])
def test_a_folder_may_hold_one(kind: str, tmp_path: Path) -> None:
    """What is recognised in it is what is read."""
    path = foreign.MAKERS[kind](tmp_path)

    assert detect_source(tmp_path) in ((kind, path), (kind, tmp_path))


def test_reminds_own_folder(tmp_path: Path) -> None:
    """A project keeps it hidden."""
    (tmp_path / ".remind").mkdir()
    path = foreign.remind(tmp_path / ".remind")

    assert detect_source(tmp_path) == ("remind", path)


@each_row(
    ("content", "kind"),
    [
        ('{"text": "a"}\n', "jsonl"),
        ('{"type": "bethink", "version": 1}\n', "bethink"),
        ('"a"\n"b"\n', "jsonl"),
        ("one\ntwo\n", "lines"),
        ("one\n\ntwo\n", "text"),
        ("[1, 2] are numbers", "lines"),
        ("[x] done", "lines"),
        ("", "lines"),
        (json.dumps(foreign.chatgpt_conversations()[0]), "chatgpt"),
        (json.dumps({"memories": foreign.MEMORIES}), "mem0"),
        (json.dumps(foreign.TRANSCRIPT[1]), "claude-code"),
    ],
)
def test_other_files_are_lines_of_some_kind(tmp_path: Path, content: str, kind: str) -> None:
    """As before."""
    path = tmp_path / "file"
    path.write_text(content)

    assert detect_source(path)[0] == kind


@each_row("content", ["[1, 2]", '[{"mapping": {"a": 1', '[\n\n{"x": 1}]', "[" * 9000])
def test_json_that_nobody_knows_is_not_taken_for_text(tmp_path: Path, content: str) -> None:
    """A broken export is refused by name, not stored as one long line."""
    path = tmp_path / "conversations.json"
    path.write_text(content)

    with pytest.raises(Refused, match=r"conversations\.json is not JSON of a known program"):
        detect_source(path)


def test_a_note_alone_is_a_note(tmp_path: Path) -> None:
    """Of basic-memory where it has its marks."""
    plain, theirs = tmp_path / "plain.md", tmp_path / "theirs.md"
    plain.write_text("# One\n\ntext\n")
    theirs.write_text("- [fact] It is so\n- part_of [[Whole]]\n")

    assert detect_source(plain)[0] == "markdown"
    assert detect_source(theirs)[0] == "basic-memory"


def test_what_is_not_known_is_said(tmp_path: Path) -> None:
    """A folder of nothing, a database of somebody else, a zip of something else."""
    database = tmp_path / "x.db"
    with foreign.database(database) as db:
        db.execute("CREATE TABLE something (a)")

    with pytest.raises(Refused, match="directory without any known format"):
        detect_source(tmp_path)
    with pytest.raises(Refused, match="of a known program"):
        detect_source(database)
