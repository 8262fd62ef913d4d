"""claude-mem's database: what it observed, its summaries of sessions, prompts and directives.

An observation becomes an item, with its facts in it and the files it touched as entities;
a summary and a directive become items; a prompt becomes a raw turn of its session.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path

from recollect.errors import Refused
from recollect.model import Draft
from recollect.sources.foreign_db import ForeignDb, Row, open_foreign
from recollect.sources.source import End, Entry, Gauge, Tie, digest
from recollect.sources.values import (
    details,
    entity_of,
    line_of,
    list_of,
    text_of,
    time_of,
    words_of,
)

_KNOWN = "known are databases with observations or session_summaries, as claude-mem 4 and later has"
_SESSIONS = ("content_session_id", "claude_session_id", "memory_session_id", "sdk_session_id",
             "project", "custom_title")  # fmt: skip
_OBSERVATION = ("id", "memory_session_id", "sdk_session_id", "project", "text", "type", "title",
                "subtitle", "facts", "narrative", "concepts", "files_read", "files_modified",
                "prompt_number", "merged_into_project", "created_at",
                "created_at_epoch")  # fmt: skip
_SUMMARY = ("id", "memory_session_id", "sdk_session_id", "project", "request", "investigated",
            "learned", "completed", "next_steps", "notes", "merged_into_project",
            "created_at", "created_at_epoch")  # fmt: skip
_PROMPT = ("id", "content_session_id", "claude_session_id", "prompt_number", "prompt_text",
           "created_at", "created_at_epoch")  # fmt: skip
_DIRECTIVE = ("id", "scope", "project", "content", "status", "created_at", "created_at_epoch")
_PARTS = ("request", "investigated", "learned", "completed", "next_steps", "notes")
_KINDS = {"decision": "decision", "bugfix": "resolution", "discovery": "learning"}
_MOST_FILES = 16


class ClaudeMem:
    """One database."""

    def __init__(self, path: Path, gauge: Gauge) -> None:
        self._path = path
        self._gauge = gauge
        self._projects: dict[str, str] = {}

    def entries(self) -> Iterator[Entry]:
        """Observations, summaries and prompts, each as they were written."""
        with self._open() as db:
            kinds: dict[str, tuple[tuple[str, ...], Callable[[Row], Draft]]] = {
                "observations": (_OBSERVATION, _observation),
                "session_summaries": (_SUMMARY, _summary),
                "user_prompts": (_PROMPT, self._prompt),
                "directives": (_DIRECTIVE, _directive),
            }
            self._gauge.total, self._gauge.unit = db.count(*kinds), "rows"
            self._projects = dict(_projects(db))
            for table, (columns, make) in kinds.items():
                for row in db.rows(table, columns, ("id",)):
                    self._gauge.done += 1
                    if _cell(row, "status") in ("", "active"):
                        yield _entry(row, table, make)

    def ties(self) -> Iterator[Tie]:
        """A summary derives from what was observed in its session."""
        with self._open() as db:
            summaries: dict[str, str] = {}
            for row in db.rows("session_summaries", _SUMMARY, ("id",)):
                summaries[_cell(row, *_SESSION)] = _row_id("session_summaries", row)
            for row in db.rows("observations", ("id", *_SESSION), ("id",)):
                made = summaries.get(_cell(row, *_SESSION))
                if made is not None:
                    src, dst = End("item", made), End("item", _row_id("observations", row))
                    yield Tie(src, "derives_from", dst, row.where, 1.0)

    @contextmanager
    def _open(self) -> Iterator[ForeignDb]:
        with open_foreign(self._path) as db:
            tables = db.tables()
            if "observations" not in tables and "session_summaries" not in tables:
                db.require(_KNOWN, observations=("id",))
            for table in ("observations", "session_summaries"):
                if table in tables:
                    db.require(_KNOWN, **{table: ("id", "project")})
            yield db

    def _prompt(self, row: Row) -> Draft:
        session = _cell(row, "content_session_id", "claude_session_id")
        number = row.number("prompt_number")
        return Draft(
            row.text("prompt_text"),
            level="raw",
            kind="prompt",
            topic=self._projects.get(session) or None,
            speaker="user",
            session=f"claude-mem:{session}"[:200] if session else None,
            seq=int(number) if session and number is not None and 0 <= number < 2**53 else None,
            occurred_at=_when(row),
        )


_SESSION = ("memory_session_id", "sdk_session_id")


def _entry(row: Row, table: str, make: Callable[[Row], Draft]) -> Entry:
    if row.refused is not None:
        return Entry(row.where, row.refused)
    try:
        draft = make(row)
    except Refused as refused:
        return Entry(row.where, refused)
    if not draft.text:
        return Entry(row.where, Refused("there is nothing in it"))
    origin = f"{table} {_cell(row, 'id')}"
    return Entry(row.where, draft, id=_row_id(table, row), origin=origin)


def _observation(row: Row) -> Draft:
    title, subtitle = line_of(row.text("title")), line_of(row.text("subtitle"), 500)
    told = row.text("narrative") or row.text("text")
    facts = [line_of(one, 1000) for one in list_of(row.json("facts")) if text_of(one)]
    head = ". ".join(part.rstrip(".") for part in (title, subtitle) if part)
    lines = [part for part in (head, told) if part] + [f"- {fact}" for fact in facts]
    kind = line_of(row.text("type"))
    files = [*list_of(row.json("files_modified")), *list_of(row.json("files_read"))]
    named = dict.fromkeys(entity_of("file", file) for file in files)
    return Draft(
        "\n".join(lines),
        kind=_KINDS.get(kind, kind) or None,
        topic=_project(row),
        tags=words_of(row.json("concepts")),
        entities=tuple(filter(None, named))[:_MOST_FILES],
        caption=title or None,
        occurred_at=_when(row),
        metadata=details({"type": kind, "session": _cell(row, *_SESSION)}),
        force=True,
    )


def _summary(row: Row) -> Draft:
    lines = [
        f"{part.replace('_', ' ').capitalize()}: {row.text(part)}"
        for part in _PARTS
        if row.text(part)
    ]
    return Draft(
        "\n".join(lines),
        kind="summary",
        topic=_project(row),
        caption=line_of(row.text("request")) or None,
        occurred_at=_when(row),
        metadata=details({"session": _cell(row, *_SESSION)}),
        force=True,
    )


def _directive(row: Row) -> Draft:
    return Draft(
        row.text("content"),
        kind="directive",
        topic=_project(row),
        occurred_at=_when(row),
        metadata=details({"scope": row.text("scope")}),
    )


def _project(row: Row) -> str | None:
    """The project; where one was merged into another, that one."""
    merged = line_of(row.text("merged_into_project"))
    return merged or line_of(row.text("project")) or None


def _projects(db: ForeignDb) -> Iterator[tuple[str, str]]:
    for row in db.rows("sdk_sessions", _SESSIONS, ("id",)):
        try:
            yield (
                _cell(row, "content_session_id", "claude_session_id"),
                line_of(row.text("project")),
            )
        except Refused:
            continue  # a session whose project cannot be read has prompts without one


def _cell(row: Row, *columns: str) -> str:
    """The first of these that the row has: versions call it differently."""
    cells = (row.cells.get(column) for column in columns)
    return next((cell.decode("utf-8", "replace") for cell in cells if cell), "")


def _row_id(table: str, row: Row) -> str:
    """Rows are counted from 1 in every database; with its session a row has no double."""
    sessions = (*_SESSION, "content_session_id", "claude_session_id")
    return digest("claude-mem", table, _cell(row, *sessions), _cell(row, "id"))


def _when(row: Row) -> datetime | None:
    return time_of(row.number("created_at_epoch")) or time_of(row.text("created_at"))
