"""What other tools keep, made small: a file, a folder or a database of each kind."""

from __future__ import annotations

import json
import sqlite3
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import foreign_systems

Maker = Callable[[Path], Path]


def jsonl(path: Path, *records: object) -> Path:
    path.write_text("".join(f"{json.dumps(one)}\n" for one in records), encoding="utf-8")
    return path


# --- The reference MCP memory server -----------------------------------------------------

GRAPH: list[dict[str, Any]] = [
    {"type": "entity", "name": "Mara_Lind", "entityType": "person",
     "observations": ["Prefers tea to coffee", "Leads the harbour project"]},
    {"type": "entity", "name": "Harbour", "entityType": "project",
     "observations": ["Ships in the second week of May"]},
    {"type": "entity", "name": "Tidewater GmbH", "entityType": "organization", "observations": []},
    {"type": "relation", "from": "Mara_Lind", "to": "Harbour", "relationType": "leads"},
    {"type": "relation", "from": "Mara_Lind", "to": "Tidewater GmbH", "relationType": "works at"},
]  # fmt: skip


def mcp_memory(folder: Path, records: list[dict[str, Any]] = GRAPH) -> Path:
    return jsonl(folder / "memory.jsonl", *records)


# --- Mem0 ------------------------------------------------------------------------------------

MEMORIES: list[dict[str, Any]] = [
    {"id": "7f1c2a54-0000-4000-8000-000000000001", "memory": "Is allergic to walnuts",
     "hash": "a1", "user_id": "ines", "categories": ["health"], "metadata": {"type": "profile"},
     "created_at": "2026-02-01T09:00:00-08:00", "updated_at": None},
    {"id": "7f1c2a54-0000-4000-8000-000000000002", "memory": "Is learning the cello",
     "hash": "b2", "user_id": "ines", "metadata": None,
     "created_at": "2026-03-05T10:00:00+00:00", "updated_at": "2026-03-06T10:00:00+00:00"},
]  # fmt: skip
RELATIONS = [{"source": "ines", "relationship": "plays", "target": "cello"}]


def mem0(folder: Path, memories: list[dict[str, Any]] = MEMORIES) -> Path:
    path = folder / "mem0.json"
    path.write_text(json.dumps({"results": memories, "relations": RELATIONS}), encoding="utf-8")
    return path


def mem0_history(folder: Path) -> Path:
    path = folder / "history.db"
    rows = [
        ("h1", "m1", None, "Keeps bees on the roof", "ADD", "2026-01-01T08:00:00", None, 0),
        ("h2", "m2", None, "Rides to work", "ADD", "2026-01-02T08:00:00", None, 0),
        ("h3", "m1", "Keeps bees on the roof", "Keeps two hives on the roof", "UPDATE",
         "2026-01-01T08:00:00", "2026-02-01T08:00:00", 0),
        ("h4", "m2", "Rides to work", None, "DELETE", "2026-01-02T08:00:00",
         "2026-02-03T08:00:00", 1),
    ]  # fmt: skip
    with database(path) as db:
        db.execute(
            "CREATE TABLE history (id TEXT PRIMARY KEY, memory_id TEXT, old_memory TEXT, "
            "new_memory TEXT, event TEXT, created_at DATETIME, updated_at DATETIME, "
            "is_deleted INTEGER, actor_id TEXT, role TEXT)"
        )
        db.executemany("INSERT INTO history VALUES (?,?,?,?,?,?,?,?,NULL,'user')", rows)
    return path


class database:  # noqa: N801  a plain context manager that also closes
    """A SQLite database of another program, written as that program would."""

    def __init__(self, path: Path, *, wal: bool = False) -> None:
        self._db = sqlite3.connect(path, isolation_level=None)
        if wal:
            self._db.execute("PRAGMA journal_mode=WAL")

    def __enter__(self) -> sqlite3.Connection:
        self._db.execute("BEGIN")
        return self._db

    def __exit__(self, *_: object) -> None:
        self._db.execute("COMMIT")
        self._db.close()


# --- Remind ------------------------------------------------------------------------------------

EPISODES: list[dict[str, Any]] = [
    {"id": "e1a2b3c4", "content": "Chose JWT for the login after comparing it with sessions",
     "episode_type": "decision", "title": "Login by JWT", "confidence": 0.9, "topic_id": "auth",
     "entity_ids": ["person:alice", "subject:login"], "created_at": "2026-04-01T09:00:00",
     "metadata": {"ticket": "AUTH-7"}},
    {"id": "e5d6e7f8", "content": "Tokens of a week were stolen in the red-team exercise",
     "episode_type": "observation", "entity_ids": ["subject:login"],
     "created_at": "2026-04-09T09:00:00"},
    {"id": "e0000000", "content": "Was deleted", "created_at": "2026-04-01T09:00:00",
     "deleted_at": "2026-04-02T09:00:00"},
]  # fmt: skip
CONCEPTS: list[dict[str, Any]] = [
    {"id": "c1", "title": "Short-lived tokens", "summary": "Tokens live for an hour at most",
     "confidence": 0.8, "source_episodes": ["e1a2b3c4", "e5d6e7f8"], "tags": ["security"],
     "conditions": "for anything a person logs in to", "exceptions": ["service accounts"],
     "updated_at": "2026-04-10T09:00:00", "concept_type": "pattern"},
    {"id": "c2", "title": "Long-lived tokens", "summary": "Tokens live for a week",
     "confidence": 0.4, "source_episodes": ["e1a2b3c4"], "created_at": "2026-04-02T09:00:00"},
]  # fmt: skip


def remind(
    folder: Path,
    episodes: list[dict[str, Any]] = EPISODES,
    concepts: list[dict[str, Any]] = CONCEPTS,
) -> Path:
    path = folder / "remind.db"
    with database(path) as db:
        db.execute("CREATE TABLE concepts (id TEXT PRIMARY KEY, title TEXT, summary TEXT, "
                   "data JSON NOT NULL, embedding BLOB, created_at TIMESTAMP, "
                   "updated_at TIMESTAMP)")  # fmt: skip
        db.execute("CREATE TABLE episodes (id TEXT PRIMARY KEY, title TEXT, content TEXT, "
                   "data JSON NOT NULL, consolidated BOOLEAN, timestamp TIMESTAMP)")  # fmt: skip
        db.execute("CREATE TABLE relations (source_id TEXT, target_id TEXT, type TEXT, "
                   "strength REAL, context TEXT, PRIMARY KEY (source_id, target_id, type))")  # fmt: skip
        db.execute("CREATE TABLE entity_relations (source_id TEXT, target_id TEXT, "
                   "relation_type TEXT, strength REAL, context TEXT, source_episode_id TEXT, "
                   "created_at TIMESTAMP)")  # fmt: skip
        db.execute("CREATE TABLE topics (id TEXT PRIMARY KEY, name TEXT, description TEXT)")
        for one in episodes:
            db.execute("INSERT INTO episodes (id, content, data) VALUES (?, ?, ?)",
                       (one["id"], one.get("content"), json.dumps(one)))  # fmt: skip
        for one in concepts:
            db.execute("INSERT INTO concepts (id, title, summary, data) VALUES (?, ?, ?, ?)",
                       (one["id"], one.get("title"), one.get("summary"), json.dumps(one)))  # fmt: skip
        db.execute("INSERT INTO relations VALUES ('c1', 'c2', 'supersedes', 0.9, NULL)")
        db.execute("INSERT INTO relations VALUES ('c1', 'c2', 'contradicts', 0.7, 'how long')")
        db.execute("INSERT INTO relations VALUES ('c1', 'gone', 'implies', 0.7, NULL)")
        db.execute("INSERT INTO entity_relations VALUES ('person:alice', 'subject:login', "
                   "'maintains', 0.8, NULL, 'e1a2b3c4', '2026-04-01T09:00:00')")  # fmt: skip
        db.execute("INSERT INTO topics VALUES ('auth', 'Authentication', NULL)")
    return path


CONCEPT_RELATIONS: list[dict[str, Any]] = [
    {"source_id": "c1", "target_id": "c2", "type": "supersedes", "strength": 0.9},
]
FACTS: list[dict[str, Any]] = [
    {"id": "f1", "statement": "Tokens live for a week", "entity_ids": '["subject:login"]',
     "valid_from": "2026-04-01T09:00:00", "valid_to": "2026-04-10T09:00:00",
     "superseded_by": "f2", "created_at": "2026-04-01T09:00:00"},
    {"id": "f2", "statement": "Tokens live for an hour", "entity_ids": "[]",
     "valid_from": "2026-04-10T09:00:00", "created_at": "2026-04-10T09:00:00"},
]  # fmt: skip
_EDGE = {"source_id": "person:alice", "target_id": "subject:login", "relation_type": "maintains",
         "strength": 0.8, "created_at": "2026-04-01T09:00:00"}  # fmt: skip


def remind_export(folder: Path) -> Path:
    """What `remind export` of version 0.14 writes: the tables as records, and old views."""
    path = folder / "remind-export.json"
    records = {
        "concepts": [{"id": one["id"], "data": one, "deleted_at": None} for one in CONCEPTS],
        "episodes": [{"id": one["id"], "data": one, "deleted_at": None} for one in EPISODES],
        "facts": FACTS,
        "relations": CONCEPT_RELATIONS,
        "entity_relations": [_EDGE],
        "entities": [{"id": "tool:postgres", "type": "tool", "data": {"id": "tool:postgres"}}],
        "labels": [],
        "events": [],
    }
    views = {"concepts": CONCEPTS, "episodes": EPISODES, "entities": []}
    whole = {"version": 4, "mode": "portable", "records": records, **views}
    path.write_text(json.dumps(whole, indent=2))
    return path


def remind_folder(folder: Path) -> Path:
    """The folder that Remind 0.14 keeps: one file for every record, sorted keys."""
    memory = folder / ".remind" / "memory"
    tables: dict[str, list[dict[str, Any]]] = {
        "concepts": [{**CONCEPTS[0], "relations": [
            {"type": "supersedes", "target_id": "c2", "strength": 0.9, "context": None}
        ]}, CONCEPTS[1]],
        "episodes": EPISODES,
        "facts": FACTS,
        "entity_relations": [_EDGE],
    }  # fmt: skip
    for table, rows in tables.items():
        (memory / table).mkdir(parents=True)
        for number, row in enumerate(rows):
            wrapped = {"kind": table, "record": row, "version": 4}
            (memory / table / f"{row.get('id', number)}.json").write_text(
                json.dumps(wrapped, indent=2, sort_keys=True)
            )
    (memory / "schema.json").write_text('{\n  "version": 4\n}\n')
    return folder


# --- claude-mem --------------------------------------------------------------------------------

OBSERVATIONS = [
    (1, "mem-1", "atlas", "bugfix", "Retry loop in the importer", "It never gave up",
     '["The loop had no limit", "Now it stops after five tries"]',
     "The importer asked a dead server forever.", '["reliability"]', "[]",
     '["src/importer.py"]', 1_767_225_600_000),
    (2, "mem-1", "atlas", "decision", "Timeouts are in seconds", None, "[]",
     "Milliseconds had been mixed up twice.", "[]", '["docs/style.md"]', "[]",
     1_767_225_700_000),
]  # fmt: skip


def claude_mem(folder: Path, observations: list[tuple[Any, ...]] = OBSERVATIONS, *,
               wal: bool = False) -> Path:  # fmt: skip
    path = folder / "claude-mem.db"
    with database(path, wal=wal) as db:
        db.execute("CREATE TABLE schema_versions (id INTEGER PRIMARY KEY, version INTEGER)")
        db.execute("CREATE TABLE sdk_sessions (id INTEGER PRIMARY KEY, content_session_id TEXT, "
                   "memory_session_id TEXT, project TEXT, started_at_epoch INTEGER)")  # fmt: skip
        db.execute("CREATE TABLE observations (id INTEGER PRIMARY KEY, memory_session_id TEXT, "
                   "project TEXT, text TEXT, type TEXT, title TEXT, subtitle TEXT, facts TEXT, "
                   "narrative TEXT, concepts TEXT, files_read TEXT, files_modified TEXT, "
                   "prompt_number INTEGER, created_at TEXT, created_at_epoch INTEGER)")  # fmt: skip
        db.execute("CREATE TABLE session_summaries (id INTEGER PRIMARY KEY, "
                   "memory_session_id TEXT, project TEXT, request TEXT, investigated TEXT, "
                   "learned TEXT, completed TEXT, next_steps TEXT, notes TEXT, created_at TEXT, "
                   "created_at_epoch INTEGER)")  # fmt: skip
        db.execute("CREATE TABLE user_prompts (id INTEGER PRIMARY KEY, content_session_id TEXT, "
                   "prompt_number INTEGER, prompt_text TEXT, created_at TEXT, "
                   "created_at_epoch INTEGER)")  # fmt: skip
        db.execute("INSERT INTO sdk_sessions VALUES (1, 'ses-1', 'mem-1', 'atlas', 1767225500000)")
        db.executemany("INSERT INTO observations (id, memory_session_id, project, type, title, "
                       "subtitle, facts, narrative, concepts, files_read, files_modified, "
                       "created_at_epoch) VALUES (?,?,?,?,?,?,?,?,?,?,?,?)", observations)  # fmt: skip
        db.execute("INSERT INTO session_summaries VALUES (1, 'mem-1', 'atlas', "
                   "'Why does the importer hang?', 'The retry loop', 'Loops need limits', "
                   "'A limit of five', NULL, NULL, '2026-01-01T00:10:00Z', 1767226200000)")  # fmt: skip
        db.execute("INSERT INTO user_prompts VALUES (1, 'ses-1', 1, 'why does the importer hang', "
                   "'2026-01-01T00:00:00Z', 1767225600000)")  # fmt: skip
    return path


# --- basic-memory, Markdown --------------------------------------------------------------------


def logseq(folder: Path) -> Path:
    root = folder / "graph"
    for name in ("logseq", "pages", "journals"):
        (root / name).mkdir(parents=True)
    (root / "logseq" / "config.edn").write_text("{}")
    (root / "pages" / "Pour Over.md").write_text(
        "type:: method\n\n- Water at 94 degrees keeps the cup sweet #coffee\n  id:: 6512-ab\n"
        "\t- with light roasts of [[Ana]]\n- Rinse the paper first\n"
    )
    (root / "journals" / "2026_01_05.md").write_text("- Bought filters\n")
    return root


def basic_memory(folder: Path) -> Path:
    root = folder / "basic"
    (root / "brewing").mkdir(parents=True)
    (root / "brewing" / "pour-over.md").write_text(
        "---\ntitle: Pour Over\ntype: note\npermalink: brewing/pour-over\n"
        "tags:\n- coffee\n- brewing\ncreated: 2026-01-05\n---\n\n# Pour Over\n\n"
        "A slow way to make two cups.\n\n## Observations\n"
        "- [method] Water at 94 degrees keeps the cup sweet #temperature (light roasts)\n"
        "- [tip] Rinse the paper first\n- [ ] buy filters\n\n## Relations\n"
        "- pairs_with [[Burr Grinder]]\n- part_of [[Morning Routine]] (weekdays)\n",
        encoding="utf-8",
    )
    (root / "burr-grinder.md").write_text(
        "---\ntitle: Burr Grinder\ntype: gear\npermalink: burr-grinder\n---\n"
        "- [spec] Grinds forty grams a minute\n- made_by [[Kelvin Works]]\n",
        encoding="utf-8",
    )
    return root


def markdown(folder: Path) -> Path:
    root = folder / "vault"
    (root / "journal").mkdir(parents=True)
    (root / "journal" / "2026-03-14.md").write_text(
        "Walked along the estuary.\n\n## Work\nMet Ana about [[Pump Station]] repairs #field\n",
        encoding="utf-8",
    )
    (root / "Pump Station.md").write_text(
        "---\ntitle: Pump Station\naliases: [the pumps]\ntags: [infrastructure]\n---\n"
        "# Pump Station\n\nTwo pumps, one of them spare.\n\n## Access\n\n"
        "The key hangs in the office, see [the day we met](journal/2026-03-14.md).\n\n"
        "```sh\n# this is no heading\npump --status\n```\n",
        encoding="utf-8",
    )
    return root


# --- Chats -------------------------------------------------------------------------------------


def _node(
    name: str, parent: str | None, role: str, parts: list[Any], **more: Any
) -> dict[str, Any]:
    kind = more.pop("content_type", "text")
    message = {"id": name, "author": {"role": role}, "create_time": 1_770_000_000.5,
               "content": {"content_type": kind, "parts": parts}, "recipient": "all",
               **more}  # fmt: skip
    return {"id": name, "parent": parent, "children": [], "message": message}


def chatgpt_conversations() -> list[dict[str, Any]]:
    nodes = [
        {"id": "root", "parent": None, "children": ["sys"], "message": None},
        _node("sys", "root", "system", [""]),
        _node("q1", "sys", "user", ["How long do I boil an egg at 2,000 metres?"]),
        _node("old", "q1", "assistant", ["Three minutes."]),
        _node("a1", "q1", "assistant", ["About two minutes longer than at sea level."]),
        _node("tool", "a1", "tool", ["{}"]),
        _node("q2", "tool", "user",
              [{"content_type": "image_asset_pointer", "asset_pointer": "file-1"}, "And this one?"],
              content_type="multimodal_text"),
        _node("a2", "q2", "assistant", ["That is a quail's egg: one minute less."]),
    ]  # fmt: skip
    chat = {"title": "Eggs at altitude", "create_time": 1_770_000_000.0, "current_node": "a2",
            "conversation_id": "conv-eggs", "mapping": {one["id"]: one for one in nodes}}  # fmt: skip
    return [chat]


def chatgpt(folder: Path, conversations: list[dict[str, Any]] | None = None) -> Path:
    path = folder / "chatgpt.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("user.json", "{}")
        chats = chatgpt_conversations() if conversations is None else conversations
        archive.writestr("conversations.json", json.dumps(chats))
    return path


def claude_conversations() -> list[dict[str, Any]]:
    return [
        {
            "uuid": "c0ffee00-0000-4000-8000-000000000001",
            "name": "Reading list",
            "created_at": "2026-05-01T08:00:00Z",
            "updated_at": "2026-05-01T08:05:00Z",
            "chat_messages": [
                {"uuid": "m1", "sender": "human", "text": "Which book on rivers first?",
                 "created_at": "2026-05-01T08:00:00.120000Z",
                 "content": [{"type": "text", "text": "Which book on rivers first?"}],
                 "attachments": [{"file_name": "shelf.txt", "extracted_content": "secret"}]},
                {"uuid": "m2", "sender": "assistant", "text": "",
                 "created_at": "2026-05-01T08:00:09Z",
                 "content": [{"type": "thinking", "thinking": "hm"},
                             {"type": "text", "text": "The one about the Danube."}]},
            ],
        }
    ]  # fmt: skip


def claude(folder: Path) -> Path:
    path = folder / "conversations.json"
    path.write_text(json.dumps(claude_conversations(), indent=1), encoding="utf-8")
    return path


TRANSCRIPT: list[dict[str, Any]] = [
    {"type": "summary", "summary": "Fix the gauge", "leafUuid": "u3"},
    {"type": "user", "uuid": "u1", "parentUuid": None, "sessionId": "ses-9", "cwd": "/srv/gauge",
     "timestamp": "2026-06-01T10:00:00.000Z", "isSidechain": False,
     "message": {"role": "user", "content": "The gauge reads ten centimetres too high"}},
    {"type": "assistant", "uuid": "u2", "parentUuid": "u1", "sessionId": "ses-9",
     "cwd": "/srv/gauge", "timestamp": "2026-06-01T10:01:00.000Z", "isSidechain": False,
     "message": {"role": "assistant", "content": [
         {"type": "text", "text": "The offset was applied twice; I removed one of them."}]}},
]  # fmt: skip


def claude_code(folder: Path) -> Path:
    root = folder / "projects"
    (root / "-srv-gauge").mkdir(parents=True)
    jsonl(root / "-srv-gauge" / "ses-9.jsonl", *TRANSCRIPT)
    jsonl(root / "-srv-gauge" / "agent-1.jsonl", *TRANSCRIPT)
    return root


MAKERS: dict[str, Maker] = {
    "mcp-memory": mcp_memory,
    "mem0": mem0,
    "remind": remind,
    "linksee": foreign_systems.linksee,
    "abmind": foreign_systems.abmind,
    "siftcoder": foreign_systems.siftcoder,
    "memind": foreign_systems.memind,
    "claude-mem": claude_mem,
    "basic-memory": basic_memory,
    "logseq": logseq,
    "claude-code": claude_code,
    "chatgpt": chatgpt,
    "claude": claude,
    "markdown": markdown,
}
