"""Extraction by a language model: details of memories, statements of raw turns."""

from __future__ import annotations

import hashlib
import json
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from bethink.core import plural
from bethink.core.named_tuple import NamedTuple
from bethink.core.sentences import caption
from bethink.core.words import fold
from bethink.ingest.llm_extraction import EXTRACTED_EVENT, apply_extraction, extract_with_model
from bethink.ingest.statements import Statement, StatementCheck, is_worth_reading
from bethink.maintain.consolidate import SECRET_CLASSIFICATION
from bethink.maintain.job import (
    EXCERPT_CHARACTERS,
    JobContext,
    NamedAction,
    Proposal,
    batches,
    iter_items,
)
from bethink.model import Draft, Item
from bethink.ports import LanguageModel, Unusable
from bethink.prompts import fill_prompt, load_passages

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
    by_age: bool = False

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
            action = NamedAction(f"{rule} with the model", extract_memories, some)
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
    read = NamedAction(f"mark {plural(len(ids), 'turn')} as read", _mark_read, ids)
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
