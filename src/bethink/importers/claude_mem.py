"""claude-mem's database: observations, session summaries, prompts and directives.

An observation becomes an item, with its facts in it and the files it touched as
entities; a summary and a directive become items; a prompt becomes a raw turn of its
session.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime

from bethink.errors import Refused
from bethink.importers.entry import (
    Entry,
    Reader,
    SourceLink,
    digest,
    entity_name_of,
    item_link,
    line_of,
    list_of,
    metadata_of,
    tags_of,
    text_of,
    time_of,
)
from bethink.importers.foreign_db import ForeignDb, ForeignRow, open_foreign
from bethink.model import Draft

_SUPPORTED = "supported: claude-mem 4 and later, with a table observations or session_summaries"
# Names of columns differ by version.
_MEMORY_SESSION = ("memory_session_id", "sdk_session_id")
_CONTENT_SESSION = ("content_session_id", "claude_session_id")
_TIME = ("created_at", "created_at_epoch")
_SUMMARY_PARTS = ("request", "investigated", "learned", "completed", "next_steps", "notes")
_KIND_BY_TYPE = {"decision": "decision", "bugfix": "resolution", "discovery": "learning"}
_MAX_FILES = 16
_OBSERVATION_COLUMNS = (
    *("id", *_MEMORY_SESSION, "project", "text", "type", "title", "subtitle", "facts", "narrative"),
    *("concepts", "files_read", "files_modified", "prompt_number", "merged_into_project", *_TIME),
)
_SUMMARY_COLUMNS = (
    *("id", *_MEMORY_SESSION, "project", *_SUMMARY_PARTS, "merged_into_project", *_TIME),
)
_PROMPT_COLUMNS = ("id", *_CONTENT_SESSION, "prompt_number", "prompt_text", *_TIME)
_DIRECTIVE_COLUMNS = ("id", "scope", "project", "content", "status", *_TIME)


class ClaudeMem(Reader):
    """One claude-mem database."""

    def entries(self) -> Iterator[Entry]:
        """Yield observations, summaries, prompts and directives, as they were written."""
        with self._open() as db:
            projects = dict(_session_projects(db))
            kinds: dict[str, tuple[tuple[str, ...], Callable[[ForeignRow], Draft]]] = {
                "observations": (_OBSERVATION_COLUMNS, _observation_draft),
                "session_summaries": (_SUMMARY_COLUMNS, _summary_draft),
                "user_prompts": (_PROMPT_COLUMNS, lambda row: _prompt_draft(row, projects)),
                "directives": (_DIRECTIVE_COLUMNS, _directive_draft),
            }
            self._gauge.total, self._gauge.unit = db.count(*kinds), "rows"
            for table, (columns, make) in kinds.items():
                for row in db.rows(table, columns, ("id",)):
                    self._gauge.done += 1
                    if row.first("status") in ("", "active"):
                        yield _row_entry(row, table, make)

    def links(self) -> Iterator[SourceLink]:
        """Yield links from a summary to the observations of its session."""
        with self._open() as db:
            summaries = {
                row.first(*_MEMORY_SESSION): _row_id("session_summaries", row)
                for row in db.rows("session_summaries", _SUMMARY_COLUMNS, ("id",))
            }
            for row in db.rows("observations", ("id", *_MEMORY_SESSION), ("id",)):
                made = summaries.get(row.first(*_MEMORY_SESSION))
                if made is not None:
                    own = _row_id("observations", row)
                    yield item_link(made, "derives_from", own, row.where, 1.0)

    @contextmanager
    def _open(self) -> Iterator[ForeignDb]:
        with open_foreign(self._path) as db:
            tables = db.tables()
            if "observations" not in tables and "session_summaries" not in tables:
                db.require(_SUPPORTED, observations=("id",))
            for table in ("observations", "session_summaries"):
                if table in tables:
                    db.require(_SUPPORTED, **{table: ("id", "project")})
            yield db


def _prompt_draft(row: ForeignRow, projects: dict[str, str]) -> Draft:
    session, number = row.first(*_CONTENT_SESSION), row.number("prompt_number")
    return Draft(
        row.text("prompt_text"),
        level="raw",
        kind="prompt",
        topic=projects.get(session) or None,
        speaker="user",
        session=f"claude-mem:{session}"[:200] if session else None,
        seq=int(number) if session and number is not None and 0 <= number < 2**53 else None,
        occurred_at=_created_at(row),
    )


def _row_entry(row: ForeignRow, table: str, make: Callable[[ForeignRow], Draft]) -> Entry:
    if row.refused is not None:
        return Entry(row.where, row.refused)
    try:
        draft = make(row)
    except Refused as refused:
        return Entry(row.where, refused)
    if not draft.text:
        return Entry(row.where, Refused("the row has no content"))
    origin = f"{table} {row.first('id')}"
    return Entry(row.where, draft, id=_row_id(table, row), origin=origin)


def _observation_draft(row: ForeignRow) -> Draft:
    title, subtitle = line_of(row.text("title")), line_of(row.text("subtitle"), 500)
    body = row.text("narrative") or row.text("text")
    facts = [line_of(entry, 1000) for entry in list_of(row.json("facts")) if text_of(entry)]
    head = ". ".join(part.rstrip(".") for part in (title, subtitle) if part)
    lines = [part for part in (head, body) if part] + [f"- {fact}" for fact in facts]
    kind = line_of(row.text("type"))
    files = [*list_of(row.json("files_modified")), *list_of(row.json("files_read"))]
    named = dict.fromkeys(entity_name_of("file", file) for file in files)
    return Draft(
        "\n".join(lines),
        kind=_KIND_BY_TYPE.get(kind, kind) or None,
        topic=_project_of(row),
        tags=tags_of(row.json("concepts")),
        entities=tuple(filter(None, named))[:_MAX_FILES],
        caption=title or None,
        occurred_at=_created_at(row),
        metadata=metadata_of({"type": kind, "session": row.first(*_MEMORY_SESSION)}),
        force=True,
    )


def _summary_draft(row: ForeignRow) -> Draft:
    lines = [
        f"{part.replace('_', ' ').capitalize()}: {row.text(part)}"
        for part in _SUMMARY_PARTS
        if row.text(part)
    ]
    return Draft(
        "\n".join(lines),
        kind="summary",
        topic=_project_of(row),
        caption=line_of(row.text("request")) or None,
        occurred_at=_created_at(row),
        metadata=metadata_of({"session": row.first(*_MEMORY_SESSION)}),
        force=True,
    )


def _directive_draft(row: ForeignRow) -> Draft:
    return Draft(
        row.text("content"),
        kind="directive",
        topic=_project_of(row),
        occurred_at=_created_at(row),
        metadata=metadata_of({"scope": row.text("scope")}),
    )


def _project_of(row: ForeignRow) -> str | None:
    """Return the project; where it was merged into another, that one."""
    merged = line_of(row.text("merged_into_project"))
    return merged or line_of(row.text("project")) or None


def _session_projects(db: ForeignDb) -> Iterator[tuple[str, str]]:
    for row in db.rows("sdk_sessions", (*_CONTENT_SESSION, "project"), ("id",)):
        try:
            yield row.first(*_CONTENT_SESSION), line_of(row.text("project"))
        except Refused:
            continue  # prompts of a session with an unreadable project get none


def _row_id(table: str, row: ForeignRow) -> str:
    """Return an id from table, session and row number, unique across databases."""
    session = row.first(*_MEMORY_SESSION, *_CONTENT_SESSION)
    return digest("claude-mem", table, session, row.first("id"))


def _created_at(row: ForeignRow) -> datetime | None:
    return time_of(row.number("created_at_epoch")) or time_of(row.text("created_at"))
