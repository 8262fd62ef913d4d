"""Memind: raw data, the items made from it, insights, the graph of items, and threads.

The SQLite database that its server and its JDBC plug-ins keep. Raw data becomes a raw memory
and an item its child; an insight becomes an insight. Deleted rows are left out. Of a
conversation that is not extracted yet the messages are raw memories.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from bethink.importers import entry
from bethink.importers.foreign_db import ForeignRow
from bethink.importers.table_reader import LinkTable, Table, TableReader, Tables
from bethink.model import (
    LIFECYCLES,
    ROLES,
    THREAD_EVENT_KINDS,
    THREAD_KINDS,
    THREAD_STATES,
    Draft,
    Member,
    Thread,
    ThreadEvent,
)

_LINK_TYPES = {"SEMANTIC": "similar_to", "TEMPORAL": "related_to", "CAUSAL": "causes"}


class Memind(TableReader):
    """One database of Memind."""

    kind = "memind"
    supported = "supported: the SQLite database of Memind 0.1 and 0.2"
    required = (
        ("memory_item", ("biz_id", "memory_id", "content")),
        ("memory_raw_data", ("biz_id", "memory_id")),
    )
    link_tables = (
        LinkTable("memory_item_link", "source_item_id", "target_item_id",
                  ("memory_item", "memory_item"), "link_type", _LINK_TYPES, weight="strength"),
        LinkTable("memory_insight", "parent_insight_id", "biz_id",
                  ("memory_insight", "memory_insight"), "derives_from"),
    )  # fmt: skip

    def tables(self, db: Tables) -> Mapping[str, Table]:
        """Return raw data and messages, the items made from them, then insights."""
        columns = ("memory_id", "entity_key", "display_name", "entity_type", "deleted")
        names = {
            (row.first("memory_id"), row.first("entity_key")): entry.entity_name_of(
                row.first("entity_type"), row.first("display_name")
            )
            for row in db.rows("memory_graph_entity", columns, ("id",))
        }
        self._mentions: dict[tuple[str, str], list[str]] = {}
        of_item = ("memory_id", "item_id", "entity_key", "deleted")
        for row in db.rows("memory_item_entity_mention", of_item, ("id",)):
            name = names.get((row.first("memory_id"), row.first("entity_key")), "")
            if name and row.first("deleted") in ("", "0"):
                item = (row.first("memory_id"), row.first("item_id"))
                self._mentions.setdefault(item, []).append(name)
        key = ("biz_id", "memory_id")
        return {
            "memory_raw_data": Table(_raw_draft, key),
            "memory_conversation_buffer": Table(_message_draft),
            "memory_item": Table(self._item_draft, key),
            "memory_insight": Table(_insight_draft, key),
        }

    def links(self) -> Iterator[entry.SourceLink]:
        """Yield the links of items and of the tree, and the items that insights rest on."""
        yield from super().links()
        with self.open(self._path) as db:
            ids = self.ids_by_table(db, ("memory_item", "memory_insight"))
            for row in db.rows("memory_insight", ("biz_id", "points"), ("biz_id",)):
                said = row.text_or_refusal("points")
                own = ids["memory_insight"].get(row.first("biz_id"))
                points = (
                    entry.Fields({"points": said}).each("points") if isinstance(said, str) else []
                )
                sources = {str(one) for point in points for one in point.array("sourceItemIds")}
                for source in sorted(sources & ids["memory_item"].keys()) if own else ():
                    target = ids["memory_item"][source]
                    yield entry.item_link(str(own), "derives_from", target, row.where, 1.0)

    def threads(self) -> Iterator[Thread]:
        """Yield the threads with their members and events."""
        with self.open(self._path) as db:
            ids = self.ids_by_table(db, ("memory_item",))["memory_item"]
            members: dict[tuple[str, str], list[Member]] = {}
            for row in db.rows("memory_thread_membership", (), ("id",)):
                if item := ids.get(row.first("item_id")):
                    weight = entry.clamped_number(row.first("relevance_weight"), 0, 1, 1)
                    member = Member(item, _known(row.first("role"), ROLES, "core"), weight)
                    members.setdefault(_thread_key(row), []).append(member)
            events: dict[tuple[str, str], list[ThreadEvent]] = {}
            for row in db.rows("memory_thread_event", (), ("id",)):
                if event := _thread_event(entry.Fields({c: row.first(c) for c in row.cells}), ids):
                    events.setdefault(_thread_key(row), []).append(event)
            for row in db.rows("memory_thread", (), ("id",)):
                own = _thread_key(row)
                if own in members:
                    fields = entry.Fields({column: row.first(column) for column in row.cells})
                    yield _thread(fields, own, members[own], events.get(own, []))

    def _item_draft(self, row: entry.Fields) -> Draft | None:
        if row.number("deleted", 0, 1, 0):
            return None
        memory, category = row.text("memory_id"), row.line("category").lower()
        raw = row.text("raw_data_id")
        kind = "foresight" if row.text("type").upper() == "FORESIGHT" else category
        names = self._mentions.get((memory, row.text("biz_id")), [])
        about = {**row.fields("metadata").given, **row.only("scope", "agent_id", "observed_at")}
        return Draft(
            row.text("content"),
            kind=kind or None,
            tags=entry.tags_of([row.line("scope").lower()]),
            entities=tuple(dict.fromkeys(names))[: entry.MAX_TAGS],
            parent=self.row_id("memory_raw_data", [raw, memory]) if raw else None,
            occurred_at=row.time("occurred_start", "occurred_at", "observed_at", "created_at"),
            occurred_end=row.time("occurred_end"),
            metadata=entry.metadata_of(about | _owner(row)),
            force=True,
        )


def _raw_draft(row: entry.Fields) -> Draft | None:
    segment = row.fields("segment")
    caption = row.line("caption", limit=500)
    text = segment.text("content", "text") or row.text("caption")
    if row.number("deleted", 0, 1, 0) or not text:
        return None
    about = {**row.fields("metadata").given, **row.only("type", "agent_id")}
    return Draft(
        text,
        level="raw",
        kind=row.line("type").lower() or None,
        caption=caption or None,
        occurred_at=row.time("start_time", "created_at"),
        occurred_end=row.time("end_time"),
        metadata=entry.metadata_of(about | _owner(row)),
        force=True,
    )


def _message_draft(row: entry.Fields) -> Draft | None:
    """Convert a message that waits to be extracted; of others the raw data has the words."""
    if row.number("deleted", 0, 1, 0) or row.number("extracted", 0, 1, 0):
        return None
    session = row.line("session_id")
    return Draft(
        row.text("content"),
        level="raw",
        speaker=row.line("user_name") or row.line("role").lower() or None,
        session=f"memind:{session}"[:200] if session else None,
        seq=int(row.number("id", 0, 2**53, 0)) if session else None,
        occurred_at=row.time("timestamp", "created_at"),
        metadata=entry.metadata_of(row.only("agent_id") | _owner(row)),
        force=True,
    )


def _insight_draft(row: entry.Fields) -> Draft | None:
    points = [point.text("content") for point in row.each("points")]
    name, lines = row.line("name"), [f"- {point}" for point in points if point]
    text = "\n".join([f"{name}:", *lines] if name and lines else lines) or row.text("content")
    if row.number("deleted", 0, 1, 0) or not text:
        return None
    about = row.only("scope", "group_name", "version", "agent_id")
    return Draft(
        text,
        level="insight",
        kind=row.line("tier").lower() or "leaf",
        topic=row.line("type") or None,
        tags=entry.tags_of(row.array("categories")),
        caption=name or None,
        occurred_at=row.time("updated_at"),
        metadata=entry.metadata_of(about | _owner(row)),
        force=True,
    )


def _owner(row: entry.Fields) -> dict[str, object]:
    return {"user_id": row.text("user_id")}


def _thread_key(row: ForeignRow) -> tuple[str, str]:
    return row.first("memory_id"), row.first("thread_key")


def _known(written: str, names: tuple[str, ...], otherwise: str) -> Any:
    """Return a name as we write it, or the default."""
    return next((name for name in names if name == written.lower()), otherwise)


def _thread_event(row: entry.Fields, ids: Mapping[str, str]) -> ThreadEvent | None:
    at, payload = row.time("event_time"), row.fields("event_payload_json")
    if at is None:
        return None
    item = next((ids[str(one)] for name in ("itemId", "item_id", "sourceItemId")
                 if str(one := payload.get(name)) in ids), None)  # fmt: skip
    kind = _known(row.text("event_type"), THREAD_EVENT_KINDS, "observation")
    seq = int(row.number("event_seq", 0, 2**31, 0))
    return ThreadEvent(seq, kind, at, item, bool(row.number("is_meaningful", 0, 1, 1)))


def _thread(
    row: entry.Fields, own: tuple[str, str], members: list[Member], events: list[ThreadEvent]
) -> Thread:
    by_seq = {event.seq: event for event in events}
    return Thread(
        entry.digest("memind", "thread", *own),
        entry.line_of(row.text("headline", "display_label", "anchor_key", "thread_key"), 500),
        _known(row.text("thread_type"), THREAD_KINDS, "topic"),
        lifecycle=_known(row.text("lifecycle_status"), LIFECYCLES, "active"),
        state=_known(row.text("object_state"), THREAD_STATES, "ongoing"),
        members=tuple({member.item: member for member in members}.values()),
        events=tuple(by_seq[seq] for seq in sorted(by_seq)),
        created_at=row.time("created_at"),
        updated_at=row.time("updated_at"),
    )
