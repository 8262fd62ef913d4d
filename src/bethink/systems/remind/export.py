"""Write memories in the form that `remind import` reads, of any version (export version 3).

Raw memories become episodes, others concepts. What was imported from Remind and not changed
here is left out, as Remind has it; links to it keep its id. What was changed here supersedes
it there: no record of Remind is overwritten.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from bethink.core.json_values import Json
from bethink.model import RELATIONS

Record = Mapping[str, Any]
# Types of entities and relations that all versions know; others get a general one.
_ENTITY_TYPES = frozenset(
    {"file", "function", "class", "module", "subject", "person", "project", "tool"}
)
_RELATIONS = frozenset(
    {"implies", "contradicts", "specializes", "generalizes", "causes", "correlates"}
    | {"part_of", "context_of", "supersedes"}
)


def to_remind(records: Iterable[Record]) -> Json:
    """Return the export of a space, as `Memory.export` gives it, as one of Remind."""
    items: dict[str, Record] = {}
    links: list[Record] = []
    uses: dict[str, Record] = {}
    for record in records:
        if record["type"] == "item" and not record.get("live_to"):
            items[record["id"]] = record
        elif record["type"] == "link" and record["src_kind"] == record["dst_kind"] == "item":
            links.append(record)
        elif record["type"] == "usage":
            uses[record["id"]] = record
    ids = {own: own if _is_new(item) else _remind_id(item) for own, item in items.items()}
    raw = {own for own, item in items.items() if item["level"] == "raw"}
    new = [item for item in items.values() if _is_new(item)]
    concepts = {item["id"]: _concept(item, uses) for item in new if item["id"] not in raw}
    for link in links:
        concept, target = concepts.get(link["src"]), ids.get(link["dst"])
        if concept and target and link["dst"] in raw:
            concept["source_episodes"].append(target)
        elif concept and target and link["relation"] in RELATIONS:
            concept["relations"].append(_relation(link, target))
    episodes = [_episode(item) for item in new if item["id"] in raw]
    return {"version": 3, "concepts": list(concepts.values()), "episodes": episodes}


def _remind_id(item: Record) -> str:
    """Return the id of a memory in Remind; empty where it comes from elsewhere."""
    mark = item["metadata"].get("imported", {})
    return str(mark.get("id", "")) if str(mark.get("key", "")).startswith("remind:") else ""


def _is_new(item: Record) -> bool:
    mark = item["metadata"].get("imported", {})
    return item["rev"] > 1 or not str(mark.get("key", "")).startswith("remind:")


def _episode(item: Record) -> Json:
    at = _time(item.get("occurred_at") or item["stored_at"])
    entities = [_entity_id(name) for name in item["entities"]]
    return {"id": item["id"], "content": item["text"], "title": item.get("caption"),
            "episode_type": item["kind"], "confidence": item["confidence"], "created_at": at,
            "updated_at": at, "timestamp": at, "entity_ids": entities}  # fmt: skip


def _concept(item: Record, uses: Mapping[str, Record]) -> Json:
    at, use = _time(item.get("occurred_at") or item["stored_at"]), uses.get(item["id"], {})
    before = {"relation": "supersedes", "weight": 1.0}
    return {"id": item["id"], "title": item.get("caption"), "summary": item["text"],
            "confidence": item["confidence"], "created_at": at, "updated_at": at,
            "tags": item["tags"], "concept_type": item["kind"], "source_episodes": [],
            "relations": [_relation(before, known)] if (known := _remind_id(item)) else [],
            "decay_factor": use.get("decay", 1.0), "access_count": use.get("recalls", 0),
            "last_accessed": _time(use["last_at"]) if use.get("last_at") else None,
            "entity_ids": [_entity_id(name) for name in item["entities"]]}  # fmt: skip


def _relation(link: Record, target: str) -> Json:
    kind = link["relation"] if link["relation"] in _RELATIONS else "correlates"
    return {"type": kind, "target_id": target, "strength": link["weight"],
            "context": link.get("context")}  # fmt: skip


def _entity_id(own: str) -> str:
    kind, _, name = own.partition(":")
    return f"{kind if kind in _ENTITY_TYPES else 'other'}:{name}"


def _time(written: str) -> str:
    """Return a time as Remind writes it: without a zone."""
    return datetime.fromisoformat(written).replace(tzinfo=None).isoformat()
