"""Extraction by a language model: details of memories, statements of raw turns.

An extraction counts only where the memory's own words support it. It never removes anything
from recall: a fact read by a model can be flagged but cannot supersede.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypedDict, cast

from bethink.core import plural
from bethink.core.json_values import Json
from bethink.core.named_tuple import NamedTuple
from bethink.core.sentences import caption
from bethink.core.words import fold, word_set
from bethink.ingest.admission import WriteContext
from bethink.ingest.entity_extraction import ENTITY_KINDS, entity_key
from bethink.ingest.revision import MODEL_FACT_KEY, revise
from bethink.ingest.statements import (
    MIN_CONFIDENCE,
    Statement,
    StatementCheck,
    clauses_of,
    denies,
    doubts,
    is_worth_reading,
)
from bethink.maintain.consolidate import SECRET_CLASSIFICATION
from bethink.maintain.job import (
    EXCERPT_CHARACTERS,
    Action,
    JobContext,
    Proposal,
    batches,
    iter_items,
)
from bethink.model import Draft, Filters, Item, Link, Node
from bethink.ports import Budget, LanguageModel, Scope, Store, Unusable
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


_EXTRACTION_BATCH = 10
_JOURNAL_LINES = 50


def extract_memories(ids: tuple[str, ...], work: JobContext) -> None:
    """Extract from memories, one model request each, but for those that were read before."""
    if work.model is None:
        return
    for item in work.store.items.get(ids).values():
        if item.live_to is not None or was_read_by_model(item.id, work):
            continue
        reading = extract_with_model(item, work.model, work.budget, work.store)
        # Changed while the model was reading it: the result no longer applies.
        now = work.store.items.get([item.id])[item.id]
        if now.live_to is None and now.rev == item.rev:
            apply_extraction(now, reading, work.model.name, work.write_context())
            _mark_read((item.id,), work)


@dataclass(frozen=True, slots=True)
class Extract:
    """Extract from the newest ``most`` memories that no model has read; none without a model.

    Of as many raw turns it makes statements, memories of their own.
    """

    most: int = 100
    name: str = "extract"

    def plan(self, work: JobContext) -> Iterator[Proposal]:
        """Propose small batches, so that a failing model costs only one of them."""
        if work.model is None:
            return
        for turns in _unread_turns(self.most, work):
            yield from _plan_statements(turns, work.model, work)
        waiting = (
            item.id
            for item in iter_items(work, levels=("item",))
            if not was_read_by_model(item.id, work)
        )
        left = self.most
        for batch in batches(waiting, _EXTRACTION_BATCH):
            some = tuple(batch[:left])
            left -= len(some)
            if not some:
                return
            rule = f"extract facts from {len(some)} memories"
            action = Action(f"{rule} with the model", extract_memories, some)
            why = f"{len(some)} memories without extracted facts"
            yield Proposal(why, rule, actions=(action,))


def was_read_by_model(item_id: str, work: JobContext) -> bool:
    """Whether a model has read a memory."""
    lines = work.store.admin.changes(item=item_id, actor=None, limit=_JOURNAL_LINES)
    return any(line.kind == EXTRACTED_EVENT for line in lines)


_TURNS_AT_ONCE = 12


class _Conversation(NamedTuple):
    """What turns must share that are read together: nobody's words become another's."""

    session: str
    user: str
    classification: int


def _unread_turns(most: int, work: JobContext) -> Iterator[list[Item]]:
    """Yield the newest turns that no model has read, a part of one conversation at a time."""
    found: defaultdict[_Conversation, list[Item]] = defaultdict(list)
    for item in iter_items(work, levels=("raw",)):
        if item.classification >= SECRET_CLASSIFICATION or not is_worth_reading(item):
            continue
        if not was_read_by_model(item.id, work):
            key = _Conversation(item.session or item.id, item.user or "", item.classification)
            found[key].append(item)
            most -= 1
        if most <= 0:
            break
    for turns in found.values():
        yield from batches(sorted(turns, key=lambda turn: (turn.when, turn.id)), _TURNS_AT_ONCE)


def _plan_statements(
    turns: Sequence[Item], model: LanguageModel, work: JobContext
) -> Iterator[Proposal]:
    """Propose a memory for each statement that the turns bear out, and a mark that they were read.

    What the model says of a turn that was changed meanwhile is not stored.
    """
    passages = load_passages(work.store, [turn.id for turn in turns])
    by_id, check = {turn.id: turn for turn in turns}, StatementCheck(work.store.search.terms)
    try:
        prompt = fill_prompt("distil", work.store.space, turns=passages)
        answer = model.complete(prompt, budget=work.budget)
    except Unusable as error:  # the next run reads them again
        yield Proposal(f"{plural(len(turns), 'turn')} not read: {error.message}", "")
        return
    kept: dict[str, Statement] = {}
    for told in answer["memories"]:
        numbers = dict.fromkeys(told["sources"])
        sources = tuple(by_id[passages[number - 1].id] for number in numbers)
        text = " ".join(told["text"].split())
        said = Statement(text, told["kind"], sources, float(told["confidence"]))
        if check(said) is None:
            kept.setdefault(fold(text), said)
    yield from (_statement_proposal(said, model.name) for said in kept.values())
    refused = len(answer["memories"]) - len(kept)
    rule = f"{plural(len(turns), 'turn')} read, {plural(refused, 'statement')} refused"
    ids = tuple(by_id)
    read = Action(f"mark {plural(len(ids), 'turn')} as read", _mark_read, ids)
    yield Proposal(rule, rule, actions=(read,))


def _statement_proposal(said: Statement, model: str) -> Proposal:
    speakers, topics = ({getattr(s, name) for s in said.sources} for name in ("speaker", "topic"))
    last = max(said.sources, key=lambda source: source.when)
    key = json.dumps([fold(said.text), sorted(source.id for source in said.sources)])
    draft = Draft(
        said.text,
        kind=said.kind,
        speaker=speakers.pop() if len(speakers) == 1 else None,
        topic=topics.pop() if len(topics) == 1 else None,
        occurred_at=last.when,
        confidence=min(said.confidence, *(source.confidence for source in said.sources)),
        metadata={"made_by": model},
        key=f"extract:{hashlib.sha256(key.encode()).hexdigest()}",
    )
    count = plural(len(said.sources), "turn")
    return Proposal(
        f"of {count}: {caption(said.text, limit=EXCERPT_CHARACTERS)}",
        f"a statement of {count}",
        successor=draft,
        parents=tuple(source.id for source in said.sources),
        seen={source.id: source.rev for source in said.sources},
    )


def _mark_read(ids: tuple[str, ...], work: JobContext) -> None:
    actor = work.write_context().actor
    for item_id in work.store.items.get(ids):
        work.store.admin.log(EXTRACTED_EVENT, item=item_id, actor=actor, detail="", now=work.now)
