"""Candidates, contexts and retrievers with a given ranking, for tests of single stages."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from bethink import Memory
from bethink.model import Candidate, Evidence, Item, Pool, Query
from bethink.retrieval.context import Context
from corpus import NOW


def item(number: int, text: str = "", **about: object) -> Item:
    made = Item(f"i{number:03d}", text or f"memory {number}", NOW, "test")
    return made._replace(**about)  # type: ignore[arg-type]


def cand(number: int, score: float = 1.0, text: str = "", **about: object) -> Candidate:
    return Candidate(item(number, text, **about)).with_evidence("start", "add", score)


def ctx(memory: Memory, text: str = "question", **about: object) -> Context:
    return Context(Query(text, NOW, **about), memory.store, memory.embedder)  # type: ignore[arg-type]


@dataclass(frozen=True)
class Fixed:
    """A channel whose ranking is given."""

    name: str
    order: tuple[int, ...]
    weight: float = 1.0

    def __call__(self, ctx: Context) -> Pool:
        return tuple(
            Candidate(
                item(number),
                1.0 / rank,
                (Evidence(f"channel.{self.name}", "add", 1.0 / rank, "", None, rank),),
            )
            for rank, number in enumerate(self.order, start=1)
        )


def fused(memory: Memory, fusion: Callable[..., Pool], *channels: Fixed) -> dict[str, float]:
    """The scores by id that a fusion gives to what these retrievers find."""
    context = ctx(memory)
    found: Any = {channel: channel(context) for channel in channels}
    return {one.item.id: one.score for one in fusion(found, context)}
