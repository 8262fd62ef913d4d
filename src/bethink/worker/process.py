"""Run a worker process: detach, take the lock, listen, then load the server."""

from __future__ import annotations

import os
import signal
import sys
import time
from types import FrameType

from bethink.worker.client import EXIT_NOT_STARTED, EXIT_READY, control_worker
from bethink.worker.files import LogFile, WorkerPaths, acquire_lock, make_private, write_lock_pid
from bethink.worker.transport import Listener, listen

_LOCK_TIMEOUT_S = 3.0  # for a worker that is just stopping
_LOCK_RETRY_S = 0.02


def run_detached(place: WorkerPaths, idle_s: int) -> int:
    """Open the socket, fork the worker and return; the worker itself never returns."""
    _detach_from_parent()
    acquired = _acquire_and_listen(place)
    if isinstance(acquired, int):
        return acquired
    handle, listener = acquired
    if sys.platform != "win32":
        if os.fork():
            # This exit tells the waiting caller that a worker listens.
            os._exit(EXIT_READY)
        os.setsid()
    write_lock_pid(handle)
    _run_server(place, listener, idle_s, LogFile(place.log))
    # Not a normal exit: a hanging job must not keep the process alive.
    os._exit(0)


def run_in_foreground(place: WorkerPaths, idle_s: int) -> int:
    """Run a worker in this process, with its log on standard error."""
    os.umask(0o077)
    acquired = _acquire_and_listen(place)
    if isinstance(acquired, int):
        return acquired
    handle, listener = acquired
    write_lock_pid(handle)
    _run_server(place, listener, idle_s, LogFile(place.log, stream=sys.stderr))
    os.close(handle)
    return EXIT_READY


def _acquire_and_listen(place: WorkerPaths) -> tuple[int, Listener] | int:
    """Acquire the lock and listen, or return an exit code if another worker has it."""
    make_private(place.folder)
    make_private(place.state)
    deadline = time.monotonic() + _LOCK_TIMEOUT_S
    while (handle := acquire_lock(place.lock)) is None:
        if control_worker("ping", place) is not None:
            return EXIT_READY
        if time.monotonic() > deadline:
            return EXIT_NOT_STARTED
        time.sleep(_LOCK_RETRY_S)
    return handle, listen(place)


def _run_server(place: WorkerPaths, listener: Listener, idle_s: int, log: LogFile) -> None:
    # Slow to import: callers can already connect and wait.
    from bethink.worker.server import WorkerServer

    # The arithmetic of one query ends before a thread pool would have started.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    server = WorkerServer(place, listener, idle_s=idle_s, log=log)

    def handle_signal(number: int, _: FrameType | None) -> None:
        server.request_stop(signal.Signals(number).name)

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, handle_signal)
    server.run()


def _detach_from_parent() -> None:
    """Detach from the parent: descriptors, working folder, umask, hang-up signal."""
    os.umask(0o077)
    if sys.platform != "win32":
        os.closerange(3, 65_536)
        os.chdir("/")
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
