"""Exit with the process that started this one."""

from __future__ import annotations

import os
from collections.abc import Callable
from threading import Thread
from time import sleep

POLL_INTERVAL_S = 1.0


def watch_parent(
    exit_process: Callable[[int], None] = os._exit,
    *,
    get_parent: Callable[[], int] = os.getppid,
    interval_s: float = POLL_INTERVAL_S,
) -> Thread:
    """Start a thread that exits the process once its parent has changed."""
    parent = get_parent()

    def watch() -> None:
        while get_parent() == parent:
            sleep(interval_s)
        exit_process(0)

    thread = Thread(target=watch, name="bethink-parent", daemon=True)
    thread.start()
    return thread
