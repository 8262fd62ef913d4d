"""Statements of the shared modules that PostgreSQL words in another way.

Most are translated by rule (`translate`). Here are parts that no rule covers, and statements
written anew. They are taken from the modules by name: a change there cannot pass unseen.
"""

from __future__ import annotations

from functools import cache

from bethink.store.sql import activity, entities, history, items, sql_functions, usage
from bethink.store.sql.search import scope, vector_index

_DECAY_AS_OF = """
    (SELECT max(0.0, round(coalesce((was.state ->> 1)::float8, 1.0) - max(0.0,
        coalesce((SELECT t.total FROM tick AS t WHERE t.at <= m.at ORDER BY t.at DESC LIMIT 1), 0.0)
        - coalesce((SELECT t.total FROM tick AS t
            WHERE t.at < coalesce((was.state ->> 2)::bigint, i.stored_at)
            ORDER BY t.at DESC LIMIT 1), 0.0)), 9))
    FROM m CROSS JOIN (SELECT (
        SELECT r.value FROM jsonb_array_elements(u.regained::jsonb) WITH ORDINALITY
            AS r (value, key)
        WHERE (r.value ->> 0)::bigint <= m.at ORDER BY r.key DESC LIMIT 1) AS state FROM m) AS was)
"""
_ENTITY_GROUP = (
    "GROUP BY e.id, e.kind, e.name, e.mentions, e.momentum, e.momentum_at, e.last_seen_at"
)

# Parts of statements, and what stands in their place.
PARTS: tuple[tuple[str, str], ...] = (
    (
        scope._OF_USER,
        (
            "(json_typeof(i.metadata::json -> 'user_id') = 'string'"
            " AND i.metadata::json ->> 'user_id' IN (SELECT value FROM json_each(?))) IS TRUE"
        ),
    ),
    (
        sql_functions._IN_BANDS_IF_USED,
        "false END".join(sql_functions._IN_BANDS_IF_USED.rsplit("0 END", 1)),
    ),
    (sql_functions.DECAY_AS_OF, _DECAY_AS_OF),
    (
        history.IDS_WITH_STATUS_AT,
        (
            "SELECT id FROM (SELECT DISTINCT ON (id) id, status FROM status_change WHERE at <= ?"
            " ORDER BY id, at DESC) AS latest WHERE status = ?"
        ),
    ),
    ("i.status = 'superseded' AND i.pinned)", "i.status = 'superseded' AND i.pinned = 1)"),
    ("i.level || '' IN", "i.level IN"),
    ("(i.pinned OR ", "(i.pinned = 1 OR "),
    ("value = value + 1", "value = CAST(CAST(meta.value AS INTEGER) + 1 AS TEXT)"),
    ("+ excluded.value AS TEXT", "+ CAST(excluded.value AS INTEGER) AS TEXT"),
    (
        "SELECT CAST(value AS INTEGER) FROM meta WHERE name = 'packed'",
        "SELECT CAST(split_part(value, ':', 1) AS INTEGER) FROM meta WHERE name = 'packed'",
    ),
    ("typeof(i.live_from) = 'integer'", "true"),
    ("CAST(value - (", "CAST(CAST(value AS INTEGER) - ("),
    (
        "date(at / 1000, 'unixepoch')",
        "to_char(to_timestamp(at / 1000) AT TIME ZONE 'UTC', 'YYYY-MM-DD')",
    ),
    ("GROUP BY e.id ORDER BY found", f"{_ENTITY_GROUP} ORDER BY found"),
    ("GROUP BY i.rid ORDER BY count(*)", "GROUP BY i.rid, i.id ORDER BY count(*)"),
    ("GROUP BY m.mid ORDER BY", "GROUP BY m.mid, m.name ORDER BY"),
    ("AND instr(?1, ':')", "AND instr(?1, ':') > 0"),
    # Of few rows each is looked up: a join would begin with all that mention the entity.
    (
        "EXISTS (SELECT 1 FROM link AS l WHERE l.src = i.id AND l.type = 'mentions'",
        "(SELECT count(*) > 0 FROM link AS l WHERE l.src = i.id AND l.type = 'mentions'",
    ),
    # A function of a column is looked up in no index behind row-level security.
    ("substr(e.id, instr(e.id, ':') + 1) = n.value", "e.key = n.value"),
    ("VIEW entity AS SELECT e.id,", "VIEW entity AS SELECT e.id, e.key,"),
    ("GROUP BY i.id\n", "GROUP BY i.id, i.status, i.live_from\n"),
    ("OR max(key = rid) = 0", "OR NOT bool_or(key = rid)"),
    ("vocabulary MATCH ? LIMIT", "vocabulary MATCH ? ORDER BY v.rowid LIMIT"),
    ("SELECT DISTINCT id FROM item\n    WHERE substr", "SELECT id FROM item\n    WHERE substr"),
    ("ORDER BY id <> ?1, id LIMIT", "GROUP BY id ORDER BY id <> ?1, id LIMIT"),
    # A column of the result cannot be part of a condition or an expression.
    ("seen >= ?", "(e.mentions - coalesce(h.times, 0)) >= ?"),
    ("(seen > 0 OR", "((e.mentions - coalesce(h.times, 0)) > 0 OR"),
)

_STAMPS = "usage.stamps::jsonb"
_REGAINED = "coalesce(usage.regained, '[]')::jsonb"
# Not by jsonb_build_array: a distributed server takes only functions that are IMMUTABLE.
_ENTRY = (
    "('[[' || (?4::bigint)::text || ',' || (?2::float8)::text || ','"
    " || coalesce((?3::bigint)::text, 'null') || ']]')::jsonb"
)
_ZEROS = "decode(repeat('00', {}), 'hex')"
_SLOTS = vector_index.SLOTS_PER_CHUNK
_CHUNK_BITS = f"""
    SELECT c.{{first}},
        coalesce(s.bits, ''::bytea) || {_ZEROS.format(f"({_SLOTS} - s.used) * s.width")},
        coalesce(s.keys, ''::bytea) || {_ZEROS.format(f"({_SLOTS} - s.used) * 8")}
    FROM bethink.chunk AS c CROSS JOIN LATERAL (
        SELECT string_agg(p.bits, ''::bytea ORDER BY p.place) AS bits,
            string_agg(int8send(p.key), ''::bytea ORDER BY p.place) AS keys,
            count(*)::int AS used, coalesce(max(length(p.bits)), 0) AS width
        FROM bethink.chunk_slot AS p WHERE p.space_id = :space AND p.cid = c.cid) AS s
    WHERE c.space_id = :space AND c.{{by}} = ?1
"""
# An upsert whose condition asks another table, in two: no distributed server takes it as one.
TELL_EDIT_APART = """
    UPDATE bethink.file_edit SET item = ?7 WHERE space_id = :space
    AND edit_hash = md5(md5(?1) || md5(?2) || (?3::bigint)::text || md5(?4) || md5(?5) || md5(?6))
    AND ?8::bigint < coalesce((SELECT i.classification FROM bethink.item AS i
        WHERE i.space_id = :space AND i.id = file_edit.item ORDER BY i.rev DESC LIMIT 1), 0)
"""
INSERT_EDIT = activity.INSERT_EDIT.split("DO UPDATE", maxsplit=1)[0] + "DO NOTHING"
_LINK_OF = "src_kind = 'item' AND dst_kind = 'entity'"


@cache
def rewritten() -> dict[str, str]:
    """Return statements written anew, by their original.

    ``?1`` is the first value, ``:space`` the space's id; nothing else is translated.
    """
    return {
        activity._COUNT_USE: f"""
            INSERT INTO bethink.usage (space_id, id, recalls, last_at, stamps)
            VALUES (:space, ?1, 1, ?2::bigint, jsonb_build_array(?2::bigint)::text)
            ON CONFLICT (space_id, id) DO UPDATE SET recalls = usage.recalls + 1,
                last_at = greatest(coalesce(usage.last_at, ?2), ?2),
                stamps = (CASE WHEN jsonb_array_length({_STAMPS}) >= 20 THEN {_STAMPS} - 0
                    ELSE {_STAMPS} END || (?2::bigint)::text::jsonb)::text""",
        usage._SET_DECAY: f"""
            INSERT INTO bethink.usage (space_id, id, decay, decay_at, regained)
            VALUES (:space, ?1, ?2::float8, ?3::bigint, ({_ENTRY})::text)
            ON CONFLICT (space_id, id) DO UPDATE SET decay = ?2, decay_at = ?3,
                regained = (CASE WHEN jsonb_array_length({_REGAINED}) >= 20 THEN {_REGAINED} - 0
                    ELSE {_REGAINED} END || {_ENTRY})::text""",
        items.ROWS_OF_BANDS: """
            SELECT w.band, s.rid
            FROM (SELECT value::bigint AS band FROM jsonb_array_elements_text(?1::jsonb)) AS w
            CROSS JOIN LATERAL (
                SELECT n.rid FROM bethink.sketch AS n
                WHERE n.space_id = :space AND n.band = w.band ORDER BY n.rid DESC LIMIT 64) AS s""",
        "SELECT version, bits, rids FROM chunk WHERE cid = ?": _CHUNK_BITS.format(
            first="version", by="cid"
        ),
        "SELECT number, bits, rids FROM chunk WHERE mid = ?": _CHUNK_BITS.format(
            first="number", by="mid"
        ),
    }


@cache
def preceded() -> dict[str, tuple[str, str]]:
    """Return updates that replace what is in their way: what to delete first, and the update."""
    same = "o.src = link.src AND o.dst = link.dst AND o.src_kind = 'item' AND o.dst_kind = 'entity'"
    found = {}
    for sql, kind, condition in (
        (_mark_past_mention(), "mentioned", "o.src = ?1 AND o.type = 'mentions' AND o.dst = ?2"),
        (entities._MARK_MENTIONS, "mentioned", "o.type = 'mentions' AND o.dst = ?1"),
        (
            entities._UNMARK_MENTIONS,
            "mentions",
            "o.type = 'mentioned' AND o.context = 'same_as' AND o.dst = ?1",
        ),
    ):
        first = (
            f"DELETE FROM link WHERE type = '{kind}' AND {_LINK_OF}"
            f" AND EXISTS (SELECT 1 FROM link AS o WHERE {same} AND {condition})"
        )
        found[sql] = (first, sql.replace("UPDATE OR REPLACE", "UPDATE"))
    return found


def _mark_past_mention() -> str:
    from bethink.store.sql import revisions  # it imports much

    return revisions._MARK_PAST_MENTION
