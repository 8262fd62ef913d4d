"""Scope check: whether an item passes the filters and, if not, why.

Stores apply the same rules in their own query language; a property test compares them.
"""

from __future__ import annotations

from datetime import datetime

from bethink.core.words import fold
from bethink.model import Filters, Item
from bethink.model.anchor import anchor_name
from bethink.model.item import SHARED_CLASSIFICATION
from bethink.ports import Scope

# Fields of which filters name the allowed values, in the plural.
_FIELDS = ("id", "level", "kind", "layer", "topic", "tier", "source", "session", "speaker", "user")


def rejection_reason(item: Item, scope: Scope) -> str | None:
    """The reason why an item is outside the scope; None where it is inside.

    Entities match by id and key, not by alias: a caller that accepts aliases puts the
    entity's id into the filter first.
    """
    filters = scope.filters
    return (
        _check_lifetime(item, scope.as_of)
        or _check_status(item, filters)
        or _check_validity(item, scope)
        or _check_clearance(item, scope)
        or _check_period(item, filters)
        or _check_fields(item, filters)
        or _check_tags(item, filters)
        or _check_anchors(item, filters)
        or _check_entities(item, filters)
    )


def _check_lifetime(item: Item, as_of: datetime | None) -> str | None:
    if as_of is None:
        if item.live_to is None:
            return None
        return f"ended on {_format_day(item.live_to)} ({item.ended_by or 'no reason given'})"
    if item.live_from is not None and item.live_from > as_of:
        return f"stored on {_format_day(item.live_from)}, after {_format_day(as_of)}"
    if item.live_to is not None and item.live_to <= as_of:
        return (
            f"already ended on {_format_day(item.live_to)} ({item.ended_by or 'no reason given'})"
        )
    return None


def _check_status(item: Item, filters: Filters) -> str | None:
    if item.status == "active":
        return None
    # A pinned memory is returned although superseded; the answer names its successor.
    if item.status == "superseded" and (filters.include_superseded or item.pinned):
        return None
    return f"its status is {item.status}"


def _check_validity(item: Item, scope: Scope) -> str | None:
    if scope.filters.include_expired:
        return None
    if item.valid_to is not None and item.valid_to <= scope.moment:
        return f"expired on {_format_day(item.valid_to)}"
    if item.valid_from is not None and item.valid_from > scope.moment:
        return f"not valid before {_format_day(item.valid_from)}"
    return None


def _check_clearance(item: Item, scope: Scope) -> str | None:
    filters = scope.filters
    if item.classification > filters.max_classification:
        ceiling = filters.max_classification
        return f"classification {item.classification} is above the ceiling {ceiling}"
    if item.trust < filters.min_trust:
        return f"trust {item.trust} is below the required {filters.min_trust}"
    if scope.untrusted and item.trust >= 1:
        return f"trust {item.trust} is not 0"
    return None


def _check_period(item: Item, filters: Filters) -> str | None:
    if filters.since is not None and item.when < filters.since:
        return f"happened on {_format_day(item.when)}, before {_format_day(filters.since)}"
    if filters.until is not None and item.when >= filters.until:
        return f"happened on {_format_day(item.when)}, not before {_format_day(filters.until)}"
    if filters.stored_by is not None and item.stored_at > filters.stored_by:
        return f"stored on {_format_day(item.stored_at)}, after {_format_day(filters.stored_by)}"
    return None


def _check_fields(item: Item, filters: Filters) -> str | None:
    for field in _FIELDS:
        allowed: tuple[str, ...] = getattr(filters, f"{field}s")
        if allowed:
            value: str | None = getattr(item, field)
            if value is None and field == "topic" and filters.include_untopiced:
                continue
            if field == "user" and filters.include_shared and _is_shared(item):
                continue
            if value not in allowed:
                actual = f"{field} {value!r}" if value is not None else f"no {field}"
                return f"has {actual}, not {_any_of(allowed)}"
    return None


def _is_shared(item: Item) -> bool:
    return item.classification <= SHARED_CLASSIFICATION


def _check_tags(item: Item, filters: Filters) -> str | None:
    missing = [tag for tag in filters.tags if tag not in item.tags]
    return f"lacks the tag {missing[0]!r}" if missing else None


def _check_anchors(item: Item, filters: Filters) -> str | None:
    names = [anchor_name(anchor) for anchor in item.anchors] if filters.at else []
    if not filters.at or any(part in name for part in filters.at for name in names):
        return None
    return f"is not tied to code at {_any_of(filters.at)}"


def _check_entities(item: Item, filters: Filters) -> str | None:
    if not filters.entities:
        return None
    requested = {*filters.entities, *map(fold, filters.entities)}
    for entity in item.entities:
        key = entity[entity.find(":") + 1 :]
        if entity in requested or key in requested:
            return None
    return f"does not mention {_any_of(filters.entities)}"


def _any_of(names: tuple[str, ...]) -> str:
    return " or ".join(repr(name) for name in names)


def _format_day(moment: datetime) -> str:
    return f"{moment:%Y-%m-%d}"
