"""Mem0: the JSON of ``get_all`` or an export, or the history its library stores.

JSON is a list of memories, or an object that holds it under ``results`` or
``memories``, with ``relations`` next to it where a graph was kept. ``history.db``
records what was added, changed and deleted; the final state is imported.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bethink.errors import Refused
from bethink.importers.entry import (
    Entry,
    LinkEnd,
    ReadProgress,
    SourceLink,
    digest,
    entity_name_of,
    line_of,
    list_of,
    mapping_of,
    metadata_of,
    tags_of,
    text_of,
    time_of,
)
from bethink.importers.foreign_db import ForeignRow, is_database, open_foreign
from bethink.importers.streams import json_elements, open_decompressed
from bethink.model import Draft

LIST_KEYS = ("results", "memories")
_SCOPE_KEYS = ("user_id", "agent_id", "app_id", "run_id", "actor_id")
_HISTORY_COLUMNS = (
    "id",
    "memory_id",
    "new_memory",
    "event",
    "created_at",
    "updated_at",
    "is_deleted",
    "actor_id",
    "role",
)
_SUPPORTED = "supported: mem0 0.1 and later, with a table history(id, memory_id, new_memory, event)"


class Mem0:
    """One export, or one history."""

    def __init__(self, path: Path, gauge: ReadProgress) -> None:
        self._path = path
        self._gauge = gauge

    def entries(self) -> Iterator[Entry]:
        """Yield an entry for every memory, and for every relation of the graph."""
        if is_database(self._path):
            yield from _history_entries(self._path, self._gauge)
            return
        for where, found in self._memories():
            yield found if isinstance(found, Entry) else _memory_entry(where, found)
        for where, relation in self._relations():
            yield _relation_entry(where, relation)

    def links(self) -> Iterator[SourceLink]:
        """Yield an edge between entities for every relation of the graph."""
        for where, relation in self._relations():
            src, kind, dst = _relation_parts(relation)
            if src and kind and dst and src != dst:
                yield SourceLink(
                    LinkEnd("entity", entity_name_of("", src)),
                    kind,
                    LinkEnd("entity", entity_name_of("", dst)),
                    where,
                    said_in=_relation_id(relation),
                )

    def _memories(self) -> Iterator[tuple[str, Any]]:
        with open_decompressed(self._path) as file:
            for number, found in json_elements(file):
                where = f"memory {number}"
                if isinstance(found, Refused):
                    yield where, Entry(where, found)
                    continue
                listed = next((name for name in LIST_KEYS if name in mapping_of(found)), None)
                if listed is None:
                    yield where, found
                    continue
                inside = enumerate(list_of(found[listed]), start=1)
                yield from ((f"memory {place}", record) for place, record in inside)

    def _relations(self) -> Iterator[tuple[str, dict[str, Any]]]:
        if is_database(self._path):
            return
        with open_decompressed(self._path) as file:
            for _, found in json_elements(file):
                relations = list_of(mapping_of(found).get("relations"))
                for number, relation in enumerate(relations, start=1):
                    yield f"relation {number}", mapping_of(relation)


def _memory_entry(where: str, found: Any) -> Entry:
    memory = mapping_of(found)
    text = text_of(memory.get("memory")) or text_of(memory.get("data"))
    known = text_of(memory.get("id")) or text_of(memory.get("hash"))
    if not text:
        return Entry(where, Refused("the record has no memory"))
    scopes = {name: memory.get(name) for name in _SCOPE_KEYS}
    own = mapping_of(memory.get("metadata"))
    draft = Draft(
        text,
        kind=line_of(own.get("type")) or None,
        tags=tags_of(memory.get("categories") or own.get("category")),
        entities=tuple(filter(None, [entity_name_of("person", memory.get("user_id"))])),
        occurred_at=time_of(memory.get("updated_at")) or time_of(memory.get("created_at")),
        valid_to=time_of(memory.get("expiration_date")),
        metadata=metadata_of({**own, **scopes, "role": memory.get("role")}),
    )
    return Entry(where, draft, id=known or digest("mem0", text), origin=known)


def _relation_parts(relation: dict[str, Any]) -> tuple[str, str, str]:
    target = relation.get("target", relation.get("destination"))
    kind = relation.get("relationship", relation.get("relation"))
    return line_of(relation.get("source")), line_of(kind), line_of(target)


def _relation_id(relation: dict[str, Any]) -> str:
    return digest("mem0 relation", *_relation_parts(relation))


def _relation_entry(where: str, relation: dict[str, Any]) -> Entry:
    src, kind, dst = _relation_parts(relation)
    if not (src and kind and dst):
        return Entry(where, Refused("the relation lacks its source, its name or its target"))
    draft = Draft(
        f"{src} {kind.replace('_', ' ')} {dst}",
        kind="fact",
        entities=(entity_name_of("", src), entity_name_of("", dst)),
    )
    return Entry(where, draft, id=_relation_id(relation))


def _history_entries(path: Path, gauge: ReadProgress) -> Iterator[Entry]:
    with open_foreign(path) as db:
        if "points" in db.tables() and "history" not in db.tables():
            raise Refused(
                f"{path.name} stores its memories as pickled objects, which are not safe to load",
                remedy="write the result of get_all() to a JSON file and import that",
            )
        db.require(_SUPPORTED, history=("memory_id", "new_memory", "event"))
        gauge.total, gauge.unit = db.count("history"), "rows"
        last: dict[str, ForeignRow] = {}
        for row in db.rows("history", _HISTORY_COLUMNS, ("created_at", "updated_at")):
            gauge.done += 1
            if row.refused is not None:
                yield Entry(row.where, row.refused)
                continue
            # Only the last event of a memory counts; the rows are in time order.
            last[_memory_id(row)] = row
        for memory_id, row in last.items():
            yield from _final_entry(memory_id, row)


def _memory_id(row: ForeignRow) -> str:
    cell = row.cells.get("memory_id") or b""
    return cell.decode("utf-8", "replace")


def _final_entry(memory_id: str, row: ForeignRow) -> Iterator[Entry]:
    try:
        if row.text("event").upper() == "DELETE" or row.number("is_deleted"):
            return
        text = row.text("new_memory")
        draft = Draft(
            text,
            speaker=line_of(row.text("role")) or None,
            occurred_at=time_of(row.text("updated_at")) or time_of(row.text("created_at")),
            metadata=metadata_of({"actor_id": row.text("actor_id")}),
        )
    except Refused as refused:
        yield Entry(row.where, refused)
        return
    if not (text and memory_id):
        yield Entry(row.where, Refused("the record has no memory"))
        return
    yield Entry(row.where, draft, id=memory_id, origin=memory_id)
