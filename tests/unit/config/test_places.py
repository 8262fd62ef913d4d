"""Where projects begin and the user's folders are."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import platformdirs
import pytest

from bethink.config.paths import (
    config_folder,
    data_folder,
    find_project,
    home_folder,
    make_private_folder,
    project_files,
    working_folder,
)
from rows import each_row

posix = pytest.mark.skipif(os.name == "nt", reason="POSIX permissions and links")
not_root = pytest.mark.skipif(
    hasattr(os, "geteuid") and os.geteuid() == 0, reason="root may enter every folder"
)


def tree(root: Path, *paths: str) -> Path:
    """Makes folders (ending in "/") and empty files; gives the root's real path."""
    for path in paths:
        place = root / path
        if path.endswith("/"):
            place.mkdir(parents=True, exist_ok=True)
        else:
            place.parent.mkdir(parents=True, exist_ok=True)
            place.touch()
    return Path(os.path.realpath(root))


@each_row("marker", [".bethink/", "bethink.toml", ".git/", ".git"])
def test_a_project_begins_at_its_marker(tmp_path: Path, marker):
    """From the root itself and from any depth below it."""
    root = tree(tmp_path, f"app/{marker}", "app/src/deep/") / "app"

    assert find_project(root) == root
    assert find_project(root / "src" / "deep") == root


def test_the_nearest_root_wins(tmp_path: Path):
    """A project inside a project is its own."""
    root = tree(tmp_path, "outer/.git/", "outer/inner/.bethink/", "outer/inner/src/")

    assert find_project(root / "outer" / "inner" / "src") == root / "outer" / "inner"
    assert find_project(root / "outer") == root / "outer"


def test_things_that_only_look_like_markers_are_none(tmp_path: Path):
    """.bethink must be a folder and bethink.toml a file."""
    root = tree(tmp_path, "home/a/.bethink", "home/a/b/bethink.toml/", "home/a/b/c/")

    assert find_project(root / "home" / "a" / "b" / "c", home=root / "home") is None


def test_home_is_never_a_project(tmp_path: Path):
    """A home under version control does not swallow what is below or above it."""
    root = tree(tmp_path, ".git/", "home/.git/", "home/.bethink/", "home/notes/", "home/app/.git/")
    home = root / "home"

    assert find_project(home, home) is None
    assert find_project(home / "notes", home) is None
    assert find_project(home / "app", home) == home / "app"


def test_the_top_of_the_file_system_is_never_a_project():
    """The walk ends there."""
    assert find_project(Path(Path.cwd().anchor)) is None


@posix
def test_a_link_to_a_project_is_the_project(tmp_path: Path):
    """The same root by either way, so the same space."""
    root = tree(tmp_path, "real/.git/", "real/src/", "elsewhere/")
    (root / "elsewhere" / "link").symlink_to(root / "real" / "src")

    assert find_project(root / "elsewhere" / "link") == root / "real"


@posix
def test_a_circle_of_links_ends(tmp_path: Path):
    """Links that lead to themselves are no project and no crash."""
    root = tree(tmp_path, "home/")
    (root / "home" / "a").symlink_to(root / "home" / "b")
    (root / "home" / "b").symlink_to(root / "home" / "a")

    assert find_project(root / "home" / "a" / "x", home=root / "home") is None


def test_a_folder_that_is_gone_still_has_parents(tmp_path: Path):
    """A deleted working directory inside a project is in the project."""
    root = tree(tmp_path, "app/.git/")

    assert find_project(root / "app" / "removed" / "deep") == root / "app"


@posix
@not_root
def test_a_closed_folder_is_passed_by(tmp_path: Path):
    """What may not be entered holds nothing, and the walk goes on."""
    root = tree(tmp_path, "app/.git/", "app/closed/inner/")
    closed = root / "app" / "closed"
    closed.chmod(0o000)
    try:
        assert find_project(closed / "inner") == root / "app"
    finally:
        closed.chmod(0o700)


def test_the_project_files_that_are_there(tmp_path: Path):
    """Either, both or none."""
    root = tree(tmp_path, ".bethink/")
    assert project_files(root) == []

    tree(root, "bethink.toml", ".bethink/config.toml")

    assert project_files(root) == [root / ".bethink" / "config.toml", root / "bethink.toml"]


@posix
def test_no_working_folder_is_an_answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Where the working directory was removed there is none."""
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    assert working_folder() == Path(os.path.realpath(gone))

    gone.rmdir()

    assert working_folder() is None


@posix
def test_home_is_what_the_environment_says():
    """Else what the system says."""
    assert home_folder({"HOME": "/somewhere"}) == Path("/somewhere")
    assert home_folder({}) == Path.home()


def test_the_users_folders_are_the_platforms(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    """Unless BETHINK_CONFIG_DIR names another."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))

    assert config_folder({}) == Path(platformdirs.user_config_dir("bethink", appauthor=False))
    assert data_folder() == Path(platformdirs.user_data_dir("bethink", appauthor=False))
    assert config_folder({"BETHINK_CONFIG_DIR": str(tmp_path)}) == tmp_path


@posix
def test_new_folders_are_private(tmp_path: Path):
    """All that were missing are 0700; one that was there keeps its mode."""
    tmp_path.chmod(0o755)

    make_private_folder(tmp_path / "a" / "b")
    make_private_folder(tmp_path / "a" / "b")

    modes = [
        stat.S_IMODE(path.stat().st_mode)
        for path in (tmp_path, tmp_path / "a", tmp_path / "a" / "b")
    ]
    assert modes == [0o755, 0o700, 0o700]
