"""Edges between entities, as people name them: `person:alice works_with person:bob`."""

from __future__ import annotations

import re

from recollect.errors import NotFound, Refused
from recollect.model import Node
from recollect.ports import Store

_RELATION = re.compile(r"[^\W_]\w{0,63}")
# What these say is the store's own business: which memory speaks of whom.
_TAKEN = frozenset({"mentions", "mentioned", "same_as"})


def is_entity(written: str, store: Store) -> bool:
    """Whether somebody means an entity: written ``kind:name``, and no memory's id."""
    return ":" in written and not store.get([written])


def entity_ends(src: str, dst: str, store: Store) -> tuple[Node, Node] | None:
    """Both ends as entities (``kind:name``); None where neither is written so."""
    written = [is_entity(end, store) for end in (src, dst)]
    if not any(written):
        return None
    if not all(written):
        raise Refused(
            f"{src} and {dst} cannot be linked: an entity is linked to entities only",
            remedy="name two memories, or two entities like person:alice",
        )
    return entity_named(src, store), entity_named(dst, store)


def edge_type(relation: str) -> str:
    """The relation, which between entities may be any word of letters, digits and _."""
    if not _RELATION.fullmatch(relation) or relation in _TAKEN:
        raise Refused(
            f"{relation!r} cannot be the name of a relation",
            remedy="one word of letters, digits and _, like works_with",
        )
    return relation


def _merged_into(entity: str, store: Store) -> str:
    """The entity that stands for it now; itself where it was merged into none."""
    seen = {entity}
    while True:
        links = store.links_of([entity], ("same_as",), incoming=False)
        into = [one.dst.id for one in links if one.src.id == entity and one.dst.id not in seen]
        if not into:
            return entity
        entity = into[0]
        seen.add(entity)


def entity_named(entity: str, store: Store) -> Node:
    """The entity that is written so; it must be known from a memory."""
    kind, _, name = entity.partition(":")
    found = {one.id for one in store.find_entities(name, 100) if one.kind == kind}
    for wanted in (entity, f"{kind}:{name.casefold()}"):
        if wanted in found:
            return Node("entity", wanted)
        into = _merged_into(wanted, store)
        if into != wanted:
            return Node("entity", into)
    raise NotFound(
        f"no memory speaks of {entity!r}",
        remedy=f"recollect remember ... --entity {name!r}, or recollect entities to see the names",
    )
