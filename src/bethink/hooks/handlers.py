"""Hook handlers, one per event: use the worker if there is one, else work here."""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from bethink.agents import session
from bethink.config.spaces import resolve_space
from bethink.core.blas import load_numpy
from bethink.core.dataclass import replace
from bethink.core.json_values import Json
from bethink.hooks.dispatch import given_deadline_s, slowness
from bethink.models import embedder_provider
from bethink.models.rerank import reranker_provider
from bethink.store import space_exists
from bethink.worker import should_start_worker
from bethink.worker.client import enqueue_job, request_worker
from bethink.worker.files import worker_paths

if TYPE_CHECKING:
    from bethink.config.settings import Settings
    from bethink.importers.claude_code import Turn
    from bethink.memory import Memory


HOST = "claude-code"
# How long to wait for the worker, which must leave time for answering here: longer where this
# process could only answer by words (heavy models) or slowly (a busy machine).
_WORKER_TIMEOUT_S = {"prompt": 1.2, "brief": 1.5, "unasked": 0.6}
_WORKER_TIMEOUT_LIGHT_MODELS_S = {"prompt": 0.2, "brief": 1.5, "unasked": 0.6}
_MAX_END_CHARS = 16_384
_MAX_WORKER_WAIT_S = 2.5  # on a busy machine; leaves the rest of the deadline
_CONTEXT_LOST_SOURCES = ("clear", "compact")
_MAX_INLINE_TURNS = 40  # turns that fit the deadline of session-end
_LARGE_TRANSCRIPT_BYTES = 4 * 1024 * 1024  # bytes not yet captured


def on_session_start(payload: Json) -> str:
    """Return the briefing at the start of a session."""
    settings = _load_settings(payload)
    if settings is None:
        return ""
    if payload.get("source") in _CONTEXT_LOST_SOURCES:
        _session_state(settings, payload).clear_given()
    if not _has_memory(settings):
        return ""
    _warm_up(settings)
    context = _request_worker("brief", payload, settings)
    if context is None:
        from bethink.agents.briefing import briefing  # start-up time: not with a worker

        with _open_memory(settings) as memory:
            context = briefing(memory, payload)
    return _record_given(context, settings, payload)


def on_user_prompt_submit(payload: Json) -> str:
    """Return the memories related to a prompt."""
    settings = _load_settings(payload)
    if settings is None or not _has_memory(settings):
        return ""
    context = _request_worker("prompt", payload, settings)
    if context is None:
        # First: if this call misses its deadline, a later one finds the worker ready.
        _warm_up(settings)
        load_numpy(keep_memory=True)
        from bethink.agents.prompt import prompt_context  # start-up time: not with a worker

        with _open_memory(_without_slow_models(settings)) as memory:
            context = prompt_context(memory, payload)
    return _record_given(context, settings, payload)


def _record_given(context: str, settings: Settings, payload: Json) -> str:
    """Record the memories in the context as given, and return the context.

    Only now, not earlier: an answer that came too late was never delivered. Nothing is given
    to the half of the sessions that an experiment leaves without memory.
    """
    state = _session_state(settings, payload)
    arm = state.arm if settings.ab_test else "on"
    if context:
        from bethink.agents.briefing import estimate_max_tokens  # start-up time

        ids = session.quoted_ids(context)
        tokens = estimate_max_tokens(context) // max(1, len(ids))
        event, at = _text_field(payload, "hook_event_name"), datetime.now(UTC).isoformat()
        # On a full disk, giving a memory twice is better than not at all.
        with suppress(OSError):
            state.add_given(ids)
            rows = [(item, event, tokens, at) for item in ids]
            state.add_shown(rows, _text_field(payload, "transcript_path"), arm)
    return context if arm == "on" else ""


def on_post_tool_use(payload: Json) -> str:
    """Record an edit of a project file, with the prompt that led to it; return a note, if any."""
    _record_edit(payload)
    return on_tool_use(payload)


def on_tool_use(payload: Json) -> str:
    """Return a memory that the call of a tool makes relevant, seldom.

    A failure is compared with memories where a worker has the model loaded.
    """
    settings = _load_settings(payload)
    if settings is None or settings.unasked == "off" or not _has_memory(settings):
        return ""
    payload = {name: _shortened(value) for name, value in payload.items()}
    context = _request_worker("unasked", payload, settings)
    if context is None:
        _warm_up(settings)
        if not _text_field(_as_mapping(payload.get("tool_input")), "file_path") and (
            payload.get("hook_event_name") != "PreToolUse"
        ):
            return ""
        from bethink.agents.unasked import unasked_note  # start-up time: not with a worker

        with _open_memory(settings.changed(embedder="none", reranker="none")) as memory:
            context = unasked_note(memory, payload)
    return _record_given(context, settings, payload)


def _shortened(value: object) -> object:
    """Cut texts of a call that are long, the middle out: what matters is at their ends."""
    if isinstance(value, Mapping):
        return {name: _shortened(part) for name, part in value.items()}
    if isinstance(value, str) and len(value) > 2 * _MAX_END_CHARS:
        return f"{value[:_MAX_END_CHARS]}\n{value[-_MAX_END_CHARS:]}"
    return value


def _record_edit(payload: Json) -> None:
    settings, transcript = _load_settings(payload), _transcript_path(payload)
    if settings is None or transcript is None or not _edits_project_file(payload, settings):
        return
    by_subagent = bool(_text_field(payload, "agent_id"))
    job = {"transcript": str(transcript), "session": _session_id(payload)}
    # The agent waits for every call of this hook, so hand it to the worker.
    to_worker = not by_subagent and bool(_session_id(payload)) and _worker_available(settings)
    if to_worker and enqueue_job("edits", job, settings=settings):
        return
    from bethink.agents.capture import capture_edits  # start-up time: not with a worker

    with _open_memory(settings) as memory:
        subagent_turn = _subagent_turn(payload, memory.now) if by_subagent else None
        capture_edits(memory, transcript, session=_session_id(payload), subagent_turn=subagent_turn)


def _subagent_turn(payload: Json, now: datetime) -> Turn:
    """Build a turn from a subagent's edit, which the transcript does not contain."""
    from bethink.importers.claude_code import Turn, tool_edits  # start-up time

    call = _text_field(payload, "tool_use_id")
    edits = tool_edits(_text_field(payload, "tool_name"), payload.get("tool_input"), now, call)
    return Turn(
        "assistant", "", now, call, _session_id(payload), 0, _text_field(payload, "cwd"), edits
    )


def on_stop(payload: Json) -> str:
    """Capture the turns since the last capture."""
    return _capture_session(payload, session_ends=False)


def on_session_end(payload: Json) -> str:
    """Capture at the end of a session, with a short deadline.

    If there is much left to capture, it is queued for the worker.
    """
    return _capture_session(payload, session_ends=True)


def _capture_session(payload: Json, *, session_ends: bool) -> str:
    settings, transcript = _load_settings(payload), _transcript_path(payload)
    if settings is None or transcript is None:
        return ""
    job = {"transcript": str(transcript), "session": _session_id(payload), "host": HOST}
    state = _session_state(settings, payload)
    # Too large even to count the turns within the deadline.
    too_large = (
        session_ends and transcript.stat().st_size - state.captured.start > _LARGE_TRANSCRIPT_BYTES
    )
    if too_large and enqueue_job("capture", job, settings=settings):
        return ""
    from bethink.agents.capture import capture, count_new_turns  # start-up time

    new = count_new_turns(state, transcript, _session_id(payload))
    if not new:
        return ""
    to_worker = _worker_available(settings) or (session_ends and new > _MAX_INLINE_TURNS)
    if to_worker and enqueue_job("capture", job, settings=settings):
        return ""
    with _open_memory(settings) as memory:
        capture(memory, transcript, session=_session_id(payload), host=HOST)
    if not session_ends:
        # No worker is running: start one for the next prompt.
        _warm_up(settings)
    return ""


def _load_settings(payload: Json) -> Settings | None:
    return session.session_settings(os.environ, _text_field(payload, "cwd"), host=HOST)


def _session_state(settings: Settings, payload: Json) -> session.SessionState:
    space = resolve_space(None, settings).name
    return session.SessionState(session.sessions_folder(settings, space), _session_id(payload))


def _without_slow_models(settings: Settings) -> Settings:
    """The settings without models that take longer than a prompt waits: words answer then.

    These are models that must be loaded or are asked over a network.
    """
    providers = (embedder_provider(settings.embedder), reranker_provider(settings.reranker))
    embedder, reranker = (
        name if name != "llm" and not (one and (one.slow_to_load or one.env_prefixes)) else "none"
        for name, one in zip((settings.embedder, settings.reranker), providers, strict=True)
    )
    return replace(settings, embedder=embedder, reranker=reranker)


def _open_memory(settings: Settings) -> Memory:
    from bethink.memory import Memory  # slow to import

    return Memory.open(settings=settings)


def _has_memory(settings: Settings) -> bool:
    """Whether the space exists; a read never creates one."""
    ref = resolve_space(None, settings)
    return space_exists(settings.store, ref.name, ref.path)


def _edits_project_file(payload: Json, settings: Settings) -> bool:
    paths = _as_mapping(payload.get("tool_input"))
    path = _text_field(paths, "file_path") or _text_field(paths, "notebook_path")
    folder = _text_field(payload, "cwd")
    return bool(path and session.resolve_in_project(path, folder, settings.project))


def _as_mapping(value: object) -> Mapping[str, object]:
    return value if isinstance(value, Mapping) else {}


def _transcript_path(payload: Json) -> Path | None:
    name = _text_field(payload, "transcript_path")
    path = Path(name).expanduser() if name else None
    return path if path is not None and path.is_file() else None


def _session_id(payload: Json) -> str:
    return _text_field(payload, "session_id")


def _text_field(payload: Mapping[str, object], name: str) -> str:
    value = payload.get(name)
    return value if isinstance(value, str) and "\0" not in value else ""


def _request_worker(kind: str, payload: Json, settings: Settings) -> str | None:
    """Return the answer of a running worker; None if there is none."""
    if settings.worker == "off":
        return None
    paths = worker_paths()
    if not paths.is_open:
        return None
    wait_for_worker = slowness() > 1 or should_start_worker(settings)
    limits_s = _WORKER_TIMEOUT_S if wait_for_worker else _WORKER_TIMEOUT_LIGHT_MODELS_S
    usual_s = min(limits_s[kind] * slowness(), _MAX_WORKER_WAIT_S)
    # Half of a configured deadline leaves as much time for answering here.
    deadline_s = max(usual_s, given_deadline_s(0.0) / 2)
    answer = request_worker(
        kind, payload, settings=settings, deadline_s=deadline_s, start=False, place=paths
    )
    return answer if isinstance(answer, str) else None


def _worker_available(settings: Settings) -> bool:
    if settings.worker == "off":
        return False
    return should_start_worker(settings) or worker_paths().is_open


def _warm_up(settings: Settings) -> None:
    """Have a worker load what the session's prompts will need.

    Many prompts will follow, and none can wait for a model, nor for the time that a busy
    machine takes to load our modules.
    """
    if settings.worker != "off":
        enqueue_job("warm", {}, settings=settings)
