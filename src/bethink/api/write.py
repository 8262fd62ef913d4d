"""Remember, update, forget and restore memories."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from bethink.api.session import Session
from bethink.core.dataclass import dataclass
from bethink.errors import Conflict, Refused, SomeRefused, StoreError
from bethink.model import Draft, Item, Remembered
from bethink.ports import EraseReceipt, Progress

if TYPE_CHECKING:
    from bethink.ingest.revision import Undo


BATCH = 500
_MAX_REPEATS = 100  # of a change that others got in the way of


@dataclass(frozen=True, slots=True)
class Forgotten:
    """What a forget did or, with ``preview``, would do.

    An erase reaches further: ``derived`` was made from the items and is erased with them,
    ``quarantined`` was made from them and others, ``restored`` returns to recall because
    its replacement is erased, ``notes`` are rewritten.
    """

    items: tuple[Item, ...]
    kept: tuple[tuple[str, str], ...] = ()
    preview: bool = False
    receipt: EraseReceipt | None = None
    derived: tuple[Item, ...] = ()
    quarantined: tuple[str, ...] = ()
    restored: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


def _draft_or_refusal(given: Draft | Mapping[str, Any] | str) -> Draft | Refused:
    from bethink.ingest.admission import make_draft  # start-up time: recall does without

    try:
        return make_draft(given)
    except Refused as refused:
        return refused


def _with_place(error: StoreError, done: int) -> StoreError:
    """Return the error of a later batch; it says how many memories were stored before."""
    place = f"(from number {done + 1:,} on; those before it are stored)"
    return type(error)(f"{error.message} {place}", remedy=error.remedy)


class Writer:
    """Remembers, updates, forgets and restores memories of an open space."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def remember(self, text: str, **about: Any) -> Remembered:
        """Store one memory. ``about`` are the fields of ``Draft``."""
        return self.remember_many([{"text": text, **about}])[0]

    def remember_many(
        self,
        drafts: Iterable[Draft | Mapping[str, Any] | str],
        *,
        progress: Progress | None = None,
        relate: bool = False,
    ) -> list[Remembered]:
        """Store many memories, 500 to a transaction."""
        # start-up time: recall does without
        from bethink.ingest.admission import make_draft
        from bethink.ingest.pipeline import remember, remember_each

        given = list(drafts)
        if len(given) == 1:
            alone = [make_draft(given[0])]
            results = remember(alone, self._session.write_context(relating=relate))
            if progress is not None:
                progress(1, 1)
            return results
        answers: list[Remembered | Refused] = []
        for start in range(0, len(given), BATCH):
            batch = [_draft_or_refusal(draft) for draft in given[start : start + BATCH]]
            ready = [draft for draft in batch if isinstance(draft, Draft)]
            try:
                found = remember_each(ready, self._session.write_context(relating=relate))
            except StoreError as error:
                if not start:
                    raise
                raise _with_place(error, start) from error
            stored = iter(found)
            answers += [next(stored) if isinstance(draft, Draft) else draft for draft in batch]
            if progress is not None:
                progress(len(answers), len(given))
        good = [answer for answer in answers if isinstance(answer, Remembered)]
        if len(good) < len(answers):
            raise SomeRefused(answers)
        return good

    def remember_each(self, drafts: Iterable[Draft]) -> list[Remembered | Refused]:
        """Store many memories independently; a refusal takes the place of its result."""
        from bethink.ingest.pipeline import remember_each  # start-up time: recall does without

        ready = list(drafts)
        batches = (ready[start : start + BATCH] for start in range(0, len(ready), BATCH))
        return [
            answer
            for batch in batches
            for answer in remember_each(batch, self._session.write_context())
        ]

    def update(self, item_id: str, *, revision: int | None = None, **changes: Any) -> Item:
        """Store a new revision of a memory; the id stays, the old text stays in history."""
        from bethink.ingest.revision import revise  # start-up time: recall does without

        item = self._session.stored_item(item_id)
        if revision is None:
            return self._repeat(
                item.id, lambda now: revise(now, changes, self._session.write_context())
            )
        if (item.rev, item.live_to) != (revision, None):
            raise Conflict(
                f"{item.id} is no longer in revision {revision}",
                remedy="read it again and repeat the change",
            )
        return revise(_require_live(item), changes, self._session.write_context())

    def _repeat(self, item_id: str, change: Callable[[Item], Item]) -> Item:
        """Change a memory; read it again and repeat the change while others change it."""
        for _ in range(_MAX_REPEATS):
            item = self._get_live(item_id)
            try:
                return change(item)
            except Conflict:
                if self._session.stored_item(item.id).rev == item.rev:
                    raise  # not because of another change
        return change(self._get_live(item_id))

    def boost(self, item_id: str, by: float = 1.0) -> Item:
        """Raise a memory's relevance, within ten of neutral."""
        from bethink.ingest.revision import adjust_relevance  # start-up time: recall does without

        if not math.isfinite(by):
            raise Refused(f"by is {by!r}, but must be a finite number")
        return self._repeat(
            item_id, lambda item: adjust_relevance(item, by, self._session.write_context())
        )

    def demote(self, item_id: str, by: float = 1.0) -> Item:
        """Lower a memory's relevance."""
        return self.boost(item_id, -by)

    def _get_live(self, item_id: str) -> Item:
        return _require_live(self._session.stored_item(item_id))

    def forget(
        self, *ids: str, erase: bool = False, preview: bool = False, reason: str = "forgotten"
    ) -> Forgotten:
        """Take memories out of recall; ``erase`` deletes every byte of them."""
        items = [self._session.removable_item(item_id) for item_id in ids]
        kept = (
            () if erase else tuple((item.id, why) for item in items if (why := _keep_reason(item)))
        )
        removed = tuple(item for item in items if item.id not in dict(kept))
        if erase and removed:
            return self._erase_items(removed, preview=preview)
        if preview or not removed:
            return Forgotten(removed, kept, preview=preview)
        names = [item.id for item in removed]
        self._undo_supersessions(names)
        self._session.store.items.end(
            names, how=reason, actor=self._session.settings.actor, now=self._session.clock()
        )
        notes = self._remove_from_notes(removed)
        return Forgotten(removed, kept, notes=notes)

    def withdraw(self, revisions: Mapping[str, int], *, reason: str = "removed") -> list[str]:
        """Take memories out of recall that are still in these revisions (by id)."""
        if not revisions:
            return []
        ids = list(revisions)
        withdrawn = self._session.store.items.end(
            ids,
            how=reason,
            actor=self._session.settings.actor,
            now=self._session.clock(),
            only=revisions,
        )
        self._remove_from_notes(tuple(self._session.store.items.get(withdrawn).values()))
        return withdrawn

    def _erase_items(self, items: tuple[Item, ...], *, preview: bool) -> Forgotten:
        from bethink.maintain.journal import removal_impact  # start-up time: recall does without
        from bethink.maintain.succession import erase

        impact = removal_impact([item.id for item in items], self._session.store)
        derived = tuple(self._session.store.items.get(impact.descendants).values())
        if preview:
            return Forgotten(
                items,
                preview=True,
                derived=derived,
                quarantined=impact.mixed,
                restored=impact.orphans,
            )
        result = erase(impact, self._session.job_context(), actor=self._session.settings.actor)
        self._session.drop_caches()
        return Forgotten(
            items,
            receipt=result.receipt,
            derived=derived,
            quarantined=result.quarantined,
            restored=result.restored,
            notes=result.notes,
        )

    def _undo_supersessions(self, ids: Sequence[str]) -> None:
        from bethink.ingest.revision import (
            reactivate_superseded,  # start-up time: recall does without
        )

        reactivate_superseded(ids, self._session.write_context())

    def _remove_from_notes(self, items: tuple[Item, ...]) -> tuple[str, ...]:
        if self._session.notes_dir is None or not self._session.notes_dir.is_dir():
            return ()
        from bethink.maintain.notes import (
            rewrite_notes_without,  # start-up time: most keep no notes
        )

        revisions = [one for item in items for one in self._session.store.items.history(item.id)]
        return rewrite_notes_without(revisions, self._session.job_context())

    def undo(self, item_id: str | None = None, *, preview: bool = False) -> Undo:
        """Undo the last change of a memory or, without one, the last by this actor."""
        from bethink.ingest.revision import apply_undo, last_change  # start-up time

        ctx = self._session.write_context()
        item = None if item_id is None else self._session.get(item_id).id
        undo = last_change(item, self._session.settings.actor, ctx)
        if not preview:
            apply_undo(undo, ctx)
        return undo

    def restore(self, *ids: str) -> list[str]:
        """Restore forgotten memories by id, and return the ids of those that had been."""
        # Start-up time: recall does without.
        from bethink.ingest.revision import restore_memories, supersede_again

        requested = [self._session.stored_item(item_id).id for item_id in ids]
        ctx = self._session.write_context()
        restored = restore_memories(requested, ctx)
        supersede_again(restored, ctx)
        return restored


def _require_live(item: Item) -> Item:
    if item.live_to is not None:
        raise Refused(f"{item.id} was forgotten", remedy=f"bethink restore {item.id}")
    return item


def _keep_reason(item: Item) -> str:
    """Return why a forget keeps a memory; empty where it does not."""
    if item.live_to is not None:
        return "forgotten already"
    return "pinned" if item.pinned else "protected" if item.protected else ""
