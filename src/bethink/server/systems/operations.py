"""What the tools of other systems do: a record for each call, in their words as an answer.

An argument goes to the keyword in ``to``, which may be dotted. A field of an answer is a literal,
or the path of a value in the record of an operation with filters behind it: ``score | round 3``.
A text that begins with = is itself. ``each`` makes a list of the rows at a path. A field whose name
ends with ? is left out where there is no value.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from functools import partial
from typing import Any

from bethink.api.browse import merge_timeline
from bethink.api.files import CodeMemory
from bethink.core.characters import strip_hidden
from bethink.core.dataclass import replace
from bethink.core.json_values import Json, parse_strict_json
from bethink.errors import Conflict, NotFound, Refused
from bethink.memory import Memory
from bethink.model import Candidate, Item, Recall, find_layer
from bethink.render import wire
from bethink.render.quoting import Quote, fence_quotes, quote_item
from bethink.retrieval.answer_text import render_text
from bethink.retrieval.heat import pace_of
from bethink.retrieval.profile import Profile
from bethink.server.systems.declarations import load_system
from bethink.server.tools import TOOLS, answers
from bethink.server.tools.tool import Call, Reply, Tool

PIN_IMPORTANCE = 0.9
_FOCUS_FACTOR = 1.5
_MAX_ENTITIES = 10_000
_MAX_BROWSED = 10_000
_PREVIEW_CHARS = 300
COMMAND = "cli"


def run(tool: Tool, call: Call) -> Reply:
    """Run a tool of another system: translate, do, and answer with its fields."""
    row = load_system(tool.system).rows[tool.name]
    record = _OPERATIONS[row["does"]](call, translate_arguments(row, call.arguments))
    content: Json = answers.sanitize(
        shape(row["answer"], record) | {"notice": answers.NOTICE}, tool.max_text
    )
    if "text" not in row:
        return Reply(wire.dumps(content), content)
    text = content[row["text"]]
    if call.via != COMMAND:
        text = fence_quotes([Quote(tool.name, text)], tool.name, max_chars=None)
    return Reply(text, content)


def _native(name: str, call: Call, arguments: Json) -> Json:
    """Call a tool of our own as a program does, and return its answer."""
    return TOOLS[name].run_untruncated(replace(call, arguments=arguments, for_program=True)).content


def _recall(call: Call, given: Json) -> Json:
    memory, query = call.memory, given.pop("query", "")
    track, trace = given.pop("track", None), given.pop("trace", False)
    if "stages" in given:
        given["profile"] = _with_stages(memory.profile(), given.pop("stages"))
    focus = given.pop("focus", "")
    if area := query if focus is True else focus.strip():
        given["boost"] = partial(_focus, area.casefold())
    agent = given.pop("agent", None)
    if agent is not None:
        given["boost"] = partial(_agent_factor, agent)
    given["track"] = track if call.may_track else False
    by_name = given.pop("by_name", False)
    part: str = given.get("entity") or query
    answer = memory.recall(query if query.strip() or not by_name else part, **given)
    if by_name and not answer.page.total and (names := _names_with(part, memory)):
        answer = memory.recall("\n".join(names), **given | {"entity": names})
    if agent is not None:
        answer = _of_agent(agent, answer)
    entities = _entities_of(memory, [hit.item for hit in answer.hits])
    hits = [_hit_record(hit, answer) | {"entity": entities.get(hit.item.id)} for hit in answer.hits]
    layers = answer.query.filters.layers
    return wire.recall_json(answer, trace=trace) | {
        "hits": hits,
        "concepts": [hit for hit in hits if hit["level"] != "raw"],
        "found": [hit for hit in hits if hit["level"] != "insight"],
        "text": render_text(answer, memory.profile(answer.profile).text),
        "layer": find_layer(layers[0]) if layers else None,
        "search": _search_method(hits),
        "stages": _stages(answer),
    }


def _names_with(part: str, memory: Memory) -> list[str]:
    """The names of entities that contain a text."""
    known = memory.entities(limit=_MAX_ENTITIES) if (part := part.strip().casefold()) else ()
    return [one.name for one in known if part in one.name.casefold()]


def _with_stages(profile: Profile, wanted: Sequence[str]) -> Profile:
    """The profile with the channels of these stages only: ``sf`` is sf.porter, sf.trigram ..."""
    known = {channel.name.partition(".")[0] for channel in profile.channels}
    chosen = {name.lower() for name in wanted}
    if not chosen <= known:
        unknown = min(chosen - known)
        raise Refused(f"there is no stage {unknown!r}", remedy=f"one of {', '.join(sorted(known))}")
    channels = [one for one in profile.channels if one.name.partition(".")[0] in chosen]
    return replace(profile, channels=tuple(channels))


def quote_answer(memory: Memory, text: str, options: Json) -> str:
    """The memories that match a question, or are of an area, quoted for a prompt."""
    given = dict(options)
    if given.pop("focus", False):
        given["boost"] = partial(_focus, text.casefold())
    answer = memory.recall(text, track=False, **given)
    quotes = [quote_item(hit.item) for hit in answer.hits]
    return fence_quotes(quotes) or f"(nothing: {answer.reason})"


def _focus(area: str, item: Item) -> float | tuple[float, str]:
    """Raise memories of an area: its name is in their topic, tags, entities or text."""
    places = (item.topic or "", *item.tags, *item.entities, item.text)
    if any(area in place.casefold() for place in places):
        return _FOCUS_FACTOR, f"in the area {area}"
    return 1.0


def _agent_factor(agent: str, item: Item) -> float:
    """Put the memories of other agents last; one without an agent is everybody's."""
    return 1.0 if item.metadata.get("agent_id", agent) == agent else 0.0


def _of_agent(agent: str, answer: Recall) -> Recall:
    """The answer without the memories of other agents."""
    hits = tuple(hit for hit in answer.hits if _agent_factor(agent, hit.item))
    kept = {hit.item.id for hit in hits}
    captions = tuple(caption for caption in answer.captions if kept & set(caption.items))
    page = answer.page._replace(returned=len(hits))
    return replace(answer, hits=hits, captions=captions, page=page)


def _hit_record(hit: Candidate, answer: Recall) -> Json:
    made = wire.hit_json(hit, answer)
    relevance = hit.reason("composite.relevance")
    first = next(iter(made["channels"]), "").partition(".")[0]
    return made | {
        "stage": first.capitalize(),
        "shares": {
            "relevance": float(relevance.why) if relevance else None,
            "heat": (made["heat"] or 0.0) / 100,
            "momentum": (made["momentum"] or 0.0) / 10,
            "importance": hit.item.importance,
        },
    }


def _search_method(hits: Iterable[Json]) -> str:
    """Name the search that found something: fts5, like, or both."""
    reasons = {reason for hit in hits for reason in hit["match_reasons"]}
    by_words = any(reason.startswith("content_match") for reason in reasons)
    like = {"content_substring", "entity_name_match", "content_match_dual"} & reasons
    return "fts5+like" if by_words and like else "fts5" if by_words else "like"


def _stages(answer: Recall) -> Json:
    """What every stage of the search found, how long it took, and whether it was skipped."""
    stages: Json = {}
    for step in answer.steps:
        slot, _, name = step.name.partition(".")
        if slot == "channel":
            stage = name.partition(".")[0].capitalize()
            known = stages.setdefault(stage, {"hits": 0, "ms": 0.0, "skipped": True})
            known["hits"] += len(step.pool)
            known["ms"] = round(known["ms"] + step.seconds * 1000, 3)
            known["skipped"] = known["skipped"] and step.status == "skipped"
    return stages


def _entities_of(memory: Memory, items: Sequence[Item]) -> dict[str, Json]:
    """The entity that each memory is about, the first it names, with its momentum."""
    ids = tuple(dict.fromkeys(item.entities[0] for item in items if item.entities))
    named = memory.store.graph.find_entities(ids)
    known = {entity.id: entity for found in named for entity in found}
    momenta = memory.store.activity.momenta(ids, memory.now)
    records: dict[str, Json] = {}
    for entity_id in ids:
        kind, _, key = entity_id.partition(":")
        momentum = momenta.get(entity_id, 0.0)
        name = known[entity_id].name if entity_id in known else key
        records[entity_id] = {"id": entity_id, "kind": kind, "name": name, "momentum": momentum}
        records[entity_id]["pace"] = pace_of(momentum)
    return {item.id: records[item.entities[0]] for item in items if item.entities}


def _item_records(call: Call, items: Sequence[Item]) -> list[Json]:
    """Memories with what they are about, as many as one answer has room for."""
    costs = (answers.text_cost(call, item.text) for item in items)
    shown = items[: answers.count_fitting(call, costs)]
    entities = _entities_of(call.memory, shown)
    return [wire.item_json(item) | {"entity": entities.get(item.id)} for item in shown]


def _remember(call: Call, given: Json) -> Json:
    entity = given.pop("entity", None)
    if entity is not None:
        if not entity["name"].strip():
            raise Refused("the name of the entity is empty")
        key = f" <{entity['key']}>" if entity.get("key") else ""
        given["entities"] = [f"{entity['kind']}:{entity['name']}{key}"]
    if "agent" in given:
        given.setdefault("metadata", {})["agent_id"] = given.pop("agent")
    given = {"source": call.source, **_pin(given)}
    given["source_class"] = "user" if call.via == COMMAND else "agent"
    stored = call.memory.remember(given.pop("text"), **given)
    item = given | {"entity": None}
    with suppress(NotFound):  # classified above what this caller may read
        [item] = _item_records(call, [call.memory.get(stored.id)])
    return wire.record_json(stored) | {"item": item, "entity": item["entity"]}


def _pin(given: Json) -> Json:
    """Let a high importance pin a memory, and a lower one undo that."""
    own = given.get("importance")
    return given if own is None else given | {"pinned": own >= PIN_IMPORTANCE}


def _update(call: Call, given: Json) -> Json:
    if len(given) == 1:
        raise Refused("nothing to change", remedy="give at least one field")
    changed = _native("update_memory", call, _pin(given))
    [item] = _item_records(call, [call.memory.get(changed["id"])])
    return changed | {"item": item, "changed": [one for one in changed["changed"] if one in given]}


def _boost(call: Call, given: Json) -> Json:
    item = answers.get_visible(call.memory, given["id"])
    if given.get("revision", item.rev) != item.rev:
        raise Conflict(f"{item.id} is in revision {item.rev}", remedy="read it again")
    after = call.memory.boost(item.id, given["by"])
    return {"id": after.id, "rev": after.rev, "relevance": after.relevance}


def _forget(call: Call, given: Json) -> Json:
    preview = given.get("preview", False)
    ids = given.get("ids") or ([given["id"]] if "id" in given else [])
    if not ids:
        if not given.get("sweep"):
            raise Refused("nothing to forget", remedy="give the ids of memories")
        return _sweep(call, preview=preview)
    found, missing = _find(call, ids)
    if missing and "id" in given:
        answers.get_visible(call.memory, given["id"])  # says what is wrong with the only one
    reason = given.get("reason") or "forgotten"
    done = call.memory.forget(*(item.id for item in found), preview=preview, reason=reason)
    going = [item.id for item in done.items]
    kept = dict(done.kept)
    return {
        "ok": bool(going),
        "id": ids[0],
        "preview": preview,
        "would_go": going if preview else [],
        "dropped": going if preview else None,
        "deleted": [] if preview else going,
        "kept": [*kept],
        "missing": missing,
        "preserved": True if kept else None,
        "reason": next(iter(kept.values()), None),
    }


def _find(call: Call, ids: Iterable[str]) -> tuple[list[Item], list[str]]:
    """The memories with these ids, and the ids that no memory has."""
    found: list[Item] = []
    missing: list[str] = []
    for item_id in ids:
        try:
            found.append(answers.get_visible(call.memory, item_id))
        except NotFound:
            missing.append(item_id)
    return found, missing


def _sweep(call: Call, *, preview: bool) -> Json:
    report = call.memory.maintain("forget", preview=preview)
    going = [item_id for step in report.plan.steps for item_id in step.proposal.leaving]
    return {
        "ok": True,
        "preview": preview,
        "scanned": report.plan.live,
        "dropped": going,
        "run": report.run,
        "left": [answers.in_tool_words(reason) for reason in report.reasons()],
    }


def _consolidate(call: Call, given: Json) -> Json:
    jobs, preview = given.pop("jobs"), given.pop("preview", False)
    report = call.memory.maintain(*jobs, preview=preview, progress=call.progress, **given)
    steps = [(step.job.name, step.proposal) for step in report.plan.steps]
    groups = [proposal for job, proposal in steps if job != "forget"]
    swept = [item_id for job, proposal in steps if job == "forget" for item_id in proposal.leaving]
    return {
        "preview": preview,
        "groups": [
            {"why": one.why, "text": one.text, "count": len(one.leaving), "ids": list(one.leaving)}
            for one in groups
        ],
        "replaced": sum(len(one.leaving) for one in groups),
        "dropped": swept,
        "run": report.run,
        "left": [answers.in_tool_words(reason) for reason in report.reasons()],
    }


def _entities(call: Call, given: Json) -> Json:
    limit, offset = given.pop("limit"), given.pop("offset", 0)
    found = call.memory.entities(limit=_MAX_ENTITIES, **given)
    shown = found[offset : offset + limit]
    records = [
        wire.entity_json(one) | {"key": next(iter(one.aliases), None), "layers": dict(one.layers)}
        for one in shown
    ]
    more = offset + len(shown) < len(found)
    return {"total": len(found), "offset": offset, "more": more, "entities": records}


def _topics(call: Call, given: Json) -> Json:
    items = call.memory.browse(limit=_MAX_BROWSED, **given)
    counts = Counter((item.topic, item.level == "raw") for item in items if item.topic)
    records = [
        {"id": name, "episodes": counts[name, True], "concepts": counts[name, False]}
        for name in sorted({topic for topic, _ in counts})
    ]
    return {"topics": records}


def _browse(call: Call, given: Json) -> Json:
    limit, agent = given.pop("limit"), given.pop("agent", None)
    items = call.memory.browse(limit=limit + 1 if agent is None else _MAX_BROWSED, **given)
    if agent is not None:
        items = [item for item in items if _agent_factor(agent, item)]
    return {"items": _item_records(call, items[:limit]), "more": len(items) > limit}


def _get(call: Call, given: Json) -> Json:
    found, missing = _find(call, given["ids"])
    return {"items": _item_records(call, found), "missing": missing}


def _timeline(call: Call, given: Json) -> Json:
    middle = answers.get_visible(call.memory, given["id"])
    around = merge_timeline(middle, call.memory.timeline(middle.id, window=given["window"]))
    place = [item.id for item in around].index(middle.id)
    [near] = _item_records(call, [middle])
    before = _item_records(call, around[:place][::-1])[::-1]  # the nearest, if not all fit
    return {"near": near, "before": before, "after": _item_records(call, around[place + 1 :])}


def _why(call: Call, given: Json) -> Json:
    item = answers.get_visible(call.memory, given.pop("id"))
    return wire.provenance_json(call.memory.why(item.id, **given))


def _recall_file(call: Call, given: Json) -> Json:
    history = call.memory.recall_file(given["path"], intents=given["intents"])
    linked = call.memory.browse(limit=20, ids=history.items) if history.items else []
    known = wire.file_history_json(history, [CodeMemory(item) for item in linked], _PREVIEW_CHARS)
    return known | {"path": given["path"], "linked": _item_records(call, linked)}


def _stats(call: Call, _: Json) -> Json:
    found = wire.mapping_json(call.memory.stats())
    return {key: one for key, one in found.items() if key != "path"}


_OPERATIONS: dict[str, Callable[[Call, Any], Json]] = {
    "recall": _recall,
    "remember": _remember,
    "update": _update,
    "boost": _boost,
    "forget": _forget,
    "restore": lambda call, given: given | {"restored": call.memory.restore(given["id"])},
    "consolidate": _consolidate,
    "entities": _entities,
    "topics": _topics,
    "browse": _browse,
    "get": _get,
    "timeline": _timeline,
    "why": _why,
    "recall_file": _recall_file,
    "read_file": partial(_native, "read_smart"),
    "stats": _stats,
    "fixed": lambda _, given: given,
}


_MILLISECONDS = 1000.0


def translate_arguments(row: Json, given: Mapping[str, object]) -> Json:
    """Return the keywords of an operation for the arguments of a tool."""
    keywords: Json = json.loads(json.dumps(row.get("always", {})))
    for name, spec in row.get("arguments", {}).items():
        value = given.get(name, spec.get("default"))
        if value is not None:
            _set_argument(keywords, name, spec, value)
    return keywords


def _set_argument(keywords: Json, name: str, spec: Json, value: Any) -> None:
    if spec.get("type") == "object":
        for part, inner in spec["parts"].items():
            if value.get(part) is not None:
                _set_argument(keywords, f"{name}.{part}", inner, value[part])
        return
    if "within" in spec:
        low, high = spec["within"]
        value = int(min(max(value, low), high))
    if "values" in spec:
        value = spec["values"].get(str(value), value)
    if "read" in spec:
        value = _READERS[spec["read"]](value, name)
    *folders, key = spec.get("to", name).split(".")
    if key == "-":
        return  # accepted, and without meaning here
    target = keywords
    for folder in folders:
        target = target.setdefault(folder, {})
    known = target.get(key)
    # Several wordings of one question are searched together.
    target[key] = f"{known}\n{value}" if key == "query" and known and known != value else value


def _read_list(value: Any, _: str) -> list[str]:
    entries = value if isinstance(value, list) else str(value).split(",")
    return [entry.strip() for entry in entries if entry.strip()]


def _read_object(value: Any, name: str) -> Json:
    parsed = parse_strict_json(value) if isinstance(value, str) else value
    if not isinstance(parsed, dict):
        raise Refused(f"{name} must be a JSON object")
    return parsed


def _read_moment(value: Any, name: str) -> str:
    """Read milliseconds since 1970; a text is left to what parses times."""
    if isinstance(value, str) and not value.strip().isdigit():
        return value
    try:
        return datetime.fromtimestamp(float(value) / _MILLISECONDS, UTC).isoformat()
    except (OverflowError, ValueError, OSError) as error:
        raise Refused(f"{name} is {value!r}, which is no time in milliseconds") from error


_READERS: dict[str, Callable[[Any, str], Any]] = {
    "list": _read_list,
    "lines": lambda value, name: "\n".join(_read_list(value, name)),
    "object": _read_object,
    "context": lambda value, _: f"Context: {value}",
    "moment": _read_moment,
    # Their week begins on Sunday, with 0.
    "weekday": lambda value, _: (int(value) + 6) % 7,
}


def shape(template: Any, record: Any) -> Any:
    """Return an answer with the fields of a template, filled from a record."""
    if isinstance(template, str):
        return _value(template, record)
    if isinstance(template, list):
        return [shape(part, record) for part in template]
    if not isinstance(template, Mapping):
        return template
    if "each" in template:
        inner = {name: part for name, part in template.items() if name != "each"}
        rows = _value(template["each"], record) or []
        return [shape(inner.get("is", inner), one) for one in rows]
    shaped = {name: shape(part, record) for name, part in template.items()}
    return {
        name.removesuffix("?"): value
        for name, value in shaped.items()
        if value is not None or not name.endswith("?")
    }


def _value(text: str, record: Any) -> Any:
    if text.startswith("="):
        return text[1:]
    path, *filters = text.split(" | ")
    value = record
    for step in path.split(".") if path != "." else ():
        value = value.get(step) if isinstance(value, Mapping) else None
    for one in filters:
        name, _, argument = one.partition(" ")
        if value is not None or name == "or":
            value = _FILTERS[name](value, argument)
    return value


def _parse_json(value: str, _: str) -> Any:
    try:
        return parse_strict_json(value)
    except Refused:
        return value


def _replace(value: Any, pairs: str) -> Any:
    known = dict(pair.split("=") for pair in pairs.split())
    return known.get(str(value), value)


def _milliseconds(value: str, _: str) -> int:
    return round(datetime.fromisoformat(value).timestamp() * _MILLISECONDS)


_FILTERS: dict[str, Callable[[Any, str], Any]] = {
    "or": lambda value, argument: json.loads(argument) if value is None else value,
    "round": lambda value, digits: round(float(value), int(digits)),
    "json": _parse_json,
    "cut": lambda value, length: strip_hidden(value)[: int(length)],
    "ms": _milliseconds,
    "upper": lambda value, _: str(value).upper(),
    "count": lambda value, _: len(value),
    "swap": _replace,
}
