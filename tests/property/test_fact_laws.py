"""Laws of facts and corrections."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from hypothesis import given, settings
from hypothesis import strategies as st

from recollect.ids import IdMaker
from recollect.ingest.facts import fact_of
from recollect.ingest.release import reclaim, release
from recollect.ingest.remember import WriteContext, remember
from recollect.model import Draft
from recollect.store.sqlite import SqliteStore

NOW = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)

statements = st.builds(
    lambda subject, wording, value: wording.format(subject, value),
    st.sampled_from(("deploy key", "limit", "timeout")),
    st.sampled_from(("The {} is {}", "The {} is now {}", "The {} was changed to {}",
                     "We changed the {} to {}", "The {} is not {}", "The {} may be {}")),
    st.sampled_from(("5", "10", "20", "Main", "30 s")),
)  # fmt: skip
drafts = st.builds(
    lambda text, day, source: Draft(
        text, occurred_at=NOW - timedelta(days=day), source_class=source
    ),
    statements,
    st.integers(0, 6),
    st.sampled_from(("user", "agent", "tool", "web")),
)


def context(store: SqliteStore, minutes: int = 0) -> WriteContext:
    return WriteContext(store, None, NOW + timedelta(minutes=minutes), "t", IdMaker())


def corrections(store: SqliteStore, ids: list[str]) -> list[tuple[str, str]]:
    links = store.links_of(ids, ["supersedes"], incoming=False)
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
    items = store.get([answer.id for answer in answers])

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
    before = {key: item.status for key, item in store.get(ids).items()}
    ctx = context(store, 60)

    release([gone], ctx)
    store.end([gone], how="forgotten", actor="t", now=ctx.now)
    store.restore([gone], actor="t", now=ctx.now + timedelta(minutes=1))
    reclaim([gone], context(store, 62))

    assert {key: item.status for key, item in store.get(ids).items()} == before
    store.close()


@settings(deadline=None)
@given(st.text(max_size=400))
def test_any_text_is_read(text):
    """A fact has a subject, an attribute and a value, or there is none."""
    fact = fact_of(text, "user")

    assert fact is None or (fact.subject and fact.attribute and fact.value)


@settings(deadline=None)
@given(st.lists(st.sampled_from(
    ["the", "a", "my", "we", "is", "are", "not", "no", "longer", "moved", "from", "to", "in", "of", "for", "'s", ",", "A", "5", "key", "vault", "B", "was", "set", "=", "took", "over"]
), max_size=14))  # fmt: skip
def test_any_words_are_read(words):
    """However they stand."""
    fact = fact_of(" ".join(words), None)

    assert fact is None or (fact.subject and fact.attribute and fact.value)
