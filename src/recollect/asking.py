"""Turns a caller's words and options into a Query that keeps the rules."""

from __future__ import annotations

import base64
import struct
import zlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields, replace
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

from recollect.dates import moment_of
from recollect.errors import BadText, Refused, TooLarge
from recollect.heat import BANDS
from recollect.model import LEVELS, Filters, Query, Situation, layer_named, layers_in_words, mark_of
from recollect.ports import Store
from recollect.text import unkeepable

MAX_QUERY_BYTES = 8 * 1024
MAX_K = 200
MAX_TOKENS = 1_000_000
MAX_OFFSET = 100_000
MAX_LISTED = 100_000

_ONE_FOR_MANY = {
    "id": "ids", "level": "levels", "kind": "kinds", "layer": "layers", "topic": "topics",
    "tier": "tiers", "tag": "tags", "entity": "entities", "source": "sources",
    "session": "sessions", "speaker": "speakers", "band": "bands",
}  # fmt: skip
_TIMES = ("since", "until", "stored_by")
_WEEKDAYS = {
    day: number for number, day in enumerate(("mon", "tue", "wed", "thu", "fri", "sat", "sun"))
}
_RANGES = {"min_trust": (0, 3), "max_classification": (0, 3)}
_MANY = frozenset(_ONE_FOR_MANY.values())
# Moment, checksum of the question, whether it was asked of the past, marks of what was seen.
_CURSOR = "<qI?{}I"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Ask:
    """What a caller may ask for; None takes the profile's or the setting's value."""

    text: str
    k: int | None = None
    max_tokens: int | None = None
    offset: int = 0
    cursor: str | None = None
    as_of: datetime | str | None = None
    track: bool = False
    most: Mapping[str, int] | None = None
    episode_k: int | None = None
    context: Mapping[str, Any] | None = None


class Limits(NamedTuple):
    """What holds when the caller names no limit: the setting's, else the profile's."""

    k: int
    max_tokens: int
    most: tuple[tuple[str, int], ...] = ()
    wordless: int = 1


def make_filters(where: Mapping[str, Any], now: datetime) -> Filters:
    """Filters from keywords; one value may stand for many (``kind="decision"``)."""
    known = {field.name for field in fields(Filters)}
    values: dict[str, Any] = {}
    for name, value in where.items():
        key = _ONE_FOR_MANY.get(name, name)
        if key not in known:
            allowed = ", ".join(sorted(known | set(_ONE_FOR_MANY)))
            raise Refused(f"there is no filter {name!r}", remedy=f"allowed: {allowed}")
        if value is None:
            continue
        if key in _MANY:
            values[key] = values.get(key, ()) + _named(key, _strings(name, value))
        elif key in _TIMES:
            values[key] = _moment(name, value, now)
        elif key in _RANGES:
            # SQLite finds every number smaller than a text: a ceiling would be none.
            values[key] = within(name, value, *_RANGES[key])
        elif isinstance(value, bool):
            values[key] = value
        else:
            raise Refused(f"{name} is {value!r}, but must be true or false")
    return Filters(**values)


def checked(filters: Filters, now: datetime) -> Filters:
    """Filters that a caller made, held to the same rules as keywords."""
    if not isinstance(filters, Filters):
        raise Refused(f"filters must be Filters, not {type(filters).__name__}")
    return make_filters(
        {field.name: getattr(filters, field.name) for field in fields(filters)}, now
    )


def with_entity_ids(filters: Filters, store: Store) -> Filters:
    """Names and aliases of entities made ids, so that every step understands them."""
    if not filters.entities:
        return filters
    known = [entity.id for name in filters.entities for entity in store.find_entities(name)]
    known += [link.src.id for link in store.links_of(known, ("same_as",))]  # merged into them
    return replace(filters, entities=tuple(dict.fromkeys((*filters.entities, *known))))


def _moment(name: str, value: object, now: datetime) -> datetime:
    try:
        return moment_of(value, now)
    except ValueError as error:
        raise Refused(f"{name}: {error}") from error


def _strings(name: str, value: Any) -> tuple[str, ...]:
    if not isinstance(value, Iterable) or isinstance(value, Mapping):
        raise Refused(f"filter {name} takes text or a list of texts, not {value!r}")
    entries = (value,) if isinstance(value, str) else tuple(value)
    for entry in entries:
        if not isinstance(entry, str):
            raise Refused(f"filter {name} takes text, not {entry!r}")
        _admit(entry, f"filter {name}", 1000)
    return entries


def _named(key: str, entries: tuple[str, ...]) -> tuple[str, ...]:
    """The entries of a filter that has a fixed set of values, by their own names."""
    if key == "layers":
        return tuple(map(_layer, entries))
    if key == "bands":
        unknown = [entry for entry in entries if entry not in BANDS]
        if unknown:
            raise Refused(f"there is no band {unknown[0]!r}", remedy=f"allowed: {', '.join(BANDS)}")
    return entries


def _layer(name: str) -> str:
    layer = layer_named(name)
    if layer is None:
        raise Refused(f"there is no layer {name!r}", remedy=f"allowed: {layers_in_words()}")
    return layer


def build_query(ask: Ask, filters: Filters, usual: Limits, *, now: datetime) -> Query:
    """A Query within the limits; over a limit is refused, never cut short."""
    _admit(ask.text, "the question", MAX_QUERY_BYTES)
    wordless = not ask.text.strip()
    if wordless and not filters.narrows:
        raise Refused(
            "the question is empty",
            remedy="say what you are looking for, or name an entity, a topic or another filter",
        )
    if wordless:
        usual = usual._replace(most=())
    as_of = _moment("as_of", ask.as_of, now) if ask.as_of is not None else None
    seen: frozenset[int] = frozenset()
    if ask.cursor is not None:
        begun, seen = _read_cursor(ask.cursor, ask.text)
        as_of = begun.as_of
        if begun.stored_by is not None:
            filters = replace(filters, stored_by=begun.stored_by)
    return Query(
        text=ask.text,
        now=_moment("now", now, now),
        as_of=as_of,
        filters=filters,
        k=_number(ask, usual, wordless=wordless),
        max_tokens=within(
            "max_tokens",
            usual.max_tokens if ask.max_tokens is None else ask.max_tokens,
            1,
            MAX_TOKENS,
        ),
        offset=within("offset", ask.offset, 0, MAX_OFFSET),
        track=ask.track,
        seen=seen,
        most=_most({**dict(usual.most), **_apart(ask)}),
        context=_situation(ask.context or {}),
    )


def _number(ask: Ask, usual: Limits, *, wordless: bool) -> int:
    """How many at most: of what a question without words asks for, some times as many."""
    k = within("k", usual.k if ask.k is None else ask.k, 1, MAX_K)
    return min(MAX_K, k * usual.wordless) if wordless else k


def _situation(given: Mapping[str, Any]) -> Situation:
    """What the caller said about the moment; a weekday by number (Monday is 0) or name."""
    for name in given:
        if name not in Situation._fields:
            allowed = ", ".join(Situation._fields)
            raise Refused(f"context has no {name!r}", remedy=f"allowed: {allowed}")
    hour, weekday, topic = (given.get(name) for name in Situation._fields)
    if isinstance(weekday, str):
        weekday = _WEEKDAYS.get(weekday.strip().lower()[:3], weekday)
    if topic is not None:
        _admit(topic, "the context's topic", 1000)
    return Situation(
        None if hour is None else within("the context's hour", hour, 0, 23),
        None if weekday is None else within("the context's weekday", weekday, 0, 6),
        topic,
    )


def _apart(ask: Ask) -> dict[str, int]:
    """What the caller counts apart; ``episode_k`` is a name for the raw level."""
    apart = dict(ask.most or {})
    return apart if ask.episode_k is None else {**apart, "raw": ask.episode_k}


def _most(limits: Mapping[str, int]) -> tuple[tuple[str, int], ...]:
    for level, number in limits.items():
        if level not in LEVELS:
            raise Refused(f"there is no level {level!r}", remedy=f"allowed: {', '.join(LEVELS)}")
        within(f"most {level}", number, 0, MAX_K)
    return tuple(sorted(limits.items()))


class _Begun(NamedTuple):
    """When the first page was made: the moment in the past it was asked for, else now."""

    as_of: datetime | None
    stored_by: datetime | None


def next_cursor(query: Query, returned: Iterable[str]) -> str:
    """How to go on: the next page leaves out what was stored after the first and what
    earlier pages returned, so writes in between cannot repeat or hide any. What was
    forgotten in between is gone, and what was corrected is told as it is now."""
    begun = query.as_of or query.filters.stored_by or query.now
    marks = sorted(query.seen | {mark_of(item_id) for item_id in returned})
    check = zlib.crc32(query.text.encode())
    moment = (begun - _EPOCH) // timedelta(milliseconds=1)
    body = struct.pack(_CURSOR.format(len(marks)), moment, check, query.as_of is not None, *marks)
    return base64.urlsafe_b64encode(body).decode().rstrip("=")


def _read_cursor(cursor: str, text: str) -> tuple[_Begun, frozenset[int]]:
    try:
        body = base64.b64decode(cursor + "=" * (-len(cursor) % 4), altchars=b"-_", validate=True)
        layout = _CURSOR.format((len(body) - struct.calcsize(_CURSOR.format(0))) // 4)
        milliseconds, check, in_past, *marks = struct.unpack(layout, body)
        moment = _EPOCH + timedelta(milliseconds=milliseconds)
    except (ValueError, OverflowError, struct.error) as error:
        raise Refused("that is not a cursor of an earlier answer") from error
    if check != zlib.crc32(text.encode()):
        raise Refused("that cursor belongs to another question")
    begun = _Begun(moment, None) if in_past else _Begun(None, moment)
    return begun, frozenset(marks)


def admitted(text: str, what: str, limit: int) -> str:
    """The text, if a store can keep it and it is not longer than the limit in bytes."""
    _admit(text, what, limit)
    return text


def _admit(text: str, what: str, limit: int) -> None:
    if not isinstance(text, str):
        raise BadText(f"{what} must be text, not {type(text).__name__}")
    bad = unkeepable(text)
    if bad is not None:
        position, name = bad
        raise BadText(f"{what} holds {name} at position {position}")
    size = len(text.encode())
    if size > limit:
        raise TooLarge(what, limit=limit, actual=size)


def within(name: str, value: int, low: int, high: int) -> int:
    """The number, if it is a whole one in this range."""
    if not isinstance(value, int) or isinstance(value, bool) or not low <= value <= high:
        raise Refused(f"{name} is {value!r}, but must be a whole number from {low} to {high:,}")
    return value
