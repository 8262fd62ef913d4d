"""Evaluation cases: memories to store and questions with their relevant units.

Includes foreign questions, which the memory cannot answer and should abstain from.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any, Literal

from bethink.importers.entry import split_text
from bethink.model import Draft

Level = Literal["turn", "session"]

# The time of data sets without times: runs must not depend on the current day.
EPOCH = datetime(2026, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Question:
    """A question and its relevant units, each with its gain.

    A unit is what counts as found once: a turn, a session, a document. No units mean that
    nothing stored answers the question: abstaining is then correct. ``outdated`` are units
    that a relevant one corrects: it should be ranked above them.
    """

    key: str
    text: str
    relevant: Mapping[str, float]
    category: str = ""
    now: datetime | None = None
    filters: Mapping[str, Any] = field(default_factory=dict)
    outdated: frozenset[str] = frozenset()

    @property
    def answerable(self) -> bool:
        return bool(self.relevant)


@dataclass(frozen=True, slots=True)
class Case:
    """The content of one space and the questions about it.

    ``refs`` are the data set's own names of the drafts, ``units`` the unit each draft
    counts for. ``space`` names an existing space; then nothing is stored.
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
    """A data set: its name, how it was read, and its cases, recreated on each call.

    The name identifies the memories, whatever ``level`` they are judged at: it is the key
    of cached spaces. ``groups`` are sets of categories that published figures are given
    for. Sets of one ``kind`` may ask each other: their questions are about something else.
    """

    name: str
    title: str
    cases: Callable[[], Iterator[Case]]
    level: Level = "turn"
    groups: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    kind: str = ""

    @property
    def label(self) -> str:
        """The name in tables of several sets."""
        return f"{self.name}-sessions" if self.level == "session" else self.name


def neutral_id(ref: str) -> str:
    """Return an opaque id: ties are broken by id, and a meaningful one would help.

    Some data sets name the sessions that hold the answer ``answer_…``.
    """
    return hashlib.blake2b(ref.encode(), digest_size=10).hexdigest()


def day_after(drafts: tuple[Draft, ...]) -> datetime:
    """A day after the last event: the time of questions without one."""
    moments = [draft.occurred_at for draft in drafts if draft.occurred_at is not None]
    return max(moments) + timedelta(days=1) if moments else EPOCH


Row = tuple[str, Draft, str]  # the data set's name of a draft, the draft, and its unit


def make_case(
    name: str,
    questions: Iterable[Question],
    rows: Iterable[Row],
    *,
    now: datetime | None = None,
    skipped: int = 0,
) -> Case:
    """Make a case of its rows; asked at the given time, or a day after the last event."""
    listed = list(rows)
    refs, drafts, units = zip(*listed, strict=True) if listed else ((), (), ())
    return Case(name, tuple(questions), drafts, refs, units, now or day_after(drafts), skipped)


Foreign = Literal["off", "easy"]


def sample_foreign_questions(
    other_cases: Sequence[Case], target: Case, count: int, seed: int
) -> list[Question]:
    """Sample ``count`` questions of other cases, the same for the same seed."""
    others = [
        replace(
            question,
            key=f"{question.key}@{target.name}",
            relevant={},
            filters={},
            outdated=frozenset(),
        )
        for case in other_cases
        for question in case.questions
        if case.name != target.name and question.answerable
    ]
    random = Random(f"{seed}/{target.name}")  # noqa: S311 - repeatable on purpose
    chosen = random.sample(others, min(count, len(others)))
    # The time of the other case may be before all memories of this one.
    return [replace(question, now=target.now) for question in chosen]


def sample_near_questions(case: Case, count: int, seed: int) -> list[Question]:
    """Sample ``count`` questions to ask again without the memories that answer them.

    Not those with an outdated memory: it would be left, and answer them wrongly.
    """
    own = [question for question in case.questions if question.answerable and not question.outdated]
    random = Random(f"{seed}/near/{case.name}")  # noqa: S311 - repeatable on purpose
    return random.sample(own, min(count, len(own)))


PART_MARK = "\x1fpart "


def split_long_texts(case: Case) -> tuple[Case, tuple[str, ...]]:
    """Split texts over the limit of a memory into parts of the same unit; also name them."""
    rows: list[tuple[str, Draft, str]] = []
    long: list[str] = []
    for ref, draft, unit in zip(case.refs, case.drafts, case.units, strict=True):
        texts = split_text(draft.text) or [draft.text]
        if len(texts) == 1:
            rows.append((ref, draft, unit))
            continue
        long.append(ref)
        for number, text in enumerate(texts, start=1):
            own = f"{ref}{PART_MARK}{number}"
            rows.append((own, draft._replace(text=text, id=neutral_id(own)), unit))
    if not long:
        return case, ()
    refs, drafts, units = (tuple(column) for column in zip(*rows, strict=True))
    return replace(case, refs=refs, drafts=drafts, units=units), tuple(long)
