"""Handlers of the tools recall, explain, recall_file, read_smart and note_edit."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from bethink.core.json_values import Json, finite_or_none
from bethink.errors import Refused
from bethink.memory import Memory
from bethink.model import Candidate, Item, Recall
from bethink.render.wire import (
    degraded_json,
    evidence_json,
    file_history_json,
    provenance_json,
    smart_read_json,
    why_not_json,
)
from bethink.retrieval.answer_text import relation_lines, relations_of_hit
from bethink.retrieval.explain import explain as arithmetic_of
from bethink.retrieval.explain import match_reasons
from bethink.retrieval.query_builder import encode_cursor
from bethink.retrieval.stages.assemble import warnings_for
from bethink.server.mcp.view import EVIDENCE_KEY
from bethink.server.tools.answers import (
    NOTICE,
    Quote,
    fence_quotes,
    get_visible,
    memory_json,
    one_line,
    quote_item,
    sanitize,
    truncate,
)
from bethink.server.tools.catalog import SNIPPET_CHARS
from bethink.server.tools.tool import Call, Reply

_FILTERS = ("entity", "kind", "layer", "band", "topic", "tag", "since", "until")
_LIMITS = ("as_of", "k", "episode_k", "max_tokens", "offset", "cursor", "profile")
_MIN_SHOWN_CHARS = 80  # characters that are shown of a memory in any case
_MAX_ORIGINS = 30


def recall(call: Call) -> Reply:
    """Handle `recall`: the hits within the token budget, and how many were left out."""
    memory = call.memory
    asked = call.given(*_FILTERS, *_LIMITS)
    track = call.told.get("mark_accessed") or None
    answer = memory.recall(call.told.get("query", ""), track=track, **asked)
    hits = _fit_hits(answer, memory)
    left_out, cursor = _remaining(answer, hits)
    by_tokens = len(hits) < len(answer.hits)
    text = _format_answer(answer, hits)
    content = {
        "status": answer.status,
        "reason": answer.reason,
        "notice": NOTICE,
        "memories": [_hit_json(hit, answer) for hit in hits],
        "returned": len(hits),
        "left_out": left_out,
        "stopped_by": "tokens" if by_tokens else answer.page.stopped_by,
        "cursor": cursor,
        "tokens": _count_tokens(text, memory),
        "captions": [caption.text for caption in answer.captions],
        "warnings": list(answer.warnings),
        "degraded": [degraded_json(part) for part in answer.degraded],
        "nearest_miss": _miss_json(answer.nearest_miss),
        "profile": answer.profile,
    }
    meta = (
        {EVIDENCE_KEY: {hit.item.id: _evidence_json(hit) for hit in hits}}
        if call.supports_views
        else None
    )
    return Reply(text, content, meta)


def _fit_hits(answer: Recall, memory: Memory) -> tuple[Candidate, ...]:
    """Return the best hits that fit the budget with their labels; the first at least in part."""
    most = answer.query.max_tokens
    room = most
    kept: list[Candidate] = []
    for hit in answer.hits:
        room -= _count_tokens("\n".join(_quote(hit, answer)), memory)
        if room < 0:
            break
        kept.append(hit)
    # That was a first guess: the frame and the code before each memory count as well.
    while len(kept) > 1 and _count_tokens(_format_answer(answer, kept), memory) > most:
        kept.pop()
    if len(kept) > 1 or not answer.hits:
        return tuple(kept)
    return (_shorten(answer.hits[0], answer, memory),)


def _shorten(hit: Candidate, answer: Recall, memory: Memory) -> Candidate:
    """Cut a memory that exceeds the whole budget to what fits, and mark it as cut."""
    text, longest, shown = hit.item.text, len(hit.item.text), hit
    while longest > _MIN_SHOWN_CHARS and _count_tokens(_format_answer(answer, [shown]), memory) > (
        answer.query.max_tokens
    ):
        longest = max(_MIN_SHOWN_CHARS, longest * 3 // 4)
        shown = hit._replace(item=hit.item._replace(text=truncate(text, longest)))
    return shown


def _count_tokens(text: str, memory: Memory) -> int:
    if memory.embedder is not None:
        return memory.embedder.count_tokens(text)
    return -(-len(text.encode()) // 4)


def _remaining(answer: Recall, hits: Sequence[Candidate]) -> tuple[int, str | None]:
    """Return how many more hits there are, and the cursor that gets them."""
    left_out = max(0, answer.page.total - answer.page.offset - len(hits))
    ids = [hit.item.id for hit in hits]
    return left_out, encode_cursor(answer.query, ids) if left_out else None


def _quote(hit: Candidate, answer: Recall) -> Quote:
    quote = quote_item(hit.item, f"score {hit.score:.3f}")
    lines = [hit.item.text, *relation_lines(relations_of_hit(answer, hit))]
    return quote._replace(text="\n".join(lines))


def _format_answer(answer: Recall, hits: Sequence[Candidate]) -> str:
    """Format the whole answer: the counts, how to get the rest, and the memories."""
    left_out, cursor = _remaining(answer, hits)
    told = f"{len(hits)} of {len(hits) + left_out} memories, best first"
    if not hits:
        told = f"Nothing recalled ({answer.status}): {one_line(answer.reason)}"
    elif answer.query.seen:
        told += f"; {left_out} left out, which cursor {cursor} gets." if left_out else "."
    else:
        gone_by = answer.page.offset + len(hits)
        told += f"; {left_out} left out, which offset {gone_by} gets." if left_out else "."
    memories = fence_quotes(list(_quotes(answer, hits)), max_chars=None)
    return f"{told}\n\n{memories}" if memories else told


def _quotes(answer: Recall, hits: Sequence[Candidate]) -> Iterator[Quote]:
    """Yield the memories and the notes about them, which may repeat words of theirs."""
    yield from (_quote(hit, answer) for hit in hits)
    if answer.nearest_miss is not None and not hits:
        yield quote_item(_snippet(answer.nearest_miss), "nearest miss, not relevant enough")
    # What a memory's own lines say already, its flags, trust and relations, is not repeated.
    said = warnings_for(answer.hits, answer.relations)
    warnings = [told for told in answer.warnings if told not in said]
    if warnings:
        yield Quote("warnings", "\n".join(warnings))
    yield from (Quote(f"degraded: without {part.part}", part.reason) for part in answer.degraded)


def _hit_json(hit: Candidate, answer: Recall) -> Json:
    return memory_json(hit.item) | {
        "score": finite_or_none(hit.score),
        "reasons": list(match_reasons(hit, answer)),
        "relations": [
            {"type": told.type, "other": told.other, "text": truncate(told.text, SNIPPET_CHARS),
             "inbound": told.inbound}
            for told in relations_of_hit(answer, hit)
        ],
    }  # fmt: skip


def _evidence_json(hit: Candidate) -> list[Json]:
    return [evidence_json(reason) for reason in hit.evidence]


def _snippet(miss: Candidate) -> Item:
    return miss.item._replace(text=truncate(miss.item.text, SNIPPET_CHARS))


def _miss_json(miss: Candidate | None) -> Json | None:
    return (
        None
        if miss is None
        else memory_json(_snippet(miss)) | {"score": finite_or_none(miss.score)}
    )


def explain(call: Call) -> Reply:
    """Handle `explain`: why, why not, every step, or the origin, by the arguments given."""
    query, item_id = call.told.get("query", ""), call.told.get("id")
    options = call.given("profile", "k")
    if query.strip() and item_id:
        return _explain_item(call.memory, query, get_visible(call.memory, item_id).id, options)
    if query.strip():
        return _explain_steps(call.memory.recall(query, track=False, **options))
    if item_id:
        return _explain_origin(call, get_visible(call.memory, item_id).id)
    raise Refused("say what to explain", remedy="give a query, an id, or both")


def _explain_item(memory: Memory, query: str, item_id: str, options: dict[str, Any]) -> Reply:
    answer = memory.recall(query, track=False, **options)
    for place, hit in enumerate(answer.hits, 1):
        if hit.item.id == item_id:
            told = f"It is number {place} of {len(answer.hits)}.\n{arithmetic_of(hit)}"
            details = {"rank": place, **_hit_json(hit, answer), "evidence": _evidence_json(hit)}
            return _explanation_reply("why", told, details, stage="answer")
    missing = memory.why_not(item_id, query, **options)
    told = f"It was not returned; at the step {missing.stage}: {missing.reason}."
    for look in missing.looks:
        saw = "not found" if look.score is None else f"score {look.score:.3f}"
        told += f"\n{look.channel}: {saw}{look.why and ', ' + look.why}"
    details = why_not_json(missing)
    return _explanation_reply("why_not", told, details, stage=missing.stage, remedy=missing.remedy)


def _explain_steps(answer: Recall) -> Reply:
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
    order = [{"id": hit.item.id, "score": finite_or_none(hit.score)} for hit in answer.hits]
    details = {"status": answer.status, "steps": steps, "answer": order}
    return _explanation_reply("trace", "\n".join(lines), details, stage=None)


def _explain_origin(call: Call, item_id: str) -> Reply:
    found = call.memory.why(item_id)
    lines = [
        f"{'  ' * (edge.depth - 1)}{edge.link.type} {edge.link.dst.id}"
        f"{': ' + one_line(edge.item.text) if edge.item else ''}"
        for edge in found.edges[:_MAX_ORIGINS]
    ]
    more = len(found.edges) - _MAX_ORIGINS
    if more > 0 or found.cut:
        lines.append("… and more")
    about = quote_item(found.item)
    told = "\n".join([about.head, *(lines or ["It derives from no other memory."])])
    details = provenance_json(found)
    # There may be hundreds of them: a model reads what each begins with.
    return _explanation_reply(
        "origin", told, details if call.whole else sanitize(details, SNIPPET_CHARS), stage=None
    )


def _explanation_reply(
    about: str, explanation: str, details: Json, *, stage: str | None, remedy: str = ""
) -> Reply:
    content = {
        "about": about,
        "explanation": explanation,
        "stage": stage,
        "remedy": remedy,
        "notice": NOTICE,
        "details": details,
    }
    hint = f"\nTo bring it in: {one_line(remedy)}" if remedy else ""
    # The words of a question and of memories stand in the reasons: they are data, too.
    return Reply(fence_quotes([Quote(about, explanation)], "explanation") + hint, content)


_PREVIEW_CHARS = 300  # characters of a linked memory


def recall_file(call: Call) -> Reply:
    """Handle `recall_file`: what was done to a file, and why."""
    history = call.memory.recall_file(call.told["path"], **call.given("intents"))
    linked = call.memory.browse(limit=20, ids=history.items) if history.items else []
    content = file_history_json(history, linked, _PREVIEW_CHARS)
    if not history.edits:
        return Reply("Nothing is known of such a file.", content | {"notice": NOTICE})
    days = "\n".join(f"{one.day} {one.operation} × {one.times}" for one in history.days)
    quotes = [Quote(f"{history.edits} edits", "\n".join([*history.paths, days]))]
    quotes += [
        Quote(f"why | {one.last_at:%Y-%m-%d} | {one.times} times", one.text)
        for one in history.intents
    ]
    quotes += [Quote(f"memory {item.id}", item.text[:_PREVIEW_CHARS]) for item in linked]
    return Reply(fence_quotes(quotes, "file history"), content | {"notice": NOTICE})


def read_smart(call: Call) -> Reply:
    """Handle `read_smart`: a file of the project, or what changed in it."""
    root = call.memory.settings.project
    path = Path(call.told["path"])
    if "\0" in call.told["path"]:
        raise Refused("path holds a NUL character")
    # A relative path is one of the project, wherever the server was started.
    wanted = root / path if root is not None else path
    read = call.memory.read_smart(wanted, force=call.told.get("force", False))
    if read.text is not None:
        quotes = [Quote(f"{read.status} | {read.tokens} tokens", read.text)]
    else:
        changed = [chunk for chunk in read.chunks if chunk.text is not None]
        quotes = [
            Quote(f"{one.state} {one.id} | lines {one.first_line} to {one.last_line}",
                  one.text or "")
            for one in changed
        ]  # fmt: skip
    lines = [f"{read.status}: {read.tokens} of {read.whole_tokens} tokens", *read.notes]
    lines += [f"removed {name}" for name in read.removed]
    text = "\n".join([*lines, fence_quotes(quotes, "file", max_chars=None)]).strip()
    return Reply(text, smart_read_json(read) | {"notice": NOTICE})


def note_edit(call: Call) -> Reply:
    """Handle `note_edit`: record what was done to a file."""
    edit = {"operation": "edit", **call.given("path", "operation", "intent", "session", "at")}
    new = call.memory.note_edits([edit])
    told = "noted" if new else "known already"
    return Reply(told, {"new": new, "known": 1 - new})
