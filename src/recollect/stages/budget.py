"""Keeps what fits the caller's limits."""

from __future__ import annotations

from dataclasses import dataclass

from recollect.context import Context
from recollect.model import Candidate, Item, Page, Pool, Query, mark_of


def cost(item: Item) -> int:
    """The tokens a memory takes in a prompt, a little for its heading included."""
    return (item.tokens or -(-len(item.text.encode()) // 4)) + 8


@dataclass(frozen=True, slots=True)
class Budget:
    """At most k, at most the token budget, from the offset on; but always one.

    ``k`` and ``max_tokens`` of a profile are used when the caller names none.
    """

    k: int = 10
    max_tokens: int = 2000
    name: str = "budget"

    def __call__(self, pool: Pool, ctx: Context) -> Pool:
        query = ctx.query
        spent = 0
        kept: list[Candidate] = []
        for cand in unseen(pool, query)[query.offset : query.offset + query.k]:
            price = cost(cand.item)
            if kept and spent + price > query.max_tokens:
                break
            kept.append(cand)
            spent += price
        return tuple(kept)


def unseen(pool: Pool, query: Query) -> Pool:
    """What earlier pages have not returned."""
    if not query.seen:
        return pool
    return tuple(cand for cand in pool if mark_of(cand.item.id) not in query.seen)


def page_of(pool: Pool, kept: Pool, query: Query) -> Page:
    """Where in the whole answer the kept part lies."""
    more = query.offset + len(kept) < len(unseen(pool, query))
    stopped_by = "end" if not more else "k" if len(kept) >= query.k else "tokens"
    return Page(
        offset=query.offset + len(query.seen),
        returned=len(kept),
        total=len(pool),
        has_more=more,
        stopped_by=stopped_by,  # type: ignore[arg-type]
        tokens=sum(cost(cand.item) for cand in kept),
    )
