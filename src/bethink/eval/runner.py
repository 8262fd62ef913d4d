"""Run an evaluation: store every case once, run every question with every profile.

Questions are asked as a default caller asks them: with the profile's own k and token
budget, unless the plan says otherwise. Plain baselines rank the same memories: none of them
knows sessions, times or filters, none is ever silent, and each returns its first k memories. A
pipeline that is behind one of them does not earn its cost.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import count
from time import perf_counter, thread_time

import apsw
import numpy as np

from bethink.core.arrays import Matrix
from bethink.errors import Refused
from bethink.eval.case import (
    Case,
    Dataset,
    Foreign,
    Question,
    sample_foreign_questions,
    sample_near_questions,
)
from bethink.eval.spaces import FilledSpace, SpaceProvider
from bethink.model import Pool, Recall
from bethink.ports import Embedder
from bethink.retrieval.profile import Profile

BM25 = "BM25"
COSINE = "cosine"
RRF = "RRF"
# What a set must not be behind; RRF is shown as well.
MEASURED_AGAINST = (BM25, COSINE)

_WORD = re.compile(r"[^\W_]+")
_RRF_CONSTANT = 60  # Cormack et al., SIGIR 2009
_RRF_DEPTH = 100
_BATCH = 500


class Baselines:
    """An index of the texts for each baseline. Only BM25 where there is no embedder."""

    def __init__(self, texts: Mapping[str, str], embedder: Embedder | None) -> None:
        """Index the texts, given by id."""
        self._ids = list(texts)
        self._embedder = embedder
        self._words = apsw.Connection(":memory:")
        self._words.execute(
            "CREATE VIRTUAL TABLE memory USING fts5(text, content='', tokenize='porter unicode61')"
        )
        with self._words:
            self._words.executemany(
                "INSERT INTO memory(rowid, text) VALUES (?, ?)", enumerate(texts.values())
            )
        self._vectors = _embed(list(texts.values()), embedder) if embedder else None

    def rank(self, question: str, k: int) -> dict[str, list[str]]:
        """The ids that each baseline returns, best first."""
        words = self._rank_by_words(question)
        ranked = {BM25: words}
        if self._embedder is not None and self._vectors is not None:
            vectors = self._rank_by_vectors(question, self._embedder, self._vectors)
            ranked |= {COSINE: vectors, RRF: _fuse((words, vectors))}
        return {name: [self._ids[row] for row in rows[:k]] for name, rows in ranked.items()}

    def _rank_by_words(self, question: str) -> list[int]:
        words = dict.fromkeys(word.casefold() for word in _WORD.findall(question))
        match = " OR ".join(f'"{word}"' for word in words)
        if not match:
            return []
        sql = "SELECT rowid FROM memory WHERE memory MATCH ? ORDER BY bm25(memory), rowid LIMIT ?"
        return [int(row) for (row,) in self._words.execute(sql, (match, _RRF_DEPTH))]

    def _rank_by_vectors(self, question: str, embedder: Embedder, vectors: Matrix) -> list[int]:
        cosines = vectors @ embedder.embed_query(question).vector
        return [int(row) for row in np.argsort(-cosines, kind="stable")[:_RRF_DEPTH]]


def _embed(texts: Sequence[str], embedder: Embedder) -> Matrix:
    rows = [
        one.vector
        for start in range(0, len(texts), _BATCH)
        for one in embedder.embed(texts[start : start + _BATCH])
    ]
    return np.asarray(rows, dtype=np.float32).reshape(len(texts), embedder.dim)


def _fuse(rankings: Sequence[Sequence[int]]) -> list[int]:
    """Reciprocal rank fusion."""
    scores: dict[int, float] = {}
    for ranking in rankings:
        for rank, row in enumerate(ranking, start=1):
            scores[row] = scores.get(row, 0.0) + 1.0 / (_RRF_CONSTANT + rank)
    return sorted(scores, key=lambda row: (-scores[row], row))


GATE_PREFIX = "gate."
CONFIDENCE_STEP = "gate.confidence"
# Kind of own questions that are asked while their answers are taken out.
TAKEN_OUT = "answer taken out"
FOREIGN = "foreign"


def pool_units(pool: Pool, units: Mapping[str, str]) -> tuple[str, ...]:
    """The units of a pool in order of first appearance.

    A chunk of a split memory counts for the whole; an item without a unit (an insight,
    say) keeps its rank, under its own id.
    """
    seen: dict[str, None] = {}
    for cand in pool:
        item = cand.item
        unit = units.get(item.id) or units.get(item.parent or "") or item.id
        seen.setdefault(unit)
    return tuple(seen)


def answer_confidence(answer: Recall) -> float | None:
    """The answer's estimate that one of its hits answers; None where the profile has none."""
    estimated = any(step.name == CONFIDENCE_STEP for step in answer.steps)
    return answer.confidence if estimated else None


def pool_before_gate(answer: Recall) -> Pool:
    """The pool before the gate: the answer as it would be without one."""
    before: Pool = ()
    for step in answer.steps:
        if step.name.startswith(GATE_PREFIX):
            return before
        before = step.pool
    # No gate: the candidates before the budget cut.
    steps = [step for step in answer.steps if step.name != "budget"]
    return steps[-1].pool if steps else answer.hits


@dataclass(frozen=True, slots=True)
class Judged:
    """A ranking of one question: the units that were returned, best first."""

    key: str
    category: str
    relevant: Mapping[str, float]
    ranked: tuple[str, ...]
    outdated: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class QuestionResult(Judged):
    """Result of one question with one profile.

    ``offered`` are the first ten units before the gate.
    ``confidence`` is None where the profile estimates none. ``hits`` counts what was returned,
    ``weak`` what of it has a relevance below 5 %.
    """

    status: str
    confidence: float | None
    offered: tuple[str, ...]
    tokens: int
    seconds: float
    cpu_seconds: float
    degraded: tuple[str, ...]
    hits: int = 0
    weak: int = 0

    @property
    def is_silent(self) -> bool:
        return not self.ranked

    @property
    def is_found(self) -> bool:
        return bool(self.ranked) and self.status == FOUND


FOUND = "found"
_OFFERED = 10
_WEAK = 0.05


ProgressCallback = Callable[[int, int], None]


@dataclass(frozen=True, slots=True)
class RunPlan:
    """Options of a run.

    ``strangers`` is the number of foreign questions, and of own ones that are asked again
    without their answers. ``k`` and ``max_tokens`` are left to the profile where they are None,
    as a default caller does. ``ungated`` judges what stood before the gate; ``baselines`` also
    ranks with plain methods.
    """

    seed: int = 7
    foreign: Foreign = "easy"
    strangers: int = 200
    k: int | None = None
    max_tokens: int | None = None
    ungated: bool = False
    baselines: bool = False

    @property
    def as_shipped(self) -> bool:
        """Whether questions are asked as a default caller asks them."""
        return self.k is None and self.max_tokens is None and not self.ungated


def run_recall(
    space: FilledSpace, question: Question, profile: Profile, plan: RunPlan | None = None
) -> Recall:
    """Run a question like a caller; usage is not recorded."""
    return space.memory.recall(
        question.text,
        profile=profile,
        now=question.now,
        k=plan.k if plan else None,
        max_tokens=plan.max_tokens if plan else None,
        track=False,
        **question.filters,
    )


def run_question(
    space: FilledSpace, question: Question, profile: Profile, plan: RunPlan
) -> QuestionResult:
    """Run a question and measure the answer."""
    started, busy = perf_counter(), thread_time()
    answer = run_recall(space, question, profile, plan)
    seconds, cpu_seconds = perf_counter() - started, thread_time() - busy
    before = pool_before_gate(answer)
    return QuestionResult(
        key=question.key,
        category=question.category,
        relevant=question.relevant,
        ranked=pool_units(before[: answer.query.k] if plan.ungated else answer.hits, space.units),
        outdated=question.outdated,
        status=FOUND if plan.ungated else answer.status,
        confidence=answer_confidence(answer),
        offered=pool_units(before[:_OFFERED], space.units),
        hits=len(answer.hits),
        weak=sum(hit.relevance is not None and hit.relevance < _WEAK for hit in answer.hits),
        tokens=answer.page.tokens,
        seconds=seconds,
        cpu_seconds=cpu_seconds,
        degraded=tuple(part.part for part in answer.degraded),
    )


@dataclass(slots=True)
class ProfileResult:
    """Results of one profile: own questions, and foreign ones by kind."""

    profile: Profile
    label: str
    own: list[QuestionResult] = field(default_factory=list)
    foreign: dict[str, list[QuestionResult]] = field(default_factory=dict)


@dataclass(slots=True)
class Run:
    """Results of a run, its data set, and the storing rate."""

    dataset: Dataset
    plan: RunPlan
    model: str
    fingerprint: str
    outcomes: list[ProfileResult]
    cases: int = 0
    memories: int = 0
    skipped: int = 0
    stored: int = 0
    storing_seconds: float = 0.0
    unknown: list[str] = field(default_factory=list)
    split: list[str] = field(default_factory=list)
    baselines: dict[str, list[Judged]] = field(default_factory=dict)

    @property
    def rate(self) -> float | None:
        """Memories stored per second; None where they were stored before."""
        return self.stored / self.storing_seconds if self.storing_seconds else None


def run_evaluation(
    dataset: Dataset,
    profiles: Mapping[str, Profile],
    plan: RunPlan,
    spaces: SpaceProvider,
    *,
    guest_cases: Sequence[Case] = (),
    progress: ProgressCallback = lambda *_: None,
) -> Run:
    """Evaluate profiles, by their labels, on a data set.

    ``guest_cases`` of another data set provide foreign questions where the data set has
    only one case.
    """
    outline, fingerprint = _cases_and_fingerprint(dataset)
    if not any(case.questions for case in outline):
        raise Refused(f"{dataset.title}: no questions")
    outcomes = [ProfileResult(profile, label) for label, profile in profiles.items()]
    strangers = outline if len(outline) > 1 else guest_cases
    strangers = () if plan.foreign == "off" else strangers
    share = -(-plan.strangers // len(outline))
    result = Run(dataset, plan, spaces.model, fingerprint, outcomes, len(outline))
    total = _count_questions(outline, strangers, share, plan) * len(outcomes)
    done = count(1)
    for case in dataset.cases():
        foreign = sample_foreign_questions(strangers, case, share, plan.seed)
        with spaces.open(dataset.name, case, expendable=plan.foreign != "off") as filled:
            _update_totals(result, case, filled)
            sitting = _CaseRun(case, filled, share, plan, lambda: progress(next(done), total))
            for outcome in outcomes:
                sitting.run_profile(outcome, foreign)
            # Last: it changes the space.
            if plan.foreign != "off" and filled.expendable:
                sitting.run_without_answers(outcomes)
            if plan.baselines:
                sitting.rank_plainly(result, spaces.embedder)
    return result


@dataclass(frozen=True, slots=True)
class _CaseRun:
    """One filled space, its share of questions that have no answer, and whom to tell of each."""

    case: Case
    filled: FilledSpace
    share: int
    plan: RunPlan
    tell: Callable[[], None]

    def run_profile(self, outcome: ProfileResult, foreign: Sequence[Question]) -> None:
        """Run every question with one profile."""
        if self.filled.questions:
            # Warm up: the first question of a space would include opening its indexes.
            run_recall(self.filled, self.filled.questions[0], outcome.profile, self.plan)
        self._run_questions(self.filled.questions, outcome.profile, outcome.own)
        if foreign:
            answered = outcome.foreign.setdefault(FOREIGN, [])
            self._run_questions(foreign, outcome.profile, answered)

    def run_without_answers(self, outcomes: Sequence[ProfileResult]) -> None:
        """Ask own questions again while the memories that answer them are taken out."""
        own = replace(self.case, questions=self.filled.questions)
        for question in sample_near_questions(own, self.share, self.plan.seed):
            left = replace(question, relevant={})
            with self.filled.without(question.relevant):
                for outcome in outcomes:
                    answered = outcome.foreign.setdefault(TAKEN_OUT, [])
                    self._run_questions([left], outcome.profile, answered)

    def rank_plainly(self, result: Run, embedder: Embedder | None) -> None:
        """Rank the answerable questions by the baselines, with as many results."""
        k = self.plan.k or result.outcomes[0].profile.budget.k
        index = Baselines(self.filled.texts, embedder)
        for question in self.filled.questions:
            for name, ids in index.rank(question.text, k).items() if question.relevant else ():
                ranked = tuple(dict.fromkeys(self.filled.units[item] for item in ids))
                made = Judged(
                    question.key, question.category, question.relevant, ranked, question.outdated
                )
                result.baselines.setdefault(name, []).append(made)

    def _run_questions(
        self, questions: Sequence[Question], profile: Profile, into: list[QuestionResult]
    ) -> None:
        for question in questions:
            into.append(run_question(self.filled, question, profile, self.plan))
            self.tell()


def _count_questions(
    outline: Sequence[Case], strangers: Sequence[Case], share: int, plan: RunPlan
) -> int:
    own = sum(len(case.questions) for case in outline)
    if plan.foreign == "off":
        return own
    foreign = sum(
        len(sample_foreign_questions(strangers, case, share, plan.seed)) for case in outline
    )
    taken_out = sum(
        len(sample_near_questions(case, share, plan.seed)) for case in outline if case.space is None
    )
    return own + foreign + taken_out


def _update_totals(result: Run, case: Case, filled: FilledSpace) -> None:
    result.memories += filled.memories
    result.skipped += case.skipped + len(case.questions) - len(filled.questions)
    result.unknown += filled.unknown
    result.split += filled.split
    if filled.seconds is not None:
        result.stored += len(case.drafts)
        result.storing_seconds += filled.seconds


def _cases_and_fingerprint(dataset: Dataset) -> tuple[list[Case], str]:
    """The cases without their texts, which may be large, and a fingerprint.

    Runs with the same questions and equally many memories have the same fingerprint.
    """
    state = hashlib.blake2b(digest_size=12)
    cases = []
    for case in dataset.cases():
        state.update(f"{case.name}\x1f{len(case.drafts)}\x1e".encode())
        for question in case.questions:
            relevant = ",".join(sorted(question.relevant))
            state.update(f"{question.key}\x1f{question.text}\x1f{relevant}\x1e".encode())
        cases.append(replace(case, drafts=(), refs=(), units=()))
    return cases, state.hexdigest()
