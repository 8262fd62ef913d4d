"""Remind's database: episodes, concepts, facts, entities, and how they are related.

An episode becomes a raw memory, a concept and a fact become items; what Remind deleted
softly is left out. Whether something was changed since is seen by its content, so a
database that is still in use can be imported again and again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from recollect.errors import Refused
from recollect.model import RELATIONS, Draft
from recollect.sources.foreign_db import ForeignDb, Row, open_foreign
from recollect.sources.source import End, Entry, Gauge, Tie, digest
from recollect.sources.values import (
    details,
    entity_of,
    line_of,
    list_of,
    mapping_of,
    number_of,
    text_of,
    time_of,
    words_of,
)

_KNOWN = "known are the databases of Remind 0.5 to 0.12: concepts(id, data) and episodes(id, data)"
_TABLES = ("episodes", "concepts", "facts")
_FACT = ("id", "statement", "data", "entity_ids", "valid_from", "valid_to", "superseded_by",
         "asserted_by", "source_ref", "source_episode_id", "created_at", "deleted_at")  # fmt: skip
_MOST_TOPICS = 10_000

_Told = Mapping[str, Any]


class Remind:
    """One database."""

    def __init__(self, path: Path, gauge: Gauge) -> None:
        self._path = path
        self._gauge = gauge
        self._topics: dict[str, str] = {}

    def entries(self) -> Iterator[Entry]:
        """Episodes, then the concepts that rest on them, then facts and edges in words."""
        with self._open() as db:
            self._gauge.total, self._gauge.unit = db.count(*_TABLES), "rows"
            self._topics = dict(_topics(db))
            yield from self._all(db, "episodes", self._episode)
            yield from self._all(db, "concepts", self._concept)
            yield from self._facts(db)
            for row, src, kind, dst in _edges(db):
                draft = Draft(
                    f"{_called(src)} {kind.replace('_', ' ')} {_called(dst)}",
                    kind="fact",
                    entities=(src, dst),
                    confidence=number_of(row.number("strength"), 0, 1, 0.5),
                    occurred_at=_cell_time(row, "created_at"),
                )
                yield Entry(row.where, draft, id=_edge_id(src, kind, dst))

    def ties(self) -> Iterator[Tie]:
        """Relations of concepts, what they were made from, what replaced a fact, and edges."""
        with self._open() as db:
            yield from _relations(db)
            for row in db.rows("concepts", ("id", "data", "deleted_at"), ("id",)):
                yield from _grounds(row)
            for row in db.rows("facts", _FACT, ("id",)):
                yield from _succession(row)
            for row, src, kind, dst in _edges(db):
                weight = number_of(row.number("strength"), 0.01, 1, 0.5)
                ends = (End("entity", src), End("entity", dst))
                said = _edge_id(src, kind, dst)
                yield Tie(ends[0], kind, ends[1], row.where, weight, said_in=said)

    @contextmanager
    def _open(self) -> Iterator[ForeignDb]:
        with open_foreign(self._path) as db:
            db.require(_KNOWN, episodes=("id", "data"), concepts=("id", "data"))
            yield db

    def _all(self, db: ForeignDb, table: str, make: Callable[[_Told], Draft]) -> Iterator[Entry]:
        for row in db.rows(table, ("id", "data", "deleted_at", "topic_id"), ("id",)):
            self._gauge.done += 1
            known, told = _own(row)
            if isinstance(told, Refused):
                yield Entry(row.where, told)
            elif not told.get("deleted_at"):
                yield Entry(row.where, make(told), id=digest(table, known), origin=known)

    def _episode(self, told: _Told) -> Draft:
        kind = line_of(told.get("episode_type")) or "observation"
        about = {name: told.get(name) for name in ("title", "summary", "source_type")}
        return Draft(
            text_of(told.get("content")),
            level="raw",
            kind=kind,
            topic=self._topic(told),
            caption=line_of(told.get("title")) or None,
            entities=_entities(told),
            confidence=number_of(told.get("confidence"), 0, 1, 1),
            occurred_at=_when(told, "created_at", "timestamp"),
            metadata=details({**about, **mapping_of(told.get("metadata"))}),
        )

    def _concept(self, told: _Told) -> Draft:
        title, summary = line_of(told.get("title")), text_of(told.get("summary"))
        lines = [f"{title}: {summary}" if title and summary else title or summary]
        lines += [f"- {text_of(one)}" for one in list_of(told.get("specifics")) if text_of(one)]
        if conditions := text_of(told.get("conditions")):
            lines.append(f"Applies when: {conditions}")
        exceptions = [text_of(one) for one in list_of(told.get("exceptions")) if text_of(one)]
        lines += [f"Except: {'; '.join(exceptions)}"] if exceptions else []
        kind = line_of(told.get("concept_type"))
        return Draft(
            "\n".join(lines),
            kind=kind if kind and kind != "legacy" else "concept",
            topic=self._topic(told),
            tags=words_of(told.get("tags")),
            entities=_entities(told),
            confidence=number_of(told.get("confidence"), 0, 1, 0.5),
            occurred_at=_when(told, "updated_at", "created_at"),
            metadata=details({name: told.get(name) for name in ("title", "instance_count")}),
            force=True,
        )

    def _facts(self, db: ForeignDb) -> Iterator[Entry]:
        for row in db.rows("facts", _FACT, ("id",)):
            self._gauge.done += 1
            known, told = _own(row, needed=False)
            if isinstance(told, Refused):
                yield Entry(row.where, told)
                continue
            if told.get("deleted_at"):
                continue
            draft = Draft(
                text_of(told.get("statement")),
                kind="fact",
                topic=self._topic(told),
                entities=_entities(told),
                occurred_at=_when(told, "created_at"),
                valid_from=time_of(told.get("valid_from")),
                valid_to=time_of(told.get("valid_to")),
                metadata=details({name: told.get(name) for name in ("asserted_by", "source_ref")}),
            )
            yield Entry(row.where, draft, id=digest("facts", known), origin=known)

    def _topic(self, told: _Told) -> str | None:
        topic = line_of(told.get("topic_id"))
        return self._topics.get(topic, topic) or None


def _own(row: Row, *, needed: bool = True) -> tuple[str, _Told | Refused]:
    """What a row says of itself: its JSON, and its cells where that says nothing."""
    if row.refused is not None:
        return "", row.refused
    told = row.json("data")
    if needed and not isinstance(told, dict):
        return "", Refused("its data is no JSON object")
    try:
        cells = {name: row.text(name) for name in row.cells if name != "data"}
    except Refused as refused:
        return "", refused
    given = {name: value for name, value in mapping_of(told).items() if value is not None}
    listed = row.json("entity_ids")
    return cells["id"], {**cells, "entity_ids": listed, **given}


def _when(told: _Told, *names: str) -> Any:
    return next((found for name in names if (found := time_of(told.get(name)))), None)


def _cell_time(row: Row, name: str) -> Any:
    try:
        return time_of(row.text(name))
    except Refused:
        return None


def _entities(told: _Told) -> tuple[str, ...]:
    found = (_entity(one) for one in list_of(told.get("entity_ids"))[:32])
    return tuple(dict.fromkeys(filter(None, found)))


def _entity(written: object) -> str:
    """Remind writes ``kind:name``; without a kind it is a subject."""
    kind, colon, name = line_of(written).partition(":")
    return entity_of(kind, name) if colon else entity_of("subject", kind)


def _called(entity: str) -> str:
    return entity.partition(":")[2]


def _topics(db: ForeignDb) -> Iterator[tuple[str, str]]:
    for number, row in enumerate(db.rows("topics", ("id", "name"), ("id",))):
        if number == _MOST_TOPICS:
            return
        try:
            yield row.text("id"), line_of(row.text("name"))
        except Refused:
            continue  # a topic without a readable name is called by its id


def _relations(db: ForeignDb) -> Iterator[Tie]:
    columns = ("source_id", "target_id", "type", "strength", "context")
    for row in db.rows("relations", columns, ("source_id", "target_id", "type")):
        try:
            src, dst = row.text("source_id"), row.text("target_id")
            kind, context = row.text("type"), line_of(row.text("context"), 500)
        except Refused:
            continue  # its ends cannot be read, so it ties nothing
        yield Tie(
            End("item", digest("concepts", src)),
            kind if kind in RELATIONS else "related_to",
            End("item", digest("concepts", dst)),
            row.where,
            number_of(row.number("strength"), 0.01, 1, 0.5),
            context or None,
        )


def _grounds(row: Row) -> Iterator[Tie]:
    known, told = _own(row)
    if isinstance(told, Refused) or told.get("deleted_at"):
        return
    me = End("item", digest("concepts", known))
    for episode in list_of(told.get("source_episodes")):
        if isinstance(episode, str):
            yield Tie(me, "derives_from", End("item", digest("episodes", episode)), row.where, 1.0)


def _succession(row: Row) -> Iterator[Tie]:
    known, told = _own(row, needed=False)
    later = "" if isinstance(told, Refused) else text_of(told.get("superseded_by"))
    if later and later != known:
        ends = (End("item", digest("facts", later)), End("item", digest("facts", known)))
        yield Tie(ends[0], "supersedes", ends[1], row.where, 1.0)


def _edges(db: ForeignDb) -> Iterator[tuple[Row, str, str, str]]:
    columns = ("source_id", "target_id", "relation_type", "strength", "created_at")
    for row in db.rows("entity_relations", columns, ("source_id", "target_id", "relation_type")):
        try:
            src, dst = _entity(row.text("source_id")), _entity(row.text("target_id"))
            kind = line_of(row.text("relation_type"))
        except Refused:
            continue  # its ends cannot be read, so it ties nothing
        if src and dst and kind and src != dst:
            yield row, src, kind, dst


def _edge_id(src: str, kind: str, dst: str) -> str:
    return digest("edges", src, kind, dst)
