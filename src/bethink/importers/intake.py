"""Store the entries of a source, or preview what would become of them.

Each entry is prepared (admitted, redacted, versioned) and compared with what the space
already has: new, known or changed. A preview reads the space and writes nothing to it:
what would be stored goes into a scratch memory, so that repetitions inside the source
are seen too.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import count, groupby, islice
from typing import Literal

from bethink.api.export_origin import ExportClaims
from bethink.api.session import utc_now
from bethink.core.ids import make_id
from bethink.core.json_values import Json
from bethink.core.named_tuple import NamedTuple
from bethink.core.sentences import caption
from bethink.errors import Conflict, NotFound, Refused
from bethink.importers.entry import Entry, digest
from bethink.importers.turn_text import storable_text
from bethink.ingest.admission import PreparedDraft, WriteContext, prepare, to_plain_json
from bethink.ingest.deduplication import deduplicate
from bethink.ingest.files import claims_trust
from bethink.ingest.inbox import is_sealed
from bethink.ingest.record_builder import classify_kind, texts_to_embed
from bethink.ingest.revision import MODEL_FACT_KEY, changeable_fields
from bethink.maintain.journal import UNDONE, record_imported
from bethink.memory import Memory
from bethink.model import Draft, Filters, Item, Remembered
from bethink.models.embed.processes import embedding_ahead
from bethink.ports import PriorUse, Scope, Store, embed_ahead
from bethink.ports.values import erased_mark, is_erased

IMPORTED = "imported"  # metadata key of the mark: an entry's id and content hash at its origin
_DEFAULT_DRAFT = Draft("")
_VERSIONED_FIELDS = (
    *("text", "original", "kind", "layer", "topic", "tags", "entities", "caption", "speaker"),
    *("occurred_at", "occurred_end", "valid_from", "valid_to", "importance", "confidence"),
)


class Refusal(NamedTuple):
    """An entry that was not imported: its location and the reason."""

    where: str
    error: Refused


class PreparedEntry(NamedTuple):
    """An entry that may be stored.

    ``key`` identifies it, if the source names it; ``version`` is a digest of its content.
    """

    where: str
    piece: PreparedDraft
    key: str
    version: str
    origin: str = ""
    use: PriorUse | None = None

    @property
    def draft(self) -> Draft:
        return self.piece.draft

    def to_draft(self) -> Draft:
        """Return the draft with its key and with the mark that later imports compare."""
        if not self.key:
            return self.draft
        words = text_mark(self.draft.text)
        mark = {"key": self.key, "version": self.version, "words": words}
        mark |= {"id": self.origin} if self.origin else {}
        return self.draft._replace(key=self.key, metadata={**self.draft.metadata, IMPORTED: mark})


def prepare_entry(
    entry: Entry, kind: str, given: Mapping[str, object], ctx: WriteContext
) -> PreparedEntry | Refusal:
    """Prepare an entry for storing, or return why it may not be stored."""
    if isinstance(entry.found, Refused):
        return Refusal(entry.where, entry.found)
    try:
        piece = prepare(_with_defaults(entry.found, given), ctx)
    except Refused as refused:
        return Refusal(entry.where, refused)
    key = import_key(kind, entry.id) if entry.id else ""
    version, origin = _content_version(piece.draft), storable_text(entry.origin)[:200]
    return PreparedEntry(entry.where, piece, key, version, origin, entry.use)


def text_mark(text: str) -> str:
    """Return a digest of an entry's text, so that a change of it here is noticed."""
    return digest(text)[:16]


def import_key(kind: str, own: str) -> str:
    """Return the idempotency key of an entry of this source."""
    return f"{kind}:{digest(own)}"


def _with_defaults(draft: Draft, given: Mapping[str, object]) -> Draft:
    """Return the draft with default values for fields that it does not set."""
    changes: Json = {
        name: value
        for name, value in given.items()
        if getattr(draft, name) == getattr(_DEFAULT_DRAFT, name)
        or (name == "source_class" and claims_trust(draft.source_class))
    }
    return draft._replace(**changes) if changes else draft


def _content_version(draft: Draft) -> str:
    said = [getattr(draft, name) for name in _VERSIONED_FIELDS]
    content = json.dumps([said, to_plain_json(draft.metadata)], default=str, sort_keys=True)
    return digest(content)[:16]


MAX_GROUP_SIZE = 5_000
_MAX_KEY_GAP = 16
_MAX_COMPARED = 64  # of a group, on either side; where more changed, they are new
_MIN_SIMILARITY = 0.5
_MAX_COMPARED_CHARS = 2_000  # characters
_UPDATED_FIELDS = changeable_fields() - {"source", "metadata", "pinned", "trust"}


class Verdict(NamedTuple):
    """Whether an entry is new, known, changed or undone; ``item`` is its earlier item."""

    state: Literal["new", "known", "changed", "undone"]
    ready: PreparedEntry
    item: Item | None = None


def _find_by_key(key: str | None, store: Store) -> tuple[str, str] | None:
    """Return the id that was stored with a key, and the fingerprint; None where none was."""
    return store.items.find_keys((key,)).get(key) if key else None


def classify_entry(ready: PreparedEntry, store: Store) -> Verdict:
    """Classify an entry that has its own key, or is identified by its text."""
    found = _find_by_key(ready.key, store)
    if found is None:
        return Verdict("new", ready)
    item = store.items.get([found[0]]).get(found[0])
    if item is not None and item.live_to is not None and (item.ended_by or "").startswith(UNDONE):
        return Verdict("undone", ready, item)
    if item is None or imported_version(item.metadata, ready.key) == ready.version:
        return Verdict("known", ready, item)
    if item.live_to is not None or item.status == "quarantined":
        # A deletion or revocation made here is kept.
        return Verdict("known", ready, item)
    if not _is_imported_as(item, ready.key) or _is_edited(item):
        return _classify_foreign(ready, item, store)
    return Verdict("changed", ready, item)


def _classify_foreign(ready: PreparedEntry, item: Item, store: Store) -> Verdict:
    """Classify an entry whose item the source may not change.

    Another writer had stored the same text first, or has corrected it since: a later
    version is stored as its own item.
    """
    if any(revision.text == ready.draft.text for revision in store.items.history(item.id)):
        return Verdict("known", ready, item)
    later = ready._replace(key=import_key(ready.key, ready.version))
    return Verdict("known" if store.items.find_keys((later.key,)) else "new", later)


def imported_version(metadata: Mapping[str, object], key: str) -> str | None:
    """Return the version of an entry that an item was last imported from, or None."""
    mark = metadata.get(IMPORTED)
    if not isinstance(mark, Mapping) or mark.get("key") != key:
        return None
    return str(mark.get("version"))


def _is_imported_as(item: Item, key: str) -> bool:
    return imported_version(item.metadata, key) is not None


def _is_edited(item: Item) -> bool:
    """Whether the text is no longer the one that the import had stored."""
    mark = item.metadata.get(IMPORTED)
    return isinstance(mark, Mapping) and mark.get("words") != text_mark(item.text)


def assign_group_keys(
    group: str, kind: str, entries: Sequence[PreparedEntry], store: Store
) -> list[PreparedEntry]:
    """Return the entries of a group with their keys.

    An entry equal to an earlier one is that one; an entry similar to one that is gone has
    changed; all others are new.
    """
    slots, erased = _group_items(group, kind, store)
    keys = _match_unchanged(entries, slots)
    keys |= _match_erased({n: entry for n, entry in enumerate(entries) if n not in keys}, erased)
    gone = slots.keys() - set(keys.values())
    vacant = {
        key: slots[key]
        for key in gone
        if slots[key].live_to is None and _is_imported_as(slots[key], key)
    }
    keys |= _match_changed({n: entry for n, entry in enumerate(entries) if n not in keys}, vacant)
    numbers = (import_key(kind, f"{group}#{number}") for number in count())
    free = (key for key in numbers if key not in slots and not store.items.find_keys((key,)))
    return [ready._replace(key=keys.get(n) or next(free)) for n, ready in enumerate(entries)]


def _group_items(group: str, kind: str, store: Store) -> tuple[dict[str, Item], dict[str, str]]:
    """Return what was stored of a group, by key, and the marks of what was erased of it."""
    ids: dict[str, str] = {}
    erased: dict[str, str] = {}
    missed = 0
    for number in range(MAX_GROUP_SIZE):
        key = import_key(kind, f"{group}#{number}")
        found = _find_by_key(key, store)
        missed = 0 if found else missed + 1
        if found is not None and is_erased(found[1]):
            erased[key] = found[1]
        elif found is not None:
            ids[key] = found[0]
        elif missed > _MAX_KEY_GAP:
            break
    items = store.items.get(list(ids.values()))
    return {key: items[own] for key, own in ids.items() if own in items}, erased


def _match_erased(
    entries: Mapping[int, PreparedEntry], erased: Mapping[str, str]
) -> dict[int, str]:
    """Match entries with what was erased here, by position: they are known, and stay away."""
    return {
        place: key
        for place, ready in entries.items()
        for key, mark in erased.items()
        if mark == erased_mark(key, ready.piece.fingerprint)
    }


def _match_unchanged(entries: Sequence[PreparedEntry], slots: Mapping[str, Item]) -> dict[int, str]:
    """Match entries with the same content as before, by position.

    In their own items or, where another writer had stored the same text first, in those.
    """
    versions = {imported_version(item.metadata, key): key for key, item in slots.items()}
    texts = {item.text: key for key, item in slots.items() if not _is_imported_as(item, key)}
    keys: dict[int, str] = {}
    for place, ready in enumerate(entries):
        key = versions.pop(ready.version, None) or texts.pop(ready.draft.text, None)
        if key is not None:
            keys[place] = key
    return keys


def _match_changed(entries: Mapping[int, PreparedEntry], vacant: dict[str, Item]) -> dict[int, str]:
    """Match changed entries to the items they were before, by text similarity."""
    texts = {place: ready.draft.text for place, ready in entries.items()}
    return match_similar(texts, {key: item.text for key, item in vacant.items()})


def match_similar(texts: Mapping[int, str], vacant: Mapping[str, str]) -> dict[int, str]:
    """Match texts with earlier ones (by key) that they are clearly alike, each with one."""
    if not vacant or len(vacant) > _MAX_COMPARED or len(texts) > _MAX_COMPARED:
        return {}
    alike = sorted(
        (-share, place, key)
        for place, text in texts.items()
        for key, other in vacant.items()
        if (share := _text_similarity(text, other)) >= _MIN_SIMILARITY
    )
    keys: dict[int, str] = {}
    for _, place, key in alike:
        if place not in keys and key not in keys.values():
            keys[place] = key
    return keys


def _text_similarity(text: str, other: str) -> float:
    """Return the share of words that two texts have in common, without the name prefix."""
    head, colon, _ = text.partition(": ")
    skipped = len(head) + len(colon) if colon and other.startswith(f"{head}: ") else 0
    first = Counter(text[skipped:_MAX_COMPARED_CHARS].casefold().split())
    second = Counter(other[skipped:_MAX_COMPARED_CHARS].casefold().split())
    return 2 * (first & second).total() / max(1, first.total() + second.total())


def update_fields(item: Item, ready: PreparedEntry) -> Json:
    """Return the update that brings the item to the source's present content."""
    draft = ready.draft
    fields = {
        name: getattr(draft, name)
        for name in _UPDATED_FIELDS
        if getattr(draft, name) not in (getattr(item, name, None), getattr(_DEFAULT_DRAFT, name))
    }
    fields["tags"], fields["text"] = draft.tags, draft.text
    same = draft.text == item.text
    before = {key: value for key, value in item.metadata.items() if same or key != MODEL_FACT_KEY}
    return {**fields, "metadata": {**before, **ready.to_draft().metadata}}


MAX_SAMPLES = 5
_MAX_REFUSALS = 10_000


class ImportSample(NamedTuple):
    """A sample of the imported memories: its kind, location and beginning."""

    kind: str
    where: str
    text: str


@dataclass(slots=True)
class Tally:
    """Counts of an import, or of its preview.

    ``stored`` are new memories, ``updated`` new revisions of earlier imports, ``repeated``
    were imported before, ``duplicates`` repeat another writer's text, ``waiting`` are in the
    inbox, ``links``, ``edits`` of files and ``threads`` are new; ``kinds`` counts the new ones.
    The first ten thousand refusals are kept, ``n_refused`` counts all. ``run`` undoes it.
    """

    kind: str = ""
    source: str = ""
    preview: bool = False
    run: str = ""
    stored: int = 0
    updated: int = 0
    duplicates: int = 0
    repeated: int = 0
    redacted: int = 0
    waiting: int = 0
    links: int = 0
    edits: int = 0
    threads: int = 0
    n_refused: int = 0
    kinds: Counter[str] = field(default_factory=Counter)
    first: list[ImportSample] = field(default_factory=list)
    ids: list[str] = field(default_factory=list)
    claims: ExportClaims | None = None  # of an export
    refused: list[Refusal] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)

    @property
    def known(self) -> int:
        """How many entries the space had before."""
        return self.duplicates + self.repeated

    @property
    def read(self) -> int:
        """How many entries were read."""
        return self.stored + self.updated + self.known + self.waiting + self.n_refused

    def refuse(self, refusal: Refusal) -> None:
        self.n_refused += 1
        if len(self.refused) < _MAX_REFUSALS:
            self.refused.append(refusal)

    def count(self, ready: PreparedEntry, status: str) -> None:
        """Count the outcome of an entry: stored, updated, duplicate or repeated."""
        self.redacted += bool(ready.piece.redacted)
        counted = {"duplicate": "duplicates", "left_out": "waiting"}.get(status, status)
        setattr(self, counted, getattr(self, counted) + 1)
        if counted == "stored":
            draft = ready.draft
            kind = draft.kind or classify_kind(ready.piece.folded, draft.level)
            self.kinds[kind] += 1
            if len(self.first) < MAX_SAMPLES:
                text = draft.caption or caption(draft.text)
                self.first.append(ImportSample(kind, ready.where, text))


INTAKE_BATCH = 500
_OF_THE_RUN = frozenset({"stored", "waiting", "left_out"})  # what an undo of the import takes back
_COMPARED_LATER = "what they update is looked for by: bethink maintain --job updates"


class Intake:
    """The state of one import."""

    def __init__(
        self,
        memory: Memory,
        kind: str,
        tally: Tally,
        *,
        scratch: Memory | None = None,
        most_in_group: int = MAX_GROUP_SIZE,
    ) -> None:
        """Set up an import; ``scratch`` is a preview's memory, discarded by the caller.

        Entries of a group beyond ``most_in_group`` are identified by their text.
        """
        self._memory, self._scratch = memory, scratch
        self._kind, self._tally, self._most_in_group = kind, tally, most_in_group
        settings = memory.settings
        self._ctx = WriteContext(
            *(memory.store, None, utc_now(), settings.actor, make_id),
            personal_numbers=settings.personal_numbers,
        )
        self._is_bulk = False
        self._seen: set[int] = set()
        self._groups: set[int] = set()
        self._uses: dict[str, PriorUse] = {}
        self._updated: dict[str, str] = {}
        self._reworded: set[str] = set()  # in a preview: items whose text would change
        self._met_as: dict[str, str] = {}  # in a preview: earlier texts of the space

    @property
    def stores(self) -> tuple[Store, ...]:
        """The stores in which imported items can be looked up."""
        if self._scratch is None:
            return (self._memory.store,)
        return (self._memory.store, self._scratch.store)

    @property
    def is_preview(self) -> bool:
        return self._scratch is not None

    def find_item(self, own: str) -> str | None:
        """Return the item that an entry has become, or would; None where there is none."""
        key = import_key(self._kind, own)
        found = (_find_by_key(key, store) for store in self.stores)
        item = self._met_as.get(key) or next((one[0] for one in found if one), None)
        items = (store.items.get([item]).get(item) for store in self.stores) if item else ()
        return item if any(one is not None and one.live_to is None for one in items) else None

    def store_entries(self, entries: Iterable[Entry], given: Mapping[str, object]) -> Iterator[int]:
        """Store entries in batches; yield after each how many more were read.

        Stored batches stay, whatever happens after. Of more than one batch the next is read
        and embedded while one is stored, and the job ``updates`` judges them afterwards.
        """
        ready = self._prepare_entries(entries, given)
        batch = list(islice(ready, INTAKE_BATCH))
        with embedding_ahead(self._memory.embedder) as embedder:
            while batch:
                coming = list(islice(ready, INTAKE_BATCH))
                if coming and not self._is_bulk and not self.is_preview:
                    self._is_bulk = True
                    self._tally.warnings.append(_COMPARED_LATER)
                    self._memory = self._memory.using(embedder=embedder, judging=False)
                    self._embed_ahead(batch)
                self._embed_ahead(coming)
                self._store_batch(batch)
                self._take_over_uses()
                yield len(batch)
                batch = coming

    def _take_over_uses(self) -> None:
        """Restore the usage of imported memories; not of those that were stored here."""
        if self._uses:
            store = self._memory.store
            found = store.items.get(tuple(self._uses)).items()
            own = {one: self._uses[one] for one, item in found if IMPORTED in item.metadata}
            store.activity.take_over_use(own, utc_now())
            self._uses.clear()

    def _embed_ahead(self, batch: Sequence[PreparedEntry | Refusal]) -> None:
        """Have what seems to be new embedded while the batch before it is stored."""
        if self._is_bulk:
            ready = [entry for entry in batch if isinstance(entry, PreparedEntry)]
            stored = self._memory.store.items
            known = stored.find_keys(tuple(one.key for one in ready))
            ready = [one for one in ready if one.key not in known]
            scope = Scope(Filters(max_classification=3), self._ctx.now)
            same = stored.find_duplicates([(one.piece.fingerprint, ()) for one in ready], scope)
            new = [one.draft for one, found in zip(ready, same, strict=True) if not found]
            embed_ahead(self._memory.embedder, texts_to_embed(new)[0])

    def _prepare_entries(
        self, entries: Iterable[Entry], given: Mapping[str, object]
    ) -> Iterator[PreparedEntry | Refusal]:
        """Yield prepared entries, those of a group with their assigned keys."""
        make = partial(prepare_entry, kind=self._kind, given=given, ctx=self._ctx)
        for group, members in groupby(entries, key=lambda entry: entry.group):
            if not group:
                yield from map(make, members)
                continue
            name = self._group_name(group)
            made = [make(member) for member in islice(members, self._most_in_group)]
            kept = [member for member in made if isinstance(member, PreparedEntry)]
            yield from (member for member in made if isinstance(member, Refusal))
            yield from assign_group_keys(name, self._kind, kept, self._memory.store)
            for member in members:
                yield make(member._replace(id=digest(name, repr(member.found))))

    def _group_name(self, group: str) -> str:
        """Return the group's name; one that occurs again gets a number."""
        number = 1
        while (mark := hash((group, number))) in self._groups:
            number += 1
        self._groups.add(mark)
        return group if number == 1 else f"{group}*{number}"

    def _store_batch(self, batch: Sequence[PreparedEntry | Refusal]) -> None:
        new: list[PreparedEntry] = []
        for ready in batch:
            if isinstance(ready, Refusal):
                self._tally.refuse(ready)
            elif ready.key and hash(ready.key) in self._seen:
                self._handle_repeat(ready, new)
            else:
                self._seen.add(hash(ready.key))
                verdict = classify_entry(ready, self._memory.store)
                if verdict.state == "new":
                    parent = ready.draft.parent and import_key(self._kind, ready.draft.parent)
                    if parent and any(entry.key == parent for entry in new):
                        self._store_new(new)
                        new.clear()
                    new.append(self._with_parent(verdict.ready))
                elif verdict.state == "undone" and verdict.item is not None:
                    self._restore_item(verdict.item, ready)
                elif verdict.state == "known" or verdict.item is None:
                    self._count(ready, "repeated", verdict.item.id if verdict.item else "")
                else:
                    self._update_item(verdict.item, ready)
        self._store_new(new)

    def _with_parent(self, ready: PreparedEntry) -> PreparedEntry:
        """Return the entry with the item that its parent became; a preview has none of these."""
        if ready.draft.parent is None:
            return ready
        parent = None if self._scratch else self.find_item(ready.draft.parent)
        return ready._replace(piece=replace(ready.piece, draft=ready.draft._replace(parent=parent)))

    def _handle_repeat(self, ready: PreparedEntry, pending: Sequence[PreparedEntry]) -> None:
        """Count a repeated entry; refuse it if it differs from the first.

        Otherwise each import would change the item back and forth.
        """
        versions = [entry.version for entry in pending if entry.key == ready.key]
        versions += [self._updated[ready.key]] if ready.key in self._updated else []
        for store in () if versions else self.stores:
            found = _find_by_key(ready.key, store)
            item = store.items.get([found[0]]).get(found[0]) if found else None
            if item is not None and (version := imported_version(item.metadata, ready.key)):
                versions.append(version)
        if versions and ready.version not in versions:
            conflict = Conflict("it occurs twice with different content")
            self._tally.refuse(Refusal(ready.where, conflict))
        else:
            self._count(ready, "repeated", "")

    def _restore_item(self, item: Item, ready: PreparedEntry) -> None:
        """Bring back what an undone import had stored, with what the source says now."""
        if self._scratch is None:
            self._memory.restore(item.id)
            if not is_sealed(item):
                self._memory.update(item.id, **update_fields(item, ready))
            self._note_stored([item.id])
        self._count(ready, "waiting" if is_sealed(item) else "stored", item.id)

    def _note_stored(self, ids: Sequence[str]) -> None:
        if ids:
            work, actor = self._memory.session.job_context(), self._memory.settings.actor
            self._tally.run = record_imported(self._tally.run, ids, actor, work)

    def _update_item(self, item: Item, ready: PreparedEntry) -> None:
        """Update the compared item, in the revision that was compared."""
        if self._scratch is None:
            try:
                self._memory.update(item.id, revision=item.rev, **update_fields(item, ready))
            except Conflict:
                # Changed concurrently, by another import or the user: read it again.
                self._seen.discard(hash(ready.key))
                self._store_batch([ready])
                return
            except Refused as refused:
                self._tally.refuse(Refusal(ready.where, refused))
                return
        else:
            # Later entries are compared with the new text, not the old one.
            self._reworded.add(item.id)
            _remember_drafts(
                self._scratch, [self._without_space_sources(ready.draft._replace(key=None))]
            )
        self._updated[ready.key] = ready.version
        self._count(ready, "updated", item.id)

    def _store_new(self, new: Sequence[PreparedEntry]) -> None:
        if self._scratch is None:
            answers = _remember_drafts(self._memory, [entry.to_draft() for entry in new])
        else:
            answers = self._preview_store(new, self._scratch)
        for ready, answer in zip(new, answers, strict=True):
            if isinstance(answer, Refused):
                self._tally.refuse(Refusal(ready.where, answer))
            else:
                if self._scratch is not None and answer.status == "duplicate":
                    self._met_as[ready.key] = answer.id
                self._count(ready, answer.status, answer.id)
        if self._scratch is None:
            remembered = (one for one in answers if isinstance(one, Remembered))
            self._note_stored([one.id for one in remembered if one.status in _OF_THE_RUN])

    def _preview_store(
        self, new: Sequence[PreparedEntry], scratch: Memory
    ) -> list[Remembered | Refused]:
        """Return what storing would answer: from the space, then from earlier entries."""
        answers = [self._find_existing(ready) for ready in new]
        left = [place for place, answer in enumerate(answers) if answer is None]
        outcomes = _remember_drafts(
            scratch, [self._without_space_sources(new[place].to_draft()) for place in left]
        )
        for place, answer in zip(left, outcomes, strict=True):
            answers[place] = answer
        return [answer for answer in answers if answer is not None]

    def _find_existing(self, ready: PreparedEntry) -> Remembered | Refused | None:
        """Return the space's answer for what it already holds or must refuse."""
        key = ready.draft.key
        used = _find_by_key(key, self._memory.store)
        if used is not None:
            if is_erased(used[1]) or used[1] == ready.piece.fingerprint:
                return Remembered(used[0], "repeated")
            return Conflict(f"the key {key!r:.80} was used before with other content")
        # Without its key: the store checks keys only when it writes, and a preview does not.
        piece = replace(ready.piece, draft=ready.draft._replace(key=None))
        try:
            _, known = deduplicate([piece], self._ctx)
        except Refused as refused:
            return refused
        answer = known.get(piece.id)
        return None if answer is None or answer.id in self._reworded else answer

    def _without_space_sources(self, draft: Draft) -> Draft:
        """Remove links to sources in the space, which a preview's memory does not have."""
        if not draft.derives_from:
            return draft
        there = self._memory.store.items.get(draft.derives_from)
        return draft._replace(derives_from=tuple(i for i in draft.derives_from if i not in there))

    def _count(self, ready: PreparedEntry, status: str, item_id: str) -> None:
        self._tally.count(ready, status)
        if self._scratch is None and item_id:
            self._tally.ids.append(item_id)
            if ready.use is not None:
                self._uses[item_id] = ready.use


def _remember_drafts(memory: Memory, drafts: Sequence[Draft]) -> list[Remembered | Refused]:
    """Store drafts and return each answer; one with an unknown source stops no other."""
    try:
        return memory.remember_each(drafts, review=True)
    except NotFound as missing:
        if len(drafts) == 1:
            return [Refused(missing.message, remedy=missing.remedy)]
    return [answer for draft in drafts for answer in _remember_drafts(memory, [draft])]
