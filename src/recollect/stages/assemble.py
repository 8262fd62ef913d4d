"""What the reader of an answer should be warned of."""

from __future__ import annotations

from recollect.context import Context
from recollect.model import Link, Pool

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
        shown = [hit.item.id for hit in hits]
        links = ctx.store.links_of(shown, _TOLD)
        warnings += [_tell(link) for link in links if link.src.kind == link.dst.kind == "item"]
    return tuple(dict.fromkeys(warnings))


def _tell(link: Link) -> str:
    return f"{link.src.id} {link.type} {link.dst.id}"
