"""Questions within the limits, and words for those that are not."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from corpus import NOW
from recollect.asking import (
    MAX_QUERY_BYTES,
    Ask,
    Limits,
    build_query,
    make_filters,
    next_cursor,
)
from recollect.errors import BadText, Refused, TooLarge
from recollect.model import Filters, Query, mark_of


def built(ask: Ask, filters: Filters | None = None) -> Query:
    return build_query(ask, filters or Filters(), Limits(10, 2000), now=NOW)


def test_one_value_stands_for_many() -> None:
    """Singular and plural names, one text or a list, all give tuples."""
    filters = make_filters(
        {"kind": "fact", "tags": ["a", "b"], "since": "2026-01-01", "until": None}, NOW
    )

    assert filters.kinds == ("fact",)
    assert filters.tags == ("a", "b")
    assert filters.since == datetime(2026, 1, 1, tzinfo=UTC)
    assert filters.until is None


def test_times_may_be_words() -> None:
    """'yesterday' counts from the query's own clock."""
    filters = make_filters({"since": "yesterday"}, NOW)

    assert filters.since == (NOW - timedelta(days=1)).replace(hour=0)


@pytest.mark.parametrize(
    "where",
    [{"colour": "red"}, {"kind": [3]}, {"since": "soonish"}, {"since": 5}, {"kind": "a\0b"}],
)
def test_a_bad_filter_is_refused_by_name(where: dict[str, object]) -> None:
    """The error names the filter."""
    with pytest.raises(Refused) as error:
        make_filters(where, NOW)

    assert next(iter(where)) in error.value.message


def test_a_question_is_never_cut_short() -> None:
    """At the limit it is taken, one byte over it is refused with both numbers."""
    assert built(Ask("x" * MAX_QUERY_BYTES)).text == "x" * MAX_QUERY_BYTES
    with pytest.raises(TooLarge) as error:
        built(Ask("x" * (MAX_QUERY_BYTES + 1)))
    assert "8,193 bytes; the limit is 8,192" in error.value.message


@pytest.mark.parametrize(
    ("ask", "rule"),
    [
        (Ask(""), Refused),
        (Ask("  \n"), Refused),
        (Ask("a\0b"), BadText),
        (Ask("a\ud800b"), BadText),
        (Ask("x", k=0), Refused),
        (Ask("x", k=201), Refused),
        (Ask("x", k=True), Refused),
        (Ask("x", offset=-1), Refused),
        (Ask("x", max_tokens=0), Refused),
        (Ask("x", cursor="nonsense"), Refused),
        (Ask("x", cursor="é"), Refused),
        (Ask("x", as_of="whenever"), Refused),
    ],
)
def test_a_bad_question_is_refused(ask: Ask, rule: type[Refused]) -> None:
    """Nothing is searched for it."""
    with pytest.raises(rule):
        built(ask)


def test_a_cursor_carries_the_moment_and_what_was_seen() -> None:
    """The next page leaves out what came later, and is only for the same question."""
    first = built(Ask("deploy key", k=3))
    second = built(Ask("deploy key", k=3, cursor=(cursor := next_cursor(first, ["a", "b"]))))
    third = built(Ask("deploy key", k=3, cursor=next_cursor(second, ["c"])))

    assert second.seen == {mark_of("a"), mark_of("b")}
    assert third.seen == second.seen | {mark_of("c")}
    assert second.as_of is third.as_of is None
    assert second.filters.stored_by == third.filters.stored_by == NOW
    with pytest.raises(Refused):
        built(Ask("another question", cursor=cursor))


def test_a_cursor_into_the_past_stays_there() -> None:
    """Who asked as of a moment goes on as of that moment, whatever was forgotten since."""
    first = built(Ask("deploy key", as_of=NOW - timedelta(days=3, milliseconds=1)))
    second = built(Ask("deploy key", cursor=next_cursor(first, ["a"])))

    assert second.as_of == first.as_of
    assert second.filters.stored_by is None


@pytest.mark.parametrize(
    ("given", "layer"), [("decisions", "learning"), (" WHY ", "goal"), ("caveat", "caveat")]
)
def test_a_layer_may_go_by_an_alias(given: str, layer: str) -> None:
    """The filter holds the layer's own name."""
    assert make_filters({"layer": given}, NOW).layers == (layer,)


@pytest.mark.parametrize("where", [{"layer": "vibes"}, {"band": "tepid"}, {"bands": ["hot", ""]}])
def test_a_value_out_of_a_fixed_set_is_refused_with_the_set(where: dict[str, object]) -> None:
    """Nothing is searched for a layer or a band that there is not."""
    with pytest.raises(Refused) as error:
        make_filters(where, NOW)

    assert ("pitfalls" if "layer" in where else "hot, warm, cold, frozen") in error.value.remedy
