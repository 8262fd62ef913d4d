"""Remember, update, forget and restore memories; review those that wait in the inbox."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias, Unpack

from bethink.api.session import SessionMethods
from bethink.api.sync import erased_elsewhere
from bethink.config.spaces import files_folder
from bethink.core.dataclass import dataclass
from bethink.errors import Conflict, Refused, SomeRefused, StoreError
from bethink.model import Draft, Item, Remembered, Waiting
from bethink.model.anchor import is_found
from bethink.model.item import OWN_ENDINGS, REFUSED, WAITING
from bethink.ports import EraseReceipt, Progress

if TYPE_CHECKING:
    from bethink.api.options import MemoryChanges, MemoryFields
    from bethink.ingest.revision import Undo


NewMemory: TypeAlias = Draft | Mapping[str, object] | str  # a draft, its fields, or its text
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


def _make_draft(given: NewMemory, project: Path | None, *, alone: bool = False) -> Draft:
    """Read a draft and the code that it is tied to; of one ``alone`` also what its text names."""
    draft = _read_draft(given)
    if not (draft.anchors or alone) or not isinstance(draft.anchors, tuple):
        return draft  # what is no list is refused later
    return draft._replace(anchors=_pin_anchors(draft.anchors, project, draft.text))


def _pin_anchors(given: Iterable[str], project: Path | None, text: object = "") -> tuple[str, ...]:
    """Read the code that a memory is tied to or, where none is given, that its text names."""
    if not given and (project is None or not isinstance(text, str)):
        return ()
    from bethink.code.anchors import pin_anchors  # start-up time: recall does without

    return pin_anchors(given, project, str(text))


def _read_draft(given: NewMemory) -> Draft:
    from bethink.ingest.admission import make_draft  # start-up time: recall does without

    if not isinstance(given, Mapping) or "user" not in given:
        return make_draft(given)
    fields = dict(given)
    user, metadata = fields.pop("user"), fields.get("metadata")
    if not isinstance(user, str | None):
        raise Refused(f"user must be a text, not {type(user).__name__}")
    if user is not None and isinstance(metadata, Mapping | None):
        fields["metadata"] = {**(metadata or {}), "user_id": user}
    return make_draft(fields)


def _draft_or_refusal(given: NewMemory, project: Path | None) -> Draft | Refused:
    try:
        return _make_draft(given, project)
    except Refused as refused:
        return refused


def _with_place(error: StoreError, done: int) -> StoreError:
    """Return the error of a later batch; it says how many memories were stored before."""
    place = f"(from number {done + 1:,} on; those before it are stored)"
    return type(error)(f"{error.message} {place}", remedy=error.remedy)


class WriteMethods(SessionMethods):
    """Remembers, updates, forgets and restores memories of an open space."""

    def remember(
        self, text: str, *, review: bool = False, **fields: Unpack[MemoryFields]
    ) -> Remembered:
        """Store one memory; ``fields`` are those of ``Draft``, and ``user``: whose it is.

        >>> with Memory.open(":memory:") as memory:
        ...     first = memory.remember("We chose PostgreSQL", kind="decision", topic="db")
        ...     again = memory.remember("We chose PostgreSQL.")
        ...     print(first.status, again.status, again.id == first.id)
        stored duplicate True
        """
        return self.remember_many([{"text": text, **fields}], review=review)[0]

    def remember_many(
        self,
        drafts: Iterable[NewMemory],
        *,
        progress: Progress | None = None,
        relate: bool = False,
        review: bool = False,
    ) -> list[Remembered]:
        """Store many memories, 500 to a transaction.

        One that is refused keeps none of the others: they are stored, and then SomeRefused
        says which were not and has all ``results``. With ``relate`` each is also linked with
        memories of nearly the same meaning, which is slower; else ``maintain`` does that. With
        ``review`` what the settings ``review_...`` say waits in the inbox.
        """
        given = list(drafts)
        if len(given) == 1:
            from bethink.ingest.pipeline import remember  # start-up time: recall does without

            alone = [_make_draft(given[0], self.settings.project, alone=True)]
            context = self.session.write_context(relating=relate, review=review)
            results = remember(alone, context)
            if progress is not None:
                progress(1, 1)
            return results
        answers: list[Remembered | Refused] = []
        for start in range(0, len(given), BATCH):
            try:
                part = given[start : start + BATCH]
                answers += self._store_batch(part, relate=relate, review=review)
            except StoreError as error:
                if not start:
                    raise
                raise _with_place(error, start) from error
            if progress is not None:
                progress(len(answers), len(given))
        good = [answer for answer in answers if isinstance(answer, Remembered)]
        if len(good) < len(answers):
            raise SomeRefused(answers)
        return good

    def remember_each(
        self, drafts: Iterable[NewMemory], *, review: bool = False
    ) -> list[Remembered | Refused]:
        """Store many memories independently; a refusal takes the place of its result.

        Each is a draft, a mapping of its fields, or only its text; ``review`` as above.
        """
        ready = list(drafts)
        batches = (ready[start : start + BATCH] for start in range(0, len(ready), BATCH))
        return [answer for batch in batches for answer in self._store_batch(batch, review=review)]

    def _store_batch(
        self, given: Sequence[NewMemory], *, relate: bool = False, review: bool = False
    ) -> list[Remembered | Refused]:
        from bethink.ingest.pipeline import remember_each  # start-up time: recall does without

        drafts = [_draft_or_refusal(one, self.settings.project) for one in given]
        ready = [draft for draft in drafts if isinstance(draft, Draft)]
        context = self.session.write_context(relating=relate, review=review)
        stored = iter(remember_each(ready, context))
        return [next(stored) if isinstance(draft, Draft) else draft for draft in drafts]

    def update(
        self, item_id: str, *, revision: int | None = None, **changes: Unpack[MemoryChanges]
    ) -> Item:
        """Store a new revision of a memory; the id stays, the old text stays in history.

        A memory that has these values already stays as it is. With ``revision``, only while that
        is the current one; raises Conflict otherwise.
        """
        from bethink.ingest.revision import revise  # start-up time: recall does without

        item = self.session.stored_item(item_id)
        changed = self._with_anchors(item, dict(changes))

        def change(now: Item) -> Item:
            return revise(now, changed, self.session.write_context(), unless_same=True)

        if revision is None:
            return self._repeat(item.id, change)
        if (item.rev, item.live_to) != (revision, None):
            raise Conflict(
                f"{item.id} is no longer in revision {revision}",
                remedy="read it again and repeat the change",
            )
        return change(item)

    def _with_anchors(self, item: Item, changes: dict[str, object]) -> dict[str, object]:
        """Read the code that an update ties a memory to, or that its new text names."""
        project, text = self.settings.project, changes.get("text", item.text)
        kept = tuple(one for one in item.anchors if not is_found(one))
        given = changes.get("anchors", kept)
        if isinstance(given, list | tuple) and "anchors" in changes:
            changes["anchors"] = _pin_anchors(given, project)
        elif project and text != item.text:
            changes["anchors"] = kept or _pin_anchors((), project, text)
        return changes

    def _repeat(self, item_id: str, change: Callable[[Item], Item]) -> Item:
        """Change a memory; read it again and repeat the change while others change it."""
        for _ in range(_MAX_REPEATS):
            item = self._get_live(item_id)
            try:
                return change(item)
            except Conflict:
                if self.session.stored_item(item.id).rev == item.rev:
                    raise  # not because of another change
        return change(self._get_live(item_id))

    def boost(self, item_id: str, by: float = 1.0) -> Item:
        """Raise a memory's relevance, within ten of neutral.

        A negative number lowers it.
        """
        from bethink.ingest.revision import adjust_relevance  # start-up time: recall does without

        if not math.isfinite(by):
            raise Refused(f"by is {by!r}, but must be a finite number")
        return self._repeat(
            item_id, lambda item: adjust_relevance(item, by, self.session.write_context())
        )

    def demote(self, item_id: str, by: float = 1.0) -> Item:
        """Lower a memory's relevance."""
        return self.boost(item_id, -by)

    def _get_live(self, item_id: str) -> Item:
        return _require_live(self.session.stored_item(item_id))

    def forget(
        self, *ids: str, erase: bool = False, preview: bool = False, reason: str = "forgotten"
    ) -> Forgotten:
        """Take memories out of recall; ``erase`` deletes every byte of them.

        Pinned and protected memories, and ones already forgotten, are only removed by an erase.
        ``kept`` names the ones that stay.
        """
        items = [self.session.removable_item(item_id) for item_id in ids]
        kept = (
            () if erase else tuple((item.id, why) for item in items if (why := _keep_reason(item)))
        )
        removed = tuple(item for item in items if item.id not in dict(kept))
        if erase and removed:
            return self._erase_items(removed, preview=preview)
        if preview or not removed:
            return Forgotten(removed, kept, preview=preview)
        names = [item.id for item in removed]
        how = _plain_reason(reason)
        self._undo_supersessions(names)
        self.store.items.end(names, how=how, actor=self.settings.actor, now=self.now)
        notes = self._remove_from_notes(removed)
        return Forgotten(removed, kept, notes=notes)

    def withdraw(self, revisions: Mapping[str, int], *, reason: str = "removed") -> list[str]:
        """Take memories out of recall that are still in these revisions (by id).

        Pinned ones too: for programs that own the memories they store here. Returns the ids
        that were removed; ``restore`` brings them back.
        """
        if not revisions:
            return []
        ids, how = list(revisions), _plain_reason(reason)
        withdrawn = self.store.items.end(
            ids, how=how, actor=self.settings.actor, now=self.now, only=revisions
        )
        self._remove_from_notes(tuple(self.store.items.get(withdrawn).values()))
        return withdrawn

    def _erase_items(self, items: tuple[Item, ...], *, preview: bool) -> Forgotten:
        from bethink.maintain.journal import removal_impact  # start-up time: recall does without
        from bethink.maintain.succession import erase

        impact = removal_impact([item.id for item in items], self.store)
        derived = tuple(self.store.items.get(impact.descendants).values())
        if preview:
            return Forgotten(
                items,
                preview=True,
                derived=derived,
                quarantined=impact.mixed,
                restored=impact.orphans,
            )
        result = erase(impact, self.session.job_context(), actor=self.settings.actor)
        self.session.drop_caches()
        receipt = result.receipt
        places = (*receipt.out_of_reach, *self._files_showing(receipt.ids))
        return Forgotten(
            items,
            receipt=receipt._replace(out_of_reach=(*places, *erased_elsewhere(self.store))),
            derived=derived,
            quarantined=result.quarantined,
            restored=result.restored,
            notes=result.notes,
        )

    def _files_showing(self, ids: Sequence[str]) -> Iterator[str]:
        """Yield the folders of files that still show one of these memories."""
        home = files_folder(self.settings, self.store.space)
        for base in sorted(home.glob("*.json")) if home.is_dir() else ():
            known = json.loads(base.read_text("utf-8"))
            if known["rows"].keys() & set(ids):
                folder = known["folder"]
                yield f"the files in {folder} until bethink files runs, and their git history"

    def _undo_supersessions(self, ids: Sequence[str]) -> None:
        from bethink.ingest.revision import reactivate_superseded  # start-up time

        reactivate_superseded(ids, self.session.write_context())

    def _remove_from_notes(self, items: tuple[Item, ...]) -> tuple[str, ...]:
        if self.session.notes_dir is None or not self.session.notes_dir.is_dir():
            return ()
        from bethink.maintain.notes import rewrite_notes_without  # start-up time

        revisions = [one for item in items for one in self.store.items.history(item.id)]
        return rewrite_notes_without(revisions, self.session.job_context())

    def undo(self, item_id: str | None = None, *, preview: bool = False) -> Undo:
        """Undo the last change of a memory or, without one, the last by this actor.

        An update is replaced by the revision before it, a forgotten memory is restored, a
        stored one is forgotten. Nothing is lost: an undo can itself be undone.
        """
        from bethink.ingest.revision import apply_undo, last_change  # start-up time

        ctx = self.session.write_context()
        item = None if item_id is None else self.session.get(item_id).id
        undo = last_change(item, self.settings.actor, ctx)
        if not preview:
            apply_undo(undo, ctx)
        return undo

    def restore(self, *ids: str) -> list[str]:
        """Restore forgotten memories by id, and return the ids of those that had been."""
        # Start-up time: recall does without.
        from bethink.ingest.inbox import is_sealed
        from bethink.ingest.revision import restore_memories, supersede_again

        requested = [self.session.stored_item(item_id).id for item_id in ids]
        ctx = self.session.write_context()
        sealed = [one for one in self.store.items.get(requested).values() if is_sealed(one)]
        for one in sealed:
            if one.ended_by in (WAITING, REFUSED):
                accept = f"bethink inbox accept {one.id}"
                raise Refused(f"{one.id} is in the inbox", remedy=accept)
        waits = [one.id for one in sealed]  # an undone import had brought them
        if waits:
            self.store.admin.refile(waits, how=WAITING, actor=ctx.actor, now=ctx.now)
        restored = restore_memories([one for one in requested if one not in waits], ctx)
        supersede_again(restored, ctx)
        return [*restored, *waits]


def _require_live(item: Item) -> Item:
    if item.live_to is not None:
        raise Refused(f"{item.id} was forgotten", remedy=f"bethink restore {item.id}")
    return item


def _plain_reason(reason: str) -> str:
    """Redact a reason; refuse one by which the store itself tells what has ended."""
    from bethink.ingest.redaction import redact  # start-up time: recall does without

    if reason in OWN_ENDINGS or ":run-" in reason:
        raise Refused(f"{reason!r} is no reason of a caller", remedy="use other words")
    return redact(reason).text


def _keep_reason(item: Item) -> str:
    """Return why a forget keeps a memory; empty where it does not."""
    if item.live_to is not None:
        return "forgotten already"
    return "pinned" if item.pinned else "protected" if item.protected else ""


class InboxMethods(SessionMethods):
    """Reviews what waits in the inbox of an open space; ``undo`` takes a decision back."""

    def inbox(self, *, source: str | None = None, refused: bool = False) -> list[Waiting]:
        """List what waits, oldest first, or what was refused; all of it is in no recall.

        ``source`` is a source or a class of sources (web, tool, agent, import).
        """
        from bethink.ingest.inbox import unseal  # start-up time: recall does without

        ids = self.store.admin.ended_as(REFUSED if refused else WAITING)
        found = map(unseal, self.store.items.get(ids).values())
        return [one for one in found if source in (None, one.draft.source, one.draft.source_class)]

    def propose(self, draft: Draft, *, reason: str, waits: bool = True) -> Remembered:
        """Put a draft into the inbox for a reason; without ``waits`` kept as if it were refused."""
        from bethink.ingest.admission import prepare  # start-up time: recall does without
        from bethink.ingest.inbox import Held
        from bethink.ingest.pipeline import store_held

        ctx = self.session.write_context()
        prepared = prepare(draft, ctx)
        held = {prepared.id: Held(reason, None, WAITING if waits else REFUSED)}
        with ctx.room(1):
            return store_held([prepared], held, ctx)[prepared.id]

    def _waiting(self, ids: Iterable[str]) -> dict[str, Waiting]:
        from bethink.ingest.inbox import unseal  # start-up time: recall does without

        found = {}
        for given in ids:
            item = self.session.stored_item(given)
            if item.live_to is None or item.ended_by not in (WAITING, REFUSED):
                raise Refused(f"{item.id} is not in the inbox", remedy="bethink inbox lists it")
            found[item.id] = unseal(item)
        return found

    def accept(self, *ids: str, **changes: Unpack[MemoryChanges]) -> list[Remembered]:
        """Let memories of the inbox into recall, with ``changes`` to their fields.

        A duplicate of another memory is not stored; the answer names that one.
        """
        from bethink.ingest.admission import make_draft  # start-up time: recall does without
        from bethink.ingest.inbox import is_sealed
        from bethink.ingest.pipeline import accept

        waiting = self._waiting(ids)
        ctx = self.session.write_context()
        drafts = {one.id: one.draft for one in waiting.values() if is_sealed(one.item)}
        sealed = {own: make_draft({**one._asdict(), **changes}) for own, one in drafts.items()}
        revisions = {one: waiting[one].item.rev + 1 for one in sealed}
        answers = accept(sealed, revisions, ctx) if sealed else {}
        for one in waiting.keys() - sealed.keys():
            self.restore(one)  # type: ignore[attr-defined]  # of Memory
            if changes:
                self.update(one, **changes)  # type: ignore[attr-defined]
            answers[one] = Remembered(one, "stored")
        return [answers[one] for one in waiting]

    def refuse(self, *ids: str) -> list[str]:
        """Take memories out of the inbox; stored again they do not come back."""
        return self._refile(list(self._waiting(ids)), REFUSED)

    def merge(self, *ids: str, into: str | None = None, text: str | None = None) -> Item:
        """Make one memory of several of the inbox: of the first, or of ``into``, a stored one.

        Its text is ``text`` or all texts, one below the other. It has the highest
        classification and the least trust of them.
        """
        from bethink.ingest.admission import trust_of  # start-up time: recall does without

        held = self._waiting(ids)
        if not held:
            raise Refused("give the memories to merge")
        parts = [(one.text, one.draft.classification, trust_of(one.draft)) for one in held.values()]
        kept = None if into is None else self.session.stored_item(into)
        if kept is not None:
            parts.insert(0, (kept.text, kept.classification, kept.trust))
        texts, levels, trusts = zip(*parts, strict=True)
        whole: MemoryChanges = {"text": text or "\n".join(texts), "trust": min(trusts)}
        whole["classification"] = max(levels)
        made, *others = held if kept is None else (kept.id, *held)
        if kept is None:
            made = self.accept(made, **whole)[0].id
        else:
            self.update(made, **whole)  # type: ignore[attr-defined]  # of Memory
        self._refile(others, REFUSED)
        return self.session.stored_item(made)

    def _refile(self, ids: list[str], how: str) -> list[str]:
        return self.store.admin.refile(ids, how=how, actor=self.settings.actor, now=self.now)
