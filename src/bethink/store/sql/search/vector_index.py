"""Vectors on disk: float16 rows, and their sign bits in chunks for a fast scan.

A model's vectors have slots 0, 1, 2 ... without a gap: a removed vector is replaced by
the last. 4,096 slots are a chunk, with one blob of bits and one of row ids, both
written in place, so that one more vector writes a few bytes. In a chunk a negative row
id is a vector of zeros: stored, but never found; 0 is a free slot.

A long memory also has a vector for each of its passages. All of them have keys: that of a
memory's own is its row id, and the passage's number stands above the row id.

Vectors that point the same way agree in most signs (Charikar, STOC 2002). Only the
stored side is cut down to signs. The query keeps four bits a dimension: as planes of
one bit each, whose Hamming distances, weighted 8, 4, 2 and 1, add up to the dot product
of the query with the signs. That finds with 400 candidates what signs alone find with
2,400.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from operator import methodcaller
from typing import TYPE_CHECKING
from zlib import crc32

import apsw

from bethink.core.arrays import NDArray, np
from bethink.core.named_tuple import NamedTuple
from bethink.errors import ModelError, StoreDamaged
from bethink.ports import Embedding
from bethink.store.sql.connection import Database, Row, as_table, select
from bethink.store.sql.damage import REPAIR_REMEDY, as_bytes, met_unreadable, select_readable
from bethink.store.sql.dialect import statement
from bethink.store.sql.search.terms import FIND_MODEL, SELECT_MODELS, SLOTS_OF_ROWS

if TYPE_CHECKING:
    PackedBits = NDArray[np.uint8]
    BitColumns = NDArray[np.uint64]
    Float16Matrix = NDArray[np.float16]
    IntArray = NDArray[np.int64]
    Distances = NDArray[np.uint16]


_STORED_DTYPE = "<f2"
BYTES_PER_VALUE = 2
BIT_PLANES = 4
_SCANNED_AT_ONCE = 32_768  # vectors
_INFINITE = 0x7C00  # the exponent of a half that is no finite number


def packed_width(dim: int) -> int:
    """Return how many bytes the sign bits of one vector take."""
    return (dim + 7) // 8


def to_float16_rows(vectors: Sequence[NDArray[np.float32]], dim: int) -> Float16Matrix:
    """Convert vectors to the stored float16 rows; reject wrong shapes and non-finite values."""
    for vector in vectors:
        if vector.shape != (dim,):
            raise ModelError(f"a vector has the shape {vector.shape}, not ({dim},)")
    rows = np.stack(vectors).astype(_STORED_DTYPE)
    if not np.isfinite(rows).all():
        raise ModelError("the embedder returned a vector with non-finite values")
    return rows


def from_stored_rows(stored: Iterable[object], dim: int) -> Float16Matrix:
    """Decode stored vectors, one a row; one that rot has made none is zero."""
    size = dim * BYTES_PER_VALUE
    whole = (one if isinstance(one, bytes) and len(one) == size else bytes(size) for one in stored)
    rows = np.frombuffer(b"".join(whole), dtype=_STORED_DTYPE).reshape(-1, dim)
    if _INFINITE in (infinite := rows.view(np.int16) & _INFINITE):
        rows = np.where((infinite == _INFINITE).any(axis=1)[:, None], np.float16(0), rows)
    return rows


def pack_signs(rows: Float16Matrix) -> PackedBits:
    """Pack the signs of each row, eight to a byte; the last byte is padded with zeros."""
    return np.packbits(rows > 0, axis=1)


def zero_rows(rows: Float16Matrix) -> NDArray[np.bool_]:
    """Return which rows are zero vectors."""
    return np.logical_not(rows.any(axis=1))


def to_bit_columns(packed: PackedBits) -> BitColumns:
    """Transpose packed rows: one column per row, 64 signs to a number.

    Numbers that are compared one after the other are then adjacent: eight times as fast.
    """
    wide = np.zeros((len(packed), -(-packed.shape[1] // 8) * 8), np.uint8)
    wide[:, : packed.shape[1]] = packed
    return np.ascontiguousarray(wide.view(np.uint64).T)


def hamming_distances(query: PackedBits, stored: BitColumns) -> Distances:
    """Return in how many signs each column differs from the query.

    A stretch at a time, whose intermediate results stay in the processor's cache.
    """
    asked = to_bit_columns(query[np.newaxis])
    count = stored.shape[1]
    distances: Distances = np.empty(count, np.uint16)
    differing = np.empty((len(stored), min(count, _SCANNED_AT_ONCE)), np.uint64)
    ones = np.empty(differing.shape, np.uint8)
    for start in range(0, count, _SCANNED_AT_ONCE):
        end = min(start + _SCANNED_AT_ONCE, count)
        part, part_ones = differing[:, : end - start], ones[:, : end - start]
        np.bitwise_xor(stored[:, start:end], asked, out=part)
        np.bitwise_count(part, out=part_ones)
        np.add.reduce(part_ones, axis=0, dtype=np.uint16, out=distances[start:end])
    return distances


def query_bit_planes(query: NDArray[np.float32]) -> list[PackedBits]:
    """Quantise a query to planes of bits, the signs first.

    Its largest hundredth is clipped, so that one outlier does not coarsen the rest.
    """
    largest = np.sort(np.abs(query))[int(0.99 * (len(query) - 1))] or np.abs(query).max()
    step = 2.0 * float(largest) / 2**BIT_PLANES
    levels = np.floor(query / step) + 2 ** (BIT_PLANES - 1)
    whole = np.clip(levels, 0, 2**BIT_PLANES - 1).astype(np.uint8)
    return [np.packbits((whole >> bit) & 1) for bit in reversed(range(BIT_PLANES))]


def float16_to_float32(rows: Float16Matrix) -> NDArray[np.float32]:
    """Convert float16 to float32, several times faster than ``astype``.

    A half's exponent and digits, moved to where a float32 has them, make the number 2**112
    times too small: exact for every finite half.
    """
    wide = rows.view(np.int16).astype(np.int32)
    wide <<= 13
    wide &= np.int32(-0x7000_0001)
    numbers = wide.view(np.float32)
    numbers *= np.float32(2.0**112)
    return numbers


SLOTS_PER_CHUNK = 4_096
RID_DTYPE, RID_BYTES = "<i8", 8
# A chunk that replaces another must have another version for the cache. A high start also
# keeps the number eight bytes long, so that SQLite updates it without moving the blobs.
_NEW_VERSION = "((random() & 0x3fffffffffffffff) | 0x4000000000000000)"

_ROW_BITS = 40
ROW_MASK = (1 << _ROW_BITS) - 1  # of a key: its row id; above it stands the passage's number


class StoredModel(NamedTuple):
    """An embedder whose vectors are stored: how many there are, and how many of passages."""

    mid: int
    name: str
    dim: int
    slots: int
    passages: int

    @property
    def memories(self) -> int:
        """How many revisions of memories have a vector."""
        return self.slots - self.passages


def _vectors_of(rid: int, embedding: Embedding) -> Iterator[tuple[int, int, Embedding, int]]:
    """Yield of a memory's own vector, and of each passage: key, row, itself, its passages."""
    yield rid, rid, embedding, len(embedding.passages)
    for number, passage in enumerate(embedding.passages, start=1):
        yield number << _ROW_BITS | rid, rid, passage, 0


def stored_models(db: Database) -> list[StoredModel]:
    """Return all models with vectors here, the largest first."""
    return [_to_model(row) for row in select(db, f"{SELECT_MODELS} ORDER BY slots DESC, mid")]


def find_model(db: Database, name: str) -> StoredModel | None:
    """Return the model of that name, if any vector was ever stored for it."""
    rows = select(db, FIND_MODEL, (name,))
    return _to_model(rows[0]) if rows else None


def _to_model(row: Row) -> StoredModel:
    model = StoredModel(*row)
    if tuple(map(type, row)) != (int, str, int, int, int):
        raise StoreDamaged("the table of models is damaged", remedy=REPAIR_REMEDY)
    return model


def append_vectors(db: Database, name: str, rows: Sequence[tuple[int, Embedding]]) -> None:
    """Add vectors, with those of passages; a row's earlier vectors are replaced."""
    if not rows:
        return
    remove_vectors(db, [rid for rid, _ in rows])
    model = _get_or_create_model(db, name, dim=len(rows[0][1].vector))
    new = [vector for rid, embedding in rows for vector in _vectors_of(rid, embedding)]
    halves = to_float16_rows([one.vector for _, _, one, _ in new], model.dim)
    keys = np.array([key for key, *_ in new], dtype=RID_DTYPE)
    db.executemany(
        "INSERT INTO vector (key, rid, mid, slot, data, tokens, passages, crc)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
        (
            (key, rid, model.mid, slot, data, one.tokens, passages, _checksum(data, one.tokens))
            for slot, (key, rid, one, passages), data in zip(
                range(model.slots, model.slots + len(new)), new, map(_to_bytes, halves), strict=True
            )
        ),
    )
    slots = np.arange(model.slots, model.slots + len(new))
    write_slots(db, model, slots, np.where(zero_rows(halves), -keys, keys), pack_signs(halves))
    _set_slots(db, model, model.slots + len(new), model.passages + len(new) - len(rows))


_to_bytes = methodcaller("tobytes")


def _checksum(data: bytes, tokens: bytes) -> int:
    return crc32(tokens, crc32(data))


def copy_vectors(db: Database, rid: int, from_rid: int) -> None:
    """Copy a row's vectors to another row."""
    for model in stored_models(db):
        rows = select(
            db,
            "SELECT data, tokens, passages FROM vector WHERE rid = ? AND mid = ? ORDER BY key",
            (from_rid, model.mid),
        )
        if not rows:
            continue
        vectors = from_stored_rows((stored for stored, _, _ in rows), model.dim).astype(np.float32)
        own, *passages = (
            Embedding(vector, as_bytes(tokens))
            for vector, (_, tokens, _) in zip(vectors, rows, strict=True)
        )
        append_vectors(db, model.name, [(rid, own._replace(passages=tuple(passages)))])
        if rows[0][2] is None:
            db.execute("UPDATE vector SET passages = NULL WHERE key = ?", (rid,))


def remove_vectors(db: Database, rids: Sequence[int]) -> None:
    """Remove vectors and clear all of their bits."""
    if not rids:
        return
    found: dict[int, list[int]] = {}
    passages: Counter[int] = Counter()
    wanted = as_table(np.array(rids, dtype=np.int64))
    for mid, slot, is_passage in select(db, SLOTS_OF_ROWS, (wanted,)):
        found.setdefault(mid, []).append(slot)
        passages[mid] += is_passage
    if not found:
        return  # as for every new memory
    db.executemany("DELETE FROM vector WHERE rid = ?", ((rid,) for rid in rids))
    for model in stored_models(db):
        if model.mid in found:
            _close_gaps(db, model, found[model.mid], model.passages - passages[model.mid])


# Gives a chunk a new version, or creates it.
_TOUCH_CHUNK = statement(
    f"""
    INSERT INTO chunk (mid, number, version, bits, rids)
    VALUES (?, ?, {_NEW_VERSION}, zeroblob(?), zeroblob(?))
    ON CONFLICT (mid, number) DO UPDATE SET version = version + 1 RETURNING cid
    """,
    """
    INSERT INTO bethink.chunk (space_id, cid, mid, number, version)
    VALUES (:space, (?1::bigint << 32) + ?2::bigint, ?1, ?2,
        (random() * 4611686018427387904)::bigint)
    ON CONFLICT (space_id, mid, number) DO UPDATE SET version = chunk.version + 1
    """,
)
# On a server each slot is a row of its own; the keys come with the highest byte first.
_PUT_SLOT = """
    INSERT INTO chunk_slot (cid, place, key, bits) VALUES (?, ?, ?, ?)
    ON CONFLICT (cid, place) DO UPDATE SET key = excluded.key, bits = excluded.bits
"""
_ZEROS = "decode(repeat('00', {}), 'hex')"
_CHUNK_OF_SLOTS = f"""
    SELECT c.{{first}},
        coalesce(s.bits, ''::bytea) || {_ZEROS.format(f"({SLOTS_PER_CHUNK} - s.used) * s.width")},
        coalesce(s.keys, ''::bytea) || {_ZEROS.format(f"({SLOTS_PER_CHUNK} - s.used) * 8")}
    FROM bethink.chunk AS c CROSS JOIN LATERAL (
        SELECT string_agg(p.bits, ''::bytea ORDER BY p.place) AS bits,
            string_agg(int8send(p.key), ''::bytea ORDER BY p.place) AS keys,
            count(*)::int AS used, coalesce(max(length(p.bits)), 0) AS width
        FROM bethink.chunk_slot AS p WHERE p.space_id = :space AND p.cid = c.cid) AS s
    WHERE c.space_id = :space AND c.{{by}} = ?1
"""
_SELECT_CHUNK = statement(
    "SELECT version, bits, rids FROM chunk WHERE cid = ?",
    _CHUNK_OF_SLOTS.format(first="version", by="cid"),
)
_SELECT_CHUNKS = statement(
    "SELECT number, bits, rids FROM chunk WHERE mid = ?",
    _CHUNK_OF_SLOTS.format(first="number", by="mid"),
)


def read_chunk(db: Database, cid: int, model: StoredModel) -> tuple[int, IntArray, BitColumns]:
    """Return the version, keys and bits of a chunk, without free slots and zero vectors."""
    version, stored_bits, stored_keys = select(db, _SELECT_CHUNK, (cid,))[0]
    width = packed_width(model.dim)
    sizes = (len(as_bytes(stored_keys)), len(as_bytes(stored_bits)))
    if sizes != (SLOTS_PER_CHUNK * RID_BYTES, SLOTS_PER_CHUNK * width):
        raise StoreDamaged("a chunk of vectors is damaged", remedy=REPAIR_REMEDY)
    keys = np.frombuffer(stored_keys, dtype=RID_DTYPE)
    found = np.flatnonzero(keys > 0)
    matrix = np.frombuffer(stored_bits, dtype=np.uint8).reshape(SLOTS_PER_CHUNK, width)
    return version, keys[found], to_bit_columns(matrix[found])


SELECT_VECTORS = (
    "SELECT v.key, v.data FROM carray(?) AS w CROSS JOIN vector AS v ON v.key = w.value"
)


def read_vectors(db: Database, keys: IntArray, dim: int) -> Float16Matrix:
    """Read the stored vectors with these keys, in their order."""
    if not len(keys):
        return np.empty((0, dim), dtype=np.float16)
    # In the order of the file.
    order = np.argsort(keys)
    rows = select_readable(db, SELECT_VECTORS, keys[order], bind=as_table)
    vectors = np.empty((len(keys), dim), dtype=np.float16)
    if len(rows) != len(keys):
        if not met_unreadable(db, forget=False):
            missing = "the chunks refer to missing vectors"
            raise StoreDamaged(missing, remedy=REPAIR_REMEDY)
        known: dict[int, object] = dict(rows)  # what cannot be read is zero, and found last
        rows = [(key, known.get(key)) for key in keys[order].tolist()]
    vectors[order] = from_stored_rows((stored for _, stored in rows), dim)
    return vectors


def drop_model(db: Database, model: StoredModel) -> None:
    """Remove a model with all its vectors."""
    db.execute("DELETE FROM chunk WHERE mid = ?", (model.mid,))
    db.execute("DELETE FROM vector WHERE mid = ?", (model.mid,))
    db.execute("DELETE FROM model WHERE mid = ?", (model.mid,))


# Memories whose vectors are not all there: passages that no memory's own vector counts, or
# fewer than it counts.
_INCOMPLETE = """
    SELECT rid FROM vector WHERE mid = ?1 GROUP BY rid
    HAVING count(*) <> 1 + coalesce(max(CASE WHEN key = rid THEN passages END), 0)
    OR max(CASE WHEN key = rid THEN 1 ELSE 0 END) = 0
"""
_COUNT_PASSAGES = "SELECT count(*) FROM vector WHERE mid = ? AND key <> rid"


def rebuild_chunks(db: Database) -> None:
    """Rebuild all chunks from the stored vectors.

    Vectors that are not what was stored cannot be repaired: they are removed, with the others
    of their memories, which count as not embedded.
    """
    for table in ("chunk", "vector", "model"):
        db.execute(f"DELETE FROM {table} WHERE mid NOT IN ({_SOUND_MODELS})")
    for model in stored_models(db):
        db.execute("DELETE FROM chunk WHERE mid = ?", (model.mid,))
        damaged = [(key,) for key in _damaged_keys(db, model)]
        db.executemany("DELETE FROM vector WHERE key = ?", damaged)
        db.execute(f"DELETE FROM vector WHERE mid = ?1 AND rid IN ({_INCOMPLETE})", (model.mid,))
        slots = passages = 0
        for first, rows in _vector_batches(db, model):
            # Slots only move down, so no two rows share one.
            db.executemany(
                "UPDATE vector SET slot = ? WHERE key = ?",
                ((first + number, key) for number, (key, _, _) in enumerate(rows)),
            )
            slots = first + len(rows)
            passages += sum(key > ROW_MASK for key, _, _ in rows)
            coded = _to_slots(((key, stored) for key, _, stored in rows), model)
            write_slots(db, model, np.arange(first, slots), *coded)
        _set_slots(db, model, slots, passages)
        if not slots:
            drop_model(db, model)


def write_chunks(db: Database) -> None:
    """Write the bits of all vectors as they are, into a store that has none."""
    db.execute("DELETE FROM chunk")
    for model in stored_models(db):
        for first, rows in _vector_batches(db, model):
            coded = _to_slots(((key, stored) for key, _, stored in rows), model)
            write_slots(db, model, np.arange(first, first + len(rows)), *coded)


_SELECT_WHOLE = """
    SELECT key, data, tokens, crc FROM vector WHERE mid = ? AND key > ? ORDER BY key LIMIT 512
"""
_SOUND_MODELS = "SELECT mid FROM model WHERE dim BETWEEN 1 AND 65536"


def _damaged_keys(db: Database, model: StoredModel) -> list[int]:
    """Return the keys of vectors that are not what was stored."""
    size = model.dim * BYTES_PER_VALUE
    damaged: list[int] = []
    after = -1
    while rows := select(db, _SELECT_WHOLE, (model.mid, after)):
        for key, data, tokens, crc in rows:
            sound = isinstance(data, bytes) and isinstance(tokens, bytes) and len(data) == size
            sound = sound and _INFINITE not in (np.frombuffer(data, np.int16) & _INFINITE)
            if not sound or (crc is not None and crc != _checksum(data, tokens)):
                damaged.append(key)
        after = rows[-1][0]
    return damaged


def remove_damaged(db: Database) -> int:
    """Remove all vectors of memories that have a damaged one; return how many memories."""
    models = stored_models(db)
    rids = sorted({key & ROW_MASK for model in models for key in _damaged_keys(db, model)})
    remove_vectors(db, rids)
    return len(rids)


def verify_chunks(db: Database) -> list[str]:
    """Return the inconsistencies between vectors and chunks, as messages."""
    problems = []
    for model in stored_models(db):
        if damaged := len(_damaged_keys(db, model)):
            problems.append(f"{damaged:,} vectors of {model.name} are damaged")
        misplaced = _count_misplaced(db, model)
        if misplaced:
            problems.append(f"{misplaced:,} vectors of {model.name} do not match their chunk")
        incomplete = db.execute(f"SELECT count(*) FROM ({_INCOMPLETE})", (model.mid,)).get
        counted = db.execute(_COUNT_PASSAGES, (model.mid,)).get
        if incomplete or counted != model.passages:
            problems.append(f"vectors of passages of {model.name} are missing or not counted")
    unknown = db.execute("SELECT count(*) FROM vector WHERE mid NOT IN (SELECT mid FROM model)").get
    if unknown:
        problems.append(f"{unknown:,} vectors have no model")
    return problems


def _get_or_create_model(db: Database, name: str, dim: int) -> StoredModel:
    model = find_model(db, name)
    if model is None:
        sql = "INSERT INTO model (name, dim) VALUES (?, ?) RETURNING mid"
        return StoredModel(db.execute(sql, (name, dim)).get, name, dim, 0, 0)
    if model.dim != dim:
        raise ModelError(
            f"vectors of {name} have {model.dim} dimensions here, not {dim}",
            remedy="give the changed model another name, then: bethink reindex",
        )
    return model


def _set_slots(db: Database, model: StoredModel, slots: int, passages: int) -> None:
    db.execute(
        "UPDATE model SET slots = ?, passages = ? WHERE mid = ?", (slots, passages, model.mid)
    )
    if slots < model.slots:
        end = -(-slots // SLOTS_PER_CHUNK)
        db.execute("DELETE FROM chunk WHERE mid = ? AND number >= ?", (model.mid, end))


def _close_gaps(db: Database, model: StoredModel, gaps: Sequence[int], passages: int) -> None:
    """Move the last vectors into the freed slots, and clear the end."""
    kept = model.slots - len(gaps)
    free = sorted(slot for slot in gaps if slot < kept)
    movers = select(
        db,
        "SELECT key, data FROM vector WHERE mid = ? AND slot >= ? ORDER BY slot",
        (model.mid, kept),
    )
    if len(movers) != len(free):
        # Slots and rows were inconsistent before this call.
        rebuild_chunks(db)
        return
    db.executemany(
        "UPDATE vector SET slot = ? WHERE key = ?",
        ((slot, key) for slot, (key, _) in zip(free, movers, strict=True)),
    )
    if movers:
        write_slots(db, model, np.array(free), *_to_slots(movers, model))
    end = np.arange(kept, model.slots)
    empty = np.zeros((len(end), packed_width(model.dim)), dtype=np.uint8)
    write_slots(db, model, end, np.zeros(len(end), dtype=RID_DTYPE), empty)
    _set_slots(db, model, kept, passages)


def _to_slots(rows: Iterable[Row], model: StoredModel) -> tuple[IntArray, PackedBits]:
    """Return the keys and bits of stored vectors as a chunk has them."""
    keys, stored = zip(*rows, strict=True)
    halves, found = from_stored_rows(stored, model.dim), np.array(keys, dtype=RID_DTYPE)
    return np.where(zero_rows(halves), -found, found), pack_signs(halves)


def write_slots(
    db: Database, model: StoredModel, slots: IntArray, keys: IntArray, packed: PackedBits
) -> None:
    """Write keys and bits into slots (ascending), creating chunks where needed."""
    wide = packed_width(model.dim)
    sizes = (SLOTS_PER_CHUNK * wide, SLOTS_PER_CHUNK * RID_BYTES)
    for number in np.unique(slots // SLOTS_PER_CHUNK).tolist():
        cid: int = db.execute(_TOUCH_CHUNK, (model.mid, number, *sizes)).get
        inside = np.flatnonzero(slots // SLOTS_PER_CHUNK == number)
        if not isinstance(db, apsw.Connection):
            cid = (model.mid << 32) + number  # as it says
            places = (slots[inside] % SLOTS_PER_CHUNK).tolist()
            rows = zip(places, keys[inside].tolist(), packed[inside], strict=True)
            db.executemany(_PUT_SLOT, [(cid, at, key, bits.tobytes()) for at, key, bits in rows])
            continue
        # One write for each run of neighbouring slots.
        runs = np.split(inside, np.flatnonzero(np.diff(slots[inside]) != 1) + 1)
        with (
            db.blob_open("main", "chunk", "bits", cid, True) as bits_blob,
            db.blob_open("main", "chunk", "rids", cid, True) as keys_blob,
        ):
            for run in runs:
                at = int(slots[run[0]]) % SLOTS_PER_CHUNK
                bits_blob.seek(at * wide)
                bits_blob.write(packed[run].tobytes())
                keys_blob.seek(at * RID_BYTES)
                keys_blob.write(keys[run].astype(RID_DTYPE).tobytes())


def _vector_batches(
    db: Database, model: StoredModel
) -> Iterator[tuple[int, list[tuple[int, int, bytes]]]]:
    """Yield all vectors of a model in slot order, one chunk's worth at a time.

    Each batch comes with the slot that its first vector would have if there were no gaps.
    """
    first, after = 0, -1
    while True:
        rows = select(
            db,
            "SELECT key, slot, data FROM vector WHERE mid = ? AND slot > ?"
            f" ORDER BY slot LIMIT {SLOTS_PER_CHUNK}",
            (model.mid, after),
        )
        if not rows:
            return
        yield first, [(key, slot, stored) for key, slot, stored in rows]
        first += len(rows)
        after = rows[-1][1]


def _count_misplaced(db: Database, model: StoredModel) -> int:
    """Count the slots in which rows and chunks disagree."""
    sizes = (SLOTS_PER_CHUNK * packed_width(model.dim), SLOTS_PER_CHUNK * RID_BYTES)
    chunks = {
        number: (np.frombuffer(bits, np.uint8).reshape(SLOTS_PER_CHUNK, -1), keys)
        for number, bits, keys in (
            (number, bits, np.frombuffer(keys, RID_DTYPE))
            for number, bits, keys in raw_chunks(db, model)
            if (len(bits), len(keys)) == sizes
        )
    }
    wrong = seen = 0
    for first, rows in _vector_batches(db, model):
        seen += len(rows)
        known = chunks.get(first // SLOTS_PER_CHUNK)  # a batch is what a chunk should hold
        if known is None:
            wrong += len(rows)
            continue
        signed, packed = _to_slots(((key, stored) for key, _, stored in rows), model)
        right = np.array([slot for _, slot, _ in rows]) == np.arange(first, first + len(rows))
        right &= (known[0][: len(rows)] == packed).all(axis=1) & (known[1][: len(rows)] == signed)
        wrong += int(np.count_nonzero(~right))
    filled = sum(int(np.count_nonzero(keys)) for _, keys in chunks.values())
    return wrong + abs(filled - seen) + abs(model.slots - seen)


def raw_chunks(db: Database, model: StoredModel) -> list[tuple[int, bytes, bytes]]:
    """Return the number, bits and keys of each chunk as they are stored."""
    rows = select(db, _SELECT_CHUNKS, (model.mid,))
    return [(number, as_bytes(bits), as_bytes(rids)) for number, bits, rids in rows]
