"""How common words were at a moment in the past, counted over the revisions of then."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

import apsw

from recollect.ports import WordStatistics

_BY_THEN = "SELECT count(*), total(length), coalesce(max(rid), 0) FROM item WHERE live_from <= ?"
_FIRST_LATER = "SELECT min(rid) FROM item WHERE live_from > ?"
# Rows are numbered in the order of storing, so nearly always a number parts then from later.
_MATCHING = "SELECT count(*) FROM words WHERE words MATCH ? AND rowid <= ?"
_HOLDING = "SELECT count(DISTINCT doc) FROM posting WHERE term = ? AND doc <= ?"
_HOLDING_THEN = """
    SELECT count(DISTINCT p.doc) FROM posting AS p CROSS JOIN item AS i ON i.rid = p.doc
    WHERE p.term = ? AND i.live_from <= ?
"""

Tokens = Callable[[str], list[str]]


class _Past(NamedTuple):
    """A moment; up to which row all are of then, and all behind it later, if there is one."""

    then: int
    last_row: int | None


def statistics_then(
    db: apsw.Connection, tokens: Tokens, today: Mapping[str, int], then: int
) -> WordStatistics:
    """How many revisions there were, how long, and how many of them held each index word of
    which it is given how many hold it today."""
    documents, total, last = db.execute(_BY_THEN, (then,)).get
    average = total / documents if documents else 0.0
    later = db.execute(_FIRST_LATER, (then,)).get
    if later is None:
        return WordStatistics(documents, average, today)
    past = _Past(then, last if last < later else None)
    held = {term: _held(db, tokens, term, past) if df else 0 for term, df in today.items()}
    return WordStatistics(documents, average, held)


def _held(db: apsw.Connection, tokens: Tokens, term: str, past: _Past) -> int:
    if past.last_row is None:
        return int(db.execute(_HOLDING_THEN, (term, past.then)).get)
    # An e brings the stemmer back to stems that it would cut once more.
    spelled = next((word for word in (term, f"{term}e") if tokens(word) == [term]), None)
    if spelled is None:
        return int(db.execute(_HOLDING, (term, past.last_row)).get)
    quoted = '"' + spelled.replace('"', '""') + '"'
    return int(db.execute(_MATCHING, (quoted, past.last_row)).get)
