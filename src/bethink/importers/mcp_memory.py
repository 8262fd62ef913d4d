"""The reference MCP memory server's file: entities with observations, and relations.

JSON Lines as the server stores them (``memory.jsonl``), or the one object that its tool
``read_graph`` returns. An observation becomes a memory that names its entity; a
relation becomes a memory that states it, and an edge between the two entities.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bethink.core.named_tuple import NamedTuple
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
    location_id,
    mapping_of,
    text_of,
)
from bethink.importers.streams import json_elements, json_lines, open_decompressed
from bethink.model import Draft


class _Record(NamedTuple):
    where: str
    found: Any


class McpMemory:
    """One memory file."""

    def __init__(self, path: Path, gauge: ReadProgress) -> None:
        self._path = path
        self._gauge = gauge
        self._place = location_id(path)
        self._kinds: dict[str, str] = {}

    def entries(self) -> Iterator[Entry]:
        """Yield an entry for every observation, every relation, and every bare entity."""
        # A relation may come before its entities.
        self._kinds = dict(_entity_kinds(self._records()))
        for record in self._records():
            if isinstance(record.found, Refused):
                yield Entry(record.where, record.found)
            elif mapping_of(record.found).get("type") == "entity":
                yield from self._entity_entries(record.where, record.found)
            elif mapping_of(record.found).get("type") == "relation":
                yield self._relation_entry(record.where, record.found)
            else:
                yield Entry(record.where, Refused("it is neither an entity nor a relation"))

    def links(self) -> Iterator[SourceLink]:
        """Yield an edge between entities for every relation."""
        for record in self._records():
            relation = mapping_of(record.found)
            if relation.get("type") != "relation":
                continue
            src, dst = (
                self._entity_of_name(relation.get("from")),
                self._entity_of_name(relation.get("to")),
            )
            if src and dst and src != dst:
                yield SourceLink(
                    LinkEnd("entity", src),
                    line_of(relation.get("relationType")),
                    LinkEnd("entity", dst),
                    record.where,
                    said_in=self._relation_id(relation),
                )

    def _records(self) -> Iterator[_Record]:
        self._gauge.done = 0
        for line in json_lines(self._path, self._gauge):
            if line.number == 1 and isinstance(line.found, Refused):
                yield from self._graph_records(line.found)
                return
            if line.number == 1 and "entities" in mapping_of(line.found):
                yield from _records_of_graph(line.found)
                return
            yield _Record(f"line {line.number}", line.found)

    def _graph_records(self, refused: Refused) -> Iterator[_Record]:
        """Yield the graph's records, where the whole file is one object over several lines."""
        with open_decompressed(self._path) as file:
            whole = next(iter(json_elements(file))).found
        if "entities" in mapping_of(whole):
            yield from _records_of_graph(whole)
            return
        yield _Record("line 1", refused)
        lines = json_lines(self._path, self._gauge)
        yield from (
            _Record(f"line {record.number}", record.found) for record in lines if record.number > 1
        )

    def _entity_entries(self, where: str, entity: dict[str, Any]) -> Iterator[Entry]:
        name, kind = line_of(entity.get("name")), line_of(entity.get("entityType"))
        if not name:
            yield Entry(where, Refused("the entity has no name"))
            return
        known = (entity_name_of(kind, name),)
        group = digest(self._place, "entity", name)
        about = {"entity_type": kind} if kind else {}
        observations = list_of(entity.get("observations"))
        for number, observation in enumerate(observations, start=1):
            place = f"{where}, observation {number}"
            text = text_of(observation)
            if not text:
                yield Entry(place, Refused("the observation is not a string"))
                continue
            draft = Draft(f"{name}: {text}", entities=known, metadata=about)
            yield Entry(place, draft, group=group)
        if not observations:
            draft = Draft(f"{name} ({kind})" if kind else name, entities=known, metadata=about)
            yield Entry(where, draft, group=group)

    def _relation_entry(self, where: str, relation: dict[str, Any]) -> Entry:
        src, dst = line_of(relation.get("from")), line_of(relation.get("to"))
        kind = line_of(relation.get("relationType"))
        if not (src and dst and kind):
            return Entry(where, Refused("the relation lacks from, to or relationType"))
        draft = Draft(
            f"{src} {kind.replace('_', ' ')} {dst}",
            kind="fact",
            entities=tuple(filter(None, (self._entity_of_name(src), self._entity_of_name(dst)))),
        )
        return Entry(where, draft, id=self._relation_id(relation))

    def _entity_of_name(self, name: object) -> str:
        called = line_of(name)
        return entity_name_of(self._kinds.get(called, ""), called)

    def _relation_id(self, relation: dict[str, Any]) -> str:
        parts = (line_of(relation.get(key)) for key in ("from", "relationType", "to"))
        return digest(self._place, "relation", *parts)


def _entity_kinds(records: Iterator[_Record]) -> Iterator[tuple[str, str]]:
    for record in records:
        entity = mapping_of(record.found)
        if entity.get("type") == "entity":
            yield line_of(entity.get("name")), line_of(entity.get("entityType"))


def _records_of_graph(graph: dict[str, Any]) -> Iterator[_Record]:
    for name, kind in (("entities", "entity"), ("relations", "relation")):
        for number, element in enumerate(list_of(graph.get(name)), start=1):
            found = {**element, "type": kind} if isinstance(element, dict) else element
            yield _Record(f"{kind} {number}", found)
