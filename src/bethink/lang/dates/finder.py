"""Find times in a text: the rule for each start word, times of day, bounds and ranges."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import datetime, timedelta

from bethink.core.lazy import lazy_pattern
from bethink.core.named_tuple import NamedTuple
from bethink.lang.dates import absolute, languages, relative
from bethink.lang.dates.absolute import is_holiday_rule, quarter_or_half
from bethink.lang.dates.relative import unit_at_offset
from bethink.lang.dates.tokens import (
    BEFORE_A_TIME,
    DAY_PART,
    DECADE,
    GRANULARITY,
    LAST,
    MONTH,
    NEXT,
    NUMBER,
    ORDINAL,
    SEASON,
    THIRD_OF_SPAN,
    UNIT,
    VAGUE,
    WEEKDAY,
    WEEKDAY_STARTS,
    Bound,
    Granularity,
    Lean,
    ParsedTime,
    ReadOptions,
    TimeSpan,
    TokenReader,
    add_units,
    start_of,
    third_of_span,
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


Rule = Callable[[TokenReader, int], ParsedTime | None]


RULES_BY_WORD: dict[str, Rule] = {
    **dict.fromkeys(absolute.HOLIDAY_STARTS, absolute.parse_holiday),
    **dict.fromkeys(MONTH, absolute.parse_month_name),
    **dict.fromkeys(SEASON, absolute.parse_season),
    **dict.fromkeys(DECADE, absolute.parse_decade_name),
    **dict.fromkeys(WEEKDAY_STARTS, relative.parse_weekday),
    **dict.fromkeys(("yesterday", "today", "tomorrow"), relative.parse_near_day),
    **dict.fromkeys(("earlier", "later"), relative.parse_earlier_later),
    **dict.fromkeys([*LAST, *NEXT, "this"], relative.parse_last_this_next),
    **dict.fromkeys([*NUMBER, *VAGUE, "half"], relative.parse_counted_time),
    **dict.fromkeys(
        ("day", "week", "weekend", "month", "quarter", "year"), relative.parse_unit_phrase
    ),
    **dict.fromkeys(relative.VAGUE_STARTS, relative.parse_vague_time),
    **dict.fromkeys(("tonight", "overnight"), relative.parse_named_night),
    "q": absolute.parse_quarter,
    "h": absolute.parse_quarter,
    "calendar": absolute.parse_week_number,
    "fy": absolute.parse_fiscal_year,
}


def parse_simple_date(reader: TokenReader, i: int) -> ParsedTime | None:
    """Parse a date that is no part of another and has no time of day."""
    word = reader.word(i)
    if word[:1].isdecimal():
        return absolute.parse_date_from_number(reader, i) or relative.parse_counted_time(reader, i)
    # Holidays of other languages are translated to their rule.
    rule = absolute.parse_holiday if is_holiday_rule(word) else RULES_BY_WORD.get(word)
    return rule(reader, i) if rule else None


_DAY = timedelta(days=1)
_PICKABLE_UNITS = frozenset({"day", "week", "month", "quarter", "year"})


def parse_third(reader: TokenReader, i: int) -> ParsedTime | None:
    """Parse a third: early 2024, mid-March, the end of last month, the beginning of the year."""
    at = i + 1 + (reader.word(i + 1) in ("-", "in"))
    of = reader.word(at) == "of"
    if reader.word(at) == "the" and not (of or reader.word(i) in ("early", "mid", "late")):
        return None  # "start the day"
    whole = _parse_whole(reader, at + of)
    if whole is None or whole.confidence < 1:
        return None
    start, end = third_of_span(
        whole.start, whole.end, whole.granularity, THIRD_OF_SPAN[reader.word(i)]
    )
    return whole._replace(start=start, end=end)


def _parse_whole(reader: TokenReader, at: int) -> ParsedTime | None:
    """Parse the time that a part is taken of: a date, or "the month"."""
    if reader.word(at) == "the" and reader.word(at + 1) in ("week", "month", "year"):
        return unit_at_offset(reader, reader.word(at + 1), 0, at + 2)
    at += reader.word(at) == "the"
    year = reader.year(at)
    if year is not None and reader.word(at + 1) != "s" and 1900 <= year <= 2100:
        start = reader.midnight(year, 1, 1)
        return ParsedTime(start, add_units(start, "year", 1), "year", at + 1, relative=False)
    found = parse_simple_date(reader, at)
    if found is None and reader.options.vague and reader.word(at) in SEASON:
        return absolute.season_near(reader, at)  # the end of the summer
    return found


def parse_ordinal(reader: TokenReader, i: int) -> ParsedTime | None:
    """Parse the first week of June, the last Friday of May, the second half of 2023."""
    word = reader.word(i)
    at = i + 1
    if reader.number(i, 1) is not None:  # 1st, 2nd
        word, at = f"{word}{reader.word(at)}", at + 1
    number = ORDINAL.get(word)
    what = reader.word(at)
    if number is None:
        return None
    if what == "quarter" and 1 <= number <= 4:
        return _parse_ordinal_quarter(reader, number, at + 1)
    count = relative.parse_count(reader, at)
    if count is not None and abs(number) == 1:
        return _parse_several(reader, (count[0], number), count[2])
    if what == "of" and reader.word(at + 1) in MONTH and number > 0:
        what, at = "day", at - 1  # the first of May
    whole = _parse_whole(reader, at + 2) if reader.word(at + 1) in ("of", "in") else None
    pickable = what in UNIT or what in WEEKDAY or what == "half"
    if whole is None or not pickable or whole.end - whole.start < 6 * _DAY:
        return None
    return _pick_part(whole, what, number)


def _parse_several(reader: TokenReader, counts: tuple[int, int], at: int) -> ParsedTime | None:
    """Parse the first three months of 2024, the last two days of May."""
    unit = UNIT.get(reader.word(at))
    if unit not in _PICKABLE_UNITS or reader.word(at + 1) not in ("of", "in"):
        return None
    whole = _parse_whole(reader, at + 2)
    if whole is None:
        return None
    count, number = counts
    if number > 0:
        return _if_inside(
            whole, whole._replace(end=min(add_units(whole.start, unit, count), whole.end))
        )
    return _if_inside(whole, whole._replace(start=add_units(whole.end, unit, -count)))


def _parse_ordinal_quarter(reader: TokenReader, number: int, after: int) -> ParsedTime | None:
    found = quarter_or_half(reader, (number, 3), after)
    # "the third quarter" alone may be a game's; only a question may mean the year's.
    return found if found and (not found.cycle or reader.options.vague) else None


def _pick_part(whole: ParsedTime, what: str, number: int) -> ParsedTime | None:
    if what == "half":
        middle = start_of(whole.start + (whole.end - whole.start) / 2, "day")
        if whole.granularity == "year":
            middle = add_units(whole.start, "month", 6)
        return whole._replace(end=middle) if number == 1 else whole._replace(start=middle)
    if what in WEEKDAY or what == "weekend":
        return _pick_weekday(whole, WEEKDAY.get(what, 5), number, 2 if what == "weekend" else 1)
    unit = UNIT[what]
    if unit not in _PICKABLE_UNITS:
        return None
    if number < 0:
        start, end = add_units(whole.end, unit, -1), whole.end
    else:
        start = add_units(whole.start, unit, number - 1)
        end = min(add_units(start, unit, 1), whole.end)
    return _if_inside(
        whole, whole._replace(start=start, end=end, granularity=GRANULARITY.get(unit, "day"))
    )


def _pick_weekday(whole: ParsedTime, weekday: int, number: int, days: int) -> ParsedTime | None:
    if number > 0:
        ahead = (weekday - whole.start.weekday()) % 7
        start = whole.start + timedelta(days=ahead + 7 * (number - 1))
    else:
        last = whole.end - _DAY
        start = last - timedelta(days=(last.weekday() - weekday) % 7)
    found = whole._replace(start=start, end=start + timedelta(days=days), granularity="day")
    return _if_inside(whole, found)


def _if_inside(whole: ParsedTime, found: ParsedTime) -> ParsedTime | None:
    return found if whole.start <= found.start < whole.end and found.start < found.end else None


_MAX_CHARS = 1 << 16  # characters; longer texts are refused when written and read
_MAX_TIMES = 64  # times; more are a table, not a text

_START_WORDS = RULES_BY_WORD.keys() | THIRD_OF_SPAN.keys() | ORDINAL.keys() | DAY_PART.keys()
_START_WORDS |= {"noon", "midnight", "midday"}
# A text without any of these words and patterns contains no time.
_COMMON_WORDS = NUMBER.keys() | VAGUE.keys() | ORDINAL.keys() | THIRD_OF_SPAN.keys()
_TELLTALE = (_START_WORDS | UNIT.keys()) - _COMMON_WORDS
_TELLTALE -= {"this", "half", "other", "just", "calendar"}
# "Good Friday" is known by its last word, if not by its first.
_TELLTALE -= {
    name.split()[0] for name in absolute.HOLIDAYS if not _TELLTALE.isdisjoint(name.split()[1:])
} - {"christmas", "easter"}
_TELLTALE |= relative.COUNTABLE_UNITS.keys() - {"second"}
_TELLTALE |= {"last", "clock"}
_FIGURES = lazy_pattern(r"\d{4}|\d:\d\d|\d/\d|\d\.\d{1,2}\.(?!\d)|\d ?[apAP]\.?[mM]|[qQhH][1-4]|\d[hdw]\b|[1-9]0s\b|\d(?:st|nd|rd|th)\b")  # fmt: skip  # noqa: E501
_DIGIT = lazy_pattern(r"\d")
_LETTERS = lazy_pattern(r"[^\W\d_]+")
_PLAIN_LETTERS = lazy_pattern(r"[a-z]+")  # the same for ASCII, in half the time
# English words that are other words in other languages.
_AMBIGUOUS_WORDS = frozenset(
    {"mar", "fall", "sun", "sat", "mon", "an", "a", "sept", "dec", "past"}
    | {"second", "min", "h", "six", "am"}
)


def find_times(
    text: str, anchor: datetime, *, lean: Lean = "nearest", vague: bool = False
) -> list[TimeSpan]:
    """Find the times in a text (at most 64), in text order, without overlap.

    A month or weekday without a year is the ``nearest`` one to the anchor or, with lean
    ``past``, the last one that has begun. With ``vague`` guesses count as well: recently,
    in summer, at Christmas.
    """
    text = text[:_MAX_CHARS]
    spans: list[TimeSpan] = []
    for reader in _readers(text, ReadOptions(anchor, lean, vague)):
        pieces = join_ranges(reader, _find_pieces(reader))
        spans += [_to_time_span(reader, piece) for piece in pieces]
    return _without_overlap(spans)[:_MAX_TIMES]


def _readers(text: str, options: ReadOptions) -> Iterator[TokenReader]:
    """The text in each language it may name a time in, its main language first."""
    letters = _PLAIN_LETTERS if text.isascii() else _LETTERS
    words = frozenset(letters.findall(languages.fold(text)))
    has_english_words = not words.isdisjoint(_TELLTALE)
    has_english_time = has_english_words or _has_english_figures(text, words, options)
    possible = languages.possible_languages(words)
    foreign = [
        language
        for language in possible
        if language.may_be_of(words) and not words.isdisjoint(language.telltales)
    ]
    main = None
    if foreign or has_english_time or "/" in text:
        main = languages.detect_language(words, english=has_english_words, among=possible)
    if main is not None and (has_english_time or main in foreign):
        yield _translated_reader(main, text, options, sure=False)
    if has_english_time:
        yield _english_reader(text, options, alone=main is None)
    for language in foreign:
        # A word of a further language within English is a name.
        is_strange = (
            language.code in languages.FURTHER and (words & languages.ENGLISH) - language.shared
        )
        is_sure = not words.isdisjoint(language.telltales - language.unsure)
        if language is not main and not is_strange and is_sure:
            yield _translated_reader(language, text, options, sure=True)
    if unspaced := languages.translate_unspaced(text):
        yield _reader_of_tokens(text, options._replace(spaced=False), unspaced)


def _has_english_figures(text: str, words: frozenset[str], options: ReadOptions) -> bool:
    """Whether a text has figures that may be a time; in a question, also "just now"."""
    if options.vague and words >= {"just", "now"}:
        return True
    return _DIGIT.search(text) is not None and _FIGURES.search(text) is not None


def _english_reader(text: str, options: ReadOptions, *, alone: bool) -> TokenReader:
    """The text as it is; beside another language without the words that both have."""
    reader = TokenReader.from_text(text, options)
    if alone:
        return reader
    words = [f"_{word}" if word in _AMBIGUOUS_WORDS else word for word in reader.words]
    return TokenReader(text, tuple(words), options)


def _translated_reader(
    language: languages.Language, text: str, options: ReadOptions, *, sure: bool
) -> TokenReader:
    return _reader_of_tokens(
        text, options._replace(day_first=True), language.translate(text, sure=sure)
    )


def _reader_of_tokens(
    text: str, options: ReadOptions, words: list[languages.TranslatedToken]
) -> TokenReader:
    english, spans = zip(*words, strict=True) if words else ((), ())
    return TokenReader(text, english, options, spans)


def _find_pieces(reader: TokenReader) -> list[TimePiece]:
    pieces: list[TimePiece] = []
    next_index = 0
    for i, word in enumerate(reader.words):
        if i >= next_index and (
            word in _START_WORDS
            or is_holiday_rule(word)
            or (word[0].isdecimal() and _is_separate_number(reader, i))
        ):
            found = _parse_at(reader, i)
            if found:
                pieces.append(make_piece(reader, i, found))
                next_index = found.next
                if len(pieces) == _MAX_TIMES:
                    break
    return pieces


def _parse_at(reader: TokenReader, i: int) -> ParsedTime | None:
    """Parse the time that begins at this word, with the time of day around it."""
    try:
        time = parse_clock(reader, i)
        if time:
            return with_following_date(reader, time, _parse_following_date(reader, time.next))
        if reader.word(i) in DAY_PART and reader.word(i + 1) in ("of", "on"):
            return parse_part_of_date(reader, i, _parse_following_date(reader, i + 1))
        date = _parse_date(reader, i)
        return with_following_clock(reader, date) if date else None
    except (ValueError, OverflowError):
        return None  # no such day, or a year out of range


def _parse_following_date(reader: TokenReader, i: int) -> ParsedTime | None:
    """Parse the date that follows a time of day."""
    i += reader.word(i) == ","
    i += reader.word(i) in ("on", "of")
    return parse_simple_date(reader, i + (reader.word(i) == "the"))


def _is_separate_number(reader: TokenReader, i: int) -> bool:
    """Whether a number is not part of a larger token: v2.3.1, 10-20, utf8."""
    if not reader.touches(i) or reader.word(i - 1) in "([{<\"'`|*=,;@—–":
        return True
    if reader.word(i - 1) == "-" and has_half(reader, i):  # 9-11 am, 9:30-11:15 am
        first = i - (4 if reader.word(i - 3) == ":" else 2)
        return reader.word(first).isdecimal() and _is_separate_number(reader, first)
    return not reader.options.spaced and reader.word(i - 1)[0] not in ".-/:"


def _parse_date(reader: TokenReader, i: int) -> ParsedTime | None:
    word = reader.word(i)
    if word in THIRD_OF_SPAN:
        return parse_third(reader, i)
    if word in ORDINAL or (word[0].isdecimal() and len(word) == 1):
        found = parse_ordinal(reader, i)
        if found:
            return found
    return parse_simple_date(reader, i)


def _to_time_span(reader: TokenReader, piece: TimePiece) -> TimeSpan:
    found = piece.found
    spans = reader.spans[piece.at : found.next]
    at, end = min(span[0] for span in spans), max(span[1] for span in spans)
    return TimeSpan(
        found.start,
        found.end,
        reader.text[at:end],
        found.granularity,
        at,
        found.relative,
        piece.bound,
        found.confidence,
    )


def _without_overlap(spans: list[TimeSpan]) -> list[TimeSpan]:
    """Remove overlaps: of two readings of the same words keep the longer, else the first."""
    kept: list[TimeSpan] = []
    for span in sorted(spans, key=lambda span: (-len(span.text), not span.bound)):
        end = span.at + len(span.text)
        if all(end <= other.at or other.at + len(other.text) <= span.at for other in kept):
            kept.append(span)
    return sorted(kept, key=lambda span: span.at)
