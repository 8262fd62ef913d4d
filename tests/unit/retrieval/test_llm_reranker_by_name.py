"""The reranker named llm asks the space's own language model."""

from __future__ import annotations

import pytest

from bethink import Memory
from bethink.errors import BadSetting
from bethink.testing import ScriptedModel


def test_the_language_model_reads_the_candidates() -> None:
    """Its digits move what it finds better to the top."""
    model = ScriptedModel(lambda prompt: {"score": 9 if "staging" in prompt.user else 0})
    with Memory.open(":memory:", embedder="none", llm=model) as memory:
        memory.remember("The deploy key of production lies in the vault")
        wanted = memory.remember("The deploy key of staging lies in the drawer").id

        answer = memory.recall("where is the deploy key", reranker="llm")

    assert answer.hits[0].item.id == wanted
    assert [part.part for part in answer.degraded] == ["channel.dense"]


def test_without_a_model_it_is_refused_by_name() -> None:
    """The sentence says what is missing."""
    with pytest.raises(BadSetting, match="needs a language model"):
        Memory.open(":memory:", embedder="none", reranker="llm")
