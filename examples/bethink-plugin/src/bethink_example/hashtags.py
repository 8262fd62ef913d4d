"""A retriever that finds memories by the hashtags of a question."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from bethink import Candidate, Context, Evidence, Item

_HASHTAG = re.compile(r"#([\w-]+)")


@dataclass(frozen=True, slots=True)
class Hashtags:
    """Memories that carry a hashtag of the question; the score is the share of them it carries.

    The fields are the settings of a profile. ``name`` and ``weight`` belong to every
    retriever; a ``depth`` limits how many memories it returns.
    """

    depth: int = 50
    weight: float = 1.0
    name: str = "hashtags"

    def __call__(self, ctx: Context) -> tuple[Candidate, ...]:
        wanted = sorted(set(_HASHTAG.findall(ctx.query.text)))
        carried: dict[str, tuple[Item, list[str]]] = {}
        for tag in wanted:
            for item in self._tagged(tag, ctx):
                carried.setdefault(item.id, (item, []))[1].append(tag)
        found = sorted(carried.values(), key=lambda one: (-len(one[1]), one[0].id))
        return tuple(
            self._candidate(item, len(tags) / len(wanted), tags, rank)
            for rank, (item, tags) in enumerate(found[: self.depth], start=1)
        )

    def _tagged(self, tag: str, ctx: Context) -> list[Item]:
        """Every memory in scope with this tag: the filters of the question come first."""
        filters = replace(ctx.scope.filters, tags=(*ctx.scope.filters.tags, tag))
        scope = ctx.scope._replace(filters=filters)
        found: list[Item] = []
        while page := ctx.store.items.browse(
            scope, limit=500, after=found[-1].id if found else None
        ):
            found += page
        return found

    def _candidate(self, item: Item, score: float, tags: list[str], rank: int) -> Candidate:
        why = "tagged " + ", ".join(f"#{tag}" for tag in tags)
        # A score is always the replay of its evidence.
        reason = Evidence(f"channel.{self.name}", "add", score, why, rank=rank)
        return Candidate(item, score, (reason,))
