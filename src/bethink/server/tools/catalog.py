"""Definitions of all tools: the seven default ones, the optional ones, and their schemas.

Schemas of arguments are made from limits or a declaration, those of answers from types.
"""

from __future__ import annotations

from functools import partial
from types import UnionType
from typing import Literal, Union, get_args, get_origin

from bethink.api.options import RecallOptions
from bethink.core.json_values import Json
from bethink.model import LEVELS, OPERATIONS, RELATIONS
from bethink.model.fields import ITEM_FIELDS, ItemField, Limit, input_order
from bethink.server.mcp.view import URI
from bethink.server.tools.tool import Tool

_NAMES: dict[object, str] = {str: "string", int: "integer", float: "number", bool: "boolean"}
_NAMES |= {dict: "object"}


def text(description: str, longest: int = 1000, choices: tuple[str, ...] = ()) -> Json:
    """Schema of a text with a maximum length, or of one of several choices."""
    limit: Json = {"enum": list(choices)} if choices else {"maxLength": longest}
    return {"type": "string", "description": description, **limit}


def whole(description: str, low: int, high: int) -> Json:
    """Schema of a whole number within bounds."""
    return {"type": "integer", "description": description, "minimum": low, "maximum": high}


def number(description: str, low: float, high: float) -> Json:
    """Schema of a number within bounds."""
    return {"type": "number", "description": description, "minimum": low, "maximum": high}


def flag(description: str) -> Json:
    """Schema of a flag that is false by default."""
    return {"type": "boolean", "description": description, "default": False}


def entries(description: str, most: int, item: Json | None = None) -> Json:
    """Schema of a list of short texts, or of other items."""
    items = item or {"type": "string", "maxLength": 1000}
    return {"type": "array", "description": description, "items": items, "maxItems": most}


def arguments(*required: str, **properties: Json) -> Json:
    """Schema of a tool's arguments; unknown names are not allowed, to catch typos."""
    made: Json = {"type": "object", "properties": properties, "additionalProperties": False}
    return made | {"required": list(required)} if required else made


def declared_argument(hint: object) -> Json:
    """Schema of the argument for an annotated keyword: of its types the first, without null."""
    kind, *notes = get_args(hint)
    kinds = get_args(kind) or (kind,)
    description = next(note for note in notes if isinstance(note, str))
    limit = next((note for note in notes if isinstance(note, Limit)), Limit())
    return _argument(kinds[0], description, limit, is_nullable=type(None) in kinds)


def field_argument(field: ItemField) -> Json:
    """Schema of the argument that sets a field of a memory."""
    if field.kind == "words":
        return described(list[str], field.argument)  # the write pipeline has the limits
    kind = {"number": float, "scale": int, "flag": bool}.get(field.kind, str)
    limit = Limit(field.low, field.high, 100 if field.kind == "time" else field.longest)
    return _argument(kind, field.argument, limit, is_nullable=True)


def _argument(kind: type, description: str, limit: Limit, *, is_nullable: bool) -> Json:
    if kind is bool:
        # One that may be null has a default of its own, which is not false.
        return described(bool, description) if is_nullable else flag(description)
    if limit.is_list:
        return entries(description, limit.most, {"type": "string", "maxLength": limit.longest})
    if kind is str:
        return text(description, limit.longest, limit.choices)
    return described(kind, description) | {"minimum": limit.low, "maximum": limit.high}


def record(*optional: str, **properties: object) -> Json:
    """Schema of an object in an answer by the types of its properties.

    All but ``optional`` are required. A type is a Python type, another schema, or a list that
    holds the one of its entries.
    """
    needed = [name for name in properties if name not in optional]
    schemas = {name: schema_of(kind) for name, kind in properties.items()}
    return {"type": "object", "properties": schemas, "required": needed}


def schema_of(kind: object) -> Json:
    """Schema of a value in an answer."""
    if isinstance(kind, dict):
        return kind
    if isinstance(kind, list):
        return {"type": "array", "items": schema_of(kind[0])}
    if get_origin(kind) is Literal:
        return {"type": "string", "enum": [*get_args(kind)]}
    if get_origin(kind) is list:
        return schema_of([*get_args(kind)])
    if get_origin(kind) in (Union, UnionType):
        return nullable(get_args(kind)[0])
    return {"type": _NAMES[kind]}


def described(kind: object, description: str) -> Json:
    """Schema of a value in an answer, with a description."""
    return schema_of(kind) | {"description": description}


def nullable(kind: object) -> Json:
    """Schema of a value that may also be null."""
    schema = schema_of(kind)
    return schema | {"type": [schema["type"], "null"]}


ORIGINS = ("agent", "tool", "web")
SNIPPET_CHARS = 300  # characters of a memory that need only be recognised
ID = text("The memory's id, or a unique part of it.", 200)
SKIP_FIRST = whole("Skip the first N results.", 0, 100_000)
_FORCE = flag("Store it even if it looks like a log.")
_SESSION = text("The conversation it belongs to.")
_TOKEN = text("The token of the preview: apply it now.", 64)
_TEXT_OR_NULL = nullable(str)
_AUDIENCE = text("For people of a server: space (all; the default), private, or names: ann, bob.")

# Parts of the answers of several tools.
MEMORY = record(
    "audience",
    audience=described(str, "Who sees it, where not all of the space do."),
    id=str, text=str, kind=str, level=str, topic=_TEXT_OR_NULL, when=str, trust=int, source=str,
    speaker=_TEXT_OR_NULL, status=str, pinned=bool, flags=list[str],
)  # fmt: skip
COLLISION = record(
    id=str, kind=str, similarity=nullable(float), action=str, text=str, probability=nullable(float),
)  # fmt: skip
HIT = record(
    "audience",
    **MEMORY["properties"],
    passage=described(
        nullable(record(start=int, end=int, tokens=int, of_tokens=int)),
        "Which characters of a long memory the text is; null: all of them.",
    ),
    relevance=nullable(described(float, "Estimated probability that it is on the subject.")),
    score=nullable(float),
    see_newer=nullable(described(str, "A newer memory on the same thing; trust that one.")),
    code=nullable(described(str, "What became of the code that it speaks of.")),
    conflict=nullable(described(str, "What another machine wrote at the same time.")),
    reasons=described(list[str], "How it was found, as fixed labels."),
    relations=described(
        [record(type=str, other=str, text=str, inbound=bool)],
        "Memories that it contradicts, corrects or is corrected by.",
    ),
)
DEGRADED = described(
    [record(part=str, reason=str)], "Components that failed or were skipped, and why."
)
NOTICE = described(str, "How to treat the texts.")
_LEFT_UNDONE = described(list[str], "What was left undone, and why.")
# Fields that can be set when a memory is stored or corrected.
_FIELDS = {
    field.name: field_argument(field)
    for field in input_order(field for field in ITEM_FIELDS if field.argument)
}
# Arguments of the tools that tidy up.
_TIDY: Json = {
    "share": number("Maximum share that may leave recall; default 0.02, or five.", 0, 0.5),
    "min_age_days": number("Leave younger memories alone.", 0, 36_500),
    "scope": {
        "description": "Only memories with these fields.",
        **arguments(
            **{
                name: schema_of(str)
                for name in ("topic", "entity", "kind", "layer", "tag", "source", "session")
            }
        ),
    },
}
# Arguments that tell how a memory relates to another one.
_RELATION: Json = {
    "relation": text("How it relates to the other.", choices=RELATIONS),
    "other": text("Id of the other memory.", 200),
}
RELATION_SCHEMA = arguments("relation", "other", **_RELATION)
# The options of a recall that tools offer, in their order.
RECALL_OPTIONS = (
    *("entity", "kind", "layer", "band", "topic", "tag", "user", "since", "until", "as_of", "k"),
    *("episode_k", "max_tokens", "offset", "cursor", "track", "profile", "whole"),
    *("min_confidence", "min_relevance", "turns_before", "own_session", "include_superseded"),
)
_recalling = partial(Tool, module="bethink.server.tools.recall")
_browsing = partial(Tool, module="bethink.server.tools.browse")
_writing = partial(Tool, module="bethink.server.tools.write")
EXPLAIN_OPTIONS = ("profile", "k", "min_relevance", "turns_before", "own_session")

RECALL = _recalling(
    "recall",
    "Recall memories",
    "Find memories that answer a question: decisions, facts, preferences, earlier work. "
    "Call it before a task and whenever earlier work may matter. Returns the best "
    "match first, each with its id, reasons and trust. The status says whether they are "
    "on the subject (found) or may be related (unsure), or why there are none.",
    arguments(
        query=text("The question in plain words; optional with a filter.", 8192),
        **{
            "mark_accessed" if name == "track" else name: declared_argument(
                RecallOptions.__annotations__[name]
            )
            for name in RECALL_OPTIONS
        },
    ),
    record(
        status=described(
            Literal["found", "unsure", "nothing_matched", "nothing_stored"],
            "unsure: they may be related.",
        ),
        reason=str,
        confidence=number("Estimated probability that something stored is on the subject.", 0, 1),
        notice=NOTICE,
        memories=[HIT],
        returned=int,
        left_out=described(int, "Number of further results; get them with cursor."),
        stopped_by=str,
        cursor=_TEXT_OR_NULL,
        tokens=int,
        captions=list[str],
        warnings=list[str],
        degraded=DEGRADED,
        nearest_miss=nullable(
            record(
                "audience", **MEMORY["properties"], relevance=nullable(float), score=nullable(float)
            )
        ),
        profile=str,
    ),
    read_only=True,
    max_text=None,
    view=URI,
)

REMEMBER = _writing(
    "remember",
    "Remember something",
    "Store one memory that will matter later: a decision and its reason, a fact, a preference, "
    "a caveat. One statement that makes sense without this conversation; not logs, not whole "
    "files, not what recall returned. The answer lists what it repeats, corrects or contradicts.",
    arguments(
        "text",
        text=text("The memory.", 65_536),
        **_FIELDS,
        level=text("raw: a verbatim episode; default item.", choices=LEVELS[:2]),
        session=_SESSION,
        speaker=text("Who said it."),
        user=text("Whose it is."),
        audience=_AUDIENCE,
        relations=entries("Relations to memories.", 16, RELATION_SCHEMA),
        origin=text(
            "agent (default), tool (a program's output), web (a page by others).", choices=ORIGINS
        ),
        source=text("Path, URL or name of its origin.", 500),
        key=text("Repeated with it, nothing is stored.", 200),
        force=_FORCE,
    ),
    record(
        id=str,
        status=described(
            Literal["stored", "duplicate", "repeated", "waiting", "left_out"],
            "waiting: in the inbox, for the user to review; left_out: a turn without content.",
        ),
        collisions=[COLLISION],
        redacted=described(list[str], "Kinds of secrets that were removed."),
        entities=list[str],
        flags=list[str],
        pending=list[str],
    ),
    idempotent=True,
)

UPDATE_MEMORY = _writing(
    "update_memory",
    "Correct a memory",
    "Correct the text or other fields of a memory. Its id stays, and the old text can be "
    "restored. Prefer this to storing a second version.",
    arguments(
        "id",
        id=ID,
        text=text("The new text.", 65_536),
        **_FIELDS,
        audience=_AUDIENCE,
        force=_FORCE,
        revision=whole("The rev you read; refused if outdated.", 1, 2**31),
    ),
    record(
        "erased", id=str, rev=int, changed=list[str], erased=list[str], notice=NOTICE, memory=MEMORY
    ),
    idempotent=True,
)

FORGET = _writing(
    "forget",
    "Forget memories",
    "Remove memories from recall, in two steps. With ids (or sweep) nothing changes: it returns "
    "a preview, which you show to the user, and a token. Then call it again with the token as "
    "well. Forgotten memories can be restored, erased ones cannot.",
    arguments(
        ids=entries("Ids of the memories.", 100),
        sweep=flag("Instead of ids: all that are long unused and unimportant."),
        erase=flag("Delete them permanently; cannot be undone. Only if the user asks for it."),
        token=_TOKEN,
        reason=text("Reason for the journal.", 200),
        **_TIDY,
    ),
    record(
        done=bool,
        token=_TEXT_OR_NULL,
        notice=NOTICE,
        memories=[record(id=str, text=_TEXT_OR_NULL)],
        kept=[record(id=str, reason=str)],
        derived=described(list[str], "Derived from them; erased with them."),
        quarantined=described(list[str], "Derived from them and others; quarantined."),
        restored=described(list[str], "Restored, because the memory that replaced them goes."),
        run=_TEXT_OR_NULL,
        left_out=described(int, "Number of memories of a sweep that are not shown."),
        left=_LEFT_UNDONE,
        out_of_reach=described(list[str], "Places where copies may remain."),
    ),
    destructive=True,
    max_text=SNIPPET_CHARS,
)

LIST_ENTITIES = _browsing(
    "list_entities",
    "List entities",
    "List the entities that memories mention (people, projects, tools, files ...), the most "
    "active first.",
    arguments(
        prefix=text("Only names with this prefix.", 200),
        kind=text("Only this kind: person, project, tool, file ...", 100),
        min_memories=whole("Mentioned at least this often.", 0, 100_000),
        limit=whole("Maximum number of results; default 30.", 1, 200),
        offset=SKIP_FIRST,
    ),
    record(
        notice=NOTICE,
        entities=[
            record(id=str, kind=str, name=str, aliases=list[str], mentions=int, pace=str,
                   last_seen_at=_TEXT_OR_NULL)
        ],
        more=bool,
    ),
    read_only=True,
)  # fmt: skip

RECALL_FILE = _recalling(
    "recall_file",
    "Recall a file's history",
    "Show what is known of a file: memories, edits by day and their reasons. Call it "
    "before you change a file that others worked on.",
    arguments(
        "path",
        path=text("The file's path, or any part of it, or path::symbol.", 4096),
        intents=whole("Maximum reasons; default 10.", 1, 50),
    ),
    record(
        notice=NOTICE,
        paths=list[str],
        edits=int,
        first_at=_TEXT_OR_NULL,
        last_at=_TEXT_OR_NULL,
        sessions=list[str],
        days=[record(day=str, operation=str, times=int)],
        intents=[record(text=str, times=int, last_at=str)],
        memories=[record(id=str, text=str, when=str, code=str)],
    ),
    read_only=True,
)

EXPLAIN = _recalling(
    "explain",
    "Explain an answer",
    "Explain why a memory is in an answer (its score) or not (the stage that dropped it, and how "
    "to include it). With query alone: every step. With id alone: the memory's provenance.",
    arguments(
        query=text("The question, as given to recall.", 8192),
        id=ID,
        profile=text("As given to recall.", 100),
        k=whole("As given to recall.", 1, 50),
        **{name: RECALL.input_schema["properties"][name] for name in EXPLAIN_OPTIONS[2:]},
    ),
    record(
        about=Literal["why", "why_not", "trace", "origin"],
        explanation=str,
        stage=_TEXT_OR_NULL,
        remedy=str,
        notice=NOTICE,
        details=dict,
    ),
    read_only=True,
)

DEFAULT_TOOLS = (RECALL, REMEMBER, UPDATE_MEMORY, FORGET, LIST_ENTITIES, RECALL_FILE, EXPLAIN)
_LEFT_OUT = described(int, "Number of entries that are not shown.")

READ_SMART = _recalling(
    "read_smart",
    "Read a file or its changes",
    "Read a file of this project. The first call returns the whole file, later calls only the "
    "functions, classes and sections that changed since the last call.",
    arguments(
        "path",
        path=text("The file's path, relative to the project's root.", 4096),
        force=flag("Return the whole file, changed or not."),
    ),
    record(
        path=str,
        status=str,
        notice=NOTICE,
        text=_TEXT_OR_NULL,
        chunks=[dict],
        removed=list[str],
        tokens=int,
        whole_tokens=int,
        reads=int,
        notes=list[str],
    ),
    max_text=None,
)

NOTE_EDIT = _recalling(
    "note_edit",
    "Record a file edit",
    "Record what was done to a file and why, for recall_file. Recording an edit twice has no "
    "effect.",
    arguments(
        "path",
        path=text("The file's path.", 4096),
        operation=text("What was done; default edit.", choices=OPERATIONS),
        intent=text("Why it was made.", 2000),
        session=_SESSION,
        at=text("When it was made; default now.", 100),
        item=text("Id of a memory about it, which recall_file then shows.", 200),
    ),
    record(new=int, known=int),
)

CONSOLIDATE = _browsing(
    "consolidate",
    "Consolidate memories",
    "Merge near-duplicates, and condense groups of unused memories into one, in two steps. "
    "Without a token it returns a preview and a token; with that token it applies the preview. "
    "Nothing is deleted; undo with the run's id restores everything.",
    arguments(
        token=_TOKEN,
        **_TIDY,
        similarity=number(
            "Cosine from which other wordings are duplicates, too, such as 0.95.", 0.5, 1
        ),
    ),
    record(
        done=bool,
        token=_TEXT_OR_NULL,
        run=_TEXT_OR_NULL,
        notice=NOTICE,
        proposals=[record(job=str, why=str, leaves=list[str], text=_TEXT_OR_NULL)],
        left=_LEFT_UNDONE,
        left_out=described(int, "Number of proposals that are not shown."),
    ),
)

UNDO = _browsing(
    "undo",
    "Undo a change",
    "Undo the last change of a memory, the last change made here, or a whole run of "
    "consolidate. An undo can itself be undone; an erasure cannot.",
    arguments(
        id=text("Id of a memory or a run; default: the last change.", 200),
        preview=flag("Only show what would be undone."),
    ),
    record(done=bool, id=str, doing=str, restored=list[str], taken_back=list[str]),
)

HISTORY = _browsing(
    "history",
    "A memory's revisions",
    "List the revisions of a memory, oldest first: its text before each correction. If there "
    "are many, the newest ones.",
    arguments(
        "id",
        id=ID,
        limit=whole("Maximum number of revisions, the newest; default 10.", 1, 200),
        offset=whole("Skip the newest N revisions.", 0, 100_000),
    ),
    record(
        notice=NOTICE,
        revisions=[record(rev=int, text=str, **dict.fromkeys(("from", "to"), _TEXT_OR_NULL))],
        left_out=_LEFT_OUT,
    ),
    read_only=True,
)

TIMELINE = _browsing(
    "timeline",
    "Memories before and after",
    "Show a memory with those stored or said just before and after it, oldest first.",
    arguments("id", id=ID, window=whole("Memories on each side; default 5.", 1, 50)),
    record(notice=NOTICE, memories=[MEMORY], left_out=_LEFT_OUT),
    read_only=True,
)

THREADS = _browsing(
    "threads",
    "List ongoing topics",
    "List long-running topics (threads), the last changed first. With an id: one thread as a "
    "timeline of its newest memories.",
    arguments(
        id=text("Id of one thread.", 200),
        limit=whole("Maximum number of threads, or of memories of one; default 20.", 1, 200),
        offset=whole("Skip the first N threads, or the newest N memories of one.", 0, 100_000),
    ),
    record(
        notice=NOTICE,
        threads=[dict],
        more=described(bool, "Whether there are more threads."),
        left_out=described(int, "Number of older memories that are not shown."),
    ),
    read_only=True,
)

INSIGHTS = _browsing(
    "insights",
    "Show the insight tree",
    "Show the tree of insights derived from the memories, each with its sources. If it is too "
    "long, the lowest ones are not shown. With an id: one insight and those below it.",
    arguments(
        id=text("Id of one insight.", 200),
        offset=whole("Skip the first N insights, from the top.", 0, 100_000),
    ),
    record(notice=NOTICE, insights=[dict], left_out=_LEFT_OUT),
    read_only=True,
)

LINK = _writing(
    "link",
    "Relate two memories",
    "Say how a memory relates to another one, or with remove take such a relation back. A "
    "memory that is superseded leaves recall. Undo takes back either.",
    arguments(
        *("id", "relation", "other"),
        id=ID,
        **_RELATION,
        weight=number("How strongly; default 0.5.", 0.01, 1),
        remove=flag("Remove the relation."),
    ),
    record(status=Literal["linked", "removed", "unchanged"], id=str, relation=str, other=str),
    idempotent=True,
)

OPTIONAL_TOOLS = (
    *(READ_SMART, NOTE_EDIT, CONSOLIDATE, UNDO, HISTORY, TIMELINE, THREADS, INSIGHTS, LINK),
)
