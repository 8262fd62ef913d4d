"""Evidence in words: why a memory was returned, and why another was not."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from recollect.context import Channel, Context
from recollect.model import Candidate, Evidence, Item, Recall, replay
from recollect.scope import rejects
from recollect.warmth import warmth_of

_SIGNS = {"add": "+", "times": "×", "set": "=", "seen": "·"}


def arithmetic(cand: Candidate) -> list[tuple[Evidence, float]]:
    """Every reason with the score as it stood after it."""
    score = 0.0
    lines = []
    for reason in cand.evidence:
        score = replay((reason,), score)
        lines.append((reason, score))
    return lines


def explain(cand: Candidate) -> str:
    """The arithmetic of a score, a line a reason, in plain text."""
    lines = []
    for reason, score in arithmetic(cand):
        why = " ".join(part for part in (reason.why, reason.via) if part)
        place = f" (rank {reason.rank})" if reason.rank and "rank" not in why else ""
        total = "        " if reason.op == "seen" else f"{score:8.4f}"
        sign = _SIGNS[reason.op]
        lines.append(f"{total}  {sign} {reason.value:8.4f}  {reason.by:<20} {why}{place}".rstrip())
    return "\n".join(lines)


@dataclass(frozen=True, slots=True)
class Look:
    """How one channel sees one memory: its score there, and what it took to get in."""

    channel: str
    score: float | None
    needed: float | None
    why: str = ""


@dataclass(frozen=True, slots=True)
class WhyNot:
    """Where a memory fell out of an answer, by how much, and what would bring it in."""

    item: Item
    returned: bool
    stage: str
    reason: str
    score: float | None = None
    needed: float | None = None
    remedy: str = ""
    looks: tuple[Look, ...] = ()


def why_not(item: Item, answer: Recall, channels: Sequence[Channel], ctx: Context) -> WhyNot:
    """Follows one memory through the steps of a walk already taken."""
    rank = next((n for n, hit in enumerate(answer.hits, 1) if hit.item.id == item.id), 0)
    if rank:
        hit = answer.hits[rank - 1]
        return WhyNot(item, True, "answer", f"it was returned, at rank {rank}", hit.score)
    outside = rejects(item, ctx.scope) or _in_other_band(item, ctx)
    if outside:
        return WhyNot(item, False, "filters", outside, remedy="ask without that filter")
    looks = tuple(_look(channel, item, answer, ctx) for channel in channels)
    last = _last_seen(item, answer)
    if last < 0:
        return _never_found(item, looks)
    return replace(_fell_out(item, answer, last), looks=looks)


def _in_other_band(item: Item, ctx: Context) -> str | None:
    """The one filter that an item cannot be judged by alone: how it was used counts."""
    bands = ctx.query.filters.bands
    own = warmth_of([item], ctx)[item.id] if bands else None
    if own is None or own.band in bands:
        return None
    return f"its heat is {own.heat:.1f} ({own.told}), not {' or '.join(bands)}"


def _look(channel: Channel, item: Item, answer: Recall, ctx: Context) -> Look:
    """What the channel would score this memory, were it the only one."""
    step = next((s for s in answer.steps if s.name == f"channel.{channel.name}"), None)
    if step is None or step.status != "ok":
        return Look(channel.name, None, None, step.note if step else "not asked")
    alone = replace(ctx.query, filters=replace(ctx.query.filters, ids=(item.id,)))
    pool = channel(replace(ctx, query=alone, _once={}))
    needed = step.pool[-1].score if step.pool else None
    if not pool:
        return Look(channel.name, None, needed, "finds nothing in it")
    return Look(channel.name, pool[0].score, needed, pool[0].evidence[-1].why)


def _last_seen(item: Item, answer: Recall) -> int:
    """The last step whose pool still held the memory; -1 where none did."""
    held = [
        number
        for number, step in enumerate(answer.steps)
        if any(cand.item.id == item.id for cand in step.pool)
    ]
    return held[-1] if held else -1


def _never_found(item: Item, looks: tuple[Look, ...]) -> WhyNot:
    scored = [look for look in looks if look.score is not None]
    if not scored:
        reason = "no channel finds anything of the question in it"
        return WhyNot(
            item, False, "channels", reason, remedy="ask in the memory's own words", looks=looks
        )
    best = min(scored, key=lambda look: (look.needed or 0.0) - (look.score or 0.0))
    return WhyNot(
        item,
        False,
        f"channel.{best.channel}",
        "others matched better and the channel passes on only its best",
        best.score,
        best.needed,
        f"a greater depth for {best.channel}, or a more precise question",
        looks,
    )


def _fell_out(item: Item, answer: Recall, last: int) -> WhyNot:
    """The step after the last one that held it is where it fell out."""
    cand = next(c for c in answer.steps[last].pool if c.item.id == item.id)
    later = [
        step
        for step in answer.steps[last + 1 :]
        if not step.name.startswith("channel.") and step.status == "ok"
    ]
    step = later[0] if later else answer.steps[last]
    needed = step.pool[-1].score if step.pool else None
    reason, remedy = _told(step.name, cand, answer)
    if step.name.startswith("gate.") and step.note:
        reason = f"{reason}: {step.note}"  # a gate may judge by more than the score
    return WhyNot(item, False, step.name, reason, cand.score, needed, remedy)


def _told(step: str, cand: Candidate, answer: Recall) -> tuple[str, str]:
    if step == "budget":
        pool = next((s.pool for s in reversed(answer.steps) if s.name != "budget"), ())
        rank = 1 + next((n for n, c in enumerate(pool) if c.item.id == cand.item.id), 0)
        page = answer.page
        if rank <= page.offset:
            return f"rank {rank} lies before the offset {page.offset}", "a smaller --offset"
        if page.stopped_by == "tokens":
            return f"rank {rank}; the token budget was spent before it", "a larger --max-tokens"
        return f"rank {rank} of {page.total}; only {answer.query.k} were asked for", "a larger -k"
    if step.startswith("gate."):
        return "not relevant enough to be told", "ask in the memory's own words"
    if step.startswith("diversify."):
        return "another memory in the answer says the same", "recollect show " + cand.item.id
    return "others scored better", "a more precise question"
