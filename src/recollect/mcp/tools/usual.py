"""The seven tools that every server offers: asking, writing, correcting, forgetting, asking why."""

from __future__ import annotations

from recollect.heat import BANDS
from recollect.jsonable import Json
from recollect.mcp.schema import (
    BOOLEAN,
    INTEGER,
    NUMBER,
    OBJECT,
    STRING,
    answer,
    arguments,
    flag,
    listing,
    maybe,
    number,
    text,
    texts,
    whole,
)
from recollect.mcp.tool import Tool
from recollect.mcp.tools.shapes import DEGRADED, HIT, MEMORY, NOTICE
from recollect.mcp.view import URI

ORIGINS = ("agent", "tool", "web")
GLIMPSE = 300  # characters of a memory that is only to be recognised
_ID = text("The memory's id, or a part of it that only it has.", most=200)
_LAYER = text("goal, context, emotion, implementation, caveat or learning.", most=40)
_FORCE = flag("Store it although it looks like a pasted log.")
# What can be said about a memory when it is stored and when it is corrected.
_ABOUT: Json = {
    "kind": text("For example decision, fact, preference, event, note."),
    "layer": _LAYER,
    "topic": text("A topic to file it under."),
    "tags": texts("Tags.", most=64),
    "entities": texts("Whom and what it speaks of, besides those found in the text.", most=64),
    "importance": number("From 0 to 1; 0.5 unless told.", 0, 1),
    "pinned": {"type": "boolean", "description": "Keep it from being swept away."},
    "occurred_at": text("When it happened: 2026-05-07, or in words.", most=100),
    "valid_to": text("Until when it holds.", most=100),
}

RECALL = Tool(
    "recall",
    "Recall memories",
    "Find what is remembered about a question: decisions, facts, preferences, earlier work. "
    "Ask before starting a task and whenever something earlier may matter. Best first, each "
    "with its id, its reasons and how far to trust it. An empty answer says whether nothing is "
    "stored, nothing matched or nothing was relevant enough.",
    arguments(
        {
            "query": text("The question, in plain words; may be left out with a filter.",
                          most=8192),
            "entity": text("Only memories that mention this person, project, file ..."),
            "kind": text("Only this kind."),
            "layer": _LAYER,
            "band": text("Only memories this warm by use.", one_of=BANDS),
            "topic": text("Only this topic."),
            "tag": text("Only with this tag."),
            "since": text("Happened then or later: 2026-05-07, or in words.", most=100),
            "until": text("Happened before.", most=100),
            "as_of": text("As it was known at that moment.", most=100),
            "k": whole("At most so many memories.", 1, 50),
            "episode_k": whole("At most so many verbatim episodes, apart from k.", 0, 50),
            "max_tokens": whole("At most so many tokens of text; 2000 unless told.", 100, 20_000),
            "offset": whole("Leave out the first so many.", 0, 100_000),
            "cursor": text("The cursor of an earlier answer, for its next page.", most=20_000),
            "mark_accessed": flag("Note what is returned as used."),
            "profile": text("Another way of recalling, by name.", most=100),
        }
    ),
    answer(
        {
            "status": {
                "type": "string",
                "enum": ["found", "nothing_stored", "nothing_matched", "below_gate"],
            },
            "reason": STRING,
            "notice": NOTICE,
            "memories": listing(answer(HIT)),
            "returned": INTEGER,
            "left_out": {
                "type": "integer",
                "description": "How many more passed; cursor gets them.",
            },
            "stopped_by": STRING,
            "cursor": maybe(STRING),
            "tokens": INTEGER,
            "captions": listing(STRING),
            "warnings": listing(STRING),
            "degraded": DEGRADED,
            "nearest_miss": maybe(answer({**MEMORY, "score": maybe(NUMBER)})),
            "profile": STRING,
        }
    ),
    "asking:recall",
    reads=True,
    repeatable=True,
    longest=None,
    view=URI,
)  # fmt: skip

REMEMBER = Tool(
    "remember",
    "Remember something",
    "Store one memory that will matter later: a decision and its reason, a fact, a preference, "
    "a caveat. One self-contained statement, in words that make sense without this "
    "conversation; not logs, not whole files, not what recall returned. Says what it collides "
    "with: a near-duplicate, or a fact it corrects.",
    arguments(
        {
            "text": text("What to remember.", most=65_536),
            **_ABOUT,
            "origin": text(
                "Where it comes from: agent (you or your user say so; the default), tool (a "
                "program's output), web (a page or document by others).",
                one_of=ORIGINS,
            ),
            "source": text("A path, address or name to find it again.", most=500),
            "key": text("The same key again stores nothing new.", most=200),
            "force": _FORCE,
        },
        "text",
    ),
    answer(
        {
            "id": STRING,
            "status": {"type": "string", "enum": ["stored", "duplicate", "repeated"]},
            "collisions": listing(
                answer(
                    {"id": STRING, "kind": STRING, "similarity": NUMBER, "action": STRING,
                     "text": STRING}
                )
            ),
            "redacted": listing(STRING, "Kinds of secrets that were taken out."),
            "entities": listing(STRING),
            "flags": listing(STRING),
            "pending": listing(STRING),
        }
    ),
    "writing:remember",
    repeatable=True,
)  # fmt: skip

UPDATE_MEMORY = Tool(
    "update_memory",
    "Correct a memory",
    "Correct a memory: its text or what is said about it. The id stays, the old text stays in "
    "the history and can be brought back. Prefer this to storing a second, differing memory.",
    arguments(
        {"id": _ID, "text": text("The new text.", most=65_536), **_ABOUT, "force": _FORCE}, "id"
    ),
    answer(
        {
            "id": STRING,
            "rev": INTEGER,
            "changed": listing(STRING),
            "notice": NOTICE,
            "memory": answer(MEMORY),
        }
    ),
    "writing:update_memory",
    repeatable=True,
)

FORGET = Tool(
    "forget",
    "Forget memories",
    "Take memories out of recall, in two steps. First call it with ids (or sweep): nothing "
    "changes, it shows what would go and gives a token. Show that to the user; then call it "
    "again with the same arguments and the token. Forgotten memories can be brought back, "
    "erased ones cannot.",
    arguments(
        {
            "ids": texts("The memories, by id.", most=100),
            "sweep": flag("Instead of ids: all that is long unused and unimportant."),
            "erase": flag("Leave no byte of them; cannot be undone. Only if the user asks for it."),
            "token": text("From the first step: do it now.", most=64),
            "reason": text("What the journal says.", most=200),
        }
    ),
    answer(
        {
            "done": BOOLEAN,
            "token": maybe(STRING),
            "notice": NOTICE,
            "memories": listing(answer({"id": STRING, "text": maybe(STRING)})),
            "kept": listing(answer({"id": STRING, "reason": STRING})),
            "derived": listing(STRING, "Made from them; erased with them."),
            "quarantined": listing(STRING, "Made from them and others; kept out of recall."),
            "restored": listing(STRING, "Come back, because what stood in for them goes."),
            "run": maybe(STRING),
            "left_out": {"type": "integer", "description": "How many of a sweep are not shown."},
            "out_of_reach": listing(STRING, "Where copies may remain that we cannot erase."),
        }
    ),
    "forgetting:forget",
    destroys=True,
    longest=GLIMPSE,
)

LIST_ENTITIES = Tool(
    "list_entities",
    "List entities",
    "Whom and what the memories speak of (people, projects, tools, files ...), where most is "
    "going on first.",
    arguments(
        {
            "prefix": text("Only names that begin so.", most=200),
            "kind": text("Only this kind: person, project, tool, file, concept ...", most=100),
            "min_memories": whole("Mentioned by at least so many memories.", 0, 100_000),
            "limit": whole("At most so many; 30 unless told.", 1, 200),
            "offset": whole("Leave out the first so many.", 0, 100_000),
        }
    ),
    answer(
        {
            "notice": NOTICE,
            "entities": listing(
                answer(
                    {"id": STRING, "kind": STRING, "name": STRING, "aliases": listing(STRING),
                     "mentions": INTEGER, "pace": STRING, "last_seen_at": maybe(STRING)}
                )
            ),
            "more": BOOLEAN,
        }
    ),
    "looking:list_entities",
    reads=True,
    repeatable=True,
)  # fmt: skip

RECALL_FILE = Tool(
    "recall_file",
    "Recall a file's history",
    "What was done to a file and why: edits by day, the reasons given, memories told with "
    "them. Ask before changing a file that others worked on.",
    arguments(
        {
            "path": text("The file's path, or any part of it.", most=4096),
            "intents": whole("At most so many reasons; 10 unless told.", 1, 50),
        },
        "path",
    ),
    answer(
        {
            "notice": NOTICE,
            "paths": listing(STRING),
            "edits": INTEGER,
            "first_at": maybe(STRING),
            "last_at": maybe(STRING),
            "sessions": listing(STRING),
            "days": listing(answer({"day": STRING, "operation": STRING, "times": INTEGER})),
            "intents": listing(answer({"text": STRING, "times": INTEGER, "last_at": STRING})),
            "memories": listing(answer({"id": STRING, "text": STRING, "when": STRING})),
        }
    ),
    "files:recall_file",
    reads=True,
    repeatable=True,
)

EXPLAIN = Tool(
    "explain",
    "Explain an answer",
    "Why a memory is in an answer (the arithmetic of its score), or why it is not (the step at "
    "which it fell out, by how much, and what would bring it in). With query alone: every step "
    "of the walk. With id alone: where the memory comes from.",
    arguments(
        {
            "query": text("The question as it was asked.", most=8192),
            "id": _ID,
            "profile": text("The way of recalling, by name.", most=100),
            "k": whole("At most so many memories, as it was asked.", 1, 50),
        }
    ),
    answer(
        {
            "about": {"type": "string", "enum": ["why", "why_not", "trace", "origin"]},
            "explanation": STRING,
            "stage": maybe(STRING),
            "remedy": STRING,
            "notice": NOTICE,
            "details": OBJECT,
        }
    ),
    "asking:explain",
    reads=True,
    repeatable=True,
)

USUAL = (RECALL, REMEMBER, UPDATE_MEMORY, FORGET, LIST_ENTITIES, RECALL_FILE, EXPLAIN)
