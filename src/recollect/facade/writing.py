"""Remembering, correcting, forgetting."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from recollect.errors import Conflict, Refused
from recollect.facade.working import Working
from recollect.ingest.drafting import make_draft
from recollect.model import Draft, Item, Remembered
from recollect.ports import Progress, Receipt

if TYPE_CHECKING:
    from recollect.ingest.undo import Undo

BATCH = 500


@dataclass(frozen=True, slots=True)
class Forgotten:
    """What a forget did or, with ``preview``, would do.

    An erase reaches further: ``derived`` was made from the items and goes with them,
    ``quarantined`` was made from them and others, ``restored`` comes back because what
    stood in for it goes, ``notes`` are made anew.
    """

    items: tuple[Item, ...]
    kept: tuple[tuple[str, str], ...] = ()
    preview: bool = False
    receipt: Receipt | None = None
    derived: tuple[Item, ...] = ()
    quarantined: tuple[str, ...] = ()
    restored: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


class Writing(Working):
    """The writing side of a memory."""

    def remember(self, text: str, **about: Any) -> Remembered:
        """Stores one memory. ``about`` are the fields of ``Draft``.

        >>> with Memory.open(":memory:") as memory:
        ...     first = memory.remember("We chose PostgreSQL", kind="decision", topic="db")
        ...     again = memory.remember("We chose PostgreSQL.")
        ...     print(first.status, again.status, again.id == first.id)
        stored duplicate True
        """
        return self.remember_many([make_draft({"text": text, **about})])[0]

    def remember_many(
        self,
        drafts: Iterable[Draft | Mapping[str, Any] | str],
        *,
        progress: Progress | None = None,
        relate: bool = False,
    ) -> list[Remembered]:
        """Stores many, 500 to a transaction. A bad one is refused before its batch
        is stored; what came before stays. With ``relate`` each is also linked with what is
        of nearly the same meaning, which takes longer; else ``maintain`` does that."""
        from recollect.ingest.remember import remember  # start-up time: recall does without

        ready = [make_draft(draft) for draft in drafts]
        results: list[Remembered] = []
        for start in range(0, len(ready), BATCH):
            results += remember(ready[start : start + BATCH], self._writing(relating=relate))
            if progress is not None:
                progress(len(results), len(ready))
        return results

    def remember_each(self, drafts: Iterable[Draft]) -> list[Remembered | Refused]:
        """Stores many, each for itself: a refusal stands where a draft was refused."""
        from recollect.ingest.each import remember_each  # start-up time: recall does without

        ready = list(drafts)
        batches = (ready[start : start + BATCH] for start in range(0, len(ready), BATCH))
        return [answer for batch in batches for answer in remember_each(batch, self._writing())]

    def update(self, item_id: str, *, revision: int | None = None, **changes: Any) -> Item:
        """A new revision of a memory; the id stays, the old text stays in history.

        With ``revision`` only where that is still the one that stands: who changes what it
        has read does not overwrite what came in between. Raises Conflict then.
        """
        from recollect.ingest.revise import revise  # start-up time: recall does without

        item = self.stored(item_id)
        if revision is not None and (item.rev, item.live_to) != (revision, None):
            raise Conflict(
                f"{item.id} is no longer in revision {revision}",
                remedy="read it again and repeat the change",
            )
        return revise(_alive(item), changes, self._writing())

    def boost(self, item_id: str, by: float = 1.0) -> Item:
        """Finds a memory more relevant than it was, within ten of neutral; a negative
        number finds it less so."""
        from recollect.ingest.revise import judge  # start-up time: recall does without

        if not math.isfinite(by):
            raise Refused(f"{by!r} is no amount to judge by")
        return judge(self._live(item_id), by, self._writing())

    def demote(self, item_id: str, by: float = 1.0) -> Item:
        """Finds a memory less relevant than it was."""
        return self.boost(item_id, -by)

    def _live(self, item_id: str) -> Item:
        return _alive(self.stored(item_id))

    def forget(
        self, *ids: str, erase: bool = False, preview: bool = False, reason: str = "forgotten"
    ) -> Forgotten:
        """Takes memories out of recall; ``erase`` leaves no byte of them behind.

        Pinned and protected ones are only let go by an erase, which is always meant; so is
        what was forgotten before. ``kept`` names them.
        """
        items = [self.stored(item_id) for item_id in ids]
        kept = () if erase else tuple((item.id, why) for item in items if (why := _stays(item)))
        going = tuple(item for item in items if item.id not in dict(kept))
        if erase and going:
            return self._erase(going, preview=preview)
        if preview or not going:
            return Forgotten(going, kept, preview=preview)
        names = [item.id for item in going]
        self._release(names)
        self.store.end(names, how=reason, actor=self.settings.actor, now=self._clock())
        notes = self._notes_without(going)
        return Forgotten(going, kept, notes=notes)

    def withdraw(self, revisions: Mapping[str, int], *, reason: str = "removed") -> list[str]:
        """Takes memories out of recall that are still in these revisions (by id), pinned
        ones too: for programs that keep something of their own here and are its masters.
        Gives those that went; ``restore`` brings them back."""
        if not revisions:
            return []
        ids = list(revisions)
        gone = self.store.end(
            ids, how=reason, actor=self.settings.actor, now=self._clock(), only=revisions
        )
        self._notes_without(tuple(self.store.get(gone).values()))
        return gone

    def _erase(self, items: tuple[Item, ...], *, preview: bool) -> Forgotten:
        from recollect.maintain.lineage import reach_of  # start-up time: recall does without
        from recollect.maintain.remove import erase

        reach = reach_of([item.id for item in items], self.store)
        derived = tuple(self.store.get(reach.descendants).values())
        if preview:
            return Forgotten(
                items,
                preview=True,
                derived=derived,
                quarantined=reach.mixed,
                restored=reach.orphans,
            )
        done = erase(reach, self._work(), actor=self.settings.actor)
        self._let_go()
        return Forgotten(
            items,
            receipt=done.receipt,
            derived=derived,
            quarantined=done.quarantined,
            restored=done.restored,
            notes=done.notes,
        )

    def _release(self, going: Sequence[str]) -> None:
        from recollect.ingest.release import release  # start-up time: recall does without

        release(going, self._writing())

    def _notes_without(self, items: tuple[Item, ...]) -> tuple[str, ...]:
        if self._notes_dir is None or not self._notes_dir.is_dir():
            return ()
        from recollect.maintain.notes import without  # start-up time: most keep no notes

        revisions = [one for item in items for one in self.store.history(item.id)]
        return without(revisions, self._work())

    def undo(self, item_id: str | None = None, *, preview: bool = False) -> Undo:
        """Undoes the last change of a memory or, without one, the last this actor made.

        An update gives way to the revision before it, a forgotten memory comes back, a
        stored one is forgotten. Nothing is lost: the undoing can be undone as well.
        """
        from recollect.ingest.undo import carry_out, last_change  # start-up time

        ctx = self._writing()
        item = None if item_id is None else self.get(item_id).id
        undo = last_change(item, self.settings.actor, ctx)
        if not preview:
            carry_out(undo, ctx)
        return undo

    def restore(self, *ids: str) -> list[str]:
        """Brings forgotten memories back, each by its id or a part of it; erased ones are
        gone for good. Gives the ids of those that had been forgotten."""
        from recollect.ingest.release import reclaim  # start-up time: recall does without

        wanted = [self.stored(item_id).id for item_id in ids]
        back = self.store.restore(wanted, actor=self.settings.actor, now=self._clock())
        reclaim(back, self._writing())
        return back


def _alive(item: Item) -> Item:
    if item.live_to is not None:
        raise Refused(f"{item.id} was forgotten", remedy=f"recollect restore {item.id}")
    return item


def _stays(item: Item) -> str:
    """Why a forget leaves a memory alone; empty where it does not."""
    if item.live_to is not None:
        return "forgotten already"
    return "pinned" if item.pinned else "protected" if item.protected else ""
