"""Exact BM25 over a memory's index words: the same score on every backend.

Robertson and Zaragoza, "The Probabilistic Relevance Framework" (2009), with the idf
that is never negative, ln(1 + (N - n + 0.5) / (n + 0.5)). Two columns: a word in
``about`` counts ``about_weight`` times. A name written in full earns the idf of its
parts once more, so that ``parse_config`` outranks a scattered parse and config; written
as one word it counts as its parts.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from bethink.core.dataclass import dataclass
from bethink.core.named_tuple import NamedTuple
from bethink.core.words import bm25_idf
from bethink.ports import TextSearch, WordStatistics

WINDOW_TERMS = 120  # index words of a long memory that are scored together
_WINDOW_STEP = 20


class QueryTerm(NamedTuple):
    """A word or name of a query, in index terms.

    ``terms`` are what the index makes of ``words``; they are adjacent where the name is
    written in full. ``joined`` is the index term of the name written as one word, "" when
    there is none.
    """

    shown: str
    words: tuple[str, ...]
    terms: tuple[str, ...]
    joined: str = ""

    @property
    def is_name(self) -> bool:
        """Whether it has more than one term to match."""
        return len(self.terms) > 1 or bool(self.joined)


class DocumentScore(NamedTuple):
    """A memory's score, the weighted count of each query term, the names held in full."""

    score: float
    frequencies: Mapping[str, float]
    names: tuple[QueryTerm, ...]


@dataclass(frozen=True, slots=True)
class WeightedQuery:
    """A query weighted by the rarity of its terms, ready to score memories."""

    terms: tuple[QueryTerm, ...]
    names: tuple[QueryTerm, ...]
    weights: Mapping[str, float]
    average_length: float
    k1: float
    b: float
    about_weight: float

    @property
    def ceiling(self) -> float:
        """The highest score any memory could reach."""
        words = {term for unit in self.terms for term in unit.terms}
        return (self.k1 + 1.0) * math.fsum(self.weights[term] for term in words) + math.fsum(
            map(self.name_bonus, self.names)
        )

    def score(self, text: Sequence[str], about: Sequence[str], length: int) -> DocumentScore:
        """Score a memory by its index words; ``length`` is how many it has."""
        weights = self.weights
        counts: dict[str, float] = {}
        for term in filter(weights.__contains__, text):
            counts[term] = counts.get(term, 0.0) + 1.0
        for term in filter(weights.__contains__, about):
            counts[term] = counts.get(term, 0.0) + self.about_weight
        names = self._matched_names(counts, text, about) if self.names else ()
        norm = self._length_norm(length)
        most = self.k1 + 1.0
        total = 0.0
        # In the query's order, so that equal counts add up to equal sums.
        for term, weight in weights.items():
            count = counts.get(term)
            if count:
                total += weight * count * most / (count + norm)
        for unit in names:
            total += self.name_bonus(unit)
        return DocumentScore(total, counts, names)

    def score_best_window(self, text: Sequence[str], about: Sequence[str]) -> DocumentScore:
        """Score a long memory by the stretch of its words that holds the query best.

        It counts as so long whatever the memory's length: words that stand together
        answer a query, however much else there is.
        """
        start = self._best_window([at for at in enumerate(text) if at[1] in self.weights], about)
        return self.score(text[start : start + WINDOW_TERMS], about, WINDOW_TERMS)

    def _best_window(self, matched: Sequence[tuple[int, str]], about: Sequence[str]) -> int:
        """Return where the best window starts: at one of the query's words, names aside."""
        counts = dict.fromkeys(self.weights, 0.0)
        for term in filter(counts.__contains__, about):
            counts[term] += self.about_weight
        norm = self._length_norm(WINDOW_TERMS)
        best, start, right, judged = -1.0, 0, 0, -_WINDOW_STEP
        for at, first in matched:
            while right < len(matched) and matched[right][0] < at + WINDOW_TERMS:
                counts[matched[right][1]] += 1.0
                right += 1
            if at >= judged + _WINDOW_STEP:
                judged = at
                total = sum(
                    weight * counts[term] / (counts[term] + norm)
                    for term, weight in self.weights.items()
                )
                if total > best:
                    best, start = total, at
            counts[first] -= 1.0
        return start

    def _length_norm(self, length: int) -> float:
        relative = length / self.average_length if self.average_length else 1.0
        return self.k1 * (1.0 - self.b + self.b * relative)

    def why(self, scored: DocumentScore) -> str:
        """Describe which words of the query a memory holds, as they were written."""
        counts = scored.frequencies
        matched: dict[str, None] = {}
        for unit in self.terms:
            if len(unit.terms) == 1 or unit in scored.names:
                if unit in scored.names or counts.get(unit.terms[0]):
                    matched[unit.shown] = None
            else:
                parts = zip(unit.words, unit.terms, strict=True)
                matched.update((word, None) for word, term in parts if counts.get(term))
        return f"matches {', '.join(matched)}" if matched else ""

    def _matched_names(
        self, counts: dict[str, float], text: Sequence[str], about: Sequence[str]
    ) -> tuple[QueryTerm, ...]:
        """Return the names written in full; a name in one word counts as its parts."""
        matched = tuple(unit for unit in self.names if _holds_name(unit, counts, text, about))
        for unit in matched:
            for term in unit.terms:
                counts[term] = max(counts.get(term, 0.0), counts.get(unit.joined, 0.0))
        return matched

    def name_bonus(self, unit: QueryTerm) -> float:
        """Return what a name written in full earns."""
        return sum(self.weights[term] for term in unit.terms)


def weight_query(
    terms: Sequence[QueryTerm], statistics: WordStatistics, search: TextSearch
) -> WeightedQuery:
    """Build a weighted query from its terms and their document frequencies."""
    weights = {
        term: bm25_idf(statistics.documents, statistics.frequencies.get(term, 0))
        for unit in terms
        for term in unit.terms
    }
    for unit in terms:
        if unit.joined:
            # Counted, but without a weight of its own: it represents the parts.
            weights.setdefault(unit.joined, 0.0)
    return WeightedQuery(
        terms=tuple(terms),
        names=tuple(unit for unit in terms if unit.is_name),
        weights=weights,
        average_length=statistics.average_length,
        k1=search.k1,
        b=search.b,
        about_weight=search.about_weight,
    )


def _holds_name(
    unit: QueryTerm, counts: Mapping[str, float], text: Sequence[str], about: Sequence[str]
) -> bool:
    """Whether a name is written in full, as one word or with its parts adjacent."""
    if unit.joined and counts.get(unit.joined):
        return True
    if len(unit.terms) < 2 or not all(counts.get(term) for term in unit.terms):
        return False
    return _has_adjacent(unit.terms, text) or _has_adjacent(unit.terms, about)


def _has_adjacent(terms: tuple[str, ...], words: Sequence[str]) -> bool:
    first, width = terms[0], len(terms)
    return any(
        words[at] == first and tuple(words[at : at + width]) == terms
        for at in range(len(words) - width + 1)
    )
