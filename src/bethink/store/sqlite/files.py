"""The files of a space: private modes, names, copies, and the secret of the journal."""

from __future__ import annotations

import glob
import os
import stat
from pathlib import Path

from bethink.config import paths
from bethink.core.atomic_write import atomic_replace, fsync_folder
from bethink.errors import StoreError
from bethink.store.sql.journal_key import SECRET_BYTES, JournalKey, Secret

UNFINISHED_COPY = "damaged.part"  # the end of its name; a kill may leave it
FILE_MODE = 0o600


def make_private_folder(path: Path) -> None:
    """Create the folder and its missing parents, accessible to the owner alone.

    An existing folder is left as it is: it may not be ours.
    """
    try:
        paths.make_private_folder(path)
    except OSError as error:
        raise StoreError(
            f"the folder {path} cannot be created: {error.strerror}",
            remedy="choose a folder you own",
        ) from error


def make_private_file(path: Path) -> bool:
    """Create an empty private file; return False when it exists already."""
    try:
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | _CLOEXEC, FILE_MODE)
    except FileExistsError:
        return False
    except OSError as error:
        raise _open_error(path, error) from error
    os.close(handle)
    # The umask may have removed the owner's own bits.
    path.chmod(FILE_MODE)
    return True


def open_private(path: Path) -> int:
    """Open a private file, creating it if needed; return the file descriptor."""
    try:
        return os.open(path, os.O_RDWR | _CLOEXEC)
    except FileNotFoundError:
        make_private_file(path)
    except OSError as error:
        raise _open_error(path, error) from error
    try:
        return os.open(path, os.O_RDWR | _CLOEXEC)
    except OSError as error:
        raise _open_error(path, error) from error


def has_content(path: Path) -> bool:
    """Whether the file exists and is not empty."""
    return path.exists() and path.stat().st_size > 0


def wal_path(path: Path) -> Path:
    """Return the path of a database's write-ahead log."""
    return path.with_name(f"{path.name}-wal")


def key_path(path: Path) -> Path:
    """Return the path of the secret of a space's journal."""
    return path.with_name(f"{path.name}.key")


def is_private(path: Path) -> bool:
    """Whether group and others have no access. Always true where modes mean nothing."""
    if os.name != "posix":
        return True
    return not stat.S_IMODE(path.stat().st_mode) & 0o077


_CLOEXEC: int = getattr(os, "O_CLOEXEC", 0)


def _open_error(path: Path, error: OSError) -> StoreError:
    return StoreError(
        f"{path} cannot be opened: {error.strerror}",
        remedy="check the permissions of the file and its folder",
    )


_KEY_KIND = "bethink-journal-2"
_UNSEALED_KEY_KIND = "bethink-journal-1"


class KeyFile(JournalKey):
    """The secret of a space's journal, in a private file next to the space.

    Who can write the database alone cannot make a chain that the secret verifies. It is made
    with the first line that needs it.
    """

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.path = path

    def read(self) -> Secret:
        """Return the secret as it is now; none where the file is missing or damaged."""
        try:
            kind, since, secret = self.path.read_text(encoding="ascii").split()
            found = Secret(bytes.fromhex(secret), int(since), seals=kind == _KEY_KIND)
            is_known = kind in (_KEY_KIND, _UNSEALED_KEY_KIND)
            return found if is_known and len(found.value) == SECRET_BYTES else Secret()
        except (FileNotFoundError, ValueError):
            return Secret()
        except OSError as error:
            raise _open_error(self.path, error) from error

    def ensure(self, line: int) -> Secret:
        """Return the secret; make it, where there is none, for the lines from this one on.

        Only the holder of the write lock may call it.
        """
        known = self.read()
        if known.value:
            return known
        new = Secret.random(line)
        content = f"{_KEY_KIND} {line} {new.value.hex()}\n"
        try:
            if self.path.exists():
                # Damaged, but perhaps not beyond a repair by hand.
                self.path.replace(self.path.with_name(f"{self.path.name}.damaged"))
            atomic_replace(self.path, content.encode(), mode=FILE_MODE)
            fsync_folder(self.path.parent)
        except OSError as error:
            raise _open_error(self.path, error) from error
        return new


def backups(path: Path) -> list[Path]:
    """Return the copies of this file made before migrations and repairs."""
    before_migrations = path.parent.glob(f"{glob.escape(path.name)}.v*.bak")
    unfinished = path.with_name(f"{path.name}.{UNFINISHED_COPY}")
    left = [unfinished] if unfinished.exists() else []
    return sorted(before_migrations) + copies_before_repair(path) + left


def copies_before_repair(path: Path) -> list[Path]:
    """Return the copies of this file made before repairs, oldest first."""
    return sorted(path.parent.glob(f"{glob.escape(path.name)}.2*.damaged.bak"))
