"""What holds for times in any text: no error, no overlap, no influence, work in proportion."""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime, timedelta, timezone
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from bethink.lang.dates import find_events, find_times, parse_moment
from bethink.lang.dates.absolute import easter_date
from rows import each_row

NOW = datetime(2026, 11, 15, 14, 30, tzinfo=UTC)
_WORDS = """last this next past week month March may Friday fri the of in ago two 3 12 31 2023 2019
-  / . : , ' s q 4 h st th am pm at from to between and since until before after by end early mid
first second half day days year weekend summer Christmas new eve easter noon o clock recently
other days 90 yesterday today tonight lunch morning
vor zwei Wochen letzte Woche im März am 8. Mai bis seit gestern Abend Uhr KW Montagabend
la semana pasada hace dos días ayer por la mañana finales del mes entre mayo y junio
il y a deux semaines dernière jours hier soir fin mi été jusqu'à depuis week-end 15h30
上周 五 三 个 月 前 天 昨天 2023年 5月 8日 最近 底 下午 点 半 周 末 到 以来 之前"""
WORDS = _WORDS.split()
MIXED = st.lists(st.sampled_from(WORDS), max_size=14).flatmap(
    lambda words: st.sampled_from([" ".join(words), "".join(words)])
)
ANCHORS = st.one_of(
    st.datetimes(timezones=st.just(UTC)),
    st.datetimes(timezones=st.just(timezone(timedelta(hours=-9, minutes=30)))),
)


@given(st.one_of(MIXED, st.text(max_size=80)), ANCHORS, st.booleans(), st.booleans())
def test_any_text_can_be_read(text, anchor, past, vague):
    """Never an error; every time ends after it begins; in order, inside, without overlap."""
    spans = find_times(text, anchor, lean="past" if past else "nearest", vague=vague)

    assert all(span.start < span.end for span in spans)
    assert all(span.start.tzinfo is anchor.tzinfo for span in spans)
    assert all(text[span.at : span.at + len(span.text)] == span.text != "" for span in spans)
    assert all(one.at + len(one.text) <= two.at for one, two in pairwise(spans))
    assert spans == find_times(text, anchor, lean="past" if past else "nearest", vague=vague)
    find_events(text, spans)


def test_the_ends_of_the_calendar_break_no_range():
    """Where a range would reach beyond the years a clock knows, its ends stand alone."""
    for edge in (datetime(9999, 12, 31, 23, 59, tzinfo=UTC), datetime(1, 1, 1, tzinfo=UTC)):
        for text in (
            "from 9999-11-01 to May",
            "from 0001-02-01 to January",
            "from Friday to Monday",
            "tomorrow from 9 pm to 11 pm",
            "between December and January 0001",
            "9999-12-31 between 10 pm and 11:59 pm",
        ):
            for lean in ("past", "nearest"):
                spans = find_times(text, edge, lean=lean, vague=True)
                assert all(span.start < span.end for span in spans)


SURE = ["2026-03-01", "last week", "two weeks ago", "since last Tuesday", "in March 2024", "Q3 2024",
        "end of last month", "letzte Woche", "vor zwei Wochen", "la semana pasada", "yesterday at 3pm",
        "la semaine dernière", "il y a deux semaines", "上个月"]  # fmt: skip
NEUTRAL = st.text(st.sampled_from("bcdfgjkxz ,;!?\n"), max_size=40)


@given(st.sampled_from(SURE), NEUTRAL, NEUTRAL)
def test_what_stands_around_makes_no_difference(text, before, after):
    """A time is the same alone and in the middle of other things."""
    alone = find_times(text, NOW)
    amid = find_times(f"{before}. {text} . {after}", NOW)

    assert [span[:4] for span in amid] == [span[:4] for span in alone] != []
    assert [span.bound for span in amid] == [span.bound for span in alone]


@given(st.lists(st.sampled_from(SURE), min_size=2, max_size=6))
def test_times_do_not_disturb_each_other(texts):
    """Sentence by sentence, whatever their languages."""
    together = find_times(" . ".join(texts), NOW)

    assert [span[:4] for span in together] == [
        span[:4] for text in texts for span in find_times(text, NOW)
    ]


@given(MIXED, ANCHORS)
def test_a_moment_or_a_sentence(text, anchor):
    """A caller's words are read as a moment in UTC or refused; nothing else."""
    with suppress(ValueError):
        assert parse_moment(text, anchor).tzinfo is UTC


@given(st.integers(1583, 4099))
def test_easter_is_a_sunday_in_spring(year):
    """From 22 March to 25 April."""
    month, day = easter_date(year)

    assert datetime(year, month, day, tzinfo=UTC).weekday() == 6
    assert (3, 22) <= (month, day) <= (4, 25)


HOSTILE = [
    "last ",
    "last last week ",
    "1 ",
    "1",
    "2023-",
    "2023-2023-2023 ",
    "14:30 ",
    "12:",
    "a few ",
    "a ",
    "in a few of ",
    "first week of ",
    "end of the end of ",
    "early ",
    "from Monday to ",
    "between ",
    "may 8 ",
    "monday ",
    "q1",
    "new year's ",
    "before the ",
    "since ",
    "vor ",
    "vor zwei ",
    "letzte ",
    "hace ",
    "pasada semana ",
    "il y a ",
    "dernier mois ",
    "三",
    "三月",
    "上",
    "2023年",
    "个月前",
    "é",
    "'",
    ".",
    " ",
]


def calls(work: Callable[[], object]) -> int:
    """How many functions were called: a measure of work that no clock disturbs."""
    count = 0

    def counted(frame: object, event: str, argument: object) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(counted)
    try:
        work()
    finally:
        sys.setprofile(before)
    return count


@each_row("piece", HOSTILE)
@each_row("find", [lambda text: find_times(text, NOW, vague=True), find_events])
def test_work_grows_with_the_text_and_no_faster(piece, find):
    """Four times the text is at most about four times the work."""
    work = []
    for size in (1 << 9, 1 << 11, 1 << 13):
        text = (piece * size)[:size]
        work.append(calls(lambda text=text: find(text)))

    assert work[1] <= 4.4 * work[0] + 200
    assert work[2] <= 4.4 * work[1] + 200


@each_row("piece", HOSTILE[::6])
def test_a_megabyte_is_no_more_work_than_the_longest_text(piece):
    """What is longer than any text that can be stored is cut before it is read."""
    longest = piece * (1 + (1 << 16) // len(piece))
    megabyte = piece * ((1 << 20) // len(piece))

    less = calls(lambda: find_times(longest[: 1 << 16], NOW))
    more = calls(lambda: find_times(megabyte, NOW))

    assert more <= 1.01 * less + 10
    assert less <= 60 * (1 << 16)
