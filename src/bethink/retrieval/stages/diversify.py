"""Diversify a pool: near-duplicates collapse, newer statements come before older ones."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import islice

from bethink.core.dataclass import dataclass
from bethink.core.named_tuple import NamedTuple
from bethink.core.words import differs_only_in_values, fold, jaccard, word_set
from bethink.lang.words import asks_for_past, negations
from bethink.model import (
    OLDER,
    PERHAPS_NEWER,
    UPDATE_LINKS,
    Candidate,
    Evidence,
    Item,
    Link,
    Pool,
    is_said_among_people,
    may_replace,
    oldest_first,
    sort_by_score,
)
from bethink.retrieval.context import Context
from bethink.retrieval.query_analysis import periods


class ComparedText(NamedTuple):
    """A memory's text prepared for comparison."""

    item: Item
    words: frozenset[str]

    def words_in_order(self, words: frozenset[str]) -> list[str]:
        """Return the given words in the order of the text."""
        return [word for word in fold(self.item.text).split() if word in words]


@dataclass(frozen=True, slots=True)
class Collapse:
    """Keep only the best of several memories that say the same.

    Two are the same when ``threshold`` of their words are shared, in the same order, by
    the same speaker and at the same moment, where both are dated, and they differ neither in
    a number nor in a negation: "kept 30 days" and "kept 90 days" are different facts.
    """

    threshold: float = 0.9
    top: int = 20
    name: str = "collapse"

    def __call__(self, pool: Pool, ctx: Context) -> Pool:
        kept: list[Candidate] = []
        texts: list[ComparedText] = []
        for cand in pool[: self.top]:
            own = ComparedText(cand.item, word_set(cand.item.text))
            twin = next(
                (number for number, other in enumerate(texts) if self._is_same(own, other)), None
            )
            if twin is None:
                kept.append(cand)
                texts.append(own)
            else:
                reason = Evidence(self.name, "seen", 1.0, "near-duplicate collapsed:", cand.item.id)
                first = kept[twin]
                kept[twin] = first._replace(evidence=(*first.evidence, reason))
        dropped = min(len(pool), self.top) - len(kept)
        if dropped:
            ctx.add_step_note(f"{dropped} near-duplicates collapsed")
        return (*kept, *pool[self.top :])

    def _is_same(self, one: ComparedText, other: ComparedText) -> bool:
        small, large = sorted((len(one.words), len(other.words)))
        if not large or small / large < self.threshold:
            return False
        if jaccard(one.words, other.words) < self.threshold:
            return False
        return _same_circumstances(one.item, other.item) and not _facts_differ(one, other)


def _same_circumstances(one: Item, other: Item) -> bool:
    if one.speaker != other.speaker:
        return False
    moments = (one.occurred_at, other.occurred_at)
    return None in moments or moments[0] == moments[1]


def _facts_differ(one: ComparedText, other: ComparedText) -> bool:
    """Whether the differing words, or their order, change the statement."""
    for word in one.words ^ other.words:
        if any(map(str.isdigit, word)) or negations().deny(word):
            return True
    shared = one.words & other.words
    return one.words_in_order(shared) != other.words_in_order(shared)


@dataclass(frozen=True, slots=True)
class NewerFirst:
    """Put a memory above an older one that it updates, and mark the older.

    A link says that one of the first ``top`` is updated by another, as the model of two memories
    judged. Its log-odds count together with ``fit`` times how far the newer one's share of the
    older one's score is above ``even``: two values of one thing fit a question about equally well.
    Something is taken off where updates are rare: of people who talk with one another
    (``among_people``), of one session, unless certain (``same_session``), and of long texts
    (``length`` for each time that their tokens grow e-fold); less is needed of what a user says
    to an assistant (``to_assistant``). Such turns among the first ``read`` that no link joins are
    judged now, at most ``pairs``: values are restated in passing, in turns that are not among the
    nearest. The older one is marked where the link is certain (``supersedes``). A question with a
    number that only the older one has asks for that one, unless a certain link joins two that
    differ in more than values. A question for what was before gets the value before the one that
    it names, or before the newest. What updates one of the first by ``perhaps`` stays where it
    is, and says so: the cut leaves it in.
    """

    top: int = 30
    read: int = 5
    pairs: int = 2
    fit: float = 12.0
    even: float = 0.75
    to_assistant: float = 0.6
    among_people: float = 3.0
    same_session: float = 5.0
    length: float = 2.0
    perhaps: float = 0.2
    name: str = "newer_first"

    def skip(self, pool: Pool, ctx: Context) -> str:
        named = () if asks_for_past(ctx.query.text) else periods(ctx)
        if named and all(period.end <= ctx.query.moment for period in named):
            return "the question names a time that has passed"
        return "" if len(pool) > 1 else "there is nothing to compare"

    def __call__(self, pool: Pool, ctx: Context) -> Pool:
        found = {cand.item.id: cand for cand in pool}
        first = [cand.item.id for cand in pool[: self.top]]
        known = ctx.links_of(first, UPDATE_LINKS, incoming=False)
        links = [
            link
            for link in (*known, *self._judge(pool, known, ctx))
            if link.src.id in found
            and link.dst.id in first
            and still_holds(found[link.src.id].item, found[link.dst.id].item)
        ]
        past, asked = asks_for_past(ctx.query.text), _asked_numbers(found, links, ctx)
        odds = {
            link: self._odds(link, found)
            for link in links
            if past or asked[link.dst.id] <= asked[link.src.id] or _is_reworded(link, found)
        }
        updates = [link for link in odds if odds[link] >= self._needed(link, found)]
        possible = [
            link
            for link in odds
            if odds[link] >= logit(self.perhaps) and _LEAST_FIT <= self._share(link, found) < 1.0
        ]
        for link in possible:
            newer, sure = found[link.src.id], link.confidence
            found[link.src.id] = newer.with_evidence(
                self.name, "seen", sure, PERHAPS_NEWER, via=link.dst.id
            )
        if not updates:
            return tuple(found.values()) if possible else pool
        if past:  # what was before is asked for: that has to fit the question as well
            both = {one: 1.0 / max(1.0, self._share(one, found)) for one in updates}
            fitting = [one for one in both if odds[one] >= self.fit * (self.even - both[one])]
            self._lift_previous(found, fitting, ctx)
        else:
            self._lift_newer(found, updates, asked)
        ctx.add_step_note(f"{len({link.dst.id for link in updates})} older than another")
        return sort_by_score(found.values())

    def _judge(self, pool: Pool, known: Sequence[Link], ctx: Context) -> Sequence[Link]:
        """Judge turns to an assistant, each with those above that it may be newer than."""
        if ctx.judge is None:
            return ()
        joined = {(link.src.id, link.dst.id) for link in known}
        # However many untrusted ones there are, they do not decide what is judged.
        first = islice((cand.item for cand in pool if cand.item.trust), self.read)
        turns = [item for item in first if _is_said_to_assistant(item)]
        pairs = [
            (newer, older)
            for place, newer in enumerate(turns)
            for older in turns[:place]
            if newer.session != older.session
            and (newer.id, older.id) not in joined
            and still_holds(newer, older)
        ]
        unlinked = ctx.store.graph.unlinked([newer.id for newer, _ in pairs])
        chosen = [pair for pair in pairs if (pair[0].id, pair[1].id) not in unlinked]
        return ctx.judge(chosen[: self.pairs]) if chosen else ()

    def _odds(self, link: Link, found: dict[str, Candidate]) -> float:
        """The log-odds that a memory updates another, whatever the question is."""
        newer, older = found[link.src.id], found[link.dst.id]
        prior = self.among_people if is_said_among_people(older.item) else 0.0
        if link.type == "updates" and newer.item.session == older.item.session is not None:
            prior += self.same_session
        tokens = newer.item.tokens + older.item.tokens
        prior += self.length * math.log(max(1.0, tokens / _SHORT_PAIR))
        return logit(link.confidence) - prior

    def _needed(self, link: Link, found: dict[str, Candidate]) -> float:
        """The log-odds from which an update counts: fewer where both fit the question equally."""
        less = self.to_assistant if _is_said_to_assistant(found[link.dst.id].item) else 0.0
        return self.fit * (self.even - self._share(link, found)) - less

    def _share(self, link: Link, found: dict[str, Candidate]) -> float:
        """How well the newer fits the question, as a share of how well the older one does."""
        newer, older = found[link.src.id].score, found[link.dst.id].score
        return newer / older if older > 0 else 1.0

    def _lift_newer(
        self, found: dict[str, Candidate], updates: Sequence[Link], asked: Mapping[str, set[str]]
    ) -> None:
        by_older: dict[str, list[Link]] = {}
        for link in updates:
            by_older.setdefault(link.dst.id, []).append(link)
        order = _oldest_first(updates, found)
        # The oldest first, so that of three statements each comes above the one before it.
        for older in sorted(by_older, key=order.index):
            newer = sorted(
                by_older[older],
                key=lambda link: (len(asked[link.src.id]), order.index(link.src.id)),
            )
            level = found[older].score
            for link in newer:
                is_above = found[link.src.id].score > level
                self._lift(link.src.id, older, level, found)
                # One that is above anyway may be about something else: others may stay below it.
                if not is_above or link.confidence >= _PROBABLE:
                    level = found[link.src.id].score
            marking = [link.src.id for link in newer if link.type == "supersedes"]
            if marking:
                mark = Evidence(self.name, "seen", 1.0, OLDER, marking[-1])
                marked = found[older]
                found[older] = marked._replace(evidence=(*marked.evidence, mark))

    def _lift(self, lifted: str, above: str, level: float, found: dict[str, Candidate]) -> None:
        cand = found[lifted]
        if cand.score <= level:
            why = "newer, on the same thing, than"
            lift = level + _LIFT - cand.score
            found[lifted] = cand.with_evidence(self.name, "add", lift, why, via=above)

    def _lift_previous(
        self, found: dict[str, Candidate], updates: Sequence[Link], ctx: Context
    ) -> None:
        """Put the value before the one that the question names above all of its values."""
        values = _joined_by(updates, max(found.values(), key=lambda cand: cand.score).item.id)
        chain = [found[one] for one in _oldest_first(updates, found) if one in values]
        if len(chain) < 2:
            return
        words = [set(ctx.store.search.terms(cand.item.text)) for cand in chain]
        asked = {term for word in ctx.words() if not word.common for term in word.terms}
        named = [
            (len(asked & own.difference(*words[:place], *words[place + 1 :])), place)
            for place, own in enumerate(words)
        ]
        at = max(named[1:])[1] - 1
        before, level = chain[at], max(cand.score for cand in chain)
        if before.score < level:
            lift, why = level + _LIFT - before.score, "the value before"
            after = chain[at + 1].item.id
            found[before.item.id] = before.with_evidence(self.name, "add", lift, why, via=after)


def _is_said_to_assistant(item: Item) -> bool:
    return item.session is not None and not is_said_among_people(item)


def still_holds(newer: Item, older: Item) -> bool:
    """Whether a link may count: who speaks and how trusted may have changed since it was made.

    Words that were changed are as new as the change.
    """
    return may_replace(newer._replace(stored_at=newer.live_from or newer.stored_at), older)


def _asked_numbers(
    found: dict[str, Candidate], updates: Sequence[Link], ctx: Context
) -> dict[str, set[str]]:
    """The numbers of the question that each has: releases, rooms and tickets read alike."""
    terms = ctx.store.search.terms
    asked = {term for term in terms(ctx.query.text) if any(map(str.isdigit, term))}
    ends = {end for link in updates for end in (link.src.id, link.dst.id)}
    return {end: asked and asked.intersection(terms(found[end].item.text)) for end in ends}


def _is_reworded(link: Link, found: dict[str, Candidate]) -> bool:
    """Whether a certain link joins two that differ in more than a value."""
    one, other = found[link.src.id].item.text, found[link.dst.id].item.text
    return link.type == "supersedes" and not differs_only_in_values(one, other)


def _oldest_first(updates: Sequence[Link], found: dict[str, Candidate]) -> list[str]:
    """The memories that links join, each after those that it updates."""
    ends = {end for link in updates for end in (link.src.id, link.dst.id)}
    left = [item.id for item in oldest_first(found[end].item for end in ends)]
    order: list[str] = []
    while left:
        waiting = {link.src.id for link in updates if link.dst.id in left}
        # None is free where links that callers made go round in a circle.
        order.append(next((one for one in left if one not in waiting), left[0]))
        left.remove(order[-1])
    return order


def _joined_by(updates: Sequence[Link], start: str) -> set[str]:
    """The memories that links join, directly or through others, with one of them."""
    joined, size = {start}, 0
    while len(joined) > size:
        size = len(joined)
        for link in updates:
            if link.src.id in joined or link.dst.id in joined:
                joined |= {link.src.id, link.dst.id}
    return joined


def logit(probability: float) -> float:
    """Return the log-odds of a probability, bounded at certainty."""
    bounded = min(1.0 - 1e-9, max(1e-9, probability))
    return math.log(bounded / (1.0 - bounded))


# Two statements of one thing each have about this many tokens together.
_SHORT_PAIR = 40
# From this probability on an update has to be below those that are newer still.
_PROBABLE = 0.7
# What fits the question less is about something else than the older one.
_LEAST_FIT = 0.25
# How far above the older one: less than any difference of scores that means something.
_LIFT = 1e-6


@dataclass(frozen=True, slots=True)
class FillUp:
    """Let memories of one ``level`` only fill places that no other memory takes.

    At most ``most`` of them: insights say again what memories say, never in their place.
    """

    level: str = "insight"
    most: int = 2
    name: str = "fill_up"

    def __call__(self, pool: Pool, ctx: Context) -> Pool:
        others = sum(cand.item.level != self.level for cand in pool)
        room = len(pool) if self._is_requested(ctx) else min(self.most, ctx.query.k - others)
        kept = []
        for cand in pool:
            room -= cand.item.level == self.level
            if cand.item.level != self.level or room >= 0:
                kept.append(cand)
        if len(kept) < len(pool):
            ctx.add_step_note(f"{len(pool) - len(kept)} of level {self.level} have no place")
        return tuple(kept)

    def _is_requested(self, ctx: Context) -> bool:
        """Whether the caller asks for this level, by a filter or by a number of its own."""
        query = ctx.query
        return self.level in query.filters.levels or self.level in dict(query.most)
