"""Operations that the REST API has besides the tools of the MCP server, declared like them."""

from __future__ import annotations

from recollect.jsonable import Json
from recollect.mcp.schema import (
    INTEGER,
    NUMBER,
    OBJECT,
    STRING,
    answer,
    arguments,
    listing,
    maybe,
    text,
    texts,
    whole,
)
from recollect.mcp.tool import Tool
from recollect.mcp.tools.shapes import MEMORY, NOTICE
from recollect.mcp.tools.usual import REMEMBER

MOST_AT_ONCE = 500
_ID = text("The memory's id, or a part of it that only it has.", most=200)
_MANY: Json = {
    "type": "array",
    "description": "The memories, each with the fields of `remember`.",
    "items": REMEMBER.takes,
    "maxItems": MOST_AT_ONCE,
}
_NODE = answer({"kind": STRING, "id": STRING})

GET_MEMORY = Tool(
    "get_memory",
    "Get a memory",
    "One memory with all that is known of it, by its id.",
    arguments({"id": _ID}, "id"),
    answer({"notice": NOTICE, "memory": answer({"id": STRING, "text": STRING, "rev": INTEGER})}),
    "recollect.serve.doing:get_memory",
    reads=True,
    repeatable=True,
)

LIST_MEMORIES = Tool(
    "list_memories",
    "List memories",
    "What is stored, newest first, a page at a time; one of long texts ends early.",
    arguments(
        {
            "kind": text("Only this kind."),
            "topic": text("Only this topic."),
            "tag": text("Only with this tag."),
            "entity": text("Only memories that mention it."),
            "source": text("Only from this source."),
            "session": text("Only of this conversation."),
            "since": text("Happened then or later.", most=100),
            "until": text("Happened before.", most=100),
            "limit": whole("At most so many; 50 unless told.", 1, 500),
            "after": text("The cursor of an earlier answer, for its next page.", most=200),
        }
    ),
    answer({"notice": NOTICE, "memories": listing(answer(MEMORY)), "cursor": maybe(STRING)}),
    "recollect.serve.doing:list_memories",
    reads=True,
    repeatable=True,
)

REMEMBER_MANY = Tool(
    "remember_many",
    "Remember several things",
    "Store up to 500 memories. Each is taken in or refused for itself; the answer says which.",
    arguments({"memories": _MANY}, "memories"),
    answer(
        {
            "stored": INTEGER,
            "refused": INTEGER,
            "results": listing(
                answer(
                    {
                        "id": STRING,
                        "status": STRING,
                        "error": answer({"kind": STRING, "message": STRING, "remedy": STRING}),
                    },
                    "id",
                    "error",
                ),
                "In the order of the memories.",
            ),
        }
    ),
    "recollect.serve.doing:remember_many",
    repeatable=True,
)

RESTORE = Tool(
    "restore",
    "Bring memories back",
    "Brings forgotten memories back. What was erased cannot be brought back.",
    arguments({"ids": texts("The memories, by id.", most=100)}, "ids"),
    answer({"restored": listing(STRING)}),
    "recollect.serve.doing:restore",
    repeatable=True,
)

LINKS = Tool(
    "links",
    "A memory's links",
    "How a memory is linked to others: implies, contradicts, supersedes ...",
    arguments(
        {
            "id": _ID,
            "limit": whole("At most so many; 100 unless told.", 1, 1000),
            "offset": whole("Leave out the first so many.", 0, 100_000),
        },
        "id",
    ),
    answer(
        {
            "left_out": {"type": "integer", "description": "How many come after them."},
            "links": listing(
                answer(
                    {
                        "from": _NODE,
                        "type": STRING,
                        "to": _NODE,
                        "weight": NUMBER,
                        "confidence": NUMBER,
                        "source": STRING,
                    }
                )
            ),
        }
    ),
    "recollect.serve.doing:links",
    reads=True,
    repeatable=True,
)

STATS = Tool(
    "stats",
    "Counts and sizes",
    "How many memories there are, and what is in use.",
    arguments({}),
    answer({"space": STRING, "memories": INTEGER, "entities": INTEGER, "by_kind": OBJECT}),
    "recollect.serve.doing:stats",
    reads=True,
    repeatable=True,
)

EVENTS = Tool(
    "events",
    "The journal",
    "Who did what to which memory, and when. It never holds what a memory says.",
    arguments(
        {
            "after": whole("Behind this number.", 0, 2**53),
            "limit": whole("At most so many; 100 unless told.", 1, 1000),
        }
    ),
    answer(
        {
            "events": listing(
                answer(
                    {
                        "seq": INTEGER,
                        "at": STRING,
                        "kind": STRING,
                        "item": maybe(STRING),
                        "actor": STRING,
                        "detail": STRING,
                    }
                )
            )
        }
    ),
    "recollect.serve.doing:events",
    reads=True,
    repeatable=True,
)
