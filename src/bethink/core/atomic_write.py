"""Atomic file replacement: readers see either the old file or the new one."""

from __future__ import annotations

import os
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


def fsync_folder(folder: Path) -> None:
    """Flush a folder's entries to disk, so that new names survive a power failure."""
    if os.name == "posix":
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
