"""Runs maintenance: draws up a plan within bounds, shows it, or carries it out.

Nothing is hidden before what stands in for it can be recalled, and nothing is deleted.
A run that is cut off leaves either nothing or a successor beside its originals; the next
run finds that successor by its key and goes on from there.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from recollect.errors import ModelError
from recollect.maintain.job import Job, Proposal, Work, is_made_by, spared
from recollect.maintain.journal import Noted, begin, note
from recollect.maintain.succeed import Hindered, Successor, known_successor, succeed
from recollect.model import Item
from recollect.ports import Progress


class Step(NamedTuple):
    """A proposal that was taken into the plan, and the revisions it is about."""

    job: Job
    proposal: Proposal
    revisions: Mapping[str, int]


class Left(NamedTuple):
    """What was proposed and not taken, or could not be done, and why."""

    job: str
    why: str
    hindrance: str


class Plan(NamedTuple):
    """What a run will do: of ``live`` memories at most ``limit`` leave recall."""

    live: int
    limit: int
    steps: tuple[Step, ...]
    left: tuple[Left, ...] = ()
    remarks: tuple[Left, ...] = ()

    @property
    def leaving(self) -> int:
        """How many memories leave recall, those not counted that are only made anew."""
        return sum(_counted(step.proposal) for step in self.steps)

    @property
    def token(self) -> str:
        """Stands for exactly this plan: who names it has seen what will happen."""
        told = [
            (step.job.name, step.proposal[1:6], sorted(step.revisions.items()))
            for step in self.steps
        ]
        return hashlib.sha256(repr(told).encode()).hexdigest()[:12]


class Done(NamedTuple):
    """A proposal that was carried out: what it made, and what left recall."""

    job: str
    proposal: Proposal
    successor: str | None
    ended: tuple[str, ...]


class Report(NamedTuple):
    """What a run did. ``run`` is what `recollect undo` takes; None where nothing was."""

    run: str | None
    plan: Plan
    done: tuple[Done, ...] = ()
    left: tuple[Left, ...] = ()


def draw_up(jobs: Iterable[Job], work: Work) -> Plan:
    """What the jobs propose, as far as it may happen; reads only."""
    steps: list[Step] = []
    left: list[Left] = []
    remarks: list[Left] = []
    taken: set[str] = set()
    room = work.limit
    for job in jobs:
        try:
            for proposed in job.plan(work):
                if proposed.is_remark:
                    remarks.append(Left(job.name, proposed.why, ""))
                    continue
                step = _step(job, proposed, work)
                if _is_done(step, work):
                    continue
                proposal = step.proposal
                hindrance = _hindrance(step, taken, work) or _too_many(proposal, room, work)
                if hindrance is not None:
                    left.append(Left(job.name, proposal.why, hindrance))
                    continue
                steps.append(step)
                taken.update(proposal.leaving)
                room -= _counted(proposal)
        except ModelError as error:
            left.append(Left(job.name, "", f"a model failed: {error.message}"))
    return Plan(work.store.count(), work.limit, tuple(steps), tuple(left), tuple(remarks))


def carry_out(plan: Plan, work: Work, *, progress: Progress | None = None) -> Report:
    """Does what the plan says, one proposal after the other, each checked afresh."""
    if not plan.steps:
        return Report(None, plan, left=plan.left)
    run = begin(Counter(step.job.name for step in plan.steps), work)
    done: list[Done] = []
    left = list(plan.left)
    for number, step in enumerate(plan.steps, start=1):
        try:
            outcome = _carry_out(step, run, work)
        except ModelError as error:  # what it left undone is still there for the next run
            outcome = Hindered(f"a model failed: {error.message}")
        if isinstance(outcome, Done):
            done.append(outcome)
        else:
            left.append(Left(step.job.name, step.proposal.why, outcome.why))
        if progress is not None:
            progress(number, len(plan.steps))
    return Report(run, plan, tuple(done), tuple(left))


def _step(job: Job, proposal: Proposal, work: Work) -> Step:
    wanted = list(dict.fromkeys((*proposal.leaving, *proposal.lineage)))
    found = work.store.get(wanted)
    revisions = {item.id: item.rev for item in found.values()} | dict(proposal.seen)
    return Step(job, _readable(proposal, work), revisions)


def _readable(proposal: Proposal, work: Work) -> Proposal:
    """Without the words of memories that whoever reads the plan may not see."""
    touched = list(dict.fromkeys((*proposal.leaving, *proposal.lineage, *proposal.about)))
    marks = [item.classification for item in work.store.get(touched).values()]
    if proposal.successor is not None:
        marks.append(proposal.successor.classification)
    if max(marks, default=0) <= work.shown:
        return proposal
    return proposal._replace(why=proposal.rule, secret=True)


def _counted(proposal: Proposal) -> int:
    return 0 if proposal.renews else len(proposal.leaving)


def _too_many(proposal: Proposal, room: int, work: Work) -> str | None:
    if _counted(proposal) <= room:
        return None
    return f"at most {work.limit:,} memories may leave recall in one run"


def _hindrance(step: Step, taken: set[str], work: Work) -> str | None:
    """Why a proposal cannot happen as things stand, if it cannot."""
    proposal = step.proposal
    if taken.intersection((*proposal.leaving, *proposal.lineage)):
        return "another proposal of this run comes first"
    changed = _changed(step, work)
    if changed is not None or proposal.successor is None:
        return changed
    known = known_successor(step.job, proposal, work)
    return known.why if isinstance(known, Hindered) else None


def _is_done(step: Step, work: Work) -> bool:
    """Whether an earlier run has made the successor, and nothing else is to be done."""
    proposal = step.proposal
    if proposal.successor is None or proposal.leaving or proposal.deeds or proposal.links:
        return False
    return isinstance(known_successor(step.job, proposal, work), Successor)


def _changed(step: Step, work: Work) -> str | None:
    """What came between the plan and the deed, if anything did."""
    proposal = step.proposal
    wanted = list(dict.fromkeys((*proposal.leaving, *proposal.lineage)))
    items = work.store.get(wanted)
    for item_id in wanted:
        item = items.get(item_id)
        if item is None or item.live_to is not None:
            return f"{item_id} is no longer there"
        if item.rev != step.revisions.get(item_id):
            return f"{item_id} was changed meanwhile"
    for item_id in proposal.leaving:
        reason = _spared(items[item_id], step)
        if reason is not None:
            return f"{item_id} stays: {reason}"
    return None


def _spared(item: Item, step: Step) -> str | None:
    if not step.proposal.renews:
        return spared(item, step.job)
    if item.pinned:
        return "pinned"
    return None if is_made_by(item, step.job.name) else f"not made by {step.job.name}"


def _carry_out(step: Step, run: str, work: Work) -> Done | Hindered:
    proposal, job = step.proposal, step.job
    changed = _changed(step, work)
    if changed is not None:
        return Hindered(changed)
    made: Successor | None = None
    if proposal.successor is not None:
        outcome = succeed(job, proposal, run, work)
        if isinstance(outcome, Hindered):
            return outcome
        made = outcome
    note(Noted(run, job.name, proposal), made, work)
    if proposal.links:
        work.store.add_links(proposal.links, now=work.now)
    ended = _let_go(step, run, work)
    for deed in proposal.deeds:
        deed(work)
    return Done(job.name, proposal, made.id if made else None, tuple(ended))


def _let_go(step: Step, run: str, work: Work) -> Sequence[str]:
    """Ends and judges what is still as it was seen; gives what left recall."""
    proposal, actor = step.proposal, work.writing().actor
    for status in dict.fromkeys(status for _, status in proposal.statuses):
        ids = [item for item, wanted in proposal.statuses if wanted == status]
        work.store.set_status(ids, status, actor=actor, now=work.now, only=step.revisions)
    if not proposal.ends:
        return proposal.leaving
    return work.store.end(
        proposal.ends,
        how=f"{step.job.name}:{run}",
        actor=actor,
        now=work.now,
        only=step.revisions,
    )
