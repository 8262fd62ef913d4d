"""claude-mem's database: observations, session summaries, prompts and directives.

An observation becomes an item, with its facts in it and the files it touched as
entities; a summary and a directive become items; a prompt becomes a raw turn of its
session.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from bethink.importers import entry
from bethink.importers.foreign_db import open_foreign
from bethink.importers.table_reader import Table, TableReader, Tables
from bethink.model import Draft

# Names of columns differ by version.
_MEMORY_SESSION = ("memory_session_id", "sdk_session_id")
_CONTENT_SESSION = ("content_session_id", "claude_session_id")
_TIME = ("created_at_epoch", "created_at")
_SUMMARY_PARTS = ("request", "investigated", "learned", "completed", "next_steps", "notes")
_KIND_BY_TYPE = {"decision": "decision", "bugfix": "resolution", "discovery": "learning"}
_MAX_FILES = 16


class ClaudeMem(TableReader):
    """One claude-mem database."""

    kind = "claude-mem"
    supported = "supported: claude-mem 4 and later, with a table observations or session_summaries"

    def tables(self, db: Tables) -> Mapping[str, Table]:
        """Return observations, summaries, prompts and directives, as they were written."""
        sessions = db.rows("sdk_sessions", (*_CONTENT_SESSION, "project"), ("id",))
        self._projects = {
            row.first(*_CONTENT_SESSION): entry.line_of(row.first("project")) for row in sessions
        }
        in_memory, in_talk = ("id", *_MEMORY_SESSION), ("id", *_CONTENT_SESSION)
        return {
            "observations": Table(_observation_draft, in_memory),
            "session_summaries": Table(_summary_draft, in_memory),
            "user_prompts": Table(self._prompt_draft, in_talk),
            "directives": Table(_directive_draft, ("id",)),
        }

    def row_id(self, table: str, key: list[str]) -> str:
        """Return an id from table, session and row number, unique across databases."""
        own, *sessions = key
        return entry.digest(self.kind, table, next(filter(None, sessions), ""), own)

    def links(self) -> Iterator[entry.SourceLink]:
        """Yield links from a summary to the observations of its session."""
        columns = ("id", *_MEMORY_SESSION)
        with self.open(self._path) as db:
            ids = self.ids_by_table(db, ("session_summaries", "observations"))
            summaries = {
                row.first(*_MEMORY_SESSION): ids["session_summaries"][row.first("id")]
                for row in db.rows("session_summaries", columns, ("id",))
            }
            for row in db.rows("observations", columns, ("id",)):
                made = summaries.get(row.first(*_MEMORY_SESSION))
                if made is not None:
                    own = ids["observations"][row.first("id")]
                    yield entry.item_link(made, "derives_from", own, row.where, 1.0)

    @contextmanager
    def open(self, path: Path) -> Iterator[Tables]:
        """Open a database that has one of the two tables, or both."""
        with open_foreign(path) as db:
            there = [one for one in ("observations", "session_summaries") if one in db.tables()]
            for table in there or ("observations",):
                db.require(self.supported, **{table: ("id", "project")})
            yield db

    def _prompt_draft(self, row: entry.Fields) -> Draft:
        session = row.text(*_CONTENT_SESSION)
        is_numbered = bool(session and row.text("prompt_number"))
        return Draft(
            row.text("prompt_text"),
            level="raw",
            kind="prompt",
            topic=self._projects.get(session) or None,
            speaker="user",
            session=f"claude-mem:{session}"[:200] if session else None,
            seq=int(row.number("prompt_number", 0, 2**53, 0)) if is_numbered else None,
            occurred_at=row.time(*_TIME),
        )


def _observation_draft(row: entry.Fields) -> Draft:
    title, subtitle = row.line("title"), row.line("subtitle", limit=500)
    facts = [entry.line_of(fact, 1000) for fact in row.array("facts") if entry.text_of(fact)]
    head = ". ".join(part.rstrip(".") for part in (title, subtitle) if part)
    body = (head, row.text("narrative", "text"), *(f"- {fact}" for fact in facts))
    kind = row.line("type")
    files = [*row.array("files_modified"), *row.array("files_read")]
    named = dict.fromkeys(entry.entity_name_of("file", file) for file in files)
    return Draft(
        "\n".join(filter(None, body)),
        kind=_KIND_BY_TYPE.get(kind, kind) or None,
        topic=_project_of(row),
        tags=entry.tags_of(row.array("concepts")),
        entities=tuple(filter(None, named))[:_MAX_FILES],
        caption=title or None,
        occurred_at=row.time(*_TIME),
        metadata=entry.metadata_of({"type": kind, "session": row.text(*_MEMORY_SESSION)}),
        force=True,
    )


def _summary_draft(row: entry.Fields) -> Draft:
    told = {part: row.text(part) for part in _SUMMARY_PARTS}
    lines = (
        f"{name.replace('_', ' ').capitalize()}: {text}" for name, text in told.items() if text
    )
    return Draft(
        "\n".join(lines),
        kind="summary",
        topic=_project_of(row),
        caption=row.line("request") or None,
        occurred_at=row.time(*_TIME),
        metadata=entry.metadata_of({"session": row.text(*_MEMORY_SESSION)}),
        force=True,
    )


def _directive_draft(row: entry.Fields) -> Draft | None:
    if row.text("status") not in ("", "active"):
        return None
    return Draft(
        row.text("content"),
        kind="directive",
        topic=_project_of(row),
        occurred_at=row.time(*_TIME),
        metadata=entry.metadata_of(row.only("scope")),
    )


def _project_of(row: entry.Fields) -> str | None:
    """Return the project; where it was merged into another, that one."""
    return row.line("merged_into_project", "project") or None
