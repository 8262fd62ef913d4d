"""Rules for absolute dates: 2023-05-08, 8 May 2023, Q3 2024, summer 2022, Christmas."""

from __future__ import annotations

import re
from datetime import datetime, timedelta

from bethink.core.lazy import lazy_pattern
from bethink.core.named_tuple import NamedTuple
from bethink.lang.dates.tokens import (
    BEFORE_A_MONTH,
    BEFORE_A_SEASON,
    BEFORE_A_YEAR,
    DECADE,
    LAST,
    MONTH,
    NEXT,
    ORDINAL_ENDS,
    SEASON,
    THIRD_OF_SPAN,
    WEEKDAY,
    Granularity,
    ParsedTime,
    TokenReader,
    add_units,
    direction,
)
from bethink.lang.words import load_words, parse_rules

_NUMBER_END = r"(?![\w/-]|[.,:]\d)"
_ISO = lazy_pattern(
    r"(\d{4})([-/])(\d{1,2})\2(\d{1,2})"
    r"(?:[T ](\d\d):(\d\d)(?::(\d\d)(?:\.\d{1,9})?)?(Z|[+-]\d\d:?\d\d)?)?" + _NUMBER_END
)
_YEAR_WEEK = lazy_pattern(r"(\d{4})-W(\d\d)" + _NUMBER_END)
_YEAR_MONTH = lazy_pattern(r"(\d{4})-(\d\d)" + _NUMBER_END)
_YEAR_QUARTER = lazy_pattern(r"(\d{4})[ -]?[Qq]([1-4])" + _NUMBER_END)
_YEARS = lazy_pattern(r"(\d{4}) ?[-–—] ?(\d{4})" + _NUMBER_END)
_DOTTED = lazy_pattern(r"(\d{1,2})\.(\d{1,2})\.(\d{4})" + _NUMBER_END)
_SLASHED = lazy_pattern(r"(\d{1,2})/(\d{1,2})/(\d{4})" + _NUMBER_END)
_SHORT_DOTTED = lazy_pattern(r"(\d{1,2})\.(\d{1,2})\.(?![\w/-]|[.,:]\d)")
_SHORT_SLASHED = lazy_pattern(r"(\d{1,2})/(\d{1,2})(?![\w/%-]|[.,:]\d)")
_RANGE_WORDS = ("from", "to", "and")
# "Am 3. April": the name alone does not say in which language it is.
_BEFORE_A_DOTTED_DAY = frozenset({"", "am", "den", "dem", "der", "vom", "zum", "on", "d"})
_BEFORE_A_DAY = frozenset(
    {"on", "since", "until", "till", "by", "before", "after", "from", "to", "and"}
)


def parse_numeric_date(reader: TokenReader, i: int) -> ParsedTime | None:
    """Parse a date written in figures and signs alone."""
    at = reader.spans[i][0]
    if len(reader.word(i)) == 4:
        return _parse_year_first(reader, i, at)
    if match := _DOTTED.match(reader.text, at):
        start = reader.midnight(int(match[3]), int(match[2]), int(match[1]))
        return reader.day(start, reader.after(match.end(), i), relative=False)
    if match := _SLASHED.match(reader.text, at):
        day, month = _order_day_month(reader, match)
        start = reader.midnight(int(match[3]), month, day)
        return reader.day(start, reader.after(match.end(), i), relative=False)
    return _parse_short_date(reader, i, at)


def _order_day_month(reader: TokenReader, match: re.Match[str]) -> tuple[int, int]:
    """Day and month of a slashed date: in English the month is first, unless it cannot be."""
    first, second = int(match[1]), int(match[2])
    day_first = first > 12 or (reader.options.day_first and second <= 12)
    return (first, second) if day_first else (second, first)


def _parse_short_date(reader: TokenReader, i: int, at: int) -> ParsedTime | None:
    """Parse a day and a month in figures after a preposition: on 11/13, am 12.11."""
    before = reader.word(i - 1)
    if reader.options.day_first and before == "the":  # "seit dem 12.11.", "le 12/11"
        before = "on"
    if before in ("am", "den") and _SHORT_DOTTED.match(reader.text, at):
        before = "on"
    if before not in _BEFORE_A_DAY or not (before == "on" or reader.options.vague):
        return None
    if match := _SHORT_DOTTED.match(reader.text, at):
        day, month = int(match[1]), int(match[2])
    elif before not in _RANGE_WORDS and (match := _SHORT_SLASHED.match(reader.text, at)):
        day, month = _order_day_month(reader, match)  # "1/4 to 1/2" are fractions
    else:
        return None
    after = reader.after(match.end(), i)
    if reader.word(after) == "of" or not (1 <= month <= 12 and 1 <= day <= 31):
        return None  # "on 1/2 of the nodes"
    return _resolve_year(reader, (day, day), month, after)


def _parse_year_first(reader: TokenReader, i: int, at: int) -> ParsedTime | None:
    if match := _ISO.match(reader.text, at):
        return _parse_iso(reader, i, match)
    if match := _YEAR_WEEK.match(reader.text, at):
        return iso_week(reader, int(match[1]), int(match[2]), reader.after(match.end(), i))
    if match := _YEAR_QUARTER.match(reader.text, at):
        after = reader.after(match.end(), i)
        start = reader.midnight(int(match[1]), int(match[2]) * 3 - 2, 1)
        return ParsedTime(start, add_units(start, "quarter", 1), "quarter", after, relative=False)
    if match := _YEAR_MONTH.match(reader.text, at):
        return month_span(reader, int(match[1]), int(match[2]), reader.after(match.end(), i))
    if (match := _YEARS.match(reader.text, at)) and reader.word(i - 1) in BEFORE_A_YEAR:
        start, end = reader.midnight(int(match[1]), 1, 1), reader.midnight(int(match[2]) + 1, 1, 1)
        if 1900 <= start.year < end.year <= 2101:
            return ParsedTime(start, end, "year", reader.after(match.end(), i), relative=False)
    return None


def _parse_iso(reader: TokenReader, i: int, match: re.Match[str]) -> ParsedTime:
    after = reader.after(match.end(), i)
    start = reader.midnight(int(match[1]), int(match[3]), int(match[4]))
    if match[5] is None:
        return reader.day(start, after, relative=False)
    if match[8]:
        zone = match[8].replace("Z", "+00:00")
        moment = datetime.fromisoformat(f"{start:%Y-%m-%d}T{match[5]}:{match[6]}{zone}")
        start = moment.astimezone(reader.anchor.tzinfo)
    else:
        start = start.replace(hour=int(match[5]), minute=int(match[6]))
    return ParsedTime(start, start + timedelta(minutes=1), "minute", after, relative=False)


def iso_week(reader: TokenReader, year: int, week: int, after: int) -> ParsedTime:
    """A week by its ISO 8601 number."""
    monday = datetime.fromisocalendar(year, week, 1)
    start = monday.replace(tzinfo=reader.anchor.tzinfo)
    return ParsedTime(start, start + timedelta(weeks=1), "week", after, relative=False)


def month_span(reader: TokenReader, year: int, month: int, after: int) -> ParsedTime:
    start = reader.midnight(year, month, 1)
    return ParsedTime(start, add_units(start, "month", 1), "month", after, relative=False)


class ParsedYear(NamedTuple):
    """A year that follows a date, up to word ``next``."""

    number: int
    next: int
    relative: bool = False


def parse_following_year(reader: TokenReader, i: int) -> ParsedYear | None:
    """Parse the year that follows a date: 2023, '23, of last year."""
    i += reader.word(i) in ("of", ",", "/", "-", "in")
    number = reader.year(i)
    if number is not None:
        return ParsedYear(number, i + 1)
    if reader.word(i) in ("'", "’") and len(reader.word(i + 1)) == 2 and reader.touches(i + 1):
        short = reader.number(i + 1, 2)
        return None if short is None else ParsedYear(2000 + short, i + 2)
    i += reader.word(i) == "the"
    if reader.word(i + 1) == "year":
        step = direction(reader.word(i))
        return None if step is None else ParsedYear(reader.anchor.year + step, i + 2, relative=True)
    return None


def is_introduced(reader: TokenReader, i: int, words: frozenset[str]) -> bool:
    """Whether one of the words precedes this position; "mid-" counts as well."""
    before, further = reader.word(i - 1), reader.word(i - 2)
    if before in ("-", "of") and further in THIRD_OF_SPAN:
        return True
    return before in words or (before == "than" and further in ("earlier", "later"))


def parse_date_from_number(reader: TokenReader, i: int) -> ParsedTime | None:
    """Parse a date that begins with a number."""
    return (
        parse_numeric_date(reader, i)
        or _parse_day_month(reader, i)
        or _parse_day_alone(reader, i)
        or _parse_year(reader, i)
    )


def parse_day_at(reader: TokenReader, i: int) -> ParsedTime | None:
    """Parse a full single-day date at a position: 8 May 2023, May 8, 2023-05-08."""
    i += reader.word(i) in ("the", "on")
    if reader.word(i)[:1].isdecimal():
        date = parse_date_from_number(reader, i)
    else:
        date = parse_month_name(reader, i) if reader.word(i) in MONTH else None
    return date if date and date.granularity == "day" else None


def _parse_day_number(reader: TokenReader, i: int) -> tuple[int, int] | None:
    """Parse a day of a month, "8" or "8th" (or "8." where that is used), and the next position."""
    day = reader.number(i, 2)
    if day is None or not 1 <= day <= 31:
        return None
    ordinal = reader.touches(i + 1) and reader.word(i + 1) in ORDINAL_ENDS
    dotted = reader.word(i + 1) == "." and (
        reader.options.day_first
        or (reader.word(i + 2) in MONTH and reader.word(i - 1) in _BEFORE_A_DOTTED_DAY)
    )
    return day, i + 1 + (ordinal or dotted)


def _parse_day_range(reader: TokenReader, i: int) -> tuple[int, int, int] | None:
    """First day, last day and the next position: "8", "8th", "3-5"."""
    first = _parse_day_number(reader, i)
    if first is None:
        return None
    day, after = first
    if reader.word(after) in ("-", "–", "to"):
        second = _parse_day_number(reader, after + 1)
        if second and second[0] > day:
            return day, second[0], second[1]
    return day, day, after


def _parse_day_month(reader: TokenReader, i: int) -> ParsedTime | None:
    days = _parse_day_range(reader, i)
    if days is None:
        return None
    first, last, at = days
    at += reader.word(at) in ("of", "-")
    month = MONTH.get(reader.word(at))
    # "3 may" followed by a verb is no date: a lower-case may or march needs its year.
    if month is None or (
        _is_ambiguous_verb(reader, at) and not parse_following_year(reader, at + 1)
    ):
        return None
    return _resolve_year(reader, (first, last), month, at + 1)


def _parse_day_alone(reader: TokenReader, i: int) -> ParsedTime | None:
    """Parse a day without a month, near the anchor: on the 15th, the 3rd of last month."""
    day = _parse_day_number(reader, i)
    if day is None or reader.word(i - 1) != "the":
        return None
    at = day[1] + (reader.word(day[1]) == "of")
    of_month = at > day[1] and reader.word(at + 1) == "month"
    is_count = reader.word(i - 2) == "of" or reader.word(at + 2) in ("'", "’")
    if day[1] == i + 1 and (is_count or not of_month):
        return None  # "two of the 4", "the 5 of last month's releases"
    if of_month:
        step = 0 if reader.word(at) == "the" else direction(reader.word(at))
        if step is not None:
            first = add_units(reader.today.replace(day=1), "month", step)
            return reader.day(first.replace(day=day[0]), at + 2)
    if reader.word(i - 2) not in ("on", "since", "until", "by") or reader.word(at).isalpha():
        return None  # "on the 5th floor"
    firsts = (add_units(reader.today.replace(day=1), "month", step) for step in range(-2, 3))
    days = [first + timedelta(days=day[0] - 1) for first in firsts]
    return reader.day(reader.choose([one for one in days if one.day == day[0]]), day[1])


def parse_month_name(reader: TokenReader, i: int) -> ParsedTime | None:
    """Parse a date that begins with the name of a month."""
    month = MONTH[reader.word(i)]
    at = i + 1 + (reader.word(i + 1) == "." and len(reader.word(i)) <= 4)
    is_introduced_month = _is_month_introduced(reader, i)
    year = parse_following_year(reader, at)
    if year is not None:
        found = month_span(reader, year.number, month, year.next)
        return found._replace(relative=year.relative)
    day = at + (reader.word(at) == "the")
    days = _parse_day_range(reader, day) if reader.same_line(day) else None
    if days and (is_introduced_month or not _is_ambiguous_verb(reader, i)):
        return _resolve_year(reader, days[:2], month, days[2])
    # A short name alone is too often something else; "May" has no longer form.
    if not is_introduced_month or (len(reader.word(i)) == 3 and month != 5):
        return None
    return _nearest_in_years(reader, month, "month", i + 1)


def _is_month_introduced(reader: TokenReader, i: int) -> bool:
    """Whether the words before a month say that it is one: "in march", not "go and march"."""
    if reader.word(i - 1) == "and" and _is_ambiguous_verb(reader, i):
        return reader.word(i - 2) in MONTH or reader.word(i - 2).isdecimal()
    return is_introduced(reader, i, BEFORE_A_MONTH) or _ends_month_range(reader, i)


def _ends_month_range(reader: TokenReader, i: int) -> bool:
    """Whether a month ends a range: May to June. "To April" alone may refer to a person."""
    before = reader.word(i - 2)
    return reader.word(i - 1) in ("to", "–") and (before in MONTH or before.isdecimal())


def _is_ambiguous_verb(reader: TokenReader, i: int) -> bool:
    if reader.places is not None or reader.word(i) not in ("may", "march", "mar"):
        return False
    return reader.text[reader.spans[i][0]].islower()


def _resolve_year(reader: TokenReader, days: tuple[int, int], month: int, after: int) -> ParsedTime:
    year = parse_following_year(reader, after)
    if year is None or reader.word(year.next) == ":":  # "8 May 2013:30" is no year
        start, cycle = reader.choose(_valid_days(reader, month, days[0])), True
    else:
        start, after, cycle = reader.midnight(year.number, month, days[0]), year.next, False
    end = reader.midnight(start.year, month, days[1]) + timedelta(days=1)
    relative = cycle or (year is not None and year.relative)
    return ParsedTime(start, end, "day", after, relative, "year" if cycle else "")


def _valid_days(reader: TokenReader, month: int, day: int) -> list[datetime]:
    """The day in the years around the anchor; 29 February only in leap years."""
    if (month, day) != (2, 29):
        return [reader.midnight(year, month, day) for year in reader.years_around()]
    # As `calendar.isleap` says; that module takes two milliseconds to import.
    leap = [
        year
        for year in reader.years_around(8)
        if 1 <= year <= 9999 and year % 4 == 0 and (year % 100 or year % 400 == 0)
    ]
    return [reader.midnight(year, month, day) for year in leap]


def _parse_year(reader: TokenReader, i: int) -> ParsedTime | None:
    if decade := _parse_decade(reader, i):
        return decade
    year = reader.year(i)
    if year is None or not 1900 <= year <= 2100:
        return None
    start = reader.midnight(year, 1, 1)
    is_continued = reader.touches(i + 1) and reader.word(i + 1) not in ".,;:!?)\"'"
    is_joined = reader.options.spaced and reader.touches(i) and reader.word(i - 1) != "-"
    if is_joined or is_continued or not is_introduced(reader, i, BEFORE_A_YEAR):
        return None
    return ParsedTime(start, add_units(start, "year", 1), "year", i + 1, relative=False)


def _parse_decade(reader: TokenReader, i: int) -> ParsedTime | None:
    """Parse a decade in figures: the 1990s, the 90s."""
    if reader.word(i + 1) != "s" or not reader.touches(i + 1):
        return None
    year = reader.year(i)
    if year is None and len(reader.word(i)) == 2:
        quoted = reader.word(i - 1) in ("'", "’") and reader.touches(i)
        if not quoted and not _has_article(reader, i):
            return None  # "in my late 40s"
        year = _latest_decade(reader, int(reader.word(i)))
    if year is None or year % 10:
        return None
    start = reader.midnight(year, 1, 1)
    return ParsedTime(start, add_units(start, "decade", 1), "decade", i + 2, relative=False)


def _has_article(reader: TokenReader, i: int) -> bool:
    """Whether "the" precedes a position, with at most early, mid- or late between."""
    before = i - 1 - (reader.word(i - 1) == "-")
    return reader.word(before - (reader.word(before) in ("early", "mid", "late"))) == "the"


def _latest_decade(reader: TokenReader, short: int) -> int:
    year = reader.anchor.year // 100 * 100 + short
    return year if year <= reader.anchor.year else year - 100


def parse_decade_name(reader: TokenReader, i: int) -> ParsedTime | None:
    """Parse a decade in words: the nineties."""
    if not _has_article(reader, i):
        return None
    start = reader.midnight(_latest_decade(reader, DECADE[reader.word(i)]), 1, 1)
    return ParsedTime(start, add_units(start, "decade", 1), "decade", i + 1)


def parse_quarter(reader: TokenReader, i: int) -> ParsedTime | None:
    """Parse Q3 2024, Q3 last year, Q3 alone or H1 2024."""
    number = reader.number(i + 1, 1)
    half = reader.word(i) == "h"
    if number is None or not reader.touches(i + 1) or not 1 <= number <= (2 if half else 4):
        return None
    is_continued = reader.touches(i + 2) and reader.word(i + 2) not in ".,;:!?)/-'’"
    if reader.touches(i) or is_continued:
        return None
    return quarter_or_half(reader, (number, 6 if half else 3), i + 2)


def quarter_or_half(reader: TokenReader, which: tuple[int, int], after: int) -> ParsedTime | None:
    """The nth quarter or half of the year that follows, or of the latest one."""
    number, months = which
    year = parse_following_year(reader, after)
    month = (number - 1) * months + 1
    if year is not None:
        start = reader.midnight(year.number, month, 1)
        end = add_units(start, "month", months)
        return ParsedTime(start, end, "quarter", year.next, year.relative)
    if months == 6:
        return None  # "h1" alone is a heading
    return _nearest_in_years(reader, month, "quarter", after)


def _nearest_in_years(
    reader: TokenReader, month: int, length: Granularity, after: int
) -> ParsedTime:
    """The month, quarter or season that begins in this month, without a year."""
    start = reader.choose([reader.midnight(year, month, 1) for year in reader.years_around()])
    end = add_units(start, "month", 1 if length == "month" else 3)
    return ParsedTime(start, end, length, after, cycle="year")


def parse_fiscal_year(reader: TokenReader, i: int) -> ParsedTime | None:
    """Parse FY25 in a question as the calendar year, which is a guess."""
    number = reader.number(i + 1, 2)
    if number is None or not reader.options.vague or len(reader.word(i + 1)) != 2:
        return None
    start = reader.midnight(2000 + number, 1, 1)
    return ParsedTime(start, add_units(start, "year", 1), "year", i + 2, confidence=0.7)


def parse_season(reader: TokenReader, i: int) -> ParsedTime | None:
    """Parse a season: summer 2022; a winter is named after the year it begins in."""
    year = parse_following_year(reader, i + 1)
    month = SEASON[reader.word(i)]
    if year is not None:
        start = reader.midnight(year.number, month, 1)
        return ParsedTime(start, add_units(start, "quarter", 1), "season", year.next, year.relative)
    before = i - 1 - (reader.word(i - 1) == "the")
    if not reader.options.vague or reader.word(before) not in BEFORE_A_SEASON:
        return None
    if reader.word(i) == "fall" and reader.word(i - 1) != "the":
        return None  # "in fall back mode"; "in the fall" is always a season
    if reader.word(i) == "spring" and reader.word(i + 1).isalpha() and reader.places is None:
        return None  # "in spring boot"
    return season_near(reader, i)


def season_near(reader: TokenReader, i: int) -> ParsedTime:
    """The season named here, without a year."""
    return _nearest_in_years(reader, SEASON[reader.word(i)], "season", i + 1)


def parse_week_number(reader: TokenReader, i: int) -> ParsedTime | None:
    """Parse week 19, calendar week 19, week 19 of 2023."""
    i += reader.word(i) == "calendar"
    number = reader.number(i + 1, 2) if reader.word(i) == "week" else None
    if number is None or not 1 <= number <= 53:
        return None
    year = parse_following_year(reader, i + 2)
    if year is not None:
        found = iso_week(reader, year.number, number, year.next)
        return found._replace(relative=year.relative)
    if not reader.options.vague:
        return None  # "week 3 of the course"
    weeks = [iso_week(reader, year_number, number, i + 2) for year_number in reader.years_around()]
    start = reader.choose([week.start for week in weeks])
    return ParsedTime(start, start + timedelta(weeks=1), "week", i + 2, cycle="year")


# The holidays of the English calendar; other languages translate theirs to such a rule.
HOLIDAYS = parse_rules(load_words("en")["holidays"]["days"])
_RULE = lazy_pattern(r"(?:(\d\d)-(?:(\d\d)|([a-z]{3})(-?\d))|easter)([+-]\d+)?(?:/(\d+))?(!?)")
HOLIDAY_STARTS = frozenset(name.removeprefix("the ").split()[0] for name in HOLIDAYS)
_MAX_NAME_WORDS = max(len(name.split()) for name in HOLIDAYS)
_BEFORE_A_HOLIDAY = BEFORE_A_SEASON | {
    *("at", "on", "by", "around", "for", "this", "next", "past", "previous", "between", "from")
}
_RANGE_REACH = 6  # words between the two ends of a range


def is_holiday_rule(word: str) -> bool:
    """Whether a translated word is the rule of a holiday: @12-24/3."""
    return word[:1] == "@" and len(word) > 1


def parse_holiday(reader: TokenReader, i: int) -> ParsedTime | None:
    """Parse Christmas 2023, last Easter; without a year only after an introducing word."""
    rule, after = _parse_holiday_name(reader, i)
    if rule is None:
        return None
    year = parse_following_year(reader, after)
    if year is not None:
        start, days = _holiday_in_year(reader, rule, year.number)
        return ParsedTime(start, start + timedelta(days=days), "day", year.next, year.relative)
    before = reader.word(i - 1 - (reader.word(i - 1) == "the"))
    # "À" and "a" mean "at" and "to".
    introduced = before in _BEFORE_A_HOLIDAY or (before == "to" and reader.places is not None)
    introduced = introduced or _ends_holiday_range(reader, i, before)
    if not (introduced or rule.endswith("!")):
        return None
    if not (reader.options.vague or before in LAST or before in NEXT):
        return None
    return _nearest_holiday(reader, rule, before, after)


def _ends_holiday_range(reader: TokenReader, i: int, before: str) -> bool:
    """Whether a holiday ends a range: between Christmas and New Year."""
    opening = {"and": "between", "to": "from"}.get(before)
    return opening is not None and opening in reader.words[max(0, i - _RANGE_REACH) : i]


def _parse_holiday_name(reader: TokenReader, i: int) -> tuple[str | None, int]:
    """The rule of the longest holiday name here, without 's, and the next position."""
    # A name such as @ada may stand in a text too.
    if reader.word(i).startswith("@") and _RULE.fullmatch(reader.word(i)[1:]):
        return reader.word(i)[1:], i + 1
    words = ["the"] if reader.word(i - 1) == "the" else []
    best: tuple[str | None, int] = (None, i)
    at = i
    for _ in range(_MAX_NAME_WORDS):
        words.append(reader.word(at))
        at += 1
        if reader.word(at) in ("'", "’") and reader.word(at + 1) == "s":
            at += 2
        name = " ".join(words)
        rule = HOLIDAYS.get(name) or HOLIDAYS.get(name.removeprefix("the "))
        best = (rule, at) if rule else best
    return best


def _nearest_holiday(reader: TokenReader, rule: str, before: str, after: int) -> ParsedTime:
    holidays = [_holiday_in_year(reader, rule, year) for year in reader.years_around()]
    days = holidays[0][1]
    starts = [start for start, _ in holidays]
    if before in LAST:
        start = max(
            candidate for candidate in starts if candidate + timedelta(days=days) <= reader.anchor
        )
    elif before in NEXT:
        start = min(candidate for candidate in starts if candidate > reader.anchor)
    elif before == "this":
        start = starts[1]
    else:
        start = reader.choose(starts)
    return ParsedTime(start, start + timedelta(days=days), "day", after, cycle="year")


def _holiday_in_year(reader: TokenReader, rule: str, year: int) -> tuple[datetime, int]:
    """The start of the holiday in a year, and its length in days."""
    match = _RULE.fullmatch(rule)
    assert match is not None
    month, day, weekday, which, offset, days, _ = match.groups()
    if month is None:
        start = reader.midnight(year, *easter_date(year))
    elif day is not None:
        start = reader.midnight(year, int(month), int(day))
    else:
        start = _nth_weekday(reader.midnight(year, int(month), 1), weekday, int(which))
    return start + timedelta(days=int(offset or 0)), int(days or 1)


def _nth_weekday(first: datetime, name: str, which: int) -> datetime:
    """The nth weekday of the month that begins there; counted from its end if negative."""
    number = next(day for full, day in WEEKDAY.items() if full.startswith(name))
    if which < 0:
        last = add_units(first, "month", 1) - timedelta(days=1)
        return last - timedelta(days=(last.weekday() - number) % 7 + 7 * (-which - 1))
    return first + timedelta(days=(number - first.weekday()) % 7 + 7 * (which - 1))


def easter_date(year: int) -> tuple[int, int]:
    """Month and day of Easter Sunday in the Gregorian calendar (Oudin's method)."""
    golden = year % 19
    century = year // 100
    moon = (century - century // 4 - (8 * century + 13) // 25 + 19 * golden + 15) % 30
    moon -= moon // 28 * (1 - moon // 28 * (29 // (moon + 1)) * ((21 - golden) // 11))
    weekday = (year + year // 4 + moon + 2 - century + century // 4) % 7
    days = moon - weekday
    month = 3 + (days + 40) // 44
    return month, days + 28 - 31 * (month // 4)
