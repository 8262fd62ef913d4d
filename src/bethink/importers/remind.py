"""Remind: episodes, concepts, facts, entities, and their relations.

Its database, the folder of JSON files that versions from 0.13 keep (``.remind/memory``), or
the file of ``remind export``. An episode becomes a raw memory, a concept and a fact become
items; soft-deleted rows are left out. Changes are detected by content, so a database that is
still in use can be imported repeatedly.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from bethink.errors import Refused
from bethink.importers import entry
from bethink.importers.foreign_db import ForeignRecords, ForeignRow, is_database
from bethink.importers.streams import json_elements, open_decompressed
from bethink.importers.table_reader import EdgeTable, LinkTable, Table, TableReader, Tables
from bethink.ingest.entity_extraction import entity_key
from bethink.model import Draft
from bethink.ports import PriorUse

_EVIDENCE_TYPES = {
    "supports": "implies", "exemplifies": "instantiates", "qualifies": "context_of",
    "supersedes": "contradicts",
}  # fmt: skip
_MAX_NAMES = 100_000  # topics or entities whose names are looked up


class Remind(TableReader):
    """One memory of Remind, in whichever form."""

    kind = "remind"
    supported = (
        "supported: the database of Remind 0.5 to 0.14, the folder .remind/memory, its export"
    )
    required = (("episodes", ("id", "data")), ("concepts", ("id", "data")))
    link_tables = (
        LinkTable("relations", "source_id", "target_id", ("concepts", "concepts"), "type",
                  weight="strength", context="context"),
        LinkTable("facts", "superseded_by", "id", ("facts", "facts"), "supersedes"),
        LinkTable("facts", "id", "cluster_id", ("facts", "concepts"), "part_of"),
        LinkTable("facts", "id", "source_episode_id", ("facts", "episodes"), "derives_from"),
        LinkTable("evidence", "episode_id", "concept_id", ("episodes", "concepts"), "link_type",
                  _EVIDENCE_TYPES, weight="strength", context="note"),
        LinkTable("conflicts", "fact_a_id", "fact_b_id", ("facts", "facts"), "status",
                  {"open": "contradicts", "resolved": "contradicts"}, context="description"),
    )  # fmt: skip
    edge_table = EdgeTable(
        "entity_relations", "source_id", "relation_type", "target_id", weight="strength"
    )

    def tables(self, db: Tables) -> Mapping[str, Table]:
        """Return episodes, then the concepts based on them, then facts, and bare entities."""
        self._topics = dict(_names(db, "topics", "name"))
        self._entities = dict(_names(db, "entities", "display_name"))
        self._mentions: dict[str, list[str]] = {}
        for row in db.rows("mentions", ("episode_id", "entity_id"), ("episode_id", "entity_id")):
            self._mentions.setdefault(row.first("episode_id"), []).append(row.first("entity_id"))
        ends = ("source_id", "target_id")
        edges = db.rows("entity_relations", ends, ends)
        self._mentioned = {row.first(end) for row in edges for end in ends}
        return {
            "episodes": Table(self._episode_draft, ("id",)),
            "concepts": Table(self._concept_draft, ("id",), _concept_use),
            "facts": Table(self._fact_draft, ("id",)),
            "entities": Table(self._bare_entity_draft, ("id",)),
        }

    def row_id(self, table: str, key: list[str]) -> str:
        """Return the id that earlier versions of this reader gave."""
        return entry.digest(table, *key)

    def origin(self, table: str, key: str) -> str:
        """Return its id: unique in all tables."""
        return key

    def row_fields(self, row: ForeignRow) -> entry.Fields | Refused:
        """Return the JSON of a row, and its cells where that says nothing."""
        cells = super().row_fields(row)
        if isinstance(cells, Refused):
            return cells
        try:
            data = entry.decoded_json(cells.get("data") or "{}")
        except Refused as refused:
            return refused
        if not isinstance(data, dict):
            return Refused("its data is not a JSON object")
        given = {name: value for name, value in data.items() if value is not None}
        return entry.Fields({**cells.given, **given})

    def entity_name(self, value: str) -> str:
        """Convert Remind's ``kind:name``; without a kind it is a subject."""
        kind, colon, name = entry.line_of(value).partition(":")
        kind, name = (kind, name) if colon else ("subject", kind)
        return entry.entity_name_of(kind, self._entities.get(value) or name)

    def links(self) -> Iterator[entry.SourceLink]:
        """Yield the links of the tables, and those that a concept's own data states."""
        yield from super().links()
        with self.open(self._path) as db:
            for row in db.rows("concepts", ("id", "data"), ("id",)):
                data = self.row_fields(row)
                if (
                    row.refused is None
                    and isinstance(data, entry.Fields)
                    and not data.get("deleted_at")
                ):
                    yield from self._data_links(row, data)

    def _data_links(self, row: ForeignRow, data: entry.Fields) -> Iterator[entry.SourceLink]:
        me = self.row_id("concepts", [row.first("id")])
        for relation in data.each("relations"):
            if target := relation.text("target_id"):
                weight = relation.number("strength", 0.01, 1, 0.5)
                ends = relation.text("type"), self.row_id("concepts", [target])
                context = entry.line_of(relation.get("context"), 500)
                yield entry.item_link(me, *ends, row.where, weight, context)
        sources = [("episodes", name) for name in data.array("source_episodes")]
        sources += [("concepts", data.get("parent_id"))]
        for table, name in sources:
            if isinstance(name, str):
                yield entry.item_link(
                    me, "derives_from", self.row_id(table, [name]), row.where, 1.0
                )

    @contextmanager
    def open(self, path: Path) -> Iterator[Tables]:
        """Open the database, the folder or the export."""
        if path.is_dir():
            yield ForeignRecords(path.name, {}, find_remind_folder(path) or path)
        elif not is_database(path):
            yield ForeignRecords(path.name, _exported_tables(path))
        else:
            with super().open(path) as db:
                yield db

    def _episode_draft(self, data: entry.Fields) -> Draft | None:
        if data.get("deleted_at"):
            return None
        about = data.only("title", "summary", "source_type", "asserted_by", "source_ref")
        return Draft(
            data.text("content"),
            level="raw",
            kind=data.line("episode_type") or "observation",
            topic=self._topic(data),
            tags=_label_tags(data),
            caption=data.line("title") or None,
            entities=self._entity_names(data, self._mentions.get(data.text("id"), [])),
            confidence=data.number("confidence", 0, 1, 1),
            occurred_at=data.time("created_at", "timestamp"),
            metadata=entry.metadata_of({**about, **data.fields("metadata").given}),
        )

    def _concept_draft(self, data: entry.Fields) -> Draft | None:
        if data.get("deleted_at"):
            return None
        title, summary = data.line("title"), data.text("summary")
        lines = [f"{title}: {summary}" if title and summary else title or summary]
        lines += [f"- {text}" for text in map(entry.text_of, data.array("specifics")) if text]
        if conditions := data.text("conditions"):
            lines.append(f"Applies when: {conditions}")
        for name, head in (("exceptions", "Except"), ("evidence", "Evidence")):
            texts = list(filter(None, map(entry.text_of, data.array(name))))
            lines += [f"{head}: {'; '.join(texts)}"] if texts else []
        kind = data.line("concept_type")
        return Draft(
            "\n".join(lines),
            kind=kind if kind and kind != "legacy" else "concept",
            topic=self._topic(data),
            tags=(*entry.tags_of(data.get("tags")), *_label_tags(data))[: entry.MAX_TAGS],
            entities=self._entity_names(data),
            confidence=data.number("confidence", 0, 1, 0.5),
            occurred_at=data.time("updated_at", "created_at"),
            metadata=entry.metadata_of(data.only("title", "instance_count", "lineage_note")),
            force=True,
        )

    def _fact_draft(self, data: entry.Fields) -> Draft | None:
        if data.get("deleted_at"):
            return None
        return Draft(
            data.text("statement"),
            kind="fact",
            topic=self._topic(data),
            entities=self._entity_names(data),
            occurred_at=data.time("created_at"),
            valid_from=data.time("valid_from"),
            valid_to=data.time("valid_to"),
            metadata=entry.metadata_of(data.only("asserted_by", "source_ref", "attribute")),
        )

    def _bare_entity_draft(self, data: entry.Fields) -> Draft | None:
        """Return a memory of an entity that no other memory names."""
        name = self.entity_name(data.text("id"))
        if not name or data.text("id") in self._mentioned:
            return None
        kind, _, words = name.partition(":")
        about = entry.metadata_of(data.fields("metadata").given)
        return Draft(f"{words} ({kind})", entities=(name,), metadata=about)

    def _entity_names(self, data: entry.Fields, mentions: Sequence[str] = ()) -> tuple[str, ...]:
        ids = [name for name in (*data.array("entity_ids"), *mentions) if isinstance(name, str)]
        self._mentioned.update(ids)
        return tuple(dict.fromkeys(filter(None, map(self._keyed_name, ids))))[: entry.MAX_TAGS]

    def _keyed_name(self, value: str) -> str:
        """Return the entity with its other name as a key: the one in its id."""
        name, other = self.entity_name(value), entry.line_of(value).partition(":")[2]
        is_other = entity_key(other) != entity_key(name.partition(":")[2])
        return f"{name} <{other}>" if name and other and is_other and " " not in other else name

    def _topic(self, data: entry.Fields) -> str | None:
        labels = map(entry.line_of, data.fields("labels").array("topic"))
        topic = data.line("topic_id") or next(filter(None, labels), "")
        return self._topics.get(topic, topic) or None


def _concept_use(data: entry.Fields) -> PriorUse | None:
    recalls, decay = data.number("access_count", 0, 1e9, 0), data.number("decay_factor", 0, 1, 1)
    last = data.time("last_accessed")
    return PriorUse(int(recalls), last, decay=decay) if recalls or last or decay < 1 else None


def _label_tags(data: entry.Fields) -> tuple[str, ...]:
    """Return the labels of later versions as tags; the topic is none of them."""
    labels = data.fields("labels").given.items()
    return entry.tags_of([f"{key}={value}" for key, values in labels if key != "topic"
                    for value in (values if isinstance(values, list) else [values])])  # fmt: skip


def find_remind_folder(path: Path) -> Path | None:
    """Return the folder of records in or below a path; None where there is none."""
    for folder in (path, path / "memory", path / ".remind" / "memory"):
        has_records = (folder / "episodes").is_dir() or (folder / "concepts").is_dir()
        if has_records and (folder / "schema.json").is_file():
            return folder
    return None


def is_remind_export(whole: entry.Fields) -> bool:
    """Whether JSON is what `remind export` writes."""
    tables = _tables_of(whole)
    return tables.has_list("episodes") and tables.has_list("concepts")


def _tables_of(whole: entry.Fields) -> entry.Fields:
    return whole.fields("records") if whole.fields("records").given else whole


def _exported_tables(path: Path) -> Mapping[str, Sequence[object]]:
    with open_decompressed(path) as file:
        found = next(iter(json_elements(file)), (0, None))[1]
    if isinstance(found, Refused):
        raise found
    if not is_remind_export(entry.Fields(found)):
        raise Refused(f"{path.name} is not an export of Remind", remedy=Remind.supported)
    tables = _tables_of(entry.Fields(found)).given
    return {name: rows for name, rows in tables.items() if isinstance(rows, list)}


def _names(db: Tables, table: str, column: str) -> Iterator[tuple[str, str]]:
    """Yield the names of topics or entities by id."""
    for number, row in enumerate(db.rows(table, ("id", column), ("id",))):
        if number == _MAX_NAMES:
            return
        yield row.first("id"), entry.line_of(row.first(column))
