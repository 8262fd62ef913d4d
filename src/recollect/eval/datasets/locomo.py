"""LoCoMo: ten long conversations between two people, and questions about them.

Maharana et al., ACL 2024. A turn's text is what was said plus, where a picture was
shared, its caption, as its authors do; ``captions=False`` leaves that out.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from recollect.dates.names import MONTHS
from recollect.errors import Refused
from recollect.eval.case import Case, Dataset, Level, Question, after, neutral_id
from recollect.eval.datasets.files import field, locate, read_records
from recollect.model import Draft
from recollect.text import has_substance

PUBLISHED = "locomo10.json by the LoCoMo project (snap-research/locomo)"
NAMES = ("locomo*.json", "locomo*.json.gz", "*.json", "*.json.gz")
CATEGORIES = {1: "multi-hop", 2: "temporal", 3: "open-domain", 4: "single-hop", 5: "adversarial"}
GROUPS = {"categories 1-4": tuple(CATEGORIES[number] for number in (1, 2, 3, 4))}

_SESSION = re.compile(r"session_(\d+)")
_TURN = re.compile(r"D:?(\d+):(\d+)")
_DATE = re.compile(r"(\d{1,2}):(\d{2}) ([ap])m on (\d{1,2}) ([A-Za-z]+),? (\d{4})")


def locomo(path: Path | None, *, level: Level = "turn", captions: bool = True) -> Dataset:
    """A space a conversation; answers are turns, or the sessions they stand in."""
    file = locate(path, NAMES, PUBLISHED)

    def cases() -> Iterator[Case]:
        for number, record in enumerate(read_records(file)):
            yield _case(record, f"{file}[{number}]", level, captions)

    return Dataset(
        name="locomo" if captions else "locomo-plain",
        title=f"LoCoMo, {level}s" + ("" if captions else ", without picture captions"),
        cases=cases,
        level=level,
        groups=GROUPS,
    )


def _case(record: dict[str, Any], place: str, level: Level, captions: bool) -> Case:
    name = str(field(record, "sample_id", place))
    rows = list(_turns(field(record, "conversation", place), name, captions))
    turns = {ref for ref, _, _ in rows}
    questions = [
        question
        for number, entry in enumerate(field(record, "qa", place))
        if (question := _question(entry, f"{name}/q{number}", name, turns, level))
    ]
    drafts = tuple(draft for _, draft, _ in rows)
    return Case(
        name=name,
        questions=tuple(questions),
        drafts=drafts,
        refs=tuple(ref for ref, _, _ in rows),
        units=tuple(session if level == "session" else ref for ref, _, session in rows),
        now=after(drafts),
        skipped=len(record["qa"]) - len(questions),
    )


def _turns(
    conversation: dict[str, Any], name: str, captions: bool
) -> Iterator[tuple[str, Draft, str]]:
    """Ref, draft and session of every turn, in the order they were said."""
    numbers = sorted(int(m.group(1)) for key in conversation if (m := _SESSION.fullmatch(key)))
    for number in numbers:
        session = f"{name}/D{number}"
        moment = read_date(str(conversation.get(f"session_{number}_date_time", "")))
        for seq, turn in enumerate(conversation[f"session_{number}"]):
            text = _said(turn, captions)
            if not has_substance(text):
                continue  # a smiley of punctuation is nothing to remember
            ref = f"{name}/{turn['dia_id']}"
            draft = Draft(
                text,
                id=neutral_id(ref),
                level="raw",
                speaker=str(turn["speaker"]),
                session=neutral_id(session),
                seq=seq,
                occurred_at=moment,
                source="conversation",
                force=True,
            )
            yield ref, draft, session


def _said(turn: dict[str, Any], captions: bool) -> str:
    text = str(turn.get("text") or "").strip()
    caption = str(turn.get("blip_caption") or "").strip() if captions else ""
    return f"{text} (shares {caption})".strip() if caption else text


def _question(
    entry: dict[str, Any], key: str, name: str, turns: set[str], level: Level
) -> Question | None:
    """None where no turn that exists is named as evidence."""
    pairs = [
        (int(session), int(turn))
        for evidence in entry.get("evidence", ())
        for session, turn in _TURN.findall(evidence)
    ]
    known = [pair for pair in pairs if f"{name}/D{pair[0]}:{pair[1]}" in turns]
    units = {
        f"{name}/D{session}" if level == "session" else f"{name}/D{session}:{turn}": 1.0
        for session, turn in known
    }
    if not units:
        return None
    number = int(entry.get("category", 0))
    return Question(key, str(entry["question"]), units, CATEGORIES.get(number, str(number)))


def read_date(text: str) -> datetime:
    """``1:56 pm on 8 May, 2023`` as a moment; the data names no zone, so UTC."""
    found = _DATE.search(text)
    if found is None or found.group(5).lower() not in MONTHS:
        raise Refused(f"{text!r} is not a date as LoCoMo writes it")
    hour, minute, half, day, month, year = found.groups()
    return datetime(
        int(year),
        MONTHS.index(month.lower()) + 1,
        int(day),
        int(hour) % 12 + (12 if half == "p" else 0),
        int(minute),
        tzinfo=UTC,
    )
