"""Assemble an answer: token budget, warnings and relations, usage tracking."""

from __future__ import annotations

from bethink.core.characters import estimate_tokens
from bethink.core.dataclass import dataclass
from bethink.model import Candidate, Filters, Item, Link, Page, Pool, Query, Relation, id_checksum
from bethink.ports import Scope, UsageDecay
from bethink.retrieval.context import Context
from bethink.retrieval.scope import rejection_reason
from bethink.retrieval.stages.late_interaction import with_passage


def token_cost(hit: Candidate) -> int:
    """Tokens that a hit takes in a prompt, as it is shown, including its heading."""
    if hit.passage is not None:
        return hit.passage.tokens + 8
    return estimate_tokens(hit.item.text, hit.item.tokens) + 8


@dataclass(frozen=True, slots=True)
class Budget:
    """Limit hits to k and the token budget, from the offset on; always at least one.

    What counts is what is shown: of a long memory its best passage.
    Levels named in ``most`` are counted separately, each up to its own number. A profile's
    values apply when the caller gives none. A question without words may return
    ``wordless`` times k.
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
        for cand in _limit_counts(exclude_seen(pool, query)[query.offset :], query):
            shown = with_passage(cand, ctx)
            cost = token_cost(shown)
            if kept and spent + cost > query.max_tokens:
                break
            kept.append(shown)
            spent += cost
        return tuple(kept)


def _limit_counts(pool: Pool, query: Query) -> Pool:
    """Keep at most k, and of separately counted levels at most their own number."""
    if not query.most:
        return pool[: query.k]
    limits = dict(query.most)
    remaining = dict(limits)
    unlimited_remaining = query.k
    kept = []
    for cand in pool:
        level = cand.item.level
        if level in limits:
            remaining[level] -= 1
            fits = remaining[level] >= 0
        else:
            unlimited_remaining -= 1
            fits = unlimited_remaining >= 0
        if fits:
            kept.append(cand)
    return tuple(kept)


def exclude_seen(pool: Pool, query: Query) -> Pool:
    """Drop candidates that earlier pages returned."""
    if not query.seen:
        return pool
    return tuple(cand for cand in pool if id_checksum(cand.item.id) not in query.seen)


def page_of(pool: Pool, kept: Pool, query: Query) -> Page:
    """Describe where in the whole answer the kept part lies."""
    more = query.offset + len(kept) < len(exclude_seen(pool, query))
    stopped_by = "end" if not more else "k" if _is_count_limited(pool, kept, query) else "tokens"
    return Page(
        offset=query.offset + len(query.seen),
        returned=len(kept),
        total=len(pool),
        has_more=more,
        stopped_by=stopped_by,  # type: ignore[arg-type]
        tokens=sum(map(token_cost, kept)),
    )


def _is_count_limited(pool: Pool, kept: Pool, query: Query) -> bool:
    """Whether the counts, not the tokens, ended the page."""
    return len(kept) >= len(_limit_counts(exclude_seen(pool, query)[query.offset :], query))


REPORTED_LINKS = ("contradicts", "supersedes")


def warnings_for(hits: Pool, relations: tuple[Relation, ...]) -> tuple[str, ...]:
    """List contradictions, corrections, untrusted sources and flagged text among the hits."""
    warnings = [
        f"{hit.item.id} is flagged: {', '.join(hit.item.flags)}" for hit in hits if hit.item.flags
    ]
    warnings += [
        f"{hit.item.id} comes from an untrusted source ({hit.item.source})"
        for hit in hits
        if hit.item.trust == 0
    ]
    warnings += [_describe_relation(relation) for relation in relations]
    return tuple(dict.fromkeys(warnings))


def _describe_relation(relation: Relation) -> str:
    ends = (relation.item, relation.other)
    first, second = reversed(ends) if relation.inbound else ends
    return f"{first} {relation.type} {second}"


def relations_of(hits: Pool, ctx: Context) -> tuple[Relation, ...]:
    """Return contradictions and corrections of the hits, in both directions."""
    if not hits:
        return ()
    links = ctx.links_of([hit.item.id for hit in hits], REPORTED_LINKS)
    between = [link for link in links if link.src.kind == link.dst.kind == "item"]
    known = _visible_items({end.id for link in between for end in (link.src, link.dst)}, ctx)
    return tuple(
        relation
        for hit in hits
        for link in between
        if link.src.id in known and link.dst.id in known
        for relation in _relation_of(hit.item.id, link, known)
    )


def _relation_of(hit: str, link: Link, known: dict[str, Item]) -> tuple[Relation, ...]:
    """Return the link from the hit's point of view; empty if it is not the hit's."""
    if link.src.id == hit:
        return (Relation(hit, link.type, link.dst.id, known[link.dst.id].text),)
    if link.dst.id == hit:
        return (Relation(hit, link.type, link.src.id, known[link.src.id].text, inbound=True),)
    return ()


def _visible_items(ids: set[str], ctx: Context) -> dict[str, Item]:
    """Return the items the caller may see, of the users asked for; superseded ones included."""
    if not ids:
        return {}
    query, asked = ctx.query, ctx.query.filters
    filters = Filters(
        max_classification=asked.max_classification,
        users=asked.users,
        include_shared=asked.include_shared,
        include_superseded=True,
    )
    scope = Scope(filters, query.moment, query.as_of)
    items = ctx.get(ids)
    return {key: item for key, item in items.items() if rejection_reason(item, scope) is None}


@dataclass(frozen=True, slots=True)
class Track:
    """Record a use of every returned memory.

    With ``decay_interval`` above 0 memories fade: every so many recalls each one not returned
    within ``grace_s`` loses ``decay_rate``. A returned one gains ``regain`` × its score, up to
    1. ``by_default`` records without being asked, where neither the caller nor the setting
    ``track`` decides.
    """

    by_default: bool = False
    decay_interval: int = 0
    decay_rate: float = 0.1
    grace_s: float = 60.0
    regain: float = 0.0
    name: str = "track"

    def __call__(self, hits: Pool, ctx: Context) -> None:
        fading = self._fading_update(hits)
        if not hits and fading is None:
            return
        ctx.store.activity.note_use([hit.item.id for hit in hits], ctx.query.now, fading=fading)

    def _fading_update(self, hits: Pool) -> UsageDecay | None:
        if self.decay_interval < 1 and self.regain == 0:
            return None
        gains = {hit.item.id: self.regain * max(0.0, hit.score) for hit in hits}
        return UsageDecay(self.decay_interval, self.decay_rate, self.grace_s, gains)
