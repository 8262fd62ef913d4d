"""Memory of files: what was done to them and why, and reading only what changed."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from recollect.errors import Refused
from recollect.facade.opened import Opened
from recollect.model import OPERATIONS, FileEdit, FileHistory
from recollect.ports import ForgottenFiles
from recollect.text import unkeepable

if TYPE_CHECKING:
    from recollect.files.smart import SmartRead

MOST_INTENTS = 50
_LONGEST_INTENT = 2000
_LONGEST_PATH = 4096


class Filing(Opened):
    """The file side of a memory."""

    def note_edits(self, edits: Iterable[FileEdit | Mapping[str, Any]]) -> int:
        """Keeps what was done to files; told again, it is known. Gives how many were new.

        Secrets are taken out of what was said to be the reason.
        """
        from recollect.ingest.redact import redact  # start-up time: recall does without

        ready = [
            edit if isinstance(edit, FileEdit) else _edit_of(edit, self._clock()) for edit in edits
        ]
        for edit in ready:
            _admit(edit)
        safe = [edit._replace(intent=redact(edit.intent).text) for edit in ready]
        return self.store.note_edits(safe, actor=self.settings.actor, now=self._clock())

    def recall_file(self, part: str, *, intents: int = 10) -> FileHistory:
        """The history of the files whose path holds this text, with every reason given."""
        if not part.strip():
            raise Refused("name a file, or a part of its path")
        if not 1 <= intents <= MOST_INTENTS:
            raise Refused(f"intents is {intents}, but must be from 1 to {MOST_INTENTS}")
        ceiling = self.settings.max_classification
        return self.store.file_history(part, intents=intents, max_classification=ceiling)

    def forget_file(self, part: str, *, preview: bool = False) -> ForgottenFiles:
        """Erases what was done to the files whose path holds this text and how they looked,
        the edits told in memories too; the memories stay. With ``preview`` nothing happens.
        """
        edited = self.recall_file(part).paths
        known = self.store.files_known(part)
        paths = tuple(sorted({*edited, *known.paths}))
        if preview:
            return known._replace(paths=paths, preview=True)
        gone = self.store.forget_files(part, actor=self.settings.actor, now=self._clock())
        return gone._replace(paths=paths)

    def read_smart(
        self, path: str | Path, *, force: bool = False, roots: Iterable[Path] = ()
    ) -> SmartRead:
        """A file, or only what changed in it since it was last read through here.

        Only inside the allowed folders: those given, else the setting's, else the
        project's own.
        """
        from recollect.files.smart import read_smart  # start-up time: recall does without
        from recollect.files.within import read_within

        file = read_within(path, tuple(roots) or self.allowed_roots())
        before = self.store.file_snapshot(str(file.path))
        answer, after = read_smart(file, before, self._clock(), force=force, count=self._tokens)
        self.store.keep_file_snapshot(after)
        return answer

    def allowed_roots(self) -> tuple[Path, ...]:
        """The folders whose files may be read."""
        named = self.settings.allowed_roots
        if named:
            return tuple(Path(one).expanduser() for one in named.split(os.pathsep) if one)
        return (self.settings.project,) if self.settings.project else ()

    def _tokens(self, text: str) -> int:
        if self.embedder is not None:
            return self.embedder.count_tokens(text)
        return -(-len(text.encode("utf-8", "replace")) // 4)


def _edit_of(told: Mapping[str, Any], now: Any) -> FileEdit:
    from recollect.dates import moment_of

    unknown = sorted(set(told) - set(FileEdit._fields))
    if unknown:
        allowed = ", ".join(FileEdit._fields)
        raise Refused(f"an edit has no field {unknown[0]!r}", remedy=f"allowed: {allowed}")
    for needed in ("path", "operation"):
        if needed not in told:
            raise Refused(f"an edit needs {needed!r}")
    try:
        moment = moment_of(told["at"], now) if told.get("at") is not None else now
    except ValueError as error:
        raise Refused(f"at: {error}") from error
    return FileEdit(**{**told, "at": moment, "intent": told.get("intent") or ""})


def _admit(edit: FileEdit) -> None:
    if edit.operation not in OPERATIONS:
        allowed = ", ".join(OPERATIONS)
        raise Refused(f"there is no operation {edit.operation!r}", remedy=f"allowed: {allowed}")
    limits = (("path", _LONGEST_PATH), ("intent", _LONGEST_INTENT), ("session", 1000),
              ("turn", 1000), ("item", 1000))  # fmt: skip
    for name, limit in limits:
        value = getattr(edit, name)
        if value is None:
            continue
        if not isinstance(value, str) or unkeepable(value) or len(value) > limit:
            raise Refused(f"an edit's {name} must be text of at most {limit} characters")
    if not edit.path:
        raise Refused("an edit needs the path of its file")
