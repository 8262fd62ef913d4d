"""How jobs look at the memories: page by page, and how warm each is."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import islice
from typing import Any, TypeVar

from recollect.heat import Uses, heat
from recollect.maintain.job import Work
from recollect.model import Item
from recollect.ports import Scope, Usage

PAGE = 1_000
DAY_S = 86_400.0
TOLD = 80  # characters of a memory that a proposal shows of it

T = TypeVar("T")


def each(work: Work, **narrower: Any) -> Iterator[Item]:
    """The memories a run is about, newest first; ``narrower`` are further filters, each
    for a filter that the run leaves open."""
    open_ = {name: value for name, value in narrower.items() if not getattr(work.filters, name)}
    scope = Scope(replace(work.filters, **open_), work.now)
    last: str | None = None
    while page := work.store.browse(scope, limit=PAGE, after=last):
        yield from page
        last = page[-1].id


def days_old(item: Item, work: Work) -> float:
    """Days since it was stored; never less than none."""
    return max(0.0, (work.now - item.stored_at).total_seconds() / DAY_S)


def days_unused(item: Item, usage: Usage | None, work: Work) -> float:
    """Days since it was last recalled or, where it never was, stored."""
    last = usage.last_at if usage and usage.last_at else item.stored_at
    return max(0.0, (work.now - last).total_seconds() / DAY_S)


def heats(items: Sequence[Item], work: Work) -> dict[str, tuple[float, float]]:
    """For each item its heat and the days since its last use, by id."""
    warm: dict[str, tuple[float, float]] = {}
    for batch in batches(items, PAGE):
        used = work.store.usage([item.id for item in batch], work.now)
        for item in batch:
            usage = used.get(item.id)
            unused = days_unused(item, usage, work)
            seen = usage or Usage()
            uses = Uses(seen.in_30_days, seen.in_90_days, seen.recalls)
            warm[item.id] = (heat(uses, unused, item.importance), unused)
    return warm


def batches(values: Iterable[T], size: int) -> Iterator[list[T]]:
    """The values in lists of ``size``, the last one shorter."""
    left = iter(values)
    while batch := list(islice(left, size)):
        yield batch
