"""Ends a worker: by asking, and where it does not listen, by the kernel."""

from __future__ import annotations

import os
import signal
import time

from recollect.worker.client import control
from recollect.worker.lock import holder, is_held
from recollect.worker.place import Place, find_place

_LOOK_EVERY_S = 0.01
_ASKED_S, _TOLD_S, _KILLED_S = 8.0, 1.0, 2.0


def end(place: Place | None = None) -> bool | None:
    """Has the worker end, and waits until it has. None where there was none, False where
    it is still there."""
    place = place or find_place()
    listened = control("stop", place) is not None
    if not listened and not is_held(place.lock):
        return None
    if listened and _gone(place, _ASKED_S):
        return True
    kill = getattr(signal, "SIGKILL", signal.SIGTERM)
    return _tell(place, signal.SIGTERM, _TOLD_S) or _tell(place, kill, _KILLED_S)


def _tell(place: Place, number: int, patience_s: float) -> bool:
    """It holds the lock and does not listen: the signal goes to whoever signed for that."""
    pid = holder(place.lock)
    if pid is not None:
        try:
            os.kill(pid, number)
        except ProcessLookupError:
            return True  # gone just now
    return _gone(place, patience_s)


def _gone(place: Place, patience_s: float) -> bool:
    deadline = time.monotonic() + patience_s
    while is_held(place.lock):
        if time.monotonic() > deadline:
            return False
        time.sleep(_LOOK_EVERY_S)
    return True
