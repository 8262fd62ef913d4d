"""One hook call: host JSON in, host JSON out, within the deadline or not at all.

Errors are invisible to the host, which continues as if there were no memory; they are
logged. Nothing is loaded before it is clear that there is something to do.

The work runs in a child process that is killed at the deadline: a thread cannot be
ended, and a signal waits for whichever code holds the interpreter. The store survives
being killed, and the child's output is discarded.
"""

from __future__ import annotations

import json
import os
import select
import signal
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, NoReturn

_EDIT_TOOLS = frozenset({"Edit", "MultiEdit", "Write", "NotebookEdit"})


def _always(_: dict[str, Any]) -> bool:
    return True


def _is_question(payload: dict[str, Any]) -> bool:
    """Whether a prompt could be answered from memory."""
    from bethink.agents.session import needs_no_memory  # start-up time: other events do without

    prompt = payload.get("prompt")
    return isinstance(prompt, str) and not needs_no_memory(prompt)


def _is_edit(payload: dict[str, Any]) -> bool:
    tool = payload.get("tool_name")
    return isinstance(tool, str) and tool in _EDIT_TOOLS


class HookEvent(NamedTuple):
    """A hook event.

    ``limit_s`` counts from the start of the process; ``host_s`` is the timeout configured
    in the host, in whole seconds; ``handler`` names a function of the handlers module.
    ``tools`` are the host's tools it applies to.
    """

    name: str
    host_name: str
    limit_s: float
    host_s: int
    work: str
    is_wanted: Callable[[dict[str, Any]], bool] = _always
    tools: str = ""
    captures: bool = False


EVENTS = {
    event.name: event
    for event in (
        HookEvent("session-start", "SessionStart", 3.0, 5, "on_session_start"),
        HookEvent("user-prompt-submit", "UserPromptSubmit", 0.5, 5, "on_user_prompt_submit", _is_question),
        HookEvent(
            "post-tool-use", "PostToolUse", 3.0, 5, "on_post_tool_use", _is_edit,
            tools="|".join(sorted(_EDIT_TOOLS)), captures=True,
        ),
        HookEvent("stop", "Stop", 10.0, 15, "on_stop", captures=True),
        HookEvent("pre-compact", "PreCompact", 10.0, 15, "on_stop", captures=True),
        HookEvent("session-end", "SessionEnd", 1.4, 2, "on_session_end", captures=True),
    )
}  # fmt: skip

MAX_BYTES = 1024 * 1024
_PROCESS_START = time.monotonic()
_ORPHAN_GRACE_S = 1.0  # beyond its limit, for a child whose parent is not there to end it
_ASSUMED_START_S = 0.06  # an interpreter takes about this long to get here


class WorkResult(NamedTuple):
    """The answer of the work, or None and the reason it did not finish."""

    answer: str | None
    why: str = ""


def process_age_s() -> float:
    """Seconds since this process was started, interpreter start included."""
    try:
        with open("/proc/self/stat", "rb") as file:  # noqa: PTH123 - pathlib takes longer
            fields = file.read().rpartition(b")")[2].split()
        started = int(fields[19]) / os.sysconf("SC_CLK_TCK")
        return max(0.0, time.clock_gettime(time.CLOCK_BOOTTIME) - started)
    except (OSError, ValueError, IndexError, AttributeError):
        return time.monotonic() - _PROCESS_START + _ASSUMED_START_S


def elapsed_s() -> float:
    """Seconds since this module was loaded, interpreter start excluded."""
    return time.monotonic() - _PROCESS_START


def run_with_deadline(limit_s: float, work: Callable[[], str]) -> WorkResult:
    """Run the work in a child process; return its answer if it finishes in time."""
    deadline = time.monotonic() + limit_s
    if limit_s <= 0:
        return WorkResult(None, "there was no time left")
    if not hasattr(os, "fork"):
        return _run_in_thread(limit_s, work)
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        _run_child(work, writing, limit_s + _ORPHAN_GRACE_S)
    os.close(writing)
    answer = _read_until(reading, deadline)
    os.close(reading)
    if answer is None:
        os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    if answer is None:
        return WorkResult(None, f"not done within {limit_s * 1000:.0f} ms")
    if status != 0:
        return WorkResult(None, f"it ended with status {os.waitstatus_to_exitcode(status)}")
    return WorkResult(answer.decode("utf-8", "replace"))


def read_input(deadline_s: float) -> bytes | None:
    """Read standard input to its end; None if it is too long or does not end in time."""
    if sys.platform == "win32":
        return sys.stdin.buffer.read(MAX_BYTES)
    return _read_until(0, time.monotonic() + deadline_s)


def _run_child(work: Callable[[], str], write_fd: int, kill_after_s: float) -> NoReturn:
    """In the child: write the complete answer and exit; no cleanup of the parent runs."""
    code = 1
    try:
        # Where the host has killed the parent, the kernel ends the child all the same.
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.setitimer(signal.ITIMER_REAL, kill_after_s)
        silence = os.open(os.devnull, os.O_RDWR)
        for stream in (0, 1, 2):
            os.dup2(silence, stream)
        left = memoryview(work().encode("utf-8", "replace"))
        while left:
            left = left[os.write(write_fd, left) :]
        code = 0
    finally:
        os._exit(code)


def _read_until(descriptor: int, deadline: float) -> bytes | None:
    parts: list[bytes] = []
    size = 0
    while (left_s := deadline - time.monotonic()) > 0:
        if not select.select([descriptor], [], [], left_s)[0]:
            return None
        part = os.read(descriptor, 65_536)
        if not part:
            return b"".join(parts)
        parts.append(part)
        size += len(part)
        if size > MAX_BYTES:
            return None
    return None


def _run_in_thread(limit_s: float, work: Callable[[], str]) -> WorkResult:
    """Run the work on a daemon thread, where processes cannot fork."""
    from threading import Thread  # start-up time: only where it is needed

    made: list[str] = []
    thread = Thread(target=lambda: made.append(work()), daemon=True)
    thread.start()
    thread.join(limit_s)
    return (
        WorkResult(made[0])
        if made
        else WorkResult(None, f"not done within {limit_s * 1000:.0f} ms")
    )


# A host takes 2 for an order to stop what the user wanted, so a mistake here is a 1.
EXIT_USAGE = 1
DEADLINE_VARIABLE = "BETHINK_HOOK_TIMEOUT_S"
_MAX_DEADLINE_S = 600.0


def main(args: Sequence[str]) -> int:
    """Handle the event named by the arguments; 0 whatever the outcome."""
    if len(args) != 1 or args[0] not in EVENTS or sys.stdin.isatty():
        names = ", ".join(EVENTS)
        sys.stderr.write(f"bethink hook takes an event ({names}) and a host's JSON as input\n")
        return EXIT_USAGE
    event = EVENTS[args[0]]
    limit_s = _deadline_s(event)
    payload = _read_payload(event, limit_s)
    if payload is None or not event.is_wanted(payload):
        return 0
    done = run_with_deadline(limit_s - process_age_s(), lambda: _run_handler(event, payload))
    if done.answer is None:
        log_message(f"{event.name}: {done.why}")
    elif done.answer:
        _write_reply(event, done.answer)
    return 0


def log_message(message: str) -> None:
    """Append a line to the hooks log."""
    from bethink.config.paths import hooks_log, make_private_folder  # only when it is needed
    from bethink.worker.files import LogFile

    try:
        path = hooks_log()
        make_private_folder(path.parent)
    except (OSError, RuntimeError):
        return  # no home, or nowhere to write: a hook has nobody to tell
    LogFile(path, quiet=True)(message)


def _deadline_s(event: HookEvent) -> float:
    """The event's deadline, unless the environment overrides it."""
    try:
        given = float(os.environ.get(DEADLINE_VARIABLE) or event.limit_s)
    except ValueError:
        return event.limit_s
    return given if 0 < given <= _MAX_DEADLINE_S else event.limit_s


def _read_payload(event: HookEvent, limit_s: float) -> dict[str, Any] | None:
    """Read the host's JSON object; log and return None if it is invalid."""
    came = read_input(limit_s - process_age_s())
    try:
        told = None if came is None else json.loads(came)
    except (ValueError, RecursionError):
        told = None
    if not isinstance(told, dict):
        log_message(f"{event.name}: the host sent no JSON object")
        return None
    return told


def _run_handler(event: HookEvent, payload: dict[str, Any]) -> str:
    """Run the event's handler in the child process; log an error and return nothing."""
    from importlib import import_module  # start-up time: most prompts end before this

    from bethink.errors import BethinkError

    work = import_module("bethink.hooks.handlers")
    try:
        told: str = getattr(work, event.work)(payload)
    except (BethinkError, OSError) as error:
        # By its kind alone: the words of an error may hold what was stored.
        log_message(f"{event.name}: {type(error).__name__}")
        return ""
    except Exception as error:  # noqa: BLE001 - the outermost loop of this surface
        log_message(f"{event.name}: a bug in Bethink: {_error_location(error)}")
        return ""
    return told


def _error_location(error: Exception) -> str:
    """Type of an error and where it was raised."""
    import traceback  # only a bug needs it

    last = traceback.extract_tb(error.__traceback__)[-1]
    return f"{type(error).__name__} in {os.path.basename(last.filename)}:{last.lineno}"  # noqa: PTH119


def _write_reply(event: HookEvent, context: str) -> None:
    said = {"hookEventName": event.host_name, "additionalContext": context}
    body = json.dumps({"hookSpecificOutput": said, "suppressOutput": True}) + "\n"
    sys.stdout.flush()
    left = memoryview(body.encode())
    while left:
        left = left[os.write(1, left) :]
