"""Starts a worker, detached from whoever starts it, and waits until it answers."""

from __future__ import annotations

import os
import sys
import time
from threading import Thread

from recollect.worker.place import Place

# What the process that starts says: its worker listens, or one was there already.
READY = 0
NOT_TO_BE = 3
_LOOK_EVERY_S = 0.004


def start(place: Place, idle_s: int, *, wait_s: float) -> bool:
    """Starts a worker unless there is one. Whether it listens by now; with ``wait_s`` 0
    nobody waits to see.

    Two who start at once get one worker: the kernel gives the lock to one of them.
    """
    if not sys.executable:
        return False
    words = [
        *(sys.executable, "-P", "-m", "recollect.worker"),
        *("--folder", str(place.folder), "--state", str(place.state)),
        *("--key", place.key, "--idle", str(idle_s)),
    ]
    try:
        return _spawn(words, place, wait_s)
    except OSError:
        return False  # not allowed, or no room for another process: then without


if sys.platform == "win32":
    import subprocess

    _started: list[subprocess.Popen[bytes]] = []

    def _spawn(words: list[str], place: Place, wait_s: float) -> bool:
        flags = subprocess.DETACHED_PROCESS | subprocess.CREATE_NEW_PROCESS_GROUP
        nothing = subprocess.DEVNULL
        _started.append(
            subprocess.Popen(  # noqa: S603 - our own program, by its whole path
                words, stdin=nothing, stdout=nothing, stderr=nothing, creationflags=flags
            )
        )
        deadline = time.monotonic() + wait_s
        while time.monotonic() < deadline and _started[-1].poll() is None:
            if place.door.exists():
                return True
            time.sleep(_LOOK_EVERY_S)
        return place.door.exists()

else:

    def _spawn(words: list[str], _: Place, wait_s: float) -> bool:
        """The process we start opens the door, leaves a child behind it and ends: once it
        has ended, there is somebody to ask, and nobody's child."""
        nothing = [(os.POSIX_SPAWN_OPEN, number, os.devnull, os.O_RDWR, 0) for number in (0, 1, 2)]
        pid = os.posix_spawn(words[0], words, os.environ, file_actions=nothing)
        if wait_s <= 0:
            Thread(target=_end_of, args=(pid, 0), name="recollect-starting", daemon=True).start()
            return False
        deadline = time.monotonic() + wait_s
        while time.monotonic() < deadline:
            code = _end_of(pid, os.WNOHANG)
            if code is not None:
                return code == READY
            time.sleep(_LOOK_EVERY_S)
        Thread(target=_end_of, args=(pid, 0), name="recollect-starting", daemon=True).start()
        return False

    def _end_of(pid: int, options: int) -> int | None:
        """How a process that we started has ended; None while it has not."""
        try:
            ended, status = os.waitpid(pid, options)
        except ChildProcessError:
            return READY  # somebody else has waited for it; calling will show
        return os.waitstatus_to_exitcode(status) if ended else None
