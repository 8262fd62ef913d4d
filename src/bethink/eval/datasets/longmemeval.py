"""LongMemEval: questions about a user's long history of chats with an assistant.

Wu et al., ICLR 2025. Each question has a haystack of its own. The ``official``
protocol stores the user's turns, skips abstention questions, and leaves out those
that only the assistant's turns answer; ``all`` stores and asks everything.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

from bethink.core.text import has_substance
from bethink.errors import Refused
from bethink.eval.case import Case, Dataset, Level, Question, day_after, neutral_id
from bethink.eval.datasets.jsonl import find_data_file, read_records, require_field, require_type
from bethink.model import Draft

Protocol = Literal["official", "all"]

PUBLISHED = "longmemeval_s.json by the LongMemEval project (xiaowu0162/LongMemEval)"
NAMES = ("longmemeval*.json*", "*.jsonl", "*.json", "*.jsonl.gz", "*.json.gz")
UNANSWERABLE = "abstention"

_DATE = re.compile(r"(\d{4})/(\d{2})/(\d{2}) \(\w+\) (\d{2}):(\d{2})")


@dataclass(frozen=True, slots=True)
class _Turn:
    ref: str
    session: str
    draft: Draft
    role: str
    is_evidence: bool


def longmemeval(
    path: Path | None, *, level: Level = "turn", protocol: Protocol = "official"
) -> Dataset:
    """One space per question; the units are turns, or their sessions."""
    file = find_data_file(path, NAMES, PUBLISHED)

    def cases() -> Iterator[Case]:
        for number, record in enumerate(read_records(file)):
            yield _read_case(record, f"{file}[{number}]", level, protocol)

    text_kind = "official protocol: user turns" if protocol == "official" else "all text"
    return Dataset(
        name=f"longmemeval-{protocol}",
        title=f"LongMemEval, {level}s, {text_kind}",
        cases=cases,
        level=level,
    )


def _read_case(record: dict[str, Any], place: str, level: Level, protocol: Protocol) -> Case:
    name = str(require_field(record, "question_id", place))
    for field in ("question", "question_type", "question_date"):
        require_field(record, field, place, str)
    require_field(record, "answer_session_ids", place, list)
    turns = [
        turn
        for turn in _turns(record, place)
        if has_substance(turn.draft.text) and (protocol == "all" or turn.role == "user")
    ]
    question = _question(record, turns, level, protocol)
    drafts = tuple(turn.draft for turn in turns)
    return Case(
        name=name,
        questions=(question,) if question else (),
        drafts=drafts,
        refs=tuple(turn.ref for turn in turns),
        units=tuple(turn.session if level == "session" else turn.ref for turn in turns),
        now=question.now if question and question.now else day_after(drafts),
        skipped=0 if question else 1,
    )


def _turns(record: dict[str, Any], place: str) -> Iterator[_Turn]:
    names = require_field(record, "haystack_session_ids", place, list)
    dates = require_field(record, "haystack_dates", place, list)
    sessions = require_field(record, "haystack_sessions", place, list)
    if not len(names) == len(dates) == len(sessions):
        raise Refused(f"{place}: numbers of sessions, ids and dates differ")
    seen: Counter[str] = Counter()
    for number, (session, date) in enumerate(zip(map(str, names), dates, strict=True)):
        # A filler session may occur twice in one haystack.
        seen[session] += 1
        stem = session if seen[session] == 1 else f"{session}#{seen[session]}"
        moment = read_date(str(date), f"{place}.haystack_dates[{number}]")
        there = f"{place}.haystack_sessions[{number}]"
        for seq, turn in enumerate(require_type(sessions[number], there, list)):
            ref, role = f"{stem}:{seq}", require_field(turn, "role", f"{there}[{seq}]", str)
            draft = Draft(
                require_field(turn, "content", f"{there}[{seq}]", str).strip(),
                id=neutral_id(ref),
                level="raw",
                speaker=role,
                session=neutral_id(stem),
                seq=seq,
                occurred_at=moment,
                source="conversation",
                force=True,
            )
            yield _Turn(ref, session, draft, role, bool(turn.get("has_answer")))


def _question(
    record: dict[str, Any], turns: list[_Turn], level: Level, protocol: Protocol
) -> Question | None:
    """Build the question; None where the protocol skips it."""
    name = str(record["question_id"])
    category: str = record["question_type"]
    evidence = [turn for turn in turns if turn.is_evidence]
    if name.endswith("_abs"):
        if protocol == "official":
            return None
        units: set[str] = set()
        category = UNANSWERABLE
    elif level == "turn":
        units = {turn.ref for turn in evidence}
    elif protocol == "official":
        units = {turn.session for turn in evidence}
    else:
        units = set(map(str, record["answer_session_ids"]))
    if not units and category != UNANSWERABLE:
        return None
    return Question(
        key=name,
        text=record["question"],
        relevant=dict.fromkeys(sorted(units), 1.0),
        category=category,
        now=read_date(record["question_date"], f"question {name}"),
    )


def read_date(text: str, place: str) -> datetime:
    """Parse ``2023/05/20 (Sat) 00:29``; the data names no zone, so UTC."""
    found = _DATE.search(text)
    if found is None:
        raise Refused(f"{place}: {text!r} is not a date as LongMemEval writes it")
    year, month, day, hour, minute = map(int, found.groups())
    try:
        return datetime(year, month, day, hour, minute, tzinfo=UTC)
    except ValueError as error:
        raise Refused(f"{place}: {text!r} is not a valid date: {error}") from error
