"""Run maintenance: make a bounded plan, preview it, execute it, or undo a run.

Nothing is hidden before its successor can be recalled, and nothing is deleted. An
interrupted run leaves either nothing or a successor next to its originals; the next run
finds that successor by its key and continues from there.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import groupby

from bethink.core import plural
from bethink.core.named_tuple import NamedTuple
from bethink.errors import ModelError, NotFound, Refused
from bethink.ingest.revision import restore_memories
from bethink.maintain import journal
from bethink.maintain.job import (
    ACTOR,
    Job,
    JobContext,
    Proposal,
    batches,
    exemption_reason,
    is_made_by,
    limit_text,
)
from bethink.maintain.succession import (
    Blocked,
    add_successors,
    ensure_successor,
    find_successor,
    read_parents,
)
from bethink.maintain.threads import take_back_thread
from bethink.model import Item, Link, Node
from bethink.model.item import REFUSED, WAITING
from bethink.ports import Progress


class Step(NamedTuple):
    """A proposal in the plan, the revisions it is about, and their highest classification."""

    job: Job
    proposal: Proposal
    revisions: Mapping[str, int]
    level: int


class SkippedProposal(NamedTuple):
    """A proposal that was not taken or could not be applied, and why."""

    job: str
    why: str
    hindrance: str


class Plan(NamedTuple):
    """What a run will do: of ``live`` memories at most ``limit`` leave recall.

    ``places`` are how far jobs have looked that found nothing to do.
    """

    live: int
    limit: int
    steps: tuple[Step, ...]
    left: tuple[SkippedProposal, ...] = ()
    remarks: tuple[SkippedProposal, ...] = ()
    places: tuple[tuple[str, int], ...] = ()

    @property
    def leaving(self) -> int:
        """The number of memories that leave recall, not counting rebuilt ones."""
        return sum(_leaving_count(step.proposal) for step in self.steps)

    @property
    def token(self) -> str:
        """A hash of exactly this plan, which confirms that the caller has seen it."""
        steps = [
            (step.job.name, step.proposal[1:6], sorted(step.revisions.items()))
            for step in self.steps
        ]
        return hashlib.sha256(repr(steps).encode()).hexdigest()[:12]


class AppliedProposal(NamedTuple):
    """A proposal that was applied: what it made, and what left recall."""

    job: str
    proposal: Proposal
    successor: str | None
    ended: tuple[str, ...]


class Report(NamedTuple):
    """The result of a run. ``run`` is the id for `bethink undo`; None if nothing was done."""

    run: str | None
    plan: Plan
    done: tuple[AppliedProposal, ...] = ()
    left: tuple[SkippedProposal, ...] = ()

    def reasons(self) -> list[str]:
        """Say what was left undone and why, a line per job and reason; none quotes a memory."""
        counts = Counter((skipped.job, skipped.hindrance) for skipped in self.left if skipped.why)
        lines = [
            f"{job}: {plural(count, 'proposal')} skipped: {hindrance}"
            for (job, hindrance), count in counts.items()
        ]
        lines += [f"{skipped.job}: {skipped.hindrance}" for skipped in self.left if not skipped.why]
        steps = [(step.job.name, step.proposal) for step in self.plan.steps]
        remarks = Counter((job, proposal.remark) for job, proposal in steps if proposal.remark)
        lines += [
            f"{job}: {plural(count, 'proposal')} {remark}"
            for (job, remark), count in remarks.items()
        ]
        return lines + [f"{remark.job}: {remark.why}" for remark in self.plan.remarks]


def make_plan(jobs: Iterable[Job], work: JobContext) -> Plan:
    """Collect the jobs' proposals into a plan, within the limits; reads only."""
    steps: list[Step] = []
    left: list[SkippedProposal] = []
    remarks: list[SkippedProposal] = []
    places: list[tuple[str, int]] = []
    taken: set[str] = set()
    room = work.limit
    for job in jobs:
        try:
            for proposed in job.plan(work):
                if proposed.place is not None:
                    places.append((job.name, proposed.place))
                    continue
                if proposed.is_remark:
                    remarks.append(SkippedProposal(job.name, proposed.why, ""))
                    continue
                step, found = _make_step(job, proposed, work)
                proposal = step.proposal
                known = find_successor(job, proposal, work) if proposal.successor else None
                if isinstance(known, str) and _only_adds(step):
                    continue  # an earlier run did all of it
                hindrance = _skip_reason(step, taken, found)
                hindrance = hindrance or (known.why if isinstance(known, Blocked) else None)
                if hindrance is None and _leaving_count(proposal) > room:
                    hindrance = limit_text(work)
                if hindrance is not None:
                    left.append(SkippedProposal(job.name, proposal.why, hindrance))
                    continue
                steps.append(step)
                taken.update(proposal.leaving)
                room -= _leaving_count(proposal)
        except ModelError as error:
            left.append(SkippedProposal(job.name, "", f"a model failed: {error.message}"))
    # So the journal below a ceiling begins alike, whatever happens above it.
    steps.sort(key=lambda step: step.level)
    outcome = tuple(steps), tuple(left), tuple(remarks), tuple(places)
    return Plan(work.store.admin.count(), work.limit, *outcome)


def execute_plan(plan: Plan, work: JobContext, *, progress: Progress | None = None) -> Report:
    """Apply the plan, one proposal after the other, each checked again."""
    for job, place in plan.places:
        journal.keep_place(job, place, work)
    if not plan.steps:
        return Report(None, plan, left=plan.left)
    run = journal.begin_run(Counter(step.job.name for step in plan.steps), work)
    work = replace(work, run=run)
    done: list[AppliedProposal] = []
    left = list(plan.left)
    number = 0
    for steps in _batches_of_steps(plan.steps):
        outcomes: Sequence[AppliedProposal | Blocked]
        try:
            outcomes = _apply_steps(steps, work)
        except ModelError as error:  # the next run retries it
            outcomes = [Blocked(f"a model failed: {error.message}")] * len(steps)
        for step, outcome in zip(steps, outcomes, strict=True):
            if isinstance(outcome, AppliedProposal):
                done.append(outcome)
            else:
                left.append(SkippedProposal(step.job.name, step.proposal.why, outcome.why))
        number += len(steps)
        if progress is not None:
            progress(number, len(plan.steps))
    return Report(run, plan, tuple(done), tuple(left))


_MAX_STEPS_AT_ONCE = 250


def _batches_of_steps(steps: Sequence[Step]) -> Iterator[Sequence[Step]]:
    """Yield the steps in their order, those that only add a memory together."""
    for (_, adds), group in groupby(steps, key=lambda step: (step.level, _only_adds(step))):
        if adds:
            yield from batches(group, _MAX_STEPS_AT_ONCE)
        else:
            yield from ([step] for step in group)


def _only_adds(step: Step) -> bool:
    proposal = step.proposal
    changes = (proposal.leaving, proposal.links, proposal.statuses, proposal.actions)
    return proposal.successor is not None and not any(changes)


def _apply_steps(steps: Sequence[Step], work: JobContext) -> list[AppliedProposal | Blocked]:
    """Apply one step, or several that only add memories."""
    if not _only_adds(steps[0]):
        return [_apply_step(steps[0], work)]
    read = read_parents([step.proposal for step in steps], work)
    changed = [_change_since_plan(step, read.items) for step in steps]
    ready = [step for step, why in zip(steps, changed, strict=True) if why is None]
    made = iter(add_successors([(step.job, step.proposal) for step in ready], read, work))
    outcomes: list[AppliedProposal | Blocked] = []
    added: list[tuple[str, str, str]] = []
    for step, why in zip(steps, changed, strict=True):
        outcome = next(made) if why is None else Blocked(why)
        if isinstance(outcome, Blocked):
            outcomes.append(outcome)
            continue
        added.append((step.job.name, step.proposal.rule, outcome))
        outcomes.append(AppliedProposal(step.job.name, step.proposal, outcome, ()))
    journal.record_additions(added, work)
    return outcomes


def _make_step(job: Job, proposal: Proposal, work: JobContext) -> tuple[Step, dict[str, Item]]:
    """Return the step and the memories it is about, as they are now."""
    ids = list(dict.fromkeys((*proposal.leaving, *proposal.lineage)))
    found = {key: proposal.read[key] for key in ids if key in proposal.read}
    if len(found) < len(ids):
        found = work.store.items.get(ids)
    revisions = {item.id: item.rev for item in found.values()} | dict(proposal.seen)
    proposal = proposal._replace(read={})
    levels = [item.classification for item in found.values()]
    levels += [proposal.successor.classification] if proposal.successor else []
    level = max(levels, default=journal.HIGHEST_CLASSIFICATION)
    return Step(job, _hide_secret_text(proposal, found, work), revisions, level), found


def _hide_secret_text(proposal: Proposal, found: Mapping[str, Item], work: JobContext) -> Proposal:
    """Hide the words of memories that the plan's reader may not see."""
    if work.shown >= journal.HIGHEST_CLASSIFICATION:
        return proposal
    others = [item for item in proposal.about if item not in found]
    known = [*found.values(), *(work.store.items.get(others).values() if others else ())]
    marks = [item.classification for item in known]
    if proposal.successor is not None:
        marks.append(proposal.successor.classification)
    if max(marks, default=0) <= work.shown:
        return proposal
    return proposal._replace(why=proposal.rule, secret=True)


def _leaving_count(proposal: Proposal) -> int:
    return 0 if proposal.renews else len(proposal.leaving)


def _skip_reason(step: Step, taken: set[str], items: Mapping[str, Item]) -> str | None:
    """Return why the memories of a proposal hinder it now; None where they do not."""
    proposal = step.proposal
    if taken.intersection((*proposal.leaving, *proposal.lineage)):
        return "another proposal of this run already uses these memories"
    return _change_since_plan(step, items)


def _change_since_plan(step: Step, items: Mapping[str, Item]) -> str | None:
    """Return what changed since the plan was made; None if nothing did."""
    proposal = step.proposal
    for item_id in dict.fromkeys((*proposal.leaving, *proposal.lineage)):
        item = items.get(item_id)
        if item is None or item.live_to is not None:
            return f"{item_id} no longer exists"
        if item.rev != step.revisions.get(item_id):
            return f"{item_id} was changed meanwhile"
    for item_id in proposal.leaving:
        reason = _exemption(items[item_id], step)
        if reason is not None:
            return f"{item_id} is exempt: {reason}"
    return None


def _exemption(item: Item, step: Step) -> str | None:
    if not step.proposal.renews:
        return exemption_reason(item)
    if item.pinned:
        return "pinned"
    return None if is_made_by(item, step.job.name) else f"not made by {step.job.name}"


def _apply_step(step: Step, work: JobContext) -> AppliedProposal | Blocked:
    proposal, job = step.proposal, step.job
    ids = list(dict.fromkeys((*proposal.leaving, *proposal.lineage)))
    changed = _change_since_plan(step, work.store.items.get(ids))
    if changed is not None:
        return Blocked(changed)
    made = None if proposal.successor is None else ensure_successor(job, proposal, work)
    if isinstance(made, Blocked):
        return made
    journal.record_step(job.name, proposal, made, work)
    if proposal.links:
        work.store.graph.add_links(proposal.links, now=work.now)
    ended = _retire_memories(step, work)
    for deed in proposal.actions:
        deed(work)
    return AppliedProposal(job.name, proposal, made, tuple(ended))


def _retire_memories(step: Step, work: JobContext) -> Sequence[str]:
    """End memories and set statuses of unchanged revisions; return what left recall."""
    proposal, actor = step.proposal, work.write_context().actor
    for status in dict.fromkeys(status for _, status in proposal.statuses):
        ids = [item for item, new_status in proposal.statuses if new_status == status]
        work.store.items.set_status(ids, status, actor=actor, now=work.now, only=step.revisions)
    if not proposal.ends:
        return proposal.leaving
    how = f"{step.job.name}:{work.run}"
    return work.store.items.end(
        proposal.ends, how=how, actor=actor, now=work.now, only=step.revisions
    )


class UndoResult(NamedTuple):
    """What undoing a run did or, with ``preview``, would do: ids by outcome."""

    run: str
    restored: tuple[str, ...]
    ended: tuple[str, ...]
    judged: tuple[tuple[str, str], ...]
    unlinked: int
    threads: tuple[str, ...]
    preview: bool


def undo_run(run: str, work: JobContext, *, preview: bool = False) -> UndoResult:
    """Restore everything a run ended, then remove what it made.

    Later changes by others are kept. An interrupted undo can be repeated.
    """
    trail = journal.run_trail(run, work.store)
    if trail is None:
        raise NotFound(f"there is no run {run!r}", remedy="list runs with: bethink maintain --runs")
    undone = _preview_undo(run, trail, work)
    if not any(undone[1:-1]):
        reason = "was already undone" if trail.undone else "made no change that can be undone"
        raise Refused(f"{run} {reason}")
    if not preview:
        _apply_undo(undone, trail, work)
    return undone._replace(preview=preview)


def _preview_undo(run: str, trail: journal.RunTrail, work: JobContext) -> UndoResult:
    judged_ids = [item for item, _, _ in trail.statuses]
    items = work.store.items.get([*trail.made, *trail.ended, *judged_ids])
    restored = [
        item_id
        for item_id in trail.ended
        if item_id in items
        and items[item_id].live_to is not None
        and (items[item_id].ended_by or "").endswith(f":{run}")
    ]
    ended = [
        made_id
        for made_id in trail.made
        if made_id in items and (items[made_id].live_to is None or _is_held(items[made_id]))
    ]
    judged = [
        (item_id, before)
        for item_id, before, after in trail.statuses
        if item_id in items and items[item_id].live_to is None and items[item_id].status == after
    ]
    there = {
        (link.src.id, link.type, link.dst.id)
        for link in work.store.graph.links_of([src for src, _, _ in trail.links], incoming=False)
    }
    unlinked = len(there.intersection(trail.links))
    there_now = (key for key, *_ in trail.threads if work.store.activity.thread(key) is not None)
    threads = () if trail.undone else tuple(there_now)
    changed = (tuple(restored), tuple(ended), tuple(judged), unlinked, threads)
    return UndoResult(run, *changed, preview=True)


def _is_held(item: Item) -> bool:
    """Whether a memory is in the inbox as the run left it there; a refusal by a user is kept."""
    return item.ended_by == WAITING or (item.ended_by == REFUSED and item.rev == 1)


def _apply_undo(undone: UndoResult, trail: journal.RunTrail, work: JobContext) -> None:
    store, now = work.store, work.now
    if undone.restored:
        restore_memories(undone.restored, work.write_context())
    for item_id, before in undone.judged:
        store.items.set_status([item_id], before, actor=ACTOR, now=now)  # type: ignore[arg-type]
    if undone.unlinked:
        store.graph.remove_links(
            [Link(Node("item", src), Node("item", dst), kind) for src, kind, dst in trail.links],
            actor=ACTOR,
            now=now,
        )
    if undone.ended:
        how = f"{journal.UNDONE}{undone.run}"
        live = store.items.end(undone.ended, how=how, actor=ACTOR, now=now)
        if held := sorted(set(undone.ended).difference(live)):
            store.admin.refile(held, how=how, actor=ACTOR, now=now)
    for key, _, *added in trail.threads if undone.threads else ():
        take_back_thread(key, added, work)
    journal.record_undo(undone.run, work)
