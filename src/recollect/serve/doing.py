"""What the REST API's own operations do."""

from __future__ import annotations

from dataclasses import replace

from recollect.errors import Refused
from recollect.ingest.drafting import make_draft
from recollect.jsonable import Json
from recollect.mcp.fencing import NOTICE, memory_json
from recollect.mcp.schema import checked
from recollect.mcp.sight import seen
from recollect.mcp.tool import Call, Reply
from recollect.mcp.tools.pages import fitting, weight
from recollect.mcp.tools.usual import REMEMBER
from recollect.mcp.tools.writing import drafted
from recollect.model import Draft, Link, Remembered
from recollect.wire import item_json, mapping_json, remembered_json

_FILTERS = ("kind", "topic", "tag", "entity", "source", "session", "since", "until")
_USUAL_PAGE = 50
_USUAL_LINKS = 100


def get_memory(call: Call) -> Reply:
    """One memory, whole."""
    item = seen(call.memory, call.told["id"])
    return Reply(item.text, {"notice": NOTICE, "memory": item_json(item)})


def list_memories(call: Call) -> Reply:
    """A page of what is stored, and where the next begins."""
    most = call.told.get("limit", _USUAL_PAGE)
    where = call.given(*_FILTERS)
    found = call.memory.browse(limit=most, after=call.told.get("after"), **where)
    # One in any case, as many as one answer should hold: texts come uncut.
    items = found[: fitting(call, (weight(call, item.text) for item in found))]
    cursor = items[-1].id if len(found) == most or len(items) < len(found) else None
    memories = [memory_json(item) for item in items]
    return Reply("", {"notice": NOTICE, "memories": memories, "cursor": cursor})


def remember_many(call: Call) -> Reply:
    """Each memory for itself: what is refused keeps none of the others out."""
    drafts = [_draft(call, told) for told in call.told["memories"]]
    good = [draft for draft in drafts if isinstance(draft, Draft)]
    answers = iter(call.memory.remember_each(good))
    results = [_result(draft if isinstance(draft, Refused) else next(answers)) for draft in drafts]
    stored = sum(result["status"] == "stored" for result in results)
    refused = sum(result["status"] == "refused" for result in results)
    return Reply("", {"stored": stored, "refused": refused, "results": results})


def _draft(call: Call, told: Json) -> Draft | Refused:
    try:
        one = replace(call, told=checked(told, REMEMBER.takes))
        return make_draft(drafted(one))
    except Refused as refused:
        return refused


def _result(found: Remembered | Refused) -> Json:
    if isinstance(found, Refused):
        error = {"kind": found.rule, "message": found.message, "remedy": found.remedy}
        return {"status": "refused", "error": error}
    return remembered_json(found)


def restore(call: Call) -> Reply:
    """Brings forgotten memories back."""
    ids = [seen(call.memory, item_id).id for item_id in call.told["ids"]]
    return Reply("", {"restored": call.memory.restore(*ids)})


def links(call: Call) -> Reply:
    """The links of a memory to others that may be seen."""
    item = seen(call.memory, call.told["id"])
    found = call.memory.links(item.id)
    offset, most = call.told.get("offset", 0), call.told.get("limit", _USUAL_LINKS)
    others = call.memory.store.get(
        sorted({end.id for link in found for end in (link.src, link.dst)})
    )
    ceiling = call.memory.settings.max_classification
    told = [
        _link_json(link)
        for link in found
        if all(
            end.id in others and others[end.id].classification <= ceiling
            for end in (link.src, link.dst)
        )
    ]
    page = told[offset : offset + most]
    return Reply("", {"links": page, "left_out": max(0, len(told) - offset - len(page))})


def _link_json(link: Link) -> Json:
    return {
        "from": link.src._asdict(),
        "type": link.type,
        "to": link.dst._asdict(),
        "weight": link.weight,
        "confidence": link.confidence,
        "source": link.source,
    }


def stats(call: Call) -> Reply:
    """Counts and sizes; where the file lies is nobody's business."""
    counted = {name: value for name, value in call.memory.stats().items() if name != "path"}
    return Reply("", mapping_json(counted))


def events(call: Call) -> Reply:
    """A page of the journal."""
    found = call.memory.events(**call.given("after", "limit"))
    return Reply("", {"events": [mapping_json(event._asdict()) for event in found]})
