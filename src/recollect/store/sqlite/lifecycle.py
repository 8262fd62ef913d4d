"""What happens to a memory after it was stored: ended, restored, judged, used."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence

import apsw

from recollect.model import Item, Status
from recollect.ports import Embedding, Fading
from recollect.store.sqlite import journal, signatures, standing, words
from recollect.store.sqlite.clock import DAY_MS
from recollect.store.sqlite.connection import Row, select
from recollect.store.sqlite.fading import fade
from recollect.store.sqlite.rows import CONTENT, INSERT, NewRow, read_items
from recollect.store.sqlite.vectors import VectorIndex
from recollect.store.sqlite.write import CLOSE, next_rid

_LIVE = """
    SELECT i.id, i.rid, i.live_from FROM json_each(?) AS wanted
    CROSS JOIN item AS i ON i.id = wanted.value AND i.live_to IS NULL
"""
_REVISIONS = """
    SELECT i.id, i.rev FROM json_each(?) AS wanted
    CROSS JOIN item AS i ON i.id = wanted.value AND i.live_to IS NULL
"""
_ENDED = f"""
    SELECT {", ".join(f"i.{name}" for name in CONTENT)}, i.rid, i.live_to, i.status, i.length
    FROM json_each(?) AS wanted
    CROSS JOIN item AS i
        ON i.id = wanted.value AND i.rev = (SELECT max(rev) FROM item WHERE id = wanted.value)
    WHERE i.live_to IS NOT NULL
"""
_COPY_SKETCH = "INSERT INTO sketch (band, rid) SELECT band, ? FROM sketch WHERE rid = ?"
_VECTOR = """
    SELECT m.name, v.data, v.tokens FROM vector AS v JOIN model AS m ON m.mid = v.mid
    WHERE v.rid = ?
"""
_STATUS = """
    UPDATE item SET status = ?1
    WHERE rid = (SELECT rid FROM item WHERE id = ?2 ORDER BY rev DESC LIMIT 1) AND status <> ?1
"""
_COUNT = """
    UPDATE entity SET mentions = max(0, mentions + ?) WHERE id IN (
        SELECT dst FROM link WHERE src = ? AND type = 'mentions'
        AND src_kind = 'item' AND dst_kind = 'entity')
"""
_KNOWN = "SELECT value FROM json_each(?) WHERE EXISTS (SELECT 1 FROM item WHERE id = value)"
_USE = """
    INSERT INTO usage (id, recalls, last_at, stamps) VALUES (?1, 1, ?2, json_array(?2))
    ON CONFLICT (id) DO UPDATE SET
        recalls = recalls + 1,
        last_at = max(coalesce(last_at, ?2), ?2),
        stamps = json_insert(
            CASE WHEN json_array_length(stamps) >= 20 THEN json_remove(stamps, '$[0]')
            ELSE stamps END, '$[#]', ?2)
"""
_USE_DAY = """
    INSERT INTO usage_day (id, day, recalls) VALUES (?, ?, 1)
    ON CONFLICT (id, day) DO UPDATE SET recalls = recalls + 1
"""


# What a rule gives as its reason. Anything else is somebody's words, perhaps the memory's
# own: they stand in the row, which an erase removes, and never in the journal.
_PLAIN = re.compile(r"[a-z][a-z0-9_:-]{0,63}")


def end(db: apsw.Connection, ids: Sequence[str], *, how: str, actor: str, now: int) -> list[str]:
    """Closes the live revisions. Gives the ids that had one."""
    live = select(db, _LIVE, (id_list(ids),))
    db.executemany(CLOSE, [(max(now, begin), how, rid) for _, rid, begin in live])
    ended = [row[0] for row in live]
    count_mentions(db, ended, -1)
    told = how if _PLAIN.fullmatch(how) else "for a reason that was given"
    journal.write(db, (journal.Line("ended", item, told) for item in ended), actor=actor, at=now)
    return ended


def unchanged(db: apsw.Connection, ids: Sequence[str], revisions: Mapping[str, int]) -> list[str]:
    """Those whose live revision is still the one given for them."""
    rows = select(db, _REVISIONS, (id_list(ids),))
    return [item for item, rev in rows if revisions.get(item) == rev]


def restore(
    db: apsw.Connection, vectors: VectorIndex, ids: Sequence[str], *, actor: str, now: int
) -> list[str]:
    """Adds a new live revision like the last one to each ended item; gives their ids."""
    ended = select(db, _ENDED, (id_list(ids),))
    rid = next_rid(db)
    for row in ended:
        _revive(db, vectors, row, rid, now)
        rid += 1
    done = [row[0] for row in ended]
    count_mentions(db, done, 1)
    journal.write(db, (journal.Line("restored", item) for item in done), actor=actor, at=now)
    return done


def _revive(db: apsw.Connection, vectors: VectorIndex, row: Row, rid: int, now: int) -> None:
    last = dict(zip(CONTENT, row, strict=False))
    old_rid, ended_at, status, length = row[len(CONTENT) :]
    last |= {"rev": last["rev"] + 1, "live_from": max(now, ended_at)}
    new = NewRow(rid, tuple(last.values()), None, None, status, length)
    db.execute(INSERT, new.values())
    words.index(db, [words.IndexRow(rid, last["text"], last["about"], last["original"])])
    db.execute(_COPY_SKETCH, (rid, old_rid))
    signatures.copy(db, rid, old_rid)
    for model, vector, tokens in select(db, _VECTOR, (old_rid,)):
        vectors.add(db, model, [(rid, _embedding(vector, tokens))])


def _embedding(vector: bytes, tokens: bytes) -> Embedding:
    import numpy as np  # start-up time: only a restore turns stored vectors back

    return Embedding(np.frombuffer(vector, dtype=np.float16).astype(np.float32), tokens)


def set_status(
    db: apsw.Connection, ids: Sequence[str], status: Status, *, actor: str, now: int
) -> None:
    """Judges items as they stand last; those that stand so already are left alone."""
    changed = []
    for item in dict.fromkeys(ids):
        db.execute(_STATUS, (status, item))
        if db.changes():
            changed.append(journal.Line("status", item, status))
            standing.note(db, [standing.Change(item, now, status)])
    journal.write(db, changed, actor=actor, at=now)


def note_use(
    db: apsw.Connection, ids: Sequence[str], now: int, fading: Fading | None = None
) -> None:
    """Counts a recall of each item: in all, on this day, and the last twenty times."""
    known = [row[0] for row in select(db, _KNOWN, (id_list(ids),))]
    db.executemany(_USE, [(item, now) for item in known])
    db.executemany(_USE_DAY, [(item, now // DAY_MS) for item in known])
    if fading is not None:
        fade(db, known, now, fading)


def unembedded(db: apsw.Connection, vectors: VectorIndex, model: str, limit: int) -> list[Item]:
    """Live items without a vector of this model, in the order they were stored."""
    rids = vectors.unembedded(db, model, limit)
    items = read_items(db, rids)
    return [items[rid] for rid in rids]


def set_embeddings(
    db: apsw.Connection, vectors: VectorIndex, model: str, embeddings: Mapping[str, Embedding]
) -> None:
    """Gives live items their vectors; those of other models go with the last one."""
    live = select(db, _LIVE, (id_list(list(embeddings)),))
    rows = [(rid, embeddings[item]) for item, rid, _ in live]
    vectors.remove(db, [rid for rid, _ in rows])
    vectors.add(db, model, rows)
    if not vectors.unembedded(db, model, 1):
        vectors.drop_other_models(db, model)


def count_mentions(db: apsw.Connection, ids: Iterable[str], step: int) -> None:
    """Corrects how many live items mention the entities of items that come or go."""
    db.executemany(_COUNT, [(step, item) for item in ids])


def id_list(ids: Sequence[str]) -> str:
    """Ids, each once, for ``json_each``."""
    return json.dumps(list(dict.fromkeys(ids)), ensure_ascii=False)
