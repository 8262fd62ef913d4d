"""A worker's life as a process: alone, detached, and gone without a trace."""

from __future__ import annotations

import os
import signal
import sys
import time
from types import FrameType

from recollect.worker.client import control
from recollect.worker.lock import sign, take
from recollect.worker.log import Log
from recollect.worker.place import Place, make_private
from recollect.worker.starting import NOT_TO_BE, READY
from recollect.worker.transport import Listener, listen

_PATIENCE_S = 3.0  # for a worker that is just ending
_LOOK_EVERY_S = 0.02


def run_detached(place: Place, idle_s: int) -> int:
    """Opens the door, leaves a worker behind it and returns; the worker never does."""
    _let_go_of_everything()
    taken = _take(place)
    if isinstance(taken, int):
        return taken
    handle, listener = taken
    if sys.platform != "win32":
        if os.fork():
            # Whoever waits for us knows now that somebody listens.
            os._exit(READY)
        os.setsid()
    sign(handle)
    _serve(place, listener, idle_s, Log(place.log))
    # Not the usual end: a job that hangs must not keep the process.
    os._exit(0)


def run_here(place: Place, idle_s: int) -> int:
    """A worker in this very process, its log on standard error: for looking at it."""
    os.umask(0o077)
    taken = _take(place)
    if isinstance(taken, int):
        return taken
    handle, listener = taken
    sign(handle)
    _serve(place, listener, idle_s, Log(place.log, stream=sys.stderr))
    os.close(handle)
    return READY


def _take(place: Place) -> tuple[int, Listener] | int:
    """The lock and the open door, or what to say where another worker has them."""
    make_private(place.folder)
    make_private(place.state)
    deadline = time.monotonic() + _PATIENCE_S
    while (handle := take(place.lock)) is None:
        if control("ping", place) is not None:
            return READY
        if time.monotonic() > deadline:
            return NOT_TO_BE
        time.sleep(_LOOK_EVERY_S)
    return handle, listen(place)


def _serve(place: Place, listener: Listener, idle_s: int, log: Log) -> None:
    # Heavy, compared to opening the door: whoever knocked can already wait in line.
    from recollect.worker.server import Server

    # One question's worth of arithmetic is over before a pool of threads has started.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    server = Server(place, listener, idle_s=idle_s, log=log)

    def leave(number: int, _: FrameType | None) -> None:
        server.leave(signal.Signals(number).name)

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, leave)
    server.run()


def _let_go_of_everything() -> None:
    """Nothing of whoever started us: no descriptor, no folder, no permission for others."""
    os.umask(0o077)
    if sys.platform != "win32":
        os.closerange(3, 65_536)
        os.chdir("/")
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
