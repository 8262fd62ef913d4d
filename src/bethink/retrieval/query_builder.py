"""Build a validated Query from a caller's text and options."""

from __future__ import annotations

import base64
import struct
import zlib
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta

from bethink.core import closest_name
from bethink.core.characters import find_unstorable
from bethink.core.dataclass import dataclass, field_types, replace
from bethink.core.json_values import Json, format_moment
from bethink.core.named_tuple import NamedTuple
from bethink.errors import BadText, Refused, TooLarge
from bethink.lang.dates import parse_moment
from bethink.model import LEVELS, Filters, Item, Query, Situation, id_checksum, require_layer
from bethink.ports import Scope, Store
from bethink.retrieval.heat import BANDS

MAX_QUERY_BYTES = 8 * 1024
MAX_K = 200
MAX_TOKENS = 1_000_000
MAX_OFFSET = 100_000
MAX_LIST_LENGTH = 100_000
_LAST_TURNS, _LAST_CHARACTERS = 2, 400  # of the turns before a short reply
_MAX_NEW_TERMS = 4  # of a short reply in a script without spaces

_SINGULAR_TO_PLURAL = {
    "id": "ids", "level": "levels", "kind": "kinds", "layer": "layers", "topic": "topics",
    "tier": "tiers", "tag": "tags", "entity": "entities", "source": "sources",
    "session": "sessions", "speaker": "speakers", "user": "users", "band": "bands",
}  # fmt: skip
PLURAL_TO_SINGULAR = {many: one for one, many in _SINGULAR_TO_PLURAL.items()}
_TIME_FILTERS = ("since", "until", "stored_by")
_WEEKDAYS = {
    day: number for number, day in enumerate(("mon", "tue", "wed", "thu", "fri", "sat", "sun"))
}
_INT_FILTER_RANGES = {"min_trust": (0, 3), "max_classification": (0, 3)}
_LIST_FILTERS = frozenset((*_SINGULAR_TO_PLURAL.values(), "at"))
# Moment, checksum of the question, whether `as_of` was set, checksums of returned ids.
_CURSOR_FORMAT = "<qI?{}I"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class RecallRequest:
    """The options of a recall; None takes the value of the setting or of the profile."""

    text: str
    k: int | None = None
    max_tokens: int | None = None
    offset: int = 0
    cursor: str | None = None
    as_of: datetime | str | None = None
    track: bool = False
    most: Mapping[str, int] | None = None
    episode_k: int | None = None
    context: Mapping[str, object] | None = None
    whole: bool = False
    min_confidence: float | None = None
    turns_before: str | Iterable[str] | None = None
    min_relevance: float | None = None
    own_session: str | None = None


class RecallDefaults(NamedTuple):
    """Defaults where the caller gives no limit: the setting's, else the profile's."""

    k: int
    max_tokens: int
    most: tuple[tuple[str, int], ...] = ()
    wordless: int = 1


def make_filters(where: Mapping[str, object], now: datetime) -> Filters:
    """Build filters from keywords; a single value may replace a list (``kind="decision"``)."""
    known = field_types(Filters).keys()
    values: Json = {}
    for name, value in where.items():
        key = _SINGULAR_TO_PLURAL.get(name, name)
        if name in ("k", "limit", "n", "top_k"):
            raise Refused(f"there is no filter {name!r}", remedy="recall takes k, lists take limit")
        if key not in known:
            allowed = ", ".join(sorted(known | set(_SINGULAR_TO_PLURAL)))
            raise Refused(f"there is no filter {name!r}", remedy=f"allowed: {allowed}")
        if value is None:
            continue
        if key in _LIST_FILTERS:
            values[key] = values.get(key, ()) + _canonical_values(
                key, _parse_string_list(f"filter {name}", value)
            )
        elif key in _TIME_FILTERS:
            values[key] = parse_moment_filter(name, value, now)
        elif key in _INT_FILTER_RANGES:
            # SQLite orders every number before any text: a text would be no ceiling.
            values[key] = int_in_range(name, value, *_INT_FILTER_RANGES[key])
        elif isinstance(value, bool):
            values[key] = value
        else:
            raise Refused(f"{name} is {value!r}, but must be true or false")
    since, until = values.get("since"), values.get("until")
    if since and until and since >= until:
        message = f"since {format_moment(since)} is not before until {format_moment(until)}"
        raise Refused(message, remedy="until is the first moment that is left out")
    return Filters(**values)


def validate_filters(filters: Filters, now: datetime) -> Filters:
    """Validate filters that a caller built by the same rules as keywords."""
    if not isinstance(filters, Filters):
        raise Refused(f"filters must be Filters, not {type(filters).__name__}")
    return make_filters({name: getattr(filters, name) for name in field_types(Filters)}, now)


def resolve_entity_filters(filters: Filters, store: Store) -> Filters:
    """Add the ids of entities that filters name by name or alias, so that every step can match."""
    if not filters.entities:
        return filters
    named = store.graph.find_entities(filters.entities)
    known = [entity.id for found in named for entity in found]
    known += [link.src.id for link in store.graph.links_of(known, ("same_as",))]  # merged into them
    return replace(filters, entities=tuple(dict.fromkeys((*filters.entities, *known))))


_NAMED_FILTERS = ("kinds", "levels", "layers", "topics", "tiers", "tags", "sources", "sessions",
                  "speakers", "users", "entities")  # fmt: skip
_SAMPLED_ITEMS = 1000  # newest memories whose values are suggested for a misspelt one


def describe_unmatched(query: Query, store: Store) -> tuple[str, ...]:
    """Name the filter values that no visible memory has, to explain an empty answer.

    A misspelt kind looks like a question without an answer. Memories above the query's
    classification count for nothing.
    """
    open_filters = Filters(
        max_classification=query.filters.max_classification,
        include_superseded=True,
        include_expired=True,
    )

    def find(limit: int, **only: tuple[str, ...]) -> list[Item]:
        scope = Scope(replace(open_filters, **only), query.now, query.as_of)  # type: ignore[arg-type]
        return store.items.browse(scope, limit=limit)

    if not find(1):
        when = f" at {format_moment(query.as_of)}" if query.as_of else ""
        return (f"nothing was stored yet{when}",) if query.as_of else ()
    lines = []
    for name in _NAMED_FILTERS:
        entries = getattr(query.filters, name)
        if not entries or (name == "entities" and find(1, entities=entries)):
            continue
        for entry in entries:
            if not find(1, **{name: (entry,)}):
                near = _near_value(entry, name, find(_SAMPLED_ITEMS))
                lines.append(f"no memory has the {PLURAL_TO_SINGULAR[name]} {entry!r:.60}{near}")
    return tuple(lines)


def _near_value(entry: str, name: str, items: Iterable[Item]) -> str:
    """Suggest the value of a filter that is spelt like this one, if there is one."""
    field = PLURAL_TO_SINGULAR[name]
    found: set[str] = set()
    for item in items:
        value = getattr(item, name if name in ("tags", "entities") else field)
        values = value if isinstance(value, tuple) else (value,)
        found.update(one.partition(":")[2] if name == "entities" else one for one in values if one)
    near = closest_name(entry.casefold(), sorted(found))
    return f"; did you mean {near!r}?" if near else ""


def parse_moment_filter(name: str, value: object, now: datetime) -> datetime:
    try:
        return parse_moment(value, now)
    except ValueError as error:
        raise Refused(f"{name}: {error}") from error


def _parse_string_list(name: str, value: object, limit: int = 1000) -> tuple[str, ...]:
    if not isinstance(value, Iterable) or isinstance(value, Mapping):
        raise Refused(f"{name} takes text or a list of texts, not {value!r}")
    entries = (value,) if isinstance(value, str) else tuple(value)
    for entry in entries:
        if not isinstance(entry, str):
            raise Refused(f"{name} takes text, not {entry!r}")
        validated_text(entry, name, limit)
    return entries


def _canonical_values(key: str, entries: tuple[str, ...]) -> tuple[str, ...]:
    """The entries of a filter with a fixed set of values, as canonical names."""
    if key == "layers":
        return tuple(map(require_layer, entries))
    allowed = {"bands": BANDS, "levels": LEVELS}.get(key, entries)
    for entry in entries:
        if entry not in allowed:
            name = key.removesuffix("s")
            raise Refused(f"there is no {name} {entry!r}", remedy=f"allowed: {', '.join(allowed)}")
    return entries


def build_query(
    request: RecallRequest, filters: Filters, defaults: RecallDefaults, *, now: datetime
) -> Query:
    """Build a Query within the limits; a value over a limit is refused, never truncated."""
    validated_text(request.text, "the question", MAX_QUERY_BYTES)
    wordless = not request.text.strip()
    if wordless and not filters.narrows:
        raise Refused(
            "the question is empty",
            remedy="give a question, or filter by entity, topic or another field",
        )
    if wordless:
        defaults = defaults._replace(most=())
    as_of = parse_moment_filter("as_of", request.as_of, now) if request.as_of is not None else None
    seen: frozenset[int] = frozenset()
    if request.cursor is not None:
        cursor_time, seen = _decode_cursor(request.cursor, request.text)
        as_of = cursor_time.as_of
        if cursor_time.stored_by is not None:
            filters = replace(filters, stored_by=cursor_time.stored_by)
    return Query(
        text=request.text,
        now=parse_moment_filter("now", now, now),
        as_of=as_of,
        filters=filters,
        k=_result_limit(request, defaults, wordless=wordless),
        max_tokens=int_in_range(
            "max_tokens",
            defaults.max_tokens if request.max_tokens is None else request.max_tokens,
            1,
            MAX_TOKENS,
        ),
        offset=int_in_range("offset", request.offset, 0, MAX_OFFSET),
        track=request.track,
        seen=seen,
        most=_validate_level_limits({**dict(defaults.most), **_level_limits(request)}),
        context=_parse_situation(request.context or {}),
        whole=request.whole,
        min_confidence=_validate_probability("min_confidence", request.min_confidence),
        min_relevance=_validate_probability("min_relevance", request.min_relevance),
        own_session=request.own_session,
    )


def join_turns_before(request: RecallRequest, store: Store) -> RecallRequest:
    """Put the turns before a short reply in front of it: alone it names no subject.

    Short is a question with at most one content word that the turns do not have.
    """
    if not request.turns_before or not isinstance(request.text, str) or not request.text.strip():
        return request
    turns = _parse_string_list("turns_before", request.turns_before, MAX_LIST_LENGTH)[-_LAST_TURNS:]
    before = "\n".join(turn[-_LAST_CHARACTERS:] for turn in turns)
    joined = f"{before}\n{request.text}"
    # Only beside other words are the stop words of a short reply told from its content.
    known = {word.terms for word in store.search.words(before)}
    known |= {word.terms for word in store.search.words(joined) if word.common}
    new = [word.terms for word in store.search.words(request.text) if word.terms not in known]
    is_short = len(new) <= 1 and sum(map(len, new)) <= _MAX_NEW_TERMS
    return replace(request, text=joined) if is_short else request


def _result_limit(request: RecallRequest, defaults: RecallDefaults, *, wordless: bool) -> int:
    """The result limit: the caller's; else the default, for a question without words more."""
    if request.k is not None:
        return int_in_range("k", request.k, 1, MAX_K)
    k = int_in_range("k", defaults.k, 1, MAX_K)
    return min(MAX_K, k * defaults.wordless) if wordless else k


def _parse_situation(fields: Mapping[str, object]) -> Situation:
    """Parse the caller's context; a weekday is a number (Monday is 0) or a name."""
    for name in fields:
        if name not in Situation._fields:
            allowed = ", ".join(Situation._fields)
            raise Refused(f"context has no {name!r}", remedy=f"allowed: {allowed}")
    hour, weekday, topic = (fields.get(name) for name in Situation._fields)
    if isinstance(weekday, str):
        weekday = _WEEKDAYS.get(weekday.strip().lower()[:3], weekday)
    return Situation(
        None if hour is None else int_in_range("the context's hour", hour, 0, 23),
        None if weekday is None else int_in_range("the context's weekday", weekday, 0, 6),
        None if topic is None else validated_text(topic, "the context's topic", 1000),
    )


def _level_limits(request: RecallRequest) -> dict[str, int]:
    """The caller's limits per level; ``episode_k`` is another name for the raw level."""
    limits = dict(request.most or {})
    return limits if request.episode_k is None else {**limits, "raw": request.episode_k}


def _validate_level_limits(limits: Mapping[str, int]) -> tuple[tuple[str, int], ...]:
    for level, number in limits.items():
        if level not in LEVELS:
            raise Refused(f"there is no level {level!r}", remedy=f"allowed: {', '.join(LEVELS)}")
        int_in_range(f"most {level}", number, 0, MAX_K)
    return tuple(sorted(limits.items()))


class _CursorTime(NamedTuple):
    """The time of the first page: ``as_of`` for a query of the past, else ``stored_by``."""

    as_of: datetime | None
    stored_by: datetime | None


def encode_cursor(query: Query, returned: Iterable[str]) -> str:
    """Encode the cursor of the next page.

    The next page leaves out what was stored after the first page and what earlier pages
    returned, so writes in between cannot repeat or hide a memory. Memories forgotten in
    between are gone; corrected ones are shown as they are now.
    """
    start = query.as_of or query.filters.stored_by or query.now
    marks = sorted(query.seen | {id_checksum(item_id) for item_id in returned})
    check = zlib.crc32(query.text.encode())
    moment = (start - _EPOCH) // timedelta(milliseconds=1)
    body = struct.pack(
        _CURSOR_FORMAT.format(len(marks)), moment, check, query.as_of is not None, *marks
    )
    return base64.urlsafe_b64encode(body).decode().rstrip("=")


def _decode_cursor(cursor: str, text: str) -> tuple[_CursorTime, frozenset[int]]:
    try:
        body = base64.b64decode(cursor + "=" * (-len(cursor) % 4), altchars=b"-_", validate=True)
        layout = _CURSOR_FORMAT.format((len(body) - struct.calcsize(_CURSOR_FORMAT.format(0))) // 4)
        milliseconds, check, in_past, *marks = struct.unpack(layout, body)
        moment = _EPOCH + timedelta(milliseconds=milliseconds)
    except (ValueError, OverflowError, struct.error) as error:
        raise Refused("the cursor is not valid") from error
    if check != zlib.crc32(text.encode()):
        raise Refused("the cursor belongs to another question")
    cursor_time = _CursorTime(moment, None) if in_past else _CursorTime(None, moment)
    return cursor_time, frozenset(marks)


def validated_text(text: object, what: str, limit: int) -> str:
    """The text, if a store can keep it and it is within the limit in bytes; else raise."""
    if not isinstance(text, str):
        raise BadText(f"{what} must be text, not {type(text).__name__}")
    bad = find_unstorable(text)
    if bad is not None:
        position, name = bad
        raise BadText(f"{what} contains {name} at position {position}")
    size = len(text.encode())
    if size > limit:
        raise TooLarge(what, limit=limit, actual=size)
    return text


def _validate_probability(name: str, value: float | None) -> float | None:
    if value is None:
        return None
    if not isinstance(value, int | float) or isinstance(value, bool) or not 0 <= value <= 1:
        raise Refused(f"{name} is {value!r}, but must be a number from 0 to 1")
    return float(value)


def int_in_range(name: str, value: object, low: int, high: int) -> int:
    """The number, if it is an integer in this range; else raise Refused."""
    if not isinstance(value, int) or isinstance(value, bool) or not low <= value <= high:
        raise Refused(f"{name} is {value!r}, but must be a whole number from {low} to {high:,}")
    return value
