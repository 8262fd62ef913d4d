"""Brings in what belongs to the same long-running topic as the best."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import NamedTuple

from recollect.context import Context
from recollect.model import Candidate, Evidence, Item, Member, Pool, Thread, best_first
from recollect.scope import rejects
from recollect.stages.order import falling, parted
from recollect.text import shorten


class _Ranked(NamedTuple):
    """A thread of the first candidates: which of them it holds, and who else."""

    thread: Thread
    seeds: tuple[Candidate, ...]
    left: tuple[Member, ...]


@dataclass(frozen=True, slots=True)
class ThreadAssist:
    """Members of the threads that the first ``seeds`` belong to.

    A thread needs two members and a settled state. Preferred are those that hold more of
    the seeds, a better one, are still going on, had the latest event, have more left to
    bring. Their best ``members`` are placed behind the first ``protect`` and before the
    rest, scored evenly between the two, and the pool stays as long as it was. Off
    unless ``enabled``.
    """

    enabled: bool = False
    seeds: int = 3
    threads: int = 2
    members: int = 3
    protect: int = 3
    dormant_days: float = 14.0
    apart: tuple[str, ...] = ("insight",)
    name: str = "thread_assist"

    def skip(self, pool: Pool, ctx: Context) -> str:
        """Why it is left out, if so."""
        return "" if self.enabled else "off in this profile"

    def __call__(self, pool: Pool, ctx: Context) -> Pool:
        direct, others = parted(pool, self.apart)
        room = len(direct) - self.protect
        if room <= 0:
            return pool
        seeds = direct[: self.seeds]
        known = {cand.item.id for cand in direct}
        found = [
            _as_known(thread, ctx.query.as_of)
            for thread in ctx.store.threads_of([cand.item.id for cand in seeds])
        ]
        items = _visible(found, self.apart, ctx)
        threads = self._ranked(found, seeds, items, ctx)[: self.threads]
        brought: dict[str, Candidate] = {}
        for ranked in threads:
            fresh = [member for member in ranked.left if member.item not in known]
            for member in _nearest_first(fresh, ranked, items)[: self.members]:
                why = f"{member.role} of {_name(ranked.thread, ctx)}"
                reason = Evidence(self.name, "seen", member.weight, why, ranked.thread.id)
                brought.setdefault(member.item, Candidate(items[member.item], 0.0, (reason,)))
        admitted = list(brought.values())[:room]
        ctx.remark(
            f"{len(seeds)} seeds, {len(found)} threads, {len(threads)} followed, "
            f"{len(admitted)} members brought in"
        )
        return best_first((*self._placed(direct, admitted), *others)) if admitted else pool

    def _placed(self, direct: Pool, admitted: Sequence[Candidate]) -> list[Candidate]:
        kept, rest = direct[: self.protect], direct[self.protect :]
        # Without anything to protect they come first, but not above what was first.
        high, low = kept[-1].score if kept else rest[0].score, rest[0].score
        step = (high - low) / (len(admitted) + 1)
        between = [
            cand.because(self.name, "set", high - step * place, "between the first and the rest")
            for place, cand in enumerate(admitted, start=1)
        ]
        ordered = falling((*kept, *between, *rest), self.name, "behind the thread")
        return ordered[: len(direct)]

    def _ranked(
        self, threads: Sequence[Thread], seeds: Pool, items: dict[str, Item], ctx: Context
    ) -> list[_Ranked]:
        ranked = []
        for thread in threads:
            held = {member.item for member in thread.members}
            covered = tuple(cand for cand in seeds if cand.item.id in held)
            ids = {cand.item.id for cand in covered}
            left = tuple(m for m in thread.members if m.item not in ids and m.item in items)
            if len(held) >= 2 and thread.state != "uncertain" and left:
                ranked.append(_Ranked(thread, covered, left))
        return sorted(ranked, key=lambda one: self._preference(one, ctx.query.moment))

    def _preference(self, one: _Ranked, now: datetime) -> tuple[int, float, int, float, int, str]:
        last = one.thread.last_event_at
        return (
            -len(one.seeds),
            -max(cand.score for cand in one.seeds),
            -self._bucket(one.thread, now),
            -last.timestamp() if last else math.inf,
            -len(one.left),
            one.thread.id,
        )

    def _bucket(self, thread: Thread, now: datetime) -> int:
        """Going on before just resolved, that before dormant, that before the rest."""
        if thread.state == "resolved":
            last = thread.last_event_at
            recent = last is not None and last >= now - timedelta(days=self.dormant_days)
            return 2 if recent else 0
        return {"active": 3, "dormant": 1}.get(thread.lifecycle, 0)


def _name(thread: Thread, ctx: Context) -> str:
    """By its headline, unless that may be the words of what the asker may not see."""
    members = ctx.store.get([member.item for member in thread.members])
    ceiling = ctx.query.filters.max_classification
    if any(item.classification > ceiling for item in members.values()):
        return "the same thread"
    return f"the thread “{shorten(thread.headline, 60)}”"


def _as_known(thread: Thread, as_of: datetime | None) -> Thread:
    """The thread without what joined it or happened in it after a moment asked for."""
    if as_of is None:
        return thread
    members = tuple(m for m in thread.members if m.added_at is None or m.added_at <= as_of)
    events = tuple(event for event in thread.events if event.at <= as_of)
    return thread._replace(members=members, events=events)


def _visible(threads: Sequence[Thread], apart: Sequence[str], ctx: Context) -> dict[str, Item]:
    ids = {member.item for thread in threads for member in thread.members}
    items = ctx.get(ids)
    return {
        key: item
        for key, item in items.items()
        if item.level not in apart and rejects(item, ctx.scope) is None
    }


def _nearest_first(
    members: Sequence[Member], ranked: _Ranked, items: dict[str, Item]
) -> list[Member]:
    """By weight; then how near to a seed in the thread's events, in time; then the latest."""
    places: dict[str, list[int]] = {}
    times: dict[str, list[float]] = {}
    for event in ranked.thread.events:
        if event.item is not None:
            places.setdefault(event.item, []).append(event.seq)
            times.setdefault(event.item, []).append(event.at.timestamp())
    seeds = [cand.item for cand in ranked.seeds]

    def moments(item: Item) -> list[float]:
        return times.get(item.id) or [item.when.timestamp()]

    def order(member: Member) -> tuple[float, float, float, float, str]:
        own = items[member.item]
        theirs = [place for one in seeds for place in places.get(one.id, ())]
        steps = _closest(places.get(own.id, ()), theirs)
        seconds = _closest(moments(own), [at for one in seeds for at in moments(one)])
        return (-member.weight, steps, seconds, -max(moments(own)), member.item)

    return sorted(members, key=order)


def _closest(ours: Sequence[float], theirs: Sequence[float]) -> float:
    return min((abs(one - other) for one in ours for other in theirs), default=math.inf)
