"""Further questions without a model: from the question's parts and from the best hits."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator
from datetime import timedelta

from recollect.asked import telling_words
from recollect.context import Context
from recollect.deepening.expansion import Expansion
from recollect.deepening.settings import Deep
from recollect.model import Pool
from recollect.questions import asks_order, parts
from recollect.stages.likely import names_of, speakers_named
from recollect.text import has_substance

_FEEDBACK_WORDS = 6
_LONGEST = 300
_NAME = re.compile(r"(?<=[a-z,'’] )[A-Z][\w'’-]+(?: [A-Z][\w'’-]+)*|\"[^\"]{3,60}\"")


def expand(hits: Pool, ctx: Context, deep: Deep) -> tuple[Expansion, ...]:
    """At most ``most`` of what could bring more, the most promising first.

    The parts of a question with several; the question without the name of whoever would
    be the speaker; what hits like the best would read like (pseudo-relevance feedback);
    what happened around them, where it asks about times; names the best hits give for
    what the question only describes; and the rare words that the best hits share.
    """
    best = hits[: deep.feedback]
    asked = (
        *_parts(ctx),
        *_by_speaker(hits, ctx),
        *_bridges(best, ctx),
        *_around(best, ctx, deep),
        *_like_the_best(best),
        *_shared_words(best, ctx),
    )
    chosen: dict[tuple[str, str, tuple[str, ...]], Expansion] = {}
    for one in asked:
        if has_substance(one.text) and (one.narrows or one.text != ctx.query.text):
            chosen.setdefault((one.kind, one.text, one.speakers), one)
    return tuple(chosen.values())[: deep.most]


def _parts(ctx: Context) -> Iterator[Expansion]:
    several = parts(ctx.query.text)
    if len(several) > 1:
        for part in several[:2]:
            yield Expansion("VEC", part[:_LONGEST], "a part of the question")


def _by_speaker(hits: Pool, ctx: Context) -> Iterator[Expansion]:
    """What each person whom the question names said themselves."""
    named = speakers_named(hits, ctx)
    rest = without_names(ctx.query.text, named)
    for speaker in named[:2]:
        why = f"as {speaker} would have said it"
        yield Expansion("VEC", rest[:_LONGEST], why, speakers=(speaker,))


def _bridges(best: Pool, ctx: Context) -> Iterator[Expansion]:
    """A name in the best hit that the question lacks may be what it only describes."""
    asked = {word.shown.casefold() for word in ctx.words()}
    known = {cand.item.speaker for cand in best}
    names: Counter[str] = Counter()
    for cand in best[:3]:
        for found in _NAME.findall(cand.item.text):
            name = found.strip('"')
            if not asked.intersection(name.casefold().split()) and name not in known:
                names[name] += 1
    rare = [name for name, _ in sorted(names.items(), key=lambda one: (-one[1], one[0]))][:2]
    if rare:
        yield Expansion("LEX", " ".join(rare), "named by the best hits")


def _around(best: Pool, ctx: Context, deep: Deep) -> Iterator[Expansion]:
    """What was said in the days around the best hit, where the question asks for times."""
    if not best or not asks_order(ctx.query.text):
        return
    near = timedelta(days=deep.days)
    moment = best[0].item.when
    why = f"within {deep.days:g} days of the best hit"
    yield Expansion("VEC", ctx.query.text, why, since=moment - near, until=moment + near)


def _like_the_best(best: Pool) -> Iterator[Expansion]:
    """The best hits as examples of what is looked for."""
    texts = [cand.item.text[:_LONGEST] for cand in best[:3]]
    if texts:
        yield Expansion("HYDE", " ".join(texts), "like the best hits")


def _shared_words(best: Pool, ctx: Context) -> Iterator[Expansion]:
    """Words of the best hits, by rarity and by how good those are that hold them (RM3)."""
    if not best:
        return
    asked = {term for word in ctx.words() for term in word.terms}
    shown: dict[str, str] = {}
    weight: Counter[str] = Counter()
    for cand in best:
        for word in ctx.store.words(cand.item.text):
            if not word.common and len(word.terms) == 1 and word.terms[0] not in asked:
                shown.setdefault(word.terms[0], word.shown)
                weight[word.terms[0]] += cand.score  # type: ignore[assignment]
    documents, _, counts = ctx.counted(shown)
    worth = {
        term: weight[term] * math.log(1.0 + documents / (1.0 + counts.get(term, 0)))
        for term in shown
    }
    first = sorted(worth, key=lambda term: (-worth[term], term))[:_FEEDBACK_WORDS]
    asking = [one.word.shown for one in telling_words(ctx)]
    if first:
        words = " ".join((*asking, *(shown[term] for term in first)))
        yield Expansion("LEX", words[:_LONGEST], "with rare words of the best hits")


def without_names(text: str, speakers: tuple[str, ...]) -> str:
    """The question without the names of those who speak: whoever speaks of themselves
    does not say their name, and those who say it speak to them."""
    for speaker in speakers:
        for name in sorted(names_of(speaker), key=len, reverse=True):
            text = re.sub(rf"\b{re.escape(name)}(?:['’]s)?(?!\w)", " ", text, flags=re.IGNORECASE)
    return " ".join(text.split())
