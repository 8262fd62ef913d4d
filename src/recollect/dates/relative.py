"""Rules for times named by how they lie to the anchor: yesterday, last Friday, this week."""

from __future__ import annotations

from datetime import datetime, timedelta

from recollect.dates.absolute import day_behind, week_number
from recollect.dates.counted import stretch, unit_away
from recollect.dates.names import LAST, MONTH, NEXT, PART, SEASON, SHORT_WEEKDAY, UNIT, WEEKDAY
from recollect.dates.reader import Found, Reader
from recollect.dates.span import Granularity
from recollect.dates.units import GRANULARITY, begin, moved

_DAYS = {"yesterday": -1, "today": 0, "tomorrow": 1}
_TWO_DAYS = {("before", "yesterday"): -2, ("after", "tomorrow"): 2}
_TWO_AWAY = {("before", "last"): -2, ("after", "next"): 2}
_WHOLE = frozenset({"week", "month", "quarter", "year", "decade", "weekend"})


def near_day(reader: Reader, i: int) -> Found:
    """Yesterday, today or tomorrow."""
    return reader.day(reader.today + timedelta(days=_DAYS[reader.word(i)]), i + 1)


def tonight(reader: Reader, i: int) -> Found:
    return part_of_day(reader.today, "night", i + 1)


def overnight(reader: Reader, i: int) -> Found | None:
    """The night that ends on the anchor's day."""
    if not reader.how.vague:
        return None
    return part_of_day(reader.today - timedelta(days=1), "night", i + 1)


def part_of_day(day: datetime, name: str, after: int) -> Found:
    """The morning, afternoon, evening or night of a day."""
    first, last = PART[name]
    return Found(day + timedelta(hours=first), day + timedelta(hours=last), "part", after)


def beyond(reader: Reader, i: int) -> Found | None:
    """The day before yesterday, the week before last, the week of 8 May, week 19."""
    what = reader.word(i)
    behind = (reader.word(i + 1), reader.word(i + 2))
    if behind in _TWO_AWAY:
        return _two_away(reader, what, _TWO_AWAY[behind], i + 3)
    if behind in _TWO_DAYS and what == "day":
        return reader.day(reader.today + timedelta(days=_TWO_DAYS[behind]), i + 3)
    if near := _beside_a_date(reader, i):
        return near
    if what == "week":
        return _week_of(reader, i) or week_number(reader, i)
    if what in ("weekend", "weekends") and _is_the_weekend(reader, i):
        this = unit_away(reader, "weekend", 0, i + 1)
        future = this.start > reader.anchor
        return unit_away(reader, "weekend", -1, i + 1) if future else this
    return None


def _beside_a_date(reader: Reader, i: int) -> Found | None:
    """The week before 8 May, the Sunday after 2023-05-08."""
    side = {"before": -1, "after": 1}.get(reader.word(i + 1))
    what = reader.word(i)
    dated = day_behind(reader, i + 2) if side else None
    if dated is None or side is None:
        return None
    first = dated.start if side < 0 else dated.end
    if what in WEEKDAY or what == "weekend":
        number = WEEKDAY.get(what, 5)
        days = 2 if what == "weekend" else 1
        off = (first.weekday() - number - days) % 7 + days if side < 0 else 0
        start = first - timedelta(days=off)
        if side > 0:
            start += timedelta(days=(number - first.weekday()) % 7)
        return dated._replace(start=start, end=start + timedelta(days=days))
    if what not in ("day", "week", "month", "year"):
        return None
    start, end = sorted((first, moved(first, what, side)))
    return dated._replace(start=start, end=end, granularity=GRANULARITY.get(what, "day"))


def _two_away(reader: Reader, what: str, step: int, after: int) -> Found | None:
    if what in WEEKDAY:
        day = _pointed_weekday(reader, WEEKDAY[what], step // 2)
        return reader.day(day + timedelta(days=7 if step > 0 else -7), after)
    if what == "night":
        return part_of_day(reader.today + timedelta(days=step), what, after)
    if what in SEASON:
        season = _pointed_month(reader, what, step // 2, after)
        years = 1 if step > 0 else -1
        return season and season._replace(
            start=moved(season.start, "year", years), end=moved(season.end, "year", years)
        )
    return unit_away(reader, what, step, after) if what in _WHOLE else None


def _week_of(reader: Reader, i: int) -> Found | None:
    if reader.word(i + 1) != "of":
        return None
    dated = day_behind(reader, i + 2)
    if dated is None:
        return None
    monday = begin(dated.start, "week")
    return dated._replace(start=monday, end=monday + timedelta(weeks=1), granularity="week")


def _is_the_weekend(reader: Reader, i: int) -> bool:
    """Over the weekend, on the weekend: the one that is or was."""
    if reader.word(i - 1) != "the":
        return False
    before = reader.word(i - 2)
    return before == "over" or (reader.how.vague and before in ("at", "on", "during"))


def weekday(reader: Reader, i: int) -> Found | None:
    """Friday, Friday last week, or the date behind it: Friday, 5 May 2023."""
    if (reader.word(i + 1), reader.word(i + 2)) in _TWO_AWAY:
        return beyond(reader, i)
    dated = day_behind(reader, i + 1 + (reader.word(i + 1) in (",", ".")))
    dated = dated or _beside_a_date(reader, i)
    if dated:
        return dated
    if reader.word(i) not in WEEKDAY:
        return _short_weekday(reader, i)
    if reader.word(i - 1) in ("every", "each"):
        return None
    week = _week_behind(reader, i + 1)
    if week is not None:
        return reader.day(week.start + timedelta(days=WEEKDAY[reader.word(i)]), week.next)
    return _bare_weekday(reader, WEEKDAY[reader.word(i)], i + 1)


def _bare_weekday(reader: Reader, number: int, after: int) -> Found:
    ahead = (number - reader.today.weekday()) % 7
    back = ahead - 7 if ahead else 0
    days = back if reader.how.lean == "past" or -back < ahead else ahead
    return reader.day(reader.today + timedelta(days=days), after)._replace(cycle="week")


def _short_weekday(reader: Reader, i: int) -> Found | None:
    """Fri is a day where a word before it says so and no sentence made it a name."""
    number = _short(reader.word(i))
    if number is None or reader.word(i - 1) not in ("on", "since", "until", "by"):
        return None
    return _bare_weekday(reader, number, i + 1)


def _short(word: str) -> int | None:
    """The weekday of a short name that is not a word as well."""
    if word not in SHORT_WEEKDAY or word in ("sun", "sat", "wed", "mon"):
        return None
    return next(day for name, day in WEEKDAY.items() if name.startswith(word[:3]))


def _week_behind(reader: Reader, i: int) -> Found | None:
    """The week a weekday is said to lie in: of last week, next week."""
    i += reader.word(i) in ("of", "in")
    i += reader.word(i) == "the"
    step = _step(reader.word(i))
    if step is None or reader.word(i + 1) != "week":
        return None
    return unit_away(reader, "week", step, i + 2)


def _step(word: str) -> int | None:
    return -1 if word in LAST else 1 if word in NEXT else 0 if word == "this" else None


def pointed(reader: Reader, i: int) -> Found | None:
    """Last, this or next week, Friday, March, summer, night; the last three days."""
    step = _step(reader.word(i))
    assert step is not None
    if step < 0 and (near := _beside_a_date(reader, i + 1)):
        return near  # last weekend before 8 May
    if step == 0 and (reader.word(i + 1) in LAST or reader.word(i + 1) in NEXT):
        i += 1  # this past week
        step = _step(reader.word(i)) or 0
    what = reader.word(i + 1)
    weekday = WEEKDAY.get(what, _short(what))
    if weekday is not None:
        return reader.day(_pointed_weekday(reader, weekday, step), i + 2)
    if what in MONTH or what in SEASON:
        return _pointed_month(reader, what, step, i + 2)
    if what in PART and step <= 0 and reader.word(i) != "past":
        return part_of_day(reader.today + timedelta(days=step), what, i + 2)
    if what in _WHOLE and not (reader.word(i) == "past" and what != "weekend"):
        return _whole(reader, what, step, i + 2)
    return stretch(reader, i + 1, step) if step else None


def _whole(reader: Reader, what: str, step: int, after: int) -> Found:
    """Last week, and the day of it that may follow: last week on Friday."""
    unit = UNIT[what]
    at = after + (reader.word(after) == "on")
    if unit == "week" and reader.word(at) in WEEKDAY:
        monday = moved(begin(reader.anchor, "week"), "week", step)
        return reader.day(monday + timedelta(days=WEEKDAY[reader.word(at)]), at + 1)
    return unit_away(reader, unit, step, after)


def _pointed_weekday(reader: Reader, number: int, step: int) -> datetime:
    monday = begin(reader.today, "week")
    if step < 0:
        # The last one before today, even if it was only yesterday.
        back = (reader.today.weekday() - number - 1) % 7 + 1
        return reader.today - timedelta(days=back)
    return monday + timedelta(days=number + 7 * step)


def _pointed_month(reader: Reader, name: str, step: int, after: int) -> Found | None:
    length, month = ("month", MONTH[name]) if name in MONTH else ("quarter", SEASON[name])
    if reader.year(after) is not None or reader.number(after, 2) is not None:
        return None  # "last May 8" and "this March 2024" are read from the month on
    starts = [reader.midnight(year, month, 1) for year in reader.years_around(2)]
    if step < 0:
        start = max(s for s in starts if moved(s, length, 1) <= reader.today)
    elif step > 0:
        start = min(s for s in starts if s > reader.today)
    else:
        start = reader.midnight(reader.anchor.year, month, 1)
    granularity: Granularity = "month" if name in MONTH else "season"
    return Found(start, moved(start, length, 1), granularity, after)


def so_far(reader: Reader, i: int) -> Found | None:
    """Earlier today, later this week: what of it lies before or after the anchor."""
    at = i + 1
    if reader.word(at) == "today":
        whole: Found | None = near_day(reader, at)
    elif reader.word(at) == "this" and reader.word(at + 1) in _WHOLE | PART.keys():
        whole = pointed(reader, at)
    else:
        return None
    now = begin(reader.anchor, "minute") + timedelta(minutes=1)
    if whole is None or not whole.start < now < whole.end:
        return whole
    return whole._replace(end=now) if reader.word(i) == "earlier" else whole._replace(start=now)
