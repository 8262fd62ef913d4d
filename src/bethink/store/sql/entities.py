"""Entities by vector and by name, the items that mention them, merging and splitting.

Names and vectors of all entities are cached in memory until a version counter in the
file says that an entity was added, removed or re-embedded.

A merged entity keeps its row and, marked, its links; a link ``same_as`` records where
everything went. The journal only records that it happened, because a name is content.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from itertools import islice

from bethink.core.arrays import Vector, np
from bethink.core.words import fold
from bethink.errors import NotFound, Refused
from bethink.model import Entity, Item
from bethink.ports import Embedding, Mention, Scope, ScoredEntity
from bethink.store.sql import links
from bethink.store.sql.ceiling import SPEAKS_OF_ENTITY, is_below_ceiling
from bethink.store.sql.connection import Database, as_table, generation, read_ahead, select
from bethink.store.sql.history import END_OF_TIME, IS_MENTION, entities_created_after
from bethink.store.sql.search import vector_index
from bethink.store.sql.search.lexical import ItemLoader
from bethink.store.sql.search.scope import compile_scope
from bethink.store.sql.search.vector_scan import MeasuredVectors
from bethink.store.sql.sql_functions import to_json_ids
from bethink.store.sql.state_cache import CachePart, StateCache

_SELECT_VERSION = "SELECT value FROM meta WHERE name = 'entities'"
_BUMP_VERSION = (
    "UPDATE meta SET value = CAST(CAST(value AS INTEGER) + 1 AS TEXT) WHERE name = 'entities'"
)
_ADD_VECTOR = "INSERT OR REPLACE INTO entity_vector (entity, model, data) VALUES (?, ?, ?)"
_SELECT_NAMES = "SELECT id, name FROM entity ORDER BY id"
_VECTORS_OF_MODEL = """
    SELECT entity, data FROM entity_vector WHERE model = ? AND length(data) = ? ORDER BY entity
"""
EXISTING_IDS = "SELECT e.id FROM carray(?) AS w CROSS JOIN entity AS e ON e.id = w.value"
_UNEMBEDDED = f"""
    SELECT {links.ENTITY_COLUMNS} FROM entity AS e
    WHERE NOT EXISTS (SELECT 1 FROM entity_vector AS v WHERE v.entity = e.id AND v.model = ?)
    ORDER BY e.id LIMIT ?
"""
EMBEDDED_IDS = """
    SELECT v.entity FROM carray(?) AS w
    CROSS JOIN entity_vector AS v ON v.entity = w.value WHERE v.model = ?
"""
# Vectors of one model are of one length; two bytes a number.
_INVALID_VECTORS = """
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
_MENTIONING_NOW = _MENTIONING.replace("TYPES", "'mentions'").replace("LIVING", "TRUE")
_MENTIONING_AS_OF = _MENTIONING.replace("TYPES", "'mentions', 'mentioned'").replace(
    "LIVING", "instr(i.entities, json_quote(l.dst)) > 0"
)


# Of all entities: texts of their names by id; ids, with the vectors of one model.
_NAMES, _VECTORS = CachePart[dict[str, str]](), CachePart[tuple[list[str], MeasuredVectors]]()


def near_entities(  # noqa: PLR0917 - the port's parameters
    db: Database, cache: StateCache, vector: Vector, model: str, limit: int, as_of_ms: int | None
) -> list[ScoredEntity]:
    """Return the nearest by cosine, ties by id; as of a moment, of those known then."""
    read = partial(_read_vectors, db, model, len(vector))
    key, version = (model, len(vector)), _entities_version(db)
    ids, vectors = cache.get(db, _VECTORS, read, key=key, state=version)
    if not ids or limit < 1 or not vector.any():
        return []
    cosines = vectors.cosines(vector)
    order = np.argsort(-cosines, kind="stable")
    later = entities_created_after(db, as_of_ms)
    known = (position for position in order.tolist() if ids[position] not in later)
    nearest = {ids[position]: float(cosines[position]) for position in islice(known, limit)}
    found = links.read_entities(db, nearest, as_of_ms)
    return [ScoredEntity(found[key], near) for key, near in nearest.items() if key in found]


def entities_with(
    db: Database, cache: StateCache, words: Sequence[str], limit: int, as_of_ms: int | None
) -> list[ScoredEntity]:
    """Return those whose id or name holds most of the words; the more mentioned first."""
    version = _entities_version(db)
    names = cache.get(db, _NAMES, lambda: _read_names(db), state=version)
    matches: Counter[str] = Counter()
    for word in dict.fromkeys(words):
        matches.update(key for key, text in names.items() if word in text)
    for later in entities_created_after(db, as_of_ms) & matches.keys():
        del matches[later]
    if not matches or limit < 1:
        return []
    # All that tie with the last one that fits, since mentions decide among them.
    minimum = sorted(matches.values(), reverse=True)[:limit][-1]
    best = [key for key, count in matches.items() if count >= minimum]
    found = links.read_entities(db, best, as_of_ms)
    ranked = sorted(found.values(), key=lambda one: (-matches[one.id], -one.mentions, one.id))
    return [ScoredEntity(entity, float(matches[entity.id])) for entity in ranked[:limit]]


def _read_names(db: Database) -> dict[str, str]:
    """Return of every entity its id and name as one text in lower case, by id."""
    return {key: f"{key} {name}".lower() for key, name in select(db, _SELECT_NAMES)}


def _read_vectors(db: Database, model: str, dim: int) -> tuple[list[str], MeasuredVectors]:
    rows = select(db, _VECTORS_OF_MODEL, (model, 2 * dim))
    stored = vector_index.from_stored_rows((data for _, data in rows), dim)
    return [key for key, _ in rows], MeasuredVectors.of(stored)


def latest_mentions(
    db: Database, entities: Sequence[str], each: int, scope: Scope, hydrate: ItemLoader
) -> dict[str, list[Item]]:
    """Return for every entity the latest items in scope that mention it."""
    predicate = compile_scope(scope)
    sql = _MENTIONING_NOW if scope.as_of is None else _MENTIONING_AS_OF
    sql = sql.replace("PREDICATE", predicate.sql)
    asked = {entity: (sql, (entity, *predicate.values, each)) for entity in entities}
    read_ahead(db, *asked.values())
    rows = {entity: [rid for (rid,) in select(db, *query)] for entity, query in asked.items()}
    items = hydrate(db, list({rid: None for rids in rows.values() for rid in rids}))
    return {entity: [items[rid] for rid in rids if rid in items] for entity, rids in rows.items()}


def unembedded_entities(db: Database, model: str, limit: int) -> list[Entity]:
    """Return entities without a vector of this model."""
    return [links.to_entity(row) for row in select(db, _UNEMBEDDED, (model, limit))]


def ids_without_vector(db: Database, ids: Sequence[str], model: str) -> list[str]:
    """Return those of the ids, known here or not, that have no vector of this model."""
    requested = tuple(dict.fromkeys(ids))
    if not requested:
        return []
    have = {key for (key,) in select(db, EMBEDDED_IDS, (as_table(requested), model))}
    return [key for key in requested if key not in have]


def set_entity_embeddings(
    db: Database, model: str, embeddings: Mapping[str, Embedding], *, all_exist: bool = False
) -> None:
    """Store vectors of entities, replacing other models'. Unknown ids are left out."""
    if not embeddings:
        return

    ids = tuple(embeddings)
    known = ids if all_exist else [key for (key,) in select(db, EXISTING_IDS, (as_table(ids),))]
    if known:
        vectors = [embeddings[key].vector for key in known]
        stored = vector_index.to_float16_rows(vectors, len(vectors[0]))
        rows = zip(known, stored, strict=True)
        db.executemany(_ADD_VECTOR, [(key, model, row.tobytes()) for key, row in rows])
        bump_entities_version(db)


def mention_embeddings(mentions: Iterable[Mention]) -> dict[str, Embedding]:
    """Return the vectors that came with mentions."""
    return {
        mention.entity.id: mention.embedding
        for mention in mentions
        if mention.embedding is not None
    }


def all_exist(db: Database, ids: Iterable[str]) -> bool:
    """Whether the store has every one of these entities."""
    requested = tuple(dict.fromkeys(ids))
    found = select(db, EXISTING_IDS, (as_table(requested),)) if requested else []
    return len(found) == len(requested)


def verify_entity_vectors(db: Database) -> str:
    """Describe problems of the entity vectors; "" when there are none."""
    invalid = select(
        db, f"SELECT entity FROM entity_vector WHERE {_INVALID_VECTORS} ORDER BY entity"
    )
    return f"{len(invalid):,} are invalid, the first is {invalid[0][0]}" if invalid else ""


def drop_invalid_vectors(db: Database) -> None:
    """Remove vectors that cannot be compared; a reindex makes them again."""
    db.execute(f"DELETE FROM entity_vector WHERE {_INVALID_VECTORS}")
    bump_entities_version(db)


def bump_entities_version(db: Database) -> None:
    """Record that entities were added, removed or re-embedded."""
    db.execute(_BUMP_VERSION)


def _entities_version(db: Database) -> str:
    if is_below_ceiling(db):
        # Which entities are visible depends on the memories.
        return f"generation {generation(db)}"
    return str(db.execute(_SELECT_VERSION).get)


_EXISTING_PAIR = "SELECT id FROM entity WHERE id IN (?, ?)"
_ALIASES_OF = "SELECT alias, classification FROM alias WHERE entity = ? ORDER BY alias"
_RESTORE_ALIAS = """
    INSERT OR IGNORE INTO alias (alias, entity, classification)
    VALUES (?1, ?2, (SELECT coalesce(min(i.classification), 0) FROM link AS l
        JOIN item AS i ON i.id = l.src
        WHERE l.dst = ?2 AND l.src_kind = 'item' AND l.dst_kind = 'entity'))
"""
_DROP_ALIAS = "DELETE FROM alias WHERE alias = ? AND entity = ?"
_DROP_ALIASES = "DELETE FROM alias WHERE entity = ?"
_DROP_VECTOR = "DELETE FROM entity_vector WHERE entity = ?"
_ADD_SAME_AS = """
    INSERT OR REPLACE INTO link (src_kind, src, type, dst_kind, dst, context, source, created_at)
    VALUES ('entity', ?, 'same_as', 'entity', ?, ?, 'caller', ?)
"""
_SELECT_SAME_AS = "SELECT context FROM link WHERE src = ? AND type = 'same_as' AND dst = ?"
_MERGED_INTO = (
    "SELECT dst, context FROM link WHERE src = ? AND type = 'same_as' AND src_kind = 'entity'"
)
_DROP_SAME_AS = "DELETE FROM link WHERE src = ? AND type = 'same_as' AND dst = ?"
_COPY_MENTIONS = """
    INSERT OR IGNORE INTO link
        (src_kind, src, type, dst_kind, dst, weight, confidence, source, created_at)
    SELECT src_kind, src, type, dst_kind, ?2, weight, confidence, 'same_as:' || ?1, created_at
    FROM link WHERE dst = ?1 AND type = 'mentions' AND src_kind = 'item' AND dst_kind = 'entity'
"""
_MENTIONS_OF = "type = 'mentions' AND dst = ?1"
_MARKED_MENTIONS_OF = "type = 'mentioned' AND context = 'same_as' AND dst = ?1"
_COPY_EDGES = """
    INSERT OR IGNORE INTO link (src_kind, src, type, dst_kind, dst, stated_by,
        weight, confidence, context, source, created_at)
    SELECT 'entity', iif(src = ?1, ?2, src), type, 'entity', iif(dst = ?1, ?2, dst), stated_by,
        weight, confidence, context, 'same_as:' || ?1, created_at
    FROM link WHERE (src = ?1 OR dst = ?1) AND src_kind = 'entity' AND dst_kind = 'entity'
    AND type <> 'same_as' AND src <> ?2 AND dst <> ?2
"""
_COPIED_MENTIONS = """
    SELECT dst FROM link WHERE src = ? AND source = 'same_as:' || ? AND src_kind = 'item'
    AND dst_kind = 'entity' AND (type = 'mentions' OR type = 'mentioned' AND context = 'same_as')
"""
_OTHER_ORIGINAL = """
    SELECT o.dst FROM link AS s JOIN link AS o ON o.dst = s.src
    WHERE s.dst = ? AND s.type = 'same_as' AND o.src = ? AND o.dst <> ?
    AND o.type = 'mentioned' AND o.context = 'same_as' AND o.src_kind = 'item'
    ORDER BY o.dst LIMIT 1
"""
_SET_ORIGINAL = """
    UPDATE link SET source = 'same_as:' || ? WHERE src = ? AND dst = ?
    AND source = 'same_as:' || ? AND src_kind = 'item' AND dst_kind = 'entity'
"""
_UNMARK_MENTION = """
    UPDATE link SET context = NULL WHERE src = ? AND dst = ? AND type = 'mentioned'
    AND context = 'same_as' AND src_kind = 'item'
"""
_DROP_COPIES = "DELETE FROM link WHERE (src = ?2 OR dst = ?2) AND source = 'same_as:' || ?1"
MENTIONS = f"""(
        SELECT count(*) FROM link AS l JOIN item AS i ON i.id = l.src AND i.live_to IS NULL
        WHERE l.dst = entity.id AND {IS_MENTION})
"""
# An entity is as old, and as recent, as the revisions that speak of it.
_SPEAKING = f"FROM link AS l JOIN item AS i ON i.id = l.src WHERE {SPEAKS_OF_ENTITY}"
_SET_FIRST = f"""
    UPDATE entity SET created_at = coalesce(
        (SELECT min(i.live_from) {_SPEAKING} AND l.dst = entity.id), created_at)
    WHERE id IN (SELECT value FROM json_each(?)) AND created_at >= ?
"""
_SET_LAST = f"""
    UPDATE entity SET last_seen_at = (SELECT max(i.live_from) {_SPEAKING} AND l.dst = entity.id)
    WHERE id IN (SELECT value FROM json_each(?)) AND coalesce(last_seen_at, 0) <= ?
"""
_SELECT_WRONG_TIMES = f"""
    SELECT e.id FROM (
        SELECT l.dst AS id, min(i.live_from) AS first, max(i.live_from) AS last {_SPEAKING}
        GROUP BY l.dst) AS s
    CROSS JOIN entity AS e ON e.id = s.id
    WHERE e.created_at <> s.first OR coalesce(e.last_seen_at, s.last - 1) <> s.last ORDER BY e.id
"""
_FORGET_MOMENTUM = "UPDATE entity SET momentum = 0.0, momentum_at = NULL WHERE id = ?"
_RECOUNT = f"UPDATE entity SET mentions = {MENTIONS} WHERE id IN (SELECT value FROM json_each(?))"
# Rot may have left no number.
_IS_WRONG = f"coalesce(mentions, -1) <> {MENTIONS}"
_RECOUNT_WRONG = f"UPDATE entity SET mentions = {MENTIONS} WHERE {_IS_WRONG}"


def verify_mentions(db: Database) -> str:
    """Describe entities that do not fit their memories; "" when there are none."""
    wrong = select(db, f"SELECT id FROM entity WHERE {_IS_WRONG} ORDER BY id")
    late = select(db, _SELECT_WRONG_TIMES)
    problems = [
        f"{len(found):,} {what}, the first is {found[0][0]}"
        for found, what in ((wrong, "count wrong"), (late, "have other times than their memories"))
        if found
    ]
    return "; ".join(problems)


def recount_mentions(db: Database) -> None:
    """Count the mentions of all entities anew, and tell their times from their memories."""
    db.execute(_RECOUNT_WRONG)
    set_times(db, [row[0] for row in select(db, _SELECT_WRONG_TIMES)])
    bump_entities_version(db)


def set_times(
    db: Database, ids: Iterable[str], first: int = -END_OF_TIME, last: int = END_OF_TIME
) -> None:
    """Set when entities were first and last spoken of, by the memories that there are.

    Only times from ``first`` on, or up to ``last``, may be wrong.
    """
    found = to_json_ids(sorted(ids))
    if found != "[]":
        db.execute(_SET_FIRST, (found, first))
        db.execute(_SET_LAST, (found, last))


def update_entities(db: Database, ids: Iterable[str]) -> None:
    """Count the mentions of entities and set their times, by the memories that there are."""
    if found := sorted(ids):
        db.execute(_RECOUNT, (to_json_ids(found),))
        set_times(db, found)
        bump_entities_version(db)


def forget_times(db: Database, ids: Sequence[str], times: Sequence[int]) -> None:
    """Leave nothing in entities of the times of memories that were erased, as far as known."""
    set_times(db, ids, min(times, default=-END_OF_TIME), max(times, default=END_OF_TIME))
    # Earlier versions kept one here, which the erased memories were part of.
    db.executemany(_FORGET_MOMENTUM, [(entity,) for entity in ids])


def merge_entities(db: Database, kept: str, gone: str, now: int) -> None:
    """Transfer names, mentions and edges of one entity to another."""
    known = {row[0] for row in select(db, _EXISTING_PAIR, (kept, gone))}
    for entity in (kept, gone):
        if entity not in known:
            raise NotFound(f"no memory mentions {entity!r}")
        if select(db, _MERGED_INTO, (entity,)):
            raise Refused(f"{entity} is already merged into another entity")
    if kept == gone:
        raise Refused(f"{kept} cannot be merged with itself")
    classify_names(db, gone)  # a memory with one may have become secret since
    moved = select(db, _ALIASES_OF, (gone,))
    names = [name for name, _ in moved]
    taken = {row[0] for row in select(db, _ALIASES_OF, (kept,))}
    db.executemany(links.ADD_ALIAS, [(name, kept, level) for name, level in moved])
    merge_record = json.dumps(
        {"names": names, "shared": sorted(taken & set(names))}, ensure_ascii=False
    )
    db.execute(_DROP_ALIASES, (gone,))
    db.execute(_COPY_MENTIONS, (gone, kept))
    links.update_mentions(db, _MENTIONS_OF, (gone,), "mentioned", ", context = 'same_as'")
    db.execute(_COPY_EDGES, (gone, kept))
    db.execute(_DROP_VECTOR, (gone,))
    db.execute(_ADD_SAME_AS, (gone, kept, merge_record, now))
    update_entities(db, (kept, gone))


def no_longer_through(db: Database, item: str, gone: str) -> list[str]:
    """Return the entities that a memory mentioned only as the merged one it no longer mentions."""
    db.execute(_UNMARK_MENTION, (item, gone))
    found = []
    for (kept,) in select(db, _COPIED_MENTIONS, (item, gone)):
        others = select(db, _OTHER_ORIGINAL, (kept, item, gone))
        if others:  # a further one that was merged into it
            db.execute(_SET_ORIGINAL, (others[0][0], item, kept, gone))
        else:
            found += [kept, *no_longer_through(db, item, kept)]
    return found


def remove_merged_names(db: Database, gone: str) -> None:
    """Remove the names that an erased entity gave to the entity it was merged into."""
    for kept, context in select(db, _MERGED_INTO, (gone,)):
        merge_record = json.loads(context)
        own = [(name, kept) for name in merge_record["names"] if name not in merge_record["shared"]]
        db.executemany(_DROP_ALIAS, own)


# A revision is as classified as it says, and as the last one of its memory.
_LEVEL = """max(i.classification, (
        SELECT r.classification FROM item AS r WHERE r.id = i.id ORDER BY r.rev DESC LIMIT 1))
"""
_FROM_MENTIONING = """
    FROM link AS l JOIN item AS i ON i.id = l.src
    WHERE l.dst = ? AND l.dst_kind = 'entity' AND l.src_kind = 'item'
"""
_SELECT_MENTIONING = f"SELECT i.text, {_LEVEL} {_FROM_MENTIONING}"
_IS_TOLD_BELOW = f"SELECT EXISTS (SELECT 1 {_FROM_MENTIONING} AND {_LEVEL} <= ?)"
_LEAST_LEVEL = f"SELECT min({_LEVEL}) {_FROM_MENTIONING}"
_NAMES_AND_LEVELS = """
    SELECT a.alias, e.name, a.classification FROM alias AS a JOIN entity AS e ON e.id = a.entity
    WHERE e.id = ?
"""
_SELECT_MERGED = """
    SELECT src, context FROM link WHERE dst = ? AND type = 'same_as' AND context <> ''
"""
_CLASSIFY_ALIAS = "UPDATE alias SET classification = ? WHERE alias = ? AND entity = ?"


def classify_names(db: Database, entity: str) -> set[str]:
    """Make the names of an entity as classified as the least classified memory that tells them.

    All that mention it tell its own name; all that speak of an entity merged into it, the
    names of that one. Returns the other names that no memory tells.
    """
    merged = [
        (source, json.loads(record)["names"])
        for source, record in select(db, _SELECT_MERGED, (entity,))
    ]
    rows = select(db, _NAMES_AND_LEVELS, (entity,))
    own = {entity.partition(":")[2], *(links.normalise_alias(name) for _, name, _ in rows)}
    for alias, _, level in rows:
        # Seldom is the memory that had it first gone.
        if alias in own and not db.execute(_IS_TOLD_BELOW, (entity, level)).get:
            least = db.execute(_LEAST_LEVEL, (entity,)).get
            db.execute(_CLASSIFY_ALIAS, (level if least is None else least, alias, entity))
    levels = {alias: level for alias, _, level in rows if alias not in own}
    unstated = raise_levels(db, entity, set(levels))
    for name in unstated:
        sources = [source for source, names in merged if name in names] or [entity]
        least = min(db.execute(_LEAST_LEVEL, (source,)).get or 0 for source in sources)
        if least > levels[name]:
            db.execute(_CLASSIFY_ALIAS, (least, name, entity))
    return unstated.difference(*(names for _, names in merged))


def raise_levels(db: Database, entity: str, names: set[str]) -> set[str]:
    """Make names at least as classified as the least classified memory that tells them.

    Returns the names that no memory tells.
    """
    known = {alias: level for alias, level in select(db, _ALIASES_OF, (entity,)) if alias in names}
    stated: dict[str, int] = {}
    for text, level in select(db, _SELECT_MENTIONING, (entity,)) if known else ():
        folded = fold(text)
        stated |= {name: min(level, stated.get(name, level)) for name in known if name in folded}
    raised = [(level, name, entity) for name, level in stated.items() if level > known[name]]
    db.executemany(_CLASSIFY_ALIAS, raised)
    return known.keys() - stated.keys()


def split_entities(db: Database, kept: str, gone: str) -> None:
    """Undo a merge of two entities."""
    rows = select(db, _SELECT_SAME_AS, (gone, kept))
    if not rows:
        raise NotFound(f"{gone} was not merged into {kept}")
    if select(db, _MERGED_INTO, (kept,)):
        raise Refused(f"{kept} is itself merged into another entity", remedy="split that first")
    merge_record = json.loads(rows[0][0])
    db.executemany(_RESTORE_ALIAS, [(name, gone) for name in merge_record["names"]])
    own = [(name, kept) for name in merge_record["names"] if name not in merge_record["shared"]]
    db.executemany(_DROP_ALIAS, own)
    db.execute(_DROP_COPIES, (gone, kept))
    links.update_mentions(db, _MARKED_MENTIONS_OF, (gone,), "mentions", ", context = NULL")
    db.execute(_DROP_SAME_AS, (gone, kept))
    for entity, shared in ((kept, merge_record["shared"]), (gone, merge_record["names"])):
        raise_levels(db, entity, set(shared))
    update_entities(db, (kept, gone))
