"""Query expansion by rules, and the retrievers that run the expansions."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Literal

from bethink.core.characters import has_substance
from bethink.core.dataclass import dataclass
from bethink.core.named_tuple import NamedTuple
from bethink.core.sentences import shorten
from bethink.model import Candidate, Evidence, Filters, Pool
from bethink.retrieval.context import Context, Retriever
from bethink.retrieval.deep import DeepSettings
from bethink.retrieval.query_analysis import content_terms, is_temporal, split_question
from bethink.retrieval.stages.adjust import names_of, speakers_named

ExpansionKind = Literal["LEX", "VEC", "HYDE"]
_MATCH_KIND_OF = {"LEX": "words", "VEC": "meaning", "HYDE": "meaning"}
_SHOWN_CHARS = 80


class Expansion(NamedTuple):
    """A further search: LEX by words, VEC by meaning, HYDE by a hypothetical memory.

    ``speakers``, ``since`` and ``until`` narrow it further than the question's filters.
    """

    kind: ExpansionKind
    text: str
    why: str
    speakers: tuple[str, ...] = ()
    since: datetime | None = None
    until: datetime | None = None

    @property
    def narrows(self) -> bool:
        """Whether its scope is narrower than the question's."""
        return bool(self.speakers or self.since or self.until)

    def describe(self) -> str:
        """Description for the trace."""
        text = shorten(" ".join(self.text.split()), _SHOWN_CHARS)
        return f'{self.kind} "{text}" ({self.why})'


@dataclass(frozen=True, slots=True)
class ExpansionRetriever:
    """Runs a retriever with an expansion instead of the query; filters are never widened."""

    expansion: Expansion
    retriever: Retriever
    weight: float
    name: str

    def __call__(self, ctx: Context) -> Pool:
        filters = _narrow_filters(ctx.query.filters, self.expansion)
        if filters is None:
            ctx.add_step_note("excluded by the question's own filters")
            return ()
        ctx.add_step_note(self.expansion.describe())
        query = replace(ctx.query, text=self.expansion.text, filters=filters)
        # Another question has other words and another vector: no cached value applies.
        pool = self.retriever(ctx.for_query(query))
        return tuple(_relabel_evidence(cand, f"channel.{self.name}") for cand in pool)


def expansion_retrievers(
    expansions: Sequence[Expansion], channels: Sequence[Retriever], deep: DeepSettings
) -> tuple[Retriever, ...]:
    """A retriever for every expansion and every retriever that can run its kind."""
    retrievers: list[Retriever] = []
    for number, expansion in enumerate(expansions, start=1):
        usable = [channel for channel in channels if _can_run(channel, expansion.kind, deep)]
        for channel in usable:
            suffix = f".{channel.name}" if len(usable) > 1 else ""
            name = f"{expansion.kind.lower()}.{number}{suffix}"
            retrievers.append(
                ExpansionRetriever(expansion, channel, channel.weight * deep.share, name)
            )
    return tuple(retrievers)


def _can_run(channel: Retriever, kind: ExpansionKind, deep: DeepSettings) -> bool:
    allowed = deep.lex if kind == "LEX" else deep.vec
    if allowed:
        return channel.name in allowed
    return getattr(channel, "matches", "") == _MATCH_KIND_OF[kind]


def _narrow_filters(filters: Filters, expansion: Expansion) -> Filters | None:
    """The filters combined with the expansion's own; None where no memory could pass both."""
    speakers = expansion.speakers
    if filters.speakers and speakers:
        speakers = tuple(one for one in speakers if one in filters.speakers)
        if not speakers:
            return None
    since = max(filter(None, (filters.since, expansion.since)), default=None)
    until = min(filter(None, (filters.until, expansion.until)), default=None)
    if since is not None and until is not None and since >= until:
        return None
    return replace(filters, speakers=speakers or filters.speakers, since=since, until=until)


def _relabel_evidence(cand: Candidate, by: str) -> Candidate:
    item, score, evidence, passage, relevance = cand
    # As their classes make them, in a third of the time.
    last = tuple.__new__(Evidence, (by, *evidence[-1][1:]))
    fields = (item, score, (*evidence[:-1], last), passage, relevance)
    return tuple.__new__(Candidate, fields)


_FEEDBACK_WORDS = 6
_MAX_TEXT_CHARS = 300
_NAME_PATTERN = re.compile(r"(?<=[a-z,'’] )[A-Z][\w'’-]+(?: [A-Z][\w'’-]+)*|\"[^\"]{3,60}\"")


def expand_by_rules(hits: Pool, ctx: Context, deep: DeepSettings) -> tuple[Expansion, ...]:
    """At most ``most`` query expansions, the most promising first.

    The parts of a compound question; the question without the name of the likely speaker;
    names in the best hits for what the question only describes; the days around them, where
    it asks about times; the best hits as examples (pseudo-relevance feedback); and the rare
    words that the best hits share.
    """
    best = hits[: deep.feedback]
    proposed = (
        *_part_expansions(ctx),
        *_speaker_expansions(hits, ctx),
        *_bridge_expansions(best, ctx),
        *_time_window_expansions(best, ctx, deep),
        *_example_expansions(best),
        *_feedback_expansions(best, ctx),
    )
    chosen: dict[tuple[str, str, tuple[str, ...]], Expansion] = {}
    for expansion in proposed:
        if has_substance(expansion.text) and (
            expansion.narrows or expansion.text != ctx.query.text
        ):
            chosen.setdefault((expansion.kind, expansion.text, expansion.speakers), expansion)
    return tuple(chosen.values())[: deep.most]


def _part_expansions(ctx: Context) -> Iterator[Expansion]:
    parts = split_question(ctx.query.text)
    if len(parts) > 1:
        for part in parts[:2]:
            yield Expansion("VEC", part[:_MAX_TEXT_CHARS], "a part of the question")


def _speaker_expansions(hits: Pool, ctx: Context) -> Iterator[Expansion]:
    """What each person named in the question said themselves."""
    named = speakers_named(hits, ctx)
    rest = remove_names(ctx.query.text, named)
    for speaker in named[:2]:
        why = f"only what {speaker} said"
        yield Expansion("VEC", rest[:_MAX_TEXT_CHARS], why, speakers=(speaker,))


def _bridge_expansions(best: Pool, ctx: Context) -> Iterator[Expansion]:
    """Names in the best hits that the question lacks: they may be what it only describes."""
    question_words = {word.shown.casefold() for word in ctx.words()}
    speakers = {cand.item.speaker for cand in best}
    names: Counter[str] = Counter()
    for cand in best[:3]:
        for found in _NAME_PATTERN.findall(cand.item.text):
            name = found.strip('"')
            if not question_words.intersection(name.casefold().split()) and name not in speakers:
                names[name] += 1
    rare = [name for name, _ in sorted(names.items(), key=lambda entry: (-entry[1], entry[0]))][:2]
    if rare:
        yield Expansion("LEX", " ".join(rare), "named by the best hits")


def _time_window_expansions(best: Pool, ctx: Context, deep: DeepSettings) -> Iterator[Expansion]:
    """The days around the best hit, where the question asks for times."""
    if not best or not is_temporal(ctx.query.text):
        return
    margin = timedelta(days=deep.days)
    moment = best[0].item.when
    why = f"within {deep.days:g} days of the best hit"
    yield Expansion("VEC", ctx.query.text, why, since=moment - margin, until=moment + margin)


def _example_expansions(best: Pool) -> Iterator[Expansion]:
    """The best hits as examples of the memory sought."""
    texts = [cand.item.text[:_MAX_TEXT_CHARS] for cand in best[:3]]
    if texts:
        yield Expansion("HYDE", " ".join(texts), "like the best hits")


def _feedback_expansions(best: Pool, ctx: Context) -> Iterator[Expansion]:
    """Words of the best hits, weighted by rarity and the hits' scores (RM3)."""
    if not best:
        return
    question_terms = {term for word in ctx.words() for term in word.terms}
    spelling: dict[str, str] = {}
    weight: Counter[str] = Counter()
    for cand in best:
        for word in ctx.store.search.words(cand.item.text):
            if not word.common and len(word.terms) == 1 and word.terms[0] not in question_terms:
                spelling.setdefault(word.terms[0], word.shown)
                weight[word.terms[0]] += cand.score  # type: ignore[assignment]
    documents, _, counts = ctx.term_statistics(spelling)
    scores = {
        term: weight[term] * math.log(1.0 + documents / (1.0 + counts.get(term, 0)))
        for term in spelling
    }
    best_terms = sorted(scores, key=lambda term: (-scores[term], term))[:_FEEDBACK_WORDS]
    question_words = [content_term.word.shown for content_term in content_terms(ctx)]
    if best_terms:
        words = " ".join((*question_words, *(spelling[term] for term in best_terms)))
        yield Expansion("LEX", words[:_MAX_TEXT_CHARS], "with rare words of the best hits")


def remove_names(text: str, speakers: tuple[str, ...]) -> str:
    """Remove the speakers' names from the question.

    People speaking of themselves do not say their own name; those who say it address them.
    """
    for speaker in speakers:
        for name in sorted(names_of(speaker), key=len, reverse=True):
            text = re.sub(rf"\b{re.escape(name)}(?:['’]s)?(?!\w)", " ", text, flags=re.IGNORECASE)
    return " ".join(text.split())
