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

from bethink.errors import Refused
from bethink.importers.entry import (
    Entry,
    Fields,
    Reader,
    Relation,
    SourceLink,
    clamped_number,
    digest,
    entity_name_of,
    item_link,
    line_of,
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
_COLUMNS = ("id", "data", "deleted_at", "topic_id")
_FACT_COLUMNS = ("id", "statement", "data", "entity_ids", "valid_from", "valid_to", "superseded_by",
         "asserted_by", "source_ref", "source_episode_id", "created_at", "deleted_at")  # fmt: skip
_MAX_TOPICS = 10_000

_Tables = ForeignDb | ForeignRecords


class Remind(Reader):
    """One memory of Remind, in whichever form."""

    def entries(self) -> Iterator[Entry]:
        """Yield episodes, then the concepts based on them, then facts and edges as text."""
        kinds: dict[str, tuple[tuple[str, ...], Callable[[Fields], Draft]]] = {
            "episodes": (_COLUMNS, _episode_draft),
            "concepts": (_COLUMNS, _concept_draft),
            "facts": (_FACT_COLUMNS, _fact_draft),
        }
        with self._open() as db:
            self._gauge.total, self._gauge.unit = db.count(*kinds), "rows"
            topics = dict(_topic_names(db))
            for table, (columns, make) in kinds.items():
                for row in db.rows(table, columns, ("id",)):
                    self._gauge.done += 1
                    known, data = _row_data(row, needed=table != "facts")
                    if isinstance(data, Refused):
                        yield Entry(row.where, data)
                    elif not data.get("deleted_at"):
                        draft = make(data)._replace(topic=_topic_name(data, topics))
                        yield Entry(row.where, draft, id=digest(table, known), origin=known)
            for row, relation in _entity_edges(db):
                entry = relation.entry()
                assert isinstance(entry.found, Draft)
                strength = clamped_number(row.number("strength"), 0, 1, 0.5)
                at = time_of(row.first("created_at"))
                yield entry._replace(
                    found=entry.found._replace(confidence=strength, occurred_at=at)
                )

    def links(self) -> Iterator[SourceLink]:
        """Yield relations of concepts, their sources, superseded facts, and edges."""
        with self._open() as db:
            yield from _concept_links(db)
            for row in db.rows("concepts", ("id", "data", "deleted_at"), ("id",)):
                yield from _data_links(row)
            for row in db.rows("facts", _FACT_COLUMNS, ("id",)):
                yield from _supersession_links(row)
            for row, relation in _entity_edges(db):
                yield from relation.link(clamped_number(row.number("strength"), 0.01, 1, 0.5))

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


def _episode_draft(data: Fields) -> Draft:
    about = data.only("title", "summary", "source_type")
    return Draft(
        data.text("content"),
        level="raw",
        kind=data.line("episode_type") or "observation",
        caption=data.line("title") or None,
        entities=_entity_names(data),
        confidence=clamped_number(data.get("confidence"), 0, 1, 1),
        occurred_at=data.time("created_at", "timestamp"),
        metadata=metadata_of({**about, **data.fields("metadata").given}),
    )


def _concept_draft(data: Fields) -> Draft:
    title, summary = data.line("title"), data.text("summary")
    lines = [f"{title}: {summary}" if title and summary else title or summary]
    lines += [f"- {text}" for text in map(text_of, data.array("specifics")) if text]
    if conditions := data.text("conditions"):
        lines.append(f"Applies when: {conditions}")
    exceptions = list(filter(None, map(text_of, data.array("exceptions"))))
    lines += [f"Except: {'; '.join(exceptions)}"] if exceptions else []
    kind = data.line("concept_type")
    return Draft(
        "\n".join(lines),
        kind=kind if kind and kind != "legacy" else "concept",
        tags=tags_of(data.get("tags")),
        entities=_entity_names(data),
        confidence=clamped_number(data.get("confidence"), 0, 1, 0.5),
        occurred_at=data.time("updated_at", "created_at"),
        metadata=metadata_of(data.only("title", "instance_count")),
        force=True,
    )


def _fact_draft(data: Fields) -> Draft:
    return Draft(
        data.text("statement"),
        kind="fact",
        entities=_entity_names(data),
        occurred_at=data.time("created_at"),
        valid_from=data.time("valid_from"),
        valid_to=data.time("valid_to"),
        metadata=metadata_of(data.only("asserted_by", "source_ref")),
    )


def find_remind_folder(path: Path) -> Path | None:
    """Return the folder of records in or below a path; None where there is none."""
    for folder in (path, path / "memory", path / ".remind" / "memory"):
        has_records = (folder / "episodes").is_dir() or (folder / "concepts").is_dir()
        if has_records and (folder / "schema.json").is_file():
            return folder
    return None


def is_remind_export(whole: Fields) -> bool:
    """Whether JSON is what `remind export` writes."""
    tables = _tables_of(whole)
    return tables.has_list("episodes") and tables.has_list("concepts")


def _tables_of(whole: Fields) -> Fields:
    return whole.fields("records") if whole.fields("records").given else whole


def _exported_tables(path: Path) -> Mapping[str, Sequence[object]]:
    with open_decompressed(path) as file:
        found = next(iter(json_elements(file)), (0, None))[1]
    if isinstance(found, Refused):
        raise found
    if not is_remind_export(Fields(found)):
        raise Refused(f"{path.name} is not an export of Remind", remedy=_SUPPORTED)
    tables = _tables_of(Fields(found)).given
    return {name: rows for name, rows in tables.items() if isinstance(rows, list)}


def _row_data(row: ForeignRow, *, needed: bool = True) -> tuple[str, Fields | Refused]:
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
    given = {name: value for name, value in Fields(data).given.items() if value is not None}
    return cells["id"], Fields({**cells, "entity_ids": row.json("entity_ids"), **given})


def _entity_names(data: Fields) -> tuple[str, ...]:
    found = map(_to_entity_name, data.array("entity_ids")[:32])
    return tuple(dict.fromkeys(filter(None, found)))


def _to_entity_name(written: object) -> str:
    """Convert Remind's ``kind:name``; without a kind it is a subject."""
    kind, colon, name = line_of(written).partition(":")
    return entity_name_of(kind, name) if colon else entity_name_of("subject", kind)


def _topic_name(data: Fields, topics: Mapping[str, str]) -> str | None:
    labels = map(line_of, data.fields("labels").array("topic"))
    topic = data.line("topic_id") or next(filter(None, labels), "")
    return topics.get(topic, topic) or None


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
            src, kind, dst, context = (
                row.text(name) for name in ("source_id", "type", "target_id", "context")
            )
        except Refused:
            continue  # skip a link whose ends cannot be read
        strength = row.number("strength")
        yield _concept_link(digest("concepts", src), kind, dst, row.where, strength, context)


def _concept_link(  # noqa: PLR0917 - the fields of a link
    src: str, kind: str, dst: str, where: str, strength: object, context: object
) -> SourceLink:
    weight = clamped_number(strength, 0.01, 1, 0.5)
    known = kind if kind in RELATIONS else "related_to"
    return item_link(src, known, digest("concepts", dst), where, weight, line_of(context, 500))


def _data_links(row: ForeignRow) -> Iterator[SourceLink]:
    """Yield the links that a concept's own data states: its relations and its sources."""
    known, data = _row_data(row)
    if isinstance(data, Refused) or data.get("deleted_at"):
        return
    me = digest("concepts", known)
    for relation in data.each("relations"):
        if target := relation.text("target_id"):
            about = relation.get("strength"), relation.get("context")
            yield _concept_link(me, relation.text("type"), target, row.where, *about)
    for episode in data.array("source_episodes"):
        if isinstance(episode, str):
            yield item_link(me, "derives_from", digest("episodes", episode), row.where, 1.0)


def _supersession_links(row: ForeignRow) -> Iterator[SourceLink]:
    known, data = _row_data(row, needed=False)
    later = "" if isinstance(data, Refused) else data.text("superseded_by")
    if later and later != known:
        ends = digest("facts", later), digest("facts", known)
        yield item_link(ends[0], "supersedes", ends[1], row.where, 1.0)


def _entity_edges(db: _Tables) -> Iterator[tuple[ForeignRow, Relation]]:
    columns = ("source_id", "target_id", "relation_type", "strength", "created_at")
    for row in db.rows("entity_relations", columns, ("source_id", "target_id", "relation_type")):
        try:
            src, dst = (_to_entity_name(row.text(name)) for name in ("source_id", "target_id"))
            kind = line_of(row.text("relation_type"))
        except Refused:
            continue  # skip a link whose ends cannot be read
        if src and dst and kind and src != dst:
            yield row, Relation(row.where, digest("edges", src, kind, dst), src, kind, dst)
