"""Handlers of operations that only the REST API has, with export and import."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import replace

from anyio import CancelScope, to_thread
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from bethink.api.export_origin import ExportClaims
from bethink.api.links import is_entity, resolve_entity
from bethink.core.json_values import Json, iso, parse_strict_json
from bethink.core.sentences import shorten
from bethink.errors import BadProfile, BadText, NotFound, Refused
from bethink.maintain.job import ACTOR
from bethink.memory import Memory
from bethink.model import Candidate, Filters, Item, Link, Recall, Remembered
from bethink.ports.values import Scope as SearchScope
from bethink.ports.values import Usage
from bethink.render import wire
from bethink.render.quoting import one_line
from bethink.retrieval.profile import SLOTS
from bethink.retrieval.query_builder import make_filters
from bethink.server.rest.http_messages import Malformed, WrongMedia, media_type
from bethink.server.rest.operations import FILTERS, QUESTION_FILTERS
from bethink.server.tools import recall as recall_tool
from bethink.server.tools.answers import (
    count_fitting,
    get_visible,
    in_tool_words,
    memory_json,
    text_cost,
)
from bethink.server.tools.catalog import RECALL_OPTIONS, REMEMBER
from bethink.server.tools.tool import Call, Reply, validate_arguments
from bethink.server.tools.write import Relation, add_relations, draft_fields, read_relations

_DEFAULT_PAGE = 50
_DEFAULT_LINKS = 100


def get_memory(call: Call) -> Reply:
    item = get_visible(call.memory, call.arguments["id"])
    return Reply(item.text, {"memory": wire.item_json(item)})


def list_memories(call: Call) -> Reply:
    most = call.arguments.get("limit", _DEFAULT_PAGE)
    where = call.given(*FILTERS, "stored_by")
    pages = call.given("after", "offset")
    found = call.memory.browse(limit=most, **pages, **where)
    if "preview" in call.arguments:
        longest = call.arguments["preview"]
        found = [item._replace(text=shorten(item.text, longest)) for item in found]
    # At least one, and as many as fit into one answer: texts are not truncated.
    items = found[: count_fitting(call, (text_cost(call, item.text) for item in found))]
    cursor = items[-1].id if len(found) == most or len(items) < len(found) else None
    memories = [memory_json(item) for item in items]
    total = None
    if call.arguments.get("with_total"):
        found_on = call.memory.store.search.calendar(_scope_of(call, where), sessions=0).days
        total = sum(day.items for day in found_on)
    return Reply("", {"memories": memories, "cursor": cursor, "total": total})


def _scope_of(call: Call, where: Mapping[str, object]) -> SearchScope:
    now = call.memory.now
    ceiling = {"max_classification": call.memory.settings.max_classification}
    return SearchScope(make_filters({**ceiling, **where}, now), now)


def remember_many(call: Call) -> Reply:
    drafts = [_make_draft(call, fields) for fields in call.arguments["memories"]]
    good = [draft for draft in drafts if not isinstance(draft, Refused)]
    answers = iter(call.memory.remember_each([fields for fields, _ in good], review=True))
    results = [
        _result_json(entry if isinstance(entry, Refused) else _related(call, next(answers), entry))
        for entry in drafts
    ]
    stored = sum(result["status"] == "stored" for result in results)
    refused = sum(result["status"] == "refused" for result in results)
    return Reply("", {"stored": stored, "refused": refused, "results": results})


def _make_draft(call: Call, arguments: Json) -> tuple[Json, list[Relation]] | Refused:
    try:
        entry_call = replace(call, arguments=validate_arguments(arguments, REMEMBER.input_schema))
        return draft_fields(entry_call), read_relations(entry_call)
    except NotFound as missing:  # a memory that it relates to
        return Refused(missing.message, remedy=missing.remedy)
    except Refused as refused:
        return refused


def _related(
    call: Call, found: Remembered | Refused, entry: tuple[Json, list[Relation]]
) -> Remembered | Refused:
    """Add the relations of a stored memory; return the outcome, or why one is refused."""
    try:
        if isinstance(found, Remembered) and found.status not in {"waiting", "left_out"}:
            add_relations(call, found.id, entry[1])
    except Refused as refused:
        return refused
    return found


def _result_json(found: Remembered | Refused) -> Json:
    made = wire.outcome_json(found)
    if isinstance(found, Refused):
        made["error"]["remedy"] = in_tool_words(found.remedy)
    return made


def inbox(call: Call) -> Reply:
    found = call.memory.inbox(**call.given("source", "refused"))
    offset, limit = call.arguments.get("offset", 0), call.arguments.get("limit", _DEFAULT_PAGE)
    page = found[offset : offset + limit]
    fitting = count_fitting(call, (text_cost(call, one.text) for one in page))
    waiting = [wire.waiting_json(one) for one in page[:fitting]]
    return Reply("", {"waiting": waiting, "total": len(found)})


def review(call: Call) -> Reply:
    memory, ids, decision = call.memory, call.arguments["ids"], call.arguments["decision"]
    if decision == "refuse":
        done = memory.refuse(*ids)
    elif decision == "merge":
        done = [memory.merge(*ids, **call.given("text", "into")).id]
    elif decision == "undo":
        done = [memory.undo(one).item for one in ids]
    else:
        done = [one.id for one in memory.accept(*ids, **call.given("text"))]
    return Reply("", {"decision": decision, "ids": done})


def restore(call: Call) -> Reply:
    ids = [get_visible(call.memory, item_id).id for item_id in call.arguments["ids"]]
    return Reply("", {"restored": call.memory.restore(*ids)})


def links(call: Call) -> Reply:
    found = call.memory.links(get_visible(call.memory, call.arguments["id"]).id)
    offset, limit = call.arguments.get("offset", 0), call.arguments.get("limit", _DEFAULT_LINKS)
    others = call.memory.store.items.get(
        sorted({end.id for link in found for end in (link.src, link.dst)})
    )
    ceiling = call.memory.settings.max_classification
    entries = [
        _link_json(link)
        for link in found
        if all(
            end.id in others and others[end.id].classification <= ceiling
            for end in (link.src, link.dst)
        )
    ]
    page = entries[offset : offset + limit]
    return Reply("", {"links": page, "left_out": max(0, len(entries) - offset - len(page))})


def _link_json(link: Link) -> Json:
    return {
        "from": link.src._asdict(),
        "type": link.type,
        "to": link.dst._asdict(),
        **wire.fields_json(link, "weight confidence source"),
    }


def stats(call: Call) -> Reply:
    counted = {name: value for name, value in call.memory.stats().items() if name != "path"}
    return Reply("", wire.mapping_json(counted))


def events(call: Call) -> Reply:
    found = call.memory.events(**call.given("after", "limit"))
    return Reply("", {"events": [wire.record_json(event) for event in found]})


def questions(call: Call) -> Reply:
    return Reply("", {"questions": [wire.record_json(one) for one in call.memory.questions()]})


def save_question(call: Call) -> Reply:
    query = call.arguments["query"]
    if call.arguments.get("remove"):
        call.memory.drop_question(query)
    else:
        marked = {
            name: [get_visible(call.memory, one).id for one in ids]
            for name, ids in call.given("relevant", "wrong").items()
        }
        call.memory.save_question(query, filters=call.given(*QUESTION_FILTERS), **marked)
    return questions(call)


def conflicts(call: Call) -> Reply:
    found = [
        {
            "memory": memory_json(one.item),
            "others": [wire.record_json(other) for other in one.others],
        }
        for one in call.memory.conflicts()
    ]
    return Reply("", {"conflicts": found})


def settle(call: Call) -> Reply:
    item = get_visible(call.memory, call.arguments["id"])
    settled = call.memory.settle(item.id, call.arguments["keep"])
    return Reply("", {"id": settled.id, "text": settled.text})


def sync_status(call: Call) -> Reply:
    return Reply("", call.memory.sync_status() | {"conflicts": len(call.memory.conflicts())})


_INSPECTED_FIELDS = (
    *("rev", "tags", "entities", "occurred_at", "stored_at", "valid_to", "importance"),
    *("classification", "recalls", "tokens"),
)
_DEFAULT_CANDIDATES = 20
_RUN_KEYS = ("id", "started_at", "completed_at")  # of the run, not of the answer
_WORD = re.compile(r"\w+")
_STEM_CHARS = 3  # letters that a word and its index term share at least
_MAX_MARKED_CHARS = 20_000  # characters of a text in which matching words are marked


def inspect(call: Call) -> Reply:
    memory, query = call.memory, call.arguments.get("query", "")
    options = call.given(*RECALL_OPTIONS)
    answer = memory.recall(query, track=False, **options)
    reply = recall_tool.recall_reply(call, answer)
    shown = {entry["id"] for entry in reply.content["memories"]}
    terms = {term for word in memory.store.search.words(query) if not word.common
             for term in word.terms}  # fmt: skip
    whole = wire.recall_json(
        answer, trace=True, candidates=call.arguments.get("candidates", _DEFAULT_CANDIDATES)
    )
    same = ("profile", "strategy", "status", "reason", "confidence", "confidence_reasons")
    more = ("captions", "warnings", "degraded", "nearest_miss")
    item_id = call.arguments.get("id")
    content = {
        "query": {name: whole["query"][name] for name in
                  ("text", "now", "as_of", "k", "max_tokens", "offset", "filters")},
        **{name: whole[name] for name in same},
        **{name: reply.content[name] for name in more},
        "hits": [_inspected_json(hit, answer, memory, terms, shown) for hit in answer.hits],
        "total": answer.page.total,
        "context": {"text": reply.text, "tokens": reply.content["tokens"]},
        "trace": {name: value for name, value in whole["trace"].items() if name not in _RUN_KEYS},
        "why_not": _place_json(memory, query, item_id, options) if item_id else None,
    }  # fmt: skip
    return Reply(reply.text, content)


def _inspected_json(
    hit: Candidate, answer: Recall, memory: Memory, terms: set[str], shown: set[str]
) -> Json:
    whole = wire.hit_json(hit, answer)
    return recall_tool.hit_json(hit, answer) | {
        **{name: whole[name] for name in _INSPECTED_FIELDS},
        "words": _matching_words(hit.text, terms, memory),
        "in_context": hit.item.id in shown,
        "evidence": whole["evidence"],
        "channels": whole["channels"],
    }


def _matching_words(text: str, terms: set[str], memory: Memory) -> list[str]:
    """Return the words of a text, as written, that the index counts as words of the question."""
    stems = {term[:_STEM_CHARS] for term in terms}
    words = dict.fromkeys(_WORD.findall(text[:_MAX_MARKED_CHARS]))
    likely = [word for word in words if word.casefold()[:_STEM_CHARS] in stems]
    return [word for word in likely if terms.intersection(memory.store.search.terms(word))]


def _place_json(memory: Memory, query: str, item_id: str, options: Json) -> Json:
    return wire.why_not_json(memory.why_not(get_visible(memory, item_id).id, query, **options))


def profiles(call: Call) -> Reply:
    own = call.memory.profile().name
    entries = []
    for name in call.memory.profiles():
        try:
            found = call.memory.profile(name)
        except BadProfile:
            continue  # a broken file of the owner's; `bethink profiles` says what is wrong with it
        parts = [channel.name for channel in found.channels]
        parts += [stage.name for slot in SLOTS for stage in found.slot(slot)]
        entries.append(
            {
                "name": name,
                "title": found.title,
                "deep": found.deep is not None,
                "default": name == own,
                "parts": parts,
            }
        )
    return Reply("", {"profiles": entries})


def usage(call: Call) -> Reply:
    item = get_visible(call.memory, call.arguments["id"])
    found = call.memory.store.activity.usage([item.id], call.memory.now).get(item.id, Usage())
    return Reply("", wire.record_json(found))


_DEFAULT_NODES, _DEFAULT_DEPTH = 100, 2
_EACH = 20  # neighbours of one node; of the start up to a quarter of all nodes
_LABEL_CHARS = 160


def graph(call: Call) -> Reply:
    memory, start = call.memory, call.arguments["node"]
    found = _Neighbourhood(memory, call.arguments.get("limit", _DEFAULT_NODES))
    if is_entity(start, memory.store):
        try:
            found.add_entities([resolve_entity(start, memory.store).id], 0)
        except NotFound as error:
            remedy = "list the entities with GET /v1/entities"
            raise NotFound(error.message, remedy=remedy) from error
    else:
        found.add_items([get_visible(memory, start)], 0)
    for hop in range(1, call.arguments.get("depth", _DEFAULT_DEPTH) + 1):
        found.grow(hop)
    nodes, edges = list(found.nodes.values()), list(found.edges.values())
    return Reply("", {"nodes": nodes, "edges": edges, "more": found.more})


class _Neighbourhood:
    """Nodes and edges around a start, grown step by step up to a number of nodes."""

    def __init__(self, memory: Memory, limit: int) -> None:
        self._memory, self._limit = memory, limit
        self._scope = SearchScope(
            Filters(max_classification=memory.settings.max_classification), memory.now
        )
        self.nodes: dict[str, Json] = {}
        self.edges: dict[tuple[str, str, str], Json] = {}
        self.more = False

    def grow(self, hop: int) -> None:
        """Add the neighbours of the nodes that were added last, and the edges to them."""
        last = [node for node in self.nodes.values() if node["hop"] == hop - 1]
        items = [node["id"] for node in last if node["what"] == "memory"]
        entities = [node["id"] for node in last if node["what"] == "entity"]
        store, each = self._memory.store, _EACH if hop > 1 else max(_EACH, self._limit // 4)
        if items:
            self._add_links(store.graph.links_of(items), hop)
            for item in store.items.get(items).values():
                self.add_entities(list(item.entities[:each]), hop)
                self.more |= len(item.entities) > each
                self._connect(item.id, item.entities, "mentions")
        if entities:
            edges = store.graph.edges(entities, each, self._memory.now)
            self._add_links([link for links in edges.values() for link in links], hop)
            mentioning = store.search.mentioning(entities, each + 1, self._scope)
            for entity, found in mentioning.items():
                self.more |= len(found) > each
                self.add_items(found[:each], hop)
                for item in found[:each]:
                    self._connect(item.id, (entity,), "mentions")

    def add_items(self, items: Sequence[Item], hop: int) -> None:
        for item in items:
            self._add(item.id, "memory", one_line(item.text[:_LABEL_CHARS]), item.kind, hop)

    def add_entities(self, ids: Sequence[str], hop: int) -> None:
        for entity in ids:
            kind, _, name = entity.partition(":")
            self._add(entity, "entity", name, kind, hop)

    def _add_links(self, links: Sequence[Link], hop: int) -> None:
        ends = [end for link in links for end in (link.src, link.dst)]
        items = self._memory.store.items.get([end.id for end in ends if end.kind == "item"])
        live = [item for item in items.values() if item.live_to is None]
        self.add_items(live, hop)
        self.add_entities([end.id for end in ends if end.kind == "entity"], hop)
        for link in links:
            self._connect(link.src.id, (link.dst.id,), link.type, link.weight)

    def _add(self, node_id: str, what: str, label: str, kind: str, hop: int) -> None:
        if node_id in self.nodes:
            return
        if len(self.nodes) >= self._limit:
            self.more = True
            return
        self.nodes[node_id] = {
            "id": node_id,
            "what": what,
            "label": label,
            "kind": kind,
            "hop": hop,
        }

    def _connect(self, src: str, others: Sequence[str], kind: str, weight: float = 1.0) -> None:
        for dst in others:
            if src in self.nodes and dst in self.nodes:
                edge = {"from": src, "to": dst, "type": kind, "weight": weight}
                self.edges.setdefault((src, dst, kind), edge)


_MAX_SESSIONS = 60


def times(call: Call) -> Reply:
    scope = _scope_of(call, call.given(*FILTERS))
    found = call.memory.store.search.calendar(scope, sessions=_MAX_SESSIONS)
    days: dict[str, dict[str, int]] = {}
    for entry in found.days:
        days.setdefault(entry.day.isoformat(), {})[entry.kind] = entry.items
    content = {
        "days": [
            {"day": day, "count": sum(kinds.values()), "kinds": kinds}
            for day, kinds in days.items()
        ],
        "sessions": [
            {**wire.fields_json(span, "session first last"), "count": span.items}
            for span in found.sessions
        ],
        "counted": sum(sum(kinds.values()) for kinds in days.values()),
    }
    return Reply("", content)


_DEFAULT_RUNS, _MAX_CHANGES = 20, 5000
_STEP_DONE = "maintained"  # the journal's entry for a step of a run, or several


def run_checks(memory: Memory) -> Json:
    """Check the whole store; details stay on the server.

    A finding may name memories that the caller must not know of.
    """
    found = memory.doctor()
    entries = [
        {
            **wire.fields_json(check, "name ok warning"),
            "detail": check.detail if check.ok else "run bethink doctor on the server to see it",
        }
        for check in found
    ]
    return {"ok": all(check.ok or check.warning for check in found), "checks": entries}


def maintenance(call: Call) -> Reply:
    """Handle `maintenance`: the last runs, as far as their steps may be seen.

    How many steps a run had in all may tell of memories that the caller must not know of.
    """
    changes = call.memory.store.admin.changes(item=None, actor=ACTOR, limit=_MAX_CHANGES)
    runs: dict[str, Json] = {}
    for line in changes:
        if line.kind == _STEP_DONE and line.item is not None:
            run = runs.setdefault(line.item, {"run": line.item, "at": iso(line.at), "jobs": {}})
            detail = parse_strict_json(line.detail)
            job = str(detail.get("job", ""))
            run["jobs"][job] = run["jobs"].get(job, 0) + len(detail.get("whys", ("",)))
    return Reply("", {"runs": list(runs.values())[: call.arguments.get("limit", _DEFAULT_RUNS)]})


NDJSON_MEDIA = "application/x-ndjson"
MAX_IMPORT_BYTES = 64 << 20
_CHUNK_BYTES = 1 << 16
_SEND_TIMEOUT_S = 30.0


async def start_export(memory: Memory) -> ExportResponse:
    """Start an export and return its response; a store error is raised before any byte is sent.

    It holds what this server may show, and says so in its first line where that is not all.
    """
    chunks = _export_chunks(memory)
    return ExportResponse(await to_thread.run_sync(next, chunks, b""), chunks)


class ExportResponse(Response):
    """A streamed export, aborted if the client stops reading.

    An open reader of the store keeps its write-ahead log from being truncated.
    """

    def __init__(self, first: bytes, chunks: Generator[bytes, None, None]) -> None:
        super().__init__(media_type=NDJSON_MEDIA)
        del self.headers["content-length"]
        self._first, self._chunks = first, chunks

    async def __call__(self, _: Scope, __: Receive, send: Send) -> None:
        chunk = self._first
        try:
            await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
            while chunk:
                async with asyncio.timeout(_SEND_TIMEOUT_S):
                    await send({"type": "http.response.body", "body": chunk, "more_body": True})
                chunk = await to_thread.run_sync(next, self._chunks, b"")
            await send({"type": "http.response.body"})
        finally:
            with CancelScope(shield=True):
                await to_thread.run_sync(self._chunks.close)


def _export_chunks(memory: Memory) -> Generator[bytes, None, None]:
    parts: list[bytes] = []
    size = 0
    for record in memory.export():
        parts.append(wire.dumps(record).encode() + b"\n")
        size += len(parts[-1])
        if size >= _CHUNK_BYTES:
            yield b"".join(parts)
            parts, size = [], 0
    if parts:
        yield b"".join(parts)


async def run_import(request: Request, memory: Memory) -> Json:
    """Import an export and return how many memories were new."""
    if media_type(request) != NDJSON_MEDIA:
        raise WrongMedia(f"the body must be {NDJSON_MEDIA}", remedy=f"Content-Type: {NDJSON_MEDIA}")
    body = await request.body()
    claims: list[ExportClaims] = []
    count = await to_thread.run_sync(
        lambda: memory.import_(_parse_records(body), announce=claims.append)
    )
    return {"stored": count, "signed": claims[0].is_own}


def _parse_records(body: bytes) -> Iterator[Json]:
    for number, line in enumerate(body.split(b"\n"), start=1):
        if not line.strip():
            continue
        try:
            value = parse_strict_json(line.decode())
        except UnicodeDecodeError as error:
            raise Malformed(f"line {number} is not UTF-8") from error
        except Refused as error:
            raise Malformed(f"line {number} is {error.message}") from error
        if not isinstance(value, dict):
            raise BadText(f"line {number} is not a record of an export")
        yield value
