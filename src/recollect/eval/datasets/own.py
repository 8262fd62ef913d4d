"""The user's own questions, as JSON Lines: ``{"query": …, "relevant": [ids or text], …}``.

Asked of a space that is there already, or of memories given in a second file. An
entry of ``relevant`` is an id or a part of the text; an empty list says that
nothing answers the question. ``category``, ``now`` and ``filters`` may be given.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any

from recollect.asking import make_filters
from recollect.dates import moment_of
from recollect.errors import Refused
from recollect.eval.case import EPOCH, Case, Dataset, Question, after, neutral_id
from recollect.eval.datasets.files import field, of_kind, read_placed
from recollect.ingest.drafting import make_draft
from recollect.model import Draft

_MOMENTS = ("occurred_at", "occurred_end", "valid_from", "valid_to")


def own(
    path: Path | None, *, corpus: Path | None = None, space: str | None = None, name: str = "jsonl"
) -> Dataset:
    """Questions from a file, asked of ``corpus`` or else of ``space``."""
    if path is None or not path.is_file():
        raise Refused(
            f"there is no file {path}" if path else "this data set needs a path: your questions",
            remedy='write one question a line: {"query": "…", "relevant": ["id or text"]}',
        )
    if corpus is not None and not corpus.is_file():
        raise Refused(f"there is no file {corpus}", remedy='a memory a line: {"text": "…"}')
    if corpus is None and space is None:
        raise Refused(
            "there is no memory to ask", remedy="give --corpus FILE, or --space NAME to use one"
        )
    questions_file, memories_file = path, corpus

    def cases() -> Iterator[Case]:
        rows = list(_memories(memories_file)) if memories_file else []
        drafts = tuple(draft for _, draft in rows)
        refs = tuple(ref for ref, _ in rows)
        yield Case(
            name=questions_file.stem if memories_file else str(space),
            questions=tuple(_questions(questions_file)),
            drafts=drafts,
            refs=refs,
            units=refs,
            now=after(drafts),
            space=None if memories_file else space,
        )

    title = f"{path.name}" + (f" on {corpus.name}" if corpus else f" on space {space}")
    return Dataset(name=name, title=title, cases=cases)


def _memories(path: Path) -> Iterator[tuple[str, Draft]]:
    seen: dict[str, str] = {}
    for number, (place, record) in enumerate(read_placed(path), start=1):
        ref = _once(str(record.get("id", number)), place, seen)
        about = {key: value for key, value in record.items() if key != "id"}
        about["text"] = field(record, "text", place, str)
        with _at(place):
            for key in _MOMENTS:
                if about.get(key) is not None:
                    about[key] = _moment(about[key], key)
            draft = make_draft(about)._replace(id=neutral_id(ref))
        yield ref, draft


def _questions(path: Path) -> Iterator[Question]:
    seen: dict[str, str] = {}
    for number, (place, record) in enumerate(read_placed(path), start=1):
        text = field(record, "query", place, str)
        if not text.strip():
            raise Refused(f"{place}: the query is empty")
        filters = of_kind(record.get("filters") or {}, f"{place}: filters", dict)
        now = record.get("now")
        with _at(place):
            moment = None if now is None else _moment(now, "now")
            make_filters(filters, moment or EPOCH)  # a mistake is told before anything is stored
        yield Question(
            key=_once(str(record.get("id", f"q{number}")), place, seen),
            text=text,
            relevant={str(wanted): 1.0 for wanted in field(record, "relevant", place, list)},
            category=str(record.get("category") or ""),
            now=moment,
            filters=filters,
        )


def _once(name: str, place: str, seen: dict[str, str]) -> str:
    """The id, unless it stands before: two of one name cannot be told apart."""
    if name in seen:
        raise Refused(f"{place}: the id {name!r} stands at {seen[name]} already")
    seen[name] = place
    return name


@contextmanager
def _at(place: str) -> Iterator[None]:
    """Whatever is refused in here is refused with its place."""
    try:
        yield
    except Refused as error:
        raise Refused(f"{place}: {error.message}", remedy=error.remedy) from error


def _moment(value: Any, name: str) -> datetime:
    try:
        return moment_of(value, EPOCH)
    except ValueError as error:
        raise Refused(f"{name}: {error}") from error
