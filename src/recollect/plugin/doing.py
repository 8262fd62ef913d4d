"""What is done for each event: by the worker where there is one, else here."""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from recollect.agents.project import is_inside, session_settings
from recollect.agents.session import Session, sessions_folder
from recollect.jsonable import Json
from recollect.plugin.deadline import at_work_s
from recollect.spaces import resolve_space

if TYPE_CHECKING:
    from datetime import datetime

    from recollect.memory import Memory
    from recollect.settings import Settings
    from recollect.sources.claude_code_transcript import Turn

HOST = "claude-code"
# What a worker has for an answer: nearly all the time there is where nobody else could give
# one in time (a heavy model, a machine so busy that loading our modules takes long), else so
# much that there is time left to do without it.
_WORKER_S = {"prompt": 0.38, "brief": 1.5}
_WORKER_WITH_LIGHT_MODELS_S = {"prompt": 0.2, "brief": 1.5}
_BUSY_S = 0.1  # to get to where the worker is asked; a third of that where nothing else goes on
_LOST_SIGHT = ("clear", "compact")
_SOON_DONE = 40  # turns, which take less than the end of a session has
_MUCH = 4 * 1024 * 1024  # bytes of a transcript that nobody has looked at


def brief(payload: Json) -> str:
    """The briefing at the start of a session."""
    settings = _settings(payload)
    if settings is None:
        return ""
    if payload.get("source") in _LOST_SIGHT:
        _session(settings, payload).start_over()
    if not _has_memory(settings):
        return ""
    _warm_up(settings)
    told = _worker_says("brief", payload, settings)
    if told is None:
        from recollect.agents.briefing import briefing  # start-up time: the worker does without

        with _opened(settings) as memory:
            told = briefing(memory, payload)
    return _given(told, settings, payload)


def prompt(payload: Json) -> str:
    """What a prompt calls to mind."""
    settings = _settings(payload)
    if settings is None or not _has_memory(settings):
        return ""
    told = _worker_says("prompt", payload, settings)
    if told is None:
        from recollect.agents.prompt import prompt_context  # start-up time: see above

        with _opened(settings) as memory:
            told = prompt_context(memory, payload)
    return _given(told, settings, payload)


def _given(told: str, settings: Settings, payload: Json) -> str:
    """What is about to be told, noted as given: not before, for an answer that came too late
    was not heard."""
    if told:
        from recollect.agents.budget import given_in  # start-up time: most calls tell nothing

        # Where nothing can be noted (a full disk), twice is better than not at all.
        with suppress(OSError):
            _session(settings, payload).give(given_in(told))
    return told


def edited(payload: Json) -> str:
    """Notes an edit of one of the project's files, with the prompt that led to it."""
    settings, transcript = _settings(payload), _transcript(payload)
    if settings is None or transcript is None or not _is_ours(payload, settings):
        return ""
    by_subagent = bool(_text(payload, "agent_id"))
    work = {"transcript": str(transcript), "session": _name(payload)}
    # An agent edits file after file, and waits for each of these.
    left = not by_subagent and bool(_name(payload)) and _worker_is_wanted(settings)
    if left and _handed_over("edits", work, settings):
        return ""
    from recollect.agents.capture import capture_edits  # start-up time: most edits end above

    with _opened(settings) as memory:
        subagents = _subagents_turn(payload, memory.now) if by_subagent else None
        capture_edits(memory, transcript, session=_name(payload), elsewhere=subagents)
    return ""


def _subagents_turn(payload: Json, now: datetime) -> Turn:
    """What a subagent has done, as a turn: the session's own transcript does not tell."""
    from recollect.sources.claude_code_transcript import Turn, edits_in  # start-up time

    call = _text(payload, "tool_use_id")
    edits = edits_in(_text(payload, "tool_name"), payload.get("tool_input"), now, call)
    return Turn("assistant", "", now, call, _name(payload), 0, _text(payload, "cwd"), edits)


def spoken(payload: Json) -> str:
    """Captures what was said since the last time."""
    return _captured(payload, leave=False)


def ended(payload: Json) -> str:
    """The same at the end of a session, for which the host waits but a moment: if there is
    much to capture still, it is left to the worker."""
    return _captured(payload, leave=True)


def _captured(payload: Json, *, leave: bool) -> str:
    settings, transcript = _settings(payload), _transcript(payload)
    if settings is None or transcript is None:
        return ""
    work = {"transcript": str(transcript), "session": _name(payload), "host": HOST}
    state = _session(settings, payload)
    # So much that there may not be the time to find out how much it is.
    much = leave and transcript.stat().st_size - state.captured.start > _MUCH
    if much and _handed_over("capture", work, settings):
        return ""
    from recollect.agents.capture import capture, news  # start-up time

    new = news(state, transcript, _name(payload))
    if not new:
        return ""
    left = _worker_is_wanted(settings) or (leave and new > _SOON_DONE)
    if left and _handed_over("capture", work, settings):
        return ""
    with _opened(settings) as memory:
        capture(memory, transcript, session=_name(payload), host=HOST)
    if not leave:
        # There was no worker, or it had ended meanwhile: the next prompt comes soon.
        _warm_up(settings)
    return ""


def _settings(payload: Json) -> Settings | None:
    return session_settings(os.environ, _text(payload, "cwd"), host=HOST)


def _session(settings: Settings, payload: Json) -> Session:
    space = resolve_space(None, settings).name
    return Session(sessions_folder(settings, space), _name(payload))


def _opened(settings: Settings) -> Memory:
    from recollect.memory import Memory  # heavy: not before there is something to do

    return Memory.open(settings=settings)


def _has_memory(settings: Settings) -> bool:
    """Whether there is a memory to ask; none is made for a question."""
    return resolve_space(None, settings).path.exists()


def _is_ours(payload: Json, settings: Settings) -> bool:
    told = payload.get("tool_input")
    paths = told if isinstance(told, Mapping) else {}
    path = _text(paths, "file_path") or _text(paths, "notebook_path")
    return bool(path) and is_inside(path, _text(payload, "cwd"), settings.project) is not None


def _transcript(payload: Json) -> Path | None:
    told = _text(payload, "transcript_path")
    path = Path(told).expanduser() if told else None
    return path if path is not None and path.is_file() else None


def _name(payload: Json) -> str:
    return _text(payload, "session_id")


def _text(payload: Mapping[str, Any], name: str) -> str:
    value = payload.get(name)
    return value if isinstance(value, str) and "\0" not in value else ""


def _worker_says(kind: str, payload: Json, settings: Settings) -> str | None:
    """What a worker that runs already answers; None where none does."""
    if settings.worker == "off":
        return None
    from recollect.worker.place import find_place  # start-up time: not everybody has one

    place = find_place()
    if not place.is_open:
        return None
    from recollect.worker.client import ask
    from recollect.worker.wanted import is_wanted

    alone = at_work_s() > _BUSY_S or is_wanted(settings)
    limits_s = _WORKER_S if alone else _WORKER_WITH_LIGHT_MODELS_S
    answer = ask(
        kind, payload, settings=settings, deadline_s=limits_s[kind], start=False, place=place
    )
    return answer if isinstance(answer, str) else None


def _worker_is_wanted(settings: Settings) -> bool:
    if settings.worker == "off":
        return False
    from recollect.worker.place import find_place
    from recollect.worker.wanted import is_wanted

    return is_wanted(settings) or find_place().is_open


def _warm_up(settings: Settings) -> None:
    """Has a worker load what the session's prompts will need: there are many to come, and
    none can wait for a model, nor for so much as a busy machine takes to load our modules."""
    if settings.worker != "off":
        from recollect.worker.client import hand_over

        hand_over("warm", {}, settings=settings)


def _handed_over(kind: str, work: Json, settings: Settings) -> bool:
    from recollect.worker.client import hand_over

    return hand_over(kind, work, settings=settings)
