"""Extract entities, facts and relations from a memory with a language model.

An extraction counts only where the memory's own words support it. It never removes anything
from recall: a fact read by a model can be flagged but cannot supersede.
"""

from __future__ import annotations

import re
from typing import TypedDict, cast

from bethink.core.json_values import Json
from bethink.core.named_tuple import NamedTuple
from bethink.core.words import fold, word_set
from bethink.ingest.admission import WriteContext
from bethink.ingest.entity_extraction import ENTITY_KINDS, entity_key
from bethink.ingest.revision import MODEL_FACT_KEY, revise
from bethink.ingest.statements import MIN_CONFIDENCE, clauses_of, denies, doubts
from bethink.model import Filters, Item, Link, Node
from bethink.ports import Budget, LanguageModel, Scope, Store
from bethink.prompts import fill_prompt, load_passages

MODEL_SOURCE = "model"
EXTRACTED_EVENT = "read by model"
_MAX_NAME_CHARACTERS = 80


class ExtractedFact(TypedDict):
    """A fact as the schema of the prompt has it."""

    subject: str
    attribute: str
    value: str
    confidence: float


class ExtractAnswer(TypedDict):
    """A model's answer, as the schema of the prompt has it."""

    entities: list[dict[str, str]]
    facts: list[ExtractedFact]
    relations: list[Json]


class Extraction(NamedTuple):
    """A model's extraction from one memory, as far as the memory supports it."""

    entities: tuple[str, ...] = ()
    fact: ExtractedFact | None = None
    relations: tuple[tuple[str, str, str, float], ...] = ()


def extract_with_model(
    item: Item, model: LanguageModel, budget: Budget, store: Store
) -> Extraction:
    """Extract from a memory with the model; raise ModelError without an answer."""
    prompt = fill_prompt("extract", store.space, memory=load_passages(store, [item.id]))
    answer = model.complete(prompt, budget=budget)
    return keep_supported(cast("ExtractAnswer", answer), item)


def keep_supported(answer: ExtractAnswer, item: Item) -> Extraction:
    """Keep those parts of an answer whose names and values occur in the memory."""
    text = fold(item.text)
    kinds = {
        entity_key(entry["name"]): entry["kind"]
        for entry in answer["entities"]
        if _is_named_in(entry["name"], text)
    }
    entities = tuple(
        f"{kind}:{name}" for name, kind in kinds.items() if kind in ENTITY_KINDS and name
    )
    fact = next((entry for entry in answer["facts"] if _is_supported_fact(entry, text)), None)
    relations = tuple(
        (
            entity_key(entry["source"]),
            entry["type"],
            entity_key(entry["target"]),
            float(entry["confidence"]),
        )
        for entry in answer["relations"]
        if entity_key(entry["source"]) in kinds and entity_key(entry["target"]) in kinds
        if entry["source"] != entry["target"] and entry["confidence"] >= MIN_CONFIDENCE
    )
    return Extraction(entities, fact, relations)


def _is_named_in(name: str, text: str) -> bool:
    if len(name) > _MAX_NAME_CHARACTERS or ":" in name:
        return False
    return re.search(rf"(?<!\w){re.escape(entity_key(name))}(?!\w)", text) is not None


def _is_supported_fact(fact: ExtractedFact, text: str) -> bool:
    """Check that a fact is confident, complete, not denied and of the memory's words."""
    if fact["confidence"] < MIN_CONFIDENCE or not fact["attribute"].strip():
        return False
    value, subject = word_set(fact["value"]), word_set(fact["subject"])
    if not value or not (value | subject) <= word_set(text):
        return False
    told = [clause for clause in clauses_of(text) if not value.isdisjoint(word_set(clause))]
    return not any(denies(clause) or doubts(clause) for clause in told)


def apply_extraction(item: Item, extraction: Extraction, model: str, ctx: WriteContext) -> Item:
    """Store an extraction as the memory's next revision; no revision if nothing is new."""
    fact = extraction.fact if item.subject is None and item.level == "item" else None
    known = {entity.partition(":")[2] for entity in item.entities}
    fresh = tuple(
        entity_id for entity_id in extraction.entities if entity_id.partition(":")[2] not in known
    )
    if fact is not None or fresh:
        item = _store_extracted(item, fact, fresh, model, ctx)
    links = _relation_links(item, extraction, ctx)
    links += [
        Link(
            Node("item", item.id),
            Node("entity", entity_id),
            "mentions",
            confidence=0.7,
            source=MODEL_SOURCE,
        )
        for entity_id in item.entities
        if entity_id in fresh
    ]
    if fact is not None:
        links += _contradiction_links(item, fact, ctx)
    if links:
        ctx.store.graph.add_links(links, now=ctx.now)
    return item


def _store_extracted(
    item: Item, fact: ExtractedFact | None, fresh: tuple[str, ...], model: str, ctx: WriteContext
) -> Item:
    changes: dict[str, object] = {"entities": (*item.entities, *fresh)}
    if fact is not None:
        fact_metadata = {
            "value": fold(fact["value"]),
            "by": model,
            "confidence": fact["confidence"],
        }
        changes["metadata"] = {**item.metadata, MODEL_FACT_KEY: fact_metadata}
        item = item._replace(subject=fold(fact["subject"]), attribute=fold(fact["attribute"]))
    return revise(item, changes, ctx)


def _relation_links(item: Item, extraction: Extraction, ctx: WriteContext) -> list[Link]:
    by_key = {entity.partition(":")[2]: entity for entity in item.entities}
    return [
        Link(Node("entity", by_key[source]), Node("entity", by_key[target]), kind,
             confidence=confidence, context=item.id, source=MODEL_SOURCE, created_at=ctx.now)
        for source, kind, target, confidence in extraction.relations
        if source in by_key and target in by_key
    ]  # fmt: skip


def _contradiction_links(item: Item, fact: ExtractedFact, ctx: WriteContext) -> list[Link]:
    """Return links to active memories whose extracted fact has another value."""
    scope = Scope(Filters(max_classification=3), ctx.now)
    same_slot = ctx.store.items.slots([(fold(fact["subject"]), fold(fact["attribute"]))], scope)
    known = [(other, other.metadata.get(MODEL_FACT_KEY)) for other in same_slot]
    confidence = round(fact["confidence"] * 0.8, 3)
    why = f"another {fact['attribute']} of {fact['subject']}"
    return [
        Link(Node("item", item.id), Node("item", other.id), "contradicts", confidence=confidence,
             source=MODEL_SOURCE, context=why)
        for other, read in known
        if other.id != item.id and isinstance(read, dict)
        if (other.speaker, other.user) == (item.speaker, item.user)
        if read.get("value") != fold(fact["value"])
    ]  # fmt: skip
