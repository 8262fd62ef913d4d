"""Questions asked of a memory that cannot know the answer: silence would be right."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from random import Random
from typing import Literal

from recollect.dates.names import MONTHS, WEEKDAYS
from recollect.eval.case import Case, Question
from recollect.model import Draft

Foreign = Literal["off", "easy", "hard"]

_NAME = re.compile(r"(?<![.!?:] )(?<!^)\b[A-Z][a-z]{2,}\b")
_WORD = re.compile(r"\b[A-Z][a-z]{2,}\b")
_ROLES = ("user", "assistant", "system")
# Capitalised wherever they stand, and nobody's name.
_CALENDAR = frozenset(word.capitalize() for word in (*WEEKDAYS, *MONTHS, "english", "christmas"))
# Words a question begins with; everything else there may be a name.
_OPENERS = frozenset(
    (
        *("What", "When", "Where", "Which", "Who", "Whom", "Whose", "Why", "How"),
        *("Did", "Does", "Has", "Have", "Had", "Was", "Were", "Are", "Can", "Could"),
        *("Would", "Should", "Will", "Shall", "Might", "The", "And", "For", "From", "Based"),
        *("According", "Name", "List", "Tell", "Give", "Please", "Since", "Considering"),
        *("Before", "After", "During", "Between"),
    )
)


def draw(strangers: Sequence[Case], target: Case, count: int, seed: int) -> list[Question]:
    """``count`` questions of other cases, the same for the same seed."""
    others = [
        replace(question, key=f"{question.key}@{target.name}", relevant={}, filters={})
        for case in strangers
        for question in case.questions
        if case.name != target.name and question.answerable
    ]
    random = Random(f"{seed}/{target.name}")  # noqa: S311 - drawn to be repeatable
    chosen = random.sample(others, min(count, len(others)))
    # The moment of another case may lie before anything that this one remembers.
    return [replace(question, now=target.now) for question in chosen]


def disguise(question: Question, known: Sequence[str]) -> Question:
    """The question with its proper names replaced by names that the memory knows.

    Without the names of strangers it must be told by its subject that it is foreign.
    """
    strangers = [
        word
        for word in dict.fromkeys(_WORD.findall(question.text))
        if word not in known and word not in _OPENERS and word not in _CALENDAR
    ]
    text = question.text
    for place, stranger in enumerate(strangers):
        if known:
            text = re.sub(rf"\b{stranger}\b", known[place % len(known)], text)
    return replace(question, text=text)


def names_in(drafts: Iterable[Draft], limit: int = 30) -> list[str]:
    """Proper names of a memory, the speakers first, then the most frequent."""
    speakers: Counter[str] = Counter()
    found: Counter[str] = Counter()
    for draft in drafts:
        if draft.speaker and draft.speaker not in _ROLES:
            speakers[draft.speaker] += 1
        found.update(_NAME.findall(draft.text))
    ranked = [
        name
        for name, _ in sorted(found.items(), key=lambda pair: (-pair[1], pair[0]))
        if name not in _CALENDAR and name not in _OPENERS and name not in speakers
    ]
    return [*sorted(speakers, key=lambda name: (-speakers[name], name)), *ranked[:limit]]
