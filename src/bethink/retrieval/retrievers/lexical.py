"""Retrieve memories by the words they share with the question."""

from __future__ import annotations

from collections.abc import Mapping

from bethink.core.dataclass import dataclass
from bethink.model import Pool
from bethink.ports import TextSearch
from bethink.retrieval.context import Context, Retriever
from bethink.retrieval.query_analysis import unknown_share
from bethink.retrieval.retrievers.ranking import ranked_pool, skip_if_filled


@dataclass(frozen=True, slots=True)
class Lexical:
    """BM25 over stemmed words, any of which may match.

    The score is the share of the best score that the question's words could reach, so 1
    would be a perfect match and scores of two questions can be compared. Only ``levels``
    are searched; all levels when empty. Skipped when the retrievers in ``after`` found
    ``enough`` (0: as many as requested).
    """

    depth: int = 50
    weight: float = 1.0
    about_weight: float = 1.0
    k1: float = 1.2
    b: float = 0.75
    postings_budget: int = 20_000
    levels: tuple[str, ...] = ()
    after: tuple[str, ...] = ()
    enough: int = 0
    name: str = "lexical"
    matches = "words"

    def skip(self, found: Mapping[Retriever, Pool], ctx: Context) -> str:
        return skip_if_filled(found, self.after, self.enough, ctx)

    def __call__(self, ctx: Context) -> Pool:
        search = TextSearch(
            ctx.query.text,
            ctx.candidate_limit(self.depth),
            self.about_weight,
            self.k1,
            self.b,
            self.postings_budget,
        )
        found = ctx.store.search.text(search, ctx.scope_for_levels(self.levels))
        return ranked_pool(self.name, found, ctx, scale=found.ceiling or 1.0)


@dataclass(frozen=True, slots=True)
class Substring:
    """Misspelt words and parts of words, used only when whole words are not enough.

    Skipped unless words that no memory holds carry ``unknown_share`` of the question, and
    when ``after`` already found ``enough`` or, with ``until_full``, as many as requested.
    Memories that hold less than ``min_share`` of the question are left out.
    """

    depth: int = 20
    weight: float = 1.0
    unknown_share: float = 0.4
    after: str = "lexical"
    enough: int = 0
    until_full: bool = False
    min_share: float = 0.0
    name: str = "substring"
    matches = "pieces"

    def skip(self, found: Mapping[Retriever, Pool], ctx: Context) -> str:
        share = unknown_share(ctx)
        if not share:
            return "every word of the question is known"
        if share < self.unknown_share:
            return "most of the question's words are known"
        before = next((pool for ch, pool in found.items() if ch.name == self.after), ())
        if self.enough and len(before) >= self.enough:
            return f"{self.after} already found {len(before)}"
        return skip_if_filled(found, (self.after,), 0, ctx) if self.until_full else ""

    def read_ahead(self, ctx: Context) -> None:
        """Tell the store that the words will be looked for, where nothing can skip it."""
        if not (self.enough or self.skip({}, ctx)):
            ctx.store.search.read_ahead(ctx.scope, text=ctx.query.text)

    def __call__(self, ctx: Context) -> Pool:
        found = ctx.store.search.substring(ctx.query.text, self.depth, ctx.scope)
        enough = tuple(match for match in found.matches if match.score >= self.min_share)
        return ranked_pool(self.name, found._replace(matches=enough), ctx)
