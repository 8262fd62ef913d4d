"""Where the scale of a model's cosines begins."""

from __future__ import annotations

import pytest

from recollect.models.hashing import HashEmbedder
from recollect.models.static import StaticEmbedder
from recollect.models.unrelated import QUESTIONS, STATEMENTS, measure
from recollect.stages import gate


def test_the_gate_knows_the_default_embedders_scale() -> None:
    """Its numbers were measured with that one."""
    assert measure(StaticEmbedder()) == pytest.approx(gate._UNRELATED, abs=0.001)


def test_it_is_the_same_whoever_asks() -> None:
    """A model's scale does not depend on the run."""
    assert measure(HashEmbedder()) == measure(HashEmbedder())


def test_no_question_is_about_any_statement() -> None:
    """Subjects are told by their longer words: none is shared."""

    def subjects(texts: tuple[str, ...]) -> set[str]:
        words = " ".join(texts).casefold().replace("?", " ").replace(".", " ").split()
        return {word for word in words if len(word) > 5}

    assert not subjects(QUESTIONS) & subjects(STATEMENTS)
