"""Asking, and asking why."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from recollect import engine
from recollect.asking import (
    Ask,
    Limits,
    build_query,
    checked,
    make_filters,
    next_cursor,
    with_entity_ids,
)
from recollect.context import Boost, Context
from recollect.errors import Refused
from recollect.explain import WhyNot, explain, why_not
from recollect.facade.deepened import Deepened
from recollect.facade.opened import reranker_of
from recollect.model import Filters, Recall
from recollect.ports import Reranker
from recollect.profile import Profile

_LIMITS = ("k", "max_tokens", "offset", "cursor", "as_of", "most", "episode_k", "context")


class Recalling(Deepened):
    """The asking side of a memory."""

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
        context: Mapping[str, Any] | None = None,
        deep: bool = False,
        **where: Any,
    ) -> Recall:
        """What the question calls to mind, best first, each with its reasons.

        ``where`` are filters (``kind="decision"``, ``since="2026-01-01"``); ``most``
        limits single levels apart from ``k`` (``{"raw": 5}``, for which ``episode_k=5`` is
        another name). Without ``text`` filters alone find the newest they leave.
        ``reranker`` is a function or a name, "none" included; without it the configured
        one reads. ``context`` says what is going on (``{"hour": 9, "weekday": "monday",
        "topic": "auth"}``). With ``deep`` the first answer is judged and, where it is not
        enough, asked on from (docs/deep.md).

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
            most=most,
            episode_k=episode_k,
            context=context,
        )
        first, chosen = self._walks(profile, deep=deep)
        ctx = self._asking(asked, chosen, filters, where, now)
        ctx = replace(ctx, boost=boost, reranker=self._reader(reranker))
        answer = self._answer(first, chosen, ctx, now_given=now is not None)
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
        first, chosen = self._walks(profile, deep=options.pop("deep", False))
        named = {key: options.pop(key, None) for key in ("filters", "now", "boost", "reranker")}
        ask = Ask(text, **{key: options.pop(key) for key in _LIMITS if key in options})
        ctx = self._asking(ask, chosen, named["filters"], options, named["now"])
        ctx = replace(ctx, boost=named["boost"], reranker=self._reader(named["reranker"]))
        item = self.store.get([item.id], as_of=ctx.query.as_of).get(item.id, item)
        return why_not(item, self._walked(first, chosen, ctx), chosen.channels, ctx)

    def compare(
        self, text: str, profiles: Sequence[str | Profile], **options: Any
    ) -> dict[str, Recall]:
        """The same question by several profiles; nothing is marked as used."""
        answers = [self.recall(text, profile=name, track=False, **options) for name in profiles]
        return {answer.profile: answer for answer in answers}

    def _answer(
        self, first: Profile | None, profile: Profile, ctx: Context, *, now_given: bool
    ) -> Recall:
        """What the walk finds or, where answers are kept, found a moment ago. An answer of
        two walks is not kept: a model may have had a say in it."""
        if self._cache is None or first is not None:
            return self._walked(first, profile, ctx)
        from recollect.cache import key_of  # start-up time: most keep none

        key, now = key_of(profile, ctx, now_given=now_given), self._clock()
        kept = self._cache.find(key, now) if key else None
        if kept is not None:
            return kept
        answer = engine.recall(profile, ctx)
        if key:
            self._cache.keep(key, answer, now)
        return answer

    def _reader(self, wanted: str | Reranker | None) -> Reranker | None:
        return self.reranker if wanted is None else reranker_of(wanted, self.llm, self.store)

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
        else:
            filters = checked(filters, moment)
        filters = with_entity_ids(filters, self.store)
        if profile.untopiced and filters.topics:
            filters = replace(filters, include_untopiced=True)
        usual = Limits(
            self.settings.given("k") or profile.budget.k,
            self.settings.given("max_tokens") or profile.budget.max_tokens,
            profile.budget.most,
            profile.budget.wordless,
        )
        query = build_query(ask, filters, usual, now=moment)
        return Context(query, self.store, self.embedder, notes=self.notes)
