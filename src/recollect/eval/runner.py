"""One run: every case stored once, every question asked of it by every profile."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from recollect.errors import Refused
from recollect.eval.asking import Asked, ask, recall
from recollect.eval.case import Case, Dataset, Question
from recollect.eval.foreign import Foreign, disguise, draw, names_in
from recollect.eval.spaces import Filled, Shelf
from recollect.profile import Profile

Watch = Callable[[int, int], None]

DEPTH = {"turn": 50, "session": 200}


@dataclass(frozen=True, slots=True)
class Plan:
    """How a run is to be done. ``strangers`` is how many foreign questions in all."""

    seed: int = 7
    foreign: Foreign = "easy"
    strangers: int = 200
    k: int = 0

    def depth(self, dataset: Dataset) -> int:
        """How many to ask for; sessions are seen through their turns, so more of those."""
        return self.k or DEPTH[dataset.level]


@dataclass(slots=True)
class Outcome:
    """All that one profile answered: own questions, and foreign ones by their kind."""

    profile: Profile
    label: str
    own: list[Asked] = field(default_factory=list)
    foreign: dict[str, list[Asked]] = field(default_factory=dict)


@dataclass(slots=True)
class Run:
    """What was measured, on what, and how fast it was stored."""

    dataset: Dataset
    plan: Plan
    model: str
    fingerprint: str
    outcomes: list[Outcome]
    cases: int = 0
    memories: int = 0
    skipped: int = 0
    stored: int = 0
    storing_seconds: float = 0.0
    unknown: list[str] = field(default_factory=list)

    @property
    def rate(self) -> float | None:
        """Memories stored a second; None where they were there already."""
        return self.stored / self.storing_seconds if self.storing_seconds else None


def run(
    dataset: Dataset,
    profiles: Mapping[str, Profile],
    plan: Plan,
    shelf: Shelf,
    *,
    guests: Sequence[Case] = (),
    watch: Watch = lambda *_: None,
) -> Run:
    """Measures profiles, by their labels, on a data set.

    ``guests`` are cases of another data set: they stand in where one case is all
    there is, and so nobody else's question is at hand.
    """
    outline, fingerprint = _outline(dataset)
    if not any(case.questions for case in outline):
        raise Refused(f"{dataset.title}: there is no question to ask")
    outcomes = [Outcome(profile, label) for label, profile in profiles.items()]
    strangers = _strangers(outline, guests, plan)
    share = -(-plan.strangers // len(outline))
    result = Run(dataset, plan, shelf.model, fingerprint, outcomes, len(outline))
    pace = _Pace(watch, _asks(outline, strangers, share, plan) * len(outcomes))
    for case in dataset.cases():
        foreign = dict(_foreign(case, strangers, share, plan))
        with shelf.open(dataset.name, case) as filled:
            _count(result, case, filled)
            sitting = _Sitting(case, filled, foreign, plan.depth(dataset))
            for outcome in outcomes:
                sitting.attend(outcome, pace)
    return result


class _Pace:
    """Tells the watcher how far it is."""

    def __init__(self, watch: Watch, total: int) -> None:
        self._watch, self._total, self._done = watch, total, 0

    def step(self) -> None:
        self._done += 1
        self._watch(self._done, self._total)


@dataclass(frozen=True, slots=True)
class _Sitting:
    """One filled space and all that is asked of it."""

    case: Case
    filled: Filled
    foreign: Mapping[str, list[Question]]
    k: int

    def attend(self, outcome: Outcome, pace: _Pace) -> None:
        """Asks every question by one profile."""
        if self.filled.questions:
            # The first question of a space pays for opening its indexes: not its own time.
            recall(self.filled, self.filled.questions[0], outcome.profile, self.k)
        self._ask(self.filled.questions, outcome.profile, outcome.own, pace)
        for kind, questions in self.foreign.items():
            answered = outcome.foreign.setdefault(kind, [])
            self._ask(questions, outcome.profile, answered, pace)

    def _ask(
        self, questions: Sequence[Question], profile: Profile, into: list[Asked], pace: _Pace
    ) -> None:
        for question in questions:
            into.append(ask(self.filled, question, profile, case=self.case.name, k=self.k))
            pace.step()


def _strangers(outline: Sequence[Case], guests: Sequence[Case], plan: Plan) -> Sequence[Case]:
    if plan.foreign == "off":
        return ()
    return outline if len(outline) > 1 else guests


def _foreign(
    case: Case, strangers: Sequence[Case], share: int, plan: Plan
) -> Iterator[tuple[str, list[Question]]]:
    drawn = draw(strangers, case, share, plan.seed)
    if not drawn:
        return
    yield "foreign", drawn
    if plan.foreign == "hard":
        known = names_in(case.drafts)
        yield "foreign, names replaced", [disguise(question, known) for question in drawn]


def _asks(outline: Sequence[Case], strangers: Sequence[Case], share: int, plan: Plan) -> int:
    own = sum(len(case.questions) for case in outline)
    kinds = 2 if plan.foreign == "hard" else 1
    return own + kinds * sum(len(draw(strangers, case, share, plan.seed)) for case in outline)


def _count(result: Run, case: Case, filled: Filled) -> None:
    result.memories += filled.memories
    result.skipped += case.skipped + len(case.questions) - len(filled.questions)
    result.unknown += filled.unknown
    if filled.seconds is not None:
        result.stored += len(case.drafts)
        result.storing_seconds += filled.seconds


def _outline(dataset: Dataset) -> tuple[list[Case], str]:
    """The cases without their texts, which together may be large, and a fingerprint.

    Runs that asked the same questions about equally many memories have the same one.
    """
    state = hashlib.blake2b(digest_size=12)
    cases = []
    for case in dataset.cases():
        state.update(f"{case.name}\x1f{len(case.drafts)}\x1e".encode())
        for question in case.questions:
            wanted = ",".join(sorted(question.relevant))
            state.update(f"{question.key}\x1f{question.text}\x1f{wanted}\x1e".encode())
        cases.append(replace(case, drafts=(), refs=(), units=()))
    return cases, state.hexdigest()
