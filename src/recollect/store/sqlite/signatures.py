"""The signatures of a space: kept in step with the memories, searched, checked, made anew.

A row a revision; its content follows from the text alone, so an export has none. Rows
are read once and kept: what is added later has a higher row id and is read then, and
``meta`` counts what else was done to the table. Runs inside the caller's transaction.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Sequence
from functools import lru_cache
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple

import apsw

from recollect.ports import Found, Match
from recollect.store.analysis import STOP_WORDS, about_words
from recollect.store.sqlite.connection import select
from recollect.store.sqlite.lexical import Hydrate
from recollect.store.sqlite.scope import Predicate
from recollect.store.sqlite.terms import as_table, tokenizer

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_ADD = "INSERT OR REPLACE INTO signature (rid, bits, counts) VALUES (?, ?, ?)"
_COPY = (
    "INSERT INTO signature (rid, bits, counts) SELECT ?, bits, counts FROM signature WHERE rid = ?"
)
_MISSING = (
    "SELECT i.rid, i.text FROM item AS i LEFT JOIN signature AS s USING (rid) WHERE s.rid IS NULL"
)
_STRAY = "SELECT count(*) FROM signature WHERE rid NOT IN (SELECT rid FROM item)"
_ALL = "SELECT i.rid, i.text, s.bits, s.counts FROM item AS i JOIN signature AS s USING (rid)"
_CHANGES = "SELECT value FROM meta WHERE name = 'signature_changes'"
_CHANGED = """
    INSERT INTO meta (name, value) VALUES ('signature_changes', '1') ON CONFLICT (name)
    DO UPDATE SET value = CAST(CAST(value AS INTEGER) + 1 AS TEXT)
"""
_BATCH = 500


class Asked(NamedTuple):
    """What is looked for: a text, how many memories at most, and how alike at least."""

    text: str
    depth: int
    least: float


def telling_terms(text: str, tokens: Sequence[str], db: apsw.Connection) -> list[str]:
    """The index words of a text that say something, each once; ``tokens`` are all it has.
    Scripts without spaces bring their pairs of letters, accents their plain ones."""
    if not text.isascii():
        tokens = (*tokens, *tokenizer(db)(about_words(text)))
    silent = _silent()
    return [term for term in dict.fromkeys(tokens) if term not in silent]


@lru_cache(maxsize=1)
def _silent() -> frozenset[str]:
    """Words that say nothing, as the index knows them."""
    db = apsw.Connection(":memory:")
    try:
        return STOP_WORDS.union(tokenizer(db)(" ".join(sorted(STOP_WORDS))))
    finally:
        db.close()


def add(db: apsw.Connection, rows: Sequence[tuple[int, Sequence[str]]]) -> None:
    """Stores the signatures of new revisions, given by row id and telling words."""
    from recollect.store.signature import sign_all  # NumPy

    made = sign_all([terms for _, terms in rows])
    db.executemany(
        _ADD,
        [
            (rid, one.bits.tobytes(), _packed(one.counts))
            for (rid, _), one in zip(rows, made, strict=True)
        ],
    )


def copy(db: apsw.Connection, rid: int, old_rid: int) -> None:
    """Gives a revision the signatures of an earlier one with the same text."""
    db.execute(_COPY, (rid, old_rid))


def remove(db: apsw.Connection, rids: Iterable[int]) -> int:
    """Takes them out; says how many there were."""
    before = db.total_changes()
    db.executemany("DELETE FROM signature WHERE rid = ?", [(rid,) for rid in rids])
    removed = db.total_changes() - before
    if removed:
        db.execute(_CHANGED)
    return removed


def make_missing(db: apsw.Connection, limit: int) -> int:
    """Makes signatures for revisions that have none, ``limit`` at most; says how many."""
    rows = select(db, f"{_MISSING} ORDER BY i.rid LIMIT ?", (limit,))
    if rows:
        _sign_texts(db, rows)
        db.execute(_CHANGED)
    return len(rows)


def rebuild(db: apsw.Connection) -> None:
    """Makes all of them anew from the texts."""
    db.execute("DELETE FROM signature")
    while make_missing(db, _BATCH):
        pass
    db.execute(_CHANGED)


def verify(db: apsw.Connection) -> list[str]:
    """What is wrong with the signatures, in words."""
    from recollect.store.signature import sign_all  # NumPy

    tokens = tokenizer(db)
    problems = []
    missing = db.execute(f"SELECT count(*) FROM ({_MISSING})").get
    if missing:
        problems.append(f"{missing:,} revisions have no signature: recollect reindex makes them")
    if stray := db.execute(_STRAY).get:
        problems.append(f"{stray:,} signatures belong to no revision")
    wrong = 0
    cursor = db.execute(_ALL)
    while rows := list(islice(cursor, _BATCH)):
        made = sign_all([telling_terms(row[1], tokens(row[1]), db) for row in rows])
        for (_, _, bits, counts), one in zip(rows, made, strict=True):
            wrong += (one.bits.tobytes(), _packed(one.counts)) != (bits, counts)
    if wrong:
        problems.append(f"{wrong:,} signatures do not fit their text")
    return problems


def _sign_texts(db: apsw.Connection, rows: Sequence[tuple[Any, ...]]) -> None:
    tokens = tokenizer(db)
    add(db, [(rid, telling_terms(text, tokens(text), db)) for rid, text in rows])


def _packed(counts: Sequence[int]) -> bytes:
    """Numbers of words, two bytes each; a text has fewer than that can count."""
    return b"".join(count.to_bytes(2, "little") for count in counts)


class _Kept(NamedTuple):
    """All signatures up to a row id, as they stood after so many changes."""

    changes: int
    last: int
    rids: NDArray[np.int64]
    counts: NDArray[np.int64]
    bits: NDArray[np.uint64]


class SignatureIndex:
    """Searches the signatures of one store; what was read is kept for the next search."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._kept: _Kept | None = None
        self._missing: tuple[object, int] = (None, 0)

    def search(
        self, db: apsw.Connection, asked: Asked, predicate: Predicate, hydrate: Hydrate
    ) -> Found:
        """Memories in scope whose words are alike, best first, ties by id."""
        terms = telling_terms(asked.text, tokenizer(db)(asked.text), db)
        if not terms or asked.depth < 1:
            return Found((), "the question has no word that says something")
        kept = self._read(db)
        near = _nearest(kept, terms, asked.least)
        visible = _in_scope(db, near, predicate)
        ranked = sorted((-near[rid], visible[rid], rid) for rid in visible)[: asked.depth]
        items = hydrate(db, [rid for _, _, rid in ranked])
        matches = tuple(
            Match(items[rid], -negative, f"{-negative:.0%} alike by its words' signature")
            for negative, _, rid in ranked
            if rid in items
        )
        note = f"{len(kept.rids):,} signatures compared"
        if missing := self._count_missing(db, kept):
            note += f"; {missing:,} memories have none yet: recollect reindex makes them"
        return Found(matches, note, 1.0)

    def _read(self, db: apsw.Connection) -> _Kept:
        changes = int(db.execute(_CHANGES).get or 0)
        with self._lock:
            kept = self._kept
        if kept is None or kept.changes != changes:
            kept = _nothing(changes)
        rows = select(
            db, "SELECT rid, bits, counts FROM signature WHERE rid > ? ORDER BY rid", (kept.last,)
        )
        if rows:
            kept = _joined(kept, rows)
            # What a write has not committed may be undone, and its row ids used again.
            if db.txn_state("main") != apsw.SQLITE_TXN_WRITE:
                with self._lock:
                    self._kept = kept
        return kept

    def _count_missing(self, db: apsw.Connection, kept: _Kept) -> int:
        state = (kept.changes, kept.last, db.execute("SELECT max(rid) FROM item").get)
        if self._missing[0] != state:
            sql = f"SELECT count(*) FROM ({_MISSING} AND i.live_to IS NULL)"
            self._missing = (state, db.execute(sql).get)
        return self._missing[1]


def _nothing(changes: int) -> _Kept:
    import numpy as np  # start-up time: most recalls ask no signatures

    from recollect.store.signature import BYTES
    from recollect.store.sqlite.bits import columns

    none = np.empty(0, np.int64)
    return _Kept(changes, -1, none, none, columns(np.empty((0, BYTES), np.uint8)))


def _joined(kept: _Kept, rows: Sequence[tuple[Any, ...]]) -> _Kept:
    import numpy as np  # as above

    from recollect.store.signature import BYTES
    from recollect.store.sqlite.bits import columns

    bits = np.frombuffer(b"".join(row[1] for row in rows), np.uint8).reshape(-1, BYTES)
    counts = np.frombuffer(b"".join(row[2] for row in rows), "<u2").astype(np.int64)
    each = np.array([len(row[1]) // BYTES for row in rows])
    rids = np.repeat(np.array([row[0] for row in rows], np.int64), each)
    return _Kept(
        kept.changes,
        rows[-1][0],
        np.concatenate([kept.rids, rids]),
        np.concatenate([kept.counts, counts]),
        np.concatenate([kept.bits, columns(bits)], axis=1),
    )


def _nearest(kept: _Kept, terms: Sequence[str], least: float) -> dict[int, float]:
    """Rows that are alike enough, each with its best signature's likeness."""
    import numpy as np  # as above

    from recollect.store.signature import likeness, question_sums

    if not len(kept.rids):
        return {}
    agreement = _agreement(question_sums(terms).astype(np.float32), kept.bits)
    alike = likeness(agreement, kept.counts, len(terms))
    near: dict[int, float] = {}
    for place in np.flatnonzero(alike >= least).tolist():
        rid, value = int(kept.rids[place]), float(alike[place])
        near[rid] = max(value, near.get(rid, 0.0))
    return near


def _agreement(question: NDArray[np.float32], signs: NDArray[np.uint64]) -> NDArray[np.float64]:
    """The cosine of a question's sums, four bits a number, with each column of signs."""
    import numpy as np  # as above

    from recollect.store.signature import BITS
    from recollect.store.sqlite import bits

    dots = np.zeros(signs.shape[1])
    levels = np.zeros(BITS)
    for place, plane in enumerate(reversed(bits.planes(question))):
        dots += 2**place * (BITS / 2 - bits.hamming(plane, signs))
        levels += 2**place * (np.unpackbits(plane) - 0.5)
    agreement: NDArray[np.float64] = dots / np.sqrt(BITS * float(levels @ levels))
    return agreement


def _in_scope(db: apsw.Connection, near: dict[int, float], predicate: Predicate) -> dict[int, str]:
    import numpy as np  # as above

    if not near:
        return {}
    rows = select(
        db,
        "SELECT i.rid, i.id FROM carray(?) AS w CROSS JOIN item AS i ON i.rid = w.value"
        f" WHERE {predicate.sql}",
        (as_table(np.array(list(near), np.int64)), *predicate.values),
    )
    return dict(rows)
