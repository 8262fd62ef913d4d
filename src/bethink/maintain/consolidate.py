"""Consolidate memories into learnings and concepts, by rules or a language model."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from statistics import fmean

from bethink.core import plural
from bethink.core.arrays import Matrix, NDArray, np
from bethink.core.blas import ONE_BLAS_THREAD
from bethink.core.characters import strip_hidden
from bethink.core.json_values import iso
from bethink.core.lazy import lazy_pattern
from bethink.core.named_tuple import NamedTuple
from bethink.core.sentences import caption, sentences, shorten
from bethink.core.words import fold, word_set
from bethink.errors import ModelError
from bethink.ingest.content_checks import content_flags
from bethink.ingest.statements import support
from bethink.maintain.job import (
    JobContext,
    Proposal,
    batches,
    days_old,
    exemption_reason,
    heat_by_id,
    is_made_by,
    iter_current,
    limit_text,
)
from bethink.model import Draft, Item
from bethink.prompts import cited_ids, fill_prompt, load_passages

RULES = "rules"
TYPICAL_PREFIX = "Typical: "  # prefix of the line with the most typical sentence
SECRET_CLASSIFICATION = 3  # never shown to a model
EXEMPLARS = 3
EXEMPLAR_CHARACTERS = 200
DETAIL_CHARACTERS = 600
BRIEF_CHARACTERS = 1_500
BRIEF_MIN_CHARACTERS = 60
_DETAIL = lazy_pattern(r"\S*\d\S*|\S+[_/.:@#]\w\S*|[A-Z][\w'’-]*[A-Z]\w*|(?<=[a-z,;] )[A-Z]\w+")
_TRIM = "\"'`()[]{}<>,;:!?…"
_NUMBER = lazy_pattern(r"\d+(?:[.,:/-]\d+)*")
_MAX_SENTENCES = 400
_LEAST_SUPPORT = 0.5
UNSUPPORTED = "the sources do not support what the model wrote"


class CondensedText(NamedTuple):
    """One text for several memories, its author, and the ids of those it covers."""

    text: str
    made_by: str
    holds: tuple[str, ...]
    remark: str = ""


def condense(subject: str, items: Sequence[Item], work: JobContext) -> CondensedText:
    """Condense memories of one subject into one text, by the model if any, else by rules.

    A model never sees secret memories, and its text is rejected where it adds numbers that
    its sources do not hold.
    """
    if work.model is None or any(item.classification >= SECRET_CLASSIFICATION for item in items):
        return condense_by_rules(subject, items)
    try:
        return _condense_by_model(subject, items, work)
    except ModelError as error:
        return condense_by_rules(subject, items)._replace(remark=f"by rules: {error.message}")


def condense_by_rules(subject: str, items: Sequence[Item]) -> CondensedText:
    """Condense by rules: a typical sentence, exemplars in full, the others in brief.

    Names and numbers that this leaves out are appended, so that everything found by its
    words before is still found by them.
    """
    chosen = exemplars(items)
    first, last = min(item.when for item in items), max(item.when for item in items)
    days = dict.fromkeys((f"{first:%Y-%m-%d}", f"{last:%Y-%m-%d}"))
    lines = [f"{len(items)} memories about {subject}, {' to '.join(days)}."]
    typical = central_sentence(items)
    if typical:
        lines.append(f"{TYPICAL_PREFIX}{typical}")
    lines += [f"- {dated_excerpt(item)}" for item in chosen]
    lines += _brief_lines([item for item in items if item not in chosen])
    details = _missing_details(items, " ".join(lines))
    if details:
        lines.append(f"Also: {', '.join(details)}")
    return CondensedText("\n".join(lines), RULES, tuple(item.id for item in items))


def exemplars(items: Sequence[Item], count: int = EXEMPLARS) -> list[Item]:
    """Return the most important memories, in the order of time."""
    best = sorted(items, key=lambda item: (-item.importance, item.when, item.id))[:count]
    return sorted(best, key=lambda item: (item.when, item.id))


def dated_excerpt(item: Item, limit: int = EXEMPLAR_CHARACTERS) -> str:
    """Format a memory on one line, with its day, cut at a word."""
    line = " ".join(strip_hidden(item.text).split())
    return f"{item.when:%Y-%m-%d}: {_with_reference(shorten(line, limit), item)}"


def _brief_lines(items: Sequence[Item]) -> list[str]:
    if not items:
        return []
    room = max(BRIEF_MIN_CHARACTERS, BRIEF_CHARACTERS // len(items))
    in_order = sorted(items, key=lambda item: (item.when, item.id))
    brief = (_with_reference(caption(item.text, limit=room).rstrip("."), item) for item in in_order)
    return [f"In brief: {'; '.join(brief)}"]


def _with_reference(excerpt: str, item: Item) -> str:
    """Append the id of a memory that an excerpt cuts: `bethink show` gives the rest."""
    return f"{excerpt} [{item.id}]" if excerpt.endswith("…") else excerpt


def central_sentence(items: Sequence[Item]) -> str:
    """Return the sentence whose words most memories share; empty where none do."""
    candidates = [
        (text, word_set(text)) for item in items for text in sentences(strip_hidden(item.text))
    ]
    candidates = candidates[:_MAX_SENTENCES]
    holding = Counter(word for item in items for word in word_set(item.text))
    best, most = "", 0.0
    for sentence, words in candidates:
        if len(words) < 3:
            continue
        shared = sum(holding[word] - 1 for word in words) / (len(words) + 4)
        if shared > most:
            best, most = sentence, shared
    return shorten(" ".join(best.split()), EXEMPLAR_CHARACTERS)


def _missing_details(items: Sequence[Item], said: str) -> list[str]:
    """List names, numbers, paths and versions missing from the text, for search."""
    there = fold(said)
    kept: dict[str, str] = {}
    room = DETAIL_CHARACTERS
    for item in sorted(items, key=lambda entry: (entry.when, entry.id)):
        for detail in _DETAIL.findall(strip_hidden(item.text)):
            shown = detail.strip(_TRIM).rstrip(".")
            key = fold(shown)
            if len(shown) < 2 or key in kept or key in there or len(shown) + 2 > room:
                continue
            kept[key] = shown
            room -= len(shown) + 2
    return list(kept.values())


def _condense_by_model(subject: str, items: Sequence[Item], work: JobContext) -> CondensedText:
    assert work.model is not None
    passages = load_passages(work.store, [item.id for item in items])
    prompt = fill_prompt("summarise", work.store.space, memories=passages)
    answer = work.model.complete(prompt, budget=work.budget)
    left_out = set(cited_ids(passages, answer["left_out"]))
    holds = tuple(
        item_id for item_id in cited_ids(passages, answer["sources"]) if item_id not in left_out
    )
    text = f"{answer['title'].strip()}\n{answer['learning'].strip()}"
    by_id = {item.id: item for item in items}
    held = [by_id[item_id] for item_id in holds if item_id in by_id]
    stray = next(unsupported_numbers(text, held), None)
    if stray or not is_borne_out(text, held, work):
        condensed = condense_by_rules(subject, held or items)
        what = f"the model added {stray!r:.40}" if stray else UNSUPPORTED
        return condensed._replace(remark=f"by rules: {what}")
    return CondensedText(text, work.model.name, holds)


def is_borne_out(text: str, sources: Iterable[Item], work: JobContext) -> bool:
    """Whether a model's text has at least half of its words from its sources, and no orders.

    A translation, a refusal or the prompt itself does not.
    """
    share = support(text, (item.text for item in sources), work.store.search.terms)
    return share >= _LEAST_SUPPORT and not content_flags(text)


def unsupported_numbers(text: str, sources: Iterable[Item]) -> Iterator[str]:
    """Yield numbers of a text that none of its sources holds."""
    known = {
        figure
        for item in sources
        for figure in _NUMBER.findall(f"{item.text} {item.when:%Y-%m-%d}")
    }
    parts = {part for figure in known for part in re.split(r"\D+", figure)}
    for figure in _NUMBER.findall(text):
        if figure not in known and not parts.issuperset(re.split(r"\D+", figure)):
            yield figure


_MAX_ENTITIES = 12
_MAX_TAGS = 32


class _LearningGroup(NamedTuple):
    """The key of memories that may be consolidated together.

    Includes classification and trust, which consolidation does not change, and the user:
    nobody's memories become part of another's.
    """

    entity: str
    layer: str
    classification: int
    trust: int
    user: str


@dataclass(frozen=True, slots=True)
class Consolidate:
    """Consolidate cold memories of one entity and layer into one protected learning.

    Takes memories in ``layers`` that are at least ``min_age_days`` old and cooler than
    ``max_heat``, ``min_group`` or more about one entity. ``loose_kinds`` includes memories
    of these kinds without a layer. Flagged memories (suspected prompt injection) are left
    alone.
    """

    layers: tuple[str, ...] = ("context", "emotion", "implementation")
    loose_kinds: tuple[str, ...] = ()
    min_age_days: float = 7.0
    max_heat: float = 30.0
    min_group: int = 2
    most_group: int = 40
    name: str = "consolidate"
    by_age: bool = True

    def plan(self, work: JobContext) -> Iterator[Proposal]:
        """Propose the groups stored longest ago first."""
        with work.store.snapshot():
            grouped = self._find_groups(work)
        size = min(self.most_group, work.limit)
        if grouped and size < self.min_group:
            count = sum(len(items) for _, items in grouped)
            why = f"{plural(count, 'cold memory')} not consolidated: {limit_text(work)}"
            yield Proposal(why, "")
            return
        for group, items in grouped:
            for part in batches(items, size):
                proposal = _learning_proposal(group, part, self.min_group, work)
                if proposal is not None:
                    yield proposal

    def _find_groups(self, work: JobContext) -> list[tuple[_LearningGroup, list[Item]]]:
        found = [item for item in iter_current(work, levels=("item",)) if self._is_due(item, work)]
        warm = heat_by_id(found, work)
        cold = [item for item in found if warm[item.id][0] < self.max_heat]
        grouped = _group_by_entity(cold)
        kept = [(group, items) for group, items in grouped.items() if len(items) >= self.min_group]
        return sorted(kept, key=lambda pair: (pair[1][0].stored_at, pair[0]))

    def _is_due(self, item: Item, work: JobContext) -> bool:
        fits = item.layer in self.layers or (item.layer is None and item.kind in self.loose_kinds)
        min_age = self.min_age_days if work.min_age_days is None else work.min_age_days
        old = days_old(item, work) >= min_age
        told = fits and old and bool(item.entities) and not item.flags
        return told and exemption_reason(item) is None


def _group_by_entity(items: Sequence[Item]) -> Mapping[_LearningGroup, list[Item]]:
    """Group each memory by its most widely shared entity, oldest first."""
    shared = Counter(group for item in items for group in _possible_groups(item))
    grouped: defaultdict[_LearningGroup, list[Item]] = defaultdict(list)
    for item in sorted(items, key=lambda entry: (entry.stored_at, entry.id)):
        grouped[min(_possible_groups(item), key=lambda group: (-shared[group], group))].append(item)
    return grouped


def _possible_groups(item: Item) -> list[_LearningGroup]:
    layer = item.layer or f"({item.kind})"
    about = layer, item.classification, item.trust, item.user or ""
    return [_LearningGroup(entity, *about) for entity in item.entities]


def _learning_proposal(
    group: _LearningGroup, items: Sequence[Item], least: int, work: JobContext
) -> Proposal | None:
    if len(items) < least:
        return None
    subject = entity_name(group.entity, work)
    condensed = condense(f"{subject} ({group.layer})", items, work)
    held = [item for item in items if item.id in condensed.holds]
    topics = {item.topic for item in held}
    tags = Counter(tag for item in held for tag in item.tags)
    if len(held) < least:
        return None  # the model found that they do not belong together
    why = f"{len(held)} cold memories about {subject} in {group.layer}"
    draft = Draft(
        condensed.text,
        kind="learning",
        layer="learning",
        topic=topics.pop() if len(topics) == 1 else None,
        tags=tuple(sorted(tags, key=lambda tag: (-tags[tag], tag))[:_MAX_TAGS]),
        entities=tuple(_full_name(one, work) for one in _common_entities(held, group.entity)),
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
        remark=condensed.remark,
    )


def entity_name(entity: str, work: JobContext) -> str:
    """Return the name of an entity, by its id."""
    key = entity.partition(":")[2]
    (found,) = work.store.graph.find_entities((key,))
    return next((known.name for known in found if known.id == entity), key)


def _full_name(entity: str, work: JobContext) -> str:
    return f"{entity.partition(':')[0]}:{entity_name(entity, work)}"


def _common_entities(items: Sequence[Item], first: str = "") -> list[str]:
    """Return the entities that most of the items mention, one of them first."""
    counted = Counter(entity for item in items for entity in item.entities)
    return sorted(counted, key=lambda key: (key != first, -counted[key], key))[:_MAX_ENTITIES]


EntitySet = frozenset[str]
_MAX_NAMED = 4
_MAX_CHARACTERS = 4_000


@dataclass(frozen=True, slots=True)
class Concepts:
    """Cluster ``min_facts`` or more memories of these ``kinds`` by shared entities.

    Single linkage: two join where their entity sets share ``min_jaccard`` of their union.
    An entity in more than ``most_sets`` different sets does not discriminate and joins
    none. A concept whose facts have changed is rebuilt and replaces the old one. The facts
    stay as they are.
    """

    kinds: tuple[str, ...] = ("fact",)
    min_jaccard: float = 0.5
    min_facts: int = 2
    most_facts: int = 40
    most_sets: int = 200
    name: str = "concepts"

    def plan(self, work: JobContext) -> Iterator[Proposal]:
        """Propose the clusters, largest first."""
        with work.store.snapshot():
            clusters = self._cluster_facts(work)
            made = _existing_concepts(clusters, work)
        for facts in clusters:
            before = made.get(tuple(sorted(item.id for item in facts)), ())
            yield _concept_proposal(facts, before, work)

    def _cluster_facts(self, work: JobContext) -> list[list[Item]]:
        facts = [
            item
            for item in iter_current(work, kinds=self.kinds)
            if item.entities and not item.flags and item.level != "insight"
        ]
        by_kind: defaultdict[tuple[int, int, str | None], list[Item]] = defaultdict(list)
        for item in sorted(facts, key=lambda cluster: (cluster.stored_at, cluster.id)):
            # Merging must not raise the classification of a memory, lower its trust, or give
            # it to another user.
            by_kind[item.classification, item.trust, item.user].append(item)
        found = [cluster for some in by_kind.values() for cluster in self._join_by_entities(some)]
        kept = [cluster[-self.most_facts :] for cluster in found if len(cluster) >= self.min_facts]
        return sorted(
            kept, key=lambda cluster: (-len(cluster), cluster[0].stored_at, cluster[0].id)
        )

    def _join_by_entities(self, facts: Sequence[Item]) -> list[list[Item]]:
        sets: dict[EntitySet, None] = dict.fromkeys(frozenset(item.entities) for item in facts)
        root = single_linkage(sets, self.min_jaccard, self.most_sets)
        joined: defaultdict[EntitySet, list[Item]] = defaultdict(list)
        for item in facts:
            joined[root[frozenset(item.entities)]].append(item)
        return list(joined.values())


def single_linkage(
    sets: Mapping[EntitySet, None], min_jaccard: float, most_sets: int
) -> dict[EntitySet, EntitySet]:
    """Map each set to the representative of its cluster (single linkage by Jaccard)."""
    root = {members: members for members in sets}

    def top(members: EntitySet) -> EntitySet:
        while root[members] != members:
            root[members] = root[root[members]]
            members = root[members]
        return members

    holding: defaultdict[str, list[EntitySet]] = defaultdict(list)
    for members in sets:
        for entity in members:
            holding[entity].append(members)
    for entity in sorted(holding):
        if len(holding[entity]) > most_sets:
            continue
        for members, other in combinations(holding[entity], 2):
            if len(members & other) >= min_jaccard * len(members | other):
                first, second = sorted((top(members), top(other)), key=sorted)
                root[second] = first
    return {members: top(members) for members in sets}


_MAX_ITERATIONS = 10


def split_by_meaning(items: Sequence[Item], vectors: Matrix | None, most: int) -> list[list[int]]:
    """Split memories into parts of at most ``most`` by vectors (2-means), else time; as indices."""
    if len(items) <= most:
        return [list(range(len(items)))]
    if vectors is None:
        return _split_by_time(items, most)
    parts: list[list[int]] = []
    waiting = [(np.arange(len(items)), vectors)]
    while waiting:
        part, rows = waiting.pop()
        with ONE_BLAS_THREAD:
            sides = _bisect(rows)
        if sides.all() or not sides.any():
            sides = np.arange(len(part)) >= most  # all equal: any cut will do
        for side in (~sides, sides):
            if np.count_nonzero(side) <= most:
                parts.append(part[side].tolist())
            else:
                waiting.append((part[side], rows[side]))
    return sorted(parts)


def _split_by_time(items: Sequence[Item], most: int) -> list[list[int]]:
    order = sorted(range(len(items)), key=lambda at: (items[at].when, items[at].text))
    count = -(-len(items) // most)
    size = -(-len(items) // count)
    return [order[start : start + size] for start in range(0, len(order), size)]


def _bisect(rows: Matrix) -> NDArray[np.bool_]:
    """Return which are on the second side of two centres that start as far apart as possible."""
    middle = rows.mean(axis=0)
    first = int((rows @ middle).argmin())
    second = int((rows @ rows[first]).argmin())
    centres = np.stack([rows[first], rows[second]])
    sides = np.zeros(len(rows), dtype=bool)
    for _ in range(_MAX_ITERATIONS):
        likeness = rows @ centres.T
        now = likeness[:, 1] > likeness[:, 0]
        if not now.any() or now.all():
            break
        if (now == sides).all():
            break
        sides = now
        for side, rows_of in ((0, rows[~sides]), (1, rows[sides])):
            total = rows_of.sum(axis=0)
            centres[side] = total / (float(np.linalg.norm(total)) or 1.0)
    return sides


def _existing_concepts(
    clusters: Sequence[Sequence[Item]], work: JobContext
) -> dict[tuple[str, ...], tuple[str, ...]]:
    """Map each cluster to the concepts that an earlier run made of any of its facts."""
    ids = [item.id for facts in clusters for item in facts]
    links = work.store.graph.links_of(ids, ("derives_from",)) if ids else []
    concepts = work.store.items.get(sorted({link.src.id for link in links}))
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


def _concept_proposal(facts: Sequence[Item], before: tuple[str, ...], work: JobContext) -> Proposal:
    entities = _common_entities(facts)
    names = [entity_name(entity, work) for entity in entities[:_MAX_NAMED]]
    title = f"Facts about {', '.join(names)}"
    condensed = condense(title, facts, work)
    by_rules = condensed.made_by == RULES
    draft = Draft(
        _list_facts(title, facts) if by_rules else condensed.text,
        kind="concept",
        topic=facts[0].topic if len({item.topic for item in facts}) == 1 else None,
        entities=tuple(_full_name(one, work) for one in entities[:_MAX_NAMED]),
        confidence=min(item.confidence for item in facts),
        importance=max(item.importance for item in facts) * 0.9,
        metadata={"made_by": condensed.made_by, "count": len(facts)},
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


def _list_facts(title: str, facts: Sequence[Item]) -> str:
    lines = [f"{title}:"]
    room = _MAX_CHARACTERS
    for item in facts:
        line = f"- {dated_excerpt(item, 300)}"
        room -= len(line) + 1
        if room < 0:
            break
        lines.append(line)
    return "\n".join(lines)
