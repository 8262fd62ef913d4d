"""Run an import, for `Memory.import_` and the command, and add the links between entries."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import lru_cache
from itertools import chain, islice
from pathlib import Path
from tempfile import TemporaryDirectory

from bethink.api.export_origin import ExportClaims
from bethink.api.links import check_relation
from bethink.api.session import utc_now
from bethink.core.json_values import Json
from bethink.errors import Refused
from bethink.importers import AUTO, IMPORTERS, KINDS, STREAMS, streams
from bethink.importers.chat_exports import with_turn_keys
from bethink.importers.detection import detect_source
from bethink.importers.entry import Entry, Importer, LinkEnd, Reader, ReadProgress, SourceLink
from bethink.importers.intake import INTAKE_BATCH, Intake, Refusal, Tally
from bethink.ingest.admission import admit_thread
from bethink.ingest.entity_extraction import entity_key, parse_entity
from bethink.ingest.files import GZIP_MAGIC, read_drafts
from bethink.maintain.journal import record_imported
from bethink.memory import Memory
from bethink.model import RELATIONS, FileEdit, Link, Node, Thread
from bethink.ports import Progress
from bethink.store.sqlite import SqliteStore

LINK_BATCH = 500
LinkMark = tuple[str, ...]
NodesByStore = tuple[Node | None, ...]
SUPERSEDES_TYPE = "supersedes"
_DEFAULT_RELATION = "related_to"
_NON_WORD = re.compile(r"\W+")


class SourceLinker:
    """Adds the links of one import, or counts them in a preview."""

    def __init__(self, memory: Memory, kind: str, tally: Tally, intake: Intake) -> None:
        self._memory, self._kind, self._tally, self._intake = memory, kind, tally, intake
        self._seen: set[int] = set()
        self._would_replace: list[Link] = []
        self._entities = lru_cache(maxsize=10_000)(self._find_entities)

    def add_links(self, links: Iterable[SourceLink]) -> Iterator[int]:
        """Add links whose two ends were imported; yield how many were read."""
        rest = iter(links)
        while batch := list(islice(rest, LINK_BATCH)):
            found = [both for tie in batch if (both := self._to_link(tie))]
            known = self._existing_marks(
                [sources for _, sources in found], {link.type for link, _ in found}
            )
            self._store_links([link for link, _ in found if _link_mark(link) not in known])
            yield len(batch)

    def add_edits(self, edits: Iterable[FileEdit]) -> Iterator[int]:
        """Add what was done to files; yield how many edits were read."""
        rest = iter(edits)
        while batch := list(islice(rest, LINK_BATCH)):
            named = [edit._replace(item=self._intake.find_item(edit.item or "")) for edit in batch]
            self._tally.edits += self._memory.note_edits(named, preview=self._intake.is_preview)
            yield len(batch)

    def add_threads(self, threads: Iterable[Thread]) -> Iterator[int]:
        """Add threads of imported memories, and new members of those that are known."""
        for thread in threads:
            try:
                self._add_thread(thread)
            except Refused as refused:
                self._tally.refuse(Refusal(f"thread {thread.headline[:80]!r}", refused))
            yield 1

    def _add_thread(self, thread: Thread) -> None:
        found = ((member, self._intake.find_item(member.item)) for member in thread.members)
        members = {item: member._replace(item=item) for member, item in found if item}
        known = self._memory.store.activity.thread(thread.id)
        before = {member.item: member for member in known.members} if known else {}
        if not members.keys() - before.keys():
            return
        events = (
            event._replace(item=self._intake.find_item(event.item) if event.item else None)
            for event in thread.events
        )
        whole = admit_thread(
            thread._replace(members=tuple((members | before).values()), events=tuple(events))
        )
        self._tally.threads += 1
        if not self._intake.is_preview:
            store, actor = self._memory.store.activity, self._memory.settings.actor
            store.put_thread(whole, actor=actor, now=utc_now())

    def _to_link(self, source_link: SourceLink) -> tuple[Link, NodesByStore] | None:
        """Return the link, and its source node in each of the stores."""
        sources, targets = self._nodes_of(source_link.src), self._nodes_of(source_link.dst)
        src, dst = next(filter(None, sources), None), next(filter(None, targets), None)
        if src is None or dst is None or src == dst or src.kind != dst.kind:
            return None
        context = source_link.context or (
            self._intake.find_item(source_link.said_in) if source_link.said_in else None
        )
        relation, weight = _relation_type(source_link), source_link.weight
        link = Link(src, dst, relation, weight, context=context, source=self._kind)
        mark = hash(_link_mark(link))
        if mark in self._seen:
            return None
        self._seen.add(mark)
        return link, sources

    def _nodes_of(self, end: LinkEnd) -> NodesByStore:
        if end.kind == "entity":
            return self._entities(end.name)
        found = self._intake.find_item(end.name)
        node = Node("item", found) if found else None
        return tuple(node for _ in self._intake.stores)

    def _find_entities(self, written: str) -> NodesByStore:
        """Return the entity of that name in each store, preferably of that kind."""
        name = parse_entity(written)
        key = entity_key(name.name)
        nodes = []
        for store in self._intake.stores:
            (named,) = store.graph.find_entities((name.name,), 50)
            same = [
                entity for entity in named if key in map(entity_key, (entity.name, *entity.aliases))
            ]
            best = min(same, key=lambda entity: entity.kind != name.kind, default=None)
            nodes.append(Node("entity", best.id) if best else None)
        return tuple(nodes)

    def _existing_marks(self, sources: Sequence[NodesByStore], types: set[str]) -> set[LinkMark]:
        """Return the links that exist already, from before or from the imported text."""
        known: set[LinkMark] = set()
        for store, nodes in zip(self._intake.stores, zip(*sources, strict=True), strict=False):
            ids = sorted({node.id for node in nodes if node is not None})
            links = store.graph.links_of(ids, sorted(types), incoming=False) if ids else []
            known.update(map(_link_mark, links))
        return known

    def _store_links(self, links: Sequence[Link]) -> None:
        plain = [link for link in links if link.type != SUPERSEDES_TYPE]
        if plain and not self._intake.is_preview:
            store, actor = self._memory.store, self._memory.settings.actor
            store.graph.add_links(plain, actor=actor, now=utc_now())
        self._tally.links += len(plain)
        for link in links:
            if link.type == SUPERSEDES_TYPE:
                self._supersede(link)

    def _supersede(self, link: Link) -> None:
        """Let one memory supersede another, which leaves recall."""
        if self._closes_cycle(link):
            circle = Refused("the two supersede each other, directly or through others")
            self._tally.refuse(Refusal(f"{link.src.id} supersedes {link.dst.id}", circle))
            return
        if self._intake.is_preview:
            self._would_replace.append(link)
        else:
            self._memory.link(link.src.id, SUPERSEDES_TYPE, link.dst.id, weight=link.weight)
        self._tally.links += 1

    def _closes_cycle(self, link: Link) -> bool:
        """Whether a link closes a cycle: memories that supersede each other are never recalled."""
        seen, rim = {link.src.id}, {link.src.id}
        while rim:
            stored = (
                edge
                for store in self._intake.stores
                for edge in store.graph.links_of(sorted(rim), (SUPERSEDES_TYPE,))
            )
            above = {
                edge.src.id for edge in chain(stored, self._would_replace) if edge.dst.id in rim
            }
            rim = above - seen
            seen |= rim
        return link.dst.id in seen


def _link_mark(link: Link) -> LinkMark:
    """Return the identity of a link; of entities the name, whatever their kind."""
    ends = (
        node.id if node.kind == "item" else node.id.partition(":")[2]
        for node in (link.src, link.dst)
    )
    return (link.type, *ends)


def _relation_type(source_link: SourceLink) -> str:
    """Return the relation in one word: a known one between memories, any between entities."""
    if source_link.src.kind == "item":
        return source_link.type if source_link.type in RELATIONS else _DEFAULT_RELATION
    word = _NON_WORD.sub("_", source_link.type).strip("_")[:64]
    try:
        return check_relation(word)
    except Refused:
        return _DEFAULT_RELATION


_NO_GIVEN: Mapping[str, object] = {}
_PROGRESS_EVERY = 500


class Import:
    """One import, which can be stopped and repeated; ``tally`` reports its progress at any time."""

    def __init__(
        self,
        memory: Memory,
        path: str,
        kind: str = AUTO,
        *,
        preview: bool = False,
        given: Mapping[str, object] = _NO_GIVEN,
        restore: bool = False,
        announce: Callable[[ExportClaims], None] | None = None,
    ) -> None:
        """Set up an import; ``announce`` gets what an export is trusted with, first."""
        if kind not in KINDS and kind not in IMPORTERS:
            raise Refused(f"there is no importer {kind!r}", remedy=f"use one of {', '.join(KINDS)}")
        self._memory = memory
        self._path = path
        self._given = {"source_class": "import", **given}
        self.kind = kind
        self.tally = Tally(preview=preview)
        self._restore, self._announce = restore, announce

    def run(self, progress: Progress | None = None) -> Tally:
        """Read everything and import it, or count what an import would do.

        ``progress`` is told how many entries are done and about how many there are; 0: unknown.
        """
        if self.kind == AUTO and not streams.is_stream(self._path):
            self.kind, found = detect_source(streams.to_path(self._path))
            self._path = str(found)
        gauge = ReadProgress()
        with _scratch_memory(self._memory, preview=self.tally.preview) as scratch:
            if self.kind in (AUTO, *STREAMS):
                steps = self._from_stream(gauge, scratch, progress)
            else:
                steps = self._from_source(gauge, scratch)
            for _ in steps:
                if progress is not None:
                    progress(self.tally.read, max(self.tally.read, gauge.expected))
        return self.tally

    def _from_source(self, gauge: ReadProgress, scratch: Memory | None) -> Iterator[int]:
        path = self._existing_path()
        self._set_source(
            f"{self.kind}:{streams.displayable_name(path.name or path.resolve().name)}"
        )
        source: Importer = IMPORTERS[self.kind](path, gauge)
        intake = Intake(self._memory, self.kind, self.tally, scratch=scratch)
        given = {"source": self.tally.source, **self._given}
        yield from intake.store_entries(_until_unreadable(source.entries(), gauge), given)
        linker = SourceLinker(self._memory, self.kind, self.tally, intake)
        try:
            yield from linker.add_links(source.links())
            if isinstance(source, Reader):
                yield from linker.add_edits(source.edits())
                yield from linker.add_threads(source.threads())
        except Refused as refused:
            self.tally.refuse(Refusal("links", refused))

    def _existing_path(self) -> Path:
        if streams.is_stream(self._path):
            raise Refused(
                f"{self.kind} cannot be read from standard input",
                remedy="write it to a file and give its path",
            )
        return streams.to_path(self._path)

    def _set_source(self, name: str) -> None:
        if self._restore and self.kind != "bethink":
            raise Refused(f"only an export of Bethink can be restored; this is {self.kind}")
        self.tally.kind = self.kind
        self.tally.source = str(self._given.get("source", name))

    def _from_stream(
        self, gauge: ReadProgress, scratch: Memory | None, progress: Progress | None
    ) -> Iterator[int]:
        _require_whole(self._path)
        with streams.open_stream(self._path) as stream:
            if self.kind == AUTO:
                self.kind = streams.guess_text_format(
                    stream.reader.peek(streams.BEGINNING_BYTES), stream.name
                )
            self._set_source(stream.name)
            gauge.total = stream.size
            if self.kind == "bethink":
                self._load_export(_report_progress(stream, progress), scratch, progress)
                return
            given = {"source": self.tally.source, **self._given}
            intake = Intake(self._memory, self.kind, self.tally, scratch=scratch)
            entries = with_turn_keys(_line_entries(stream, self.kind, given), self.tally.source)
            for read in intake.store_entries(_until_unreadable(entries, gauge), _NO_GIVEN):
                gauge.done = stream.done
                yield read

    def _load_export(
        self, found: Iterator[Json], scratch: Memory | None, progress: Progress | None
    ) -> None:
        new: list[str] = []
        found = self._note_items(self._note_missing_end(found), new)
        target, progress = (scratch, None) if scratch else (self._memory, progress)
        taken = target.import_(
            found, restore=self._restore, announce=self._note_origin, progress=progress
        )
        self.tally.stored = taken - self.tally.repeated if scratch else taken
        # A back-up is no import: its journal stays as it was.
        if taken and not (scratch or self._restore):
            work, actor = self._memory.session.job_context(), self._memory.settings.actor
            for start in range(0, len(new), INTAKE_BATCH):
                part = new[start : start + INTAKE_BATCH]
                self.tally.run = record_imported(self.tally.run, part, actor, work)

    def _note_origin(self, claims: ExportClaims) -> None:
        self.tally.claims = claims
        if not (claims.is_own or self._restore):
            self.tally.warnings.append(_NOT_OWN)
        elif self._announce is not None:
            self._announce(claims)

    def _note_missing_end(self, found: Iterator[Json]) -> Iterator[Json]:
        for number, record in enumerate(found):
            if number == 0 and record.get("end") is not True:
                self.tally.warnings.append(_NO_END)
            yield record

    def _note_items(self, found: Iterator[Json], fresh: list[str]) -> Iterator[Json]:
        """Pass records on; note the items among them, and count those that the memory has."""
        last = ""
        while batch := list(islice(found, _PROGRESS_EVERY)):
            # The revisions of an item are consecutive.
            ids = [str(one.get("id")) for one in batch if one.get("type") == "item"]
            new = [own for own in dict.fromkeys(ids) if own != last]
            known = self._memory.store.items.get(new)
            self.tally.repeated += len(known)
            fresh += [own for own in new if own not in known]
            last = ids[-1] if ids else last
            yield from batch


_NOT_OWN = (
    "this installation has not signed the export: its memories get trust 1 at most, none is"
    " pinned, secrets are removed; journal, keys, uses and threads are left out."
    " If it is a back-up of your own: bethink spaces remove NAME, then import with --restore"
)
_NO_END = "this export of an earlier version does not say whether it is whole"


def _require_whole(path: str) -> None:
    """Raise Refused for a gzip file that is damaged or cut off, before anything is stored."""
    if streams.is_stream(path) or not streams.to_path(path).is_file():
        return
    with streams.to_path(path).open("rb") as file:
        if file.read(2) != GZIP_MAGIC:
            return
    with streams.open_decompressed(streams.to_path(path)) as unpacked:
        while unpacked.read(streams.BEGINNING_BYTES):
            pass


def _report_progress(stream: streams.InputStream, progress: Progress | None) -> Iterator[Json]:
    """Yield the records of an export and report progress; one call imports them all."""
    gauge = ReadProgress(total=stream.size)
    for number, record in enumerate(streams.read_records(stream)):
        gauge.entries += record.get("type") == "item"
        if progress is not None and number % _PROGRESS_EVERY == 0:
            gauge.done = stream.done
            progress(gauge.entries, gauge.expected)
        yield record


@contextmanager
def _scratch_memory(memory: Memory, *, preview: bool) -> Iterator[Memory | None]:
    """Open a temporary memory for a preview; yield None for a real import."""
    if not preview:
        yield None
        return
    # In a file: the input may not fit into memory.
    with TemporaryDirectory(prefix="bethink-preview-") as folder:
        store = SqliteStore.open(Path(folder) / "preview.db", space="preview")
        with Memory(store, settings=memory.settings) as scratch:
            yield scratch


def _until_unreadable(entries: Iterable[Entry], gauge: ReadProgress) -> Iterator[Entry]:
    """Yield and count entries up to the first error, which becomes a refused entry.

    An error before any entry is raised: it is not such a source.
    """
    where = ""
    try:
        for entry in entries:
            gauge.entries += 1
            yield entry
            where = f"after {entry.where}"
    except Refused as refused:
        if not where:
            raise
        yield Entry(where, refused)


def _line_entries(
    stream: streams.InputStream, kind: str, given: Mapping[str, object]
) -> Iterator[Entry]:
    for line in read_drafts(stream.reader, kind, given):  # type: ignore[arg-type]
        yield Entry(f"line {line.number}", line.found)
