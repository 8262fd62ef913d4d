"""Finding memories by words: a plan by rarity, FTS5 for the candidates, exact BM25.

What a search costs is the postings FTS5 walks. So the rarest words are searched
first, as many as the budget allows, and the best candidates are judged by all of the
query's words. Words left out are only searched when the scope holds too few matches
of the others: fewer than ``depth`` matches means that there are no more.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, NamedTuple

import apsw

from recollect.model import Item
from recollect.ports import Found, Match, TextSearch, WordStatistics
from recollect.store.ranking import Question, Scored, Wanted, idf, weigh
from recollect.store.sqlite.scope import Predicate
from recollect.store.sqlite.terms import read_query, statistics, tokenizer

Hydrate = Callable[[apsw.Connection, Sequence[int]], dict[int, Item]]

MOST_TERMS = 64
FEW_CANDIDATES, SOME_CANDIDATES, MANY_CANDIDATES = 40, 150, 500
FTS5_PARAMETERS = (1.2, 0.75)  # k1 and b of its bm25(), which cannot be changed
LARGE_STORE, LARGE_BUDGET = 1_000_000, 50_000
RARE_ENOUGH = 500  # memories; below this a word is cheap however common
FAR_MORE = 4.0  # times the idf
NARROW_SCOPE = 2_000  # memories; so few are read and judged one by one


class Row(NamedTuple):
    """A candidate: what is needed to judge a memory by its words.

    ``relevance`` is FTS5's own score of it, higher is better; unknown, it is infinite.
    """

    rid: int
    id: str
    text: str
    about: str
    length: int
    visible: int = 1
    relevance: float = math.inf


class Plan(NamedTuple):
    """Which terms are searched, rarest first, and which only if those give too little.

    ``candidates`` are judged exactly: the fewer, the better FTS5 can tell them apart.
    """

    first: tuple[str, ...]
    rest: tuple[str, ...]
    postings: int
    rest_postings: int
    budget: int
    candidates: int


class Gathering(NamedTuple):
    """What candidates are wanted: those of a plan, spelled for FTS5, under a predicate."""

    plan: Plan
    spelling: Mapping[str, str]
    about_weight: float
    depth: int
    predicate: Predicate

    @property
    def wanted(self) -> int:
        """How many candidates are judged exactly."""
        return max(self.plan.candidates, 3 * self.depth // 2)

    def match(self, terms: Sequence[str]) -> str:
        """An FTS5 query for any of the terms; each is quoted, so none is an operator."""
        return " OR ".join('"' + self.spelling[term].replace('"', '""') + '"' for term in terms)


def search_text(
    db: apsw.Connection, search: TextSearch, predicate: Predicate, hydrate: Hydrate
) -> Found:
    """Memories that hold any of the query's words, ranked by BM25, ties by id."""
    reading = read_query(db, search.text)
    known = statistics(db, reading.spelling, predicate.then)
    wanted = _rarest(reading.wanted, known.frequencies)
    question = weigh(wanted, known, search)
    plan = make_plan(
        {term: known.frequencies[term] for term in question.weights},
        documents=known.documents,
        budget=search.postings_budget,
    )
    gathering = Gathering(plan, reading.spelling, search.about_weight, search.depth, predicate)
    rows = gather(db, gathering)
    ranked = _rank(db, question, rows, search.depth, _room(question, plan, known, predicate))
    items = hydrate(db, [row.rid for row, _ in ranked])
    searched = {term for unit in wanted for term in unit.terms}.intersection(plan.first)
    return Found(
        matches=tuple(
            Match(items[row.rid], scored.score, question.why(scored))
            for row, scored in ranked
            if row.rid in items
        ),
        note=f"{len(searched)} of {reading.words} words searched, {plan.postings:,} postings",
        ceiling=question.ceiling,
    )


def make_plan(frequencies: Mapping[str, int], *, documents: int, budget: int) -> Plan:
    """Spends the budget on the rarest terms; at least one is searched if any is known.

    A term in more than a third of all memories waits, if there is one that says far more.
    """
    if documents >= LARGE_STORE:
        budget = max(budget, LARGE_BUDGET)
    common_from = max(documents / 3, RARE_ENOUGH)
    first: list[str] = []
    rest: list[str] = []
    spent = 0
    present = [term for term, df in frequencies.items() if df > 0]
    present.sort(key=lambda term: (frequencies[term], term))
    for term in present:
        df = frequencies[term]
        common = df > common_from and _says_far_less(df, frequencies[present[0]], documents)
        if first and (spent + df > budget or common):
            rest.append(term)
        else:
            first.append(term)
            spent += df
    left = sum(frequencies[term] for term in rest)
    # To FTS5 a word in half of all memories is worth nothing, and what it has not
    # searched even less: then its order is rough.
    rough = any(frequencies[term] > documents / 2 for term in first)
    candidates = MANY_CANDIDATES if rough else SOME_CANDIDATES if rest else FEW_CANDIDATES
    return Plan(tuple(first), tuple(rest), spent, left, budget, candidates)


def _says_far_less(df: int, rarest: int, documents: int) -> bool:
    return FAR_MORE * idf(documents, df) < idf(documents, rarest)


def gather(db: apsw.Connection, gathering: Gathering) -> list[Row]:
    """Candidates in scope, the best by FTS5's own ranking; fewer than ``depth`` of them
    only if no more memories in scope hold any of the plan's terms."""
    plan, predicate = gathering.plan, gathering.predicate
    if not plan.first or gathering.depth < 1:
        return []
    wanted = gathering.wanted
    # Where a filter is set, a longer look is cheaper than looking twice.
    looked_at = wanted if predicate.plain else 4 * wanted
    rows: list[Row] = []
    seen = 0
    # A row costs when it is fetched: no more of them than are wanted.
    for row in _by_relevance(db, gathering, plan.first, limit=looked_at):
        seen += 1
        if row.visible:
            rows.append(row)
            if len(rows) == wanted:
                return rows
    exhausted = seen < looked_at
    enough = gathering.depth if exhausted else max(gathering.depth, wanted // 2)
    if len(rows) >= enough or (exhausted and not plan.rest):
        return rows
    if not predicate.plain:
        whole_scope = _small_scope(db, predicate)
        if whole_scope is not None:
            return whole_scope
    if not exhausted:
        further = _by_relevance(db, gathering, plan.first, offset=looked_at)
        visible = (row for row in further if row.visible)
        rows += islice(visible, wanted - len(rows))
    if len(rows) < gathering.depth and plan.rest:
        rows += _from_common_words(db, gathering, {row.rid for row in rows})
    return rows


def _rarest(wanted: Sequence[Wanted], frequencies: Mapping[str, int]) -> tuple[Wanted, ...]:
    """Of a long query the rarest known words, in the order they were asked."""
    if sum(len(unit.terms) for unit in wanted) <= MOST_TERMS:
        return tuple(wanted)

    def rarity(place: int) -> tuple[bool, int, int]:
        counts = [frequencies[term] for term in wanted[place].terms if frequencies[term]]
        return not counts, min(counts, default=0), place

    kept: dict[int, Wanted] = {}
    room = MOST_TERMS
    for place in sorted(range(len(wanted)), key=rarity):
        unit = wanted[place]
        kept[place] = unit._replace(words=unit.words[:room], terms=unit.terms[:room])
        room -= len(kept[place].terms)
        if room <= 0:
            break
    return tuple(kept[place] for place in sorted(kept))


def _rank(
    db: apsw.Connection, question: Question, rows: Sequence[Row], depth: int, headroom: float
) -> list[tuple[Row, Scored]]:
    """The ``depth`` best, judged exactly. A row whose score by FTS5 plus all that it can
    be off by does not reach the best so far need not be looked at."""
    tokens = tokenizer(db)
    ranked: list[tuple[Row, Scored]] = []
    best: list[float] = []
    for row in rows:
        if len(best) == depth and row.relevance + headroom < best[0]:
            continue
        if not row.about:
            scored = question.score(tokens(row.text), (), row.length)
        elif question.is_flat:
            scored = question.score(tokens(f"{row.text}\n{row.about}"), (), row.length)
        else:
            scored = question.score(tokens(row.text), tokens(row.about), row.length)
        if scored.score > 0.0:
            ranked.append((row, scored))
            push = heapq.heappush if len(best) < depth else heapq.heappushpop
            push(best, scored.score)
    ranked.sort(key=lambda pair: (-pair[1].score, pair[0].id))
    return ranked[:depth]


def _room(question: Question, plan: Plan, known: WordStatistics, predicate: Predicate) -> float:
    """The headroom; of the past FTS5, which counts by today, can tell nothing."""
    return math.inf if predicate.then is not None else _headroom(question, plan, known)


def _headroom(question: Question, plan: Plan, known: WordStatistics) -> float:
    """By how much an exact score can exceed that of FTS5, which knows only the words
    searched, has an idf that falls to zero, and fixed parameters."""
    if (question.k1, question.b) != FTS5_PARAMETERS:
        return math.inf
    most = question.k1 + 1.0
    room = 1e-6  # of rounding
    for term in (*plan.first, *plan.rest):
        df = known.frequencies[term]
        theirs = math.log((known.documents - df + 0.5) / (df + 0.5)) if term in plan.first else 0.0
        room += most * max(question.weights[term] - max(theirs, 0.0), 0.0)
    for unit in question.names:
        # A name as one word counts as its parts, and in full earns them once more.
        room += (most + 1.0) * sum(question.weights[term] for term in unit.terms)
    return room


def _by_relevance(
    db: apsw.Connection,
    gathering: Gathering,
    terms: Sequence[str],
    *,
    limit: int = -1,
    offset: int = 0,
) -> Iterator[Row]:
    """The memories that hold any of the terms, best first, those out of scope too."""
    predicate = gathering.predicate
    # bm25() in the order, not `rank`: half the time on wide queries. The better, the lower.
    cursor = db.execute(
        f"""
        SELECT i.rid, i.id, i.text, i.about, i.length, ({predicate.sql}), -ranked.cost
        FROM (
            SELECT rowid AS rid, bm25(words, 1.0, ?) AS cost FROM words WHERE words MATCH ?
            ORDER BY cost, rowid LIMIT ? OFFSET ?
        ) AS ranked CROSS JOIN item AS i ON i.rid = ranked.rid""",
        (*predicate.values, gathering.about_weight, gathering.match(terms), limit, offset),
    )
    return _rows(cursor)


def _rows(cursor: Iterable[Any]) -> Iterator[Row]:
    return map(Row._make, cursor)


def _small_scope(db: apsw.Connection, predicate: Predicate) -> list[Row] | None:
    """Every memory in scope, if they are few."""
    rows = db.execute(
        f"SELECT i.rid, i.id, i.text, i.about, i.length, 1, 9e999 FROM item AS i"
        f" WHERE {predicate.sql} LIMIT {NARROW_SCOPE + 1}",
        predicate.values,
    ).fetchall()
    return list(_rows(rows)) if len(rows) <= NARROW_SCOPE else None


def _from_common_words(db: apsw.Connection, gathering: Gathering, known: set[int]) -> Iterator[Row]:
    """Further memories, by the words that were left out. If even those are too many to
    rank, the newest: words so common hardly tell one memory from another."""
    plan = gathering.plan
    if plan.rest_postings <= plan.budget:
        found = _by_relevance(db, gathering, plan.rest)
    else:
        found = _newest(db, gathering, plan.rest)
    fresh = (row for row in found if row.visible and row.rid not in known)
    return islice(fresh, gathering.wanted)


def _newest(db: apsw.Connection, gathering: Gathering, terms: Sequence[str]) -> Iterator[Row]:
    predicate = gathering.predicate
    cursor = db.execute(
        f"""
        SELECT i.rid, i.id, i.text, i.about, i.length, 1, 9e999
        FROM words AS w CROSS JOIN item AS i ON i.rid = w.rowid
        WHERE words MATCH ? AND ({predicate.sql}) ORDER BY w.rowid DESC""",
        (gathering.match(terms), *predicate.values),
    )
    return _rows(cursor)
