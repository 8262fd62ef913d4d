"""Public sets of conversations: LoCoMo and LongMemEval.

LoCoMo (Maharana et al., ACL 2024): ten long conversations between two people. A turn's
text is the utterance plus, where a picture was shared, its caption, as its authors do.

LongMemEval (Wu et al., ICLR 2025): questions about a user's long history of chats with an
assistant, each with a haystack of its own. The ``official`` protocol stores the user's
turns, skips abstention questions, and leaves out those that only the assistant's turns
answer; ``all`` stores and asks everything.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

from bethink.core.characters import has_substance
from bethink.core.json_values import Json
from bethink.errors import Refused
from bethink.eval.case import Case, Dataset, Level, Question, make_case, neutral_id
from bethink.eval.datasets.jsonl import find_data_file, read_records, require_field, require_type
from bethink.lang.words import MONTHS
from bethink.model import Draft

LOCOMO_PUBLISHED = "locomo10.json by the LoCoMo project (snap-research/locomo)"
_LOCOMO_NAMES = ("locomo*.json", "locomo*.json.gz", "*.json", "*.json.gz")
CATEGORIES = {1: "multi-hop", 2: "temporal", 3: "open-domain", 4: "single-hop", 5: "adversarial"}
GROUPS = {"categories 1-4": tuple(CATEGORIES[number] for number in (1, 2, 3, 4))}

_SESSION = re.compile(r"session_(\d+)")
_TURN = re.compile(r"D:?(\d+):(\d+)")
_LOCOMO_DATE = re.compile(r"(\d{1,2}):(\d{2}) ([ap])m on (\d{1,2}) ([A-Za-z]+),? (\d{4})")


def locomo(path: Path | None, *, level: Level = "turn") -> Dataset:
    """One space per conversation; the units are turns, or their sessions."""
    file = find_data_file(path, _LOCOMO_NAMES, LOCOMO_PUBLISHED)

    def cases() -> Iterator[Case]:
        for number, record in enumerate(read_records(file)):
            yield _locomo_case(record, f"{file}[{number}]", level)

    return Dataset(
        name="locomo", title=f"LoCoMo, {level}s", cases=cases, level=level, groups=GROUPS
    )


def _locomo_case(record: Json, place: str, level: Level) -> Case:
    name = str(require_field(record, "sample_id", place))
    rows = list(_locomo_turns(require_field(record, "conversation", place, dict), name, place))
    # References a question may use as evidence, and the unit each counts for.
    units = {ref: session if level == "session" else ref for ref, _, session in rows}
    qa = require_field(record, "qa", place, list)
    made = (
        _locomo_question(entry, f"{name}/q{number}", f"{place}.qa[{number}]", units)
        for number, entry in enumerate(qa)
    )
    questions = [question for question in made if question is not None]
    judged = ((ref, draft, units[ref]) for ref, draft, _ in rows)
    return make_case(name, questions, judged, skipped=len(qa) - len(questions))


def _locomo_turns(conversation: Json, name: str, place: str) -> Iterator[tuple[str, Draft, str]]:
    """Yield ref, draft and session of every turn, in order."""
    numbers = sorted(int(m.group(1)) for key in conversation if (m := _SESSION.fullmatch(key)))
    for number in numbers:
        session = f"{name}/D{number}"
        key = f"session_{number}"
        moment = read_locomo_date(str(conversation.get(f"{key}_date_time", "")), f"{place}.{key}")
        for seq, turn in enumerate(require_field(conversation, key, place, list)):
            at = f"{place}.{key}[{seq}]"
            ref, speaker = (
                f"{name}/{require_field(turn, 'dia_id', at)}",
                require_field(turn, "speaker", at, str),
            )
            text = _turn_text(turn)
            if not has_substance(text):
                continue  # only punctuation, such as a smiley
            yield ref, _turn_draft(text, ref, speaker, session, seq, moment), session


def _turn_draft(  # noqa: PLR0917 - the fields of a turn
    text: str, ref: str, speaker: str, session: str, seq: int, moment: datetime
) -> Draft:
    return Draft(
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


def _turn_text(turn: Json) -> str:
    text = str(turn.get("text") or "").strip()
    caption = str(turn.get("blip_caption") or "").strip()
    return f"{text} (shares {caption})".strip() if caption else text


def _locomo_question(entry: Json, key: str, place: str, units: dict[str, str]) -> Question | None:
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


def read_locomo_date(text: str, place: str) -> datetime:
    """Parse ``1:56 pm on 8 May, 2023``; the data names no zone, so UTC."""
    found = _LOCOMO_DATE.search(text)
    if found is None or found.group(5).lower() not in MONTHS:
        raise Refused(f"{place}: {text!r} is not a date as LoCoMo writes it")
    hour, minute, half, day, month, year = found.groups()
    hours = int(hour) % 12 + (12 if half == "p" else 0)
    date = (int(year), MONTHS.index(month.lower()) + 1, int(day))
    try:
        return datetime(*date, hours, int(minute), tzinfo=UTC)
    except ValueError as error:
        raise Refused(f"{place}: {text!r} is not a valid date: {error}") from error


Protocol = Literal["official", "all"]

LONGMEMEVAL_PUBLISHED = "longmemeval_s.json by the LongMemEval project (xiaowu0162/LongMemEval)"
_LONGMEMEVAL_NAMES = ("longmemeval*.json*", "*.jsonl", "*.json", "*.jsonl.gz", "*.json.gz")
UNANSWERABLE = "abstention"

_LONGMEMEVAL_DATE = re.compile(r"(\d{4})/(\d{2})/(\d{2}) \(\w+\) (\d{2}):(\d{2})")


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
    file = find_data_file(path, _LONGMEMEVAL_NAMES, LONGMEMEVAL_PUBLISHED)

    def cases() -> Iterator[Case]:
        for number, record in enumerate(read_records(file)):
            yield _haystack_case(record, f"{file}[{number}]", level, protocol)

    text_kind = "official protocol: user turns" if protocol == "official" else "all text"
    return Dataset(
        name=f"longmemeval-{protocol}",
        title=f"LongMemEval, {level}s, {text_kind}",
        cases=cases,
        level=level,
    )


def _haystack_case(record: Json, place: str, level: Level, protocol: Protocol) -> Case:
    name = str(require_field(record, "question_id", place))
    for field in ("question", "question_type", "question_date"):
        require_field(record, field, place, str)
    require_field(record, "answer_session_ids", place, list)
    turns = [
        turn
        for turn in _haystack_turns(record, place)
        if has_substance(turn.draft.text) and (protocol == "all" or turn.role == "user")
    ]
    question = _haystack_question(record, turns, level, protocol)
    rows = ((one.ref, one.draft, one.session if level == "session" else one.ref) for one in turns)
    if question is None:
        return make_case(name, (), rows, skipped=1)
    return make_case(name, [question], rows, now=question.now)


def _haystack_turns(record: Json, place: str) -> Iterator[_Turn]:
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
        moment = read_longmemeval_date(str(date), f"{place}.haystack_dates[{number}]")
        there = f"{place}.haystack_sessions[{number}]"
        for seq, turn in enumerate(require_type(sessions[number], there, list)):
            ref, role = f"{stem}:{seq}", require_field(turn, "role", f"{there}[{seq}]", str)
            text = require_field(turn, "content", f"{there}[{seq}]", str).strip()
            draft = _turn_draft(text, ref, role, stem, seq, moment)
            yield _Turn(ref, session, draft, role, bool(turn.get("has_answer")))


def _haystack_question(
    record: Json, turns: list[_Turn], level: Level, protocol: Protocol
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
        now=read_longmemeval_date(record["question_date"], f"question {name}"),
    )


def read_longmemeval_date(text: str, place: str) -> datetime:
    """Parse ``2023/05/20 (Sat) 00:29``; the data names no zone, so UTC."""
    found = _LONGMEMEVAL_DATE.search(text)
    if found is None:
        raise Refused(f"{place}: {text!r} is not a date as LongMemEval writes it")
    year, month, day, hour, minute = map(int, found.groups())
    try:
        return datetime(year, month, day, hour, minute, tzinfo=UTC)
    except ValueError as error:
        raise Refused(f"{place}: {text!r} is not a valid date: {error}") from error
