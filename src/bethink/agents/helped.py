"""Whether the memories that hooks showed were used, read from the transcripts of sessions.

A memory was *cited* where a later turn names its id, *followed* where a later turn has a
distinctive word of it that the session did not have before, *corrected* where it was changed
or forgotten within the session, and *ignored* where none of these happened in the calls that
followed. Followed is not caused: only an experiment with sessions without memory
(the setting ``ab_test``) can tell what memory changes.
"""

from __future__ import annotations

import json
import random
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bethink.agents.session import session_state, sessions_folder
from bethink.api.recall import keep_votes
from bethink.core.json_values import Json
from bethink.core.named_tuple import NamedTuple

if TYPE_CHECKING:
    from bethink.memory import Memory
    from bethink.model import Item

VERDICTS = ("cited", "followed", "corrected", "ignored", "unseen")
# What a verdict counts, the first one where a session has several. Silence says little.
_VOTES = {"corrected": -1.0, "cited": 1.0, "followed": 1.0, "ignored": -0.25}
_MAX_LATER = 30  # entries of a transcript in which a memory may be used: some ten calls
_MIN_SESSIONS = 30  # of each arm
_MAX_HOLDERS = 3  # memories that hold a distinctive word
_DRAWS = 2000
_TOKEN = re.compile(r"[\w][\w./:@-]{2,}[\w]")


class Shown(NamedTuple):
    """A memory that a hook showed, and whether it was used."""

    item: str
    event: str
    tokens: int
    verdict: str


class Arm(NamedTuple):
    """The sessions with memory, or without: how many, failed calls and tokens of each."""

    sessions: int = 0
    failures: tuple[int, ...] = ()
    tokens: tuple[int, ...] = ()


class Helped(NamedTuple):
    """All that was shown, and the two arms of the experiment."""

    shown: tuple[Shown, ...]
    arms: Mapping[str, Arm]

    def by_event(self) -> dict[str, Counter[str]]:
        """Count the verdicts for each kind of event."""
        counts: dict[str, Counter[str]] = defaultdict(Counter)
        for one in self.shown:
            counts[one.event][one.verdict] += 1
        return dict(counts)

    def by_item(self) -> dict[str, Counter[str]]:
        """Count the verdicts for each memory, the most used first."""
        counts: dict[str, Counter[str]] = defaultdict(Counter)
        for one in self.shown:
            counts[one.item][one.verdict] += 1
        return dict(sorted(counts.items(), key=lambda row: (-_used(row[1]), row[1]["ignored"])))

    def difference(self, name: str) -> tuple[float, float, float] | None:
        """The mean of a session with memory less that without, and its 95 % interval.

        ``name`` is failures or tokens. None where an arm has fewer than 30 sessions.
        """
        on, off = (getattr(self.arms.get(arm, Arm()), name) for arm in ("on", "off"))
        if min(len(on), len(off)) < _MIN_SESSIONS:
            return None
        draw = random.Random(7)  # noqa: S311 - repeatable on purpose
        means = sorted(
            _mean(draw.choices(on, k=len(on))) - _mean(draw.choices(off, k=len(off)))
            for _ in range(_DRAWS)
        )
        return _mean(on) - _mean(off), means[_DRAWS // 40], means[-_DRAWS // 40]


def _used(counts: Counter[str]) -> int:
    return counts["cited"] + counts["followed"]


def _mean(values: Sequence[int]) -> float:
    return sum(values) / len(values)


def helped(memory: Memory, session: str | None = None) -> Helped:
    """Read what was shown in a space's sessions, or in one, and judge each by its transcript.

    With the setting ``feedback`` the verdicts become votes, which recalls weigh.
    """
    memory = memory.below(memory.settings.max_classification)
    shown: list[Shown] = []
    arms: dict[str, Arm] = {}
    which = "*" if session is None else session_state(memory, session).key
    for key, state in _states(sessions_folder(memory.settings, memory.store.space), which):
        entries = list(_entries(str(state.get("transcript") or "")))
        if entries:
            before = arms.get(str(state["arm"]), Arm())
            arms[str(state["arm"])] = Arm(
                before.sessions + 1,
                (*before.failures, sum(entry.failed for entry in entries)),
                (*before.tokens, sum(entry.tokens for entry in entries)),
            )
        if state["arm"] == "on":
            shown += (judged := list(_judged(memory, state["shown"], entries)))
            if memory.settings.feedback:
                _vote(memory, key, judged)
    return Helped(tuple(shown), arms)


def _vote(memory: Memory, session: str, judged: Sequence[Shown]) -> None:
    """Keep one vote of a session on each memory that is not of that session itself."""
    items = memory.store.items.get([one.item for one in judged])
    votes = {
        one.item: _VOTES[verdict]
        for verdict in reversed(_VOTES)
        for one in judged
        if one.verdict == verdict
        and session_state(memory, items[one.item].session or "").key != session
    }
    keep_votes(memory.settings, memory.store.space, session, votes, memory.now.timestamp())


def _states(folder: Path, which: str) -> Iterator[tuple[str, Json]]:
    for path in sorted(folder.glob(f"{which}.shown.json")):
        with suppress(OSError, ValueError, RecursionError):
            state = json.loads(path.read_bytes())
            if isinstance(state, dict) and isinstance(state.get("shown"), list):
                yield path.name.partition(".")[0], {"arm": "on", **state}


class _Entry(NamedTuple):
    """A line of a transcript: when, what was said or called, whether a call failed."""

    at: str
    text: str
    is_agent: bool
    failed: bool
    tokens: int


def _entries(path: str) -> Iterator[_Entry]:
    with suppress(OSError, ValueError), Path(path).open(encoding="utf-8", errors="replace") as file:
        for line in file:
            with suppress(ValueError, LookupError, AttributeError, TypeError, RecursionError):
                record = json.loads(line)
                content = record["message"]["content"]
                parts = content if isinstance(content, list) else [{"text": content}]
                usage = record["message"].get("usage") or {}
                yield _Entry(
                    str(record.get("timestamp") or ""),
                    " ".join(
                        str(part.get("text") or json.dumps(part.get("input") or ""))
                        for part in parts
                    ),
                    record.get("type") == "assistant",
                    any(part.get("is_error") is True for part in parts),
                    sum(int(usage.get(name) or 0) for name in ("input_tokens", "output_tokens")),
                )


def _judged(memory: Memory, rows: Sequence[Any], entries: Sequence[_Entry]) -> Iterator[Shown]:
    """Yield whether each memory that was shown in a session was used; erased ones are left out."""
    listed = [row for row in rows if isinstance(row, list) and len(row) == 4]
    items = memory.store.items.get([str(row[0]) for row in listed])
    for item_id, event, tokens, at in listed:
        item = items.get(str(item_id))
        if item is not None:
            verdict = _verdict(item, str(at), entries, memory)
            yield Shown(item.id, str(event), int(tokens), verdict)


def _verdict(item: Item, at: str, entries: Sequence[_Entry], memory: Memory) -> str:
    later = [entry for entry in entries if entry.at > at][:_MAX_LATER]
    if not later:
        return "unseen"
    said = " ".join(entry.text for entry in later if entry.is_agent)
    if item.id in said:
        return "cited"
    changed = item.live_to or (item.live_from if item.rev > 1 else None)
    if changed is not None and _is_within(changed, at, later[-1].at):
        return "corrected"
    before = " ".join(entry.text for entry in entries if entry.at <= at).casefold()
    words = {word for word in _distinctive(item.text, memory) if word not in before}
    return "followed" if any(word in said.casefold() for word in words) else "ignored"


def _is_within(moment: datetime, start: str, end: str) -> bool:
    with suppress(ValueError):
        return datetime.fromisoformat(start) <= moment <= datetime.fromisoformat(end)
    return False


def _distinctive(text: str, memory: Memory) -> Iterator[str]:
    """The names and long words of a text that few memories hold."""
    for word in dict.fromkeys(_TOKEN.findall(text)):
        if re.search(r"[\d_./:@-]", word) or len(word) >= 8 or not word.islower():
            terms = memory.store.search.terms(word)
            known = memory.store.search.statistics(terms).frequencies
            if terms and all(count <= _MAX_HOLDERS for count in known.values()):
                yield word.casefold()
