"""Whether a channel need not be asked because others have found enough."""

from __future__ import annotations

from collections.abc import Mapping

from recollect.context import Channel, Context
from recollect.model import Pool


def filled(found: Mapping[Channel, Pool], after: tuple[str, ...], enough: int, ctx: Context) -> str:
    """Says so where the channels named in ``after`` found ``enough`` memories between them,
    or, where that is 0, as many as were asked for; else an empty string.

    A name stands for itself and for all below it: "sf" for "sf.porter" and "sf.trigram".
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
    return f"{', '.join(after)} filled the limit: {len(ids)} found, {limit} are enough"
