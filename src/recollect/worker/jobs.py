"""What a worker can be asked to do. Whoever does without one calls the same functions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from recollect.errors import MissingExtra, ModelError, Refused
from recollect.explain import WhyNot
from recollect.jsonable import Json
from recollect.model import NO_METADATA, Recall
from recollect.models.rerankers import reranker_provider
from recollect.present import Section
from recollect.worker.carrying import carried, delivered

if TYPE_CHECKING:
    from recollect.memory import Memory

_STEPS = 20  # of maintenance in the background, at a time


class Asked(NamedTuple):
    """A question as the command line puts it. ``options`` are JSON values that the facade
    takes by these names; ``steps`` asks for the walk's steps, which are long."""

    text: str
    profile: str | None = None
    options: Mapping[str, Any] = NO_METADATA
    now: datetime | None = None
    steps: bool = False

    @property
    def keywords(self) -> dict[str, Any]:
        """What the facade is called with."""
        given = {name: _read(value) for name, value in self.options.items()}
        return given if self.now is None else {**given, "now": self.now}


class Answered(NamedTuple):
    """An answer, and how its profile lays it out as text."""

    answer: Recall
    sections: tuple[Section, ...] = ()


class Compared(NamedTuple):
    """The answers of several profiles to one question."""

    answers: tuple[Recall, ...]


def recall(memory: Memory, asked: Asked) -> Answered:
    """What a question calls to mind."""
    profile = memory.profile(asked.profile)
    answer = memory.recall(asked.text, profile=profile, **asked.keywords)
    return Answered(_without_steps(answer, asked), profile.text)


def why_not(memory: Memory, asked: Asked, item_id: str) -> WhyNot:
    """Why a memory was not recalled."""
    return memory.why_not(item_id, asked.text, profile=asked.profile, **asked.keywords)


def compare(memory: Memory, asked: Asked, profiles: tuple[str, ...]) -> Compared:
    """The same question by several profiles: those that come with us, if none are named."""
    shipped = [name for name, file in memory.profiles().items() if file is None]
    answers = memory.compare(asked.text, profiles or shipped, **asked.keywords)
    return Compared(tuple(_without_steps(answer, asked) for answer in answers.values()))


def _without_steps(answer: Recall, asked: Asked) -> Recall:
    return answer if asked.steps else replace(answer, steps=())


def _read(value: Any) -> Any:
    """What JSON made a list was several values."""
    return tuple(value) if isinstance(value, list) else value


def _recall(memory: Memory, payload: Json) -> Json:
    asked = _question(payload)
    if asked.options.get("track", memory.settings.track):
        # Done twice it would count twice, and who asks cannot know whether it was done.
        raise Refused("a recall that is noted as a use is not for the worker")
    keywords = {**asked.options, "track": False}
    return carried(recall(memory, asked._replace(options=keywords)))


def _question(payload: Json) -> Asked:
    """What was asked; a reranker named for this once must not need the environment of who
    asks, which is not here."""
    asked = delivered(payload, Asked)
    provider = reranker_provider(str(asked.options.get("reranker", "")))
    if provider is not None and provider.reads:
        raise Refused("that reranker is to be asked in the environment of who asks")
    return asked


def _why_not(memory: Memory, payload: Json) -> Json:
    return carried(why_not(memory, _question(payload), _text(payload, "id")))


def _compare(memory: Memory, payload: Json) -> Json:
    names = payload.get("profiles")
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise Refused("profiles must be a list of names")
    return carried(compare(memory, _question(payload), tuple(names)))


def _prompt(memory: Memory, payload: Json) -> Any:
    from recollect.agents.prompt import prompt_context  # only hooks ask for it

    return prompt_context(memory, payload)


def _brief(memory: Memory, payload: Json) -> Any:
    from recollect.agents.briefing import briefing  # only hooks ask for it

    return briefing(memory, payload)


def _capture(memory: Memory, payload: Json) -> Json:
    from recollect.agents.capture import capture  # only hooks ask for it

    path = Path(_text(payload, "transcript"))
    session, host = _text(payload, "session"), _text(payload, "host")
    return capture(memory, path, session=session, host=host)._asdict()


def _edits(memory: Memory, payload: Json) -> Json:
    from recollect.agents.capture import capture_edits  # only hooks ask for it

    path = Path(_text(payload, "transcript"))
    return {"edits": capture_edits(memory, path, session=_text(payload, "session"))}


def _warm(memory: Memory, _: Json) -> Json:
    """Loads the models, so that the next question need not wait for them."""
    try:
        if memory.embedder is not None:
            memory.embedder.embed_query("ready")
        if memory.reranker is not None:
            memory.reranker("ready", ["ready"])
    except (ModelError, MissingExtra) as error:
        return {"loaded": False, "told": error.message}
    return {"loaded": True}


def _maintain(memory: Memory, _: Json) -> Json:
    report = memory.maintain_due(most_steps=_STEPS)
    return {"run": report.run if report is not None else None}


def _text(payload: Json, name: str) -> str:
    value = payload.get(name)
    if not isinstance(value, str) or not value:
        raise Refused(f"{name} must be a text")
    return value


# Of one memory, by what was sent; the answer must be JSON.
JOBS: Mapping[str, Callable[[Any, Json], Any]] = {
    "recall": _recall,
    "why-not": _why_not,
    "compare": _compare,
    "prompt": _prompt,
    "brief": _brief,
    "capture": _capture,
    "edits": _edits,
    "warm": _warm,
    "maintain": _maintain,
}
