"""Looking after a memory: export and import, missing vectors, health."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from typing import Any, NamedTuple

from recollect.errors import ModelError, StoreBusy, StoreError
from recollect.facade.opened import Opened
from recollect.ports import Embedder, Finding, Progress
from recollect.text import spoken

BATCH = 500


class Made(NamedTuple):
    """What a reindex made: vectors of memories, vectors of entities, signatures."""

    vectors: int = 0
    entities: int = 0
    signatures: int = 0


class Upkeep(Opened):
    """The keeping side of a memory."""

    def export(self) -> Iterator[dict[str, Any]]:
        """Everything, losslessly, as JSON-ready records."""
        try:
            self.store.log(
                "exported", item=None, actor=self.settings.actor, detail="all", now=self._clock()
            )
        except StoreBusy:
            raise
        except StoreError:
            pass  # the journal cannot be written (a full disk): all the more is taken along
        return self.store.dump()

    def import_(self, records: Iterable[Mapping[str, Any]]) -> int:
        """Takes an export in, all or nothing; known memories are left as they are."""
        count = self.store.load(records, actor=self.settings.actor, now=self._clock())
        # Without a working model it is found by its words, by meaning after a reindex.
        with suppress(ModelError):
            self.reindex()
        return count

    def reindex(self, *, progress: Progress | None = None) -> int:
        """Makes the signatures and vectors that are missing, and counts the vectors of
        memories. Can be stopped and taken up again."""
        return self.make_missing(progress=progress).vectors

    def make_missing(self, *, progress: Progress | None = None) -> Made:
        """What `reindex` does, counted by kind."""
        signed = 0
        while count := self.store.make_signatures(BATCH):
            signed += count
        if self.embedder is None:
            return Made(signatures=signed)
        done = 0
        while waiting := self.store.unembedded(self.embedder.model, BATCH):
            made = self.embedder.embed([spoken(item) for item in waiting])
            self.store.set_embeddings(
                self.embedder.model,
                {item.id: vector for item, vector in zip(waiting, made, strict=True)},
            )
            done += len(waiting)
            if progress is not None:
                progress(done, 0)
        return Made(done, self._embed_entities(self.embedder), signed)

    def _embed_entities(self, embedder: Embedder) -> int:
        from recollect.ingest.entity_vectors import (
            entity_text,
        )  # start-up time: recall does without

        done = 0
        while waiting := self.store.unembedded_entities(embedder.model, BATCH):
            done += len(waiting)
            made = embedder.embed([entity_text(entity) for entity in waiting])
            self.store.set_entity_embeddings(
                embedder.model,
                {entity.id: vector for entity, vector in zip(waiting, made, strict=True)},
            )
        return done

    def doctor(self, *, repair: bool = False) -> list[Finding]:
        """Looks at everything that could be wrong; mends what is derived."""
        return self.store.check(repair=repair)

    def stats(self) -> dict[str, Any]:
        """Counts and sizes, and what is in use."""
        embedder = self.embedder.model if self.embedder else "none"
        return {**self.store.stats(), "embedder": embedder}
