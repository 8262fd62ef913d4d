"""The tables as those see them who see nothing above a classification, or nothing untrusted.

What is hidden is to them as if it were not stored.

Views of the same names hide the tables from every statement of a transaction, so
no query can forget the ceiling. What adds up over memories (word counts, mentions) is
corrected by what the hidden ones add, which is counted when the store has changed. Writes
use the connections without a ceiling; they take the ceiling as an argument.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from itertools import chain
from sys import intern

import apsw

from bethink.store.sql.connection import Connections, Database, Row, select
from bethink.store.sql.dialect import part
from bethink.store.sql.search.terms import MAX_TERM_LENGTH, tokenizer

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
        + instr(e.detail, '"judges"') + instr(e.detail, '"links"') = 0 THEN FALSE
    ELSE NOT EXISTS (SELECT 1 FROM main.tombstone AS g WHERE g.id IN (
            SELECT t.id FROM main.tombstone AS t CROSS JOIN main.event AS x ON x.item = t.id
            AND x.kind = 'erased' AND substr(x.detail, 1, 15) = 'classification '
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
CREATE TEMP VIEW file_edit AS SELECT * FROM main.file_edit
    WHERE item IS NULL OR item NOT IN (SELECT id FROM temp.hidden_item);
CREATE TEMP VIEW thread AS SELECT * FROM main.thread AS t WHERE t.classification <= {ceiling}
    AND EXISTS (SELECT 1 FROM main.thread_member AS m
    WHERE m.thread = t.id AND m.classification = t.classification
        AND m.item NOT IN (SELECT id FROM temp.hidden_item));
CREATE TEMP VIEW event AS SELECT * FROM main.event AS e
    WHERE item NOT IN (SELECT id FROM temp.hidden_item)
    AND (substr(item, 1, 3) = 'run' AND {run_line}
        OR EXISTS (SELECT 1 FROM main.item AS i WHERE i.id = e.item)
        OR EXISTS (SELECT 1 FROM main.event AS x WHERE x.item = e.item AND x.kind = 'erased'
            AND {ceiling} >= iif(substr(x.detail, 1, 15) = 'classification ',
                CAST(substr(x.detail, 16) AS INTEGER), 1)))
    AND NOT EXISTS (SELECT 1 FROM temp.hidden_item AS h WHERE instr(e.detail, h.id) > 0)
    AND NOT (e.kind IN ('linked', 'unlinked') AND EXISTS (SELECT 1 FROM main.event AS x
        WHERE x.item = substr(e.detail, instr(e.detail, ' ') + 1) AND x.kind = 'erased'
            AND substr(x.detail, 1, 15) = 'classification '
            AND CAST(substr(x.detail, 16) AS INTEGER) > {ceiling}));
CREATE TEMP VIEW tombstone AS SELECT * FROM main.tombstone WHERE FALSE;
"""
# Tables without the rows that name what is hidden: by a column, which is in a hidden table.
_WITHOUT_HIDDEN = (
    ("sketch vector", "rid", "rid FROM temp.hidden_row"),
    ("usage usage_day status_change idempotency", "id", "id FROM temp.hidden_item"),
    ("entity_vector", "entity", "id FROM temp.hidden_only"),
)
_VIEWS += "".join(
    f"CREATE TEMP VIEW {table} AS SELECT * FROM main.{table} WHERE {column} NOT IN (SELECT {by});\n"
    for tables, column, by in _WITHOUT_HIDDEN
    for table in tables.split()
)
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


# The index of classifications has those above 1, that of untrusted memories those below 1.
_FIND_ROWS = "SELECT rid FROM main.item WHERE classification > {above} AND classification > ?"
_FIND_UNTRUSTED = "SELECT rid FROM main.item WHERE trust < 1"
_FIND_ITEMS = """
    SELECT i.id FROM main.item AS i WHERE i.rid IN (SELECT value FROM json_each(?))
    AND i.rev = (SELECT max(rev) FROM main.item WHERE id = i.id)
"""
_FIND_EARLIER = "SELECT i.rid FROM main.item AS i WHERE i.id IN (SELECT value FROM json_each(?))"
_DESCRIBE_ROWS = """
    SELECT i.rid, i.content_hash, i.length, i.text <> '' FROM main.item AS i
    WHERE i.rid IN (SELECT value FROM json_each(?))
"""
_SELECT_TEXTS = """
    SELECT i.rid, i.text, i.about, i.entities FROM main.item AS i
    WHERE i.rid IN (SELECT value FROM json_each(?))
"""
# The mentions of an entity are counted by the live memories alone.
_COUNT_MENTIONS = """
    SELECT l.dst, count(CASE WHEN l.type = 'mentions' THEN i.rid END) FROM json_each(?) AS h
    CROSS JOIN main.link AS l ON l.src = h.value
        AND l.type IN ('mentions', 'mentioned') AND l.src_kind = 'item' AND l.dst_kind = 'entity'
    LEFT JOIN main.item AS i ON i.id = l.src AND i.live_to IS NULL
    GROUP BY l.dst
"""
_FIND_ONLY = """
    SELECT h.value FROM json_each(?) AS h WHERE NOT EXISTS (
        SELECT 1 FROM main.link AS l WHERE l.dst = h.value AND l.type IN ('mentions', 'mentioned')
        AND l.src_kind = 'item' AND l.src NOT IN (SELECT value FROM json_each(?))
        AND EXISTS (SELECT 1 FROM main.item AS r WHERE r.id = l.src
            AND r.classification <= {ceiling} AND r.trust >= {trust}
            AND instr(r.entities, json_quote(h.value)) > 0))
"""
# What a view hides: the tables that its statements name, and their columns.
HIDDEN_TABLES = {
    "hidden_row": "rid bigint",
    "hidden_item": "id text",
    "hidden_term": "t text, n bigint",
    "hidden_entity": "id text, mentions bigint",
    "hidden_only": "id text",
    "hidden_sum": "documents bigint, length bigint",
}
Hidden = dict[str, Sequence[Sequence[int | str]]]  # the columns of what a view hides, by table
# Of revisions, by row and content: their index terms, and the entities they mention.
KnownWords = dict[tuple[int, str], tuple[tuple[str, ...], tuple[str, ...]]]


def find_hidden(db: Database, ceiling: int, *, trusted: bool, words: KnownWords) -> Hidden:
    """Return what is above the ceiling, or untrusted; its words are kept for the next time."""
    found = select(db, _FIND_ROWS.format(above=min(int(ceiling), 1)), (int(ceiling),))
    rows = {rid for (rid,) in (*found, *(select(db, _FIND_UNTRUSTED) if trusted else ()))}
    items = [item for (item,) in _select_of(db, _FIND_ITEMS, sorted(rows))]
    rows |= {rid for (rid,) in _select_of(db, _FIND_EARLIER, items)}
    described = _select_of(db, _DESCRIBE_ROWS, sorted(rows))
    spoken = _read_words(db, [(rid, hashed) for rid, hashed, *_ in described], words)
    terms = Counter(chain.from_iterable(found for found, _ in spoken.values()))
    mentions = dict.fromkeys(chain.from_iterable(named for _, named in spoken.values()), 0)
    mentions.update(_select_of(db, _COUNT_MENTIONS, items))
    only = _FIND_ONLY.format(ceiling=int(ceiling), trust=int(trusted))
    lengths = [length for _, _, length, has_text in described if has_text]
    return {
        "hidden_row": (sorted(rows),),
        "hidden_item": (items,),
        "hidden_term": (list(terms), list(terms.values())),
        "hidden_entity": (list(mentions), list(mentions.values())),
        "hidden_only": ([row[0] for row in _select_of(db, only, list(mentions), items)],),
        "hidden_sum": ([len(lengths)], [sum(lengths)]),
    }


def _select_of(db: Database, sql: str, *lists: Sequence[int | str]) -> list[Row]:
    """Return the rows of a query of lists; none where the first is empty."""
    return select(db, sql, tuple(map(json.dumps, lists))) if lists[0] else []


def _read_words(db: Database, rows: Sequence[tuple[int, str]], known: KnownWords) -> KnownWords:
    """Return the terms and entities of revisions, and keep them; others are forgotten."""
    tokens, found = tokenizer(db), {row: known[row] for row in rows if row in known}
    new = {row[0]: row for row in rows if row not in found}
    for rid, text, about, entities in _select_of(db, _SELECT_TEXTS, list(new)):
        terms = {*tokens(text), *tokens(about)}
        # There may be very many: each term is kept once.
        kept = tuple(intern(term) for term in terms if len(term) <= MAX_TERM_LENGTH)
        found[new[rid]] = (kept, tuple(json.loads(entities)))
    known.clear()
    known.update(found)
    return found


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
