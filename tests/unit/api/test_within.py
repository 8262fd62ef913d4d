"""Files outside the allowed folders stay unread."""

from __future__ import annotations

import os
import socket
import threading
from pathlib import Path

import pytest

from bethink.code.files import MAX_BYTES, read_within_roots
from bethink.errors import BethinkError, NotFound, Refused, TooLarge
from rows import each_row

CANARY = b"the canary outside"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """An allowed folder beside one that is not, with every way out of it."""
    inside, outside = tmp_path / "root", tmp_path / "root-evil"
    for folder in (inside, outside, inside / "sub"):
        folder.mkdir()
    (inside / "sub" / "ok.txt").write_bytes(b"fine")
    (outside / "secret.txt").write_bytes(CANARY)
    (inside / "link").symlink_to(outside / "secret.txt")
    (inside / "folder-link").symlink_to(outside)
    (inside / "loop").symlink_to("loop")
    (inside / "inner-link").symlink_to(inside / "sub" / "ok.txt")
    os.mkfifo(inside / "pipe")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(inside / "s"))
    return inside


OUTSIDE = [
    "../root-evil/secret.txt",
    "sub/../../root-evil/secret.txt",
    "link",
    "folder-link/secret.txt",
    "/etc/passwd",
    "/proc/self/environ",
    "/dev/zero",
    "/dev/stdin",
    "~/secret",
    "",
    ".",
    "sub",
    "..",
    "pipe",
    "s",
    "loop",
    "nul\0byte",
    "a" * 5000,
    "a/" * 3000,
    "file:///etc/passwd",
    "\\\\server\\share\\x",
]


@each_row("name", OUTSIDE)
def test_nothing_outside_is_read(root: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the name, it is refused at once and in a sentence."""
    monkeypatch.chdir(root)

    with pytest.raises((Refused, NotFound)) as told:
        read_within_roots(name, [root])

    assert CANARY.decode() not in str(told.value)


def test_inside_is_read(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By its absolute path, by a relative one, and through a link that stays inside."""
    monkeypatch.chdir(root)

    for name in (root / "sub" / "ok.txt", "sub/ok.txt", "inner-link", "./sub/../sub/ok.txt"):
        assert read_within_roots(name, [root]).content == b"fine"


def test_no_root_allows_nothing(root: Path) -> None:
    """Where no folder is allowed, no file is."""
    with pytest.raises(Refused, match="outside"):
        read_within_roots(root / "sub" / "ok.txt", [])


def test_a_large_file_is_refused_not_cut(root: Path) -> None:
    """One byte over is over."""
    big = root / "big"
    big.write_bytes(b"x" * (MAX_BYTES + 1))

    with pytest.raises(TooLarge):
        read_within_roots(big, [root])
    assert read_within_roots(big, [root], max_bytes=MAX_BYTES + 1).size == MAX_BYTES + 1


def test_a_link_swapped_in_meanwhile_is_not_followed(root: Path) -> None:
    """A thousand attempts while the name flips between a file and a link outside."""
    name, real = root / "flip", root / "real"
    real.write_bytes(b"fine")
    stop = threading.Event()

    def flip() -> None:
        while not stop.is_set():
            for target in (root.parent / "root-evil" / "secret.txt", real):
                fresh = root / "fresh"
                fresh.symlink_to(target)
                fresh.replace(name)

    flipping = threading.Thread(target=flip)
    flipping.start()
    try:
        for _ in range(1000):
            try:
                content = read_within_roots(name, [root]).content
            except BethinkError:
                continue
            assert content == b"fine"
    finally:
        stop.set()
        flipping.join()
