"""The graph of a space: entities, links, and items that share entities."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from itertools import product
from operator import itemgetter

from bethink.core.arrays import Vector
from bethink.model import NO_UPDATE, UPDATE_LINKS, Entity, Link, Node
from bethink.ports import EntityListing, ScoredEntity, SharedEntities, Sibling
from bethink.store.sql import history
from bethink.store.sql.connection import (
    HIGHEST,
    Connections,
    Database,
    Row,
    as_table,
    read_ahead,
    select,
)
from bethink.store.sql.history import (
    AS_OF_CTE,
    END_OF_TIME,
    IS_MENTION,
    MENTION_COUNT,
    MENTION_LINK,
)
from bethink.store.sql.sql_functions import from_ms, to_ms, to_ms_or_none
from bethink.store.sql.state_cache import StateCache

# Special entities (the user, the agent itself) are in everything and not selective.
_ENTITIES_OF_ITEMS = """
    SELECT l.src, e.id, {count} FROM carray(?) AS w
    CROSS JOIN link AS l ON l.src = w.value AND {mention} AND l.confidence >= ?
    CROSS JOIN entity AS e ON e.id = l.dst AND e.kind <> 'special'
    ORDER BY l.src, e.id
"""
_ITEMS_OF_ENTITIES = """
    SELECT l.dst, l.src, l.confidence FROM carray(?) AS w
    CROSS JOIN link AS l ON l.dst = w.value AND {mention} AND l.confidence >= ?
    ORDER BY l.dst, l.src
"""
_ADD_LINK = """
    INSERT INTO link (src_kind, src, type, dst_kind, dst, stated_by,
        weight, confidence, context, source, created_at)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
    ON CONFLICT (src, type, dst, src_kind, dst_kind, stated_by) DO UPDATE SET
        weight = excluded.weight, confidence = excluded.confidence,
        context = excluded.context, source = excluded.source
"""
_SELECT_STATING = """
    SELECT w.value FROM carray(?) AS w WHERE EXISTS (SELECT 1 FROM item AS i WHERE i.id = w.value)
"""
# What a memory above the ceiling states stays.
_THIS_LINK = """
    FROM link WHERE src_kind = ? AND src = ? AND type = ? AND dst_kind = ? AND dst = ?
    AND ? >= coalesce((SELECT i.classification FROM item AS i WHERE i.id = stated_by
        ORDER BY i.rev DESC LIMIT 1), 0)
"""
_MERGED_HERE = "SELECT src FROM link WHERE dst = ? AND type = 'same_as' AND src_kind = 'entity'"
_IS_LOGGED = "SELECT count(*) FROM meta WHERE name = 'sync'"
_ADD_UNLOGGED = """
    INSERT OR IGNORE INTO unlogged (item) SELECT id FROM item WHERE id = ? LIMIT 1
"""
LINK_COLUMNS = """
    l.src_kind, l.src, l.dst_kind, l.dst, l.type, l.weight, l.confidence, l.context,
    l.source, l.stated_by, l.created_at
"""


_FOLLOWS = """
    SELECT l.src, l.dst FROM carray(?) AS w
    CROSS JOIN link AS l ON l.src = w.value AND l.type = 'follows' AND l.created_at <= ?
    UNION ALL
    SELECT l.src, l.dst FROM carray(?) AS w
    CROSS JOIN link AS l ON l.dst = w.value AND l.type = 'follows' AND l.created_at <= ?
"""


_SELECT_UNLINKED = """
    SELECT e.item, e.detail FROM carray(?) AS w
    CROSS JOIN event AS e ON e.item = w.value AND e.kind = 'unlinked'
    WHERE NOT EXISTS (
        SELECT 1 FROM event AS r WHERE r.item = e.item AND r.seq > e.seq
        AND (r.kind = 'revised' OR r.kind = 'linked' AND r.detail = e.detail))
"""


def link_queries(
    ids: Sequence[str], types: Sequence[str], as_of: datetime | None, *, incoming: bool
) -> list[tuple[str, Row]]:
    """Return the queries for the links that begin, or also those that end, at some nodes."""
    of_type = "AND l.type IN (SELECT value FROM json_each(?))" if types else ""
    known_then = "" if as_of is None else "AND l.created_at <= ?"
    values = (
        as_table(tuple(dict.fromkeys(ids))),
        *([json.dumps(list(types))] if types else ()),
        *(() if as_of is None else (to_ms(as_of),)),
    )
    sql = f"SELECT {LINK_COLUMNS} FROM carray(?) AS w CROSS JOIN link AS l ON l."
    ends = ("src", "dst") if incoming else ("src",)
    return [(f"{sql}{end} = w.value {of_type} {known_then}", values) for end in ends]


def unlinked_query(ids: Sequence[str]) -> tuple[str, Row]:
    """Return the query for the links from some items that were removed since their last change."""
    return _SELECT_UNLINKED, (as_table(tuple(dict.fromkeys(ids))),)


def _one_per_link(rows: Iterable[Row]) -> list[Row]:
    """Combine rows of LINK_COLUMNS: a link is its latest statement, as old as the first."""
    found: dict[Row, list[Row]] = {}
    for row in rows:
        found.setdefault(row[:5], []).append(row)
    return [
        group[0] if len(group) == 1 else (*max(group, key=_AGE)[:-1], min(group, key=_AGE)[-1])
        for group in found.values()
    ]


_LINK_ORDER = itemgetter(1, 4, 3, 0, 2)  # by both ends and the type
_AGE = itemgetter(-1, -2)  # of a row of LINK_COLUMNS; of two of the same time the memories decide


def add_links(db: Database, links: Sequence[Link], now: datetime) -> None:
    """Add links; the same ends and type again overwrite all but the creation time.

    A link between entities is kept for each memory that states it, by its context or source.
    """
    memories = _stating_memories(db, links)
    rows: dict[tuple[str, ...], Row] = {}
    for link in links:
        ends = (link.src.kind, link.src.id, link.type, link.dst.kind, link.dst.id)
        key = (*ends, _stated_by(link, memories))
        created = rows[key][-1] if key in rows else to_ms(link.created_at or now)
        rows[key] = (link.weight, link.confidence, link.context, link.source, created)
    db.executemany(_ADD_LINK, [(*key, *values) for key, values in rows.items()])


def _stating_memories(db: Database, links: Iterable[Link]) -> frozenset[str]:
    """Return the memories that links between entities name as their context or source."""
    between = [link for link in links if link.src.kind == link.dst.kind == "entity"]
    named = {name for link in between for name in (link.context, link.source) if name}
    rows = select(db, _SELECT_STATING, (as_table(tuple(named)),)) if named else []
    return frozenset(name for (name,) in rows)


def _stated_by(link: Link, memories: frozenset[str]) -> str:
    if link.src.kind == link.dst.kind == "entity":
        return next((name for name in (link.context, link.source) if name in memories), "") or ""
    return ""


def to_link(row: Row) -> Link:
    """Convert a row of LINK_COLUMNS to a link."""
    src_kind, src, dst_kind, dst, kind, weight, confidence, context, source, _, created_at = row
    return Link(
        src=Node(src_kind, src),
        dst=Node(dst_kind, dst),
        type=kind,
        weight=weight,
        confidence=confidence,
        context=context,
        source=source,
        created_at=from_ms(created_at),
    )


# An entity is at the end of a link from every memory that mentions it; the index on
# (dst, type) covers this query, so those are skipped without a look-up. Of the statements of
# an edge the first tells its age, the latest the rest.
_EDGES_OF_ENTITY = f"""
    SELECT {LINK_COLUMNS.replace("l.created_at", "g.first")} FROM (
        SELECT e.src, e.type, e.dst, min(e.created_at) AS first FROM (
            SELECT src, type, dst, created_at FROM link
            WHERE src = ?1 AND src_kind = 'entity' AND dst_kind = 'entity' AND created_at <= ?2
            UNION ALL
            SELECT src, type, dst, created_at FROM link
            WHERE dst = ?1 AND src_kind = 'entity' AND dst_kind = 'entity' AND created_at <= ?2
                AND src <> ?1
        ) AS e
        GROUP BY e.src, e.type, e.dst ORDER BY first DESC, e.src, e.type, e.dst LIMIT ?3
    ) AS g
    CROSS JOIN link AS l ON l.src = g.src AND l.type = g.type AND l.dst = g.dst
        AND l.src_kind = 'entity' AND l.dst_kind = 'entity' AND l.stated_by = (
            SELECT s.stated_by FROM link AS s
            WHERE s.src = g.src AND s.type = g.type AND s.dst = g.dst
            AND s.src_kind = 'entity' AND s.dst_kind = 'entity' AND s.created_at <= ?2
            ORDER BY s.created_at DESC, s.stated_by DESC LIMIT 1)
    ORDER BY g.first DESC, l.src, l.type, l.dst
"""


class SqlGraph:
    """The graph of a space: `GraphStore` in SQLite.

    What only some questions need is imported where it is used: start-up time of a recall.
    """

    def __init__(self, connections: Connections, cache: StateCache) -> None:
        self._connections = connections
        self._cache = cache

    def find_entities(
        self,
        texts: tuple[str, ...],
        limit: int = 8,
        *,
        as_of: datetime | None = None,
        max_classification: int = HIGHEST,
    ) -> list[list[Entity]]:
        from bethink.store.sql.links import find_entities  # see above

        with self._connections.read_transaction() as db:
            return find_entities(db, texts, limit, to_ms_or_none(as_of), max_classification)

    def entities(self, *, prefix: str = "", limit: int = 100, offset: int = 0) -> list[Entity]:
        from bethink.store.sql.links import list_entities  # see above

        with self._connections.read_transaction() as db:
            return list_entities(db, prefix, limit, offset)

    def list_entities(self, listing: EntityListing, now: datetime) -> list[Entity]:
        from bethink.store.sql.usage import rank_entities  # see above

        with self._connections.read_transaction() as db:
            return rank_entities(db, listing, now)

    def near_entities(
        self, vector: Vector, model: str, limit: int, *, as_of: datetime | None = None
    ) -> list[ScoredEntity]:
        from bethink.store.sql.entities import near_entities  # see above

        with self._connections.read_transaction() as db:
            at = to_ms_or_none(as_of)
            return near_entities(db, self._cache, vector, model, limit, at)

    def entities_with(
        self, words: Sequence[str], limit: int, *, as_of: datetime | None = None
    ) -> list[ScoredEntity]:
        from bethink.store.sql.entities import entities_with  # see above

        with self._connections.read_transaction() as db:
            return entities_with(db, self._cache, words, limit, to_ms_or_none(as_of))

    def merge_entities(self, kept: str, gone: str, *, actor: str, now: datetime) -> None:
        from bethink.store.sql.entities import merge_entities  # see above

        with self._connections.write_transaction() as db:
            merge_entities(db, kept, gone, to_ms(now))
            history.write_line(db, "merged", "two entities", actor=actor, now=now)

    def split_entities(self, kept: str, gone: str, *, actor: str, now: datetime) -> None:
        from bethink.store.sql.entities import split_entities  # see above

        with self._connections.write_transaction() as db:
            split_entities(db, kept, gone)
            history.write_line(db, "split", "two entities", actor=actor, now=now)

    def links_of(
        self,
        ids: Sequence[str],
        types: Sequence[str] = (),
        *,
        incoming: bool = True,
        as_of: datetime | None = None,
    ) -> list[Link]:
        with self._connections.read_transaction() as db:
            if not ids:
                return []
            queries = link_queries(ids, types, as_of, incoming=incoming)
            read_ahead(db, *queries)
            rows = {row for query in queries for row in select(db, *query)}
            return [to_link(row) for row in _one_per_link(sorted(rows, key=_LINK_ORDER))]

    def unlinked(self, ids: Sequence[str]) -> set[tuple[str, str]]:
        with self._connections.read_transaction() as db:
            rows = select(db, *unlinked_query(ids)) if ids else []
            told = ((item, *said.partition(" ")) for item, said in rows)
            kinds = (*UPDATE_LINKS, NO_UPDATE)
            return {(item, other) for item, kind, _, other in told if kind in kinds}

    def follows(
        self, ids: Sequence[str], *, as_of: datetime | None = None
    ) -> list[tuple[str, str]]:
        with self._connections.read_transaction() as db:
            if not ids:
                return []
            requested = as_table(tuple(dict.fromkeys(ids)))
            until = END_OF_TIME if as_of is None else to_ms(as_of)
            return sorted(set(select(db, _FOLLOWS, (requested, until) * 2)))

    def edges(self, entities: Sequence[str], each: int, until: datetime) -> dict[str, list[Link]]:
        with self._connections.read_transaction() as db:
            bounds = (to_ms(until), max(each, 0))
            asked = {entity: (_EDGES_OF_ENTITY, (entity, *bounds)) for entity in entities}
            read_ahead(db, *asked.values())
            return {entity: [*map(to_link, select(db, *one))] for entity, one in asked.items()}

    def add_links(
        self, links: Sequence[Link], *, actor: str = "", now: datetime | None = None
    ) -> None:
        at = now or datetime.now(UTC)
        with self._connections.write_transaction() as db:
            add_links(db, links, at)
            _note_unlogged(db, links)
            if actor:
                history.write_journal(db, map(_link_line, links), actor=actor, at=to_ms(at))

    def remove_links(self, links: Sequence[Link], *, actor: str, now: datetime) -> int:
        with self._connections.write_transaction() as db:
            removed = [one for one in links if _remove_link(db, one, self._connections.ceiling)]
            lines = [_link_line(link)._replace(kind="unlinked") for link in removed]
            history.write_journal(db, lines, actor=actor, at=to_ms(now))
            return len(removed)

    def siblings(
        self, ids: Sequence[str], *, most: int, min_confidence: float, as_of: datetime | None = None
    ) -> SharedEntities:
        with self._connections.read_transaction() as db:
            if not ids:
                return SharedEntities()
            values: Row = (as_table(tuple(dict.fromkeys(ids))), min_confidence)
            mention = IS_MENTION
            sql = _ENTITIES_OF_ITEMS.format(count="e.mentions", mention=mention)
            if as_of is not None:
                # Mentioned then or now: the caller checks the entities of its revisions.
                mention, values = MENTION_LINK, (to_ms(as_of), *values)
                known = _ENTITIES_OF_ITEMS.format(count=MENTION_COUNT, mention=mention)
                sql = f"{AS_OF_CTE} {known}"
            rows = select(db, sql, values)
            hubs = sorted({entity for _, entity, mentions in rows if mentions > most})
            specific = sorted({entity for _, entity, mentions in rows if mentions <= most})
            if not specific:
                return SharedEntities((), tuple(hubs))
            mentions: dict[str, list[tuple[str, float]]] = {}
            sql = _ITEMS_OF_ENTITIES.format(mention=mention)
            found_by = (as_table(tuple(specific)), min_confidence)
            for entity, item, confidence in select(db, sql, found_by):
                mentions.setdefault(entity, []).append((item, confidence))
            found = tuple(
                Sibling(source_id, entity, item, confidence)
                for source_id, entity, _ in rows
                for item, confidence in mentions.get(entity, ())
                if item != source_id
            )
            return SharedEntities(found, tuple(hubs))


def _note_unlogged(db: Database, links: Sequence[Link]) -> None:
    """Note whose links have changed, where a log of operations is kept: not all are journalled."""
    if db.execute(_IS_LOGGED).get:
        ends = ([link.src.id, link.dst.id, link.context, link.source] for link in links)
        db.executemany(_ADD_UNLOGGED, [(end,) for found in ends for end in found if end])


def _remove_link(db: Database, link: Link, ceiling: int) -> bool:
    """Remove a link; of entities also those that merges have copied it from, or would again."""
    ends = [[link.src.id], [link.dst.id]]
    for merged in ends if link.src.kind == "entity" else ():
        for entity in merged:  # it grows; what is damaged may lead back
            here = (row[0] for row in select(db, _MERGED_HERE, (entity,)))
            merged += [one for one in here if one not in merged]
    found: list[Row] = []
    for src, dst in product(*ends):
        key = (link.src.kind, src, link.type, link.dst.kind, dst, ceiling)
        found += select(db, f"SELECT stated_by {_THIS_LINK}", key)
        db.execute(f"DELETE {_THIS_LINK}", key)
    if db.execute(_IS_LOGGED).get:
        db.executemany(_ADD_UNLOGGED, found)
    return bool(found)


def _link_line(link: Link) -> history.JournalLine:
    if link.src.kind == "entity":
        # The journal outlives an erase, and a relation between entities is content.
        return history.JournalLine("linked", None, "two entities")
    return history.JournalLine("linked", link.src.id, f"{link.type} {link.dst.id}")
