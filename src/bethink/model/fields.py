"""The table of item fields: what each is, where it is stored, shown and accepted.

Admission, SQLite rows, exports, JSON, command line and tools read it. A new stored field is
a line here, a field of `Item` (and of `Draft` where callers may set it) and a migration.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from bethink.core.named_tuple import NamedTuple
from bethink.model.item import LEVELS, STATUSES

FieldKind = Literal[
    "id", "text", "word", "choice", "words", "scale", "whole", "number", "flag", "time", "object"
]
# The order in which commands and tools list the fields that they accept.
_INPUT_ORDER: tuple[tuple[FieldKind, ...], ...] = (
    ("id", "text", "word", "choice"),
    ("words",),
    ("number", "scale", "whole"),
    ("flag",),
    ("time",),
    ("object",),
)
_INPUT_PLACE = {kind: place for place, kinds in enumerate(_INPUT_ORDER) for kind in kinds}


class Limit(NamedTuple):
    """Limits of an argument: bounds, characters or choices of a text, entries of a list."""

    low: float | None = None
    high: float | None = None
    longest: int = 1000
    choices: tuple[str, ...] = ()
    most: int = 64
    is_list: bool = False


class ItemField(NamedTuple):
    """One field of an item.

    ``word`` is a short text, ``words`` a list of them, ``scale`` a whole number from ``low``
    to ``high``. ``content`` is the place among the columns that a revision never changes and
    its hash covers, so a number once given stays. ``state`` columns may change; a field that
    is neither is computed from use. ``nullable`` is about what is stored. ``given``: callers
    may set it, after which a text is searched for secrets, and ``trimmed`` where it says so.
    ``option`` is the help of the command-line option, ``flag`` the option's name where it
    differs; ``argument`` is the description in the tools' schemas, ``longest`` the characters
    they accept. Empty: there is none.
    """

    name: str
    kind: FieldKind
    content: int | None = None
    state: bool = False
    nullable: bool = False
    low: float = 0
    high: float = 0
    choices: tuple[str, ...] = ()
    given: bool = False
    trimmed: bool = False
    in_json: bool = True
    shown: bool = True
    longest: int = 1000
    option: str = ""
    flag: str = ""
    argument: str = ""


# Numbers of `content` that no field may take: what the store keeps with each revision.
RESERVED_CONTENT = {8: "about", 42: "fingerprint"}  # words to find it by; duplicate detection

ITEM_FIELDS: tuple[ItemField, ...] = (
    ItemField("id", "id", 0, given=True, shown=False),
    ItemField("rev", "whole", 1, low=1, shown=False),
    ItemField("text", "text", 7, given=True, shown=False),
    ItemField(
        "kind", "word", 3, given=True, trimmed=True,
        option="decision, fact, event, ...; detected if omitted.",
        argument="Such as decision, fact, preference, event.",
    ),
    ItemField("level", "choice", 2, choices=LEVELS, given=True),
    ItemField(
        "layer", "word", 4, nullable=True, given=True, trimmed=True, longest=40,
        option="goal, context, emotion, implementation, caveat, learning, or an alias.",
        argument="goal, context, emotion, implementation, caveat or learning.",
    ),
    ItemField(
        "topic", "word", 5, nullable=True, given=True, trimmed=True,
        option="Topic, in a word or two.",
        argument="A topic to file it under.",
    ),
    ItemField(
        "tier", "word", 6, given=True, trimmed=True,
        option="Tier: core, general or your own.",
    ),
    ItemField(
        "tags", "words", 38, given=True,
        option="Tag; may be repeated.", flag="tag", argument="Tags.",
    ),
    ItemField(
        "entities", "words", 39, given=True,
        option="Entity that it mentions: NAME, KIND:NAME or KIND:NAME <KEY>; may be repeated.",
        flag="entity",
        argument="Names not in the text; kind:Name <email, domain or path> is one under all names.",
    ),
    ItemField(
        "caption", "word", 10, nullable=True, given=True, trimmed=True,
        option="Short title.", argument="Short title.",
    ),
    ItemField(
        "speaker", "word", 12, nullable=True, given=True, trimmed=True,
        option="Who said it.",
    ),
    ItemField("session", "word", 13, nullable=True, given=True, trimmed=True),
    ItemField("seq", "whole", 14, nullable=True, given=True, high=2**53),
    ItemField("parent", "id", 15, nullable=True, given=True),
    ItemField("subject", "word", 16, nullable=True),
    ItemField("attribute", "word", 17, nullable=True),
    ItemField("source", "word", 18, given=True, shown=False),
    ItemField("source_class", "word", 19, given=True, shown=False),
    ItemField("writer", "word", 20, shown=False),
    ItemField("stored_at", "time", 33, shown=False),
    ItemField(
        "occurred_at", "time", 31, nullable=True, given=True,
        option="When it happened.",
        argument="When it happened: 2026-05-07, or in words.",
    ),
    ItemField(
        "occurred_end", "time", 32, nullable=True, given=True, option="When it ended."
    ),
    ItemField(
        "valid_from", "time", 34, nullable=True, given=True, option="Start of its validity."
    ),
    ItemField(
        "valid_to", "time", 35, nullable=True, given=True,
        option="End of its validity.", argument="When it stops being valid.",
    ),
    ItemField("live_from", "time", 36, shown=False),
    ItemField("status", "choice", state=True, choices=STATUSES),
    ItemField("live_to", "time", state=True, nullable=True),
    ItemField("ended_by", "word", state=True, nullable=True),
    ItemField("flags", "words", 40),
    ItemField(
        "importance", "number", 26, high=1, given=True,
        option="How important it is; default 0.5.", argument="From 0 to 1; default 0.5.",
    ),
    ItemField(
        "confidence", "number", 27, high=1, given=True,
        option="How certain it is; default 1.", argument="How certain it is; default 1.",
    ),
    ItemField(
        "emotion", "number", 25, low=-5, high=5, given=True,
        option="From -5 (distress) to 5 (joy).",
    ),
    ItemField("relevance", "number", 28, shown=False),
    ItemField("decay", "number", shown=False),
    ItemField("pinned", "flag", 29, given=True, argument="Never forget it automatically."),
    ItemField("protected", "flag", 30),
    ItemField(
        "trust", "scale", 21, high=3, given=True, shown=False,
        option="From 0 (unknown) to 3 (owner).",
    ),
    ItemField(
        "integrity", "scale", 22, high=4, given=True,
        option="How unaltered it is; 4 is the most.",
    ),
    ItemField(
        "credibility", "scale", 23, high=6, given=True,
        option="From 0 (confirmed) to 6 (unknown).",
    ),
    ItemField(
        "classification", "scale", 24, high=3, given=True,
        option="From 0 (public) to 3 (secret); default 1.",
    ),
    ItemField(
        "original", "text", 9, nullable=True, given=True,
        option="Text before translation or summary.",
    ),
    ItemField(
        "language", "word", 11, nullable=True, given=True,
        option="Language code, such as en or de.",
    ),
    ItemField("tokens", "whole", 37, shown=False),
    ItemField("content_hash", "id", state=True, in_json=False, shown=False),
    ItemField("recalls", "whole"),
    ItemField("last_recalled_at", "time", nullable=True),
    ItemField(
        "metadata", "object", 41, given=True,
        option="Any other fields, as a JSON object.",
    ),
    ItemField(
        "anchors", "words", 43, nullable=True, given=True, flag="at", longest=900,
        option="Code that it speaks of: PATH or PATH::SYMBOL; may be repeated.",
        argument="Its code: path::symbol.",
    ),
)  # fmt: skip


def field_names(fields: Iterable[ItemField] = ITEM_FIELDS, *kinds: FieldKind) -> tuple[str, ...]:
    """Return the names of fields, of some kinds only if any are named."""
    return tuple(field.name for field in fields if not kinds or field.kind in kinds)


def input_order(fields: Iterable[ItemField]) -> list[ItemField]:
    """Sort fields as commands and tools list them: texts, lists, numbers, flags, times."""
    return sorted(fields, key=lambda field: _INPUT_PLACE[field.kind])


GIVEN_FIELDS = tuple(field for field in ITEM_FIELDS if field.given)
