"""Dates found in texts."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta, timezone
from itertools import pairwise

from bethink.lang.dates import TimeSpan, date_words, find_times
from naughty import NAUGHTY
from rows import each_row

# A Monday.
ANCHOR = datetime(2023, 5, 8, 13, 56, tzinfo=UTC)


def shown(span: TimeSpan) -> tuple[str, str, str]:
    """Start and end as short as they can be, and the granularity."""

    def plain(moment: datetime) -> str:
        clock = f"T{moment:%H:%M}" if moment.hour or moment.minute else ""
        return f"{moment:%Y-%m-%d}{clock}"

    return plain(span.start), plain(span.end), span.granularity


ABSOLUTE = [
    ("2023-05-08", "2023-05-08", "2023-05-09", "day"),
    ("2023/05/08", "2023-05-08", "2023-05-09", "day"),
    ("2023-5-8", "2023-05-08", "2023-05-09", "day"),
    ("08.05.2023", "2023-05-08", "2023-05-09", "day"),
    ("8.5.2023", "2023-05-08", "2023-05-09", "day"),
    ("05/13/2023", "2023-05-13", "2023-05-14", "day"),
    ("13/05/2023", "2023-05-13", "2023-05-14", "day"),
    ("05/08/2023", "2023-05-08", "2023-05-09", "day"),
    ("2023-05-08T14:30:00Z", "2023-05-08T14:30", "2023-05-08T14:31", "minute"),
    ("2023-05-08 14:30", "2023-05-08T14:30", "2023-05-08T14:31", "minute"),
    ("2023-05-08T14:30:15.123+02:00", "2023-05-08T12:30", "2023-05-08T12:31", "minute"),
    ("2023-05", "2023-05-01", "2023-06-01", "month"),
    ("2023-W19", "2023-05-08", "2023-05-15", "week"),
    ("8 May 2023", "2023-05-08", "2023-05-09", "day"),
    ("8th May 2023", "2023-05-08", "2023-05-09", "day"),
    ("8th of May, 2023", "2023-05-08", "2023-05-09", "day"),
    ("May 8, 2023", "2023-05-08", "2023-05-09", "day"),
    ("May 8th 2023", "2023-05-08", "2023-05-09", "day"),
    ("Sept. 3, 2021", "2021-09-03", "2021-09-04", "day"),
    ("3 dec 2021", "2021-12-03", "2021-12-04", "day"),
    ("Monday, 8 May 2023", "2023-05-08", "2023-05-09", "day"),
    ("Sun, 7 May 2023", "2023-05-07", "2023-05-08", "day"),
    ("May 3-5, 2023", "2023-05-03", "2023-05-06", "day"),
    ("3 to 5 May 2023", "2023-05-03", "2023-05-06", "day"),
    ("March 2024", "2024-03-01", "2024-04-01", "month"),
    ("Q3 2024", "2024-07-01", "2024-10-01", "quarter"),
    ("summer 2022", "2022-06-01", "2022-09-01", "season"),
    ("winter of 2022", "2022-12-01", "2023-03-01", "season"),
    ("in 2022", "2022-01-01", "2023-01-01", "year"),
    ("the 1990s", "1990-01-01", "2000-01-01", "decade"),
    ("1:56 pm on 8 May, 2023", "2023-05-08T13:56", "2023-05-08T13:57", "minute"),
    ("May 8, 2023 at 3pm", "2023-05-08T15:00", "2023-05-08T16:00", "hour"),
    ("8 May 2023, 9:05", "2023-05-08T09:05", "2023-05-08T09:06", "minute"),
    ("noon on 8 May 2023", "2023-05-08T12:00", "2023-05-08T13:00", "hour"),
    ("8 May 2023 in the evening", "2023-05-08T17:00", "2023-05-08T23:00", "part"),
    ("12 a.m. on 8 May 2023", "2023-05-08", "2023-05-08T01:00", "hour"),
    ("from 3 May 2022 to 5 June 2022", "2022-05-03", "2022-06-06", "day"),
    ("between March 2022 and May 2022", "2022-03-01", "2022-06-01", "month"),
]
RELATIVE = [
    ("today", "2023-05-08", "2023-05-09", "day"),
    ("yesterday", "2023-05-07", "2023-05-08", "day"),
    ("tomorrow", "2023-05-09", "2023-05-10", "day"),
    ("the day before yesterday", "2023-05-06", "2023-05-07", "day"),
    ("the day after tomorrow", "2023-05-10", "2023-05-11", "day"),
    ("yesterday evening", "2023-05-07T17:00", "2023-05-07T23:00", "part"),
    ("yesterday at 14:30", "2023-05-07T14:30", "2023-05-07T14:31", "minute"),
    ("last night", "2023-05-07T18:00", "2023-05-08T06:00", "part"),
    ("tonight", "2023-05-08T18:00", "2023-05-09T06:00", "part"),
    ("this morning", "2023-05-08T05:00", "2023-05-08T12:00", "part"),
    ("last Friday", "2023-05-05", "2023-05-06", "day"),
    ("last Monday", "2023-05-01", "2023-05-02", "day"),
    ("this Friday", "2023-05-12", "2023-05-13", "day"),
    ("next Friday", "2023-05-19", "2023-05-20", "day"),
    ("on Friday", "2023-05-05", "2023-05-06", "day"),
    ("on Wednesday", "2023-05-10", "2023-05-11", "day"),
    ("Friday night", "2023-05-05T18:00", "2023-05-06T06:00", "part"),
    ("last week", "2023-05-01", "2023-05-08", "week"),
    ("this week", "2023-05-08", "2023-05-15", "week"),
    ("next month", "2023-06-01", "2023-07-01", "month"),
    ("last month", "2023-04-01", "2023-05-01", "month"),
    ("last quarter", "2023-01-01", "2023-04-01", "quarter"),
    ("this year", "2023-01-01", "2024-01-01", "year"),
    ("last year", "2022-01-01", "2023-01-01", "year"),
    ("last weekend", "2023-05-06", "2023-05-08", "day"),
    ("last March", "2023-03-01", "2023-04-01", "month"),
    ("next may", "2024-05-01", "2024-06-01", "month"),
    ("last summer", "2022-06-01", "2022-09-01", "season"),
    ("in March", "2023-03-01", "2023-04-01", "month"),
    ("in Q1", "2023-01-01", "2023-04-01", "quarter"),
    ("May 8th", "2023-05-08", "2023-05-09", "day"),
    ("on 20 May", "2023-05-20", "2023-05-21", "day"),
    ("Feb 29", "2024-02-29", "2024-03-01", "day"),
    ("3 days ago", "2023-05-05", "2023-05-06", "day"),
    ("two weeks ago", "2023-04-24", "2023-05-01", "week"),
    ("a month ago", "2023-04-01", "2023-05-01", "month"),
    ("five years ago", "2018-01-01", "2019-01-01", "year"),
    ("an hour ago", "2023-05-08T12:00", "2023-05-08T13:00", "hour"),
    ("10 minutes ago", "2023-05-08T13:46", "2023-05-08T13:47", "minute"),
    ("a couple of days ago", "2023-05-05", "2023-05-07", "day"),
    ("a few months ago", "2022-12-01", "2023-04-01", "month"),
    ("in two weeks", "2023-05-22", "2023-05-29", "week"),
    ("a month from now", "2023-06-01", "2023-07-01", "month"),
    ("two days later", "2023-05-10", "2023-05-11", "day"),
    ("the last 3 days", "2023-05-06", "2023-05-09", "day"),
    ("past two weeks", "2023-04-25", "2023-05-09", "week"),
    ("the past year", "2022-05-09", "2023-05-09", "year"),
    ("the last hour", "2023-05-08T12:57", "2023-05-08T13:57", "hour"),
    ("next 2 hours", "2023-05-08T13:56", "2023-05-08T15:56", "hour"),
    ("past fortnight", "2023-04-25", "2023-05-09", "week"),
    ("a fortnight ago", "2023-04-24", "2023-05-01", "week"),
    ("this March", "2023-03-01", "2023-04-01", "month"),
    ("next summer", "2023-06-01", "2023-09-01", "season"),
    ("last May 3", "2023-05-03", "2023-05-04", "day"),
    ("next 2 days", "2023-05-08", "2023-05-10", "day"),
    ("at noon", "2023-05-08T12:00", "2023-05-08T13:00", "hour"),
    ("14:30", "2023-05-08T14:30", "2023-05-08T14:31", "minute"),
    ("at 3 p.m.", "2023-05-08T15:00", "2023-05-08T16:00", "hour"),
]
NOTHING = [
    "I may 8 things",
    "they march 3 miles",
    "every Friday",
    "v2023.05.08",
    "1.2.2023.4",
    "10:20px",
    "16:9",
    "30.02.2023",
    "2023-13-01",
    "25:99",
    "port 2049 and error 1999",
    "a second opinion",
    "the last word",
    "this is it",
    "RFC 2822",
    "12:30:45:11",
    "999999999999 days ago",
    "in 99999 years",
    "",
]


@each_row(("text", "start", "end", "granularity"), ABSOLUTE)
def test_dates_that_stand_by_themselves(text, start, end, granularity):
    """They are found in the middle of a sentence, and do not depend on the anchor."""
    (span,) = find_times(f"We met Bob {text}, as planned", ANCHOR)
    (later,) = find_times(text, ANCHOR + timedelta(days=4000))

    assert shown(span) == (start, end, granularity)
    assert (span.start, span.end, span.relative) == (later.start, later.end, False)


@each_row(("text", "start", "end", "granularity"), RELATIVE)
def test_dates_that_count_from_the_anchor(text, start, end, granularity):
    """Weeks begin on Monday; spans are half open."""
    (span,) = find_times(f"We met Bob {text}, as planned", ANCHOR)

    assert shown(span) == (start, end, granularity)
    assert span.relative


@each_row("text", NOTHING)
def test_what_only_looks_like_a_date(text):
    """Versions, ratios, verbs, days no calendar has."""
    assert find_times(text, ANCHOR) == []


def test_last_week_is_the_week_before_this_one():
    """Asked on a Sunday, which still belongs to the week that began on Monday."""
    sunday = datetime(2026, 11, 15, 12, tzinfo=UTC)

    (span,) = find_times("what did we decide last week?", sunday)

    assert shown(span) == ("2026-11-02", "2026-11-09", "week")


def test_the_words_found_and_their_place_are_told():
    """So that a question can be read without them."""
    text = "Since last Friday and until 2024 we wait; before June 2021 not"

    spans = find_times(text, ANCHOR)

    assert [text[s.at : s.at + len(s.text)] for s in spans] == ["last Friday", "2024", "June 2021"]
    assert [s.bound for s in spans] == ["since", "until", "before"]


def test_bounds_open_a_window():
    """Since, after, before and until mean what lies on one side."""
    first = datetime.min.replace(tzinfo=UTC)
    last = datetime.max.replace(tzinfo=UTC)
    day, after = datetime(2023, 5, 3, tzinfo=UTC), datetime(2023, 5, 4, tzinfo=UTC)
    windows = {
        "on 3 May 2023": (day, after),
        "since 3 May 2023": (day, last),
        "after 3 May 2023": (after, last),
        "before 3 May 2023": (first, day),
        "until 3 May 2023": (first, after),
    }
    for text, window in windows.items():
        (span,) = find_times(text, ANCHOR)
        assert span.window() == window


def test_a_question_leans_to_the_past():
    """In November, March was this year's, and Friday the last one."""
    november = datetime(2026, 11, 17, 12, tzinfo=UTC)

    (march,) = find_times("what happened in March?", november, lean="past")
    (friday,) = find_times("what did he say on Thursday?", november, lean="past")

    assert shown(march)[0] == "2026-03-01"
    assert shown(friday)[0] == "2026-11-12"
    assert shown(find_times("in March", november)[0])[0] == "2027-03-01"


def test_several_times_in_one_text():
    """In their order, without overlap."""
    spans = find_times("From 2023-05-01, then yesterday, and again on 3 June 2023 at 5pm.", ANCHOR)

    assert [shown(s)[0] for s in spans] == ["2023-05-01", "2023-05-07", "2023-06-03T17:00"]
    assert all(one.at + len(one.text) <= two.at for one, two in pairwise(spans))


def test_days_are_those_of_the_anchors_zone():
    """Midnight is where the speaker is."""
    zone = timezone(timedelta(hours=9))
    (span,) = find_times("yesterday", datetime(2023, 5, 8, 1, tzinfo=zone))

    assert span.start == datetime(2023, 5, 7, tzinfo=zone)


@each_row(
    ("granularity", "words"),
    [
        ("day", "2023-05-07 7 may 2023 sunday"),
        ("minute", "2023-05-07 7 may 2023 sunday"),
        ("month", "2023-05 may 2023"),
        ("week", "2023-05 may 2023"),
        ("year", "2023"),
    ],
)
def test_a_date_in_words(granularity, words):
    """The way people ask for it."""
    assert date_words(datetime(2023, 5, 7, 12, tzinfo=UTC), granularity) == words


def test_the_first_and_last_years_have_words():
    """Nothing in the calendar is out of reach."""
    assert date_words(datetime(1, 1, 1, tzinfo=UTC)).startswith("0001-01-01 1 january 0001")
    for year in (1, 9999):
        edge = datetime(year, 1, 1, tzinfo=UTC)
        for text in (
            "yesterday",
            "next year",
            "in March",
            "Feb 29",
            "last winter",
            "3 decades ago",
        ):
            find_times(text, edge)


HOSTILE = ["1" * 100_000, "2023-" * 20_000, "at 10:" * 20_000, "last " * 20_000, "a " * 50_000]
HOSTILE += [
    "may 8 " * 15_000,
    "14:30 " * 15_000,
    "monday " * 15_000,
    "in a few of " * 9_000,
    "q1" * 40_000,
]


@each_row("text", [*HOSTILE, *NAUGHTY], ids=lambda text: repr(text[:12]))
def test_any_text_is_read_in_time(text):
    """Linear, and never an error."""
    began = time.process_time()
    spans = find_times(text, ANCHOR)
    spent = time.process_time() - began

    assert all(span.start < span.end for span in spans)
    assert spent < 30
