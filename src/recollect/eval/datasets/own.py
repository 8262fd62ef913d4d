"""The user's own questions, as JSON Lines: ``{"query": …, "relevant": [ids or text], …}``.

Asked of a space that is there already, or of memories given in a second file. An
entry of ``relevant`` is an id or a part of the text; an empty list says that
nothing answers the question. ``category``, ``now`` and ``filters`` may be given.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

from recollect.dates import moment_of
from recollect.errors import Refused
from recollect.eval.case import EPOCH, Case, Dataset, Question, after, neutral_id
from recollect.eval.datasets.files import field, read_records
from recollect.ingest.drafting import make_draft
from recollect.model import Draft

_MOMENTS = ("occurred_at", "occurred_end", "valid_from", "valid_to")


def own(
    path: Path | None, *, corpus: Path | None = None, space: str | None = None, name: str = "jsonl"
) -> Dataset:
    """Questions from a file, asked of ``corpus`` or else of ``space``."""
    if path is None or not path.is_file():
        raise Refused(
            f"there is no file {path}",
            remedy='write one question a line: {"query": "…", "relevant": ["id or text"]}',
        )
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
    for number, record in enumerate(read_records(path), start=1):
        place = f"{path}:{number}"
        about = {key: value for key, value in record.items() if key != "id"}
        for key in _MOMENTS:
            if about.get(key) is not None:
                about[key] = _moment(about[key], f"{place}: {key}")
        ref = str(record.get("id", number))
        yield ref, make_draft(about)._replace(id=neutral_id(ref))


def _questions(path: Path) -> Iterator[Question]:
    for number, record in enumerate(read_records(path), start=1):
        place = f"{path}:{number}"
        relevant = field(record, "relevant", place)
        filters = record.get("filters") or {}
        if not isinstance(relevant, list) or not isinstance(filters, Mapping):
            raise Refused(f"{place}: relevant must be a list, filters an object")
        now = record.get("now")
        yield Question(
            key=str(record.get("id", f"q{number}")),
            text=str(field(record, "query", place)),
            relevant={str(wanted): 1.0 for wanted in relevant},
            category=str(record.get("category", "")),
            now=_moment(now, f"{place}: now") if now is not None else None,
            filters=dict(filters),
        )


def _moment(value: Any, place: str) -> datetime:
    try:
        return moment_of(value, EPOCH)
    except ValueError as error:
        raise Refused(f"{place}: {error}") from error
