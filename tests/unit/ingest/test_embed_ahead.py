"""Embedding a batch in groups, while the groups before are compared and built."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from bethink import Memory
from bethink.errors import ModelError
from bethink.ingest.pipeline import EMBED_GROUP
from bethink.models.embed.hashing import HashEmbedder
from bethink.ports import Embedding

TEXTS = [f"note {number} about subject {number * 7}" for number in range(2 * EMBED_GROUP + 50)]


class CountingEmbedder(HashEmbedder):
    """Notes how many memories each call had; fails from the call ``broken`` on."""

    def __init__(self, broken: int = 100, *, slow: bool = False) -> None:
        self.sizes: list[int] = []
        self.broken, self.slow = broken, slow

    def embed(self, texts: Sequence[str]) -> list[Embedding]:
        if not any(text.startswith("note ") for text in texts):
            return super().embed(texts)  # entities
        self.sizes.append(len(texts))
        if len(self.sizes) > self.broken:
            raise ModelError("the model is down")
        return super().embed(texts)


@pytest.mark.parametrize(
    ("slow", "sizes"), [(False, [EMBED_GROUP, EMBED_GROUP, 50]), (True, [len(TEXTS)])]
)
def test_a_batch_is_embedded_in_groups_unless_the_embedder_is_slow(slow, sizes):
    """A server gets all at once; every memory has its own vector either way."""
    embedder = CountingEmbedder(slow=slow)
    with Memory.open(":memory:", embedder=embedder) as memory:
        stored = memory.remember_many(TEXTS)

        assert embedder.sizes == sizes
        ids = [one.id for one in stored]
        made = memory.store.vectors.embeddings(ids, embedder.model)
        for one, text in zip(ids, TEXTS, strict=True):
            assert made[one].vector @ embedder.embed_query(text).vector > 0.98


def test_a_model_that_fails_on_the_way_costs_the_rest_its_vectors():
    """Everything is stored, and each result says whether its vector is missing."""
    embedder = CountingEmbedder(broken=1)
    with Memory.open(":memory:", embedder=embedder) as memory:
        stored = memory.remember_many(TEXTS)

        assert {one.status for one in stored} == {"stored"}
        pending = [one.pending for one in stored]
        assert pending == [()] * EMBED_GROUP + [("embedding",)] * (len(TEXTS) - EMBED_GROUP)
        embedder.broken = 100
        assert memory.reindex() == len(TEXTS) - EMBED_GROUP
