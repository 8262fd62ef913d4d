"""Lets a turn borrow from what was said beside it in the same conversation."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from recollect.context import Context
from recollect.model import Candidate, Evidence, Item, Pool, best_first
from recollect.scope import rejects

FOLLOWS = ("follows",)


@dataclass(frozen=True, slots=True)
class Order:
    """Who comes before and after whom among the turns at hand."""

    before: Mapping[str, str]
    after: Mapping[str, str]
    items: Mapping[str, Item]


@dataclass(frozen=True, slots=True)
class Conversation:
    """Adds shares of the scores of the turns around and of the whole conversation.

    An answer rarely repeats the words of its question: the turn before by somebody
    else lends ``before`` of its score, the one after ``after``, the ones two steps
    away ``further``, and the mean of the conversation's best three turns
    ``session``. A turn beside a strong one is brought in even if no channel found it.
    """

    before: float = 0.27
    after: float = 0.12
    further: float = 0.1
    session: float = 0.35
    seeds: int = 30
    name: str = "conversation"

    def __call__(self, pool: Pool, ctx: Context) -> Pool:
        seeds = [cand for cand in pool[: self.seeds] if cand.item.session is not None]
        if not seeds:
            return pool
        order = turns_beside(seeds, pool, ctx)
        scores = {cand.item.id: cand.score for cand in pool}
        moods = self._sessions(pool)
        known = {cand.item.id for cand in pool}
        brought = [Candidate(item) for key, item in order.items.items() if key not in known]
        return best_first(
            self._lend(cand, order, scores, moods) for cand in (*pool, *brought)
        )

    def _lend(
        self,
        cand: Candidate,
        order: Order,
        scores: Mapping[str, float],
        moods: Mapping[str, float],
    ) -> Candidate:
        item = cand.item
        if item.session is None:
            return cand
        reasons = list(cand.evidence)
        score = cand.score

        def lend(share: float, value: float, why: str, via: str | None = None) -> None:
            nonlocal score
            if share * value > 0:
                reasons.append(Evidence(f"expand.{self.name}", "add", share * value, why, via))
                score += share * value

        previous, following = order.before.get(item.id), order.after.get(item.id)
        for share, near, why in (
            (self.before, previous, "said after"),
            (self.after, following, "said before"),
        ):
            if near is not None:
                if _another_speaks(item, order.items.get(near)):
                    lend(share, scores.get(near, 0.0), why, near)
                further = (order.before if near == previous else order.after).get(near)
                if further is not None:
                    lend(self.further, scores.get(further, 0.0), "said near", further)
        lend(self.session, moods.get(item.session, 0.0), "of a conversation about it")
        return Candidate(item, score, tuple(reasons))

    def _sessions(self, pool: Pool) -> dict[str, float]:
        """For each conversation the mean of its three best turns."""
        best: dict[str, list[float]] = defaultdict(list)
        for cand in pool:
            if cand.item.session is not None and len(best[cand.item.session]) < 3:
                best[cand.item.session].append(cand.score)
        return {session: sum(scores) / 3 for session, scores in best.items()}


def turns_beside(seeds: Iterable[Candidate], pool: Pool, ctx: Context) -> Order:
    """The turns up to two steps from the seeds, those in scope, with their order."""
    before: dict[str, str] = {}
    after: dict[str, str] = {}
    edge = {cand.item.id for cand in seeds}
    reached = set(edge)
    for _ in range(2):
        links = ctx.store.links_of(sorted(edge), FOLLOWS)
        for link in links:
            before[link.src.id] = link.dst.id
            after[link.dst.id] = link.src.id
        ends = {link.src.id for link in links} | {link.dst.id for link in links}
        edge = ends - reached
        reached |= ends
        if not edge:
            break
    items = {cand.item.id: cand.item for cand in pool}
    missing = sorted(reached - items.keys())
    fetched = ctx.store.get(missing, as_of=ctx.query.as_of)
    items.update({key: item for key, item in fetched.items() if not rejects(item, ctx.scope)})
    return Order(before, after, items)


def _another_speaks(item: Item, other: Item | None) -> bool:
    return other is not None and (item.speaker is None or item.speaker != other.speaker)
