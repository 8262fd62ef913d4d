"""What a contextual embedder makes of texts and questions, token by token."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest

from bethink import Memory
from bethink.errors import BadText
from bethink.models.embed.contextual import MAX_STORED_SENTENCES, MAX_STORED_TOKENS
from bethink.models.embed.encoder import EncoderEmbedder
from bethink.ports import LateInteraction

TEXT = "the deploy key lives in vault b. anna prefers tabs over spaces. the release is on tuesday"


@pytest.fixture(scope="module")
def embedder():
    return EncoderEmbedder()


def direction(vector: np.ndarray) -> np.ndarray:
    return vector / np.linalg.norm(vector)


def states_of(embedder: EncoderEmbedder, text: str) -> np.ndarray:
    """A text's vectors the long way round, marks included."""
    split = embedder._tokenizer()
    return embedder._network().encode([[split.start_id, *split(text).ids, split.end_id]])[0]


def test_it_compares_token_by_token(embedder):
    """It can do what the port of late interaction asks."""
    assert isinstance(embedder, LateInteraction)
    assert embedder.dim == 384


def test_the_vector_is_the_mean_of_the_tokens(embedder):
    """With the marks at both ends, as the model was trained; a question's is the same."""
    text = "anna prefers tabs"

    vector = embedder.embed([text])[0].vector

    assert vector == pytest.approx(direction(states_of(embedder, text).mean(axis=0)), abs=1e-6)
    assert np.array_equal(vector, embedder.embed_query(text).vector)


def test_sentences_are_compared_one_by_one(embedder):
    """The best of them is the mean of its own tokens, read within the whole."""
    split = embedder._tokenizer()
    pieces = split(TEXT)
    first, second, _ = pieces.sentence_ends()
    middle = direction(states_of(embedder, TEXT)[first + 2 : second + 2].mean(axis=0))

    best = embedder.best_sentences(middle, [embedder.embed([TEXT])[0].tokens])

    assert best[0] == pytest.approx(1.0, abs=2e-3)


def test_words_are_read_in_their_question(embedder):
    """A word's tokens are those of the whole question, not of the word by itself."""
    question = "where does the key live?"
    place = embedder._tokenizer()(question).locate(["key"])[0][1]

    owners, matrix = embedder.word_tokens(["key"], question)
    alone = embedder.word_tokens(["key"])[1]

    assert owners == ("key",)
    assert matrix[0] == pytest.approx(direction(states_of(embedder, question)[place + 1]), abs=1e-6)
    assert float(matrix[0] @ alone[0]) < 0.999


def test_weights_pull_the_question_towards_their_words(embedder):
    """All the weight on one word is that word's direction."""
    question = "where does the key live?"

    only = embedder.weighted(["where", "key"], [0.0, 2.0], question)
    both = embedder.weighted(["where", "key"], [1.0, 1.0], question)

    assert only == pytest.approx(embedder.word_tokens(["key"], question)[1][0], abs=1e-5)
    assert not np.allclose(only, both)
    assert not embedder.weighted(["gone"], [1.0], question).any()


def test_a_question_is_read_once(embedder):
    """What is asked about it afterwards comes from memory; that does not grow for ever."""
    read = embedder._encode_query("where is the key?")

    embedder.word_tokens(["key"], "where is the key?")

    assert embedder._encode_query("where is the key?") is read
    for number in range(20):
        embedder.embed_query(f"question {number}")
    assert embedder._encode_query.cache_info().currsize < 10
    assert embedder._encode_query("where is the key?") is not read


def test_what_is_kept_of_a_long_text_is_bounded(embedder):
    """So many tokens, so many sentences, however long it is."""
    tokens = embedder.embed(["anna has the key. " * 2000])[0].tokens

    width = embedder.dim
    assert len(tokens) <= 6 + MAX_STORED_SENTENCES * width + MAX_STORED_TOKENS * (4 + width // 8)


def test_half_a_character_is_refused(embedder):
    """Wherever it is given."""
    for ask in (embedder.embed_query, lambda text: embedder.embed([text])):
        with pytest.raises(BadText):
            ask("abc\ud800def")


def test_no_thread_is_left_behind():
    """After embedding a batch a process may fork, and the child may ask on."""
    code = (
        "import os, threading\n"
        "from bethink.models.embed.encoder import EncoderEmbedder\n"
        "embedder = EncoderEmbedder()\n"
        "embedder.embed([f'the key {number}' * (number % 9 + 1) for number in range(200)])\n"
        "print(threading.active_count(), flush=True)\n"
        "child = os.fork()\n"
        "if not child:\n"
        "    embedder.embed_query('where is the key?'); os._exit(7)\n"
        "print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))\n"
    )
    if not hasattr(os, "fork"):
        pytest.skip("there is no fork here")

    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False,
        env={"PATH": "", "OPENBLAS_NUM_THREADS": "1"}, timeout=60,
    )  # fmt: skip

    assert done.stdout.split() == ["1", "7"], done.stderr
    assert done.stderr == ""


def test_words_are_told_apart_by_what_stands_beside_them(embedder):
    """A bank is not a bank."""
    texts = ["she sat on the bank of the river", "the bank raised its interest rates"]
    memories = [embedding.tokens for embedding in embedder.embed(texts)]

    _, matrix = embedder.word_tokens(["bank"], "which bank gives a good loan?")

    river, money = embedder.best_matches(matrix, memories)[:, 0]
    assert money > river + 0.1


def test_a_recall_reads_its_question_once_and_whole():
    """Words are compared as they stand in the question, not one by one."""
    embedder = EncoderEmbedder()
    question = "where is the deploy key?"
    with Memory.open(":memory:", embedder=embedder) as memory:
        memory.remember_many([TEXT, "anna prefers tabs"])
        assert embedder.unrelated  # asks the model about other questions, once
        before = embedder._encode_query.cache_info().misses
        memory.recall(question)

    assert embedder._encode_query.cache_info().misses - before == 1
