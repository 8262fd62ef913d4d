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

    Levels named in ``most`` are counted apart, each up to its own number. What a
    profile says here is used when the caller names nothing else. A question without
    words may return ``wordless`` times k.
    """

    k: int = 10
    max_tokens: int = 2000
    most: tuple[tuple[str, int], ...] = ()
    wordless: int = 4
    name: str = "budget"

    def __call__(self, pool: Pool, ctx: Context) -> Pool:
        query = ctx.query
        spent = 0
        kept: list[Candidate] = []
        for cand in _within_numbers(unseen(pool, query)[query.offset :], query):
            price = cost(cand.item)
            if kept and spent + price > query.max_tokens:
                break
            kept.append(cand)
            spent += price
        return tuple(kept)


def _within_numbers(pool: Pool, query: Query) -> Pool:
    """At most k, and of the levels counted apart at most as many as each may have."""
    if not query.most:
        return pool[: query.k]
    apart = dict(query.most)
    left = dict(apart)
    others = query.k
    kept = []
    for cand in pool:
        level = cand.item.level
        if level in apart:
            left[level] -= 1
            fits = left[level] >= 0
        else:
            others -= 1
            fits = others >= 0
        if fits:
            kept.append(cand)
    return tuple(kept)


def unseen(pool: Pool, query: Query) -> Pool:
    """What earlier pages have not returned."""
    if not query.seen:
        return pool
    return tuple(cand for cand in pool if mark_of(cand.item.id) not in query.seen)


def page_of(pool: Pool, kept: Pool, query: Query) -> Page:
    """Where in the whole answer the kept part lies."""
    more = query.offset + len(kept) < len(unseen(pool, query))
    stopped_by = "end" if not more else "k" if _numbers_reached(pool, kept, query) else "tokens"
    return Page(
        offset=query.offset + len(query.seen),
        returned=len(kept),
        total=len(pool),
        has_more=more,
        stopped_by=stopped_by,  # type: ignore[arg-type]
        tokens=sum(cost(cand.item) for cand in kept),
    )


def _numbers_reached(pool: Pool, kept: Pool, query: Query) -> bool:
    """Whether it was the numbers, not the tokens, that ended the page."""
    return len(kept) >= len(_within_numbers(unseen(pool, query)[query.offset :], query))
