"""Editing a flat TOML file."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bethink.config.settings import read_table, write_key
from bethink.errors import BadSetting
from rows import each_row

posix = pytest.mark.skipif(os.name == "nt", reason="POSIX permissions and links")
not_root = pytest.mark.skipif(
    hasattr(os, "geteuid") and os.geteuid() == 0, reason="root may read and write everything"
)


def edited(path: Path, before: str, key: str, value: str | int | bool | None) -> str:
    path.write_bytes(before.encode())
    write_key(path, key, value, keep_mode=False)
    return path.read_bytes().decode()


@each_row(
    ("before", "after"),
    [
        ("", "k = 5\n"),
        ("# mine\n", "# mine\nk = 5\n"),
        ("# mine", "# mine\nk = 5\n"),
        ("k = 3\n", "k = 5\n"),
        ("k=3", "k=5"),
        ("  k  =  3   # few\ntrack = true\n", "  k  =  5   # few\ntrack = true\n"),
        ('"k" = 3\n', '"k" = 5\n'),
        ("a = 1\n\n[table]\nk = 9\n", "a = 1\nk = 5\n\n[table]\nk = 9\n"),
        ("a = 1\r\nb = 2\r\n", "a = 1\r\nb = 2\r\nk = 5\r\n"),
        ("k = 3 # few\r\nb = 2\r\n", "k = 5 # few\r\nb = 2\r\n"),
        ("k = 3\r\n", "k = 5\r\n"),
        ("kk = 1\n# k = 4\n", "kk = 1\n# k = 4\nk = 5\n"),
        ('k = """\nmany\n"""\na = 1\n', "k = 5\na = 1\n"),
    ],
)  # fmt: skip
def test_one_line_changes(tmp_path: Path, before, after):
    """Only the value changes, or a line is added at the top level; comments and the rest stay."""
    assert edited(tmp_path / "c.toml", before, "k", 5) == after


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ('a = "x # y"  # note\n', 'a = "z"  # note\n'),
        ("a = 'x # y'\n", 'a = "z"\n'),
        ('a = "x \\" # y" # "n"\n', 'a = "z" # "n"\n'),
    ],
)
def test_a_hash_inside_a_value_is_no_comment(tmp_path: Path, before, after):
    """Only what really is a comment is kept."""
    assert edited(tmp_path / "c.toml", before, "a", "z") == after


def test_a_key_can_be_taken_out(tmp_path: Path):
    """Its line goes; a key that is not there changes nothing."""
    assert edited(tmp_path / "c.toml", "a = 1\nk = 3 # few\nb = 2\n", "k", None) == "a = 1\nb = 2\n"
    assert edited(tmp_path / "c.toml", "a = 1\n", "k", None) == "a = 1\n"


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(
    st.text(st.characters(exclude_categories=["C"])) | st.booleans() | st.integers(-(10**9), 10**9)
)
def test_any_value_comes_back(tmp_path: Path, value):
    """What is written is what is read, and the neighbours stay."""
    path = tmp_path / "c.toml"
    path.write_text("# top\na = 1\nkey = 'old' # note\n", encoding="utf-8")

    write_key(path, "key", value, keep_mode=False)

    assert read_table(path) == {"a": 1, "key": value}
    assert path.read_text(encoding="utf-8").startswith("# top\na = 1\n")


@pytest.mark.parametrize("before", ["k = [\n1]\n", "a.b = 1\nk.c = 2\n", "[[k]]\n"])
def test_what_cannot_be_edited_safely_is_left_alone(tmp_path: Path, before):
    """A list, a table, a dotted key: the user is asked to do it."""
    path = tmp_path / "c.toml"
    path.write_text(before, encoding="utf-8")

    with pytest.raises(BadSetting, match="k cannot be changed safely"):
        write_key(path, "k", 5, keep_mode=False)

    assert path.read_text(encoding="utf-8") == before


@pytest.mark.parametrize(
    ("content", "words"),
    [(b"k = ", "not valid TOML"), (b"k = '\xff'", "not UTF-8"), (b"=1", "line 1")],
)
def test_a_damaged_file_is_named_and_left_alone(tmp_path: Path, content, words):
    """Reading and writing both refuse it."""
    path = tmp_path / "c.toml"
    path.write_bytes(content)

    for attempt in (lambda: read_table(path), lambda: write_key(path, "k", 5, keep_mode=False)):
        with pytest.raises(BadSetting, match=words) as caught:
            attempt()
        assert str(path) in caught.value.message
    assert path.read_bytes() == content


@posix
def test_the_file_is_private_unless_it_was_not(tmp_path: Path):
    """0600, also when it was wider, except where its mode is to be kept."""
    path = tmp_path / "new" / "c.toml"

    write_key(path, "k", 5, keep_mode=True)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700

    path.chmod(0o644)
    write_key(path, "k", 6, keep_mode=True)
    assert stat.S_IMODE(path.stat().st_mode) == 0o644
    write_key(path, "k", 7, keep_mode=False)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


@posix
def test_a_linked_file_stays_linked(tmp_path: Path):
    """The target changes, as people who keep their settings elsewhere expect."""
    (tmp_path / "dotfiles").mkdir()
    link, target = tmp_path / "c.toml", tmp_path / "dotfiles" / "c.toml"
    link.symlink_to(target)

    write_key(link, "k", 5, keep_mode=False)

    assert link.is_symlink()
    assert tomllib.loads(target.read_text()) == {"k": 5}


@posix
def test_a_failed_write_leaves_everything_as_it_was(tmp_path: Path):
    """A full disk: an error by name, the old file whole, no draft left behind."""
    path = tmp_path / "c.toml"
    path.write_text("k = 1\n")
    code = (
        "import resource, sys; from pathlib import Path\n"
        "from bethink.config.settings import write_key\n"
        "from bethink.errors import BadSetting\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))\n"
        "try: write_key(Path(sys.argv[1]), 'k', 5, keep_mode=False)\n"
        "except BadSetting as error: sys.exit(error.message)"
    )

    done = subprocess.run(
        [sys.executable, "-B", "-c", code, str(path)], capture_output=True, text=True, check=False
    )

    assert done.stderr.startswith(f"{path} cannot be written"), done.stderr
    assert path.read_text() == "k = 1\n"
    assert list(tmp_path.iterdir()) == [path]


def test_a_folder_in_the_files_place_is_named(tmp_path: Path):
    """Nothing is replaced that is no file."""
    (tmp_path / "c.toml").mkdir()

    with pytest.raises(BadSetting, match=r"c\.toml"):
        write_key(tmp_path / "c.toml", "k", 5, keep_mode=False)


def test_a_place_that_cannot_be_a_folder_is_named(tmp_path: Path):
    """A file stands where the folder should be."""
    (tmp_path / "file").touch()

    with pytest.raises(BadSetting, match="cannot be written"):
        write_key(tmp_path / "file" / "c.toml", "k", 5, keep_mode=False)


@posix
@not_root
def test_a_file_that_may_not_be_read_is_named(tmp_path: Path):
    """An error with the path, not a traceback."""
    path = tmp_path / "c.toml"
    path.write_text("k = 1")
    path.chmod(0o000)

    with pytest.raises(BadSetting, match="cannot be read"):
        read_table(path)
