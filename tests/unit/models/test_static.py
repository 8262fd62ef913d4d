"""The default embedder."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bethink.errors import BadText, ModelError
from bethink.models.embed.static import (
    MAX_STORED_TOKENS,
    SHORT_TEXT_CHARACTERS,
    WORDLLAMA_TOKENIZER,
    WORDLLAMA_WEIGHTS,
    StaticEmbedder,
    _installed_folder,
)
from bethink.models.embed.token_table import unpack_tokens
from bethink.ports import Embedding, LateInteraction

QUICK = StaticEmbedder()
LOADED = StaticEmbedder()
LOADED.embed(["x" * (SHORT_TEXT_CHARACTERS + 1)])


def ids_of(embedding: Embedding) -> list[int]:
    ids: list[int] = unpack_tokens([embedding.tokens], 32_000).ids.tolist()
    return ids


def run(code: str) -> subprocess.CompletedProcess[str]:
    """Runs code in a fresh interpreter; warnings there are errors too."""
    env = {name: value for name, value in os.environ.items() if name != "TOKENIZERS_PARALLELISM"}
    return subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        capture_output=True, text=True, check=False, timeout=60, env=env,
    )  # fmt: skip


@settings(deadline=None)
@given(st.lists(st.text(max_size=80), max_size=5))
def test_both_ways_give_the_same_bits(texts):
    """Whether the tokenizer library was loaded or not, a text has one embedding."""
    for quick, loaded in zip(QUICK.embed(texts), LOADED.embed(texts), strict=True):
        assert quick.vector.tobytes() == loaded.vector.tobytes()
        assert quick.tokens == loaded.tokens


def test_it_compares_token_by_token():
    """The default can do what the port of late interaction asks."""
    assert isinstance(QUICK, LateInteraction)


def test_near_meanings_are_near():
    """The table is the learned one: words that differ but mean the same are close."""
    ask, same, other = (
        embedding.vector
        for embedding in QUICK.embed(
            ["How do I log in?", "authentication with a password", "the cat sat on the mat"]
        )
    )

    assert ask @ same > ask @ other


def test_the_vector_is_the_mean_of_the_token_vectors():
    """Computed the long way round from the file, the result is the same."""
    raw = (_installed_folder() / WORDLLAMA_WEIGHTS).read_bytes()
    header = int.from_bytes(raw[:8], "little")
    table = np.frombuffer(raw, dtype="<f2", offset=8 + header).reshape(32_000, 256)

    embedding = QUICK.embed(["the deploy key lives in vault B. Anna has the other one"])[0]

    mean = table[ids_of(embedding)].astype(np.float64).mean(axis=0)
    assert embedding.vector == pytest.approx(mean / np.linalg.norm(mean), abs=1e-6)


def test_the_tokens_of_a_word_are_its_own():
    """Each word is split by itself, and every token knows its word."""
    words = ["authentication", "überprüfen", "v2.3.1", "", "authentication"]

    owners, matrix = QUICK.word_tokens(words)

    expected = [word for word in words for _ in range(QUICK.count_tokens(word))]
    assert list(owners) == expected
    assert matrix.shape == (len(expected), 256)


@pytest.mark.parametrize(("word", "tokens"), [("日本", 2), ("ꙮ", 3), ("a", 1), ("", 0)])
def test_a_bare_space_is_no_token_of_a_word(word, tokens):
    """Before characters that are spelled out there is a space, which says nothing."""
    owners, matrix = QUICK.word_tokens([word])

    assert owners == (word,) * tokens
    assert len(matrix) == tokens


def test_equal_weights_are_no_weights():
    """Then the words of a question give the question's vector."""
    text = "where is the deploy key"

    vector = QUICK.weighted(text.split(), [2.5] * 5)

    assert vector == pytest.approx(QUICK.embed_query(text).vector, abs=1e-6)


def test_a_heavy_word_pulls_the_vector():
    """The more it weighs, the nearer the question is to the word alone."""
    words, alone = ["the", "deploy", "key"], QUICK.embed_query("deploy").vector

    likeness = [float(QUICK.weighted(words, [1, weight, 1]) @ alone) for weight in (0, 1, 5, 50)]

    assert likeness == sorted(likeness)
    assert likeness[-1] > 0.99


def test_the_best_sentence_is_found_in_a_long_memory():
    """One sentence that answers counts, whatever else the memory says."""
    told = "We talked about the weather for a while. The deploy key lives in vault B. Then we had lunch."
    question = QUICK.embed_query("The deploy key lives in vault B.").vector
    whole = QUICK.embed([told])[0]

    best = float(QUICK.best_sentences(question, [whole.tokens])[0])

    assert best == pytest.approx(1.0, abs=2e-3)
    assert best > float(whole.vector @ question)


def test_late_interaction_reads_the_first_512_tokens():
    """Both sides are cut at the limit; the vector and the count know the whole text."""
    text = "word " * 2000

    owners, matrix = QUICK.word_tokens(text.split())

    assert QUICK.count_tokens(text) > 2 * MAX_STORED_TOKENS
    assert len(ids_of(QUICK.embed([text])[0])) == MAX_STORED_TOKENS
    assert len(owners) == len(matrix) == MAX_STORED_TOKENS
    tail = QUICK.embed(["word " * 600 + "deploy " * 600])[0].vector
    assert not np.array_equal(tail, QUICK.embed(["word " * 600])[0].vector)


def test_tokens_are_counted_exactly():
    """The count is the vocabulary's, both ways."""
    texts = ["", "one", "a longer sentence, with commas", "日本語", "x" * 3000]

    counts = [QUICK.count_tokens(text) for text in texts]

    assert counts[:2] == [0, 1]
    assert counts == [LOADED.count_tokens(text) for text in texts]
    assert counts[:-1] == [len(ids_of(embedding)) for embedding in QUICK.embed(texts[:-1])]


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="needs Linux's /proc")
def test_counting_keeps_nothing_of_what_it_counts():
    """A server that runs for months counts the tokens of many texts, each of them once."""
    done = run(
        "from pathlib import Path\n"
        "from bethink.models.embed.static import StaticEmbedder\n"
        "embedder, size = StaticEmbedder(), lambda: int(Path('/proc/self/statm').read_text().split()[1])\n"
        "embedder.count_tokens('x' * 3000)\n"
        "before = size()\n"
        "for n in range(12_000):\n"
        "    embedder.count_tokens(f'memory {n} {n * 7919} of a long row, ' * 5)\n"
        "print((size() - before) * 4096 < 10_000_000)"
    )

    assert done.stdout.strip() == "True", done.stderr


@pytest.mark.parametrize("embedder", [QUICK, LOADED], ids=["quick", "loaded"])
def test_half_a_character_is_refused_by_name(embedder):
    """A lone surrogate is BadText wherever it is given."""
    for ask in (
        embedder.embed_query,
        embedder.count_tokens,
        lambda text: embedder.word_tokens([text]),
    ):
        with pytest.raises(BadText, match="position 3"):
            ask("abc\ud800")


def test_control_words_are_text():
    """ "<s>" in a memory is three characters, whichever way it is split."""
    assert QUICK.count_tokens("<s>") == LOADED.count_tokens("<s>") > 1


def test_missing_files_are_named_with_a_remedy(tmp_path: Path):
    """Without wordllama's files every call says what to install."""
    embedder = StaticEmbedder(tmp_path)

    for ask in (embedder.embed_query, embedder.count_tokens, lambda text: embedder.embed([text])):
        with pytest.raises(ModelError, match="missing") as caught:
            ask("hello")
        assert "pip install" in caught.value.remedy


def test_a_missing_package_is_named_with_a_remedy():
    """Where wordllama is not installed the error says so; nothing is fetched."""
    done = run(
        "import sys; sys.modules['wordllama'] = None\n"
        "from bethink.errors import ModelError\n"
        "from bethink.models.embed.static import StaticEmbedder\n"
        "try: StaticEmbedder().embed_query('hello')\n"
        "except ModelError as error: print(error.message, '|', error.remedy)"
    )

    assert "wordllama is not installed | pip install" in done.stdout, done.stderr


def test_other_weights_under_the_same_name_are_refused(tmp_path: Path):
    """A table that is not the one the model's name stands for is never used."""
    (tmp_path / WORDLLAMA_WEIGHTS).parent.mkdir()
    (tmp_path / WORDLLAMA_TOKENIZER).parent.mkdir()
    shutil.copy(_installed_folder() / WORDLLAMA_TOKENIZER, tmp_path / WORDLLAMA_TOKENIZER)
    raw = bytearray((_installed_folder() / WORDLLAMA_WEIGHTS).read_bytes())
    raw[100] ^= 1
    (tmp_path / WORDLLAMA_WEIGHTS).write_bytes(raw)

    with pytest.raises(ModelError, match="is not the table"):
        StaticEmbedder(tmp_path).embed_query("hello")


def test_one_question_needs_neither_tokenizers_nor_wordllama():
    """The command line's path loads NumPy and nothing else that is heavy."""
    done = run(
        "import sys\n"
        "from bethink.models.embed.static import StaticEmbedder\n"
        "StaticEmbedder().embed_query('where is the deploy key?')\n"
        "print(sorted({'numpy', 'tokenizers', 'wordllama'} & set(sys.modules)))"
    )

    assert done.stdout.strip() == "['numpy']", done.stderr


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")
def test_a_batch_starts_no_threads_and_survives_a_fork():
    """After a batch a forked child embeds too, and nobody prints a warning."""
    done = run(
        "import os, threading\n"
        "os.environ['OPENBLAS_NUM_THREADS'] = '1'\n"
        "from bethink.models.embed.static import StaticEmbedder\n"
        "embedder = StaticEmbedder()\n"
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
