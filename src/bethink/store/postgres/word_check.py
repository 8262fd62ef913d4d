"""Check and rebuild the word index of a space from its memories."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import apsw

from bethink.store.postgres import words

if TYPE_CHECKING:
    from bethink.store.postgres.session import Session
    from bethink.store.sql.connection import Row

_BATCH = 500
_SELECT_TEXTS = "SELECT rid, text, original FROM item AS i WHERE i.rid > ? ORDER BY i.rid LIMIT ?"
_SELECT_GRAMS = "SELECT i.rid, i.folded FROM gram AS i WHERE i.rid > ? ORDER BY i.rid LIMIT ?"


def rebuild(session: Session, table: str) -> None:
    """Rebuild what stands for one of SQLite's word tables."""
    if table == "grams":
        session.execute("DELETE FROM gram")
        for rows in _batches(session, _SELECT_TEXTS):
            session.write_grams(rows)
    elif table == "vocabulary":
        session.execute("DELETE FROM term_gram")
        session.write_vocabulary(session.execute("SELECT tid, t FROM term").fetchall())


def require_consistent(session: Session, table: str) -> None:
    """Raise the error of SQLite where a word index does not match what it is made from."""
    if table == "grams" and not _are_grams_right(session):
        raise apsw.CorruptError("the folded texts do not match the memories")
    if table == "vocabulary" and not _is_vocabulary_right(session):
        raise apsw.CorruptError("the trigrams do not match the vocabulary")


def _are_grams_right(session: Session) -> bool:
    stored: dict[int, str] = dict(row for rows in _batches(session, _SELECT_GRAMS) for row in rows)
    for rows in _batches(session, _SELECT_TEXTS):
        for rid, text, original in rows:
            if stored.pop(rid, None) != words.folded_text(text, original):
                return False
    return not stored


def _is_vocabulary_right(session: Session) -> bool:
    stored: dict[int, set[str]] = {}
    for gram, tid in session.execute("SELECT g.gram, g.tid FROM term_gram AS g"):
        stored.setdefault(tid, set()).add(gram)
    terms = session.execute("SELECT tid, t FROM term").fetchall()
    expected = {tid: set(words.vocabulary_trigrams([term])) for tid, term in terms}
    return stored == {tid: grams for tid, grams in expected.items() if grams}


def _batches(session: Session, sql: str) -> Iterator[list[Row]]:
    last = -1
    while rows := session.execute(sql, (last, _BATCH)).fetchall():
        yield rows
        last = rows[-1][0]
