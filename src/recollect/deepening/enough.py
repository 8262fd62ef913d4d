"""Whether the hits of the first walk are enough, by rules: what of the question they cover."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from recollect.asked import gives, periods, telling_words, wanted
from recollect.context import Context
from recollect.deepening.settings import Deep
from recollect.model import Candidate, Pool, Step
from recollect.ports import Word
from recollect.questions import asks_for_several, leads_over
from recollect.stages.likely import speakers_of
from recollect.text import shorten

_MOST_EVIDENCES = 5
_MOST_GAPS = 3
_QUOTED = 200


class Verdict(NamedTuple):
    """Whether it is enough, why, what is missing, and the ids of what speaks for it."""

    enough: bool
    why: str
    gaps: tuple[str, ...] = ()
    evidences: tuple[str, ...] = ()


def judge(hits: Pool, ctx: Context, deep: Deep) -> Verdict:
    """Conservative: enough only where one memory holds all that the question names, tells
    such a thing as it asks for, and there is no sign that more than one is wanted."""
    looked = hits[: deep.look]
    held = _held(looked, ctx)
    missing = _missing(held, ctx)
    evidences = tuple(cand.item.id for cand in covering(looked, ctx))
    if missing:
        return Verdict(False, f"no hit holds {', '.join(missing)}", missing, evidences)
    text = ctx.query.text
    if asks_for_several(text):
        return Verdict(False, "it asks for several things", (), evidences)
    if leads_over(text):
        return Verdict(False, "it leads over something in between", (), evidences)
    return _by_the_best(looked, held, ctx, deep)._replace(evidences=evidences)


def _by_the_best(looked: Pool, held: Mapping[str, set[Word]], ctx: Context, deep: Deep) -> Verdict:
    if not looked:
        return Verdict(False, "nothing was found")
    best = looked[0]
    share = _share(held[best.item.id], ctx)
    if share < deep.covered:
        return Verdict(False, f"the best hit holds {share:.0%} of the question")
    kinds = wanted(ctx.query.text)
    if kinds and gives(best.item.text, kinds) is None:
        return Verdict(False, f"the best hit does not tell {' or '.join(kinds)}")
    if any(not when.start <= best.item.when < when.end for when in periods(ctx)):
        return Verdict(False, "the best hit is of another time")
    return Verdict(True, "the best hit holds all that the question names")


def is_strong(steps: tuple[Step, ...], deep: Deep) -> bool:
    """Whether the words alone point to one memory: then other words can only mislead."""
    for step in steps:
        name = step.name.removeprefix("channel.")
        if step.name == name or name not in deep.lex or not step.pool:
            continue
        second = step.pool[1].score if len(step.pool) > 1 else 0.0
        if step.pool[0].score >= deep.strong and step.pool[0].score - second >= deep.lead:
            return True
    return False


def covering(hits: Pool, ctx: Context, most: int = _MOST_EVIDENCES) -> Pool:
    """Of the hits those that together hold the question's words, each adding to the rest;
    the best is always among them."""
    held = _held(hits, ctx)
    seen: set[Word] = set()
    chosen: list[Candidate] = []
    for cand in hits:
        if len(chosen) < most and (not chosen or held[cand.item.id] - seen):
            chosen.append(cand)
            seen |= held[cand.item.id]
    return tuple(chosen)


def quoted(hits: Pool, ids: tuple[str, ...]) -> tuple[str, ...]:
    """What those of the hits say, in their own words and with their ids."""
    known = {cand.item.id: cand.item for cand in hits}
    return tuple(
        f"{key}: {shorten(' '.join(known[key].text.split()), _QUOTED)}"
        for key in ids
        if key in known
    )


def _held(hits: Pool, ctx: Context) -> dict[str, set[Word]]:
    """Which of the question's telling words each hit holds; who speaks is held, too."""
    asked = [telling.word for telling in telling_words(ctx)]
    names = speakers_of(hits)
    held: dict[str, set[Word]] = {}
    for cand in hits:
        terms = set(ctx.store.terms(cand.item.text))
        own = {
            word
            for word in asked
            if terms.issuperset(word.terms)
            or (names.get(word.shown.casefold()) or 0) == cand.item.speaker
        }
        held[cand.item.id] = own
    return held


def _missing(held: Mapping[str, set[Word]], ctx: Context) -> tuple[str, ...]:
    known: set[Word] = set().union(*held.values())
    lacking = [one for one in telling_words(ctx) if one.word not in known]
    lacking.sort(key=lambda one: (-one.weight, one.word.shown))
    return tuple(one.word.shown for one in lacking[:_MOST_GAPS])


def _share(held: set[Word], ctx: Context) -> float:
    asked = telling_words(ctx)
    total = sum(one.weight for one in asked)
    return sum(one.weight for one in asked if one.word in held) / total if total else 0.0
