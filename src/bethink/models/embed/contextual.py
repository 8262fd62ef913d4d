"""Contextual token vectors for late interaction, and their quantised stored form.

Of a token's unit vector x only the signs b are kept, and its projection on them, x·b. The
dot product with a query vector q is then estimated as q·b / x·b (after Gao & Long, SIGMOD
2024): no loss in the rankings measured, in 52 bytes instead of 1,536. Sentences are few, so
theirs are int8 vectors.

The row: format, sentences (a byte each), tokens, dimensions (two bytes each,
little-endian), then the sentences' vectors, the tokens' projections (float32), the tokens'
signs.
"""

from __future__ import annotations

import math
import mmap
import os
import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from importlib import import_module
from itertools import groupby
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any, Self

from bethink.core.arrays import Matrix, NDArray, Vector, normalise, np
from bethink.core.blas import ONE_BLAS_THREAD
from bethink.core.lazy import lazy_pattern
from bethink.core.named_tuple import NamedTuple
from bethink.errors import ModelError
from bethink.models.embed.tokenizers import TextPieces

if TYPE_CHECKING:
    AnyArray = NDArray[Any]
    _RunLayers = Callable[[NDArray[np.float32]], NDArray[np.float32]]


_FORMAT_VERSION = 1
_HEADER = struct.Struct("<BBHH")
_SENTENCE_LEVELS = 127
# Integer values of a query: sums of 512 of them are exact in float32, so the order of
# addition does not matter.
_QUERY_LEVELS = 16_383
_TOKENS_PER_STEP = 128  # as floats they stay in a core's cache


def pack_contextual(tokens: Matrix, sentences: Matrix) -> bytes:
    """Pack a memory's token and sentence vectors; empty without tokens."""
    if not len(tokens):
        return b""
    vectors = normalise(tokens.astype(np.float32))
    header = _HEADER.pack(_FORMAT_VERSION, len(sentences), len(vectors), vectors.shape[1])
    peaks = np.abs(sentences).max(axis=1, keepdims=True)
    rounded = np.rint(sentences * (_SENTENCE_LEVELS / np.maximum(peaks, 1e-30))).astype(np.int8)
    reaches = np.abs(vectors).sum(axis=1).astype("<f4")
    return b"".join(
        (header, rounded.tobytes(), reaches.tobytes(), np.packbits(vectors > 0, axis=1).tobytes())
    )


# One memory's row: its place among the memories, the row, how many sentences and tokens it
# has, and where the projections and the signs begin.
_PackedRow = tuple[int, bytes, int, int, int, int]


def best_contextual_matches(query: Matrix, memories: Sequence[bytes]) -> Matrix:
    """Return for each memory (rows) the best cosine per query vector (columns)."""
    best = np.zeros((len(memories), len(query)), dtype=np.float32)
    packed = _find_parts(memories, query.shape[1]) if len(query) else []
    if not packed:
        return best
    reaches = b"".join([row[first:last] for _, row, _, _, first, last in packed])
    projections = np.frombuffer(reaches, "<f4")
    signs = np.frombuffer(b"".join([row[last:] for _, row, _, _, _, last in packed]), np.uint8)
    cosines = _project_on_signs(query, signs.reshape(len(projections), -1))
    cosines /= projections[:, np.newaxis]
    starts = _starts([tokens for _, _, _, tokens, _, _ in packed])
    best[[place for place, *_ in packed]] = np.maximum.reduceat(cosines, starts, axis=0)
    return best.clip(-1.0, 1.0)


def best_contextual_sentences(query: Vector, memories: Sequence[bytes]) -> Vector:
    """Return for each memory the best cosine of its sentences with the query."""
    best = np.zeros(len(memories), dtype=np.float32)
    packed = _find_parts(memories, len(query))
    if not packed:
        return best
    whole = b"".join([row[_HEADER.size : first] for _, row, _, _, first, _ in packed])
    values = np.frombuffer(whole, np.int8).reshape(-1, len(query)).astype(np.float32)
    starts = _starts([sentences for _, _, sentences, _, _, _ in packed])
    best[[place for place, *_ in packed]] = np.maximum.reduceat(normalise(values) @ query, starts)
    return best.clip(-1.0, 1.0)


def _starts(counts: Sequence[int]) -> NDArray[np.intp]:
    """Return where each of several groups begins, one after the other."""
    return np.cumsum([0, *counts[:-1]])


@cache
def _bits_of_bytes() -> NDArray[np.float32]:
    """Return the eight bits of each byte."""
    return np.unpackbits(np.arange(256, dtype=np.uint8)[:, np.newaxis], axis=1).astype(np.float32)


def _project_on_signs(query: Matrix, signs: NDArray[np.uint8]) -> Matrix:
    """Return the dot products of the query vectors with the tokens' ±1 signs."""
    width = query.shape[1]
    scale = _QUERY_LEVELS / max(float(np.abs(query).max()), 1e-30)
    whole = np.rint(query * np.float32(scale))
    # With zeros for the bits that fill up a row's last byte.
    columns = np.zeros((8 * signs.shape[1], len(query)), dtype=np.float32)
    columns[:width] = whole.T
    along = np.empty((len(signs), len(query)), dtype=np.float32)
    positive = np.empty((min(len(signs), _TOKENS_PER_STEP), *signs.shape[1:], 8), np.float32)
    for start in range(0, len(signs), _TOKENS_PER_STEP):
        some = signs[start : start + _TOKENS_PER_STEP]
        bits = np.take(_bits_of_bytes(), some, axis=0, out=positive[: len(some)], mode="clip")
        np.matmul(bits.reshape(len(some), -1), columns, out=along[start : start + len(some)])
    # The sum where the sign is + minus the sum where it is -.
    along *= 2
    along -= whole.sum(axis=1)
    along /= np.float32(scale)
    return along


def _find_parts(memories: Sequence[bytes], width: int) -> list[_PackedRow]:
    """Find the parts of the rows that are not empty; raise ModelError where one is damaged."""
    found: list[_PackedRow] = []
    sign_bytes = -(-width // 8)
    for place, memory in enumerate(memories):
        if not memory:
            continue
        if len(memory) < _HEADER.size:
            raise _damaged_error()
        form, sentences, tokens, dimensions = _HEADER.unpack_from(memory)
        first = _HEADER.size + sentences * width
        last = first + 4 * tokens
        if form != _FORMAT_VERSION or dimensions != width or not sentences or not tokens:
            raise _damaged_error()
        if len(memory) != last + tokens * sign_bytes:
            raise _damaged_error()
        found.append((place, memory, sentences, tokens, first, last))
    return found


def _damaged_error() -> ModelError:
    return ModelError("stored tokens are damaged", remedy="rebuild them with: bethink reindex")


# Late interaction uses the first tokens and sentences of a text, at most this many.
MAX_STORED_TOKENS = 256
MAX_STORED_SENTENCES = 64


class ContextualTokens(NamedTuple):
    """The token vectors of each window of a text, including the two special tokens."""

    pieces: TextPieces
    ends: Sequence[int]
    windows: Sequence[tuple[int, int]]
    vectors: Sequence[Matrix]
    width: int

    def pooled(self) -> Vector:
        """Return the normalised mean of all vectors, as the model was trained."""
        total = np.zeros(self.width, dtype=np.float32)
        for vectors in self.vectors:
            total += vectors.sum(axis=0)
        return normalise(total)

    def token_vectors(self) -> Matrix:
        """Return the vectors of the pieces, without the special tokens."""
        none = np.zeros((0, self.width), dtype=np.float32)
        return np.concatenate([none, *(vectors[1:-1] for vectors in self.vectors)])

    def sentence_vectors(self) -> Matrix:
        """Return normalised sentence means; special tokens count to the adjacent one."""
        found = []
        for (start, stop), vectors in zip(self.windows, self.vectors, strict=True):
            inner = [end - start for end in self.ends if start <= end < stop - 1]
            found.append(np.add.reduceat(vectors, [0, *(end + 2 for end in inner)], axis=0))
        return normalise(np.concatenate(found))

    def packed(self) -> bytes:
        """Return the stored form for late interaction: the first tokens and sentences."""
        if not self.vectors:
            return b""
        last = self.windows[-1][1]
        spoken = [
            place for place in self.pieces.word_positions()[:MAX_STORED_TOKENS] if place < last
        ]
        return pack_contextual(
            self.token_vectors()[spoken], self.sentence_vectors()[:MAX_STORED_SENTENCES]
        )


def join_contextual(rows: Sequence[bytes], width: int) -> bytes:
    """Return the row of a text that consists of these texts: their sentences and tokens.

    Where that is too much for a row, each text has an equal share of it, for its beginning.
    """
    parts = _find_parts(rows, width)[:MAX_STORED_SENTENCES]
    if not parts:
        return b""
    sentence_share = _equal_share([part[2] for part in parts], MAX_STORED_SENTENCES)
    token_share = _equal_share([part[3] for part in parts], MAX_STORED_TOKENS)
    vectors, reaches, signs = [], [], []
    for _, row, sentences, tokens, first, last in parts:
        begin = _HEADER.size
        vectors.append(row[begin : begin + width * min(sentences, sentence_share)])
        reaches.append(row[first : first + 4 * min(tokens, token_share)])
        signs.append(row[last : last + -(-width // 8) * min(tokens, token_share)])
    joined, projections = b"".join(vectors), b"".join(reaches)
    counts = len(joined) // width, len(projections) // 4
    header = _HEADER.pack(_FORMAT_VERSION, *counts, width)
    return b"".join((header, joined, projections, *signs))


def _equal_share(counts: Sequence[int], most: int) -> int:
    """Return how many of each may stay so that all of them are at most so many."""
    return most if sum(counts) <= most else most // len(counts)


# Rows of one length run in one batch. What so many tokens compute stays in a core's cache.
_MAX_BATCH_TOKENS = 640
# From this many runs on, several threads share them; results are bit-identical.
_MIN_PARALLEL_BATCHES = 8
max_threads = 4  # of this process
HEAD_WIDTH = 32
NORM_EPSILON = 1e-12
_GELU_SCALE, _GELU_CUBE = math.sqrt(2 / math.pi), 0.044715


# An npz file is a zip file, read here without `zipfile` and `numpy.lib.format`: start-up time.
# It ends with this, where there is no comment: of the entries their number, the size of the
# list of them, and where it begins.
_ZIP_END = struct.Struct("<4s6xHII2x")
# Of an entry in the list: method, size, lengths of its name and two more fields, its offset.
_ZIP_ENTRY = struct.Struct("<4s6xH12xIHHH8xI")
_ZIP_STORED = 0
# At the offset 30 bytes, which end with the lengths of the name and one more field, and both.
_ENTRY_HEADER_BYTES = 30
_ENTRY_LENGTHS = struct.Struct("<HH")
# Then the array: a magic number with the version, and the length of a header before the values.
_ARRAY_BEGIN = struct.Struct("<8sH")
_ARRAY_MAGIC = b"\x93NUMPY\x01\x00"
_ARRAY_HEADER = lazy_pattern(
    r"\{'descr': '([<|][a-z]\d)', 'fortran_order': False, 'shape': \(([\d, ]*)\), \}\s*"
)


def read_arrays(path: Path, names: Sequence[str] = ()) -> dict[str, AnyArray]:
    """Map arrays of an uncompressed npz file, by default all; ModelError where it is damaged."""
    try:
        with path.open("rb") as raw:
            mapped = mmap.mmap(raw.fileno(), 0, access=mmap.ACCESS_READ)
        known = dict(_zip_entries(mapped))
        return {name: _map_array(mapped, *known[name]) for name in names or known}
    except OSError as error:
        raise ModelError(f"{path} cannot be read: {error.strerror or error}") from error
    except (IndexError, KeyError, TypeError, ValueError, struct.error) as error:
        raise ModelError(f"{path} is damaged: {error}") from error


def _zip_entries(mapped: mmap.mmap) -> Iterator[tuple[str, tuple[int, int]]]:
    """Yield the name of each array, and the size and offset of its entry."""
    mark, count, size, at = _ZIP_END.unpack_from(mapped, len(mapped) - _ZIP_END.size)
    if mark != b"PK\5\6" or at + size + _ZIP_END.size != len(mapped):
        raise ValueError("its end is missing")
    for _ in range(count):
        mark, method, size, *lengths, offset = _ZIP_ENTRY.unpack_from(mapped, at)
        begin = at + _ZIP_ENTRY.size
        name = mapped[begin : begin + lengths[0]].decode("ascii")
        if mark != b"PK\1\2" or method != _ZIP_STORED:
            raise ValueError(f"{name} is compressed")
        yield name.removesuffix(".npy"), (size, offset)
        at = begin + sum(lengths)


def _map_array(mapped: mmap.mmap, size: int, offset: int) -> AnyArray:
    lengths = offset + _ENTRY_HEADER_BYTES - _ENTRY_LENGTHS.size
    begin = offset + _ENTRY_HEADER_BYTES + sum(_ENTRY_LENGTHS.unpack_from(mapped, lengths))
    magic, header_size = _ARRAY_BEGIN.unpack_from(mapped, begin)
    values = begin + _ARRAY_BEGIN.size + header_size
    header = mapped[begin + _ARRAY_BEGIN.size : values].decode("latin-1")
    found = _ARRAY_HEADER.fullmatch(header)
    if magic != _ARRAY_MAGIC or found is None:
        raise ValueError("an array has another format")
    shape = [int(number) for number in found[2].split(",") if number.strip()]
    dtype = np.dtype(found[1])
    if values + math.prod(shape) * dtype.itemsize != begin + size:
        raise ValueError("an array has another size")
    return np.frombuffer(mapped, dtype, math.prod(shape), values).reshape(shape)


class _EncoderLayer(NamedTuple):
    """One layer's weights, ready for products from the left."""

    inputs: Matrix
    inputs_bias: Vector
    output: Matrix
    output_bias: Vector
    attention_norm: tuple[Vector, Vector]
    inner: Matrix
    inner_bias: Vector
    outer: Matrix
    outer_bias: Vector
    norm: tuple[Vector, Vector]


class EncoderNetwork:
    """A small BERT in NumPy: an int8 table times a mixing matrix, and pruned layers.

    A batch has rows of one length; a row gets the same bits alone and in any batch.
    """

    def __init__(self, weights: Mapping[str, AnyArray], path: Path) -> None:
        """Set the weights by their names in the file; errors name its path."""
        self._table, self._table_scale = weights["table"], weights["table_scale"]
        first = ("mix", "places", "ln_w", "ln_b")
        room = _Room(sum(weights[name].size for name in first))
        self._mix, self._places, *norm = (room.place(weights[name]) for name in first)
        self._norm = (norm[0], norm[1])
        self._layers = _Layers(weights, path)
        self._run_layers: _RunLayers = self._run_by_numpy
        self._batch_tokens = _MAX_BATCH_TOKENS

    def run_layers_by(self, run: _RunLayers) -> None:
        """Have the layers run by something else, which gets one text at a time."""
        self._run_layers, self._batch_tokens = run, 1

    @classmethod
    def load(cls, path: Path) -> Self:
        """Read a file of weights; raise ModelError where it is missing or damaged."""
        arrays = read_arrays(path)
        try:
            return cls(arrays, path)
        except (KeyError, ValueError) as error:
            raise ModelError(f"{path} is damaged: {error}") from error

    @property
    def window(self) -> int:
        """The maximum number of tokens of a row."""
        return len(self._places)

    def encode(self, rows: Sequence[Sequence[int]]) -> list[Matrix]:
        """Return the token vectors of each row of token ids: length × width."""
        with ONE_BLAS_THREAD:
            return _run_batched(self._run, rows, self._batch_tokens)

    def embed_pieces(self, ids: NDArray[np.int64]) -> NDArray[np.float32]:
        """Return the vectors that pieces have at their places, before any layer."""
        rows: NDArray[np.float32] = self._table[ids] * self._table_scale[ids][..., np.newaxis]
        states = _product(rows, self._mix)
        states += self._places[: ids.shape[1]]
        return states

    def _run(self, ids: NDArray[np.int64]) -> NDArray[np.float32]:
        states = self.embed_pieces(ids)
        _layer_norm(states, *self._norm)
        return self._run_layers(states)

    def _run_by_numpy(self, states: NDArray[np.float32]) -> NDArray[np.float32]:
        for layer in self._layers:
            seen = _attend(states, layer)
            seen += states
            _layer_norm(seen, *layer.attention_norm)
            inner = _product(seen, layer.inner)
            inner += layer.inner_bias
            states = _product(_gelu(inner), layer.outer)
            states += layer.outer_bias
            states += seen
            _layer_norm(states, *layer.norm)
        return states


def _run_batched(
    run: Callable[[NDArray[np.int64]], NDArray[np.float32]],
    rows: Sequence[Sequence[int]],
    most_tokens: int,
) -> list[Matrix]:
    """Run the network on each row of token ids; return the outputs in order.

    Rows of one length run together, up to so many tokens: nothing is padded, and a row gets
    the same bits in any batch.
    """
    batches = list(_batches_by_length(rows, most_tokens))

    def together(batch: list[int]) -> NDArray[np.float32]:
        return run(np.array([rows[place] for place in batch], dtype=np.int64))

    made: dict[int, Matrix] = {}
    for batch, states in zip(batches, _run_batches(together, batches), strict=True):
        made.update(zip(batch, states, strict=True))
    return [made[place] for place in range(len(rows))]


def _batches_by_length(rows: Sequence[Sequence[int]], most_tokens: int) -> Iterator[list[int]]:
    """Yield row positions in batches of equal length, up to the token limit."""
    by_length = sorted(range(len(rows)), key=lambda place: len(rows[place]))
    for length, same in groupby(by_length, key=lambda place: len(rows[place])):
        places = list(same)
        most = max(1, most_tokens // length)
        yield from (places[start : start + most] for start in range(0, len(places), most))


def _run_batches(
    run: Callable[[list[int]], NDArray[np.float32]], batches: list[list[int]]
) -> Iterator[NDArray[np.float32]]:
    """Run the batches in order, on several threads where that pays off."""
    threads = min(max_threads, os.cpu_count() or 1)
    if threads < 2 or len(batches) < _MIN_PARALLEL_BATCHES:
        yield from map(run, batches)
        return
    from concurrent.futures import ThreadPoolExecutor  # start-up time: a question needs none

    with ThreadPoolExecutor(threads) as pool:
        yield from pool.map(run, batches)


@cache
def _has_steady_products() -> bool:
    """Whether BLAS adds up each value in the same order, wherever its row is in a product.

    OpenBLAS does with AVX-512. On other processors the order depends on the place of a row,
    and of other libraries nothing is known.
    """
    core = import_module("numpy._core._multiarray_umath")
    processor: Mapping[str, bool] = getattr(core, "__cpu_features__", {})
    built: Any = getattr(np.__config__, "CONFIG", {})
    library = built.get("Build Dependencies", {}).get("blas", {}).get("name", "")
    chosen = os.environ.get("OPENBLAS_CORETYPE", "SkylakeX")
    return processor.get("AVX512_SKX", False) and "openblas" in library and chosen == "SkylakeX"


# With so many multiplications OpenBLAS does without a copy of the weights. Below so many
# columns at a time the copy costs less.
_SMALL_PRODUCT, _MIN_COLUMNS = 1_000_000, 64


def _product(states: NDArray[np.float32], weights: Matrix) -> NDArray[np.float32]:
    """Return every token's values times the weights."""
    if not _has_steady_products():
        return states @ weights  # one product a row: the same call gives the same bits
    rows, length, width = states.shape
    tokens, columns = states.reshape(rows * length, width), weights.shape[1]
    step = _SMALL_PRODUCT // tokens.size // 16 * 16
    if not _MIN_COLUMNS <= step < columns:
        return (tokens @ weights).reshape(rows, length, columns)
    made = np.empty((len(tokens), columns), np.float32)
    step = -(-columns // -(-columns // step) // 16) * 16  # parts of about one size
    for start in range(0, columns, step):
        some = slice(start, start + step)
        np.matmul(tokens, weights[:, some], out=made[:, some])
    return made.reshape(rows, length, columns)


def _attend(states: NDArray[np.float32], layer: _EncoderLayer) -> NDArray[np.float32]:
    """Return what every token sees of the others, over all heads."""
    rows, length, _ = states.shape
    made = _product(states, layer.inputs)
    made += layer.inputs_bias
    parts = made.reshape(rows, length, 3, -1, HEAD_WIDTH).transpose(2, 0, 3, 1, 4)
    query, key, value = parts
    shares = query @ key.swapaxes(2, 3)
    shares -= np.maximum.reduce(shares, axis=3, keepdims=True)
    np.exp(shares, out=shares)
    shares /= np.add.reduce(shares, axis=3, keepdims=True)
    seen = (shares @ value).transpose(0, 2, 1, 3).reshape(rows, length, -1)
    mixed = _product(seen, layer.output)
    mixed += layer.output_bias
    return mixed


def _gelu(values: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return the tanh form of GELU, in place."""
    bent = values * values
    bent *= _GELU_CUBE
    bent += 1
    bent *= values
    bent *= _GELU_SCALE
    np.tanh(bent, out=bent)
    bent += 1
    bent *= values
    bent *= 0.5
    return bent


def _layer_norm(states: NDArray[np.float32], gain: Vector, shift: Vector) -> None:
    """Normalise every token's values, in place."""
    width = np.float32(states.shape[-1])
    states -= np.add.reduce(states, axis=-1, keepdims=True) / width
    spread = np.sqrt(np.vecdot(states, states)[..., np.newaxis] / width + NORM_EPSILON)
    states /= spread
    states *= gain
    states += shift


class _Layers:
    """The weights of the layers, read for the first text one at a time into the same memory.

    A command encodes one text, and getting memory for all layers takes longer than filling
    it. From the second text on all are kept. Thread-safe.
    """

    def __init__(self, weights: Mapping[str, AnyArray], path: Path) -> None:
        self._weights, self._path = weights, path
        self._sizes: dict[str, int] = {}
        for name, array in weights.items():
            if name.startswith("layers."):
                layer = name[: name.rindex(".") + 1]
                self._sizes[layer] = self._sizes.get(layer, 0) + array.size
        self._order = [f"layers.{number}." for number in range(len(self._sizes))]
        if not self._order or self._order != sorted(
            self._sizes, key=lambda name: int(name.split(".")[1])
        ):
            raise ValueError("layers are missing")
        self._kept: list[_EncoderLayer] = []
        self._lock = Lock()
        self._was_read = False

    def __iter__(self) -> Iterator[_EncoderLayer]:
        with self._lock:
            if self._was_read and not self._kept:
                room = _Room(sum(self._sizes.values()))
                self._kept = [self._read(layer, room) for layer in self._order]
            self._was_read = True
            return iter(self._kept) if self._kept else self._read_in_turn()

    def _read_in_turn(self) -> Iterator[_EncoderLayer]:
        room = _Room(max(self._sizes.values()))
        for layer in self._order:
            room.clear()
            yield self._read(layer, room)

    def _read(self, layer: str, room: _Room) -> _EncoderLayer:
        try:
            return _read_layer(self._weights, layer, room)
        except (KeyError, ValueError) as error:
            raise ModelError(f"{self._path} is damaged: {error}") from error


_SIGN_AND_MANTISSA, _EXPONENT_SHIFT = -0x7000_0001, 2.0**112
_LARGE_PAGES_FROM = 2**20  # values: NumPy asks the system for large pages from 4 MB on


class _Room:
    """Memory for weights as float32: one piece, which the system gives in large pages.

    Page by page it would take three times as long to fill: start-up time.
    """

    def __init__(self, values: int) -> None:
        self._all = np.empty(max(values, _LARGE_PAGES_FROM), dtype=np.float32)[:values]
        self._used = 0

    def clear(self) -> None:
        """Let what comes take the place of all that was placed."""
        self._used = 0

    def place(self, *parts: AnyArray) -> NDArray[np.float32]:
        """Place arrays, joined along the last axis, halves five times faster than ``astype``.

        A half's exponent and mantissa, moved to their float32 positions, make the number
        2**112 times too small: exact for every finite half.
        """
        shape = (*parts[0].shape[:-1], sum(part.shape[-1] for part in parts))
        begin, self._used = self._used, self._used + math.prod(shape)
        made = self._all[begin : self._used].reshape(shape)
        halves = all(part.dtype == np.float16 for part in parts)
        target = made.view(np.int32) if halves else made
        at = 0
        for part in parts:
            width = part.shape[-1]
            target[..., at : at + width] = part.view(np.int16) if halves else part
            at += width
        if halves:
            target <<= 13
            target &= _SIGN_AND_MANTISSA
            made *= _EXPONENT_SHIFT
        return made


def _read_layer(weights: Mapping[str, AnyArray], name: str, room: _Room) -> _EncoderLayer:
    def part(*shorts: str) -> NDArray[np.float32]:
        return room.place(*(weights[name + short] for short in shorts))

    def turned(*shorts: str) -> NDArray[np.float32]:
        return room.place(*(weights[name + short].T for short in shorts))

    scale = np.float32(HEAD_WIDTH**-0.5)
    inputs, inputs_bias = turned("q_w", "k_w", "v_w"), part("q_b", "k_b", "v_b")
    queries = len(weights[name + "q_w"])
    inputs[:, :queries] *= scale
    inputs_bias[:queries] *= scale
    return _EncoderLayer(
        inputs, inputs_bias,
        turned("o_w"), part("o_b"), (part("ln1_w"), part("ln1_b")),
        turned("fi_w"), part("fi_b"),
        turned("fo_w"), part("fo_b"), (part("ln2_w"), part("ln2_b")),
    )  # fmt: skip
