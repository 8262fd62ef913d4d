"""Small leanings towards memories that could be the answer to such a question."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

from recollect.asked import (
    asks_only_when,
    gives,
    kinds_asked,
    looks_ahead,
    nearness,
    periods,
    wanted,
)
from recollect.context import Context
from recollect.model import Candidate, Pool, best_first
from recollect.questions import asks_for_several
from recollect.text import ROLES


@dataclass(frozen=True, slots=True)
class AnswerKind:
    """A question that asks when, how many or who leans to memories with a time, a
    number or a name, one that asks what was decided to decisions: firmly (``kind``) where
    it names nothing else but a time. A memory that is itself a question loses
    (``asking``)."""

    weight: float = 0.125
    kind: float = 1.0
    asking: float = -0.05
    top: int = 30
    name: str = "answer_kind"

    def __call__(self, pool: Pool, ctx: Context) -> Pool:
        kinds, sorts = wanted(ctx.query.text), kinds_asked(ctx.query.text)
        alone = bool(sorts) and asks_only_when(ctx) and not looks_ahead(ctx)
        firmly, top = (self.kind, len(pool)) if alone else (self.weight, self.top)

        def lean(cand: Candidate) -> Candidate:
            kind = gives(cand.item.text, kinds)
            if kind is not None:
                cand = cand.because(self.name, "add", self.weight, f"tells {kind}")
            if cand.item.kind in sorts:
                cand = cand.because(self.name, "add", firmly, f"asked for: {cand.item.kind}")
            if cand.item.text.rstrip().endswith("?"):
                cand = cand.because(self.name, "add", self.asking, "asks rather than tells")
            return cand

        return best_first([*map(lean, pool[:top]), *pool[top:]])


@dataclass(frozen=True, slots=True)
class Speaker:
    """What a person said counts more when the question names that person first, or at all
    (``every``); with ``several`` only where it asks for more than one thing.

    Where it names nobody, "I" and "we" are the user of a chat, "you" the assistant.
    """

    weight: float = 0.1
    every: bool = False
    several: bool = False
    name: str = "speaker"

    def skip(self, pool: Pool, ctx: Context) -> str:
        if self.several and not asks_for_several(ctx.query.text):
            return "the question asks for one thing"
        return ""

    def __call__(self, pool: Pool, ctx: Context) -> Pool:
        meant = speakers_named(pool, ctx)[: None if self.every else 1]
        if not meant and (side := _side(ctx.query.text)):
            meant = (side,)
        if not meant:
            return pool
        folded = {name.casefold() for name in meant}
        return best_first(
            cand.because(self.name, "add", self.weight, f"said by {cand.item.speaker}")
            if cand.item.speaker and cand.item.speaker.casefold() in folded
            else cand
            for cand in pool
        )


def speakers_of(pool: Pool) -> dict[str, str]:
    """Who spoke, by each name a question may call them."""
    return {
        name: cand.item.speaker
        for cand in pool
        if cand.item.speaker
        for name in names_of(cand.item.speaker)
    }


def speakers_named(pool: Pool, ctx: Context) -> tuple[str, ...]:
    """Those of the speakers that the question names, in its order."""
    speakers = speakers_of(pool)
    asked = (word.shown.casefold() for word in ctx.words())
    return tuple(dict.fromkeys(speakers[word] for word in asked if word in speakers))


def names_of(speaker: str) -> set[str]:
    """A whole name and a first name; what chat programs call the two sides is none."""
    folded = speaker.casefold()
    return set() if folded in ROLES else {folded, folded.split()[0]}


def _side(question: str) -> str | None:
    """Which side of a chat a question without a name speaks of."""
    if _YOU.search(question):
        return "assistant"
    return "user" if _ME.search(question) else None


_YOU = re.compile(r"(?<!can )(?<!could )(?<!would )(?<!will )\byou\b", re.IGNORECASE)
_ME = re.compile(r"\b(?:I|me|my|mine|we|our|us)\b")


@dataclass(frozen=True, slots=True)
class Period:
    """A question that names a time leans to what happened then, or was told soon after.

    A wrong guess is harmless: it is a leaning, not a filter.
    """

    weight: float = 0.3
    before_days: float = 3.0
    after_days: float = 7.0
    name: str = "period"

    def __call__(self, pool: Pool, ctx: Context) -> Pool:
        named = periods(ctx)
        if not named:
            return pool
        for when in named:
            ctx.remark(when.shown())

        def lean(cand: Candidate) -> Candidate:
            near = max(
                nearness(cand.item, when, before_days=self.before_days, after_days=self.after_days)
                * when.confidence
                for when in named
            )
            if near < 0.01:
                return cand
            return cand.because(self.name, "add", self.weight * near, f"{near:.0%} in that time")

        return best_first(lean(cand) for cand in pool)


@dataclass(frozen=True, slots=True)
class Length:
    """Long memories hold many words by chance: − weight × ln(tokens / ``tokens``)."""

    weight: float = 0.075
    tokens: int = 100
    name: str = "length"

    def __call__(self, pool: Pool, ctx: Context) -> Pool:
        def lean(cand: Candidate) -> Candidate:
            over = cand.item.tokens / self.tokens
            if over <= 1:
                return cand
            why = f"{cand.item.tokens} tokens long"
            return cand.because(self.name, "add", -self.weight * math.log(over), why)

        return best_first(lean(cand) for cand in pool)
