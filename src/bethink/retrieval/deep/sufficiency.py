"""Sufficiency of the first answer, judged by rules or by a language model.

The model's output is validated and only decides whether and with which words to search
on. None of its text gets into an answer, and it cannot name a file, space or address.
"""

from __future__ import annotations

from collections.abc import Mapping

from bethink.core.characters import has_substance
from bethink.core.named_tuple import NamedTuple
from bethink.core.sentences import shorten
from bethink.model import Candidate, Caption, Pool, Step
from bethink.ports import Budget, LanguageModel, Unusable, Word
from bethink.prompts import Passage, cited_ids, fill_prompt, load_passages
from bethink.retrieval.context import Context, PerEach
from bethink.retrieval.deep import DeepSettings
from bethink.retrieval.deep.expansion import Expansion
from bethink.retrieval.query_analysis import (
    answer_type_of,
    content_terms,
    expected_answer_types,
    expects_several_answers,
    is_multi_hop,
    periods,
)
from bethink.retrieval.stages.adjust import speakers_of
from bethink.retrieval.stages.late_interaction import shown_text

_MAX_EVIDENCES = 5
_MAX_GAPS = 3
_QUOTE_CHARS = 200


class Verdict(NamedTuple):
    """Whether the hits are sufficient, why, the gaps, and the ids of supporting memories."""

    enough: bool
    why: str
    gaps: tuple[str, ...] = ()
    evidences: tuple[str, ...] = ()


def judge_by_rules(hits: Pool, ctx: Context, deep: DeepSettings) -> Verdict:
    """Judge sufficiency conservatively, by rules.

    Sufficient only where one memory holds all that the question names and provides the
    expected answer type, and nothing indicates that several memories are needed.
    """
    examined = hits[: deep.look]
    covered = _held_words(examined, ctx)
    missing = _missing_words(covered, ctx)
    evidences = tuple(cand.item.id for cand in covering_hits(examined, ctx))
    if missing:
        return Verdict(False, f"no hit contains {', '.join(missing)}", missing, evidences)
    text = ctx.query.text
    if expects_several_answers(text):
        return Verdict(False, "the question asks for several things", (), evidences)
    if is_multi_hop(text):
        return Verdict(False, "the question needs more than one hop", (), evidences)
    return _judge_best_hit(examined, covered, ctx, deep)._replace(evidences=evidences)


def _judge_best_hit(
    examined: Pool, covered: Mapping[str, set[Word]], ctx: Context, deep: DeepSettings
) -> Verdict:
    if not examined:
        return Verdict(False, "nothing was found")
    best = examined[0]
    share = _covered_share(covered[best.item.id], ctx)
    if share < deep.covered:
        return Verdict(False, f"the best hit covers {share:.0%} of the question")
    kinds = expected_answer_types(ctx.query.text)
    if kinds and answer_type_of(best.item.text, kinds) is None:
        return Verdict(False, f"the best hit does not state {' or '.join(kinds)}")
    if any(not period.start <= best.item.when < period.end for period in periods(ctx)):
        return Verdict(False, "the best hit is from another time")
    return Verdict(True, "the best hit covers the whole question")


def has_dominant_hit(steps: tuple[Step, ...], deep: DeepSettings) -> bool:
    """Whether lexical scores clearly point to one memory, so that expansion could only mislead."""
    for step in steps:
        name = step.name.removeprefix("channel.")
        if step.name == name or name not in deep.lex or not step.pool:
            continue
        second = step.pool[1].score if len(step.pool) > 1 else 0.0
        if step.pool[0].score >= deep.strong and step.pool[0].score - second >= deep.lead:
            return True
    return False


def covering_hits(hits: Pool, ctx: Context, max_hits: int = _MAX_EVIDENCES) -> Pool:
    """The hits that together hold the question's words, each adding some; the best included."""
    covered = _held_words(hits, ctx)
    seen: set[Word] = set()
    chosen: list[Candidate] = []
    for cand in hits:
        if len(chosen) < max_hits and (not chosen or covered[cand.item.id] - seen):
            chosen.append(cand)
            seen |= covered[cand.item.id]
    return tuple(chosen)


def quote_hits(hits: Pool, ids: tuple[str, ...]) -> tuple[str, ...]:
    """Quotes of the hits with these ids, in their own words."""
    known = {cand.item.id: cand for cand in hits}
    return tuple(
        f"{key}: {shorten(' '.join(known[key].text.split()), _QUOTE_CHARS)}"
        for key in ids
        if key in known
    )


# The index terms of the texts that were judged: most are judged twice.
_terms_of = PerEach[Candidate, str, frozenset[str]](
    lambda hits, ctx: {
        cand.item.id: frozenset(ctx.store.search.terms(cand.item.text)) for cand in hits
    },
    lambda cand: cand.item.id,
)


def _held_words(hits: Pool, ctx: Context) -> dict[str, set[Word]]:
    """Which of the question's content terms each hit holds; its speaker counts as held."""
    words = [content_term.word for content_term in content_terms(ctx)]
    names, terms = speakers_of(hits), _terms_of(hits, ctx)
    return {
        cand.item.id: {
            word
            for word in words
            if terms[cand.item.id].issuperset(word.terms)
            or (names.get(word.shown.casefold()) or 0) == cand.item.speaker
        }
        for cand in hits
    }


def _missing_words(held: Mapping[str, set[Word]], ctx: Context) -> tuple[str, ...]:
    known: set[Word] = set().union(*held.values())
    missing = [term for term in content_terms(ctx) if term.word not in known]
    missing.sort(key=lambda term: (-term.weight, term.word.shown))
    return tuple(term.word.shown for term in missing[:_MAX_GAPS])


def _covered_share(held: set[Word], ctx: Context) -> float:
    terms = content_terms(ctx)
    total = sum(term.weight for term in terms)
    return sum(term.weight for term in terms if term.word in held) / total if total else 0.0


_EMPTY_PLACEHOLDER = "(nothing)"


def judge_by_model(
    model: LanguageModel, hits: Pool, captions: tuple[Caption, ...], ctx: Context, *, budget: Budget
) -> Verdict:
    """The model's verdict; "sufficient" without a supporting memory is rejected."""
    store, query = ctx.store, ctx.query
    passages = (
        *_load_shown(hits, ctx),
        *(Passage(store.space, "", caption.text) for caption in captions),
    )
    prompt = fill_prompt(
        "sufficiency",
        store.space,
        question=query.text,
        memories=passages,
        today=query.moment.date(),
    )
    reply = model.complete(prompt, budget=budget)
    evidences = tuple(key for key in cited_ids(passages, reply["evidences"]) if key)
    gaps = tuple(reply["gaps"])
    if reply["sufficient"] and gaps:
        return Verdict(False, f"{model.name} answered both sufficient and gaps", gaps, evidences)
    if reply["sufficient"] and not evidences:
        return Verdict(False, f"{model.name} answered sufficient without evidence")
    return Verdict(reply["sufficient"], f"judged by {model.name}", gaps, evidences)


def _load_shown(hits: Pool, ctx: Context) -> tuple[Passage, ...]:
    """The hits for a prompt: of a long memory the passage that is shown."""
    items = {cand.item.id: cand.item for cand in hits}
    loaded = load_passages(ctx.store, list(items), as_of=ctx.query.as_of)
    return tuple(
        passage._replace(text=passage.text.replace(item.text, shown_text(item, ctx)))
        for passage in loaded
        for item in (items[passage.id],)
    )


def expand_by_model(
    model: LanguageModel,
    known: Pool,
    verdict: Verdict,
    ctx: Context,
    *,
    deep: DeepSettings,
    budget: Budget,
) -> tuple[Expansion, ...]:
    """The model's query expansions; raises Unusable where none says anything new."""
    store, query = ctx.store, ctx.query
    ids = verdict.evidences or tuple(cand.item.id for cand in known)
    passages = load_passages(store, ids[: deep.feedback], as_of=query.as_of)
    prompt = fill_prompt(
        "expand",
        store.space,
        question=query.text,
        known="\n".join(passage.text for passage in passages) or _EMPTY_PLACEHOLDER,
        gaps="\n".join(verdict.gaps) or _EMPTY_PLACEHOLDER,
        today=query.moment.date(),
    )
    proposed = model.complete(prompt, budget=budget)["queries"]
    same = query.text.casefold()
    usable = [
        Expansion(entry["type"], " ".join(entry["text"].split()), f"by {model.name}")
        for entry in proposed
        if has_substance(entry["text"]) and entry["text"].strip().casefold() != same
    ]
    if proposed and not usable:
        raise Unusable(f"{model.name} returned no new search")
    return tuple(dict.fromkeys(usable))[: deep.most]
