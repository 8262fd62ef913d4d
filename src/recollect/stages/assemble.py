"""What the reader of an answer should know beside the hits: warnings, corrections, conflicts."""

from __future__ import annotations

from recollect.context import Context
from recollect.model import Filters, Item, Link, Pool, Relation
from recollect.ports import Scope
from recollect.scope import rejects

_TOLD = ("contradicts", "supersedes")


def warnings_for(hits: Pool, relations: tuple[Relation, ...]) -> tuple[str, ...]:
    """Contradictions, corrections, doubtful sources and hidden text among the hits."""
    warnings = [
        f"{hit.item.id} is flagged: {', '.join(hit.item.flags)}" for hit in hits if hit.item.flags
    ]
    warnings += [
        f"{hit.item.id} comes from an untrusted source ({hit.item.source})"
        for hit in hits
        if hit.item.trust == 0
    ]
    warnings += [_tell(relation) for relation in relations]
    return tuple(dict.fromkeys(warnings))


def _tell(relation: Relation) -> str:
    ends = (relation.item, relation.other)
    first, second = reversed(ends) if relation.inbound else ends
    return f"{first} {relation.type} {second}"


def relations_of(hits: Pool, ctx: Context) -> tuple[Relation, ...]:
    """Contradictions and corrections of the hits, from both sides."""
    if not hits:
        return ()
    links = ctx.links_of([hit.item.id for hit in hits], _TOLD)
    between = [link for link in links if link.src.kind == link.dst.kind == "item"]
    known = _visible({end.id for link in between for end in (link.src, link.dst)}, ctx)
    return tuple(
        relation
        for hit in hits
        for link in between
        if link.src.id in known and link.dst.id in known
        for relation in _told_of(hit.item.id, link, known)
    )


def _told_of(hit: str, link: Link, known: dict[str, Item]) -> tuple[Relation, ...]:
    """The link as the hit's reader sees it, if it is the hit's at all."""
    if link.src.id == hit:
        return (Relation(hit, link.type, link.dst.id, known[link.dst.id].text),)
    if link.dst.id == hit:
        return (Relation(hit, link.type, link.src.id, known[link.src.id].text, inbound=True),)
    return ()


def _visible(ids: set[str], ctx: Context) -> dict[str, Item]:
    """Those the asker may know of; what was corrected may be named."""
    if not ids:
        return {}
    query = ctx.query
    filters = Filters(max_classification=query.filters.max_classification, include_superseded=True)
    scope = Scope(filters, query.moment, query.as_of)
    items = ctx.get(ids)
    return {key: item for key, item in items.items() if rejects(item, scope) is None}
