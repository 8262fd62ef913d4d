"""Links memories of nearly the same meaning, for which no write has the time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from recollect.ingest.relate import LEAST_COSINE, MOST_SIMILAR, link_to, similar_to
from recollect.maintain.job import Proposal, Work
from recollect.maintain.looking import batches, each
from recollect.model import Item, Link

_BATCH = 200


@dataclass(frozen=True, slots=True)
class Relate:
    """Up to five links ``similar_to`` each, for the newest ``most`` memories that have none."""

    most: int = 2_000
    name: str = "relate"
    ends_raw: bool = False
    by_age: bool = False

    def plan(self, work: Work) -> Iterator[Proposal]:
        """A proposal for every some hundred memories, where links are to be made."""
        if work.embedder is None:
            return
        looked = 0
        for batch in batches(each(work, levels=("item",)), _BATCH):
            links = _links(batch, work)
            if links:
                yield Proposal(
                    f"{len(links)} pairs of memories mean nearly the same",
                    f"links {len(links)} pairs at a cosine of {LEAST_COSINE} or more,"
                    f" {MOST_SIMILAR} at most for each",
                    links=tuple(links),
                )
            looked += len(batch)
            if looked >= self.most:
                return


def _links(batch: Sequence[Item], work: Work) -> list[Link]:
    """What the memories of a batch should be linked with and are not; each pair once."""
    ctx = work.writing()
    ids = [item.id for item in batch]
    linked: dict[str, set[str]] = {item_id: set() for item_id in ids}
    for link in work.store.links_of(ids):
        for end, beyond in ((link.src.id, link.dst.id), (link.dst.id, link.src.id)):
            if end in linked and link.src.kind == link.dst.kind == "item":
                linked[end].add(beyond)
    vectors = work.store.embeddings(ids, ctx.embedder.model) if ctx.embedder else {}
    links: list[Link] = []
    with work.store.snapshot():
        for item in batch:
            room = MOST_SIMILAR - len(linked[item.id])
            found = similar_to(item, vectors.get(item.id), linked[item.id], ctx) if room > 0 else ()
            for other in found[:room]:
                links.append(link_to(item, other, ctx))
                linked.get(other.id, set()).add(item.id)
    return links
