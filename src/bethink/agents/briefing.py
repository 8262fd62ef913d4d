"""The briefing at the start of a session, within a token budget.

Goals, caveats and rules, decisions, preferences, ongoing threads, where the last
session ended and what has changed since. Deterministic for the same memory at the
same time; empty where there is nothing to report.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime, timedelta
from itertools import chain, islice, zip_longest

from bethink.api.browse import redact_thread
from bethink.core import plural
from bethink.core.characters import strip_hidden
from bethink.core.json_values import Json, format_moment
from bethink.core.lazy import lazy_pattern
from bethink.core.named_tuple import NamedTuple
from bethink.errors import Refused
from bethink.importers.turn_text import find_statement, is_assent, is_courtesy, summarise_code
from bethink.memory import Memory
from bethink.model import Item
from bethink.model.item import RULE_KINDS
from bethink.render.quoting import Quote, fence_quotes, one_line, truncate

# Count runs with a digit (codes, ids, numbers) by character, words by pieces of three
# letters, punctuation by sign, other scripts by byte.
_ALPHANUMERIC_RUN = lazy_pattern(r"[A-Za-z]{0,64}\d[A-Za-z0-9]*")
_WORD_PIECE = lazy_pattern(r"[A-Za-z][a-z]{0,2}|[^\w\s]|_|\n", re.ASCII)


def estimate_max_tokens(text: str) -> int:
    """Estimate an upper bound of the tokens that common tokenizers produce."""
    codes = sum(len(run) for run in _ALPHANUMERIC_RUN.findall(text))
    words = _ALPHANUMERIC_RUN.sub(" ", text)
    if words.isascii():
        return codes + len(_WORD_PIECE.findall(words))
    ascii_only = words.encode("ascii", "ignore").decode()
    others = len(words.encode("utf-8", "replace")) - len(ascii_only)
    return codes + others + len(_WORD_PIECE.findall(ascii_only))


# Sources below it are unknown. Flagged text may contain instructions, or hide some.
_MIN_TRUST = 1
_QUOTE_OVERHEAD_TOKENS = 22  # tokens around a quoted text: marker, number, end of line


def is_safe_to_inject(item: Item) -> bool:
    """Whether a memory may be injected into a context without a request for it."""
    return item.trust >= _MIN_TRUST and not item.flags


def sanitize_quote(quote: Quote, max_chars: int) -> Quote:
    """Sanitize a quote: no hidden characters, code replaced by its length, cut to size."""
    return Quote(
        one_line(quote.head), truncate(summarise_code(strip_hidden(quote.text)).strip(), max_chars)
    )


def quote_cost(quote: Quote) -> int:
    """Token cost of a quote."""
    return (
        _QUOTE_OVERHEAD_TOKENS + estimate_max_tokens(quote.head) + estimate_max_tokens(quote.text)
    )


def format_context(opening: str, quotes: list[Quote], name: str) -> str:
    """Format the opening line and the marked quotes; empty where there are none."""
    return f"{opening}\n{fence_quotes(quotes, name, max_chars=None)}" if quotes else ""


def frame_cost(opening: str) -> int:
    """Token cost of everything around the quotes."""
    probe = format_context(opening, [Quote("", "x")], "briefing")
    return estimate_max_tokens(probe) + 3


MAX_BRIEFING_TOKENS = 1200
NAME = "briefing"
OPENING = (
    "Briefing from this project's memory (Bethink). Use recall and recall_file to find more. "
    "trust runs from 0 (unknown source) to 3 (the owner)."
)
_MAX_TEXT_CHARS = 280  # characters of one text
_MAX_PER_SECTION = 4  # entries of one section
_COMPARED = 10  # memories like one that may be reversed
_LAST_PROMPTS = 3  # prompts of the previous session
_RECENT_LIMIT = 60  # newest memories that are searched for changes
_OPEN_STATES = frozenset({"ongoing", "blocked", "uncertain"})
_LEVELS = (("item", "insight"), "raw")
_RESUME_SOURCE = "resume"
_GOAL_MAX_AGE = timedelta(days=60)


class _Entry(NamedTuple):
    """A quote and the key that identifies it."""

    key: str
    quote: Quote


def briefing(memory: Memory, payload: Mapping[str, object] | None = None) -> str:
    """Return the briefing for a starting agent.

    ``payload`` is the host's input. A resumed session still has its beginning in context,
    so it gets only the changes.
    """
    memory = memory.below(memory.settings.max_classification)
    payload = payload or {}
    session = str(payload.get("session_id") or "")
    last = _last_turns(memory, session)
    if payload.get("source") == _RESUME_SOURCE:
        own_turns = memory.browse(level="raw", session=session, limit=1) if session else []
        sections = [_new_since_entries(memory, own_turns)]
    else:
        sections = [
            _section_entries(memory, "goal", ("goal",), layer="goal"),
            _section_entries(memory, "caveat", ("caveat", *RULE_KINDS), layer="caveat"),
            _section_entries(memory, "decision", ("decision",)),
            _section_entries(memory, "preference", ("preference",)),
            _thread_entries(memory),
            _last_session_entries(last),
            _new_since_entries(memory, last),
        ]
    chosen = _fit_to_budget([list(section) for section in sections])
    return format_context(OPENING, [entry.quote for entry in chosen], NAME)


def _fit_to_budget(sections: list[list[_Entry]]) -> list[_Entry]:
    """Select what fits, round-robin over the sections, in the order of the sections."""
    budget = MAX_BRIEFING_TOKENS - frame_cost(OPENING)
    kept: set[str] = set()
    for entry in filter(None, chain.from_iterable(zip_longest(*sections))):
        cost = quote_cost(entry.quote)
        if entry.key not in kept and cost <= budget:
            kept.add(entry.key)
            budget -= cost
    entries = {entry.key: entry for section in reversed(sections) for entry in section}
    order = dict.fromkeys(entry.key for section in sections for entry in section)
    return [entries[key] for key in order if key in kept]


def _section_entries(
    memory: Memory, label: str, kinds: tuple[str, ...], layer: str | None = None
) -> Iterator[_Entry]:
    """The newest memories of some kinds or a layer.

    Pinned ones first, then those stored on purpose, however many turns followed.
    """
    filters: list[Json] = [{"kind": kinds, "level": level} for level in _LEVELS]
    filters += [{"layer": layer}] if layer else []
    pages = (memory.browse(limit=5 * _MAX_PER_SECTION, **where) for where in filters)
    found = {
        item.id: item
        for item in chain.from_iterable(pages)
        if is_safe_to_inject(item) and not (label == "goal" and _is_stale_goal(item, memory.now))
    }
    usable = sorted(found.values(), key=lambda item: (item.when, item.id), reverse=True)
    usable.sort(key=lambda item: (not item.pinned, item.level == "raw"))
    current = islice(_without_reversed(usable, memory), _MAX_PER_SECTION)
    return (_make_entry(label, item, _key_text(item)) for item in current)


def _without_reversed(items: Iterable[Item], memory: Memory) -> Iterator[Item]:
    """Yield the memories, and in the place of a reversed one what reversed it; each once."""
    given: set[str] = set()
    for item in items:
        newer = _reversal_of(item, memory)
        shown = newer if newer is not None else item
        if shown.id not in given and is_safe_to_inject(shown):
            given.add(shown.id)
            yield shown


def _reversal_of(item: Item, memory: Memory) -> Item | None:
    """Find the later memory that takes back what this one says, as recall would order them."""
    links = memory.store.graph.links_of([item.id], ("supersedes",))
    if not any(link.dst.id == item.id for link in links):
        return None  # so for nearly all, without embedding anything
    try:
        answer = memory.recall(_key_text(item), profile="default", k=_COMPARED, track=False)
    except Refused:
        return None  # not searchable, for example without a word
    newer = next((hit.see_newer for hit in answer.hits if hit.item.id == item.id), None)
    return next((hit.item for hit in answer.hits if hit.item.id == newer), None)


def _is_stale_goal(item: Item, now: datetime) -> bool:
    """Whether a goal was only mentioned in a turn, and long ago."""
    return item.level == "raw" and now - item.when > _GOAL_MAX_AGE


def _key_text(item: Item) -> str:
    """A memory's text; of a turn, from the sentence on that determined its kind."""
    found = find_statement(item.text, item.speaker or "") if item.level == "raw" else None
    return found.text if found is not None else item.text


def _thread_entries(memory: Memory) -> Iterator[_Entry]:
    """Ongoing threads, the most recent first, quoting only injectable memories."""
    threads = memory.threads(limit=5 * _MAX_PER_SECTION)
    open_threads = [
        one for one in threads if one.lifecycle == "active" and one.state in _OPEN_STATES
    ]
    members = {member.item for thread in open_threads for member in thread.members}
    items = memory.store.items.get(sorted(members))
    usable = {key: item for key, item in items.items() if _is_usable_member(item)}
    live = [
        redact_thread(thread, usable, memory.settings.max_classification) for thread in open_threads
    ]
    for thread in [visible for visible in live if visible is not None][:_MAX_PER_SECTION]:
        last = thread.last_event_at
        since = f" | last {format_moment(last)}" if last else ""
        count = plural(len(thread.members), "memory")
        head = f"{thread.id} | thread, {thread.state}{since} | {count}"
        yield _Entry(thread.id, sanitize_quote(Quote(head, thread.headline), _MAX_TEXT_CHARS))


def _is_usable_member(item: Item) -> bool:
    """Whether a memory may represent its thread: superseded yes, quarantined no."""
    return item.live_to is None and item.status != "quarantined" and is_safe_to_inject(item)


def _last_turns(memory: Memory, session: str) -> list[Item]:
    """The last prompts and the last answer of the previous session, newest first.

    Courtesies only if there was nothing else.
    """
    recent = memory.browse(level="raw", limit=_RECENT_LIMIT)
    before = next((item.session for item in recent if item.session not in (None, session)), None)
    if before is None:
        return []
    turns = memory.browse(level="raw", session=before, limit=_RECENT_LIMIT)
    said = [item for item in turns if not (is_assent(item.text) or is_courtesy(item.text))]
    informative = said or turns
    prompts = [item for item in informative if item.speaker == "user"][:_LAST_PROMPTS]
    answer = [item for item in informative if item.speaker == "assistant"][:1]
    return sorted(prompts + answer, key=lambda item: (item.stored_at, item.seq or 0), reverse=True)


def _last_session_entries(turns: list[Item]) -> Iterator[_Entry]:
    """The last turns of the previous session, in their order."""
    for item in reversed(turns):
        if is_safe_to_inject(item):
            yield _make_entry(f"last session, {item.speaker}", item)


def _new_since_entries(memory: Memory, turns: list[Item]) -> Iterator[_Entry]:
    """Memories stored since, by any writer; none without a previous session."""
    if not turns:
        return iter(())
    ended = max(item.stored_at for item in turns)
    recent: Iterable[Item] = memory.browse(level=("item", "insight"), limit=_RECENT_LIMIT)
    new = [item for item in recent if item.stored_at > ended and is_safe_to_inject(item)]
    return (_make_entry("new since", item) for item in new[:_MAX_PER_SECTION])


def _make_entry(label: str, item: Item, text: str = "") -> _Entry:
    head = f"{item.id} | {label} | {format_moment(item.when)} | trust {item.trust}"
    return _Entry(item.id, sanitize_quote(Quote(head, text or item.text), _MAX_TEXT_CHARS))
