"""Spaces: which memory to use, and the file it is stored in.

A space is one SQLite file, ``<data folder>/spaces/<name>.db``. Without a name the
project decides: its root folder's name and a hash of its path, so that two projects
of the same name stay separate. ``space = "name"`` in the project's file selects another.
"""

from __future__ import annotations

import hashlib
import os
import re
import unicodedata
from datetime import UTC, datetime
from pathlib import Path
from stat import S_ISREG
from typing import NamedTuple

from bethink.config.paths import data_folder
from bethink.config.settings import SPACE_NAME, Settings
from bethink.errors import BadSetting, StoreError

PERSONAL = "personal"
SUFFIX = ".db"

# Reserved for devices on Windows, with any suffix.
_WINDOWS_DEVICES = frozenset(
    ["con", "prn", "aux", "nul", *(f"{port}{n}" for port in ("com", "lpt") for n in range(10))]
)
_SLUG_LENGTH = 40


class SpaceRef(NamedTuple):
    """A space, its file (created on opening), and why it was chosen."""

    name: str
    path: Path
    why: str


class SpaceInfo(NamedTuple):
    """An existing space; ``size`` in bytes includes the write-ahead log."""

    name: str
    path: Path
    size: int
    modified: datetime


def resolve_space(space: str | None = None, settings: Settings | None = None) -> SpaceRef:
    """Resolve the space: the one named, the one configured, the project's, the personal one."""
    settings = settings or Settings()
    if space is not None:
        name, why = space, "named by the caller"
    elif settings.space is not None:
        name, why = settings.space, f"set by {settings.origin('space')}"
    elif settings.project is not None:
        name, why = project_space(settings.project), f"the project in {settings.project}"
    else:
        name, why = PERSONAL, "outside any project"
    return SpaceRef(name, space_path(name, data_dir(settings)), why)


def data_dir(settings: Settings) -> Path:
    """The data folder: the one configured, else the platform's."""
    return settings.data_dir or data_folder()


def space_path(name: str, folder: Path) -> Path:
    """The file of a space in the data folder; a name can never lead out of it."""
    if not SPACE_NAME.fullmatch(name) or name.partition(".")[0] in _WINDOWS_DEVICES:
        raise BadSetting(
            f"{name!r} cannot be the name of a space",
            remedy="use 1 to 64 lower-case letters, digits, '.', '_' and '-', "
            "a letter or digit first, and no device name of Windows",
        )
    return folder / "spaces" / (name + SUFFIX)


def project_space(root: Path) -> str:
    """The name of a project's space: a slug of its folder, a hash of its path.

    All working trees of one git repository share the space of the main one.
    """
    home = _main_worktree(Path(os.path.realpath(root)))
    # The bytes of the path do not depend on the encoding of the locale.
    path = os.fsencode(os.path.normcase(home))
    folder_name = os.fsencode(home.name).decode("utf-8", "replace")
    letters = unicodedata.normalize("NFKD", folder_name).encode("ascii", "ignore").decode().lower()
    slug = re.sub(r"[^a-z0-9]+", "-", letters)[:_SLUG_LENGTH].strip("-") or "project"
    return f"{slug}-{hashlib.sha256(path).hexdigest()[:8]}"


def list_spaces(folder: Path) -> list[SpaceInfo]:
    """The spaces under a data folder, by name."""
    home = folder / "spaces"
    try:
        files = sorted(path.name for path in home.iterdir())
    except FileNotFoundError:
        return []
    except OSError as error:
        raise StoreError(f"the folder {home} cannot be read: {error.strerror}") from error
    names = [file.removesuffix(SUFFIX) for file in files if file.endswith(SUFFIX)]
    infos = [
        _space_info(name, home / (name + SUFFIX)) for name in names if SPACE_NAME.fullmatch(name)
    ]
    return [space for space in infos if space is not None]


def _space_info(name: str, path: Path) -> SpaceInfo | None:
    """The space of a file; None where it vanished since it was listed, or is no regular file."""
    stat = _stat_or_none(path)
    if stat is None or not S_ISREG(stat.st_mode):
        return None
    log = _stat_or_none(path.with_name(path.name + "-wal")) or stat
    size = stat.st_size + (log.st_size if log is not stat else 0)
    modified = datetime.fromtimestamp(max(stat.st_mtime, log.st_mtime), UTC)
    return SpaceInfo(name, path, size, modified)


def _stat_or_none(path: Path) -> os.stat_result | None:
    try:
        return path.stat()
    except FileNotFoundError:
        return None  # the log exists only while a process uses the space


def _main_worktree(root: Path) -> Path:
    """The main working tree of a linked git worktree; any other root unchanged.

    A linked tree's ``.git`` is a file that names ``<main>/.git/worktrees/<tree>``. That
    folder must point back, or a forged file could open another project's memory.
    """
    try:
        git_folder = (root / (root / ".git").read_text().removeprefix("gitdir:").strip()).resolve()
        linked_file = (git_folder / (git_folder / "gitdir").read_text().strip()).resolve()
    except (OSError, ValueError):
        return root  # not a linked worktree
    common = git_folder.parent.parent
    linked = git_folder.parent.name == "worktrees" and common.name == ".git"
    return common.parent if linked and linked_file == (root / ".git").resolve() else root
