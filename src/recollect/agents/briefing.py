"""The briefing at the start of a session: where things stand, in a few hundred tokens.

Goals, caveats and rules, decisions, preferences, what goes on, where the last session ended
and what has changed since. The same for the same memory at the same moment; nothing where
there is nothing to say.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime, timedelta
from itertools import chain, zip_longest
from typing import TYPE_CHECKING, Any, NamedTuple

from recollect.agents.budget import cost_of, frame_cost, framed, may_be_given, shown
from recollect.facade.readable_threads import readable
from recollect.model import Item, Thread
from recollect.quoting import Quote
from recollect.sources.said.assent import is_assent
from recollect.sources.said.courtesies import is_courtesy
from recollect.sources.said.weighty import weighty

if TYPE_CHECKING:
    from recollect.memory import Memory

MOST_TOKENS = 1200
NAME = "briefing"
OPENING = (
    "What this project's memory (Recollect) holds at the start of this session; recall and "
    "recall_file find more. trust runs from 0 (unknown source) to 3 (the owner)."
)
_LONGEST = 280  # characters of one text
_EACH = 4  # of one kind
_PROMPTS = 3  # the last ones of the session before
_LOOKED_AT = 60  # newest memories that are looked through for what has changed
_OPEN = frozenset({"ongoing", "blocked", "uncertain"})
_LEVELS = (("item", "insight"), "raw")
_RESUMED = "resume"
_PURSUED = timedelta(days=60)


class _Entry(NamedTuple):
    """Something to be told, and what it is known by."""

    key: str
    quote: Quote


def briefing(memory: Memory, payload: Mapping[str, Any] | None = None) -> str:
    """What to tell an agent that begins. ``payload`` is what the host said: of a session
    that is resumed the agent still knows the beginning, and hears only of changes."""
    told = payload or {}
    session = str(told.get("session_id") or "")
    last = _last_turns(memory, session)
    if told.get("source") == _RESUMED:
        mine = memory.browse(level="raw", session=session, limit=1) if session else []
        sections = [_changes(memory, mine)]
    else:
        sections = [
            _of(memory, "goal", ("goal",), layer="goal"),
            _of(memory, "caveat", ("caveat", "directive"), layer="caveat"),
            _of(memory, "decision", ("decision",)),
            _of(memory, "preference", ("preference",)),
            _threads(memory),
            _ended(last),
            _changes(memory, last),
        ]
    chosen = _chosen([list(section) for section in sections])
    return framed(OPENING, [entry.quote for entry in chosen], NAME)


def _chosen(sections: list[list[_Entry]]) -> list[_Entry]:
    """What fits: the first of every section, then the second ..., told section by section."""
    room = MOST_TOKENS - frame_cost(OPENING)
    kept: set[str] = set()
    for entry in filter(None, chain.from_iterable(zip_longest(*sections))):
        cost = cost_of(entry.quote)
        if entry.key not in kept and cost <= room:
            kept.add(entry.key)
            room -= cost
    told = {entry.key: entry for section in reversed(sections) for entry in section}
    order = dict.fromkeys(entry.key for section in sections for entry in section)
    return [told[key] for key in order if key in kept]


def _of(
    memory: Memory, what: str, kinds: tuple[str, ...], layer: str | None = None
) -> Iterator[_Entry]:
    """The newest memories of some kinds or a layer, those that are pinned first, then what
    was stored on purpose, however much has been said since."""
    wheres: list[dict[str, Any]] = [{"kind": kinds, "level": level} for level in _LEVELS]
    wheres += [{"layer": layer}] if layer else []
    pages = (memory.browse(limit=5 * _EACH, **where) for where in wheres)
    found = {
        item.id: item
        for item in chain.from_iterable(pages)
        if may_be_given(item) and not (what == "goal" and _is_over(item, memory.now))
    }
    usable = sorted(found.values(), key=lambda item: (item.when, item.id), reverse=True)
    usable.sort(key=lambda item: (not item.pinned, item.level == "raw"))
    return (_entry(what, item, _point(item)) for item in usable[:_EACH])


def _is_over(item: Item, now: datetime) -> bool:
    """Whether a goal was only said, and so long ago that it was reached or given up."""
    return item.level == "raw" and now - item.when > _PURSUED


def _point(item: Item) -> str:
    """A memory's words; of a turn those from the sentence on that gave it its kind."""
    found = weighty(item.text, item.speaker or "") if item.level == "raw" else None
    return found.text if found is not None else item.text


def _threads(memory: Memory) -> Iterator[_Entry]:
    """What goes on, where most happened last; in no words but those of memories that may
    be given."""
    open_ones = [one for one in memory.threads(limit=5 * _EACH) if _is_open(one)]
    members = {member.item for thread in open_ones for member in thread.members}
    items = memory.store.get(sorted(members))
    usable = {key: item for key, item in items.items() if _is_part(item)}
    live = [readable(thread, usable, memory.settings.max_classification) for thread in open_ones]
    for thread in [one for one in live if one is not None][:_EACH]:
        last = thread.last_event_at
        since = f" | last {last:%Y-%m-%d}" if last else ""
        head = f"{thread.id} | thread, {thread.state}{since} | {len(thread.members)} memories"
        yield _Entry(thread.id, shown(Quote(head, thread.headline), _LONGEST))


def _is_part(item: Item) -> bool:
    """Whether a memory still speaks in a thread: what was corrected does, what was taken
    out of recall does not."""
    return item.live_to is None and item.status != "quarantined" and may_be_given(item)


def _is_open(thread: Thread) -> bool:
    return thread.lifecycle == "active" and thread.state in _OPEN


def _last_turns(memory: Memory, session: str) -> list[Item]:
    """The last prompts and the agent's last words in the session before this one, newest
    first; where it was nothing but courtesies, those."""
    recent = memory.browse(level="raw", limit=_LOOKED_AT)
    before = next((item.session for item in recent if item.session not in (None, session)), None)
    if before is None:
        return []
    said = memory.browse(level="raw", session=before, limit=_LOOKED_AT)
    telling = [item for item in said if _tells(item)] or said
    prompts = [item for item in telling if item.speaker == "user"][:_PROMPTS]
    answer = [item for item in telling if item.speaker == "assistant"][:1]
    return sorted(prompts + answer, key=lambda item: (item.stored_at, item.seq or 0), reverse=True)


def _tells(item: Item) -> bool:
    return not (is_assent(item.text) or is_courtesy(item.text))


def _ended(turns: list[Item]) -> Iterator[_Entry]:
    """Where the session before this one ended, in the order it was said."""
    for item in reversed(turns):
        if may_be_given(item):
            yield _entry(f"last session, {item.speaker}", item)


def _changes(memory: Memory, turns: list[Item]) -> Iterator[_Entry]:
    """What was stored since, by whomever; nothing where there was no session before."""
    if not turns:
        return iter(())
    ended = max(item.stored_at for item in turns)
    recent: Iterable[Item] = memory.browse(level=("item", "insight"), limit=_LOOKED_AT)
    new = [item for item in recent if item.stored_at > ended and may_be_given(item)]
    return (_entry("new since", item) for item in new[:_EACH])


def _entry(what: str, item: Item, text: str = "") -> _Entry:
    head = f"{item.id} | {what} | {item.when:%Y-%m-%d} | trust {item.trust}"
    return _Entry(item.id, shown(Quote(head, text or item.text), _LONGEST))
