"""linksee-memory: layered memories about entities, their edges, and what was done to files.

Its database (``~/.linksee-memory/memory.db``) of any version. The text of a memory is its
content as it is, also where that is JSON, so that tools of linksee read the same. Its log of
events, the cache of files and the map of a product are not imported: the first two are made
anew, the last is written by its own file.
"""

from __future__ import annotations

from collections.abc import Mapping

from bethink.importers import entry
from bethink.importers.table_reader import EdgeTable, LinkTable, Table, TableReader, Tables
from bethink.model import OPERATIONS, Draft, FileEdit, Operation, find_layer
from bethink.ports import PriorUse

_PIN_IMPORTANCE = 0.9
_TITLES = ("title", "summary", "what", "decision", "intent", "statement", "pattern", "rule", "why")


class Linksee(TableReader):
    """One database of linksee-memory."""

    kind = "linksee"
    supported = "supported: the database of linksee-memory 0.0.4 to 0.11"
    required = (
        ("entities", ("id", "kind", "name")),
        ("memories", ("id", "entity_id", "layer", "content")),
    )
    link_tables = (
        LinkTable("memory_edges", "from_memory_id", "to_memory_id", ("memories", "memories"),
                  "relation"),
        LinkTable("drift_anchors", "id", "source_memory_id", ("drift_anchors", "memories"),
                  "derives_from"),
    )  # fmt: skip
    edge_table = EdgeTable("edges", "from_id", "relation", "to_id", weight="weight")
    edit_table = ("session_file_edits", "occurred_at", "memories")

    def tables(self, db: Tables) -> Mapping[str, Table]:
        """Return the memories, the facts of files, anchors, and bare entities."""
        columns = ("id", "kind", "name", "canonical_key")
        self._entities = {
            row.first("id"): (row.first("kind"), row.first("name"), row.first("canonical_key"))
            for row in db.rows("entities", columns, ("id",))
        }
        edges = db.rows("edges", ("from_id", "to_id"), ("id",))
        self._mentioned = {row.first(end) for row in edges for end in ("from_id", "to_id")}
        return {
            "memories": Table(self._memory_draft, use=_memory_use),
            "file_facts": Table(_file_fact_draft, ("id", "extracted_at")),
            "drift_anchors": Table(_anchor_draft),
            "entities": Table(self._bare_entity_draft),
        }

    def entity_name(self, value: str) -> str:
        """Return the entity with this number."""
        kind, name, _ = self._entities.get(value, ("", "", ""))
        return entry.entity_name_of(kind, name)

    def file_edit(self, row: entry.Fields, ids: Mapping[str, str]) -> FileEdit | None:
        """Return an operation on a file, with the reason that was given."""
        path, at = row.line("file_path", limit=1000), row.time("occurred_at")
        if not path or at is None:
            return None
        written = row.text("operation")
        operation: Operation = next((one for one in OPERATIONS if one == written), "other")
        intent, turn = row.line("context_snippet", limit=500), row.line("turn_uuid")
        item = ids.get(row.text("memory_id"))
        return FileEdit(
            path, operation, at, intent, row.line("session_id") or None, turn or None, item
        )

    def _memory_draft(self, row: entry.Fields) -> Draft:
        content = entry.Fields(row.get("content"))
        name, key = self.entity_name(row.text("entity_id")), ""
        if name:
            self._mentioned.add(row.text("entity_id"))
            key = entry.line_of(self._entities[row.text("entity_id")][2])
        importance = row.number("importance", 0, 1, 0.5)
        about = row.only("source", "thread_id") | content.only("altitude", "state")
        is_kept = row.number("protected", 0, 1, 0) or importance >= _PIN_IMPORTANCE
        return Draft(
            row.text("content"),
            kind=content.line("type") or None,
            layer=find_layer(row.text("layer")),
            caption=content.line(*_TITLES) or None,
            entities=(f"{name} <{key}>" if key and " " not in key else name,) if name else (),
            importance=importance,
            occurred_at=row.time("created_at"),
            metadata=entry.metadata_of(about | ({"pinned": True} if is_kept else {})),
            force=True,
        )

    def _bare_entity_draft(self, row: entry.Fields) -> Draft | None:
        """Return a memory of an entity that nothing else names, or that has attributes."""
        own, about = row.text("id"), entry.decoded_json(row.get("attributes"))
        name = self.entity_name(own)
        if not name or (own in self._mentioned and not about):
            return None
        kind, _, words = name.partition(":")
        lines = [f"{words} ({kind})"]
        given = about.items() if isinstance(about, dict) else [("attributes", about)]
        lines += [f"{key}: {value}" for key, value in given if value not in (None, "")]
        return Draft("\n".join(lines), entities=(name,), occurred_at=row.time("created_at"))


def _memory_use(row: entry.Fields) -> PriorUse | None:
    recalls = int(row.number("access_count", 0, 1e9, 0))
    return PriorUse(recalls, row.time("last_accessed_at")) if recalls else None


def _file_fact_draft(row: entry.Fields) -> Draft:
    return Draft(
        row.text("fact"),
        kind="fact",
        layer=find_layer(row.text("layer")),
        entities=tuple(filter(None, [entry.entity_name_of("file", row.get("file_path"))])),
        occurred_at=row.time("extracted_at"),
        force=True,
    )


def _anchor_draft(row: entry.Fields) -> Draft:
    """Convert a declared rule or decision; a retired one is valid up to its last change."""
    why, kind = row.text("rationale"), row.line("kind")
    is_over = row.text("status") == "retired" or row.text("lifecycle") in (
        "superseded",
        "deprecated",
    )
    return Draft(
        "\n".join(filter(None, [row.text("statement"), f"Why: {why}" if why else ""])),
        kind=kind or None,
        layer="caveat" if kind in ("prohibition", "constraint") else None,
        tags=entry.tags_of([*row.array("affects"), *row.array("detect_terms")]),
        confidence=row.number("confidence", 0, 1, 0.8),
        occurred_at=row.time("created_at"),
        valid_to=row.time("updated_at") if is_over else None,
        metadata=entry.metadata_of(row.only("owner", "lifecycle")),
        force=True,
    )
