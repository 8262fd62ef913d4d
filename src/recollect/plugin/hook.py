"""One call of a hook: the host's JSON comes in, the host's JSON goes out, in time or not at all.

Whatever goes wrong is silent to the host, which goes on as if there were no memory; it is
noted in a log. Loads nothing before it is clear that there is something to do.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from typing import Any

from recollect.plugin.deadline import process_age_s, read_input, within
from recollect.plugin.events import EVENTS, Event

# A host takes 2 for an order to stop what the user wanted, so a mistake here is a 1.
MISUSED = 1
LIMIT_VARIABLE = "RECOLLECT_HOOK_TIMEOUT_S"
_MOST_S = 600.0


def main(words: Sequence[str]) -> int:
    """Answers the event that the words name; 0 whatever becomes of it."""
    if len(words) != 1 or words[0] not in EVENTS or sys.stdin.isatty():
        names = ", ".join(EVENTS)
        sys.stderr.write(f"recollect hook takes an event ({names}) and a host's JSON as input\n")
        return MISUSED
    event = EVENTS[words[0]]
    limit_s = _limit_s(event)
    payload = _payload(event, limit_s)
    if payload is None or not event.is_wanted(payload):
        return 0
    done = within(limit_s - process_age_s(), lambda: _answer(event, payload))
    if done.answer is None:
        note(f"{event.name}: {done.why}")
    elif done.answer:
        _tell(event, done.answer)
    return 0


def note(told: str) -> None:
    """Adds a line to the hooks' log."""
    from recollect.places import hooks_log, make_private_folder  # only when it is needed
    from recollect.worker.log import Log

    try:
        path = hooks_log()
        make_private_folder(path.parent)
    except (OSError, RuntimeError):
        return  # no home, or nowhere to write: a hook has nobody to tell
    Log(path, quiet=True)(told)


def _limit_s(event: Event) -> float:
    """How long it may take: the event's own limit, unless somebody gives it more or less."""
    try:
        given = float(os.environ.get(LIMIT_VARIABLE) or event.limit_s)
    except ValueError:
        return event.limit_s
    return given if 0 < given <= _MOST_S else event.limit_s


def _payload(event: Event, limit_s: float) -> dict[str, Any] | None:
    """What the host says; None where that is no JSON object, which is noted."""
    came = read_input(limit_s - process_age_s())
    try:
        told = None if came is None else json.loads(came)
    except (ValueError, RecursionError):
        told = None
    if not isinstance(told, dict):
        note(f"{event.name}: the host sent no JSON object")
        return None
    return told


def _answer(event: Event, payload: dict[str, Any]) -> str:
    """In a process of its own: what the event's work gives, or nothing and a line in the log."""
    from importlib import import_module  # start-up time: most prompts end before this

    from recollect.errors import RecollectError

    work = import_module("recollect.plugin.doing")
    try:
        told: str = getattr(work, event.work)(payload)
    except (RecollectError, OSError) as error:
        # By its kind alone: the words of an error may hold what was stored.
        note(f"{event.name}: {type(error).__name__}")
        return ""
    except Exception as error:  # noqa: BLE001 - the outermost loop of this surface
        note(f"{event.name}: a bug in Recollect: {_whereabouts(error)}")
        return ""
    return told


def _whereabouts(error: Exception) -> str:
    """The kind of an error and where it was raised."""
    import traceback  # only a bug needs it

    last = traceback.extract_tb(error.__traceback__)[-1]
    return f"{type(error).__name__} in {os.path.basename(last.filename)}:{last.lineno}"  # noqa: PTH119


def _tell(event: Event, context: str) -> None:
    said = {"hookEventName": event.host_name, "additionalContext": context}
    body = json.dumps({"hookSpecificOutput": said, "suppressOutput": True}) + "\n"
    sys.stdout.flush()
    left = memoryview(body.encode())
    while left:
        left = left[os.write(1, left) :]
