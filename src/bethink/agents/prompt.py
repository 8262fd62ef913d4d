"""Recall what is relevant to a prompt, for the agent about to answer it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress

from bethink.agents import briefing
from bethink.agents.session import session_state
from bethink.core.lazy import lazy_pattern
from bethink.core.sentences import sentences
from bethink.core.words import word_set
from bethink.errors import Refused
from bethink.importers.turn_text import is_assent, needs_no_memory, strip_host_text
from bethink.memory import Memory
from bethink.model import Candidate, Item, Recall
from bethink.ports import is_remote
from bethink.render.quoting import Quote, quote_hit
from bethink.retrieval.answer_text import UNSURE_NOTICE
from bethink.retrieval.stages.gate import is_perhaps_newer

MAX_PROMPT_TOKENS = 600
NAME = "memories"
OPENING = "Memories of this project (Bethink) related to this prompt, best match first:"
_TEXT_CHAR_LIMITS = (480, 240, 120)  # characters of one memory; fewer where the budget is short
_MAX_MEMORIES = 6
# The user did not request these: omit hits that score far below the best.
_MIN_SCORE_RATIO = 0.7
_MAX_WORD_OVERLAP = 0.8  # share of common words above which a text says nothing new
_EXTRA_CANDIDATES = 24  # extra ones, to replace those that were given before
_MIN_CONFIDENCE = 0.55  # of an answer to a clause, which is unasked
_MIN_CONFIDENCE_BY_WORDS = 0.4  # without an embedder: words alone are seldom surer
_PAUSE = lazy_pattern(r"[,;:]\s+|[，；：、]\s*")  # not in 12:30, 1,000
_MIN_CLAUSE_WORDS = 3
_MAX_CLAUSES = 6
_HEAD_CHARS, _TAIL_CHARS = 1500, 500  # characters of a long prompt that are searched for


def prompt_context(memory: Memory, payload: Mapping[str, object]) -> str:
    """Return the context to inject with a prompt; empty where nothing passes the gate.

    ``payload`` is the host's input: the prompt and the session's id. Memories the session
    was already given, or that come from it, are left out; the caller records the injected
    ids (``quoted_ids``).
    """
    memory = memory.below(memory.settings.max_classification)
    prompt, session = str(payload.get("prompt") or ""), str(payload.get("session_id") or "")
    question = query_from_prompt(prompt)
    remote = is_remote(memory.embedder) or is_remote(memory.reranker)
    parts = _clauses(question)[: 1 if remote else None]  # each is a request, and the user waits
    answers = [answer for part in parts if (answer := _recall(memory, part, session))]
    # A clause of time alone, "as we said yesterday", asks for all of it only if it is the prompt.
    answers = [one for one in answers if one.query.text == question or not _is_of_time(one)]
    floor = _MIN_CONFIDENCE_BY_WORDS if memory.embedder is None else _MIN_CONFIDENCE
    # What is on the subject of a task helps it, though it need not answer it.
    sure = [one for one in answers if one.status == "found" and one.confidence >= floor]
    if not sure and not memory.settings.prompt_unsure:
        return ""
    known = {*session_state(memory, session).given}
    hits = [
        hit
        for answer in sure or answers
        for hit in _near_best(answer, question)
        # What came with a memory that the session has is given if it would count alone.
        if not sure
        or answer.hits[0].item.id not in known
        or _relevance(hit) >= floor
        or is_perhaps_newer(hit, known)
    ]
    fresh = {
        hit.item.id: hit
        for hit in sorted(hits, key=_relevance)
        if hit.item.id not in known and _is_new_to_session(hit, session)
    }
    opening = OPENING if sure else f"{OPENING} {UNSURE_NOTICE}"
    best_first = sorted(fresh.values(), key=_relevance, reverse=True)
    return briefing.format_context(opening, list(_fit_to_budget(best_first)), NAME)


def _clauses(question: str) -> list[str]:
    """Return what a prompt is searched by: the whole of it, and its clauses.

    A prompt often has more in it than a memory speaks of: "look at the log, then deploy".
    Of a long prompt the first clauses and the last.
    """
    parts = [part.strip() for sentence in sentences(question) for part in _PAUSE.split(sentence)]
    long = [part for part in parts if len(word_set(part)) >= _MIN_CLAUSE_WORDS]
    ends = long if len(long) <= _MAX_CLAUSES else long[: _MAX_CLAUSES - 2] + long[-2:]
    return [*dict.fromkeys((question, *ends))] if question else []


def _recall(memory: Memory, text: str, session: str) -> Recall | None:
    """Recall by a clause; None where it is not searchable, for example without a word."""
    with suppress(Refused):
        return memory.recall(
            text,
            k=_MAX_MEMORIES + _EXTRA_CANDIDATES,
            max_tokens=8 * MAX_PROMPT_TOKENS,
            track=False,
            own_session=session or None,
        )
    return None


def _is_of_time(answer: Recall) -> bool:
    return any(reason.feature == "time" for reason in answer.assessed)


def _near_best(answer: Recall, question: str) -> list[Candidate]:
    """Return the informative hits that do not score far below the best, or may update these."""
    hits = [hit for hit in answer.hits if _is_informative(hit.item, question)]
    near = {hit.item.id for hit in hits if hit.score >= _MIN_SCORE_RATIO * hits[0].score}
    return [hit for hit in hits if hit.item.id in near or is_perhaps_newer(hit, near)]


def _relevance(hit: Candidate) -> float:
    return hit.relevance or 0.0


def query_from_prompt(prompt: str) -> str:
    """Extract the query from a prompt, without the host's wrapping.

    Of a long prompt the beginning and the end; empty where there is nothing to search.
    """
    text = strip_host_text(prompt)
    if needs_no_memory(text):
        return ""
    return (
        text
        if len(text) <= _HEAD_CHARS + _TAIL_CHARS
        else f"{text[:_HEAD_CHARS]}\n{text[-_TAIL_CHARS:]}"
    )


def _is_new_to_session(hit: Candidate, session: str) -> bool:
    own = bool(session) and hit.item.session == session
    return not own and briefing.is_safe_to_inject(hit.item)


def _is_informative(item: Item, question: str) -> bool:
    """Whether a turn has content: not just a question, an assent, or the query again."""
    if item.level != "raw" or item.speaker != "user":
        return True
    if is_assent(item.text):
        return False
    if all(sentence.endswith(("?", "？")) for sentence in sentences(item.text)):
        return False
    words, query_words = word_set(item.text), word_set(question)
    return len(words & query_words) < _MAX_WORD_OVERLAP * len(words | query_words)


def _fit_to_budget(hits: list[Candidate]) -> Iterator[Quote]:
    """Yield as many of the best hits as fit, each cut as little as needed."""
    room = MAX_PROMPT_TOKENS - briefing.frame_cost(OPENING)
    for hit in hits[:_MAX_MEMORIES]:
        quotes = (briefing.sanitize_quote(quote_hit(hit), longest) for longest in _TEXT_CHAR_LIMITS)
        quote = next((fitting for fitting in quotes if briefing.quote_cost(fitting) <= room), None)
        if quote is not None:
            yield quote
            room -= briefing.quote_cost(quote)
