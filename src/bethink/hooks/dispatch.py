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
from contextlib import suppress
from functools import cache
from typing import TYPE_CHECKING, NoReturn

from bethink.core.named_tuple import NamedTuple

if TYPE_CHECKING:  # start-up time: many prompts end before anything is needed
    from bethink.core.json_values import Json

_EDIT_TOOLS = frozenset({"Edit", "MultiEdit", "Write", "NotebookEdit"})
_TOOLS = "|".join(sorted((*_EDIT_TOOLS, "Bash")))
# In the output of a command that hides its exit code, as `pytest | tail` does.
_FAILURE_SIGNS = ("FAILED", "Traceback", "Error", "error", "fatal", "panic", "ERR!", " failed")


def _always(_: Json) -> bool:
    return True


def _is_question(payload: Json) -> bool:
    """Whether a prompt could be answered from memory."""
    from bethink.importers.turn_text import needs_no_memory  # start-up time: only for this event

    prompt = payload.get("prompt")
    return isinstance(prompt, str) and not needs_no_memory(prompt)


def _is_edit_or_failure(payload: Json) -> bool:
    tool = payload.get("tool_name")
    if tool == "Bash":
        return any(sign in str(payload.get("tool_response")) for sign in _FAILURE_SIGNS)
    return isinstance(tool, str) and tool in _EDIT_TOOLS


def _adds_something(payload: Json) -> bool:
    """Whether a call edits a file, or its command may install something."""
    tool, given = payload.get("tool_name"), payload.get("tool_input")
    if tool == "Bash":
        command = str(given.get("command")) if isinstance(given, dict) else ""
        return any(verb in command for verb in (" install", " add ", " i ", " get ", " require "))
    return isinstance(tool, str) and tool in _EDIT_TOOLS


class HookEvent(NamedTuple):
    """A hook event.

    ``limit_s`` counts from the start of the process, on an idle machine; ``host_s`` is the
    timeout configured in the host, in whole seconds; ``handler`` names a function of the
    handlers module. ``tools`` are the host's tools it applies to.
    """

    name: str
    host_name: str
    limit_s: float
    host_s: int
    handler: str
    is_needed: Callable[[Json], bool] = _always
    tools: str = ""
    captures: bool = False


EVENTS = {
    event.name: event
    for event in (
        HookEvent("session-start", "SessionStart", 3.0, 15, "on_session_start"),
        HookEvent(
            "user-prompt-submit", "UserPromptSubmit", 2.0, 10, "on_user_prompt_submit",
            _is_question,
        ),
        HookEvent(
            "pre-tool-use", "PreToolUse", 1.0, 5, "on_tool_use", _adds_something, tools=_TOOLS,
        ),
        HookEvent(
            "post-tool-use", "PostToolUse", 3.0, 5, "on_post_tool_use", _is_edit_or_failure,
            tools=_TOOLS, captures=True,
        ),
        HookEvent(
            "post-tool-use-failure", "PostToolUseFailure", 1.0, 5, "on_tool_use", tools="Bash",
        ),
        HookEvent("stop", "Stop", 10.0, 15, "on_stop", captures=True),
        HookEvent("pre-compact", "PreCompact", 10.0, 15, "on_stop", captures=True),
        HookEvent("session-end", "SessionEnd", 1.4, 2, "on_session_end", captures=True),
    )
}  # fmt: skip

MAX_BYTES = 1024 * 1024
_PROCESS_START = time.monotonic()
_ORPHAN_GRACE_S = 1.0  # beyond its limit, for a child whose parent was killed
_ASSUMED_START_S = 0.06  # typical start-up time of the interpreter
_MIN_START_S = 0.02
_BUSY_RATIO = 1.8  # reading files from a cold disk gives as much
_MAX_SLOWNESS = 16.0
_HOST_MARGIN_S = 2.0  # of the host's own timeout, which is not stretched


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


@cache
def slowness() -> float:
    """How many times slower than an idle machine this one is; 1 if it is not busy.

    Measured once, when a call begins: the wall-clock time of its start by the processor time,
    or the processes that wait for each processor, whichever is more.
    """
    ratio = process_age_s() / max(time.process_time(), _MIN_START_S)
    with suppress(OSError, AttributeError):  # not on every system
        ratio = max(ratio, os.getloadavg()[0] / (os.cpu_count() or 1))
    return 1.0 if ratio < _BUSY_RATIO else min(ratio, _MAX_SLOWNESS)


def run_with_deadline(limit_s: float, work: Callable[[], str]) -> WorkResult:
    """Run the work in a child process; return its answer if it finishes in time."""
    deadline = time.monotonic() + limit_s
    if limit_s <= 0:
        return WorkResult(None, "no time left")
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
        return WorkResult(None, f"missed its deadline of {limit_s * 1000:.0f} ms")
    if status != 0:
        return WorkResult(None, f"ended with status {os.waitstatus_to_exitcode(status)}")
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
        # If the host has killed the parent, the kernel still ends the child.
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.setitimer(signal.ITIMER_REAL, kill_after_s)
        silence = os.open(os.devnull, os.O_RDWR)
        for stream in (0, 1, 2):
            os.dup2(silence, stream)
        unsent = memoryview(work().encode("utf-8", "replace"))
        while unsent:
            unsent = unsent[os.write(write_fd, unsent) :]
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
    from threading import Thread  # start-up time: only without fork

    answers: list[str] = []
    thread = Thread(target=lambda: answers.append(work()), daemon=True)
    thread.start()
    thread.join(limit_s)
    return (
        WorkResult(answers[0])
        if answers
        else WorkResult(None, f"missed its deadline of {limit_s * 1000:.0f} ms")
    )


# Hosts take exit code 2 as an order to block the user's action, so usage errors are 1.
EXIT_USAGE = 1
DEADLINE_VARIABLE = "BETHINK_HOOK_TIMEOUT_S"
_MAX_DEADLINE_S = 600.0


def main(args: Sequence[str]) -> int:
    """Handle the event named by the arguments; 0 whatever the outcome."""
    if len(args) != 1 or args[0] not in EVENTS or sys.stdin.isatty():
        sys.stderr.write(
            "bethink hook needs one event and the host's JSON on standard input\n"
            "bethink hook --help lists the events\n"
        )
        return EXIT_USAGE
    event = EVENTS[args[0]]
    limit_s = _deadline_s(event)
    payload = _read_payload(event, limit_s)
    if payload is None or not event.is_needed(payload):
        return 0
    result = run_with_deadline(limit_s - process_age_s(), lambda: _run_handler(event, payload))
    if result.answer is None:
        log_message(f"{event.name}: {result.why}{_describe_slowness()}")
    elif result.answer:
        _write_reply(event, result.answer)
    return 0


def log_message(message: str) -> None:
    """Append a line to the hooks log."""
    from bethink.config.paths import hooks_log, make_private_folder  # only on errors
    from bethink.worker.files import LogFile

    try:
        path = hooks_log()
        make_private_folder(path.parent)
    except (OSError, RuntimeError):
        return  # no home folder, or not writable: there is no other place to report to
    LogFile(path, quiet=True)(message)


def _deadline_s(event: HookEvent) -> float:
    """The event's deadline, longer on a busy machine, unless the environment overrides it."""
    longest_s = max(event.limit_s, event.host_s - _HOST_MARGIN_S)
    return given_deadline_s(min(event.limit_s * slowness(), longest_s))


def given_deadline_s(usual_s: float) -> float:
    """The deadline that the environment gives, or the usual one."""
    try:
        limit_s = float(os.environ.get(DEADLINE_VARIABLE) or usual_s)
    except ValueError:
        return usual_s
    return limit_s if 0 < limit_s <= _MAX_DEADLINE_S else usual_s


def _read_payload(event: HookEvent, limit_s: float) -> Json | None:
    """Read the host's JSON object; log and return None if it is invalid."""
    data = read_input(limit_s - process_age_s())
    if data is None:
        log_message(f"{event.name}: the host's input was too long or late{_describe_slowness()}")
        return None
    try:
        payload = json.loads(data)
    except (ValueError, RecursionError):
        payload = None
    if not isinstance(payload, dict):
        log_message(f"{event.name}: received no JSON object from the host")
        return None
    return {"hook_event_name": event.host_name, **payload}  # not every caller names the event


def _describe_slowness() -> str:
    """Say how busy the machine is, where that explains a missed deadline."""
    return f"; the machine is {slowness():.0f} times slower than idle" if slowness() > 1 else ""


def _run_handler(event: HookEvent, payload: Json) -> str:
    """Run the event's handler in the child process; log an error and return nothing."""
    from importlib import import_module  # start-up time: most prompts end before this

    from bethink.errors import BethinkError

    handlers = import_module("bethink.hooks.handlers")
    try:
        context: str = getattr(handlers, event.handler)(payload)
    except (BethinkError, OSError) as error:
        # Only the type: the message of an error may contain stored text.
        log_message(f"{event.name}: {type(error).__name__}")
        return ""
    except Exception as error:  # noqa: BLE001 - the outermost handler of a hook
        from bethink.core.registry import name_failure  # only on errors

        log_message(f"{event.name}: {name_failure(error)}: {_error_location(error)}")
        return ""
    return context


def _error_location(error: Exception) -> str:
    """Type of an error and where it was raised."""
    import traceback  # only on errors

    last = traceback.extract_tb(error.__traceback__)[-1]
    return f"{type(error).__name__} in {os.path.basename(last.filename)}:{last.lineno}"  # noqa: PTH119


def _write_reply(event: HookEvent, context: str) -> None:
    output = {"hookEventName": event.host_name, "additionalContext": context}
    body = json.dumps({"hookSpecificOutput": output, "suppressOutput": True}) + "\n"
    sys.stdout.flush()
    unsent = memoryview(body.encode())
    while unsent:
        unsent = unsent[os.write(1, unsent) :]
