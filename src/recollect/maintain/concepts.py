"""Facts that speak of the same things become one concept; the facts stay as they are."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

from recollect.maintain.condense import RULES, condense, quoted
from recollect.maintain.consolidate import entity_name
from recollect.maintain.job import Proposal, Work, is_made_by
from recollect.maintain.looking import each
from recollect.model import Draft, Item

Entities = frozenset[str]
_MOST_NAMED = 4
_MOST_CHARACTERS = 4_000


@dataclass(frozen=True, slots=True)
class Concepts:
    """``min_facts`` or more memories of these ``kinds`` are clustered where their sets
    of entities share ``min_jaccard`` of their union, one with another (single linkage).

    An entity that more than ``most_sets`` different sets hold tells nothing and joins
    none. A concept whose facts have changed is made anew, in place of the old one.
    """

    kinds: tuple[str, ...] = ("fact",)
    min_jaccard: float = 0.5
    min_facts: int = 2
    most_facts: int = 40
    most_sets: int = 200
    name: str = "concepts"
    ends_raw: bool = False
    by_age: bool = False

    def plan(self, work: Work) -> Iterator[Proposal]:
        """The clusters, largest first."""
        with work.store.snapshot():
            clusters = self._clusters(work)
            made = _made_before(clusters, work)
        for facts in clusters:
            before = made.get(tuple(sorted(item.id for item in facts)), ())
            yield _proposal(facts, before, work)

    def _clusters(self, work: Work) -> list[list[Item]]:
        facts = [
            item
            for item in each(work, kinds=self.kinds)
            if item.entities and not item.flags and item.level != "insight"
        ]
        by_kind: defaultdict[tuple[int, int], list[Item]] = defaultdict(list)
        for item in sorted(facts, key=lambda one: (one.stored_at, one.id)):
            # Nothing becomes more secret, or less trusted, by standing beside others.
            by_kind[item.classification, item.trust].append(item)
        found = [one for some in by_kind.values() for one in self._joined(some)]
        kept = [one[-self.most_facts :] for one in found if len(one) >= self.min_facts]
        return sorted(kept, key=lambda one: (-len(one), one[0].stored_at, one[0].id))

    def _joined(self, facts: Sequence[Item]) -> list[list[Item]]:
        sets: dict[Entities, None] = dict.fromkeys(frozenset(item.entities) for item in facts)
        root = linked(sets, self.min_jaccard, self.most_sets)
        joined: defaultdict[Entities, list[Item]] = defaultdict(list)
        for item in facts:
            joined[root[frozenset(item.entities)]].append(item)
        return list(joined.values())


def linked(sets: Mapping[Entities, None], least: float, most_sets: int) -> dict[Entities, Entities]:
    """For each set the one that stands for its cluster (single linkage by Jaccard)."""
    root = {one: one for one in sets}

    def top(one: Entities) -> Entities:
        while root[one] != one:
            root[one] = root[root[one]]
            one = root[one]
        return one

    holding: defaultdict[str, list[Entities]] = defaultdict(list)
    for one in sets:
        for entity in one:
            holding[entity].append(one)
    for entity in sorted(holding):
        if len(holding[entity]) > most_sets:
            continue
        for one, other in combinations(holding[entity], 2):
            if len(one & other) >= least * len(one | other):
                first, second = sorted((top(one), top(other)), key=sorted)
                root[second] = first
    return {one: top(one) for one in sets}


def _made_before(
    clusters: Sequence[Sequence[Item]], work: Work
) -> dict[tuple[str, ...], tuple[str, ...]]:
    """For each cluster the concepts that an earlier run made of any of its facts, unless
    they were made of exactly these."""
    ids = [item.id for facts in clusters for item in facts]
    links = work.store.links_of(ids, ("derives_from",)) if ids else []
    concepts = work.store.get(sorted({link.src.id for link in links}))
    ours = {
        key
        for key, item in concepts.items()
        if item.live_to is None and is_made_by(item, Concepts().name)
    }
    of_fact: defaultdict[str, set[str]] = defaultdict(set)
    for link in links:
        if link.src.id in ours:
            of_fact[link.dst.id].add(link.src.id)
    return {
        tuple(sorted(item.id for item in facts)): tuple(
            sorted({concept for item in facts for concept in of_fact[item.id]})
        )
        for facts in clusters
    }


def _proposal(facts: Sequence[Item], before: tuple[str, ...], work: Work) -> Proposal:
    entities = _telling_entities(facts)
    names = [entity_name(entity, work) for entity in entities[:_MOST_NAMED]]
    title = f"Facts about {', '.join(names)}"
    told = condense(title, facts, work)
    made_by, text = (
        (RULES, _listed(title, facts)) if told.made_by == RULES else (told.made_by, told.text)
    )
    draft = Draft(
        text,
        kind="concept",
        topic=facts[0].topic if len({item.topic for item in facts}) == 1 else None,
        entities=tuple(
            f"{entity.partition(':')[0]}:{name}"
            for entity, name in zip(entities, names, strict=False)
        ),
        confidence=min(item.confidence for item in facts),
        importance=max(item.importance for item in facts) * 0.9,
        metadata={"made_by": made_by, "count": len(facts)},
    )
    return Proposal(
        f"{len(facts)} facts about {', '.join(names)}",
        f"{len(facts)} facts that share their entities",
        ends=before,
        successor=draft,
        parents=tuple(item.id for item in facts),
        renews=True,
        seen={item.id: item.rev for item in facts},
    )


def _telling_entities(facts: Sequence[Item]) -> list[str]:
    counted: defaultdict[str, int] = defaultdict(int)
    for item in facts:
        for entity in item.entities:
            counted[entity] += 1
    return sorted(counted, key=lambda one: (-counted[one], one))[:12]


def _listed(title: str, facts: Sequence[Item]) -> str:
    lines = [f"{title}:"]
    room = _MOST_CHARACTERS
    for item in facts:
        line = f"- {quoted(item, 300)}"
        room -= len(line) + 1
        if room < 0:
            break
        lines.append(line)
    return "\n".join(lines)
