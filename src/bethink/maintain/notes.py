"""Write daily, weekly and quarterly notes as Markdown, for people and for recall.

The last line of a generated file is a stamp: its space, a hash of the text above and
the ids of its memories. A file without a stamp, with another hash or of another space
is not ours and is left alone.
"""

from __future__ import annotations

import os
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from bethink.config.paths import make_private_folder
from bethink.core.atomic_write import atomic_replace
from bethink.core.characters import strip_hidden
from bethink.core.named_tuple import NamedTuple
from bethink.core.sentences import caption, shorten
from bethink.ingest.notes import (
    NOTE_FOLDERS,
    append_stamp,
    body_digest,
    encode_space,
    period_of,
    read_stamp,
)
from bethink.maintain.job import Action, JobContext, Proposal, iter_items
from bethink.model import Item

# Skip links, which may lead out of the folder, and pipes, which may never end.
_OPEN_FLAGS = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
_MAX_BYTES = 4 * 1024 * 1024


class Note(NamedTuple):
    """A file of notes: its text, the part above the stamp, and the stamp's fields."""

    text: str
    body: str
    sources: frozenset[str]
    is_intact: bool
    space: str = ""

    def text_without(self, ids: AbstractSet[str]) -> str:
        """Return the file without the lines that name one of these memories."""
        kept = [
            line for line in self.body.split("\n") if not any(item_id in line for item_id in ids)
        ]
        left = sorted(self.sources - ids)
        digest = body_digest(self.body)  # still not intact
        return append_stamp("\n".join(kept), digest, self.space, left)


def read_note(path: Path) -> Note | None:
    """Read the note in a file; None where there is no file."""
    try:
        handle = os.open(path, _OPEN_FLAGS)
    except FileNotFoundError:
        return None
    except OSError:
        return Note("", "", frozenset(), is_intact=False)  # not a regular file: not ours
    with os.fdopen(handle, "rb") as file:
        text = (file.read(_MAX_BYTES) or b"").decode(errors="replace")
    stamp = read_stamp(text)
    if stamp is None:
        return Note(text, text, frozenset(), is_intact=False)
    intact = body_digest(stamp.body) == stamp.digest
    return Note(text, stamp.body, stamp.sources, intact, stamp.space)


def may_overwrite(note: Note | None, space: str) -> bool:
    """Whether a space may write the file: it is missing, or its own and unedited."""
    return note is None or (note.is_intact and note.space == encode_space(space))


def write_note(path: Path, text: str) -> None:
    """Write the note atomically, readable by the owner only."""
    make_private_folder(path.parent)
    remove_temp_files(path)
    atomic_replace(path, text.encode(), temp_affixes=(f".{path.name}.", ".new"))


def remove_temp_files(path: Path) -> None:
    """Delete the temporary files that interrupted writes left."""
    for left in path.parent.glob(f".{path.name}*.new"):
        left.unlink(missing_ok=True)


MAX_CLASSIFICATION = 1
_ENTRY_CHARACTERS = 300
_MAX_ENTRIES = {"daily": 500, "weekly": 20, "quarterly": 40}
_KIND_WEIGHTS = {
    "decision": 0.3,
    "milestone": 0.3,
    "event": 0.1,
    "learning": 0.2,
    "preference": 0.1,
}


class ComposedNote(NamedTuple):
    """The text of a note, and the ids of the memories in it."""

    text: str
    sources: tuple[str, ...]


def compose_note(name: str, items: Sequence[Item]) -> ComposedNote:
    """Write one paragraph per memory, each with its id; conversations by their first turn."""
    kind = name.partition("_")[0]
    shown = [item for item in items if item.level != "raw" or item.session is None]
    chosen = sorted(shown, key=lambda item: (-_weight(item), item.when, item.id))[
        : _MAX_ENTRIES[kind]
    ]
    grouped: defaultdict[str, list[Item]] = defaultdict(list)
    for item in sorted(chosen, key=lambda block: (block.when, block.id)):
        grouped[item.topic or ""].append(item)
    blocks = [f"# {name.partition('_')[2]}"]
    for topic in sorted(grouped):
        if topic:
            blocks.append(f"## {_one_line(topic)}")
        blocks += [_memory_entry(item, with_day=kind != "daily") for item in grouped[topic]]
    talks = _group_conversations([item for item in items if item.level == "raw" and item.session])
    blocks += [_conversation_entry(said, with_day=kind != "daily") for said in talks]
    if kind != "daily" and len(shown) > len(chosen):
        blocks.append(_summary_line(shown, chosen))
    sources = (*(item.id for item in chosen), *(said[0].id for said in talks))
    return ComposedNote("\n\n".join(blocks) + "\n", sources)


def _weight(item: Item) -> float:
    return item.importance + _KIND_WEIGHTS.get(item.kind, 0.0) + (1.0 if item.pinned else 0.0)


def _memory_entry(item: Item, *, with_day: bool) -> str:
    when = f"{item.when:%Y-%m-%d}" if with_day else f"{item.when:%H:%M}"
    return f"- {when} {item.kind}: {shorten(_one_line(item.text), _ENTRY_CHARACTERS)} ({item.id})"


def _conversation_entry(said: Sequence[Item], *, with_day: bool) -> str:
    first = said[0]
    when = f"{first.when:%Y-%m-%d} " if with_day else ""
    first_line = caption(first.text, first.speaker)
    return f"- {when}conversation of {len(said)} turns: {first_line} ({first.id})"


def _group_conversations(turns: Sequence[Item]) -> list[list[Item]]:
    """Group turns by conversation, in their order."""
    sessions: defaultdict[str, list[Item]] = defaultdict(list)
    for item in sorted(turns, key=lambda group: (group.when, group.seq or 0, group.id)):
        sessions[str(item.session)].append(item)
    return list(sessions.values())


def _summary_line(items: Sequence[Item], chosen: Sequence[Item]) -> str:
    kinds = Counter(item.kind for item in items)
    counted = ", ".join(f"{count} {kind}" for kind, count in sorted(kinds.items()))
    return f"{len(items)} memories in total, {len(chosen)} of them above: {counted}."


def _one_line(text: str) -> str:
    return " ".join(strip_hidden(text).split())


_REMEDY = "give each space a notes_dir of its own"


def renew_note(name: str, work: JobContext, excluded_ids: AbstractSet[str] = frozenset()) -> None:
    """Rewrite a note from the current memories; delete it where there are none.

    The memories are read when it is written, not when it was planned.
    """
    if work.notes_dir is None:
        return
    path = note_path(work.notes_dir, name)
    while may_overwrite(read_note(path), work.store.space):
        text, sources = _recompose_note(name, excluded_ids, work)
        if text:
            write_note(path, text)
        else:
            path.unlink(missing_ok=True)
        items = work.store.items.get(sources)
        if all(key in items and items[key].live_to is None for key in sources):
            return  # no memory in it was erased while it was being written


@dataclass(frozen=True, slots=True)
class WriteNotes:
    """Write notes of past periods, from the start of the quarter ``days`` back.

    All of a day, the most important of a week and of a quarter. Confidential memories are
    left out, and so are memories trusted less than notes are: a file would raise their
    trust.
    """

    days: int = 400
    name: str = "notes"

    def plan(self, work: JobContext) -> Iterator[Proposal]:
        """Propose each file that is missing, out of date, or empty by now."""
        if work.notes_dir is None or work.filters.narrows:
            return  # a note about part of the memory would look like one about all of it
        quarter = period_of(note_names(work.now - timedelta(days=self.days))[2])
        assert quarter is not None
        since = quarter[0]
        by_note: dict[str, list[Item]] = {}
        for item in _eligible_items(iter_items(work, since=since), work):
            for name in note_names(item.when):
                period = period_of(name)
                if period is not None and period[1] <= work.now:
                    by_note.setdefault(name, []).append(item)
        names = sorted(by_note.keys() | set(_own_notes(work.notes_dir, work.store.space)))
        notes = (read_note(note_path(work.notes_dir, name)) for name in names)
        own = ("", encode_space(work.store.space))
        taken = sum(note is not None and note.space not in own for note in notes)
        if taken:
            yield Proposal(f"skipped {taken:,} notes of another space: {_REMEDY}", "")
        for name in names:
            proposal = _note_proposal(name, by_note.get(name), since, work)
            if proposal is not None:
                yield proposal


def note_names(when: datetime) -> tuple[str, str, str]:
    """Return the names of the notes of a moment: its day's, its week's, its quarter's."""
    day = when.astimezone(UTC).date()
    year, week, _ = day.isocalendar()
    return (
        f"daily_{day.isoformat()}",
        f"weekly_{year:04d}-W{week:02d}",
        f"quarterly_{day.year:04d}-Q{(day.month + 2) // 3}",
    )


def note_path(folder: Path, name: str) -> Path:
    """Return the path of a note."""
    return folder / name.partition("_")[0] / f"{name}.md"


def stamped_note(name: str, items: Sequence[Item], space: str) -> ComposedNote:
    """Compose the whole stamped file; empty where there are no memories."""
    if not items:
        return ComposedNote("", ())
    body, ids = compose_note(name, items)
    return ComposedNote(append_stamp(body, body_digest(body), encode_space(space), ids), ids)


def rewrite_notes_without(gone: Iterable[Item], work: JobContext) -> tuple[str, ...]:
    """Rewrite the notes that mention these memories, without them; return the notes' names.

    ``gone`` are all revisions of the removed memories: one may have belonged to another day.
    """
    if work.notes_dir is None or not work.notes_dir.is_dir():
        return ()
    going = list(gone)
    ids = frozenset(item.id for item in going)
    rewritten = []
    for name in sorted({name for item in going for name in note_names(item.when)}):
        path = note_path(work.notes_dir, name)
        remove_temp_files(path)
        note = read_note(path)
        if note is None or not (ids & note.sources):
            continue
        if may_overwrite(note, work.store.space):
            renew_note(name, work, ids)
        else:
            # Edited by hand: the user's lines stay, the lines of these memories are removed.
            write_note(path, note.text_without(ids))
        rewritten.append(name)
    return tuple(rewritten)


def _recompose_note(name: str, ids: AbstractSet[str], work: JobContext) -> ComposedNote:
    period = period_of(name)
    assert period is not None
    inside = iter_items(work, since=period[0], until=period[1])
    items = [item for item in _eligible_items(inside, work) if item.id not in ids]
    return stamped_note(name, items, work.store.space)


def _eligible_items(items: Iterable[Item], work: JobContext) -> Iterator[Item]:
    for item in items:
        ours = str(item.source).startswith("maintain:")
        eligible = item.classification <= MAX_CLASSIFICATION and item.trust >= work.notes_trust
        if eligible and not ours and not item.flags:
            yield item


def _own_notes(folder: Path, space: str) -> Iterator[str]:
    """Yield the names of unedited notes that maintenance wrote for this space."""
    for kind in NOTE_FOLDERS:
        place = folder / kind
        for path in sorted(place.glob(f"{kind}_*.md")) if place.is_dir() else ():
            note = read_note(path) if period_of(path.stem) is not None else None
            if note is not None and may_overwrite(note, space):
                yield path.stem


def _note_proposal(
    name: str, items: Sequence[Item] | None, since: datetime, work: JobContext
) -> Proposal | None:
    assert work.notes_dir is not None
    period = period_of(name)
    if period is None or period[0] < since:
        return None  # older than the scanned range
    note = read_note(note_path(work.notes_dir, name))
    text = stamped_note(name, items or (), work.store.space).text
    if not may_overwrite(note, work.store.space) or (note.text if note else "") == text:
        return None
    count = len(items or ())
    reason = f"{name} covers {count} {'memory' if count == 1 else 'memories'}"
    rule = "a note is missing" if note is None else "a note is out of date"
    return Proposal(reason, rule, actions=(Action(f"write the note {name}", renew_note, name),))
