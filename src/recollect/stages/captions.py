"""Says where hits come from: the captions of the episodes and conversations behind them."""

from __future__ import annotations

from dataclasses import dataclass

from recollect.context import Addition, Context
from recollect.model import Candidate, Caption, Filters, Item, Pool
from recollect.ports import Scope
from recollect.scope import rejects
from recollect.text import caption


@dataclass(frozen=True, slots=True)
class Captions:
    """One caption for each source, worth as much as the best memory from it; at most ``most``.

    A memory's source is the episode it was made from, else its conversation, else, of
    an episode, itself. Counted is all that was considered before the gate, so that the
    sources of what was cut off are named too.
    """

    most: int = 5
    name: str = "captions"

    def __call__(self, hits: Pool, ctx: Context) -> Addition:
        told = [cand for cand in ctx.offered or hits if cand.item.level != "insight"]
        if not hits:
            return Addition()
        episodes = _episodes({cand.item.parent for cand in told if cand.item.parent}, ctx)
        groups: dict[str, list[Candidate]] = {}
        for cand in told:
            source = _source(cand.item, episodes)
            if source is not None:
                groups.setdefault(source, []).append(cand)
        ranked = sorted(groups.items(), key=lambda group: (-group[1][0].score, group[0]))
        return Addition(
            captions=tuple(
                Caption(
                    source,
                    _words(episodes.get(source, group[0].item)),
                    group[0].score,
                    tuple(cand.item.id for cand in group),
                )
                for source, group in ranked[: self.most]
            )
        )


def _source(item: Item, episodes: dict[str, Item]) -> str | None:
    if item.parent in episodes:
        return item.parent
    return item.session or (item.id if item.level == "raw" else None)


def _words(item: Item) -> str:
    return item.caption or caption(item.text, item.speaker)


def _episodes(ids: set[str], ctx: Context) -> dict[str, Item]:
    """The episodes the asker may know of; a question's filters are about hits, not sources."""
    if not ids:
        return {}
    query = ctx.query
    filters = Filters(max_classification=query.filters.max_classification, include_superseded=True)
    scope = Scope(filters, query.moment, query.as_of)
    found = ctx.get(ids)
    return {
        key: item
        for key, item in found.items()
        if item.level == "raw" and rejects(item, scope) is None
    }
