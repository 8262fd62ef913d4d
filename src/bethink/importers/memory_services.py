"""Memory services: the JSON of mem0, Letta and Zep.

mem0: a list of memories, or an object that holds it under ``results`` or ``memories``, with
``relations`` next to it where a graph was kept; or ``history.db`` of its library, of which
the final state is imported. Letta: an agent file (``.af``) with blocks and messages, or a
list of archival passages. Zep and Graphiti: edges, nodes and episodes of a graph.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bethink.core.json_values import parse_strict_json
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
    mapping_of,
    metadata_of,
    split_text,
    tags_of,
    text_of,
    time_of,
)
from bethink.importers.foreign_db import ForeignRow, is_database, open_foreign
from bethink.importers.streams import json_elements, open_decompressed
from bethink.model import Draft

LIST_KEYS = ("results", "memories")
_SCOPE_KEYS = ("user_id", "agent_id", "app_id", "run_id", "actor_id")
_HISTORY_COLUMNS = (
    "id",
    "memory_id",
    "new_memory",
    "event",
    "created_at",
    "updated_at",
    "is_deleted",
    "actor_id",
    "role",
)
_SUPPORTED = "supported: mem0 0.1 and later, with a table history(id, memory_id, new_memory, event)"


class Mem0:
    """One export, or one history."""

    def __init__(self, path: Path, gauge: ReadProgress) -> None:
        self._path = path
        self._gauge = gauge

    def entries(self) -> Iterator[Entry]:
        """Yield an entry for every memory, and for every relation of the graph."""
        if is_database(self._path):
            yield from _history_entries(self._path, self._gauge)
            return
        for where, found in self._memories():
            yield found if isinstance(found, Entry) else _memory_entry(where, found)
        for where, relation in self._relations():
            yield _relation_entry(where, relation)

    def links(self) -> Iterator[SourceLink]:
        """Yield an edge between entities for every relation of the graph."""
        for where, relation in self._relations():
            src, kind, dst = _relation_parts(relation)
            if src and kind and dst and src != dst:
                yield SourceLink(
                    LinkEnd("entity", entity_name_of("", src)),
                    kind,
                    LinkEnd("entity", entity_name_of("", dst)),
                    where,
                    said_in=_relation_id(relation),
                )

    def _memories(self) -> Iterator[tuple[str, Any]]:
        with open_decompressed(self._path) as file:
            for number, found in json_elements(file):
                where = f"memory {number}"
                if isinstance(found, Refused):
                    yield where, Entry(where, found)
                    continue
                listed = next((name for name in LIST_KEYS if name in mapping_of(found)), None)
                if listed is None:
                    yield where, found
                    continue
                inside = enumerate(list_of(found[listed]), start=1)
                yield from ((f"memory {place}", record) for place, record in inside)

    def _relations(self) -> Iterator[tuple[str, dict[str, Any]]]:
        if is_database(self._path):
            return
        with open_decompressed(self._path) as file:
            for _, found in json_elements(file):
                relations = list_of(mapping_of(found).get("relations"))
                for number, relation in enumerate(relations, start=1):
                    yield f"relation {number}", mapping_of(relation)


def _memory_entry(where: str, found: Any) -> Entry:
    memory = mapping_of(found)
    text = text_of(memory.get("memory")) or text_of(memory.get("data"))
    known = text_of(memory.get("id")) or text_of(memory.get("hash"))
    if not text:
        return Entry(where, Refused("the record has no memory"))
    scopes = {name: memory.get(name) for name in _SCOPE_KEYS}
    own = mapping_of(memory.get("metadata"))
    draft = Draft(
        text,
        kind=line_of(own.get("type")) or None,
        tags=tags_of(memory.get("categories") or own.get("category")),
        entities=tuple(filter(None, [entity_name_of("person", memory.get("user_id"))])),
        occurred_at=time_of(memory.get("updated_at")) or time_of(memory.get("created_at")),
        valid_to=time_of(memory.get("expiration_date")),
        metadata=metadata_of({**own, **scopes, "role": memory.get("role")}),
    )
    return Entry(where, draft, id=known or digest("mem0", text), origin=known)


_SPOKEN_ROLES = ("user", "assistant")


class Letta:
    """One agent file, or a list of passages.

    A memory block becomes an item, a message of the user or the agent a raw memory. System
    prompts, tools and their calls are no memories.
    """

    def __init__(self, path: Path, gauge: ReadProgress) -> None:
        self._path = path
        self._gauge = gauge

    def entries(self) -> Iterator[Entry]:
        """Yield the blocks, then the messages of every agent, or the passages."""
        with open_decompressed(self._path) as file:
            for number, found in json_elements(file):
                agent = unpacked(found)
                if isinstance(found, Refused):
                    yield Entry(f"element {number}", found)
                elif is_letta_agent(agent):
                    yield from _letta_agent(mapping_of(agent), self._path.stem)
                else:
                    yield _passage_entry(f"passage {number}", mapping_of(found))

    def links(self) -> Iterator[SourceLink]:
        """Yield nothing: the file has no links."""
        return iter(())


def is_letta_agent(value: Any) -> bool:
    """Whether a JSON value is an agent file, of the present or the first version."""
    whole = mapping_of(value)
    present = isinstance(whole.get("agents"), list) and isinstance(whole.get("blocks"), list)
    return present or (isinstance(whole.get("core_memory"), list) and "messages" in whole)


def is_letta_passage(value: Any) -> bool:
    """Whether a JSON value is a passage of Letta's archival memory."""
    passage = mapping_of(value)
    owner = {"archive_id", "agent_id", "source_id", "embedding_config"} & passage.keys()
    return isinstance(passage.get("text"), str) and bool(owner) and "id" in passage


def _letta_agent(whole: dict[str, Any], name: str) -> Iterator[Entry]:
    blocks = [*list_of(whole.get("blocks")), *list_of(whole.get("core_memory"))]
    labels: Counter[str] = Counter()  # agents may have blocks of the same label
    for number, block in enumerate(map(mapping_of, blocks), start=1):
        label, text = line_of(block.get("label")) or "block", text_of(block.get("value"))
        if not text:
            continue
        draft = Draft(
            f"{label}: {text}",
            kind="preference" if label == "human" else None,
            tags=(label,),
            occurred_at=time_of(block.get("updated_at")) or time_of(block.get("created_at")),
            metadata=metadata_of({"description": block.get("description")}),
            force=True,
        )
        labels[label] += 1
        known = digest("letta", name, label, str(labels[label]))
        yield from _in_parts(Entry(f"block {number}", draft, known))
    agents = list_of(whole.get("agents")) or [whole]
    for place, agent in enumerate(map(mapping_of, agents), start=1):
        called = line_of(agent.get("name")) or name
        messages = enumerate(map(mapping_of, list_of(agent.get("messages"))), start=1)
        for number, message in messages:
            yield from _letta_message(f"agent {place}, message {number}", message, called, number)


def _letta_message(where: str, message: dict[str, Any], agent: str, number: int) -> Iterator[Entry]:
    role, text = line_of(message.get("role")), _message_text(message)
    if role not in _SPOKEN_ROLES or not text:
        return
    at = time_of(message.get("created_at"))
    draft = Draft(
        text,
        level="raw",
        speaker=role,
        session=f"letta:{agent}"[:200],
        seq=number,
        occurred_at=at,
    )
    known = f"{at.isoformat()} {role} {text}" if at else f"{number} {text}"
    own = text_of(message.get("id"))
    yield from _in_parts(Entry(where, draft, digest("letta", agent, known), origin=own))


def _in_parts(entry: Entry) -> Iterator[Entry]:
    """Yield an entry, in parts where its text is too long for one memory."""
    assert isinstance(entry.found, Draft)
    for number, text in enumerate(split_text(entry.found.text)):
        own = digest(entry.id, str(number)) if number else entry.id
        yield entry._replace(found=entry.found._replace(text=text), id=own)


def _message_text(message: dict[str, Any]) -> str:
    """Return what was said: the content, or what the tool ``send_message`` was called with."""
    content = message.get("content", message.get("text"))
    parts = (
        [content]
        if isinstance(content, str)
        else [mapping_of(part).get("text") for part in list_of(content)]
    )
    said = "\n".join(filter(None, map(text_of, parts)))
    for call in list_of(message.get("tool_calls")):
        function = mapping_of(mapping_of(call).get("function"))
        if function.get("name") == "send_message":
            said = text_of(mapping_of(unpacked(function.get("arguments"))).get("message")) or said
    packed = mapping_of(unpacked(said))
    kind = packed.get("type")
    if kind in ("heartbeat", "login", "system_alert"):
        return ""  # events of the server, in the role of the user
    return text_of(packed.get("message")) if kind == "user_message" else said


def unpacked(value: Any) -> Any:
    """Return the JSON in a text, for objects that were written as text; else the value."""
    text = text_of(value)
    if not text.startswith("{"):
        return value
    try:
        return parse_strict_json(text)
    except Refused:
        return value


def _passage_entry(where: str, passage: dict[str, Any]) -> Entry:
    text, known = text_of(passage.get("text")), text_of(passage.get("id"))
    if not text:
        return Entry(where, Refused("the passage has no text"))
    draft = Draft(
        text,
        tags=tags_of(passage.get("tags")),
        occurred_at=time_of(passage.get("created_at")),
        metadata=metadata_of(mapping_of(passage.get("metadata"))),
    )
    return Entry(where, draft, id=known or digest("letta passage", text), origin=known)


_ZEP_LISTS = ("edges", "nodes", "episodes", "messages")


class Zep:
    """What Zep or Graphiti return of a graph: edges, nodes and episodes.

    An object with these lists, or one list of either. An edge becomes a fact with its time
    of validity and an edge between entities, a node's summary an item, an episode or a
    message a raw memory.
    """

    def __init__(self, path: Path, gauge: ReadProgress) -> None:
        self._path = path
        self._gauge = gauge
        self._nodes: dict[str, str] = {}

    def entries(self) -> Iterator[Entry]:
        """Yield episodes, then the nodes, then the facts derived from both."""
        records = list(self._records())
        self._read_nodes(records)
        for kind, where, record in sorted(records, key=lambda one: _ZEP_ORDER.index(one[0])):
            if kind == "refused":
                yield Entry(where, record["refused"])
            elif kind == "edge":
                yield self._fact_entry(where, record)
            elif kind == "node":
                yield from _node_entry(where, record)
            else:
                entry = _episode_entry(where, record)
                yield from _in_parts(entry) if isinstance(entry.found, Draft) else (entry,)

    def links(self) -> Iterator[SourceLink]:
        """Yield an edge between entities, and from each fact to its episodes."""
        records = list(self._records())
        self._read_nodes(records)
        for kind, where, edge in records:
            known = text_of(edge.get("uuid"))
            if kind != "edge" or not known:
                continue
            src, dst = self._ends(edge)
            relation = line_of(edge.get("name")).lower()
            if src and dst and src != dst and relation:
                ends = (LinkEnd("entity", src), LinkEnd("entity", dst))
                yield SourceLink(ends[0], relation, ends[1], where, said_in=known)
            for episode in list_of(edge.get("episodes") or edge.get("episode_uuids")):
                if isinstance(episode, str):
                    me, other = LinkEnd("item", known), LinkEnd("item", episode)
                    yield SourceLink(me, "derives_from", other, where, 1.0)

    def _read_nodes(self, records: list[tuple[str, str, dict[str, Any]]]) -> None:
        nodes = (node for kind, _, node in records if kind == "node")
        self._nodes = {text_of(node.get("uuid")): _node_name(node) for node in nodes}

    def _records(self) -> Iterator[tuple[str, str, dict[str, Any]]]:
        with open_decompressed(self._path) as file:
            for number, found in json_elements(file):
                if isinstance(found, Refused):
                    yield "refused", f"element {number}", {"refused": found}
                    continue
                whole = mapping_of(found)
                listed = [name for name in _ZEP_LISTS if isinstance(whole.get(name), list)]
                if not listed:
                    yield zep_kind(whole) or "episode", f"element {number}", whole
                for name in listed:
                    for place, one in enumerate(map(mapping_of, whole[name]), start=1):
                        yield zep_kind(one) or "episode", f"{name} {place}", one

    def _ends(self, edge: dict[str, Any]) -> tuple[str, str]:
        src, dst = (
            self._nodes.get(text_of(edge.get(f"{end}_node_uuid")))
            or entity_name_of("", edge.get(f"{end}_node_name"))
            for end in ("source", "target")
        )
        return src, dst

    def _fact_entry(self, where: str, edge: dict[str, Any]) -> Entry:
        known = text_of(edge.get("uuid"))
        draft = Draft(
            text_of(edge.get("fact")),
            kind="fact",
            entities=tuple(dict.fromkeys(filter(None, self._ends(edge)))),
            occurred_at=time_of(edge.get("valid_at")) or time_of(edge.get("created_at")),
            valid_from=time_of(edge.get("valid_at")),
            valid_to=time_of(edge.get("invalid_at")) or time_of(edge.get("expired_at")),
            metadata=metadata_of({"relation": edge.get("name")}),
        )
        return Entry(where, draft, id=known or digest("zep", draft.text), origin=known)


_ZEP_ORDER = ("refused", "episode", "node", "edge")


def zep_kind(value: Any) -> str:
    """Return what a record of Zep is: an edge, a node or an episode; empty if it is none."""
    record = mapping_of(value)
    if isinstance(record.get("fact"), str) and (
        "source_node_uuid" in record or "valid_at" in record
    ):
        return "edge"
    if "uuid" not in record:
        return ""
    if isinstance(record.get("content"), str):
        return "episode"
    return "node" if isinstance(record.get("name"), str) and "summary" in record else ""


def is_zep(value: Any) -> bool:
    """Whether a JSON value is a graph of Zep or Graphiti, or a record of one."""
    whole = mapping_of(value)
    first = (next(iter(list_of(whole.get(name))), None) for name in _ZEP_LISTS)
    return bool(zep_kind(whole)) or any(zep_kind(one) for one in first)


def _node_name(node: dict[str, Any]) -> str:
    labels = [line_of(label) for label in list_of(node.get("labels"))]
    kind = next((label for label in labels if label.lower() != "entity"), "")
    return entity_name_of(kind, node.get("name"))


def _node_entry(where: str, node: dict[str, Any]) -> Iterator[Entry]:
    name, summary = line_of(node.get("name")), text_of(node.get("summary"))
    if name and summary:
        draft = Draft(
            f"{name}: {summary}",
            entities=tuple(filter(None, [_node_name(node)])),
            occurred_at=time_of(node.get("created_at")),
        )
        known = text_of(node.get("uuid"))
        yield Entry(where, draft, id=known or digest("zep node", name), origin=known)


def _episode_entry(where: str, episode: dict[str, Any]) -> Entry:
    known, text = text_of(episode.get("uuid")), text_of(episode.get("content"))
    if not text:
        return Entry(where, Refused("it is no edge, node or episode"))
    speaker = line_of(episode.get("name")) if episode.get("role") else ""
    speaker = speaker or line_of(episode.get("role") or episode.get("role_type"))
    session = line_of(episode.get("thread_id") or episode.get("session_id"))
    draft = Draft(
        text,
        level="raw",
        speaker=speaker or None,
        session=f"zep:{session}" if session else None,
        occurred_at=time_of(episode.get("valid_at")) or time_of(episode.get("created_at")),
        metadata=metadata_of({"description": episode.get("source_description")}),
    )
    return Entry(where, draft, id=known or digest("zep", text), origin=known)


def _relation_parts(relation: dict[str, Any]) -> tuple[str, str, str]:
    target = relation.get("target", relation.get("destination"))
    kind = relation.get("relationship", relation.get("relation"))
    return line_of(relation.get("source")), line_of(kind), line_of(target)


def _relation_id(relation: dict[str, Any]) -> str:
    return digest("mem0 relation", *_relation_parts(relation))


def _relation_entry(where: str, relation: dict[str, Any]) -> Entry:
    src, kind, dst = _relation_parts(relation)
    if not (src and kind and dst):
        return Entry(where, Refused("the relation lacks its source, its name or its target"))
    draft = Draft(
        f"{src} {kind.replace('_', ' ')} {dst}",
        kind="fact",
        entities=(entity_name_of("", src), entity_name_of("", dst)),
    )
    return Entry(where, draft, id=_relation_id(relation))


def _history_entries(path: Path, gauge: ReadProgress) -> Iterator[Entry]:
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
                yield Entry(row.where, row.refused)
                continue
            # Only the last event of a memory counts; the rows are in time order.
            last[_memory_id(row)] = row
        for memory_id, row in last.items():
            yield from _final_entry(memory_id, row)


def _memory_id(row: ForeignRow) -> str:
    cell = row.cells.get("memory_id") or b""
    return cell.decode("utf-8", "replace")


def _final_entry(memory_id: str, row: ForeignRow) -> Iterator[Entry]:
    try:
        if row.text("event").upper() == "DELETE" or row.number("is_deleted"):
            return
        text = row.text("new_memory")
        draft = Draft(
            text,
            speaker=line_of(row.text("role")) or None,
            occurred_at=time_of(row.text("updated_at")) or time_of(row.text("created_at")),
            metadata=metadata_of({"actor_id": row.text("actor_id")}),
        )
    except Refused as refused:
        yield Entry(row.where, refused)
        return
    if not (text and memory_id):
        yield Entry(row.where, Refused("the record has no memory"))
        return
    yield Entry(row.where, draft, id=memory_id, origin=memory_id)
