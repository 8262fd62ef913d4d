"""Gives entities that are new their vectors, so that a question can find them by meaning."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from recollect.errors import ModelError
from recollect.ingest.writing import WriteContext
from recollect.model import Entity
from recollect.ports import Embedding, Record


def entity_text(entity: Entity) -> str:
    """What is embedded of an entity: what it is, and how it is called."""
    return f"{entity.kind}: {entity.name}"


def with_entity_vectors(records: Sequence[Record], ctx: WriteContext) -> list[Record]:
    """The records, with vectors for the entities that the store has none of.

    A model that is down refuses nothing: a reindex makes what is missing.
    """
    fresh = _vectors({one.entity.id: one.entity for r in records for one in r.mentions}, ctx)
    return [_given(record, fresh) for record in records] if fresh else list(records)


def _vectors(mentioned: dict[str, Entity], ctx: WriteContext) -> dict[str, Embedding]:
    if ctx.embedder is None or not mentioned:
        return {}
    lacking = ctx.store.lacking_vectors(list(mentioned), ctx.embedder.model)
    if not lacking:
        return {}
    try:
        made = ctx.embedder.embed([entity_text(mentioned[key]) for key in lacking])
    except ModelError:
        return {}
    return dict(zip(lacking, made, strict=True))


def _given(record: Record, fresh: dict[str, Embedding]) -> Record:
    """With the vectors of its new entities, each handed out once; the model is the record's."""
    if not record.model or not any(one.entity.id in fresh for one in record.mentions):
        return record
    mentions = tuple(
        one._replace(embedding=fresh.pop(one.entity.id)) if one.entity.id in fresh else one
        for one in record.mentions
    )
    return replace(record, mentions=mentions)
