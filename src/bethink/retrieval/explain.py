"""Explanations: why a memory was returned, and why another was not.

Match reasons are fixed words and fields that programs can rely on. All is derived from
the evidence and the item, whichever profile answered.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from bethink.core.characters import estimate_tokens, strip_hidden
from bethink.core.dataclass import dataclass, replace
from bethink.core.json_values import Json
from bethink.core.named_tuple import NamedTuple
from bethink.core.registry import pydantic_schema
from bethink.core.words import fold
from bethink.model import Candidate, Evidence, Filters, Item, Query, Recall, Step, replay
from bethink.ports import Scope
from bethink.retrieval.context import Context, Retriever
from bethink.retrieval.heat import band_of
from bethink.retrieval.momentum import heat_of_items
from bethink.retrieval.query_builder import MAX_K, MAX_TOKENS, PLURAL_TO_SINGULAR
from bethink.retrieval.scope import rejection_reason

ACTIVE_MOMENTUM = 5.0
HIGH_IMPORTANCE = 0.8
_COMPOSITE_PREFIX = "composite."
_ENTITY_NAME_EVIDENCE = "entity_name"


def match_reasons(cand: Candidate, answer: Recall) -> tuple[str, ...]:
    """How a memory was found, then what else supports it."""
    return (*_retrieval_reasons(cand, answer), *item_reasons(cand))


def _retrieval_reasons(cand: Candidate, answer: Recall) -> tuple[str, ...]:
    query, ways = answer.query, dict(answer.ways)
    found = {ways.get(reason.by.removeprefix("channel.")) for reason in _retriever_evidence(cand)}
    by_words = "words" in found
    # A text with the question word for word matches it as a substring, too.
    question = fold(query.text)
    in_pieces = "pieces" in found or (
        by_words and question != "" and question in fold(cand.item.text)
    )
    by_name = (
        "names" in found or bool(query.filters.entities) or bool(cand.reason(_ENTITY_NAME_EVIDENCE))
    )
    reasons = []
    if by_words:
        reasons.append("content_match_dual" if in_pieces else "content_match_fts")
    if in_pieces and not by_name:
        reasons.append("content_substring")
    if by_name:
        reasons.append("entity_name_match")
    if "meaning" in found:
        reasons.append("meaning_match")
    if "time" in found:
        reasons.append("time_match")
    return tuple(reasons)


def item_reasons(cand: Candidate) -> tuple[str, ...]:
    """Reasons that do not depend on the question: heat, momentum, importance, a caveat."""
    item = cand.item
    reasons = []
    heat, momentum = _reported_evidence(cand, "heat"), _reported_evidence(cand, "momentum")
    band = band_of(heat.value) if heat else ""
    if band in ("hot", "warm"):
        reasons.append(f"heat:{band}")
    if momentum is not None and momentum.value >= ACTIVE_MOMENTUM:
        reasons.append("entity_active")
    if item.pinned:
        reasons.append("pinned")
    elif item.importance >= HIGH_IMPORTANCE:
        reasons.append("high_importance")
    if item.protected and item.layer == "caveat":
        reasons.append("caveat_protected")
    return tuple(reasons)


def named_fields(cand: Candidate, answer: Recall) -> dict[str, object]:
    """The numbers behind a rank, by name; None for what the profile did not compute."""
    words = _best_rank_evidence(cand, "words", answer)
    meaning = _best_rank_evidence(cand, "meaning", answer)
    decay = cand.reason("decay")
    heat, momentum = _reported_evidence(cand, "heat"), _reported_evidence(cand, "momentum")
    return {
        "bm25_rank": words.rank if words else None,
        "vector_rank": meaning.rank if meaning else None,
        "cosine": meaning.value if meaning else None,
        "recency": decay.value if decay else None,
        "heat": heat.value if heat else None,
        "band": band_of(heat.value) if heat else None,
        "momentum": momentum.value if momentum else None,
        "breakdown": _composite_breakdown(cand),
    }


def _composite_breakdown(cand: Candidate) -> dict[str, float] | None:
    """The contribution of each part of a composite score.

    Relevance is the score up to and including its factor; the others are what they added.
    """
    parts: dict[str, float] = {}
    for number, reason in enumerate(cand.evidence, 1):
        if reason.by.startswith(_COMPOSITE_PREFIX):
            part = reason.by.removeprefix(_COMPOSITE_PREFIX)
            scaled = reason.op == "times"
            parts[part] = replay(cand.evidence[:number]) if scaled else reason.value
    return parts or None


def _retriever_evidence(cand: Candidate) -> list[Evidence]:
    return [reason for reason in cand.evidence if reason.by.startswith("channel.")]


def _best_rank_evidence(cand: Candidate, way: str, answer: Recall) -> Evidence | None:
    """The best-ranked evidence of the retrievers that work this way."""
    ways = dict(answer.ways)
    same_kind = [
        r for r in _retriever_evidence(cand) if ways.get(r.by.removeprefix("channel.")) == way
    ]
    return min(same_kind, key=lambda reason: reason.rank or 0, default=None)


def _reported_evidence(cand: Candidate, by: str) -> Evidence | None:
    return next((r for r in cand.evidence if r.by == by and r.op == "seen"), None)


_OP_SIGNS = {"add": "+", "times": "×", "set": "=", "seen": "·"}


def running_scores(cand: Candidate) -> list[tuple[Evidence, float]]:
    """Each piece of evidence with the running score after it."""
    score = 0.0
    lines = []
    for reason in cand.evidence:
        score = replay((reason,), score)
        lines.append((reason, score))
    return lines


def explain(cand: Candidate) -> str:
    """Explain a score as plain text, one line per piece of evidence."""
    lines = []
    for reason, score in running_scores(cand):
        why = " ".join(part for part in (reason.why, reason.via) if part)
        rank = f" (rank {reason.rank})" if reason.rank and "rank" not in why else ""
        total = "        " if reason.op == "seen" else f"{score:8.4f}"
        sign = _OP_SIGNS[reason.op]
        lines.append(f"{total}  {sign} {reason.value:8.4f}  {reason.by:<20} {why}{rank}".rstrip())
    return "\n".join(lines)


@dataclass(frozen=True, slots=True)
class RetrieverView:
    """How one retriever scores one memory, and the score needed to enter its pool."""

    channel: str
    score: float | None
    needed: float | None
    why: str = ""


@pydantic_schema("bethink.render.wire:why_not_json")
@dataclass(frozen=True, slots=True)
class WhyNot:
    """Where a memory dropped out of an answer, by how much, and how to include it."""

    item: Item
    returned: bool
    stage: str
    reason: str
    score: float | None = None
    needed: float | None = None
    remedy: str = ""
    looks: tuple[RetrieverView, ...] = ()


def why_not(item: Item, answer: Recall, channels: Sequence[Retriever], ctx: Context) -> WhyNot:
    """Trace one memory through the steps of a recall already run."""
    rank = next((n for n, hit in enumerate(answer.hits, 1) if hit.item.id == item.id), 0)
    if rank:
        hit = answer.hits[rank - 1]
        return WhyNot(item, True, "answer", f"it was returned, at rank {rank}", hit.score)
    last = _last_step_with(item, answer)
    outside = rejection_reason(item, ctx.scope) or _band_mismatch(item, ctx)
    if outside and last < 0:  # a profile may reach memories of other topics by links
        return WhyNot(item, False, "filters", outside)
    looks = tuple(_view_by_retriever(channel, item, answer, ctx) for channel in channels)
    if last < 0 and dict(answer.query.most).get(item.level) == 0:
        reason = f"the answer takes none of level {item.level}"
        return WhyNot(item, False, "budget", reason, looks=looks)
    if last < 0:
        return _explain_never_found(item, looks)
    return replace(_explain_dropped(item, answer, last), looks=looks)


def _band_mismatch(item: Item, ctx: Context) -> str | None:
    """The heat-band filter that excludes an item; it depends on use, not on the item alone."""
    bands = ctx.query.filters.bands
    own = heat_of_items([item], ctx)[item.id] if bands else None
    if own is None or own.band in bands:
        return None
    return f"its heat is {own.heat:.1f} ({own.description}), not {' or '.join(bands)}"


def _view_by_retriever(
    channel: Retriever, item: Item, answer: Recall, ctx: Context
) -> RetrieverView:
    """How the retriever would score this memory if it were the only one in scope."""
    step = next((s for s in answer.steps if s.name == f"channel.{channel.name}"), None)
    if step is None or step.status != "ok":
        return RetrieverView(channel.name, None, None, step.note if step else "not run")
    only_item = replace(ctx.query, filters=replace(ctx.query.filters, ids=(item.id,)))
    pool = channel(ctx.for_query(only_item))
    needed = step.pool[-1].score if step.pool else None
    if not pool:
        return RetrieverView(channel.name, None, needed, "no match")
    return RetrieverView(channel.name, pool[0].score, needed, pool[0].evidence[-1].why)


def _is_deciding(step: Step) -> bool:
    """Whether a step decides which memories go on; others only look at a pool."""
    return not step.name.startswith(("deep.", "assemble."))


def _last_step_with(item: Item, answer: Recall) -> int:
    """Index of the last deciding step whose pool held the memory; -1 where none did."""
    steps = [
        number
        for number, step in enumerate(answer.steps)
        if _is_deciding(step) and any(cand.item.id == item.id for cand in step.pool)
    ]
    return steps[-1] if steps else -1


def _explain_never_found(item: Item, looks: tuple[RetrieverView, ...]) -> WhyNot:
    scored = [look for look in looks if look.score is not None]
    if not scored:
        reason = "no retriever matches it to the question"
        return WhyNot(item, False, "channels", reason, looks=looks)
    best = min(scored, key=lambda look: (look.needed or 0.0) - (look.score or 0.0))
    stage = f"channel.{best.channel}"
    reason = "other memories matched better; the retriever returns only its best"
    return WhyNot(item, False, stage, reason, best.score, best.needed, looks=looks)


def _explain_dropped(item: Item, answer: Recall, last: int) -> WhyNot:
    """Explain the drop at the step after the last one that held the memory."""
    cand = next(c for c in answer.steps[last].pool if c.item.id == item.id)
    later = [
        step
        for step in answer.steps[last + 1 :]
        if _is_deciding(step) and not step.name.startswith("channel.") and step.status == "ok"
    ]
    step = later[0] if later else answer.steps[last]
    needed = step.pool[-1].score if step.pool else None
    reason = _drop_reason(step.name, cand, answer)
    if step.name.startswith("expand.") and step.note:
        reason = "not what the question asks for"
    if step.name == "fuse" and step.note:
        reason = "its score is too low"
    if step.name.startswith(_JUDGING_SLOTS) and step.note:
        reason = f"{reason}: {step.note}"  # it may judge by more than the score
    return WhyNot(item, False, step.name, reason, cand.score, needed)


_JUDGING_SLOTS = ("gate.", "expand.", "fuse")
_DROP_REASONS = {
    "gate": "not relevant enough",
    "diversify": "another memory in the answer says the same",
}


def _drop_reason(step: str, cand: Candidate, answer: Recall) -> str:
    if step == "budget":
        return _budget_reason(_place_of(cand.item, answer), answer)
    return _DROP_REASONS.get(step.partition(".")[0], "other memories scored higher")


def _budget_reason(place: _Place, answer: Recall) -> str:
    page = answer.page
    if place.seen:
        return "an earlier page returned it"
    if place.rank <= page.offset:
        return f"rank {place.rank} is before the offset {page.offset}"
    if place.number <= place.limit:
        return f"rank {place.rank}; the token budget was used up before it"
    others = " of the other levels" if answer.query.most else ""
    level = f" of level {place.level}" if place.level else others
    return f"rank {place.rank} of {page.total}; the answer takes the best {place.limit}{level}"


class _Place(NamedTuple):
    """Where a memory stood before the budget.

    ``number`` is its place among those that share its ``limit``; ``level`` is set where that
    is the limit of its level.
    """

    rank: int
    number: int
    limit: int
    level: str = ""
    seen: bool = False


def _place_of(item: Item, answer: Recall) -> _Place:
    from bethink.retrieval.stages.assemble import exclude_seen  # start-up time: rarely needed

    query = answer.query
    names = [step.name for step in answer.steps]
    pool = answer.steps[names.index("budget") - 1].pool
    left = exclude_seen(pool, query)
    rank = 1 + next((number for number, cand in enumerate(pool) if cand.item.id == item.id), 0)
    seen = all(cand.item.id != item.id for cand in left)
    limits = dict(query.most)
    own = item.level if item.level in limits else ""
    alike = [
        c for c in left[query.offset :] if (c.item.level if c.item.level in limits else "") == own
    ]
    count = 1 + next((n for n, cand in enumerate(alike) if cand.item.id == item.id), 0)
    return _Place(rank, count, limits.get(own, query.k), own, seen)


class Change(NamedTuple):
    """A change of a recall that may bring a memory in, and how to say it.

    ``options`` are options of the recall; ``filters`` replace its filters where given.
    """

    label: str
    options: Mapping[str, Any] = MappingProxyType({})
    filters: Filters | None = None


_OPTIONAL_FILTERS = (*PLURAL_TO_SINGULAR, "at", "since", "until", "stored_by")


def next_change(found: WhyNot, answer: Recall) -> Change | None:
    """Return the change that lets a memory pass the step that dropped it.

    None where no option decides about it: then other words are needed.
    """
    if found.stage == "filters":
        return _filter_change(found.item, answer.query)
    if found.stage in _RELEVANCE_STAGES and answer.query.min_relevance != 0:
        return Change("with --min-relevance 0", {"min_relevance": 0.0})
    return _budget_change(found.item, answer) if found.stage == "budget" else None


_RELEVANCE_STAGES = ("gate.threshold", "gate.min_relevance")


def excluding_filter(item: Item, query: Query) -> Change | None:
    """Return the change that removes a filter against a memory; None where none stands."""
    scope = Scope(query.filters, query.moment, query.as_of)
    return _filter_change(item, query) if rejection_reason(item, scope) else None


def restored_limits(item: Item, tried: list[str], earlier: Recall, now: Recall) -> list[str]:
    """Return the changes that a memory needs once it is restored.

    ``tried`` are those it needed at the moment before it ended, ``earlier`` is the answer of
    then and ``now`` that of now with the widest limits, which lacks the memory.
    """
    query = earlier.query
    kept = [change for change in tried if not change.startswith(_LIMIT_CHANGES)]
    own = next((hit.score for hit in earlier.hits if hit.item.id == item.id), None)
    then = {cand.item.id for step in earlier.steps for cand in step.pool}
    # Scores of two answers compare only among memories that both of them weighed.
    ahead = [hit for hit in now.hits if own is None or hit.score >= own or hit.item.id not in then]
    if own is not None and len(ahead) < query.k:
        return kept
    cost = estimate_tokens(item.text, item.tokens) + _ITEM_TOKENS
    tokens = min(MAX_TOKENS, now.page.tokens + cost)
    kept.append(f"with -k {min(MAX_K, now.page.total + 1)}")
    return [*kept, f"with --max-tokens {tokens}"] if tokens > query.max_tokens else kept


_LIMIT_CHANGES = ("with -k", "with --max-tokens")
_ITEM_TOKENS = 16  # at most, around a memory's own


def _filter_change(item: Item, query: Query) -> Change | None:
    """Return the change that admits a memory which the filters exclude."""
    filters, scope = query.filters, Scope(query.filters, query.moment, query.as_of)
    if item.live_to is not None and query.as_of is None:
        return None  # it must be restored first
    reason = rejection_reason(item, scope)
    if reason is None:  # the heat band depends on use, not on the memory alone
        return Change("without --band", filters=replace(filters, bands=()))
    for name in _OPTIONAL_FILTERS:
        empty: Any = () if isinstance(getattr(filters, name), tuple) else None
        if not getattr(filters, name):
            continue
        without = replace(filters, **{name: empty})
        if rejection_reason(item, scope._replace(filters=without)) != reason:
            option = "cursor" if name == "stored_by" else PLURAL_TO_SINGULAR.get(name, name)
            options = {"cursor": None} if option == "cursor" else {}
            return Change(f"without --{option}", options, without)
    wider: dict[str, Json] = {
        "--include-superseded": {"include_superseded": True},
        "--include-expired": {"include_expired": True},
        f"--max-classification {item.classification}": {"max_classification": item.classification},
        f"--min-trust {item.trust}": {"min_trust": item.trust},
    }
    for label, changed in wider.items():
        without = replace(filters, **changed)
        if rejection_reason(item, scope._replace(filters=without)) != reason:
            return Change(f"with {label}", filters=without)
    if query.as_of is not None:
        return Change("without --as-of", {"as_of": None, "cursor": None})
    return None


def _budget_change(item: Item, answer: Recall) -> Change:
    """Return the change of the limits that lets a memory fit."""
    place, query = _place_of(item, answer), answer.query
    if place.seen:
        return Change("without --cursor", {"cursor": None})
    if place.rank <= query.offset:
        return Change("with --offset 0", {"offset": 0})
    if place.number <= place.limit:
        return Change("", {"max_tokens": MAX_TOKENS})
    return _count_change(place, query)


def _count_change(place: _Place, query: Query) -> Change:
    if place.level == "raw":
        return Change(f"with --episode-k {place.number}", {"episode_k": place.number})
    if place.level:
        most = {**dict(query.most), place.level: place.number}
        return Change(f"with more of level {place.level}", {"most": most})
    if place.number > MAX_K:
        return Change(f"with --offset {place.rank - 1}", {"offset": place.rank - 1})
    return Change(f"with -k {place.number}", {"k": place.number})


_OWN_WORDS = 12  # words of a memory that find it


def last_changes(item: Item, answer: Recall) -> Iterator[Change]:
    """Yield changes to try where no option lets a memory pass: other words, or it alone."""
    words = " ".join(strip_hidden(item.text).split()[:_OWN_WORDS])
    if words:
        yield Change(f"with its own words: {words!r}", {"text": words})
    only = replace(answer.query.filters, ids=(item.id,))
    yield Change(f"with --id {item.id}", filters=only)
