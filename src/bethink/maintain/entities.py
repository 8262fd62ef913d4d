"""Make missing vectors of memories and entities."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

from bethink.core import plural
from bethink.core.passages import split_passages
from bethink.errors import ModelError
from bethink.ingest.admission import DERIVED_SOURCE
from bethink.ingest.links import entity_text
from bethink.ingest.record_builder import embed_memories
from bethink.maintain.job import Action, JobContext, Proposal, batches
from bethink.model import Draft, Item
from bethink.ports import Embedder, Embedding, Store, joining
from bethink.retrieval.provenance import content_digest, recorded_sources

_ENTITY_BATCH = 500


def embed_stored(items: Sequence[Item], store: Store, embedder: Embedder) -> None:
    """Give stored memories their vectors, the insights last: of those of their memories."""
    listed = {item.id for item in items if _sources_of_lines(item)}
    first = [item for item in items if item.id not in listed]
    for some in (first, [item for item in items if item.id in listed]):
        made = join_insights({item.id: item for item in some}, store, embedder)
        others = [item for item in some if item.id not in made]
        if others:
            vectors = embed_memories(others, embedder)
            made.update(zip((item.id for item in others), vectors, strict=True))
        if made:
            revisions = {item.id: item.rev for item in some}
            store.vectors.set_embeddings(embedder.model, made, only=revisions)


def join_insights(
    insights: Mapping[str, Draft | Item], store: Store, embedder: Embedder | None
) -> dict[str, Embedding]:
    """Return the vectors of insights that list sentences of memories, made of those memories'.

    Only where each memory is still as the insight read it; a model need not be asked then.
    """
    joiner = joining(embedder)
    if joiner is None or embedder is None:
        return {}
    wanted = {key: ids for key, one in insights.items() if (ids := _sources_of_lines(one))}
    ids = list(dict.fromkeys(item_id for found in wanted.values() for item_id in found))
    if not ids:
        return {}
    with store.snapshot():
        items = store.items.get(ids)
        vectors = store.vectors.embeddings(ids, embedder.model)
    made: dict[str, Embedding] = {}
    for key, sources in wanted.items():
        insight = insights[key]
        seen = recorded_sources(insight)
        if all(
            item_id in vectors
            and not vectors[item_id].passages
            and _is_as_read(items.get(item_id), seen.get(item_id), insight)
            for item_id in sources
        ):
            with suppress(ModelError):  # of damaged tokens; the text is embedded instead
                made[key] = joiner.join([vectors[item_id] for item_id in sources])
    return made


def _is_as_read(item: Item | None, digest: str | None, insight: Draft | Item) -> bool:
    """Whether a memory, itself no insight, is what the insight was made of."""
    if item is None or item.live_to is not None or item.level == "insight":
        return False
    return item.classification <= insight.classification and content_digest(item) == digest


def _sources_of_lines(memory: Draft | Item) -> list[str]:
    """Return the memory behind each line of an insight; none where that is not all of it."""
    points = memory.metadata.get("points")
    derived = memory.level == "insight" and memory.source_class == DERIVED_SOURCE
    if not derived or not isinstance(points, list) or split_passages(memory.text):
        return []
    sources, lines = [], []
    for point in points:
        found = point.get("sources") if isinstance(point, dict) else None
        if not isinstance(found, list) or not found or not isinstance(found[0], str):
            return []
        sources.append(found[0])
        lines.append(f"- {point.get('text')}")
    return sources if memory.text == "\n".join(lines) else []


def _embed_memories(most: int, work: JobContext) -> None:
    """Create missing vectors of memories, as after a change of embedder."""
    if work.embedder is not None:
        waiting = work.store.vectors.unembedded(work.embedder.model, most)
        for batch in batches(waiting, _ENTITY_BATCH):
            embed_stored(batch, work.store, work.embedder)


def _embed_entities(most: int, work: JobContext) -> None:
    if work.embedder is not None:
        waiting = work.store.vectors.unembedded_entities(work.embedder.model, most)
        for batch in batches(waiting, _ENTITY_BATCH):
            made = work.embedder.embed([entity_text(entity) for entity in batch])
            by_id = {entity.id: vector for entity, vector in zip(batch, made, strict=True)}
            work.store.vectors.set_entity_embeddings(work.embedder.model, by_id)


@dataclass(frozen=True, slots=True)
class RefreshEntities:
    """Refresh at most ``most`` memories and entities in a run, the most mentioned first."""

    most: int = 5_000
    name: str = "entities"

    def plan(self, work: JobContext) -> Iterator[Proposal]:
        """Propose one action for memories and one for entities, where vectors are missing."""
        if work.embedder is None:
            return
        vectors, model = work.store.vectors, work.embedder.model
        kinds = (
            ("memory", "memories", vectors.unembedded, _embed_memories),
            ("entity", "entities", vectors.unembedded_entities, _embed_entities),
        )
        for one, many, unembedded, embed in kinds:
            lacking = len(unembedded(model, self.most))
            if lacking:
                reason = f"{plural(lacking, one)} without a vector of {model}"
                text = f"compute the missing vectors of {many}"
                action = Action(text, embed, self.most)
                yield Proposal(reason, f"{many} lack vectors", actions=(action,))
