"""Operations that only the REST API has, as tools: browsing, batches, and the inspector's."""

from __future__ import annotations

from bethink.api.browse import MAX_PLACE
from bethink.core.json_values import Json
from bethink.model.fields import ITEM_FIELDS
from bethink.server.tools.catalog import RECALL, REMEMBER
from bethink.server.tools.tool import (
    BOOLEAN,
    DEGRADED_SCHEMA,
    HIT_SCHEMA,
    INTEGER,
    MEMORY_SCHEMA,
    NOTICE_SCHEMA,
    NUMBER,
    OBJECT,
    STRING,
    Tool,
    arguments_schema,
    array_schema,
    integer_schema,
    nullable,
    object_schema,
    string_list_schema,
    string_schema,
)

MAX_BATCH = 500
_ID = string_schema("The memory's id, or a unique part of it.", max_length=200)
_BATCH_SCHEMA: Json = {
    "type": "array",
    "description": "The memories, each with the fields of `remember`.",
    "items": REMEMBER.input_schema,
    "maxItems": MAX_BATCH,
}
_NODE_SCHEMA = object_schema({"kind": STRING, "id": STRING})

_FIELD_SCHEMAS: dict[str, Json] = {
    "words": array_schema(STRING),
    "scale": INTEGER,
    "whole": INTEGER,
    "number": NUMBER,
    "flag": BOOLEAN,
    "object": OBJECT,
}
# Times that every memory has.
_GIVEN_TIMES = ("stored_at", "live_from")


def _item_schema() -> Json:
    """Make the schema of a memory with all its fields."""
    made: Json = {}
    for field in ITEM_FIELDS:
        if field.in_json:
            schema = _FIELD_SCHEMAS.get(field.kind, STRING)
            empty = field.nullable or (field.kind == "time" and field.name not in _GIVEN_TIMES)
            made[field.name] = nullable(schema) if empty else schema
    return made


GET_MEMORY = Tool(
    "get_memory",
    "Get a memory",
    "Get one memory with all its fields, by its id.",
    arguments_schema({"id": _ID}, "id"),
    object_schema(
        {
            "notice": NOTICE_SCHEMA,
            "memory": object_schema(_item_schema()),
        }
    ),
    "bethink.server.rest.handlers:get_memory",
    read_only=True,
    idempotent=True,
)

LIST_MEMORIES = Tool(
    "list_memories",
    "List memories",
    "List stored memories, newest first, in pages; a page of long texts ends early.",
    arguments_schema(
        {
            "kind": string_schema("Only this kind."),
            "topic": string_schema("Only this topic."),
            "tag": string_schema("Only with this tag."),
            "entity": string_schema("Only memories that mention it."),
            "source": string_schema("Only from this source."),
            "session": string_schema("Only from this conversation."),
            "user": string_schema("Only this user's."),
            "since": string_schema("Happened at or after this time.", max_length=100),
            "until": string_schema("Happened before this time.", max_length=100),
            "stored_by": string_schema("Stored at or before this time.", max_length=100),
            "limit": integer_schema("Maximum number of results; default 50.", 1, 500),
            "preview": integer_schema("Cut the texts to this many characters.", 20, 10_000),
            "after": string_schema(
                "The cursor of an earlier answer; returns its next page.", max_length=200
            ),
            "offset": integer_schema("Leave out this many first.", 0, MAX_PLACE),
            "with_total": {**BOOLEAN, "description": "Also count all that match."},
        }
    ),
    object_schema(
        {
            "notice": NOTICE_SCHEMA,
            "memories": array_schema(object_schema(MEMORY_SCHEMA)),
            "cursor": nullable(STRING),
            "total": nullable(INTEGER),
        }
    ),
    "bethink.server.rest.handlers:list_memories",
    read_only=True,
    idempotent=True,
)

REMEMBER_MANY = Tool(
    "remember_many",
    "Remember several memories",
    "Store up to 500 memories. Each is stored or refused on its own; the answer says which.",
    arguments_schema({"memories": _BATCH_SCHEMA}, "memories"),
    object_schema(
        {
            "stored": INTEGER,
            "refused": INTEGER,
            "results": array_schema(
                object_schema(
                    {
                        "id": STRING,
                        "status": STRING,
                        "error": object_schema(
                            {"kind": STRING, "message": STRING, "remedy": STRING}
                        ),
                    },
                    "id",
                    "error",
                ),
                "In the order of the memories.",
            ),
        }
    ),
    "bethink.server.rest.handlers:remember_many",
    idempotent=True,
)

RESTORE = Tool(
    "restore",
    "Restore memories",
    "Restore forgotten memories. Erased memories cannot be restored.",
    arguments_schema({"ids": string_list_schema("Ids of the memories.", max_items=100)}, "ids"),
    object_schema({"restored": array_schema(STRING)}),
    "bethink.server.rest.handlers:restore",
    idempotent=True,
)

LINKS = Tool(
    "links",
    "A memory's links",
    "List a memory's links to others: implies, contradicts, supersedes ...",
    arguments_schema(
        {
            "id": _ID,
            "limit": integer_schema("Maximum number of results; default 100.", 1, 1000),
            "offset": integer_schema("Skip the first N results.", 0, 100_000),
        },
        "id",
    ),
    object_schema(
        {
            "left_out": {"type": "integer", "description": "Number of further links."},
            "links": array_schema(
                object_schema(
                    {
                        "from": _NODE_SCHEMA,
                        "type": STRING,
                        "to": _NODE_SCHEMA,
                        "weight": NUMBER,
                        "confidence": NUMBER,
                        "source": STRING,
                    }
                )
            ),
        }
    ),
    "bethink.server.rest.handlers:links",
    read_only=True,
    idempotent=True,
)

STATS = Tool(
    "stats",
    "Counts and sizes",
    "Show the number of memories by kind, and the models in use.",
    arguments_schema({}),
    object_schema({"space": STRING, "memories": INTEGER, "entities": INTEGER, "by_kind": OBJECT}),
    "bethink.server.rest.handlers:stats",
    read_only=True,
    idempotent=True,
)

EVENTS = Tool(
    "events",
    "The journal",
    "List the journal: who changed which memory, and when. It never contains a memory's text.",
    arguments_schema(
        {
            "after": integer_schema("Only events after this number.", 0, 2**53),
            "limit": integer_schema("Maximum number of results; default 100.", 1, 1000),
        }
    ),
    object_schema(
        {
            "events": array_schema(
                object_schema(
                    {
                        "seq": INTEGER,
                        "at": STRING,
                        "kind": STRING,
                        "item": nullable(STRING),
                        "actor": STRING,
                        "detail": STRING,
                    }
                )
            )
        }
    ),
    "bethink.server.rest.handlers:events",
    read_only=True,
    idempotent=True,
)

_TEXT_OR_NULL, _NUMBER_OR_NULL = nullable(STRING), nullable(NUMBER)
_EVIDENCE_SCHEMA = object_schema(
    {
        "by": STRING,
        "op": {"type": "string", "enum": ["seen", "add", "times", "set"]},
        "value": _NUMBER_OR_NULL,
        "why": STRING,
        "via": STRING,
        "rank": INTEGER,
    },
    "via",
    "rank",
)
_RANK_SCHEMA = object_schema({"rank": nullable(INTEGER), "score": _NUMBER_OR_NULL})
_RANKS_SCHEMA: Json = {
    "type": "object",
    "description": "Rank and score by the name of the retriever.",
    "additionalProperties": _RANK_SCHEMA,
}
_INSPECTED_HIT: Json = {
    **HIT_SCHEMA,
    "rev": INTEGER,
    "tags": array_schema(STRING),
    "entities": array_schema(STRING),
    "occurred_at": _TEXT_OR_NULL,
    "stored_at": STRING,
    "valid_to": _TEXT_OR_NULL,
    "importance": NUMBER,
    "classification": INTEGER,
    "recalls": INTEGER,
    "tokens": INTEGER,
    "words": array_schema(STRING, "Words of the text that match words of the question."),
    "in_context": {**BOOLEAN, "description": "Whether an agent gets it within its tokens."},
    "evidence": array_schema(_EVIDENCE_SCHEMA),
    "channels": _RANKS_SCHEMA,
}
_CANDIDATE_SCHEMA = object_schema(
    {
        "rank": INTEGER,
        "id": STRING,
        "level": STRING,
        "score": _NUMBER_OR_NULL,
        "text": STRING,
        "channels": _RANKS_SCHEMA,
    }
)
_STEP_SCHEMA = object_schema(
    {
        "step": STRING,
        "status": STRING,
        "milliseconds": NUMBER,
        "came_in": INTEGER,
        "left": INTEGER,
        "note": STRING,
        "candidates": array_schema(_CANDIDATE_SCHEMA),
    }
)
_TRACE_SCHEMA = object_schema(
    {
        "milliseconds": NUMBER,
        "strategy": STRING,
        "profile": STRING,
        "cached": BOOLEAN,
        "truncated": BOOLEAN,
        "steps": array_schema(_STEP_SCHEMA),
        "merge": object_schema(
            dict.fromkeys(("channels", "came_in", "duplicates", "left"), INTEGER)
        ),
        "final": OBJECT,
    }
)
_WHY_NOT_SCHEMA = nullable(
    object_schema(
        {
            "id": STRING,
            "text": STRING,
            "returned": BOOLEAN,
            "stage": STRING,
            "reason": STRING,
            "score": _NUMBER_OR_NULL,
            "needed": _NUMBER_OR_NULL,
            "remedy": STRING,
            "channels": array_schema(
                object_schema(
                    {
                        "channel": STRING,
                        "score": _NUMBER_OR_NULL,
                        "needed": _NUMBER_OR_NULL,
                        "why": STRING,
                    }
                )
            ),
        }
    )
)
_RECALL_ARGUMENTS = {
    name: schema
    for name, schema in RECALL.input_schema["properties"].items()
    if name not in ("mark_accessed", "cursor")
}

INSPECT = Tool(
    "inspect",
    "Recall with everything that happened",
    "Answer a question as recall does, and return all that led to the answer: the evidence of "
    "every hit, every step with its candidates, the text an agent gets. With an id also why "
    "that memory is in the answer or is not. No use is recorded.",
    arguments_schema(
        {
            **_RECALL_ARGUMENTS,
            "id": string_schema("Explain the place of this memory, too.", max_length=200),
            "candidates": integer_schema("Candidates per step; default 20.", 0, 200),
        }
    ),
    object_schema(
        {
            "notice": NOTICE_SCHEMA,
            "query": object_schema(
                {"text": STRING, "now": STRING, "as_of": _TEXT_OR_NULL, "k": INTEGER}
                | {"max_tokens": INTEGER, "offset": INTEGER, "filters": OBJECT}
            ),
            "profile": STRING,
            "strategy": STRING,
            "status": RECALL.output_schema["properties"]["status"],
            "reason": STRING,
            "confidence": NUMBER,
            "confidence_reasons": array_schema(
                object_schema(
                    {"feature": STRING, "value": NUMBER, "contribution": NUMBER, "why": STRING}
                )
            ),
            "hits": array_schema(object_schema(_INSPECTED_HIT)),
            "total": {**INTEGER, "description": "Number of memories that passed every step."},
            "context": object_schema({"text": STRING, "tokens": INTEGER}),
            "captions": array_schema(STRING),
            "warnings": array_schema(STRING),
            "degraded": DEGRADED_SCHEMA,
            "nearest_miss": RECALL.output_schema["properties"]["nearest_miss"],
            "trace": _TRACE_SCHEMA,
            "why_not": _WHY_NOT_SCHEMA,
        }
    ),
    "bethink.server.rest.handlers:inspect",
    read_only=True,
    idempotent=True,
)

PROFILES = Tool(
    "profiles",
    "List the profiles",
    "List the profiles that a recall can use.",
    arguments_schema({}),
    object_schema(
        {
            "profiles": array_schema(
                object_schema(
                    {
                        "name": STRING,
                        "title": STRING,
                        "deep": {**BOOLEAN, "description": "Whether it uses a language model."},
                        "default": BOOLEAN,
                        "parts": array_schema(STRING, "Its retrievers and stages, in order."),
                    }
                )
            )
        }
    ),
    "bethink.server.rest.handlers:profiles",
    read_only=True,
    idempotent=True,
)

USAGE = Tool(
    "usage",
    "A memory's use",
    "Show how often and when a memory was recalled.",
    arguments_schema({"id": _ID}, "id"),
    object_schema(
        {
            "recalls": INTEGER,
            "cited": INTEGER,
            "in_30_days": INTEGER,
            "in_90_days": INTEGER,
            "last_at": _TEXT_OR_NULL,
            "stamps": array_schema(STRING, "The last recalls, oldest first."),
        }
    ),
    "bethink.server.rest.handlers:usage",
    read_only=True,
    idempotent=True,
)

GRAPH = Tool(
    "graph",
    "What surrounds a memory or an entity",
    "Show the neighbourhood of a memory or an entity: memories and entities as nodes, links and "
    "mentions as edges, nearest first.",
    arguments_schema(
        {
            "node": string_schema("A memory's id, or an entity like person:alice.", max_length=300),
            "depth": integer_schema("Steps away from it; default 2.", 1, 4),
            "limit": integer_schema("Maximum number of nodes; default 100.", 2, 300),
        },
        "node",
    ),
    object_schema(
        {
            "notice": NOTICE_SCHEMA,
            "nodes": array_schema(
                object_schema(
                    {
                        "id": STRING,
                        "what": {"type": "string", "enum": ["memory", "entity"]},
                        "label": STRING,
                        "kind": STRING,
                        "hop": INTEGER,
                    }
                )
            ),
            "edges": array_schema(
                object_schema({"from": STRING, "to": STRING, "type": STRING, "weight": NUMBER})
            ),
            "more": {**BOOLEAN, "description": "Whether nodes were left out."},
        }
    ),
    "bethink.server.rest.handlers:graph",
    read_only=True,
    idempotent=True,
)

TIMES = Tool(
    "times",
    "How many memories by day",
    "Count the memories by the day they happened, and list the conversations with their first "
    "and last moment.",
    arguments_schema(
        {
            name: LIST_MEMORIES.input_schema["properties"][name]
            for name in ("kind", "topic", "tag", "entity", "source", "session", "user")
        }
        | {name: LIST_MEMORIES.input_schema["properties"][name] for name in ("since", "until")}
    ),
    object_schema(
        {
            "days": array_schema(object_schema({"day": STRING, "count": INTEGER, "kinds": OBJECT})),
            "sessions": array_schema(
                object_schema(
                    {"session": STRING, "first": STRING, "last": STRING, "count": INTEGER}
                ),
                "The last conversations, newest first.",
            ),
            "counted": INTEGER,
        }
    ),
    "bethink.server.rest.handlers:times",
    read_only=True,
    idempotent=True,
)

MAINTENANCE = Tool(
    "maintenance",
    "List the maintenance runs",
    "List the last runs of maintenance, newest first, with what each job did.",
    arguments_schema({"limit": integer_schema("Maximum number of runs; default 20.", 1, 200)}),
    object_schema(
        {"runs": array_schema(object_schema({"run": STRING, "at": STRING, "jobs": OBJECT}))}
    ),
    "bethink.server.rest.handlers:maintenance",
    read_only=True,
    idempotent=True,
)
