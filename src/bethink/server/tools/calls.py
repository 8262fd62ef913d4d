"""Execution of tool calls: authorisation, journal actor, observers, error hiding.

Log entries of bugs hold the place and the type of an error but not its message, which may
contain stored memories. Over a network, internal errors are reported without paths.
"""

from __future__ import annotations

import logging
import signal
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import BrokenExecutor, Executor, wait
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from threading import Lock

from bethink.access.audit import audit_of
from bethink.access.people import Directory
from bethink.access.policy import OWNER, Principal, operation_of, permits, require
from bethink.core.json_values import Json
from bethink.core.registry import name_failure
from bethink.errors import (
    NOT_SAVED,
    BadProfile,
    BadSetting,
    BethinkError,
    Forbidden,
    MissingExtra,
    ModelError,
    StoreBusy,
    StoreError,
)
from bethink.memory import Memory
from bethink.server.mcp.memory_loader import MemoryLoader, settings_for
from bethink.server.parent import watch_parent
from bethink.server.telemetry import trace_call
from bethink.server.tools.catalog import RECALL
from bethink.server.tools.tool import Call, Reply, Tool, ignore_progress, validate_arguments

_log = logging.getLogger("bethink")


def log_bug(where: str, error: Exception) -> str:
    """Log the stack and type of an error without its message; return a message for the caller."""
    frames = traceback.extract_tb(error.__traceback__)
    way = " > ".join(f"{frame.filename}:{frame.lineno} {frame.name}" for frame in frames)
    _log.error("%s failed: %s at %s", where, type(error).__name__, way)
    return f"{name_failure(error)}: {type(error).__name__}"


_INTERNAL_ERRORS = (StoreError, BadSetting, BadProfile, MissingExtra, ModelError)


@contextmanager
def hide_internal_errors(principal: Principal) -> Iterator[None]:
    """Replace internal errors by generic ones, except for the owner; log the original."""
    try:
        yield
    except _INTERNAL_ERRORS as error:
        if principal is OWNER:
            raise
        _log.error("%s: %s", type(error).__name__, error.message)
        raise _public_error(error) from error


def _public_error(error: BethinkError) -> BethinkError:
    if isinstance(error, StoreBusy):
        outcome = NOT_SAVED if NOT_SAVED in error.message else ""
        return StoreBusy(f"the store is busy with other writes{outcome}", remedy="try again")
    if isinstance(error, StoreError):
        return StoreError("the store cannot be used", remedy="run bethink doctor on the server")
    if isinstance(error, ModelError):
        return ModelError("a model failed", remedy="try again")
    if isinstance(error, BadProfile):
        return BadProfile("that profile cannot be used", remedy="use another profile")
    return BadSetting("the server is not configured for this", remedy="check the server's log")


@dataclass(frozen=True)
class ToolRequest:
    """A tool call as received: the tool, its arguments, the caller and the surface."""

    tool: Tool
    arguments: Mapping[str, object]
    principal: Principal = OWNER
    client: str = ""
    via: str = "mcp"
    progress: Callable[[int, int], None] = field(default=ignore_progress)
    supports_views: bool = False


MAX_RUNNING = 64  # calls
# Called with the request and the space; what it yields is called with the answer's content.
CallObserver = Callable[[ToolRequest, str], AbstractContextManager[Callable[[Json], None]]]


class ToolExecutor:
    """Executes every tool call, whichever surface it came through.

    ``default_principal`` is the caller of requests that did not come over HTTP: the process that
    started the server or, for a server that only listens on a network, ANONYMOUS. ``pool`` takes
    the work of recalls for programs. A call that its caller gave up counts as running until it
    has ended, so that there are never more than MAX_RUNNING.
    """

    def __init__(
        self,
        loader: MemoryLoader,
        observers: Sequence[CallObserver] = (),
        *,
        default_principal: Principal = OWNER,
        pool: ReadPool | None = None,
        people: Directory | None = None,
        audits: bool = True,
    ) -> None:
        self.loader, self.default_principal, self._pool = loader, default_principal, pool
        self.people, self._audit = people, audit_of(loader.settings) if audits else None
        self._observers = (trace_call, *observers)
        self._lock, self._running = Lock(), 0

    def memory_for(self, principal: Principal, *, writing: bool = False) -> Memory:
        """Return the memory with a principal as the actor of its journal."""
        with hide_internal_errors(principal):
            if self._audit is not None and principal is not OWNER:
                self._audit.note(principal, "", "export or import" if writing else "resource", ())
            return for_caller(self.loader.memory(writing=writing), principal, self.people)

    def __call__(self, request: ToolRequest, *, for_program: bool = False) -> Reply:
        """Run a tool and return its reply, truncated for models unless ``for_program``."""
        tool = request.tool
        require(request.principal, operation_of(tool.operation or tool.name, request.arguments))
        arguments = validate_arguments(request.arguments, tool.input_schema)
        with self._counted(), ExitStack() as stack:
            stack.enter_context(hide_internal_errors(request.principal))
            opened = self.loader.memory(writing=not tool.read_only)
            memory = for_caller(opened, request.principal, self.people)
            context = (
                request.client,
                request.via,
                request.progress,
                request.supports_views,
                for_program,
                permits(request.principal, "recall with mark_accessed"),
            )
            call = Call(memory, arguments, *context)
            space = memory.store.space
            callbacks = [
                stack.enter_context(observer(request, space)) for observer in self._observers
            ]
            reply = self._pool.answer(request) if self._pool and for_program else None
            if reply is None:
                reply = tool.run_untruncated(call) if for_program else tool(call)
            for callback in callbacks:
                callback(reply.content)
            shows = tool.read_only or reply.content.get("done") is False  # or is a preview
            if self._audit is not None and shows and request.principal is not OWNER:
                self._audit.note(request.principal, request.client, tool.name, reply.content)
        return reply

    @contextmanager
    def _counted(self) -> Iterator[None]:
        with self._lock:
            if self._running >= MAX_RUNNING:
                raise StoreBusy("too many calls are still running", remedy="try again")
            self._running += 1
        try:
            yield
        finally:
            with self._lock:
                self._running -= 1


class ReadPool:
    """Processes that answer recalls for programs: in one process Python keeps to one core.

    Rights, limits, sessions and metrics stay with the server that starts them. ``space`` and
    ``store`` name the memory that each of them opens for itself.
    """

    def __init__(
        self, workers: int, space: str | None, store: str | None, *, timeout_s: float
    ) -> None:
        self._timeout_s = timeout_s
        self._start = partial(_start_processes, workers, space, store)
        self._lock, self._processes = Lock(), self._start()

    def close(self) -> None:
        """End the processes, and wait for them: what they share with this one is freed."""
        self._processes.shutdown(cancel_futures=True)

    def answer(self, request: ToolRequest) -> Reply | None:
        """Return the reply to a recall; None for other tools, and where a process was killed.

        One that no process began in time is taken back: its caller has been told by then. One
        that was begun is waited for, so that it counts as running.
        """
        if request.tool.name != _POOLED_TOOL:
            return None
        processes = self._processes
        arguments = (dict(request.arguments), request.principal, request.client, request.via)
        try:
            future = processes.submit(_answer_recall, *arguments)
            wait([future], self._timeout_s)
            if future.cancel():
                raise TimeoutError(f"no process was free within {self._timeout_s:g} seconds")
            return future.result()
        except BrokenExecutor:
            with self._lock:
                if self._processes is processes:
                    self._processes = self._start()
            return None


_POOLED_TOOL = "recall"
_executors: list[ToolExecutor] = []  # the one of a process in a pool


def _start_processes(workers: int, space: str | None, store: str | None) -> Executor:
    from concurrent.futures import ProcessPoolExecutor  # start-up time: seldom needed
    from multiprocessing import get_context

    # Not forked: the server has threads and open connections.
    return ProcessPoolExecutor(
        workers, get_context("spawn"), initializer=_open_in_process, initargs=(space, store)
    )


def _open_in_process(space: str | None, store: str | None) -> None:
    """Open the memory in a process of a pool, which ends with the server."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a terminal sends it to the server as well
    watch_parent()
    loader = MemoryLoader(settings_for(space, store=store))
    loader.start()
    _executors.append(ToolExecutor(loader, people=Directory(), audits=False))


def _answer_recall(
    arguments: Mapping[str, object], principal: Principal, client: str, via: str
) -> Reply:
    request = ToolRequest(RECALL, arguments, principal, client=client, via=via)
    return _executors[0](request, for_program=True)


def for_caller(memory: Memory, principal: Principal, people: Directory | None = None) -> Memory:
    """Return the memory as a caller may see it, with the caller as the actor of its journal.

    It holds nothing above the classification that the settings allow, and for a person what
    is theirs to see. An undo without an id takes back the last change of the same actor. The
    code of memories is only looked at for those who may read the project's files.
    """
    if not permits(principal, "read_smart"):
        memory = memory.using(settings=replace(memory.settings, project=None))
    if principal.person:
        from bethink.people import PersonMemory, Seat  # start-up time: most are alone

        if people is None:
            raise Forbidden("there are no people here", scope="")
        return PersonMemory(memory, Seat(people.get(principal.person), principal.right, people))
    memory = memory.below(memory.settings.max_classification)
    if principal is OWNER:
        return memory
    actor = f"{memory.settings.actor}:{principal.name}"
    return memory.using(settings=replace(memory.settings, actor=actor))
