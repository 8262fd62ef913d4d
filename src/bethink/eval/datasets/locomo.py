"""LoCoMo: ten long conversations between two people, and questions about them.

Maharana et al., ACL 2024. A turn's text is the utterance plus, where a picture was
shared, its caption, as its authors do; ``captions=False`` leaves that out.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from bethink.core.text import has_substance
from bethink.errors import Refused
from bethink.eval.case import Case, Dataset, Level, Question, day_after, neutral_id
from bethink.eval.datasets.jsonl import find_data_file, read_records, require_field
from bethink.lang.words import MONTHS
from bethink.model import Draft

PUBLISHED = "locomo10.json by the LoCoMo project (snap-research/locomo)"
NAMES = ("locomo*.json", "locomo*.json.gz", "*.json", "*.json.gz")
CATEGORIES = {1: "multi-hop", 2: "temporal", 3: "open-domain", 4: "single-hop", 5: "adversarial"}
GROUPS = {"categories 1-4": tuple(CATEGORIES[number] for number in (1, 2, 3, 4))}

_SESSION = re.compile(r"session_(\d+)")
_TURN = re.compile(r"D:?(\d+):(\d+)")
_DATE = re.compile(r"(\d{1,2}):(\d{2}) ([ap])m on (\d{1,2}) ([A-Za-z]+),? (\d{4})")


def locomo(path: Path | None, *, level: Level = "turn", captions: bool = True) -> Dataset:
    """One space per conversation; the units are turns, or their sessions."""
    file = find_data_file(path, NAMES, PUBLISHED)

    def cases() -> Iterator[Case]:
        for number, record in enumerate(read_records(file)):
            yield _read_case(record, f"{file}[{number}]", level, captions)

    return Dataset(
        name="locomo" if captions else "locomo-plain",
        title=f"LoCoMo, {level}s" + ("" if captions else ", without picture captions"),
        cases=cases,
        level=level,
        groups=GROUPS,
    )


def _read_case(record: dict[str, Any], place: str, level: Level, captions: bool) -> Case:
    name = str(require_field(record, "sample_id", place))
    rows = list(_turns(require_field(record, "conversation", place, dict), name, place, captions))
    # References a question may use as evidence, and the unit each counts for.
    units = {ref: session if level == "session" else ref for ref, _, session in rows}
    qa = require_field(record, "qa", place, list)
    questions = [
        question
        for number, entry in enumerate(qa)
        if (question := _question(entry, f"{name}/q{number}", f"{place}.qa[{number}]", units))
    ]
    drafts = tuple(draft for _, draft, _ in rows)
    return Case(
        name=name,
        questions=tuple(questions),
        drafts=drafts,
        refs=tuple(ref for ref, _, _ in rows),
        units=tuple(units[ref] for ref, _, _ in rows),
        now=day_after(drafts),
        skipped=len(qa) - len(questions),
    )


def _turns(
    conversation: dict[str, Any], name: str, place: str, captions: bool
) -> Iterator[tuple[str, Draft, str]]:
    """Yield ref, draft and session of every turn, in order."""
    numbers = sorted(int(m.group(1)) for key in conversation if (m := _SESSION.fullmatch(key)))
    for number in numbers:
        session = f"{name}/D{number}"
        key = f"session_{number}"
        moment = read_date(str(conversation.get(f"{key}_date_time", "")), f"{place}.{key}")
        for seq, turn in enumerate(require_field(conversation, key, place, list)):
            at = f"{place}.{key}[{seq}]"
            ref, speaker = (
                f"{name}/{require_field(turn, 'dia_id', at)}",
                require_field(turn, "speaker", at, str),
            )
            text = _turn_text(turn, captions)
            if not has_substance(text):
                continue  # only punctuation, such as a smiley
            draft = Draft(
                text,
                id=neutral_id(ref),
                level="raw",
                speaker=speaker,
                session=neutral_id(session),
                seq=seq,
                occurred_at=moment,
                source="conversation",
                force=True,
            )
            yield ref, draft, session


def _turn_text(turn: dict[str, Any], captions: bool) -> str:
    text = str(turn.get("text") or "").strip()
    caption = str(turn.get("blip_caption") or "").strip() if captions else ""
    return f"{text} (shares {caption})".strip() if caption else text


def _question(entry: Any, key: str, place: str, units: dict[str, str]) -> Question | None:
    """Build a question; None where its evidence names no existing turn."""
    text = require_field(entry, "question", place, str)
    name = key.rpartition("/")[0]
    named = _TURN.findall(str(entry.get("evidence", "")))
    turns = [f"{name}/D{int(session)}:{int(turn)}" for session, turn in named]
    relevant = {units[turn]: 1.0 for turn in turns if turn in units}
    if not relevant:
        return None
    category = str(entry.get("category", 0))
    known = CATEGORIES.get(int(category)) if category.isdecimal() else None
    return Question(key, text, relevant, known or category)


def read_date(text: str, place: str) -> datetime:
    """Parse ``1:56 pm on 8 May, 2023``; the data names no zone, so UTC."""
    found = _DATE.search(text)
    if found is None or found.group(5).lower() not in MONTHS:
        raise Refused(f"{place}: {text!r} is not a date as LoCoMo writes it")
    hour, minute, half, day, month, year = found.groups()
    hours = int(hour) % 12 + (12 if half == "p" else 0)
    date = (int(year), MONTHS.index(month.lower()) + 1, int(day))
    try:
        return datetime(*date, hours, int(minute), tzinfo=UTC)
    except ValueError as error:
        raise Refused(f"{place}: {text!r} is not a valid date: {error}") from error
