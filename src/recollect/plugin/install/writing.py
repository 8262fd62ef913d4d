"""Files of a host, read and written: never through a link that leads out, never by half."""

from __future__ import annotations

import os
from pathlib import Path

from recollect.errors import BadSetting
from recollect.whole_file import replace_whole

SHARED = 0o644
PRIVATE = 0o600
_MOST = 4 * 1024 * 1024


def settled(path: Path, root: Path) -> Path:
    """The file that a path means, links followed as far as they stay below ``root``.

    A link inside is a choice of the user's; one that leads out could make us write
    anywhere, so it is refused.
    """
    real = Path(os.path.realpath(path))
    if not real.is_relative_to(os.path.realpath(root)):
        raise BadSetting(f"{path} leads to {real}, outside of {root}")
    if real.exists() and not real.is_file():
        raise BadSetting(f"{path} is not a file")
    return real


def content_of(path: Path) -> bytes | None:
    """What a file holds; None where there is none."""
    try:
        with path.open("rb") as file:
            content = file.read(_MOST + 1)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise BadSetting(f"{path} cannot be read: {error.strerror}") from error
    if len(content) > _MOST:
        raise BadSetting(f"{path} is larger than {_MOST:,} bytes")
    return content


def missing_folders(path: Path) -> list[Path]:
    """The folders above a file that would have to be made, the outermost first."""
    missing = []
    folder = path.parent
    while not folder.exists():
        missing.append(folder)
        folder = folder.parent
    return missing[::-1]


def write_whole(path: Path, content: bytes, mode: int) -> None:
    """Replaces a file in one step; one that is there keeps its permissions and its owner."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        there = path.stat() if path.exists() else None
        if there is not None:
            mode = there.st_mode & 0o777
        # Not root's all at once, where a user runs this as root.
        owner = None if there is None else (there.st_uid, there.st_gid)
        replace_whole(path, content, mode=mode, owner=owner)
    except OSError as error:
        raise BadSetting(f"{path} cannot be written: {error.strerror}") from error


def remove(path: Path) -> None:
    """Takes a file away, if it is there."""
    try:
        path.unlink(missing_ok=True)
    except OSError as error:
        raise BadSetting(f"{path} cannot be removed: {error.strerror}") from error


def remove_empty(folders: list[Path]) -> None:
    """Takes folders away that are empty, the innermost first."""
    for folder in sorted(folders, key=lambda one: len(one.parts), reverse=True):
        if folder.is_dir() and not folder.is_symlink() and not any(folder.iterdir()):
            folder.rmdir()
