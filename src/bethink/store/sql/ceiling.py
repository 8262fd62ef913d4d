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
from pathlib import Path
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
part(
    "CREATE TEMP VIEW entity AS SELECT e.id,",
    postgres="CREATE TEMP VIEW entity AS SELECT e.id, e.key,",
)
BELOW_CEILING = "SELECT 1 FROM sqlite_temp_schema WHERE name = 'hidden_row'"
ANY_HIDDEN = "SELECT EXISTS (SELECT 1 FROM temp.hidden_row)"


def views(ceiling: int, trust: int) -> str:
    """Return the SQL of the views below a classification, and from a trust on."""
    sql = Path(__file__).with_name("views.sql").read_text("utf-8")
    for name, value in ((":ceiling", ceiling), (":trust", trust), (":speaks", SPEAKS_OF_ENTITY)):
        sql = sql.replace(name, str(value))
    return sql


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
