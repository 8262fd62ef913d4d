"""Remind: episodes, concepts, facts, entities, and their relations.

Its database, the folder of JSON files that versions from 0.13 keep (``.remind/memory``), or
the file of ``remind export``. An episode becomes a raw memory, a concept and a fact become
items; soft-deleted rows are left out. Changes are detected by content, so a database that is
still in use can be imported repeatedly.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from bethink.errors import Refused
from bethink.importers.entry import (
    Entry,
    LinkEnd,
    ReadProgress,
    SourceLink,
    clamped_number,
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
from bethink.importers.foreign_db import (
    ForeignDb,
    ForeignRecords,
    ForeignRow,
    is_database,
    open_foreign,
)
from bethink.importers.streams import json_elements, open_decompressed
from bethink.model import RELATIONS, Draft

_SUPPORTED = "supported: the database of Remind 0.5 to 0.12, the folder .remind/memory, its export"
_ENTRY_TABLES = ("episodes", "concepts", "facts")
_FACT_COLUMNS = ("id", "statement", "data", "entity_ids", "valid_from", "valid_to", "superseded_by",
         "asserted_by", "source_ref", "source_episode_id", "created_at", "deleted_at")  # fmt: skip
_MAX_TOPICS = 10_000

_RowData = Mapping[str, Any]
_Tables = ForeignDb | ForeignRecords


class Remind:
    """One memory of Remind, in whichever form."""

    def __init__(self, path: Path, gauge: ReadProgress) -> None:
        self._path = path
        self._gauge = gauge
        self._topics: dict[str, str] = {}

    def entries(self) -> Iterator[Entry]:
        """Yield episodes, then the concepts based on them, then facts and edges as text."""
        with self._open() as db:
            self._gauge.total, self._gauge.unit = db.count(*_ENTRY_TABLES), "rows"
            self._topics = dict(_topic_names(db))
            yield from self._table_entries(db, "episodes", self._episode_draft)
            yield from self._table_entries(db, "concepts", self._concept_draft)
            yield from self._fact_entries(db)
            for row, src, kind, dst in _entity_edges(db):
                draft = Draft(
                    f"{_name_of_entity(src)} {kind.replace('_', ' ')} {_name_of_entity(dst)}",
                    kind="fact",
                    entities=(src, dst),
                    confidence=clamped_number(row.number("strength"), 0, 1, 0.5),
                    occurred_at=_cell_time(row, "created_at"),
                )
                yield Entry(row.where, draft, id=_edge_id(src, kind, dst))

    def links(self) -> Iterator[SourceLink]:
        """Yield relations of concepts, their sources, superseded facts, and edges."""
        with self._open() as db:
            yield from _concept_links(db)
            for row in db.rows("concepts", ("id", "data", "deleted_at"), ("id",)):
                yield from _data_links(row)
            for row in db.rows("facts", _FACT_COLUMNS, ("id",)):
                yield from _supersession_links(row)
            for row, src, kind, dst in _entity_edges(db):
                weight = clamped_number(row.number("strength"), 0.01, 1, 0.5)
                ends = (LinkEnd("entity", src), LinkEnd("entity", dst))
                said = _edge_id(src, kind, dst)
                yield SourceLink(ends[0], kind, ends[1], row.where, weight, said_in=said)

    @contextmanager
    def _open(self) -> Iterator[_Tables]:
        if self._path.is_dir():
            yield ForeignRecords(self._path.name, {}, find_remind_folder(self._path) or self._path)
        elif not is_database(self._path):
            yield ForeignRecords(self._path.name, _exported_tables(self._path))
        else:
            with open_foreign(self._path) as db:
                db.require(_SUPPORTED, episodes=("id", "data"), concepts=("id", "data"))
                yield db

    def _table_entries(
        self, db: _Tables, table: str, make: Callable[[_RowData], Draft]
    ) -> Iterator[Entry]:
        for row in db.rows(table, ("id", "data", "deleted_at", "topic_id"), ("id",)):
            self._gauge.done += 1
            known, data = _row_data(row)
            if isinstance(data, Refused):
                yield Entry(row.where, data)
            elif not data.get("deleted_at"):
                yield Entry(row.where, make(data), id=digest(table, known), origin=known)

    def _episode_draft(self, data: _RowData) -> Draft:
        kind = line_of(data.get("episode_type")) or "observation"
        about = {name: data.get(name) for name in ("title", "summary", "source_type")}
        return Draft(
            text_of(data.get("content")),
            level="raw",
            kind=kind,
            topic=self._topic_name(data),
            caption=line_of(data.get("title")) or None,
            entities=_entity_names(data),
            confidence=clamped_number(data.get("confidence"), 0, 1, 1),
            occurred_at=_first_time(data, "created_at", "timestamp"),
            metadata=metadata_of({**about, **mapping_of(data.get("metadata"))}),
        )

    def _concept_draft(self, data: _RowData) -> Draft:
        title, summary = line_of(data.get("title")), text_of(data.get("summary"))
        lines = [f"{title}: {summary}" if title and summary else title or summary]
        lines += [
            f"- {text_of(entry)}" for entry in list_of(data.get("specifics")) if text_of(entry)
        ]
        if conditions := text_of(data.get("conditions")):
            lines.append(f"Applies when: {conditions}")
        exceptions = [text_of(entry) for entry in list_of(data.get("exceptions")) if text_of(entry)]
        lines += [f"Except: {'; '.join(exceptions)}"] if exceptions else []
        kind = line_of(data.get("concept_type"))
        return Draft(
            "\n".join(lines),
            kind=kind if kind and kind != "legacy" else "concept",
            topic=self._topic_name(data),
            tags=tags_of(data.get("tags")),
            entities=_entity_names(data),
            confidence=clamped_number(data.get("confidence"), 0, 1, 0.5),
            occurred_at=_first_time(data, "updated_at", "created_at"),
            metadata=metadata_of({name: data.get(name) for name in ("title", "instance_count")}),
            force=True,
        )

    def _fact_entries(self, db: _Tables) -> Iterator[Entry]:
        for row in db.rows("facts", _FACT_COLUMNS, ("id",)):
            self._gauge.done += 1
            known, data = _row_data(row, needed=False)
            if isinstance(data, Refused):
                yield Entry(row.where, data)
                continue
            if data.get("deleted_at"):
                continue
            draft = Draft(
                text_of(data.get("statement")),
                kind="fact",
                topic=self._topic_name(data),
                entities=_entity_names(data),
                occurred_at=_first_time(data, "created_at"),
                valid_from=time_of(data.get("valid_from")),
                valid_to=time_of(data.get("valid_to")),
                metadata=metadata_of(
                    {name: data.get(name) for name in ("asserted_by", "source_ref")}
                ),
            )
            yield Entry(row.where, draft, id=digest("facts", known), origin=known)

    def _topic_name(self, data: _RowData) -> str | None:
        labels = list_of(mapping_of(data.get("labels")).get("topic"))
        topic = line_of(data.get("topic_id")) or next(filter(None, map(line_of, labels)), "")
        return self._topics.get(topic, topic) or None


def find_remind_folder(path: Path) -> Path | None:
    """Return the folder of records in or below a path; None where there is none."""
    for folder in (path, path / "memory", path / ".remind" / "memory"):
        has_records = (folder / "episodes").is_dir() or (folder / "concepts").is_dir()
        if has_records and (folder / "schema.json").is_file():
            return folder
    return None


def is_remind_export(value: Any) -> bool:
    """Whether a JSON value is what `remind export` writes."""
    whole = mapping_of(value)
    tables = mapping_of(whole.get("records")) or whole
    return all(isinstance(tables.get(name), list) for name in ("episodes", "concepts"))


def _exported_tables(path: Path) -> Mapping[str, Sequence[Any]]:
    with open_decompressed(path) as file:
        found = next(iter(json_elements(file)), (0, None))[1]
    if isinstance(found, Refused):
        raise found
    if not is_remind_export(found):
        raise Refused(f"{path.name} is not an export of Remind", remedy=_SUPPORTED)
    whole = mapping_of(found)
    tables = mapping_of(whole.get("records")) or whole
    return {name: rows for name, rows in tables.items() if isinstance(rows, list)}


def _row_data(row: ForeignRow, *, needed: bool = True) -> tuple[str, _RowData | Refused]:
    """Return a row's id and data: its JSON, and its cells where that is silent."""
    if row.refused is not None:
        return "", row.refused
    data = row.json("data")
    if needed and not isinstance(data, dict):
        return "", Refused("its data is not a JSON object")
    try:
        cells = {name: row.text(name) for name in row.cells if name != "data"}
    except Refused as refused:
        return "", refused
    given = {name: value for name, value in mapping_of(data).items() if value is not None}
    listed = row.json("entity_ids")
    return cells["id"], {**cells, "entity_ids": listed, **given}


def _first_time(data: _RowData, *names: str) -> Any:
    return next((found for name in names if (found := time_of(data.get(name)))), None)


def _cell_time(row: ForeignRow, name: str) -> Any:
    try:
        return time_of(row.text(name))
    except Refused:
        return None


def _entity_names(data: _RowData) -> tuple[str, ...]:
    found = (_to_entity_name(entity_id) for entity_id in list_of(data.get("entity_ids"))[:32])
    return tuple(dict.fromkeys(filter(None, found)))


def _to_entity_name(written: object) -> str:
    """Convert Remind's ``kind:name``; without a kind it is a subject."""
    kind, colon, name = line_of(written).partition(":")
    return entity_name_of(kind, name) if colon else entity_name_of("subject", kind)


def _name_of_entity(entity: str) -> str:
    return entity.partition(":")[2]


def _topic_names(db: _Tables) -> Iterator[tuple[str, str]]:
    for number, row in enumerate(db.rows("topics", ("id", "name"), ("id",))):
        if number == _MAX_TOPICS:
            return
        try:
            yield row.text("id"), line_of(row.text("name"))
        except Refused:
            continue  # a topic without a readable name is named by its id


def _concept_links(db: _Tables) -> Iterator[SourceLink]:
    columns = ("source_id", "target_id", "type", "strength", "context")
    for row in db.rows("relations", columns, ("source_id", "target_id", "type")):
        try:
            src, dst = row.text("source_id"), row.text("target_id")
            kind, context = row.text("type"), line_of(row.text("context"), 500)
        except Refused:
            continue  # skip a link whose ends cannot be read
        yield SourceLink(
            LinkEnd("item", digest("concepts", src)),
            kind if kind in RELATIONS else "related_to",
            LinkEnd("item", digest("concepts", dst)),
            row.where,
            clamped_number(row.number("strength"), 0.01, 1, 0.5),
            context or None,
        )


def _data_links(row: ForeignRow) -> Iterator[SourceLink]:
    """Yield the links that a concept's own data states: its relations and its sources."""
    known, data = _row_data(row)
    if isinstance(data, Refused) or data.get("deleted_at"):
        return
    me = LinkEnd("item", digest("concepts", known))
    for relation in map(mapping_of, list_of(data.get("relations"))):
        kind, target = text_of(relation.get("type")), text_of(relation.get("target_id"))
        if target:
            yield SourceLink(
                me,
                kind if kind in RELATIONS else "related_to",
                LinkEnd("item", digest("concepts", target)),
                row.where,
                clamped_number(relation.get("strength"), 0.01, 1, 0.5),
                line_of(relation.get("context"), 500) or None,
            )
    for episode in list_of(data.get("source_episodes")):
        if isinstance(episode, str):
            yield SourceLink(
                me, "derives_from", LinkEnd("item", digest("episodes", episode)), row.where, 1.0
            )


def _supersession_links(row: ForeignRow) -> Iterator[SourceLink]:
    known, data = _row_data(row, needed=False)
    later = "" if isinstance(data, Refused) else text_of(data.get("superseded_by"))
    if later and later != known:
        ends = (LinkEnd("item", digest("facts", later)), LinkEnd("item", digest("facts", known)))
        yield SourceLink(ends[0], "supersedes", ends[1], row.where, 1.0)


def _entity_edges(db: _Tables) -> Iterator[tuple[ForeignRow, str, str, str]]:
    columns = ("source_id", "target_id", "relation_type", "strength", "created_at")
    for row in db.rows("entity_relations", columns, ("source_id", "target_id", "relation_type")):
        try:
            src, dst = (
                _to_entity_name(row.text("source_id")),
                _to_entity_name(row.text("target_id")),
            )
            kind = line_of(row.text("relation_type"))
        except Refused:
            continue  # skip a link whose ends cannot be read
        if src and dst and kind and src != dst:
            yield row, src, kind, dst


def _edge_id(src: str, kind: str, dst: str) -> str:
    return digest("edges", src, kind, dst)
