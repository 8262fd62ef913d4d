"""The reference MCP memory server's file: entities with observations, and relations.

JSON Lines as the server keeps them (``memory.jsonl``), or the one object that its tool
``read_graph`` gives. An observation becomes a memory that names its entity; a relation
becomes a memory that says it, and an edge between the two entities.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from recollect.errors import Refused
from recollect.model import Draft
from recollect.sources.json_elements import elements
from recollect.sources.json_lines import json_lines
from recollect.sources.source import End, Entry, Gauge, Tie, digest, place_id
from recollect.sources.stream import unpacked
from recollect.sources.values import entity_of, line_of, list_of, mapping_of, text_of


class _Record(NamedTuple):
    where: str
    found: Any


class McpMemory:
    """One memory file."""

    def __init__(self, path: Path, gauge: Gauge) -> None:
        self._path = path
        self._gauge = gauge
        self._place = place_id(path)
        self._kinds: dict[str, str] = {}

    def entries(self) -> Iterator[Entry]:
        """An entry for every observation, every relation, and every entity that has neither."""
        # A relation may stand before the entities that it names.
        self._kinds = dict(_kinds(self._records()))
        for record in self._records():
            if isinstance(record.found, Refused):
                yield Entry(record.where, record.found)
            elif mapping_of(record.found).get("type") == "entity":
                yield from self._of_entity(record.where, record.found)
            elif mapping_of(record.found).get("type") == "relation":
                yield self._of_relation(record.where, record.found)
            else:
                yield Entry(record.where, Refused("it is neither an entity nor a relation"))

    def ties(self) -> Iterator[Tie]:
        """An edge between entities for every relation."""
        for record in self._records():
            relation = mapping_of(record.found)
            if relation.get("type") != "relation":
                continue
            src, dst = self._entity(relation.get("from")), self._entity(relation.get("to"))
            if src and dst and src != dst:
                yield Tie(
                    End("entity", src),
                    line_of(relation.get("relationType")),
                    End("entity", dst),
                    record.where,
                    said_in=self._relation_id(relation),
                )

    def _records(self) -> Iterator[_Record]:
        self._gauge.done = 0
        for line in json_lines(self._path, self._gauge):
            if line.number == 1 and isinstance(line.found, Refused):
                yield from self._graph(line.found)
                return
            if line.number == 1 and "entities" in mapping_of(line.found):
                yield from _of_graph(line.found)
                return
            yield _Record(f"line {line.number}", line.found)

    def _graph(self, refused: Refused) -> Iterator[_Record]:
        """The graph, where the whole file is one object over several lines."""
        with unpacked(self._path) as file:
            whole = next(iter(elements(file))).found
        if "entities" in mapping_of(whole):
            yield from _of_graph(whole)
            return
        yield _Record("line 1", refused)
        lines = json_lines(self._path, self._gauge)
        yield from (_Record(f"line {one.number}", one.found) for one in lines if one.number > 1)

    def _of_entity(self, where: str, entity: dict[str, Any]) -> Iterator[Entry]:
        name, kind = line_of(entity.get("name")), line_of(entity.get("entityType"))
        if not name:
            yield Entry(where, Refused("the entity has no name"))
            return
        known = (entity_of(kind, name),)
        group = digest(self._place, "entity", name)
        about = {"entity_type": kind} if kind else {}
        observations = list_of(entity.get("observations"))
        for number, told in enumerate(observations, start=1):
            place = f"{where}, observation {number}"
            text = text_of(told)
            if not text:
                yield Entry(place, Refused("the observation is no text"))
                continue
            draft = Draft(f"{name}: {text}", entities=known, metadata=about)
            yield Entry(place, draft, group=group)
        if not observations:
            draft = Draft(f"{name} ({kind})" if kind else name, entities=known, metadata=about)
            yield Entry(where, draft, group=group)

    def _of_relation(self, where: str, relation: dict[str, Any]) -> Entry:
        src, dst = line_of(relation.get("from")), line_of(relation.get("to"))
        kind = line_of(relation.get("relationType"))
        if not (src and dst and kind):
            return Entry(where, Refused("the relation lacks from, to or relationType"))
        draft = Draft(
            f"{src} {kind.replace('_', ' ')} {dst}",
            kind="fact",
            entities=tuple(filter(None, (self._entity(src), self._entity(dst)))),
        )
        return Entry(where, draft, id=self._relation_id(relation))

    def _entity(self, name: object) -> str:
        called = line_of(name)
        return entity_of(self._kinds.get(called, ""), called)

    def _relation_id(self, relation: dict[str, Any]) -> str:
        parts = (line_of(relation.get(one)) for one in ("from", "relationType", "to"))
        return digest(self._place, "relation", *parts)


def _kinds(records: Iterator[_Record]) -> Iterator[tuple[str, str]]:
    for record in records:
        entity = mapping_of(record.found)
        if entity.get("type") == "entity":
            yield line_of(entity.get("name")), line_of(entity.get("entityType"))


def _of_graph(graph: dict[str, Any]) -> Iterator[_Record]:
    for name, kind in (("entities", "entity"), ("relations", "relation")):
        for number, one in enumerate(list_of(graph.get(name)), start=1):
            found = {**one, "type": kind} if isinstance(one, dict) else one
            yield _Record(f"{kind} {number}", found)
