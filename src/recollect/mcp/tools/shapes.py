"""Shapes that the answers of several tools share."""

from __future__ import annotations

from recollect.jsonable import Json
from recollect.mcp.schema import BOOLEAN, INTEGER, NUMBER, STRING, answer, listing, maybe

MEMORY: Json = {
    "id": STRING,
    "text": STRING,
    "kind": STRING,
    "level": STRING,
    "topic": maybe(STRING),
    "when": STRING,
    "trust": INTEGER,
    "source": STRING,
    "speaker": maybe(STRING),
    "status": STRING,
    "pinned": BOOLEAN,
    "flags": listing(STRING),
}
HIT: Json = {
    **MEMORY,
    "score": maybe(NUMBER),
    "reasons": listing(STRING, "How it was found, in fixed words."),
    "relations": listing(
        answer({"type": STRING, "other": STRING, "text": STRING, "inbound": BOOLEAN}),
        "What contradicts, corrects or is corrected by it.",
    ),
}
DEGRADED: Json = listing(
    answer({"part": STRING, "reason": STRING}), "Parts that could not do their work, and why."
)
NOTICE: Json = {"type": "string", "description": "How to read the texts."}
