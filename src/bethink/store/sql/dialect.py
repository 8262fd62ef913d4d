"""What PostgreSQL words otherwise: both texts side by side, where the statement is defined.

The statements of this package are SQLite's, in SQL that a server has as well or gets by a rule
(`store.postgres.translate`). Where no rule covers it, the other wording stands next to it.
"""

from __future__ import annotations

# By SQLite's text: parts of statements, which rules may change further, and whole statements,
# which are complete: ``?1`` is the first value, ``:space`` the id of the space.
PARTS: dict[str, str] = {}
STATEMENTS: dict[str, str] = {}
# Those that are run for many rows: the values come as one list for each column.
BATCHES: dict[str, str] = {}


def part(sqlite: str, *, postgres: str) -> str:
    """Return a part of statements that PostgreSQL words otherwise."""
    PARTS[sqlite] = postgres
    return sqlite


def statement(sqlite: str, postgres: str) -> str:
    """Return a statement for which PostgreSQL has another."""
    STATEMENTS[sqlite] = postgres
    return sqlite


def batch(sqlite: str, *, postgres: str) -> str:
    """Return a statement for many rows; PostgreSQL has one for all of them at once."""
    BATCHES[sqlite] = postgres
    return sqlite
