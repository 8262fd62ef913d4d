"""One sync: read what others have written, apply it, write what they lack."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from bethink.core.json_values import Json
from bethink.errors import NotFound, Refused
from bethink.ports import Device, OpBatch, Store
from bethink.sync.folder import Bad, Cipher, Folder, Identity, Segment, make_salt

SEGMENT_OPS = 5_000
_COMPACT_FROM = 8  # files of this machine that are not full
Erase = Callable[[Sequence[str]], object]


@dataclass(slots=True)
class SyncReport:
    """What a sync did: memories changed and erased here, operations written and read.

    ``problems`` are files that were not taken, each with its name; ``unknown`` machines whose
    changes wait until they are accepted; ``waiting`` those that have not read all; ``held``
    memories of which something has not come, or cannot be stored here.
    """

    target: str = ""
    changed: list[str] = field(default_factory=list)
    erased: list[str] = field(default_factory=list)
    sent: int = 0
    received: int = 0
    problems: list[str] = field(default_factory=list)
    unknown: list[Device] = field(default_factory=list)
    waiting: list[str] = field(default_factory=list)
    held: list[str] = field(default_factory=list)
    conflicts: int = 0
    digest: str = ""


class Syncing:
    """A space while it is synchronised: what both ways of exchange share."""

    def __init__(self, store: Store, *, erase: Erase, now: Callable[[], datetime]) -> None:
        """Use a store; ``erase`` removes memories with all that was made of them."""
        self.store, self._erase, self.now = store, erase, now
        self.report = SyncReport()

    def identity(self, name: str = "") -> Identity:
        """Return this machine, making its keys the first time."""
        known = self.store.sync.settings()
        if "device" not in known:
            import platform  # start-up time

            me = Identity.make(name or platform.node() or "machine")
            values = {"device": me.id, "name": me.name, "private": me.private, "public": me.public}
            self.store.sync.keep(**values)
            self.store.sync.add_device(Device(me.id, me.name, me.public, True))
            return me
        return Identity(known["device"], known["name"], known["private"], known["public"])

    def capture(self) -> None:
        """Write into the log what was done here."""
        self.store.sync.capture(self.now())

    def receive(self, batch: OpBatch) -> bool:
        """Apply operations; return whether something is missing before them."""
        device = self.identity().id
        own: dict[str, list[tuple[int, str]]] = {}
        named: list[str] = []
        for line in batch.ops:
            is_own = line.startswith(f'["{device}.')
            if is_own or '"erase"' in line:
                with suppress(ValueError, TypeError, LookupError, RecursionError):
                    series, number, mark, _, _, kind, item, *_ = json.loads(line)
                    if is_own:
                        own.setdefault(str(series), []).append((int(number), str(mark)))
                    named += [str(item)] if kind == "erase" else []
        forks = self.store.sync.forks(own)
        self.branch_off(
            {name: max(n, *batch.ranges.get(name, (0,))[:1]) for name, n in forks.items()}
        )
        here = list(self.store.items.get(named)) if named else []
        if here:
            self._erase(here)
        done = self.store.sync.apply(batch, actor="sync", now=self.now())
        self.report.changed += done.changed
        self.report.erased += [*here, *done.erased]
        self.report.received += len(batch.ops)
        self.report.held += done.waiting
        return bool(done.gaps)

    def branch_off(self, forks: Mapping[str, int]) -> None:
        """Become another machine where a copy of this one has said something else.

        That is a copied home, or what this machine was before a backup was restored.
        """
        before = self.identity()
        if any(series.partition(".")[0] == before.id for series in forks):
            me = Identity.make(before.name)
            self.store.sync.renew(
                forks, device=me.id, name=me.name, private=me.private, public=me.public
            )
            self.store.sync.add_device(Device(me.id, me.name, me.public, True))

    def retired(self) -> dict[str, int]:
        """Return the machines that were retired: odd numbers; even, and accepted again."""
        return dict(self.store.sync.settings().get("retired", {}))

    def meet(self, device: Device) -> None:
        """Note a machine that was let in, unless it was retired."""
        if self.retired().get(device.id, 0) % 2:
            raise Refused(
                f"{device.name} ({device.id}) was retired; nothing was taken from it",
                remedy=f"bethink sync TARGET --accept {device.id}",
            )
        self.store.sync.add_device(device)

    def accept_again(self, devices: Iterable[str]) -> None:
        """Trust machines again that were retired."""
        known = self.retired()
        self.retire({one: known[one] + 1 for one in devices if known.get(one, 0) % 2})

    def retire(self, said: Mapping[str, int]) -> None:
        """Stop trusting devices that were retired; trust those again that were brought back."""
        known = self.retired()
        told = {device: n for device, n in said.items() if n > known.get(device, 0)}
        if told:
            self.store.sync.keep(retired=known | told)
        for one in self.store.sync.devices() if told else ():
            if one.accepted and told.get(one.id, 0) % 2:
                self.store.sync.add_device(one._replace(accepted=False))

    def finish(self) -> SyncReport:
        """Return what was done."""
        report = self.report
        report.changed = sorted(set(report.changed) - set(report.erased))
        report.erased = sorted(set(report.erased))
        report.conflicts = len(self.store.sync.conflicts())
        return report


class FolderSync:
    """A sync by a folder."""

    def __init__(self, syncing: Syncing, folder: Folder, *, target: str, ceiling: int) -> None:
        self._syncing, self._store, self._folder = syncing, syncing.store, folder
        self._target, self._ceiling = target, ceiling
        known = self._store.sync.settings().get("targets", {}).get(target, {})
        self.about: Json = known
        self._files: dict[str, Json] = known.get("files", {})
        self._salt = known.get("salt") or (make_salt() if folder.secret is not None else "")
        self._cleaned = known.get("erased", 0)
        self._told = max(ceiling, known.get("told", 0))  # up to where it was ever told
        self._bad: list[str] = []  # files that cannot be read, for their owners to write again

    def run(self, *, accept: Iterable[str] = (), name: str = "") -> SyncReport:
        """Read, apply and write; every step may be interrupted and repeated."""
        before = self._syncing.identity(name)
        self._agree_with(self._folder.own(before))
        self._syncing.capture()
        devices = self._take_devices(set(accept))
        self._folder.introduce(before, self._salt)
        self._keep()
        self._read(devices)
        if (me := self._syncing.identity()) != before:
            self._folder.introduce(me, self._salt)
            devices[me.id] = {"id": me.id, "name": me.name, "key": me.public, "salt": self._salt}
        self._write(me)
        self._compact(me)
        self._keep()
        vector = self._store.sync.vector(self._ceiling)
        said = {"vector": vector, "bad": self._bad, "retired": self._syncing.retired()}
        self._folder.tell_state(me, said | {"at": self._at()})
        self._find_waiting(devices)
        return self._syncing.finish()

    def _agree_with(self, own: Mapping[str, Any] | None) -> None:
        """Go on as this machine began here: with its secret, or without one."""
        if own is None:
            return
        if bool(own["salt"]) != (self._folder.secret is not None):
            how, remedy = (
                ("encrypted", "give the same passphrase or key")
                if own["salt"]
                else ("not encrypted", "leave out --key and BETHINK_SYNC_PASSPHRASE")
            )
            raise Refused(
                f"the files of this machine are {how} here; nothing was written",
                remedy=f"{remedy}, or use another folder",
            )
        self._salt = own["salt"]
        if self._folder.secret is not None:  # refuses another one
            Cipher(self._folder.secret, self._salt).decrypt(bytes.fromhex(own["proof"]))

    def _at(self) -> str:
        return self._syncing.now().isoformat(timespec="seconds")

    def _take_devices(self, accept: set[str]) -> dict[str, Json]:
        """Return the machines whose files are taken: accepted, or proven by the secret."""
        report, store = self._syncing.report, self._store.sync
        known = {device.id: device for device in store.devices()}
        found = {}
        seen = set()
        listed = list(self._folder.devices())
        here = [said for _, said in listed if not isinstance(said, str)]
        named = Counter(said["name"] for said in here)
        if several := [one for one in sorted(accept) if named[one] > 1]:
            codes = (said["id"] for said in here if said["name"] == several[0])
            raise Refused(
                f"several machines are called {several[0]}",
                remedy=f"accept one by its code: {', '.join(codes)}",
            )
        retired = self._retired(here, accept, known)
        for folder, said in listed:
            if isinstance(said, str):
                report.problems.append(f"{folder}: {said}")
                continue
            seen |= {said["id"], said["name"]}
            is_known = said["id"] in known and known[said["id"]].accepted
            is_known, is_proven = (
                one and said["id"] not in retired for one in (is_known, said["proven"])
            )
            if is_known or is_proven or accept & {said["id"], said["name"]}:
                found[folder] = said
                if not is_known:
                    store.add_device(Device(said["id"], said["name"], said["key"], True))
            elif said["id"] == self._syncing.identity().id:
                message = "this machine was retired: others take nothing from it until one of them"
                report.problems.append(f"{message} says --accept {said['id']}")
            else:
                report.unknown.append(Device(said["id"], said["name"], said["key"]))
        if accept - seen:
            raise NotFound(
                f"no machine {', '.join(sorted(accept - seen))} writes here",
                remedy=f"there are {', '.join(sorted(named))}" if named else "",
            )
        return found

    def _retired(
        self, here: Iterable[Json], accept: set[str], known: Mapping[str, Device]
    ) -> set[str]:
        """Return the machines that are no longer trusted, as those say that are."""
        for one in here:
            if one["id"] in known and known[one["id"]].accepted:
                with suppress(ValueError, TypeError, AttributeError):
                    told = self._folder.state(one).get("retired", {})
                    self._syncing.retire({str(name): int(n) for name, n in told.items()})
        self._syncing.accept_again(one["id"] for one in here if accept & {one["id"], one["name"]})
        return {name for name, n in self._syncing.retired().items() if n % 2}

    def _read(self, devices: Mapping[str, Mapping[str, Any]]) -> None:
        """Read all new files, again while some wait for what comes before them."""
        left = [one for name in devices for one in self._folder.segments(name)]
        doubted = {
            key for one in devices.values() for key in self._folder.state(one).get("bad", ())
        }
        sizes = {one.hash: one.size for one in left if one.hash not in doubted}
        self._files = {
            key: one for key, one in self._files.items() if sizes.get(key) == one["size"]
        }
        while True:
            missing = [one for one in left if one.hash not in self._files]
            left = [one for one in missing if not self._take(one, devices[one.device])]
            if not left or len(left) == len(missing):
                break
        named = (f"{one.device}/{one.path.name}" for one in left)
        self._syncing.report.problems += [f"{one}: a file before it is missing" for one in named]

    def _take(self, segment: Segment, device: Mapping[str, Any]) -> bool:
        """Apply one file; return whether it is done with."""
        try:
            batch = self._folder.read(segment, device)
        except (OSError, Bad) as error:
            where = f"{segment.device}/{segment.path.name}"
            self._syncing.report.problems.append(f"{where}: {error}")
            self._bad.append(segment.hash)
            if segment.device == self._syncing.identity().id and not isinstance(error, OSError):
                self._folder.remove([segment])  # what it should hold is written again
            return True
        if self._syncing.receive(batch):
            return False
        self._note(segment, batch)
        return True

    def _note(self, segment: Segment, batch: OpBatch) -> None:
        ranges = {series: list(span) for series, span in batch.ranges.items()}
        self._files[segment.hash] = {"ranges": ranges, "size": segment.size, "ops": len(batch.ops)}

    def _covered(self, without: Iterable[str] = ()) -> dict[str, int]:
        """Return up to which number the folder has each series."""
        spans: dict[str, list[Sequence[int]]] = {}
        left_out = set(without)
        for key, one in self._files.items():
            for series, span in one["ranges"].items() if key not in left_out else ():
                spans.setdefault(series, []).append(span)
        covered: dict[str, int] = {}
        for series, found in spans.items():
            for first, last in sorted((one[0], one[1]) for one in found):
                if first <= covered.get(series, 0) + 1:
                    covered[series] = max(last, covered.get(series, 0))
        return covered

    def _write(self, me: Identity, without: Iterable[str] = ()) -> None:
        """Write what the folder lacks, of other machines too: they may never come here."""
        covered = self._covered(without)
        while True:
            batch = self._store.sync.read(
                covered, ceiling=self._ceiling, limit=SEGMENT_OPS, told=self._told
            )
            if not batch.ranges:
                return
            self._note(self._folder.add(batch, me, self._salt), batch)
            self._syncing.report.sent += len(batch.ops)
            covered |= {series: last for series, (_, last) in batch.ranges.items()}

    def _compact(self, me: Identity) -> None:
        """Write files of this machine anew: many small ones, and all with something erased."""
        # Also files this machine wrote under another name: no other machine removes them.
        settings = self._store.sync.settings()
        former = settings.get("former", ())
        folders = [one for name in (me.id, *former) for one in self._folder.segments(name)]
        own = [one for one in folders if one.hash in self._files]
        erased = settings["erased"]
        old = [one for one in own if self._files[one.hash]["ops"] < SEGMENT_OPS]
        if erased != self._cleaned:
            old = own
        elif len(old) < _COMPACT_FROM:
            return
        sent = self._syncing.report.sent
        self._write(me, [one.hash for one in old])
        self._syncing.report.sent = sent
        for one in old:
            del self._files[one.hash]
        self._keep()
        self._folder.remove(old)
        self._cleaned = erased

    def _keep(self) -> None:
        """Keep what is known of the folder, if that has changed: a look changes nothing."""
        targets = self._store.sync.settings().get("targets", {})
        about = self.about | {
            "files": self._files, "salt": self._salt, "erased": self._cleaned,
            "ceiling": self._ceiling, "told": self._told,
        }  # fmt: skip
        known = targets.get(self._target, {})
        if {**known, "at": ""} != {**about, "at": ""}:
            self.about = about | {"at": self._at()}
            self._store.sync.keep(targets=targets | {self._target: self.about})

    def _find_waiting(self, devices: Mapping[str, Mapping[str, Any]]) -> None:
        """Say which machines have not read all that this one knows."""
        vector = self._store.sync.vector(self._ceiling)
        for device in devices.values():
            state = self._folder.state(device)
            read = state.get("vector", {})
            if any(read.get(series, 0) < upto for series, upto in vector.items()):
                when = state.get("at", "never")[:16].replace("T", " ")
                self._syncing.report.waiting.append(f"{device['name']} (last here {when})")


def retire(folder: Folder, device: str) -> None:
    """Remove the files of a machine that will not come back; others write what they hold."""
    path = folder.root / device
    if not re.fullmatch("[0-9a-f]{16}", device) or path.is_symlink() or not path.is_dir():
        raise NotFound(
            f"no machine has the code {device!r} here", remedy="bethink sync status shows the codes"
        )
    for file in (path / "device.json", path / "state.json", *sorted(path.glob("*.ops"))):
        file.unlink(missing_ok=True)
    if not any(path.iterdir()):
        path.rmdir()
