"""Asks the worker, and does without it wherever anything is amiss.

Imports nothing heavy: a call that the worker answers must not pay for what it spares.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from recollect.errors import RecollectError
from recollect.jsonable import Json
from recollect.settable import Settings
from recollect.worker.environment import environment_of
from recollect.worker.frames import MOST_ANSWERED, MOST_ASKED, BadFrame, receive, send
from recollect.worker.hello import own_hello
from recollect.worker.place import Place, find_place
from recollect.worker.settled import settled
from recollect.worker.spool import Handed, Spool
from recollect.worker.starting import start as start_worker
from recollect.worker.transport import connect
from recollect.worker.wanted import is_wanted

__all__ = ["ask", "begin", "control", "hand_over", "is_wanted"]

ANSWER_S = 30.0
START_S = 12.0
_WAKE_S = 0.25
_HANGS_S = 5.0  # who waited less long cannot know
Note = Callable[[str], None]

# What a worker that is there may say instead of an answer.
OTHER_VERSION = "version"
OTHER_ENVIRONMENT = "environment"


def _say_nothing(told: str) -> None:
    """Whoever does without the worker usually need not know."""


def ask(
    kind: str,
    payload: Json,
    *,
    settings: Settings,
    deadline_s: float = ANSWER_S,
    start: bool = True,
    note: Note = _say_nothing,
    place: Place | None = None,
) -> Any:
    """The worker's answer, or None: then do it yourself.

    For reading alone: what was asked may have been done although no answer came. Without
    ``start`` only a worker that is there already is asked. ``note`` is told why there is
    no answer.
    """
    if settings.worker == "off":
        return None
    deadline = time.monotonic() + deadline_s
    place = place or find_place()
    try:
        request = {
            "kind": kind,
            "settings": settled(settings),
            "environment": environment_of(settings),
            "payload": payload,
        }
        reply = _exchange(request, place, deadline)
        if start and (reply is None or reply.get("no") == OTHER_VERSION):
            patience_s = min(START_S, deadline - time.monotonic())
            if start_worker(place, settings.worker_idle, wait_s=patience_s):
                reply = _exchange(request, place, deadline)
    except TimeoutError:
        note(f"the worker has not answered for {deadline_s:g} seconds")
        if deadline_s >= _HANGS_S:
            _end_if_it_hangs(place, note)
        return None
    except (OSError, BadFrame, RecollectError) as error:
        note(f"the worker was not to be asked: {error}")
        return None
    if reply is None:
        note("no worker could be started" if start else "there is no worker")
        return None
    if "answer" not in reply:
        note(f"the worker would not: {reply.get('told', reply.get('no', 'nothing said'))}")
        return None
    return reply["answer"]


def hand_over(
    kind: str,
    payload: Json,
    *,
    settings: Settings,
    note: Note = _say_nothing,
    place: Place | None = None,
) -> bool:
    """Leaves work to the worker. True once it is on the disk: it will be done, perhaps more
    than once, so only work that does no harm when done again may be handed over.

    False where it is not kept, or nobody seems to work off what is: then do it yourself.
    Nobody waits for the worker here; where there is none, one is started.
    """
    if settings.worker == "off":
        return False
    place = place or find_place()
    spool = Spool(place.spool)
    try:
        handed = Handed(kind, settled(settings), payload, environment_of(settings))
        spool.put(handed)
    except (OSError, RecollectError) as error:
        note(f"nothing could be handed over: {error}")
        return False
    reply = _woken(handed, place)
    if "answer" in reply:
        return True
    if reply.get("no") == OTHER_ENVIRONMENT:
        note("the worker's models would be asked in another environment")
        return False
    start_worker(place, settings.worker_idle, wait_s=0)
    if spool.is_neglected():
        note("nobody works off what was handed over")
        return False
    return True


def _woken(handed: Handed, place: Place) -> Json:
    """What a worker says to a hand-over; nothing where there is none."""
    told = {"kind": "wake", "settings": handed.settings, "environment": handed.environment}
    try:
        return _exchange(told, place, time.monotonic() + _WAKE_S) or {}
    except (OSError, BadFrame):
        return {}


def control(kind: str, place: Place | None = None, *, deadline_s: float = 2.0) -> Any:
    """What a running worker says to ``ping``, ``status`` or ``stop``; None where there is
    none. None is started for it."""
    try:
        reply = _exchange({"kind": kind}, place or find_place(), time.monotonic() + deadline_s)
    except (OSError, BadFrame):
        return None
    return None if reply is None else reply.get("answer")


def begin(settings: Settings, place: Place | None = None) -> Json | None:
    """Starts a worker unless there is one, and gives its status; None where none starts."""
    place = place or find_place()
    found = control("status", place)
    if found is None and start_worker(place, settings.worker_idle, wait_s=START_S):
        # It listens, and has still to load what it needs for an answer.
        found = control("status", place, deadline_s=START_S)
    return found if isinstance(found, dict) else None


def _end_if_it_hangs(place: Place, note: Note) -> None:
    """A worker that is busy says so at once. One that does not would cost every caller the
    same wait, so it is ended; the next caller starts another."""
    if control("ping", place) is None:
        from recollect.worker.ending import end  # only a worker that hangs needs it

        end(place)
        note("the worker hung, and was ended")


def _exchange(request: Json, place: Place, deadline: float) -> Json | None:
    """One question and its answer; None where nobody is there to be asked."""
    try:
        sock = connect(place, deadline)
    except (FileNotFoundError, ConnectionRefusedError):
        return None
    with sock:
        send(sock, {"hello": own_hello(), **request}, MOST_ASKED, deadline)
        return receive(sock, MOST_ANSWERED, deadline)
