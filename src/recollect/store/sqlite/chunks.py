"""Vectors on disk: a float16 row for each, and its sign bits in a chunk.

A model's vectors stand in slots 0, 1, 2 ... without a gap: who leaves is replaced by
the last. 4,096 slots are a chunk, with one blob of bits and one of row ids, both
written in place, so that one more vector writes a few bytes. In a chunk a negative row
id is a vector of zeros: stored, but never found; 0 is a free slot.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

import apsw
import numpy as np

from recollect.errors import ModelError, StoreDamaged
from recollect.ports import Embedding
from recollect.store.sqlite import bits
from recollect.store.sqlite.connection import select
from recollect.store.sqlite.terms import as_table

if TYPE_CHECKING:
    from recollect.store.sqlite.bits import Bits, Columns, Ints

SLOTS = 4_096
_RID = np.dtype("<i8")
# A chunk that replaces another must not look like it to a cache. Starting high also
# keeps the number eight bytes long, so that SQLite changes it without moving the blobs.
_NEW_VERSION = "((random() & 0x3fffffffffffffff) | 0x4000000000000000)"


class Model(NamedTuple):
    """An embedder whose vectors are stored, and how many there are."""

    mid: int
    name: str
    dim: int
    slots: int


class Chunk(NamedTuple):
    """A chunk as it is scanned: row ids and bits of all vectors that can be found."""

    version: int
    rids: Ints
    bits: Columns


def models(db: apsw.Connection) -> list[Model]:
    """All models with vectors here, the largest first."""
    return [
        Model(*row)
        for row in select(db, "SELECT mid, name, dim, slots FROM model ORDER BY slots DESC, mid")
    ]


def find_model(db: apsw.Connection, name: str) -> Model | None:
    """The model of that name, if any vector was ever stored for it."""
    rows = select(db, "SELECT mid, name, dim, slots FROM model WHERE name = ?", (name,))
    return Model(*rows[0]) if rows else None


def append(db: apsw.Connection, name: str, rows: Sequence[tuple[int, Embedding]]) -> None:
    """Adds vectors; one that a row had before is replaced."""
    if not rows:
        return
    remove(db, [rid for rid, _ in rows])
    model = _model_for(db, name, dim=len(rows[0][1].vector))
    halves = bits.to_rows([embedding.vector for _, embedding in rows], model.dim)
    rids = np.array([rid for rid, _ in rows], dtype=_RID)
    db.executemany(
        "INSERT INTO vector (rid, mid, slot, data, tokens) VALUES (?, ?, ?, ?, ?)",
        (
            (rid, model.mid, model.slots + place, halves[place].tobytes(), embedding.tokens)
            for place, (rid, embedding) in enumerate(rows)
        ),
    )
    slots = np.arange(model.slots, model.slots + len(rows))
    _place(db, model, slots, np.where(bits.is_zero(halves), -rids, rids), bits.pack(halves))
    _set_slots(db, model, model.slots + len(rows))


def remove(db: apsw.Connection, rids: Sequence[int]) -> None:
    """Takes vectors out and leaves no bit of them behind."""
    if not rids:
        return
    found: dict[int, list[int]] = {}
    for mid, slot in select(
        db,
        "SELECT v.mid, v.slot FROM carray(?) AS w CROSS JOIN vector AS v ON v.rid = w.value",
        (as_table(np.array(rids, dtype=np.int64)),),
    ):
        found.setdefault(mid, []).append(slot)
    db.executemany("DELETE FROM vector WHERE rid = ?", ((rid,) for rid in rids))
    for model in models(db):
        if model.mid in found:
            _close_gaps(db, model, found[model.mid])


def read_chunk(db: apsw.Connection, cid: int, model: Model) -> Chunk:
    """A chunk with its free slots and zeros left out."""
    version, stored_bits, stored_rids = select(
        db, "SELECT version, bits, rids FROM chunk WHERE cid = ?", (cid,)
    )[0]
    rids = np.frombuffer(stored_rids, dtype=_RID)
    found = np.flatnonzero(rids > 0)
    matrix = np.frombuffer(stored_bits, dtype=np.uint8).reshape(SLOTS, bits.width(model.dim))
    return Chunk(version, rids[found], bits.columns(matrix[found]))


def read_vectors(db: apsw.Connection, rids: Ints, dim: int) -> bits.Halves:
    """The stored vectors of these rows, in their order."""
    if not len(rids):
        return np.empty((0, dim), dtype=np.float16)
    # Neighbours in the file are read together.
    order = np.argsort(rids)
    rows = select(
        db,
        "SELECT v.data FROM carray(?) AS w CROSS JOIN vector AS v ON v.rid = w.value",
        (as_table(rids[order]),),
    )
    if len(rows) != len(rids):
        raise StoreDamaged(
            "the chunks name vectors that are not there", remedy="recollect doctor --repair"
        )
    vectors = np.empty((len(rids), dim), dtype=np.float16)
    vectors[order] = bits.from_stored((stored for (stored,) in rows), dim)
    return vectors


def drop_model(db: apsw.Connection, model: Model) -> None:
    """Removes a model with all its vectors."""
    db.execute("DELETE FROM chunk WHERE mid = ?", (model.mid,))
    db.execute("DELETE FROM vector WHERE mid = ?", (model.mid,))
    db.execute("DELETE FROM model WHERE mid = ?", (model.mid,))


def rebuild(db: apsw.Connection) -> None:
    """Makes all chunks anew from the stored vectors. Vectors of the wrong length cannot
    be mended: they go, and their memories count as not embedded."""
    for model in models(db):
        db.execute("DELETE FROM chunk WHERE mid = ?", (model.mid,))
        db.execute(
            "DELETE FROM vector WHERE mid = ? AND length(data) <> ?",
            (model.mid, model.dim * bits.STORED_BYTES),
        )
        slots = 0
        for first, rows in _batches(db, model):
            # Slots only ever move down, so no two rows meet in one.
            db.executemany(
                "UPDATE vector SET slot = ? WHERE rid = ?",
                ((first + place, rid) for place, (rid, _, _) in enumerate(rows)),
            )
            halves = bits.from_stored((stored for _, _, stored in rows), model.dim)
            rids = np.array([rid for rid, _, _ in rows], dtype=_RID)
            signed = np.where(bits.is_zero(halves), -rids, rids)
            slots = first + len(rows)
            _place(db, model, np.arange(first, slots), signed, bits.pack(halves))
        _set_slots(db, model, slots)
        if not slots:
            drop_model(db, model)


def verify(db: apsw.Connection) -> list[str]:
    """What is wrong between vectors and chunks, in words."""
    problems = []
    for model in models(db):
        stray = _misplaced(db, model)
        if stray:
            problems.append(f"{stray:,} vectors of {model.name} are not in their chunk as stored")
    unknown = db.execute("SELECT count(*) FROM vector WHERE mid NOT IN (SELECT mid FROM model)").get
    if unknown:
        problems.append(f"{unknown:,} vectors do not say their model")
    return problems


def _model_for(db: apsw.Connection, name: str, dim: int) -> Model:
    model = find_model(db, name)
    if model is None:
        db.execute("INSERT INTO model (name, dim) VALUES (?, ?)", (name, dim))
        return Model(db.last_insert_rowid(), name, dim, 0)
    if model.dim != dim:
        raise ModelError(
            f"vectors of {name} have {model.dim} dimensions here, not {dim}",
            remedy="give the changed model another name, then: recollect reindex",
        )
    return model


def _set_slots(db: apsw.Connection, model: Model, slots: int) -> None:
    db.execute("UPDATE model SET slots = ? WHERE mid = ?", (slots, model.mid))
    db.execute("DELETE FROM chunk WHERE mid = ? AND number >= ?", (model.mid, -(-slots // SLOTS)))


def _close_gaps(db: apsw.Connection, model: Model, gaps: Sequence[int]) -> None:
    """Moves the last vectors into the slots that became free, and clears the end."""
    kept = model.slots - len(gaps)
    free = sorted(slot for slot in gaps if slot < kept)
    movers = select(
        db,
        "SELECT rid, data FROM vector WHERE mid = ? AND slot >= ? ORDER BY slot",
        (model.mid, kept),
    )
    if len(movers) != len(free):
        # Slots and rows had come apart before this call.
        rebuild(db)
        return
    db.executemany(
        "UPDATE vector SET slot = ? WHERE rid = ?",
        ((slot, rid) for slot, (rid, _) in zip(free, movers, strict=True)),
    )
    if movers:
        halves = bits.from_stored((stored for _, stored in movers), model.dim)
        rids = np.array([rid for rid, _ in movers], dtype=_RID)
        signed = np.where(bits.is_zero(halves), -rids, rids)
        _place(db, model, np.array(free), signed, bits.pack(halves))
    end = np.arange(kept, model.slots)
    nothing = np.zeros((len(end), bits.width(model.dim)), dtype=np.uint8)
    _place(db, model, end, np.zeros(len(end), dtype=_RID), nothing)
    _set_slots(db, model, kept)


def _place(db: apsw.Connection, model: Model, slots: Ints, rids: Ints, packed: Bits) -> None:
    """Writes row ids and bits into slots (rising), making chunks where there are none."""
    wide = bits.width(model.dim)
    for number in np.unique(slots // SLOTS).tolist():
        cid = _touch_chunk(db, model, number)
        inside = np.flatnonzero(slots // SLOTS == number)
        # One write for each run of neighbouring slots.
        runs = np.split(inside, np.flatnonzero(np.diff(slots[inside]) != 1) + 1)
        with (
            db.blob_open("main", "chunk", "bits", cid, True) as bits_blob,
            db.blob_open("main", "chunk", "rids", cid, True) as rids_blob,
        ):
            for run in runs:
                at = int(slots[run[0]]) % SLOTS
                bits_blob.seek(at * wide)
                bits_blob.write(packed[run].tobytes())
                rids_blob.seek(at * _RID.itemsize)
                rids_blob.write(rids[run].astype(_RID).tobytes())


def _touch_chunk(db: apsw.Connection, model: Model, number: int) -> int:
    """The chunk's id, after giving it a new version; made if it is not there."""
    cid: int = db.execute(
        f"""
        INSERT INTO chunk (mid, number, version, bits, rids)
        VALUES (?, ?, {_NEW_VERSION}, zeroblob(?), zeroblob(?))
        ON CONFLICT (mid, number) DO UPDATE SET version = version + 1 RETURNING cid""",
        (model.mid, number, SLOTS * bits.width(model.dim), SLOTS * _RID.itemsize),
    ).get
    return cid


def _batches(
    db: apsw.Connection, model: Model
) -> Iterator[tuple[int, list[tuple[int, int, bytes]]]]:
    """All vectors of a model in the order of their slots, a chunk's worth at a time,
    with the slot that the first would have if there were no gaps."""
    first, after = 0, -1
    while True:
        rows = select(
            db,
            "SELECT rid, slot, data FROM vector WHERE mid = ? AND slot > ?"
            f" ORDER BY slot LIMIT {SLOTS}",
            (model.mid, after),
        )
        if not rows:
            return
        yield first, [(rid, slot, stored) for rid, slot, stored in rows]
        first += len(rows)
        after = rows[-1][1]


def _misplaced(db: apsw.Connection, model: Model) -> int:
    """How many slots, of rows or of chunks, do not say what the other says."""
    wide = bits.width(model.dim)
    size = model.dim * bits.STORED_BYTES
    wrong = 0
    seen = 0
    chunks = {
        number: (stored_bits, stored_rids)
        for number, stored_bits, stored_rids in _stored_chunks(db, model)
    }
    for first, rows in _batches(db, model):
        good = [row for row in rows if len(row[2]) == size]
        wrong += len(rows) - len(good)
        seen += len(rows)
        if not good:
            continue
        halves = bits.from_stored((stored for _, _, stored in good), model.dim)
        zero, packed = bits.is_zero(halves), bits.pack(halves)
        for place, (rid, slot, _) in enumerate(good):
            number, at = divmod(slot, SLOTS)
            stored_bits, stored_rids = chunks.get(number, (b"", b""))
            same = (
                slot == first + place
                and stored_bits[at * wide : (at + 1) * wide] == packed[place].tobytes()
                and stored_rids[at * 8 : (at + 1) * 8]
                == (-rid if zero[place] else rid).to_bytes(8, "little", signed=True)
            )
            wrong += not same
    filled = sum(
        int(np.count_nonzero(np.frombuffer(stored_rids, dtype=_RID)))
        for _, stored_rids in chunks.values()
        if len(stored_rids) == SLOTS * 8
    )
    return wrong + abs(filled - seen) + abs(model.slots - seen)


def _stored_chunks(db: apsw.Connection, model: Model) -> Iterable[tuple[int, bytes, bytes]]:
    return [
        (number, stored_bits, stored_rids)
        for number, stored_bits, stored_rids in select(
            db, "SELECT number, bits, rids FROM chunk WHERE mid = ?", (model.mid,)
        )
    ]
