"""Rules for relative times: two weeks ago, recently, yesterday, last Friday, this week."""

from __future__ import annotations

from datetime import datetime, timedelta

from bethink.core.named_tuple import NamedTuple
from bethink.lang.dates import absolute
from bethink.lang.dates.tokens import (
    AGO,
    DAY_PART,
    GRANULARITY,
    LAST,
    LATER,
    MONTH,
    NEXT,
    NUMBER,
    ONES,
    SEASON,
    SHORT_UNIT,
    SHORT_WEEKDAY,
    TENS,
    UNIT,
    VAGUE,
    WEEKDAY,
    Granularity,
    ParsedTime,
    TokenReader,
    add_units,
    direction,
    start_of,
)

_VAGUE_CONFIDENCE = 0.7
COUNTABLE_UNITS = UNIT | dict.fromkeys(("second", "seconds", "sec", "secs"), "second")
COUNTABLE_UNITS |= {f"{day}s": day for day in WEEKDAY}
_AFTER_A_COUNT = COUNTABLE_UNITS.keys() | VAGUE.keys() | SHORT_UNIT.keys()
_AFTER_A_COUNT |= {"of", "-", "and", "dozen"}
_HALVES = {"year": ("month", 6), "hour": ("minute", 30), "decade": ("year", 5), "day": ("hour", 12)}
_HALVES |= {"month": ("day", 15)}
_AND_A_HALF = ("and", "a", "half")
_EXACT_UNITS = frozenset({"day", "week", "month", "year"})
# How many days "this time last month" reaches around the same day.
_THIS_TIME = {"week": 0, "month": 3, "year": 15}
NEAR_DAYS = {"yesterday": -1, "today": 0, "tomorrow": 1}
_NIGHTS = {"overnight": -1, "tonight": 0}  # the night that begins so many days from today
_TWO_AWAY = {("before", "last"): -2, ("after", "next"): 2}
_WHOLE_UNITS = frozenset({"week", "month", "quarter", "year", "decade", "weekend"})
# Days from the anchor's day: first, and the one after the last.
_VAGUE_TIMES = {
    ("recently",): (-7, 1),
    ("lately",): (-7, 1),
    ("nowadays",): (-30, 1),
    ("other", "day"): (-7, 0),
    ("other", "night"): (-7, 0),
    ("these", "days"): (-30, 1),
    ("just", "now"): (0, 1),
}
VAGUE_STARTS = frozenset(words[0] for words in _VAGUE_TIMES)


class Amount(NamedTuple):
    """From ``fewest`` to ``most`` units, up to word ``next``."""

    fewest: int
    most: int
    unit: str
    next: int


def unit_at_offset(reader: TokenReader, unit: str, count: int, after: int) -> ParsedTime:
    """The whole unit at this offset from the anchor's own."""
    if unit == "night":
        return part_of_day(reader.today + timedelta(days=count), unit, after)
    start = add_units(start_of(reader.anchor, unit), unit, count)
    if unit == "weekend":
        return ParsedTime(start, start + timedelta(days=2), "day", after)
    return ParsedTime(start, add_units(start, unit, 1), GRANULARITY.get(unit, "day"), after)


def parse_count(reader: TokenReader, i: int) -> tuple[int, int, int] | None:
    """Fewest, most and the next position: "3", "twenty-one", "a couple of", "a few"."""
    at = i + (reader.word(i) == "a" and reader.word(i + 1) in VAGUE.keys() | {"dozen"})
    if reader.word(at) in VAGUE:
        fewest, most = VAGUE[reader.word(at)]
        return fewest, most, at + 1 + (reader.word(at + 1) == "of")
    if reader.word(at) in TENS:
        ones = at + 1 + (reader.word(at + 1) == "-")
        if reader.word(ones) in ONES:
            both = TENS[reader.word(at)] + NUMBER[reader.word(ones)]
            return both, both, ones + 1
    figure = reader.number(at, 4)
    if figure is None:
        figure = NUMBER.get(reader.word(at))
    return None if figure is None else (figure, figure, at + 1)


def _parse_amount(reader: TokenReader, i: int) -> Amount | None:
    """Parse an amount: three days, 24h, half a year, a year and a half, one and a half years."""
    if reader.word(i) == "half":
        at = i + 1 + (reader.word(i + 1) in ("a", "an"))
        half = _HALVES.get(UNIT.get(reader.word(at), ""))
        return Amount(half[1], half[1], half[0], at + 1) if half else None
    count = parse_count(reader, i)
    if count is None:
        return None
    fewest, most, at = count
    halved = reader.words[at : at + 3] == _AND_A_HALF
    at += 3 if halved else reader.word(at) == "-"
    unit = COUNTABLE_UNITS.get(reader.word(at))
    if unit is None and reader.touches(at) and reader.number(i, 4) is not None:
        unit = SHORT_UNIT.get(reader.word(at))
    if halved or reader.words[at + 1 : at + 4] == _AND_A_HALF:
        smaller, extra = _HALVES.get(unit or "", ("", 0))
        whole = 2 * extra * fewest + extra
        return Amount(whole, whole, smaller, at + (1 if halved else 4)) if smaller else None
    if unit == "fortnight":
        return Amount(2 * fewest, 2 * most, "week", at + 1)
    return Amount(fewest, most, unit, at + 1) if unit else None


def parse_counted_time(reader: TokenReader, i: int) -> ParsedTime | None:
    """Parse three days ago, in two weeks, a month later, two days before 8 May."""
    # Fast path: most occurrences of "a" introduce no amount.
    likely = reader.word(i + 1) in _AFTER_A_COUNT or reader.word(i) == "half"
    counted = _parse_amount(reader, i) if likely else None
    if counted is None:
        return None
    fewest, most, unit, at = counted
    following = reader.word(at)
    if unit in WEEKDAY:  # two Fridays ago
        day = _weekday_at_direction(reader, WEEKDAY[unit], -1) - timedelta(weeks=fewest - 1)
        return reader.day(day, at + 1) if following in AGO else None
    if following in AGO:
        exact = _day_so_long_ago(reader, counted, at + 1)
        return exact or _span_of_counts(reader, unit, (-most, -fewest), at + 1)
    if following in ("before", "after"):
        return _counted_from_date(reader, counted)
    from_now = following == "from" and reader.word(at + 1) in ("now", "today")
    ahead = reader.word(i - 1) == "in" and reader.word(at - 1) not in SHORT_UNIT  # "in 3D"
    if not (following in LATER or from_now or ahead):
        return None
    return _span_of_counts(
        reader, unit, (fewest, most), at + (2 if from_now else following in LATER)
    )


def _day_so_long_ago(reader: TokenReader, counted: Amount, at: int) -> ParsedTime | None:
    """Parse the day that an amount of time is counted from: a week ago today, on Friday."""
    at += reader.word(at) == "on"
    name = reader.word(at)
    if counted.fewest != counted.most or counted.unit not in _EXACT_UNITS:
        return None
    day = reader.today + timedelta(days=NEAR_DAYS.get(name, 0))
    back = add_units(day, counted.unit, -counted.most)
    if name in WEEKDAY and counted.unit == "week":
        back = start_of(back, "week") + timedelta(days=WEEKDAY[name])
    elif name not in NEAR_DAYS:
        return None
    return reader.day(back, at + 1)


def _parse_counted_back(reader: TokenReader, i: int) -> Amount | None:
    """Parse an amount that ends with "ago", for the day named before it."""
    counted = _parse_amount(reader, i)
    if counted is None or reader.word(counted.next) not in AGO:
        return None
    exact = counted.fewest == counted.most and counted.unit in _EXACT_UNITS
    return counted._replace(next=counted.next + 1) if exact else None


def _counted_from_date(reader: TokenReader, counted: Amount) -> ParsedTime | None:
    """Parse an amount before or after a date: two weeks before 8 May 2023."""
    fewest, most, unit, at = counted
    date = absolute.parse_day_at(reader, at + 1)
    if date is None:
        return None
    shifted = TokenReader(reader.text, reader.words, reader.options._replace(anchor=date.start))
    counts = (-most, -fewest) if reader.word(at) == "before" else (fewest, most)
    return _span_of_counts(shifted, unit, counts, date.next)._replace(relative=date.relative)


def _span_of_counts(
    reader: TokenReader, unit: str, counts: tuple[int, int], after: int
) -> ParsedTime:
    first, last = (unit_at_offset(reader, unit, count, after) for count in counts)
    return first._replace(end=last.end)


def parse_stretch(reader: TokenReader, i: int, step: int) -> ParsedTime | None:
    """Parse (the last) three days, few weeks: up to the anchor, or from it onwards."""
    named = UNIT.get(reader.word(i))
    counted = Amount(1, 1, named, i + 1) if named else _parse_amount(reader, i)
    if counted is None or counted.unit in WEEKDAY or counted.unit == "night":
        return None
    _, count, unit, after = counted
    granularity = GRANULARITY.get(unit, "day")
    if step < 0 and (unit, count) == ("day", 1):
        unit, count = "hour", 24
    # Up to the end of the anchor's day, or its minute or second for short units.
    smaller = {"minute": "minute", "hour": "minute", "second": "second"}.get(unit, "day")
    this = start_of(reader.anchor, smaller)
    end = add_units(this, smaller, 1)
    if step < 0:
        return ParsedTime(add_units(end, unit, -count), end, granularity, after)
    first = end if named else this  # "the next day" is not only today, "the next 2 days" are two
    return ParsedTime(this, add_units(first, unit, count), granularity, after)


def parse_vague_time(reader: TokenReader, i: int) -> ParsedTime | None:
    """Parse recently, the other day, these days, just now, with reduced confidence."""
    words = (reader.word(i),) if (reader.word(i),) in _VAGUE_TIMES else reader.words[i : i + 2]
    days = _VAGUE_TIMES.get(words) if reader.options.vague else None
    if days is None or (words[0] == "other" and reader.word(i - 1) != "the"):
        return None
    start, end = (reader.today + timedelta(days=count) for count in days)
    return ParsedTime(start, end, "day", i + len(words), confidence=_VAGUE_CONFIDENCE)


def parse_near_day(reader: TokenReader, i: int) -> ParsedTime:
    """Parse yesterday, today or tomorrow, and today a week ago."""
    day = reader.today + timedelta(days=NEAR_DAYS[reader.word(i)])
    counted = _parse_counted_back(reader, i + 1)
    if counted is None:
        return reader.day(day, i + 1)
    return reader.day(add_units(day, counted.unit, -counted.most), counted.next)


def parse_named_night(reader: TokenReader, i: int) -> ParsedTime | None:
    """Parse tonight and, in a question, overnight: the night that ends on the anchor's day."""
    days = _NIGHTS[reader.word(i)]
    if days and not reader.options.vague:
        return None
    return part_of_day(reader.today + timedelta(days=days), "night", i + 1)


def part_of_day(day: datetime, name: str, after: int) -> ParsedTime:
    """The morning, afternoon, evening or night of a day."""
    first, last = DAY_PART[name]
    return ParsedTime(day + timedelta(hours=first), day + timedelta(hours=last), "part", after)


def parse_unit_phrase(reader: TokenReader, i: int) -> ParsedTime | None:
    """Parse the day before yesterday, the week before last, the week of 8 May, week 19."""
    what = reader.word(i)
    following = (reader.word(i + 1), reader.word(i + 2))
    if following in _TWO_AWAY:
        step = _TWO_AWAY[following]
        return unit_at_offset(reader, what, step, i + 3) if what in _WHOLE_UNITS else None
    if what == "day" and following in (("before", "yesterday"), ("after", "tomorrow")):
        return reader.day(reader.today + timedelta(days=2 * NEAR_DAYS[following[1]]), i + 3)
    if near := _parse_next_to_date(reader, i):
        return near
    if what == "week":
        return _parse_week_of(reader, i) or absolute.parse_week_number(reader, i)
    if what in ("weekend", "weekends") and _is_the_weekend(reader, i):
        this = unit_at_offset(reader, "weekend", 0, i + 1)
        future = this.start > reader.anchor
        return unit_at_offset(reader, "weekend", -1, i + 1) if future else this
    return None


def _parse_next_to_date(reader: TokenReader, i: int) -> ParsedTime | None:
    """Parse the week before 8 May, the Sunday after 2023-05-08."""
    side = {"before": -1, "after": 1}.get(reader.word(i + 1))
    what = reader.word(i)
    date = absolute.parse_day_at(reader, i + 2) if side else None
    if date is None or side is None:
        return None
    first = date.start if side < 0 else date.end
    if what in WEEKDAY or what == "weekend":
        number = WEEKDAY.get(what, 5)
        days = 2 if what == "weekend" else 1
        if side < 0:
            start = first - timedelta(days=(first.weekday() - number - days) % 7 + days)
        else:
            start = first + timedelta(days=(number - first.weekday()) % 7)
        return date._replace(start=start, end=start + timedelta(days=days))
    if what not in ("day", "week", "month", "year"):
        return None
    start, end = sorted((first, add_units(first, what, side)))
    return date._replace(start=start, end=end, granularity=GRANULARITY.get(what, "day"))


def _parse_week_of(reader: TokenReader, i: int) -> ParsedTime | None:
    date = absolute.parse_day_at(reader, i + 2) if reader.word(i + 1) == "of" else None
    if date is None:
        return None
    monday = start_of(date.start, "week")
    return date._replace(start=monday, end=monday + timedelta(weeks=1), granularity="week")


def _is_the_weekend(reader: TokenReader, i: int) -> bool:
    """Whether this is "over the weekend" or "on the weekend": the current or last one."""
    if reader.word(i - 1) != "the":
        return False
    before = reader.word(i - 2)
    return before == "over" or (reader.options.vague and before in ("at", "on", "during"))


def parse_weekday(reader: TokenReader, i: int) -> ParsedTime | None:
    """Parse Friday, Friday last week, or Friday with a date: Friday, 5 May 2023."""
    step = _TWO_AWAY.get((reader.word(i + 1), reader.word(i + 2)), 0) // 2
    if step and reader.word(i) in WEEKDAY:  # the Friday before last
        day = _weekday_at_direction(reader, WEEKDAY[reader.word(i)], step)
        return reader.day(day + timedelta(weeks=step), i + 3)
    date = absolute.parse_day_at(reader, i + 1 + (reader.word(i + 1) in (",", ".")))
    date = date or _parse_next_to_date(reader, i)
    if date:
        return date
    if reader.word(i) not in WEEKDAY or reader.word(i - 1) in ("every", "each"):
        return None  # a short name needs its date
    week = _parse_following_week(reader, i + 1)
    if week is not None:
        return reader.day(week.start + timedelta(days=WEEKDAY[reader.word(i)]), week.next)
    ahead = (WEEKDAY[reader.word(i)] - reader.today.weekday()) % 7
    back = ahead - 7 if ahead else 0
    days = back if reader.options.lean == "past" or -back < ahead else ahead
    return reader.day(reader.today + timedelta(days=days), i + 1)._replace(cycle="week")


def _parse_following_week(reader: TokenReader, i: int) -> ParsedTime | None:
    """Parse the week of a weekday: of last week, next week, two weeks ago."""
    counted = _parse_counted_back(reader, i)
    if counted is not None and counted.unit == "week":
        return unit_at_offset(reader, "week", -counted.most, counted.next)
    i += reader.word(i) in ("of", "in")
    i += reader.word(i) == "the"
    step = direction(reader.word(i))
    if step is None or reader.word(i + 1) != "week":
        return None
    return unit_at_offset(reader, "week", step, i + 2)


def parse_last_this_next(reader: TokenReader, i: int) -> ParsedTime | None:
    """Parse last, this or next week, Friday, March, summer, night; the last three days."""
    step = direction(reader.word(i))
    assert step is not None
    if step < 0 and (near := _parse_next_to_date(reader, i + 1)):
        return near  # last weekend before 8 May
    if step == 0 and (reader.word(i + 1) in LAST or reader.word(i + 1) in NEXT):
        i += 1  # this past week
        step = direction(reader.word(i)) or 0
    if named := _parse_named(reader, i, step):
        return named
    what = reader.word(i + 1)
    if what in DAY_PART and step <= 0 and reader.word(i) != "past":
        return part_of_day(reader.today + timedelta(days=step), what, i + 2)
    if what in _WHOLE_UNITS and not (reader.word(i) == "past" and what != "weekend"):
        return _parse_whole_unit(reader, what, step, i + 2)
    return parse_stretch(reader, i + 1, step) if step else None


def _parse_named(reader: TokenReader, i: int, step: int) -> ParsedTime | None:
    """Parse the holiday, weekday, month or season after last, this or next; or "this time"."""
    what = reader.word(i + 1)
    if step == 0 and what == "time":
        return _parse_this_time(reader, i + 2)
    is_holiday = what in absolute.HOLIDAY_STARTS or absolute.is_holiday_rule(what)
    if is_holiday and (found := absolute.parse_holiday(reader, i + 1)):
        return found
    weekday = WEEKDAY.get(what, SHORT_WEEKDAY.get(what))
    if weekday is not None:
        return reader.day(_weekday_at_direction(reader, weekday, step), i + 2)
    if what in MONTH or what in SEASON:
        return _month_at_direction(reader, what, step, i + 2)
    return None


def _parse_this_time(reader: TokenReader, i: int) -> ParsedTime | None:
    """Parse this time yesterday, last week, last year: about the same day."""
    if reader.word(i) in NEAR_DAYS:
        return parse_near_day(reader, i)
    step, unit = direction(reader.word(i)), reader.word(i + 1)
    if not step or unit not in _THIS_TIME:
        return None
    day, days = add_units(reader.today, unit, step), timedelta(days=_THIS_TIME[unit])
    return ParsedTime(day - days, day + days + timedelta(days=1), "day", i + 2)


def _parse_whole_unit(reader: TokenReader, what: str, step: int, after: int) -> ParsedTime:
    """Parse last week, and the weekday that may follow: last week on Friday."""
    at = after + (reader.word(after) == "on")
    if what == "week" and reader.word(at) in WEEKDAY:
        monday = add_units(start_of(reader.anchor, "week"), "week", step)
        return reader.day(monday + timedelta(days=WEEKDAY[reader.word(at)]), at + 1)
    return unit_at_offset(reader, what, step, after)


def _weekday_at_direction(reader: TokenReader, number: int, step: int) -> datetime:
    if step < 0:  # the last one before today, even if it was only yesterday
        return reader.today - timedelta(days=(reader.today.weekday() - number - 1) % 7 + 1)
    return start_of(reader.today, "week") + timedelta(days=number + 7 * step)


def _month_at_direction(reader: TokenReader, name: str, step: int, after: int) -> ParsedTime | None:
    length, month = ("month", MONTH[name]) if name in MONTH else ("quarter", SEASON[name])
    if reader.year(after) is not None or reader.number(after, 2) is not None:
        return None  # "last May 8" and "this March 2024" are read from the month on
    starts = [reader.midnight(year, month, 1) for year in reader.years_around(2)]
    if step < 0:
        start = max(s for s in starts if add_units(s, length, 1) <= reader.today)
    elif step > 0:
        start = min(s for s in starts if s > reader.today)
    else:
        start = reader.midnight(reader.anchor.year, month, 1)
    granularity: Granularity = "month" if name in MONTH else "season"
    return ParsedTime(start, add_units(start, length, 1), granularity, after)


def parse_earlier_later(reader: TokenReader, i: int) -> ParsedTime | None:
    """Parse earlier today, later this week: the part before or after the anchor."""
    at = i + 1
    if reader.word(at) == "today":
        whole: ParsedTime | None = parse_near_day(reader, at)
    elif reader.word(at) == "this" and reader.word(at + 1) in _WHOLE_UNITS | DAY_PART.keys():
        whole = parse_last_this_next(reader, at)
    else:
        return None
    now = start_of(reader.anchor, "minute") + timedelta(minutes=1)
    if whole is None or not whole.start < now < whole.end:
        return whole
    return whole._replace(end=now) if reader.word(i) == "earlier" else whole._replace(start=now)
