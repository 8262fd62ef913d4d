"""Definitions of all tools: the seven default ones, the optional ones, shared schemas."""

from __future__ import annotations

from bethink.core.json_values import Json
from bethink.model import OPERATIONS
from bethink.retrieval.heat import BANDS
from bethink.server.mcp.view import URI
from bethink.server.tools.tool import (
    BOOLEAN,
    INTEGER,
    NUMBER,
    OBJECT,
    STRING,
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

MEMORY_SCHEMA: Json = {
    "id": STRING,
    "text": STRING,
    "kind": STRING,
    "level": STRING,
    "topic": nullable(STRING),
    "when": STRING,
    "trust": INTEGER,
    "source": STRING,
    "speaker": nullable(STRING),
    "status": STRING,
    "pinned": BOOLEAN,
    "flags": array_schema(STRING),
}
HIT_SCHEMA: Json = {
    **MEMORY_SCHEMA,
    "score": nullable(NUMBER),
    "reasons": array_schema(STRING, "How it was found, in fixed words."),
    "relations": array_schema(
        object_schema({"type": STRING, "other": STRING, "text": STRING, "inbound": BOOLEAN}),
        "What contradicts, corrects or is corrected by it.",
    ),
}
DEGRADED_SCHEMA: Json = array_schema(
    object_schema({"part": STRING, "reason": STRING}),
    "Parts that could not do their work, and why.",
)
NOTICE_SCHEMA: Json = {"type": "string", "description": "How to read the texts."}

ORIGINS = ("agent", "tool", "web")
SNIPPET_CHARS = 300  # characters of a memory that is only to be recognised
_ID = string_schema("The memory's id, or a part of it that only it has.", max_length=200)
_LAYER = string_schema("goal, context, emotion, implementation, caveat or learning.", max_length=40)
_FORCE = boolean_schema("Store it although it looks like a pasted log.")
# What can be said about a memory when it is stored and when it is corrected.
_METADATA_FIELDS: Json = {
    "kind": string_schema("For example decision, fact, preference, event, note."),
    "layer": _LAYER,
    "topic": string_schema("A topic to file it under."),
    "tags": string_list_schema("Tags.", max_items=64),
    "entities": string_list_schema(
        "Whom and what it speaks of, besides those found in the text.", max_items=64
    ),
    "importance": number_schema("From 0 to 1; 0.5 unless told.", 0, 1),
    "pinned": {"type": "boolean", "description": "Keep it from being swept away."},
    "occurred_at": string_schema("When it happened: 2026-05-07, or in words.", max_length=100),
    "valid_to": string_schema("Until when it holds.", max_length=100),
}

RECALL = Tool(
    "recall",
    "Recall memories",
    "Find what is remembered about a question: decisions, facts, preferences, earlier work. "
    "Ask before starting a task and whenever something earlier may matter. Best first, each "
    "with its id, its reasons and how far to trust it. An empty answer says whether nothing is "
    "stored, nothing matched or nothing was relevant enough.",
    arguments_schema(
        {
            "query": string_schema("The question, in plain words; may be left out with a filter.",
                          max_length=8192),
            "entity": string_schema("Only memories that mention this person, project, file ..."),
            "kind": string_schema("Only this kind."),
            "layer": _LAYER,
            "band": string_schema("Only memories this warm by use.", choices=BANDS),
            "topic": string_schema("Only this topic."),
            "tag": string_schema("Only with this tag."),
            "since": string_schema("Happened then or later: 2026-05-07, or in words.", max_length=100),
            "until": string_schema("Happened before.", max_length=100),
            "as_of": string_schema("As it was known at that moment.", max_length=100),
            "k": integer_schema("At most so many memories.", 1, 50),
            "episode_k": integer_schema("At most so many verbatim episodes, apart from k.", 0, 50),
            "max_tokens": integer_schema("At most so many tokens of text; 2000 unless told.", 100, 20_000),
            "offset": integer_schema("Leave out the first so many.", 0, 100_000),
            "cursor": string_schema("The cursor of an earlier answer, for its next page.", max_length=20_000),
            "mark_accessed": boolean_schema("Note what is returned as used."),
            "profile": string_schema("Another way of recalling, by name.", max_length=100),
        }
    ),
    object_schema(
        {
            "status": {
                "type": "string",
                "enum": ["found", "nothing_stored", "nothing_matched", "below_gate"],
            },
            "reason": STRING,
            "notice": NOTICE_SCHEMA,
            "memories": array_schema(object_schema(HIT_SCHEMA)),
            "returned": INTEGER,
            "left_out": {
                "type": "integer",
                "description": "How many more passed; cursor gets them.",
            },
            "stopped_by": STRING,
            "cursor": nullable(STRING),
            "tokens": INTEGER,
            "captions": array_schema(STRING),
            "warnings": array_schema(STRING),
            "degraded": DEGRADED_SCHEMA,
            "nearest_miss": nullable(object_schema({**MEMORY_SCHEMA, "score": nullable(NUMBER)})),
            "profile": STRING,
        }
    ),
    "bethink.server.tools.recall:recall",
    reads=True,
    idempotent=True,
    max_text=None,
    view=URI,
)  # fmt: skip

REMEMBER = Tool(
    "remember",
    "Remember something",
    "Store one memory that will matter later: a decision and its reason, a fact, a preference, "
    "a caveat. One self-contained statement, in words that make sense without this "
    "conversation; not logs, not whole files, not what recall returned. Says what it collides "
    "with: a near-duplicate, or a fact it corrects.",
    arguments_schema(
        {
            "text": string_schema("What to remember.", max_length=65_536),
            **_METADATA_FIELDS,
            "origin": string_schema(
                "Where it comes from: agent (you or your user say so; the default), tool (a "
                "program's output), web (a page or document by others).",
                choices=ORIGINS,
            ),
            "source": string_schema("A path, address or name to find it again.", max_length=500),
            "key": string_schema("The same key again stores nothing new.", max_length=200),
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
                    {"id": STRING, "kind": STRING, "similarity": NUMBER, "action": STRING,
                     "text": STRING}
                )
            ),
            "redacted": array_schema(STRING, "Kinds of secrets that were taken out."),
            "entities": array_schema(STRING),
            "flags": array_schema(STRING),
            "pending": array_schema(STRING),
        }
    ),
    "bethink.server.tools.write:remember",
    idempotent=True,
)  # fmt: skip

UPDATE_MEMORY = Tool(
    "update_memory",
    "Correct a memory",
    "Correct a memory: its text or what is said about it. The id stays, the old text stays in "
    "the history and can be brought back. Prefer this to storing a second, differing memory.",
    arguments_schema(
        {
            "id": _ID,
            "text": string_schema("The new text.", max_length=65_536),
            **_METADATA_FIELDS,
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
    "Take memories out of recall, in two steps. First call it with ids (or sweep): nothing "
    "changes, it shows what would go and gives a token. Show that to the user; then call it "
    "again with the same arguments and the token. Forgotten memories can be brought back, "
    "erased ones cannot.",
    arguments_schema(
        {
            "ids": string_list_schema("The memories, by id.", max_items=100),
            "sweep": boolean_schema("Instead of ids: all that is long unused and unimportant."),
            "erase": boolean_schema(
                "Leave no byte of them; cannot be undone. Only if the user asks for it."
            ),
            "token": string_schema("From the first step: do it now.", max_length=64),
            "reason": string_schema("What the journal says.", max_length=200),
        }
    ),
    object_schema(
        {
            "done": BOOLEAN,
            "token": nullable(STRING),
            "notice": NOTICE_SCHEMA,
            "memories": array_schema(object_schema({"id": STRING, "text": nullable(STRING)})),
            "kept": array_schema(object_schema({"id": STRING, "reason": STRING})),
            "derived": array_schema(STRING, "Made from them; erased with them."),
            "quarantined": array_schema(STRING, "Made from them and others; kept out of recall."),
            "restored": array_schema(STRING, "Come back, because what stood in for them goes."),
            "run": nullable(STRING),
            "left_out": {"type": "integer", "description": "How many of a sweep are not shown."},
            "out_of_reach": array_schema(STRING, "Where copies may remain that we cannot erase."),
        }
    ),
    "bethink.server.tools.write:forget",
    destructive=True,
    max_text=SNIPPET_CHARS,
)

LIST_ENTITIES = Tool(
    "list_entities",
    "List entities",
    "Whom and what the memories speak of (people, projects, tools, files ...), where most is "
    "going on first.",
    arguments_schema(
        {
            "prefix": string_schema("Only names that begin so.", max_length=200),
            "kind": string_schema("Only this kind: person, project, tool, file, concept ...", max_length=100),
            "min_memories": integer_schema("Mentioned by at least so many memories.", 0, 100_000),
            "limit": integer_schema("At most so many; 30 unless told.", 1, 200),
            "offset": integer_schema("Leave out the first so many.", 0, 100_000),
        }
    ),
    object_schema(
        {
            "notice": NOTICE_SCHEMA,
            "entities": array_schema(
                object_schema(
                    {"id": STRING, "kind": STRING, "name": STRING, "aliases": array_schema(STRING),
                     "mentions": INTEGER, "pace": STRING, "last_seen_at": nullable(STRING)}
                )
            ),
            "more": BOOLEAN,
        }
    ),
    "bethink.server.tools.browse:list_entities",
    reads=True,
    idempotent=True,
)  # fmt: skip

RECALL_FILE = Tool(
    "recall_file",
    "Recall a file's history",
    "What was done to a file and why: edits by day, the reasons given, memories told with "
    "them. Ask before changing a file that others worked on.",
    arguments_schema(
        {
            "path": string_schema("The file's path, or any part of it.", max_length=4096),
            "intents": integer_schema("At most so many reasons; 10 unless told.", 1, 50),
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
    reads=True,
    idempotent=True,
)

EXPLAIN = Tool(
    "explain",
    "Explain an answer",
    "Why a memory is in an answer (the arithmetic of its score), or why it is not (the step at "
    "which it fell out, by how much, and what would bring it in). With query alone: every step "
    "of the walk. With id alone: where the memory comes from.",
    arguments_schema(
        {
            "query": string_schema("The question as it was asked.", max_length=8192),
            "id": _ID,
            "profile": string_schema("The way of recalling, by name.", max_length=100),
            "k": integer_schema("At most so many memories, as it was asked.", 1, 50),
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
    reads=True,
    idempotent=True,
)

DEFAULT_TOOLS = (RECALL, REMEMBER, UPDATE_MEMORY, FORGET, LIST_ENTITIES, RECALL_FILE, EXPLAIN)
_LEFT_OUT: Json = {"type": "integer", "description": "How many there are besides."}

READ_SMART = Tool(
    "read_smart",
    "Read a file, or what changed",
    "Read a file of this project. The first time the whole file, later only the functions, "
    "classes and sections that changed since it was last read this way.",
    arguments_schema(
        {
            "path": string_schema("The file, from the project's root.", max_length=4096),
            "force": boolean_schema("The whole file, changed or not."),
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
    "Note what was done to a file",
    "Keep what was done to a file and why, for recall_file. Told again, it is known already.",
    arguments_schema(
        {
            "path": string_schema("The file's path.", max_length=4096),
            "operation": string_schema("What was done; edit unless told.", choices=OPERATIONS),
            "intent": string_schema("To what end.", max_length=2000),
            "session": string_schema("In which conversation.", max_length=1000),
            "at": string_schema("When; else now.", max_length=100),
        },
        "path",
    ),
    object_schema({"new": INTEGER, "known": INTEGER}),
    "bethink.server.tools.recall:note_edit",
)

CONSOLIDATE = Tool(
    "consolidate",
    "Tidy up",
    "Merge near-duplicates and turn clusters of cold memories into one, in two steps: without a "
    "token it shows what would happen; with the token it does exactly that. Nothing is deleted; "
    "undo with the run's id brings everything back.",
    arguments_schema(
        {
            "token": string_schema("From the first step: do it now.", max_length=64),
            "share": number_schema(
                "The share of the memories that may leave recall; 0.02 unless told.", 0, 0.5
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
            "left": array_schema(STRING),
            "left_out": {"type": "integer", "description": "How many proposals are not shown."},
        }
    ),
    "bethink.server.tools.browse:consolidate",
)

UNDO = Tool(
    "undo",
    "Undo a change",
    "Undo the last change of a memory, the last change made here, or a whole run of "
    "consolidate. What was undone can be undone again; what was erased cannot.",
    arguments_schema(
        {
            "id": string_schema("A memory or a run; without one, the last change.", max_length=200),
            "preview": boolean_schema("Only say what would be undone."),
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
    "The revisions of a memory, oldest first: what it said before it was corrected. Of many "
    "the newest.",
    arguments_schema(
        {
            "id": _ID,
            "limit": integer_schema("At most so many, the newest; 10 unless told.", 1, 200),
            "offset": integer_schema("Leave out the newest so many.", 0, 100_000),
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
    reads=True,
    idempotent=True,
)

TIMELINE = Tool(
    "timeline",
    "What came before and after",
    "A memory among those that were stored or said just before and after it, oldest first.",
    arguments_schema(
        {"id": _ID, "window": integer_schema("So many on each side; 5 unless told.", 1, 50)}, "id"
    ),
    object_schema({"notice": NOTICE_SCHEMA, "memories": array_schema(object_schema(MEMORY_SCHEMA)), "left_out": _LEFT_OUT}),
    "bethink.server.tools.browse:timeline",
    reads=True,
    idempotent=True,
)  # fmt: skip

THREADS = Tool(
    "threads",
    "What is going on",
    "Long-running topics, the last changed first; with an id one of them as a timeline, of "
    "its newest memories.",
    arguments_schema(
        {
            "id": string_schema("One thread.", max_length=200),
            "limit": integer_schema("At most so many threads, or memories of one; 20 unless told.", 1, 200),
            "offset": integer_schema("Leave out so many: the first threads, the newest memories.",
                            0, 100_000),
        }
    ),
    object_schema(
        {
            "notice": NOTICE_SCHEMA,
            "threads": array_schema(OBJECT),
            "more": {"type": "boolean", "description": "Whether there are further threads."},
            "left_out": {"type": "integer", "description": "How many older memories it has."},
        }
    ),
    "bethink.server.tools.browse:threads",
    reads=True,
    idempotent=True,
)  # fmt: skip

INSIGHTS = Tool(
    "insights",
    "What it comes to",
    "The tree of insights drawn from the memories, each with what bears it out. What does not "
    "fit is left out from below; with an id, one of them and what is below it.",
    arguments_schema(
        {
            "id": string_schema("One insight.", max_length=200),
            "offset": integer_schema("Leave out the first so many, those higher up.", 0, 100_000),
        }
    ),
    object_schema(
        {"notice": NOTICE_SCHEMA, "insights": array_schema(OBJECT), "left_out": _LEFT_OUT}
    ),
    "bethink.server.tools.browse:insights",
    reads=True,
    idempotent=True,
)

OPTIONAL_TOOLS = (
    *(READ_SMART, NOTE_EDIT, CONSOLIDATE, UNDO, HISTORY, TIMELINE, THREADS, INSIGHTS),
)
