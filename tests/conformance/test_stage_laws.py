"""Every stage keeps the laws of `bethink.testing`. A new one is tested by being there."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings

from bethink import Memory
from bethink.errors import ModelError
from bethink.model import Pool, Query
from bethink.retrieval.context import Context
from bethink.retrieval.retrievers import RETRIEVERS
from bethink.retrieval.stages import ASSEMBLERS, FUSIONS, STAGES
from bethink.testing import (
    check_assembler,
    check_fusion,
    check_pool,
    check_stage,
    sample_context,
)
from corpus import NOW, QUESTIONS
from rows import each_row
from shapes import pools
from thorough import examples

STAGE_NAMES = sorted(STAGES)
FUSION_NAMES = sorted(FUSIONS)
lawful = settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=examples(12, 30)
)


FINDING = {"entity_meaning", "entity_name"}


@each_row("name", STAGE_NAMES)
@given(pool=pools())
@lawful
def test_any_pool_leaves_a_stage_lawful(filled: Memory, name: str, pool: Pool) -> None:
    """Best first, unique, and every score is exactly the replay of its evidence."""
    check_stage(STAGES[name](), filled, pools=[pool], finds=name in FINDING)


@each_row("name", STAGE_NAMES)
def test_a_stage_keeps_the_laws(filled: Memory, name: str) -> None:
    """On real pools, none, ties; nothing in, nothing out, but for those that look themselves."""
    check_stage(STAGES[name](), filled, finds=name in FINDING)


@each_row("name", STAGE_NAMES)
@each_row("question", [text for text, _ in QUESTIONS])
def test_a_real_pool_leaves_a_stage_lawful(filled: Memory, name: str, question: str) -> None:
    """The laws hold for what the retrievers really find."""
    ctx = sample_context(filled, question)
    found = {one: one(ctx) for one in (RETRIEVERS["lexical"](), RETRIEVERS["dense"]())}
    pool = FUSIONS["weighted"]()(found, ctx)
    assert pool

    check_pool(STAGES[name]()(pool, ctx))


@each_row("name", FUSION_NAMES)
def test_a_fusion_keeps_the_laws(filled: Memory, name: str) -> None:
    """The order of retrievers changes no score and no place; nothing is fused to nothing."""
    check_fusion(FUSIONS[name](), filled)


@pytest.mark.parametrize("name", sorted(ASSEMBLERS))
def test_an_assembler_keeps_the_laws(filled: Memory, name: str) -> None:
    """Equal hits get equal extras, and nothing is written."""
    check_assembler(ASSEMBLERS[name](), filled)


def test_a_missing_model_is_named(filled: Memory) -> None:
    """Stages that need a model say so instead of guessing."""
    bare = Context(Query("deploy key", NOW), filled.store)
    pool = RETRIEVERS["lexical"]()(bare)

    with pytest.raises(ModelError):
        STAGES["maxsim"]()(pool, bare)
    with pytest.raises(ModelError):
        STAGES["read"]()(pool, bare)
