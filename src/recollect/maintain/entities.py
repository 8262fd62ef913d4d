"""Keeps entities fresh: vectors that are missing, and how much goes on around each."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from recollect.ingest.entity_vectors import entity_text
from recollect.maintain.job import Proposal, Work
from recollect.maintain.looking import batches

_BATCH = 500


@dataclass(frozen=True, slots=True)
class EmbedEntities:
    """Makes the vectors that entities lack, ``most`` at most."""

    most: int

    def __call__(self, work: Work) -> None:
        if work.embedder is None:
            return
        waiting = work.store.unembedded_entities(work.embedder.model, self.most)
        for batch in batches(waiting, _BATCH):
            made = work.embedder.embed([entity_text(entity) for entity in batch])
            by_id = {entity.id: one for entity, one in zip(batch, made, strict=True)}
            work.store.set_entity_embeddings(work.embedder.model, by_id)

    def __str__(self) -> str:
        return "makes the vectors that entities lack"


@dataclass(frozen=True, slots=True)
class KeepMomenta:
    """Keeps what was worked out of how much goes on around entities."""

    values: tuple[tuple[str, float], ...]

    def __call__(self, work: Work) -> None:
        work.store.set_momenta(dict(self.values), work.now)

    def __str__(self) -> str:
        return f"keeps the momentum of {len(self.values):,} entities"


@dataclass(frozen=True, slots=True)
class Entities:
    """Refreshes at most ``most`` entities in a run, the most mentioned first."""

    most: int = 5_000
    name: str = "entities"
    ends_raw: bool = False
    by_age: bool = False

    def plan(self, work: Work) -> Iterator[Proposal]:
        """One proposal for the vectors, one for the momenta, where any is out of date."""
        if work.embedder is not None:
            lacking = len(work.store.unembedded_entities(work.embedder.model, self.most))
            if lacking:
                told = f"{lacking:,} entities lack a vector of {work.embedder.model}"
                yield Proposal(told, "entities lack vectors", deeds=(EmbedEntities(self.most),))
        stale = tuple(self._stale(work))
        if stale:
            told = f"the momentum of {len(stale):,} entities is out of date"
            yield Proposal(told, "momenta are out of date", deeds=(KeepMomenta(stale),))

    def _stale(self, work: Work) -> Iterator[tuple[str, float]]:
        seen = 0
        while seen < self.most:
            page = work.store.entities(limit=min(_BATCH, self.most - seen), offset=seen)
            if not page:
                return
            seen += len(page)
            found = work.store.momenta([entity.id for entity in page], work.now)
            yield from (
                (key, momentum.value)
                for key, momentum in sorted(found.items())
                if momentum.worked_out
            )
