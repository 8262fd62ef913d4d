"""Reads a memory by a language model: whom and what it speaks of, its fact, who is what to whom.

What the model says only counts where the memory's own words bear it out, and it never
takes anything out of recall: a fact that a model read can be flagged, not supersede.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from recollect.ingest.extract import ENTITY_KINDS, key_of
from recollect.ingest.judge import Stated, judge
from recollect.ingest.revise import revise
from recollect.ingest.settle import FACT, fact_held
from recollect.ingest.writing import WriteContext
from recollect.model import Filters, Item, Link, Node
from recollect.ports import Budget, LanguageModel, Scope, Store
from recollect.prompts import fill, passages_of
from recollect.text import fold, word_set

MODEL = "model"
READ = "read by model"
LEAST_CONFIDENCE = 0.6
_LONGEST_NAME = 80


class Reading(NamedTuple):
    """What a model read in one memory, as far as the memory bears it out."""

    entities: tuple[str, ...] = ()
    fact: Mapping[str, Any] | None = None
    relations: tuple[tuple[str, str, str, float], ...] = ()


def ask(item: Item, model: LanguageModel, budget: Budget, store: Store) -> Reading:
    """What the model reads in a memory. Raises ModelError where it does not answer."""
    prompt = fill("extract", store.space, memory=passages_of(store, [item.id]))
    return borne_out(model.complete(prompt, budget=budget), item)


def borne_out(told: Mapping[str, Any], item: Item) -> Reading:
    """Of an answer, what names and values the memory itself holds."""
    text = fold(item.text)
    kinds = {
        key_of(one["name"]): one["kind"] for one in told["entities"] if _is_in(one["name"], text)
    }
    entities = tuple(
        f"{kind}:{name}" for name, kind in kinds.items() if kind in ENTITY_KINDS and name
    )
    fact = next((one for one in told["facts"] if _is_fact(one, text)), None)
    relations = tuple(
        (key_of(one["source"]), one["type"], key_of(one["target"]), float(one["confidence"]))
        for one in told["relations"]
        if key_of(one["source"]) in kinds and key_of(one["target"]) in kinds
        if one["source"] != one["target"] and one["confidence"] >= LEAST_CONFIDENCE
    )
    return Reading(entities, fact, relations)


def _is_in(name: str, text: str) -> bool:
    return len(name) <= _LONGEST_NAME and key_of(name) in text and ":" not in name


def _is_fact(told: Mapping[str, Any], text: str) -> bool:
    """Whether a fact is sure, complete, and made of the memory's words."""
    if told["confidence"] < LEAST_CONFIDENCE or not told["attribute"].strip():
        return False
    value, subject = word_set(told["value"]), word_set(told["subject"])
    return bool(value) and (value | subject) <= word_set(text)


def take_in(item: Item, reading: Reading, model: str, ctx: WriteContext) -> Item:
    """Gives a memory what was read in it, as its next revision; nothing new, none."""
    fact = reading.fact if item.subject is None and item.level == "item" else None
    known = {entity.partition(":")[2] for entity in item.entities}
    fresh = tuple(one for one in reading.entities if one.partition(":")[2] not in known)
    if fact is not None or fresh:
        item = _revised(item, fact, fresh, model, ctx)
    links = _edges(item, reading, ctx)
    links += [
        Link(Node("item", item.id), Node("entity", one), "mentions", confidence=0.7, source=MODEL)
        for one in item.entities
        if one in fresh
    ]
    if fact is not None:
        links += _contradictions(item, ctx)
    if links:
        ctx.store.add_links(links, now=ctx.now)
    return item


def _revised(
    item: Item,
    fact: Mapping[str, Any] | None,
    fresh: tuple[str, ...],
    model: str,
    ctx: WriteContext,
) -> Item:
    changes: dict[str, Any] = {"entities": (*item.entities, *fresh)}
    if fact is not None:
        told = {"value": fold(fact["value"]), "by": model, "confidence": fact["confidence"]}
        changes["metadata"] = {**item.metadata, FACT: told}
        item = item._replace(subject=fold(fact["subject"]), attribute=fold(fact["attribute"]))
    return revise(item, changes, ctx)


def _edges(item: Item, reading: Reading, ctx: WriteContext) -> list[Link]:
    by_key = {entity.partition(":")[2]: entity for entity in item.entities}
    return [
        Link(Node("entity", by_key[one]), Node("entity", by_key[other]), kind,
             confidence=sure, context=item.id, source=MODEL, created_at=ctx.now)
        for one, kind, other, sure in reading.relations
        if one in by_key and other in by_key
    ]  # fmt: skip


def _contradictions(item: Item, ctx: WriteContext) -> list[Link]:
    """What stands in the slot and says otherwise."""
    mine = fact_held(item)
    if mine is None:
        return []
    scope = Scope(Filters(max_classification=3), ctx.now)
    held = ctx.store.slots([(mine.subject, mine.attribute)], scope)
    return _told(
        [Stated(one, fact) for one in held if (fact := fact_held(one))], Stated(item, mine)
    )


def _told(held: Sequence[Stated], mine: Stated) -> list[Link]:
    links = []
    for other in held:
        judgement = judge(mine, other, by_rules=False) if other.item.id != mine.item.id else None
        if judgement is not None:
            ends = (Node("item", judgement.first.item.id), Node("item", judgement.second.item.id))
            told = mine.item.metadata[FACT]["confidence"]
            sure = round(min(judgement.confidence, told) * 0.8, 3)
            links.append(Link(*ends, "contradicts", confidence=sure, source=MODEL,
                              context=judgement.why))  # fmt: skip
    return links
