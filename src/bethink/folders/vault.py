"""Linked folders: vaults of other programs that are read again and again, never written."""

from __future__ import annotations

from pathlib import Path

from bethink.errors import Refused
from bethink.folders.base import load_base, lock_folder, save_base
from bethink.folders.reading import Line, Report
from bethink.folders.sync import Options, check_loss
from bethink.importers import AUTO
from bethink.importers.importer import Import
from bethink.memory import Memory
from bethink.ports import Progress

_REASON = "removed from a linked folder"


def link_folder(
    memory: Memory, folder: Path, options: Options, progress: Progress | None = None
) -> Report:
    """Import what is new or changed in a folder, and withdraw what it no longer has.

    Where a note cannot be read, nothing is withdrawn.
    """
    folder = folder.resolve()
    with lock_folder(memory, folder):
        base = load_base(memory, folder)
        if base.rows:
            raise Refused(f"{folder} is a folder of this space, which is not only read")
        tally_of = Import(memory, str(folder), base.kind or AUTO, preview=options.dry_run)
        tally = tally_of.run(progress)
        report = Report(str(folder), dry_run=options.dry_run, linked=tally_of.kind)
        report.imported, report.changed = tally.stored, tally.updated
        report.refused = [Line(where, "", error.message) for where, error in tally.refused]
        known = memory.store.items.get([*base.imported, *tally.ids])
        here = set(tally.ids)
        gone = {} if tally.n_refused or options.dry_run else {
            one: rev for one, rev in base.imported.items()
            if one not in here and one in known and known[one].live_to is None
        }  # fmt: skip
        check_loss(len(gone), 0, len(base.imported), folder, options)
        back = [one for one in here if one in known and known[one].ended_by == _REASON]
        report.restored = [Line("", one, known[one].text) for one in memory.restore(*back)]
        withdrawn = memory.withdraw(gone, reason=_REASON)
        report.forgotten = [Line("", one, known[one].text) for one in withdrawn]
        if not options.dry_run:
            kept = {one: rev for one, rev in base.imported.items() if tally.n_refused}
            base.kind = tally_of.kind
            base.imported = kept | {one: known[one].rev for one in here if one in known}
            save_base(memory, base)
        return report
