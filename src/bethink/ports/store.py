"""Port of a store: one space in seven parts, each a protocol of at most 15 methods.

A second store implements the six and combines them in one object that is a `Store`; the
laws are in ``tests/conformance``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from datetime import datetime
from typing import TYPE_CHECKING, Protocol

from bethink.core.arrays import Vector
from bethink.core.json_values import Json, JsonObjects
from bethink.core.named_tuple import NamedTuple
from bethink.model import Entity, FileEdit, FileHistory, FileSnapshot, Item, Link, Status, Thread
from bethink.ports.models import Embedding
from bethink.ports.values import (
    Calendar,
    CheckResult,
    Choose,
    Device,
    EntityListing,
    EraseReceipt,
    Event,
    ForgottenFiles,
    OpBatch,
    PriorUse,
    PutResult,
    Record,
    Scope,
    ScoredEntity,
    SearchResult,
    SharedEntities,
    SyncConflict,
    SyncResult,
    TextSearch,
    TrigramSearch,
    Usage,
    UsageDecay,
    Word,
    WordStatistics,
)

if TYPE_CHECKING:
    from bethink.ports import Progress


class NoteFile(NamedTuple):
    """One note file: its stem, the half-open period it covers, and its modification time."""

    name: str
    start: datetime
    end: datetime
    modified: datetime


class NoteStore(Protocol):
    """Daily, weekly and quarterly notes. Thread-safe."""

    def files(self, since: datetime | None, until: datetime | None) -> Sequence[NoteFile]:
        """Files that cover any part of [since, until), newest first."""

    def read(self, file: NoteFile) -> Sequence[Item]:
        """The paragraphs of a file as items, in order, with secrets redacted.

        Raises Refused for a file that cannot be read as text.
        """

    def find(self, item_id: str) -> Item | None:
        """The paragraph with this id, if it still exists."""


class ItemSearch(Protocol):
    """Searches for items. Every search is exact within its scope.

    Filters are applied before any cut, so fewer than ``depth`` matches means there are no more.
    """

    def read_ahead(
        self,
        scope: Scope | None = None,
        *,
        text: str | None = None,
        nearest: tuple[Vector, str, int] | None = None,
        pieces: TrigramSearch | None = None,
    ) -> None:
        """Tell what will be asked, as `Store.read_ahead` does.

        That is of a scope `substring` of a text, `vector` with its vector, model and depth
        (``nearest``), `pieces`, or any search; without a scope the words of a text.
        """

    def text(self, search: TextSearch, scope: Scope) -> SearchResult:
        """Items with any of the query's words, ranked by BM25. Any text is a valid query."""

    def substring(self, text: str, depth: int, scope: Scope) -> SearchResult:
        """Items that contain parts of the query's words, or misspelt forms of them.

        The score is the share of the query that was found, 0 to 1.
        """

    def vector(
        self, vector: Vector, model: str, depth: int, scope: Scope, choose: Choose | None = None
    ) -> SearchResult:
        """Nearest items by cosine among the vectors of ``model``; others are never compared.

        An item with passages is as near as the nearest of its vectors, and found once.
        With ``choose`` only those of the ``depth`` nearest are read and returned that it
        names. Raises ModelError when there are vectors, but none of this model.
        """

    def pieces(self, search: TrigramSearch, scope: Scope) -> SearchResult:
        """Items that match trigrams of the query's words: infixes, z and y swapped, partial words.

        The score is the share of the query that was found, 0 to 1. Of a word with very many
        matches only the newest count.
        """

    def signature(self, text: str, depth: int, min_likeness: float, scope: Scope) -> SearchResult:
        """Items made of similar words.

        The score is the share of bits that signatures of their words would have in common,
        corrected for the question's length; 0.5 is chance.
        """

    def time(
        self, start: datetime, end: datetime, depth: int, scope: Scope, *, overlapping: bool = False
    ) -> SearchResult:
        """Items that happened in [start, end); the middle of the window scores 1.

        With ``overlapping`` also items that began before and lasted into it, ranked last.
        """

    def entities(self, entities: Sequence[str], depth: int, scope: Scope) -> SearchResult:
        """Items that mention the entities (ids); the score is the share mentioned."""

    def mentioning(self, entities: Sequence[str], each: int, scope: Scope) -> dict[str, list[Item]]:
        """For every entity (id) the items that mention it, newest first, at most ``each``."""

    def in_scope(self, ids: Sequence[str], scope: Scope) -> list[Item]:
        """Those of the items (ids) that are in scope, in any order."""

    def count(self, scope: Scope) -> int:
        """How many items are in scope; of many in a large space an estimate."""

    def calendar(self, scope: Scope, *, sessions: int, days: bool = True) -> Calendar:
        """When the items happened: counts of each day, and the last so many conversations."""

    def terms(self, text: str) -> tuple[str, ...]:
        """The index terms of a text."""

    def words(self, text: str) -> tuple[Word, ...]:
        """The distinct words and names of a question, in order."""

    def statistics(self, terms: Iterable[str], *, as_of: datetime | None = None) -> WordStatistics:
        """Document frequencies of index terms, now or at a moment, ended revisions included."""


class ItemStore(Protocol):
    """Items and their revisions: read, write, end and erase them.

    Each write is one transaction; when it returns, the change survives a crash.
    """

    def put(self, records: Sequence[Record], *, actor: str, now: datetime) -> list[PutResult]:
        """Store records in one transaction.

        A turn without a number is appended to its session, and every turn is linked to the one
        before it (``follows``).
        """

    def get(self, ids: Sequence[str], *, as_of: datetime | None = None) -> dict[str, Item]:
        """Items by id, ended ones too (their ``live_to`` is set).

        With ``as_of`` their state at that moment, including those ended by then. This and
        every other reading of items leaves out those that are damaged.
        """

    def damaged(self, ids: Sequence[str], *, as_of: datetime | None = None) -> list[str]:
        """Those of the ids whose content is no longer what was stored, now or at a moment.

        A search may return them: what is shown to anybody is checked first.
        """

    def resolve(self, part: str) -> list[str]:
        """Ids that begin or end with these characters (at most ten)."""

    def history(self, item_id: str) -> list[Item]:
        """All revisions of an item, oldest first."""

    def browse(
        self, scope: Scope, *, limit: int, after: str | None = None, offset: int = 0
    ) -> list[Item]:
        """Items by ``stored_at``, then id, newest first; a page begins after one, or so many."""

    def around(self, item_id: str, *, window: int, scope: Scope) -> list[Item]:
        """The items stored or said just before and after one, oldest first."""

    def from_source(self, source: str) -> list[str]:
        """Ids of all items from a source or by that actor (``http:laptop``), forgotten ones too."""

    def find_keys(self, keys: tuple[str, ...]) -> dict[str, tuple[str, str]]:
        """The item stored under each idempotency key that was used, and its fingerprint.

        Of an erased item the mark of its content (`erased_mark`): it does not come back.
        """

    def find_duplicates(
        self, texts: Sequence[tuple[str, Sequence[int]]], scope: Scope
    ) -> list[list[Item]]:
        """For each the live items with its fingerprint, then those that share the most bands."""

    def slots(self, pairs: Sequence[tuple[str, str]], scope: Scope) -> list[Item]:
        """Live items that state a fact of one of these subjects and attributes, newest first."""

    def end(
        self,
        ids: Sequence[str],
        *,
        how: str,
        actor: str,
        now: datetime,
        only: Mapping[str, int] | None = None,
    ) -> list[str]:
        """Soft-delete items: no longer recalled, still in the history. Return those ended.

        ``only`` skips items that are no longer at the revision it gives for their id.
        """

    def restore(self, ids: Sequence[str], *, actor: str, now: datetime) -> list[str]: ...

    def set_status(
        self,
        ids: Sequence[str],
        status: Status,
        *,
        actor: str,
        now: datetime,
        only: Mapping[str, int] | None = None,
    ) -> None:
        """Set the status of items' last revision, forgotten ones too; ``only`` as for `end`."""

    def erase(self, ids: Sequence[str], *, actor: str, now: datetime) -> EraseReceipt:
        """Remove items, all their revisions and all derived data; no byte stays."""


class GraphStore(Protocol):
    """Entities, their names, and links between items and entities."""

    def find_entities(
        self,
        texts: tuple[str, ...],
        limit: int = 8,
        *,
        as_of: datetime | None = None,
        max_classification: int = 3,
    ) -> list[list[Entity]]:
        """For each text the entities whose name or alias occurs in it, longest name first.

        With ``as_of`` those known by then, with the mention counts of then. Names and
        entities known only from memories above the classification are left out.
        """

    def entities(self, *, prefix: str = "", limit: int = 100, offset: int = 0) -> list[Entity]:
        """Entities by number of mentions, highest first."""

    def list_entities(self, listing: EntityListing, now: datetime) -> list[Entity]:
        """Entities by 10 × momentum + 0.5 × memories − 2 × years since the last mention.

        The momentum is current; memories are counted by layer and pinned.
        """

    def near_entities(
        self, vector: Vector, model: str, limit: int, *, as_of: datetime | None = None
    ) -> list[ScoredEntity]:
        """Entities by the cosine of "kind: name" with a vector of ``model``, nearest first.

        Every entity with a vector of that model is compared.
        """

    def entities_with(
        self, words: Sequence[str], limit: int, *, as_of: datetime | None = None
    ) -> list[ScoredEntity]:
        """Entities whose id or name contains these lower-case words, most matching words first.

        Words match as substrings, too.
        """

    def merge_entities(self, kept: str, gone: str, *, actor: str, now: datetime) -> None:
        """Transfer the names, mentions and edges of one entity (id) to another."""

    def split_entities(self, kept: str, gone: str, *, actor: str, now: datetime) -> None:
        """Undo a merge of two entities."""

    def links_of(
        self,
        ids: Sequence[str],
        types: Sequence[str] = (),
        *,
        incoming: bool = True,
        as_of: datetime | None = None,
    ) -> list[Link]:
        """Links that leave and, with ``incoming``, enter these nodes.

        With ``as_of`` those of today that already existed then.
        """

    def unlinked(self, ids: Sequence[str]) -> set[tuple[str, str]]:
        """Each of these items, with what a caller has said that it, as it is now, updates not."""

    def follows(
        self, ids: Sequence[str], *, as_of: datetime | None = None
    ) -> list[tuple[str, str]]:
        """The links ``follows`` from and to these turns: the ids of a turn and the one before.

        With ``as_of`` those of today that already existed then.
        """

    def edges(self, entities: Sequence[str], each: int, until: datetime) -> dict[str, list[Link]]:
        """For every entity (id) its links with other entities that existed at a moment.

        Newest first, at most ``each``.
        """

    def add_links(
        self, links: Sequence[Link], *, actor: str = "", now: datetime | None = None
    ) -> None:
        """Add links; the same ends and type again overwrite the weight.

        The journal records it where ``actor`` is given.
        """

    def remove_links(self, links: Sequence[Link], *, actor: str, now: datetime) -> int:
        """Remove links by their ends and type; return how many existed."""

    def siblings(
        self, ids: Sequence[str], *, most: int, min_confidence: float, as_of: datetime | None = None
    ) -> SharedEntities:
        """Other items that mention the entities these items mention with enough confidence.

        Entities mentioned by more than ``most`` items are hubs: reported and left out. With
        ``as_of`` the result holds what mentioned them then, but also what only does so since.
        """


class VectorStore(Protocol):
    """Vectors of items and entities: what can be derived again."""

    def embeddings(
        self, ids: Sequence[str], model: str, *, as_of: datetime | None = None
    ) -> dict[str, Embedding]:
        """The vectors of this model that items have, or had at a moment, with their passages."""

    def read_ahead(self, ids: Sequence[str], model: str) -> None:
        """Tell that `embeddings` will be asked, as `Store.read_ahead` does."""

    def set_embeddings(
        self, model: str, embeddings: Mapping[str, Embedding], *, only: Mapping[str, int]
    ) -> None:
        """Add or replace vectors of items that are still in the revision ``only`` names for them.

        The first call for a new model makes it the current one; vectors of other models are
        removed once none of them is needed.
        """

    def unembedded(self, model: str, limit: int) -> list[Item]:
        """Live items that have no vector of this model, or one made before there were passages."""

    def set_entity_embeddings(self, model: str, embeddings: Mapping[str, Embedding]) -> None:
        """Add or replace the vectors of entities (ids)."""

    def unembedded_entities(self, model: str, limit: int) -> list[Entity]:
        """Entities without a vector of this model."""

    def entities_ahead(self, entities: Sequence[str], model: str) -> None:
        """Tell that `lacking_vectors` will be asked."""

    def lacking_vectors(self, entities: Sequence[str], model: str) -> list[str]:
        """Those of the entities (ids, stored or not) that have no vector of this model."""

    def remove_damaged(self) -> int:
        """Remove vectors that are not what was stored; return of how many memories."""


class ActivityStore(Protocol):
    """What happens around items: their use, momentum of entities, threads, file edits."""

    def note_use(
        self,
        ids: Sequence[str],
        now: datetime,
        *,
        fading: UsageDecay | None = None,
        of_others: bool = False,
    ) -> None:
        """Count one recall and the items it returned; with ``fading`` apply usage decay.

        Items that are not stored here count only with ``of_others``.
        """

    def take_over_use(self, uses: Mapping[str, PriorUse], now: datetime) -> None:
        """Set the usage of items that have none yet, from the store they come from."""

    def usage(self, ids: Sequence[str], now: datetime) -> dict[str, Usage]:
        """Usage of items up to a moment; items never used are left out."""

    def momenta(self, entities: Sequence[str], now: datetime) -> dict[str, float]:
        """The momentum of entities (ids) at a moment, 0 to 10; unknown ids are left out."""

    def put_thread(self, thread: Thread, *, actor: str, now: datetime) -> None:
        """Store a whole thread, replacing the one with its id.

        Raises NotFound where it names a memory that does not exist.
        """

    def drop_thread(self, thread_id: str, *, actor: str, now: datetime) -> None:
        """Remove a thread; its memories stay."""

    def thread(self, thread_id: str) -> Thread | None: ...

    def threads(self, *, limit: int = 100, offset: int = 0) -> list[Thread]:
        """Threads by last update, newest first."""

    def threads_of(self, ids: Sequence[str]) -> list[Thread]:
        """Threads that any of these items belongs to, by id."""

    def note_edits(
        self, edits: Sequence[FileEdit], *, actor: str, now: datetime, preview: bool = False
    ) -> int:
        """Add edits, ignoring those already recorded; return how many were new.

        With ``preview`` nothing is added, and memories they name need not be there.
        """

    def file_history(
        self, part: str, *, intents: int = 10, items: int = 20, max_classification: int = 3
    ) -> FileHistory:
        """The history of all files whose path contains this text.

        Edits reported in a memory above the classification are left out.
        """

    def file_snapshot(self, path: str) -> FileSnapshot | None:
        """The state of a file when it was last read, if it was."""

    def keep_file_snapshot(self, snapshot: FileSnapshot) -> None: ...

    def forget_files(
        self, part: str, *, actor: str, now: datetime, preview: bool = False
    ) -> ForgottenFiles:
        """Remove every edit and snapshot of files whose path contains this text, down to the bytes.

        The journal records how many, not which. With ``preview`` nothing is removed.
        """


class StoreAdmin(Protocol):
    """Administration of the store: journal, statistics, backup, checks."""

    def events(self, *, after: int = 0, limit: int = 100) -> list[Event]: ...

    def changes(self, *, item: str | None, actor: str | None, limit: int) -> list[Event]:
        """The last journal entries, newest first, optionally of one memory or one actor."""

    def stored_by(self, person: str) -> list[str]:
        """Ids of all items that a person (id) stored, forgotten ones too."""

    def log(self, kind: str, *, item: str | None, actor: str, detail: str, now: datetime) -> None:
        """Append an entry to the journal."""

    def count(self) -> int:
        """The number of live items."""

    def stats(self) -> Json: ...

    def questions(self) -> list[Json]:
        """The saved questions, oldest first."""

    def change_questions(self, change: Callable[[list[Json]], list[Json]]) -> None:
        """Replace the saved questions by what ``change`` makes of them."""

    def ended_as(self, how: str) -> list[str]:
        """Ids of items whose last revision ended for this reason, in the order of their ends."""

    def refile(self, ids: Sequence[str], *, how: str, actor: str, now: datetime) -> list[str]:
        """Give ended items another reason for their end, in one transaction; return those."""

    def generation(self) -> int:
        """A number that changes with every write by any process; equal means equal content."""

    def dump(self) -> Iterator[Json]:
        """All persistent data as JSON-ready records, in an order that `load` accepts."""

    def load(
        self,
        records: JsonObjects,
        *,
        actor: str,
        now: datetime,
        trusted: bool = True,
        personal_numbers: str = "none",
    ) -> int:
        """Import a dump in one transaction. Known ids are left unchanged.

        What is not ``trusted`` comes as an import, without secrets, journal, keys and threads,
        and as the setting ``personal_numbers`` says without those.
        """

    def check(self, *, repair: bool = False, progress: Progress | None = None) -> list[CheckResult]:
        """Run all checks, reporting each to ``progress``; return one finding each."""


class SyncStore(Protocol):
    """The log of what each machine did to a space, of which every machine makes the same."""

    ceiling: int  # the highest classification of what can be read

    def settings(self) -> Json:
        """What the space knows of itself as one of several; empty before the first sync.

        With how many memories were ever erased.
        """

    def keep(self, **values: object) -> None:
        """Set some of the settings."""

    def devices(self) -> list[Device]:
        """The machines that are known."""

    def add_device(self, device: Device) -> None:
        """Add or replace what is known of a machine."""

    def capture(self, now: datetime) -> None:
        """Write into the log what was done here since the last time."""

    def vector(self, ceiling: int = 3) -> dict[str, int]:
        """Up to which number the log has each series of operations."""

    def read(self, after: Mapping[str, int], *, ceiling: int, limit: int, told: int = 0) -> OpBatch:
        """The next operations that a machine with this vector lacks; none if it has all.

        Up to ``told``, the erases alone, in ranges of the series' name after ``!``.
        """

    def apply(self, batch: OpBatch, *, actor: str, now: datetime) -> SyncResult:
        """Add operations to the log and make the memories what it then says. Repeatable."""

    def held(self) -> list[str]:
        """What came but cannot be stored: memories of which something is missing, operations."""

    def samples(self, ceiling: int = 3) -> dict[str, list[tuple[int, str]]]:
        """Numbers and marks of each series, ever fewer towards its beginning."""

    def forks(self, samples: Mapping[str, Iterable[tuple[int, str]]]) -> dict[str, int]:
        """From which number on series are told in two ways: by copies of one machine."""

    def renew(self, forks: Mapping[str, int], **identity: object) -> None:
        """Become another machine, whose are the operations from these numbers on."""

    def conflicts(self, ids: Sequence[str] | None = None) -> dict[str, list[SyncConflict]]:
        """Memories that were changed in two places at once, all or some."""

    def set_conflict(self, item: str, rev: int | None, *, now: datetime) -> None:
        """Note that a file was changed at once with the memory; ``rev`` is not current.

        With None, that what the memory says now is what was decided, for all machines.
        """

    def digest(self, ceiling: int = 3) -> str:
        """A hash of all memories, links, uses and erases: equal on machines that agree."""


class Store(Protocol):
    """The store of one space: seven parts over the same data. Thread-safe."""

    @property
    def space(self) -> str:
        """The name of the space."""

    @property
    def search(self) -> ItemSearch: ...

    @property
    def items(self) -> ItemStore: ...

    @property
    def graph(self) -> GraphStore: ...

    @property
    def vectors(self) -> VectorStore: ...

    @property
    def activity(self) -> ActivityStore: ...

    @property
    def admin(self) -> StoreAdmin: ...

    @property
    def sync(self) -> SyncStore: ...

    def below(self, ceiling: int) -> Store:
        """Return the same space as seen by those who may see up to a classification.

        Nothing above it can be read, changed or inferred through what is returned: every
        answer is the one of a store that holds nothing above it.
        """

    def trusted(self) -> Store:
        """Return the same space without memories of trust 0; itself where there are none.

        For reading: every answer is the one of a store that holds no such memory.
        """

    def read_ahead(self, ids: Sequence[str], links: Sequence[tuple[Sequence[str], bool]]) -> None:
        """Tell that items and some of their links will be asked for in this snapshot.

        Links are of some types, and with True also those that end at the items. A store on a
        server reads what it is told together.
        """

    def has_conflicts(self) -> bool:
        """Whether anything was changed on two machines at once; a server is asked seldom."""

    def snapshot(self, *, at_once: bool = True) -> AbstractContextManager[None]:
        """While held, all reads of this thread see one moment; writes are not allowed.

        Without ``at_once`` it may be the moment of the first read.
        """

    def close(self) -> None:
        """Release everything that is open. Acknowledged writes are safe."""
