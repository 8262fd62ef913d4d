"""One more question to ask, of which kind, and the channel that asks it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Literal, NamedTuple

from recollect.channels import WAYS
from recollect.context import Channel, Context
from recollect.deepening.settings import Deep
from recollect.model import Candidate, Filters, Pool
from recollect.text import shorten

Kind = Literal["LEX", "VEC", "HYDE"]
_WAY = {"LEX": "words", "VEC": "meaning", "HYDE": "meaning"}
_SHOWN = 80


class Expansion(NamedTuple):
    """A further search: LEX by words, VEC by meaning, HYDE by the likeness of a memory.

    ``speakers``, ``since`` and ``until`` narrow it further than the question's filters.
    """

    kind: Kind
    text: str
    why: str
    speakers: tuple[str, ...] = ()
    since: datetime | None = None
    until: datetime | None = None

    @property
    def narrows(self) -> bool:
        """Whether it looks at less than the question does."""
        return bool(self.speakers or self.since or self.until)

    def shown(self) -> str:
        """What the trace tells about it."""
        text = shorten(" ".join(self.text.split()), _SHOWN)
        return f'{self.kind} "{text}" ({self.why})'


@dataclass(frozen=True, slots=True)
class Also:
    """Asks a channel another question than the caller's; filters are never widened."""

    asked: Expansion
    by: Channel
    weight: float
    name: str

    def __call__(self, ctx: Context) -> Pool:
        filters = _narrowed(ctx.query.filters, self.asked)
        if filters is None:
            ctx.remark("the question's own filters leave nothing of it")
            return ()
        ctx.remark(self.asked.shown())
        query = replace(ctx.query, text=self.asked.text, filters=filters)
        # Words and vector of another question: nothing that is known of the first holds.
        pool = self.by(replace(ctx, query=query, _once={}))
        return tuple(_renamed(cand, f"channel.{self.name}") for cand in pool)


def channels_for(
    expansions: Sequence[Expansion], channels: Sequence[Channel], deep: Deep
) -> tuple[Channel, ...]:
    """A channel for every expansion and every one that can answer its kind."""
    made: list[Channel] = []
    for number, asked in enumerate(expansions, start=1):
        able = [channel for channel in channels if _fits(channel, asked.kind, deep)]
        for channel in able:
            tail = f".{channel.name}" if len(able) > 1 else ""
            name = f"{asked.kind.lower()}.{number}{tail}"
            made.append(Also(asked, channel, channel.weight * deep.share, name))
    return tuple(made)


def _fits(channel: Channel, kind: Kind, deep: Deep) -> bool:
    named = deep.lex if kind == "LEX" else deep.vec
    if named:
        return channel.name in named
    return WAYS.get(type(channel).__name__, "") == _WAY[kind]


def _narrowed(filters: Filters, asked: Expansion) -> Filters | None:
    """The filters and the expansion's own; None where no memory could pass both."""
    speakers = asked.speakers
    if filters.speakers and speakers:
        speakers = tuple(one for one in speakers if one in filters.speakers)
        if not speakers:
            return None
    since = max(filter(None, (filters.since, asked.since)), default=None)
    until = min(filter(None, (filters.until, asked.until)), default=None)
    if since is not None and until is not None and since >= until:
        return None
    return replace(filters, speakers=speakers or filters.speakers, since=since, until=until)


def _renamed(cand: Candidate, by: str) -> Candidate:
    last = cand.evidence[-1]._replace(by=by)
    return cand._replace(evidence=(*cand.evidence[:-1], last))
