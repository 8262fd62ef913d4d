"""siftcoder: summaries of tool calls, the calls themselves, and where each came from.

One database (``db.sqlite`` of a workspace) or a folder with several, such as ``~/.siftcoder``.
A summary becomes an item, its event the raw memory that it was made from. Of an event the
text names the tool and what it was about; the payload is kept in its metadata. Events on
files are file edits as well. The payload has no documented form: names of arguments are those
of Claude Code's tools.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path

from bethink.core.sentences import shorten
from bethink.importers.entry import Fields, SourceLink, clamped_number, item_link, metadata_of
from bethink.importers.table_reader import LinkTable, Table, TableReader, Tables
from bethink.importers.turn_text import storable_text
from bethink.model import Draft, FileEdit, Operation

_EDGE_COLUMNS = ("from_kind", "from_id", "to_kind", "to_id", "edge_type", "confidence")
_TABLE_BY_KIND = {"event": "events", "summary": "summaries"}
_OPERATIONS: dict[str, Operation] = {
    "Read": "read", "Edit": "edit", "MultiEdit": "edit", "NotebookEdit": "edit", "Write": "write",
}  # fmt: skip
_PATHS = ("file_path", "notebook_path", "path")
_SUBJECTS = (*_PATHS, "command", "pattern", "query", "url", "prompt", "description", "text")
_INPUTS = ("tool_input", "toolInput", "input", "args")
_MAX_PAYLOAD = 8_000


class Siftcoder(TableReader):
    """The memory of one workspace, or of all of them."""

    kind = "siftcoder"
    supported = "supported: db.sqlite of siftcoder 1.0, or a folder that has such files"
    required = (("events", ("id", "ts", "tool")), ("summaries", ("id", "event_id", "text")))
    link_tables = (
        LinkTable("summary_supersedes", "newer_id", "older_id", ("summaries", "summaries"),
                  "supersedes", weight="cosine"),
    )  # fmt: skip
    edit_table = ("events", "ts", "events")

    def databases(self) -> list[Path]:
        """Return the database, or those of the workspaces below a folder."""
        return find_siftcoder(self._path)

    def tables(self, db: Tables) -> Mapping[str, Table]:
        """Return the events, then the summaries made from them."""
        sessions = db.rows("sessions", ("id", "cwd"), ("id",))
        self._projects = {row.first("id"): Path(row.first("cwd")).name for row in sessions}
        columns = ("id", "ts", "session_id", "tool")
        self._events = {
            row.first("id"): (row.first("ts"), row.first("session_id"), row.first("tool"))
            for row in db.rows("events", columns, ("id",))
        }
        return {
            "events": Table(self._event_draft, ("id", "ts")),
            "summaries": Table(self._summary_draft, ("id", "ts")),
        }

    def links(self) -> Iterator[SourceLink]:
        """Yield supersessions, and the provenance edges between events and summaries."""
        yield from super().links()
        for db in self.open_each():
            tables = self.ids_by_table(db, _TABLE_BY_KIND.values())
            ids = {kind: tables[table] for kind, table in _TABLE_BY_KIND.items()}
            for row in db.rows("provenance_edges", _EDGE_COLUMNS, ("id",)):
                ends = [
                    (row.first(f"{end}_kind"), row.first(f"{end}_id")) for end in ("from", "to")
                ]
                src, dst = (ids.get(kind, {}).get(own) for kind, own in ends)
                if src and dst:
                    weight = clamped_number(row.first("confidence"), 0.01, 1, 1)
                    yield item_link(src, row.first("edge_type"), dst, row.where, weight)

    def file_edit(self, row: Fields, ids: Mapping[str, str]) -> FileEdit | None:
        """Return the event as an operation on a file, where it is one."""
        operation, at = _OPERATIONS.get(row.text("tool")), row.time("ts")
        path = _argument(row, _PATHS)
        if operation is None or at is None or not path:
            return None
        session, item = row.line("session_id") or None, ids.get(row.text("id"))
        return FileEdit(path, operation, at, session=session, item=item)

    def _event_draft(self, row: Fields) -> Draft:
        session, subject = row.line("session_id"), _argument(row, _SUBJECTS)
        payload = json.dumps(row.fields("payload_json").given, ensure_ascii=False)
        return Draft(
            f"{row.line('tool')}: {subject}" if subject else row.line("tool"),
            level="raw",
            kind="event",
            topic=self._projects.get(session) or None,
            entities=(f"file:{path}",) if (path := _argument(row, _PATHS)) else (),
            session=f"siftcoder:{session}"[:200] if session else None,
            seq=int(row.number("id", 0, 2**53, 0)),
            occurred_at=row.time("ts"),
            valid_to=row.time("expires_at"),
            metadata=metadata_of(row.only("tool", "status", "input_hash"))
            | {"payload": shorten(storable_text(payload), _MAX_PAYLOAD)},
            force=True,
        )

    def _summary_draft(self, row: Fields) -> Draft:
        event = row.text("event_id")
        at, session, tool = self._events.get(event, ("", "", ""))
        is_pinned = bool(row.text("pinned_at"))
        about = {**row.only("model"), "tool": tool, "session": session}
        return Draft(
            row.text("text"),
            kind="summary",
            topic=self._projects.get(session) or None,
            parent=self.row_id("events", [event, at]) if at else None,
            confidence=row.number("confidence", 0, 1, 1),
            importance=0.9 if is_pinned else 0.5,
            occurred_at=row.time("ts"),
            metadata=metadata_of(about | ({"pinned": True} if is_pinned else {})),
            force=True,
        )


def find_siftcoder(path: Path) -> list[Path]:
    """Return a file itself, or the databases of workspaces below a folder."""
    if not path.is_dir():
        return [path]
    below = ("db.sqlite", "*/db.sqlite", "workspaces/*/db.sqlite", "*/workspaces/*/db.sqlite")
    found = {file for pattern in (*below, ".siftcoder/*/workspaces/*/db.sqlite")
             for file in path.glob(pattern)}  # fmt: skip
    return sorted(file for file in found if file.is_file() and not file.is_symlink())


def _argument(row: Fields, names: tuple[str, ...]) -> str:
    payload = row.fields("payload_json")
    inner = next((payload.fields(name) for name in _INPUTS if payload.fields(name).given), payload)
    return inner.line(*names, limit=150) or payload.line(*names, limit=150)
