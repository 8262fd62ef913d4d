"""The worker: its jobs, a pool of open memories, and the loop that answers requests."""

from __future__ import annotations

import json
import os
import select
import socket
import sys
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache, partial
from importlib import import_module
from pathlib import Path
from threading import Lock, Thread
from typing import TYPE_CHECKING

from bethink.config.spaces import resolve_space
from bethink.core.blas import share_memory_between_threads
from bethink.core.json_values import Json, iso
from bethink.core.lazy import BackgroundCall
from bethink.core.registry import import_object, name_failure, without_own_classes
from bethink.core.sparse_log import SparseLog
from bethink.errors import BethinkError, MissingExtra, ModelError, Refused, StoreBusy
from bethink.models import open_embedder
from bethink.models.rerank import reranker_provider
from bethink.ports import is_remote
from bethink.version import __version__
from bethink.worker import environment_hash, transport
from bethink.worker.client import OTHER_ENVIRONMENT, settings_from_json
from bethink.worker.files import LogFile, WorkerPaths
from bethink.worker.spool import JobOutcome, QueuedJob, Spool, SpoolWorker

if TYPE_CHECKING:
    from bethink.config.settings import Settings
    from bethink.memory import Memory


Job = Callable[["Memory", Json], Json | str]  # what it returns is JSON
_MAINTENANCE_STEPS = 20  # steps of one background maintenance run
_VECTORS_AT_ONCE = 1_000  # some seconds on one core


def _query_job(kind: str, memory: Memory, payload: Json) -> Json:
    """Answer a question of the command line, a layer above."""
    named = payload["query"]["options"].get("reranker", "")
    provider = reranker_provider(named)
    is_set = named == memory.settings.reranker  # then the environments were compared
    if provider is not None and provider.env_prefixes and not is_set:
        raise Refused("this reranker needs the caller's environment")
    answer: Json = import_object("bethink.cli.queries:answer_for_caller")(memory, kind, payload)
    return answer


def _job_of(place: str) -> Job:
    """Return a job that is imported when it is run: most workers do few kinds."""

    def run(memory: Memory, payload: Json) -> Json | str:
        answer: Json | str = import_object(place)(memory, payload)
        return answer

    return run


def _capture_job(memory: Memory, payload: Json) -> Json:
    from bethink.agents.capture import capture  # only used by hooks

    path, session, host = (payload[name] for name in ("transcript", "session", "host"))
    return capture(memory, Path(path), session=session, host=host)._asdict()


def _edits_job(memory: Memory, payload: Json) -> Json:
    from bethink.agents.capture import capture_edits  # only used by hooks

    path = Path(payload["transcript"])
    return {"edits": capture_edits(memory, path, session=payload["session"])}


def _warm_up_job(memory: Memory, _: Json) -> Json:
    """Load the models, so that the next request need not wait for them."""
    try:
        if memory.embedder is not None:
            memory.embedder.embed_query("ready")
        if memory.reranker is not None:
            memory.reranker("ready", ["ready"])
    except (ModelError, MissingExtra) as error:
        return {"loaded": False, "message": error.message}
    return {"loaded": True}


def _maintenance_job(memory: Memory, _: Json) -> Json:
    report = memory.maintain_due(most_steps=_MAINTENANCE_STEPS)
    return {"run": report.run if report is not None else None}


def _vectors_job(memory: Memory, _: Json) -> Json:
    """Make some of the vectors that are missing, as after an upgrade; no server is asked."""
    from bethink.maintain.entities import embed_stored  # most workers never need it

    embedder = memory.embedder
    if embedder is None or is_remote(embedder):
        return {"vectors": 0}
    items = memory.store.vectors.unembedded(embedder.model, _VECTORS_AT_ONCE)
    embed_stored(items, memory.store, embedder)
    return {"vectors": len(items)}


def _sync_job(memory: Memory, _: Json) -> Json:
    """Sync with all targets of before, whatever one of them says."""
    failed = {}
    for one in memory.sync_status()["targets"]:
        try:
            memory.sync_with(one["target"])
        except BethinkError as error:
            failed[one["target"]] = error.message
    return {"failed": failed}


JOBS: Mapping[str, Job] = {
    **{kind: partial(_query_job, kind) for kind in ("recall", "why-not", "compare")},
    "tool": _job_of("bethink.server.mcp.worker_calls:call_for_server"),
    "prompt": _job_of("bethink.agents.prompt:prompt_context"),
    "brief": _job_of("bethink.agents.briefing:briefing"),
    "unasked": _job_of("bethink.agents.unasked:unasked_note"),
    "capture": _capture_job,
    "edits": _edits_job,
    "warm": _warm_up_job,
    "maintain": _maintenance_job,
    "vectors": _vectors_job,
    "sync": _sync_job,
}


MAX_OPEN_MEMORIES = 4
_MAX_MODELS = 2


@dataclass(slots=True)
class _PooledMemory:
    """An open memory, the identity of its file, and its number of users."""

    memory: Memory
    path: Path
    file: tuple[int, int] | None
    users: int = 0
    stale: bool = False


class MemoryPool:
    """An LRU pool of open memories, keyed by the caller's settings. Thread-safe."""

    def __init__(self, max_open: int = MAX_OPEN_MEMORIES) -> None:
        self._max_open = max_open
        self._pooled: OrderedDict[str, _PooledMemory] = OrderedDict()
        # One embedder for all spaces that use it, so that it is loaded once.
        self._embedder = lru_cache(_MAX_MODELS)(open_embedder)
        self._lock = Lock()
        # A separate lock: opening a store may be slow, and must not block open ones.
        self._open_lock = Lock()

    @contextmanager
    def borrow(self, settings_json: Json) -> Iterator[Memory]:
        """Lend the memory for a caller's settings; it stays open meanwhile."""
        entry = self._acquire(settings_json)
        try:
            yield entry.memory
        finally:
            self._release(entry)

    def spaces(self) -> list[str]:
        """The files of the open spaces, each once."""
        with self._lock:
            return sorted({str(entry.path) for entry in self._pooled.values()})

    def settings(self) -> list[tuple[Json, Settings]]:
        """The settings of the open memories, least recently used first."""
        with self._lock:
            return [(json.loads(key), entry.memory.settings) for key, entry in self._pooled.items()]

    def evict_replaced(self) -> None:
        """Evict memories whose file was removed or replaced."""
        with self._lock:
            for entry in self._pooled.values():
                entry.stale = _file_identity(entry.path) != entry.file
            self._evict_stale()

    def close(self) -> None:
        """Close the unused memories; the rest ends with the process."""
        with self._lock:
            for entry in self._pooled.values():
                entry.stale = True
            self._evict_stale()

    def _acquire(self, settings_json: Json) -> _PooledMemory:
        key = json.dumps(settings_json, sort_keys=True)
        entry = self._find_open(key)
        if entry is None:
            with self._open_lock:
                entry = self._find_open(key) or self._add(key, self._open_memory(settings_json))
        return entry

    def _find_open(self, key: str) -> _PooledMemory | None:
        """Return the open memory for a key, if its file is still the same."""
        with self._lock:
            entry = self._pooled.get(key)
            if entry is None:
                return None
            if _file_identity(entry.path) != entry.file:
                entry.stale = True
                self._evict_stale()
                return None
            entry.users += 1
            self._pooled.move_to_end(key)
            return entry

    def _add(self, key: str, pooled: _PooledMemory) -> _PooledMemory:
        with self._lock:
            pooled.users += 1
            self._pooled[key] = pooled
            for old in list(self._pooled.values())[: -self._max_open]:
                old.stale = True
            self._evict_stale()
            return pooled

    def _release(self, pooled: _PooledMemory) -> None:
        with self._lock:
            pooled.users -= 1
            if pooled.stale and not pooled.users:
                pooled.memory.close()
                self._evict_stale()

    def _evict_stale(self) -> None:
        """Remove stale memories from the pool; those in use are closed on release."""
        for key in [key for key, entry in self._pooled.items() if entry.stale]:
            entry = self._pooled.pop(key)
            if not entry.users:
                entry.memory.close()

    def _open_memory(self, settings_json: Json) -> _PooledMemory:
        from bethink.memory import Memory  # slow to import

        settings = settings_from_json(settings_json)
        path = resolve_space(None, settings).path
        memory = Memory.open(settings=settings, embedder=self._embedder(settings.embedder))
        return _PooledMemory(memory, path, _file_identity(path))


def _file_identity(path: Path) -> tuple[int, int] | None:
    """Device and inode of a file, to detect a replacement."""
    try:
        found = os.stat(path)  # noqa: PTH116 - called for every request
    except OSError:
        return None
    return found.st_dev, found.st_ino


_TICK_S = 1.0
_MAX_CALLERS = 64
_THREADS = 4
_CALLER_TIMEOUT_S = 5.0  # for a caller to send its request, and to receive the answer
_SHUTDOWN_TIMEOUT_S = 5.0
_CALLER_JOIN_TIMEOUT_S = 1.0
_ACCEPT_RETRY_S = 0.1
_IDLE_BEFORE_MAINTENANCE_S = 20.0  # idle time before maintenance
_MAINTAIN_EVERY_S = 60.0
_IDLE_REASON = "idle"
_PRELOADED_MODULES = ("bethink.memory", "numpy", "bethink.store.sql.search.vector_index")


class WorkerServer:
    """One worker, from its first caller to its exit."""

    def __init__(
        self,
        place: WorkerPaths,
        listener: transport.Listener,
        *,
        idle_s: float,
        log: LogFile,
        jobs: Mapping[str, Job] = JOBS,
    ) -> None:
        self._paths, self._listener, self._log, self._jobs = place, listener, log, jobs
        self._log_refused, self._log_lost = SparseLog(log), SparseLog(log)
        self._idle_s = idle_s
        self._handshake = transport.own_handshake()
        self._socket_identity = _file_identity(place.socket_path)
        self._memories = MemoryPool()
        self._spool = Spool(place.spool)
        self._spool_worker = SpoolWorker(self._spool, self._run_queued_job, log)
        self._pool = ThreadPoolExecutor(_THREADS, thread_name_prefix="bethink-worker")
        self._callers: list[Thread] = []
        self._wake_socket, self._wake_sender = socket.socketpair()
        self._wake_sender.setblocking(False)
        self._since = datetime.now(UTC)
        self._lock = Lock()
        self._last = self._maintained = time.monotonic()
        self._active = self._done = self._failed = 0
        self._stop_reason = ""

    def run(self) -> None:
        """Serve until there is a reason to stop."""
        share_memory_between_threads()
        self._log(f"listening, version {__version__}, idle limit {self._idle_s:.0f} s")
        self._spool_worker.begin()
        BackgroundCall(_preload_modules)
        while not self._stop_reason:
            ready, _, _ = select.select(
                [self._listener.sock, self._wake_socket],
                [],
                [],
                min(_TICK_S, max(self._idle_s / 4, 0.05)),
            )
            if self._listener.sock in ready:
                self._accept()
            self._check_idle()
        self._shut_down()

    def request_stop(self, reason: str) -> None:
        """Stop the loop; safe to call from any thread and from a signal handler."""
        self._stop_reason = self._stop_reason or reason
        with suppress(OSError):  # the buffer is full of wake-ups already
            self._wake_sender.send(b"!")

    def _accept(self) -> None:
        try:
            sock, _ = self._listener.sock.accept()
        except OSError as error:
            self._log_refused(f"could not accept a connection: {error}")
            time.sleep(_ACCEPT_RETRY_S)  # perhaps out of descriptors: do not retry in a tight loop
            return
        caller = Thread(target=self._serve_caller, args=(sock,), name="bethink-caller", daemon=True)
        self._callers = [thread for thread in self._callers if thread.is_alive()]
        if len(self._callers) >= _MAX_CALLERS:
            self._log_refused(f"there are more than {_MAX_CALLERS} callers at once")
            sock.close()  # the caller works without the worker
            return
        try:
            caller.start()
        except RuntimeError as error:
            self._log_refused(f"could not accept a connection: {error}")
            sock.close()
        else:
            self._callers.append(caller)

    def _serve_caller(self, sock: socket.socket) -> None:
        try:
            with sock:
                deadline = time.monotonic() + _CALLER_TIMEOUT_S
                transport.authorize_caller(sock, self._listener, deadline)
                asked = transport.receive_message(sock, transport.MAX_REQUEST_BYTES, deadline)
                reply = self._reply(asked)
                transport.send_message(
                    sock, reply, transport.MAX_REPLY_BYTES, time.monotonic() + _CALLER_TIMEOUT_S
                )
        except OSError as error:
            self._log_lost(f"lost a caller: {error}")

    def _reply(self, request: Json) -> Json:
        """Reply to a caller. Any caller may request a stop, even one of another version."""
        if request.get("kind") == "stop":
            self.request_stop("stop requested")
            return {"answer": {"pid": os.getpid()}}
        hello = request.get("hello")
        if not isinstance(hello, list) or len(hello) != len(self._handshake):
            return {"error": "hello", "message": "the request has no valid handshake"}
        if hello != self._handshake:
            self._remove_socket()
            self.request_stop("another version called")
            return {"error": "version", "message": f"the worker runs version {__version__}"}
        return self._answer(str(request.get("kind")), request)

    def _answer(self, kind: str, request: Json) -> Json:
        if kind == "ping":
            return {"answer": {"pid": os.getpid(), "version": __version__}}
        if kind == "status":
            return {"answer": self._status()}
        if kind == "wake" and not self._stop_reason:
            self._spool_worker.wake()
            return {"answer": {}} if _environment_matches(request) else {"error": OTHER_ENVIRONMENT}
        return self._submit_job(kind, request)

    def _submit_job(self, kind: str, request: Json) -> Json:
        if kind not in self._jobs:
            return {"error": "kind", "message": f"unknown kind of job {kind!r:.40}"}
        if self._stop_reason:
            return {"error": "ending", "message": "the worker is stopping"}
        settings, payload = request.get("settings"), request.get("payload")
        if not isinstance(settings, dict) or not isinstance(payload, dict):
            return {"error": "request", "message": "settings and payload must be objects"}
        environment = str(request.get("environment"))
        try:
            future = self._pool.submit(
                self._run_job, kind, settings, payload, environment=environment
            )
        except RuntimeError:  # the pool was shut down a moment ago
            return {"error": "ending", "message": "the worker is stopping"}
        return future.result()

    def _run_job(
        self,
        kind: str,
        settings: Json,
        payload: Json,
        *,
        environment: str | None = None,
        counts_as_activity: bool = True,
    ) -> Json:
        """Run one job and count it; an exception becomes a reply.

        Only a job that ``counts_as_activity`` resets the idle timer.
        """
        with self._lock:
            self._active += 1
        reply: Json
        try:
            reply = {"answer": self._execute(kind, settings, payload, environment)}
        except StoreBusy as error:
            reply = {"error": "busy", "message": str(error)}
        except (BethinkError, OSError) as error:
            reply = {"error": "failed", "message": str(error)}
        except Exception as error:  # noqa: BLE001 - the outermost handler: a bug ends one job
            reply = {"error": "failed", "message": f"{name_failure(error)}: {type(error).__name__}"}
            self._log(f"{kind}: {type(error).__name__} at {_error_location(error)}")
        with self._lock:
            self._active -= 1
            self._last = time.monotonic() if counts_as_activity else self._last
            self._done += "answer" in reply
            self._failed += "answer" not in reply
        return reply

    def _execute(
        self, kind: str, settings: Json, payload: Json, environment: str | None
    ) -> Json | str:
        with self._memories.borrow(settings) as memory:
            self._idle_s = memory.settings.worker_idle
            if environment is None:
                return self._jobs[kind](memory, payload)
            if environment != environment_hash(memory.settings):
                raise Refused("the worker runs in another environment")
            with without_own_classes():  # the caller does without us
                return self._jobs[kind](memory, payload)

    def _run_queued_job(self, job: QueuedJob) -> JobOutcome:
        if not _environment_matches(job._asdict()):
            return "not here"  # the caller, or a worker that it starts, will run it
        reply = self._run_job(job.kind, job.settings, job.payload)
        if "answer" in reply:
            return "done"
        self._log(f"{job.kind} failed, attempt {job.tries}: {reply['error']}")
        return "busy" if reply["error"] == "busy" else "failed"

    def _status(self) -> Json:
        return {
            "pid": os.getpid(),
            "version": __version__,
            "since": iso(self._since),
            "idle_s": round(0.0 if self._active else time.monotonic() - self._last, 1),
            "idle_limit_s": self._idle_s,
            "spaces": self._memories.spaces(),
            "jobs": {
                "done": self._done,
                "failed": self._failed,
                "active": self._active,
                "queued": len(self._spool.waiting()),
                "given_up": len(self._spool.failed()),
            },
            "memory_bytes": _process_memory_bytes(),
        }

    def _check_idle(self) -> None:
        """Stop if idle or replaced; run maintenance when there is nothing else to do."""
        idle_s = time.monotonic() - self._last
        self._memories.evict_replaced()
        if _file_identity(self._paths.socket_path) != self._socket_identity:
            self.request_stop(self._stop_reason or "the socket was removed")
        elif idle_s > self._idle_s and not (
            self._active
            or self._spool_worker.busy
            or any(caller.is_alive() for caller in self._callers)
        ):
            self.request_stop(_IDLE_REASON)
        elif idle_s > min(_IDLE_BEFORE_MAINTENANCE_S, self._idle_s / 2) and not self._active:
            self._maintain()

    def _maintain(self) -> None:
        """Make missing vectors, and run a small share of what the settings allow."""
        if time.monotonic() - self._maintained < min(_MAINTAIN_EVERY_S, self._idle_s / 2):
            return
        self._maintained = time.monotonic()
        due = [
            (job, settings_json)
            for settings_json, settings in self._memories.settings()
            for job, is_wanted in (
                ("sync", settings.sync_in_background),
                ("maintain", settings.maintain_in_background),
                ("vectors", True),
            )
            if is_wanted
        ]
        if due:
            self._pool.submit(self._maintain_in_turn, due)

    def _maintain_in_turn(self, due: list[tuple[str, Json]]) -> None:
        """Maintain memories in one thread: the others are for callers."""
        for job, settings_json in due:
            if not self._stop_reason:
                self._run_job(job, settings_json, {}, counts_as_activity=False)

    def _remove_socket(self) -> None:
        """Remove the socket, so that the next caller starts another worker."""
        if _file_identity(self._paths.socket_path) == self._socket_identity:
            self._paths.socket_path.unlink(missing_ok=True)

    def _shut_down(self) -> None:
        self._log(f"ending: {self._stop_reason}")
        self._remove_socket()
        self._listener.sock.close()
        self._pool.shutdown(wait=False)
        deadline = time.monotonic() + _SHUTDOWN_TIMEOUT_S
        # The socket is closed: run the jobs that were queued last.
        self._spool_worker.end(_SHUTDOWN_TIMEOUT_S, skip_queued=self._stop_reason != _IDLE_REASON)
        while self._active and time.monotonic() < deadline:
            time.sleep(0.01)
        # Let answers be sent; do not wait long for silent callers.
        deadline = time.monotonic() + _CALLER_JOIN_TIMEOUT_S
        for caller in self._callers:
            caller.join(max(deadline - time.monotonic(), 0.0))
        self._memories.close()
        self._wake_socket.close()
        self._wake_sender.close()


def _environment_matches(request: Json) -> bool:
    """Whether the worker's environment equals the caller's for the configured models."""
    expected = request.get("environment")
    if not expected:
        return True  # the models read no environment variables
    try:
        return bool(expected == environment_hash(settings_from_json(request.get("settings"))))
    except BethinkError:
        return True  # invalid settings are reported where they are used


def _preload_modules() -> None:
    """Import the modules that every memory needs, so that the first caller waits less."""
    for name in _PRELOADED_MODULES:
        import_module(name)


def _error_location(error: BaseException) -> str:
    """Module and line where an error was raised; never any value."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    if trace is None:
        return "?"
    return f"{trace.tb_frame.f_globals.get('__name__', '?')}:{trace.tb_lineno}"


def _process_memory_bytes() -> int | None:
    """Resident memory in bytes, or its peak; None where it is not available."""
    if sys.platform == "win32":
        return None
    try:
        with open("/proc/self/statm", encoding="ascii") as file:  # noqa: PTH123
            return int(file.read().split()[1]) * os.sysconf("SC_PAGESIZE")
    except OSError:
        import resource  # no /proc on this system

        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return peak if sys.platform == "darwin" else peak * 1024
