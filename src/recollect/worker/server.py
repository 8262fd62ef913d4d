"""The worker: answers callers, works off what was handed over, and ends when it is idle."""

from __future__ import annotations

import os
import select
import socket
import sys
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import UTC, datetime
from importlib import import_module
from threading import Lock, Thread
from typing import Any

from recollect.background import Begun
from recollect.errors import RecollectError, Refused, StoreBusy
from recollect.jsonable import Json, iso
from recollect.version import __version__
from recollect.worker.carrying import BadValue
from recollect.worker.client import OTHER_ENVIRONMENT
from recollect.worker.drain import Drain, Outcome
from recollect.worker.environment import environment_of
from recollect.worker.frames import MOST_ANSWERED, MOST_ASKED, BadFrame, receive, send
from recollect.worker.hello import own_hello, read_hello
from recollect.worker.jobs import JOBS
from recollect.worker.log import Log
from recollect.worker.place import Place
from recollect.worker.settled import read_settings
from recollect.worker.shelf import Shelf
from recollect.worker.spool import Handed, Spool
from recollect.worker.transport import Listener, admit

_TICK_S = 1.0
_CALLERS = 64
_THREADS = 4
_LISTEN_S = 5.0  # for a caller to say what it wants, and to take the answer
_WIND_DOWN_S = 5.0
_LAST_WORDS_S = 1.0
_BREATH_S = 0.1
_QUIET_S = 20.0  # of nothing to do before maintenance
_MAINTAIN_EVERY_S = 60.0
_IDLE = "idle"
_NEEDED = ("recollect.memory", "numpy", "tokenizers", "recollect.store.sqlite.bits")


class Server:
    """One worker, from its first caller to its end."""

    def __init__(
        self,
        place: Place,
        listener: Listener,
        *,
        idle_s: float,
        log: Log,
        jobs: Mapping[str, Callable[[Any, Json], Any]] = JOBS,
    ) -> None:
        self._place, self._listener, self._log, self._jobs = place, listener, log, jobs
        self._idle_s = idle_s
        self._hello = own_hello()
        self._door = _identity(place)
        self._shelf = Shelf()
        self._spool = Spool(place.spool)
        self._drain = Drain(self._spool, self._perform_handed, log)
        self._pool = ThreadPoolExecutor(_THREADS, thread_name_prefix="recollect-worker")
        self._callers: list[Thread] = []
        self._bell, self._ringer = socket.socketpair()
        self._ringer.setblocking(False)
        self._since = datetime.now(UTC)
        self._turn = Lock()
        self._last = self._maintained = time.monotonic()
        self._active = self._done = self._failed = 0
        self._why = ""

    def run(self) -> None:
        """Serves until there is a reason to end."""
        self._log(f"listening, version {__version__}, idle limit {self._idle_s:.0f} s")
        self._drain.begin()
        Begun(_load)
        while not self._why:
            ready, _, _ = select.select([self._listener.sock, self._bell], [], [], self._tick())
            if self._listener.sock in ready:
                self._accept()
            self._look_around()
        self._wind_down()

    def leave(self, why: str) -> None:
        """Ends the loop; may be called from anywhere, a signal's own moment included."""
        self._why = self._why or why
        with suppress(OSError):  # rung often enough already
            self._ringer.send(b"!")

    def _tick(self) -> float:
        return min(_TICK_S, max(self._idle_s / 4, 0.05))

    def _accept(self) -> None:
        try:
            sock, _ = self._listener.sock.accept()
        except OSError as error:
            self._log(f"a call that could not be taken: {error}")
            time.sleep(_BREATH_S)  # no descriptor is left, perhaps: not in a tight loop
            return
        caller = Thread(target=self._serve, args=(sock,), name="recollect-caller", daemon=True)
        self._callers = [one for one in self._callers if one.is_alive()]
        if len(self._callers) >= _CALLERS:
            sock.close()  # too many at once: they do it themselves
            return
        try:
            caller.start()
        except RuntimeError as error:
            self._log(f"a call that could not be taken: {error}")
            sock.close()
        else:
            self._callers.append(caller)

    def _serve(self, sock: socket.socket) -> None:
        try:
            with sock:
                deadline = time.monotonic() + _LISTEN_S
                admit(sock, self._listener, deadline)
                reply = self._reply(receive(sock, MOST_ASKED, deadline))
                send(sock, reply, MOST_ANSWERED, time.monotonic() + _LISTEN_S)
        except (OSError, BadFrame) as error:
            self._log(f"a caller was lost: {error}")

    def _reply(self, request: Json) -> Json:
        """What a caller is told. Anybody may ask for an end: a program of another version
        must be able to, too."""
        if request.get("kind") == "stop":
            self.leave("asked to end")
            return {"answer": {"pid": os.getpid()}}
        hello = read_hello(request.get("hello"))
        if hello is None:
            return {"no": "hello", "told": "whoever calls must say who it is"}
        if hello != self._hello:
            self._close_door()
            self.leave("another version called")
            return {"no": "version", "told": f"the worker is of version {__version__}"}
        return self._answer(str(request.get("kind")), request)

    def _answer(self, kind: str, request: Json) -> Json:
        if kind == "ping":
            return {"answer": {"pid": os.getpid(), "version": __version__}}
        if kind == "status":
            return {"answer": self._status()}
        if kind == "wake" and not self._why:
            self._drain.wake()
            return {"answer": {}} if _is_here(request) else {"no": OTHER_ENVIRONMENT}
        return self._work(kind, request)

    def _work(self, kind: str, request: Json) -> Json:
        if kind not in self._jobs:
            return {"no": "kind", "told": f"a worker cannot {kind!r:.40}"}
        if self._why:
            return {"no": "ending", "told": "the worker is ending"}
        settings, payload = request.get("settings"), request.get("payload")
        if not isinstance(settings, dict) or not isinstance(payload, dict):
            return {"no": "request", "told": "settings and payload must be objects"}
        environment = str(request.get("environment"))
        try:
            work = self._pool.submit(
                self._perform, kind, settings, payload, environment=environment
            )
        except RuntimeError:  # the pool takes nothing new since a moment ago
            return {"no": "ending", "told": "the worker is ending"}
        return work.result()

    def _perform(
        self,
        kind: str,
        settings: Json,
        payload: Json,
        *,
        environment: str | None = None,
        asked: bool = True,
    ) -> Json:
        """One job, counted; whatever it raises is an answer, for the next caller is waiting.
        What nobody ``asked`` for does not keep a worker alive."""
        with self._turn:
            self._active += 1
        reply: Json
        try:
            reply = {"answer": self._made(kind, settings, payload, environment)}
        except StoreBusy as error:
            reply = {"no": "busy", "told": str(error)}
        except (RecollectError, BadValue, OSError) as error:
            reply = {"no": "failed", "told": str(error)}
        except Exception as error:  # noqa: BLE001 - the outermost loop: a bug ends one job
            reply = {"no": "failed", "told": f"a bug in Recollect: {type(error).__name__}"}
            self._log(f"{kind}: {type(error).__name__} at {_where(error)}")
        with self._turn:
            self._active -= 1
            self._last = time.monotonic() if asked else self._last
            self._done += "answer" in reply
            self._failed += "answer" not in reply
        return reply

    def _made(self, kind: str, settings: Json, payload: Json, environment: str | None) -> Any:
        with self._shelf.lent(settings) as memory:
            self._idle_s = memory.settings.worker_idle
            if environment not in (None, environment_of(memory.settings)):
                raise Refused("its models would be asked in another environment")
            return self._jobs[kind](memory, payload)

    def _perform_handed(self, handed: Handed) -> Outcome:
        if not _is_here(handed._asdict()):
            return "not here"  # a worker that its caller starts will do it, or the caller
        reply = self._perform(handed.kind, handed.settings, handed.payload)
        if "answer" in reply:
            return "done"
        self._log(f"{handed.kind} failed, try {handed.tries}: {reply['no']}")
        return "busy" if reply["no"] == "busy" else "failed"

    def _status(self) -> Json:
        return {
            "pid": os.getpid(),
            "version": __version__,
            "since": iso(self._since),
            "idle_s": round(0.0 if self._active else time.monotonic() - self._last, 1),
            "idle_limit_s": self._idle_s,
            "spaces": self._shelf.spaces(),
            "jobs": {
                "done": self._done,
                "failed": self._failed,
                "active": self._active,
                "queued": len(self._spool.waiting()),
                "given_up": len(self._spool.failed()),
            },
            "memory_bytes": _memory_used(),
        }

    def _look_around(self) -> None:
        """Whether there is still a reason to be here, and something to do beside."""
        idle_s = time.monotonic() - self._last
        self._shelf.look_through()
        if _identity(self._place) != self._door:
            self.leave(self._why or "the door is gone")
        elif idle_s > self._idle_s and not (self._active or self._drain.busy or self._is_called()):
            self.leave(_IDLE)
        elif idle_s > min(_QUIET_S, self._idle_s / 2) and not self._active:
            self._maintain()

    def _is_called(self) -> bool:
        """Whether somebody is just asking something, or hears the answer."""
        return any(caller.is_alive() for caller in self._callers)

    def _maintain(self) -> None:
        """A small share of maintenance, where somebody's settings want it."""
        if time.monotonic() - self._maintained < min(_MAINTAIN_EVERY_S, self._idle_s / 2):
            return
        self._maintained = time.monotonic()
        for told, settings in self._shelf.settings():
            if settings.maintain_in_background:
                self._pool.submit(self._perform, "maintain", told, {}, asked=False)

    def _close_door(self) -> None:
        """So that whoever calls next finds nobody, and starts another."""
        if _identity(self._place) == self._door:
            self._place.door.unlink(missing_ok=True)

    def _wind_down(self) -> None:
        self._log(f"ending: {self._why}")
        self._close_door()
        self._listener.sock.close()
        self._pool.shutdown(wait=False)
        deadline = time.monotonic() + _WIND_DOWN_S
        # Handed over at the last moment: the door is closed, so there will be no more.
        self._drain.end(_WIND_DOWN_S, hurry=self._why != _IDLE)
        while self._active and time.monotonic() < deadline:
            time.sleep(0.01)
        # What is answered is also told; who has said nothing so far is not waited for long.
        deadline = time.monotonic() + _LAST_WORDS_S
        for caller in self._callers:
            caller.join(max(deadline - time.monotonic(), 0.0))
        self._shelf.close()
        self._bell.close()
        self._ringer.close()


def _is_here(told: Json) -> bool:
    """Whether models would be asked in the environment of who hands something over."""
    wanted = told.get("environment")
    if not wanted:
        return True  # of models that read none of it
    try:
        return bool(wanted == environment_of(read_settings(told.get("settings"))))
    except RecollectError:
        return True  # what is amiss with the settings is told by who uses them


def _load() -> None:
    """What every memory needs, so that the first caller waits for less."""
    for name in _NEEDED:
        import_module(name)


def _identity(place: Place) -> tuple[int, int] | None:
    """Which file the door is, to know it again."""
    try:
        found = place.door.lstat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


def _where(error: BaseException) -> str:
    """The place in the code where it happened; never a value that was at hand."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    if trace is None:
        return "?"
    return f"{trace.tb_frame.f_globals.get('__name__', '?')}:{trace.tb_lineno}"


def _memory_used() -> int | None:
    """Bytes in use, or at most in use so far; None where nobody says."""
    if sys.platform == "win32":
        return None
    try:
        with open("/proc/self/statm", encoding="ascii") as file:  # noqa: PTH123
            return int(file.read().split()[1]) * os.sysconf("SC_PAGESIZE")
    except OSError:
        import resource  # not everywhere there are such files

        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return peak if sys.platform == "darwin" else peak * 1024
