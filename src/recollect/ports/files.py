"""What the engine asks of a store about files."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple, Protocol

from recollect.model import FileEdit, FileHistory, FileSnapshot


class ForgottenFiles(NamedTuple):
    """What was removed of files, or would be.

    ``paths`` are those that may be named; ``out_of_reach`` says where bytes of it stay.
    """

    edits: int = 0
    snapshots: int = 0
    paths: tuple[str, ...] = ()
    preview: bool = False
    out_of_reach: tuple[str, ...] = ()


class Files(Protocol):
    """What is known of files: edits, and how they looked."""

    def note_edits(self, edits: Sequence[FileEdit], *, actor: str, now: datetime) -> int:
        """Adds edits; those told before are known. Gives how many were new."""
        ...

    def file_history(
        self, part: str, *, intents: int = 10, items: int = 20, max_classification: int = 3
    ) -> FileHistory:
        """All that happened to the files whose path holds this text; nothing that is told
        in a memory above the classification."""
        ...

    def file_snapshot(self, path: str) -> FileSnapshot | None:
        """How a file looked when it was last read, if it was."""
        ...

    def keep_file_snapshot(self, look: FileSnapshot) -> None: ...

    def files_known(self, part: str) -> ForgottenFiles:
        """How much `forget_files` would remove."""
        ...

    def forget_files(self, part: str, *, actor: str, now: datetime) -> ForgottenFiles:
        """Removes every edit and snapshot of the files whose path holds this text, down
        to the bytes; the journal says how many, not which."""
        ...
