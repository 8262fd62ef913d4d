"""Folders are walked in order; nothing leads out of them and nothing is waited for."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from bethink.errors import Refused
from bethink.importers.entry import ReadProgress
from bethink.importers.streams import FILE_BYTES, file_names_under, read_text_file, read_text_files

MD = (".md",)


def test_names_are_in_order(tmp_path: Path) -> None:
    """Files before folders, each by name; hidden ones and other kinds are left out."""
    for name in ("b.md", "a.md", "sub/z.md", "sub/deep/y.MD", ".git/x.md", "c.txt", ".h.md",
                 "node_modules/p.md"):  # fmt: skip
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("x")

    assert list(file_names_under(tmp_path, MD)) == ["a.md", "b.md", "sub/z.md", "sub/deep/y.MD"]


@pytest.mark.skipif(os.name != "posix", reason="needs links")
def test_links_are_not_followed(tmp_path: Path) -> None:
    """Neither in circles nor out of the folder."""
    root = tmp_path / "root"
    root.mkdir()
    (tmp_path / "secret.md").write_text("outside")
    (root / "loop").symlink_to(root, target_is_directory=True)
    (root / "out.md").symlink_to(tmp_path / "secret.md")
    (root / "gone.md").symlink_to(tmp_path / "missing.md")
    (root / "real.md").write_text("inside")

    assert list(file_names_under(root, MD)) == ["real.md"]
    assert isinstance(read_text_file(root / "out.md"), Refused)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs pipes")
def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    """It is no file."""
    os.mkfifo(tmp_path / "pipe.md")

    assert list(file_names_under(tmp_path, MD)) == []
    assert isinstance(read_text_file(tmp_path / "pipe.md"), Refused)


def test_a_folder_can_be_very_deep(tmp_path: Path) -> None:
    """It is read as far as folders of notes go."""
    place = tmp_path
    for _ in range(60):
        place /= "d"
        place.mkdir()
        (place / "n.md").write_text("x")

    assert len(list(file_names_under(tmp_path, MD))) == 40


def test_texts_that_cannot_be_read_are_told(tmp_path: Path) -> None:
    """Too large, no UTF-8, no such file; line ends are ours, and a mark of byte order goes."""
    (tmp_path / "large.md").write_bytes(b"x" * (FILE_BYTES + 1))
    (tmp_path / "latin.md").write_bytes("Füße".encode("latin-1"))
    (tmp_path / "windows.md").write_bytes(b"\xef\xbb\xbfone\r\ntwo")

    assert "limit" in str(read_text_file(tmp_path / "large.md"))
    assert "not UTF-8 at byte 2" in str(read_text_file(tmp_path / "latin.md"))
    assert "no such file" in str(read_text_file(tmp_path / "none.md"))
    assert read_text_file(tmp_path / "windows.md") == "one\ntwo"


def test_progress_counts_files(tmp_path: Path) -> None:
    """Of a folder, and of the one file that it may be."""
    (tmp_path / "a.md").write_text("x")
    folder, file = ReadProgress(), ReadProgress()

    assert [one.name for one in read_text_files(tmp_path, MD, folder)] == ["a.md"]
    assert [one.text for one in read_text_files(tmp_path / "a.md", MD, file)] == ["x"]
    assert (folder.done, folder.total, folder.unit) == (1, 1, "files")
    assert (file.done, file.total) == (1, 1)


@pytest.mark.skipif(os.name != "posix", reason="needs links")
def test_a_link_that_is_named_is_followed(tmp_path: Path) -> None:
    """Who names it means what it leads to."""
    (tmp_path / "real.md").write_text("inside")
    (tmp_path / "link.md").symlink_to(tmp_path / "real.md")

    assert [one.text for one in read_text_files(tmp_path / "link.md", MD, ReadProgress())] == [
        "inside"
    ]
