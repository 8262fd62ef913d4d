"""Connections that see nothing above a classification, or nothing untrusted.

What they hide is to them as if it were not stored.

Temporary views of the same names hide the tables from every statement of a connection, so
no query can forget the ceiling. What adds up over memories (word counts, mentions) is
corrected by what the hidden ones add, which is counted when the store has changed. Writes
use the connections without a ceiling; they take the ceiling as an argument.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from sys import intern
from weakref import WeakKeyDictionary

import apsw

from bethink.errors import StoreError
from bethink.store.sqlite.db.connection import Connections, select

HIGHEST = 3  # the highest classification there is: with this ceiling nothing is hidden

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
# As a list these secrets are looked up once, not for every line.
_RUN_LINE = """
    CASE WHEN substr(e.detail, 1, 9) = '{{"class":'
        THEN CAST(substr(e.detail, 10, 1) AS INTEGER) <= {ceiling}
    WHEN e.kind = 'maintained' AND instr(e.detail, '"makes') + instr(e.detail, '"ends"')
        + instr(e.detail, '"judges"') + instr(e.detail, '"links"') = 0 THEN 0 = 1
    ELSE NOT EXISTS (SELECT 1 FROM main.tombstone AS g WHERE g.id IN (
            SELECT t.id FROM main.tombstone AS t CROSS JOIN main.event AS x ON x.item = t.id
            AND x.kind = 'erased' AND x.detail GLOB 'classification *'
            AND CAST(substr(x.detail, 16) AS INTEGER) > {ceiling})
        AND instr(e.detail, g.id) > 0) END
"""
_STATE = """
CREATE TEMP TABLE hidden_row (rid INTEGER PRIMARY KEY);
CREATE TEMP TABLE hidden_item (id TEXT PRIMARY KEY) WITHOUT ROWID;
CREATE TEMP TABLE hidden_term (t TEXT PRIMARY KEY, n INTEGER NOT NULL) WITHOUT ROWID;
CREATE TEMP TABLE hidden_entity (id TEXT PRIMARY KEY, mentions INTEGER NOT NULL) WITHOUT ROWID;
CREATE TEMP TABLE hidden_only (id TEXT PRIMARY KEY) WITHOUT ROWID;
CREATE TEMP TABLE hidden_sum (documents INTEGER NOT NULL, length INTEGER NOT NULL);
INSERT INTO hidden_sum VALUES (0, 0);
"""
# A memory is hidden by its last revision; an earlier one also by its own classification.
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
CREATE TEMP VIEW entity AS SELECT e.id, e.kind, e.name,
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
    WHEN 'documents' THEN CAST(value - (SELECT documents FROM temp.hidden_sum) AS TEXT)
    WHEN 'total_length' THEN CAST(value - (SELECT length FROM temp.hidden_sum) AS TEXT)
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
_STATE_TABLES = ("hidden_row", "hidden_item", "hidden_term", "hidden_entity", "hidden_only")
_SELECT_GENERATION = "SELECT value FROM main.meta WHERE name = 'generation'"
# The index of classifications has those above 1.
_FIND_HIDDEN = """
    INSERT INTO temp.hidden_row SELECT rid FROM main.item
    WHERE classification > {above} AND classification > {ceiling}
"""
# The index of untrusted memories has those below 1, the only bound there is.
_FIND_UNTRUSTED = "INSERT OR IGNORE INTO temp.hidden_row SELECT rid FROM main.item WHERE trust < 1"
_ANY_HIDDEN = "SELECT EXISTS (SELECT 1 FROM temp.hidden_row)"
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
        CROSS JOIN main.item AS i ON i.rid = h.rid)
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
_COUNT_MENTIONS = """
    INSERT INTO temp.hidden_entity (id, mentions) SELECT l.dst, count(*)
    FROM temp.hidden_item AS h
    CROSS JOIN main.item AS i ON i.id = h.id AND i.live_to IS NULL
    CROSS JOIN main.link AS l ON l.src = i.id AND l.type = 'mentions'
        AND l.src_kind = 'item' AND l.dst_kind = 'entity'
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


def views(ceiling: int, trust: int) -> str:
    """Return the SQL of the views below a classification, and from a trust on."""
    run_line = _RUN_LINE.format(ceiling=ceiling)
    return _VIEWS.format(ceiling=ceiling, trust=trust, speaks=SPEAKS_OF_ENTITY, run_line=run_line)


class CeilingConnections(Connections):
    """Connections to a space that read nothing above a classification.

    With ``trusted`` they read no memory of trust 0 either.
    """

    def __init__(self, base: Connections, ceiling: int, *, trusted: bool = False) -> None:
        self.__dict__.update(base.__dict__)
        self.base, self.ceiling, self.trusted = base, ceiling, trusted
        self._local = threading.local()
        self._guard = threading.Lock()
        self._open = []
        self._immutable = WeakKeyDictionary()
        self._seen = WeakKeyDictionary[apsw.Connection, str]()
        # The index terms of hidden revisions, by row and content.
        self._terms: dict[tuple[int, str], tuple[str, ...]] = {}

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
            raise StoreError(
                "nothing can be written while a snapshot or another write is open",
                remedy="write after it is closed",
            )
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
        if db.execute(_ANY_HIDDEN).get:
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
        # Those modules import this one.
        from bethink.store.sqlite.search.lexical import MAX_TERM_LENGTH, tokenizer

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


def ceiling_of(connections: Connections) -> int:
    """Return the highest classification that these connections show."""
    return connections.ceiling if isinstance(connections, CeilingConnections) else HIGHEST


def without_ceiling(connections: Connections) -> Connections:
    """Return the connections to the same space that see everything."""
    return connections.base if isinstance(connections, CeilingConnections) else connections


def has_untrusted(connections: Connections) -> bool:
    """Whether these connections show a memory of trust 0."""
    if isinstance(connections, CeilingConnections) and connections.trusted:
        return False
    with connections.read_transaction() as db:
        try:
            return bool(db.execute("SELECT EXISTS (SELECT 1 FROM item WHERE trust < 1)").get)
        except apsw.CorruptError:
            return True  # what cannot be read may be


def is_below_ceiling(db: apsw.Connection) -> bool:
    """Whether this connection hides what is above a ceiling."""
    return bool(db.execute("SELECT 1 FROM sqlite_temp_schema WHERE name = 'hidden_row'").get)


def hides_rows(db: apsw.Connection) -> bool:
    """Whether anything is above the ceiling of this connection."""
    return is_below_ceiling(db) and bool(db.execute(_ANY_HIDDEN).get)
