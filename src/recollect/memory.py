"""The facade: one object to remember with and to recall from.

It is also the composition root: here a store, an embedder and a profile meet.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from recollect import engine
from recollect.asking import Ask, build_query, make_filters, next_cursor, with_entity_ids
from recollect.context import Context
from recollect.errors import ModelError, NotFound, Refused
from recollect.explain import WhyNot, explain, why_not
from recollect.ids import make_id
from recollect.ingest.drafting import make_draft
from recollect.model import Draft, Entity, Filters, Item, Recall, Remembered
from recollect.models import open_embedder
from recollect.ports import (
    Clock,
    Embedder,
    Event,
    Finding,
    Progress,
    Receipt,
    Reranker,
    Scope,
    Store,
)
from recollect.profile import Profile, load_profile, profile_names
from recollect.settings import Settings, load_settings
from recollect.spaces import resolve_space
from recollect.store.sqlite import SqliteStore
from recollect.text import spoken

if TYPE_CHECKING:
    from recollect.ingest.writing import WriteContext

BATCH = 500
_LIMITS = ("k", "max_tokens", "offset", "cursor", "as_of")


def utc_now() -> datetime:
    """The wall clock, in UTC."""
    return datetime.now(UTC)


@dataclass(frozen=True, slots=True)
class Forgotten:
    """What a forget did or, with ``preview``, would do."""

    items: tuple[Item, ...]
    kept: tuple[tuple[str, str], ...] = ()
    preview: bool = False
    receipt: Receipt | None = None


class Memory:
    """One space's memory: remember, recall, explain, correct, forget.

    Sync, typed and safe to share between threads. In async code call it through
    ``asyncio.to_thread``.

    >>> with Memory.open(":memory:") as memory:
    ...     _ = memory.remember("The deploy key lives in vault B")
    ...     answer = memory.recall("where is the deploy key?")
    ...     print(answer.hits[0].item.text)
    The deploy key lives in vault B
    """

    def __init__(
        self,
        store: Store,
        *,
        embedder: Embedder | None = None,
        settings: Settings | None = None,
        clock: Clock = utc_now,
        profile_folders: Sequence[Path] = (),
    ) -> None:
        """Put together from parts; ``Memory.open`` is the usual way."""
        self.store = store
        self.embedder = embedder
        self.settings = settings or Settings()
        self._clock = clock
        self._folders = tuple(profile_folders)

    @classmethod
    def open(
        cls,
        space: str | None = None,
        *,
        path: Path | str | None = None,
        embedder: str | Embedder | None = None,
        settings: Settings | None = None,
        clock: Clock = utc_now,
    ) -> Memory:
        """The memory of a space, made if it is not there yet.

        Without a name it is the project's own, found from the working directory.
        ``":memory:"`` lives only as long as the object; ``path`` names a file.
        """
        settings = settings or load_settings()
        if space == ":memory:":
            store = SqliteStore.open(None, space="memory")
        elif path is not None:
            store = SqliteStore.open(Path(path), space=space or Path(path).stem)
        else:
            ref = resolve_space(space, settings)
            store = SqliteStore.open(ref.path, space=ref.name)
        chosen = embedder if embedder is not None else settings.embedder
        model = open_embedder(chosen) if isinstance(chosen, str) else chosen
        folders = settings.profile_folders()
        return cls(store, embedder=model, settings=settings, clock=clock, profile_folders=folders)

    def close(self) -> None:
        """Lets go of the store. What was acknowledged is already safe."""
        self.store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    # Writing

    def remember(self, text: str, **about: Any) -> Remembered:
        """Stores one memory. ``about`` are the fields of ``Draft``.

        >>> with Memory.open(":memory:") as memory:
        ...     first = memory.remember("We chose PostgreSQL", kind="decision", topic="db")
        ...     again = memory.remember("We chose PostgreSQL.")
        ...     print(first.status, again.status, again.id == first.id)
        stored duplicate True
        """
        return self.remember_many([make_draft({"text": text, **about})])[0]

    def remember_many(
        self, drafts: Iterable[Draft | Mapping[str, Any] | str], *, progress: Progress | None = None
    ) -> list[Remembered]:
        """Stores many, 500 to a transaction. A bad one is refused before its batch
        is stored; what came before stays."""
        from recollect.ingest.remember import remember  # start-up time: recall does without

        ready = [make_draft(draft) for draft in drafts]
        results: list[Remembered] = []
        for start in range(0, len(ready), BATCH):
            results += remember(ready[start : start + BATCH], self._writing())
            if progress is not None:
                progress(len(results), len(ready))
        return results

    def remember_each(self, drafts: Iterable[Draft]) -> list[Remembered | Refused]:
        """Stores many, each for itself: a refusal stands where a draft was refused."""
        from recollect.ingest.each import remember_each  # start-up time: recall does without

        ready = list(drafts)
        batches = (ready[start : start + BATCH] for start in range(0, len(ready), BATCH))
        return [answer for batch in batches for answer in remember_each(batch, self._writing())]

    def update(self, item_id: str, **changes: Any) -> Item:
        """A new revision of a memory; the id stays, the old text stays in history."""
        from recollect.ingest.revise import revise  # start-up time: recall does without

        item = self.get(item_id)
        if item.live_to is not None:
            raise Refused(f"{item.id} was forgotten", remedy=f"recollect restore {item.id}")
        return revise(item, changes, self._writing())

    def forget(
        self, *ids: str, erase: bool = False, preview: bool = False, reason: str = "forgotten"
    ) -> Forgotten:
        """Takes memories out of recall; ``erase`` leaves no byte of them behind.

        Pinned and protected ones are only let go by an erase, which is always meant.
        """
        items = [self.get(item_id) for item_id in ids]
        kept = tuple(
            (item.id, "pinned" if item.pinned else "protected")
            for item in items
            if not erase and (item.pinned or item.protected)
        )
        going = tuple(item for item in items if item.id not in dict(kept))
        if preview or not going:
            return Forgotten(going, kept, preview=preview)
        names = [item.id for item in going]
        now, actor = self._clock(), self.settings.actor
        if erase:
            return Forgotten(going, kept, receipt=self.store.erase(names, actor=actor, now=now))
        self.store.end(names, how=reason, actor=actor, now=now)
        return Forgotten(going, kept)

    def restore(self, *ids: str) -> list[str]:
        """Brings forgotten memories back; erased ones are gone for good."""
        return self.store.restore(list(ids), actor=self.settings.actor, now=self._clock())

    # Reading

    def recall(
        self,
        text: str,
        *,
        profile: str | Profile | None = None,
        filters: Filters | None = None,
        boost: Callable[[Item], float] | None = None,
        reranker: Reranker | None = None,
        now: datetime | None = None,
        k: int | None = None,
        max_tokens: int | None = None,
        offset: int = 0,
        cursor: str | None = None,
        as_of: datetime | str | None = None,
        track: bool | None = None,
        **where: Any,
    ) -> Recall:
        """What the question calls to mind, best first, each with its reasons.

        ``where`` are filters (``kind="decision"``, ``since="2026-01-01"``).

        >>> with Memory.open(":memory:") as memory:
        ...     _ = memory.remember("Tests run with make test")
        ...     memory.recall("how do I bake bread?").status
        'below_gate'
        """
        asked = Ask(
            text,
            k=k,
            max_tokens=max_tokens,
            offset=offset,
            cursor=cursor,
            as_of=as_of,
            track=self.settings.track if track is None else track,
        )
        chosen = self.profile(profile)
        ctx = self._asking(asked, chosen, filters, where, now)
        ctx = replace(ctx, boost=boost, reranker=reranker)
        answer = engine.recall(chosen, ctx)
        if not answer.page.has_more:
            return answer
        cursor = next_cursor(answer.query, [hit.item.id for hit in answer.hits])
        return replace(answer, page=answer.page._replace(cursor=cursor))

    def explain(self, text: str, item_id: str, **options: Any) -> str:
        """The arithmetic of one memory's score, or why it was not returned."""
        wanted = self.get(item_id).id
        answer = self.recall(text, track=False, **options)
        for hit in answer.hits:
            if hit.item.id == wanted:
                return explain(hit)
        missing = self.why_not(item_id, text, **options)
        return f"{missing.stage}: {missing.reason}"

    def why_not(
        self, item_id: str, text: str, *, profile: str | Profile | None = None, **options: Any
    ) -> WhyNot:
        """At which step a memory fell out of the answer, and by how much."""
        item = self.get(item_id)
        chosen = self.profile(profile)
        named = {key: options.pop(key, None) for key in ("filters", "now", "boost", "reranker")}
        ask = Ask(text, **{key: options.pop(key) for key in _LIMITS if key in options})
        ctx = self._asking(ask, chosen, named["filters"], options, named["now"])
        ctx = replace(ctx, boost=named["boost"], reranker=named["reranker"])
        item = self.store.get([item.id], as_of=ctx.query.as_of).get(item.id, item)
        return why_not(item, engine.recall(chosen, ctx), chosen.channels, ctx)

    def compare(
        self, text: str, profiles: Sequence[str | Profile], **options: Any
    ) -> dict[str, Recall]:
        """The same question by several profiles; nothing is marked as used."""
        answers = [self.recall(text, profile=name, track=False, **options) for name in profiles]
        return {answer.profile: answer for answer in answers}

    def get(self, item_id: str) -> Item:
        """One memory by its id, or by a part of the id that only it has."""
        items = self.store.get([item_id])
        if item_id in items:
            return items[item_id]
        near = self.store.resolve(item_id) if len(item_id) >= 4 else []
        if len(near) == 1:
            return self.store.get(near)[near[0]]
        if near:
            raise NotFound(f"{item_id!r} could be any of {', '.join(near)}")
        raise NotFound(
            f"there is no memory {item_id!r}", remedy="recollect list shows what is there"
        )

    def browse(self, *, limit: int = 50, after: str | None = None, **where: Any) -> list[Item]:
        """What is stored, newest first, a page at a time."""
        now = self._clock()
        ceiling = {"max_classification": self.settings.max_classification}
        filters = make_filters({**ceiling, **where}, now)
        return self.store.browse(Scope(filters, now), limit=limit, after=after)

    def entities(self, *, prefix: str = "", limit: int = 100, offset: int = 0) -> list[Entity]:
        """Whom and what the memories speak of, most mentioned first."""
        return self.store.entities(prefix=prefix, limit=limit, offset=offset)

    def timeline(self, around: str, *, window: int = 5) -> list[Item]:
        """What was stored or said just before and after a memory, oldest first."""
        item = self.get(around)
        ceiling = self.settings.max_classification
        filters = Filters(include_superseded=True, max_classification=ceiling)
        scope = Scope(filters, self._clock())
        return self.store.around(item.id, window=window, scope=scope)

    def history(self, item_id: str) -> list[Item]:
        """All revisions of a memory, oldest first."""
        return self.store.history(self.get(item_id).id)

    def events(self, *, after: int = 0, limit: int = 100) -> list[Event]:
        """The journal: who did what to which memory."""
        return self.store.events(after=after, limit=limit)

    # Looking after

    def export(self) -> Iterator[dict[str, Any]]:
        """Everything, losslessly, as JSON-ready records."""
        self.store.log(
            "exported", item=None, actor=self.settings.actor, detail="all", now=self._clock()
        )
        return self.store.dump()

    def import_(self, records: Iterable[Mapping[str, Any]]) -> int:
        """Takes an export in, all or nothing; known memories are left as they are."""
        count = self.store.load(records, actor=self.settings.actor, now=self._clock())
        # Without a working model it is found by its words, by meaning after a reindex.
        with suppress(ModelError):
            self.reindex()
        return count

    def reindex(self, *, progress: Progress | None = None) -> int:
        """Makes the vectors that are missing. Can be stopped and taken up again."""
        if self.embedder is None:
            return 0
        done = 0
        while waiting := self.store.unembedded(self.embedder.model, BATCH):
            made = self.embedder.embed([spoken(item) for item in waiting])
            self.store.set_embeddings(
                self.embedder.model,
                {item.id: vector for item, vector in zip(waiting, made, strict=True)},
            )
            done += len(waiting)
            if progress is not None:
                progress(done, 0)
        return done

    def doctor(self, *, repair: bool = False) -> list[Finding]:
        """Looks at everything that could be wrong; mends what is derived."""
        return self.store.check(repair=repair)

    def stats(self) -> dict[str, Any]:
        """Counts and sizes, and what is in use."""
        embedder = self.embedder.model if self.embedder else "none"
        return {**self.store.stats(), "embedder": embedder}

    def profile(self, wanted: str | Profile | None = None) -> Profile:
        """A profile by name; the configured one where none is named."""
        if isinstance(wanted, Profile):
            return wanted
        return load_profile(wanted or self.settings.profile, self._folders)

    def profiles(self) -> dict[str, Path | None]:
        """Profiles that can be named, and the file of each that is the user's own."""
        return profile_names(self._folders)

    def _writing(self) -> WriteContext:
        from recollect.ingest.writing import WriteContext  # start-up time: recall does without

        return WriteContext(self.store, self.embedder, self._clock(), self.settings.actor, make_id)

    def _asking(
        self,
        ask: Ask,
        profile: Profile,
        filters: Filters | None,
        where: Mapping[str, Any],
        now: datetime | None,
    ) -> Context:
        moment = now or self._clock()
        if filters is None:
            ceiling = {"max_classification": self.settings.max_classification}
            filters = make_filters({**ceiling, **where}, moment)
        elif where:
            raise Refused("give filters either as one object or as keywords, not both")
        filters = with_entity_ids(filters, self.store)
        k = self.settings.given("k") or profile.budget.k
        tokens = self.settings.given("max_tokens") or profile.budget.max_tokens
        query = build_query(ask, filters, now=moment, k=k, max_tokens=tokens)
        return Context(query, self.store, self.embedder)
