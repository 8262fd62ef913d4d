"""Counts and sizes of a space, and the versions in use."""

from __future__ import annotations

from typing import Any

import apsw

from recollect.store.sqlite.clock import from_ms_or_none
from recollect.store.sqlite.connection import Connections, generation
from recollect.store.sqlite.migrate import schema_version

_COUNTS = {
    "memories": "SELECT count(*) FROM item WHERE live_to IS NULL",
    "forgotten": "SELECT count(DISTINCT id) FROM item"
    " WHERE id NOT IN (SELECT id FROM item WHERE live_to IS NULL)",
    "revisions": "SELECT count(*) FROM item",
    "entities": "SELECT count(*) FROM entity",
    "links": "SELECT count(*) FROM link",
    "threads": "SELECT count(*) FROM thread",
    "words": "SELECT count(*) FROM term",
    "vectors": "SELECT count(*) FROM vector",
    "unembedded": "SELECT count(*) FROM item"
    " WHERE live_to IS NULL AND rid NOT IN (SELECT rid FROM vector)",
    "erased": "SELECT count(*) FROM tombstone",
    "events": "SELECT count(*) FROM event",
}
_GROUPS = ("level", "kind", "layer", "tier", "status", "source_class")
_MODELS = """
    SELECT m.name, count(v.rid) FROM model AS m LEFT JOIN vector AS v ON v.mid = m.mid
    GROUP BY m.mid ORDER BY m.name
"""
_SPAN = "SELECT min(stored_at), max(stored_at) FROM item WHERE live_to IS NULL"


def count(db: apsw.Connection) -> int:
    """Live items."""
    return int(db.execute(_COUNTS["memories"]).get)


def most_classified(db: apsw.Connection) -> int:
    """The highest classification of any revision, of what was forgotten too."""
    return int(db.execute("SELECT coalesce(max(classification), 0) FROM item").get)


def stats(db: apsw.Connection, connections: Connections, space: str) -> dict[str, Any]:
    """Everything that can be counted, by name."""
    first, last = db.execute(_SPAN).get
    return {
        "space": space,
        "path": None if connections.path is None else str(connections.path),
        "sqlite": apsw.sqlite_lib_version(),
        "schema": schema_version(db),
        "generation": generation(db),
        "bytes": _size(db, connections),
        "oldest": from_ms_or_none(first),
        "newest": from_ms_or_none(last),
        **{name: db.execute(sql).get for name, sql in _COUNTS.items()},
        **{f"by_{column}": _by(db, column) for column in _GROUPS},
        "models": dict(db.execute(_MODELS)),
    }


def _by(db: apsw.Connection, column: str) -> dict[str, int]:
    sql = (
        f"SELECT {column}, count(*) FROM item WHERE live_to IS NULL AND {column} IS NOT NULL"
        f" GROUP BY {column} ORDER BY count(*) DESC, {column}"
    )
    return dict(db.execute(sql))


def _size(db: apsw.Connection, connections: Connections) -> int:
    if connections.path is None:
        pages = db.execute("PRAGMA page_count").get
        return int(pages * db.execute("PRAGMA page_size").get)
    files = (connections.path.with_name(connections.path.name + rest) for rest in ("", "-wal"))
    return sum(file.stat().st_size for file in files if file.exists())
