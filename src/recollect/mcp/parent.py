"""Ends the process when the one that started it is gone, even if the pipe is held open."""

from __future__ import annotations

import os
from collections.abc import Callable
from threading import Thread
from time import sleep

LOOK_EVERY_S = 1.0


def watch_parent(
    leave: Callable[[int], None] = os._exit,
    *,
    look: Callable[[], int] = os.getppid,
    every_s: float = LOOK_EVERY_S,
) -> Thread:
    """Looks now and then whether the parent is still the same."""
    parent = look()

    def watch() -> None:
        while look() == parent:
            sleep(every_s)
        leave(0)

    thread = Thread(target=watch, name="recollect-parent", daemon=True)
    thread.start()
    return thread
