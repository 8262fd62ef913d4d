"""Settles which facts stand: what a correction replaces leaves recall, what contradicts is told.

Facts of one subject and attribute hold one slot. Whichever arrives first, the newer one
stands, unless it is trusted less; nothing is lost, and what was superseded comes back when
what superseded it is forgotten.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from recollect.ingest.admit import DERIVED, SELF_SPEAKING
from recollect.ingest.fact_words import DATED
from recollect.ingest.facts import Fact, fact_of
from recollect.ingest.judge import Judgement, Stated, judge
from recollect.ingest.writing import WriteContext
from recollect.jsonable import iso
from recollect.model import Collision, Draft, Filters, Item, Link, Node
from recollect.ports import Record, Scope
from recollect.text import ROLES, fold

FACT = "fact"  # the key of metadata under which a model's fact stands
SINCE = "since "  # how the context of a link begins for which something left recall
SUPERSEDED = "superseded, no longer recalled"
IN_PART = "superseded in part, both kept"
BORN_OLD = "a newer fact is known, stored as superseded"
CONTRADICTS = "kept both, linked as contradicting"
# Kinds that say what should be, or what to do.
_NO_FACTS = frozenset({"question", "task", "goal", "directive", "playbook", "caveat"})
_FROM_NOW = "from now on"  # how something begins to be so, not what should be
_LAYERS = frozenset({"goal", "caveat"})
_MOST_STANDING = 64  # of one slot, as many as the store gives
_MOST_DOUBTS = 8  # contradictions that one memory is told of
_Slot = tuple[str, str]


def fact_in(draft: Draft, kind: str) -> Fact | None:
    """The fact a draft states, if it is of a kind that states facts.

    Verbatim episodes state none: what somebody said once is kept as it was said.
    """
    dated = kind == "task"
    changing = kind == "directive" and _FROM_NOW in fold(draft.text)
    if draft.level != "item" or draft.layer in _LAYERS:
        return None
    if kind in _NO_FACTS and not (dated or changing):
        return None
    if draft.source_class == DERIVED or draft.derives_from:
        return None  # made from older ones, it is not as new as it looks
    fact = fact_of(draft.text, _first_person(draft))
    # A deadline belongs to a task, but when it is is a fact.
    return fact if not dated or (fact and _is_dated(fact)) else None


def _is_dated(fact: Fact) -> bool:
    words = (*fact.subject.split(), *fact.attribute.split())
    return words[-1] == "time" and words[-2] in DATED


def fact_held(item: Item) -> Fact | None:
    """The fact by which an item holds its slot: read anew from its words, or as a model
    read it."""
    if item.subject is None or item.attribute is None:
        return None
    told = item.metadata.get(FACT)
    if isinstance(told, dict) and isinstance(told.get("value"), str):
        # Not the whole of it: a model's reading is no reason to let a memory go.
        return Fact(item.subject, item.attribute, told["value"], whole=False)
    read = fact_of(item.text, _first_person(item))
    same = read is not None and (read.subject, read.attribute) == (item.subject, item.attribute)
    return read if same else None


def _first_person(said: Draft | Item) -> str | None:
    """Whom "I" stands for."""
    speaker = fold(said.speaker or "")
    if speaker and speaker not in ROLES:
        return speaker
    mine = said.source_class in SELF_SPEAKING and speaker in ("", "user", "human")
    return "user" if mine else None


@dataclass(slots=True)
class _Outcome:
    """What becomes of the new memories: by id, and by the other memory met."""

    supersedes: dict[str, dict[str, int]] = field(default_factory=lambda: defaultdict(dict))
    links: dict[str, list[Link]] = field(default_factory=lambda: defaultdict(list))
    born_old: set[str] = field(default_factory=set)
    met: dict[str, list[Collision]] = field(default_factory=lambda: defaultdict(list))


def settled(
    records: Sequence[Record],
    near: Sequence[tuple[Collision, ...]],
    facts: Mapping[str, Fact],
    ctx: WriteContext,
) -> tuple[list[Record], list[tuple[Collision, ...]]]:
    """The records with what they supersede, and what each met: judged, or merely ``near``."""
    new = [Stated(one.item, facts[one.item.id]) for one in records if one.item.id in facts]
    if not new:
        return list(records), list(near)
    outcome = _judged(new, ctx)
    met = [
        _merged(outcome.met.get(record.item.id, ()), like)
        for record, like in zip(records, near, strict=True)
    ]
    return [_with(record, outcome) for record in records], met


def _judged(new: Sequence[Stated], ctx: WriteContext) -> _Outcome:
    """Every new fact against all that stand in its slot, those before it in time included."""
    groups, slots = _grouped(new, ctx)
    outcome = _Outcome()
    fresh = {stated.item.id for stated in new}
    # By time, so that the order in which a batch brings them does not matter.
    for stated in sorted(new, key=lambda one: (one.moment, one.is_change)):
        _settle_one(stated, groups[slots[stated.fact[:2]]], fresh, outcome, ctx)
    return outcome


def _settle_one(
    stated: Stated, standing: list[Stated], fresh: set[str], outcome: _Outcome, ctx: WriteContext
) -> None:
    """One new fact against those that stand, the newest first, and so many at most: a batch
    of a thousand for one slot takes no longer than any other."""
    stands, doubts = True, 0
    for other in standing[: -_MOST_STANDING - 1 : -1]:
        judgement = judge(stated, other)
        if judgement is None:
            continue
        goes = judgement.second if judgement.kind == "supersedes" else None
        # What comes too late to stand still replaces what is older, as it would have in time.
        if not stands and (goes is None or goes is stated):
            continue
        doubts += goes is None
        if goes is None and doubts > _MOST_DOUBTS:
            continue
        _note(judgement, fresh, outcome, ctx)
        if goes is stated:
            stands = not _leaves(judgement)
        elif goes is other and _leaves(judgement):
            standing[:] = [one for one in standing if one is not other]
    if stands:
        standing.append(stated)
        standing.sort(key=lambda one: (one.moment, one.is_change))


def _grouped(
    new: Iterable[Stated], ctx: WriteContext
) -> tuple[dict[_Slot, list[Stated]], dict[_Slot, _Slot]]:
    """What stands in the slots of the new facts, and each slot under its first name."""
    slots: dict[_Slot, _Slot] = {}
    pairs = list(dict.fromkeys(stated.fact[:2] for stated in new))
    known = ctx.store.other_names([subject for subject, _ in pairs])
    for subject, attribute in pairs:
        names = sorted({subject, *known.get(subject, ())})
        slots.update({(name, attribute): (names[0], attribute) for name in names})
    groups: dict[_Slot, list[Stated]] = {slot: [] for slot in slots.values()}
    renewed = {stated.item.id for stated in new}
    scope = Scope(Filters(max_classification=3, include_expired=True), ctx.now)
    for item in ctx.store.slots(list(slots), scope):
        fact = fact_held(item)
        if fact is not None and item.id not in renewed and item.status == "active":
            groups[slots[fact[:2]]].append(Stated(item, fact))
    for group in groups.values():
        group.sort(key=lambda one: (one.moment, one.is_change))
    return groups, slots


def _leaves(judgement: Judgement) -> bool:
    """Whether the older one leaves recall: a text that says more than its fact stays."""
    return judgement.second.fact.whole


def _note(judgement: Judgement, fresh: set[str], outcome: _Outcome, ctx: WriteContext) -> None:
    first, second = judgement.first.item, judgement.second.item
    supersedes = judgement.kind == "supersedes"
    leaves = supersedes and _leaves(judgement)
    holder = first.id if first.id in fresh else second.id
    since = f"{SINCE}{iso(judgement.first.moment)}" if leaves else judgement.why
    outcome.links[holder].append(
        Link(
            Node("item", first.id),
            Node("item", second.id),
            judgement.kind,
            confidence=judgement.confidence,
            context=since,
            created_at=ctx.now,
        )
    )
    if leaves and second.id in fresh:
        outcome.born_old.add(second.id)
    elif leaves:
        outcome.supersedes[first.id][second.id] = second.rev
    for mine, other in ((judgement.first, judgement.second), (judgement.second, judgement.first)):
        if mine.item.id in fresh:
            outcome.met[mine.item.id].append(_collision(judgement, mine.item, other.item))


def _collision(judgement: Judgement, mine: Item, other: Item) -> Collision:
    """What the writer of ``mine`` is told about the other."""
    # Who writes a memory is not told what a more secret one says.
    text = other.text if other.classification <= mine.classification else ""
    sure = judgement.confidence
    if judgement.kind == "contradicts":
        doubted = mine if mine.trust < other.trust else other
        return Collision(other.id, "contradicts", sure, f"{CONTRADICTS}: {judgement.why}", text,
                         f"recollect forget {doubted.id}")  # fmt: skip
    if not _leaves(judgement):
        kind = "supersedes" if judgement.first.item is mine else "superseded"
        return Collision(other.id, kind, sure, IN_PART, text,  # type: ignore[arg-type]
                         f"recollect forget {judgement.second.item.id}")  # fmt: skip
    undo = f"recollect undo {judgement.second.item.id}"
    if judgement.first.item is mine:
        return Collision(other.id, "supersedes", sure, SUPERSEDED, text, undo)
    return Collision(other.id, "superseded", sure, BORN_OLD, text, undo)


def _with(record: Record, outcome: _Outcome) -> Record:
    item = record.item
    if item.id not in outcome.met:
        return record
    if item.id in outcome.born_old:
        item = item._replace(status="superseded")
    return replace(
        record,
        item=item,
        links=(*record.links, *outcome.links.get(item.id, ())),
        supersedes=outcome.supersedes.get(item.id, {}),
    )


def _merged(judged: Sequence[Collision], near: Sequence[Collision]) -> tuple[Collision, ...]:
    """Each other memory once: a judgement says more than likeness."""
    known = {collision.id for collision in judged}
    return (*judged, *(collision for collision in near if collision.id not in known))
