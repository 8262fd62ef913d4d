"""Times of day (14:30, 3 pm, in the evening), bounds (since, until) and ranges."""

from __future__ import annotations

from datetime import datetime, timedelta

from bethink.core.named_tuple import NamedTuple
from bethink.lang.dates.tokens import (
    BEFORE_A_TIME,
    DAY_PART,
    Bound,
    Granularity,
    ParsedTime,
    TokenReader,
    add_units,
)

_NAMED_HOURS = {"noon": 12, "midday": 12, "midnight": 0}
_CLOCK_PRECISION = {"minute": timedelta(minutes=1), "hour": timedelta(hours=1)}
_ONE_DAY = timedelta(days=1)
_CYCLE_LENGTH = {"week": timedelta(weeks=1), "day": _ONE_DAY, "": _ONE_DAY}
_CLOCK_PREPOSITIONS = ("at", "around", "about", "by", "@")


class ClockTime(NamedTuple):
    """A time of day up to word ``next``. Unless ``sure`` it needs an adjacent date."""

    offset: timedelta
    granularity: Granularity
    next: int
    sure: bool


def parse_clock(reader: TokenReader, i: int) -> ClockTime | None:
    """Parse the time of day that begins at this word."""
    word = reader.word(i)
    if word in _NAMED_HOURS:
        sure = reader.word(i - 1) in BEFORE_A_TIME
        return ClockTime(timedelta(hours=_NAMED_HOURS[word]), "hour", i + 1, sure)
    hour = reader.number(i, 2)
    if hour is None:
        return None
    minute, at, has_oclock = _parse_minute(reader, i + 1)
    half, after = _parse_am_pm(reader, at)
    if half is None and not has_oclock:
        half = _parse_shared_half(reader, hour, at)
    if half is not None and 1 <= hour <= 12:
        hour = hour % 12 + half
    elif half is not None or (minute is None and not has_oclock):
        return None
    if hour > 23 or (minute or 0) > 59 or _runs_on(reader, after):
        return None
    introduced = reader.word(i - 1) in BEFORE_A_TIME
    sure = half is not None or has_oclock or introduced or len(word) == 2
    granularity: Granularity = "hour" if minute is None else "minute"
    return ClockTime(timedelta(hours=hour, minutes=minute or 0), granularity, after, sure)


def _parse_minute(reader: TokenReader, i: int) -> tuple[int | None, int, bool]:
    """The minutes, the next position, and whether an o'clock confirms a time."""
    if reader.word(i) == "oclock":
        short = len(reader.word(i + 1)) == 2
        minute = reader.number(i + 1, 2) if short else None
        return minute, i + 1 + (minute is not None), True
    if reader.word(i) == "o" and reader.word(i + 2) == "clock":
        return None, i + 3, True
    if not _part_follows(reader, i):
        return None, i, False
    seconds = _part_follows(reader, i + 2)
    at = i + (4 if seconds else 2)
    return reader.number(i + 1, 2), at + (reader.word(at) == "oclock"), False


def _part_follows(reader: TokenReader, i: int) -> bool:
    adjacent = reader.touches(i) and reader.touches(i + 1)
    return adjacent and reader.word(i) == ":" and len(reader.word(i + 1)) == 2


def _parse_am_pm(reader: TokenReader, i: int) -> tuple[int | None, int]:
    """Hours to add for am and pm, and the next position."""
    word = reader.word(i)
    hours = 12 if word[:1] == "p" else 0
    if word in ("am", "pm"):
        return hours, i + 1
    if word in ("a", "p") and reader.words[i + 1 : i + 3] == (".", "m"):
        return hours, i + 3 + (reader.word(i + 3) == ".")
    return None, i


def _parse_shared_half(reader: TokenReader, hour: int, i: int) -> int | None:
    """Hours to add for the am or pm that stands at the end of a range alone: 9-11 am."""
    later = reader.number(i + 1, 2) if reader.word(i) in ("-", "–", "to", "and") else None
    half = _parse_am_pm(reader, _parse_minute(reader, i + 2)[1])[0]
    if later is None or half is None:
        return None
    return half if hour % 12 <= later % 12 else 12 - half


def has_half(reader: TokenReader, i: int) -> bool:
    """Whether the number at this word is an hour with am or pm behind it."""
    return _parse_am_pm(reader, _parse_minute(reader, i + 1)[1])[0] is not None


def _runs_on(reader: TokenReader, i: int) -> bool:
    """Whether the number continues, as in 12:30:45:11 or 10:20px."""
    if not reader.touches(i) or not reader.options.spaced:
        return False
    return reader.word(i)[0].isalnum() or reader.word(i) in ":/%"


def with_following_date(
    reader: TokenReader, time: ClockTime, date: ParsedTime | None
) -> ParsedTime | None:
    """A time of day on the date that follows, else on the anchor's day."""
    if date and _is_one_day(date):
        return _at_clock_time(date, time, date.next)
    if not time.sure:
        return None
    return _at_clock_time(reader.day(reader.today, time.next), time, time.next)._replace(
        cycle="day"
    )


def with_following_clock(reader: TokenReader, date: ParsedTime) -> ParsedTime:
    """A day with the time of day that follows it, if any."""
    if not _is_one_day(date):
        return date
    at = date.next + (reader.word(date.next) == ",")
    # French says "à" for "at" and for "to".
    has_preposition = reader.word(at) in _CLOCK_PREPOSITIONS or (
        reader.word(at) == "to" and reader.places is not None
    )
    time = parse_clock(reader, at + has_preposition)
    if time:
        return _at_clock_time(date, time, time.next)
    if (reader.word(at), reader.word(at + 1)) in (("in", "the"), ("at", "the")):
        at += 2
    at += reader.word(at) == "at" and reader.word(at + 1) in DAY_PART
    if reader.word(at) in DAY_PART:
        return _hours_of_day(date, DAY_PART[reader.word(at)], at + 1)
    return date


def parse_part_of_date(reader: TokenReader, i: int, date: ParsedTime | None) -> ParsedTime | None:
    """Parse "the morning of 8 May"."""
    if date is None or not _is_one_day(date):
        return None
    return _hours_of_day(date, DAY_PART[reader.word(i)], date.next)


def _is_one_day(date: ParsedTime) -> bool:
    return date.granularity == "day" and date.end - date.start == _ONE_DAY


def _hours_of_day(date: ParsedTime, hours: tuple[int, int], after: int) -> ParsedTime:
    first, last = (date.start + timedelta(hours=hour) for hour in hours)
    return ParsedTime(first, last, "part", after, date.relative, date.cycle)


def _at_clock_time(date: ParsedTime, time: ClockTime, after: int) -> ParsedTime:
    start = date.start + time.offset
    end = start + _CLOCK_PRECISION[time.granularity]
    return ParsedTime(start, end, time.granularity, after, date.relative, date.cycle)


_BOUND_BEFORE: dict[str, Bound] = {"since": "since", "after": "after", "before": "before"}
_BOUND_BEFORE |= {"until": "until", "till": "until", "by": "until", "starting": "since"}
_BOUND_BEFORE_PAIRS: dict[tuple[str, str], Bound] = {
    ("prior", "to"): "before",
    ("up", "to"): "until",
    ("later", "than"): "after",
    ("earlier", "than"): "before",
    ("more", "than"): "before",
    ("less", "than"): "since",
}
_BOUND_AFTER: dict[str, Bound] = {"onwards": "since", "onward": "since", "since>": "since"}
_BOUND_AFTER |= {"after>": "after", "before>": "before"}
_FORMS_OF_BE = frozenset({"be", "been", "am", "are", "is", "was", "were"})
_FILLER_WORDS = frozenset({"the", "on", "in", "at", "about", "around", "almost", "nearly", "of"})
_RANGE_WORDS = frozenset({"to", "until", "till", "-", "–", "—", "through", "thru"})
_MAX_GAP_WORDS = 3


class TimePiece(NamedTuple):
    """A time and the word it begins at; ``opening`` is the preceding preposition."""

    at: int
    found: ParsedTime
    opening: str = ""
    bound: Bound = ""


def make_piece(reader: TokenReader, i: int, found: ParsedTime) -> TimePiece:
    """Combine a time with its preceding and following bound words."""
    before = i - 1
    for _ in range(2):
        before -= reader.word(before) in _FILLER_WORDS
    opening = reader.word(before)
    bound = _BOUND_AFTER.get(reader.word(found.next), "") or _BOUND_BEFORE.get(opening, "")
    pair_bound = _BOUND_BEFORE_PAIRS.get((reader.word(before - 1), opening), "")
    if pair_bound == "after" and reader.word(before - 2) == "no":
        pair_bound = "until"
    # "What have you been up to", "what was Ann up to".
    if opening == "to" and not _FORMS_OF_BE.isdisjoint(reader.words[max(0, before - 3) : before]):
        pair_bound = ""
    return TimePiece(i, found, opening, pair_bound or bound)


def join_ranges(reader: TokenReader, pieces: list[TimePiece]) -> list[TimePiece]:
    """Join ranges: "from X to Y", "between X and Y", "yesterday between 2 and 3 pm"."""
    out: list[TimePiece] = []
    for piece in pieces:
        last = out[-1] if out else None
        whole = _join_range(reader, last, piece) if last else None
        if whole:
            out[-1] = whole
            hours = _hours_on_day(reader, out[-2], whole) if len(out) > 1 else None
            if hours:
                out[-2:] = [hours]
        else:
            out.append(piece)
    return out


def _words_between(reader: TokenReader, first: TimePiece, second: TimePiece) -> list[str] | None:
    if second.at - first.found.next > _MAX_GAP_WORDS:
        return None
    return [
        word for word in reader.words[first.found.next : second.at] if word not in _FILLER_WORDS
    ]


def _join_range(reader: TokenReader, first: TimePiece, second: TimePiece) -> TimePiece | None:
    gap = _words_between(reader, first, second)
    if gap is None or len(gap) != 1:
        return None
    between = gap[0] == "and" and first.opening == "between"
    kinds = {first.found.granularity, second.found.granularity}
    same_granularity = len(kinds) == 1 or _CLOCK_PRECISION.keys() == kinds
    if not between and not (
        gap[0] in _RANGE_WORDS and (first.opening == "from" or same_granularity)
    ):
        return None
    try:
        one, two = _align_cycles(reader, first.found, second.found)
    except (ValueError, OverflowError):
        return None  # a year out of range
    if one.start >= two.end:
        return None
    # One open year leaves the whole range open; a day named with either applies to both.
    cycle = one.cycle if two.cycle else ""
    found = one._replace(
        end=max(one.end, two.end), next=two.next, relative=one.relative or two.relative, cycle=cycle
    )
    return TimePiece(
        first.at, found, first.opening, second.bound if second.bound == "since" else ""
    )


def _align_cycles(
    reader: TokenReader, one: ParsedTime, two: ParsedTime
) -> tuple[ParsedTime, ParsedTime]:
    """Move both ends into one week or year, where the words left that open."""
    if one.cycle and (not two.cycle or (one.start > two.start and reader.options.lean == "past")):
        return _last_cycle_before(one, two.start), two
    fixed = not one.cycle and one.granularity not in ("year", "decade")
    if two.cycle == "day":  # yesterday 9-11 am; but "from yesterday to 3 pm" ends today
        fixed = one.cycle != "day" and one.granularity in _CLOCK_PRECISION
    if two.cycle and (two.start < one.start or fixed):
        return one, _first_cycle_after(two, one.start)
    return one, two


def _last_cycle_before(found: ParsedTime, limit: datetime) -> ParsedTime:
    """The last occurrence in its cycle that begins no later than the limit."""
    if found.cycle != "year":
        cycle = _CYCLE_LENGTH[found.cycle]
        return _shift(found, cycle * ((limit - found.start) // cycle))
    years = limit.year - found.start.year
    shifted = (_shift_years(found, step) for step in (years, years - 1))
    return next((candidate for candidate in shifted if candidate.start <= limit), found)


def _first_cycle_after(found: ParsedTime, limit: datetime) -> ParsedTime:
    """The first occurrence in its cycle that ends later than the limit."""
    if found.cycle != "year":
        cycle = _CYCLE_LENGTH[found.cycle]
        return _shift(found, -cycle * ((found.end - limit) // cycle))
    years = limit.year - found.start.year
    shifted = (_shift_years(found, step) for step in (years, years + 1))
    return next((candidate for candidate in shifted if candidate.end > limit), found)


def _shift(found: ParsedTime, by: timedelta) -> ParsedTime:
    return found._replace(start=found.start + by, end=found.end + by)


def _shift_years(found: ParsedTime, years: int) -> ParsedTime:
    start, end = (add_units(moment, "year", years) for moment in (found.start, found.end))
    return found._replace(start=start, end=end)


def _hours_on_day(reader: TokenReader, day: TimePiece, times: TimePiece) -> TimePiece | None:
    """Hours within the preceding day: yesterday between 2 and 4 pm."""
    found = day.found
    if found.granularity != "day" or found.end - found.start != _ONE_DAY:
        return None
    if times.found.cycle != "day" or times.opening not in ("between", "from"):
        return None
    gap = _words_between(reader, day, times)
    if gap is None or not {"between", "from", ","}.issuperset(gap):
        return None
    midnight = times.found.start.replace(hour=0, minute=0)
    try:
        shifted = _shift(times.found, found.start - midnight)
    except OverflowError:
        return None
    return TimePiece(day.at, shifted._replace(cycle=found.cycle), day.opening, "")
