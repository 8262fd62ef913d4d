"""Hypothesis strategies for the engine's values."""

from __future__ import annotations

from datetime import timedelta

from hypothesis import strategies as st

from bethink.model import Candidate, Evidence, Item, Pool, sort_by_score
from corpus import NOW

WORDS = ("deploy", "key", "vault", "billing", "auth", "token", "cache", "search", "index", "30")

texts = st.lists(st.sampled_from(WORDS), min_size=1, max_size=8).map(" ".join)


@st.composite
def items(draw: st.DrawFn, number: int = 0) -> Item:
    """An item whose fields are within their ranges."""
    age = draw(st.floats(-400, 4000, allow_nan=False))
    when = NOW - timedelta(days=age)
    return Item(
        id=f"item{number:04d}",
        text=draw(texts),
        stored_at=when,
        source="test",
        importance=draw(st.floats(0, 1)),
        confidence=draw(st.floats(0, 1)),
        emotion=draw(st.floats(-5, 5)),
        trust=draw(st.integers(0, 3)),
        pinned=draw(st.booleans()),
        tokens=draw(st.integers(0, 500)),
        speaker=draw(st.sampled_from([None, "Ana", "Ben"])),
        session=draw(st.sampled_from([None, "s1", "s2"])),
        seq=number,
        occurred_at=draw(st.sampled_from([None, when])),
    )


@st.composite
def pools(draw: st.DrawFn, max_size: int = 12) -> Pool:
    """A pool as a fusion would leave it: unique items, best first, explained."""
    size = draw(st.integers(0, max_size))
    cands = []
    for number in range(size):
        score = draw(st.floats(0, 2, allow_nan=False))
        evidence = (
            Evidence("channel.lexical", "seen", score, "matches", None, number + 1),
            Evidence("fuse.lexical", "add", score, f"rank {number + 1}"),
        )
        cands.append(Candidate(draw(items(number)), score, evidence))
    return sort_by_score(cands)
