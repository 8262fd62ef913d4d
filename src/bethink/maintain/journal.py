"""The journal of maintenance runs, the lineage of memories, and what changed since a run.

Journal lines are found by the id of the run. They hold ids, never a word of a memory, and
the highest classification of what they name, so that readers below it never see them. A job
that has seen all memories keeps its place: the number of the last line it knew, and what its
result depended on besides the memories. Its next run reads the lines after that.
"""

from __future__ import annotations

import base64
import hashlib
import json
import zlib
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from bethink.core.json_values import iso
from bethink.core.named_tuple import NamedTuple
from bethink.ingest.admission import DERIVED_SOURCE
from bethink.maintain.job import ACTOR, JobContext, Proposal, iter_items
from bethink.model import Draft, Item
from bethink.ports import Event, Scope, Store
from bethink.retrieval.provenance import recorded_sources

if TYPE_CHECKING:
    from bethink.maintain.succession import Successor


RUN_PREFIX = "run-"
ALL_RUNS = "maintenance"
_RUN_BEGAN, _STEP_DONE, _STORING_SUCCESSOR, _RUN_UNDONE = (
    "maintenance",
    "maintained",
    "making",
    "undone",
)
_MAX_LINES = 1_000_000
_LEVEL = "class"  # the first name in a line of a run: the store's views look for it there


class RunRecord(NamedTuple):
    """A run: its id, when it began, and the number of proposals per job."""

    run: str
    at: datetime
    jobs: Mapping[str, int]


class RunTrail(NamedTuple):
    """What a run did, oldest first: memories made and ended, statuses set, links added."""

    made: tuple[str, ...]
    ended: tuple[str, ...]
    statuses: tuple[tuple[str, str, str], ...]
    links: tuple[tuple[str, str, str], ...]
    undone: bool


def begin_run(jobs: Mapping[str, int], work: JobContext) -> str:
    """Start a new run and record it."""
    run = f"{RUN_PREFIX}{work.make_id(work.now)}"
    _write_line(_RUN_BEGAN, ALL_RUNS, {"run": run, "jobs": dict(jobs)}, work)
    return run


def record_successors(run: str, drafts: Iterable[Draft], work: JobContext) -> None:
    """Record the ids of successors before they are stored, so that they are never lost."""
    by_level: defaultdict[int, list[str]] = defaultdict(list)
    for draft in drafts:
        assert draft.id is not None
        by_level[draft.classification].append(draft.id)
    for level, ids in by_level.items():
        _write_line(_STORING_SUCCESSOR, run, {_LEVEL: level, "makes_all": ids}, work)


class StepRecord(NamedTuple):
    """A proposal about to be applied: its run and its job."""

    run: str
    job: str
    proposal: Proposal


def record_step(step: StepRecord, made: Successor | None, work: JobContext) -> None:
    """Record what is about to change, and the previous state."""
    proposal = step.proposal
    named = [end.id for link in proposal.links for end in (link.src, link.dst)]
    named += [*proposal.leaving, *(item for item, _ in proposal.statuses)]
    items = work.store.items.get([*named, *([made.id] if made else ())])
    level = max((item.classification for item in items.values()), default=highest_seen(work.store))
    known = {
        (link.src.id, link.type, link.dst.id)
        for link in work.store.graph.links_of([link.src.id for link in proposal.links])
    }
    links = [(link.src.id, link.type, link.dst.id) for link in proposal.links]
    detail = {
        "job": step.job,
        "why": proposal.rule,
        "makes": made.id if made else None,
        "ends": list(proposal.ends),
        "judges": [[item, items[item].status, status] for item, status in proposal.statuses],
        "links": [list(link) for link in links if link not in known],
        "deeds": len(proposal.actions),
    }
    present = {name: value for name, value in detail.items() if value}
    _write_line(_STEP_DONE, step.run, {_LEVEL: level, **present}, work)


def record_additions(steps: Iterable[tuple[StepRecord, Successor]], work: JobContext) -> None:
    """Record proposals that only added a memory: a line for each job and classification."""
    done = list(steps)
    items = work.store.items.get([made.id for _, made in done])
    groups: defaultdict[tuple[str, str, int], list[tuple[str, str]]] = defaultdict(list)
    for step, made in done:
        level = _level(items.get(made.id))
        groups[step.run, step.job, level].append((step.proposal.rule, made.id))
    for (run, job, level), made_here in groups.items():
        whys, ids = ([one[place] for one in made_here] for place in (0, 1))
        detail = {_LEVEL: level, "job": job, "whys": whys, "makes_all": ids}
        _write_line(_STEP_DONE, run, detail, work)


def record_status_changes(
    run: str, changes: Sequence[tuple[str, str, str]], work: JobContext
) -> None:
    """Record which statuses are about to change: the old and the new one."""
    items = work.store.items.get([item for item, _, _ in changes])
    by_level: defaultdict[int, list[list[str]]] = defaultdict(list)
    for change in changes:
        by_level[_level(items.get(change[0]))].append(list(change))
    for level, judged in by_level.items():
        _write_line(_STEP_DONE, run, {_LEVEL: level, "judges": judged}, work)


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
    lines = store.admin.changes(item=run, actor=None, limit=_MAX_LINES)
    if not lines and all(begun.run != run for begun in recent_runs(store, _MAX_LINES)):
        return None
    details = [_parse_detail(line.detail) for line in reversed(lines)]
    return RunTrail(
        made=tuple(dict.fromkeys(made for detail in details for made in _made_in(detail))),
        ended=tuple(dict.fromkeys(item for detail in details for item in detail.get("ends", ()))),
        statuses=tuple(tuple(judged) for detail in details for judged in detail.get("judges", ())),
        links=tuple(tuple(link) for detail in details for link in detail.get("links", ())),
        undone=any(line.kind == _RUN_UNDONE for line in lines),
    )


def _made_in(detail: Mapping[str, Any]) -> list[str]:
    return [*([detail["makes"]] if detail.get("makes") else ()), *detail.get("makes_all", ())]


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
    lines = store.admin.changes(item=ALL_RUNS, actor=None, limit=limit)
    starts = [(line, _parse_detail(line.detail)) for line in lines if line.kind == _RUN_BEGAN]
    return [RunRecord(detail["run"], line.at, detail["jobs"]) for line, detail in starts]


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


def _write_line(kind: str, item: str, detail: Mapping[str, Any], work: JobContext) -> None:
    text = json.dumps(detail, ensure_ascii=False, separators=(",", ":"))
    work.store.admin.log(kind, item=item, actor=ACTOR, detail=text, now=work.now)


def _parse_detail(detail: str) -> dict[str, Any]:
    parsed: dict[str, Any] = json.loads(detail)
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
            if item.source_class == DERIVED_SOURCE or parents <= going.keys():
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
    ]


def _parents(child: str, item: Item, store: Store) -> set[str]:
    links = store.graph.links_of([child], DERIVES, incoming=False)
    named = {item.parent} if item.parent else set()
    return named | {link.dst.id for link in links if link.dst.kind == "item"}


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


PLACE_PREFIX = "place:"
HIGHEST_CLASSIFICATION = 3
REACH = timedelta(days=45)  # a thread that was quiet for so long is closed
CAUSAL = ("causes", "caused_by")
_KEPT, _NEIGHBOURS, ERASED = "place", "neighbours", "erased"
LINES_AT_ONCE = 2_000
_MAX_NEIGHBOURS = 1_000
_ENTITY_CHANGES = frozenset({"merged", "split"})
_THREAD_LINES = frozenset({"thread", "thread dropped"})
GENERATED_PREFIX = "thread-"  # of the ids of threads that the job makes
_OWN_LINES = frozenset({_RUN_BEGAN, _STEP_DONE, _STORING_SUCCESSOR, _RUN_UNDONE, _KEPT})


class Place(NamedTuple):
    """How far a job has looked, when, what its result depended on, and what it left.

    What it found it had stored by the line ``kept``, in the run ``run``, which began after the
    line ``looked``; ``through`` is before that where the job is to look again.
    """

    job: str
    through: int
    looked: int
    kept: int
    run: str | None
    at: datetime
    depends_on: str
    state: Mapping[str, Any]


class Changes(NamedTuple):
    """The memories (ids) that changed after a place, and those that its own run has stored.

    ``disturbed``: another run of the job, unfinished or at the same time, stored something since;
    ``threads``: threads were stored by others than that run.
    """

    ids: frozenset[str]
    stored: frozenset[str]
    disturbed: bool
    threads: bool


def last_line(work: JobContext) -> Event | None:
    """Return the last line of the journal."""
    lines = work.store.admin.changes(item=None, actor=None, limit=1)
    return lines[0] if lines else None


def dependence(*parts: object) -> str:
    """Return a short hash of what a result depends on besides the memories."""
    return hashlib.sha256(repr(parts).encode()).hexdigest()[:16]


def place_text(depends_on: str, work: JobContext) -> str:
    """Describe the present place, for `Proposal.place`."""
    line = last_line(work)
    looked = line.seq if line else 0
    detail = {"through": looked, "line": _line_hash(line), "looked": looked, "at": iso(work.now)}
    return json.dumps({**detail, "depends_on": depends_on}, separators=(",", ":"))


def look_again(place: str, before: Place, work: JobContext) -> str:
    """Return the place for a job that has to look once more at what changed since the last."""
    since = work.store.admin.events(after=before.through - 1, limit=1) if before.through else [None]
    again = {"through": before.through, "line": _line_hash(since[0]), "at": iso(before.at)}
    return json.dumps({**json.loads(place), **again}, separators=(",", ":"))


def with_state(place: str, state: Mapping[str, Any]) -> str:
    """Return the place with what the job left, so that it is kept whatever was left undone."""
    return json.dumps({**json.loads(place), "state": state}, separators=(",", ":"))


def is_kept_anyway(place: str) -> bool:
    """Whether a place says itself what its job left undone."""
    return "state" in json.loads(place)


def pack_ids(ids: Iterable[str]) -> str:
    """Write ids in little room."""
    return base64.b85encode(zlib.compress("\n".join(sorted(ids)).encode())).decode()


def unpack_ids(packed: str) -> set[str]:
    """Read what `pack_ids` wrote."""
    return set(zlib.decompress(base64.b85decode(packed)).decode().split())


def keep_place(job: str, place: str, run: str | None, work: JobContext) -> None:
    """Keep the place of a job whose proposals have all been applied by a run.

    Not below a ceiling: there it could not be read, and would stand for more than was looked at.
    """
    if work.store.below(HIGHEST_CLASSIFICATION - 1) is work.store:
        return
    name = f"{PLACE_PREFIX}{job}"
    detail = json.dumps({**json.loads(place), "run": run}, separators=(",", ":"))
    work.store.admin.log(_KEPT, item=name, actor=ACTOR, detail=detail, now=work.now)


def read_place(job: str, work: JobContext) -> Place | None:
    """Return the place that a job kept; None where there is none in this journal."""
    lines = work.store.admin.changes(item=f"{PLACE_PREFIX}{job}", actor=None, limit=1)
    if not lines:
        return None
    detail = json.loads(lines[0].detail)
    through = int(detail["through"])
    known = work.store.admin.events(after=through - 1, limit=1) if through else [None]
    if not known or _line_hash(known[0]) != detail["line"]:
        return None  # the line is of another journal: it came with an import
    looked, run = int(detail.get("looked", through)), detail.get("run")
    at = datetime.fromisoformat(detail["at"])
    where = job, through, looked, lines[0].seq, run, at
    return Place(*where, detail["depends_on"], detail.get("state", {}))


def _line_hash(line: Event | None) -> str:
    return hashlib.sha256(repr(line).encode()).hexdigest()[:16] if line else ""


def changes_since(place: Place, work: JobContext) -> Changes | None:
    """Return the memories that changed since; None where all may have."""
    found: set[str] = set()
    stored: set[str] = set()
    erased: set[str] = set()
    covered: set[str] = set()
    disturbed = threads = False
    through = place.through
    while lines := work.store.admin.events(after=through, limit=LINES_AT_ONCE):
        through = lines[-1].seq
        for line in lines:
            if line.kind in _ENTITY_CHANGES:
                return None
            if line.kind == _NEIGHBOURS:
                detail = json.loads(line.detail)
                covered.update(detail["gone"])
                found.update(detail["near"])
            elif line.kind == ERASED:
                erased.add(str(line.item))
            else:
                found.update(_changed_by(line))
            if line.seq > place.looked:
                disturbed |= _is_other_run(line, place)
                threads |= _is_other_thread(line, place)
            if line.kind == "stored" and place.looked < line.seq < place.kept:
                stored.add(str(line.item))
    if not erased <= covered:
        return None
    known = frozenset() if disturbed else frozenset(stored)
    return Changes(frozenset(found), known, disturbed, threads)


def _is_other_run(line: Event, place: Place) -> bool:
    """Whether a line tells of another run of the job than the one that kept the place."""
    if line.kind != _RUN_BEGAN:
        return False
    detail = _parse_detail(line.detail)
    return place.job in detail["jobs"] and detail["run"] != place.run


def _is_other_thread(line: Event, place: Place) -> bool:
    """Whether a line tells of generated threads that the run of the place did not store."""
    if line.kind in _THREAD_LINES and line.detail.startswith(GENERATED_PREFIX):
        return line.actor != ACTOR or line.seq > place.kept
    return line.kind == "threads imported"


def _changed_by(line: Event) -> tuple[str, ...]:
    """Return the memories that a line says something about."""
    if line.item is None or line.kind in _OWN_LINES or ":" in line.item:
        return ()
    if line.kind in {"linked", "unlinked"}:
        relation, _, other = line.detail.partition(" ")
        return (line.item, other) if relation in CAUSAL else ()
    return (line.item,)


def record_neighbours(ids: Iterable[str], jobs: Iterable[str], work: JobContext) -> None:
    """Record whom the next runs must look at again once these memories are erased.

    An erased memory leaves no trace, so its neighbours are named, as ids, while it is there.
    Without that, or if there are very many, the next runs look at everything.
    """
    places = [place for job in jobs if (place := read_place(job, work)) is not None]
    if not places:
        return
    since = min(place.at for place in places)
    going = work.store.items.get(list(ids))
    # The last runs may have seen a memory as it was before.
    known = [
        revision
        for item in going.values()
        for revision in work.store.items.history(item.id)
        if revision.rev == item.rev or revision.live_to is None or revision.live_to >= since
    ]
    gone = frozenset(going)
    near = {other for item in known for other in _neighbours(item, gone, work)}
    near.update(_sharing_an_anchor(known, gone, work))
    if len(near) <= _MAX_NEIGHBOURS:
        detail = json.dumps({"gone": sorted(gone), "near": sorted(near - gone)})
        work.store.admin.log(_NEIGHBOURS, item=None, actor=ACTOR, detail=detail, now=work.now)


def _neighbours(item: Item, going: frozenset[str], work: JobContext) -> Iterator[str]:
    """Yield the memories whose threads or insights depend on this one; of a whole thread, one."""
    if item.source_class == DERIVED_SOURCE:
        yield from recorded_sources(item)
    links = work.store.graph.links_of([item.id], CAUSAL)
    yield from (end for link in links for end in (link.src.id, link.dst.id))
    for thread in work.store.activity.threads_of([item.id]):
        yield from [member.item for member in thread.members if member.item not in going][:1]
    if item.entities:
        names, until = with_names(item.entities), item.when + REACH
        about = {"entities": names, "since": item.when, "until": until}
        yield from (other.id for other in _page(_MAX_NEIGHBOURS + 1, work, about))


def _sharing_an_anchor(
    items: Sequence[Item], going: frozenset[str], work: JobContext
) -> Iterator[str]:
    """Yield for each topic and ticket of these memories one that stays and has it, too."""
    anchors: set[tuple[str, tuple[str, ...]]] = {
        ("topics", (item.topic,)) for item in items if item.topic
    }
    anchors |= {
        ("entities", with_names((entity,)))
        for item in items
        for entity in item.entities
        if entity.startswith("ticket:")
    }
    for name, values in sorted(anchors):
        page = _page(len(going) + 1, work, {name: values})
        yield from [other.id for other in page if other.id not in going][:1]


def _page(limit: int, work: JobContext, narrower: Mapping[str, Any]) -> list[Item]:
    filters = replace(work.filters, include_superseded=True, include_expired=True, **narrower)
    return work.store.items.browse(Scope(filters, work.now), limit=limit)


def with_names(entities: Iterable[str]) -> tuple[str, ...]:
    """Return ids of entities and their names: one that was merged is found by its name."""
    return tuple(name for entity in entities for name in (entity, entity.partition(":")[2]))


def hubs(share: float, least: float, work: JobContext) -> frozenset[str]:
    """Return the entities that more than a share of all memories mention.

    The number of memories counts rounded down, so that it seldom changes what is a hub.
    """
    count = work.store.admin.count()
    step = 1 << max(0, count.bit_length() - 4)
    ceiling = max(least, share * (count // step * step))
    found: list[str] = []
    while page := work.store.graph.entities(limit=50, offset=len(found)):
        many = [entity.id for entity in page if entity.mentions > ceiling]
        found += many
        if len(many) < len(page):
            break
    return frozenset(found)


def items_between(
    start: datetime | None, end: datetime | None, work: JobContext, **narrower: Any
) -> Iterator[Item]:
    """Yield the memories of a time, with what is superseded or no longer valid."""
    yield from iter_items(
        work, since=start, until=end, include_superseded=True, include_expired=True, **narrower
    )
