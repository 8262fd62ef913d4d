"""Notes by the day, the week and the quarter, as Markdown, for people and for recall.

A file that maintenance wrote says so in its last line, with its space, a hash of what
stands above and the ids of the memories it tells of. A file without that line, with
another hash or of another space is somebody else's and is left alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from recollect.ingest.notes import FOLDERS, period_of
from recollect.maintain.job import Proposal, Work
from recollect.maintain.looking import each
from recollect.maintain.note_file import (
    clear_unfinished,
    is_anothers,
    is_ours,
    read_note,
    remove_note,
    stamped,
    write_note,
)
from recollect.maintain.note_text import MOST_SECRET, Composed, compose
from recollect.model import Item

_REMEDY = "give each space a notes_dir of its own"


@dataclass(frozen=True, slots=True)
class WriteNote:
    """Makes a note anew from what there is to tell when it is written, which is not what
    there was when it was planned; takes it away where there is nothing."""

    name: str
    without: frozenset[str] = frozenset()

    def __call__(self, work: Work) -> None:
        if work.notes_dir is None:
            return
        path = path_of(work.notes_dir, self.name)
        while is_ours(read_note(path), work.store.space):
            text, sources = _made_anew(self.name, self.without, work)
            if text:
                write_note(path, text)
            else:
                remove_note(path)
            if _are_there(sources, work):
                return

    def __str__(self) -> str:
        return f"writes the note {self.name}"


def _are_there(ids: Sequence[str], work: Work) -> bool:
    """Whether nothing that a note tells of was erased while it was being written."""
    items = work.store.get(ids)
    return all(one in items and items[one].live_to is None for one in ids)


@dataclass(frozen=True, slots=True)
class WriteNotes:
    """Notes of the periods that are over, ``days`` back and to the beginning of that
    quarter: all of a day, the most important of a week and of a quarter.

    What is confidential does not go into a file, nor what is trusted less than notes are:
    it would be trusted more for standing there.
    """

    days: int = 400
    name: str = "notes"
    ends_raw: bool = False
    by_age: bool = False

    def plan(self, work: Work) -> Iterator[Proposal]:
        """One proposal a file that is missing, out of date, or tells of nothing any more."""
        if work.notes_dir is None or work.filters.narrows:
            return  # a note of a part of the memory would pass for one of the whole
        since = _start_of(names_of(work.now - timedelta(days=self.days))[2])
        wanted: dict[str, list[Item]] = {}
        for item in _tellable(each(work, since=since), work):
            for name in names_of(item.when):
                if not _is_under_way(name, work.now):
                    wanted.setdefault(name, []).append(item)
        names = sorted(wanted.keys() | set(_written(work.notes_dir, work.store.space)))
        taken = sum(_is_anothers(name, work) for name in names)
        if taken:
            yield Proposal(f"{taken:,} notes of another space are left alone: {_REMEDY}", "")
        for name in names:
            proposal = _proposal(name, wanted.get(name), since, work)
            if proposal is not None:
                yield proposal


def names_of(when: datetime) -> tuple[str, str, str]:
    """The notes that tell of a moment: its day's, its week's, its quarter's."""
    day = when.astimezone(UTC).date()
    year, week, _ = day.isocalendar()
    return (
        f"daily_{day.isoformat()}",
        f"weekly_{year:04d}-W{week:02d}",
        f"quarterly_{day.year:04d}-Q{(day.month + 2) // 3}",
    )


def path_of(folder: Path, name: str) -> Path:
    """The file of a note."""
    return folder / name.partition("_")[0] / f"{name}.md"


def note_of(name: str, items: Sequence[Item], space: str) -> Composed:
    """The whole file and what it tells of; empty where there is nothing to tell."""
    if not items:
        return Composed("", ())
    composed = compose(name, items)
    return composed._replace(text=stamped(*composed, space))


def without(gone: Iterable[Item], work: Work) -> tuple[str, ...]:
    """Makes the notes that told of these memories anew, without them; gives their names.

    ``gone`` are all revisions of what goes: a memory may once have been of another day.
    """
    if work.notes_dir is None or not work.notes_dir.is_dir():
        return ()
    going = list(gone)
    ids = frozenset(item.id for item in going)
    told = []
    for name in sorted({name for item in going for name in names_of(item.when)}):
        path = path_of(work.notes_dir, name)
        clear_unfinished(path)
        note = read_note(path)
        if note is None or not (ids & note.sources):
            continue
        if is_ours(note, work.store.space):
            WriteNote(name, ids)(work)
        else:
            # Edited by hand: what is theirs stays, the lines of these memories go.
            write_note(path, note.without(ids))
        told.append(name)
    return tuple(told)


def _made_anew(name: str, ids: AbstractSet[str], work: Work) -> Composed:
    period = period_of(name)
    assert period is not None
    inside = each(work, since=period[0], until=period[1])
    told = [item for item in _tellable(inside, work) if item.id not in ids]
    return note_of(name, told, work.store.space)


def _tellable(items: Iterable[Item], work: Work) -> Iterator[Item]:
    for item in items:
        ours = str(item.source).startswith("maintain:")
        told = item.classification <= MOST_SECRET and item.trust >= work.notes_trust
        if told and not ours and not item.flags:
            yield item


def _start_of(name: str) -> datetime:
    period = period_of(name)
    assert period is not None
    return period[0]


def _is_under_way(name: str, now: datetime) -> bool:
    period = period_of(name)
    return period is None or period[1] > now


def _is_anothers(name: str, work: Work) -> bool:
    assert work.notes_dir is not None
    return is_anothers(read_note(path_of(work.notes_dir, name)), work.store.space)


def _written(folder: Path, space: str) -> Iterator[str]:
    """The notes that maintenance wrote for this space and nobody edited."""
    for kind in FOLDERS:
        place = folder / kind
        for path in sorted(place.glob(f"{kind}_*.md")) if place.is_dir() else ():
            note = read_note(path) if period_of(path.stem) is not None else None
            if note is not None and is_ours(note, space):
                yield path.stem


def _proposal(
    name: str, items: Sequence[Item] | None, since: datetime, work: Work
) -> Proposal | None:
    assert work.notes_dir is not None
    period = period_of(name)
    if period is None or period[0] < since:
        return None  # further back than was looked
    note = read_note(path_of(work.notes_dir, name))
    text = note_of(name, items or (), work.store.space).text
    if not is_ours(note, work.store.space) or (note.text if note else "") == text:
        return None
    count = len(items or ())
    told = f"{name} tells of {count} {'memory' if count == 1 else 'memories'}"
    rule = "a note is missing" if note is None else "a note is out of date"
    return Proposal(told, rule, deeds=(WriteNote(name),))
