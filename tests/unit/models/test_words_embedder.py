"""The embedder ``words``: the encoder's input table without its network."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from bethink.errors import BadText, ModelError
from bethink.models.embed.encoder import ENCODER_DATA, ENCODER_WEIGHTS
from bethink.models.embed.served import measure_baseline
from bethink.models.embed.token_table import unpack_tokens
from bethink.models.embed.words import MAX_STORED_TOKENS, WordsEmbedder, _rarity_weights
from bethink.ports import Embedding, LateInteraction

WORDS = WordsEmbedder()


def ids_of(embedding: Embedding) -> list[int]:
    ids: list[int] = unpack_tokens([embedding.tokens], 32_000).ids.tolist()
    return ids


def run(code: str) -> subprocess.CompletedProcess[str]:
    """Runs code in a fresh interpreter; warnings there are errors too."""
    return subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip


def test_it_compares_token_by_token():
    """It can do what the port of late interaction asks."""
    assert isinstance(WORDS, LateInteraction)


def test_near_meanings_are_near():
    """The table is the learned one: words that differ but mean the same are close."""
    ask, same, other = (
        embedding.vector
        for embedding in WORDS.embed(
            ["How do I log in?", "authentication with a password", "the cat sat on the mat"]
        )
    )

    assert ask @ same > ask @ other


def test_the_vector_is_the_weighted_mean_of_the_piece_vectors():
    """Computed the long way round from the file, the result is the same."""
    with np.load(ENCODER_DATA / ENCODER_WEIGHTS) as file:
        table = file["table"] * _rarity_weights(file["table_scale"])[:, np.newaxis]

    embedding = WORDS.embed(["the deploy key lives in vault B. Anna has the other one"])[0]

    mean = table[ids_of(embedding)].astype(np.float64).mean(axis=0)
    assert embedding.vector == pytest.approx(mean / np.linalg.norm(mean), abs=1e-6)


def test_a_rare_word_weighs_more_than_a_common_one():
    """Function words hardly turn the vector; names and subjects do."""
    alone = WORDS.embed_query("penicillin").vector

    assert float(alone @ WORDS.embed_query("it is the penicillin of a").vector) > 0.85


def test_the_tokens_of_a_word_are_its_own():
    """Each word is split by itself, and every token knows its word."""
    words = ["authentication", "überprüfen", "v2.3.1", "", "authentication"]

    owners, matrix = WORDS.word_tokens(words)

    expected = [word for word in words for _ in range(WORDS.count_tokens(word))]
    assert list(owners) == expected
    assert matrix.shape == (len(expected), WORDS.dim)


def test_equal_weights_are_no_weights():
    """Then the words of a question give the question's vector."""
    text = "where is the deploy key"

    vector = WORDS.weighted(text.split(), [2.5] * 5)

    assert vector == pytest.approx(WORDS.embed_query(text).vector, abs=1e-6)


def test_a_heavy_word_pulls_the_vector():
    """The more it weighs, the nearer the question is to the word alone."""
    words, alone = ["the", "deploy", "key"], WORDS.embed_query("deploy").vector

    likeness = [float(WORDS.weighted(words, [1, weight, 1]) @ alone) for weight in (0, 1, 5, 50)]

    assert likeness == sorted(likeness)
    assert likeness[-1] > 0.99


def test_the_best_sentence_is_found_in_a_long_memory():
    """One sentence that answers counts, whatever else the memory says."""
    told = "We talked about the weather for a while. The deploy key lives in vault B. Then we had lunch."
    question = WORDS.embed_query("The deploy key lives in vault B.").vector
    whole = WORDS.embed([told])[0]

    best = float(WORDS.best_sentences(question, [whole.tokens])[0])

    assert best == pytest.approx(1.0, abs=2e-3)
    assert best > float(whole.vector @ question)


@pytest.mark.parametrize("stop", ["", "."])
def test_late_interaction_reads_the_first_512_tokens(stop):
    """Both sides are cut at the limit; the vector and the count know the whole text."""
    text = f"word word word word{stop} " * 500

    owners, matrix = WORDS.word_tokens(text.split())

    assert WORDS.count_tokens(text) > 2 * MAX_STORED_TOKENS
    made = WORDS.embed([text])[0]
    assert len(ids_of(made)) == MAX_STORED_TOKENS
    assert made.token_count == WORDS.count_tokens(text)
    assert len(owners) == len(matrix) == MAX_STORED_TOKENS
    tail = WORDS.embed(["word " * 600 + "deploy " * 600])[0].vector
    assert not np.array_equal(tail, WORDS.embed(["word " * 600])[0].vector)


def test_half_a_character_is_refused_by_name():
    """A lone surrogate is BadText wherever it is given."""
    for ask in (WORDS.embed_query, WORDS.count_tokens, lambda text: WORDS.word_tokens([text])):
        with pytest.raises(BadText, match="position 3"):
            ask("abc\ud800")


def test_it_knows_the_scale_of_its_cosines():
    """What unrelated texts get is what was measured."""
    assert measure_baseline(WORDS) == pytest.approx(WordsEmbedder.unrelated, abs=0.001)


def test_missing_files_are_named(tmp_path: Path):
    """Without its files every call says which one is not there."""
    embedder = WordsEmbedder(tmp_path)

    for ask in (embedder.embed_query, embedder.count_tokens, lambda text: embedder.embed([text])):
        with pytest.raises(ModelError, match="cannot be read"):
            ask("hello")


def test_one_question_needs_numpy_alone():
    """The command line's path loads NumPy and nothing else that is heavy."""
    done = run(
        "import sys\n"
        "from bethink.models.embed.words import WordsEmbedder\n"
        "WordsEmbedder().embed_query('where is the deploy key?')\n"
        "print(sorted({'numpy', 'tokenizers', 'onnxruntime'} & set(sys.modules)))"
    )

    assert done.stdout.strip() == "['numpy']", done.stderr


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")
def test_a_batch_starts_no_threads_and_survives_a_fork():
    """After a batch a forked child embeds too, and nobody prints a warning."""
    done = run(
        "import os, threading\n"
        "os.environ['OPENBLAS_NUM_THREADS'] = '1'\n"
        "from bethink.models.embed.words import WordsEmbedder\n"
        "embedder = WordsEmbedder()\n"
        "texts = [f'memory number {n} ' * 20 for n in range(50)]\n"
        "first = embedder.embed(texts)\n"
        "tasks = '/proc/self/task'\n"
        "print(len(os.listdir(tasks)) if os.path.isdir(tasks) else 1, flush=True)\n"
        "child = os.fork()\n"
        "if child == 0:\n"
        "    again = embedder.embed(texts)\n"
        "    same = all((a.vector == b.vector).all() for a, b in zip(first, again))\n"
        "    os._exit(0 if same else 1)\n"
        "print(os.waitpid(child, 0)[1])\n"
    )

    assert (done.stdout.split(), done.stderr) == (["1", "0"], "")
