"""Token vectors out of a file."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from bethink.errors import ModelError
from bethink.models.embed.token_table import TokenTable, normalise, open_table, pack_tokens


def table_of(rows) -> TokenTable:
    return TokenTable(np.asarray(rows, dtype=np.float16).view(np.int16))


def write_tensor(path: Path, rows, **changes) -> Path:
    array = np.asarray(rows, dtype="<f2")
    tensor = {"dtype": "F16", "shape": array.shape, "data_offsets": [0, array.nbytes], **changes}
    header = json.dumps({"embedding.weight": tensor}).encode()
    path.write_bytes(len(header).to_bytes(8, "little") + header + array.tobytes())
    return path


def test_every_half_becomes_its_float():
    """All 63,488 finite halves are widened exactly, subnormal ones and both zeros too."""
    bits = np.arange(1 << 16, dtype=np.uint16)
    halves = bits[np.isfinite(bits.view(np.float16))].reshape(-1, 256)

    rows = TokenTable(halves.view(np.int16))._rows(range(len(halves)))

    expected = halves.view(np.float16).astype(np.float32)
    assert np.array_equal(rows.view(np.uint32), expected.view(np.uint32))


def test_a_file_is_read_as_it_was_written(tmp_path: Path):
    """The header says where the numbers are; they come back as they were."""
    table = open_table(write_tensor(tmp_path / "t.safetensors", [[3, 4], [0, -2]]))

    assert (table.tokens, table.dim) == (2, 2)
    assert table.unit_rows([0, 1]).tolist() == [pytest.approx([0.6, 0.8]), [0.0, -1.0]]


def test_pooling_is_the_direction_of_the_mean():
    """Tokens count as often as they occur; the length is 1."""
    table = table_of([[1, 0], [0, 1]])

    assert table.pool([0, 0, 0, 1, 1, 1, 1]).tolist() == pytest.approx([0.6, 0.8])
    assert table.pool([]).tolist() == [0, 0]


def test_vectors_without_length_stay_zero():
    """Nothing is divided by zero."""
    assert normalise(np.zeros((2, 3), dtype=np.float32)).tolist() == [[0, 0, 0], [0, 0, 0]]


def stored(table: TokenTable, *sentences: list[int]) -> bytes:
    """A memory of these sentences, each given by its token ids."""
    ids = [number for sentence in sentences for number in sentence]
    ends = [sum(map(len, sentences[: place + 1])) - 1 for place in range(len(sentences))]
    return pack_tokens(ids, ends, table.pool_sentences(ids, ends)[1])


def test_sentences_have_the_length_of_their_sum():
    """The vector is the whole text's; tokens after the last end count for it only."""
    table = table_of([[3, 0], [0, 4]])

    vector, lengths = table.pool_sentences([0, 1, 1, 0], [1, 2])

    assert vector.tolist() == pytest.approx([0.6, 0.8])
    assert lengths.tolist() == [5, 4]
    assert [part.tolist() for part in table.pool_sentences([], [])] == [[0, 0], []]


def test_tokens_count_by_their_weights():
    """Twice the weight is as good as twice the token; no weight is zeros."""
    table = table_of([[3, 0], [0, 4]])

    assert table.weighted_pool([0, 1], [2, 1]).tolist() == pytest.approx(
        table.pool([0, 0, 1]).tolist()
    )
    assert (
        table.weighted_pool([0, 1], [0, 0]).tolist()
        == table.weighted_pool([], []).tolist()
        == [0, 0]
    )


def test_each_query_vector_finds_its_best_token():
    """Rows are memories, columns query tokens; a memory without tokens gets zeros."""
    table = table_of([[1, 0], [0, 1], [3, 4], [-1, 0]])
    query = np.array([[1, 0], [0, 1]], dtype=np.float32)
    memories = [b"", stored(table, [0]), stored(table, [2, 3], [3]), b"", stored(table, [3]), b""]

    best = table.best_matches(query, memories)

    expected = [[0, 0], [1, 0], [0.6, 0.8], [0, 0], [-1, 0], [0, 0]]
    assert best == pytest.approx(np.array(expected, dtype=np.float32))


def test_each_memory_gives_its_best_sentence():
    """A sentence is the direction of its tokens' sum; a memory without tokens gives zero."""
    table = table_of([[3, 0], [0, 4], [-1, 0]])
    query = np.array([1, 0], dtype=np.float32)
    memories = [
        b"",
        stored(table, [1], [0, 1], [2]),
        stored(table, [2, 2]),
        stored(table, [0]),
        b"",
    ]

    best = table.best_sentences(query, memories)

    assert best == pytest.approx(np.array([0, 0.6, -1, 1, 0], dtype=np.float32), abs=1e-3)


def test_a_sentence_without_length_is_like_nothing():
    """Vectors that cancel out leave no direction; nothing is divided by zero."""
    table = table_of([[1, 0], [-1, 0]])

    best = table.best_sentences(np.array([1, 0], dtype=np.float32), [stored(table, [0, 1])])

    assert best.tolist() == [0.0]


def test_nothing_to_compare_gives_an_empty_answer():
    """No memories, no tokens or no query: the shape is right all the same."""
    table = table_of([[1, 0]])
    query = np.array([[1, 0]], dtype=np.float32)

    assert table.best_matches(query, []).shape == (0, 1)
    assert table.best_matches(query, [b"", b""]).tolist() == [[0], [0]]
    assert table.best_matches(query[:0], [stored(table, [0])]).shape == (1, 0)
    assert table.best_sentences(query[0], []).shape == (0,)
    assert table.best_sentences(query[0], [b"", b""]).tolist() == [0, 0]


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\xff" * 20,
        (2).to_bytes(8, "little") + b"{}",
        (4).to_bytes(8, "little") + b"[1,2",
        (30).to_bytes(8, "little") + b'{"embedding.weight": {"x": 1}}',
    ],
)
def test_what_is_no_table_is_named(tmp_path: Path, content):
    """Any damage to the file is a ModelError with the file's name."""
    path = tmp_path / "t.safetensors"
    path.write_bytes(content)

    with pytest.raises(ModelError, match=r"t\.safetensors"):
        open_table(path)


@pytest.mark.parametrize(
    "changes", [{"dtype": "F32"}, {"shape": [1000, 256]}, {"data_offsets": []}]
)
def test_a_header_that_does_not_fit_is_named(tmp_path: Path, changes):
    """Other numbers than float16, or fewer than promised, are refused."""
    path = write_tensor(tmp_path / "t.safetensors", [[1, 2]], **changes)

    with pytest.raises(ModelError, match=r"t\.safetensors"):
        open_table(path)


def test_other_numbers_give_another_fingerprint():
    """Two tables are told apart."""
    assert table_of([[1, 0]]).fingerprint() != table_of([[0, 1]]).fingerprint()
