"""What erasing can promise on a server: deleted rows are vacuumed, as far as it lets us."""

from __future__ import annotations

import re
from collections.abc import Collection

import psycopg

from bethink.store.postgres.distribution import vacuum_shards
from bethink.store.postgres.schema import SCHEMA
from bethink.store.postgres.server import Server

BACKUPS = (
    "the server's freed pages, write-ahead log and backups keep bytes of what was erased until"
    " they are written over or expire"
)
_NOT_VACUUMED = "deleted rows stay in the server's files until it vacuums them"
_SEEN_ON_SHARD = (
    "deleted rows that an older transaction on the space's server still sees stay in its files"
    " until it vacuums again"
)
_STILL_SEEN = re.compile(r"(\d+) are dead but not yet removable")


def vacuum(server: Server, space_id: int, changed: Collection[str]) -> tuple[str, ...]:
    """Remove deleted rows and their index entries from tables; say what remains.

    A table that is locked, or whose deleted rows an older transaction still sees, keeps them.
    """
    if server.distributed:
        return _vacuum_shards(server, space_id)
    names = ", ".join(f"{SCHEMA}.{name}" for name in sorted(changed) if name != "space")
    left: list[bool] = []

    def hear(diagnostic: psycopg.errors.Diagnostic) -> None:
        left.append(_leaves_rows(diagnostic))

    try:
        with server.connection() as connection:
            connection.add_notice_handler(hear)
            try:
                # As the role that connected, which inherits the right: outside of a transaction
                # a role that is set would stay with a session that a pooler gives to others.
                connection.execute(f"VACUUM (VERBOSE, INDEX_CLEANUP ON, SKIP_LOCKED) {names}")
            finally:
                connection.remove_notice_handler(hear)
    except psycopg.Error:
        return (_NOT_VACUUMED,)
    return (_NOT_VACUUMED,) if any(left) else ()


def _vacuum_shards(server: Server, space_id: int) -> tuple[str, ...]:
    """Vacuum the tables of the space; the server does not report what is left."""
    try:
        with server.connection() as connection:
            done = vacuum_shards(connection, space_id, "INDEX_CLEANUP ON")
    except psycopg.Error:
        done = False
    return (_SEEN_ON_SHARD,) if done else (_NOT_VACUUMED,)


def _leaves_rows(diagnostic: psycopg.errors.Diagnostic) -> bool:
    """Whether a message of the vacuum says that rows were left."""
    if diagnostic.severity_nonlocalized == "WARNING":
        return True
    counts = _STILL_SEEN.findall(diagnostic.message_detail or diagnostic.message_primary or "")
    return any(int(count) for count in counts)
