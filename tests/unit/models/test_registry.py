"""Embedders by name, and values made once."""

from __future__ import annotations

import threading
import time

import pytest

from bethink.config.settings import SETTINGS
from bethink.core.lazy import Lazy
from bethink.errors import BadSetting
from bethink.models import DEFAULT_EMBEDDER, EMBEDDERS, NONE, open_embedder
from bethink.models.embed.served import ServedEmbedder


def test_without_a_name_the_default_is_opened():
    """The default is the learned one, never the hash embedder."""
    default, named = open_embedder(), open_embedder(DEFAULT_EMBEDDER)

    assert default is not None
    assert named is not None
    assert default.model == named.model == "bethink-encoder-2"


def test_none_means_words_alone():
    """There is a name for having no embedder."""
    assert open_embedder(NONE) is None


def test_an_unknown_name_is_refused_with_the_allowed_ones():
    """The error lists every name there is, and what each provider must be told."""
    for name in ("word2vec", "word2vec:big", "ollama", "ollama:", "hash:x"):
        with pytest.raises(BadSetting, match=f"'{name}'") as caught:
            open_embedder(name)

    assert caught.value.remedy == (
        "allowed: encoder, hash, none, "
        "sentence-transformers:NAME_OR_FOLDER, ollama:MODEL, openai:MODEL"
    )


def test_a_provider_is_told_which_model():
    """Everything behind the first colon, a tag's colon included."""
    served = open_embedder("ollama:nomic-embed-text:v1.5")

    assert isinstance(served, ServedEmbedder)
    assert served._name == "nomic-embed-text:v1.5"


def test_the_setting_allows_exactly_the_names_there_are():
    """A new embedder or provider must be named in the settings too."""
    setting = next(setting for setting in SETTINGS if setting.name == "embedder")

    assert setting.allowed == (*(name for name, one in EMBEDDERS.items() if one.bare), NONE)
    assert setting.providers == tuple(name for name, one in EMBEDDERS.items() if one.argument_hint)
    assert setting.plugins == EMBEDDERS.group


def test_a_value_is_made_once_whoever_asks():
    """Eight threads at once make one value."""
    made = []

    def make() -> object:
        time.sleep(0.01)
        made.append(object())
        return made[-1]

    once, seen = Lazy(make), []
    threads = [threading.Thread(target=lambda: seen.append(once())) for _ in range(8)]
    assert not once
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert once
    assert len(made) == 1
    assert seen == made * 8


def test_a_failed_try_is_not_kept():
    """After an error the next call tries again; an empty value counts as made."""
    answers = iter([ValueError("not yet"), []])

    def make() -> list[int]:
        answer = next(answers)
        if isinstance(answer, ValueError):
            raise answer
        return answer

    once = Lazy(make)

    with pytest.raises(ValueError, match="not yet"):
        once()
    assert once() == []
    assert once() == []
