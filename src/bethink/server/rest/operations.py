"""Operations that only the REST API has, as tools: browsing, batches, and the inspector's."""

from __future__ import annotations

from typing import Literal

from bethink.api.browse import MAX_PLACE
from bethink.core.json_values import Json
from bethink.model.fields import ITEM_FIELDS
from bethink.server.tools.catalog import (
    DEGRADED,
    HIT,
    ID,
    MEMORY,
    NOTICE,
    RECALL,
    REMEMBER,
    SKIP_FIRST,
    arguments,
    described,
    entries,
    flag,
    nullable,
    number,
    record,
    schema_of,
    text,
    whole,
)
from bethink.server.tools.tool import Tool

MAX_BATCH = 500
MAX_VALUES = 32  # of 64 KiB each: what fits into one answer
_HANDLERS = "bethink.server.rest.handlers"
_VALUES = "bethink.server.rest.values"
_FIELD_TYPES: dict[str, object] = {
    "words": list[str],
    "scale": int,
    "whole": int,
    "number": float,
    "flag": bool,
    "object": dict,
}
# Times that every memory has.
_GIVEN_TIMES = ("stored_at", "live_from")


def _reading(name: str, title: str, description: str, takes: Json, gives: Json) -> Tool:
    """Make an operation that changes nothing."""
    return Tool(name, title, description, takes, gives, _HANDLERS, read_only=True)


def _item_schema() -> Json:
    """Make the schema of a memory with all its fields."""
    made: Json = {}
    for field in ITEM_FIELDS:
        if field.in_json:
            schema = schema_of(_FIELD_TYPES.get(field.kind, str))
            empty = (field.nullable and field.kind != "words") or (
                field.kind == "time" and field.name not in _GIVEN_TIMES
            )
            made[field.name] = nullable(schema) if empty else schema
    return record(**made)


GET_MEMORY = _reading(
    "get_memory",
    "Get a memory",
    "Get one memory with all its fields, by its id.",
    arguments("id", id=ID),
    record(notice=NOTICE, memory=_item_schema()),
)
FILTERS: Json = {
    "kind": text("Only this kind."),
    "topic": text("Only this topic."),
    "tag": text("Only with this tag."),
    "entity": text("Only memories that mention it."),
    "source": text("Only from this source."),
    "session": text("Only from this conversation."),
    "user": text("Only this user's."),
    "since": text("Happened at or after this time.", 100),
    "until": text("Happened before this time.", 100),
}
QUESTION_FILTERS = {
    name: schema for name, schema in FILTERS.items() if name not in ("source", "session")
}

LIST_MEMORIES = _reading(
    "list_memories",
    "List memories",
    "List stored memories, newest first, in pages; a page of long texts ends early.",
    arguments(
        **FILTERS,
        stored_by=text("Stored at or before this time.", 100),
        limit=whole("Maximum number of results; default 50.", 1, 500),
        preview=whole("Cut the texts to this many characters.", 20, 10_000),
        after=text("The cursor of an earlier answer; returns its next page.", 200),
        offset=whole("Leave out this many first.", 0, MAX_PLACE),
        with_total=described(bool, "Also count all that match."),
    ),
    record(notice=NOTICE, memories=[MEMORY], cursor=nullable(str), total=nullable(int)),
)

REMEMBER_MANY = Tool(
    "remember_many",
    "Remember several memories",
    "Store up to 500 memories. Each is stored or refused on its own; the answer says which.",
    arguments(
        "memories",
        memories=entries(
            "The memories, each with the fields of `remember`.", MAX_BATCH, REMEMBER.input_schema
        ),
    ),
    record(
        stored=int,
        refused=int,
        results=described(
            [
                record(
                    *("id", "error"),
                    id=str,
                    status=str,
                    error=record(kind=str, message=str, remedy=str),
                )
            ],
            "In the order of the memories.",
        ),
    ),
    _HANDLERS,
    idempotent=True,
)

RESTORE = Tool(
    "restore",
    "Restore memories",
    "Restore forgotten memories. Erased memories cannot be restored.",
    arguments("ids", ids=entries("Ids of the memories.", 100)),
    record(restored=list[str]),
    _HANDLERS,
    idempotent=True,
)

_WAITING = record(
    **dict.fromkeys(("id", "text", "state", "reason", "since"), str),
    **dict.fromkeys(("source", "source_class", "level"), str),
    **dict.fromkeys(("kind", "topic", "speaker"), nullable(str)),
    worth=nullable(float), flags=list[str],
)  # fmt: skip

INBOX = _reading(
    "inbox",
    "List the inbox",
    "List memories that wait for a review, outside of every recall, oldest first.",
    arguments(
        source=text("Only of this source or class of sources."),
        refused=described(bool, "Those that were refused, instead."),
        limit=whole("Maximum number of results; default 50.", 1, 500),
        offset=SKIP_FIRST,
    ),
    record(notice=NOTICE, waiting=[_WAITING], total=int),
)

REVIEW = Tool(
    "review",
    "Review memories of the inbox",
    "Accept memories of the inbox into recall, refuse them, merge them into one memory, or undo "
    "the last decision about each.",
    arguments(
        *("ids", "decision"),
        ids=entries("Ids of the memories.", 500),
        decision=text("What becomes of them.", choices=("accept", "refuse", "merge", "undo")),
        text=text("With accept and merge: the new text.", 65_536),
        into=text("With merge: the id of a stored memory to add them to."),
    ),
    record(decision=str, ids=list[str]),
    _HANDLERS,
)
_NODE = record(kind=str, id=str)

LINKS = _reading(
    "links",
    "A memory's links",
    "List a memory's links to others: implies, contradicts, supersedes ...",
    arguments(
        "id",
        id=ID,
        limit=whole("Maximum number of results; default 100.", 1, 1000),
        offset=SKIP_FIRST,
    ),
    record(
        left_out=described(int, "Number of further links."),
        links=[
            record(
                **{"from": _NODE, "type": str, "to": _NODE},
                weight=float,
                confidence=float,
                source=str,
            )
        ],
    ),
)

STATS = _reading(
    "stats",
    "Counts and sizes",
    "Show the number of memories by kind, and the models in use.",
    arguments(),
    record(space=str, memories=int, entities=int, by_kind=dict),
)

EVENTS = _reading(
    "events",
    "The journal",
    "List the journal: who changed which memory, and when. It never contains a memory's text.",
    arguments(
        after=whole("Only events after this number.", 0, 2**53),
        limit=whole("Maximum number of results; default 100.", 1, 1000),
    ),
    record(events=[record(seq=int, at=str, kind=str, item=nullable(str), actor=str, detail=str)]),
)

_QUESTION = record(
    query=str,
    relevant=described(nullable(list[str]), "Ids of the memories that answer it; null: not said."),
    wrong=described(list[str], "Ids of memories that do not."),
    filters=dict,
    now=described(str, "When it was saved."),
)

QUESTIONS = _reading(
    "questions", "List the saved questions",
    "List the questions that were saved, with the memories marked as right and wrong answers. "
    "One per line is a file for `bethink eval jsonl`.",
    arguments(), record(questions=[_QUESTION]),
)  # fmt: skip

SAVE_QUESTION = Tool(
    "save_question", "Save a question",
    "Save a question in place of one with the same words, and say which memories answer it.",
    arguments(
        "query",
        query=text("The question.", 8192),
        relevant=entries("Ids of the memories that answer it; empty: nothing stored does.", 100),
        wrong=entries("Ids of memories that do not answer it.", 100),
        remove=described(bool, "Remove it instead."),
        **QUESTION_FILTERS,
    ),
    record(questions=[_QUESTION]), _HANDLERS, idempotent=True,
)  # fmt: skip

CONFLICTS = _reading(
    "conflicts", "List the conflicts",
    "List the memories that were changed on two machines at once, with the other versions.",
    arguments(),
    record(
        notice=NOTICE,
        conflicts=[record(memory=MEMORY, others=[record(kind=str, device=str, at=str, text=str)])],
    ),
)  # fmt: skip

SETTLE = Tool(
    "settle", "Settle a conflict", "Decide for all machines which version of a memory holds.",
    arguments(
        "id", "keep", id=ID, keep=text("What to keep.", choices=("current", "other", "both"))
    ),
    record(id=str, text=str), _HANDLERS,
)  # fmt: skip

SYNC_STATUS = _reading(
    "sync_status", "Show the state of sync",
    "Show this machine, the others, the targets, and a hash that is equal where the memories are.",
    arguments(),
    record(
        name=str, device=str, devices=[record(id=str, name=str)], conflicts=int, hash=str,
        targets=[record(target=str, ceiling=int, last=str)],
    ),
)  # fmt: skip

_SCORE = nullable(float)
_RANKS: Json = {
    "type": "object",
    "description": "Rank and score by the name of the retriever.",
    "additionalProperties": record(rank=nullable(int), score=_SCORE),
}
_INSPECTED_HIT = record(
    "audience",
    **HIT["properties"],
    rev=int,
    tags=list[str],
    entities=list[str],
    occurred_at=nullable(str),
    stored_at=str,
    valid_to=nullable(str),
    importance=float,
    classification=int,
    recalls=int,
    tokens=int,
    words=described(list[str], "Words of the text that match words of the question."),
    in_context=described(bool, "Whether an agent gets it within its tokens."),
    evidence=[
        record(
            *("via", "rank"),
            by=str,
            op=Literal["seen", "add", "times", "set"],
            value=_SCORE,
            why=str,
            via=str,
            rank=int,
        )
    ],
    channels=_RANKS,
)
_CANDIDATE = record(rank=int, id=str, level=str, score=_SCORE, text=str, channels=_RANKS)
_TRACE = record(
    milliseconds=float,
    strategy=str,
    profile=str,
    cached=bool,
    truncated=bool,
    steps=[
        record(
            step=str,
            status=str,
            milliseconds=float,
            came_in=int,
            left=int,
            note=str,
            candidates=[_CANDIDATE],
        )
    ],
    merge=record(channels=int, came_in=int, duplicates=int, left=int),
    final=dict,
)
_WHY_NOT = record(
    id=str,
    text=str,
    returned=bool,
    stage=str,
    reason=str,
    score=_SCORE,
    needed=_SCORE,
    remedy=str,
    channels=[record(channel=str, score=_SCORE, needed=_SCORE, why=str)],
)
_RECALL_ARGUMENTS = {
    name: schema
    for name, schema in RECALL.input_schema["properties"].items()
    if name not in ("mark_accessed", "cursor")
}

INSPECT = _reading(
    "inspect",
    "Recall with everything that happened",
    "Answer a question as recall does, and return all that led to the answer: the evidence of "
    "every hit, every step with its candidates, the text an agent gets. With an id also why "
    "that memory is in the answer or is not. No use is recorded.",
    arguments(
        **_RECALL_ARGUMENTS,
        id=text("Explain the place of this memory, too.", 200),
        candidates=whole("Candidates per step; default 20.", 0, 200),
    ),
    record(
        notice=NOTICE,
        query=record(
            text=str, now=str, as_of=nullable(str), k=int, max_tokens=int, offset=int, filters=dict
        ),
        profile=str,
        strategy=str,
        status=RECALL.output_schema["properties"]["status"],
        reason=str,
        confidence=float,
        confidence_reasons=[record(feature=str, value=float, contribution=float, why=str)],
        hits=[_INSPECTED_HIT],
        total=described(int, "Number of memories that passed every step."),
        context=record(text=str, tokens=int),
        captions=list[str],
        warnings=list[str],
        degraded=DEGRADED,
        nearest_miss=RECALL.output_schema["properties"]["nearest_miss"],
        trace=_TRACE,
        why_not=nullable(_WHY_NOT),
    ),
)

PROFILES = _reading(
    "profiles",
    "List the profiles",
    "List the profiles that a recall can use.",
    arguments(),
    record(
        profiles=[
            record(
                name=str,
                title=str,
                deep=described(bool, "Whether it uses a language model."),
                default=bool,
                parts=described(list[str], "Its retrievers and stages, in order."),
            )
        ]
    ),
)

USAGE = _reading(
    "usage",
    "A memory's use",
    "Show how often and when a memory was recalled.",
    arguments("id", id=ID),
    record(
        recalls=int,
        in_30_days=int,
        in_90_days=int,
        last_at=nullable(str),
        stamps=described(list[str], "The last recalls, oldest first."),
    ),
)

GRAPH = _reading(
    "graph",
    "What surrounds a memory or an entity",
    "Show the neighbourhood of a memory or an entity: memories and entities as nodes, links and "
    "mentions as edges, nearest first.",
    arguments(
        "node",
        node=text("A memory's id, or an entity like person:alice.", 300),
        depth=whole("Steps away from it; default 2.", 1, 4),
        limit=whole("Maximum number of nodes; default 100.", 2, 300),
    ),
    record(
        notice=NOTICE,
        nodes=[record(id=str, what=Literal["memory", "entity"], label=str, kind=str, hop=int)],
        edges=[record(**{"from": str, "to": str}, type=str, weight=float)],
        more=described(bool, "Whether nodes were left out."),
    ),
)

TIMES = _reading(
    "times",
    "How many memories by day",
    "Count the memories by the day they happened, and list the conversations with their first "
    "and last moment.",
    arguments(**FILTERS),
    record(
        days=[record(day=str, count=int, kinds=dict)],
        sessions=described(
            [record(session=str, first=str, last=str, count=int)],
            "The last conversations, newest first.",
        ),
        counted=int,
    ),
)

MAINTENANCE = _reading(
    "maintenance",
    "List the maintenance runs",
    "List the last runs of maintenance, newest first, with what each job did.",
    arguments(limit=whole("Maximum number of runs; default 20.", 1, 200)),
    record(runs=[record(run=str, at=str, jobs=dict)]),
)

_NAMESPACE = entries("The labels of a namespace.", 60)
_PLACE = {"namespace": _NAMESPACE, "key": text("The key in the namespace.")}
_PATH = entries("Labels; * is any one.", 60)
GET_VALUE = arguments("namespace", "key", **_PLACE)
SEARCH_VALUES = arguments(
    "namespace",
    namespace=_NAMESPACE | {"description": "Only below these labels."},
    query=text("A question; without one the newest come first.", 8192),
    filter=described(dict, "Fields of a value and what they must be: a value or {$gte: 3}."),
    limit=whole("Maximum number of results; default 10.", 0, 1000),
    offset=SKIP_FIRST,
    abstain=flag("Only what is relevant to the question, possibly nothing."),
    profile=text("Name of the profile.", 100),
)
LIST_NAMESPACES = arguments(
    prefix=_PATH,
    suffix=_PATH,
    max_depth=whole("Cut namespaces to this many labels.", 1, 60),
    limit=whole("Maximum number of results; default 100.", 0, 1000),
    offset=SKIP_FIRST,
)
PUT_VALUE = arguments(
    *("namespace", "key"),
    **_PLACE,
    value=described(dict, "A JSON object of up to 64 KiB; left out or null: remove it."),
    texts=entries("What is searched of it; default: all its texts.", 1000),
    indexed=described(bool, "False: no question finds it."),
    ttl_minutes=number("How long it lives after its last use.", 0, 10**9),
)
VALUE = record(
    *("status", "confidence"),
    id=described(str, "Of the memory that holds it."),
    namespace=list[str],
    key=str,
    value=dict,
    created_at=str,
    updated_at=str,
    score=nullable(float),
    status=described(str, "Of the answer it is part of, with abstain."),
    confidence=float,
)

FIND_VALUES = Tool(
    "find_values",
    "Find values under namespaces",
    "Get values by their keys, search them, list their namespaces: a key-value store whose "
    "search is a recall, the same that BethinkStore is for LangGraph.",
    arguments(
        get=entries("Values to get.", MAX_VALUES, GET_VALUE),
        search=entries("Searches below a namespace.", MAX_VALUES, SEARCH_VALUES),
        namespaces=entries("Lists of namespaces.", MAX_VALUES, LIST_NAMESPACES),
    ),
    record(
        notice=NOTICE,
        get=[nullable(VALUE)],
        search=[record(values=[VALUE], more=described(bool, "Go on with offset."))],
        namespaces=[{"type": "array", "items": schema_of(list[str])}],
    ),
    _VALUES,
    read_only=True,
)

PUT_VALUES = Tool(
    "put_values",
    "Store values under namespaces",
    "Store, replace and remove values; all that is wrong is refused before anything is stored. "
    "Repeating it changes nothing.",
    arguments("values", values=entries("The values.", MAX_VALUES, PUT_VALUE)),
    record(redacted=described([record(place=str, kinds=list[str])], "Secrets that were removed.")),
    _VALUES,
    idempotent=True,
)
