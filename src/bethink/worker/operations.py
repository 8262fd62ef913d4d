"""The operations a worker performs; callers without a worker use the same functions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bethink.core.dataclass import replace
from bethink.core.json_values import Json
from bethink.core.named_tuple import NamedTuple
from bethink.errors import MissingExtra, ModelError, Refused
from bethink.model import NO_METADATA, Recall
from bethink.models.rerank import reranker_provider
from bethink.retrieval.answer_text import Section
from bethink.retrieval.explain import WhyNot

if TYPE_CHECKING:
    from bethink.memory import Memory


_MAINTENANCE_STEPS = 20  # steps of one background maintenance run


class QueryRequest(NamedTuple):
    """A query as the command line sends it.

    ``options`` are JSON values that the facade takes by these names; ``steps`` includes
    the trace steps, which are long.
    """

    text: str
    profile: str | None = None
    options: Mapping[str, Any] = NO_METADATA
    now: datetime | None = None
    steps: bool = False

    @property
    def keywords(self) -> dict[str, Any]:
        """Keyword arguments for the facade."""
        keywords = {name: _lists_to_tuples(value) for name, value in self.options.items()}
        return keywords if self.now is None else {**keywords, "now": self.now}


class RecallReply(NamedTuple):
    """An answer, and the profile's text layout."""

    answer: Recall
    sections: tuple[Section, ...] = ()


class CompareReply(NamedTuple):
    """The answers of several profiles to one query."""

    answers: tuple[Recall, ...]


def recall(memory: Memory, request: QueryRequest) -> RecallReply:
    """Run a recall."""
    profile = memory.profile(request.profile)
    answer = memory.recall(request.text, profile=profile, **request.keywords)
    return RecallReply(_without_steps(answer, request), profile.text)


def why_not(memory: Memory, request: QueryRequest, item_id: str) -> WhyNot:
    """Explain why a memory was not recalled."""
    return memory.why_not(item_id, request.text, profile=request.profile, **request.keywords)


def compare(memory: Memory, request: QueryRequest, profiles: tuple[str, ...]) -> CompareReply:
    """Run a query with several profiles; the built-in ones if none are named."""
    shipped = [name for name, file in memory.profiles().items() if file is None]
    answers = memory.compare(request.text, profiles or shipped, **request.keywords)
    return CompareReply(tuple(_without_steps(answer, request) for answer in answers.values()))


def _without_steps(answer: Recall, request: QueryRequest) -> Recall:
    return answer if request.steps else replace(answer, steps=())


def _lists_to_tuples(value: Any) -> Any:
    """Turn JSON lists back into tuples."""
    return tuple(value) if isinstance(value, list) else value


def _encode(value: Any) -> Json:
    from bethink.worker.codec import encode  # start-up time: only a worker needs it

    return encode(value)


def _recall_job(memory: Memory, payload: Json) -> Json:
    request = _decode_request(payload)
    track = request.options.get("track")
    if memory.session.tracks_use(memory.profile(request.profile), track):
        # Repeated it would count twice, and the caller cannot know whether it ran.
        raise Refused("the worker does not run recalls that record usage")
    keywords = {**request.options, "track": False}
    return _encode(recall(memory, request._replace(options=keywords)))


def _decode_request(payload: Json) -> QueryRequest:
    """Decode the request; refuse a reranker that needs the caller's environment."""
    from bethink.worker.codec import decode  # start-up time: only a worker needs it

    request = decode(payload, QueryRequest)
    provider = reranker_provider(str(request.options.get("reranker", "")))
    if provider is not None and provider.env_prefixes:
        raise Refused("this reranker needs the caller's environment")
    return request


def _why_not_job(memory: Memory, payload: Json) -> Json:
    return _encode(why_not(memory, _decode_request(payload), _require_text(payload, "id")))


def _compare_job(memory: Memory, payload: Json) -> Json:
    names = payload.get("profiles")
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise Refused("profiles must be a list of names")
    return _encode(compare(memory, _decode_request(payload), tuple(names)))


def _prompt_job(memory: Memory, payload: Json) -> Any:
    from bethink.agents.prompt import prompt_context  # only used by hooks

    return prompt_context(memory, payload)


def _briefing_job(memory: Memory, payload: Json) -> Any:
    from bethink.agents.briefing import briefing  # only used by hooks

    return briefing(memory, payload)


def _capture_job(memory: Memory, payload: Json) -> Json:
    from bethink.agents.capture import capture  # only used by hooks

    path = Path(_require_text(payload, "transcript"))
    session, host = _require_text(payload, "session"), _require_text(payload, "host")
    return capture(memory, path, session=session, host=host)._asdict()


def _edits_job(memory: Memory, payload: Json) -> Json:
    from bethink.agents.capture import capture_edits  # only used by hooks

    path = Path(_require_text(payload, "transcript"))
    return {"edits": capture_edits(memory, path, session=_require_text(payload, "session"))}


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


def _require_text(payload: Json, name: str) -> str:
    value = payload.get(name)
    if not isinstance(value, str) or not value:
        raise Refused(f"{name} must be a text")
    return value


# Each takes a memory and a payload; its result must be JSON.
JOBS: Mapping[str, Callable[[Any, Json], Any]] = {
    "recall": _recall_job,
    "why-not": _why_not_job,
    "compare": _compare_job,
    "prompt": _prompt_job,
    "brief": _briefing_job,
    "capture": _capture_job,
    "edits": _edits_job,
    "warm": _warm_up_job,
    "maintain": _maintenance_job,
}
