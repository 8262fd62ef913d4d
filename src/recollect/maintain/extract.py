"""Has a language model read what the rules could not: entities, facts and relations."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from recollect.ingest.read_by_model import READ, ask, take_in
from recollect.maintain.job import Proposal, Work
from recollect.maintain.looking import batches, each

_BATCH = 10
_LOOK_BACK = 50


@dataclass(frozen=True, slots=True)
class ReadByModel:
    """Reads memories, one question to the model each. What was read before is not read
    again, so that it may be done twice."""

    ids: tuple[str, ...]

    def __call__(self, work: Work) -> None:
        if work.model is None:
            return
        for item in work.store.get(self.ids).values():
            if item.live_to is not None or is_read(item.id, work):
                continue
            reading = ask(item, work.model, work.budget, work.store)
            # Whoever changed it while the model was reading, changed what was read.
            now = work.store.get([item.id])[item.id]
            if now.live_to is None and now.rev == item.rev:
                ctx = work.writing()
                take_in(now, reading, work.model.name, ctx)
                work.store.log(READ, item=item.id, actor=ctx.actor, detail="", now=work.now)

    def __str__(self) -> str:
        return f"lets the model read {len(self.ids)} memories"


@dataclass(frozen=True, slots=True)
class Extract:
    """The newest ``most`` memories that no model has read yet; none without a model."""

    most: int = 100
    name: str = "extract"
    ends_raw: bool = False
    by_age: bool = False

    def plan(self, work: Work) -> Iterator[Proposal]:
        """Some to a proposal, so that a model that stops answering costs only those."""
        if work.model is None:
            return
        waiting = (item.id for item in each(work, levels=("item",)) if not is_read(item.id, work))
        left = self.most
        for batch in batches(waiting, _BATCH):
            some = tuple(batch[:left])
            left -= len(some)
            if not some:
                return
            yield Proposal(
                f"{len(some)} memories have not been read by a model",
                f"reads {len(some)} memories",
                deeds=(ReadByModel(some),),
            )


def is_read(item_id: str, work: Work) -> bool:
    """Whether a model has read a memory."""
    lines = work.store.changes(item=item_id, actor=None, limit=_LOOK_BACK)
    return any(line.kind == READ for line in lines)
