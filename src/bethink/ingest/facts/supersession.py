"""Decide which facts supersede or contradict others when they are written.

Facts of one subject and attribute share a slot. Regardless of arrival order, the newer one
is active unless it is trusted less. Nothing is deleted: a superseded fact becomes active
again when the fact that superseded it is forgotten.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Literal

from bethink.core.json_values import iso
from bethink.core.lazy import lazy_pattern
from bethink.core.named_tuple import NamedTuple
from bethink.core.speakers import ROLES
from bethink.core.words import fold
from bethink.ingest.admission import DERIVED_SOURCE, TRUSTED_SOURCES, WriteContext
from bethink.ingest.facts import Fact, extract_fact
from bethink.ingest.facts.clause import values_agree
from bethink.ingest.facts.comparison import (
    Statement,
    are_exclusive_technologies,
    are_exclusive_tools,
    differs_in_words,
    differs_only_in_cadence,
    differs_only_in_holder,
    is_explicit_replacement,
    is_negation,
    is_restated_value,
    is_single_tool_purpose,
    same_conditions,
    same_scope,
    status_excludes,
)
from bethink.ingest.facts.vocabulary import (
    DATED_NOUNS,
    LAYERED_VERBS,
    PLAIN_VALUED_NOUNS,
    PROBLEM_NOUNS,
    TRANSIENT_NOUNS,
)
from bethink.lang.dates import find_times
from bethink.model import Collision, Draft, Filters, Item, Link, Node
from bethink.ports import Record, Scope

SUPERSEDE_CONFIDENCE = 0.9
DOUBTFUL_CONFIDENCE = 0.4
_MIN_CONFIDENCE = 0.5
_DIGIT = lazy_pattern(r"\d")
Verdict = Literal["replaces", "denies", "doubtful"]


class StatedFact(NamedTuple):
    """An item and the fact it states."""

    item: Item
    fact: Fact

    @property
    def valid_since(self) -> datetime:
        """The time from which it holds, as far as known."""
        return self.item.valid_from or self.item.when

    @property
    def is_change(self) -> bool:
        """Whether it says that something changed or ended."""
        return self.fact.how in ("became", "ended")

    @property
    def statement(self) -> Statement:
        """Its text and fact, as compared with other statements."""
        fact = self.fact
        return Statement(self.item.text, fact.value, fact.subject, fact.attribute, fact.before)


class Judgement(NamedTuple):
    """``first`` supersedes or contradicts ``second``; ``why`` is a readable reason."""

    kind: Literal["supersedes", "contradicts"]
    first: StatedFact
    second: StatedFact
    confidence: float
    why: str


def judge_facts(one: StatedFact, other: StatedFact, *, by_rules: bool = True) -> Judgement | None:
    """Judge two facts of the same subject and attribute, in any order.

    Facts that were not read ``by_rules`` have no words to compare: they can only be suspected
    of contradicting each other.
    """
    newer, older = _newer_first(one, other)
    if _are_different_subjects(newer, older) or _is_temporary_or_future(newer, older):
        return None
    verdict = (
        _compare_facts(newer, older) if by_rules else _suspect_conflict(newer.fact, older.fact)
    )
    if verdict is None:
        return None
    obstacle = (
        _supersede_obstacle(newer, older) if verdict == "replaces" else "they exclude each other"
    )
    if not obstacle:
        return Judgement(
            "supersedes", newer, older, SUPERSEDE_CONFIDENCE, "newer and with another value"
        )
    if "event" in (newer.fact.holds, older.fact.holds):
        return None  # two meetings at two times
    doubtful = verdict == "doubtful"
    why = "usually there is only one value" if doubtful else obstacle
    return Judgement("contradicts", newer, older, DOUBTFUL_CONFIDENCE if doubtful else 0.8, why)


def _newer_first(one: StatedFact, other: StatedFact) -> tuple[StatedFact, StatedFact]:
    """Order by time, newer first; then a change after what it changes; then by id."""
    keys = [(stated.valid_since, stated.is_change, stated.item.id) for stated in (one, other)]
    return (one, other) if keys[0] > keys[1] else (other, one)


def _are_different_subjects(newer: StatedFact, older: StatedFact) -> bool:
    """Check whether they concern different things of one name, by user, topic or project.

    "the timeout is 30 s" means another one in another topic or project.
    """
    users = {newer.item.user, older.item.user} - {None}
    if len(users) == 2:
        return True
    new_topic, old_topic = newer.item.topic, older.item.topic
    if new_topic != old_topic and ((new_topic and old_topic) or not newer.is_change):
        return True
    projects = [
        {entity for entity in stated.item.entities if entity.startswith("project:")}
        for stated in (newer, older)
    ]
    return all(projects) and projects[0].isdisjoint(projects[1])


def _is_temporary_or_future(newer: StatedFact, older: StatedFact) -> bool:
    """Check whether the newer one is temporary, or either holds only later."""
    item = newer.item
    if newer.valid_since > item.stored_at or (
        item.valid_to is not None and not older.item.valid_to
    ):
        return True
    return any(_begins_after(stated.item, item.stored_at) for stated in (newer, older))


def _begins_after(item: Item, moment: datetime) -> bool:
    """Check whether its words say that it holds only from a later time on."""
    since = _SINCE_PHRASE.search(item.text)
    date_text = (
        item.text
        if _OPENING_DATE_PHRASE.match(item.text)
        else item.text[since.end() :]
        if since
        else ""
    )
    spans = find_times(date_text, item.stored_at)[:1] if date_text else []
    return any(span.start > moment for span in spans)


_SINCE_PHRASE = lazy_pattern(r"\b(?:as of|as from|starting|effective|beginning)\b", re.IGNORECASE)
_OPENING_DATE_PHRASE = lazy_pattern(
    r"\s*(?:as of|as from|from|starting|effective|beginning|until|till|in|on|next|by)\b",
    re.IGNORECASE,
)


def _suspect_conflict(newer: Fact, older: Fact) -> Literal["doubtful"] | None:
    single_valued = {newer.holds, older.holds} <= {"one", "some"}
    positive = {newer.how, older.how} <= {"is", "became"}
    return (
        "doubtful"
        if single_valued and positive and not values_agree(newer.value, older.value)
        else None
    )


def _compare_facts(one: StatedFact, other: StatedFact) -> Verdict | None:
    """Compare two statements by their words alone."""
    newer, older = one.fact, other.fact
    same = values_agree(newer.value, older.value)
    was_positive, is_positive = older.how in ("is", "became"), newer.how in ("is", "became")
    if was_positive and is_positive:
        return None if same else _compare_values(one, other)
    if was_positive == is_positive or not same or not is_negation(one.item.text, other.item.text):
        return None  # "not in A" and "in B" are both true
    explicit = newer.how in ("ended", "became") or older.how == "ended"
    return "replaces" if explicit else "denies"


def _compare_values(one: StatedFact, other: StatedFact) -> Verdict | None:
    """Compare two values, both stated as true."""
    newer, older = one.fact, other.fact
    if newer.by and older.by and newer.by != older.by:
        return None  # cut on Tuesdays, announced on Fridays
    if "status" in (newer.holds, older.holds):
        return _compare_status(newer, older)
    if newer.before:
        return _compare_replacement(one, other)
    if newer.how == "became":
        return _compare_change(one, other)
    if {"event", "many", "version"} & {newer.holds, older.holds}:
        return _compare_versions(one, other)
    return None if _is_transient(newer) else _compare_plain_statement(one, other)


def _compare_plain_statement(one: StatedFact, other: StatedFact) -> Verdict | None:
    """Compare where the newer statement does not announce a change."""
    newer, older = one.fact, other.fact
    loose = "loose" in (newer.holds, older.holds)
    if older.how == "became" and not differs_in_words(newer.value, older.value):
        replaces = is_explicit_replacement(one.statement, other.statement, whole=older.whole)
    else:
        replaces = is_restated_value(
            one.item.text, other.item.text, allow_names=_is_single_valued(newer)
        )
    if replaces:
        return "doubtful" if loose else "replaces"
    if is_restated_value(one.item.text, other.item.text, allow_names=True):
        return "doubtful" if same_scope(one.statement, other.statement) else None
    similar = differs_only_in_holder(one.statement, other.statement) or differs_only_in_cadence(
        one.statement, other.statement
    )
    return "doubtful" if similar else None


def _compare_status(newer: Fact, older: Fact) -> Verdict | None:
    """Compare statuses: pending, then done; enabled, then disabled."""
    if newer.holds != older.holds:
        return None
    excluded = status_excludes(newer.value, older.value, changed=newer.how == "became")
    return None if excluded is None else "replaces" if excluded else "doubtful"


def _compare_replacement(one: StatedFact, other: StatedFact) -> Verdict | None:
    """Compare where the newer one names the value it replaced."""
    newer, older = one.fact, other.fact
    if values_agree(newer.before, older.value):
        if not same_scope(one.statement, other.statement):
            return None
        return (
            "replaces"
            if not older.whole or same_conditions(one.statement, other.statement)
            else None
        )
    return "denies" if {newer.holds, older.holds} <= {"one", "some"} else None


def _compare_change(one: StatedFact, other: StatedFact) -> Verdict | None:
    """Compare where the newer one says that it was not so before."""
    newer, older = one.fact, other.fact
    is_problem = newer.subject.split()[-1] in PROBLEM_NOUNS  # the bug of today
    if is_problem or not is_explicit_replacement(one.statement, other.statement, whole=older.whole):
        return None
    holds = {newer.holds, older.holds}
    if not holds & {"many", "version"}:
        return "doubtful" if _can_coexist(newer, older) else "replaces"
    if not _is_exclusive_choice(newer):
        return None  # what supports 3.13 now may support 3.12 as well
    same_words = not differs_in_words(newer.value, older.value)
    if same_words or are_exclusive_tools(newer.value, older.value):
        return "replaces"
    likely = "version" in holds or newer.attribute == "prefers"
    return "doubtful" if likely else None


def _can_coexist(newer: Fact, older: Fact) -> bool:
    """Check whether two tools may be used together.

    Jest and Node 20, for the frontend; written in React and in TypeScript.
    """
    if not differs_in_words(newer.value, older.value):
        return False
    if not LAYERED_VERBS.isdisjoint(newer.attribute.split()):
        return not are_exclusive_technologies(newer.value, older.value)
    verb, _, purpose = newer.attribute.partition(" for ")
    if verb != "uses":
        return False
    numbered = {bool(_DIGIT.search(fact.value.partition(" ")[2])) for fact in (newer, older)}
    return len(numbered) == 2 or not is_single_tool_purpose(purpose or newer.subject)


def _compare_versions(one: StatedFact, other: StatedFact) -> Verdict | None:
    """Compare multi-valued facts: another version of one value, or an exclusive tool."""
    newer, older = one.fact, other.fact
    if "event" in (newer.holds, older.holds) or not _is_exclusive_choice(newer):
        return None
    if are_exclusive_tools(newer.value, older.value):
        return (
            "doubtful"
            if is_restated_value(one.item.text, other.item.text, allow_names=True)
            else None
        )
    # Different names are different things; compare texts only for the same name.
    if newer.value.split()[0] != older.value.split()[0]:
        return None
    replaces = is_restated_value(one.item.text, other.item.text, allow_names=False)
    if older.how == "became" and not differs_in_words(newer.value, older.value):
        replaces = replaces or is_explicit_replacement(
            one.statement, other.statement, whole=older.whole
        )
    if not replaces:
        return None
    return "replaces" if newer.holds == older.holds == "version" else "doubtful"


def _is_exclusive_choice(fact: Fact) -> bool:
    """Check whether one usually picks one of a kind: one uses one Python, likes many teas."""
    return fact.attribute.split()[0] in ("uses", "prefers", "requires", "needs", "targets")


def _is_transient(fact: Fact) -> bool:
    """Check whether such things come and go: the bug, the ticket, the weather."""
    return fact.subject.split()[-1] in TRANSIENT_NOUNS


def _is_single_valued(fact: Fact) -> bool:
    """Check whether the attribute's name implies one value at a time."""
    words = (fact.subject if fact.attribute == "value" else fact.attribute).split()
    return words[0] in _SINGLE_VALUED_MARKERS or words[-1] in (
        PLAIN_VALUED_NOUNS | {"employer"}
    ) - {"name"}


_SINGLE_VALUED_MARKERS = frozenset({"favourite", "favorite", "preferred", "default", "current"})


def _supersede_obstacle(newer: StatedFact, older: StatedFact) -> str:
    """Return why the newer fact may not supersede the older one; empty if it may."""
    if newer.valid_since == older.valid_since and newer.is_change == older.is_change:
        return "both have the same time"
    if newer.item.trust < older.item.trust:
        return "the newer one is less trusted"
    if newer.item.classification > older.item.classification:
        return "the newer one has a higher classification"
    if newer.item.confidence < _MIN_CONFIDENCE or "injection" in newer.item.flags:
        return "the newer one is doubtful"
    return ""


MODEL_FACT_KEY = "fact"  # metadata key of a fact extracted by a model
SUPERSEDED_SINCE = "since "  # prefix of the context of a link whose target left recall
SUPERSEDED_NOTE = "superseded, no longer recalled"
PARTLY_SUPERSEDED_NOTE = "superseded in part, both kept"
STORED_SUPERSEDED_NOTE = "a newer fact is known, stored as superseded"
CONTRADICTS_NOTE = "kept both, linked as contradicting"
# Kinds that state intentions or instructions, not facts.
_NON_FACT_KINDS = frozenset({"question", "task", "goal", "directive", "playbook", "caveat"})
_FROM_NOW = "from now on"  # marks a change, not an intention
_NON_FACT_LAYERS = frozenset({"goal", "caveat"})
_MAX_ACTIVE = 64  # per slot, the limit of the store
_MAX_CONTRADICTIONS = 8  # contradictions reported for one memory
_Slot = tuple[str, str]


def extract_draft_fact(draft: Draft, kind: str) -> Fact | None:
    """Extract the fact a draft states, if its kind states facts.

    Verbatim episodes state none: they are kept as they were said.
    """
    is_task = kind == "task"
    is_change = kind == "directive" and _FROM_NOW in fold(draft.text)
    if draft.level != "item" or draft.layer in _NON_FACT_LAYERS:
        return None
    if kind in _NON_FACT_KINDS and not (is_task or is_change):
        return None
    if draft.source_class == DERIVED_SOURCE or draft.derives_from:
        return None  # derived from older memories: its date says nothing
    fact = extract_fact(draft.text, _first_person(draft))
    # A task is no fact, but the date of its deadline is one.
    return fact if not is_task or (fact and _is_date_fact(fact)) else None


def _is_date_fact(fact: Fact) -> bool:
    words = (*fact.subject.split(), *fact.attribute.split())
    return words[-1] == "time" and words[-2] in DATED_NOUNS


def item_fact(item: Item) -> Fact | None:
    """Return the fact of an item's slot: parsed from its text, or as a model read it."""
    if item.subject is None or item.attribute is None:
        return None
    model_fact = item.metadata.get(MODEL_FACT_KEY)
    if isinstance(model_fact, dict) and isinstance(model_fact.get("value"), str):
        # `whole` is false: a fact read by a model never removes a memory from recall.
        return Fact(item.subject, item.attribute, model_fact["value"], whole=False)
    extracted = extract_fact(item.text, _first_person(item))
    same_slot = extracted is not None and (extracted.subject, extracted.attribute) == (
        item.subject,
        item.attribute,
    )
    return extracted if same_slot else None


def _first_person(source: Draft | Item) -> str | None:
    """Return who "I" refers to."""
    speaker = fold(source.speaker or "")
    if speaker and speaker not in ROLES:
        return speaker
    from_user = source.source_class in TRUSTED_SOURCES and speaker in ("", "user", "human")
    return "user" if from_user else None


@dataclass(slots=True)
class _SettlementOutcome:
    """Outcomes for the new memories, by their id and the other memory's."""

    supersedes: dict[str, dict[str, int]] = field(default_factory=lambda: defaultdict(dict))
    links: dict[str, list[Link]] = field(default_factory=lambda: defaultdict(list))
    stored_superseded: set[str] = field(default_factory=set)
    collisions: dict[str, list[Collision]] = field(default_factory=lambda: defaultdict(list))


def settle_facts(
    records: Sequence[Record],
    near: Sequence[tuple[Collision, ...]],
    facts: Mapping[str, Fact],
    ctx: WriteContext,
) -> tuple[list[Record], list[tuple[Collision, ...]]]:
    """Add to the records what they supersede; return each record's collisions."""
    new = [StatedFact(one.item, facts[one.item.id]) for one in records if one.item.id in facts]
    if not new:
        return list(records), list(near)
    outcome = _judge_new_facts(new, ctx)
    merged = [
        _merge_collisions(outcome.collisions.get(record.item.id, ()), duplicates)
        for record, duplicates in zip(records, near, strict=True)
    ]
    return [_apply_outcome(record, outcome) for record in records], merged


def _judge_new_facts(new: Sequence[StatedFact], ctx: WriteContext) -> _SettlementOutcome:
    """Judge every new fact against the active ones of its slot, in order of time."""
    groups, slots = _group_by_slot(new, ctx)
    outcome = _SettlementOutcome()
    fresh = {stated.item.id for stated in new}
    # By time, so that the order within a batch does not matter.
    for stated in sorted(
        new, key=lambda stated_fact: (stated_fact.valid_since, stated_fact.is_change)
    ):
        _settle_one(stated, groups[slots[stated.fact[:2]]], fresh, outcome, ctx)
    return outcome


def _settle_one(
    stated: StatedFact,
    active: list[StatedFact],
    fresh: set[str],
    outcome: _SettlementOutcome,
    ctx: WriteContext,
) -> None:
    """Judge one new fact against the active ones, newest first, up to a limit.

    The limit keeps a batch of a thousand for one slot as fast as any other.
    """
    remains_active, contradictions = True, 0
    for other in active[: -_MAX_ACTIVE - 1 : -1]:
        judgement = judge_facts(stated, other)
        if judgement is None:
            continue
        superseded = judgement.second if judgement.kind == "supersedes" else None
        # A fact that is superseded itself still supersedes older facts.
        if not remains_active and (superseded is None or superseded is stated):
            continue
        contradictions += superseded is None
        if superseded is None and contradictions > _MAX_CONTRADICTIONS:
            continue
        _record_judgement(judgement, fresh, outcome, ctx)
        if superseded is stated:
            remains_active = not _leaves_recall(judgement)
        elif superseded is other and _leaves_recall(judgement):
            active[:] = [fact for fact in active if fact is not other]
    if remains_active:
        active.append(stated)
        active.sort(key=lambda fact: (fact.valid_since, fact.is_change))


def _group_by_slot(
    new: Iterable[StatedFact], ctx: WriteContext
) -> tuple[dict[_Slot, list[StatedFact]], dict[_Slot, _Slot]]:
    """Group the active facts by slot; also map each slot to its canonical name."""
    slots: dict[_Slot, _Slot] = {}
    pairs = list(dict.fromkeys(stated.fact[:2] for stated in new))
    lowest = min((stated.item.classification for stated in new), default=0)
    known = ctx.store.graph.other_names(
        [subject for subject, _ in pairs], max_classification=lowest
    )
    for subject, attribute in pairs:
        names = sorted({subject, *known.get(subject, ())})
        slots.update({(name, attribute): (names[0], attribute) for name in names})
    groups: dict[_Slot, list[StatedFact]] = {slot: [] for slot in slots.values()}
    new_ids = {stated.item.id for stated in new}
    scope = Scope(Filters(max_classification=3, include_expired=True), ctx.now)
    for item in ctx.store.items.slots(list(slots), scope):
        fact = item_fact(item)
        if fact is not None and item.id not in new_ids and item.status == "active":
            groups[slots[fact[:2]]].append(StatedFact(item, fact))
    for group in groups.values():
        group.sort(key=lambda stated_fact: (stated_fact.valid_since, stated_fact.is_change))
    return groups, slots


def _leaves_recall(judgement: Judgement) -> bool:
    """Check whether the older one leaves recall: a text that says more stays."""
    return judgement.second.fact.whole


def _record_judgement(
    judgement: Judgement, fresh: set[str], outcome: _SettlementOutcome, ctx: WriteContext
) -> None:
    first, second = judgement.first.item, judgement.second.item
    supersedes = judgement.kind == "supersedes"
    leaves = supersedes and _leaves_recall(judgement)
    holder = first.id if first.id in fresh else second.id
    context = f"{SUPERSEDED_SINCE}{iso(judgement.first.valid_since)}" if leaves else judgement.why
    outcome.links[holder].append(
        Link(
            Node("item", first.id),
            Node("item", second.id),
            judgement.kind,
            confidence=judgement.confidence,
            context=context,
            created_at=ctx.now,
        )
    )
    if leaves and second.id in fresh:
        outcome.stored_superseded.add(second.id)
    elif leaves:
        outcome.supersedes[first.id][second.id] = second.rev
    for mine, other in ((judgement.first, judgement.second), (judgement.second, judgement.first)):
        if mine.item.id in fresh:
            outcome.collisions[mine.item.id].append(_collision(judgement, mine.item, other.item))


def _collision(judgement: Judgement, mine: Item, other: Item) -> Collision:
    """Describe the other memory for the writer of ``mine``."""
    # Never reveal the text of a memory of higher classification to the writer.
    text = other.text if other.classification <= mine.classification else ""
    confidence = judgement.confidence
    if judgement.kind == "contradicts":
        less_trusted = mine if mine.trust < other.trust else other
        note, undo = f"{CONTRADICTS_NOTE}: {judgement.why}", f"bethink forget {less_trusted.id}"
        return Collision(other.id, "contradicts", confidence, note, text, undo)
    if not _leaves_recall(judgement):
        kind = "supersedes" if judgement.first.item is mine else "superseded"
        undo = f"bethink forget {judgement.second.item.id}"
        note = PARTLY_SUPERSEDED_NOTE
        return Collision(other.id, kind, confidence, note, text, undo)  # type: ignore[arg-type]
    undo = f"bethink undo {judgement.second.item.id}"
    if judgement.first.item is mine:
        return Collision(other.id, "supersedes", confidence, SUPERSEDED_NOTE, text, undo)
    return Collision(other.id, "superseded", confidence, STORED_SUPERSEDED_NOTE, text, undo)


def _apply_outcome(record: Record, outcome: _SettlementOutcome) -> Record:
    item = record.item
    if item.id not in outcome.collisions:
        return record
    if item.id in outcome.stored_superseded:
        item = item._replace(status="superseded")
    return replace(
        record,
        item=item,
        links=(*record.links, *outcome.links.get(item.id, ())),
        supersedes=outcome.supersedes.get(item.id, {}),
    )


def _merge_collisions(
    judged: Sequence[Collision], near: Sequence[Collision]
) -> tuple[Collision, ...]:
    """Merge collisions, each other memory once: a judgement outranks similarity."""
    known = {collision.id for collision in judged}
    return (*judged, *(collision for collision in near if collision.id not in known))
