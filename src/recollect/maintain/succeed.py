"""Stores what is to stand in for other memories, and makes sure that it can be recalled."""

from __future__ import annotations

import hashlib
import json
from typing import Any, NamedTuple

from recollect.errors import Refused
from recollect.ingest.admit import DERIVED
from recollect.ingest.remember import remember
from recollect.maintain.job import Job, Proposal, Work, is_made_by
from recollect.maintain.journal import note_making
from recollect.model import Draft, Filters, Item, Link, Node
from recollect.ports import Scope, TextSearch


class Hindered(NamedTuple):
    """Why something was not done."""

    why: str


class Successor(NamedTuple):
    """The memory that stands in, made now or by an earlier run."""

    id: str


def key_of(job: Job, proposal: Proposal, work: Work) -> str:
    """The same for the same job over memories that say the same: a retry repeats it."""
    assert proposal.successor is not None
    if proposal.successor.key is not None:
        return proposal.successor.key
    items = work.store.get(list(proposal.lineage))
    said = sorted((item.id, item.text) for item in items.values())
    digest = hashlib.sha256(json.dumps(said, ensure_ascii=False).encode()).hexdigest()
    return f"{job.name}:{digest}"


def known_successor(job: Job, proposal: Proposal, work: Work) -> Successor | Hindered | None:
    """What an earlier run made of the same memories; None where none did.

    What was undone or forgotten since is not made again.
    """
    used = work.store.find_key(key_of(job, proposal, work))
    if used is None:
        return None
    item = work.store.get([used[0]]).get(used[0])
    if item is None or item.live_to is not None:
        return Hindered("it was done before and undone")
    if item.id in proposal.ends or not is_made_by(item, job.name):
        return Hindered(f"{item.id} says the same already")
    return Successor(item.id)


def succeed(job: Job, proposal: Proposal, run: str, work: Work) -> Successor | Hindered:
    """Stores the successor, unless it is there; Hindered where nothing may be hidden yet."""
    known = known_successor(job, proposal, work)
    if isinstance(known, Hindered):
        return known
    made = known or _store(job, proposal, run, work)
    if isinstance(made, Hindered):
        return made
    parents = work.store.get(list(proposal.lineage))
    if len(parents) < len(proposal.lineage):
        # Erased while the successor was on its way: it may repeat what is not to be.
        work.store.erase([made.id], actor=work.writing().actor, now=work.now)
        return Hindered("one of its memories was erased meanwhile")
    me = Node("item", made.id)
    links = [Link(me, Node("item", parent), "derives_from") for parent in proposal.lineage]
    work.store.add_links(links, now=work.now)
    return made if _recallable(made.id, work) else Hindered(f"{made.id} cannot be recalled yet")


def _store(job: Job, proposal: Proposal, run: str, work: Work) -> Successor | Hindered:
    draft = inherited(job, proposal, run, work)
    assert draft.id is not None
    note_making(run, draft.id, work)
    try:
        kept = remember([draft], work.writing())[0]
    except Refused as error:
        return Hindered(f"its text was refused: {error.message}")
    if kept.id != draft.id:
        # Somebody's own memory does not become a stand-in: it would go when that does.
        return Hindered(f"{kept.id} says the same already")
    return Successor(kept.id)


def inherited(job: Job, proposal: Proposal, run: str, work: Work) -> Draft:
    """The draft with what its parents hand down: as secret as the most secret of them, as
    trustworthy as the least (the write walk sees to the trust itself)."""
    assert proposal.successor is not None
    parents = list(work.store.get(list(proposal.lineage)).values())
    draft = proposal.successor
    told: dict[str, Any] = {"made_by": "rules", **draft.metadata, "run": run, "job": job.name}
    return draft._replace(
        id=work.make_id(work.now),
        key=key_of(job, proposal, work),
        source=f"maintain:{job.name}",
        source_class=DERIVED,
        derives_from=proposal.lineage,
        metadata=told,
        force=True,
        **_handed_down(draft, parents),
    )


def _handed_down(draft: Draft, parents: list[Item]) -> dict[str, Any]:
    return {
        "trust": min([one.trust for one in parents], default=draft.trust),
        "classification": max([draft.classification, *(one.classification for one in parents)]),
        "integrity": min([draft.integrity, *(one.integrity for one in parents)]),
        "credibility": max([one.credibility for one in parents], default=draft.credibility),
        "pinned": False,
    }


def _recallable(item_id: str, work: Work) -> bool:
    """Whether recall can find it: by its words and, where there is a model, its meaning."""
    store = work.store
    scope = Scope(Filters(ids=(item_id,), max_classification=3), work.now)
    found = store.browse(scope, limit=1)
    if not found:
        return False
    words = found[0].text[:500]
    if store.terms(words) and not store.search_text(TextSearch(words, depth=1), scope).matches:
        return False
    embedder = work.embedder
    return embedder is None or item_id in store.embeddings([item_id], embedder.model)
