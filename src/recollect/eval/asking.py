"""Asks one question of one memory and notes what came of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from time import perf_counter, thread_time

from recollect.eval.case import Question
from recollect.eval.looking import StepLook, look, offered, sureness, units_of
from recollect.eval.spaces import Filled
from recollect.model import Pool, Recall
from recollect.profile import Profile
from recollect.stages.budget import cost

ENOUGH_TOKENS = 1_000_000


@dataclass(frozen=True, slots=True)
class Asked:
    """One question by one profile.

    ``ranked`` are the units that came back, ``offered`` those that stood before the
    gate; ``best`` is the best score there, ``sureness`` what the gate thought of it.
    ``shipped`` units and ``tokens`` are what a caller who names no limits would get.
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
    looks: tuple[StepLook, ...]

    @property
    def is_silent(self) -> bool:
        return not self.ranked


def ask(filled: Filled, question: Question, profile: Profile, *, case: str, k: int) -> Asked:
    """Asks as a caller would, only for more; nothing is marked as used."""
    started, busy = perf_counter(), thread_time()
    answer = recall(filled, question, profile, k)
    seconds, cpu_seconds = perf_counter() - started, thread_time() - busy
    before = offered(answer)
    shipped = within(answer.hits, profile)
    return Asked(
        key=question.key,
        case=case,
        category=question.category,
        relevant=question.relevant,
        ranked=units_of(answer.hits, filled.units),
        offered=units_of(before[:k], filled.units),
        best=before[0].score if before else None,
        sureness=sureness(answer),
        shipped=len(units_of(shipped, filled.units)),
        tokens=sum(cost(hit.item) for hit in shipped),
        seconds=seconds,
        cpu_seconds=cpu_seconds,
        degraded=tuple(part.part for part in answer.degraded),
        looks=tuple(look(answer, question.relevant, filled.units)),
    )


def recall(filled: Filled, question: Question, profile: Profile, k: int) -> Recall:
    """The bare recall."""
    return filled.memory.recall(
        question.text,
        profile=profile,
        now=question.now,
        k=k,
        max_tokens=ENOUGH_TOKENS,
        track=False,
        **question.filters,
    )


def within(hits: Pool, profile: Profile) -> Pool:
    """What the profile's own limits leave of an answer: at least one, if there is one."""
    spent = 0
    for place, hit in enumerate(hits[: profile.budget.k]):
        spent += cost(hit.item)
        if place and spent > profile.budget.max_tokens:
            return hits[:place]
    return hits[: profile.budget.k]
