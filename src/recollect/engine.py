"""The read walk: from a question to what it calls to mind, top to bottom."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from recollect.asked import asks_only_when, periods
from recollect.channels import WAYS
from recollect.context import Channel, Context, Early, Reluctant, Stage
from recollect.errors import StoreError
from recollect.model import AnswerStatus, Candidate, Degraded, Pool, Recall
from recollect.parts import offers
from recollect.profile import SLOTS, Profile
from recollect.stages.assemble import relations_of, warnings_for
from recollect.stages.budget import page_of
from recollect.stages.rerank import Read
from recollect.text import has_substance
from recollect.trace import Trace


def recall(profile: Profile, ctx: Context) -> Recall:
    """Find what the query calls to mind, all of it as it stands at one moment.

    What was returned is marked as used, if asked: nothing else ever changes a memory.
    """
    if not ctx.query.text.strip():
        profile, ctx = profile.looking(), replace(ctx, reranker=None)
    with ctx.store.snapshot():
        answer = walk(profile, ctx)
    # 11. Note what was returned as used.
    return mark_used(profile, answer, ctx)


def mark_used(profile: Profile, answer: Recall, ctx: Context) -> Recall:
    """The answer, its hits noted as used if that was asked; a store that cannot be written,
    being busy or on a full disk, is no failure."""
    if not ctx.query.track:
        return answer
    try:
        profile.track(answer.hits, ctx)
    except StoreError as error:
        missed = Degraded("track", error.message)
        return replace(answer, degraded=(*answer.degraded, missed))
    return answer


def walk(profile: Profile, ctx: Context) -> Recall:
    """The steps in their order.

    The order is the engine's design and is fixed here; what each step does is the
    profile's business. An empty slot does nothing.
    """
    trace = Trace(ctx)

    # 1. Look at the question: its words, and how telling each is in this space.
    trace.run("plan", partial(_plan, profile, ctx))

    # 2. Ask every channel; each answers with its own ranking.
    found: dict[Channel, Pool] = {}
    for channel in profile.channels:
        name = f"channel.{channel.name}"
        if reason := _left_out(channel, found, ctx):
            trace.skip(name, reason)
        else:
            found[channel] = trace.attempt(name, partial(channel, ctx))

    # 3. Merge the rankings into one pool.
    pool = trace.run("fuse", partial(profile.fuse, found, ctx))

    # 4. Let the strongest wake what they are linked to and what was said beside them.
    # 5. Weigh in what the words cannot say: age, importance, the caller's wish.
    # 6. Read the best against the question.
    # 7. Prefer new information over repetition.
    for slot in ("expand", "adjust", "rerank", "diversify"):
        for stage in _stages(profile, slot, ctx):
            pool = trace.pass_through(f"{slot}.{stage.name}", stage, pool)

    # 8. Drop what is not relevant enough; perhaps that is everything.
    offered = pool
    for stage in profile.gate:
        pool = trace.pass_through(f"gate.{stage.name}", stage, pool)

    # 9. Keep what fits the caller's limits.
    hits = trace.run("budget", partial(profile.budget, pool, ctx), pool)

    # 10. Put the answer together, with what the reader should know beside the hits.
    relations = relations_of(hits, ctx)
    whole = replace(ctx, offered=offered)
    beside = [
        trace.gather(f"assemble.{add.name}", partial(add, hits, whole), hits)
        for add in profile.assemble
    ]
    status, reason = _verdict(hits, pool, offered, ctx)
    return Recall(
        query=ctx.query,
        profile=profile.name,
        status=status,
        reason=reason,
        hits=hits,
        page=page_of(pool, hits, ctx.query),
        warnings=(*warnings_for(hits, relations), *(w for more in beside for w in more.warnings)),
        degraded=tuple(trace.degraded),
        nearest_miss=offered[0] if offered and not pool else None,
        steps=tuple(trace.steps),
        run=trace.stamp(),
        captions=tuple(caption for more in beside for caption in more.captions),
        relations=relations,
        timelines=tuple(timeline for more in beside for timeline in more.timelines),
        ways=tuple(
            (channel.name, WAYS.get(type(channel).__name__, "")) for channel in profile.channels
        ),
    )


def _left_out(channel: Channel, found: dict[Channel, Pool], ctx: Context) -> str:
    """Why a channel is not asked, if so."""
    if not _says_something(ctx):
        return "there is nothing to look for"
    return channel.skip(found, ctx) if offers(channel, Reluctant) else ""


def _says_something(ctx: Context) -> bool:
    """Marks alone ask for nothing; no words at all may ask for anything."""
    text = ctx.query.text
    return not text.strip() or has_substance(text)


def _stages(profile: Profile, slot: str, ctx: Context) -> tuple[Stage, ...]:
    """What fills the slot. A reader that was brought is heard by every profile: one that
    has no place for it gets one, after all else that reads."""
    stages = profile.slot(slot)
    if slot != "rerank" or ctx.reranker is None:
        return stages
    has_place = any(isinstance(stage, Read) for name in SLOTS for stage in profile.slot(name))
    return stages if has_place else (*stages, Read())


def _plan(profile: Profile, ctx: Context) -> Pool:
    for channel in profile.channels:
        if offers(channel, Early):
            channel.begin(ctx)
    frequencies = ctx.statistics().frequencies
    telling = [word for word in ctx.words() if not word.common]
    rare_first = sorted(telling, key=lambda word: (-ctx.rarity(word), word.shown))
    counts = [(word.shown, min(frequencies.get(t, 0) for t in word.terms)) for word in rare_first]
    if counts:
        ctx.remark("memories with " + ", ".join(f"{word}: {count}" for word, count in counts[:8]))
    return ()


def _verdict(hits: Pool, passed: Pool, offered: Pool, ctx: Context) -> tuple[AnswerStatus, str]:
    """Which of the answers this is: found, or one of three ways of finding nothing."""
    if hits:
        return "found", f"{len(passed)} relevant of {len(offered)} considered"
    if passed:
        return "found", f"all {len(passed)} relevant memories lie before offset {ctx.query.offset}"
    if not ctx.store.count():
        return "nothing_stored", "nothing is stored in this space yet"
    if not offered:
        return "nothing_matched", _unmatched(ctx)
    return "below_gate", _near(offered[0])


def _unmatched(ctx: Context) -> str:
    if not ctx.query.text.strip():
        return "the filters leave no memory"
    if not _says_something(ctx):
        return "the question has no letter, digit or symbol in it"
    if asks_only_when(ctx):
        return f"no stored memory is of {' or '.join(one.said for one in periods(ctx))}"
    return "no stored memory has anything to do with this question"


def _near(best: Candidate) -> str:
    return f"nothing relevant enough; the nearest miss is {best.item.id}"
