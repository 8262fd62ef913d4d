"""Who answers a question: the worker where one is wanted, else this very process."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click

from recollect.cli.app import App
from recollect.cli.printing import dim
from recollect.errors import NotFound

if TYPE_CHECKING:
    from recollect.memory import Memory
    from recollect.profile import Profile
    from recollect.worker.jobs import Asked

T = TypeVar("T")


def answered(
    app: App,
    kind: str,
    asked: Asked,
    wanted: type[T],
    job: Callable[[Memory], T],
    **more: Any,
) -> T:
    """What ``job`` makes of this process's own memory, or what the worker made of the same
    by its job of that ``kind``; nobody can tell the two apart. ``more`` goes to the worker.
    """
    found = _by_worker(app, kind, asked, wanted, more)
    if found is not None:
        return found
    with app.open() as memory:
        named(memory, asked.profile)
        return job(memory)


def _by_worker(
    app: App, kind: str, asked: Asked, wanted: type[T], more: dict[str, Any]
) -> T | None:
    if app.settings.worker == "off" or _is_noted(app, kind, asked):
        return None
    from recollect.worker.wanted import is_wanted  # help does without

    reranker = asked.options.get("reranker")
    if not is_wanted(app.settings, reranker=reranker):
        return None
    from recollect.worker.carrying import BadValue, carried, delivered  # most do without
    from recollect.worker.client import ask
    from recollect.worker.settled import placed_reranker

    if reranker is not None:
        asked = asked._replace(options={**asked.options, "reranker": placed_reranker(reranker)})
    note = _note(app)
    told = ask(kind, {**carried(asked), **more}, settings=app.settings, note=note)
    if told is None:
        return None
    try:
        return delivered(told, wanted)
    except BadValue as error:
        note(f"the worker's answer cannot be read: {error}")
        return None


def _is_noted(app: App, kind: str, asked: Asked) -> bool:
    """Whether the recall is noted as a use: asked twice it would count twice, so it is not
    left to anybody who may not answer."""
    return kind == "recall" and bool(asked.options.get("track", app.settings.track))


def _note(app: App) -> Callable[[str], None]:
    def note(told: str) -> None:
        if app.verbose:
            app.err.line(dim(f"{told}; asked here"))

    return note


def named(memory: Memory, name: str | None) -> Profile:
    """The profile to ask with. A name that is none is bad use: 1 would say "nothing found"."""
    try:
        return memory.profile(name)
    except NotFound as error:
        told = f"{error.message}; {error.remedy}"
        raise click.UsageError(told, click.get_current_context()) from error
