"""Taking memories away for good, or out of reach, with all that was made from them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple

from recollect.errors import NotFound
from recollect.ingest.release import bridge, releasable, release
from recollect.maintain.job import Work
from recollect.maintain.journal import begin, note_judging
from recollect.maintain.lineage import Reach, descendants_of, orphans_of
from recollect.maintain.notes import without
from recollect.model import Item
from recollect.ports import Receipt, Store

QUARANTINED: Literal["quarantined"] = "quarantined"


class Erased(NamedTuple):
    """What an erase did: the receipt, notes made anew, what came back into recall because
    its stand-in went, and what was quarantined because it may repeat what was erased."""

    receipt: Receipt
    notes: tuple[str, ...]
    restored: tuple[str, ...]
    quarantined: tuple[str, ...]


class Revoked(NamedTuple):
    """What came from a source, what was made from that, and what happened to both."""

    source: str
    ids: tuple[str, ...]
    descendants: tuple[str, ...]
    restored: tuple[str, ...]
    preview: bool
    erased: Erased | None = None
    run: str | None = None
    notes: tuple[str, ...] = ()


def erase(reach: Reach, work: Work, *, actor: str) -> Erased:
    """Leaves no byte of the memories and of what was made from them.

    Cut off anywhere, it can be repeated: what must come back does so first, and the
    memories themselves, which everything else is found by, go last.
    """
    doubtful = [*reach.mixed, *descendants_of(reach.mixed, work.store)]
    doubtful = [one for one in dict.fromkeys(doubtful) if one not in reach.going]
    restored = work.store.restore(reach.orphans, actor=actor, now=work.now)
    restored += release(list(reach.going), work.writing())
    work.store.set_status(doubtful, QUARANTINED, actor=actor, now=work.now)
    revisions = _revisions([*reach.going, *doubtful], work.store)
    notes = without(revisions, work)
    bridge(reach.going, work.writing())
    receipt = work.store.erase(reach.going, actor=actor, now=work.now)
    # Somebody may have written a note just before they were gone.
    late = without(revisions, work)
    return Erased(receipt, tuple(sorted({*notes, *late})), tuple(restored), tuple(doubtful))


def revoke(
    source: str, work: Work, *, actor: str, erasing: bool = False, preview: bool = False
) -> Revoked:
    """Takes everything that came from a source out of recall, and all its descendants.

    Quarantined, it stays for whoever looks, and an undo of the run brings it back.
    """
    ids = tuple(work.store.from_source(source))
    if not ids:
        raise NotFound(f"nothing came from {source!r}", remedy="recollect show ID names a source")
    descendants = tuple(descendants_of(ids, work.store))
    going = (*ids, *descendants)
    orphans = orphans_of(going, set(going), work.store)
    would = Revoked(source, ids, descendants, orphans, preview)
    if preview:
        return would
    if erasing:
        done = erase(Reach(ids, descendants, (), orphans), work, actor=actor)
        return would._replace(erased=done, notes=done.notes)
    run = begin({"revoke": 1}, work)
    before = {item.id: item.status for item in work.store.get(going).values()}
    back = releasable(going, work.writing())
    judged = [(one, before[one], QUARANTINED) for one in before]
    note_judging(run, [*judged, *((one, "superseded", "active") for one in back)], work)
    work.store.restore(orphans, actor=actor, now=work.now)
    work.store.set_status(back, "active", actor=actor, now=work.now)
    work.store.set_status(going, QUARANTINED, actor=actor, now=work.now)
    return would._replace(run=run, notes=without(_revisions(going, work.store), work))


def _revisions(ids: Sequence[str], store: Store) -> list[Item]:
    return [revision for one in ids for revision in store.history(one)]
