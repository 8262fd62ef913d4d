"""The journal of maintenance runs, the lineage of memories, and how far jobs have read.

Journal lines are found by the id of the run. They hold ids, never a word of a memory, and
the highest classification of what they name, so that readers below it never see them. A job
that reads the journal itself keeps its place there: the number of the last line it knows.
"""

from __future__ import annotations

import hashlib
import json
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from functools import partial

from bethink.core.json_values import Json
from bethink.core.named_tuple import NamedTuple
from bethink.ingest.admission import DERIVED_SOURCE
from bethink.ingest.inbox import is_sealed, unseal
from bethink.ingest.record_builder import parent_ids
from bethink.maintain.job import ACTOR, JobContext, Proposal
from bethink.model import Draft, Item, Link
from bethink.model.item import REFUSED, WAITING
from bethink.ports import Event, Store

RUN_PREFIX = "run-"
UNDONE = "undone:"  # the `ended_by` of what a run had made, followed by the run
ALL_RUNS = "maintenance"
_RUN_BEGAN, _STEP_DONE, _STORING_SUCCESSOR, _RUN_UNDONE = (
    "maintenance",
    "maintained",
    "making",
    "undone",
)
_MAX_LINES = 1_000_000
_RUNS_LOOKED_AT = 50
_LEVEL = "class"  # the first name in a line of a run: the store's views look for it there


class RunRecord(NamedTuple):
    """A run: its id, when it began, the number of proposals per job, whether it was undone."""

    run: str
    at: datetime
    jobs: Mapping[str, int]
    undone: bool = False


class RunTrail(NamedTuple):
    """What a run did, oldest first: memories made and ended, statuses set, links added."""

    made: tuple[str, ...]
    ended: tuple[str, ...]
    statuses: tuple[tuple[str, str, str], ...]
    links: tuple[tuple[str, str, str], ...]
    threads: tuple[tuple[str, ...], ...]
    undone: bool


def begin_run(jobs: Mapping[str, int], work: JobContext) -> str:
    """Start a new run and record it."""
    run = f"{RUN_PREFIX}{work.make_id(work.now)}"
    _write_line(_RUN_BEGAN, ALL_RUNS, {"run": run, "jobs": dict(jobs)}, work)
    return run


def record_successors(drafts: Iterable[Draft], work: JobContext) -> None:
    """Record the ids of successors before they are stored, so that they are never lost."""
    levels = ((draft.classification, draft.id) for draft in drafts)
    _write_by_level(_STORING_SUCCESSOR, work.run, "makes_all", levels, work)


def record_imported(run: str, ids: Sequence[str], actor: str, work: JobContext) -> str:
    """Record what an import has stored, in a run that undoes it; begin one where there is none."""
    run = run or begin_run({"import": 1}, work)
    # After every batch: an undo of the last change is one of the run then.
    work.store.admin.log("ran", item=f"{run}:asked", actor=actor, detail=run, now=work.now)
    made = ((item.classification, item.id) for item in work.store.items.get(ids).values())
    _write_by_level(_STEP_DONE, run, "makes_all", made, work)
    return run


def record_step(job: str, proposal: Proposal, made: str | None, work: JobContext) -> None:
    """Record what is about to change, and the previous state: a line for each classification.

    ``made`` is the successor.
    """
    store = work.store
    links = [(link.src.id, link.type, link.dst.id) for link in proposal.links]
    known = {
        (link.src.id, link.type, link.dst.id)
        for link in store.graph.links_of([src for src, _, _ in links])
    }
    successor = [made] if made else []
    named = [*(end for link in links for end in link[::2]), *proposal.leaving, *successor]
    items = store.items.get([*named, *(item for item, _ in proposal.statuses)])
    changes: list[tuple[str, object, Sequence[str]]] = [
        *(("ends", item, [item, *successor]) for item in proposal.ends),
        *(("judges", [of, items[of].status, status], [of]) for of, status in proposal.statuses),
        *(("links", link, link[::2]) for link in links if link not in known),
    ]
    lines: defaultdict[int, Json] = defaultdict(dict)
    if made:
        lines[_level(items.get(made))]["makes"] = made
    for name, change, about in changes:
        levels = [items[item].classification for item in about if item in items]
        lines[max(levels, default=highest_seen(store))].setdefault(name, []).append(change)
    if proposal.actions or not lines:
        lines[highest_seen(store)]["deeds"] = len(proposal.actions)
    if proposal.thread:
        lines[highest_seen(store)]["thread"] = proposal.thread
    for level, line in sorted(lines.items()):
        head = {_LEVEL: level, "job": job, "why": proposal.rule}
        _write_line(_STEP_DONE, work.run, {**head, **line}, work)


def record_links(links: Iterable[Link], work: JobContext) -> None:
    """Record links that an action of a run is about to add, for those who see all of it."""
    ends = [(link.src.id, link.type, link.dst.id) for link in links]
    _write_line(_STEP_DONE, work.run, {_LEVEL: highest_seen(work.store), "links": ends}, work)


def record_additions(added: Sequence[tuple[str, str, str]], work: JobContext) -> None:
    """Record the job, the rule and the memory of proposals that only added one.

    There is a line for each job and classification.
    """
    items = work.store.items.get([made for _, _, made in added])
    groups: defaultdict[tuple[str, int], Json] = defaultdict(lambda: {"whys": [], "makes_all": []})
    for job, rule, made in added:
        group = groups[job, _level(items.get(made))]
        group["whys"].append(rule)
        group["makes_all"].append(made)
    for (job, level), detail in groups.items():
        _write_line(_STEP_DONE, work.run, {_LEVEL: level, "job": job, **detail}, work)


def record_status_changes(
    run: str, changes: Sequence[tuple[str, str, str]], work: JobContext
) -> None:
    """Record which statuses are about to change: the old and the new one."""
    items = work.store.items.get([item for item, _, _ in changes])
    levels = ((_level(items.get(change[0])), list(change)) for change in changes)
    _write_by_level(_STEP_DONE, run, "judges", levels, work)


def _write_by_level(
    kind: str, run: str, name: str, values: Iterable[tuple[int, object]], work: JobContext
) -> None:
    """Write a line for each classification, with its values."""
    by_level: defaultdict[int, list[object]] = defaultdict(list)
    for level, value in values:
        by_level[level].append(value)
    for level, same in by_level.items():
        _write_line(kind, run, {_LEVEL: level, name: same}, work)


def record_undo(run: str, work: JobContext) -> None:
    """Record that a run was undone, for all who see any of it."""
    lines = work.store.admin.changes(item=run, actor=None, limit=_MAX_LINES)
    levels = [int(_parse_detail(line.detail).get(_LEVEL, 0)) for line in lines]
    _write_line(_RUN_UNDONE, run, {_LEVEL: min(levels, default=highest_seen(work.store))}, work)


def _level(item: Item | None) -> int:
    return HIGHEST_CLASSIFICATION if item is None else item.classification


def highest_seen(store: Store) -> int:
    """Return the highest classification that a reader of this store sees."""
    levels = range(HIGHEST_CLASSIFICATION)
    return next((level for level in levels if store.below(level) is store), HIGHEST_CLASSIFICATION)


def run_trail(run: str, store: Store) -> RunTrail | None:
    """Return what a run did; None where there was no such run."""
    found = store.admin.changes(item=run, actor=None, limit=_MAX_LINES)
    lines = [line for line in found if line.detail.startswith("{")]  # else it is a memory
    begun = store.admin.changes(item=ALL_RUNS, actor=None, limit=_MAX_LINES) if not lines else ()
    if not lines and all(_parse_detail(line.detail).get("run") != run for line in begun):
        return None
    details = [_parse_detail(line.detail) for line in reversed(lines)]
    return RunTrail(
        made=tuple(
            dict.fromkeys(
                made
                for detail in details
                for made in (detail.get("makes"), *detail.get("makes_all", ()))
                if made
            )
        ),
        ended=tuple(dict.fromkeys(item for detail in details for item in detail.get("ends", ()))),
        statuses=tuple(tuple(judged) for detail in details for judged in detail.get("judges", ())),
        links=tuple(tuple(link) for detail in details for link in detail.get("links", ())),
        threads=tuple(tuple(detail["thread"]) for detail in details if "thread" in detail),
        undone=any(line.kind == _RUN_UNDONE for line in lines),
    )


def successors_in_run(run: str, store: Store) -> dict[str, str]:
    """Map each memory that a run ended to its successor, if it has one."""
    details = [
        _parse_detail(line.detail)
        for line in store.admin.changes(item=run, actor=None, limit=_MAX_LINES)
    ]
    return {
        item: detail.get("makes") or detail["uses"]
        for detail in reversed(details)
        if detail.get("makes") or detail.get("uses")
        for item in detail.get("ends", ())
    }


def recent_runs(store: Store, limit: int = 20) -> list[RunRecord]:
    """Return the last runs, newest first."""
    changes = partial(store.admin.changes, actor=None)
    starts = [
        (line.at, _parse_detail(line.detail))
        for line in changes(item=ALL_RUNS, limit=limit)
        if line.kind == _RUN_BEGAN
    ]
    return [
        RunRecord(start["run"], at, start["jobs"], _RUN_UNDONE in (line.kind for line in last))
        for at, start in starts
        for last in [changes(item=start["run"], limit=1)]
    ]


def undone_threads(store: Store) -> set[tuple[str, ...]]:
    """Return the threads that undone ones of the last runs had made: id and hash of members."""
    runs = (run.run for run in recent_runs(store, _RUNS_LOOKED_AT) if run.undone)
    trails = (run_trail(run, store) for run in runs)
    return {thread[:2] for trail in trails if trail is not None for thread in trail.threads}


def last_user_write(store: Store) -> datetime | None:
    """Return the time of the last change by an actor other than maintenance."""
    limit = 64
    while True:
        lines = store.admin.changes(item=None, actor=None, limit=limit)
        for line in lines:
            if line.actor != ACTOR:
                return line.at
        if len(lines) < limit:
            return None
        limit *= 4


def _write_line(kind: str, item: str, detail: Mapping[str, object], work: JobContext) -> None:
    text = json.dumps(detail, ensure_ascii=False, separators=(",", ":"))
    work.store.admin.log(kind, item=item, actor=ACTOR, detail=text, now=work.now)


def _parse_detail(detail: str) -> Json:
    parsed: Json = json.loads(detail)
    return parsed


MAX_AHEAD = timedelta(days=1)


def days_ahead(store: Store, now: datetime) -> float | None:
    """Days the clock is ahead of the last write, if more than one; None otherwise.

    Either nothing was written for so long, or the clock has jumped; the caller decides.
    None also where nothing was ever written.
    """
    last = last_user_write(store)
    if last is None or now - last <= MAX_AHEAD:
        return None
    return (now - last).total_seconds() / 86_400


DERIVES = ("derives_from",)


class RemovalImpact(NamedTuple):
    """The consequences of removing some memories.

    ``descendants`` derive from them alone or were made by maintenance; ``mixed`` were
    written from them and from others; ``orphans`` left recall because a descendant
    replaced them, and should return.
    """

    ids: tuple[str, ...]
    descendants: tuple[str, ...]
    mixed: tuple[str, ...]
    orphans: tuple[str, ...]

    @property
    def removed_ids(self) -> tuple[str, ...]:
        return (*self.ids, *self.descendants)


def descendants_of(ids: Iterable[str], store: Store) -> list[str]:
    """Return everything that derives from these memories, nearest first."""
    seen = dict.fromkeys(ids)
    found: list[str] = []
    rim = list(seen)
    while rim:
        children = [child for child, _ in _children(rim, store) if child not in seen]
        rim = list(dict.fromkeys(children))
        seen.update(dict.fromkeys(rim))
        found += rim
    return found


def removal_impact(ids: Iterable[str], store: Store) -> RemovalImpact:
    """Find what derives from these memories, split by whether it can stay."""
    first = tuple(dict.fromkeys(ids))
    going = dict.fromkeys(first)
    mixed: dict[str, None] = {}
    rim = list(first)
    while rim:
        children = dict.fromkeys(child for child, _ in _children(rim, store))
        items = store.items.get([child for child in children if child not in going])
        rim = []
        for child, item in items.items():
            parents = _parents(child, item, store)
            is_draft = item.source_class == DERIVED_SOURCE or is_sealed(item)
            if is_draft or parents <= going.keys():
                going[child] = None
                mixed.pop(child, None)
                rim.append(child)
            else:
                mixed[child] = None
    descendants = tuple(item_id for item_id in going if item_id not in first)
    orphans = orphans_of(going, going.keys() | mixed.keys(), store)
    return RemovalImpact(first, descendants, tuple(mixed), orphans)


def _children(ids: Iterable[str], store: Store) -> list[tuple[str, str]]:
    parents = list(ids)
    there = set(parents)
    return [
        (link.src.id, link.dst.id)
        for link in store.graph.links_of(parents, DERIVES)
        if link.dst.id in there and link.src.kind == link.dst.kind == "item"
    ] + [
        (item.id, parent)
        for how in (WAITING, REFUSED)
        for item in store.items.get(store.admin.ended_as(how)).values()
        for parent in there.intersection(parent_ids(unseal(item).draft))  # it has no links yet
    ]


def _parents(child: str, item: Item, store: Store) -> set[str]:
    links = store.graph.links_of([child], DERIVES, incoming=False)
    named = parent_ids(unseal(item).draft)
    return {*named, *(link.dst.id for link in links if link.dst.kind == "item")}


def orphans_of(children: Iterable[str], going: set[str], store: Store) -> tuple[str, ...]:
    """Return memories that were replaced by one of the children and are not removed."""
    child_ids = set(children)
    links = store.graph.links_of(sorted(child_ids), DERIVES, incoming=False)
    parents = {link.dst.id for link in links if link.src.id in child_ids} - going
    places: dict[str, Mapping[str, str]] = {}
    found = []
    for item in store.items.get(sorted(parents)).values():
        run = (item.ended_by or "").partition(":")[2]
        if item.live_to is None or not run.startswith(RUN_PREFIX):
            continue
        # A later run may have used the result of an earlier one; the journal records it.
        if run not in places:
            places[run] = successors_in_run(run, store)
        if places[run].get(item.id) in child_ids:
            found.append(item.id)
    return tuple(sorted(found))


HIGHEST_CLASSIFICATION = 3
GENERATED_PREFIX = "thread-"  # of the ids of threads that the job makes
ERASED = "erased"
LINES_AT_ONCE = 2_000
_KEPT = "place"


def last_line(work: JobContext) -> Event | None:
    """Return the last line of the journal."""
    lines = work.store.admin.changes(item=None, actor=None, limit=1)
    return lines[0] if lines else None


def dependence(*parts: object) -> str:
    """Return a short hash of what a result depends on besides the memories."""
    return hashlib.sha256(repr(parts).encode()).hexdigest()[:16]


def read_place(job: str, work: JobContext) -> Json:
    """Return the place that a job keeps; nothing where it is one of another, imported journal."""
    lines = work.store.admin.changes(item=_place_name(job), actor=None, limit=1)
    kept = _parse_detail(lines[0].detail) if lines else {}
    through = int(kept.get("through", 0))
    known = work.store.admin.events(after=through - 1, limit=1) if through else [None]
    return kept if known and _place_at(known[0])["line"] == kept.get("line") else {}


def _place_at(line: Event | None) -> Json:
    digest = hashlib.sha256(repr(line).encode()).hexdigest()[:16] if line else ""
    return {"through": line.seq if line else 0, "line": digest}


def keep_place(job: str, through: int, work: JobContext) -> None:
    """Keep up to which line a job has read the journal.

    Not below a ceiling: there it could not be read, and would stand for more than was looked at.
    """
    if work.store.below(HIGHEST_CLASSIFICATION - 1) is not work.store:
        lines = work.store.admin.events(after=through - 1, limit=1)
        _write_line(_KEPT, _place_name(job), _place_at(lines[0] if lines else None), work)


def _place_name(job: str) -> str:
    return f"place:{job}"
