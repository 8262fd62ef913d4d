"""Synchronise a space with other machines, and settle what was changed in two places."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import closing, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from bethink.api.session import SessionMethods
from bethink.core.json_values import Json
from bethink.core.named_tuple import NamedTuple
from bethink.errors import ModelError, NotFound, Refused
from bethink.model import Item
from bethink.ports import Store, SyncConflict

if TYPE_CHECKING:
    from bethink.sync.session import FolderSync, Syncing, SyncReport

PASSPHRASE, TOKEN = "BETHINK_SYNC_PASSPHRASE", "BETHINK_SYNC_TOKEN"
_NEW_KEY = "head -c 32 /dev/urandom >"
DEFAULT_CEILING = 2  # secret memories leave this machine only on request
_WEB = ("http://", "https://")


class OtherVersion(NamedTuple):
    """What another machine made of a memory: its text, or that it was forgotten or replaced."""

    kind: str
    device: str
    at: Any
    text: str


class Conflicted(NamedTuple):
    """A memory that was changed in two places at once, and the versions that are not current."""

    item: Item
    others: tuple[OtherVersion, ...]


class SyncMethods(SessionMethods):
    """Keeps a space the same on several machines."""

    def sync_with(
        self,
        target: str | Path,
        *,
        ceiling: int | None = None,
        accept: Sequence[str] = (),
        key: str | Path | None = None,
        name: str = "",
    ) -> SyncReport:
        """Exchange changes with a folder, a machine (``ssh://host``) or a server (its URL).

        What is above ``ceiling`` stays here; it is remembered for each target, 2 at first.
        ``accept`` names machines whose changes in a folder are taken from now on. A folder is
        encrypted with the contents of the file ``key``, or with the passphrase in
        BETHINK_SYNC_PASSPHRASE. ``name`` is what this machine is called, the first time.
        """
        place = str(target)
        is_folder = not place.startswith(("ssh://", *_WEB))
        if is_folder and "://" in place:
            raise Refused(
                f"cannot synchronise with {place}: unknown kind of address",
                remedy="use a folder, ssh://HOST or https://HOST",
            )
        place = str(_place(place)) if is_folder else place
        known = self.store.sync.settings().get("targets", {}).get(place, {})
        level = known.get("ceiling", DEFAULT_CEILING) if ceiling is None else ceiling
        syncing = self._syncing()
        if is_folder:
            way = self._by_folder(syncing, place, level, key or known.get("key"))
            report = way.run(accept=accept, name=name)
        else:
            syncing.accept_again(accept)
            report = self._sync_peer(syncing, place, level, name)
        report.target = place
        self.session.drop_caches()
        if report.changed:
            with suppress(ModelError, AttributeError):
                self.reindex()  # type: ignore[attr-defined]  # of Memory
        report.digest = self.store.sync.digest()
        return report

    def _syncing(self) -> Syncing:
        from bethink.sync.session import Syncing  # start-up time: seldom needed

        def erase(ids: Sequence[str]) -> None:
            self.forget(*ids, erase=True)  # type: ignore[attr-defined]  # of Memory

        return Syncing(self.store, erase=erase, now=lambda: self.now)

    def _by_folder(
        self, syncing: Syncing, place: str, ceiling: int, key: str | Path | None
    ) -> FolderSync:
        from bethink.sync.folder import Folder  # start-up time: seldom needed
        from bethink.sync.session import FolderSync

        folder = Folder(Path(place), self.store.space, _read_secret(key))
        way = FolderSync(syncing, folder, target=place, ceiling=ceiling)
        way.about["key"] = str(_place(key)) if key else ""
        return way

    def _sync_peer(self, syncing: Syncing, place: str, ceiling: int, name: str) -> SyncReport:
        from bethink.sync.peer import Ssh, ask_server, exchange  # start-up time: seldom needed

        targets = self.store.sync.settings().get("targets", {})
        told = max(ceiling, targets.get(place, {}).get("told", 0))
        how = {"ceiling": ceiling, "told": told}
        if place.startswith(_WEB):
            server = ask_server(place, os.environ.get(TOKEN, ""))
            report = exchange(syncing, server, **how, name=name)
        else:
            with closing(Ssh(place, self.store.space)) as ask:
                report = exchange(syncing, ask, **how, name=name)
        about = {**how, "at": self.now.isoformat(timespec="seconds")}
        self.store.sync.keep(targets=targets | {place: about})
        return report

    def answer_sync(self, request: Json, *, ceiling: int = 3) -> Json:
        """Answer another machine that synchronises with this one, as a server does."""
        from bethink.sync.peer import answer  # start-up time: seldom needed

        told = answer(request, self._syncing(), ceiling=ceiling)
        self.session.drop_caches()
        return told

    def sync_status(self) -> Json:
        """Return the name of this machine, the known machines, the targets, and the hash."""
        known = self.store.sync.settings()
        return {
            "name": known.get("name", ""),
            "device": known.get("device", ""),
            "devices": [
                {"id": one.id, "name": one.name}
                for one in self.store.sync.devices()
                if one.accepted and one.id != known.get("device")
            ],
            "targets": [
                {"target": place, "ceiling": about["ceiling"], "last": about["at"]}
                for place, about in sorted(known.get("targets", {}).items())
            ],
            "conflicts": len(self.store.sync.conflicts()),
            "held": self.store.sync.held(),
            "hash": self.store.sync.digest(),
        }

    def retire_machine(self, target: str | Path, device: str) -> None:
        """Remove the files of a machine that is gone from a folder, once all of them are read.

        The next sync adds what only it had written, and marks it as untrusted for the others.
        """
        from bethink.sync.folder import Folder
        from bethink.sync.session import retire

        report = self.sync_with(target)
        is_unread = any(problem.startswith(device) for problem in report.problems)
        if is_unread or device in {one.id for one in report.unknown}:
            raise Refused(
                f"files of {device} were not read; nothing was removed",
                remedy=f"bethink sync {target} --accept {device}, or mend what it names",
            )
        retire(Folder(_place(target), self.store.space, None), device)
        syncing = self._syncing()
        syncing.retire({device: syncing.retired().get(device, 0) + 1})

    def conflicts(self) -> list[Conflicted]:
        """List the memories that were changed in two places at once."""
        found = self.store.sync.conflicts()
        items = self.store.items.get(list(found))
        return [
            Conflicted(items[item], tuple(self._other(item, one) for one in versions))
            for item, versions in found.items()
            if item in items
        ]

    def _other(self, item: str, version: SyncConflict) -> OtherVersion:
        rows = {one.rev: one.text for one in self.store.items.history(item)}
        return OtherVersion(version.kind, version.device, version.at, rows.get(version.rev, ""))

    def settle(self, item_id: str, keep: Literal["current", "other", "both"] = "current") -> Item:
        """Decide a conflict for all machines.

        ``current`` keeps what the memory says; ``other`` takes the other version, or forgets
        it where it was forgotten; ``both`` stores the other text as a memory of its own.
        """
        item = self.session.stored_item(item_id)
        found = [one for one in self.conflicts() if one.item.id == item.id]
        if not found:
            raise NotFound(
                f"{item.id} has no conflict to settle", remedy="bethink conflicts lists them"
            )
        other = found[0].others[-1]
        if keep != "current" and other.kind == "edited":
            self._take_text(item, other.text, apart=keep == "both")
        elif keep == "other" and other.kind == "forgotten":
            self.forget(item.id)  # type: ignore[attr-defined]  # of Memory
        elif keep == "other":
            actor = self.settings.actor
            self.store.items.set_status([item.id], "superseded", actor=actor, now=self.now)
        elif keep == "both":
            raise Refused(
                f"{item.id} was {other.kind} elsewhere: there is no other text",
                remedy="--keep current keeps it, --keep other takes that",
            )
        self.store.sync.set_conflict(item.id, None, now=self.now)
        return self.session.stored_item(item.id)

    def _take_text(self, item: Item, text: str, *, apart: bool) -> None:
        if not apart:
            self.update(item.id, text=text)  # type: ignore[attr-defined]  # of Memory
            return
        names = ("kind", "topic", "tags", "classification", "source", "source_class", "trust")
        same = {name: getattr(item, name) for name in names}
        user = item.metadata.get("user_id")
        self.remember(text, **same, user=user)  # type: ignore[attr-defined]  # of Memory


def erased_elsewhere(store: Store) -> tuple[str, ...]:
    """Say where what was erased may still be: what other machines and a carrier keep."""
    return tuple(
        f"{place}: other machines erase it at their next sync; older versions that are kept there"
        " (a git history, versions of a cloud drive, backups) are out of reach"
        for place in sorted(store.sync.settings().get("targets", {}))
    )


def _place(path: str | Path) -> Path:
    """Return one spelling of a path, whatever way it was named."""
    return Path(path).expanduser().resolve()


def _read_secret(key: str | Path | None) -> bytes | None:
    """Return the contents of the key file, or the passphrase; None for no encryption."""
    if key is not None and str(key):
        try:
            found = Path(key).expanduser().read_bytes()
        except OSError as error:
            message = f"the key {key} cannot be read: {error.strerror}"
            raise Refused(message, remedy=f"a new one: {_NEW_KEY} {key}") from error
        if len(found) < 16:
            raise Refused(f"the key {key} is too short", remedy=f"a new one: {_NEW_KEY} {key}")
        return found
    said = os.environ.get(PASSPHRASE, "")
    return said.encode() if said else None
