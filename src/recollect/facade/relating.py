"""Saying how two memories belong together, and taking it back."""

from __future__ import annotations

from recollect.asking import admitted
from recollect.errors import NotFound, Refused
from recollect.facade.edging import edge_type, entity_ends, entity_named, is_entity
from recollect.facade.working import Working
from recollect.model import RELATIONS, Item, Link, Node

MOST_CONTEXT = 1000
MOST_EDGES = 10_000


class Relating(Working):
    """The relating side of a memory."""

    def link(
        self,
        src: str,
        relation: str,
        dst: str,
        *,
        weight: float = 0.5,
        context: str | None = None,
    ) -> Link:
        """Says that one memory ``implies``, ``contradicts``, ``supersedes`` ... another.

        What is superseded leaves recall, as it does by the rules; `unlink` and `undo` bring
        it back. Two entities (``person:alice``) may be linked by any word; the ``context`` is then
        best the id of the memory that says so. Said again, it overwrites the weight and
        the context; `unlink` takes it back.

        >>> with Memory.open(":memory:") as memory:
        ...     old = memory.remember("Mara writes the release notes").id
        ...     new = memory.remember("The release notes write themselves").id
        ...     memory.link(new, "supersedes", old).weight
        0.5
        """
        if not isinstance(weight, int | float) or isinstance(weight, bool) or not 0 < weight <= 1:
            raise Refused(f"weight is {weight!r}, but must be above 0 and at most 1")
        if context is not None:
            context = admitted(context, "the context", MOST_CONTEXT)
        now = self._clock()
        link = self._named(src, relation, dst, float(weight), context)
        replaces = relation == "supersedes" and link.src.kind == "item"
        if replaces:
            self._refuse_circle(link)
        self.store.add_links([link], actor=self.settings.actor, now=now)
        if replaces and self.stored(link.dst.id).status == "active":
            self.store.set_status([link.dst.id], "superseded", actor=self.settings.actor, now=now)
        return link

    def unlink(self, src: str, relation: str, dst: str) -> Link:
        """Takes back what `link` said; what nothing else supersedes is recalled again."""
        link = self._named(src, relation, dst)
        if not self.store.remove_links([link], actor=self.settings.actor, now=self._clock()):
            raise NotFound(
                f"{link.src.id} has no link {relation} to {link.dst.id}",
                remedy=f"recollect links {link.src.id}",
            )
        if relation == "supersedes" and link.src.kind == "item":
            from recollect.ingest.release import release_from  # start-up time

            release_from(link.dst.id, self._writing())
        return link

    def links(self, item_id: str) -> list[Link]:
        """The links from and to a memory that lead to other memories; of an entity
        (``person:alice``), those with other entities."""
        if is_entity(item_id, self.store):
            entity = entity_named(item_id, self.store).id
            return self.store.edges([entity], MOST_EDGES, self._clock())[entity]
        item = self.stored(item_id)
        found = self.store.links_of([item.id])
        return [link for link in found if link.src.kind == link.dst.kind == "item"]

    def _named(
        self, src: str, relation: str, dst: str, weight: float = 1.0, context: str | None = None
    ) -> Link:
        entities = entity_ends(src, dst, self.store)
        if entities is not None:
            if entities[0] == entities[1]:
                raise Refused(f"{src} cannot be linked to itself")
            return Link(*entities, edge_type(relation), weight, context=context, source="caller")
        if relation not in RELATIONS:
            raise Refused(
                f"there is no relation {relation!r}", remedy=f"one of {', '.join(RELATIONS)}"
            )
        first, second = self._living(src), self._living(dst)
        if first.id == second.id:
            raise Refused(f"{first.id} cannot be linked to itself")
        ends = Node("item", first.id), Node("item", second.id)
        return Link(*ends, relation, weight, context=context, source="caller")

    def _refuse_circle(self, link: Link) -> None:
        """Of two memories that supersede each other neither would be recalled."""
        seen, rim = {link.src.id}, {link.src.id}
        while rim:
            links = self.store.links_of(sorted(rim), ("supersedes",))
            rim = {one.src.id for one in links if one.dst.id in rim} - seen
            seen |= rim
        if link.dst.id in seen:
            raise Refused(
                f"{link.dst.id} supersedes {link.src.id}, directly or through others",
                remedy=f"recollect links {link.src.id}, then recollect unlink",
            )

    def _living(self, item_id: str) -> Item:
        item = self.stored(item_id)
        if item.live_to is not None:
            raise Refused(f"{item.id} was forgotten", remedy=f"recollect restore {item.id}")
        return item
