"""The vectors of a store: add, remove, search and check embeddings.

NumPy is loaded by the first call that needs it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import partial
from itertools import groupby
from operator import itemgetter

from bethink.core import plural
from bethink.core.arrays import Vector, np
from bethink.errors import ModelError
from bethink.model import Entity, Item
from bethink.ports import Choose, Embedding, Nearest, SearchResult
from bethink.store.sql.ceiling import hides_rows
from bethink.store.sql.connection import (
    Connections,
    Database,
    Row,
    as_table,
    generation,
    is_on_server,
    read_ahead,
    select,
)
from bethink.store.sql.damage import as_bytes, select_readable
from bethink.store.sql.rows import read_items
from bethink.store.sql.search import vector_index, vector_scan
from bethink.store.sql.search.lexical import SearchContext, load_matches, word_statistics
from bethink.store.sql.search.vector_index import StoredModel
from bethink.store.sql.search.vector_scan import ChunkCache, ChunkVersions, StoredVectors
from bethink.store.sql.sql_functions import to_ms_or_none
from bethink.store.sql.state_cache import CachePart, StateCache

# Of each model: how many vectors a ceiling hides, and how many of these are of passages.
HiddenCounts = Mapping[int, tuple[int, int]]
MAX_CACHED_EMBEDDINGS = 4096  # embeddings, some 6 MB
_COUNT_HIDDEN = """
    SELECT v.mid, count(*), count(CASE WHEN v.key <> v.rid THEN 1 END)
    FROM temp.hidden_row AS h CROSS JOIN main.vector AS v ON v.rid = h.rid GROUP BY v.mid
"""
_SELECT_LIVE_ROWS = """
    SELECT i.id, i.rid, i.rev FROM carray(?) AS w
    CROSS JOIN item AS i ON i.id = w.value AND i.live_to IS NULL
"""
_COUNT_WITHOUT_VECTOR = """
    SELECT count(*) FROM item AS i WHERE i.live_to IS NULL
    AND NOT EXISTS (SELECT 1 FROM vector AS v WHERE v.key = i.rid AND v.mid = ?)
"""
# A vector that does not know its passages was made before there were any.
_SELECT_UNEMBEDDED = """
    SELECT i.rid FROM item AS i
    WHERE i.live_to IS NULL AND NOT EXISTS (
        SELECT 1 FROM vector AS v WHERE v.key = i.rid AND v.mid = ? AND v.passages IS NOT NULL)
    ORDER BY i.rid LIMIT ?
"""
_SELECT_OF_OTHER_MODELS = """
    SELECT v.rid FROM vector AS v CROSS JOIN item AS i ON i.rid = v.key
    WHERE v.mid = ? AND i.live_to IS NULL ORDER BY v.slot LIMIT ?
"""
_SELECT_EMBEDDINGS = """
    SELECT i.id, v.key, v.data, v.tokens
    FROM carray(?) AS w
    CROSS JOIN item AS i ON i.id = w.value AND LIVE
    CROSS JOIN vector AS v ON v.rid = i.rid AND v.mid = ?
"""
_EMBEDDINGS_NOW = _SELECT_EMBEDDINGS.replace("LIVE", "i.live_to IS NULL")
_EMBEDDINGS_AS_OF = _SELECT_EMBEDDINGS.replace(
    "LIVE", "i.live_from <= ? AND (i.live_to IS NULL OR i.live_to > ?)"
)

# What a search reads besides rows: the vectors of its model, and how many memories have none.
_Searched = tuple[StoredVectors, int]
_SEARCHED: CachePart[_Searched | None] = CachePart()
_MISSING = CachePart[int]()
_EMBEDDINGS: CachePart[dict[str, Embedding]] = CachePart(
    is_full=lambda known: len(known) > MAX_CACHED_EMBEDDINGS
)


class VectorIndex:
    """The vectors of one store.

    Writes happen inside the caller's transaction; chunks that were read are cached for the
    next search, by any thread.
    """

    def __init__(self, cache: StateCache | None = None) -> None:
        self._cache = cache or StateCache()
        self._chunks = ChunkCache(self._cache)

    def search(
        self, vector: Vector, model: str, depth: int, choose: Choose | None, ctx: SearchContext
    ) -> SearchResult:
        """Return the nearest memories in scope by cosine, among the vectors of this model."""
        db = ctx.db
        searched = self._find_searched(db, model, len(vector))
        if searched is None:
            lacking = _lacking(self._count_missing(db))
            return SearchResult((), "no vectors are stored", damage=lacking)
        if not vector.any():
            return SearchResult((), "the question has no vector")
        stored, missing = searched
        scan = self._chunks.scan(db, stored, vector)
        self._chunks.read_ahead(db, scan, ctx.predicate)
        near, note = vector_scan.find_nearest(scan, max(depth, 0), ctx)
        rids, cosines = near.rids.tolist(), near.cosines.tolist()
        if choose is not None:
            chosen = choose(Nearest(near.cosines, *vector_scan.times_of(db, near.rids)))
            rids, cosines = ([one[place] for place in chosen] for one in (rids, cosines))
        found = [
            (rid, cosine, f"cosine {cosine:.2f}") for rid, cosine in zip(rids, cosines, strict=True)
        ]
        usual = self._chunks.sample(db, scan).background(db, scan, ctx.predicate)
        return SearchResult(load_matches(found, ctx), note, 1.0, usual, _lacking(missing))

    def search_ahead(self, vector: Vector, model: str, depth: int, ctx: SearchContext) -> None:
        """Tell what `search` will ask about the nearest memories."""
        searched = self._find_searched(ctx.db, model, len(vector))
        if searched is not None and vector.any():
            scan = self._chunks.scan(ctx.db, searched[0], vector)
            self._chunks.read_ahead(ctx.db, scan, ctx.predicate)
            vector_scan.nearest_ahead(scan, depth, ctx)

    def _find_searched(self, db: Database, model: str, dim: int) -> _Searched | None:
        """Return what a search needs, read once for each state; None without vectors."""
        hides = hides_rows(db)
        read = partial(self._read_searched, db, model, dim, hides=hides)
        return self._cache.get(db, _SEARCHED, read, key=(model, dim, hides))

    def _read_searched(
        self, db: Database, model: str, dim: int, *, hides: bool
    ) -> _Searched | None:
        counted = select(db, _COUNT_HIDDEN) if hides else ()
        hidden = {mid: (count, parts) for mid, count, parts in counted}
        if is_on_server(db) and (own := vector_index.find_model(db, model)) is not None:
            read_ahead(db, (vector_scan.SELECT_VERSIONS, (own.mid,)))
        known = _model_in_use(db, model, dim, hidden)
        if known is None:
            return None
        stored = self._chunks.read(db, known)
        if hides:
            hidden_rows = np.array(select(db, "SELECT rid FROM temp.hidden_row"), np.int64).ravel()
            stored = stored.without(hidden_rows, generation(db))
        return stored, self._count_missing(db, known, stored.chunks)

    def embeddings_ahead(self, db: Database, ids: Sequence[str], model: str) -> None:
        """Tell that the embeddings of these items will be asked for, as far as not known."""
        known = vector_index.find_model(db, model)
        if known is None:
            return
        cached = self._cache.get(db, _EMBEDDINGS, dict, key=known.mid)
        wanted = tuple(item for item in ids if item not in cached)
        if wanted:
            read_ahead(db, (_EMBEDDINGS_NOW, (as_table(wanted), known.mid)))

    def embeddings(
        self, db: Database, ids: Sequence[str], model: str, as_of: int | None = None
    ) -> dict[str, Embedding]:
        """Return the embeddings of these items' live revisions, or of those live then."""
        known = vector_index.find_model(db, model)
        if known is None or not ids:
            return {}
        cached: dict[str, Embedding] = {}
        if as_of is None:
            cached = self._cache.get(db, _EMBEDDINGS, dict, key=known.mid)
        missing = tuple(item for item in ids if item not in cached)
        if missing:
            sql, as_of_values = (
                (_EMBEDDINGS_NOW, ()) if as_of is None else (_EMBEDDINGS_AS_OF, (as_of,) * 2)
            )
            values = (*as_of_values, known.mid)
            found = select_readable(db, sql, missing, values, bind=as_table)
            cached.update(_to_embeddings(found, known.dim))
        return {item: cached[item] for item in ids if item in cached}

    def _count_missing(
        self, db: Database, model: StoredModel | None = None, chunks: ChunkVersions | None = None
    ) -> int:
        """Count live items without a vector of the model, once for each state."""
        documents = word_statistics(db, ()).documents
        if documents <= (model.memories if model else 0):
            return 0
        mid = model.mid if model else 0
        return self._cache.get(
            db,
            _MISSING,
            lambda: int(db.execute(_COUNT_WITHOUT_VECTOR, (mid,)).get),
            state=(model, documents, chunks),
        )


def _lacking(missing: int) -> str:
    """Say that memories have no vector, as after an import that was stopped; "" if all have."""
    if not missing:
        return ""
    return f"{plural(missing, 'memory')} without a vector: found by words alone (bethink reindex)"


def _to_embeddings(rows: Sequence[Row], dim: int) -> dict[str, Embedding]:
    """Return the embedding of each memory from its rows: its own vector, and its passages."""
    halves = vector_index.from_stored_rows((row[2] for row in rows), dim)
    vectors = vector_index.float16_to_float32(halves)
    made = [
        (row[0], row[1], Embedding(vector, as_bytes(row[3])))
        for row, vector in zip(rows, vectors, strict=True)
    ]
    found = {item: embedding for item, _, embedding in made}
    if len(found) < len(made):
        # A memory's own vector has the lowest key, then its passages in order.
        made.sort(key=itemgetter(0, 1))
        for item, group in groupby(made, key=itemgetter(0)):
            own, *passages = (embedding for _, _, embedding in group)
            found[item] = own._replace(passages=tuple(passages))
    return found


def _model_in_use(db: Database, name: str, dim: int, hidden: HiddenCounts) -> StoredModel | None:
    """Return the stored model of that name; raise ModelError if others are in use.

    Vectors of another model cannot be compared, and while some are left a search of the
    rest would miss their memories.
    """
    known = []
    for model in vector_index.stored_models(db):
        count, parts = hidden.get(model.mid, (0, 0))
        if model.slots > count:
            seen = model._replace(slots=model.slots - count, passages=model.passages - parts)
            known.append(seen)
    own = next((model for model in known if model.name == name), None)
    others = [model for model in known if model is not own]
    if others:
        raise ModelError(
            f"the vectors of {others[0].memories:,} memories were made by {others[0].name},"
            f" the embedder in use is {name}",
            remedy="bethink reindex",
        )
    if own is not None and own.dim != dim:
        raise ModelError(
            f"the question's vector has {dim} dimensions, those of {name} here have {own.dim}",
            remedy="bethink reindex",
        )
    return own


def unembedded_rows(db: Database, model: str, limit: int) -> list[int]:
    """Return rows of live items without a vector of this model, at most ``limit``."""
    stored = select(db, "SELECT mid, name FROM model")
    rids: list[int] = []
    for mid, name in stored:
        if name != model and len(rids) < limit:
            rids += (
                rid for (rid,) in select(db, _SELECT_OF_OTHER_MODELS, (mid, limit - len(rids)))
            )
    if len(rids) >= limit:
        return rids
    mid = next((mid for mid, name in stored if name == model), 0)
    return [rid for (rid,) in select(db, _SELECT_UNEMBEDDED, (mid, limit))]


class SqlVectors:
    """Vectors of a space: `VectorStore` in SQLite."""

    def __init__(self, connections: Connections, vectors: VectorIndex) -> None:
        self._connections = connections
        self._vectors = vectors

    def embeddings(
        self, ids: Sequence[str], model: str, *, as_of: datetime | None = None
    ) -> dict[str, Embedding]:
        with self._connections.read_transaction() as db:
            return self._vectors.embeddings(db, ids, model, to_ms_or_none(as_of))

    def read_ahead(self, ids: Sequence[str], model: str) -> None:
        """Tell that the embeddings of live items will be asked for."""
        with self._connections.read_transaction() as db:
            if is_on_server(db):
                self._vectors.embeddings_ahead(db, ids, model)

    def set_embeddings(
        self, model: str, embeddings: Mapping[str, Embedding], *, only: Mapping[str, int]
    ) -> None:
        """Store vectors of live items; drop other models once none is left unembedded.

        One that was revised since has another text: its vector is not of this one.
        """
        with self._connections.write_transaction() as db:
            live = select(db, _SELECT_LIVE_ROWS, (as_table(tuple(embeddings)),))
            rows = [(rid, embeddings[item]) for item, rid, rev in live if rev == only.get(item)]
            vector_index.append_vectors(db, model, rows)
            if not unembedded_rows(db, model, 1):
                for other in vector_index.stored_models(db):
                    if other.name != model:
                        vector_index.drop_model(db, other)

    def unembedded(self, model: str, limit: int) -> list[Item]:
        with self._connections.read_transaction() as db:
            wanted = limit
            while True:
                rids = unembedded_rows(db, model, wanted)
                items = read_items(db, rids, intact=True)
                if len(items) >= limit or len(rids) < wanted:
                    return [items[rid] for rid in rids if rid in items][:limit]
                wanted *= 2  # some are damaged

    def set_entity_embeddings(self, model: str, embeddings: Mapping[str, Embedding]) -> None:
        from bethink.store.sql.entities import set_entity_embeddings  # a recall needs none

        with self._connections.write_transaction() as db:
            set_entity_embeddings(db, model, embeddings)

    def unembedded_entities(self, model: str, limit: int) -> list[Entity]:
        from bethink.store.sql.entities import unembedded_entities  # a recall needs none

        with self._connections.read_transaction() as db:
            return unembedded_entities(db, model, limit)

    def entities_ahead(self, entities: Sequence[str], model: str) -> None:
        """Tell that `lacking_vectors` will be asked."""
        from bethink.store.sql.entities import EMBEDDED_IDS  # a recall needs none

        with self._connections.read_transaction() as db:
            if entities:
                read_ahead(db, (EMBEDDED_IDS, (as_table(tuple(entities)), model)))

    def lacking_vectors(self, entities: Sequence[str], model: str) -> list[str]:
        from bethink.store.sql.entities import ids_without_vector  # a recall needs none

        with self._connections.read_transaction() as db:
            return ids_without_vector(db, entities, model)

    def remove_damaged(self) -> int:
        with self._connections.write_transaction() as db:
            return vector_index.remove_damaged(db)
