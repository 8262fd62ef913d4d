"""Tools for who asks for them: files read smartly, time, threads, insights, tidying, undoing."""

from __future__ import annotations

from recollect.jsonable import Json
from recollect.mcp.schema import (
    BOOLEAN,
    INTEGER,
    OBJECT,
    STRING,
    answer,
    arguments,
    flag,
    listing,
    maybe,
    number,
    text,
    whole,
)
from recollect.mcp.tool import Tool
from recollect.mcp.tools.shapes import MEMORY, NOTICE
from recollect.model import OPERATIONS

_ID = text("The memory's id, or a part of it that only it has.", most=200)
_LEFT_OUT: Json = {"type": "integer", "description": "How many there are besides."}

READ_SMART = Tool(
    "read_smart",
    "Read a file, or what changed",
    "Read a file of this project. The first time the whole file, later only the functions, "
    "classes and sections that changed since it was last read this way.",
    arguments(
        {
            "path": text("The file, from the project's root.", most=4096),
            "force": flag("The whole file, changed or not."),
        },
        "path",
    ),
    answer(
        {
            "path": STRING,
            "status": STRING,
            "notice": NOTICE,
            "text": maybe(STRING),
            "chunks": listing(OBJECT),
            "removed": listing(STRING),
            "tokens": INTEGER,
            "whole_tokens": INTEGER,
            "reads": INTEGER,
            "notes": listing(STRING),
        }
    ),
    "files:read_smart",
    longest=None,
)

NOTE_EDIT = Tool(
    "note_edit",
    "Note what was done to a file",
    "Keep what was done to a file and why, for recall_file. Told again, it is known already.",
    arguments(
        {
            "path": text("The file's path.", most=4096),
            "operation": text("What was done; edit unless told.", one_of=OPERATIONS),
            "intent": text("To what end.", most=2000),
            "session": text("In which conversation.", most=1000),
            "at": text("When; else now.", most=100),
        },
        "path",
    ),
    answer({"new": INTEGER, "known": INTEGER}),
    "files:note_edit",
)

CONSOLIDATE = Tool(
    "consolidate",
    "Tidy up",
    "Merge near-duplicates and turn clusters of cold memories into one, in two steps: without a "
    "token it shows what would happen; with the token it does exactly that. Nothing is deleted; "
    "undo with the run's id brings everything back.",
    arguments(
        {
            "token": text("From the first step: do it now.", most=64),
            "share": number(
                "The share of the memories that may leave recall; 0.02 unless told.", 0, 0.5
            ),
        }
    ),
    answer(
        {
            "done": BOOLEAN,
            "token": maybe(STRING),
            "run": maybe(STRING),
            "notice": NOTICE,
            "proposals": listing(
                answer(
                    {"job": STRING, "why": STRING, "leaves": listing(STRING), "text": maybe(STRING)}
                )
            ),
            "left": listing(STRING),
            "left_out": {"type": "integer", "description": "How many proposals are not shown."},
        }
    ),
    "keeping:consolidate",
)

UNDO = Tool(
    "undo",
    "Undo a change",
    "Undo the last change of a memory, the last change made here, or a whole run of "
    "consolidate. What was undone can be undone again; what was erased cannot.",
    arguments(
        {
            "id": text("A memory or a run; without one, the last change.", most=200),
            "preview": flag("Only say what would be undone."),
        }
    ),
    answer(
        {
            "done": BOOLEAN,
            "id": STRING,
            "doing": STRING,
            "restored": listing(STRING),
            "taken_back": listing(STRING),
        }
    ),
    "keeping:undo",
)

HISTORY = Tool(
    "history",
    "A memory's revisions",
    "The revisions of a memory, oldest first: what it said before it was corrected. Of many "
    "the newest.",
    arguments(
        {
            "id": _ID,
            "limit": whole("At most so many, the newest; 10 unless told.", 1, 200),
            "offset": whole("Leave out the newest so many.", 0, 100_000),
        },
        "id",
    ),
    answer(
        {
            "notice": NOTICE,
            "revisions": listing(
                answer({"rev": INTEGER, "text": STRING, "from": maybe(STRING), "to": maybe(STRING)})
            ),
            "left_out": _LEFT_OUT,
        }
    ),
    "looking:history",
    reads=True,
    repeatable=True,
)

TIMELINE = Tool(
    "timeline",
    "What came before and after",
    "A memory among those that were stored or said just before and after it, oldest first.",
    arguments(
        {"id": _ID, "window": whole("So many on each side; 5 unless told.", 1, 50)}, "id"
    ),
    answer({"notice": NOTICE, "memories": listing(answer(MEMORY)), "left_out": _LEFT_OUT}),
    "looking:timeline",
    reads=True,
    repeatable=True,
)  # fmt: skip

THREADS = Tool(
    "threads",
    "What is going on",
    "Long-running topics, the last changed first; with an id one of them as a timeline, of "
    "its newest memories.",
    arguments(
        {
            "id": text("One thread.", most=200),
            "limit": whole("At most so many threads, or memories of one; 20 unless told.", 1, 200),
            "offset": whole("Leave out so many: the first threads, the newest memories.",
                            0, 100_000),
        }
    ),
    answer(
        {
            "notice": NOTICE,
            "threads": listing(OBJECT),
            "more": {"type": "boolean", "description": "Whether there are further threads."},
            "left_out": {"type": "integer", "description": "How many older memories it has."},
        }
    ),
    "looking:threads",
    reads=True,
    repeatable=True,
)  # fmt: skip

INSIGHTS = Tool(
    "insights",
    "What it comes to",
    "The tree of insights drawn from the memories, each with what bears it out. What does not "
    "fit is left out from below; with an id, one of them and what is below it.",
    arguments(
        {
            "id": text("One insight.", most=200),
            "offset": whole("Leave out the first so many, those higher up.", 0, 100_000),
        }
    ),
    answer({"notice": NOTICE, "insights": listing(OBJECT), "left_out": _LEFT_OUT}),
    "drawing:insights",
    reads=True,
    repeatable=True,
)

OTHERS = (*(READ_SMART, NOTE_EDIT, CONSOLIDATE, UNDO, HISTORY, TIMELINE, THREADS, INSIGHTS),)
