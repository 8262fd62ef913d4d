"""Atomic file replacement: readers see either the old file or the new one."""

from __future__ import annotations

import os
import sys
from pathlib import Path


def atomic_replace(
    path: Path,
    content: bytes,
    *,
    mode: int = 0o600,
    owner: tuple[int, int] | None = None,
    temp_affixes: tuple[str, str] = (".bethink-", ""),
) -> None:
    """Replace or create a file atomically: temporary file, fsync, rename.

    ``owner`` is the user and group id of the result, ``temp_affixes`` the prefix and suffix of
    the temporary file. Raises OSError and then leaves no temporary file behind.
    """
    import tempfile  # start-up time: a recall writes no such file

    # mkstemp makes it 0600, whatever the umask says.
    descriptor, name = tempfile.mkstemp(
        dir=path.parent, prefix=temp_affixes[0], suffix=temp_affixes[1]
    )
    temp_file = Path(name)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        if owner is not None and os.name == "posix":
            os.chown(temp_file, *owner)
        temp_file.chmod(mode)
        temp_file.replace(path)
    except OSError:
        temp_file.unlink(missing_ok=True)
        raise


def replace_unchanged(path: Path, content: bytes, expected: bytes) -> bool:
    """Replace a file whose content is the expected one; return whether it was replaced.

    The new file and the old one are exchanged, and the old one is read afterwards: what
    another program saved in between is put back. Where the system cannot exchange two files,
    the old one is read just before.
    """
    try:
        mode = path.stat().st_mode & 0o7777
        if path.read_bytes() != expected:
            return False
    except FileNotFoundError:
        return False
    fresh = path.with_name(f".bethink-{os.getpid()}-{path.name}"[:200])
    atomic_replace(fresh, content, mode=mode)
    try:
        if not _exchange(fresh, path):
            fresh.replace(path)
            return True
        if fresh.read_bytes() == expected:
            return True
        _exchange(fresh, path)
        if fresh.read_bytes() != content:
            _exchange(fresh, path)  # it was saved once more: the newest version stays
    except FileNotFoundError:
        pass  # removed meanwhile
    finally:
        fresh.unlink(missing_ok=True)
    return False


def _exchange(first: Path, second: Path) -> bool:
    """Exchange two files in one step; False where the system cannot."""
    import ctypes  # start-up time

    names = os.fsencode(first), os.fsencode(second)
    try:
        library = ctypes.CDLL(None, use_errno=True)
        if sys.platform == "darwin":
            return bool(library.renamex_np(*names, 2) == 0)  # RENAME_SWAP
        here = -100  # AT_FDCWD
        return bool(library.renameat2(here, names[0], here, names[1], 2) == 0)  # RENAME_EXCHANGE
    except (AttributeError, OSError, TypeError):
        return False


def fsync_folder(folder: Path) -> None:
    """Flush a folder's entries to disk, so that new names survive a power failure."""
    if os.name == "posix":
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
