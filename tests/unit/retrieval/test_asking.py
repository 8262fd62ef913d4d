"""Questions within the limits, and words for those that are not."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from bethink.errors import BadText, Refused, TooLarge
from bethink.model import Filters, Query, id_checksum
from bethink.retrieval.query_builder import (
    MAX_QUERY_BYTES,
    RecallDefaults,
    RecallRequest,
    build_query,
    encode_cursor,
    make_filters,
)
from corpus import NOW
from rows import each_row


def built(ask: RecallRequest, filters: Filters | None = None) -> Query:
    return build_query(ask, filters or Filters(), RecallDefaults(10, 2000), now=NOW)


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


@each_row(
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
    assert built(RecallRequest("x" * MAX_QUERY_BYTES)).text == "x" * MAX_QUERY_BYTES
    with pytest.raises(TooLarge) as error:
        built(RecallRequest("x" * (MAX_QUERY_BYTES + 1)))
    assert "8,193 bytes; the limit is 8,192" in error.value.message


@each_row(
    ("ask", "rule"),
    [
        (RecallRequest(""), Refused),
        (RecallRequest("  \n"), Refused),
        (RecallRequest("a\0b"), BadText),
        (RecallRequest("a\ud800b"), BadText),
        (RecallRequest("x", k=0), Refused),
        (RecallRequest("x", k=201), Refused),
        (RecallRequest("x", k=True), Refused),
        (RecallRequest("x", offset=-1), Refused),
        (RecallRequest("x", max_tokens=0), Refused),
        (RecallRequest("x", cursor="nonsense"), Refused),
        (RecallRequest("x", cursor="é"), Refused),
        (RecallRequest("x", as_of="whenever"), Refused),
    ],
)
def test_a_bad_question_is_refused(ask: RecallRequest, rule: type[Refused]) -> None:
    """Nothing is searched for it."""
    with pytest.raises(rule):
        built(ask)


def test_a_cursor_carries_the_moment_and_what_was_seen() -> None:
    """The next page leaves out what came later, and is only for the same question."""
    first = built(RecallRequest("deploy key", k=3))
    second = built(
        RecallRequest("deploy key", k=3, cursor=(cursor := encode_cursor(first, ["a", "b"])))
    )
    third = built(RecallRequest("deploy key", k=3, cursor=encode_cursor(second, ["c"])))

    assert second.seen == {id_checksum("a"), id_checksum("b")}
    assert third.seen == second.seen | {id_checksum("c")}
    assert second.as_of is third.as_of is None
    assert second.filters.stored_by == third.filters.stored_by == NOW
    with pytest.raises(Refused):
        built(RecallRequest("another question", cursor=cursor))


def test_a_cursor_into_the_past_stays_there() -> None:
    """Who asked as of a moment goes on as of that moment, whatever was forgotten since."""
    first = built(RecallRequest("deploy key", as_of=NOW - timedelta(days=3, milliseconds=1)))
    second = built(RecallRequest("deploy key", cursor=encode_cursor(first, ["a"])))

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
