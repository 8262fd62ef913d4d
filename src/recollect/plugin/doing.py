"""What is done for each event: by the worker where there is one, else here."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from recollect.agents.project import is_inside, session_settings
from recollect.agents.session import Session, sessions_folder
from recollect.jsonable import Json
from recollect.spaces import resolve_space

if TYPE_CHECKING:
    from recollect.memory import Memory
    from recollect.settings import Settings

HOST = "claude-code"
_WORKER_S = {"prompt": 0.3, "brief": 1.5}
_LOST_SIGHT = ("clear", "compact")


def brief(payload: Json) -> str:
    """The briefing at the start of a session."""
    settings = _settings(payload)
    if settings is None:
        return ""
    if payload.get("source") in _LOST_SIGHT:
        _session(settings, payload).start_over()
    _warm_up(settings)
    if not _has_memory(settings):
        return ""
    told = _worker_says("brief", payload, settings)
    if told is not None:
        return told
    from recollect.agents.briefing import briefing  # start-up time: the worker does without

    with _opened(settings) as memory:
        return briefing(memory, payload)


def prompt(payload: Json) -> str:
    """What a prompt calls to mind."""
    settings = _settings(payload)
    if settings is None or not _has_memory(settings):
        return ""
    told = _worker_says("prompt", payload, settings)
    if told is not None:
        return told
    from recollect.agents.prompt import prompt_context  # start-up time: the worker does without

    with _opened(settings) as memory:
        return prompt_context(memory, payload)


def edited(payload: Json) -> str:
    """Notes an edit of one of the project's files, with the prompt that led to it."""
    settings, transcript = _settings(payload), _transcript(payload)
    if settings is None or transcript is None or not _is_ours(payload, settings):
        return ""
    from recollect.agents.capture import capture_edits  # start-up time: most edits end above

    with _opened(settings) as memory:
        capture_edits(memory, transcript, session=_name(payload))
    return ""


def spoken(payload: Json) -> str:
    """Captures what was said since the last time."""
    return _captured(payload, leave=False)


def ended(payload: Json) -> str:
    """The same at the end of a session, for which the host waits but a moment: what is
    still to be captured is left to the worker."""
    return _captured(payload, leave=True)


def _captured(payload: Json, *, leave: bool) -> str:
    settings, transcript = _settings(payload), _transcript(payload)
    if settings is None or transcript is None:
        return ""
    from recollect.agents.capture import capture, has_news  # start-up time

    if not has_news(_session(settings, payload), transcript, _name(payload)):
        return ""
    work = {"transcript": str(transcript), "session": _name(payload), "host": HOST}
    if (leave or _worker_is_wanted(settings)) and _handed_over(work, settings):
        return ""
    with _opened(settings) as memory:
        capture(memory, transcript, session=_name(payload), host=HOST)
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
    if not place.door.exists():
        return None
    from recollect.worker.client import ask

    answer = ask(
        kind, payload, settings=settings, deadline_s=_WORKER_S[kind], start=False, place=place
    )
    return answer if isinstance(answer, str) else None


def _worker_is_wanted(settings: Settings) -> bool:
    if settings.worker == "off":
        return False
    from recollect.worker.client import is_wanted
    from recollect.worker.place import find_place

    return is_wanted(settings) or find_place().door.exists()


def _warm_up(settings: Settings) -> None:
    """Starts the worker that the session's prompts will ask, if its models are worth it."""
    if settings.worker == "off":
        return
    from recollect.worker.client import is_wanted
    from recollect.worker.place import find_place
    from recollect.worker.starting import start

    if is_wanted(settings):
        start(find_place(), settings.worker_idle, wait_s=0)


def _handed_over(work: Json, settings: Settings) -> bool:
    from recollect.worker.client import hand_over

    return hand_over("capture", work, settings=settings)
