"""Link memories and entities, and merge entities."""

from __future__ import annotations

from collections.abc import Sequence

from bethink.api.session import SessionMethods
from bethink.core.lazy import lazy_pattern
from bethink.errors import NotFound, Refused
from bethink.model import NO_UPDATE, RELATIONS, UPDATE_LINKS, Entity, Item, Link, Node
from bethink.ports import Store
from bethink.retrieval.query_builder import validated_text

_RELATION = lazy_pattern(r"[^\W_]\w{0,63}")
# Reserved for the store, which records mentions with them.
_RESERVED_RELATIONS = frozenset({"mentions", "mentioned", "same_as"})


def is_entity(reference: str, store: Store) -> bool:
    """Whether a reference means an entity: written ``kind:name``, and no memory's id."""
    return ":" in reference and not store.items.get([reference])


def entity_ends(src: str, dst: str, store: Store) -> tuple[Node, Node] | None:
    """Resolve both ends as entities (``kind:name``); None where neither is written so."""
    are_entities = [is_entity(end, store) for end in (src, dst)]
    if not any(are_entities):
        return None
    if not all(are_entities):
        raise Refused(
            f"{src} and {dst} cannot be linked: an entity is linked to entities only",
            remedy="name two memories, or two entities like person:alice",
        )
    return resolve_entity(src, store), resolve_entity(dst, store)


def check_relation(relation: str) -> str:
    """Check the relation; between entities it may be any word of letters, digits and _."""
    if not _RELATION.fullmatch(relation) or relation in _RESERVED_RELATIONS:
        raise Refused(
            f"{relation!r} cannot be the name of a relation",
            remedy="one word of letters, digits and _, like works_with",
        )
    return relation


def _canonical_entity(entity: str, store: Store) -> str:
    """Follow merges to the entity's current id; itself where it was not merged."""
    seen = {entity}
    while True:
        links = store.graph.links_of([entity], ("same_as",), incoming=False)
        targets = [
            link.dst.id for link in links if link.src.id == entity and link.dst.id not in seen
        ]
        if not targets:
            return entity
        entity = targets[0]
        seen.add(entity)


def resolve_entity(entity: str, store: Store) -> Node:
    """Resolve a written entity; it must be known from a memory."""
    kind, _, name = entity.partition(":")
    (named,) = store.graph.find_entities((name,), 100)
    found = {known.id for known in named if known.kind == kind}
    for candidate in (entity, f"{kind}:{name.casefold()}"):
        if candidate in found:
            return Node("entity", candidate)
        canonical = _canonical_entity(candidate, store)
        if canonical != candidate:
            return Node("entity", canonical)
    raise NotFound(
        f"no memory mentions {entity!r}",
        remedy=f"bethink remember ... --entity {name!r}, or bethink entities to see the names",
    )


def _has_name(entity: Entity, name: str) -> bool:
    folded = name.casefold()
    return folded in (known_name.casefold() for known_name in (entity.name, *entity.aliases))


MAX_CONTEXT_CHARACTERS = 1000
MAX_EDGES = 10_000


class LinkMethods(SessionMethods):
    """Links memories and entities of an open space, and merges entities."""

    def link(
        self, src: str, relation: str, dst: str, *, weight: float = 0.5, context: str | None = None
    ) -> Link:
        """Link a memory to another: ``implies``, ``contradicts``, ``supersedes`` ...

        A memory that a caller supersedes leaves recall; `unlink` and `undo` restore
        it. Two entities (``person:alice``) may be linked by any word; the ``context`` is then
        best the id of the memory that says so. Linking again overwrites the weight and the
        context; `unlink` removes the link.

        >>> with Memory.open(":memory:") as memory:
        ...     old = memory.remember("Mara writes the release notes").id
        ...     new = memory.remember("The release notes write themselves").id
        ...     memory.link(new, "supersedes", old).weight
        0.5
        """
        if not 0 < weight <= 1:
            raise Refused(f"weight is {weight!r}, but must be above 0 and at most 1")
        if context is not None:
            from bethink.ingest.redaction import redact  # start-up time: few links have one

            context = redact(validated_text(context, "the context", MAX_CONTEXT_CHARACTERS)).text
        now = self.now
        link = self._build_link(src, relation, dst, float(weight), context)
        replaces = relation == "supersedes" and link.src.kind == "item"
        if replaces:
            self._refuse_cycle(link)
        self.store.graph.add_links([link], actor=self.settings.actor, now=now)
        if replaces and self.session.stored_item(link.dst.id).status == "active":
            self.store.items.set_status(
                [link.dst.id], "superseded", actor=self.settings.actor, now=now
            )
        return link

    def unlink(self, src: str, relation: str, dst: str) -> Link:
        """Remove a link; a memory that nothing else supersedes is recalled again.

        Of two turns of a chat that no link joins, ``updates`` says that neither updates the other.
        """
        link = self._build_link(src, relation, dst, known=(*RELATIONS, *UPDATE_LINKS))
        actor, now = self.settings.actor, self.now
        if not self.store.graph.remove_links([link], actor=actor, now=now):
            ends = self.store.items.get([link.src.id, link.dst.id]).values()
            if relation in UPDATE_LINKS and ends and all(end.session for end in ends):
                said, log = f"{NO_UPDATE} {link.dst.id}", self.store.admin.log
                log("unlinked", item=link.src.id, actor=actor, detail=said, now=now)
                return link
            raise NotFound(
                f"{link.src.id} has no link {relation} to {link.dst.id}",
                remedy=f"bethink links {link.src.id}",
            )
        if relation == "supersedes" and link.src.kind == "item":
            from bethink.ingest.revision import reactivate_if_free  # start-up time

            reactivate_if_free(link.dst.id, self.session.write_context())
        return link

    def links(self, item_id: str) -> list[Link]:
        """Return the links between a memory and other memories; none to those out of recall.

        Of an entity (``person:alice``), its links with other entities.
        """
        if is_entity(item_id, self.store):
            entity = resolve_entity(item_id, self.store).id
            return self.store.graph.edges([entity], MAX_EDGES, self.now)[entity]
        item = self.session.stored_item(item_id)
        found = [
            (link, link.dst.id if link.src.id == item.id else link.src.id)
            for link in self.store.graph.links_of([item.id])
            if link.src.kind == link.dst.kind == "item"
        ]
        others = self.store.items.get([other for _, other in found])
        return [link for link, other in found if other in others and not others[other].live_to]

    def _build_link(  # noqa: PLR0917 - the fields of a link
        self,
        src: str,
        relation: str,
        dst: str,
        weight: float = 1.0,
        context: str | None = None,
        known: Sequence[str] = RELATIONS,
    ) -> Link:
        entities = entity_ends(src, dst, self.store)
        if entities is not None:
            if entities[0] == entities[1]:
                raise Refused(f"{src} cannot be linked to itself")
            return Link(
                *entities, check_relation(relation), weight, context=context, source="caller"
            )
        if relation not in known:
            raise Refused(
                f"there is no relation {relation!r}", remedy=f"one of {', '.join(RELATIONS)}"
            )
        first, second = self._require_live_item(src), self._require_live_item(dst)
        if first.id == second.id:
            raise Refused(f"{first.id} cannot be linked to itself")
        ends = Node("item", first.id), Node("item", second.id)
        return Link(*ends, relation, weight, context=context, source="caller")

    def _refuse_cycle(self, link: Link) -> None:
        """Refuse cycles: of two memories superseding each other neither would be recalled."""
        seen, frontier = {link.src.id}, {link.src.id}
        while frontier:
            links = self.store.graph.links_of(sorted(frontier), ("supersedes",))
            frontier = {incoming.src.id for incoming in links if incoming.dst.id in frontier} - seen
            seen |= frontier
        if link.dst.id in seen:
            raise Refused(
                f"{link.dst.id} supersedes {link.src.id}, directly or through others",
                remedy=f"bethink links {link.src.id}, then bethink unlink",
            )

    def _require_live_item(self, item_id: str) -> Item:
        item = self.session.stored_item(item_id)
        if item.live_to is not None:
            raise Refused(f"{item.id} was forgotten", remedy=f"bethink restore {item.id}")
        return item

    def merge_entities(self, kept: str, gone: str) -> Entity:
        """Merge one entity into another: its names, its memories, its edges.

        Each is given by its id (``person:ana``) or by a name that only it has. Later mentions
        of the merged entity count for the kept one; `split_entities` undoes the merge.

        >>> with Memory.open(":memory:") as memory:
        ...     _ = memory.remember("Ana Torres prefers tea")
        ...     _ = memory.remember("Call @atorres on Monday")
        ...     merged = memory.merge_entities("Ana Torres", "atorres")
        ...     print(merged.aliases, merged.mentions)
        ('atorres',) 2
        """
        first, second = self._find_entity(kept), self._find_entity(gone)
        self.store.graph.merge_entities(
            first.id, second.id, actor=self.settings.actor, now=self.now
        )
        return self._find_entity(first.id)

    def split_entities(self, kept: str, gone: str) -> Entity:
        """Undo a merge and return the entity that is separate again."""
        first = self._find_entity(kept)
        found = self.store.graph.links_of([first.id], ("same_as",))
        merged = [link.src.id for link in found if link.dst.id == first.id]
        wanted = gone.casefold()
        matching = [one for one in merged if wanted in (one, one.partition(":")[2])]
        if len(matching) != 1:
            known = f"merged into it: {', '.join(merged)}" if merged else "nothing is merged"
            raise NotFound(f"{gone!r} was not merged into {first.id}", remedy=known)
        self.store.graph.split_entities(
            first.id, matching[0], actor=self.settings.actor, now=self.now
        )
        return self._find_entity(matching[0])

    def _find_entity(self, reference: str) -> Entity:
        """Find the entity with that id, or the only one with that name."""
        name = reference.partition(":")[2] or reference
        (named,) = self.store.graph.find_entities((name,), 100)
        found = {entity.id: entity for entity in named}
        if reference in found:
            return found[reference]
        exact = [entity for entity in found.values() if _has_name(entity, reference)]
        if len(exact) == 1:
            return exact[0]
        if exact:
            ids = ", ".join(entity.id for entity in exact)
            raise Refused(f"{reference!r} could be any of {ids}", remedy="use its id")
        raise NotFound(
            f"no memory mentions {reference!r}", remedy="bethink entities shows the names"
        )
