"""Connections to a file that see nothing above a classification, or nothing untrusted."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from sys import intern
from weakref import WeakKeyDictionary

import apsw

from bethink.store.sql.ceiling import ANY_HIDDEN, views
from bethink.store.sql.connection import open_transaction_error, select
from bethink.store.sql.history import IS_MENTION
from bethink.store.sql.search.terms import MAX_TERM_LENGTH, tokenizer
from bethink.store.sqlite.connection import SqliteConnections

_STATE = """
CREATE TEMP TABLE hidden_row (rid INTEGER PRIMARY KEY);
CREATE TEMP TABLE hidden_item (id TEXT PRIMARY KEY) WITHOUT ROWID;
CREATE TEMP TABLE hidden_term (t TEXT PRIMARY KEY, n INTEGER NOT NULL) WITHOUT ROWID;
CREATE TEMP TABLE hidden_entity (id TEXT PRIMARY KEY, mentions INTEGER NOT NULL) WITHOUT ROWID;
CREATE TEMP TABLE hidden_only (id TEXT PRIMARY KEY) WITHOUT ROWID;
CREATE TEMP TABLE hidden_sum (documents INTEGER NOT NULL, length INTEGER NOT NULL);
INSERT INTO hidden_sum VALUES (0, 0);
"""
_STATE_TABLES = ("hidden_row", "hidden_item", "hidden_term", "hidden_entity", "hidden_only")
_SELECT_GENERATION = "SELECT value FROM main.meta WHERE name = 'generation'"
# The index of classifications has those above 1.
_FIND_HIDDEN = """
    INSERT INTO temp.hidden_row SELECT rid FROM main.item
    WHERE classification > {above} AND classification > {ceiling}
"""
# The index of untrusted memories has those below 1, the only bound there is.
_FIND_UNTRUSTED = "INSERT OR IGNORE INTO temp.hidden_row SELECT rid FROM main.item WHERE trust < 1"
_FIND_HIDDEN_ITEMS = """
    INSERT INTO temp.hidden_item SELECT i.id FROM main.item AS i
    WHERE i.rid IN (SELECT rid FROM temp.hidden_row)
    AND i.rev = (SELECT max(rev) FROM main.item WHERE id = i.id)
"""
_FIND_EARLIER_ROWS = """
    INSERT OR IGNORE INTO temp.hidden_row SELECT i.rid FROM temp.hidden_item AS h
    CROSS JOIN main.item AS i ON i.id = h.id
"""
_SUM_HIDDEN = """
    UPDATE temp.hidden_sum SET (documents, length) = (
        SELECT count(*), CAST(total(i.length) AS INTEGER) FROM temp.hidden_row AS h
        CROSS JOIN main.item AS i ON i.rid = h.rid WHERE i.text <> '')
"""
_HIDDEN_HASHES = """
    SELECT i.rid, i.content_hash FROM temp.hidden_row AS h
    CROSS JOIN main.item AS i ON i.rid = h.rid
"""
_SELECT_TEXTS = "SELECT text, about FROM main.item WHERE rid = ?"
_ADD_TERM = "INSERT INTO temp.hidden_term (t, n) VALUES (?, ?)"
_FIND_ENTITIES = """
    INSERT INTO temp.hidden_entity (id, mentions) SELECT DISTINCT named.value, 0
    FROM temp.hidden_row AS h CROSS JOIN main.item AS i ON i.rid = h.rid
    CROSS JOIN json_each(i.entities) AS named
"""
_FIND_MENTIONED = """
    INSERT OR IGNORE INTO temp.hidden_entity (id, mentions) SELECT l.dst, 0
    FROM temp.hidden_item AS h CROSS JOIN main.link AS l ON l.src = h.id
        AND l.type IN ('mentions', 'mentioned') AND l.src_kind = 'item' AND l.dst_kind = 'entity'
"""
_COUNT_MENTIONS = f"""
    INSERT INTO temp.hidden_entity (id, mentions) SELECT l.dst, count(*)
    FROM temp.hidden_item AS h
    CROSS JOIN main.item AS i ON i.id = h.id AND i.live_to IS NULL
    CROSS JOIN main.link AS l ON l.src = i.id AND {IS_MENTION}
    WHERE 1 GROUP BY l.dst
    ON CONFLICT (id) DO UPDATE SET mentions = excluded.mentions
"""
_FIND_HIDDEN_ONLY = """
    INSERT INTO temp.hidden_only SELECT h.id FROM temp.hidden_entity AS h
    WHERE NOT EXISTS (
        SELECT 1 FROM main.link AS l WHERE l.dst = h.id AND l.type IN ('mentions', 'mentioned')
        AND l.src_kind = 'item' AND l.src NOT IN (SELECT id FROM temp.hidden_item)
        AND EXISTS (SELECT 1 FROM main.item AS r WHERE r.id = l.src
            AND r.classification <= {ceiling} AND r.trust >= {trust}
            AND instr(r.entities, json_quote(h.id)) > 0))
"""


class CeilingConnections(SqliteConnections):
    """Connections to a space that read nothing above a classification.

    With ``trusted`` they read no memory of trust 0 either.
    """

    def __init__(self, base: SqliteConnections, ceiling: int, *, trusted: bool = False) -> None:
        self.__dict__.update(base.__dict__)
        self._base, self.ceiling, self.trusted = base, ceiling, trusted
        self.is_view = True
        self._local = threading.local()
        self._guard = threading.Lock()
        self._open = []
        self._immutable = WeakKeyDictionary()
        self._seen = WeakKeyDictionary[apsw.Connection, str]()
        # The index terms of hidden revisions, by row and content.
        self._terms: dict[tuple[int, str], tuple[str, ...]] = {}

    @property
    def base(self) -> SqliteConnections:
        return self._base

    def connect(self, owner: threading.Thread | None = None) -> apsw.Connection:
        """Open a further connection with its views."""
        db = super().connect(owner)
        self._add_views(db)
        return db

    def hide(self, db: apsw.Connection) -> None:
        """Hide what is above the ceiling from another connection to the same content."""
        self._add_views(db)
        self.refresh(db)

    def _add_views(self, db: apsw.Connection) -> None:
        db.execute(_STATE)
        db.execute(views(int(self.ceiling), int(self.trusted)))

    @contextmanager
    def _snapshot(self) -> Iterator[apsw.Connection]:
        with super()._snapshot() as db:
            self.refresh(db)
            yield db

    @contextmanager
    def write_transaction(self, *, commit: bool = True) -> Iterator[apsw.Connection]:
        """Open a write transaction, which sees everything."""
        db = getattr(self._local, "db", None)
        if db is not None and not db.get_autocommit():
            raise open_transaction_error()
        with self.base.write_transaction(commit=commit) as writing:
            yield writing

    def refresh(self, db: apsw.Connection) -> None:
        """Find again what is hidden, if the store has changed since."""
        generation = str(db.execute(_SELECT_GENERATION).get)
        if self._seen.get(db) == generation:
            return
        ceiling = int(self.ceiling)
        for table in _STATE_TABLES:
            db.execute(f"DELETE FROM temp.{table}")
        db.execute(_FIND_HIDDEN.format(above=min(ceiling, 1), ceiling=ceiling))
        if self.trusted:
            db.execute(_FIND_UNTRUSTED)
        if db.execute(ANY_HIDDEN).get:
            db.execute(_FIND_HIDDEN_ITEMS)
            db.execute(_FIND_EARLIER_ROWS)
            db.executemany(_ADD_TERM, self._count_terms(db).items())
            db.execute(_FIND_ENTITIES)
            db.execute(_FIND_MENTIONED)
            db.execute(_COUNT_MENTIONS)
            db.execute(_FIND_HIDDEN_ONLY.format(ceiling=ceiling, trust=int(self.trusted)))
        db.execute(_SUM_HIDDEN)
        self._seen[db] = generation

    def _count_terms(self, db: apsw.Connection) -> Counter[str]:
        """Count in how many hidden revisions each index term occurs."""
        tokens, known = tokenizer(db), self._terms
        terms: dict[tuple[int, str], tuple[str, ...]] = {}
        for rid, content_hash in select(db, _HIDDEN_HASHES):
            found = known.get((rid, content_hash))
            if found is None:
                text, about = db.execute(_SELECT_TEXTS, (rid,)).get
                words = {*tokens(text), *tokens(about)}
                # There may be very many: each term is kept once.
                found = tuple(intern(term) for term in words if len(term) <= MAX_TERM_LENGTH)
            terms[rid, content_hash] = found
        self._terms = terms
        return Counter(term for found in terms.values() for term in found)
