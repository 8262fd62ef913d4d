"""Brings in what another tool keeps: `import_from`, the way a library does it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from recollect.errors import Refused
from recollect.memory import Memory
from recollect.ports import Progress
from recollect.sources import AUTO, KINDS, SOURCES
from recollect.sources.folder import told
from recollect.sources.intake import Intake
from recollect.sources.readiness import Refusal
from recollect.sources.recognise import recognise
from recollect.sources.source import Entry, Gauge
from recollect.sources.stream import (
    BEGINNING,
    Stream,
    guess_format,
    is_stream,
    open_stream,
    path_of,
    records,
)
from recollect.sources.tally import Tally
from recollect.sources.turn_keys import with_turn_keys
from recollect.sources.tying import Tying
from recollect.store.sqlite import SqliteStore

if TYPE_CHECKING:
    from recollect.sources.source import Source

_NO_GIVEN: Mapping[str, Any] = {}
_ITEMS = 500


def import_from(
    memory: Memory,
    path: str | Path,
    kind: str = AUTO,
    *,
    preview: bool = False,
    progress: Progress | None = None,
    given: Mapping[str, Any] = _NO_GIVEN,
) -> Tally:
    """Takes in what another tool keeps, and says what became of it.

    ``kind`` is one of `recollect.sources.KINDS`; ``auto`` looks at what is there. With
    ``preview`` nothing is written, and the counts are those that an import would have.
    ``given`` are fields of a draft for all that do not name them. Can be stopped anywhere
    and repeated: what was taken in is known by then.
    """
    return Import(memory, str(path), kind, preview=preview, given=given).run(progress)


class Import:
    """One import; ``tally`` says at any time how far it has come."""

    def __init__(
        self,
        memory: Memory,
        path: str,
        kind: str = AUTO,
        *,
        preview: bool = False,
        given: Mapping[str, Any] = _NO_GIVEN,
    ) -> None:
        if kind not in KINDS:
            raise Refused(f"there is no source {kind!r}", remedy=f"one of {', '.join(KINDS)}")
        self._memory = memory
        self._path = path
        self._given = {"source_class": "import", **given}
        self.kind = kind
        self.tally = Tally(preview=preview)

    def run(self, progress: Progress | None = None) -> Tally:
        """Reads everything and takes it in, or says what that would come to."""
        if self.kind == AUTO and not is_stream(self._path):
            self.kind, found = recognise(path_of(self._path))
            self._path = str(found)
        gauge = Gauge()
        with _scratch(self._memory, preview=self.tally.preview) as scratch:
            if self.kind in SOURCES:
                steps = self._from_source(gauge, scratch)
            else:
                steps = self._from_stream(gauge, scratch, progress)
            for _ in steps:
                if progress is not None:
                    progress(gauge.done, gauge.total)
        return self.tally

    def _from_source(self, gauge: Gauge, scratch: Memory | None) -> Iterator[int]:
        path = self._existing()
        self._name(f"{self.kind}:{told(path.name or path.resolve().name)}")
        source: Source = SOURCES[self.kind](path, gauge)
        intake = Intake(self._memory, self.kind, self.tally, scratch=scratch)
        given = {"source": self.tally.source, **self._given}
        yield from intake.take(_readable(source.entries()), given)
        try:
            yield from Tying(self._memory, self.kind, self.tally, intake).take(source.ties())
        except Refused as refused:
            self.tally.refuse(Refusal("links", refused))

    def _existing(self) -> Path:
        if is_stream(self._path):
            raise Refused(
                f"{self.kind} is read from a file", remedy="write it to a file, and name that"
            )
        return path_of(self._path)

    def _name(self, name: str) -> None:
        self.tally.kind = self.kind
        self.tally.source = str(self._given.get("source", name))

    def _from_stream(
        self, gauge: Gauge, scratch: Memory | None, progress: Progress | None
    ) -> Iterator[int]:
        with open_stream(self._path) as stream:
            if self.kind == AUTO:
                self.kind = guess_format(stream.reader.peek(BEGINNING))
            self._name(stream.name)
            gauge.total = stream.size
            if self.kind == "recollect":
                self._take_export(_watched(stream, progress), scratch)
                return
            given = {"source": self.tally.source, **self._given}
            intake = Intake(self._memory, self.kind, self.tally, scratch=scratch)
            entries = with_turn_keys(_lines(stream, self.kind, given), self.tally.source)
            for read in intake.take(_readable(entries), _NO_GIVEN):
                gauge.done = stream.done
                yield read

    def _take_export(self, found: Iterator[dict[str, Any]], scratch: Memory | None) -> None:
        if scratch is None:
            self.tally.stored = self._memory.import_(found)
            return
        known = _Counting(self._memory, found)
        taken = scratch.import_(known)
        self.tally.stored = taken - known.known
        self.tally.repeated = known.known


def _watched(stream: Stream, progress: Progress | None) -> Iterator[dict[str, Any]]:
    """The records of an export; they are taken in by one call, so they tell how far it is."""
    for number, record in enumerate(records(stream)):
        if progress is not None and number % _ITEMS == 0:
            progress(stream.done, stream.size)
        yield record


class _Counting:
    """Records on their way, and how many of the items among them a memory has already."""

    def __init__(self, memory: Memory, given: Iterable[Mapping[str, Any]]) -> None:
        self._memory = memory
        self._given = given
        self.known = 0

    def __iter__(self) -> Iterator[Mapping[str, Any]]:
        ids: list[str] = []
        last = ""
        for record in self._given:
            own = record.get("id")
            # The revisions of an item stand together.
            if record.get("type") == "item" and isinstance(own, str) and own != last:
                ids.append(own)
                last = own
            if len(ids) >= _ITEMS:
                self._look(ids)
            yield record
        self._look(ids)

    def _look(self, ids: list[str]) -> None:
        self.known += len(self._memory.store.get(ids))
        ids.clear()


@contextmanager
def _scratch(memory: Memory, *, preview: bool) -> Iterator[Memory | None]:
    """A memory for a preview, gone afterwards; none where it is meant."""
    if not preview:
        yield None
        return
    # In a file: what is looked at may be far more than fits into memory.
    with TemporaryDirectory(prefix="recollect-preview-") as folder:
        store = SqliteStore.open(Path(folder) / "preview.db", space="preview")
        with Memory(store, settings=memory.settings) as scratch:
            yield scratch


def _readable(entries: Iterable[Entry]) -> Iterator[Entry]:
    """Entries as far as they can be read: what was read is worth having. Where that is
    nothing, it is no such source."""
    where = ""
    try:
        for entry in entries:
            yield entry
            where = f"after {entry.where}"
    except Refused as refused:
        if not where:
            raise
        yield Entry(where, refused)


def _lines(stream: Stream, kind: str, given: Mapping[str, Any]) -> Iterator[Entry]:
    from recollect.ingest.files import read_drafts  # the other sources do without

    for line in read_drafts(stream.reader, kind, given):  # type: ignore[arg-type]
        yield Entry(f"line {line.number}", line.found)
