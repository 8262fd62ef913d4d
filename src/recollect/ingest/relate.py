"""Relates new memories to what is known: what is much the same, what caused what, who with whom.

Every kind of link has a limit. What a memory's own words say is looked for at every write;
what others say, only where somebody waits for the answer: a search after each write would
halve the speed, so maintenance does it for the rest.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from recollect.errors import ModelError
from recollect.ingest.causes import Before, causes_of
from recollect.ingest.relations import edges_of
from recollect.ingest.writing import WriteContext
from recollect.model import Collision, Filters, Item, Link, Node
from recollect.ports import Embedding, Record, Scope

MOST_SIMILAR = 5
LEAST_COSINE = 0.82
RELATED = "linked as similar"


def related(
    records: Sequence[Record], met: Sequence[tuple[Collision, ...]], ctx: WriteContext
) -> tuple[list[Record], list[tuple[Collision, ...]]]:
    """The records with their further links, and what each met, now also what is related."""
    searching = ctx.relating
    turns: dict[str, str] = {}
    done: list[Record] = []
    told: list[tuple[Collision, ...]] = []
    for record, collisions in zip(records, met, strict=True):
        item = record.item
        known = {collision.id for collision in collisions}
        links: list[Link] = edges_of(item, record.mentions, ctx.now)
        links += causes_of(item, Before(turns), ctx, searching=searching and item.session is None)
        similar = similar_to(item, record.embedding, known, ctx) if searching else ()
        links += [link_to(item, one, ctx) for one in similar]
        done.append(replace(record, links=(*record.links, *links)) if links else record)
        told.append((*collisions, *similar))
        if item.session is not None:
            turns[item.session] = item.id
    return done, told


def similar_to(
    item: Item, embedding: Embedding | None, met: set[str], ctx: WriteContext
) -> tuple[Collision, ...]:
    """Memories of nearly the same meaning; a turn of a conversation has its own neighbours."""
    if embedding is None or ctx.embedder is None or item.session is not None:
        return ()
    filters = Filters(levels=(item.level,), max_classification=item.classification)
    depth = MOST_SIMILAR + len(met) + 1
    try:
        found = ctx.store.search_vector(
            embedding.vector, ctx.embedder.model, depth, Scope(filters, ctx.now)
        )
    except ModelError:
        return ()  # all vectors are of another model: a reindex makes the others
    close = [
        match
        for match in found.matches
        if match.score >= LEAST_COSINE and match.item.id not in met and match.item.id != item.id
    ]
    return tuple(
        Collision(
            match.item.id,
            "related",
            round(match.score, 4),
            RELATED,
            match.item.text,
            f"recollect unlink {item.id} similar_to {match.item.id}",
        )
        for match in close[:MOST_SIMILAR]
    )


def link_to(item: Item, other: Collision, ctx: WriteContext) -> Link:
    """The link that says so."""
    ends = Node("item", item.id), Node("item", other.id)
    return Link(*ends, "similar_to", weight=other.similarity, created_at=ctx.now)
