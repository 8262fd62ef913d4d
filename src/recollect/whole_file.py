"""Puts a file in its place in one step: whoever looks meets the old one or the new one."""

from __future__ import annotations

import os
from pathlib import Path


def replace_whole(
    path: Path,
    content: bytes,
    *,
    mode: int = 0o600,
    owner: tuple[int, int] | None = None,
    beside: tuple[str, str] = (".recollect-", ""),
) -> None:
    """Replaces a file, or makes it; what was there stays until all is on the disk.

    ``owner`` is the user and the group it shall belong to, ``beside`` how the name of the
    unfinished file begins and ends. Raises OSError, and leaves nothing unfinished then.
    """
    import tempfile  # start-up time: a recall writes no such file

    # mkstemp makes it 0600, whatever the umask says.
    descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=beside[0], suffix=beside[1])
    draft = Path(name)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        if owner is not None and os.name == "posix":
            os.chown(draft, *owner)
        draft.chmod(mode)
        draft.replace(path)
    except OSError:
        draft.unlink(missing_ok=True)
        raise


def sync_folder(folder: Path) -> None:
    """Makes the names in a folder survive a power failure, as the files' content does."""
    if os.name == "posix":
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
