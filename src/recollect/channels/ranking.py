"""Turns what a store found into a channel's pool."""

from __future__ import annotations

from recollect.context import Context
from recollect.model import Candidate, Evidence, Pool
from recollect.ports import Found


def ranked(name: str, found: Found, ctx: Context, *, scale: float = 1.0) -> Pool:
    """A pool whose one piece of evidence each is the channel's own score and rank.

    A store gives its matches best first, equal ones by id: that order is kept.
    """
    if found.note:
        ctx.remark(found.note)
    by = f"channel.{name}"
    pool = []
    for rank, (item, value, why) in enumerate(found.matches, start=1):
        score = value / scale
        pool.append(Candidate(item, score, (Evidence(by, "add", score, why, None, rank),)))
    return tuple(pool)
