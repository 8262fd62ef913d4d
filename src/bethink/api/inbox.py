"""The inbox: list what waits for a review, and accept, merge or refuse it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Unpack

from bethink.api.session import SessionMethods
from bethink.errors import Refused
from bethink.model import Draft, Item, Remembered, Waiting
from bethink.model.item import REFUSED, WAITING

if TYPE_CHECKING:
    from bethink.api.options import MemoryChanges


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
