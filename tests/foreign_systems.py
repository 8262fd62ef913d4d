"""Small databases of linksee, abmind, siftcoder and Memind, in their own schemas."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path
from typing import Any

MARCH = 1_772_442_000  # 2026-03-02 09:00 UTC


def fill(path: Path, schema: str, **tables: list[dict[str, Any]]) -> Path:
    """Write a database with these tables and rows."""
    db = sqlite3.connect(path)
    with db:
        db.executescript(schema)
        for table, rows in tables.items():
            for row in filter(None, rows):
                marks = ", ".join("?" * len(row))
                sql = f"INSERT OR IGNORE INTO {table} ({', '.join(row)}) VALUES ({marks})"
                db.execute(sql, list(row.values()))
    db.close()
    return path


_LINKSEE = """
CREATE TABLE entities (id INTEGER PRIMARY KEY AUTOINCREMENT, kind TEXT NOT NULL, name TEXT NOT NULL,
    canonical_key TEXT UNIQUE, attributes TEXT, momentum_score REAL NOT NULL DEFAULT 0.0,
    momentum_at INTEGER, created_at INTEGER NOT NULL DEFAULT 1772442000,
    updated_at INTEGER NOT NULL DEFAULT 1772442000);
CREATE TABLE memories (id INTEGER PRIMARY KEY AUTOINCREMENT, entity_id INTEGER NOT NULL,
    layer TEXT NOT NULL, content TEXT NOT NULL, importance REAL NOT NULL DEFAULT 0.5,
    protected INTEGER NOT NULL DEFAULT 0, source TEXT, thread_id TEXT,
    created_at INTEGER NOT NULL DEFAULT 1772442000,
    last_accessed_at INTEGER NOT NULL DEFAULT 1772442000, access_count INTEGER NOT NULL DEFAULT 0,
    altitude TEXT GENERATED ALWAYS AS (CASE WHEN json_valid(content)
        THEN json_extract(content, '$.altitude') END) VIRTUAL);
CREATE TABLE edges (id INTEGER PRIMARY KEY, from_id INTEGER, to_id INTEGER, relation TEXT,
    weight REAL NOT NULL DEFAULT 1.0, attributes TEXT, created_at INTEGER DEFAULT 1772442000);
CREATE TABLE memory_edges (id INTEGER PRIMARY KEY, from_memory_id INTEGER, to_memory_id INTEGER,
    relation TEXT, created_at INTEGER);
CREATE TABLE events (id INTEGER PRIMARY KEY, entity_id INTEGER, kind TEXT, payload TEXT);
CREATE TABLE file_snapshots (path TEXT PRIMARY KEY, content_hash TEXT, mtime INTEGER);
CREATE TABLE session_file_edits (id INTEGER PRIMARY KEY, session_id TEXT NOT NULL,
    memory_id INTEGER, file_path TEXT NOT NULL, operation TEXT NOT NULL, turn_uuid TEXT,
    context_snippet TEXT, occurred_at INTEGER NOT NULL);
CREATE TABLE drift_anchors (id INTEGER PRIMARY KEY, kind TEXT, statement TEXT, rationale TEXT,
    affects TEXT DEFAULT '[]', detect_terms TEXT DEFAULT '[]', source_memory_id INTEGER,
    status TEXT DEFAULT 'active', confidence REAL DEFAULT 0.8, created_at INTEGER,
    updated_at INTEGER);
"""
LINKSEE_MEMORIES: list[dict[str, Any]] = [
    {"entity_id": 1, "layer": "caveat", "content": "The pump must not run dry", "importance": 0.95,
     "protected": 1, "access_count": 4, "last_accessed_at": MARCH + 86_400},
    {"entity_id": 1, "layer": "learning", "content": json.dumps(
        {"type": "decision", "title": "Two pumps", "altitude": "architecture"})},
    {"entity_id": 1, "layer": "learning", "content": "One pump is enough"},
    {"entity_id": 2, "layer": "emotion", "content": "Ines was glad about the new valve"},
]  # fmt: skip


def linksee(folder: Path, memories: list[dict[str, Any]] = LINKSEE_MEMORIES) -> Path:
    return fill(
        folder / "memory.db",
        _LINKSEE,
        entities=[
            {"kind": "project", "name": "Pump Station", "canonical_key": "pumps.example.org"},
            {"kind": "person", "name": "Ines Rocha"},
            {"kind": "company", "name": "Tidewater", "attributes": '{"city": "Porto"}'},
        ],
        memories=memories,
        edges=[{"from_id": 2, "to_id": 1, "relation": "maintains", "weight": 0.8}],
        memory_edges=[{"from_memory_id": 2, "to_memory_id": 3, "relation": "supersedes"}],
        session_file_edits=[
            {"session_id": "s-1", "memory_id": 1, "file_path": "/w/pump.ts", "operation": "edit",
             "context_snippet": "keep the pump from running dry", "occurred_at": MARCH + day}
            for day in (0, 86_400)
        ],
        drift_anchors=[
            {"kind": "prohibition", "statement": "No pump starts without water", "affects":
             '["src/pump/**"]', "source_memory_id": 1, "created_at": MARCH, "updated_at": MARCH},
        ],
    )  # fmt: skip


_ABMIND = """
CREATE TABLE messages (id INTEGER PRIMARY KEY AUTOINCREMENT, user_id TEXT NOT NULL,
    session_id TEXT NOT NULL, role TEXT NOT NULL, content TEXT NOT NULL,
    timestamp INTEGER NOT NULL, emotion_score INTEGER DEFAULT 0);
CREATE TABLE extracted_memories (id INTEGER PRIMARY KEY AUTOINCREMENT, user_id TEXT NOT NULL,
    content_original TEXT NOT NULL, content_en TEXT NOT NULL, memory_type TEXT NOT NULL,
    source_timestamp INTEGER NOT NULL, preserve_original INTEGER NOT NULL DEFAULT 0,
    preserved_keyword TEXT, created_at INTEGER NOT NULL, emotion_score INTEGER DEFAULT 0,
    recall_count INTEGER DEFAULT 0, last_recalled_at INTEGER, relevance_score INTEGER DEFAULT 0,
    confidence INTEGER DEFAULT 3, source_message_ids TEXT, classification INTEGER DEFAULT 1,
    trust INTEGER DEFAULT 0, integrity INTEGER DEFAULT 2, credibility INTEGER DEFAULT 6,
    embedding BLOB, emotion_tags TEXT, importance_flags TEXT, emotion_arc TEXT, signature BLOB,
    topic TEXT DEFAULT 'general', tier TEXT DEFAULT 'general', valid_from TEXT, valid_to TEXT,
    emotion_context TEXT, encrypted INTEGER DEFAULT 0, recall_timestamps TEXT DEFAULT '[]',
    created_by TEXT DEFAULT 'unknown');
CREATE TABLE entity_graph (id INTEGER PRIMARY KEY, entity_a TEXT, entity_b TEXT, relation TEXT,
    source_memory_id INTEGER, created_at INTEGER, last_seen_at INTEGER);
CREATE TABLE context_summaries (id INTEGER PRIMARY KEY, chat_id TEXT, depth INTEGER DEFAULT 0,
    content TEXT, classification INTEGER DEFAULT 1, created_at INTEGER);
"""
_DAY_MS = 86_400_000
ABMIND_MEMORIES: list[dict[str, Any]] = [
    {"content_en": "The cellar flooded in spring", "content_original": "Tavasszal elárasztotta a víz a pincét",
     "memory_type": "event", "emotion_score": -4, "emotion_tags": '["fear"]', "importance_flags":
     '["pivot"]', "recall_count": 5, "last_recalled_at": MARCH * 1000 + 9 * _DAY_MS,
     "recall_timestamps": json.dumps([MARCH * 1000 + day * _DAY_MS for day in (1, 9)]),
     "confidence": 4, "classification": 2, "trust": 3, "topic": "house", "tier": "core",
     "source_message_ids": "[1]", "embedding": b"\xff\xfe\x00", "relevance_score": 2},
    {"content_en": "The insurance pays for floods", "content_original":
     "The insurance pays for floods", "memory_type": "fact", "valid_from": "2025-01-01",
     "valid_to": "2026-01-01"},
]  # fmt: skip


def abmind(folder: Path, memories: list[dict[str, Any]] = ABMIND_MEMORIES) -> Path:
    common = {"user_id": "mara", "source_timestamp": MARCH * 1000, "created_at": MARCH * 1000}
    return fill(
        folder / "memory.db",
        _ABMIND,
        messages=[
            {"user_id": "mara", "session_id": "mara:chat", "role": "user",
             "content": "Tavasszal elárasztotta a víz a pincét", "timestamp": MARCH * 1000},
        ],
        extracted_memories=[common | one for one in memories],
        entity_graph=[{"entity_a": "mara", "entity_b": "pince", "relation": "owns",
                       "created_at": MARCH * 1000}],
        context_summaries=[{"chat_id": "c", "content": "We spoke about the flooded cellar",
                            "created_at": MARCH * 1000}],
    )  # fmt: skip


def abmind_folder(folder: Path) -> Path:
    """The whole folder, with consolidated notes."""
    home = folder / ".abmind"
    (home / "memory" / "consolidation" / "daily").mkdir(parents=True)
    abmind(home / "memory")
    note = home / "memory" / "consolidation" / "daily" / "daily_2026-03-02.md"
    note.write_text("# Monday\n\nThe cellar was pumped dry by noon.\n")
    return home


_SIFTCODER = """
CREATE TABLE sessions (id TEXT PRIMARY KEY, started_at INTEGER, cwd TEXT, meta_json TEXT);
CREATE TABLE events (id INTEGER PRIMARY KEY AUTOINCREMENT, ts INTEGER NOT NULL,
    session_id TEXT NOT NULL, tool TEXT NOT NULL, input_hash TEXT NOT NULL,
    payload_json TEXT NOT NULL, status TEXT NOT NULL DEFAULT 'raw',
    tokens_est INTEGER NOT NULL DEFAULT 0, expires_at INTEGER);
CREATE TABLE summaries (id INTEGER PRIMARY KEY AUTOINCREMENT, event_id INTEGER NOT NULL,
    ts INTEGER NOT NULL, model TEXT NOT NULL, prompt_hash TEXT NOT NULL, text TEXT NOT NULL,
    tokens_in INTEGER, tokens_out INTEGER, confidence REAL, pinned_at INTEGER);
CREATE TABLE summary_embeddings (summary_id INTEGER PRIMARY KEY, dim INTEGER, vec BLOB);
CREATE TABLE provenance_edges (id INTEGER PRIMARY KEY, ts INTEGER, from_kind TEXT, from_id TEXT,
    to_kind TEXT, to_id TEXT, edge_type TEXT, confidence REAL DEFAULT 1.0, source TEXT);
CREATE TABLE summary_supersedes (newer_id INTEGER, older_id INTEGER, cosine REAL, ts INTEGER);
"""
SIFTCODER_EVENTS: list[dict[str, Any]] = [
    {"tool": "Edit", "payload_json": json.dumps({"tool_name": "Edit", "tool_input": {
        "file_path": "/w/auth.ts", "old_string": "a", "new_string": "b"}}), "status": "summarized"},
    {"tool": "Bash", "payload_json": json.dumps({"input": {"command": "npm test auth"}})},
    {"tool": "Edit", "payload_json": json.dumps({"tool_input": {"file_path": "/w/auth.ts"}}),
     "status": "summarized"},
]  # fmt: skip


def siftcoder(folder: Path, events: list[dict[str, Any]] = SIFTCODER_EVENTS) -> Path:
    summaries = ["Fixed a null token in auth.ts", "Fixed the null token in auth.ts for good"]
    return fill(
        folder / "db.sqlite",
        _SIFTCODER,
        sessions=[{"id": "s-1", "cwd": "/home/me/harbour"}],
        events=[
            {"ts": MARCH * 1000 + number, "session_id": "s-1", "input_hash": f"h{number}", **one}
            for number, one in enumerate(events)
        ],
        summaries=[
            {"event_id": event, "ts": MARCH * 1000 + event, "model": "ollama", "prompt_hash": "p",
             "text": text, "confidence": 0.7, "pinned_at": MARCH * 1000 if event == 3 else None}
            for event, text in zip((1, 3), summaries, strict=True)
        ],
        provenance_edges=[
            {"ts": 1, "from_kind": "event", "from_id": "2", "to_kind": "event", "to_id": "1",
             "edge_type": "derives_from"},
            {"ts": 1, "from_kind": "event", "from_id": "1", "to_kind": "file", "to_id": "/w/auth.ts",
             "edge_type": "edits"},
        ],
        summary_supersedes=[{"newer_id": 2, "older_id": 1, "cosine": 0.97, "ts": 1}],
    )  # fmt: skip


_OF = """user_id TEXT DEFAULT 'mara', agent_id TEXT DEFAULT 'helper',
    memory_id TEXT DEFAULT 'mara:helper', created_at TEXT DEFAULT '2026-03-02 09:00:00',
    updated_at TEXT DEFAULT '2026-03-03 09:00:00', deleted INTEGER NOT NULL DEFAULT 0"""
_MEMIND = f"""
CREATE TABLE memory_raw_data (id INTEGER PRIMARY KEY, biz_id TEXT, type TEXT, segment TEXT,
    caption TEXT, metadata TEXT, start_time TEXT, end_time TEXT, {_OF});
CREATE TABLE memory_item (id INTEGER PRIMARY KEY, biz_id INTEGER, content TEXT, scope TEXT,
    category TEXT, raw_data_id TEXT, occurred_at TEXT, observed_at TEXT, type TEXT DEFAULT 'FACT',
    metadata TEXT, occurred_start TEXT, occurred_end TEXT, {_OF});
CREATE TABLE memory_insight (id INTEGER PRIMARY KEY, biz_id INTEGER, type TEXT, scope TEXT,
    name TEXT, categories TEXT, content TEXT, points TEXT, group_name TEXT, tier TEXT,
    parent_insight_id INTEGER, child_insight_ids TEXT, version INTEGER DEFAULT 1, {_OF});
CREATE TABLE memory_conversation_buffer (id INTEGER PRIMARY KEY, session_id TEXT, role TEXT,
    content TEXT, user_name TEXT, timestamp TEXT, extracted INTEGER DEFAULT 0, {_OF});
CREATE TABLE memory_graph_entity (id INTEGER PRIMARY KEY, entity_key TEXT, display_name TEXT,
    entity_type TEXT, metadata TEXT, {_OF});
CREATE TABLE memory_item_entity_mention (id INTEGER PRIMARY KEY, item_id INTEGER, entity_key TEXT,
    confidence REAL, {_OF});
CREATE TABLE memory_item_link (id INTEGER PRIMARY KEY, source_item_id INTEGER,
    target_item_id INTEGER, link_type TEXT, strength REAL, {_OF});
CREATE TABLE memory_thread (id INTEGER PRIMARY KEY, memory_id TEXT DEFAULT 'mara:helper',
    thread_key TEXT, thread_type TEXT, anchor_kind TEXT, anchor_key TEXT, display_label TEXT,
    lifecycle_status TEXT, object_state TEXT, headline TEXT, created_at TEXT, updated_at TEXT);
CREATE TABLE memory_thread_event (id INTEGER PRIMARY KEY, memory_id TEXT DEFAULT 'mara:helper',
    thread_key TEXT, event_seq INTEGER, event_type TEXT, event_time TEXT, event_payload_json TEXT,
    is_meaningful INTEGER);
CREATE TABLE memory_thread_membership (id INTEGER PRIMARY KEY,
    memory_id TEXT DEFAULT 'mara:helper', thread_key TEXT, item_id INTEGER, role TEXT,
    relevance_weight REAL);
"""
MEMIND_ITEMS: list[dict[str, Any]] = [
    {"biz_id": 11, "content": "The crane fell on 3 May", "scope": "USER", "category": "event",
     "raw_data_id": "raw-1", "occurred_at": "2026-05-03T10:00:00Z"},
    {"biz_id": 12, "content": "The crane is repaired by Ana", "scope": "AGENT",
     "category": "resolution", "raw_data_id": "raw-1"},
    {"biz_id": 13, "content": "Was deleted", "scope": "USER", "category": "event", "deleted": 1},
]  # fmt: skip


def memind(folder: Path, items: list[dict[str, Any]] = MEMIND_ITEMS) -> Path:
    return fill(
        folder / "memind-server.db",
        _MEMIND,
        memory_raw_data=[
            {"biz_id": "raw-1", "type": "CONVERSATION", "caption": "About the crane", "segment":
             '{"content": "user: the crane fell, Ana repairs it"}', "start_time": "2026-05-03T09:00:00Z"},
        ],
        memory_item=items,
        memory_insight=[
            {"biz_id": 21, "type": "experiences", "scope": "USER", "name": "Cranes", "tier": "LEAF",
             "categories": '["event"]', "parent_insight_id": 22, "points": json.dumps(
                 [{"type": "SUMMARY", "content": "The crane needs care", "sourceItemIds": ["11"]}])},
            {"biz_id": 22, "type": "profile", "scope": "USER", "name": "Work", "tier": "BRANCH",
             "points": '[{"type": "SUMMARY", "content": "Works at the harbour"}]'},
        ],
        memory_conversation_buffer=[
            {"session_id": "s-1", "role": "USER", "content": "Is the crane safe again?"},
            {"session_id": "s-1", "role": "USER", "content": "the crane fell", "extracted": 1},
        ],
        memory_graph_entity=[{"entity_key": "ana", "display_name": "Ana", "entity_type": "person"}],
        memory_item_entity_mention=[{"item_id": 12, "entity_key": "ana", "confidence": 0.9}],
        memory_item_link=[{"source_item_id": 11, "target_item_id": 12, "link_type": "CAUSAL",
                           "strength": 0.8}],
        memory_thread=[{"thread_key": "t", "thread_type": "CASE", "headline": "The fallen crane",
                        "lifecycle_status": "DORMANT", "object_state": "RESOLVED",
                        "created_at": "2026-05-03T09:00:00Z", "updated_at": "2026-05-09T09:00:00Z"}],
        memory_thread_event=[{"thread_key": "t", "event_seq": 1, "event_type": "SETBACK",
                              "event_time": "2026-05-03T10:00:00Z", "is_meaningful": 1,
                              "event_payload_json": '{"itemId": 11}'}],
        memory_thread_membership=[
            {"thread_key": "t", "item_id": 11, "role": "TRIGGER", "relevance_weight": 0.9},
            {"thread_key": "t", "item_id": 12, "role": "OUTCOME", "relevance_weight": 0.7},
        ],
    )  # fmt: skip
