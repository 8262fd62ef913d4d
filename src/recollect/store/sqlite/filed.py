"""What a store knows of files: noted, looked up, forgotten."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from recollect.model import FileEdit, FileHistory, FileSnapshot
from recollect.ports import ForgottenFiles
from recollect.store.sqlite import erase, file_edits, journal
from recollect.store.sqlite.clock import to_ms
from recollect.store.sqlite.connection import Connections


class Filed:
    """One part of a `Store`; what it works with is the whole one's."""

    _connections: Connections

    def note_edits(self, edits: Sequence[FileEdit], *, actor: str, now: datetime) -> int:
        with self._connections.writing() as db:
            new = file_edits.note_edits(db, edits)
            line = journal.Line("file edits noted", None, f"{new} of {len(edits)} new")
            journal.write(db, [line], actor=actor, at=to_ms(now))
            return new

    def file_history(
        self, part: str, *, intents: int = 10, items: int = 20, max_classification: int = 3
    ) -> FileHistory:
        with self._connections.reading() as db:
            asked = file_edits.Asked(part, max_classification)
            return file_edits.file_history(db, asked, intents, items)

    def file_snapshot(self, path: str) -> FileSnapshot | None:
        with self._connections.reading() as db:
            return file_edits.snapshot(db, path)

    def keep_file_snapshot(self, look: FileSnapshot) -> None:
        with self._connections.writing() as db:
            file_edits.keep_snapshot(db, look)

    def files_known(self, part: str) -> ForgottenFiles:
        with self._connections.reading() as db:
            return file_edits.known(db, part)

    def forget_files(self, part: str, *, actor: str, now: datetime) -> ForgottenFiles:
        with self._connections.writing() as db:
            gone = file_edits.forget(db, part)
            if not gone.edits and not gone.snapshots:
                return gone
            erase.begin_scrub(db)
            # The journal outlives it, and a path is content.
            told = f"{gone.edits} edits, {gone.snapshots} snapshots"
            line = journal.Line("files forgotten", None, told)
            journal.write(db, [line], actor=actor, at=to_ms(now))
        return gone._replace(out_of_reach=erase.scrub(self._connections))
