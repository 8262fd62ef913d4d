"""`recall` and `explain`: asking, and asking why."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from recollect.asking import next_cursor
from recollect.errors import Refused
from recollect.explain import explain as arithmetic_of
from recollect.jsonable import Json, number
from recollect.mcp.fencing import (
    NOTICE,
    Quote,
    cleaned,
    cut,
    labelled,
    memory_json,
    one_line,
    quoted,
)
from recollect.mcp.sight import seen
from recollect.mcp.tool import Call, Reply
from recollect.mcp.tools.usual import GLIMPSE
from recollect.mcp.view import EVIDENCE
from recollect.memory import Memory
from recollect.model import Candidate, Item, Recall
from recollect.present import related, relation_lines
from recollect.reasons import match_reasons
from recollect.stages.assemble import warnings_for
from recollect.wire import degraded_json, evidence_json, provenance_json, why_not_json

_FILTERS = ("entity", "kind", "layer", "band", "topic", "tag", "since", "until")
_LIMITS = ("as_of", "k", "episode_k", "max_tokens", "offset", "cursor", "profile")
_SHORTEST = 80  # characters that are shown of a memory in any case
_ORIGINS_SHOWN = 30


def recall(call: Call) -> Reply:
    """What the question calls to mind, within the budget, and what was left out."""
    memory = call.memory
    asked = call.given(*_FILTERS, *_LIMITS)
    track = call.told.get("mark_accessed") or None
    answer = memory.recall(call.told.get("query", ""), track=track, **asked)
    hits = _fitting(answer, memory)
    left_out, cursor = _more(answer, hits)
    by_tokens = len(hits) < len(answer.hits)
    text = _told(answer, hits)
    content = {
        "status": answer.status,
        "reason": answer.reason,
        "notice": NOTICE,
        "memories": [_hit_json(hit, answer) for hit in hits],
        "returned": len(hits),
        "left_out": left_out,
        "stopped_by": "tokens" if by_tokens else answer.page.stopped_by,
        "cursor": cursor,
        "tokens": _counted(text, memory),
        "captions": [caption.text for caption in answer.captions],
        "warnings": list(answer.warnings),
        "degraded": [degraded_json(part) for part in answer.degraded],
        "nearest_miss": _miss_json(answer.nearest_miss),
        "profile": answer.profile,
    }
    meta = {EVIDENCE: {hit.item.id: _evidence(hit) for hit in hits}} if call.draws else None
    return Reply(text, content, meta)


def _fitting(answer: Recall, memory: Memory) -> tuple[Candidate, ...]:
    """As many of the best as fit with all that is said about them; of the very first as
    much as fits."""
    most = answer.query.max_tokens
    room = most
    kept: list[Candidate] = []
    for hit in answer.hits:
        room -= _counted("\n".join(_quote(hit, answer)), memory)
        if room < 0:
            break
        kept.append(hit)
    # That was a first guess: the frame and the code before each memory count as well.
    while len(kept) > 1 and _counted(_told(answer, kept), memory) > most:
        kept.pop()
    if len(kept) > 1 or not answer.hits:
        return tuple(kept)
    return (_shortened(answer.hits[0], answer, memory),)


def _shortened(hit: Candidate, answer: Recall, memory: Memory) -> Candidate:
    """A memory too long for the whole budget, cut to what is left of it, and said to be."""
    text, longest, shown = hit.item.text, len(hit.item.text), hit
    while longest > _SHORTEST and _counted(_told(answer, [shown]), memory) > (
        answer.query.max_tokens
    ):
        longest = max(_SHORTEST, longest * 3 // 4)
        shown = hit._replace(item=hit.item._replace(text=cut(text, longest)))
    return shown


def _counted(text: str, memory: Memory) -> int:
    if memory.embedder is not None:
        return memory.embedder.count_tokens(text)
    return -(-len(text.encode()) // 4)


def _more(answer: Recall, hits: Sequence[Candidate]) -> tuple[int, str | None]:
    """How many more passed, and the cursor that gets them."""
    left_out = max(0, answer.page.total - answer.page.offset - len(hits))
    ids = [hit.item.id for hit in hits]
    return left_out, next_cursor(answer.query, ids) if left_out else None


def _quote(hit: Candidate, answer: Recall) -> Quote:
    quote = labelled(hit.item, f"score {hit.score:.3f}")
    lines = [hit.item.text, *relation_lines(related(answer, hit))]
    return quote._replace(text="\n".join(lines))


def _told(answer: Recall, hits: Sequence[Candidate]) -> str:
    """The whole text: how many, how to get the rest, and the memories."""
    left_out, cursor = _more(answer, hits)
    told = f"{len(hits)} of {len(hits) + left_out} memories, best first"
    if not hits:
        told = f"Nothing recalled ({answer.status}): {one_line(answer.reason)}"
    elif answer.query.seen:
        told += f"; {left_out} left out, which cursor {cursor} gets." if left_out else "."
    else:
        gone_by = answer.page.offset + len(hits)
        told += f"; {left_out} left out, which offset {gone_by} gets." if left_out else "."
    memories = quoted(list(_quotes(answer, hits)), longest=None)
    return f"{told}\n\n{memories}" if memories else told


def _quotes(answer: Recall, hits: Sequence[Candidate]) -> Iterator[Quote]:
    """The memories and what is to be said about them, which may repeat words of theirs."""
    yield from (_quote(hit, answer) for hit in hits)
    if answer.nearest_miss is not None and not hits:
        yield labelled(_glimpsed(answer.nearest_miss), "nearest miss, not relevant enough")
    # What a memory's own lines say already, its flags, trust and relations, is not repeated.
    said = warnings_for(answer.hits, answer.relations)
    warnings = [told for told in answer.warnings if told not in said]
    if warnings:
        yield Quote("warnings", "\n".join(warnings))
    yield from (Quote(f"degraded: without {part.part}", part.reason) for part in answer.degraded)


def _hit_json(hit: Candidate, answer: Recall) -> Json:
    return memory_json(hit.item) | {
        "score": number(hit.score),
        "reasons": list(match_reasons(hit, answer)),
        "relations": [
            {"type": told.type, "other": told.other, "text": cut(told.text, GLIMPSE),
             "inbound": told.inbound}
            for told in related(answer, hit)
        ],
    }  # fmt: skip


def _evidence(hit: Candidate) -> list[Json]:
    return [evidence_json(reason) for reason in hit.evidence]


def _glimpsed(miss: Candidate) -> Item:
    return miss.item._replace(text=cut(miss.item.text, GLIMPSE))


def _miss_json(miss: Candidate | None) -> Json | None:
    return None if miss is None else memory_json(_glimpsed(miss)) | {"score": number(miss.score)}


def explain(call: Call) -> Reply:
    """Why, why not, every step, or where it comes from: by what was told."""
    query, item_id = call.told.get("query", ""), call.told.get("id")
    options = call.given("profile", "k")
    if query.strip() and item_id:
        return _why(call.memory, query, seen(call.memory, item_id).id, options)
    if query.strip():
        return _trace(call.memory.recall(query, track=False, **options))
    if item_id:
        return _origin(call, seen(call.memory, item_id).id)
    raise Refused("say what to explain", remedy="give a query, an id, or both")


def _why(memory: Memory, query: str, item_id: str, options: dict[str, Any]) -> Reply:
    answer = memory.recall(query, track=False, **options)
    for place, hit in enumerate(answer.hits, 1):
        if hit.item.id == item_id:
            told = f"It is number {place} of {len(answer.hits)}.\n{arithmetic_of(hit)}"
            details = {"rank": place, **_hit_json(hit, answer), "evidence": _evidence(hit)}
            return _explained("why", told, details, stage="answer")
    missing = memory.why_not(item_id, query, **options)
    told = f"It was not returned; at the step {missing.stage}: {missing.reason}."
    for look in missing.looks:
        saw = "not found" if look.score is None else f"score {look.score:.3f}"
        told += f"\n{look.channel}: {saw}{look.why and ', ' + look.why}"
    details = why_not_json(missing)
    return _explained("why_not", told, details, stage=missing.stage, remedy=missing.remedy)


def _trace(answer: Recall) -> Reply:
    lines = [
        f"{step.name}: {step.came_in} in, {len(step.pool)} left, {step.status}, "
        f"{step.seconds * 1000:.1f} ms{step.note and '; ' + step.note}"
        for step in answer.steps
    ]
    steps = [
        {"step": step.name, "status": step.status, "came_in": step.came_in,
         "left": len(step.pool), "milliseconds": round(step.seconds * 1000, 3), "note": step.note}
        for step in answer.steps
    ]  # fmt: skip
    order = [{"id": hit.item.id, "score": number(hit.score)} for hit in answer.hits]
    details = {"status": answer.status, "steps": steps, "answer": order}
    return _explained("trace", "\n".join(lines), details, stage=None)


def _origin(call: Call, item_id: str) -> Reply:
    found = call.memory.why(item_id)
    lines = [
        f"{'  ' * (edge.depth - 1)}{edge.link.type} {edge.link.dst.id}"
        f"{': ' + one_line(edge.item.text) if edge.item else ''}"
        for edge in found.edges[:_ORIGINS_SHOWN]
    ]
    more = len(found.edges) - _ORIGINS_SHOWN
    if more > 0 or found.cut:
        lines.append("… and more")
    about = labelled(found.item)
    told = "\n".join([about.head, *(lines or ["It derives from no other memory."])])
    details = provenance_json(found)
    # There may be hundreds of them: a model reads what each begins with.
    return _explained(
        "origin", told, details if call.whole else cleaned(details, GLIMPSE), stage=None
    )


def _explained(
    about: str, told: str, details: Json, *, stage: str | None, remedy: str = ""
) -> Reply:
    content = {
        "about": about,
        "explanation": told,
        "stage": stage,
        "remedy": remedy,
        "notice": NOTICE,
        "details": details,
    }
    hint = f"\nTo bring it in: {one_line(remedy)}" if remedy else ""
    # The words of a question and of memories stand in the reasons: they are data, too.
    return Reply(quoted([Quote(about, told)], "explanation") + hint, content)
