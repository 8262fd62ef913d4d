"""Recall, explain and compare answers, with the votes on memories that hooks gave."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import datetime, timedelta
from functools import lru_cache
from pathlib import Path
from threading import Semaphore
from typing import TYPE_CHECKING, Unpack, cast

from bethink.api.session import SessionMethods, cache_key, resolve_reranker
from bethink.config.settings import Settings
from bethink.config.spaces import data_dir
from bethink.core.arguments import check_argument
from bethink.core.atomic_write import atomic_replace
from bethink.core.dataclass import field_types, replace
from bethink.core.json_values import Json, format_moment
from bethink.core.named_tuple import NamedTuple
from bethink.errors import Refused
from bethink.lang.dates import DAY_S
from bethink.model import ELSEWHERE, Filters, Item, Link, Recall
from bethink.ports import LanguageModel, Reranker, is_remote, is_slow
from bethink.retrieval.answer_text import render_text
from bethink.retrieval.context import Boost, Context, Votes
from bethink.retrieval.explain import (
    Change,
    WhyNot,
    excluding_filter,
    explain,
    last_changes,
    next_change,
    restored_limits,
    why_not,
)
from bethink.retrieval.profile import Profile
from bethink.retrieval.query_builder import (
    MAX_K,
    MAX_TOKENS,
    RecallDefaults,
    RecallRequest,
    build_query,
    describe_unmatched,
    encode_cursor,
    join_turns_before,
    make_filters,
    parse_moment_filter,
    resolve_entity_filters,
    validate_filters,
)

if TYPE_CHECKING:
    from bethink.api.options import FilterOptions, RecallOptions


_MAX_AT_ONCE, _MAX_WAIT_S = 2, 1.0
_TURNS = Semaphore(_MAX_AT_ONCE)  # of recalls that only compute
_MAX_CHANGES = 8  # of the limits of a recall, until a memory is in its answer

_SHOWN_CHARS = 200  # of another version of a memory


@contextmanager
def _in_turn(ctx: Context, model: LanguageModel | None = None) -> Iterator[None]:
    """Let few threads at a time run a recall that only computes.

    With eight of them at work each waits for Python's lock over a thousand times, and a
    recall takes twice the CPU time. A step may wait for another recall: after a while it
    begins all the same.
    """
    waits = is_remote(ctx.store) or ctx.reranker is not None or model is not None
    if waits or is_slow(ctx.embedder) or not _TURNS.acquire(timeout=_MAX_WAIT_S):
        yield
        return
    try:
        yield
    finally:
        _TURNS.release()


class _Attempt(NamedTuple):
    """A recall that is tried: what was asked, with which profiles and context."""

    request: RecallRequest
    first: Profile | None
    profile: Profile
    ctx: Context

    def say(self, labels: Sequence[str], answer: Recall) -> list[str]:
        """Say what was changed; of the tokens only as many as were needed."""
        said = list(dict.fromkeys(filter(None, labels)))
        if self.request.max_tokens == MAX_TOKENS:
            said.append(f"with --max-tokens {answer.page.tokens}")
        return said


def _read_once(options: RecallOptions) -> RecallOptions:
    """The options with lists for what can be read only once: they are used several times."""
    read = {name: tuple(value) for name, value in options.items() if isinstance(value, Iterator)}
    return cast("RecallOptions", {**options, **read})


class RecallMethods(SessionMethods):
    """Recalls memories of an open space, explains and compares the answers."""

    def recall(
        self,
        text: str = "",
        *,
        profile: str | Profile | None = None,
        filters: Filters | None = None,
        boost: Boost | None = None,
        reranker: str | Reranker | None = None,
        now: datetime | None = None,
        k: int | None = None,
        max_tokens: int | None = None,
        offset: int = 0,
        cursor: str | None = None,
        as_of: datetime | str | None = None,
        track: bool | None = None,
        most: Mapping[str, int] | None = None,
        episode_k: int | None = None,
        context: Mapping[str, object] | None = None,
        whole: bool = False,
        min_confidence: float | None = None,
        turns_before: str | Iterable[str] | None = None,
        min_relevance: float | None = None,
        own_session: str | None = None,
        deep: bool = False,
        **where: Unpack[FilterOptions],
    ) -> Recall:
        """Return the memories that match the question, best first, each with its evidence.

        ``where`` are filters (``kind="decision"``, ``since="2026-01-01"``); ``most`` limits
        single levels separately from ``k`` (``{"raw": 5}``, also ``episode_k=5``). Without
        ``text``, returns the newest memories that pass the filters. ``reranker`` is a function
        or a name, "none" included; by default the configured one.
        ``context`` is the situation (``{"hour": 9, "weekday": "monday", "topic": "auth"}``).
        ``deep`` is Memind's second pass (docs/deep.md). A hit shows the best passage of a long
        memory, with ``whole`` all of it. An answer that is less sure than ``min_confidence``
        is empty, and hits below ``min_relevance`` are left out; by default the profile
        decides. ``k`` and ``max_tokens`` are ceilings. With ``turns_before``, the turns of a
        chat before the question, a short reply ("and the second one?") is searched together
        with them. ``own_session`` is the session you are in, which "our last session" is not.

        >>> with Memory.open(":memory:") as memory:
        ...     _ = memory.remember("Tests run with make test")
        ...     memory.recall("who wrote Middlemarch?").status
        'nothing_matched'
        """
        first, chosen = self._choose_profiles(profile, deep=deep)
        request = RecallRequest(
            text, k=k, max_tokens=max_tokens, offset=offset, cursor=cursor, as_of=as_of,
            track=self.session.tracks_use(first or chosen, track), most=most, episode_k=episode_k,
            context=context, whole=whole, min_confidence=min_confidence,
            turns_before=turns_before, min_relevance=min_relevance, own_session=own_session,
        )  # fmt: skip
        ctx = self._build_context(request, chosen, filters, where, now)
        ctx = replace(ctx, boost=boost, reranker=self._choose_reranker(reranker))
        answer = self._recall_cached(first, chosen, ctx, now_given=now is not None)
        if not answer.hits and (answer.query.filters.narrows or answer.query.as_of):
            unmatched = describe_unmatched(answer.query, self.store)
            answer = replace(answer, warnings=(*answer.warnings, *unmatched))
        answer = self._mark_conflicts(answer)
        if not answer.page.has_more:
            return answer
        cursor = encode_cursor(answer.query, [hit.item.id for hit in answer.hits])
        return replace(answer, page=answer.page._replace(cursor=cursor))

    def _mark_conflicts(self, answer: Recall) -> Recall:
        """Show with hits that were changed in two places what the other one says."""
        if answer.query.as_of is not None or not answer.hits or not self.store.has_conflicts():
            return answer
        found = self.store.sync.conflicts([hit.item.id for hit in answer.hits])
        hits = list(answer.hits)
        for place, hit in enumerate(hits):
            for kind, device, at, rev in found.get(hit.item.id, ())[-1:]:
                rows = self.store.items.history(hit.item.id)
                safe = (one for one in rows if one.rev == rev and not one.flags)
                text = next((one.text[:_SHOWN_CHARS] for one in safe), "")
                told = " ".join(f"{kind} on {device}, {format_moment(at)} {text}".split())
                hits[place] = hit.with_evidence("sync", "seen", 0.0, ELSEWHERE, via=told)
        return replace(answer, hits=tuple(hits)) if found else answer

    def recall_text(self, text: str = "", **options: Unpack[RecallOptions]) -> str:
        """Return the answer of `recall` as text for a model, in the sections of the profile."""
        profile = self.profile(options.get("profile"))
        given: RecallOptions = {**options, "profile": profile}
        return render_text(self.recall(text, **given), profile.text)

    def explain(self, text: str, item_id: str, **options: Unpack[RecallOptions]) -> str:
        """Explain the arithmetic of one memory's score, or why it was not returned."""
        requested_id, options = self.session.get(item_id).id, _read_once(options)
        untracked: RecallOptions = {**options, "track": False}
        for hit in self.recall(text, **untracked).hits:
            if hit.item.id == requested_id:
                return explain(hit)
        missing = self.why_not(item_id, text, **options)
        return f"{missing.stage}: {missing.reason}"

    def why_not(self, item_id: str, text: str, **options: Unpack[RecallOptions]) -> WhyNot:
        """Return at which step a memory was dropped from the answer, and by how much."""
        item = self.session.get(item_id)
        given: Json = {**_read_once(options), "track": False}
        first, chosen = self._choose_profiles(
            given.pop("profile", None), deep=given.pop("deep", False)
        )
        for name, value in given.items():
            if name in RecallMethods.recall.__annotations__:
                check_argument(RecallMethods.recall, name, value)
        filters, now, boost, reranker = (
            given.pop(name, None) for name in ("filters", "now", "boost", "reranker")
        )
        limits = {name: given.pop(name) for name in field_types(RecallRequest) if name in given}
        request = RecallRequest(text, **limits)
        ctx = self._build_context(request, chosen, filters, given, now)
        ctx = replace(ctx, boost=boost, reranker=self._choose_reranker(reranker))
        item = self.store.items.get([item.id], as_of=ctx.query.as_of).get(item.id, item)
        attempt = _Attempt(request, first, chosen, ctx)
        found = why_not(item, self._run_attempt(attempt), chosen.channels, ctx)
        if found.returned:
            return found
        return replace(found, remedy=self._find_remedy(item, attempt))

    def _find_remedy(self, item: Item, attempt: _Attempt) -> str:
        """Return changes of the recall that bring a memory in; each is tried before it is named."""
        labels, left = self._try_changes(item, attempt)
        if left is None:
            return f"ask again {', '.join(labels)}" if labels else ""
        if item.live_to is None or left.ctx.query.as_of is not None:
            return f"bethink show {item.id}"
        said = ", ".join(dict.fromkeys([*labels, *self._try_restored(item, left)]))
        restore = f"bethink restore {item.id}"
        return f"{restore}, then ask again {said}" if said else restore

    def _try_changes(self, item: Item, attempt: _Attempt) -> tuple[list[str], _Attempt | None]:
        """Return the changes that bring a memory in, and the recall to go on from if none does."""
        labels, attempt = self._without_filters(item, attempt)
        for _ in range(_MAX_CHANGES):
            answer = self._run_attempt(attempt)
            found = why_not(item, answer, (), attempt.ctx)
            if found.returned:
                return attempt.say(labels, answer), None
            change = next_change(found, answer)
            if change is None:
                break
            labels.append(change.label)
            attempt = self._change(attempt, change)
        if found.stage != "filters":
            for change in last_changes(item, answer):
                changed = self._change(attempt, change)
                answer = self._run_attempt(changed)
                if any(hit.item.id == item.id for hit in answer.hits):
                    return changed.say([*labels, change.label], answer), None
        return [label for label in labels if label], attempt

    def _try_restored(self, item: Item, attempt: _Attempt) -> list[str]:
        """Return the changes that an ended memory needs once it is restored.

        Its filters are judged as for a restored one. The rest is tried at the moment before it
        ended; the limits are those of now, which has other memories.
        """
        restored = item._replace(live_to=None, ended_by=None)
        labels, attempt = self._without_filters(restored, attempt)
        widest = {"k": MAX_K, "max_tokens": MAX_TOKENS, "offset": 0, "cursor": None}
        now = self._run_attempt(self._change(attempt, Change("", widest)))
        moment = (item.live_to or attempt.ctx.query.now) - timedelta(microseconds=1)
        attempt = self._change(attempt, Change("", {"as_of": moment, "cursor": None}))
        last = self.store.items.get([item.id], as_of=moment).get(item.id, restored)
        tried, failed = self._try_changes(last, attempt)
        if failed is not None:
            return labels
        return [*labels, *restored_limits(last, tried, self._run_attempt(attempt), now)]

    def _without_filters(self, item: Item, attempt: _Attempt) -> tuple[list[str], _Attempt]:
        """Remove the filters against a memory, which needs no recall; return what was changed."""
        labels: list[str] = []
        while change := excluding_filter(item, attempt.ctx.query):
            labels.append(change.label)
            attempt = self._change(attempt, change)
        return labels, attempt

    def _change(self, attempt: _Attempt, change: Change) -> _Attempt:
        before = attempt.ctx
        request = replace(attempt.request, **change.options)
        filters = change.filters or before.query.filters
        ctx = self._build_context(request, attempt.profile, filters, {}, before.query.now)
        ctx = replace(ctx, boost=before.boost, reranker=before.reranker)
        return attempt._replace(request=request, ctx=ctx)

    def _run_attempt(self, attempt: _Attempt) -> Recall:
        return self._run_recall(attempt.first, attempt.profile, attempt.ctx)

    def compare(
        self, text: str, profiles: Sequence[str | Profile], **options: Unpack[RecallOptions]
    ) -> dict[str, Recall]:
        """Answer the same question with several profiles; no use is recorded."""
        answers: dict[str, Recall] = {}
        options = _read_once(options)
        for profile in profiles:
            asked: RecallOptions = {**options, "profile": profile, "track": False}
            answer = self.recall(text, **asked)
            answers[answer.profile] = answer
        return answers

    def _choose_profiles(
        self, requested: str | Profile | None, *, deep: bool
    ) -> tuple[Profile | None, Profile]:
        """Return the profile of the first pass (None if there is only one) and of the last."""
        profile = self.profile(requested)
        if not deep and profile.deep is None:
            return None, profile
        # start-up time: most recalls are simple
        from bethink.retrieval.deep.engine import deep_profiles

        return deep_profiles(profile, self.profile)

    def _run_recall(self, first: Profile | None, profile: Profile, ctx: Context) -> Recall:
        if first is None:
            # start-up time: most commands recall nothing
            from bethink.retrieval.engine import recall

            with _in_turn(ctx):
                return recall(profile, ctx)
        # start-up time: most recalls are simple
        from bethink.retrieval.deep.engine import recall as recall_deep

        with _in_turn(ctx, self.llm):
            return recall_deep(first, profile, ctx, self.llm)

    def _recall_cached(
        self, first: Profile | None, profile: Profile, ctx: Context, *, now_given: bool
    ) -> Recall:
        """Recall through the cache, if there is one.

        A deep recall is not cached: a language model may have taken part in it.
        """
        if self.session.cache is None or first is not None:
            return self._run_recall(first, profile, ctx)
        key, now = cache_key(profile, ctx, now_given=now_given), self.now
        cached = self.session.cache.find(key, now) if key else None
        if cached is not None:
            return cached
        answer = self._run_recall(None, profile, ctx)
        if key:
            self.session.cache.store(key, answer, now)
        return answer

    def _choose_reranker(self, requested: str | Reranker | None) -> Reranker | None:
        return (
            self.reranker
            if requested is None
            else resolve_reranker(requested, self.llm, self.store)
        )

    def _build_context(
        self,
        request: RecallRequest,
        profile: Profile,
        filters: Filters | None,
        where: Mapping[str, object],
        now: datetime | None,
    ) -> Context:
        moment = self.now if now is None else parse_moment_filter("now", now, self.now)
        if filters is None:
            ceiling = {"max_classification": self.settings.max_classification}
            filters = make_filters({**ceiling, **where}, moment)
        elif where:
            raise Refused("give filters either as one object or as keywords, not both")
        else:
            filters = validate_filters(filters, moment)
        filters = resolve_entity_filters(filters, self.store)
        # What the profile includes besides, unless the caller says whether to.
        if profile.untopiced and filters.topics and "include_untopiced" not in where:
            filters = replace(filters, include_untopiced=True)
        if profile.shared and filters.users and "include_shared" not in where:
            filters = replace(filters, include_shared=True)
        defaults = RecallDefaults(
            self.settings.explicit("k") or profile.budget.k,
            self.settings.explicit("max_tokens") or profile.budget.max_tokens,
            profile.budget.most,
            profile.budget.wordless,
        )
        request = join_turns_before(request, self.store)
        query = build_query(request, filters, defaults, now=moment)
        settings = self.settings
        return Context(
            query, self.store, self.embedder, notes=self.notes, project=settings.project,
            votes=read_votes(settings, self.store.space),
            judge=self._judge_hits if self.embedder and self.session.judging else None,
        )  # fmt: skip

    def _judge_hits(self, pairs: Sequence[tuple[Item, Item]]) -> list[Link]:
        from bethink.ingest.updates import judge_hits  # start-up time: recall does without

        return judge_hits(pairs, self.session.write_context())


_KEPT_S = 365 * DAY_S  # six half-lives


def read_votes(settings: Settings, space: str) -> Votes:
    """Return the votes on the memories of a space; none where the setting is off."""
    with suppress(OSError):
        if settings.feedback:
            path = _path(settings, space)
            return _read(path, path.stat().st_mtime_ns)
    return {}


def keep_votes(
    settings: Settings, space: str, session: str, given: Mapping[str, float], now: float
) -> None:
    """Add the votes of a session, or change them; votes of long ago are dropped."""
    path = _path(settings, space)
    kept = {
        item: {one: vote for one, vote in known.items() if now - vote[1] < _KEPT_S}
        for item, known in _read.__wrapped__(path, 0).items()
    }
    for item, value in given.items():
        votes = kept.setdefault(item, {})
        votes[session] = (value, votes.get(session, (value, now))[1])
    atomic_replace(path, json.dumps(kept).encode())


def _path(settings: Settings, space: str) -> Path:
    return data_dir(settings) / space / "votes.json"


@lru_cache(maxsize=8)
def _read(path: Path, _version: int) -> Votes:
    # A file that is missing or damaged holds no vote.
    with suppress(OSError, ValueError, TypeError, AttributeError, RecursionError):
        return {
            item: {one: (float(value), float(at)) for one, (value, at) in known.items()}
            for item, known in json.loads(path.read_bytes()).items()
        }
    return {}
