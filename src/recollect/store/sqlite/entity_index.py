"""Entities by meaning and by parts of their names, and the memories that mention them.

All of them are looked at: names and vectors are kept in memory until an entity comes,
goes or gets another vector, of which the file counts the times.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate, islice
from typing import TYPE_CHECKING, NamedTuple

import apsw

from recollect.model import Entity, Item
from recollect.ports import Embedding, Mention, NearEntity, Scope
from recollect.store.sqlite.connection import select
from recollect.store.sqlite.graph import ENTITY, to_entity
from recollect.store.sqlite.lexical import Hydrate
from recollect.store.sqlite.past import MOMENT, columns_then, not_yet_known
from recollect.store.sqlite.scope import compile_scope
from recollect.store.sqlite.terms import as_table

if TYPE_CHECKING:
    from recollect.ports import Matrix, Vector

_VERSION = "SELECT value FROM meta WHERE name = 'entities'"
_CHANGED = "UPDATE meta SET value = value + 1 WHERE name = 'entities'"
_ADD = "INSERT OR REPLACE INTO entity_vector (entity, model, data) VALUES (?, ?, ?)"
_NAMES = "SELECT id, name FROM entity ORDER BY id"
_OF_MODEL = """
    SELECT entity, data FROM entity_vector WHERE model = ? AND length(data) = ? ORDER BY entity
"""
_BY_ID = f"SELECT {ENTITY} FROM carray(?) AS w CROSS JOIN entity AS e ON e.id = w.value"
_BY_ID_THEN = f"""
    {MOMENT} SELECT {columns_then(ENTITY)}
    FROM carray(?) AS w CROSS JOIN entity AS e ON e.id = w.value
"""
_IDS = "SELECT e.id FROM carray(?) AS w CROSS JOIN entity AS e ON e.id = w.value"
_KNOWN = "SELECT count(*) FROM carray(?) AS w CROSS JOIN entity AS e ON e.id = w.value"
_UNEMBEDDED = f"""
    SELECT {ENTITY} FROM entity AS e
    WHERE NOT EXISTS (SELECT 1 FROM entity_vector AS v WHERE v.entity = e.id AND v.model = ?)
    ORDER BY e.id LIMIT ?
"""
_EMBEDDED = """
    SELECT v.entity FROM carray(?) AS w
    CROSS JOIN entity_vector AS v ON v.entity = w.value WHERE v.model = ?
"""
# Vectors of one model are of one length; two bytes a number.
_FAULTY = """
    entity NOT IN (SELECT id FROM entity) OR length(data) <> coalesce(
        (SELECT 2 * m.dim FROM model AS m WHERE m.name = entity_vector.model), length(data))
    OR length(data) = 0 OR length(data) % 2 = 1
"""
# The link of a live revision 'mentions'; earlier ones know their entities themselves.
_MENTIONING = """
    SELECT i.rid FROM link AS l CROSS JOIN item AS i ON i.id = l.src
    WHERE l.dst = ? AND l.type IN (TYPES) AND l.src_kind = 'item' AND l.dst_kind = 'entity'
    AND LIVING AND (PREDICATE) ORDER BY l.created_at DESC, l.src DESC LIMIT ?
"""
_NOW = _MENTIONING.replace("TYPES", "'mentions'").replace("LIVING", "1")
_THEN = _MENTIONING.replace("TYPES", "'mentions', 'mentioned'").replace(
    "LIVING", "instr(i.entities, json_quote(l.dst)) > 0"
)


class _Names(NamedTuple):
    """Every entity's id and name in one text, and where each begins in it."""

    version: str
    ids: tuple[str, ...]
    text: str
    starts: tuple[int, ...]


class _Vectors(NamedTuple):
    """The unit vectors of one model, one a row."""

    version: str
    model: str
    dim: int
    ids: tuple[str, ...]
    rows: Matrix


class EntityIndex:
    """The entities of one store, kept in memory as far as they were asked for."""

    def __init__(self) -> None:
        self._names: _Names | None = None
        self._vectors: _Vectors | None = None

    def near(
        self,
        db: apsw.Connection,
        vector: Vector,
        model: str,
        limit: int,
        then: int | None = None,
    ) -> list[NearEntity]:
        """The nearest by cosine, ties by id; with a moment of those known by then."""
        import numpy as np  # start-up time: only a profile that asks for it

        kept = self._vectors_of(db, model, len(vector))
        length = float(np.sqrt(np.einsum("i,i->", vector, vector)))
        if not kept.ids or limit < 1 or length == 0.0:
            return []
        # Not a matrix product, whose sums depend on where in the matrix a row stands.
        cosines = np.einsum("ij,j->i", kept.rows, vector) / length
        order = np.argsort(-cosines, kind="stable")
        strangers = not_yet_known(db, then)
        known = (place for place in order.tolist() if kept.ids[place] not in strangers)
        nearest = {kept.ids[place]: float(cosines[place]) for place in islice(known, limit)}
        found = read(db, nearest, then)
        return [NearEntity(found[key], near) for key, near in nearest.items() if key in found]

    def named(
        self, db: apsw.Connection, words: Sequence[str], limit: int, then: int | None = None
    ) -> list[NearEntity]:
        """Those whose id or name holds most of the words; the more mentioned first."""
        names = self._all_names(db)
        held: Counter[str] = Counter()
        for word in dict.fromkeys(words):
            held.update(_holders(names, word))
        for stranger in not_yet_known(db, then) & held.keys():
            del held[stranger]
        if not held or limit < 1:
            return []
        # All that tie with the last one that fits, since mentions decide among them.
        least = sorted(held.values(), reverse=True)[:limit][-1]
        found = read(db, [key for key, count in held.items() if count >= least], then)
        ranked = sorted(found.values(), key=lambda one: (-held[one.id], -one.mentions, one.id))
        return [NearEntity(entity, float(held[entity.id])) for entity in ranked[:limit]]

    def _all_names(self, db: apsw.Connection) -> _Names:
        version, kept = _version(db), self._names
        if kept is None or kept.version != version:
            rows = select(db, _NAMES)
            texts = [f"{key} {name}".lower().replace("\n", " ") for key, name in rows]
            starts = tuple(accumulate((len(text) + 1 for text in texts), initial=0))[:-1]
            kept = _Names(version, tuple(key for key, _ in rows), "\n".join(texts), starts)
            if not _is_writing(db):
                self._names = kept
        return kept

    def _vectors_of(self, db: apsw.Connection, model: str, dim: int) -> _Vectors:
        version, kept = _version(db), self._vectors
        if kept is None or kept[:3] != (version, model, dim):
            rows = select(db, _OF_MODEL, (model, 2 * dim))
            ids = tuple(key for key, _ in rows)
            kept = _Vectors(version, model, dim, ids, _units(rows, dim))
            if not _is_writing(db):
                self._vectors = kept
        return kept


def _holders(names: _Names, word: str) -> Iterable[str]:
    """Every entity whose id or name holds the word, once."""
    at = names.text.find(word)
    while at >= 0:
        place = bisect_right(names.starts, at) - 1
        yield names.ids[place]
        if place + 1 == len(names.starts):
            return
        at = names.text.find(word, names.starts[place + 1])


def _units(rows: Sequence[tuple[str, bytes]], dim: int) -> Matrix:
    import numpy as np  # start-up time: only a profile that asks for it

    from recollect.store.sqlite import bits

    wide = bits.widened(bits.from_stored((stored for _, stored in rows), dim))
    lengths = np.sqrt(np.einsum("ij,ij->i", wide, wide))
    lengths[lengths == 0.0] = 1.0
    wide /= lengths[:, None]
    return wide


def read(db: apsw.Connection, ids: Iterable[str], then: int | None = None) -> dict[str, Entity]:
    """Entities by id; strangers are left out."""
    wanted = tuple(ids)
    if not wanted:
        return {}
    if then is None:
        rows = select(db, _BY_ID, (as_table(wanted),))
    else:
        rows = select(db, _BY_ID_THEN, (then, as_table(wanted)))
    return {row[0]: to_entity(row) for row in rows}


def mentioning(
    db: apsw.Connection, entities: Sequence[str], each: int, scope: Scope, hydrate: Hydrate
) -> dict[str, list[Item]]:
    """For every entity the latest items in scope that mention it."""
    predicate = compile_scope(scope)
    sql = (_NOW if scope.as_of is None else _THEN).replace("PREDICATE", predicate.sql)
    found = {}
    for entity in dict.fromkeys(entities):
        rids = [rid for (rid,) in select(db, sql, (entity, *predicate.values, each))]
        items = hydrate(db, rids)
        found[entity] = [items[rid] for rid in rids if rid in items]
    return found


def unembedded(db: apsw.Connection, model: str, limit: int) -> list[Entity]:
    """Entities without a vector of this model."""
    return [to_entity(row) for row in select(db, _UNEMBEDDED, (model, limit))]


def lacking(db: apsw.Connection, ids: Sequence[str], model: str) -> list[str]:
    """Those of the entities, known here or not, that have no vector of this model."""
    wanted = tuple(dict.fromkeys(ids))
    if not wanted:
        return []
    have = {key for (key,) in select(db, _EMBEDDED, (as_table(wanted), model))}
    return [key for key in wanted if key not in have]


def set_embeddings(db: apsw.Connection, model: str, embeddings: Mapping[str, Embedding]) -> None:
    """Gives entities their vectors; one of another model goes. Strangers are left out."""
    if not embeddings:
        return
    from recollect.store.sqlite import bits  # NumPy

    known = [key for (key,) in select(db, _IDS, (as_table(tuple(embeddings)),))]
    if known:
        vectors = [embeddings[key].vector for key in known]
        stored = bits.to_rows(vectors, len(vectors[0]))
        rows = zip(known, stored, strict=True)
        db.executemany(_ADD, [(key, model, row.tobytes()) for key, row in rows])
        changed(db)


def vectors_of(mentions: Iterable[Mention]) -> dict[str, Embedding]:
    """The vectors that came with mentions."""
    return {
        mention.entity.id: mention.embedding
        for mention in mentions
        if mention.embedding is not None
    }


def all_known(db: apsw.Connection, ids: Iterable[str]) -> bool:
    """Whether the store has every one of these entities."""
    wanted = tuple(dict.fromkeys(ids))
    return not wanted or db.execute(_KNOWN, (as_table(wanted),)).get == len(wanted)


def verify(db: apsw.Connection) -> str:
    """What is wrong with the vectors, in words."""
    faulty = select(db, f"SELECT entity FROM entity_vector WHERE {_FAULTY} ORDER BY entity")
    return f"{len(faulty):,} cannot be compared: {faulty[0][0]} and others" if faulty else ""


def drop_faulty(db: apsw.Connection) -> None:
    """Removes what cannot be compared; a reindex makes it anew."""
    db.execute(f"DELETE FROM entity_vector WHERE {_FAULTY}")
    changed(db)


def changed(db: apsw.Connection) -> None:
    """Says that entities came or went, or got other vectors."""
    db.execute(_CHANGED)


def _version(db: apsw.Connection) -> str:
    return str(db.execute(_VERSION).get)


def _is_writing(db: apsw.Connection) -> bool:
    """What a write has not committed may be undone, and its version used again."""
    return db.txn_state("main") == apsw.SQLITE_TXN_WRITE
