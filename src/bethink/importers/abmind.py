"""abmind: extracted memories, the messages behind them, entities, and consolidated notes.

Its database (``memory.db``), or the folder it lies in (``~/.abmind``), with the notes of
``daily``, ``weekly`` and ``quarterly``. Encrypted memories and back-ups are refused by name:
only abmind has the key.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from bethink.errors import Refused
from bethink.importers import entry
from bethink.importers.streams import read_text_file
from bethink.importers.table_reader import EdgeTable, LinkTable, Table, TableReader, Tables
from bethink.ingest.notes import NOTE_FOLDERS, period_of
from bethink.model import Draft
from bethink.ports import PriorUse

BACKUP_MAGIC = b"ABMIND\x00"
_ABOUT = (
    *("emotion_context", "emotion_arc", "preserved_keyword", "created_by", "relevance_score"),
    *("cited_count", "rejected_count"),
)


class Abmind(TableReader):
    """One database of abmind, with its notes where its folder is given."""

    kind = "abmind"
    supported = "supported: memory.db of abmind 0.1 and 0.2, or the folder ~/.abmind"
    required = (("extracted_memories", ("id", "content_en", "content_original", "memory_type")),)
    link_tables = (
        LinkTable("extracted_memories", "id", "source_message_ids",
                  ("extracted_memories", "messages"), "derives_from"),
    )  # fmt: skip
    edge_table = EdgeTable("entity_graph", "entity_a", "relation", "entity_b")

    def databases(self) -> list[Path]:
        """Return the database, also of a folder."""
        found = find_abmind(self._path)
        return [found] if found else [self._path]

    @contextmanager
    def open(self, path: Path) -> Iterator[Tables]:
        """Open the database; refuse an encrypted back-up by name."""
        with path.open("rb") as file:
            if file.read(len(BACKUP_MAGIC)) == BACKUP_MAGIC:
                raise Refused(
                    f"{path.name} is an encrypted back-up of abmind",
                    remedy="restore it with `abmind restore`, then import ~/.abmind",
                )
        with super().open(path) as db:
            yield db

    def tables(self, db: Tables) -> Mapping[str, Table]:
        """Return messages, the memories extracted from them, and summaries."""
        by_time = ("id", "timestamp")
        return {
            "messages": Table(_message_draft, by_time),
            "extracted_memories": Table(_memory_draft, use=_memory_use),
            "context_summaries": Table(_summary_draft),
            "compactions": Table(_summary_draft, by_time),
        }

    def entity_name(self, value: str) -> str:
        """Return the entity: abmind gives it no kind."""
        return entry.entity_name_of("", value)

    def entries(self) -> Iterator[entry.Entry]:
        """Yield the rows, then the notes of a folder."""
        yield from super().entries()
        for path in _note_files(self._path):
            where = f"{path.parent.name}/{path.name}"
            text = read_text_file(path)
            if isinstance(text, Refused):
                yield entry.Entry(where, text)
                continue
            start, end = period_of(path.stem) or (None, None)
            for number, part in enumerate(entry.split_text(text)):
                draft = Draft(
                    part,
                    kind="summary",
                    tags=(path.parent.name,),
                    caption=path.stem,
                    occurred_at=start,
                    occurred_end=end,
                    force=True,
                )
                own = entry.digest(self.kind, "notes", where, str(number))
                yield entry.Entry(where, draft, id=own, origin=where)


def find_abmind(path: Path) -> Path | None:
    """Return the database in or below a folder of abmind; None where there is none."""
    places = (path, path / "memory", path / ".abmind" / "memory")
    return next((place / "memory.db" for place in places if (place / "memory.db").is_file()), None)


def _note_files(path: Path) -> list[Path]:
    database = find_abmind(path)
    if database is None:
        return []
    roots = (database.parent / "consolidation", database.parent)
    found = (file for root in roots for folder in (*NOTE_FOLDERS, "retrospectives", "core")
             for file in sorted((root / folder).glob("*.md")))  # fmt: skip
    return [file for file in found if file.is_file() and not file.is_symlink()]


def _memory_draft(row: entry.Fields) -> Draft:
    if row.number("encrypted", 0, 1, 0):
        raise Refused("it is encrypted", remedy="store it again; only abmind has the key")
    text, original, topic = row.text("content_en"), row.text("content_original"), row.line("topic")
    relevance = row.number("relevance_score", -10, 10, 0)
    feelings = {name: row.array(name) or entry.tags_of(row.get(name))
                for name in ("emotion_tags", "importance_flags")}  # fmt: skip
    return Draft(
        text or original,
        original=original if text and original != text else None,
        kind=row.line("memory_type") or None,
        topic=topic if topic and topic != "general" else None,
        tier=row.line("tier") or None,
        tags=entry.tags_of(row.get("preserved_keyword")),
        trust=int(row.number("trust", 0, 3, 0)),
        integrity=int(row.number("integrity", 0, 4, 2)),
        credibility=int(row.number("credibility", 0, 6, 6)),
        classification=int(row.number("classification", 0, 3, 1)),
        emotion=row.number("emotion_score", -5, 5, 0),
        importance=0.5 + relevance / 20,
        confidence=row.number("confidence", 1, 5, 3) / 5,
        occurred_at=row.time("source_timestamp", "created_at"),
        valid_from=row.time("valid_from"),
        valid_to=row.time("valid_to"),
        metadata=entry.metadata_of({**row.only(*_ABOUT), **feelings, **_owner(row)}),
        force=True,
    )


def _memory_use(row: entry.Fields) -> PriorUse | None:
    stamps = entry.Fields({str(n): one for n, one in enumerate(row.array("recall_timestamps"))})
    times = tuple(filter(None, map(stamps.time, stamps.given)))
    recalls, last = int(row.number("recall_count", 0, 1e9, 0)), row.time("last_recalled_at")
    return PriorUse(recalls, last, times) if recalls or times else None


def _message_draft(row: entry.Fields) -> Draft:
    session = row.line("session_id", "chat_id")
    return Draft(
        row.text("content"),
        level="raw",
        speaker=row.line("role") or None,
        session=f"abmind:{session}"[:200] if session else None,
        seq=int(row.number("id", 0, 2**53, 0)) if session else None,
        emotion=row.number("emotion_score", -5, 5, 0),
        occurred_at=row.time("timestamp"),
        metadata=entry.metadata_of(_owner(row)),
        force=True,
    )


def _summary_draft(row: entry.Fields) -> Draft:
    return Draft(
        row.text("content", "summary"),
        kind="summary",
        tags=entry.tags_of(row.get("tier")),
        classification=int(row.number("classification", 0, 3, 1)),
        occurred_at=row.time("created_at", "timestamp"),
        metadata=entry.metadata_of(row.only("chat_id", "depth")),
        force=True,
    )


def _owner(row: entry.Fields) -> dict[str, object]:
    return {"user_id": row.text("user_id", "chat_id")}
