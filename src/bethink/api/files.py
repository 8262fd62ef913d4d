"""File memory: record edits, recall a file's history, read only what changed."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bethink.api.session import SessionMethods
from bethink.core.characters import estimate_tokens, find_unstorable
from bethink.core.json_values import Json
from bethink.core.named_tuple import NamedTuple
from bethink.errors import Refused
from bethink.lang.dates import parse_moment
from bethink.model import OPERATIONS, FileEdit, FileHistory, Filters, Item, Level
from bethink.model.anchor import CodeChange, CodeState, anchor_name
from bethink.ports import EntityListing, ForgottenFiles, Scope

if TYPE_CHECKING:
    from bethink.api.file_reader import SmartRead


MAX_INTENTS = 50
_PAGE, _MAX_TIED = 500, 1000
_MAX_INTENT_CHARACTERS = 2000
_MAX_PATH_CHARACTERS = 4096


class CodeMemory(NamedTuple):
    """A memory and what has become of the code that it is tied to."""

    item: Item
    states: tuple[CodeState, ...] = ()

    @property
    def code(self) -> str:
        """How its code changed, in words; empty if it did not, or that is unknown."""
        told = (one for one in self.states if one.change not in ("same", "unknown"))
        return "; ".join(one.describe(self.item.stored_at) for one in told)


class FileMethods(SessionMethods):
    """Records and recalls file edits in an open space; reads files."""

    def note_edits(
        self, edits: Iterable[FileEdit | Mapping[str, object]], *, preview: bool = False
    ) -> int:
        """Record edits to files and return how many were new; repeated ones are recognised.

        Secrets are redacted. With ``preview`` they are only counted.
        """
        from bethink.ingest.redaction import redact  # start-up time: recall does without

        ready = [
            edit if isinstance(edit, FileEdit) else _parse_edit(edit, self.now) for edit in edits
        ]
        for edit in ready:
            _validate_edit(edit)
        personal = self.settings.personal_numbers != "none"
        safe = [
            edit._replace(
                path=redact(edit.path).text,
                intent=redact(edit.intent, personal=personal).text,
                session=edit.session and redact(edit.session, named=True).text,
            )
            for edit in ready
        ]
        actor, now = self.settings.actor, self.now
        return self.store.activity.note_edits(safe, actor=actor, now=now, preview=preview)

    def recall_file(self, part: str, *, intents: int = 10) -> FileHistory:
        """Return the history of files whose path contains this text, with the stated reasons."""
        if not part.strip():
            raise Refused("name a file, or a part of its path")
        if not 1 <= intents <= MAX_INTENTS:
            raise Refused(f"intents is {intents}, but must be from 1 to {MAX_INTENTS}")
        ceiling = self.settings.max_classification
        return self.store.activity.file_history(part, intents=intents, max_classification=ceiling)

    def file_memories(
        self, part: str, linked: Sequence[str] = (), *, limit: int = 20
    ) -> list[CodeMemory]:
        """Return the memories about a file: tied to its code, ``linked`` by edits, naming it.

        ``part`` is that of `recall_file`, or path::symbol; each has the state of its code.
        """
        path, _, symbol = part.partition("::")
        tied = self.anchored(path, symbol=symbol, limit=limit)
        rest = self._browse(limit, ids=tuple(linked)) if linked else []
        rest += self._naming(path, limit)
        found = list({item.id: item for item in (*tied, *rest)}.values())[:limit]
        states = self.code_states(*found)
        return [CodeMemory(item, tuple(states[item.id])) for item in found]

    def _naming(self, path: str, limit: int) -> list[Item]:
        """The memories whose text names a file of which this is a part; no turns of sessions."""
        from bethink.code.anchors import path_in_repository  # start-up time

        part = path_in_repository(path, self.settings.project).casefold()
        most = self.settings.max_classification
        listing = EntityListing(kinds=("file",), limit=_MAX_TIED, max_classification=most)
        files = self.store.graph.list_entities(listing, self.now)
        named = [f"file:{part}", *(one.id for one in files if part in one.name.casefold())]
        scope = Scope(Filters(max_classification=most, levels=("item", "insight")), self.now)
        found = self.store.search.mentioning([*dict.fromkeys(named)][: 5 * limit], limit, scope)
        return [item for each in found.values() for item in each]

    def anchored(self, path: str | Path, *, symbol: str = "", limit: int = 20) -> list[Item]:
        """Return the memories that are tied to a file, those tied to ``symbol`` of it first.

        ``path`` is any part of the file's path in its repository, or all of an absolute one; of
        a file that was renamed also by its name of now. Otherwise the newest come first.
        """
        from bethink.code.anchors import path_in_repository  # start-up time

        part = path_in_repository(str(path), self.settings.project)
        if not part.strip():
            raise Refused("name a file, or a part of its path")

        def is_other(item: Item) -> bool:
            names = (anchor_name(one).partition("::") for one in item.anchors)
            return not any(part in name and f".{symbol}." in f".{of}." for name, _, of in names)

        found = [*self._browse(max(limit, _PAGE), at=(part,)), *self._moved(part)]
        found = list({item.id: item for item in found}.values())
        return (sorted(found, key=is_other) if symbol else found)[:limit]

    def _moved(self, part: str) -> list[Item]:
        """The memories tied to code that is at another place now, which has this in its name."""
        from bethink.code.anchors import RECALL_LIMIT_S, find_moved  # start-up time

        if not self.settings.project:
            return []
        tied = self._browse(_MAX_TIED, at=("",))
        return find_moved(tied, part, self.settings.project, RECALL_LIMIT_S)

    def code_states(self, *items: Item) -> dict[str, list[CodeState]]:
        """Return what has become of the code that memories are tied to, by their ids.

        In the repository of the project; ``unknown`` outside of it.
        """
        from bethink.code.anchors import WRITE_LIMIT_S, states_of  # start-up time

        return states_of(items, self.settings.project, WRITE_LIMIT_S)

    def stale(
        self,
        *,
        at: str = "",
        changes: Sequence[CodeChange] = ("changed", "gone"),
        levels: Sequence[Level] = ("item", "insight"),
    ) -> list[CodeMemory]:
        """Return the memories whose code changed or is gone, newest first.

        ``at`` is a part of the path::symbol that they are tied to. ``changes`` are those to
        tell of: also ``moved``, ``same`` and ``unknown``. Turns of sessions (``raw``) are of
        their time, and left out.
        """
        found: list[CodeMemory] = []
        for page in self._pages_tied_to(at, levels):
            states = self.code_states(*page)
            told = ((one, tuple(s for s in states[one.id] if s.change in changes)) for one in page)
            found += [CodeMemory(item, states) for item, states in told if states]
        return found

    def _pages_tied_to(self, at: str, levels: Sequence[Level]) -> Iterator[list[Item]]:
        """Yield the memories tied to some code, and last those whose code went there."""
        known, after = set[str](), None
        while page := self._browse(_PAGE, after, at=(at,), levels=tuple(levels)):
            yield page
            known, after = known.union(item.id for item in page), page[-1].id
        moved = self._moved(at) if at else []
        yield [one for one in moved if one.level in levels and one.id not in known]

    def _browse(self, limit: int, after: str | None = None, **where: Any) -> list[Item]:
        filters = Filters(max_classification=self.settings.max_classification, **where)
        return self.store.items.browse(Scope(filters, self.now), limit=limit, after=after)

    def forget_file(self, part: str, *, preview: bool = False) -> ForgottenFiles:
        """Erase the edits and snapshots of files whose path contains this text.

        Edits recorded with memories are erased too; the memories stay. With ``preview``
        nothing is changed.
        """
        edited = self.recall_file(part).paths
        known = self.store.activity.forget_files(
            part, actor=self.settings.actor, now=self.now, preview=True
        )
        paths = tuple(sorted({*edited, *known.paths}))
        if preview:
            return known._replace(paths=paths, preview=True)
        forgotten = self.store.activity.forget_files(part, actor=self.settings.actor, now=self.now)
        return forgotten._replace(paths=paths)

    def read_smart(
        self, path: str | Path, *, force: bool = False, roots: Iterable[Path] = ()
    ) -> SmartRead:
        """Read a file, or only what changed in it since it was last read through here.

        Only inside the allowed folders: those given, else the setting's, else the project's
        own.
        """
        from bethink.api.file_reader import read_smart  # start-up time: recall does without
        from bethink.code.files import read_within_roots

        file = read_within_roots(path, tuple(roots) or self.allowed_roots())
        before = self.store.activity.file_snapshot(str(file.path))
        answer, after = read_smart(file, before, self.now, force=force, count=self._count_tokens)
        self.store.activity.keep_file_snapshot(after)
        return answer

    def allowed_roots(self) -> tuple[Path, ...]:
        """Return the folders whose files may be read."""
        setting = self.settings.allowed_roots
        if setting:
            return tuple(
                Path(folder).expanduser() for folder in setting.split(os.pathsep) if folder
            )
        return (self.settings.project,) if self.settings.project else ()

    def _count_tokens(self, text: str) -> int:
        counted = 0 if self.embedder is None else self.embedder.count_tokens(text)
        return estimate_tokens(text, counted)


def _parse_edit(given: Mapping[str, object], now: datetime) -> FileEdit:
    fields: Json = dict(given)
    unknown = sorted(set(fields) - set(FileEdit._fields))
    if unknown:
        allowed = ", ".join(FileEdit._fields)
        raise Refused(f"an edit has no field {unknown[0]!r}", remedy=f"allowed: {allowed}")
    for needed in ("path", "operation"):
        if needed not in fields:
            raise Refused(f"an edit needs {needed!r}")
    try:
        moment = parse_moment(fields["at"], now) if fields.get("at") is not None else now
    except ValueError as error:
        raise Refused(f"at: {error}") from error
    return FileEdit(**{**fields, "at": moment, "intent": fields.get("intent") or ""})


def _validate_edit(edit: FileEdit) -> None:
    if edit.operation not in OPERATIONS:
        allowed = ", ".join(OPERATIONS)
        raise Refused(f"there is no operation {edit.operation!r}", remedy=f"allowed: {allowed}")
    limits = (("path", _MAX_PATH_CHARACTERS), ("intent", _MAX_INTENT_CHARACTERS), ("session", 1000),
              ("turn", 1000), ("item", 1000))  # fmt: skip
    for name, limit in limits:
        value = getattr(edit, name)
        if value is None:
            continue
        if not isinstance(value, str) or find_unstorable(value) or len(value) > limit:
            raise Refused(f"an edit's {name} must be text of at most {limit} characters")
    if not edit.path:
        raise Refused("an edit needs the path of its file")
