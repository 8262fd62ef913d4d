"""What a reader below a ceiling does not see, as parameters of its statements.

The views are those of the SQLite store. What they hide is found when the store has changed,
and sent with each statement that needs it: a transaction that only reads can make no table.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache

from bethink.store.postgres.session import Hidden, Session, ViewKey
from bethink.store.postgres.sql_tree import parse
from bethink.store.postgres.translate import View
from bethink.store.sql import ceiling as shared
from bethink.store.sql.dialect import PARTS
from bethink.store.sql.history import IS_MENTION
from bethink.store.sql.search.terms import MAX_TERM_LENGTH, tokenizer

_VIEW = re.compile(r"CREATE TEMP VIEW (\w+) AS (.*?);\n", re.DOTALL)
_COLUMNS = {
    "hidden_row": "rid bigint",
    "hidden_item": "id text",
    "hidden_term": "t text, n bigint",
    "hidden_entity": "id text, mentions bigint",
    "hidden_only": "id text",
    "hidden_sum": "documents bigint, length bigint",
}
_FIND_ROWS = "SELECT rid FROM item WHERE classification > {above} AND classification > {ceiling}"
_FIND_UNTRUSTED = "SELECT rid FROM item WHERE trust < 1"
_FIND_ITEMS = """
    SELECT i.id FROM item AS i WHERE i.rid IN (SELECT value FROM json_each(?))
    AND i.rev = (SELECT max(rev) FROM item WHERE id = i.id)
"""
_FIND_EARLIER = "SELECT i.rid FROM item AS i WHERE i.id IN (SELECT value FROM json_each(?))"
_SELECT_TEXTS = """
    SELECT i.length, i.entities, i.text, i.about FROM item AS i
    WHERE i.rid IN (SELECT value FROM json_each(?))
"""
_FIND_MENTIONED = """
    SELECT DISTINCT l.dst FROM json_each(?) AS h CROSS JOIN link AS l ON l.src = h.value
        AND l.type IN ('mentions', 'mentioned') AND l.src_kind = 'item' AND l.dst_kind = 'entity'
"""
_COUNT_MENTIONS = f"""
    SELECT l.dst, count(*) FROM json_each(?) AS h
    CROSS JOIN item AS i ON i.id = h.value AND i.live_to IS NULL
    CROSS JOIN link AS l ON l.src = i.id AND {IS_MENTION}
    GROUP BY l.dst
"""
_FIND_ONLY = """
    SELECT h.value FROM json_each(?) AS h WHERE NOT EXISTS (
        SELECT 1 FROM link AS l WHERE l.dst = h.value AND l.type IN ('mentions', 'mentioned')
        AND l.src_kind = 'item' AND l.src NOT IN (SELECT value FROM json_each(?))
        AND EXISTS (SELECT 1 FROM item AS r WHERE r.id = l.src
            AND r.classification <= {ceiling} AND r.trust >= {trust}
            AND instr(r.entities, json_quote(h.value)) > 0))
"""


@lru_cache(maxsize=16)
def ceiling_view(ceiling: int, *, trusted: bool) -> ViewKey:
    """Return the tables as the views of the SQLite store show them."""
    sql = shared.views(int(ceiling), int(trusted))
    for old, new in PARTS.items():
        sql = sql.replace(old, new)
    return ViewKey(View({name: parse(body) for name, body in _VIEW.findall(sql)}, _COLUMNS))


def find_hidden(session: Session, ceiling: int, *, trusted: bool) -> Hidden:
    """Return what is above the ceiling: the columns of each of the hidden tables."""
    found = session.execute(_FIND_ROWS.format(above=min(ceiling, 1), ceiling=int(ceiling)))
    rows = {rid for (rid,) in found}
    if trusted:
        rows |= {rid for (rid,) in session.execute(_FIND_UNTRUSTED)}
    items = [item for (item,) in session.execute(_FIND_ITEMS, (sorted(rows),))] if rows else []
    rows |= {rid for (rid,) in session.execute(_FIND_EARLIER, (items,))} if items else set()
    terms, mentions, documents, length = _count_hidden(session, sorted(rows))
    if items:
        found = session.execute(_FIND_MENTIONED, (items,))
        mentions.update(dict.fromkeys([entity for (entity,) in found], 0))
        mentions.update(dict(session.execute(_COUNT_MENTIONS, (items,))))
    only_sql = _FIND_ONLY.format(ceiling=int(ceiling), trust=int(trusted))
    only = session.execute(only_sql, (list(mentions), items)) if mentions else ()
    return {
        "hidden_row": (sorted(rows),),
        "hidden_item": (items,),
        "hidden_term": (list(terms), list(terms.values())),
        "hidden_entity": (list(mentions), list(mentions.values())),
        "hidden_only": ([entity for (entity,) in only],),
        "hidden_sum": ([documents], [length]),
    }


def _count_hidden(
    session: Session, rows: Sequence[int]
) -> tuple[Counter[str], dict[str, int], int, int]:
    """Count the index terms of hidden revisions; name their entities; count and add up texts."""
    tokens = tokenizer(session)
    terms: Counter[str] = Counter()
    mentions: dict[str, int] = {}
    documents = total = 0
    for length, entities, text, about in session.execute(_SELECT_TEXTS, (rows,)) if rows else ():
        documents, total = documents + (text != ""), total + length
        mentions.update(dict.fromkeys(json.loads(entities), 0))
        words = {*tokens(text), *tokens(about)}
        terms.update(term for term in words if len(term) <= MAX_TERM_LENGTH)
    return terms, mentions, documents, total
