"""Definitions of all tools: the seven default ones, the optional ones, shared schemas."""

from __future__ import annotations

from bethink.core.json_values import Json
from bethink.model import LEVELS, OPERATIONS
from bethink.retrieval.heat import BANDS
from bethink.server.mcp.view import URI
from bethink.server.tools.tool import (
    BOOLEAN,
    DEGRADED_SCHEMA,
    FIELD_ARGUMENTS,
    HIT_SCHEMA,
    INTEGER,
    MEMORY_SCHEMA,
    NOTICE_SCHEMA,
    NUMBER,
    OBJECT,
    RELATION_ARGUMENTS,
    RELATION_LIST,
    SKIPPED_SCHEMA,
    STRING,
    TIDY_ARGUMENTS,
    Tool,
    arguments_schema,
    array_schema,
    boolean_schema,
    integer_schema,
    nullable,
    number_schema,
    object_schema,
    string_list_schema,
    string_schema,
)

ORIGINS = ("agent", "tool", "web")
SNIPPET_CHARS = 300  # characters of a memory that need only be recognised
_ID = string_schema("The memory's id, or a unique part of it.", max_length=200)
_FORCE = boolean_schema("Store it even if it looks like a pasted log.")
_LAYER: Json = FIELD_ARGUMENTS["layer"]

RECALL = Tool(
    "recall",
    "Recall memories",
    "Find memories that answer a question: decisions, facts, preferences, earlier work. "
    "Call it before you start a task and whenever earlier work may matter. Returns the best "
    "match first, each with its id, the reasons it was found and its trust. The status says "
    "whether they answer the question (found) or only may (unsure), or why there are none.",
    arguments_schema(
        {
            "query": string_schema(
                "The question in plain words; optional with a filter.", max_length=8192
            ),
            "entity": string_schema("Only what mentions this person, project, file ..."),
            "kind": string_schema("Only this kind."),
            "layer": _LAYER,
            "band": string_schema("Only what is used this much.", choices=BANDS),
            "topic": string_schema("Only this topic."),
            "tag": string_schema("Only with this tag."),
            "user": string_schema("Only this user's."),
            "since": string_schema("Happened since then: 2026-05-07, or in words.", max_length=100),
            "until": string_schema("Happened before this time.", max_length=100),
            "as_of": string_schema("Answer from what was stored at that time.", max_length=100),
            "k": integer_schema("Maximum number of memories.", 1, 50),
            "episode_k": integer_schema("Maximum episodes, in addition to k.", 0, 50),
            "max_tokens": integer_schema("Maximum tokens of text; default 2000.", 100, 20_000),
            "offset": integer_schema("Skip the first N results.", 0, 100_000),
            "cursor": string_schema("Of an earlier answer: its next page.", max_length=20_000),
            "mark_accessed": {
                "type": "boolean",
                "description": "Record use of what is returned; default: by profile.",
            },
            "profile": string_schema("Name of the profile.", max_length=100),
            "whole": boolean_schema("Show long memories whole."),
            "min_confidence": number_schema("Nothing if less sure; 0 returns all.", 0, 1),
        }
    ),
    object_schema(
        {
            "status": {
                "type": "string",
                "enum": ["found", "unsure", "nothing_matched", "nothing_stored"],
                "description": "unsure: the memories may be related, or not.",
            },
            "reason": STRING,
            "confidence": number_schema(
                "Estimated probability that one of the memories answers the question.", 0, 1
            ),
            "notice": NOTICE_SCHEMA,
            "memories": array_schema(object_schema(HIT_SCHEMA)),
            "returned": INTEGER,
            "left_out": {
                "type": "integer",
                "description": "Number of further results; get them with cursor.",
            },
            "stopped_by": STRING,
            "cursor": nullable(STRING),
            "tokens": INTEGER,
            "captions": array_schema(STRING),
            "warnings": array_schema(STRING),
            "degraded": DEGRADED_SCHEMA,
            "nearest_miss": nullable(
                object_schema(
                    {**MEMORY_SCHEMA, "relevance": nullable(NUMBER), "score": nullable(NUMBER)}
                )
            ),
            "profile": STRING,
        }
    ),
    "bethink.server.tools.recall:recall",
    read_only=True,
    idempotent=True,
    max_text=None,
    view=URI,
)

REMEMBER = Tool(
    "remember",
    "Remember something",
    "Store one memory that will matter later: a decision and its reason, a fact, a preference, "
    "a caveat. One self-contained statement, in words that make sense without this "
    "conversation; not logs, not whole files, not what recall returned. The answer lists "
    "collisions: near-duplicates, and facts that it corrects or contradicts.",
    arguments_schema(
        {
            "text": string_schema("What to remember.", max_length=65_536),
            **FIELD_ARGUMENTS,
            "level": string_schema("raw: a verbatim episode; default item.", choices=LEVELS[:2]),
            "session": string_schema("The conversation it belongs to."),
            "user": string_schema("Whose it is where several users share a space."),
            "relations": RELATION_LIST,
            "origin": string_schema(
                "Where it comes from: agent (you or your user; the default), tool (a program's "
                "output), web (a page or document by others).",
                choices=ORIGINS,
            ),
            "source": string_schema("A path, URL or name of where it comes from.", max_length=500),
            "key": string_schema(
                "Idempotency key: a repeated call stores nothing.", max_length=200
            ),
            "force": _FORCE,
        },
        "text",
    ),
    object_schema(
        {
            "id": STRING,
            "status": {"type": "string", "enum": ["stored", "duplicate", "repeated"]},
            "collisions": array_schema(
                object_schema(
                    {
                        "id": STRING,
                        "kind": STRING,
                        "similarity": NUMBER,
                        "action": STRING,
                        "text": STRING,
                    }
                )
            ),
            "redacted": array_schema(STRING, "Kinds of secrets that were removed."),
            "entities": array_schema(STRING),
            "flags": array_schema(STRING),
            "pending": array_schema(STRING),
        }
    ),
    "bethink.server.tools.write:remember",
    idempotent=True,
)

UPDATE_MEMORY = Tool(
    "update_memory",
    "Correct a memory",
    "Correct a memory: its text or its other fields. The id stays; the old text stays in the "
    "history and can be restored. Prefer this to storing a second version.",
    arguments_schema(
        {
            "id": _ID,
            "text": string_schema("The new text.", max_length=65_536),
            **FIELD_ARGUMENTS,
            "force": _FORCE,
        },
        "id",
    ),
    object_schema(
        {
            "id": STRING,
            "rev": INTEGER,
            "changed": array_schema(STRING),
            "notice": NOTICE_SCHEMA,
            "memory": object_schema(MEMORY_SCHEMA),
        }
    ),
    "bethink.server.tools.write:update_memory",
    idempotent=True,
)

FORGET = Tool(
    "forget",
    "Forget memories",
    "Remove memories from recall, in two steps. First call it with ids (or sweep): nothing "
    "changes, and the answer shows a preview and a token. Show the preview to the user. Then "
    "call it again with the same arguments and the token. Forgotten memories can be restored, "
    "erased ones cannot.",
    arguments_schema(
        {
            "ids": string_list_schema("Ids of the memories.", max_items=100),
            "sweep": boolean_schema(
                "Instead of ids: all memories that are long unused and unimportant."
            ),
            "erase": boolean_schema(
                "Delete them permanently; cannot be undone. Only if the user asks for it."
            ),
            "token": string_schema("The token of the preview: apply it now.", max_length=64),
            "reason": string_schema("Reason to record in the journal.", max_length=200),
            **TIDY_ARGUMENTS,
        }
    ),
    object_schema(
        {
            "done": BOOLEAN,
            "token": nullable(STRING),
            "notice": NOTICE_SCHEMA,
            "memories": array_schema(object_schema({"id": STRING, "text": nullable(STRING)})),
            "kept": array_schema(object_schema({"id": STRING, "reason": STRING})),
            "derived": array_schema(STRING, "Derived from them; erased with them."),
            "quarantined": array_schema(STRING, "Derived from them and others; quarantined."),
            "restored": array_schema(
                STRING, "Restored, because the memory that replaced them goes."
            ),
            "run": nullable(STRING),
            "left_out": {
                "type": "integer",
                "description": "Number of memories of a sweep that are not shown.",
            },
            "left": SKIPPED_SCHEMA,
            "out_of_reach": array_schema(STRING, "Places where copies may remain."),
        }
    ),
    "bethink.server.tools.write:forget",
    destructive=True,
    max_text=SNIPPET_CHARS,
)

LIST_ENTITIES = Tool(
    "list_entities",
    "List entities",
    "List the entities that memories mention (people, projects, tools, files ...), the most "
    "active first.",
    arguments_schema(
        {
            "prefix": string_schema("Only names with this prefix.", max_length=200),
            "kind": string_schema(
                "Only this kind: person, project, tool, file, concept ...", max_length=100
            ),
            "min_memories": integer_schema("Mentioned by at least this many memories.", 0, 100_000),
            "limit": integer_schema("Maximum number of results; default 30.", 1, 200),
            "offset": integer_schema("Skip the first N results.", 0, 100_000),
        }
    ),
    object_schema(
        {
            "notice": NOTICE_SCHEMA,
            "entities": array_schema(
                object_schema(
                    {
                        "id": STRING,
                        "kind": STRING,
                        "name": STRING,
                        "aliases": array_schema(STRING),
                        "mentions": INTEGER,
                        "pace": STRING,
                        "last_seen_at": nullable(STRING),
                    }
                )
            ),
            "more": BOOLEAN,
        }
    ),
    "bethink.server.tools.browse:list_entities",
    read_only=True,
    idempotent=True,
)

RECALL_FILE = Tool(
    "recall_file",
    "Recall a file's history",
    "Show the history of a file: edits by day, the reasons given for them and related "
    "memories. Call it before you change a file that others worked on.",
    arguments_schema(
        {
            "path": string_schema("The file's path, or any part of it.", max_length=4096),
            "intents": integer_schema("Maximum number of reasons; default 10.", 1, 50),
        },
        "path",
    ),
    object_schema(
        {
            "notice": NOTICE_SCHEMA,
            "paths": array_schema(STRING),
            "edits": INTEGER,
            "first_at": nullable(STRING),
            "last_at": nullable(STRING),
            "sessions": array_schema(STRING),
            "days": array_schema(
                object_schema({"day": STRING, "operation": STRING, "times": INTEGER})
            ),
            "intents": array_schema(
                object_schema({"text": STRING, "times": INTEGER, "last_at": STRING})
            ),
            "memories": array_schema(object_schema({"id": STRING, "text": STRING, "when": STRING})),
        }
    ),
    "bethink.server.tools.recall:recall_file",
    read_only=True,
    idempotent=True,
)

EXPLAIN = Tool(
    "explain",
    "Explain an answer",
    "Explain why a memory is in an answer (how its score was computed) or why it is not (the "
    "stage that dropped it, by how much, and how to include it). With query alone: every step "
    "of the pipeline. With id alone: the memory's provenance.",
    arguments_schema(
        {
            "query": string_schema("The question, as given to recall.", max_length=8192),
            "id": _ID,
            "profile": string_schema("Name of the recall profile.", max_length=100),
            "k": integer_schema("Maximum number of memories, as given to recall.", 1, 50),
        }
    ),
    object_schema(
        {
            "about": {"type": "string", "enum": ["why", "why_not", "trace", "origin"]},
            "explanation": STRING,
            "stage": nullable(STRING),
            "remedy": STRING,
            "notice": NOTICE_SCHEMA,
            "details": OBJECT,
        }
    ),
    "bethink.server.tools.recall:explain",
    read_only=True,
    idempotent=True,
)

DEFAULT_TOOLS = (RECALL, REMEMBER, UPDATE_MEMORY, FORGET, LIST_ENTITIES, RECALL_FILE, EXPLAIN)
_LEFT_OUT: Json = {"type": "integer", "description": "Number of entries that are not shown."}

READ_SMART = Tool(
    "read_smart",
    "Read a file or its changes",
    "Read a file of this project. The first call returns the whole file, later calls only the "
    "functions, classes and sections that changed since the last call.",
    arguments_schema(
        {
            "path": string_schema(
                "The file's path, relative to the project's root.", max_length=4096
            ),
            "force": boolean_schema("Return the whole file, changed or not."),
        },
        "path",
    ),
    object_schema(
        {
            "path": STRING,
            "status": STRING,
            "notice": NOTICE_SCHEMA,
            "text": nullable(STRING),
            "chunks": array_schema(OBJECT),
            "removed": array_schema(STRING),
            "tokens": INTEGER,
            "whole_tokens": INTEGER,
            "reads": INTEGER,
            "notes": array_schema(STRING),
        }
    ),
    "bethink.server.tools.recall:read_smart",
    max_text=None,
)

NOTE_EDIT = Tool(
    "note_edit",
    "Record a file edit",
    "Record what was done to a file and why, for recall_file. Recording an edit twice has no "
    "effect.",
    arguments_schema(
        {
            "path": string_schema("The file's path.", max_length=4096),
            "operation": string_schema("What was done; default edit.", choices=OPERATIONS),
            "intent": string_schema("Why it was made.", max_length=2000),
            "session": string_schema("The conversation it belongs to.", max_length=1000),
            "at": string_schema("When it was made; default now.", max_length=100),
        },
        "path",
    ),
    object_schema({"new": INTEGER, "known": INTEGER}),
    "bethink.server.tools.recall:note_edit",
)

CONSOLIDATE = Tool(
    "consolidate",
    "Consolidate memories",
    "Merge near-duplicates, and condense groups of unused memories into one, in two steps. "
    "Without a token it returns a preview and a token; with that token it applies the preview. "
    "Nothing is deleted; undo with the run's id restores everything.",
    arguments_schema(
        {
            "token": string_schema("The token of the preview: apply it now.", max_length=64),
            **TIDY_ARGUMENTS,
            "similarity": number_schema(
                "Cosine from which other wordings are duplicates, too, such as 0.95.", 0.5, 1
            ),
        }
    ),
    object_schema(
        {
            "done": BOOLEAN,
            "token": nullable(STRING),
            "run": nullable(STRING),
            "notice": NOTICE_SCHEMA,
            "proposals": array_schema(
                object_schema(
                    {
                        "job": STRING,
                        "why": STRING,
                        "leaves": array_schema(STRING),
                        "text": nullable(STRING),
                    }
                )
            ),
            "left": SKIPPED_SCHEMA,
            "left_out": {
                "type": "integer",
                "description": "Number of proposals that are not shown.",
            },
        }
    ),
    "bethink.server.tools.browse:consolidate",
)

UNDO = Tool(
    "undo",
    "Undo a change",
    "Undo the last change of a memory, the last change made here, or a whole run of "
    "consolidate. An undo can itself be undone; an erasure cannot.",
    arguments_schema(
        {
            "id": string_schema(
                "Id of a memory or a run; default: the last change.", max_length=200
            ),
            "preview": boolean_schema("Only show what would be undone."),
        }
    ),
    object_schema(
        {
            "done": BOOLEAN,
            "id": STRING,
            "doing": STRING,
            "restored": array_schema(STRING),
            "taken_back": array_schema(STRING),
        }
    ),
    "bethink.server.tools.browse:undo",
)

HISTORY = Tool(
    "history",
    "A memory's revisions",
    "List the revisions of a memory, oldest first: its text before each correction. If there "
    "are many, the newest ones.",
    arguments_schema(
        {
            "id": _ID,
            "limit": integer_schema("Maximum number of revisions, the newest; default 10.", 1, 200),
            "offset": integer_schema("Skip the newest N revisions.", 0, 100_000),
        },
        "id",
    ),
    object_schema(
        {
            "notice": NOTICE_SCHEMA,
            "revisions": array_schema(
                object_schema(
                    {
                        "rev": INTEGER,
                        "text": STRING,
                        "from": nullable(STRING),
                        "to": nullable(STRING),
                    }
                )
            ),
            "left_out": _LEFT_OUT,
        }
    ),
    "bethink.server.tools.browse:history",
    read_only=True,
    idempotent=True,
)

TIMELINE = Tool(
    "timeline",
    "Memories before and after",
    "Show a memory with those stored or said just before and after it, oldest first.",
    arguments_schema(
        {"id": _ID, "window": integer_schema("Memories on each side; default 5.", 1, 50)}, "id"
    ),
    object_schema(
        {
            "notice": NOTICE_SCHEMA,
            "memories": array_schema(object_schema(MEMORY_SCHEMA)),
            "left_out": _LEFT_OUT,
        }
    ),
    "bethink.server.tools.browse:timeline",
    read_only=True,
    idempotent=True,
)

THREADS = Tool(
    "threads",
    "List ongoing topics",
    "List long-running topics (threads), the last changed first. With an id: one thread as a "
    "timeline of its newest memories.",
    arguments_schema(
        {
            "id": string_schema("Id of one thread.", max_length=200),
            "limit": integer_schema(
                "Maximum number of threads, or of memories of one; default 20.", 1, 200
            ),
            "offset": integer_schema(
                "Skip the first N threads, or the newest N memories of one.", 0, 100_000
            ),
        }
    ),
    object_schema(
        {
            "notice": NOTICE_SCHEMA,
            "threads": array_schema(OBJECT),
            "more": {"type": "boolean", "description": "Whether there are more threads."},
            "left_out": {
                "type": "integer",
                "description": "Number of older memories that are not shown.",
            },
        }
    ),
    "bethink.server.tools.browse:threads",
    read_only=True,
    idempotent=True,
)

INSIGHTS = Tool(
    "insights",
    "Show the insight tree",
    "Show the tree of insights derived from the memories, each with its sources. If it is too "
    "long, the lowest ones are not shown. With an id: one insight and those below it.",
    arguments_schema(
        {
            "id": string_schema("Id of one insight.", max_length=200),
            "offset": integer_schema("Skip the first N insights, from the top.", 0, 100_000),
        }
    ),
    object_schema(
        {"notice": NOTICE_SCHEMA, "insights": array_schema(OBJECT), "left_out": _LEFT_OUT}
    ),
    "bethink.server.tools.browse:insights",
    read_only=True,
    idempotent=True,
)

LINK = Tool(
    "link",
    "Relate two memories",
    "Say how a memory relates to another one, or with remove take such a relation back. A "
    "memory that is superseded leaves recall. Undo takes back either.",
    arguments_schema(
        {"id": _ID, **RELATION_ARGUMENTS}
        | {"weight": number_schema("How strongly; default 0.5.", 0.01, 1)}
        | {"remove": boolean_schema("Remove the relation.")},
        *("id", "relation", "other"),
    ),
    object_schema(
        {"status": {"type": "string", "enum": ["linked", "removed", "unchanged"]}}
        | dict.fromkeys(("id", "relation", "other"), STRING)
    ),
    "bethink.server.tools.write:link",
    idempotent=True,
)

OPTIONAL_TOOLS = (
    *(READ_SMART, NOTE_EDIT, CONSOLIDATE, UNDO, HISTORY, TIMELINE, THREADS, INSIGHTS, LINK),
)
