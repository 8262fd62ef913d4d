"""Run an evaluation: store every case once, run every question with every profile."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from time import perf_counter, thread_time

from bethink.errors import Refused
from bethink.eval.case import (
    Case,
    Dataset,
    Foreign,
    Question,
    proper_names,
    replace_names,
    sample_foreign_questions,
)
from bethink.eval.spaces import FilledSpace, SpaceProvider
from bethink.model import Pool, Recall
from bethink.retrieval.profile import Profile
from bethink.retrieval.stages.assemble import token_cost

CHANNEL_PREFIX = "channel."
GATE_PREFIX = "gate."
MAX_CONFIDENCE = 1.0e9
_CONFIDENCE_NOTE = re.compile(r"confidence (-?\d+\.?\d*)")
# Steps without a candidate pool of their own.
_STEPS_WITHOUT_POOL = ("plan",)


@dataclass(frozen=True, slots=True)
class StepResult:
    """One step of one recall: status, duration, and the ranks of the relevant units."""

    name: str
    status: str
    seconds: float
    left: int
    places: Mapping[str, int]

    @property
    def is_channel(self) -> bool:
        return self.name.startswith(CHANNEL_PREFIX)


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


def step_results(
    answer: Recall, relevant: Mapping[str, float], units: Mapping[str, str]
) -> list[StepResult]:
    """Results of every pipeline step, judged by the relevant units."""
    looks = []
    for step in answer.steps:
        if step.name in _STEPS_WITHOUT_POOL:
            continue
        places = {
            unit: place
            for place, unit in enumerate(pool_units(step.pool, units), start=1)
            if unit in relevant
        }
        looks.append(StepResult(step.name, step.status, step.seconds, len(step.pool), places))
    return looks


def gate_confidence(answer: Recall) -> float | None:
    """Confidence of the gate, parsed from the trace.

    A decision it made without weighing counts as entirely confident, either way; None
    where the pipeline has no gate.
    """
    gates = [step for step in answer.steps if step.name.startswith(GATE_PREFIX)]
    if not gates:
        return None
    weighed = [
        float(found.group(1)) for step in gates if (found := _CONFIDENCE_NOTE.search(step.note))
    ]
    if weighed:
        return min(weighed)
    return MAX_CONFIDENCE if gates[-1].pool else -MAX_CONFIDENCE


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


UNLIMITED_TOKENS = 1_000_000


@dataclass(frozen=True, slots=True)
class QuestionResult:
    """Result of one question with one profile.

    ``ranked`` are the units that were returned, ``offered`` those before the gate;
    ``best`` is the best score there, ``sureness`` the gate's confidence. ``shipped``
    units and ``tokens`` are what a caller without own limits would get.
    """

    key: str
    case: str
    category: str
    relevant: Mapping[str, float]
    ranked: tuple[str, ...]
    offered: tuple[str, ...]
    best: float | None
    sureness: float | None
    shipped: int
    tokens: int
    seconds: float
    cpu_seconds: float
    degraded: tuple[str, ...]
    looks: tuple[StepResult, ...]

    @property
    def is_silent(self) -> bool:
        return not self.ranked


def run_question(
    space: FilledSpace, question: Question, profile: Profile, *, case: str, k: int
) -> QuestionResult:
    """Run a question like a caller, only with a larger k; usage is not recorded."""
    started, busy = perf_counter(), thread_time()
    answer = run_recall(space, question, profile, k)
    seconds, cpu_seconds = perf_counter() - started, thread_time() - busy
    before = pool_before_gate(answer)
    shipped = trim_to_budget(answer.hits, profile)
    return QuestionResult(
        key=question.key,
        case=case,
        category=question.category,
        relevant=question.relevant,
        ranked=pool_units(answer.hits, space.units),
        offered=pool_units(before[:k], space.units),
        best=before[0].score if before else None,
        sureness=gate_confidence(answer),
        shipped=len(pool_units(shipped, space.units)),
        tokens=sum(token_cost(hit.item) for hit in shipped),
        seconds=seconds,
        cpu_seconds=cpu_seconds,
        degraded=tuple(part.part for part in answer.degraded),
        looks=tuple(step_results(answer, question.relevant, space.units)),
    )


def run_recall(space: FilledSpace, question: Question, profile: Profile, k: int) -> Recall:
    """Run the recall without measuring it."""
    return space.memory.recall(
        question.text,
        profile=profile,
        now=question.now,
        k=k,
        max_tokens=UNLIMITED_TOKENS,
        track=False,
        **question.filters,
    )


def trim_to_budget(hits: Pool, profile: Profile) -> Pool:
    """Cut the hits to the profile's own limits: at least one, if there is one."""
    spent = 0
    for place, hit in enumerate(hits[: profile.budget.k]):
        spent += token_cost(hit.item)
        if place and spent > profile.budget.max_tokens:
            return hits[:place]
    return hits[: profile.budget.k]


ProgressCallback = Callable[[int, int], None]

DEFAULT_DEPTH = {"turn": 50, "session": 200}


@dataclass(frozen=True, slots=True)
class RunPlan:
    """Options of a run. ``strangers`` is the total number of foreign questions."""

    seed: int = 7
    foreign: Foreign = "easy"
    strangers: int = 200
    k: int = 0

    def depth(self, dataset: Dataset) -> int:
        """Number of results to request; more for sessions, which are found by their turns."""
        return self.k or DEFAULT_DEPTH[dataset.level]


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
    strangers = _foreign_cases(outline, guest_cases, plan)
    share = -(-plan.strangers // len(outline))
    result = Run(dataset, plan, spaces.model, fingerprint, outcomes, len(outline))
    pace = _ProgressCounter(
        progress, _count_questions(outline, strangers, share, plan) * len(outcomes)
    )
    for case in dataset.cases():
        foreign = dict(_foreign_questions(case, strangers, share, plan))
        with spaces.open(dataset.name, case) as filled:
            _update_totals(result, case, filled)
            sitting = _CaseRun(case, filled, foreign, plan.depth(dataset))
            for outcome in outcomes:
                sitting.run_profile(outcome, pace)
    return result


class _ProgressCounter:
    """Reports progress to the callback."""

    def __init__(self, watch: ProgressCallback, total: int) -> None:
        self._watch, self._total, self._done = watch, total, 0

    def step(self) -> None:
        self._done += 1
        self._watch(self._done, self._total)


@dataclass(frozen=True, slots=True)
class _CaseRun:
    """One filled space and the questions to run on it."""

    case: Case
    filled: FilledSpace
    foreign: Mapping[str, list[Question]]
    k: int

    def run_profile(self, outcome: ProfileResult, pace: _ProgressCounter) -> None:
        """Run every question with one profile."""
        if self.filled.questions:
            # Warm up: the first question of a space would include opening its indexes.
            run_recall(self.filled, self.filled.questions[0], outcome.profile, self.k)
        self._run_questions(self.filled.questions, outcome.profile, outcome.own, pace)
        for kind, questions in self.foreign.items():
            answered = outcome.foreign.setdefault(kind, [])
            self._run_questions(questions, outcome.profile, answered, pace)

    def _run_questions(
        self,
        questions: Sequence[Question],
        profile: Profile,
        into: list[QuestionResult],
        pace: _ProgressCounter,
    ) -> None:
        for question in questions:
            into.append(run_question(self.filled, question, profile, case=self.case.name, k=self.k))
            pace.step()


def _foreign_cases(
    outline: Sequence[Case], guests: Sequence[Case], plan: RunPlan
) -> Sequence[Case]:
    if plan.foreign == "off":
        return ()
    return outline if len(outline) > 1 else guests


def _foreign_questions(
    case: Case, strangers: Sequence[Case], share: int, plan: RunPlan
) -> Iterator[tuple[str, list[Question]]]:
    drawn = sample_foreign_questions(strangers, case, share, plan.seed)
    if not drawn:
        return
    yield "foreign", drawn
    if plan.foreign == "hard":
        known = proper_names(case.drafts)
        yield "foreign, names replaced", [replace_names(question, known) for question in drawn]


def _count_questions(
    outline: Sequence[Case], strangers: Sequence[Case], share: int, plan: RunPlan
) -> int:
    own = sum(len(case.questions) for case in outline)
    kinds = 2 if plan.foreign == "hard" else 1
    return own + kinds * sum(
        len(sample_foreign_questions(strangers, case, share, plan.seed)) for case in outline
    )


def _update_totals(result: Run, case: Case, filled: FilledSpace) -> None:
    result.memories += filled.memories
    result.skipped += case.skipped + len(case.questions) - len(filled.questions)
    result.unknown += filled.unknown
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
