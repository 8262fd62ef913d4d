"""What maintenance is made of: a job, what it is given, and what it proposes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple, Protocol

from recollect.ids import make_id
from recollect.ingest.admit import DERIVED
from recollect.ingest.writing import WriteContext
from recollect.model import Draft, Filters, Item, Link, Status
from recollect.ports import Budget, Embedder, LanguageModel, Scope, Store

ACTOR = "maintain"
SHARE = 0.02
KEPT_LAYERS = frozenset({"goal", "caveat"})


@dataclass(frozen=True, slots=True)
class Work:
    """What a job may ask, and within which limits.

    ``filters`` are the part of the memory it is about. ``limit`` is how many memories may
    leave recall in the whole run; a job that proposes more at once proposes in vain.
    ``shown`` is the highest classification whose words a plan may repeat to whoever reads it.
    ``model`` is None where rules have to do, which is the rule.
    """

    store: Store
    embedder: Embedder | None
    now: datetime
    limit: int
    model: LanguageModel | None = None
    budget: Budget = field(default_factory=Budget)
    notes_dir: Path | None = None
    notes_trust: int = 1
    filters: Filters = field(default_factory=lambda: Filters(max_classification=3))
    shown: int = 3
    make_id: Callable[[datetime], str] = make_id

    @property
    def scope(self) -> Scope:
        """What the jobs may look at: live, active, valid now."""
        return Scope(self.filters, self.now)

    def writing(self) -> WriteContext:
        """For the write walk, as maintenance walks it."""
        return WriteContext(self.store, self.embedder, self.now, ACTOR, self.make_id, deriving=True)


class Deed(Protocol):
    """Something to be done besides: may be done twice and comes to the same.

    It changes nothing that cannot be made again from the memories, so it is not undone.
    """

    def __call__(self, work: Work) -> None: ...

    def __str__(self) -> str:
        """What it does, for the preview."""
        ...


class Proposal(NamedTuple):
    """One change, as data. It happens whole or, where something came between, not at all.

    ``ends`` leave recall once ``successor`` can be recalled; ``statuses`` are set and
    ``links`` added. The successor derives from ``parents`` or, without any, from ``ends``.
    ``why`` is for people, ``rule`` says the same without a word of any memory: it goes
    into the journal. ``renews`` says that what ends was made by the same job and is made
    anew: that neither counts against the limit nor is spared for being protected.
    ``seen`` are the revisions the job read: where one is no longer the live one, nothing
    happens. ``about`` are memories whose words it repeats besides. One that is ``secret``
    may be carried out, but not be read. A proposal of nothing is a remark.
    """

    why: str
    rule: str
    ends: tuple[str, ...] = ()
    successor: Draft | None = None
    parents: tuple[str, ...] = ()
    links: tuple[Link, ...] = ()
    statuses: tuple[tuple[str, Status], ...] = ()
    deeds: tuple[Deed, ...] = ()
    renews: bool = False
    seen: Mapping[str, int] = MappingProxyType({})
    about: tuple[str, ...] = ()
    secret: bool = False

    @property
    def text(self) -> str | None:
        """What its successor says, for whoever may read it."""
        return None if self.secret or self.successor is None else self.successor.text

    @property
    def doings(self) -> tuple[str, ...]:
        """What is done besides, in words, for whoever may read them."""
        return () if self.secret else tuple(str(deed) for deed in self.deeds)

    @property
    def is_remark(self) -> bool:
        """Whether it only says something."""
        return not (self.ends or self.successor or self.links or self.statuses or self.deeds)

    @property
    def leaving(self) -> tuple[str, ...]:
        """The memories that an ordinary recall will not return any more."""
        judged = (item for item, status in self.statuses if status != "active")
        return tuple(dict.fromkeys((*self.ends, *judged)))

    @property
    def lineage(self) -> tuple[str, ...]:
        """What the successor derives from."""
        return self.parents or self.ends


class Job(Protocol):
    """A kind of maintenance: a frozen value with its numbers. ``plan`` reads and
    proposes; it never writes, and the same memory gives the same proposals."""

    @property
    def name(self) -> str: ...

    @property
    def ends_raw(self) -> bool:
        """Whether verbatim episodes may leave recall, which they else never do."""
        ...

    @property
    def by_age(self) -> bool:
        """Whether it judges memories by their age, so that a wrong clock does harm."""
        ...

    def plan(self, work: Work) -> Iterator[Proposal]: ...


def is_made_by(item: Item, job: str) -> bool:
    """Whether a job made a memory. Anybody may write the name of a job into metadata, but
    only maintenance makes what is derived."""
    return item.source_class == DERIVED and item.metadata.get("job") == job


def spared(item: Item, job: Job) -> str | None:
    """Why a job must leave a memory where it is, if it must."""
    if item.pinned:
        return "pinned"
    if item.protected:
        return "protected"
    if item.layer in KEPT_LAYERS:
        return f"a {item.layer}"
    if item.level == "raw" and not job.ends_raw:
        return "a verbatim episode"
    return None
