"""The reference MCP memory server's file: entities with observations, and relations.

JSON Lines as the server stores them (``memory.jsonl``), or the one object that its tool
``read_graph`` returns. An observation becomes a memory that names its entity; a
relation becomes a memory that states it, and an edge between the two entities.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from bethink.errors import Refused
from bethink.importers import entry
from bethink.importers.streams import json_elements, json_lines, open_decompressed
from bethink.model import Draft


class McpMemory(entry.Reader):
    """One memory file."""

    def __init__(self, path: Path, gauge: entry.ReadProgress) -> None:
        super().__init__(path, gauge)
        self._place = entry.location_id(path)

    def entries(self) -> Iterator[entry.Entry]:
        """Yield an entry for every observation, every relation, and every bare entity."""
        kinds = self._entity_kinds()
        for where, found in self._records():
            fields = entry.Fields(found)
            if isinstance(found, Refused):
                yield entry.Entry(where, found)
            elif fields.get("type") == "entity":
                yield from self._entity_entries(where, fields)
            elif fields.get("type") != "relation":
                yield entry.Entry(where, Refused("it is neither an entity nor a relation"))
            elif relation := self._relation(where, fields, kinds):
                yield relation.entry()
            else:
                yield entry.Entry(where, Refused("the relation lacks from, to or relationType"))

    def links(self) -> Iterator[entry.SourceLink]:
        """Yield an edge between entities for every relation."""
        kinds = self._entity_kinds()
        for where, found in self._records():
            fields = entry.Fields(found)
            if fields.get("type") == "relation" and (
                relation := self._relation(where, fields, kinds)
            ):
                yield from relation.link()

    def _entity_kinds(self) -> dict[str, str]:
        """Return the kinds of all entities: a relation may come before its entities."""
        records = (entry.Fields(found) for _, found in self._records())
        entities = (entity for entity in records if entity.get("type") == "entity")
        return {entity.line("name"): entity.line("entityType") for entity in entities}

    def _records(self) -> Iterator[tuple[str, object]]:
        """Yield the records, each with where it is."""
        self._gauge.done = 0
        for number, found in json_lines(self._path, self._gauge):
            if number == 1:
                graph = entry.Fields(self._whole() if isinstance(found, Refused) else found)
                if "entities" in graph:
                    yield from _records_of_graph(graph)
                    return
            yield f"line {number}", found

    def _whole(self) -> object:
        """Return the value of the file, where it is one object over several lines."""
        with open_decompressed(self._path) as file:
            return next(iter(json_elements(file))).found

    def _entity_entries(self, where: str, entity: entry.Fields) -> Iterator[entry.Entry]:
        name, kind = entity.line("name"), entity.line("entityType")
        if not name:
            yield entry.Entry(where, Refused("the entity has no name"))
            return
        bare = Draft(
            f"{name} ({kind})" if kind else name,
            entities=(entry.entity_name_of(kind, name),),
            metadata={"entity_type": kind} if kind else {},
        )
        group = entry.digest(self._place, "entity", name)
        observations = entity.array("observations")
        for number, observation in enumerate(observations, start=1):
            place, text = f"{where}, observation {number}", entry.text_of(observation)
            if text:
                yield entry.Entry(place, bare._replace(text=f"{name}: {text}"), group=group)
            else:
                yield entry.Entry(place, Refused("the observation is not a string"))
        if not observations:
            yield entry.Entry(where, bare, group=group)

    def _relation(
        self, where: str, fields: entry.Fields, kinds: dict[str, str]
    ) -> entry.Relation | None:
        parts = [fields.line(name) for name in ("from", "relationType", "to")]
        if not all(parts):
            return None
        src, dst = (
            entry.entity_name_of(kinds.get(name, ""), name) for name in (parts[0], parts[2])
        )
        return entry.Relation(
            where, entry.digest(self._place, "relation", *parts), src, parts[1], dst
        )


def _records_of_graph(graph: entry.Fields) -> Iterator[tuple[str, object]]:
    for name, kind in (("entities", "entity"), ("relations", "relation")):
        for number, element in enumerate(graph.array(name), start=1):
            found = {**element, "type": kind} if isinstance(element, dict) else element
            yield f"{kind} {number}", found
