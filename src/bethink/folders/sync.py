"""One pass over a folder: read what people changed, then write what the space has.

A linked folder, the vault of another program, is read again and again, and never written.
"""

from __future__ import annotations

import math
import os
import time
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path

from bethink.core import plural
from bethink.core.named_tuple import NamedTuple
from bethink.errors import NotFound, Refused
from bethink.folders.base import Base, Scan, load_base, lock_folder, save_base, scan_folder
from bethink.folders.reading import Line, Plan, Report, Work, apply_plan, count_reverted, make_plan
from bethink.folders.writing import Assigned, Writer
from bethink.importers import AUTO
from bethink.importers.importer import Import
from bethink.memory import Memory
from bethink.ports import Progress

MAX_GONE = 20  # texts that may vanish at once without a question
_MAX_GONE_SHARE = 0.05
_PASSES = 5
_QUIET_S = 2.0

Confirm = Callable[[str], bool]


class Options(NamedTuple):
    """How a folder is synchronised.

    ``confirm`` is asked before much is forgotten. A text is forgotten once its file has been
    left alone for ``quiet_s`` seconds and it is still missing. ``is_watching`` reads no file
    before it was left alone as long: an editor may save every other word.
    """

    dry_run: bool = False
    ceiling: int | None = None
    confirm: Confirm = lambda _question: False
    quiet_s: float = _QUIET_S
    is_watching: bool = False


_USUAL = Options()


def sync_folder(
    memory: Memory, folder: Path, options: Options = _USUAL, progress: Progress | None = None
) -> Report:
    """Bring a folder and a space together, both ways."""
    folder = folder.resolve()
    with lock_folder(memory, folder):
        base = _open_base(memory, folder, options)
        report = Report(str(folder), dry_run=options.dry_run)
        for _ in range(_PASSES):
            is_behind = _run_pass(Work(memory, folder, base, report, progress), options)
            if options.dry_run:
                break
            if is_behind or report.held:
                base.generation = -1  # there is more to do
            if report.written and hasattr(os, "sync"):
                os.sync()
            save_base(memory, base)
            if not is_behind:
                break
        report.memories = len(base.rows)
        return report


def _open_base(memory: Memory, folder: Path, options: Options) -> Base:
    base = load_base(memory, folder)
    if base.kind:
        raise Refused(f"{folder} is a linked folder, which is only read")
    if not folder.is_dir():
        if base.rows or folder.exists():
            raise NotFound(f"{folder} is no folder; nothing was forgotten")
        if not options.dry_run:
            folder.mkdir(parents=True)
    if options.ceiling not in (None, base.ceiling):
        base.ceiling, base.generation = options.ceiling, -1
    return base


def export_folder(memory: Memory, folder: Path, progress: Progress | None = None) -> Report:
    """Write a space as files into a new or empty folder."""
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise Refused(f"{folder} is not empty", remedy="bethink files FOLDER updates a folder")
    folder.mkdir(parents=True, exist_ok=True)
    base, report = Base(str(folder)), Report(str(folder))
    work = Work(memory, folder, base, report, progress)
    work.load()
    Writer(work, Scan(), {}).write()
    report.memories = len(base.rows)
    return report


def _run_pass(work: Work, options: Options) -> bool:
    """Read and write once; return whether a file changed meanwhile."""
    found = _read(work, options)
    if found is None:
        return False
    scan, plan = found
    _guard(plan, scan, work, options)
    work.report.held = [Line(path, "", why) for path, why in scan.held.items()]
    work.report.refused.clear()
    added = apply_plan(plan, work)
    if not work.report.dry_run:
        work.load()
    assigned: Assigned = defaultdict(dict)
    for item_id, placed in (*plan.kept.items(), *added.items()):
        assigned[placed.path][placed.block.start] = item_id
    if work.report.dry_run:
        work.frozen |= {line.id for line in (*work.report.updated, *work.report.undone)}
        forgotten = {line.id for line in work.report.forgotten}
        work.visible = {one: item for one, item in work.visible.items() if one not in forgotten}
    writer = Writer(work, scan, assigned)
    writer.write()
    return writer.is_behind


def _read(work: Work, options: Options) -> tuple[Scan, Plan] | None:
    """Scan the folder, again while a file is being written; None: nothing has changed."""
    base = work.base
    while True:
        scan = scan_folder(work.folder, base)
        is_same = not (scan.sources or scan.held) and base.files.keys() == scan.unchanged.keys()
        if is_same and base.generation == work.memory.store.admin.generation():
            return None
        work.load()
        plan = make_plan(work, scan)
        matters = {row.path for row in plan.gone.values()}
        matters |= scan.sources.keys() if options.is_watching else set()
        if not any(_age_s(work.folder / path) < options.quiet_s for path in matters):
            return scan, plan
        work.report.refused.clear()
        time.sleep(options.quiet_s)


def _age_s(path: Path) -> float:
    """Return how long ago a file, or the folder it was in, changed; a wrong clock is no age."""
    place = path if path.exists() else path.parent
    age = time.time() - place.stat().st_mtime if place.exists() else math.inf
    return age if age >= 0 else math.inf


def _guard(plan: Plan, scan: Scan, work: Work, options: Options) -> None:
    """Ask before much is forgotten: a drive may be missing, or an old branch checked out."""
    is_empty = bool(plan.gone) and not (scan.unchanged or scan.sources or scan.held)
    reverted = count_reverted(plan, work)
    check_loss(len(plan.gone), reverted, len(work.base.rows), work.folder, options, is_empty)


def check_loss(  # noqa: PLR0917 - counts and what they are of
    gone: int, reverted: int, total: int, folder: Path, options: Options, is_empty: bool = False
) -> None:
    """Raise Refused where much would be forgotten without a confirmation."""
    is_much = gone + reverted > max(MAX_GONE, total * _MAX_GONE_SHARE)
    if not (is_much or is_empty) or options.dry_run:
        return
    parts = [f"{plural(gone, 'memory')} would be forgotten"] if gone else []
    parts += [f"{plural(reverted, 'memory')} would get an earlier text"] if reverted else []
    told = f"of {total:,} memories in {folder}, {' and '.join(parts)}"
    if not options.confirm(f"{told}. Go on?"):
        raise Refused(f"{told}; nothing was changed", remedy="if that is meant: --yes")


_UNLINKED = "removed from a linked folder"


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
        back = [one for one in here if one in known and known[one].ended_by == _UNLINKED]
        report.restored = [Line("", one, known[one].text) for one in memory.restore(*back)]
        withdrawn = memory.withdraw(gone, reason=_UNLINKED)
        report.forgotten = [Line("", one, known[one].text) for one in withdrawn]
        if not options.dry_run:
            kept = {one: rev for one, rev in base.imported.items() if tally.n_refused}
            base.kind = tally_of.kind
            base.imported = kept | {one: known[one].rev for one in here if one in known}
            save_base(memory, base)
        return report
