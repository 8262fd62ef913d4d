"""Admit drafts and threads: validation, limits, normal form, redaction.

A text is stored as it came or refused with a named error; nothing is truncated or repaired.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from datetime import datetime

from bethink.core.characters import find_unstorable, has_substance
from bethink.core.dataclass import dataclass
from bethink.core.ids import is_valid_id
from bethink.core.json_values import Json
from bethink.core.words import fingerprint, fold
from bethink.errors import BadText, Refused, TooLarge
from bethink.ingest.content_checks import content_flags, refuse_pasted
from bethink.ingest.redaction import redact, redact_draft, refuse_secret
from bethink.lang.dates import parse_moment
from bethink.model import (
    LEVELS,
    LIFECYCLES,
    ROLES,
    THREAD_EVENT_KINDS,
    THREAD_KINDS,
    THREAD_STATES,
    Draft,
    Item,
    Member,
    Thread,
    ThreadEvent,
    require_layer,
)
from bethink.model.anchor import MAX_ANCHORS, parse_anchor
from bethink.model.fields import GIVEN_FIELDS, field_names
from bethink.model.item import user_of
from bethink.ports import Embedder, Embedding, FindNames, FindSecrets, JudgePairs, Store


@dataclass(frozen=True, slots=True)
class WriteContext:
    """Dependencies of a write: store, embedder, current time and acting user.

    ``deriving`` allows drafts of the class "derived" (maintenance jobs). ``relating`` also
    searches for memories of nearly the same meaning, which takes longer. ``vectors`` are
    those of drafts that need no model, by the draft's id. ``read`` are memories as they were
    read just now, so that what a draft derives from is not read again. ``judge`` says what a
    newer memory does to an older one, ``find_names`` what a text names; without it only the form
    of words tells names. ``find_secrets`` finds secrets of a text besides those that rules find.
    ``personal_numbers`` is the setting of that name.
    ``review`` says by source class what becomes of a draft: accept, worth or wait. ``room`` is
    held while so many new memories are stored; it raises Refused where they are too many.
    """

    store: Store
    embedder: Embedder | None
    now: datetime
    actor: str
    make_id: Callable[[datetime], str]
    deriving: bool = False
    relating: bool = False
    vectors: Mapping[str, Embedding] | None = None
    read: Mapping[str, Item] | None = None
    judge: JudgePairs | None = None
    find_names: FindNames | None = None
    find_secrets: FindSecrets | None = None
    personal_numbers: str = "captured"
    review: Mapping[str, str] | None = None
    room: Callable[[int], AbstractContextManager[object]] = nullcontext


@dataclass(frozen=True, slots=True)
class PreparedDraft:
    """A draft that may be stored: admitted, redacted, folded for comparison.

    ``turn`` marks a turn of a conversation without an explicit order; such a turn is always
    new, however often its words were said before.
    """

    draft: Draft
    id: str
    folded: str
    fingerprint: str
    redacted: tuple[str, ...] = ()
    flags: tuple[str, ...] = ()
    turn: bool = False


def make_draft(source: object) -> Draft:
    """Make a draft from a text, a mapping of fields, or a draft; refuse anything else."""
    if isinstance(source, Draft):
        return source
    if isinstance(source, str):
        return Draft(source)
    if not isinstance(source, Mapping):
        raise Refused(f"a memory is a text, its fields or a draft, not {type(source).__name__}")
    if unknown := [name for name in source if name not in Draft._fields]:
        allowed = ", ".join(sorted(Draft._fields))
        raise Refused(f"there is no field {unknown[0]!r}", remedy=f"allowed: {allowed}")
    if "text" not in source:
        raise Refused("a memory needs a text")
    return Draft(**lists_to_tuples(source))


def lists_to_tuples(fields: Mapping[str, object]) -> Json:
    """Return the fields of a draft with tuples where lists were given."""
    return {
        name: tuple(value) if isinstance(value, list) else value for name, value in fields.items()
    }


MAX_TEXT_BYTES = 64 * 1024
MAX_METADATA_BYTES = 32 * 1024
MAX_METADATA_DEPTH = 8
MAX_TAGS = 64
MAX_PARENTS = 1_000
MAX_TAG_CHARACTERS = 200
MAX_FIELD_CHARACTERS = 1_000
MAX_KEY_CHARACTERS = 200
MAX_BATCH_DRAFTS = 1_000

# Reserved for maintenance: its trust is limited by that of the source memories.
DERIVED_SOURCE = "derived"
# The most trust a class of source can claim; users and owners may claim any.
TRUST_CEILING = {
    "owner": 3,
    "user": 2,
    "agent": 2,
    "tool": 1,
    "import": 1,
    "web": 0,
    "unknown": 0,
    DERIVED_SOURCE: 3,
}
TRUSTED_SOURCES = frozenset({"owner", "user"})

_NAME_FIELDS = tuple(
    field.name
    for field in GIVEN_FIELDS
    if field.kind == "word" or (field.kind == "id" and field.name != "id")
)
_TRIMMED_FIELDS = tuple(field.name for field in GIVEN_FIELDS if field.trimmed)
_LIST_FIELDS = field_names(GIVEN_FIELDS, "words")
_NUMBER_FIELDS = tuple(
    field for field in GIVEN_FIELDS if field.kind in ("scale", "whole", "number")
)
_FLAG_FIELDS = (*field_names(GIVEN_FIELDS, "flag"), "force")
_TIME_FIELDS = field_names(GIVEN_FIELDS, "time")
_LONG_FIELDS = field_names(GIVEN_FIELDS, "text")
_OPTIONAL_FIELDS = frozenset(
    name for name, default in Draft._field_defaults.items() if default is None
)


def admit(draft: Draft, now: datetime) -> Draft:
    """Validate a draft and normalise its fields; raise Refused if it breaks a rule."""
    _check_text(draft)
    _check_names(draft)
    _check_lists(draft)
    _check_numbers(draft)
    if draft.metadata:
        check_metadata(draft.metadata)
    normalised = _normalise_draft(draft, now)
    _check_periods(normalised)
    return normalised


def _check_text(draft: Draft) -> None:
    for name in _LONG_FIELDS:
        value = getattr(draft, name)
        if value is None and name in _OPTIONAL_FIELDS:
            continue
        _check_string(name, value)
        # Counting bytes costs a copy, so only texts that could be too long are counted.
        if len(value) * 4 > MAX_TEXT_BYTES:
            _check_limit(name, len(value.encode()), MAX_TEXT_BYTES, unit="bytes")
        if name == "text" and not has_substance(value):
            kind = "only punctuation or invisible characters" if value.strip() else "empty"
            raise Refused(f"the text is {kind}")


def _check_string(name: str, value: object) -> None:
    if not isinstance(value, str):
        raise Refused(f"{name} must be text, not {type(value).__name__}")
    found = find_unstorable(value)
    if found:
        position, character = found
        raise BadText(
            f"{name} contains a {character} at character {position + 1}",
            remedy="remove it; it cannot be stored",
        )


def _check_names(draft: Draft) -> None:
    for name in _NAME_FIELDS:
        value = getattr(draft, name)
        if value is not None or name not in _OPTIONAL_FIELDS:
            _check_length(name, value, MAX_FIELD_CHARACTERS)
    if draft.key is not None:
        _check_length("key", draft.key, MAX_KEY_CHARACTERS)
    if draft.id is not None and not _is_id(draft.id):
        raise Refused(
            "the id is not valid", remedy="use up to 64 letters, digits and _ . : - or omit it"
        )
    _check_choice("level", draft.level, LEVELS)
    if not draft.source.strip():
        raise Refused("source must not be empty")
    _check_choice("source class", draft.source_class, tuple(TRUST_CEILING))


def _check_lists(draft: Draft) -> None:
    for name in _LIST_FIELDS:
        limit = MAX_ANCHORS if name == "anchors" else MAX_TAGS
        for word in _check_list(name, getattr(draft, name), "texts", limit):
            longest = MAX_FIELD_CHARACTERS if name == "anchors" else MAX_TAG_CHARACTERS
            _check_length(f"one of the {name}", word, longest)
            if not str(word).strip():
                raise Refused(f"one of the {name} is empty")
    for anchor in draft.anchors:
        parse_anchor(anchor)
    if draft.derives_from:
        for parent in _check_list("derives_from", draft.derives_from, "ids", MAX_PARENTS):
            if not _is_id(parent):
                raise Refused(f"derives_from must list ids of memories, not {parent!r:.40}")


def _is_id(value: object) -> bool:
    return isinstance(value, str) and is_valid_id(value)


def _check_list(name: str, values: object, what: str, limit: int) -> Sequence[object]:
    if not isinstance(values, Sequence) or isinstance(values, str | bytes):
        raise Refused(f"{name} must be a list of {what}, not {type(values).__name__}")
    _check_limit(name, len(values), limit)
    return values


def _check_length(name: str, value: object, limit: int) -> None:
    _check_string(name, value)
    _check_limit(name, len(str(value)), limit, unit="characters")


def _check_numbers(draft: Draft) -> None:
    for field in _NUMBER_FIELDS:
        name, value = field.name, getattr(draft, field.name)
        if value is None and name in _OPTIONAL_FIELDS:
            continue
        low, high, whole = field.low, field.high, field.kind != "number"
        if not _is_number(value, whole=whole) or not low <= value <= high:
            kind = "a whole number" if whole else "a number"
            raise Refused(f"{name} must be {kind} from {low:g} to {high:g}, not {value!r:.40}")
    for name in _FLAG_FIELDS:
        if not isinstance(getattr(draft, name), bool):
            raise Refused(f"{name} must be true or false, not {getattr(draft, name)!r:.40}")


def _is_number(value: object, *, whole: bool) -> bool:
    return isinstance(value, int if whole else int | float) and not isinstance(value, bool)


def check_metadata(metadata: object) -> None:
    """Check that metadata is strict JSON within the depth and size limits."""
    if not isinstance(metadata, Mapping):
        raise Refused(f"metadata must be a JSON object, not {type(metadata).__name__}")
    if _check_json(metadata, 1, 0) > MAX_METADATA_BYTES:
        raise TooLarge("metadata", limit=MAX_METADATA_BYTES, actual=MAX_METADATA_BYTES + 1)
    size = len(json.dumps(to_plain_json(metadata), ensure_ascii=False, allow_nan=False).encode())
    if size > MAX_METADATA_BYTES:
        raise TooLarge("metadata", limit=MAX_METADATA_BYTES, actual=size)


def _check_json(value: object, depth: int, count: int) -> int:
    """Validate a JSON value; return the number of values seen, stopping at the limit."""
    if count > MAX_METADATA_BYTES:
        return count
    if isinstance(value, str):
        _check_string("metadata", value)
    elif isinstance(value, Mapping | list | tuple):
        if depth > MAX_METADATA_DEPTH:
            raise TooLarge("metadata", limit=MAX_METADATA_DEPTH, actual=depth, unit="levels deep")
        for key in value if isinstance(value, Mapping) else ():
            _check_string("a key of metadata", key)
        for entry in value.values() if isinstance(value, Mapping) else value:
            count = _check_json(entry, depth + 1, count)
    elif isinstance(value, float) and not math.isfinite(value):
        raise Refused(f"metadata contains {value}, which is not a JSON number")
    elif isinstance(value, int) and not -(2**63) <= value < 2**64:
        raise Refused("metadata contains a whole number of more than 64 bits")
    elif value is not None and not isinstance(value, int | float):
        raise Refused(f"metadata contains a {type(value).__name__}, which is not JSON")
    return count + 1


def to_plain_json(value: object) -> object:
    """Convert mappings to dicts and tuples to lists, so that json.dumps accepts them."""
    if isinstance(value, Mapping):
        return {key: to_plain_json(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [to_plain_json(entry) for entry in value]
    return value


def _normalise_draft(draft: Draft, now: datetime) -> Draft:
    changes: Json = {}
    for name in _TRIMMED_FIELDS:
        value = getattr(draft, name)
        if value is not None and value != (stripped := value.strip() or None):
            changes[name] = stripped
    for name in _TIME_FIELDS:
        value = getattr(draft, name)
        if value is not None:
            try:
                changes[name] = parse_moment(value, now)
            except ValueError as error:
                raise Refused(f"{name}: {error}") from error
    if draft.layer is not None:
        changes["layer"] = require_layer(draft.layer) if draft.layer.strip() else None
    if type(draft.derives_from) is not tuple:
        changes["derives_from"] = tuple(draft.derives_from or ())
    for name in _LIST_FIELDS:
        if type(getattr(draft, name)) is not tuple:
            changes[name] = tuple(getattr(draft, name))
    return draft._replace(**changes) if changes else draft


def _check_periods(draft: Draft) -> None:
    for earlier, later in (("occurred_at", "occurred_end"), ("valid_from", "valid_to")):
        start, end = getattr(draft, earlier), getattr(draft, later)
        if start is not None and end is not None and end < start:
            raise Refused(f"{later} is before {earlier}")


def trust_of(draft: Draft) -> int:
    """Return a draft's trust: the ceiling of its source class, or the claimed value.

    Only owners and users may claim more than their class allows.
    """
    ceiling = TRUST_CEILING[draft.source_class]
    if draft.trust is None:
        return ceiling
    return draft.trust if draft.source_class in TRUSTED_SOURCES else min(draft.trust, ceiling)


def prepare(draft: Draft, ctx: WriteContext) -> PreparedDraft:
    """Admit, redact and fold a draft; raise Refused if it may not be stored."""
    if draft.id is not None:
        refuse_secret("the id", str(draft.id))
    captured = ctx.personal_numbers == "captured" and draft.level == "raw"
    personal = captured or ctx.personal_numbers == "all"
    draft, redacted = redact_draft(admit(draft, ctx.now), personal=personal, find=ctx.find_secrets)
    refuse_pasted(draft)
    folded = fold(draft.text)
    return PreparedDraft(
        draft,
        id=draft.id or ctx.make_id(ctx.now),
        folded=folded,
        fingerprint=fingerprint_of(draft, folded),
        redacted=redacted,
        flags=content_flags(draft.text),
        turn=draft.session is not None and draft.seq is None,
    )


def fingerprint_of(draft: Draft, folded: str) -> str:
    """Return a fingerprint: equal for equal words, level, speaker, user and turn."""
    speaker = fold(draft.speaker) if draft.speaker else ""
    user = user_of(draft.metadata)
    if user is not None:
        speaker += f"\x1e{user}"
    turn = "" if draft.session is None else f"{draft.session}\x1e{draft.seq}"
    return fingerprint(folded, draft.level, speaker, turn)


def occurred_at_different_times(one: datetime | None, other: datetime | None) -> bool:
    """Check whether both memories are dated and their dates differ by a second or more."""
    return one is not None and other is not None and abs((one - other).total_seconds()) >= 1


MAX_HEADLINE_CHARACTERS = 1_000
MAX_MEMBERS = 1_000
MAX_EVENTS = 10_000


def admit_thread(thread: Thread) -> Thread:
    """Validate and redact a thread; raise Refused if it breaks a rule."""
    if not _is_id(thread.id):
        raise Refused("a thread's id must have 1 to 64 letters, digits and _ . : -")
    _check_choice("kind", thread.kind, THREAD_KINDS)
    _check_choice("lifecycle", thread.lifecycle, LIFECYCLES)
    _check_choice("state", thread.state, THREAD_STATES)
    refuse_secret("the thread's id", thread.id)
    headline = _admit_headline_text("headline", thread.headline)
    if not has_substance(headline):
        raise Refused("a thread needs a headline")
    _check_limit("members", len(thread.members), MAX_MEMBERS)
    _check_limit("events", len(thread.events), MAX_EVENTS)
    if not thread.members:
        raise Refused("a thread needs a member", remedy="name a memory that belongs to it")
    return thread._replace(
        headline=headline,
        anchor=None if thread.anchor is None else _admit_headline_text("anchor", thread.anchor),
        members=_admit_members(thread.members),
        events=_admit_events(thread.events),
    )


def _admit_members(members: Iterable[Member]) -> tuple[Member, ...]:
    for member in members:
        _check_id("member", member.item)
        _check_choice("role", member.role, ROLES)
        if not _is_number(member.weight, whole=False) or not 0 <= member.weight <= 1:
            raise Refused(f"a member's weight is {member.weight!r}, but must be from 0 to 1")
        _check_timezone("added_at", member.added_at)
    by_item = {member.item: member._replace(weight=float(member.weight)) for member in members}
    if len(by_item) < len(tuple(members)):
        raise Refused("a memory is listed twice as a member of the thread")
    return tuple(by_item[item] for item in sorted(by_item))


def _admit_events(events: Iterable[ThreadEvent]) -> tuple[ThreadEvent, ...]:
    by_seq: dict[int, ThreadEvent] = {}
    for event in events:
        _check_choice("event kind", event.kind, THREAD_EVENT_KINDS)
        _check_timezone("at", event.at)
        if (
            not _is_number(event.seq, whole=True)
            or not 0 <= event.seq < 2**53
            or event.seq in by_seq
        ):
            raise Refused(f"an event's seq is {event.seq!r}, but must be a whole number and unique")
        if event.item is not None:
            _check_id("event's memory", event.item)
        by_seq[event.seq] = event
    return tuple(by_seq[seq] for seq in sorted(by_seq))


def _check_id(label: str, value: object) -> None:
    if not _is_id(value):
        raise Refused(f"{label} must be an id, not {value!r}")


def _admit_headline_text(name: str, value: str) -> str:
    _check_length(name, value, MAX_HEADLINE_CHARACTERS)
    return redact(value).text


def _check_limit(name: str, actual: int, limit: int, *, unit: str = "entries") -> None:
    if actual > limit:
        raise TooLarge(name, limit=limit, actual=actual, unit=unit)


def _check_choice(name: str, value: object, allowed: tuple[str, ...]) -> None:
    if value not in allowed:
        raise Refused(f"there is no {name} {value!r}", remedy=f"one of {', '.join(allowed)}")


def _check_timezone(name: str, moment: datetime | None) -> None:
    if moment is not None and (not isinstance(moment, datetime) or moment.tzinfo is None):
        raise Refused(f"{name} must be a time with a time zone")
