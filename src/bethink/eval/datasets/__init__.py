"""Data sets by name, and those found at a path. A new one is a loader and an entry.

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
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from datetime import UTC, datetime
from fnmatch import fnmatchcase
from importlib import resources
from itertools import islice
from pathlib import Path
from typing import Literal

from bethink.core.characters import has_substance
from bethink.core.json_values import Json
from bethink.errors import Refused
from bethink.eval.case import Case, Dataset, Level, Question, make_case, neutral_id
from bethink.eval.datasets.jsonl import (
    beir,
    find_data_file,
    jsonl_dataset,
    notes_dataset,
    open_text,
    read_records,
    require_field,
    require_type,
    store_files,
)
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


@dataclass(frozen=True, slots=True)
class DatasetOptions:
    """Options for reading a data set; an unsupported one is refused, not ignored."""

    path: Path | None = None
    level: Level = "turn"
    protocol: Protocol = "official"
    split: str | None = None
    corpus: Path | None = None
    space: str | None = None
    limit: int = 0


def _builtin_folder() -> Path:
    return Path(str(resources.files("bethink.eval") / "builtin"))


def _builtin() -> Dataset:
    folder = _builtin_folder()
    opened = jsonl_dataset(
        folder / "questions.jsonl", corpus=folder / "memories.jsonl", name="builtin"
    )
    return replace(opened, title="the small set that comes with Bethink")


def _notes(path: Path | None) -> Dataset:
    if path is None:
        opened = notes_dataset(_builtin_folder() / "notes", name="notes")
        return replace(opened, title="three stores of notes that come with Bethink")
    if not path.exists():
        raise Refused(f"there is no file or folder {path}")
    return notes_dataset(path)


# By name: what opens a data set, and the options that it has a use for.
DATASETS: dict[str, tuple[Callable[..., Dataset], tuple[str, ...]]] = {
    "builtin": (_builtin, ()),
    "notes": (_notes, ("path",)),
    "locomo": (locomo, ("path", "level")),
    "longmemeval": (longmemeval, ("path", "level", "protocol")),
    "beir": (beir, ("path", "split")),
    "jsonl": (jsonl_dataset, ("path", "corpus", "space")),
}
# Measured where nothing is named: they come with Bethink.
OWN_SETS = ("notes", "builtin")


def open_dataset(name: str, options: DatasetOptions) -> Dataset:
    """Open a data set; its cases can be iterated repeatedly."""
    if name not in DATASETS:
        raise Refused(f"there is no data set {name!r}", remedy=f"there are: {', '.join(DATASETS)}")
    opener, supported = DATASETS[name]
    for option in fields(options):
        is_used = option.name in (*supported, "limit")
        if not is_used and getattr(options, option.name) != option.default:
            raise Refused(f"data set {name} has no use for {option.name}")
    dataset = opener(**{option: getattr(options, option) for option in supported})
    if limit := options.limit:
        every, title = dataset.cases, f"{dataset.title}, first {limit}"
        dataset = replace(dataset, cases=lambda: islice(every(), limit), title=title)
    return dataset


def find_datasets(paths: Sequence[Path], options: DatasetOptions) -> list[Dataset]:
    """Open every data set in these files and folders; the format is detected from the content.

    LongMemEval is measured by turns and by sessions, unless a level was asked for.
    """
    found: dict[str, Dataset] = {}
    for path in paths:
        if not path.exists():
            raise Refused(
                f"there is no data set, file or folder {path}",
                remedy=f"data sets by name: {', '.join(DATASETS)}",
            )
        before = len(found)
        for name, place in _sets_at(path):
            for dataset in _opened(name, place, options):
                if dataset.label in found:
                    raise Refused(f"two data sets are called {dataset.label!r}: {place}")
                found[dataset.label] = dataset
        if len(found) == before:
            raise Refused(f"{path} contains no data set of a known format")
    return list(found.values())


def select_datasets(datasets: Sequence[Dataset], patterns: Sequence[str]) -> list[Dataset]:
    """The data sets whose name matches one of the patterns; all without patterns."""
    for pattern in patterns:
        if not any(fnmatchcase(dataset.label, pattern) for dataset in datasets):
            names = ", ".join(dataset.label for dataset in datasets)
            raise Refused(f"no data set is called {pattern!r}", remedy=f"there are: {names}")
    return [
        dataset
        for dataset in datasets
        if not patterns or any(fnmatchcase(dataset.label, pattern) for pattern in patterns)
    ]


def _opened(name: str, place: Path, options: DatasetOptions) -> Iterator[Dataset]:
    """Open one set; options that it has no use for are for others."""
    supported = {option: getattr(options, option) for option in DATASETS[name][1]}
    own = DatasetOptions(limit=options.limit, **{**supported, "path": place})
    yield open_dataset(name, own)
    if name == "longmemeval" and own.level == "turn":
        yield open_dataset(name, replace(own, level="session"))


def _sets_at(path: Path) -> Iterator[tuple[str, Path]]:
    """Yield the format and the place of every data set at a path."""
    if path.is_file():
        if (name := _format_of(path)) is not None:
            yield name, path
        return
    if (path / "qrels").is_dir():
        yield "beir", path
        return
    stores = store_files(path)
    if stores:
        yield "notes", path
    taken = {file for pair in stores.values() for file in pair}
    for entry in sorted(path.iterdir()):
        if entry not in taken and not entry.name.startswith("."):
            yield from _sets_at(entry)


_SNIFFED_CHARACTERS = 1 << 16
_KEYS_OF_FORMATS = {
    "longmemeval": ('"haystack_', '"question_type"'),
    "locomo": ('"qa"', '"evidence"', '"conversation"'),
}


def _format_of(file: Path) -> str | None:
    """The format of a single file by its ending and its first keys; None where unknown."""
    if not any(ending in file.suffixes for ending in (".json", ".jsonl")):
        return None
    if store_files(file):
        return "notes"
    with open_text(file) as stream:
        beginning = stream.read(_SNIFFED_CHARACTERS)
    for name, keys in _KEYS_OF_FORMATS.items():
        if any(key in beginning for key in keys):
            return name
    return None
