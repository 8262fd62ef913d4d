"""Diversify a pool: near-duplicates collapse, newer statements come before older ones."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from bethink.core.dataclass import dataclass
from bethink.core.named_tuple import NamedTuple
from bethink.core.sentences import sentences
from bethink.core.words import differs_only_in_values, fold, word_overlap, word_set
from bethink.lang.words import announces_change, negations, past_words
from bethink.model import (
    OLDER,
    Candidate,
    Evidence,
    Item,
    Pool,
    may_replace,
    sort_by_score,
    written_order,
)
from bethink.ports import UsualSimilarity, unrelated_similarity
from bethink.retrieval.context import Context
from bethink.retrieval.query_analysis import periods
from bethink.retrieval.stages.late_interaction import similarity_features

if TYPE_CHECKING:
    from bethink.ports import Matrix


def jaccard(one: frozenset[str], other: frozenset[str]) -> float:
    """Jaccard similarity; 0 for two empty sets."""
    union = len(one | other)
    return len(one & other) / union if union else 0.0


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
    """Put a newer statement directly above an older one of the same thing, and mark the older.

    Two of the first ``top`` are about the same thing where both reach ``near`` of the best
    score, neither has more than ``rivals`` closer ones among those that do, their similarity is
    ``distinct`` standard deviations above the usual in the pool (``distinct_turns`` for turns
    of conversations), and they share ``shared`` of the shorter one's words by idf. The newer
    one must say that something changed, or have ``same_words`` of their words in common and
    differ in one number or name only. A less trusted memory never comes before a more trusted
    one, nor one speaker's word before another's.
    """

    top: int = 20
    rivals: int = 1
    distinct: float = 2.2
    distinct_turns: float = 2.6
    near: float = 0.55
    shared: float = 0.18
    same_words: float = 0.45
    longest: int = 80
    name: str = "newer_first"

    def skip(self, pool: Pool, ctx: Context) -> str:
        named = periods(ctx)
        if named and all(period.end <= ctx.query.moment for period in named):
            return "the question names a time that has passed"
        if past_words().found_in(ctx.query.text):
            return "the question asks how it was before"
        return "" if len(pool) > 1 else "there is nothing to compare"

    def __call__(self, pool: Pool, ctx: Context) -> Pool:
        pairs = self._find_pairs(pool, ctx)
        if not pairs:
            return pool
        found = {cand.item.id: cand for cand in pool}
        replaced = {pair.older.id: pair.older for pair in pairs}
        # The oldest first, so that of three statements each comes above the one before it.
        for older in sorted(replaced.values(), key=written_order):
            newer = [pair.newer for pair in pairs if pair.older.id == older.id]
            _lift_above(older, sorted(newer, key=written_order), found, self.name)
        ctx.add_step_note(f"{len(replaced)} older than another on the same thing")
        return sort_by_score(found.values())

    def _find_pairs(self, pool: Pool, ctx: Context) -> list[StatementPair]:
        known = similarity_features(pool[: self.top], ctx)
        best = [
            cand
            for cand in pool[: self.top]
            if known.row(cand.item.id) and cand.item.tokens <= self.longest
        ]
        close = [
            pair for pair in self._close_pairs(best, ctx) if may_replace(pair.newer, pair.older)
        ]
        return [pair for pair in close if self._is_restated(pair, ctx)]

    def _close_pairs(self, best: Sequence[Candidate], ctx: Context) -> Iterator[StatementPair]:
        """Yield the pairs that stand out by their similarity, newer one first."""
        if len(best) < 2:
            return
        import numpy as np  # start-up time: an answer of one memory does not need it

        known = similarity_features((), ctx)
        vectors = np.stack(known.vectors_of(cand.item.id for cand in best))
        likeness = vectors @ vectors.T
        floor = self.near * best[0].score
        near = np.flatnonzero([cand.score >= floor for cand in best])
        usual = _usual_similarity(likeness, ctx)
        said = np.array([cand.item.session is not None for cand in best])
        least = np.where(
            said & said[:, np.newaxis],
            np.float32(usual.threshold(self.distinct_turns)),
            np.float32(usual.threshold(self.distinct)),
        )
        for one, other in np.argwhere(np.triu(likeness >= least, 1)).tolist():
            if best[other].score < floor:
                continue
            # Each is the nearest of the other but for itself and the rivals.
            closer = (likeness[[one, other]][:, near] > likeness[one, other]).sum(axis=1) - 1
            if closer.max() <= self.rivals:
                items = sorted((best[one].item, best[other].item), key=written_order)
                yield StatementPair(items[1], items[0])

    def _is_restated(self, pair: StatementPair, ctx: Context) -> bool:
        newer, older = pair.newer.text, pair.older.text
        # Cheap to tell of most pairs, and needed by either way to be one.
        only_values = differs_only_in_values(newer, older)
        if not only_values and not announces_change(newer, older):
            return False
        now, then = (frozenset(ctx.store.search.terms(text)) for text in (newer, older))
        documents, _, held = ctx.term_statistics(now | then)
        overlap = word_overlap(now, then, documents, held)
        if overlap.of_shorter < self.shared:
            return False
        about = (
            sentence
            for sentence in sentences(newer)
            if not overlap.telling.isdisjoint(ctx.store.search.terms(sentence))
        )
        if announces_change(" ".join(about), older):
            return True
        return only_values and overlap.of_all >= self.same_words


class StatementPair(NamedTuple):
    """Two memories that speak of the same thing."""

    newer: Item
    older: Item


# Fewer pairs than ten memories have say little of what is usual.
_MIN_PAIRS = 45


def _usual_similarity(likeness: Matrix, ctx: Context) -> UsualSimilarity:
    """Return how similar memories of a pool usually are, from their pairwise similarities."""
    size = len(likeness)
    return UsualSimilarity.measure(
        (float(likeness.sum()) - float(likeness.trace())) / 2,
        (float((likeness**2).sum()) - float((likeness.diagonal() ** 2).sum())) / 2,
        size * (size - 1) // 2,
        least=_MIN_PAIRS,
        unrelated=unrelated_similarity(ctx.embedder),
    )


# How far above the older one: less than any difference of scores that means something.
_LIFT = 1e-6


def _lift_above(older: Item, newer: Sequence[Item], found: dict[str, Candidate], name: str) -> None:
    """Lift the newer ones above the older one, the newest highest, and mark the older."""
    level = found[older.id].score
    for item in newer:
        cand = found[item.id]
        why = "newer, on the same thing, than"
        if cand.score <= level:
            lift = level + _LIFT - cand.score
            found[item.id] = cand.with_evidence(name, "add", lift, why, via=older.id)
        level = found[item.id].score
    mark = Evidence(name, "seen", 1.0, OLDER, newer[-1].id)
    marked = found[older.id]
    found[older.id] = marked._replace(evidence=(*marked.evidence, mark))


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
