"""Adjust scores by importance, the caller's boost and the expected answer type."""

from __future__ import annotations

import math
import re
from typing import SupportsFloat

from bethink.core.dataclass import dataclass
from bethink.core.lazy import lazy_pattern
from bethink.core.speakers import ROLES
from bethink.lang.dates import DAY_S
from bethink.model import Candidate, Item, Pool, sort_by_score
from bethink.model.anchor import CodeState
from bethink.model.evidence import ANCHOR_EVIDENCE
from bethink.model.item import MAX_RELEVANCE, RULE_KINDS
from bethink.retrieval.context import Boost, Context
from bethink.retrieval.query_analysis import (
    answer_type_of,
    asked_numbers,
    asks_about_future,
    asks_only_for_time,
    expected_answer_types,
    expects_several_answers,
    periods,
    requested_kinds,
    time_proximity,
)

# Memories whose reasons outlive the code.
_LASTING_KINDS = frozenset(("decision", *RULE_KINDS, "caveat", "preference"))
_LASTING_LAYERS = frozenset(("caveat", "goal"))
_BY_GRAVITY = ("gone", "changed", "moved", "same", "unknown")


def age_days(item: Item, ctx: Context) -> float:
    """Age in days by when it happened; 0 for something dated in the future."""
    return max(0.0, (ctx.query.moment - item.when).total_seconds() / DAY_S)


def describe_age(days: float) -> str:
    """Format an age as people say it."""
    if days < 1:
        return "less than a day old"
    unit, size = ("day", 1.0) if days < 60 else ("month", 30.4) if days < 730 else ("year", 365.25)
    count = round(days / size)
    return f"{count} {unit}{'s' if count != 1 else ''} old"


def _sorted_if_changed(candidates: list[Candidate], pool: Pool) -> Pool:
    """The candidates sorted by score; the pool itself where each is what it was."""
    unchanged = all(one is other for one, other in zip(candidates, pool, strict=True))
    return pool if unchanged else sort_by_score(candidates)


@dataclass(frozen=True, slots=True)
class Importance:
    """Boost important memories and penalise unimportant ones; 0.5 is neutral.

    Each step by which `bethink boost` marked one as relevant adds ``marked``, demote takes it.
    """

    strength: float = 0.1
    marked: float = 0.0
    name: str = "importance"

    def __call__(self, pool: Pool, ctx: Context) -> Pool:
        def weigh(cand: Candidate) -> Candidate:
            item = cand.item
            importance = 1.0 if item.pinned else item.importance
            steps = max(-MAX_RELEVANCE, min(MAX_RELEVANCE, item.relevance if self.marked else 0.0))
            if importance == 0.5 and not steps:
                return cand
            factor = 1.0 + self.strength * (2 * importance - 1) + self.marked * steps
            why = "pinned" if item.pinned else f"importance {importance:.2f}"
            why += f", marked relevant {steps:+g}" if steps else ""
            return cand.with_evidence(self.name, "times", factor, why)

        return _sorted_if_changed([weigh(cand) for cand in pool], pool)


@dataclass(frozen=True, slots=True)
class CodeChanged:
    """Weigh down memories whose code changed since (``changed``) or is ``gone``.

    What has moved is only told, and so is any change of a memory that outlives the code: a
    decision or a caveat; or of a whole file that was not named as an anchor.
    """

    changed: float = 0.85
    gone: float = 0.7
    top: int = 12
    name: str = ANCHOR_EVIDENCE

    def skip(self, pool: Pool, ctx: Context) -> str:
        """Why the code is not looked at."""
        if ctx.project is None or ctx.query.as_of is not None:
            return "not in a project" if ctx.project is None else "asked of the past"
        return "" if any(cand.item.anchors for cand in pool) else "none is tied to code"

    def __call__(self, pool: Pool, ctx: Context) -> Pool:
        # Start-up time: few are tied to code.
        from bethink.code.anchors import RECALL_LIMIT_S, states_of

        anchored = [cand.item for cand in pool if cand.item.anchors][: self.top]
        states = states_of(anchored, ctx.project, RECALL_LIMIT_S)

        def weigh(cand: Candidate) -> Candidate:
            own = states.get(cand.item.id, ())
            found = min(own, key=lambda state: _BY_GRAVITY.index(state.change), default=None)
            if found is None or found.change in ("same", "unknown"):
                return cand
            factor, why = self._factor(cand.item, found), found.describe(cand.item.stored_at)
            return cand.with_evidence(self.name, "seen" if factor == 1 else "times", factor, why)

        return _sorted_if_changed([weigh(cand) for cand in pool], pool)

    def _factor(self, item: Item, state: CodeState) -> float:
        named = state.anchor.symbol or state.anchor.how == "given" or state.change == "gone"
        if not named or item.kind in _LASTING_KINDS or item.layer in _LASTING_LAYERS:
            return 1.0
        return {"changed": self.changed, "gone": self.gone}.get(state.change, 1.0)


@dataclass(frozen=True, slots=True)
class CallerBoost:
    """Multiply by the caller's own function: a factor, or a factor and its reason.

    A value that is not a usable number changes nothing.
    """

    name: str = "boost"

    def __call__(self, pool: Pool, ctx: Context) -> Pool:
        boost = ctx.boost
        if boost is None:
            return pool
        return sort_by_score(_apply_boost(cand, boost, self.name) for cand in pool)


def _apply_boost(cand: Candidate, boost: Boost, name: str) -> Candidate:
    result = boost(cand.item)
    given = result if isinstance(result, tuple) else (result, "boosted by the caller")
    factor, why = given if len(given) == 2 else (math.nan, "")
    if not isinstance(factor, SupportsFloat) or not 0 <= float(factor) < math.inf:
        return cand.with_evidence(
            name, "times", 1.0, "the caller's boost is not a number from 0 up; ignored"
        )
    return cand if factor == 1.0 else cand.with_evidence(name, "times", float(factor), str(why))


@dataclass(frozen=True, slots=True)
class AnswerTypeBoost:
    """Boost memories that could be the expected answer type.

    A question for when, how many or who favours memories with a time, a number or a name;
    one for what was decided favours decisions, strongly (``kind``) where it names nothing
    else but a time. A memory that is itself a question is penalised (``asking``).
    """

    weight: float = 0.125
    kind: float = 1.0
    asking: float = -0.05
    top: int = 30
    name: str = "answer_kind"

    def __call__(self, pool: Pool, ctx: Context) -> Pool:
        kinds, requested = expected_answer_types(ctx.query.text), requested_kinds(ctx.query.text)
        only_kind = bool(requested) and asks_only_for_time(ctx) and not asks_about_future(ctx)
        kind_weight, top = (self.kind, len(pool)) if only_kind else (self.weight, self.top)

        def adjust(cand: Candidate) -> Candidate:
            kind = answer_type_of(cand.item.text, kinds)
            if kind is not None:
                cand = cand.with_evidence(self.name, "add", self.weight, f"states {kind}")
            if cand.item.kind in requested:
                cand = cand.with_evidence(
                    self.name, "add", kind_weight, f"requested kind: {cand.item.kind}"
                )
            if cand.item.text.rstrip().endswith("?"):
                cand = cand.with_evidence(self.name, "add", self.asking, "is a question")
            return cand

        return sort_by_score([*map(adjust, pool[:top]), *pool[top:]])


@dataclass(frozen=True, slots=True)
class NumberBoost:
    """Boost what holds a number that the question names: a ticket, a release, a room.

    To a model of meaning 882 and 883 are nearly the same. A number that all hold, or none,
    tells nothing; what holds a part of several gets as much of the weight.
    """

    weight: float = 0.15
    name: str = "numbers"

    def skip(self, pool: Pool, ctx: Context) -> str:
        return "" if asked_numbers(ctx) else "the question names no number"

    def __call__(self, pool: Pool, ctx: Context) -> Pool:
        asked, terms = asked_numbers(ctx), ctx.store.search.terms
        held = [asked.intersection(terms(cand.item.text)) for cand in pool]
        telling = frozenset().union(*held).difference(asked.intersection(*held))

        def weigh(cand: Candidate, own: frozenset[str]) -> Candidate:
            shown = sorted(own & telling)
            if not shown:
                return cand
            value = self.weight * len(shown) / len(telling)
            return cand.with_evidence(self.name, "add", value, f"has {', '.join(shown)}")

        return _sorted_if_changed([*map(weigh, pool, held)], pool)


@dataclass(frozen=True, slots=True)
class SpeakerBoost:
    """Boost what a person said when the question names that person first.

    With ``every``, wherever it names them; with ``several``, only where it asks for more
    than one thing. Where it names nobody, "I" and "we" are the user of a chat, "you" the
    assistant; a summary is of what both said.
    """

    weight: float = 0.1
    every: bool = False
    several: bool = False
    name: str = "speaker"

    def skip(self, pool: Pool, ctx: Context) -> str:
        if self.several and not expects_several_answers(ctx.query.text):
            return "the question asks for one thing"
        return ""

    def __call__(self, pool: Pool, ctx: Context) -> Pool:
        speakers = speakers_named(pool, ctx)[: None if self.every else 1]
        folded = {name.casefold() for name in speakers or (_chat_role(ctx.query.text),) if name}
        if not folded:
            return pool
        return sort_by_score(
            cand.with_evidence(self.name, "add", self.weight, f"said by {cand.item.speaker}")
            if cand.item.speaker and cand.item.speaker.casefold() in folded
            else cand
            for cand in pool
        )


def speakers_of(pool: Pool) -> dict[str, str]:
    """Map each name that a question may use to the speaker."""
    return {
        name: cand.item.speaker
        for cand in pool
        if cand.item.speaker
        for name in names_of(cand.item.speaker)
    }


def speakers_named(pool: Pool, ctx: Context) -> tuple[str, ...]:
    """Return the speakers that the question names, in its order."""
    speakers = speakers_of(pool)
    question_words = (word.shown.casefold() for word in ctx.words())
    return tuple(dict.fromkeys(speakers[word] for word in question_words if word in speakers))


def names_of(speaker: str) -> set[str]:
    """Return the full and first name; empty for role names of chat programs."""
    folded = speaker.casefold()
    return set() if folded in ROLES else {folded, folded.split()[0]}


def _chat_role(question: str) -> str | None:
    """Return the chat role that a question without a name refers to."""
    roles = ((_SUMMARY, None), (_SECOND_PERSON, "assistant"), (_FIRST_PERSON, "user"))
    return next((role for pattern, role in roles if pattern.search(question)), None)


_SUMMARY = lazy_pattern(r"\b(?:summar|recap\b|overview|zusammenfass|résum)", re.IGNORECASE)
_SECOND_PERSON = lazy_pattern(r"(?<!can )(?<!could )(?<!would )(?<!will )\byou\b", re.IGNORECASE)
_FIRST_PERSON = lazy_pattern(r"\b(?:I|me|my|mine|we|our|us)\b")


@dataclass(frozen=True, slots=True)
class PeriodBoost:
    """Boost memories of the time a question names, or stored soon after it.

    A wrong guess is harmless: it is a boost, not a filter.
    """

    weight: float = 0.3
    before_days: float = 3.0
    after_days: float = 7.0
    name: str = "period"

    def __call__(self, pool: Pool, ctx: Context) -> Pool:
        named = periods(ctx)
        if not named:
            return pool
        for period in named:
            ctx.add_step_note(period.describe())

        def adjust(cand: Candidate) -> Candidate:
            proximity = max(
                time_proximity(
                    cand.item, period, before_days=self.before_days, after_days=self.after_days
                )
                * period.confidence
                for period in named
            )
            if proximity < 0.01:
                return cand
            return cand.with_evidence(
                self.name, "add", self.weight * proximity, f"{proximity:.0%} within the named time"
            )

        return sort_by_score(adjust(cand) for cand in pool)


@dataclass(frozen=True, slots=True)
class LengthPenalty:
    """Penalise long memories, which are near by chance: − weight × ln(tokens / ``tokens``).

    The best of many passages is nearer than the only one. Skipped without an embedder, as word
    scores already count the length, and for a summary, which is of what was told at length.
    """

    weight: float = 0.075
    tokens: int = 100
    name: str = "length"

    def skip(self, pool: Pool, ctx: Context) -> str:
        if ctx.embedder is None:
            return "word scores count the length"
        return "a summary is asked for" if _SUMMARY.search(ctx.query.text) else ""

    def __call__(self, pool: Pool, ctx: Context) -> Pool:
        def adjust(cand: Candidate) -> Candidate:
            ratio = cand.item.tokens / self.tokens
            if ratio <= 1:
                return cand
            why = f"{cand.item.tokens} tokens long"
            return cand.with_evidence(self.name, "add", -self.weight * math.log(ratio), why)

        return _sorted_if_changed([adjust(cand) for cand in pool], pool)
