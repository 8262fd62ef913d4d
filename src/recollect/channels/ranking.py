"""Turns what a store found into a channel's pool."""

from __future__ import annotations

from recollect.context import Context
from recollect.model import Candidate, Evidence, Pool, best_first
from recollect.ports import Found


def ranked(name: str, found: Found, ctx: Context, *, scale: float = 1.0) -> Pool:
    """A pool whose one piece of evidence each is the channel's own score and rank."""
    if found.note:
        ctx.remark(found.note)
    ordered = best_first(
        Candidate(match.item, match.score / scale, (Evidence("", "seen", 0.0, match.why),))
        for match in found.matches
    )
    return tuple(
        Candidate(
            cand.item,
            cand.score,
            (Evidence(f"channel.{name}", "add", cand.score, cand.evidence[0].why, None, rank),),
        )
        for rank, cand in enumerate(ordered, start=1)
    )
