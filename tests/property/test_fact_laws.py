"""Laws of facts and corrections."""

from __future__ import annotations

from collections import defaultdict
from datetime import UTC, datetime, timedelta

from hypothesis import given, settings
from hypothesis import strategies as st

from bethink.config.settings import Settings
from bethink.core.ids import IdGenerator
from bethink.ingest.facts import extract_fact
from bethink.ingest.pipeline import WriteContext, remember
from bethink.ingest.revision import reactivate_superseded, supersede_again
from bethink.memory import Memory
from bethink.model import Draft
from bethink.store.sqlite import SqliteStore
from bethink.testing import FixedClock
from fact_pairs import FLAGGED, SUPERSEDED, TRAPS, pairs

NOW = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)

statements = st.builds(
    lambda subject, wording, value: wording.format(subject, value),
    st.sampled_from(("deploy key", "limit", "timeout")),
    st.sampled_from(("The {} is {}", "The {} is now {}", "The {} was changed to {}",
                     "We changed the {} to {}", "The {} is not {}", "The {} may be {}")),
    st.sampled_from(("5", "10", "20", "Main", "30 s")),
)  # fmt: skip
told_pairs = st.sampled_from([*pairs(SUPERSEDED), *pairs(FLAGGED), *pairs(TRAPS)])
BY_SLOT = defaultdict(set)
for _text in (
    text for table in (SUPERSEDED, FLAGGED, TRAPS) for two in pairs(table) for text in two
):
    _fact = extract_fact(_text, "user")
    if _fact is not None:
        BY_SLOT[_fact[:2]].add(_text)
# Statements of one subject and attribute, in any number and order.
rivals = st.sampled_from(sorted(sorted(texts) for texts in BY_SLOT.values())).flatmap(
    lambda texts: st.lists(st.sampled_from(texts), min_size=1, max_size=6)
)
drafts = st.builds(
    lambda text, day, source: Draft(
        text, occurred_at=NOW - timedelta(days=day), source_class=source
    ),
    st.one_of(statements, told_pairs.map(lambda pair: pair[1])),
    st.integers(0, 6),
    st.sampled_from(("user", "agent", "tool", "web")),
)


def context(store: SqliteStore, minutes: int = 0) -> WriteContext:
    return WriteContext(store, None, NOW + timedelta(minutes=minutes), "t", IdGenerator())


def corrections(store: SqliteStore, ids: list[str]) -> list[tuple[str, str]]:
    links = store.graph.links_of(ids, ["supersedes"], incoming=False)
    return [(link.src.id, link.dst.id) for link in links]


@settings(deadline=None, max_examples=60)
@given(st.lists(drafts, min_size=1, max_size=8), st.booleans())
def test_corrections_lead_from_newer_to_older_and_never_round(pool, batch):
    """An older fact supersedes no newer one, a distrusted one none that is trusted more, and
    of every slot something stands."""
    store = SqliteStore.open(None, space="laws")
    if batch:
        answers = remember(pool, context(store))
    else:
        answers = [remember([one], context(store, n))[0] for n, one in enumerate(pool)]
    items = store.items.get([answer.id for answer in answers])

    for newer, older in corrections(store, list(items)):
        first, second = items[newer], items[older]
        assert first.when >= second.when
        assert first.trust >= second.trust
    seen: set[str] = set()
    for item in sorted(items.values(), key=lambda one: (one.when, one.id)):
        seen.add(item.id)
    edges = corrections(store, list(items))
    left = set(items)
    while True:  # a graph without cycles can be taken apart from its ends
        ends = left - {src for src, dst in edges if src in left and dst in left}
        if not ends:
            break
        left -= ends
    assert not left
    slots = {(item.subject, item.attribute) for item in items.values() if item.subject}
    for slot in slots:
        held = [one for one in items.values() if (one.subject, one.attribute) == slot]
        assert any(one.status == "active" for one in held)
    store.close()


@settings(deadline=None, max_examples=40)
@given(st.lists(drafts, min_size=2, max_size=6), st.integers(0, 5))
def test_forgetting_and_restoring_a_memory_changes_no_standing(pool, which):
    """Whatever came back with it goes again with it."""
    store = SqliteStore.open(None, space="laws")
    answers = [remember([one], context(store, n))[0] for n, one in enumerate(pool)]
    ids = list(dict.fromkeys(answer.id for answer in answers))
    gone = ids[which % len(ids)]
    before = {key: item.status for key, item in store.items.get(ids).items()}
    ctx = context(store, 60)

    reactivate_superseded([gone], ctx)
    store.items.end([gone], how="forgotten", actor="t", now=ctx.now)
    store.items.restore([gone], actor="t", now=ctx.now + timedelta(minutes=1))
    supersede_again([gone], context(store, 62))

    assert {key: item.status for key, item in store.items.get(ids).items()} == before
    store.close()


def told(texts: list[str], order: list[int], *, batch: bool) -> dict[str, tuple[str, set[str]]]:
    """What stands of statements of one day each, written in an order, and what each replaced."""
    store = SqliteStore.open(None, space="laws")
    days = [Draft(text, occurred_at=NOW - timedelta(days=9 - n)) for n, text in enumerate(texts)]
    if batch:
        answers = remember([days[at] for at in order], context(store))
    else:
        answers = [remember([days[at]], context(store, n))[0] for n, at in enumerate(order)]
    items = store.items.get([answer.id for answer in answers])
    edges = corrections(store, list(items))
    store.close()
    return {
        item.text: (item.status, {items[dst].text for src, dst in edges if src == item.id})
        for item in items.values()
    }


@settings(deadline=None, max_examples=30)
@given(told_pairs)
def test_of_two_statements_the_same_stands_however_they_are_written(pair):
    """One after the other, late, or in one batch, in any order."""
    first = told(list(pair), [0, 1], batch=False)

    assert told(list(pair), [1, 0], batch=False) == first
    assert told(list(pair), [0, 1], batch=True) == first
    assert told(list(pair), [1, 0], batch=True) == first


@settings(deadline=None, max_examples=80)
@given(rivals, st.randoms(use_true_random=False), st.booleans())
def test_the_newest_stands_and_whatever_went_was_replaced(texts, chance, batch):
    """Of any number of statements about one thing."""
    texts = list(dict.fromkeys(texts))
    order = list(range(len(texts)))
    chance.shuffle(order)

    standing = told(texts, order, batch=batch)

    replaced = set().union(*(others for _, others in standing.values()))
    assert standing[texts[-1]][0] == "active"
    assert all(text in replaced for text, (status, _) in standing.items() if status != "active")
    for text, (_, others) in standing.items():
        assert all(texts.index(other) < texts.index(text) for other in others)


@settings(deadline=None, max_examples=30)
@given(st.sampled_from(pairs(SUPERSEDED)))
def test_the_past_is_answered_by_what_stood_then(pair):
    """And the present by the correction alone; an undo lets both stand."""
    clock = FixedClock(NOW)
    with Memory.open(":memory:", embedder="none", settings=Settings(), clock=clock) as memory:
        old = memory.remember(pair[0]).id
        clock.forward(days=1)
        then = clock.now
        clock.forward(days=1)
        new = memory.remember(pair[1]).id
        clock.forward(days=1)

        def found(**when) -> set[str]:
            return {hit.item.id for hit in memory.recall(pair[0], **when).hits}

        assert old in found(as_of=then)
        assert new not in found(as_of=then)
        assert old not in found()
        memory.undo(old)
        assert old in found()


@settings(deadline=None)
@given(st.text(max_size=400))
def test_any_text_is_read(text):
    """A fact has a subject, an attribute and a value, or there is none."""
    fact = extract_fact(text, "user")

    assert fact is None or (fact.subject and fact.attribute and fact.value)


@settings(deadline=None)
@given(st.lists(st.sampled_from(
    ["the", "a", "my", "we", "is", "are", "not", "no", "longer", "moved", "from", "to", "in", "of", "for", "'s", ",", "A", "5", "key", "vault", "B", "was", "set", "=", "took", "over", "now", "as", "today", "runs", "cut", "on", "Mondays", "every", "has", "items", "done", "Ana", "engineer", "instead", "prefer", "go", "last", "month", "up"]
), max_size=14))  # fmt: skip
def test_any_words_are_read(words):
    """However they stand."""
    fact = extract_fact(" ".join(words), None)

    assert fact is None or (fact.subject and fact.attribute and fact.value)
