"""Audit of reads: who was shown which memories, for those who want it (`audit_reads`).

One line for each answer, in a private file next to the space, written before the answer is given:
time, who, with which program, the operation and the ids. No questions, no texts.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from datetime import UTC, datetime
from threading import Lock

from bethink.access.policy import Principal
from bethink.config.paths import make_private_folder
from bethink.config.settings import Settings
from bethink.config.spaces import resolve_space
from bethink.core.atomic_write import atomic_replace
from bethink.core.json_values import Json, iso
from bethink.errors import StoreError
from bethink.store import shelf_folder

FILE = "reads.jsonl"
_MAX_IDS = 1000


class ReadAudit:
    """The record of what was read of one space."""

    def __init__(self, settings: Settings) -> None:
        self.path = shelf_folder(resolve_space(None, settings).path) / FILE
        self._lock = Lock()

    def note(self, principal: Principal, client: str, operation: str, content: object) -> None:
        """Record one answer; raise StoreError where it cannot be, so that nothing is shown."""
        who = principal.person or principal.name
        ids = list(dict.fromkeys(_ids_in(content)))[:_MAX_IDS]
        line = {"at": iso(datetime.now(UTC)), "who": who, "client": client}
        text = json.dumps(line | {"operation": operation, "ids": ids}) + "\n"
        try:
            make_private_folder(self.path.parent)
            flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND
            with self._lock, os.fdopen(os.open(self.path, flags, 0o600), "ab") as file:
                file.write(text.encode())
        except OSError as error:
            raise StoreError(f"{self.path} cannot be written: {error.strerror}") from error

    def lines(self) -> list[Json]:
        """Return what was recorded, oldest first; a line cut short by a crash is left out."""
        if not self.path.exists():
            return []
        found = []
        for line in self.path.read_text("utf-8").splitlines():
            try:
                found.append(json.loads(line))
            except ValueError:
                continue
        return found

    def forget(self, who: str) -> None:
        """Remove what was recorded of one person."""
        if self.path.exists():
            kept = (one for one in self.lines() if one["who"] != who)
            atomic_replace(self.path, "".join(json.dumps(one) + "\n" for one in kept).encode())


def audit_of(settings: Settings) -> ReadAudit | None:
    """Return the audit of a server's space, where its settings ask for one."""
    return ReadAudit(settings) if settings.audit_reads else None


def _ids_in(content: object) -> Iterator[str]:
    """Yield the ids of the memories in an answer."""
    if isinstance(content, dict):
        if isinstance(content.get("id"), str):
            yield content["id"]
        for value in content.values():
            yield from _ids_in(value)
    elif isinstance(content, list | tuple):
        for value in content:
            yield from _ids_in(value)
