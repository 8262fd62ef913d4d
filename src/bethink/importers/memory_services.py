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

from bethink.core.named_tuple import NamedTuple
from bethink.errors import Refused
from bethink.importers.entry import (
    Entry,
    Fields,
    Reader,
    ReadProgress,
    Relation,
    SourceLink,
    decoded_json,
    digest,
    entity_name_of,
    item_link,
    line_of,
    metadata_of,
    split_text,
    tags_of,
    time_of,
)
from bethink.importers.foreign_db import ForeignRow, is_database, open_foreign
from bethink.importers.streams import json_elements, open_decompressed
from bethink.model import Draft

LIST_KEYS = ("results", "memories")
_SCOPE_KEYS = ("user_id", "agent_id", "app_id", "run_id", "actor_id")
_HISTORY_COLUMNS = (
    *("id", "memory_id", "new_memory", "event", "created_at", "updated_at"),
    *("is_deleted", "actor_id", "role"),
)
_SUPPORTED = "supported: mem0 0.1 and later, with a table history(id, memory_id, new_memory, event)"


class Mem0(Reader):
    """One export, or one history."""

    def entries(self) -> Iterator[Entry]:
        """Yield an entry for every memory, and for every relation of the graph."""
        if is_database(self._path):
            yield from _history_entries(self._path, self._gauge)
            return
        with open_decompressed(self._path) as file:
            for number, found in json_elements(file):
                whole = Fields(found)
                listed = next((name for name in LIST_KEYS if name in whole), None)
                if isinstance(found, Refused):
                    yield Entry(f"memory {number}", found)
                elif listed is None:
                    yield _memory_entry(f"memory {number}", whole)
                else:
                    for place, memory in enumerate(whole.each(listed), start=1):
                        yield _memory_entry(f"memory {place}", memory)
        for relation in self._relations():
            yield relation.entry() if isinstance(relation, Relation) else relation

    def links(self) -> Iterator[SourceLink]:
        """Yield an edge between entities for every relation of the graph."""
        for relation in () if is_database(self._path) else self._relations():
            if isinstance(relation, Relation):
                yield from relation.link()

    def _relations(self) -> Iterator[Relation | Entry]:
        with open_decompressed(self._path) as file:
            for _, found in json_elements(file):
                for number, fields in enumerate(Fields(found).each("relations"), start=1):
                    target = "target" if "target" in fields else "destination"
                    kind = "relationship" if "relationship" in fields else "relation"
                    parts = [fields.line(name) for name in ("source", kind, target)]
                    where = f"relation {number}"
                    if all(parts):
                        src, dst = entity_name_of("", parts[0]), entity_name_of("", parts[2])
                        own = digest("mem0 relation", *parts)
                        yield Relation(where, own, src, parts[1], dst)
                    else:
                        lack = "the relation lacks its source, its name or its target"
                        yield Entry(where, Refused(lack))


def _memory_entry(where: str, memory: Fields) -> Entry:
    text, known = memory.text("memory", "data"), memory.text("id", "hash")
    if not text:
        return Entry(where, Refused("the record has no memory"))
    own = memory.fields("metadata")
    draft = Draft(
        text,
        kind=own.line("type") or None,
        tags=tags_of(memory.get("categories") or own.get("category")),
        entities=tuple(filter(None, [entity_name_of("person", memory.get("user_id"))])),
        occurred_at=memory.time("updated_at", "created_at"),
        valid_to=memory.time("expiration_date"),
        metadata=metadata_of({**own.given, **memory.only(*_SCOPE_KEYS, "role")}),
    )
    return Entry(where, draft, id=known or digest("mem0", text), origin=known)


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
            last[row.first("memory_id")] = row
        for memory_id, row in last.items():
            yield from _final_entry(memory_id, row)


def _final_entry(memory_id: str, row: ForeignRow) -> Iterator[Entry]:
    try:
        if row.text("event").upper() == "DELETE" or row.number("is_deleted"):
            return
        draft = Draft(
            row.text("new_memory"),
            speaker=line_of(row.text("role")) or None,
            occurred_at=time_of(row.text("updated_at")) or time_of(row.text("created_at")),
            metadata=metadata_of({"actor_id": row.text("actor_id")}),
        )
    except Refused as refused:
        yield Entry(row.where, refused)
        return
    if draft.text and memory_id:
        yield Entry(row.where, draft, id=memory_id, origin=memory_id)
    else:
        yield Entry(row.where, Refused("the record has no memory"))


_SPOKEN_ROLES = ("user", "assistant")


class Letta(Reader):
    """One agent file, or a list of passages.

    A memory block becomes an item, a message of the user or the agent a raw memory. System
    prompts, tools and their calls are no memories.
    """

    def entries(self) -> Iterator[Entry]:
        """Yield the blocks, then the messages of every agent, or the passages."""
        with open_decompressed(self._path) as file:
            for number, found in json_elements(file):
                agent = Fields(decoded_json(found))
                if isinstance(found, Refused):
                    yield Entry(f"element {number}", found)
                elif is_letta_agent(agent):
                    yield from _letta_agent(agent, self._path.stem)
                else:
                    yield _passage_entry(f"passage {number}", Fields(found))


def is_letta_agent(whole: Fields) -> bool:
    """Whether JSON is an agent file, of the present or the first version."""
    present = whole.has_list("agents") and whole.has_list("blocks")
    return present or (whole.has_list("core_memory") and "messages" in whole)


def is_letta_passage(passage: Fields) -> bool:
    """Whether JSON is a passage of Letta's archival memory."""
    owner = {"archive_id", "agent_id", "source_id", "embedding_config"} & passage.given.keys()
    return isinstance(passage.get("text"), str) and bool(owner) and "id" in passage


def _letta_agent(whole: Fields, name: str) -> Iterator[Entry]:
    labels: Counter[str] = Counter()  # agents may have blocks of the same label
    blocks = (*whole.each("blocks"), *whole.each("core_memory"))
    for number, block in enumerate(blocks, start=1):
        label, text = block.line("label") or "block", block.text("value")
        if not text:
            continue
        draft = Draft(
            f"{label}: {text}",
            kind="preference" if label == "human" else None,
            tags=(label,),
            occurred_at=block.time("updated_at", "created_at"),
            metadata=metadata_of(block.only("description")),
            force=True,
        )
        labels[label] += 1
        known = digest("letta", name, label, str(labels[label]))
        yield from _in_parts(Entry(f"block {number}", draft, known))
    for place, agent in enumerate(whole.each("agents") or [whole], start=1):
        called = agent.line("name") or name
        for number, message in enumerate(agent.each("messages"), start=1):
            yield from _letta_message(f"agent {place}, message {number}", message, called, number)


def _letta_message(where: str, message: Fields, agent: str, number: int) -> Iterator[Entry]:
    role, text = message.line("role"), _message_text(message)
    if role not in _SPOKEN_ROLES or not text:
        return
    at, session = message.time("created_at"), f"letta:{agent}"[:200]
    draft = Draft(text, level="raw", speaker=role, session=session, seq=number, occurred_at=at)
    known = f"{at.isoformat()} {role} {text}" if at else f"{number} {text}"
    own = digest("letta", agent, known)
    yield from _in_parts(Entry(where, draft, own, origin=message.text("id")))


def _in_parts(entry: Entry) -> Iterator[Entry]:
    """Yield an entry, in parts where its text is too long for one memory."""
    if isinstance(entry.found, Refused):
        yield entry
        return
    for number, text in enumerate(split_text(entry.found.text)):
        own = digest(entry.id, str(number)) if number else entry.id
        yield entry._replace(found=entry.found._replace(text=text), id=own)


def _message_text(message: Fields) -> str:
    """Return what was said: the content, or what the tool ``send_message`` was called with."""
    name = "content" if "content" in message else "text"
    parts = [part.text("text") for part in message.each(name)]
    said = message.text(name) or "\n".join(filter(None, parts))
    for call in message.each("tool_calls"):
        function = call.fields("function")
        if function.get("name") == "send_message":
            said = Fields(decoded_json(function.get("arguments"))).text("message") or said
    packed = Fields(decoded_json(said))
    kind = packed.get("type")
    if kind in ("heartbeat", "login", "system_alert"):
        return ""  # events of the server, in the role of the user
    return packed.text("message") if kind == "user_message" else said


def _passage_entry(where: str, passage: Fields) -> Entry:
    text, known = passage.text("text"), passage.text("id")
    if not text:
        return Entry(where, Refused("the passage has no text"))
    draft = Draft(
        text,
        tags=tags_of(passage.get("tags")),
        occurred_at=passage.time("created_at"),
        metadata=metadata_of(passage.fields("metadata").given),
    )
    return Entry(where, draft, id=known or digest("letta passage", text), origin=known)


_ZEP_LISTS = ("edges", "nodes", "episodes", "messages")
_ZEP_ORDER = ("refused", "episode", "node", "edge")


class _ZepRecord(NamedTuple):
    """A record of a graph: what it is, where it stands, its fields or why it has none."""

    kind: str
    where: str
    fields: Fields
    refused: Refused | None = None


class Zep(Reader):
    """What Zep or Graphiti return of a graph: edges, nodes and episodes.

    An object with these lists, or one list of either. An edge becomes a fact with its time
    of validity and an edge between entities, a node's summary an item, an episode or a
    message a raw memory.
    """

    def entries(self) -> Iterator[Entry]:
        """Yield episodes, then the nodes, then the facts derived from both."""
        records = list(self._records())
        names = _node_names(records)
        for kind, where, fields, refused in sorted(
            records, key=lambda one: _ZEP_ORDER.index(one.kind)
        ):
            if refused is not None:
                yield Entry(where, refused)
            elif kind == "edge":
                yield _fact_entry(where, fields, _ends(fields, names))
            elif kind == "node":
                yield from _node_entry(where, fields)
            else:
                yield from _in_parts(_episode_entry(where, fields))

    def links(self) -> Iterator[SourceLink]:
        """Yield an edge between entities, and from each fact to its episodes."""
        records = list(self._records())
        names = _node_names(records)
        for kind, where, edge, _ in records:
            known = edge.text("uuid")
            if kind != "edge" or not known:
                continue
            src, dst = _ends(edge, names)
            relation = edge.line("name").lower()
            if src and dst and relation:
                yield from Relation(where, known, src, relation, dst).link()
            for episode in edge.array("episodes", "episode_uuids"):
                if isinstance(episode, str):
                    yield item_link(known, "derives_from", episode, where, 1.0)

    def _records(self) -> Iterator[_ZepRecord]:
        with open_decompressed(self._path) as file:
            for number, found in json_elements(file):
                where, whole = f"element {number}", Fields(found)
                if isinstance(found, Refused):
                    yield _ZepRecord("refused", where, whole, found)
                    continue
                listed = [name for name in _ZEP_LISTS if whole.has_list(name)]
                if not listed:
                    yield _ZepRecord(zep_kind(whole) or "episode", where, whole)
                for name in listed:
                    for place, one in enumerate(whole.each(name), start=1):
                        yield _ZepRecord(zep_kind(one) or "episode", f"{name} {place}", one)


def _node_names(records: list[_ZepRecord]) -> dict[str, str]:
    nodes = (record.fields for record in records if record.kind == "node")
    return {node.text("uuid"): _node_name(node) for node in nodes}


def _ends(edge: Fields, names: dict[str, str]) -> tuple[str, str]:
    src, dst = (
        names.get(edge.text(f"{end}_node_uuid")) or entity_name_of("", edge.get(f"{end}_node_name"))
        for end in ("source", "target")
    )
    return src, dst


def zep_kind(record: Fields) -> str:
    """Return what a record of Zep is: an edge, a node or an episode; empty if it is none."""
    if isinstance(record.get("fact"), str) and (
        "source_node_uuid" in record or "valid_at" in record
    ):
        return "edge"
    if "uuid" not in record:
        return ""
    if isinstance(record.get("content"), str):
        return "episode"
    return "node" if isinstance(record.get("name"), str) and "summary" in record else ""


def is_zep(whole: Fields) -> bool:
    """Whether JSON is a graph of Zep or Graphiti, or a record of one."""
    first = (one for name in _ZEP_LISTS for one in whole.each(name)[:1])
    return bool(zep_kind(whole)) or any(map(zep_kind, first))


def _node_name(node: Fields) -> str:
    labels = map(line_of, node.array("labels"))
    kind = next((label for label in labels if label.lower() != "entity"), "")
    return entity_name_of(kind, node.get("name"))


def _fact_entry(where: str, edge: Fields, ends: tuple[str, str]) -> Entry:
    known = edge.text("uuid")
    draft = Draft(
        edge.text("fact"),
        kind="fact",
        entities=tuple(dict.fromkeys(filter(None, ends))),
        occurred_at=edge.time("valid_at", "created_at"),
        valid_from=edge.time("valid_at"),
        valid_to=edge.time("invalid_at", "expired_at"),
        metadata=metadata_of({"relation": edge.get("name")}),
    )
    return Entry(where, draft, id=known or digest("zep", draft.text), origin=known)


def _node_entry(where: str, node: Fields) -> Iterator[Entry]:
    name, summary = node.line("name"), node.text("summary")
    if name and summary:
        draft = Draft(
            f"{name}: {summary}",
            entities=tuple(filter(None, [_node_name(node)])),
            occurred_at=node.time("created_at"),
        )
        known = node.text("uuid")
        yield Entry(where, draft, id=known or digest("zep node", name), origin=known)


def _episode_entry(where: str, episode: Fields) -> Entry:
    known, text = episode.text("uuid"), episode.text("content")
    if not text:
        return Entry(where, Refused("it is no edge, node or episode"))
    speaker = episode.line("name") if episode.get("role") else ""
    session = line_of(episode.get("thread_id") or episode.get("session_id"))
    draft = Draft(
        text,
        level="raw",
        speaker=speaker or line_of(episode.get("role") or episode.get("role_type")) or None,
        session=f"zep:{session}" if session else None,
        occurred_at=episode.time("valid_at", "created_at"),
        metadata=metadata_of({"description": episode.get("source_description")}),
    )
    return Entry(where, draft, id=known or digest("zep", text), origin=known)
