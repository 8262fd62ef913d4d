"""Answers kept for a while: the same question of an unchanged memory is not walked again."""

from __future__ import annotations

import threading
from collections import OrderedDict
from dataclasses import replace
from datetime import datetime, timedelta
from typing import NamedTuple

from recollect.context import Context
from recollect.model import Recall
from recollect.profile import Profile

MOST = 1000
TTL = timedelta(minutes=5)


class Key(NamedTuple):
    """All that an answer depends on. Any write changes the generation, so an answer from
    before it is never found again."""

    space: str
    generation: int
    query: str
    profile: Profile
    embedder: str


class _Kept(NamedTuple):
    answer: Recall
    since: datetime


class Cache:
    """The last answers of one process, least recently asked for out first.

    Safe to share between threads.
    """

    def __init__(self, most: int = MOST, ttl: timedelta = TTL) -> None:
        self._most = most
        self._ttl = ttl
        self._kept: OrderedDict[Key, _Kept] = OrderedDict()
        self._guard = threading.Lock()

    def __len__(self) -> int:
        return len(self._kept)

    def clear(self) -> None:
        """Keeps nothing any more."""
        with self._guard:
            self._kept.clear()

    def find(self, key: Key, now: datetime) -> Recall | None:
        """The answer kept for a key, marked as such, unless it is too old."""
        with self._guard:
            self._drop_older(key)
            kept = self._kept.get(key)
            if kept is None:
                return None
            if self._is_stale(kept, now):
                del self._kept[key]
                return None
            self._kept.move_to_end(key)
        run = kept.answer.run
        return replace(kept.answer, run=run and run._replace(cached=True))

    def keep(self, key: Key, answer: Recall, now: datetime) -> None:
        """Keeps an answer; one that came without a part is not worth repeating."""
        if answer.degraded:
            return
        with self._guard:
            self._drop_older(key)
            self._kept[key] = _Kept(answer, now)
            self._kept.move_to_end(key)
            while len(self._kept) > self._most:
                self._kept.popitem(last=False)

    def _drop_older(self, key: Key) -> None:
        """Answers from before a write can never be found again, and what they hold may have
        been erased since."""
        if self._kept and next(iter(self._kept)).generation != key.generation:
            self._kept.clear()

    def _is_stale(self, kept: _Kept, now: datetime) -> bool:
        """Too old, from a clock that was set back, or a hit's time has run out since."""
        if not timedelta(0) <= now - kept.since < self._ttl:
            return True
        ends = [hit.item.valid_to for hit in kept.answer.hits]
        return any(end is not None and end <= now for end in ends)


def key_of(profile: Profile, ctx: Context, *, now_given: bool) -> Key | None:
    """What an answer is kept under; None where it depends on more than can be told.

    A moment that the caller named must be the same. Where it is simply now, the day
    must be: within it an answer may be as old as the cache keeps it.
    """
    query = ctx.query
    # Notes are files that anybody may write to at any time.
    if query.track or ctx.boost or ctx.reranker or ctx.notes:
        return None
    if not now_given:
        day = query.now.replace(hour=0, minute=0, second=0, microsecond=0)
        query = replace(query, now=day)
    return Key(
        ctx.store.space,
        ctx.store.generation(),
        f"{'at' if now_given else 'on'} {query!r}",
        profile,
        ctx.embedder.model if ctx.embedder else "",
    )
