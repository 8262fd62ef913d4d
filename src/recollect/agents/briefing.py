"""The briefing at the start of a session: where things stand, in a few hundred tokens.

Goals, caveats, decisions, what goes on, where the last session ended and what has changed
since. The same for the same memory at the same moment; nothing where there is nothing to say.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import chain, zip_longest
from typing import TYPE_CHECKING, Any, NamedTuple

from recollect.agents.budget import cost_of, frame_cost, framed, may_be_given, shown
from recollect.facade.readable_threads import readable
from recollect.model import Item, Thread
from recollect.quoting import Quote

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
_LOOKED_AT = 60  # newest memories that are looked through for what has changed
_OPEN = frozenset({"ongoing", "blocked", "uncertain"})
_RESUMED = "resume"


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
            _of(memory, "goal", layer="goal"),
            _of(memory, "caveat", layer="caveat"),
            _of(memory, "decision", kind="decision"),
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


def _of(memory: Memory, what: str, **where: Any) -> Iterator[_Entry]:
    """The newest memories of a kind or layer, those that are pinned first."""
    found = memory.browse(limit=5 * _EACH, **where)
    usable = [item for item in found if may_be_given(item)]
    usable.sort(key=lambda item: not item.pinned)
    return (_entry(what, item) for item in usable[:_EACH])


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
    """The last words of user and agent in the session before this one, newest first."""
    recent = memory.browse(level="raw", limit=_LOOKED_AT)
    before = next((item.session for item in recent if item.session not in (None, session)), None)
    if before is None:
        return []
    found = [
        item
        for speaker in ("user", "assistant")
        for item in memory.browse(level="raw", session=before, speaker=speaker, limit=1)
    ]
    return sorted(found, key=lambda item: (item.stored_at, item.seq or 0), reverse=True)


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


def _entry(what: str, item: Item) -> _Entry:
    head = f"{item.id} | {what} | {item.when:%Y-%m-%d} | trust {item.trust}"
    return _Entry(item.id, shown(Quote(head, item.text), _LONGEST))
