"""Data sets of JSON Lines: the user's own questions, stores of notes, and BEIR folders.

Own questions have the form ``{"query": …, "relevant": [ids or text], …}``. They are
run against an existing space, or against memories given in a second file. An entry of
``relevant`` is an id or a part of the text; an empty list means that nothing answers
the question. ``category``, ``now``, ``filters`` and ``outdated`` (what a relevant memory
corrects) are optional; ``question``, ``type`` and ``asked_at`` are other names of query,
category and now. A store is a pair of files, ``NAME.jsonl`` and ``NAME.questions.jsonl``
or memories.jsonl and questions.jsonl in a folder; several stores in a folder are one set.
BEIR folders have corpus.jsonl, queries.jsonl and qrels/*.tsv (Thakur et al., NeurIPS 2021).
"""

from __future__ import annotations

import gzip
import json
import zlib
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from itertools import chain
from pathlib import Path
from typing import Any, TextIO, TypeVar

from bethink.api.questions import SavedQuestion
from bethink.core.characters import has_substance
from bethink.core.json_values import Json
from bethink.errors import Refused
from bethink.eval.case import EPOCH, Case, Dataset, Question, make_case, neutral_id
from bethink.ingest.admission import make_draft
from bethink.lang.dates import parse_moment
from bethink.model import Draft
from bethink.retrieval.query_builder import make_filters

T = TypeVar("T")

_TYPE_NAMES: dict[type, str] = {
    str: "text", list: "a list", dict: "an object", int: "a number", float: "a number",
    bool: "true or false", type(None): "null",
}  # fmt: skip


def find_data_file(path: Path | None, names: Sequence[str], published: str) -> Path:
    """Find the file by its path or in its folder; raise Refused where there is none."""
    where = f"the data is published as {published}"
    if path is None:
        raise Refused("this data set needs a path", remedy=f"{where}; give its path")
    if path.is_dir():
        for name in names:
            for found in sorted(path.glob(name)):
                return found
        raise Refused(f"{path} contains none of {', '.join(names)}", remedy=where)
    if not path.exists():
        raise Refused(f"there is no file {path}", remedy=where)
    return path


def read_records(path: Path) -> Iterator[Json]:
    """Yield the objects of a file: one JSON list, or one object per line."""
    return (record for _, record in read_records_with_location(path))


def read_records_with_location(path: Path) -> Iterator[tuple[str, Json]]:
    """Yield the objects of a file, each with its location."""
    with open_text(path) as stream:
        first, line = stream.read(1), 1
        while first.isspace():
            line += first == "\n"
            first = stream.read(1)
        if first == "[":
            for number, record in enumerate(_parse(first + stream.read(), str(path))):
                yield f"{path}[{number}]", require_type(record, f"{path}[{number}]", dict)
            return
        for number, text in enumerate(chain((first + stream.readline(),), stream), start=line):
            if text.strip():
                place = f"{path}:{number}"
                yield place, require_type(_parse(text, place), place, dict)


def read_lines(path: Path) -> Iterator[str]:
    """Yield the lines of a text file, without line endings."""
    with open_text(path) as stream:
        for line in stream:
            yield line.rstrip("\r\n")


@contextmanager
def open_text(path: Path) -> Iterator[TextIO]:
    """Open the file as text, gzipped or not; raise Refused where it is corrupt."""
    with path.open("rb") as start:
        packed = start.read(2) == b"\x1f\x8b"
    unpack = gzip.open if packed else open
    try:
        with unpack(path, "rt", encoding="utf-8-sig") as stream:
            yield stream
    except (UnicodeDecodeError, EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise Refused(f"cannot read {path}: {error}") from error


def _parse(text: str, place: str) -> Any:
    try:
        return json.loads(text)
    except (json.JSONDecodeError, RecursionError) as error:
        raise Refused(f"{place}: not valid JSON: {error}") from error


def require_field(record: object, name: str, location: str, kind: type[T] = object) -> T:  # type: ignore[assignment]
    """Return a required field of a given type; ``location`` is for the error message."""
    fields: Json = require_type(record, location, dict)
    if name not in fields:
        raise Refused(f"{location}: the field {name!r} is missing")
    return require_type(fields[name], f"{location}: {name}", kind)


def require_type(value: object, location: str, kind: type[T]) -> T:
    """Return the value if it has the type, else raise Refused."""
    if not isinstance(value, kind):
        raise Refused(f"{location}: expected {_TYPE_NAMES[kind]}, found {_TYPE_NAMES[type(value)]}")
    return value


_TIME_FIELDS = ("occurred_at", "occurred_end", "valid_from", "valid_to")


def jsonl_dataset(
    path: Path | None, *, corpus: Path | None = None, space: str | None = None, name: str = "jsonl"
) -> Dataset:
    """Questions from a file, run against ``corpus`` or else against ``space``."""
    if path is None or not path.is_file():
        raise Refused(
            f"there is no file {path}" if path else "this data set needs a path: your questions",
            remedy='write one question per line: {"query": "…", "relevant": ["id or text"]}',
        )
    if corpus is not None and not corpus.is_file():
        raise Refused(
            f"there is no file {corpus}", remedy='write one memory per line: {"text": "…"}'
        )
    if corpus is None and space is None:
        raise Refused("no memories to query", remedy="give --corpus FILE, or --space NAME")
    questions_file, memories_file = path, corpus

    def cases() -> Iterator[Case]:
        questions = _read_questions(questions_file)
        if memories_file:
            rows = ((ref, draft, ref) for ref, draft in _read_memories(memories_file))
            yield make_case(questions_file.stem, questions, rows)
        else:
            yield Case(str(space), tuple(questions), space=space)

    title = f"{path.name}" + (f" on {corpus.name}" if corpus else f" on space {space}")
    return Dataset(name=name, title=title, cases=cases)


def saved_dataset(space: str, saved: Iterable[SavedQuestion]) -> Dataset:
    """The saved questions of a space whose answers were marked."""
    questions = tuple(
        Question(
            key=f"q{number}",
            text=one.query,
            relevant=dict.fromkeys(one.relevant, 1.0),
            now=_parse_time(one.now, "now"),
            filters=one.filters,
        )
        for number, one in enumerate(saved, start=1)
        if one.relevant is not None
    )
    if not questions:
        raise Refused(
            f"{space} has no saved questions with marked answers",
            remedy="mark answers in the inspector (bethink ui), or give a file of questions",
        )
    case = Case(space, questions, space=space)
    return Dataset("saved", f"the saved questions of {space}", lambda: iter((case,)))


QUESTIONS_ENDING = ".questions.jsonl"


def store_files(path: Path) -> dict[str, tuple[Path, Path]]:
    """The stores at a path, by name: the file of the memories and that of the questions."""
    if path.is_file():
        memories = memories_of(path)
        return {} if memories is None else {_stem(memories): (memories, path)}
    pairs = {
        _stem(memories): (memories, questions)
        for questions in sorted(path.glob(f"*{QUESTIONS_ENDING}*"))
        if (memories := memories_of(questions))
    }
    whole = [_packed_or_plain(path / f"{stem}.jsonl") for stem in ("memories", "questions")]
    if whole[0] and whole[1]:
        pairs[path.resolve().name] = (whole[0], whole[1])
    return pairs


def memories_of(questions: Path) -> Path | None:
    """The file of the memories that belongs to NAME.questions.jsonl; None without one."""
    stem, ending, _ = questions.name.partition(QUESTIONS_ENDING)
    return _packed_or_plain(questions.with_name(f"{stem}.jsonl")) if ending and stem else None


def _packed_or_plain(path: Path) -> Path | None:
    return next((one for one in (path, path.with_name(f"{path.name}.gz")) if one.is_file()), None)


def _stem(path: Path) -> str:
    return path.name.partition(".jsonl")[0]


def notes_dataset(path: Path, *, name: str = "") -> Dataset:
    """The stores of a folder, or one store: a space each."""
    stores = store_files(path)
    if not stores:
        raise Refused(
            f"{path} contains no store",
            remedy="a store is NAME.jsonl with NAME.questions.jsonl, or memories.jsonl with "
            "questions.jsonl",
        )
    own = name or (path.resolve().name if path.is_dir() else next(iter(stores)))

    def cases() -> Iterator[Case]:
        for store, (memories, questions) in stores.items():
            yield _store_case(store, memories, questions)

    return Dataset(name=own, title=own, cases=cases, kind=own.rstrip("0123456789-_"))


def _store_case(store: str, memories: Path, questions: Path) -> Case:
    # A turn may be nothing but punctuation.
    rows = (
        (ref, draft, ref)
        for ref, draft in _read_memories(memories, stored_as=_as_turn_or_note)
        if has_substance(draft.text)
    )
    return make_case(store, _read_questions(questions, prefix=f"{store}/"), rows)


def _as_turn_or_note(draft: Draft) -> Draft:
    """A memory of a session is a turn; everything is stored, also what looks like a log."""
    if draft.session is None:
        return draft._replace(source="note", force=True)
    return draft._replace(level="raw", source="conversation", force=True)


def _read_memories(
    path: Path, stored_as: Callable[[Draft], Draft] = lambda draft: draft
) -> Iterator[tuple[str, Draft]]:
    seen: dict[str, str] = {}
    for number, (place, record) in enumerate(read_records_with_location(path), start=1):
        ref = _require_unique(str(record.get("id", number)), place, seen)
        about = {key: value for key, value in record.items() if key != "id"}
        about["text"] = require_field(record, "text", place, str)
        with _with_location(place):
            for key in _TIME_FIELDS:
                if about.get(key) is not None:
                    about[key] = _parse_time(about[key], key)
            draft = make_draft(about)._replace(id=neutral_id(ref))
        yield ref, stored_as(draft)


_OTHER_NAMES = {"question": "query", "type": "category", "asked_at": "now"}


def _read_questions(path: Path, prefix: str = "") -> Iterator[Question]:
    seen: dict[str, str] = {}
    for number, (place, read) in enumerate(read_records_with_location(path), start=1):
        record = {_OTHER_NAMES.get(key, key): value for key, value in read.items()}
        text = require_field(record, "query", place, str)
        if not text.strip():
            raise Refused(f"{place}: the query is empty")
        filters = require_type(record.get("filters") or {}, f"{place}: filters", dict)
        now = record.get("now")
        with _with_location(place):
            moment = None if now is None else _parse_time(now, "now")
            make_filters(filters, moment or EPOCH)  # report mistakes before anything is stored
        yield Question(
            key=prefix + _require_unique(str(record.get("id", f"q{number}")), place, seen),
            text=text,
            relevant={
                str(relevant): 1.0 for relevant in require_field(record, "relevant", place, list)
            },
            category=str(record.get("category") or ""),
            now=moment,
            filters=filters,
            outdated=frozenset(
                map(str, require_type(record.get("outdated") or [], f"{place}: outdated", list))
            ),
        )


def _require_unique(name: str, location: str, seen: dict[str, str]) -> str:
    """Return the id; raise Refused if it was used before."""
    if name in seen:
        raise Refused(f"{location}: the id {name!r} is already used at {seen[name]}")
    seen[name] = location
    return name


@contextmanager
def _with_location(location: str) -> Iterator[None]:
    """Prefix the location to any refusal raised inside."""
    try:
        yield
    except Refused as error:
        raise Refused(f"{location}: {error.message}", remedy=error.remedy) from error


def _parse_time(value: object, name: str) -> datetime:
    try:
        return parse_moment(value, EPOCH)
    except ValueError as error:
        raise Refused(f"{name}: {error}") from error


PUBLISHED = "folders with corpus.jsonl, queries.jsonl and qrels by the BEIR project (beir-cellar)"
SPLITS = ("test", "dev", "train")


def beir(path: Path | None, *, split: str | None = None) -> Dataset:
    """One space with the whole corpus; the units are documents."""
    folder = _require_folder(path)
    qrels = _qrels_file(folder, split)

    def cases() -> Iterator[Case]:
        yield _read_case(folder, qrels)

    name = folder.resolve().name
    return Dataset(
        name=f"beir-{name}-{qrels.stem}", title=f"BEIR {name}, {qrels.stem} split", cases=cases
    )


def _require_folder(path: Path | None) -> Path:
    """Return the folder; raise Refused where there is none."""
    where = f"the data is published as {PUBLISHED}"
    if path is None:
        raise Refused("this data set needs a path", remedy=f"{where}; give the folder")
    if not path.is_dir():
        raise Refused(f"there is no folder {path}", remedy=where)
    return path


def _qrels_file(folder: Path, split: str | None) -> Path:
    available = {file.stem: file for file in sorted((folder / "qrels").glob("*.tsv"))}
    for name in [split] if split else [*SPLITS, *available]:
        if name in available:
            return available[name]
    missing = f"{split}.tsv" if split else ".tsv file"
    known = (
        f"available: {', '.join(available)}"
        if available
        else f"the data is published as {PUBLISHED}"
    )
    raise Refused(f"{folder / 'qrels'} contains no {missing}", remedy=known)


def _read_case(folder: Path, qrels: Path) -> Case:
    corpus = _find_file(folder, "corpus")
    rows = [
        (str(require_field(record, "_id", str(corpus))), text)
        for record in read_records(corpus)
        if has_substance(text := _title_and_text(record))
    ]
    judged = _read_qrels(qrels, {ref for ref, _ in rows})
    queries = _find_file(folder, "queries")
    questions = tuple(
        Question(key, require_field(record, "text", str(queries), str), judged[key])
        for record in read_records(queries)
        if (key := str(require_field(record, "_id", str(queries)))) in judged
    )
    answerable = [question for question in questions if question.answerable]
    documents = (
        (ref, Draft(text, id=neutral_id(ref), source="document", force=True), ref)
        for ref, text in rows
    )
    skipped = len(judged) - len(answerable)
    return make_case(folder.resolve().name, answerable, documents, skipped=skipped)


def _title_and_text(record: Json) -> str:
    parts = (str(record.get(name) or "").strip() for name in ("title", "text"))
    return "\n".join(filter(None, parts))


def _find_file(folder: Path, stem: str) -> Path:
    if found := _packed_or_plain(folder / f"{stem}.jsonl"):
        return found
    raise Refused(
        f"{folder} contains no {stem}.jsonl", remedy=f"the data is published as {PUBLISHED}"
    )


def _read_qrels(path: Path, known: set[str]) -> dict[str, dict[str, float]]:
    """Read gains by query and document; documents outside the corpus are dropped."""
    judged: dict[str, dict[str, float]] = defaultdict(dict)
    for number, line in enumerate(read_lines(path), start=1):
        cells = line.split("\t")
        if not line.strip() or (number == 1 and not cells[-1].strip().lstrip("-").isdigit()):
            continue  # an empty line, or the heading
        # Four columns are the older TREC format, with an iteration column.
        query, document = cells[0], cells[-2] if len(cells) > 2 else ""
        try:
            gain = float(cells[-1])
        except ValueError as error:
            raise Refused(f"{path}:{number}: {cells[-1]!r} is not a grade") from error
        gains = judged[query]
        if gain > 0 and document in known:
            gains[document] = gain
    return judged
