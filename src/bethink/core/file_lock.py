"""A kernel lock on an open file, which is released when its holder dies."""

from __future__ import annotations

import os
import sys

if sys.platform == "win32":
    import msvcrt

    def try_lock(handle: int) -> bool:
        """Lock a file unless another process has; return whether it is locked now."""
        try:
            # Far behind the content, so that other processes can read it.
            os.lseek(handle, 1 << 20, os.SEEK_SET)
            msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)
        except OSError:
            return False
        return True

else:
    import fcntl

    def try_lock(handle: int) -> bool:
        """Lock a file unless another process has; return whether it is locked now."""
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True
