"""The laws of an embedder. A new one in the table is tested by being there."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bethink.errors import MissingExtra, ModelError, Refused
from bethink.models import EMBEDDERS, open_embedder
from bethink.ports import Embedder, LateInteraction
from bethink.testing import check_embedder
from embedding_server import serving
from tiny_bert import make_tiny_bert

# One model of each provider: a tiny one made here, and what a local server serves.
_MADE = TemporaryDirectory(prefix="bethink-")
SAMPLES = {
    "sentence-transformers": f"sentence-transformers:{make_tiny_bert(Path(_MADE.name) / 'tiny')}",
    "ollama": "ollama:hash",
    "openai": "openai:hash",
}
BARE = [name for name, provider in EMBEDDERS.items() if provider.bare]
SUBJECTS = {
    **{name: name for name in BARE},
    **{f"{provider}:MODEL": name for provider, name in SAMPLES.items()},
}
# Whose arithmetic is not ours: the last digit may depend on the texts beside.
ROUNDED = {"sentence-transformers:MODEL": 1e-5}
HEAVY = ("numpy", "tokenizers", "onnxruntime", "torch")
TEXTS = [
    "The deploy key lives in vault B",
    "Anna prefers tabs over spaces",
    "parse_config() fails on an empty file",
    "release 2.3.1 went out on Tuesday",
    "",
]
# Opening loads nothing, so the table can be asked while tests are collected.
READERS = [
    label for label, name in SUBJECTS.items() if isinstance(open_embedder(name), LateInteraction)
]
anything = st.text(st.characters(exclude_categories=["Cs"]), max_size=120)


@pytest.fixture(scope="module", autouse=True)
def server() -> Iterator[None]:
    """A local server for the embedders that need one, there before the first of them."""
    with serving() as running, pytest.MonkeyPatch.context() as patch:
        patch.setenv("OLLAMA_HOST", running.url)
        patch.setenv("OPENAI_BASE_URL", f"{running.url}/v1")
        patch.setenv("XDG_CACHE_HOME", _MADE.name)
        opened.cache_clear()
        yield
        opened.cache_clear()


@cache
def opened(label: str) -> Embedder | str:
    """The embedder, or why it cannot be tried here."""
    embedder = open_embedder(SUBJECTS[label])
    assert embedder is not None
    try:
        embedder.embed_query("ready?")
    except (MissingExtra, ModelError) as error:
        return f"{label}: {error.message}"
    return embedder


def ready(name: str) -> Embedder:
    embedder = opened(name)
    if isinstance(embedder, str):
        pytest.skip(embedder)
    return embedder


def label_of(embedder: Embedder) -> str:
    return next(label for label in SUBJECTS if opened(label) is embedder)


@pytest.fixture(params=list(SUBJECTS))
def subject(request: pytest.FixtureRequest) -> Embedder:
    return ready(request.param)


@pytest.fixture(params=READERS)
def reader(request: pytest.FixtureRequest) -> Embedder:
    """An embedder that can also compare token by token."""
    return ready(request.param)


each = pytest.mark.parametrize("name", list(SUBJECTS))


def test_every_provider_is_tried():
    """A new provider needs a sample, or no law is tested on it."""
    assert list(SAMPLES) == [name for name, provider in EMBEDDERS.items() if provider.argument_hint]


@each
def test_opening_loads_nothing(name):
    """Opening imports nothing heavy, nor does asking for name and size where they are fixed."""
    ask = "embedder.model, embedder.dim" if name in BARE else "embedder"
    code = (
        "import sys\n"
        "from bethink.models import open_embedder\n"
        f"embedder = open_embedder({SUBJECTS[name]!r}); {ask}\n"
        f"print([name for name in {HEAVY} if name in sys.modules])"
    )

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)

    assert done.stdout.strip() == "[]", done.stderr


def test_names_tell_models_apart():
    """No two embedders have the same model name; two of one kind have."""
    known = [name for label, name in SUBJECTS.items() if not isinstance(opened(label), str)]
    models = [open_embedder(name).model for name in known]

    assert all(models)
    assert len(set(models)) == len(models)
    assert models == [open_embedder(name).model for name in known]


@each
def test_an_embedder_keeps_the_laws(name):
    """Unit vectors or zeros, the same alone, among others, again and in threads."""
    check_embedder(ready(name), tolerance=ROUNDED.get(name, 0.0))


@each
@settings(deadline=None, max_examples=25)
@given(texts=st.lists(anything, max_size=4))
def test_the_laws_hold_for_any_texts(name, texts):
    """Whatever is stored."""
    check_embedder(ready(name), texts=texts, tolerance=ROUNDED.get(name, 0.0))


def test_a_new_one_gives_the_same(subject):
    """Equal texts give equal vectors across objects, and so across processes."""
    fresh = open_embedder(SUBJECTS[label_of(subject)])

    for old, new in zip(subject.embed(TEXTS), fresh.embed(TEXTS), strict=True):
        assert old.vector.tobytes() == new.vector.tobytes()


def test_a_text_is_nearest_to_itself(subject):
    """Asked with its own words, each memory comes first."""
    memories = np.array([embedding.vector for embedding in subject.embed(TEXTS[:-1])])

    for place, text in enumerate(TEXTS[:-1]):
        assert int(np.argmax(memories @ subject.embed_query(text).vector)) == place


def test_half_a_character_is_read_or_refused(subject):
    """A lone surrogate never ends in a traceback from inside."""
    for ask in (subject.embed_query, subject.count_tokens, lambda text: subject.embed([text])):
        with suppress(Refused):
            ask("abc\ud800def")


def test_every_token_of_a_word_has_a_unit_vector(reader):
    """As many owners as rows; owners are the words, in their order; none for no words."""
    for text in TEXTS:
        words = text.split()

        owners, matrix = reader.word_tokens(words)

        assert matrix.shape == (len(owners), reader.dim)
        assert matrix.dtype == np.float32
        assert list(dict.fromkeys(owners)) == list(dict.fromkeys(words))
        assert np.linalg.norm(matrix, axis=1) == pytest.approx(np.ones(len(owners)), abs=1e-5)


def test_words_count_by_their_weights(reader):
    """A unit vector; the scale of the weights does not matter, a word of no weight is not there."""
    words = TEXTS[0].split()
    weights = [float(place + 1) for place in range(len(words))]

    vector = reader.weighted(words, weights)

    assert vector.shape == (reader.dim,)
    assert vector.dtype == np.float32
    assert float(np.linalg.norm(vector)) == pytest.approx(1.0, abs=1e-5)
    assert reader.weighted(words, [3 * weight for weight in weights]) == pytest.approx(
        vector, abs=1e-5
    )
    assert reader.weighted([*words, "other"], [*weights, 0.0]) == pytest.approx(vector, abs=1e-5)
    assert not reader.weighted([], []).any()


def test_a_word_matches_its_own_tokens(reader):
    """Every token of a word finds itself in a memory that is that word."""
    for word in ("deploy", "authentication", "v2.3.1", "überprüfen"):
        _, matrix = reader.word_tokens([word])

        best = reader.best_matches(matrix, [reader.embed([word])[0].tokens])

        assert best == pytest.approx(np.ones((1, len(matrix))), abs=1e-4)


def test_matches_are_cosines_one_row_a_memory(reader):
    """Rows follow the memories, values lie in -1 to 1, no tokens give zeros."""
    _, matrix = reader.word_tokens(TEXTS[0].split())
    memories = [embedding.tokens for embedding in reader.embed([*TEXTS, *TEXTS])]

    best = reader.best_matches(matrix, memories)

    assert best.shape == (len(memories), len(matrix))
    assert (np.abs(best) <= 1 + 1e-5).all()
    assert not best[TEXTS.index("")].any()
    assert np.array_equal(best[: len(TEXTS)], best[len(TEXTS) :])


def test_sentences_are_cosines_one_a_memory(reader):
    """Values follow the memories and lie in -1 to 1; no tokens give zero."""
    question = reader.embed_query(TEXTS[0]).vector
    memories = [embedding.tokens for embedding in reader.embed(TEXTS)]

    best = reader.best_sentences(question, memories)

    assert best.shape == (len(memories),)
    assert (np.abs(best) <= 1.0).all()
    assert int(np.argmax(best)) == 0
    assert best[0] == pytest.approx(1.0, abs=2e-3)
    assert best[TEXTS.index("")] == 0.0


def test_a_memory_is_judged_by_itself(reader):
    """Its row is the same whichever memories it is compared with."""
    _, matrix = reader.word_tokens(TEXTS[1].split())
    question = reader.embed_query(TEXTS[1]).vector
    memories = [embedding.tokens for embedding in reader.embed(TEXTS)]

    matches = reader.best_matches(matrix, memories)
    sentences = reader.best_sentences(question, memories)

    for place, memory in enumerate(memories):
        assert reader.best_matches(matrix, [memory])[0] == pytest.approx(matches[place], abs=1e-5)
        assert reader.best_sentences(question, [memory])[0] == pytest.approx(
            sentences[place], abs=1e-5
        )


@settings(deadline=None, max_examples=50)
@given(texts=st.lists(anything, max_size=4), words=st.lists(anything, max_size=4))
def test_any_memories_can_be_compared(texts, words):
    """Whatever is stored and asked, the comparison is finite and has its shape."""
    for name in READERS:
        reader = ready(name)
        memories = [embedding.tokens for embedding in reader.embed(texts)]
        owners, matrix = reader.word_tokens(words)
        vector = reader.weighted(words, [1.0] * len(words))

        matches = reader.best_matches(matrix, memories)
        sentences = reader.best_sentences(vector, memories)

        assert set(owners) <= set(words)
        assert matches.shape == (len(texts), len(owners))
        assert sentences.shape == (len(texts),)
        assert np.isfinite(matches).all()
        assert np.isfinite(sentences).all()
