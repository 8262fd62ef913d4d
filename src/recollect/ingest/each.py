"""Stores many drafts, each for itself: what is refused is reported, the others are stored."""

from __future__ import annotations

from collections.abc import Sequence

from recollect.errors import Refused
from recollect.ingest.prepare import prepare
from recollect.ingest.remember import remember
from recollect.ingest.writing import WriteContext
from recollect.model import Draft, Remembered


def remember_each(drafts: Sequence[Draft], ctx: WriteContext) -> list[Remembered | Refused]:
    """What became of each draft, in order; a refusal stands where a draft was refused."""
    answers: list[Remembered | Refused | None] = [None] * len(drafts)
    good: list[int] = []
    for i, draft in enumerate(drafts):
        try:
            prepare(draft, ctx)
        except Refused as refused:
            answers[i] = refused
        else:
            good.append(i)
    _store(drafts, good, answers, ctx)
    return [answer for answer in answers if answer is not None]


def _store(
    drafts: Sequence[Draft],
    places: list[int],
    answers: list[Remembered | Refused | None],
    ctx: WriteContext,
) -> None:
    """Together where possible; where a key or an id is in conflict, in halves around it."""
    if not places:
        return
    try:
        found = remember([drafts[i] for i in places], ctx)
    except Refused as refused:
        if len(places) == 1:
            answers[places[0]] = refused
            return
        middle = len(places) // 2
        _store(drafts, places[:middle], answers, ctx)
        _store(drafts, places[middle:], answers, ctx)
    else:
        for i, answer in zip(places, found, strict=True):
            answers[i] = answer
