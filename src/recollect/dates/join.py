"""What stands around a time: since, until, and from one time to another."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import NamedTuple

from recollect.dates.reader import Found, Reader
from recollect.dates.span import Bound
from recollect.dates.units import moved

_BEFORE: dict[str, Bound] = {"since": "since", "after": "after", "before": "before"}
_BEFORE |= {"until": "until", "till": "until", "by": "until", "starting": "since"}
_BEFORE_TWO: dict[tuple[str, str], Bound] = {
    ("prior", "to"): "before",
    ("up", "to"): "until",
    ("later", "than"): "after",
    ("earlier", "than"): "before",
    ("more", "than"): "before",
    ("less", "than"): "since",
}
_BEHIND: dict[str, Bound] = {"onwards": "since", "onward": "since", "since>": "since"}
_BEHIND |= {"after>": "after", "before>": "before"}
_BEING = frozenset({"be", "been", "am", "are", "is", "was", "were"})
_FILLING = frozenset({"the", "on", "in", "at", "about", "around", "almost", "nearly", "of"})
_TO = frozenset({"to", "until", "till", "-", "–", "—", "through", "thru"})
_LONGEST_GAP = 3
_ONE_DAY = timedelta(days=1)


class Piece(NamedTuple):
    """A time and the word it begins at; ``opening`` is the word that leads to it."""

    at: int
    found: Found
    opening: str = ""
    bound: Bound = ""


def piece(reader: Reader, i: int, found: Found) -> Piece:
    """A time with what leads to it."""
    before = i - 1
    for _ in range(2):
        before -= reader.word(before) in _FILLING
    opening = reader.word(before)
    bound = _BEHIND.get(reader.word(found.next), "") or _BEFORE.get(opening, "")
    if reader.word(found.next) == "or" and reader.word(found.next + 1) in ("later", "earlier"):
        bound = "since" if reader.word(found.next + 1) == "later" else "until"
    two = _BEFORE_TWO.get((reader.word(before - 1), opening), "")
    if two == "after" and reader.word(before - 2) == "no":
        two = "until"
    if opening == "to" and _is_doing(reader, before - 1):
        two = ""
    if opening == "over" and reader.word(found.next - 1) == "ago":
        two = "before"
    return Piece(i, found, opening, two or bound)


def _is_doing(reader: Reader, up: int) -> bool:
    """Whether "up to" says what somebody does: "have you been up to", "what was Ann up to"."""
    asked = reader.word(up - 2) in _BEING and reader.word(up - 3) == "what"
    return reader.word(up) == "up" and (asked or reader.word(up - 1) in _BEING)


def joined(reader: Reader, pieces: list[Piece]) -> list[Piece]:
    """One piece of "from X to Y", of "between X and Y", of "yesterday between 2 and 3 pm"."""
    out: list[Piece] = []
    for one in pieces:
        last = out[-1] if out else None
        whole = _range(reader, last, one) if last else None
        if whole:
            out[-1] = whole
            hours = _on_day(reader, out[-2], whole) if len(out) > 1 else None
            if hours:
                out[-2:] = [hours]
        else:
            out.append(one)
    return out


def _gap(reader: Reader, first: Piece, second: Piece) -> list[str] | None:
    if second.at - first.found.next > _LONGEST_GAP:
        return None
    return [word for word in reader.words[first.found.next : second.at] if word not in _FILLING]


def _range(reader: Reader, first: Piece, second: Piece) -> Piece | None:
    gap = _gap(reader, first, second)
    if gap is None or len(gap) != 1:
        return None
    between = gap[0] == "and" and first.opening == "between"
    alike = first.found.granularity == second.found.granularity
    if not between and not (gap[0] in _TO and (first.opening == "from" or alike)):
        return None
    try:
        one, two = _aligned(reader, first.found, second.found)
    except (ValueError, OverflowError):
        return None  # a year no clock reaches
    if one.start >= two.end:
        return None
    # One open year leaves the whole range open; a day named with either holds for both.
    cycle = one.cycle if two.cycle else ""
    found = one._replace(
        end=max(one.end, two.end), next=two.next, relative=one.relative or two.relative, cycle=cycle
    )
    return Piece(first.at, found, first.opening, second.bound if second.bound == "since" else "")


def _aligned(reader: Reader, one: Found, two: Found) -> tuple[Found, Found]:
    """Both ends in one week or year, where the words left that open."""
    if one.cycle and (not two.cycle or (one.start > two.start and reader.how.lean == "past")):
        return _at_most(one, two.start), two
    fixed = not one.cycle and one.granularity not in ("year", "decade")
    if two.cycle and (two.start < one.start or (fixed and two.cycle != "day")):
        return one, _after(two, one.start)
    return one, two


def _at_most(found: Found, limit: datetime) -> Found:
    """The last one of its cycle that begins no later than the limit."""
    if found.cycle != "year":
        days = timedelta(weeks=1) if found.cycle == "week" else _ONE_DAY
        return _shifted(found, days * ((limit - found.start) // days))
    years = limit.year - found.start.year
    moves = [_by_years(found, step) for step in (years, years - 1)]
    return next((one for one in moves if one.start <= limit), found)


def _after(found: Found, limit: datetime) -> Found:
    """The first one of its cycle that ends later than the limit."""
    if found.cycle != "year":
        days = timedelta(weeks=1) if found.cycle == "week" else _ONE_DAY
        return _shifted(found, -days * ((found.end - limit) // days))
    years = limit.year - found.start.year
    moves = [_by_years(found, step) for step in (years, years + 1)]
    return next((one for one in moves if one.end > limit), found)


def _shifted(found: Found, by: timedelta) -> Found:
    return found._replace(start=found.start + by, end=found.end + by)


def _by_years(found: Found, years: int) -> Found:
    start, end = (moved(moment, "year", years) for moment in (found.start, found.end))
    return found._replace(start=start, end=end)


def _on_day(reader: Reader, day: Piece, times: Piece) -> Piece | None:
    """Yesterday between 2 and 4 pm: hours that lie in the day before them."""
    found = day.found
    if found.granularity != "day" or found.end - found.start != _ONE_DAY:
        return None
    if times.found.cycle != "day" or times.opening not in ("between", "from"):
        return None
    gap = _gap(reader, day, times)
    if gap is None or not {"between", "from", ","}.issuperset(gap):
        return None
    midnight = times.found.start.replace(hour=0, minute=0)
    try:
        moved_there = _shifted(times.found, found.start - midnight)
    except OverflowError:
        return None
    return Piece(day.at, moved_there._replace(cycle=found.cycle), day.opening, "")
