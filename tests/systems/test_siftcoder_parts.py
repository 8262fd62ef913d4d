"""The parts of the siftcoder profile at their boundaries and by their reference values."""

from __future__ import annotations

import math
from datetime import timedelta

import pytest

from bethink import Memory
from bethink.retrieval.stages.fusion import Rrf
from bethink.systems.siftcoder import Decay, OverlapRerank
from corpus import NOW
from stage_parts import Fixed, cand, ctx, fused


def test_rrf_gives_the_reference_values(memory: Memory) -> None:
    """Ranks 1 and 4 make 0.032018; ranks 12 and 1 make 0.030282; one rank makes one term."""
    words = Fixed("lexical", (1, *range(50, 60), 99, 2))
    meaning = Fixed("dense", (2, 40, 41, 1))

    scores = fused(memory, Rrf(), words, meaning)

    assert scores["i001"] == pytest.approx(0.032018, abs=5e-7)
    assert fused(memory, Rrf(), Fixed("lexical", (*range(50, 61), 2)), meaning)[
        "i002"
    ] == pytest.approx(0.030282, abs=5e-7)
    assert scores["i099"] == pytest.approx(1 / 72)


def test_rrf_listens_to_weights(memory: Memory) -> None:
    """A channel of weight 0 adds nothing, no candidates either; one of weight 2 twice."""
    scores = fused(memory, Rrf(), Fixed("lexical", (1,), 2.0), Fixed("dense", (2,), 0.0))

    assert scores == {"i001": 2 / 61}


def test_decay_is_the_documented_curve(memory: Memory) -> None:
    """1/e at tau, one half at a half-life, 1 for the future, untouched when switched off."""
    week = cand(1, occurred_at=NOW - timedelta(days=7))
    future = cand(2, occurred_at=NOW + timedelta(days=400))

    assert Decay()((week,), ctx(memory))[0].score == pytest.approx(1 / math.e)
    assert Decay(half_life_days=7)((week,), ctx(memory))[0].score == pytest.approx(0.5)
    assert Decay()((future,), ctx(memory))[0].score == 1.0
    assert Decay(tau_days=0)((week,), ctx(memory)) == (week,)
    assert Decay(floor=0.6)((week,), ctx(memory))[0].score == 0.6


def test_tools_fade_at_their_own_pace(memory: Memory) -> None:
    """An edit is remembered longer than a shell command."""
    stage = Decay(per_tool=(("Bash", 3.0), ("Edit", 30.0)))
    old = {"occurred_at": NOW - timedelta(days=3)}
    edit = cand(1, metadata={"tool": "Edit"}, **old)
    bash = cand(2, metadata={"tool": "Bash"}, **old)

    scores = {c.item.id: c.score for c in stage((edit, bash), ctx(memory))}

    assert scores["i001"] == pytest.approx(math.exp(-0.1))
    assert scores["i002"] == pytest.approx(math.exp(-1))


def test_the_deterministic_reader_prefers_the_whole_phrase(memory: Memory) -> None:
    """Shared words count by rarity, the question as a phrase counts most."""
    memory.remember("auth token cache")
    pool = (
        cand(1, 0.5, "the cache of the token"),
        cand(2, 0.5, "about the auth token cache today"),
        cand(3, 0.5, "nothing of it"),
    )

    out = OverlapRerank()(pool, ctx(memory, "auth token cache"))

    assert [c.item.id for c in out] == ["i002", "i001", "i003"]
