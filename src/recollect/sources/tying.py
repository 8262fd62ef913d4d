"""Links what was taken in as its source had it linked, or counts what would be linked."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import chain, islice

from recollect.errors import Refused
from recollect.facade.edging import edge_type
from recollect.facade.opened import utc_now
from recollect.ingest.extract import key_of as entity_key
from recollect.ingest.extract import named
from recollect.memory import Memory
from recollect.model import RELATIONS, Link, Node
from recollect.sources.intake import Intake
from recollect.sources.readiness import Refusal
from recollect.sources.source import End, Tie
from recollect.sources.tally import Tally

BATCH = 500
Mark = tuple[str, ...]
Nodes = tuple[Node | None, ...]
SUPERSEDES = "supersedes"
_OTHERWISE = "related_to"
_NO_WORD = re.compile(r"\W+")


class Tying:
    """The links of one import."""

    def __init__(self, memory: Memory, kind: str, tally: Tally, intake: Intake) -> None:
        self._memory = memory
        self._kind = kind
        self._tally = tally
        self._intake = intake
        self._seen: set[int] = set()
        self._would_replace: list[Link] = []
        self._entities = lru_cache(maxsize=10_000)(self._find_entities)

    def take(self, ties: Iterable[Tie]) -> Iterator[int]:
        """Links what both ends of were taken in; says how many ties it has looked at."""
        rest = iter(ties)
        while batch := list(islice(rest, BATCH)):
            found = [both for tie in batch if (both := self._link(tie))]
            known = self._known([sources for _, sources in found], {link.type for link, _ in found})
            self._add([link for link, _ in found if _mark(link) not in known])
            yield len(batch)

    def _link(self, tie: Tie) -> tuple[Link, Nodes] | None:
        """The link, and its beginning in each of the stores."""
        sources, targets = self._nodes(tie.src), self._nodes(tie.dst)
        src, dst = next(filter(None, sources), None), next(filter(None, targets), None)
        if src is None or dst is None or src == dst or src.kind != dst.kind:
            return None
        context = tie.context or (self._intake.find(tie.said_in) if tie.said_in else None)
        link = Link(src, dst, _type(tie), tie.weight, context=context, source=self._kind)
        if hash(_mark(link)) in self._seen:
            return None
        self._seen.add(hash(_mark(link)))
        return link, sources

    def _nodes(self, end: End) -> Nodes:
        if end.kind == "entity":
            return self._entities(end.name)
        found = self._intake.find(end.name)
        node = Node("item", found) if found else None
        return tuple(node for _ in self._intake.stores)

    def _find_entities(self, written: str) -> Nodes:
        """The entity of that name in each store, preferably of that kind: a name is one."""
        wanted = named(written)
        key = entity_key(wanted.name)
        nodes = []
        for store in self._intake.stores:
            same = [
                entity
                for entity in store.find_entities(wanted.name, 50)
                if key in map(entity_key, (entity.name, *entity.aliases))
            ]
            best = min(same, key=lambda one: one.kind != wanted.kind, default=None)
            nodes.append(Node("entity", best.id) if best else None)
        return tuple(nodes)

    def _known(self, sources: Sequence[Nodes], types: set[str]) -> set[Mark]:
        """Which links are there: from before, or because the words that came say so."""
        known: set[Mark] = set()
        for store, nodes in zip(self._intake.stores, zip(*sources, strict=True), strict=False):
            ids = sorted({node.id for node in nodes if node is not None})
            links = store.links_of(ids, sorted(types), incoming=False) if ids else []
            known.update(map(_mark, links))
        return known

    def _add(self, links: Sequence[Link]) -> None:
        plain = [link for link in links if link.type != SUPERSEDES]
        if plain and not self._intake.previews:
            store, actor = self._memory.store, self._memory.settings.actor
            store.add_links(plain, actor=actor, now=utc_now())
        self._tally.links += len(plain)
        for link in links:
            if link.type == SUPERSEDES:
                self._replace(link)

    def _replace(self, link: Link) -> None:
        """Lets one memory stand for another, which leaves recall."""
        if self._closes_circle(link):
            circle = Refused("the two supersede each other, directly or through others")
            self._tally.refuse(Refusal(f"{link.src.id} supersedes {link.dst.id}", circle))
            return
        if self._intake.previews:
            self._would_replace.append(link)
        else:
            self._memory.link(link.src.id, SUPERSEDES, link.dst.id, weight=link.weight)
        self._tally.links += 1

    def _closes_circle(self, link: Link) -> bool:
        """Of memories that supersede each other none would be recalled."""
        seen, rim = {link.src.id}, {link.src.id}
        while rim:
            stored = (
                one
                for store in self._intake.stores
                for one in store.links_of(sorted(rim), (SUPERSEDES,))
            )
            above = {one.src.id for one in chain(stored, self._would_replace) if one.dst.id in rim}
            rim = above - seen
            seen |= rim
        return link.dst.id in seen


def _mark(link: Link) -> Mark:
    """What makes two links the same; of entities the name, whatever they were taken for."""
    ends = (
        node.id if node.kind == "item" else node.id.partition(":")[2]
        for node in (link.src, link.dst)
    )
    return (link.type, *ends)


def _type(tie: Tie) -> str:
    """The relation in one word: between memories one that is known, between entities any."""
    if tie.src.kind == "item":
        return tie.type if tie.type in RELATIONS else _OTHERWISE
    word = _NO_WORD.sub("_", tie.type).strip("_")[:64]
    try:
        return edge_type(word)
    except Refused:
        return _OTHERWISE
