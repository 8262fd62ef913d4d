"""The part of a store that is asked about entities: by meaning, by name, by who mentions them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from recollect.model import Entity, Item
from recollect.ports import Embedding, NearEntity, Scope
from recollect.store.sqlite import entity_index
from recollect.store.sqlite.clock import to_ms_or_none
from recollect.store.sqlite.connection import Connections
from recollect.store.sqlite.rows import Hydrate

if TYPE_CHECKING:
    from recollect.ports import Vector


class AskedEntities:
    """What `SqliteStore` answers about entities, over its connections."""

    _connections: Connections
    _hydrate: Hydrate
    _entities: entity_index.EntityIndex

    def near_entities(
        self, vector: Vector, model: str, limit: int, *, as_of: datetime | None = None
    ) -> list[NearEntity]:
        with self._connections.reading() as db:
            return self._entities.near(db, vector, model, limit, to_ms_or_none(as_of))

    def entities_with(
        self, words: Sequence[str], limit: int, *, as_of: datetime | None = None
    ) -> list[NearEntity]:
        with self._connections.reading() as db:
            return self._entities.named(db, words, limit, to_ms_or_none(as_of))

    def mentioning(self, entities: Sequence[str], each: int, scope: Scope) -> dict[str, list[Item]]:
        with self._connections.reading() as db:
            return entity_index.mentioning(db, entities, each, scope, self._hydrate.at(scope.as_of))

    def unembedded_entities(self, model: str, limit: int) -> list[Entity]:
        with self._connections.reading() as db:
            return entity_index.unembedded(db, model, limit)

    def lacking_vectors(self, entities: Sequence[str], model: str) -> list[str]:
        with self._connections.reading() as db:
            return entity_index.lacking(db, entities, model)

    def set_entity_embeddings(self, model: str, embeddings: Mapping[str, Embedding]) -> None:
        with self._connections.writing() as db:
            entity_index.set_embeddings(db, model, embeddings)
