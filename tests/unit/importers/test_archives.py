"""Chat exports are read from the zip they come in, and no zip can do harm."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path

import pytest

import foreign
from bethink.errors import BethinkError, Refused, TooLarge
from bethink.importers.chat_exports import ChatGpt, open_members
from bethink.importers.entry import ReadProgress


def read(path: Path) -> list[bytes]:
    return [stream.read() for stream in open_members(path, ReadProgress())]


def test_every_file_of_conversations_is_read(tmp_path: Path) -> None:
    """Wherever it lies in the zip, and where an export has several."""
    path = tmp_path / "export.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("export/conversations-001.json", "[2]")
        archive.writestr("export/conversations-000.json", "[1]")
        archive.writestr("export/shared_conversations.json", "[3]")
        archive.writestr("user.json", "{}")

    assert read(path) == [b"[1]", b"[2]"]


def test_names_lead_nowhere(tmp_path: Path) -> None:
    """Nothing is unpacked, whatever a name in the zip says."""
    inner = tmp_path / "inner"
    inner.mkdir()
    path = inner / "slip.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("../../conversations.json", json.dumps(foreign.chatgpt_conversations()))

    assert len(list(ChatGpt(path, ReadProgress()).entries())) == 4
    assert [one.name for one in tmp_path.iterdir()] == ["inner"]
    assert [one.name for one in inner.iterdir()] == ["slip.zip"]


def test_a_bomb_is_refused(tmp_path: Path) -> None:
    """By how much it would unpack to, before it is unpacked."""
    path = tmp_path / "bomb.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("conversations.json", b"[" + b" " * (8 << 20) + b"]")

    with pytest.raises(TooLarge, match="times as big"):
        read(path)


def test_a_bomb_that_lies_about_its_size_is_cut_short(tmp_path: Path) -> None:
    """What it says it unpacks to is all that is read of it."""
    path = tmp_path / "liar.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("conversations.json", b"[" + b" " * (8 << 20) + b"]")
    content = path.read_bytes().replace((8388610).to_bytes(4, "little"), (9).to_bytes(4, "little"))
    path.write_bytes(content)

    with pytest.raises(BethinkError):
        read(path)


@pytest.mark.parametrize("content", [b"PK\x03\x04", b"PK\x03\x04" + b"\x00" * 100])
def test_a_broken_zip_is_told(tmp_path: Path, content: bytes) -> None:
    """In a sentence."""
    path = tmp_path / "broken.zip"
    path.write_bytes(content)

    with pytest.raises(Refused, match="cannot be unpacked"):
        read(path)


def test_a_zip_without_conversations_is_told(tmp_path: Path) -> None:
    """By what was looked for."""
    path = tmp_path / "other.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("photo.json", "[]")

    with pytest.raises(Refused, match=r"no conversations\.json in other\.zip") as refused:
        read(path)
    assert "unpack" in refused.value.remedy


def test_a_locked_zip_is_told(tmp_path: Path) -> None:
    """With what to do about it."""
    path = tmp_path / "locked.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("conversations.json", "[]")
    content = bytearray(path.read_bytes())
    # The bit that says so, in the file's own head and in the directory at the end.
    content[6] |= 1
    content[content.index(b"PK\x01\x02") + 8] |= 1
    path.write_bytes(content)

    with pytest.raises(Refused, match="protected by a password"):
        read(path)


def test_an_unpacked_export_is_a_folder(tmp_path: Path) -> None:
    """Its progress counts what is read."""
    (tmp_path / "conversations.json").write_text(json.dumps(foreign.chatgpt_conversations()))
    gauge = ReadProgress()

    assert len(list(ChatGpt(tmp_path, gauge).entries())) == 4
    assert gauge.done == gauge.total > 0
