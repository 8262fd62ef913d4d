"""Threads through the facade: what may be stored, and what is refused."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from bethink import Memory, Settings
from bethink.errors import BethinkError, NotFound, Refused
from bethink.ingest.admission import admit_thread
from bethink.model import Member, Thread, ThreadEvent
from bethink.testing import FixedClock
from corpus import NOW
from rows import each_row

KEY = "sk-proj-Ab3dE5fG7hJ9kL1mN3pQ5rS7tU9vW1xY3zA5bC7dE9fG1hJ3"


@pytest.fixture
def plain() -> Iterator[Memory]:
    with Memory.open(":memory:", embedder="none", clock=FixedClock(NOW)) as opened:
        for name in "ab":
            opened.remember(f"Memory {name}", id=name)
        yield opened


def test_a_thread_is_stored_and_changed(plain: Memory) -> None:
    """By its headline and members; the same id again replaces it."""
    first = plain.put_thread("Deploy keys", ["b", Member("a", "trigger", 0.4)], kind="work")

    assert plain.thread(first.id) == first
    assert [member.item for member in first.members] == ["a", "b"]
    again = plain.put_thread("Keys", ["a"], id=first.id, state="resolved")
    assert plain.threads() == [again]
    assert again.created_at == first.created_at


def test_an_export_keeps_threads(plain: Memory) -> None:
    """Everything of them."""
    plain.put_thread("Keys", ["a"], events=(ThreadEvent(1, "update", NOW, "a"),))
    with Memory.open(":memory:", embedder="none") as other:
        other.import_(plain.export())

        assert other.threads() == plain.threads()


def test_a_secret_in_a_headline_is_taken_out(plain: Memory) -> None:
    """As everywhere else."""
    kept = plain.put_thread(f"Rotate {KEY}", ["a"])

    assert KEY not in kept.headline


def test_what_is_not_there_is_said(plain: Memory) -> None:
    """A thread, a memory, a field."""
    with pytest.raises(NotFound):
        plain.thread("nowhere")
    with pytest.raises(NotFound):
        plain.put_thread("Keys", ["zz"])
    with pytest.raises(Refused, match="colour"):
        plain.put_thread("Keys", ["a"], colour="red")
    assert plain.threads() == []


GOOD = Thread("t", "Keys", members=(Member("a"),))
WRONG = [
    {"id": "a b"}, {"headline": "…"}, {"headline": 5}, {"headline": "nul\x00"},
    {"headline": "x" * 1001}, {"kind": "chat"}, {"lifecycle": "open"}, {"state": "done"},
    {"members": ()}, {"members": (Member("a"), Member("a"))}, {"anchor": "\ud800"},
    {"members": (Member("a", "boss"),)}, {"members": (Member("a", weight=1.1),)},
    {"members": (Member("a", weight=float("nan")),)}, {"members": (Member("a", weight=True),)},
    {"members": (Member("a", added_at=NOW.replace(tzinfo=None)),)},
    {"members": tuple(Member(f"m{n}") for n in range(1001))},
    {"events": (ThreadEvent(1, "party", NOW),)},
    {"events": (ThreadEvent(1, "update", NOW.replace(tzinfo=None)),)},
    {"events": (ThreadEvent(1, "update", NOW), ThreadEvent(1, "update", NOW))},
    {"events": (ThreadEvent("1", "update", NOW),)}, {"members": (Member(5),)},
    {"events": (ThreadEvent(2**70, "update", NOW),)},
    {"events": (ThreadEvent(1, "update", NOW, 5),)},
]  # fmt: skip


@each_row("change", WRONG)
def test_a_thread_that_breaks_a_rule_is_refused(change: dict[str, object]) -> None:
    """Each rule by itself; the thread without the change is fine."""
    assert admit_thread(GOOD) == GOOD
    with pytest.raises(BethinkError):
        admit_thread(GOOD._replace(**change))


@each_row("page", [{"limit": -1}, {"limit": 0}, {"limit": True}, {"offset": -1}])
@each_row("classification", [2, 3])
def test_a_page_of_threads_is_checked(
    plain: Memory, page: dict[str, int], classification: int
) -> None:
    """A limit or an offset out of range is refused, as in every other list."""
    seen = plain.using(settings=Settings(max_classification=classification))

    with pytest.raises(Refused, match="must be a whole number"):
        seen.threads(**page)
