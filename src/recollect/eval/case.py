"""What is measured on: memories to store, and questions that say what should come back."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, Literal

from recollect.model import Draft

Level = Literal["turn", "session"]

# Where a data set names no time at all, it is this moment: runs must not depend on the day.
EPOCH = datetime(2026, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Question:
    """One question and the units that answer it, each with its gain.

    A unit is what counts as found once: a turn, a session, a document. No units
    mean that nothing stored answers the question: silence is then right.
    """

    key: str
    text: str
    relevant: Mapping[str, float]
    category: str = ""
    now: datetime | None = None
    filters: Mapping[str, Any] = field(default_factory=dict)

    @property
    def answerable(self) -> bool:
        return bool(self.relevant)


@dataclass(frozen=True, slots=True)
class Case:
    """One space's worth: what is stored in it and what is asked of it.

    ``refs`` are the data set's own names of the drafts, ``units`` the unit each
    draft counts for. ``space`` names a space that is there already; then nothing
    is stored.
    """

    name: str
    questions: tuple[Question, ...]
    drafts: tuple[Draft, ...] = ()
    refs: tuple[str, ...] = ()
    units: tuple[str, ...] = ()
    now: datetime = EPOCH
    skipped: int = 0
    space: str | None = None


@dataclass(frozen=True, slots=True)
class Dataset:
    """A name, how it was read, and its cases, made afresh each time they are asked for.

    The name stands for the memories, whatever ``level`` they are judged at: filled
    spaces are kept under it. ``groups`` are sets of categories that published
    figures are given for.
    """

    name: str
    title: str
    cases: Callable[[], Iterator[Case]]
    level: Level = "turn"
    groups: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    note: str = ""


def neutral_id(ref: str) -> str:
    """An id that says nothing: ties are broken by id, and a telling one would help.

    Some data sets name the sessions that hold the answer ``answer_…``.
    """
    return hashlib.blake2b(ref.encode(), digest_size=10).hexdigest()


def after(drafts: tuple[Draft, ...]) -> datetime:
    """A day after the last thing that happened: when questions without a time are asked."""
    moments = [draft.occurred_at for draft in drafts if draft.occurred_at is not None]
    return max(moments) + timedelta(days=1) if moments else EPOCH


def pooled(dataset: Dataset) -> Dataset:
    """All cases in one space. Drafts with the same ref are stored once."""

    def cases() -> Iterator[Case]:
        rows: dict[str, tuple[Draft, str]] = {}
        questions: list[Question] = []
        skipped = 0
        for case in dataset.cases():
            for ref, draft, unit in zip(case.refs, case.drafts, case.units, strict=True):
                rows.setdefault(ref, (draft, unit))
            # Each question keeps the moment of its own case.
            questions += [_at(question, case.now) for question in case.questions]
            skipped += case.skipped
        drafts = tuple(draft for draft, _ in rows.values())
        units = tuple(unit for _, unit in rows.values())
        yield Case(
            name="pooled",
            questions=tuple(questions),
            drafts=drafts,
            refs=tuple(rows),
            units=units,
            now=after(drafts),
            skipped=skipped,
        )

    return Dataset(
        name=f"{dataset.name}-pooled",
        title=f"{dataset.title}, all in one space",
        cases=cases,
        level=dataset.level,
        groups=dataset.groups,
        note=dataset.note,
    )


def _at(question: Question, now: datetime) -> Question:
    if question.now is not None:
        return question
    return Question(
        question.key, question.text, question.relevant, question.category, now, question.filters
    )
