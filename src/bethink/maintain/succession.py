"""Store the successors of memories, and remove memories with all that derives from them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Literal

from bethink.core.named_tuple import NamedTuple
from bethink.errors import NotFound, Refused
from bethink.ingest.admission import DERIVED_SOURCE
from bethink.ingest.pipeline import remember_each
from bethink.ingest.revision import (
    bridge_supersession,
    find_reactivatable,
    reactivate_superseded,
    restore_memories,
)
from bethink.maintain import journal
from bethink.maintain.entities import join_insights
from bethink.maintain.job import Job, JobContext, Proposal, is_made_by
from bethink.maintain.notes import rewrite_notes_without
from bethink.model import Draft, Filters, Item, Link, Node, Remembered
from bethink.ports import EraseReceipt, Scope, Store, TextSearch

QUARANTINED: Literal["quarantined"] = "quarantined"
_ERASED_MEANWHILE = "one of its memories was erased meanwhile"
_RECALLED_CHARACTERS = 120  # of a successor, by which it must be found


class EraseResult(NamedTuple):
    """What an erase did: the receipt, rewritten notes, restored and quarantined memories.

    Restored ones had been replaced by an erased one; quarantined ones may repeat what was
    erased.
    """

    receipt: EraseReceipt
    notes: tuple[str, ...]
    restored: tuple[str, ...]
    quarantined: tuple[str, ...]


class RevokeResult(NamedTuple):
    """What came from a source, what derives from that, and what happened to both."""

    source: str
    ids: tuple[str, ...]
    descendants: tuple[str, ...]
    restored: tuple[str, ...]
    preview: bool
    erased: EraseResult | None = None
    run: str | None = None
    notes: tuple[str, ...] = ()


def erase(reach: journal.RemovalImpact, work: JobContext, *, actor: str) -> EraseResult:
    """Erase every byte of the memories and of what derives from them.

    An interrupted erase can be repeated: restoring comes first, and the memories
    themselves, by which everything else is found, are erased last.
    """
    doubtful = [*reach.mixed, *journal.descendants_of(reach.mixed, work.store)]
    doubtful = [item_id for item_id in dict.fromkeys(doubtful) if item_id not in reach.removed_ids]
    restored = restore_memories(reach.orphans, work.write_context(), actor=actor)
    restored += reactivate_superseded(list(reach.removed_ids), work.write_context())
    work.store.items.set_status(doubtful, QUARANTINED, actor=actor, now=work.now)
    revisions = _all_revisions([*reach.removed_ids, *doubtful], work.store)
    notes = rewrite_notes_without(revisions, work)
    bridge_supersession(reach.removed_ids, work.write_context())
    receipt = work.store.items.erase(reach.removed_ids, actor=actor, now=work.now)
    # A note may have been written just before they were removed.
    late = rewrite_notes_without(revisions, work)
    return EraseResult(receipt, tuple(sorted({*notes, *late})), tuple(restored), tuple(doubtful))


def revoke(
    source: str, work: JobContext, *, actor: str, erasing: bool = False, preview: bool = False
) -> RevokeResult:
    """Take everything from a source, and all its descendants, out of recall.

    Quarantined memories can still be looked at, and undoing the run restores them.
    """
    ids = tuple(work.store.items.from_source(source))
    if not ids:
        raise NotFound(
            f"no memory has the source {source!r}",
            remedy="find the source of a memory with: bethink show ID",
        )
    descendants = tuple(journal.descendants_of(ids, work.store))
    going = (*ids, *descendants)
    orphans = journal.orphans_of(going, set(going), work.store)
    would = RevokeResult(source, ids, descendants, orphans, preview)
    if preview:
        return would
    if erasing:
        done = erase(journal.RemovalImpact(ids, descendants, (), orphans), work, actor=actor)
        return would._replace(erased=done, notes=done.notes)
    run = journal.begin_run({"revoke": 1}, work)
    before = {item.id: item.status for item in work.store.items.get(going).values()}
    back = find_reactivatable(going, work.write_context())
    judged = [(item_id, before[item_id], QUARANTINED) for item_id in before]
    journal.record_status_changes(
        run, [*judged, *((item_id, "superseded", "active") for item_id in back)], work
    )
    restore_memories(orphans, work.write_context(), actor=actor)
    work.store.items.set_status(back, "active", actor=actor, now=work.now)
    work.store.items.set_status(going, QUARANTINED, actor=actor, now=work.now)
    return would._replace(
        run=run, notes=rewrite_notes_without(_all_revisions(going, work.store), work)
    )


def _all_revisions(ids: Sequence[str], store: Store) -> list[Item]:
    return [revision for item_id in ids for revision in store.items.history(item_id)]


class Blocked(NamedTuple):
    """Why a proposal was not applied."""

    why: str


def _key_and_item(job: Job, proposal: Proposal, work: JobContext) -> tuple[str, str | None]:
    """Return the idempotency key, and the id of the memory that was stored with it, if any.

    The same job over the same texts gives the same key. Where the job itself ended what it
    made under that key, and nobody undid it, the key is another one.
    """
    first = key = _key_of_texts(job, proposal, work)
    while (used := work.store.items.find_keys((key,)).get(key)) is not None:
        item = work.store.items.get([used[0]]).get(used[0])
        ended = item is not None and item.live_to is not None and item.ended_by
        if not ended or not ended.startswith(f"{job.name}:{journal.RUN_PREFIX}"):
            return key, used[0]
        key = f"{first}:{used[0]}"
    return key, None


def _key_of_texts(job: Job, proposal: Proposal, work: JobContext) -> str:
    assert proposal.successor is not None
    if proposal.successor.key is not None:
        return proposal.successor.key
    items = work.store.items.get(list(proposal.lineage))
    said = sorted((item.id, item.text) for item in items.values())
    digest = hashlib.sha256(json.dumps(said, ensure_ascii=False).encode()).hexdigest()
    return f"{job.name}:{digest}"


def find_successor(job: Job, proposal: Proposal, work: JobContext) -> str | Blocked | None:
    """Return the id of what an earlier run made of the same memories; Blocked if it was undone."""
    _, used = _key_and_item(job, proposal, work)
    if used is None:
        return None
    item = work.store.items.get([used]).get(used)
    if item is None or item.live_to is not None:
        return Blocked("it was done before and then undone")
    if item.id in proposal.ends or not is_made_by(item, job.name):
        return Blocked(f"{item.id} already says the same")
    return item.id


def ensure_successor(job: Job, proposal: Proposal, work: JobContext) -> str | Blocked:
    """Store the successor unless it exists; Blocked where nothing may be hidden yet."""
    (made,) = add_successors([(job, proposal)], read_parents([proposal], work), work)
    if isinstance(made, Blocked) or not proposal.leaving:
        return made
    return made if _is_recallable(made, work) else Blocked(f"{made} cannot be recalled yet")


def _lineage_links(made: str, proposal: Proposal) -> list[Link]:
    me = Node("item", made)
    return [Link(me, Node("item", parent), "derives_from") for parent in proposal.lineage]


class Parents(NamedTuple):
    """Memories that successors derive from, and the last line of the journal before."""

    items: Mapping[str, Item]
    line: int


def read_parents(proposals: Sequence[Proposal], work: JobContext) -> Parents:
    """Read what the proposals derive from."""
    ids = [parent for proposal in proposals for parent in proposal.lineage]
    line = journal.last_line(work)
    return Parents(work.store.items.get(ids), line.seq if line else 0)


def add_successors(
    proposals: Sequence[tuple[Job, Proposal]], read: Parents, work: JobContext
) -> list[str | Blocked]:
    """Store successors that replace no memory in recall, in one transaction; return their ids."""
    known, drafts = _draft_new(proposals, read, work)
    # A vector that needs no model is made here.
    made_of = {str(draft.id): draft for draft in drafts.values()}
    vectors = join_insights(made_of, work.store, work.embedder)
    context = replace(work.write_context(), vectors=vectors, read=read.items)
    if drafts:
        journal.record_successors(drafts.values(), work)
    outcomes = remember_each(list(drafts.values()), context)
    for (at, draft), outcome in zip(drafts.items(), outcomes, strict=True):
        known[at] = _as_successor(draft, outcome)
    parents = read.items
    if _may_have_erased(read.line, work):
        parents = read_parents([proposal for _, proposal in proposals], work).items
    links: list[Link] = []
    made: list[str | Blocked] = []
    for at, (found, (_, proposal)) in enumerate(zip(known, proposals, strict=True)):
        assert found is not None
        if isinstance(found, str) and not parents.keys() >= set(proposal.lineage):
            work.store.items.erase([found], actor=work.write_context().actor, now=work.now)
            found = Blocked(_ERASED_MEANWHILE)  # noqa: PLW2901 - its text may repeat erased text
        if isinstance(found, str) and at not in drafts:  # a new one is stored with its links
            links += _lineage_links(found, proposal)
        made.append(found)
    if links:
        work.store.graph.add_links(links, now=work.now)
    return made


def _draft_new(
    proposals: Sequence[tuple[Job, Proposal]], read: Parents, work: JobContext
) -> tuple[list[str | Blocked | None], dict[int, Draft]]:
    """Return the successors that are known, and drafts of the others by their places."""
    keys = [_key_of_texts(job, proposal, work) for job, proposal in proposals]
    used = work.store.items.find_keys(tuple(keys))
    known: list[str | Blocked | None] = []
    drafts: dict[int, Draft] = {}
    for at, ((job, proposal), key) in enumerate(zip(proposals, keys, strict=True)):
        known.append(find_successor(job, proposal, work) if key in used else None)
        if known[at] is None and not read.items.keys() >= set(proposal.lineage):
            known[at] = Blocked(_ERASED_MEANWHILE)
        if known[at] is None:
            free = _key_and_item(job, proposal, work)[0] if key in used else key
            parents = [read.items[parent] for parent in proposal.lineage]
            drafts[at] = with_inherited_fields(job, proposal, parents, work)._replace(key=free)
    return known, drafts


def _may_have_erased(after: int, work: JobContext) -> bool:
    """Whether a memory may have been erased since a line: one was, or a line is not shown."""
    if journal.highest_seen(work.store) < journal.HIGHEST_CLASSIFICATION:
        return True  # of one that was secret once, the visible lines do not tell
    while lines := work.store.admin.events(after=after, limit=journal.LINES_AT_ONCE):
        hidden = lines[-1].seq - after != len(lines)
        if hidden or any(line.kind == journal.ERASED for line in lines):
            return True
        after = lines[-1].seq
    return False


def _as_successor(draft: Draft, outcome: Remembered | Refused) -> str | Blocked:
    if isinstance(outcome, Refused):
        return Blocked(f"its text was refused: {outcome.message}")
    if outcome.id != draft.id:
        # A user's own memory must not become a successor: undoing the run would remove it.
        return Blocked(f"{outcome.id} already says the same")
    return outcome.id


def with_inherited_fields(
    job: Job, proposal: Proposal, parents: Sequence[Item], work: JobContext
) -> Draft:
    """Return the draft with the fields inherited from its parents.

    As secret as the most secret of them, as trusted as the least trusted (the write
    pipeline enforces the trust itself), and of the user whose memories they all are.
    """
    assert proposal.successor is not None
    draft = proposal.successor
    made = {"run": work.run, "job": job.name}
    metadata: dict[str, object] = {"made_by": "rules", **draft.metadata, **made}
    users = {parent.user for parent in parents}
    if len(users) == 1 and None not in users:
        metadata["user_id"] = users.pop()
    return draft._replace(
        id=work.make_id(work.now),
        source=f"maintain:{job.name}",
        source_class=DERIVED_SOURCE,
        derives_from=proposal.lineage,
        metadata=metadata,
        force=True,
        trust=min([parent.trust for parent in parents], default=draft.trust),
        classification=max([draft.classification, *(one.classification for one in parents)]),
        integrity=min([draft.integrity, *(parent.integrity for parent in parents)]),
        credibility=max([parent.credibility for parent in parents], default=draft.credibility),
        pinned=False,
    )


def _is_recallable(item_id: str, work: JobContext) -> bool:
    """Whether recall finds it by its words and, where there is a model, its vector."""
    store = work.store
    scope = Scope(Filters(ids=(item_id,), max_classification=3), work.now)
    found = store.items.browse(scope, limit=1)
    if not found:
        return False
    words = found[0].text[:_RECALLED_CHARACTERS]
    if (
        store.search.terms(words)
        and not store.search.text(TextSearch(words, depth=1), scope).matches
    ):
        return False
    embedder = work.embedder
    return embedder is None or item_id in store.vectors.embeddings([item_id], embedder.model)
