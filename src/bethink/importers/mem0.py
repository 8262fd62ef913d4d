"""mem0: its JSON, or the database of its library.

The JSON is a list of memories, or an object that holds it under ``results`` or ``memories``,
with ``relations`` next to it where a graph was kept. Of ``history.db`` the final state is
imported.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from bethink.errors import Refused
from bethink.importers import entry
from bethink.importers.foreign_db import ForeignRow, is_database, open_foreign
from bethink.importers.streams import json_elements, open_decompressed
from bethink.model import Draft

LIST_KEYS = ("results", "memories")
_SCOPE_KEYS = ("user_id", "agent_id", "app_id", "run_id", "actor_id")
_HISTORY_COLUMNS = (
    *("id", "memory_id", "new_memory", "event", "created_at", "updated_at"),
    *("is_deleted", "actor_id", "role"),
)
_SUPPORTED = "supported: mem0 0.1 and later, with a table history(id, memory_id, new_memory, event)"


class Mem0(entry.Reader):
    """One export, or one history."""

    def entries(self) -> Iterator[entry.Entry]:
        """Yield an entry for every memory, and for every relation of the graph."""
        if is_database(self._path):
            yield from _history_entries(self._path, self._gauge)
            return
        with open_decompressed(self._path) as file:
            for number, found in json_elements(file):
                whole = entry.Fields(found)
                listed = next((name for name in LIST_KEYS if name in whole), None)
                if isinstance(found, Refused):
                    yield entry.Entry(f"memory {number}", found)
                elif listed is None:
                    yield _memory_entry(f"memory {number}", whole)
                else:
                    for place, memory in enumerate(whole.each(listed), start=1):
                        yield _memory_entry(f"memory {place}", memory)
        for relation in self._relations():
            yield relation.entry() if isinstance(relation, entry.Relation) else relation

    def links(self) -> Iterator[entry.SourceLink]:
        """Yield an edge between entities for every relation of the graph."""
        for relation in () if is_database(self._path) else self._relations():
            if isinstance(relation, entry.Relation):
                yield from relation.link()

    def _relations(self) -> Iterator[entry.Relation | entry.Entry]:
        with open_decompressed(self._path) as file:
            for _, found in json_elements(file):
                for number, fields in enumerate(entry.Fields(found).each("relations"), start=1):
                    target = "target" if "target" in fields else "destination"
                    kind = "relationship" if "relationship" in fields else "relation"
                    parts = [fields.line(name) for name in ("source", kind, target)]
                    where = f"relation {number}"
                    if all(parts):
                        src, dst = (entry.entity_name_of("", one) for one in parts[::2])
                        own = entry.digest("mem0 relation", *parts)
                        yield entry.Relation(where, own, src, parts[1], dst)
                    else:
                        lack = "the relation lacks its source, its name or its target"
                        yield entry.Entry(where, Refused(lack))


def _memory_entry(where: str, memory: entry.Fields) -> entry.Entry:
    text, known = memory.text("memory", "data"), memory.text("id", "hash")
    if not text:
        return entry.Entry(where, Refused("the record has no memory"))
    own = memory.fields("metadata")
    draft = Draft(
        text,
        kind=own.line("type") or None,
        tags=entry.tags_of(memory.get("categories") or own.get("category")),
        entities=tuple(filter(None, [entry.entity_name_of("person", memory.get("user_id"))])),
        occurred_at=memory.time("updated_at", "created_at"),
        valid_to=memory.time("expiration_date"),
        metadata=entry.metadata_of({**own.given, **memory.only(*_SCOPE_KEYS, "role")}),
    )
    return entry.Entry(where, draft, id=known or entry.digest("mem0", text), origin=known)


def _history_entries(path: Path, gauge: entry.ReadProgress) -> Iterator[entry.Entry]:
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
                yield entry.Entry(row.where, row.refused)
                continue
            # Only the last event of a memory counts; the rows are in time order.
            last[row.first("memory_id")] = row
        for memory_id, row in last.items():
            yield from _final_entry(memory_id, row)


def _final_entry(memory_id: str, row: ForeignRow) -> Iterator[entry.Entry]:
    try:
        if row.text("event").upper() == "DELETE" or row.number("is_deleted"):
            return
        draft = Draft(
            row.text("new_memory"),
            speaker=entry.line_of(row.text("role")) or None,
            occurred_at=entry.time_of(row.text("updated_at"))
            or entry.time_of(row.text("created_at")),
            metadata=entry.metadata_of({"actor_id": row.text("actor_id")}),
        )
    except Refused as refused:
        yield entry.Entry(row.where, refused)
        return
    if draft.text and memory_id:
        yield entry.Entry(row.where, draft, id=memory_id, origin=memory_id)
    else:
        yield entry.Entry(row.where, Refused("the record has no memory"))
