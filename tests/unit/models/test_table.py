"""Token vectors, pooled and compared."""

from __future__ import annotations

import numpy as np
import pytest

from bethink.models.embed.token_table import TokenTable, normalise, pack_tokens


def table_of(rows) -> TokenTable:
    return TokenTable(np.asarray(rows, dtype=np.int8), np.ones(len(rows), dtype=np.float32))


def test_a_row_is_its_integers_times_its_scale():
    """What was stored as int8 comes back as float32."""
    table = TokenTable(np.array([[3, 4], [0, -2]], np.int8), np.array([0.5, 2.0], np.float32))

    assert (table.tokens, table.dim) == (2, 2)
    assert table._rows([0, 1]).tolist() == [[1.5, 2.0], [0.0, -4.0]]
    assert table._rows([0]).dtype == np.float32
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
