"""Cold memories of one entity and layer become one protected learning."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import NamedTuple

from recollect.jsonable import iso
from recollect.maintain.condense import condense, exemplars
from recollect.maintain.job import Job, Proposal, Work, spared
from recollect.maintain.looking import batches, days_old, each, heats
from recollect.model import Draft, Item

_MOST_ENTITIES = 12
_MOST_TAGS = 32


class _Group(NamedTuple):
    """What may stand together in one learning. Secrecy and trust are of the group too:
    nothing becomes more secret, or less trusted, by being consolidated with others."""

    entity: str
    layer: str
    classification: int
    trust: int


@dataclass(frozen=True, slots=True)
class Consolidate:
    """Of memories in ``layers``, at least ``min_age_days`` old and cooler than
    ``max_heat``, ``min_group`` or more about one entity become one learning.

    ``loose_kinds`` takes memories without a layer in as well, if they are of these kinds.
    Flagged ones (a text that tries to give orders) are left where they are.
    """

    layers: tuple[str, ...] = ("context", "emotion", "implementation")
    loose_kinds: tuple[str, ...] = ()
    min_age_days: float = 7.0
    max_heat: float = 30.0
    min_group: int = 2
    most_group: int = 40
    name: str = "consolidate"
    ends_raw: bool = False
    by_age: bool = True

    def plan(self, work: Work) -> Iterator[Proposal]:
        """The coldest groups first: what was stored longest ago."""
        with work.store.snapshot():
            grouped = self._groups(work)
        size = min(self.most_group, work.limit)
        for group, items in grouped:
            for part in _parts(items, size, self.min_group):
                proposal = _proposal(group, part, self.min_group, work)
                if proposal is not None:
                    yield proposal

    def _groups(self, work: Work) -> list[tuple[_Group, list[Item]]]:
        found = [item for item in each(work, levels=("item",)) if self._is_ripe(item, work)]
        warm = heats(found, work)
        cold = [item for item in found if warm[item.id][0] < self.max_heat]
        grouped = _by_entity(cold)
        kept = [(group, items) for group, items in grouped.items() if len(items) >= self.min_group]
        return sorted(kept, key=lambda one: (one[1][0].stored_at, one[0]))

    def _is_ripe(self, item: Item, work: Work) -> bool:
        fits = item.layer in self.layers or (item.layer is None and item.kind in self.loose_kinds)
        old = days_old(item, work) >= self.min_age_days
        return (
            fits and old and bool(item.entities) and not item.flags and not _is_spared(item, self)
        )


def _is_spared(item: Item, job: Job) -> bool:
    return spared(item, job) is not None


def _by_entity(items: Sequence[Item]) -> Mapping[_Group, list[Item]]:
    """Each memory with the one of its entities that most others share, oldest first."""
    shared = Counter(group for item in items for group in _possible(item))
    grouped: defaultdict[_Group, list[Item]] = defaultdict(list)
    for item in sorted(items, key=lambda one: (one.stored_at, one.id)):
        grouped[min(_possible(item), key=lambda group: (-shared[group], group))].append(item)
    return grouped


def _possible(item: Item) -> list[_Group]:
    layer = item.layer or f"({item.kind})"
    return [_Group(one, layer, item.classification, item.trust) for one in item.entities]


def _parts(items: Sequence[Item], size: int, least: int) -> Iterator[list[Item]]:
    if size >= least:
        yield from (part for part in batches(items, size) if len(part) >= least)


def _proposal(group: _Group, items: Sequence[Item], least: int, work: Work) -> Proposal | None:
    subject = entity_name(group.entity, work)
    condensed = condense(f"{subject} ({group.layer})", items, work)
    held = [item for item in items if item.id in condensed.holds]
    if len(held) < least:
        return None  # by a model's word they do not belong together
    why = f"{len(held)} cold memories about {subject} in {group.layer}"
    draft = Draft(
        condensed.text,
        kind="learning",
        layer="learning",
        topic=_shared_topic(held),
        tags=_tags(held),
        entities=_entities(held, group.entity, work),
        classification=group.classification,
        importance=min(0.89, max(fmean(item.importance for item in held), 0.55)),
        emotion=fmean(item.emotion for item in held),
        confidence=min(item.confidence for item in held),
        occurred_at=min(item.when for item in held),
        occurred_end=max(item.when for item in held),
        metadata={
            "made_by": condensed.made_by,
            "count": len(held),
            "period": [iso(min(item.when for item in held)), iso(max(item.when for item in held))],
            "exemplars": [item.id for item in exemplars(held)],
        },
    )
    return Proposal(
        f"{why}; {condensed.remark}" if condensed.remark else why,
        f"{len(held)} cold memories of one entity and layer",
        ends=tuple(item.id for item in held),
        successor=draft,
        seen={item.id: item.rev for item in held},
    )


def entity_name(entity: str, work: Work) -> str:
    """What an entity is called, by its id."""
    key = entity.partition(":")[2]
    found = (one.name for one in work.store.find_entities(key) if one.id == entity)
    return next(found, key)


def _entities(items: Sequence[Item], first: str, work: Work) -> tuple[str, ...]:
    counted = Counter(entity for item in items for entity in item.entities)
    best = sorted(counted, key=lambda one: (one != first, -counted[one], one))[:_MOST_ENTITIES]
    return tuple(f"{one.partition(':')[0]}:{entity_name(one, work)}" for one in best)


def _shared_topic(items: Sequence[Item]) -> str | None:
    topics = {item.topic for item in items}
    return topics.pop() if len(topics) == 1 else None


def _tags(items: Sequence[Item]) -> tuple[str, ...]:
    counted = Counter(tag for item in items for tag in item.tags)
    return tuple(sorted(counted, key=lambda tag: (-counted[tag], tag))[:_MOST_TAGS])
