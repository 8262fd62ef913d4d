"""Stages of the abmind profile: priority fusion, fitness factors, boosts, timelines."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from datetime import datetime
from itertools import combinations, pairwise
from typing import Literal

from bethink.core.dataclass import dataclass
from bethink.core.words import jaccard, word_set
from bethink.lang.dates import DAY_S
from bethink.model import Candidate, Evidence, Item, Pool, Timeline, sort_by_score
from bethink.retrieval.context import AnswerExtras, Context, Retriever
from bethink.retrieval.query_analysis import max_bm25_score
from bethink.retrieval.stages.adjust import age_days, describe_age
from bethink.systems.abmind.retrievers import EDGE_ID_PREFIX


@dataclass(frozen=True, slots=True)
class PriorityFusion:
    """Score a memory by the first retriever of ``order`` that found it, times its weight.

    What later ones saw is kept as evidence. A name in ``order`` covers a retriever and all
    below it as one group: of "sf.porter" and "sf.trigram" the better one counts. Retrievers
    that are not named come last, by name. ``pool`` limits the result; 0 returns everything.
    """

    order: tuple[str, ...] = ()
    pool: int = 0
    name: str = "priority"

    def __call__(self, found: Mapping[Retriever, Pool], ctx: Context) -> Pool:
        items: dict[str, Item] = {}
        seen: dict[str, list[Evidence]] = {}
        best: dict[str, tuple[tuple[int, float, str], Evidence]] = {}
        for channel in sorted(found, key=lambda channel: (self._rank_of(channel), channel.name)):
            for cand in found[channel]:
                key, own = cand.item.id, cand.evidence[-1]
                value = channel.weight * max(0.0, own.value)
                share = Evidence(f"fuse.{channel.name}", "add", value, f"rank {own.rank}")
                claim = ((self._rank_of(channel), -value, channel.name), share)
                items.setdefault(key, cand.item)
                seen.setdefault(key, []).append(own.as_report())
                best[key] = min(claim, best.get(key, claim), key=lambda entry: entry[0])
        merged = sort_by_score(
            Candidate(item, best[key][1].value, (*seen[key], best[key][1]))
            for key, item in items.items()
        )
        return merged[: ctx.candidate_limit(self.pool)] if self.pool else merged

    def _rank_of(self, channel: Retriever) -> int:
        for rank, name in enumerate(self.order):
            if channel.name == name or channel.name.startswith(f"{name}."):
                return rank
        return len(self.order)


CandidateAdjuster = Callable[[Candidate], Candidate]


def found_by(cand: Candidate, channels: tuple[str, ...]) -> bool:
    """Whether one of these retrievers found the candidate."""
    return any(
        reason.by == f"channel.{name}" or reason.by.startswith(f"channel.{name}.")
        for name in channels
        for reason in cand.evidence
    )


def adjust_found(pool: Pool, channels: tuple[str, ...], judge: CandidateAdjuster) -> Pool:
    """Apply the adjuster to candidates that these retrievers found."""
    return sort_by_score(
        judge(cand) if not channels or found_by(cand, channels) else cand for cand in pool
    )


def multiply(by: str, cand: Candidate, factor: float, why: str) -> Candidate:
    """Multiply the candidate's score; a factor of 1 adds no evidence."""
    return cand if factor == 1.0 else cand.with_evidence(by, "times", factor, why)


@dataclass(frozen=True, slots=True)
class Scale:
    """Convert scores between shares of the best possible score and raw BM25, as stages need."""

    to: Literal["bm25", "share"] = "bm25"
    channels: tuple[str, ...] = ()
    name: str = "scale"

    def __call__(self, pool: Pool, ctx: Context) -> Pool:
        maximum = max_bm25_score(ctx) if pool else 0.0
        if maximum <= 0.0:
            return pool
        factor = maximum if self.to == "bm25" else 1.0 / maximum
        why = (
            f"scaled to {'BM25' if self.to == 'bm25' else 'a share of BM25'}, maximum {maximum:.2f}"
        )
        return adjust_found(
            pool, self.channels, lambda cand: multiply(self.name, cand, factor, why)
        )


@dataclass(frozen=True, slots=True)
class Emotion:
    """Add a bonus for strong emotion of either sign.

    ``weight`` × |emotion|, or × ln(1 + |emotion|) with the ``curve`` "log".
    """

    weight: float = 0.02
    curve: Literal["linear", "log"] = "linear"
    channels: tuple[str, ...] = ()
    name: str = "emotion"

    def __call__(self, pool: Pool, ctx: Context) -> Pool:
        return adjust_found(pool, self.channels, self._add_emotion)

    def _add_emotion(self, cand: Candidate) -> Candidate:
        strength = abs(cand.item.emotion)
        if not strength:
            return cand
        scaled = math.log1p(strength) if self.curve == "log" else strength
        return cand.with_evidence(
            self.name, "add", self.weight * scaled, _describe_emotion(cand.item)
        )


def _describe_emotion(item: Item) -> str:
    return f"emotion {item.emotion:+g}"


class _FactorStage:
    """A stage that multiplies scores by a factor of the memory, with the reason for it."""

    channels: tuple[str, ...]
    name: str

    def __call__(self, pool: Pool, ctx: Context) -> Pool:
        return adjust_found(
            pool,
            self.channels,
            lambda cand: multiply(self.name, cand, *self.factor_of(cand.item, ctx)),
        )

    def factor_of(self, item: Item, ctx: Context) -> tuple[float, str]:
        raise NotImplementedError


@dataclass(frozen=True, slots=True)
class Recalled(_FactorStage):
    """× (1 + ``weight`` × number of earlier recalls)."""

    weight: float = 0.1
    channels: tuple[str, ...] = ()
    name: str = "recalled"

    def factor_of(self, item: Item, ctx: Context) -> tuple[float, str]:
        times = f"{item.recalls} time{'s' if item.recalls != 1 else ''}"
        return 1.0 + self.weight * item.recalls, f"recalled {times}"


@dataclass(frozen=True, slots=True)
class Relevance(_FactorStage):
    """× (1 + ``weight``) for memories marked as relevant (`bethink boost`)."""

    weight: float = 0.2
    channels: tuple[str, ...] = ()
    name: str = "relevance"

    def factor_of(self, item: Item, ctx: Context) -> tuple[float, str]:
        factor = 1.0 + self.weight if item.relevance > 0 else 1.0
        return factor, f"marked relevant: {item.relevance:+g}"


@dataclass(frozen=True, slots=True)
class Trust(_FactorStage):
    """× (``floor`` + (1 − ``floor``) × trust / 3): from unknown to owner."""

    floor: float = 0.5
    channels: tuple[str, ...] = ()
    name: str = "trust"

    def factor_of(self, item: Item, ctx: Context) -> tuple[float, str]:
        return self.floor + (1.0 - self.floor) * item.trust / 3.0, f"trust {item.trust} of 3"


@dataclass(frozen=True, slots=True)
class Credibility(_FactorStage):
    """× ``factor`` for grade ``most`` or better, of 0 confirmed to 6 unknown."""

    factor: float = 1.25
    most: int = 2
    channels: tuple[str, ...] = ()
    name: str = "credibility"

    def factor_of(self, item: Item, ctx: Context) -> tuple[float, str]:
        grade = item.credibility
        return self.factor if grade <= self.most else 1.0, f"credibility {grade}"


@dataclass(frozen=True, slots=True)
class Tier(_FactorStage):
    """× the factor of the memory's tier; 1 for tiers that are not named."""

    factors: tuple[tuple[str, float], ...] = (("core", 1.3),)
    channels: tuple[str, ...] = ()
    name: str = "tier"

    def factor_of(self, item: Item, ctx: Context) -> tuple[float, str]:
        return dict(self.factors).get(item.tier, 1.0), f"tier {item.tier}"


@dataclass(frozen=True, slots=True)
class Fading(_FactorStage):
    """Linear decay: × max(``floor``, 1 − age / ``days``) × (1 + ``emotion`` × |emotion|).

    Memories with strong emotion fade less.
    """

    days: float = 365.0
    floor: float = 0.3
    emotion: float = 0.1
    channels: tuple[str, ...] = ()
    name: str = "fading"

    def factor_of(self, item: Item, ctx: Context) -> tuple[float, str]:
        age = age_days(item, ctx)
        boost = 1.0 + self.emotion * abs(item.emotion)
        why = describe_age(age) + (f", {_describe_emotion(item)}" if boost != 1.0 else "")
        return max(self.floor, 1.0 - age / self.days) * boost, why


GENERAL = "general"
WEEKEND_FROM = 5  # Monday is 0


def part_of_day(hour: int) -> str:
    """Part of the day: morning from 6, afternoon from 12, evening from 18, night from 23."""
    for name, start, end in (("morning", 6, 12), ("afternoon", 12, 18), ("evening", 18, 23)):
        if start <= hour < end:
            return name
    return "night"


@dataclass(frozen=True, slots=True)
class Unconfirmed:
    """× ``factor`` for candidates of the retrievers ``of`` that ``by`` did not find.

    Applies only when ``by`` ran and found anything. Compares with everything it found,
    whether others had found it before or not.
    """

    of: tuple[str, ...] = ()
    by: str = "dense"
    factor: float = 0.5
    name: str = "unconfirmed"

    def __call__(self, pool: Pool, ctx: Context) -> Pool:
        if not any(found_by(cand, (self.by,)) for cand in pool):
            return pool

        def judge(cand: Candidate) -> Candidate:
            if found_by(cand, (self.by,)):
                return cand
            return multiply(self.name, cand, self.factor, f"not confirmed by {self.by}")

        return adjust_found(pool, self.of, judge) if self.of else pool


@dataclass(frozen=True, slots=True)
class Moment:
    """Add a bonus where a memory fits the moment of the question.

    ``hour`` for the same part of the day, ``weekday`` for the same day of the week (half
    for the same kind of day), ``topic`` for the current topic. The caller gives the moment
    (``recall(context={"hour": 9, "topic": "auth"})``); missing parts default to the
    query's own hour and weekday, and no topic. Times are in UTC.
    """

    hour: float = 0.02
    weekday: float = 0.015
    topic: float = 0.03
    name: str = "moment"

    def __call__(self, pool: Pool, ctx: Context) -> Pool:
        situation = ctx.query.context
        hour = ctx.query.moment.hour if situation.hour is None else situation.hour
        weekday = ctx.query.moment.weekday() if situation.weekday is None else situation.weekday

        def judge(cand: Candidate) -> Candidate:
            when = cand.item.when
            part = part_of_day(hour)
            if self.hour and part_of_day(when.hour) == part:
                cand = cand.with_evidence(self.name, "add", self.hour, f"{part}, like now")
            cand = self._same_day(cand, when, weekday)
            topic = cand.item.topic
            if self.topic and topic and topic == situation.topic != GENERAL:
                cand = cand.with_evidence(self.name, "add", self.topic, f"topic {topic}")
            return cand

        return sort_by_score(map(judge, pool))

    def _same_day(self, cand: Candidate, when: datetime, weekday: int) -> Candidate:
        if not self.weekday:
            return cand
        if when.weekday() == weekday:
            return cand.with_evidence(self.name, "add", self.weekday, "same day of the week")
        kinds = [day >= WEEKEND_FROM for day in (when.weekday(), weekday)]
        if kinds[0] != kinds[1]:
            return cand
        kind = "weekend" if kinds[0] else "working day"
        return cand.with_evidence(self.name, "add", self.weekday / 2, f"{kind}, like now")


@dataclass(frozen=True, slots=True)
class Spacing:
    """× a factor for memories recalled repeatedly at intervals (spacing effect).

    ``long_factor`` from an average interval of ``long_days``, ``short_factor`` from
    ``short_days``. Uses the last twenty recalls; one recall has no interval.
    """

    long_days: float = 7.0
    long_factor: float = 1.3
    short_days: float = 1.0
    short_factor: float = 1.15
    name: str = "spacing"

    def __call__(self, pool: Pool, ctx: Context) -> Pool:
        usage = ctx.usage([cand.item.id for cand in pool])

        def judge(cand: Candidate) -> Candidate:
            used = usage.get(cand.item.id)
            days = mean_interval_days(used.stamps) if used else None
            if days is None or days < self.short_days:
                return cand
            factor = self.long_factor if days >= self.long_days else self.short_factor
            return multiply(self.name, cand, factor, f"recalled every {days:.1f} days")

        return sort_by_score(map(judge, pool))


def mean_interval_days(stamps: tuple[datetime, ...]) -> float | None:
    """Mean time between recalls in days; None for fewer than two."""
    if len(stamps) < 2:
        return None
    gaps = [(later - sooner).total_seconds() for sooner, later in pairwise(sorted(stamps))]
    return sum(gaps) / len(gaps) / DAY_S


_MENTION = re.compile(r"(?<!\w)@(\w[\w.-]*)")
_CAPITALISED = re.compile(r"\b[A-Z]\w+(?: [A-Z]\w+)*")


def primary_entity(item: Item) -> str | None:
    """Return the entity that a memory is mainly about.

    The first @reference of its text, else its first known entity, else its first
    capitalised words.
    """
    if mention := _MENTION.search(item.text):
        return mention[1].casefold()
    if item.entities:
        return item.entities[0].partition(":")[2]
    named = _CAPITALISED.search(item.text)
    return named[0].casefold() if named else None


@dataclass(frozen=True, slots=True)
class Timelines:
    """Group hits about one entity into timelines.

    One per topic with at least ``least`` hits; and one across topics for an entity with
    ``least_across`` hits in two topics or more.
    """

    least: int = 2
    least_across: int = 3
    name: str = "timelines"

    def __call__(self, hits: Pool, ctx: Context) -> AnswerExtras:
        by_entity: dict[str, list[Item]] = {}
        for hit in hits:
            entity = primary_entity(hit.item)
            if entity is not None and not _is_edge(hit):
                by_entity.setdefault(entity, []).append(hit.item)
        lines: list[Timeline] = []
        for entity in sorted(by_entity):
            lines += self._timelines_of(entity, by_entity[entity])
        return AnswerExtras(timelines=tuple(lines))

    def _timelines_of(self, entity: str, items: list[Item]) -> list[Timeline]:
        topics: dict[str, list[Item]] = {}
        for item in items:
            topics.setdefault(item.topic or GENERAL, []).append(item)
        lines = [
            _timeline(f"{entity} in {topic}", in_topic)
            for topic, in_topic in sorted(topics.items())
            if len(in_topic) >= self.least
        ]
        if len(topics) > 1 and len(items) >= self.least_across:
            lines.append(_timeline(f"{entity} across {', '.join(sorted(topics))}", items))
        return lines


def _is_edge(hit: Candidate) -> bool:
    """Whether a hit is an edge between entities: it repeats the memory that states it."""
    return hit.item.id.startswith(EDGE_ID_PREFIX)


def _timeline(subject: str, items: list[Item]) -> Timeline:
    ordered = sorted(items, key=lambda item: (item.when, item.id))
    emotions = [item.emotion for item in ordered]
    arc = f" (emotion {' → '.join(f'{one:+g}' for one in emotions)})" if any(emotions) else ""
    return Timeline(subject + arc, tuple(item.id for item in ordered))


@dataclass(frozen=True, slots=True)
class Interference:
    """Warn of two hits of one topic that are nearly but not quite the same.

    They share more than ``share`` of the shorter one's words: one may be an older state of
    the other.
    """

    share: float = 0.6
    shortest_word: int = 3
    name: str = "interference"

    def __call__(self, hits: Pool, ctx: Context) -> AnswerExtras:
        words = {hit.item.id: self._compared_words(hit.item.text) for hit in hits}
        warnings = [
            f"{one.id} and {other.id} have similar but different texts;"
            f" both are about {one.topic or GENERAL}"
            for one, other in combinations((hit.item for hit in hits if not _is_edge(hit)), 2)
            if (one.topic or GENERAL) == (other.topic or GENERAL)
            and one.text != other.text
            and self._share_of(words[one.id], words[other.id]) > self.share
        ]
        return AnswerExtras(warnings=tuple(warnings))

    def _compared_words(self, text: str) -> frozenset[str]:
        words = word_set(text)
        return frozenset(
            word for word in words if len(word) >= self.shortest_word or not word.isascii()
        )

    def _share_of(self, one: frozenset[str], other: frozenset[str]) -> float:
        return len(one & other) / max(1, min(len(one), len(other)))


@dataclass(frozen=True, slots=True)
class Mmr:
    """Maximal marginal relevance (Carbonell & Goldstein, SIGIR 1998).

    Each next pick maximises ``relevance`` × score − (1 − ``relevance``) × similarity to
    earlier picks, starting from the best. Only the first ``top`` are rearranged. ``scaled``
    scales similarity by the best score, for scores that do not run from 0 to 1.
    """

    relevance: float = 0.7
    top: int = 30
    scaled: bool = True
    name: str = "mmr"

    def __call__(self, pool: Pool, ctx: Context) -> Pool:
        rest = list(pool[: self.top])
        scale = pool[0].score if self.scaled and pool and pool[0].score > 0 else 1.0
        words = {cand.item.id: word_set(cand.item.text) for cand in rest}
        nearest: dict[str, tuple[float, str]] = {cand.item.id: (0.0, "") for cand in rest}
        picked: list[Candidate] = []

        def order(cand: Candidate) -> tuple[float, str]:
            penalty = (1 - self.relevance) * scale * nearest[cand.item.id][0]
            return penalty - self.relevance * cand.score, cand.item.id

        while rest:
            best = min(rest, key=order)
            rest.remove(best)
            picked.append(self._with_penalty(best, nearest[best.item.id], scale))
            for cand in rest:
                similarity = jaccard(words[cand.item.id], words[best.item.id])
                if similarity > nearest[cand.item.id][0]:
                    nearest[cand.item.id] = (similarity, best.item.id)
        tail = [self._with_penalty(cand, (0.0, ""), scale) for cand in pool[self.top :]]
        return sort_by_score([*picked, *tail])

    def _with_penalty(self, cand: Candidate, nearest: tuple[float, str], scale: float) -> Candidate:
        similarity, twin = nearest
        judged = cand.with_evidence(self.name, "times", self.relevance)
        if not similarity:
            return judged
        penalty = -(1 - self.relevance) * scale * similarity
        return judged.with_evidence(
            self.name, "add", penalty, f"{similarity:.0%} similar to", via=twin
        )
