"""From the files to the space: which memory each text is, and what was changed in it.

An id names its memory wherever it is. A text that lost its id is the memory that is missing
now and says the same or nearly so. What differs from the base was edited in the file; what
differs in the space as well is a conflict, and both versions are kept.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time
from pathlib import Path

from bethink.core.characters import has_substance
from bethink.core.json_values import Json
from bethink.core.named_tuple import NamedTuple
from bethink.errors import BethinkError, NotFound, Refused
from bethink.folders.base import Base, Row, Scan, Source
from bethink.folders.codec import Block, Editable, Links, block_id, editable_of, whole_note
from bethink.importers.intake import match_similar
from bethink.ingest.revision import reactivate_superseded
from bethink.memory import Memory
from bethink.model import RELATIONS, Draft, Filters, Item
from bethink.ports import Progress, Scope

FORGOTTEN_IN_FILE = "removed from a file"
_CALLER = "caller"  # the source of links that people make
_PAGE = 500
_WHOLE_JOURNAL = 2**31
_INNER_ID = re.compile(r"[ \t]*\^([A-Za-z0-9-]{4,64})(?=\s)(?:\s+[-*+] (?:\[[^\[\]\n]+\] )?)?")


class Line(NamedTuple):
    """A line of the report: where it is, the memory, and its text or a message."""

    where: str
    id: str
    text: str


@dataclass(slots=True)
class Report:
    """What was done, or would be, in a folder and a space.

    ``refused`` texts and ``held`` files stay as they are until they are changed.
    """

    folder: str
    dry_run: bool = False
    remembered: list[Line] = field(default_factory=list)
    updated: list[Line] = field(default_factory=list)
    forgotten: list[Line] = field(default_factory=list)
    restored: list[Line] = field(default_factory=list)
    duplicates: list[Line] = field(default_factory=list)
    conflicts: list[Line] = field(default_factory=list)
    undone: list[Line] = field(default_factory=list)
    refused: list[Line] = field(default_factory=list)
    held: list[Line] = field(default_factory=list)
    written: list[str] = field(default_factory=list)
    removed: list[str] = field(default_factory=list)
    memories: int = 0
    linked: str = ""  # the importer of a linked folder, and what it did
    imported: int = 0
    changed: int = 0


class Work:
    """One pass over a folder: the space, the base, and what is known of its memories."""

    def __init__(
        self, memory: Memory, folder: Path, base: Base, report: Report, progress: Progress | None
    ) -> None:
        self.memory, self.folder, self.base, self.report = memory, folder, base, report
        self.progress = progress or (lambda _done, _total: None)
        self.visible: dict[str, Item] = {}
        self.links: dict[str, Links] = {}
        found = memory.store.sync.conflicts().items()
        self.conflicts = {one: it.rev for one, versions in found for it in versions if it.rev}
        self.frozen: set[str] = set()  # memories whose lines are not touched in this pass
        self.unread: set[str] = set()  # files to be read again next time

    def load(self) -> None:
        """Load what files show: memories in force up to the ceiling, no turns of talks."""
        filters = Filters(max_classification=self.base.ceiling, include_expired=True)
        scope, last = Scope(filters, self.memory.now), None
        self.visible, self.links = {}, {}
        self.base.generation = self.memory.store.admin.generation()
        while page := self.memory.store.items.browse(scope, limit=_PAGE, after=last):
            last = page[-1].id
            shown = [one for one in page if one.level != "raw" or one.session is None]
            self.visible |= {item.id: item for item in shown}
            self.links |= self.links_of([item.id for item in shown])

    def links_of(self, ids: Sequence[str]) -> dict[str, Links]:
        found: defaultdict[str, list[tuple[str, str]]] = defaultdict(list)
        links = self.memory.store.graph.links_of(ids, RELATIONS, incoming=False) if ids else ()
        for link in links:
            if link.source == _CALLER and link.src.kind == link.dst.kind == "item":
                found[link.src.id].append((link.type, link.dst.id))
        return {item: tuple(sorted(set(ties))) for item, ties in found.items()}

    def shown_links(self, item_id: str) -> Links:
        """Return a memory's links to others that the files show."""
        return tuple(tie for tie in self.links.get(item_id, ()) if tie[1] in self.visible)


class Placed(NamedTuple):
    """A block of a file; ``shown`` names linked memories by their ids."""

    path: str
    block: Block
    shown: Editable
    id: str
    changed_at: datetime
    group: str
    joined: tuple[str, ...] = ()

    @property
    def where(self) -> str:
        return f"{self.path}:{self.block.start + 1}"

    def line(self, text: str = "", item_id: str = "") -> Line:
        return Line(self.where, item_id or self.id, text or self.shown.text)


@dataclass(slots=True)
class Plan:
    """Which memory each block is: known ones, new texts, and memories that are gone."""

    kept: dict[str, Placed] = field(default_factory=dict)
    new: list[Placed] = field(default_factory=list)
    gone: dict[str, Row] = field(default_factory=dict)
    items: dict[str, Item] = field(default_factory=dict)


def make_plan(work: Work, scan: Scan) -> Plan:
    """Find out which memory each block of the read files is."""
    plan, rows = Plan(), work.base.rows
    refs = _ids_of_refs(work, scan)
    notes = {row.path.removesuffix(".md"): one for one, row in rows.items()}
    found: defaultdict[str, list[Placed]] = defaultdict(list)
    for path, source in scan.sources.items():
        for block in source.document.blocks:
            placed = _place(path, source, block, work, (refs, notes))
            found[placed.id].append(placed)
    plan.new = [one for one in found.pop("", ()) if has_substance(one.shown.text)]
    for item_id, places in found.items():
        row = rows.get(item_id)
        if row is not None and row.path in scan.held:
            work.unread.update(one.path for one in places)
        elif row is not None and row.path in scan.unchanged:
            plan.new += [one._replace(id="") for one in places]
        else:
            first, *others = sorted(places, key=lambda one: _claim(one, row))
            plan.kept[item_id] = first
            plan.new += [one._replace(id="") for one in others]
    joined = {other for one in plan.kept.values() for other in one.joined}
    there = scan.unchanged.keys() | scan.held.keys()
    plan.gone = {
        one: row for one, row in rows.items()
        if one not in plan.kept and one not in joined and row.path not in there
    }  # fmt: skip
    if _hold_strays(plan, scan):
        return make_plan(work, scan)
    plan.items = work.memory.store.items.get([*plan.kept, *plan.gone])
    _match_lost(plan)
    return plan


def _ids_of_refs(work: Work, scan: Scan) -> dict[str, str]:
    """Return the ids that block ids stand for; the journal knows those that are gone."""
    blocks = (block for one in scan.sources.values() for block in one.document.blocks)
    refs = {block_id(one): one for one in (*work.visible, *work.base.rows)}
    if any(block.ref and block.ref not in refs for block in blocks):
        changes = work.memory.store.admin.changes(item=None, actor=None, limit=_WHOLE_JOURNAL)
        refs = {block_id(one.item): one.item for one in changes if one.item} | refs
    return {ref: one for ref, one in refs.items() if ref != one}


def _hold_strays(plan: Plan, scan: Scan) -> bool:
    """Leave files alone in which an id is left that no list item has: it is not removed."""
    strays = {ref: path for path, one in scan.sources.items() for ref in one.document.stray_ids()}
    stuck = {one: row for one, row in plan.gone.items() if block_id(one) in strays}
    for one, row in stuck.items():
        for path in (strays[block_id(one)], row.path):
            scan.held[path] = f"^{block_id(one)} is at no list item; remove it to forget the memory"
            scan.sources.pop(path, None)
    return bool(stuck)


def _claim(placed: Placed, row: Row | None) -> tuple[bool, bool, str, int]:
    """Sort the places of one id: the unchanged one keeps it, else the one in the old file."""
    moved = row is not None and placed.path != row.path
    edited = row is not None and placed.shown.digest != row.digest
    return edited, moved, placed.path, placed.block.start


def _place(
    path: str,
    source: Source,
    block: Block,
    work: Work,
    names: tuple[dict[str, str], dict[str, str]],
) -> Placed:
    refs, notes = names
    item_id = refs.get(block.ref, block.ref)
    row = work.base.rows.get(item_id)
    if source.document.group == "note" and not (row and row.conflict):
        # Without a conflict of ours the callout is a quotation in the text.
        block = block._replace(shown=whole_note(source.document), end=block.stop)
    links: list[tuple[str, str]] = []
    for relation, target in block.shown.links:
        page, _, ref = target.partition("#^")
        if other := refs.get(ref, ref) or notes.get(page) or notes.get(f"notes/{page}"):
            links.append((relation, other))
        else:
            message = f"there is no memory [[{target}]]; the link is left out"
            work.report.refused.append(Line(f"{path}:{block.start + 1}", item_id, message))
    shown = block.shown._replace(links=tuple(sorted(links)))
    known = [
        one for one in _INNER_ID.findall(f"{shown.text}\n") if refs.get(one, one) in work.base.rows
    ]
    joined: tuple[str, ...] = ()
    if known and item_id:
        # Several lines were joined: the first memory goes on, it supersedes the others.
        ids = [refs.get(one, one) for one in (*known, block.ref)]
        item_id = ids[0]
        others = dict.fromkeys(one for one in ids[1:] if one in work.visible)
        joined = tuple(one for one in others if one != item_id)
        shown = shown._replace(text=_INNER_ID.sub(" ", f"{shown.text}\n").strip())
    at = datetime.fromtimestamp(source.state.mtime_ns / 1e9, UTC)
    return Placed(path, block, shown, item_id, at, source.document.group, joined)


def _match_lost(plan: Plan) -> None:
    """Give texts without an id the memories that are missing and say the same, or nearly."""
    bare = {n: one.shown.text for n, one in enumerate(plan.new) if not one.block.ref}
    lost = {one: plan.items[one].text for one in plan.gone if one in plan.items}
    same = {text: one for one, text in lost.items()}
    matched = {n: same.pop(text) for n, text in bare.items() if text in same}
    rest = {one: text for one, text in lost.items() if one not in matched.values()}
    matched |= match_similar({n: text for n, text in bare.items() if n not in matched}, rest)
    for n, item_id in matched.items():
        plan.kept[item_id] = plan.new[n]._replace(id=item_id)
        del plan.gone[item_id]
    plan.new = [one for n, one in enumerate(plan.new) if n not in matched]


_FIELDS = tuple(name for name in Editable._fields if name != "links")


def count_reverted(plan: Plan, work: Work) -> int:
    """Count memories that a file brings back to an earlier text, as an old branch does."""
    count = 0
    for item_id, placed in plan.kept.items():
        item, row = plan.items.get(item_id), work.base.rows.get(item_id)
        if item and row and item.rev > 1 and placed.shown.text != item.text:
            before = work.memory.store.items.history(item_id)[: row.rev - 1]
            count += any(one.text == placed.shown.text for one in before)
    return count


def apply_plan(plan: Plan, work: Work) -> dict[str, Placed]:
    """Carry out what the files say; return the blocks of new memories by id."""
    for item_id, placed in plan.kept.items():
        try:
            _apply_kept(item_id, placed, plan, work)
        except (Refused, NotFound) as refused:
            _refuse(placed, refused, work)
    added = _remember_new(plan.new, work)
    _forget_gone(plan, work)
    return added


def _refuse(placed: Placed, refused: BethinkError, work: Work) -> None:
    remedy = f" (try: {refused.remedy})" if refused.remedy else ""
    work.report.refused.append(placed.line(f"{refused.message}{remedy}"))
    work.unread.add(placed.path)
    work.frozen.add(placed.id)


def _apply_kept(item_id: str, placed: Placed, plan: Plan, work: Work) -> None:
    item, row = plan.items.get(item_id), work.base.rows.get(item_id)
    if item is None:
        changes = work.memory.store.admin.changes(item=item_id, actor=None, limit=1)
        if any(change.kind == "erased" for change in changes):
            raise Refused("it was erased and is not stored again", remedy="remove the text")
        plan.new.append(placed)
        return
    if row is None and item.classification > work.base.ceiling:
        raise Refused(f"{item_id} is classified above what this folder shows")
    is_settled = row is not None and row.conflict and placed.block.stop == placed.block.end
    if is_settled and work.conflicts.pop(item_id, 0) and not work.report.dry_run:
        work.memory.settle(item_id)  # its callout is gone
    if row is not None and row.digest == placed.shown.digest and not placed.joined:
        return
    shown = placed.shown._replace(kind=placed.shown.kind or item.kind)
    now = editable_of(item, work.links_of([item_id]).get(item_id, ()))
    if now == shown and item.live_to is None and not placed.joined:
        return
    if item.level == "insight":
        work.report.undone.append(placed.line())
    elif row is None and item.live_to is None and _is_earlier(shown, item, work):
        return  # an old copy: the file gets the present version
    else:
        _change(item, now, placed._replace(shown=shown), work)


def _is_earlier(shown: Editable, item: Item, work: Work) -> bool:
    before = work.memory.store.items.history(item.id)[:-1]
    return any(editable_of(one, shown.links) == shown for one in before)


def _change(item: Item, now: Editable, placed: Placed, work: Work) -> None:
    """Update a memory as its file says; what was changed on both sides is kept twice."""
    shown, memory, report = placed.shown, work.memory, work.report
    base = _base_of(item, now, placed, work)
    changes: Json = {
        name: value for name in _FIELDS if (value := getattr(shown, name)) != getattr(base, name)
    }
    clashes = {
        name: there for name, value in changes.items()
        if (there := getattr(now, name)) not in (getattr(base, name), value)
    }  # fmt: skip
    if item.live_to is not None and not report.dry_run:
        memory.restore(item.id)
        item = memory.stored(item.id)
        report.restored.append(placed.line())
    # Of two versions the later one is current.
    is_earlier = bool(clashes) and placed.changed_at < (item.live_from or item.stored_at)
    if changes or base.links != shown.links or placed.joined:
        report.updated.append(placed.line(clashes.get("text", "") if is_earlier else ""))
    if clashes:
        report.conflicts.append(placed.line(shown.text if is_earlier else now.text))
    if report.dry_run:
        return
    here = memory.update(item.id, revision=item.rev, **changes) if changes else item
    if is_earlier:
        memory.update(item.id, revision=here.rev, **clashes)
        item = here
    if "text" in clashes:
        work.conflicts[item.id] = item.rev
        memory.store.sync.set_conflict(item.id, item.rev, now=memory.now)
    for relation, other in set(base.links) - set(shown.links):
        memory.unlink(item.id, relation, other)
    for relation, other in set(shown.links) - set(base.links):
        memory.link(item.id, relation, other)
    for other in placed.joined:
        memory.link(item.id, "supersedes", other)


def _base_of(item: Item, now: Editable, placed: Placed, work: Work) -> Editable:
    """Return what file and space last had in common; without a base the texts have nothing."""
    row = work.base.rows.get(item.id)
    if row is None:
        links = tuple(tie for tie in now.links if tie in placed.shown.links)
        return now._replace(text="", links=links) if item.live_to is None else now
    if row.rev == item.rev:
        return now._replace(links=row.links)
    before = work.memory.store.items.history(item.id)
    return next(
        (editable_of(one, row.links) for one in before if one.rev == row.rev),
        now._replace(text="", links=row.links),
    )


def _remember_new(new: Sequence[Placed], work: Work) -> dict[str, Placed]:
    """Remember texts that are new; return those that have a memory now, by its id."""
    report = work.report
    added: dict[str, Placed] = {}
    if report.dry_run:
        report.remembered += [placed.line() for placed in new]
        return {}
    for start in range(0, len(new), _PAGE):
        batch = new[start : start + _PAGE]
        answers = work.memory.remember_each([_draft(placed, work) for placed in batch])
        for placed, answer in zip(batch, answers, strict=True):
            if isinstance(answer, Refused):
                _refuse(placed, answer, work)
            elif answer.status == "stored" or answer.id not in work.base.rows.keys() | added:
                # A known text without a place: it was remembered, and its id never written.
                added[answer.id] = placed
                report.remembered.append(placed.line(item_id=answer.id))
            else:
                report.duplicates.append(placed.line(item_id=answer.id))
        work.progress(start + len(batch), len(new))
    for item_id, placed in added.items():
        for relation, other in placed.shown.links:
            try:
                work.memory.link(item_id, relation, other)
            except (Refused, NotFound) as refused:
                report.refused.append(placed.line(refused.message))
    return added


def _draft(placed: Placed, work: Work) -> Draft:
    fields = {name: getattr(placed.shown, name) for name in _FIELDS}
    sort, _, day = placed.group.partition(":")
    if sort == "day" and not fields["occurred_at"] and day != f"{work.memory.now:%Y-%m-%d}":
        with suppress(ValueError):
            fields["occurred_at"] = datetime.combine(date.fromisoformat(day), time(), UTC)
    source = f"files:{work.folder.name}"
    return Draft(
        **{**fields, "kind": placed.shown.kind or None}, id=placed.id or None, source=source
    )


def _forget_gone(plan: Plan, work: Work) -> None:
    """Forget memories whose texts were removed; one that changed meanwhile stays."""
    revisions = {}
    for item_id, row in plan.gone.items():
        if (item := work.visible.get(item_id)) and item.rev != row.rev:
            message = f"removed here and changed in the space, so it stays: {item.text}"
            work.report.conflicts.append(Line(row.path, item_id, message))
        elif item:
            revisions[item_id] = item.rev
            work.report.forgotten.append(Line(row.path, item_id, item.text))
    if revisions and not work.report.dry_run:
        reactivate_superseded(list(revisions), work.memory.session.write_context())
        work.memory.withdraw(revisions, reason=FORGOTTEN_IN_FILE)
