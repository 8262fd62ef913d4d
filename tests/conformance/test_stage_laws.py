"""Every stage keeps the same laws. A new one in STAGES is picked up by itself."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings

from bethink import Memory
from bethink.errors import ModelError
from bethink.model import Pool, Query, replay, sort_by_score
from bethink.retrieval.context import Context
from bethink.retrieval.retrievers import RETRIEVERS
from bethink.retrieval.stages import FUSIONS, STAGES
from corpus import NOW, QUESTIONS
from shapes import pools

STAGE_NAMES = sorted(STAGES)
FUSION_NAMES = sorted(FUSIONS)
lawful = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=30)


def context(memory: Memory, text: str = "where is the deploy key?") -> Context:
    return Context(
        Query(text, NOW),
        memory.store,
        memory.embedder,
        reranker=lambda _, texts: [len(text) % 7 / 7 for text in texts],
        boost=lambda item: 0.5 + item.importance,
    )


def keeps_the_laws(pool: Pool) -> None:
    ids = [cand.item.id for cand in pool]
    assert len(set(ids)) == len(ids)
    assert pool == sort_by_score(pool)
    for cand in pool:
        assert replay(cand.evidence) == cand.score


@pytest.mark.parametrize("name", STAGE_NAMES)
@given(pool=pools())
@lawful
def test_any_pool_leaves_a_stage_lawful(filled: Memory, name: str, pool: Pool) -> None:
    """Best first, unique, and every score is exactly the replay of its reasons."""
    ctx = context(filled)

    out = STAGES[name]()(pool, ctx)

    keeps_the_laws(out)
    assert STAGES[name]()(pool, context(filled)) == out, "equal inputs, equal output"


FINDING = {"entity_meaning", "entity_name"}


@pytest.mark.parametrize("name", STAGE_NAMES)
def test_a_stage_takes_an_empty_pool(filled: Memory, name: str) -> None:
    """Nothing in, nothing out, but for those that look for memories themselves."""
    out = STAGES[name]()((), context(filled))

    keeps_the_laws(out)
    assert out == () or name in FINDING


@pytest.mark.parametrize("name", STAGE_NAMES)
@pytest.mark.parametrize("question", [text for text, _ in QUESTIONS])
def test_a_real_pool_leaves_a_stage_lawful(filled: Memory, name: str, question: str) -> None:
    """The laws hold for what the channels really find."""
    ctx = context(filled, question)
    channels = (RETRIEVERS["lexical"](), RETRIEVERS["dense"]())
    pool = FUSIONS["weighted"]()({channel: channel(ctx) for channel in channels}, ctx)
    assert pool

    keeps_the_laws(STAGES[name]()(pool, ctx))


@pytest.mark.parametrize("name", FUSION_NAMES)
def test_fusion_does_not_depend_on_the_order_of_channels(filled: Memory, name: str) -> None:
    """Swapping the channels changes no score and no place."""
    ctx = context(filled)
    one, two = RETRIEVERS["lexical"](), RETRIEVERS["dense"]()
    found = {one: one(ctx), two: two(ctx)}

    forth = FUSIONS[name]()(found, ctx)
    back = FUSIONS[name]()(dict(reversed(found.items())), ctx)

    keeps_the_laws(forth)
    assert [c.item.id for c in forth] == [c.item.id for c in back]
    assert [c.score for c in forth] == pytest.approx([c.score for c in back])


@pytest.mark.parametrize("name", FUSION_NAMES)
def test_fusion_of_nothing_is_nothing(filled: Memory, name: str) -> None:
    """No channel, or channels without a find, make an empty pool."""
    ctx = context(filled)

    assert FUSIONS[name]()({}, ctx) == ()
    assert FUSIONS[name]()({RETRIEVERS["lexical"](): ()}, ctx) == ()


def test_a_missing_model_is_named(filled: Memory) -> None:
    """Stages that need a model say so instead of guessing."""
    bare = Context(Query("deploy key", NOW), filled.store)
    pool = RETRIEVERS["lexical"]()(bare)

    with pytest.raises(ModelError):
        STAGES["maxsim"]()(pool, bare)
    with pytest.raises(ModelError):
        STAGES["read"]()(pool, bare)
