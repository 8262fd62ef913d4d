"""The tables as those see them who see nothing above a classification, or nothing untrusted.

What is hidden is to them as if it were not stored.

Views of the same names hide the tables from every statement of a transaction, so
no query can forget the ceiling. What adds up over memories (word counts, mentions) is
corrected by what the hidden ones add, which is counted when the store has changed. Writes
use the connections without a ceiling; they take the ceiling as an argument.
"""

from __future__ import annotations

import apsw

from bethink.store.sql.connection import Connections, Database
from bethink.store.sql.dialect import part

# Whether a revision, `item AS i`, speaks of the entity that `link AS l` leads to: by its own
# list, or by that of an entity merged into it.
SPEAKS_OF_ENTITY = """
    l.type IN ('mentions', 'mentioned') AND l.src_kind = 'item' AND l.dst_kind = 'entity'
    AND (instr(i.entities, json_quote(l.dst)) > 0 OR substr(l.source, 1, 8) = 'same_as:'
        AND instr(i.entities, json_quote(substr(l.source, 9))) > 0)
"""
# Whether a line of a maintenance run, `event AS e`, tells of nothing above the ceiling. Such a
# line begins with the highest classification of what it names. Those of earlier versions do
# not: one that only counts may count anything, and what one names may be a secret erased since.
# Who asked for a run, or undid it, is told to those who see a line of it.
# As a list these secrets are looked up once, not for every line.
_RUN_LINE = """
    CASE WHEN substr(e.detail, 1, 9) = '{{"class":'
        THEN CAST(substr(e.detail, 10, 1) AS INTEGER) <= {ceiling}
    WHEN e.kind IN ('ran', 'run_undone') THEN EXISTS (SELECT 1 FROM main.event AS x
        WHERE x.item = e.detail AND substr(x.detail, 1, 9) = '{{"class":'
        AND CAST(substr(x.detail, 10, 1) AS INTEGER) <= {ceiling})
    WHEN e.kind = 'maintained' AND instr(e.detail, '"makes') + instr(e.detail, '"ends"')
        + instr(e.detail, '"judges"') + instr(e.detail, '"links"') = 0 THEN 0 = 1
    ELSE NOT EXISTS (SELECT 1 FROM main.tombstone AS g WHERE g.id IN (
            SELECT t.id FROM main.tombstone AS t CROSS JOIN main.event AS x ON x.item = t.id
            AND x.kind = 'erased' AND x.detail GLOB 'classification *'
            AND CAST(substr(x.detail, 16) AS INTEGER) > {ceiling})
        AND instr(e.detail, g.id) > 0) END
"""
# A memory is hidden by its last revision; an earlier one also by its own classification.
_ENTITY_VIEW = part(
    "CREATE TEMP VIEW entity AS SELECT e.id,",
    postgres="CREATE TEMP VIEW entity AS SELECT e.id, e.key,",
)
_VIEWS = """
CREATE TEMP VIEW item AS SELECT * FROM main.item
    WHERE classification <= {ceiling} AND trust >= {trust}
    AND id NOT IN (SELECT id FROM temp.hidden_item);
CREATE TEMP VIEW link AS SELECT * FROM main.link
    WHERE (src_kind <> 'item' OR src NOT IN (SELECT id FROM temp.hidden_item))
    AND (dst_kind <> 'item' OR dst NOT IN (SELECT id FROM temp.hidden_item))
    AND (src_kind <> 'entity' OR src NOT IN (SELECT id FROM temp.hidden_only))
    AND (dst_kind <> 'entity' OR dst NOT IN (SELECT id FROM temp.hidden_only))
    AND stated_by NOT IN (SELECT id FROM temp.hidden_item)
    AND (type <> 'mentioned' OR dst NOT IN (SELECT id FROM temp.hidden_entity) OR EXISTS (
        SELECT 1 FROM main.item AS r WHERE r.id = src AND r.classification <= {ceiling}
        AND r.trust >= {trust} AND instr(r.entities, json_quote(dst)) > 0));
{entity_view} e.kind, e.name,
    e.mentions - coalesce((SELECT h.mentions FROM temp.hidden_entity AS h WHERE h.id = e.id), 0)
        AS mentions,
    0.0 AS momentum, NULL AS momentum_at,
    CASE WHEN e.id IN (SELECT id FROM temp.hidden_entity) THEN (
        SELECT min(i.live_from) FROM link AS l JOIN item AS i ON i.id = l.src
        WHERE l.dst = e.id AND {speaks})
    ELSE e.created_at END AS created_at,
    CASE WHEN e.id IN (SELECT id FROM temp.hidden_entity) THEN (
        SELECT max(i.live_from) FROM link AS l JOIN item AS i ON i.id = l.src
        WHERE l.dst = e.id AND {speaks})
    ELSE e.last_seen_at END AS last_seen_at
    FROM main.entity AS e WHERE e.id NOT IN (SELECT id FROM temp.hidden_only);
CREATE TEMP VIEW alias AS SELECT * FROM main.alias
    WHERE classification <= {ceiling} AND entity NOT IN (SELECT id FROM temp.hidden_only);
CREATE TEMP VIEW entity_vector AS SELECT * FROM main.entity_vector
    WHERE entity NOT IN (SELECT id FROM temp.hidden_only);
CREATE TEMP VIEW term AS SELECT tid, t,
    df - coalesce((SELECT h.n FROM temp.hidden_term AS h WHERE h.t = main.term.t), 0) AS df
    FROM main.term
    WHERE df > coalesce((SELECT h.n FROM temp.hidden_term AS h WHERE h.t = main.term.t), 0);
CREATE TEMP VIEW meta AS SELECT name, CASE name
    WHEN 'documents'
        THEN CAST(CAST(value AS INTEGER) - (SELECT documents FROM temp.hidden_sum) AS TEXT)
    WHEN 'total_length'
        THEN CAST(CAST(value AS INTEGER) - (SELECT length FROM temp.hidden_sum) AS TEXT)
    ELSE value END AS value FROM main.meta;
CREATE TEMP VIEW sketch AS SELECT * FROM main.sketch
    WHERE rid NOT IN (SELECT rid FROM temp.hidden_row);
CREATE TEMP VIEW vector AS SELECT * FROM main.vector
    WHERE rid NOT IN (SELECT rid FROM temp.hidden_row);
CREATE TEMP VIEW signature AS SELECT * FROM main.signature
    WHERE rid NOT IN (SELECT rid FROM temp.hidden_row);
CREATE TEMP VIEW usage AS SELECT * FROM main.usage
    WHERE id NOT IN (SELECT id FROM temp.hidden_item);
CREATE TEMP VIEW usage_day AS SELECT * FROM main.usage_day
    WHERE id NOT IN (SELECT id FROM temp.hidden_item);
CREATE TEMP VIEW status_change AS SELECT * FROM main.status_change
    WHERE id NOT IN (SELECT id FROM temp.hidden_item);
CREATE TEMP VIEW idempotency AS SELECT * FROM main.idempotency
    WHERE id NOT IN (SELECT id FROM temp.hidden_item);
CREATE TEMP VIEW file_edit AS SELECT * FROM main.file_edit
    WHERE item IS NULL OR item NOT IN (SELECT id FROM temp.hidden_item);
CREATE TEMP VIEW thread AS SELECT * FROM main.thread AS t WHERE t.classification <= {ceiling}
    AND EXISTS (SELECT 1 FROM main.thread_member AS m
    WHERE m.thread = t.id AND m.classification = t.classification
        AND m.item NOT IN (SELECT id FROM temp.hidden_item));
CREATE TEMP VIEW event AS SELECT * FROM main.event AS e
    WHERE item NOT IN (SELECT id FROM temp.hidden_item)
    AND (item GLOB 'run*' AND {run_line}
        OR EXISTS (SELECT 1 FROM main.item AS i WHERE i.id = e.item)
        OR EXISTS (SELECT 1 FROM main.event AS x WHERE x.item = e.item AND x.kind = 'erased'
            AND {ceiling} >= iif(
                x.detail GLOB 'classification *', CAST(substr(x.detail, 16) AS INTEGER), 1)))
    AND NOT EXISTS (SELECT 1 FROM temp.hidden_item AS h WHERE instr(e.detail, h.id) > 0)
    AND NOT (e.kind IN ('linked', 'unlinked') AND EXISTS (SELECT 1 FROM main.event AS x
        WHERE x.item = substr(e.detail, instr(e.detail, ' ') + 1) AND x.kind = 'erased'
            AND x.detail GLOB 'classification *'
            AND CAST(substr(x.detail, 16) AS INTEGER) > {ceiling}));
CREATE TEMP VIEW tombstone AS SELECT * FROM main.tombstone WHERE 0;
"""
BELOW_CEILING = "SELECT 1 FROM sqlite_temp_schema WHERE name = 'hidden_row'"
ANY_HIDDEN = "SELECT EXISTS (SELECT 1 FROM temp.hidden_row)"


def views(ceiling: int, trust: int) -> str:
    """Return the SQL of the views below a classification, and from a trust on."""
    run_line = _RUN_LINE.format(ceiling=ceiling)
    return _VIEWS.format(
        ceiling=ceiling,
        trust=trust,
        speaks=SPEAKS_OF_ENTITY,
        run_line=run_line,
        entity_view=_ENTITY_VIEW,
    )


def has_untrusted(connections: Connections) -> bool:
    """Whether these connections show a memory of trust 0."""
    if connections.trusted:
        return False
    with connections.read_transaction() as db:
        try:
            return bool(db.execute("SELECT EXISTS (SELECT 1 FROM item WHERE trust < 1)").get)
        except apsw.CorruptError:
            return True  # what cannot be read may be


def is_below_ceiling(db: Database) -> bool:
    """Whether this connection hides what is above a ceiling."""
    return bool(db.execute(BELOW_CEILING).get)


def hides_rows(db: Database) -> bool:
    """Whether anything is above the ceiling of this connection."""
    return is_below_ceiling(db) and bool(db.execute(ANY_HIDDEN).get)
