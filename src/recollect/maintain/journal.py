"""What maintenance writes down: which runs there were, and what each did to which ids.

The lines are the journal's own, found by the id of the run. They hold ids, never a word
of a memory.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, NamedTuple

from recollect.maintain.job import ACTOR, Proposal, Work
from recollect.ports import Store

if TYPE_CHECKING:
    from recollect.maintain.succeed import Successor

RUN = "run-"
ALL_RUNS = "maintenance"
_BEGAN, _STEP, _MAKING, _UNDONE = "maintenance", "maintained", "making", "undone"
_MOST_LINES = 1_000_000


class Begun(NamedTuple):
    """A run, when it began, how many proposals of which job it took on."""

    run: str
    at: datetime
    jobs: Mapping[str, int]


class Trail(NamedTuple):
    """What a run did, oldest first: what it made and ended, what it judged and linked."""

    made: tuple[str, ...]
    ended: tuple[str, ...]
    statuses: tuple[tuple[str, str, str], ...]
    links: tuple[tuple[str, str, str], ...]
    undone: bool


def begin(jobs: Mapping[str, int], work: Work) -> str:
    """A new run, written down."""
    run = f"{RUN}{work.make_id(work.now)}"
    _write(_BEGAN, ALL_RUNS, {"run": run, "jobs": dict(jobs)}, work)
    return run


def note_making(run: str, item: str, work: Work) -> None:
    """Says beforehand which memory is about to be made, so that nobody loses sight of it."""
    _write(_MAKING, run, {"makes": item}, work)


class Noted(NamedTuple):
    """A proposal that is about to be carried out: in which run, by which job."""

    run: str
    job: str
    proposal: Proposal


def note(noted: Noted, made: Successor | None, work: Work) -> None:
    """Says what is about to happen, and how things stood before."""
    proposal = noted.proposal
    items = work.store.get([item for item, _ in proposal.statuses])
    known = {
        (link.src.id, link.type, link.dst.id)
        for link in work.store.links_of([link.src.id for link in proposal.links])
    }
    links = [(link.src.id, link.type, link.dst.id) for link in proposal.links]
    detail = {
        "job": noted.job,
        "why": proposal.rule,
        "makes": made.id if made else None,
        "ends": list(proposal.ends),
        "judges": [[item, items[item].status, status] for item, status in proposal.statuses],
        "links": [list(link) for link in links if link not in known],
        "deeds": len(proposal.deeds),
    }
    _write(_STEP, noted.run, {name: value for name, value in detail.items() if value}, work)


def note_judging(run: str, judged: Sequence[tuple[str, str, str]], work: Work) -> None:
    """Says which memories are about to stand differently: how they stood, how they will."""
    _write(_STEP, run, {"judges": [list(one) for one in judged]}, work)


def note_undone(run: str, work: Work) -> None:
    """Says that a run was undone."""
    _write(_UNDONE, run, {}, work)


def trail_of(run: str, store: Store) -> Trail | None:
    """What a run did; None where there was no such run."""
    lines = store.changes(item=run, actor=None, limit=_MOST_LINES)
    if not lines and all(begun.run != run for begun in runs(store, _MOST_LINES)):
        return None
    told = [_read(line.detail) for line in reversed(lines)]
    return Trail(
        made=tuple(dict.fromkeys(one["makes"] for one in told if one.get("makes"))),
        ended=tuple(dict.fromkeys(item for one in told for item in one.get("ends", ()))),
        statuses=tuple(tuple(judged) for one in told for judged in one.get("judges", ())),
        links=tuple(tuple(link) for one in told for link in one.get("links", ())),
        undone=any(line.kind == _UNDONE for line in lines),
    )


def places_taken(run: str, store: Store) -> dict[str, str]:
    """For each memory that a run ended the one that stands in for it, if one does."""
    told = [_read(line.detail) for line in store.changes(item=run, actor=None, limit=_MOST_LINES)]
    return {
        item: one.get("makes") or one["uses"]
        for one in reversed(told)
        if one.get("makes") or one.get("uses")
        for item in one.get("ends", ())
    }


def runs(store: Store, limit: int = 20) -> list[Begun]:
    """The last runs, newest first."""
    lines = store.changes(item=ALL_RUNS, actor=None, limit=limit)
    told = [(line, _read(line.detail)) for line in lines if line.kind == _BEGAN]
    return [Begun(detail["run"], line.at, detail["jobs"]) for line, detail in told]


def last_write(store: Store) -> datetime | None:
    """When somebody other than maintenance last changed anything."""
    limit = 64
    while True:
        lines = store.changes(item=None, actor=None, limit=limit)
        for line in lines:
            if line.actor != ACTOR:
                return line.at
        if len(lines) < limit:
            return None
        limit *= 4


def _write(kind: str, item: str, detail: Mapping[str, Any], work: Work) -> None:
    told = json.dumps(detail, ensure_ascii=False, separators=(",", ":"))
    work.store.log(kind, item=item, actor=ACTOR, detail=told, now=work.now)


def _read(detail: str) -> dict[str, Any]:
    told: dict[str, Any] = json.loads(detail)
    return told
