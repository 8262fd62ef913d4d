"""Judge memories that no write judged: of before the model, without a vector, or imported.

The journal is the queue. It says of each memory whether it was judged when it was stored, and
how far this job has come; so an interrupted run is continued, and nothing is judged twice.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import takewhile

from bethink.core import plural
from bethink.core.named_tuple import NamedTuple
from bethink.ingest.updates import judge_stored
from bethink.maintain import journal
from bethink.maintain.job import Action, JobContext, Proposal, batches
from bethink.model import Item, Link
from bethink.ports import Event, Store, is_judged

_NAME = "updates"
_MAX_LINES = 200_000  # of the journal, read in one run


class _Stretch(NamedTuple):
    """A part of the journal: after which line it begins, its last one, and those that wait."""

    after: int
    through: int
    waiting: Sequence[Event]


@dataclass(frozen=True, slots=True)
class JudgeUpdates:
    """Link at most ``most`` memories to what they update, ``batch`` at a time, oldest first.

    Only in a run over all memories: what it has passed, it does not look at again.
    """

    most: int = 5_000
    batch: int = 250
    name: str = _NAME

    def plan(self, work: JobContext) -> Iterator[Proposal]:
        """Propose a few hundred memories at a time; each proposal keeps its place."""
        sees_all = (
            journal.highest_seen(work.store) == journal.HIGHEST_CLASSIFICATION
            and not work.filters.narrows
        )
        if work.embedder is None or work.judge is None or not sees_all:
            return
        begin = after = int(journal.read_place(_NAME, work).get("through", 0))
        waiting, end = self._read_journal(after, work)
        parts = list(batches(waiting, self.batch))
        for part in parts:
            through = end if part is parts[-1] else part[-1].seq
            memories = plural(len({line.item for line in part}), "memory")
            action = Action(
                f"compare {memories} with those most like them",
                _judge_stretch,
                _Stretch(after, through, part),
            )
            yield Proposal(
                f"{memories} not compared with others yet",
                "not judged when stored",
                actions=(action,),
            )
            after = through
        if not parts and end - begin > journal.LINES_AT_ONCE:
            yield Proposal("", "", place=end)

    def _read_journal(self, after: int, work: JobContext) -> tuple[list[Event], int]:
        """Return the lines of memories that wait, and the number of the last line read."""
        waiting: list[Event] = []
        end = after
        while end - after < _MAX_LINES and (
            lines := work.store.admin.events(after=end, limit=journal.LINES_AT_ONCE)
        ):
            for line in lines:
                if line.item is not None and not is_judged(line):
                    waiting.append(line)
                end = line.seq
                if len(waiting) == self.most:
                    return waiting, end
        return waiting, end


def _judge_stretch(stretch: _Stretch, work: JobContext) -> None:
    """Link the memories of a stretch, as far as they have vectors, and keep the place.

    Nothing is done where another run was faster, or where the stretch before this one waits.
    """
    if work.embedder is None or journal.read_place(_NAME, work).get("through", 0) != stretch.after:
        return
    ids = list(dict.fromkeys(line.item for line in stretch.waiting if line.item))
    live = {
        item.id: item
        for item in work.store.items.get(ids).values()
        if item.live_to is None and item.status == "active" and item.level != "insight"
    }
    vectors = work.store.vectors.embeddings(list(live), work.embedder.model)
    ready = list(
        takewhile(lambda line: line.item not in live or line.item in vectors, stretch.waiting)
    )
    items = [live[one] for one in dict.fromkeys(line.item for line in ready) if one in live]
    said = [_as_said(item, work.store) for item in items]
    links = judge_stored(said, vectors, work.write_context())
    if links := _of_unchanged(links, work) if links else []:
        journal.record_links(links, work)
        work.store.graph.add_links(links, now=work.now)
    whole = len(ready) == len(stretch.waiting)
    through = stretch.through if whole else ready[-1].seq if ready else stretch.after
    if through > stretch.after:
        journal.keep_place(_NAME, through, work)


def _as_said(item: Item, store: Store) -> Item:
    """Return a memory as old as its words, whenever it was stored."""
    first = item
    for revision in sorted(store.items.history(item.id), key=lambda one: -one.rev):
        if revision.text != item.text:
            return item._replace(stored_at=first.live_from or item.stored_at)
        first = revision
    return item


def _of_unchanged(links: Sequence[Link], work: JobContext) -> list[Link]:
    """Leave out what was changed since the run began: a change judges its words itself."""
    ends = work.store.items.get([end.id for link in links for end in (link.src, link.dst)])
    same = {
        item.id
        for item in ends.values()
        if item.live_to is None and (item.live_from or item.stored_at) <= work.now
    }
    return [link for link in links if same.issuperset((link.src.id, link.dst.id))]
