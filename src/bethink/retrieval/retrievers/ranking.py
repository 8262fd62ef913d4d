"""Shared by retrievers: turn store matches into a pool, skip when others found enough."""

from __future__ import annotations

from collections.abc import Mapping

from bethink.model import Candidate, Evidence, Pool
from bethink.ports import SearchResult
from bethink.retrieval.context import Context, Retriever


def ranked_pool(name: str, found: SearchResult, ctx: Context, *, scale: float = 1.0) -> Pool:
    """Build a pool in which each candidate's evidence is the retriever's score and rank.

    A store returns its matches best first, ties by id; that order is kept.
    """
    if found.note:
        ctx.add_step_note(found.note)
    ctx.note_damage(found.damage)
    by = f"channel.{name}"
    pool = []
    for rank, (item, value, why) in enumerate(found.matches, start=1):
        score = value / scale
        # As their classes make them, in a third of the time.
        seen = tuple.__new__(Evidence, (by, "add", score, why, None, rank))
        pool.append(tuple.__new__(Candidate, (item, score, (seen,), None, None)))
    return tuple(pool)


def skip_if_filled(
    found: Mapping[Retriever, Pool], after: tuple[str, ...], enough: int, ctx: Context
) -> str:
    """Return why a retriever can be skipped, or an empty string.

    It can when the retrievers named in ``after`` together found ``enough`` memories or,
    where that is 0, as many as requested. A name includes everything below it: "sf" covers
    "sf.porter" and "sf.trigram".
    """
    if not after:
        return ""
    ids = {
        cand.item.id
        for channel, pool in found.items()
        if any(channel.name == name or channel.name.startswith(f"{name}.") for name in after)
        for cand in pool
    }
    query = ctx.query
    limit = enough or query.k + query.offset + len(query.seen)
    if len(ids) < limit:
        return ""
    return f"{', '.join(after)} already found {len(ids)}; {limit} are enough"
