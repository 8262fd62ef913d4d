"""What the reader of an answer should be warned of."""

from __future__ import annotations

from recollect.context import Context
from recollect.model import Filters, Link, Pool
from recollect.ports import Scope
from recollect.scope import rejects

_TOLD = ("contradicts", "supersedes")


def warnings_for(hits: Pool, ctx: Context) -> tuple[str, ...]:
    """Contradictions, corrections, doubtful sources and hidden text among the hits."""
    warnings = [
        f"{hit.item.id} is flagged: {', '.join(hit.item.flags)}" for hit in hits if hit.item.flags
    ]
    warnings += [
        f"{hit.item.id} comes from an untrusted source ({hit.item.source})"
        for hit in hits
        if hit.item.trust == 0
    ]
    if hits:
        links = ctx.store.links_of([hit.item.id for hit in hits], _TOLD)
        between = [link for link in links if link.src.kind == link.dst.kind == "item"]
        visible = _visible({end.id for link in between for end in (link.src, link.dst)}, ctx)
        warnings += [_tell(link) for link in between if {link.src.id, link.dst.id} <= visible]
    return tuple(dict.fromkeys(warnings))


def _visible(ids: set[str], ctx: Context) -> set[str]:
    """Those the asker may know of; what was corrected may be named."""
    if not ids:
        return ids
    query = ctx.query
    filters = Filters(max_classification=query.filters.max_classification, include_superseded=True)
    scope = Scope(filters, query.moment, query.as_of)
    items = ctx.store.get(sorted(ids), as_of=query.as_of)
    return {key for key, item in items.items() if rejects(item, scope) is None}


def _tell(link: Link) -> str:
    return f"{link.src.id} {link.type} {link.dst.id}"
