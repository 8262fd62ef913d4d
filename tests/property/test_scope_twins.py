"""The filters in SQL and the filters in words say the same about every item."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

from hypothesis import given, settings
from hypothesis import strategies as st

from bethink.model import LAYERS, LEVELS, Filters, Item, Status
from bethink.ports import Record, Scope
from bethink.retrieval.scope import rejection_reason
from bethink.store.sqlite import SqliteStore
from records import NOW, at, item, mention, record
from thorough import examples

NAMES = ("Ana", "Ben Ñandú", "C++", "vault B")
KINDS = ("note", "fact")
IDS = ("i0", "i1", "i2", "i3")
STATUSES: tuple[Status, ...] = ("active", "superseded", "quarantined")
WORDS = ("x", "y", "ß")
USERS = st.sampled_from((*WORDS, None, 7, {}, True))
HOURS = st.integers(-3, 3)
moments = st.builds(
    lambda hours, micros: at(hours=hours) + timedelta(microseconds=micros),
    HOURS,
    st.sampled_from((0, 0, 1, 999)),
)
maybe_moment = st.none() | HOURS.map(lambda hours: at(hours=hours))


PLACES = ("src/x.py", "src/x.py::f", "src/x.py::f@@given:::::3", 'src/ñ".py::%@@found:ab::::0')


def some(*values: str) -> st.SearchStrategy[tuple[str, ...]]:
    return st.lists(st.sampled_from(values), min_size=1, max_size=2).map(tuple)


@st.composite
def records(draw: st.DrawFn, number: int) -> Record:
    return record(
        f"i{number}",
        skip_duplicate=False,
        level=draw(st.sampled_from(LEVELS)),
        kind=draw(st.sampled_from(KINDS)),
        layer=draw(st.sampled_from((None, *LAYERS[:2]))),
        topic=draw(st.sampled_from((None, *WORDS))),
        tier=draw(st.sampled_from(WORDS)),
        tags=draw(st.just(()) | some(*WORDS)),
        source=draw(st.sampled_from(WORDS)),
        session=draw(st.sampled_from((None, *WORDS))),
        speaker=draw(st.sampled_from((None, *WORDS))),
        anchors=draw(st.just(()) | some(*PLACES)),
        metadata=draw(st.just({}) | st.fixed_dictionaries({"user_id": USERS})),
        trust=draw(st.integers(0, 3)),
        classification=draw(st.sampled_from((0, 1, 1, 2, 3))),
        status=draw(st.sampled_from(("active",) * 6 + ("superseded", "quarantined"))),
        pinned=draw(st.booleans()),
        stored_at=draw(HOURS.map(lambda hours: at(hours=hours))),
        occurred_at=draw(maybe_moment),
        valid_from=draw(st.sampled_from((None,) * 5) | maybe_moment),
        valid_to=draw(st.sampled_from((None,) * 5) | maybe_moment),
        mentions=tuple(mention(name) for name in draw(st.just(()) | some(*NAMES))),
    )


FIELDS: dict[str, st.SearchStrategy[object]] = {
    "ids": some("i0", "i1", "i2", "nobody"),
    "levels": some(*LEVELS),
    "kinds": some(*KINDS),
    "layers": some(*LAYERS[:2]),
    "topics": some(*WORDS),
    "tiers": some(*WORDS),
    "tags": some(*WORDS),
    "entities": some("Ana", "ANA", "person:ana", "ben ñandú", "C++", "vault b", "nobody"),
    "sources": some(*WORDS),
    "sessions": some(*WORDS),
    "speakers": some(*WORDS),
    "at": some("src/", "x.py", "::f", "src/x.py::f", "given", "@@", 'ñ"', "%"),
    "since": moments,
    "until": moments,
    "stored_by": moments,
    "min_trust": st.integers(0, 3),
    "max_classification": st.integers(0, 3),
    "include_superseded": st.booleans(),
    "include_expired": st.booleans(),
    "include_untopiced": st.booleans(),
    "users": some(*WORDS, "7", "{}"),
    "include_shared": st.booleans(),
}


UNTRUSTED = (False, False, False, True)


@st.composite
def scopes(draw: st.DrawFn) -> Scope:
    """One or two filters at a time: with more, everything is outside for some reason."""
    chosen = draw(st.lists(st.sampled_from(sorted(FIELDS)), min_size=1, max_size=2, unique=True))
    filters = Filters(**{name: draw(FIELDS[name]) for name in chosen})
    if filters.topics:
        filters = replace(filters, include_untopiced=draw(st.booleans()))
    if filters.users:
        filters = replace(filters, include_shared=draw(st.booleans()))
    return Scope(
        filters, draw(moments), draw(st.none() | moments), draw(st.sampled_from(UNTRUSTED))
    )


def as_stood(store: SqliteStore, where: Scope) -> list[Item]:
    """Every revision; of a scope in the past the one that stood then as it stood."""
    ids = [f"i{number}" for number in range(4)]
    then = {} if where.as_of is None else store.items.get(ids, as_of=where.as_of)
    stood = {(one.id, one.rev): one for one in then.values()}
    return [stood.get((one.id, one.rev), one) for key in ids for one in store.items.history(key)]


def wrong(store: SqliteStore, where: Scope) -> list[tuple[Item, str | None]]:
    """Items about which the two disagree, or which the two tell differently."""
    found = store.items.browse(where, limit=100)
    seen = {(one.id, one.rev) for one in found}
    every = as_stood(store, where)
    assert [one for one in found if one not in every] == []
    return [
        (one, rejection_reason(one, where))
        for one in every
        if ((one.id, one.rev) in seen) != (rejection_reason(one, where) is None)
    ]


@settings(max_examples=examples(20, 40))
@given(
    first=st.tuples(*(records(number) for number in range(4))),
    second=records(0),
    ended=st.sets(st.sampled_from(("i0", "i1", "i2")), max_size=1),
    judged=st.lists(st.tuples(st.sampled_from(IDS), st.sampled_from(STATUSES), HOURS), max_size=4),
    asked=st.lists(scopes(), min_size=25, max_size=25),
)
def test_sql_and_words_agree(
    first: tuple[Record, ...],
    second: Record,
    ended: set[str],
    judged: list[tuple[str, Status, int]],
    asked: list[Scope],
) -> None:
    """For live, revised, forgotten and judged items, now and at any moment, to the
    microsecond."""
    store = SqliteStore.open(None, space="twins")
    try:
        store.items.put(first, actor="x", now=at(hours=-2))
        later = record("i0", "a second revision", rev=2, **kept_fields(second))
        store.items.put([later], actor="x", now=NOW)
        store.items.end(sorted(ended), how="forgotten", actor="x", now=at(hours=1))
        for item_id, status, hour in sorted(judged, key=lambda one: one[2]):
            store.items.set_status([item_id], status, actor="x", now=at(hours=hour))

        for where in asked:
            assert wrong(store, where) == []
    finally:
        store.close()


def kept_fields(one: Record) -> dict[str, object]:
    names = ("kind", "topic", "tags", "status", "valid_to", "stored_at", "classification")
    return {**{name: getattr(one.item, name) for name in names}, "mentions": one.mentions}


def test_reasons_are_told_in_words() -> None:
    """Each says which rule and by how much."""
    now = Scope(Filters(), at(days=1))
    cases = {
        "ended on 2026-03-02 (forgotten)": (
            item("a", live_to=NOW, ended_by="forgotten"),
            now,
        ),
        "stored on 2026-03-02, after 2026-03-01": (
            item("a", live_from=NOW),
            Scope(Filters(), NOW, at(days=-1)),
        ),
        "its status is quarantined": (item("a", status="quarantined"), now),
        "expired on 2026-03-02": (item("a", valid_to=NOW), now),
        "not valid before 2026-03-05": (item("a", valid_from=at(days=3)), now),
        "classification 3 is above the ceiling 2": (item("a", classification=3), now),
        "trust 1 is below the required 2": (
            item("a", trust=1),
            Scope(Filters(min_trust=2), NOW),
        ),
        "trust 1 is not 0": (item("a", trust=1), now._replace(untrusted=True)),
        "happened on 2026-03-02, before 2026-03-03": (
            item("a"),
            Scope(Filters(since=at(days=1)), NOW),
        ),
        "happened on 2026-03-02, not before 2026-03-02": (
            item("a"),
            Scope(Filters(until=NOW), NOW),
        ),
        "has kind 'note', not 'fact' or 'rule'": (
            item("a"),
            Scope(Filters(kinds=("fact", "rule")), NOW),
        ),
        "has no topic, not 'ops'": (item("a"), Scope(Filters(topics=("ops",)), NOW)),
        "lacks the tag 'x'": (item("a", tags=("y",)), Scope(Filters(tags=("y", "x")), NOW)),
        "does not mention 'Ana'": (item("a"), Scope(Filters(entities=("Ana",)), NOW)),
    }

    for reason, (one, where) in cases.items():
        assert rejection_reason(one, where) == reason
    assert rejection_reason(item("a"), now) is None
