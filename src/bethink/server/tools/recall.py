"""Handlers of the tools recall, explain, recall_file, read_smart and note_edit."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from bethink.core import plural
from bethink.core.characters import estimate_tokens
from bethink.core.json_values import Json, finite_or_none, format_moment
from bethink.core.named_tuple import NamedTuple
from bethink.errors import Refused
from bethink.ingest.redaction import redact
from bethink.memory import Memory
from bethink.model import Candidate, Item, Passage, Recall
from bethink.render import wire
from bethink.render.quoting import Quote, fence_quotes, one_line, quote_hit, quote_item, truncate
from bethink.retrieval.answer_text import UNSURE_NOTICE, Section, relation_lines, relations_of_hit
from bethink.retrieval.explain import explain as explain_score
from bethink.retrieval.explain import match_reasons
from bethink.retrieval.query_builder import encode_cursor
from bethink.retrieval.stages.assemble import warnings_for
from bethink.server.mcp.view import EVIDENCE_KEY
from bethink.server.tools.answers import get_visible, in_tool_words, memory_json, sanitize
from bethink.server.tools.catalog import EXPLAIN_OPTIONS, RECALL_OPTIONS, SNIPPET_CHARS
from bethink.server.tools.tool import Call, Reply

_MIN_SHOWN_CHARS = 80  # minimum characters of a memory to show
_MAX_ORIGINS = 30


def recall(call: Call) -> Reply:
    memory = call.memory
    options = call.given(*RECALL_OPTIONS)
    options["track"] = call.arguments.get("mark_accessed") if call.may_track else False
    return recall_reply(call, memory.recall(call.arguments.get("query", ""), **options))


def recall_reply(call: Call, answer: Recall) -> Reply:
    """Return the reply for an answer: what an agent reads, within its tokens."""
    memory = call.memory
    profile = memory.profile(call.arguments.get("profile"))
    sections = [one for one in profile.text if one.show == "memories" and one.heading]
    hits, text, tokens = _fit_hits(answer, sections, memory)
    left_out, cursor = _remaining(answer, hits)
    by_tokens = len(hits) < len(answer.hits)
    content = {
        **wire.fields_json(answer, "status reason confidence"),
        "memories": [hit_json(hit, answer) for hit in hits],
        "returned": len(hits),
        "left_out": left_out,
        "stopped_by": "tokens" if by_tokens else answer.page.stopped_by,
        "cursor": cursor,
        "tokens": tokens,
        "captions": [caption.text for caption in answer.captions],
        **wire.fields_json(answer, "warnings degraded"),
        "nearest_miss": miss_json(answer.nearest_miss),
        "profile": answer.profile,
    }
    meta = (
        {EVIDENCE_KEY: {hit.item.id: _evidence_json(hit) for hit in hits}}
        if call.supports_views
        else None
    )
    return Reply(text, content, meta)


class _FittingAnswer(NamedTuple):
    """The hits that fit the budget, the answer with them, and its tokens."""

    hits: Sequence[Candidate]
    text: str
    tokens: int


def _fit_hits(answer: Recall, sections: Sequence[Section], memory: Memory) -> _FittingAnswer:
    """Return the best hits that fit the budget with their labels; the first at least in part."""

    def fit(hits: Sequence[Candidate]) -> _FittingAnswer:
        text = _format_answer(answer, hits, sections)
        return _FittingAnswer(hits, text, _count_tokens(text, memory))

    max_tokens = answer.query.max_tokens
    whole = fit(answer.hits)
    if not answer.hits or (whole.tokens <= max_tokens and len(answer.hits) > 1):
        return whole
    room = max_tokens
    kept: list[Candidate] = []
    for hit in answer.hits:
        room -= _count_tokens("\n".join(_quote(hit, answer)), memory)
        if room < 0:
            break
        kept.append(hit)
    # That was an estimate: the fence and the entry heads count as well.
    while len(kept) > 1:
        fitting = fit(tuple(kept))
        if fitting.tokens <= max_tokens:
            return fitting
        kept.pop()
    return fit((_shorten(answer.hits[0], answer, sections, memory),))


def _shorten(
    hit: Candidate, answer: Recall, sections: Sequence[Section], memory: Memory
) -> Candidate:
    """Cut a memory that exceeds the whole budget to what fits, and mark it as cut."""
    text, longest, shown = hit.text, len(hit.text), hit
    while (
        longest > _MIN_SHOWN_CHARS
        and _count_tokens(_format_answer(answer, [shown], sections), memory)
        > answer.query.max_tokens
    ):
        longest = max(_MIN_SHOWN_CHARS, longest * 3 // 4)
        if hit.passage is None:
            shown = hit._replace(item=hit.item._replace(text=truncate(text, longest)))
        else:
            start = hit.passage.start
            tokens = _count_tokens(text[:longest], memory)
            shown = hit._replace(passage=Passage(start, start + longest, tokens))
    return shown


def _count_tokens(text: str, memory: Memory) -> int:
    counted = 0 if memory.embedder is None else memory.embedder.count_tokens(text)
    return estimate_tokens(text, counted)


def _remaining(answer: Recall, hits: Sequence[Candidate]) -> tuple[int, str | None]:
    """Return how many more hits there are, and the cursor that gets them."""
    left_out = max(0, answer.page.total - answer.page.offset - len(hits))
    ids = [hit.item.id for hit in hits]
    return left_out, encode_cursor(answer.query, ids) if left_out else None


def _quote(hit: Candidate, answer: Recall) -> Quote:
    quote = quote_hit(hit, _relevance_label(hit))
    lines = [quote.text, *relation_lines(relations_of_hit(answer, hit))]
    return quote._replace(text="\n".join(lines))


def _relevance_label(hit: Candidate) -> str:
    return f"score {hit.score:.3f}" if hit.relevance is None else f"relevance {hit.relevance:.2f}"


def _format_answer(answer: Recall, hits: Sequence[Candidate], sections: Sequence[Section]) -> str:
    """Format the whole answer: the counts, how to get the rest, and the memories."""
    shown, headings = _arrange(hits, sections)
    summary = _summarize(answer, hits, "under headings" if headings else "best match first")
    memories = fence_quotes(list(_quotes(answer, shown)), max_chars=None, headings=headings)
    return f"{summary}\n\n{memories}" if memories else summary


def _arrange(
    hits: Sequence[Candidate], sections: Sequence[Section]
) -> tuple[list[Candidate], dict[int, str]]:
    """Order hits by the profile's sections; return them and the place of each heading."""
    shown: list[Candidate] = []
    headings: dict[int, str] = {}
    for section in sections:
        own = [hit for hit in hits if not section.levels or hit.item.level in section.levels]
        own = [hit for hit in own if hit not in shown]
        if own:
            headings[len(shown)] = section.heading
            shown += own
    return [*shown, *(hit for hit in hits if hit not in shown)], headings


def _summarize(answer: Recall, hits: Sequence[Candidate], order: str) -> str:
    left_out, cursor = _remaining(answer, hits)
    total = len(hits) + left_out
    summary = f"{len(hits)} of {plural(total, 'memory')}, {order}"
    if not hits:
        summary = f"Nothing recalled ({answer.status}): {one_line(answer.reason)}"
    elif answer.query.seen:
        summary += f"; {left_out} not shown, get them with cursor {cursor}." if left_out else "."
    else:
        next_offset = answer.page.offset + len(hits)
        summary += (
            f"; {left_out} not shown, get them with offset {next_offset}." if left_out else "."
        )
    if any(hit.passage is not None for hit in hits):
        summary += " Of long memories this is the best passage; whole: true gives all of it."
    if hits and answer.status == "unsure":
        summary = f"{UNSURE_NOTICE} {summary}"
    return summary


def _quotes(answer: Recall, hits: Sequence[Candidate]) -> Iterator[Quote]:
    """Yield the memories and the notes about them, which may repeat words of theirs."""
    yield from (_quote(hit, answer) for hit in hits)
    if answer.nearest_miss is not None and not hits:
        yield quote_item(_snippet(answer.nearest_miss), "nearest, but left out")
    # Skip warnings that a memory's own lines already give: flags, trust, relations.
    repeated = warnings_for(answer.hits, answer.relations)
    warnings = [warning for warning in answer.warnings if warning not in repeated]
    if warnings:
        yield Quote("warnings", "\n".join(warnings))
    yield from (Quote(f"degraded: without {part.part}", part.reason) for part in answer.degraded)


def hit_json(hit: Candidate, answer: Recall) -> Json:
    """Return a hit as JSON: the memory, its relevance, and how it was found."""
    return memory_json(hit.item) | {
        "text": hit.text,
        "passage": wire.passage_json(hit),
        "relevance": hit.relevance,
        "score": finite_or_none(hit.score),
        "see_newer": hit.see_newer,
        "code": hit.code_note or None,
        "conflict": hit.conflict,
        "reasons": list(match_reasons(hit, answer)),
        "relations": [
            {
                **wire.fields_json(relation, "type other inbound"),
                "text": truncate(relation.text, SNIPPET_CHARS),
            }
            for relation in relations_of_hit(answer, hit)
        ],
    }


def _evidence_json(hit: Candidate) -> list[Json]:
    return [wire.evidence_json(reason) for reason in hit.evidence]


def _snippet(miss: Candidate) -> Item:
    return miss.item._replace(text=truncate(miss.text, SNIPPET_CHARS))


def miss_json(miss: Candidate | None) -> Json | None:
    """Return the nearest miss as JSON, cut to a snippet."""
    return (
        None
        if miss is None
        else memory_json(_snippet(miss))
        | {"relevance": miss.relevance, "score": finite_or_none(miss.score)}
    )


def explain(call: Call) -> Reply:
    query, item_id = call.arguments.get("query", ""), call.arguments.get("id")
    options = call.given(*EXPLAIN_OPTIONS)
    if query.strip() and item_id:
        return _explain_item(call.memory, query, get_visible(call.memory, item_id).id, options)
    if query.strip():
        return _explain_steps(call.memory.recall(query, track=False, **options))
    if item_id:
        return _explain_origin(call, get_visible(call.memory, item_id).id)
    raise Refused("nothing to explain", remedy="give a query, an id, or both")


def _explain_item(memory: Memory, query: str, item_id: str, options: Json) -> Reply:
    answer = memory.recall(query, track=False, **options)
    for rank, hit in enumerate(answer.hits, 1):
        if hit.item.id == item_id:
            text = f"Rank {rank} of {len(answer.hits)}.\n{explain_score(hit)}"
            details = {"rank": rank, **hit_json(hit, answer), "evidence": _evidence_json(hit)}
            return _explanation_reply("why", text, details, stage="answer")
    missing = memory.why_not(item_id, query, **options)
    text = f"Not returned. Dropped at stage {missing.stage}: {missing.reason}."
    for look in missing.looks:
        outcome = "not found" if look.score is None else f"score {look.score:.3f}"
        text += f"\n{look.channel}: {outcome}{look.why and ', ' + look.why}"
    details = wire.why_not_json(missing)
    remedy = in_tool_words(missing.remedy)
    details["remedy"] = remedy
    return _explanation_reply("why_not", text, details, stage=missing.stage, remedy=remedy)


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
    told = "probability that something stored is on the subject"
    lines += [f"confidence {answer.confidence:.2f} ({answer.status}): {told}, in log-odds"]
    lines += [f"  {reason.contribution:+.2f} {reason.why}" for reason in answer.assessed]
    order = [
        {"id": hit.item.id, "relevance": hit.relevance, "score": finite_or_none(hit.score)}
        for hit in answer.hits
    ]
    details = {
        "status": answer.status,
        "confidence": answer.confidence,
        "confidence_reasons": [reason._asdict() for reason in answer.assessed],
        "steps": steps,
        "answer": order,
    }
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
    text = "\n".join([about.head, *(lines or ["It is not derived from any other memory."])])
    details = wire.provenance_json(found)
    # There may be hundreds of sources: a model gets snippets.
    return _explanation_reply(
        "origin",
        text,
        details if call.for_program else sanitize(details, SNIPPET_CHARS),
        stage=None,
    )


def _explanation_reply(
    about: str, explanation: str, details: Json, *, stage: str | None, remedy: str = ""
) -> Reply:
    content = {
        "about": about,
        "explanation": explanation,
        "stage": stage,
        "remedy": remedy,
        "details": details,
    }
    hint = f"\nTo include it: {one_line(remedy)}" if remedy else ""
    # Reasons repeat words of the question and of memories, so they are fenced as data, too.
    return Reply(fence_quotes([Quote(about, explanation)], "explanation") + hint, content)


_PREVIEW_CHARS = 300  # characters of a linked memory


def recall_file(call: Call) -> Reply:
    path = call.arguments["path"]
    history = call.memory.recall_file(path.partition("::")[0], **call.given("intents"))
    memories = call.memory.file_memories(path, history.items)
    content = wire.file_history_json(history, memories, _PREVIEW_CHARS)
    if not (history.edits or memories):
        return Reply("No edits of such a file are recorded.", content)
    days = "\n".join(f"{entry.day} {entry.operation} × {entry.times}" for entry in history.days)
    quotes = [
        Quote(f"memory {one.item.id} | {one.code}".rstrip("| "), one.item.text[:_PREVIEW_CHARS])
        for one in memories
    ]
    if history.edits:
        edited = "\n".join([*history.paths, days])
        quotes.append(Quote(plural(history.edits, "edit"), edited))
    quotes += [
        Quote(f"why | {format_moment(entry.last_at)} | {plural(entry.times, 'time')}", entry.text)
        for entry in history.intents
    ]
    return Reply(fence_quotes(quotes, "file history"), content)


def read_smart(call: Call) -> Reply:
    root = call.memory.settings.project
    path = Path(call.arguments["path"])
    if "\0" in call.arguments["path"]:
        raise Refused("path contains a NUL character")
    # A relative path is relative to the project, not to the working directory.
    full_path = root / path if root is not None else path
    read = call.memory.read_smart(full_path, force=call.arguments.get("force", False))
    if read.text is not None:
        quotes = [Quote(f"{read.status} | {read.tokens} tokens", read.text)]
    else:
        changed = [chunk for chunk in read.chunks if chunk.text is not None]
        quotes = [
            Quote(f"{chunk.state} {chunk.id} | lines {chunk.first_line} to {chunk.last_line}",
                  chunk.text or "")
            for chunk in changed
        ]  # fmt: skip
    lines = [f"{read.status}: {read.tokens} of {read.whole_tokens} tokens", *read.notes]
    lines += [f"removed {name}" for name in read.removed]
    text = "\n".join([*lines, fence_quotes(quotes, "file", max_chars=None)]).strip()
    return Reply(text, wire.smart_read_json(read))


def note_edit(call: Call) -> Reply:
    edit = {"operation": "edit", **call.given("path", "operation", "intent", "session", "at")}
    if "item" in call.arguments:
        edit["item"] = get_visible(call.memory, call.arguments["item"]).id
    new = call.memory.note_edits([edit])
    text = "Recorded" if new else "Already recorded; nothing changed"
    intent = redact(edit.get("intent", "")).text
    reason = f", because: {one_line(intent)}" if intent else ""
    return Reply(
        f"{text}: {edit['operation']} {one_line(edit['path'])}{reason}.",
        {"new": new, "known": 1 - new},
    )
