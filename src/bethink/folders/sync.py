"""One pass over a folder: read what people changed, then write what the space has.

A memory stays in its file as long as that is the file of its topic. Only lines that say
something else than the memory are written, and a file only while it is as it was read.

A linked folder, the vault of another program, is read again and again, and never written.
"""

from __future__ import annotations

import hashlib
import math
import os
import time
from collections import defaultdict
from collections.abc import Callable, Iterable
from datetime import UTC
from pathlib import Path

from bethink.core import plural
from bethink.core.atomic_write import replace_unchanged
from bethink.core.named_tuple import NamedTuple
from bethink.errors import NotFound, Refused
from bethink.folders import codec
from bethink.folders.base import (
    Base,
    FileState,
    Row,
    Scan,
    Source,
    load_base,
    lock_folder,
    read_file,
    read_source,
    save_base,
    scan_folder,
)
from bethink.folders.reading import Line, Plan, Report, Work, apply_plan, count_reverted, make_plan
from bethink.importers import AUTO
from bethink.importers.importer import Import
from bethink.memory import Memory
from bethink.model import Item
from bethink.ports import Progress

Assigned = dict[str, dict[int, str]]  # by path and first line of a block: its memory


class Page(NamedTuple):
    """A file to be written: as it is (None: new), its memories, and those that join it."""

    path: str
    group: str
    source: Source | None
    ids: dict[int, str]
    joining: list[str]

    @property
    def newline(self) -> str:
        return self.source.document.newline if self.source else "\n"


class Writer:
    """Writes the files of one pass."""

    def __init__(self, work: Work, scan: Scan, assigned: Assigned) -> None:
        self._work, self._scan = work, scan
        self._refs: defaultdict[str, dict[str, str]] = defaultdict(dict)
        for one, row in work.base.rows.items():
            self._refs[row.path][codec.block_id(one)] = one
        self._pages = {
            path: Page(path, source.document.group, source, assigned.get(path, {}), [])
            for path, source in scan.sources.items()
        }
        self._rows: dict[str, Row] = {}
        self._files: dict[str, FileState] = {}
        self._places: dict[str, str] = {}
        self.is_behind = False  # a file changed under our hands: read it again

    def write(self) -> None:
        """Bring all files up to date, and the base with them."""
        work, scan = self._work, self._scan
        for path in {row.path for one, row in work.base.rows.items() if self._differs(one, row)}:
            self._load_page(path)
        kept = (scan.unchanged.keys() | scan.held.keys()) - self._pages.keys()
        self._rows = {one: row for one, row in work.base.rows.items() if row.path in kept}
        states = {**work.base.files, **scan.unchanged}
        self._files = {path: states[path] for path in kept if path in states}
        self._places = {one: row.path for one, row in self._rows.items()}
        for page in self._pages.values():
            staying = (one for one in page.ids.values() if self._stays(one, page))
            self._places |= dict.fromkeys(staying, page.path)
        self._place([item for one, item in work.visible.items() if one not in self._places])
        for number, page in enumerate(self._pages.values(), 1):
            self._write_page(page)
            work.progress(number, len(self._pages))
        if not work.report.dry_run:
            work.base.rows, work.base.files = self._rows, self._files

    def _differs(self, item_id: str, row: Row) -> bool:
        """Whether the space has another version of a memory than its file."""
        item, work = self._work.visible.get(item_id), self._work
        return (
            item is None
            or (item.rev, work.shown_links(item_id)) != (row.rev, row.links)
            or work.conflicts.get(item_id, 0) != row.conflict
        )

    def _load_page(self, path: str) -> None:
        """Read a file that was unchanged, in order to write it."""
        state = self._scan.unchanged.get(path)
        if state is None or path in self._pages:
            return
        try:
            content, now = read_file(self._work.folder / path)
            source = read_source(path, content, now, checked=False, known=state.group)
        except Refused:
            source = None
        if source is None or now.sha256 != state.sha256:
            self.is_behind = True
            return
        refs = dict(self._refs[path])
        blocks = source.document.blocks
        ids = {block.start: refs.pop(block.ref) for block in blocks if block.ref in refs}
        self._pages[path] = Page(path, state.group, source, ids, [])

    def _stays(self, item_id: str, page: Page) -> bool:
        """Whether a memory stays in a file: its topic is the file's, and a line can show it."""
        item = self._work.visible.get(item_id)
        if item is None or item_id in self._work.frozen:
            return item_id in self._work.frozen
        sort, _, topic = page.group.partition(":")
        if sort == "note":
            return True
        shown = codec.editable_of(item, self._work.shown_links(item_id))
        return item.topic == (topic if sort == "topic" else None) and codec.fits_item(shown, None)

    def _place(self, items: Iterable[Item]) -> None:
        """Choose the files of memories that have none."""
        work, scan = self._work, self._scan
        groups = {state.group: path for path, state in scan.unchanged.items()}
        groups |= {page.group: page.path for page in self._pages.values()}
        held = {work.base.files[path].group for path in scan.held if path in work.base.files}
        taken = {codec.fold_path(name) for name in scan.names}
        for item in sorted(items, key=lambda item: (item.when, item.id)):
            group = _group_of(item, work)
            path = groups.get(group, "") if group != "note" else ""
            if not path and group in held and group != "note":
                continue  # its file waits
            if path:
                self._load_page(path)
            else:
                groups[group] = path = _free_path(group, item, taken)
                self._pages[path] = Page(path, group, None, {}, [])
            if path in self._pages:
                self._pages[path].joining.append(item.id)
                self._places[item.id] = path

    def _write_page(self, page: Page) -> None:
        work, path = self._work, page.path
        here = [one for one in (*page.ids.values(), *page.joining) if self._places.get(one) == path]
        document = self._compose(page)
        old = page.source.content if page.source else None
        new = document.to_bytes() if document is not None else None
        if new is not None and not self._shows(path, new, here):
            work.report.held.append(Line(path, "", "no memory can be written into it"))
            new = old
        if new != old and not work.report.dry_run and not _replace(work.folder / path, old, new):
            self.is_behind = True
            self._rows |= {one: row for one, row in work.base.rows.items() if row.path == path}
            return
        if new != old:
            (work.report.removed if new is None else work.report.written).append(path)
        if new is None or work.report.dry_run:
            return
        state = page.source.state if page.source and new == old else _state(work.folder / path, new)
        sha256 = "" if path in work.unread else state.sha256
        self._files[path] = state._replace(group=page.group, sha256=sha256)
        for one in here:
            self._note_row(one, path)

    def _note_row(self, item_id: str, path: str) -> None:
        work = self._work
        if item_id in work.frozen:
            self._rows |= {item_id: row} if (row := work.base.rows.get(item_id)) else {}
            return
        item, links = work.visible[item_id], work.shown_links(item_id)
        digest = codec.editable_of(item, links).digest
        self._rows[item_id] = Row(path, item.rev, digest, links, work.conflicts.get(item_id, 0))

    def _shows(self, path: str, content: bytes, ids: Iterable[str]) -> bool:
        """Whether a file shows these memories when it is read again."""
        document = codec.parse_document(content, path)
        refs = {block.ref for block in document.blocks} if document else set()
        return refs >= {codec.block_id(one) for one in ids if one not in self._work.frozen}

    def _compose(self, page: Page) -> codec.Document | None:
        """Return the file as it should be; None where nothing would be left of it."""
        document = page.source.document if page.source else codec.new_document(page.group)
        if page.group != "note":
            return self._compose_list(page, document)
        item_id = next(iter((*page.ids.values(), *page.joining)), "")
        if not item_id or item_id in self._work.frozen:
            return document
        if self._places.get(item_id) != page.path:
            return None
        shown, ref, other = self._shown(item_id), codec.block_id(item_id), self._conflict(item_id)
        for block in document.blocks:
            now = block.shown if other else codec.whole_note(document)
            if (now, block.ref) == (shown, ref) and bool(other) == (block.stop > block.end):
                return document
        return codec.format_note(document, shown, ref, other)

    def _compose_list(self, page: Page, document: codec.Document) -> codec.Document | None:
        lines, end = list(document.lines), document.newline
        at = document.blocks[-1].stop if document.blocks else len(lines)
        if page.joining and at and not lines[at - 1].endswith("\n"):
            lines[at - 1] += end
        joining = [line + end for one in page.joining for line in self._lines(one)]
        lines[at:at] = joining
        for block in reversed(document.blocks):
            item_id = page.ids.get(block.start, "")
            if item_id and item_id not in self._work.frozen:
                self._compose_block(lines, block, item_id, page)
        body = lines[document.head[1] :]
        if len(body) < len(document.lines) - document.head[1] and not any(map(str.strip, body)):
            return (
                None
                if set(document.keys) <= set(codec.OWN_KEYS)
                else document._replace(lines=tuple(lines))
            )
        return document._replace(lines=tuple(lines))

    def _compose_block(
        self, lines: list[str], block: codec.Block, item_id: str, page: Page
    ) -> None:
        """Replace, remove or leave the lines of a memory."""
        row = self._work.base.rows.get(item_id)
        stop = block.stop if row and row.conflict else block.end
        if self._places.get(item_id) != page.path:
            del lines[block.start : stop]
            return
        end, indent = page.newline, codec.indent_of(lines[block.start])
        other = self._conflict(item_id, f"{indent}  ").replace("\n", end)
        if bool(other) != (block.stop > block.end) and (other or (row and row.conflict)):
            lines[block.end : block.stop] = other.splitlines(keepends=True)
        if (block.shown, block.ref) == (self._shown(item_id), codec.block_id(item_id)):
            return
        fresh = [f"{indent}{line}{end}" for line in self._lines(item_id)]
        bullet = len(indent) + 1
        fresh[0] = lines[block.start][:bullet] + fresh[0][bullet:]  # as in the file
        fresh[1:1] = filter(codec.PROPERTY.fullmatch, lines[block.start : block.end])
        if not lines[block.end - 1].endswith("\n"):
            fresh[-1] = fresh[-1].removesuffix(end)
        lines[block.start : block.end] = fresh

    def _lines(self, item_id: str) -> list[str]:
        return codec.format_item(self._shown(item_id), codec.block_id(item_id))

    def _shown(self, item_id: str) -> codec.Editable:
        """Return a memory as its file shows it, with links to the places of others."""
        links = [
            (relation, _target(other, self._places.get(other, "")))
            for relation, other in self._work.shown_links(item_id)
        ]
        return codec.editable_of(self._work.visible[item_id], links)

    def _conflict(self, item_id: str, indent: str = "") -> str:
        """Return the callout with the other version of a memory; empty where there is none."""
        rev = self._work.conflicts.get(item_id)
        history = self._work.memory.store.items.history(item_id) if rev else []
        for one in history:
            if one.rev == rev and one.classification <= self._work.base.ceiling:
                label = f"{one.writer}, {one.live_from or one.stored_at:%Y-%m-%d %H:%M}"
                return codec.format_conflict(one.text, label, indent)
        return ""


def _group_of(item: Item, work: Work) -> str:
    if not codec.fits_item(codec.editable_of(item, work.shown_links(item.id))):
        return "note"
    return f"topic:{item.topic}" if item.topic else f"day:{item.when.astimezone(UTC):%Y-%m-%d}"


def _target(item_id: str, path: str) -> str:
    """Return what a link to a memory says: its file, and its block where it has others."""
    stem = path.removesuffix(".md")
    return stem if path.startswith("notes/") else f"{stem}#^{codec.block_id(item_id)}"


def _free_path(group: str, item: Item, taken: set[str]) -> str:
    """Return the path of a new file, which no other has in any spelling."""
    sort, _, name = group.partition(":")
    wanted = codec.note_name(item) if sort == "note" else f"{sort}s/{codec.slug_of(name)}.md"
    path, number = wanted, 1
    while codec.fold_path(path) in taken:
        number += 1
        path = f"{wanted.removesuffix('.md')}-{number}.md"
    taken.add(codec.fold_path(path))
    return path


def _state(path: Path, content: bytes) -> FileState:
    found = path.stat()
    sha256 = hashlib.sha256(content).hexdigest()
    return FileState(found.st_size, found.st_mtime_ns, found.st_ino, sha256, "")


def _replace(path: Path, old: bytes | None, new: bytes | None) -> bool:
    """Write a file that is still as it was; False if it has changed meanwhile."""
    if old is not None and new is not None:
        return replace_unchanged(path, new, old)
    if new is None:
        if path.read_bytes() != old:
            return False
        path.unlink()
        return True
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = path.with_name(f".bethink-{os.getpid()}.new")
    # Not flushed: all new files are, before the base says that they are there.
    with os.fdopen(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
        file.write(new)
    try:
        os.link(fresh, path)
    except FileExistsError:
        return False
    except OSError:  # a file system without hard links
        if path.exists():
            return False
        fresh.replace(path)
    finally:
        fresh.unlink(missing_ok=True)
    return True


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
