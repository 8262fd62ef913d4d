"""The interface of a maintenance job: its context, its proposals, access to memories."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import islice
from pathlib import Path
from types import MappingProxyType
from typing import Any, Generic, Protocol, TypeVar

from bethink.core import plural
from bethink.core.arrays import Matrix, np
from bethink.core.blas import ONE_BLAS_THREAD
from bethink.core.ids import make_id
from bethink.core.named_tuple import NamedTuple
from bethink.core.words import word_set
from bethink.ingest.admission import DERIVED_SOURCE, WriteContext
from bethink.lang.dates import DAY_S
from bethink.model import Draft, Filters, Item, Link, Status
from bethink.ports import (
    Budget,
    Embedder,
    FindNames,
    JudgePairs,
    LanguageModel,
    Scope,
    Store,
    Usage,
)
from bethink.retrieval.heat import UseCounts, heat
from bethink.retrieval.provenance import mark_outdated

ACTOR = "maintain"
EXEMPT_LAYERS = frozenset({"goal", "caveat"})


@dataclass(frozen=True, slots=True)
class JobContext:
    """What a job may use, and its limits.

    ``filters`` select the memories it is about. ``limit`` is how many memories may leave
    recall in the whole run; a larger proposal is rejected. ``shown`` is the highest
    classification whose words a plan may repeat to its reader. ``min_age_days``, if given,
    replaces the minimum age of jobs that judge by age. ``similarity``, if given, is the
    cosine from which two wordings are duplicates. ``model`` is None where rules are used,
    which is the default. ``judge`` says what a newer memory does to an older one. ``run`` is
    the id of the run that carries out a plan.
    """

    store: Store
    embedder: Embedder | None
    now: datetime
    limit: int
    model: LanguageModel | None = None
    judge: JudgePairs | None = None
    find_names: FindNames | None = None
    budget: Budget = field(default_factory=Budget)
    notes_dir: Path | None = None
    notes_trust: int = 1
    filters: Filters = field(default_factory=lambda: Filters(max_classification=3))
    shown: int = 3
    min_age_days: float | None = None
    similarity: float | None = None
    run: str = ""
    make_id: Callable[[datetime], str] = make_id

    @property
    def scope(self) -> Scope:
        """The memories that jobs may see: live, active, valid now."""
        return Scope(self.filters, self.now)

    def write_context(self) -> WriteContext:
        """Build the context for the write pipeline, with maintenance as the actor."""
        parts = self.store, self.embedder, self.now, ACTOR, self.make_id
        return WriteContext(*parts, deriving=True, judge=self.judge, find_names=self.find_names)


T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Action(Generic[T]):
    """A side effect of a proposal: its description, what it does, and with which value.

    It is idempotent, of what can be rebuilt. It is not undone, unless it records links, or the
    proposal names threads.
    """

    text: str
    act: Callable[[T, JobContext], None] = field(repr=False)
    value: T

    def __call__(self, work: JobContext) -> None:
        self.act(self.value, work)


class Proposal(NamedTuple):
    """One change, as data.

    It is applied as a whole or, if something changed meanwhile, not at all. ``ends`` leave
    recall once ``successor`` can be recalled; ``statuses`` are set and ``links`` added. The
    successor derives from ``parents`` or, without any, from ``ends``. ``why`` is for
    people, ``rule`` says the same without a word of any memory: it goes into the journal.
    ``remark`` says why it was not made as configured, for example by which model.
    ``renews`` means that what ends was made by the same job and is rebuilt: that neither
    counts against the limit nor is exempt for being protected. ``seen`` are the revisions
    the job read: if one is no longer live, nothing is applied. ``read`` are these memories, for
    the plan, which drops them. ``about`` are memories whose words it repeats besides. One that
    is ``secret`` may be applied, but not read. An empty proposal is a remark, but for one
    with a ``place``: how far a job has looked that found nothing to do. ``thread`` is one that
    it makes or extends: its id, a hash of its members, and those that join an existing one.
    """

    why: str
    rule: str
    ends: tuple[str, ...] = ()
    successor: Draft | None = None
    parents: tuple[str, ...] = ()
    links: tuple[Link, ...] = ()
    statuses: tuple[tuple[str, Status], ...] = ()
    actions: tuple[Action[Any], ...] = ()
    renews: bool = False
    seen: Mapping[str, int] = MappingProxyType({})
    about: tuple[str, ...] = ()
    secret: bool = False
    remark: str = ""
    place: int | None = None
    read: Mapping[str, Item] = MappingProxyType({})
    thread: tuple[str, ...] = ()

    @property
    def text(self) -> str | None:
        """The successor's text; None where the reader may not see it."""
        return None if self.secret or self.successor is None else self.successor.text

    @property
    def action_texts(self) -> tuple[str, ...]:
        """The actions as text; empty where the reader may not see them."""
        return () if self.secret else tuple(deed.text for deed in self.actions)

    @property
    def is_remark(self) -> bool:
        """Whether it changes nothing and only reports something."""
        return not (self.ends or self.successor or self.links or self.statuses or self.actions)

    @property
    def leaving(self) -> tuple[str, ...]:
        """The memories that an ordinary recall will no longer return."""
        judged = (item for item, status in self.statuses if status != "active")
        return tuple(dict.fromkeys((*self.ends, *judged)))

    @property
    def lineage(self) -> tuple[str, ...]:
        """The ids that the successor derives from."""
        return self.parents or self.ends


class Job(Protocol):
    """A kind of maintenance: a frozen value with its parameters.

    ``plan`` reads and proposes; it never writes, and the same memory gives the same
    proposals. A job that judges memories by age, so that a wrong clock does harm, has an
    attribute ``by_age``.
    """

    @property
    def name(self) -> str: ...

    def plan(self, work: JobContext) -> Iterator[Proposal]: ...


def is_made_by(item: Item, job: str) -> bool:
    """Whether a job made a memory.

    Any writer can put a job's name into metadata, but only maintenance writes derived
    memories.
    """
    return item.source_class == DERIVED_SOURCE and item.metadata.get("job") == job


def exemption_reason(item: Item) -> str | None:
    """Return why no job may end a memory; None where one may."""
    if item.pinned:
        return "pinned"
    if item.protected:
        return "protected"
    if item.layer in EXEMPT_LAYERS:
        return f"a {item.layer}"
    return "a verbatim episode" if item.level == "raw" else None


def limit_text(work: JobContext) -> str:
    """Say how many memories may leave recall in this run, as a reason."""
    return f"limit reached: at most {plural(work.limit, 'memory')} may leave recall in one run"


PAGE_SIZE = 1_000
EXCERPT_CHARACTERS = 80  # characters of a memory shown in a proposal


def iter_items(work: JobContext, **narrower: Any) -> Iterator[Item]:
    """Yield the memories a run is about, newest first, page by page.

    ``narrower`` are further filters, each applied where the run leaves it open.
    """
    open_ = {name: value for name, value in narrower.items() if not getattr(work.filters, name)}
    scope = Scope(replace(work.filters, **open_), work.now)
    last: str | None = None
    while page := work.store.items.browse(scope, limit=PAGE_SIZE, after=last):
        yield from page
        last = page[-1].id


def iter_current(work: JobContext, **narrower: Any) -> Iterator[Item]:
    """Yield as `iter_items` does, without what a newer memory outdates: nothing may quote it."""
    for page in batches(iter_items(work, **narrower), PAGE_SIZE):
        yield from (one for one in mark_outdated(page, work.store) if one.status == "active")


def visible_items(ids: Iterable[str], levels: tuple[str, ...], work: JobContext) -> dict[str, Item]:
    """Return those of the memories that a job may see."""
    scope = Scope(replace(work.filters, levels=levels), work.now)
    pages = batches(sorted(ids), PAGE_SIZE)
    return {item.id: item for page in pages for item in work.store.search.in_scope(page, scope)}


def is_valid(item: Item, work: JobContext) -> bool:
    """Whether a memory is valid now."""
    begun = item.valid_from is None or item.valid_from <= work.now
    return begun and (item.valid_to is None or item.valid_to > work.now)


def vectors_of(items: Sequence[Item], work: JobContext) -> Matrix | None:
    """Return the memories' vectors; None where one is missing."""
    if work.embedder is None:
        return None
    rows: list[Matrix] = []
    for page in batches((item.id for item in items), PAGE_SIZE):
        found = work.store.vectors.embeddings(page, work.embedder.model)
        if len(found) < len(page):
            return None
        rows.append(np.stack([found[key].vector for key in page]).astype(np.float32))
    return np.concatenate(rows) if rows else None


def similarity_matrix(items: Sequence[Item], vectors: Matrix | None) -> list[list[float]]:
    """Return pairwise similarity: by vectors, or by the Jaccard similarity of words."""
    if vectors is not None:
        with ONE_BLAS_THREAD:
            table: list[list[float]] = (vectors @ vectors.T).tolist()
        return table
    words = [word_set(item.text) for item in items]
    return [[len(own & other) / (len(own | other) or 1) for other in words] for own in words]


def days_old(item: Item, work: JobContext) -> float:
    """Days since it was stored; never negative."""
    return max(0.0, (work.now - item.stored_at).total_seconds() / DAY_S)


def days_unused(item: Item, usage: Usage | None, work: JobContext) -> float:
    """Days since it was last recalled or, if never, stored."""
    last = usage.last_at if usage and usage.last_at else item.stored_at
    return max(0.0, (work.now - last).total_seconds() / DAY_S)


def heat_by_id(items: Sequence[Item], work: JobContext) -> dict[str, tuple[float, float]]:
    """Return each item's heat and the days since its last use, by id."""
    warm: dict[str, tuple[float, float]] = {}
    for batch in batches(items, PAGE_SIZE):
        used = work.store.activity.usage([item.id for item in batch], work.now)
        for item in batch:
            usage = used.get(item.id)
            unused = days_unused(item, usage, work)
            seen = usage or Usage()
            uses = UseCounts(seen.in_30_days, seen.in_90_days, seen.recalls)
            warm[item.id] = (heat(uses, unused, item.importance), unused)
    return warm


def batches(values: Iterable[T], size: int) -> Iterator[list[T]]:
    """Yield the values in lists of ``size``, the last one shorter."""
    left = iter(values)
    while batch := list(islice(left, size)):
        yield batch
