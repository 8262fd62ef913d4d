"""The jobs that a worker does; callers without a worker use the same functions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from bethink.core.json_values import Json
from bethink.core.registry import import_object
from bethink.errors import BethinkError, MissingExtra, ModelError, Refused
from bethink.models.rerank import reranker_provider

if TYPE_CHECKING:
    from bethink.memory import Memory

Job = Callable[["Memory", Json], Json | str]  # what it returns is JSON
_MAINTENANCE_STEPS = 20  # steps of one background maintenance run


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
    "sync": _sync_job,
}
