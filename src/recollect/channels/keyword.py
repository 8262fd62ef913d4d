"""Finds memories by the words they share with the question, scored for themselves."""

from __future__ import annotations

from dataclasses import dataclass

from recollect.channels.ranking import ranked
from recollect.context import Context
from recollect.model import Pool
from recollect.ports import TextSearch


@dataclass(frozen=True, slots=True)
class Keyword:
    """BM25 squeezed into 0 to 1 as s / (1 + s), whatever the question could have reached.

    ``levels`` are searched; all of them where none are named.
    """

    depth: int = 15
    weight: float = 1.0
    about_weight: float = 1.0
    postings_budget: int = 20_000
    levels: tuple[str, ...] = ()
    name: str = "keyword"

    def __call__(self, ctx: Context) -> Pool:
        search = TextSearch(
            ctx.query.text,
            ctx.reach(self.depth),
            about_weight=self.about_weight,
            postings_budget=self.postings_budget,
        )
        found = ctx.store.search_text(search, ctx.scope_of(self.levels))
        squeezed = tuple(
            match._replace(score=abs(match.score) / (1.0 + abs(match.score)))
            for match in found.matches
        )
        return ranked(self.name, found._replace(matches=squeezed), ctx)
