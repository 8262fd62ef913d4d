"""The vector index: what is stored of each memory's meaning, and who is nearest.

Importing this costs nothing; NumPy is loaded by the first call that needs it.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING

import apsw

from recollect.errors import ModelError
from recollect.ports import Embedding, Found
from recollect.store.sqlite.connection import generation, select
from recollect.store.sqlite.lexical import Hydrate
from recollect.store.sqlite.scope import Predicate
from recollect.store.sqlite.terms import as_table, statistics

if TYPE_CHECKING:
    from recollect.ports import Vector
    from recollect.store.sqlite.chunks import Model
    from recollect.store.sqlite.nearest import ChunkCache

MOST_KEPT = 4096  # embeddings, some 6 MB
_UNEMBEDDED = """
    SELECT i.rid FROM item AS i
    WHERE i.live_to IS NULL
    AND NOT EXISTS (SELECT 1 FROM vector AS v WHERE v.rid = i.rid AND v.mid = ?)
    ORDER BY i.rid LIMIT ?
"""
_OF_OTHER_MODELS = """
    SELECT v.rid FROM vector AS v CROSS JOIN item AS i ON i.rid = v.rid
    WHERE v.mid = ? AND i.live_to IS NULL ORDER BY v.slot LIMIT ?
"""
_EMBEDDINGS = """
    SELECT i.id, v.data, v.tokens
    FROM carray(?) AS w
    CROSS JOIN item AS i ON i.id = w.value AND LIVE
    CROSS JOIN vector AS v ON v.rid = i.rid AND v.mid = ?
"""
_EMBEDDINGS_NOW = _EMBEDDINGS.replace("LIVE", "i.live_to IS NULL")
_EMBEDDINGS_THEN = _EMBEDDINGS.replace(
    "LIVE", "i.live_from <= ? AND (i.live_to IS NULL OR i.live_to > ?)"
)


class VectorIndex:
    """The vectors of one store. Writing happens inside the caller's transaction; chunks
    that were read are kept for the next search, by any thread."""

    def __init__(self) -> None:
        self._missing: tuple[object, int] = (None, 0)
        self._embeddings: tuple[object, dict[str, Embedding]] = (None, {})

    @cached_property
    def _cache(self) -> ChunkCache:
        from recollect.store.sqlite.nearest import ChunkCache  # NumPy

        return ChunkCache()

    def add(self, db: apsw.Connection, model: str, rows: Sequence[tuple[int, Embedding]]) -> None:
        """Stores the vectors of memories (by row id); those they had before go."""
        from recollect.store.sqlite import chunks  # NumPy

        chunks.append(db, model, rows)

    def remove(self, db: apsw.Connection, rids: Sequence[int]) -> None:
        """Takes the vectors of these rows out, as far as they have any."""
        if rids:
            from recollect.store.sqlite import chunks  # NumPy

            chunks.remove(db, rids)

    def search(  # noqa: PLR0917 - the port's parameters
        self,
        db: apsw.Connection,
        vector: Vector,
        model: str,
        depth: int,
        predicate: Predicate,
        hydrate: Hydrate,
    ) -> Found:
        """The nearest memories in scope by cosine, among the vectors of this model."""
        from recollect.store.sqlite import nearest  # NumPy

        known = _model_in_use(db, model, dim=len(vector))
        if known is None:
            return Found((), "no vectors are stored")
        if not vector.any():
            return Found((), "the question has no vector")
        stored = self._cache.read(db, known)
        found = nearest.search(db, self._cache.scan(stored, vector), depth, predicate, hydrate)
        missing = self._count_missing(db, known, stored.chunks)
        if missing:
            return found._replace(note=f"{found.note}; {missing:,} memories have no vector yet")
        return found

    def embeddings(
        self, db: apsw.Connection, ids: Sequence[str], model: str, as_of: int | None = None
    ) -> dict[str, Embedding]:
        """What is stored for the revisions of these items that are live, or were then."""
        from recollect.store.sqlite import bits, chunks  # NumPy

        known = chunks.find_model(db, model)
        if known is None or not ids:
            return {}
        kept = self._kept_embeddings(db, known.mid) if as_of is None else {}
        missing = tuple(item for item in ids if item not in kept)
        if missing:
            sql, then = (_EMBEDDINGS_NOW, ()) if as_of is None else (_EMBEDDINGS_THEN, (as_of,) * 2)
            rows = select(db, sql, (as_table(missing), *then, known.mid))
            vectors = bits.from_stored((stored for _, stored, _ in rows), known.dim).astype("f4")
            kept.update(
                (item, Embedding(vectors[place], tokens))
                for place, (item, _, tokens) in enumerate(rows)
            )
        return {item: kept[item] for item in ids if item in kept}

    def _kept_embeddings(self, db: apsw.Connection, mid: int) -> dict[str, Embedding]:
        """What earlier calls read, as long as nobody has written since."""
        state = (mid, generation(db))
        of, kept = self._embeddings
        # What a write has not committed may be undone, and its generation used again.
        if db.txn_state("main") == apsw.SQLITE_TXN_WRITE:
            return {}
        if of != state or len(kept) > MOST_KEPT:
            kept = {}
            self._embeddings = (state, kept)
        return kept

    def unembedded(self, db: apsw.Connection, model: str, limit: int) -> list[int]:
        """Rows of live items without a vector of this model, at most ``limit``."""
        stored = select(db, "SELECT mid, name, slots FROM model")
        rids: list[int] = []
        for mid, name, _ in stored:
            if name != model and len(rids) < limit:
                rids += (rid for (rid,) in select(db, _OF_OTHER_MODELS, (mid, limit - len(rids))))
        if len(rids) >= limit or statistics(db, ()).documents <= sum(row[2] for row in stored):
            return rids
        mid = next((mid for mid, name, _ in stored if name == model), 0)
        return [rid for (rid,) in select(db, _UNEMBEDDED, (mid, limit))]

    def drop_other_models(self, db: apsw.Connection, model: str) -> None:
        """Removes the vectors of all models but this one."""
        from recollect.store.sqlite import chunks  # NumPy

        for other in chunks.models(db):
            if other.name != model:
                chunks.drop_model(db, other)

    def rebuild(self, db: apsw.Connection) -> None:
        """Makes the chunks anew from the stored vectors."""
        from recollect.store.sqlite import chunks  # NumPy

        chunks.rebuild(db)

    def verify(self, db: apsw.Connection) -> list[str]:
        """What is wrong between vectors and chunks, in words."""
        from recollect.store.sqlite import chunks  # NumPy

        return chunks.verify(db)

    def _count_missing(self, db: apsw.Connection, model: Model, chunks: object) -> int:
        """How many live items have no vector of the model; counted once for each state."""
        documents = statistics(db, ()).documents
        if documents <= model.slots:
            return 0
        state = (model, documents, chunks)
        if self._missing[0] != state:
            count = db.execute(f"SELECT count(*) FROM ({_UNEMBEDDED})", (model.mid, -1)).get
            self._missing = (state, count)
        return self._missing[1]


def _model_in_use(db: apsw.Connection, name: str, dim: int) -> Model | None:
    """The stored model of that name. Vectors of another cannot be compared, and as long
    as some are left a search of the rest would miss what they stand for."""
    from recollect.store.sqlite import chunks  # NumPy

    known = [model for model in chunks.models(db) if model.slots]
    mine = next((model for model in known if model.name == name), None)
    others = [model for model in known if model is not mine]
    if others:
        raise ModelError(
            f"the vectors of {others[0].slots:,} memories were made by {others[0].name},"
            f" the embedder in use is {name}",
            remedy="recollect reindex",
        )
    if mine is not None and mine.dim != dim:
        raise ModelError(
            f"the question's vector has {dim} dimensions, those of {name} here have {mine.dim}",
            remedy="recollect reindex",
        )
    return mine
